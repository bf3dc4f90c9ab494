/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs of sub-operators that no model text says: built by calls, evaluated by the oracle, compiled and
 * run. */
#ifndef ESPALIER_TESTS_SUBOP_RUN_H
#define ESPALIER_TESTS_SUBOP_RUN_H

#include "ilir/passes.h"
#include "image/code.h"
#include "image/link.h"
#include "jit/jit.h"
#include "tests/models/helper.h"

/* --- building --- */

struct bench {
	struct arena arena;
	struct diags diags;
	struct sub_program p;
	jmp_buf jump;
};

static inline void bench_open(struct bench *b)
{
	arena_init(&b->arena, &allocator_default);
	diags_init(&b->diags, &allocator_default);
	b->arena.escape = &b->jump;
	sub_init(&b->p, &b->arena, "test");
}

static inline void bench_close(struct bench *b)
{
	diags_free(&b->diags);
	arena_free(&b->arena);
}

static inline struct sub_tensor tensor_of(struct sub_program *p, const char *name, int rank,
					  const int64_t *shape)
{
	struct sub_tensor t = {.name = name, .rank = rank};
	for (int d = 0; d < rank; d++) {
		int ordinal = 0;
		for (int i = 0; i < d; i++)
			ordinal += shape[i] == shape[d];
		t.var[d] = sub_dim(p, shape[d], ordinal);
		t.shape[d] = shape[d];
	}
	return t;
}

#define SHAPE(...)                                                                                           \
	(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                               \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}

static inline sub_ref source_of(struct bench *b, enum sub_op op, int which, const struct sub_tensor *t)
{
	struct sub_value v = {.op = op, .which = which};
	if (op != SUB_PARAM)
		v.var[v.vars++] = b->p.node;
	for (int d = 0; d < t->rank; d++)
		v.var[v.vars++] = t->var[d];
	return sub_add(&b->p, v, &b->diags);
}

static inline sub_ref make_param(struct bench *b, const char *name, int rank, const int64_t *shape)
{
	vec_push(&b->arena, &b->p.params, tensor_of(&b->p, name, rank, shape));
	return source_of(b, SUB_PARAM, b->p.params.n - 1, &b->p.params.at[b->p.params.n - 1]);
}

static inline sub_ref make_input(struct bench *b, const char *name, int rank, const int64_t *shape)
{
	vec_push(&b->arena, &b->p.inputs,
		 (struct sub_input){.name = name, .row = tensor_of(&b->p, name, rank, shape)});
	return source_of(b, SUB_VECTOR, b->p.inputs.n - 1, &b->p.inputs.at[b->p.inputs.n - 1].row);
}

static inline sub_ref make_state(struct bench *b, const char *name, int rank, const int64_t *shape)
{
	vec_push(&b->arena, &b->p.states, tensor_of(&b->p, name, rank, shape));
	return source_of(b, SUB_STATE, b->p.states.n - 1, &b->p.states.at[b->p.states.n - 1]);
}

static inline sub_ref constant_of(struct bench *b, double number)
{
	return sub_add(&b->p, (struct sub_value){.op = SUB_CONST, .constant = number}, &b->diags);
}

/* A use under these names. */
static inline struct sub_use named(const struct bench *b, sub_ref r, int n, const int *vars)
{
	struct sub_use u = sub_as_is(&b->p, r);
	for (int i = 0; i < n && i < u.vars; i++)
		u.var[i] = vars[i];
	return u;
}

#define VARS(...)                                                                                            \
	(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[])                                           \
	{                                                                                                    \
		__VA_ARGS__                                                                                  \
	}

static inline sub_ref unary_of(struct bench *b, enum sub_op op, sub_ref r)
{
	return sub_add(&b->p, (struct sub_value){.op = op, .arg = {sub_as_is(&b->p, r)}}, &b->diags);
}

static inline sub_ref binary_of(struct bench *b, enum sub_op op, struct sub_use x, struct sub_use y)
{
	return sub_add(&b->p, (struct sub_value){.op = op, .arg = {x, y}}, &b->diags);
}

static inline sub_ref reduce_over(struct bench *b, enum sub_op op, sub_ref r, struct sub_vars over)
{
	return sub_add(&b->p, (struct sub_value){.op = op, .arg = {sub_as_is(&b->p, r)}, .reduced = over}, &b->diags);
}

