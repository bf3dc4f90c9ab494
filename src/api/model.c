#include "api/internal.h"
#include "io/file.h"

static void destroy(void *object)
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
};

/* The text is kept: the graph's nodes remember the lines they came from. */
static bool read_model(void *job)
{
	struct reading *r = job;
	struct arena *arena = &r->model->arena;
	const char *file = arena_string(arena, r->file);
	const char *text =
	    r->text ? arena_text(arena, r->text, r->length) : io_read_file(arena, r->diags, file, &r->length);
	if (text)
		r->model->graph = ra_parse(arena, r->diags, file, text, r->length);
	return r->model->graph;
}

static esp_model *new_model(esp_context *context, struct reading *r)
{
	esp_model *m = r->model = object_new(context, sizeof *m, destroy, r->diags);
	if (!m)
		return NULL;
	arena_init(&m->arena, &context->allocator);
	if (api_guarded(&m->arena, r->diags, read_model, r))
		return m;
	object_release(m);
	return NULL;
}

esp_status esp_model_read(esp_context *context, const char *path, esp_model **out, esp_error **error)
{
	struct diags diags = api_begin(context);
	esp_model *m = NULL;
	if (api_need(&diags, context) && api_need(&diags, path) && api_need(&diags, out))
		m = new_model(context, &(struct reading){.diags = &diags, .file = path});
	if (out)
		*out = m;
	return api_end(&diags, m, error);
}

esp_status esp_model_parse(esp_context *context, const char *name, const char *text, size_t length,
			   esp_model **out, esp_error **error)
{
	struct diags diags = api_begin(context);
	esp_model *m = NULL;
	if (api_need(&diags, context) && api_need(&diags, name) && api_need(&diags, text) &&
	    api_need(&diags, out))
		m = new_model(context, &(struct reading){NULL, &diags, name, text, length});
	if (out)
		*out = m;
	return api_end(&diags, m, error);
}

void esp_model_free(esp_model *m)
{
	object_release(m);
}

esp_model_facts esp_model_describe(const esp_model *m)
{
	static const char *const structures[] = {
	    [RA_SEQUENCE] = "sequence", [RA_TREE] = "tree", [RA_DAG] = "dag"};
	if (!m)
		return (esp_model_facts){0};
	const struct ra_model *g = m->graph;
	return (esp_model_facts){
	    .name = g->name,
	    .structure = structures[g->structure.kind],
	    .children = g->structure.children,
	    .inputs = g->inputs.n,
	    .params = g->params.n,
	    .states = g->states.n,
	    .outputs = g->outputs.n,
	};
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
	struct diags diags = api_begin(model);
	char *copy = NULL;
	if (api_need(&diags, model) && api_need(&diags, text)) {
		struct arena arena;
		arena_init(&arena, &model->object.context->allocator);
		struct printing p = {model->graph, str_in(&arena)};
		if (api_guarded(&arena, &diags, print_model, &p))
			copy = api_text(model->object.context, str_text(&p.text), &diags);
		arena_free(&arena);
	}
	if (text)
		*text = copy;
	return api_end(&diags, copy, error);
}
