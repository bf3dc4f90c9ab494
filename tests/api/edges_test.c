/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What edges carry: in arrays and behind pointers, in the caller's order, and what is wrong with it. */
#include "tests/api/support.h"

/* h of a node counts, over its edges, the weight of the label, x and what the child has: all small integers. */
static const char text[] = "model labelled\n"
			   "structure dag(*)\n"
			   "input word : token\n"
			   "edge rel : token\n"
			   "edge x[F]\n"
			   "param E[V, D]\n"
			   "param L[R, D]\n"
			   "param W[D, F]\n"
			   "state h[D]\n"
			   "node:\n"
			   "    h = E[word] + sum(L[k.rel] * k.h + W @ k.x for k in children)\n"
			   "output out = h at every node\n";

static const struct tensor weights[] = {
    {"E", 2, 2, (const float[]){1, 2, 3, 4}},
    {"L", 3, 2, (const float[]){1, 1, 2, 3, 5, 7}},
    {"W", 2, 1, (const float[]){1, 10}},
};

/* Node 2 is the child of 3 and, twice, of 0, by other labels each time; ids are in no order. */
static const int32_t begin[] = {0, 3, 4, 4, 6}, children[] = {2, 1, 2, 2, 2, 1}, words[] = {0, 1, 0, 1};
static const int32_t labels[] = {0, 1, 2, 2, 1, 0};
static const float vectors[] = {1, 2, 3, 4, 5, 6};
/* 2: (1, 2).  1: (3, 4) + (5, 14) + (4, 40).  3: (3, 4) + (2, 6) + (5, 50) + (12, 58) + (6, 60).  0: (1, 2) + (1, 2) +
 * (1, 10) + (24, 174) + (2, 20) + (5, 14) + (3, 30). */
static const float expected[4][2] = {{37, 252}, {12, 58}, {1, 2}, {28, 178}};

static esp_structure structure_of(const void *const *data, int32_t root)
{
	return (esp_structure){sizeof(esp_structure), 4, begin, children, root, data};
}

