/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The rewrite engine.
 *
 * Each body is rewritten by itself, from the sources up: first the arguments of a value, then the value by
 * every rule, then its replacement, until no rule applies; no application is undone later.  New values in a
 * replacement are settled in the same way before the replacement is.  Sweeps are repeated until one changes
 * nothing, because a value with several users may have become one with a single user.
 *
 * A rule is applied on trial: the uses of a value become uses of its replacement, and if the measure is not
 * lower then, they are returned.  So each application lowers the measure of the body, which is bounded from
 * below, and rebuilding a value on replaced arguments never raises it: rewriting ends. */
#include "rewrite/rule_engine.h"

/* The rules that may apply at one operator, in the order of the table. */
struct rules {
	VEC(const struct rewrite_parsed *) all;
};

enum { ROUNDS = 2 }; /* the most rounds of sweeps that begin by trying rules at all values */

struct optimizer {
	struct rewriter w;
	struct rules *rules; /* by operator */
	const struct sub_program *from;
	struct sub_program *to;
	VEC(uint32_t) stack;
};

/* --- rules --- */

static bool admits_exactness(enum rewrite_math math, enum rewrite_exactness exactness)
{
	return exactness == REWRITE_BITS || math == REWRITE_FAST ||
	       (math == REWRITE_REASSOCIATE && exactness == REWRITE_ROUNDING);
}

static bool may_root(const struct rewrite_term *t, enum sub_op op)
{
	return t->kind == REWRITE_TERM_MOVE    ? op == SUB_ASSIGN
	       : t->kind == REWRITE_TERM_CLASS ? sub_class_of(op) == t->class
					       : t->kind == REWRITE_TERM_OP && t->op == op;
}

static void prepare_rules(struct optimizer *o)
{
	const struct rewrite_options *options = o->w.options;
	o->rules = ARENA_ARRAY(o->w.arena, struct rules, sub_op_count);
	for (int i = 0; i < rewrite_rule_count; i++) {
		const struct rewrite_rule *rule = &rewrite_rules[i];
		bool floats = admits_exactness(options->math, rule->exactness);
		if ((!floats && rule->types == REWRITE_FLOATS) || options->off & 1u << rule->family)
			continue;
		struct rewrite_parsed *parsed = rewrite_parse_rule(o->w.arena, rule, NULL);
		if (parsed)
			parsed->floats = floats;
		for (int op = 0; parsed && op < sub_op_count; op++)
			if (may_root(parsed->pattern, op))
				vec_push(o->w.arena, &o->rules[op].all, parsed);
	}
}

/* --- one application --- */

static void restore_touched(struct rewriter *w)
{
	for (size_t i = w->touched.n; i-- > 0;)
		w->notes.at[w->touched.at[i].value].touched = w->touched.at[i].touched;
}

/* Replaces a value by the one rebuilt from it.  Rules are tried at its users again only if the new value
 * existed before, or had been replaced. */
static void substitute_rebuilt(struct rewriter *w, sub_ref old, sub_ref new)
{
	bool merges = rewrite_note_of(w, new)->uses > 0 || w->met_replaced;
	w->trial = true;
	w->touched.n = 0;
	w->clock++;
	rewrite_transfer_uses(w, old, new);
	w->notes.at[old.i].forward = new.i;
	w->trial = false;
	if (merges)
		return;
	restore_touched(w);
	w->notes.at[new.i].touched = w->notes.at[old.i].touched;
	w->notes.at[new.i].tried = w->notes.at[old.i].tried;
}

/* Replaces a value if that lowers the measure; otherwise returns false and changes nothing. */
static bool replace_value(struct rewriter *w, sub_ref from, sub_ref to)
{
	struct rewrite_measure before = w->measure;
	int uses = rewrite_note_of(w, from)->uses;
	w->trial = true;
	w->touched.n = 0;
	w->clock++;
	rewrite_note_of(w, to);
	rewrite_transfer_uses(w, from, to);
	if (rewrite_is_lower(w->measure, before)) {
		w->notes.at[from.i].forward = to.i;
		w->trial = false;
		return true;
	}
	rewrite_return_uses(w, from, to, uses);
	w->trial = false;
	restore_touched(w);
	return false;
}

enum { WALK = 1000 }; /* the most values that may_need visits */

