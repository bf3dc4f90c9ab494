#include "api/internal.h"

static void destroy(void *object)
{
	esp_binding *b = object;
	rt_binding_free(&b->packed);
	object_release(b->program);
}

struct reading {
	const esp_program *program;
	const struct io_safetensors *file;
};

static bool read_param(void *context, int param, int64_t first, int64_t count, float *to, struct diags *diags)
{
	const struct reading *r = context;
	int tensor = io_safetensors_find(r->file, r->program->image.param[param].name);
	return io_safetensors_read_f32(r->file, diags, tensor, first, count, to);
}

/* The program's sizes came from other weights, perhaps; these must give the same. */
static bool check_sizes(const esp_program *p, const struct io_safetensors *file, const int64_t *sizes,
			struct diags *diags)
{
	bool ok = true;
	for (size_t i = 0; i < p->model->graph->symbols.n; i++)
		if (sizes[i] != p->sizes[i])
			ok = diag_add(diags, DIAG_SIZE_DIFFERS, (struct diag_at){.file = file->path},
				      "make a program for these weights",
				      "with these weights %s is %lld, the program was made for %lld",
				      p->model->graph->symbols.at[i].name, (long long)sizes[i],
				      (long long)p->sizes[i]);
	return ok;
}

static bool check_weights(const esp_program *p, const struct io_safetensors *file, struct diags *diags)
{
	const struct allocator *a = diags->allocator;
	size_t bytes = (p->model->graph->symbols.n + 1) * sizeof(int64_t);
	int64_t *sizes = a->resize(a->context, NULL, 0, bytes);
	if (!sizes)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for sizes");
	bool ok = ra_bind(p->model->graph, diags, file->path, file->tensor, file->n, sizes) &&
		  check_sizes(p, file, sizes, diags);
	a->resize(a->context, sizes, bytes, 0);
	return ok;
}

static esp_binding *new_binding(esp_program *p, const esp_weights *w, struct diags *diags)
{
	if (!check_weights(p, w->file, diags) || !program_prepare(p, diags))
		return NULL;
	esp_binding *b = object_new(p->object.context, sizeof *b, destroy, diags);
	if (!b)
		return NULL;
	b->program = object_hold(p);
	double begin = api_clock();
	struct rt_source source = {read_param, &(struct reading){p, w->file}};
	if (rt_bind(&b->packed, &p->object.context->allocator, &p->image, &source, diags)) {
		b->seconds = api_clock() - begin;
		return b;
	}
	object_release(b);
	return NULL;
}

esp_status esp_binding_create(esp_program *program, const esp_weights *weights, esp_binding **out,
			      esp_error **error)
{
	struct diags diags = api_begin(program ? (const void *)program : weights);
	esp_binding *b = NULL;
	if (api_need(&diags, program) && api_need(&diags, weights) && api_need(&diags, out))
		b = new_binding(program, weights, &diags);
	if (out)
		*out = b;
	return api_end(&diags, b, error);
}

void esp_binding_free(esp_binding *b)
{
	object_release(b);
}
