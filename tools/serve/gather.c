/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from tensors.  All numbers of nodes are rows of the tensors: structure i has the nodes
 * structure_begin[i] .. structure_begin[i + 1] - 1, node n the children children[child_begin[n]] ..
 * children[child_begin[n + 1] - 1]. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

struct gather {
	struct texts *to;
	const struct tensor *tensor; /* of inputs, then structure tensors */
	struct infer_failure *failure;
	const esp_program *program;
	size_t inputs;
	bool single; /* one row, and no tensor has an axis of rows */
	int64_t nodes, edges, structures;
	/* Read, or made where the request leaves them out. */
	int32_t *child_begin, *children, *begin, *root;
	void **data; /* of each input */
};

static const struct tensor *find_tensor(const struct gather *g, enum structure_tensor which)
{
	const struct tensor *t = &g->tensor[g->inputs + which];
	return t->datatype.text ? t : NULL;
}

/* --- sizes --- */

static bool refuse_sizes(const struct gather *g)
{
	return refuse(g->failure, BAD_REQUEST,
		      "no tensor says how many nodes there are: give 'child_begin', a number more than there "
		      "are nodes, or "
		      "'structure'");
}

/* Whether the tensors are one row, without an axis of rows: a model without a structure may have it so. */
static bool is_single(const struct gather *g)
{
	if (esp_program_children(g->program, NULL))
		return false;
	for (size_t i = 0; i < g->inputs; i++)
		if (g->tensor[i].datatype.text)
			return g->tensor[i].rank <= (int)esp_program_input(g->program, i)->rank;
	return g->inputs == 0;
}

/* The number of nodes, from the first tensor that tells it; NULL = none does. */
static const struct tensor *count_nodes(struct gather *g)
{
	const struct tensor *t = find_tensor(g, TENSOR_CHILD_BEGIN);
	if (t)
		g->nodes = t->shape[0] - 1;
	for (size_t i = 0; !t && i < g->inputs; i++)
		if (g->tensor[i].datatype.text && g->tensor[i].rank > 0 &&
		    !esp_program_input(g->program, i)->on_edges) {
			t = &g->tensor[i];
			g->nodes = t->shape[0];
		}
	return t;
}

static bool find_nodes(struct gather *g)
{
	const struct tensor *begin = find_tensor(g, TENSOR_CHILD_BEGIN);
	if (begin && !tensor_check_shape(begin, ANY_ROWS, NULL, 0, g->failure))
		return false;
	g->single = !begin && is_single(g);
	g->nodes = 1;
	if (g->single)
		return true;
	const struct tensor *t = count_nodes(g);
	if (!t)
		return refuse_sizes(g);
	if (g->nodes < 1)
		return refuse(g->failure, BAD_REQUEST,
			      "tensor '%.*s' has %lld rows: there must be a node at least", SHOW(t->name),
			      (long long)t->shape[0]);
	return (uint64_t)g->nodes <= g->to->limits->nodes ||
	       refuse(g->failure, TOO_LARGE,
		      "the request has %lld nodes, and the limit is %zu: send several requests",
		      (long long)g->nodes, g->to->limits->nodes);
}

/* --- index arrays --- */

/* Reads a tensor of indices; NULL after a failure. */
static int32_t *read_indices(const struct gather *g, const struct tensor *t, int64_t rows)
{
	return tensor_check_type(t, ESP_I32, true, g->failure) &&
		       tensor_check_shape(t, rows, NULL, 0, g->failure)
		   ? tensor_read(t, ESP_I32, g->failure)
		   : NULL;
}

/* Whether numbers go up from 0 to `last`, by `least` or more. */
static bool check_ascent(const struct gather *g, const struct tensor *t, const int32_t *v, int64_t n,
			 int64_t last, int least, const char *meaning)
{
	int64_t before = 0;
	for (int64_t i = 0; i <= n; i++) {
		if (i ? v[i] < before + least || v[i] > last : v[0] != 0)
			return refuse(g->failure, BAD_REQUEST,
				      "tensor '%.*s', element %lld is %d: numbers begin with 0, %s and end "
				      "with %lld, %s",
				      SHOW(t->name), (long long)i, v[i], least ? "go up" : "never go down",
				      (long long)last, meaning);
		before = v[i];
	}
	return v[n] == last ||
	       refuse(g->failure, BAD_REQUEST, "tensor '%.*s' ends with %d: it must end with %lld, %s",
		      SHOW(t->name), v[n], (long long)last, meaning);
}

