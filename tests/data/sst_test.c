/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The trained models on real trees, against reference outputs of PyTorch.  Needs the folder ESPALIER_DATA
 * (models, trees, golden outputs); without it everything is skipped. */
#include "api/espalier.h"
#include "api/objects.h"
#include "subop/subop.h"
#include "tests/backends.h"
#include "tests/sanitizers.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct model {
	const char *name, *weights, *trees, *nodes, *roots;
	int all_nodes; /* trees whose nodes are all in the golden file */
	int right;     /* roots that the reference has right */
	bool
	    interpreted; /* as well: a table of all words takes the interpreter long, a wide model has none */
} models[] = {
    {"hidden 150", "models/sst-treelstm.safetensors", "sst/test-a.txt", "golden/sst-treelstm-test-a-200.txt",
     "golden/sst-treelstm-test-a-roots.txt", 200, 542, true},
    {"hidden 64", "models/sst-treelstm-small.safetensors", "sst/dev.txt",
     "golden/sst-treelstm-small-dev100.txt", "golden/sst-treelstm-small-dev-roots.txt", 100, 529, false},
};

enum { CLASSES = 5, MAX_TREES = 1200, SOME_TREES = SHADOWED ? 2 : 20 }; /* some: without a compiler */

static const char *data_path(const char *name)
{
	static char paths[8][4096];
	static int next;
	const char *folder = getenv("ESPALIER_DATA");
	char *path = paths[next++ % 8];
	snprintf(path, sizeof paths[0], "%s/%s", folder ? folder : "../shared/data", name);
	return path;
}

static const char *model_path(void)
{
	static char path[4096];
	const char *srcdir = getenv("srcdir");
	snprintf(path, sizeof path, "%s/examples/treelstm/treelstm.ra", srcdir ? srcdir : ".");
	return path;
}

/* --- one variant of running a model --- */

struct variant {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_vocab *vocab;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
};

static bool done(esp_status status, esp_error *error)
{
	if (status != ESP_OK)
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	return status == ESP_OK;
}

static bool open_files(struct variant *w, const struct model *m)
{
	esp_error *e = NULL;
	const char *weights = m->weights[0] == '/' ? m->weights : data_path(m->weights);
	memset(w, 0, sizeof *w);
	return done(esp_context_create(NULL, &w->context, &e), e) &&
	       done(esp_model_read(w->context, model_path(), &w->model, &e), e) &&
	       done(esp_weights_open(w->context, weights, &w->weights, &e), e) &&
	       done(esp_vocab_open(w->context, data_path("models/sst-vocab.txt"), &w->vocab, &e), e);
}

static bool open_variant_with(struct variant *w, const struct model *m, const esp_program_options *options)
{
	esp_error *e = NULL;
	return open_files(w, m) && done(esp_program_create(w->model, w->weights, options, &w->program, &e), e) &&
	       done(esp_binding_create(w->program, w->weights, &w->binding, &e), e) &&
	       done(esp_session_create(w->binding, &w->session, &e), e) &&
	       done(esp_forest_create(w->program, &w->forest, &e), e);
}

static bool open_variant_as(struct variant *w, const struct model *m, const char *backend,
			    const char *weights_as, const char *precision)
{
	esp_program_options options = {.size = sizeof options,
				       .at = ESP_AT_EVERY_NODE,
				       .backend = backend,
				       .weights_as = weights_as,
				       .precision = precision};
	return open_variant_with(w, m, &options);
}

static bool open_variant(struct variant *w, const struct model *m, const char *backend)
{
	return open_variant_as(w, m, backend, NULL, NULL);
}

static void close_variant(struct variant *w)
{
	esp_forest_free(w->forest);
	esp_session_free(w->session);
	esp_binding_free(w->binding);
	esp_program_free(w->program);
	esp_vocab_free(w->vocab);
	esp_weights_free(w->weights);
	esp_model_free(w->model);
	esp_context_free(w->context);
}

/* --- results: logits of every node, tree after tree in post order --- */

struct results {
	size_t trees, nodes;
	size_t first[MAX_TREES + 1];
	float *logits;
};

