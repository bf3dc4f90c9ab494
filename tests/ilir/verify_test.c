/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Breaks every rule of the verifier once: by text where the parser accepts it, else by changing a module. */
#include "tests/ilir/support.h"

static const char head[] =
    "module m\ndim node, i, j, lane, member\n"
    "buffer h : state 0 f32 [nodes:node, 60/64:i]\n"
    "buffer w : weight 0 f32 [16:j, 64:i]\n"
    "buffer b : weight 1 u8 [16:j, 64:i]\n"
    "buffer c : child 0 i32 [nodes:node]\n"
    "buffer y : output 0 f32 [nodes:node, 64:i]\n"
    "buffer own : local 0 f32 [nodes:node, 64:i]\n"
    "buffer kept : scratch 0 f32 [widest:node, 64:i]\n"
    "buffer derived : scratch 0 f32 [nodes:node, 64:i]\n"
    "buffer rows : read_row 0 i32 [nodes:node]\n"
    "buffer given : given 0 f32 [nodes:member, 64:i]\n"
    "buffer members : member_list 0 i32 [nodes:member]\n"
    "buffer leaf : state 1 f32 [nodes:node, 64:i] or w by rows\n"
    "kernel k in once {\n";

static bool open_body(struct bench *b, const char *body)
{
	bench_open(b);
	struct str s = str_in(&b->arena);
	str_puts(&s, head);
	str_printf(&s, "%s\n}\n", body);
	b->m = ilir_parse(&b->arena, &b->diags, "test", s.text, s.n);
	return b->m;
}

static const struct {
	const char *body;
	unsigned properties;
} accepted[] = {
    {"for n:node in begin..end { for i:i in 0..60 { h[n, i] = h[to_index(c[n]), i] } }",
     ILIR_BOUNDED | ILIR_IN_BOUNDS},
    {"for n:node in ?..? { h[n, 0] = 1.0 }", 0},
    {"for n:node in begin..end { h[n, 0] = leaf[to_index(rows[to_index(c[n])]), 0] }", ILIR_IN_BOUNDS},
    {"for n:node in begin..end { own[n, 0] = derived[to_index(c[n]), 5] } "
     "for i:i in 0..8 swept { for m:node in begin..end { derived[m, i] = own[m, 0] } }",
     ILIR_IN_BOUNDS},
    {"for m:member in begin..end { let n = to_index(members[m]) h[n, 0] = given[m, 63] }", ILIR_IN_BOUNDS},
    {"for n:node in begin..end { for v:lane in 0..8 vector { h[n, v] = 1.0 } }", ILIR_BOUNDED},
    {"for n:node in begin..end { for t:node in n..n + 4 unrolled { h[t, 0] = 1.0 } }", ILIR_VECTORIZED},
    {"step s in 0..leaves { h[0, 0] = 1.0 } barrier step t in leaves..nodes { h[0, 0] = 2.0 }", 0},
    {"h[0, ramp(8, 56)] = broadcast(8, 1.0)", ILIR_IN_BOUNDS},
    {"alloc r : f32 [8:lane] r[ramp(8, 0)] = w[3, ramp(8, 8)] h[0, ramp(8, 0)] = r[ramp(8, 0)]",
     ILIR_UNROLLED_ALL},
    {"alloc r : index [2:node] r[1] = to_index(c[3]) h[r[1], 0] = 0.0", 0},
    {"for j:j in 0..16 { h[0, j] = 1.0 }", 0},
    {"for i:i in 0..128 { if i < 64 { h[0, i] = 1.0 } }", ILIR_IN_BOUNDS},
    {"for i:i in 0..60 swept { for n:node in begin..end { h[n, i] = h[to_index(c[n]), i] } }",
     ILIR_IN_BOUNDS},
    {"for i:i in 4..60 step 8 swept { h[0, ramp(4, i)] = w[0, ramp(4, 0)] for j:i in 0..4 { h[0, i + j] = "
     "1.0 } "
     "}",
     0},
    {"} kernel a in nodes group 2 part 1 of 2 { } kernel b in nodes group 2 part 2 of 2 { } kernel c in "
     "nodes {",
     ILIR_OUTLINED},
    {"for i:i in 0..8 swept { for n:node in begin..end { h[n, ((i * 4) + 3) - 1] = 1.0 } }", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 0)] = h[1, ramp(8, 0, 9)]", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 0)] = within(h[1, ramp(8, -1)], broadcast(8, 0.0)) h[0, 0] = within(h[1, 70], 1.0)", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 0)] = splice(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 1, 2, 8)", ILIR_IN_BOUNDS | ILIR_RESOLVED},
    {"h[0, ramp(8, 0)] = keep(splice(h[1, ramp(8, 0)], h[1, ramp(8, 6)], -1, 2, 6), broadcast(8, 0.0), 1, 7)",
     ILIR_IN_BOUNDS | ILIR_RESOLVED},
    {"for i:i in 0..16 { h[0, i] = to_f32(word_of(b[3, ramp(4, i * 4)])) }", ILIR_IN_BOUNDS | ILIR_VECTORIZED},
    {"for j:node in 0..8 swept { for i:i in 0..60 step 4 swept { h[j, ramp(4, i)] = broadcast(4, 1.0) } }",
     ILIR_IN_BOUNDS},
    {"for j:i in 0..1 swept { for i:node in 0..8 swept { h[i, 0] = 1.0 } }", ILIR_IN_BOUNDS},
    {"for i:i in 0..60 swept { for n:node in begin..end { prefetch y[n, i] y[n, i] = 1.0 } }",
     ILIR_IN_BOUNDS},
    {"for n:node in begin..end { own[n, 0] = h[to_index(c[n]), 0] } for i:i in 0..60 swept { "
     "for m:node in begin..end { h[m, i] = own[m, 0] } }",
     ILIR_IN_BOUNDS},
    {"for i:i in 0..8 swept { for n:node in begin..end { for j:i in 0..6 { own[n, j] = 1.0 } } "
     "for m:node in begin..end { for l:i in 1..6 { h[m, i] = own[m, l] } } }",
     ILIR_IN_BOUNDS},
};

