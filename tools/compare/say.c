/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes the findings as text. */
#include "compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void say_element(FILE *to, const struct quantity *q, size_t element)
{
	size_t stride = q->elements;
	fputs(q->name, to);
	for (size_t d = 0; d < q->rank; d++) {
		stride /= q->shape[d];
		fprintf(to, "%s%zu", d ? "," : "[", element / stride % q->shape[d]);
	}
	if (q->rank)
		fputc(']', to);
}

/* Writes NaN without its sign. */
static void say_value(FILE *to, double value)
{
	if (isnan(value))
		fputs("nan", to);
	else
		fprintf(to, "%.9g", value);
}

static void say_values(FILE *to, const struct pair *p, const struct spot *at)
{
	uint64_t steps = count_ulps(at->ours, at->theirs);
	say_element(to, &p->quantity, at->element);
	fputs(" is ", to);
	say_value(to, at->ours);
	fputs(", in the reference ", to);
	say_value(to, at->theirs);
	if (steps < 100000)
		fprintf(to, " (%" PRIu64 " ulp)", steps);
}

/* The model may declare precisions, and quantised weights come with one, so they are named together where there is no option. */
static void say_bound(FILE *to, const struct comparison *c, const struct pair *p)
{
	const char *precision = c->options->precision && strcmp(c->options->precision, "f32") != 0
				    ? c->options->precision
				    : "the precisions that the model and the weights ask for";
	if (p->bounded && isfinite(p->bound))
		fprintf(to, "    products in %s may take it at most %.2g from f32\n", precision, p->bound);
	else if (p->bounded)
		fprintf(to, "    nothing bounds how far products in %s may take it from f32\n", precision);
}

static void say_pair(FILE *to, const struct pair *p)
{
	fprintf(to, "%s %s: %zu %s of %zu tree%s, %zu values: ", kind_of(&p->quantity), p->quantity.name,
		p->rows, p->roots ? "roots" : "nodes", p->trees, p->trees == 1 ? "" : "s", p->values);
	if (p->beyond)
		fprintf(to, "%zu beyond the tolerance, ", p->beyond);
	if (p->absolute <= 0) {
		fputs("the same\n", to);
		return;
	}
	fprintf(to, "largest difference %.3g\n    at tree %zu, node %zu: ", p->absolute, p->largest.tree,
		p->largest.node);
	say_values(to, p, &p->largest);
	fputc('\n', to);
}

/* --- what was not compared --- */

static void say_names(FILE *to, const char *before, size_t n, const char *name)
{
	fprintf(to, "%s%s", n ? ", " : before, name);
}

static void say_missing(FILE *to, const struct comparison *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->quantities; i++)
		if (!is_compared(c, &c->quantity[i]) && !c->options->tensor)
			say_names(to, "not in the reference: ", n++, c->quantity[i].name);
	if (n)
		fputc('\n', to);
	n = 0;
	for (size_t i = 0; i < c->ignored_n; i++)
		say_names(to, "neither states, outputs nor comparable locals of the model: ", n++,
			  c->ignored[i]);
	if (n)
		fputc('\n', to);
}

static void say_classes(FILE *to, const struct comparison *c)
{
	if (c->classes)
		fprintf(to, "classes of the roots: %zu of %zu differ\n", c->classes_beyond, c->classes);
}

/* --- the first difference --- */

static void say_node(FILE *to, const struct finding *f)
{
	bool down = f->pair->quantity.down;
	fprintf(to, "\nfirst difference, %s: tree %zu, node %zu, ",
		down ? "parents before their children" : "leaves before their parents", f->place->tree,
		f->place->node);
	if (!f->place->level)
		fputs(down ? "without a parent: " : "a leaf: ", to);
	else
		fprintf(to, "%s %zu: ", down ? "depth" : "height", f->place->level);
	write_words(to, f->words, f->length);
	fputs("\n    ", to);
	say_values(to, f->pair, f->place);
	fprintf(to, "; %zu of %zu values of this row are beyond\n", f->pair->first_beyond,
		f->pair->quantity.elements);
}

static void say_statement(FILE *to, const struct comparison *c, const struct finding *f)
{
	if (f->statement)
		fprintf(to, "    computed by %s:%d: %s\n", c->model, f->line, f->statement);
}

/* Lists tensors that agree at the nodes that the node reads: were one of them to differ, the first
 * difference would be there. */
static void say_neighbours(FILE *to, const struct comparison *c, const struct finding *f)
{
	const char *before = f->pair->quantity.down ? "    its parents agree in " : "    its children agree in ";
	size_t n = 0, position = 0;
	int32_t node;
	for (size_t i = 0; i < c->pairs; i++) {
		const struct pair *p = &c->pair[i];
		if (!p->roots && p->trees > f->place->tree && f->place->level && !p->quantity.is_local &&
		    agrees_before(p, f->place))
			say_names(to, before, n++, p->quantity.name);
	}
	if (!n)
		return;
	for (const char *and = ": nodes "; (node = next_neighbour(f, &position)) >= 0; and = ", ")
		fprintf(to, "%s%d", and, node);
	fputc('\n', to);
}

static void say_others(FILE *to, const struct comparison *c, const struct finding *f, bool differ,
		       const char *before)
{
	size_t n = 0;
	for (size_t i = 0; i < c->pairs; i++) {
		const struct pair *p = &c->pair[i];
		if (p != f->pair && agrees_before(p, f->place) && has_node(c, p, f->place) &&
		    differs_at(p, f->place) == differ)
			say_names(to, before, n++, p->quantity.name);
	}
	if (n)
		fputc('\n', to);
}

/* Lists states that the reference lacks: the fault may be in one of them rather than in the output that
 * differs. */
static void say_unknown(FILE *to, const struct comparison *c, const struct finding *f)
{
	size_t n = 0;
	for (size_t i = 0; i < c->quantities && !f->pair->quantity.is_state; i++)
		if (c->quantity[i].is_state && !is_compared(c, &c->quantity[i]))
			say_names(to, "    or by what this reference does not show: ", n++,
				  c->quantity[i].name);
	if (n)
		fputc('\n', to);
}

static void say_first(FILE *to, struct comparison *c)
{
	struct finding f;
	if (!find_first(c, &f))
		return;
	say_node(to, &f);
	say_statement(to, c, &f);
	say_unknown(to, c, &f);
	say_neighbours(to, c, &f);
	say_others(to, c, &f, false, "    agree at this node: ");
	say_others(to, c, &f, true, "    differ at this node too: ");
}

static void say_verdict(FILE *to, const struct comparison *c)
{
	size_t beyond = 0;
	for (size_t i = 0; i < c->pairs; i++)
		beyond += c->pair[i].beyond;
	if (is_equal(c))
		fputs("equal: no value is", to);
	else
		fprintf(to, "different: %zu value%s", beyond, beyond == 1 ? " is" : "s are");
	fprintf(to, " farther than %g + %g * |reference| from the reference\n", c->options->atol,
		c->options->rtol);
}

void say_text(struct comparison *c, FILE *to)
{
	if (c->covered < c->trees.n)
		fprintf(to, "the reference has the first %zu of %zu trees\n", c->covered, c->trees.n);
	for (size_t i = 0; i < c->pairs; i++) {
		say_pair(to, &c->pair[i]);
		say_bound(to, c, &c->pair[i]);
	}
	say_classes(to, c);
	say_missing(to, c);
	say_first(to, c);
	say_verdict(to, c);
}