static void take_results(struct results *r, const struct variant *w)
{
	for (size_t t = 0; t < esp_forest_structures(w->forest); t++) {
		size_t nodes = esp_forest_nodes(w->forest, t);
		r->first[r->trees++] = r->nodes;
		r->logits = realloc(r->logits, (r->nodes + nodes) * CLASSES * sizeof(float));
		for (size_t n = 0; n < nodes; n++)
			memcpy(r->logits + (r->nodes + n) * CLASSES, esp_session_output(w->session, 0, t, n),
			       CLASSES * sizeof(float));
		r->nodes += nodes;
		r->first[r->trees] = r->nodes;
	}
}

/* The first `limit` trees in minibatches of `batch`. */
static bool run_trees(struct results *r, struct variant *w, const char *path, size_t batch, size_t limit)
{
	esp_treebank *bank = NULL;
	esp_error *e = NULL;
	int more = 1;
	memset(r, 0, sizeof *r);
	esp_treebank_options reading = {.size = sizeof reading, .vocab = w->vocab};
	bool ok = done(esp_treebank_open(w->context, path, &reading, &bank, &e), e);
	while (ok && more && r->trees < limit) {
		esp_forest_clear(w->forest);
		while (ok && more && esp_forest_structures(w->forest) < batch &&
		       r->trees + esp_forest_structures(w->forest) < limit)
			ok = done(esp_treebank_next(bank, w->forest, &more, &e), e);
		if (ok && esp_forest_structures(w->forest)) {
			ok = done(esp_session_run(w->session, w->forest, &e), e);
			if (ok)
				take_results(r, w);
		}
	}
	esp_treebank_free(bank);
	return ok;
}

static bool same_results(const struct results *a, const struct results *b)
{
	return a->nodes == b->nodes && memcmp(a->logits, b->logits, a->nodes * CLASSES * sizeof(float)) == 0;
}

static int best_class(const float *logits)
{
	int best = 0;
	for (int c = 1; c < CLASSES; c++)
		best = logits[c] > logits[best] ? c : best;
	return best;
}

/* --- against the reference --- */

/* tree INDEX NODES CLASSES ROOTNODE ROOTCLASS, then a line of logits a node. */
static void test_nodes(const struct model *m, const struct results *r)
{
	FILE *f = fopen(data_path(m->nodes), "r");
	size_t index, nodes, root, seen = 0;
	int classes, root_class;
	double worst = 0;
	bool same = true;
	while (f && fscanf(f, " tree %zu %zu %d %zu %d", &index, &nodes, &classes, &root, &root_class) == 5) {
		const float *logits = r->logits + r->first[index] * CLASSES;
		same &=
		    index < r->trees && r->first[index + 1] - r->first[index] == nodes && classes == CLASSES;
		for (size_t i = 0; same && i < nodes * CLASSES; i++) {
			double x = NAN;
			same &= fscanf(f, "%lf", &x) == 1;
			worst = fabs(x - logits[i]) > worst || isnan(x) ? fabs(x - logits[i]) : worst;
		}
		same &= best_class(logits + root * CLASSES) == root_class;
		seen++;
	}
	if (f)
		fclose(f);
	tap_ok(same && (int)seen == m->all_nodes, "%s: %zu trees, each with its nodes and root class",
	       m->name, seen);
	tap_ok(worst < 1e-4, "%s: logits of all nodes within %.1e of the reference", m->name, worst);
}

/* GOLD CLASS and five logits a root. */
static void test_roots(const struct model *m, const struct results *r)
{
	FILE *f = fopen(data_path(m->roots), "r");
	int gold, class, right = 0, other = 0;
	size_t trees = 0;
	double worst = 0, x[CLASSES];
	while (f &&
	       fscanf(f, "%d %d %lf %lf %lf %lf %lf", &gold, &class, &x[0], &x[1], &x[2], &x[3], &x[4]) ==
		   7 &&
	       trees < r->trees) {
		const float *root = r->logits + (r->first[++trees] - 1) * CLASSES;
		right += best_class(root) == gold;
		other += best_class(root) != class;
		for (int c = 0; c < CLASSES; c++)
			worst = fabs(x[c] - root[c]) > worst ? fabs(x[c] - root[c]) : worst;
	}
	if (f)
		fclose(f);
	tap_ok(trees == r->trees && trees > 1000 && other == 0, "%s: %zu roots, every class as the reference",
	       m->name, trees);
	tap_ok(right == m->right, "%s: %d roots right, as the reference's %d", m->name, right, m->right);
	tap_ok(worst < 1e-4, "%s: logits of all roots within %.1e", m->name, worst);
}

