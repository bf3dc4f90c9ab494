/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What espalier quantise says of the weights that it wrote. */
#include "calibrate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- labels --- */

/* The number of a label of an output, by its name or as a number; -1 = it is none. */
static long find_label(const esp_output *o, const char *text, size_t length)
{
	char *end;
	for (size_t i = 0; i < o->labels; i++)
		if (strlen(o->label[i]) == length && memcmp(o->label[i], text, length) == 0)
			return (long)i;
	long number = strtol(text, &end, 10);
	return length && end == text + length && number >= 0 && (size_t)number < o->elements ? number : -1;
}

static void count_label(const struct quantising *q, size_t output, size_t structure, size_t node, long right)
{
	const esp_output *o = esp_program_output(q->quantised.program, output);
	struct accuracy *a = &q->accuracy[output];
	size_t best[2];
	for (int i = 0; i < 2; i++) {
		const float *row = esp_session_output(q->batches[i].session, output, structure, node);
		if (!row)
			return;
		best[i] = find_greatest(row, o->elements);
		a->right[i] += (long)best[i] == right;
	}
	a->nodes++;
	a->changed += best[0] != best[1];
}

/* Counts the labels of all nodes of one structure, or that of its root. */
static void count_structure(const struct quantising *q, size_t structure)
{
	const char *line = q->batch[0].words[structure];
	const esp_forest *f = q->batch[0].forest;
	size_t nodes = esp_forest_nodes(f, structure), outputs = count_outputs(q);
	size_t root = esp_forest_root(f, structure);
	for (size_t n = 0; line && *line && n < nodes; n++) {
		size_t length = strcspn(line, "\n");
		for (size_t o = 0; o < outputs && (q->options->at == PLACE_ALL || n == root); o++) {
			const esp_output *output = esp_program_output(q->objects.program, o);
			long right = output->labels ? find_label(output, line, length) : -1;
			if (right >= 0)
				count_label(q, o, structure, n, right);
		}
		line += length + (line[length] == '\n');
	}
}

void count_labels(struct quantising *q)
{
	for (size_t i = 0; i < q->batch[0].sentences; i++) {
		q->nodes += esp_forest_nodes(q->batch[0].forest, i);
		count_structure(q, i);
	}
}

/* --- text --- */

static double relative_error(double error, double reference)
{
	return reference > 0 ? error / reference : 0;
}

static void put_difference(FILE *to, const esp_difference *d)
{
	fprintf(to, "%11.3g %11.3g", relative_error(d->largest, d->reference_largest),
		relative_error(d->rms, d->reference_rms));
}

static void put_bound(FILE *to, const esp_product *p)
{
	static const char *const from[] = {"", "proved", "calibrated"};
	if (p->bound_is)
		fprintf(to, "%10.4g %-10s", p->bound, p->per_edge ? "per edge" : from[p->bound_is]);
	else
		fprintf(to, "%10s %-10s", "", "none");
}

static void put_products(FILE *to, const struct quantising *q, int width)
{
	const esp_product *p;
	fprintf(to, "%-*s %6s %6s  in  %10s %-10s %11s %11s\n", width, "product", "sums", "terms", "bound",
		"is", "largest", "rms");
	for (size_t i = 0; (p = esp_calibration_product(q->calibration[1], i)); i++) {
		fprintf(to, "%-*s %6zu %6zu %-4s ", width, p->name, p->sums, p->terms, p->computed);
		put_bound(to, p);
		if (p->compared)
			put_difference(to, &p->sums_differ);
		else if (!p->why)
			fprintf(to, " part of the sum that follows");
		if (p->why)
			fprintf(to, "  %s", p->why);
		fputc('\n', to);
	}
}

static void put_outputs(FILE *to, const struct quantising *q, int width)
{
	fprintf(to, "\n%-*s %35s %11s %11s\n", width, "output", "", "largest", "rms");
	for (size_t i = 0; i < count_outputs(q); i++) {
		fprintf(to, "%-*s %35s ", width, esp_program_output(q->objects.program, i)->name, "");
		put_difference(to, esp_calibration_output(q->calibration[1], i));
		fputc('\n', to);
	}
}

static void put_accuracy(FILE *to, const struct quantising *q)
{
	const char *in = q->options->precision ? q->options->precision : "i8";
	for (size_t i = 0; i < count_outputs(q); i++) {
		const struct accuracy *a = &q->accuracy[i];
		if (a->nodes)
			fprintf(to, "%s: of %zu labels %zu are right in f32, %zu in %s; %zu differ\n",
				esp_program_output(q->objects.program, i)->name, a->nodes, a->right[0], a->right[1], in,
				a->changed);
	}
}

