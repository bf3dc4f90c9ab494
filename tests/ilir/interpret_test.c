/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Results of small interpreted programs, and faults that end a run. */
#include "ilir/passes.h"
#include "tests/ilir/support.h"

#define MODULE "module m\ndim node, i, j, batch, lane\n"

static bool open_module(struct bench *b, const char *text, const char *what)
{
	bool read = bench_parse(b, text) && ilir_verify(b->m, ILIR_BOUNDED, "parse", &b->diags);
	if (!read && b->diags.n)
		printf("# %s\n", b->diags.at[0].message);
	return tap_ok(read, "%s: is read and verified", what);
}

/* h[n] = data[n] at leaves, 2*h[left] + h[right] at inner nodes, batch by batch. */
static void test_recursion(void)
{
	static const char text[] = MODULE
	    "buffer h : state 0 f32 [nodes:node]\n"
	    "buffer l : child 0 i32 [nodes:node]\n"
	    "buffer r : child 1 i32 [nodes:node]\n"
	    "buffer x : vector 0 f32 [nodes:node]\n"
	    "buffer at : batch_begin 0 i32 [batches+1:batch]\n"
	    "kernel k in once {\n"
	    "  step leaf in 0..leaves { for n:node in begin..end { h[n] = x[n] } }\n"
	    "  for b:batch in 1..batches {\n"
	    "    step inner in to_index(at[b])..to_index(at[b + 1]) {\n"
	    "      for m:node in begin..end { h[m] = fma(2.0, h[to_index(l[m])], h[to_index(r[m])]) }\n"
	    "    }\n"
	    "    barrier\n"
	    "  }\n"
	    "}\n";
	struct bench b;
	if (!open_module(&b, text, "a recursion over batches"))
		return;
	bench_allocate(&b, 5, 3, 1, 4, 3);
	memcpy(bench_buffer(&b, "x"), (float[]){1, 10, 100, 0, 0}, 20);
	memcpy(bench_buffer(&b, "l"), (int32_t[]){-1, -1, -1, 0, 3}, 20);
	memcpy(bench_buffer(&b, "r"), (int32_t[]){-1, -1, -1, 1, 2}, 20);
	memcpy(bench_buffer(&b, "at"), (int32_t[]){0, 3, 4, 5}, 16);
	float *h = bench_buffer(&b, "h");
	tap_ok(bench_run(&b, 0, 5) && h[3] == 12 && h[4] == 124, "indirect loads follow the children");
	memcpy(bench_buffer(&b, "l"), (int32_t[]){-1, -1, -1, 0, -1}, 20);
	tap_ok(!bench_run(&b, 0, 5) && bench_says(&b, "index -1 in dimension 0 of 'h', whose extent is 5"),
	       "a dangling child stops the run");
	bench_close(&b);
}

/* Two of five nodes are of case 1, one is of case 2; the rows of both cases are two ranges. */
static void test_cases(void)
{
	static const char text[] = MODULE "buffer h : state 0 f32 [nodes:node]\n"
					  "buffer of : case 0 i32 [nodes:node]\n"
					  "kernel k in once {\n"
					  "  step s of case 1 2 in 0..nodes {\n"
					  "    h[begin] = h[begin] + 10.0\n"
					  "    for n:node in begin..end { h[n] = h[n] + 1.0 }\n"
					  "  }\n"
					  "  step t of case 1 in 4..nodes { h[begin] = 77.0 }\n"
					  "}\n";
	struct bench b;
	if (!open_module(&b, text, "steps of cases"))
		return;
	bench_allocate(&b, 5, 1, 1, 4, 1);
	memcpy(bench_buffer(&b, "of"), (int32_t[]){0, 1, 2, 0, 1}, 20);
	float *h = bench_buffer(&b, "h");
	memset(h, 0, 20);
	tap_ok(bench_run(&b, 0, 5) && h[0] == 0 && h[1] == 11 && h[2] == 1 && h[3] == 0 && h[4] == 77,
	       "rows of some cases are as many ranges as they make");
	bench_close(&b);
}

