/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The budget of tables, which hold what depends on a node's word alone.
 *
 * Rules move look-ups past operators one by one, so the sizes of tables are known only after rewriting.  If
 * the tables together are too large, the look-ups that the largest one was made from are barred from becoming
 * tables, and the program is rewritten again.  Nothing that is computed of a parameter whose products the model declares
 * becomes a table, whatever its size: its products stay products, to be computed as declared. */
#include "rewrite/rule_engine.h"

#include <inttypes.h>

/* The tables of a rewritten program; the flags are by value. */
struct tables {
	const struct sub_program *p;
	const bool *constant;
	bool *counted;
	int64_t bytes;
	uint32_t largest;
	int n;
};

static bool is_look_up(const struct sub_value *v)
{
	for (int d = 0; v->op == SUB_ASSIGN && d < v->arg[0].vars; d++)
		if (v->map[d].function == SUB_TOKEN)
			return true;
	return false;
}

static int64_t table_bytes(const struct sub_program *p, uint32_t i)
{
	const struct sub_value *v = &p->values.at[i];
	double bytes = sub_row_elements(p, v) * dtype_traits_of(v->dtype)->bytes;
	return bytes < 0x1p63 ? (int64_t)bytes : INT64_MAX;
}

/* Counts the tables; all values of a rewritten program are live. */
static void count_tables(struct tables *t)
{
	for (uint32_t i = 1; i < t->p->values.n; i++) {
		const struct sub_value *v = &t->p->values.at[i];
		uint32_t table = v->arg[0].value.i;
		if (!is_look_up(v) || !t->constant[table] || t->counted[table] ||
		    !t->p->values.at[table].args)
			continue;
		t->counted[table] = true;
		t->n++;
		if (__builtin_add_overflow(t->bytes, table_bytes(t->p, table), &t->bytes))
			t->bytes = INT64_MAX;
		if (!t->largest || table_bytes(t->p, table) > table_bytes(t->p, t->largest))
			t->largest = table;
	}
}

/* Bars the parameters that the largest table is made from, if the source program looks up rows of them; false
 * if there is no such parameter left. */
static bool bar_parameters(const struct tables *t, const struct sub_program *from, bool *barred,
			   struct str *names)
{
	bool *within = ARENA_ARRAY(t->p->arena, bool, t->p->values.n), any = false;
	within[t->largest] = true;
	for (uint32_t i = t->largest + 1; i-- > 1;) {
		const struct sub_value *v = &t->p->values.at[i];
		for (int a = 0; within[i] && a < v->args; a++)
			within[v->arg[a].value.i] = true;
		for (uint32_t j = 1; within[i] && v->op == SUB_PARAM && j < from->values.n; j++) {
			const struct sub_value *used = &from->values.at[j];
			if (!is_look_up(used) || barred[v->which] ||
			    sub_at(from, used->arg[0].value)->op != SUB_PARAM ||
			    sub_at(from, used->arg[0].value)->which != v->which)
				continue;
			any = barred[v->which] = true;
			str_printf(names, "%s%s", names->n ? ", " : "", from->params.at[v->which].name);
		}
	}
	return any;
}

static void add_note(struct rewrite_trace *trace, struct arena *a, struct str *s)
{
	if (trace)
		vec_push(a, &trace->notes, str_text(s));
}

bool rewrite_check_tables(const struct sub_program *p, const struct sub_program *from,
			  const struct rewrite_options *options, struct rewrite_trace *trace, bool *barred)
{
	struct tables t = {.p = p, .constant = sub_find_constants(p)};
	struct str s = str_in(p->arena), names = str_in(p->arena);
	t.counted = ARENA_ARRAY(p->arena, bool, p->values.n);
	count_tables(&t);
	if (!t.n)
		return true;
	if (t.bytes <= options->table_bytes || !bar_parameters(&t, from, barred, &names)) {
		str_printf(&s, "tables: %d, of %" PRId64 " bytes; at most %" PRId64 " are allowed", t.n,
			   t.bytes, options->table_bytes);
		add_note(trace, p->arena, &s);
		return true;
	}
	str_printf(&s,
		   "tables: %" PRId64 " bytes would be more than the %" PRId64
		   " allowed, so look-ups in %s stay: the table from it would have %" PRId64,
		   t.bytes, options->table_bytes, str_text(&names), table_bytes(p, t.largest));
	add_note(trace, p->arena, &s);
	return false;
}
