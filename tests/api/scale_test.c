/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures as large as memory is: a run holds what the model's states, outputs and inputs are at each node,
 * and a few indices beside them.  10^6 nodes, or as many as ESPALIER_SCALE says. */
#include "tests/api/support.h"

#include <math.h>

/* D: whole vectors of any machine, so that nothing is kept between rows. */
enum { D = 16, V = 100 };

static const struct {
	const char *name, *text;
	bool binary;
	int floats; /* of a node, that a run keeps: states, outputs, sums of the largest level, the row that
		       is read of it */
} models[] = {
    {"child-sum",
     "model sum\nstructure tree(*)\ninput word : token\nparam E[V, D], U[D, D]\nstate h[D]\n"
     "leaf:\n    h = E[word]\ninner:\n    h = tanh(U @ sum(k.h for k in children))\noutput top = h at root\n",
     false, D + D / 4},
    {"slots",
     "model slots\nstructure tree(left, right)\ninput word : token\nparam E[V, D], U[D, D]\nstate h[D]\n"
     "leaf:\n    h = E[word]\ninner:\n    h = tanh(U @ (left.h + right.h))\noutput top = h at root\n",
     true, D + D / 4},
    {"scores",
     "model scores\nstructure tree(*)\ninput word : token\nparam E[V, D]\nstate h[D]\n"
     "leaf:\n    h = E[word]\ninner:\n    h = E[word] + 0.5 * max(k.h for k in children)\noutput score = "
     "sum(h)\n",
     false, D + 2},
};
enum { MODELS = sizeof models / sizeof *models };

/* --- structures, children before parents --- */

struct nodes {
	int32_t n, *begin, *children, *word;
};

static struct nodes nodes_of(int32_t n)
{
	struct nodes s = {n, calloc(n + 1, sizeof(int32_t)), malloc((n + 1) * sizeof(int32_t)),
			  malloc(n * sizeof(int32_t))};
	for (int32_t i = 0; i < n; i++)
		s.word[i] = (i * 2654435761u >> 8) % V;
	return s;
}

static void free_nodes(struct nodes *s)
{
	free(s->begin);
	free(s->children);
	free(s->word);
}

/* The node has its children; those of the next one come after them. */
static void close_node(struct nodes *s, int32_t node, int32_t first, int32_t count)
{
	s->begin[node + 1] = s->begin[node] + count;
	for (int32_t i = 0; i < count; i++)
		s->children[s->begin[node] + i] = first + i;
}

static void make_chain(struct nodes *s, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		close_node(s, i, i - 1, i > 0);
}

static void make_star(struct nodes *s, int32_t n)
{
	for (int32_t i = 0; i < n - 1; i++)
		close_node(s, i, 0, 0);
	close_node(s, n - 1, 0, n - 1);
}

/* Two by two, level after level, of an odd number of nodes. */
static void make_perfect(struct nodes *s, int32_t n)
{
	int32_t leaves = (n + 1) / 2;
	for (int32_t i = 0; i < n; i++)
		close_node(s, i, 2 * (i - leaves), i < leaves ? 0 : 2);
}

/* --- a run of many --- */

static const struct shape {
	const char *name;
	void (*make)(struct nodes *, int32_t n);
	bool binary;
	int structures; /* of which each is larger than the one before */
} shapes[] = {
    {"a chain", make_chain, false, 1},
    {"a star", make_star, false, 1},
    {"a perfect tree", make_perfect, true, 1},
    {"a ragged forest", make_perfect, true, 2000},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static esp_status open_kit(struct kit *k, int m, const char *weights, esp_error **error)
{
	esp_context_options o = {.size = sizeof o, .cache = ESP_CACHE_OFF};
	esp_status s;
	*k = (struct kit){0};
	if ((s = esp_context_create(&o, &k->context, error)) ||
	    (s = esp_model_parse(k->context, models[m].name, models[m].text, strlen(models[m].text),
				 &k->model, error)) ||
	    (s = esp_weights_open(k->context, weights, &k->weights, error)) ||
	    (s = esp_program_create(k->model, k->weights, NULL, &k->program, error)) ||
	    (s = esp_binding_create(k->program, k->weights, &k->binding, error)) ||
	    (s = esp_session_create(k->binding, &k->session, error)) ||
	    (s = esp_forest_create(k->program, &k->forest, error)))
		return s;
	return esp_program_prepare(k->program, error);
}

/* Structure by structure, each made in the memory of the one before. */
static bool fill_forest(struct kit *k, const struct shape *shape, int32_t nodes, size_t *made)
{
	struct nodes all = nodes_of(nodes);
	bool ok = true;
	*made = 0;
	for (int i = 0; ok && i < shape->structures; i++) {
		int32_t n = shape->structures == 1
				? nodes
				: 1 + nodes / shape->structures * i / shape->structures * 2;
		shape->make(&all, n);
		const void *data[] = {all.word};
		esp_structure structure = {sizeof structure, n, all.begin, all.children, n - 1, data};
		ok = esp_forest_add(k->forest, &structure, NULL) == ESP_OK;
		*made += n;
	}
	free_nodes(&all);
	return ok;
}

/* Of a node: what the model keeps; its word, number, order, batch, place and links, and what is counted of its batch; in
 * the forest a word and links, which many structures let grow by doubling.  Besides, each buffer may begin and end within
 * huge pages. */
static double most_bytes(int m, const struct shape *shape, size_t nodes)
{
	enum { BUFFERS = 4, HUGE_PAGE = 2 << 20 };
	int kept = models[m].floats + 1 + 7 + 3 * (shape->structures > 1 ? 2 : 1);
	return kept * sizeof(float) + (double)BUFFERS * HUGE_PAGE / nodes;
}

static void test_run(int m, const struct shape *shape, int32_t nodes, const char *weights)
{
	struct kit k;
	size_t before, peak, made = 0;
	esp_error *error = NULL;
	bool ok = open_kit(&k, m, weights, &error) == ESP_OK;
	before = esp_context_memory(k.context, NULL);
	ok = ok && fill_forest(&k, shape, nodes, &made) &&
	     esp_session_run(k.session, k.forest, &error) == ESP_OK;
	if (error)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	esp_context_memory(k.context, &peak);
	const float *root = ok ? esp_session_root(k.session, 0, 0) : NULL;
	double bytes = (peak - before) / (double)made, most = most_bytes(m, shape, made);
	tap_ok(root && isfinite(*root) && bytes <= most,
	       "%s, %s of %zu nodes: %.1f bytes a node at the most, %.1f allowed", models[m].name,
	       shape->name, made, bytes, most);
	free_kit(&k);
}

int main(void)
{
	const char *asked = getenv("ESPALIER_SCALE");
	int32_t nodes = asked && atol(asked) > 0 ? atol(asked) : 1000000;
	static float E[V * D], U[D * D];
	for (int i = 0; i < V * D; i++)
		E[i] = i % 13 * 0.1f - 0.6f;
	for (int i = 0; i < D * D; i++)
		U[i] = i % 7 * 0.1f - 0.3f;
	const struct tensor tensors[] = {{"E", V, D, E}, {"U", D, D, U}};
	if (!make_folder())
		return 1;
	for (int m = 0; m < MODELS; m++) {
		const char *weights =
		    write_weights("w.safetensors", tensors, strstr(models[m].text, "U[") ? 2 : 1);
		for (int i = 0; i < SHAPES; i++)
			if (shapes[i].binary || !models[m].binary)
				test_run(m, &shapes[i], nodes | 1, weights);
	}
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
