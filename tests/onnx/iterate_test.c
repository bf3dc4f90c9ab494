/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random bodies as a Loop or Scan, which becomes a scan, and unrolled in the same graph: both give the same values,
 * through the interpreter and all back ends.
 *
 *   iterate_test [SEED COUNT]    other graphs */
#include "api/espalier.h"
#include "tests/backends.h"
#include "tests/io/files.h"
#include "tests/onnx/bodies.h"
#include "tests/onnx/runnable.h"

static esp_context *context;

/* --- graphs --- */

/* A node: how often its body runs, which axes are scanned and in which direction. */
struct iterated {
	struct body body;
	int64_t n;
	int batch;    /* 0 = none; else what inputs of Scan of version 8 have before the axis that is scanned */
	bool in_if;   /* it is in a branch */
	bool unusual; /* initial states are constants */
	int64_t axis[MOST_SCANNED], backward[MOST_SCANNED], out_axis[MOST_SCANNED], out_backward[MOST_SCANNED];
	const char *prefix, *state[MOST_STATES], *scanned[MOST_SCANNED];
};

static const char *const number[MOST_STEPS] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"};

/* Declares an input, or a constant, of a form with perhaps a batch and an axis that is scanned. */
static const char *declare(struct str *g, const struct iterated *t, const char *name, const struct value *v, int axis)
{
	static const float numbers[ROW * COLUMNS] = {.3f, -.2f, .5f, .1f, -.7f, .9f, .2f, -.4f, .6f, -.1f, .8f, -.3f};
	static const int64_t two[2] = {2, 7};
	int64_t dim[4];
	int rank = 0;
	const int own = (int)v->form;
	if (t->batch)
		dim[rank++] = t->batch;
	for (int i = 0; i <= own; i++) {
		if (axis == i)
			dim[rank++] = t->n;
		if (i < own)
			dim[rank++] = i == own - 1 ? COLUMNS : ROW;
	}
	if (v->integer)
		put_tensor(g, name, INTS, rank, dim, two, (t->batch ? 2 : 1) * sizeof *two);
	else if (t->unusual && axis < 0 && !t->batch)
		put_tensor(g, name, FLOATS, rank, dim, numbers, (v->form == MATRIX ? 12 : v->form ? 4 : 1) * sizeof *numbers);
	else
		put_input(g, name, FLOATS, rank, dim);
	return name;
}

static void declare_inputs(struct str *g, struct iterated *t)
{
	const struct body *b = &t->body;
	for (int i = 0; i < b->states; i++)
		t->state[i] = declare(g, t, make_name(&arena, t->prefix, "s", i), &b->value[b->loop + i], -1);
	for (int i = 0; i < b->scanned; i++)
		t->scanned[i] = declare(g, t, make_name(&arena, t->prefix, "x", i), &b->value[b->states + i], (int)t->axis[i]);
}

static void draw_iterated(struct iterated *t, int opset, const char *prefix)
{
	static const int trips[] = {1, 2, 4, 5, 6, 7, 8, 9};
	const bool loop = random_below(2);
	*t = (struct iterated){.prefix = prefix, .in_if = random_below(4) == 0, .unusual = random_below(4) == 0};
	draw_body(&t->body, loop);
	t->n = trips[random_below(8)];
	t->batch = !loop && opset == 8 ? 2 : 0;
	for (int i = 0; i < t->body.scanned; i++) {
		t->axis[i] = opset == 8 ? 0 : random_below(t->body.value[t->body.states + i].form + 1);
		t->backward[i] = random_below(2);
	}
	for (int i = 0; !loop && opset > 8 && i < t->body.outputs - t->body.states; i++) {
		t->out_axis[i] = random_below(t->body.value[t->body.out[t->body.states + i]].form + 1);
		t->out_backward[i] = random_below(2);
	}
}

/* The node itself, in the graph of a branch perhaps. */
static void add_iterated(struct str *g, const struct iterated *t, const char *const *out)
{
	const struct body *b = &t->body;
	const char *in[2 + MOST_STATES + MOST_SCANNED], *trips = make_name(&arena, t->prefix, "trips", 0);
	int n = 0;
	if (b->loop)
		in[n++] = trips;
	if (b->loop || t->batch)
		in[n++] = "";
	for (int i = 0; i < b->states; i++)
		in[n++] = t->state[i];
	for (int i = 0; i < b->scanned; i++)
		in[n++] = t->scanned[i];
	struct str s = begin_node(&arena, b->loop ? "Loop" : "Scan", n, in, t->body.outputs, out),
		   body = write_body(&arena, b, make_name(&arena, t->prefix, "b", 0));
	put_graph(&s, "body", &body);
	if (b->loop)
		put_tensor(g, trips, INTS, 0, NULL, &t->n, sizeof t->n);
	else {
		put_integer(&s, "num_scan_inputs", b->scanned);
		put_integers(&s, t->batch ? "directions" : "scan_input_directions", t->backward, b->scanned);
	}
	if (!b->loop && !t->batch) {
		put_integers(&s, "scan_input_axes", t->axis, b->scanned);
		put_integers(&s, "scan_output_axes", t->out_axis, b->outputs - b->states);
		put_integers(&s, "scan_output_directions", t->out_backward, b->outputs - b->states);
	}
	put_node(g, &s);
}

