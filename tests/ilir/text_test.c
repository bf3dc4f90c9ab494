/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Printing and parsing: exact round trips, and texts that the parser refuses. */
#include "tests/ilir/support.h"

static const char tree[] =
    "module treelstm\n"
    "dim node, D, E, K, batch, tile, gate, lane, column\n"
    "buffer h : state 0 f32 [nodes:node, 64:D]\n"
    "buffer child.0 : child 0 i32 [nodes:node]\n"
    "buffer batch_begin : batch_begin 0 i32 [batches+1:batch]\n"
    "buffer case : case 0 i32 [nodes:node]\n"
    "buffer leaf.W_i : weight 3 f32 [150/152:D, 64:E]\n"
    "buffer inner.pack : weight 5 f32 [19:column, 150:K, 5:gate, 8:lane] packed [19 of axis 1 step 8, 150 of "
    "axis 0 "
    "step 1, 5 of source step 1, 8 of axis 1 step 1] from 5[0..150, 0..150], 6[0..150, 150..300], 7[0..150, "
    "0..150], "
    "8[0..150, 0..150], 9[]\n"
    "buffer `max` : scratch 0 f32 [nodes:node]\n"
    "buffer `odd\\x60 name` : output 1 f32 [inputs:node]\n"
    "kernel treelstm in once {\n"
    "  step leaf group 1 in 0..leaves {\n"
    "    for i:D in 0..64 {\n"
    "      for n:node in begin..end {\n"
    "        let row = to_index(child.0[n])\n"
    "        alloc acc : f32 []\n"
    "        alloc rows : index [2:tile, 5:gate]\n"
    "        acc[] = 0.0\n"
    "        for k:E in 0..64 step 8 unrolled {\n"
    "          acc[] = fma(leaf.W_i[i, k], h[row, k], acc[])\n"
    "        }\n"
    "        h[n, i] = fma(acc[], 2.0, sigmoid(acc[]))\n"
    "        if n < leaves {\n"
    "          `max`[n] = ((acc[] * 1e-06) + -0.0) + inf\n"
    "        } else {\n"
    "          `max`[n] = select((n + -3) <= nodes, -nan, as_f32(as_i32(acc[]) & -16i)) - -1e+10\n"
    "        }\n"
    "        h[n, ramp(8, i)] = broadcast(8, acc[] / 3.25)\n"
    "        h[n, ramp(4, i)] = h[n, ramp(4, i + 1, 3)]\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  for b:batch in 1..batches {\n"
    "    step inner group 2 of case 1 30 in to_index(batch_begin[b])..to_index(batch_begin[b + 1]) {\n"
    "      for v:lane in ?..? vector {\n"
    "        h[v, 0] = max(nan, nan(1))\n"
    "      }\n"
    "    }\n"
    "    barrier\n"
    "  }\n"
    "}\n"
    "kernel leaf in batch_down group 7 of case 0 part 1 of 1 {\n"
    "  for j:D in 0..64 step 8 swept {\n"
    "    for n.1:node in begin..end {\n"
    "      prefetch h[n.1, ramp(8, j)]\n"
    "      prefetch write h[n.1, ramp(8, j)]\n"
    "      let wide = (-9223372036854775808l + 9223372036854775807l) ^ 0l\n"
    "      let chosen = select(not(true), to_i8(1i), to_i8(wrap_i32(wide)))\n"
    "      h[n.1, ramp(8, j)] = broadcast(8, 1.0)\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_round_trip(void)
{
	struct bench b, again;
	if (!tap_ok(bench_parse(&b, tree), "a module with every kind of statement is read"))
		return;
	const char *text = bench_text(&b);
	tap_ok(strcmp(text, tree) == 0, "printing gives the text that was read");
	tap_ok(bench_parse(&again, text) && strcmp(bench_text(&again), text) == 0,
	       "and so does doing it again");
	tap_ok(again.m->nodes.n == b.m->nodes.n && again.m->vars.n == b.m->vars.n &&
		   again.m->buffers.n == b.m->buffers.n,
	       "with as many expressions, variables and buffers");
	const struct image_recipe *r = b.m->buffers.at[6].recipe;
	tap_ok(r && r->dims == 4 && r->sources == 5 && r->source[1].end[1] == 300 &&
		   r->source[4].end[0] == 0 && r->dim[2].axis == IMAGE_PACK_SOURCE,
	       "all of a packing recipe is read");
	bench_close(&b);
	bench_close(&again);
}

