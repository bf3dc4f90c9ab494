/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds on what products in integers or bf16 change, beside the differences that were measured. */
#include "compare/compare.h"

#include <jansson.h>
#include <math.h>

/* What a bound holds for. */
struct extent {
	size_t height, edges; /* of the highest tree, and of the node with the most children */
};

static size_t count_children(const esp_forest *f, size_t structure, size_t node)
{
	size_t n = 0;
	while (esp_forest_child(f, structure, node, n) >= 0)
		n++;
	return n;
}

static bool extend_by_tree(struct comparison *c, const struct batch *b, size_t structure, struct extent *e)
{
	if (!levels_find(c, b, structure))
		return false;
	for (size_t node = 0; node < esp_forest_nodes(b->forest, structure); node++) {
		size_t children = count_children(b->forest, structure, node);
		e->height = c->levels.height[node] > e->height ? c->levels.height[node] : e->height;
		e->edges = children > e->edges ? children : e->edges;
	}
	return true;
}

/* The extent of the trees that are compared.  False after a message. */
static bool find_extent(struct comparison *c, struct extent *e)
{
	*e = (struct extent){0};
	for (size_t i = 0; i < c->covered; i++) {
		const struct batch *b = batch_of(c, i);
		if (!extend_by_tree(c, b, i - b->first, e))
			return false;
	}
	return true;
}

/* Whether a row of the explanation's table is of all structures up to an extent. */
static bool covers_extent(const json_t *row, const char *member, size_t n)
{
	const json_t *limit = json_object_get(row, member);
	return !json_is_integer(limit) || (size_t)json_integer_value(limit) >= n;
}

/* The first row of the table that covers the trees; NULL = none does. */
static const json_t *find_row(const json_t *table, const struct extent *e)
{
	size_t i;
	const json_t *row;
	json_array_foreach(table, i, row)
		if (covers_extent(row, "height", e->height) && covers_extent(row, "edges", e->edges))
			return row;
	return NULL;
}

/* Without a row nothing is bounded. */
static void set_bounds(struct comparison *c, const json_t *row)
{
	for (size_t i = 0; i < c->pairs; i++) {
		struct quantity *q = &c->pair[i].quantity;
		const json_t *of = json_object_get(json_object_get(row, q->is_state ? "states" : "outputs"), q->source);
		c->pair[i].bound = json_is_number(of) ? json_number_value(of) : INFINITY;
		c->pair[i].bounded = true;
	}
}

/* There is a table of errors where the options or the model ask for products in another precision than f32. */
static int take_bounds(struct comparison *c, const json_t *table)
{
	struct extent extent;
	if (!json_array_size(table))
		return 0;
	if (!find_extent(c, &extent))
		return EXIT_INPUT;
	set_bounds(c, find_row(table, &extent));
	return 0;
}

int bounds_find(struct comparison *c)
{
	esp_error *error;
	char *text;
	esp_status status = esp_program_explain_weights(c->objects.program, c->objects.weights, ESP_FORM_JSON, &text, &error);
	if (status)
		return report_failure(status, error);
	json_t *explanation = json_loads(text, 0, NULL);
	esp_text_free(text);
	int found = take_bounds(c, json_object_get(explanation, "errors"));
	json_decref(explanation);
	return found;
}
