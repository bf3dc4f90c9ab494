/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What rewriting made of a program: the model is lowered and planned twice, as it was written and as the
 * options have it, and the two are counted side by side. */
#include "compile/explain.h"

#include "compile/program_passes.h"

const struct explain_column explain_columns[EXPLAIN_COUNTS] = {
    [EXPLAIN_SUB_OPS] = {"sub-ops", "sub_ops", "sub-operators of the body"},
    [EXPLAIN_REDUCTIONS] = {"reductions", "reductions", "of these, sums and maxima"},
    [EXPLAIN_OPERATIONS] =
	{"  operations", "operations",
	 "multiplications and additions for one node, estimated; at binding for all rows, in a scan for all "
	 "steps"},
    [EXPLAIN_BYTES] = {"    bytes", "bytes",
		       "read and written for one node alone, at binding for all rows, in a scan for all "
		       "steps: states, inputs, "
		       "rows of tables, intermediates, results"},
    [EXPLAIN_WEIGHTS] = {"    weights", "weight_bytes",
			 "bytes of weights, which the nodes of a level, or of a step of a scan, share"},
    [EXPLAIN_GROUPS] = {"groups", "groups", "loop nests"},
    [EXPLAIN_BARRIERS] = {"barriers", "barriers",
			  "of a level, or of a step: groups, one after the other, that wait for all threads"},
    [EXPLAIN_STORED] = {"stored", "stored", "intermediates that go through memory"},
};

/* --- counting --- */

/* The rows of a body at binding; 1 for other bodies, which are counted per row, and for calls. */
static double rows_of(const struct sub_program *p, const struct sub_body *b)
{
	const struct sub_value *v = b->stores.n ? sub_at(p, b->stores.at[0].value.value) : NULL;
	const struct sub_var *leading = v && v->vars ? &p->vars.at[v->var[0]] : NULL;
	return leading && leading->set == SUB_ROW ? leading->extent : 1;
}

static void count_sub_ops(const struct sub_program *p, const struct sub_body *b, double *count)
{
	bool *live = ARENA_ARRAY(p->arena, bool, p->values.n);
	sub_mark_live(p, b, live);
	for (uint32_t i = 1; i < p->values.n; i++) {
		enum sub_class class = sub_class_of(p->values.at[i].op);
		count[EXPLAIN_SUB_OPS] += live[i] && class != SUB_SOURCE;
		count[EXPLAIN_REDUCTIONS] += live[i] && sub_reduces(p->values.at[i].op);
	}
}

static void count_bytes(const struct sched_plan *plan, int body, double times, double *count)
{
	struct sched_bytes bytes = sched_bytes_of(plan, body);
	count[EXPLAIN_BYTES] += times * (bytes.states + bytes.inputs + bytes.stored + bytes.outputs);
	count[EXPLAIN_WEIGHTS] += bytes.weights;
}

static void count_groups(const struct sched_plan *plan, int body, double *count)
{
	struct sched_counts c = sched_count(plan, body);
	count[EXPLAIN_GROUPS] += c.groups;
	count[EXPLAIN_BARRIERS] += c.supersteps;
	count[EXPLAIN_STORED] += c.stored;
}

static void count_body(const struct sched_plan *plan, int body, double *count)
{
	const struct sub_body *b = &plan->p->bodies.at[body];
	double times = rows_of(plan->p, b) * sub_runs_per_row(plan->p, b);
	count_sub_ops(plan->p, b, count);
	count_bytes(plan, body, times, count);
	count_groups(plan, body, count);
	count[EXPLAIN_OPERATIONS] += times * sched_operations(plan->p, b);
}

static const struct {
	const char *name;
	enum sub_domain domain;
} domains[] = {{"binding", SUB_AT_BINDING},
	       {"hoist", SUB_AHEAD},
	       {"hoist.inner", SUB_AHEAD_INNER},
	       {"leaf", SUB_LEAF},
	       {"inner", SUB_INNER},
	       {"root", SUB_TOP},
	       {"below", SUB_BELOW},
	       {"first", SUB_FIRST_STEP},
	       {"next", SUB_NEXT_STEPS},
	       {"output", SUB_EVERY_NODE},
	       {"output.root", SUB_EVERY_INPUT}};

