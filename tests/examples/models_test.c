/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The example models, as a user of the library runs them, against their equations: weights in a file, random
 * structures in any numbering, minibatches of several sizes, both back ends. */
#include "api/espalier.h"
#include "tests/backends.h"
#include "tests/examples/labels.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

#include <unistd.h>

static char folder[] = "/tmp/espalier-test-XXXXXX";

/* --- the models --- */

enum kind { SEQUENCE, BINARY, TERNARY, ANY_CHILDREN, DAG, GRID };

#define LABELLED_GATES                                                                                       \
	"embedding.weight[V,E] W_i[D,E] W_f[D,E] W_o[D,E] W_u[D,E] b_i[D] b_f[D] b_o[D] b_u[D] "             \
	"output.weight[C,D] output.bias[C] "
#define LABEL_MATRICES LABELLED_GATES "U_i[R,D,D] U_f[R,D,D] U_o[R,D,D] U_u[R,D,D]"
#define LABEL_EMBEDDINGS                                                                                     \
	LABELLED_GATES                                                                                       \
	    "label.weight[R,L] U_i[D,D] U_f[D,D] U_o[D,D] U_u[D,D] L_i[D,L] L_f[D,L] L_o[D,L] L_u[D,L]"

/* Weights as "NAME[SIZE, SIZE, SIZE]", a size being V, C, R, L, A, E, D or a number, perhaps times one.  What
 * is written for trees is run over them as it stands, and over a DAG with that one word changed. */
static const struct example {
	const char *path;
	enum kind kind;
	const char *weights;
	cell *f;
	read_out *output[3];
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
    {"treefc/treefc-sum.ra", BINARY, "embedding.weight[V,D] W[D,D] b[D]", treefc_sum_cell, {hidden}},
    {"narylstm/narylstm.ra",
     TERNARY,
     "embedding.weight[V,E] W_i[D,E] W_f[D,E] W_o[D,E] W_u[D,E] b_i[D] b_f[D] b_o[D] b_u[D] "
     "U_i_1[D,D] U_i_2[D,D] U_i_3[D,D] U_o_1[D,D] U_o_2[D,D] U_o_3[D,D] U_u_1[D,D] U_u_2[D,D] U_u_3[D,D] "
     "U_f_11[D,D] U_f_12[D,D] U_f_13[D,D] U_f_21[D,D] U_f_22[D,D] U_f_23[D,D] U_f_31[D,D] U_f_32[D,D] "
     "U_f_33[D,D]",
     ternary_cell,
     {hidden}},
    {"mvrnn/mvrnn.ra",
     BINARY,
     "vector.weight[V,D] matrix.weight[V,D,D] W[D,2D] b[D] W_M[D,2D] label.weight[C,D]",
     mvrnn_cell,
     {mvrnn_label}},
    {"rntn/rntn.ra",
     BINARY,
     "embedding.weight[V,D] V[D,2D,2D] W[D,2D] b[D] label.weight[C,D] label.bias[C]",
     rntn_cell,
     {rntn_label}},
    {"dagrnn/dagrnn.ra", DAG, "U[D,E] W[D,D] b[D] V[C,D] c[C]", dagrnn_cell, {dagrnn_label}},
    {"dagrnn/dagrnn.ra", GRID, "U[D,E] W[D,D] b[D] V[C,D] c[C]", dagrnn_cell, {dagrnn_label}},
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
    {"labelled/matrix.ra", ANY_CHILDREN, LABEL_MATRICES, label_matrix_cell, {logits}},
    {"labelled/matrix.ra", DAG, LABEL_MATRICES, label_matrix_cell, {logits}},
    {"labelled/embedding.ra", ANY_CHILDREN, LABEL_EMBEDDINGS, label_embedding_cell, {logits}},
    {"labelled/embedding.ra", DAG, LABEL_EMBEDDINGS, label_embedding_cell, {logits}},
    {"attention/attention.ra",
     BINARY,
     "embedding.weight[V,E] leaf.W_i[D,E] leaf.W_o[D,E] leaf.W_u[D,E] leaf.b_i[D] leaf.b_o[D] leaf.b_u[D] "
     "node.U_i_left[D,D] node.U_i_right[D,D] node.U_fl_left[D,D] node.U_fl_right[D,D] node.U_fr_left[D,D] "
     "node.U_fr_right[D,D] node.U_o_left[D,D] node.U_o_right[D,D] node.U_u_left[D,D] node.U_u_right[D,D] "
     "node.b_i[D] node.b_fl[D] node.b_fr[D] node.b_o[D] node.b_u[D] attention.W[A,D] attention.b[A] "
     "attention.v[A] output.weight[C,D] output.bias[C]",
     nary_cell,
     {attention_score, attention_summary, attention_logits}},
    {"../tests/models/dgl.ra",
     BINARY,
     "embedding.weight[V,E] cell.W_iou.weight[3D,E] cell.U_iou.weight[3D,2D] cell.b_iou[1,3D] "
     "cell.U_f.weight[2D,2D] cell.U_f.bias[2D] linear.weight[C,D] linear.bias[C]",
     dgl_cell,
     {dgl_logits}},
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
	const int sizes[] = {V, C, R, L, A, w->E, w->D};
	const char *letters = "VCRLAED", *letter;
	int factor = atoi(text);
	text += strspn(text, "0123456789");
	letter = strchr(letters, *text);
	return (factor ? factor : 1) * (letter ? sizes[letter - letters] : 1);
}

