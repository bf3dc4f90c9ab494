/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sub-operators: inference of index variables, its conflicts, the verifier, hash-consing, and the lowering of every
 * operator against plain arithmetic. */
#include "subop/subop.h"
#include "tests/models/helper.h"

struct bench {
	struct arena arena;
	struct diags diags;
	struct sub_program p;
	int i, j, k;
};

static void start(struct bench *b)
{
	arena_init(&b->arena, &allocator_default);
	diags_init(&b->diags, &allocator_default);
	static jmp_buf jump;
	b->arena.escape = &jump;
	sub_init(&b->p, &b->arena, "test");
	b->i = sub_dim(&b->p, 3, 0), b->j = sub_dim(&b->p, 4, 0), b->k = sub_dim(&b->p, 5, 0);
}

static void stop(struct bench *b)
{
	diags_free(&b->diags);
	arena_free(&b->arena);
}

/* Maps of a value that is being made: all zero, to be filled. */
static struct sub_map *new_maps(struct bench *b, struct sub_value *v)
{
	struct sub_map *maps = ARENA_ARRAY(&b->arena, struct sub_map, SUB_MAX_VARS);
	v->map = maps;
	return maps;
}

static struct sub_tensor tensor(const struct bench *b, int first, int second)
{
	const struct sub_var *var = b->p.vars.at;
	struct sub_tensor t = {
	    .name = "t", .rank = second < 0 ? 1 : 2, .var = {first, second}, .shape = {var[first].extent}};
	t.shape[1] = second < 0 ? 0 : var[second].extent;
	return t;
}

/* W[i,k], V[k,j]; a word, a vector x[k] of the node, one of edges y[k]; a state s[i].  Nodes have two slots. */
static void declare(struct bench *b)
{
	const struct sub_input word = {.name = "word", .token = true}, x = {.name = "x", .row = tensor(b, b->k, -1)},
			       y = {.name = "y", .row = tensor(b, b->k, -1), .on_edge = true};
	b->p.children = 2;
	vec_push(&b->arena, &b->p.params, tensor(b, b->i, b->k));
	vec_push(&b->arena, &b->p.params, tensor(b, b->k, b->j));
	vec_push(&b->arena, &b->p.inputs, word);
	vec_push(&b->arena, &b->p.inputs, x);
	vec_push(&b->arena, &b->p.inputs, y);
	vec_push(&b->arena, &b->p.states, tensor(b, b->i, -1));
}

static sub_ref param(struct bench *b, int which, int first, int second)
{
	return sub_add(&b->p,
		       (struct sub_value){.op = SUB_PARAM, .which = which, .vars = 2, .var = {first, second}},
		       &b->diags);
}

static sub_ref binary(struct bench *b, enum sub_op op, struct sub_use x, struct sub_use y)
{
	return sub_add(&b->p, (struct sub_value){.op = op, .arg = {x, y}}, &b->diags);
}

static void test_inference(void)
{
	struct bench b;
	start(&b);
	sub_ref x = param(&b, 0, b.i, b.k), y = param(&b, 1, b.k, b.j);
	sub_ref product = binary(&b, SUB_MULTIPLY, sub_as_is(&b.p, x), sub_as_is(&b.p, y));
	const struct sub_value *v = sub_at(&b.p, product);
	tap_ok(v->vars == 3 && v->var[0] == b.i && v->var[1] == b.k && v->var[2] == b.j, "[i,k] * [k,j] is [i,k,j]");
	sub_ref sum = sub_add(
	    &b.p,
	    (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(&b.p, product)}, .reduced = sub_one_var(b.k)},
	    &b.diags);
	v = sub_at(&b.p, sum);
	tap_ok(v->vars == 2 && v->var[0] == b.i && v->var[1] == b.j, "its sum over k is [i,j]");
	struct sub_use node = {.value = x, .vars = 2, .var = {b.p.node, b.k}};
	v = sub_at(&b.p, binary(&b, SUB_MULTIPLY, sub_as_is(&b.p, x), node));
	tap_ok(v->vars == 3 && v->var[0] == b.p.node && v->var[1] == b.i, "the node comes first");
	size_t before = b.p.values.n;
	sub_ref again = binary(&b, SUB_MULTIPLY, sub_as_is(&b.p, x), sub_as_is(&b.p, y));
	tap_ok(again.i == product.i && b.p.values.n == before, "what is computed alike is one value");
	sub_ref other = binary(&b, SUB_ADD, sub_as_is(&b.p, x), sub_as_is(&b.p, y));
	tap_ok(other.i != product.i, "another operator is another value");
	struct sub_use turned = {.value = x, .vars = 2, .var = {b.k, b.i}};
	sub_ref conflict = binary(&b, SUB_ADD, sub_as_is(&b.p, x), turned);
	tap_ok(!conflict.i && b.diags.n == 1 && b.diags.at[0].id == DIAG_INDEX_ORDER,
	       "[i,k] + [k,i] has no order: refused");
	stop(&b);
}