static void test_accepted(void)
{
	for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
		struct bench b;
		bool good = open_body(&b, accepted[i].body) &&
			    ilir_verify(b.m, accepted[i].properties, "test", &b.diags);
		if (!tap_ok(good, "accepted: %s", accepted[i].body))
			printf("# %s\n", b.diags.n ? b.diags.at[0].message : "");
		bench_close(&b);
	}
}

static const struct {
	const char *body, *message;
	unsigned properties;
} broken[] = {
    /* scopes and definitions */
    {"for n:node in 0..4 { } h[n, 0] = 1.0", "variable 'n' is used outside of its scope", 0},
    {"if 0 < 1 { let x = 1.0 } h[0, 0] = x", "variable 'x' is used outside of its scope", 0},
    {"if 0 < 1 { alloc r : f32 [] } h[0, 0] = r[]", "register 'r' is used outside of its alloc", 0},
    {"if 0 < 1 { alloc r : f32 [] } r[] = 1.0", "register 'r' is used outside of its alloc", 0},
    /* expressions */
    {"h[0, 0] = h[0, ?]", "'?' stands elsewhere than as a loop's bound", 0},
    {"let x = ?", "a ramp or '?' stands as a value", 0},
    {"h[?, 0] = 1.0", "'?' stands elsewhere than as a loop's bound", 0},
    {"step s in ?..4 { }", "'?' stands elsewhere than as a loop's bound", 0},
    {"let x = ramp(8, 0)", "a ramp or '?' stands as a value", 0},
    {"let x = ramp(8, 0) + ramp(8, 1)", "a ramp stands elsewhere than as the last index", 0},
    {"h[0, div(nodes, nodes)] = 1.0", "div by something else than a positive constant", 0},
    {"h[0, mod(nodes, -3)] = 1.0", "mod by something else than a positive constant", 0},
    {"let x = shl(1i, 32i)", "shl by something else than a constant in 0..31", 0},
    {"let x = shr(1i, as_i32(1.0))", "shr by something else than a constant in 0..31", 0},
    {"prefetch 1.0", "a prefetch of what is not in memory", 0},
    {"h[0, 0] = within(1.0, 0.0)", "within of something else than a load from memory", 0},
    {"alloc r : f32 [8:lane] h[0, 0] = within(r[0], 0.0)", "within of something else than a load from memory", 0},
    {"h[0, 0] = to_f32(within(to_i32(h[1, 0]), 0i))", "within of something else than a load from memory", 0},
    {"h[0, 0] = within(h[1, 0], 0.0)", "within is left", ILIR_RESOLVED},
    {"h[0, ramp(8, 0)] = splice(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 16, 1, 8)", "splice of lanes that two vectors have not", 0},
    {"h[0, ramp(8, 0)] = splice(h[1, ramp(8, 0)], h[1, ramp(8, 8)], -8, 1, 8)", "splice of lanes that two vectors have not", 0},
    {"h[0, ramp(8, 0)] = splice(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 0, 3, 8)", "splice of lanes that two vectors have not", 0},
    {"h[0, ramp(8, 0)] = splice(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 0, 2, 9)", "splice of lanes that two vectors have not", 0},
    {"h[0, ramp(8, 0)] = keep(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 0, 9)", "keep of lanes that two vectors have not", 0},
    {"h[0, ramp(8, 0)] = keep(h[1, ramp(8, 0)], h[1, ramp(8, 8)], 3, 2)", "keep of lanes that two vectors have not", 0},
    {"alloc r : u8 [4:lane] h[0, 0] = to_f32(word_of(r[ramp(4, 0)]))", "word_of something else than a load of neighbours from memory", 0},
    {"h[0, 0] = to_f32(word_of(broadcast(4, b[0, 0])))", "word_of something else than a load of neighbours from memory", 0},
    {"for i:i in 0..16 { h[0, i] = to_f32(word_of(b[3, ramp(4, (i * 4) + 1)])) }", "index 1 of 'b' reaches", ILIR_IN_BOUNDS},
    {"alloc r : f32 [] prefetch r[]", "a prefetch of what is not in memory", 0},
    {"prefetch write 1.0", "a prefetch of what is not in memory", 0},
    {"prefetch h[0, ?]", "'?' stands elsewhere than as a loop's bound", 0},
    {"prefetch h[0, 64]", "index 1 of 'h' reaches 64..64, but its extent is 64", ILIR_IN_BOUNDS},
    /* indices and stores */
    {"h[0, 0, 0] = 1.0", "'h' has rank 2 but 3 indices", 0},
    {"h[0, 1.0] = 1.0", "index 1 of 'h' is not of type index", 0},
    {"h[ramp(8, 0), 0] = 1.0", "index 0 of 'h' is a vector", 0},
    {"h[0, to_index(c[ramp(8, 0)])] = broadcast(8, 1.0)", "index 1 of 'h' is a vector", 0},
    {"for m:member in begin..end { h[m, 0] = given[m, 0] }",
     "'m' walks along 'member' but indexes dimension 'node' of 'h'", 0},
    {"for n:node in begin..end { h[n, 0] = given[n, 0] }",
     "'n' walks along 'node' but indexes dimension 'member' of 'given'", 0},
    {"given[0, 0] = 1.0", "a store to 'given', a given", 0},
    {"h[0, ramp(8, 0)] = given[0, ramp(8, 60)]", "index 1 of 'given' reaches 60..67, but its extent is 64",
     ILIR_IN_BOUNDS},
    {"h[0, 0] = 1i", "'h' holds f32 but the value is i32", 0},
    {"h[0, 0] = c[0]", "'h' holds f32 but the value is i32", 0},
    {"h[0, ramp(8, 0)] = 1.0", "the value has 1 lanes but the place has 8", 0},
    {"h[0, 0] = broadcast(8, 1.0)", "the value has 8 lanes but the place has 1", 0},
    {"w[0, 0] = 1.0", "a store to 'w', a weight", 0},
    {"c[0] = 1i", "a store to 'c', a child", 0},
    /* loops, conditions, steps */
    {"for i:i in 0..1.5 { }", "a bound is not a scalar index", 0},
    {"for i:i in 0..nodes vector { }", "vector loop has no constant number of iterations", 0},
    {"for i:i in 0..to_index(c[0]) unrolled { }", "unrolled loop has no constant number of iterations", 0},
    {"for j:j in 0..16 { h[j, 0] = 1.0 }", "'j' walks along 'j' but indexes dimension 'node' of 'h'", 0},
    {"if 1.0 { }", "a condition that is not a scalar bool", 0},
    {"for i:i in 0..8 swept { } h[0, 0] = 1.0", "a swept loop that is not all of its kernel", 0},
    {"let x = 1.0 for i:i in 0..8 swept { h[0, i] = x }", "a swept loop that is not all of its kernel", 0},
    {"for i:i in 0..8 swept { } for j:j in 0..8 swept { }", "a swept loop that is not all of its kernel", 0},
    {"for n:node in begin..end { for i:i in 0..8 swept { } }", "a swept loop that is not all of its kernel",
     0},
    {"for j:j in 0..8 swept { let x = 1.0 for i:i in 0..8 swept { h[0, (j * 8) + i] = x } }",
     "a swept loop that is not all", 0},
    {"for j:j in 0..8 swept { for i:i in 0..8 { for k:i in 0..1 swept { h[0, (j * 8) + i] = 1.0 } } }",
     "a swept loop that is not all", 0},
    {"for j:j in 0..8 swept { for i:i in 0..8 swept { h[0, j + i] = 1.0 } }",
     "write and use the same elements of 'h'", 0},
    {"for j:j in 0..8 swept { for i:i in 0..8 swept { h[0, j] = 1.0 } }",
     "write and use the same elements of 'h'", 0},
    {"for i:i in 0..nodes swept { h[i, 0] = 1.0 }", "a swept loop without a constant number of iterations",
     0},
    {"for i:i in ?..? swept { h[0, i] = 1.0 }", "a swept loop without a constant number of iterations", 0},
    {"for i:i in 8..8 swept { h[0, i] = 1.0 }", "a swept loop without a constant number of iterations", 0},
    {"for i:i in 0..8 swept { h[0, 0] = 1.0 }", "write and use the same elements of 'h'", 0},
    {"for n:node in begin..end { kept[n, 0] = 1.0 } for i:i in 0..8 swept { h[0, i] = kept[0, 0] }",
     "what stands before this swept loop cannot run again because of 'kept'", 0},
    {"for n:node in begin..end { own[n, 0] = kept[n, 0] } for i:i in 0..8 swept { kept[0, i] = own[0, 0] }",
     "what stands before this swept loop cannot run again because of 'kept'", 0},
    {"let x = 1.0 for n:node in begin..end { own[n, 0] = x } for i:i in 0..8 swept { h[0, i] = own[0, 0] }",
     "a swept loop that is not all of its kernel", 0},
    {"for i:i in 0..8 swept { for m:i in 0..6 { h[0, i] = own[0, m] } for j:i in 0..6 { own[0, j] = 1.0 } }",
     "iterations of this swept loop write and use the same elements of 'own'", 0},
    {"for i:i in 0..8 swept { for j:i in 0..6 { own[0, j] = 1.0 } for m:i in 0..7 { h[0, i] = own[0, m] } }",
     "iterations of this swept loop write and use the same elements of 'own'", 0},
    {"for i:i in 0..8 swept { for j:i in 0..6 { own[0, j] = 1.0 h[0, i] = own[0, j] } }",
     "iterations of this swept loop write and use the same elements of 'own'", 0},
    {"for i:i in 0..8 { h[0, i] = own[0, i] }",
     "'own' is of one call, and this kernel reads it without storing it", 0},
    {"for i:i in 0..8 swept { for j:i in 0..2 { h[0, i + j] = 1.0 } }",
     "write and use the same elements of 'h'", 0},
    {"for i:i in 0..56 step 4 swept { h[0, ramp(8, i)] = broadcast(8, 1.0) }",
     "write and use the same elements of 'h'", 0},
    {"for i:i in 0..8 swept { h[0, mod(i, 4)] = 1.0 }", "write and use the same elements of 'h'", 0},
    {"for i:i in 0..8 swept { h[0, i - i] = 1.0 }", "write and use the same elements of 'h'", 0},
    {"for i:i in 0..8 swept { for n:node in 0..2 { h[0, i + to_index(c[n])] = 1.0 } }", "write and use the same elements of 'h'", 0},
    {"for i:i in 0..8 swept { y[0, i] = y[0, 0] }", "write and use the same elements of 'y'", 0},
    {"for i:i in 0..8 swept { step s in 0..4 { h[0, i] = 1.0 } }", "a step inside a swept loop", 0},
    {"for i:i in 0..8 swept { barrier }", "a barrier inside a swept loop", 0},
    {"step s in 0..4 { step t in 0..4 { } }", "a step inside a step", 0},
    {"step s in 0..4 { barrier }", "a barrier inside a step", 0},
    {"} kernel a in nodes { } kernel a in leaves {", "another kernel has this name", ILIR_OUTLINED},
    {"} kernel a in nodes group 2 part 1 of 2 { } kernel b in nodes {",
     "parts of a group that are not numbered", 0},
    {"} kernel a in nodes group 2 part 2 of 2 {", "parts of a group that are not numbered", 0},
    {"} kernel a in nodes group 2 part 1 of 2 {", "parts of a group that are not numbered", 0},
    {"} kernel a in nodes part 1 of 2 { } kernel b in nodes part 3 of 2 {",
     "parts of a group that are not numbered", 0},
    {"} kernel a in nodes group 1 part 1 of 2 { } kernel b in nodes group 2 part 2 of 2 {",
     "parts of a group that are not numbered", 0},
    {"} kernel a in nodes group 1 part 1 of 2 { } kernel b in leaves group 1 part 2 of 2 {",
     "parts of a group that are not numbered", 0},
    /* properties */
    {"for n:node in ?..4 { }", "a bound is left to be inferred", ILIR_BOUNDED},
    {"h[0, 64] = 1.0", "index 1 of 'h' reaches 64..64, but its extent is 64", ILIR_IN_BOUNDS},
    {"for i:i in 0..64 { h[0, i + -1] = 1.0 }", "reaches -1..62", ILIR_IN_BOUNDS},
    {"for n:node in begin..end { h[n + -1, 0] = 1.0 }", "index 0 of 'h' reaches -1..?", ILIR_IN_BOUNDS},
    {"for n:node in 0..4 { h[0, 64 + (-1 * n)] = 1.0 }", "index 1 of 'h' reaches 61..64", ILIR_IN_BOUNDS},
    {"h[0, min(to_index(c[0]), 64)] = 1.0", "index 1 of 'h' reaches ?..64, but its extent is 64",
     ILIR_IN_BOUNDS},
    {"h[max(to_index(c[0]), -2), 0] = 1.0", "index 0 of 'h' reaches -2..?", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 57)] = broadcast(8, 1.0)", "reaches 57..64", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 0)] = h[1, ramp(8, 1, 9)]", "reaches 1..64", ILIR_IN_BOUNDS},
    {"h[0, ramp(8, 0, 2)] = broadcast(8, 1.0)", "a store to 'h' by more than 1", 0},
    {"alloc r : f32 [16:lane] h[0, ramp(8, 0)] = r[ramp(8, 0, 2)]", "index 0 of 'r' is a ramp by more than 1",
     0},
    {"let x = c[ramp(8, 0, 2)]", "index 0 of 'c' is a ramp by more than 1", 0},
    {"for i:i in 0..8 swept { y[0, i] = 1.0 let x = y[0, ramp(4, i, 2)] }",
     "write and use the same elements of 'y'", 0},
    {"let x = w[16, 0]", "index 0 of 'w' reaches 16..16", ILIR_IN_BOUNDS},
    {"step s in 0..4 { }", "a step is left", ILIR_OUTLINED},
    {"barrier", "a barrier is left", ILIR_OUTLINED},
    {"for i:i in 0..8 vector { }", "a vector loop is left", ILIR_VECTORIZED},
    {"for i:i in 0..8 unrolled { }", "an unrolled loop is left", ILIR_UNROLLED_ALL},
    {"alloc r : f32 [8:i] for i:i in 0..8 { r[i] = 1.0 }", "register 'r' is not indexed by a constant",
     ILIR_UNROLLED_ALL},
    {"alloc r : f32 [8:i] parked for i:i in 0..4 { r[ramp(4, i)] = broadcast(4, 1.0) }", "register 'r' is not indexed by a constant",
     ILIR_UNROLLED_ALL},
    {"let x = exp(1.0)", "exp is left", ILIR_PRIMITIVE},
    {"let x = log(1.0)", "log is left", ILIR_PRIMITIVE},
    {"let x = sigmoid(1.0)", "sigmoid is left", ILIR_PRIMITIVE},
    {"let x = tanh(1.0)", "tanh is left", ILIR_PRIMITIVE},
};

