/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A tile of a TreeLSTM level as the schedule makes it: nodes x gates accumulators in registers, one loop over
 * k, packed weights.  The numbers must be those of the same sums in C, and the loop must neither spill nor
 * store. */
#include "tests/jit/helper.h"

#include <math.h>

enum { D = 24, GATES = 5, TILE = 2, NODES = 9, LEAVES = 5 };

struct tile {
	struct fixture *f;
	ilir_buffer child[2], h, c, w[2], bias, acc;
	ilir_var i, n, k, row[TILE][2];
	int lanes;
};

static ilir_expr acc_index(struct tile *t, int node, int gate, ilir_expr index[3])
{
	index[0] = num(t->f, node);
	index[1] = num(t->f, gate);
	index[2] = ramp(t->f, num(t->f, 0), t->lanes);
	return ilir_load(&t->f->m, t->acc, index, 3);
}

static struct ilir_stmt *set_acc(struct tile *t, int node, int gate, ilir_expr value)
{
	ilir_expr index[3];
	acc_index(t, node, gate, index);
	return ilir_store(&t->f->m, t->acc, index, 3, value);
}

static ilir_expr acc(struct tile *t, int node, int gate)
{
	ilir_expr index[3];
	return acc_index(t, node, gate, index);
}

static ilir_expr weight(struct tile *t, int side, int gate)
{
	struct fixture *f = t->f;
	return ilir_load(&f->m, t->w[side],
			 INDICES(ref(f, t->i), ref(f, t->k), num(f, gate), ramp(f, num(f, 0), t->lanes)));
}

static ilir_expr state(struct tile *t, ilir_buffer b, int node, int side)
{
	struct fixture *f = t->f;
	ilir_expr column = ilir_binary(&f->m, ILIR_MUL, ref(f, t->i), num(f, t->lanes));
	return ilir_load(&f->m, b, INDICES(ref(f, t->row[node][side]), ramp(f, column, t->lanes)));
}

static struct ilir_stmt *products(struct tile *t)
{
	struct fixture *f = t->f;
	struct ilir_stmt *s = NULL;
	for (int side = 0; side < 2; side++)
		for (int node = 0; node < TILE; node++)
			for (int gate = 0; gate < GATES; gate++) {
				ilir_expr x =
				    ilir_load(&f->m, t->h, INDICES(ref(f, t->row[node][side]), ref(f, t->k)));
				s = ilir_append(
				    s, set_acc(t, node, gate,
					       ilir_ternary(&f->m, ILIR_FMA, splat(f, x, t->lanes),
							    weight(t, side, gate), acc(t, node, gate))));
			}
	return s;
}

/* c = i u + f0 c0 + f1 c1, h = o c, by fma from the inside. */
static struct ilir_stmt *epilogue(struct tile *t, int node)
{
	struct fixture *f = t->f;
	ilir_expr row = plus(f, ref(f, t->n), num(f, node));
	ilir_expr column = ramp(f, ilir_binary(&f->m, ILIR_MUL, ref(f, t->i), num(f, t->lanes)), t->lanes);
	ilir_expr c = ilir_binary(&f->m, ILIR_MUL, acc(t, node, 0), acc(t, node, 1));
	c = ilir_ternary(&f->m, ILIR_FMA, acc(t, node, 2), state(t, t->c, node, 0), c);
	c = ilir_ternary(&f->m, ILIR_FMA, acc(t, node, 3), state(t, t->c, node, 1), c);
	ilir_expr h = ilir_binary(&f->m, ILIR_MUL, acc(t, node, 4), c);
	return ilir_append(ilir_store(&f->m, t->h, INDICES(row, column), h),
			   ilir_store(&f->m, t->c, INDICES(row, column), c));
}

