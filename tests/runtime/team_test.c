/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The team: work items and their chunks, who gets it, what surrounds it, how it ends. */
#include "runtime/crew.h"
#include "runtime/shared.h"
#include "tests/sanitizers.h"
#include "tests/tap.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_CHUNKS = 8, CALLERS = 64 };

/* Operations of a run that is longer than any pause of the team. */
static const double MUCH = 1e15;

/* --- work items --- */

typedef int work(void *context, int item, int chunk, int chunks);

static void run_items(struct rt_team *t, work *run, void *context, int items)
{
	rt_team_run(t, &(struct rt_work){run, context, items});
}

/* Plain integers: the team alone keeps apart who writes and who reads. */
struct count {
	int calls[MAX_CHUNKS], threads;
};

static int count_chunk(void *context, int item, int chunk, int chunks)
{
	struct count *c = context;
	(void)item;
	c->calls[chunk]++;
	if (chunk == 0)
		c->threads = chunks;
	return 0;
}

/* Whether each of `chunks` chunks was called so often. */
static bool is_counted(const struct count *c, int chunks, int calls)
{
	for (int p = 0; p < MAX_CHUNKS; p++)
		if (c->calls[p] != (p < chunks ? calls : 0))
			return false;
	return c->threads == chunks;
}

/* Enters, runs work and leaves, or finds the team busy, some times; returns how often the work was right. */
static int enter_and_run(struct rt_team *t, int runs)
{
	int jobs = 0;
	for (int i = 0; i < runs; i++) {
		struct count c = {0};
		int threads = rt_team_enter(t, MUCH);
		if (!threads)
			continue;
		run_items(t, count_chunk, &c, 3);
		rt_team_leave(t);
		jobs += is_counted(&c, threads, 3);
	}
	return jobs;
}

static void test_items(int threads)
{
	struct rt_team t;
	struct count c = {0};
	enum { WORKS = 3000 };
	int items = 0;
	rt_team_init(&t, &allocator_default, threads);
	int entered = rt_team_enter(&t, MUCH);
	tap_ok(entered == (threads > 1 ? threads : 0), "%d threads: %d entered", threads, entered);
	for (int i = 0; entered && i < WORKS; i++) {
		items += 1 + i % 3;
		run_items(&t, count_chunk, &c, 1 + i % 3);
		if (i % 500 == 0)
			usleep(1000); /* the workers fall asleep */
	}
	if (entered) {
		tap_ok(is_counted(&c, entered, items), "%d threads: every item called every chunk once",
		       threads);
		rt_team_leave(&t);
	}
	rt_team_stop(&t);
	tap_ok(!rt_team_enter(&t, MUCH), "%d threads: stopped, the team cannot be entered", threads);
	rt_team_stop(&t);
}

/* --- lockstep --- */

enum { ITEMS = 60 };

/* What each chunk writes in an item depends on what all wrote in the one before. */
struct lockstep {
	const unsigned char *alone; /* by item: how many that follow are the caller's alone */
	unsigned value[2][MAX_CHUNKS];
	int threads, pause; /* of the team; items from one pause to the next, 0 = none */
	bool wrong;	    /* an item of the caller's alone was another chunk's */
};

static unsigned mix_values(const unsigned *values, int chunks, int chunk)
{
	unsigned sum = 2654435761u * (chunk + 1);
	for (int i = 0; i < chunks; i++)
		sum = (sum ^ values[i]) * 16777619u;
	return sum;
}

static int step_on(void *context, int item, int chunk, int chunks)
{
	struct lockstep *l = context;
	const unsigned *from = l->value[item % 2];
	unsigned *to = l->value[(item + 1) % 2];
	bool alone = item && chunks == 1;
	if (l->pause && chunk == item % l->threads && item % l->pause == 0)
		usleep(item % 7 * 100);
	for (int i = chunk; i < (alone ? l->threads : chunk + 1); i++)
		to[i] = mix_values(from, l->threads, i);
	if (alone && chunk)
		l->wrong = true;
	return l->alone[item];
}

