/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "load/load.h"

#include <stdlib.h>

enum { TAGS = 4 /* of a token without a limit, which selects a case of the model */ };

/* The values of an input for all nodes or edges of a structure; NULL when memory is out. */
static void *make_values(const esp_input *input, const struct shape *shape)
{
	size_t rows = input->on_edges ? shape->begin[shape->nodes] : shape->nodes;
	size_t elements = input->is_token ? 1 : input->elements;
	int64_t limit = input->limit ? (int64_t)input->limit : TAGS;
	struct random random = {shape->nodes ? shape->word[0] : 0};
	int32_t *values = malloc((rows * elements + 1) * sizeof *values);
	for (size_t i = 0; values && i < rows * elements; i++)
		if (!input->is_token)
			((float *)values)[i] = random_float(&random);
		else
			values[i] = (int32_t)((input->on_edges ? shape_edge_word(shape, (int)i) : shape->word[i]) %
					      limit);
	return values;
}

static bool make_structure(esp_structure *s, const struct shape *shape, const esp_program *p)
{
	size_t inputs = esp_program_inputs(p);
	void **data = calloc(inputs + 1, sizeof *data);
	bool ok = data;
	*s = (esp_structure){.size = sizeof *s,
			     .nodes = shape->nodes,
			     .child_begin = shape->begin,
			     .children = shape->children,
			     .root = shape->nodes - 1,
			     .data = (const void *const *)data};
	for (size_t i = 0; ok && i < inputs; i++)
		ok = (data[i] = make_values(esp_program_input(p, i), shape));
	return ok || complain("no memory for what nodes and edges carry");
}

static bool make_forest(const esp_structure *s, esp_program *p, esp_forest **f)
{
	esp_error *error;
	esp_status status = esp_forest_create(p, f, &error);
	if (!status)
		status = esp_forest_add(*f, s, &error);
	return !status || (report_failure(status, error), false);
}

bool requests_make(struct requests *r, const struct shapes *shapes, esp_program *plain,
		   esp_program *joined)
{
	r->inputs = esp_program_inputs(plain);
	r->structure = calloc(shapes->n + 1, sizeof *r->structure);
	r->plain = calloc(shapes->n + 1, sizeof(void *));
	r->joined = calloc(shapes->n + 1, sizeof(void *));
	if (!r->structure || !r->plain || !r->joined || !shapes->n)
		return complain("there are no structures, or no memory for them");
	for (size_t i = 0; i < shapes->n; i++, r->n++)
		if (!make_structure(&r->structure[i], &shapes->at[i], plain) ||
		    !make_forest(&r->structure[i], plain, &r->plain[i]) ||
		    !make_forest(&r->structure[i], joined, &r->joined[i]))
			return false;
	return true;
}

static void free_structure(const esp_structure *s, size_t inputs)
{
	for (size_t i = 0; i < inputs; i++)
		free((void *)s->data[i]);
	free((void *)s->data);
}

void requests_free(struct requests *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free_structure(&r->structure[i], r->inputs);
		esp_forest_free(r->plain[i]);
		esp_forest_free(r->joined[i]);
	}
	free(r->structure);
	free(r->plain);
	free(r->joined);
}
