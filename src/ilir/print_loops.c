/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes a module as text, which parse_loops.c reads back and README.md describes. */
#include "ilir/spelling.h"

#include <ctype.h>
#include <inttypes.h>

struct out {
	const struct ilir_module *m;
	struct str *s;
	size_t limit; /* length of the text after which expressions are cut short */
	int depth;
	bool numbers;	/* statements and kernels are told their lines; the module may be written then */
	size_t counted; /* the lines of the text up to here are `line` */
	int line;
};

/* The line that the text is at. */
static int count_line(struct out *o)
{
	const char *at = o->s->text + o->counted, *end = o->s->text + o->s->n;
	while (at < end && (at = memchr(at, '\n', end - at))) {
		o->line++;
		at++;
	}
	o->counted = o->s->n;
	return o->line;
}

/* Writes a name.  One that the parser would not read as a name is put in backquotes, with unusual bytes
 * as \xHH.  NULL only occurs in a module that the verifier rejects. */
static void put_name(struct out *o, const char *name)
{
	size_t length = strlen(name ? name : "");
	if (length && ilir_name_length(name, length) == length && !ilir_is_reserved(name, length)) {
		str_puts(o->s, name);
		return;
	}
	str_puts(o->s, "`");
	for (; length--; name++) {
		if (isprint((unsigned char)*name) && *name != '`' && *name != '\\')
			str_add(o->s, name, 1);
		else
			str_printf(o->s, "\\x%02x", (unsigned char)*name);
	}
	str_puts(o->s, "`");
}

/* References out of range only occur in a module that the verifier rejects. */
static void put_var(struct out *o, ilir_var v)
{
	if (v.i && v.i < o->m->vars.n)
		put_name(o, o->m->vars.at[v.i].name);
	else
		str_printf(o->s, "<variable %u>", v.i);
}

static void put_buffer_name(struct out *o, ilir_buffer b)
{
	if (b.i && b.i < o->m->buffers.n)
		put_name(o, o->m->buffers.at[b.i].name);
	else
		str_printf(o->s, "<buffer %u>", b.i);
}

static void put_dim_name(struct out *o, int dim)
{
	if (dim >= 0 && (size_t)dim < o->m->dims.n)
		put_name(o, o->m->dims.at[dim]);
	else
		str_printf(o->s, "<dimension %d>", dim);
}

static void put_nan(struct out *o, float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	str_puts(o->s, bits >> 31 ? "-nan" : "nan");
	if ((bits & 0x7fffffff) != 0x7fc00000)
		str_printf(o->s, "(%x)", bits & 0x7fffff);
}

/* Writes a float so that it contains one of . e n, which integers do not. */
static void put_float(struct out *o, float f)
{
	size_t before = o->s->n;
	if (f != f) {
		put_nan(o, f);
		return;
	}
	str_float(o->s, f);
	if (!strpbrk(o->s->text + before, ".en"))
		str_puts(o->s, ".0");
}

static void put_integer(struct out *o, const struct ilir_node *n)
{
	if (n->type.dtype == ILIR_BOOL)
		str_puts(o->s, ilir_truth_word[n->i != 0]);
	else
		str_printf(o->s, "%" PRId64 "%s", n->i,
			   n->type.dtype == ILIR_I32   ? "i"
			   : n->type.dtype == ILIR_I64 ? "l"
						       : "");
}

/* --- expressions --- */

static void put_expr(struct out *o, ilir_expr e, bool inside);

static void put_list(struct out *o, const ilir_expr *at, int n)
{
	for (int i = 0; i < n; i++) {
		if (i)
			str_puts(o->s, ", ");
		put_expr(o, at[i], false);
	}
}

/* Writes an infix operator, in parentheses if it is `inside` another. */
static void put_infix(struct out *o, ilir_expr e, bool inside)
{
	str_puts(o->s, inside ? "(" : "");
	put_expr(o, ilir_arg(o->m, e, 0), true);
	str_printf(o->s, " %s ", ilir_op_spelling(ilir_at(o->m, e)->op));
	put_expr(o, ilir_arg(o->m, e, 1), true);
	str_puts(o->s, inside ? ")" : "");
}

static void put_call(struct out *o, const struct ilir_node *n)
{
	str_printf(o->s, "%s(", ilir_op_spelling(n->op));
	if (n->op == ILIR_BROADCAST || n->op == ILIR_RAMP)
		str_printf(o->s, "%d, ", n->type.lanes);
	put_list(o, &o->m->args.at[n->arg], n->args);
	if (n->op == ILIR_RAMP && n->i != 1)
		str_printf(o->s, ", %" PRId64, n->i);
	str_puts(o->s, ")");
}