const char *explain_domain(int domain)
{
	return domain < (int)(sizeof domains / sizeof *domains) ? domains[domain].name : NULL;
}

bool explain_count(const struct sched_plan *plan, int domain, double count[EXPLAIN_COUNTS])
{
	bool any = false;
	memset(count, 0, EXPLAIN_COUNTS * sizeof *count);
	for (size_t b = 0; b < plan->p->bodies.n; b++)
		if (plan->p->bodies.at[b].domain == domains[domain].domain) {
			count_body(plan, b, count);
			any = true;
		}
	return any;
}

/* --- the two programs --- */

struct explanation {
	const struct ra_model *model;
	const int64_t *sizes;
	const struct compile_options *options;
	struct sub_program written, computed;
	struct sched_plan written_plan, computed_plan;
	struct rewrite_trace trace;
	struct explain_calls calls;
	const char *errors; /* the bounds of errors as text; NULL = there are none */
	struct str *s;
};

/* The applications of a rule, and what they saved. */
struct applied {
	const char *rule;
	int times;
	double saved;
};

typedef VEC(struct applied) applied_list;

/* Sums up the applications of each rule, in the order of their first ones. */
static applied_list sum_up(const struct rewrite_trace *t, struct arena *a)
{
	applied_list list = {0};
	for (size_t i = 0; i < t->changes.n; i++) {
		const struct rewrite_change *c = &t->changes.at[i];
		size_t k = 0;
		while (k < list.n && strcmp(list.at[k].rule, c->rule) != 0)
			k++;
		if (k == list.n)
			vec_push(a, &list, (struct applied){.rule = c->rule});
		list.at[k].times++;
		list.at[k].saved += c->saved;
	}
	return list;
}

/* --- as text --- */

enum { NAME_WIDTH = 24 };

static void put_row(const char *body, const char *what, const double *count, struct str *s)
{
	str_printf(s, "%-12s %-*s", body, NAME_WIDTH - 12, what);
	for (int c = 0; c < EXPLAIN_COUNTS; c++)
		str_printf(s, "  %*.0f", (int)strlen(explain_columns[c].heading), count[c]);
	str_puts(s, "\n");
}

/* The savings in a body that exists before and after rewriting; false when no count changed. */
static bool saved_of(const double *written, const double *computed, double *saved)
{
	bool any = false;
	for (int c = 0; c < EXPLAIN_COUNTS; c++) {
		saved[c] = written[c] - computed[c];
		any |= saved[c] != 0;
	}
	return any;
}

static void put_body(struct explanation *e, int domain)
{
	double written[EXPLAIN_COUNTS], computed[EXPLAIN_COUNTS], saved[EXPLAIN_COUNTS];
	const char *name = explain_domain(domain);
	bool before = explain_count(&e->written_plan, domain, written);
	bool after = explain_count(&e->computed_plan, domain, computed);
	if (before)
		put_row(name, "as written", written, e->s);
	if (after)
		put_row(before ? "" : name, "as computed", computed, e->s);
	if (before && after && saved_of(written, computed, saved))
		put_row("", "saved", saved, e->s);
}

static void put_bodies(struct explanation *e)
{
	str_printf(e->s, "%-*s ", NAME_WIDTH, "");
	for (int c = 0; c < EXPLAIN_COUNTS; c++)
		str_printf(e->s, "  %s", explain_columns[c].heading);
	str_puts(e->s, "\n");
	for (int d = 0; explain_domain(d); d++)
		put_body(e, d);
}

