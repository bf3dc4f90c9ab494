/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics as the caller sees them. */
#include "api/objects.h"

struct esp_error {
	struct allocator allocator;
	struct diags diags;
	struct arena arena; /* of the texts below */
	esp_diagnostic *diagnostic;
	const char *text;
};

/* What is returned when there is no memory for an error; never written or freed. */
static struct diag no_memory_diag = {.id = DIAG_OUT_OF_MEMORY, .message = "memory ran out"};
static esp_diagnostic no_memory_diagnostic = {
    .id = "out-of-memory", .message = "memory ran out", .structure = -1, .node = -1};
static const esp_error no_memory = {
    .diagnostic = &no_memory_diagnostic,
    .diags = {.at = &no_memory_diag, .n = 1},
    .text = "error: memory ran out [out-of-memory]\n",
};

/* The first diagnostic that is more than a notice says why the call failed; without one there was no memory
 * to describe it. */
static esp_status status_of(const struct diags *diags)
{
	esp_status status = ESP_OK;
	for (size_t i = 0; i < diags->n && !status; i++)
		status = esp_message_at(diags->at[i].id)->status;
	return status ? status : ESP_ERROR_MEMORY;
}

static esp_diagnostic copy_diagnostic(const struct diag *d)
{
	return (esp_diagnostic){
	    .id = diag_spelling(d->id),
	    .message = d->message,
	    .hint = d->hint,
	    .file = d->file,
	    .source = d->source,
	    .line = d->line,
	    .column = d->column,
	    .structure = d->input,
	    .node = d->node,
	};
}

static bool print_text(void *job)
{
	esp_error *e = job;
	struct str text = str_in(&e->arena);
	e->diagnostic = ARENA_ARRAY(&e->arena, esp_diagnostic, e->diags.n);
	for (size_t i = 0; i < e->diags.n; i++) {
		e->diagnostic[i] = copy_diagnostic(&e->diags.at[i]);
		diag_print(&e->diags.at[i], &text);
	}
	e->text = str_text(&text);
	return true;
}

/* Takes the diagnostics over; NULL when memory is out. */
static esp_error *new_error(struct diags *diags)
{
	struct allocator a = *diags->allocator;
	esp_error *e = a.resize(a.context, NULL, 0, sizeof *e);
	if (!e)
		return NULL;
	*e = (esp_error){.allocator = a, .diags = *diags};
	diags_init(diags, diags->allocator);
	e->diags.allocator = &e->allocator;
	arena_init(&e->arena, &e->allocator);
	if (api_guarded(&e->arena, &e->diags, print_text, e))
		return e;
	esp_error_free(e);
	return NULL;
}

/* A failure without a diagnostic is one that there was no memory to describe. */
esp_status error_from(struct diags *diags, bool ok, esp_error **error)
{
	esp_status status = ok ? ESP_OK : status_of(diags);
	esp_error *e = NULL;
	if (!ok && error && !(e = diags->n ? new_error(diags) : NULL)) {
		status = ESP_ERROR_MEMORY;
		e = (esp_error *)&no_memory;
	}
	diags_free(diags);
	if (error)
		*error = e;
	return status;
}

size_t esp_error_count(const esp_error *e)
{
	return e ? e->diags.n : 0;
}

const esp_diagnostic *esp_error_get(const esp_error *e, size_t i)
{
	return i < esp_error_count(e) ? &e->diagnostic[i] : NULL;
}

const char *esp_error_text(const esp_error *e)
{
	return e ? e->text : "";
}

void esp_error_free(esp_error *e)
{
	if (!e || e == &no_memory)
		return;
	arena_free(&e->arena);
	diags_free(&e->diags);
	struct allocator a = e->allocator;
	a.resize(a.context, e, sizeof *e, 0);
}

/* --- statuses --- */

static const struct {
	const char *name;
	bool transient;
} kinds[] = {
    [ESP_OK] = {"ok", false},
    [ESP_ERROR_INPUT] = {"input", false},
    [ESP_ERROR_ARGUMENT] = {"argument", false},
    [ESP_ERROR_MEMORY] = {"memory", true},
    [ESP_ERROR_BACKEND] = {"backend", false},
    [ESP_ERROR_SYSTEM] = {"system", true},
    [ESP_ERROR_BUSY] = {"busy", true},
    [ESP_ERROR_CLOSED] = {"closed", false},
    [ESP_ERROR_FORKED] = {"forked", false},
    [ESP_ERROR_EXPIRED] = {"expired", false},
    [ESP_ERROR_CANCELLED] = {"cancelled", false},
};

static bool is_status(esp_status s)
{
	return (unsigned)s < sizeof kinds / sizeof *kinds;
}

const char *esp_status_name(esp_status s)
{
	return is_status(s) ? kinds[s].name : NULL;
}

int esp_status_is_transient(esp_status s)
{
	return is_status(s) && kinds[s].transient;
}
