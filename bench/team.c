/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* team [THREADS] - what a team of threads costs, and from which size on a run gains by it.
 *
 *   item       the cost of one of many items of work, less its chunks, each of which takes two microseconds
 *   lines      the same, when each chunk writes sixteen cache lines that the others then read
 *   spinning   the cost of work of one item right after other work, before the workers sleep: its time less
 *              that of its chunks
 *   asleep     empty work after a pause in which they have gone to sleep
 *   waking     the cost of entering then, without work for them yet
 *   awake      the time until all are awake
 *   break-even an item of N operations (one fused multiply-add is two), alone and divided
 *
 * In microseconds: the least and the median of many samples.  The constants of runtime/gate.h and crew.c come
 * from here. */
#include "bench/timing.h"
#include "runtime/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SAMPLES = 400, ASLEEP = 1000, CHAINS = 12, LANES = 8, ITEMS = 16, CHUNKS = 16, LINES = 16, LINE = 64 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static double read_microseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void idle(double for_microseconds)
{
	struct timespec t = {0, (long)(for_microseconds * 1000)};
	if (for_microseconds > 0)
		nanosleep(&t, NULL);
}

/* --- samples --- */

struct summary {
	double least, median;
};

static struct summary summarize_sample(double *sample, int n)
{
	qsort(sample, n, sizeof *sample, compare_doubles);
	return (struct summary){sample[0], sample[n / 2]};
}

/* --- what is done --- */

static int do_nothing(void *context, int item, int chunk, int chunks)
{
	(void)context, (void)item, (void)chunk, (void)chunks;
	return 0;
}

/* Long enough that the caller does not take over what a worker was about to begin. */
static const double WORK = 2;

static int pass_time(void *context, int item, int chunk, int chunks)
{
	double begin = read_microseconds();
	(void)context, (void)item, (void)chunk, (void)chunks;
	while (read_microseconds() - begin < WORK)
		;
	return 0;
}

/* Reads what the others wrote in the item before. */
static int pass_lines(void *context, int item, int chunk, int chunks)
{
	volatile char(*line)[CHUNKS][LINES][LINE] = context;
	for (int p = 0; p < chunks; p++)
		for (int i = 0; i < LINES; i++)
			(void)line[item % 2][p][i][0];
	for (int i = 0; i < LINES; i++)
		line[(item + 1) % 2][chunk][i][0] = 1;
	return pass_time(context, item, chunk, chunks);
}

/* Multiply-adds in registers, divided evenly. */
static int compute(void *operations, int item, int chunk, int chunks)
{
	vector sum[CHAINS] = {0}, factor = (vector){0} + 0.5f, term = (vector){0} + (float)chunk;
	long iterations = *(long *)operations / (2L * CHAINS * LANES * chunks);
	(void)item;
	for (long i = 0; i < iterations; i++) {
		__asm__ volatile("" : "+x"(factor));
		for (int c = 0; c < CHAINS; c++)
			sum[c] = sum[c] * factor + term;
	}
	__asm__ volatile("" : : "m"(sum));
	return 0;
}

/* --- measurements --- */

typedef int work(void *context, int item, int chunk, int chunks);

static void run_items(struct rt_team *t, work *run, void *context, int items)
{
	rt_team_run(t, &(struct rt_work){run, context, items});
}

struct situation {
	const char *name;
	double pause;
};

static double one_run(struct rt_team *t, const struct situation *s, work *run, void *context)
{
	idle(s->pause);
	double begin = read_microseconds();
	if (!rt_team_enter(t, 0))
		return 1e9;
	run_items(t, run, context, 1);
	double time = read_microseconds() - begin;
	rt_team_leave(t);
	return time;
}

static void print_sample(const char *name, double *sample, int n)
{
	struct summary r = summarize_sample(sample, n);
	printf("%-12s %8.2f %8.2f\n", name, r.least, r.median);
}

static void measure_items(struct rt_team *t, const char *name, work *run, int items)
{
	static _Alignas(LINE) char line[2][CHUNKS][LINES][LINE];
	double sample[SAMPLES];
	if (!rt_team_enter(t, rt_wake_operations(t)))
		exit(1);
	for (int i = 0; i < SAMPLES; i++) {
		double begin = read_microseconds();
		run_items(t, run, line, items);
		sample[i] = (read_microseconds() - begin) / items - WORK;
	}
	rt_team_leave(t);
	print_sample(name, sample, SAMPLES);
}

static void measure_asleep(struct rt_team *t, const struct situation *s)
{
	double sample[SAMPLES];
	for (int i = 0; i < SAMPLES; i++)
		sample[i] = one_run(t, s, do_nothing, NULL);
	print_sample(s->name, sample, SAMPLES);
}

static void measure_waking(struct rt_team *t)
{
	double entered[SAMPLES], awake[SAMPLES];
	for (int i = 0; i < SAMPLES; i++) {
		idle(ASLEEP);
		double begin = read_microseconds();
		if (!rt_team_enter(t, rt_wake_operations(t)))
			exit(1);
		entered[i] = read_microseconds() - begin;
		while (!rt_team_awake(t) && read_microseconds() - begin < ASLEEP)
			;
		awake[i] = read_microseconds() - begin;
		rt_team_leave(t);
	}
	print_sample("waking", entered, SAMPLES);
	print_sample("awake", awake, SAMPLES);
}

/* Alternates between alone and together. */
static void measure_gain(struct rt_team *t, const struct situation *s, long operations)
{
	double alone[SAMPLES], together[SAMPLES];
	for (int i = 0; i < SAMPLES; i++) {
		idle(s->pause);
		double begin = read_microseconds();
		compute(&operations, 0, 0, 1);
		alone[i] = read_microseconds() - begin;
		if (!s->pause)
			one_run(t, s, do_nothing, NULL);
		together[i] = one_run(t, s, compute, &operations);
	}
	struct summary a = summarize_sample(alone, SAMPLES), b = summarize_sample(together, SAMPLES);
	printf("%-12s %8ld %8.2f %8.2f %8.2f %8.2f %8.2f\n", s->name, operations, a.least, a.median, b.least,
	       b.median, a.median / b.median);
}

int main(int argc, char **argv)
{
	static const struct situation empty[] = {{"spinning", 0}, {"asleep", ASLEEP}};
	struct rt_team team;
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	rt_team_init(&team, &allocator_default, threads);
	double begin = read_microseconds();
	int entered = rt_team_enter(&team, rt_make_operations(&team));
	printf("%d threads, made in %.0f us\n\n%-12s %8s %8s\n", entered, read_microseconds() - begin, "",
	       "least", "median");
	if (!entered)
		return 1;
	rt_team_leave(&team);
	measure_items(&team, "item", pass_time, ITEMS);
	if (entered <= CHUNKS)
		measure_items(&team, "lines", pass_lines, ITEMS);
	measure_items(&team, "spinning", pass_time, 1);
	measure_asleep(&team, &empty[1]);
	measure_waking(&team);
	printf("\n%-12s %8s %8s %8s %8s %8s %8s\n", "", "operations", "alone", "median", "together", "median",
	       "times");
	for (int i = 0; i < 2; i++)
		for (long operations = 64 << 10; operations <= 16 << 20; operations *= 2)
			measure_gain(&team, &empty[i], operations);
	rt_team_stop(&team);
	return 0;
}