static int32_t *new_indices(const struct gather *g, int64_t n)
{
	int32_t *v = malloc((n + 1) * sizeof *v);
	if (!v)
		refuse_memory(g->failure);
	return v;
}

/* Each row is a structure, where the model has none. */
static bool make_rows(struct gather *g)
{
	g->structures = g->nodes;
	g->begin = new_indices(g, g->structures);
	for (int64_t i = 0; g->begin && i <= g->structures; i++)
		g->begin[i] = (int32_t)i;
	return g->begin;
}

static bool read_begins(struct gather *g)
{
	const struct tensor *t = find_tensor(g, TENSOR_STRUCTURE_BEGIN);
	if (!t && !esp_program_children(g->program, NULL))
		return make_rows(g);
	if (!t) {
		g->structures = 1;
		g->begin = new_indices(g, 1);
		if (g->begin)
			memcpy(g->begin, (int32_t[]){0, (int32_t)g->nodes}, 2 * sizeof *g->begin);
		return g->begin;
	}
	if (!(g->begin = read_indices(g, t, ANY_ROWS)))
		return false;
	g->structures = t->shape[0] - 1;
	if (g->structures < 1)
		return refuse(g->failure, BAD_REQUEST,
			      "tensor '%.*s' must have an element more than there are structures",
			      SHOW(t->name));
	return check_ascent(g, t, g->begin, g->structures, g->nodes, 1, "the number of nodes");
}

/* The child of each node is the one before it, as in a sequence. */
static bool make_chains(struct gather *g)
{
	g->child_begin = new_indices(g, g->nodes);
	g->children = new_indices(g, g->nodes);
	if (!g->child_begin || !g->children)
		return false;
	int32_t edges = 0;
	for (int64_t s = 0; s < g->structures; s++)
		for (int32_t n = g->begin[s]; n < g->begin[s + 1]; n++) {
			g->child_begin[n] = edges;
			if (n > g->begin[s])
				g->children[edges++] = n - 1;
		}
	g->child_begin[g->nodes] = edges;
	g->edges = edges;
	return true;
}

/* Whether children are nodes of the structure that their parent is of. */
static bool check_children(const struct gather *g, const struct tensor *t)
{
	for (int64_t s = 0; s < g->structures; s++) {
		int32_t first = g->begin[s], end = g->begin[s + 1];
		for (int32_t e = g->child_begin[first]; e < g->child_begin[end]; e++)
			if (g->children[e] < first || g->children[e] >= end)
				return refuse(g->failure, BAD_REQUEST,
					      "tensor '%.*s', element %d is %d: structure %lld has the nodes "
					      "%d to %d, and "
					      "children are named by these numbers",
					      SHOW(t->name), e, g->children[e], (long long)s, first, end - 1);
	}
	return true;
}

static bool read_children(struct gather *g)
{
	const struct tensor *begin = find_tensor(g, TENSOR_CHILD_BEGIN), *t = find_tensor(g, TENSOR_CHILDREN);
	if (!begin)
		return t ? refuse(g->failure, BAD_REQUEST,
				  "there is a tensor 'children' without 'child_begin': give both, or neither "
				  "for sequences")
			 : make_chains(g);
	if (!(g->child_begin = read_indices(g, begin, g->nodes + 1)))
		return false;
	g->edges = g->child_begin[g->nodes];
	if (!check_ascent(g, begin, g->child_begin, g->nodes, g->edges, 0, "the number of edges"))
		return false;
	if (!t && g->edges)
		return refuse(g->failure, BAD_REQUEST,
			      "tensor 'children' is missing: 'child_begin' says that it has %lld elements",
			      (long long)g->edges);
	g->children = t ? read_indices(g, t, g->edges) : new_indices(g, 0);
	return g->children && (!t || check_children(g, t));
}

