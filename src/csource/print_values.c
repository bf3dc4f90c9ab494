/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Expressions.  A scalar is a constant of C named after its expression.  A vector is an array, which a loop over its lanes
 * fills: one loop computes all that the vector is made of lane by lane, so that compilers make vectors of it again. */
#include "csource/writer.h"

#include "jit/place.h"

#include <inttypes.h>

static bool is_vector(const struct csource_writer *w, ilir_expr x)
{
	return ilir_type_of(w->m, x).lanes > 1;
}

/* Whether no line is needed before an expression is used, but for those of the scalar that a vector repeats. */
static bool is_at_hand(const struct csource_writer *w, ilir_expr x)
{
	enum ilir_op op = ilir_at(w->m, x)->op;
	return op == ILIR_CONST_F || op == ILIR_CONST_I || op == ILIR_VAR || w->known[x.i];
}

static void note_known(struct csource_writer *w, ilir_expr x)
{
	w->known[x.i] = true;
	vec_push(w->arena, &w->computed, x.i);
}

void csource_forget(struct csource_writer *w, size_t mark)
{
	while (w->computed.n > mark)
		w->known[w->computed.at[--w->computed.n]] = false;
}

/* --- values --- */

static const char *value_of_lane(struct csource_writer *w, ilir_expr x, const char *lane)
{
	const struct ilir_node *n = ilir_at(w->m, x);
	if (n->op == ILIR_BROADCAST)
		return value_of_lane(w, ilir_arg(w->m, x, 0), lane);
	if (n->op == ILIR_CONST_F)
		return csource_float(w->arena, n->f);
	if (n->op == ILIR_CONST_I)
		return csource_integer(w->arena, n->type.dtype, n->i);
	const char *name = n->op == ILIR_VAR ? csource_var_name(w, n->var) : str_format(w->arena, "e%u", x.i);
	if (!is_vector(w, x))
		return name;
	return is_at_hand(w, x) ? str_format(w->arena, "%s[%s]", name, lane) : str_format(w->arena, "l%u", x.i);
}

const char *csource_value(struct csource_writer *w, ilir_expr x)
{
	return value_of_lane(w, x, "l");
}

/* --- elements --- */

static void compute_address(struct csource_writer *w, const struct jit_access *a, struct jit_address *to)
{
	if (a->problem)
		w->problem = a->problem;
	*to = jit_address_of(w->m, a, (ilir_var){0});
	for (int i = 0; i < to->terms; i++)
		csource_compute(w, to->index[i]);
	if (to->row.i)
		csource_compute(w, to->row);
}

/* The number of an element behind the first one of its row, or of the array. */
static const char *write_offset(struct csource_writer *w, const struct jit_access *a, const struct jit_address *to)
{
	struct str s = str_in(w->arena);
	for (int i = 0; i < to->terms; i++) {
		str_printf(&s, "%s%s", i ? " + " : "", csource_value(w, to->index[i]));
		if (to->stride[i] != 1)
			str_printf(&s, " * %" PRId64, (int64_t)to->stride[i]);
	}
	if (to->displacement)
		str_printf(&s, "%s%" PRId64, s.n ? " + " : "", (int64_t)to->displacement);
	if (a->place.spread == ILIR_RAMP)
		str_printf(&s, s.n ? " + l" : "l");
	if (a->place.spread == ILIR_RAMP && a->place.step != 1)
		str_printf(&s, " * %d", a->place.step);
	return s.n ? str_text(&s) : "0";
}

/* The value of an element as an expression: weights of f32 are their bits, and of truth any byte but 0 is true. */
static const char *read_element(struct csource_writer *w, ilir_buffer b, const char *index)
{
	const struct ilir_buffer_decl *d = ilir_buffer_at(w->m, b);
	const char *name = csource_buffer_name(w, b);
	if (csource_holds_bits(d))
		return str_format(w->arena, "f32_of_bits(%s[%s])", name, index);
	return str_format(w->arena, d->dtype == ILIR_BOOL ? "(%s[%s] != 0)" : "%s[%s]", name, index);
}