static void test_ragged_sum(void)
{
	static const char text[] = MODULE
	    "buffer first : child_begin 0 i32 [nodes+1:node]\n"
	    "buffer list : child_list 0 i32 [edges:i]\n"
	    "buffer s : state 0 f32 [nodes:node]\n"
	    "kernel k in nodes {\n"
	    "  for n:node in begin..end {\n"
	    "    alloc acc : f32 []\n"
	    "    acc[] = 0.0\n"
	    "    for e:i in to_index(first[n])..to_index(first[n + 1]) { acc[] = acc[] + s[to_index(list[e])] }\n"
	    "    s[n] = acc[] + 1.0\n"
	    "  }\n"
	    "}\n";
	struct bench b;
	if (!open_module(&b, text, "a ragged sum"))
		return;
	bench_allocate(&b, 4, 2, 1, 4, 3);
	memcpy(bench_buffer(&b, "first"), (int32_t[]){0, 0, 0, 2, 4}, 20);
	memcpy(bench_buffer(&b, "list"), (int32_t[]){0, 1, 2, 0}, 16);
	float *s = bench_buffer(&b, "s");
	tap_ok(bench_run(&b, 0, 4) && s[1] == 1 && s[2] == 3 && s[3] == 5, "sums over edges, empty ones too");
	bench_close(&b);
}

static void test_vectors(void)
{
	static const char text[] = MODULE
	    "buffer x : state 0 f32 [nodes:node, 20/24:i]\n"
	    "buffer w : weight 0 f32 [3:j, 24:i]\n"
	    "kernel k in nodes {\n"
	    "  for n:node in begin..end {\n"
	    "    alloc acc : f32 [8:lane]\n"
	    "    for i:i in 0..24 step 8 {\n"
	    "      acc[ramp(8, 0)] = broadcast(8, 0.5) + w[0, ramp(8, 1, 3)]\n"
	    "      for j:j in 0..3 { acc[ramp(8, 0)] = fma(w[j, ramp(8, i)], broadcast(8, 2.0), acc[ramp(8, "
	    "0)]) }\n"
	    "      let v = acc[ramp(8, 0)]\n"
	    "      x[n, ramp(8, i)] = select(v < broadcast(8, 10.0), v, neg(v))\n"
	    "    }\n"
	    "  }\n"
	    "}\n";
	struct bench b;
	if (!open_module(&b, text, "vector code"))
		return;
	bench_allocate(&b, 2, 2, 1, 0, 1);
	float *w = bench_buffer(&b, "w"), *x = bench_buffer(&b, "x");
	bool right = true;
	for (int i = 0; i < 72; i++)
		w[i] = i % 24;
	tap_ok(bench_run(&b, 1, 2), "vector code: runs");
	for (int i = 0; i < 24; i++) {
		float v = 0.5f + (1 + 3 * (i % 8)) + 6 * i;
		right &= x[i] == 0 && x[24 + i] == (v < 10 ? v : -v);
	}
	tap_ok(right,
	       "vector code: lanes, broadcasts, vector lets, selects by lane; only the rows asked for");
	bench_close(&b);
}

