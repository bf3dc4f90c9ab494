/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Tensors of the protocol: {"name", "shape", "datatype", "data"}.  Members come in any order, so data is
 * passed at first and read when the rest is known. */
#include "tensor.h"

#include "base/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the object --- */

static bool scan_shape(struct scan *s, struct tensor *t, struct infer_failure *f)
{
	bool first = true;
	struct number n;
	if (!scan_expect(s, '['))
		return false;
	for (t->rank = 0; scan_more(s, ']', &first); t->rank++) {
		if (t->rank == AXES)
			return refuse(f, BAD_REQUEST, "tensor '%.*s': its shape has more than %d axes",
				      SHOW(t->name), AXES);
		if (!scan_number(s, &n))
			return false;
		if (!number_integer(&n, 0, INT32_MAX, &t->shape[t->rank]))
			return refuse(f, BAD_REQUEST,
				      "tensor '%.*s': shape[%d] is no whole number from 0 to 2147483647",
				      SHOW(t->name), t->rank);
	}
	return !s->fault;
}

static bool scan_data(struct scan *s, struct tensor *t)
{
	if (scan_peek(s) != '[')
		return scan_fault(s, s->at, "data is a list: a '[' is missing here");
	t->data = s->at;
	bool ok = scan_pass_list(s);
	t->end = s->at;
	return ok;
}

/* A member that is known comes once. */
static bool scan_member(struct scan *s, struct span key, struct tensor *t, struct infer_failure *f)
{
	bool again = (span_is(key, "name") && t->name.text) ||
		     (span_is(key, "datatype") && t->datatype.text) ||
		     (span_is(key, "shape") && t->rank >= 0) || (span_is(key, "data") && t->data);
	if (again)
		return scan_fault(s, key.text, "a tensor has this member a second time");
	if (span_is(key, "name"))
		return scan_string(s, &t->name);
	if (span_is(key, "datatype"))
		return scan_string(s, &t->datatype);
	if (span_is(key, "shape"))
		return scan_shape(s, t, f);
	return span_is(key, "data") ? scan_data(s, t) : scan_skip(s);
}

bool tensor_scan(struct scan *s, struct tensor *t, struct infer_failure *f)
{
	struct span key;
	bool first = true;
	*t = (struct tensor){.rank = -1};
	if (!scan_expect(s, '{'))
		return false;
	while (scan_key(s, &key, &first))
		if (!scan_member(s, key, t, f))
			return false;
	const char *lacks = !t->name.text	? "name"
			    : t->rank < 0	? "shape"
			    : !t->datatype.text ? "datatype"
			    : !t->data		? "data"
						: NULL;
	if (s->fault || !lacks)
		return !s->fault;
	struct span name = t->name.text ? t->name : (struct span){.text = ""};
	return refuse(f, BAD_REQUEST,
		      "tensor '%.*s' has no \"%s\": a tensor is {\"name\", \"shape\", \"datatype\", "
		      "\"data\"}, its data a list",
		      SHOW(name), lacks);
}

/* --- checks --- */

/* Writes a shape, behind the number of the rows or a word for it. */
static void show_shape(char *to, size_t capacity, int64_t rows, const int64_t *shape, size_t rank)
{
	int n = rows >= 0 ? snprintf(to, capacity, "[%lld", (long long)rows)
			  : snprintf(to, capacity, rows == NO_ROWS ? "[" : "[rows");
	for (size_t i = 0; i < rank && (size_t)n < capacity; i++)
		n += snprintf(to + n, capacity - n, "%s%lld", i || rows != NO_ROWS ? ", " : "", (long long)shape[i]);
	if ((size_t)n < capacity)
		snprintf(to + n, capacity - n, "]");
}

bool tensor_check_shape(const struct tensor *t, int64_t rows, const size_t *shape, size_t rank,
			struct infer_failure *f)
{
	char wanted[200], has[200];
	int64_t axis[AXES];
	int before = rows != NO_ROWS;
	bool same = t->rank == (int)rank + before && (rows < 0 || t->shape[0] == rows);
	for (size_t i = 0; i < rank; i++) {
		axis[i] = (int64_t)shape[i];
		same = same && t->shape[i + before] == axis[i];
	}
	if (same)
		return true;
	show_shape(wanted, sizeof wanted, rows, axis, rank);
	show_shape(has, sizeof has, NO_ROWS, t->shape, t->rank < 0 ? 0 : t->rank);
	return refuse(f, BAD_REQUEST, "tensor '%.*s' has the shape %s: it must be %s", SHOW(t->name), has, wanted);
}

