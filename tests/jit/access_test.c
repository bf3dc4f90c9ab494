/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores, registers, loops, branches: small kernels against the same in C. */
#include "tests/jit/helper.h"

#include <sys/mman.h>
#include <unistd.h>

enum { N = 37, D = 24 };

typedef void build_fn(struct fixture *);
typedef void check_fn(image_kernel *);

/* --- y[n, :] = a[] * x[n, :] + y[n, :], in vectors over a padded row --- */

static void build_axpy(struct fixture *f)
{
	ilir_buffer a = buffer_of(f, "a", IMAGE_WEIGHT, ILIR_F32, 0, NULL);
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS, D));
	ilir_buffer y = buffer_of(f, "y", IMAGE_STATE, ILIR_F32, EXTENTS(ROWS, D));
	ilir_var n = index_var(f, "n"), k = index_var(f, "k");
	ilir_expr at[] = {ref(f, n), ramp(f, ref(f, k), 8)};
	ilir_expr value = ilir_ternary(&f->m, ILIR_FMA, splat(f, ilir_load(&f->m, a, NULL, 0), 8),
				       ilir_load(&f->m, x, at, 2), ilir_load(&f->m, y, at, 2));
	kernel(f, "axpy",
	       over_rows(f, n, 1, loop(f, k, num(f, 0), num(f, D), 8, ilir_store(&f->m, y, at, 2, value))));
}

/* Begin and end in the middle; rows outside must stay. */
static void check_axpy(image_kernel *run)
{
	float a = 1.7f, *x = aligned(N * D * 4), *y = aligned(N * D * 4), *z = aligned(N * D * 4);
	fill(x, N * D, 1);
	fill(y, N * D, 2);
	memcpy(z, y, N * D * 4);
	run((void *[]){&a, x, y}, 3, N - 2, 0, 1, 1);
	for (int i = 3 * D; i < (N - 2) * D; i++)
		z[i] = __builtin_fmaf(a, x[i], z[i]);
	tap_ok(memcmp(y, z, N * D * 4) == 0, "axpy: rows of the range, and no others");
	run((void *[]){&a, x, y}, 5, 5, 0, 1, 1);
	run((void *[]){&a, x, y}, 6, 5, 0, 1, 1);
	tap_ok(memcmp(y, z, N * D * 4) == 0, "axpy: an empty range does nothing");
	free(x);
	free(y);
	free(z);
}

/* --- out[n] = sum of x over a node's children, whose bounds are read from an array --- */

static void build_ragged(struct fixture *f)
{
	ilir_buffer begin = buffer_of(f, "child_begin", IMAGE_CHILD_BEGIN, ILIR_I32, EXTENTS(ROWS));
	ilir_buffer list = buffer_of(f, "child", IMAGE_CHILD_LIST, ILIR_I32, EXTENTS(ROWS));
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer acc = buffer_of(f, "acc", ILIR_REGISTER, ILIR_F32, 0, NULL);
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(f, "n"), e = index_var(f, "e"), c = index_var(f, "c");
	ilir_expr sum = ilir_load(&f->m, acc, NULL, 0);
	ilir_expr from = ilir_load_index(&f->m, begin, INDICES(ref(f, n)));
	ilir_expr to = ilir_load_index(&f->m, begin, INDICES(plus(f, ref(f, n), num(f, 1))));
	struct ilir_stmt *add = ilir_let(&f->m, c, ilir_load_index(&f->m, list, INDICES(ref(f, e))));
	ilir_append(add,
		    ilir_store(&f->m, acc, NULL, 0, plus(f, sum, ilir_load(&f->m, x, INDICES(ref(f, c))))));
	struct ilir_stmt *body = ilir_alloc(&f->m, acc);
	ilir_append(body, ilir_store(&f->m, acc, NULL, 0, ilir_float(&f->m, 0)));
	ilir_append(body, loop(f, e, from, to, 1, add));
	ilir_append(body, ilir_store(&f->m, out, INDICES(ref(f, n)), sum));
	kernel(f, "ragged", over_rows(f, n, 1, body));
}

static void check_ragged(image_kernel *run)
{
	int32_t begin[] = {0, 2, 2, 5, 6}, list[] = {3, 1, 0, 0, 2, 3};
	float x[] = {1, 10, 100, 1000}, out[4] = {-1, -1, -1, -1}, expected[] = {1010, 0, 102, 1000};
	run((void *[]){begin, list, x, out}, 0, 4, 0, 1, 1);
	tap_ok(memcmp(out, expected, sizeof out) == 0, "ragged: sums of two, none, three and one");
}

