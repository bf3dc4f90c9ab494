/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Interprets a module, which defines its meaning: slowly, and with every access checked.
 *
 * Each expression node has a cell with memory for its value and a pointer to the function that computes it.
 * A statement evaluates a list of cells, arguments first, and each of them once.  Nodes that only occur in
 * one side of a scalar select are computed when that side is chosen.
 *
 * Every row of ilir_ops.def is a function that rounds its result to memory, so a compiler cannot contract two
 * of them. */
#include "ilir/spelling.h"

#include "base/convert.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#if defined __x86_64__
#include <xmmintrin.h>
#endif

struct cell;
typedef void compute(struct ilir_interpreter *, struct cell *);

struct cell {
	compute *run;
	uint64_t stamp; /* number of the evaluation that set it; ALWAYS for constants, sizes and variables */
	void *value;
	struct cell *arg[ILIR_MAX_RANK];
	uint32_t lanes, args;
	int element;	    /* bytes of a lane */
	bool truth;	    /* the type is bool */
	ilir_buffer buffer; /* of a load */
	int64_t step;	    /* of a ramp */
};

static const uint64_t ALWAYS = UINT64_MAX;

/* The memory of a buffer in the current run. */
struct place {
	void *data;
	int64_t extent[ILIR_MAX_RANK];
	int element; /* bytes */
	const struct place *table; /* of rows below 0; NULL = there are none */
};

/* A statement, with the cells of its expressions. */
struct code {
	const struct ilir_stmt *stmt;
	struct cell **list;
	uint32_t n;
	struct cell *a, *b;		   /* bounds; condition; value */
	struct cell *index[ILIR_MAX_RANK]; /* of a store */
	struct cell *var;		   /* of a loop or let */
	struct code *body, *otherwise, *next;
};

struct ilir_interpreter {
	struct ilir_module *m;
	struct cell *cells;   /* by expression */
	struct place *places; /* by buffer */
	struct code **kernels;
	uint64_t now;
	/* the current run */
	struct diags *diags;
	int kernel;
	const struct image_range *range;
	jmp_buf stop;
};

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

static inline void *value_of(struct ilir_interpreter *r, struct cell *c)
{
	if (c->stamp < r->now) {
		c->run(r, c);
		c->stamp = r->now;
	}
	return c->value;
}

/* The address of the element at some indices, the last of which is the first of `reach`. */
static void *locate_element(struct ilir_interpreter *r, ilir_buffer b, struct cell *const *index, int n,
			    int64_t reach)
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
	const char *from = locate_element(r, c->buffer, c->arg, c->args, (c->lanes - 1) * step + 1);
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
		take_element(to, locate_element(r, load->buffer, index, load->args, 1), dtype, c->element);
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