static bool read_roots(struct gather *g)
{
	const struct tensor *t = find_tensor(g, TENSOR_ROOT);
	g->root = t ? read_indices(g, t, g->structures) : new_indices(g, g->structures);
	for (int64_t s = 0; g->root && s < g->structures; s++) {
		if (!t)
			g->root[s] = g->begin[s + 1] - 1;
		if (g->root[s] < g->begin[s] || g->root[s] >= g->begin[s + 1])
			return refuse(g->failure, BAD_REQUEST,
				      "tensor '%.*s', element %lld is %d: structure %lld has the nodes %d to "
				      "%d, one of which is the root",
				      SHOW(t->name), (long long)s, g->root[s], (long long)s, g->begin[s],
				      g->begin[s + 1] - 1);
	}
	return g->root;
}

/* --- what nodes and edges carry --- */

static int64_t rows_of(const struct gather *g, const esp_input *in)
{
	return g->single ? NO_ROWS : in->on_edges ? g->edges : g->nodes;
}

static bool refuse_missing(const struct gather *g, const esp_input *in)
{
	struct tensor as = {.name = {in->name, strlen(in->name), false}, .rank = -1};
	struct infer_failure shape;
	tensor_check_shape(&as, rows_of(g, in), in->shape, in->rank, &shape);
	const char *wanted = strstr(shape.message, "must be");
	return refuse(g->failure, BAD_REQUEST, "tensor '%s' is missing: the model reads %s, whose shape %s",
		      in->name, datatype_name(in->dtype), wanted ? wanted : "it describes");
}

static bool read_inputs(struct gather *g)
{
	g->data = calloc(g->inputs + 1, sizeof *g->data);
	if (!g->data)
		return refuse_memory(g->failure);
	for (size_t i = 0; i < g->inputs; i++) {
		const esp_input *in = esp_program_input(g->program, i);
		const struct tensor *t = &g->tensor[i];
		if (!t->datatype.text)
			return refuse_missing(g, in);
		if (!tensor_check_type(t, in->dtype, in->is_token, g->failure) ||
		    !tensor_check_shape(t, rows_of(g, in), in->shape, in->rank, g->failure) ||
		    !(g->data[i] = tensor_read(t, in->dtype, g->failure)))
			return false;
	}
	return true;
}

/* --- the forest --- */

/* Adds structure s, whose numbers become relative to its first node and edge; what another structure needs of
 * the arrays stays. */
static bool add_structure(const struct gather *g, int64_t s, const void **data)
{
	int32_t first = g->begin[s], nodes = g->begin[s + 1] - first, *child_begin = g->child_begin + first;
	int32_t edge = child_begin[0], last = child_begin[nodes];
	for (size_t i = 0; i < g->inputs; i++) {
		const esp_input *in = esp_program_input(g->program, i);
		size_t row = in->elements * esp_dtype_size(in->dtype), begin = in->on_edges ? edge : first;
		data[i] = (const char *)g->data[i] + begin * row;
	}
	for (int32_t n = 0; n <= nodes; n++)
		child_begin[n] -= edge;
	for (int32_t e = edge; e < last; e++)
		g->children[e] -= first;
	esp_structure structure = {.size = sizeof structure,
				   .nodes = nodes,
				   .child_begin = child_begin,
				   .children = g->children + edge,
				   .root = g->root[s] - first,
				   .data = data};
	esp_error *error;
	esp_status status = esp_forest_add(g->to->request->forest, &structure, &error);
	child_begin[nodes] = last;
	return !status || refuse_error(g->failure, "the tensors", status, error);
}

static bool add_structures(const struct gather *g)
{
	const void **data = malloc((g->inputs + 1) * sizeof *data);
	bool ok = data || refuse_memory(g->failure);
	for (int64_t s = 0; ok && s < g->structures; s++)
		ok = add_structure(g, s, data);
	free(data);
	g->to->request->structures = g->structures;
	g->to->request->nodes = g->nodes;
	g->to->request->single = g->single;
	return ok;
}

bool gather_structures(struct texts *to, const struct tensor *tensor)
{
	struct gather g = {.to = to,
			   .tensor = tensor,
			   .failure = to->failure,
			   .program = to->request->program,
			   .inputs = esp_program_inputs(to->request->program)};
	bool ok = find_nodes(&g) && read_begins(&g) && read_children(&g) && read_roots(&g) &&
		  read_inputs(&g) && add_structures(&g);
	for (size_t i = 0; g.data && i < g.inputs; i++)
		free(g.data[i]);
	free(g.data);
	free(g.child_begin);
	free(g.children);
	free(g.begin);
	free(g.root);
	return ok;
}
