/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Bounds of the errors that products in integers, f16 and bf16 make, for structures of some heights, as text and as JSON. */
#include "compile/compilation.h"
#include "compile/explain.h"

#include <math.h>

static const int heights[] = {0, 1, 2, 4, 8, 16, REWRITE_ANY_HEIGHT};
static const int edges[] = {2, 8}; /* of a node that may have any number */

enum { HEIGHTS = sizeof heights / sizeof *heights, EDGES = sizeof edges / sizeof *edges };

struct report {
	const struct sub_program *p;
	struct rewrite_bounding *bounding;
	struct rewrite_errors errors[HEIGHTS]; /* for the current number of edges */
	int heights, edges;		       /* that differ: 1 where a model has no recursion, or no open number */
	struct str *s;
};

/* --- what is bounded --- */

static bool has_recursion(const struct sub_program *p)
{
	bool any = false;
	for (size_t i = 0; i < p->bodies.n; i++)
		any |= p->bodies.at[i].domain == SUB_INNER || p->bodies.at[i].domain == SUB_BELOW;
	return any;
}

/* Whether a node may have any number of the edges that a traversal follows. */
static bool has_open_edges(const struct sub_program *p)
{
	bool open = false;
	for (size_t t = 0; t < p->traversals.n; t++)
		open |= p->traversals.at[t].down ? !p->tree : p->children < 0;
	return open && has_recursion(p);
}

static bool bound_heights(struct report *r, int edges)
{
	bool ok = true;
	for (int i = 0; i < r->heights && i < HEIGHTS && ok; i++)
		ok = rewrite_bound_errors(r->bounding, (struct rewrite_extent){heights[i], edges}, &r->errors[i]);
	return ok;
}

/* --- as text --- */

static void put_row(struct report *r, const char *what, const char *name, bool output, size_t number)
{
	struct str label = str_in(r->s->arena);
	str_printf(&label, "%s %s", what, name);
	str_printf(r->s, "%-24s", str_text(&label));
	for (int i = 0; i < r->heights; i++) {
		double most = (output ? r->errors[i].output : r->errors[i].state)[number];
		if (isfinite(most))
			str_printf(r->s, "  %8.2g", most);
		else
			str_printf(r->s, "  %8s", "-");
	}
	str_puts(r->s, "\n");
}

static void put_heading(struct report *r, int edges)
{
	str_puts(r->s, "\nlargest difference from f32, without its rounding");
	if (r->edges > 1)
		str_printf(r->s, ", where the model allows any number of edges with at most %d of a node", edges);
	if (r->heights > 1)
		str_printf(r->s, "\n%-24s", "of structures of height");
	for (int i = 0; i < r->heights && r->heights > 1; i++)
		if (heights[i] == REWRITE_ANY_HEIGHT)
			str_printf(r->s, "  %8s", "any");
		else
			str_printf(r->s, "  %8d", heights[i]);
	str_puts(r->s, "\n");
}

static void put_table(struct report *r, int edges)
{
	const char *why = NULL;
	put_heading(r, edges);
	for (size_t i = 0; i < r->p->states.n; i++)
		put_row(r, "state", r->p->states.at[i].name, false, i);
	for (size_t i = 0; i < r->p->outputs.n; i++)
		put_row(r, "output", r->p->outputs.at[i].row.name, true, i);
	for (int i = 0; i < r->heights && !why; i++)
		why = r->errors[i].unbounded;
	if (why)
		str_printf(r->s, "an output has no bound (-): %s\n", why);
}

static void put_sums(struct report *r)
{
	struct rewrite_sum_error e;
	for (int i = 0; rewrite_bound_sum(r->bounding, i, &e); i++) {
		str_printf(r->s, "%ssums with %s ", i ? "" : "\n", e.weights);
		if (isfinite(e.most))
			str_printf(r->s, "change by at most %.2g%s\n", e.most, e.per_edge ? " for each edge" : "");
		else
			str_puts(r->s, "change by what has no bound\n");
	}
}

/* --- as JSON --- */

static void put_number(double x, struct str *s)
{
	if (isfinite(x))
		str_double(s, x);
	else
		str_puts(s, "null");
}

static void put_members(struct report *r, int height, struct str *s)
{
	const struct rewrite_errors *e = &r->errors[height];
	str_puts(s, "\"states\":{");
	for (size_t i = 0; i < r->p->states.n; i++) {
		str_printf(s, "%s\"%s\":", i ? "," : "", r->p->states.at[i].name);
		put_number(e->state[i], s);
	}
	str_puts(s, "},\"outputs\":{");
	for (size_t i = 0; i < r->p->outputs.n; i++) {
		str_printf(s, "%s\"%s\":", i ? "," : "", r->p->outputs.at[i].row.name);
		put_number(e->output[i], s);
	}
	str_puts(s, "},\"unbounded\":");
	if (e->unbounded)
		str_json(s, e->unbounded);
	else
		str_puts(s, "null");
}

static void put_json(struct report *r, bool first, int edges)
{
	for (int i = 0; i < r->heights; i++) {
		str_puts(r->s, first && !i ? "{\"height\":" : ",{\"height\":");
		put_number(heights[i] == REWRITE_ANY_HEIGHT || r->heights == 1 ? INFINITY : heights[i], r->s);
		str_puts(r->s, ",\"edges\":");
		put_number(r->edges > 1 ? edges : INFINITY, r->s);
		str_puts(r->s, ",");
		put_members(r, i, r->s);
		str_puts(r->s, "}");
	}
}

/* --- the report --- */

static bool put_report(struct report *r, bool json)
{
	bool ok = true;
	for (int i = 0; i < r->edges && i < EDGES && ok; i++) {
		ok = bound_heights(r, edges[i]);
		if (ok && json)
			put_json(r, i == 0, edges[i]);
		else if (ok)
			put_table(r, edges[i]);
	}
	return ok;
}

bool explain_errors(struct arena *a, struct diags *diags, const struct ra_model *model, const int64_t *sizes,
		    const struct compile_options *options, const struct rewrite_weights *weights, bool json,
		    struct str *s)
{
	struct compilation c = {.arena = a, .diags = diags, .model = model, .sizes = sizes, .options = options};
	struct rewrite_options rewriting = compile_rewrite_options(options);
	if (!compile_to_written(&c) || !compile_run_program_passes(&c, "contract"))
		return false;
	struct report r = {.p = c.latest,
			   .bounding = rewrite_begin_bounding(c.latest, &rewriting, weights, a, diags),
			   .heights = has_recursion(c.latest) ? HEIGHTS : 1,
			   .edges = has_open_edges(c.latest) ? EDGES : 1,
			   .s = s};
	if (!json)
		put_sums(&r);
	return put_report(&r, json);
}
