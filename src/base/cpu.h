/* Which processor this is, as far as code made for it depends on it. */
#ifndef ESPALIER_BASE_CPU_H
#define ESPALIER_BASE_CPU_H

#include "base/str.h"

/* Appends a text that is the same on processors that can run each other's code and schedule it alike.  Asked
 * of the processor itself: on a virtual machine that takes some 10 us a question. */
void cpu_print(struct str *);

#endif
