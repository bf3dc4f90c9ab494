/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier profile: runs one minibatch repeatedly and records the runs. */
#include "profile.h"

#include "tool.h"

#include <stdlib.h>

struct profile {
	const struct options *options;
	struct objects objects;
	struct batches batches;
	struct batch batch;
	struct machine machine;
	struct gathering gathering;
	struct recording last, fastest;
	struct summary summary;
	char *sizes;
	char *schedule; /* owned; free with esp_text_free */
};

static int report_no_memory(void)
{
	complain("no memory for a profile");
	return EXIT_INPUT;
}

/* --- running --- */

static int run_batch(struct profile *p)
{
	return batches_run(&p->batches, &p->batch);
}

/* Runs before the first timed run allocate memory and start the team of threads. */
static int warm_up(struct profile *p)
{
	enum { WARM_RUNS = 5 };
	int status = 0;
	for (int i = 0; i < WARM_RUNS && !status; i++)
		status = run_batch(p);
	return status;
}

static int64_t time_of(const struct recording *r)
{
	return r->facts.linearize + r->facts.fill + r->facts.run;
}

static bool keep_run(struct profile *p)
{
	if (!p->gathering.runs &&
	    !gathering_begin(&p->gathering, &p->last, p->machine.threads, p->options->runs))
		return false;
	if (!gathering_add(&p->gathering, &p->last))
		return false;
	if (p->gathering.runs > 1 && time_of(&p->last) >= time_of(&p->fastest))
		return true;
	struct recording faster = p->last;
	p->last = p->fastest;
	p->fastest = faster;
	return true;
}

static int run_all(struct profile *p)
{
	esp_error *error;
	int status = warm_up(p);
	if (status)
		return status;
	esp_status on = esp_session_record(p->batches.session, 1, &error);
	if (on)
		return report_failure(on, error);
	for (long i = 0; i < p->options->runs; i++) {
		if ((status = run_batch(p)))
			return status;
		const esp_profile *recorded = esp_session_profile(p->batches.session);
		if (!recorded || !recording_take(&p->last, recorded) || !keep_run(p))
			return report_no_memory();
	}
	return 0;
}

/* --- sizes and schedule --- */

/* "V = 8217, D = 64" */
static char *print_sizes(const esp_program *program)
{
	char *text = NULL;
	size_t n = 0;
	int64_t size;
	const char *name;
	FILE *to = open_memstream(&text, &n);
	for (size_t i = 0; to && (name = esp_program_size(program, i, &size)); i++)
		fprintf(to, "%s%s = %lld", i ? ", " : "", name, (long long)size);
	if (to)
		fclose(to);
	return text;
}

/* Dumps the schedule, which a program that was compiled before no longer has, and lists the sizes. */
static int describe_program(struct profile *p)
{
	esp_error *error;
	esp_status status =
	    p->objects.model ? esp_program_dump(p->objects.program, "sched", &p->schedule, &error) : ESP_OK;
	if (status)
		return report_failure(status, error);
	p->sizes = print_sizes(p->objects.program);
	return p->sizes ? 0 : report_no_memory();
}

static int show_view(struct profile *p)
{
	static void (*const forms[])(FILE *, const struct view *) = {[FORMAT_TEXT] = view_text,
								     [FORMAT_JSON] = view_json,
								     [FORMAT_TRACE] = view_trace,
								     [FORMAT_SVG] = view_svg};
	struct output output;
	struct view view = {
	    .model = p->objects.model ? esp_model_describe(p->objects.model)->name : p->options->operand[0],
	    .sizes = p->sizes,
	    .schedule = p->schedule ? p->schedule : "",
	    .machine = &p->machine,
	    .shown = &p->fastest,
	    .summary = &p->summary,
	};
	if (!summarize_runs(&p->summary, &p->gathering, &p->fastest, &p->machine))
		return report_no_memory();
	if (!output_open(&output, p->options->output))
		return EXIT_INPUT;
	forms[p->options->format](output.file, &view);
	return output_commit(&output) ? 0 : EXIT_INPUT;
}

/* --- before and after --- */

/* Compiles all that runs may need, so that none is timed with its compilation; a failure is told by the run. */
static int read_batch(struct profile *p)
{
	int more;
	int status = batches_open(&p->batches, p->options, &p->objects, p->options->operand[1], false);
	if (!status)
		esp_program_prepare(p->objects.program, NULL);
	if (!status)
		status = batches_read(&p->batches, &p->batch, &more);
	if (status || p->batch.sentences)
		return status;
	complain("%s holds no tree", p->options->operand[1]);
	return EXIT_INPUT;
}

static int measure_machine(struct profile *p)
{
	if (machine_measure(&p->machine, TARGETS, esp_context_threads(p->objects.context), MACHINE_MEMORY, NULL))
		return 0;
	complain("no memory or threads to measure the machine");
	return EXIT_INPUT;
}

static int profile_model(struct profile *p)
{
	int at = place_of(p->options);
	if (!objects_open_any(&p->objects, p->options, p->options->operand[0], at))
		return p->objects.status;
	if (!has_weights(&p->objects, p->options))
		return EXIT_USAGE;
	int status = read_batch(p);
	if (!status)
		status = measure_machine(p);
	if (!status) {
		pin_caller(&p->objects, p->options);
		status = run_all(p);
	}
	if (!status)
		status = describe_program(p);
	return status ? status : show_view(p);
}

static void close_all(struct profile *p)
{
	summary_free(&p->summary);
	gathering_free(&p->gathering);
	recording_free(&p->last);
	recording_free(&p->fastest);
	free(p->sizes);
	esp_text_free(p->schedule);
	batch_free(&p->batch);
	batches_close(&p->batches);
	objects_close(&p->objects);
}

int command_profile(const struct options *options)
{
	if (needs_weights(options, options->operand[0])) {
		complain("profile needs --weights FILE");
		return EXIT_USAGE;
	}
	struct options chosen = *options;
	leave_out_tables(&chosen);
	struct profile p = {.options = &chosen};
	int status = profile_model(&p);
	close_all(&p);
	return status;
}
