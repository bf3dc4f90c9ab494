/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/quantised.h"

#include "base/map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char again[] = "quantise the weights again: espalier quantise";

struct completing {
	struct arena *arena;
	struct diags *diags;
	struct io_safetensors *file;
	struct io_quantised q;
	struct io_scale *scale; /* by tensor */
	bool *extra;		/* by tensor: a scale or a bound */
	struct map number;	/* of a tensor, by its name */
};

__attribute__((format(printf, 2, 3))) static bool refuse(const struct completing *c, const char *format, ...)
{
	char what[300];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return diag_add(c->diags, DIAG_BAD_QUANTISED, (struct diag_at){.file = c->file->path}, again,
			"the quantised weights '%.200s' are damaged: %s", c->file->path, what);
}

/* --- metadata --- */

static const char *find_text(const struct io_safetensors *w, const char *key)
{
	for (int i = 0; i < w->texts; i++)
		if (strcmp(w->text[i].key, key) == 0)
			return w->text[i].value;
	return NULL;
}

static bool read_texts(struct completing *c)
{
	const char *version = find_text(c->file, IO_QUANTISED_KEY);
	const struct {
		const char *key, **to;
	} texts[] = {{"precision", &c->q.precision}, {"math", &c->q.math},   {"assume", &c->q.assume},
		     {"rules", &c->q.rules},	     {"model", &c->q.model}, {"kept", &c->q.kept}};
	if (strcmp(version, IO_QUANTISED_VERSION) != 0)
		return refuse(c, "the metadata say '%.40s', and '" IO_QUANTISED_VERSION "' is known",
			      version);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (!(*texts[i].to = find_text(c->file, texts[i].key)))
			return refuse(c, "the metadata lack '%s'", texts[i].key);
	return true;
}

/* --- scales and bounds --- */

/* The text between "scale(" or "bound(" and the last parenthesis; NULL = the name is another one. */
static const char *read_name(struct arena *a, const char *name, const char *kind)
{
	size_t k = strlen(kind), n = strlen(name);
	if (n < k + 3 || strncmp(name, kind, k) != 0 || name[k] != '(' || name[n - 1] != ')')
		return NULL;
	char *inner = arena_take(a, n, 1);
	memcpy(inner, name + k + 1, n - k - 2);
	return inner;
}

/* All numbers of a tensor, each above `low` and below `high`; NULL after a diagnostic. */
static const float *read_between(const struct completing *c, int i, float low, float high)
{
	const struct tensor_info *t = &c->file->tensor[i];
	int64_t n = tensor_elements(t);
	if (t->dtype != DTYPE_F32)
		return refuse(c, "'%.200s' must be F32", t->name), NULL;
	float *at = arena_take(c->arena, n + 1, sizeof *at);
	if (!io_safetensors_read_f32(c->file, c->diags, i, 0, n, at))
		return NULL;
	for (int64_t k = 0; k < n; k++)
		if (!(at[k] > low && at[k] < high))
			return refuse(c,
				      "number %lld of '%.200s' is %g, and it must be above %g and below %g",
				      (long long)k, t->name, at[k], low, high),
			       NULL;
	return at;
}

static bool covers_tensor(const struct tensor_info *scale, const struct tensor_info *t)
{
	bool fits = scale->rank == t->rank;
	for (int d = 0; fits && d < t->rank; d++)
		fits = scale->shape[d] == 1 || scale->shape[d] == t->shape[d];
	return fits;
}

static bool read_scale(struct completing *c, int i, const char *of)
{
	const struct tensor_info *s = &c->file->tensor[i];
	int t = map_get(&c->number, of, strlen(of));
	c->extra[i] = true;
	if (t < 0 || c->file->tensor[t].dtype != DTYPE_I8)
		return refuse(c, "'%.100s' has a scale and is no tensor of I8", of);
	if (!covers_tensor(s, &c->file->tensor[t]))
		return refuse(c, "'%.100s' does not have the axes of '%.100s', each of its extent or of 1",
			      s->name, of);
	memcpy(c->scale[t].shape, s->shape, sizeof s->shape);
	c->scale[t].at = read_between(c, i, 0, INFINITY);
	return c->scale[t].at;
}

