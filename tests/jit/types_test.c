/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Random loop programs over all types and operators: what each back end makes of them leaves the same bytes
 * as the interpreter.  types_test [PROGRAMS [RUNS of each [FIRST]]]; in make check a few.
 *
 * The interpreter takes each program as it is, the back ends after expand_math.  Which NaN comes out of
 * arithmetic is the processor's affair: before its bits are looked at, a NaN that may come from there is
 * replaced by one that does not. */
#include "ilir/passes.h"
#include "ilir/spelling.h"
#include "tests/floats.h"
#include "tests/jit/helper.h"

enum { ROWS_ALL = 64, MODULE = 20, STATEMENTS = 4, DEPTH = 5, MEMORY_TYPES = ILIR_INDEX };

/* --- what can be drawn --- */

static const struct row {
	enum ilir_op op;
	enum ilir_dtype operand, result;
} rows[] = {
#define ILIR_ROW(name, operand, result, expression) {ILIR_##name, ILIR_##operand, ILIR_##result},
#define ILIR_OP(name, spelling, arity, rule, meaning, ...) __VA_ARGS__
#include "ilir/ilir_ops.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % below;
}

struct program {
	struct fixture *f;
	ilir_buffer in[MEMORY_TYPES], out[MEMORY_TYPES];
	ilir_buffer reg[ILIR_DTYPES]; /* of the kernel at hand: two vectors; none: not stored to yet */
	VEC(ilir_var) let;
	VEC(bool) pure; /* by variable of `let` */
	ilir_var n;
	int lanes, words;
	bool drawn[N_ROWS];
};

/* --- NaNs --- */

/* Whether the bits of a float are the same on all machines. */
static bool is_pure(const struct program *p, ilir_expr e)
{
	const struct ilir_module *m = &p->f->m;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->type.dtype != ILIR_F32)
		return true;
	for (size_t i = 0; n->op == ILIR_VAR && i < p->let.n; i++)
		if (p->let.at[i].i == n->var.i)
			return p->pure.at[i];
	switch (n->op) {
	case ILIR_CONST_F:
	case ILIR_LOAD:
	case ILIR_TO_F32:
	case ILIR_AS_F32:
		return true;
	case ILIR_NEG:
	case ILIR_MAX:
	case ILIR_MIN:
	case ILIR_ROUND:
	case ILIR_FLOOR:
	case ILIR_SELECT:
	case ILIR_BROADCAST:
		for (int i = 0; i < n->args; i++)
			if (!is_pure(p, ilir_arg(m, e, i)))
				return false;
		return true;
	default:
		return false;
	}
}

static ilir_expr purified(struct program *p, ilir_expr e)
{
	struct ilir_module *m = &p->f->m;
	if (is_pure(p, e))
		return e;
	int lanes = ilir_type_of(m, e).lanes;
	ilir_expr nan = ilir_float(m, NAN);
	nan = lanes > 1 ? ilir_spread(m, ILIR_BROADCAST, nan, lanes) : nan;
	return ilir_ternary(m, ILIR_SELECT, ilir_binary(m, ILIR_EQ, e, e), e, nan);
}

/* --- expressions --- */

static float draw_float(void)
{
	static const float special[] = {0.0f,	  -0.0f,    1.0f,     -1.5f,	0.5f,	   2.5f,  -3.5f,
					1e-40f,	  65504.0f, 65520.0f, INFINITY, -INFINITY, NAN,	  0x1p31f,
					-0x1p31f, 0x1p63f,  -0x1p63f, 300.0f,	0x1p23f,   100.7f};
	return draw(2) ? special[draw(sizeof special / sizeof *special)] : from_bits(draw(UINT32_MAX)) * 1.0f;
}

static int64_t draw_integer(void)
{
	static const int64_t special[] = {0,	   1,	  -1,	     2,		127,
					  128,	   -128,  -129,	     255,	256,
					  32767,   32768, -32769,    INT32_MAX, INT32_MIN,
					  1 << 20, -7,	  INT64_MAX, INT64_MIN, (int64_t)1 << 40};
	return draw(3) ? special[draw(sizeof special / sizeof *special)]
		       : (int64_t)draw(UINT32_MAX) << draw(32);
}

