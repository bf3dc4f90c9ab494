/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The walk over the step table.
 *
 * The caller walks, and plans: a range that is worth it becomes a turn of the team (split.h) for all steps,
 * of which each part runs a block of the rows, or one for each step, of which it runs some blocks of the
 * columns. The ranges between them that are not worth it are the caller's alone, and so is what comes before
 * there is anything to share, and while the team still wakes up: that is run at once.
 *
 * Neighbours in the table with one domain take turns over its ranges; of those, neighbours of the same cases
 * are a group. In a batch a group has the ranges of its cases. */
#include "base/floats.h"
#include "runtime/internal.h"
#include "runtime/range.h"
#include "runtime/span.h"

enum granularity { WHOLE, BATCHES, NODES };

/* What a domain means: its rows and the ranges they are cut into. */
static const struct domain {
	enum image_size rows;
	bool past_leaves; /* begins at the first inner node */
	enum granularity cut;
	bool down; /* the last range comes first */
} domains[] = {
    [IMAGE_DOMAIN_ONCE] = {IMAGE_NODES, false, WHOLE, false},
    [IMAGE_DOMAIN_LEAVES] = {IMAGE_LEAVES, false, WHOLE, false},
    [IMAGE_DOMAIN_INNER] = {IMAGE_NODES, true, BATCHES, false},
    [IMAGE_DOMAIN_INNER_NODE] = {IMAGE_NODES, true, NODES, false},
    [IMAGE_DOMAIN_BATCH] = {IMAGE_NODES, false, BATCHES, false},
    [IMAGE_DOMAIN_NODE] = {IMAGE_NODES, false, NODES, false},
    [IMAGE_DOMAIN_NODES] = {IMAGE_NODES, false, WHOLE, false},
    [IMAGE_DOMAIN_PAST_LEAVES] = {IMAGE_NODES, true, WHOLE, false},
    [IMAGE_DOMAIN_INPUTS] = {IMAGE_INPUTS, false, WHOLE, false},
    [IMAGE_DOMAIN_BATCH_DOWN] = {IMAGE_NODES, false, BATCHES, true},
    [IMAGE_DOMAIN_NODE_DOWN] = {IMAGE_NODES, false, NODES, true},
};

/* Ranges of a plan at most: planning them takes less than a microsecond. */
enum { PLANNED = 64 };
/* The cuts of all its spans at most; a span of more is run level by level. */
enum { CUTS = 8192 };

/* One minibatch on its way through the table. */
struct walk {
	struct rt_calls calls;
	const struct lin_order *order;
	struct rt_team *team;
	int parts;		  /* of its turns; below 2: the caller is alone */
	struct rt_habits *habits; /* NULL at binding: all sweeps go upwards */
	struct rt_range *plan;	  /* room for PLANNED ranges, and one that is never read */
	int planned;
	int32_t *cut; /* room for CUTS */
	int64_t cuts;
	int shared; /* the last of these that is not the caller's alone */
	bool awake; /* the team was, when the first was planned */
};

/* --- plans --- */

static int run_planned(void *walk, int turn, int part, int parts)
{
	const struct walk *w = walk;
	const struct rt_range *r = &w->plan[turn];
	__builtin_prefetch(r + 1);
	float_mode_set(w->calls.image->flush); /* a member's is of whoever it worked for before */
	rt_run_share(&w->calls, r, part, parts);
	return r->alone;
}

static void run_plan(struct walk *w)
{
	if (w->planned)
		rt_team_run(w->team, &(struct rt_plan){run_planned, w, w->planned});
	w->planned = 0;
	w->cuts = 0;
}

/* Members that were asleep are looked after at every range. */
static void plan(struct walk *w, const struct rt_range *r)
{
	if (r->strategy == RT_ALONE)
		w->plan[w->shared].alone++;
	else
		w->shared = w->planned;
	w->plan[w->planned++] = *r;
	if (w->planned == PLANNED || !w->awake)
		run_plan(w);
}

static int index_of(const struct walk *w, const struct rt_group *g)
{
	return g->step - w->calls.image->step;
}

/* The next sweep of these steps begins where this one ends: what it read last is read first, out of the
 * nearest cache.  Steps of one group are swept equally often. */
static bool turn_around(const struct walk *w, const struct rt_group *g)
{
	bool *downwards =
	    w->habits && !w->calls.image->migrating ? &w->habits->downwards[index_of(w, g)] : NULL;
	bool now = downwards && *downwards;
	for (int i = 0; downwards && i < g->steps; i++)
		downwards[i] = !now;
	return now;
}

