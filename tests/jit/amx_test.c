/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sums of dot products of bytes and of blocks of bf16 before and after the pass use_matrices, by the interpreter and as code for
 * AMX by each back end: the same bytes.  A processor without AMX executes its instructions by amx.h. */
#include "tests/jit/helper.h"

#include "base/cpu.h"
#include "ilir/passes.h"

#ifdef __x86_64__

#include "tests/jit/amx.h"

/* A loop over words, as the pass unroll leaves it.  Several planes of rows are multiplied by each column, but for the last plane and the
 * last column. */
struct shape {
	int rows, planes, columns, words, unroll;
	bool gathered; /* rows are read by an index array */
	bool matrices; /* that the pass uses */
	int blocks;    /* of words of bf16; 0 = words of bytes */
	bool falling;  /* the words of an iteration follow by falling index, which is another sum in bf16 */
};

static const struct shape shapes[] = {
    {2, 1, 1, 16, 1, false, true, 0, false},  {2, 1, 1, 4, 4, true, true, 0, false},    {12, 1, 2, 64, 4, false, true, 0, false}, {16, 1, 1, 40, 2, true, true, 0, false},
    {8, 1, 3, 68, 4, true, true, 0, false},   {5, 1, 6, 36, 1, false, true, 0, false},  {3, 1, 4, 23, 1, true, true, 0, false},   {7, 1, 2, 129, 3, false, true, 0, false},
    {1, 1, 2, 64, 4, false, false, 0, false}, {2, 1, 9, 50, 2, true, true, 0, false},   {16, 1, 5, 64, 4, false, true, 0, false}, {8, 2, 4, 64, 4, false, true, 0, false},
    {16, 2, 10, 38, 2, true, true, 0, false}, {3, 2, 1, 70, 1, false, true, 0, false}, {16, 3, 2, 33, 1, false, true, 0, false}, {1, 2, 2, 64, 4, false, false, 0, false},
    {16, 1, 5, 16, 4, false, true, 4, false}, {16, 2, 4, 16, 2, true, true, 3, false}, {1, 1, 5, 16, 1, false, true, 2, false}, {1, 2, 2, 8, 4, true, true, 3, false},
    {5, 1, 7, 12, 3, true, true, 2, false}, {3, 1, 1, 4, 1, false, true, 5, false},
    {16, 1, 5, 16, 4, false, false, 2, true}, {8, 1, 2, 64, 4, false, true, 0, true},
};

enum { TURNS = 2, LANES = 16 };

static int sums_of_row(const struct shape *x)
{
	return x->columns * x->planes;
}

static int count_blocks(const struct shape *x)
{
	return x->blocks ? x->blocks : 1;
}

static void write_head(struct str *s, const struct shape *x)
{
	int blocks = count_blocks(x);
	str_printf(s, "module m\ndim node, block, i, j, lane\nbuffer x : vector 0 i32 [nodes:node, %d:i, %d:block, %d:j]\n", x->planes, blocks,
		   x->words);
	str_printf(s, "buffer w : weight 0 i32 [%d:block, %d:j, %d:i, 16:lane]\n", blocks, x->words, x->columns);
	str_printf(s, "buffer from : child 0 i32 [nodes:node]\nbuffer y : output 0 %s [nodes:node, %d:i]\n", x->blocks ? "f32" : "i32",
		   LANES * sums_of_row(x));
	str_printf(s, "kernel k in nodes {\nfor n:node in begin..end step %d {\n", x->rows);
	for (int r = 0; x->gathered && r < x->rows; r++)
		str_printf(s, "let r%d = to_index(from[n + %d])\n", r, r);
}

/* The place of a sum: s, or the lower or the upper half of it in a block. */
static void write_sum(struct str *s, const char *of, int sum, int row)
{
	str_printf(s, "%s[%d, %d, ramp(16, 0)]", of, sum, row);
}

static void write_factors(struct str *s, const struct shape *x, int row, int plane, int column, int ahead, const char *half)
{
	bool upper = strcmp(half, "upper") == 0;
	struct str word = str_in(s->arena);
	str_printf(&word, x->gathered ? "x[r%d, %d, %s, q + %d]" : "x[n + %d, %d, %s, q + %d]", row, plane, x->blocks ? "b" : "0", ahead);
	str_printf(s, !x->blocks ? "%s" : upper ? "(%s & -65536i) | 32768i" : "(%s & 65535i) | -2147483648i", str_text(&word));
	str_printf(s, "), %sw[%s, q + %d, %d, ramp(16, 0)]", x->blocks ? "(" : "", x->blocks ? "b" : "0", ahead, column);
	str_puts(s, !x->blocks ? "" : upper ? " & broadcast(16, -65536i))" : " & broadcast(16, 65535i))");
}