/* A module that breaks a property must pass without it, or it would not test the property. */
static void test_broken(void)
{
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct bench b;
		bool read = open_body(&b, broken[i].body), before = true;
		if (read && broken[i].properties)
			before = ilir_verify(b.m, 0, "test", &b.diags);
		tap_ok(read && before && !ilir_verify(b.m, broken[i].properties, "test", &b.diags) &&
			   bench_says(&b, broken[i].message) && b.diags.at[0].id == DIAG_INVALID_LOOPS,
		       "refused: %s", broken[i].body);
		bench_close(&b);
	}
}

/* --- faults that no text can express --- */

static struct ilir_stmt *first_stmt(struct bench *b)
{
	return b->m->kernels.at[0].body;
}

static void second_definition(struct bench *b)
{
	ilir_append(first_stmt(b), ilir_let(b->m, first_stmt(b)->let.var, first_stmt(b)->let.value));
}

static void no_group(struct bench *b)
{
	b->m->kernels.at[0].group = -1;
}

static void second_alloc(struct bench *b)
{
	first_stmt(b)->next = ilir_alloc(b->m, first_stmt(b)->alloc);
}

static void wrong_var_type(struct bench *b)
{
	b->m->vars.at[first_stmt(b)->let.var.i].type.dtype = ILIR_I32;
}

