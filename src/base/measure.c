/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/measure.h"

#include "base/targets.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* --- loops, by what the processor has --- */

typedef float vector4 __attribute__((vector_size(16)));

#if defined __x86_64__
#include <immintrin.h>
#define REGISTER "x"
typedef float vector8 __attribute__((vector_size(32)));
typedef float vector16 __attribute__((vector_size(64)));

#define LOOPS(name) avx512_##name
#define VECTOR vector16
#define TARGET __attribute__((target("avx512f")))
#define MULTIPLY_ADD(a, b, c) (VECTOR) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#include "base/measure_loops.h"

#define LOOPS(name) avx2_##name
#define VECTOR vector8
#define TARGET __attribute__((target("avx2,fma")))
#define MULTIPLY_ADD(a, b, c) (VECTOR) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#include "base/measure_loops.h"
#else
#define REGISTER "w"
#endif

#define LOOPS(name) generic_##name
#define VECTOR vector4
#define TARGET
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "base/measure_loops.h"

struct loops {
	const char *name;
	double (*multiply)(long turns);
	double (*chain)(long turns);
	void (*read)(const void *, size_t bytes);
};

/* Of the target that they are for. */
static const char *const names[] = {
#define NAME(id, name, ...) [TARGET_##id] = name,
    EACH_TARGET(NAME)
#undef NAME
};

#define LOOPS_OF(id, loops) {names[TARGET_##id], loops##_multiply, loops##_chain, loops##_read}

#if defined __x86_64__
static struct loops best_loops(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f"))
		return (struct loops)LOOPS_OF(AVX512, avx512);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return (struct loops)LOOPS_OF(AVX2, avx2);
	return (struct loops)LOOPS_OF(GENERIC, generic);
}
#else
static struct loops best_loops(void)
{
	return (struct loops)LOOPS_OF(GENERIC, generic);
}
#endif

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- threads that do the same at once --- */

struct crew {
	struct loops loops;
	int threads;
	size_t bytes;	  /* that each has to read from */
	atomic_int begun; /* 1: all are there; -1: they never will be */
	_Alignas(64) atomic_int arrived;
	_Alignas(64) atomic_int meetings;
	struct machine *found;
	pthread_mutex_t lock; /* of what `found` holds */
};

struct member {
	struct crew *crew;
	int index;
	char *memory;
	pthread_t thread;
};

/* Waits until all are here.  A processor that others want is given away after a while. */
static void meet(struct crew *c)
{
	int meeting = atomic_load_explicit(&c->meetings, memory_order_acquire);
	if (atomic_fetch_add(&c->arrived, 1) == c->threads - 1) {
		atomic_store_explicit(&c->arrived, 0, memory_order_relaxed);
		atomic_store_explicit(&c->meetings, meeting + 1, memory_order_release);
		return;
	}
	for (int turn = 0; atomic_load_explicit(&c->meetings, memory_order_acquire) == meeting; turn++)
		if (turn > 10000)
			sched_yield();
}

/* The slowest of the threads counts, each by its best. */
static void note(struct crew *c, double *rate, double mine)
{
	pthread_mutex_lock(&c->lock);
	if (*rate == 0 || mine < *rate)
		*rate = mine;
	pthread_mutex_unlock(&c->lock);
}

static double measure_peak(struct member *m)
{
	meet(m->crew);
	double begin = now(), operations = m->crew->loops.multiply(16000);
	return operations / (now() - begin);
}

/* Seconds from one multiply-add to the next that needs its result: not how many there are in a vector. */
static double measure_chain(struct member *m)
{
	double begin = now(), links = m->crew->loops.chain(4000);
	return (now() - begin) / links;
}

static double measure_barrier(struct member *m)
{
	enum { MEETINGS = 100 };
	meet(m->crew);
	double begin = now();
	for (int i = 0; i < MEETINGS; i++)
		meet(m->crew);
	return (now() - begin) / MEETINGS;
}

/* Reads at least 1 MiB, so that asking for the time does not count, after once to have it near. */
static void measure_reading(struct member *m, int set, double *best)
{
	size_t bytes = (size_t)MACHINE_LEAST << set;
	int passes = bytes < 1 << 20 ? (1 << 20) / bytes : 1;
	m->crew->loops.read(m->memory, bytes);
	meet(m->crew);
	double begin = now();
	for (int pass = 0; pass < passes; pass++)
		m->crew->loops.read(m->memory, bytes);
	*best = fmax(*best, passes * bytes / (now() - begin));
}

/* A virtual machine's processors are moved: now and then they share a core and meet soonest, but compute at
 * half the peak.  What counts is how soon those meet that compute at full speed. */
static bool at_full_speed(double peak, double best)
{
	return peak > 0.9 * best;
}

enum { ROUNDS = 40 };

