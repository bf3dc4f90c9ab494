/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges divided by each strategy, over a fake image whose steps read whole rows of what the step before
 * wrote: the results, and the record of what was called. */
#include "runtime/record.h"
#include "runtime/shared.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 200, BLOCKS = 5, LANES = 3, WIDTH = BLOCKS * LANES, THREADS = 4, RUNS = 4, MUCH = INT_MAX };
enum { LEFT, RIGHT, HIDDEN, TOTAL, BUFFERS };

/* --- kernels --- */

static float total_of(const float *row)
{
	float sum = 0;
	for (int c = 0; c < WIDTH; c++)
		sum += row[c];
	return sum;
}

typedef float element(void *const *buffers, int64_t node, int column);

static void sweep_blocks(void *const *b, int to, element *of, const struct image_range *r)
{
	for (int64_t i = 0, block = r->first; i < r->blocks; i++, block += r->direction)
		for (int64_t n = r->begin; n < r->end; n++)
			for (int c = block * LANES; c < (block + 1) * LANES; c++)
				((float *)b[to])[n * WIDTH + c] = of(b, n, c);
}

/* Small integers, so that sums are exact. */
static float hidden_of(void *const *b, int64_t n, int column)
{
	const int32_t *left = b[LEFT], *right = b[RIGHT];
	float sum = column + 1;
	if (left[n] >= 0)
		sum += total_of((float *)b[HIDDEN] + left[n] * WIDTH);
	if (right[n] >= 0)
		sum += total_of((float *)b[HIDDEN] + right[n] * WIDTH);
	return (int)sum % 97;
}

static float sum_of(void *const *b, int64_t n, int column)
{
	return column + total_of((float *)b[HIDDEN] + n * WIDTH);
}

static void make_hidden(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			int64_t direction)
{
	sweep_blocks(b, HIDDEN, hidden_of, &(struct image_range){begin, end, first, blocks, direction});
}

static void make_total(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		       int64_t direction)
{
	sweep_blocks(b, TOTAL, sum_of, &(struct image_range){begin, end, first, blocks, direction});
}

/* --- the image --- */