/* --- against the oracle --- */

struct oracle {
	struct variant *w;
	struct results *r; /* of the first trees */
	double worst;
};

static float *read_param(const struct oracle *o, struct arena *a, const struct sub_tensor *t)
{
	const struct io_safetensors *file = o->w->weights->file;
	struct diags d;
	diags_init(&d, &allocator_default);
	for (int i = 0; i < file->n; i++)
		if (strcmp(file->tensor[i].name, t->name) == 0) {
			float *values = ARENA_ARRAY(a, float, tensor_elements(&file->tensor[i]));
			io_safetensors_read_f32(file, &d, i, 0, tensor_elements(&file->tensor[i]), values);
			return values;
		}
	return NULL;
}

static void ask_oracle(struct oracle *o, struct arena *a)
{
	const esp_forest *f = o->w->forest;
	const struct ra_model *model = o->w->model->graph;
	struct sub_program p;
	struct diags d;
	diags_init(&d, &allocator_default);
	sub_init(&p, a, "oracle");
	sub_lower_model(&p, model, o->w->program->sizes, SUB_AT_EVERY_NODE, &d);
	struct lin_forest forest = lin_collect_forest(&f->collect);
	const void **params = ARENA_ARRAY(a, const void *, p.params.n);
	double **states = ARENA_ARRAY(a, double *, p.states.n),
	       **outputs = ARENA_ARRAY(a, double *, p.outputs.n);
	int32_t *order = ARENA_ARRAY(a, int32_t, forest.nodes);
	for (size_t i = 0; i < p.params.n; i++)
		params[i] = read_param(o, a, &p.params.at[i]);
	for (size_t i = 0; i < p.states.n; i++)
		states[i] = ARENA_ARRAY(a, double, forest.nodes *p.states.at[i].shape[0]);
	for (size_t i = 0; i < p.outputs.n; i++)
		outputs[i] = ARENA_ARRAY(a, double, forest.nodes *CLASSES);
	for (int32_t n = 0; n < forest.nodes; n++)
		order[n] = n;
	const void *data[] = {f->data[0]};
	struct sub_forest sub = {
	    forest.nodes, forest.inputs, forest.child_begin, forest.children, forest.root, order, data, NULL};
	sub_evaluate(&p, &sub, params, states, outputs, a);
	for (size_t i = 0; i < o->r->nodes * CLASSES; i++) {
		double error = fabs(outputs[0][i] - o->r->logits[i]);
		o->worst = error > o->worst || isnan(error) ? error : o->worst;
	}
	diags_free(&d);
}

static void test_oracle(const struct model *m, struct variant *w)
{
	struct results some;
	struct oracle o = {w, &some, 0};
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	bool ok = run_trees(&some, w, data_path(m->trees), SOME_TREES, SOME_TREES) && !arena_guard(&a, &jump);
	if (ok)
		ask_oracle(&o, &a);
	tap_ok(ok && o.worst < 1e-4, "%s: %d trees within %.1e of the oracle", m->name, SOME_TREES, o.worst);
	arena_free(&a);
	free(some.logits);
}

static void test_interpreted(const struct model *m, struct variant *compiled)
{
	struct variant interpreter;
	struct results some = {0}, same = {0};
	tap_ok(run_trees(&some, compiled, data_path(m->trees), SOME_TREES, SOME_TREES) &&
		   open_variant(&interpreter, m, "interpreter") &&
		   run_trees(&same, &interpreter, data_path(m->trees), SOME_TREES, SOME_TREES) &&
		   same_results(&some, &same),
	       "%s: %d trees interpreted, the same bits", m->name, SOME_TREES);
	close_variant(&interpreter);
	free(some.logits), free(same.logits);
}

