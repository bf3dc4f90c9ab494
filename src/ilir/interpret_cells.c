/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cells of the interpreter: a function for each expression, which computes its value from those of its arguments.
 *
 * Every row of ilir_ops.def is a function that rounds its result to memory, so a compiler cannot contract two
 * of them. */
#include "ilir/interpret.h"

#include "base/convert.h"

#include <inttypes.h>
#include <math.h>

#if defined __x86_64__
#include <xmmintrin.h>
#endif

/* --- faults --- */

static _Noreturn void report_fault(struct ilir_interpreter *r, ilir_buffer b, int dim, int64_t index)
{
	const struct ilir_buffer_decl *d = ilir_buffer_at(r->m, b);
	const char *kernel = r->m->kernels.at[r->kernel].name;
	if (dim < 0)
		diag_add(r->diags, DIAG_INVALID_LOOPS, (struct diag_at){0},
			 "supply every buffer that a kernel uses",
			 "kernel '%s' uses '%s', which has no memory", kernel, d->name);
	else
		diag_add(r->diags, DIAG_INVALID_LOOPS, (struct diag_at){0},
			 "this is a fault of the compiler, not of the model; please report it",
			 "kernel '%s' reaches index %" PRId64
			 " in dimension %d of '%s', whose extent is %" PRId64,
			 kernel, index, dim, d->name, r->places[b.i].extent[dim]);
	longjmp(r->stop, 1);
}

/* --- evaluation --- */

void *ilir_locate_element(struct ilir_interpreter *r, ilir_buffer b, struct cell *const *index, int n, int64_t reach)
{
	const struct place *p = &r->places[b.i];
	int64_t at = 0;
	for (int i = 0; i < n; i++) {
		int64_t k = *(int64_t *)value_of(r, index[i]);
		if (i == 0 && k < 0 && p->table) {
			p = p->table;
			k = -1 - k;
		}
		int64_t last = i + 1 == n ? k + reach - 1 : k;
		if (k < 0 || last >= p->extent[i])
			report_fault(r, b, i, k < 0 ? k : last);
		at = at * p->extent[i] + k;
	}
	if (!p->data)
		report_fault(r, b, -1, 0);
	return (char *)p->data + at * p->element;
}

/* The type by which an operator's row is found, or that of a load or leaf itself. */
static enum ilir_dtype operand_type(const struct ilir_module *m, ilir_expr e)
{
	const struct ilir_node *n = ilir_at(m, e);
	return n->args && n->op != ILIR_LOAD ? ilir_type_of(m, ilir_arg(m, e, 0)).dtype
					     : n->type.dtype;
}

static _Noreturn void run_untyped(struct ilir_interpreter *r, struct cell *c)
{
	ilir_expr e = {c - r->cells};
	diag_add(r->diags, DIAG_INVALID_LOOPS, (struct diag_at){0},
		 "this is a fault of the compiler, not of the model; please report it",
		 "kernel '%s': %s has no meaning for %s", r->m->kernels.at[r->kernel].name,
		 ilir_op_spelling(ilir_at(r->m, e)->op), ilir_dtype_word[operand_type(r->m, e)]);
	longjmp(r->stop, 1);
}

/* Constants, variables and sizes have their values already. */
static void run_leaf(struct ilir_interpreter *r, struct cell *c)
{
	(void)r, (void)c;
}

/* Loads elements.  As a bool, any byte but 0 is true. */
static void run_load(struct ilir_interpreter *r, struct cell *c)
{
	int64_t step = c->lanes > 1 ? c->arg[c->args - 1]->step : 1;
	const char *from = ilir_locate_element(r, c->buffer, c->arg, c->args, (c->lanes - 1) * step + 1);
	if (step == 1)
		memcpy(c->value, from, c->lanes * (size_t)c->element);
	for (uint32_t i = 0; step > 1 && i < c->lanes; i++)
		memcpy((char *)c->value + i * (size_t)c->element, from + i * step * c->element, c->element);
	for (uint32_t i = 0; c->truth && i < c->lanes; i++)
		((uint8_t *)c->value)[i] = ((uint8_t *)c->value)[i] != 0;
}

/* --- operators, by the rows of ilir_ops.def --- */

typedef int64_t c_INDEX;

/* x > y ? x : y as compiled code computes it: x86 gives a zero for denormals where these count as zeros. */
static inline float larger_float(float x, float y)
{
#if defined __x86_64__
	return _mm_cvtss_f32(_mm_max_ss(_mm_set_ss(x), _mm_set_ss(y)));
#else
	return x > y ? x : y;
#endif
}

