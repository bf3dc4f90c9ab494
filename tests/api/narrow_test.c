/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Narrow weights by the public interface: what becomes of numbers that a type does not have, of weights that
 * are exchanged, and of programs that are saved. */
#include "tests/api/support.h"
#include "tests/backends.h"

#include <math.h>

/* 1 + 2^-12 is 1 in f16, 2049 is 2048. */
static const struct tensor odd[] = {
    {"E", 4, 2, (const float[]){1, 2, 3, 4, 5, 6, 7, 8}},
    {"W", 2, 2, (const float[]){1.000244140625f, 3, 0.5f, 2049}},
};
static const struct tensor large[] = {
    {"E", 4, 2, (const float[]){1, 2, 3, 4, 5, 6, 7, 8}},
    {"W", 2, 2, (const float[]){70000, 3, 65504, 1e-10f}},
};
static const struct tensor special[] = {
    {"E", 4, 2, (const float[]){1, 2, 3, 4, 5, 6, 7, 8}},
    {"W", 2, 2, (const float[]){NAN, 3, 0, 0}},
};
static char odd_path[128], large_path[128], special_path[128], plain_path[128], program_path[128];

/* --- one use --- */

static esp_status open_narrow(struct kit *k, const char *weights, const char *backend, const char *type)
{
	esp_program_options o = {.size = sizeof o, .backend = backend, .weights_as = type};
	memset(k, 0, sizeof *k);
	esp_status s = esp_context_create(NULL, &k->context, NULL);
	s = s ? s : esp_model_parse(k->context, "tiny.ra", tiny_model, strlen(tiny_model), &k->model, NULL);
	s = s ? s : esp_weights_open(k->context, weights, &k->weights, NULL);
	return s ? s : esp_program_create(k->model, k->weights, &o, &k->program, NULL);
}

/* The state of the pair's root, W @ (1, 2) + (3, 4). */
static bool run_pair(struct kit *k, float *h)
{
	if (!k->session &&
	    ((!k->binding && esp_binding_create(k->program, k->weights, &k->binding, NULL)) ||
	     esp_forest_create(k->program, &k->forest, NULL) ||
	     esp_session_create(k->binding, &k->session, NULL) || esp_forest_add(k->forest, &pair, NULL)))
		return false;
	if (esp_session_run(k->session, k->forest, NULL))
		return false;
	const float *twice = esp_session_output(k->session, 0, 0, 2);
	h[0] = twice[0] / 2;
	h[1] = twice[1] / 2;
	return true;
}

static bool is_pair(struct kit *k, float first, float second)
{
	float h[2] = {0};
	bool ran = run_pair(k, h);
	if (h[0] != first || h[1] != second)
		printf("# %.9g, %.9g\n", h[0], h[1]);
	return ran && h[0] == first && h[1] == second;
}

/* --- what there is --- */

static void test_rounding(void)
{
	struct kit k;
	float h[2] = {0};
	for (int i = 0; i < 2; i++) {
		const char *type = i ? "bf16" : "f16";
		tap_ok(!open_narrow(&k, odd_path, "interpreter", type) && is_pair(&k, 10, 4100.5f),
		       "%s: weights are rounded", type);
		free_kit(&k);
	}
	tap_ok(!open_narrow(&k, odd_path, "interpreter", "i8") && run_pair(&k, h) &&
		   fabsf(h[0] - (42 * 3 / 127.0f + 9)) < 1e-5f && fabsf(h[1] - 4102) < 1e-3f,
	       "i8: each row has its scale");
	free_kit(&k);
	tap_ok(!open_narrow(&k, odd_path, "interpreter", NULL) && is_pair(&k, 1.000244140625f + 9, 4102.5f),
	       "else they are not");
	free_kit(&k);
}

static void test_limits(void)
{
	struct kit k;
	float h[2] = {0};
	tap_ok(!open_narrow(&k, large_path, "interpreter", "f16") && is_pair(&k, INFINITY, 65508),
	       "f16: what is above 65504 is infinite, the smallest numbers vanish");
	free_kit(&k);
	tap_ok(!open_narrow(&k, special_path, "interpreter", "i8") && run_pair(&k, h) && isnan(h[0]) &&
		   h[1] == 4,
	       "i8: a row with NaN gives NaN, one of zeros zero");
	free_kit(&k);
}

static void test_swap(void)
{
	struct kit k;
	esp_weights *other = NULL;
	bool ok = !open_narrow(&k, odd_path, "interpreter", "f16") && is_pair(&k, 10, 4100.5f) &&
		  !esp_weights_open(k.context, plain_path, &other, NULL) &&
		  !esp_binding_swap(k.binding, other, NULL);
	tap_ok(ok && is_pair(&k, 5, 5), "weights are exchanged for others");
	ok = ok && !esp_binding_swap(k.binding, k.weights, NULL);
	tap_ok(ok && is_pair(&k, 10, 4100.5f), "which are rounded, too");
	esp_weights_free(other);
	free_kit(&k);
}

static bool load_pair(const char *weights, float first, float second)
{
	struct kit k = {0};
	esp_error *error = NULL;
	bool ok = !esp_context_create(NULL, &k.context, NULL) &&
		  !esp_program_load(k.context, program_path, &k.program, &error) &&
		  (!weights || !esp_weights_open(k.context, weights, &k.weights, NULL)) &&
		  is_pair(&k, first, second);
	if (error)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	free_kit(&k);
	return ok;
}

static void test_saved(const char *type)
{
	struct kit k;
	for (int pack = 0; pack < 2; pack++) {
		bool ok = !open_narrow(&k, odd_path, NULL, type);
		esp_save_options how = {.size = sizeof how, .weights = pack ? k.weights : NULL};
		esp_error *error = NULL;
		ok = ok && !esp_program_save(k.program, program_path, &how, &error);
		if (error)
			printf("# %s\n", esp_error_text(error));
		esp_error_free(error);
		free_kit(&k);
		tap_ok(ok && load_pair(pack ? NULL : odd_path, 10, 4100.5f),
		       "%s: a program that was saved %s weights", type, pack ? "with" : "without");
	}
}

int main(void)
{
	make_folder();
	strcpy(odd_path, write_weights("odd.safetensors", odd, 2));
	strcpy(large_path, write_weights("large.safetensors", large, 2));
	strcpy(special_path, write_weights("special.safetensors", special, 2));
	strcpy(plain_path, write_weights("plain.safetensors", tiny_weights, 2));
	strcpy(program_path, path_of("program"));
	test_rounding();
	test_limits();
	test_swap();
	if (need_backend("saved programs")) {
		test_saved("f16");
		test_saved("bf16");
	}
	static const char *const files[] = {"odd.safetensors", "large.safetensors", "special.safetensors",
					    "plain.safetensors", "program"};
	remove_folder(files, sizeof files / sizeof *files);
	return tap_done();
}
