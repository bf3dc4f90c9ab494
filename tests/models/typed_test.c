/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models whose nodes are of several cases: against their equations, written out here, and in many variants,
 * which must give the same bits. */
#include "ilir/passes.h"
#include "tests/models/agree.h"

enum { D = 17, E = 9, C = 3 };
enum { WORD, TAG };

/* The parameters of examples/typed/typed.ra, in their order. */
enum { EMBEDDING, NUMBER, WORD_W, UNARY_W, LEFT_W, RIGHT_W, NEGATION_W, PHRASE_W, WORD_B, UNARY_B, PAIR_B, PHRASE_B,
       OUTPUT_W, OUTPUT_B };

/* --- the equations --- */

static void add_product(int param, int columns, const double *x, double *y)
{
	for (int i = 0; i < D; i++)
		for (int k = 0; k < columns; k++)
			y[i] += (double)weight_at(param, i * columns + k) * x[k];
}

static void finish(int bias, double *y)
{
	for (int i = 0; i < D; i++)
		y[i] = tanh(y[i] + (bias < 0 ? 0 : (double)weight_at(bias, i)));
}

static void leaf_cell(int word, int tag, double *y)
{
	double x[E];
	for (int k = 0; k < E; k++)
		x[k] = weight_at(EMBEDDING, word * E + k);
	for (int i = 0; i < D && tag == 1; i++)
		y[i] = tanh(weight_at(NUMBER, i));
	if (tag == 1)
		return;
	add_product(WORD_W, E, x, y);
	finish(WORD_B, y);
}

static void inner_cell(int n, int tag, double *const *child, double *y)
{
	if (n == 1) {
		add_product(UNARY_W, D, child[0], y);
		finish(UNARY_B, y);
	} else if (n == 2 && tag == 2) {
		add_product(NEGATION_W, D, child[0], y);
		for (int i = 0; i < D; i++)
			y[i] = -child[1][i] / (1 + exp(-y[i]));
	} else if (n == 2) {
		add_product(LEFT_W, D, child[0], y);
		add_product(RIGHT_W, D, child[1], y);
		finish(PAIR_B, y);
	} else {
		for (int c = 0; c < n; c++)
			add_product(PHRASE_W, D, child[c], y);
		finish(PHRASE_B, y);
	}
}

static double score(const double *h, int c)
{
	double y = weight_at(OUTPUT_B, c);
	for (int k = 0; k < D; k++)
		y += (double)weight_at(OUTPUT_W, c * D + k) * h[k];
	return y;
}

/* Children have lower ids than their parents. */
static double from_equations(const struct test_run *r, const struct test_forest *forest)
{
	const struct lin_forest *f = &forest->minibatch.forest;
	const int32_t *word = forest->data[WORD], *tag = forest->data[TAG];
	double(*h)[D] = calloc(f->nodes, sizeof *h), worst = 0, *child[8];
	for (int n = 0; n < f->nodes; n++) {
		int first = f->child_begin[n], count = f->child_begin[n + 1] - first;
		for (int c = 0; c < count; c++)
			child[c] = h[f->children[first + c]];
		if (count)
			inner_cell(count, tag[n], child, h[n]);
		else
			leaf_cell(word[n], tag[n], h[n]);
		const float *row = rt_session_row(&r->session, 0, n);
		for (int c = 0; c < C; c++)
			worst = fmax(worst, fabs(row[c] - score(h[n], c)));
	}
	free(h);
	return worst;
}

/* --- the variants --- */

static void test_passes(struct setting *s)
{
	for (int i = 1; ilir_pass_at(i); i++) {
		struct option_texts o = {
		    .backend = "interpreter", .target = "avx2", .last_pass = ilir_pass_at(i)->name};
		tap_ok(agrees(s, &o), "interpreted after %s", ilir_pass_at(i)->name);
	}
}

static const char *const schedules[] = {"dynamic_batch off\n",
					"specialize none\n",
					"specialize none\ndynamic_batch off\nvectorize off",
					"vectorize 4\n",
					"specialize leaf\n",
					"specialize all\ndense_index off\n",
					"specialize unary pair\n",
					"specialize number negation inner\ndynamic_batch off\n"};

