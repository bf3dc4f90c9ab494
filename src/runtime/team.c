#include "runtime/team.h"

#include "base/fork.h"
#include "runtime/internal.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What isspace() takes in the C locale. */
#define SPACES " \t\n\v\f\r"

enum {
	LINE = 64,
	/* How long a thread watches before it sleeps.  Between two wide batches of one structure lie narrow
	 * ones, up to some hundred microseconds; waking up takes as long (bench/team.c). */
	WATCH_NANOSECONDS = 500000,
	/* For so long it has its processor for itself, then it lets others go first: they may be those that
	 * it waits for. */
	ALONE_NANOSECONDS = 20000,
	PAUSES = 32, /* between two looks at the clock */
	/* How often it is found out what a meeting costs: the least of some, which take a few microseconds.
	 */
	MEETING_NANOSECONDS = 10000000,
	MEETINGS = 4,
	MOST_MEETING = 5000
};

/* Something that threads wait for: its turn changes. */
struct gate {
	atomic_uint turn;
	atomic_uint sleepers;
};

/* A part of the jobs: the line that goes from its member to the caller. */
struct part {
	_Alignas(LINE) atomic_uint taken; /* the turn of the job of which it was begun last */
	struct gate done;		  /* its turn is that of the job of which it has ended last */
};

/* What the threads of a team share. */
struct rt_crew {
	_Alignas(LINE) struct gate jobs; /* moves when there is a job, or nothing more to do */
	/* Changed by who holds the team, read by who has taken a part.  Not in the line above: it would be
	 * taken away by those who watch between one store and the next. */
	_Alignas(LINE) void (*work)(void *job, int part, int parts);
	void *job;
	atomic_bool end;
	/* set before there are threads */
	_Alignas(LINE) struct rt_processors processors;
	bool pinned;
	int wanted;   /* members */
	bool crowded; /* more parts than processors: watching keeps others from working */
	/* known when `up` has moved */
	struct gate up; /* when the region was entered, or cannot be */
	int parts;
	int trouble;
	pthread_t master;
	atomic_int ended;   /* members that have */
	struct part part[]; /* 0 is not used: it is always the caller's */
};

/* --- waiting --- */

