/* The walk over the step table.
 *
 * The caller walks, and plans: a range that is worth it becomes a turn of the team (split.h) for all steps,
 * of which each part runs a block of the rows, or one for each step, of which it runs some blocks of the
 * columns. The ranges between them that are not worth it are the caller's alone, and so is what comes before
 * there is anything to share, and while the team still wakes up: that is run at once. */
#include "runtime/internal.h"
#include "runtime/range.h"

enum granularity { WHOLE, BATCHES, NODES };

/* What a domain means: its rows and the ranges they are cut into. */
static const struct domain {
	enum image_size rows;
	bool past_leaves; /* begins at the first inner node */
	enum granularity cut;
} domains[] = {
    [IMAGE_DOMAIN_ONCE] = {IMAGE_NODES, false, WHOLE},
    [IMAGE_DOMAIN_LEAVES] = {IMAGE_LEAVES, false, WHOLE},
    [IMAGE_DOMAIN_INNER] = {IMAGE_NODES, true, BATCHES},
    [IMAGE_DOMAIN_INNER_NODE] = {IMAGE_NODES, true, NODES},
    [IMAGE_DOMAIN_BATCH] = {IMAGE_NODES, false, BATCHES},
    [IMAGE_DOMAIN_NODE] = {IMAGE_NODES, false, NODES},
    [IMAGE_DOMAIN_NODES] = {IMAGE_NODES, false, WHOLE},
    [IMAGE_DOMAIN_PAST_LEAVES] = {IMAGE_NODES, true, WHOLE},
    [IMAGE_DOMAIN_INPUTS] = {IMAGE_INPUTS, false, WHOLE},
};

/* Ranges of a plan at most: planning them takes less than a microsecond. */
enum { PLANNED = 64 };

/* One minibatch on its way through the table. */
struct walk {
	struct rt_calls calls;
	const int32_t *batch_begin;
	struct rt_team *team;
	int parts;		  /* of its turns; below 2: the caller is alone */
	struct rt_habits *habits; /* NULL = none: all sweeps go upwards */
	struct rt_range *plan;	  /* room for PLANNED ranges, and one that is never read */
	int planned;
	int shared; /* the last of these that is not the caller's alone */
	bool awake; /* the team was, when the first was planned */
};

/* --- plans --- */

static int run_planned(void *walk, int turn, int part, int parts)
{
	const struct walk *w = walk;
	const struct rt_range *r = &w->plan[turn];
	__builtin_prefetch(r + 1);
	rt_run_share(&w->calls, r, part, parts);
	return r->alone;
}

static void run_plan(struct walk *w)
{
	if (w->planned)
		rt_team_run(w->team, &(struct rt_plan){run_planned, w, w->planned});
	w->planned = 0;
}

/* Members that were asleep are looked after at every range. */
static void plan(struct walk *w, const struct rt_range *r)
{
	if (r->way == RT_ALONE)
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
	bool *downwards = w->habits ? &w->habits->downwards[index_of(w, g)] : NULL;
	bool now = downwards && *downwards;
	for (int i = 0; downwards && i < g->steps; i++)
		downwards[i] = !now;
	return now;
}

/* A range with rows. */
static bool add_range(struct walk *w, const struct rt_group *g, enum rt_way way, int32_t level, int64_t begin,
		      int64_t end)
{
	struct rt_range r = {.begin = begin,
			     .end = end,
			     .step = index_of(w, g),
			     .steps = g->steps,
			     .tile = g->tile,
			     .level = level,
			     .way = way,
			     .downwards = turn_around(w, g)};
	if (w->calls.profile)
		r.job = rt_profile_add_job(w->calls.profile, &r);
	if (way == RT_ALONE && !w->planned)
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
	if (w->awake || gain >= RT_ROUSE_OPERATIONS)
		return true;
	rt_team_miss(w->team, gain);
	return false;
}

static enum rt_way way_of(struct walk *w, const struct rt_group *g, int64_t rows)
{
	if (w->parts < 2 || g->step->domain == IMAGE_DOMAIN_ONCE || !g->known)
		return RT_ALONE;
	if (!w->planned)
		w->awake = rt_team_awake(w->team);
	if (w->team->way != RT_CHEAPEST)
		return w->team->way;
	struct rt_question q = {g, rows, w->parts, w->team->meeting};
	enum rt_way way = w->habits ? rt_recall(&w->habits->choices, &q, index_of(w, g)) : rt_choose(&q);
	return way == RT_ALONE || can_share(w, g, rows) ? way : RT_ALONE;
}

/* --- the walk --- */

static bool run_range(struct walk *w, const struct rt_group *g, int32_t level, int64_t begin, int64_t end)
{
	if (begin == end)
		return true;
	enum rt_way way = way_of(w, g, end - begin);
	bool ok = true;
	if (way != RT_COLUMNS || g->steps == 1)
		return add_range(w, g, way, level, begin, end);
	for (int i = 0; ok && i < g->steps; i++) {
		struct rt_group one = rt_step_of(g, i);
		ok = run_range(w, &one, level, begin, end);
	}
	return ok;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states they read.  What goes node by node is never shared out. */
static bool run_group(struct walk *w, const struct rt_group *g)
{
	const struct domain *d = &domains[g->step->domain];
	const int64_t *sizes = w->calls.frame.sizes;
	int64_t begin = d->past_leaves ? sizes[IMAGE_LEAVES] : 0, end = sizes[d->rows];
	bool ok = true;
	switch (d->cut) {
	case WHOLE:
		return run_range(w, g, -1, begin, end);
	case BATCHES:
		for (int64_t b = d->past_leaves; ok && b < sizes[IMAGE_BATCHES]; b++)
			ok = run_range(w, g, b, w->batch_begin[b], w->batch_begin[b + 1]);
		break;
	case NODES:
		for (int64_t n = begin; ok && n < end; n++)
			ok = add_range(w, g, RT_ALONE, -1, n, n + 1);
		break;
	}
	return ok;
}

int rt_enter_team(struct rt_team *team, double operations)
{
	bool forced = team && team->way != RT_CHEAPEST && operations > 0;
	if (!team || (operations < RT_TEAM_OPERATIONS && !forced))
		return 0;
	return rt_team_enter(team, forced ? RT_ROUSE_OPERATIONS : operations);
}

/* Half: two parts may share everything. */
double rt_shared_operations(const struct image *image, int64_t nodes)
{
	double operations = 0;
	for (int i = image->folds; i < image->steps && image->code.kernels; i++)
		operations += image->step[i].operations;
	return operations * nodes / 2;
}

bool rt_run_steps(const struct image *image, void *const *buffers, const int64_t *sizes,
		  const int32_t *batch_begin, struct rt_team *team, int parts, struct rt_habits *habits,
		  struct rt_profile *profile, struct diags *diags)
{
	struct rt_range plan[PLANNED + 1];
	struct walk w = {.calls = {image, {buffers, sizes}, profile, pthread_self(), diags},
			 .batch_begin = batch_begin,
			 .team = team,
			 .parts = parts,
			 .habits = habits,
			 .plan = plan};
	bool ok = true;
	for (int i = image->folds, next; ok && i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain;)
			next++;
		struct rt_group g = rt_group_of(&image->step[i], next - i);
		ok = run_group(&w, &g);
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
