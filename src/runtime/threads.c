/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How the threads of a team are made, and end. */
#include "runtime/crew.h"

#include <ctype.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What isspace() takes in the C locale. */
#define SPACES " \t\n\v\f\r"

#define MOST_STACK ((size_t)PTRDIFF_MAX & ~(size_t)0xffff)

/* The bytes that one of OpenMP's variables specifies, 0 when it cannot be read: a number, in KiB unless one
 * of the letters B, K, M, G follows.  Implementations differ in what they make of a number that overflows;
 * here it is more than any thread can have. */
static size_t read_stack_size(const char *name)
{
	static const char units[] = "bkmg";
	const char *text = getenv(name), *unit;
	char *end, letter = 'k';
	if (!text || !*text)
		return 0;
	unsigned long n = strtoul(text, &end, 10);
	if (end == text)
		return 0;
	end += strspn(end, SPACES);
	if (*end)
		letter = (char)tolower((unsigned char)*end++);
	unit = strchr(units, letter);
	int shift = unit ? 10 * (int)(unit - units) : 0;
	if (!unit || end[strspn(end, SPACES)])
		return 0;
	return n <= MOST_STACK >> shift ? n << shift : MOST_STACK;
}

/* As OpenMP read them when the process began. */
static size_t stack_bytes;

__attribute__((constructor)) static void read_environment(void)
{
	stack_bytes = read_stack_size("OMP_STACKSIZE");
	if (!stack_bytes)
		stack_bytes = read_stack_size("GOMP_STACKSIZE");
}

struct trial {
	pthread_attr_t attributes;
	int threads; /* still to be made */
	int error;
};

/* Makes a chain of threads, each by the one before, which ends after it.  Only a thread that fails to make
 * the next writes to the trial. */
static void *make_next(void *trial)
{
	struct trial *r = trial;
	pthread_t next;
	if (r->threads-- < 1)
		return NULL;
	int error = pthread_create(&next, &r->attributes, make_next, r);
	if (error)
		r->error = error;
	else
		pthread_join(next, NULL);
	return NULL;
}

/* OpenMP ends the process when it cannot make a thread, so as many threads with stacks of the same size are
 * made and ended before.  The error number or 0.  OpenMP ignores a stack size that the system refuses as too
 * small. */
static int try_threads(int threads)
{
	struct trial r = {.threads = threads};
	if ((r.error = pthread_attr_init(&r.attributes)))
		return r.error;
	if (stack_bytes)
		(void)!pthread_attr_setstacksize(&r.attributes, stack_bytes);
	make_next(&r);
	pthread_attr_destroy(&r.attributes);
	return r.error;
}

/* The master thread.  OpenMP's settings are per thread: the host's stay as they are.  The crew is up when all of its
 * threads are where they may run, so that callers can move them. */
static void *run_master(void *crew)
{
	struct rt_crew *c = crew;
	c->error = try_threads(c->wanted - 1);
	if (c->error) {
		rt_gate_raise(&c->up, 1);
		return NULL;
	}
	omp_set_dynamic(0);
	omp_set_max_active_levels(1);
#pragma omp parallel num_threads(c->wanted)
	{
		int worker = omp_get_thread_num();
		rt_crew_place(c, worker + 1);
		pthread_setname_np(pthread_self(), "espalier");
		if (worker == 0)
			c->threads = omp_get_num_threads() + 1;
#pragma omp barrier
		if (worker == 0)
			rt_gate_raise(&c->up, 1);
		rt_crew_serve(c, worker + 1);
	}
	return NULL;
}

/* No thread of a team handles the host's signals. */
static int make_master(struct rt_crew *c)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&c->master, NULL, run_master, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int rt_crew_start(struct rt_crew *c)
{
	int error = make_master(c);
	if (error)
		return error;
	rt_gate_wait(&c->up, 1, &(struct rt_wait){0});
	if (c->error)
		pthread_join(c->master, NULL);
	return c->error;
}

/* The master ends after the region's own barrier, so after all workers.  They are counted nevertheless,
 * because race detectors do not see inside of OpenMP. */
void rt_crew_end(struct rt_crew *c)
{
	atomic_store_explicit(&c->end, true, memory_order_relaxed);
	rt_gate_raise(&c->last, rt_gate_value(&c->last) + 1);
	pthread_join(c->master, NULL);
	while (atomic_load(&c->ended) < c->threads - 1)
		sched_yield();
}
