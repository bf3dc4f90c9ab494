/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures whose nodes the caller links by pointers. */
#include "api/objects.h"

#include <string.h>

static bool check_walk(const esp_forest *f, const esp_walk *w, struct diags *diags)
{
	const char *function = "esp_forest_add_linked";
	if (!w->children || !w->child)
		return api_bad_argument(diags, function, w->children ? "walk->child" : "walk->children",
					"must not be NULL");
	for (int i = 0; i < f->program->interface.inputs; i++) {
		const struct image_input *in = &f->program->interface.input[i];
		const struct {
			bool there;
			const char *name;
		} callback[2][2] = {{{w->vector, "walk->vector"}, {w->token, "walk->token"}},
				    {{w->edge_vector, "walk->edge_vector"}, {w->edge_token, "walk->edge_token"}}};
		if (!callback[in->on_edge][in->token].there)
			return api_bad_argument(diags, function, callback[in->on_edge][in->token].name,
						"must not be NULL: the program has such an input");
	}
	return true;
}

static bool refuse_missing(const esp_forest *f, const struct image_input *in, int32_t node,
			   struct diags *diags)
{
	long long input = f->collect.inputs;
	diag_add(diags, DIAG_MISSING_DATA, (struct diag_at){0},
		 "give the node a value, or read this input in the other case only",
		 "node %d of input %lld carries no '%s'", node, input, in->name);
	return diag_about(diags, input, node);
}

/* Whether the model reads the input at this node. */
static bool is_read(const esp_forest *f, const struct image_input *in, int32_t node)
{
	const int32_t *begin = f->walk.child_begin;
	return begin[node] == begin[node + 1] ? in->at_leaf : in->at_inner;
}

/* Copies the vectors of all nodes.  A missing vector is NULL, an error only if the model reads it. */
static bool fill_vectors(esp_forest *f, const esp_walk *w, int which, char *to, struct diags *diags)
{
	const struct image_input *in = &f->program->interface.input[which];
	size_t bytes = forest_row_bytes(in);
	for (int32_t n = 0; n < f->walk.nodes; n++, to += bytes) {
		const void *from = w->vector(w->user, lin_walk_node(&f->walk, n), (size_t)which);
		if (from)
			memcpy(to, from, bytes);
		else if (is_read(f, in, n))
			return refuse_missing(f, in, n, diags);
		else
			memset(to, 0, bytes);
	}
	return true;
}

static bool refuse_edge(const esp_forest *f, const struct image_input *in, int32_t node, size_t slot,
			struct diags *diags)
{
	long long input = f->collect.inputs;
	diag_add(diags, DIAG_MISSING_DATA, (struct diag_at){0}, "give every edge a value",
		 "edge %zu of node %d of input %lld carries no '%s'", slot, node, input, in->name);
	return diag_about(diags, input, node);
}

static bool fill_edge(const esp_forest *f, const esp_walk *w, int which, int32_t node, size_t slot, void *to,
		      struct diags *diags)
{
	const struct image_input *in = &f->program->interface.input[which];
	const void *of = lin_walk_node(&f->walk, node);
	if (in->token) {
		*(int32_t *)to = w->edge_token(w->user, of, slot, (size_t)which);
		return true;
	}
	const void *from = w->edge_vector(w->user, of, slot, (size_t)which);
	if (!from)
		return refuse_edge(f, in, node, slot, diags);
	memcpy(to, from, forest_row_bytes(in));
	return true;
}

static bool fill_edges(esp_forest *f, const esp_walk *w, int which, struct diags *diags)
{
	const struct image_input *in = &f->program->interface.input[which];
	size_t bytes = forest_row_bytes(in);
	char *to = forest_rows_end(f, which);
	const int32_t *begin = f->walk.child_begin;
	for (int32_t n = 0; n < f->walk.nodes; n++)
		for (int32_t e = begin[n]; e < begin[n + 1]; e++, to += bytes)
			if (!fill_edge(f, w, which, n, (size_t)(e - begin[n]), to, diags))
				return false;
	return true;
}

/* Writes after the last row of the forest; the rows count once the nodes are appended. */
static bool fill_input(esp_forest *f, const esp_walk *w, int which, struct diags *diags)
{
	const struct image_input *in = &f->program->interface.input[which];
	if (!forest_reserve(f, which, (size_t)(in->on_edge ? f->walk.edges : f->walk.nodes), diags))
		return false;
	if (in->on_edge)
		return fill_edges(f, w, which, diags);
	if (!in->token)
		return fill_vectors(f, w, which, forest_rows_end(f, which), diags);
	int32_t *to = forest_rows_end(f, which);
	for (int32_t n = 0; n < f->walk.nodes; n++)
		to[n] = w->token(w->user, lin_walk_node(&f->walk, n), (size_t)which);
	return true;
}

static bool add_walked(esp_forest *f, const void *root, const esp_walk *w, struct diags *diags)
{
	struct lin_links links = {w->user, w->children, w->child};
	if (!lin_walk(&f->walk, root, &links, f->collect.inputs, diags))
		return false;
	for (int i = 0; i < f->program->interface.inputs; i++)
		if (!fill_input(f, w, i, diags))
			return false;
	if (!lin_collect_add(&f->collect, f->walk.nodes, f->walk.child_begin, f->walk.children, diags))
		return false;
	for (int32_t n = 0; w->number && n < f->walk.nodes; n++)
		w->number(w->user, lin_walk_node(&f->walk, n), (size_t)n);
	return true;
}

esp_status esp_forest_add_linked(esp_forest *forest, const void *root, const esp_walk *walk,
				 esp_error **error)
{
	struct api_call call = api_begin(forest);
	esp_walk w;
	bool ok = api_need(&call, forest) && api_need(&call, root) && api_need(&call, walk) &&
		  api_take_struct(&call.diags, __func__, "walk", walk, &w, sizeof w) &&
		  check_walk(forest, &w, &call.diags) && add_walked(forest, root, &w, &call.diags);
	return api_end(&call, ok, error);
}