static inline float smaller_float(float x, float y)
{
#if defined __x86_64__
	return _mm_cvtss_f32(_mm_min_ss(_mm_set_ss(x), _mm_set_ss(y)));
#else
	return x < y ? x : y;
#endif
}

/* A function for each row, which computes lane by lane.  Operands that an operator lacks are copies of
 * the first. */
#define ILIR_ROW(name, operand, result, expression)                                                          \
	static void run_##name##_##operand(struct ilir_interpreter *r, struct cell *c)                       \
	{                                                                                                    \
		const c_##operand *xs = value_of(r, c->arg[0]), *ys = value_of(r, c->arg[c->args > 1]),      \
				  *zs = value_of(r, c->arg[c->args > 2 ? 2 : 0]);                            \
		c_##result *to = c->value;                                                                   \
		for (uint32_t i = 0; i < c->lanes; i++) {                                                    \
			c_##operand x = xs[i], y = ys[i], z = zs[i];                                         \
			(void)y, (void)z;                                                                    \
			to[i] = (c_##result)(expression);                                                    \
		}                                                                                            \
	}
#define ILIR_WORDS_ROW(name, expression)                                                                     \
	static void run_##name##_I32(struct ilir_interpreter *r, struct cell *c)                             \
	{                                                                                                    \
		const c_I32 *xs = value_of(r, c->arg[0]), *ys = value_of(r, c->arg[1]);                      \
		const c_F32 *zs = value_of(r, c->arg[2]);                                                    \
		c_F32 *to = c->value;                                                                        \
		for (uint32_t i = 0; i < c->lanes; i++) {                                                    \
			c_I32 x = xs[i], y = ys[i];                                                          \
			c_F32 z = zs[i];                                                                     \
			to[i] = (expression);                                                                \
		}                                                                                            \
	}
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) rows
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows)
#include "ilir/ilir_ops.def"

static compute *const functions[ILIR_OPS][ILIR_DTYPES] = {
#define ILIR_ROW(name, operand, result, expression) [ILIR_##operand] = run_##name##_##operand,
#define ILIR_OP(name, spelling, arity, rule, meaning, rows) [ILIR_##name] = {rows},
#define ILIR_COMPOUND(name, spelling, arity, meaning, rows)
#include "ilir/ilir_ops.def"
};

/* --- operators of all types --- */

static void run_choice(struct ilir_interpreter *r, struct cell *c)
{
	int chosen = *(uint8_t *)value_of(r, c->arg[0]) ? 1 : 2;
	memcpy(c->value, value_of(r, c->arg[chosen]), c->element);
}

static void run_SELECT(struct ilir_interpreter *r, struct cell *c)
{
	const uint8_t *condition = value_of(r, c->arg[0]);
	const char *yes = value_of(r, c->arg[1]), *no = value_of(r, c->arg[2]);
	for (size_t i = 0, at = 0; i < c->lanes; i++, at += c->element)
		memcpy((char *)c->value + at, (condition[i] ? yes : no) + at, c->element);
}

/* The bytes are in the order of memory, as those of an integer are. */
static void run_WORD(struct ilir_interpreter *r, struct cell *c)
{
	memcpy(c->value, value_of(r, c->arg[0]), sizeof(int32_t));
}

static void run_BROADCAST(struct ilir_interpreter *r, struct cell *c)
{
	const void *x = value_of(r, c->arg[0]);
	for (size_t i = 0; i < c->lanes; i++)
		memcpy((char *)c->value + i * c->element, x, c->element);
}

static void run_RAMP(struct ilir_interpreter *r, struct cell *c)
{
	int64_t x = *(int64_t *)value_of(r, c->arg[0]), *to = c->value;
	for (uint32_t i = 0; i < c->lanes; i++)
		to[i] = x + i * c->step;
}

/* Whether the element that a lane of a load reads lies in the extents of its buffer. */
static bool is_within(struct ilir_interpreter *r, const struct cell *load, uint32_t lane)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(r->m, load->buffer);
	for (uint32_t i = 0; i < load->args; i++) {
		struct cell *index = load->arg[i];
		int64_t at = ((int64_t *)value_of(r, index))[index->lanes > 1 ? lane : 0];
		if (b->dim[i].rows == IMAGE_ONE && (at < 0 || at >= b->dim[i].extent))
			return false;
	}
	return true;
}

/* Copies an element of memory, or widens one of narrow integers to an i32. */
static void take_element(void *to, const void *from, enum ilir_dtype dtype, int bytes)
{
	int16_t half = 0;
	memcpy(&half, from, dtype == ILIR_I16 ? sizeof half : 0);
	int32_t number = dtype == ILIR_U8 ? *(const uint8_t *)from : dtype == ILIR_I8 ? *(const int8_t *)from : half;
	bool narrow = dtype == ILIR_U8 || dtype == ILIR_I8 || dtype == ILIR_I16;
	memcpy(to, narrow ? &number : from, bytes);
}