/* A range with rows. */
static bool add_range(struct walk *w, const struct rt_group *g, enum rt_strategy strategy, int32_t level, int64_t begin,
		      int64_t end)
{
	struct rt_range r = {.begin = begin,
			     .end = end,
			     .step = index_of(w, g),
			     .steps = g->steps,
			     .tile = g->tile,
			     .level = level,
			     .levels = 1,
			     .strategy = strategy,
			     .downwards = turn_around(w, g)};
	if (strategy == RT_COLUMNS && w->calls.image->migrating)
		r.shift = (level + 1) % w->parts;
	if (w->calls.profile)
		r.job = rt_profile_add_job(w->calls.profile, &r, false);
	if (strategy == RT_ALONE && !w->planned)
		return rt_run_share(&w->calls, &r, 0, 1);
	plan(w, &r);
	return true;
}

/* --- ways --- */

/* Operations that others would do instead of the caller. */
static double gain_of(struct walk *w, const struct rt_group *g, int64_t rows)
{
	double operations = 0;
	for (int i = 0; i < g->steps; i++)
		operations += g->step[i].operations;
	return operations * rows * (w->parts - 1) / w->parts;
}

/* Members that sleep are called only when they can be there before it is done. */
static bool can_share(struct walk *w, const struct rt_group *g, int64_t rows)
{
	double gain = gain_of(w, g, rows);
	if (w->awake || gain >= rt_rouse_operations(w->team))
		return true;
	rt_team_miss(w->team, gain);
	return false;
}

static enum rt_strategy way_of(struct walk *w, const struct rt_group *g, int64_t rows)
{
	if (w->parts < 2 || g->step->domain == IMAGE_DOMAIN_ONCE || !g->known)
		return RT_ALONE;
	if (!w->planned)
		w->awake = rt_team_awake(w->team);
	if (g->strategy != RT_CHEAPEST)
		return g->strategy == RT_SUBTREES ? RT_ROWS : g->strategy;
	struct rt_question q = {g, rows, w->parts, w->team->meeting, w->team->machine};
	enum rt_strategy strategy =
	    w->habits ? rt_recall(&w->habits->choices, &q, index_of(w, g)).strategy : rt_choose(&q).strategy;
	return strategy == RT_ALONE || can_share(w, g, rows) ? strategy : RT_ALONE;
}

/* --- the walk --- */

static bool run_range(struct walk *w, const struct rt_group *g, int32_t level, int64_t begin, int64_t end)
{
	if (begin == end)
		return true;
	bool apart = g->steps > 1 && w->parts > 1 && (g->apart || w->calls.image->step_barriers);
	enum rt_strategy strategy = apart ? RT_COLUMNS : way_of(w, g, end - begin);
	bool ok = true;
	if (strategy != RT_COLUMNS || g->steps == 1)
		return add_range(w, g, strategy, level, begin, end);
	for (int i = 0; ok && i < g->steps; i++) {
		struct rt_group one = rt_step_of(g, i);
		ok = run_range(w, &one, level, begin, end);
	}
	return ok;
}

/* The ranges of a group's cases in a batch; those that lie next to each other are one. */
static bool run_cases(struct walk *w, const struct rt_group *g, int32_t level, int64_t batch)
{
	const struct lin_order *o = w->order;
	const int32_t *begin = o->case_begin + batch * o->cases;
	int32_t from = begin[0], to = begin[0];
	bool ok = true;
	for (int c = 0; ok && c < o->cases; c++) {
		if (!(g->step->cases >> c & 1) || begin[c] == begin[c + 1])
			continue;
		if (begin[c] != to) {
			ok = run_range(w, g, level, from, to);
			from = begin[c];
		}
		to = begin[c + 1];
	}
	return ok && run_range(w, g, level, from, to);
}

static bool run_batch(struct walk *w, const struct rt_group *g, int64_t b)
{
	const int32_t *begin = w->order->batch_begin;
	return g->step->cases ? run_cases(w, g, b, b) : run_range(w, g, b, begin[b], begin[b + 1]);
}

/* What goes node by node is never shared out. */
static bool run_node(struct walk *w, const struct rt_group *g, int64_t n)
{
	unsigned cases = g->step->cases;
	return (cases && !(cases >> w->order->case_of[n] & 1)) || add_range(w, g, RT_ALONE, -1, n, n + 1);
}

