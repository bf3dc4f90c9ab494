/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Ranges that are divided among threads, over a fake image: each row once, after what it reads, in blocks of
 * tiles; and ranges that must not be divided. */
#include "runtime/runtime.h"
#include "tests/tap.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 3000, CALLS = 20000, TILE = 4 };

/* --- kernels that keep a record --- */

struct call {
	int kernel;
	int64_t begin, end;
};

static struct call calls[CALLS];
static atomic_int made;
static pthread_t caller;
static atomic_bool strangers; /* a call came from another thread */

static void record_call(int kernel, int64_t begin, int64_t end)
{
	int i = atomic_fetch_add(&made, 1);
	if (i < CALLS)
		calls[i] = (struct call){kernel, begin, end};
	if (!pthread_equal(pthread_self(), caller))
		atomic_store(&strangers, true);
}

/* height[n] = 1 + the greatest of the children's; rows are counted in `times`. */
enum { LEFT, RIGHT, HEIGHT, TIMES, TOTAL, BUFFERS };

static void compute_height(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			   int64_t direction)
{
	const int32_t *left = b[LEFT], *right = b[RIGHT];
	float *height = b[HEIGHT], *times = b[TIMES];
	(void)first, (void)blocks, (void)direction;
	record_call(0, begin, end);
	for (int64_t n = begin; n < end; n++) {
		float l = left[n] < 0 ? 0 : height[left[n]], r = right[n] < 0 ? 0 : height[right[n]];
		height[n] = 1 + (l > r ? l : r);
		times[n]++;
	}
}

/* Reads what the step before wrote at the same row. */
static void add_up(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		   int64_t direction)
{
	(void)first, (void)blocks, (void)direction;
	record_call(1, begin, end);
	for (int64_t n = begin; n < end; n++)
		((float *)b[TOTAL])[n] = ((float *)b[HEIGHT])[n] + 1000 * ((float *)b[TIMES])[n];
}

static void clear_times(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			int64_t direction)
{
	(void)first, (void)blocks, (void)direction;
	record_call(2, begin, end);
	memset((float *)b[TIMES] + begin, 0, (end - begin) * sizeof(float));
}

static image_kernel *const kernels[] = {compute_height, add_up, clear_times};

static bool interpret_kernel(void *self, int kernel, const struct image_frame *frame,
			     const struct image_range *r, struct diags *diags)
{
	(void)self, (void)diags;
	kernels[kernel](frame->buffers, r->begin, r->end, r->first, r->blocks, r->direction);
	return true;
}

