/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fusion plans: mapping types, what each planner makes of a model, and plans that were broken on purpose. */
#include "sched/plan.h"
#include "tests/models/helper.h"

struct planned {
	struct test_model model;
	struct sub_program program;
	struct sched_plan plan;
};

static bool make(struct planned *p, const char *path, const char *sizes, const char *fuse)
{
	struct rewrite_options options = {0};
	struct sched_fusion fusion;
	struct sub_program written, contracted;
	memset(p, 0, sizeof *p);
	if (!load_model(&p->model, path, sizes))
		return false;
	struct arena *a = &p->model.arena;
	sub_init(&written, a, "test");
	sub_init(&contracted, a, "test");
	sub_init(&p->program, a, "test");
	if (!sub_lower_model(&written, p->model.model, p->model.sizes, SUB_AT_MODEL, &p->model.diags) ||
	    !sched_read_fusion(&fusion, "test", fuse, strlen(fuse), &p->model.diags))
		return false;
	rewrite_contract(&contracted, &written, NULL, NULL);
	rewrite_fold(&p->program, &contracted, &options, NULL);
	sched_make_plan(&p->plan, a, &p->program, target_find("avx512"), &fusion);
	bool ok = sched_verify(&p->plan, &p->model.diags);
	print_diags(&p->model.diags);
	return ok;
}

static int body_of(const struct planned *p, enum sub_domain domain)
{
	size_t b = 0;
	while (b + 1 < p->program.bodies.n && p->program.bodies.at[b].domain != domain)
		b++;
	return b;
}

/* --- what is planned --- */

static const struct {
	const char *model, *sizes, *fuse;
	int groups, supersteps, stored, reductions; /* of the inner case */
} plans[] = {
    {"tests/ra/good/treelstm.ra", "D=150 E=150 V=100", "", 1, 1, 0, 10},
    {"tests/ra/good/treelstm.ra", "D=150 E=150 V=100", "fuse greedy", 6, 2, 5, 10},
    {"tests/ra/good/lstm.ra", "D=32 E=8 V=10 C=3", "", 1, 1, 0, 8},
    {"tests/ra/good/gru.ra", "D=32 E=8", "", 1, 1, 0, 6},
    {"tests/ra/good/childsum.ra", "D=32 E=8 V=10", "", 3, 3, 3, 8},
    {"tests/sched/gru.ra", "D=32 E=8", "", 2, 2, 1, 6},
};

static void test_counts(void)
{
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		struct planned p;
		bool ok = make(&p, plans[i].model, plans[i].sizes, plans[i].fuse);
		struct sched_counts c = {0};
		if (ok)
			c = sched_count(&p.plan, body_of(&p, SUB_INNER));
		tap_ok(ok && c.groups == plans[i].groups && c.supersteps == plans[i].supersteps &&
			   c.stored == plans[i].stored && c.reductions == plans[i].reductions,
		       "%s, %s: %d groups in %d supersteps, %d stored, %d reductions", plans[i].model,
		       plans[i].fuse, c.groups, c.supersteps, c.stored, c.reductions);
		free_model(&p.model);
	}
}

/* Greedy: a reduction is alone in its group; none: so is every operator. */
static void test_baselines(void)
{
	static const char *const models[][2] = {{"tests/ra/good/treelstm.ra", "D=20 E=15 V=100"},
						{"tests/ra/good/childsum.ra", "D=32 E=8 V=10"},
						{"tests/sched/gru.ra", "D=32 E=8"},
						{"tests/sched/attention.ra", "D=20"},
						{"tests/models/mixed.ra", "D=11 X=5"},
						{"tests/models/nested.ra", "A=3 B=4 C=5 F=6 G=7 V=9"}};
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		for (int none = 0; none < 2; none++) {
			struct planned p;
			bool alone = make(&p, models[i][0], models[i][1], none ? "fuse none" : "fuse greedy");
			for (size_t g = 0; alone && g < p.plan.groups.n; g++) {
				const struct sched_group *group = &p.plan.groups.at[g];
				alone = group->targets.n == 1 || (!none && group->reductions <= 2);
			}
			tap_ok(alone, "%s, %s", models[i][0],
			       none ? "none: each operator is alone" : "greedy: each reduction is");
			free_model(&p.model);
		}
}