static bool breaks(struct bench *b, struct sub_value v, const char *why)
{
	vec_push(&b->arena, &b->p.values, v);
	bool ok = !sub_verify(&b->p, &b->diags) && b->diags.n && b->diags.at[0].id == DIAG_INVALID_SUBOPS &&
		  strstr(b->diags.at[0].message, why);
	if (!ok)
		print_diags(&b->diags);
	diags_free(&b->diags);
	b->p.values.n--;
	return ok;
}

/* A value of so many numbers: none when that are too many variables. */
static sub_ref zeros_along(struct bench *b, int vars)
{
	struct sub_value v = {
	    .op = SUB_ASSIGN,
	    .arg = {sub_as_is(&b->p, sub_add(&b->p, (struct sub_value){.op = SUB_CONST}, NULL))}};
	for (int d = 0; d < vars; d++)
		v.var[v.vars++] = sub_dim(&b->p, 2, d);
	return sub_add(&b->p, v, &b->diags);
}

static struct sub_value sum_over(struct bench *b, sub_ref r, struct sub_vars over)
{
	return (struct sub_value){.op = SUB_SUM, .arg = {sub_as_is(&b->p, r)}, .reduced = over};
}

/* The sum in binary32 of a matrix with rows 1e8, 1 and -1e8, 1: over these two of its dimensions, in this order. */
static double sum_matrix(int first, int second)
{
	static const float x[] = {1e8f, 1, -1e8f, 1};
	const int32_t begin[] = {0, 0}, root[] = {0};
	struct sub_forest forest = {1, 1, begin, NULL, root, root, NULL, NULL};
	const void *params[] = {x};
	double result, *outputs[] = {&result};
	struct bench b;
	start(&b);
	int var[] = {sub_dim(&b.p, 2, 0), sub_dim(&b.p, 2, 1)};
	vec_push(&b.arena, &b.p.params, tensor(&b, var[0], var[1]));
	struct sub_vars over = {2, {var[first], var[second]}};
	sub_ref sum = sub_add(&b.p, sum_over(&b, param(&b, 0, var[0], var[1]), over), &b.diags);
	struct sub_value rows = {.op = SUB_ASSIGN, .arg = {sub_as_is(&b.p, sum)}, .vars = 1, .var = {b.p.node}};
	struct sub_store store = {.to = SUB_TO_OUTPUT, .value = sub_as_is(&b.p, sub_add(&b.p, rows, &b.diags))};
	struct sub_body body = {.name = "output", .domain = SUB_EVERY_NODE};
	vec_push(&b.arena, &body.stores, store);
	vec_push(&b.arena, &b.p.bodies, body);
	vec_push(&b.arena, &b.p.outputs, (struct sub_output){.row.name = "y"});
	sub_evaluate_in(SUB_BINARY32, &b.p, &forest, params, NULL, outputs, &b.arena);
	stop(&b);
	return result;
}

