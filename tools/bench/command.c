/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier bench: times every size of minibatch with every number of threads. */
#include "bench/bench.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP = 5 /* runs in a row with one number of threads */ };

static bool read_list(struct list *list, const char *name, const char *text, long most)
{
	const char *p = text;
	for (list->n = 0; list->n < MOST_CHOICES; p++) {
		char *end;
		long value = strtol(p, &end, 10);
		if (end == p || value < 1 || value > most || (*end && *end != ','))
			break;
		list->at[list->n++] = value;
		p = end;
		if (!*p)
			return true;
	}
	return complain("--%s is numbers from 1 to %ld with commas between, not '%s'", name, most, text);
}

/* --- weights --- */

static bool name_weights(struct bench *b)
{
	const char *folder = getenv("TMPDIR");
	snprintf(b->weights, sizeof b->weights, "%s/espalier-bench-XXXXXX", folder ? folder : "/tmp");
	int fd = mkstemp(b->weights);
	if (fd < 0)
		return complain("cannot make '%s': %s", b->weights, strerror(errno));
	close(fd);
	return true;
}

static bool write_weights(const struct bench *b, const esp_model *model, struct output *to)
{
	struct random random = {b->options->seed};
	if (weights_write(model, &b->sizes, &random, to->file))
		return output_commit(to);
	output_abort(to);
	return false;
}

/* Writes random weights to a temporary file, which is removed once it was read or on an interrupt. */
static bool make_weights(struct bench *b, const esp_model *model)
{
	sigset_t before;
	if (b->options->weights)
		return true;
	interrupt_hold(&before);
	bool named = name_weights(b);
	interrupt_release(&before, named ? b->weights : NULL);
	if (!named)
		return false;
	struct output to = {.file = fopen(b->weights, "wb"), .path = b->weights};
	return to.file ? write_weights(b, model, &to)
		       : complain("cannot write '%s': %s", b->weights, strerror(errno));
}

static void forget_weights(struct bench *b)
{
	if (b->weights[0]) {
		unlink(b->weights);
		interrupt_forget();
		b->weights[0] = 0;
	}
}

/* --- structures --- */

/* Lengths that comparisons of the field use, in the order of the words of options.def. */
static const int usual_length[FORMS] = {
    [FORM_PARSE] = 19, [FORM_PERFECT] = 7, [FORM_GRID] = 16, [FORM_SEQUENCE] = 100};

/* How many structures the minibatches of the largest size have together. */
static size_t count_wanted(const struct bench *b)
{
	size_t n = 0;
	for (int i = 0; i < b->batches.n; i++)
		if (n < (size_t)b->batches.at[i] * b->options->minibatches)
			n = b->batches.at[i] * b->options->minibatches;
	return n;
}

static bool make_shapes(struct bench *b, const struct objects *objects)
{
	const struct options *o = b->options;
	struct random random = {(uint64_t)o->seed + 1};
	size_t n = count_wanted(b);
	if (o->operands > 1)
		return input_open(&b->input, o->operand[1]) &&
		       shapes_read(&b->shapes, objects, b->input.path, n, &random);
	const esp_model_facts *facts = esp_model_describe(objects->model);
	bool sequence = strcmp(facts->structure, "sequence") == 0 || facts->children == 1 || !facts->children;
	struct making making = {sequence ? FORM_SEQUENCE : (enum form)o->structures,
				facts->children < 0 ? 2 : facts->children, o->length};
	if (!making.length)
		making.length = usual_length[making.form];
	if (!facts->children)
		making.length = 1; /* a row is a node of its own */
	return shapes_make(&b->shapes, &making, n, &random);
}

/* Writes a structure as a line: for each node its word, the number of its children, and their numbers. */
static void write_shape(const struct shape *s, FILE *to)
{
	for (int node = 0; node < s->nodes; node++) {
		fprintf(to, "%s%u %d", node ? " " : "", s->word[node], s->begin[node + 1] - s->begin[node]);
		for (int e = s->begin[node]; e < s->begin[node + 1]; e++)
			fprintf(to, " %d", s->children[e]);
	}
	putc('\n', to);
}

/* --- files for --keep --- */

/* The path of the output stays valid until the next call. */
static bool open_kept(const struct bench *b, const char *name, struct output *to)
{
	static char path[4096];
	snprintf(path, sizeof path, "%s/%s", b->options->keep, name);
	return output_open(to, path);
}

static bool keep_weights(const struct bench *b)
{
	struct output to;
	return b->options->weights || (open_kept(b, "weights.safetensors", &to) &&
				       write_weights(b, b->subject[0].objects.model, &to));
}

static bool keep_shapes(const struct bench *b)
{
	struct output to;
	if (!open_kept(b, "structures.txt", &to))
		return false;
	for (size_t i = 0; i < b->shapes.n; i++)
		write_shape(&b->shapes.at[i], to.file);
	return output_commit(&to);
}

static bool keep_data(const struct bench *b)
{
	const char *folder = b->options->keep;
	if (b->subject[0].trees)
		return complain("--keep is for words that are drawn: %s has its own", b->options->operand[1]);
	if (mkdir(folder, 0777) != 0 && errno != EEXIST)
		return complain("cannot make '%s': %s", folder, strerror(errno));
	return keep_weights(b) && keep_shapes(b);
}

/* --- opening --- */

static int prepare_data(struct bench *b)
{
	struct objects model;
	struct options without = *b->options;
	without.weights = NULL;
	int status = objects_open(&model, &without, b->options->operand[0], ESP_AT_MODEL) ? 0 : model.status;
	/* Sizes of a graph were taken when it was read. */
	if (!status && !sizes_read(&b->sizes, model.model, is_graph(b->options->operand[0]) ? NULL : b->options->sizes))
		status = EXIT_USAGE;
	if (!status && !(make_weights(b, model.model) && make_shapes(b, &model)))
		status = EXIT_INPUT;
	objects_close(&model);
	return status;
}

