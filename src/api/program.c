/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include <string.h>

static void destroy_program(void *object)
{
	esp_program *p = object;
	program_release_code(p);
	arena_free(&p->code_arena);
	arena_free(&p->arena);
	rt_free(&p->object.context->allocator, p->file);
	if (p->has_lock)
		pthread_mutex_destroy(&p->lock);
	object_release(p->model);
}

/* --- creation --- */

static void describe_inputs(esp_program *p)
{
	p->inputs = ARENA_ARRAY(&p->arena, esp_input, p->interface.inputs);
	for (int i = 0; i < p->interface.inputs; i++) {
		const struct image_input *from = &p->interface.input[i];
		p->inputs[i] = (esp_input){.name = from->name,
					   .is_token = from->token,
					   .dtype = api_dtype(from->dtype),
					   .elements = from->token ? 1 : from->elements,
					   .rank = from->rank,
					   .shape = api_shape(&p->arena, from->shape, from->rank),
					   .limit = from->token ? from->limit : 0,
					   .on_edges = from->on_edge,
					   .at_leaves = !from->on_edge && from->at_leaf,
					   .at_inner = !from->on_edge && from->at_inner,
					   .within = from->within};
	}
}

static void describe_outputs(esp_program *p)
{
	p->outputs = ARENA_ARRAY(&p->arena, esp_output, p->interface.outputs);
	for (int i = 0; i < p->interface.outputs; i++) {
		const struct image_output *from = &p->interface.output[i];
		p->outputs[i] = (esp_output){.name = from->name,
					     .dtype = api_dtype(from->dtype),
					     .elements = from->elements,
					     .rank = from->rank,
					     .shape = api_shape(&p->arena, from->shape, from->rank),
					     .at_root = from->at_root,
					     .labels = from->labels,
					     .label = from->label};
	}
}

static void describe_states(esp_program *p)
{
	p->states = ARENA_ARRAY(&p->arena, esp_state, p->interface.states);
	for (int i = 0; i < p->interface.states; i++) {
		const struct image_state *from = &p->interface.state[i];
		p->states[i] = (esp_state){.name = from->name,
					   .dtype = api_dtype(from->dtype),
					   .elements = from->elements,
					   .rank = from->rank,
					   .shape = api_shape(&p->arena, from->shape, from->rank)};
	}
}

void program_describe(esp_program *p)
{
	describe_inputs(p);
	describe_outputs(p);
	describe_states(p);
}

esp_program *program_new(esp_context *context, const esp_model *model, struct diags *diags)
{
	esp_program *p = object_new(context, sizeof *p, destroy_program, diags);
	if (!p)
		return NULL;
	p->model = model ? object_hold(model) : NULL;
	arena_init(&p->arena, &context->allocator);
	arena_init(&p->code_arena, &context->allocator);
	p->has_lock = pthread_mutex_init(&p->lock, NULL) == 0;
	if (p->has_lock)
		return p;
	diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a lock");
	object_release(p);
	return NULL;
}

struct creation {
	esp_program *program;
	const esp_weights *weights;
	const esp_program_options *options;
	struct diags *diags;
	struct diags notices; /* of the cache */
	bool observed;	      /* what products multiply, and their sums, are results */
};

/* --- the cache --- */

void program_log_notices(const esp_program *p, struct diags *notices)
{
	for (size_t i = 0; i < notices->n; i++)
		if (diag_status(notices->at[i].id) == DIAG_STATUS_NOTICE)
			context_log(p->object.context, notices->at[i].id, notices->at[i].hint, "%s",
				    notices->at[i].message);
	diags_free(notices);
}

/* Whether the program was compiled before, perhaps by another process. */
static bool find_program(struct creation *c)
{
	esp_program *p = c->program;
	struct cache cache = context_cache(p->object.context);
	double begin = times_clock();
	if (!cache.off)
		p->key = cache_key(&p->arena, p->model->graph, p->sizes, &p->options);
	p->found = p->key && cache_find(&cache, &p->arena, p->key, &p->interface, &c->notices);
	p->looking = times_clock() - begin;
	return p->found;
}

