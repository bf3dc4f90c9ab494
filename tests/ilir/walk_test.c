/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The walkers: each shared node is visited once; rewriting, ranges, accesses. */
#include "tests/ilir/support.h"

static const struct ilir_type index_type = {ILIR_INDEX, 1};

static void open_module(struct bench *b)
{
	bench_open(b);
	b->m = ARENA_NEW(&b->arena, struct ilir_module);
	ilir_init(b->m, &b->arena, "m");
}

static ilir_expr count_map(struct ilir_module *m, ilir_expr e, void *context)
{
	(void)m;
	++*(int *)context;
	return e;
}

static void count_visit(const struct ilir_module *m, ilir_expr e, void *context)
{
	(void)m, (void)e;
	++*(int *)context;
}

/* x0 = v, x(k+1) = xk + xk: 200 nodes, 2^200 paths. */
static void test_shared_nodes(void)
{
	struct bench b;
	int mapped = 0, visited = 0;
	open_module(&b);
	ilir_var v = ilir_new_var(b.m, "v", (struct ilir_type){ILIR_F32, 1});
	ilir_expr x = ilir_var_ref(b.m, v);
	for (int i = 0; i < 200; i++)
		x = ilir_binary(b.m, ILIR_ADD, x, x);
	ilir_expr same = ilir_map_expr(b.m, x, count_map, &mapped);
	ilir_visit_expr(b.m, x, &(struct ilir_visit){.expr = count_visit, .context = &visited});
	tap_ok(mapped == 201 && same.i == x.i, "mapping calls once a node, however often it is used");
	tap_ok(visited == 201, "and so does visiting");
	tap_ok(ilir_uses_var(b.m, x, v) && !ilir_uses_var(b.m, x, ilir_begin), "a variable is found below");
	ilir_expr y = ilir_substitute(b.m, x, v, ilir_float(b.m, 1));
	tap_ok(!ilir_uses_var(b.m, y, v) && y.i != x.i, "and can be replaced");
	struct ilir_stmt *s = ilir_store(b.m, (ilir_buffer){0}, &x, 1, x);
	visited = 0;
	ilir_visit_block(b.m, s, &(struct ilir_visit){.expr = count_visit, .context = &visited});
	tap_ok(visited == 201, "within one statement a node is visited once");
	bench_close(&b);
}

static struct ilir_stmt *double_or_drop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)context;
	if (s->kind == ILIR_BARRIER)
		return NULL;
	return s->kind == ILIR_STORE
		   ? ilir_append(s, ilir_store(m, s->store.buffer, s->store.index, 1, s->store.value))
		   : s;
}

static ilir_expr halve_constant(struct ilir_module *m, ilir_expr e, void *context)
{
	(void)context;
	return ilir_is_const(m, e, 8) ? ilir_index(m, 4) : e;
}

static void test_rewriting(void)
{
	struct bench b;
	bench_parse(&b,
		    "module m\ndim i\nbuffer x : state 0 f32 [8:i]\nkernel k in nodes {\n"
		    "  for i:i in 0..8 {\n    x[i] = 1.0\n    barrier\n  }\n  barrier\n  if 3 < 8 {\n    "
		    "x[8] = 2.0\n  }\n}\n");
	ilir_rewrite_module(b.m, &(struct ilir_rewrite){.expr = halve_constant, .stmt = double_or_drop});
	tap_ok(strcmp(bench_text(&b),
		      "module m\ndim i\nbuffer x : state 0 f32 [8:i]\nkernel k in nodes {\n"
		      "  for i:i in 0..4 {\n    x[i] = 1.0\n    x[i] = 1.0\n  }\n"
		      "  if 3 < 4 {\n    x[4] = 2.0\n    x[4] = 2.0\n  }\n}\n") == 0,
	       "rewriting maps expressions, puts blocks for statements and drops them");
	bench_close(&b);
}

