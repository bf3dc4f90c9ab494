/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures linked by pointers: what an array of the same nodes would give, and what cannot be walked. */
#include "tests/api/support.h"

#include <limits.h>

/* A node of the caller's own. */
struct node {
	struct node *child[3];
	size_t children, number;
	int32_t word;
	const float *vector;
	int asked, walked;
};

/* What the callbacks are told to get wrong. */
static size_t lie; /* the number of children of every node; 0 = the truth */

static size_t children_of(void *user, const void *node)
{
	(void)user;
	((struct node *)node)->asked++;
	return lie ? lie : ((const struct node *)node)->children;
}

static const void *child_of(void *user, const void *node, size_t slot)
{
	(void)user;
	((struct node *)node)->walked++;
	return ((const struct node *)node)->child[slot < 3 ? slot : 2];
}

static int32_t word_of(void *user, const void *node, size_t input)
{
	*(size_t *)user |= input;
	return ((const struct node *)node)->word;
}

static const float *vector_of(void *user, const void *node, size_t input)
{
	(void)user, (void)input;
	return ((const struct node *)node)->vector;
}

static void note_number(void *user, const void *node, size_t number)
{
	(void)user;
	((struct node *)node)->number = number;
}

static size_t inputs_seen;
static const esp_walk words = {.size = sizeof words,
			       .user = &inputs_seen,
			       .children = children_of,
			       .child = child_of,
			       .token = word_of,
			       .number = note_number};

static struct node leaf(int32_t word)
{
	return (struct node){.word = word};
}

static struct node pair_of(struct node *a, struct node *b)
{
	return (struct node){.child = {a, b}, .children = 2, .word = -1};
}

/* --- trees --- */

static void check_tree(struct kit *k)
{
	struct node a = leaf(0), b = leaf(1), c = leaf(2), ab = pair_of(&a, &b), top = pair_of(&ab, &c);
	esp_error *error;
	esp_forest_clear(k->forest);
	tap_ok(esp_forest_add(k->forest, &pair, NULL) == ESP_OK &&
		   esp_forest_add_linked(k->forest, &top, &words, &error) == ESP_OK && !error,
	       "a tree of linked nodes is added to one of arrays");
	tap_ok(esp_forest_structures(k->forest) == 2 && esp_forest_nodes(k->forest, 1) == 5 &&
		   esp_forest_root(k->forest, 1) == 4 && esp_forest_root(k->forest, 2) == 0,
	       "with all its nodes");
	tap_ok(a.number == 0 && b.number == 1 && ab.number == 2 && c.number == 3 && top.number == 4,
	       "which are numbered in post order");
	tap_ok(top.asked == 1 && a.asked == 1 && ab.walked == 2 && !inputs_seen, "and asked once");
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK, "the program runs over it");
	/* h(ab) = swap(E0) + E1 = {2, 1} + {3, 4}; h(top) = swap({5, 5}) + E2 */
	const float *inner = esp_session_output(k->session, 0, 1, ab.number),
		    *root = esp_session_root(k->session, 0, 1);
	tap_ok(inner && inner[0] == 10 && inner[1] == 10, "a node is found by its number");
	tap_ok(root && root[0] == 20 && root[1] == 22, "the root is the node that was given");
	struct node one = leaf(3);
	tap_ok(esp_forest_add_linked(k->forest, &one, &words, NULL) == ESP_OK &&
		   esp_forest_nodes(k->forest, 2) == 1,
	       "a leaf is a tree");
}

/* Chains that would not fit the C stack, one way and the other; then a small tree in the same memory. */
static void check_chain(struct kit *k)
{
	enum { LENGTH = 1000000 };
	struct node *chain = calloc(LENGTH, sizeof *chain), right = leaf(1);
	for (int i = 1; i < LENGTH; i++) {
		bool left = i % 1000 != 0;
		chain[i] = left ? pair_of(&chain[i - 1], &right) : pair_of(&right, &chain[i - 1]);
		right.word = 1;
	}
	esp_forest_clear(k->forest);
	tap_ok(esp_forest_add_linked(k->forest, &chain[LENGTH - 1], &words, NULL) == ESP_OK &&
		   esp_forest_nodes(k->forest, 0) == LENGTH + 1,
	       "a chain of a million nodes is walked");
	tap_ok(chain[LENGTH - 1].number == LENGTH && right.asked == 1,
	       "its root is last, what it shares is one node");
	tap_ok(esp_forest_add_linked(k->forest, &right, &words, NULL) == ESP_OK, "a small structure follows");
	esp_error *error;
	tap_ok(esp_forest_check(k->forest, &error) == ESP_ERROR_INPUT && error_is(error, "shared-child"),
	       "a tree has no shared nodes");
	free(chain);
}

