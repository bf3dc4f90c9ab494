/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models, random weights and random structures for tests that run whole programs. */
#ifndef ESPALIER_TESTS_MODELS_HELPER_H
#define ESPALIER_TESTS_MODELS_HELPER_H

#include "base/convert.h"
#include "runtime/runtime.h"
#include "subop/subop.h"
#include "tests/backends.h"
#include "tests/models/guard.h"
#include "tests/options.h"
#include "tests/ra/read.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

/* --- numbers --- */

static uint64_t random_state;
/* Bytes that somebody chose: as long as there are any, choices are made by them. */
static const uint8_t *chosen_bytes, *chosen_end;

static inline uint32_t random_bits(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

static inline int random_below(int n)
{
	return (chosen_bytes < chosen_end ? *chosen_bytes++ : random_bits()) % n;
}

/* Which weights there are, and that one in so many is special; 0 = none is.  Parameters come before
 * FIRST_CARRIED, behind it what nodes and edges carry. */
static uint64_t weights_drawn;
static int special_each;
/* Then they are not so small either that the product of two vanishes: what is infinite times that is no number. */
static bool finite_weights;
enum { FIRST_CARRIED = 1000 };

static inline uint64_t hash_place(int param, int64_t element)
{
	uint64_t x = (param + 1) * 0x9E3779B97F4A7C15u + (element + 1) * 0xD1B54A32D192ED03u + weights_drawn;
	return (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
}

/* A weight is a function of its place, so that any part of a parameter can be read at any time. */
static inline float weight_at(int param, int64_t element)
{
	static const float specials[] = {0.0f, -0.0f, 1e-40f, -1e-45f, NAN, NAN, INFINITY, -INFINITY};
	uint64_t x = hash_place(param, element);
	if (special_each && (x >> 8) % special_each == 0)
		return specials[x >> 29 & (finite_weights && param < FIRST_CARRIED ? 1 : 7)];
	return ((x >> 40) / (float)(1 << 24) - 0.5f) * 0.8f;
}

/* Likewise an integer, of which a type has the lowest bits: half of them are small, some are of any size. */
static inline int64_t integer_weight_at(int param, int64_t element)
{
	static const int sizes[] = {62, 62, 60, 60, 56, 48, 32, 0};
	uint64_t x = hash_place(param, element);
	return (int64_t)((x ^ x >> 32) * 0x9E3779B97F4A7C15u) >> sizes[x >> 40 & 7];
}

/* The fraction is cut off, and numbers are zero that are subnormal. */
static inline uint16_t f16_toward_zero(float f)
{
	uint32_t bits = bits_of_f32(f), sign = bits >> 16 & 0x8000, magnitude = bits & INT32_MAX;
	if (isnan(f) || isinf(f))
		return sign | (isnan(f) ? 0x7e00 : 0x7c00);
	return sign | (magnitude < 113u << 23 ? 0 : (magnitude - (112u << 23)) >> 13);
}

static inline void put_element(enum dtype dtype, int param, int64_t element, void *to, int64_t i)
{
	int64_t integer = integer_weight_at(param, element);
	float weight = weight_at(param, element);
	switch (dtype) {
#define CASE(name, value)                                                                                    \
	case DTYPE_##name:                                                                                   \
		((c_##name *)to)[i] = value;                                                                 \
		break
		CASE(F32, weight);
		CASE(F16, f16_toward_zero(weight));
		CASE(BF16, bits_of_f32(weight) >> 16);
		CASE(I8, integer);
		CASE(U8, integer);
		CASE(I16, integer);
		CASE(I32, integer);
		CASE(I64, integer);
		CASE(BOOL, integer & 1);
#undef CASE
	default:
		break;
	}
}

static inline void put_elements(enum dtype dtype, int param, int64_t first, int64_t count, void *to)
{
	for (int64_t i = 0; i < count; i++)
		put_element(dtype, param, first + i, to, i);
}

/* Of an image, whose parameters have types; f32 without one. */
static inline bool read_weight(void *context, int param, int64_t first, int64_t count, void *out,
			       struct diags *d)
{
	const struct image *image = context;
	(void)d;
	put_elements(image ? image->param[param].dtype : DTYPE_F32, param, first, count, out);
	return true;
}

/* --- models --- */

struct test_model {
	struct arena arena;
	struct diags diags;
	const struct ra_model *model;
	int64_t sizes[16];
};

static inline void print_diags(const struct diags *d)
{
	struct arena a;
	arena_init(&a, &allocator_default);
	jmp_buf jump;
	if (!arena_guard(&a, &jump)) {
		struct str s = str_in(&a);
		for (size_t i = 0; i < d->n; i++)
			diag_print(&d->at[i], &s);
		for (char *line = strtok((char *)str_text(&s), "\n"); line; line = strtok(NULL, "\n"))
			printf("# %s\n", line);
	}
	arena_free(&a);
}

/* What follows the first of these; NULL = there is none. */
static inline const char *behind(const char *text, char c)
{
	const char *at = strchr(text, c);
	return at ? at + 1 : NULL;
}

static inline void set_sizes(struct test_model *t, const char *sizes)
{
	for (size_t i = 0; i < t->model->symbols.n; i++) {
		const char *name = t->model->symbols.at[i].name;
		for (const char *s = sizes; s; s = behind(s, ' '))
			if (strncmp(s, name, strlen(name)) == 0 && s[strlen(name)] == '=')
				t->sizes[i] = atoll(s + strlen(name) + 1);
	}
	ra_compute_sizes(t->model, t->sizes);
}

/* Sizes as "D=5 E=3". */
static inline bool load_text(struct test_model *t, const char *name, const char *text, size_t length,
			     const char *sizes)
{
	arena_init(&t->arena, &allocator_default);
	diags_init(&t->diags, &allocator_default);
	static jmp_buf jump;
	if (arena_guard(&t->arena, &jump))
		return false;
	t->model = ra_parse(&t->arena, &t->diags, name, text, length);
	if (!t->model)
		return print_diags(&t->diags), false;
	set_sizes(t, sizes);
	return true;
}

static inline bool load_model(struct test_model *t, const char *path, const char *sizes)
{
	size_t length;
	char *text = read_text(source_path(path), &length);
	bool ok = text && load_text(t, path, text, length, sizes);
	free(text);
	return ok;
}

static inline void free_model(struct test_model *t)
{
	diags_free(&t->diags);
	arena_free(&t->arena);
}

/* --- structures --- */

enum { MAX_NODES = 4000, MAX_INPUTS = 8 };

struct test_forest {
	struct lin_collect collect;
	struct rt_minibatch minibatch;
	const void *data[MAX_INPUTS];
	int nodes;
	void *owned[MAX_INPUTS]; /* what `data` points at */
};

/* How nodes are joined: by chance; those that stand open as soon as there are enough, so that a chain grows,
 * or a comb; when there are as many as there should be, the oldest first: a star, or a tree of few levels. */
enum forest_shape { FOREST_ANY, FOREST_DEEP, FOREST_WIDE };

/* One structure, children before parents: from a stack of open subtrees, `arity` are joined at a time; any
 * number of them when arity < 0; a DAG may take a node again, as one child more or instead of an open one. */
static inline void add_structure(struct test_forest *f, int arity, bool shared, int size,
				 enum forest_shape shape)
{
	static int32_t begin[MAX_NODES + 1], children[8 * MAX_NODES], open[MAX_NODES];
	int nodes = 0, edges = 0, n = 0;
	struct diags d;
	diags_init(&d, &allocator_default);
	while (nodes < size || n > 1) {
		int want = arity < 0 ? shape == FOREST_WIDE ? size : 1 + random_below(4) : arity;
		bool now = shape == FOREST_DEEP || (shape == FOREST_ANY && random_below(2));
		bool join = n >= want && (n > 1 || arity == 1) && (nodes >= size || now);
		if (nodes >= size && n > 1 && n < want) {
			if (arity < 0)
				want = n, join = true;
		}
		bool again = join && shared && nodes > 4 && (arity < 0 || nodes < size);
		want -= again && arity > 1;
		int first = shape == FOREST_WIDE ? 0 : n - want;
		begin[nodes] = edges;
		for (int i = 0; join && i < want; i++)
			children[edges + i] = open[first + i];
		edges += join ? want : 0;
		n -= join ? want : 0;
		if (join)
			memmove(open + first, open + first + want, (n - first) * sizeof *open);
		if (again && arity != 1)
			children[edges++] = random_below(nodes);
		open[n++] = nodes++;
		if (nodes >= size && arity == 1)
			break;
	}
	begin[nodes] = edges;
	lin_collect_add(&f->collect, nodes, begin, children, &d);
	print_diags(&d);
	diags_free(&d);
}

/* Makes what is beyond the bound of an input, or not a number, zero. */
static inline void keep_within(const struct image_input *in, int64_t n, void *data)
{
	for (int64_t i = 0; in->within > 0 && i < n; i++) {
		size_t bytes = dtype_traits_of(in->dtype)->bytes;
		char *at = (char *)data + i * bytes;
		float x = in->dtype == DTYPE_F16    ? f32_of_f16(*(uint16_t *)at)
			  : in->dtype == DTYPE_BF16 ? f32_of_bf16(*(uint16_t *)at)
						    : *(float *)at;
		if (!(fabsf(x) <= in->within))
			memset(at, 0, bytes);
	}
}

/* A sequence is a chain; other structures by the image's rules; without a structure as many rows as there are nodes at
 * most. */
static inline void make_shaped_forest(struct test_forest *f, const struct image *image, int inputs, int size,
				      enum forest_shape shape)
{
	lin_collect_init(&f->collect, &allocator_default);
	for (int i = 0; i < inputs; i++)
		for (int n = image->children ? 1 : size; n-- > 0;)
			add_structure(f, image->children, image->shared_children,
				      image->children ? 1 + random_below(size) : 1, shape);
	f->minibatch = (struct rt_minibatch){lin_collect_forest(&f->collect), f->data};
	f->nodes = f->collect.nodes;
	for (int i = 0; i < MAX_INPUTS; i++)
		f->owned[i] = NULL;
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		int64_t rows = in->on_edge ? f->collect.edges : f->nodes,
			n = rows * (in->token ? 1 : in->elements);
		int32_t *index = malloc((n + 1) * sizeof(int64_t));
		f->data[i] = f->owned[i] = index;
		if (!in->token && !in->limit)
			put_elements(in->dtype, FIRST_CARRIED + i, 0, n, index), keep_within(in, n, index);
		else
			for (int64_t k = 0; k < n; k++)
				index[k] = random_below(in->limit ? in->limit : 4);
	}
}

static inline void make_forest(struct test_forest *f, const struct image *image, int inputs, int size)
{
	make_shaped_forest(f, image, inputs, size, FOREST_ANY);
}

static inline void free_forest(struct test_forest *f)
{
	lin_collect_free(&f->collect);
	for (int i = 0; i < MAX_INPUTS; i++)
		free(f->owned[i]);
}

/* --- programs --- */

struct test_run {
	struct arena arena;
	struct diags diags;
	struct image image;
	struct image_code whole; /* the code itself, when the image's is one that cuts columns into pieces */
	uint32_t cuts;
	struct guard guard; /* of compiled kernels, since columns are cut */
	struct rt_binding binding;
	struct rt_session session;
	bool bound, open;
};

static inline void begin_run(struct test_run *r)
{
	memset(r, 0, sizeof *r);
	arena_init(&r->arena, &allocator_default);
	diags_init(&r->diags, &allocator_default);
}

static inline bool compile_run(struct test_run *r, const struct test_model *t,
			       const struct option_texts *o)
{
	static jmp_buf jump;
	begin_run(r);
	if (arena_guard(&r->arena, &jump))
		return false;
	if (!compile_image_as(&r->arena, &r->diags, t->model, t->sizes, o, &r->image))
		return print_diags(&r->diags), false;
	return true;
}

static inline bool open_run(struct test_run *r)
{
	struct rt_source source = {read_weight, &r->image};
	r->bound = rt_bind(&r->binding, &allocator_default, &r->image, &source, NULL, &r->diags);
	r->open = r->bound && rt_session_init(&r->session, &allocator_default, &r->image, &r->diags);
	print_diags(&r->diags);
	return r->open;
}

static inline bool start_run(struct test_run *r, const struct test_model *t, const struct option_texts *o)
{
	return compile_run(r, t, o) && open_run(r);
}

/* --- columns in pieces --- */

static inline bool call_piece(struct test_run *r, int kernel, const struct image_frame *f,
			      const struct image_range *p, struct diags *d)
{
	if (!r->whole.kernels)
		return r->whole.call(r->whole.self, kernel, f, p, d);
	return guard_call(&r->guard, kernel, r->whole.kernels[kernel], f, p, d);
}

static inline uint32_t random_cut(struct test_run *r, uint32_t n)
{
	r->cuts = r->cuts * 1664525u + 1013904223u;
	return (r->cuts >> 8) % n;
}

/* The blocks of a call fall into two, and these again, at random; either side goes first, and each piece goes
 * up or down. */
static inline bool call_in_pieces(void *self, int kernel, const struct image_frame *f,
				  const struct image_range *range, struct diags *d)
{
	struct test_run *r = self;
	struct image_range whole = *range;
	if (whole.direction < 0)
		whole.first -= whole.blocks - 1;
	whole.direction = 1;
	struct image_range low = whole, high = whole, down = whole;
	if (range->blocks < 2 || random_cut(r, 4) == 0) {
		down.first += down.blocks - 1;
		down.direction = -1;
		return call_piece(r, kernel, f, random_cut(r, 2) ? &whole : &down, d);
	}
	low.blocks = 1 + random_cut(r, range->blocks - 1);
	high.first += low.blocks;
	high.blocks -= low.blocks;
	bool up = random_cut(r, 2);
	return call_in_pieces(self, kernel, f, up ? &low : &high, d) &&
	       call_in_pieces(self, kernel, f, up ? &high : &low, d);
}

static inline void release_whole(struct image_code *code)
{
	struct test_run *r = code->self;
	guard_free(&r->guard);
	r->whole.release(&r->whole);
}

/* Between compile_run and open_run: kernels get their columns in pieces from now on, compiled ones under
 * guard. */
static inline void cut_columns(struct test_run *r)
{
	if (r->image.code.kernels)
		guard_init(&r->guard, &r->image);
	r->whole = r->image.code;
	r->image.code = (struct image_code){.call = call_in_pieces, .release = release_whole, .self = r};
}

static inline bool run_forest(struct test_run *r, const struct rt_minibatch *m)
{
	bool ok = rt_session_run(&r->session, &r->binding, NULL, m, &r->diags);
	print_diags(&r->diags);
	return ok;
}

static inline void end_run(struct test_run *r)
{
	if (r->open)
		rt_session_free(&r->session);
	if (r->bound)
		rt_binding_free(&r->binding);
	if (r->image.code.release)
		r->image.code.release(&r->image.code);
	diags_free(&r->diags);
	arena_free(&r->arena);
}

/* Elements of a row of an output, as the caller counts rows. */
static inline int64_t output_elements(const struct image *image, int o)
{
	return image->output[o].elements;
}

/* An element as the oracle holds it. */
static inline double read_result(enum dtype dtype, const void *row, int64_t i)
{
	switch (dtype) {
	case DTYPE_F32:
		return ((const c_F32 *)row)[i];
	case DTYPE_I32:
		return sub_element_of(((const c_I32 *)row)[i]);
	case DTYPE_I64:
		return sub_element_of(((const c_I64 *)row)[i]);
	default:
		return sub_element_of(((const c_BOOL *)row)[i]);
	}
}

/* All outputs of a run, row after row. */
static inline double *gather_outputs(const struct test_run *r, int64_t nodes, int64_t inputs, int64_t *count)
{
	double *all = NULL;
	*count = 0;
	for (int o = 0; o < r->image.outputs; o++) {
		int64_t n = output_elements(&r->image, o), rows = r->image.output[o].at_root ? inputs : nodes;
		all = realloc(all, (*count + rows * n + 1) * sizeof *all);
		for (int64_t row = 0; row < rows; row++) {
			const void *from = rt_session_row(&r->session, o, row);
			for (int64_t e = 0; e < n; e++)
				all[(*count)++] = from ? read_result(r->image.output[o].dtype, from, e) : NAN;
		}
	}
	return all;
}

/* The type of an element of all outputs. */
static inline enum dtype type_of_result(const struct test_run *r, int64_t nodes, int64_t inputs, int64_t i)
{
	int o = 0;
	for (; o < r->image.outputs; o++) {
		i -= output_elements(&r->image, o) * (r->image.output[o].at_root ? inputs : nodes);
		if (i < 0)
			break;
	}
	return r->image.output[o].dtype;
}

#endif