/* sum_i,k of [i,k]: one reduction, with all of what it reduces in its text, its place in the table and its rules. */
static void test_many_reduced(void)
{
	struct bench b;
	start(&b);
	declare(&b);
	sub_ref x = param(&b, 0, b.i, b.k);
	struct sub_vars both = {2, {b.i, b.k}}, turned = {2, {b.k, b.i}}, twice = {2, {b.k, b.k}}, none = {0};
	sub_ref sum = sub_add(&b.p, sum_over(&b, x, both), &b.diags);
	tap_ok(sub_at(&b.p, sum)->vars == 0 && sub_verify(&b.p, &b.diags), "the sum of [i,k] over i and k is a number");
	tap_ok(sub_add(&b.p, sum_over(&b, x, both), NULL).i == sum.i &&
		   sub_add(&b.p, sum_over(&b, x, turned), NULL).i != sum.i,
	       "another order of additions is another value");
	tap_ok(sub_reduced_extent(&b.p, sub_at(&b.p, sum)) == 15, "it reduces 15 elements");
	struct str s = str_in(&b.arena);
	sub_print_reduced(&b.p, sub_at(&b.p, sum), &s);
	tap_ok(strcmp(str_text(&s), "_i,k") == 0, "which its text says: %s", str_text(&s));
	tap_ok(sum_matrix(0, 1) == 1 && sum_matrix(1, 0) == 2,
	       "elements are added in order, the last variable the fastest");
	tap_ok(breaks(&b,
		      (struct sub_value){.op = SUB_SUM,
					 .args = 1,
					 .arg = {sub_as_is(&b.p, x)},
					 .vars = 1,
					 .var = {b.i},
					 .reduced = twice},
		      "stands twice"),
	       "a variable is reduced once");
	tap_ok(breaks(&b,
		      (struct sub_value){.op = SUB_SUM,
					 .args = 1,
					 .arg = {sub_as_is(&b.p, x)},
					 .vars = 2,
					 .var = {b.i, b.k},
					 .reduced = none},
		      "reduces no variable"),
	       "a reduction reduces something");
	struct sub_value edges = {.op = SUB_VECTOR, .which = 2, .vars = 3, .var = {b.p.node, b.p.edge, b.k}};
	struct sub_vars ragged = {2, {b.p.edge, b.k}};
	struct sub_value over = {.op = SUB_SUM, .args = 1, .vars = 1, .var = {b.p.node}, .reduced = ragged};
	over.arg[0] = sub_as_is(&b.p, sub_add(&b.p, edges, NULL));
	tap_ok(breaks(&b, over, "together with others"), "edges are reduced alone");
	stop(&b);
}

static void test_many_variables(void)
{
	struct bench b;
	start(&b);
	sub_ref most = zeros_along(&b, SUB_MAX_VARS);
	tap_ok(most.i && sub_at(&b.p, most)->vars == 16 && sub_verify(&b.p, &b.diags), "sixteen variables");
	struct sub_use u = sub_as_is(
	    &b.p, sub_add(&b.p, (struct sub_value){.op = SUB_PARAM, .vars = 1, .var = {b.i}}, NULL));
	sub_ref more = sub_add(&b.p, (struct sub_value){.op = SUB_ADD, .arg = {sub_as_is(&b.p, most), u}}, &b.diags);
	tap_ok(!more.i && b.diags.n == 1 && b.diags.at[0].id == DIAG_INDEX_ORDER &&
		   strstr(b.diags.at[0].message, "more than 16"),
	       "seventeen are refused");
	stop(&b);
}

/* Equal lists of maps are kept once, whatever they move. */
static void test_shared_maps(void)
{
	struct bench b;
	start(&b);
	sub_ref moved[2];
	for (int p = 0; p < 2; p++) {
		struct sub_map maps[] = {{.var = b.j, .scale = 1}, {.var = b.i, .scale = 1}};
		struct sub_value v = {.op = SUB_ASSIGN, .vars = 2, .var = {b.i, b.j}, .map = maps};
		v.arg[0] = sub_as_is(&b.p, param(&b, p, b.j, b.i));
		moved[p] = sub_add(&b.p, v, &b.diags);
		tap_ok(sub_add(&b.p, v, &b.diags).i == moved[p].i && sub_find_value(&b.p, v).i == moved[p].i,
		       "one value is one");
		maps[0].offset = 1;
		tap_ok(!sub_find_value(&b.p, v).i && sub_at(&b.p, moved[p])->map[0].offset == 0,
		       "its maps are its own");
	}
	tap_ok(moved[0].i != moved[1].i && sub_at(&b.p, moved[0])->map == sub_at(&b.p, moved[1])->map,
	       "two values that move alike have one list of maps");
	stop(&b);
}

