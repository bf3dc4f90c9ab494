/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "compare/compare.h"

#include <math.h>
#include <string.h>

bool is_equal(const struct comparison *c)
{
	for (size_t i = 0; i < c->pairs; i++)
		if (c->pair[i].beyond)
			return false;
	return !c->classes_beyond;
}

const char *kind_of(const struct quantity *q)
{
	return q->is_local ? "local" : q->is_state ? "state" : "output";
}

bool has_node(const struct comparison *c, const struct pair *p, const struct spot *at)
{
	const struct batch *b = batch_of(c, at->tree);
	size_t structure = at->tree - b->first;
	return at->tree < p->trees && (!p->roots || at->node == esp_forest_root(b->forest, structure)) &&
	       computes_quantity(c, &p->quantity, b, structure, at->node);
}

/* `at` is the first of all differences, so a pair that differs at its node differs there first. */
bool differs_at(const struct pair *p, const struct spot *at)
{
	return p->beyond && compare_spots(&p->first, at) == 0;
}

/* `at` is the first of all differences. Of a pair that differs in a later traversal only the first
 * differing row is known, so nothing is claimed of its other rows. */
bool agrees_before(const struct pair *p, const struct spot *at)
{
	return !p->beyond || p->quantity.traversal <= at->traversal;
}

bool is_compared(const struct comparison *c, const struct quantity *q)
{
	for (size_t i = 0; i < c->pairs; i++)
		if (c->pair[i].quantity.source == q->source)
			return true;
	return false;
}

uint64_t count_ulps(double a, double b)
{
	int32_t bits[2];
	int64_t steps[2];
	float values[2] = {(float)a, (float)b};
	if (isnan(a) || isnan(b))
		return UINT64_MAX;
	memcpy(bits, values, sizeof bits);
	for (int i = 0; i < 2; i++)
		steps[i] = bits[i] < 0 ? -(int64_t)(bits[i] & INT32_MAX) : bits[i];
	return steps[0] < steps[1] ? steps[1] - steps[0] : steps[0] - steps[1];
}

/* --- the statement --- */

static const char *statement_of(const struct comparison *c, const struct pair *p, const struct finding *f, int *line)
{
	int body = body_of(c, &p->quantity, f->batch, f->structure, f->place->node);
	return esp_model_statement(c->objects.model, p->quantity.source, body, line);
}

/* Orders pairs that differ at one node: states before outputs, each in the order of their statements. */
static bool comes_before(const struct comparison *c, const struct pair *a, const struct pair *b, const struct finding *f)
{
	int lines[2];
	if (a->quantity.is_state != b->quantity.is_state)
		return a->quantity.is_state;
	statement_of(c, a, f, &lines[0]);
	statement_of(c, b, f, &lines[1]);
	return lines[0] != lines[1] ? lines[0] < lines[1] : a->quantity.index < b->quantity.index;
}

/* --- the words --- */

/* The leftmost leaf below a node: in post order the first of the nodes below it. */
static size_t first_below(const esp_forest *f, size_t structure, size_t node)
{
	int32_t child;
	while ((child = esp_forest_child(f, structure, node, 0)) >= 0)
		node = child;
	return node;
}

static bool is_post_order(const esp_forest *f, size_t structure)
{
	for (size_t node = 0; node < esp_forest_nodes(f, structure); node++) {
		int32_t child, before = -1;
		for (size_t slot = 0; (child = esp_forest_child(f, structure, node, slot)) >= 0; slot++) {
			if (slot && first_below(f, structure, child) != (size_t)before + 1)
				return false;
			before = child;
		}
		if (before >= 0 && (size_t)before + 1 != node)
			return false;
	}
	return true;
}

static const char *skip_words(const char *p, size_t n)
{
	for (; n && *p; p++)
		n -= *p == ' ';
	return p;
}

static size_t count_words(const char *sentence)
{
	size_t n = *sentence != 0;
	for (const char *p = sentence; *p; p++)
		n += *p == ' ';
	return n;
}

/* Leaves among the nodes from `first` to before `end`. */
static size_t count_leaves(const struct finding *f, size_t first, size_t end)
{
	size_t n = 0;
	for (size_t node = first; node < end; node++)
		n += esp_forest_child(f->batch->forest, f->structure, node, 0) < 0;
	return n;
}

/* Finds the words of the leaves below the node, where each leaf is a word and leaves are in their order;
 * else all words. */
static void find_words(struct finding *f)
{
	const esp_forest *forest = f->batch->forest;
	const char *sentence = f->batch->sentence[f->structure];
	size_t node = f->place->node, words = count_words(sentence), before = 0, below = words;
	if (is_post_order(forest, f->structure) &&
	    count_leaves(f, 0, esp_forest_nodes(forest, f->structure)) == words) {
		size_t first = first_below(forest, f->structure, node);
		before = count_leaves(f, 0, first);
		below = count_leaves(f, first, node + 1);
	}
	f->words = skip_words(sentence, before);
	const char *end = skip_words(f->words, below);
	f->length = end - f->words;
	f->length -= f->length && end[-1] == ' ';
}

/* --- neighbours --- */

static bool is_child(const struct finding *f, size_t node, size_t of)
{
	int32_t child;
	for (size_t slot = 0; (child = esp_forest_child(f->batch->forest, f->structure, of, slot)) >= 0; slot++)
		if ((size_t)child == node)
			return true;
	return false;
}

int32_t next_neighbour(const struct finding *f, size_t *position)
{
	const esp_forest *forest = f->batch->forest;
	if (!f->pair->quantity.down)
		return esp_forest_child(forest, f->structure, f->place->node, (*position)++);
	while (*position < esp_forest_nodes(forest, f->structure))
		if (is_child(f, f->place->node, (*position)++))
			return (int32_t)*position - 1;
	return -1;
}

/* --- the first difference --- */

const struct batch *batch_of(const struct comparison *c, size_t tree)
{
	const struct batch *b = c->trees.batch;
	while (tree >= b->first + b->sentences)
		b++;
	return b;
}

bool find_first(struct comparison *c, struct finding *f)
{
	const struct spot *at = NULL;
	*f = (struct finding){0};
	for (size_t i = 0; i < c->pairs; i++)
		if (c->pair[i].beyond && (!at || compare_spots(&c->pair[i].first, at) < 0)) {
			f->pair = &c->pair[i];
			at = &f->pair->first;
		}
	if (!at)
		return false;
	f->batch = batch_of(c, at->tree);
	f->structure = at->tree - f->batch->first;
	f->place = at;
	if (!levels_find(c, f->batch, f->structure))
		return false;
	for (size_t i = 0; i < c->pairs; i++) {
		const struct pair *p = &c->pair[i];
		if (differs_at(p, at) && comes_before(c, p, f->pair, f))
			f->pair = p;
	}
	f->place = &f->pair->first;
	f->statement = statement_of(c, f->pair, f, &f->line);
	find_words(f);
	return true;
}
