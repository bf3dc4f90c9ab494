/* The compile leg, from the model's graph to an image: one list of calls. */
#include "api/compile.h"
#include "ilir/passes.h"
#include "image/code.h"
#include "image/link.h"
#include "io/file.h"
#include "jit/jit.h"

#include <limits.h>
#include <pthread.h>

/* What there is of a compilation so far. */
struct compilation {
	struct arena *arena;
	struct diags *diags;
	const struct ra_model *model;
	const struct compile_options *options;
	struct sub_trace *trace;
	struct times *times;	    /* NULL = nobody asks */
	double clock;		    /* when what was noted last ended */
	struct sub_program written; /* the model's own: what the interface promises */
	struct sub_program rewritten;
	struct sub_program folded;
	struct sub_program refactored;
	struct sub_program program; /* what is compiled */
	struct sched_plan plan;
	struct sched sched;
	struct ilir_tiling tiling;
	struct ilir_module module;
	unsigned properties; /* that the module has */
};

/* Notes what has been going on since the last note. */
static void note_time(struct compilation *c, const char *room, const char *what)
{
	if (c->times)
		c->clock = times_since(c->times, room, what, c->clock);
}

/* --- the legs of the way --- */

enum { TABLE_BYTES = 64 << 20 };

bool compile_rewriting(const struct compile_options *o, struct sub_options *options, struct diags *diags)
{
	uint64_t bytes = o->table_bytes ? o->table_bytes : TABLE_BYTES;
	*options = (struct sub_options){.at = o->at,
					.math = SUB_REASSOCIATE,
					.table_bytes = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX};
	return (!o->math || sub_math_read(o->math, &options->math, diags)) &&
	       (!o->rules || sub_families_read(o->rules, &options->off, diags));
}

static bool make_program(struct compilation *c, const int64_t *sizes)
{
	struct sub_options options;
	if (!compile_rewriting(c->options, &options, c->diags))
		return false;
	sub_init(&c->written, c->arena, c->model->name);
	sub_init(&c->rewritten, c->arena, c->model->name);
	sub_init(&c->folded, c->arena, c->model->name);
	sub_init(&c->refactored, c->arena, c->model->name);
	sub_init(&c->program, c->arena, c->model->name);
	if (!sub_lower(&c->written, c->model, sizes, &options, c->diags) ||
	    !sub_verify(&c->written, c->diags))
		return false;
	note_time(c, "subop", "lower");
	sub_optimize(&c->rewritten, &c->written, &options, c->trace);
	note_time(c, "subop", "optimize");
	if (!sub_verify(&c->rewritten, c->diags))
		return false;
	note_time(c, "subop", "verify");
	sub_fold(&c->folded, &c->rewritten, &options, c->trace);
	note_time(c, "subop", "fold");
	bool ok = sub_verify(&c->folded, c->diags);
	note_time(c, "subop", "verify");
	return ok;
}

static bool make_plan(struct compilation *c)
{
	const char *text = c->options->schedule ? c->options->schedule : "";
	const struct target *target = target_find(c->options->target);
	struct sched_fusion fusion;
	if (!target)
		return diag_add(c->diags, DIAG_BAD_ARGUMENT, (struct diag_at){0},
				"targets are native, generic, avx2, avx512, aarch64",
				"there is no target '%s'", c->options->target);
	struct sub_options options;
	if (!compile_rewriting(c->options, &options, c->diags) ||
	    !sched_read_fusion(&fusion, "schedule", text, strlen(text), c->diags))
		return false;
	sched_refactor(&c->refactored, &c->folded, fusion.refactoring, &options, c->trace);
	note_time(c, "sched", "refactor");
	if (!sub_verify(&c->refactored, c->diags))
		return false;
	sched_hoist(&c->program, &c->refactored, fusion.hoisting, c->trace);
	note_time(c, "sched", "hoist");
	if (!sub_verify(&c->program, c->diags))
		return false;
	sched_make_plan(&c->plan, c->arena, &c->program, target, &fusion);
	return sched_verify(&c->plan, c->diags);
}

static bool make_schedule(struct compilation *c)
{
	const char *text = c->options->schedule;
	if (!make_plan(c))
		return false;
	note_time(c, "sched", "plan");
	sched_choose(&c->sched, &c->plan, c->plan.target);
	note_time(c, "sched", "choose");
	return !text || sched_read(&c->sched, &c->plan, "schedule", text, strlen(text), c->diags);
}