static struct ilir_stmt *node_tile(struct tile *t)
{
	struct fixture *f = t->f;
	struct ilir_stmt *s = NULL;
	for (int node = 0; node < TILE; node++)
		for (int side = 0; side < 2; side++) {
			ilir_expr row = plus(f, ref(f, t->n), num(f, node));
			s = ilir_append(s, ilir_let(&f->m, t->row[node][side],
						    ilir_load_index(&f->m, t->child[side], INDICES(row))));
		}
	s = ilir_append(s, ilir_alloc(&f->m, t->acc));
	for (int node = 0; node < TILE; node++)
		for (int gate = 0; gate < GATES; gate++)
			s = ilir_append(s, set_acc(t, node, gate,
						   ilir_load(&f->m, t->bias,
							     INDICES(ref(f, t->i), num(f, gate),
								     ramp(f, num(f, 0), t->lanes)))));
	s = ilir_append(s, loop(f, t->k, num(f, 0), num(f, D), 1, products(t)));
	for (int node = 0; node < TILE; node++)
		s = ilir_append(s, epilogue(t, node));
	return s;
}

static void build(struct tile *t, struct fixture *f, int lanes)
{
	*t = (struct tile){.f = f, .lanes = lanes};
	t->child[0] = buffer_of(f, "child.0", IMAGE_CHILD, ILIR_I32, EXTENTS(ROWS));
	t->child[1] = buffer_of(f, "child.1", IMAGE_CHILD, ILIR_I32, EXTENTS(ROWS));
	t->acc = buffer_of(f, "acc", ILIR_REGISTER, ILIR_F32, EXTENTS(TILE, GATES, lanes));
	t->h = buffer_of(f, "h", IMAGE_STATE, ILIR_F32, EXTENTS(ROWS, D));
	t->c = buffer_of(f, "c", IMAGE_STATE, ILIR_F32, EXTENTS(ROWS, D));
	t->w[0] = buffer_of(f, "w.l", IMAGE_WEIGHT, ILIR_F32, EXTENTS(D / lanes, D, GATES, lanes));
	t->w[1] = buffer_of(f, "w.r", IMAGE_WEIGHT, ILIR_F32, EXTENTS(D / lanes, D, GATES, lanes));
	t->bias = buffer_of(f, "bias", IMAGE_WEIGHT, ILIR_F32, EXTENTS(D / lanes, GATES, lanes));
	t->i = index_var(f, "i");
	t->n = index_var(f, "n");
	t->k = index_var(f, "k");
	for (int node = 0; node < TILE; node++)
		for (int side = 0; side < 2; side++)
			t->row[node][side] = index_var(f, "row");
	kernel(f, "inner",
	       loop(f, t->i, num(f, 0), num(f, D / lanes), 1, over_rows(f, t->n, TILE, node_tile(t))));
}

/* --- the same in C --- */

struct arrays {
	int32_t child[2][NODES];
	float h[NODES][D], c[NODES][D], w[2][D * D * GATES], bias[D * GATES];
};

static struct arrays *sample(void)
{
	struct arrays *a = aligned(sizeof *a);
	fill(a->h[0], LEAVES * D, 1);
	fill(a->c[0], LEAVES * D, 2);
	fill(a->w[0], 2 * D * D * GATES, 3);
	fill(a->bias, D * GATES, 4);
	for (int n = LEAVES; n < NODES; n++) {
		a->child[0][n] = 2 * (n - LEAVES) % LEAVES;
		a->child[1][n] = (2 * (n - LEAVES) + 1) % LEAVES;
	}
	return a;
}

static float gate_sum(const struct arrays *a, int n, int gate, int i, int lane, int lanes)
{
	float sum = a->bias[(i * GATES + gate) * lanes + lane];
	for (int k = 0; k < D; k++)
		for (int side = 0; side < 2; side++)
			sum = fmaf(a->h[a->child[side][n]][k],
				   a->w[side][((i * D + k) * GATES + gate) * lanes + lane], sum);
	return sum;
}

static void reference(struct arrays *a, int lanes)
{
	for (int n = LEAVES; n < NODES; n++)
		for (int j = 0; j < D; j++) {
			float g[GATES];
			for (int gate = 0; gate < GATES; gate++)
				g[gate] = gate_sum(a, n, gate, j / lanes, j % lanes, lanes);
			float c = fmaf(g[2], a->c[a->child[0][n]][j], g[0] * g[1]);
			c = fmaf(g[3], a->c[a->child[1][n]][j], c);
			a->c[n][j] = c;
			a->h[n][j] = g[4] * c;
		}
}

