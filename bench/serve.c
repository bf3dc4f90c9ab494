/* serve MODEL.ra WEIGHTS VOCAB TREES [--backend NAME] [--target-cpu NAME] [--threads N]
 *
 * Our side of a comparison: bench/compare.py starts it beside a peer and asks both in turn.  A line
 *     run FIRST COUNT REPEATS
 * on stdin is answered by REPEATS numbers in one line: the microseconds that linearizing and running trees
 * FIRST .. FIRST+COUNT-1 took, outputs at every node.  Trees are read, code is made and memory is taken
 * before. */
#include "espalier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct server {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_vocab *vocab;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	esp_treebank *treebank;
	const char *trees;
	long at; /* the number of the tree that the treebank reads next */
};

static void must(esp_status status, esp_error **error)
{
	if (!status)
		return;
	fprintf(stderr, "serve: %s", esp_error_text(*error));
	exit(1);
}

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "serve: %s\n", what);
	exit(1);
}

static void prepare(struct server *s, char **argv, const esp_context_options *shared,
		    const esp_program_options *options)
{
	esp_error *e = NULL;
	must(esp_context_create(shared, &s->context, &e), &e);
	must(esp_model_read(s->context, argv[1], &s->model, &e), &e);
	must(esp_weights_open(s->context, argv[2], &s->weights, &e), &e);
	must(esp_vocab_open(s->context, argv[3], &s->vocab, &e), &e);
	must(esp_program_create(s->model, s->weights, options, &s->program, &e), &e);
	must(esp_binding_create(s->program, s->weights, &s->binding, &e), &e);
	must(esp_session_create(s->binding, &s->session, &e), &e);
	must(esp_forest_create(s->program, &s->forest, &e), &e);
	s->trees = argv[4];
}

/* Requests usually ascend; only one that goes back reads the file from its beginning. */
static void seek(struct server *s, long first)
{
	esp_error *e = NULL;
	if (!s->treebank || s->at > first) {
		esp_treebank_free(s->treebank);
		must(esp_treebank_open(s->context, s->trees, s->vocab, &s->treebank, &e), &e);
		s->at = 0;
	}
	for (int more = 1; s->at < first && more; s->at++) {
		esp_forest_clear(s->forest);
		must(esp_treebank_next(s->treebank, s->forest, &more, &e), &e);
	}
}

static void read_trees(struct server *s, long first, long count)
{
	esp_error *e = NULL;
	seek(s, first);
	esp_forest_clear(s->forest);
	for (int more = 1; s->at < first + count && more; s->at++)
		must(esp_treebank_next(s->treebank, s->forest, &more, &e), &e);
	if (esp_forest_structures(s->forest) != (size_t)count)
		give_up("the file has no such trees");
}

static double microseconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

/* The first run, which may take memory, is not counted. */
static void serve(struct server *s, long first, long count, long repeats)
{
	esp_error *e = NULL;
	read_trees(s, first, count);
	must(esp_session_run(s->session, s->forest, &e), &e);
	for (long i = 0; i < repeats; i++) {
		double begin = microseconds();
		must(esp_session_run(s->session, s->forest, &e), &e);
		printf("%s%.2f", i ? " " : "", microseconds() - begin);
	}
	putchar('\n');
	fflush(stdout);
}

static void read_options(int argc, char **argv, esp_context_options *shared, esp_program_options *o)
{
	for (int i = 5; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--backend") == 0)
			o->backend = argv[i + 1];
		else if (strcmp(argv[i], "--target-cpu") == 0)
			o->target = argv[i + 1];
		else if (strcmp(argv[i], "--threads") == 0)
			shared->threads = atoi(argv[i + 1]);
		else
			give_up("options are --backend NAME, --target-cpu NAME and --threads N");
}

int main(int argc, char **argv)
{
	struct server s = {0};
	char line[200];
	long first, count, repeats;
	if (argc < 5 || argc % 2 == 0)
		give_up(
		    "usage: serve MODEL.ra WEIGHTS VOCAB TREES [--backend NAME] [--target-cpu NAME] "
		    "[--threads N]");
	esp_context_options shared = {.size = sizeof shared, .threads = 1};
	esp_program_options options = {.size = sizeof options, .at = ESP_AT_EVERY_NODE};
	read_options(argc, argv, &shared, &options);
	prepare(&s, argv, &shared, &options);
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "run %ld %ld %ld", &first, &count, &repeats) != 3 || first < 0 ||
		    count < 1 || repeats < 1)
			give_up("a request is: run FIRST COUNT REPEATS");
		serve(&s, first, count, repeats);
	}
	esp_treebank_free(s.treebank);
	esp_forest_free(s.forest);
	esp_session_free(s.session);
	esp_binding_free(s.binding);
	esp_program_free(s.program);
	esp_vocab_free(s.vocab);
	esp_weights_free(s.weights);
	esp_model_free(s.model);
	esp_context_free(s.context);
	return 0;
}