static void test_fused(void)
{
	static const char *const variants[] = {"", "fuse grow always", "fuse grow never",
					       "fuse grow measured"};
	for (int i = 0; i < 4; i++) {
		struct planned p;
		tap_ok(make(&p, "tests/sched/attention.ra", "D=20", variants[i]), "a plan is sound: %s",
		       variants[i]);
		free_model(&p.model);
	}
}

/* A sum is stored because two groups compute it, which makes them one, whose registers have it then. */
static void test_released(void)
{
	struct planned p;
	bool ok = make(&p, "tests/sched/shared.ra", "A=16 B=3 V=16", "");
	struct sched_counts c = {0};
	if (ok)
		c = sched_count(&p.plan, body_of(&p, SUB_INNER));
	tap_ok(ok && c.groups == 6 && c.stored == 5,
	       "what brings its readers into one group need not be stored: %d groups, %d values stored", c.groups,
	       c.stored);
	free_model(&p.model);
}

/* --- bytes --- */

static void test_bytes(void)
{
	struct planned p;
	bool ok = make(&p, "tests/ra/good/treelstm.ra", "D=150 E=150 V=100", "");
	struct sched_bytes b = {0}, leaf = {0};
	if (ok)
		b = sched_bytes_of(&p.plan, body_of(&p, SUB_INNER)),
		leaf = sched_bytes_of(&p.plan, body_of(&p, SUB_LEAF));
	tap_ok(b.states == 4 * 150 * 6 && b.stored == 0 && b.inputs == 0 && b.outputs == 0,
	       "a TreeLSTM node reads two children's states, writes its own and nothing else");
	tap_ok(b.weights == 4.0 * (10 * 150 * 150 + 5 * 150), "and a level reads the weights: %g bytes",
	       b.weights);
	tap_ok(leaf.states == 4 * 150 * 2 && leaf.inputs == 4 + 4 * 150, "a leaf reads its word's row");
	free_model(&p.model);
	ok = make(&p, "tests/sched/gru.ra", "D=32 E=8", "");
	if (ok)
		b = sched_bytes_of(&p.plan, body_of(&p, SUB_INNER));
	tap_ok(ok && b.stored == 4 * 32 * 2 && b.inputs == 4 * 8,
	       "the GRU's intermediate is written and read once");
	free_model(&p.model);
}

/* Plans a model as it is written. */
static bool plan_text(struct planned *p, const char *text, const char *sizes)
{
	struct option_texts o = {.target = "avx512",
				 .backend = "interpreter",
				 .rules = "none",
				 .schedule = "refactor off\nhoist off\n"};
	memset(p, 0, sizeof *p);
	bool ok = load_text(&p->model, "m", text, strlen(text), sizes) &&
		  compile_plan_as(&p->model.arena, &p->model.diags, p->model.model, p->model.sizes, &o,
				  &p->program, &p->plan);
	print_diags(&p->model.diags);
	return ok;
}

/* A product that gathered each element anew for all its columns would have no vectors: rows of a table are brought
 * together first. */
static void test_gathered(void)
{
	static const char text[] = "model m\nstructure none\ninput ids[L] : i32\nparam E[V, D], P[L, D], U[D, D]\n"
				   "node:\n x[l, d] = E[ids[l], d] + P[l, d]\n"
				   "output y[l, k] = sum(x[l, d] * U[d, k] for d)\n";
	struct planned p;
	struct sched_counts c = {0};
	if (tap_ok(plan_text(&p, text, "L=8 D=24 V=50"), "planned"))
		c = sched_count(&p.plan, body_of(&p, SUB_EVERY_NODE));
	tap_ok(c.groups == 2 && c.stored == 1, "what is gathered is stored before a product reads it again: %d groups",
	       c.groups);
	free_model(&p.model);
}

/* A sum behind a border is computed once for all iterations of the sum that reads it, although that reads the element that it
 * computes: by a group of its own, as one that both were in would not store it. */
static void test_apart(void)
{
	static const char *const types[] = {"f32", "i32", "i64"};
	for (int i = 0; i < 3; i++) {
		struct planned p;
		struct sched_counts c = {0};
		char text[250];
		snprintf(text, sizeof text,
			 "model m\nstructure none\ninput x[N] : %s\nparam p[4] : %s\n"
			 "node:\n v[a in 4, b in N] = sum(x[b + u] for u in 1)\n"
			 "output y[b in N] = sum(v[u + 1, b] * p[u] for u in 4)\n",
			 types[i], types[i]);
		if (tap_ok(plan_text(&p, text, "N=2"), "planned: a sum of %s behind a border", types[i]))
			c = sched_count(&p.plan, body_of(&p, SUB_EVERY_NODE));
		tap_ok(c.groups == 2 && c.stored == 1, "it is stored by a group of its own: %d groups, %d stored", c.groups,
		       c.stored);
		free_model(&p.model);
	}
}