static void test_built_module(void)
{
	struct bench b, again;
	bench_open(&b);
	b.m = ARENA_NEW(&b.arena, struct ilir_module);
	ilir_init(b.m, &b.arena, "built");
	int node = ilir_dim_name(b.m, "node");
	ilir_buffer h = ilir_new_buffer(
	    b.m, (struct ilir_buffer_decl){
		     "h", IMAGE_STATE, ILIR_F32, 0, 1, {{node, IMAGE_NODES, 0, 0}}, NULL, {0}, {0}, false, false});
	ilir_var n = ilir_new_var(b.m, "n", (struct ilir_type){ILIR_INDEX, 1});
	ilir_expr at = ilir_var_ref(b.m, n), value = ilir_unary(b.m, ILIR_TANH, ilir_load(b.m, h, &at, 1));
	struct ilir_stmt *loop = ilir_for(b.m, n, ilir_var_ref(b.m, ilir_begin), ilir_var_ref(b.m, ilir_end),
					  1, node, ILIR_SERIAL, ilir_store(b.m, h, &at, 1, value));
	vec_push(&b.arena, &b.m->kernels,
		 (struct ilir_kernel){.name = "k", .domain = IMAGE_DOMAIN_NODES, .body = loop});
	const char *text = bench_text(&b);
	tap_ok(strcmp(text,
		      "module built\ndim node\nbuffer h : state 0 f32 [nodes:node]\nkernel k in nodes {\n"
		      "  for n:node in begin..end {\n    h[n] = tanh(h[n])\n  }\n}\n") == 0,
	       "a module from constructors prints as written here");
	tap_ok(bench_parse(&again, text) && strcmp(bench_text(&again), text) == 0, "and is read back");
	bench_close(&b);
	bench_close(&again);
}

static void test_table(void)
{
	static const char text[] =
	    "module m\ndim node, i, j\nbuffer w : weight 0 f32 [9:i, 4:j]\n"
	    "buffer r : read_row 0 i32 [nodes:node]\nbuffer h : state 0 f32 [nodes:node, 4:j] or w by r\n";
	struct bench b;
	if (!tap_ok(bench_parse(&b, text) && strcmp(bench_text(&b), text) == 0,
		    "a state with a table is read and printed"))
		return;
	const struct ilir_buffer_decl *h = &b.m->buffers.at[3];
	tap_ok(h->table.i == 1 && h->read_row.i == 2, "with both names");
	bench_close(&b);
}

#define HEAD "module m\ndim d\nbuffer a : state 0 f32 [nodes:d]\n"
#define BODY(text) HEAD "kernel k in nodes {\n" text "\n}\n"

