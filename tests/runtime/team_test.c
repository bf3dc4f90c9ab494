/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The team: work items and their chunks, who gets it, how it ends. */
#include "runtime/shared.h"
#include "tests/runtime/crew_work.h"
#include "tests/tap.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLERS = 64 };

/* --- work items --- */

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
		if (i % 1000 == 0)
			usleep(2 * RT_RUN_NANOSECONDS / 1000); /* the workers fall asleep */
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

/* Whether no thread is made for so many runs of so many operations, a second apart. */
static bool stays_alone(struct rt_team *t, double operations, int runs)
{
	bool alone = true;
	for (int i = 0; i < runs; i++) {
		t->left -= 1000000000;
		alone &= !rt_team_enter(t, operations) && !t->crew;
	}
	return alone;
}

/* A little is not worth a thread.  What is missed adds up; of runs that lie far apart where each is worth waking a thread. */
static void test_when(void)
{
	struct rt_team t;
	rt_team_init(&t, &allocator_default, 2);
	const double third = rt_make_operations(&t) / 3 + 1, little = rt_wake_operations(&t) / 2;
	tap_ok(stays_alone(&t, little, 100), "for a little now and then no thread is made");
	tap_ok(stays_alone(&t, third, 2), "nor for what would be worth waking one, at first");
	t.left -= 1000000000;
	tap_ok(rt_team_enter(&t, third) == 2, "but when as much was missed as making it takes");
	rt_team_leave(&t);
	rt_team_stop(&t);
	rt_team_init(&t, &allocator_default, 2);
	bool alone = !rt_team_enter(&t, third) && !rt_team_enter(&t, third) && !t.crew;
	tap_ok(alone && rt_team_enter(&t, third) == 2, "as for runs that follow each other");
	rt_team_leave(&t);
	rt_team_stop(&t);
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

/* --- memory --- */

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

int main(void)
{
	test_chunks();
	for (int threads = 1; threads <= MAX_CHUNKS; threads += 1 + threads / 3)
		test_items(threads);
	for (int threads = 2; threads <= MAX_CHUNKS; threads *= 2) {
		test_lockstep(threads, threads > 2 ? 100 : 1000, 0);
		test_lockstep(threads, 20, 40);
	}
	test_busy();
	test_when();
	test_crowd();
	test_stop();
	test_memory();
	return tap_done();
}
