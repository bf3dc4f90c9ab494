/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Packed weights, and their exchange while sessions run. */
#include "api/objects.h"
#include "io/quantised.h"

#include <string.h>

/* --- reading --- */

bool binding_read_param(void *context, int param, int64_t first, int64_t count, void *to, struct diags *diags)
{
	const struct weights_reader *r = context;
	int tensor = io_safetensors_find(r->file, r->program->interface.param[param].name);
	enum dtype as = r->program->interface.param[param].dtype;
	return io_safetensors_read(r->file, diags, tensor, first, count, as, to);
}

/* Checks that these weights give the sizes that the program was made for, perhaps by other weights. */
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

static bool same_shape(const struct tensor_info *a, const struct tensor_info *b)
{
	return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Whether a parameter is the bound of a product, W*x. */
static bool is_bound(const struct tensor_info *t)
{
	return !t->rank && strncmp(t->name, "bound(", 6) == 0 && strchr(t->name, '*');
}

/* Whether a number can be the bound of what a product multiplies; those of quantised weights were read when they were opened. */
static bool check_bound(const struct io_safetensors *file, int tensor, struct diags *diags)
{
	const struct tensor_info *t = &file->tensor[tensor];
	float bound = 0;
	if (t->dtype == DTYPE_F32 && !t->rank && !io_safetensors_read_f32(file, diags, tensor, 0, 1, &bound))
		return false;
	return (bound > IO_QUANTISED_LEAST_BOUND && bound < IO_QUANTISED_LARGEST_BOUND) ||
	       diag_add(diags, DIAG_BAD_QUANTISED, (struct diag_at){.file = file->path}, "quantise these weights: espalier quantise",
			"'%.200s' is not one number of F32 above %g and below %g", t->name, IO_QUANTISED_LEAST_BOUND,
			IO_QUANTISED_LARGEST_BOUND);
}

/* Checks parameters by name and shape, for loaded programs, which have no model. */
static bool check_params(const esp_program *p, const struct io_safetensors *file, struct diags *diags)
{
	bool ok = true;
	for (int i = 0; i < p->interface.params; i++) {
		const struct tensor_info *t = &p->interface.param[i];
		int found = io_safetensors_find(file, t->name);
		if (found < 0)
			ok = diag_add(diags, DIAG_WEIGHT_MISSING, (struct diag_at){.file = file->path},
				      "bind the weights of the model that was compiled",
				      "%s has no tensor '%s'", file->path, t->name);
		else if (!same_shape(t, &file->tensor[found]))
			ok = diag_add(diags, DIAG_SIZE_DIFFERS, (struct diag_at){.file = file->path},
				      "compile the model for these weights",
				      "'%s' has not the shape that the program was made for", t->name);
		else if (!file->quantised && is_bound(t))
			ok &= check_bound(file, found, diags);
	}
	return ok;
}

/* Checks that there are the bounds that a program takes with its weights. */
static bool check_bounds(const esp_program *p, const struct io_safetensors *file, struct diags *diags)
{
	bool ok = true;
	for (int i = (int)p->model->graph->params.n; i < p->interface.params; i++)
		if (io_safetensors_find(file, p->interface.param[i].name) < 0)
			ok = diag_add(diags, DIAG_WEIGHT_MISSING, (struct diag_at){.file = file->path},
				      "quantise these weights, or make a program for them",
				      "%s has no tensor '%s', which the program takes with quantised weights", file->path,
				      p->interface.param[i].name);
	return ok;
}

struct fitting {
	const esp_program *program;
	const esp_weights *weights;
	struct arena arena;
	struct diags *diags;
};

static bool fit_model(void *job)
{
	struct fitting *f = job;
	return weights_fit_model(&f->arena, f->weights, f->program->model->graph, f->diags);
}

/* Checks that quantised weights are of the program's model. */
static bool check_model(const esp_program *p, const esp_weights *w, struct diags *diags)
{
	struct fitting f = {.program = p, .weights = w, .diags = diags};
	arena_init(&f.arena, &p->object.context->allocator);
	bool ok = api_guarded_deep(p->model->graph, &f.arena, diags, fit_model, &f);
	arena_free(&f.arena);
	return ok;
}

bool binding_check(const esp_program *p, const esp_weights *w, struct diags *diags)
{
	const struct io_safetensors *file = w->file;
	if (!p->model)
		return check_params(p, file, diags);
	const struct allocator *a = &p->object.context->allocator;
	size_t bytes = (p->model->graph->symbols.n + 1) * sizeof(int64_t);
	int64_t *sizes = a->resize(a->context, NULL, 0, bytes);
	if (!sizes)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for sizes");
	bool ok = ra_bind(p->model->graph, diags, file->path, file->tensor, file->own, sizes) &&
		  check_sizes(p, file, sizes, diags) && check_bounds(p, file, diags) &&
		  (!file->quantised || check_model(p, w, diags));
	a->resize(a->context, sizes, bytes, 0);
	return ok;
}

/* --- packing --- */

static void destroy_packed(void *object)
{
	struct packed *p = object;
	rt_binding_free(&p->weights);
	object_release((void *)p->source);
}

bool binding_pack(struct rt_binding *to, const esp_program *p, const struct image *image,
		  const esp_weights *w, struct diags *diags)
{
	struct rt_source source = {binding_read_param, &(struct weights_reader){p, w ? w->file : NULL}};
	struct esp_context *c = p->object.context;
	bool ok = rt_bind(to, &c->allocator, image, &source, &c->team, diags);
	context_check_team(c);
	return ok;
}

/* The object keeps what runs will read from. */
static bool pack_lazily(struct packed *to, const esp_program *p, const esp_weights *w, struct diags *diags)
{
	struct esp_context *c = p->object.context;
	to->source = object_hold(w);
	to->reader = (struct weights_reader){p, w->file};
	struct rt_source source = {binding_read_param, &to->reader};
	bool ok = rt_bind_lazily(&to->weights, &c->allocator, &p->image, &source, &c->team, diags);
	context_check_team(c);
	return ok;
}

/* Without weights: those that the program has, or none, where it has no parameters. */
static bool pack_weights(struct packed *to, const esp_program *p, const esp_weights *w, bool lazy,
			 struct diags *diags)
{
	double begin = times_clock();
	struct esp_context *c = p->object.context;
	bool ok = !w && p->interface.packs ? rt_bind_packed(&to->weights, &c->allocator, &p->image, diags)
		  : w && lazy		   ? pack_lazily(to, p, w, diags)
					   : binding_pack(&to->weights, p, &p->image, w, diags);
	to->seconds = times_clock() - begin;
	return ok;
}

/* Packs weights; their generation counts from 1. */
static struct packed *new_packed(esp_program *p, const esp_weights *w, bool lazy, struct diags *diags)
{
	if ((w && !binding_check(p, w, diags)) || !program_begin(p, diags))
		return NULL;
	struct packed *new = object_new(p->object.context, sizeof *new, destroy_packed, diags);
	if (!new)
		return NULL;
	new->generation = 1;
	if (pack_weights(new, p, w, lazy, diags))
		return new;
	object_release(new);
	return NULL;
}

/* --- bindings --- */

static void destroy_binding(void *object)
{
	esp_binding *b = object;
	object_release(b->current);
	if (b->has_lock)
		pthread_mutex_destroy(&b->lock);
	object_release(b->program);
}

static esp_binding *new_binding(esp_program *p, const esp_weights *w, bool lazy, struct diags *diags)
{
	esp_binding *b = object_new(p->object.context, sizeof *b, destroy_binding, diags);
	if (!b)
		return NULL;
	b->program = object_hold(p);
	b->lazy = lazy;
	b->has_lock = pthread_mutex_init(&b->lock, NULL) == 0;
	if (!b->has_lock)
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a lock");
	else if ((b->current = new_packed(p, w, lazy, diags)))
		return b;
	object_release(b);
	return NULL;
}

esp_status esp_binding_create(esp_program *program, const esp_weights *weights, esp_binding **out,
			      esp_error **error)
{
	struct api_call call = api_begin(program ? (const void *)program : weights);
	esp_binding *b = NULL;
	if (api_need(&call, program) && api_need(&call, out) &&
	    (esp_program_has_weights(program) || api_need(&call, weights)) && (!weights || api_share(&call, weights)))
		b = new_binding(program, weights, false, &call.diags);
	if (out)
		*out = b;
	return api_end(&call, b, error);
}

esp_status esp_binding_open(esp_program *program, const esp_weights *weights, esp_binding **out,
			    esp_error **error)
{
	struct api_call call = api_begin(program ? (const void *)program : weights);
	esp_binding *b = NULL;
	if (api_need(&call, program) && api_need(&call, out) &&
	    (esp_program_has_weights(program) || api_need(&call, weights)) && (!weights || api_share(&call, weights)))
		b = new_binding(program, weights, true, &call.diags);
	if (out)
		*out = b;
	return api_end(&call, b, error);
}

void esp_binding_free(esp_binding *b)
{
	object_release(b);
}

/* --- exchange --- */

struct packed *binding_hold(const esp_binding *binding)
{
	esp_binding *b = (esp_binding *)binding;
	pthread_mutex_lock(&b->lock);
	struct packed *p = object_hold(b->current);
	pthread_mutex_unlock(&b->lock);
	return p;
}

/* Packs without the lock; of several swaps the last one holds. */
static bool swap_weights(esp_binding *b, const esp_weights *w, struct diags *diags)
{
	struct packed *new = new_packed(b->program, w, b->lazy, diags), *old;
	if (!new)
		return false;
	pthread_mutex_lock(&b->lock);
	old = b->current;
	new->generation = old->generation + 1;
	b->current = new;
	pthread_mutex_unlock(&b->lock);
	object_release(old);
	return true;
}

esp_status esp_binding_swap(esp_binding *binding, const esp_weights *weights, esp_error **error)
{
	struct api_call call = api_begin(binding ? (const void *)binding : weights);
	bool ok = api_need(&call, binding) && api_need(&call, weights) && api_share(&call, weights) &&
		  swap_weights(binding, weights, &call.diags);
	return api_end(&call, ok, error);
}

uint64_t esp_binding_generation(const esp_binding *b)
{
	struct packed *p = b ? binding_hold(b) : NULL;
	uint64_t generation = p ? p->generation : 0;
	object_release(p);
	return generation;
}