static bool is_left_out(const struct shape *x, int plane, int column)
{
	return x->planes > 1 && plane == x->planes - 1 && column == x->columns - 1 && column;
}

static void write_product(struct str *s, const struct shape *x, int row, int plane, int column, int ahead, const char *to)
{
	if (is_left_out(x, plane, column))
		return;
	write_sum(s, to, column * x->planes + plane, row);
	str_printf(s, " = %s(broadcast(16, ", x->blocks ? "dot_bf16" : "dot4");
	write_factors(s, x, row, plane, column, ahead, to);
	str_puts(s, ", ");
	write_sum(s, to, column * x->planes + plane, row);
	str_puts(s, ")\n");
}

static void write_words(struct str *s, const struct shape *x)
{
	str_printf(s, "for q:j in 0..%d step %d {\n", x->words, x->unroll);
	for (int t = 0; t < x->unroll; t++)
		for (int r = 0; r < x->rows; r++)
			for (int c = 0; c < x->columns; c++)
				for (int p = 0; p < x->planes; p++) {
					int ahead = x->falling ? x->unroll - 1 - t : t;
					write_product(s, x, r, p, c, ahead, x->blocks ? "upper" : "s");
					if (x->blocks)
						write_product(s, x, r, p, c, ahead, "lower");
				}
	str_puts(s, "}\n");
}

/* The zeros that the halves of a sum begin with, or what is added to the sum behind the block. */
static void write_end(struct str *s, int sum, int row, bool behind)
{
	static const char zeros[] = "broadcast(16, -2147450880i), broadcast(16, 0i)";
	if (behind) {
		write_sum(s, "s", sum, row);
		str_printf(s, " = dot_bf16(%s, dot_bf16(%s, s[%d, %d, ramp(16, 0)]) + dot_bf16(%s, lower[%d, %d, ramp(16, 0)] + "
			      "upper[%d, %d, ramp(16, 0)]))\n", zeros, zeros, sum, row, zeros, sum, row, sum, row);
		return;
	}
	write_sum(s, "lower", sum, row);
	str_puts(s, " = broadcast(16, 0.0)\n");
	write_sum(s, "upper", sum, row);
	str_puts(s, " = broadcast(16, 0.0)\n");
}

static void write_ends(struct str *s, const struct shape *x, bool behind)
{
	for (int r = 0; r < x->rows; r++)
		for (int c = 0; c < x->columns; c++)
			for (int p = 0; p < x->planes; p++)
				if (!is_left_out(x, p, c))
					write_end(s, c * x->planes + p, r, behind);
}

static void write_products(struct str *s, const struct shape *x)
{
	if (!x->blocks) {
		write_words(s, x);
		return;
	}
	str_printf(s, "for b:block in 0..%d {\n", x->blocks);
	for (int half = 0; half < 2; half++)
		str_printf(s, "alloc %s : f32 [%d:i, %d:node, 16:lane]\n", half ? "upper" : "lower", sums_of_row(x), x->rows);
	write_ends(s, x, false);
	write_words(s, x);
	write_ends(s, x, true);
	str_puts(s, "}\n");
}

/* Sums begin with what the output holds, and go there. */
static void write_module(struct str *s, const struct shape *x)
{
	write_head(s, x);
	str_printf(s, "alloc s : %s [%d:i, %d:node, 16:lane]\n", x->blocks ? "f32" : "i32", sums_of_row(x), x->rows);
	for (int end = 0; end < 2; end++) {
		for (int r = 0; r < x->rows; r++)
			for (int c = 0; c < sums_of_row(x); c++) {
				if (!end)
					write_sum(s, "s", c, r), str_puts(s, " = ");
				str_printf(s, "y[n + %d, ramp(16, %d)]", r, LANES * c);
				if (end)
					str_puts(s, " = "), write_sum(s, "s", c, r);
				str_puts(s, "\n");
			}
		if (!end)
			write_products(s, x);
	}
	str_puts(s, "}\n}\n");
}

static uint32_t next_word(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed ^ *seed >> 13;
}

/* A word of two bf16: numbers from 2^-15 to 2^17, so that sums depend on their order, every sixteenth of them zero, denormal or nearly
 * so. */
static uint32_t next_pair(uint32_t *seed)
{
	uint32_t pair = 0;
	for (int half = 0; half < 2; half++) {
		uint32_t bits = next_word(seed), number = (bits & 0x807f) | ((bits >> 7 & 31) + 112) << 7;
		pair = pair << 16 | (bits >> 16 & 15 ? number : bits & 0x80ff);
	}
	return pair;
}

/* The memory of a run. */
struct memory {
	uint32_t *x, *w, *y;
	int32_t *from;
	size_t results;
	int nodes;
};