static inline sub_ref reduce_of(struct bench *b, enum sub_op op, sub_ref r, int var)
{
	return reduce_over(b, op, r, sub_one_var(var));
}

/* A copy with these variables; maps and fill are filled in by the caller of sub_add. */
static inline struct sub_value move_of(const struct bench *b, enum sub_op op, sub_ref from, int n,
				       const int *vars)
{
	struct sub_value v = {.op = op, .arg = {sub_as_is(&b->p, from)}, .vars = n};
	memcpy(v.var, vars, n * sizeof *vars);
	return v;
}

/* Maps of a value that is being made: all zero, to be filled. */
static inline struct sub_map *new_maps(struct bench *b, struct sub_value *v)
{
	struct sub_map *maps = ARENA_ARRAY(&b->arena, struct sub_map, SUB_MAX_VARS);
	v->map = maps;
	return maps;
}

static inline struct sub_map map_of(int var, int64_t scale, int64_t offset)
{
	return (struct sub_map){.function = SUB_AFFINE, .var = var, .scale = scale, .offset = offset};
}

static inline struct sub_map map_of_two(int var, int64_t scale, int var2, int64_t scale2, int64_t offset)
{
	return (struct sub_map){.function = SUB_AFFINE,
				.var = var,
				.scale = scale,
				.offset = offset,
				.var2 = var2,
				.scale2 = scale2};
}

static inline struct sub_body *make_body(struct bench *b, const char *name, enum sub_domain domain)
{
	vec_push(&b->arena, &b->p.bodies, (struct sub_body){.name = name, .domain = domain});
	return &b->p.bodies.at[b->p.bodies.n - 1];
}

static inline void store_state(struct bench *b, struct sub_body *body, int state, sub_ref value)
{
	vec_push(&b->arena, &body->stores,
		 (struct sub_store){.to = SUB_TO_STATE, .which = state, .value = sub_as_is(&b->p, value)});
}

/* An output of the shape that the value has beside its node. */
static inline void make_output(struct bench *b, struct sub_body *body, const char *name, sub_ref value,
			       bool at_root)
{
	const struct sub_value *v = sub_at(&b->p, value);
	int64_t shape[SUB_MAX_VARS];
	for (int i = 1; i < v->vars; i++)
		shape[i - 1] = b->p.vars.at[v->var[i]].extent;
	struct sub_output o = {tensor_of(&b->p, name, sub_at(&b->p, value)->vars - 1, shape), at_root};
	vec_push(&b->arena, &b->p.outputs, o);
	vec_push(&b->arena, &body->stores,
		 (struct sub_store){
		     .to = SUB_TO_OUTPUT, .which = b->p.outputs.n - 1, .value = sub_as_is(&b->p, value)});
}

/* --- data --- */

