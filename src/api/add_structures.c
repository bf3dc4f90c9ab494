/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from the caller's arrays. */
#include "api/objects.h"

#include <string.h>

/* Rows of what is added, of an input on nodes or on edges: those from `first` on. */
struct added {
	int64_t first, rows;
};

/* Writes after the last row of the forest; the rows count once the nodes are appended. */
static bool copy_rows(esp_forest *f, int input, const void *from, struct added added, struct diags *diags)
{
	size_t bytes = forest_row_bytes(&f->program->interface.input[input]);
	if (!forest_reserve(f, input, (size_t)added.rows, diags))
		return false;
	if (added.rows)
		memcpy(forest_rows_end(f, input), (const char *)from + (size_t)added.first * bytes,
		       (size_t)added.rows * bytes);
	return true;
}

static bool copy_data(esp_forest *f, const void *const *data, struct added nodes, struct added edges,
		      struct diags *diags)
{
	for (int i = 0; i < f->program->interface.inputs; i++) {
		bool on_edge = f->program->interface.input[i].on_edge;
		if (!copy_rows(f, i, data[i], on_edge ? edges : nodes, diags))
			return false;
	}
	return true;
}

/* The edges of nodes. */
static struct added edges_of(const int32_t *child_begin, struct added nodes)
{
	if (!child_begin)
		return (struct added){0};
	int64_t first = child_begin[nodes.first];
	return (struct added){first, child_begin[nodes.first + nodes.rows] - first};
}

static bool has_room(const esp_forest *f, size_t nodes, struct diags *diags)
{
	int64_t first = f->collect.nodes;
	return nodes <= (size_t)(INT32_MAX - 1 - first) ||
	       diag_add(diags, DIAG_TOO_MANY_NODES, (struct diag_at){0}, "run fewer structures at a time",
			"%zu nodes more than %lld; at most %d can be numbered", nodes, (long long)first,
			INT32_MAX - 1);
}

/* Checks child_begin before edges are counted by it. */
static bool check_edges(const esp_structure *s, struct diags *diags)
{
	struct lin_forest f = {.nodes = s->nodes, .child_begin = s->child_begin, .children = s->children};
	return lin_check_sizes(&f, NULL, diags);
}

/* All memory is reserved before anything is appended, so that a failure changes nothing. */
bool forest_add(esp_forest *f, const esp_structure *s, const struct lin_origin *from, struct diags *diags)
{
	struct added nodes = {0, (int64_t)s->nodes};
	if (!has_room(f, s->nodes, diags) || !check_edges(s, diags) ||
	    !copy_data(f, s->data, nodes, edges_of(s->child_begin, nodes), diags))
		return false;
	if (!from)
		return lin_collect_add_rooted(&f->collect, s->nodes, s->child_begin, s->children, s->root,
					      diags);
	return lin_collect_add_read(&f->collect, s->nodes, s->child_begin, s->children, s->root, from, diags);
}

/* Checks the arrays that a structure, or several, have in common.  `begin` and `end`: elements of child_begin
 * between which their edges are; they are read only where an array is missing, before which nothing is known
 * of child_begin. */
static bool check_arrays(const esp_forest *f, const char *function, const int32_t *children,
			 const int32_t *begin, const int32_t *end, const void *const *data,
			 struct diags *diags)
{
	if (!children && *begin != *end)
		return api_bad_argument(diags, function, "children",
					"must not be NULL when nodes have children");
	if (!data && f->program->interface.inputs)
		return api_bad_argument(diags, function, "data", "must not be NULL: the program has inputs");
	for (int i = 0; i < f->program->interface.inputs; i++)
		if (!data[i] && (!f->program->interface.input[i].on_edge || *begin != *end))
			return api_bad_argument(diags, function, "data",
						"must hold an array for each input of the program");
	return true;
}

/* Where the elements of child_begin that check_arrays needs are; there are none of rows without a structure. */
static const int32_t no_children[2];

/* Whether all arrays of a row that a model without a structure takes may be missing. */
static bool takes_rows(const esp_forest *f)
{
	return !f->program->interface.children;
}

static bool check_arguments(const esp_forest *f, const esp_structure *s, struct diags *diags)
{
	const char *function = "esp_forest_add";
	if (s->nodes > INT32_MAX)
		return api_bad_argument(diags, function, "nodes", "must be below 2^31");
	if (!s->child_begin && takes_rows(f))
		return api_bad_argument(diags, function, "nodes", "must be 1: the model has no structure");
	if (!s->child_begin)
		return api_bad_argument(diags, function, "child_begin", "must not be NULL");
	return check_arrays(f, function, s->children, s->child_begin, s->child_begin + s->nodes, s->data,
			    diags);
}