static const struct {
	const char *what, *text, *message;
	int line, column;
} refused[] = {
    {"an empty text", "", "expected 'module'", 1, 1},
    {"a missing brace", HEAD "kernel k in nodes {\n", "found the end of the text", 5, 1},
    {"an unknown name", BODY("a[n] = 0.0"), "'n' is not defined", 5, 3},
    {"an undeclared dimension", BODY("for i:e in 0..4 { }"), "'e' is not a dimension", 5, 7},
    {"a second definition", BODY("let a = 0.0"), "'a' is defined already", 5, 5},
    {"a wrong number of indices", BODY("a[0] = a[0, 1]"), "the number of indices is not the buffer's rank", 6,
     1},
    {"operands of two types", BODY("a[0] = 1.0 + 1"), "operands differ in type", 6, 1},
    {"too few operands", BODY("a[0] = fma(1.0, 2.0)"), "fma takes 3 operands, not 2", 6, 1},
    {"words of f16 that are floats", BODY("a[0] = fma_f16(1.0, 2.0, 3.0)"),
     "operands have a type that this operator does not take", 6, 1},
    {"a store to a variable", BODY("let x = 1.0 x[0] = 1.0"), "a variable is stored to", 5, 14},
    {"a huge number", BODY("a[99999999999999999999] = 1.0"), "is not in", 5, 3},
    {"an i64 that is none", BODY("let x = 9223372036854775808l"), "is no integer of 64 bits", 5, 9},
    {"a sum of bools", BODY("let x = true + false"), "a type that this operator does not take", 6, 1},
    {"a cast of what it has no row for", BODY("let x = to_i8(1.0)"),
     "a type that this operator does not take", 6, 1},
    {"an i32 that is none", BODY("let x = 3000000000i"), "is not in", 5, 9},
    {"too many lanes", BODY("a[ramp(17, 0)] = 1.0"), "17 is not in 2..16", 5, 8},
    {"a ramp of a float", BODY("a[ramp(8, 1.0)] = 1.0"), "ramp needs a scalar index", 5, 14},
    {"a ramp by zero", BODY("let x = a[ramp(8, 1, 0)]"), "0 is not in 1..16", 5, 22},
    {"a step of zero", BODY("for i:d in 0..4 step 0 { }"), "0 is not in 1..", 5, 22},
    {"a keyword as a name", BODY("let for = 1.0"), "expected the variable", 5, 5},
    {"a broken escape", HEAD "kernel `\\xzz` in nodes { }", "a backslash that escapes nothing", 4, 8},
    {"an open quote", HEAD "kernel `k in nodes { }\n", "does not end on its line", 4, 8},
    {"an unknown domain", HEAD "kernel k in space { }", "expected a domain, found 'space'", 4, 13},
    {"a group of number zero", HEAD "kernel k in nodes group 0 { }", "0 is not in 1..", 4, 25},
    {"a part of no number", HEAD "kernel k in nodes part 1 { }", "expected 'of'", 4, 26},
    {"a register declared outside", "module m\ndim d\nbuffer a : register 0 f32 []",
     "expected a kind of buffer", 3, 12},
    {"padding below the extent", "module m\ndim d\nbuffer a : state 0 f32 [8/4:d]", "4 is not in 8..", 3, 27},
    {"seventeen dimensions",
     "module m\ndim d\nbuffer a : state 0 f32 "
     "[1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d,1:d]",
     "more than 16 dimensions", 3, 89},
    {"a stray character", BODY("a[0] = \x01"), "expected an expression", 5, 8},
};

static void test_refused_texts(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct bench b;
		bench_open(&b);
		b.m = ilir_parse(&b.arena, &b.diags, "test", refused[i].text, strlen(refused[i].text));
		bool found = !b.m && b.diags.n == 1 && b.diags.at[0].id == DIAG_INVALID_LOOP_TEXT &&
			     bench_says(&b, refused[i].message);
		tap_ok(found && b.diags.at[0].line == refused[i].line &&
			   b.diags.at[0].column == refused[i].column,
		       "refused: %s", refused[i].what);
		if (b.diags.n &&
		    (b.diags.at[0].line != refused[i].line || b.diags.at[0].column != refused[i].column))
			printf("# at %d:%d\n", b.diags.at[0].line, b.diags.at[0].column);
		bench_close(&b);
	}
}

/* Parses every prefix of a good text, and the text with one byte changed: each is accepted or refused
 * with a message. */
static void test_damaged_text(void)
{
	size_t length = strlen(tree);
	bool silent = false;
	for (size_t i = 0; i < 2 * length; i++) {
		struct bench b;
		bench_open(&b);
		char *copy = arena_text(&b.arena, tree, length);
		if (i >= length)
			copy[i - length] ^= 1 << i % 7;
		b.m = ilir_parse(&b.arena, &b.diags, "test", copy, i < length ? i : length);
		silent |= !b.m != (b.diags.n == 1);
		bench_close(&b);
	}
	tap_ok(!silent, "cut or damaged texts are read or refused with one diagnostic");
}

static void test_deep_nesting(void)
{
	struct bench b;
	bench_open(&b);
	struct str s = str_in(&b.arena);
	str_puts(&s, HEAD "kernel k in nodes { a[0] = ");
	for (int i = 0; i < 100000; i++)
		str_puts(&s, "(");
	b.m = ilir_parse(&b.arena, &b.diags, "test", s.text, s.n);
	tap_ok(!b.m && bench_says(&b, "nested more than 256 deep"),
	       "a hundred thousand parentheses are refused");
	bench_close(&b);
}

int main(void)
{
	test_round_trip();
	test_built_module();
	test_table();
	test_refused_texts();
	test_damaged_text();
	test_deep_nesting();
	return tap_done();
}