/* The first argument that is evaluated before an operator: WITHIN evaluates its load itself. */
static int first_argument(const struct ilir_module *m, ilir_expr e)
{
	return ilir_at(m, e)->op == ILIR_WITHIN;
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

static void fill_cell(struct ilir_interpreter *r, ilir_expr e)
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

/* --- compiling statements --- */

struct compiler {
	struct ilir_interpreter *r;
	uint32_t *seen, round; /* by expression: the last round, or statement, that listed it */
	VEC(struct cell *) list;
};

static void list_expr(struct compiler *c, ilir_expr e)
{
	struct cell *cell = &c->r->cells[e.i];
	if (c->seen[e.i] == c->round || cell->stamp == ALWAYS)
		return;
	c->seen[e.i] = c->round;
	vec_push(c->r->m->arena, &c->list, cell);
}

static int compare_cells(const void *a, const void *b)
{
	const struct cell *x = *(struct cell *const *)a, *y = *(struct cell *const *)b;
	return (x > y) - (x < y);
}

/* Lists the cells of some expressions in ascending order, in which arguments come first.  Of a lazy
 * select only the condition is listed: the select itself evaluates a side. */
static void compile_list(struct compiler *c, struct code *code, const ilir_expr *roots, int n)
{
	const struct ilir_module *m = c->r->m;
	c->round++;
	c->list.n = 0;
	for (int i = 0; i < n; i++)
		list_expr(c, roots[i]);
	for (size_t k = 0; k < c->list.n; k++) {
		ilir_expr e = {c->list.at[k] - c->r->cells};
		int args = is_lazy(m, e) ? 1 : ilir_at(m, e)->args;
		for (int i = first_argument(m, e); i < args; i++)
			list_expr(c, ilir_arg(m, e, i));
	}
	code->n = c->list.n;
	if (!code->n)
		return;
	qsort(c->list.at, c->list.n, sizeof *c->list.at, compare_cells);
	code->list = arena_copy(m->arena, c->list.at, c->list.n * sizeof *c->list.at);
}

static struct code *compile_block(struct compiler *c, const struct ilir_stmt *s);

static struct cell *cell_of(struct compiler *c, ilir_expr e)
{
	return &c->r->cells[e.i];
}

static struct cell *var_cell(struct ilir_interpreter *r, ilir_var v)
{
	return &r->cells[ilir_var_ref(r->m, v).i];
}

static void compile_range(struct compiler *c, struct code *code, ilir_expr begin, ilir_expr end,
			  const struct ilir_stmt *body)
{
	compile_list(c, code, (ilir_expr[]){begin, end}, 2);
	code->a = cell_of(c, begin);
	code->b = cell_of(c, end);
	code->body = compile_block(c, body);
}

static void compile_store(struct compiler *c, struct code *code, const struct ilir_stmt *s)
{
	ilir_expr roots[ILIR_MAX_RANK + 1] = {s->store.value};
	for (int i = 0; i < s->store.indices; i++) {
		roots[i + 1] = s->store.index[i];
		code->index[i] = cell_of(c, s->store.index[i]);
	}
	compile_list(c, code, roots, s->store.indices + 1);
	code->a = cell_of(c, s->store.value);
}

static struct code *compile_stmt(struct compiler *c, const struct ilir_stmt *s)
{
	struct code *code = ARENA_NEW(c->r->m->arena, struct code);
	code->stmt = s;
	switch (s->kind) {
	case ILIR_FOR:
		code->var = var_cell(c->r, s->loop.var);
		compile_range(c, code, s->loop.begin, s->loop.end, s->loop.body);
		break;
	case ILIR_STEP:
		compile_range(c, code, s->step.begin, s->step.end, s->step.body);
		break;
	case ILIR_IF:
		compile_list(c, code, &s->branch.condition, 1);
		code->a = cell_of(c, s->branch.condition);
		code->body = compile_block(c, s->branch.then);
		code->otherwise = compile_block(c, s->branch.otherwise);
		break;
	case ILIR_LET:
		compile_list(c, code, &s->let.value, 1);
		code->a = cell_of(c, s->let.value);
		code->var = var_cell(c->r, s->let.var);
		break;
	case ILIR_STORE:
		compile_store(c, code, s);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		compile_list(c, code, (ilir_expr[]){s->rows.first, s->rows.last}, 2);
		code->a = cell_of(c, s->rows.first);
		code->b = cell_of(c, s->rows.last);
		break;
	case ILIR_ALLOC:
	case ILIR_PREFETCH:
	case ILIR_DOT:
	case ILIR_BARRIER:
		break;
	}
	return code;
}

static struct code *compile_block(struct compiler *c, const struct ilir_stmt *s)
{
	struct code *first = NULL, **end = &first;
	for (; s; s = s->next) {
		*end = compile_stmt(c, s);
		end = &(*end)->next;
	}
	return first;
}

static ilir_expr expand_compound(struct ilir_module *m, ilir_expr e, void *context)
{
	(void)context;
	return ilir_expand_compound(m, e);
}

static void place_register(struct ilir_module *m, const struct ilir_buffer_decl *b, struct place *p)
{
	int64_t elements = 1;
	for (int i = 0; i < b->rank; i++)
		elements *= p->extent[i] = b->dim[i].padded;
	p->element = ilir_bytes(b->dtype);
	p->data = arena_take(m->arena, elements ? elements : 1, p->element);
}

static void add_cells(struct ilir_interpreter *r)
{
	struct ilir_module *m = r->m;
	r->cells = ARENA_ARRAY(m->arena, struct cell, m->nodes.n);
	for (uint32_t i = 1; i < m->nodes.n; i++)
		fill_cell(r, (ilir_expr){i});
}

/* Makes all nodes that will be evaluated before the cells: expansions, variables and sizes. */
struct ilir_interpreter *ilir_interpreter_new(struct arena *a, struct ilir_module *m)
{
	struct ilir_interpreter *r = ARENA_NEW(a, struct ilir_interpreter);
	*r = (struct ilir_interpreter){.m = m, .places = ARENA_ARRAY(a, struct place, m->buffers.n)};
	struct ilir_stmt **body = ARENA_ARRAY(a, struct ilir_stmt *, m->kernels.n);
	for (size_t i = 0; i < m->kernels.n; i++)
		body[i] = ilir_rewrite_block(m, m->kernels.at[i].body,
					     &(struct ilir_rewrite){.expr = expand_compound});
	for (uint32_t i = 1; i < m->vars.n; i++)
		ilir_var_ref(m, (ilir_var){i});
	for (int i = 0; i < IMAGE_SIZES; i++)
		ilir_size(m, i);
	add_cells(r);
	struct compiler c = {.r = r, .seen = ARENA_ARRAY(a, uint32_t, m->nodes.n)};
	r->kernels = ARENA_ARRAY(a, struct code *, m->kernels.n);
	for (size_t i = 0; i < m->kernels.n; i++)
		r->kernels[i] = compile_block(&c, body[i]);
	for (uint32_t i = 1; i < m->buffers.n; i++)
		if (m->buffers.at[i].kind == ILIR_REGISTER)
			place_register(m, &m->buffers.at[i], &r->places[i]);
	return r;
}

/* --- running --- */

static void run_block(struct ilir_interpreter *r, const struct code *c);

/* Evaluates the cells of a statement. */
static void evaluate_cells(struct ilir_interpreter *r, const struct code *c)
{
	r->now++;
	for (uint32_t i = 0; i < c->n; i++) {
		c->list[i]->run(r, c->list[i]);
		c->list[i]->stamp = r->now;
	}
}

static int64_t index_value(const struct cell *c)
{
	return *(const int64_t *)c->value;
}

/* Both bounds are evaluated once, before the first iteration. */
static void run_for(struct ilir_interpreter *r, const struct code *c)
{
	evaluate_cells(r, c);
	int64_t v = index_value(c->a), end = index_value(c->b);
	while (v < end) {
		*(int64_t *)c->var->value = v;
		run_block(r, c->body);
		if (__builtin_add_overflow(v, c->stmt->loop.step, &v))
			break;
	}
}

/* Runs one block of a nest of swept loops, by its number. */
static void run_swept_block(struct ilir_interpreter *r, const struct code *c, int64_t number)
{
	for (; c && c->stmt->kind == ILIR_FOR && c->stmt->loop.kind == ILIR_SWEPT; c = c->body) {
		int64_t inside = ilir_blocks(r->m, c->stmt->loop.body);
		evaluate_cells(r, c);
		*(int64_t *)c->var->value = index_value(c->a) + number / inside * c->stmt->loop.step;
		number %= inside;
	}
	run_block(r, c);
}

/* Runs the iterations that the caller chose. */
static void run_swept(struct ilir_interpreter *r, const struct code *c)
{
	const struct image_range *range = r->range;
	for (int64_t i = 0; i < range->blocks; i++)
		run_swept_block(r, c, range->first + i * range->direction);
}

/* Finds the next range of rows of some cases before `limit`. */
static bool next_rows(const struct ilir_interpreter *r, unsigned cases, int64_t *begin, int64_t limit, int64_t *end)
{
	if (*begin >= limit)
		return false;
	const int32_t *of = cases ? r->places[ilir_find_buffer(r->m, IMAGE_CASE).i].data : NULL;
	while (of && *begin < limit && !(cases >> of[*begin] & 1))
		++*begin;
	for (*end = of ? *begin : limit; *end < limit && cases >> of[*end] & 1;)
		++*end;
	return *begin < *end;
}

/* Makes a range of nodes one of their edges, if the positions of a step are those of edges. */
static void find_positions(const struct ilir_interpreter *r, int sort, int64_t *begin, int64_t *end)
{
	if (!sort || !r->m->sorts.at[sort - 1].edges || *begin == *end)
		return;
	const int32_t *edges = r->places[ilir_find_buffer(r->m, IMAGE_CHILD_BEGIN).i].data;
	*begin = edges[*begin];
	*end = edges[*end];
}

static void run_step(struct ilir_interpreter *r, const struct code *c)
{
	int64_t *begin = var_cell(r, ilir_begin)->value, *end = var_cell(r, ilir_end)->value;
	int64_t outer_begin = *begin, outer_end = *end;
	evaluate_cells(r, c);
	int64_t inner_begin = index_value(c->a), inner_end = index_value(c->b);
	while (next_rows(r, c->stmt->step.cases, &inner_begin, inner_end, end)) {
		int64_t next = *end;
		*begin = inner_begin;
		find_positions(r, c->stmt->step.sort, begin, end);
		if (*begin < *end)
			run_block(r, c->body);
		inner_begin = next;
	}
	*begin = outer_begin;
	*end = outer_end;
}

static void run_let(struct ilir_interpreter *r, const struct code *c)
{
	evaluate_cells(r, c);
	memcpy(c->var->value, c->a->value, c->a->lanes * (size_t)c->a->element);
}

static void run_store(struct ilir_interpreter *r, const struct code *c)
{
	ilir_buffer b = c->stmt->store.buffer;
	evaluate_cells(r, c);
	void *to = locate_element(r, b, c->index, c->stmt->store.indices, c->a->lanes);
	memcpy(to, c->a->value, c->a->lanes * (size_t)r->places[b.i].element);
}

/* Fills a register with ones until its first store: a NaN, or an index out of bounds. */
static void run_alloc(struct ilir_interpreter *r, ilir_buffer b)
{
	const struct place *p = &r->places[b.i];
	size_t bytes = p->element;
	for (int i = 0; i < ilir_buffer_at(r->m, b)->rank; i++)
		bytes *= p->extent[i];
	memset(p->data, 0xff, bytes);
}

static char *address_of_row(struct ilir_interpreter *r, const struct cell *row)
{
	return locate_element(r, row->buffer, row->arg, (int)row->args, row->lanes);
}

/* Copies rows to a matrix register, or from it.  Both ends have been loaded, and so are in bounds. */
static void run_rows(struct ilir_interpreter *r, const struct code *c)
{
	evaluate_cells(r, c);
	struct place *matrix = &r->places[c->stmt->rows.matrix.i];
	size_t bytes = (size_t)matrix->extent[1] * matrix->element;
	int64_t rows = matrix->extent[0];
	char *at = address_of_row(r, c->a), *last = address_of_row(r, c->b), *of = matrix->data;
	for (int64_t i = 0; i < rows; i++, of += bytes) {
		char *row = rows > 1 ? at + (last - at) / (rows - 1) * i : at;
		memcpy(c->stmt->kind == ILIR_FILL ? of : row, c->stmt->kind == ILIR_FILL ? row : of, bytes);
	}
}

/* Adds the products of two matrix registers of words to a third one. */
static void run_dot(struct ilir_interpreter *r, const struct ilir_stmt *s)
{
	const struct place *sum = &r->places[s->dot.sum.i], *a = &r->places[s->dot.a.i], *b = &r->places[s->dot.b.i];
	int64_t rows = sum->extent[0], columns = sum->extent[1], words = a->extent[1];
	int32_t *to = sum->data;
	const int32_t *x = a->data, *w = b->data;
	for (int64_t m = 0; m < rows; m++)
		for (int64_t k = 0; k < words; k++)
			for (int64_t n = 0; n < columns; n++)
				to[m * columns + n] = (int32_t)dot_bytes(x[m * words + k], w[k * columns + n], to[m * columns + n]);
}

static void run_block(struct ilir_interpreter *r, const struct code *c)
{
	for (; c; c = c->next) {
		switch (c->stmt->kind) {
		case ILIR_FOR:
			(c->stmt->loop.kind == ILIR_SWEPT ? run_swept : run_for)(r, c);
			break;
		case ILIR_IF:
			evaluate_cells(r, c);
			run_block(r, *(uint8_t *)c->a->value ? c->body : c->otherwise);
			break;
		case ILIR_LET:
			run_let(r, c);
			break;
		case ILIR_ALLOC:
			run_alloc(r, c->stmt->alloc);
			break;
		case ILIR_STORE:
			run_store(r, c);
			break;
		case ILIR_STEP:
			run_step(r, c);
			break;
		case ILIR_FILL:
		case ILIR_SPILL:
			run_rows(r, c);
			break;
		case ILIR_DOT:
			run_dot(r, c->stmt);
			break;
		case ILIR_PREFETCH:
		case ILIR_BARRIER:
			break;
		}
	}
}

static void place_buffers(struct ilir_interpreter *r, const struct image_frame *frame)
{
	int slot = 0;
	for (uint32_t i = 1; i < r->m->buffers.n; i++) {
		const struct ilir_buffer_decl *b = &r->m->buffers.at[i];
		struct place *p = &r->places[i];
		if (!ilir_traits_of(b))
			continue;
		p->data = frame->buffers[slot++];
		p->table = b->table.i ? &r->places[b->table.i] : NULL;
		p->element = ilir_bytes(b->dtype);
		for (int k = 0; k < b->rank; k++)
			p->extent[k] = b->dim[k].rows == IMAGE_ONE
					   ? b->dim[k].padded
					   : frame->sizes[b->dim[k].rows] + b->dim[k].extent;
	}
}

static void set_inputs(struct ilir_interpreter *r, const struct image_frame *frame,
		       const struct image_range *range)
{
	*(int64_t *)var_cell(r, ilir_begin)->value = range->begin;
	*(int64_t *)var_cell(r, ilir_end)->value = range->end;
	for (int i = 0; i < IMAGE_SIZES; i++)
		*(int64_t *)r->cells[ilir_size(r->m, i).i].value = i == IMAGE_ONE ? 1 : frame->sizes[i];
}

bool ilir_interpret(struct ilir_interpreter *r, int kernel, const struct image_frame *frame,
		    const struct image_range *range, struct diags *diags)
{
	r->diags = diags;
	r->kernel = kernel;
	r->range = range;
	place_buffers(r, frame);
	set_inputs(r, frame, range);
	if (setjmp(r->stop))
		return false;
	run_block(r, r->kernels[kernel]);
	return true;
}
