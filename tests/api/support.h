/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the public interface share: a small model whose results are small integers, its weights,
 * and an allocator that keeps accounts. */
#ifndef ESPALIER_TESTS_API_SUPPORT_H
#define ESPALIER_TESTS_API_SUPPORT_H

#include "api/espalier.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A model over embeddings, up to what an inner node computes. */
#define EMBEDDED(name, structure)                                                                            \
	"model " name "\nstructure " structure                                                               \
	"\ninput word : token\nparam E[V, D]\nparam W[D, D]\n"                                               \
	"state h[D]\nleaf:\n    h = E[word]\ninner:\n"

/* W swaps the two elements. */
static const char tiny_model[] =
    EMBEDDED("tiny", "tree(left, right)")
    "    h = W @ left.h + right.h\n"
    "output twice = h + h at every node\n"
    "output total = sum(h) at root\n";

struct tensor {
	const char *name;
	int rows, columns;
	const float *values;
};

static const struct tensor tiny_weights[] = {
    {"E", 4, 2, (const float[]){1, 2, 3, 4, 5, 6, 7, 8}},
    {"W", 2, 2, (const float[]){0, 1, 1, 0}},
};

/* --- files in a folder of the test's own --- */

static char folder[64];

static inline const char *make_folder(void)
{
	strcpy(folder, "/tmp/espalier-test-XXXXXX");
	return mkdtemp(folder);
}

static inline const char *path_of(const char *name)
{
	static char paths[8][128];
	static int next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t n)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
		abort();
	return path;
}

static inline const char *write_text(const char *name, const char *text)
{
	return write_file(name, text, strlen(text));
}

static inline const char *write_weights(const char *name, const struct tensor *t, int n)
{
	static char file[1 << 18];
	char header[1000] = "{";
	size_t data = 0, length;
	for (int i = 0; i < n; i++) {
		size_t bytes = t[i].rows * t[i].columns * sizeof(float);
		snprintf(header + strlen(header), sizeof header - strlen(header),
			 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]}",
			 i ? "," : "", t[i].name, t[i].rows, t[i].columns, data, data + bytes);
		data += bytes;
	}
	strcat(header, "}");
	uint64_t size = strlen(header);
	memcpy(file, &size, 8);
	memcpy(file + 8, header, size);
	length = 8 + size;
	for (int i = 0; i < n; i++) {
		size_t bytes = t[i].rows * t[i].columns * sizeof(float);
		memcpy(file + length, t[i].values, bytes);
		length += bytes;
	}
	return write_file(name, file, length);
}

/* Of any such model: four words, and products that stay small. */
static inline const char *write_wide_weights(const char *name, int dimension)
{
	int es = 4 * dimension, ws = dimension * dimension;
	float *e = malloc(es * sizeof *e), *w = malloc(ws * sizeof *w);
	for (int i = 0; i < es; i++)
		e[i] = (float)(i % 17) / 17 - 0.5f;
	for (int i = 0; i < ws; i++)
		w[i] = (float)(i * 7 % 23) / 230 - 0.05f;
	const struct tensor both[] = {{"E", 4, dimension, e}, {"W", dimension, dimension, w}};
	const char *path = write_weights(name, both, 2);
	free(e);
	free(w);
	return path;
}

static inline void remove_folder(const char *const *names, int n)
{
	for (int i = 0; i < n; i++)
		unlink(path_of(names[i]));
	rmdir(folder);
}

/* --- everything that a run needs --- */

struct kit {
	esp_context *context;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
	esp_forest *forest;
	esp_session *session;
	esp_vocab *vocab;
	esp_treebank *treebank;
};

static const esp_program_options interpreted = {.size = sizeof interpreted, .backend = "interpreter"};

/* Options of a treebank whose words have this vocabulary. */
#define words_are(v) ((esp_treebank_options){.size = sizeof(esp_treebank_options), .vocab = (v)})