/* Expressions of a[0], a[1] (floats) and n = 5 (an index), and their results. */
static const struct {
	const char *expr;
	float a, b, result;
} values[] = {
    {"max(a[0], a[1])", 0.0f, -0.0f, -0.0f},
    {"max(a[0], a[1])", -0.0f, 0.0f, 0.0f},
    {"max(a[0], a[1])", NAN, 1, NAN},
    {"max(a[0], a[1])", 1, NAN, NAN},
    {"max(a[0], a[1])", 3, 2, 3},
    {"neg(a[0])", 0, 0, -0.0f},
    {"fma(a[0], a[0], a[1])", 1.0f + 0x1p-12f, -1.0f - 0x1p-11f, 0x1p-24f},
    {"(a[0] * a[0]) + a[1]", 1.0f + 0x1p-12f, -1.0f - 0x1p-11f, 0},
    {"a[0] / a[1]", 1, 3, 1.0f / 3},
    {"a[0] * a[1]", 0x1p-126f, 0.25f, 0x1p-128f},
    {"sqrt(a[0])", 2, 0, 1.41421356f},
    {"select(a[0] < a[1], 1.0, 2.0)", NAN, 1, 2},
    {"select(a[0] <= a[1], 1.0, 2.0)", 1, 1, 1},
    {"select(a[0] == a[1], 1.0, 2.0)", 0.0f, -0.0f, 1},
    {"select(or(a[0] < a[1], and(0 < n, n < 3)), 1.0, 2.0)", 2, 1, 2},
    {"a[div(n, 3)]", 7, 8, 8},
    {"a[mod(n + -11, 3) + -0]", 7, 8, 7},
    {"a[div(n + -6, 4) + 1]", 7, 8, 7},
    {"a[min(n, 1)] + a[max(n + -9, 0)]", 7, 8, 15},
    {"a[select(n < 9, 0, n)]", 7, 8, 7},
    {"to_f32(shl(-3i, 30i))", 0, 0, 1073741824.0f},
    {"to_f32(shr(-16i, 2i))", 0, 0, -4},
    {"to_f32((2147483647i + 1i) & (255i | -256i))", 0, 0, -2147483648.0f},
    {"to_f32((65537i * 65537i) - 1i)", 0, 0, 131072},
    {"to_f32(max(-3i, 2i) * min(-3i, 2i))", 0, 0, -6},
    {"as_f32(as_i32(a[0]) + 1i)", 1, 0, 1.00000012f},
    {"select(n < 3, a[n + 100], a[1])", 1, 2, 2},
    {"exp(a[0])", 1, 0, 2.71828183f},
};

static void test_operators(void)
{
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		struct bench b;
		struct str s;
		bench_open(&b);
		s = str_in(&b.arena);
		str_printf(&s,
			   MODULE
			   "buffer a : state 0 f32 [2:i]\nbuffer y : state 1 f32 [1:i]\n"
			   "kernel k in nodes { let n = nodes y[0] = %s }",
			   values[i].expr);
		b.m = ilir_parse(&b.arena, &b.diags, "test", s.text, s.n);
		bool good = b.m && ilir_verify(b.m, 0, "parse", &b.diags);
		float y = 0, want = values[i].result;
		if (good) {
			bench_allocate(&b, 5, 0, 0, 0, 0);
			memcpy(bench_buffer(&b, "a"), &values[i].a, 2 * sizeof(float));
			good = bench_run(&b, 0, 0);
			y = *(float *)bench_buffer(&b, "y");
		}
		if (!tap_ok(good && (isnan(want) ? isnan(y) : y == want && !signbit(y) == !signbit(want)),
			    "%s at %g, %g is %g, got %g", values[i].expr, values[i].a, values[i].b, want, y))
			printf("# %s\n", b.diags.n ? b.diags.at[0].message : "");
		bench_close(&b);
	}
}

static const struct {
	const char *what, *body, *message;
} faults[] = {
    {"a load past the end", "y[0] = x[0, n + 3]", "index 8 in dimension 1 of 'x', whose extent is 8"},
    {"a store past the rows", "y[n] = 1.0", "index 5 in dimension 0 of 'y', whose extent is 5"},
    {"a vector of which a lane is outside", "y[ramp(4, 2)] = broadcast(4, 1.0)",
     "index 5 in dimension 0 of 'y'"},
    {"a vector of which a lane is outside, by a step", "let v = y[ramp(4, 0, 2)]", "index 6 in dimension 0 of 'y'"},
    {"a negative index", "y[n + -6] = 1.0", "index -1 in dimension 0 of 'y'"},
    {"an index read from a register before it is set", "alloc r : index [] y[r[]] = 1.0", "index -1"},
};