bool tensor_check_type(const struct tensor *t, esp_dtype dtype, bool index, struct infer_failure *f)
{
	if (span_is(t->datatype, datatype_name(dtype)) || (index && span_is(t->datatype, "INT64")))
		return true;
	return refuse(f, BAD_REQUEST, "tensor '%.*s' has the datatype '%.*s': it must be %s%s", SHOW(t->name),
		      SHOW(t->datatype), datatype_name(dtype), index ? " or INT64" : "");
}

/* --- elements --- */

struct elements {
	struct scan scan;
	const struct tensor *tensor;
	struct infer_failure *failure;
	size_t n, count; /* elements so far; in all, as the shape says */
	esp_dtype dtype;
	void *to;
	bool (*take)(struct elements *);
	bool (*take_string)(void *user, size_t i, struct span);
	void *user;
};

static bool refuse_element(const struct elements *x, const char *what)
{
	return refuse(x->failure, BAD_REQUEST, "tensor '%.*s', element %zu: %s", SHOW(x->tensor->name), x->n,
		      what);
}

static bool refuse_count(const struct elements *x, const char *what)
{
	return refuse(x->failure, BAD_REQUEST,
		      "tensor '%.*s': its data has %s than the %zu elements of its shape",
		      SHOW(x->tensor->name), what, x->count);
}

static bool take_float(struct elements *x)
{
	struct number n;
	float v;
	if (!scan_number(&x->scan, &n))
		return false;
	bool fits = number_float(&n, &v);
	uint16_t half = x->dtype == ESP_F16 ? f16_of_f32(v) : bf16_of_f32(v);
	if (!fits || (x->dtype == ESP_F16 && (half & 0x7c00) == 0x7c00) ||
	    (x->dtype == ESP_BF16 && (half & 0x7f80) == 0x7f80)) {
		char what[100];
		snprintf(what, sizeof what, "the number is too large for %s", datatype_name(x->dtype));
		return refuse_element(x, what);
	}
	if (x->dtype == ESP_F32)
		((float *)x->to)[x->n] = v;
	else
		((uint16_t *)x->to)[x->n] = half;
	return true;
}

/* Of the integers, by esp_dtype. */
static const struct {
	int64_t low, high;
} ranges[] = {
    [ESP_I8] = {INT8_MIN, INT8_MAX},	[ESP_U8] = {0, UINT8_MAX},
    [ESP_I16] = {INT16_MIN, INT16_MAX}, [ESP_I32] = {INT32_MIN, INT32_MAX},
    [ESP_I64] = {INT64_MIN, INT64_MAX},
};

static void store_integer(struct elements *x, int64_t v)
{
	if (x->dtype == ESP_I64)
		((int64_t *)x->to)[x->n] = v;
	else if (x->dtype == ESP_I32)
		((int32_t *)x->to)[x->n] = (int32_t)v;
	else if (x->dtype == ESP_I16)
		((int16_t *)x->to)[x->n] = (int16_t)v;
	else
		((uint8_t *)x->to)[x->n] = (uint8_t)v;
}

static bool take_integer(struct elements *x)
{
	struct number n;
	int64_t v;
	if (!scan_number(&x->scan, &n))
		return false;
	if (!number_integer(&n, ranges[x->dtype].low, ranges[x->dtype].high, &v)) {
		char what[100];
		snprintf(what, sizeof what, "a whole number from %lld to %lld must be here",
			 (long long)ranges[x->dtype].low, (long long)ranges[x->dtype].high);
		return refuse_element(x, what);
	}
	store_integer(x, v);
	return true;
}

static bool take_truth(struct elements *x)
{
	bool v;
	struct number n;
	int64_t number;
	char c = scan_peek(&x->scan);
	if (c == '0' || c == '1') {
		if (!scan_number(&x->scan, &n) || !number_integer(&n, 0, 1, &number))
			return refuse_element(x, "true or false must be here");
		v = number;
	} else if (!scan_truth(&x->scan, &v)) {
		return false;
	}
	((uint8_t *)x->to)[x->n] = v;
	return true;
}

static bool take_text(struct elements *x)
{
	struct span s;
	return scan_string(&x->scan, &s) && x->take_string(x->user, x->n, s);
}

/* --- lists --- */