static ilir_expr constant(struct program *p, enum ilir_dtype t)
{
	struct ilir_module *m = &p->f->m;
	switch (t) {
	case ILIR_F32:
		return ilir_float(m, draw_float());
	case ILIR_I32:
		return ilir_i32(m, (int32_t)draw_integer());
	case ILIR_I64:
		return ilir_i64(m, draw_integer());
	case ILIR_BOOL:
		return ilir_bool(m, draw(2));
	default:
		return ilir_index(m, (int64_t)draw(2000) - 1000);
	}
}

static ilir_expr draw_expr(struct program *p, enum ilir_dtype t, int lanes, int depth);

static ilir_expr draw_load(struct program *p, enum ilir_dtype t, int lanes)
{
	struct ilir_module *m = &p->f->m;
	ilir_expr n = ilir_var_ref(m, p->n), at = n;
	if (p->reg[t].i && draw(3) == 0) {
		at = ilir_index(m, draw(2) * p->lanes);
		at = lanes > 1 ? ilir_spread(m, ILIR_RAMP, at, lanes) : at;
		return ilir_load(m, p->reg[t], &at, 1);
	}
	if (lanes > 1)
		at = ilir_spread(m, ILIR_RAMP, n, lanes);
	else if (draw(2))
		at = ilir_index(m, draw(ROWS_ALL));
	return ilir_load(m, p->in[t], &at, 1);
}

/* Four bytes of memory, from anywhere or from the first element of a vector on. */
static ilir_expr draw_word(struct program *p)
{
	struct ilir_module *m = &p->f->m;
	ilir_expr at = p->lanes >= 4 && draw(2) ? ilir_var_ref(m, p->n) : ilir_index(m, draw(ROWS_ALL - 3));
	at = ilir_ramp(m, at, 4, 1);
	p->words++;
	return ilir_unary(m, ILIR_WORD, ilir_load(m, p->in[draw(2) ? ILIR_U8 : ILIR_I8], &at, 1));
}

static ilir_expr leaf(struct program *p, enum ilir_dtype t, int lanes)
{
	struct ilir_module *m = &p->f->m;
	bool constants = t == ILIR_F32 || t == ILIR_I32 || t == ILIR_I64 || t == ILIR_BOOL || t == ILIR_INDEX;
	for (size_t i = 0; i < p->let.n; i++)
		if (ilir_same_type(m->vars.at[p->let.at[i].i].type, (struct ilir_type){t, lanes}) && draw(2))
			return ilir_var_ref(m, p->let.at[i]);
	if (lanes > 1 && (t == ILIR_INDEX || draw(5) == 0))
		return ilir_spread(m, ILIR_BROADCAST, leaf(p, t, 1), lanes);
	if (t == ILIR_INDEX)
		return draw(2) ? constant(p, t) : ilir_var_ref(m, p->n);
	if (constants && draw(4) == 0) {
		ilir_expr c = constant(p, t);
		return lanes > 1 ? ilir_spread(m, ILIR_BROADCAST, c, lanes) : c;
	}
	return t == ILIR_I32 && lanes == 1 && draw(2) ? draw_word(p) : draw_load(p, t, lanes);
}

static ilir_expr spread_word(struct ilir_module *m, int32_t word, int lanes)
{
	return lanes > 1 ? ilir_spread(m, ILIR_BROADCAST, ilir_i32(m, word), lanes) : ilir_i32(m, word);
}

static ilir_expr operator_of(struct program *p, const struct row *row, int lanes, int depth)
{
	struct ilir_module *m = &p->f->m;
	enum ilir_op op = row->op;
	enum ilir_dtype t = row->operand;
	bool shift = op == ILIR_SHL || op == ILIR_SHR || op == ILIR_ROUND_SHR,
	     quotient = op == ILIR_DIV || op == ILIR_MOD;
	ilir_expr a[3];
	for (int i = 0; i < ilir_op_arity(op); i++)
		a[i] = draw_expr(p, i == 2 && op == ILIR_DOT_BF16 ? ILIR_F32 : t, lanes, depth - 1);
	if (shift)
		a[1] = t == ILIR_I32 ? ilir_i32(m, draw(32)) : ilir_i64(m, draw(64));
	else if (quotient || (op == ILIR_MUL && t == ILIR_INDEX))
		a[1] = ilir_index(m, 1 + draw(40));
	if (lanes > 1 && ilir_type_of(m, a[ilir_op_arity(op) - 1]).lanes == 1)
		a[1] = ilir_spread(m, ILIR_BROADCAST, a[1], lanes);
	for (int i = 0; i < 3 && op == ILIR_FMA_F16; i++) /* below 2, so that no NaN comes out */
		a[i] = ilir_binary(m, ILIR_BIT_AND, a[i], spread_word(m, (int32_t)0xbfffbfff, lanes));
	if (op == ILIR_AS_I32 || op == ILIR_TO_F16 || op == ILIR_TO_BF16)
		a[0] = purified(p, a[0]);
	switch (ilir_op_arity(op)) {
	case 1:
		return ilir_unary(m, op, a[0]);
	case 2:
		return ilir_binary(m, op, a[0], a[1]);
	default:
		return ilir_ternary(m, op, a[0], a[1], a[2]);
	}
}

