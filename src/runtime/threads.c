/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How the threads of a team are made, and end. */
#include "runtime/crew.h"

#include <ctype.h>
#include <limits.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* What isspace() takes in the C locale. */
#define SPACES " \t\n\v\f\r"

/* --- where they run --- */

/* The processors of one of OpenMP's places; false when there are none. */
static bool place_of(int part, struct rt_processors *p)
{
	int id[CPU_SETSIZE], places = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
	int ids = places ? omp_get_place_num_procs(part % places) : 0;
	if (ids < 1 || ids > CPU_SETSIZE)
		return false;
	omp_get_place_proc_ids(part % places, id);
	memset(p, 0, sizeof *p);
	for (int i = 0; i < ids; i++)
		CPU_SET_S(id[i], sizeof p->set, p->set);
	return true;
}

/* The part-th of the team's processors, which begin anew after the last. */
static struct rt_processors own_of(const struct rt_crew *c, int part)
{
	struct rt_processors own = c->processors;
	int n = CPU_COUNT_S(sizeof own.set, own.set), before = n ? part % n : 0;
	for (size_t i = 0, met = 0; n && i < sizeof own.set * CHAR_BIT; i++)
		if (CPU_ISSET_S(i, sizeof own.set, own.set) && met++ != (size_t)before)
			CPU_CLR_S(i, sizeof own.set, own.set);
	return own;
}

/* A new thread is bound to where the thread that made it is bound, which is a caller that has work to do
 * there.  It goes where the team may run; or, when the host's environment binds threads, to the place after
 * those of the parts before it. */
static void settle(const struct rt_crew *c, int part)
{
	struct rt_processors place;
	if (!place_of(part, &place))
		place = c->pinned ? own_of(c, part) : c->processors;
	if (CPU_COUNT_S(sizeof place.set, place.set))
		sched_setaffinity(0, sizeof place.set, place.set);
	pthread_setname_np(pthread_self(), "espalier");
}

#define MOST_STACK ((size_t)PTRDIFF_MAX & ~(size_t)0xffff)

/* The bytes that one of OpenMP's variables asks for, 0 when it cannot be read: a number, KiB unless one of
 * the letters B, K, M, G follows.  More than can be counted, which one OpenMP takes for all there is and
 * another does not take at all, is more than any thread can have. */
static size_t stack_asked(const char *name)
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
	stack_bytes = stack_asked("OMP_STACKSIZE");
	if (!stack_bytes)
		stack_bytes = stack_asked("GOMP_STACKSIZE");
}

struct rehearsal {
	pthread_attr_t attributes;
	int threads; /* still to be made */
	int error;
};

/* A chain of threads, each made by the one before and still there when the next is made.  Who could not make
 * one says so: the others write nothing, not even that they could. */
static void *make_next(void *rehearsal)
{
	struct rehearsal *r = rehearsal;
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

/* OpenMP ends the process when it cannot make a thread: what it will need is tried out before, stacks
 * included.  The error or 0.  A stack that the system refuses as too small is none that OpenMP takes. */
static int rehearse(int threads)
{
	struct rehearsal r = {.threads = threads};
	if ((r.error = pthread_attr_init(&r.attributes)))
		return r.error;
	if (stack_bytes)
		(void)!pthread_attr_setstacksize(&r.attributes, stack_bytes);
	make_next(&r);
	pthread_attr_destroy(&r.attributes);
	return r.error;
}

/* The master: its settings of OpenMP are its own, the host's stay as they are. */
static void *lead(void *crew)
{
	struct rt_crew *c = crew;
	c->trouble = rehearse(c->wanted - 1);
	if (c->trouble) {
		rt_gate_move(&c->up, 1);
		return NULL;
	}
	omp_set_dynamic(0);
	omp_set_max_active_levels(1);
#pragma omp parallel num_threads(c->wanted)
	{
		int member = omp_get_thread_num();
		if (member == 0) {
			c->parts = omp_get_num_threads() + 1;
			rt_gate_move(&c->up, 1);
		}
		settle(c, member + 1);
		rt_crew_serve(c, member + 1);
	}
	return NULL;
}

/* Signals are the host's affair: no thread of a team handles them. */
static int make_master(struct rt_crew *c)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&c->master, NULL, lead, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

int rt_crew_start(struct rt_crew *c)
{
	int error = make_master(c);
	if (error)
		return error;
	rt_gate_wait(&c->up, 1, false);
	if (c->trouble)
		pthread_join(c->master, NULL);
	return c->trouble;
}

/* The master comes last, out of the region's own barrier; that the
 * members are done with the crew's memory is said here as well, because tools that look for races do not see
 * inside of OpenMP. */
void rt_crew_end(struct rt_crew *c)
{
	atomic_store_explicit(&c->end, true, memory_order_relaxed);
	rt_gate_move(&c->limit, rt_gate_turn(&c->limit) + 1);
	pthread_join(c->master, NULL);
	while (atomic_load(&c->ended) < c->parts - 1)
		sched_yield();
}