static void put_load(struct out *o, ilir_buffer b, const ilir_expr *index, int n)
{
	put_buffer_name(o, b);
	str_puts(o->s, "[");
	put_list(o, index, n);
	str_puts(o->s, "]");
}

static void put_expr(struct out *o, ilir_expr e, bool inside)
{
	const struct ilir_node *n = ilir_at(o->m, e);
	if (!e.i || o->s->n > o->limit) {
		str_puts(o->s, e.i ? "..." : "<none>");
		return;
	}
	switch (n->op) {
	case ILIR_CONST_F:
		put_float(o, n->f);
		break;
	case ILIR_CONST_I:
		put_integer(o, n);
		break;
	case ILIR_VAR:
		put_var(o, n->var);
		break;
	case ILIR_SIZE:
		str_puts(o->s, ilir_size_word[n->size]);
		break;
	case ILIR_INFERRED:
		str_puts(o->s, ilir_op_spelling(n->op));
		break;
	case ILIR_LOAD:
		put_load(o, n->buffer, n->args ? &o->m->args.at[n->arg] : NULL, n->args);
		break;
	default:
		if (ilir_is_infix(n->op))
			put_infix(o, e, inside);
		else
			put_call(o, n);
	}
}

/* --- buffers --- */

/* Writes a dimension: 64:D, 150/152:D (padded), nodes:node, batches+1:batch. */
static void put_dim(struct out *o, const struct ilir_dim *d)
{
	if (d->rows == IMAGE_ONE)
		str_printf(o->s, "%" PRId64, d->extent);
	else
		str_puts(o->s, ilir_size_word[d->rows]);
	if (d->rows != IMAGE_ONE && d->extent)
		str_printf(o->s, "+%" PRId64, d->extent);
	if (d->padded != d->extent)
		str_printf(o->s, "/%" PRId64, d->padded);
	str_puts(o->s, ":");
	put_dim_name(o, d->name);
}

static void put_shape(struct out *o, const struct ilir_buffer_decl *b)
{
	str_printf(o->s, " %s [", ilir_dtype_word[b->dtype]);
	for (int i = 0; i < b->rank; i++) {
		str_puts(o->s, i ? ", " : "");
		put_dim(o, &b->dim[i]);
	}
	str_puts(o->s, "]");
}

static void put_pack_source(struct out *o, const struct image_pack_source *p)
{
	int rank = TENSOR_MAX_RANK;
	while (rank && !p->begin[rank - 1] && !p->end[rank - 1])
		rank--;
	str_printf(o->s, "%d[", p->param);
	for (int i = 0; i < rank; i++)
		str_printf(o->s, "%s%" PRId64 "..%" PRId64, i ? ", " : "", p->begin[i], p->end[i]);
	str_puts(o->s, "]");
}

/* Writes: packed [19 of axis 1 step 8, 150 of axis 0 step 1, 5 of source step 1, 8 of axis 1 step 1] from
 * 5[0..150, 0..150]. */
static void put_recipe(struct out *o, const struct image_recipe *r)
{
	str_puts(o->s, " packed [");
	for (int i = 0; i < r->dims; i++) {
		const struct image_pack_dim *d = &r->dim[i];
		str_printf(o->s, "%s%" PRId64 " of ", i ? ", " : "", d->extent);
		if (d->axis == IMAGE_PACK_SOURCE)
			str_puts(o->s, "source");
		else
			str_printf(o->s, "axis %d", d->axis);
		str_printf(o->s, " step %" PRId64, d->stride);
	}
	str_puts(o->s, "] from ");
	for (int i = 0; i < r->sources; i++) {
		str_puts(o->s, i ? ", " : "");
		put_pack_source(o, &r->source[i]);
	}
}

static void put_buffer(struct out *o, const struct ilir_buffer_decl *b)
{
	str_puts(o->s, "buffer ");
	put_name(o, b->name);
	str_printf(o->s, " : %s %d", ilir_kind_word[b->kind], b->which);
	put_shape(o, b);
	if (b->recipe)
		put_recipe(o, b->recipe);
	if (b->table.i) {
		str_puts(o->s, " or ");
		put_buffer_name(o, b->table);
		str_puts(o->s, " by ");
		put_buffer_name(o, b->read_row);
	}
	str_puts(o->s, "\n");
}

