/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reference values, of any form: what a file that opens says of its tensors holds together, and their values
 * can be read. */
#include "reference/reference.h"
#include "tests/fuzz/fuzz.h"
#include "tool.h"

#include <stdarg.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20 }; /* an archive may say of a member that it is larger than anything */

static int complaints;

bool(complain)(const char *format, ...)
{
	char text[8192];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	complaints++;
	return false;
}

static void check_shape(const struct fuzz *f, const struct reference_tensor *t)
{
	size_t elements = 1;
	for (size_t d = 0; d < t->rank; d++)
		elements *= t->shape[d];
	fuzz_check(f, elements == t->elements, "a tensor has the elements of its shape");
	fuzz_check(f, t->name && !strpbrk(t->name, "\n\33"), "a name can be shown");
}

/* Damage is found when values are read, and told. */
static void read_values(const struct fuzz *f, struct reference *r, struct reference_tensor *t)
{
	volatile double value;
	int before = complaints;
	if (reference_bytes(t) > MOST_BYTES)
		return;
	if (!reference_load(r, t)) {
		fuzz_check(f, complaints > before, "values that cannot be read are explained");
		return;
	}
	for (size_t i = 0; i < t->elements; i++)
		value = reference_is_integer(t) ? (double)reference_integer(t, i) : reference_value(t, i);
	(void)value;
}

/* Rows of the one tensor that a text holds. */
static void check_trees(const struct fuzz *f, const struct reference *r)
{
	const struct reference_tensor *t = r->tensor;
	fuzz_check(f, r->tensors == 1 && t->rank == 2 && r->trees, "a text is a matrix");
	for (size_t i = 0; i < r->trees; i++) {
		fuzz_check(f, (size_t)r->class[i] < t->shape[1], "a class is one of the columns");
		fuzz_check(f, !r->begin || r->begin[i] < r->begin[i + 1], "a tree has nodes");
	}
	fuzz_check(f, r->begin ? r->begin[r->trees] == t->shape[0] : r->trees == t->shape[0],
		   "trees are of all rows");
}

static bool read_reference(struct fuzz *f, const uint8_t *bytes, size_t n)
{
	struct reference r;
	complaints = 0;
	bool ok = reference_open(&r, fuzz_file(bytes, n));
	fuzz_check(f, ok == !complaints, "what is refused is explained, and nothing else");
	if (ok && reference_is_text(&r))
		check_trees(f, &r);
	for (size_t i = 0; ok && i < r.tensors; i++) {
		check_shape(f, &r.tensor[i]);
		read_values(f, &r, &r.tensor[i]);
	}
	reference_close(&r);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	return fuzz_run_once(read_reference, bytes, n);
}
