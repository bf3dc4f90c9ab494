/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Layouts of states: whichever is chosen, every state of every node and every output has the same bits. */
#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/sample.h"

static const struct {
	const char *path, *sizes;
} models[] = {
    {"examples/treelstm/treelstm.ra", "D=17 E=9 V=30"},
    {"tests/models/slots.ra", "D=8 V=30"},
    {"tests/models/slots.ra", "D=9 V=30"},
    {"tests/models/ternary.ra", "D=19 X=6 V=30"},
    {"tests/models/mixed.ra", "D=11 X=5"},
    {"tests/ra/good/childsum.ra", "D=13 E=10 V=30"},
    {"tests/ra/good/gru.ra", "D=18 E=7"},
    {"tests/ra/good/lstm.ra", "D=20 E=6 V=30 C=4"},
    {"tests/ra/good/matrix.ra", "D=5 V=30"},
    {"tests/models/transposed.ra", "D=9 V=30"},
};

/* Each state in turn by parent, or by node, in either order of dimensions: bit i of `which` is for state i.
 */
static const char *layouts(struct arena *a, const struct ra_model *m, unsigned rows, unsigned orders,
			   const char *more)
{
	struct str s = str_in(a);
	for (size_t i = 0; i < m->states.n; i++) {
		bool swap = orders >> i & 1;
		str_printf(&s, "layout %s %s%s\n", m->states.at[i].name, rows >> i & 1 ? "parent" : "node",
			   m->states.at[i].shape.rank < 2 ? ""
			   : swap			  ? " 1 0"
							  : " 0 1");
	}
	str_puts(&s, more);
	return str_text(&s);
}

/* --- all states of a run --- */

static bool same_states(const struct test_run *a, const struct test_run *b, int nodes)
{
	for (int i = 0; i < a->image.states; i++)
		for (int n = 0; n < nodes; n++) {
			const float *x = rt_session_state_row(&a->session, i, n),
				    *y = rt_session_state_row(&b->session, i, n);
			if (!x || !y || memcmp(x, y, a->image.state[i].elements * sizeof *x) != 0) {
				printf("# state %s of node %d differs\n", a->image.state[i].name, n);
				return false;
			}
		}
	return true;
}

static bool same(struct setting *s, const struct test_run *base, const struct option_texts *o)
{
	struct test_run r;
	bool ok = start_run(&r, s->model, o) && run_forest(&r, &s->forest.minibatch) && same_bits(s, &r) &&
		  same_states(base, &r, s->forest.nodes);
	end_run(&r);
	return ok;
}

static bool reads(const struct test_run *r, enum image_buffer_kind kind)
{
	for (int i = 0; i < r->image.buffers; i++)
		if (r->image.buffer[i].kind == kind)
			return true;
	return false;
}

/* --- tests --- */

/* Of what is interpreted, one in so many is compiled as well. */
enum { COMPILED_EACH = 2 };

static void test_variants(struct setting *s, const struct test_run *base, const char *name, size_t model)
{
	static const char *const more[] = {"", "dynamic_batch off\n", "specialize none\n",
					   "vectorize off\nspecialize none\ndynamic_batch off\n",
					   "vectorize 4\naccumulators 3\n"};
	struct arena *a = (struct arena *)&s->model->arena;
	size_t variant = model;
	for (unsigned rows = 0; rows < 4; rows++)
		for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
			if (!in_sample(++variant))
				continue;
			unsigned all = rows == 3 ? ~0u : rows, orders = rows ^ i;
			struct option_texts o = {.backend = "interpreter",
						    .target = "avx2",
						    .schedule =
							layouts(a, s->model->model, all, orders, more[i])};
			tap_ok(same(s, base, &o), "%s: layout %u, schedule %zu, interpreted", name, rows, i);
			if (variant / choose_sample().each % COMPILED_EACH != 0)
				continue;
			o.backend = usual_backend(), o.target = "native";
			tap_ok(same(s, base, &o), "%s: layout %u, schedule %zu, compiled", name, rows, i);
		}
	for (int i = 1; ilir_pass_at(i); i++) {
		if (!in_sample(i + model))
			continue;
		struct option_texts o = {.backend = "interpreter",
					    .target = "avx512",
					    .schedule = layouts(a, s->model->model, ~0u, ~0u, ""),
					    .last_pass = ilir_pass_at(i)->name};
		tap_ok(same(s, base, &o), "%s: all by parent, after %s", name, o.last_pass);
	}
}

/* Between a parent and its children there is no index array. */
static void test_indices(struct setting *s, const char *name)
{
	struct test_run r;
	struct arena *a = (struct arena *)&s->model->arena;
	struct option_texts o = {
	    .backend = "interpreter", .target = "avx2", .schedule = layouts(a, s->model->model, ~0u, 0, "")};
	tap_ok(start_run(&r, s->model, &o) && reads(&r, IMAGE_PLACE) && !reads(&r, IMAGE_CHILD) &&
		   !reads(&r, IMAGE_CHILD_LIST),
	       "%s: children are found without index arrays", name);
	end_run(&r);
}

