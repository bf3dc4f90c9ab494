/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What is computed when weights are bound: order, layout, what is kept, rows over the team, and what goes
 * wrong. */
#include "runtime/shared.h"
#include "tests/budget.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5000, COLUMNS = 6, PADDED = 8 };

/* W[ROWS, 6] is a parameter; twice[ROWS, 6] = W + W, by way of an intermediate; total[6] = sum over the rows
 * of `twice`, which it reads turned round. */
static const struct tensor_info params[] = {{"W", DTYPE_F32, 2, {ROWS, COLUMNS}}};
static const struct image_pack_source of_w[] = {{0, {0}, {ROWS, COLUMNS}}},
				      of_twice[] = {{1, {0}, {ROWS, COLUMNS}}},
				      of_total[] = {{2, {0}, {COLUMNS}}};
static const struct image_recipe recipes[] = {
    {2, 1, {{0, ROWS, 1}, {1, COLUMNS, 1}}, of_w, DTYPE_F32, 0},
    {2, 1, {{0, ROWS, 1}, {1, PADDED, 1}}, of_twice, DTYPE_F32, 0},
    {2, 1, {{1, COLUMNS, 1}, {0, ROWS, 1}}, of_twice, DTYPE_F32, 0},
    {1, 1, {{0, PADDED, 1}}, of_total, DTYPE_F32, 0},
};
enum { W, TWICE, TURNED, TOTAL, COPY, STATE, BUFFERS };
static const struct image_buffer buffers[BUFFERS] = {
    [W] = {.name = "W", .which = 0, .row_elements = ROWS * COLUMNS, .at_binding = true},
    [TWICE] = {.name = "twice", .which = 1, .row_elements = ROWS * PADDED},
    [TURNED] = {.name = "turned", .which = 2, .row_elements = ROWS * COLUMNS, .at_binding = true},
    [TOTAL] = {.name = "total", .which = 3, .row_elements = PADDED},
    [COPY] = {.name = "copy", .kind = IMAGE_SCRATCH, .row_elements = ROWS * COLUMNS, .at_binding = true},
    [STATE] = {.name = "state", .kind = IMAGE_STATE, .rows = IMAGE_NODES, .row_elements = 1},
};
static const struct image_fold folds[] = {{{"twice", DTYPE_F32, 2, {ROWS, COLUMNS}}, 1},
					  {{"total", DTYPE_F32, 1, {COLUMNS}}, 3}};
static const struct image_step steps[] = {
    {.kernel = 0, .domain = IMAGE_DOMAIN_BINDING, .rows = 4, .operations = 100000, .blocks = 1},
    {.kernel = 1, .domain = IMAGE_DOMAIN_BINDING, .rows = 1, .operations = 1, .blocks = 1},
    {.kernel = 2, .domain = IMAGE_DOMAIN_NODES, .rows = 1, .operations = 1, .blocks = 1}};

static atomic_int calls[2];

static void double_rows(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			int64_t direction)
{
	const float *w = b[W];
	float *twice = b[TWICE], *copy = b[COPY];
	(void)first, (void)blocks, (void)direction;
	calls[0]++;
	for (int64_t r = begin; r < end; r++)
		for (int c = 0; c < PADDED; c++) {
			if (c < COLUMNS)
				copy[r * COLUMNS + c] = w[r * COLUMNS + c];
			twice[r * PADDED + c] = c < COLUMNS ? copy[r * COLUMNS + c] + w[r * COLUMNS + c] : -1;
		}
}

static void sum_rows(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
		     int64_t direction)
{
	const float *turned = b[TURNED];
	float *total = b[TOTAL];
	(void)first, (void)blocks, (void)direction;
	calls[1]++;
	for (int64_t c = begin; c < end; c++) {
		total[c] = 0;
		for (int r = 0; r < ROWS; r++)
			total[c] += turned[c * ROWS + r];
	}
}

/* Steps of runs may see neither weights nor intermediates of the binding. */
static bool seen;

static void look_at_rows(void *const *b, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			 int64_t direction)
{
	(void)begin, (void)end, (void)first, (void)blocks, (void)direction;
	seen = !b[W] && !b[TURNED] && !b[COPY] && b[TWICE] && b[TOTAL] && b[STATE];
}

static image_kernel *const kernels[] = {double_rows, sum_rows, look_at_rows};

