/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The formula by which sums become bytes gives the integers that fixed_scale gives, for factors of all
 * shifts: 5 million numbers in compiled code. */
#include "api/espalier.h"
#include "onnx/import.h"
#include "ra/ra.h"
#include "tests/tap.h"
#include "tflite/requantise.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1 << 16, SHIFTS = 36, FACTORS = 80 };

static struct arena arena;
static struct diags diags;
static int32_t numbers[NUMBERS];

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 32;
}

/* Numbers of all sizes, and those at the ends. */
static void draw_numbers(void)
{
	uint64_t state = 7;
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = (int32_t)draw(&state) >> draw(&state) % 31;
	numbers[0] = INT32_MAX, numbers[1] = INT32_MIN, numbers[2] = 0, numbers[3] = -1, numbers[4] = 1;
}

/* The text of a model of one input that is scaled. */
static const char *write_model(const struct fixed_factor *factor)
{
	const struct onnx_graph graph = {.file = "scaled", .name = "scaled"};
	const struct onnx_importer importer = {
	    .arena = &arena, .diags = &diags, .whole = &graph, .axis = "i", .reduced = "r"};
	struct onnx_target target;
	struct str text = str_in(&arena);
	if (!onnx_start_target(&importer, &arena, &target))
		return NULL;
	const struct onnx_op o = {.arena = &arena, .diags = &diags, .graph = &graph, .target = &target};
	struct onnx_operand x = {.given = true, .type = ONNX_INT32, .shape = {1, {NUMBERS}}};
	x.id = ra_builder_input(target.builder, "x", "65536 : i32");
	struct onnx_operand y = lite_scale_integers(&o, x, factor, 1, 0);
	ra_builder_output(target.builder, "y", onnx_use(&o, &y), RA_AT_EVERY_NODE, NULL, 0);
	struct ra_model *m = ra_builder_finish(target.builder);
	if (m)
		ra_print(m, &text);
	return m ? str_text(&text) : NULL;
}

static int count_different(const int32_t *got, struct fixed_factor f)
{
	int different = 0;
	for (int i = 0; i < NUMBERS; i++) {
		bool overflows =
		    f.shift > 0 && (numbers[i] > INT32_MAX >> f.shift || numbers[i] < INT32_MIN >> f.shift);
		different += !overflows && got[i] != fixed_scale(numbers[i], f);
	}
	return different;
}

static int run_factor(esp_context *context, struct fixed_factor f)
{
	static const char no_weights[] = "\2\0\0\0\0\0\0\0{}"; /* a file of weights without any */
	static const size_t shape[] = {NUMBERS};
	const esp_array x = {"x", ESP_I32, 1, shape, numbers};
	const char *text = write_model(&f);
	esp_model *model = NULL;
	esp_weights *weights = NULL;
	esp_program *program = NULL;
	esp_binding *binding = NULL;
	esp_session *session = NULL;
	esp_error *error = NULL;
	int different = NUMBERS;
	if (text && !esp_model_parse(context, "scaled.ra", text, strlen(text), &model, &error) &&
	    !esp_weights_from_memory(context, no_weights, sizeof no_weights - 1, &weights, &error) &&
	    !esp_program_create(model, weights, NULL, &program, &error) &&
	    !esp_binding_create(program, weights, &binding, &error) &&
	    !esp_session_create(binding, &session, &error) && !esp_session_call(session, &x, 1, &error))
		different = count_different(esp_session_root_elements(session, 0, 0), f);
	else
		printf("# %s", error ? esp_error_text(error) : "no text\n");
	esp_error_free(error);
	esp_session_free(session);
	esp_binding_free(binding);
	esp_program_free(program);
	esp_weights_free(weights);
	esp_model_free(model);
	return different;
}

static int run_factors(esp_context *context)
{
	uint64_t state = 3;
	int different = 0;
	for (int i = 0; i < FACTORS; i++) {
		struct fixed_factor f = {.multiplier = (int32_t)(1u << 30 | (draw(&state) & 0x3fffffff)),
					 .shift = 4 - i % SHIFTS};
		int here = run_factor(context, f);
		if (here)
			printf("# %d with the multiplier %d and the shift %d\n", here, f.multiplier, f.shift);
		different += here;
	}
	return different;
}

int main(void)
{
	const esp_context_options quiet = {.size = sizeof quiet, .cache = ESP_CACHE_OFF};
	esp_context *context;
	esp_error *error = NULL;
	jmp_buf escape;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	if (arena_guard(&arena, &escape) || esp_context_create(&quiet, &context, &error))
		return 1;
	draw_numbers();
	tap_is(run_factors(context), 0,
	       "80 factors of 65536 numbers each: the compiled formula gives what fixed_scale gives");
	esp_context_free(context);
	diags_free(&diags);
	arena_free(&arena);
	return tap_done();
}
