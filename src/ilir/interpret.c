/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Interprets a module, which defines its meaning: slowly, and with every access checked.
 *
 * Each expression node has a cell with memory for its value and a pointer to the function that computes it (interpret_cells.c).
 * A statement evaluates a list of cells, arguments first, and each of them once.  Nodes that only occur in
 * one side of a scalar select are computed when that side is chosen. */
#include "ilir/interpret.h"

#include "base/convert.h"

#include <stdlib.h>

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
		int first, end;
		ilir_find_evaluated(m, e, &first, &end);
		for (int i = first; i < end; i++)
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
		ilir_fill_cell(r, (ilir_expr){i});
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
	void *to = ilir_locate_element(r, b, c->index, c->stmt->store.indices, c->a->lanes);
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
	return ilir_locate_element(r, row->buffer, row->arg, (int)row->args, row->lanes);
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

static int32_t add_byte_products(const int32_t *a, const int32_t *b, int64_t words, int64_t apart, int32_t sum)
{
	for (int64_t k = 0; k < words; k++)
		sum = (int32_t)dot_bytes(a[k], b[k * apart], sum);
	return sum;
}

/* Adds the products of two matrix registers of words to a third one. */
static void run_dot(struct ilir_interpreter *r, const struct ilir_stmt *s)
{
	const struct place *sum = &r->places[s->dot.sum.i], *a = &r->places[s->dot.a.i], *b = &r->places[s->dot.b.i];
	int64_t rows = sum->extent[0], columns = sum->extent[1], words = a->extent[1];
	int32_t *to = sum->data;
	float *real = sum->data;
	const int32_t *x = a->data, *w = b->data;
	for (int64_t i = 0; i < rows * columns; i++) {
		const int32_t *row = &x[i / columns * words], *column = &w[i % columns];
		if (s->dot.op == ILIR_DOT4)
			to[i] = add_byte_products(row, column, words, columns, to[i]);
		else
			real[i] = add_bf16_block(row, column, words, columns, real[i]);
	}
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
