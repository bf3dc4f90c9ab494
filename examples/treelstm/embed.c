/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The example as a program of its own: embed MODEL.ra WEIGHTS VOCAB TREES.  Build it against the installed
 * library: cc embed.c $(pkg-config --cflags --libs espalier) -o embed */
#include <espalier.h>
#include <stdio.h>
#include <stdlib.h>

static esp_error *error;

static void check_status(esp_status status)
{
	if (status == ESP_OK)
		return;
	fputs(esp_error_text(error), stderr);
	exit(1);
}

static size_t find_greatest(const float *row, size_t n)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++)
		best = row[i] > row[best] ? i : best;
	return best;
}

int main(int argc, char **argv)
{
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_vocab *vocab;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	esp_forest *forest;
	esp_treebank *treebank;
	int more;

	if (argc != 5)
		return fputs("usage: embed MODEL.ra WEIGHTS VOCAB TREES\n", stderr), 2;
	check_status(esp_context_create(NULL, &context, &error));
	check_status(esp_model_read(context, argv[1], &model, &error));
	check_status(esp_weights_open(context, argv[2], &weights, &error));
	check_status(esp_vocab_open(context, argv[3], &vocab, &error));
	esp_treebank_options reading = {.size = sizeof reading, .vocab = vocab};
	check_status(esp_treebank_open(context, argv[4], &reading, &treebank, &error));
	check_status(esp_program_create(model, weights, NULL, &program, &error));
	check_status(esp_binding_create(program, weights, &binding, &error));
	check_status(esp_session_create(binding, &session, &error));
	check_status(esp_forest_create(program, &forest, &error));

	size_t last = esp_program_outputs(program) - 1;
	const esp_output *output = esp_program_output(program, last); /* sentiment: probabilities with names */
	while (check_status(esp_treebank_next(treebank, forest, &more, &error)), more) {
		check_status(esp_session_run(session, forest, &error));
		const float *row = esp_session_root(session, last, 0);
		size_t best = find_greatest(row, output->elements);
		printf("%-13s %.3f  %s\n", output->labels ? output->label[best] : "", row[best],
		       esp_treebank_sentence(treebank));
		esp_forest_clear(forest);
	}

	const esp_costs c = *esp_session_costs(session);
	printf(
	    "%llu trees, %llu nodes: compile %.1f ms, bind %.1f ms; a tree: linearize %.1f us, run %.1f us\n",
	    (unsigned long long)c.structures, (unsigned long long)c.nodes, c.compile * 1e3, c.bind * 1e3,
	    c.linearize * 1e6 / c.structures, c.run * 1e6 / c.structures);
	esp_treebank_free(treebank); /* in any order */
	esp_forest_free(forest);
	esp_session_free(session);
	esp_binding_free(binding);
	esp_program_free(program);
	esp_vocab_free(vocab);
	esp_weights_free(weights);
	esp_model_free(model);
	esp_context_free(context);
	return 0;
}