static inline int64_t row_of(const struct sub_tensor *t)
{
	int64_t n = 1;
	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* What a program runs over: every number is at a place that its kind and element say. */
struct data {
	struct sub_forest forest;
	const void **params;
	int64_t results; /* elements of all outputs */
};

/* --- the oracle --- */

/* All outputs, one after the other; NULL when the arithmetic has no meaning for the program. */
static inline double *evaluate(const struct sub_program *p, enum sub_arithmetic arithmetic,
			       const struct data *d, struct arena *a)
{
	double **states = ARENA_ARRAY(a, double *, p->states.n + 1),
	       **outputs = ARENA_ARRAY(a, double *, p->outputs.n + 1);
	double *all = ARENA_ARRAY(a, double, d->results + 1);
	int64_t at = 0;
	for (size_t s = 0; s < p->states.n; s++)
		states[s] = ARENA_ARRAY(a, double, d->forest.nodes *row_of(&p->states.at[s]));
	for (size_t o = 0; o < p->outputs.n; o++) {
		outputs[o] = all + at;
		at += (p->outputs.at[o].at_root ? d->forest.inputs : d->forest.nodes) *
		      row_of(&p->outputs.at[o].row);
	}
	return sub_evaluate_in(arithmetic, p, &d->forest, d->params, states, outputs, a) ? all : NULL;
}

static inline int64_t count_results(const struct sub_program *p, const struct sub_forest *f)
{
	int64_t n = 0;
	for (size_t o = 0; o < p->outputs.n; o++)
		n += (p->outputs.at[o].at_root ? f->inputs : f->nodes) * row_of(&p->outputs.at[o].row);
	return n;
}

/* --- compiling --- */

struct compiled {
	struct sub_program folded;
	struct sched_plan plan;
	struct sched sched;
	struct ilir_tiling tiling;
	struct ilir_module module;
	struct ilir_interpreter *interpreter;
	struct image image;
};

static inline bool interpret(void *self, int kernel, const struct image_frame *frame,
			     const struct image_range *range, struct diags *d)
{
	return ilir_interpret(((struct compiled *)self)->interpreter, kernel, frame, range, d);
}

static inline int64_t copy_shape(const struct sub_tensor *t, int *rank, int64_t *shape)
{
	*rank = t->rank;
	for (int d = 0; d < t->rank && d < IMAGE_MAX_RANK; d++)
		shape[d] = t->shape[d];
	return row_of(t);
}

static inline int buffer_of(const struct image *image, enum image_buffer_kind kind, int which)
{
	for (int b = 0; b < image->buffers; b++)
		if (image->buffer[b].kind == kind && image->buffer[b].which == which)
			return b;
	return -1;
}

/* The program's interface, as compile/compile.c says it of a model. */
static inline void describe(struct arena *a, const struct sub_program *p, const struct sched *sched,
			    const int *limits, struct image *image)
{
	struct image_input *inputs = ARENA_ARRAY(a, struct image_input, p->inputs.n + 1);
	struct tensor_info *params = ARENA_ARRAY(a, struct tensor_info, p->params.n + 1);
	struct image_output *outputs = ARENA_ARRAY(a, struct image_output, p->outputs.n + 1);
	struct image_state *states = ARENA_ARRAY(a, struct image_state, p->states.n + 1);
	for (size_t i = 0; i < p->inputs.n; i++) {
		const struct sub_input *in = &p->inputs.at[i];
		inputs[i] = (struct image_input){
		    .name = in->name, .token = in->token, .at_leaf = true, .at_inner = true};
		if (in->token)
			inputs[i].limit = limits ? limits[i] : 0;
		else
			inputs[i].elements = copy_shape(&in->row, &inputs[i].rank, inputs[i].shape);
	}
	for (size_t i = 0; i < p->params.n; i++) {
		params[i] = (struct tensor_info){.name = p->params.at[i].name, .rank = p->params.at[i].rank};
		memcpy(params[i].shape, p->params.at[i].shape, sizeof params[i].shape);
	}
	for (size_t i = 0; i < p->outputs.n; i++) {
		const struct sub_output *o = &p->outputs.at[i];
		outputs[i] = (struct image_output){
		    .name = o->row.name, .buffer = buffer_of(image, IMAGE_OUTPUT, i), .at_root = o->at_root};
		outputs[i].elements = copy_shape(&o->row, &outputs[i].rank, outputs[i].shape);
	}
	for (size_t i = 0; i < p->states.n; i++) {
		states[i] = (struct image_state){.name = p->states.at[i].name,
						 .layout = sched->states.at[i].layout,
						 .buffer = buffer_of(image, IMAGE_STATE, i)};
		states[i].elements = copy_shape(&p->states.at[i], &states[i].rank, states[i].shape);
	}
	image->input = inputs, image->inputs = p->inputs.n;
	image->param = params, image->params = p->params.n;
	image->output = outputs, image->outputs = p->outputs.n;
	image->state = states, image->states = p->states.n;
	image->name = p->name;
	image->children = p->children;
}

static inline bool make_code(struct compiled *c, struct arena *a, const char *name, struct diags *d)
{
	if (strcmp(name, "interpreter") == 0) {
		c->interpreter = ilir_interpreter_new(a, &c->module);
		c->image.code = (struct image_code){.call = interpret, .self = c};
		return true;
	}
	const struct jit_backend *backend = jit_backend_load(name, d);
	struct jit_options options = {.target = c->sched.target, .native = true};
	struct jit_objects o;
	return backend && jit_compile(backend, &c->module, &options, (struct jit_threads){.most = 1}, a, &o, d) &&
	       image_link(a, o.object, o.n, "test", c->image.kernels, c->image.kernel_name,
			  &c->image.blob, d) &&
	       image_code_load(&c->image.blob, &allocator_default, "test", &c->image.code, d);
}

/* Contracts, quantises and folds a program. */
static inline void rewrite_program(struct sub_program *folded, struct arena *a, const struct sub_program *p,
				   enum precision precision)
{
	struct rewrite_options o = {.table_bytes = 1 << 20, .precision = precision};
	struct sub_program contracted, quantised, grouped;
	sub_init(&contracted, a, p->name);
	sub_init(&quantised, a, p->name);
	sub_init(&grouped, a, p->name);
	sub_init(folded, a, p->name);
	rewrite_contract(&contracted, p, NULL, NULL);
	if (precision != PRECISION_F32) {
		rewrite_quantise(&quantised, &contracted, &o, NULL);
		rewrite_group(&grouped, &quantised, &o, NULL);
	}
	rewrite_fold(folded, precision == PRECISION_F32 ? &contracted : &grouped, &o, NULL);
}

/* The whole way of compile/compile.c, but from a program of sub-operators; `last` as in compile_options. */
static inline bool compile_program_in(enum precision precision, struct compiled *c, struct arena *a,
				      const struct sub_program *p, const int *limits, const char *backend,
				      const char *target, const char *last, struct diags *d)
{
	unsigned properties = 0;
	memset(c, 0, sizeof *c);
	rewrite_program(&c->folded, a, p, precision);
	if (!sub_verify(&c->folded, d))
		return false;
	sched_make_plan(&c->plan, a, &c->folded, target_find(target), &(struct sched_fusion){0});
	sched_choose(&c->sched, &c->plan, target_find(target));
	ilir_init(&c->module, a, "test");
	ilir_lower(&c->module, &c->tiling, &c->plan, &c->sched);
	if (!ilir_verify(&c->module, 0, "lower", d))
		return false;
	for (int i = 0; ilir_pass_at(i) && !(last && strcmp(last, "lower") == 0); i++) {
		ilir_pass_at(i)->run(&c->module, &c->tiling);
		properties |= ilir_pass_at(i)->establishes;
		if (!ilir_verify(&c->module, properties, ilir_pass_at(i)->name, d))
			return false;
		if (last && strcmp(last, ilir_pass_at(i)->name) == 0)
			break;
	}
	ilir_describe(&c->module, &c->image);
	describe(a, p, &c->sched, limits, &c->image);
	return make_code(c, a, backend, d);
}

static inline bool compile_program(struct compiled *c, struct arena *a, const struct sub_program *p,
				   const int *limits, const char *backend, const char *target,
				   const char *last, struct diags *d)
{
	return compile_program_in(PRECISION_F32, c, a, p, limits, backend, target, last, d);
}

static inline bool read_params(void *context, int param, int64_t first, int64_t count, void *out,
			       struct diags *d)
{
	float *to = out;
	(void)d;
	memcpy(to, (const float *)((const struct data *)context)->params[param] + first, count * sizeof *to);
	return true;
}

/* Runs what was compiled; the outputs as evaluate() gives them, NULL after diagnostics. */
static inline float *run_compiled(struct compiled *c, struct arena *a, const struct data *data,
				  struct diags *d)
{
	struct rt_source source = {read_params, (void *)data};
	struct rt_binding binding;
	struct rt_session session;
	const struct sub_forest *f = &data->forest;
	struct rt_minibatch minibatch = {
	    {f->nodes, f->inputs, f->child_begin, f->children, f->root, NULL, NULL, 0}, f->data};
	float *all = NULL;
	if (!rt_bind(&binding, &allocator_default, &c->image, &source, NULL, d))
		return NULL;
	if (rt_session_init(&session, &allocator_default, &c->image, d)) {
		if (rt_session_run(&session, &binding, NULL, &minibatch, d)) {
			struct test_run r = {.image = c->image, .session = session};
			int64_t count;
			double *gathered = gather_outputs(&r, f->nodes, f->inputs, &count);
			all = ARENA_ARRAY(a, float, data->results + 1);
			for (int64_t i = 0; i < data->results; i++)
				all[i] = (float)gathered[i];
			free(gathered);
		}
		rt_session_free(&session);
	}
	rt_binding_free(&binding);
	if (c->image.code.release)
		c->image.code.release(&c->image.code);
	return all;
}

#endif
