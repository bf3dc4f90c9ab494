/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include "io/file.h"
#include "io/foreign.h"
#include "io/quantised.h"
#include "io/float16.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "values are little-endian in the file and in memory");

/* A tensor while its place in the file is being checked. */
struct entry {
	struct tensor_info info;
	int64_t begin, end;
};

/* A file that is being opened; `json` and the descriptor must be freed, the rest is in the arena. */
struct opening {
	struct arena *arena;
	struct diags *diags;
	const char *path;
	int fd;
	const char *bytes;    /* of a file in memory; NULL = read by the descriptor */
	int64_t header, data; /* length of the header, of the values */
	int64_t size, modified;
	const char *text;
	json_t *json;
	struct entry *entry;
	int n;
	struct io_pair *texts; /* the metadata, and their number */
	int n_texts;
};

#define AT(o) ((struct diag_at){.file = (o)->path})

static const char convert[] =
    "convert it to F32 before saving: tensor.float() in PyTorch, array.astype('f4') in NumPy";
static const char again[] = "write the file again with a safetensors library, or copy it again";

static bool report_no_memory(const struct opening *o)
{
	return diag_add(o->diags, DIAG_OUT_OF_MEMORY, AT(o), NULL, "no memory for the header of '%s'",
			o->path);
}

/* Reads from the file or from memory; the caller has checked that memory has so many bytes. */
static bool read_bytes(struct diags *diags, const char *path, int fd, const char *bytes, void *to, int64_t n,
		       int64_t offset)
{
	if (!bytes)
		return io_read_at(diags, path, fd, to, n, offset);
	memcpy(to, bytes + offset, n);
	return true;
}

/* --- other formats --- */

/* The hint may be a shell command, which gets the names of both files; bytes in memory have no file name. */
static bool refuse_foreign(const struct opening *o, const struct io_foreign *format)
{
	char hint[2048];
	bool plain = !o->bytes && !strchr(o->path, '\'') && strlen(o->path) < sizeof hint / 2;
	snprintf(hint, sizeof hint, format->command ? "%s '%s' weights.safetensors" : "%s", format->hint,
		 plain ? o->path : "FILE");
	return diag_add(o->diags, DIAG_WEIGHTS_FORMAT, AT(o), hint, "'%s' is %s; weights are read from safetensors files",
			o->path, format->what);
}

/* Called when the header makes no sense.  True after a diagnostic: the file is of another format, or cannot
 * be read. A header that begins with '{' is of no other format. */
static bool recognize_foreign(const struct opening *o)
{
	unsigned char bytes[IO_FOREIGN_BYTES];
	size_t n = o->size < IO_FOREIGN_BYTES ? o->size : IO_FOREIGN_BYTES;
	if (!read_bytes(o->diags, o->path, o->fd, o->bytes, bytes, n, 0))
		return true;
	const struct io_foreign *format = n > 8 && bytes[8] == '{' ? NULL : io_foreign_find(bytes, n);
	return format && !refuse_foreign(o, format);
}

/* --- the header --- */

static bool measure_header(struct opening *o)
{
	uint64_t header;
	if (!o->bytes && !io_stat_open(o->fd, &o->size, &o->modified))
		return diag_add(o->diags, DIAG_CANNOT_READ, AT(o), again, "cannot read '%s': %s", o->path,
				strerror(errno));
	if (o->size < (int64_t)sizeof header)
		return diag_add(o->diags, DIAG_BAD_WEIGHTS, AT(o), again,
				"'%s' has %lld bytes; the length of the header alone takes 8", o->path,
				(long long)o->size);
	if (!read_bytes(o->diags, o->path, o->fd, o->bytes, &header, sizeof header, 0))
		return false;
	if (header > IO_SAFETENSORS_HEADER_LIMIT || (int64_t)header > o->size - 8)
		return !recognize_foreign(o) &&
		       diag_add(o->diags, DIAG_BAD_WEIGHTS, AT(o), again,
				"by the first 8 bytes of '%s' its header has %llu bytes; the file has %lld, "
				"and the "
				"limit is %llu",
				o->path, (unsigned long long)header, (long long)o->size,
				(unsigned long long)IO_SAFETENSORS_HEADER_LIMIT);
	o->header = header;
	o->data = o->size - 8 - o->header;
	return true;
}

static bool read_header(struct opening *o)
{
	char *text = o->bytes ? NULL : arena_try(o->arena, o->header + 1, 1);
	if (!o->bytes && !text)
		return report_no_memory(o);
	o->text = o->bytes ? o->bytes + 8 : text;
	return o->bytes || io_read_at(o->diags, o->path, o->fd, text, o->header, 8);
}