static struct ilir_range range_of(struct bench *b, ilir_expr e, struct ilir_range of_v)
{
	struct ilir_range of_var[8] = {{0, 0}, {INT64_MIN, INT64_MAX}, {INT64_MIN, INT64_MAX}, of_v}, r;
	struct ilir_known known = {of_var, NULL};
	ilir_range_of(b->m, e, &known, &r);
	return r;
}

static bool is_range(struct ilir_range r, int64_t low, int64_t high)
{
	return r.low == low && r.high == high;
}

static void test_ranges(void)
{
	struct bench b;
	open_module(&b);
	struct ilir_module *m = b.m;
	ilir_expr v = ilir_var_ref(m, ilir_new_var(m, "v", index_type)), three = ilir_index(m, 3);
	struct ilir_range r = {-5, 7}, open = {2, INT64_MAX};
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_ADD, v, three), r), -2, 10), "range of v + 3");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_SUB, three, v), r), -4, 8), "range of 3 - v");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_MUL, v, ilir_index(m, -2)), r), -14, 10),
	       "range of v * -2");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_DIV, v, three), r), -2, 2), "range of div(v, 3)");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_MOD, v, three), r), 0, 2), "range of mod(v, 3)");
	tap_ok(is_range(
		   range_of(&b, ilir_binary(m, ILIR_MOD, v, ilir_index(m, 10)), (struct ilir_range){-8, -6}),
		   2, 4),
	       "range of mod(v, 10) between two multiples");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_MIN, v, three), r), -5, 3), "range of min(v, 3)");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_MAX, v, three), open), 3, INT64_MAX),
	       "range of max(v, 3), v open");
	tap_ok(is_range(range_of(&b, ilir_spread(m, ILIR_RAMP, v, 8), r), -5, 14),
	       "range of a ramp covers its lanes");
	tap_ok(is_range(range_of(&b, ilir_size(m, IMAGE_NODES), r), 0, INT64_MAX), "a size is not negative");
	tap_ok(is_range(range_of(&b, ilir_binary(m, ILIR_ADD, v, ilir_index(m, INT64_MAX - 1)), r),
			INT64_MAX - 6, INT64_MAX),
	       "what overflows is open");
	struct ilir_range unknown;
	tap_ok(!ilir_range_of(m, v, NULL, &unknown) && is_range(unknown, INT64_MIN, INT64_MAX),
	       "nothing known, nothing found");
	bench_close(&b);
}

struct noted {
	struct str s;
};

static void note_access(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct noted *n = context;
	struct ilir_range r;
	ilir_range_of(m, a->index[0], a->known, &r);
	str_printf(&n->s, "%s%s %d..%d; ", a->load.i ? "" : "=", ilir_buffer_at(m, a->buffer)->name,
		   (int)r.low, (int)r.high);
}

static void check_accesses(const char *what, const char *body, const char *expected)
{
	struct bench b;
	char text[800];
	snprintf(
	    text, sizeof text,
	    "module m\ndim i\nbuffer a : weight 0 f32 [64:i]\nbuffer b : weight 1 f32 [64:i]\n"
	    "buffer y : state 0 f32 [nodes:i]\nbuffer c : child 0 i32 [nodes:i]\nkernel k in nodes { %s }",
	    body);
	if (!tap_ok(bench_parse(&b, text), "%s: read", what))
		return;
	struct noted n = {str_in(&b.arena)};
	ilir_visit_accesses(b.m, b.m->kernels.at[0].body, note_access, &n);
	if (!tap_ok(strcmp(str_text(&n.s), expected) == 0, "%s: accesses", what))
		printf("# %s\n", str_text(&n.s));
	bench_close(&b);
}