/* Over the paths of a DAG, which are beyond number, nothing must grow that no gate keeps small. */
static const double gain_of[] = {
    [SEQUENCE] = 1.5, [BINARY] = 1.5, [TERNARY] = 1.5, [ANY_CHILDREN] = 1.5, [DAG] = 0.5, [GRID] = 0.5};

static int weight_elements(const struct weight *t)
{
	return t->shape[0] * t->shape[1] * t->shape[2];
}

/* As large as keeps what the gates see near 1; `gain` of a matrix. */
static void make_weight(struct weights *w, const char *text, double gain)
{
	struct weight *t = &w->weight[w->n++];
	const char *shape = strchr(text, '['), *size = shape;
	int summed = 1;
	*t = (struct weight){.shape = {1, 1, 1}};
	memcpy(t->name, text, shape - text);
	for (; *size != ']'; size = strpbrk(size + 1, ",]")) {
		summed *= t->rank ? size_of(w, size + 1) : 1;
		t->shape[t->rank++] = size_of(w, size + 1);
	}
	if (shape[1] == 'R')
		summed /= t->shape[1]; /* a label chooses one of the matrices */
	t->at = malloc(weight_elements(t) * sizeof *t->at);
	for (int i = 0; i < weight_elements(t); i++)
		t->at[i] = random_float() * (t->rank > 1 ? gain / sqrt(summed) : 0.5);
}

static void make_weights(struct weights *w, const char *text, double gain, int D, int E)
{
	*w = (struct weights){.D = D, .E = E};
	for (; text; text = strchr(text, ' ')) {
		text += *text == ' ';
		make_weight(w, text, gain);
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
		size_t bytes = weight_elements(t) * sizeof *t->at;
		n += snprintf(header + n, sizeof header - n, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d",
			      i ? "," : "", t->name, t->shape[0]);
		for (int d = 1; d < t->rank; d++)
			n += snprintf(header + n, sizeof header - n, ",%d", t->shape[d]);
		n += snprintf(header + n, sizeof header - n, "],\"data_offsets\":[%zu,%zu]}", begin,
			      begin + bytes);
		begin += bytes;
	}
	header[n++] = '}';
	uint64_t length = n;
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(&length, sizeof length, 1, f) == 1 && fwrite(header, n, 1, f) == 1;
	for (int i = 0; ok && i < w->n; i++)
		ok = fwrite(w->weight[i].at, sizeof(float) * weight_elements(&w->weight[i]), 1, f) == 1;
	return f && fclose(f) == 0 && ok;
}

/* --- structures --- */

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

/* Whether node `of` is a parent of node `node`, which comes after it; both as they were made. */
typedef bool links[MOST_NODES][MOST_NODES];

