/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Code for machines other than this one: it can be looked at and interpreted, but not run. */
#include "base/target.h"
#include "tests/api/support.h"
#include "tests/backends.h"

static esp_status prepare(const esp_model *m, const esp_weights *w, const char *backend, const char *target,
			  esp_error **error)
{
	esp_program_options options = {.size = sizeof options, .backend = backend, .target = target};
	esp_program *p = NULL;
	esp_status status = esp_program_create(m, w, &options, &p, error);
	if (!status)
		status = esp_program_prepare(p, error);
	esp_program_free(p);
	return status;
}

static void test_target(const esp_model *m, const esp_weights *w, const struct target *t)
{
	esp_error *error = NULL;
	tap_ok(prepare(m, w, "interpreter", t->name, &error) == ESP_OK, "%s is interpreted", t->name);
	esp_error_free(error);
	if (target_runs_here(t)) {
		tap_skip("this machine can run it", "%s is refused", t->name);
		return;
	}
	if (!need_backend("%s is refused", t->name))
		return;
	esp_status status = prepare(m, w, usual_backend(), t->name, &error);
	tap_ok(error_is(error, "target-not-here") && status == ESP_ERROR_BACKEND, "%s is refused", t->name);
}

int main(void)
{
	esp_context *c = NULL;
	esp_model *m = NULL;
	esp_weights *w = NULL;
	make_folder();
	const char *path = write_weights("w.safetensors", tiny_weights, 2);
	esp_context_create(NULL, &c, NULL);
	esp_model_parse(c, "tiny.ra", tiny_model, strlen(tiny_model), &m, NULL);
	if (tap_ok(esp_weights_open(c, path, &w, NULL) == ESP_OK && m, "a model and its weights"))
		for (int i = 0; target_at(i); i++)
			test_target(m, w, target_at(i));
	esp_weights_free(w);
	esp_model_free(m);
	esp_context_free(c);
	unlink(path);
	rmdir(folder);
	return tap_done();
}
