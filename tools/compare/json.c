/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes the findings as one JSON object. */
#include "compare/compare.h"

#include <inttypes.h>

static void put_place(FILE *to, const struct spot *at)
{
	fprintf(to, "\"tree\":%zu,\"node\":%zu,\"element\":%zu,\"ours\":", at->tree, at->node, at->element);
	write_json_number(to, at->ours);
	fputs(",\"theirs\":", to);
	write_json_number(to, at->theirs);
	if (count_ulps(at->ours, at->theirs) != UINT64_MAX)
		fprintf(to, ",\"ulp\":%" PRIu64, count_ulps(at->ours, at->theirs));
}

static void put_pair(FILE *to, const struct pair *p)
{
	fputs("{\"name\":", to);
	write_json_string(to, p->quantity.name);
	fprintf(to, ",\"kind\":\"%s\",\"at\":\"%s\",\"trees\":%zu,\"rows\":%zu,\"values\":%zu,\"beyond\":%zu",
		kind_of(&p->quantity), p->roots ? "root" : "all", p->trees, p->rows, p->values, p->beyond);
	fputs(",\"largest\":{\"difference\":", to);
	write_json_number(to, p->absolute);
	fputc(',', to);
	put_place(to, &p->largest);
	fputc('}', to);
	if (p->bounded) {
		fputs(",\"bound\":", to);
		write_json_number(to, p->bound);
	}
	fputc('}', to);
}

static void put_name(FILE *to, size_t n, const char *name)
{
	if (n)
		fputc(',', to);
	write_json_string(to, name);
}

static void put_names(FILE *to, const struct comparison *c)
{
	size_t n = 0;
	fputs("],\"missing\":[", to);
	for (size_t i = 0; i < c->quantities; i++)
		if (!is_compared(c, &c->quantity[i]))
			put_name(to, n++, c->quantity[i].name);
	fputs("],\"unknown\":[", to);
	for (size_t i = 0; i < c->ignored_n; i++)
		put_name(to, i, c->ignored[i]);
	fputc(']', to);
}

/* Writes the nodes that the node reads: its children or, in a traversal down, its parents. */
static void put_neighbours(FILE *to, const struct finding *f)
{
	int32_t node;
	size_t position = 0;
	fprintf(to, ",\"%s\":[", f->pair->quantity.down ? "parents" : "children");
	for (const char *and = ""; (node = next_neighbour(f, &position)) >= 0; and = ",")
		fprintf(to, "%s%d", and, node);
	fputc(']', to);
}

static void put_also(FILE *to, const struct comparison *c, const struct finding *f)
{
	size_t n = 0;
	fputs(",\"also\":[", to);
	for (size_t i = 0; i < c->pairs; i++)
		if (&c->pair[i] != f->pair && differs_at(&c->pair[i], f->place))
			put_name(to, n++, c->pair[i].quantity.name);
	fputc(']', to);
}

static void put_statement(FILE *to, const struct comparison *c, const struct finding *f)
{
	if (!f->statement)
		return;
	fputs(",\"file\":", to);
	write_json_string(to, c->model);
	fprintf(to, ",\"line\":%d,\"statement\":", f->line);
	write_json_string(to, f->statement);
}

static void put_first(FILE *to, struct comparison *c)
{
	struct finding f;
	if (!find_first(c, &f))
		return;
	fputs(",\"first\":{\"name\":", to);
	write_json_string(to, f.pair->quantity.name);
	fputc(',', to);
	put_place(to, f.place);
	fprintf(to, ",\"%s\":%zu,\"beyond\":%zu", f.pair->quantity.down ? "depth" : "height", f.place->level,
		f.pair->first_beyond);
	put_statement(to, c, &f);
	put_neighbours(to, &f);
	put_also(to, c, &f);
	fputc('}', to);
}

void say_json(struct comparison *c, FILE *to)
{
	fprintf(to, "{\"equal\":%s,\"atol\":%g,\"rtol\":%g,\"form\":", is_equal(c) ? "true" : "false",
		c->options->atol, c->options->rtol);
	write_json_string(to, reference_form_name(&c->reference));
	fprintf(to, ",\"trees\":%zu,\"compared\":%zu,\"tensors\":[", c->trees.n, c->covered);
	for (size_t i = 0; i < c->pairs; i++) {
		if (i)
			fputc(',', to);
		put_pair(to, &c->pair[i]);
	}
	put_names(to, c);
	if (c->classes)
		fprintf(to, ",\"classes\":{\"compared\":%zu,\"beyond\":%zu}", c->classes, c->classes_beyond);
	put_first(to, c);
	fputs("}\n", to);
}
