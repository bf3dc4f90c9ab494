/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The examples that go over their structures more than once, against their equations in double precision: layers of
 * torch.nn.LSTM and torch.nn.GRU in one direction or both, a tree from its leaves to its root and back.  Minibatches of
 * ragged structures in any numbering, both back ends. */
#include "api/espalier.h"
#include "tests/backends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { V = 30, C = 3, D = 11, E = 7, MOST_NODES = 40, MOST_STATES = 8, WIDE = 4 * D };

typedef double rows[MOST_NODES][2 * D];

/* --- numbers, weights, structures --- */

static uint64_t random_state = 3;

static int random_below(int n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (int)((random_state >> 33) % (unsigned)n);
}

static float random_float(void)
{
	return (float)random_below(1 << 24) / (1 << 23) - 1;
}

static struct weight {
	char name[40];
	int rank, shape[2];
	float at[WIDE * 2 * D];
} weight[64];
static int weights;

static const float *weight_of(const char *prefix, const char *name, const char *suffix)
{
	char whole[80];
	snprintf(whole, sizeof whole, "%s%s%s", prefix, name, suffix);
	for (int i = 0; i < weights; i++)
		if (strcmp(weight[i].name, whole) == 0)
			return weight[i].at;
	printf("# there is no weight %s\n", whole);
	exit(1);
}

struct structure {
	int nodes, root;
	int32_t begin[MOST_NODES + 1], children[MOST_NODES], word[MOST_NODES];
	int order[MOST_NODES], parent[MOST_NODES]; /* parents first; -1 = none */
	float x[MOST_NODES][E];
	rows state[MOST_STATES]; /* what the equations give */
};

static void make_structure(struct structure *s, bool sequence, int nodes)
{
	int edges = 0;
	*s = (struct structure){.nodes = nodes};
	for (int i = 0; i < nodes; i++)
		s->order[i] = i;
	for (int i = nodes - 1; i > 0; i--) {
		int j = random_below(i + 1), other = s->order[j];
		s->order[j] = s->order[i];
		s->order[i] = other;
	}
	for (int i = 0; i < nodes; i++)
		s->parent[s->order[i]] = i ? s->order[sequence ? i - 1 : random_below(i)] : -1;
	for (int i = 0; i < nodes; i++) {
		s->begin[i] = edges;
		for (int k = 0; k < nodes; k++)
			if (s->parent[k] == i)
				s->children[edges++] = k;
		s->word[i] = random_below(V);
		for (int k = 0; k < E; k++)
			s->x[i][k] = random_float();
	}
	s->begin[nodes] = edges;
	s->root = s->order[0];
}

/* --- vectors --- */

static double logistic(double x)
{
	return 1 / (1 + exp(-x));
}

static void add_product(double *to, const float *w, int n, int k, const double *x)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < k; j++)
			to[i] += (double)w[i * k + j] * x[j];
}

static void add(double *to, const float *w, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += w[i];
}

static void embed(const struct structure *s, rows x)
{
	for (int n = 0; n < s->nodes; n++)
		for (int k = 0; k < E; k++)
			x[n][k] = weight_of("", "embedding.weight", "")[s->word[n] * E + k];
}

static void carry(const struct structure *s, rows x)
{
	for (int n = 0; n < s->nodes; n++)
		for (int k = 0; k < E; k++)
			x[n][k] = s->x[n][k];
}

static void join(const struct structure *s, rows a, rows b, rows both)
{
	for (int n = 0; n < s->nodes; n++)
		for (int k = 0; k < D; k++) {
			both[n][k] = a[n][k];
			both[n][D + k] = b[n][k];
		}
}

static void read_out(const double *x, int n, double *y)
{
	memset(y, 0, C * sizeof *y);
	add(y, weight_of("", "output.bias", ""), C);
	add_product(y, weight_of("", "output.weight", ""), C, n, x);
}

/* --- layers over sequences, of which the last node is the root: the documentation of torch.nn.LSTM and
 * torch.nn.GRU --- */

