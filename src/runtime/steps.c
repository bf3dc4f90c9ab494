/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The walk over the step table.
 *
 * The caller walks, and queues ranges that are worth dividing among the team (split.h): as one work item for
 * all steps of a stage, or as one for each step.  Ranges between them that are not worth it are queued as the
 * caller's alone.  The caller runs a range at once while nothing is queued yet, and while the team wakes up.
 *
 * All neighbours in the table with one domain, up to one that is to run apart, run over one of its ranges before the next; those
 * of them with the same cases, and the same order of their rows, are a stage.  In a batch a stage has the ranges of its cases. */
#include "base/floats.h"
#include "runtime/range.h"
#include "runtime/shared.h"
#include "runtime/span.h"

#include <string.h>

enum granularity { WHOLE, BATCHES, NODES, STEPS };

/* By domain: its rows, and the ranges that they are cut into. */
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
    [IMAGE_DOMAIN_SCAN] = {IMAGE_NODES, false, STEPS, false},
};

/* The first row of a domain, and the end. */
static int64_t first_row(const struct domain *d, const struct lin_order *o)
{
	bool nodes = d->rows != IMAGE_INPUTS && o->batches;
	return d->past_leaves ? o->leaves : nodes ? o->batch_begin[0] : 0;
}

static int64_t end_row(const struct domain *d, const struct lin_order *o)
{
	return d->rows == IMAGE_INPUTS ? o->inputs : d->rows == IMAGE_LEAVES ? o->leaves : o->nodes;
}

/* The capacity of the queue [ranges]: filling it takes less than a microsecond. */
enum { QUEUE = 64 };
/* Cuts of all queued spans; a span that needs more is run level by level. */
enum { CUTS = 8192 };

/* A minibatch in the course of the walk. */
struct walk {
	struct rt_calls calls;
	const struct lin_order *order;
	struct rt_team *team;
	int threads;		     /* of the team; below 2: the caller is alone */
	struct rt_walk_state *state; /* NULL at binding: all sweeps go upwards */
	struct rt_range *queue;	     /* QUEUE ranges, and one that is never read */
	int queued;
	int divided;  /* the last queued range that is not the caller's alone */
	int32_t *cut; /* CUTS of them */
	int64_t cuts;
	bool awake; /* whether the team was when the first range was queued */
};

/* --- the queue --- */

/* A joined range is run with the one before it; the crew counts it among the caller's alone. */
static int run_item(void *walk, int item, int chunk, int chunks)
{
	const struct walk *w = walk;
	const struct rt_range *r = &w->queue[item];
	__builtin_prefetch(r + 1);
	float_mode_set(w->calls.image->flush); /* a worker's is that of its last caller */
	if (!r->joined)
		rt_run_chunk(&w->calls, r, chunk, chunks);
	if (r->alone && r[1].joined)
		rt_run_chunk(&w->calls, r + 1, chunk, chunks);
	return r->alone;
}

static void flush_queue(struct walk *w)
{
	if (w->queued)
		rt_team_run(w->team, &(struct rt_work){run_item, w, w->queued});
	w->queued = 0;
	w->cuts = 0;
}

/* While workers sleep each range is run at once: the next one checks again whether they are awake. */
static void queue_range(struct walk *w, const struct rt_range *r)
{
	if (r->strategy == RT_ALONE || r->joined)
		w->queue[w->divided].alone++;
	else
		w->divided = w->queued;
	w->queue[w->queued++] = *r;
	if (w->queued == QUEUE || !w->awake)
		flush_queue(w);
}

static int index_of(const struct walk *w, const struct rt_stage *stage)
{
	return stage->step - w->calls.image->step;
}

/* The direction of a sweep; the next one of these steps goes the other way, so that it reads first what this
 * one read last, out of the nearest cache.  Steps of one stage are swept equally often. */
static bool alternate_sweep(const struct walk *w, const struct rt_stage *stage)
{
	bool *downwards =
	    w->state && !w->calls.image->migrating ? &w->state->downwards[index_of(w, stage)] : NULL;
	bool now = downwards && *downwards;
	for (int i = 0; downwards && i < stage->steps; i++)
		downwards[i] = !now;
	return now;
}