/* A product whose result is reshaped is stored where the weights that it reads are to be packed, and copied:
 * reshaped as it is computed, neighbours would read elements that lie apart. */
static void test_reshaped_product(void)
{
	static const char *const products[] = {"W @ x", "x @ W"};
	for (int i = 0; i < 2; i++) {
		struct planned p;
		struct sched_counts c = {0};
		char text[200];
		snprintf(
		    text, sizeof text,
		    "model m\nstructure none\ninput x[D]\nparam W[D, D]\noutput q = reshape(%s, 4, D/4)\n",
		    products[i]);
		if (tap_ok(plan_text(&p, text, "D=64"), "planned"))
			c = sched_count(&p.plan, body_of(&p, SUB_EVERY_NODE));
		tap_ok(c.groups == 2 - i && c.stored == 1 - i, "%s, reshaped: %d groups, %d stored",
		       products[i], c.groups, c.stored);
		free_model(&p.model);
	}
}

/* The groups of a body that compute a product of this many terms. */
static int count_products(const struct planned *p, int64_t terms)
{
	int n = 0;
	for (size_t g = 0; g < p->plan.groups.n; g++)
		for (size_t l = 0; l < p->plan.groups.at[g].loops.n; l++)
			n += p->plan.groups.at[g].loops.at[l].extent == terms ? p->plan.groups.at[g].loops.at[l].gates : 0;
	return n;
}

/* A product is computed once for its elements in both orders of dimensions: by no nest at both. */
static void test_transposed(void)
{
	static const char *const outputs[][2] = {{"s", "transpose(s)"}, {"where(c > 0, s, x)", "transpose(where(c > 0, s, x))"},
						 {"transpose(s)", "where(s > 0, transpose(s), x)"}, {"s", "exp(s)"}};
	for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
		struct planned p;
		char text[250];
		snprintf(text, sizeof text,
			 "model m\nstructure none\ninput x[N, N], c[N, N], d[N, 24], e[24, N]\n"
			 "node:\n s = d @ e\n t = c + 1\noutput y = %s\noutput z = %s\noutput u = t + x\n",
			 outputs[i][0], outputs[i][1]);
		if (tap_ok(plan_text(&p, text, "N=16"), "planned: %s and %s", outputs[i][0], outputs[i][1]))
			tap_is(count_products(&p, 24), 1, "the product is computed once");
		free_model(&p.model);
	}
}

/* What several products read, in groups of their own, behind movement: computing it again for each of their columns
 * costs more than reading it. */
static void test_shared_operand(void)
{
	static const char text[] = "model m\nstructure none\ninput x[1, L, D]\nparam W[D, D], U[D, D], V[D, D], g[D], b[D]\n"
				   "node:\n y = layer_norm(x + x @ V, g, b, 0.00001)\n"
				   "output q = transpose(reshape(y @ W, 1, L, 4, D/4), 0, 2, 1, 3)\n"
				   "output k = transpose(reshape(y @ U, 1, L, 4, D/4), 0, 2, 3, 1)\noutput r = y + 1\n";
	struct planned p;
	struct sched_counts c = {0};
	if (tap_ok(plan_text(&p, text, "L=128 D=64"), "planned"))
		c = sched_count(&p.plan, body_of(&p, SUB_EVERY_NODE));
	tap_ok(c.groups == 6 && c.stored == 4, "what products read again is stored: %d groups, %d stored", c.groups,
	       c.stored);
	free_model(&p.model);
}