static void test_verifier(void)
{
	struct bench b;
	start(&b);
	declare(&b);
	sub_ref x = param(&b, 0, b.i, b.k), y = param(&b, 1, b.k, b.j);
	sub_ref state = sub_add(&b.p, (struct sub_value){.op = SUB_STATE, .vars = 2, .var = {b.p.node, b.i}}, &b.diags);
	struct sub_use xu = sub_as_is(&b.p, x), yu = sub_as_is(&b.p, y), later = {.value = {99}}, few = xu,
		       renamed = xu;
	few.vars = 1;
	renamed.var[1] = b.j;
	tap_ok(sub_verify(&b.p, &b.diags), "a program that is right passes");
	tap_ok(
	    breaks(&b, (struct sub_value){.op = SUB_NEG, .args = 1, .arg = {later}}, "does not come before"),
	    "a use before the value");
	tap_ok(breaks(&b, (struct sub_value){.op = SUB_NEG, .args = 1, .arg = {few}, .vars = 1, .var = {b.i}},
		      "names 1 of the 2"),
	       "a use that names too few dimensions");
	tap_ok(breaks(&b,
		      (struct sub_value){
			  .op = SUB_NEG, .args = 1, .arg = {renamed}, .vars = 2, .var = {b.i, b.j}},
		      "another range"),
	       "a rename to another extent");
	tap_ok(breaks(&b,
		      (struct sub_value){.op = SUB_NEG, .args = 1, .arg = {xu}, .vars = 2, .var = {b.i, b.i}},
		      "stands twice"),
	       "a variable twice");
	tap_ok(breaks(&b,
		      (struct sub_value){
			  .op = SUB_ADD, .args = 2, .arg = {xu, yu}, .vars = 3, .var = {b.k, b.i, b.j}},
		      "out of order"),
	       "variables out of order");
	tap_ok(breaks(&b,
		      (struct sub_value){
			  .op = SUB_NEG, .args = 1, .arg = {xu}, .vars = 3, .var = {b.i, b.k, b.j}},
		      "from no argument"),
	       "a variable from nowhere");
	struct sub_map shifted = {.function = SUB_AFFINE, .var = b.i, .scale = 1, .offset = 1},
		       whole = {.var = b.k, .scale = 1};
	struct sub_map moves[] = {shifted, whole}, rows[2];
	struct sub_value move = {.op = SUB_ASSIGN, .args = 1, .arg = {xu}, .vars = 2, .var = {b.i, b.k}, .map = moves};
	tap_ok(breaks(&b, move, "outside its dimension"), "a slice that leaves its axis");
	moves[0].var = b.j;
	tap_ok(breaks(&b, move, "does not have"), "a map of a variable that is not there");
	struct sub_value row = {.op = SUB_ASSIGN,
				.args = 1,
				.arg = {sub_as_is(&b.p, state)},
				.vars = 2,
				.var = {b.p.node, b.i},
				.map = rows};
	rows[0] = (struct sub_map){.var = b.p.node, .scale = 1, .offset = 1},
	rows[1] = (struct sub_map){.var = b.i, .scale = 1};
	tap_ok(breaks(&b, row, "by arithmetic"), "a map to the next node");
	rows[0].offset = 0, rows[1].var = b.p.node, row.fills = true;
	tap_ok(breaks(&b, row, "no range"), "a map of the node to a dimension");
	struct sub_value join = {.op = SUB_COND, .args = 2, .arg = {xu, xu}, .vars = 2, .var = {b.i, b.j}, .axis = 1};
	tap_ok(breaks(&b, join, "do not add up"), "a concatenation of the wrong extent");
	join.axis = 2;
	tap_ok(breaks(&b, join, "do not add up"), "one along no axis");
	join.axis = 1, join.var[0] = b.j, join.var[1] = sub_dim(&b.p, 10, 0);
	tap_ok(breaks(&b, join, "from no argument"), "one of other rows");
	join.vars = 1, join.axis = 0, join.var[0] = sub_dim(&b.p, 10, 0);
	tap_ok(breaks(&b, join, "is lost"), "one that loses its rows");
	stop(&b);
}