/* Takes the inputs' values from the file when it has them. */
static int choose_source(struct bench *b)
{
	bool can = false;
	int status = 0;
	if (b->input.path)
		status = subject_can_read(&b->subject[0], b->input.path, &can);
	for (int i = 0; i < b->subjects && can; i++) {
		b->subject[i].trees = b->input.path;
		b->subject[i].structures = b->shapes.n;
	}
	return status;
}

static int open_subjects(struct bench *b)
{
	struct options options = *b->options;
	int status = 0;
	if (!options.weights)
		options.weights = b->weights;
	for (int i = 0; i < b->threads.n && !status; i++)
		status = subject_open(&b->subject[b->subjects++], &options, ESP_AT_MODEL, b->threads.at[i],
				      &b->shapes);
	forget_weights(b);
	return status ? status : choose_source(b);
}

/* --- measuring --- */

static int compare_seconds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static int measure_group(struct subject *s, double *seconds, int runs, double *linearize)
{
	struct timing t;
	int status = subject_run(s, &t); /* the caches may hold other subjects' weights */
	for (int i = 0; i < runs && !status; i++) {
		status = subject_run(s, &t);
		seconds[i] = t.whole;
		*linearize = fmin(*linearize, t.linearize);
	}
	return status;
}

/* Index of a percentile in the sorted times of the runs. */
static int rank_of(int percent, int runs)
{
	return (runs * percent + 99) / 100 - 1;
}

static int add_result(struct bench *b, int i, double *seconds, double linearize, struct sums *r)
{
	struct floor floor;
	int n = b->options->runs, status = subject_floor(&b->subject[i], &b->machine[i], &floor);
	qsort(seconds, n, sizeof *seconds, compare_seconds);
	r->least += seconds[0];
	r->median += seconds[n / 2];
	r->p95 += seconds[rank_of(95, n)];
	r->linearize += linearize;
	r->floor += floor.seconds;
	r->operations += floor.operations;
	r->bytes += floor.bytes;
	r->nodes += subject_nodes(&b->subject[i]);
	return status;
}

/* Times one minibatch, alternating between the numbers of threads. */
static int measure_minibatch(struct bench *b, size_t first, size_t count, struct sums *results)
{
	int n = b->options->runs, status = 0;
	if (b->subjects < 1)
		return 0;
	double seconds[b->subjects][n], linearize[b->subjects];
	for (int i = 0; i < b->subjects && !status; i++) {
		linearize[i] = INFINITY;
		status = subject_fill(&b->subject[i], first, count);
	}
	for (int done = 0; done < n; done += GROUP)
		for (int i = 0; i < b->subjects && !status; i++)
			status = measure_group(&b->subject[i], seconds[i] + done,
					       n - done < GROUP ? n - done : GROUP, &linearize[i]);
	for (int i = 0; i < b->subjects && !status; i++)
		status = add_result(b, i, seconds[i], linearize[i], &results[i]);
	return status;
}

static bool measure_machine(struct bench *b)
{
	for (int i = 0; i < b->subjects; i++) {
		struct machine m;
		if (!machine_measure(&m, TARGETS, b->threads.at[i], MACHINE_MEMORY, NULL))
			return complain("the machine cannot be measured");
		if (b->machine[i].threads)
			machine_merge(&b->machine[i], &m);
		else
			b->machine[i] = m;
	}
	return true;
}

static int measure_batch(struct bench *b, long batch)
{
	struct sums results[MOST_CHOICES] = {0};
	int status = 0;
	for (long i = 0; i < b->options->minibatches && !status; i++)
		status = measure_minibatch(b, i * batch, batch, results);
	if (!status)
		report_batch(b, batch, results);
	return status;
}

static int measure_batches(struct bench *b)
{
	if (!measure_machine(b))
		return EXIT_INPUT;
	report_machines(b);
	for (int i = 0; i < b->subjects; i++)
		pin_caller(&b->subject[i].objects, b->options);
	int status = 0;
	for (int i = 0; i < b->batches.n && !status; i++)
		status = measure_batch(b, b->batches.at[i]);
	if (!status)
		report_end(b);
	return status;
}

/* --- the command --- */

int bench_open(struct bench *b, const struct options *options)
{
	*b = (struct bench){.options = options};
	if (!read_list(&b->batches, "batches", options->batches, 1000000) ||
	    !read_list(&b->threads, "threads", options->thread_list, ESP_THREADS_MAX))
		return EXIT_USAGE;
	int status = prepare_data(b);
	if (!status)
		status = open_subjects(b);
	return status || !options->keep || keep_data(b) ? status : EXIT_INPUT;
}

void bench_close(struct bench *b)
{
	forget_weights(b);
	for (int i = 0; i < b->subjects; i++)
		subject_close(&b->subject[i]);
	shapes_free(&b->shapes);
	input_close(&b->input);
}

static int run_bench(struct bench *b, const struct options *options)
{
	int status = bench_open(b, options);
	if (status)
		return status;
	return options->exhaustive ? bench_exhaustive(b) : measure_batches(b);
}

int command_bench(const struct options *options)
{
	static struct bench b;
	if (options->ablation)
		return bench_ablation(&b, options);
	if (!options->operands) {
		complain("bench needs a MODEL.ra, but for --ablation");
		return EXIT_USAGE;
	}
	int status = run_bench(&b, options);
	bench_close(&b);
	return status;
}
