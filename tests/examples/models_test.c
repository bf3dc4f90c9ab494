/* The example models, as a user of the library runs them, against their equations: weights in a file, random
 * structures in any numbering, minibatches of several sizes, both back ends. */
#include "api/espalier.h"
#include "tests/examples/equations.h"
#include "tests/tap.h"

#include <unistd.h>

static char folder[] = "/tmp/espalier-test-XXXXXX";

/* --- the models --- */

enum kind { SEQUENCE, BINARY, ANY_CHILDREN };

/* Weights as "NAME[SIZE, SIZE]", a size being V, C, E, D or a number, perhaps times one. */
static const struct example {
	const char *path;
	enum kind kind;
	const char *weights;
	cell *f;
	read_out *output[2];
} examples[] = {
    {"treelstm/treelstm.ra",
     BINARY,
     "embedding.weight[V,E] leaf.W_i[D,E] leaf.W_o[D,E] leaf.W_u[D,E] leaf.b_i[D] leaf.b_o[D] leaf.b_u[D] "
     "node.U_i_left[D,D] node.U_i_right[D,D] node.U_fl_left[D,D] node.U_fl_right[D,D] node.U_fr_left[D,D] "
     "node.U_fr_right[D,D] node.U_o_left[D,D] node.U_o_right[D,D] node.U_u_left[D,D] node.U_u_right[D,D] "
     "node.b_i[D] node.b_fl[D] node.b_fr[D] node.b_o[D] node.b_u[D] output.weight[5,D] output.bias[5]",
     nary_cell,
     {logits, sentiment}},
    {"childsum/childsum.ra",
     ANY_CHILDREN,
     "embedding.weight[V,E] W_i[D,E] W_f[D,E] W_o[D,E] W_u[D,E] U_i[D,D] U_f[D,D] U_o[D,D] U_u[D,D] "
     "b_i[D] b_f[D] b_o[D] b_u[D] output.weight[C,D] output.bias[C]",
     childsum_cell,
     {logits}},
    {"treegru/treegru.ra",
     ANY_CHILDREN,
     "embedding.weight[V,E] W_z[D,E] W_n[D,E] U_r[D,D] U_z[D,D] U_n[D,D] b_r[D] b_z[D] b_n[D] "
     "output.weight[C,D] output.bias[C]",
     treegru_cell,
     {logits}},
    {"simpletreegru/simpletreegru.ra",
     ANY_CHILDREN,
     "embedding.weight[V,E] W_z[D,E] W_n[D,E] U_r[D,D] U_z[D,D] U_n[D,D] b_r[D] b_z[D] b_n[D] "
     "output.weight[C,D] output.bias[C]",
     simpletreegru_cell,
     {logits}},
    {"treernn/treernn.ra",
     ANY_CHILDREN,
     "embedding.weight[V,E] W[D,E] U[D,D] b[D] output.weight[C,D] output.bias[C]",
     treernn_cell,
     {logits}},
    {"treefc/treefc.ra", BINARY, "embedding.weight[V,D] W[D,2D] b[D]", treefc_cell, {hidden}},
    {"lstm/lstm.ra",
     SEQUENCE,
     "embedding.weight[V,E] lstm.weight_ih_l0[4D,E] lstm.weight_hh_l0[4D,D] lstm.bias_ih_l0[4D] "
     "lstm.bias_hh_l0[4D] output.weight[C,D] output.bias[C]",
     lstm_cell,
     {logits}},
    {"gru/gru.ra",
     SEQUENCE,
     "weight_ih_l0[3D,E] weight_hh_l0[3D,D] bias_ih_l0[3D] bias_hh_l0[3D]",
     gru_cell,
     {hidden}},
    {"gru/gru-before.ra",
     SEQUENCE,
     "W_r[D,E] W_z[D,E] W[D,E] U_r[D,D] U_z[D,D] U[D,D]",
     gru_before_cell,
     {hidden}},
    {"../bench/models/treelstm.ra",
     BINARY,
     "embedding.weight[V,D] cell.weight[V,D] node.U_i_left[D,D] node.U_i_right[D,D] node.U_fl_left[D,D] "
     "node.U_fl_right[D,D] node.U_fr_left[D,D] node.U_fr_right[D,D] node.U_o_left[D,D] node.U_o_right[D,D] "
     "node.U_u_left[D,D] node.U_u_right[D,D] node.b_i[D] node.b_fl[D] node.b_fr[D] node.b_o[D] node.b_u[D]",
     nary_lookup_cell,
     {hidden}},
    {"../bench/models/childsum.ra",
     ANY_CHILDREN,
     "embedding.weight[V,D] cell.weight[V,D] U_i[D,D] U_f[D,D] U_o[D,D] U_u[D,D] b_i[D] b_f[D] b_o[D] b_u[D]",
     childsum_lookup_cell,
     {hidden}},
    {"../bench/models/treegru.ra",
     ANY_CHILDREN,
     "embedding.weight[V,D] U_r[D,D] U_z[D,D] U_n[D,D] b_r[D] b_z[D] b_n[D]",
     treegru_lookup_cell,
     {hidden}},
    {"../bench/models/simpletreegru.ra",
     ANY_CHILDREN,
     "embedding.weight[V,D] U_r[D,D] U_z[D,D] U_n[D,D] b_r[D] b_z[D] b_n[D]",
     simpletreegru_lookup_cell,
     {hidden}},
    {"../bench/models/treernn.ra",
     ANY_CHILDREN,
     "embedding.weight[V,D] U[D,D] b[D]",
     treernn_lookup_cell,
     {hidden}},
    {"../bench/models/treefc.ra", BINARY, "embedding.weight[V,D] W[D,D] b[D]", treefc_sum_cell, {hidden}},
    {"../bench/models/lstm.ra",
     SEQUENCE,
     "weight_ih_l0[4D,E] weight_hh_l0[4D,D] bias_ih_l0[4D] bias_hh_l0[4D]",
     lstm_vectors_cell,
     {hidden}},
};