/* The node that comes before in a direction; -1 = none. */
static int before(const struct structure *s, bool back, int node)
{
	return back ? s->parent[node] : s->begin[node] < s->begin[node + 1] ? s->children[s->begin[node]] : -1;
}

static int node_at(const struct structure *s, bool back, int step)
{
	return s->order[back ? step : s->nodes - 1 - step];
}

static void lstm(struct structure *s, const char *prefix, const char *layer, bool back, rows x, int width,
		 rows h, rows c)
{
	for (int step = 0; step < s->nodes; step++) {
		int n = node_at(s, back, step), m = before(s, back, n);
		double a[WIDE] = {0};
		add(a, weight_of(prefix, "bias_ih", layer), 4 * D);
		add(a, weight_of(prefix, "bias_hh", layer), 4 * D);
		add_product(a, weight_of(prefix, "weight_ih", layer), 4 * D, width, x[n]);
		if (m >= 0)
			add_product(a, weight_of(prefix, "weight_hh", layer), 4 * D, D, h[m]);
		for (int i = 0; i < D; i++) {
			double kept = m < 0 ? 0 : logistic(a[D + i]) * c[m][i];
			c[n][i] = kept + logistic(a[i]) * tanh(a[2 * D + i]);
			h[n][i] = logistic(a[3 * D + i]) * tanh(c[n][i]);
		}
	}
}

static void gru(struct structure *s, const char *layer, rows x, int width, rows h)
{
	for (int step = 0; step < s->nodes; step++) {
		int n = node_at(s, false, step), m = before(s, false, n);
		double a[3 * D] = {0}, p[3 * D] = {0};
		add(a, weight_of("", "bias_ih", layer), 3 * D);
		add(p, weight_of("", "bias_hh", layer), 3 * D);
		add_product(a, weight_of("", "weight_ih", layer), 3 * D, width, x[n]);
		if (m >= 0)
			add_product(p, weight_of("", "weight_hh", layer), 3 * D, D, h[m]);
		for (int i = 0; i < D; i++) {
			double r = logistic(a[i] + p[i]), z = logistic(a[D + i] + p[D + i]);
			h[n][i] = (1 - z) * tanh(a[2 * D + i] + r * p[2 * D + i]) + z * (m < 0 ? 0 : h[m][i]);
		}
	}
}

static void bilstm(struct structure *s)
{
	static rows x;
	embed(s, x);
	lstm(s, "lstm.", "_l0", false, x, E, s->state[0], s->state[1]);
	lstm(s, "lstm.", "_l0_reverse", true, x, E, s->state[2], s->state[3]);
}

static void bilstm2(struct structure *s)
{
	static rows x;
	carry(s, x);
	lstm(s, "", "_l0", false, x, E, s->state[0], s->state[1]);
	lstm(s, "", "_l0_reverse", true, x, E, s->state[2], s->state[3]);
	join(s, s->state[0], s->state[2], x);
	lstm(s, "", "_l1", false, x, 2 * D, s->state[4], s->state[5]);
	lstm(s, "", "_l1_reverse", true, x, 2 * D, s->state[6], s->state[7]);
}

static void stacked_lstm(struct structure *s)
{
	static rows x;
	embed(s, x);
	lstm(s, "lstm.", "_l0", false, x, E, s->state[0], s->state[1]);
	lstm(s, "lstm.", "_l1", false, s->state[0], D, s->state[2], s->state[3]);
}

static void stacked_gru(struct structure *s)
{
	static rows x;
	carry(s, x);
	gru(s, "_l0", x, E, s->state[0]);
	gru(s, "_l1", s->state[0], D, s->state[1]);
}

/* --- up and down a tree: equations 2 to 8 of Tai, Socher, Manning 2015; then an LSTM from the root --- */

/* W @ x + U @ h + b of a gate. */
static void gate(double *a, const char *prefix, const char *name, const double *x, const double *h)
{
	memset(a, 0, D * sizeof *a);
	add(a, weight_of(prefix, "b_", name), D);
	add_product(a, weight_of(prefix, "W_", name), D, E, x);
	if (h)
		add_product(a, weight_of(prefix, "U_", name), D, D, h);
}

