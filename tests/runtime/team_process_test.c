/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The team in its process: forks, the host's OpenMP, processors that threads are bound to, the environment, memory for
 * stacks. */
#include "tests/runtime/crew_work.h"
#include "tests/sanitizers.h"
#include "tests/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- forks --- */

static atomic_bool held;

/* Threads that begin allocate, and a sanitizer's heap does not survive a fork meanwhile: the caller says when it has begun. */
static void *hold_team(void *team)
{
	while (!atomic_load(&((struct rt_team *)team)->closed)) {
		enter_and_run(team, 1);
		atomic_store(&held, true);
	}
	return NULL;
}

static int use_in_child(struct rt_team *t)
{
	struct rt_team own;
	alarm(20);
	bool good = !rt_team_enter(t, MUCH);
	rt_team_stop(t);
	rt_team_stop(t);
	good &= !rt_team_enter(t, MUCH);
	rt_team_init(&own, &allocator_default, 2);
	int jobs = RACES_SOUGHT ? 10 : enter_and_run(&own, 10); /* the tool has no threads after a fork */
	if (!good || jobs != 10)
		fprintf(stderr, "# a child: kept out %d, %d of 10 jobs, error %d\n", good, jobs, rt_team_error(&own));
	rt_team_stop(&own);
	return !good || jobs != 10;
}

static void test_fork(void)
{
	struct rt_team t;
	pthread_t caller;
	bool good = true;
	rt_team_init(&t, &allocator_default, 3);
	good &= enter_and_run(&t, 1) == 1;
	pthread_create(&caller, NULL, hold_team, &t);
	while (!atomic_load(&held))
		usleep(100);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(use_in_child(&t));
		good &= ends_well(child);
		usleep(100 * i);
	}
	rt_team_stop(&t);
	pthread_join(caller, NULL);
	tap_ok(good, "children cannot enter, stop without waiting, and have teams of their own");
}

/* --- what surrounds it --- */

/* The host's own regions around the callers, and in the thread that made the team. */
static void test_host_regions(void)
{
	struct rt_team t;
	int jobs = 0;
	rt_team_init(&t, &allocator_default, 3);
	for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(3) reduction(+ : jobs)
		jobs += enter_and_run(&t, 20);
		jobs += enter_and_run(&t, 1);
	}
	rt_team_stop(&t);
	tap_ok(jobs >= 20, "callers inside of the host's parallel regions: %d jobs", jobs);
}

static cpu_set_t seen[MAX_CHUNKS];
static atomic_int met;

/* Ends when all chunks have begun, so that each is on the thread that it belongs to; or after a while. */
static int look_at_processors(void *context, int item, int chunk, int chunks)
{
	(void)context, (void)item;
	sched_getaffinity(0, sizeof seen[chunk], &seen[chunk]);
	atomic_fetch_add(&met, 1);
	for (int i = 0; i < 5000 && atomic_load(&met) < chunks; i++)
		usleep(1000);
	return 0;
}

static void *call_pinned(void *team)
{
	cpu_set_t first;
	int cpu = 0;
	sched_getaffinity(0, sizeof first, &first);
	while (!CPU_ISSET(cpu, &first))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	sched_setaffinity(0, sizeof first, &first);
	if (rt_team_enter(team, MUCH)) {
		run_items(team, look_at_processors, NULL, 1);
		rt_team_leave(team);
	}
	return NULL;
}

static void test_pinned(void)
{
	struct rt_team t;
	pthread_t caller;
	cpu_set_t process;
	sched_getaffinity(getpid(), sizeof process, &process);
	rt_team_init(&t, &allocator_default, 3);
	pthread_create(&caller, NULL, call_pinned, &t);
	pthread_join(caller, NULL);
	rt_team_stop(&t);
	tap_ok(CPU_COUNT(&seen[0]) == 1 && CPU_EQUAL(&seen[1], &process) && CPU_EQUAL(&seen[2], &process),
	       "workers may run where the process may, wherever their maker is bound");
}