/* Row -1 - t of a state with a table is row t of the table. */
static const char *write_load(struct csource_writer *w, ilir_expr x)
{
	struct jit_access a = jit_read_load(w->m, x);
	struct jit_address to;
	compute_address(w, &a, &to);
	const char *offset = write_offset(w, &a, &to);
	if (!to.row.i)
		return read_element(w, a.buffer, offset);
	const char *row = csource_value(w, to.row);
	const char *own = str_format(w->arena, "%s * %" PRId64 " + %s", row, (int64_t)to.row_stride, offset);
	const char *table = str_format(w->arena, "(-1 - %s) * %" PRId64 " + %s", row, (int64_t)to.row_stride, offset);
	return str_format(w->arena, "(%s < 0 ? %s : %s)", row,
			    read_element(w, ilir_buffer_at(w->m, a.buffer)->table, table), read_element(w, a.buffer, own));
}

static const char *write_element(struct csource_writer *w, const struct jit_access *a)
{
	struct jit_address to;
	compute_address(w, a, &to);
	return str_format(w->arena, "%s[%s]", csource_buffer_name(w, a->buffer), write_offset(w, a, &to));
}

const char *csource_element(struct csource_writer *w, const struct ilir_stmt *store)
{
	struct jit_access a = jit_read_store(w->m, store);
	return write_element(w, &a);
}

const char *csource_word(struct csource_writer *w, ilir_expr load)
{
	struct jit_access a = jit_read_load(w->m, load);
	return write_element(w, &a);
}

/* --- operators --- */

/* Operands have one type, but those of products of words. */
static const char *write_call(struct csource_writer *w, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(w->m, x);
	enum ilir_dtype operand = ilir_type_of(w->m, ilir_arg(w->m, x, 0)).dtype;
	struct str s = str_in(w->arena);
	str_printf(&s, "%s(", csource_function(w->arena, n->op, operand));
	for (int i = 0; i < n->args; i++)
		str_printf(&s, "%s%s", i ? ", " : "", csource_value(w, ilir_arg(w->m, x, i)));
	str_puts(&s, ")");
	return str_text(&s);
}

/* Four bytes of memory as an integer, in an order of their own on any machine; compilers make one load of it where that has
 * the same bytes. */
static const char *write_bytes_as_word(struct csource_writer *w, ilir_expr load)
{
	struct jit_access a = jit_read_load(w->m, load);
	struct jit_address to;
	a.place.spread = ILIR_VAR; /* the offset is that of the first byte */
	compute_address(w, &a, &to);
	const char *offset = write_offset(w, &a, &to);
	if (to.row.i)
		w->problem = "bytes of a word are in a table";
	struct str s = str_in(w->arena);
	for (int i = 0; i < 4; i++)
		str_printf(&s, "%s(uint32_t)(uint8_t)%s[%s + %d] << %d", i ? " | " : "", csource_buffer_name(w, a.buffer), offset, i,
			   8 * i);
	return str_format(w->arena, "(int32_t)(%s)", str_text(&s));
}

/* A scalar, or a lane of a vector, whose operands are known. */
static const char *write_operator(struct csource_writer *w, ilir_expr x)
{
	switch (ilir_at(w->m, x)->op) {
	case ILIR_LOAD:
		return write_load(w, x);
	case ILIR_WORD:
		return write_bytes_as_word(w, ilir_arg(w->m, x, 0));
	case ILIR_SELECT:
		return str_format(w->arena, "%s ? %s : %s", csource_value(w, ilir_arg(w->m, x, 0)),
				    csource_value(w, ilir_arg(w->m, x, 1)), csource_value(w, ilir_arg(w->m, x, 2)));
	case ILIR_SIZE:
	case ILIR_INFERRED:
	case ILIR_RAMP:
	case ILIR_WITHIN:
		w->problem = "an expression of its loops has no value in finished ones";
		return "0";
	default:
		return write_call(w, x);
	}
}

static const char *type_of(const struct csource_writer *w, ilir_expr x)
{
	return csource_type(ilir_type_of(w->m, x).dtype);
}

/* --- scalars --- */

static void compute_side(struct csource_writer *w, ilir_expr x, int side)
{
	size_t mark = w->computed.n;
	ilir_expr value = ilir_arg(w->m, x, side);
	csource_compute(w, value);
	csource_line(w, "e%u = %s;", x.i, csource_value(w, value));
	csource_forget(w, mark);
}