static bool make_loops(struct compilation *c)
{
	ilir_init(&c->module, c->arena, c->model->name);
	ilir_lower(&c->module, &c->tiling, &c->plan, &c->sched);
	note_time(c, "ilir", "lower");
	bool ok = ilir_verify(&c->module, 0, "lower", c->diags);
	note_time(c, "ilir", "  verify");
	return ok;
}

static bool run_pass(struct compilation *c, const struct ilir_pass *pass)
{
	pass->run(&c->module, &c->tiling);
	note_time(c, "ilir", pass->name);
	c->properties |= pass->establishes;
	bool ok = ilir_verify(&c->module, c->properties, pass->name, c->diags);
	note_time(c, "ilir", "  verify");
	return ok;
}

static bool run_passes(struct compilation *c, const char *last)
{
	for (int i = 0; ilir_pass_at(i); i++) {
		if (!run_pass(c, ilir_pass_at(i)))
			return false;
		if (last && strcmp(ilir_pass_at(i)->name, last) == 0)
			break;
	}
	return true;
}

/* --- back ends --- */

static bool is_interpreter(const struct compilation *c)
{
	return strcmp(c->options->backend, "interpreter") == 0;
}

/* The interpreter has one state: calls take turns. */
struct interpreted {
	struct ilir_module module;
	struct ilir_interpreter *interpreter;
	pthread_mutex_t lock;
};

static bool call_interpreter(void *self, int kernel, const struct image_frame *frame,
			     const struct image_range *range, struct diags *diags)
{
	struct interpreted *in = self;
	pthread_mutex_lock(&in->lock);
	bool ok = ilir_interpret(in->interpreter, kernel, frame, range, diags);
	pthread_mutex_unlock(&in->lock);
	return ok;
}

static void release_interpreter(struct image_code *code)
{
	pthread_mutex_destroy(&((struct interpreted *)code->self)->lock);
}