/* --- registers: vectors stored, single lanes and other widths loaded, and a swap through let --- */

static void build_registers(struct fixture *f)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer r = buffer_of(f, "r", ILIR_REGISTER, ILIR_F32, EXTENTS(2, 8));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var old = ilir_new_var(&f->m, "old", (struct ilir_type){ILIR_F32, 1});
	ilir_expr wide = ramp(f, num(f, 0), 8), single[] = {num(f, 0), num(f, 3)},
		  other[] = {num(f, 1), num(f, 5)};
	ilir_expr four[] = {num(f, 0), ramp(f, num(f, 2), 4)};
	struct ilir_stmt *s = ilir_alloc(&f->m, r);
	for (int i = 0; i < 2; i++)
		ilir_append(s, ilir_store(&f->m, r, INDICES(num(f, i), wide),
					  ilir_load(&f->m, x, INDICES(ramp(f, num(f, 8 * i), 8)))));
	ilir_append(s, ilir_let(&f->m, old, ilir_load(&f->m, r, single, 2)));
	ilir_append(s, ilir_store(&f->m, r, single, 2, ilir_load(&f->m, r, other, 2)));
	ilir_append(s, ilir_store(&f->m, r, other, 2, ref(f, old)));
	ilir_append(s, ilir_store(&f->m, out, INDICES(ramp(f, num(f, 0), 4)), ilir_load(&f->m, r, four, 2)));
	ilir_append(s, ilir_store(&f->m, r, four, 2, splat(f, ilir_float(&f->m, 9), 4)));
	for (int i = 0; i < 2; i++)
		ilir_append(s, ilir_store(&f->m, out, INDICES(ramp(f, num(f, 4 + 8 * i), 8)),
					  ilir_load(&f->m, r, INDICES(num(f, i), wide))));
	ilir_append(s, ilir_store(&f->m, out, INDICES(num(f, 20)), ilir_load(&f->m, r, single, 2)));
	kernel(f, "registers", s);
}

static void check_registers(image_kernel *run)
{
	float x[16], out[21],
	    expected[21] = {2, 13, 4, 5, 0, 1, 9, 9, 9, 9, 6, 7, 8, 9, 10, 11, 12, 3, 14, 15, 9};
	for (int i = 0; i < 16; i++)
		x[i] = i;
	run((void *[]){x, out}, 0, 1, 0, 1, 1);
	tap_ok(memcmp(out, expected, sizeof out) == 0,
	       "registers: lanes, parts and whole vectors of one register");
}

/* --- a parked register, of which variables select rows and single elements --- */

enum { PARKED_ROWS = 5, PARKED_LANES = 8 };

static void build_parked(struct fixture *f)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS, PARKED_LANES));
	ilir_buffer r = buffer_of(f, "r", ILIR_REGISTER, ILIR_F32, EXTENTS(PARKED_ROWS, PARKED_LANES));
	ilir_buffer which = buffer_of(f, "which", ILIR_REGISTER, ILIR_INDEX, EXTENTS(PARKED_ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS, PARKED_LANES));
	ilir_var i = index_var(f, "i"), k = index_var(f, "k"), l = index_var(f, "l");
	ilir_expr lanes = ramp(f, num(f, 0), PARKED_LANES), last = num(f, PARKED_ROWS - 1);
	ilir_buffer_at(&f->m, r)->parked = ilir_buffer_at(&f->m, which)->parked = true;
	struct ilir_stmt *fill = ilir_store(&f->m, r, INDICES(ref(f, i), lanes), ilir_load(&f->m, x, INDICES(ref(f, i), lanes)));
	ilir_append(fill, ilir_store(&f->m, which, INDICES(ref(f, i)), ilir_binary(&f->m, ILIR_SUB, last, ref(f, i))));
	ilir_expr single[] = {ref(f, k), num(f, 3)}, selected = ilir_load(&f->m, which, INDICES(ref(f, k)));
	struct ilir_stmt *change = ilir_store(&f->m, r, single, 2, plus(f, ilir_load(&f->m, r, single, 2), ilir_float(&f->m, 100)));
	struct ilir_stmt *copy = ilir_store(&f->m, out, INDICES(ref(f, l), lanes),
					    ilir_load(&f->m, r, INDICES(ilir_substitute(&f->m, selected, k, ref(f, l)), lanes)));
	struct ilir_stmt *s = ilir_append(ilir_alloc(&f->m, r), ilir_alloc(&f->m, which));
	ilir_append(s, loop(f, i, num(f, 0), num(f, PARKED_ROWS), 1, fill));
	ilir_append(s, loop(f, k, num(f, 0), num(f, PARKED_ROWS), 1, change));
	kernel(f, "parked", ilir_append(s, loop(f, l, num(f, 0), num(f, PARKED_ROWS), 1, copy)));
}