/* Indices must not overflow: what they are made of is small. */
static bool is_fit(const struct row *row, enum ilir_dtype t, int lanes)
{
	bool quotient = row->op == ILIR_DIV || row->op == ILIR_MOD;
	return row->result == t && !(quotient && lanes > 1) &&
	       !(row->op == ILIR_TO_INDEX && row->operand == ILIR_I64);
}

static ilir_expr draw_expr(struct program *p, enum ilir_dtype t, int lanes, int depth)
{
	if (t == ILIR_INDEX && depth > 2)
		depth = 2;
	if (depth <= 0 || draw(8) == 0)
		return leaf(p, t, lanes);
	if (draw(6) == 0)
		return ilir_ternary(&p->f->m, ILIR_SELECT, draw_expr(p, ILIR_BOOL, lanes, depth - 1),
				    draw_expr(p, t, lanes, depth - 1), draw_expr(p, t, lanes, depth - 1));
	for (uint32_t i = draw(N_ROWS), tried = 0; tried < N_ROWS; i = (i + 1) % N_ROWS, tried++)
		if (is_fit(&rows[i], t, lanes) && draw(3) == 0) {
			p->drawn[i] = true;
			return operator_of(p, &rows[i], lanes, depth);
		}
	return leaf(p, t, lanes);
}

/* --- programs --- */

static struct ilir_stmt *draw_let(struct program *p)
{
	struct ilir_module *m = &p->f->m;
	ilir_expr value = draw_expr(p, draw(ILIR_DTYPES), draw(3) ? p->lanes : 1, DEPTH);
	ilir_var v = ilir_new_var(m, "v", ilir_type_of(m, value));
	struct ilir_stmt *s = ilir_let(m, v, value);
	vec_push(&p->f->arena, &p->pure, is_pure(p, value));
	vec_push(&p->f->arena, &p->let, v);
	return s;
}

/* A register of two vectors. */
static struct ilir_stmt *draw_register(struct program *p)
{
	struct ilir_module *m = &p->f->m;
	enum ilir_dtype t = draw(ILIR_DTYPES);
	if (p->reg[t].i)
		return draw_let(p);
	ilir_buffer r = buffer_of(p->f, "r", ILIR_REGISTER, t, EXTENTS(2 * p->lanes));
	struct ilir_stmt *s = ilir_alloc(m, r);
	for (int i = 0; i < 2; i++) {
		ilir_expr at = ilir_index(m, i * p->lanes);
		at = p->lanes > 1 ? ilir_spread(m, ILIR_RAMP, at, p->lanes) : at;
		ilir_append(s, ilir_store(m, r, &at, 1, purified(p, draw_expr(p, t, p->lanes, DEPTH - 1))));
	}
	p->reg[t] = r;
	return s;
}

static struct ilir_stmt *draw_store(struct program *p, enum ilir_dtype t)
{
	struct ilir_module *m = &p->f->m;
	ilir_expr at = ilir_var_ref(m, p->n);
	if (p->lanes > 1)
		at = ilir_spread(m, ILIR_RAMP, at, p->lanes);
	return ilir_store(m, p->out[t], &at, 1, purified(p, draw_expr(p, t, p->lanes, DEPTH)));
}

static void draw_program(struct program *p, int number)
{
	static const int lanes[] = {1, 4, 8, 16};
	struct str name = str_in(&p->f->arena);
	struct ilir_stmt *body = NULL;
	p->let.n = p->pure.n = 0;
	p->lanes = lanes[draw(4)];
	p->n = index_var(p->f, "n");
	memset(p->reg, 0, sizeof p->reg);
	for (int i = 0; i < STATEMENTS; i++) {
		body = ilir_append(body, draw(2) ? draw_let(p) : draw_register(p));
		body = ilir_append(body, draw_store(p, draw(MEMORY_TYPES)));
	}
	str_printf(&name, "program.%d", number);
	kernel(p->f, str_text(&name), over_rows(p->f, p->n, p->lanes, body));
}

