/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Operands: values of the graph as the builder has them, and constants. */
#include "base/convert.h"
#include "onnx/operators.h"

#include <float.h>
#include <math.h>

enum dtype onnx_computed(enum onnx_type type)
{
	int dtype = onnx_type_traits_of(type)->dtype;
	return dtype == DTYPES ? DTYPE_F32 : ra_widened(dtype);
}

bool onnx_given(const struct onnx_op *o, int input)
{
	return input < o->ins && o->in[input].given;
}

int64_t onnx_times(int64_t a, int64_t b)
{
	const int64_t most = (int64_t)1 << 40;
	int64_t n;
	return __builtin_mul_overflow(a, b, &n) || n > most ? most : n;
}

int64_t onnx_elements(const struct onnx_shape *s)
{
	int64_t n = 1;
	for (int d = 0; d < s->rank; d++)
		n = onnx_times(n, s->dim[d]);
	return n;
}

bool onnx_has_extents(const struct onnx_shape *s)
{
	int64_t n = 1;
	for (int d = 0; d < s->rank; d++)
		if (s->dim[d] > INT32_MAX || __builtin_mul_overflow(n, s->dim[d], &n) || n > (int64_t)1 << 40)
			return false;
	return true;
}

bool onnx_same_shape(const struct onnx_shape *a, const struct onnx_shape *b)
{
	return a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim[0] * a->rank);
}

/* --- constants --- */

struct onnx_tensor *onnx_new_tensor(const struct onnx_op *o, enum onnx_type type,
				    const struct onnx_shape *shape)
{
	struct onnx_tensor *t = ARENA_NEW(o->arena, struct onnx_tensor);
	*t = (struct onnx_tensor){
	    .name = "", .type = type, .rank = shape->rank, .elements = onnx_elements(shape)};
	memcpy(t->dim, shape->dim, sizeof shape->dim[0] * shape->rank);
	t->bytes = t->elements * (onnx_type_traits_of(type)->bits / 8);
	t->data = arena_take(o->arena, t->bytes + 1, 1);
	return t;
}

struct onnx_operand onnx_constant(const struct onnx_op *o, const struct onnx_tensor *t)
{
	struct onnx_operand x = {.given = true, .type = t->type, .shape.rank = t->rank, .constant = t};
	x.source = ARENA_NEW(o->arena, struct onnx_source);
	x.source->constant = t;
	memcpy(x.shape.dim, t->dim, sizeof t->dim[0] * t->rank);
	return x;
}

static struct onnx_operand copy_constant(const struct onnx_op *o, enum onnx_type type,
					 const struct onnx_shape *shape, const void *elements)
{
	struct onnx_tensor *t = onnx_new_tensor(o, type, shape);
	memcpy((void *)t->data, elements, t->bytes);
	return onnx_constant(o, t);
}

struct onnx_operand onnx_integers(const struct onnx_op *o, const struct onnx_shape *shape,
				  const int64_t *elements)
{
	return copy_constant(o, ONNX_INT64, shape, elements);
}

struct onnx_operand onnx_floats(const struct onnx_op *o, const struct onnx_shape *shape,
				const float *elements)
{
	return copy_constant(o, ONNX_FLOAT, shape, elements);
}

static void set_integer(const struct onnx_tensor *t, int64_t i, int64_t value)
{
	if (t->type == ONNX_INT64)
		((int64_t *)t->data)[i] = value;
	else if (t->type == ONNX_INT32)
		((int32_t *)t->data)[i] = (int32_t)value;
	else
		((float *)t->data)[i] = (float)value;
}

struct onnx_operand onnx_count(const struct onnx_op *o, enum onnx_type type, int64_t n)
{
	bool wide = onnx_computed(type) == DTYPE_I64, real = onnx_computed(type) == DTYPE_F32;
	struct onnx_tensor *t = onnx_new_tensor(o,
						wide   ? ONNX_INT64
						: real ? ONNX_FLOAT
						       : ONNX_INT32,
						&(struct onnx_shape){1, {n}});
	for (int64_t i = 0; i < n; i++)
		set_integer(t, i, i);
	return onnx_constant(o, t);
}