static bool make_interpreter(struct compilation *c, struct image *image)
{
	struct interpreted *in = ARENA_NEW(c->arena, struct interpreted);
	in->module = c->module;
	in->interpreter = ilir_interpreter_new(c->arena, &in->module);
	if (pthread_mutex_init(&in->lock, NULL) != 0)
		return diag_add(c->diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no memory for a lock");
	image->code =
	    (struct image_code){.call = call_interpreter, .release = release_interpreter, .self = in};
	return true;
}

static struct jit_options jit_options_of(const struct compilation *c)
{
	return (struct jit_options){c->sched.target, strcmp(c->options->target, "native") == 0};
}

/* What the code was made with, as far as it can be named. */
static void note_tool(struct compilation *c, const struct jit_backend *backend, struct image *image)
{
	const char *path = backend->compiler();
	struct image_tool *t = ARENA_NEW(c->arena, struct image_tool);
	if (!path || !io_stat(path, &t->size, &t->modified))
		return;
	t->path = arena_string(c->arena, path);
	image->tool = t;
	image->tools = 1;
}

static double total(const double seconds[JIT_PARTS])
{
	double sum = 0;
	for (int p = 0; p < JIT_PARTS; p++)
		sum += seconds[p];
	return sum;
}

/* What the threads did meanwhile: by part, then by kernel. */
static void note_kernels(struct compilation *c, const struct jit_objects *o)
{
	static const char *const part[JIT_PARTS] = {"  emit", "  check", "  optimise", "  generate"};
	const char *backend = c->options->backend;
	size_t kernels = c->module.kernels.n;
	for (int p = 0; p < JIT_PARTS; p++) {
		double sum = 0;
		for (size_t k = 0; k < kernels; k++)
			sum += o->seconds[k][p];
		times_note(c->times, backend, part[p], sum);
	}
	for (size_t k = 0; k < kernels; k++) {
		struct str name = str_in(c->arena);
		str_printf(&name, "  kernel %s", c->module.kernels.at[k].name);
		times_note(c->times, backend, name.text, total(o->seconds[k]));
	}
}

static bool make_blob(struct compilation *c, const struct jit_options *options, struct image *image)
{
	const struct jit_backend *backend = jit_backend_load(c->options->backend, c->diags);
	struct jit_objects o;
	note_time(c, "jit", "load");
	if (!backend ||
	    !jit_compile(backend, &c->module, options, c->options->threads, c->arena, &o, c->diags))
		return false;
	note_time(c, "jit", "compile");
	if (c->times)
		note_kernels(c, &o);
	note_tool(c, backend, image);
	bool ok = image_link(c->arena, o.object, c->module.kernels.n, image->name, image->kernels,
			     image->kernel_name, &image->blob, c->diags);
	note_time(c, "image", "link");
	return ok;
}

static bool check_target(const struct target *t, struct diags *diags)
{
	return target_runs_here(t) ||
	       diag_add(diags, DIAG_TARGET_NOT_HERE, (struct diag_at){0},
			"choose --target-cpu native, or --backend interpreter",
			"this machine cannot run code for %s (%s)", t->name, t->description);
}

static bool make_code(struct compilation *c, struct image *image)
{
	struct jit_options options = jit_options_of(c);
	if (is_interpreter(c))
		return make_interpreter(c, image);
	bool ok = check_target(options.target, c->diags) && make_blob(c, &options, image) &&
		  image_code_load(&image->blob, c->arena->allocator, image->name, &image->code, c->diags);
	note_time(c, "image", "load");
	return ok;
}

bool compile_load(const struct allocator *allocator, struct diags *diags,
		  const struct compile_options *options, struct image *image, struct times *times)
{
	double begin = times_clock();
	bool ok = check_target(target_find(options->target), diags) &&
		  image_code_load(&image->blob, allocator, image->name, &image->code, diags);
	times_since(times, "image", "load", begin);
	return ok;
}

/* --- the interface --- */

/* How a body uses the inputs: which it reads, and how many rows a token may choose from. */
static void note_inputs(const struct sub_program *p, const struct sub_body *b, struct image_input *inputs,
			struct arena *a)
{
	bool *live = ARENA_ARRAY(a, bool, p->values.n);
	sub_mark_live(p, b, live);
	for (size_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool look_up = v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_TOKEN;
		if (!live[i] || !(look_up || v->op == SUB_VECTOR))
			continue;
		struct image_input *in = &inputs[look_up ? v->map[0].which : v->which];
		int64_t rows = look_up ? p->vars.at[v->arg[0].var[0]].extent : 0;
		in->limit = look_up && (!in->limit || rows < in->limit) ? rows : in->limit;
		in->at_leaf |= b->domain != SUB_INNER;
		in->at_inner |= b->domain != SUB_LEAF;
	}
}

/* Copies a shape and returns its elements. */
static int64_t copy_shape(const struct sub_tensor *t, int *rank, int64_t *shape)
{
	int64_t n = 1;
	*rank = t->rank;
	for (int d = 0; d < t->rank; d++)
		n *= shape[d] = t->shape[d];
	return n;
}

/* The buffer of a kind that belongs to number `which`; -1 while there are none. */
static int find_buffer(const struct image *image, enum image_buffer_kind kind, int which)
{
	for (int b = 0; b < image->buffers; b++)
		if (image->buffer[b].kind == kind && image->buffer[b].which == which)
			return b;
	return -1;
}

static void describe_inputs(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->written;
	struct image_input *inputs = ARENA_ARRAY(c->arena, struct image_input, p->inputs.n);
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_input *in = &p->inputs.at[i];
		inputs[i] = (struct image_input){.name = in->name, .token = in->token};
		if (!in->token)
			inputs[i].elements = copy_shape(&in->row, &inputs[i].rank, inputs[i].shape);
	}
	for (size_t b = 0; b < p->bodies.n; b++)
		note_inputs(p, &p->bodies.at[b], inputs, c->arena);
	image->input = inputs;
	image->inputs = p->inputs.n;
}

static void describe_params(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->written;
	struct tensor_info *params = ARENA_ARRAY(c->arena, struct tensor_info, p->params.n);
	for (size_t i = 0; i < p->params.n; i++) {
		const struct sub_tensor *t = &p->params.at[i];
		params[i] = (struct tensor_info){.name = t->name, .rank = t->rank};
		memcpy(params[i].shape, t->shape, t->rank * sizeof *t->shape);
	}
	image->param = params;
	image->params = p->params.n;
}

