/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

/* Static, because they describe the process. */
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static _Atomic uint64_t generation = 1;
static atomic_uint foreign;
static atomic_bool inherited;

/* Runs before fork() returns, when the child has one thread. */
static void note_child(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	if (atomic_load_explicit(&foreign, memory_order_relaxed))
		atomic_store_explicit(&inherited, true, memory_order_relaxed);
}

/* Registration fails only when memory is out; forks then go unnoticed, as they would without this file. */
static void listen_for_children(void)
{
	pthread_atfork(NULL, NULL, note_child);
}

uint64_t fork_generation(void)
{
	pthread_once(&registered, listen_for_children);
	return atomic_load_explicit(&generation, memory_order_relaxed);
}

void fork_enter_foreign(void)
{
	pthread_once(&registered, listen_for_children);
	atomic_fetch_add_explicit(&foreign, 1, memory_order_relaxed);
}

void fork_leave_foreign(void)
{
	atomic_fetch_sub_explicit(&foreign, 1, memory_order_relaxed);
}

bool fork_inherited_foreign(void)
{
	return atomic_load_explicit(&inherited, memory_order_relaxed);
}
