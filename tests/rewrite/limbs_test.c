/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of halves as sums of products of limbs: where ranges permit it, how often they are put together, and the same
 * integers for random ones over the whole of each range. */
#include "tests/rewrite/derivation.h"
#include "tests/subop/run.h"

enum { ROUNDS = 20, NODES = 3 };

/* The sums of products of a program, by how many products a word holds, and the sums of limbs that are put together. */
struct counted {
	int bytes, halves, numbers, combined;
};

static struct counted count_sums(const struct sub_program *p)
{
	struct counted n = {0};
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	const bool *constant = sub_find_constants(p);
	for (size_t b = 0; b < p->bodies.n; b++)
		sub_mark_live(p, &p->bodies.at[b], live);
	for (size_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		n.bytes += live[i] && v->op == SUB_ACCUMULATE4;
		n.halves += live[i] && v->op == SUB_ACCUMULATE2;
		n.numbers += live[i] && v->op == SUB_SUM && !constant[i];
		n.combined += live[i] && v->op == SUB_MULTIPLY && sub_at(p, v->arg[1].value)->constant == 256;
	}
	n.combined /= 2;
	return n;
}

#define WITHIN(x, least, most) "minimum(maximum(" x ", " least "), " most ")"

static const struct {
	const char *what, *value;
	struct counted sums;
} cases[] = {
    {"halves", WITHIN("W", "-32639", "32639") " @ h", {4, 0, 0, 1}},
    {"one weight beyond limbs", WITHIN("W", "-32639", "32640") " @ h", {0, 1, 0, 0}},
    {"the least of a half", WITHIN("W", "-32768", "32639") " @ h", {4, 0, 0, 1}},
    {"weights of i16, which are beyond limbs", "H @ h", {0, 1, 0, 0}},
    {"no range of weights is shifted to that of limbs", WITHIN("W", "-32700", "32700") " @ h", {0, 1, 0, 0}},
    {"factors without a sign", WITHIN("W", "-300", "300") " @ " WITHIN("x", "0", "65535"), {4, 0, 0, 1}},
    {"factors of 17 bits", WITHIN("W", "-300", "300") " @ " WITHIN("x", "0", "65536"), {0, 0, 1, 0}},
    {"a zero point", WITHIN("W", "-300", "300") " @ (h - z)", {4, 0, 0, 1}},
    {"a vector along what is not reduced stays behind", "(" WITHIN("W", "-300", "300") " @ h) * b", {4, 0, 0, 1}},
    {"bytes stay bytes", "B @ u", {1, 0, 0, 0}},
    {"fewer columns than a matrix register has", WITHIN("V", "-300", "300") " @ h", {0, 1, 0, 0}},
    {"two products are put together once", WITHIN("W", "-32639", "32639") " @ h + " WITHIN("U", "-32639", "32639") " @ g", {8, 0, 0, 1}},
    {"words with parts past the end", WITHIN("N", "-32639", "32639") " @ " WITHIN("y", "-9000", "9000"), {4, 0, 0, 1}},
    {"windows of an image with a border", "conv(i, " WITHIN("K", "-300", "300") ", pad=1)", {4, 0, 0, 1}},
};

static const char declarations[] =
    "model m\nstructure none\ninput x[32] : i32, h[32] : i16, g[32] : i16, u[32] : u8, y[19] : i32, i[8, 5, 5] : i16\n"
    "param W[24, 32] : i32, U[24, 32] : i32, H[24, 32] : i16, B[24, 32] : i8, V[15, 32] : i32, N[24, 19] : i32, b[24] : i16, z : i8, "
    "K[16, 8, 3, 3] : i16\n";

static void write_model(struct str *s, const char *value)
{
	str_puts(s, declarations);
	str_printf(s, "output o = %s\n", value);
	str_puts(s, "output rest = cast(sum(x) + sum(h) + sum(g) + sum(u) + sum(y) + sum(sum(sum(i))) + sum(sum(W)) + sum(sum(U)) + sum(sum(H)) + sum(sum(B)) + "
		    "sum(sum(V)) + sum(sum(N)) + sum(b) + z + sum(sum(sum(sum(K)))), i32)\n");
}

/* The last bytes of a random number, often an end of the range of limbs or halves. */
static const void *random_integers(struct arena *a, enum dtype dtype, int64_t n)
{
	static const int32_t special[] = {32639, 32640, -32639, -32768, 32767, -32641, 127, 128, -128, -129, 255, 256, 65535, 65536, 0, -1};
	int bytes = dtype_traits_of(dtype)->bytes;
	char *at = ARENA_ARRAY(a, char, n * bytes + 8);
	for (int64_t i = 0; i < n; i++) {
		int32_t number = random_below(3) ? (int32_t)random_bits() : special[random_below(sizeof special / sizeof *special)];
		number = random_below(2) ? number >> 15 : number;
		memcpy(at + i * bytes, &number, (size_t)bytes);
	}
	return at;
}

