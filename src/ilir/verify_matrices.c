/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Verifies what the loop IR does with matrix registers: where they are configured, their shapes, and the rows that they are
 * filled from and spilled to. */
#include "ilir/verify.h"

#include <inttypes.h>

enum { WORD_BYTES = 4 };

void ilir_check_matrix_loop(struct verification *c, const struct ilir_stmt *s)
{
	ilir_buffer list[ILIR_MATRICES + 1];
	if (c->matrices)
		ilir_report_fault(c, "a matrix loop in another one, whose registers are configured");
	if (ilir_list_matrices(c->m, s->loop.body, list) > ILIR_MATRICES)
		ilir_report_fault(c, "a matrix loop with more than %d matrix registers", ILIR_MATRICES);
}

void ilir_check_level(struct verification *c, const char *what)
{
	if (c->matrices)
		ilir_report_fault(c, "%s inside a matrix loop, whose registers are not released", what);
}

void ilir_check_matrix(struct verification *c, const struct ilir_buffer_decl *b)
{
	bool words = b->dtype < ILIR_INDEX && ilir_bytes(b->dtype) == WORD_BYTES;
	if (!c->matrices)
		ilir_report_fault(c, "matrix register '%s' outside of a matrix loop, which configures it", b->name);
	if (b->rank != 2 || !words) {
		ilir_report_fault(c, "matrix register '%s' is not made of rows of words", b->name);
		return;
	}
	if (b->dim[0].extent < 1 || b->dim[0].padded > ILIR_MATRIX_ROWS)
		ilir_report_fault(c, "matrix register '%s' has %" PRId64 " rows, not 1..%d", b->name, b->dim[0].padded, ILIR_MATRIX_ROWS);
	if (b->dim[1].extent < 1 || b->dim[1].padded > ILIR_MATRIX_WORDS)
		ilir_report_fault(c, "matrix register '%s' has rows of %" PRId64 " bytes, not %d..%d", b->name,
				  WORD_BYTES * b->dim[1].padded, WORD_BYTES, WORD_BYTES * ILIR_MATRIX_WORDS);
}

/* The matrix register of a statement; NULL after a fault. */
static const struct ilir_buffer_decl *find_matrix(struct verification *c, ilir_buffer b)
{
	bool known = b.i && b.i < c->m->buffers.n;
	const struct ilir_buffer_decl *d = known ? ilir_buffer_at(c->m, b) : NULL;
	if (!d || d->kind != ILIR_REGISTER || !d->matrix)
		return ilir_report_fault(c, "a matrix statement of '%s', which is no matrix register", d ? d->name : "nothing"), NULL;
	return c->register_visible[b.i]
		   ? d
		   : (ilir_report_fault(c, "matrix register '%s' is used outside of its alloc", d->name), NULL);
}

/* Checks that two loads differ by one index only, which is no vector and moves by as many rows as lie between. */
static bool check_distance(struct verification *c, const struct ilir_stmt *s, int64_t rows)
{
	const struct ilir_node *first = ilir_at(c->m, s->rows.first);
	int differing = 0;
	int64_t distance = 0;
	for (int d = 0; d < first->args; d++) {
		ilir_expr a = ilir_arg(c->m, s->rows.first, d), b = ilir_arg(c->m, s->rows.last, d);
		if (a.i == b.i)
			continue;
		if (++differing > 1 || d == first->args - 1 || !ilir_find_distance(c->m, a, b, &distance))
			return ilir_report_fault(c, "the first and the last row lie in no known distance of each other");
	}
	return distance == rows - 1 || ilir_report_fault(c, "the rows of the place are not those of the matrix register");
}

/* Checks an end of the rows: a load of as many adjacent words as a row has. */
static bool check_row(struct verification *c, ilir_expr e, const struct ilir_buffer_decl *matrix)
{
	if (!ilir_check_root(c, e))
		return false;
	const struct ilir_node *n = ilir_at(c->m, e);
	const struct ilir_buffer_decl *b = n->op == ILIR_LOAD ? ilir_buffer_at(c->m, n->buffer) : NULL;
	if (!b || !n->args || b->table.i)
		return ilir_report_fault(c, "rows of something that does not lie in memory row by row");
	if (n->type.dtype != matrix->dtype || n->type.lanes != matrix->dim[1].padded)
		return ilir_report_fault(c, "rows of another length or type than those of '%s'", matrix->name);
	ilir_expr last = ilir_arg(c->m, e, n->args - 1);
	return n->type.lanes == 1 || ilir_at(c->m, last)->i == 1 || ilir_report_fault(c, "rows whose words lie apart");
}

void ilir_check_rows(struct verification *c, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *matrix = find_matrix(c, s->rows.matrix);
	if (!matrix || !check_row(c, s->rows.first, matrix) || !check_row(c, s->rows.last, matrix))
		return;
	const struct ilir_node *first = ilir_at(c->m, s->rows.first), *last = ilir_at(c->m, s->rows.last);
	if (first->buffer.i != last->buffer.i)
		ilir_report_fault(c, "the first and the last row are of different buffers");
	else
		check_distance(c, s, matrix->dim[0].padded);
	if (s->kind == ILIR_SPILL && ilir_buffer_at(c->m, first->buffer)->kind != ILIR_REGISTER)
		ilir_report_fault(c, "a matrix register is spilled to '%s', which is no register", ilir_buffer_at(c->m, first->buffer)->name);
}

void ilir_check_dot(struct verification *c, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *sum = find_matrix(c, s->dot.sum), *a = find_matrix(c, s->dot.a),
				      *b = find_matrix(c, s->dot.b);
	if (!sum || !a || !b)
		return;
	bool known = s->dot.op == ILIR_DOT4 || s->dot.op == ILIR_DOT_BF16;
	if (!known || sum->dtype != (s->dot.op == ILIR_DOT4 ? ILIR_I32 : ILIR_F32) || a->dtype != ILIR_I32 || b->dtype != ILIR_I32)
		ilir_report_fault(c, "a product of matrix registers of other types than its operator's");
	if (s->dot.sum.i == s->dot.a.i || s->dot.sum.i == s->dot.b.i || s->dot.a.i == s->dot.b.i)
		ilir_report_fault(c, "a product of a matrix register and itself");
	if (sum->dim[0].padded != a->dim[0].padded || sum->dim[1].padded != b->dim[1].padded ||
	    a->dim[1].padded != b->dim[0].padded)
		ilir_report_fault(c, "a product of matrix registers whose shapes do not fit each other");
}
