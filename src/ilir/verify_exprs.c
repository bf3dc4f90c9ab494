/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Verifies expressions of the loop IR: types, indices, and what a pass was to have replaced. */
#include "ilir/verify.h"

#include <inttypes.h>

enum { MOST_FAULTS = 20 };

bool ilir_report_fault(struct verification *c, const char *format, ...)
{
	struct str rule = str_in(c->m->arena), where = str_in(c->m->arena);
	va_list args;
	if (c->faults++ >= MOST_FAULTS)
		return false;
	va_start(args, format);
	str_vprintf(&rule, format, args);
	va_end(args);
	if (c->kernel)
		str_printf(&where, "kernel '%s': ", c->kernel->name ? c->kernel->name : "");
	if (c->stmt)
		ilir_print_stmt(c->m, c->stmt, &where);
	return diag_add(c->diags, DIAG_INVALID_LOOPS, (struct diag_at){0},
			"this is a fault of the compiler, not of the model; please report it",
			"after %s: %s%s%s", c->pass, str_text(&where), c->stmt ? ": " : "", str_text(&rule));
}

bool ilir_get_constant(const struct ilir_module *m, ilir_expr e, int64_t *value)
{
	if (ilir_at(m, e)->op == ILIR_BROADCAST)
		e = ilir_arg(m, e, 0);
	*value = ilir_at(m, e)->i;
	return ilir_at(m, e)->op == ILIR_CONST_I;
}

bool ilir_check_use(struct verification *c, ilir_buffer b)
{
	if (!b.i || b.i >= c->m->buffers.n)
		return ilir_report_fault(c, "there is no buffer %u", b.i);
	const struct ilir_buffer_decl *d = ilir_buffer_at(c->m, b);
	if (d->kind == ILIR_UNUSED)
		return ilir_report_fault(c, "'%s' was dropped as unused", d->name);
	if (d->matrix)
		return ilir_report_fault(c, "matrix register '%s' is used otherwise than by matrix statements", d->name);
	if (d->kind == ILIR_REGISTER && !c->register_visible[b.i])
		return ilir_report_fault(c, "register '%s' is used outside of its alloc", d->name);
	return true;
}

/* Checks that a loop's variable, used as an index of rows, is of a loop along that dimension.  Other
 * dimensions may be indexed by any loop, as slices and concatenations do; their indices are checked by
 * range. */
static bool check_row_index(struct verification *c, const struct ilir_buffer_decl *b, int i, ilir_expr index)
{
	const struct ilir_node *n = ilir_at(c->m, index);
	if (n->op == ILIR_RAMP)
		n = ilir_at(c->m, ilir_arg(c->m, index, 0));
	const struct ilir_stmt *loop =
	    n->op == ILIR_VAR && n->var.i < c->m->vars.n ? c->loop_of[n->var.i] : NULL;
	if (!loop || loop->loop.dim == b->dim[i].name || ilir_at(c->m, loop->loop.end)->op == ILIR_INFERRED)
		return true;
	if (b->dim[i].rows == IMAGE_ONE)
		return true;
	return ilir_report_fault(c, "'%s' walks along '%s' but indexes dimension '%s' of '%s'",
				 c->m->vars.at[loop->loop.var.i].name, c->m->dims.at[loop->loop.dim],
				 c->m->dims.at[b->dim[i].name], b->name);
}

bool ilir_check_indices(struct verification *c, ilir_buffer buffer, const ilir_expr *index, int n)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(c->m, buffer);
	if (n != b->rank)
		return ilir_report_fault(c, "'%s' has rank %d but %d indices", b->name, b->rank, n);
	for (int i = 0; i < n; i++) {
		struct ilir_type t = ilir_type_of(c->m, index[i]);
		int64_t value;
		bool vector = ilir_at(c->m, index[i])->op == ILIR_RAMP;
		if (t.dtype != ILIR_INDEX)
			return ilir_report_fault(c, "index %d of '%s' is not of type index", i, b->name);
		if (t.lanes > 1 && (!vector || i + 1 < n))
			return ilir_report_fault(
			    c, "index %d of '%s' is a vector; only the last one may be, and only as a ramp",
			    i, b->name);
		if (vector && ilir_at(c->m, index[i])->i != 1 && (b->kind == ILIR_REGISTER || b->dtype != ILIR_F32))
			return ilir_report_fault(
			    c, "index %d of '%s' is a ramp by more than 1, which loads of f32 from memory may have",
			    i, b->name);
		ilir_expr first = vector ? ilir_arg(c->m, index[i], 0) : index[i];
		bool free = b->parked && !vector;
		if ((c->properties & ILIR_UNROLLED_ALL) && b->kind == ILIR_REGISTER && !free &&
		    !ilir_get_constant(c->m, first, &value))
			return ilir_report_fault(c, "register '%s' is not indexed by a constant", b->name);
		if (!check_row_index(c, b, i, index[i]))
			return false;
	}
	return true;
}