static void test_accesses(void)
{
	check_accesses("a concatenation", "for i:i in 0..128 { y[i] = select(i < 64, a[i], b[i - 64]) }",
		       "a 0..63; b 0..63; =y 0..127; ");
	check_accesses("a condition with its sides exchanged",
		       "for i:i in 0..128 { y[i] = select(64 <= i, b[i - 64], a[i]) }",
		       "b 0..63; a 0..63; =y 0..127; ");
	check_accesses(
	    "three pieces",
	    "for i:i in 0..90 { y[i] = select(i < 30, a[i], select(i < 60, b[i - 30], a[i - 60])) }",
	    "a 0..29; b 0..29; a 0..29; =y 0..89; ");
	check_accesses("a branch",
		       "for i:i in 0..9 { if i < 4 { y[i] = 0.0 } else { y[i - 4] = 1.0 } y[i] = 2.0 }",
		       "=y 0..3; =y 0..4; =y 0..8; ");
	check_accesses("both of two conditions", "for i:i in 0..9 { if and(2 <= i, i < 5) { y[i] = 0.0 } }",
		       "=y 2..4; ");
	check_accesses("a loop in steps", "for i:i in 0..30 step 8 { for j:i in i..i + 8 { y[j] = 0.0 } }",
		       "=y 0..31; ");
	check_accesses("a let", "for i:i in 0..9 { let j = i * 3 y[j] = 0.0 }", "=y 0..24; ");
	check_accesses("a side that is never taken", "for i:i in 0..9 { y[i] = select(i < 9, a[i], b[i]) }",
		       "a 0..8; =y 0..8; ");
	check_accesses("a side that constants choose",
		       "for i:i in 0..9 { y[i] = select(or(and(2 == 1, 1 < 5), 4 <= 3), a[i], b[i]) }",
		       "b 0..8; =y 0..8; ");
	check_accesses("an end that constants choose",
		       "for i:i in 0..(1 - select(2 == 1, 1, 0)) * 3 { y[i] = 0.0 }", "=y 0..2; ");
	check_accesses("a loop without iterations", "for i:i in 4..4 { y[i] = 0.0 }", "");
	check_accesses("a vector select, which evaluates both sides",
		       "y[ramp(4, 0)] = select(broadcast(4, 0 < 1), a[ramp(4, 2)], b[ramp(4, 8)])",
		       "a 2..5; b 8..11; =y 0..3; ");
	check_accesses("a step", "step s in 3..7 { for n:i in begin..end { y[n] = 0.0 } }", "=y 3..6; ");
	check_accesses("one load used twice", "for i:i in 0..9 { y[i] = a[i] * a[i] }", "a 0..8; =y 0..8; ");
	check_accesses("a scaled condition", "for i:i in 0..100 { if (i * 3) < 10 { y[i] = 0.0 } }",
		       "=y 0..3; ");
}

/* Selects nested in both sides, with shared nodes: the visit must not take exponential time. */
static void test_nested_selects(void)
{
	struct bench b;
	int calls = 0;
	bench_parse(&b,
		    "module m\ndim i\nbuffer a : state 0 f32 [64:i]\nkernel k in nodes { for i:i in 0..64 { "
		    "a[i] = a[i] } }");
	struct ilir_stmt *store = b.m->kernels.at[0].body->loop.body;
	ilir_expr i = store->store.index[0], x = store->store.value;
	for (int k = 0; k < 60; k++) {
		ilir_expr c = ilir_binary(b.m, ILIR_LT, i, ilir_index(b.m, k)),
			  y = ilir_binary(b.m, ILIR_ADD, x, x);
		x = ilir_ternary(b.m, ILIR_SELECT, c, x, y);
	}
	store->store.value = x;
	struct noted n = {str_in(&b.arena)};
	ilir_visit_accesses(b.m, b.m->kernels.at[0].body, note_access, &n);
	for (const char *at = str_text(&n.s); (at = strchr(at, ';')); at++)
		calls++;
	tap_ok(calls > 0 && calls < 5000, "sixty selects in each other's sides: %d calls, not 2^60", calls);
	bench_close(&b);
}

int main(void)
{
	test_shared_nodes();
	test_rewriting();
	test_ranges();
	test_accesses();
	test_nested_selects();
	return tap_done();
}
