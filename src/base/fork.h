/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which process this is: fork() copies memory and one thread, and nothing else.
 *
 * Kept by pthread_atfork, so that reading it costs a load.  A page under MADV_WIPEONFORK would also notice
 * _Fork() and a bare clone(), but after those, as after any fork of a process with threads, POSIX promises a
 * child that runs no handlers only what signal handlers may do; and the page would be memory that the
 * allocator does not know of. */
#ifndef ESPALIER_BASE_FORK_H
#define ESPALIER_BASE_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* 1 in the process that asks first, and one more in each child of a process that has asked: equal as long as
 * the process is the same.  Any thread may ask at any time. */
uint64_t fork_generation(void);

/* Around work that holds locks of others (the loader's, a compiler's), by any number of threads: their owners
 * do not come along into a child, where nobody will ever open them. */
void fork_enter_foreign(void);
void fork_leave_foreign(void);
/* Whether this process, or one that it descends from, was forked while such work was under way: what the work
 * used must then not be used. */
bool fork_inherited_foreign(void);

#endif