/* Whether no thread needs to wait between the last queued range and this one, of the next step: both divide
 * columns, and the image says that threads use only what they have stored themselves. */
static bool can_join(const struct walk *w, const struct rt_range *r)
{
	const struct rt_range *before = &w->queue[w->divided];
	const struct image *image = w->calls.image;
	if (!w->queued || w->divided != w->queued - 1 || image->step_barriers || image->migrating)
		return false;
	return r->strategy == RT_COLUMNS && before->strategy == RT_COLUMNS && r->steps == 1 && before->steps == 1 &&
	       image->step[r->step].after == before->step + 1 &&
	       rt_share_borders(&image->step[before->step], &image->step[r->step], w->threads);
}

/* Queues a range that is not empty, or runs it at once. */
static bool add_range(struct walk *w, const struct rt_stage *stage, enum rt_strategy strategy, int32_t level,
		      int64_t begin, int64_t end)
{
	struct rt_range r = {.begin = begin,
			     .end = end,
			     .step = index_of(w, stage),
			     .steps = stage->steps,
			     .tile = stage->tile,
			     .level = level,
			     .levels = 1,
			     .strategy = strategy,
			     .downwards = alternate_sweep(w, stage)};
	if (strategy == RT_COLUMNS && w->calls.image->migrating)
		r.shift = (level + 1) % w->threads;
	r.joined = can_join(w, &r);
	if (w->calls.profile)
		r.job = rt_profile_add_job(w->calls.profile, &r, r.joined);
	if (strategy == RT_ALONE && !w->queued)
		return rt_run_chunk(&w->calls, &r, 0, 1);
	queue_range(w, &r);
	return true;
}

/* --- strategies --- */

/* Operations that workers would do instead of the caller. */
static double operations_of_workers(struct walk *w, const struct rt_stage *stage, int64_t rows)
{
	double operations = 0;
	for (int i = 0; i < stage->steps; i++)
		operations += stage->step[i].operations;
	return operations * rows * (w->threads - 1) / w->threads;
}

/* Workers that sleep are used only for a range that takes longer than waking them. */
static bool is_worth_workers(struct walk *w, const struct rt_stage *stage, int64_t rows)
{
	double operations = operations_of_workers(w, stage, rows);
	if (w->awake || operations >= rt_wake_operations(w->team))
		return true;
	rt_team_miss(w->team, operations);
	return false;
}

static enum rt_strategy choose_strategy(struct walk *w, const struct rt_stage *stage, int64_t rows)
{
	if (w->threads < 2 || stage->step->domain == IMAGE_DOMAIN_ONCE || !stage->known)
		return RT_ALONE;
	if (!w->queued)
		w->awake = rt_team_awake(w->team);
	if (stage->strategy != RT_CHEAPEST)
		return stage->strategy == RT_SUBTREES ? RT_ROWS : stage->strategy;
	struct rt_query q = {stage, rows, w->threads, w->team->barrier_cost, w->team->machine};
	enum rt_strategy strategy =
	    w->state ? rt_recall_strategy(&w->state->choices, &q, index_of(w, stage)).strategy
		     : rt_choose_strategy(&q).strategy;
	return strategy == RT_ALONE || is_worth_workers(w, stage, rows) ? strategy : RT_ALONE;
}

/* --- the walk --- */

static bool run_range(struct walk *w, const struct rt_stage *stage, int32_t level, int64_t begin, int64_t end)
{
	if (begin == end)
		return true;
	bool separate = stage->steps > 1 && w->threads > 1 && (stage->mixed || w->calls.image->step_barriers);
	enum rt_strategy strategy = separate ? RT_COLUMNS : choose_strategy(w, stage, end - begin);
	bool ok = true;
	if (strategy != RT_COLUMNS || stage->steps == 1)
		return add_range(w, stage, strategy, level, begin, end);
	for (int i = 0; ok && i < stage->steps; i++) {
		struct rt_stage one = rt_stage_of_step(stage, i);
		ok = run_range(w, &one, level, begin, end);
	}
	return ok;
}