static void put_legend(struct str *s)
{
	str_printf(s, "\n%-12s%s\n", "saved", "as written less as computed; no line where both are the same");
	for (int c = 0; c < EXPLAIN_COUNTS; c++) {
		const char *heading = explain_columns[c].heading;
		str_printf(s, "%-12s%s\n", heading + strspn(heading, " "), explain_columns[c].meaning);
	}
}

static void put_rules(struct explanation *e)
{
	applied_list list = sum_up(&e->trace, e->s->arena);
	if (list.n)
		str_printf(e->s, "\n%-*s %7s  %s\n", NAME_WIDTH, "rule", "times",
			   "saved (operations of a row; moving an element counts as a quarter)");
	else
		str_puts(e->s, "\nno rule was applied\n");
	for (size_t i = 0; i < list.n; i++)
		str_printf(e->s, "%-*s %7d  %.0f\n", NAME_WIDTH, list.at[i].rule, list.at[i].times,
			   list.at[i].saved);
	for (size_t i = 0; i < e->trace.notes.n; i++)
		str_printf(e->s, "%s%s\n", i ? "" : "\n", e->trace.notes.at[i]);
}

static void put_families(unsigned off, struct str *s)
{
	if (!off)
		str_puts(s, "all rules");
	for (int f = 0, any = 0; off && rewrite_family_spelling(f); f++)
		if (off >> f & 1)
			str_printf(s, "%s%s", any++ ? ", " : "rules but for ", rewrite_family_spelling(f));
}

/* The first line: the model, the options of rewriting, the sizes. */
static void put_subject(struct explanation *e)
{
	str_printf(e->s, "%s, math %s, ", e->model->name, rewrite_math_spelling(e->options->math));
	put_families(e->options->rules_off, e->s);
	if (e->options->weights_as != DTYPE_F32)
		str_printf(e->s, ", weights as %s", dtype_traits_of(e->options->weights_as)->spelling);
	if (e->options->precision != PRECISION_F32)
		str_printf(e->s, ", products in %s", precision_traits_of(e->options->precision)->spelling);
	if (e->options->finite)
		str_puts(e->s, ", finite numbers");
	for (size_t i = 0; i < e->model->symbols.n; i++)
		str_printf(e->s, ", %s = %lld", e->model->symbols.at[i].name, (long long)e->sizes[i]);
	str_puts(e->s, "\n\n");
}

static void put_layers(struct explanation *e)
{
	put_subject(e);
	explain_put_layers(e->model, &e->computed_plan, e->s);
}

static void put_text(struct explanation *e)
{
	put_subject(e);
	put_bodies(e);
	put_rules(e);
	str_puts(e->s, e->errors ? e->errors : "");
	explain_put_calls(&e->calls, e->s);
	put_legend(e->s);
}

/* --- as JSON --- */

static void put_counts(bool any, const double *count, struct str *s)
{
	if (!any) {
		str_puts(s, "null");
		return;
	}
	for (int c = 0; c < EXPLAIN_COUNTS; c++)
		str_printf(s, "%s\"%s\":%.0f", c ? "," : "{", explain_columns[c].key, count[c]);
	str_puts(s, "}");
}

static void put_json_bodies(struct explanation *e)
{
	for (int d = 0; explain_domain(d); d++) {
		double written[EXPLAIN_COUNTS], computed[EXPLAIN_COUNTS], saved[EXPLAIN_COUNTS];
		bool before = explain_count(&e->written_plan, d, written);
		bool after = explain_count(&e->computed_plan, d, computed);
		str_printf(e->s, "%s{\"name\":\"%s\",\"written\":", d ? "," : "", explain_domain(d));
		put_counts(before, written, e->s);
		str_puts(e->s, ",\"computed\":");
		put_counts(after, computed, e->s);
		str_puts(e->s, ",\"saved\":");
		saved_of(written, computed, saved);
		put_counts(before && after, saved, e->s);
		str_puts(e->s, "}");
	}
}