static void check_cycle(struct kit *k)
{
	struct node a = leaf(0), b, c;
	esp_error *error;
	b = pair_of(&a, &c);
	c = pair_of(&b, &a);
	esp_forest_clear(k->forest);
	tap_ok(esp_forest_add_linked(k->forest, &c, &words, NULL) == ESP_OK &&
		   esp_forest_nodes(k->forest, 0) == 3,
	       "a walk around a cycle ends");
	tap_ok(c.number == 2, "with the root as the last");
	tap_ok(esp_forest_check(k->forest, &error) == ESP_ERROR_INPUT, "the forest is refused");
	esp_error_free(error);
	a = leaf(0);
	a.child[0] = a.child[1] = &a;
	a.children = 2;
	esp_forest_clear(k->forest);
	tap_ok(esp_forest_add_linked(k->forest, &a, &words, NULL) == ESP_OK &&
		   esp_forest_check(k->forest, &error) == ESP_ERROR_INPUT,
	       "so is a node that is its own child");
	esp_error_free(error);
}

/* --- what is refused changes nothing --- */

static bool refused(struct kit *k, const void *root, const esp_walk *walk, esp_status status, const char *id)
{
	esp_error *error;
	size_t structures = esp_forest_structures(k->forest);
	bool same = esp_forest_add_linked(k->forest, root, walk, &error) == status;
	same &= error_is(error, id);
	return same && esp_forest_structures(k->forest) == structures &&
	       esp_session_run(k->session, k->forest, NULL) == ESP_OK &&
	       esp_session_root(k->session, 0, 0)[0] == 10;
}

static void check_refusals(struct kit *k)
{
	struct node a = leaf(0), b = leaf(1), ab = pair_of(&a, &b), hole = pair_of(&ab, NULL);
	esp_forest_clear(k->forest);
	esp_forest_add(k->forest, &pair, NULL);
	tap_ok(refused(k, &hole, &words, ESP_ERROR_INPUT, "dangling-child"),
	       "a child that is NULL is refused");
	lie = SIZE_MAX;
	tap_ok(refused(k, &ab, &words, ESP_ERROR_INPUT, "too-many-nodes"),
	       "so are more children than can be numbered");
	lie = (size_t)INT_MAX;
	tap_ok(refused(k, &ab, &words, ESP_ERROR_INPUT, "too-many-nodes"), "and as many as are one too many");
	lie = 0;
	tap_ok(refused(k, NULL, &words, ESP_ERROR_ARGUMENT, "bad-argument"), "a root that is NULL");
	tap_ok(refused(k, &ab, NULL, ESP_ERROR_ARGUMENT, "bad-argument"), "a walk that is NULL");
	esp_walk w = words;
	w.children = NULL;
	tap_ok(refused(k, &ab, &w, ESP_ERROR_ARGUMENT, "bad-argument"), "a walk without children");
	w = words;
	w.child = NULL;
	tap_ok(refused(k, &ab, &w, ESP_ERROR_ARGUMENT, "bad-argument"), "a walk without child");
	w = words;
	w.token = NULL;
	tap_ok(refused(k, &ab, &w, ESP_ERROR_ARGUMENT, "bad-argument"),
	       "one without the tokens that the program reads");
	w = words;
	w.size = 0;
	tap_ok(refused(k, &ab, &w, ESP_ERROR_ARGUMENT, "bad-argument"), "and one without its size");
	w = words;
	w.number = NULL;
	tap_ok(esp_forest_add_linked(k->forest, &ab, &w, NULL) == ESP_OK, "numbers need not be heard");
	tap_ok(esp_forest_add_linked(NULL, &ab, &w, NULL) == ESP_ERROR_ARGUMENT, "a forest must be there");
}

/* --- vectors --- */