static void describe_outputs(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->written;
	struct image_output *outputs = ARENA_ARRAY(c->arena, struct image_output, p->outputs.n);
	for (size_t i = 0; i < p->outputs.n; i++) {
		const struct ra_output *o = &c->model->outputs.at[i];
		outputs[i] = (struct image_output){.name = o->name,
						   .buffer = find_buffer(image, IMAGE_OUTPUT, i),
						   .at_root = p->outputs.at[i].at_root,
						   .labels = o->labels,
						   .label = o->label};
		outputs[i].elements = copy_shape(&p->outputs.at[i].row, &outputs[i].rank, outputs[i].shape);
	}
	image->output = outputs;
	image->outputs = p->outputs.n;
}

/* Buffers are described as kernels have them; rows of states as the program has them. */
static void describe_order(const struct sched_order *order, struct image_buffer *b)
{
	struct image_buffer was = *b;
	for (int d = 0; d < order->rank; d++) {
		b->shape[order->dim[d]] = was.shape[d];
		b->stride[order->dim[d]] = was.stride[d];
	}
}

static void describe_orders(const struct compilation *c, struct image *image)
{
	struct image_buffer *buffers = arena_copy(c->arena, image->buffer, image->buffers * sizeof *buffers);
	for (int b = 0; b < image->buffers; b++)
		if (buffers[b].kind == IMAGE_STATE)
			describe_order(&c->sched.states.at[buffers[b].which].order, &buffers[b]);
	image->buffer = buffers;
}

static void describe_states(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->written;
	struct image_state *states = ARENA_ARRAY(c->arena, struct image_state, p->states.n);
	for (size_t i = 0; i < p->states.n; i++) {
		states[i] = (struct image_state){.name = p->states.at[i].name,
						 .layout = c->sched.states.at[i].layout,
						 .buffer = find_buffer(image, IMAGE_STATE, i)};
		states[i].elements = copy_shape(&p->states.at[i], &states[i].rank, states[i].shape);
	}
	image->state = states;
	image->states = p->states.n;
}

/* Over all nodes, before the recursion. */
static bool is_ahead(const struct image *image, const struct image_step *step)
{
	bool ahead = step->domain == IMAGE_DOMAIN_NODES;
	for (int i = 0; i < image->steps && image->step[i].kernel < step->kernel; i++) {
		enum image_domain before = image->step[i].domain;
		ahead &= before < IMAGE_DOMAIN_LEAVES || before > IMAGE_DOMAIN_NODE;
	}
	return ahead;
}

/* The body whose rows a domain runs over; the larger one when it is both. */
static enum sub_domain rows_of(const struct image *image, const struct image_step *step)
{
	static const enum sub_domain rows[] = {
	    [IMAGE_DOMAIN_LEAVES] = SUB_LEAF,	     [IMAGE_DOMAIN_INNER] = SUB_INNER,
	    [IMAGE_DOMAIN_INNER_NODE] = SUB_INNER,   [IMAGE_DOMAIN_BATCH] = SUB_INNER,
	    [IMAGE_DOMAIN_NODE] = SUB_INNER,	     [IMAGE_DOMAIN_NODES] = SUB_EVERY_NODE,
	    [IMAGE_DOMAIN_INPUTS] = SUB_EVERY_INPUT, [IMAGE_DOMAIN_PAST_LEAVES] = SUB_AHEAD_INNER,
	    [IMAGE_DOMAIN_BINDING] = SUB_AT_BINDING};
	return is_ahead(image, step) ? SUB_AHEAD : rows[step->domain];
}

/* The body that a step runs over the rows of; -1 = none alone.  Those at binding have a step each. */
static int body_of(const struct compilation *c, const struct image *image, const struct image_step *step)
{
	int before = step->domain == IMAGE_DOMAIN_BINDING ? step->kernel : 0;
	for (size_t b = 0; step->domain != IMAGE_DOMAIN_ONCE && b < c->program.bodies.n; b++)
		if (c->program.bodies.at[b].domain == rows_of(image, step) && before-- == 0)
			return b;
	return -1;
}

/* Some constants are computed in one piece: nothing of that can be shared out. */
static bool has_rows(const struct compilation *c, int body)
{
	const struct sub_body *b = &c->program.bodies.at[body];
	return b->domain != SUB_AT_BINDING || sched_leads(&c->program, b->stores.at->value.value);
}