static void put_json_rules(struct explanation *e)
{
	applied_list list = sum_up(&e->trace, e->s->arena);
	for (size_t i = 0; i < list.n; i++) {
		str_puts(e->s, i ? ",{\"name\":" : "{\"name\":");
		str_json(e->s, list.at[i].rule);
		str_printf(e->s, ",\"times\":%d,\"saved\":", list.at[i].times);
		str_double(e->s, list.at[i].saved);
		str_puts(e->s, "}");
	}
}

static void put_json(struct explanation *e)
{
	str_puts(e->s, "{\"model\":");
	str_json(e->s, e->model->name);
	str_printf(e->s, ",\"math\":\"%s\",\"rules_off\":[", rewrite_math_spelling(e->options->math));
	for (int f = 0, any = 0; rewrite_family_spelling(f); f++)
		if (e->options->rules_off >> f & 1)
			str_printf(e->s, "%s\"%s\"", any++ ? "," : "", rewrite_family_spelling(f));
	str_printf(e->s, "],\"assume\":\"%s\",\"weights_as\":\"%s\",\"precision\":\"%s\",\"bodies\":[",
		   e->options->finite ? "finite" : "nothing",
		   dtype_traits_of(e->options->weights_as)->spelling,
		   precision_traits_of(e->options->precision)->spelling);
	put_json_bodies(e);
	str_puts(e->s, "],\"rules\":[");
	put_json_rules(e);
	str_puts(e->s, "],\"notes\":[");
	for (size_t i = 0; i < e->trace.notes.n; i++) {
		str_puts(e->s, i ? "," : "");
		str_json(e->s, e->trace.notes.at[i]);
	}
	str_printf(e->s, "],\"errors\":%s%s%s,\"layers\":", e->errors ? "[" : "",
		   e->errors ? e->errors : "null", e->errors ? "]" : "");
	explain_put_json_layers(e->model, &e->computed_plan, e->s);
	str_puts(e->s, ",\"accelerator\":");
	explain_put_json_calls(&e->calls, e->s);
	str_puts(e->s, "}\n");
}

/* Appends lines that disable moves; of several lines of a directive the last one holds. */
static const char *disable_moves(struct arena *a, const char *schedule)
{
	struct str s = str_in(a);
	str_printf(&s, "%s\nrefactor off\nhoist off\nmutate off\n", schedule);
	return s.text;
}

/* Finds bounds of errors where there are any; false after diagnostics. */
static bool find_errors(struct explanation *e, struct diags *diags, const struct rewrite_weights *weights,
			enum explain_form form)
{
	struct str s = str_in(e->s->arena);
	if (!weights || form == EXPLAIN_LAYERS || !compile_has_integers(e->model, e->options))
		return true;
	bool ok =
	    explain_errors(s.arena, diags, e->model, e->sizes, e->options, weights, form == EXPLAIN_JSON, &s);
	e->errors = str_text(&s);
	return ok;
}

bool compile_explain(struct arena *a, struct diags *diags, const struct ra_model *model, const int64_t *sizes,
		     const struct compile_options *options, const struct rewrite_weights *weights,
		     enum explain_form form, struct str *s)
{
	struct explanation e = {.model = model, .sizes = sizes, .options = options, .s = s};
	struct compile_options as_written = *options;
	as_written.rules_off = (1u << REWRITE_FAMILIES) - 1;
	as_written.schedule = disable_moves(a, options->schedule);
	if (!compile_plan(a, diags, model, sizes, &as_written, &e.written, &e.written_plan, NULL) ||
	    !compile_plan(a, diags, model, sizes, options, &e.computed, &e.computed_plan, &e.trace) ||
	    !explain_find_calls(a, diags, &e.computed, &e.calls) || !find_errors(&e, diags, weights, form))
		return false;
	static void (*const put[])(struct explanation *) = {
	    [EXPLAIN_TEXT] = put_text, [EXPLAIN_JSON] = put_json, [EXPLAIN_LAYERS] = put_layers};
	put[form](&e);
	return true;
}