/* Of leaves, which are a batch, there may be some cases. */
static bool run_whole(struct walk *w, const struct rt_group *g, int64_t begin, int64_t end)
{
	if (g->step->cases && begin < end)
		return run_cases(w, g, -1, 0);
	return run_range(w, g, -1, begin, end);
}

/* The steps before `next`, of one domain. */
static bool run_turn(struct walk *w, int first, int next, enum granularity cut, int64_t at)
{
	const struct rt_group *group = w->habits->group;
	bool ok = true;
	for (int i = first; ok && i < next; i += group[i].steps)
		ok = cut == BATCHES ? run_batch(w, &group[i], at) : run_node(w, &group[i], at);
	return ok;
}

/* --- spans --- */

/* The levels of the span that begins at a batch, from the bottom or the top; 0 = none begins there. */
static int32_t levels_from(const struct lin_order *o, int32_t batch, bool down)
{
	int32_t place = o->span && batch ? (batch - 1) % o->span : 0, left = o->batches - batch;
	if (!o->span || !batch)
		return 0;
	if (down)
		return left == 1 || place == o->span - 1 ? place + 1 : 0;
	return place ? 0 : left < o->span ? left : o->span;
}

/* All steps have work that is known, and are not to be shared out in another way. */
static bool can_run_span(const struct walk *w, int first, int next)
{
	const struct rt_group *group = w->habits->group;
	bool can = !w->calls.image->step_barriers;
	for (int i = first; i < next; i += group[i].steps)
		can &= group[i].known && !group[i].apart &&
		       (group[i].strategy == RT_CHEAPEST || group[i].strategy == RT_SUBTREES);
	return can;
}

/* The schedule asks for subtrees of all steps, whatever is expected to be shorter. */
static bool asks_for_span(const struct rt_span *s)
{
	bool asks = true;
	for (int i = s->first; i < s->next; i += s->group[i].steps)
		asks &= s->group[i].strategy == RT_SUBTREES;
	return asks;
}

/* Members that sleep are left to the levels. */
static bool wants_span(struct walk *w, const struct rt_span *s)
{
	if (!w->planned)
		w->awake = rt_team_awake(w->team);
	if (asks_for_span(s))
		return true;
	double gain = w->awake ? rt_span_gain(s, &w->habits->choices) : 0;
	w->habits->gained += gain > 0 ? gain : 0;
	return gain > 0;
}

/* A job for each level, as they are run; the first. */
static int32_t record_span(const struct walk *w, const struct rt_range *r)
{
	int32_t first = w->calls.profile->jobs;
	for (int32_t turn = 0; turn < r->levels; turn++) {
		struct rt_range level = *r;
		level.level += r->from_top ? r->levels - 1 - turn : turn;
		level.begin = w->order->batch_begin[level.level];
		level.end = w->order->batch_begin[level.level + 1];
		rt_profile_add_job(w->calls.profile, &level, turn);
	}
	return first;
}

static void add_span(struct walk *w, const struct rt_span *s, bool down)
{
	const int32_t *begin = s->order->batch_begin + s->level;
	struct rt_group all = {.step = &w->calls.image->step[s->first], .steps = s->next - s->first};
	struct rt_range r = {.begin = begin[0],
			     .end = begin[s->levels],
			     .step = s->first,
			     .steps = all.steps,
			     .level = s->level,
			     .levels = s->levels,
			     .strategy = RT_SUBTREES,
			     .from_top = down,
			     .cut = s->cut,
			     .downwards = turn_around(w, &all)};
	if (!(s->levels & 1))
		turn_around(w, &all);
	if (w->calls.profile)
		r.job = record_span(w, &r);
	w->cuts += rt_span_cuts(s);
	plan(w, &r);
}

/* Runs the span that begins at a batch, if there is one and subtrees are the better way; how many levels were
 * run. */
static int32_t run_span(struct walk *w, int first, int next, int32_t batch, bool down)
{
	int32_t levels = w->parts < 2 ? 0 : levels_from(w->order, batch, down);
	struct rt_span s = {.order = w->order,
			    .group = w->habits->group,
			    .first = first,
			    .next = next,
			    .level = down ? batch - levels + 1 : batch,
			    .levels = levels,
			    .parts = w->parts};
	if (levels < 2 || rt_span_cuts(&s) > CUTS || !can_run_span(w, first, next))
		return 0;
	if (w->cuts + rt_span_cuts(&s) > CUTS)
		run_plan(w);
	s.cut = w->cut + w->cuts;
	s.meeting = w->team->meeting;
	s.machine = w->team->machine;
	rt_span_find_cuts(&s);
	if (!wants_span(w, &s))
		return 0;
	add_span(w, &s, down);
	return levels;
}

