/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What scripts do with streams, each as text or as a binary file:
 *
 *     run_stream check FILE              verifies it and prints its cost
 *     run_stream print FILE              prints it as text
 *     run_stream write FILE OUT          writes the binary form
 *     run_stream run FILE MEMORY OUT     verifies and runs it on the host's memory, of which OUT gets the
 * result run_stream draw SEED OUT MEMORY    writes a stream of a random small operation, and a memory with
 * its activations run_stream make OUT                writes the stream of a fixed product with all that can
 * follow it */
#include "tests/vta/operations.h"

#include <stdio.h>
#include <stdlib.h>

static struct arena arena;
static struct diags diags;

static _Noreturn void fail(const char *what)
{
	struct str out = str_in(&arena);
	for (size_t i = 0; i < diags.n; i++)
		diag_print(&diags.at[i], &out);
	fprintf(stderr, "%s%s\n", str_text(&out), what);
	exit(1);
}

static uint8_t *read_bytes(const char *path, size_t *n)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		fail(path);
	long end = ftell(file);
	rewind(file);
	*n = end > 0 ? (size_t)end : 0;
	uint8_t *bytes = ARENA_ARRAY(&arena, uint8_t, *n + 1);
	if (end < 0 || fread(bytes, 1, *n, file) != *n)
		fail(path);
	fclose(file);
	return bytes;
}

static void write_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, n, file) != n || fclose(file))
		fail(path);
}

static void read_stream(const char *path, struct vta_stream *stream)
{
	size_t n;
	const uint8_t *bytes = read_bytes(path, &n);
	bool binary = n >= 7 && !memcmp(bytes, "VTASTRM", 7);
	if (binary ? !vta_read(&arena, &diags, path, bytes, n, stream)
		   : !vta_parse(&arena, &diags, path, (const char *)bytes, stream))
		fail("cannot be read");
}

static struct vta_cost verify_stream(const struct vta_stream *stream)
{
	struct vta_cost cost;
	if (!vta_verify(&arena, &diags, stream, &cost))
		fail("is refused");
	return cost;
}

static void write_stream(const struct vta_stream *stream, const char *path)
{
	size_t n;
	const uint8_t *bytes = vta_write(&arena, stream, &n);
	write_bytes(path, bytes, n);
}

/* --- what can be done --- */

static void check(char **path)
{
	struct vta_stream stream;
	struct str out = str_in(&arena);
	read_stream(path[0], &stream);
	struct vta_cost cost = verify_stream(&stream);
	vta_print_cost(&cost, &out);
	fputs(str_text(&out), stdout);
}

static void print(char **path)
{
	struct vta_stream stream;
	struct str out = str_in(&arena);
	read_stream(path[0], &stream);
	vta_print(&stream, &out);
	fputs(str_text(&out), stdout);
}

static void rewrite(char **path)
{
	struct vta_stream stream;
	read_stream(path[0], &stream);
	write_stream(&stream, path[1]);
}

static void run(char **path)
{
	struct vta_stream stream;
	size_t n;
	read_stream(path[0], &stream);
	verify_stream(&stream);
	uint8_t *memory = read_bytes(path[1], &n);
	if (n != stream.bytes)
		fail("the memory is not as long as the stream says");
	vta_execute(&arena, &stream, NULL, memory);
	write_bytes(path[2], memory, n);
}

static void draw_stream(char **argument)
{
	struct drawn_operation d;
	struct vta_stream stream;
	draw_state = strtoull(argument[0], NULL, 10) * 0x9E3779B97F4A7C15u + 1;
	do
		draw_operation(&arena, &d, draw() % 3 == 0);
	while (count_outputs(&d.op) * d.op.in_blocks * d.op.kernel[0] * d.op.kernel[1] > 100000);
	struct vta_operation op = stream_operation(&d);
	if (!vta_generate(&arena, &diags, &op, 1, &stream))
		fail("is not generated");
	write_stream(&stream, argument[1]);
	write_bytes(argument[2], operation_memory(&arena, &stream, &d, 90), stream.bytes);
}

static void make_product(char **path)
{
	struct drawn_operation d;
	struct vta_stream stream;
	draw_sized(&arena, &d, (struct drawn_sizes){1, 1, 2, {1, 5}, {1, 1}, {1, 1}, {0}, {0}});
	d.op.shift = 17;
	d.op.residual = "r";
	d.op.residual_shift = 1;
	d.op.low = 0;
	d.op.high = 100;
	if (!vta_generate(&arena, &diags, &d.op, 1, &stream))
		fail("is not generated");
	write_stream(&stream, path[0]);
}

static const struct {
	const char *word;
	int arguments;
	void (*act)(char **);
} actions[] = {{"check", 1, check}, {"print", 1, print},      {"write", 2, rewrite},
	       {"run", 3, run},	    {"draw", 3, draw_stream}, {"make", 1, make_product}};

int main(int argc, char **argv)
{
	jmp_buf jump;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &jump))
		return 1;
	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
		if (argc > 1 && !strcmp(argv[1], actions[i].word) && argc == actions[i].arguments + 2) {
			actions[i].act(argv + 2);
			diags_free(&diags);
			arena_free(&arena);
			return 0;
		}
	return 2;
}