/* Bytes of the elements of all tensors. */
static size_t count_bytes(const esp_weights *w)
{
	const esp_tensor *t;
	size_t bytes = 0;
	for (size_t i = 0; (t = esp_weights_tensor(w, i)); i++) {
		size_t elements = 1;
		for (size_t d = 0; d < t->rank; d++)
			elements *= t->shape[d];
		bytes += elements * esp_dtype_size(t->dtype);
	}
	return bytes;
}

/* Bytes of the file that was written; its tensors look like those before when they are asked for. */
static size_t count_written(const struct quantising *q)
{
	struct stat written;
	return stat(q->options->output, &written) == 0 ? (size_t)written.st_size : 0;
}

static void put_sizes(FILE *to, const struct quantising *q)
{
	size_t before = count_bytes(q->objects.weights), after = count_written(q);
	fprintf(to, "\nweights: a file of %zu bytes, of %zu bytes of elements before (%.0f %%)\n", after, before,
		before ? 100.0 * (double)after / (double)before : 100);
}

/* The errors of sums by the rounding of their own weights. */
static void put_scales(FILE *to, const struct quantising *q, int width)
{
	const esp_product *p;
	fprintf(to, "\n%-*s %35s %11s %11s\n", width, "weights", "", "plain rms", "chosen rms");
	for (size_t i = 0; (p = esp_calibration_product(q->calibration[0], i)); i++)
		if (p->scaled)
			fprintf(to, "%-*s %35s %11.3g %11.3g\n", width, p->name, "", p->plain_error, p->chosen_error);
}

static int find_width(const struct quantising *q)
{
	const esp_product *p;
	int width = 7;
	for (size_t i = 0; (p = esp_calibration_product(q->calibration[1], i)); i++)
		width = (int)strlen(p->name) > width ? (int)strlen(p->name) : width;
	return width;
}

static void write_as_text(FILE *to, const struct quantising *q)
{
	int width = find_width(q);
	fprintf(to, "calibrated with %zu structures; errors over %zu nodes, in proportion to f32\n\n",
		q->structures, q->nodes);
	put_products(to, q, width);
	put_outputs(to, q, width);
	if (q->options->weights_only)
		put_scales(to, q, width);
	put_sizes(to, q);
	put_accuracy(to, q);
}

/* --- JSON --- */

static void put_named(FILE *to, const char *name, double number)
{
	fprintf(to, ",\"%s\":", name);
	write_json_number(to, number);
}

static void put_json_difference(FILE *to, const esp_difference *d)
{
	put_named(to, "largest", relative_error(d->largest, d->reference_largest));
	put_named(to, "rms", relative_error(d->rms, d->reference_rms));
}

static void put_json_product(FILE *to, const esp_product *p, const esp_product *observed)
{
	static const char *const from[] = {"none", "proved", "calibrated"};
	fputs("{\"name\":", to);
	write_json_string(to, p->name);
	fprintf(to, ",\"sums\":%zu,\"terms\":%zu,\"in\":\"%s\",\"bound_is\":\"%s\"", p->sums, p->terms,
		p->computed, from[p->bound_is]);
	if (p->bound_is)
		put_named(to, "bound", p->bound);
	if (p->compared)
		put_json_difference(to, &p->sums_differ);
	if (observed->scaled) {
		put_named(to, "plain_rms", observed->plain_error);
		put_named(to, "chosen_rms", observed->chosen_error);
	}
	fputs("}", to);
}

static void put_json_output(FILE *to, const struct quantising *q, size_t i)
{
	const struct accuracy *a = &q->accuracy[i];
	fputs("{\"name\":", to);
	write_json_string(to, esp_program_output(q->objects.program, i)->name);
	put_json_difference(to, esp_calibration_output(q->calibration[1], i));
	if (a->nodes)
		fprintf(to, ",\"labels\":%zu,\"right_f32\":%zu,\"right\":%zu,\"changed\":%zu", a->nodes,
			a->right[0], a->right[1], a->changed);
	fputs("}", to);
}

static void write_as_json(FILE *to, const struct quantising *q)
{
	const esp_product *p;
	fprintf(to, "{\"structures\":%zu,\"nodes\":%zu,\"bytes_before\":%zu,\"bytes\":%zu,\"products\":[", q->structures, q->nodes,
		count_bytes(q->objects.weights), count_written(q));
	for (size_t i = 0; (p = esp_calibration_product(q->calibration[1], i)); i++) {
		fputs(i ? "," : "", to);
		put_json_product(to, p, esp_calibration_product(q->calibration[0], i));
	}
	fputs("],\"outputs\":[", to);
	for (size_t i = 0; i < count_outputs(q); i++) {
		fputs(i ? "," : "", to);
		put_json_output(to, q, i);
	}
	fputs("]}\n", to);
}

void write_quantise_report(FILE *to, const struct quantising *q)
{
	(q->options->format == FORMAT_JSON ? write_as_json : write_as_text)(to, q);
}