/* Each node but the first gets a parent, of a tree of fixed arity `each` of them at once. Returns the nodes.
 */
static int make_tree(links link, enum kind kind, int nodes)
{
	int n = 1, each = kind == BINARY ? 2 : kind == TERNARY ? 3 : 1;
	bool taken[MOST_NODES] = {false};
	while (n < nodes && n + each <= MOST_NODES) {
		int of = kind == SEQUENCE ? n - 1 : random_below(n);
		if (each > 1 && taken[of])
			continue;
		taken[of] = true;
		for (int i = 0; i < each; i++)
			link[of][n++] = true;
	}
	return n;
}

/* A tree with edges across it. */
static int make_dag(links link, int nodes)
{
	make_tree(link, ANY_CHILDREN, nodes);
	for (int extra = nodes; extra > 0 && nodes > 1; extra--) {
		int of = random_below(nodes - 1);
		link[of][of + 1 + random_below(nodes - 1 - of)] = true;
	}
	return nodes;
}

/* Edges to the right, down and both, of a grid that has a side of at most eight. */
static int make_grid(links link, int nodes)
{
	int columns = 1 + random_below(8), rows = nodes < columns ? 1 : nodes / columns;
	rows = rows > 8 ? 8 : rows;
	columns = nodes < columns ? nodes : columns;
	for (int i = 0; i < rows * columns; i++) {
		bool right = i % columns < columns - 1, down = i / columns < rows - 1;
		link[i][i + right] |= right;
		link[i][i + down * columns] |= down;
		link[i][i + (right && down) * (columns + 1)] |= right && down;
	}
	return rows * columns;
}

static int make_links(links link, enum kind kind, int nodes)
{
	memset(link, 0, sizeof(links));
	return kind == GRID  ? make_grid(link, nodes)
	       : kind == DAG ? make_dag(link, nodes)
			     : make_tree(link, kind, nodes);
}

static void make_structure(struct structure *s, enum kind kind, int nodes)
{
	static links link;
	int number[MOST_NODES] = {0}, made[MOST_NODES], edges = 0;
	memset(s, 0, sizeof *s);
	s->nodes = make_links(link, kind, nodes);
	shuffle(number, s->nodes);
	for (int i = 0; i < s->nodes; i++)
		made[number[i]] = i;
	s->root = number[0];
	for (int i = 0; i < s->nodes; i++) {
		s->begin[i] = edges;
		for (int k = 0; k < s->nodes; k++)
			if (link[made[i]][k])
				s->children[edges++] = number[k];
	}
	s->begin[s->nodes] = edges;
	for (int i = 0; i < s->nodes; i++)
		s->word[i] = random_below(V);
	for (int i = 0; i < edges; i++)
		s->label[i] = random_below(R);
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
	for (size_t i = 0; i < esp_program_states(r->program); i++) {
		bool matrix = esp_program_state(r->program, i)->rank == 2;
		compare(r, esp_session_state(r->session, i, s, node), i ? t->c[node] : t->h[node],
			r->weights->D * (matrix ? r->weights->D : 1));
	}
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
		const void *data[] = {t->word, t->label};
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
static void test_minibatch(struct run *r, int structures, const char *variant)
{
	r->structures = structures;
	r->structure = malloc(structures * sizeof *r->structure);
	r->worst = 0;
	for (int s = 0; s < structures; s++) {
		make_structure(&r->structure[s], r->example->kind, s ? 1 + random_below(MOST_NODES - 1) : 1);
		evaluate(r->example->f, r->weights, &r->structure[s]);
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
	       structures, variant, r->worst);
	free(r->structure);
}

/* --- the variants --- */

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

static void test_variant(const struct example *e, const struct weights *w, const struct files *f,
			 const esp_program_options *options, const char *variant)
{
	struct run r = {.example = e, .weights = w};
	esp_binding *binding = NULL;
	esp_error *error = NULL;
	bool ok = is(esp_program_create(f->model, f->weights, options, &r.program, &error), error) &&
		  is(esp_binding_create(r.program, f->weights, &binding, &error), error) &&
		  is(esp_session_create(binding, &r.session, &error), error) &&
		  is(esp_forest_create(r.program, &r.forest, &error), error);
	if (tap_ok(ok, "%s: compiled, %s", e->path, variant)) {
		test_minibatch(&r, 1, variant);
		test_minibatch(&r, 3, variant);
		test_minibatch(&r, 10, variant);
	}
	esp_forest_free(r.forest);
	esp_session_free(r.session);
	esp_binding_free(binding);
	esp_program_free(r.program);
}

/* Options of rewriting.  backend: NULL = the usual one. */
static const struct {
	const char *backend, *math, *rules;
} variants[] = {
    {"interpreter", NULL, NULL},
    {"interpreter", "exact", "all"},
    {"interpreter", "fast", "all"},
    {"interpreter", "exact", "none"},
    {"interpreter", NULL, "-tables"},
    {"interpreter", NULL, "-constants"},
    {"interpreter", NULL, "-tables,-geometric"},
    {"interpreter", NULL, "tables,constants"},
    {NULL, NULL, NULL},
    {NULL, "fast", "all"},
};

static void test_variants(const struct example *e, const struct weights *w, const struct files *f)
{
	size_t number = e - examples; /* of each, other variants are in the sample */
	for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
		if (!in_sample(i + number))
			continue;
		const char *backend = variants[i].backend ? variants[i].backend : usual_backend();
		esp_program_options options = {.size = sizeof options,
					       .backend = backend,
					       .math = variants[i].math,
					       .rules = variants[i].rules};
		char variant[80];
		snprintf(variant, sizeof variant, "%s, math %s, rules %s",
			 variants[i].backend ? backend : "compiled",
			 variants[i].math ? variants[i].math : "unsaid",
			 variants[i].rules ? variants[i].rules : "unsaid");
		if (variants[i].backend || need_backend("%s, %s", e->path, variant))
			test_variant(e, w, f, &options, variant);
	}
}