static bool read_bound(struct completing *c, int i)
{
	c->extra[i] = true;
	if (c->file->tensor[i].rank)
		return refuse(c, "'%.200s' must be one number", c->file->tensor[i].name);
	return read_between(c, i, IO_QUANTISED_LEAST_BOUND, IO_QUANTISED_LARGEST_BOUND);
}

static bool read_extras(struct completing *c)
{
	bool ok = true;
	c->number = map_in(c->arena);
	for (int i = 0; i < c->file->n; i++)
		map_add_lasting(&c->number, c->file->tensor[i].name, strlen(c->file->tensor[i].name), i);
	for (int i = 0; ok && i < c->file->n; i++) {
		const char *of = read_name(c->arena, c->file->tensor[i].name, "scale");
		if (of)
			ok = read_scale(c, i, of);
		else if (read_name(c->arena, c->file->tensor[i].name, "bound"))
			ok = read_bound(c, i);
	}
	return ok;
}

/* Copies the descriptions, those of the model first; integers with a scale become F32. */
static void order_tensors(struct completing *c)
{
	struct io_safetensors *w = c->file;
	struct tensor_info *tensor = ARENA_ARRAY(c->arena, struct tensor_info, w->n + 1);
	struct io_scale *scale = ARENA_ARRAY(c->arena, struct io_scale, w->n + 1);
	int64_t *begin = ARENA_ARRAY(c->arena, int64_t, w->n + 1);
	int n = 0;
	for (int extra = 0; extra < 2; extra++) {
		for (int i = 0; i < w->n; i++) {
			if (c->extra[i] != extra)
				continue;
			tensor[n] = w->tensor[i];
			tensor[n].dtype = c->scale[i].at ? DTYPE_F32 : tensor[n].dtype;
			scale[n] = c->scale[i];
			begin[n++] = w->begin[i];
		}
		w->own = extra ? w->own : n;
	}
	w->tensor = tensor;
	w->scale = scale;
	w->begin = begin;
}

bool io_complete_quantised(struct arena *a, struct diags *diags, struct io_safetensors *w)
{
	struct completing c = {.arena = a, .diags = diags, .file = w};
	if (!find_text(w, IO_QUANTISED_KEY))
		return true;
	c.scale = ARENA_ARRAY(a, struct io_scale, w->n + 1);
	c.extra = ARENA_ARRAY(a, bool, w->n + 1);
	if (!read_texts(&c) || !read_extras(&c))
		return false;
	order_tensors(&c);
	struct io_quantised *q = ARENA_NEW(a, struct io_quantised);
	*q = c.q;
	w->quantised = q;
	return true;
}

/* --- elements --- */

/* The scale of element `i` of a tensor. */
static float scale_at(const struct tensor_info *t, const struct io_scale *s, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int d = t->rank; d-- > 0;) {
		at += s->shape[d] == 1 ? 0 : stride * (i % t->shape[d]);
		stride *= s->shape[d];
		i /= t->shape[d];
	}
	return s->at[at];
}

void io_widen_quantised(const struct io_safetensors *w, int i, int64_t first, int64_t count,
			const int8_t *from, float *to)
{
	const struct tensor_info *t = &w->tensor[i];
	const struct io_scale *s = &w->scale[i];
	int64_t last = t->rank ? t->shape[t->rank - 1] : 1;
	bool shared = !t->rank || s->shape[t->rank - 1] == 1;
	float scale = 0;
	for (int64_t k = 0; k < count; k++) {
		if (!k || !shared || (first + k) % last == 0)
			scale = scale_at(t, s, first + k);
		to[k] = (float)from[k] * scale;
	}
}
