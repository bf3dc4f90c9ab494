/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models with values of all types: integers are what the oracle says to the bit, and floats near it,
 * interpreted after passes and compiled. */
#include "base/convert.h"
#include "ilir/passes.h"
#include "tests/models/agree.h"
#include "tests/sample.h"
#include "tests/sanitizers.h"

#include <stdlib.h>

/* --- data --- */

static void put_integer(enum dtype dtype, void *to, int64_t i, int64_t value)
{
	switch (dtype_traits_of(dtype)->bytes) {
	case 1:
		((int8_t *)to)[i] = (int8_t)value;
		break;
	case 2:
		((int16_t *)to)[i] = (int16_t)value;
		break;
	case 4:
		((int32_t *)to)[i] = (int32_t)value;
		break;
	default:
		((int64_t *)to)[i] = value;
	}
}

/* Multiples of 1/16 from -1 to 1, as f32 or by the bits of an f16; numbers of a few digits otherwise, and
 * with no input's limit a large one now and then. */
static void put_number(enum dtype dtype, int64_t limit, void *to, int64_t i)
{
	int sixteenths = random_below(33) - 16;
	if (dtype == DTYPE_F32)
		((float *)to)[i] = (float)sixteenths / 16;
	else if (dtype == DTYPE_F16)
		put_integer(dtype, to, i, sixteenths < 0 ? 0xb800 + sixteenths : 0x3800 + sixteenths);
	else if (dtype == DTYPE_BOOL || limit)
		put_integer(dtype, to, i, random_below(limit ? (int)limit : 2));
	else if (dtype == DTYPE_I64 && random_below(3) == 0)
		put_integer(dtype, to, i, (int64_t)((uint64_t)random_bits() << 33 | (uint64_t)random_bits()));
	else
		put_integer(dtype, to, i,
			    random_below(dtype == DTYPE_U8 ? 6 : 2001) - (dtype == DTYPE_U8 ? 0 : 1000));
}

static void make_typed_forest(struct test_forest *f, const struct image *image, int inputs, int size)
{
	make_forest(f, image, inputs, size);
	for (int i = 0; i < image->inputs; i++) {
		const struct image_input *in = &image->input[i];
		int64_t rows = in->on_edge ? f->collect.edges : f->nodes,
			n = rows * (in->token ? 1 : in->elements);
		f->data[i] = f->owned[i] = realloc(f->owned[i], (size_t)(n + 1) * 8);
		for (int64_t k = 0; k < n; k++)
			put_number(in->dtype, in->limit, f->owned[i], k);
	}
}

/* Sixteenths, by the bits of a float's upper half where it is a bf16. */
static void put_weight(enum dtype dtype, void *to, int64_t i, float weight)
{
	int sixteenths = (int)roundf(weight * 32);
	float exact = (float)sixteenths / 16;
	if (dtype == DTYPE_F32)
		((float *)to)[i] = exact;
	else if (dtype == DTYPE_F16)
		put_integer(dtype, to, i, sixteenths < 0 ? 0xb800 + sixteenths : 0x3800 + sixteenths);
	else if (dtype == DTYPE_BF16)
		put_integer(dtype, to, i, bits_of_f32(exact) >> 16);
	else
		put_integer(dtype, to, i, dtype == DTYPE_BOOL ? weight > 0 : (int64_t)(weight * 50));
}

static bool read_typed(void *context, int param, int64_t first, int64_t count, void *to, struct diags *d)
{
	const struct ra_model *m = context;
	enum dtype dtype = m->params.at[param].dtype;
	(void)d;
	for (int64_t i = 0; i < count; i++)
		put_weight(dtype, to, i, weight_at(param, first + i));
	return true;
}

/* --- runs --- */

static bool open_typed(struct test_run *r, const struct test_model *t)
{
	struct rt_source source = {read_typed, (void *)t->model};
	r->bound = rt_bind(&r->binding, &allocator_default, &r->image, &source, NULL, &r->diags);
	r->open = r->bound && rt_session_init(&r->session, &allocator_default, &r->image, &r->diags);
	print_diags(&r->diags);
	return r->open;
}

