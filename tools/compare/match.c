/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Matches tensors of the reference with states and outputs, and finds which trees their rows belong to. */
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>

#define BEGIN_NAME "structure_begin"

/* --- states and outputs --- */

static bool goes_down(const esp_model *m, size_t traversal)
{
	const char *direction = esp_model_traversal(m, traversal);
	return direction && strcmp(direction, "down") == 0;
}

static struct quantity state_quantity(const struct comparison *c, size_t i)
{
	const esp_state *s = esp_program_state(c->objects.program, i);
	const char *tensor = locals_tensor(c, s->name);
	struct quantity q = {.name = tensor ? tensor : s->name,
			     .source = s->name,
			     .is_state = true,
			     .is_local = tensor,
			     .index = i,
			     .elements = s->elements,
			     .rank = s->rank,
			     .shape = s->shape};
	esp_model_state(c->objects.model, i, &q.traversal);
	q.down = goes_down(c->objects.model, q.traversal);
	return q;
}

/* An output is computed after all traversals. */
static struct quantity output_quantity(const struct comparison *c, size_t i)
{
	const esp_output *o = esp_program_output(c->objects.program, i);
	struct quantity q = {.name = o->name,
			     .source = o->name,
			     .index = i,
			     .elements = o->elements,
			     .rank = o->rank,
			     .shape = o->shape};
	while (esp_model_traversal(c->objects.model, q.traversal + 1))
		q.traversal++;
	q.down = goes_down(c->objects.model, q.traversal);
	return q;
}

/* Lists states and outputs. Integers are left out: references hold floats. */
static bool list_quantities(struct comparison *c)
{
	const esp_program *p = c->objects.program;
	size_t outputs = esp_program_outputs(p), states = esp_program_states(p);
	c->quantity = calloc(outputs + states + 1, sizeof *c->quantity);
	c->pair = calloc(outputs + states + 1, sizeof *c->pair);
	if (!c->quantity || !c->pair)
		return complain("no memory for %zu states and outputs", outputs + states);
	c->quantities = 0;
	for (size_t i = 0; i < states; i++)
		if (esp_program_state(p, i)->dtype == ESP_F32)
			c->quantity[c->quantities++] = state_quantity(c, i);
	for (size_t i = 0; i < outputs; i++)
		if (esp_program_output(p, i)->dtype == ESP_F32)
			c->quantity[c->quantities++] = output_quantity(c, i);
	return true;
}

/* An output of an ONNX graph has the name there as well. */
static bool has_name(const struct comparison *c, const struct quantity *q, const char *name)
{
	return strcmp(q->name, name) == 0 ||
	       (!q->is_state && esp_program_find_output(c->objects.program, name) == q->index);
}

static const struct quantity *find_quantity(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < c->quantities; i++)
		if (has_name(c, &c->quantity[i], name))
			return &c->quantity[i];
	return NULL;
}

/* --- bodies --- */

int body_of(const struct comparison *c, const struct quantity *q, const struct batch *b, size_t structure,
	    size_t node)
{
	if (!q->is_state)
		return ESP_BODY_OUTPUT;
	if (q->down)
		return c->levels.depth[node] ? ESP_BODY_BELOW : ESP_BODY_ROOT;
	return esp_model_body(c->objects.model, b->forest, structure, node);
}

bool computes_quantity(const struct comparison *c, const struct quantity *q, const struct batch *b,
		       size_t structure, size_t node)
{
	return !q->is_local ||
	       esp_model_statement(c->objects.model, q->source, body_of(c, q, b, structure, node), NULL);
}

/* --- shapes --- */

/* Whether the tensor is the one row of arrays, and has no axis of rows either. */
static bool is_single(const struct comparison *c, const struct quantity *q, const struct reference_tensor *t)
{
	bool same = arrays_are_single(c->batches.arrays) && t->rank == q->rank;
	for (size_t d = 0; same && d < q->rank; d++)
		same = t->shape[d] == q->shape[d];
	return same;
}

