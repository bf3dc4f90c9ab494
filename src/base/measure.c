/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/measure.h"

#include "base/target_loops.h"

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

static double read_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- threads that measure the same at once --- */

struct team {
	struct loops loops;
	int threads;
	size_t bytes;	  /* that each thread reads from */
	char *memory;	  /* of all threads */
	const size_t *sets; /* of tiles; NULL = they are not measured */
	atomic_int begun; /* 1: all threads were made; -1: one could not be made */
	_Alignas(64) atomic_int arrived;
	_Alignas(64) atomic_int phase; /* counts the barriers that all have reached */
	double rung; /* when member 0 rang the bell that member 1 sleeps at; 0 = it has not */
	pthread_cond_t bell;
	struct machine *found;
	pthread_mutex_t lock; /* of *found and of the bell */
};

struct member {
	struct team *team;
	int index;
	char *memory;
	pthread_t thread;
	float rows[TARGET_ROWS][LOOP_DEPTH + 16];
};

/* Waits until all threads are here.  Yields after a while: other processes may need the processor. */
static void wait_at_barrier(struct team *c)
{
	int phase = atomic_load_explicit(&c->phase, memory_order_acquire);
	if (atomic_fetch_add(&c->arrived, 1) == c->threads - 1) {
		atomic_store_explicit(&c->arrived, 0, memory_order_relaxed);
		atomic_store_explicit(&c->phase, phase + 1, memory_order_release);
		return;
	}
	for (int i = 0; atomic_load_explicit(&c->phase, memory_order_acquire) == phase; i++)
		if (i > 10000)
			sched_yield();
}

/* Keeps the rate of the slowest thread; each passes its best. */
static void note_rate(struct team *c, double *rate, double mine)
{
	pthread_mutex_lock(&c->lock);
	if (*rate == 0 || mine < *rate)
		*rate = mine;
	pthread_mutex_unlock(&c->lock);
}

static void note_time(struct team *c, double *time, double mine)
{
	pthread_mutex_lock(&c->lock);
	*time = fmax(*time, mine);
	pthread_mutex_unlock(&c->lock);
}

static double measure_peak(struct member *m)
{
	wait_at_barrier(m->team);
	double begin = read_clock(), operations = m->team->loops.multiply(16000);
	return operations / (read_clock() - begin);
}

/* Latency of a multiply-add [s]: from one to the next that needs its result, whatever the lanes. */
static double measure_chain(struct member *m)
{
	double begin = read_clock(), links = m->team->loops.chain(4000);
	return (read_clock() - begin) / links;
}

static double measure_barrier(struct member *m)
{
	enum { BARRIERS = 100 };
	wait_at_barrier(m->team);
	double begin = read_clock();
	for (int i = 0; i < BARRIERS; i++)
		wait_at_barrier(m->team);
	return (read_clock() - begin) / BARRIERS;
}

/* Reads once to fill the caches, then at least 1 MiB, so that reading the clock does not count. */
static void measure_reading(struct member *m, int set, double *best)
{
	size_t bytes = (size_t)MACHINE_LEAST << set;
	int passes = bytes < 1 << 20 ? (1 << 20) / bytes : 1;
	m->team->loops.read(m->memory, bytes);
	wait_at_barrier(m->team);
	double begin = read_clock();
	for (int pass = 0; pass < passes; pass++)
		m->team->loops.read(m->memory, bytes);
	*best = fmax(*best, passes * bytes / (read_clock() - begin));
}

/* Seconds of an iteration of a tile whose weights are a working set of so many bytes, which it reads twice at
 * least: first to fill the caches. */
static double measure_tile(struct member *m, const struct tile *t, size_t set)
{
	enum { LEAST_ITERATIONS = 1024 };
	size_t weights = m->team->loops.vector_bytes * t->vectors, row = sizeof *m->rows[0] * t->rows;
	long depth = fmin(LOOP_DEPTH, set / (weights + row)), panels = fmax(1, set / (depth * weights));
	struct operands o = {m->memory, m->rows, depth, panels};
	long passes = 1 + LEAST_ITERATIONS / (depth * panels);
	t->multiply(&o);
	double begin = read_clock();
	for (long pass = 0; pass < passes; pass++)
		t->multiply(&o);
	return (read_clock() - begin) / (passes * depth * panels);
}

enum { LINE = 64 /* bytes: a unit to measure by, whatever the cache's are */ };

