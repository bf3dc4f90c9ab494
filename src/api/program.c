#include "api/internal.h"

#include <string.h>

static void release_code(struct image *image)
{
	if (image->code.release)
		image->code.release(&image->code);
	image->code = (struct image_code){0};
}

static void destroy(void *object)
{
	esp_program *p = object;
	release_code(&p->image);
	arena_free(&p->code_arena);
	arena_free(&p->arena);
	if (p->has_lock)
		pthread_mutex_destroy(&p->lock);
	object_release(p->model);
}

/* --- creation --- */

static const char *copy_text(struct arena *arena, const char *text)
{
	return text ? arena_string(arena, text) : NULL;
}

/* Shapes come from the graph, because buffers are not laid out before there is code.  Returns their product.
 */
static size_t describe_shape(const esp_program *p, const struct ra_shape *from, size_t *rank, size_t *shape)
{
	size_t elements = 1;
	*rank = from->rank;
	for (int d = 0; d < from->rank; d++)
		elements *= shape[d] = ra_dim_value(&from->dim[d], p->sizes);
	return elements;
}

static void describe_inputs(esp_program *p)
{
	const struct ra_model *graph = p->model->graph;
	p->inputs = ARENA_ARRAY(&p->arena, esp_input, p->interface.inputs);
	for (int i = 0; i < p->interface.inputs; i++) {
		esp_input *to = &p->inputs[i];
		to->name = p->interface.input[i].name;
		to->is_token = p->interface.input[i].token;
		to->elements = describe_shape(p, &graph->inputs.at[i].shape, &to->rank, to->shape);
	}
}

static void describe_outputs(esp_program *p)
{
	const struct ra_model *graph = p->model->graph;
	p->outputs = ARENA_ARRAY(&p->arena, esp_output, p->interface.outputs);
	for (int i = 0; i < p->interface.outputs; i++) {
		const struct image_output *from = &p->interface.output[i];
		const struct ra_shape *shape = &ra_at(graph, graph->outputs.at[i].value)->shape;
		esp_output *to = &p->outputs[i];
		*to = (esp_output){.name = from->name,
				   .at_root = from->at_root,
				   .labels = from->labels,
				   .label = from->label};
		to->elements = describe_shape(p, shape, &to->rank, to->shape);
	}
}

static void describe_states(esp_program *p)
{
	const struct ra_model *graph = p->model->graph;
	p->states = ARENA_ARRAY(&p->arena, esp_state, p->interface.states);
	for (int i = 0; i < p->interface.states; i++) {
		esp_state *to = &p->states[i];
		to->name = p->interface.state[i].name;
		to->elements = describe_shape(p, &graph->states.at[i].shape, &to->rank, to->shape);
	}
}

struct creation {
	esp_program *program;
	const esp_weights *weights;
	const esp_program_options *options;
	struct diags *diags;
};

/* Everything up to the interface. */
static bool create(void *job)
{
	struct creation *c = job;
	esp_program *p = c->program;
	const struct io_safetensors *file = c->weights->file;
	p->options = (struct compile_options){
	    .at = c->options->at,
	    .backend = copy_text(&p->arena, c->options->backend ? c->options->backend : "llvm"),
	    .target = copy_text(&p->arena, c->options->target ? c->options->target : "native"),
	    .schedule = copy_text(&p->arena, c->options->schedule),
	};
	p->sizes = ARENA_ARRAY(&p->arena, int64_t, p->model->graph->symbols.n + 1);
	if (!ra_bind(p->model->graph, c->diags, file->path, file->tensor, file->n, p->sizes) ||
	    !compile_interface(&p->arena, c->diags, p->model->graph, p->sizes, &p->options, &p->interface))
		return false;
	describe_inputs(p);
	describe_outputs(p);
	describe_states(p);
	return true;
}

static esp_program *new_program(const esp_model *model, const esp_weights *weights,
				const esp_program_options *options, struct diags *diags)
{
	esp_context *context = model->object.context;
	esp_program *p = object_new(context, sizeof *p, destroy, diags);
	if (!p)
		return NULL;
	p->model = object_hold(model);
	arena_init(&p->arena, &context->allocator);
	arena_init(&p->code_arena, &context->allocator);
	p->has_lock = pthread_mutex_init(&p->lock, NULL) == 0;
	if (!p->has_lock)
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a lock");
	else if (api_guarded(&p->arena, diags, create, &(struct creation){p, weights, options, diags}))
		return p;
	object_release(p);
	return NULL;
}

