/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Packing against one loop over all indices that follows the text of image.h. */
#include "runtime/shared.h"
#include "tests/budget.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMS = 5 };

static struct tensor_info params[PARAMS] = {
    {"W", DTYPE_F32, 2, {5, 7}},    {"V", DTYPE_F32, 2, {5, 7}},     {"b", DTYPE_F32, 1, {9}},
    {"T", DTYPE_F32, 3, {3, 4, 2}}, {"L", DTYPE_F32, 2, {700, 600}},
};

static int reads[PARAMS];

static int bytes = 4; /* of an element */

/* The bits of an element, of which the lowest bytes are taken. */
static int64_t value_of(int param, int64_t element)
{
	return (INT64_MAX / 1000003 * (param + 1) + element) * 0x10001;
}

static bool read_param(void *context, int param, int64_t first, int64_t count, void *out, struct diags *diags)
{
	if (context && *(int *)context == param)
		return diag_add(diags, DIAG_CANNOT_READ, (struct diag_at){0}, NULL, "cannot read %d", param);
	reads[param]++;
	for (int64_t i = 0; i < count; i++) {
		int64_t value = value_of(param, first + i);
		memcpy((char *)out + i * bytes, &value, bytes);
	}
	return true;
}

static int64_t naive_element(const struct image_recipe *r, const int64_t *index)
{
	int64_t source = 0, at[TENSOR_MAX_RANK] = {0}, element = 0;
	for (int d = 0; d < r->dims; d++)
		*(r->dim[d].axis == IMAGE_PACK_SOURCE ? &source : &at[r->dim[d].axis]) +=
		    index[d] * r->dim[d].stride;
	if (source >= r->sources)
		return 0;
	const struct image_pack_source *s = &r->source[source];
	const struct tensor_info *t = &params[s->param];
	for (int a = 0; a < t->rank; a++) {
		int64_t i = s->begin[a] + at[a];
		if (i >= s->end[a])
			return 0;
		element = element * t->shape[a] + i;
	}
	return value_of(s->param, element);
}

static bool is_packed_right(const struct image_recipe *r, const char *packed)
{
	int64_t index[IMAGE_PACK_DIMS] = {0};
	for (;; packed += bytes) {
		int64_t value = naive_element(r, index);
		if (memcmp(packed, &value, bytes) != 0)
			return false;
		int d = r->dims - 1;
		while (d >= 0 && ++index[d] == r->dim[d].extent)
			index[d--] = 0;
		if (d < 0)
			return true;
	}
}

static const struct image_pack_source whole[] = {{0, {0}, {5, 7}}};
static const struct image_pack_source vector[] = {{2, {0}, {9}}};
static const struct image_pack_source part[] = {{2, {3}, {7}}};
static const struct image_pack_source cube[] = {{3, {0}, {3, 4, 2}}};
static const struct image_pack_source large[] = {{4, {0, 0}, {700, 600}}};
static const struct image_pack_source large_parts[] = {{4, {10, 0}, {300, 600}}, {4, {400, 0}, {690, 600}}};
static const struct image_pack_source gates[] = {
    {0, {0, 0}, {5, 7}}, {1, {0, 0}, {5, 7}}, {0, {0, 3}, {5, 5}}, {1, {2, 0}, {4, 7}}};

