#include "base/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint_fast64_t generation = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void listen(void)
{
	pthread_atfork(NULL, NULL, count);
}

uint64_t fork_generation(void)
{
	pthread_once(&once, listen);
	return atomic_load_explicit(&generation, memory_order_relaxed);
}
