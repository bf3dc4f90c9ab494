/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads the shapes of a file's structures, whatever values their nodes carry. */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a file that can be read again --- */

static bool copy_all(FILE *from, FILE *to)
{
	char buffer[1 << 16];
	while (!feof(from) && !ferror(from)) {
		size_t n = fread(buffer, 1, sizeof buffer, from);
		if (fwrite(buffer, 1, n, to) != n)
			return false;
	}
	return !ferror(from) && fflush(to) == 0;
}

/* The copy replaces standard input, which is then read as "-" again. */
static bool hold_copy(struct input *input, FILE *from)
{
	input->copy = tmpfile();
	if (!input->copy || !copy_all(from, input->copy) ||
	    (from == stdin && dup2(fileno(input->copy), STDIN_FILENO) < 0))
		return complain("cannot keep a copy of the input: %s", strerror(errno));
	if (from != stdin) {
		snprintf(input->own, sizeof input->own, "/proc/self/fd/%d", fileno(input->copy));
		input->path = input->own;
	}
	return true;
}

bool input_open(struct input *input, const char *path)
{
	struct stat s;
	bool standard = strcmp(path, "-") == 0;
	*input = (struct input){.path = path};
	if (!standard && (stat(path, &s) || S_ISREG(s.st_mode)))
		return true;
	FILE *from = standard ? stdin : fopen(path, "r");
	if (!from)
		return complain("cannot read '%s': %s", path, strerror(errno));
	bool ok = hold_copy(input, from);
	if (!standard)
		fclose(from);
	return ok;
}

esp_status input_begin(const char *path, const struct objects *o, esp_treebank **bank, esp_error **error)
{
	if (strcmp(path, "-") == 0)
		lseek(STDIN_FILENO, 0, SEEK_SET);
	return esp_treebank_open(o->context, path, &o->reading.options, bank, error);
}

void input_close(struct input *input)
{
	if (input->copy)
		fclose(input->copy);
	*input = (struct input){0};
}

/* --- renumbering the nodes of a structure --- */

/* A depth-first walk that numbers a node after all its children. */
struct walk {
	const esp_forest *forest; /* it holds one structure */
	struct shape *shape;
	int32_t *number; /* the new number of each node of the forest, or one of: */
	int32_t *path, *slot;
	size_t depth;
};
enum { UNSEEN = -1, OPEN = -2 };

static size_t count_children(const esp_forest *forest, size_t node)
{
	size_t n = 0;
	while (esp_forest_child(forest, 0, node, n) >= 0)
		n++;
	return n;
}

static void enter_node(struct walk *w, int32_t node)
{
	w->number[node] = OPEN;
	w->slot[node] = 0;
	w->path[w->depth++] = node;
}

static void leave_node(struct walk *w)
{
	struct shape *s = w->shape;
	int32_t node = w->path[--w->depth], child;
	int32_t *end = &s->begin[s->nodes + 1];
	*end = s->begin[s->nodes];
	for (size_t slot = 0; (child = esp_forest_child(w->forest, 0, node, slot)) >= 0; slot++)
		s->children[(*end)++] = w->number[child];
	w->number[node] = s->nodes++;
}

/* Numbers `start` and all nodes below it; false at a cycle. */
static bool number_below(struct walk *w, int32_t start)
{
	if (w->number[start] == UNSEEN)
		enter_node(w, start);
	while (w->depth) {
		int32_t node = w->path[w->depth - 1];
		int32_t child = esp_forest_child(w->forest, 0, node, w->slot[node]++);
		if (child < 0)
			leave_node(w);
		else if (w->number[child] == OPEN)
			return false;
		else if (w->number[child] == UNSEEN)
			enter_node(w, child);
	}
	return true;
}

/* Numbers the root's tree last, so that the root has the last number. */
static bool number_all(struct walk *w, size_t nodes)
{
	int32_t root = esp_forest_root(w->forest, 0);
	for (size_t i = 0; i < nodes; i++)
		w->number[i] = UNSEEN;
	for (size_t i = 0; i < nodes; i++)
		if ((int32_t)i != root && !number_below(w, i))
			return false;
	return number_below(w, root);
}