static void own_begin(struct bench *b)
{
	first_stmt(b)->let.var = ilir_begin;
}

static void no_value(struct bench *b)
{
	first_stmt(b)->let.value.i = 0;
}

static void no_dimension(struct bench *b)
{
	first_stmt(b)->loop.dim = 99;
}

static void no_step(struct bench *b)
{
	first_stmt(b)->loop.step = 0;
}

static void ill_typed(struct bench *b)
{
	first_stmt(b)->let.value = ilir_binary(b->m, ILIR_ADD, ilir_float(b->m, 1), ilir_i32(b->m, 1));
}

static void lying_type(struct bench *b)
{
	b->m->nodes.at[first_stmt(b)->let.value.i].type = (struct ilir_type){ILIR_BOOL, 1};
}

static void wrong_arity(struct bench *b)
{
	b->m->nodes.at[first_stmt(b)->let.value.i].op = ILIR_FMA;
}

static void no_variable(struct bench *b)
{
	first_stmt(b)->let.value = ilir_unary(b->m, ILIR_NEG, first_stmt(b)->let.value);
	b->m->nodes.at[ilir_arg(b->m, first_stmt(b)->let.value, 0).i].op = ILIR_VAR;
	b->m->nodes.at[ilir_arg(b->m, first_stmt(b)->let.value, 0).i].args = 0;
	b->m->nodes.at[ilir_arg(b->m, first_stmt(b)->let.value, 0).i].var.i = 77;
}

