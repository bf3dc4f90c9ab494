/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/served.h"

#include "base/json_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[SERVED_MODELS] = {
    [SERVED_TREE] =
	"model m\nstructure tree(*)\ninput word : token\nparam E[V, 2]\nstate h[2]\nleaf:\n    h = "
	"E[word]\ninner:\n"
	"    h = sum(k.h for k in children)\noutput all = h at every node\noutput best = h at root\n",
    [SERVED_SEQUENCE] =
	"model m\nstructure sequence\ninput word : token\nparam E[V, 2]\nstate h[2]\nleaf:\n    h = "
	"E[word]\ninner:\n"
	"    h = E[word] + previous.h\noutput all = h at every node\noutput best = h at root\n",
    [SERVED_TYPES] =
	"model m\nstructure dag(*)\ninput word : token, x[2], y[2, 2], half[2] : f16, brain[2] : bf16, "
	"mask[2] : bool, "
	"small : i8, tiny : u8, middle : i16, kind : i32, large : i64\n"
	"edge rel : token\nedge gain[2]\nparam E[V, 2]\nstate h[2]\nstate size : i64\nnode:\n"
	"    h = where(mask, E[word], 0) + y @ x + half + brain + cast(small + cast(tiny, i32) + middle, "
	"f32) + "
	"sum(k.h * 0.5 + E[k.rel] + k.gain for k in children)\n"
	"    size = large + cast(kind, i64) + sum(k.size for k in children)\n"
	"output all = h at every node\noutput sizes = size at every node\noutput flags = h > 1 at root\n",
};

/* --- memory of the library --- */

static long blocks, left = -1;

static void *resize(void *user, void *p, size_t old_size, size_t new_size)
{
	(void)user, (void)old_size;
	if (!new_size) {
		blocks -= p != NULL;
		free(p);
		return NULL;
	}
	if (left >= 0 && left-- == 0) {
		left = 0;
		return NULL;
	}
	blocks += !p;
	return realloc(p, new_size);
}

long served_blocks(void)
{
	return blocks;
}

void served_fail(long n)
{
	left = n;
}

/* --- models --- */

static void need(esp_status status, esp_error *error)
{
	if (!status)
		return;
	fputs(esp_error_text(error), stderr);
	abort();
}

static const char *weights(size_t *n)
{
	static const char header[] = "{\"E\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[0,32]}}";
	static const float rows[8] = {1, 2, 3, 4, -0.5f, 1e-7f, 0.1f, 3e9f};
	static char file[8 + sizeof header - 1 + sizeof rows];
	uint64_t length = sizeof header - 1;
	memcpy(file, &length, 8);
	memcpy(file + 8, header, length);
	memcpy(file + 8 + length, rows, sizeof rows);
	*n = sizeof file;
	return file;
}

static void open_model(struct served *s, const char *text)
{
	static const esp_context_options memory = {.size = sizeof memory,
						   .resize = resize,
						   .threads = 1,
						   .cache = ESP_CACHE_OFF,
						   .machine = ESP_MACHINE_DEFAULTS};
	static const esp_program_options o = {.size = sizeof o, .backend = "interpreter", .continuous = 1};
	static const char words[] = "a\nb\nc\nd\n";
	esp_error *e = NULL;
	esp_model *model;
	esp_weights *w;
	esp_binding *binding;
	esp_vocab *vocab;
	size_t n;
	const char *file = weights(&n);
	need(esp_context_create(&memory, &s->model.context, &e), e);
	need(esp_model_parse(s->model.context, "m.ra", text, strlen(text), &model, &e), e);
	need(esp_weights_from_memory(s->model.context, file, n, &w, &e), e);
	need(esp_program_create(model, w, &o, &s->model.program, &e), e);
	need(esp_binding_create(s->model.program, w, &binding, &e), e);
	need(esp_service_create(binding, NULL, &s->service, &e), e);
	need(esp_vocab_open(s->model.context, fuzz_file(words, sizeof words - 1), &vocab, &e), e);
	s->reading = (esp_treebank_options){.size = sizeof s->reading, .vocab = vocab};
	esp_model_free(model);
	esp_weights_free(w);
	esp_binding_free(binding);
	s->model.name = "m";
	s->model.reading = &s->reading;
}

const struct served *served_model(int which)
{
	static struct served served[SERVED_MODELS];
	if (!served[which].service)
		open_model(&served[which], texts[which]);
	return &served[which];
}

/* --- promises --- */

static void check_response(const struct fuzz *f, const char *text, size_t n, size_t lines)
{
	struct scan s = {.at = text, .end = text + n};
	fuzz_check(f, text && n && text[n - 1] == '\n' && !text[n], "a response is a text of lines");
	for (size_t i = 0; i < lines; i++)
		fuzz_check(f, scan_peek(&s) == '{' && scan_skip(&s) && *s.at == '\n',
			   "each line is an object");
	fuzz_check(f, !scan_peek(&s), "there are as many as there are structures");
}

static void compute(const struct fuzz *f, const struct served *s, const struct infer_request *r, int lines)
{
	esp_ticket *t;
	esp_submit_options o = infer_options(r);
	size_t n;
	if (esp_service_submit(s->service, infer_forest(r), &o, &t, NULL))
		return;
	if (esp_ticket_wait(t, INT64_MAX, NULL) == ESP_OK) {
		char *text = infer_write(r, t, s->model.name, esp_ticket_generation(t), &n);
		check_response(f, text, n, lines ? (size_t)lines : esp_forest_structures(infer_forest(r)));
		free(text);
	}
	esp_ticket_free(t);
}

static void check_refusal(const struct fuzz *f, const struct infer_failure *why)
{
	size_t n;
	char *text = infer_write_error(why->message, &n);
	fuzz_check(f, why->status == 400 || why->status == 413, "what is refused is the client's fault");
	fuzz_check(f, why->message[0] && memchr(why->message, 0, sizeof why->message), "and is explained");
	check_response(f, text, n, 1);
	free(text);
}

void served_check(const struct fuzz *f, const struct served *s, struct infer_request *r,
		  const struct infer_failure *why, int lines)
{
	size_t nodes = 0;
	if (!r) {
		check_refusal(f, why);
		return;
	}
	for (size_t i = 0; i < esp_forest_structures(infer_forest(r)); i++)
		nodes += esp_forest_nodes(infer_forest(r), i);
	fuzz_check(f, nodes && nodes == infer_nodes(r), "a request has the nodes of its structures");
	if (nodes < 1000 && esp_forest_check(infer_forest(r), NULL) == ESP_OK)
		compute(f, s, r, lines);
	infer_free(r);
}
