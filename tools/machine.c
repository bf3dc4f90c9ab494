/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
#include "machine_loops.h"

#define LOOPS(name) avx2_##name
#define VECTOR vector8
#define TARGET __attribute__((target("avx2,fma")))
#define MULTIPLY_ADD(a, b, c) (VECTOR) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#include "machine_loops.h"
#else
#define REGISTER "w"
#endif

#define LOOPS(name) generic_##name
#define VECTOR vector4
#define TARGET
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "machine_loops.h"

struct loops {
	const char *name;
	double (*multiply)(long turns);
	void (*read)(const void *, size_t bytes);
};

#if defined __x86_64__
static struct loops best_loops(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f"))
		return (struct loops){"avx512", avx512_multiply, avx512_read};
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return (struct loops){"avx2", avx2_multiply, avx2_read};
	return (struct loops){"generic", generic_multiply, generic_read};
}
#else
static struct loops best_loops(void)
{
	return (struct loops){"generic", generic_multiply, generic_read};
}
#endif

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- threads that do the same at once --- */

enum { MOST_BYTES = 256 << 20 };

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
	double peak[ROUNDS], barrier[ROUNDS], best = 0, reading[MACHINE_SETS] = {0};
	struct machine *found = m->crew->found;
	for (int round = 0; round < ROUNDS; round++) {
		peak[round] = measure_peak(m);
		best = fmax(best, peak[round]);
		barrier[round] = measure_barrier(m);
		for (int set = 0; set < found->sets; set++)
			if (round < LARGE_ROUNDS || (size_t)MACHINE_LEAST << set < LARGE)
				measure_reading(m, set, &reading[set]);
	}
	note(m->crew, &found->peak, best);
	for (int set = 0; set < found->sets; set++)
		note(m->crew, &found->bandwidth[set], reading[set]);
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

static bool run_crew(struct crew *c, char *memory)
{
	struct member member[c->threads];
	int made = 0;
	for (; made < c->threads; made++) {
		member[made] = (struct member){.crew = c, .index = made, .memory = memory + made * c->bytes};
		if (pthread_create(&member[made].thread, NULL, member_main, &member[made]))
			break;
	}
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

bool machine_measure(struct machine *found, int threads)
{
	enum { HUGE = 2 << 20 };
	struct crew c = {.loops = best_loops(), .threads = threads, .found = found};
	*found = (struct machine){.vector = c.loops.name, .threads = threads};
	found->sets = sets_of(MOST_BYTES, threads);
	if (threads < 1 || !found->sets)
		return false;
	c.bytes = (size_t)MACHINE_LEAST << (found->sets - 1);
	char *memory = aligned_alloc(HUGE, (c.bytes * threads + HUGE - 1) / HUGE * HUGE);
	if (!memory)
		return false;
	madvise(memory, c.bytes * threads, MADV_HUGEPAGE);
	pthread_mutex_init(&c.lock, NULL);
	bool done = run_crew(&c, memory);
	pthread_mutex_destroy(&c.lock);
	free(memory);
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

static const char *unit_of(double *bytes)
{
	*bytes /= 1 << 10;
	if (*bytes < 1 << 10)
		return "KiB";
	*bytes /= 1 << 10;
	return "MiB";
}

void machine_print(const struct machine *m, FILE *to)
{
	fprintf(to, "%d thread%s, %s: %.1f GFLOP/s a core, barrier %.2f us; GB/s a core reads from",
		m->threads, m->threads > 1 ? "s" : "", m->vector, m->peak * 1e-9, m->barrier * 1e6);
	for (int set = 0; set < m->sets; set++) {
		double bytes = (double)MACHINE_LEAST * (1 << set);
		const char *unit = unit_of(&bytes);
		fprintf(to, "%s %.0f %s: %.0f", set ? "," : "", bytes, unit, m->bandwidth[set] * 1e-9);
	}
	fputc('\n', to);
}

void machine_print_json(const struct machine *m, FILE *to)
{
	fprintf(to,
		"{\"vector\": \"%s\", \"threads\": %d, \"gflops\": %.2f, \"barrier_us\": %.3f, \"read\": [",
		m->vector, m->threads, m->peak * 1e-9, m->barrier * 1e6);
	for (int set = 0; set < m->sets; set++)
		fprintf(to, "%s{\"bytes\": %ld, \"gbs\": %.2f}", set ? ", " : "", (long)MACHINE_LEAST << set,
			m->bandwidth[set] * 1e-9);
	fputs("]}", to);
}