/* Whether the tensor's rows have the quantity's shape; extents of 1 are ignored. */
static bool fits_quantity(const struct comparison *c, const struct quantity *q, const struct reference_tensor *t)
{
	size_t d = 0, e = 1;
	if (is_single(c, q, t))
		return true;
	if (!t->rank)
		return false;
	for (;; d++, e++) {
		while (d < q->rank && q->shape[d] == 1)
			d++;
		while (e < t->rank && t->shape[e] == 1)
			e++;
		if (d == q->rank || e == t->rank)
			return d == q->rank && e == t->rank;
		if (q->shape[d] != t->shape[e])
			return false;
	}
}

/* "[41, 150]" */
static const char *shape_text(char *to, size_t size, const size_t *shape, size_t rank, const char *first)
{
	size_t n = snprintf(to, size, "[%s", first);
	for (size_t d = 0; d < rank && n < size; d++)
		n += snprintf(to + n, size - n, "%s%zu", d || *first ? ", " : "", shape[d]);
	if (n < size)
		snprintf(to + n, size - n, "]");
	return to;
}

static bool refuse_shape(const struct comparison *c, const struct quantity *q,
			 const struct reference_tensor *t)
{
	char theirs[256], ours[256];
	return complain("%s: '%s' is %s, but the model's %s '%s' is %s", c->reference.path, q->name,
			shape_text(theirs, sizeof theirs, t->shape, t->rank, ""), kind_of(q), q->name,
			shape_text(ours, sizeof ours, q->shape, q->rank, "rows"));
}

/* --- trees of the reference --- */

static bool check_begin(struct comparison *c, size_t trees, uint64_t begin, uint64_t end)
{
	const uint64_t *ours = c->trees.begin;
	uint64_t nodes = ours[trees + 1] - ours[trees];
	if (begin == ours[trees] && end >= begin && end - begin == nodes)
		return true;
	return complain("%s: tree %zu has %lld nodes, but in %s it has %llu", c->reference.path, trees,
			(long long)(end - begin), c->input, (unsigned long long)nodes);
}

static bool check_root(const struct comparison *c, size_t tree, size_t root)
{
	const struct batch *b = batch_of(c, tree);
	size_t ours = esp_forest_root(b->forest, tree - b->first);
	return root == ours || complain("%s: node %zu is the root of tree %zu, but in %s it is node %zu", c->reference.path,
					root, tree, c->input, ours);
}

static bool check_count(const struct comparison *c)
{
	const struct reference *r = &c->reference;
	return r->trees <= c->trees.n ||
	       complain("%s: has %zu trees, but %s has %zu only", r->path, r->trees, c->input, c->trees.n);
}

/* Takes the tensor that holds where the nodes of each tree begin. */
static bool take_begin(struct comparison *c, struct reference_tensor *t)
{
	struct reference *r = &c->reference;
	if (!reference_is_integer(t) || t->rank != 1 || !t->elements)
		return complain("%s: '%s' must be a list of integers, one more than there are trees", r->path,
				t->name);
	r->trees = t->elements - 1;
	if (!check_count(c) || !reference_load(r, t))
		return false;
	r->begin = calloc(t->elements, sizeof *r->begin);
	if (!r->begin)
		return complain("%s: no memory for '%s'", r->path, t->name);
	for (size_t i = 0; i < t->elements; i++)
		r->begin[i] = reference_integer(t, i);
	return true;
}

/* Refuses a reference whose trees have other nodes or another root than those of the input. */
static bool read_trees(struct comparison *c)
{
	struct reference *r = &c->reference;
	for (size_t i = 0; i < r->tensors; i++)
		if (strcmp(r->tensor[i].name, BEGIN_NAME) == 0 && !take_begin(c, &r->tensor[i]))
			return false;
	if (!check_count(c))
		return false;
	for (size_t i = 0; r->begin && i < r->trees; i++)
		if (!check_begin(c, i, r->begin[i], r->begin[i + 1]) || (r->root && !check_root(c, i, r->root[i])))
			return false;
	return true;
}