static void check_parked(image_kernel *run)
{
	float x[PARKED_ROWS][PARKED_LANES], out[PARKED_ROWS][PARKED_LANES];
	bool good = true;
	fill(x[0], PARKED_ROWS * PARKED_LANES, 3);
	run((void *[]){x, out}, 0, 1, 0, 1, 1);
	for (int i = 0; i < PARKED_ROWS; i++)
		for (int l = 0; l < PARKED_LANES; l++)
			good &= out[i][l] == x[PARKED_ROWS - 1 - i][l] + (l == 3 ? 100 : 0);
	tap_ok(good, "parked: rows and elements of a register that variables select");
}

/* --- branches: if with both sides, a concatenation whose other side would be out of bounds --- */

static void build_branches(struct fixture *f)
{
	ilir_buffer b = buffer_of(f, "b", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(f, "n");
	int64_t far = (int64_t)1 << 40;
	ilir_expr i = ref(f, n), first = ilir_binary(&f->m, ILIR_LT, i, num(f, 4)), at[] = {i};
	ilir_expr away = plus(f, ilir_binary(&f->m, ILIR_MUL, i, num(f, far)), num(f, -4 * far));
	ilir_expr right = ilir_load(&f->m, b, &away, 1);
	ilir_expr joined = ilir_ternary(&f->m, ILIR_SELECT, first, ilir_float(&f->m, 3),
					ilir_binary(&f->m, ILIR_MUL, right, right));
	ilir_expr odd = ilir_binary(&f->m, ILIR_EQ, ilir_binary(&f->m, ILIR_MOD, i, num(f, 2)), num(f, 1));
	struct ilir_stmt *negate =
	    ilir_store(&f->m, out, at, 1, ilir_unary(&f->m, ILIR_NEG, ilir_load(&f->m, out, at, 1)));
	struct ilir_stmt *twice = ilir_store(
	    &f->m, out, at, 1, plus(f, ilir_load(&f->m, out, at, 1), ilir_load(&f->m, out, at, 1)));
	struct ilir_stmt *body = ilir_store(&f->m, out, at, 1, joined);
	ilir_append(body, ilir_if(&f->m, odd, negate, twice));
	ilir_append(body, ilir_if(&f->m, ilir_binary(&f->m, ILIR_EQ, i, num(f, 2)),
				  ilir_store(&f->m, out, at, 1, ilir_float(&f->m, 7)), NULL));
	kernel(f, "branches", over_rows(f, n, 1, body));
}

static void check_branches(image_kernel *run)
{
	float b[1] = {5}, out[5], expected[] = {6, -3, 7, -3, 50};
	run((void *[]){b, out}, 0, 5, 0, 1, 1);
	tap_ok(memcmp(out, expected, sizeof out) == 0,
	       "branches: if, else, and the chosen side of a select only");
}

/* --- an access whose vector index is a broadcast; i32 in vectors; stores seen by later loads --- */

static void build_mixed(struct fixture *f)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer tokens = buffer_of(f, "tokens", IMAGE_TOKEN, ILIR_I32, EXTENTS(ROWS));
	ilir_buffer s = buffer_of(f, "s", IMAGE_SCRATCH, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	ilir_var n = index_var(f, "n");
	ilir_expr four = ramp(f, num(f, 0), 4), zero = num(f, 0), eight = ramp(f, num(f, 4), 4);
	ilir_expr three = splat(f, ilir_load(&f->m, x, INDICES(num(f, 3))), 4);
	ilir_expr same = ilir_load(&f->m, x, INDICES(splat(f, num(f, 3), 4)));
	ilir_expr limit = splat(f, num(f, 1), 4), loaded = ilir_load_index(&f->m, tokens, &four, 1);
	struct ilir_stmt *body = ilir_store(&f->m, out, &four, 1, plus(f, three, same));
	ilir_append(body,
		    ilir_store(&f->m, out, &eight, 1,
			       ilir_ternary(&f->m, ILIR_SELECT, ilir_binary(&f->m, ILIR_LT, loaded, limit),
					    same, splat(f, ilir_float(&f->m, -1), 4))));
	ilir_append(body, ilir_store(&f->m, s, &zero, 1, ilir_float(&f->m, 0)));
	ilir_append(body,
		    over_rows(f, n, 1,
			      ilir_store(&f->m, s, &zero, 1,
					 plus(f, ilir_load(&f->m, s, &zero, 1), ilir_float(&f->m, 1)))));
	ilir_append(body, ilir_store(&f->m, out, INDICES(num(f, 8)), ilir_load(&f->m, s, &zero, 1)));
	kernel(f, "mixed", body);
}

static void check_mixed(image_kernel *run)
{
	float x[] = {0, 1, 2, 3}, s[1], out[9], expected[] = {6, 6, 6, 6, -1, 3, 3, -1, 11};
	int32_t tokens[] = {5, -5, 0, 1};
	run((void *[]){x, tokens, s, out}, 0, 11, 0, 1, 1);
	tap_ok(memcmp(out, expected, sizeof out) == 0,
	       "mixed: broadcast indices, i32 vectors, memory as an accumulator");
}

/* --- swept loops: out[n, i .. i+7] gets how often the block ran before, and when --- */

enum { BLOCKS = 6, FIRST = 3 };

/* The blocks are iterations of an outer loop, each with so many of an inner one. */
static void build_blocks(struct fixture *f, int inner)
{
	ilir_buffer clock = buffer_of(f, "clock", IMAGE_SCRATCH, ILIR_F32, EXTENTS(1));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS, FIRST + 8 * BLOCKS));
	ilir_var n = index_var(f, "n"), i = index_var(f, "i"), j = index_var(f, "j");
	ilir_expr now = ilir_load(&f->m, clock, INDICES(num(f, 0)));
	ilir_expr at = inner > 1 ? plus(f, ref(f, j), ref(f, i)) : ref(f, i);
	struct ilir_stmt *body =
	    ilir_store(&f->m, clock, INDICES(num(f, 0)), plus(f, now, ilir_float(&f->m, 1)));
	ilir_append(body, over_rows(f, n, 1,
				    ilir_store(&f->m, out, INDICES(ref(f, n), ramp(f, at, 8)),
					       splat(f, now, 8))));
	if (inner > 1) {
		body = loop(f, j, num(f, 8), num(f, 8 + 8 * inner), 8, body);
		body->loop.kind = ILIR_SWEPT;
	}
	int first = inner > 1 ? FIRST - 8 : FIRST;
	body = loop(f, i, num(f, first), num(f, first + 8 * BLOCKS), 8 * inner, body);
	body->loop.kind = ILIR_SWEPT;
	kernel(f, "swept", body);
}