/* Whether a value may need another one; true if a walk of bounded length does not tell.  A replacement can
 * need the value that it replaces only if one of its own values had been replaced before. */
static bool may_need(struct rewriter *w, sub_ref r, sub_ref other)
{
	if (r.i == other.i || !w->met_replaced)
		return r.i == other.i;
	w->walks++;
	w->stack.n = 0;
	vec_push(w->arena, &w->stack, r.i);
	for (int n = 0; w->stack.n; n++) {
		uint32_t at = w->stack.at[--w->stack.n];
		const struct sub_value *v = &w->p->values.at[at];
		if (at == other.i || n == WALK)
			return true;
		if (rewrite_note_of(w, (sub_ref){at})->visited == w->walks)
			continue;
		w->notes.at[at].visited = w->walks;
		for (int a = 0; a < v->args; a++)
			vec_push(w->arena, &w->stack, rewrite_resolve(w, v->arg[a].value).i);
	}
	return false;
}

static bool records_texts(const struct rewriter *w)
{
	return w->trace && w->trace->texts;
}

/* Records an application; `before` was printed earlier, since replacing changes how values print. */
static void record_change(struct rewriter *w, const struct rewrite_parsed *rule, sub_ref to, double cost,
			  const char *before)
{
	struct rewrite_change c = {rule->rule->name, w->body, before, NULL,
				   w->runs * (cost - w->measure.cost) / REWRITE_OPERATION};
	w->applications++;
	if (records_texts(w))
		c.after = rewrite_describe_value(w, to, rule->replacement);
	if (w->trace)
		vec_push(w->arena, &w->trace->changes, c);
}

/* Forgets the values that were added for a replacement. */
static void forget_replacement(struct rewriter *w, size_t values)
{
	sub_forget_values(w->p, values);
	if (w->notes.n > values)
		w->notes.n = values;
}

/* Applies the first match of a rule that lowers the measure; false if none does. */
static bool apply_rule(struct rewriter *w, const struct rewrite_parsed *rule, sub_ref at)
{
	struct rewrite_match m;
	w->attempts++;
	if (!rewrite_may_match(w, rule->pattern, at))
		return false;
	w->root = at.i;
	for (bool found = rewrite_find_match(&m, w, rule, at); found; found = rewrite_next_match(&m, false)) {
		if (rewrite_find_refuted(&m, -1) >= 0)
			continue;
		double cost = w->measure.cost;
		size_t values = w->p->values.n;
		w->met_replaced = false;
		struct sub_use to = rewrite_build_replacement(&m);
		const char *before =
		    to.value.i && records_texts(w) ? rewrite_describe_value(w, at, rule->pattern) : NULL;
		if (to.value.i && !may_need(w, to.value, at) && replace_value(w, at, to.value)) {
			record_change(w, rule, to.value, cost, before);
			w->root = 0;
			return true;
		}
		forget_replacement(w, values);
	}
	w->root = 0;
	return false;
}

static bool apply_any(struct optimizer *o, sub_ref at)
{
	const struct rules *rules = &o->rules[sub_at(o->w.p, at)->op];
	for (size_t i = 0; i < rules->all.n; i++)
		if (apply_rule(&o->w, rules->all.at[i], at))
			return true;
	return false;
}

/* --- sweeps --- */

/* The value on the current replacements of its arguments; the value itself if none was replaced. */
static sub_ref rebuild_value(struct rewriter *w, sub_ref r)
{
	struct sub_value v = *sub_at(w->p, r);
	bool same = true;
	for (int a = 0; a < v.args; a++) {
		sub_ref arg = rewrite_resolve(w, v.arg[a].value);
		same &= arg.i == v.arg[a].value.i;
		v.arg[a].value = arg;
	}
	if (same)
		return r;
	w->importing = true;
	w->met_replaced = false;
	sub_ref made = rewrite_add_value(w, v).value;
	w->importing = false;
	return made.i ? made : r;
}

/* Pushes the first argument that is not settled; false if all are. */
static bool push_unsettled(struct optimizer *o, sub_ref r)
{
	const struct sub_value *v = sub_at(o->w.p, r);
	for (int a = 0; a < v->args; a++) {
		sub_ref arg = rewrite_resolve(&o->w, v->arg[a].value);
		if (o->w.notes.at[arg.i].settled == o->w.sweep)
			continue;
		vec_push(o->w.arena, &o->stack, arg.i);
		return true;
	}
	return false;
}