static void no_buffer(struct bench *b)
{
	first_stmt(b)->store.buffer.i = 77;
}

static void dropped_buffer(struct bench *b)
{
	b->m->buffers.at[1].kind = ILIR_UNUSED;
}

static void foreign_alloc(struct bench *b)
{
	first_stmt(b)->alloc.i = 1;
}

static void wide_broadcast(struct bench *b)
{
	b->m->nodes.at[first_stmt(b)->let.value.i].type.lanes = 99;
}

static void unknown_statement(struct bench *b)
{
	first_stmt(b)->kind = 99;
}

static void inner_rows(struct bench *b)
{
	b->m->buffers.at[1].dim[1].rows = IMAGE_NODES;
}

static void no_padding(struct bench *b)
{
	b->m->buffers.at[1].dim[1].padded = 1;
}

static struct ilir_buffer_decl *looked_up(struct bench *b)
{
	return &b->m->buffers.at[b->m->buffers.n - 1];
}

static void padded_given(struct bench *b)
{
	ilir_buffer_at(b->m, ilir_find_buffer(b->m, IMAGE_GIVEN))->dim[1].padded = 72;
}

static void wide_table(struct bench *b)
{
	looked_up(b)->dim[1].padded++;
}

static void table_of_others(struct bench *b)
{
	looked_up(b)->table = (ilir_buffer){1};
}