static void go_up(struct structure *s, rows x, int n)
{
	double *h = s->state[0][n], *c = s->state[1][n], sum[D] = {0}, i[D], o[D], u[D], f[D];
	for (int e = s->begin[n]; e < s->begin[n + 1]; e++)
		for (int k = 0; k < D; k++)
			sum[k] += s->state[0][s->children[e]][k];
	gate(i, "up.", "i", x[n], sum);
	gate(o, "up.", "o", x[n], sum);
	gate(u, "up.", "u", x[n], sum);
	for (int k = 0; k < D; k++)
		c[k] = logistic(i[k]) * tanh(u[k]);
	for (int e = s->begin[n]; e < s->begin[n + 1]; e++) {
		gate(f, "up.", "f", x[n], s->state[0][s->children[e]]);
		for (int k = 0; k < D; k++)
			c[k] += logistic(f[k]) * s->state[1][s->children[e]][k];
	}
	for (int k = 0; k < D; k++)
		h[k] = logistic(o[k]) * tanh(c[k]);
}

static void go_down(struct structure *s, rows x, int n)
{
	static const char *const names[] = {"i", "f", "o", "u"};
	int parent = s->parent[n];
	double a[4][D];
	for (int q = 0; q < 4; q++) {
		gate(a[q], "down.", names[q], x[n], parent < 0 ? NULL : s->state[2][parent]);
		add_product(a[q], weight_of("down.", "V_", names[q]), D, D, s->state[0][n]);
	}
	for (int k = 0; k < D; k++) {
		double kept = parent < 0 ? 0 : logistic(a[1][k]) * s->state[3][parent][k];
		s->state[3][n][k] = logistic(a[0][k]) * tanh(a[3][k]) + kept;
		s->state[2][n][k] = logistic(a[2][k]) * tanh(s->state[3][n][k]);
	}
}

static void updown(struct structure *s)
{
	static rows x;
	embed(s, x);
	for (int i = s->nodes - 1; i >= 0; i--)
		go_up(s, x, s->order[i]);
	for (int i = 0; i < s->nodes; i++)
		go_down(s, x, s->order[i]);
}

/* --- the examples --- */

#define LAYER(size, n, width)                                                                                \
	"weight_ih" n "[" size "," width "] weight_hh" n "[" size ",D] "                                     \
	"bias_ih" n "[" size "] bias_hh" n "[" size "]"
#define LSTM_LAYER(n, width)                                                                                 \
	"lstm.weight_ih" n "[4D," width "] lstm.weight_hh" n "[4D,D] "                                       \
	"lstm.bias_ih" n "[4D] lstm.bias_hh" n "[4D]"
#define GATE(n)                                                                                              \
	"up.W_" n "[D,E] up.U_" n "[D,D] up.b_" n "[D] "                                                     \
	"down.W_" n "[D,E] down.V_" n "[D,D] down.U_" n "[D,D] down.b_" n "[D]"

/* The output is of states `first` and, if there are `outputs` of them, `second`; through a linear layer, when
 * it has one. */
static const struct example {
	const char *path, *weights;
	bool sequence, reads_out;
	int outputs, first, second;
	void (*evaluate)(struct structure *);
} examples[] = {
    {"bilstm/bilstm.ra",
     "embedding.weight[V,E] " LSTM_LAYER("_l0", "E") " "
     LSTM_LAYER("_l0_reverse", "E") " output.weight[C,2D] output.bias[C]",
     true, true, 2, 0, 2, bilstm},
    {"bilstm/bilstm2.ra",
     LAYER("4D", "_l0", "E") " " LAYER("4D", "_l0_reverse", "E") " "
     LAYER("4D", "_l1", "2D") " " LAYER("4D", "_l1_reverse", "2D"),
     true, false, 2, 4, 6, bilstm2},
    {"stacked/stacked-lstm.ra",
     "embedding.weight[V,E] " LSTM_LAYER("_l0", "E") " " LSTM_LAYER("_l1", "D") " output.weight[C,D] output.bias[C]",
     true, true, 1, 2, 2, stacked_lstm},
    {"stacked/stacked-gru.ra", LAYER("3D", "_l0", "E") " " LAYER("3D", "_l1", "D"), true, false, 1, 1, 1, stacked_gru},
    {"updown/updown.ra",
     "embedding.weight[V,E] " GATE("i") " " GATE("f") " " GATE("o") " " GATE("u") " output.weight[C,2D] output.bias[C]",
     false, true, 2, 0, 2, updown},
};