static image_kernel *const kernels[] = {make_hidden, make_total};
static const struct image_buffer buffers[BUFFERS] = {
    [LEFT] = {"left", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [RIGHT] = {"right", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 1, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [HIDDEN] = {"hidden", IMAGE_STATE, DTYPE_F32, IMAGE_NODES, 0, WIDTH, 1, {WIDTH}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [TOTAL] = {"total", IMAGE_OUTPUT, DTYPE_F32, IMAGE_NODES, 0, WIDTH, 1, {WIDTH}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
};
static const struct image_output outputs[] = {{.name = "total", .buffer = TOTAL}};
static const struct image_step steps[] = {{.kernel = 0,
					   .domain = IMAGE_DOMAIN_LEAVES,
					   .rows = 4,
					   .operations = MUCH,
					   .blocks = BLOCKS,
					   .block_bytes = 1000,
					   .weight_bytes = 1000 * BLOCKS},
					  {.kernel = 0,
					   .domain = IMAGE_DOMAIN_INNER,
					   .rows = 4,
					   .operations = MUCH,
					   .blocks = BLOCKS,
					   .block_bytes = 1000,
					   .weight_bytes = 1000 * BLOCKS},
					  {.kernel = 1,
					   .domain = IMAGE_DOMAIN_INNER,
					   .rows = 2,
					   .operations = MUCH,
					   .blocks = BLOCKS,
					   .block_bytes = 1000,
					   .weight_bytes = 1000 * BLOCKS}};
static struct image image = {.children = 2,
			     .buffers = BUFFERS,
			     .buffer = buffers,
			     .steps = 3,
			     .step = steps,
			     .outputs = 1,
			     .output = outputs,
			     .code = {.kernels = kernels}};

/* --- a forest --- */

static int32_t child_begin[NODES + 1], children[NODES], root[NODES];
static struct lin_forest forest = {0, 0, child_begin, children, root, NULL, NULL, 0};

static void make_forest(int nodes)
{
	int open[NODES], n = 0, edges = 0;
	for (int i = 0; i < nodes; i++) {
		child_begin[i] = edges;
		if (n >= 2 && rand() % 2) {
			children[edges++] = open[n - 2];
			children[edges++] = open[n - 1];
			n -= 2;
		}
		open[n++] = i;
	}
	child_begin[nodes] = edges;
	memcpy(root, open, n * sizeof *root);
	forest.nodes = nodes;
	forest.inputs = n;
}

/* --- the record --- */

/* Whether the events of each chunk follow each other in jobs that do, and lie within their jobs; only those
 * of a level of a span may begin before it. */
static bool in_order(const struct rt_profile *p)
{
	for (int chunk = 0; chunk < p->threads; chunk++)
		for (int64_t i = 0; i < p->track[chunk].events; i++) {
			const struct rt_event *e = &p->track[chunk].event[i];
			const struct rt_job *j = &p->job[e->job];
			if (e->start > e->stop || (e->start < j->start && !j->follows) || e->stop > j->stop ||
			    e->step < j->step || e->step >= j->step + j->steps ||
			    (i && e->start < e[-1].stop))
				return false;
		}
	for (int64_t i = 0; i + 1 < p->jobs; i++)
		if (p->job[i].stop > p->job[i + 1].start)
			return false;
	return p->phase[0] <= p->phase[1] && p->phase[1] <= p->phase[2] && p->phase[2] <= p->job[0].start &&
	       p->job[p->jobs - 1].stop <= p->phase[RT_PHASES];
}

/* Whether each block of each row was computed once by each step. */
static bool are_rows_covered(const struct rt_profile *p, const struct rt_session *s)
{
	static int times[3][NODES][BLOCKS];
	bool once = true;
	memset(times, 0, sizeof times);
	for (int chunk = 0; chunk < p->threads; chunk++)
		for (int64_t i = 0; i < p->track[chunk].events; i++) {
			const struct rt_event *e = &p->track[chunk].event[i];
			for (int64_t n = e->begin; n < e->end; n++)
				for (int b = e->first; b < e->first + e->blocks; b++)
					times[e->step][n][b]++;
		}
	for (int step = 0; step < 3; step++)
		for (int n = 0; n < s->order.nodes; n++)
			for (int b = 0; b < BLOCKS; b++)
				once &= times[step][n][b] == ((step == 0) == (n < s->order.leaves));
	return once;
}

/* Whether the direction of the sweeps of each step alternates. */
static bool sweeps_alternate(const struct rt_profile *p)
{
	int direction[3] = {0};
	bool ok = true;
	for (int64_t i = 0; i < p->track[0].events; i++) {
		const struct rt_event *e = &p->track[0].event[i];
		ok &= e->direction != direction[e->step];
		direction[e->step] = e->direction;
	}
	return ok;
}

/* All jobs have the requested strategy and the rows of their levels; only spans are divided by subtrees. */
static bool is_as_requested(const struct rt_profile *p, const struct rt_session *s, enum rt_strategy strategy)
{
	bool ok = strategy == RT_SUBTREES || sweeps_alternate(p);
	int spans = 0;
	for (int64_t i = 0; i < p->jobs; i++) {
		const struct rt_job *j = &p->job[i];
		int64_t begin = j->level < 0 ? 0 : s->order.batch_begin[j->level];
		int64_t end = j->level < 0 ? s->order.leaves : s->order.batch_begin[j->level + 1];
		ok &= j->begin == begin && j->end == end && (strategy != RT_COLUMNS || j->steps == 1);
		ok &= j->strategy == strategy ||
		      (strategy == RT_SUBTREES && j->strategy == RT_ROWS && !j->follows);
		ok &= !j->follows || (j->level % image.unroll != 1 && j->level == j[-1].level + 1);
		spans += j->strategy == RT_SUBTREES && !j->follows;
	}
	return ok && (spans > 1) == (strategy == RT_SUBTREES);
}

/* --- runs --- */

static bool run_session(struct rt_session *s, struct rt_team *team, struct diags *diags)
{
	if (team)
		team->resume = 0; /* on a busy machine, too, the team is to run this */
	struct rt_binding binding = {.image = s->image};
	return rt_session_run(s, &binding, team, &(struct rt_minibatch){forest, NULL}, diags);
}

static const enum image_strategy requested_strategies[] = {[RT_ALONE] = IMAGE_ALONE,
							   [RT_ROWS] = IMAGE_ROWS,
							   [RT_COLUMNS] = IMAGE_COLUMNS,
							   [RT_SUBTREES] = IMAGE_SUBTREES};

static void test_strategy(enum rt_strategy strategy, int threads, const char *name)
{
	struct rt_team team;
	struct rt_session s, alone;
	struct rt_profile p;
	struct diags diags;
	bool same = true, recorded = true;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &allocator_default);
	rt_team_init(&team, &allocator_default, threads);
	struct image_step own[3];
	struct image requesting = image;
	for (int k = 0; k < 3; k++) {
		own[k] = steps[k];
		own[k].strategy = requested_strategies[strategy];
	}
	requesting.step = own;
	bool ok = rt_session_init(&s, &allocator_default, &requesting, &diags);
	ok &= rt_session_init(&alone, &allocator_default, &image, &diags);
	for (int i = 0; ok && i < RUNS; i++) {
		s.profile = i % 2 ? NULL : &p;
		make_forest(NODES - i);
		ok = run_session(&alone, NULL, &diags) && run_session(&s, &team, &diags);
		size_t bytes = sizeof(float) * WIDTH * (s.order.nodes - s.order.leaves);
		same &= ok && !memcmp((float *)s.buffers[TOTAL] + s.order.leaves * WIDTH,
				      (float *)alone.buffers[TOTAL] + s.order.leaves * WIDTH, bytes);
		if (s.profile)
			recorded &= !p.lost && p.threads == threads && in_order(&p) &&
				    are_rows_covered(&p, &s) && is_as_requested(&p, &s, strategy);
	}
	tap_ok(ok && same, "%s, %d threads: the same results as alone", name, threads);
	tap_ok(recorded, "%s, %d threads: each block of each row once, as recorded", name, threads);
	rt_team_stop(&team);
	rt_session_free(&s);
	rt_session_free(&alone);
	rt_profile_free(&p);
	diags_free(&diags);
}

/* --- what the image requests --- */

static const struct requested {
	const char *name;
	enum image_strategy strategy[3]; /* by step */
	bool migrating, step_barriers;
	int together; /* steps of a job of inner nodes */
} requested[] = {
    {"rows", {IMAGE_ROWS, IMAGE_ROWS, IMAGE_ROWS}, false, false, 2},
    {"rows, a barrier after each step", {IMAGE_ROWS, IMAGE_ROWS, IMAGE_ROWS}, false, true, 1},
    {"columns", {IMAGE_COLUMNS, IMAGE_COLUMNS, IMAGE_COLUMNS}, false, false, 1},
    {"migrating columns", {IMAGE_COLUMNS, IMAGE_COLUMNS, IMAGE_COLUMNS}, true, false, 1},
    {"one strategy each", {IMAGE_ALONE, IMAGE_COLUMNS, IMAGE_ROWS}, false, false, 1},
    {"nothing", {IMAGE_ALONE, IMAGE_ALONE, IMAGE_ALONE}, false, false, 2},
};

static bool jobs_are(const struct rt_profile *p, const struct requested *a)
{
	static const enum rt_strategy strategies[] = {
	    [IMAGE_ALONE] = RT_ALONE, [IMAGE_ROWS] = RT_ROWS, [IMAGE_COLUMNS] = RT_COLUMNS};
	for (int64_t i = 0; i < p->jobs; i++)
		if (p->job[i].strategy != strategies[a->strategy[p->job[i].step]] ||
		    p->job[i].steps != (p->job[i].step ? a->together : 1))
			return false;
	return true;
}

/* Finds whether some sweep went downwards, and whether a chunk's columns of the second step changed. */
static void inspect_events(const struct rt_profile *p, bool *downwards, bool *moved)
{
	for (int chunk = 0; chunk < p->threads; chunk++) {
		int64_t first = -1;
		for (int64_t i = 0; i < p->track[chunk].events; i++) {
			const struct rt_event *e = &p->track[chunk].event[i];
			*downwards |= e->direction < 0;
			*moved |= e->step == 1 && first >= 0 && e->first != first;
			first = e->step == 1 ? e->first : first;
		}
	}
}

static void test_requested(const struct requested *a)
{
	struct image_step own[3];
	struct image i = image;
	struct rt_team team;
	struct rt_session s, alone;
	struct rt_profile p;
	struct diags diags;
	bool downwards = false, moved = false;
	for (int k = 0; k < 3; k++) {
		own[k] = steps[k];
		own[k].strategy = a->strategy[k];
	}
	i.step = own;
	i.migrating = a->migrating;
	i.step_barriers = a->step_barriers;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &allocator_default);
	rt_team_init(&team, &allocator_default, 2);
	make_forest(NODES);
	bool ok = rt_session_init(&s, &allocator_default, &i, &diags);
	ok &= rt_session_init(&alone, &allocator_default, &image, &diags);
	s.profile = &p;
	ok = ok && run_session(&s, &team, &diags) && run_session(&alone, NULL, &diags);
	tap_ok(ok && !memcmp(s.buffers[HIDDEN], alone.buffers[HIDDEN], sizeof(float) * WIDTH * NODES),
	       "%s requested: the same results", a->name);
	inspect_events(&p, &downwards, &moved);
	tap_ok(ok && jobs_are(&p, a) && are_rows_covered(&p, &s) && downwards == !a->migrating &&
		   moved == a->migrating,
	       "%s requested: divided as requested", a->name);
	rt_team_stop(&team);
	rt_session_free(&s);
	rt_session_free(&alone);
	rt_profile_free(&p);
	diags_free(&diags);
}

/* --- cases --- */

/* Nodes without a parent are told from others; the totals are of all of them. */
static const struct image_case cases[] = {{"leaf", false, -1, IMAGE_EITHER, 0, NULL},
					  {"top", true, -1, IMAGE_NO, 0, NULL},
					  {"inner", true, -1, IMAGE_EITHER, 0, NULL}};
static struct image_step case_step(int kernel, enum image_domain domain, unsigned of)
{
	return (struct image_step){.kernel = kernel,
				   .domain = domain,
				   .rows = 4,
				   .operations = MUCH,
				   .blocks = BLOCKS,
				   .block_bytes = 1000,
				   .weight_bytes = 1000 * BLOCKS,
				   .cases = of,
				   .strategy = IMAGE_SUBTREES};
}

static bool run_cases(struct rt_session *s, const struct image *of, struct rt_team *team, struct diags *diags)
{
	struct rt_binding binding = {.image = of};
	return rt_session_run(s, &binding, team, &(struct rt_minibatch){forest, NULL}, diags);
}

static void test_cases(int threads)
{
	struct image told = image;
	struct rt_team team;
	struct rt_session s, alone;
	struct rt_profile p;
	struct diags diags;
	bool same = true, spans = false;
	const struct image_step case_steps[] = {
	    case_step(0, IMAGE_DOMAIN_LEAVES, 1), case_step(0, IMAGE_DOMAIN_INNER, 2),
	    case_step(0, IMAGE_DOMAIN_INNER, 4), case_step(1, IMAGE_DOMAIN_INNER, 0)};
	told.cases = 3, told.case_at = cases;
	told.steps = 4, told.step = case_steps;
	told.unroll = 3;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &allocator_default);
	rt_team_init(&team, &allocator_default, threads);
	bool ok = rt_session_init(&s, &allocator_default, &told, &diags) &&
		  rt_session_init(&alone, &allocator_default, &image, &diags);
	s.profile = &p;
	for (int i = 0; ok && i < RUNS; i++) {
		make_forest(NODES - i);
		ok = run_session(&alone, NULL, &diags) && run_cases(&s, &told, &team, &diags);
		for (int n = 0; ok && n < forest.nodes; n++) {
			const float *a = rt_session_row(&alone, 0, n), *b = rt_session_row(&s, 0, n);
			same &= child_begin[n] == child_begin[n + 1] || !memcmp(a, b, WIDTH * sizeof *a);
		}
		for (int64_t j = 0; j < p.jobs; j++)
			spans |= p.job[j].strategy == RT_SUBTREES && p.job[j].steps == 3;
	}
	tap_ok(ok && same && spans, "subtrees of several cases, %d threads: the same results as alone",
	       threads);
	rt_team_stop(&team);
	rt_session_free(&s);
	rt_session_free(&alone);
	rt_profile_free(&p);
	diags_free(&diags);
}

/* --- the choice --- */

static struct rt_estimate estimate_of(const struct rt_stage *stage, int64_t rows)
{
	return rt_choose_strategy(&(struct rt_query){stage, rows, 2, 100, target_find("avx2")});
}

static enum rt_strategy chosen_for(const struct rt_stage *stage, int64_t rows)
{
	return estimate_of(stage, rows).strategy;
}

static void test_choice(void)
{
	static const struct image_step lstm[] = {{.kernel = 0,
						  .domain = IMAGE_DOMAIN_INNER,
						  .rows = 4,
						  .operations = 1346048,
						  .blocks = 32,
						  .block_bytes = 82 << 10,
						  .weight_bytes = 32 * 82 << 10}};
	static const struct image_step small[] = {{.kernel = 0,
						   .domain = IMAGE_DOMAIN_INNER,
						   .rows = 4,
						   .operations = 2000,
						   .blocks = 4,
						   .block_bytes = 1000,
						   .weight_bytes = 4000}};
	static const struct image_step whole[] = {{.kernel = 0,
						   .domain = IMAGE_DOMAIN_INNER,
						   .rows = 4,
						   .operations = 1346048,
						   .blocks = 1,
						   .block_bytes = 2624 << 10,
						   .weight_bytes = 2624 << 10}};
	struct rt_stage a = rt_stage_of(lstm, 1), b = rt_stage_of(small, 1), c = rt_stage_of(whole, 1);
	tap_ok(chosen_for(&a, 1) == RT_COLUMNS && chosen_for(&a, 3) == RT_COLUMNS,
	       "narrow levels of many weights are divided by columns");
	tap_ok(chosen_for(&b, 1) == RT_ALONE && chosen_for(&b, 10) == RT_ALONE, "little work is not divided");
	tap_ok(chosen_for(&c, 1) == RT_ALONE && chosen_for(&c, 64) == RT_ROWS,
	       "without blocks of columns by rows");
	static const struct image_step same[] = {{.kernel = 0,
						  .domain = IMAGE_DOMAIN_INNER,
						  .rows = 4,
						  .operations = 1346048,
						  .blocks = 32,
						  .block_bytes = 82 << 10,
						  .weight_bytes = 82 << 10}};
	struct rt_stage shared = rt_stage_of(same, 1);
	tap_ok(shared.weights == 82 << 10 && estimate_of(&shared, 1).alone < estimate_of(&a, 1).alone,
	       "weights that blocks share count once");
	tap_ok(estimate_of(&a, 8).alone < 2.1 * estimate_of(&a, 4).alone &&
		   estimate_of(&a, 5).alone > estimate_of(&a, 4).alone &&
		   estimate_of(&a, 1).alone > 0.3 * estimate_of(&a, 4).alone,
	       "a row alone takes longer than one of a tile");
	tap_ok(rt_chunk_begin(19, 1, 1, 2) == 10 && rt_chunk_begin(19, 1, 2, 2) == 19,
	       "19 blocks are 10 and 9");
}

/* A product of 256 x 256, of the given tiles and bytes that a row reads of others. */
static struct image_step product_of(int tiles, int64_t read_bytes)
{
	return (struct image_step){.domain = IMAGE_DOMAIN_INNER,
				   .rows = 4,
				   .tiles = tiles,
				   .operations = 131072,
				   .blocks = 8,
				   .block_bytes = 32 << 10,
				   .weight_bytes = 256 << 10,
				   .state_bytes = read_bytes,
				   .read_bytes = read_bytes};
}

static struct rt_estimate estimate_of_product(int tiles, int64_t read_bytes, int64_t rows)
{
	struct image_step step = product_of(tiles, read_bytes);
	struct rt_stage stage = rt_stage_of(&step, 1);
	return estimate_of(&stage, rows);
}

static void test_estimates(void)
{
	enum { EACH = 0xf, HALVES = 0xb, LARGEST = 0x9 };
	tap_ok(estimate_of_product(HALVES, 0, 2).alone == estimate_of_product(EACH, 0, 2).alone &&
		   estimate_of_product(HALVES, 0, 3).alone > estimate_of_product(EACH, 0, 3).alone &&
		   estimate_of_product(LARGEST, 0, 2).alone > estimate_of_product(EACH, 0, 2).alone &&
		   estimate_of_product(0, 0, 3).alone == estimate_of_product(EACH, 0, 3).alone,
	       "rows behind the last whole tile have the tiles that there are");
	tap_ok(estimate_of_product(EACH, 0, 2).strategy == RT_COLUMNS, "two rows are a tile, divided by columns");
	tap_ok(estimate_of_product(EACH, 2048, 2).alone == estimate_of_product(EACH, 0, 2).alone &&
		   estimate_of_product(EACH, 2048, 2).least > estimate_of_product(EACH, 0, 2).least &&
		   estimate_of_product(EACH, 1 << 20, 2).strategy == RT_ALONE,
	       "what other threads have written takes time to read");
	static const struct image_step copy[] = {
	    {.domain = IMAGE_DOMAIN_LEAVES, .rows = 1, .operations = 64, .blocks = 1, .moved_bytes = 1 << 14}};
	static const struct image_step little[] = {
	    {.domain = IMAGE_DOMAIN_LEAVES, .rows = 1, .operations = 64, .blocks = 1, .moved_bytes = 1 << 8}};
	struct rt_stage a = rt_stage_of(copy, 1), b = rt_stage_of(little, 1);
	tap_ok(chosen_for(&a, 64) == RT_ROWS && chosen_for(&b, 64) == RT_ALONE,
	       "rows that are moved take as long as their bytes");
}

/* A record that cannot be kept does not keep the run from ending. */
/* An image is copied with a border, and what follows reads each of its channels through windows: who divides the
 * channels of both exchanges nothing. */
static void test_going_on(void)
{
	enum { CHANNELS = 576, ROW = 1 << 20 };
	struct image_step step[] = {{.operations = 1 << 17, .blocks = CHANNELS, .columns = 1, .moved_bytes = 2 * ROW},
				    {.operations = 1 << 19,
				     .blocks = CHANNELS,
				     .columns = 1,
				     .block_bytes = 36,
				     .weight_bytes = 36 * CHANNELS,
				     .read_bytes = ROW}};
	struct rt_stage stage = rt_stage_of(step, 2), apart = rt_stage_of_step(&stage, 1);
	struct rt_estimate waits = estimate_of(&stage, 1), waits_apart = estimate_of(&apart, 1);
	step[1].after = 1;
	stage = rt_stage_of(step, 2);
	apart = rt_stage_of_step(&stage, 1);
	struct rt_estimate both = estimate_of(&stage, 1), second = estimate_of(&apart, 1);
	tap_ok(both.strategy == RT_COLUMNS && second.strategy == RT_COLUMNS &&
		   both.least < 0.8 * both.alone && both.least < 0.8 * waits.least &&
		   second.least < 0.8 * waits_apart.least,
	       "threads go on to a step that uses only their own columns, without the cost of an exchange: "
	       "%.0f, else %.0f ns",
	       both.least, waits.least);
	step[1].columns = 0;
	tap_ok(estimate_of(&apart, 1).least == waits_apart.least, "but not where its blocks are others");
}

static void *refuse_memory(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)p, (void)old_size, (void)new_size;
	return NULL;
}

static void test_lost(void)
{
	const struct allocator none = {refuse_memory, NULL};
	struct rt_session s;
	struct rt_profile p;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	rt_profile_init(&p, &none);
	bool ok = rt_session_init(&s, &allocator_default, &image, &diags);
	s.profile = &p;
	tap_ok(ok && run_session(&s, NULL, &diags) && p.lost && !p.jobs,
	       "without memory a run is not recorded");
	rt_session_free(&s);
	diags_free(&diags);
}

int main(void)
{
	static const char *const names[] = {"rows", "columns", "subtrees"};
	srand(3);
	for (int threads = 2; threads <= THREADS; threads++)
		for (int i = 0; i < 3; i++) {
			image.unroll = i < 2 ? threads - 2 : threads;
			test_strategy(RT_ROWS + i, threads, names[i]);
		}
	for (int threads = 2; threads <= THREADS; threads++)
		test_cases(threads);
	for (size_t i = 0; i < sizeof requested / sizeof *requested; i++)
		test_requested(&requested[i]);
	test_choice();
	test_estimates();
	test_going_on();
	test_lost();
	return tap_done();
}