/* Chunk 0 is the caller's own. */
static void test_each_pinned(void)
{
	struct rt_team t;
	cpu_set_t process;
	bool good = true;
	sched_getaffinity(0, sizeof process, &process);
	rt_team_init(&t, &allocator_default, 3);
	t.pinned = true;
	atomic_store(&met, 0);
	if (rt_team_enter(&t, MUCH)) {
		run_items(&t, look_at_processors, NULL, 1);
		rt_team_leave(&t);
	}
	rt_team_stop(&t);
	for (int chunk = 1; chunk < 3; chunk++)
		good &=
		    CPU_COUNT(&seen[chunk]) == 1 && CPU_ISSET(nth_processor(&process, chunk), &seen[chunk]);
	tap_ok(good && CPU_EQUAL(&seen[0], &process), "pinned workers have a processor each, callers stay");
}

static void *make_and_call(void *process)
{
	struct rt_team t;
	sched_setaffinity(0, sizeof(cpu_set_t), process);
	rt_team_init(&t, &allocator_default, 3);
	atomic_store(&met, 0);
	call_pinned(&t);
	rt_team_stop(&t);
	return NULL;
}

/* The affinity of the first thread of the process does not matter. */
static void test_pinned_main(void)
{
	cpu_set_t process, first;
	pthread_t maker;
	int cpu = 0;
	sched_getaffinity(0, sizeof process, &process);
	while (!CPU_ISSET(cpu, &process))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	sched_setaffinity(0, sizeof first, &first);
	pthread_create(&maker, NULL, make_and_call, &process);
	pthread_join(maker, NULL);
	sched_setaffinity(0, sizeof process, &process);
	if (CPU_COUNT(&process) == 1)
		tap_skip("one processor", "workers may run where the maker of the team might");
	else
		tap_ok(CPU_EQUAL(&seen[1], &process) && CPU_EQUAL(&seen[2], &process),
		       "workers may run where the maker of the team might");
}

/* Enters on one processor, when the worker sleeps; whether the worker may run everywhere else, and only there. */
static bool is_kept_off(struct rt_team *t, int cpu)
{
	cpu_set_t one, others = *(cpu_set_t *)t->processors.set;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CPU_CLR(cpu, &others);
	sched_setaffinity(0, sizeof one, &one);
	usleep(20000);
	atomic_store(&met, 0);
	if (!rt_team_enter(t, MUCH))
		return false;
	run_items(t, look_at_processors, NULL, 1);
	rt_team_leave(t);
	return CPU_EQUAL(&seen[1], &others);
}

/* A worker that somebody else binds stays there. */
static void test_apart(void)
{
	struct rt_team t;
	cpu_set_t process;
	sched_getaffinity(0, sizeof process, &process);
	if (CPU_COUNT(&process) < 2) {
		tap_skip("one processor", "workers are kept off the caller's processor");
		return;
	}
	rt_team_init(&t, &allocator_default, 2);
	enter_and_run(&t, 1);
	bool apart = is_kept_off(&t, nth_processor(&process, 0)) && is_kept_off(&t, nth_processor(&process, 1)) &&
		     is_kept_off(&t, nth_processor(&process, 0));
	tap_ok(apart, "workers are kept off the caller's processor");
	cpu_set_t bound = process;
	CPU_CLR(nth_processor(&process, 1), &bound);
	sched_setaffinity(atomic_load(&t.crew->progress[1].thread), sizeof bound, &bound);
	is_kept_off(&t, nth_processor(&process, 1));
	is_kept_off(&t, nth_processor(&process, 0));
	tap_ok(CPU_EQUAL(&seen[1], &bound), "one that somebody else has bound stays where it is");
	rt_team_stop(&t);
	sched_setaffinity(0, sizeof process, &process);
}

/* What the library's OpenMP reads when a process begins. */
static void test_environment(const char *program, const char *mode, const char *name, const char *value)
{
	pid_t child = fork();
	if (child == 0) {
		setenv(name, value, 1);
		execl(program, program, mode, NULL);
		_exit(1);
	}
	tap_ok(ends_well(child), "%s: %s=%s", mode, name, value);
}