static int expected_output(const struct example *e, struct structure *s, int n, double *y)
{
	double x[2 * D];
	memcpy(x, s->state[e->first][n], D * sizeof *x);
	memcpy(x + D, s->state[e->second][n], D * sizeof *x);
	if (e->reads_out)
		read_out(x, e->outputs * D, y);
	else
		memcpy(y, x, e->outputs * D * sizeof *y);
	return e->reads_out ? C : e->outputs * D;
}

/* --- weights in a file --- */

static int size_of(const char *text)
{
	int factor = atoi(text);
	text += strspn(text, "0123456789");
	return (factor ? factor : 1) * (*text == 'V' ? V : *text == 'C' ? C : *text == 'E' ? E : D);
}

static void make_weights(const char *text)
{
	for (weights = 0; text; text = strchr(text, ' ')) {
		struct weight *w = &weight[weights++];
		const char *shape = strchr(text += *text == ' ', '['), *second = strpbrk(shape, ",]");
		*w = (struct weight){.rank = *second == ',' ? 2 : 1, .shape = {size_of(shape + 1), 1}};
		memcpy(w->name, text, (size_t)(shape - text));
		if (w->rank == 2)
			w->shape[1] = size_of(second + 1);
		for (int i = 0; i < w->shape[0] * w->shape[1]; i++)
			w->at[i] = random_float() * (float)(w->rank == 2 ? 1.5 / sqrt(w->shape[1]) : 0.5);
	}
}

/* A safetensors file: the length of the header, the header, the values. */
static bool write_weights(const char *path)
{
	char header[8192] = "{";
	size_t n = 1, begin = 0;
	for (int i = 0; i < weights; i++) {
		const struct weight *w = &weight[i];
		size_t bytes = (size_t)w->shape[0] * w->shape[1] * sizeof *w->at;
		char columns[16] = "";
		if (w->rank == 2)
			snprintf(columns, sizeof columns, ",%d", w->shape[1]);
		n += snprintf(header + n, sizeof header - n,
			      "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d%s],\"data_offsets\":[%zu,%zu]}", i ? "," : "",
			      w->name, w->shape[0], columns, begin, begin + bytes);
		begin += bytes;
	}
	header[n++] = '}';
	uint64_t length = n;
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(&length, sizeof length, 1, f) == 1 && fwrite(header, n, 1, f) == 1;
	for (int i = 0; ok && i < weights; i++)
		ok = fwrite(weight[i].at, sizeof(float) * weight[i].shape[0] * weight[i].shape[1], 1, f) == 1;
	return f && fclose(f) == 0 && ok;
}

/* --- runs --- */

static bool is(esp_status status, esp_error *error)
{
	if (status)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return status == ESP_OK;
}

static double distance(const float *row, const double *expected, int n)
{
	double worst = row ? 0 : INFINITY;
	for (int i = 0; row && i < n; i++) {
		double error = fabs(row[i] - expected[i]) / (1 + fabs(expected[i]));
		worst = error > worst || isnan(error) ? error : worst;
	}
	return worst;
}