enum onnx_type onnx_kept_type(enum onnx_type type)
{
	static const enum onnx_type types[DTYPES] = {[DTYPE_F32] = ONNX_FLOAT,
						     [DTYPE_I32] = ONNX_INT32,
						     [DTYPE_I64] = ONNX_INT64,
						     [DTYPE_BOOL] = ONNX_BOOL};
	return types[onnx_computed(type)];
}

/* The nearest integer of a type; 0 of what is no number. */
static int64_t integer_of(double x, enum onnx_type type)
{
	bool wide = type == ONNX_INT64;
	if (x >= (wide ? 0x1p63 : 0x1p31))
		return wide ? INT64_MAX : INT32_MAX;
	return x > (wide ? -0x1p63 : -0x1p31) ? (int64_t)x : x < 0 ? (wide ? INT64_MIN : INT32_MIN) : 0;
}

void onnx_set_number(const struct onnx_tensor *t, int64_t i, double x)
{
	switch (t->type) {
	case ONNX_FLOAT:
		((float *)t->data)[i] = (float)x;
		break;
	case ONNX_INT64:
		((int64_t *)t->data)[i] = integer_of(x, t->type);
		break;
	case ONNX_INT32:
		((int32_t *)t->data)[i] = (int32_t)integer_of(x, t->type);
		break;
	default:
		((uint8_t *)t->data)[i] = x != 0;
	}
}

double onnx_number_at(const struct onnx_tensor *t, int64_t i)
{
	switch (t->type) {
	case ONNX_FLOAT:
		return ((const float *)t->data)[i];
	case ONNX_DOUBLE:
		return ((const double *)t->data)[i];
	case ONNX_FLOAT16:
		return f32_of_f16(((const uint16_t *)t->data)[i]);
	case ONNX_BFLOAT16:
		return f32_of_bf16(((const uint16_t *)t->data)[i]);
	default:
		return (double)onnx_integer_at(t, i);
	}
}

int64_t onnx_integer_at(const struct onnx_tensor *t, int64_t i)
{
	switch (t->type) {
	case ONNX_INT64:
		return ((const int64_t *)t->data)[i];
	case ONNX_INT32:
		return ((const int32_t *)t->data)[i];
	case ONNX_INT16:
		return ((const int16_t *)t->data)[i];
	case ONNX_INT8:
		return ((const int8_t *)t->data)[i];
	case ONNX_UINT8:
	case ONNX_BOOL:
		return ((const uint8_t *)t->data)[i];
	default: {
		double x = onnx_number_at(t, i);
		return x >= 0x1p63 ? INT64_MAX : x > -0x1p63 ? (int64_t)x : INT64_MIN;
	}
	}
}

int64_t onnx_bounded(int64_t n)
{
	return n < -INT32_MAX ? -INT32_MAX : n > INT32_MAX ? INT32_MAX : n;
}

/* A known list of at most `most` elements.  NULL after a diagnostic. */
static const struct onnx_tensor *known_list(const struct onnx_op *o, int input, int most)
{
	const struct onnx_tensor *t = o->in[input].constant;
	if (!t)
		return onnx_op_refuse(
			   o, DIAG_ONNX_CONSTANT,
			   "give it when the graph is read, as the constant of an input (--constant)",
			   "input %d decides a shape, and it is computed when the model runs", input),
		       NULL;
	if (t->rank <= 1 && t->elements <= most)
		return t;
	return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "input %d is a list of more than %d numbers", input,
			      most),
	       NULL;
}

bool onnx_known_ints(const struct onnx_op *o, int input, int most, int64_t *out, int *n)
{
	const struct onnx_tensor *t = known_list(o, input, most);
	for (*n = 0; t && *n < t->elements; ++*n)
		out[*n] = onnx_bounded(onnx_integer_at(t, *n));
	return t != NULL;
}