static bool has_edges(const struct image *image, const struct image_step *s)
{
	return s->sort && image->sort[s->sort - 1].edges;
}

/* Runs a stage over a range of nodes; one whose rows are edges over those to their children. */
static bool run_nodes(struct walk *w, const struct rt_stage *stage, int32_t level, int64_t begin, int64_t end)
{
	const int32_t *edges = w->order ? w->order->child_begin : NULL;
	if (edges && has_edges(w->calls.image, stage->step))
		return run_range(w, stage, level, edges[begin], edges[end]);
	return run_range(w, stage, level, begin, end);
}

/* The ranges of a stage's cases in a batch; adjacent ones are one range. */
static bool run_cases(struct walk *w, const struct rt_stage *stage, int32_t level, int64_t batch)
{
	const struct lin_order *o = w->order;
	const int32_t *begin = o->case_begin + batch * o->cases;
	int32_t from = begin[0], to = begin[0];
	bool ok = true;
	for (int c = 0; ok && c < o->cases; c++) {
		if (!(stage->step->cases >> c & 1) || begin[c] == begin[c + 1])
			continue;
		if (begin[c] != to) {
			ok = run_nodes(w, stage, level, from, to);
			from = begin[c];
		}
		to = begin[c + 1];
	}
	return ok && run_nodes(w, stage, level, from, to);
}

static bool run_batch(struct walk *w, const struct rt_stage *stage, int64_t b)
{
	const int32_t *begin = w->order->batch_begin;
	return stage->step->cases ? run_cases(w, stage, b, b)
				  : run_nodes(w, stage, b, begin[b], begin[b + 1]);
}

/* Ranges of one node are never divided. */
static bool run_node(struct walk *w, const struct rt_stage *stage, int64_t n)
{
	unsigned cases = stage->step->cases;
	return (cases && !(cases >> w->order->case_of[n] & 1)) || add_range(w, stage, RT_ALONE, -1, n, n + 1);
}

/* All rows of a domain in one range, or, of the leaves, which are batch 0, those of the stage's cases. */
static bool run_whole_range(struct walk *w, const struct rt_stage *stage, int64_t begin, int64_t end)
{
	if (stage->step->cases && begin < end)
		return run_cases(w, stage, -1, 0);
	return run_nodes(w, stage, -1, begin, end);
}

/* Runs the steps first .. next - 1 over a batch or a node. */
static bool run_steps(struct walk *w, int first, int next, enum granularity cut, int64_t at)
{
	const struct rt_stage *stage = w->state->stage;
	bool ok = true;
	for (int i = first; ok && i < next; i += stage[i].steps)
		ok = cut == BATCHES ? run_batch(w, &stage[i], at) : run_node(w, &stage[i], at);
	return ok;
}

/* --- spans --- */

/* The number of levels of the span that begins at a batch, upwards or downwards; 0 = none begins there. */
static int32_t levels_from(const struct lin_order *o, int32_t batch, bool down)
{
	int32_t place = o->span && batch ? (batch - 1) % o->span : 0, left = o->batches - batch;
	if (!o->span || !batch)
		return 0;
	if (down)
		return left == 1 || place == o->span - 1 ? place + 1 : 0;
	return place ? 0 : left < o->span ? left : o->span;
}

/* Whether the operations of all steps are known, and the image requests no other strategy for any. */
static bool can_run_span(const struct walk *w, int first, int next)
{
	const struct rt_stage *stage = w->state->stage;
	bool can = !w->calls.image->step_barriers;
	for (int i = first; i < next; i += stage[i].steps)
		can &= stage[i].known && !stage[i].mixed &&
		       (stage[i].strategy == RT_CHEAPEST || stage[i].strategy == RT_SUBTREES);
	return can;
}

/* Whether the schedule specifies subtrees for all steps, whatever is expected to be faster. */
static bool requires_span(const struct rt_span *s)
{
	bool required = true;
	for (int i = s->first; i < s->next; i += s->stage[i].steps)
		required &= s->stage[i].strategy == RT_SUBTREES;
	return required;
}

