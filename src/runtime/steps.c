/* The walk over the step table.
 *
 * The caller walks.  A range that is worth it becomes jobs of the team (split.h): one for all steps, of which
 * each part runs a block of the rows, or one for each step, of which it runs some blocks of the columns.  The
 * parts of a job do not depend on each other, and the walk goes on when all have ended.  Everything else the
 * caller runs itself: ranges with little work, and those that come while the team still wakes up. */
#include "runtime/internal.h"
#include "runtime/profile.h"

#include <pthread.h>

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

/* One minibatch on its way through the table. */
struct walk {
	const struct image *image;
	struct image_frame frame;
	const int32_t *batch_begin;
	struct rt_team *team;
	int parts;	 /* of its jobs; below 2: the caller is alone */
	bool *downwards; /* by step: the direction of the next sweep over columns; NULL = upwards */
	struct rt_profile *profile; /* NULL = nobody asked */
	pthread_t caller;	    /* known when there is a profile */
	struct diags *diags;
};

/* A range of rows, and how it is run. */
struct job {
	const struct walk *walk;
	const struct rt_group *group;
	enum rt_way way;
	int64_t begin, rows;
};

/* --- calls --- */

static int index_of(const struct walk *w, const struct image_step *s)
{
	return s - w->image->step;
}

/* What a part runs of a step. */
static struct image_range share_of(const struct job *j, const struct image_step *s, int part, int parts)
{
	const bool *downwards = j->walk->downwards;
	struct image_range r = {j->begin, j->begin + j->rows, 0, s->blocks, 1};
	if (j->way == RT_ROWS) {
		int64_t tile = rt_greatest_tile(j->group);
		r.begin = j->begin + rt_share(j->rows, tile, part, parts);
		r.end = j->begin + rt_share(j->rows, tile, part + 1, parts);
	} else if (j->way == RT_COLUMNS) {
		r.first = rt_share(s->blocks, 1, part, parts);
		r.blocks = rt_share(s->blocks, 1, part + 1, parts) - r.first;
	}
	if (downwards && downwards[index_of(j->walk, s)]) {
		r.direction = -1;
		r.first += r.blocks - 1;
	}
	return r;
}