static double barrier_at_full_speed(const double *peak, const double *barrier)
{
	double best = 0, least = INFINITY;
	for (int round = 0; round < ROUNDS; round++)
		best = fmax(best, peak[round]);
	for (int round = 0; round < ROUNDS; round++)
		if (at_full_speed(peak[round], best))
			least = fmin(least, barrier[round]);
	return least;
}

/* All in turn, over and over: whoever disturbs it, disturbs not one alone.  What takes long is not repeated
 * as often. */
static void measure_rates(struct member *m)
{
	enum { LARGE_ROUNDS = 3, LARGE = 16 << 20 };
	double peak[ROUNDS], barrier[ROUNDS], best = 0, chain = INFINITY, reading[MACHINE_SETS] = {0};
	struct machine *found = m->crew->found;
	for (int round = 0; round < ROUNDS; round++) {
		peak[round] = measure_peak(m);
		best = fmax(best, peak[round]);
		chain = fmin(chain, measure_chain(m));
		barrier[round] = measure_barrier(m);
		for (int set = 0; set < found->sets; set++)
			if (round < LARGE_ROUNDS || (size_t)MACHINE_LEAST << set < LARGE)
				measure_reading(m, set, &reading[set]);
	}
	note(m->crew, &found->peak, best);
	for (int set = 0; set < found->sets; set++)
		note(m->crew, &found->bandwidth[set], reading[set]);
	if (m->index == 0)
		found->multiply_add = chain;
	if (m->index == 0 && found->threads > 1)
		found->barrier = barrier_at_full_speed(peak, barrier);
}

/* To the index-th of the processors that the process may use. */
static void pin(int index)
{
	cpu_set_t all, one;
	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) == 0)
		return;
	index %= CPU_COUNT(&all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && index-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			pthread_setaffinity_np(pthread_self(), sizeof one, &one);
		}
}

/* Members begin together or not at all: they would wait for one that could not be made. */
static void *member_main(void *argument)
{
	struct member *m = argument;
	int begun;
	while (!(begun = atomic_load(&m->crew->begun)))
		sched_yield();
	if (begun < 0)
		return NULL;
	pin(m->index);
	memset(m->memory, 0, m->crew->bytes);
	measure_rates(m);
	return NULL;
}

/* The host's signals are handled by threads of its own. */
static bool run_crew(struct crew *c, char *memory)
{
	struct member member[c->threads];
	sigset_t all_signals, before;
	int made = 0;
	sigfillset(&all_signals);
	pthread_sigmask(SIG_SETMASK, &all_signals, &before);
	for (; made < c->threads; made++) {
		member[made] = (struct member){.crew = c, .index = made, .memory = memory + made * c->bytes};
		if (pthread_create(&member[made].thread, NULL, member_main, &member[made]))
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	bool all = made == c->threads;
	atomic_store(&c->begun, all ? 1 : -1);
	while (made > 0)
		pthread_join(member[--made].thread, NULL);
	return all;
}

/* Working sets are powers of two, and all threads have theirs in `most` bytes. */
static int sets_of(size_t most, int threads)
{
	int sets = 0;
	while (sets < MACHINE_SETS && ((size_t)MACHINE_LEAST << sets) * threads <= most)
		sets++;
	return sets;
}

bool machine_measure(struct machine *found, int threads, size_t memory)
{
	enum { HUGE = 2 << 20 };
	struct crew c = {.loops = best_loops(), .threads = threads, .found = found};
	*found = (struct machine){.vector = c.loops.name, .threads = threads};
	found->sets = sets_of(memory, threads);
	if (threads < 1 || !found->sets)
		return false;
	c.bytes = (size_t)MACHINE_LEAST << (found->sets - 1);
	size_t room = c.bytes * threads + HUGE;
	char *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return false;
	char *aligned = all + (-(uintptr_t)all & (HUGE - 1));
	madvise(aligned, c.bytes * threads, MADV_HUGEPAGE);
	pthread_mutex_init(&c.lock, NULL);
	bool done = run_crew(&c, aligned);
	pthread_mutex_destroy(&c.lock);
	munmap(all, room);
	return done;
}

/* --- what was found --- */

void machine_merge(struct machine *m, const struct machine *other)
{
	if (at_full_speed(other->peak, m->peak))
		m->barrier =
		    at_full_speed(m->peak, other->peak) ? fmin(m->barrier, other->barrier) : other->barrier;
	m->peak = fmax(m->peak, other->peak);
	for (int set = 0; set < m->sets; set++)
		m->bandwidth[set] = fmax(m->bandwidth[set], other->bandwidth[set]);
}

double machine_bandwidth(const struct machine *m, double bytes)
{
	double at = log2(fmax(bytes, MACHINE_LEAST) / MACHINE_LEAST);
	int set = fmin(at, m->sets - 1);
	if (set == m->sets - 1)
		return m->bandwidth[set];
	double part = at - set;
	return (1 - part) * m->bandwidth[set] + part * m->bandwidth[set + 1];
}
