/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "io/file.h"
#include "io/text.h"

#include <string.h>

static void destroy_model(void *object)
{
	esp_model *m = object;
	arena_free(&m->arena);
}

struct reading {
	esp_model *model;
	struct diags *diags;
	const char *file;
	const char *text; /* NULL = the file is read */
	size_t length;
	const struct ra_keep *keep;
	size_t keeps;
	const esp_read_options *options; /* of a file of a graph; NULL = none */
	struct arena arena;		 /* bytes of the file, until the model is made */
};

static esp_model_facts facts_of(const struct ra_model *g)
{
	return (esp_model_facts){
	    .name = g->name,
	    .structure = ra_structure_words[g->structure.kind],
	    .children = g->structure.children,
	    .inputs = g->inputs.n,
	    .params = g->params.n,
	    .states = g->states.n,
	    .outputs = g->outputs.n,
	};
}

/* Bodies of cases are numbered from ESP_BODY_CASE on. */
static int number_of(const struct ra_model *g, int traversal, int which)
{
	bool down = g->traversals.at[traversal].down;
	if (which >= RA_CASES)
		return ESP_BODY_CASE + which - RA_CASES;
	return which == RA_LEAF ? (down ? ESP_BODY_ROOT : ESP_BODY_LEAF) : down ? ESP_BODY_BELOW : ESP_BODY_INNER;
}

static esp_local describe_local(struct arena *a, const struct ra_model *g, const struct ra_local *l)
{
	struct str shape = str_in(a);
	if (l->shape.rank)
		ra_shape_print(g, &l->shape, &shape);
	return (esp_local){.name = l->name,
			   .traversal = l->traversal,
			   .body = number_of(g, l->traversal, l->body),
			   .shape = str_text(&shape),
			   .statement = l->assigned.text,
			   .line = l->assigned.line};
}

static void describe_locals(esp_model *m)
{
	m->locals = ARENA_ARRAY(&m->arena, esp_local, m->graph->locals.n + 1);
	for (size_t i = 0; i < m->graph->locals.n; i++)
		m->locals[i] = describe_local(&m->arena, m->graph, &m->graph->locals.at[i]);
}

/* The text is kept: the graph's nodes remember the lines they came from. */
static bool read_text(struct reading *r, const char *file)
{
	esp_model *m = r->model;
	if (r->options)
		return diag_add(r->diags, DIAG_ONNX_CHOICE, (struct diag_at){.file = file}, NULL,
				"'%s' is a model text, and the options of reading are for files of graphs", file);
	m->text = arena_text(&m->arena, r->text, r->length);
	m->length = r->length;
	if (io_check_mark(file, m->text, m->length, r->diags))
		m->graph = ra_parse_keeping(&m->arena, r->diags, file, m->text, m->length, r->keep, r->keeps);
	if (m->graph)
		describe_locals(m);
	return m->graph;
}

static bool read_model(void *job)
{
	struct reading *r = job;
	const char *file = arena_string(&r->model->arena, r->file);
	r->arena.escape = r->model->arena.escape;
	if (!r->text && !(r->text = io_read_file(&r->arena, r->diags, file, &r->length)))
		return false;
	const struct graph_format *format = model_find_format(file, r->text, r->length);
	return format ? model_read_graph(r->model, r->diags, format, file, r->text, r->length, r->options) : read_text(r, file);
}

static esp_model *new_model(esp_context *context, struct reading *r)
{
	esp_model *m = r->model = object_new(context, sizeof *m, destroy_model, r->diags);
	if (!m)
		return NULL;
	arena_init(&m->arena, &context->allocator);
	arena_init(&r->arena, &context->allocator);
	bool ok = api_guarded(&m->arena, r->diags, read_model, r);
	arena_free(&r->arena);
	if (ok) {
		m->facts = facts_of(m->graph);
		return m;
	}
	object_release(m);
	return NULL;
}

esp_model *model_keeping(const esp_model *m, const struct ra_keep *keep, size_t n, struct diags *diags)
{
	return new_model(m->object.context,
			 &(struct reading){.diags = diags, .file = m->graph->file, .text = m->text, .length = m->length, .keep = keep, .keeps = n});
}

