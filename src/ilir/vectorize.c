/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: replaces a vector loop around stores by stores of vectors.  A last index that depends on the
 * loop's variable becomes a ramp; values that do not depend on it are broadcast.  Needs: sink and pack
 * have run, so that the loop contains only stores. */
#include "ilir/passes.h"

struct vectorizer {
	ilir_var var;
	int lanes;
};

static bool is_vector(const struct ilir_module *m, ilir_expr e)
{
	return ilir_type_of(m, e).lanes > 1;
}

static ilir_expr spread_scalar(struct ilir_module *m, ilir_expr e, int lanes)
{
	return is_vector(m, e) ? e : ilir_spread(m, ILIR_BROADCAST, e, lanes);
}

/* Replaces base + step * var by ramp(base, step). */
static ilir_expr ramp_index(struct ilir_module *m, ilir_expr e, const struct vectorizer *v)
{
	if (!ilir_uses_var(m, e, v->var))
		return e;
	return ilir_ramp(m, ilir_substitute(m, e, v->var, ilir_index(m, 0)), v->lanes, ilir_step_along(m, e, v->var));
}

static ilir_expr vectorize_expr(struct ilir_module *m, ilir_expr e, const struct vectorizer *v)
{
	const struct ilir_node n = *ilir_at(m, e);
	ilir_expr args[ILIR_MAX_RANK];
	bool any = false;
	if (!ilir_uses_var(m, e, v->var))
		return e;
	for (int i = 0; i < n.args; i++) {
		ilir_expr a = ilir_arg(m, e, i);
		bool last = i == n.args - 1;
		args[i] = n.op != ILIR_LOAD ? vectorize_expr(m, a, v) : last ? ramp_index(m, a, v) : a;
		any |= is_vector(m, args[i]);
	}
	for (int i = 0; any && n.op != ILIR_LOAD && i < n.args; i++)
		args[i] = spread_scalar(m, args[i], v->lanes);
	return ilir_with_args(m, e, args);
}

static struct ilir_stmt *vectorize_stmt(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	(void)context;
	int64_t begin, end;
	if (s->kind != ILIR_FOR || s->loop.kind != ILIR_VECTOR || !ilir_constant(m, s->loop.begin, &begin) ||
	    !ilir_constant(m, s->loop.end, &end))
		return s;
	struct vectorizer v = {s->loop.var, end - begin};
	struct ilir_stmt *store = s->loop.body;
	for (struct ilir_stmt *at = store; at; at = at->next) {
		if (at->kind != ILIR_STORE)
			return s; /* the verifier reports the loop that is left */
		int last = at->store.indices - 1;
		at->store.value = spread_scalar(m, vectorize_expr(m, at->store.value, &v), v.lanes);
		if (last >= 0)
			at->store.index[last] = ramp_index(m, at->store.index[last], &v);
	}
	return store;
}

void ilir_vectorize(struct ilir_module *m, struct ilir_tiling *tiling)
{
	(void)tiling;
	ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = vectorize_stmt});
}
