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

bool computes(const struct quantity *q, bool is_leaf)
{
	return !q->only || (q->only == ESP_BODY_LEAF) == is_leaf;
}

bool has_node(const struct comparison *c, const struct pair *p, const struct spot *at)
{
	uint64_t nodes = c->trees.begin[at->tree + 1] - c->trees.begin[at->tree];
	return at->tree < p->trees && (!p->roots || at->node == nodes - 1) &&
	       computes(&p->quantity, !at->height);
}

/* No row that differs comes before the first of all, so one at its node is the first of its own tensor. */
bool differs_at(const struct pair *p, const struct spot *at)
{
	return p->beyond && compare_spots(&p->first, at) == 0;
}

bool is_compared(const struct comparison *c, const struct quantity *q)
{
	for (size_t i = 0; i < c->pairs; i++)
		if (c->pair[i].quantity.name == q->name)
			return true;
	return false;
}

uint64_t ulps(double a, double b)
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

static const char *statement_of(const struct comparison *c, const struct pair *p, bool is_leaf, int *line)
{
	int body = !p->quantity.is_state ? ESP_BODY_OUTPUT : is_leaf ? ESP_BODY_LEAF : ESP_BODY_INNER;
	const char *text = esp_model_statement(c->objects.model, p->quantity.name, body, line);
	*line = locals_line(c, *line);
	return text;
}

/* Of those that differ at one node: states before outputs, each in the order of their statements. */
static bool comes_before(const struct comparison *c, const struct pair *a, const struct pair *b, bool is_leaf)
{
	int lines[2];
	if (a->quantity.is_state != b->quantity.is_state)
		return a->quantity.is_state;
	statement_of(c, a, is_leaf, &lines[0]);
	statement_of(c, b, is_leaf, &lines[1]);
	return lines[0] != lines[1] ? lines[0] < lines[1] : a->quantity.index < b->quantity.index;
}

/* --- the words --- */

/* In post order a node follows upon all that is below it, of which the leftmost leaf is the first. */
static size_t first_below(const esp_forest *f, size_t structure, size_t node)
{
	int32_t child;
	while ((child = esp_forest_child(f, structure, node, 0)) >= 0)
		node = child;
	return node;
}

static const char *skip_words(const char *p, size_t n)
{
	for (; n && *p; p++)
		n -= *p == ' ';
	return p;
}

static void find_words(struct finding *f)
{
	const esp_forest *forest = f->batch->forest;
	size_t first = first_below(forest, f->structure, f->place->node), before = 0, below = 0;
	for (size_t node = 0; node <= f->place->node; node++)
		if (esp_forest_child(forest, f->structure, node, 0) < 0)
			++*(node < first ? &before : &below);
	f->words = skip_words(f->batch->sentence[f->structure], before);
	const char *end = skip_words(f->words, below);
	f->length = end - f->words;
	f->length -= f->length && end[-1] == ' ';
}

/* --- the whole --- */

static const struct batch *batch_of(const struct comparison *c, size_t tree)
{
	const struct batch *b = c->trees.batch;
	while (tree >= b->first + b->sentences)
		b++;
	return b;
}

bool find_first(const struct comparison *c, struct finding *f)
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
	f->is_leaf = !at->height;
	for (size_t i = 0; i < c->pairs; i++) {
		const struct pair *p = &c->pair[i];
		if (differs_at(p, at) && comes_before(c, p, f->pair, f->is_leaf))
			f->pair = p;
	}
	f->place = &f->pair->first;
	f->statement = statement_of(c, f->pair, f->is_leaf, &f->line);
	find_words(f);
	return true;
}