/* --- narrow weights --- */

/* The gold class of each root, and whether it is the best one. */
static int count_right(const struct model *m, const struct results *r)
{
	FILE *f = fopen(data_path(m->roots), "r");
	int gold, right = 0;
	for (size_t t = 0; f && t < r->trees && fscanf(f, " %d%*[^\n]", &gold) == 1; t++)
		right += best_class(r->logits + (r->first[t + 1] - 1) * CLASSES) == gold;
	if (f)
		fclose(f);
	return right;
}

static double largest_change(const struct results *a, const struct results *b)
{
	double worst = a->nodes == b->nodes ? 0 : INFINITY;
	for (size_t i = 0; a->nodes == b->nodes && i < a->nodes * CLASSES; i++)
		worst = fmax(worst, fabs(a->logits[i] - b->logits[i]));
	return worst;
}

/* How many roots have another best class. */
static int count_changed(const struct results *a, const struct results *b)
{
	int changed = 0;
	for (size_t t = 0; t < a->trees && t < b->trees; t++)
		changed += best_class(a->logits + (a->first[t + 1] - 1) * CLASSES) !=
			   best_class(b->logits + (b->first[t + 1] - 1) * CLASSES);
	return changed;
}

/* By weights and products in narrower types.  The limits are far more than was found, so that only a wrong
 * conversion is told. */
static void test_narrow(const struct model *m, const struct results *wide)
{
	static const struct {
		const char *weights_as, *precision;
		double change;
		int classes; /* that may change */
	} types[] = {{"f16", NULL, 0.02, 11},
		     {"bf16", NULL, 0.15, 11},
		     {"i8", NULL, 0.5, 11},
		     {NULL, "bf16", 0.15, 11},
		     {NULL, "bf16x1", 0.15, 11},
		     {NULL, "bf16x3", 1e-4, 0},
		     {NULL, "f16", 0.05, 11},
		     {NULL, "i16", 0.02, 0},
		     {NULL, "i8x3", 2e-3, 0},
		     {NULL, "i8", 0.5, 11}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct variant variant;
		struct results r = {0};
		const char *what = types[i].precision ? "products" : "weights",
			   *type = types[i].precision ? types[i].precision : types[i].weights_as;
		bool ran =
		    open_variant_as(&variant, m, usual_backend(), types[i].weights_as, types[i].precision) &&
		    run_trees(&r, &variant, data_path(m->trees), MAX_TREES, MAX_TREES);
		double change = ran ? largest_change(wide, &r) : INFINITY;
		int right = ran ? count_right(m, &r) : 0;
		tap_ok(change > 0 && change < types[i].change, "%s: %s %s change a logit by %.2g at most",
		       m->name, type, what, change);
		tap_ok(abs(right - m->right) <= 11, "%s: %s %s have %d roots right, not %d", m->name, type,
		       what, right, m->right);
		int changed = ran ? count_changed(wide, &r) : INT_MAX;
		tap_ok(changed <= types[i].classes, "%s: %s %s change the class of %d roots", m->name, type,
		       what, changed);
		close_variant(&variant);
		free(r.logits);
	}
}

/* --- weights that a calibration quantises --- */

enum { CALIBRATED_TREES = 200, FEW_TREES = 2 };

/* Runs the first trees by an observed program, and writes what they quantise. */
static bool write_quantised(const struct model *m, const char *path)
{
	struct variant w = {0};
	esp_program_options options = {.size = sizeof options, .rules = "-tables", .backend = usual_backend()};
	esp_treebank *bank = NULL;
	esp_calibration *c = NULL;
	esp_error *e = NULL;
	int more = 1;
	bool ok = open_files(&w, m) && done(esp_calibration_create(w.model, w.weights, &options, &c, &e), e);
	esp_program *p = esp_calibration_program(c);
	esp_treebank_options reading = {.size = sizeof reading, .vocab = w.vocab};
	ok = ok && done(esp_binding_create(p, w.weights, &w.binding, &e), e) &&
	     done(esp_session_create(w.binding, &w.session, &e), e) && done(esp_forest_create(p, &w.forest, &e), e) &&
	     done(esp_treebank_open(w.context, data_path(m->trees), &reading, &bank, &e), e);
	while (ok && more && esp_forest_structures(w.forest) < CALIBRATED_TREES)
		ok = done(esp_treebank_next(bank, w.forest, &more, &e), e);
	ok = ok && done(esp_session_run(w.session, w.forest, &e), e) && done(esp_calibration_add(c, w.session, &e), e) &&
	     done(esp_calibration_write(c, NULL, path, &e), e);
	esp_treebank_free(bank);
	close_variant(&w);
	esp_calibration_free(c);
	return ok;
}