/* Each case is one way in which the compiler lays weights out. */
static const struct {
	const char *what;
	struct image_recipe recipe;
} cases[] = {
    {"the parameter itself", {2, 1, {{0, 5, 1}, {1, 7, 1}}, whole, DTYPE_F32, 0}},
    {"padded rows", {2, 1, {{0, 8, 1}, {1, 16, 1}}, whole, DTYPE_F32, 0}},
    {"transposed", {2, 1, {{1, 7, 1}, {0, 5, 1}}, whole, DTYPE_F32, 0}},
    {"one row, and columns past its end", {2, 1, {{0, 1, 5}, {1, 35, 1}}, whole, DTYPE_F32, 0}},
    {"blocks of rows, transposed inside", {3, 1, {{0, 2, 4}, {1, 7, 1}, {0, 4, 1}}, whole, DTYPE_F32, 0}},
    {"a vector in blocks of lanes", {2, 1, {{0, 3, 4}, {0, 4, 1}}, vector, DTYPE_F32, 0}},
    {"a slice of a vector", {1, 1, {{0, 8, 1}}, part, DTYPE_F32, 0}},
    {"three axes turned round", {3, 1, {{2, 2, 1}, {1, 5, 1}, {0, 3, 1}}, cube, DTYPE_F32, 0}},
    {"gates side by side", {4, 4, {{0, 2, 4}, {1, 7, 1}, {IMAGE_PACK_SOURCE, 4, 1}, {0, 4, 1}}, gates, DTYPE_F32, 0}},
    {"gates innermost", {3, 4, {{0, 5, 1}, {1, 7, 1}, {IMAGE_PACK_SOURCE, 4, 1}}, gates, DTYPE_F32, 0}},
    {"gates outermost", {3, 4, {{IMAGE_PACK_SOURCE, 4, 1}, {1, 8, 1}, {0, 8, 1}}, gates, DTYPE_F32, 0}},
    {"two dimensions that choose the source",
     {4, 4, {{IMAGE_PACK_SOURCE, 2, 2}, {1, 7, 1}, {IMAGE_PACK_SOURCE, 2, 1}, {0, 8, 1}}, gates, DTYPE_F32, 0}},
    {"more gates than sources", {3, 4, {{IMAGE_PACK_SOURCE, 6, 1}, {0, 5, 1}, {1, 7, 1}}, gates, DTYPE_F32, 0}},
    {"every second column", {2, 1, {{0, 5, 1}, {1, 4, 2}}, whole, DTYPE_F32, 0}},
    {"six dimensions",
     {6, 4, {{0, 2, 4}, {1, 2, 4}, {0, 2, 2}, {1, 4, 1}, {IMAGE_PACK_SOURCE, 4, 1}, {0, 2, 1}}, gates, DTYPE_F32, 0}},
    {"a parameter that is read in parts", {2, 1, {{0, 700, 1}, {1, 600, 1}}, large, DTYPE_F32, 0}},
    {"the same with padded rows", {2, 1, {{0, 700, 1}, {1, 608, 1}}, large, DTYPE_F32, 0}},
    {"the same with padded columns", {2, 1, {{0, 704, 1}, {1, 600, 1}}, large, DTYPE_F32, 0}},
    {"the same transposed", {2, 1, {{1, 600, 1}, {0, 704, 1}}, large, DTYPE_F32, 0}},
    {"the same in blocks", {3, 1, {{0, 88, 8}, {1, 600, 1}, {0, 8, 1}}, large, DTYPE_F32, 0}},
    {"every third row of it", {2, 1, {{1, 600, 1}, {0, 234, 3}}, large, DTYPE_F32, 0}},
    {"slices of it side by side",
     {4, 2, {{0, 37, 8}, {1, 600, 1}, {IMAGE_PACK_SOURCE, 2, 1}, {0, 8, 1}}, large_parts, DTYPE_F32, 0}},
};

enum { CASES = sizeof cases / sizeof *cases };

static struct image image_of(const struct image_recipe *recipes, int n)
{
	return (struct image){.params = PARAMS, .param = params, .recipes = n, .recipe = recipes};
}

/* Memory that is full of numbers. */
static void *dirty_resize(void *context, void *p, size_t old_size, size_t new_size)
{
	char *bytes = allocator_default.resize(context, p, old_size, new_size);
	if (bytes && new_size > old_size)
		memset(bytes + old_size, 0x55, new_size - old_size);
	return bytes;
}

static const struct allocator dirty = {dirty_resize, NULL};