static void test_model(const char *path, const char *sizes, size_t model)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run base = {0};
	char name[120];
	snprintf(name, sizeof name, "%s %s", strrchr(path, '/') + 1, sizes);
	if (!tap_ok(load_model(&t, path, sizes), "%s: parsed", name))
		return;
	struct option_texts o = {.backend = "interpreter",
				    .target = "avx2",
				    .schedule = layouts(&t.arena, t.model, 0, 0, ""),
				    .last_pass = "infer_bounds"};
	random_state = 11;
	if (tap_ok(start_run(&base, &t, &o), "%s: lowered", name)) {
		make_forest(&s.forest, &base.image, 6, 30);
		if (tap_ok(run_forest(&base, &s.forest.minibatch), "%s: by node, interpreted", name)) {
			s.expected =
			    gather_outputs(&base, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
			double worst;
			tap_ok(near_oracle(&s, &base, 2e-5, &worst), "%s: as the oracle", name);
			test_variants(&s, &base, name, model);
			test_indices(&s, name);
		}
		free_forest(&s.forest);
	}
	end_run(&base);
	free(s.expected);
	free_model(&t);
}

/* Sequences of one length lie by parent as they lie by node. */
static void test_equal_sequences(void)
{
	struct lin_order order;
	struct diags diags;
	enum { LENGTH = 5, SEQUENCES = 3, NODES = LENGTH * SEQUENCES };
	int32_t begin[NODES + 1] = {0}, children[NODES], root[SEQUENCES], edges = 0;
	for (int n = 0; n < NODES; n++) {
		if (n % LENGTH)
			children[edges++] = n - 1;
		begin[n + 1] = edges;
		root[n / LENGTH] = n;
	}
	struct lin_forest f = {NODES, SEQUENCES, begin, children, root, NULL, NULL, 0};
	lin_order_init(&order, &allocator_default);
	diags_init(&diags, &allocator_default);
	bool ok = lin_linearize(&order, &f, (struct lin_rules){.children = 1, .places = true}, &diags);
	for (int n = 0; ok && n < NODES; n++)
		ok = order.place[n] == n;
	tap_ok(ok, "sequences of one length lie alike by node and by parent");
	lin_order_free(&order);
	diags_free(&diags);
}

/* Rows of a table are picked before the loops over their elements: no vector runs across them, since they
 * cannot be packed. */
static void test_picked_rows(void)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run base = {0};
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	bool ok = load_model(&t, "tests/models/transposed.ra", "D=9 V=30") && start_run(&base, &t, &o);
	if (ok) {
		make_forest(&s.forest, &base.image, 3, 9);
		ok = run_forest(&base, &s.forest.minibatch);
		s.expected =
		    gather_outputs(&base, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
	}
	o = (struct option_texts){.backend = "interpreter",
				     .target = "avx2",
				     .schedule =
					 "layout M node 1 0\nlayout E 0 1\n"
					 "tile leaf.0 nodes 1 columns 2 along 0 by rows\n"};
	tap_ok(ok && same(&s, &base, &o), "a picked row that is read across, interpreted");
	o.backend = usual_backend(), o.target = "native";
	tap_ok(ok && same(&s, &base, &o), "and compiled");
	free(s.expected);
	free_forest(&s.forest);
	end_run(&base);
	free_model(&t);
}

/* The loops that layouts are for. */
static void test_loops(void)
{
	static const struct {
		const char *what, *path, *sizes, *schedule, *has;
	} cases[] = {
	    {"stacked weights", "tests/models/slots.ra", "D=8 V=5", "layout h parent",
	     "stack[slot.1, j.4, k], h[row + slot.1, k]"},
	    {"joined children", "tests/models/slots.ra", "D=8 V=5", "layout h parent", "(slot.1 * 8) + k]"},
	    {"a matrix that is read across", "tests/models/transposed.ra", "D=8 V=5", NULL,
	     "M : state 0 f32 [nodes:node, 8:k, 8:j]"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct test_model t = {0};
		struct option_texts o = {
		    .backend = "interpreter", .target = "avx2", .schedule = cases[i].schedule};
		if (!load_model(&t, cases[i].path, cases[i].sizes))
			continue;
		struct str s = str_in(&t.arena);
		bool ok = compile_dump_as(&t.arena, &t.diags, t.model, t.sizes, &o, "lower", &s) &&
			  strstr(str_text(&s), cases[i].has);
		print_diags(&t.diags);
		tap_ok(ok, "%s: %s", cases[i].what, cases[i].has);
		free_model(&t);
	}
}

int main(void)
{
	test_picked_rows();
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		test_model(models[i].path, models[i].sizes, i);
	test_equal_sequences();
	test_loops();
	return tap_done();
}