static void test_sources(void)
{
	struct bench b;
	start(&b);
	declare(&b);
	const struct sub_value param = {.op = SUB_PARAM, .vars = 2, .var = {b.i, b.k}},
			       state = {.op = SUB_STATE, .vars = 2, .var = {b.p.node, b.i}};
	struct sub_value edges = {.op = SUB_VECTOR, .which = 2, .vars = 3, .var = {b.p.node, b.p.edge, b.k}}, v;
	sub_add(&b.p, param, NULL), sub_add(&b.p, state, NULL), sub_add(&b.p, edges, NULL);
	tap_ok(sub_verify(&b.p, &b.diags), "what is declared can be read");
	v = param, v.which = 2;
	tap_ok(breaks(&b, v, "is not declared"), "a parameter that is not declared");
	v = state, v.which = -1;
	tap_ok(breaks(&b, v, "is not declared"), "nor is this state");
	v = edges, v.which = 0;
	tap_ok(breaks(&b, v, "the variables are not those"), "a word read as a vector");
	v = param, v.var[0] = b.j;
	tap_ok(breaks(&b, v, "are not those"), "a parameter of another extent");
	v = state, v.var[0] = b.p.input;
	tap_ok(breaks(&b, v, "are not those"), "a state of an input");
	v = edges, v.vars = 2, v.var[1] = b.k;
	tap_ok(breaks(&b, v, "are not those"), "a vector of edges read of the node");
	v = (struct sub_value){.op = SUB_CONST, .vars = 1, .var = {b.i}};
	tap_ok(breaks(&b, v, "are not those"), "a number with a dimension");
	stop(&b);
}

static void test_slots(void)
{
	struct bench b;
	start(&b);
	declare(&b);
	const struct sub_value h = {.op = SUB_STATE, .vars = 2, .var = {b.p.node, b.i}},
			       y = {.op = SUB_VECTOR, .which = 2, .vars = 3, .var = {b.p.node, b.p.edge, b.k}};
	struct sub_use state = sub_as_is(&b.p, sub_add(&b.p, h, NULL)), edges = sub_as_is(&b.p, sub_add(&b.p, y, NULL));
	struct sub_value child = {.op = SUB_ASSIGN, .args = 1, .arg = {state}, .vars = 2, .var = {b.p.node, b.i}};
	struct sub_map *map = new_maps(&b, &child);
	map[0] = (struct sub_map){.function = SUB_CHILD, .which = 2, .var = b.p.node};
	map[1] = (struct sub_map){.var = b.i, .scale = 1};
	tap_ok(breaks(&b, child, "no such slot"), "a child in a third slot of two");
	struct sub_value edge = {.op = SUB_ASSIGN, .args = 1, .arg = {edges}, .vars = 2, .var = {b.p.node, b.k}};
	map = new_maps(&b, &edge);
	map[0] = (struct sub_map){.var = b.p.node, .scale = 1};
	map[1] = (struct sub_map){.function = SUB_SLOT_EDGE, .which = -1, .var = b.p.node};
	map[2] = (struct sub_map){.var = b.k, .scale = 1};
	tap_ok(breaks(&b, edge, "no such slot"), "an edge in a slot before the first");
	struct sub_value row = {.op = SUB_ASSIGN, .args = 1, .vars = 2, .var = {b.p.node, b.k}};
	row.arg[0] = sub_as_is(&b.p, param(&b, 0, b.i, b.k));
	map = new_maps(&b, &row);
	map[0] = (struct sub_map){.function = SUB_TOKEN, .which = 3, .var = b.p.node};
	map[1] = (struct sub_map){.var = b.k, .scale = 1};
	tap_ok(breaks(&b, row, "no token"), "rows picked by an input that is not there");
	stop(&b);
}

/* --- arithmetics --- */