static void build_swept(struct fixture *f)
{
	build_blocks(f, 1);
}

static void build_swept_nest(struct fixture *f)
{
	build_blocks(f, 3);
}

/* The place in time of each block, 0 = it did not run. */
static bool ran(image_kernel *run, int64_t first, int64_t blocks, int64_t direction, const char *when)
{
	float clock = 0, out[2][FIRST + 8 * BLOCKS] = {{0}};
	bool good = true;
	run((void *[]){&clock, out}, 1, 2, first, blocks, direction);
	for (int i = 0; i < FIRST + 8 * BLOCKS; i++)
		good &= out[0][i] == 0 && out[1][i] == (i < FIRST ? 0 : when[(i - FIRST) / 8] - '0');
	return good;
}

static void check_swept(image_kernel *run)
{
	tap_ok(ran(run, 0, BLOCKS, 1, "123456"), "swept: all blocks, upwards");
	tap_ok(ran(run, BLOCKS - 1, BLOCKS, -1, "654321"), "swept: all blocks, downwards");
	tap_ok(ran(run, 1, 3, 1, "012300") && ran(run, 3, 3, -1, "032100"), "swept: some, in either direction");
	tap_ok(ran(run, 5, 1, 1, "000001") && ran(run, 0, 1, -1, "100000"), "swept: one");
	tap_ok(ran(run, 2, 0, 1, "000000") && ran(run, 0, -1, 1, "000000"), "swept: none");
}

/* --- vectors whose lanes lie apart: every width and step; what is loaded last ends with the array --- */

enum { LEAST = 2, APART = 16 * ILIR_MAX_STEP };

static void build_apart(struct fixture *f)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS, ILIR_MAX_STEP, ILIR_MAX_LANES));
	struct ilir_stmt *s = NULL;
	int row = 0;
	for (int lanes = LEAST; lanes <= ILIR_MAX_LANES; lanes *= 2, row++)
		for (int step = 1; step <= ILIR_MAX_STEP; step++) {
			ilir_expr from = num(f, APART - 1 - (lanes - 1) * step);
			ilir_expr apart = ilir_load(&f->m, x, INDICES(ilir_ramp(&f->m, from, lanes, step)));
			s = ilir_append(
			    s, ilir_store(&f->m, out,
					  INDICES(num(f, row), num(f, step - 1), ramp(f, num(f, 0), lanes)),
					  apart));
		}
	kernel(f, "apart", s);
}

