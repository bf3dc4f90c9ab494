/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* serve: answers requests about a model on standard input until its end, for bench.py.
 *
 *   usage: serve MODEL.ra [INPUT] [OPTION]...    operands and options of `espalier bench`; the first number of --threads counts
 *
 *     run FIRST COUNT REPEATS	  runs COUNT structures from FIRST on: REPEATS times in microseconds, on one line
 *     quiet FIRST COUNT REPEATS  microseconds undisturbed, from so many runs
 *     phases FIRST COUNT REPEATS  the least microseconds of linearizing, of filling buffers, of a whole run
 *     root FIRST COUNT		  the first output of COUNT roots, on one line
 *     outputs FIRST COUNT	  all outputs of COUNT structures wherever they are computed, on one line: for
 *				  each structure its outputs, of each those of the root or of all nodes
 *     floor FIRST COUNT	  microseconds of the floor, operations, nodes, microseconds of linearizing
 *     memory			  KiB of peak resident memory: before the model was opened, and now
 *     compile			  milliseconds that the back end took
 *     machine			  measures it, and says what was found
 *     limits GFLOPS US GBS...	  takes these for the machine's: a core's peak, the barrier, reading by working set */
#include "bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct server {
	struct subject *subject;
	struct machine machine;
	bool measured;
	long start; /* KiB, of peak_memory */
};

static int serve_run(struct server *s, size_t first, size_t count, long repeats)
{
	struct timing t;
	int status = subject_fill(s->subject, first, count);
	if (!status)
		status = subject_run(s->subject, &t); /* may allocate memory */
	for (long i = 0; i < repeats && !status; i++) {
		status = subject_run(s->subject, &t);
		printf("%s%.2f", i ? " " : "", t.whole * 1e6);
	}
	putchar('\n');
	return status;
}

static int serve_quiet(struct server *s, size_t first, size_t count, long repeats)
{
	double seconds = 0;
	struct timing t;
	int status = subject_fill(s->subject, first, count);
	if (!status)
		status = subject_run(s->subject, &t);
	if (!status)
		status = subject_undisturbed(s->subject, repeats, &seconds);
	printf("%.2f\n", seconds * 1e6);
	return status;
}

static int serve_phases(struct server *s, size_t first, size_t count, long repeats)
{
	struct phases least = {0};
	struct timing t;
	int status = subject_fill(s->subject, first, count);
	if (!status)
		status = subject_run(s->subject, &t);
	if (!status)
		status = subject_phases(s->subject, repeats, &least);
	printf("%.3f %.3f %.3f\n", least.linearize * 1e6, least.fill * 1e6, least.whole * 1e6);
	return status;
}

static int serve_root(struct server *s, size_t first, size_t count)
{
	struct timing t;
	int status = subject_fill(s->subject, first, count);
	if (!status)
		status = subject_run(s->subject, &t);
	for (size_t i = 0; i < count && !status; i++) {
		const float *row = esp_session_root(s->subject->session, 0, i);
		size_t n = row ? esp_program_output(s->subject->objects.program, 0)->elements : 0;
		for (size_t e = 0; e < n; e++)
			printf("%s%.9g", i + e ? " " : "", row[e]);
	}
	putchar('\n');
	return status;
}

static void print_row(const float *row, size_t elements)
{
	for (size_t e = 0; row && e < elements; e++)
		printf("%.9g ", row[e]);
}

static int serve_outputs(struct server *s, size_t first, size_t count)
{
	struct timing t;
	const esp_output *output;
	int status = subject_fill(s->subject, first, count);
	if (!status)
		status = subject_run(s->subject, &t);
	for (size_t i = 0; i < count && !status; i++)
		for (size_t o = 0; (output = esp_program_output(s->subject->objects.program, o)); o++) {
			size_t rows = output->at_root ? 1 : esp_forest_nodes(s->subject->forest, i);
			for (size_t row = 0; row < rows; row++)
				print_row(esp_session_output(s->subject->session, o, i, row), output->elements);
		}
	putchar('\n');
	return status;
}

/* The largest resident set of this process so far [KiB]; 0 = unknown. */
static long peak_memory(void)
{
	char line[200];
	long peak = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && !peak && fgets(line, sizeof line, f))
		sscanf(line, "VmHWM: %ld kB", &peak);
	if (f)
		fclose(f);
	return peak;
}

static int serve_memory(const struct server *s)
{
	printf("%ld %ld\n", s->start, peak_memory());
	return 0;
}