/* Whether an integer is a constant of this type; some types have none. */
static bool holds_integer(enum ilir_dtype d, int64_t i)
{
	switch (d) {
	case ILIR_I64:
	case ILIR_INDEX:
		return true;
	case ILIR_I32:
		return i == (int32_t)i;
	default:
		return d == ILIR_BOOL && (i == 0 || i == 1);
	}
}

static bool check_leaf(struct verification *c, const struct ilir_node *n)
{
	switch (n->op) {
	case ILIR_CONST_F:
		return ilir_same_type(n->type, (struct ilir_type){ILIR_F32, 1}) ||
		       ilir_report_fault(c, "a float of another type");
	case ILIR_CONST_I:
		return (n->type.lanes == 1 && holds_integer(n->type.dtype, n->i)) ||
		       ilir_report_fault(c, "an integer of another type");
	case ILIR_SIZE:
		return (n->size >= 0 && n->size < IMAGE_SIZES) ||
		       ilir_report_fault(c, "a size of nothing known");
	case ILIR_VAR:
		if (!n->var.i || n->var.i >= c->m->vars.n)
			return ilir_report_fault(c, "there is no variable %u", n->var.i);
		if (!c->var_visible[n->var.i])
			return ilir_report_fault(c, "variable '%s' is used outside of its scope",
						 c->m->vars.at[n->var.i].name);
		return ilir_same_type(n->type, c->m->vars.at[n->var.i].type) ||
		       ilir_report_fault(c, "variable '%s' is used with another type",
					 c->m->vars.at[n->var.i].name);
	default:
		return true;
	}
}

static bool check_spread(struct verification *c, const struct ilir_node *n, ilir_expr operand)
{
	struct ilir_type t = ilir_type_of(c->m, operand);
	if (n->type.lanes < 2 || n->type.lanes > ILIR_MAX_LANES)
		return ilir_report_fault(c, "%s to %d lanes", ilir_op_spelling(n->op), n->type.lanes);
	if (t.lanes != 1 || t.dtype != n->type.dtype)
		return ilir_report_fault(c, "%s of something that is not a scalar of its type",
					 ilir_op_spelling(n->op));
	if (n->op == ILIR_RAMP && t.dtype != ILIR_INDEX)
		return ilir_report_fault(c, "a ramp that is not of type index");
	return n->op != ILIR_RAMP || (n->i >= 1 && n->i <= ILIR_MAX_STEP) ||
	       ilir_report_fault(c, "a ramp by %" PRId64, n->i);
}

static bool is_shift(enum ilir_op op)
{
	return op == ILIR_SHL || op == ILIR_SHR || op == ILIR_ROUND_SHR;
}

/* Checks operands that must be constants. */
static bool check_constant_operand(struct verification *c, const struct ilir_node *n, ilir_expr b)
{
	int64_t value;
	bool known = ilir_get_constant(c->m, b, &value);
	if ((n->op == ILIR_DIV || n->op == ILIR_MOD) && (!known || value <= 0))
		return ilir_report_fault(c, "%s by something else than a positive constant",
					 ilir_op_spelling(n->op));
	int bits = 8 * ilir_bytes(n->type.dtype);
	if (is_shift(n->op) && (!known || value < 0 || value >= bits))
		return ilir_report_fault(c, "%s by something else than a constant in 0..%d",
					 ilir_op_spelling(n->op), bits - 1);
	return true;
}

/* Checks that no argument is an inferred bound, and that only the index of a load is a ramp.  Bounds of
 * loops and indices of stores are no arguments, and are checked elsewhere. */
static bool check_args(struct verification *c, const struct ilir_node *n, const ilir_expr *args)
{
	for (int i = 0; i < n->args; i++) {
		enum ilir_op op = ilir_at(c->m, args[i])->op;
		if (op == ILIR_INFERRED)
			return ilir_report_fault(c, "'?' stands elsewhere than as a loop's bound");
		if (op == ILIR_RAMP && n->op != ILIR_LOAD)
			return ilir_report_fault(
			    c, "a ramp stands elsewhere than as the last index of a load or store");
	}
	return true;
}