static const struct image image = {.params = 1,
				   .param = params,
				   .recipes = 4,
				   .recipe = recipes,
				   .folds = 2,
				   .fold = folds,
				   .buffers = BUFFERS,
				   .buffer = buffers,
				   .steps = 3,
				   .step = steps,
				   .kernels = 3,
				   .code = {.kernels = kernels}};

static bool read_param(void *context, int param, int64_t first, int64_t count, void *out, struct diags *diags)
{
	float *to = out;
	(void)context, (void)param, (void)diags;
	for (int64_t i = 0; i < count; i++)
		to[i] = (first + i) % 7 * 0.25f;
	return true;
}

static const struct rt_source source = {read_param, NULL};

static bool is_right(const struct rt_binding *b)
{
	float total[COLUMNS] = {0};
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++) {
			float twice = (r * COLUMNS + c) % 7 * 0.5f;
			total[c] += twice;
			if (((float *)b->packed[1])[r * PADDED + c] != twice)
				return false;
		}
	return memcmp(b->packed[3], total, sizeof total) == 0;
}

/* --- what is there afterwards --- */

static const int32_t one_begin[] = {0, 0}, one_root[] = {0};
static const struct rt_minibatch one_node = {
    {.nodes = 1, .inputs = 1, .child_begin = one_begin, .root = one_root}, NULL};

static void test_result(struct diags *d)
{
	struct rt_binding b;
	calls[0] = calls[1] = 0;
	if (!tap_ok(rt_bind(&b, &allocator_default, &image, &source, NULL, d), "weights are bound"))
		return;
	tap_ok(calls[0] == 1 && calls[1] == 1, "each step runs once");
	tap_ok(is_right(&b), "and reads what the one before gave");
	tap_ok(!b.packed[0] && !b.packed[2], "what only they read is given back");
	tap_ok(b.packed_bytes == (ROWS + 1) * PADDED * sizeof(float) &&
		   b.folded_bytes == (ROWS + 1) * COLUMNS * sizeof(float) && b.folding > 0,
	       "bytes and seconds are told");
	struct rt_session s;
	struct image run = image;
	run.children = 2;
	bool ok =
	    rt_session_init(&s, &allocator_default, &run, d) && rt_session_run(&s, &b, NULL, &one_node, d);
	tap_ok(ok && seen && calls[0] == 1, "a run sees the results alone, and runs its own steps alone");
	rt_session_free(&s);
	rt_binding_free(&b);
}

/* --- threads --- */

/* A team whose workers lost their processors leaves callers alone for a while: that is forgotten before each
 * binding, and may happen in one. */
static void test_threads(struct diags *d)
{
	bool right = true;
	int divided = 0;
	for (int threads = 1; threads <= 4; threads++) {
		struct rt_team team;
		rt_team_init(&team, &allocator_default, threads);
		for (int i = 0; i < 20; i++) {
			struct rt_binding b;
			calls[0] = 0;
			team.lost = team.pause = team.resume = 0;
			right &= rt_bind(&b, &allocator_default, &image, &source, &team, d) && is_right(&b) &&
				 (calls[0] == threads || calls[0] == 1);
			divided += threads > 1 && calls[0] == threads;
			rt_binding_free(&b);
		}
		rt_team_stop(&team);
	}
	tap_ok(right && divided, "rows are divided among teams of 1 to 4, with the same bits");
}

static void *bind_alone(void *context)
{
	struct rt_binding b;
	struct diags d;
	diags_init(&d, &allocator_default);
	calls[0] = 0;
	bool ok =
	    rt_bind(&b, &allocator_default, &image, &source, context, &d) && is_right(&b) && calls[0] == 1;
	rt_binding_free(&b);
	diags_free(&d);
	return ok ? context : NULL;
}

static void test_busy(void)
{
	struct rt_team team;
	pthread_t thread;
	void *result = NULL;
	rt_team_init(&team, &allocator_default, 2);
	bool ok = rt_team_enter(&team, 1e9) == 2 && pthread_create(&thread, NULL, bind_alone, &team) == 0 &&
		  pthread_join(thread, &result) == 0;
	tap_ok(ok && result == &team, "while another one has the team, the caller computes alone");
	rt_team_leave(&team);
	rt_team_stop(&team);
}

/* --- rows of tables that are read late --- */

static int64_t late[2]; /* how often the source was asked, and where last */

static bool count_reads(void *context, int param, int64_t first, int64_t count, void *out, struct diags *diags)
{
	late[0]++, late[1] = first;
	return read_param(context, param, first, count, out, diags);
}