static void test_typed_bytes(void)
{
	static const char text[] =
	    "model m\nstructure tree(left, right)\ninput w : token\ninput x[D] : i8\nparam E[V, D] : f16, "
	    "U[D, D] : bf16\n"
	    "state h[D], c[D] : i64\nleaf:\n h = E[w] + cast(x, f32)\n c = cast(x, i64)\n"
	    "inner:\n h = tanh(U @ left.h)\n c = right.c\noutput y = c at every node\n";
	enum { D = 24 };
	struct planned p;
	struct sched_bytes leaf = {0}, inner = {0}, output = {0};
	if (tap_ok(plan_text(&p, text, "D=24 V=50"), "planned")) {
		leaf = sched_bytes_of(&p.plan, body_of(&p, SUB_LEAF));
		inner = sched_bytes_of(&p.plan, body_of(&p, SUB_INNER));
		output = sched_bytes_of(&p.plan, body_of(&p, SUB_EVERY_NODE));
	}
	tap_ok(leaf.inputs == 4 + 2 * D + D && leaf.states == (4 + 8) * D,
	       "a token's row and inputs have the bytes of their types: %g", leaf.inputs);
	tap_ok(inner.weights == 2 * D * D && inner.states == 2 * (4 + 8) * D,
	       "so have weights and states: %g, %g", inner.weights, inner.states);
	tap_ok(output.outputs == 8 * D, "and outputs: %g", output.outputs);
	free_model(&p.model);
}

/* --- mapping types --- */

static bool has_type(const struct planned *p, enum sub_op op, enum sched_mapping m)
{
	for (uint32_t i = 1; i < p->program.values.n; i++)
		if (p->program.values.at[i].op == op &&
		    sched_mapping_of_value(&p->program, (sub_ref){i}) == m)
			return true;
	return false;
}

static void test_mappings(void)
{
	struct planned p;
	bool ok = make(&p, "tests/models/mixed.ra", "D=11 X=5", "");
	tap_ok(ok && has_type(&p, SUB_SIGMOID, SCHED_ONE_TO_ONE), "what is elementwise is one-to-one");
	tap_ok(ok && has_type(&p, SUB_COND, SCHED_ONE_TO_ONE) && has_type(&p, SUB_ASSIGN, SCHED_ONE_TO_ONE),
	       "so are a joint and a part");
	tap_ok(ok && has_type(&p, SUB_SUM, SCHED_MANY_TO_MANY) && has_type(&p, SUB_MAX, SCHED_MANY_TO_MANY),
	       "reductions are many-to-many");
	tap_ok(ok && has_type(&p, SUB_ASSIGN, SCHED_ONE_TO_MANY), "a look-up is one-to-many");
	tap_ok(ok && has_type(&p, SUB_ADD, SCHED_ONE_TO_MANY), "an operand that is repeated makes it so");
	tap_ok(ok && has_type(&p, SUB_ASSIGN, SCHED_SHUFFLE), "a transposition shuffles");
	free_model(&p.model);
	ok = make(&p, "tests/models/mixed.ra", "D=1 X=5", "");
	tap_ok(ok && has_type(&p, SUB_SUM, SCHED_REORGANIZE), "a sum of one value reorganizes");
	free_model(&p.model);
}

static void test_table(void)
{
	bool monotone = true;
	for (int i = 0; i < SCHED_MAPPINGS; i++)
		monotone &= sched_relation_of(i, SCHED_ONE_TO_ONE) == SCHED_FUSE &&
			    sched_relation_of(SCHED_ONE_TO_ONE, i) == SCHED_FUSE;
	tap_ok(monotone, "what is elementwise fuses with all");
	tap_ok(sched_relation_of(SCHED_MANY_TO_MANY, SCHED_MANY_TO_MANY) == SCHED_NEVER &&
		   sched_relation_of(SCHED_ONE_TO_MANY, SCHED_MANY_TO_MANY) == SCHED_NEVER,
	       "reductions do not wait for each other in a block");
	const struct target *wide = target_find("avx512"), *narrow = target_find("generic");
	tap_ok(sched_is_fusing_profitable(wide, SCHED_MANY_TO_MANY, SCHED_ONE_TO_MANY, 16) &&
		   !sched_is_fusing_profitable(wide, SCHED_MANY_TO_MANY, SCHED_ONE_TO_MANY, 64),
	       "a sum is computed again for one vector, not for four");
	tap_ok(sched_is_fusing_profitable(narrow, SCHED_MANY_TO_MANY, SCHED_ONE_TO_MANY, 4) &&
		   !sched_is_fusing_profitable(narrow, SCHED_MANY_TO_MANY, SCHED_ONE_TO_MANY, 16),
	       "and vectors are shorter elsewhere");
	tap_ok(!sched_is_fusing_profitable(wide, SCHED_REORGANIZE, SCHED_MANY_TO_MANY, 1e9) &&
		   !sched_is_fusing_profitable(wide, SCHED_REORGANIZE, SCHED_MANY_TO_MANY, 1),
	       "volumes beyond those that were measured are as the last");
}