/* If there is no memory for stacks, callers run alone and the process goes on. */
static int run_alone(void)
{
	struct rt_team t;
	struct rlimit space;
	getrlimit(RLIMIT_AS, &space);
	space.rlim_cur = (rlim_t)6000000 << 10;
	alarm(60);
	rt_team_init(&t, &allocator_default, 4);
	bool alone = setrlimit(RLIMIT_AS, &space) == 0 && !rt_team_enter(&t, MUCH);
	int error = rt_team_error(&t);
	rt_team_stop(&t);
	return alone && error == EAGAIN ? 0 : 1;
}

static int run_jobs(void)
{
	struct rt_team t;
	alarm(60);
	rt_team_init(&t, &allocator_default, 4);
	int jobs = enter_and_run(&t, 100);
	rt_team_stop(&t);
	return jobs == 100 ? 0 : 1;
}

/* --- memory for stacks --- */

static long process_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f && fscanf(f, "%ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* With address space for so many stacks of threads. */
static int run_short(int threads, int stacks)
{
	struct rt_team t;
	struct rlimit stack, space;
	pthread_attr_t standard;
	size_t bytes;
	pthread_getattr_default_np(&standard);
	pthread_attr_getstacksize(&standard, &bytes);
	stack.rlim_cur = bytes;
	getrlimit(RLIMIT_AS, &space);
	space.rlim_cur = process_bytes() + stacks * stack.rlim_cur + stack.rlim_cur / 2;
	rt_team_init(&t, &allocator_default, threads);
	if (setrlimit(RLIMIT_AS, &space) != 0)
		return 1;
	bool alone = !rt_team_enter(&t, MUCH);
	int error = rt_team_error(&t);
	bool once = !rt_team_error(&t) && !rt_team_enter(&t, MUCH) && !rt_team_error(&t);
	rt_team_stop(&t);
	return alone && error == EAGAIN && once ? 0 : 1;
}

static void test_short(int threads, int stacks)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		_exit(run_short(threads, stacks));
	}
	tap_ok(ends_well(child), "%d threads, memory for %d more: callers are alone, and it is said once",
	       threads, stacks);
}

static void test_stacks(const char *program)
{
	static const char *const variables[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
	static const char *const large[] = {"200000G",
					    "3G",
					    " 3000 m ",
					    "3000000",
					    "3221225472B",
					    "99999999999999G",
					    "99999999999999999999999"};
	static const char *const usable[] = {"64", "1M", "4k", "none", "3GB", ""};
	for (int v = 0; v < 2; v++)
		for (size_t i = 0; i < sizeof large / sizeof *large; i++)
			if (SHADOWED)
				tap_skip("a sanitizer needs the address space", "%s=%s", variables[v],
					 large[i]);
			else
				test_environment(program, "alone", variables[v], large[i]);
	for (size_t i = 0; i < sizeof usable / sizeof *usable; i++)
		test_environment(program, "jobs", "OMP_STACKSIZE", usable[i]);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return strcmp(argv[1], "alone") == 0 ? run_alone() : run_jobs();
	/* first, while there are no stacks of former threads to be used again */
	for (int stacks = 0; stacks < 3; stacks++)
		if (SHADOWED)
			tap_skip("a sanitizer needs the address space", "memory for %d threads", stacks);
		else
			test_short(4, stacks);
	test_fork();
	if (REGIONS_MISTAKEN)
		tap_skip("the sanitizer does not see inside of OpenMP", "callers inside of parallel regions");
	else
		test_host_regions();
	test_pinned();
	test_pinned_main();
	test_each_pinned();
	test_apart();
	test_environment(argv[0], "jobs", "OMP_NUM_THREADS", "1");
	test_environment(argv[0], "jobs", "OMP_THREAD_LIMIT", "1");
	test_environment(argv[0], "jobs", "OMP_THREAD_LIMIT", "2");
	test_environment(argv[0], "jobs", "OMP_DYNAMIC", "true");
	test_environment(argv[0], "jobs", "OMP_MAX_ACTIVE_LEVELS", "0");
	test_environment(argv[0], "jobs", "OMP_PROC_BIND", "true");
	test_environment(argv[0], "jobs", "OMP_PLACES", "{0}");
	test_environment(argv[0], "jobs", "OMP_WAIT_POLICY", "active");
	test_stacks(argv[0]);
	return tap_done();
}