static void draw_module(struct program *p, struct fixture *f)
{
	p->f = f;
	ilir_dim_name(&f->m, "row");
	p->let.at = NULL;
	p->pure.at = NULL;
	memset(&p->let, 0, sizeof p->let);
	memset(&p->pure, 0, sizeof p->pure);
	for (int t = 0; t < MEMORY_TYPES; t++) {
		p->in[t] = buffer_of(f, "in", IMAGE_VECTOR, t, EXTENTS(ROWS));
		p->out[t] = buffer_of(f, "out", IMAGE_OUTPUT, t, EXTENTS(ROWS));
	}
	for (int i = 0; i < MODULE; i++)
		draw_program(p, i);
}

/* --- runs --- */

struct memory {
	_Alignas(64) char at[2 * MEMORY_TYPES][ROWS_ALL * 8];
};

static void fill_memory(struct memory *to)
{
	for (int t = 0; t < MEMORY_TYPES; t++) {
		char *in = to->at[2 * t];
		for (int i = 0; i < ROWS_ALL; i++) {
			int64_t integer = draw(2) ? draw_integer() : (int64_t)draw(UINT32_MAX);
			float f = draw(2) ? draw_float() : (float)((int)draw(2000) - 1000) / 8;
			int bytes = ilir_bytes(t);
			if (t == ILIR_F32)
				memcpy(in + i * bytes, &f, bytes);
			else if (t == ILIR_BOOL)
				in[i] = draw(2);
			else
				memcpy(in + i * bytes, &integer, bytes);
		}
		memset(to->at[2 * t + 1], 0x55, sizeof to->at[0]);
	}
}

static void point(struct memory *m, void **buffers)
{
	for (int i = 0; i < 2 * MEMORY_TYPES; i++)
		buffers[i] = m->at[i];
}

static void report(struct program *p, const struct memory *wanted, const struct memory *got, int k)
{
	struct str s = str_in(&p->f->arena);
	for (int t = 0; t < MEMORY_TYPES; t++)
		for (int i = 0, bytes = ilir_bytes(t); i < ROWS_ALL; i++) {
			uint64_t a = 0, b = 0;
			memcpy(&a, wanted->at[2 * t + 1] + i * bytes, bytes);
			memcpy(&b, got->at[2 * t + 1] + i * bytes, bytes);
			if (a != b) {
				printf("# type %d row %d: %llx, wanted %llx\n", t, i, (unsigned long long)b,
				       (unsigned long long)a);
				break;
			}
		}
	struct ilir_module one = p->f->m;
	one.kernels.at += k;
	one.kernels.n = 1;
	ilir_print(&one, &s);
	for (const char *line = strtok(s.text, "\n"); line; line = strtok(NULL, "\n"))
		printf("# %s\n", line);
}

struct count {
	long programs, runs, differences, words;
	bool drawn[N_ROWS];
};

static void run_module(struct program *p, struct ilir_interpreter *r, const struct image_code *code, int runs,
		       struct count *count)
{
	static struct memory interpreted, compiled;
	int64_t sizes[IMAGE_SIZES] = {[IMAGE_ONE] = 1, [IMAGE_NODES] = ROWS_ALL};
	void *ours[2 * MEMORY_TYPES], *theirs[2 * MEMORY_TYPES];
	point(&interpreted, ours);
	point(&compiled, theirs);
	struct image_frame frame = {ours, sizes};
	for (int k = 0; k < MODULE; k++) {
		bool same = true;
		for (int i = 0; i < runs && same; i++, count->runs++) {
			fill_memory(&interpreted);
			compiled = interpreted;
			same = ilir_interpret(r, k, &frame, &(struct image_range){0, ROWS_ALL, 0, 1, 1},
					      &p->f->diags);
			code->kernels[k](theirs, 0, ROWS_ALL, 0, 1, 1);
			same = same && memcmp(&interpreted, &compiled, sizeof compiled) == 0;
		}
		count->programs++;
		if (!same && count->differences++ < 3)
			report(p, &interpreted, &compiled, k);
	}
}

/* For a machine that is not this one. */
static bool compile_only(struct fixture *f, const char *target)
{
	struct jit_options o = {.target = target_find(target)};
	struct jit_objects objects;
	struct image_blob blob;
	bool ok = jit_compile(f->backend, &f->m, &o, (struct jit_threads){.most = 2}, &f->arena, &objects,
			      &f->diags) &&
		  link_objects(f, &objects, &blob);
	show_diags(&f->diags);
	return ok;
}

