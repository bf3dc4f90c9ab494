/* Which process this is: a number that is another in a forked child. */
#ifndef ESPALIER_BASE_FORK_H
#define ESPALIER_BASE_FORK_H

#include <stdint.h>

/* Cheap enough for every call of the library. */
uint64_t fork_generation(void);

#endif
