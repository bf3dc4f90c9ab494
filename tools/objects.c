#include "tool.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who reads it on a terminal may want to read on. */
static void offer_explanation(const esp_error *error)
{
	if (esp_error_count(error) && isatty(STDERR_FILENO))
		fprintf(stderr, "    more: espalier explain-error %s\n", esp_error_get(error, 0)->id);
}

int report(esp_status status, esp_error *error)
{
	put_masked(stderr, esp_error_text(error));
	offer_explanation(error);
	esp_error_free(error);
	return status == ESP_ERROR_ARGUMENT ? EXIT_USAGE : EXIT_INPUT;
}

/* A schedule is a page of text at most; anything longer than the buffer is none. */
enum { SCHEDULE_BYTES = 1 << 20 };

static char *read_schedule(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = file ? malloc(SCHEDULE_BYTES + 1) : NULL;
	size_t n = text ? fread(text, 1, SCHEDULE_BYTES, file) : 0;
	const char *why = !file		       ? strerror(errno)
			  : !text	       ? "no memory"
			  : ferror(file)       ? strerror(errno)
			  : n < SCHEDULE_BYTES ? NULL
					       : "too long for a schedule";
	if (file)
		fclose(file);
	if (why) {
		complain("cannot read schedule '%s': %s", path, why);
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* In the order of the words in options.def. */
static const char *const targets[] = {"native", "generic", "avx2", "avx512", "aarch64"};

static esp_status create_program(struct objects *o, const struct options *options, const char *schedule,
				 int at, esp_error **error)
{
	esp_program_options p = {.size = sizeof p,
				 .at = at,
				 .backend = options->backend,
				 .target = targets[options->target],
				 .schedule = schedule,
				 .math = options->math,
				 .rules = options->rules,
				 .table_bytes = options->table_bytes};
	return esp_program_create(o->model, o->weights, &p, &o->program, error);
}

static bool open_program(struct objects *o, const struct options *options, int at, esp_error **error)
{
	char *schedule = options->schedule ? read_schedule(options->schedule) : NULL;
	if (options->schedule && !schedule) {
		o->status = EXIT_INPUT;
		return false;
	}
	esp_status status = create_program(o, options, schedule, at, error);
	free(schedule);
	if (status)
		o->status = report(status, *error);
	return !status;
}

/* What went wrong without stopping anything. */
static void tell(void *user, const esp_diagnostic *d)
{
	(void)user;
	complain("%s [%s]", d->message, d->id);
	if (!d->hint)
		return;
	fputs("    hint: ", stderr);
	put_masked(stderr, d->hint);
	fputc('\n', stderr);
}

static esp_status create_context(struct objects *o, const struct options *options, esp_error **error)
{
	esp_context_options c = {.size = sizeof c,
				 .log = tell,
				 .threads = options->threads,
				 .cache = options->no_cache ? ESP_CACHE_OFF : ESP_CACHE_ON,
				 .cache_dir = options->cache_dir,
				 .pin = options->pin};
	return esp_context_create(&c, &o->context, error);
}

bool objects_open(struct objects *o, const struct options *options, const char *model, int at)
{
	esp_error *error = NULL;
	*o = (struct objects){0};
	esp_status status = create_context(o, options, &error);
	if (!status)
		status = esp_model_read(o->context, model, &o->model, &error);
	if (!status && options->vocab)
		status = esp_vocab_open(o->context, options->vocab, &o->vocab, &error);
	if (!status && options->weights)
		status = esp_weights_open(o->context, options->weights, &o->weights, &error);
	if (status)
		o->status = report(status, error);
	return !status && (!options->weights || open_program(o, options, at, &error));
}

bool objects_compile(struct objects *o, const struct options *options, int at)
{
	esp_error *error = NULL;
	esp_program_free(o->program);
	o->program = NULL;
	return open_program(o, options, at, &error);
}

void pin_caller(const struct objects *o, const struct options *options)
{
	cpu_set_t may, own;
	int first = 0;
	if (!options->pin || esp_program_prepare(o->program, NULL) || sched_getaffinity(0, sizeof may, &may))
		return;
	while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &may))
		first++;
	CPU_ZERO(&own);
	CPU_SET(first, &own);
	sched_setaffinity(0, sizeof own, &own);
}

/* A table that is made of an embedding has a row for each word of the vocabulary, and costs as much as
 * running over as many words.  A word of a tree takes about twice the bytes that it takes in a vocabulary.
 * What is no file of known size may be short.  A schedule is for the program that was dumped, which has
 * tables. */
static bool tables_pay(const struct options *o)
{
	struct stat trees, vocab;
	if (!o->vocab || stat(o->vocab, &vocab) != 0)
		return true;
	return stat(o->operand[1], &trees) == 0 && S_ISREG(trees.st_mode) &&
	       trees.st_size / 2 >= vocab.st_size;
}

void choose_tables(struct options *o)
{
	if (!o->rules && !o->table_bytes && !o->schedule && !tables_pay(o))
		o->rules = "-tables";
}

bool has_vocab(const struct objects *o)
{
	if (o->vocab || !esp_program_inputs(o->program))
		return true;
	return complain("the model reads '%s': give --vocab FILE", esp_program_input(o->program, 0)->name);
}

void objects_close(struct objects *o)
{
	esp_program_free(o->program);
	esp_weights_free(o->weights);
	esp_vocab_free(o->vocab);
	esp_model_free(o->model);
	esp_context_free(o->context);
}
