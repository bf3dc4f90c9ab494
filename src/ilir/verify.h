/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the verifier: where it is, and the rules of expressions, which statements have. */
#ifndef ESPALIER_ILIR_VERIFY_H
#define ESPALIER_ILIR_VERIFY_H

#include "ilir/spelling.h"

struct verification {
	const struct ilir_module *m;
	struct diags *diags;
	const char *pass;
	unsigned properties;
	int faults;
	/* the current position */
	const struct ilir_kernel *kernel;
	const struct ilir_stmt *stmt;
	bool in_step;
	const struct ilir_stmt *matrices; /* the matrix loop around it; NULL = there is none */
	/* by id */
	bool *var_defined, *var_visible, *register_defined, *register_visible;
	const struct ilir_stmt **loop_of; /* the loop of a variable; NULL for a let's */
};

/* Reports a violated rule and the current statement; returns false. */
__attribute__((format(printf, 2, 3))) bool ilir_report_fault(struct verification *c, const char *format, ...);

/* Whether an expression is an integer constant, or a vector of one; sets *value if so. */
bool ilir_get_constant(const struct ilir_module *m, ilir_expr e, int64_t *value);

/* Checks that a buffer may be used by the current statement; false after a fault. */
bool ilir_check_use(struct verification *c, ilir_buffer b);

/* Checks the n indices of an access to a buffer; false after a fault. */
bool ilir_check_indices(struct verification *c, ilir_buffer buffer, const ilir_expr *index, int n);

/* Checks an expression of a statement, and all below it; false after faults. */
bool ilir_check_root(struct verification *c, ilir_expr e);

/* --- verify_matrices.c: report the faults of --- */

/* a matrix loop itself; */
void ilir_check_matrix_loop(struct verification *c, const struct ilir_stmt *loop);
/* what ends a level, or lets callers choose iterations, where it stands; */
void ilir_check_level(struct verification *c, const char *what);
/* the matrix register that the current statement allocates; */
void ilir_check_matrix(struct verification *c, const struct ilir_buffer_decl *b);
/* a FILL or SPILL; */
void ilir_check_rows(struct verification *c, const struct ilir_stmt *s);
/* a DOT. */
void ilir_check_dot(struct verification *c, const struct ilir_stmt *s);

#endif
