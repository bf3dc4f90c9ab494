/* Diagnostics as the caller sees them. */
#include "api/internal.h"

struct esp_error {
	struct allocator allocator;
	struct diags diags;
	struct arena arena; /* of the text */
	const char *text;
};

/* What is returned when there is no memory for an error; never written or freed. */
static struct diag no_memory_diag = {.id = DIAG_OUT_OF_MEMORY, .message = "memory ran out"};
static const esp_error no_memory = {
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

static bool print_text(void *job)
{
	esp_error *e = job;
	struct str text = str_in(&e->arena);
	for (size_t i = 0; i < e->diags.n; i++)
		diag_print(&e->diags.at[i], &text);
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

esp_status api_end(struct diags *diags, bool ok, esp_error **error)
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

esp_diagnostic esp_error_get(const esp_error *e, size_t i)
{
	if (i >= esp_error_count(e))
		return (esp_diagnostic){0};
	const struct diag *d = &e->diags.at[i];
	return (esp_diagnostic){
	    diag_spelling(d->id), d->message, d->hint, d->file, d->source, d->line, d->column};
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