/* Measures the machine and keeps the best limits of all measurements so far. */
static int serve_machine(struct server *s)
{
	struct machine m;
	if (!machine_measure(&m, TARGETS, s->subject->threads, MACHINE_MEMORY, NULL)) {
		complain("the machine cannot be measured");
		return EXIT_INPUT;
	}
	if (s->measured)
		machine_merge(&s->machine, &m);
	else
		s->machine = m;
	s->measured = true;
	machine_print_json(&s->machine, stdout);
	putchar('\n');
	return 0;
}

/* Reads limits that were measured elsewhere: giga-operations, microseconds, then gigabytes by working set. */
static bool read_limits(struct machine *m, const char *text)
{
	char *end;
	m->peak = strtod(text, &end) * 1e9;
	m->barrier = strtod(end, &end) * 1e-6;
	for (m->sets = 0; m->sets < MACHINE_SETS; m->sets++) {
		const char *from = end;
		m->bandwidth[m->sets] = strtod(from, &end) * 1e9;
		if (end == from)
			break;
	}
	return m->peak > 0 && m->sets > 0;
}

static int serve_floor(struct server *s, size_t first, size_t count)
{
	struct timing t = {0};
	struct floor floor = {0};
	double linearize = INFINITY;
	int status = subject_fill(s->subject, first, count);
	for (int i = 0; i < 10 && !status; i++) {
		status = subject_run(s->subject, &t);
		linearize = fmin(linearize, t.linearize);
	}
	if (!status)
		status = subject_floor(s->subject, &s->machine, &floor);
	if (!status)
		printf("%.3f %.0f %zu %.3f\n", floor.seconds * 1e6, floor.operations, subject_nodes(s->subject),
		       linearize * 1e6);
	return status;
}

/* Prints milliseconds that the back end took, 0 when the program was in the cache. */
static int serve_compile(struct server *s)
{
	char *text = NULL;
	double total = 0, ms;
	int status = 0;
	if (esp_program_times(s->subject->objects.program, &text, NULL) != ESP_OK)
		status = EXIT_INPUT;
	for (char *save, *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		int whole = 0;
		if (sscanf(line, "%lf ms jit compile%n", &ms, &whole) == 1 && whole)
			total += ms;
	}
	printf("%.3f\n", total);
	esp_text_free(text);
	return status;
}

static int serve_line(struct server *s, const char *line)
{
	size_t first, count;
	long repeats;
	if (sscanf(line, "run %zu %zu %ld", &first, &count, &repeats) == 3)
		return serve_run(s, first, count, repeats);
	if (sscanf(line, "quiet %zu %zu %ld", &first, &count, &repeats) == 3)
		return serve_quiet(s, first, count, repeats);
	if (sscanf(line, "phases %zu %zu %ld", &first, &count, &repeats) == 3)
		return serve_phases(s, first, count, repeats);
	if (sscanf(line, "root %zu %zu", &first, &count) == 2)
		return serve_root(s, first, count);
	if (sscanf(line, "outputs %zu %zu", &first, &count) == 2)
		return serve_outputs(s, first, count);
	if (strcmp(line, "memory\n") == 0)
		return serve_memory(s);
	if (strcmp(line, "compile\n") == 0)
		return serve_compile(s);
	if (strcmp(line, "machine\n") == 0)
		return serve_machine(s);
	if (strncmp(line, "limits ", 7) == 0 && read_limits(&s->machine, line + 7)) {
		s->measured = true;
		return 0;
	}
	if (sscanf(line, "floor %zu %zu", &first, &count) == 2 && s->measured)
		return serve_floor(s, first, count);
	complain(
	    "a request is 'run FIRST COUNT REPEATS', 'quiet FIRST COUNT REPEATS', 'root FIRST COUNT', "
	    "'outputs FIRST COUNT', 'memory', 'compile', 'machine', 'limits ...' or, after these, "
	    "'floor FIRST COUNT'");
	return EXIT_INPUT;
}

static int serve_requests(struct subject *subject, long start)
{
	struct server server = {.subject = subject, .start = start};
	char line[1000];
	int status = 0;
	while (!status && fgets(line, sizeof line, stdin)) {
		status = serve_line(&server, line);
		fflush(stdout);
	}
	return status;
}

int main(int argc, char **argv)
{
	static struct bench b;
	struct options options;
	long start = peak_memory();
	if (!options_read(COMMAND_BENCH, argc, argv, &options))
		return EXIT_USAGE;
	if (options.help || !options.operands) {
		fputs("usage: serve MODEL.ra [INPUT] [OPTION]...\n", stderr);
		return EXIT_USAGE;
	}
	int status = bench_open(&b, &options);
	if (!status)
		status = serve_requests(&b.subject[0], start);
	bench_close(&b);
	return status;
}