/* Data is one list of all elements, or has a level of lists for each axis. */
struct nest {
	size_t length[AXES + 1]; /* of the list that is open at each depth, from 1 */
	int depth, rank;
	bool flat; /* an element stands in the outermost list */
	bool deep; /* a list does */
};

static bool close_list(const struct elements *x, struct nest *d)
{
	int depth = d->depth--;
	size_t length = d->length[depth];
	if (depth == 1 && !d->deep) /* flat, or empty */
		return x->n == x->count || refuse_count(x, "fewer elements");
	return (int64_t)length == x->tensor->shape[depth - 1] ||
	       refuse(x->failure, BAD_REQUEST,
		      "tensor '%.*s': a list of its data ends before element %zu with %zu items, and "
		      "shape[%d] is %lld",
		      SHOW(x->tensor->name), x->n, length, depth - 1, (long long)x->tensor->shape[depth - 1]);
}

static bool open_list(struct elements *x, struct nest *d)
{
	if (d->depth == d->rank || d->flat)
		return refuse_element(
		    x,
		    "a list stands here: data is one list of all elements, or has a level of lists for "
		    "each axis of the shape");
	x->scan.at++;
	d->deep |= d->depth == 1;
	d->length[++d->depth] = 0;
	return true;
}

static bool take_element(struct elements *x, struct nest *d)
{
	if (d->depth == 1 && d->rank != 1 && d->deep)
		return refuse_element(x, "an element stands beside lists");
	if (d->depth != 1 && d->depth != d->rank)
		return refuse_element(x, "an element stands where the shape has lists");
	d->flat |= d->depth == 1;
	if (x->n == x->count)
		return refuse_count(x, "more elements");
	if (!x->take(x))
		return false;
	x->n++;
	return true;
}

static bool read_lists(struct elements *x)
{
	struct nest d = {.depth = 1, .rank = x->tensor->rank};
	bool first = true;
	x->scan.at++;
	while (d.depth) {
		if (!scan_more(&x->scan, ']', &first)) {
			if (x->scan.fault || !close_list(x, &d))
				return false;
			continue;
		}
		d.length[d.depth]++;
		first = scan_peek(&x->scan) == '[';
		if (!(first ? open_list(x, &d) : take_element(x, &d)))
			return false;
	}
	return true;
}

/* Product of the shape; SIZE_MAX when there are more than there could be in the data. */
static size_t count_elements(const struct tensor *t)
{
	size_t count = 1, most = (size_t)(t->end - t->data);
	bool none = false;
	for (int i = 0; i < t->rank; i++)
		none |= t->shape[i] == 0;
	for (int i = 0; i < t->rank && !none; i++)
		if (__builtin_mul_overflow(count, (size_t)t->shape[i], &count) || count > most)
			return SIZE_MAX;
	return none ? 0 : count;
}

static bool read_elements(struct elements *x)
{
	struct scan *s = &x->scan;
	*s = (struct scan){.at = x->tensor->data, .end = x->tensor->end};
	if (read_lists(x))
		return true;
	return s->fault ? refuse_element(x, s->fault) : false;
}

static bool refuse_short(const struct tensor *t, struct infer_failure *f)
{
	return refuse(f, BAD_REQUEST, "tensor '%.*s': its data has fewer elements than its shape",
		      SHOW(t->name));
}

void *tensor_read(const struct tensor *t, esp_dtype dtype, struct infer_failure *f)
{
	struct elements x = {.tensor = t, .failure = f, .dtype = dtype, .count = count_elements(t)};
	bool floats = dtype == ESP_F32 || dtype == ESP_F16 || dtype == ESP_BF16;
	x.take = floats ? take_float : dtype == ESP_BOOL ? take_truth : take_integer;
	if (x.count == SIZE_MAX) {
		refuse_short(t, f);
		return NULL;
	}
	x.to = x.count < SIZE_MAX / sizeof(int64_t) ? malloc((x.count + 1) * esp_dtype_size(dtype)) : NULL;
	if (!x.to)
		refuse_memory(f);
	if (x.to && read_elements(&x))
		return x.to;
	free(x.to);
	return NULL;
}

bool tensor_read_strings(const struct tensor *t, bool (*take)(void *user, size_t i, struct span), void *user,
			 struct infer_failure *f)
{
	struct elements x = {.tensor = t,
			     .failure = f,
			     .count = count_elements(t),
			     .take = take_text,
			     .take_string = take,
			     .user = user};
	return x.count == SIZE_MAX ? refuse_short(t, f) : read_elements(&x);
}