static bool open_kit(struct kit *k, const esp_context_options *memory)
{
	esp_error *error = NULL;
	const char *path = write_weights("labels.safetensors", weights, 3);
	memset(k, 0, sizeof *k);
	bool ok = !esp_context_create(memory, &k->context, &error) &&
		  !esp_model_parse(k->context, "labelled.ra", text, strlen(text), &k->model, &error) &&
		  !esp_weights_open(k->context, path, &k->weights, &error) &&
		  !esp_program_create(k->model, k->weights, &interpreted, &k->program, &error) &&
		  !esp_binding_create(k->program, k->weights, &k->binding, &error) &&
		  !esp_forest_create(k->program, &k->forest, &error) &&
		  !esp_session_create(k->binding, &k->session, &error);
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

static bool gives(const struct kit *k, size_t structure, const size_t *node_of)
{
	bool right = true;
	for (size_t n = 0; n < 4; n++) {
		const float *row = esp_session_output(k->session, 0, structure, node_of ? node_of[n] : n);
		right &= row && memcmp(row, expected[n], sizeof expected[n]) == 0;
	}
	return right;
}

static void check_program(const struct kit *k)
{
	const esp_input *rel = esp_program_input(k->program, 1), *x = esp_program_input(k->program, 2);
	tap_ok(!esp_program_input(k->program, 0)->on_edges && rel->on_edges && rel->is_token && rel->limit == 3 &&
		   x->on_edges && !x->is_token && x->elements == 1,
	       "inputs say whether edges carry them");
}

static void check_arrays(struct kit *k)
{
	/* Entries before child_begin[0] belong to nobody. */
	static const int32_t shifted[] = {1, 4, 5, 5, 7}, list[] = {-9, 2, 1, 2, 2, 2, 1},
			     far[] = {-9, 0, 1, 2, 2, 1, 0};
	static const float wide[] = {-9, 1, 2, 3, 4, 5, 6};
	const void *data[] = {words, labels, vectors}, *more[] = {words, far, wide};
	esp_structure s = structure_of(data, 0), t = structure_of(more, 3);
	t.child_begin = shifted;
	t.children = list;
	esp_forest_clear(k->forest);
	tap_ok(!esp_forest_add(k->forest, &s, NULL) && !esp_forest_add(k->forest, &t, NULL) &&
		   !esp_session_run(k->session, k->forest, NULL),
	       "structures with data on their edges run");
	tap_ok(gives(k, 0, NULL), "a label belongs to the edge, not to the child");
	tap_ok(gives(k, 1, NULL), "row e belongs to children[e], wherever child_begin begins");
	const int32_t none[] = {0, 0};
	const void *bare[] = {words, NULL, NULL};
	esp_structure leaf = {sizeof leaf, 1, none, NULL, 0, bare};
	tap_ok(!esp_forest_add(k->forest, &leaf, NULL) && !esp_session_run(k->session, k->forest, NULL) &&
		   gives(k, 1, NULL),
	       "without edges there is nothing to carry");
}

/* What a run refuses goes with all that its nodes and edges carry; the others give what they gave. */
static void check_removal(struct kit *k)
{
	static const int32_t high[] = {0, 1, 2, 3, 1, 0};
	const void *data[] = {words, labels, vectors}, *wrong[] = {words, high, vectors};
	esp_structure good = structure_of(data, 0), bad = structure_of(wrong, 0);
	for (size_t at = 0; at < 3; at++) {
		esp_error *error = NULL;
		bool added = true;
		esp_forest_clear(k->forest);
		for (size_t i = 0; i < 3; i++)
			added &= !esp_forest_add(k->forest, i == at ? &bad : &good, NULL);
		bool named = added && esp_session_run(k->session, k->forest, &error) == ESP_ERROR_INPUT &&
			     esp_error_get(error, 0)->structure == (int64_t)at;
		esp_error_free(error);
		esp_forest_remove(k->forest, at);
		esp_forest_remove(k->forest, 2);
		tap_ok(named && esp_forest_structures(k->forest) == 2 &&
			   !esp_session_run(k->session, k->forest, NULL) && gives(k, 0, NULL) && gives(k, 1, NULL),
		       "structure %zu, which is refused, is left out", at);
	}
}

/* --- refusals --- */

static void refuse(struct kit *k, const void *const *data, const char *id, const char *message)
{
	esp_structure s = structure_of(data, 0);
	esp_error *error;
	esp_forest_clear(k->forest);
	bool added = !esp_forest_add(k->forest, &s, &error);
	bool refused = added && esp_session_run(k->session, k->forest, &error) == ESP_ERROR_INPUT;
	bool said = refused && strstr(esp_error_get(error, 0)->message, message);
	tap_ok(said && esp_error_get(error, 0)->structure == 0, "it is said of '%s'", message);
	tap_ok(refused && error_is(error, id), "%s", id);
}

static void check_refusals(struct kit *k)
{
	static const int32_t high[] = {0, 1, 2, 3, 1, 0}, absent[] = {0, 1, -1, 2, 1, 0}, low[] = {0, -7, 1, 2, 1, 0};
	const void *a[] = {words, high, vectors}, *b[] = {words, absent, vectors}, *c[] = {words, low, vectors};
	refuse(k, a, "token-out-of-range", "'rel' of edge 0 of node 1 of input 0 is 3, but the model has rows 0 .. 2");
	refuse(k, b, "missing-data", "edge 2 of node 0 of input 0 carries no 'rel'");
	refuse(k, c, "token-out-of-range", "'rel' of edge 1 of node 0 of input 0 is -7");
	const void *none[] = {words, labels, NULL};
	esp_structure s = structure_of(none, 0);
	esp_error *error;
	esp_forest_clear(k->forest);
	tap_ok(esp_forest_add(k->forest, &s, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "an array for the edges must be there when there are edges");
	static const int32_t falls[] = {0, 3, 2, 4, 6}, negative[] = {-4, 0, 0, 0, 2};
	const void *data[] = {words, labels, vectors};
	s = structure_of(data, 0);
	s.child_begin = falls;
	tap_ok(esp_forest_add(k->forest, &s, &error) == ESP_ERROR_INPUT && error_is(error, "bad-child-begin"),
	       "edges are counted after child_begin was checked");
	s.child_begin = negative;
	tap_ok(esp_forest_add(k->forest, &s, &error) == ESP_ERROR_INPUT && error_is(error, "bad-child-begin") &&
		   esp_forest_structures(k->forest) == 0,
	       "nothing is read before the arrays");
}

/* --- linked nodes --- */

struct node {
	int id;
	size_t number;
};

static struct node nodes[4] = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
static bool hide; /* a vector */

static size_t count_children(void *user, const void *node)
{
	int id = ((const struct node *)node)->id;
	(void)user;
	return (size_t)(begin[id + 1] - begin[id]);
}

static int edge_of(const void *node, size_t slot)
{
	return begin[((const struct node *)node)->id] + (int)slot;
}

static const void *child_of(void *user, const void *node, size_t slot)
{
	(void)user;
	return &nodes[children[edge_of(node, slot)]];
}

static int32_t word_of(void *user, const void *node, size_t input)
{
	(void)user, (void)input;
	return words[((const struct node *)node)->id];
}

static void note_number(void *user, const void *node, size_t number)
{
	(void)user;
	nodes[((const struct node *)node)->id].number = number;
}

static int32_t label_of(void *user, const void *node, size_t slot, size_t input)
{
	(void)user;
	return input == 1 ? labels[edge_of(node, slot)] : -5;
}

static const float *vector_of(void *user, const void *node, size_t slot, size_t input)
{
	(void)user;
	return input == 2 && !(hide && slot == 1) ? &vectors[edge_of(node, slot)] : NULL;
}

static void check_linked(struct kit *k)
{
	esp_walk w = {.size = sizeof w,
		      .children = count_children,
		      .child = child_of,
		      .token = word_of,
		      .number = note_number,
		      .edge_token = label_of,
		      .edge_vector = vector_of};
	/* both roots, so that all nodes are reached */
	size_t number[4];
	bool right = true;
	esp_forest_clear(k->forest);
	for (int root = 0; root < 4; root += 3) {
		right &= !esp_forest_add_linked(k->forest, &nodes[root], &w, NULL);
		number[root] = nodes[root].number;
	}
	right &= !esp_session_run(k->session, k->forest, NULL);
	for (size_t root = 0; right && root < 4; root += 3)
		right = memcmp(esp_session_output(k->session, 0, root / 3, number[root]), expected[root],
			       sizeof expected[0]) == 0;
	tap_ok(right, "linked nodes say what the edge in a slot carries");
	esp_error *error;
	hide = true;
	tap_ok(esp_forest_add_linked(k->forest, &nodes[0], &w, &error) == ESP_ERROR_INPUT &&
		   strstr(esp_error_text(error), "edge 1 of node") && error_is(error, "missing-data") &&
		   esp_forest_structures(k->forest) == 2,
	       "an edge without its vector is named");
	hide = false;
	w.edge_vector = NULL;
	tap_ok(esp_forest_add_linked(k->forest, &nodes[0], &w, &error) == ESP_ERROR_ARGUMENT &&
		   strstr(esp_error_text(error), "walk->edge_vector") && error_is(error, "bad-argument"),
	       "a callback that is needed must be there");
	esp_walk old = w;
	old.size = offsetof(esp_walk, edge_token);
	tap_ok(esp_forest_add_linked(k->forest, &nodes[0], &old, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "a caller that knows of no edges is told that they are wanted");
}

static void check_memory(void)
{
	struct account a = {.left = -1};
	struct kit k;
	esp_context_options options = {.size = sizeof options, .resize = account_resize, .user = &a};
	const void *data[] = {words, labels, vectors};
	esp_structure s = structure_of(data, 0);
	long n = 0;
	bool right = open_kit(&k, &options);
	for (esp_status status = ESP_ERROR_MEMORY; status && n < 100; n++) {
		a.left = n;
		status = esp_forest_add(k.forest, &s, NULL);
		right &= (status == ESP_OK || status == ESP_ERROR_MEMORY) &&
			 esp_forest_structures(k.forest) == (status == ESP_OK);
	}
	a.left = -1;
	tap_ok(right && n > 3 && !esp_session_run(k.session, k.forest, NULL) && gives(&k, 0, NULL),
	       "memory running out at any of %ld requests changes nothing", n - 1);
	free_kit(&k);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "all is given back");
}

int main(void)
{
	struct kit k;
	make_folder();
	if (!tap_ok(open_kit(&k, NULL), "a model with data on edges compiles"))
		return 1;
	check_program(&k);
	check_arrays(&k);
	check_removal(&k);
	check_refusals(&k);
	check_linked(&k);
	free_kit(&k);
	check_memory();
	remove_folder((const char *const[]){"labels.safetensors"}, 1);
	return tap_done();
}
