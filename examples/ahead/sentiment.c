/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A program that was compiled ahead of time, linked into this one: neither a model, nor weights, nor a
 * compiler is needed where it runs.  tree.o and tree.h are made by
 *
 *   espalier compile treelstm.ra --weights sst-treelstm-small.safetensors --pack -o tree.o */
#include "tree.h"

#include <espalier.h>
#include <stdio.h>

/* The tree ((1 2) 0) of words by their lines in the vocabulary: leaves first, the root last. */
static const int32_t begin[] = {0, 0, 0, 0, 2, 4}, children[] = {0, 1, 3, 2};
static const int32_t words[] = {1, 2, 0, -1, -1};
static const void *const data[] = {[tree_input_word] = words};
static const esp_structure sentence = {sizeof sentence, 5, begin, children, 4, data};

static int print_sentiment(const esp_program *program, const esp_session *session)
{
	const esp_output *output = esp_program_output(program, tree_output_sentiment);
	const float *value = esp_session_root(session, tree_output_sentiment, 0);
	for (int i = 0; i < tree_output_sentiment_elements; i++)
		printf("%-13s %.3f\n", output->labels ? output->label[i] : "", value[i]);
	return 0;
}

int main(void)
{
	esp_context *context = NULL;
	esp_program *program = NULL;
	esp_binding *binding = NULL;
	esp_forest *forest = NULL;
	esp_session *session = NULL;
	esp_error *error = NULL;
	int failed = esp_context_create(NULL, &context, &error) ||
		     esp_program_load_memory(context, tree_program, tree_size, &program, &error) ||
		     esp_binding_create(program, NULL, &binding, &error) ||
		     esp_forest_create(program, &forest, &error) ||
		     esp_session_create(binding, &session, &error) ||
		     esp_forest_add(forest, &sentence, &error) || esp_session_run(session, forest, &error);
	if (failed)
		fputs(esp_error_text(error), stderr);
	else
		failed = print_sentiment(program, session);
	esp_error_free(error);
	esp_session_free(session);
	esp_forest_free(forest);
	esp_binding_free(binding);
	esp_program_free(program);
	esp_context_free(context);
	return failed != 0;
}
