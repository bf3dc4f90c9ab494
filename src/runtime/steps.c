/* The walk over the step table.
 *
 * The caller walks.  A range with enough work becomes a job of the team: each part runs a block of its rows,
 * which do not depend on each other, and the walk goes on when all have ended.  Everything else the caller
 * runs itself: ranges with little work, and those that come while the team still wakes up. */
#include "runtime/internal.h"

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
    [IMAGE_DOMAIN_INPUTS] = {IMAGE_INPUTS, false, WHOLE},
};

/* Steps that take turns: neighbours in the table with one domain. */
struct group {
	const struct image_step *step;
	int steps;
};

/* One minibatch on its way through the table. */
struct walk {
	const struct image *image;
	struct image_frame frame;
	const int32_t *batch_begin;
	struct rt_team *team;
	int parts; /* of its jobs; below 2: the caller is alone */
	struct diags *diags;
};

static bool call_step(const struct walk *w, const struct image_step *s, const struct image_range *r)
{
	const struct image_code *code = &w->image->code;
	if (!code->kernels)
		return code->call(code->self, s->kernel, &w->frame, r, w->diags);
	code->kernels[s->kernel](w->frame.buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

static bool call_steps(const struct walk *w, const struct group *g, int64_t begin, int64_t end)
{
	for (int i = 0; i < g->steps && begin < end; i++)
		if (!call_step(w, &g->step[i], &(struct image_range){begin, end, 0, g->step[i].blocks, 1}))
			return false;
	return true;
}

/* --- splitting --- */

int64_t rt_share(int64_t rows, int64_t tile, int part, int parts)
{
	int64_t tiles = (rows + tile - 1) / tile;
	if (tiles < parts && tile > 1) {
		tile /= 2;
		tiles = (rows + tile - 1) / tile;
	}
	int64_t first = (tiles * part + parts - 1) / parts * tile;
	return first < rows ? first : rows;
}

/* A range that is split. */
struct job {
	const struct walk *walk;
	const struct group *group;
	int64_t begin, rows, tile;
};

/* Kernels do not fail. */
static void run_part(void *context, int part, int parts)
{
	const struct job *j = context;
	call_steps(j->walk, j->group, j->begin + rt_share(j->rows, j->tile, part, parts),
		   j->begin + rt_share(j->rows, j->tile, part + 1, parts));
}

/* Operations that others would do instead of the caller, whose share is the greatest. */
static double gain_of(const struct job *j, int parts)
{
	double operations = 0;
	for (int i = 0; i < j->group->steps; i++)
		operations += j->group->step[i].operations;
	return operations * (j->rows - rt_share(j->rows, j->tile, 1, parts));
}

/* Whether to split, now: members that sleep are called only when they can be there before it is done. */
static bool pays(const struct job *j)
{
	const struct walk *w = j->walk;
	double gain = w->parts > 1 ? gain_of(j, w->parts) : 0;
	if (gain < RT_SPLIT_OPERATIONS)
		return false;
	if (gain >= RT_ROUSE_OPERATIONS || rt_team_awake(w->team))
		return true;
	rt_team_miss(w->team, gain);
	return false;
}

static int64_t greatest_tile(const struct group *g)
{
	int64_t rows = 1;
	for (int i = 0; i < g->steps; i++)
		rows = g->step[i].rows > rows ? g->step[i].rows : rows;
	return rows;
}

/* --- the walk --- */

static bool run_range(const struct walk *w, const struct group *g, int64_t begin, int64_t end)
{
	struct job j = {w, g, begin, end - begin, greatest_tile(g)};
	if (g->step->domain == IMAGE_DOMAIN_ONCE || !pays(&j))
		return call_steps(w, g, begin, end);
	rt_team_run(w->team, run_part, &j);
	return true;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states they read. */
static bool run_group(const struct walk *w, const struct group *g)
{
	const struct domain *d = &domains[g->step->domain];
	const int64_t *sizes = w->frame.sizes;
	int64_t begin = d->past_leaves ? sizes[IMAGE_LEAVES] : 0, end = sizes[d->rows];
	bool ok = true;
	switch (d->cut) {
	case WHOLE:
		return run_range(w, g, begin, end);
	case BATCHES:
		for (int64_t b = d->past_leaves; ok && b < sizes[IMAGE_BATCHES]; b++)
			ok = run_range(w, g, w->batch_begin[b], w->batch_begin[b + 1]);
		break;
	case NODES:
		for (int64_t n = begin; ok && n < end; n++)
			ok = call_steps(w, g, n, n + 1);
		break;
	}
	return ok;
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
		  const int32_t *batch_begin, struct rt_team *team, int parts, struct diags *diags)
{
	struct walk w = {image, {buffers, sizes}, batch_begin, team, parts, diags};
	bool ok = true;
	for (int i = image->folds, next; ok && i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && image->step[next].domain == image->step[i].domain;)
			next++;
		ok = run_group(&w, &(struct group){&image->step[i], next - i});
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
	struct walk w = {image, {buffers, sizes}, NULL, team, parts, diags};
	return run_range(&w, &(struct group){&image->step[fold], 1}, 0, image_fold_rows(&image->fold[fold]));
}
