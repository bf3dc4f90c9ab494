/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sequences that grow while they are computed: streams MODEL.ra WEIGHTS STREAMS ELEMENTS.  Each stream gets a
 * word or a frame of a voice every 10 ms.
 * cc streams.c $(pkg-config --cflags --libs espalier) -lm -o streams */
#include <espalier_service.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { TICK = 10000000 /* ns */, MOST = 16 /* elements that are pushed together */, INPUTS = 8 };
struct voice {
	esp_stream *stream;
	int number, ended, pushed; /* elements */
};

static esp_error *error;
static esp_program *program;
static void *data[INPUTS]; /* rows of the elements to be pushed */

static void check_status(esp_status status)
{
	if (status == ESP_OK)
		return;
	fputs(esp_error_text(error), stderr);
	exit(1);
}

/* Pushes what has come since the last time: word k of stream n is k + n, a frame a tone of its own. */
static void push_elements(struct voice *v, int come)
{
	const esp_submit_options o = {.size = sizeof o, .event = 1, .user = v};
	int n = come - v->ended < MOST ? come - v->ended : MOST;
	const esp_input *input;
	esp_ticket *ticket;
	for (size_t i = 0; (input = esp_program_input(program, i)); i++)
		for (int k = 0; k < n; k++)
			for (size_t e = 0; e < input->elements; e++)
				if (input->is_token)
					((int32_t *)data[i])[k] = (v->ended + k + v->number) % (int)input->limit;
				else
					((float *)data[i])[k * input->elements + e] =
					    sinf((float)((v->ended + k + 1) * (e + v->number + 1)) / 10);
	if (esp_stream_push(v->stream, (size_t)n, (const void *const *)data, &o, &ticket, &error) == ESP_OK)
		v->pushed = v->ended + n; /* when the service is full it is tried again */
}

/* Takes what has ended, and prints the last output of the first stream. */
static void take_ended(esp_service *service, int elements)
{
	for (esp_ticket *t; (t = esp_service_next(service));) {
		struct voice *v = esp_ticket_user(t);
		check_status(esp_ticket_wait(t, 0, &error));
		const float *row = esp_ticket_output(t, 0, 0, (size_t)(v->pushed - v->ended - 1));
		size_t n = v->number || v->pushed < elements ? 0 : esp_program_output(program, 0)->elements;
		for (size_t i = 0; i < n; i++)
			printf("%s%.9g", i ? " " : "", row[i]);
		v->ended = v->pushed;
		esp_ticket_free(t);
	}
}

int main(int argc, char **argv)
{
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_binding *binding;
	esp_service *service;
	int descriptor, streams = argc == 5 ? atoi(argv[3]) : 0, elements = argc == 5 ? atoi(argv[4]) : 0, busy = 1;
	if (streams < 1 || elements < 1)
		return fputs("usage: streams MODEL.ra WEIGHTS STREAMS ELEMENTS\n", stderr), 2;
	check_status(esp_context_create(NULL, &context, &error));
	check_status(esp_model_read(context, argv[1], &model, &error));
	check_status(esp_weights_open(context, argv[2], &weights, &error));
	const esp_program_options compiling = {.size = sizeof compiling, .continuous = 1};
	check_status(esp_program_create(model, weights, &compiling, &program, &error));
	check_status(esp_binding_create(program, weights, &binding, &error));
	const esp_service_options limits = {.size = sizeof limits, .requests = (size_t)streams};
	check_status(esp_service_create(binding, &limits, &service, &error));
	check_status(esp_service_descriptor(service, &descriptor, &error));
	struct voice *voice = calloc((size_t)streams, sizeof *voice);
	for (size_t i = 0; i < INPUTS && esp_program_input(program, i); i++)
		data[i] = calloc(MOST * esp_program_input(program, i)->elements + MOST, sizeof(float));
	for (int i = 0; i < streams; i++, voice[i - 1].number = i - 1)
		check_status(esp_stream_open(service, &voice[i].stream, &error));
	int64_t next = esp_clock();
	for (int come = 1; busy; come += come < elements) {
		busy = 0;
		for (int i = 0; i < streams; i++) {
			if (voice[i].pushed == voice[i].ended && voice[i].ended < come)
				push_elements(&voice[i], come);
			busy |= voice[i].ended < elements;
		}
		for (next += TICK; busy && esp_clock() < next; take_ended(service, elements))
			poll(&(struct pollfd){descriptor, POLLIN, 0}, 1, (int)((next - esp_clock()) / 1000000) + 1);
	}
	esp_service_counts c = {.size = sizeof c};
	esp_service_count(service, &c);
	printf("\n%d streams: %.0f elements together, half within %.2f ms, 99 %% within %.2f ms\n", streams,
	       c.step_nodes.mean, (double)c.whole.p50 * 1e-6, (double)c.whole.p99 * 1e-6);
	for (int i = 0; i < streams; i++)
		esp_stream_free(voice[i].stream);
	for (int i = 0; i < INPUTS; i++)
		free(data[i]);
	free(voice), esp_service_free(service), esp_binding_free(binding), esp_program_free(program);
	return esp_weights_free(weights), esp_model_free(model), esp_context_free(context), 0;
}