/* Seconds of a line when a thread reads many that the next one has just written, while all do the same. */
static double measure_line(struct member *m, int round)
{
	enum { LINES = 256 };
	const struct team *c = m->team;
	memset(m->memory, round, LINES * LINE);
	wait_at_barrier(m->team);
	double begin = read_clock();
	c->loops.read(c->memory + (m->index + 1) % c->threads * c->bytes, LINES * LINE);
	double time = (read_clock() - begin) / LINES;
	wait_at_barrier(m->team);
	return time;
}

/* Seconds that a barrier after some work takes longer than one after none. */
static double measure_skew(struct member *m, double barrier)
{
	enum { REPEATS = 32, WORK = 500 };
	double begin = read_clock();
	for (int i = 0; i < REPEATS; i++)
		m->team->loops.multiply(WORK);
	double alone = read_clock() - begin;
	wait_at_barrier(m->team);
	begin = read_clock();
	for (int i = 0; i < REPEATS; i++) {
		m->team->loops.multiply(WORK);
		wait_at_barrier(m->team);
	}
	return fmax(0, (read_clock() - begin - alone) / REPEATS - barrier);
}

/* Computes until other processors, which have nothing to do, are as idle as they are between runs. */
static void let_others_sleep(void)
{
	static const double asleep = 0.5e-3;
	double begin = read_clock();
	while (read_clock() - begin < asleep)
		;
}

/* Seconds until member 1, which sleeps, runs; the other members find 0. */
static double measure_waking(struct member *m)
{
	struct team *c = m->team;
	double took = 0;
	wait_at_barrier(c);
	if (m->index == 0) {
		let_others_sleep();
		pthread_mutex_lock(&c->lock);
		c->rung = read_clock();
		pthread_cond_signal(&c->bell);
		pthread_mutex_unlock(&c->lock);
	} else if (m->index == 1) {
		pthread_mutex_lock(&c->lock);
		while (c->rung == 0)
			pthread_cond_wait(&c->bell, &c->lock);
		took = read_clock() - c->rung;
		c->rung = 0;
		pthread_mutex_unlock(&c->lock);
	}
	wait_at_barrier(c);
	return took;
}

/* Keeps when a thread began to run. */
struct birth {
	double at; /* when it has begun: the clock */
	atomic_bool begun;
};

static void *note_birth(void *birth)
{
	struct birth *b = birth;
	b->at = read_clock();
	atomic_store(&b->begun, true);
	return NULL;
}

/* Seconds from making a thread until it runs beside its maker, which goes on working; infinite where none can be made.
 * Yields after about a millisecond: there may be no other processor. */
static double measure_creating(void)
{
	enum { POLLS = 1000000 };
	struct birth birth = {0};
	pthread_t thread;
	let_others_sleep();
	double begin = read_clock();
	if (pthread_create(&thread, NULL, note_birth, &birth))
		return INFINITY;
	for (int i = 0; !atomic_load_explicit(&birth.begun, memory_order_acquire); i++)
		if (i > POLLS)
			sched_yield();
	pthread_join(thread, NULL);
	return birth.at - begin;
}

/* Reads a working set in pieces, from its first or from its last. */
static double sweep_set(struct member *m, size_t set, bool back)
{
	enum { PIECE = 4 << 10 };
	double begin = read_clock();
	for (size_t i = 0, pieces = set / PIECE; i < pieces; i++)
		m->team->loops.read(m->memory + (back ? pieces - 1 - i : i) * PIECE, PIECE);
	return read_clock() - begin;
}

/* Seconds of sweeps over the set beyond the second level: after one the same way, and after one the other way. */
struct sweeps {
	double again, back;
};

static void measure_sweeps(struct member *m, struct sweeps *least)
{
	size_t set = m->team->sets[TARGET_BEYOND];
	sweep_set(m, set, false);
	least->again = fmin(least->again, sweep_set(m, set, false));
	least->back = fmin(least->back, sweep_set(m, set, true));
}

/* The bytes that would be read at the rate of the second level and not at the set's to save what sweeping back saves. */
static double kept_bytes(const struct member *m, const struct sweeps *s, double near_rate)
{
	double each = s->again / m->team->sets[TARGET_BEYOND] - 1 / near_rate;
	return each > 0 ? fmax(0, s->again - s->back) / each : 0;
}

/* All tiles, of which each round of measurements finds times; the least of the rounds counts. */
static void measure_tiles(struct member *m, int cache, target_times *least)
{
	size_t set = m->team->sets[cache];
	wait_at_barrier(m->team);
	for (const struct tile *t = m->team->loops.tile; t->rows; t++) {
		double *time = &(*least)[cache][t->rows - 1][t->vectors - 1], now = measure_tile(m, t, set);
		*time = *time > 0 ? fmin(*time, now) : now;
	}
}