static struct memory make_memory(const struct shape *s)
{
	struct memory m = {.nodes = TURNS * s->rows, .results = (size_t)TURNS * s->rows * sums_of_row(s) * LANES};
	size_t words = (size_t)count_blocks(s) * s->words, x = m.nodes * s->planes * words, w = words * s->columns * LANES;
	uint32_t (*const next)(uint32_t *) = s->blocks ? next_pair : next_word;
	uint32_t seed = (uint32_t)(s->rows * 131 + s->words);
	m.x = aligned(4 * x);
	m.w = aligned(4 * w);
	m.y = aligned(4 * m.results);
	m.from = aligned(4 * (size_t)m.nodes);
	for (size_t i = 0; i < x; i++)
		m.x[i] = next(&seed);
	for (size_t i = 0; i < w; i++)
		m.w[i] = next(&seed);
	for (size_t i = 0; i < m.results; i++)
		m.y[i] = next(&seed);
	for (int i = 0; i < m.nodes; i++)
		m.from[i] = (int32_t)(next_word(&seed) % (uint32_t)m.nodes);
	return m;
}

static void free_memory(struct memory *m)
{
	free(m->x);
	free(m->w);
	free(m->y);
	free(m->from);
}

/* Runs the module, as code unless that is NULL, and appends its result to the text. */
static bool run_module(struct fixture *f, struct image_code *code, const struct shape *s, struct str *result)
{
	struct memory m = make_memory(s);
	void *buffers[] = {m.x, m.w, m.from, m.y};
	int64_t sizes[IMAGE_SIZES] = {1, m.nodes, m.nodes, 1, m.nodes, 1};
	struct image_frame frame = {buffers, sizes};
	struct image_range range = {0, m.nodes, 0, 1, 1};
	bool ok = true;
	if (code)
		code->kernels[0](buffers, 0, m.nodes, 0, 1, 1);
	else
		ok = ilir_interpret(ilir_interpreter_new(&f->arena, &f->m), 0, &frame, &range, &f->diags);
	show_diags(&f->diags);
	str_add(result, (const char *)m.y, 4 * m.results);
	free_memory(&m);
	return ok;
}

static bool is_same(const struct str *a, const struct str *b)
{
	return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

static void test_code(struct fixture *f, const struct shape *s, const struct str *expected)
{
	struct str result = str_in(&f->arena);
	struct image_code code = {0};
	long products = amx.products, configurations = amx.configurations;
	bool ok = compile_for(f, "amx", false, &code) && run_module(f, &code, s, &result) && is_same(&result, expected);
	tap_ok(ok, "%s: %d rows of %d planes, %d vectors, %d words of %s%s: the same bytes", backend_name, s->rows, s->planes, s->columns,
	       s->words * count_blocks(s), s->blocks ? "bf16" : "bytes", s->gathered ? ", gathered" : "");
	bool executed = amx.products > products && amx.configurations > configurations;
	if (!cpu_permits_matrices())
		tap_ok(executed == s->matrices && amx_is_released(), "by %s, and none is left configured",
		       s->matrices ? "tiles" : "no tiles");
	if (code.release)
		code.release(&code);
}

static void test_shape(const struct shape *s)
{
	struct fixture f;
	bool loaded = fixture_init(&f, "m");
	struct str text = str_in(&f.arena), expected = str_in(&f.arena), result = str_in(&f.arena);
	write_module(&text, s);
	struct ilir_module *m = ilir_parse(&f.arena, &f.diags, "test", text.text, text.n);
	if (m) {
		f.m = *m;
		run_module(&f, NULL, s, &expected);
		ilir_use_matrices(&f.m, &(struct ilir_tiling){.matrices = true});
		struct str after = str_in(&f.arena);
		ilir_print(&f.m, &after);
		bool uses = strstr(str_text(&after), s->blocks ? "matrix dot_bf16" : "matrix dot4") != NULL;
		bool ok = ilir_verify(&f.m, ILIR_IN_BOUNDS | ILIR_OUTLINED | ILIR_UNROLLED_ALL, "use_matrices", &f.diags) &&
			  run_module(&f, NULL, s, &result) && is_same(&result, &expected);
		tap_ok(ok && uses == s->matrices, "interpreter: %d rows of %d planes, %d vectors, %d words of %s: the same bytes after the pass",
		       s->rows, s->planes, s->columns, s->words * count_blocks(s), s->blocks ? "bf16" : "bytes");
	}
	show_diags(&f.diags);
	if (m && loaded)
		test_code(&f, s, &expected);
	fixture_free(&f);
}

static void test_shapes(void)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		test_shape(&shapes[i]);
}

int main(void)
{
	if (!amx_begin()) {
		tap_skip("this processor has no AVX-512 with VNNI and BF16", "code for AMX");
		return tap_done();
	}
	return over_backends(test_shapes);
}

#else

int main(void)
{
	tap_skip("this is no x86-64", "code for AMX");
	return tap_done();
}

#endif
