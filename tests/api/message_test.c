/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The registry of diagnostics as callers see it, and the statuses. */
#include "api/espalier.h"
#include "tests/tap.h"

#include <ctype.h>
#include <string.h>

/* A title is a fragment; the other texts are sentences. */
static bool is_title(const char *s)
{
	return s[0] && !isupper((unsigned char)s[0]) && s[strlen(s) - 1] != '.';
}

static bool is_sentence(const char *s)
{
	size_t n = strlen(s);
	return n > 20 && s[n - 1] == '.' && !strstr(s, "  ") && !strchr(s, '\n');
}

static void test_registry(void)
{
	size_t n = 0;
	bool titles = true, sentences = true, found = true, statuses = true;
	for (const esp_message *m; (m = esp_message_at(n)); n++) {
		titles = is_title(m->message) && titles;
		sentences = is_sentence(m->explanation) && is_sentence(m->fix) && sentences;
		found = esp_message_find(m->id) == m && found;
		statuses = esp_status_name(m->status) && statuses;
		if (!titles || !sentences)
			printf("# %s\n", m->id);
	}
	tap_ok(n > 70, "there are %zu messages", n);
	tap_ok(titles, "their titles are short fragments");
	tap_ok(sentences, "explanations and fixes are sentences on one line");
	tap_ok(found, "each is found by its id");
	tap_ok(statuses, "each has a status with a name");
	tap_ok(!esp_message_at(n) && !esp_message_at((size_t)-1), "there is none past the last");
	tap_ok(!esp_message_find("no-such-id") && !esp_message_find("") && !esp_message_find(NULL),
	       "an id that does not exist is not found");
}

/* The first diagnostic of a call decides its status. */
static void test_status_of_calls(void)
{
	esp_error *error = NULL;
	esp_model *model;
	esp_context *context;
	if (!tap_ok(esp_context_create(NULL, &context, &error) == ESP_OK, "a context is made"))
		return;
	esp_status wrong = esp_model_parse(context, "m", "modell", 6, &model, &error);
	tap_ok(wrong == ESP_ERROR_INPUT && esp_message_find("syntax")->status == wrong,
	       "a call that fails returns the status of its diagnostic");
	esp_error_free(error);
	wrong = esp_model_parse(context, NULL, "", 0, &model, &error);
	tap_ok(wrong == ESP_ERROR_ARGUMENT && esp_message_find("bad-argument")->status == wrong,
	       "so does one that was called wrongly");
	esp_error_free(error);
	esp_context_free(context);
	tap_ok(esp_message_find("out-of-memory")->status == ESP_ERROR_MEMORY &&
		   esp_message_find("backend-not-found")->status == ESP_ERROR_BACKEND,
	       "memory and back ends have statuses of their own");
}

static void test_status_names(void)
{
	static const struct {
		esp_status status;
		const char *name;
		bool transient;
	} expected[] = {
	    {ESP_OK, "ok", false},
	    {ESP_ERROR_INPUT, "input", false},
	    {ESP_ERROR_ARGUMENT, "argument", false},
	    {ESP_ERROR_MEMORY, "memory", true},
	    {ESP_ERROR_BACKEND, "backend", false},
	    {ESP_ERROR_SYSTEM, "system", true},
	    {ESP_ERROR_BUSY, "busy", true},
	    {ESP_ERROR_CLOSED, "closed", false},
	    {ESP_ERROR_FORKED, "forked", false},
	    {ESP_ERROR_EXPIRED, "expired", false},
	    {ESP_ERROR_CANCELLED, "cancelled", false},
	};
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		const char *name = esp_status_name(expected[i].status);
		tap_ok((size_t)expected[i].status == i && name && strcmp(name, expected[i].name) == 0 &&
			   !!esp_status_is_transient(expected[i].status) == expected[i].transient,
		       "status %zu is %s, which %s go away by itself", i, expected[i].name,
		       expected[i].transient ? "may" : "does not");
	}
	tap_ok(!esp_status_name((esp_status)11) && !esp_status_name((esp_status)-1) &&
		   !esp_status_is_transient((esp_status)-1),
	       "what is no status has no name");
}

int main(void)
{
	test_registry();
	test_status_of_calls();
	test_status_names();
	return tap_done();
}