/* op(number, number) for the one node of a forest; NaN when the arithmetic refuses. */
static double apply(enum sub_arithmetic arithmetic, enum sub_op op, double x, double y)
{
	struct bench b;
	double result, *outputs[] = {&result};
	const int32_t begin[] = {0, 0}, root[] = {0};
	struct sub_forest forest = {1, 1, begin, NULL, root, root, NULL, NULL};
	start(&b);
	struct sub_use use[2];
	for (int i = 0; i < 2; i++)
		use[i] =
		    sub_as_is(&b.p, sub_add(&b.p, (struct sub_value){.op = SUB_CONST, .constant = i ? y : x},
					    &b.diags));
	sub_ref r = sub_add(&b.p, (struct sub_value){.op = op, .arg = {use[0], use[1]}}, &b.diags);
	struct sub_value rows = {.op = SUB_ASSIGN, .arg = {sub_as_is(&b.p, r)}, .vars = 1, .var = {b.p.node}};
	struct sub_store store = {.to = SUB_TO_OUTPUT, .value = sub_as_is(&b.p, sub_add(&b.p, rows, &b.diags))};
	struct sub_body body = {.name = "output", .domain = SUB_EVERY_NODE};
	vec_push(&b.arena, &body.stores, store);
	vec_push(&b.arena, &b.p.bodies, body);
	vec_push(&b.arena, &b.p.outputs, (struct sub_output){.row.name = "y"});
	bool ok = sub_evaluate_in(arithmetic, &b.p, &forest, NULL, NULL, outputs, &b.arena);
	stop(&b);
	return ok ? result : NAN;
}

static void test_arithmetics(void)
{
	static const double prime = 2147483647;
	tap_ok(apply(SUB_BINARY64, SUB_ADD, 1, 1e-9) == 1 + 1e-9 &&
		   apply(SUB_BINARY32, SUB_ADD, 1, 1e-9) == 1,
	       "binary32 rounds");
	tap_ok(isinf(apply(SUB_BINARY32, SUB_MULTIPLY, 1e30, 1e30)), "binary32 overflows");
	tap_ok(apply(SUB_FIELD, SUB_ADD, prime - 1, 3) == 2, "the field wraps");
	tap_ok(apply(SUB_FIELD, SUB_MULTIPLY, 0.375, 8) == 3, "three eighths of 8 are 3 there");
	tap_ok(apply(SUB_FIELD, SUB_NEG, -5, 0) == 5 && apply(SUB_FIELD, SUB_NEG, 0, 0) == 0, "minus minus 5 is 5");
	tap_ok(apply(SUB_FIELD, SUB_MULTIPLY, apply(SUB_FIELD, SUB_REC, 7, 0), 7) == 1, "a seventh times 7 is 1");
	tap_ok(isnan(apply(SUB_FIELD, SUB_EXP, 1, 0)) && isnan(apply(SUB_FIELD, SUB_SMAX, 1, 2)),
	       "it has no exp and no order");
	tap_ok(isnan(apply(SUB_FIELD, SUB_ADD, INFINITY, 1)), "and nothing infinite");
}

/* --- operators --- */

static const char text[] =
    "model ops\nstructure tree(*)\ninput x[4]\nparam W[3, 4], M[4, 4]\nstate s[4]\nnode:\n s = x\n"
    "output product = W @ s\noutput back = (W @ s) @ W\noutput square = s @ M @ s\n"
    "output div = s / (s * s + 1)\noutput sub = s - 1\noutput neg = -s\noutput most = maximum(s, 0.25)\n"
    "output total = sum(s)\noutput top = max(s)\noutput part = s[1:3]\noutput both = concat(s[2:], s[:2])\n"
    "output turned = transpose(M) @ s\noutput roots = sqrt(exp(log(s * s + 1)))\n"
    "output squash = sigmoid(s) + tanh(s)\noutput none = s + zeros(4)\noutput size = s * dimension(4)\n";

