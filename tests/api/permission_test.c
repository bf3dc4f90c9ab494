/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Whether the library asks the system for matrix registers, which makes the frames of signals larger: only once code that may use
 * them is wanted. */
#include "base/cpu.h"
#include "base/target.h"
#include "tests/api/support.h"
#include "tests/backends.h"

static const char *weights;

/* Compiles, binds and runs the model for a target. */
static bool runs_for(esp_context *c, const char *backend, const char *target)
{
	static const int32_t words[] = {1, 2, -1};
	static const void *const data[] = {words};
	const esp_structure s = {sizeof s, 3, first_pair, pair_children, 2, data};
	const esp_program_options o = {.size = sizeof o, .backend = backend, .target = target};
	esp_model *m = NULL;
	esp_weights *w = NULL;
	esp_program *p = NULL;
	esp_binding *b = NULL;
	esp_session *session = NULL;
	esp_forest *forest = NULL;
	bool ok = !esp_model_parse(c, "tiny.ra", tiny_model, strlen(tiny_model), &m, NULL) && !esp_weights_open(c, weights, &w, NULL) &&
		  !esp_program_create(m, w, &o, &p, NULL) && !esp_binding_create(p, w, &b, NULL) &&
		  !esp_session_create(b, &session, NULL) && !esp_forest_create(p, &forest, NULL) && !esp_forest_add(forest, &s, NULL) &&
		  !esp_session_run(session, forest, NULL);
	esp_forest_free(forest);
	esp_session_free(session);
	esp_binding_free(b);
	esp_program_free(p);
	esp_weights_free(w);
	esp_model_free(m);
	return ok;
}

static void test_machine(void)
{
	const struct target *t = target_of_machine();
	struct str s;
	struct arena a;
	arena_init(&a, &allocator_default);
	s = str_in(&a);
	cpu_print(&s);
	tap_ok(!t->amx_int8 && target_runs_here(t) && s.n && !cpu_lacks("") && cpu_lacks("amx-int9") && !cpu_has_asked_for_matrices(),
	       "the machine is described without a permission");
	arena_free(&a);
}

/* The whole examination of the machine, whatever the environment of tests says. */
static void test_targets(esp_context *c)
{
	const char *last = target_of_machine()->name;
	for (int i = 0; backend_at(i); i++)
		tap_ok(runs_for(c, backend_at(i), last) && !cpu_has_asked_for_matrices(), "nor does code for %s by %s need it", last, backend_at(i));
	tap_ok(runs_for(c, "interpreter", last) && !cpu_has_asked_for_matrices(), "or by the interpreter");
}

static void test_native(esp_context *c)
{
#ifdef __x86_64__
	tap_ok(runs_for(c, "interpreter", "native") && cpu_has_asked_for_matrices(), "the native target may be one that needs it");
#else
	tap_ok(runs_for(c, "interpreter", "native") && !cpu_has_asked_for_matrices(), "no target of this machine needs it");
#endif
	tap_ok(!cpu_lacks("amx-int8") == cpu_permits_matrices(), "and the machine then lacks what it was not given");
}

int main(void)
{
	esp_context_options o = {.size = sizeof o, .threads = 2, .machine = ESP_MACHINE_KEPT, .cache = ESP_CACHE_OFF};
	esp_context *c = NULL;
	make_folder();
	weights = write_weights("w.safetensors", tiny_weights, 2);
	test_machine();
	if (!tap_ok(!esp_context_create(&o, &c, NULL), "a context"))
		return tap_done();
	test_targets(c);
	skip_backends();
	test_native(c);
	esp_context_free(c);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
