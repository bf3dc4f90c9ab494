/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What debuggers, profilers and unwinders learn of compiled code: lines of the listing, and frames; both also
 * of objects of which bytes are wrong. */
#include "image/frames.h"
#include "image/perf.h"
#include "image/symfile.h"
#include "tests/jit/helper.h"
#include "tests/sanitizers.h"

#include <execinfo.h>
#include <signal.h>
#include <sys/time.h>

enum { ROWS_ALL = 1 << 14, COLUMNS = 64 };

/* The statement that is looked for is alone on its line. */
static const char module_text[] =
    "module lines\n"
    "dim node, j\n"
    "buffer in : vector 0 f32 [nodes:node, 64:j]\n"
    "buffer out : output 0 f32 [nodes:node, 64:j]\n"
    "kernel first in nodes {\n"
    "  for n:node in begin..end {\n"
    "    for j:j in 0..64 {\n"
    "      out[n, j] = in[n, j] / 3.0\n"
    "    }\n"
    "  }\n"
    "}\n"
    "kernel second in nodes {\n"
    "  for n.1:node in begin..end {\n"
    "    out[n.1, 0] = in[n.1, 0] + 1.0\n"
    "  }\n"
    "}\n";
enum { KERNELS = 2, FIRST = 5, STORE = 8, SECOND = 12, LAST = 16, BEFORE = 100 };

static bool read_module(struct fixture *f)
{
	struct ilir_module *m = ilir_parse(&f->arena, &f->diags, "lines", module_text, strlen(module_text));
	struct str text = str_in(&f->arena);
	if (!m)
		return false;
	ilir_print_numbered(m, &text);
	f->m = *m;
	return tap_ok(strcmp(text.text, module_text) == 0, "a module is numbered as it is written");
}

static bool compile(struct fixture *f, int lines, struct jit_objects *o, struct image_blob *blob)
{
	struct jit_options options = {.target = target_find("native"), .lines = lines};
	bool ok = jit_compile(f->backend, &f->m, &options, (struct jit_threads){.most = 1}, &f->arena, o,
			      &f->diags) &&
		  link_objects(f, o, blob);
	show_diags(&f->diags);
	return ok;
}

/* --- lines --- */

static int64_t line_at(const struct image_blob *b, int64_t place)
{
	int64_t line = 0;
	for (int i = 0; i < b->lines && b->line[i].place <= place; i++)
		line = b->line[i].line;
	return line;
}

static bool has_line(const struct image_blob *b, int64_t begin, int64_t end, int64_t line)
{
	for (int64_t place = begin; place < end; place++)
		if (line_at(b, place) == line)
			return true;
	return false;
}

/* Lines of a function that are others' than from `low` to `high`, and not 0. */
static bool has_other_lines(const struct image_blob *b, int64_t begin, int64_t end, int64_t low, int64_t high)
{
	for (int64_t place = begin; place < end; place++) {
		int64_t line = line_at(b, place);
		if (line && (line < low || line > high))
			return true;
	}
	return false;
}

static void test_lines(void)
{
	struct fixture f;
	struct jit_objects o;
	struct image_blob plain, listed;
	if (!fixture_init(&f, "lines") || !read_module(&f)) {
		fixture_free(&f);
		return;
	}
	if (tap_ok(compile(&f, 0, &o, &plain) && compile(&f, BEFORE, &o, &listed),
		   "code without lines, and with them")) {
		int64_t end = listed.kernel[0] + listed.function[0].bytes;
		tap_ok(!plain.lines, "lines are not there unasked");
		tap_ok(plain.frames == listed.frames && memcmp(plain.bytes, listed.bytes, plain.frames) == 0,
		       "they do not change the code");
		tap_ok(listed.functions == KERNELS && listed.function[0].place == listed.kernel[0] &&
			   listed.function[0].bytes > 0 && strcmp(listed.function[1].name, "second") == 0,
		       "each kernel is a function");
		tap_ok(has_line(&listed, listed.kernel[0], end, BEFORE + STORE - 1),
		       "a statement has its line");
		tap_ok(
		    !has_other_lines(&listed, listed.kernel[0], end, BEFORE + FIRST - 1, BEFORE + SECOND - 2),
		    "a kernel has lines of its own only");
		tap_ok(has_line(&listed, listed.kernel[1], listed.kernel[1] + listed.function[1].bytes,
				BEFORE + SECOND + 1),
		       "and so has the next");
	}
	fixture_free(&f);
}

/* --- frames --- */

static void test_frames(void)
{
	struct fixture f;
	struct jit_objects o;
	struct image_blob b;
	unsigned char copy[1000];
	if (!fixture_init(&f, "lines") || !read_module(&f) ||
	    !tap_ok(compile(&f, 1, &o, &b), "code with frames")) {
		fixture_free(&f);
		return;
	}
	struct image_frames frames = {b.bytes + b.frames, b.frame_bytes, b.frames}, bent = frames;
	tap_ok(b.frame_bytes > 0 && image_check_frames(&frames, b.frames),
	       "call frame information is of the form that is used");
	tap_ok(!image_check_frames(&frames, b.kernel[1]), "it is about functions of the code only");
	bent.size--;
	tap_ok(!image_check_frames(&bent, b.frames), "it ends with a zero");
	int64_t bytes = image_copy_frame(&frames, b.kernel[1], 4096, NULL), place, size, at = 0;
	tap_ok(bytes > 0 && bytes < (int64_t)sizeof copy &&
		   image_copy_frame(&frames, b.kernel[1], 4096, copy) == bytes,
	       "that of a function can be copied");
	struct image_frames one = {copy, bytes, 4096};
	tap_ok(image_check_frames(&one, 4096) && image_next_frame(&one, &at, &place, &size) && place == 0 &&
		   size == b.function[1].bytes && !image_next_frame(&one, &at, &place, &size),
	       "to where it is about that function alone");
	tap_ok(!image_copy_frame(&frames, b.kernel[1] + 1, 0, NULL), "there is none of what is no function");
	fixture_free(&f);
}