static void test_cases(enum dtype dtype)
{
	struct image_recipe recipes[CASES];
	const char *name = dtype_traits_of(dtype)->spelling;
	bytes = dtype_traits_of(dtype)->bytes;
	memset(reads, 0, sizeof reads);
	for (int i = 0; i < PARAMS; i++)
		params[i].dtype = dtype;
	for (int i = 0; i < CASES; i++) {
		recipes[i] = cases[i].recipe;
		recipes[i].dtype = dtype;
	}
	struct image image = image_of(recipes, CASES);
	struct rt_binding b;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	tap_ok(rt_bind(&b, &dirty, &image, &(struct rt_source){read_param, NULL}, NULL, &diags),
	       "weights are packed");
	bool aligned = true;
	for (int i = 0; i < CASES; i++) {
		tap_ok(is_packed_right(&recipes[i], b.packed[i]), "%s: %s", name, cases[i].what);
		aligned &= (uintptr_t)b.packed[i] % 64 == 0;
	}
	tap_ok(aligned, "packed weights are aligned");
	tap_ok(reads[0] == 1 && reads[1] == 1 && reads[2] == 1 && reads[3] == 1,
	       "each parameter is read once");
	tap_ok(reads[4] == 4, "a large one in parts");
	rt_binding_free(&b);
	tap_ok(!b.packed, "a freed binding is empty");
}

static void test_unused(void)
{
	struct image image = image_of(&cases[5].recipe, 1);
	struct rt_binding b;
	struct diags diags;
	memset(reads, 0, sizeof reads);
	diags_init(&diags, &allocator_default);
	tap_ok(rt_bind(&b, &allocator_default, &image, &(struct rt_source){read_param, NULL}, NULL, &diags) &&
		   reads[2] == 1 && reads[0] + reads[1] + reads[3] == 0,
	       "a parameter that no recipe uses is not read");
	rt_binding_free(&b);
}

static void test_failures(void)
{
	struct image image = image_of(&cases[8].recipe, 1);
	struct rt_binding b;
	struct diags diags;
	diags_init(&diags, &allocator_default);
	tap_ok(!rt_bind(&b, &allocator_default, &image, &(struct rt_source){read_param, &(int){1}}, NULL,
			&diags) &&
		   diags.n == 1 && diags.at[0].id == DIAG_CANNOT_READ && !b.packed,
	       "a read that fails fails the binding");
	diags_free(&diags);
	const struct image_recipe vast = {2, 1, {{0, INT64_MAX / 4, 1}, {1, 7, 1}}, whole, DTYPE_F32, 0};
	image = image_of(&vast, 1);
	tap_ok(
	    !rt_bind(&b, &allocator_default, &image, &(struct rt_source){read_param, NULL}, NULL, &diags) &&
		diags.n == 1 && diags.at[0].id == DIAG_OUT_OF_MEMORY,
	    "a size that overflows is out of memory");
	diags_free(&diags);
}

static void test_memory(void)
{
	struct image image = image_of(&cases[8].recipe, 1);
	bool right = true, ok = false;
	for (int n = 0; !ok && n < 100; n++) {
		struct budget budget = {.left = n};
		struct allocator a = {resize_budget, &budget};
		struct rt_binding b;
		struct diags diags;
		diags_init(&diags, &allocator_default);
		ok = rt_bind(&b, &a, &image, &(struct rt_source){read_param, NULL}, NULL, &diags);
		right &= ok || (diags.n == 1 && diags.at[0].id == DIAG_OUT_OF_MEMORY);
		diags_free(&diags);
		rt_binding_free(&b);
	}
	tap_ok(ok && right, "memory running out at any place is a diagnostic");
	char *large = rt_allocate_zeroed(&allocator_default, (size_t)5 << 20);
	tap_ok(large && (uintptr_t)large % (2 << 20) == 0 && !large[0] && !large[(5 << 20) - 1],
	       "large blocks begin at a huge page and are zeroed");
	rt_free(&allocator_default, large);
}

int main(void)
{
	for (int t = DTYPES; t-- > 0;)
		test_cases(t); /* f32 is left */
	test_unused();
	test_failures();
	test_memory();
	return tap_done();
}