/* Joins parts along a new axis. */
static const char *join(struct str *g, const char *prefix, int n, const char *const *part, int64_t axis, bool backward,
			const char *out)
{
	const char *wide[MOST_STEPS];
	for (int i = 0; i < n; i++)
		wide[i] = add_node(g, "Unsqueeze", 1, &part[backward ? n - 1 - i : i], make_name(&arena, prefix, "w", i), "axes", axis);
	return add_node(g, "Concat", n, wide, out, "axis", axis);
}

/* The same without the node, of an entry of the batch. */
static void unroll(struct str *g, const struct iterated *t, const char *prefix, const char *const *state,
		   const char *const *scanned, const char *const *out)
{
	const struct body *b = &t->body;
	const char *name[MOST_VALUES], *made[MOST_SCANNED][MOST_STEPS];
	const int first = b->loop;
	name_around(b, name);
	for (int i = 0; i < b->states; i++)
		name[first + i] = state[i];
	for (int k = 0; k < t->n; k++) {
		const char *step = make_name(&arena, prefix, "k", k), *next[MOST_STATES];
		if (b->loop)
			name[0] = number[k];
		for (int i = 0; i < b->scanned; i++)
			name[first + b->states + i] =
			    add_node(g, "Gather", 2, (const char *[]){scanned[i], number[t->backward[i] ? t->n - 1 - k : k]},
				     make_name(&arena, step, "e", i), "axis", t->axis[i]);
		add_statements(g, b, name, step);
		for (int i = 0; i < b->outputs; i++)
			*(i < b->states ? &next[i] : &made[i - b->states][k]) = name[b->out[i]];
		memcpy(&name[first], next, sizeof *next * b->states);
	}
	for (int i = 0; i < t->body.outputs; i++) {
		const int s = i - b->states;
		if (s < 0)
			add_node(g, "Identity", 1, &name[first + i], out[i], NULL, 0);
		else
			join(g, make_name(&arena, prefix, "o", s), (int)t->n, made[s], t->out_axis[s], t->out_backward[s], out[i]);
	}
}

static void unroll_batch(struct str *g, const struct iterated *t, const char *const *out)
{
	const struct body *b = &t->body;
	const char *part[MOST_OUTPUTS][2];
	for (int e = 0; e < t->batch; e++) {
		const char *prefix = make_name(&arena, t->prefix, "e", e), *in[MOST_STATES + MOST_SCANNED], *own[MOST_OUTPUTS];
		for (int i = 0; i < b->states + b->scanned; i++) {
			const char *whole = i < b->states ? t->state[i] : t->scanned[i - b->states];
			in[i] = add_node(g, "Gather", 2, (const char *[]){whole, number[e]}, make_name(&arena, prefix, "in", i),
					 "axis", 0);
		}
		for (int i = 0; i < b->outputs; i++)
			own[i] = part[i][e] = make_name(&arena, prefix, "out", i);
		unroll(g, t, prefix, in, in + b->states, own);
	}
	for (int i = 0; i < b->outputs; i++)
		join(g, make_name(&arena, t->prefix, "all", i), t->batch, part[i], 0, false, out[i]);
}

/* y: of the node; z: unrolled.  The other branch is -z. */
static void add_both(struct str *g, struct iterated *t)
{
	const char *y[MOST_OUTPUTS], *z[MOST_OUTPUTS], *branch[MOST_OUTPUTS], *other[MOST_OUTPUTS];
	struct str then = str_in(&arena), otherwise = then;
	const int n = t->body.outputs;
	for (int i = 0; i < n; i++) {
		y[i] = make_name(&arena, t->prefix, "y", i);
		z[i] = make_name(&arena, t->prefix, "z", i);
		branch[i] = make_name(&arena, t->prefix, "then", i);
		other[i] = make_name(&arena, t->prefix, "else", i);
	}
	declare_inputs(g, t);
	add_iterated(t->in_if ? &then : g, t, t->in_if ? branch : y);
	if (t->batch)
		unroll_batch(g, t, z);
	else
		unroll(g, t, t->prefix, t->state, t->scanned, z);
	for (int i = 0; i < n; i++) {
		put_output(g, y[i]);
		put_output(g, z[i]);
		put_output(&then, branch[i]);
		put_output(&otherwise, add_node(&otherwise, "Neg", 1, &z[i], other[i], NULL, 0));
	}
	if (!t->in_if)
		return;
	struct str s = begin_node(&arena, "If", 1, &(const char *){"condition"}, n, y);
	put_text(&then, 2, "then");
	put_text(&otherwise, 2, "otherwise");
	put_graph(&s, "then_branch", &then);
	put_graph(&s, "else_branch", &otherwise);
	put_node(g, &s);
}