static double compare(const struct example *e, const esp_program *p, const esp_session *session, struct structure *s,
		      int which)
{
	double worst = 0, y[2 * D];
	bool at_root = esp_program_output(p, 0)->at_root;
	for (int n = 0; n < s->nodes; n++) {
		for (size_t i = 0; i < esp_program_states(p); i++)
			worst = fmax(worst, distance(esp_session_state(session, i, which, n), s->state[i][n], D));
		int outputs = expected_output(e, s, n, y);
		if (!at_root || n == s->root)
			worst = fmax(worst, distance(esp_session_output(session, 0, which, n), y, outputs));
	}
	return worst;
}

/* The first structure is a single node. */
static void test_minibatch(const struct example *e, esp_program *p, esp_forest *f, esp_session *session,
			   int structures, const char *variant)
{
	static struct structure s[10];
	esp_error *error = NULL;
	double worst = 0;
	bool ok = true;
	esp_forest_clear(f);
	for (int i = 0; ok && i < structures; i++) {
		make_structure(&s[i], e->sequence, i ? 1 + random_below(MOST_NODES) : 1);
		e->evaluate(&s[i]);
		const void *data[] = {esp_program_input(p, 0)->is_token ? (const void *)s[i].word : s[i].x};
		esp_structure added = {sizeof added, s[i].nodes, s[i].begin, s[i].children, s[i].root, data};
		ok = is(esp_forest_add(f, &added, &error), error);
	}
	ok = ok && is(esp_session_run(session, f, &error), error);
	for (int i = 0; ok && i < structures; i++)
		worst = fmax(worst, compare(e, p, session, &s[i], i));
	tap_ok(ok && worst < 1e-5, "%s, %d structures, %s: as the equations, to %.1e", e->path, structures,
	       variant, worst);
}

static void test_variant(const struct example *e, esp_model *m, esp_weights *w, const char *backend,
			 const char *math)
{
	esp_program_options options = {.size = sizeof options, .backend = backend, .math = math};
	esp_program *p = NULL;
	esp_binding *b = NULL;
	esp_session *s = NULL;
	esp_forest *f = NULL;
	esp_error *error = NULL;
	char variant[60];
	snprintf(variant, sizeof variant, "%s, math %s", backend, math);
	bool ok = is(esp_program_create(m, w, &options, &p, &error), error) &&
		  is(esp_binding_create(p, w, &b, &error), error) && is(esp_session_create(b, &s, &error), error) &&
		  is(esp_forest_create(p, &f, &error), error);
	if (tap_ok(ok, "%s: compiled, %s", e->path, variant)) {
		test_minibatch(e, p, f, s, 1, variant);
		test_minibatch(e, p, f, s, 3, variant);
		test_minibatch(e, p, f, s, 10, variant);
	}
	esp_forest_free(f);
	esp_session_free(s);
	esp_binding_free(b);
	esp_program_free(p);
}

static void test_example(const struct example *e, const char *weights_path)
{
	const char *source = getenv("srcdir");
	char path[4096];
	esp_context_options options = {.size = sizeof options, .cache = ESP_CACHE_OFF};
	esp_context *c = NULL;
	esp_model *m = NULL;
	esp_weights *w = NULL;
	esp_error *error = NULL;
	snprintf(path, sizeof path, "%s/examples/%s", source ? source : ".", e->path);
	make_weights(e->weights);
	bool ok = write_weights(weights_path) && is(esp_context_create(&options, &c, &error), error) &&
		  is(esp_model_read(c, path, &m, &error), error) &&
		  is(esp_weights_open(c, weights_path, &w, &error), error);
	if (tap_ok(ok, "%s: read", e->path)) {
		test_variant(e, m, w, "interpreter", "reassociate");
		test_variant(e, m, w, "interpreter", "exact");
		if (need_backend("%s", e->path))
			test_variant(e, m, w, usual_backend(), "reassociate");
	}
	esp_weights_free(w);
	esp_model_free(m);
	esp_context_free(c);
}

int main(void)
{
	char path[] = "/tmp/espalier-test-XXXXXX";
	int file = mkstemp(path);
	if (file < 0)
		return 1;
	close(file);
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
		test_example(&examples[i], path);
	unlink(path);
	return tap_done();
}