static bool run_quantised(const struct model *m, const char *path, const char *backend, struct results *r, size_t trees)
{
	struct model quantised = *m;
	struct variant w = {0};
	quantised.weights = path;
	bool ok = open_variant_with(&w, &quantised,
				    &(esp_program_options){.size = sizeof(esp_program_options),
							   .at = ESP_AT_EVERY_NODE,
							   .backend = backend,
							   .rules = "-tables"}) &&
		  run_trees(r, &w, data_path(m->trees), trees, trees);
	close_variant(&w);
	return ok;
}

static void test_quantised(const struct model *m, const struct results *wide)
{
	char path[] = "/tmp/espalier-sst-XXXXXX";
	struct results all = {0}, some = {0}, other = {0};
	int fd = mkstemp(path);
	tap_ok(fd >= 0 && write_quantised(m, path), "%s: weights are quantised by %d trees", m->name, CALIBRATED_TREES);
	bool ok = run_quantised(m, path, usual_backend(), &all, MAX_TREES);
	double change = ok ? largest_change(wide, &all) : INFINITY;
	int right = ok ? count_right(m, &all) : 0;
	tap_ok(change > 0 && change < 0.5, "%s: quantised weights change a logit by %.2g at most", m->name, change);
	tap_ok(abs(right - m->right) <= 11, "%s: quantised weights have %d roots right, not %d", m->name, right, m->right);
	ok = ok && run_quantised(m, path, usual_backend(), &some, FEW_TREES);
	for (int b = 0; ok && b < 3; b++, free(other.logits), other.logits = NULL) {
		static const char *const backends[] = {"llvm", "gccjit", "interpreter"};
		if (b == 2 || has_backend(backends[b]))
			tap_ok(run_quantised(m, path, backends[b], &other, FEW_TREES) && same_results(&some, &other),
			       "%s: quantised weights give the same bits by %s", m->name, backends[b]);
	}
	close(fd);
	unlink(path);
	free(all.logits), free(some.logits);
}

static void test_model(const struct model *m)
{
	struct variant compiled;
	struct results all = {0}, tens = {0}, ones = {0};
	if (!tap_ok(open_variant(&compiled, m, usual_backend()) &&
			run_trees(&all, &compiled, data_path(m->trees), MAX_TREES, MAX_TREES),
		    "%s: all trees at once", m->name))
		return;
	test_nodes(m, &all);
	test_roots(m, &all);
	tap_ok(run_trees(&tens, &compiled, data_path(m->trees), 10, MAX_TREES) && same_results(&all, &tens),
	       "%s: the same bits in minibatches of ten", m->name);
	tap_ok(run_trees(&ones, &compiled, data_path(m->trees), 1, MAX_TREES) && same_results(&all, &ones),
	       "%s: the same bits one by one", m->name);
	test_oracle(m, &compiled);
	test_narrow(m, &all);
	test_quantised(m, &all);
	if (m->interpreted && !SHADOWED)
		test_interpreted(m, &compiled);
	close_variant(&compiled);
	free(all.logits), free(tens.logits), free(ones.logits);
}

int main(void)
{
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		FILE *f = fopen(data_path(models[i].nodes), "r");
		if (f) {
			fclose(f);
			if (need_backend("%s on real trees", models[i].name))
				test_model(&models[i]);
		} else {
			tap_skip("no folder ESPALIER_DATA", "%s on real trees", models[i].name);
		}
	}
	return tap_done();
}