/* --- weights --- */

static int size_of(const struct weights *w, const char *text)
{
	int factor = atoi(text), size;
	text += strspn(text, "0123456789");
	size = *text == 'V' ? V : *text == 'C' ? C : *text == 'E' ? w->E : *text == 'D' ? w->D : 1;
	return (factor ? factor : 1) * size;
}

/* As large as keeps what the gates see near 1. */
static void make_weight(struct weights *w, const char *text)
{
	struct weight *t = &w->weight[w->n++];
	const char *shape = strchr(text, '['), *second = strpbrk(shape, ",]");
	*t = (struct weight){.rank = *second == ',' ? 2 : 1, .shape = {size_of(w, shape + 1), 1}};
	memcpy(t->name, text, shape - text);
	if (t->rank == 2)
		t->shape[1] = size_of(w, second + 1);
	t->at = malloc(t->shape[0] * t->shape[1] * sizeof *t->at);
	for (int i = 0; i < t->shape[0] * t->shape[1]; i++)
		t->at[i] = random_float() * (t->rank == 2 ? 1.5 / sqrt(t->shape[1]) : 0.5);
}

static void make_weights(struct weights *w, const char *text, int D, int E)
{
	*w = (struct weights){.D = D, .E = E};
	for (; text; text = strchr(text, ' ')) {
		text += *text == ' ';
		make_weight(w, text);
	}
}

static void free_weights(struct weights *w)
{
	for (int i = 0; i < w->n; i++)
		free(w->weight[i].at);
}

/* A safetensors file: the length of the header, the header, the values. */
static bool write_weights(const struct weights *w, const char *path)
{
	char header[8192] = "{";
	size_t n = 1, begin = 0;
	for (int i = 0; i < w->n; i++) {
		const struct weight *t = &w->weight[i];
		size_t bytes = (size_t)t->shape[0] * t->shape[1] * sizeof *t->at;
		char columns[16] = "";
		if (t->rank == 2)
			snprintf(columns, sizeof columns, ",%d", t->shape[1]);
		n += snprintf(header + n, sizeof header - n,
			      "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d%s],\"data_offsets\":[%zu,%zu]}",
			      i ? "," : "", t->name, t->shape[0], columns, begin, begin + bytes);
		begin += bytes;
	}
	header[n++] = '}';
	uint64_t length = n;
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(&length, sizeof length, 1, f) == 1 && fwrite(header, n, 1, f) == 1;
	for (int i = 0; ok && i < w->n; i++)
		ok = fwrite(w->weight[i].at, sizeof(float) * w->weight[i].shape[0] * w->weight[i].shape[1], 1,
			    f) == 1;
	return f && fclose(f) == 0 && ok;
}