/* The rows of outputs, and of each where they begin. */
struct results {
	char *bytes;
	size_t n, begin[16];
};

static size_t bytes_of(const struct image_output *o)
{
	return (size_t)o->elements * (size_t)dtype_traits_of(o->dtype)->bytes;
}

static struct results gather(const struct test_run *r, const struct test_forest *f)
{
	struct results all = {0};
	for (int o = 0; o < r->image.outputs; o++) {
		int64_t rows = r->image.output[o].at_root ? f->minibatch.forest.inputs : f->nodes;
		size_t bytes = bytes_of(&r->image.output[o]);
		all.begin[o] = all.n;
		all.bytes = realloc(all.bytes, all.n + (size_t)rows * bytes + 1);
		for (int64_t row = 0; row < rows; row++, all.n += bytes)
			memcpy(all.bytes + all.n, rt_session_row(&r->session, o, row), bytes);
	}
	return all;
}

struct typed {
	struct test_model model;
	const char *math;
	struct test_forest forest;
	struct results expected;
};

/* Whether it gives the same bits as the first run. */
static bool run_typed(struct typed *t, struct option_texts o)
{
	struct test_run r;
	o.math = t->math;
	bool ok = compile_run(&r, &t->model, &o) && open_typed(&r, &t->model) &&
		  run_forest(&r, &t->forest.minibatch);
	if (ok) {
		struct results all = gather(&r, &t->forest);
		ok = all.n == t->expected.n && memcmp(all.bytes, t->expected.bytes, all.n) == 0;
		free(all.bytes);
	}
	end_run(&r);
	return ok;
}

/* --- the oracle --- */

static const void **make_params(const struct typed *t, const struct sub_program *p, struct arena *a)
{
	const void **params = ARENA_ARRAY(a, const void *, p->params.n + 1);
	for (size_t i = 0; i < p->params.n; i++) {
		int64_t n = elements_of(&p->params.at[i]);
		double *buffer = ARENA_ARRAY(a, double, n);
		read_typed((void *)t->model.model, (int)i, 0, n, buffer, NULL);
		params[i] = buffer;
	}
	return params;
}

static int64_t integer_at(enum dtype dtype, const char *from)
{
	int32_t i32;
	int64_t i64;
	if (dtype == DTYPE_BOOL)
		return *from;
	memcpy(&i32, from, sizeof i32);
	if (dtype == DTYPE_I32)
		return i32;
	memcpy(&i64, from, sizeof i64);
	return i64;
}

/* Whether an element is what the oracle says. */
static bool agrees_with(enum dtype dtype, const char *got, double wanted)
{
	float f;
	if (dtype != DTYPE_F32)
		return integer_at(dtype, got) == sub_integer(wanted);
	memcpy(&f, got, sizeof f);
	return fabs(f - wanted) <= 2e-5 * (1 + fabs(wanted)) || (isnan(f) && isnan(wanted));
}

static bool check_output(const struct typed *t, const struct sub_program *p, int o, const double *wanted)
{
	const struct sub_tensor *row = &p->outputs.at[o].row;
	int64_t n = (p->outputs.at[o].at_root ? t->forest.minibatch.forest.inputs : t->forest.nodes) *
		    elements_of(row);
	const char *got = t->expected.bytes + t->expected.begin[o];
	for (int64_t i = 0; i < n; i++, got += dtype_traits_of(row->dtype)->bytes)
		if (!agrees_with(row->dtype, got, wanted[i])) {
			printf("# %s: element %lld differs: %.9g or %lld is wanted\n", row->name,
			       (long long)i, wanted[i], (long long)sub_integer(wanted[i]));
			return false;
		}
	return true;
}