/* Rows without children. */
static void make_integers(const struct sub_program *p, struct arena *a, struct data *d)
{
	static const int32_t begin[NODES + 1], children[1], nodes[NODES] = {0, 1, 2};
	*d = (struct data){.forest = {NODES, NODES, begin, children, nodes, nodes, NULL, NULL},
			   .params = ARENA_ARRAY(a, const void *, p->params.n)};
	d->results = count_results(p, &d->forest);
	const void **data = ARENA_ARRAY(a, const void *, p->inputs.n);
	for (size_t i = 0; i < p->inputs.n; i++)
		data[i] = random_integers(a, p->inputs.at[i].row.dtype, d->forest.nodes * row_of(&p->inputs.at[i].row));
	d->forest.data = data;
	for (size_t i = 0; i < p->params.n; i++)
		d->params[i] = random_integers(a, p->params.at[i].dtype, row_of(&p->params.at[i]));
}

/* Whether programs give the same numbers for the same data. */
static bool are_same(const struct sub_program *one, const struct sub_program *other, struct arena *a)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct data d;
		random_state = 77 + (uint64_t)round;
		make_integers(one, a, &d);
		double *x = evaluate(one, SUB_BINARY64, &d, a), *y = evaluate(other, SUB_BINARY64, &d, a);
		if (!x || !y || memcmp(x, y, (size_t)d.results * sizeof *x) != 0)
			return false;
	}
	return true;
}

static void test_case(size_t i)
{
	struct derivation d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	struct arena texts;
	arena_init(&texts, &allocator_default);
	struct str text = str_in(&texts);
	write_model(&text, cases[i].value);
	derive(&d, str_text(&text), "");
	struct arena *a = &d.model.arena;
	struct sub_program halves, limbs;
	sub_init(&halves, a, "halves");
	sub_init(&limbs, a, "limbs");
	rewrite_group(&halves, &d.to, &d.options, NULL);
	d.options.matrices = true;
	rewrite_group(&limbs, &d.to, &d.options, NULL);
	struct counted is = count_sums(&limbs), should = cases[i].sums;
	is.numbers -= 3; /* sums of inputs, of three lengths */
	bool ok = sub_verify(&limbs, &d.model.diags) && is.bytes == should.bytes && is.halves == should.halves &&
		  is.numbers == should.numbers && is.combined == should.combined;
	if (!tap_ok(ok, "%s", cases[i].what))
		printf("# %d of bytes, %d of halves, %d of numbers, %d put together\n", is.bytes, is.halves, is.numbers, is.combined);
	print_diags(&d.model.diags);
	tap_ok(are_same(&d.to, &limbs, a) && are_same(&halves, &limbs, a), "%s: the same integers", cases[i].what);
	free_model(&d.model);
	arena_free(&texts);
}

/* --- sums of products in a recursion --- */

#define CELL(structure, value)                                                                               \
	"model m\nstructure " structure "\ninput x[16] within 1\nparam W[16, 16], U[16, 16]\nstate h[16]\n"  \
	"node:\n    h = tanh(" value ")\noutput y = h\n"

static const struct {
	const char *what, *text;
	struct counted sums;
} cells[] = {
    {"sums of two states go on from each other", CELL("tree(left, right)", "x * (W @ left.h + U @ right.h)"), {8, 0, 0, 1}},
    {"one of an input, which is computed ahead, is put together for itself", CELL("sequence", "W @ x + U @ previous.h"), {8, 0, 0, 2}},
};

static void test_cell(size_t i)
{
	struct derivation d = with(REWRITE_REASSOCIATE, 0, 1 << 20);
	struct sub_program contracted, quantised, limbs;
	d.options.precision = PRECISION_I16;
	d.options.matrices = true;
	derive(&d, cells[i].text, "");
	struct arena *a = &d.model.arena;
	sub_init(&contracted, a, "cell");
	sub_init(&quantised, a, "cell");
	sub_init(&limbs, a, "cell");
	rewrite_contract(&contracted, &d.to, NULL, NULL);
	rewrite_quantise(&quantised, &contracted, &d.options, NULL);
	rewrite_group(&limbs, &quantised, &d.options, NULL);
	struct counted is = count_sums(&limbs), should = cells[i].sums;
	if (!tap_ok(is.bytes == should.bytes && is.halves == should.halves && is.combined == should.combined, "%s", cells[i].what))
		printf("# %d of bytes, %d of halves, %d put together\n", is.bytes, is.halves, is.combined);
	free_model(&d.model);
}

/* The gates of an LSTM are parts of one product: no sum of limbs is stored, and the four sums of each gate are of one loop nest. */
static void test_plan(void)
{
	struct option_texts o = {.backend = "interpreter", .target = "amx", .rules = "-tables", .precision = "i16"};
	struct test_model t = {0};
	struct sub_program p;
	struct sched_plan plan;
	int nests = 0, sums = 0;
	bool ok = load_model(&t, "examples/lstm/lstm.ra", "V=7 E=64 D=64 C=3") &&
		  compile_plan_as(&t.arena, &t.diags, t.model, t.sizes, &o, &p, &plan);
	for (size_t g = 0; ok && g < plan.groups.n; g++) {
		const struct sched_group *group = &plan.groups.at[g];
		bool inner = p.bodies.at[group->body].domain == SUB_INNER && !group->local;
		nests += inner;
		sums += inner && group->loops.n == 1 ? group->loops.at[0].gates : 0;
	}
	if (!tap_ok(ok && nests == 1 && sums == 16, "the limbs of all gates of an LSTM are sums of one loop"))
		printf("# %d nests, %d sums\n", nests, sums);
	print_diags(&t.diags);
	free_model(&t);
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		test_case(i);
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		test_cell(i);
	test_plan();
	return tap_done();
}