static const struct image_buffer buffers[BUFFERS] = {
    [LEFT] = {"left", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 0, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [RIGHT] = {"right", IMAGE_CHILD, DTYPE_I32, IMAGE_NODES, 1, 1, 0, {0}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [HEIGHT] = {"height", IMAGE_STATE, DTYPE_F32, IMAGE_NODES, 0, 1, 1, {1}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
    [TIMES] = {"times", IMAGE_SCRATCH, DTYPE_F32, IMAGE_NODES, 0, 1, 1, {1}, {1}, false, TIMES, 0, 2, 0, 2, 0, 0},
    [TOTAL] = {"total", IMAGE_OUTPUT, DTYPE_F32, IMAGE_NODES, 0, 1, 1, {1}, {1}, false, 0, 0, 0, 0, 0, 0, 0},
};
static const struct image_output outputs[] = {{.name = "total", .buffer = TOTAL}};

/* --- a forest --- */

static int32_t child_begin[NODES + 1], children[NODES], root[NODES], height[NODES];
static struct lin_forest forest = {0, 0, child_begin, children, root, NULL, NULL, 0};

/* Binary trees with their nodes in post order, from a stack of roots. */
static void make_forest(int nodes)
{
	int open[NODES], n = 0, edges = 0;
	for (int i = 0; i < nodes; i++) {
		child_begin[i] = edges;
		height[i] = 1;
		if (n >= 2 && rand() % 2) {
			for (int k = 0; k < 2; k++) {
				int child = open[n - 2 + k];
				children[edges++] = child;
				height[i] = height[child] >= height[i] ? height[child] + 1 : height[i];
			}
			n -= 2;
		}
		open[n++] = i;
	}
	child_begin[nodes] = edges;
	memcpy(root, open, n * sizeof *root);
	forest.nodes = nodes;
	forest.inputs = n;
}

/* --- runs --- */

static bool totals_are_right(const struct rt_session *s)
{
	for (int n = 0; n < forest.nodes; n++)
		if (*(const float *)rt_session_row(s, 0, n) != height[n] + 1000)
			return false;
	return true;
}

/* Blocks of one batch begin at whole or half tiles of it. */
static bool cut_at_tiles(const struct rt_session *s)
{
	for (int i = 0; i < atomic_load(&made); i++) {
		const struct call *c = &calls[i];
		int batch = 0;
		while (s->order.batch_begin[batch + 1] <= c->begin)
			batch++;
		if (c->kernel == 0 && (c->begin - s->order.batch_begin[batch]) % (TILE / 2))
			return false;
	}
	return true;
}

static bool run_session(const struct image *image, struct rt_team *team, bool tiles)
{
	struct rt_binding binding = {.image = image};
	struct rt_session s;
	struct diags diags;
	bool good = true;
	diags_init(&diags, &allocator_default);
	caller = pthread_self();
	atomic_store(&strangers, false);
	good &= rt_session_init(&s, &allocator_default, image, &diags);
	for (int i = 0; good && i < 3; i++) {
		atomic_store(&made, 0);
		good = rt_session_run(&s, &binding, team, &(struct rt_minibatch){forest, NULL}, &diags) &&
		       totals_are_right(&s) && (!tiles || cut_at_tiles(&s));
	}
	rt_session_free(&s);
	diags_free(&diags);
	return good;
}

static struct image image_of(const struct image_step *step, int steps)
{
	return (struct image){.children = 2,
			      .buffers = BUFFERS,
			      .buffer = buffers,
			      .steps = steps,
			      .step = step,
			      .outputs = 1,
			      .output = outputs,
			      .code = {.kernels = kernels}};
}

/* As large as can be said, so that the smallest range is worth it. */
enum { MUCH = INT_MAX };

static const struct image_step shared_out[] = {
    {.kernel = 2, .domain = IMAGE_DOMAIN_NODES, .rows = TILE, .operations = MUCH, .blocks = 1},
    {.kernel = 0, .domain = IMAGE_DOMAIN_LEAVES, .rows = TILE, .operations = MUCH, .blocks = 1},
    {.kernel = 0, .domain = IMAGE_DOMAIN_INNER, .rows = TILE, .operations = MUCH, .blocks = 1},
    {.kernel = 1, .domain = IMAGE_DOMAIN_NODES, .rows = TILE, .operations = MUCH, .blocks = 1}};
static const struct image_step in_turn[] = {
    {.kernel = 2, .domain = IMAGE_DOMAIN_ONCE, .rows = 1, .operations = MUCH, .blocks = 1},
    {.kernel = 0, .domain = IMAGE_DOMAIN_BATCH, .rows = TILE, .operations = MUCH, .blocks = 1},
    {.kernel = 1, .domain = IMAGE_DOMAIN_BATCH, .rows = 2, .operations = MUCH, .blocks = 1}};
static const struct image_step one_by_one[] = {
    {.kernel = 2, .domain = IMAGE_DOMAIN_ONCE, .rows = 1, .operations = MUCH, .blocks = 1},
    {.kernel = 0, .domain = IMAGE_DOMAIN_NODE, .rows = TILE, .operations = MUCH, .blocks = 1},
    {.kernel = 1, .domain = IMAGE_DOMAIN_ONCE, .rows = 1, .operations = MUCH, .blocks = 1}};
static const struct image_step unknown[] = {
    {.kernel = 2, .domain = IMAGE_DOMAIN_NODES, .rows = TILE, .blocks = 1},
    {.kernel = 0, .domain = IMAGE_DOMAIN_BATCH, .rows = TILE, .blocks = 1},
    {.kernel = 1, .domain = IMAGE_DOMAIN_NODES, .rows = TILE, .blocks = 1}};

static void test_threads(int threads)
{
	struct image first = image_of(shared_out, 4), second = image_of(in_turn, 3);
	struct rt_team team;
	bool good = true;
	rt_team_init(&team, &allocator_default, threads);
	for (int i = 0; good && i < 40; i++) {
		make_forest(i < 20 ? i + 1 : 1 + rand() % NODES);
		good = run_session(&first, &team, true) && run_session(&second, &team, true);
	}
	tap_ok(good, "%d threads: each row once, after its children, in blocks of tiles", threads);
	rt_team_stop(&team);
}

/* Over all its batches `in_turn` makes two calls each, and one for the first step. */
static int calls_alone(int steps, int batches)
{
	return 1 + (steps - 1) * batches;
}

static int count_batches(void)
{
	int most = 0;
	for (int n = 0; n < forest.nodes; n++)
		most = height[n] > most ? height[n] : most;
	return most;
}

static void test_split(struct rt_team *team)
{
	struct image image = image_of(in_turn, 3);
	make_forest(NODES);
	tap_ok(run_session(&image, NULL, false) && atomic_load(&made) == calls_alone(3, count_batches()),
	       "without a team a call each");
	tap_ok(run_session(&image, team, false) && atomic_load(&made) > calls_alone(3, count_batches()),
	       "with a team some ranges are several calls");
}

static void test_whole(struct rt_team *team)
{
	struct image interpreted = image_of(in_turn, 3), nodes = image_of(one_by_one, 3),
		     little = image_of(unknown, 3);
	interpreted.code = (struct image_code){.call = interpret_kernel};
	make_forest(NODES);
	tap_ok(run_session(&interpreted, team, false) && !atomic_load(&strangers) &&
		   atomic_load(&made) == calls_alone(3, count_batches()),
	       "what is interpreted is the caller's");
	tap_ok(run_session(&nodes, team, false) && !atomic_load(&strangers) &&
		   atomic_load(&made) == NODES + 2,
	       "so is what goes node by node, and what finds its own rows");
	tap_ok(run_session(&little, team, false) && !atomic_load(&strangers) &&
		   atomic_load(&made) == 2 + count_batches(),
	       "and what is not known to be worth it");
}

int main(void)
{
	struct rt_team team;
	srand(1);
	for (int threads = 1; threads <= 4; threads++)
		test_threads(threads);
	rt_team_init(&team, &allocator_default, 2);
	test_split(&team);
	test_whole(&team);
	rt_team_stop(&team);
	return tap_done();
}