/* Stops at the first failure, whose error it leaves to the caller. */
static inline esp_status make_kit(struct kit *k, const esp_context_options *memory, const char *weights,
				  esp_error **error)
{
	esp_status s;
	memset(k, 0, sizeof *k);
	if ((s = esp_context_create(memory, &k->context, error)) ||
	    (s = esp_model_parse(k->context, "tiny.ra", tiny_model, strlen(tiny_model), &k->model, error)) ||
	    (s = esp_weights_open(k->context, weights, &k->weights, error)) ||
	    (s = esp_program_create(k->model, k->weights, &interpreted, &k->program, error)) ||
	    (s = esp_binding_create(k->program, k->weights, &k->binding, error)) ||
	    (s = esp_forest_create(k->program, &k->forest, error)) ||
	    (s = esp_session_create(k->binding, &k->session, error)))
		return s;
	return ESP_OK;
}

static inline void free_kit(struct kit *k)
{
	esp_context_free(k->context);
	esp_model_free(k->model);
	esp_weights_free(k->weights);
	esp_program_free(k->program);
	esp_binding_free(k->binding);
	esp_forest_free(k->forest);
	esp_session_free(k->session);
	esp_vocab_free(k->vocab);
	esp_treebank_free(k->treebank);
	memset(k, 0, sizeof *k);
}

/* The first diagnostic's id; the error is freed. */
static inline bool error_is(esp_error *e, const char *id)
{
	bool ok = esp_error_count(e) > 0 && strcmp(esp_error_get(e, 0)->id, id) == 0;
	if (!ok || getenv("VERBOSE"))
		printf("# %s\n", esp_error_text(e));
	esp_error_free(e);
	return ok;
}

/* Two leaves with words 0 and 1, and their parent. */
static const int32_t first_pair[] = {0, 0, 0, 2}, pair_children[] = {0, 1}, pair_words[] = {0, 1, -1};
static const void *const pair_data[] = {pair_words};
static const esp_structure pair = {sizeof pair, 3, first_pair, pair_children, 2, pair_data};

/* --- an allocator that keeps accounts --- */

struct account {
	long blocks, bytes; /* that are out */
	long left;	    /* requests until it fails; negative = never */
	bool wrong;	    /* a size was given back that was never taken */
};

/* Each block begins with its size. */
static inline void *account_resize(void *user, void *p, size_t old_size, size_t new_size)
{
	struct account *a = user;
	size_t *block = p ? (size_t *)((char *)p - 64) : NULL;
	a->wrong |= block ? *block != old_size : old_size != 0;
	if (new_size && a->left >= 0 && a->left-- == 0) {
		a->left = 0;
		return NULL;
	}
	a->blocks += (new_size && !block) - (block && !new_size);
	a->bytes += (long)new_size - (long)old_size;
	if (!new_size) {
		free(block);
		return NULL;
	}
	block = realloc(block, new_size + 64);
	*block = new_size;
	return (char *)block + 64;
}

/* A context of one thread that keeps nothing, so that its allocations are the same each time. */
#define memory_of(account)                                                                                   \
	((esp_context_options){.size = sizeof(esp_context_options),                                          \
			       .resize = account_resize,                                                     \
			       .user = (account),                                                            \
			       .cache = ESP_CACHE_OFF,                                                       \
			       .threads = 1})

/* Uses a context of these options, whose requests the account may refuse from where `left` was set on; returns the
 * first failure, when everything was given back. */
typedef esp_status use_memory(struct account *, const esp_context_options *, esp_error **);

/* Refuses the first request of `use`, then the second one, and so on until it succeeds: each refusal must be told, and
 * all memory come back.  `use` makes more than `least` requests. */
static inline void test_refusals_of_memory(use_memory *use, long least)
{
	enum { MOST = 5000 };
	struct account account = {.left = -1};
	const esp_context_options memory = memory_of(&account);
	bool right = true;
	esp_status s = ESP_ERROR_MEMORY;
	long n = 0;
	for (; s != ESP_OK && right && n < MOST; n++) {
		esp_error *error = NULL;
		account = (struct account){.left = n};
		s = use(&account, &memory, &error);
		right &= s == ESP_OK || (error && strcmp(esp_error_get(error, 0)->id, "out-of-memory") == 0);
		esp_error_free(error);
		right &= account.blocks == 0 && !account.wrong;
	}
	tap_ok(s == ESP_OK && right && n > least,
	       "%ld allocations: any that fails is told, and all are given back", n - 1);
}

#endif