/* What all bodies use: a number, a vector and a matrix that are computed, and constants. */
static struct str begin_graph(void)
{
	struct str g = str_in(&arena);
	const int64_t list[] = {MOST_STEPS, COLUMNS}, weight[] = {COLUMNS, COLUMNS}, matrix[] = {ROW, COLUMNS}, one = 1;
	float elements[COLUMNS * COLUMNS];
	put_text(&g, 2, "iterations");
	put_input(&g, "condition", TRUTHS, 0, NULL);
	put_input(&g, "factor", FLOATS, 0, NULL);
	put_input(&g, "bias", FLOATS, 1, list + 1);
	put_input(&g, "matrix", FLOATS, 2, matrix);
	put_input(&g, "list", FLOATS, 2, list);
	for (int i = 0; i < COLUMNS * COLUMNS; i++)
		elements[i] = random_float() / 2;
	put_tensor(&g, "weight", FLOATS, 2, weight, elements, sizeof elements);
	put_tensor(&g, "increment", INTS, 0, NULL, &one, sizeof one);
	for (int64_t i = 0; i < MOST_STEPS; i++)
		put_tensor(&g, number[i], INTS, 0, NULL, &i, sizeof i);
	add_node(&g, "Softsign", 1, &(const char *){"matrix"}, "shown", NULL, 0);
	return g;
}

/* --- runs --- */

/* Runs it over numbers that are drawn anew from the same seed, with the condition as it is given. */
static bool run(const struct runnable *r, bool condition)
{
	esp_array array[64];
	size_t n = 0;
	esp_error *error = NULL;
	random_state = 12345;
	for (const esp_input *in; n < 64 && (in = esp_program_input(r->program, n)); n++) {
		float *x = arena_take(&arena, in->elements, sizeof *x);
		for (size_t i = 0; i < in->elements; i++)
			x[i] = random_float();
		if (in->dtype == ESP_BOOL)
			*(bool *)x = condition;
		array[n] = (esp_array){in->name, in->dtype, in->rank, in->shape, x};
	}
	bool ok = !esp_session_call(r->session, array, n, &error);
	if (!ok)
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

static bool is_near(const esp_output *o, const void *y, const void *z, double sign)
{
	for (size_t i = 0; i < o->elements; i++) {
		double a = o->dtype == ESP_F32 ? ((const float *)y)[i] : (double)((const int64_t *)y)[i],
		       b = o->dtype == ESP_F32 ? ((const float *)z)[i] : (double)((const int64_t *)z)[i];
		if (!(fabs(a - sign * b) <= 1e-4 * (1 + fabs(b)))) {
			printf("# %s[%zu]: %g, not %g\n", o->name, i, a, sign * b);
			return false;
		}
	}
	return true;
}

/* Whether outputs, which are pairs, are equal; where a node is in a branch, negative when the other one is taken. */
static bool check_outputs(const struct runnable *r, const struct iterated *t, bool condition)
{
	bool equal = true;
	for (size_t i = 0; i + 1 < esp_program_outputs(r->program); i += 2) {
		const esp_output *o = esp_program_output(r->program, i);
		const void *y = esp_session_root_elements(r->session, i, 0), *z = esp_session_root_elements(r->session, i + 1, 0);
		equal &= y && z && is_near(o, y, z, t->in_if && !condition ? -1 : 1);
	}
	return equal;
}

static void check_with(const struct iterated *t, const char *path, const char *backend, int seed)
{
	struct runnable r;
	uint64_t state = random_state;
	bool equal = open_runnable(context, &r, path, NULL, backend);
	for (int condition = 0; equal && condition <= t->in_if; condition++)
		equal = run(&r, !condition) && check_outputs(&r, t, !condition);
	tap_ok(equal, "seed %d, %s: %s of %lld iterations%s, %d states", seed, backend, t->body.loop ? "Loop" : "Scan",
	       (long long)t->n, t->in_if ? " in a branch" : "", t->body.states);
	close_runnable(&r);
	random_state = state;
}

/* Compiling takes most of the time: one in so many is compiled as well. */
enum { COMPILED_EACH = 6 };

static void check_seed(int seed)
{
	struct iterated t;
	random_state = seed;
	const int opset = seed % 4 ? 12 : 8;
	struct str g = begin_graph(), path = str_in(&arena), name = path;
	draw_iterated(&t, opset, "c");
	add_both(&g, &t);
	struct str bytes = finish_model(&g, opset);
	str_printf(&name, "iterated-%d.onnx", seed);
	str_puts(&path, write_file(str_text(&name), str_text(&bytes), bytes.n));
	check_with(&t, str_text(&path), "interpreter", seed);
	for (int i = 0; seed % COMPILED_EACH == 0 && backend_at(i); i++)
		check_with(&t, str_text(&path), backend_at(i), seed);
}

int main(int n, char **arg)
{
	const esp_context_options o = {.size = sizeof o, .cache = ESP_CACHE_OFF, .threads = 1};
	const int seed = n > 2 ? atoi(arg[1]) : 1, count = n > 2 ? atoi(arg[2]) : 40;
	begin_tests();
	if (esp_context_create(&o, &context, NULL) != ESP_OK)
		return 99;
	skip_backends();
	for (int i = 0; i < count; i++)
		check_seed(seed + i);
	esp_context_free(context);
	return end_tests();
}