/* The target is looked up here because "native" must be one that this machine has. */
static bool take_options(const esp_program_options *options, esp_program_options *o, struct diags *diags)
{
	const char *function = "esp_program_create";
	if (options && !api_take_struct(diags, function, "options", options, o, sizeof *o))
		return false;
	if (o->at < ESP_AT_MODEL || o->at > ESP_AT_EVERY_NODE)
		return api_bad_argument(diags, function, "options->at", "must be one of ESP_AT_...");
	if (o->target && !target_find(o->target))
		return api_bad_argument(diags, function, "options->target",
					"must be native, generic, avx2 or avx512");
	return true;
}

esp_status esp_program_create(const esp_model *model, const esp_weights *weights,
			      const esp_program_options *options, esp_program **out, esp_error **error)
{
	struct api_call call = api_begin(model ? (const void *)model : weights);
	esp_program_options o = {0};
	esp_program *p = NULL;
	if (api_need(&call, model) && api_need(&call, weights) && api_need(&call, out) &&
	    take_options(options, &o, &call.diags))
		p = new_program(model, weights, &o, &call.diags);
	if (out)
		*out = p;
	return api_end(&call, p, error);
}

void esp_program_free(esp_program *p)
{
	object_release(p);
}

/* --- code --- */

struct compilation {
	esp_program *program;
	struct diags *diags;
};

static bool compile(void *job)
{
	struct compilation *c = job;
	esp_program *p = c->program;
	p->image = p->interface;
	return compile_image(&p->code_arena, c->diags, p->model->graph, p->sizes, &p->options, &p->image);
}

/* With the lock held. */
static bool make_code(esp_program *p, struct diags *diags)
{
	double begin = api_clock();
	if (!api_guarded(&p->code_arena, diags, compile, &(struct compilation){p, diags})) {
		release_code(&p->image);
		arena_free(&p->code_arena);
		return false;
	}
	p->seconds = api_clock() - begin;
	atomic_store_explicit(&p->ready, true, memory_order_release);
	return true;
}

bool program_prepare(esp_program *p, struct diags *diags)
{
	if (atomic_load_explicit(&p->ready, memory_order_acquire))
		return true;
	pthread_mutex_lock(&p->lock);
	bool ok = atomic_load_explicit(&p->ready, memory_order_relaxed) || make_code(p, diags);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

esp_status esp_program_prepare(esp_program *program, esp_error **error)
{
	struct api_call call = api_begin(program);
	bool ok = api_need(&call, program) && program_prepare(program, &call.diags);
	return api_end(&call, ok, error);
}

/* --- interface --- */

const char *esp_program_size(const esp_program *p, size_t i, int64_t *size)
{
	if (!p || i >= p->model->graph->symbols.n)
		return NULL;
	if (size)
		*size = p->sizes[i];
	return p->model->graph->symbols.at[i].name;
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

/* --- dumps --- */

const char *esp_dump_stage(size_t i)
{
	return compile_stage(i);
}

struct dumping {
	const esp_program *program;
	const char *stage;
	struct arena *arena;
	struct str text;
	struct diags *diags;
};

static bool unknown_stage(struct dumping *d)
{
	struct str stages = str_in(d->arena);
	for (size_t i = 0; compile_stage(i); i++)
		str_printf(&stages, "%s%s", i ? ", " : "stages are ", compile_stage(i));
	return diag_add(d->diags, DIAG_UNKNOWN_STAGE, (struct diag_at){0}, str_text(&stages),
			"there is no stage '%s'", d->stage);
}

static bool dump(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	for (size_t i = 0; compile_stage(i); i++)
		if (strcmp(compile_stage(i), d->stage) == 0)
			return compile_dump(d->arena, d->diags, p->model->graph, p->sizes, &p->options,
					    d->stage, &d->text);
	return unknown_stage(d);
}

esp_status esp_program_dump(esp_program *program, const char *stage, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	if (api_need(&call, program) && api_need(&call, stage) && api_need(&call, text)) {
		struct arena arena;
		arena_init(&arena, &program->object.context->allocator);
		struct dumping d = {program, stage, &arena, str_in(&arena), &call.diags};
		if (api_guarded(&arena, &call.diags, dump, &d))
			copy = api_text(program->object.context, str_text(&d.text), &call.diags);
		arena_free(&arena);
	}
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
