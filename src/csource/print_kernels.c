/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Kernels: a function of C for each, over a range of rows and all blocks of columns, upwards. */
#include "csource/writer.h"

#include "ilir/spelling.h"
#include "jit/place.h"

#include <inttypes.h>

static void print_block(struct csource_writer *, const struct ilir_stmt *);

/* A register may change with every statement, so each computes its values again, in a block of its own. */
static size_t begin_values(struct csource_writer *w)
{
	csource_block(w);
	return w->computed.n;
}

static void end_values(struct csource_writer *w, size_t mark)
{
	csource_forget(w, mark);
	csource_close(w);
}

/* --- statements --- */

static void print_loop(struct csource_writer *w, const struct ilir_stmt *s)
{
	size_t mark = begin_values(w);
	const char *var = csource_var_name(w, s->loop.var);
	csource_compute(w, s->loop.begin);
	csource_compute(w, s->loop.end);
	const char *begin = csource_value(w, s->loop.begin), *end = csource_value(w, s->loop.end);
	csource_open(w, "for (int64_t %s = %s; %s < %s; %s += %" PRId64 ")", var, begin, var, end, var, s->loop.step);
	csource_forget(w, mark);
	print_block(w, s->loop.body);
	csource_close(w);
	end_values(w, mark);
}

static void print_branch(struct csource_writer *w, const struct ilir_stmt *s)
{
	size_t mark = begin_values(w);
	csource_compute(w, s->branch.condition);
	csource_open(w, "if (%s)", csource_value(w, s->branch.condition));
	csource_forget(w, mark);
	print_block(w, s->branch.then);
	csource_close(w);
	if (s->branch.otherwise) {
		csource_open(w, "else");
		print_block(w, s->branch.otherwise);
		csource_close(w);
	}
	end_values(w, mark);
}

static void print_lanes(struct csource_writer *w, int lanes, const char *to, const char *value)
{
	if (lanes > 1)
		csource_open(w, "for (int l = 0; l < %d; l++)", lanes);
	csource_line(w, "%s = %s;", to, value);
	if (lanes > 1)
		csource_close(w);
}

static void print_let(struct csource_writer *w, const struct ilir_stmt *s)
{
	struct ilir_type t = ilir_type_of(w->m, s->let.value);
	const char *var = csource_var_name(w, s->let.var), *type = csource_type(t.dtype);
	if (t.lanes > 1)
		csource_line(w, "%s %s[%d];", type, var, t.lanes);
	else
		csource_line(w, "%s %s;", type, var);
	size_t mark = begin_values(w);
	csource_compute(w, s->let.value);
	print_lanes(w, t.lanes, t.lanes > 1 ? str_format(w->arena, "%s[l]", var) : var, csource_value(w, s->let.value));
	end_values(w, mark);
}

/* All lanes are computed before the first is stored: what is stored may be what was read. */
static void print_store(struct csource_writer *w, const struct ilir_stmt *s)
{
	int lanes = ilir_type_of(w->m, s->store.value).lanes;
	size_t mark = begin_values(w);
	csource_compute(w, s->store.value);
	const char *element = csource_element(w, s), *value = csource_value(w, s->store.value);
	print_lanes(w, lanes, element, value);
	end_values(w, mark);
}

/* A matrix register is an array of its rows. */
static void print_rows(struct csource_writer *w, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *matrix = ilir_buffer_at(w->m, s->rows.matrix);
	int rows = (int)matrix->dim[0].padded, words = (int)matrix->dim[1].padded;
	size_t mark = begin_values(w);
	const char *element = str_format(w->arena, "(&%s)[r * %" PRId64 "]", csource_word(w, s->rows.first), ilir_row_distance(w->m, s)),
		   *own = str_format(w->arena, "%s[r * %d + l]", csource_buffer_name(w, s->rows.matrix), words);
	csource_open(w, "for (int r = 0; r < %d; r++)", rows);
	csource_open(w, "for (int l = 0; l < %d; l++)", words);
	csource_line(w, "%s = %s;", s->kind == ILIR_FILL ? own : element, s->kind == ILIR_FILL ? element : own);
	csource_close(w);
	csource_close(w);
	end_values(w, mark);
}

/* The sum of the products of bf16 in half of each word is `half`; that of the other half is as it was, as a product of zeros of
 * opposite signs is added first, or last (add_bf16_block of base/convert.h). */
static void print_half(struct csource_writer *w, const char *dot, const char *half, const char *a, const char *b, bool upper)
{
	const char *mask = upper ? "0xffff0000" : "0x0000ffff", *zero = upper ? "0x00008000" : "0x80000000";
	csource_line(w, "%s = %s((int32_t)(((uint32_t)%s & %s) | %s), (int32_t)((uint32_t)%s & %s), %s);", half, dot, a, mask, zero, b,
		     mask, half);
}

