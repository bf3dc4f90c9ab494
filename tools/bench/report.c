/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes measurements as a table or as lines of JSON. */
#include "bench/bench.h"

#include <string.h>

static const char *model_name(const struct bench *b)
{
	return esp_model_describe(b->subject[0].objects.model)->name;
}

/* --- a table --- */

static void put_counts(const struct options *o)
{
	printf("%ld minibatch%s of each size, %ld run%s of each", o->minibatches,
	       o->minibatches == 1 ? "" : "es", o->runs, o->runs == 1 ? "" : "s");
}

static void put_sources(const struct bench *b)
{
	const char *input = b->options->operands > 1 ? b->options->operand[1] : NULL;
	const char *rest = !input		 ? "random structures"
			   : b->subject[0].trees ? ""
						 : ", random words and vectors";
	fputs("weights: ", stdout);
	put_masked(stdout, b->options->weights ? b->options->weights : "random");
	fputs("; input: ", stdout);
	put_masked(stdout, input ? input : "");
	puts(rest);
}

static void put_table_head(const struct bench *b)
{
	int64_t size;
	const char *name;
	for (int i = 0; i < b->subjects; i++)
		machine_print(&b->machine[i], stdout);
	printf("\n%s", model_name(b));
	for (size_t i = 0; (name = esp_program_size(b->subject[0].objects.program, i, &size)); i++)
		printf(", %s = %lld", name, (long long)size);
	fputs(": ", stdout);
	put_counts(b->options);
	putchar('\n');
	put_sources(b);
	printf("\n%9s %7s %10s %11s %11s %11s %11s %12s %13s\n", "minibatch", "threads", "nodes", "median ms",
	       "p95 ms", "least ms", "floor ms", "floor / time", "structures/s");
}

static void put_row(const struct bench *b, int i, long batch, const struct sums *r)
{
	double n = b->options->minibatches;
	printf("%9ld %7ld %10.1f %11.4f %11.4f %11.4f %11.4f %12.2f %13.0f\n", batch, b->threads.at[i],
	       r->nodes / n, r->median / n * 1e3, r->p95 / n * 1e3, r->least / n * 1e3, r->floor / n * 1e3,
	       r->floor / r->least, batch * n / r->median);
}

static const char legend[] =
    "\nnodes         of a minibatch; they and all times are means over the minibatches\n"
    "p95           95 % of the runs take no longer\n"
    "floor         the least time that the machine needs: for each level the longer of computing at its "
    "peak\n"
    "              and reading the weights, plus a barrier, or the time of one thread where that is less\n"
    "floor / time  with the least time; 1 is all that the machine can do\n"
    "structures/s  by the median\n";

/* --- lines of JSON --- */

static void put_machines(const struct bench *b)
{
	for (int i = 0; i < b->subjects; i++) {
		printf("{\"machine\": ");
		machine_print_json(&b->machine[i], stdout);
		puts("}");
	}
}

static void put_number(const char *name, double value)
{
	printf(", \"%s\": ", name);
	write_json_number(stdout, value);
}

static void put_sizes(const struct bench *b)
{
	int64_t size;
	const char *name;
	for (size_t i = 0; (name = esp_program_size(b->subject[0].objects.program, i, &size)); i++)
		printf("%s\"%s\": %lld", i ? ", " : "", name, (long long)size);
}

static void put_line(const struct bench *b, int i, long batch, const struct sums *r)
{
	double n = b->options->minibatches;
	printf("{\"model\": ");
	write_json_string(stdout, model_name(b));
	printf(", \"sizes\": {");
	put_sizes(b);
	printf("}, \"batch\": %ld, \"threads\": %ld, \"minibatches\": %ld, \"runs\": %ld", batch,
	       b->threads.at[i], b->options->minibatches, b->options->runs);
	put_number("nodes", r->nodes / n);
	put_number("min_ms", r->least / n * 1e3);
	put_number("median_ms", r->median / n * 1e3);
	put_number("p95_ms", r->p95 / n * 1e3);
	put_number("linearize_ms", r->linearize / n * 1e3);
	put_number("operations", r->operations / n);
	put_number("weight_bytes", r->bytes / n);
	put_number("floor_ms", r->floor / n * 1e3);
	put_number("floor_over_time", r->floor / r->least);
	put_number("structures_per_second", batch * n / r->median);
	put_number("memory_bytes", esp_context_memory(b->subject[i].objects.context, NULL));
	puts("}");
}

/* --- either --- */

static bool is_json(const struct bench *b)
{
	return b->options->format == FORMAT_JSON;
}

void report_machines(const struct bench *b)
{
	(is_json(b) ? put_machines : put_table_head)(b);
	fflush(stdout);
}

void report_batch(const struct bench *b, long batch, const struct sums *results)
{
	for (int i = 0; i < b->subjects; i++)
		(is_json(b) ? put_line : put_row)(b, i, batch, &results[i]);
	fflush(stdout);
}

void report_end(const struct bench *b)
{
	if (!is_json(b))
		fputs(legend, stdout);
}