/* Whether a kernel is for one group alone, or for a part of it: it has its name, perhaps with something
 * behind a dot. */
static bool is_for(const char *kernel, const struct sched_group *g)
{
	size_t n = strlen(g->name);
	return strncmp(kernel, g->name, n) == 0 && (!kernel[n] || kernel[n] == '.');
}

/* The group of a body that a kernel is for; -1 = all of them. */
static int group_of(const struct compilation *c, int body, const char *kernel)
{
	for (size_t g = 0; g < c->plan.groups.n; g++)
		if (c->plan.groups.at[g].body == body && is_for(kernel, &c->plan.groups.at[g]))
			return g;
	return -1;
}

static void add_work(struct image_step *s, struct sched_work w)
{
	s->rows = w.rows > s->rows ? w.rows : s->rows;
	s->operations = w.operations < INT_MAX - s->operations ? s->operations + w.operations : INT_MAX;
}

/* The length of a kernel's name without its number among the parts of a step. */
static size_t stem_of(const char *kernel)
{
	const char *part = strstr(kernel, ".part");
	return part ? (size_t)(part - kernel) : strlen(kernel);
}

static int parts_of(const struct image *image, const char *kernel)
{
	int parts = 0;
	for (int i = 0; i < image->kernels; i++)
		parts += stem_of(image->kernel_name[i]) == stem_of(kernel) &&
			 memcmp(image->kernel_name[i], kernel, stem_of(kernel)) == 0;
	return parts;
}

/* Parts share the work of a group as they share its columns. */
static void describe_step(const struct compilation *c, const struct image *image, struct image_step *step)
{
	int body = body_of(c, image, step);
	const char *name = image->kernel_name[step->kernel];
	int group = body < 0 ? -1 : group_of(c, body, name);
	for (size_t g = 0; body >= 0 && g < c->plan.groups.n; g++)
		if (c->plan.groups.at[g].body == body && (group < 0 || (size_t)group == g))
			add_work(step, sched_work_of(&c->sched, &c->plan, g));
	step->operations = body >= 0 && has_rows(c, body) ? step->operations / parts_of(image, name) : 0;
}

/* What is there of a step's rows is known to the schedule, not to the loops. */
static void describe_work(const struct compilation *c, struct image *image)
{
	struct image_step *steps = ARENA_ARRAY(c->arena, struct image_step, image->steps);
	for (int i = 0; i < image->steps; i++) {
		steps[i] = image->step[i];
		describe_step(c, image, &steps[i]);
	}
	image->step = steps;
}

static void describe_dimensions(const struct compilation *c, const int64_t *sizes, struct image *image)
{
	size_t n = c->model->symbols.n;
	struct image_dimension *dimensions = ARENA_ARRAY(c->arena, struct image_dimension, n);
	for (size_t i = 0; i < n; i++)
		dimensions[i] = (struct image_dimension){c->model->symbols.at[i].name, sizes[i]};
	image->dimension = dimensions;
	image->dimensions = n;
}

static void describe_interface(const struct compilation *c, const int64_t *sizes, struct image *image)
{
	image->name = c->model->name;
	image->children = c->model->structure.children;
	image->shared_children = c->model->structure.kind == RA_DAG;
	describe_inputs(c, image);
	describe_params(c, image);
	describe_outputs(c, image);
	describe_states(c, image);
	describe_dimensions(c, sizes, image);
}

bool compile_plan(struct arena *arena, struct diags *diags, const struct ra_model *model,
		  const int64_t *sizes, const struct compile_options *options, struct sub_program *program,
		  struct sched_plan *plan, struct sub_trace *trace)
{
	struct compilation c = {
	    .arena = arena, .diags = diags, .model = model, .options = options, .trace = trace};
	if (!make_program(&c, sizes))
		return false;
	if (!make_plan(&c))
		return false;
	*program = c.program;
	*plan = c.plan;
	plan->p = program;
	return true;
}

bool compile_interface(struct arena *arena, struct diags *diags, const struct ra_model *model,
		       const int64_t *sizes, const struct compile_options *options, struct image *image)
{
	struct compilation c = {.arena = arena, .diags = diags, .model = model, .options = options};
	*image = (struct image){0};
	if (!make_program(&c, sizes) || !make_schedule(&c))
		return false;
	describe_interface(&c, sizes, image);
	return true;
}