static bool near(const struct typed *t, const struct lin_order *order, struct arena *a)
{
	const struct lin_forest *f = &t->forest.minibatch.forest;
	struct sub_program p;
	struct diags d;
	diags_init(&d, &allocator_default);
	sub_init(&p, a, "oracle");
	bool ok = sub_lower_model(&p, t->model.model, t->model.sizes, SUB_AT_MODEL, &d) && sub_verify(&p, &d);
	print_diags(&d);
	diags_free(&d);
	if (!ok)
		return false;
	double **states = ARENA_ARRAY(a, double *, p.states.n + 1),
	       **outputs = ARENA_ARRAY(a, double *, p.outputs.n + 1);
	for (size_t i = 0; i < p.states.n; i++)
		states[i] = ARENA_ARRAY(a, double, f->nodes *elements_of(&p.states.at[i]));
	for (size_t i = 0; i < p.outputs.n; i++)
		outputs[i] = ARENA_ARRAY(a, double, f->nodes *elements_of(&p.outputs.at[i].row));
	struct sub_forest forest = {f->nodes, f->inputs,    f->child_begin, f->children,
				    f->root,  order->order, t->forest.data, f->input_begin};
	sub_evaluate(&p, &forest, make_params(t, &p, a), states, outputs, a);
	for (size_t o = 0; o < p.outputs.n; o++)
		ok &= check_output(t, &p, (int)o, outputs[o]);
	return ok;
}

static bool is_near(const struct typed *t, const struct lin_order *order)
{
	struct arena a;
	jmp_buf jump;
	arena_init(&a, &allocator_default);
	bool ok = !arena_guard(&a, &jump) && near(t, order, &a);
	arena_free(&a);
	return ok;
}

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* --- one model --- */

static void test_backends(struct typed *t, const char *name)
{
	static size_t turn;
	turn++;
	for (int i = 0; backend_at(i); i++) {
		if (!in_sample(i + turn))
			continue;
		struct option_texts o = {.backend = backend_at(i), .target = "native"};
		tap_ok(run_typed(t, o), "%s: compiled by %s", name, o.backend);
	}
}

static void test_variants(struct typed *t, const char *name)
{
	static size_t turn;
	turn++;
	for (int i = 1; ilir_pass_at(i); i++) {
		if (!in_sample(i + turn))
			continue;
		struct option_texts o = {
		    .backend = "interpreter", .target = "avx2", .last_pass = ilir_pass_at(i)->name};
		tap_ok(run_typed(t, o), "%s: interpreted after %s", name, ilir_pass_at(i)->name);
	}
	test_backends(t, name);
	for (int i = 0; target_at(i); i++) {
		struct option_texts o = {.backend = usual_backend(), .target = target_at(i)->name};
		if (target_runs_here(target_at(i)) && in_sample(i + turn))
			tap_ok(run_typed(t, o), "%s: compiled for %s", name, o.target);
	}
}

static void test_model(struct typed *t, const char *name, void (*test)(struct typed *, const char *))
{
	struct option_texts o = {.backend = "interpreter", .target = "avx2", .math = t->math};
	struct test_run r;
	bool ok = compile_run(&r, &t->model, &o) && open_typed(&r, &t->model);
	if (ok) {
		make_typed_forest(&t->forest, &r.image, 3, 12);
		ok = run_forest(&r, &t->forest.minibatch);
	}
	if (tap_ok(ok, "%s: is interpreted", name)) {
		t->expected = gather(&r, &t->forest);
		tap_ok(is_near(t, &r.session.order), "%s: gives what the oracle says", name);
		test(t, name);
		free(t->expected.bytes);
		free_forest(&t->forest);
	}
	end_run(&r);
}

/* What windows read is the same whether it is copied with a border, stored or read in place. */
static void test_schedules(struct typed *t, const char *name)
{
	static const char *const schedules[] = {"pad off\n", "pad off\nlocal off\nvectorize 8\n", "pad off\nfuse none\nvectorize off\n"};
	for (int i = 0; i < COUNT(schedules); i++)
		for (int b = 0; backend_at(b); b++) {
			struct option_texts o = {.backend = backend_at(b), .target = "native", .schedule = schedules[i]};
			tap_ok(run_typed(t, o), "%s, %s: compiled by %s as schedule %d says", name, t->math, o.backend, i);
		}
	test_backends(t, name);
}

/* The same where rewriting keeps sums as they are written, and where it does not. */
static void test_windows(const char *path, const char *sizes)
{
	static const char *const maths[] = {"exact", "reassociate"};
	for (int i = 0; i < COUNT(maths); i++) {
		struct typed t = {.math = maths[i]};
		if (tap_ok(load_model(&t.model, path, sizes), "%s, %s", path, sizes))
			test_model(&t, path, test_schedules);
		free_model(&t.model);
	}
}

