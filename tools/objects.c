/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tells a reader at a terminal where the explanation is. */
static void offer_explanation(const esp_error *error)
{
	if (esp_error_count(error) && isatty(STDERR_FILENO))
		fprintf(stderr, "    more: espalier explain-error %s\n", esp_error_get(error, 0)->id);
}

int report_failure(esp_status status, esp_error *error)
{
	put_masked(stderr, esp_error_text(error));
	offer_explanation(error);
	esp_error_free(error);
	return status == ESP_ERROR_ARGUMENT ? EXIT_USAGE : EXIT_INPUT;
}

/* Schedules are short; a longer file is a mistake. */
enum { SCHEDULE_BYTES = 1 << 20 };

static char *read_schedule(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = file ? malloc(SCHEDULE_BYTES + 2) : NULL;
	size_t n = text ? fread(text, 1, SCHEDULE_BYTES + 1, file) : 0;
	const char *why = !file			   ? strerror(errno)
			  : !text		   ? "no memory"
			  : ferror(file)	   ? strerror(errno)
			  : n > SCHEDULE_BYTES	   ? "too long for a schedule"
			  : memchr(text, 0, n)	   ? "it has a zero byte"
						   : NULL;
	if (file)
		fclose(file);
	if (!text || why) {
		complain("cannot read schedule '%s': %s", path, why);
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

int place_of(const struct options *options)
{
	static const int places[] = {
	    [PLACE_ROOT] = ESP_AT_ROOT, [PLACE_ALL] = ESP_AT_EVERY_NODE, [PLACE_MODEL] = ESP_AT_MODEL};
	return places[options->at];
}

esp_status objects_program(const struct objects *o, const struct options *options, const char *schedule,
			   int at, esp_program **program, esp_error **error)
{
	esp_program_options p = {.size = sizeof p,
				 .at = at,
				 .backend = options->backend,
				 .target = options->target,
				 .schedule = schedule,
				 .math = options->math,
				 .rules = options->rules,
				 .table_bytes = options->table_bytes,
				 .sizes = o->sizes,
				 .weights_as = options->weights_as,
				 .precision = options->precision,
				 .continuous = options->continuous,
				 .assume = options->assume,
				 .accelerator = options->accelerator};
	return esp_program_create(o->model, o->weights, &p, program, error);
}

static bool open_program(struct objects *o, const struct options *options, int at, esp_error **error)
{
	char *schedule = options->schedule ? read_schedule(options->schedule) : NULL;
	if (options->schedule && !schedule) {
		o->status = EXIT_INPUT;
		return false;
	}
	esp_status status = objects_program(o, options, schedule, at, &o->program, error);
	free(schedule);
	if (status)
		o->status = report_failure(status, *error);
	return !status;
}

/* Prints a notice of the library: something went wrong, and no call failed. */
static void print_notice(void *user, const esp_diagnostic *d)
{
	(void)user;
	complain("%s [%s]", d->message, d->id);
	if (!d->hint)
		return;
	fputs("    hint: ", stderr);
	put_masked(stderr, d->hint);
	fputc('\n', stderr);
}

esp_status create_context(const struct options *options, int (*cancel)(void *), void *user, esp_context **context,
			  esp_error **error)
{
	esp_context_options c = {.size = sizeof c,
				 .log = print_notice,
				 .threads = options->threads,
				 .cache = options->no_cache ? ESP_CACHE_OFF : ESP_CACHE_ON,
				 .cache_dir = options->cache_dir,
				 .pin = options->pin,
				 .memory_cap = options->memory_cap,
				 .operators = options->operators,
				 .compile_in = options->compile_in || options->compile_memory
						   ? ESP_COMPILE_IN_HELPER
						   : ESP_COMPILE_IN_PROCESS,
				 .compile_memory = options->compile_memory,
				 .compile_seconds = options->compile_seconds,
				 .user = user,
				 .cancel = cancel};
	return esp_context_create(&c, context, error);
}

static esp_status open_model(struct objects *o, const struct options *options, const char *model,
			     esp_error **error)
{
	const char *text = options->model_text;
	if (text)
		return esp_model_parse(o->context, model, text, strlen(text), &o->model, error);
	if (!is_graph(model))
		return esp_model_read(o->context, model, &o->model, error);
	return read_graph(o->context, model, options, &o->model, error);
}

/* --- programs that were compiled before --- */

static int open_retrying(const char *path)
{
	int fd;
	do
		fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Returns how many of `n` bytes the file has; -1 = it cannot be read. */
static ssize_t read_magic(int fd, char *magic, size_t n)
{
	size_t got = 0;
	while (got < n) {
		ssize_t more = read(fd, magic + got, n - got);
		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			return more < 0 ? -1 : (ssize_t)got;
		got += more;
	}
	return got;
}

/* A file that is not regular, such as a pipe, is not opened to look at: it can be read only once. */
enum origin origin_of(const char *path)
{
	char magic[sizeof ESP_PROGRAM_MAGIC - 1];
	struct stat s;
	if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
		return ORIGIN_MODEL;
	int fd = open_retrying(path);
	ssize_t n = fd < 0 ? -1 : read_magic(fd, magic, sizeof magic);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return ORIGIN_UNREADABLE;
	return n == sizeof magic && memcmp(magic, ESP_PROGRAM_MAGIC, n) == 0 ? ORIGIN_PROGRAM : ORIGIN_MODEL;
}

/* Refuses options that were decided when the program was compiled. */
static bool check_options(const struct options *options, const char *path)
{
	const char *wrong = options->backend	   ? "backend"
			    : options->target	   ? "target-cpu"
			    : options->accelerator ? "target"
			    : options->schedule	   ? "schedule"
			    : options->math	   ? "math"
			    : options->assume	   ? "assume"
			    : options->weights_as  ? "weights-as"
			    : options->precision   ? "precision"
			    : options->rules	   ? "rules"
			    : options->table_bytes ? "table-bytes"
			    : options->continuous  ? "continuous"
			    : options->sizes	   ? "sizes"
						   : NULL;
	return !wrong || complain("%s is compiled already: --%s goes with a model", path, wrong);
}

/* Refuses --at all for a program whose outputs were all compiled for the root. */
static bool check_place(const esp_program *p, const char *path, int at)
{
	for (size_t i = 0; at == ESP_AT_EVERY_NODE && i < esp_program_outputs(p); i++)
		if (!esp_program_output(p, i)->at_root)
			return true;
	return at != ESP_AT_EVERY_NODE ||
	       complain("%s was compiled for outputs of the root: compile it with --at all", path);
}

static esp_status open_first(struct objects *o, const struct options *options, const char *model,
			     bool compiled, esp_error **error)
{
	esp_status status = o->context ? ESP_OK : create_context(options, interrupt_waits, NULL, &o->context, error);
	if (!status)
		status = compiled ? esp_program_load(o->context, model, &o->program, error)
				  : open_model(o, options, model, error);
	if (!status && options->weights)
		return esp_weights_open(o->context, options->weights, &o->weights, error);
	return !status && !compiled && is_graph(model) ? esp_model_weights(o->model, &o->weights, error) : status;
}

static bool open_files(struct objects *o, const struct options *options, const char *model, bool compiled)
{
	esp_error *error = NULL;
	esp_status status = open_first(o, options, model, compiled, &error);
	o->status = status ? report_failure(status, error) : reading_open(&o->reading, o->context, options);
	return !o->status;
}

static bool open_all(struct objects *o, const struct options *options, const char *model, int at,
		     bool compiled)
{
	esp_error *error = NULL;
	if (!open_files(o, options, model, compiled) ||
	    (!compiled && o->weights && !open_program(o, options, at, &error)))
		return false;
	if (!reading_check(&o->reading, o))
		o->status = EXIT_USAGE;
	return !o->status;
}

bool objects_open_context(struct objects *o, const struct options *options)
{
	esp_error *error = NULL;
	*o = (struct objects){0};
	esp_status status = create_context(options, interrupt_waits, NULL, &o->context, &error);
	o->status = status ? report_failure(status, error) : 0;
	return !status;
}

static bool is_model(const struct options *options, const char *model)
{
	return options->model_text || origin_of(model) != ORIGIN_PROGRAM ||
	       complain("%s is a compiled program: this needs the model's text", model);
}

bool objects_open(struct objects *o, const struct options *options, const char *model, int at)
{
	*o = (struct objects){.status = EXIT_USAGE};
	return is_model(options, model) && open_all(o, options, model, at, false);
}

bool objects_open_model(struct objects *o, const struct options *options, const char *model)
{
	*o = (struct objects){.status = EXIT_USAGE};
	return is_model(options, model) && open_files(o, options, model, false);
}

bool objects_open_in(struct objects *o, const struct options *options, const char *model, int at, esp_context *context)
{
	bool compiled = origin_of(model) == ORIGIN_PROGRAM;
	*o = (struct objects){.context = context, .status = EXIT_USAGE};
	if (compiled && !check_options(options, model))
		return false;
	if (!open_all(o, options, model, at, compiled))
		return false;
	o->status = !compiled || check_place(o->program, model, at) ? 0 : EXIT_USAGE;
	return !o->status;
}

bool objects_open_any(struct objects *o, const struct options *options, const char *model, int at)
{
	return objects_open_in(o, options, model, at, NULL);
}

bool needs_weights(const struct options *options, const char *model)
{
	return !options->weights && !is_graph(model) && origin_of(model) == ORIGIN_MODEL;
}

bool has_weights(const struct objects *o, const struct options *options)
{
	return o->weights || esp_program_has_weights(o->program) ||
	       complain("%s has no weights in it: give --weights FILE", options->operand[0]);
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

/* Tables stay with --schedule, which belongs to the program that was dumped, and that has tables; and in a
 * program compiled before. */
void leave_out_tables(struct options *o)
{
	if (!o->rules && !o->table_bytes && !o->schedule && origin_of(o->operand[0]) == ORIGIN_MODEL)
		o->rules = "-tables";
}

void objects_close(struct objects *o)
{
	esp_program_free(o->program);
	esp_weights_free(o->weights);
	reading_close(&o->reading);
	esp_model_free(o->model);
	esp_context_free(o->context);
}