/* Jansson itself rejects names that occur twice and those that contain NUL. */
static bool parse_header(struct opening *o)
{
	if (!read_header(o))
		return false;
	if (!o->header || o->text[0] != '{')
		return !recognize_foreign(o) &&
		       diag_add(o->diags, DIAG_BAD_WEIGHTS, AT(o), again,
				"the header of '%s' does not begin with '{'", o->path);
	json_error_t error;
	o->json = json_loadb(o->text, o->header, JSON_REJECT_DUPLICATES, &error);
	if (!o->json && json_error_code(&error) == json_error_out_of_memory)
		return report_no_memory(o);
	return o->json || diag_add(o->diags, DIAG_BAD_WEIGHTS, AT(o), again,
				   "the header of '%s' is not proper JSON: %s (byte %d)", o->path, error.text,
				   error.position + 8);
}

/* --- one tensor --- */

__attribute__((format(printf, 3, 4))) static bool bad_tensor(const struct opening *o, const char *name,
							     const char *format, ...)
{
	char what[300];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return diag_add(o->diags, DIAG_BAD_TENSOR, AT(o), again, "tensor '%.200s': %s", name, what);
}

const char *io_safetensors_type(enum dtype type)
{
	return dtype_traits_of(type)->safetensors;
}

static bool read_dtype(const struct opening *o, struct tensor_info *t, const json_t *value)
{
	const char *spelling = json_string_value(value);
	if (!spelling)
		return bad_tensor(o, t->name, "'dtype' must be a string");
	for (int i = 0; i < DTYPES; i++)
		if (strcmp(spelling, io_safetensors_type(i)) == 0)
			return t->dtype = i, true;
	return diag_add(o->diags, DIAG_UNKNOWN_DTYPE, AT(o), convert,
			"tensor '%.200s' has dtype '%.40s'; known are F32, F16, BF16, I8, U8, I16, I32, I64 and BOOL", t->name,
			spelling);
}

/* Reads the shape, and sets `*bytes` to the size of the tensor. */
static bool read_shape(const struct opening *o, struct tensor_info *t, const json_t *value, int64_t *bytes)
{
	if (!json_is_array(value))
		return bad_tensor(o, t->name, "'shape' must be a list of integers");
	if (json_array_size(value) > TENSOR_MAX_RANK)
		return bad_tensor(o, t->name, "it has %zu dimensions; at most %d are supported",
				  json_array_size(value), TENSOR_MAX_RANK);
	t->rank = json_array_size(value);
	*bytes = dtype_traits_of(t->dtype)->bytes;
	for (int i = 0; i < t->rank; i++) {
		const json_t *extent = json_array_get(value, i);
		t->shape[i] = json_integer_value(extent);
		if (!json_is_integer(extent) || t->shape[i] < 0)
			return bad_tensor(o, t->name, "dimension %d must be an integer, 0 or more", i);
		if (__builtin_mul_overflow(*bytes, t->shape[i], bytes))
			return bad_tensor(o, t->name, "its size does not fit 64 bits");
	}
	return true;
}

static bool read_offsets(const struct opening *o, struct entry *e, const json_t *value, int64_t bytes)
{
	const json_t *begin = json_array_get(value, 0), *end = json_array_get(value, 1);
	if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
		return bad_tensor(o, e->info.name, "'data_offsets' must be a list of two integers");
	e->begin = json_integer_value(begin);
	e->end = json_integer_value(end);
	if (e->begin < 0 || e->begin > e->end || e->end > o->data)
		return bad_tensor(o, e->info.name, "it lies at bytes %lld to %lld of %lld",
				  (long long)e->begin, (long long)e->end, (long long)o->data);
	if (e->end - e->begin != bytes)
		return bad_tensor(o, e->info.name, "its shape and dtype take %lld bytes, its place has %lld",
				  (long long)bytes, (long long)(e->end - e->begin));
	return true;
}

static bool read_entry(const struct opening *o, struct entry *e, const char *name, const json_t *value)
{
	int64_t bytes = 0;
	size_t length = strlen(name);
	char *copy = arena_try(o->arena, length + 1, 1);
	if (!copy)
		return report_no_memory(o);
	e->info.name = memcpy(copy, name, length);
	if (!length)
		return bad_tensor(o, name, "its name is empty");
	if (!json_is_object(value))
		return bad_tensor(o, name, "its description must be an object");
	return read_dtype(o, &e->info, json_object_get(value, "dtype")) &&
	       read_shape(o, &e->info, json_object_get(value, "shape"), &bytes) &&
	       read_offsets(o, e, json_object_get(value, "data_offsets"), bytes);
}

/* A copy in the arena; NULL when memory is out. */
static const char *copy_text(const struct opening *o, const char *text)
{
	size_t length = strlen(text);
	char *copy = arena_try(o->arena, length + 1, 1);
	return copy ? memcpy(copy, text, length) : NULL;
}