/* Checks what is read within extents. */
static bool check_within(struct verification *c, ilir_expr e)
{
	const struct ilir_node *load = ilir_at(c->m, ilir_widened(c->m, e));
	if (c->properties & ILIR_RESOLVED)
		return ilir_report_fault(c, "within is left, although it was to be resolved");
	return (load->op == ILIR_LOAD && ilir_buffer_at(c->m, load->buffer)->kind != ILIR_REGISTER) ||
	       ilir_report_fault(c, "within of something else than a load from memory");
}

/* Checks that bytes of a word are neighbours in memory, which back ends load at once. */
static bool check_word(struct verification *c, ilir_expr bytes)
{
	const struct ilir_node *load = ilir_at(c->m, bytes);
	bool ramp = load->op == ILIR_LOAD && load->args &&
		    ilir_at(c->m, ilir_arg(c->m, bytes, load->args - 1))->op == ILIR_RAMP;
	return (ramp && ilir_buffer_at(c->m, load->buffer)->kind != ILIR_REGISTER) ||
	       ilir_report_fault(c, "word_of something else than a load of neighbours from memory");
}

/* Checks lanes that are taken of two vectors. */
static bool check_pair(struct verification *c, const struct ilir_node *n, const ilir_expr *args)
{
	int64_t by[3] = {0}, lanes = n->type.lanes;
	bool good = lanes > 1;
	for (int i = 2; good && i < n->args; i++)
		good = ilir_constant(c->m, args[i], &by[i - 2]);
	int64_t first = by[0], step = by[1], apart = by[2], begin = by[0], end = by[1];
	if (n->op == ILIR_KEEP)
		good = good && begin >= 0 && begin <= end && end <= lanes;
	else
		good = good && step >= 1 && step <= 2 && apart >= 0 && apart <= lanes && first > -lanes * step &&
		       first < apart + lanes;
	return good || ilir_report_fault(c, "%s of lanes that two vectors have not", ilir_op_spelling(n->op));
}

static bool check_operator(struct verification *c, const struct ilir_node *n, const ilir_expr *args)
{
	const char *problem;
	if (n->op == ILIR_LOAD &&
	    !(ilir_check_use(c, n->buffer) && ilir_check_indices(c, n->buffer, args, n->args)))
		return false;
	if (n->op == ILIR_BROADCAST || n->op == ILIR_RAMP)
		return check_spread(c, n, args[0]);
	struct ilir_type t = ilir_infer_type(c->m, n, args, &problem);
	if (!t.lanes)
		return ilir_report_fault(c, "%s: %s", n->op == ILIR_LOAD ? "load" : ilir_op_spelling(n->op),
					 problem);
	if (!ilir_same_type(t, n->type))
		return ilir_report_fault(c, "%s: the type is not that of its operands",
					 ilir_op_spelling(n->op));
	if (n->op == ILIR_WITHIN)
		return check_within(c, args[0]);
	if (n->op == ILIR_WORD)
		return check_word(c, args[0]);
	if (n->op == ILIR_SPLICE || n->op == ILIR_KEEP)
		return check_pair(c, n, args);
	if (n->args == 2 && n->op != ILIR_LOAD && !check_constant_operand(c, n, args[1]))
		return false;
	if ((c->properties & ILIR_PRIMITIVE) && ilir_is_compound(n->op))
		return ilir_report_fault(c, "%s is left, although it was to be expanded",
					 ilir_op_spelling(n->op));
	return true;
}

static void check_expr(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct verification *c = context;
	const struct ilir_node *n = ilir_at(m, e);
	const ilir_expr *args = n->args ? &m->args.at[n->arg] : NULL;
	if (n->op != ILIR_LOAD && n->args != ilir_op_arity(n->op))
		ilir_report_fault(c, "%s has %d operands", ilir_op_spelling(n->op), n->args);
	else if (!n->args && n->op != ILIR_LOAD)
		check_leaf(c, n);
	else if (check_args(c, n, args))
		check_operator(c, n, args);
}

bool ilir_check_root(struct verification *c, ilir_expr e)
{
	int before = c->faults;
	if (!e.i || e.i >= c->m->nodes.n)
		return ilir_report_fault(c, "an expression is missing");
	ilir_visit_expr(c->m, e, &(struct ilir_visit){.expr = check_expr, .context = c});
	return c->faults == before;
}
