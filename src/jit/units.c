/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "jit/units.h"

#include "base/str.h"

/* --- bounds --- */

/* An index or a truth, for a range of rows 0..rows. */
struct bound {
	int64_t value;
	bool known;
};

static struct bound evaluate_bound(const struct ilir_module *, ilir_expr, int64_t rows);

static struct bound evaluate_select(const struct ilir_module *m, ilir_expr e, int64_t rows)
{
	struct bound condition = evaluate_bound(m, ilir_arg(m, e, 0), rows);
	return condition.known ? evaluate_bound(m, ilir_arg(m, e, condition.value ? 1 : 2), rows) : condition;
}

/* Divisors are positive constants, and divisions round down. */
static int64_t divide_down(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static struct bound evaluate_binary(enum ilir_op op, int64_t a, int64_t b)
{
	switch (op) {
	case ILIR_ADD:
		return (struct bound){a + b, true};
	case ILIR_SUB:
		return (struct bound){a - b, true};
	case ILIR_MUL:
		return (struct bound){a * b, true};
	case ILIR_DIV:
		return (struct bound){divide_down(a, b), true};
	case ILIR_MOD:
		return (struct bound){a - b * divide_down(a, b), true};
	case ILIR_MIN:
		return (struct bound){a < b ? a : b, true};
	case ILIR_MAX:
		return (struct bound){a > b ? a : b, true};
	case ILIR_LT:
		return (struct bound){a < b, true};
	case ILIR_LE:
		return (struct bound){a <= b, true};
	case ILIR_EQ:
		return (struct bound){a == b, true};
	case ILIR_AND:
		return (struct bound){a & b, true};
	case ILIR_OR:
		return (struct bound){a | b, true};
	default:
		return (struct bound){0};
	}
}

/* Unknown when it depends on more than the range. */
static struct bound evaluate_bound(const struct ilir_module *m, ilir_expr e, int64_t rows)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_CONST_I)
		return (struct bound){n->i, true};
	if (n->op == ILIR_VAR)
		return (struct bound){n->var.i == ilir_end.i ? rows : 0,
				      n->var.i == ilir_begin.i || n->var.i == ilir_end.i};
	if (n->op == ILIR_SELECT)
		return evaluate_select(m, e, rows);
	if (n->args != 2 || n->op == ILIR_LOAD)
		return (struct bound){0};
	struct bound a = evaluate_bound(m, ilir_arg(m, e, 0), rows), b = evaluate_bound(m, ilir_arg(m, e, 1), rows);
	return a.known && b.known ? evaluate_binary(n->op, a.value, b.value) : (struct bound){0};
}

/* The least number of rows with which a loop has an iteration; 0 = unknown. */
static int64_t least_rows(const struct ilir_module *m, const struct ilir_stmt *loop)
{
	for (int64_t rows = 1; rows <= 2 * loop->loop.step; rows++) {
		struct bound begin = evaluate_bound(m, loop->loop.begin, rows), end = evaluate_bound(m, loop->loop.end, rows);
		if (!begin.known || !end.known)
			return 0;
		if (begin.value < end.value)
			return rows;
	}
	return 0;
}

/* --- units --- */

static bool is_var(const struct ilir_module *m, ilir_expr e, ilir_var v)
{
	return ilir_at(m, e)->op == ILIR_VAR && ilir_at(m, e)->var.i == v.i;
}

/* Whether a block consists of loops over rows, each of which begins where the one before it ends; so they share no
 * row, unlike loops of several groups. */
static bool are_row_loops(const struct ilir_module *m, const struct ilir_stmt *s)
{
	if (s->kind != ILIR_FOR || !is_var(m, s->loop.begin, ilir_begin))
		return false;
	for (; s; s = s->next) {
		if (s->kind != ILIR_FOR || (s->loop.kind != ILIR_SERIAL && s->loop.kind != ILIR_MATRIX) || !least_rows(m, s))
			return false;
		if (s->next ? s->next->kind != ILIR_FOR || s->next->loop.begin.i != s->loop.end.i
			    : !is_var(m, s->loop.end, ilir_end))
			return false;
	}
	return true;
}

/* A kernel that finds its own rows may need them in order.  Before the first loop stand registers that it keeps from tile to
 * tile. */
const struct ilir_stmt *jit_row_loops(const struct ilir_module *m, int kernel)
{
	const struct ilir_kernel *k = &m->kernels.at[kernel];
	const struct ilir_stmt *s = k->body;
	if (k->domain == IMAGE_DOMAIN_ONCE)
		return NULL;
	while (s && !s->next && s->kind == ILIR_FOR && (s->loop.kind == ILIR_SWEPT || ilir_trip_count(m, s) == 1))
		s = s->loop.body;
	while (s && s->kind == ILIR_ALLOC)
		s = s->next;
	return s && s->next && are_row_loops(m, s) ? s : NULL;
}

static const char *name_variant(struct arena *arena, const struct ilir_kernel *k, int64_t step)
{
	struct str s = str_in(arena);
	str_printf(&s, "%s.rows%lld", k->name, (long long)step);
	return s.text;
}

static int add_units(struct arena *arena, const struct ilir_module *m, int kernel, bool whole, struct jit_unit *unit)
{
	const struct ilir_kernel *k = &m->kernels.at[kernel];
	const struct ilir_stmt *loop = whole ? NULL : jit_row_loops(m, kernel);
	int n = 1;
	unit[0] = (struct jit_unit){.kernel = kernel, .rows = loop ? least_rows(m, loop) : 1, .name = k->name};
	for (loop = loop ? loop->next : NULL; loop; loop = loop->next, n++)
		unit[n] = (struct jit_unit){.kernel = kernel,
					    .variant = n,
					    .rows = least_rows(m, loop),
					    .name = name_variant(arena, k, loop->loop.step)};
	for (int i = 0; i < n; i++) {
		unit[i].variants = n;
		unit[0].rows = unit[i].rows > unit[0].rows ? unit[i].rows : unit[0].rows;
	}
	return n;
}

static int count_units(const struct ilir_module *m, bool whole)
{
	int n = m->kernels.n;
	for (size_t k = 0; k < m->kernels.n && !whole; k++)
		for (const struct ilir_stmt *s = jit_row_loops(m, k); s && s->next; s = s->next)
			n++;
	return n;
}

int jit_list_units(struct arena *arena, const struct ilir_module *m, bool whole, struct jit_unit **units)
{
	int n = 0;
	*units = ARENA_ARRAY(arena, struct jit_unit, count_units(m, whole));
	for (size_t k = 0; k < m->kernels.n; k++)
		n += add_units(arena, m, k, whole, *units + n);
	return n;
}