static void check_apart(image_kernel *run)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool closed = pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0;
	if (!tap_ok(closed, "apart: a page that cannot be read"))
		return;
	float *x = (float *)(pages + page) - APART, out[4][ILIR_MAX_STEP][ILIR_MAX_LANES] = {{{0}}};
	bool good = true;
	fill(x, APART, 9);
	run((void *[]){x, out}, 0, 1, 0, 1, 1);
	for (int row = 0, lanes = LEAST; row < 4; row++, lanes *= 2)
		for (int step = 1; step <= ILIR_MAX_STEP; step++)
			for (int i = 0; i < lanes; i++)
				good &= out[row][step - 1][i] == x[APART - 1 - (lanes - 1 - i) * step];
	tap_ok(good, "apart: lanes of every width and step");
	munmap(pages, 2 * page);
}

/* --- indices that are sums and multiples: more terms than an address has --- */

enum { WINDOW = 8, SUMS = 40, WIDTH = SUMS * WINDOW };

static void build_windows(struct fixture *f)
{
	ilir_buffer x = buffer_of(f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS, WIDTH));
	ilir_buffer out = buffer_of(f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS, WINDOW));
	ilir_var n = index_var(f, "n"), k = index_var(f, "k");
	ilir_expr row = ref(f, n), at = ref(f, k), two = num(f, 2), sum = num(f, 5);
	ilir_expr once = ilir_binary(&f->m, ILIR_MUL, two, plus(f, plus(f, at, row), num(f, 3)));
	ilir_expr twice = plus(f, ilir_binary(&f->m, ILIR_MUL, once, two), num(f, -3));
	for (int i = 0; i + 1 < SUMS; i++)
		sum = plus(f, i % 2 ? ilir_binary(&f->m, ILIR_SUB, at, row) : plus(f, at, row), sum);
	ilir_expr value =
	    plus(f, ilir_load(&f->m, x, INDICES(row, twice)), ilir_load(&f->m, x, INDICES(row, sum)));
	struct ilir_stmt *store = ilir_store(&f->m, out, INDICES(row, at), value);
	kernel(f, "windows", over_rows(f, n, 1, loop(f, k, num(f, 0), num(f, WINDOW), 1, store)));
}

static void check_windows(image_kernel *run)
{
	static float x[4 * WIDTH], out[4 * WINDOW], expected[4 * WINDOW];
	fill(x, 4 * WIDTH, 1);
	for (int n = 0; n < 4; n++)
		for (int k = 0; k < WINDOW; k++)
			expected[n * WINDOW + k] =
			    x[n * WIDTH + 4 * (k + n + 3) - 3] + x[n * WIDTH + 39 * k + n + 5];
	run((void *[]){x, out}, 0, 4, 0, 1, 1);
	tap_ok(memcmp(out, expected, sizeof out) == 0, "windows: elements at sums and multiples");
}

static const struct {
	const char *name;
	build_fn *build;
	check_fn *check;
} programs[] = {{"axpy", build_axpy, check_axpy},
		{"ragged", build_ragged, check_ragged},
		{"registers", build_registers, check_registers},
		{"parked", build_parked, check_parked},
		{"branches", build_branches, check_branches},
		{"mixed", build_mixed, check_mixed},
		{"swept", build_swept, check_swept},
		{"swept", build_swept_nest, check_swept},
		{"apart", build_apart, check_apart},
		{"windows", build_windows, check_windows}};

static void run_program(int i, const char *target, bool native)
{
	struct fixture f;
	struct image_code code;
	fixture_init(&f, programs[i].name);
	programs[i].build(&f);
	if (tap_ok(compile_for(&f, target, native, &code), "%s compiles for %s", programs[i].name, target)) {
		programs[i].check(code.kernels[0]);
		code.release(&code);
	}
	fixture_free(&f);
}

/* Processors compute some selects by branching anyway, so running does not tell whether both sides are read.
 */
static void inspect_choice(void)
{
	struct fixture f;
	struct jit_options o = {.target = target_find("generic"), .native = false};
	fixture_init(&f, "branches");
	struct str text = str_in(&f.arena);
	build_branches(&f);
	tap_ok(f.backend->print(&f.m, &o, JIT_TEXT_IR, &text, &f.diags) && strstr(text.text, "\nchosen:"),
	       "branches: the sides of the select are blocks of their own");
	fixture_free(&f);
}

static void test_all(void)
{
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		run_program(i, "generic", false);
		run_program(i, "native", true);
	}
	inspect_choice();
}

int main(void)
{
	return over_backends(test_all);
}