/* --- the costs that doc/algebra.md lists --- */

static const char *spelling_of_mapping(enum sched_mapping m)
{
	static const char *const spellings[] = {
#define SCHED_MAPPING(name, spelling, meaning) spelling,
#include "sched/mapping.def"
#undef SCHED_MAPPING
	};
	return spellings[m];
}

/* The costs of fusing a pair on a processor, for results of 1, 4 and 16 vectors. */
static void put_costs(const struct target *t, enum sched_mapping first, enum sched_mapping second, struct str *row)
{
	for (int vectors = 1; vectors <= 16; vectors *= 4) {
		double volume = (double)vectors * t->lanes;
		bool fused = sched_is_fusing_profitable(t, first, second, volume);
		str_printf(row, " %.3f %s |", sched_fusion_cost(t, first, second, volume), fused ? "fuse" : "store");
	}
}

static void is_cost_on_page(const char *page, enum sched_mapping first, enum sched_mapping second)
{
	struct arena a;
	static jmp_buf jump;
	struct target zen5;
	arena_init(&a, &allocator_default);
	a.escape = &jump;
	struct str row = str_in(&a);
	target_find_any("zen5", &zen5);
	str_printf(&row, "| %s | %s |", spelling_of_mapping(first), spelling_of_mapping(second));
	put_costs(&zen5, first, second, &row);
	put_costs(target_find("avx512"), first, second, &row);
	if (!tap_ok(strstr(page, str_text(&row)), "a row of doc/algebra.md: %s into %s", spelling_of_mapping(first),
		    spelling_of_mapping(second)))
		printf("# %s\n", str_text(&row));
	arena_free(&a);
}

/* The pairs that the table of mapping types leaves open, and the two that are measured although it fuses them. */
static void test_costs_on_page(void)
{
	size_t length;
	char *page = read_text(source_path("doc/algebra.md"), &length);
	if (!tap_ok(page, "the page is there"))
		return;
	for (int first = 0; first < SCHED_MAPPINGS; first++)
		for (int second = 0; second < SCHED_MAPPINGS; second++)
			if (sched_relation_of(first, second) == SCHED_MAY ||
			    (first == SCHED_ONE_TO_ONE && second == SCHED_MANY_TO_MANY))
				is_cost_on_page(page, first, second);
	free(page);
}

/* --- broken plans --- */

static struct sched_group *group_named(struct planned *p, const char *name)
{
	for (size_t g = 0; g < p->plan.groups.n; g++)
		if (strcmp(p->plan.groups.at[g].name, name) == 0)
			return &p->plan.groups.at[g];
	return NULL;
}

static void take_target(struct planned *p, struct sched_group *g, sub_ref r)
{
	for (size_t i = 0; i < g->targets.n; i++)
		if (g->targets.at[i].i == r.i)
			g->targets.at[i] = g->targets.at[--g->targets.n];
	sched_fact(&p->plan.values[g->body], r)->group = 0;
}

static void give_target(struct planned *p, struct sched_group *g, sub_ref r)
{
	vec_push(&p->model.arena, &g->targets, r);
	sched_fact(&p->plan.values[g->body], r)->group = g - p->plan.groups.at + 1;
}

static sub_ref find_value(const struct planned *p, int body,
			  bool (*is)(const struct sched_values *, const struct sub_program *, sub_ref))
{
	const struct sched_values *values = &p->plan.values[body];
	for (int i = 0; i < values->n; i++)
		if (is(values, &p->program, values->value[i]))
			return values->value[i];
	return (sub_ref){0};
}

static bool is_step(const struct sched_values *v, const struct sub_program *p, sub_ref r)
{
	(void)p;
	return sched_fact(v, r)->chain_end.i;
}

static bool is_movement(const struct sched_values *v, const struct sub_program *p, sub_ref r)
{
	return sched_is_index(p, v, r) && sub_has_leading_dim(p, r);
}

static bool is_gate(const struct sched_values *v, const struct sub_program *p, sub_ref r)
{
	return sub_at(p, r)->op == SUB_TANH && !sched_fact(v, r)->result;
}

