/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Fills the parts of the image that the schedule and the program determine: the interface, the work of
 * steps. */
#include "base/cpu.h"
#include "compile/compilation.h"
#include "image/image_file.h"

#include <limits.h>
#include <string.h>

/* A mask of all cases of a domain. */
static unsigned cases_of(const struct sub_program *p, enum sub_domain domain)
{
	unsigned mask = 0;
	for (size_t c = 0; c < p->cases.n; c++)
		if (domain != (p->cases.at[c].inner ? SUB_LEAF : SUB_INNER))
			mask |= 1u << c;
	return mask;
}

/* Marks tokens that conditions of cases read, at all leaves or all inner nodes. */
static void note_cases(const struct sub_program *p, struct image_input *inputs)
{
	for (size_t c = 0; c < p->cases.n; c++)
		for (int m = 0; m < p->cases.at[c].matches; m++) {
			struct image_input *in = &inputs[p->cases.at[c].match[m].input];
			in->at_leaf |= !p->cases.at[c].inner;
			in->at_inner |= p->cases.at[c].inner;
		}
}

/* Whether a body reads an input at all nodes of the structure, whichever its own are. */
static bool reads_members(const struct sub_program *p, const struct sub_value *v)
{
	const struct sub_map *m = &v->map[0];
	return m->function == SUB_MEMBER_NODE || (m->function == SUB_TOKEN && p->vars.at[m->var].set == SUB_MEMBER);
}