static bool walk_init(struct walk *w, size_t nodes)
{
	size_t edges = 0;
	for (size_t i = 0; i < nodes; i++)
		edges += count_children(w->forest, i);
	w->number = calloc(nodes + 1, sizeof *w->number);
	w->path = calloc(nodes + 1, sizeof *w->path);
	w->slot = calloc(nodes + 1, sizeof *w->slot);
	return w->number && w->path && w->slot && shape_init(w->shape, nodes, edges);
}

static bool copy_shape(struct shape *to, const esp_forest *forest, struct random *r)
{
	struct walk w = {.forest = forest, .shape = to};
	size_t nodes = esp_forest_nodes(forest, 0);
	bool ok = walk_init(&w, nodes) || complain("no memory for a structure of %zu nodes", nodes);
	ok = ok && (number_all(&w, nodes) || complain("a structure of the input has a cycle"));
	for (size_t i = 0; ok && i < nodes; i++)
		to->word[i] = random_bits(r);
	free(w.number);
	free(w.path);
	free(w.slot);
	return ok;
}

/* --- reading a file --- */

/* Models that read no inputs, so that any file fits. The reader takes lines of words as sequences only for
 * a model of sequences, so there are two: one for these and one for any structure. */
#define MODEL_OF(structure)                                                                                  \
	"model structures\nstructure " structure                                                             \
	"\n"                                                                                                 \
	"state h[1]\n"                                                                                       \
	"node:\n"                                                                                            \
	"    h = sum(k.h for k in children)\n"                                                               \
	"output result = h at root\n"
static const char any_sequence[] = MODEL_OF("sequence"), any_structure[] = MODEL_OF("dag(*)");

static const char *model_like(const esp_model *model)
{
	const esp_model_facts *facts = esp_model_describe(model);
	return facts->children == 1 && strcmp(facts->structure, "dag") != 0 ? any_sequence : any_structure;
}

/* The objects that read the file with the options. */
struct reader {
	esp_model *model;
	esp_program *program;
	esp_forest *forest;
	esp_treebank *bank;
};

static esp_status open_reader(struct reader *r, const struct objects *o, const char *path, esp_error **error)
{
	int64_t no_sizes = 0;
	esp_program_options options = {.size = sizeof options, .backend = "interpreter", .sizes = &no_sizes};
	const char *text = model_like(o->model);
	esp_status status = esp_model_parse(o->context, "structures", text, strlen(text), &r->model, error);
	if (!status)
		status = esp_program_create(r->model, NULL, &options, &r->program, error);
	if (!status)
		status = esp_forest_create(r->program, &r->forest, error);
	if (!status)
		status = input_begin(path, o, &r->bank, error);
	return status;
}

static void close_reader(struct reader *r)
{
	esp_treebank_free(r->bank);
	esp_forest_free(r->forest);
	esp_program_free(r->program);
	esp_model_free(r->model);
}

static struct shape *add_shape(struct shapes *all)
{
	struct shape *grown = realloc(all->at, (all->n + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	all->at = grown;
	all->at[all->n] = (struct shape){0};
	return &all->at[all->n++];
}

static bool read_shape(struct shapes *all, struct reader *r, struct random *random, int *more)
{
	esp_error *error;
	esp_forest_clear(r->forest);
	esp_status status = esp_treebank_next(r->bank, r->forest, more, &error);
	if (status)
		return report_failure(status, error) == 0;
	if (!*more)
		return true;
	struct shape *shape = add_shape(all);
	return shape ? copy_shape(shape, r->forest, random) : complain("no memory for structures");
}

bool shapes_read(struct shapes *all, const struct objects *o, const char *path, size_t most,
		 struct random *random)
{
	struct reader r = {0};
	esp_error *error;
	int more = 1;
	*all = (struct shapes){0};
	esp_status status = open_reader(&r, o, path, &error);
	bool ok = !status || report_failure(status, error) == 0;
	while (ok && more && all->n < most)
		ok = read_shape(all, &r, random, &more);
	close_reader(&r);
	return ok &&
	       (all->n > 0 || complain("%s holds no structure", strcmp(path, "-") ? path : "standard input"));
}