/* Where a signal interrupted a kernel, and the frames that were above. */
static void *trace[64];
static volatile sig_atomic_t depth;
static const char *code_begin;
static int64_t code_bytes;

static bool is_inside(const void *address)
{
	return (const char *)address >= code_begin && (const char *)address < code_begin + code_bytes;
}

static void note_frames(int signal)
{
	void *frames[64];
	(void)signal;
	int n = backtrace(frames, 64);
	for (int i = 0; i + 1 < n && !depth; i++)
		if (is_inside(frames[i])) {
			memcpy(trace, frames, sizeof frames);
			depth = n;
		}
}

/* Calls the kernel until it was interrupted; returns whether its caller's caller is among the frames. */
__attribute__((noinline)) static bool call_until_traced(image_kernel *kernel, void *const *buffers)
{
	const void *above = __builtin_return_address(0);
	for (int i = 0; i < 20000 && !depth; i++)
		kernel(buffers, 0, ROWS_ALL, 0, 1, 1);
	for (int i = 0; i < depth; i++)
		if (trace[i] == above)
			return true;
	return false;
}

static void test_signal(void)
{
	struct fixture f;
	struct jit_objects o;
	struct image_blob b;
	struct image_code code;
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	void *first[1];
	if (RACES_SOUGHT) {
		tap_skip("ThreadSanitizer keeps signals until code that it knows",
			 "a signal interrupts a kernel");
		tap_skip("ThreadSanitizer keeps signals until code that it knows",
			 "its handler sees who called the kernel's caller");
		return;
	}
	depth = 0;
	(void)backtrace(first, 1); /* loads the unwinder */
	if (!fixture_init(&f, "lines") || !read_module(&f) || !compile(&f, 0, &o, &b) ||
	    !tap_ok(image_code_load(&b, &allocator_default, "lines", &code, &f.diags), "code is loaded")) {
		fixture_free(&f);
		return;
	}
	float *in = aligned(ROWS_ALL * COLUMNS * sizeof *in),
	      *out = aligned(ROWS_ALL * COLUMNS * sizeof *out);
	void *buffers[] = {NULL, in, out};
	code_begin = (const char *)(uintptr_t)code.kernels[0];
	code_bytes = b.function[0].bytes;
	signal(SIGPROF, note_frames);
	setitimer(ITIMER_PROF, &often, NULL);
	bool traced = call_until_traced(code.kernels[0], buffers + 1);
	setitimer(ITIMER_PROF, &never, NULL);
	signal(SIGPROF, SIG_IGN);
	tap_ok(depth > 0, "a signal interrupts a kernel");
	tap_ok(traced, "its handler sees who called the kernel's caller");
	image_code_release(&code);
	free(in);
	free(out);
	fixture_free(&f);
}

/* --- for debuggers --- */

static void test_symfile(void)
{
	struct fixture f;
	struct jit_objects o;
	struct image_blob b;
	if (!fixture_init(&f, "lines") || !read_module(&f) ||
	    !tap_ok(compile(&f, 1, &o, &b), "code with lines")) {
		fixture_free(&f);
		return;
	}
	struct image_function function = {"first", b.bytes + b.kernel[0], b.function[0].bytes, b.kernel[0],
					  &b};
	struct str with = str_in(&f.arena), without = str_in(&f.arena);
	image_put_symfile(&with, "lines", "/listing", &function);
	image_put_symfile(&without, "lines", NULL, &function);
	tap_ok(memcmp(with.text, "\177ELF", 4) == 0 && memmem(with.text, with.n, "lines:first", 12),
	       "a file names the function");
	tap_ok(memmem(with.text, with.n, "/listing", 9) && !memmem(without.text, without.n, "/listing", 9),
	       "and its listing");
	fixture_free(&f);
}

/* --- no harm --- */

static void test_harmless(void)
{
	struct fixture f;
	struct jit_objects o;
	struct image_blob b;
	unsigned state = 7;
	int links = 0;
	if (!fixture_init(&f, "lines") || !read_module(&f) ||
	    !tap_ok(compile(&f, 1, &o, &b), "code to bend")) {
		fixture_free(&f);
		return;
	}
	for (int round = 0; round < 3000; round++) {
		struct image_object *one = &o.object[round % o.n], whole = *one;
		unsigned char *copy = malloc(whole.size);
		memcpy(copy, whole.bytes, whole.size);
		for (int k = 0; k <= round % 4; k++) {
			state = state * 1664525u + 1013904223u;
			copy[(state >> 8) % whole.size] = state >> 4;
		}
		one->bytes = copy;
		if (link_objects(&f, &o, &b)) {
			links++;
			for (int i = 1; i < b.lines; i++)
				links -= b.line[i].place <= b.line[i - 1].place ? 100000 : 0;
		}
		one->bytes = whole.bytes;
		free(copy);
	}
	tap_ok(links > 0, "bytes may be wrong; %d such objects link", links);
	fixture_free(&f);
}

static void test_all(void)
{
	test_lines();
	test_frames();
	test_signal();
	test_symfile();
	test_harmless();
}

int main(void)
{
	return over_backends(test_all);
}