/* While workers sleep, spans are profitable only where they are required. */
static bool is_span_profitable(struct walk *w, const struct rt_span *s)
{
	if (!w->queued)
		w->awake = rt_team_awake(w->team);
	if (requires_span(s))
		return true;
	double gain = w->awake ? rt_span_gain(s, &w->state->choices) : 0;
	w->state->gained += gain > 0 ? gain : 0;
	return gain > 0;
}

/* Adds a job for each level, in the order of the run; returns the first. */
static int32_t record_span(const struct walk *w, const struct rt_range *r)
{
	int32_t first = w->calls.profile->jobs;
	for (int32_t n = 0; n < r->levels; n++) {
		struct rt_range level = *r;
		level.level += r->from_top ? r->levels - 1 - n : n;
		level.begin = w->order->batch_begin[level.level];
		level.end = w->order->batch_begin[level.level + 1];
		rt_profile_add_job(w->calls.profile, &level, n);
	}
	return first;
}

static void add_span(struct walk *w, const struct rt_span *s, bool down)
{
	const int32_t *begin = s->order->batch_begin + s->level;
	struct rt_stage all = {.step = &w->calls.image->step[s->first], .steps = s->next - s->first};
	struct rt_range r = {.begin = begin[0],
			     .end = begin[s->levels],
			     .step = s->first,
			     .steps = all.steps,
			     .level = s->level,
			     .levels = s->levels,
			     .strategy = RT_SUBTREES,
			     .from_top = down,
			     .cut = s->cut,
			     .downwards = alternate_sweep(w, &all)};
	if (!(s->levels & 1))
		alternate_sweep(w, &all);
	if (w->calls.profile)
		r.job = record_span(w, &r);
	w->cuts += rt_span_cuts(s);
	queue_range(w, &r);
}

/* Runs the span that begins at a batch, if there is one and dividing it by subtrees is profitable; returns
 * how many levels were run. */
static int32_t run_span(struct walk *w, int first, int next, int32_t batch, bool down)
{
	int32_t levels = w->team && w->threads > 1 ? levels_from(w->order, batch, down) : 0;
	struct rt_span s = {.order = w->order,
			    .stage = w->state->stage,
			    .first = first,
			    .next = next,
			    .level = down ? batch - levels + 1 : batch,
			    .levels = levels,
			    .threads = w->threads};
	if (levels < 2 || rt_span_cuts(&s) > CUTS || !can_run_span(w, first, next))
		return 0;
	if (w->cuts + rt_span_cuts(&s) > CUTS)
		flush_queue(w);
	s.cut = w->cut + w->cuts;
	s.barrier_cost = w->team->barrier_cost;
	s.machine = w->team->machine;
	rt_span_find_cuts(&s);
	if (!is_span_profitable(w, &s))
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
			ok = run_steps(w, first, next, BATCHES, batch);
	}
	return ok;
}

/* Runs the steps first .. next - 1 over all rows, for one step of the scan after the other: that is the level
 * of the ranges. */
static bool run_scan(struct walk *w, int first, int next, int64_t begin, int64_t end)
{
	const struct rt_stage *stage = w->state->stage;
	const struct image_step *s = &w->calls.image->step[first];
	bool ok = true;
	for (int32_t step = s->first; ok && step < s->last; step++)
		for (int i = first; ok && i < next; i += stage[i].steps)
			ok = run_range(w, &stage[i], step, begin, end);
	return ok;
}

/* Children have lower numbers than their parents and lie in earlier batches, so ascending ranges find the
 * states of children that they read, and descending ones those of parents. */
