/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A search for mutants whose time is up before the passes ahead of the list have run ends as any other: what was found before stays. */
#include "tests/tap.h"
#include "tune/tune.h"

#include <string.h>

static const char deep[] = "model deep\nstructure none\ninput x[1, 2, 8, 8]\nparam W[2, 2, 3, 3]\n"
			   "def one(r) = relu(conv(r, W, pad=1))\n"
			   "def four(r) = one(one(one(one(r))))\n"
			   "output y = four(four(four(four(x))))\n";

static bool open_program(struct objects *o)
{
	static const int64_t none[1];
	const esp_context_options options = {.size = sizeof options, .cancel = interrupt_waits, .threads = 1, .machine = ESP_MACHINE_DEFAULTS};
	const esp_program_options program = {.size = sizeof program, .backend = "interpreter", .sizes = none};
	esp_error *error = NULL;
	bool ok = !esp_context_create(&options, &o->context, &error) &&
		  !esp_model_parse(o->context, "deep.ra", deep, strlen(deep), &o->model, &error) &&
		  !esp_program_create(o->model, NULL, &program, &o->program, &error);
	if (error)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return ok;
}

int main(void)
{
	static const double seconds[] = {1e-4, 3e-4, 1e-3};
	struct subject holder = {.objects = {.status = 0}};
	struct objects *o = &holder.objects;
	bool opened = open_program(o);
	tap_ok(opened, "a program of many convolutions");
	for (size_t i = 0; opened && i < sizeof seconds / sizeof *seconds; i++) {
		struct search s = {.holder = &holder, .first = &holder, .deadline = read_clock() + seconds[i]};
		tap_is(search_mutants(&s), 0, "a search of much less time than the passes take ends without an error");
		tap_is((int)s.measured, 0, "and nothing was measured");
	}
	esp_program_free(o->program);
	esp_model_free(o->model);
	esp_context_free(o->context);
	return tap_done();
}
