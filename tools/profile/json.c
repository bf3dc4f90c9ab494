/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile as one JSON object. Units are in the names. */
#include "profile.h"

#include "tool.h"

static void put_number(FILE *to, const char *name, double value)
{
	fprintf(to, ",\"%s\":", name);
	write_json_number(to, value);
}

static void put_text(FILE *to, const char *name, const char *value)
{
	fprintf(to, ",\"%s\":", name);
	write_json_string(to, value);
}

static void put_seconds(FILE *to, const char *name, const struct seconds *s)
{
	fprintf(to, ",\"%s\":{\"median\":", name);
	write_json_number(to, s->median * 1e6);
	fputs(",\"least\":", to);
	write_json_number(to, s->least * 1e6);
	fputc('}', to);
}

static void put_head(FILE *to, const struct view *v)
{
	const esp_profile_facts *f = &v->shown->facts;
	fputs("{\"model\":", to);
	write_json_string(to, v->model);
	put_text(to, "sizes", v->sizes);
	put_number(to, "structures", f->structures);
	put_number(to, "nodes", f->nodes);
	put_number(to, "edges", f->edges);
	put_number(to, "leaves", f->leaves);
	put_number(to, "levels", f->levels);
	put_number(to, "threads", v->summary->threads);
	fputs(",\"machine\":", to);
	machine_print_json(v->machine, to);
}

static void put_phases(FILE *to, const struct summary *s)
{
	fprintf(to, ",\"phases_us\":{\"runs\":%d", s->runs);
	put_seconds(to, "linearize", &s->linearize);
	put_seconds(to, "fill", &s->fill);
	put_seconds(to, "run", &s->run);
	put_seconds(to, "whole", &s->whole);
	fputc('}', to);
	put_number(to, "floor_us", s->floor * 1e6);
	put_number(to, "floor_by_time", fraction_of(s->floor, s->run.median));
}

static void put_work(FILE *to, double operations, double bytes, double time)
{
	put_number(to, "operations", operations);
	put_number(to, "weight_bytes", bytes);
	put_number(to, "gflops", giga_per_second(operations, time));
	put_number(to, "gbs", giga_per_second(bytes, time));
}

static void put_cells(FILE *to, const struct view *v, const struct section *s)
{
	fputs(",\"kernels\":[", to);
	for (size_t i = 0; i < s->span.steps; i++) {
		const struct cell *c = &v->summary->cell[s->cell + i];
		fprintf(to, "%s{\"name\":", i ? "," : "");
		write_json_string(to, v->shown->step[s->span.step + i].name);
		put_seconds(to, "time_us", &c->time);
		put_work(to, c->operations, c->bytes, c->time.median);
		fputc('}', to);
	}
	fputc(']', to);
}

static void put_section(FILE *to, const struct view *v, const struct section *s)
{
	char name[48];
	range_name(s->over, s->span.level, name, sizeof name);
	fputs("{\"name\":", to);
	write_json_string(to, name);
	put_text(to, "over", over_word(s->over));
	put_number(to, "level", s->span.level);
	put_number(to, "rows", s->span.rows);
	put_text(to, "split", split_word(s->split));
	put_seconds(to, "time_us", &s->time);
	put_number(to, "wait_us", s->wait * 1e6);
	put_number(to, "floor_us", s->floor * 1e6);
	put_number(to, "floor_alone_us", s->alone * 1e6);
	put_number(to, "floor_by_time", fraction_of(s->floor, s->time.median));
	put_work(to, s->span.operations, s->span.bytes, s->time.median);
	put_cells(to, v, s);
	fputc('}', to);
}

static void put_sections(FILE *to, const struct view *v)
{
	fputs(",\n\"sections\":[", to);
	for (size_t i = 0; i < v->summary->sections; i++) {
		fputs(i ? ",\n" : "\n", to);
		put_section(to, v, &v->summary->section[i]);
	}
	fputc(']', to);
}

static void put_kernel(FILE *to, const esp_step *step, const struct kernel *k)
{
	fputs("{\"name\":", to);
	write_json_string(to, step->name);
	put_text(to, "over", over_word(step->over));
	put_number(to, "operations_a_row", step->operations);
	put_number(to, "blocks", step->blocks);
	put_number(to, "block_bytes", step->block_bytes);
	put_number(to, "tile", step->tile);
	if (step->cycles)
		put_number(to, "cycles_a_row", step->cycles);
	put_number(to, "calls", k->calls);
	put_number(to, "rows", k->rows);
	put_number(to, "time_us", k->time * 1e6);
	put_number(to, "share", k->share);
	put_number(to, "floor_us", k->floor * 1e6);
	put_work(to, k->operations, k->bytes, k->time);
	fputc('}', to);
}

static void put_kernels(FILE *to, const struct view *v)
{
	fputs(",\n\"kernels\":[", to);
	for (size_t i = 0; i < v->summary->steps; i++) {
		fputs(i ? ",\n" : "\n", to);
		put_kernel(to, &v->shown->step[i], &v->summary->kernel[i]);
	}
	fputc(']', to);
}

/* Together with the shares of the kernels they add up to 1. */
static void put_shares(FILE *to, const struct summary *s)
{
	fputs(",\n\"shares\":{\"waiting\":", to);
	write_json_number(to, s->waiting);
	put_number(to, "idle", s->idle);
	fputc('}', to);
}

static void put_threads(FILE *to, const struct summary *s)
{
	fputs(",\n\"per_thread\":[", to);
	for (int i = 0; i < s->threads; i++) {
		const struct thread *t = &s->thread[i];
		fprintf(to, "%s{\"thread\":%d", i ? "," : "", i);
		put_number(to, "busy_us", t->busy * 1e6);
		put_number(to, "wait_us", t->wait * 1e6);
		put_number(to, "idle_us", t->idle * 1e6);
		put_number(to, "shares_of_others", t->taken);
		fputc('}', to);
	}
	fputc(']', to);
}

static void put_widths(FILE *to, const struct summary *s)
{
	const char *comma = "";
	fputs(",\n\"widths\":[", to);
	for (int i = 0; i < WIDTHS; i++) {
		if (!s->width[i].levels)
			continue;
		fprintf(to, "%s{\"most\":%zu", comma, (size_t)1 << i);
		put_number(to, "levels", s->width[i].levels);
		put_number(to, "nodes", s->width[i].nodes);
		put_number(to, "time_us", s->width[i].time * 1e6);
		put_number(to, "floor_us", s->width[i].floor * 1e6);
		fputc('}', to);
		comma = ",";
	}
	fputc(']', to);
}

static void put_memory(FILE *to, const esp_profile_facts *f)
{
	fprintf(
	    to,
	    ",\n\"memory_bytes\":{\"weights\":%llu,\"states\":%llu,\"intermediates\":%llu,\"outputs\":%llu,"
	    "\"data\":%llu,\"index\":%llu,\"code\":%llu}",
	    (unsigned long long)f->weight_bytes, (unsigned long long)f->state_bytes,
	    (unsigned long long)f->scratch_bytes, (unsigned long long)f->output_bytes,
	    (unsigned long long)f->data_bytes, (unsigned long long)f->index_bytes,
	    (unsigned long long)f->code_bytes);
}

void view_json(FILE *to, const struct view *v)
{
	put_head(to, v);
	put_phases(to, v->summary);
	put_sections(to, v);
	put_kernels(to, v);
	put_shares(to, v->summary);
	put_threads(to, v->summary);
	put_widths(to, v->summary);
	put_memory(to, &v->shown->facts);
	put_text(to, "schedule", v->schedule);
	fputs("}\n", to);
}
