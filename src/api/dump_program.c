/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A program as text: its stages, the times of its passes, what was decided. */
#include "api/objects.h"

#include "compile/explain.h"

#include <string.h>

const char *esp_dump_stage(size_t i)
{
	return compile_stage(i);
}

struct dumping {
	const esp_program *program;
	const char *stage; /* for a dump */
	enum explain_form form;
	const esp_weights *weights; /* for an explanation; NULL = none */
	struct arena *arena;
	struct str text;
	struct diags *diags;
};

static bool refuse_stage(struct dumping *d)
{
	struct str stages = str_in(d->arena);
	for (size_t i = 0; compile_stage(i); i++)
		str_printf(&stages, "%s%s", i ? ", " : "stages are ", compile_stage(i));
	return diag_add(d->diags, DIAG_UNKNOWN_STAGE, (struct diag_at){0}, str_text(&stages),
			"there is no stage '%s'", d->stage);
}

static bool has_model(struct dumping *d)
{
	const struct image *image = &d->program->interface;
	return d->program->model ||
	       diag_add(d->diags, DIAG_NO_MODEL, (struct diag_at){0},
			"ask a program that was made of the model",
			"the program '%s' was saved: its model is not in it", image->name);
}

static bool dump_stage(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	if (!has_model(d))
		return false;
	struct compile_options options = p->options;
	options.watch.goes_on = program_is_wanted;
	for (size_t i = 0; compile_stage(i); i++)
		if (strcmp(compile_stage(i), d->stage) == 0)
			return compile_dump(d->arena, d->diags, p->model->graph, p->sizes, &options, d->stage,
					    &d->text);
	return refuse_stage(d);
}

/* Runs `work`, which writes to job->text and may use job->arena, and copies the text. */
static char *text_of(esp_program *program, bool (*work)(void *job), struct dumping *job, struct diags *diags)
{
	struct arena arena;
	char *copy = NULL;
	arena_init(&arena, &program->object.context->allocator);
	job->program = program;
	job->arena = &arena;
	job->text = str_in(&arena);
	job->diags = diags;
	if (api_guarded_deep(program->model ? program->model->graph : NULL, &arena, diags, work, job))
		copy = api_text(program->object.context, str_text(&job->text), diags);
	arena_free(&arena);
	return copy;
}

esp_status esp_program_dump(esp_program *program, const char *stage, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	if (api_need(&call, program) && api_need(&call, stage) && api_need(&call, text))
		copy = text_of(program, dump_stage, &(struct dumping){.stage = stage}, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}

/* Begins with the time of the cache, which is searched first. */
static bool print_times(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	struct times looking = {.arena = d->arena};
	if (p->key)
		times_note(&looking, "cache", p->found ? "find" : "look", p->looking);
	times_print(&looking, &d->text);
	times_print(&p->times, &d->text);
	return true;
}

esp_status esp_program_times(esp_program *program, char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	if (api_need(&call, program) && api_need(&call, text) && program_begin(program, &call.diags)) {
		pthread_mutex_lock(&program->lock);
		copy = text_of(program, print_times, &(struct dumping){0}, &call.diags);
		pthread_mutex_unlock(&program->lock);
	}
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}

static bool explain_program(void *job)
{
	struct dumping *d = job;
	const esp_program *p = d->program;
	if (!has_model(d) || (d->weights && !binding_check(p, d->weights, d->diags)))
		return false;
	struct weights_reader reader = {p, d->weights ? d->weights->file : NULL};
	struct rewrite_weights weights = {binding_read_param, &reader};
	return compile_explain(d->arena, d->diags, p->model->graph, p->sizes, &p->options,
			       d->weights ? &weights : NULL, d->form, &d->text);
}

esp_status esp_program_explain(esp_program *program, int form, char **text, esp_error **error)
{
	return esp_program_explain_weights(program, NULL, form, text, error);
}

esp_status esp_program_explain_weights(esp_program *program, const esp_weights *weights, int form,
				       char **text, esp_error **error)
{
	struct api_call call = api_begin(program);
	char *copy = NULL;
	static const enum explain_form forms[] = {[ESP_FORM_TEXT] = EXPLAIN_TEXT,
						  [ESP_FORM_JSON] = EXPLAIN_JSON,
						  [ESP_FORM_LAYERS] = EXPLAIN_LAYERS};
	bool known = form >= 0 && form <= ESP_FORM_LAYERS;
	if (api_need(&call, program) && api_need(&call, text) &&
	    (known || api_bad_argument(&call.diags, __func__, "form", "must be one of ESP_FORM_...")))
		copy = text_of(program, explain_program,
			       &(struct dumping){.form = forms[form], .weights = weights}, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