/* --- statements --- */

static void put_bounds(struct out *o, ilir_expr begin, ilir_expr end)
{
	str_puts(o->s, " in ");
	put_expr(o, begin, false);
	str_puts(o->s, "..");
	put_expr(o, end, false);
}

static void put_for(struct out *o, const struct ilir_stmt *s)
{
	str_puts(o->s, "for ");
	put_var(o, s->loop.var);
	str_puts(o->s, ":");
	put_dim_name(o, s->loop.dim);
	put_bounds(o, s->loop.begin, s->loop.end);
	if (s->loop.step != 1)
		str_printf(o->s, " step %" PRId64, s->loop.step);
	if (s->loop.kind != ILIR_SERIAL)
		str_printf(o->s, " %s", ilir_loop_word[s->loop.kind]);
}

static void put_alloc(struct out *o, ilir_buffer b)
{
	bool matrix = b.i && b.i < o->m->buffers.n && ilir_buffer_at(o->m, b)->matrix;
	str_puts(o->s, matrix ? "alloc matrix " : "alloc ");
	put_buffer_name(o, b);
	str_puts(o->s, " :");
	if (b.i && b.i < o->m->buffers.n)
		put_shape(o, ilir_buffer_at(o->m, b));
	if (b.i && b.i < o->m->buffers.n && ilir_buffer_at(o->m, b)->parked)
		str_puts(o->s, " parked");
}

/* Writes: matrix fill a = x[n, ramp(16, 0)] to x[n + 11, ramp(16, 0)]. */
static void put_rows(struct out *o, const struct ilir_stmt *s)
{
	str_puts(o->s, s->kind == ILIR_FILL ? "matrix fill " : "matrix spill ");
	put_buffer_name(o, s->rows.matrix);
	str_puts(o->s, " = ");
	put_expr(o, s->rows.first, false);
	str_puts(o->s, " to ");
	put_expr(o, s->rows.last, false);
}

/* Writes: matrix dot4 sum, a, b. */
static void put_dot(struct out *o, const struct ilir_stmt *s)
{
	str_printf(o->s, "matrix %s ", ilir_op_spelling(s->dot.op));
	put_buffer_name(o, s->dot.sum);
	str_puts(o->s, ", ");
	put_buffer_name(o, s->dot.a);
	str_puts(o->s, ", ");
	put_buffer_name(o, s->dot.b);
}

static void put_group(struct out *o, int group)
{
	if (group)
		str_printf(o->s, " group %d", group);
}

static void put_cases(struct out *o, unsigned cases)
{
	str_puts(o->s, cases ? " of case" : "");
	for (int c = 0; cases >> c; c++)
		if (cases >> c & 1)
			str_printf(o->s, " %d", c);
}

static void put_sorted(struct out *o, int sort, bool apart)
{
	str_puts(o->s, apart ? " apart" : "");
	if (sort)
		str_printf(o->s, " sorted %d", sort - 1);
}

static void put_called(struct out *o, int call)
{
	if (call)
		str_printf(o->s, " call %d", call - 1);
}

/* Writes a statement without its blocks. */
static void put_head(struct out *o, const struct ilir_stmt *s)
{
	switch (s->kind) {
	case ILIR_FOR:
		put_for(o, s);
		break;
	case ILIR_IF:
		str_puts(o->s, "if ");
		put_expr(o, s->branch.condition, false);
		break;
	case ILIR_LET:
		str_puts(o->s, "let ");
		put_var(o, s->let.var);
		str_puts(o->s, " = ");
		put_expr(o, s->let.value, false);
		break;
	case ILIR_ALLOC:
		put_alloc(o, s->alloc);
		break;
	case ILIR_STORE:
		put_load(o, s->store.buffer, s->store.index, s->store.indices);
		str_puts(o->s, " = ");
		put_expr(o, s->store.value, false);
		break;
	case ILIR_PREFETCH:
		str_puts(o->s, s->prefetch.writes ? "prefetch write " : "prefetch ");
		put_expr(o, s->prefetch.load, false);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		put_rows(o, s);
		break;
	case ILIR_DOT:
		put_dot(o, s);
		break;
	case ILIR_BARRIER:
		str_puts(o->s, "barrier");
		break;
	case ILIR_STEP:
		str_puts(o->s, "step ");
		put_name(o, s->step.name);
		put_group(o, s->step.group);
		put_cases(o, s->step.cases);
		put_sorted(o, s->step.sort, s->step.apart);
		put_called(o, s->step.call);
		put_bounds(o, s->step.begin, s->step.end);
		break;
	}
}

