/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/convert.h"
#include "bench/bench.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS (INT64_C(1) << 40)

enum { USUAL_SIZE = 256, MOST_AXES = 16, MOST_SIZES = sizeof((struct sizes){0}.at) / sizeof(int64_t) };

/* --- sizes --- */

static int dimension_of(const esp_model *m, const char *name, size_t length)
{
	for (int i = 0; esp_model_dimension(m, i); i++)
		if (strlen(esp_model_dimension(m, i)) == length &&
		    memcmp(esp_model_dimension(m, i), name, length) == 0)
			return i;
	return -1;
}

/* Refuses a size of no dimension, and says which dimensions there are. */
static bool refuse_size(const esp_model *m, const char *name, size_t length)
{
	char all[500] = "";
	size_t n = 0;
	for (int i = 0; esp_model_dimension(m, i) && n < sizeof all; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "; its dimensions are ", esp_model_dimension(m, i));
	return complain("the model has no dimension '%.*s'%s", (int)length, name, *all ? all : "; all its sizes are known");
}

bool sizes_has(const esp_model *m, const char *size)
{
	return dimension_of(m, size, strcspn(size, "=,")) >= 0;
}

bool sizes_read(struct sizes *s, const esp_model *m, const char *text)
{
	for (s->n = 0; esp_model_dimension(m, s->n); s->n++) {
		if (s->n == MOST_SIZES)
			return complain("models with more than %d dimensions are not timed", MOST_SIZES);
		s->at[s->n] = USUAL_SIZE;
	}
	while (text && *text) {
		size_t length = strcspn(text, "=,");
		int i = dimension_of(m, text, length);
		if (i < 0)
			return refuse_size(m, text, length);
		char *end = (char *)text + length;
		s->at[i] = *end == '=' ? strtol(end + 1, &end, 10) : 0;
		if (s->at[i] < 1 || s->at[i] > INT32_MAX || (*end && *end != ','))
			return complain("--sizes is DIMENSION=NUMBER,..., not '%s'", text);
		text = end + (*end == ',');
	}
	return true;
}

/* --- values --- */

struct param {
	const char *name;
	size_t rank;
	int64_t shape[MOST_AXES];
	esp_dtype dtype;
};

static bool param_at(const esp_model *m, const struct sizes *sizes, size_t i, struct param *p)
{
	p->dtype = esp_model_param_dtype(m, i);
	return (p->name = esp_model_param(m, i, sizes->at, p->shape, MOST_AXES, &p->rank));
}

/* Elements of a parameter; 0 when it has none, or too many for any memory. */
static int64_t elements_of(const struct param *p)
{
	int64_t n = 1;
	for (size_t d = 0; d < p->rank; d++)
		if (p->shape[d] < 1 || __builtin_mul_overflow(n, p->shape[d], &n) || n > MOST_ELEMENTS)
			return 0;
	return n;
}

/* The types of safetensors are ours in capitals. */
static void put_upper(const char *name, FILE *to)
{
	for (; *name; name++)
		fputc(toupper((unsigned char)*name), to);
}

static void write_header(const esp_model *m, const struct sizes *sizes, FILE *to)
{
	struct param p;
	int64_t begin = 0;
	for (size_t i = 0; param_at(m, sizes, i, &p); i++) {
		int64_t end = begin + elements_of(&p) * esp_dtype_size(p.dtype);
		fprintf(to, "%s\"%s\":{\"dtype\":\"", i ? "," : "{", p.name);
		put_upper(esp_dtype_name(p.dtype), to);
		fputs("\",\"shape\":[", to);
		for (size_t d = 0; d < p.rank; d++)
			fprintf(to, "%s%lld", d ? "," : "", (long long)p.shape[d]);
		fprintf(to, "],\"data_offsets\":[%lld,%lld]}", (long long)begin, (long long)end);
		begin = end;
	}
	fputs(begin ? "}" : "{}", to);
}

/* An integer of all values of one byte; a larger type has the same values, so that sums of products do not wrap. */
static int64_t draw_integer(esp_dtype dtype, struct random *r)
{
	int byte = random_below(r, 256);
	return dtype == ESP_BOOL ? byte & 1 : dtype == ESP_U8 ? byte : byte - 128;
}

/* Writes the lowest bytes of an integer, the lowest one first, as safetensors have them. */
static void write_integer(uint64_t value, size_t bytes, FILE *to)
{
	for (size_t i = 0; i < bytes; i++)
		fputc((int)(value >> 8 * i & 0xff), to);
}

static void write_float(float value, esp_dtype dtype, FILE *to)
{
	uint32_t bits = dtype == ESP_F32   ? bits_of_f32(value)
			: dtype == ESP_F16 ? f16_of_f32(value)
					   : bf16_of_f32(value);
	write_integer(bits, esp_dtype_size(dtype), to);
}

static bool is_float(esp_dtype dtype)
{
	return dtype == ESP_F32 || dtype == ESP_F16 || dtype == ESP_BF16;
}

/* Matrices are scaled so that their products with numbers between -1 and 1 stay about as large. */
static void write_values(const struct param *p, struct random *r, FILE *to)
{
	float scale = p->rank > 1 ? 1.7f / sqrtf(p->shape[p->rank - 1]) : 0.5f;
	for (int64_t n = elements_of(p); n > 0 && !ferror(to); n--)
		if (is_float(p->dtype))
			write_float(scale * random_float(r), p->dtype, to);
		else
			write_integer(draw_integer(p->dtype, r), esp_dtype_size(p->dtype), to);
}

static bool check_params(const esp_model *m, const struct sizes *sizes)
{
	struct param p;
	for (size_t i = 0; param_at(m, sizes, i, &p); i++)
		if (p.rank > MOST_AXES)
			return complain("'%s' has more than %d axes", p.name, MOST_AXES);
		else if (elements_of(&p) < 1)
			return complain("with these --sizes '%s' has no shape, or is too large", p.name);
	return true;
}

/* The header as text, which the caller frees; NULL when memory is out. */
static char *make_header(const esp_model *m, const struct sizes *sizes, size_t *length)
{
	char *header = NULL;
	FILE *text = open_memstream(&header, length);
	if (!text)
		return NULL;
	write_header(m, sizes, text);
	if (fclose(text) == 0)
		return header;
	free(header);
	return NULL;
}

bool weights_write(const esp_model *m, const struct sizes *sizes, struct random *r, FILE *to)
{
	size_t length;
	struct param p;
	if (!check_params(m, sizes))
		return false;
	char *header = make_header(m, sizes, &length);
	if (!header)
		return complain("no memory for the header of the weights");
	fwrite(&(uint64_t){length}, sizeof(uint64_t), 1, to);
	fwrite(header, length, 1, to);
	for (size_t i = 0; param_at(m, sizes, i, &p) && !ferror(to); i++)
		write_values(&p, r, to);
	free(header);
	return true;
}
