/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Names extents: an extent of several tensors becomes a dimension; one of stacked gates becomes a multiple
 * of a dimension. */
#include "init/skeleton.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct extent *find_extent(const struct skeleton *s, int64_t size)
{
	for (size_t i = 0; i < s->extents; i++)
		if (s->extent[i].size == size)
			return &s->extent[i];
	return NULL;
}

/* Whether an axis before this one has the same extent. */
static bool is_repeated(const esp_tensor *t, size_t axis)
{
	for (size_t d = 0; d < axis; d++)
		if (t->shape[d] == t->shape[axis])
			return true;
	return false;
}

static bool add_extent(struct skeleton *s, int64_t size)
{
	struct extent *e = find_extent(s, size), *grown;
	if (e)
		return e->tensors++, true;
	grown = realloc(s->extent, (s->extents + 1) * sizeof *grown);
	if (!grown)
		return complain("no memory for %zu extents", s->extents + 1);
	s->extent = grown;
	s->extent[s->extents++] = (struct extent){.size = size, .tensors = 1};
	return true;
}

static bool list_extents(struct skeleton *s)
{
	const esp_tensor *t;
	for (size_t i = 0; (t = esp_weights_tensor(s->weights, i)); i++)
		for (size_t d = 0; d < t->rank && !fault_of(s, t); d++)
			if (!is_repeated(t, d) && !add_extent(s, t->shape[d]))
				return false;
	return true;
}

static bool is_shared(const struct extent *e)
{
	return e && e->tensors > 1 && e->size > 1;
}

/* How many gates of one size are stacked in an extent, judged by the matrices that have it as rows; 0 =
 * none. */
static int64_t count_gates(const struct skeleton *s, const struct extent *e)
{
	const esp_tensor *t;
	for (size_t i = 0; (t = esp_weights_tensor(s->weights, i)); i++) {
		int64_t rows = t->rank == 2 ? t->shape[0] : 0, columns = t->rank == 2 ? t->shape[1] : 0;
		int64_t gates = columns > 1 && rows == e->size ? e->size / columns : 0;
		if (gates >= 3 && gates <= 5 && gates * columns == e->size && is_shared(find_extent(s, columns)))
			return gates;
	}
	return 0;
}

/* Adds the uses of stacked extents to those of the size of one gate. */
static void count_stacked(struct skeleton *s)
{
	for (size_t i = 0; i < s->extents; i++) {
		const struct extent *e = &s->extent[i];
		int64_t gates = is_shared(e) ? count_gates(s, e) : 0;
		if (gates)
			find_extent(s, e->size / gates)->tensors += e->tensors;
	}
}

static int more_tensors(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	return x->tensors != y->tensors ? (x->tensors < y->tensors) - (x->tensors > y->tensors)
					: (x->size < y->size) - (x->size > y->size);
}

/* Names an extent after the next letter that is not taken. */
static void name_extent(const struct skeleton *s, struct extent *e, const char **letters)
{
	for (; **letters && !*e->name; (*letters)++) {
		char name[] = {**letters, 0};
		if (!is_taken(s, name))
			strcpy(e->name, name);
	}
}

bool name_extents(struct skeleton *s)
{
	const char *letters = "DEFGHJKLMNPQRSTUVWXYZABC";
	if (!list_extents(s))
		return false;
	count_stacked(s);
	if (s->extents)
		qsort(s->extent, s->extents, sizeof *s->extent, more_tensors);
	for (size_t i = 0; i < s->extents; i++)
		if (is_shared(&s->extent[i]) && !count_gates(s, &s->extent[i]))
			name_extent(s, &s->extent[i], &letters);
	for (size_t i = 0; i < s->extents; i++) {
		struct extent *e = &s->extent[i];
		int64_t gates = is_shared(e) ? count_gates(s, e) : 0;
		const struct extent *of = gates ? find_extent(s, e->size / gates) : NULL;
		if (of && strlen(of->name) == 1)
			snprintf(e->name, sizeof e->name, "%d*%s", (int)gates, of->name);
	}
	return true;
}

void print_extent(const struct skeleton *s, int64_t size)
{
	const struct extent *e = find_extent(s, size);
	if (e && *e->name)
		fputs(e->name, s->to);
	else
		fprintf(s->to, "%" PRId64, size);
}

int64_t choose_extent(const struct skeleton *s)
{
	for (size_t i = 0; i < s->extents; i++)
		if (strlen(s->extent[i].name) == 1)
			return s->extent[i].size;
	return 0;
}