/* Each output from the definition, for the row s of one node. */
static double expected(const char *name, const float *W, const float *M, const float *s, int e)
{
	double total = 0, most = -INFINITY, Ws[3] = {0};
	for (int i = 0; i < 4; i++) {
		total += s[i];
		most = s[i] > most ? s[i] : most;
		for (int r = 0; r < 3; r++)
			Ws[r] += (double)W[4 * r + i] * s[i];
	}
	double back = 0, square = 0, turned = 0;
	for (int r = 0; r < 3; r++)
		back += Ws[r] * W[4 * r + e];
	for (int i = 0; i < 4; i++) {
		turned += (double)M[4 * i + e] * s[i];
		for (int k = 0; k < 4; k++)
			square += (double)s[i] * M[4 * i + k] * s[k];
	}
	struct {
		const char *name;
		double value;
	} all[] = {
	    {"product", Ws[e % 3]},
	    {"back", back},
	    {"square", square},
	    {"div", s[e] / ((double)s[e] * s[e] + 1)},
	    {"sub", s[e] - 1.0},
	    {"neg", -s[e]},
	    {"most", s[e] > 0.25f ? s[e] : 0.25},
	    {"total", total},
	    {"top", most},
	    {"part", s[(e + 1) % 4]},
	    {"both", s[(e + 2) % 4]},
	    {"turned", turned},
	    {"roots", sqrt((double)s[e] * s[e] + 1)},
	    {"squash", 1 / (1 + exp(-s[e])) + tanh(s[e])},
	    {"none", s[e]},
	    {"size", 4.0 * s[e]},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].value;
	return NAN;
}

static void test_operators(void)
{
	struct test_model t = {0};
	struct sub_program p;
	static jmp_buf jump;
	arena_init(&t.arena, &allocator_default);
	diags_init(&t.diags, &allocator_default);
	t.arena.escape = &jump;
	t.model = ra_parse(&t.arena, &t.diags, "ops", text, sizeof text - 1);
	sub_init(&p, &t.arena, "ops");
	bool ok = t.model && sub_lower_model(&p, t.model, t.sizes, SUB_AT_MODEL, &t.diags) &&
		  sub_verify(&p, &t.diags);
	print_diags(&t.diags);
	if (!tap_ok(ok, "every operator is lowered"))
		return;
	float W[12], M[16], x[8];
	read_weight(NULL, 0, 0, 12, W, NULL), read_weight(NULL, 1, 0, 16, M, NULL), read_weight(NULL, 2, 0, 8, x, NULL);
	const void *params[] = {W, M};
	double states[8], out[32][8], *state[] = {states}, *outputs[32];
	for (int i = 0; i < 32; i++)
		outputs[i] = out[i];
	const int32_t begin[] = {0, 0, 1}, children[] = {0}, root[] = {1}, order[] = {0, 1};
	const void *data[] = {x};
	struct sub_forest forest = {2, 1, begin, children, root, order, data, NULL};
	sub_evaluate(&p, &forest, params, state, outputs, &t.arena);
	for (size_t o = 0; o < p.outputs.n; o++) {
		const struct sub_tensor *row = &p.outputs.at[o].row;
		int n = row->rank ? row->shape[0] : 1;
		double worst = 0;
		for (int node = 0; node < 2; node++)
			for (int e = 0; e < n; e++) {
				double error = fabs(out[o][node * n + e] - expected(row->name, W, M, x + 4 * node, e));
				worst = error > worst || isnan(error) ? error : worst;
			}
		tap_ok(worst < 1e-12, "%s is as it is defined, to %.1e", row->name, worst);
	}
	free_model(&t);
}

/* A body with this store. */
static bool store_breaks(struct bench *b, enum sub_domain domain, int traversal, struct sub_store store,
			 const char *why)
{
	struct sub_body body = {.name = "body", .domain = domain, .traversal = traversal};
	vec_push(&b->arena, &body.stores, store);
	vec_push(&b->arena, &b->p.bodies, body);
	bool ok = !sub_verify(&b->p, &b->diags) && b->diags.n && b->diags.at[0].id == DIAG_INVALID_SUBOPS &&
		  strstr(b->diags.at[0].message, why);
	if (!ok)
		print_diags(&b->diags);
	diags_free(&b->diags);
	b->p.bodies.n--;
	return ok;
}

/* A body that stores a value to a state. */
static bool body_breaks(struct bench *b, enum sub_domain domain, int traversal, sub_ref value, int state,
			const char *why)
{
	struct sub_store store = {.to = SUB_TO_STATE, .which = state, .value = sub_as_is(&b->p, value)};
	return store_breaks(b, domain, traversal, store, why);
}