static void table_of_integers(struct bench *b)
{
	looked_up(b)->dtype = ILIR_I32;
}

static void rows_of_others(struct bench *b)
{
	looked_up(b)->read_row = (ilir_buffer){3};
}

static void no_table(struct bench *b)
{
	looked_up(b)->table = (ilir_buffer){77};
}

static void unnamed_dimension(struct bench *b)
{
	b->m->buffers.at[1].dim[1].name = -1;
}

static void index_array(struct bench *b)
{
	b->m->buffers.at[1].dtype = ILIR_INDEX;
}

static void huge_rank(struct bench *b)
{
	b->m->buffers.at[1].rank = 17;
}

static void unknown_kind(struct bench *b)
{
	b->m->buffers.at[1].kind = 99;
}

static void too_large(struct bench *b)
{
	b->m->buffers.at[2].dim[0].padded = b->m->buffers.at[2].dim[1].padded = (int64_t)1 << 40;
}

static void nameless_kernel(struct bench *b)
{
	b->m->kernels.at[0].name = NULL;
}

static void step_in_step_kernel(struct bench *b)
{
	b->m->kernels.at[0].domain = IMAGE_DOMAIN_NODES;
}

static void nameless_step(struct bench *b)
{
	first_stmt(b)->step.name = NULL;
}