/* --- rows --- */

/* How many of the first trees have `nodes` nodes together; SIZE_MAX = there is no such number. */
static size_t trees_with(const struct trees *t, uint64_t nodes)
{
	size_t low = 0, high = t->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->begin[middle] < nodes)
			low = middle + 1;
		else
			high = middle;
	}
	return t->begin[low] == nodes ? low : SIZE_MAX;
}

static size_t rows_of(const struct comparison *c, const struct reference_tensor *t, const struct pair *p)
{
	return is_single(c, &p->quantity, t) ? 1 : t->shape[0];
}

static bool refuse_rows(const struct comparison *c, const struct reference_tensor *t, const struct pair *p,
			size_t trees, uint64_t nodes, const char *whose)
{
	return complain(
	    "%s: '%s' has %zu rows, but %s has %zu trees with %llu nodes; rows of the first trees "
	    "only must be all of their nodes, or given with --at root",
	    c->reference.path, p->quantity.name, rows_of(c, t, p), whose, trees, (unsigned long long)nodes);
}

/* The reference contains its number of trees. */
static bool check_rows(const struct comparison *c, const struct reference_tensor *t, struct pair *p)
{
	const struct reference *r = &c->reference;
	uint64_t nodes = c->trees.begin[r->trees];
	p->trees = r->trees;
	p->roots = !(r->begin && rows_of(c, t, p) == nodes && c->options->rows != ROWS_ROOT);
	if (!p->roots || (rows_of(c, t, p) == r->trees && c->options->rows != ROWS_ALL))
		return true;
	return refuse_rows(c, t, p, r->trees, nodes, r->path);
}

/* The number of rows decides: the nodes of all trees, a row for each tree, or the nodes of the first
 * trees. */
static bool guess_rows(const struct comparison *c, const struct reference_tensor *t, struct pair *p)
{
	size_t rows = rows_of(c, t, p), trees = trees_with(&c->trees, rows);
	int at = c->options->rows;
	bool nodes = trees != SIZE_MAX, roots = rows == c->trees.n;
	if (at == ROWS_AUTO && nodes && roots && trees != rows)
		return complain(
		    "%s: '%s' has %zu rows: of all roots with --at root, of the nodes of the first "
		    "trees (%zu) with --at all",
		    c->reference.path, p->quantity.name, rows, trees);
	p->roots = at == ROWS_ROOT ? rows <= c->trees.n : at == ROWS_AUTO && roots && !nodes;
	p->trees = p->roots ? rows : trees;
	if (p->roots || (at != ROWS_ROOT && nodes))
		return true;
	return refuse_rows(c, t, p, c->trees.n, c->trees.begin[c->trees.n], c->input);
}

static bool find_rows(const struct comparison *c, const struct reference_tensor *t, struct pair *p)
{
	if (!rows_of(c, t, p))
		return complain("%s: '%s' has no rows", c->reference.path, p->quantity.name);
	return c->reference.trees ? check_rows(c, t, p) : guess_rows(c, t, p);
}

/* --- pairs --- */

static bool add_pair(struct comparison *c, const struct quantity *q, size_t tensor)
{
	struct reference_tensor *t = &c->reference.tensor[tensor];
	struct pair *p = &c->pair[c->pairs];
	*p = (struct pair){.quantity = *q, .tensor = tensor};
	for (size_t i = 0; i < c->pairs; i++)
		if (c->pair[i].quantity.source == q->source)
			return complain("%s: has two tensors '%s'", c->reference.path, q->name);
	if (!fits_quantity(c, q, t))
		return refuse_shape(c, q, t);
	if (!find_rows(c, t, p) || !reference_load(&c->reference, t))
		return false;
	if (p->trees > c->covered)
		c->covered = p->trees;
	c->pairs++;
	return true;
}