bool onnx_known_floats(const struct onnx_op *o, int input, int most, float *out, int *n)
{
	const struct onnx_tensor *t = known_list(o, input, most);
	for (*n = 0; t && *n < t->elements; ++*n)
		out[*n] = (float)onnx_number_at(t, *n);
	return t != NULL;
}

/* --- inputs --- */

static bool refuse_value(struct diags *diags, const struct onnx_graph *g, const struct onnx_value *v,
			 enum diag_id id, const char *hint, const char *what)
{
	return diag_add(diags, id, (struct diag_at){.file = g->file}, hint, "'%.120s' %s", v->name, what);
}

bool onnx_check_value(struct arena *a, struct diags *diags, const struct onnx_graph *g,
		      const struct onnx_value *v, int rank)
{
	struct str s = str_in(a);
	if (v->what != ONNX_TENSOR_VALUE) {
		str_printf(&s, "is a %s", v->what_name);
		return refuse_value(diags, g, v, DIAG_ONNX_TYPE, "values are tensors here", str_text(&s));
	}
	str_printf(&s, "has elements of type %s", onnx_type_traits_of(v->type)->name);
	if (onnx_type_traits_of(v->type)->dtype == DTYPES)
		return refuse_value(diags, g, v, DIAG_ONNX_TYPE, "export the model in 32-bit types",
				    str_text(&s));
	return (rank >= 0 && rank <= RA_MAX_RANK) ||
	       refuse_value(diags, g, v, DIAG_ONNX_SHAPE,
			    "values have at most eight axes, which the graph must declare",
			    rank < 0 ? "has no shape" : "has too many axes");
}

static bool refuse_size(struct arena *a, struct diags *diags, const struct onnx_graph *g,
			const struct onnx_value *v, int axis)
{
	struct str s = str_in(a), hint = str_in(a);
	str_printf(&s, "has an axis %d of unknown size", axis);
	if (v->dim[axis].param)
		str_printf(&hint, "say it: --sizes %s=..., in Python sizes={'%s': ...}", v->dim[axis].param,
			   v->dim[axis].param);
	else
		str_printf(&hint, "say it: --sizes '%s[%d]=...', in Python sizes={'%s[%d]': ...}", v->name, axis,
			   v->name, axis);
	return refuse_value(diags, g, v, DIAG_ONNX_SHAPE, str_text(&hint), str_text(&s));
}

bool onnx_take_input(struct arena *a, struct diags *diags, const struct onnx_graph *g,
		     const struct onnx_value *v, struct onnx_operand *x)
{
	*x = (struct onnx_operand){.given = true, .type = v->type, .shape.rank = v->rank};
	if (!onnx_check_value(a, diags, g, v, v->rank))
		return false;
	for (int d = 0; d < v->rank; d++) {
		x->shape.dim[d] = v->dim[d].size;
		if (v->dim[d].size < 0)
			return refuse_size(a, diags, g, v, d);
	}
	if (!onnx_has_extents(&x->shape))
		return refuse_value(diags, g, v, DIAG_ONNX_SHAPE, NULL,
				    "has an extent over 2147483647, or more than 2^40 elements");
	x->source = ARENA_NEW(a, struct onnx_source);
	x->source->input = v;
	return true;
}

/* --- use --- */

/* NAME, or NAME_1 ... */
const char *onnx_free_name(const struct onnx_op *o, const char *name)
{
	struct map *names = &o->target->names;
	const char *spelled = onnx_spell_name(o->arena, *name ? name : "constant"), *candidate = spelled;
	for (int i = 1; !map_add(names, candidate, strlen(candidate), ONNX_NAME_TAKEN); i++)
		candidate = onnx_format(o, "%s_%d", spelled, i);
	return candidate;
}