/* --- domains --- */

static bool run_batches(struct walk *w, int first, int next, int32_t begin, int32_t end, bool down)
{
	bool ok = true;
	for (int32_t i = begin, levels; ok && i < end; i += levels ? levels : 1) {
		int32_t batch = down ? end - 1 - (i - begin) : i;
		levels = run_span(w, first, next, batch, down);
		if (!levels)
			ok = run_turn(w, first, next, BATCHES, batch);
	}
	return ok;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states they read, and descending ones those of parents. */
static bool run_domain(struct walk *w, int first, int next)
{
	const struct domain *d = &domains[w->calls.image->step[first].domain];
	const int64_t *sizes = w->calls.frame.sizes;
	const struct rt_group *group = w->habits->group;
	int64_t begin = d->past_leaves ? sizes[IMAGE_LEAVES] : 0, end = sizes[d->rows];
	bool ok = true;
	switch (d->cut) {
	case WHOLE:
		for (int i = first; ok && i < next; i += group[i].steps)
			ok = run_whole(w, &group[i], begin, end);
		break;
	case BATCHES:
		return run_batches(w, first, next, d->past_leaves, sizes[IMAGE_BATCHES], d->down);
	case NODES:
		for (int64_t i = begin; ok && i < end; i++)
			ok = run_turn(w, first, next, NODES, d->down ? end - 1 - (i - begin) : i);
		break;
	}
	return ok;
}

int rt_enter_team(struct rt_team *team, double operations)
{
	bool pays = team && operations >= team->machine->enter * target_kernel_rate(team->machine);
	return pays ? rt_team_enter(team, operations) : 0;
}

/* Half: two parts may share everything. */
double rt_shared_operations(const struct image *image, int64_t nodes)
{
	double operations = 0;
	for (int i = image->folds; i < image->steps && image->code.kernels; i++)
		operations += image->step[i].operations;
	return operations * nodes / 2;
}

static bool take_turns(const struct image_step *a, const struct image_step *b)
{
	return a->domain == b->domain && a->cases == b->cases;
}

static void find_groups(const struct image *image, struct rt_group *group)
{
	for (int i = image->folds, next; i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && take_turns(&image->step[i], &image->step[next]);)
			next++;
		group[i] = rt_group_of(&image->step[i], next - i);
	}
}

bool rt_run_steps(const struct image *image, void *const *buffers, const int64_t *sizes,
		  const struct lin_order *order, struct rt_team *team, int parts, struct rt_habits *habits,
		  struct rt_profile *profile, struct diags *diags)
{
	struct rt_range plan[PLANNED + 1];
	int32_t cut[CUTS];
	struct walk w = {
	    .calls = {image, {buffers, sizes}, rt_span_columns(order), profile, pthread_self(), diags},
	    .order = order,
	    .team = team,
	    .parts = parts,
	    .habits = habits,
	    .plan = plan,
	    .cut = cut};
	bool ok = true;
	find_groups(image, habits->group);
	for (int i = image->folds, next; ok && i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain;)
			next++;
		ok = run_domain(&w, i, next);
	}
	run_plan(&w);
	if (profile)
		rt_profile_settle(profile);
	return ok;
}

/* --- at binding --- */

double rt_fold_operations(const struct image *image)
{
	double operations = 0;
	for (int i = 0; i < image->folds && image->code.kernels; i++)
		operations += (double)image->step[i].operations * image_fold_rows(&image->fold[i]);
	return operations / 2;
}

/* No structure is there: of all sizes there is only one. */
bool rt_run_fold(const struct image *image, int fold, void *const *buffers, struct rt_team *team, int parts,
		 struct diags *diags)
{
	const int64_t sizes[IMAGE_SIZES] = {[IMAGE_ONE] = 1};
	struct rt_range plan[2];
	struct walk w = {
	    .calls = {image, {buffers, sizes}, .diags = diags}, .team = team, .parts = parts, .plan = plan};
	struct rt_group g = rt_group_of(&image->step[fold], 1);
	bool ok = run_range(&w, &g, -1, 0, image_fold_rows(&image->fold[fold]));
	run_plan(&w);
	return ok;
}
