/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <string.h>

/* --- names of files --- */

static void destroy_nothing(void *object)
{
	(void)object;
}

struct file_name *file_name_new(struct esp_context *context, const char *text, struct diags *diags)
{
	struct file_name *n = object_new(context, sizeof *n + strlen(text) + 1, destroy_nothing, diags);
	if (n)
		strcpy(n->text, text);
	return n;
}

static void release_files(esp_forest *f)
{
	while (f->files)
		object_release(f->file[--f->files]);
}

static bool reserve_file(esp_forest *f, struct diags *diags)
{
	const struct allocator *a = &f->object.context->allocator;
	size_t capacity = f->file_capacity ? 2 * f->file_capacity : 1;
	if (f->files < f->file_capacity)
		return true;
	struct file_name **p =
	    a->resize(a->context, f->file, f->file_capacity * sizeof *p, capacity * sizeof *p);
	if (!p)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for the name of a file");
	f->file = p;
	f->file_capacity = capacity;
	return true;
}

/* Holds a name once for adjacent structures: most of those of a file are added one after the other. */
bool forest_hold_file(esp_forest *f, struct file_name *name, struct diags *diags)
{
	if (f->files && f->file[f->files - 1] == name)
		return true;
	if (!reserve_file(f, diags))
		return false;
	f->file[f->files++] = object_hold(name);
	return true;
}

/* --- forests --- */

static void free_data(esp_forest *f)
{
	const struct allocator *a = &f->object.context->allocator;
	for (int i = 0; f->data && f->capacities && i < f->program->interface.inputs; i++) {
		if (f->data[i])
			a->resize(a->context, f->data[i], f->capacities[i], 0);
		f->data[i] = NULL;
		f->capacities[i] = 0;
	}
}

static void free_files(esp_forest *f)
{
	const struct allocator *a = &f->object.context->allocator;
	release_files(f);
	if (f->file)
		a->resize(a->context, f->file, f->file_capacity * sizeof *f->file, 0);
	f->file = NULL;
	f->file_capacity = 0;
}

static void free_structures(esp_forest *f)
{
	free_files(f);
	free_data(f);
	lin_collect_free(&f->collect);
	lin_walk_free(&f->walk);
}

static void destroy_forest(void *object)
{
	esp_forest *f = object;
	struct allocator a = f->object.context->allocator;
	int inputs = f->program->interface.inputs;
	free_structures(f);
	if (f->data)
		a.resize(a.context, f->data, (inputs + 1) * sizeof *f->data, 0);
	if (f->capacities)
		a.resize(a.context, f->capacities, (inputs + 1) * sizeof *f->capacities, 0);
	object_release(f->program);
}