/* The model of a file; where it is to run over DAGs, with that structure. */
static bool read_model(struct files *f, const char *path, bool dag)
{
	static const char tree[] = "structure tree(*)", graph[] = "structure dag(*) ";
	char text[4096], *at;
	FILE *file = fopen(path, "rb");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
	esp_error *error = NULL;
	text[n] = 0;
	if (dag && (at = strstr(text, tree)))
		memcpy(at, graph, sizeof graph - 1);
	return file && fclose(file) == 0 &&
	       is(esp_model_parse(f->context, path, text, n, &f->model, &error), error);
}

static bool open_files(struct files *f, const struct example *e, const char *weights)
{
	const char *source = getenv("srcdir");
	char path[4096];
	esp_context_options options = {.size = sizeof options, .cache = ESP_CACHE_OFF};
	esp_error *error = NULL;
	snprintf(path, sizeof path, "%s/examples/%s", source ? source : ".", e->path);
	return is(esp_context_create(&options, &f->context, &error), error) &&
	       read_model(f, path, e->kind == DAG) &&
	       is(esp_weights_open(f->context, weights, &f->weights, &error), error);
}

static void test_example(const struct example *e, int D, int E)
{
	struct weights w;
	struct files f = {0};
	char path[64];
	snprintf(path, sizeof path, "%s/weights", folder);
	make_weights(&w, e->weights, gain_of[e->kind], D, E);
	if (tap_ok(write_weights(&w, path) && open_files(&f, e, path), "%s: D=%d, E=%d", e->path, D, E))
		test_variants(e, &w, &f);
	esp_weights_free(f.weights);
	esp_model_free(f.model);
	esp_context_free(f.context);
	free_weights(&w);
	unlink(path);
}

/* A weight of three axes makes D times the work of matrices. */
static bool has_tensor(const struct example *e)
{
	return strstr(e->weights, ",D,D]") || strstr(e->weights, ",2D,2D]");
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	random_state = 1;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		test_example(&examples[i], 13, 7);
		if (!SHADOWED)
			test_example(&examples[i], has_tensor(&examples[i]) ? 16 : 32, 40);
	}
	rmdir(folder);
	return tap_done();
}