static bool read_metadata(struct opening *o, json_t *value)
{
	const char *key;
	json_t *text;
	bool ok = json_is_object(value);
	json_object_foreach(value, key, text) ok &= json_is_string(text);
	if (!ok)
		return diag_add(o->diags, DIAG_BAD_WEIGHTS, AT(o), again,
				"'__metadata__' of '%s' must be an object of strings", o->path);
	o->texts = arena_try(o->arena, json_object_size(value) + 1, sizeof *o->texts);
	ok = o->texts;
	json_object_foreach(value, key, text)
	{
		struct io_pair pair = {copy_text(o, key), copy_text(o, json_string_value(text))};
		ok = ok && pair.key && pair.value;
		if (ok)
			o->texts[o->n_texts++] = pair;
	}
	return ok || report_no_memory(o);
}

static bool read_entries(struct opening *o)
{
	o->entry = arena_try(o->arena, json_object_size(o->json) + 1, sizeof *o->entry);
	if (!o->entry)
		return report_no_memory(o);
	const char *name;
	json_t *value;
	json_object_foreach(o->json, name, value)
	{
		bool metadata = strcmp(name, "__metadata__") == 0;
		if (!(metadata ? read_metadata(o, value) : read_entry(o, &o->entry[o->n], name, value)))
			return false;
		o->n += !metadata;
	}
	return true;
}

/* --- all tensors together --- */

static int by_place(const void *a, const void *b)
{
	const struct entry *p = a, *q = b;
	if (p->begin != q->begin)
		return p->begin < q->begin ? -1 : 1;
	return (p->end > q->end) - (p->end < q->end);
}

static bool refuse_gap(const struct opening *o, int64_t begin, int64_t end, const char *place,
		       const char *name)
{
	return diag_add(o->diags, DIAG_TENSOR_GAP, AT(o), again,
			"bytes %lld to %lld of the values, %s%.200s, belong to no tensor", (long long)begin,
			(long long)end, place, name);
}

/* The format demands that the tensors cover the values exactly once. */
static bool check_cover(const struct opening *o)
{
	int64_t end = 0;
	qsort(o->entry, o->n, sizeof *o->entry, by_place);
	for (int i = 0; i < o->n; i++) {
		const struct entry *e = &o->entry[i];
		if (e->begin < end)
			return diag_add(
			    o->diags, DIAG_TENSOR_OVERLAP, AT(o), again,
			    "tensors '%.200s' and '%.200s' share bytes %lld to %lld of the values",
			    e[-1].info.name, e->info.name, (long long)e->begin,
			    (long long)(e->end < end ? e->end : end));
		if (e->begin > end)
			return refuse_gap(o, end, e->begin, "before tensor ", e->info.name);
		end = e->end;
	}
	if (end < o->data)
		return refuse_gap(o, end, o->data, o->n ? "after tensor " : "in a file without tensors",
				  o->n ? o->entry[o->n - 1].info.name : "");
	return true;
}

static struct io_safetensors *make_result(const struct opening *o)
{
	struct io_safetensors *w = arena_try(o->arena, 1, sizeof *w);
	struct tensor_info *tensor = arena_try(o->arena, o->n + 1, sizeof *tensor);
	int64_t *begin = arena_try(o->arena, o->n + 1, sizeof *begin);
	size_t length = strlen(o->path);
	char *path = arena_try(o->arena, length + 1, 1);
	if (!w || !tensor || !begin || !path)
		return report_no_memory(o), NULL;
	for (int i = 0; i < o->n; i++) {
		tensor[i] = o->entry[i].info;
		begin[i] = o->entry[i].begin;
	}
	*w = (struct io_safetensors){.path = memcpy(path, o->path, length),
				     .fd = o->fd,
				     .bytes = o->bytes,
				     .data = 8 + o->header,
				     .size = o->size,
				     .modified = o->modified,
				     .n = o->n,
				     .own = o->n,
				     .texts = o->n_texts,
				     .text = o->texts,
				     .tensor = tensor,
				     .begin = begin};
	return w;
}

static struct io_safetensors *read_tensors(struct opening *o)
{
	bool ok = measure_header(o) && parse_header(o) && read_entries(o) && check_cover(o);
	struct io_safetensors *w = ok ? make_result(o) : NULL;
	json_decref(o->json);
	return w;
}

struct io_safetensors *io_safetensors_open(struct arena *arena, struct diags *diags, const char *path)
{
	struct opening o = {.arena = arena, .diags = diags, .path = path, .fd = io_open_regular(diags, path)};
	struct io_safetensors *w = o.fd < 0 ? NULL : read_tensors(&o);
	if (o.fd >= 0 && !w)
		close(o.fd);
	return w;
}

