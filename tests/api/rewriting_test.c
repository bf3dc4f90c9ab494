/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How a program may be rewritten: what the options take and refuse. */
#include "tests/api/support.h"

static const char *weights_as, *precision, *assume, *accelerator; /* of all programs */

static esp_status create(const struct kit *k, const char *math, const char *rules, uint64_t table_bytes,
			 esp_error **error)
{
	esp_program_options o = {.size = sizeof o,
				 .backend = "interpreter",
				 .math = math,
				 .rules = rules,
				 .table_bytes = table_bytes,
				 .weights_as = weights_as,
				 .precision = precision,
				 .assume = assume,
				 .accelerator = accelerator};
	esp_program *p = NULL;
	esp_status status = esp_program_create(k->model, k->weights, &o, &p, error);
	if (!status)
		status = esp_program_prepare(p, error);
	tap_ok((status == ESP_OK) == (p != NULL), "a program is there or an error is");
	esp_program_free(p);
	return status;
}

static void takes(const struct kit *k, const char *math, const char *rules, uint64_t table_bytes)
{
	esp_error *error;
	tap_ok(create(k, math, rules, table_bytes, &error) == ESP_OK,
	       "math %s, rules %s, tables of %llu bytes", math ? math : "unsaid", rules ? rules : "unsaid",
	       (unsigned long long)table_bytes);
	esp_error_free(error);
}

static void refuses(const struct kit *k, const char *math, const char *rules, const char *names,
		    const char *hint)
{
	esp_error *error;
	esp_status status = create(k, math, rules, 0, &error);
	const esp_diagnostic *d = esp_error_get(error, 0);
	tap_ok(status == ESP_ERROR_ARGUMENT && d && strstr(d->message, names) && d->hint &&
		   strstr(d->hint, hint),
	       "%s is refused, what there is told", names);
	tap_ok(error_is(error, "bad-argument"), "as a bad argument");
}

/* Refuses what the options say of this model. */
static void refuses_input(const struct kit *k, const char *id, const char *names, const char *hint)
{
	esp_error *error;
	esp_status status = create(k, NULL, NULL, 0, &error);
	const esp_diagnostic *d = esp_error_get(error, 0);
	tap_ok(status == ESP_ERROR_INPUT && d && strstr(d->message, names) && d->hint && strstr(d->hint, hint),
	       "%s is told", names);
	tap_ok(error_is(error, id), "as %s", id);
}

/* A caller that was built before these options came. */
static void test_old_caller(const struct kit *k)
{
	esp_program_options o = {.backend = "interpreter", .math = "rubbish", .rules = "rubbish"};
	esp_program *p = NULL;
	o.size = offsetof(esp_program_options, math);
	tap_ok(esp_program_create(k->model, k->weights, &o, &p, NULL) == ESP_OK && p,
	       "a shorter struct is taken as it was");
	esp_program_free(p);
}

int main(void)
{
	struct kit k;
	make_folder();
	const char *path = write_weights("w.safetensors", tiny_weights, 2);
	if (tap_ok(make_kit(&k, NULL, path, NULL) == ESP_OK, "a model and its weights")) {
		takes(&k, NULL, NULL, 0);
		takes(&k, "exact", "all", 1);
		takes(&k, "reassociate", "none", UINT64_MAX);
		takes(&k, "fast", "-tables,-geometric", 1000);
		takes(&k, NULL, "neutral,constants", 0);
		refuses(&k, "sloppy", NULL, "sloppy", "exact, reassociate, fast");
		refuses(&k, "", NULL, "''", "exact, reassociate, fast");
		refuses(&k, NULL, "tables,golden", "'golden'", "tables");
		refuses(&k, NULL, "", "''", "all, none, neutral");
		for (int i = 0; i < 4; i++) {
			weights_as = (const char *const[]){"f32", "f16", "bf16", "i8"}[i];
			takes(&k, NULL, NULL, 0);
		}
		weights_as = "f64";
		refuses(&k, NULL, NULL, "weights cannot be kept as 'f64'", "f32, f16, bf16, i8");
		weights_as = "";
		refuses(&k, NULL, NULL, "''", "f32, f16, bf16, i8");
		weights_as = NULL;
		for (int i = 0; i < 8; i++) {
			precision = (const char *const[]){"f32", "f16", "bf16", "bf16x1", "bf16x3", "i16", "i8x3", "i8"}[i];
			takes(&k, NULL, NULL, 0);
		}
		precision = "f8";
		refuses(&k, NULL, NULL, "the precision cannot be 'f8'", "f32, f16, bf16, bf16x1, bf16x3, i16, i8x3, i8");
		precision = NULL;
		for (int i = 0; i < 2; i++) {
			assume = (const char *const[]){"nothing", "finite"}[i];
			takes(&k, NULL, NULL, 0);
		}
		assume = "infinite";
		refuses(&k, NULL, NULL, "'infinite' cannot be assumed", "nothing, finite");
		assume = NULL;
		for (int i = 0; i < 2; i++) {
			accelerator = (const char *const[]){"host", "vta"}[i];
			takes(&k, NULL, NULL, 0);
		}
		for (int i = 0; i < 6; i++) {
			accelerator = (const char *const[]){"gpu", "host,-1", "vta,1", "vta,-", "vta,-1,", "vta,-1234567"}[i];
			refuses(&k, NULL, NULL, "'options->accelerator' must be one of NULL, \"host\", \"vta\"", "espalier.h");
		}
		accelerator = "vta,-0,-12";
		refuses_input(&k, "no-product", "the host is to keep product 0, but 'tiny' has no quantised products", "espalier dump split");
		accelerator = NULL;
		test_old_caller(&k);
	}
	free_kit(&k);
	unlink(path);
	rmdir(folder);
	return tap_done();
}