static void test_file(const char *path, const char *sizes)
{
	struct typed t = {0};
	if (tap_ok(load_model(&t.model, path, sizes), "%s", path))
		test_model(&t, path, test_variants);
	free_model(&t.model);
}

/* --- random models --- */

/* A vector of D elements of each type, and the depth that is left.  Floats are multiples of 1/16 of a few
 * digits, since what is compared or rounded must not depend on the order of a sum. */
static void put(struct str *s, enum dtype dtype, int depth, bool inner);

/* The parts that % in a text stands for: f a float, i an i32, l an i64, b a bool. */
static void put_text(struct str *s, const char *text, int depth, bool inner)
{
	for (; *text; text++) {
		if (*text != '%') {
			str_add(s, text, 1);
			continue;
		}
		char type = *++text;
		put(s,
		    type == 'f'	  ? DTYPE_F32
		    : type == 'i' ? DTYPE_I32
		    : type == 'l' ? DTYPE_I64
				  : DTYPE_BOOL,
		    depth - 1, inner);
	}
}

static void put_leaf(struct str *s, enum dtype dtype, bool inner)
{
	static const char *const inputs[][3] = {[DTYPE_F32] = {"x", "(1.5 + zeros(D))", "x"},
						[DTYPE_I32] = {"n", "step", "(7 + zeros(D : i32))"},
						[DTYPE_I64] = {"m", "(zeros(D : i64) - 3000000017)", "m"},
						[DTYPE_BOOL] = {"mask", "n > 3", "mask"}};
	static const char *const children[] = {[DTYPE_F32] = "clamp(sum(k.f for k in children))",
					       [DTYPE_I32] = "sum(k.i for k in children)",
					       [DTYPE_I64] = "max(k.l for k in children)",
					       [DTYPE_BOOL] =
						   "cast(max(cast(k.b, i32) for k in children), bool)"};
	str_puts(s, inner && random_below(2) ? children[dtype] : inputs[dtype][random_below(3)]);
}

static void put(struct str *s, enum dtype dtype, int depth, bool inner)
{
	static const char *const floats[] = {"clamp(%f + %f)",
					     "clamp(%f - %f)",
					     "round(%f)",
					     "floor(%f)",
					     "where(%b, %f, %f)",
					     "maximum(%f, %f)",
					     "minimum(%f, -%f)",
					     "abs(%f)",
					     "clamp(cast(%i, f32))",
					     "clamp(round(A @ (%f)))",
					     "clamp(cast(%l, f32))",
					     "cast(%b, f32)",
					     "clamp(max(%f) + %f)"};
	static const char *const ints[] = {"(%i + %i)",		"(%i - %i)",
					   "(%i * %i)",		"(-%i)",
					   "abs(%i)",		"maximum(%i, %i)",
					   "minimum(%i, %i)",	"where(%b, %i, %i)",
					   "cast(%f * 3, i32)", "cast(%l, i32)",
					   "(M @ (%i))",	"(B @ minimum(maximum(%i, -100), 155))",
					   "(argmax(%f) + %i)", "((argmax(%i) - 1) * %i)",
					   "(sum(%i) + %i)",	"(min(%i) * step)",
					   "cast(%b, i32)",	"concat((%i)[1:], (%i)[:1])"};
	static const char *const longs[] = {
	    "(%l + %l)",     "(%l - %l)",      "(%l * %l)",	  "cast(%i, i64)", "where(%b, %l, -%l)",
	    "cast(%f, i64)", "(max(%l) + %l)", "minimum(%l, %l)", "cast(%b, i64)", "abs(%l)"};
	static const char *const truths[] = {"(%f < %f)", "(%i <= %i)",	    "(%l == %l)",	"(%i != 3)",
					     "(%l > %l)", "(%f >= 0)",	    "(%b and %b)",	"(%b or %b)",
					     "(not %b)",  "cast(%i, bool)", "where(%b, %b, %b)"};
	if (depth <= 0)
		put_leaf(s, dtype, inner);
	else if (dtype == DTYPE_F32)
		put_text(s, floats[random_below(COUNT(floats))], depth, inner);
	else if (dtype == DTYPE_I32)
		put_text(s, ints[random_below(COUNT(ints))], depth, inner);
	else if (dtype == DTYPE_I64)
		put_text(s, longs[random_below(COUNT(longs))], depth, inner);
	else
		put_text(s, truths[random_below(COUNT(truths))], depth, inner);
}