static bool run_domain(struct walk *w, int first, int next)
{
	const struct domain *d = &domains[w->calls.image->step[first].domain];
	const struct rt_stage *stage = w->state->stage;
	int64_t begin = first_row(d, w->order), end = end_row(d, w->order);
	bool ok = true;
	switch (d->cut) {
	case WHOLE:
		for (int i = first; ok && i < next; i += stage[i].steps)
			ok = run_whole_range(w, &stage[i], begin, end);
		break;
	case BATCHES:
		return run_batches(w, first, next, d->past_leaves, w->order->batches, d->down);
	case NODES:
		for (int64_t i = begin; ok && i < end; i++)
			ok = run_steps(w, first, next, NODES, d->down ? end - 1 - (i - begin) : i);
		break;
	case STEPS:
		return run_scan(w, first, next, begin, end);
	}
	return ok;
}

/* Operations that take as long as giving them to a worker that spins, and waiting for their end. */
static double handing_operations(const struct target *machine)
{
	return 2 * target_handing_time(machine) * target_kernel_rate(machine);
}

int rt_enter_team(struct rt_team *team, double operations)
{
	bool profitable = team && operations >= handing_operations(team->machine);
	return profitable ? rt_team_enter(team, operations) : 0;
}

/* How often a step runs over its rows. */
static int times_of_step(const struct image_step *s)
{
	return s->domain == IMAGE_DOMAIN_SCAN ? s->last - s->first : 1;
}

/* Operations that threads can divide. */
static double operations_of_step(const struct image_step *s)
{
	return s->target == IMAGE_TARGET_HOST ? (double)s->operations * times_of_step(s) : 0;
}

/* Half of all operations: what workers do at least, in a team of two. */
double rt_worker_operations(const struct image *image, int64_t nodes)
{
	double operations = 0;
	for (int i = image->folds; i < image->steps && image->code.kernels; i++)
		operations += operations_of_step(&image->step[i]);
	return operations * nodes / 2;
}

/* Whether two neighbours run over one range before the next one. */
static bool share_domain(const struct image_step *a, const struct image_step *b)
{
	return a->domain == b->domain && !b->apart;
}

static bool share_ranges(const struct image_step *a, const struct image_step *b)
{
	return share_domain(a, b) && a->cases == b->cases && a->sort == b->sort && a->target == b->target;
}

static void find_stages(const struct image *image, struct rt_stage *stage)
{
	for (int i = image->folds, next; i < image->steps; i = next) {
		for (next = i + 1; next < image->steps && share_ranges(&image->step[next - 1], &image->step[next]);)
			next++;
		stage[i] = rt_stage_of(&image->step[i], next - i);
	}
}

static bool run_part(struct walk *w, const struct rt_part *part)
{
	const struct image_step *step = w->calls.image->step;
	bool ok = true;
	w->order = part->order;
	for (int i = part->first, next; ok && i < part->next; i = next) {
		for (next = i + 1; next < part->next && share_domain(&step[next - 1], &step[next]);)
			next++;
		ok = run_domain(w, i, next);
	}
	return ok;
}

bool rt_run_steps(const struct image *image, struct rt_tables tables, const int64_t *sizes,
		  const struct rt_part *part, int parts, struct rt_team *team, int threads,
		  struct rt_walk_state *state, struct rt_profile *profile, struct diags *diags)
{
	struct rt_range queue[QUEUE + 1];
	int32_t cut[CUTS];
	struct walk w = {.calls = {image,
				   {tables.buffers, sizes},
				   tables.stride,
				   parts ? rt_span_columns(part->order) : 0,
				   profile,
				   pthread_self(),
				   diags,
				   &state->driver,
				   team ? (double)team->machine->l2_bytes : 0,
				   rt_find_buffer(image, IMAGE_STEP)},
			 .team = team,
			 .threads = threads,
			 .state = state,
			 .queue = queue,
			 .cut = cut};
	bool ok = rt_reserve_driver(&state->driver, image, diags);
	find_stages(image, state->stage);
	for (int i = 0; ok && i < parts; i++)
		ok = run_part(&w, &part[i]);
	flush_queue(&w);
	if (profile)
		rt_profile_time_jobs(profile);
	return ok;
}

/* --- code --- */

static int64_t count_rows(const struct lin_order *o, bool edges, int64_t begin, int64_t end)
{
	return edges ? o->child_begin[end] - o->child_begin[begin] : end - begin;
}