static void print_dot(struct csource_writer *w, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *x = ilir_buffer_at(w->m, s->dot.a), *y = ilir_buffer_at(w->m, s->dot.b);
	int words = (int)x->dim[1].padded, columns = (int)y->dim[1].padded;
	bool floats = s->dot.op == ILIR_DOT_BF16;
	const char *dot = csource_function(w->arena, s->dot.op, ILIR_I32),
		   *sum = str_format(w->arena, "%s[r * %d + l]", csource_buffer_name(w, s->dot.sum), columns),
		   *a = str_format(w->arena, "%s[r * %d + k]", csource_buffer_name(w, s->dot.a), words),
		   *b = str_format(w->arena, "%s[k * %d + l]", csource_buffer_name(w, s->dot.b), columns);
	csource_open(w, "for (int r = 0; r < %d; r++)", (int)x->dim[0].padded);
	csource_open(w, "for (int l = 0; l < %d; l++)", columns);
	if (floats)
		csource_line(w, "float lower = 0, upper = 0;");
	csource_open(w, "for (int k = 0; k < %d; k++)", words);
	if (floats) {
		print_half(w, dot, "lower", a, b, false);
		print_half(w, dot, "upper", a, b, true);
	} else {
		csource_line(w, "%s = %s(%s, %s, %s);", sum, dot, a, b, sum);
	}
	csource_close(w);
	if (floats) /* denormal numbers are zeros */
		csource_line(w, "%s = %s(INT32_MIN | 0x8000, 0, %s(INT32_MIN | 0x8000, 0, %s) + %s(INT32_MIN | 0x8000, 0, lower + upper));",
			     sum, dot, dot, sum, dot);
	csource_close(w);
	csource_close(w);
}

/* A register is undefined until it is stored to; compilers that cannot see it warn unless it is set. */
static void print_register(struct csource_writer *w, ilir_buffer b)
{
	int64_t elements = jit_register_elements(ilir_buffer_at(w->m, b));
	if (!elements)
		w->problem = jit_register_problem;
	csource_line(w, "%s %s[%" PRId64 "] = {0};", csource_type(ilir_buffer_at(w->m, b)->dtype), csource_buffer_name(w, b),
		     elements);
}

static void print_statement(struct csource_writer *w, const struct ilir_stmt *s)
{
	switch (s->kind) {
	case ILIR_FOR:
		print_loop(w, s);
		break;
	case ILIR_IF:
		print_branch(w, s);
		break;
	case ILIR_LET:
		print_let(w, s);
		break;
	case ILIR_ALLOC:
		print_register(w, s->alloc);
		break;
	case ILIR_STORE:
		print_store(w, s);
		break;
	case ILIR_PREFETCH:
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		print_rows(w, s);
		break;
	case ILIR_DOT:
		print_dot(w, s);
		break;
	case ILIR_BARRIER:
	case ILIR_STEP:
		w->problem = "steps and barriers were not made kernels";
	}
}

static void print_block(struct csource_writer *w, const struct ilir_stmt *s)
{
	for (; s && !w->problem; s = s->next)
		print_statement(w, s);
}

/* --- kernels --- */


static void note_access(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	bool *at = context;
	if (ilir_is_prefetch(a))
		return;
	at[a->buffer.i] = true;
	at[ilir_buffer_at(m, a->buffer)->table.i] = true;
}

/* Names the arrays that the kernel uses; weights have theirs. */
static void print_bases(struct csource_writer *w, const struct ilir_kernel *k)
{
	bool *at = ARENA_ARRAY(w->arena, bool, w->m->buffers.n);
	ilir_visit_accesses(w->m, k->body, note_access, at);
	for (uint32_t i = 1; i < w->m->buffers.n; i++) {
		const struct ilir_buffer_decl *b = &w->m->buffers.at[i];
		const char *name = csource_buffer_name(w, (ilir_buffer){i});
		if (!at[i] || !ilir_traits_of(b))
			continue;
		const char *constant = ilir_holds_results(b) ? "" : "const ";
		if (b->kind == IMAGE_WEIGHT)
			csource_line(w, "%s%s *const %s = %s_%s;", constant, csource_stored_type(b), name, w->program->name, name);
		else
			csource_line(w, "%s%s *const %s = arrays->%s;", constant, csource_stored_type(b), name, name);
	}
}

void csource_print_kernel(struct csource_writer *w, int kernel)
{
	const struct ilir_kernel *k = &w->m->kernels.at[kernel];
	csource_line(w, "\n/* %s, of %s */", csource_identifier(w->arena, k->name), ilir_domain_word[k->domain]);
	csource_line(w, "static void kernel_%d(const struct arrays *arrays, int64_t begin, int64_t end)", kernel);
	csource_block(w);
	csource_line(w, "(void)arrays, (void)begin, (void)end;");
	print_bases(w, k);
	print_block(w, k->body);
	csource_close(w);
}