static const char *const refused[] = {"specialize\n", "specialize all unary\n", "specialize pair pair\n",
				      "specialize triple\n"};

static void test_refused(const struct setting *s)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = refused[i]};
		struct test_run r;
		bool ok = !start_run(&r, s->model, &o);
		tap_ok(ok && r.diags.n == 1 && r.diags.at[0].id == DIAG_ILLEGAL_SCHEDULE, "refused: %.*s",
		       (int)strcspn(refused[i], "\n"), refused[i]);
		end_run(&r);
	}
}

static void test_schedules(struct setting *s)
{
	for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
		struct option_texts o = {.backend = "interpreter", .target = "avx2", .schedule = schedules[i]};
		tap_ok(agrees(s, &o), "interpreted, schedule %zu", i);
		o = (struct option_texts){.backend = usual_backend(), .target = "native", .schedule = schedules[i]};
		tap_ok(agrees(s, &o), "compiled, schedule %zu", i);
	}
}

static void test_equations(struct setting *s)
{
	struct option_texts o = {.backend = usual_backend(), .target = "native"};
	struct test_run r;
	double worst = 1;
	bool ok = start_run(&r, s->model, &o) && run_forest(&r, &s->forest.minibatch);
	tap_ok(ok && r.image.cases == 6, "the image has the cases of the model");
	if (ok)
		worst = from_equations(&r, &s->forest);
	tap_ok(worst < 2e-5, "as the equations, to %.1e", worst);
	tap_ok(ok && same_bits(s, &r), "compiled");
	end_run(&r);
}

/* A token is refused only where it is read: a number has no word. */
static void test_data(struct setting *s, struct test_run *r)
{
	int32_t *word = s->forest.owned[WORD];
	const int32_t *tag = s->forest.data[TAG], *begin = s->forest.minibatch.forest.child_begin;
	int numbers = 0, plain = -1;
	for (int n = 0; n < s->forest.nodes; n++) {
		bool leaf = begin[n] == begin[n + 1];
		if (leaf && tag[n] != 1)
			plain = n;
		numbers += leaf && tag[n] == 1;
		if (!leaf || tag[n] == 1)
			word[n] = -1;
	}
	tap_ok(numbers && run_forest(r, &s->forest.minibatch) && same_bits(s, r), "who reads no word needs none");
	int32_t was = word[plain];
	word[plain] = -1;
	tap_ok(!run_forest(r, &s->forest.minibatch) && r->diags.n && r->diags.at[0].id == DIAG_MISSING_DATA,
	       "who reads one does");
	word[plain] = was;
	s->forest.data[TAG] = NULL;
	diags_free(&r->diags);
	diags_init(&r->diags, &allocator_default);
	tap_ok(!run_forest(r, &s->forest.minibatch) && r->diags.n && r->diags.at[0].id == DIAG_MISSING_DATA,
	       "what cases ask for must be there");
	s->forest.data[TAG] = s->forest.owned[TAG];
}

int main(void)
{
	struct test_model t = {0};
	struct setting s = {.model = &t};
	struct test_run r;
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .last_pass = "infer_bounds"};
	if (!tap_ok(load_model(&t, "examples/typed/typed.ra", "D=17 E=9 V=30 C=3"), "parsed"))
		return tap_done();
	random_state = 7;
	if (!tap_ok(start_run(&r, &t, &o), "lowered"))
		return tap_done();
	make_forest(&s.forest, &r.image, 12, 60);
	if (tap_ok(run_forest(&r, &s.forest.minibatch), "interpreted with bounds")) {
		double worst;
		s.expected = gather_outputs(&r, s.forest.nodes, s.forest.minibatch.forest.inputs, &s.count);
		bool near = near_oracle(&s, &r, 2e-5, &worst);
		tap_ok(near, "as the oracle, to %.1e", worst);
		test_equations(&s);
		test_passes(&s);
		test_schedules(&s);
		test_refused(&s);
		test_data(&s, &r);
	}
	end_run(&r);
	free(s.expected);
	free_forest(&s.forest);
	free_model(&t);
	return tap_done();
}