static const char vectors_model[] =
    "model vectors\n"
    "structure dag(*)\n"
    "input x[D]\n"
    "param W[D, D]\n"
    "state h[D]\n"
    "leaf:\n"
    "    h = W @ x\n"
    "inner:\n"
    "    h = sum(k.h for k in children)\n"
    "output o = h\n";

static void check_vectors(void)
{
	struct kit k = {0};
	esp_error *error = NULL;
	const char *path = write_weights("vectors.safetensors", &tiny_weights[1], 1);
	esp_context_create(NULL, &k.context, NULL);
	esp_model_parse(k.context, "vectors.ra", vectors_model, strlen(vectors_model), &k.model, NULL);
	esp_weights_open(k.context, path, &k.weights, NULL);
	esp_program_create(k.model, k.weights, &interpreted, &k.program, NULL);
	esp_binding_create(k.program, k.weights, &k.binding, NULL);
	esp_forest_create(k.program, &k.forest, NULL);
	esp_session_create(k.binding, &k.session, NULL);

	struct node a = {.vector = (const float[]){1, 2}}, b = {.vector = (const float[]){3, 4}};
	struct node ab = {.child = {&a, &b, &a}, .children = 3}, top = {.child = {&ab, &b}, .children = 2};
	esp_walk w = {.size = sizeof w,
		      .children = children_of,
		      .child = child_of,
		      .vector = vector_of,
		      .number = note_number};
	tap_ok(esp_forest_add_linked(k.forest, &top, &w, &error) == ESP_OK &&
		   esp_session_run(k.session, k.forest, &error) == ESP_OK,
	       "a DAG of vectors is taken, of which inner nodes carry none");
	const float *o = esp_session_output(k.session, 0, 0, ab.number),
		    *r = esp_session_root(k.session, 0, 0);
	tap_ok(o && o[0] == 8 && o[1] == 5, "a child that stands in two slots counts twice");
	tap_ok(r && r[0] == 12 && r[1] == 8, "one with two parents is one node");
	b.vector = NULL;
	tap_ok(esp_forest_add_linked(k.forest, &top, &w, &error) == ESP_ERROR_INPUT &&
		   esp_error_get(error, 0) && esp_error_get(error, 0)->structure == 1 &&
		   esp_error_get(error, 0)->node == 1,
	       "a leaf without its vector is named");
	tap_ok(error_is(error, "missing-data") && esp_forest_structures(k.forest) == 1, "and refused");
	free_kit(&k);
}

/* --- memory --- */

static void check_memory(const char *weights)
{
	struct account a = {.left = -1};
	struct node leaves[100], inner[100];
	struct kit k;
	esp_context_options options = {.size = sizeof options, .resize = account_resize, .user = &a};
	long n = 0;
	bool right = true;
	leaves[0] = leaf(0);
	inner[0] = leaf(1);
	for (int i = 1; i < 100; i++) {
		leaves[i] = leaf(i % 4);
		inner[i] = pair_of(&inner[i - 1], &leaves[i]);
	}
	make_kit(&k, &options, weights, NULL);
	for (esp_status s = ESP_ERROR_MEMORY; s && n < 1000; n++) {
		esp_error *error;
		a.left = n;
		s = esp_forest_add_linked(k.forest, &inner[99], &words, &error);
		right &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		right &= esp_forest_structures(k.forest) == (s == ESP_OK);
		esp_error_free(error);
	}
	tap_ok(right && n > 3, "memory running out at any of %ld requests is told and changes nothing",
	       n - 1);
	a.left = 0;
	esp_forest_clear(k.forest);
	tap_ok(esp_forest_add_linked(k.forest, &inner[99], &words, NULL) == ESP_OK,
	       "the same again takes none");
	a.left = -1;
	tap_ok(esp_session_run(k.session, k.forest, NULL) == ESP_OK, "and it runs");
	free_kit(&k);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "all is given back");
}

int main(void)
{
	struct kit k;
	char weights[128];
	make_folder();
	strcpy(weights, write_weights("tiny.safetensors", tiny_weights, 2));
	if (make_kit(&k, NULL, weights, NULL))
		return 1;
	check_tree(&k);
	check_chain(&k);
	check_cycle(&k);
	check_refusals(&k);
	free_kit(&k);
	check_vectors();
	check_memory(weights);
	remove_folder((const char *const[]){"tiny.safetensors", "vectors.safetensors"}, 2);
	return tap_done();
}