static bool refuse_wanted(const struct comparison *c, const char *where)
{
	return complain("--tensor '%s': there is nothing of that name in %s", c->options->tensor, where);
}

/* Matches a reference without names. A text is compared with the first output that fits; an array with the
 * only state or output that fits. */
static bool match_unnamed(struct comparison *c)
{
	const struct quantity *found = NULL;
	const struct reference_tensor *t = c->reference.tensor;
	bool text = reference_is_text(&c->reference);
	char shape[256];
	if (c->options->tensor) {
		found = find_quantity(c, c->options->tensor);
		return found ? add_pair(c, found, 0) : refuse_wanted(c, c->model);
	}
	for (size_t i = 0; i < c->quantities; i++) {
		const struct quantity *q = &c->quantity[i];
		if (!fits_quantity(c, q, t) || (text && (q->is_state || found)))
			continue;
		if (found)
			return complain("%s: '%s' and '%s' have its shape: say which with --tensor NAME",
					c->reference.path, found->name, q->name);
		found = q;
	}
	if (found)
		return add_pair(c, found, 0);
	return complain("%s: is %s, which fits no %s of the model", c->reference.path,
			shape_text(shape, sizeof shape, t->shape, t->rank, ""),
			text ? "output" : "state or output");
}

/* Matches a tensor with all quantities of its name. Locals of one name may differ in shape between bodies;
 * a tensor that fits none of them is ignored, and listed. */
static bool match_tensor(struct comparison *c, size_t tensor)
{
	const struct reference_tensor *t = &c->reference.tensor[tensor];
	size_t before = c->pairs;
	for (size_t i = 0; i < c->quantities; i++) {
		const struct quantity *q = &c->quantity[i];
		if (!has_name(c, q, t->name) || (q->is_local && !fits_quantity(c, q, t)))
			continue;
		if (!add_pair(c, q, tensor))
			return false;
	}
	if (c->pairs == before)
		c->ignored[c->ignored_n++] = t->name;
	return true;
}

/* Matches tensors by their names; those that the model does not have are listed. */
static bool match_named(struct comparison *c)
{
	const struct reference *r = &c->reference;
	const char *wanted = c->options->tensor;
	c->ignored = calloc(r->tensors + 1, sizeof *c->ignored);
	if (!c->ignored)
		return complain("no memory for %zu tensors", r->tensors);
	if (wanted && !find_quantity(c, wanted))
		return refuse_wanted(c, c->model);
	for (size_t i = 0; i < r->tensors; i++) {
		const char *name = r->tensor[i].name;
		if (strcmp(name, BEGIN_NAME) == 0 || (wanted && strcmp(name, wanted) != 0))
			continue;
		if (!match_tensor(c, i))
			return false;
	}
	return c->pairs || !wanted || refuse_wanted(c, r->path);
}

static bool refuse_nothing(const struct comparison *c)
{
	char names[512] = "";
	size_t n = 0;
	for (size_t i = 0; i < c->quantities && n < sizeof names; i++)
		n += snprintf(names + n, sizeof names - n, "%s'%s'", i ? ", " : "", c->quantity[i].name);
	return complain(
	    "%s: nothing can be compared: none of its %zu tensors is named as a state or an output of "
	    "the model, which are %s",
	    c->reference.path, c->reference.tensors, names);
}

bool match_reference(struct comparison *c)
{
	const struct reference *r = &c->reference;
	if (!list_quantities(c) || !read_trees(c))
		return false;
	bool unnamed = r->tensors == 1 && !*r->tensor[0].name;
	if (!(unnamed ? match_unnamed(c) : match_named(c)))
		return false;
	return c->pairs || refuse_nothing(c);
}

const struct pair *match_classes(const struct comparison *c)
{
	return c->reference.class ? &c->pair[0] : NULL;
}