static void *take_zeroed(const struct allocator *a, size_t bytes)
{
	void *p = a->resize(a->context, NULL, 0, bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

esp_forest *forest_new(esp_program *p, struct diags *diags)
{
	const struct allocator *a = &p->object.context->allocator;
	esp_forest *f = object_new(p->object.context, sizeof *f, destroy_forest, diags);
	if (!f)
		return NULL;
	f->program = object_hold(p);
	lin_collect_init(&f->collect, a);
	lin_walk_init(&f->walk, a);
	f->data = take_zeroed(a, (p->interface.inputs + 1) * sizeof *f->data);
	f->capacities = take_zeroed(a, (p->interface.inputs + 1) * sizeof *f->capacities);
	if (f->data && f->capacities)
		return f;
	diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a forest");
	object_release(f);
	return NULL;
}

esp_status esp_forest_create(esp_program *program, esp_forest **out, esp_error **error)
{
	struct api_call call = api_begin(program);
	esp_forest *f = NULL;
	if (api_need(&call, program) && api_need(&call, out))
		f = forest_new(program, &call.diags);
	if (out)
		*out = f;
	return api_end(&call, f, error);
}

void esp_forest_free(esp_forest *f)
{
	object_release(f);
}

void esp_forest_clear(esp_forest *f)
{
	if (!f)
		return;
	lin_collect_clear(&f->collect);
	release_files(f);
}

void esp_forest_trim(esp_forest *f)
{
	if (f)
		free_structures(f);
}

/* --- rows --- */

size_t forest_row_bytes(const struct image_input *in)
{
	return (in->token ? 1 : (size_t)in->elements) * (size_t)dtype_traits_of(in->dtype)->bytes;
}

static int64_t rows_of(const esp_forest *f, int input)
{
	return f->program->interface.input[input].on_edge ? f->collect.edges : f->collect.nodes;
}

void *forest_rows_end(const esp_forest *f, int input)
{
	return (char *)f->data[input] + (size_t)rows_of(f, input) * forest_row_bytes(&f->program->interface.input[input]);
}

bool forest_reserve(esp_forest *f, int input, size_t rows, struct diags *diags)
{
	const struct allocator *a = &f->object.context->allocator;
	size_t old = f->capacities[input], bytes;
	bool counted = !__builtin_mul_overflow(rows_of(f, input) + rows, forest_row_bytes(&f->program->interface.input[input]), &bytes);
	if (counted && bytes <= old)
		return true;
	size_t capacity = bytes > 2 * old ? bytes : 2 * old;
	void *p =
	    counted && capacity <= PTRDIFF_MAX ? a->resize(a->context, f->data[input], old, capacity) : NULL;
	if (!p)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for the data of nodes and edges");
	f->data[input] = p;
	f->capacities[input] = capacity;
	return true;
}

/* Removes the rows that a structure has of an input: moves the later rows down. */
static void remove_rows(esp_forest *f, const struct lin_forest *all, int64_t structure, int input)
{
	bool edges = f->program->interface.input[input].on_edge;
	size_t bytes = forest_row_bytes(&f->program->interface.input[input]);
	int64_t first = all->input_begin[structure];
	int64_t end = structure + 1 < all->inputs ? all->input_begin[structure + 1] : all->nodes;
	int64_t from = edges ? all->child_begin[end] : end, to = edges ? all->child_begin[first] : first;
	char *rows = f->data[input];
	if (from < rows_of(f, input))
		memmove(rows + to * bytes, rows + from * bytes, (rows_of(f, input) - from) * bytes);
}

void esp_forest_remove(esp_forest *f, size_t structure)
{
	if (structure >= esp_forest_structures(f))
		return;
	const struct lin_forest all = lin_collect_forest(&f->collect);
	for (int i = 0; i < f->program->interface.inputs; i++)
		remove_rows(f, &all, (int64_t)structure, i);
	lin_collect_remove(&f->collect, (int64_t)structure);
}

/* --- queries --- */

size_t esp_forest_structures(const esp_forest *f)
{
	return f ? f->collect.inputs : 0;
}

size_t esp_forest_nodes(const esp_forest *f, size_t structure)
{
	if (structure >= esp_forest_structures(f))
		return 0;
	const int32_t *begin = f->collect.input_begin.at;
	bool last = structure + 1 == esp_forest_structures(f);
	return (last ? f->collect.nodes : begin[structure + 1]) - begin[structure];
}

size_t esp_forest_root(const esp_forest *f, size_t structure)
{
	if (structure >= esp_forest_structures(f))
		return 0;
	const struct lin_forest all = lin_collect_forest(&f->collect);
	return all.root[structure] - all.input_begin[structure];
}

int32_t esp_forest_child(const esp_forest *f, size_t structure, size_t node, size_t slot)
{
	if (node >= esp_forest_nodes(f, structure))
		return -1;
	const struct lin_forest all = lin_collect_forest(&f->collect);
	int32_t first = all.input_begin[structure];
	const int32_t *edges = &all.child_begin[first + node];
	return slot < (size_t)(edges[1] - edges[0]) ? all.children[edges[0] + slot] - first : -1;
}

struct rt_minibatch forest_minibatch(const esp_forest *f)
{
	return (struct rt_minibatch){lin_collect_forest(&f->collect), (const void *const *)f->data};
}

esp_status esp_forest_check(const esp_forest *forest, esp_error **error)
{
	struct api_call call = api_begin(forest);
	bool ok = api_need(&call, forest);
	if (ok) {
		struct rt_minibatch m = forest_minibatch(forest);
		ok = rt_check_minibatch(&forest->object.context->allocator, &forest->program->interface, &m,
					&call.diags);
	}
	return api_end(&call, ok, error);
}