/* A selection of which only the chosen side may be read. */
static void compute_branches(struct csource_writer *w, ilir_expr x)
{
	csource_compute(w, ilir_arg(w->m, x, 0));
	csource_line(w, "%s e%u;", type_of(w, x), x.i);
	csource_open(w, "if (%s)", csource_value(w, ilir_arg(w->m, x, 0)));
	compute_side(w, x, 1);
	csource_close(w);
	csource_open(w, "else");
	compute_side(w, x, 2);
	csource_close(w);
}

static void compute_scalar(struct csource_writer *w, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(w->m, x);
	if (n->op == ILIR_SELECT && jit_must_branch(w->m, w->reads, x)) {
		compute_branches(w, x);
	} else {
		for (int i = 0; n->op != ILIR_LOAD && n->op != ILIR_WORD && i < n->args; i++)
			csource_compute(w, ilir_arg(w->m, x, i));
		const char *value = write_operator(w, x);
		csource_line(w, "const %s e%u = %s;", type_of(w, x), x.i, value);
	}
	note_known(w, x);
}

/* --- vectors --- */

/* Of SPLICE and KEEP: lanes of two vectors, each known by its number. */
static void compute_pair(struct csource_writer *w, ilir_expr x)
{
	int lanes = ilir_type_of(w->m, x).lanes;
	struct str s = str_in(w->arena);
	for (int t = 0; t < lanes; t++) {
		int at = ilir_paired_lane(w->m, x, t);
		ilir_expr side = ilir_arg(w->m, x, at >= lanes);
		csource_compute(w, side);
		str_printf(&s, "%s%s", t ? ", " : "", value_of_lane(w, side, str_format(w->arena, "%d", at % lanes)));
	}
	csource_line(w, "const %s e%u[%d] = {%s};", type_of(w, x), x.i, lanes, str_text(&s));
	note_known(w, x);
}

/* The expressions that one loop over lanes computes, arguments first. */
struct lanes {
	uint32_t number; /* of the loop */
	VEC(ilir_expr) list;
};

static bool is_pair(const struct csource_writer *w, ilir_expr x)
{
	enum ilir_op op = ilir_at(w->m, x)->op;
	return op == ILIR_SPLICE || op == ILIR_KEEP;
}

/* Computes what a lane needs of others and of scalars, and lists the rest. */
static void visit_lanes(struct csource_writer *w, struct lanes *l, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(w->m, x);
	if (is_at_hand(w, x) || w->lane[x.i] == l->number)
		return;
	if (!is_vector(w, x) || n->op == ILIR_BROADCAST || is_pair(w, x)) {
		csource_compute(w, x);
		return;
	}
	if (n->op == ILIR_LOAD)
		write_load(w, x);
	for (int i = 0; n->op != ILIR_LOAD && i < n->args; i++)
		visit_lanes(w, l, ilir_arg(w->m, x, i));
	w->lane[x.i] = l->number;
	vec_push(w->arena, &l->list, x);
}

/* Twice: the first time other loops may run in between, which number what they share with this one. */
static struct lanes list_lanes(struct csource_writer *w, ilir_expr x)
{
	struct lanes first = {.number = ++w->lanes}, second;
	visit_lanes(w, &first, x);
	second = (struct lanes){.number = ++w->lanes};
	visit_lanes(w, &second, x);
	return second;
}

static void compute_lanes(struct csource_writer *w, ilir_expr x)
{
	struct lanes l = list_lanes(w, x);
	int lanes = ilir_type_of(w->m, x).lanes;
	csource_line(w, "%s e%u[%d];", type_of(w, x), x.i, lanes);
	csource_open(w, "for (int l = 0; l < %d; l++)", lanes);
	for (size_t i = 0; i + 1 < l.list.n; i++)
		csource_line(w, "const %s l%u = %s;", type_of(w, l.list.at[i]), l.list.at[i].i, write_operator(w, l.list.at[i]));
	csource_line(w, "e%u[l] = %s;", x.i, write_operator(w, x));
	csource_close(w);
	note_known(w, x);
}

void csource_compute(struct csource_writer *w, ilir_expr x)
{
	if (is_at_hand(w, x))
		return;
	if (ilir_at(w->m, x)->op == ILIR_BROADCAST)
		csource_compute(w, ilir_arg(w->m, x, 0));
	else if (is_pair(w, x))
		compute_pair(w, x);
	else if (is_vector(w, x))
		compute_lanes(w, x);
	else
		compute_scalar(w, x);
}
