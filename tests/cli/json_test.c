/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier run --format json, read by a JSON library: every line is an object of its own, whatever the words
 * and values. */
#include "tests/tap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/espalier-json-XXXXXX";

/* A command line for the shell, of which stdout can be read; `at` is root or all. */
static FILE *run(const char *at)
{
	static const char example[] = "examples/treelstm";
	char command[4000];
	const char *srcdir = getenv("srcdir"), *espalier = getenv("ESPALIER");
	srcdir = srcdir ? srcdir : ".";
	snprintf(command, sizeof command,
		 "'%s' run '%s/%s/treelstm.ra' --weights '%s/%s/sst-treelstm-small.safetensors' --vocab "
		 "'%s/%s/sst-vocab.txt' --backend interpreter --format json --at %s '%s/trees'",
		 espalier ? espalier : "./espalier", srcdir, example, srcdir, example, srcdir, example, at,
		 folder);
	return popen(command, "r");
}

static const char *const trees[] = {
    "(3 (2 A) (3 film))",
    "(2 \"\\\")",
    "(2 (2 \\u0000) (2 '\\'))",
    "(2 (2 caf\303\251) (2 \360\237\230\200))",
    "(2 (2 \377) (2 \300\200))",
    "(2 (2 \001\002\003) (2 \033[2J\177))",
    "(2 (2 a\342\200\250b) (2 </script>))",
};

enum { TREES = sizeof trees / sizeof *trees };

static bool write_trees(const char *path)
{
	FILE *f = fopen(path, "w");
	for (int i = 0; f && i < TREES; i++)
		fprintf(f, "%s\n", trees[i]);
	return f && fclose(f) == 0;
}

/* A row of numbers; `sum` is theirs. */
static bool is_row(const json_t *row, size_t elements, double *sum)
{
	bool ok = json_is_array(row) && json_array_size(row) == elements;
	*sum = 0;
	for (size_t i = 0; ok && i < elements; i++) {
		ok = json_is_number(json_array_get(row, i));
		*sum += json_number_value(json_array_get(row, i));
	}
	return ok;
}

static bool is_distribution(const json_t *row)
{
	double sum;
	return is_row(row, 5, &sum) && sum > 0.999 && sum < 1.001;
}

static bool is_result(const json_t *o, int tree, bool all)
{
	const json_t *outputs = json_object_get(o, "outputs"), *rows = json_object_get(outputs, "sentiment");
	json_int_t nodes = json_integer_value(json_object_get(o, "nodes"));
	double sum;
	bool ok = json_is_object(o) && json_integer_value(json_object_get(o, "tree")) == tree && nodes > 0 &&
		  json_is_string(json_object_get(o, "sentence"));
	if (!all)
		return ok && is_distribution(rows) && is_row(json_object_get(outputs, "logits"), 5, &sum);
	ok = ok && json_array_size(rows) == (size_t)nodes;
	for (json_int_t n = 0; ok && n < nodes; n++)
		ok = is_distribution(json_array_get(rows, n));
	return ok;
}

static void test_place(const char *at)
{
	char line[20000];
	int n = 0;
	FILE *f = run(at);
	while (f && fgets(line, sizeof line, f)) {
		json_error_t e;
		json_t *o = json_loads(line, JSON_REJECT_DUPLICATES, &e);
		if (!tap_ok(o && is_result(o, n, strcmp(at, "all") == 0), "at %s: tree %d is an object", at,
			    n))
			printf("# %s\n# %s", o ? "an object of another form" : e.text, line);
		json_decref(o);
		n++;
	}
	tap_ok(f && pclose(f) == 0 && n == TREES, "at %s: %d trees, %d lines", at, TREES, n);
}

int main(void)
{
	char path[64];
	if (!tap_ok(mkdtemp(folder) != NULL, "a folder to work in"))
		return tap_done();
	snprintf(path, sizeof path, "%s/trees", folder);
	if (tap_ok(write_trees(path), "trees")) {
		test_place("root");
		test_place("all");
	}
	unlink(path);
	rmdir(folder);
	return tap_done();
}
