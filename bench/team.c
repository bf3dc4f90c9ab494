/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* team [THREADS] - what a team of threads costs, and from which size on a run gains by it.
 *
 *   stage      one of many stages that run without a pause, less its chunks, which take two microseconds each
 *   lines      the same, when each chunk writes sixteen lines of memory that the other threads then read
 *   watching   a run of one stage right after another run, before threads go to sleep, less its chunks
 *   asleep     an empty run after a pause, in which threads have gone to sleep
 *   rousing    the caller's part of waking them, before it has work for them
 *   awake      the time until they are awake
 *   break-even a stage of N operations (a fused multiply-add counts as two), on one thread and on all
 *
 * In microseconds: the least and the median of many samples.  The constants of the runtime come from here. */
#include "bench/timing.h"
#include "runtime/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	SAMPLES = 400,
	ASLEEP = 1000,
	CHAINS = 12,
	LANES = 8,
	STAGES = 16,
	CHUNKS = 16,
	LINES = 16,
	LINE = 64
};

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static double read_microseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void pause_for(double for_microseconds)
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

/* --- work --- */

static int do_nothing(void *job, int stage, int chunk, int chunks)
{
	(void)job, (void)stage, (void)chunk, (void)chunks;
	return 0;
}

/* Microseconds of a chunk: long enough that the caller does not take over one that a thread is about to
 * begin. */
static const double WORK = 2;

static int pass_time(void *job, int stage, int chunk, int chunks)
{
	double begin = read_microseconds();
	(void)job, (void)stage, (void)chunk, (void)chunks;
	while (read_microseconds() - begin < WORK)
		;
	return 0;
}

/* Reads the lines that the other threads wrote in the stage before. */
static int pass_lines(void *job, int stage, int chunk, int chunks)
{
	volatile char(*line)[CHUNKS][LINES][LINE] = job;
	for (int c = 0; c < chunks; c++)
		for (int i = 0; i < LINES; i++)
			(void)line[stage % 2][c][i][0];
	for (int i = 0; i < LINES; i++)
		line[(stage + 1) % 2][chunk][i][0] = 1;
	return pass_time(job, stage, chunk, chunks);
}

/* Multiply-adds in registers, divided evenly among the threads. */
static int multiply_add(void *operations, int stage, int chunk, int chunks)
{
	vector sum[CHAINS] = {0}, factor = (vector){0} + 0.5f, term = (vector){0} + (float)chunk;
	long iterations = *(long *)operations / (2L * CHAINS * LANES * chunks);
	(void)stage;
	for (long i = 0; i < iterations; i++) {
		__asm__ volatile("" : "+x"(factor));
		for (int c = 0; c < CHAINS; c++)
			sum[c] = sum[c] * factor + term;
	}
	__asm__ volatile("" : : "m"(sum));
	return 0;
}

/* --- measurements --- */

typedef int work(void *job, int stage, int chunk, int chunks);

static void run_stages(struct rt_team *t, work *work, void *job, int stages)
{
	rt_team_run(t, &(struct rt_plan){work, job, stages});
}

struct situation {
	const char *name;
	double pause;
};

static double one_run(struct rt_team *t, const struct situation *s, work *work, void *job)
{
	pause_for(s->pause);
	double begin = read_microseconds();
	if (!rt_team_enter(t, 0))
		return 1e9;
	run_stages(t, work, job, 1);
	double time = read_microseconds() - begin;
	rt_team_leave(t);
	return time;
}

static void print_sample(const char *name, double *sample, int n)
{
	struct summary r = summarize_sample(sample, n);
	printf("%-12s %8.2f %8.2f\n", name, r.least, r.median);
}

static void measure_stages(struct rt_team *t, const char *name, work *work, int stages)
{
	static _Alignas(LINE) char line[2][CHUNKS][LINES][LINE];
	double sample[SAMPLES];
	if (!rt_team_enter(t, rt_rouse_operations(t)))
		exit(1);
	for (int i = 0; i < SAMPLES; i++) {
		double begin = read_microseconds();
		run_stages(t, work, line, stages);
		sample[i] = (read_microseconds() - begin) / stages - WORK;
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
		pause_for(ASLEEP);
		double begin = read_microseconds();
		if (!rt_team_enter(t, rt_rouse_operations(t)))
			exit(1);
		entered[i] = read_microseconds() - begin;
		while (!rt_team_awake(t) && read_microseconds() - begin < ASLEEP)
			;
		awake[i] = read_microseconds() - begin;
		rt_team_leave(t);
	}
	print_sample("rousing", entered, SAMPLES);
	print_sample("awake", awake, SAMPLES);
}

/* Alternates between one thread and all of them. */
static void measure_gain(struct rt_team *t, const struct situation *s, long operations)
{
	double alone[SAMPLES], together[SAMPLES];
	for (int i = 0; i < SAMPLES; i++) {
		pause_for(s->pause);
		double begin = read_microseconds();
		multiply_add(&operations, 0, 0, 1);
		alone[i] = read_microseconds() - begin;
		if (!s->pause)
			one_run(t, s, do_nothing, NULL);
		together[i] = one_run(t, s, multiply_add, &operations);
	}
	struct summary a = summarize_sample(alone, SAMPLES), b = summarize_sample(together, SAMPLES);
	printf("%-12s %8ld %8.2f %8.2f %8.2f %8.2f %8.2f\n", s->name, operations, a.least, a.median, b.least,
	       b.median, a.median / b.median);
}

int main(int argc, char **argv)
{
	static const struct situation empty[] = {{"watching", 0}, {"asleep", ASLEEP}};
	struct rt_team team;
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	rt_team_init(&team, &allocator_default, threads);
	double begin = read_microseconds();
	int chunks = rt_team_enter(&team, rt_rouse_operations(&team));
	printf("%d threads, made in %.0f us\n\n%-12s %8s %8s\n", chunks, read_microseconds() - begin, "",
	       "least", "median");
	if (!chunks)
		return 1;
	rt_team_leave(&team);
	measure_stages(&team, "stage", pass_time, STAGES);
	if (chunks <= CHUNKS)
		measure_stages(&team, "lines", pass_lines, STAGES);
	measure_stages(&team, "watching", pass_time, 1);
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