/* The most rows of a stage's cases in a batch. */
static int64_t rows_of_batch(const struct lin_order *o, unsigned cases, bool edges, int64_t b)
{
	const int32_t *begin = o->case_begin + b * o->cases;
	int64_t rows = cases ? 0 : count_rows(o, edges, o->batch_begin[b], o->batch_begin[b + 1]);
	for (int c = 0; cases && c < o->cases; c++)
		rows += cases >> c & 1 ? count_rows(o, edges, begin[c], begin[c + 1]) : 0;
	return rows;
}

/* The most rows that a range of the step has. */
static int64_t rows_of_step(const struct image *image, const struct image_step *s, const int64_t *sizes, const struct lin_order *o)
{
	const struct domain *d = &domains[s->domain];
	bool edges = has_edges(image, s);
	int64_t rows = edges ? o->edges : sizes[d->rows] - (d->past_leaves ? sizes[IMAGE_LEAVES] : 0), most = 0;
	bool in_batches = d->cut == BATCHES, at_leaves = d->cut == WHOLE && s->cases && rows;
	if (d->cut == NODES)
		return rows ? 1 : 0;
	if (!in_batches && !at_leaves)
		return rows;
	for (int64_t b = in_batches && d->past_leaves; b < (at_leaves ? 1 : sizes[IMAGE_BATCHES]); b++) {
		int64_t here = rows_of_batch(o, s->cases, edges, b);
		most = here > most ? here : most;
	}
	return most;
}

static void note_rows(const struct image_step *s, int64_t n, int64_t *rows)
{
	if (s->target != IMAGE_TARGET_HOST)
		return;
	rows[s->kernel] = n > rows[s->kernel] ? n : rows[s->kernel];
}

bool rt_need_code(const struct image *image, const int64_t *sizes, const struct lin_order *order, int64_t *rows,
		  double *seconds, struct diags *diags)
{
	if (!image->code.need)
		return true;
	memset(rows, 0, image->kernels * sizeof *rows);
	for (int i = image->folds; i < image->steps; i++)
		note_rows(&image->step[i], rows_of_step(image, &image->step[i], sizes, order), rows);
	return image->code.need(image->code.maker, rows, seconds, diags);
}

bool rt_need_all_code(const struct image *image, int64_t most, int64_t *rows, struct diags *diags)
{
	double seconds = 0;
	if (!image->code.need)
		return true;
	memset(rows, 0, image->kernels * sizeof *rows);
	for (int i = image->folds; i < image->steps; i++)
		note_rows(&image->step[i], most, rows);
	return image->code.need(image->code.maker, rows, &seconds, diags);
}

/* --- at binding --- */

bool rt_need_folds(const struct image *image, int64_t *rows, struct diags *diags)
{
	double seconds = 0;
	if (!image->code.need)
		return true;
	memset(rows, 0, image->kernels * sizeof *rows);
	for (int i = 0; i < image->folds; i++)
		note_rows(&image->step[i], image_fold_rows(&image->fold[i]), rows);
	return image->code.need(image->code.maker, rows, &seconds, diags);
}

double rt_fold_operations(const struct image *image)
{
	double operations = 0;
	for (int i = 0; i < image->folds && image->code.kernels; i++)
		operations += (double)image->step[i].operations * image_fold_rows(&image->fold[i]);
	return operations / 2;
}

/* There is no structure, so no size but IMAGE_ONE. */
bool rt_run_fold(const struct image *image, int fold, void *const *buffers, struct rt_team *team, int threads,
		 struct diags *diags)
{
	const int64_t sizes[IMAGE_SIZES] = {[IMAGE_ONE] = 1};
	struct rt_range queue[2];
	struct walk w = {.calls = {image, {buffers, sizes}, .diags = diags, .step_buffer = -1},
			 .team = team,
			 .threads = threads,
			 .queue = queue};
	struct rt_stage stage = rt_stage_of(&image->step[fold], 1);
	bool ok = run_range(&w, &stage, -1, 0, image_fold_rows(&image->fold[fold]));
	flush_queue(&w);
	return ok;
}
