/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inputs, weights, states and outputs that are not f32, through the public interface. */
#include "tests/api/support.h"

static const char text[] =
    "model kinds\nstructure tree(*)\ninput kind : i32\ninput on : bool\nparam E[V, D] : f16\n"
    "param step[D] : i32\nstate h[D], count[D] : i32, total : i64\n"
    "leaf:\n    h = where(on, E[kind], -1)\n    count = step * kind\n    total = cast(kind, i64) * "
    "3000000000\n"
    "inner:\n    h = sum(k.h for k in children)\n    count = max(k.count for k in children) + kind\n"
    "    total = sum(k.total for k in children)\n"
    "output place = argmax(h) at root\noutput counts = count\noutput totals = total at root\n"
    "output plain = h\noutput large = total > 0 at root\n";

/* E of f16, {{1, 2}, {4, 0.5}}; step of i8, {-3, 100}, which is read into i32. */
static size_t make_weights(char *file)
{
	static const char header[] =
	    "{\"E\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]},"
	    "\"step\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[8,10]}}";
	static const uint16_t e[] = {0x3c00, 0x4000, 0x4400, 0x3800};
	static const int8_t step[] = {-3, 100};
	uint64_t n = strlen(header);
	memcpy(file, &n, 8);
	memcpy(file + 8, header, n);
	memcpy(file + 8 + n, e, sizeof e);
	memcpy(file + 8 + n + sizeof e, step, sizeof step);
	return 8 + n + sizeof e + sizeof step;
}

static void check_descriptions(const struct kit *k)
{
	tap_ok(esp_program_input(k->program, 0)->dtype == ESP_I32 &&
		   esp_program_input(k->program, 1)->dtype == ESP_BOOL,
	       "inputs are described with their types");
	tap_ok(esp_program_output(k->program, 0)->dtype == ESP_I32 &&
		   esp_program_output(k->program, 2)->dtype == ESP_I64 &&
		   esp_program_output(k->program, 3)->dtype == ESP_F32 &&
		   esp_program_output(k->program, 4)->dtype == ESP_BOOL,
	       "so are outputs");
	tap_ok(esp_program_state(k->program, 1)->dtype == ESP_I32 &&
		   esp_program_state(k->program, 2)->dtype == ESP_I64,
	       "and states");
}

static void check_results(const struct kit *k)
{
	const int32_t *place = esp_session_output_elements(k->session, 0, 0, 0);
	const int32_t *counts = esp_session_output_elements(k->session, 1, 0, 2);
	const int64_t *total = esp_session_root_elements(k->session, 2, 0);
	const float *plain = esp_session_output(k->session, 3, 0, 2);
	const uint8_t *large = esp_session_output_elements(k->session, 4, 0, 0);
	tap_ok(plain && plain[0] == 3 && plain[1] == -0.5f &&
		   esp_session_output_elements(k->session, 3, 0, 2) == plain,
	       "halves are read, and bytes that say which");
	tap_ok(place && *place == 0, "the place of the largest is an i32");
	tap_ok(counts && counts[0] == 1 && counts[1] == 101, "so are counts of weights of i8");
	tap_ok(total && *total == 3000000000 && large && *large == 1, "an i64 is whole, a bool a byte");
	tap_ok(*(const int32_t *)esp_session_state_elements(k->session, 1, 0, 0) == -3, "a state of i32");
	tap_ok(!esp_session_output(k->session, 1, 0, 2) && !esp_session_root(k->session, 2, 0) &&
		   !esp_session_state(k->session, 1, 0, 1),
	       "nobody gets integers as floats");
	tap_ok(!esp_session_output_elements(k->session, 1, 0, 3) &&
		   !esp_session_state_elements(k->session, 3, 0, 0) &&
		   !esp_session_root_elements(k->session, 2, 1),
	       "nor what there is not");
}

/* The file's types are those of the results. */
static void check_export(const struct kit *k)
{
	esp_export *e = NULL;
	esp_weights *w = NULL;
	const char *path = path_of("results.safetensors");
	esp_error *error = NULL;
	bool ok = esp_export_create(k->program, &e, &error) == ESP_OK &&
		  esp_export_add(e, k->session, &error) == ESP_OK &&
		  esp_export_safetensors(e, path, &error) == ESP_OK &&
		  esp_weights_open(k->context, path, &w, &error) == ESP_OK;
	if (!ok)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	int found = 0;
	for (size_t i = 0; ok && esp_weights_tensor(w, i); i++) {
		const esp_tensor *t = esp_weights_tensor(w, i);
		found +=
		    strcmp(t->name, "counts") == 0 && t->dtype == ESP_I32 && t->rank == 2 && t->shape[0] == 3;
		found += strcmp(t->name, "totals") == 0 && t->dtype == ESP_I64;
		found += strcmp(t->name, "large") == 0 && t->dtype == ESP_BOOL;
	}
	tap_ok(found == 3, "exported, results keep their types");
	char header[64] = "";
	const char *npy = path_of("large.npy");
	FILE *f = esp_export_npy(e, "large", npy, NULL) == ESP_OK ? fopen(npy, "rb") : NULL;
	tap_ok(f && fread(header, 1, sizeof header - 1, f) && strstr(header + 10, "'descr': '|b1'"),
	       "in NumPy's words as well");
	if (f)
		fclose(f);
	esp_weights_free(w);
	esp_export_free(e);
}

static bool start(struct kit *k, const char *file, size_t bytes, esp_error **error)
{
	return esp_context_create(NULL, &k->context, error) == ESP_OK &&
	       esp_model_parse(k->context, "kinds.ra", text, strlen(text), &k->model, error) == ESP_OK &&
	       esp_weights_from_memory(k->context, file, bytes, &k->weights, error) == ESP_OK &&
	       esp_program_create(k->model, k->weights, &interpreted, &k->program, error) == ESP_OK &&
	       esp_binding_create(k->program, k->weights, &k->binding, error) == ESP_OK &&
	       esp_forest_create(k->program, &k->forest, error) == ESP_OK &&
	       esp_session_create(k->binding, &k->session, error) == ESP_OK;
}

int main(void)
{
	static char file[512];
	struct kit k = {0};
	esp_error *error = NULL;
	static const int32_t kinds[] = {1, 0, 1};
	static const uint8_t on[] = {1, 0, 0};
	const void *const data[] = {kinds, on};
	esp_structure s = {sizeof s, 3, first_pair, pair_children, 2, data};
	make_folder();
	if (tap_ok(start(&k, file, make_weights(file), &error) &&
		       esp_forest_add(k.forest, &s, &error) == ESP_OK &&
		       esp_session_run(k.session, k.forest, &error) == ESP_OK,
		   "a model of several types runs")) {
		check_descriptions(&k);
		check_results(&k);
		check_export(&k);
	} else {
		printf("# %s\n", esp_error_text(error));
	}
	esp_error_free(error);
	free_kit(&k);
	remove_folder((const char *const[]){"results.safetensors", "large.npy"}, 2);
	return tap_done();
}