/* Items of the caller's alone are never the first. */
static void choose_alone(unsigned char *alone)
{
	int behind;
	for (int item = 0; item < ITEMS; item = behind) {
		int most = ITEMS - 1 - item;
		alone[item] = rand() % 3 ? 0 : rand() % 4;
		alone[item] = alone[item] > most ? most : alone[item];
		for (behind = item + 1; behind <= item + alone[item]; behind++)
			alone[behind] = 0;
	}
}

static bool same_alone(struct lockstep *l, unsigned *expected, int chunks)
{
	for (int item = 0; item < ITEMS; item++)
		for (int i = 0; i < chunks; i++)
			expected[(item + 1) % 2 * MAX_CHUNKS + i] =
			    mix_values(&expected[item % 2 * MAX_CHUNKS], chunks, i);
	return !l->wrong && !memcmp(expected, l->value, sizeof l->value);
}

static void test_lockstep(int threads, int works, int pause)
{
	struct rt_team t;
	unsigned char alone[ITEMS];
	unsigned expected[2][MAX_CHUNKS] = {{0}};
	struct lockstep l = {.alone = alone};
	bool good = true;
	rt_team_init(&t, &allocator_default, threads);
	l.threads = rt_team_enter(&t, MUCH);
	for (int i = 0; good && i < works; i++) {
		choose_alone(alone);
		l.pause = pause ? 3 + rand() % pause : 0;
		run_items(&t, step_on, &l, ITEMS);
		good = same_alone(&l, expected[0], l.threads);
	}
	tap_ok(l.threads == threads && good, "%d threads%s: each item after all of the one before", threads,
	       pause ? " that pause" : "");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

struct encounter {
	struct rt_team *team;
	bool alone, nested;
};

static void *meet_busy(void *encounter)
{
	struct encounter *e = encounter;
	e->alone = rt_team_enter(e->team, MUCH) == 0;
	return NULL;
}

static int enter_again(void *encounter, int item, int chunk, int chunks)
{
	struct encounter *e = encounter;
	(void)item, (void)chunks;
	if (chunk == 0)
		e->nested = rt_team_enter(e->team, MUCH) == 0;
	return 0;
}

static void test_busy(void)
{
	struct rt_team t;
	struct encounter e = {&t, false, false};
	pthread_t other;
	rt_team_init(&t, &allocator_default, 2);
	bool in = rt_team_enter(&t, MUCH) == 2;
	pthread_create(&other, NULL, meet_busy, &e);
	pthread_join(other, NULL);
	tap_ok(in && e.alone, "who finds the team busy is alone");
	run_items(&t, enter_again, &e, 1);
	tap_ok(e.nested, "so is who has it already");
	rt_team_leave(&t);
	tap_ok(rt_team_enter(&t, MUCH) == 2, "after it was left it is free");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

/* A little is not worth a thread; what is missed adds up unless it lies far apart. */
static void test_when(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	const double third = rt_make_operations(&t) / 3 + 1;
	tap_ok(!rt_team_enter(&t, third) && !t.crew, "for a little no thread is made");
	t.left -= 1000000000;
	tap_ok(!rt_team_enter(&t, third) && !rt_team_enter(&t, third) && !t.crew,
	       "nor for what comes a second later");
	tap_ok(rt_team_enter(&t, third) == 2, "but for as much at once");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

/* --- workers that lose their processors --- */

/* Which processor is the n-th of a set, counted through again and again. */
static int nth_processor(const cpu_set_t *set, int n)
{
	int cpu = 0;
	for (n %= CPU_COUNT(set); !CPU_ISSET(cpu, set) || n-- > 0;)
		cpu++;
	return cpu;
}

/* A worker that loses its processor in a chunk: the caller's chunk ends at once. */
static int delay_worker(void *begun, int item, int chunk, int chunks)
{
	(void)item, (void)chunks;
	atomic_int *worker = begun;
	if (chunk == 1)
		atomic_store(worker, 1), usleep(10000);
	while (!atomic_load(worker))
		sched_yield();
	return 0;
}

/* How long callers are alone at least after the first of such runs that took longer than the caller alone, when
 * workers have helped for so long before [ns]; -1 = there was none.  On a busy machine the caller may lose its
 * processor as well. */
static int64_t pause_after_delay(struct rt_team *t, int64_t worked)
{
	t->resume = 0;
	for (int i = 0; i < 100 && !t->resume; i++) {
		atomic_int begun = 0;
		t->worked = worked;
		if (!rt_team_enter(t, MUCH))
			return -1;
		run_items(t, delay_worker, &begun, 1);
		rt_team_leave(t);
	}
	return t->resume ? t->pause : -1;
}

static void test_delayed(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	int64_t first = pause_after_delay(&t, 0), second = pause_after_delay(&t, 0), last = second;
	tap_ok(first > 0 && second > first, "callers do without a worker that delays runs, each time for longer");
	for (int i = 0; i < 6; i++)
		last = pause_after_delay(&t, 0);
	tap_ok(last > second && last <= 16 * t.lost, "but no longer than 16 such runs (%lld of %lld ns)",
	       (long long)last, (long long)t.lost);
	tap_ok(pause_after_delay(&t, INT64_MAX / 2) == 0, "and for no time when that is rare");
	rt_team_stop(&t);
}

/* Enters with work that is worth a thread, but nothing beside what it lost. */
static bool enters_soon(struct rt_team *t, int tries)
{
	bool entered = false;
	for (int i = 0; !entered && i < tries; i++) {
		entered = rt_team_enter(t, rt_wake_operations(t));
		usleep(entered ? 0 : 1000);
	}
	if (entered)
		rt_team_leave(t);
	return entered;
}

static void wait_until_asleep(struct rt_team *t)
{
	while (rt_team_awake(t))
		usleep(1000);
}

/* Workers see while they wait whether they have their processors. */
static void test_return(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	int64_t paused = pause_after_delay(&t, 0), never = INT64_MAX / 2;
	wait_until_asleep(&t);
	_Atomic int64_t *kept = &t.crew->progress[1].kept;
	t.resume = t.look = never;
	atomic_store(kept, 0);
	tap_ok(paused >= 0 && !enters_soon(&t, 3), "a worker that lost its processor is not used before its time");
	t.resume = rt_nanoseconds();
	tap_ok(!enters_soon(&t, 3), "nor then, unless it has seen that it has its processor");
	t.look = 0;
	tap_ok(enters_soon(&t, 10000) && !t.lost && atomic_load(kept) > t.resume, "woken to look, it sees that");
	pause_after_delay(&t, 0);
	wait_until_asleep(&t);
	atomic_store(kept, never);
	tap_ok(enters_soon(&t, 1000), "and is used as soon as it has");
	pause_after_delay(&t, 0);
	t.resume = t.look = never;
	tap_ok(rt_team_enter(&t, MUCH) == 2, "a run that takes much longer than the delay does not wait for that");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

/* --- what a waiting thread sees of its processor --- */

struct waiting {
	struct rt_gate gate;
	_Atomic int64_t kept;
	cpu_set_t on;
	atomic_bool end;
};

static void *wait_on_processor(void *waiting)
{
	struct waiting *w = waiting;
	sched_setaffinity(0, sizeof w->on, &w->on);
	rt_gate_wait(&w->gate, 1, false, &w->kept);
	return NULL;
}

static void *compute_on_processor(void *waiting)
{
	struct waiting *w = waiting;
	sched_setaffinity(0, sizeof w->on, &w->on);
	while (!atomic_load(&w->end))
		;
	return NULL;
}

/* Whether a thread that waits until it sleeps sees that it has its processor, alone or beside one that computes. */
static bool sees_itself_alone(const cpu_set_t *on, bool beside)
{
	struct waiting w = {.on = *on};
	pthread_t waiter, other;
	if (beside)
		pthread_create(&other, NULL, compute_on_processor, &w);
	pthread_create(&waiter, NULL, wait_on_processor, &w);
	while (!atomic_load(&w.gate.sleepers))
		usleep(1000);
	atomic_store(&w.end, true);
	rt_gate_raise(&w.gate, 1);
	pthread_join(waiter, NULL);
	if (beside)
		pthread_join(other, NULL);
	return atomic_load(&w.kept);
}

/* Other programs may use the processor, and the system may let the waiting thread keep it. */
static void test_presence(void)
{
	enum { TRIES = 40 };
	cpu_set_t process, one;
	int kept = 0;
	sched_getaffinity(0, sizeof process, &process);
	CPU_ZERO(&one);
	CPU_SET(nth_processor(&process, CPU_COUNT(&process) - 1), &one);
	for (int i = 0; i < TRIES; i++)
		kept += sees_itself_alone(&one, true);
	tap_ok(kept < TRIES / 2, "a waiting thread sees that another takes its processor (%d of %d times)",
	       TRIES - kept, TRIES);
	for (kept = 0; !kept;)
		kept = sees_itself_alone(&one, false);
	tap_ok(kept, "and that none does");
}

/* --- many callers --- */

static int os_threads(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

struct crowd {
	struct rt_team team;
	pthread_barrier_t all;
	atomic_int jobs, most;
};

static void *call_in_crowd(void *crowd)
{
	struct crowd *c = crowd;
	pthread_barrier_wait(&c->all);
	for (int i = 0; i < 20; i++) {
		atomic_fetch_add(&c->jobs, enter_and_run(&c->team, 20));
		int n = os_threads(), most = atomic_load(&c->most);
		while (n > most && !atomic_compare_exchange_weak(&c->most, &most, n))
			;
	}
	pthread_barrier_wait(&c->all);
	return NULL;
}

static void test_crowd(void)
{
	struct crowd c = {.jobs = 0};
	pthread_t thread[CALLERS];
	int before = os_threads();
	rt_team_init(&c.team, &allocator_default, 2);
	pthread_barrier_init(&c.all, NULL, CALLERS);
	for (int i = 0; i < CALLERS; i++)
		pthread_create(&thread[i], NULL, call_in_crowd, &c);
	for (int i = 0; i < CALLERS; i++)
		pthread_join(thread[i], NULL);
	tap_ok(atomic_load(&c.jobs) > 0 && atomic_load(&c.most) <= before + CALLERS + 1,
	       "%d callers and a budget of 2: %d threads at most, %d jobs", CALLERS, atomic_load(&c.most),
	       atomic_load(&c.jobs));
	rt_team_stop(&c.team);
	pthread_barrier_destroy(&c.all);
}

static void *run_until_refused(void *team)
{
	struct rt_team *t = team;
	intptr_t good = 1;
	while (!atomic_load(&t->closed)) {
		struct count c = {0};
		int threads = rt_team_enter(t, MUCH);
		if (!threads)
			continue;
		run_items(t, count_chunk, &c, 3);
		good &= is_counted(&c, threads, 3);
		rt_team_leave(t);
	}
	return (void *)good;
}

static void *stop_team(void *team)
{
	rt_team_stop(team);
	return NULL;
}

static void test_stop(void)
{
	bool good = true;
	for (int round = 0; round < 10; round++) {
		struct rt_team t;
		pthread_t caller[4], stopper;
		void *result;
		rt_team_init(&t, &allocator_default, 3);
		for (int i = 0; i < 4; i++)
			pthread_create(&caller[i], NULL, run_until_refused, &t);
		usleep(200 * round);
		pthread_create(&stopper, NULL, stop_team, &t);
		rt_team_stop(&t);
		pthread_join(stopper, NULL);
		for (int i = 0; i < 4; i++) {
			pthread_join(caller[i], &result);
			good &= result != NULL;
		}
		good &= !rt_team_enter(&t, MUCH);
	}
	tap_ok(good, "stopped twice at once among callers: jobs end, no more begin");
}

/* --- forks --- */

static bool ends_well(pid_t child)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void *hold_team(void *team)
{
	while (!atomic_load(&((struct rt_team *)team)->closed))
		enter_and_run(team, 1);
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
	if (!RACES_SOUGHT) /* whose tool has no threads after a fork */
		good &= enter_and_run(&own, 10) == 10;
	rt_team_stop(&own);
	return !good;
}

static void test_fork(void)
{
	struct rt_team t;
	pthread_t caller;
	bool good = true;
	rt_team_init(&t, &allocator_default, 3);
	good &= enter_and_run(&t, 1) == 1;
	pthread_create(&caller, NULL, hold_team, &t);
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

/* --- what may be missing --- */

static bool refuse;

static void *resize_or_refuse(void *context, void *p, size_t old_size, size_t new_size)
{
	return refuse && new_size ? NULL : allocator_default.resize(context, p, old_size, new_size);
}

static void test_memory(void)
{
	static const struct allocator a = {resize_or_refuse, NULL};
	struct rt_team t;
	rt_team_init(&t, &a, 2);
	refuse = true;
	tap_ok(!rt_team_enter(&t, MUCH) && !rt_team_error(&t), "without memory callers are alone");
	refuse = false;
	tap_ok(rt_team_enter(&t, MUCH) == 2, "when there is some they have a team");
	rt_team_leave(&t);
	rt_team_stop(&t);
}

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

/* --- chunks --- */

static bool chunks_are_right(int64_t rows, int64_t tile, int chunks)
{
	int64_t unit = tile > 1 ? tile / 2 : 1;
	if (rt_chunk_begin(rows, tile, 0, chunks) != 0 ||
	    rt_chunk_begin(rows, tile, chunks, chunks) != rows ||
	    (rows && !rt_chunk_begin(rows, tile, 1, chunks)))
		return false;
	for (int p = 0; p < chunks; p++) {
		int64_t begin = rt_chunk_begin(rows, tile, p, chunks),
			n = rt_chunk_begin(rows, tile, p + 1, chunks) - begin, more = n - rows / chunks;
		if (n < 0 || more > unit || (begin % unit && begin != rows) ||
		    (rows >= unit * chunks && more < -unit))
			return false;
	}
	return true;
}

static void test_chunks(void)
{
	bool right = true;
	srand(1);
	for (int i = 0; right && i < 100000; i++) {
		int64_t rows = rand() % (i % 2 ? 40 : 100000), tile = 1 + rand() % 8;
		int chunks = 2 + rand() % (i % 3 ? 4 : 255);
		right = chunks_are_right(rows, tile, chunks);
		if (!right)
			printf("# %lld rows in tiles of %lld for %d\n", (long long)rows, (long long)tile,
			       chunks);
	}
	tap_ok(right, "chunks follow each other, cover all rows, and differ by less than a tile");
	tap_ok(rt_chunk_begin(17, 4, 1, 2) == 8 && rt_chunk_begin(36, 4, 1, 2) == 18 &&
		   rt_chunk_begin(5, 4, 1, 2) == 2,
	       "they are cut at the half tile that is nearest");
	tap_ok(rt_chunk_begin(4, 4, 1, 2) == 2 && rt_chunk_begin(3, 4, 1, 2) == 2 &&
		   rt_chunk_begin(2, 4, 1, 2) == 2 && rt_chunk_begin(1, 4, 1, 2) == 1,
	       "the only half tile is chunk 0's");
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
	test_chunks();
	for (int threads = 1; threads <= MAX_CHUNKS; threads += 1 + threads / 3)
		test_items(threads);
	for (int threads = 2; threads <= MAX_CHUNKS; threads *= 2) {
		test_lockstep(threads, threads > 2 ? 100 : 1000, 0);
		test_lockstep(threads, 20, 40);
	}
	test_busy();
	test_when();
	test_delayed();
	test_return();
	test_presence();
	test_crowd();
	test_stop();
	test_fork();
	if (REGIONS_MISTAKEN)
		tap_skip("the sanitizer does not see inside of OpenMP", "callers inside of parallel regions");
	else
		test_host_regions();
	test_pinned();
	test_pinned_main();
	test_each_pinned();
	test_apart();
	test_memory();
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