bool program_is_wanted(void *program, struct diags *diags)
{
	const esp_program *p = program;
	const esp_context *c = p->object.context;
	if (atomic_load_explicit(&c->closed, memory_order_relaxed))
		return diag_add(diags, DIAG_CLOSED, (struct diag_at){0}, "create another context",
				"the context was closed while a program was compiled");
	if (c->cancel && c->cancel(c->hooks_user))
		return diag_add(diags, DIAG_COMPILE_CANCELLED, (struct diag_at){0}, NULL,
				"the compilation of '%s' was given up, as esp_context_options.cancel wants",
				p->interface.name ? p->interface.name : p->model->graph->name);
	return true;
}

/* Whether the compilation is still wanted and its deadline has not passed.  Called from threads of the
 * compilation, too. */
static bool goes_on(void *program, struct diags *diags)
{
	const esp_program *p = program;
	if (!program_is_wanted(program, diags))
		return false;
	return !p->deadline || times_clock() < p->deadline ||
	       diag_add(diags, DIAG_COMPILE_DEADLINE, (struct diag_at){0},
			"raise esp_context_options.compile_seconds (--compile-seconds), or compile ahead of "
			"time ('espalier compile')",
			"the code of '%s' is not made within %g s",
			p->interface.name ? p->interface.name : p->model->graph->name,
			p->object.context->compile_seconds);
}

/* Refuses models that are too large, before any work whose time grows with their size. */
static bool check_size(const esp_model *m, struct diags *diags)
{
	size_t operators = m->graph->nodes.n - 1, most = m->object.context->operators;
	return operators <= most ||
	       diag_add(diags, DIAG_MODEL_LARGE, (struct diag_at){.file = m->graph->file},
			"give values names instead of computing them again, or raise "
			"esp_context_options.operators "
			"(--operators)",
			"the model has %zu operators, and no more than %zu are compiled", operators, most);
}

/* Binds the sizes of the caller's options, by the same checks as the shapes of weights. */
static bool bind_given_sizes(struct creation *c)
{
	const struct ra_model *m = c->program->model->graph;
	struct tensor_info *tensors = ARENA_ARRAY(&c->program->arena, struct tensor_info, m->params.n + 1);
	size_t given = ra_given_symbols(m);
	int64_t *sizes = ARENA_ARRAY(&c->program->arena, int64_t, m->symbols.n + 1);
	for (size_t i = 0; i < given; i++)
		if (c->options->sizes[i] < 1 || c->options->sizes[i] > INT32_MAX)
			return api_bad_argument(c->diags, "esp_program_create", "options->sizes",
						"must be between 1 and 2147483647");
	memcpy(sizes, c->options->sizes, given * sizeof *sizes);
	ra_compute_sizes(m, sizes);
	for (size_t i = 0; i < m->params.n; i++) {
		const struct ra_param *p = &m->params.at[i];
		tensors[i] = (struct tensor_info){.name = p->name, .rank = p->shape.rank};
		for (int d = 0; d < p->shape.rank; d++)
			tensors[i].shape[d] = ra_dim_value(&p->shape.dim[d], sizes);
	}
	return ra_bind(m, c->diags, "the sizes", tensors, m->params.n, c->program->sizes);
}

static bool bind_sizes(struct creation *c)
{
	const struct io_safetensors *file = c->weights ? c->weights->file : NULL;
	esp_program *p = c->program;
	p->sizes = ARENA_ARRAY(&p->arena, int64_t, p->model->graph->symbols.n + 1);
	return file ? ra_bind(p->model->graph, c->diags, file->path, file->tensor, file->own, p->sizes)
		    : bind_given_sizes(c);
}

static bool read_options(esp_program *p, const esp_program_options *options, struct diags *diags)
{
	const esp_context *c = p->object.context;
	bool ok = api_read_options(&p->arena, diags, options, &p->options);
	p->options.apart = c->compile_apart;
	p->options.lines = c->lines;
	p->options.late = ok && target_runs_here(p->options.target);
	p->options.memory = c->compile_memory;
	p->options.watch = (struct jit_watch){goes_on, p};
	return ok;
}

