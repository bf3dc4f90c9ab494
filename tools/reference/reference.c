/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "reference/reference.h"

#include "tool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unzip.h>

/* --- types --- */

static double read_f16(const void *p)
{
	uint16_t bits;
	memcpy(&bits, p, sizeof bits);
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double size = exponent == 31 ? (fraction ? NAN : INFINITY)
		      : exponent     ? ldexp(fraction + 1024, exponent - 25)
				     : ldexp(fraction, -24);
	return bits >> 15 ? -size : size;
}

static double read_bf16(const void *p)
{
	uint16_t bits;
	memcpy(&bits, p, sizeof bits);
	uint32_t wide = (uint32_t)bits << 16;
	float value;
	memcpy(&value, &wide, sizeof value);
	return value;
}

static double read_f32(const void *p)
{
	float value;
	memcpy(&value, p, sizeof value);
	return value;
}

static double read_f64(const void *p)
{
	double value;
	memcpy(&value, p, sizeof value);
	return value;
}

static int64_t integer_i32(const void *p)
{
	int32_t value;
	memcpy(&value, p, sizeof value);
	return value;
}

static int64_t integer_i64(const void *p)
{
	int64_t value;
	memcpy(&value, p, sizeof value);
	return value;
}

static double read_i32(const void *p)
{
	return (double)integer_i32(p);
}

static double read_i64(const void *p)
{
	return (double)integer_i64(p);
}

static int64_t integer_i8(const void *p)
{
	return *(const int8_t *)p;
}

static int64_t integer_u8(const void *p)
{
	return *(const uint8_t *)p;
}

static int64_t integer_i16(const void *p)
{
	int16_t value;
	memcpy(&value, p, sizeof value);
	return value;
}

static double read_i8(const void *p)
{
	return (double)integer_i8(p);
}

static double read_u8(const void *p)
{
	return (double)integer_u8(p);
}

static double read_i16(const void *p)
{
	return (double)integer_i16(p);
}

/* Spellings of NumPy and of safetensors; NumPy has no bf16, and of safetensors not all are compared. */
static const struct {
	const char *npy, *safetensors;
	size_t bytes;
	double (*read)(const void *);
	int64_t (*integer)(const void *);
} types[REFERENCE_TYPES] = {
    [REFERENCE_F16] = {"<f2", "F16", 2, read_f16, NULL},
    [REFERENCE_BF16] = {"", "BF16", 2, read_bf16, NULL},
    [REFERENCE_F32] = {"<f4", "F32", 4, read_f32, NULL},
    [REFERENCE_F64] = {"<f8", "F64", 8, read_f64, NULL},
    [REFERENCE_I32] = {"<i4", "I32", 4, read_i32, integer_i32},
    [REFERENCE_I64] = {"<i8", "I64", 8, read_i64, integer_i64},
    [REFERENCE_I8] = {"|i1", "", 1, read_i8, integer_i8},
    [REFERENCE_U8] = {"|u1", "", 1, read_u8, integer_u8},
    [REFERENCE_I16] = {"<i2", "", 2, read_i16, integer_i16},
    [REFERENCE_BOOL] = {"|b1", "", 1, read_u8, integer_u8},
};

bool reference_find_type(const char *spelling, enum reference_type *type)
{
	for (int i = 0; *spelling && i < REFERENCE_TYPES; i++)
		if (strcmp(types[i].npy, spelling) == 0 || strcmp(types[i].safetensors, spelling) == 0) {
			*type = i;
			return true;
		}
	return false;
}

const char *reference_type_name(enum reference_type type)
{
	return types[type].npy;
}

double reference_value(const struct reference_tensor *t, size_t i)
{
	return types[t->type].read((const char *)t->values + i * types[t->type].bytes);
}

bool reference_is_integer(const struct reference_tensor *t)
{
	return types[t->type].integer;
}

int64_t reference_integer(const struct reference_tensor *t, size_t i)
{
	return types[t->type].integer((const char *)t->values + i * types[t->type].bytes);
}

/* --- tensors --- */

