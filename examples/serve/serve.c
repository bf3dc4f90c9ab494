/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Serving from an event loop: serve MODEL.ra WEIGHTS VOCAB TREES.  Each tree is a request; a server waits for
 * its sockets in the same poll.  cc serve.c $(pkg-config --cflags --libs espalier) -o serve */
#include <espalier_service.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static esp_error *error;
static esp_service *service;
static int descriptor, pending;
static size_t output; /* sentiment: probabilities with names */

static void check_status(esp_status status)
{
	if (status == ESP_OK)
		return;
	fputs(esp_error_text(error), stderr);
	exit(1);
}

/* Waits until a request has ended, and prints all that have. */
static void print_ended(const esp_output *o)
{
	poll(&(struct pollfd){descriptor, POLLIN, 0}, 1, -1);
	for (esp_ticket *t; (t = esp_service_next(service)); pending--) {
		esp_forest *tree = esp_ticket_user(t);
		check_status(esp_ticket_wait(t, 0, &error));
		const float *row = esp_ticket_output(t, output, 0, esp_forest_root(tree, 0));
		size_t best = 0;
		for (size_t i = 1; i < o->elements; i++)
			best = row[i] > row[best] ? i : best;
		printf("%-13s %.3f  %zu nodes\n", o->label[best], row[best], esp_forest_nodes(tree, 0));
		esp_ticket_free(t);
		esp_forest_free(tree);
	}
}

int main(int argc, char **argv)
{
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_vocab *vocab;
	esp_treebank *trees;
	esp_program *program;
	esp_binding *binding;
	esp_forest *tree;
	esp_ticket *ticket;
	int more;
	if (argc != 5)
		return fputs("usage: serve MODEL.ra WEIGHTS VOCAB TREES\n", stderr), 2;
	check_status(esp_context_create(NULL, &context, &error));
	check_status(esp_model_read(context, argv[1], &model, &error));
	check_status(esp_weights_open(context, argv[2], &weights, &error));
	check_status(esp_vocab_open(context, argv[3], &vocab, &error));
	const esp_treebank_options reading = {.size = sizeof reading, .vocab = vocab};
	check_status(esp_treebank_open(context, argv[4], &reading, &trees, &error));
	const esp_program_options compiling = {.size = sizeof compiling, .continuous = 1};
	check_status(esp_program_create(model, weights, &compiling, &program, &error));
	check_status(esp_binding_create(program, weights, &binding, &error));
	const esp_service_options limits = {.size = sizeof limits, .requests = 8};
	check_status(esp_service_create(binding, &limits, &service, &error));
	check_status(esp_service_descriptor(service, &descriptor, &error));
	output = esp_program_outputs(program) - 1;
	while (check_status(esp_forest_create(program, &tree, &error)),
	       check_status(esp_treebank_next(trees, tree, &more, &error)), more) {
		const esp_submit_options o = {.size = sizeof o, .event = 1, .user = tree};
		while (esp_service_submit(service, tree, &o, &ticket, NULL) == ESP_ERROR_BUSY)
			print_ended(esp_program_output(program, output)); /* full: a server would answer so */
		pending++;
	}
	while (pending)
		print_ended(esp_program_output(program, output));
	esp_forest_free(tree), esp_service_free(service), esp_binding_free(binding),
	    esp_program_free(program);
	esp_treebank_free(trees), esp_vocab_free(vocab), esp_weights_free(weights), esp_model_free(model);
	return esp_context_free(context), 0;
}