enum { DEPTH = 4 };

static void put_typed_model(struct str *s)
{
	str_puts(s,
		 "model random\nstructure tree(*)\ninput x[D]\ninput n[D] : i32\ninput m[D] : i64\ninput "
		 "mask[D] : bool\n"
		 "param A[D, D]\nparam M[D, D] : i32\nparam B[D, D] : i8\nparam step[D] : i32\n"
		 "state f[D], i[D] : i32, l[D] : i64, b[D] : bool\n"
		 "def clamp(v) = minimum(maximum(v, -9), 9)\n");
	put_text(s,
		 "leaf:\n    f = clamp(round(A @ x) + %f)\n    i = M @ n + B @ minimum(n, 99) + step - %i\n  "
		 "  l = m + %l\n    b "
		 "= mask or %b\n",
		 DEPTH, false);
	put_text(s, "inner:\n    f = %f\n    i = %i\n    l = %l\n    b = %b\n", DEPTH, true);
	str_puts(s,
		 "output floats = f\noutput ints = i\noutput longs = l\noutput truths = b\noutput places = "
		 "argmax(f) at root\n");
}

static void test_random(uint64_t seed)
{
	static const char *const maths[] = {"exact", "reassociate", "fast"};
	struct typed t = {.math = maths[seed % 3]};
	struct arena a;
	jmp_buf jump;
	random_state = seed;
	arena_init(&a, &allocator_default);
	if (!arena_guard(&a, &jump)) {
		struct str text = str_in(&a);
		put_typed_model(&text);
		char name[40];
		snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
		if (!tap_ok(load_text(&t.model, name, str_text(&text), text.n, "D=5"), "%s: is a model",
			    name))
			fputs(str_text(&text), stderr);
		else
			test_model(&t, name, test_backends);
	}
	free_model(&t.model);
	arena_free(&a);
}

/* Seeds that ESPALIER_RANDOM says, FIRSTxCOUNT, or some that are always the same. */
int main(void)
{
	const char *text = getenv("ESPALIER_RANDOM");
	unsigned long long first = 1, count = SHADOWED ? 3 : 12;
	random_state = 7;
	test_file("tests/models/types.ra", "D=9 V=7 K=5");
	test_file("tests/models/dots.ra", "K=22 N=19");
	test_file("tests/models/dots.ra", "K=1 N=33");
	test_file("tests/models/dots.ra", "K=40 N=16");
	test_file("tests/golden/bytes.ra", "C=5 H=7 K=18");
	test_file("tests/models/byte_windows.ra", "K=19 H=9 M=18 L=37 N=21");
	test_file("tests/models/byte_windows.ra", "K=32 H=10 M=16 L=64 N=32");
	test_file("tests/models/borders.ra", "N=9");
	test_windows("tests/models/borders.ra", "N=6");
	test_windows("tests/models/borders.ra", "N=19");
	test_windows("tests/models/outside_sums.ra", "N=2");
	test_file("tests/models/integer_borders.ra", "N=5 L=8");
	test_file("tests/models/integer_borders.ra", "N=7 L=37");
	test_file("tests/models/types.ra", "D=1 V=1 K=1");
	test_file("tests/models/types.ra", "D=16 V=30 K=8");
	test_file("tests/ra/good/types.ra", "D=17 V=30 K=6");
	test_file("tests/models/choices.ra", "D=64 V=30");
	test_file("tests/models/mixedgates.ra", "D=17");
	test_file("tests/models/edgekinds.ra", "D=9 V=7");
	test_file("tests/models/numbered.ra", "D=9");
	if (text)
		sscanf(text, "%llux%llu", &first, &count);
	for (unsigned long long seed = first; seed < first + count; seed++)
		test_random(seed);
	skip_backends();
	return tap_done();
}