/* Marks the inputs that a body reads, and limits tokens to the rows that they select from. */
static void note_inputs(const struct sub_program *p, const struct sub_body *b, struct image_input *inputs,
			struct arena *a)
{
	bool *live = ARENA_ARRAY(a, bool, p->values.n);
	sub_mark_live(p, b, live);
	for (size_t i = 1; i < p->values.n; i++) {
		const struct sub_value *v = &p->values.at[i];
		bool look_up = v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_TOKEN;
		bool gathered = v->op == SUB_ASSIGN && v->arg[0].vars && reads_members(p, v);
		const struct sub_value *from = gathered && !look_up ? sub_at(p, v->arg[0].value) : v;
		if (!live[i] || !(look_up || from->op == SUB_VECTOR))
			continue;
		struct image_input *in = &inputs[look_up ? v->map[0].which : from->which];
		enum sub_domain domain = gathered ? SUB_EVERY_NODE : b->domain;
		int64_t rows = look_up ? p->vars.at[v->arg[0].var[0]].extent : 0;
		in->limit = look_up && (!in->limit || rows < in->limit) ? rows : in->limit;
		in->at_leaf |= domain != SUB_INNER;
		in->at_inner |= domain != SUB_LEAF;
		in->cases |= b->cases && !gathered ? b->cases : cases_of(p, domain);
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

/* The name by which callers know an input or an output. */
static const char *own_name(const char *source, const char *name)
{
	return source ? source : name;
}

static void describe_inputs(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->written;
	struct image_input *inputs = ARENA_ARRAY(c->arena, struct image_input, p->inputs.n);
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_input *in = &p->inputs.at[i];
		inputs[i] =
		    (struct image_input){.name = own_name(c->model->inputs.at[i].source_name, in->name),
					 .token = in->token,
					 .dtype = in->row.dtype,
					 .within = in->row.within,
					 .on_edge = in->on_edge};
		if (!in->token)
			inputs[i].elements = copy_shape(&in->row, &inputs[i].rank, inputs[i].shape);
	}
	for (size_t b = 0; b < p->bodies.n; b++)
		note_inputs(p, &p->bodies.at[b], inputs, c->arena);
	note_cases(p, inputs);
	image->input = inputs;
	image->inputs = p->inputs.n;
}

/* The parameters of the model, and bounds of a calibration: all that no body computes. */
static void describe_params(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->program;
	struct tensor_info *params = ARENA_ARRAY(c->arena, struct tensor_info, p->params.n + 1);
	size_t n = 0;
	while (n < p->params.n && !p->params.at[n].folded)
		n++;
	for (size_t i = 0; i < n; i++) {
		const struct sub_tensor *t = &p->params.at[i];
		params[i] = (struct tensor_info){.name = t->name, .dtype = t->dtype, .rank = t->rank};
		memcpy(params[i].shape, t->shape, t->rank * sizeof *t->shape);
	}
	image->param = params;
	image->params = (int)n;
}

/* Makes the shape of a row of the program that of the caller's row, which is a stack of them. */
static void stack_shape(const struct sub_program *p, struct image_output *o)
{
	if (p->stacked < 2)
		return;
	memmove(o->shape + 1, o->shape, (size_t)o->rank++ * sizeof *o->shape);
	o->shape[0] = p->stacked;
	o->elements *= p->stacked;
}

/* The outputs of the model, and those that were added to observe the program. */
static void describe_outputs(const struct compilation *c, struct image *image)
{
	static const struct ra_output added;
	const struct sub_program *p = &c->program;
	struct image_output *outputs = ARENA_ARRAY(c->arena, struct image_output, p->outputs.n);
	for (size_t i = 0; i < p->outputs.n; i++) {
		const struct ra_output *o = i < c->model->outputs.n ? &c->model->outputs.at[i] : &added;
		outputs[i] = (struct image_output){.name = own_name(o->source_name, p->outputs.at[i].row.name),
						   .buffer = find_buffer(image, IMAGE_OUTPUT, i),
						   .at_root = p->outputs.at[i].at_root,
						   .labels = o->labels,
						   .label = o->label,
						   .dtype = p->outputs.at[i].row.dtype};
		outputs[i].elements = copy_shape(&p->outputs.at[i].row, &outputs[i].rank, outputs[i].shape);
		stack_shape(p, &outputs[i]);
	}
	image->output = outputs;
	image->outputs = p->outputs.n;
}

/* Permutes the dimensions of a state's buffer from the kernels' order to the program's. */
static void describe_order(const struct sched_order *order, struct image_buffer *b)
{
	struct image_buffer was = *b;
	for (int i = 0; i < order->rank; i++) {
		b->shape[order->dim[i]] = was.shape[i];
		b->stride[order->dim[i]] = was.stride[i];
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

/* The states of the model, and those that were added to observe the program: all but derived ones. */
static void describe_states(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->program;
	struct image_state *states = ARENA_ARRAY(c->arena, struct image_state, p->states.n);
	size_t n = 0;
	while (n < p->states.n && !p->states.at[n].derived)
		n++;
	for (size_t i = 0; i < n; i++) {
		states[i] = (struct image_state){.name = p->states.at[i].name,
						 .layout = c->sched.states.at[i].layout,
						 .buffer = find_buffer(image, IMAGE_STATE, i),
						 .dtype = p->states.at[i].dtype};
		states[i].elements = copy_shape(&p->states.at[i], &states[i].rank, states[i].shape);
	}
	image->state = states;
	image->states = (int)n;
}

/* The body whose rows a step runs over: that of its group; for a step with all bodies of the recursion, the
 * first inner one; -1 = none.  Each body at binding has a step of its own. */
static int body_of(const struct compilation *c, const struct ilir_kernel *k)
{
	int before = k->domain == IMAGE_DOMAIN_BINDING ? k - c->module.kernels.at : 0;
	enum sub_domain domain = k->domain == IMAGE_DOMAIN_BINDING ? SUB_AT_BINDING : SUB_INNER;
	if (k->group)
		return c->plan.groups.at[k->group - 1].body;
	for (size_t b = 0; k->domain != IMAGE_DOMAIN_ONCE && b < c->program.bodies.n; b++)
		if (c->program.bodies.at[b].domain == domain && before-- == 0)
			return b;
	return -1;
}

/* Whether a body has rows: some constants are computed in one piece, which cannot be divided. */
static bool has_rows(const struct compilation *c, int body)
{
	const struct sub_body *b = &c->program.bodies.at[body];
	return b->domain != SUB_AT_BINDING || sub_leading_dims(&c->program, b->stores.at->value.value);
}

/* A kernel of several groups has their strategy if it is the same for all. */
static void add_strategy(struct image_step *s, enum image_strategy strategy, bool first)
{
	s->strategy = first || s->strategy == strategy ? strategy : IMAGE_CHEAPEST;
}

static void add_work(struct image_step *s, struct sched_work w)
{
	s->rows = w.rows > s->rows ? w.rows : s->rows;
	s->tiles |= w.tiles;
	s->operations = w.operations < INT_MAX - s->operations ? s->operations + w.operations : INT_MAX;
}

/* Each kernel of a group computes all local groups that the group reads. */
static void add_heads(const struct compilation *c, struct image_step *step, const struct sched_group *g)
{
	int blocks = step->operations;
	for (size_t h = 0; h < g->heads.n; h++)
		add_work(step, sched_work_of(&c->sched, &c->plan, g->heads.at[h]));
	step->head = step->operations - blocks;
}

/* A node of a tree has two children in the mean, one of a sequence has one, and a parent is one. */
static void add_second_child(const struct compilation *c, struct image_step *step)
{
	bool two = c->model->structure.children && c->model->structure.children != 1 && step->domain != IMAGE_DOMAIN_BATCH_DOWN &&
		   step->domain != IMAGE_DOMAIN_NODE_DOWN;
	int64_t more = two ? step->state_bytes : 0;
	step->state_bytes += more;
	step->read_bytes += more;
	step->moved_bytes += step->moved_bytes ? more : 0;
}

/* The kernels that a group is cut into divide its operations as its columns; a kernel of no single group
 * computes all groups of its body. */
static void describe_step(const struct compilation *c, struct image_step *step)
{
	const struct ilir_kernel *k = &c->module.kernels.at[step->kernel];
	int body = body_of(c, k);
	for (size_t g = 0; body >= 0 && g < c->plan.groups.n; g++)
		if (c->plan.groups.at[g].body == body && (!k->group || (size_t)k->group == g + 1)) {
			if (!c->plan.groups.at[g].local)
				add_strategy(step, c->sched.strategies.at[g], !step->rows);
			add_work(step, sched_work_of(&c->sched, &c->plan, g));
		}
	step->operations = body >= 0 && has_rows(c, body) ? step->operations / (k->parts ? k->parts : 1) : 0;
	if (step->operations && k->group)
		add_heads(c, step, &c->plan.groups.at[k->group - 1]);
	add_second_child(c, step);
}

/* Sets the work and the strategy of steps, which the schedule determines and not the loops. */
static void describe_work(const struct compilation *c, struct image *image)
{
	struct image_step *steps = ARENA_ARRAY(c->arena, struct image_step, image->steps);
	for (int i = 0; i < image->steps; i++) {
		steps[i] = image->step[i];
		describe_step(c, &steps[i]);
	}
	image->step = steps;
	image->migrating = !c->sched.persist;
	image->step_barriers = c->sched.barrier_each_step;
}

static void describe_dimensions(const struct compilation *c, struct image *image)
{
	size_t n = ra_given_symbols(c->model);
	struct image_dimension *dimensions = ARENA_ARRAY(c->arena, struct image_dimension, n);
	for (size_t i = 0; i < n; i++)
		dimensions[i] = (struct image_dimension){c->model->symbols.at[i].name, c->sizes[i]};
	image->dimension = dimensions;
	image->dimensions = n;
}

/* Names the target, and the extensions that code for this machine only may use. */
static void describe_machine(const struct compilation *c, struct image *image)
{
	struct str extensions = str_in(c->arena);
	if (c->options->native)
		cpu_extensions(&extensions);
	image->target = c->plan.target->name;
	image->extensions = str_text(&extensions);
}

void compile_describe_interface(const struct compilation *c, struct image *image)
{
	/* Fast arithmetic may treat denormals, which are slow, as zeros. */
	image->flush = c->options->math == REWRITE_FAST;
	describe_machine(c, image);
	image->name = c->model->name;
	image->children = c->model->structure.children;
	image->shared_children = c->model->structure.kind == RA_DAG;
	image->unroll = c->sched.unroll;
	image->stacked = c->program.stacked;
	describe_inputs(c, image);
	describe_params(c, image);
	describe_outputs(c, image);
	describe_states(c, image);
	describe_dimensions(c, image);
	image->cases = c->written.cases.n;
	image->case_at = c->written.cases.at;
}

/* By parameter: the inputs whose tokens select its rows, ANY_ROW where it is read otherwise. */
#define ANY_ROW (1u << IMAGE_SELECTING_INPUTS)

/* Which rows of a parameter an argument may be, where it is a parameter. */
static unsigned rows_of_argument(const struct sub_body *b, const struct sub_value *v)
{
	bool by_token = v->op == SUB_ASSIGN && v->arg[0].vars && v->map[0].function == SUB_TOKEN;
	return by_token && b->domain != SUB_AT_BINDING && v->map[0].which < IMAGE_SELECTING_INPUTS
		   ? 1u << v->map[0].which
		   : ANY_ROW;
}

static void note_param(const struct sub_program *p, sub_ref r, unsigned rows, unsigned *selected)
{
	if (sub_at(p, r)->op == SUB_PARAM)
		selected[sub_at(p, r)->which] |= rows;
}

static void note_selections(const struct compilation *c, const struct sub_body *b, unsigned *selected)
{
	const struct sub_program *p = &c->program;
	bool *live = ARENA_ARRAY(c->arena, bool, p->values.n);
	sub_mark_live(p, b, live);
	for (size_t i = 1; i < p->values.n; i++)
		for (int a = 0; live[i] && a < p->values.at[i].args; a++)
			note_param(p, p->values.at[i].arg[a].value, rows_of_argument(b, &p->values.at[i]), selected);
	for (size_t s = 0; s < b->stores.n; s++)
		note_param(p, b->stores.at[s].value.value, ANY_ROW, selected);
}

/* Marks recipes of parameters whose rows are only selected by tokens. */
static void describe_selections(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->program;
	unsigned *selected = ARENA_ARRAY(c->arena, unsigned, p->params.n + 1);
	struct image_recipe *recipes = arena_copy(c->arena, image->recipe, image->recipes * sizeof *recipes);
	for (size_t b = 0; b < p->bodies.n; b++)
		note_selections(c, &p->bodies.at[b], selected);
	for (int i = 0; i < image->recipes; i++) {
		unsigned rows = recipes[i].sources == 1 ? selected[recipes[i].source->param] : ANY_ROW;
		recipes[i].selected_by = rows & ANY_ROW ? 0 : rows;
	}
	image->recipe = recipes;
}

/* --- calls --- */

/* The elements between neighbours along the dimensions of a row that are images, channels, rows and columns. */
static struct vta_strides strides_of(const struct image_buffer *b, const struct sub_operand *o)
{
	int64_t stride[4];
	for (int i = 0; i < 4; i++)
		stride[i] = o->axis[i] < 0 ? 0 : b->stride[o->axis[i]];
	return (struct vta_strides){stride[0], stride[1], stride[2], stride[3]};
}

static struct image_operand describe_operand(const struct compilation *c, const struct image *image, const struct sub_operand *o,
					     ilir_buffer buffer)
{
	struct image_operand to = {.segment = o->segment,
				   .buffer = ilir_buffer_slot(&c->module, buffer),
				   .role = o->role,
				   .zero = o->zero,
				   .planes = o->planes};
	if (o->role == IMAGE_OPERAND_CONSTANT)
		return to;
	to.extent = o->extent;
	to.stride = strides_of(&image->buffer[to.buffer], o);
	return to;
}

/* The stream of a call in its binary form; false after diagnostics. */
static bool generate_stream(const struct compilation *c, const struct sub_call *from, struct image_call *to)
{
	struct vta_stream stream;
	size_t bytes;
	if (!vta_generate(c->arena, c->diags, from->operation, (size_t)from->operations, &stream))
		return false;
	to->stream = vta_write(c->arena, &stream, &bytes);
	to->bytes = (int64_t)bytes;
	return true;
}

static bool describe_calls(const struct compilation *c, struct image *image)
{
	const struct sub_program *p = &c->program;
	struct image_call *calls = ARENA_ARRAY(c->arena, struct image_call, p->calls.n);
	for (size_t k = 0; k < p->calls.n; k++) {
		const struct sub_call *from = &p->calls.at[k];
		struct image_operand *operand = ARENA_ARRAY(c->arena, struct image_operand, from->operands);
		for (int i = 0; i < from->operands; i++)
			operand[i] = describe_operand(c, image, &from->operand[i], c->module.calls.at[k].operand[i].buffer);
		calls[k] = (struct image_call){.name = from->name, .operands = from->operands, .operand = operand};
		if (!generate_stream(c, from, &calls[k]))
			return false;
	}
	image->calls = (int)p->calls.n;
	image->call = calls;
	return image_open_calls(c->arena, image, c->diags);
}

/* Names the calls of steps that have no kernel.  That of their number is empty, and nobody runs it. */
static void describe_targets(const struct compilation *c, struct image *image)
{
	struct image_step *steps = arena_copy(c->arena, image->step, image->steps * sizeof *steps);
	for (int i = 0; i < image->steps; i++) {
		int call = c->module.kernels.at[steps[i].kernel].call;
		if (call)
			steps[i].target = IMAGE_TARGET_VTA, steps[i].call = call - 1, steps[i].kernel = 0;
	}
	image->step = steps;
}

bool compile_describe_calls(const struct compilation *c, struct image *image)
{
	if (!c->program.calls.n)
		return true;
	describe_targets(c, image);
	return describe_calls(c, image);
}

void compile_describe_steps(const struct compilation *c, struct image *image)
{
	describe_selections(c, image);
	describe_orders(c, image);
	describe_work(c, image);
}