bool compile_image(struct arena *arena, struct diags *diags, const struct ra_model *model,
		   const int64_t *sizes, const struct compile_options *options, struct image *image,
		   struct times *times)
{
	struct compilation c = {.arena = arena,
				.diags = diags,
				.model = model,
				.options = options,
				.times = times,
				.clock = times_clock()};
	const char *last = is_interpreter(&c) ? options->last_pass : NULL;
	*image = (struct image){0};
	if (!make_program(&c, sizes) || !make_schedule(&c) || !make_loops(&c))
		return false;
	if (!(last && strcmp(last, "lower") == 0) && !run_passes(&c, last))
		return false;
	ilir_describe(&c.module, image);
	describe_orders(&c, image);
	describe_work(&c, image);
	describe_interface(&c, sizes, image);
	note_time(&c, "image", "describe");
	return make_code(&c, image);
}

/* --- dumps --- */

static const char *const before_passes[] = {"ra",	"written", "derivation", "subop",
					    "refactor", "hoist",   "sched",	 "lower"};
static const char *const after_passes[] = {"ilir", "llvm", "asm"};
enum {
	BEFORE = sizeof before_passes / sizeof *before_passes,
	AFTER = sizeof after_passes / sizeof *after_passes
};

const char *compile_stage(size_t i)
{
	int passes = 0;
	while (ilir_pass_at(passes))
		passes++;
	if (i < BEFORE)
		return before_passes[i];
	i -= BEFORE;
	if (i < (size_t)passes)
		return ilir_pass_at(i)->name;
	i -= passes;
	return i < AFTER ? after_passes[i] : NULL;
}

static bool dump_code(struct compilation *c, enum jit_text what, struct str *s)
{
	struct jit_options options = jit_options_of(c);
	const struct jit_backend *backend =
	    jit_backend_load(is_interpreter(c) ? "llvm" : c->options->backend, c->diags);
	return backend && jit_print(backend, &c->module, &options, what, s, c->diags);
}

/* A kernel counts alone, in a module that has no other. */
static void dump_loops(const struct compilation *c, struct str *s)
{
	const char *separator = "# intermediates, neither states nor outputs, that kernels store to memory: ";
	for (size_t k = 0; k < c->module.kernels.n; k++, separator = ", ") {
		struct ilir_module alone = c->module;
		alone.kernels.at += k;
		alone.kernels.n = 1;
		str_printf(s, "%s%s %d", separator, alone.kernels.at->name,
			   ilir_stored_intermediates(&alone));
	}
	str_puts(s, "\n");
	ilir_print(&c->module, s);
}

bool compile_dump(struct arena *arena, struct diags *diags, const struct ra_model *model,
		  const int64_t *sizes, const struct compile_options *options, const char *stage,
		  struct str *s)
{
	struct sub_trace trace = {.texts = strcmp(stage, "derivation") == 0};
	struct compilation c = {
	    .arena = arena, .diags = diags, .model = model, .options = options, .trace = &trace};
	if (strcmp(stage, "ra") == 0)
		return ra_print(model, s), true;
	if (!make_program(&c, sizes))
		return false;
	if (strcmp(stage, "written") == 0)
		return sub_print(&c.written, s), true;
	if (trace.texts)
		return sub_print_trace(&trace, s), true;
	if (strcmp(stage, "subop") == 0)
		return sub_print(&c.folded, s), true;
	if (strcmp(stage, "refactor") == 0)
		return make_plan(&c) && (sub_print(&c.refactored, s), true);
	if (strcmp(stage, "hoist") == 0)
		return make_plan(&c) && (sub_print(&c.program, s), true);
	if (!make_schedule(&c))
		return false;
	if (strcmp(stage, "sched") == 0)
		return sched_print(&c.sched, &c.plan, s), true;
	if (!make_loops(&c))
		return false;
	if (strcmp(stage, "lower") == 0)
		return dump_loops(&c, s), true;
	if (!run_passes(&c, stage))
		return false;
	if (strcmp(stage, "llvm") == 0 || strcmp(stage, "asm") == 0)
		return dump_code(&c, strcmp(stage, "asm") == 0 ? JIT_TEXT_ASM : JIT_TEXT_IR, s);
	return dump_loops(&c, s), true;
}