static void test_out_of_bounds(void)
{
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		struct bench b;
		bench_open(&b);
		struct str s = str_in(&b.arena);
		str_printf(&s,
			   MODULE
			   "buffer x : state 0 f32 [nodes:node, 6/8:i]\nbuffer y : state 1 f32 [nodes:node]\n"
			   "kernel k in nodes { let n = nodes %s }",
			   faults[i].body);
		b.m = ilir_parse(&b.arena, &b.diags, "test", s.text, s.n);
		if (b.m)
			bench_allocate(&b, 5, 0, 0, 0, 0);
		tap_ok(b.m && !bench_run(&b, 0, 5) && bench_says(&b, faults[i].message), "caught: %s",
		       faults[i].what);
		bench_close(&b);
	}
}

static void test_missing_memory(void)
{
	struct bench b;
	if (!open_module(&b, MODULE "buffer y : state 0 f32 [nodes:node]\nkernel k in nodes { y[0] = 1.0 }",
			 "a store"))
		return;
	bench_allocate(&b, 5, 0, 0, 0, 0);
	b.buffers[0] = NULL;
	tap_ok(!bench_run(&b, 0, 5) && bench_says(&b, "uses 'y', which has no memory"),
	       "a buffer without memory is named");
	bench_close(&b);
}

#define SWEPT_MODULE                                                                                         \
	"module m\ndim node, i\nbuffer y : output 0 f32 [nodes:node, 20:i]\nkernel k in nodes {\n"

