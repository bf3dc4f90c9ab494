/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0: a magic string, the
 * length of the header, the header as a literal of Python, the values. */
#include "io/write.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "values are little-endian in the file and in memory");

enum { ALIGNMENT = 64, PREFIX = 10 };

/* NumPy's name of a type; of bf16, which NumPy does not have, that of its bits. */
static void put_type(struct str *s, enum dtype dtype)
{
	static const char letters[] = {
	    [DTYPE_FLOAT] = 'f', [DTYPE_SIGNED] = 'i', [DTYPE_UNSIGNED] = 'u', [DTYPE_TRUTH] = 'b'};
	const struct dtype_traits *t = dtype_traits_of(dtype);
	str_printf(s, "%c%c%d", t->bytes == 1 ? '|' : '<', dtype == DTYPE_BF16 ? 'u' : letters[t->kind], t->bytes);
}

/* Blanks and a newline at the end align the values. */
static struct str header_of(struct arena *a, const struct io_tensor *t)
{
	struct str s = str_in(a);
	str_puts(&s, "{'descr': '");
	put_type(&s, t->dtype);
	str_puts(&s, "', 'fortran_order': False, 'shape': (");
	for (int i = 0; i < t->rank; i++)
		str_printf(&s, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
	str_puts(&s, t->rank == 1 ? ",), }" : "), }");
	while ((PREFIX + s.n + 1) % ALIGNMENT)
		str_puts(&s, " ");
	str_puts(&s, "\n");
	return s;
}

bool io_npy_write(struct arena *a, struct diags *diags, const char *path, const struct io_tensor *t)
{
	struct str header = header_of(a, t);
	unsigned char prefix[PREFIX] = "\x93NUMPY\x01";
	prefix[8] = (unsigned char)(header.n & 0xff);
	prefix[9] = (unsigned char)(header.n >> 8);
	struct io_piece piece[] = {
	    {prefix, sizeof prefix}, {header.text, (int64_t)header.n}, {t->values, io_tensor_bytes(t)}};
	return io_write_file(a, diags, path, piece, 3);
}