static void note_tiles(struct team *c, const target_times *mine)
{
	for (int cache = 0; cache < TARGET_CACHES; cache++)
		for (const struct tile *t = c->loops.tile; t->rows; t++)
			note_time(c, &c->found->iteration[cache][t->rows - 1][t->vectors - 1],
				  (*mine)[cache][t->rows - 1][t->vectors - 1]);
}

/* The processors of a virtual machine share a core now and then: their barrier is then fastest, but they
 * compute at half the peak.  Barriers count only where threads compute at full speed. */
static bool at_full_speed(double peak, double best)
{
	return peak > 0.9 * best;
}

enum { ROUNDS = 40 };

static int compare_numbers(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

/* The sample that a share of all others are below. */
static double quantile_of(double *sample, int n, double share)
{
	qsort(sample, n, sizeof *sample, compare_numbers);
	return sample[(int)(share * n)];
}

/* Of the time until a thread runs: others that run make it longer, without a limit, and nothing makes it shorter but a
 * processor that was not idle yet.  So a quarter of the samples, taken at intervals, is enough. */
static double undisturbed_start(double *sample, int n)
{
	return quantile_of(sample, n, 0.25);
}

static double least_at_full_speed(const double *peak, const double *time)
{
	double best = 0, least = INFINITY;
	for (int round = 0; round < ROUNDS; round++)
		best = fmax(best, peak[round]);
	for (int round = 0; round < ROUNDS; round++)
		if (at_full_speed(peak[round], best))
			least = fmin(least, time[round]);
	return least;
}

/* Of the smallest measured working set of so many bytes or more. */
static double reading_rate_of(size_t bytes, const double *reading)
{
	int set = 0;
	while (set < MACHINE_SETS - 1 && (size_t)MACHINE_LEAST << set < bytes)
		set++;
	return reading[set];
}

/* Alternates between all measurements, so that a disturbance does not spoil one of them alone.  Large working
 * sets take long and are repeated less often.  A tile takes some microseconds, and programs on the other half
 * of a core disturb many of them. */
static void measure_rates(struct member *m)
{
	enum { LARGE_ROUNDS = 3, LARGE = 16 << 20, FAR_TILES = 4, ASLEEP = 2 /* rounds from one to the next */ };
	target_times tiles = {0};
	double peak[ROUNDS], barrier[ROUNDS], skew[ROUNDS], line[ROUNDS], best = 0, chain = INFINITY;
	double wake[ROUNDS / ASLEEP] = {0};
	double reading[MACHINE_SETS] = {0};
	struct sweeps sweeps = {INFINITY, INFINITY};
	struct machine *found = m->team->found;
	for (int round = 0; round < ROUNDS; round++) {
		peak[round] = measure_peak(m);
		best = fmax(best, peak[round]);
		chain = fmin(chain, measure_chain(m));
		barrier[round] = measure_barrier(m);
		skew[round] = measure_skew(m, barrier[round]);
		line[round] = measure_line(m, round);
		if (found->threads > 1 && round % ASLEEP == 0)
			wake[round / ASLEEP] = measure_waking(m);
		for (int set = 0; set < found->sets; set++)
			if (round < LARGE_ROUNDS || (size_t)MACHINE_LEAST << set < LARGE)
				measure_reading(m, set, &reading[set]);
		for (int cache = 0; m->team->sets && cache < TARGET_CACHES; cache++)
			if (cache != TARGET_BEYOND || round % FAR_TILES == 0)
				measure_tiles(m, cache, &tiles);
		if (m->team->sets)
			measure_sweeps(m, &sweeps);
	}
	note_rate(m->team, &found->peak, best);
	for (int set = 0; set < found->sets; set++)
		note_rate(m->team, &found->bandwidth[set], reading[set]);
	if (m->team->sets) {
		note_tiles(m->team, &tiles);
		note_rate(m->team, &found->kept, kept_bytes(m, &sweeps, reading_rate_of(m->team->sets[TARGET_L2], reading)));
	}
	if (found->threads > 1)
		note_rate(m->team, &found->exchange, LINE / least_at_full_speed(peak, line));
	if (m->index == 0)
		found->multiply_add = chain;
	if (m->index == 1)
		found->wake = undisturbed_start(wake, ROUNDS / ASLEEP);
	if (m->index == 0 && found->threads > 1) {
		found->barrier = least_at_full_speed(peak, barrier);
		found->skew = quantile_of(skew, ROUNDS, 0.5);
	}
}

enum { CREATIONS = 8 /* before the members measure, and as many after it: they poll, and keep their processors */ };

static void measure_creations(double time[CREATIONS])
{
	for (int i = 0; i < CREATIONS; i++)
		time[i] = measure_creating();
}

/* Binds the thread to the index-th of the processors that the process may use. */
static void pin_thread(int index)
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

/* Members begin together or not at all: at the barrier they would wait for one that could not be made. */
static void *member_main(void *argument)
{
	struct member *m = argument;
	int begun;
	while (!(begun = atomic_load(&m->team->begun)))
		sched_yield();
	if (begun < 0)
		return NULL;
	pin_thread(m->index);
	memset(m->memory, 0, m->team->bytes);
	measure_rates(m);
	return NULL;
}

/* The members block all signals, which are left to the host's own threads. */
static bool run_team(struct team *c, char *memory)
{
	struct member member[c->threads];
	double creation[2 * CREATIONS];
	sigset_t all_signals, before;
	int made = 0;
	sigfillset(&all_signals);
	pthread_sigmask(SIG_SETMASK, &all_signals, &before);
	if (c->threads > 1)
		measure_creations(creation);
	for (; made < c->threads; made++) {
		member[made] = (struct member){.team = c, .index = made, .memory = memory + made * c->bytes};
		if (pthread_create(&member[made].thread, NULL, member_main, &member[made]))
			break;
	}
	bool all = made == c->threads;
	atomic_store(&c->begun, all ? 1 : -1);
	while (made > 0)
		pthread_join(member[--made].thread, NULL);
	if (all && c->threads > 1) {
		measure_creations(creation + CREATIONS);
		c->found->create = undisturbed_start(creation, 2 * CREATIONS);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return all;
}

/* How many working sets there are: powers of two, of which each thread has its own, all within `most` bytes.
 */
static int sets_of(size_t most, int threads)
{
	int sets = 0;
	while (sets < MACHINE_SETS && ((size_t)MACHINE_LEAST << sets) * threads <= most)
		sets++;
	return sets;
}

bool machine_measure(struct machine *found, enum target_id target, int threads, size_t memory, const size_t *tile_sets)
{
	enum { HUGE = 2 << 20 };
	static const char *const names[] = {
#define NAME(id, name, ...) [TARGET_##id] = name,
	    EACH_TARGET(NAME)
#undef NAME
	};
	const struct loops *loops = machine_find_loops(target);
	if (!loops)
		return false;
	struct team c = {.loops = *loops, .threads = threads, .found = found, .sets = tile_sets};
	*found = (struct machine){.vector = names[loops->target], .threads = threads};
	found->sets = sets_of(memory, threads);
	if (threads < 1 || !found->sets)
		return false;
	c.bytes = (size_t)MACHINE_LEAST << (found->sets - 1);
	for (int cache = 0; tile_sets && cache < TARGET_CACHES; cache++)
		if (tile_sets[cache] > c.bytes)
			return false;
	size_t bytes = c.bytes * threads + HUGE;
	char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return false;
	char *aligned = all + (-(uintptr_t)all & (HUGE - 1));
	c.memory = aligned;
	madvise(aligned, c.bytes * threads, MADV_HUGEPAGE);
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.bell, NULL);
	bool done = run_team(&c, aligned);
	pthread_cond_destroy(&c.bell);
	pthread_mutex_destroy(&c.lock);
	munmap(all, bytes);
	return done;
}

/* --- what was found --- */

void machine_merge(struct machine *m, const struct machine *other)
{
	if (at_full_speed(other->peak, m->peak))
		m->barrier =
		    at_full_speed(m->peak, other->peak) ? fmin(m->barrier, other->barrier) : other->barrier;
	m->peak = fmax(m->peak, other->peak);
	m->exchange = fmax(m->exchange, other->exchange);
	for (int set = 0; set < m->sets; set++)
		m->bandwidth[set] = fmax(m->bandwidth[set], other->bandwidth[set]);
}

double machine_bandwidth(const struct machine *m, double bytes)
{
	double at = log2(fmax(bytes, MACHINE_LEAST) / MACHINE_LEAST);
	int set = fmin(at, m->sets - 1);
	if (set == m->sets - 1)
		return m->bandwidth[set];
	double fraction = at - set;
	return (1 - fraction) * m->bandwidth[set] + fraction * m->bandwidth[set + 1];
}
