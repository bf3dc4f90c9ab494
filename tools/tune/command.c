/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier tune: searches a schedule for the user's inputs, or measures precisions with them. */
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Seconds of one contest: long enough for least times to settle, short compared with compiling a program. */
static const double contest_seconds = 0.06, hopeless = 1.15;

enum { SECONDS = 60, BATCH = 64, MINIBATCHES = 3 };

struct tune {
	struct options options;
	struct subject first;
	struct search search;
	struct output output;
	const char *input; /* the name of the file, or of the first array */
	struct arrays *arrays;
};

/* Counts the trees of the file, `most` at most. */
static int count_trees(struct tune *t, size_t most, size_t *n)
{
	int status = subject_fill(&t->first, 0, most);
	*n = esp_forest_structures(t->first.forest);
	if (!status && !*n) {
		complain("'%s' has no trees", t->input);
		return EXIT_INPUT;
	}
	return status;
}

/* Each program reads its minibatches anew. */
static bool can_read_again(const char *path)
{
	struct stat s;
	bool is_file = strcmp(path, "-") != 0 && (stat(path, &s) != 0 || S_ISREG(s.st_mode));
	return is_file || complain("'%s' is read again and again: it must be a file", path);
}

static int open_contest(struct tune *t)
{
	const struct options *o = &t->options;
	size_t trees, batch = o->batch ? o->batch : BATCH, most = MINIBATCHES;
	int at = place_of(o);
	if (!o->input.n && !can_read_again(t->input))
		return EXIT_INPUT;
	int status = subject_open(&t->first, o, at, o->threads, NULL);
	if (status)
		return status;
	if (o->input.n && !arrays_open(&t->arrays, "input", &o->input, &t->first.objects))
		return EXIT_INPUT;
	t->first.arrays = t->arrays;
	t->first.trees = t->input;
	status = count_trees(t, batch * most, &trees);
	if (trees < batch)
		batch = trees;
	t->search = (struct search){.options = o,
				    .contest = {.batch = batch,
						.minibatches = status ? 0 : trees / batch,
						.seconds = contest_seconds,
						.any_bits = o->mutants && o->math && strcmp(o->math, "exact") != 0,
						.hopeless = hopeless},
				    .first = &t->first,
				    .holder = &t->first,
				    .deadline = read_clock() + (o->seconds ? o->seconds : SECONDS)};
	return status;
}

/* --- the end --- */

/* Measures the winner against the first schedule: the gains of single steps do not simply multiply. It
 * compiles the text that will be written, as a later user of the file does. */
static int judge_winner(struct tune *t, const char *schedule, double *ratio)
{
	struct contest c = t->search.contest;
	struct subject winner;
	struct outcome o;
	esp_error *error;
	c.seconds *= 5;
	c.hopeless = 2;
	*ratio = 1;
	if (t->search.holder == &t->first)
		return 0;
	esp_status refused = subject_join(&winner, &t->first, &t->options, schedule, &error);
	if (refused)
		return report_failure(refused, error);
	int status = contest_run(&c, &t->first, &winner, &o);
	if (!status)
		*ratio = o.differs ? 0 : o.holder / o.challenger;
	subject_close(&winner);
	return status;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void put_header(const struct tune *t, double ratio, FILE *to)
{
	const struct contest *c = &t->search.contest;
	fputs("# tuned by espalier tune for ", to);
	put_masked(to, base_name(t->input));
	fprintf(to, ", %zu minibatch%s of %zu tree%s, ", c->minibatches, c->minibatches == 1 ? "" : "es",
		c->batch, c->batch == 1 ? "" : "s");
	if (t->options.threads)
		fprintf(to, "%ld thread%s", t->options.threads, t->options.threads == 1 ? "" : "s");
	else
		fputs("all processors", to);
	fprintf(to, ", outputs at %s\n", t->options.at == PLACE_ALL ? "all nodes" : "the root");
	fprintf(
	    to,
	    "# %ld schedules were measured; this one is %.3f times as fast as what is chosen without it\n",
	    t->search.measured, ratio);
}

static int write_schedule(struct tune *t, const char *schedule, double ratio)
{
	put_header(t, ratio, t->output.file);
	return output_puts(&t->output, schedule) && output_commit(&t->output) ? 0 : EXIT_INPUT;
}

static int dump_schedule(const struct subject *s, char **text)
{
	esp_error *error;
	esp_status status = esp_program_dump(s->objects.program, "sched", text, &error);
	return status ? report_failure(status, error) : 0;
}

/* Writes the winner, or the first schedule when the winner is no faster after all. */
static int write_winner(struct tune *t)
{
	char *schedule;
	double ratio;
	int status = dump_schedule(t->search.holder, &schedule);
	if (!status)
		status = judge_winner(t, schedule, &ratio);
	if (!status && ratio < 1) {
		esp_text_free(schedule);
		schedule = NULL;
		ratio = 1;
		status = dump_schedule(&t->first, &schedule);
	}
	if (!status)
		status = write_schedule(t, schedule, ratio);
	if (!status)
		fprintf(stderr, "%ld schedules measured: %.3f times as fast\n", t->search.measured, ratio);
	esp_text_free(schedule);
	return status;
}

static int write_precisions(struct tune *t)
{
	int status = precisions_measure(&t->search, t->output.file);
	return status ? status : output_commit(&t->output) ? 0 : EXIT_INPUT;
}

static int search_schedule(struct tune *t)
{
	int status = t->options.mutants ? search_mutants(&t->search) : search_climb(&t->search);
	return status ? status : write_winner(t);
}

static int tune_model(struct tune *t)
{
	interrupt_note();
	if (!output_open(&t->output, t->options.output))
		return EXIT_INPUT;
	int status = open_contest(t);
	if (!status)
		status = t->options.precisions ? write_precisions(t) : search_schedule(t);
	if (status)
		output_abort(&t->output);
	search_free(&t->search);
	arrays_close(t->arrays);
	subject_close(&t->first);
	return status;
}

int command_tune(const struct options *options)
{
	static struct tune t;
	if (needs_weights(options, options->operand[0])) {
		complain("tune needs --weights FILE");
		return EXIT_USAGE;
	}
	if (options->precisions && (options->precision || options->weights_as)) {
		complain("--precisions measures all of them: leave out --%s",
			 options->precision ? "precision" : "weights-as");
		return EXIT_USAGE;
	}
	if (options->precisions && options->mutants) {
		complain("--precisions and --mutants are two searches: leave out one");
		return EXIT_USAGE;
	}
	if (!arrays_check(options))
		return EXIT_USAGE;
	if (!options->input.n && options->operands < 2) {
		complain("there must be a file of structures or, for a model without a structure, --input NAME=FILE");
		return EXIT_USAGE;
	}
	t.options = *options;
	if (options->precisions)
		t.options.precision = "f32"; /* of the first row, whatever quantised weights would choose */
	t.input = options->input.n ? options->input.word[0] : options->operand[1];
	t.options.no_cache = true; /* only one of many programs is used again */
	return tune_model(&t);
}