/* --- structures --- */

/* The parent of each node; that of a binary tree splits leaves, so that `nodes` becomes odd. */
static int make_parents(enum kind kind, int nodes, int *parent)
{
	int children[MOST_NODES] = {0}, n = 1;
	parent[0] = -1;
	while (n < nodes) {
		int of = kind == SEQUENCE ? n - 1 : random_below(n);
		if (kind == BINARY && (children[of] || n + 2 > MOST_NODES))
			continue;
		for (int i = 0; i < 1 + (kind == BINARY); i++, n++) {
			parent[n] = of;
			children[of]++;
		}
	}
	return n;
}

static void shuffle(int *number, int n)
{
	for (int i = 0; i < n; i++)
		number[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j = random_below(i + 1), other = number[j];
		number[j] = number[i];
		number[i] = other;
	}
}

static void make_structure(struct structure *s, enum kind kind, int nodes)
{
	int parent[MOST_NODES], number[MOST_NODES], edges = 0;
	memset(s, 0, sizeof *s);
	s->nodes = make_parents(kind, nodes, parent);
	shuffle(number, s->nodes);
	s->root = number[0];
	for (int i = 0; i < s->nodes; i++) {
		s->begin[i] = edges;
		for (int k = 1; k < s->nodes; k++)
			if (number[parent[k]] == i)
				s->children[edges++] = number[k];
	}
	s->begin[s->nodes] = edges;
	for (int i = 0; i < s->nodes; i++)
		s->word[i] = random_below(V);
	for (int i = 0; i < MOST_NODES * MOST_E; i++)
		s->x[i] = random_float();
}

/* --- a run --- */

struct run {
	const struct example *example;
	const struct weights *weights;
	esp_program *program;
	esp_forest *forest;
	esp_session *session;
	struct structure *structure;
	int structures;
	double worst;
};

static void compare(struct run *r, const float *row, const double *expected, int n)
{
	for (int i = 0; i < n; i++) {
		double error = row ? fabs(row[i] - expected[i]) / (1 + fabs(expected[i])) : INFINITY;
		r->worst = error > r->worst || isnan(error) ? error : r->worst;
	}
}

static void compare_node(struct run *r, int s, int node)
{
	const struct structure *t = &r->structure[s];
	for (size_t i = 0; i < esp_program_states(r->program); i++)
		compare(r, esp_session_state(r->session, i, s, node), i ? t->c[node] : t->h[node],
			r->weights->D);
	for (size_t o = 0; o < esp_program_outputs(r->program); o++) {
		const esp_output *output = esp_program_output(r->program, o);
		double y[MOST_D + C];
		int n = r->example->output[o](r->weights, t, node, y);
		if (!output->at_root || node == t->root)
			compare(
			    r, n == (int)output->elements ? esp_session_output(r->session, o, s, node) : NULL,
			    y, n);
	}
}

static bool add_structures(struct run *r)
{
	esp_forest_clear(r->forest);
	for (int s = 0; s < r->structures; s++) {
		struct structure *t = &r->structure[s];
		const void *data[] = {t->word};
		static float x[MOST_NODES * MOST_E];
		memcpy(x, t->x, sizeof x);
		if (!esp_program_input(r->program, 0)->is_token)
			data[0] = x;
		esp_structure structure = {sizeof structure, t->nodes, t->begin, t->children, t->root, data};
		if (esp_forest_add(r->forest, &structure, NULL) != ESP_OK)
			return false;
	}
	return true;
}

/* The first structure is a single node. */
static void test_minibatch(struct run *r, int structures, const char *way)
{
	r->structures = structures;
	r->structure = malloc(structures * sizeof *r->structure);
	r->worst = 0;
	for (int s = 0; s < structures; s++) {
		make_structure(&r->structure[s], r->example->kind, s ? 1 + random_below(MOST_NODES - 1) : 1);
		evaluate(r->example->f, r->weights, &r->structure[s], r->structure[s].root);
	}
	esp_error *error = NULL;
	bool ran = add_structures(r) && esp_session_run(r->session, r->forest, &error) == ESP_OK;
	if (error)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	for (int s = 0; ran && s < structures; s++)
		for (int node = 0; node < r->structure[s].nodes; node++)
			compare_node(r, s, node);
	tap_ok(ran && r->worst < 1e-5, "%s, %d structures, %s: as the equations, to %.1e", r->example->path,
	       structures, way, r->worst);
	free(r->structure);
}