/* A module of programs, compiled for a target; false: not even that. */
static bool try_module(const char *target, bool native, uint64_t seed, int runs, struct count *count)
{
	struct fixture f;
	struct image_code code;
	static struct program p;
	if (!fixture_init(&f, "types"))
		return false;
	state = seed * 0x9e3779b97f4a7c15u | 1;
	for (int i = 0; i < 8; i++)
		draw(2);
	p = (struct program){0};
	draw_module(&p, &f);
	struct ilir_interpreter *r = ilir_interpreter_new(&f.arena, &f.m);
	bool ok = ilir_verify(&f.m, 0, "drawing", &f.diags);
	ilir_expand_math(&f.m, NULL);
	ok = ok && ilir_verify(&f.m, ILIR_PRIMITIVE, "expand_math", &f.diags);
	if (!ok)
		show_diags(&f.diags);
	bool here = target_runs_here(target_find(target));
	ok = ok && (here ? compile_for(&f, target, native, &code) : compile_only(&f, target));
	if (ok && here) {
		run_module(&p, r, &code, runs, count);
		code.release(&code);
	}
	count->words += p.words;
	for (int i = 0; i < N_ROWS; i++)
		count->drawn[i] |= p.drawn[i];
	fixture_free(&f);
	return ok;
}

/* --- vectors --- */

/* out[n..] = f32 of what a type widens to, 16 lanes: written lane by lane, the code would be many times as
 * long. */
static void widens(const char *target, enum ilir_dtype t, int64_t most)
{
	struct fixture f;
	struct jit_objects objects;
	struct image_blob blob;
	struct jit_options o = {.target = target_find(target)};
	if (!fixture_init(&f, "widening"))
		return;
	ilir_dim_name(&f.m, "row");
	ilir_buffer in = buffer_of(&f, "in", IMAGE_VECTOR, t, EXTENTS(ROWS)),
		    out = buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(&f, "n");
	ilir_expr at = ramp(&f, ref(&f, n), 16), value = ilir_load(&f.m, in, &at, 1);
	if (t != ILIR_F16 && t != ILIR_BF16)
		value = ilir_unary(&f.m, ILIR_TO_I32, value);
	value = ilir_unary(&f.m, ILIR_TO_F32, value);
	kernel(&f, "widen", over_rows(&f, n, 16, ilir_store(&f.m, out, &at, 1, value)));
	bool ok =
	    jit_compile(f.backend, &f.m, &o, (struct jit_threads){.most = 1}, &f.arena, &objects, &f.diags) &&
	    link_objects(&f, &objects, &blob);
	show_diags(&f.diags);
	tap_ok(ok && blob.function->bytes < most, "%s: %s is widened in vectors, in %ld bytes of code",
	       target, ilir_dtype_word[t], ok ? (long)blob.function->bytes : -1);
	fixture_free(&f);
}

static void widen_all(void)
{
	static const char *const targets[] = {"avx2", "avx512"};
	static const enum ilir_dtype types[] = {ILIR_F16, ILIR_BF16, ILIR_I8, ILIR_U8, ILIR_I16};
	for (int i = 0; i < 2; i++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			widens(targets[i], types[t], 100);
}

static int programs = 2 * MODULE, runs_of_each = 8;
static uint64_t first_seed = 1;

static void try_target(const char *target, bool native)
{
	struct count count = {0};
	bool ok = true;
	for (int i = 0; i < programs / MODULE && ok; i++)
		ok = try_module(target, native, first_seed + i, runs_of_each, &count);
	tap_ok(ok, "%s: programs of all types compile", target);
	tap_ok(count.words > 0, "%s: %ld words of bytes among them", target, count.words);
	tap_ok(!count.differences, "%s: %ld programs run as interpreted, %ld times", target, count.programs,
	       count.runs);
}

static void test_all(void)
{
	widen_all();
	try_target("generic", false);
	try_target("avx2", false);
	try_target("avx512", false);
	try_target("native", true);
	if (strcmp(backend_name, "llvm") == 0)
		try_target("aarch64", false);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		programs = atoi(argv[1]);
	if (argc > 2)
		runs_of_each = atoi(argv[2]);
	if (argc > 3)
		first_seed = strtoull(argv[3], NULL, 10);
	return over_backends(test_all);
}
