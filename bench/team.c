/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* team [THREADS] - what a team of threads costs, and from which size on a run gains by it.
 *
 *   turn       what one of many turns of a plan costs, less its parts, each of which takes two microseconds
 *   lines      the same, when each part writes sixteen lines of memory that the others then read
 *   watching   what a plan of one turn costs right after another one, the members have not gone to sleep: its
 *              time less that of its parts
 *   asleep     an empty plan after a pause: they have
 *   rousing    what a caller pays who enters then, and has no plan for them yet
 *   awake      after how long they are there
 *   break-even a turn of N operations (one fused multiply-add is two), alone and shared out
 *
 * In microseconds: the least and the median of many turns.  The constants of runtime/shared.h come from
 * here. */
#include "bench/timing.h"
#include "runtime/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 400, ASLEEP = 1000, CHAINS = 12, LANES = 8, PLANNED = 16, PARTS = 16, LINES = 16, LINE = 64 };

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static double microseconds(void)
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

static struct summary summarize(double *sample, int n)
{
	qsort(sample, n, sizeof *sample, ascending);
	return (struct summary){sample[0], sample[n / 2]};
}

/* --- what is done --- */

static int nothing(void *job, int turn, int part, int parts)
{
	(void)job, (void)turn, (void)part, (void)parts;
	return 0;
}

/* Long enough that the caller does not take over what a member was about to begin. */
static const double WORK = 2;

static int pass_time(void *job, int turn, int part, int parts)
{
	double begin = microseconds();
	(void)job, (void)turn, (void)part, (void)parts;
	while (microseconds() - begin < WORK)
		;
	return 0;
}

/* Reads what the others wrote in the turn before. */
static int pass_lines(void *job, int turn, int part, int parts)
{
	volatile char(*line)[PARTS][LINES][LINE] = job;
	for (int p = 0; p < parts; p++)
		for (int i = 0; i < LINES; i++)
			(void)line[turn % 2][p][i][0];
	for (int i = 0; i < LINES; i++)
		line[(turn + 1) % 2][part][i][0] = 1;
	return pass_time(job, turn, part, parts);
}

/* Multiply-adds in registers, shared out evenly. */
static int compute(void *operations, int turn, int part, int parts)
{
	vector sum[CHAINS] = {0}, factor = (vector){0} + 0.5f, term = (vector){0} + (float)part;
	long turns = *(long *)operations / (2L * CHAINS * LANES * parts);
	(void)turn;
	for (long i = 0; i < turns; i++) {
		__asm__ volatile("" : "+x"(factor));
		for (int c = 0; c < CHAINS; c++)
			sum[c] = sum[c] * factor + term;
	}
	__asm__ volatile("" : : "m"(sum));
	return 0;
}

/* --- measurements --- */

typedef int work(void *job, int turn, int part, int parts);

static void run_turns(struct rt_team *t, work *work, void *job, int turns)
{
	rt_team_run(t, &(struct rt_plan){work, job, turns});
}

struct situation {
	const char *name;
	double pause;
};

static double one_run(struct rt_team *t, const struct situation *s, work *work, void *job)
{
	idle(s->pause);
	double begin = microseconds();
	if (!rt_team_enter(t, 0))
		return 1e9;
	run_turns(t, work, job, 1);
	double time = microseconds() - begin;
	rt_team_leave(t);
	return time;
}

static void print(const char *name, double *sample, int n)
{
	struct summary r = summarize(sample, n);
	printf("%-12s %8.2f %8.2f\n", name, r.least, r.median);
}

static void measure_turns(struct rt_team *t, const char *name, work *work, int turns)
{
	static _Alignas(LINE) char line[2][PARTS][LINES][LINE];
	double sample[TURNS];
	if (!rt_team_enter(t, rt_rouse_operations(t)))
		exit(1);
	for (int i = 0; i < TURNS; i++) {
		double begin = microseconds();
		run_turns(t, work, line, turns);
		sample[i] = (microseconds() - begin) / turns - WORK;
	}
	rt_team_leave(t);
	print(name, sample, TURNS);
}

static void measure_asleep(struct rt_team *t, const struct situation *s)
{
	double sample[TURNS];
	for (int i = 0; i < TURNS; i++)
		sample[i] = one_run(t, s, nothing, NULL);
	print(s->name, sample, TURNS);
}

static void measure_waking(struct rt_team *t)
{
	double entered[TURNS], awake[TURNS];
	for (int i = 0; i < TURNS; i++) {
		idle(ASLEEP);
		double begin = microseconds();
		if (!rt_team_enter(t, rt_rouse_operations(t)))
			exit(1);
		entered[i] = microseconds() - begin;
		while (!rt_team_awake(t) && microseconds() - begin < ASLEEP)
			;
		awake[i] = microseconds() - begin;
		rt_team_leave(t);
	}
	print("rousing", entered, TURNS);
	print("awake", awake, TURNS);
}

/* Alone and together in turn. */
static void measure_gain(struct rt_team *t, const struct situation *s, long operations)
{
	double alone[TURNS], together[TURNS];
	for (int i = 0; i < TURNS; i++) {
		idle(s->pause);
		double begin = microseconds();
		compute(&operations, 0, 0, 1);
		alone[i] = microseconds() - begin;
		if (!s->pause)
			one_run(t, s, nothing, NULL);
		together[i] = one_run(t, s, compute, &operations);
	}
	struct summary a = summarize(alone, TURNS), b = summarize(together, TURNS);
	printf("%-12s %8ld %8.2f %8.2f %8.2f %8.2f %8.2f\n", s->name, operations, a.least, a.median, b.least,
	       b.median, a.median / b.median);
}

int main(int argc, char **argv)
{
	static const struct situation empty[] = {{"watching", 0}, {"asleep", ASLEEP}};
	struct rt_team team;
	int threads = argc > 1 ? atoi(argv[1]) : 2;
	rt_team_init(&team, &allocator_default, threads);
	double begin = microseconds();
	int parts = rt_team_enter(&team, rt_rouse_operations(&team));
	printf("%d parts, made in %.0f us\n\n%-12s %8s %8s\n", parts, microseconds() - begin, "", "least",
	       "median");
	if (!parts)
		return 1;
	rt_team_leave(&team);
	measure_turns(&team, "turn", pass_time, PLANNED);
	if (parts <= PARTS)
		measure_turns(&team, "lines", pass_lines, PLANNED);
	measure_turns(&team, "watching", pass_time, 1);
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
