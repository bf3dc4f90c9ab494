/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models made by calls, and what they are as text. */
#ifndef ESPALIER_TESTS_API_BUILT_H
#define ESPALIER_TESTS_API_BUILT_H

#include "tests/api/support.h"

static esp_context *context;

#define CALL(b, function, ...)                                                                               \
	esp_builder_call(b, function, (const esp_value[]){__VA_ARGS__},                                      \
			 sizeof((const esp_value[]){__VA_ARGS__}) / sizeof(esp_value))

static inline char *text_of(esp_model *m)
{
	char *text = NULL;
	esp_error *error;
	if (esp_model_print(m, &text, &error))
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	esp_model_free(m);
	return text;
}

static inline char *read_model(const char *text, size_t length)
{
	esp_model *m;
	esp_error *error;
	if (esp_model_parse(context, "text", text, length, &m, &error))
		printf("# %s", esp_error_text(error));
	esp_error_free(error);
	return m ? text_of(m) : NULL;
}

#endif