/* Whether a value within reach of a pattern was touched since rules were last tried at `r`.  Updates the
 * times of `r` from those of its arguments. */
static bool is_touched(struct rewriter *w, sub_ref r)
{
	struct rewrite_note *n = &w->notes.at[r.i];
	const struct sub_value *v = sub_at(w->p, r);
	bool touched = n->touched > n->tried;
	n->recent[0] = n->touched;
	for (int d = 1; d <= REWRITE_REACH; d++) {
		n->recent[d] = 0;
		for (int a = 0; a < v->args; a++) {
			long below = w->notes.at[rewrite_resolve(w, v->arg[a].value).i].recent[d - 1];
			n->recent[d] = below > n->recent[d] ? below : n->recent[d];
		}
		touched |= n->recent[d] > n->tried;
	}
	return touched;
}

/* Settles a value and all that it needs: tries rules at the values within reach of a change or, if
 * `everywhere`, at all. Uses an explicit stack, because chains of operators may be of any length. */
static bool settle_value(struct optimizer *o, sub_ref root, bool everywhere)
{
	struct rewriter *w = &o->w;
	bool changed = false;
	o->stack.n = 0;
	vec_push(w->arena, &o->stack, root.i);
	while (o->stack.n) {
		sub_ref r = rewrite_resolve(w, (sub_ref){o->stack.at[o->stack.n - 1]});
		o->stack.at[o->stack.n - 1] = r.i;
		if (w->notes.at[r.i].settled == w->sweep || !w->notes.at[r.i].uses) {
			o->stack.n--;
			continue;
		}
		if (push_unsettled(o, r))
			continue;
		sub_ref now = rebuild_value(w, r);
		if (now.i != r.i) {
			substitute_rebuilt(w, r, now);
			changed = true;
		} else if ((is_touched(w, r) || everywhere) && apply_any(o, r)) {
			changed = true;
		} else {
			w->notes.at[r.i].settled = w->sweep;
			w->notes.at[r.i].tried = w->clock;
		}
	}
	return changed;
}

/* --- bodies --- */

static struct sub_use use_under_names(const struct sub_program *p, sub_ref r, const struct sub_use *old)
{
	struct sub_use u = sub_as_is(p, r);
	memcpy(u.var, old->var, sizeof u.var);
	return u;
}

/* The same variable in another program. */
static int same_var(struct sub_program *to, const struct sub_program *from, int var)
{
	const struct sub_var *v = &from->vars.at[var];
	return var < 0 || v->set != SUB_DIM ? var : sub_dim(to, v->extent, v->ordinal);
}

/* A value of one program with the variables of another, but not its arguments; its maps are in `maps`. */
static struct sub_value rename_value(struct sub_program *to, const struct sub_program *from,
				     const struct sub_value *v, struct sub_map *maps)
{
	struct sub_value out = *v;
	if (v->op == SUB_ASSIGN)
		sub_copy_maps(&out, maps);
	for (int i = 0; i < v->vars; i++)
		out.var[i] = same_var(to, from, v->var[i]);
	for (int a = 0; a < v->args; a++)
		for (int i = 0; i < v->arg[a].vars; i++)
			out.arg[a].var[i] = same_var(to, from, v->arg[a].var[i]);
	for (int i = 0; v->op == SUB_ASSIGN && i < v->arg[0].vars; i++) {
		maps[i].var = same_var(to, from, v->map[i].var);
		maps[i].var2 = same_var(to, from, v->map[i].var2);
	}
	for (int i = 0; i < v->reduced.n; i++)
		out.reduced.var[i] = same_var(to, from, v->reduced.var[i]);
	return out;
}

static void import_values(struct optimizer *o, const struct sub_body *b, sub_ref *map)
{
	bool *live = ARENA_ARRAY(o->w.arena, bool, o->from->values.n);
	sub_mark_live(o->from, b, live);
	o->w.importing = true;
	for (uint32_t i = 1; i < o->from->values.n; i++) {
		if (!live[i])
			continue;
		struct sub_map maps[SUB_MAX_VARS];
		struct sub_value v = rename_value(o->w.p, o->from, &o->from->values.at[i], maps);
		for (int a = 0; a < v.args; a++)
			v.arg[a].value = map[v.arg[a].value.i];
		map[i] = rewrite_add_value(&o->w, v).value;
	}
	o->w.importing = false;
	rewrite_note_of(&o->w, (sub_ref){0});
}