/* Whether code is made for this machine, whose description may be measured for it. */
static bool is_for_this_machine(const struct compile_options *o)
{
	return o->native && !compile_interprets(o);
}

void program_begin_deadline(esp_program *p)
{
	double seconds = p->object.context->compile_seconds;
	p->deadline = seconds > 0 ? times_clock() + seconds : 0;
}

/* Compiles up to the interface, or finds the program in the cache. */
static bool create_program(void *job)
{
	struct creation *c = job;
	esp_program *p = c->program;
	if (!read_options(p, c->options, c->diags))
		return false;
	if (!check_size(p->model, c->diags) || !bind_sizes(c))
		return false;
	if (c->weights && !(weights_fit_model(&p->arena, c->weights, p->model->graph, c->diags) &&
			    weights_set_options(&p->arena, c->weights, c->options, &p->options, c->diags)))
		return false;
	p->options.observing = c->observed;
	compile_describe_machine(&p->arena, &p->options, context_machine(p->object.context, is_for_this_machine(&p->options)));
	p->early = (struct times){.arena = &p->arena};
	program_begin_deadline(p);
	if (!find_program(c) && !(p->begun = compile_begin(&p->arena, c->diags, p->model->graph, p->sizes,
							   &p->options, &p->interface, &p->early)))
		return false;
	program_describe(p);
	return true;
}

static esp_program *new_program(const esp_model *model, const esp_weights *weights,
				const esp_program_options *options, bool observed, struct diags *diags)
{
	esp_context *context = model->object.context;
	esp_program *p = program_new(context, model, diags);
	if (!p)
		return NULL;
	struct creation c = {p, weights, options, diags, {.allocator = &context->allocator}, observed};
	bool ok = api_guarded_deep(model->graph, &p->arena, diags, create_program, &c);
	program_log_notices(p, &c.notices);
	if (ok)
		return p;
	object_release(p);
	return NULL;
}

esp_program *program_create_observed(const esp_model *model, const esp_weights *weights, const esp_program_options *options,
				     struct diags *diags)
{
	return new_program(model, weights, options, true, diags);
}

esp_status esp_program_create(const esp_model *model, const esp_weights *weights,
			      const esp_program_options *options, esp_program **out, esp_error **error)
{
	struct api_call call = api_begin(model ? (const void *)model : weights);
	esp_program_options o = {0};
	esp_program *p = NULL;
	if (api_need(&call, model) && api_need(&call, out) &&
	    (!options || api_take_struct(&call.diags, __func__, "options", options, &o, sizeof o)) &&
	    ((!weights && o.sizes) || (api_need(&call, weights) && api_share(&call, weights))))
		p = new_program(model, weights, &o, false, &call.diags);
	if (out)
		*out = p;
	return api_end(&call, p, error);
}

void esp_program_free(esp_program *p)
{
	object_release(p);
}

/* --- interface --- */

const char *esp_program_size(const esp_program *p, size_t i, int64_t *size)
{
	if (!p || i >= (size_t)p->interface.dimensions)
		return NULL;
	if (size)
		*size = p->interface.dimension[i].size;
	return p->interface.dimension[i].name;
}

int esp_program_children(const esp_program *p, int *shared)
{
	if (shared)
		*shared = p && p->interface.shared_children;
	return p ? p->interface.children : 0;
}

size_t esp_program_inputs(const esp_program *p)
{
	return p ? p->interface.inputs : 0;
}

const esp_input *esp_program_input(const esp_program *p, size_t input)
{
	return input < esp_program_inputs(p) ? &p->inputs[input] : NULL;
}

size_t esp_program_outputs(const esp_program *p)
{
	return p ? p->interface.outputs : 0;
}

const esp_output *esp_program_output(const esp_program *p, size_t output)
{
	return output < esp_program_outputs(p) ? &p->outputs[output] : NULL;
}

size_t esp_program_states(const esp_program *p)
{
	return p ? p->interface.states : 0;
}

const esp_state *esp_program_state(const esp_program *p, size_t state)
{
	return state < esp_program_states(p) ? &p->states[state] : NULL;
}
