/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Files that are refused: each of refused/ with the diagnostic that refused.tsv says, and good ones that are
 * cut off or changed without a crash and with all memory given back. */
#include "onnx/graph.h"
#include "tests/tap.h"
#include "tflite/lite.h"
#include "tflite/requantise.h"

#include <stdlib.h>
#include <string.h>

static struct arena arena;
static struct diags diags;
static jmp_buf escape;
static char bytes[1 << 16];
static size_t length;

static bool read_file(const char *folder, const char *name)
{
	const char *source = getenv("srcdir");
	char path[4096];
	snprintf(path, sizeof path, "%s/tests/tflite/%s/%s", source ? source : ".", folder, name);
	FILE *f = fopen(path, "rb");
	length = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
	bytes[length] = 0;
	if (f)
		fclose(f);
	return f != NULL;
}

/* Whether the bytes become a model. */
static bool import_bytes(const char *data, size_t n)
{
	struct onnx_graph *g;
	struct onnx_model m;
	arena_free(&arena);
	arena_init(&arena, &allocator_default);
	diags_free(&diags);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &escape))
		return false;
	return tflite_read_graph(&arena, &diags, "m.tflite", data, n, &g) &&
	       onnx_import(&arena, &diags, g, &m);
}

/* A line of the table: name, id, part of the message. */
static void check_line(char *line)
{
	char *id = strchr(line, '\t'), *part = id ? strchr(id + 1, '\t') : NULL, file[200];
	if (!part) {
		tap_ok(false, "a line of refused.tsv has three fields");
		return;
	}
	*id++ = *part++ = 0;
	snprintf(file, sizeof file, "%s.tflite", line);
	bool there = read_file("refused", file), taken = import_bytes(bytes, length);
	bool good = there && !taken && diags.n && strcmp(diag_spelling(diags.at[0].id), id) == 0 &&
		    strstr(diags.at[0].message, part);
	if (!good)
		printf("# %s %s\n", diags.n ? diag_spelling(diags.at[0].id) : "taken",
		       diags.n ? diags.at[0].message : "");
	tap_ok(good, "%s is refused: %s %s", line, id, part);
}

static void check_table(void)
{
	static char table[1 << 16];
	read_file("refused", "refused.tsv");
	memcpy(table, bytes, length + 1);
	char *rest = table;
	int lines = 0;
	for (char *line; (line = strtok_r(rest, "\n", &rest)); lines++)
		check_line(line);
	tap_ok(lines > 80, "the table has lines");
}

static void check_cuts(void)
{
	int taken = !read_file("cases", "chain.tflite");
	size_t n = length;
	char *part = malloc(n);
	for (size_t i = 0; i < n; i++) {
		memcpy(part, bytes, i);
		taken += import_bytes(part, i) || diags.at[0].id != DIAG_BAD_TFLITE;
	}
	free(part);
	tap_is(taken, 0, "each beginning of a file is refused as no proper one");
}

/* Every word of some files becomes others in turn: what is refused then is explained. */
static void check_words(const char *name)
{
	static const uint32_t words[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fc00000, 0x10001};
	static char changed[sizeof bytes];
	int unexplained = !read_file("cases", name);
	for (size_t at = 0; at + 4 <= length; at += 4)
		for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
			memcpy(changed, bytes, length);
			memcpy(changed + at, &words[w], 4);
			unexplained += !import_bytes(changed, length) && !diags.n;
		}
	tap_is(unexplained, 0, name);
}

/* The page has the name of each operator of the table. */
static void check_page(void)
{
	const char *source = getenv("srcdir");
	static char page[1 << 16];
	char path[4096], name[100];
	snprintf(path, sizeof path, "%s/%s", source ? source : ".", tflite_table.page);
	FILE *f = fopen(path, "rb");
	page[f ? fread(page, 1, sizeof page - 1, f) : 0] = 0;
	if (f)
		fclose(f);
	int missing = 0;
	for (int i = 0; i < tflite_table.rows; i++) {
		snprintf(name, sizeof name, "`%s`", tflite_table.row[i].name);
		missing += !strstr(page, name);
	}
	tap_is(missing, 0, "doc/tflite.md lists the operators");
}

int main(void)
{
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	check_table();
	check_page();
	check_cuts();
	check_words("add.tflite");
	check_words("conv_dilated.tflite");
	check_words("pad_with.tflite");
	arena_free(&arena);
	diags_free(&diags);
	return tap_done();
}