static const struct rt_source counting = {count_reads, NULL};
static const struct image_recipe table[] = {{2, 1, {{0, ROWS, 1}, {1, COLUMNS, 1}}, of_w, DTYPE_F32, .selected_by = 1}};
static const struct image_input token[] = {{.token = true}};
static const struct image_buffer looked_up[] = {{.name = "W", .which = 0, .row_elements = ROWS * COLUMNS}};
static const struct image late_image = {.params = 1,
					.param = params,
					.recipes = 1,
					.recipe = table,
					.buffers = 1,
					.buffer = looked_up,
					.inputs = 1,
					.input = token};

/* Whether a minibatch of one node, which selects a row unless it is below zero, makes the source be asked so many times, and time
 * is counted if and only if it is. */
static bool asks(const struct rt_binding *b, int32_t row, int times, struct diags *d)
{
	struct rt_minibatch m = one_node;
	m.data = (const void *[]){&row};
	double seconds = 0;
	late[0] = 0;
	return rt_need_rows(b, &m, &seconds, d) && late[0] == times && (seconds > 0) == (times > 0);
}

static void test_late_rows(struct diags *d)
{
	struct rt_binding b;
	bool ok = tap_ok(rt_bind_lazily(&b, &allocator_default, &late_image, &counting, NULL, d) && !late[0], "no row of a table is read at binding");
	if (!ok)
		return;
	tap_ok(asks(&b, ROWS - 1, 2, d) && late[1] > 0 && late[1] <= (ROWS - 1) * COLUMNS,
	       "a run reads the row that it selects, and the first one, which nodes select that do not read the input");
	tap_ok(asks(&b, ROWS - 1, 0, d) && asks(&b, -1, 0, d), "no other run reads them, or counts time for that");
	tap_ok(asks(&b, 1, 0, d) && asks(&b, ROWS / 2, 1, d), "whether a row near the first one was selected, or none");
	rt_binding_free(&b);
	tap_ok(rt_bind_lazily(&b, &allocator_default, &late_image, &counting, NULL, d) && asks(&b, -1, 1, d) && !late[1] && asks(&b, -1, 0, d),
	       "nodes that do not read the input have the first row read once");
	rt_binding_free(&b);
}

/* --- what goes wrong --- */

static bool fail_second(void *self, int kernel, const struct image_frame *f, const struct image_range *range,
			struct diags *d)
{
	(void)self, (void)f, (void)range;
	return kernel == 0 || diag_add(d, DIAG_CANNOT_READ, (struct diag_at){0}, NULL, "the second fails");
}

static void test_failures(void)
{
	struct budget budget = {.left = 1000};
	struct allocator a = {resize_budget, &budget};
	struct image failing = image;
	struct rt_binding b;
	struct diags d;
	failing.code = (struct image_code){.call = fail_second};
	diags_init(&d, &allocator_default);
	tap_ok(!rt_bind(&b, &a, &failing, &source, NULL, &d) && d.n == 1 && d.at[0].id == DIAG_CANNOT_READ &&
		   !b.packed && !budget.held,
	       "a step that fails fails the binding, which holds nothing");
	diags_free(&d);
	bool right = true, ok = false;
	for (int n = 0; !ok && n < 100; n++) {
		budget = (struct budget){.left = n};
		ok = rt_bind(&b, &a, &image, &source, NULL, &d);
		right &= ok ? is_right(&b) : d.n == 1 && d.at[0].id == DIAG_OUT_OF_MEMORY && !budget.held;
		diags_free(&d);
		rt_binding_free(&b);
	}
	tap_ok(ok && right && !budget.held,
	       "memory running out at any place is a diagnostic, and nothing is held");
	struct image_buffer vast[BUFFERS];
	memcpy(vast, buffers, sizeof vast);
	vast[COPY].row_elements = INT64_MAX / 2;
	failing = image;
	failing.buffer = vast;
	tap_ok(!rt_bind(&b, &allocator_default, &failing, &source, NULL, &d) &&
		   d.at[0].id == DIAG_OUT_OF_MEMORY,
	       "an intermediate whose bytes cannot be counted is out of memory");
	diags_free(&d);
}

int main(void)
{
	struct diags d;
	diags_init(&d, &allocator_default);
	test_result(&d);
	test_threads(&d);
	test_busy();
	test_late_rows(&d);
	test_failures();
	diags_free(&d);
	return tap_done();
}