static bool add_one(esp_forest *f, esp_structure *s, struct diags *diags)
{
	if (!s->child_begin && s->nodes == 1 && takes_rows(f))
		s->child_begin = no_children;
	return check_arguments(f, s, diags) && forest_add(f, s, NULL, diags);
}

esp_status esp_forest_add(esp_forest *forest, const esp_structure *structure, esp_error **error)
{
	struct api_call call = api_begin(forest);
	esp_structure s;
	bool ok = api_need(&call, forest) && api_need(&call, structure) &&
		  api_take_struct(&call.diags, __func__, "structure", structure, &s, sizeof s) &&
		  add_one(forest, &s, &call.diags);
	return api_end(&call, ok, error);
}

/* --- adding many --- */

static bool are_rows(const esp_forest *f, const esp_structures *s)
{
	return !s->node_begin && !s->child_begin && takes_rows(f);
}

/* One node each, of which only the data are needed. */
bool forest_add_rows(esp_forest *f, size_t rows, const void *const *data, struct diags *diags)
{
	struct added nodes = {0, (int64_t)rows};
	const struct lin_inputs inputs = {.inputs = nodes.rows};
	return has_room(f, rows, diags) &&
	       check_arrays(f, "esp_forest_add_many", NULL, no_children, no_children + 1, data, diags) &&
	       copy_data(f, data, nodes, edges_of(NULL, nodes), diags) && lin_collect_add_many(&f->collect, &inputs, diags);
}

static bool check_node_begin(const esp_structures *s, struct diags *diags)
{
	const char *function = "esp_forest_add_many";
	if (s->structures > INT32_MAX)
		return api_bad_argument(diags, function, "structures", "must be below 2^31");
	if (!s->node_begin)
		return api_bad_argument(diags, function, "node_begin", "must not be NULL");
	if (!s->child_begin)
		return api_bad_argument(diags, function, "child_begin", "must not be NULL");
	bool ascends = s->node_begin[0] >= 0;
	for (size_t i = 0; i < s->structures; i++)
		ascends &= s->node_begin[i] <= s->node_begin[i + 1];
	return ascends || api_bad_argument(diags, function, "node_begin", "must ascend from 0 or more");
}

static struct added nodes_of(const esp_structures *s)
{
	int64_t first = s->node_begin[0];
	return (struct added){first, s->node_begin[s->structures] - first};
}

/* Checks child_begin before edges are counted by it. */
static bool check_all_edges(const esp_forest *f, const esp_structures *s, struct diags *diags)
{
	struct added nodes = nodes_of(s);
	const int32_t *begin = s->child_begin + nodes.first;
	struct lin_forest all = {.nodes = nodes.rows, .child_begin = begin, .children = s->children};
	return lin_check_sizes(&all, NULL, diags) &&
	       check_arrays(f, "esp_forest_add_many", s->children, begin, begin + nodes.rows, s->data, diags);
}

static bool add_arrays(esp_forest *f, const esp_structures *s, struct diags *diags)
{
	struct added nodes = nodes_of(s);
	struct lin_inputs inputs = {.inputs = (int64_t)s->structures,
				    .input_begin = s->node_begin,
				    .child_begin = s->child_begin,
				    .children = s->children,
				    .root = s->root};
	return has_room(f, (size_t)nodes.rows, diags) &&
	       copy_data(f, s->data, nodes, edges_of(s->child_begin, nodes), diags) &&
	       lin_collect_add_many(&f->collect, &inputs, diags);
}

static bool add_many(esp_forest *f, const esp_structures *s, struct diags *diags)
{
	if (are_rows(f, s))
		return forest_add_rows(f, s->structures, s->data, diags);
	return check_node_begin(s, diags) && check_all_edges(f, s, diags) && add_arrays(f, s, diags);
}

esp_status esp_forest_add_many(esp_forest *forest, const esp_structures *structures, esp_error **error)
{
	struct api_call call = api_begin(forest);
	esp_structures s;
	bool ok = api_need(&call, forest) && api_need(&call, structures) &&
		  api_take_struct(&call.diags, __func__, "structures", structures, &s, sizeof s) &&
		  add_many(forest, &s, &call.diags);
	return api_end(&call, ok, error);
}