static void forget_uses(struct rewriter *w)
{
	for (size_t i = 0; i < w->notes.n; i++) {
		w->notes.at[i].uses = w->notes.at[i].forward = 0;
		w->notes.at[i].touched = w->notes.at[i].tried = 0;
	}
	w->measure = (struct rewrite_measure){0};
}

/* Copies a value and all that it needs to the resulting program, arguments first; with an explicit stack, as
 * above. */
static sub_ref export_value(struct optimizer *o, sub_ref root, sub_ref *map)
{
	struct rewriter *w = &o->w;
	o->stack.n = 0;
	vec_push(w->arena, &o->stack, root.i);
	while (o->stack.n) {
		uint32_t at = o->stack.at[o->stack.n - 1];
		const struct sub_value *v = &w->p->values.at[at];
		struct sub_map maps[SUB_MAX_VARS];
		struct sub_value out = rename_value(o->to, w->p, v, maps);
		bool ready = true;
		for (int a = 0; a < v->args && ready; a++) {
			sub_ref arg = rewrite_resolve(w, v->arg[a].value);
			out.arg[a].value = map[arg.i];
			ready = map[arg.i].i;
			if (!ready)
				vec_push(w->arena, &o->stack, arg.i);
		}
		if (!ready)
			continue;
		if (!map[at].i)
			map[at] = sub_add(o->to, out, NULL);
		o->stack.n--;
	}
	return map[root.i];
}

/* Sweeps over all roots.  A rule may apply because it can share a value that became live elsewhere; so once
 * nothing is touched any more, rules are tried at all values again.  The number of such rounds is bounded, as
 * they gain little. */
static void settle_all(struct optimizer *o, const sub_ref *root, size_t n)
{
	bool changed = true, everywhere = true;
	for (int rounds = 0; changed && rounds < ROUNDS; rounds += everywhere) {
		do {
			o->w.sweep++;
			changed = false;
			for (size_t i = 0; i < n; i++)
				changed |= settle_value(o, root[i], everywhere);
			if (everywhere && !changed)
				return;
			everywhere = false;
		} while (changed);
		changed = everywhere = true;
	}
}

/* Rewrites the values that a body stores, beginning from the source program. */
static void rewrite_body(struct optimizer *o, const struct sub_body *b, sub_ref *root)
{
	struct rewriter *w = &o->w;
	sub_ref *map = ARENA_ARRAY(w->arena, sub_ref, o->from->values.n);
	forget_uses(w);
	import_values(o, b, map);
	for (size_t i = 0; i < b->stores.n; i++) {
		root[i] = map[b->stores.at[i].value.value.i];
		rewrite_add_use(w, root[i]);
	}
	settle_all(o, root, b->stores.n);
}

static void optimize_body(struct optimizer *o, const struct sub_body *b)
{
	struct rewriter *w = &o->w;
	sub_ref *root = ARENA_ARRAY(w->arena, sub_ref, b->stores.n);
	struct sub_body out = sub_body_like(b);
	w->body = b->name;
	w->runs = sub_runs_per_row(w->p, b);
	rewrite_body(o, b, root);
	sub_ref *map = ARENA_ARRAY(w->arena, sub_ref, w->p->values.n);
	for (size_t i = 0; i < b->stores.n; i++) {
		struct sub_store s = b->stores.at[i];
		for (int d = 0; d < s.value.vars; d++)
			s.value.var[d] = same_var(o->to, o->from, s.value.var[d]);
		s.value = use_under_names(o->to, export_value(o, rewrite_resolve(w, root[i]), map), &s.value);
		vec_push(w->arena, &out.stores, s);
	}
	vec_push(o->to->arena, &o->to->bodies, out);
}

/* --- programs --- */

static struct sub_tensor copy_tensor(struct sub_program *to, const struct sub_program *from,
				     const struct sub_tensor *t)
{
	struct sub_tensor out = *t;
	for (int d = 0; d < t->rank; d++)
		out.var[d] = same_var(to, from, t->var[d]);
	return out;
}

