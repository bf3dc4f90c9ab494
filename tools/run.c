/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier run: runs a model over a treebank, minibatch by minibatch. */
#include "tool.h"

#include <string.h>
#include <unistd.h>

struct run {
	const struct options *options;
	struct objects objects;
	struct batches batches;
	struct batch batch;
	esp_export *export; /* NULL = without --export */
	struct output output;
};

static void write_batch(struct run *r)
{
	struct result result = {
	    .program = r->objects.program, .session = r->batches.session, .at = (enum place)r->options->at};
	for (size_t i = 0; i < r->batch.sentences; i++) {
		result.forest = r->batch.forest;
		result.structure = i;
		result.tree = r->batch.tree[i];
		result.nodes = esp_forest_nodes(r->batch.forest, i);
		result.sentence = r->batch.sentence[i];
		result.words = r->batch.words[i];
		(r->options->format == FORMAT_JSON ? write_json : write_text)(r->output.file, &result);
	}
}

static int run_batch(struct run *r)
{
	esp_error *error;
	int status = batches_run(&r->batches, &r->batch);
	if (status || !r->batch.sentences)
		return status;
	esp_status added = r->export ? esp_export_add(r->export, r->batches.session, &error) : ESP_OK;
	if (added)
		return batches_refuse(&r->batches, added, error);
	write_batch(r);
	batches_show(&r->batches, r->batches.read, batches_progress(&r->batches));
	return output_flush(&r->output) ? 0 : EXIT_INPUT;
}

/* Progress is not shown between results. A failure is reported after the results of the trees before it. */
static int run_all(struct run *r)
{
	int more, status;
	r->batches.hold = true;
	r->batches.words = r->options->at == PLACE_ALL && r->options->format == FORMAT_TEXT;
	r->batches.quiet = r->output.file == stdout && isatty(STDOUT_FILENO);
	do {
		status = batches_read(&r->batches, &r->batch, &more);
		if (!status && r->batch.sentences)
			status = run_batch(r);
	} while (!status && more && !r->batches.failure.status);
	batches_hide(&r->batches);
	if (!status)
		status = batches_tell(&r->batches);
	if (!status && r->batches.skipped)
		complain("%zu structures were left out", r->batches.skipped);
	return status;
}

/* --- exports --- */

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

/* The file's ending gives the format; .npy holds a single tensor. */
static bool check_export(const struct options *o)
{
	if (!o->export)
		return !o->tensor || complain("--tensor NAME goes with --export FILE.npy");
	if (ends_with(o->export, ".npy"))
		return o->tensor || complain("%s holds one tensor: give --tensor NAME", o->export);
	if (!ends_with(o->export, ".safetensors"))
		return complain("--export FILE ends in .safetensors or .npy, not '%s'", o->export);
	return !o->tensor || complain("%s holds all tensors: --tensor NAME goes with .npy", o->export);
}

/* Checked before anything runs. */
static bool has_tensor(const esp_program *p, const char *name)
{
	if (strcmp(name, "structure_begin") == 0)
		return true;
	for (size_t i = 0; esp_program_state(p, i); i++)
		if (strcmp(name, esp_program_state(p, i)->name) == 0)
			return true;
	for (size_t i = 0; esp_program_output(p, i); i++)
		if (strcmp(name, esp_program_output(p, i)->name) == 0)
			return true;
	return complain("the model has neither a state nor an output '%s'", name);
}

static int write_export(const struct run *r)
{
	esp_error *error;
	sigset_t before;
	const struct options *o = r->options;
	bool hold = interrupt_hold_writing(o->export, &before);
	esp_status status = o->tensor ? esp_export_npy(r->export, o->tensor, o->export, &error)
				      : esp_export_safetensors(r->export, o->export, &error);
	if (hold)
		interrupt_release(&before, NULL);
	return status ? report_failure(status, error) : 0;
}

/* --- before and after --- */

static int prepare_export(struct run *r)
{
	esp_error *error;
	const char *input = r->options->operands > 1 ? r->options->operand[1] : NULL;
	int status = batches_open(&r->batches, r->options, &r->objects, input, true);
	if (status || !r->options->export)
		return status;
	esp_status created = esp_export_create(r->objects.program, &r->export, &error);
	return created ? report_failure(created, error) : 0;
}

static void show_count(uint64_t n, const char *singular, const char *plural, const char *end)
{
	fprintf(stderr, "%llu %s%s", (unsigned long long)n, n == 1 ? singular : plural, end);
}

static void show_timing(const struct run *r)
{
	const esp_costs c = *esp_session_costs(r->batches.session);
	double trees = c.structures ? (double)c.structures : 1;
	show_count(c.structures, "tree", "trees", ", ");
	show_count(c.nodes, "node", "nodes", ", ");
	show_count(c.runs, "minibatch", "minibatches", ", ");
	show_count(c.batches, "batch", "batches", "\n");
	fprintf(stderr, "compile    %10.1f ms, once\n", c.compile * 1e3);
	fprintf(stderr, "bind       %10.1f ms, once\n", c.bind * 1e3);
	if (c.folded_bytes)
		fprintf(stderr, "  of it    %10.1f ms for constants, %.1f MB of %.1f MB of weights\n",
			c.fold * 1e3, c.folded_bytes * 1e-6, c.weight_bytes * 1e-6);
	fprintf(stderr, "linearize  %10.1f us, %.1f us a tree\n", c.linearize * 1e6,
		c.linearize * 1e6 / trees);
	fprintf(stderr, "run        %10.1f us, %.1f us a tree\n", c.run * 1e6, c.run * 1e6 / trees);
	if (c.cycles)
		fprintf(stderr, "accelerator %9llu cycles, estimated, %.0f a tree\n", (unsigned long long)c.cycles,
			(double)c.cycles / trees);
}

static void close_all(struct run *r)
{
	esp_export_free(r->export);
	batch_free(&r->batch);
	batches_close(&r->batches);
	objects_close(&r->objects);
}

static int run_file(struct run *r)
{
	int at = place_of(r->options);
	if (!objects_open_any(&r->objects, r->options, r->options->operand[0], at))
		return r->objects.status;
	if (!has_weights(&r->objects, r->options))
		return EXIT_USAGE;
	if (r->options->tensor && !has_tensor(r->objects.program, r->options->tensor))
		return EXIT_USAGE;
	int status = prepare_export(r);
	if (!status && !output_open(&r->output, r->options->output))
		return EXIT_INPUT;
	if (status)
		return status;
	pin_caller(&r->objects, r->options);
	status = run_all(r);
	if (!status && r->export)
		status = write_export(r);
	if (status)
		output_abort(&r->output);
	else if (!output_commit(&r->output))
		status = EXIT_INPUT;
	if (!status && r->options->timing)
		show_timing(r);
	return !status && r->batches.refused ? EXIT_INPUT : status;
}

int command_run(const struct options *options)
{
	if (needs_weights(options, options->operand[0])) {
		complain("run needs --weights FILE");
		return EXIT_USAGE;
	}
	if (!arrays_check(options) || !check_export(options))
		return EXIT_USAGE;
	struct options chosen = *options;
	leave_out_tables(&chosen);
	struct run r = {.options = &chosen};
	int status = run_file(&r);
	close_all(&r);
	return status;
}