struct io_safetensors *io_safetensors_open_memory(struct arena *arena, struct diags *diags, const char *name,
						  const void *bytes, int64_t n)
{
	struct opening o = {
	    .arena = arena, .diags = diags, .path = name, .fd = -1, .bytes = bytes, .size = n};
	return read_tensors(&o);
}

void io_safetensors_close(struct io_safetensors *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->bytes = NULL;
	w->elements = NULL;
}

int io_safetensors_find(const struct io_safetensors *w, const char *name)
{
	for (int i = 0; i < w->n; i++)
		if (strcmp(w->tensor[i].name, name) == 0)
			return i;
	return -1;
}

/* --- values --- */

/* Whether the file is unchanged since its header was checked; false after a diagnostic. */
static bool check_unchanged(const struct io_safetensors *w, struct diags *diags)
{
	int64_t size, modified;
	return w->bytes || w->elements ||
	       (io_stat_open(w->fd, &size, &modified) && size == w->size && modified == w->modified) ||
	       diag_add(
		   diags, DIAG_CANNOT_READ, (struct diag_at){.file = w->path},
		   "replace files that are in use by renaming, not by writing into them, and open it again",
		   "'%s' was written to while in use", w->path);
}

/* The narrow elements stand at the end of the space that the wide ones fill, so that none is overwritten
 * before it is read. */
static void widen_integers(enum dtype from, const void *raw, enum dtype to, void *at, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		int64_t x = from == DTYPE_I8	? ((const int8_t *)raw)[i]
			    : from == DTYPE_U8	? ((const uint8_t *)raw)[i]
			    : from == DTYPE_I16 ? ((const int16_t *)raw)[i]
						: ((const int32_t *)raw)[i];
		if (to == DTYPE_I16)
			((int16_t *)at)[i] = (int16_t)x;
		else if (to == DTYPE_I32)
			((int32_t *)at)[i] = (int32_t)x;
		else
			((int64_t *)at)[i] = x;
	}
}

static void widen_elements(enum dtype from, const void *raw, enum dtype to, void *at, int64_t count)
{
	if (from == DTYPE_F16)
		io_widen_f16(raw, at, count);
	else if (from == DTYPE_BF16)
		io_widen_bf16(raw, at, count);
	else if (from != to)
		widen_integers(from, raw, to, at, count);
}

bool io_safetensors_read_f32(const struct io_safetensors *w, struct diags *diags, int i, int64_t first,
			     int64_t count, float *to)
{
	return io_safetensors_read(w, diags, i, first, count, DTYPE_F32, to);
}

static bool read_elements(const struct io_safetensors *w, struct diags *diags, int i, int64_t begin, int64_t bytes, void *to)
{
	if (!w->elements)
		return read_bytes(diags, w->path, w->fd, w->bytes, to, bytes, w->data + w->begin[i] + begin);
	memcpy(to, (const char *)w->elements[i] + begin, bytes);
	return true;
}

bool io_safetensors_read(const struct io_safetensors *w, struct diags *diags, int i, int64_t first, int64_t count,
			 enum dtype as, void *to)
{
	struct diag_at at = {.file = w->path};
	bool closed = w->fd < 0 && !w->bytes && !w->elements;
	if (i < 0 || i >= w->n || closed)
		return diag_add(diags, DIAG_BAD_ARGUMENT, at, NULL,
				closed ? "'%s' is closed" : "'%s' has no tensor %d", w->path, i);
	const struct tensor_info *t = &w->tensor[i];
	bool scaled = w->scale && w->scale[i].at;
	int64_t elements = tensor_elements(t), size = scaled ? 1 : dtype_traits_of(t->dtype)->bytes;
	if (!dtype_widens(t->dtype, as))
		return diag_add(diags, DIAG_UNKNOWN_DTYPE, at, convert, "tensor '%s' has dtype '%s', which is not read as %s",
				t->name, io_safetensors_type(t->dtype), dtype_traits_of(as)->spelling);
	if (first < 0 || count < 0 || count > elements - first)
		return diag_add(diags, DIAG_BAD_ARGUMENT, at, NULL,
				"%lld values from value %lld on are wanted of tensor '%s', which has %lld",
				(long long)count, (long long)first, t->name, (long long)elements);
	if (!count)
		return true;
	char *raw = (char *)to + count * (dtype_traits_of(as)->bytes - size);
	if (!read_elements(w, diags, i, first * size, count * size, raw) || !check_unchanged(w, diags))
		return false;
	if (scaled)
		io_widen_quantised(w, i, first, count, (const int8_t *)raw, to);
	else if (t->dtype != as)
		widen_elements(t->dtype, raw, as, to, count);
	return true;
}