/* Loads elements one by one. */
static void run_WITHIN(struct ilir_interpreter *r, struct cell *c)
{
	const struct cell *load = c->arg[0]->run == run_load ? c->arg[0] : c->arg[0]->arg[0];
	enum ilir_dtype dtype = ilir_buffer_at(r->m, load->buffer)->dtype;
	const char *other = value_of(r, c->arg[1]);
	int64_t step = load->lanes > 1 ? load->arg[load->args - 1]->step : 1;
	struct cell *index[ILIR_MAX_RANK], last = {.stamp = ALWAYS};
	memcpy(index, load->arg, load->args * sizeof *index);
	for (uint32_t i = 0; i < c->lanes; i++) {
		char *to = (char *)c->value + i * (size_t)c->element;
		memcpy(to, other + i * (size_t)c->element, c->element);
		if (!is_within(r, load, i))
			continue;
		int64_t at = *(int64_t *)value_of(r, load->arg[load->args - 1]) + i * step;
		last.value = &at;
		index[load->args - 1] = &last;
		take_element(to, ilir_locate_element(r, load->buffer, index, load->args, 1), dtype, c->element);
	}
}

/* Of SPLICE and KEEP. */
static void run_pair(struct ilir_interpreter *r, struct cell *c)
{
	const char *side[2] = {value_of(r, c->arg[0]), value_of(r, c->arg[1])};
	ilir_expr e = {(uint32_t)(c - r->cells)};
	for (uint32_t t = 0; t < c->lanes; t++) {
		uint32_t at = ilir_paired_lane(r->m, e, (int)t);
		memcpy((char *)c->value + t * c->element, side[at >= c->lanes] + at % c->lanes * c->element, c->element);
	}
}

/* --- cells --- */

static bool is_lazy(const struct ilir_module *m, ilir_expr e)
{
	return ilir_at(m, e)->op == ILIR_SELECT && ilir_type_of(m, e).lanes == 1;
}

/* WITHIN evaluates its load itself, and a choice the side that is chosen. */
void ilir_find_evaluated(const struct ilir_module *m, ilir_expr e, int *first, int *end)
{
	*first = ilir_at(m, e)->op == ILIR_WITHIN;
	*end = is_lazy(m, e) ? 1 : (int)ilir_at(m, e)->args;
}

/* Ill-typed nodes may exist as long as no statement evaluates them. */
static compute *function_of(const struct ilir_module *m, ilir_expr e)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (!n->type.lanes)
		return run_untyped;
	switch (n->op) {
	case ILIR_LOAD:
		return run_load;
	case ILIR_SELECT:
		return is_lazy(m, e) ? run_choice : run_SELECT;
	case ILIR_WITHIN:
		return run_WITHIN;
	case ILIR_SPLICE:
	case ILIR_KEEP:
		return run_pair;
	case ILIR_WORD:
		return run_WORD;
	case ILIR_BROADCAST:
		return run_BROADCAST;
	case ILIR_RAMP:
		return run_RAMP;
	default:
		if (!n->args)
			return run_leaf;
		compute *f = functions[n->op][operand_type(m, e)];
		return f ? f : run_untyped;
	}
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low bytes of an integer come first");

static void fill_constant(const struct ilir_node *n, struct cell *c)
{
	if (n->op == ILIR_CONST_F)
		memcpy(c->value, &n->f, sizeof n->f);
	else if (n->op == ILIR_CONST_I)
		memcpy(c->value, &n->i, c->element);
}

void ilir_fill_cell(struct ilir_interpreter *r, ilir_expr e)
{
	const struct ilir_node *n = ilir_at(r->m, e);
	struct cell *c = &r->cells[e.i];
	c->run = function_of(r->m, e);
	c->lanes = n->type.lanes;
	c->args = n->args;
	c->element = ilir_bytes(n->type.dtype);
	c->truth = n->type.dtype == ILIR_BOOL;
	c->value = arena_take(r->m->arena, c->lanes ? c->lanes : 1, sizeof(int64_t));
	if (n->op == ILIR_LOAD)
		c->buffer = n->buffer;
	else if (n->op == ILIR_RAMP)
		c->step = n->i;
	else if (!n->args)
		c->stamp = ALWAYS;
	for (uint32_t i = 0; i < c->args; i++)
		c->arg[i] = &r->cells[ilir_arg(r->m, e, i).i];
	fill_constant(n, c);
}
