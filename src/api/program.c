/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"

#include "compile/explain.h"
#include "image/code.h"
#include "image/gdb.h"
#include "image/jitdump.h"
#include "jit/jit.h"

#include <string.h>

static void release_code(esp_program *);

static void destroy_program(void *object)
{
	esp_program *p = object;
	release_code(p);
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
					   .at_inner = !from->on_edge && from->at_inner};
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
};

/* --- the cache --- */

/* Notices of the cache go to the log, with those that it got from the file system. */
static void log_notices(const esp_program *p, struct diags *notices)
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

static void keep_image(esp_program *p)
{
	struct cache cache = context_cache(p->object.context);
	struct diags notices;
	diags_init(&notices, &p->object.context->allocator);
	p->image.key = p->key;
	cache_keep(&cache, &p->object.context->allocator, &p->image, &notices);
	log_notices(p, &notices);
}

/* The team's threads and processors, for compiling; NULL = its processors are unknown. */
static struct jit_threads threads_of(esp_context *c)
{
	const struct rt_processors *p = &c->team.processors;
	bool known = CPU_COUNT_S(sizeof p->set, p->set);
	return (struct jit_threads){rt_team_threads(&c->team), known ? p->set : NULL, sizeof p->set};
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
	return file ? ra_bind(p->model->graph, c->diags, file->path, file->tensor, file->n, p->sizes)
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

static void begin_deadline(esp_program *p)
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
	compile_describe_machine(&p->options, context_machine(p->object.context, is_for_this_machine(&p->options)));
	p->early = (struct times){.arena = &p->arena};
	begin_deadline(p);
	if (!find_program(c) && !(p->begun = compile_begin(&p->arena, c->diags, p->model->graph, p->sizes,
							   &p->options, &p->interface, &p->early)))
		return false;
	program_describe(p);
	return true;
}