/* The group of its shape is the first of the body, or so it claims. */
static void store_value(struct planned *p, struct sched_group *g,
			bool (*is)(const struct sched_values *, const struct sub_program *, sub_ref))
{
	sub_ref r = find_value(p, g->body, is);
	sched_fact(&p->plan.values[g->body], r)->stored = true;
	give_target(p, g, r);
}

/* In the GRU of tests/sched, inner.0 stores what inner.1 reads. */
static void break_stage(struct planned *p)
{
	group_named(p, "inner.1")->superstep = group_named(p, "inner.0")->superstep;
}

static void break_order(struct planned *p)
{
	group_named(p, "inner.0")->superstep = 7;
}

static void break_crossing(struct planned *p)
{
	struct sched_group *from = group_named(p, "inner.0"), *to = group_named(p, "inner.1");
	sub_ref r = from->targets.at[0];
	take_target(p, from, r);
	give_target(p, to, r);
}

static void break_missing(struct planned *p)
{
	struct sched_group *g = group_named(p, "inner.0");
	take_target(p, g, g->targets.at[0]);
}

static void break_recomputed(struct planned *p)
{
	struct sched_group *g = group_named(p, "inner.0");
	sub_ref r = g->targets.at[0];
	take_target(p, g, r);
	sched_fact(&p->plan.values[g->body], r)->stored = false;
}

static void break_result(struct planned *p)
{
	struct sched_group *g = group_named(p, "inner.1");
	take_target(p, g, g->targets.at[0]);
}

static void break_unread(struct planned *p)
{
	store_value(p, group_named(p, "inner.1"), is_gate);
}

static void break_step(struct planned *p)
{
	store_value(p, group_named(p, "inner.1"), is_step);
}

static void break_movement(struct planned *p)
{
	free_model(&p->model);
	if (make(p, "tests/ra/good/lstm.ra", "D=32 E=8 V=10 C=3", ""))
		store_value(p, group_named(p, "inner.0"), is_movement);
}

static void break_shape(struct planned *p)
{
	group_named(p, "inner.0")->extent[0]++;
}

static void break_flag(struct planned *p)
{
	struct sched_group *g = group_named(p, "inner.0");
	sched_fact(&p->plan.values[g->body], g->targets.at[0])->stored = false;
}

static void break_twice(struct planned *p)
{
	struct sched_group *from = group_named(p, "inner.0"), *to = group_named(p, "inner.1");
	vec_push(&p->model.arena, &to->targets, from->targets.at[0]);
}

static const struct {
	const char *what;
	void (*change)(struct planned *);
	const char *why;
} broken[] = {
    {"a group that does not wait", break_stage, "before inner.0 has stored it"},
    {"a group behind a later superstep", break_order, "stands behind a later superstep"},
    {"a reduction's result that crosses columns", break_crossing, "crosses from one element"},
    {"a stored value that nothing computes", break_missing, "nothing computes it"},
    {"a reduction in a loop it does not depend on", break_recomputed, "is computed 32 times"},
    {"a result that is left out", break_result, "a result that no group computes"},
    {"a value that is stored for nobody", break_unread, "nothing reads it"},
    {"a step of a chain, stored", break_step, "is a step towards"},
    {"data movement, stored", break_movement, "data movement with one consumer"},
    {"a group of another shape", break_shape, "has another shape"},
    {"a target that is not marked", break_flag, "neither a result nor stored"},
    {"a target of two groups", break_twice, "two groups"},
};

static void test_broken(void)
{
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct planned p;
		const struct diags *d = &p.model.diags;
		bool ok = make(&p, "tests/sched/gru.ra", "D=32 E=8", "");
		if (ok) {
			broken[i].change(&p);
			ok = !sched_verify(&p.plan, &p.model.diags) && d->n == 1 &&
			     d->at[0].id == DIAG_INVALID_PLAN && strstr(d->at[0].message, broken[i].why);
			if (!ok)
				print_diags(d);
		}
		tap_ok(ok, "caught: %s", broken[i].what);
		free_model(&p.model);
	}
}

int main(void)
{
	test_counts();
	test_baselines();
	test_fused();
	test_released();
	test_bytes();
	test_gathered();
	test_apart();
	test_reshaped_product();
	test_transposed();
	test_shared_operand();
	test_typed_bytes();
	test_mappings();
	test_table();
	test_costs_on_page();
	test_broken();
	return tap_done();
}
