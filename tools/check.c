/* espalier check: everything that can be refused before a run. */
#include "tool.h"

#include <inttypes.h>

static void print_model(FILE *to, const esp_model *m)
{
	const esp_model_facts *f = esp_model_describe(m);
	fprintf(to, "OK: %s, a model of a %s", f->name, f->structure);
	if (f->children < 0)
		fputs(" with any number of children", to);
	else
		fprintf(to, " with %d %s", f->children, f->children == 1 ? "child" : "children");
	fprintf(to, "\n    inputs %zu, states %zu, params %zu, outputs %zu\n", f->inputs, f->states,
		f->params, f->outputs);
}

static void print_program(FILE *to, const esp_program *p)
{
	const char *name;
	int64_t size;
	fputs("    sizes", to);
	for (size_t i = 0; (name = esp_program_size(p, i, &size)); i++)
		fprintf(to, "%s %s = %" PRId64, i ? "," : "", name, size);
	fputc('\n', to);
}

struct count {
	size_t trees, nodes;
};

/* Trees are checked one by one, so that a diagnostic can be related to its tree. */
static esp_status check_trees(esp_treebank *treebank, esp_forest *forest, struct count *count,
			      esp_error **error)
{
	for (int more = 1;;) {
		esp_forest_clear(forest);
		esp_status status = esp_treebank_next(treebank, forest, &more, error);
		if (!status && !more)
			return ESP_OK;
		if (!status)
			status = esp_forest_check(forest, error);
		if (status)
			return status;
		count->trees++;
		count->nodes += esp_forest_nodes(forest, 0);
	}
}

static int check_input(const struct objects *o, const char *path, struct count *count)
{
	esp_error *error;
	esp_treebank *treebank = NULL;
	esp_forest *forest = NULL;
	int exit_status = 0;
	esp_status status = esp_treebank_open(o->context, path, o->vocab, &treebank, &error);
	if (!status)
		status = esp_forest_create(o->program, &forest, &error);
	if (!status)
		status = check_trees(treebank, forest, count, &error);
	if (status) {
		exit_status = report(status, error);
		complain_tree(path, count->trees, esp_treebank_sentence(treebank));
	}
	esp_forest_free(forest);
	esp_treebank_free(treebank);
	return exit_status;
}

/* What is said stands on stdout only when all is well. */
static int check(const struct objects *o, const struct options *options)
{
	struct count count = {0};
	const char *input = options->operands == 2 ? options->operand[1] : NULL;
	if (input && !has_vocab(o))
		return EXIT_USAGE;
	int status = input ? check_input(o, input, &count) : 0;
	if (status)
		return status;
	print_model(stdout, o->model);
	if (o->program)
		print_program(stdout, o->program);
	if (input)
		printf("    trees %zu, nodes %zu\n", count.trees, count.nodes);
	return 0;
}

int command_check(const struct options *options)
{
	struct objects o;
	if (options->operands == 2 && !options->weights) {
		complain("an input is checked for a program: give --weights FILE");
		return EXIT_USAGE;
	}
	int status =
	    objects_open(&o, options, options->operand[0], ESP_AT_MODEL) ? check(&o, options) : o.status;
	objects_close(&o);
	return status;
}