static void put_indent(struct out *o)
{
	str_printf(o->s, "%*s", 2 * o->depth, "");
}

static void put_stmts(struct out *o, const struct ilir_stmt *s);

/* Writes " {", the statements one level deeper, and "}" at this level; the caller ends the line. */
static void put_block(struct out *o, const struct ilir_stmt *s)
{
	str_puts(o->s, " {\n");
	o->depth++;
	put_stmts(o, s);
	o->depth--;
	put_indent(o);
	str_puts(o->s, "}");
}

static void put_stmts(struct out *o, const struct ilir_stmt *s)
{
	for (; s; s = s->next) {
		if (o->numbers)
			((struct ilir_stmt *)s)->line = count_line(o);
		put_indent(o);
		put_head(o, s);
		if (s->kind == ILIR_FOR)
			put_block(o, s->loop.body);
		if (s->kind == ILIR_STEP)
			put_block(o, s->step.body);
		if (s->kind == ILIR_IF)
			put_block(o, s->branch.then);
		if (s->kind == ILIR_IF && s->branch.otherwise) {
			str_puts(o->s, " else");
			put_block(o, s->branch.otherwise);
		}
		str_puts(o->s, "\n");
	}
}

static void put_kernel(struct out *o, const struct ilir_kernel *k)
{
	if (o->numbers)
		((struct ilir_kernel *)k)->line = count_line(o);
	str_puts(o->s, "kernel ");
	put_name(o, k->name);
	str_printf(o->s, " in %s", ilir_domain_word[k->domain]);
	if (k->domain == IMAGE_DOMAIN_SCAN)
		str_printf(o->s, " %d..%d", k->first, k->last);
	put_group(o, k->group);
	put_cases(o, k->cases);
	put_sorted(o, k->sort, k->apart);
	put_called(o, k->call);
	if (k->parts)
		str_printf(o->s, " part %d of %d", k->part, k->parts);
	put_block(o, k->body);
	str_puts(o->s, "\n");
}

static void put_sort(struct out *o, const struct image_sort *s)
{
	str_printf(o->s, "sort %s by %d", s->edges ? "edges" : "nodes", s->input);
	if (s->slot >= 0)
		str_printf(o->s, " slot %d", s->slot);
	str_puts(o->s, "\n");
}

/* call vta0 reads a, reads b, writes c */
static void put_operands(struct out *o, const struct ilir_call *c)
{
	str_puts(o->s, "call ");
	put_name(o, c->name);
	for (int i = 0; i < c->operands; i++) {
		str_puts(o->s, i ? ", " : " ");
		str_puts(o->s, c->operand[i].writes ? "writes " : "reads ");
		put_name(o, ilir_buffer_at(o->m, c->operand[i].buffer)->name);
	}
	str_puts(o->s, "\n");
}

/* --- entry points --- */

static void put_module(struct out *o)
{
	const struct ilir_module *m = o->m;
	struct str *s = o->s;
	str_puts(s, "module ");
	put_name(o, m->name);
	str_puts(s, "\n");
	for (size_t i = 0; i < m->dims.n; i++) {
		str_puts(s, i ? ", " : "dim ");
		put_name(o, m->dims.at[i]);
	}
	str_puts(s, m->dims.n ? "\n" : "");
	for (size_t i = 0; i < m->sorts.n; i++)
		put_sort(o, &m->sorts.at[i]);
	for (size_t i = 1; i < m->buffers.n; i++)
		if (ilir_traits_of(&m->buffers.at[i]))
			put_buffer(o, &m->buffers.at[i]);
	for (size_t i = 0; i < m->calls.n; i++)
		put_operands(o, &m->calls.at[i]);
	for (size_t i = 0; i < m->kernels.n; i++)
		put_kernel(o, &m->kernels.at[i]);
}

void ilir_print(const struct ilir_module *m, struct str *s)
{
	struct out o = {.m = m, .s = s, .limit = SIZE_MAX};
	put_module(&o);
}

void ilir_print_numbered(struct ilir_module *m, struct str *s)
{
	struct out o = {.m = m, .s = s, .limit = SIZE_MAX, .numbers = true, .counted = s->n, .line = 1};
	put_module(&o);
}

void ilir_print_stmt(const struct ilir_module *m, const struct ilir_stmt *statement, struct str *s)
{
	struct out o = {.m = m, .s = s, .limit = s->n + 160};
	put_head(&o, statement);
}