/* --- the ways --- */

struct files {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
};

static bool is(esp_status status, esp_error *error)
{
	if (status)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return status == ESP_OK;
}

static void test_way(const struct example *e, const struct weights *w, const struct files *f,
		     const esp_program_options *options, const char *way)
{
	struct run r = {.example = e, .weights = w};
	esp_binding *binding = NULL;
	esp_error *error = NULL;
	bool ok = is(esp_program_create(f->model, f->weights, options, &r.program, &error), error) &&
		  is(esp_binding_create(r.program, f->weights, &binding, &error), error) &&
		  is(esp_session_create(binding, &r.session, &error), error) &&
		  is(esp_forest_create(r.program, &r.forest, &error), error);
	if (tap_ok(ok, "%s: compiled, %s", e->path, way)) {
		test_minibatch(&r, 1, way);
		test_minibatch(&r, 3, way);
		test_minibatch(&r, 10, way);
	}
	esp_forest_free(r.forest);
	esp_session_free(r.session);
	esp_binding_free(binding);
	esp_program_free(r.program);
}

static bool has_llvm(const struct files *f)
{
	esp_program_options options = {.size = sizeof options, .backend = "llvm"};
	esp_program *p = NULL;
	bool ok = esp_program_create(f->model, f->weights, &options, &p, NULL) == ESP_OK &&
		  esp_program_prepare(p, NULL) == ESP_OK;
	esp_program_free(p);
	return ok;
}

/* With everything that may be said about rewriting. */
static const struct {
	const char *backend, *math, *rules;
} ways[] = {
    {"interpreter", NULL, NULL},
    {"interpreter", "exact", "all"},
    {"interpreter", "fast", "all"},
    {"interpreter", "exact", "none"},
    {"interpreter", NULL, "-tables"},
    {"interpreter", NULL, "-constants"},
    {"interpreter", NULL, "-tables,-geometric"},
    {"interpreter", NULL, "tables,constants"},
    {"llvm", NULL, NULL},
    {"llvm", "fast", "all"},
};

static void test_ways(const struct example *e, const struct weights *w, const struct files *f)
{
	bool llvm = has_llvm(f);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		esp_program_options options = {.size = sizeof options,
					       .backend = ways[i].backend,
					       .math = ways[i].math,
					       .rules = ways[i].rules};
		char way[80];
		snprintf(way, sizeof way, "%s, math %s, rules %s", ways[i].backend,
			 ways[i].math ? ways[i].math : "unsaid", ways[i].rules ? ways[i].rules : "unsaid");
		if (strcmp(ways[i].backend, "llvm") == 0 && !llvm)
			tap_skip("no LLVM back end", "%s, %s", e->path, way);
		else
			test_way(e, w, f, &options, way);
	}
}

static bool open_files(struct files *f, const struct example *e, const char *weights)
{
	const char *source = getenv("srcdir");
	char path[4096];
	esp_context_options options = {.size = sizeof options, .cache = ESP_CACHE_OFF};
	esp_error *error = NULL;
	snprintf(path, sizeof path, "%s/examples/%s", source ? source : ".", e->path);
	return is(esp_context_create(&options, &f->context, &error), error) &&
	       is(esp_model_read(f->context, path, &f->model, &error), error) &&
	       is(esp_weights_open(f->context, weights, &f->weights, &error), error);
}

static void test_example(const struct example *e, int D, int E)
{
	struct weights w;
	struct files f = {0};
	char path[64];
	snprintf(path, sizeof path, "%s/weights", folder);
	make_weights(&w, e->weights, D, E);
	if (tap_ok(write_weights(&w, path) && open_files(&f, e, path), "%s: D=%d, E=%d", e->path, D, E))
		test_ways(e, &w, &f);
	esp_weights_free(f.weights);
	esp_model_free(f.model);
	esp_context_free(f.context);
	free_weights(&w);
	unlink(path);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	random_state = 1;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		test_example(&examples[i], 13, 7);
		test_example(&examples[i], 32, 40);
	}
	rmdir(folder);
	return tap_done();
}