static void pause_briefly(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

static bool moved(struct gate *g, unsigned from)
{
	return atomic_load_explicit(&g->turn, memory_order_acquire) != from;
}

/* Some looks at the gate, without one at the clock. */
static bool glance(struct gate *g, unsigned from)
{
	for (int i = 0; i < PAUSES; i++) {
		if (moved(g, from))
			return true;
		pause_briefly();
	}
	return false;
}

/* Watches the gate without sleeping; false when it has not moved in time. */
static bool watch(struct gate *g, unsigned from, bool crowded)
{
	if (glance(g, from))
		return true;
	int64_t begin = rt_nanoseconds(), passed = 0;
	for (; passed < (crowded ? ALONE_NANOSECONDS : WATCH_NANOSECONDS);
	     passed = rt_nanoseconds() - begin) {
		if (glance(g, from))
			return true;
		if (crowded || passed >= ALONE_NANOSECONDS)
			sched_yield();
	}
	return false;
}

/* Whoever sleeps has said so before it looked at the turn for the last time, and gate_move changes the turn
 * before it looks for sleepers: one of the two sees the other. */
static void gate_wait(struct gate *g, unsigned from, bool crowded)
{
	while (!watch(g, from, crowded)) {
		atomic_fetch_add(&g->sleepers, 1);
		syscall(SYS_futex, &g->turn, FUTEX_WAIT_PRIVATE, from, NULL, NULL, 0);
		atomic_fetch_sub(&g->sleepers, 1);
	}
}

/* Sleepers wake up and watch again. */
static void gate_rouse(struct gate *g)
{
	if (atomic_load(&g->sleepers))
		syscall(SYS_futex, &g->turn, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* What was written before can be read by whoever sees the new turn. */
static void gate_move(struct gate *g, unsigned turn)
{
	atomic_store(&g->turn, turn);
	gate_rouse(g);
}

static unsigned gate_turn(struct gate *g)
{
	return atomic_load_explicit(&g->turn, memory_order_acquire);
}

/* --- jobs --- */

/* Begins a part, unless another thread has: every part of a job is begun once before the next job is there,
 * and so who has taken it finds the job as it was when it was handed over. */
static bool take_part(struct part *p, unsigned turn)
{
	unsigned before = turn - 1;
	return atomic_compare_exchange_strong(&p->taken, &before, turn);
}

/* What nobody has begun when the caller is done with his own part he runs himself; then he waits for the
 * others. */
static void run_job(struct rt_crew *c, unsigned turn)
{
	c->work(c->job, 0, c->parts);
	for (int part = 1; part < c->parts; part++)
		if (take_part(&c->part[part], turn)) {
			c->work(c->job, part, c->parts);
			atomic_store_explicit(&c->part[part].done.turn, turn, memory_order_relaxed);
		}
	for (int part = 1; part < c->parts; part++)
		gate_wait(&c->part[part].done, turn - 1, c->crowded);
}

/* A member's life.  It may have missed jobs. */
static void serve(struct rt_crew *c, int part)
{
	struct part *p = &c->part[part];
	for (unsigned turn = 0;;) {
		gate_wait(&c->jobs, turn, c->crowded);
		turn = gate_turn(&c->jobs);
		if (atomic_load_explicit(&c->end, memory_order_relaxed))
			break;
		if (take_part(p, turn)) {
			c->work(c->job, part, c->parts);
			gate_move(&p->done, turn);
		}
	}
	atomic_fetch_add(&c->ended, 1);
}

static void nothing(void *job, int part, int parts)
{
	(void)job, (void)part, (void)parts;
}

/* A job of nothing that the caller leaves to the members unless they let him wait: nanoseconds. */
static int64_t meet(struct rt_crew *c)
{
	int64_t begin = rt_nanoseconds();
	unsigned turn = gate_turn(&c->jobs) + 1;
	c->work = nothing;
	gate_move(&c->jobs, turn);
	for (int part = 1; part < c->parts; part++)
		glance(&c->part[part].done, turn - 1);
	run_job(c, turn);
	return rt_nanoseconds() - begin;
}

/* --- threads --- */

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

/* How many, at least 1. */
static long count(const struct rt_processors *p)
{
	int known = CPU_COUNT_S(sizeof p->set, p->set);
	long online = known ? known : sysconf(_SC_NPROCESSORS_ONLN);
	return online > 0 ? online : 1;
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
		gate_move(&c->up, 1);
		return NULL;
	}
	omp_set_dynamic(0);
	omp_set_max_active_levels(1);
#pragma omp parallel num_threads(c->wanted)
	{
		int member = omp_get_thread_num();
		if (member == 0) {
			c->parts = omp_get_num_threads() + 1;
			gate_move(&c->up, 1);
		}
		settle(c, member + 1);
		serve(c, member + 1);
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

/* Makes the threads and waits until it is known how many they are; the error or 0. */
static int start(struct rt_crew *c)
{
	int error = make_master(c);
	if (error)
		return error;
	gate_wait(&c->up, 0, false);
	if (c->trouble)
		pthread_join(c->master, NULL);
	return c->trouble;
}

/* --- the team --- */

void rt_team_init(struct rt_team *t, const struct allocator *allocator, int threads)
{
	*t = (struct rt_team){.allocator = allocator,
			      .threads = threads,
			      .generation = fork_generation(),
			      .way = RT_CHEAPEST,
			      .meeting = RT_MEETING_NANOSECONDS};
	if (sched_getaffinity(0, sizeof t->processors.set, t->processors.set) != 0)
		memset(&t->processors, 0, sizeof t->processors);
	pthread_mutex_init(&t->lock, NULL);
}

/* With the lock held.  When memory is out the next caller may find some; threads are not tried for again. */
static bool make_crew(struct rt_team *t)
{
	struct rt_crew *c = rt_take(t->allocator, sizeof *c + t->threads * sizeof *c->part);
	if (!c)
		return false;
	c->wanted = t->threads - 1;
	c->processors = t->processors;
	c->pinned = t->pinned;
	c->crowded = t->threads > count(&t->processors);
	int error = start(c);
	if (error) {
		rt_give(t->allocator, c);
		atomic_store(&t->trouble, error);
		atomic_store(&t->closed, true);
		return false;
	}
	t->crew = c;
	return true;
}

/* In a child the lock may be held by a thread that is not there. */
static bool may_enter(struct rt_team *t)
{
	return t->threads > 1 && !atomic_load_explicit(&t->closed, memory_order_relaxed) &&
	       fork_generation() == t->generation;
}

/* Whether enough was missed to have the members awake from now on; it is then counted anew. */
static bool missed_enough(struct rt_team *t, double operations)
{
	t->missed += operations;
	if (t->missed < RT_ROUSE_OPERATIONS)
		return false;
	t->missed = 0;
	return true;
}

/* With the lock held, by the way when members watch.  How far processors are from each other is no constant
 * of a machine: a virtual one's move. */
static void find_meeting(struct rt_team *t, int64_t now)
{
	if (now - t->met < MEETING_NANOSECONDS || !rt_team_awake(t))
		return;
	t->met = now;
	t->meeting = MOST_MEETING;
	for (int i = 0; i < MEETINGS; i++) {
		double took = meet(t->crew);
		t->meeting = took < t->meeting ? took : t->meeting;
	}
}

/* With the lock held.  Runs that are far apart do not add up: members would be asleep again. */
static bool have_crew(struct rt_team *t, double operations)
{
	int64_t now = rt_nanoseconds();
	if (now - t->left > WATCH_NANOSECONDS)
		t->missed = 0;
	if (!t->crew)
		return missed_enough(t, operations) && make_crew(t);
	if (operations >= RT_ROUSE_OPERATIONS)
		gate_rouse(&t->crew->jobs);
	find_meeting(t, now);
	return true;
}

int rt_team_enter(struct rt_team *t, double operations)
{
	if (!may_enter(t) || pthread_mutex_trylock(&t->lock) != 0)
		return 0;
	if (!atomic_load(&t->closed) && have_crew(t, operations))
		return t->crew->parts;
	rt_team_leave(t);
	return 0;
}

void rt_team_run(struct rt_team *t, void (*work)(void *job, int part, int parts), void *job)
{
	struct rt_crew *c = t->crew;
	unsigned turn = atomic_load_explicit(&c->jobs.turn, memory_order_relaxed) + 1;
	c->work = work;
	c->job = job;
	gate_move(&c->jobs, turn);
	run_job(c, turn);
}

bool rt_team_awake(const struct rt_team *t)
{
	return !atomic_load_explicit(&t->crew->jobs.sleepers, memory_order_relaxed);
}

void rt_team_miss(struct rt_team *t, double operations)
{
	if (missed_enough(t, operations))
		gate_rouse(&t->crew->jobs);
}

void rt_team_leave(struct rt_team *t)
{
	t->left = rt_nanoseconds();
	pthread_mutex_unlock(&t->lock);
}

/* With the lock held: nobody has the team.  The master comes last, out of the region's own barrier; that the
 * members are done with the crew's memory is said here as well, because tools that look for races do not see
 * inside of OpenMP. */
static void end_crew(struct rt_crew *c)
{
	atomic_store_explicit(&c->end, true, memory_order_relaxed);
	gate_move(&c->jobs, gate_turn(&c->jobs) + 1);
	pthread_join(c->master, NULL);
	while (atomic_load(&c->ended) < c->parts - 1)
		sched_yield();
}

void rt_team_stop(struct rt_team *t)
{
	bool here = fork_generation() == t->generation;
	if (here) {
		atomic_store(&t->closed, true);
		pthread_mutex_lock(&t->lock);
	}
	if (here && t->crew)
		end_crew(t->crew);
	rt_give(t->allocator, t->crew);
	t->crew = NULL;
	if (here)
		pthread_mutex_unlock(&t->lock);
}

int rt_team_trouble(struct rt_team *t)
{
	return atomic_load_explicit(&t->trouble, memory_order_relaxed) ? atomic_exchange(&t->trouble, 0) : 0;
}