static bool call_kernel(const struct walk *w, int kernel, const struct image_range *r)
{
	const struct image_code *code = &w->image->code;
	if (!code->kernels)
		return code->call(code->self, kernel, &w->frame, r, w->diags);
	code->kernels[kernel](w->frame.buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

static bool record_call(const struct walk *w, const struct image_step *s, int part,
			const struct image_range *r)
{
	struct rt_event e = {.step = index_of(w, s),
			     .job = w->profile->jobs,
			     .begin = r->begin,
			     .end = r->end,
			     .first = r->direction > 0 ? r->first : r->first - r->blocks + 1,
			     .blocks = r->blocks,
			     .direction = r->direction,
			     .taken = part && pthread_equal(pthread_self(), w->caller)};
	e.start = rt_nanoseconds();
	bool ok = call_kernel(w, s->kernel, r);
	e.stop = rt_nanoseconds();
	rt_profile_add_event(w->profile, part, &e);
	return ok;
}

static bool call_share(const struct job *j, int part, int parts)
{
	const struct walk *w = j->walk;
	bool ok = true;
	for (int i = 0; ok && i < j->group->steps; i++) {
		const struct image_step *s = &j->group->step[i];
		struct image_range r = share_of(j, s, part, parts);
		if (r.begin < r.end && r.blocks > 0)
			ok = w->profile ? record_call(w, s, part, &r) : call_kernel(w, s->kernel, &r);
	}
	return ok;
}

/* Kernels do not fail. */
static void run_part(void *job, int part, int parts)
{
	call_share(job, part, parts);
}

/* --- jobs --- */

static bool run_shares(struct job *j)
{
	if (j->way == RT_ALONE)
		return call_share(j, 0, 1);
	rt_team_run(j->walk->team, run_part, j);
	return true;
}

static bool record_job(struct job *j, int32_t level)
{
	struct rt_job r = {.step = index_of(j->walk, j->group->step),
			   .steps = j->group->steps,
			   .level = level,
			   .way = j->way,
			   .begin = j->begin,
			   .end = j->begin + j->rows};
	r.start = rt_nanoseconds();
	bool ok = run_shares(j);
	r.stop = rt_nanoseconds();
	rt_profile_add_job(j->walk->profile, &r);
	return ok;
}

/* The next sweep of these steps begins where this one ends: what it read last is read first, out of the
 * nearest cache. */
static bool run_job(struct job *j, int32_t level)
{
	const struct walk *w = j->walk;
	bool ok = w->profile ? record_job(j, level) : run_shares(j);
	for (int i = 0; w->downwards && i < j->group->steps; i++)
		w->downwards[index_of(w, &j->group->step[i])] ^= true;
	return ok;
}

/* --- ways --- */

/* Operations that others would do instead of the caller. */
static double gain_of(const struct walk *w, const struct rt_group *g, int64_t rows)
{
	double operations = 0;
	for (int i = 0; i < g->steps; i++)
		operations += g->step[i].operations;
	return operations * rows * (w->parts - 1) / w->parts;
}

/* Members that sleep are called only when they can be there before it is done. */
static bool can_share(const struct walk *w, const struct rt_group *g, int64_t rows)
{
	double gain = gain_of(w, g, rows);
	if (rt_team_awake(w->team) || gain >= RT_ROUSE_OPERATIONS)
		return true;
	rt_team_miss(w->team, gain);
	return false;
}

/* A step without operations has no rows that could be shared out. */
static bool has_rows(const struct rt_group *g)
{
	for (int i = 0; i < g->steps; i++)
		if (!g->step[i].operations)
			return false;
	return true;
}

static enum rt_way way_of(const struct walk *w, const struct rt_group *g, int64_t rows)
{
	if (w->parts < 2 || g->step->domain == IMAGE_DOMAIN_ONCE || !has_rows(g))
		return RT_ALONE;
	if (w->team->way != RT_CHEAPEST)
		return w->team->way;
	enum rt_way way = rt_choose(g, rows, w->parts, w->team->meeting);
	return way == RT_ALONE || can_share(w, g, rows) ? way : RT_ALONE;
}

/* --- the walk --- */

static bool run_range(const struct walk *w, const struct rt_group *g, int32_t level, int64_t begin,
		      int64_t end)
{
	enum rt_way way = way_of(w, g, end - begin);
	bool ok = true;
	if (way != RT_COLUMNS || g->steps == 1)
		return begin == end || run_job(&(struct job){w, g, way, begin, end - begin}, level);
	for (int i = 0; ok && i < g->steps; i++) {
		struct rt_group one = rt_step_of(g, i);
		ok = run_range(w, &one, level, begin, end);
	}
	return ok;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states they read.  What goes node by node is never shared out. */
static bool run_group(const struct walk *w, const struct rt_group *g)
{
	const struct domain *d = &domains[g->step->domain];
	const int64_t *sizes = w->frame.sizes;
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
			ok = run_job(&(struct job){w, g, RT_ALONE, n, 1}, -1);
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
		  const int32_t *batch_begin, struct rt_team *team, int parts, bool *downwards,
		  struct rt_profile *profile, struct diags *diags)
{
	struct walk w = {image, {buffers, sizes}, batch_begin, team,
			 parts, downwards,	  profile,     .diags = diags};
	bool ok = true;
	if (profile)
		w.caller = pthread_self();
	for (int i = image->folds, next; ok && i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain;)
			next++;
		struct rt_group g = {&image->step[i], next - i, 0};
		if (parts > 1)
			g = rt_group_of(g.step, g.steps);
		ok = run_group(&w, &g);
	}
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
	struct walk w = {image, {buffers, sizes}, .team = team, .parts = parts, .diags = diags};
	struct rt_group g = rt_group_of(&image->step[fold], 1);
	return run_range(&w, &g, -1, 0, image_fold_rows(&image->fold[fold]));
}