static esp_program *new_program(const esp_model *model, const esp_weights *weights,
				const esp_program_options *options, struct diags *diags)
{
	esp_context *context = model->object.context;
	esp_program *p = program_new(context, model, diags);
	if (!p)
		return NULL;
	struct creation c = {p, weights, options, diags, {.allocator = &context->allocator}};
	bool ok = api_guarded(&p->arena, diags, create_program, &c);
	log_notices(p, &c.notices);
	if (ok)
		return p;
	object_release(p);
	return NULL;
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

struct code_job {
	esp_program *program;
	struct diags *diags;
};

static bool compile_code(void *job)
{
	struct code_job *c = job;
	esp_program *p = c->program;
	p->image = p->interface;
	p->times = (struct times){.arena = &p->code_arena};
	for (size_t i = 0; i < p->early.entries.n; i++)
		vec_push(&p->code_arena, &p->times.entries, p->early.entries.at[i]);
	return p->found || compile_finish(p->begun, &p->code_arena, c->diags, &p->image, &p->times);
}

/* The file that has the listing of the code, which is written if it is not there; NULL = there are no lines.
 */
static const char *find_listing(esp_program *p, struct diags *notices)
{
	struct cache cache = context_cache(p->object.context);
	const char *text = p->image.listing;
	if (!p->listing && text && *text && p->object.context->lines)
		p->listing = cache_listing(&cache, &p->code_arena, text, notices);
	return p->listing;
}

/* Describes code to debuggers and profilers: all, or what was compiled last. */
static bool write_names(void *job)
{
	struct code_job *c = job;
	esp_program *p = c->program;
	struct image_function *f;
	int n = compile_is_late(&p->image) ? compile_list_code(&p->code_arena, &p->image, &f)
					   : image_list_functions(&p->code_arena, &p->image, &f);
	const esp_context *context = p->object.context;
	if (!n)
		return true;
	gdb_add_functions(&p->named, &p->code_arena, p->image.name, find_listing(p, c->diags), f, n);
	bool ok = !context->perf_map || image_name_functions(p->image.name, f, n, c->diags);
	if (context->jitdump)
		ok &= image_dump_functions(&p->code_arena, p->image.name, p->image.listing, f, n, c->diags);
	return ok;
}

static void name_code(esp_program *p)
{
	struct diags notices;
	diags_init(&notices, &p->object.context->allocator);
	api_guarded(&p->code_arena, &notices, write_names, &(struct code_job){p, &notices});
	log_notices(p, &notices);
}

/* Whether to load the back end in a thread of its own while kernels are being built. */
static bool may_load_ahead(const esp_program *p)
{
	return !p->found && !p->options.apart && p->options.threads.most > 1 &&
	       !compile_interprets(&p->options);
}

static bool guarded_compile(esp_program *p, struct diags *diags)
{
	struct jit_ahead ahead = {0};
	if (!p->found)
		p->options.threads = threads_of(p->object.context);
	if (may_load_ahead(p))
		jit_ahead_begin(&ahead, p->options.backend, p->options.threads);
	bool ok = api_guarded(&p->code_arena, diags, compile_code, &(struct code_job){p, diags});
	jit_ahead_end(&ahead);
	return ok;
}

/* --- code that is compiled when runs need it --- */

struct rows_job {
	esp_program *program;
	const int64_t *rows;
	struct diags *diags;
};

static bool compile_more(void *job)
{
	struct rows_job *j = job;
	esp_program *p = j->program;
	return compile_need_code(&p->code_arena, j->diags, &p->image, j->rows, &p->times);
}

/* The caller holds the lock. */
static bool compile_rows(esp_program *p, const int64_t *rows, struct diags *diags)
{
	begin_deadline(p);
	bool ok = api_guarded(&p->code_arena, diags, compile_more, &(struct rows_job){p, rows, diags});
	name_code(p);
	return ok;
}

static bool link_code(void *job)
{
	struct code_job *c = job;
	return compile_link_code(&c->program->code_arena, c->diags, &c->program->image);
}

/* Compiles what a run needs.  A compiler computes constants in the usual arithmetic, which the run may have left. */
static bool need_code(void *program, const int64_t *rows, struct diags *diags)
{
	esp_program *p = program;
	if (atomic_load_explicit(&p->complete, memory_order_acquire) || compile_has_code(&p->image, rows))
		return true;
	struct float_mode mode = float_mode_enter(false);
	double begin = times_clock();
	pthread_mutex_lock(&p->lock);
	bool ok = compile_has_code(&p->image, rows) || compile_rows(p, rows, diags);
	p->seconds = p->seconds + (times_clock() - begin);
	pthread_mutex_unlock(&p->lock);
	float_mode_leave(&mode);
	return ok;
}

/* --- making images --- */

/* Compiles without loading the code; code that can be compiled later is not yet.  The caller holds the lock. */
static bool make_image(esp_program *p, struct diags *diags)
{
	double begin = times_clock();
	if (p->made)
		return true;
	begin_deadline(p);
	if (!guarded_compile(p, diags)) {
		image_code_release(&p->image.code);
		arena_free(&p->code_arena);
		p->times = (struct times){0};
		return false;
	}
	p->made = true;
	p->seconds = p->looking + (times_clock() - begin);
	if (compile_is_late(&p->image)) {
		p->image.code.need = need_code;
		p->image.code.maker = p;
		return true;
	}
	atomic_store_explicit(&p->complete, true, memory_order_release);
	if (!p->found && p->key)
		keep_image(p);
	return true;
}

/* Makes what the image lacks as it stands.  The caller holds the lock. */
static bool complete_image(esp_program *p, struct diags *diags)
{
	double begin = times_clock();
	if (atomic_load_explicit(&p->complete, memory_order_relaxed))
		return true;
	if (!compile_rows(p, NULL, diags) || !api_guarded(&p->code_arena, diags, link_code, &(struct code_job){p, diags}))
		return false;
	p->seconds = p->seconds + (times_clock() - begin);
	atomic_store_explicit(&p->complete, true, memory_order_release);
	if (p->key)
		keep_image(p);
	return true;
}

struct loading {
	esp_program *program;
	struct diags *diags;
};

static bool load_code(void *job)
{
	struct loading *l = job;
	esp_program *p = l->program;
	return compile_load(&p->object.context->allocator, l->diags, &p->image, &p->times);
}

static bool make_code(esp_program *p, struct diags *diags)
{
	if (!p->found && !compile_runs_here(&p->options, diags))
		return false;
	if (!make_image(p, diags))
		return false;
	double begin = times_clock();
	if (!api_guarded(&p->code_arena, diags, load_code, &(struct loading){p, diags})) {
		if (!p->image.code.call)
			image_code_release(&p->image.code);
		return false;
	}
	p->seconds = p->seconds + (times_clock() - begin);
	name_code(p);
	atomic_store_explicit(&p->ready, true, memory_order_release);
	return true;
}

/* Code that nothing has called yet is made at once: whoever saves a program need not be able to run it. */
bool program_make(esp_program *p, struct image *image, struct diags *diags)
{
	pthread_mutex_lock(&p->lock);
	p->options.late &= p->made;
	bool ok = make_image(p, diags) && complete_image(p, diags);
	*image = p->image;
	pthread_mutex_unlock(&p->lock);
	image->code = (struct image_code){0};
	return ok;
}

bool program_begin(esp_program *p, struct diags *diags)
{
	if (atomic_load_explicit(&p->ready, memory_order_acquire))
		return true;
	pthread_mutex_lock(&p->lock);
	bool ok = atomic_load_explicit(&p->ready, memory_order_relaxed) || make_code(p, diags);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

bool program_prepare(esp_program *p, struct diags *diags)
{
	if (!program_begin(p, diags))
		return false;
	if (atomic_load_explicit(&p->complete, memory_order_acquire))
		return true;
	pthread_mutex_lock(&p->lock);
	bool ok = complete_image(p, diags);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

/* A program that is kept is kept whole: the last of its users compiles what no run has needed, and the next process
 * finds it. */
static void complete_kept_image(esp_program *p)
{
	struct diags unheard;
	diags_init(&unheard, &p->object.context->allocator);
	if (p->key && compile_is_late(&p->image) && compile_has_any_code(&p->image) && program_is_wanted(p, &unheard))
		complete_image(p, &unheard);
	diags_free(&unheard);
}

/* A forked child has the locks of compilers and of the debuggers' list as they were, and leaves alone what they guard. */
static void release_code(esp_program *p)
{
	bool forked = p->object.context->process != fork_generation();
	if (!forked) {
		complete_kept_image(p);
		gdb_remove_functions(&p->named);
	}
	if (!forked || !compile_is_late(&p->image))
		image_code_release(&p->image.code);
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

/* --- texts --- */

const char *esp_dump_stage(size_t i)
{
	return compile_stage(i);
}

struct dumping {
	const esp_program *program;
	const char *stage; /* for a dump */
	bool json;	   /* for an explanation */
	struct arena *arena;
	struct str text;
	struct diags *diags;
};

static bool refuse_stage(struct dumping *d)
{
	struct str stages = str_in(d->arena);
	for (size_t i = 0; compile_stage(i); i++)
		str_printf(&stages, "%s%s", i ? ", " : "stages are ", compile_stage(i));
	return diag_add(d->diags, DIAG_UNKNOWN_STAGE, (struct diag_at){0}, str_text(&stages),
			"there is no stage '%s'", d->stage);
}

static bool has_model(struct dumping *d)
{
	const struct image *image = &d->program->interface;
	return d->program->model || diag_add(d->diags, DIAG_NO_MODEL, (struct diag_at){0},
					     "ask a program that was made of the model",
					     "the program '%s' was saved: its model is not in it", image->name);
}

static bool dump_stage(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	if (!has_model(d))
		return false;
	struct compile_options options = p->options;
	options.watch.goes_on = program_is_wanted;
	for (size_t i = 0; compile_stage(i); i++)
		if (strcmp(compile_stage(i), d->stage) == 0)
			return compile_dump(d->arena, d->diags, p->model->graph, p->sizes, &options,
					    d->stage, &d->text);
	return refuse_stage(d);
}

/* Runs `work`, which writes to job->text and may use job->arena, and copies the text. */
static char *text_of(esp_program *program, bool (*work)(void *job), struct dumping *job, struct diags *diags)
{
	struct arena arena;
	char *copy = NULL;
	arena_init(&arena, &program->object.context->allocator);
	job->program = program;
	job->arena = &arena;
	job->text = str_in(&arena);
	job->diags = diags;
	if (api_guarded(&arena, diags, work, job))
		copy = api_text(program->object.context, str_text(&job->text), diags);
	arena_free(&arena);
	return copy;
}

esp_status esp_program_dump(esp_program *program, const char *stage, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	if (api_need(&call, program) && api_need(&call, stage) && api_need(&call, text))
		copy = text_of(program, dump_stage, &(struct dumping){.stage = stage}, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}

/* Begins with the time of the cache, which is searched first. */
static bool print_times(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	struct times looking = {.arena = d->arena};
	if (p->key)
		times_note(&looking, "cache", p->found ? "find" : "look", p->looking);
	times_print(&looking, &d->text);
	times_print(&p->times, &d->text);
	return true;
}

esp_status esp_program_times(esp_program *program, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	if (api_need(&call, program) && api_need(&call, text) && program_begin(program, &call.diags)) {
		pthread_mutex_lock(&program->lock);
		copy = text_of(program, print_times, &(struct dumping){0}, &call.diags);
		pthread_mutex_unlock(&program->lock);
	}
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}

static bool explain_program(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	return has_model(d) &&
	       compile_explain(d->arena, d->diags, p->model->graph, p->sizes, &p->options, d->json, &d->text);
}

esp_status esp_program_explain(esp_program *program, int form, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	bool known = form == ESP_FORM_TEXT || form == ESP_FORM_JSON;
	if (api_need(&call, program) && api_need(&call, text) &&
	    (known || api_bad_argument(&call.diags, __func__, "form", "must be one of ESP_FORM_...")))
		copy = text_of(program, explain_program, &(struct dumping){.json = form == ESP_FORM_JSON},
			       &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