void reference_clean(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

struct reference_tensor *reference_add(struct reference *r, const char *name)
{
	struct reference_tensor *grown = realloc(r->tensor, (r->tensors + 1) * sizeof *grown);
	char *copy = strdup(name);
	if (grown)
		r->tensor = grown;
	if (!grown || !copy) {
		free(copy);
		complain("%s: no memory for the name of a tensor", r->path);
		return NULL;
	}
	reference_clean(copy);
	struct reference_tensor *t = &r->tensor[r->tensors++];
	*t = (struct reference_tensor){.name = copy, .elements = 1};
	return t;
}

/* Refuses so many elements that their bytes overflow, whatever the type. */
bool reference_add_dimension(struct reference_tensor *t, uint64_t extent)
{
	size_t bytes;
	if (t->rank == REFERENCE_RANK || extent > PTRDIFF_MAX)
		return false;
	t->shape[t->rank++] = extent;
	return !__builtin_mul_overflow(t->elements, (size_t)extent, &t->elements) &&
	       !__builtin_mul_overflow(t->elements, sizeof(double), &bytes) && bytes <= PTRDIFF_MAX;
}

size_t reference_bytes(const struct reference_tensor *t)
{
	return t->elements * types[t->type].bytes;
}

/* --- values --- */

bool reference_read_at(struct reference *r, uint64_t at, void *to, size_t bytes)
{
	if (fseeko(r->file, (off_t)at, SEEK_SET) != 0)
		return complain("%s: cannot read it: %s", r->path, strerror(errno));
	errno = 0;
	if (fread(to, 1, bytes, r->file) == bytes)
		return true;
	return complain("%s: cannot read %zu bytes from byte %llu on: %s", r->path, bytes,
			(unsigned long long)at, errno ? strerror(errno) : "the file ends before");
}

/* Copies values from Fortran order (the first index runs fastest) to C order. */
static void transpose_values(const struct reference_tensor *t, const char *from, char *to)
{
	size_t index[REFERENCE_RANK] = {0}, size = types[t->type].bytes;
	for (size_t i = 0; i < t->elements; i++) {
		size_t place = 0;
		for (size_t d = t->rank; d-- > 0;)
			place = place * t->shape[d] + index[d];
		memcpy(to + i * size, from + place * size, size);
		for (size_t d = t->rank; d-- > 0 && ++index[d] == t->shape[d];)
			index[d] = 0;
	}
}

static bool put_in_order(const struct reference *r, struct reference_tensor *t)
{
	void *ordered = malloc(reference_bytes(t) + 1);
	if (!ordered)
		return complain("%s: no memory for '%s'", r->path, t->name);
	transpose_values(t, t->values, ordered);
	free(t->values);
	t->values = ordered;
	return true;
}

bool reference_load(struct reference *r, struct reference_tensor *t)
{
	size_t bytes = reference_bytes(t);
	if (t->values)
		return true;
	t->values = malloc(bytes + 1);
	if (!t->values)
		return complain("%s: no memory for the %zu bytes of '%s'", r->path, bytes, t->name);
	return r->form->load(r, t, t->values, bytes) && (!t->fortran || put_in_order(r, t));
}

/* --- files --- */

static const struct reference_form *const forms[] = {
    &reference_npz, &reference_npy, &reference_safetensors, &reference_nodes, &reference_roots,
};

static bool recognize_form(struct reference *r)
{
	unsigned char bytes[16] = {0};
	size_t n = fread(bytes, 1, sizeof bytes, r->file);
	if ((!n && ferror(r->file)) || fseek(r->file, 0, SEEK_SET) != 0)
		return complain("cannot read '%s': %s", r->path, strerror(errno));
	for (size_t i = 0; i < sizeof forms / sizeof *forms && !r->form; i++)
		if (forms[i]->begins(bytes))
			r->form = forms[i];
	return r->form ||
	       complain(
		   "%s: this is no reference: expected an .npz, .npy or safetensors file, lines that "
		   "begin with 'tree', or lines of a label, a class and numbers",
		   r->path);
}

/* Opens a regular file: others cannot be read twice. */
static bool open_file(struct reference *r)
{
	struct stat s;
	r->file = fopen(r->path, "rbe");
	if (!r->file || fstat(fileno(r->file), &s) != 0)
		return complain("cannot read '%s': %s", r->path, strerror(errno));
	if (!S_ISREG(s.st_mode))
		return complain("cannot read '%s': a reference must be a regular file", r->path);
	r->size = s.st_size;
	return true;
}

bool reference_open(struct reference *r, const char *path)
{
	*r = (struct reference){.path = path};
	return open_file(r) && recognize_form(r) && r->form->open(r);
}

const char *reference_form_name(const struct reference *r)
{
	return r->form->name;
}

bool reference_is_text(const struct reference *r)
{
	return r->form->text;
}

void reference_close(struct reference *r)
{
	for (size_t i = 0; i < r->tensors; i++) {
		free(r->tensor[i].name);
		free(r->tensor[i].values);
	}
	free(r->tensor);
	free(r->begin);
	free(r->root);
	free(r->class);
	if (r->archive)
		unzClose(r->archive);
	if (r->file)
		fclose(r->file);
	*r = (struct reference){0};
}