static void run(const struct image_code *code, struct arrays *a)
{
	void *table[] = {a->child[0], a->child[1], a->h, a->c, a->w[0], a->w[1], a->bias};
	code->kernels[0](table, LEAVES, NODES - 2, 0, 1, 1);
	code->kernels[0](table, NODES - 2, NODES, 0, 1, 1);
}

static void compare(const char *target, bool native)
{
	struct fixture f;
	struct tile t;
	struct image_code code;
	int lanes = target_find(target)->lanes;
	fixture_init(&f, "treelstm");
	build(&t, &f, D % lanes ? 8 : lanes);
	if (tap_ok(compile_for(&f, target, native, &code), "the tile compiles for %s", target)) {
		struct arrays *ours = sample(), *theirs = sample();
		run(&code, ours);
		reference(theirs, t.lanes);
		tap_ok(memcmp(ours, theirs, sizeof *ours) == 0, "%s: the same bits as in C", target);
		tap_ok(code.bytes > 100, "%s: the size of the code is known", target);
		free(ours);
		free(theirs);
		code.release(&code);
		tap_ok(!code.self && !code.kernels, "%s: nothing is left of released code", target);
	}
	fixture_free(&f);
}

/* --- the assembly --- */

/* The loop over k: from the last label before the first fused multiply-add to the next jump. */
static bool k_loop(const char *text, const char **begin, const char **end)
{
	const char *fma = strstr(text, "vfmadd");
	const char *jump = fma ? strstr(fma, "\tj") : NULL;
	*end = jump;
	for (const char *p = text; jump && p && p < fma; p = strstr(p + 1, "\n.L"))
		*begin = p;
	return jump && *begin;
}

static int count(const char *begin, const char *end, const char *what)
{
	int n = 0;
	for (const char *p = begin; (p = strstr(p, what)) && p < end; p++)
		n++;
	return n;
}

static void inspect(void)
{
	struct fixture f;
	struct tile t;
	struct jit_options o = {.target = target_find("avx2"), .native = false};
	const char *begin = NULL, *end = NULL;
	fixture_init(&f, "treelstm");
	struct str text = str_in(&f.arena);
	build(&t, &f, 8);
	tap_ok(f.backend->print(&f.m, &o, JIT_TEXT_ASM, &text, &f.diags), "assembly is printed");
	if (tap_ok(k_loop(str_text(&text), &begin, &end), "the loop over k is found")) {
		tap_ok(count(begin, end, "vfmadd") == 2 * TILE * GATES,
		       "it has a fused multiply-add per product");
		tap_ok(count(begin, end, "%rsp") == 0, "it does not spill");
		tap_ok(count(begin, end, "vbroadcastss") == 2 * TILE, "it reads each state once");
		tap_ok(count(begin, end, "(%r") <= 2 * TILE + 2 * GATES,
		       "it reads each weight once for all nodes");
		tap_ok(count(begin, end, "movslq") + count(begin, end, "movups\t%ymm") == 0,
		       "it reads no index and stores nothing");
	}
	struct str ir = str_in(&f.arena);
	bool llvm = strcmp(backend_name, "llvm") == 0;
	const char *fma = llvm ? "@llvm.fma.v8f32" : "vfmadd231ps", *memory = llvm ? "alloca" : "float sum";
	tap_ok(f.backend->print(&f.m, &o, JIT_TEXT_IR, &ir, &f.diags) && strstr(ir.text, fma) &&
		   !strstr(ir.text, memory),
	       "the IR is printed, and holds its accumulators in values");
	fixture_free(&f);
}

static void test_all(void)
{
	compare("generic", false);
	compare("native", true);
	if (target_runs_here(target_find("avx2"))) {
		compare("avx2", false);
		inspect();
	}
}

int main(void)
{
	return over_backends(test_all);
}