/* `2, 3 : f32` */
static const char *print_declaration(const struct onnx_op *o, const struct onnx_shape *shape, enum dtype dtype)
{
	struct str s = str_in(o->arena);
	for (int d = 0; d < shape->rank; d++)
		str_printf(&s, "%s%lld", d ? ", " : "", (long long)shape->dim[d]);
	str_printf(&s, " : %s", dtype_traits_of(dtype)->spelling);
	return str_text(&s);
}

static const char *declaration_of(const struct onnx_op *o, const struct onnx_operand *x)
{
	return print_declaration(o, &x->shape, onnx_type_traits_of(x->type)->dtype);
}

const char *onnx_state_text(const struct onnx_op *o, const struct onnx_operand *x)
{
	return print_declaration(o, &x->shape, onnx_computed(x->type));
}

/* A single number of f32 is written; of other types it is a parameter. */
static bool is_written(const struct onnx_tensor *t)
{
	double number = t->type == ONNX_FLOAT && !t->rank ? onnx_number_at(t, 0) : NAN;
	return fabs(number) <= FLT_MAX;
}

static uint32_t declare_constant(const struct onnx_op *o, const struct onnx_tensor *constant)
{
	struct onnx_tensor t = *constant;
	const struct onnx_operand x = onnx_constant(o, constant);
	if (is_written(constant))
		return ra_builder_number(o->target->builder, onnx_number_at(constant, 0));
	t.name = onnx_free_name(o, t.name);
	vec_push(o->arena, &o->target->weights, t);
	return ra_builder_param(o->target->builder, t.name, declaration_of(o, &x));
}

/* False when an output or another input has the name. */
static bool take_input_name(struct onnx_target *t, const char *name)
{
	int *known = map_at(&t->names, name, strlen(name));
	if (!known)
		return map_add(&t->names, name, strlen(name), ONNX_NAME_TAKEN);
	const bool reserved = *known == ONNX_NAME_OF_INPUT;
	*known = ONNX_NAME_TAKEN;
	return reserved;
}

static uint32_t declare_input(const struct onnx_op *o, const struct onnx_value *v)
{
	struct onnx_operand x;
	const char *name = onnx_spell_name(o->arena, v->name);
	if (!onnx_take_input(o->arena, o->diags, o->graph, v, &x))
		return 0;
	if (!onnx_elements(&x.shape))
		return refuse_value(o->diags, o->graph, v, DIAG_ONNX_SHAPE, "extents are at least 1 here",
				    "has an axis without elements");
	if (!take_input_name(o->target, name))
		return refuse_value(o->diags, o->graph, v, DIAG_ONNX_NAME, "rename one of them",
				    "has the name of another input or output");
	return ra_builder_input(o->target->builder, name, declaration_of(o, &x));
}

/* The name of the state that keeps a value, which is made at its first use in another body. */
static const char *keep_value(const struct onnx_op *o, const struct onnx_operand *x)
{
	struct onnx_target *t = o->target;
	int known = map_get(&t->kept, (const char *)&x->id, sizeof x->id);
	if (known >= 0)
		return t->state.at[known];
	const char *name = onnx_free_name(o, "kept");
	map_add(&t->kept, (const char *)&x->id, sizeof x->id, (int)t->state.n);
	vec_push(o->arena, &t->state, name);
	ra_builder_keep(t->builder, x->id, name, onnx_state_text(o, x));
	return name;
}

static uint32_t use_computed(const struct onnx_op *o, const struct onnx_operand *x)
{
	if (!x->id || ra_builder_is_here(o->target->builder, x->id))
		return x->id;
	return ra_builder_get(o->target->builder, keep_value(o, x));
}

uint32_t onnx_use(const struct onnx_op *o, const struct onnx_operand *x)
{
	struct onnx_source *s = x->source;
	if (!s)
		return use_computed(o, x);
	if (s->target == o->target)
		return s->id;
	s->target = o->target;
	s->id = s->constant ? declare_constant(o, s->constant) : declare_input(o, s->input);
	return s->id;
}