esp_model *model_of(esp_context *context, const struct arena *arena, struct ra_model *graph,
		    struct diags *diags)
{
	esp_model *m = object_new(context, sizeof *m, destroy_model, diags);
	if (!m)
		return NULL;
	m->arena = *arena;
	m->graph = graph;
	m->facts = facts_of(graph);
	return m;
}

esp_status esp_model_read(esp_context *context, const char *path, esp_model **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_model *m = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		m = new_model(context, &(struct reading){.diags = &call.diags, .file = path});
	if (out)
		*out = m;
	return api_end(&call, m, error);
}

esp_status esp_model_read_with(esp_context *context, const char *path, const esp_read_options *options, esp_model **out,
			       esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_read_options o = {0};
	esp_model *m = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out) &&
	    (!options || api_take_struct(&call.diags, __func__, "options", options, &o, sizeof o)))
		m = new_model(context, &(struct reading){.diags = &call.diags, .file = path, .options = options ? &o : NULL});
	if (out)
		*out = m;
	return api_end(&call, m, error);
}

esp_status esp_model_parse(esp_context *context, const char *name, const char *text, size_t length,
			   esp_model **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_model *m = NULL;
	if (api_need(&call, context) && api_need(&call, name) && api_need(&call, text) &&
	    api_need(&call, out))
		m = new_model(context, &(struct reading){.diags = &call.diags, .file = name, .text = text, .length = length});
	if (out)
		*out = m;
	return api_end(&call, m, error);
}

void esp_model_free(esp_model *m)
{
	object_release(m);
}

const esp_model_facts *esp_model_describe(const esp_model *m)
{
	return m ? &m->facts : NULL;
}

const char *esp_model_dimension(const esp_model *m, size_t i)
{
	return m && i < ra_given_symbols(m->graph) ? m->graph->symbols.at[i].name : NULL;
}

static bool are_sizes(const struct ra_model *g, const int64_t *sizes)
{
	for (size_t i = 0; i < ra_given_symbols(g); i++)
		if (sizes[i] < 1 || sizes[i] > INT32_MAX)
			return false;
	return true;
}

/* Writes the shape of a parameter whose dimensions have these sizes; false without memory. */
static bool find_shape(const esp_model *m, const struct ra_shape *s, const int64_t *sizes, int64_t *shape, size_t capacity)
{
	const struct allocator *a = &m->object.context->allocator;
	size_t bytes = (m->graph->symbols.n + 1) * sizeof *sizes;
	int64_t *all = a->resize(a->context, NULL, 0, bytes);
	if (!all)
		return false;
	memcpy(all, sizes, ra_given_symbols(m->graph) * sizeof *sizes);
	ra_compute_sizes(m->graph, all);
	for (size_t d = 0; d < capacity && d < (size_t)s->rank; d++)
		shape[d] = ra_dim_value(&s->dim[d], all);
	a->resize(a->context, all, bytes, 0);
	return true;
}

const char *esp_model_param(const esp_model *m, size_t i, const int64_t *sizes, int64_t *shape,
			    size_t capacity, size_t *rank)
{
	if (!m || i >= m->graph->params.n)
		return NULL;
	const struct ra_param *p = &m->graph->params.at[i];
	if (rank)
		*rank = p->shape.rank;
	if (!sizes || !shape)
		return p->name;
	memset(shape, 0, (capacity < (size_t)p->shape.rank ? capacity : (size_t)p->shape.rank) * sizeof *shape);
	return !are_sizes(m->graph, sizes) || find_shape(m, &p->shape, sizes, shape, capacity) ? p->name : NULL;
}

esp_dtype esp_model_param_dtype(const esp_model *m, size_t i)
{
	return m && i < m->graph->params.n ? api_dtype(m->graph->params.at[i].dtype) : 0;
}

struct printing {
	const struct ra_model *graph;
	struct str text;
};

static bool print_model(void *job)
{
	struct printing *p = job;
	ra_print(p->graph, &p->text);
	return true;
}

esp_status esp_model_print(const esp_model *model, char **text, esp_error **error)
{
	struct api_call call = api_begin(model);
	char *copy = NULL;
	if (api_need(&call, model) && api_need(&call, text)) {
		struct arena arena;
		arena_init(&arena, &model->object.context->allocator);
		struct printing p = {model->graph, str_in(&arena)};
		if (api_guarded(&arena, &call.diags, print_model, &p))
			copy = api_text(model->object.context, str_text(&p.text), &call.diags);
		arena_free(&arena);
	}
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
