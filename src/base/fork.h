/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Notices forks: fork() copies memory and one thread, and nothing else.
 *
 * Kept by pthread_atfork, so that reading it costs a load.  A page under MADV_WIPEONFORK would also notice
 * _Fork() and a bare clone(), but after those, as after any fork of a process with threads, POSIX promises a
 * child that runs no handlers only what signal handlers may do; and the page would be memory that the
 * allocator does not know of. */
#ifndef ESPALIER_BASE_FORK_H
#define ESPALIER_BASE_FORK_H

#include <stdbool.h>
#include <stdint.h>

/* Counts forks: 1 in the process of the first call, and one more in each child of a process that has called.
 * Equal numbers mean the same process.  Any thread may call at any time. */
uint64_t fork_generation(void);

/* Called around work that holds foreign locks (the loader's, a compiler's), by any number of threads.  A
 * child has such locks without the threads that would release them. */
void fork_enter_foreign(void);
void fork_leave_foreign(void);
/* Whether this process, or one that it descends from, was forked during such work: whatever the work
 * used must then not be used. */
bool fork_inherited_foreign(void);

#endif