static void step_of_cases(struct bench *b)
{
	first_stmt(b)->step.cases = 1;
}

static void step_of_sort(struct bench *b)
{
	first_stmt(b)->step.sort = 1;
}

static void set_recipe(struct bench *b, int buffer, struct image_recipe r)
{
	b->m->buffers.at[buffer].recipe = arena_copy(&b->arena, &r, sizeof r);
}

static void packed_state(struct bench *b)
{
	set_recipe(b, 1, (struct image_recipe){.dims = 1, .sources = 1});
}

static void short_recipe(struct bench *b)
{
	set_recipe(b, 2, (struct image_recipe){.dims = 1, .sources = 1, .dim = {{0, 3, 1}}});
}

static void few_sources(struct bench *b)
{
	set_recipe(b, 2,
		   (struct image_recipe){.dims = 1, .sources = 2, .dim = {{IMAGE_PACK_SOURCE, 1024, 1}}});
}

/* Two dimensions whose extents are each within the number of sources, but not their sum. */
static void few_sources_together(struct bench *b)
{
	set_recipe(b, 2,
		   (struct image_recipe){
		       .dims = 3,
		       .sources = 2,
		       .dim = {{IMAGE_PACK_SOURCE, 2, 1}, {IMAGE_PACK_SOURCE, 2, 1}, {0, 256, 1}}});
}

static void source_below_first(struct bench *b)
{
	set_recipe(
	    b, 2,
	    (struct image_recipe){.dims = 2, .sources = 2, .dim = {{IMAGE_PACK_SOURCE, 2, -1}, {0, 512, 1}}});
}

static void source_beyond_bits(struct bench *b)
{
	set_recipe(b, 2,
		   (struct image_recipe){.dims = 2,
					 .sources = 2,
					 .dim = {{IMAGE_PACK_SOURCE, 4, INT64_MAX / 2 + 1}, {0, 256, 1}}});
}

static void walk_backwards(struct bench *b)
{
	set_recipe(b, 2, (struct image_recipe){.dims = 1, .sources = 1, .dim = {{0, 1024, -1}}});
}

static void no_axis(struct bench *b)
{
	set_recipe(b, 2, (struct image_recipe){.dims = 1, .sources = 1, .dim = {{9, 1024, 1}}});
}

static void no_sources(struct bench *b)
{
	set_recipe(b, 2, (struct image_recipe){.dims = 1, .dim = {{0, 1024, 1}}});
}