/* Three blocks of columns, from 4 on; four blocks, two in each iteration of the outer loop. */
static void test_swept_loop(void)
{
	static const char one[] = SWEPT_MODULE
	    "for i:i in 4..19 step 5 swept { for n:node in begin..end {\n"
	    "for v:i in 0..5 { y[n, i + v] = y[n, i + v] + 1.0 } } }\n}\n";
	static const char two[] = SWEPT_MODULE
	    "for i:i in 2..14 step 6 swept { for k:i in 2..8 step 3 swept { for n:node in begin..end {\n"
	    "for v:i in 0..3 { y[n, (i + k) + v] = y[n, (i + k) + v] + 1.0 } } } }\n}\n";
	static const struct {
		const char *text;
		struct image_range range;
		const char *times; /* number of writes of each column of row 1 */
	} cases[] = {{one, {1, 2, 0, 3, 1}, "00001111111111111110"},
		     {one, {1, 2, 2, 3, -1}, "00001111111111111110"},
		     {one, {1, 2, 1, 2, 1}, "00000000011111111110"},
		     {one, {1, 2, 1, 2, -1}, "00001111111111000000"},
		     {one, {1, 2, 2, 1, -1}, "00000000000000111110"},
		     {one, {1, 2, 1, 0, 1}, "00000000000000000000"},
		     {one, {2, 2, 0, 3, 1}, "00000000000000000000"},
		     {two, {1, 2, 0, 4, 1}, "00001111111111110000"},
		     {two, {1, 2, 1, 2, 1}, "00000001111110000000"},
		     {two, {1, 2, 2, 3, -1}, "00001111111110000000"},
		     {two, {1, 2, 3, 1, -1}, "00000000000001110000"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct bench b;
		char found[21] = "";
		bool ok = bench_parse(&b, cases[i].text);
		bench_allocate(&b, 3, 0, 0, 0, 0);
		ok = ok && bench_sweep(&b, cases[i].range);
		for (int k = 0; ok && k < 20; k++)
			found[k] = '0' + ((float *)b.buffers[0])[20 + k];
		tap_ok(ok && strcmp(found, cases[i].times) == 0, "swept: %d blocks from %d on by %d: %s",
		       (int)cases[i].range.blocks, (int)cases[i].range.first, (int)cases[i].range.direction,
		       found);
		bench_close(&b);
	}
}

/* A register is undefined after each alloc. */
static void test_undefined_register(void)
{
	struct bench b;
	if (!open_module(&b,
			 MODULE "buffer y : state 0 f32 [nodes:node]\nkernel k in nodes {\n"
				"for n:node in 0..2 { alloc r : f32 [] y[n] = r[] r[] = 1.0 } }",
			 "a register read first"))
		return;
	bench_allocate(&b, 2, 0, 0, 0, 0);
	float *y = bench_buffer(&b, "y");
	tap_ok(bench_run(&b, 0, 0) && isnan(y[0]) && isnan(y[1]),
	       "a register holds NaN until it is stored to");
	bench_close(&b);
}

/* expand_math keeps the bits of results and the size of statements small. */
static void test_expansion(void)
{
	static const char text[] = MODULE
	    "buffer x : state 0 f32 [nodes:node]\nbuffer y : scratch 0 f32 [nodes:node]\n"
	    "kernel k in nodes {\n"
	    "  for n:node in begin..end {\n"
	    "    y[n] = tanh(exp(x[n]) * sigmoid(x[n])) + select(n < 50, log(x[n] * x[n]), sigmoid(x[n + "
	    "-50]))\n"
	    "  }\n"
	    "}\n";
	struct bench b, after;
	if (!open_module(&b, text, "compounds"))
		return;
	bench_parse(&after, text);
	ilir_expand_math(after.m, NULL);
	bool good = ilir_verify(after.m, ILIR_BOUNDED | ILIR_PRIMITIVE, "expand_math", &after.diags);
	if (!tap_ok(good, "the expansion verifies as primitive"))
		printf("# %s\n", after.diags.at[0].message);
	tap_ok(!ilir_verify(b.m, ILIR_PRIMITIVE, "parse", &b.diags) && bench_says(&b, "was to be expanded"),
	       "what it came from does not");
	tap_ok(strlen(bench_text(&after)) < 10000, "its text stays small: %zu bytes",
	       strlen(bench_text(&after)));
	bench_allocate(&b, 100, 0, 0, 0, 0);
	bench_allocate(&after, 100, 0, 0, 0, 0);
	for (int i = 0; i < 100; i++)
		((float *)b.buffers[0])[i] = ((float *)after.buffers[0])[i] = (i - 50) * 0.3f;
	tap_ok(bench_run(&b, 0, 100) && bench_run(&after, 0, 100) &&
		   !memcmp(b.buffers[1], after.buffers[1], 400),
	       "interpreted before and after expand_math: the same bits, no load ahead of its condition");
	bench_close(&b);
	bench_close(&after);
}

/* x(k+1) = xk * xk, 60 times in one statement. */
static void test_shared_nodes(void)
{
	struct bench b;
	bench_parse(&b, MODULE "buffer y : state 0 f32 [nodes:node]\nkernel k in nodes { y[0] = y[0] }");
	ilir_expr x = b.m->kernels.at[0].body->store.value;
	for (int i = 0; i < 60; i++)
		x = ilir_binary(b.m, ILIR_MUL, x, x);
	b.m->kernels.at[0].body->store.value = x;
	bench_allocate(&b, 1, 0, 0, 0, 0);
	*(float *)b.buffers[0] = -1;
	tap_ok(bench_run(&b, 0, 0) && *(float *)b.buffers[0] == 1, "a node used twice is computed once");
	ilir_expand_math(b.m, NULL);
	tap_ok(strlen(bench_text(&b)) < 4000, "and after expand_math it has a name");
	bench_close(&b);
}

/* An operator on a type that it has no row for in ilir_ops.def ends the run. */
static void test_untyped(void)
{
	struct bench b;
	bench_parse(&b, MODULE "buffer y : state 0 bool [nodes:node]\nkernel k in nodes { y[0] = y[0] }");
	struct ilir_stmt *s = b.m->kernels.at[0].body;
	s->store.value = ilir_binary(b.m, ILIR_ADD, s->store.value, s->store.value);
	bench_allocate(&b, 1, 0, 0, 0, 0);
	tap_ok(!bench_run(&b, 0, 0) && bench_says(&b, "+ has no meaning for bool"),
	       "a sum of bools is a fault, not a zero");
	bench_close(&b);
}

int main(void)
{
	test_untyped();
	test_recursion();
	test_cases();
	test_ragged_sum();
	test_vectors();
	test_operators();
	test_out_of_bounds();
	test_missing_memory();
	test_swept_loop();
	test_undefined_register();
	test_expansion();
	test_shared_nodes();
	return tap_done();
}