static void copy_declarations(struct sub_program *to, const struct sub_program *from)
{
	to->name = from->name;
	sub_copy_structure(to, from);
	for (size_t i = 0; i < from->params.n; i++)
		vec_push(to->arena, &to->params, copy_tensor(to, from, &from->params.at[i]));
	for (size_t i = 0; i < from->states.n; i++)
		vec_push(to->arena, &to->states, copy_tensor(to, from, &from->states.at[i]));
	for (size_t i = 0; i < from->inputs.n; i++) {
		struct sub_input in = from->inputs.at[i];
		in.row = copy_tensor(to, from, &in.row);
		vec_push(to->arena, &to->inputs, in);
	}
	for (size_t i = 0; i < from->outputs.n; i++) {
		struct sub_output out = from->outputs.at[i];
		out.row = copy_tensor(to, from, &out.row);
		vec_push(to->arena, &to->outputs, out);
	}
}

static void rewrite_program(struct sub_program *to, const struct sub_program *from,
			    const struct rewrite_options *options, struct rewrite_trace *trace, bool *barred,
			    struct rewrite_effort *effort)
{
	struct sub_program work;
	struct optimizer o = {.from = from, .to = to};
	o.w = (struct rewriter){.clock = 1,
				.p = &work,
				.arena = to->arena,
				.options = options,
				.trace = trace,
				.states = rewrite_find_state_ranges(from, options, to->arena),
				.barred = barred};
	sub_init(&work, to->arena, from->name);
	copy_declarations(&work, from);
	copy_declarations(to, from);
	prepare_rules(&o);
	for (size_t b = 0; b < from->bodies.n; b++)
		optimize_body(&o, &from->bodies.at[b]);
	*effort = (struct rewrite_effort){
	    .attempts = o.w.attempts, .applications = o.w.applications, .sweeps = o.w.sweep};
}

/* By parameter: what the model declares of products with it would be of no products if tables took them away. */
static bool *bar_declared(const struct sub_program *p, struct arena *a)
{
	bool *barred = ARENA_ARRAY(a, bool, p->params.n);
	for (size_t i = 0; i < p->params.n; i++)
		barred[i] = p->params.at[i].declared && p->params.at[i].products != PRECISION_F32;
	return barred;
}

void rewrite_optimize(struct sub_program *to, const struct sub_program *from,
		      const struct rewrite_options *options, struct rewrite_trace *trace)
{
	bool *barred = bar_declared(from, to->arena);
	struct rewrite_effort effort;
	size_t held = to->arena->bytes, changes = trace ? trace->changes.n : 0;
	rewrite_program(to, from, options, trace, barred, &effort);
	while (!rewrite_check_tables(to, from, options, trace, barred)) {
		sub_init(to, to->arena, from->name);
		if (trace)
			trace->changes.n = changes;
		rewrite_program(to, from, options, trace, barred, &effort);
	}
	effort.bytes = to->arena->bytes - held;
	if (trace)
		trace->effort = effort;
}

/* --- a single application --- */

enum rewrite_outcome rewrite_apply_rule(struct sub_program *p, sub_ref at, const struct rewrite_parsed *rule,
					enum rewrite_math math, int ignore, sub_ref *to, int *failed)
{
	struct rewrite_options options = {.math = math, .table_bytes = INT64_MAX};
	struct rewriter w = {.p = p, .arena = p->arena, .options = &options, .root = at.i};
	struct rewrite_match m;
	bool matched = false, held = false;
	rewrite_note_of(&w, at);
	for (size_t i = 1; i < w.notes.n; i++)
		w.notes.at[i].uses = 1;
	for (bool found = rewrite_find_match(&m, &w, rule, at); found;
	     found = rewrite_next_match(&m, false)) {
		int refuted = rewrite_find_refuted(&m, ignore);
		matched = true;
		if (refuted >= 0) {
			*failed = refuted;
			continue;
		}
		held = true;
		*to = rewrite_build_replacement(&m).value;
		if (to->i && to->i != at.i)
			return REWRITE_APPLIED;
	}
	return held ? REWRITE_UNBUILT : matched ? REWRITE_REFUTED : REWRITE_NO_MATCH;
}