static const struct {
	const char *what, *body;
	void (*harm)(struct bench *);
	const char *message;
} harmed[] = {
    {"a variable defined twice", "let x = 1.0", second_definition, "variable 'x' is defined a second time"},
    {"a register defined twice", "alloc r : f32 []", second_alloc, "register 'r' is defined a second time"},
    {"a variable of another type", "let x = 1.0", wrong_var_type,
     "variable 'x' is declared with another type"},
    {"begin defined by a let", "let x = 1.0", own_begin, "which is predefined or does not exist"},
    {"a let without a value", "let x = 1.0", no_value, "an expression is missing"},
    {"a loop without a dimension", "for n:node in 0..4 { }", no_dimension, "walks along no dimension"},
    {"a group below zero", "let x = 1.0", no_group, "parts of a group that are not numbered"},
    {"a loop that stands still", "for n:node in 0..4 { }", no_step, "a step that is not positive"},
    {"operands of two types", "let x = 1.0", ill_typed, "operands differ in type"},
    {"a type that is not that of the operands", "let x = 1.0 + 2.0", lying_type,
     "is not that of its operands"},
    {"a missing operand", "let x = 1.0 + 2.0", wrong_arity, "fma has 2 operands"},
    {"a variable that does not exist", "let x = 1.0", no_variable, "there is no variable 77"},
    {"a buffer that does not exist", "h[0, 0] = 1.0", no_buffer, "there is no buffer 77"},
    {"a buffer that was dropped", "h[0, 0] = 1.0", dropped_buffer, "'h' was dropped as unused"},
    {"an alloc of a state", "alloc r : f32 []", foreign_alloc, "alloc of something else than a register"},
    {"99 lanes", "let x = broadcast(8, 1.0)", wide_broadcast, "broadcast to 99 lanes"},
    {"a statement of no kind", "barrier", unknown_statement, "a statement of no known kind"},
    {"rows inside", "barrier", inner_rows, "only the first of an array may be"},
    {"negative padding", "barrier", no_padding, "is padded to less than its extent"},
    {"rows of the caller that are padded", "barrier", padded_given,
     "'given' is padded, but its rows are the caller's"},
    {"a table of longer rows", "barrier", wide_table, "'leaf' has no rows like those of its table"},
    {"a table that is no weight", "barrier", table_of_others, "'leaf' has no rows like those of its table"},
    {"a table of another type", "barrier", table_of_integers, "'leaf' has no rows like those of its table"},
    {"rows that are no rows to read", "barrier", rows_of_others,
     "'leaf' has no rows like those of its table"},
    {"a table that does not exist", "barrier", no_table, "'leaf' has no rows like those of its table"},
    {"a dimension without a name", "barrier", unnamed_dimension, "dimension 1 of 'h' has no name"},
    {"an array of indices", "barrier", index_array, "'h' cannot hold elements of type index"},
    {"seventeen dimensions", "barrier", huge_rank, "'h' has rank 17"},
    {"a buffer of no kind", "barrier", unknown_kind, "'h' is of no known kind"},
    {"2^80 elements", "barrier", too_large, "'w' has too many elements"},
    {"a kernel without a name", "barrier", nameless_kernel, "a kernel needs a name"},
    {"a step in a kernel with a domain", "step s in 0..4 { }", step_in_step_kernel,
     "a step in a kernel that is one itself"},
    {"a step without a name", "step s in 0..4 { }", nameless_step, "a step without a name"},
    {"a step of cases that nodes have not", "step s in 0..4 { }", step_of_cases,
     "a step of some cases where nodes have none"},
    {"a step in an order that there is not", "step s in 0..4 { }", step_of_sort,
     "in the order of sort 0, which there is not"},
    {"a packed state", "barrier", packed_state, "'h' is packed but not a weight"},
    {"a recipe of another size", "barrier", short_recipe, "fills another number of elements"},
    {"a dimension longer than the number of sources", "barrier", few_sources,
     "fewer sources than it interleaves"},
    {"two dimensions that add up to more than the number of sources", "barrier", few_sources_together,
     "fewer sources than it interleaves"},
    {"a source before the first", "barrier", source_below_first, "fewer sources than it interleaves"},
    {"a source beyond 64 bits", "barrier", source_beyond_bits, "fewer sources than it interleaves"},
    {"a recipe that walks backwards", "barrier", walk_backwards, "leaves axis 0"},
    {"a recipe along no axis", "barrier", no_axis, "walks along no axis"},
    {"a recipe without sources", "barrier", no_sources, "has 1 dimensions and 0 sources"},
};

static void test_harmed(void)
{
	for (size_t i = 0; i < sizeof harmed / sizeof *harmed; i++) {
		struct bench b;
		bool before = open_body(&b, harmed[i].body) && ilir_verify(b.m, 0, "test", &b.diags);
		if (before)
			harmed[i].harm(&b);
		tap_ok(before && !ilir_verify(b.m, 0, "test", &b.diags) && bench_says(&b, harmed[i].message),
		       "refused: %s", harmed[i].what);
		bench_close(&b);
	}
}

static void test_message(void)
{
	struct bench b;
	open_body(&b, "for n:node in begin..end { w[n, 0] = fma(1.0, 2.0, h[n, 3]) }");
	ilir_verify(b.m, 0, "tile", &b.diags);
	tap_ok(bench_says(&b, "after tile: kernel 'k': w[n, 0] = fma(1.0, 2.0, h[n, 3]): "),
	       "a message names the pass, the kernel and the statement");
	bench_close(&b);
	open_body(&b, "let x = y");
	tap_ok(!b.m, "(a text that is refused has no module)");
	bench_close(&b);
}

static void test_intermediates(void)
{
	struct bench b;
	bench_parse(
	    &b,
	    "module m\ndim i\nbuffer s : scratch 0 f32 [nodes:i]\nbuffer t : scratch 1 f32 [nodes:i]\n"
	    "buffer h : state 0 f32 [nodes:i]\n"
	    "kernel k in nodes { for i:i in 0..2 { s[i] = 1.0 h[i] = s[i] } s[0] = t[0] }");
	tap_ok(ilir_stored_intermediates(b.m) == 1, "scratch buffers that are written are counted once each");
	bench_close(&b);
}

int main(void)
{
	test_accepted();
	test_broken();
	test_harmed();
	test_message();
	test_intermediates();
	return tap_done();
}
