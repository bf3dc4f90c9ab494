/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Results of runs, collected as tensors. */
#include "api/objects.h"
#include "io/write.h"

#include <string.h>

static const char begin_name[] = "structure_begin";

/* A state or an output of the program. */
struct column {
	const char *name;
	size_t elements, rank;
	const size_t *shape;
	bool at_root;
	enum dtype dtype;
	void *rows;
	size_t capacity; /* bytes */
};

struct esp_export {
	struct object object;
	struct esp_program *program;
	struct column *column; /* states, then outputs */
	size_t states, columns;
	size_t structures, nodes;
	int64_t *begin;	 /* structures + 1, once there is one */
	size_t capacity; /* bytes */
};

static void *resize_bytes(const esp_export *e, void *p, size_t old_size, size_t new_size)
{
	const struct allocator *a = &e->object.context->allocator;
	return a->resize(a->context, p, old_size, new_size);
}

static void destroy_export(void *object)
{
	esp_export *e = object;
	for (size_t i = 0; e->column && i < e->columns; i++)
		if (e->column[i].rows)
			resize_bytes(e, e->column[i].rows, e->column[i].capacity, 0);
	if (e->column)
		resize_bytes(e, e->column, e->columns * sizeof *e->column, 0);
	if (e->begin)
		resize_bytes(e, e->begin, e->capacity, 0);
	object_release(e->program);
}

static bool report_no_memory(struct diags *diags, const char *what)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0},
			"write what there is, and begin another export", "no memory for %s", what);
}

/* --- creation --- */

static void describe_columns(esp_export *e)
{
	const esp_program *p = e->program;
	for (size_t i = 0; i < e->states; i++) {
		const esp_state *s = &p->states[i];
		e->column[i] = (struct column){
		    .name = s->name, .dtype = p->interface.state[i].dtype, .elements = s->elements, .rank = s->rank, .shape = s->shape};
	}
	for (size_t i = e->states; i < e->columns; i++) {
		const esp_output *o = &p->outputs[i - e->states];
		e->column[i] = (struct column){.name = o->name,
					       .dtype = p->interface.output[i - e->states].dtype,
					       .elements = o->elements,
					       .rank = o->rank,
					       .shape = o->shape,
					       .at_root = o->at_root};
	}
}

/* Refuses names that exported files use for something else. */
static bool check_names(const esp_export *e, struct diags *diags)
{
	for (size_t i = 0; i < e->columns; i++) {
		const char *name = e->column[i].name;
		if (strcmp(name, begin_name) == 0 || strcmp(name, "__metadata__") == 0)
			return diag_add(diags, DIAG_MODEL_DUPLICATE, (struct diag_at){0},
					"give the state or output of the model another name",
					"'%s' cannot be exported: exports have something else of that name",
					name);
	}
	return true;
}

static esp_export *new_export(esp_program *p, struct diags *diags)
{
	esp_export *e = object_new(p->object.context, sizeof *e, destroy_export, diags);
	if (!e)
		return NULL;
	e->program = object_hold(p);
	e->states = p->interface.states;
	e->columns = e->states + p->interface.outputs;
	e->column = resize_bytes(e, NULL, 0, e->columns * sizeof *e->column);
	if (e->column) {
		describe_columns(e);
		if (check_names(e, diags))
			return e;
	} else {
		report_no_memory(diags, "an export");
	}
	object_release(e);
	return NULL;
}

esp_status esp_export_create(esp_program *program, esp_export **out, esp_error **error)
{
	struct api_call call = api_begin(program);
	esp_export *e = NULL;
	if (api_need(&call, program) && api_need(&call, out))
		e = new_export(program, &call.diags);
	if (out)
		*out = e;
	return api_end(&call, e, error);
}

void esp_export_free(esp_export *e)
{
	object_release(e);
}

/* --- adding --- */

/* Reserves so many bytes in all; capacities at least double. */
static bool reserve_bytes(const esp_export *e, void **at, size_t *capacity, size_t wanted,
			  struct diags *diags)
{
	if (wanted <= *capacity)
		return true;
	size_t n = wanted > 2 * *capacity ? wanted : 2 * *capacity;
	void *p = n <= PTRDIFF_MAX ? resize_bytes(e, *at, *capacity, n) : NULL;
	if (!p)
		return report_no_memory(diags, "the results of a run");
	*at = p;
	*capacity = n;
	return true;
}

static size_t row_bytes(const struct column *c)
{
	return c->elements * (size_t)dtype_traits_of(c->dtype)->bytes;
}

static size_t rows_of(const struct column *c, size_t structures, size_t nodes)
{
	return c->at_root ? structures : nodes;
}

static bool reserve_column(esp_export *e, struct column *c, size_t structures, size_t nodes,
			   struct diags *diags)
{
	void *at = c->rows;
	size_t bytes, rows = rows_of(c, e->structures + structures, e->nodes + nodes);
	if (__builtin_mul_overflow(rows, row_bytes(c), &bytes))
		bytes = SIZE_MAX;
	bool ok = reserve_bytes(e, &at, &c->capacity, bytes, diags);
	c->rows = at;
	return ok;
}