static sub_ref neighbour(struct bench *b, sub_ref state, enum sub_function function)
{
	struct sub_value v = {.op = SUB_ASSIGN, .arg = {sub_as_is(&b->p, state)}, .vars = 2, .var = {b->p.node, b->i}};
	struct sub_map *map = new_maps(b, &v);
	map[0] = (struct sub_map){.function = function, .var = b->p.node};
	map[1] = (struct sub_map){.var = b->i, .scale = 1};
	return sub_add(&b->p, v, &b->diags);
}

/* Up, then down; a state each. */
static void test_traversals(void)
{
	struct bench b;
	start(&b);
	sub_ref state[2];
	vec_push(&b.arena, &b.p.traversals, (struct sub_traversal){.down = true});
	for (int s = 0; s < 2; s++) {
		struct sub_value v = {.op = SUB_STATE, .which = s, .vars = 2, .var = {b.p.node, b.i}};
		struct sub_tensor t = {
		    .name = "s", .rank = 1, .var = {b.i}, .shape = {b.p.vars.at[b.i].extent}, .traversal = s};
		vec_push(&b.arena, &b.p.states, t);
		state[s] = sub_add(&b.p, v, &b.diags);
	}
	b.p.children = 2;
	sub_ref child = neighbour(&b, state[0], SUB_CHILD), parent = neighbour(&b, state[0], SUB_PARENT);
	tap_ok(body_breaks(&b, SUB_INNER, 0, state[1], 0, "a later traversal"), "a state of a later traversal");
	tap_ok(body_breaks(&b, SUB_INNER, 0, child, 1, "of another traversal"), "a store to another traversal's state");
	tap_ok(body_breaks(&b, SUB_INNER, 0, parent, 0, "other direction"), "a parent in a traversal up");
	tap_ok(body_breaks(&b, SUB_BELOW, 1, child, 1, "other direction"), "a child in a traversal down");
	tap_ok(body_breaks(&b, SUB_LEAF, 0, child, 0, "a leaf reads a child"), "a leaf that reads a child");
	tap_ok(body_breaks(&b, SUB_TOP, 1, parent, 1, "a root a parent"), "a root that reads a parent");
	tap_ok(body_breaks(&b, SUB_BELOW, 2, parent, 1, "no traversal"), "a traversal that is not there");
	stop(&b);
}

static void test_stores(void)
{
	struct bench b;
	start(&b);
	declare(&b);
	sub_ref state = sub_add(&b.p, (struct sub_value){.op = SUB_STATE, .vars = 2, .var = {b.p.node, b.i}}, &b.diags);
	sub_ref x =
	    sub_add(&b.p, (struct sub_value){.op = SUB_VECTOR, .which = 1, .vars = 2, .var = {b.p.node, b.k}},
		    &b.diags);
	struct sub_store later = {.to = SUB_TO_STATE, .value = sub_as_is(&b.p, state)},
			 output = {.to = SUB_TO_OUTPUT, .value = later.value}, few = later;
	sub_ref weight = param(&b, 0, b.i, b.k);
	later.value.value.i = 99, few.value.vars = 1;
	tap_ok(store_breaks(&b, SUB_LEAF, 0, later, "does not come before"), "a store of what is not there");
	tap_ok(store_breaks(&b, SUB_LEAF, 0, few, "names 1 of the 2"), "a store that names too few dimensions");
	tap_ok(body_breaks(&b, SUB_LEAF, 0, state, 1, "not declared"), "a store to a state that is not declared");
	tap_ok(store_breaks(&b, SUB_EVERY_NODE, 0, output, "not declared"), "and to such an output");
	tap_ok(body_breaks(&b, SUB_EVERY_NODE, 0, state, 0, "not its own"), "a state stored after the recursion");
	tap_ok(body_breaks(&b, SUB_LEAF, 0, x, 0, "another shape"), "a store of another extent");
	tap_ok(body_breaks(&b, SUB_LEAF, 0, weight, 0, "another shape"), "a store of no row");
	stop(&b);
}

int main(void)
{
	test_inference();
	test_many_reduced();
	test_many_variables();
	test_shared_maps();
	test_verifier();
	test_sources();
	test_slots();
	test_stores();
	test_traversals();
	test_arithmetics();
	test_operators();
	return tap_done();
}