static bool reserve_all(esp_export *e, size_t structures, size_t nodes, struct diags *diags)
{
	void *at = e->begin;
	bool ok =
	    reserve_bytes(e, &at, &e->capacity, (e->structures + structures + 1) * sizeof *e->begin, diags);
	e->begin = at;
	for (size_t i = 0; ok && i < e->columns; i++)
		ok = reserve_column(e, &e->column[i], structures, nodes, diags);
	return ok;
}

static void copy_row(struct column *c, size_t row, const void *from)
{
	memcpy((char *)c->rows + row * row_bytes(c), from, row_bytes(c));
}

/* Appends the rows of one structure. */
static void append_structure(esp_export *e, const esp_session *s, size_t structure)
{
	size_t nodes = session_nodes(s, structure);
	for (size_t i = 0; i < e->columns; i++) {
		struct column *c = &e->column[i];
		size_t output = i - e->states;
		if (c->at_root)
			copy_row(c, e->structures, esp_session_output_elements(s, output, structure, 0));
		else
			for (size_t n = 0; n < nodes; n++)
				copy_row(c, e->nodes + n,
					 i < e->states ? esp_session_state_elements(s, i, structure, n)
						       : esp_session_output_elements(s, output, structure, n));
	}
	e->begin[e->structures++] = (int64_t)e->nodes;
	e->nodes += nodes;
	e->begin[e->structures] = (int64_t)e->nodes;
}

static bool add_results(esp_export *e, const esp_session *s, struct diags *diags)
{
	const char *function = "esp_export_add";
	size_t structures, nodes = 0;
	if (session_program(s) != e->program)
		return api_bad_argument(diags, function, "session",
					"belongs to another program than the export");
	if (!session_structures(s, &structures))
		return api_bad_argument(diags, function, "session",
					"has no results: there was no run, or the last one failed");
	for (size_t i = 0; i < structures; i++)
		nodes += session_nodes(s, i);
	if (!reserve_all(e, structures, nodes, diags))
		return false;
	e->begin[e->structures] = (int64_t)e->nodes;
	for (size_t i = 0; i < structures; i++)
		append_structure(e, s, i);
	return true;
}

esp_status esp_export_add(esp_export *export, const esp_session *session, esp_error **error)
{
	struct api_call call = api_begin(export ? (const void *)export : session);
	bool ok =
	    api_need(&call, export) && api_need(&call, session) && add_results(export, session, &call.diags);
	return api_end(&call, ok, error);
}

/* --- writing --- */

static const int64_t nothing[1];

static struct io_tensor begin_tensor(const esp_export *e)
{
	return (struct io_tensor){.name = begin_name,
				  .dtype = DTYPE_I64,
				  .rank = 1,
				  .shape = {(int64_t)e->structures + 1},
				  .values = e->begin ? e->begin : nothing};
}

static struct io_tensor column_tensor(const esp_export *e, size_t i)
{
	const struct column *c = &e->column[i];
	struct io_tensor t = {
	    .name = c->name, .dtype = c->dtype, .rank = 1 + (int)c->rank, .values = c->rows};
	t.shape[0] = (int64_t)rows_of(c, e->structures, e->nodes);
	for (size_t d = 0; d < c->rank; d++)
		t.shape[d + 1] = (int64_t)c->shape[d];
	return t;
}

struct writing {
	const esp_export *export;
	struct arena *arena;
	struct diags *diags;
	const char *path, *tensor;
};

static bool write_all(void *job)
{
	struct writing *w = job;
	const esp_export *e = w->export;
	struct io_tensor *t = ARENA_ARRAY(w->arena, struct io_tensor, e->columns + 1);
	t[0] = begin_tensor(e);
	for (size_t i = 0; i < e->columns; i++)
		t[i + 1] = column_tensor(e, i);
	return io_safetensors_write(w->arena, w->diags, w->path, t, (int)e->columns + 1);
}

static bool write_one(void *job)
{
	struct writing *w = job;
	const esp_export *e = w->export;
	struct io_tensor t = begin_tensor(e);
	for (size_t i = 0; strcmp(t.name, w->tensor) != 0 && i < e->columns; i++)
		t = column_tensor(e, i);
	if (strcmp(t.name, w->tensor) != 0)
		return api_bad_argument(w->diags, "esp_export_npy", "tensor",
					"must be a state or an output of the program, or structure_begin");
	return io_npy_write(w->arena, w->diags, w->path, &t);
}

static bool write_guarded(bool (*work)(void *), const esp_export *e, const char *tensor, const char *path,
			  struct diags *diags)
{
	struct arena arena;
	arena_init(&arena, &e->object.context->allocator);
	bool ok = api_guarded(&arena, diags, work, &(struct writing){e, &arena, diags, path, tensor});
	arena_free(&arena);
	return ok;
}

esp_status esp_export_safetensors(const esp_export *export, const char *path, esp_error **error)
{
	struct api_call call = api_begin(export);
	bool ok = api_need(&call, export) && api_need(&call, path) &&
		  write_guarded(write_all, export, NULL, path, &call.diags);
	return api_end(&call, ok, error);
}

esp_status esp_export_npy(const esp_export *export, const char *tensor, const char *path, esp_error **error)
{
	struct api_call call = api_begin(export);
	bool ok = api_need(&call, export) && api_need(&call, tensor) && api_need(&call, path) &&
		  write_guarded(write_one, export, tensor, path, &call.diags);
	return api_end(&call, ok, error);
}
