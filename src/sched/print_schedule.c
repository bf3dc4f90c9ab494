/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes the schedule as text, one directive a line, with the plan as comments, which begin with `#`. */
#include "sched/words.h"

void sched_print_tile(const struct sched_tile *t, const struct sched_group *group, struct str *s)
{
	bool nodes = t->across == SCHED_NODES;
	str_printf(s, "%s %s %s", sched_spelling(SCHED_TILE), group->name, nodes ? "nodes" : "rows");
	for (int i = 0; i < t->sizes; i++)
		str_printf(s, " %d", t->nodes[i]);
	str_printf(s, " columns %d unroll %d", t->columns, t->unroll);
	if (t->by_rows)
		str_puts(s, " by rows");
	else if (group->rows && group->dims && !group->gates)
		str_puts(s, " by columns"); /* the cost model chooses by rows */
	if (!nodes)
		str_printf(s, " across %d", t->across);
	if (t->block)
		str_printf(s, " block %d", t->block);
	if (t->cut)
		str_printf(s, " cut %d", t->cut);
	if (group->dims > 1)
		str_printf(s, " along %d", t->along);
	if (!nodes && group->dims > 2)
		str_printf(s, " outside %s", t->rows_outside ? "rows" : "columns");
	str_puts(s, "\n");
}

static void print_group(const struct sched_group *g, struct str *s)
{
	str_printf(s, "# %s: ", g->name);
	if (g->rows)
		str_puts(s, g->edges ? "edges of rows" : "rows");
	for (int i = 0; i < g->dims; i++)
		str_printf(s, "%s%lld", i || g->rows ? " x " : "", (long long)g->extent[i]);
	str_printf(s, ", %zu results, %d reductions", g->targets.n, g->reductions);
	if (g->gates > 1)
		str_printf(s, ", %d side by side", g->gates);
	str_puts(s, g->sort ? ", sorted" : "");
	str_puts(s, g->local ? ", computed by its readers\n" : "\n");
}

static void print_layout(const char *name, const char *rows, const struct sched_order *order, struct str *s)
{
	str_printf(s, "%s %s%s%s", sched_spelling(SCHED_LAYOUT), name, rows ? " " : "", rows ? rows : "");
	for (int i = 0; order->rank > 1 && i < order->rank; i++)
		str_printf(s, " %d", order->dim[i]);
	str_puts(s, "\n");
}

static void print_layouts(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	const struct sub_program *p = plan->p;
	for (size_t i = 0; i < p->states.n; i++)
		print_layout(p->states.at[i].name, words_layout[sc->states.at[i].layout],
			     &sc->states.at[i].order, s);
	for (size_t i = 0; i < p->params.n; i++)
		if (sc->tables.at[i].rank > 1)
			print_layout(p->params.at[i].name, NULL, &sc->tables.at[i], s);
	for (size_t i = 0; i < sc->intermediates.n; i++) {
		const struct sched_intermediate *v = &sc->intermediates.at[i];
		if (v->order.rank > 1)
			print_layout(v->name, NULL, &v->order, s);
	}
}

static void print_leaves(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	struct sched_look_up up;
	for (size_t i = 0; i < plan->p->states.n; i++)
		if (sched_looks_up(plan, i, &up))
			str_printf(s, "%s %s %s\n", sched_spelling(SCHED_LEAVES), plan->p->states.at[i].name,
				   words_leaves[sched_reads_table(sc, plan, i)]);
}

static void print_vectors(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	for (size_t i = 0; i < plan->p->inputs.n; i++)
		if (!sched_copies_vector(plan, i))
			str_printf(s, "%s %s %s\n", sched_spelling(SCHED_VECTORS), plan->p->inputs.at[i].name,
				   words_vectors[sched_reads_given(sc, plan, i)]);
}

static void print_fusion(const struct sched_fusion *f, struct str *s)
{
	str_printf(s, "%s %s", sched_spelling(SCHED_FUSE), words_planner[f->planner]);
	str_printf(s, "%s%s\n", f->profit ? " " : "", f->profit ? words_profit[f->profit] : "");
	for (int i = 0; i < f->stores; i++)
		str_printf(s, "%s %.*s\n", sched_spelling(SCHED_STORE), f->store[i].length, f->store[i].name);
	sched_print_mutants(f, s);
}

/* A directive that moved nothing is written as off. */
static void print_movers(const struct sched_plan *plan, struct str *s)
{
	for (int d = 0; d < SCHED_DIRECTIVES; d++) {
		const struct sched_mover *m = &sched_movers[d];
		if (m->moved)
			str_printf(
			    s, "%s %s\n", sched_spelling(d),
			    words_moving[m->moved(plan->p) ? sched_extent_of(m, &plan->fusion) : MOVE_OFF]);
	}
}

/* Like these: off where the plan has nothing of the kind. */
static void print_planned(const struct sched_plan *plan, struct str *s)
{
	for (int d = 0; d < SCHED_DIRECTIVES; d++) {
		const struct sched_planned *of = &sched_planned[d];
		if (of->any)
			str_printf(s, "%s %s\n", sched_spelling(d),
				   words_moving[of->any(plan) ? sched_planned_extent(of, &plan->fusion) : MOVE_OFF]);
	}
}

static void print_switches(const struct sched *sc, struct str *s)
{
	for (int d = 0; d < SCHED_DIRECTIVES; d++) {
		const struct sched_switch *w = &sched_switches[d];
		if (w->words)
			str_printf(s, "%s %s\n", sched_spelling(d),
				   w->words[*(const bool *)((const char *)sc + w->offset)]);
	}
}

/* Writes the totals of the plan for each body. */
static void print_counts(const struct sched_plan *plan, struct str *s)
{
	for (size_t b = 0; b < plan->p->bodies.n; b++) {
		struct sched_counts c = sched_count(plan, b);
		str_printf(s, "# %s: %d groups in %d supersteps, %d reductions, %d intermediates stored",
			   plan->p->bodies.at[b].name, c.groups, c.supersteps, c.reductions, c.stored);
		if (c.local)
			str_printf(s, ", %d local groups", c.local);
		str_puts(s, "\n");
	}
}

static void print_lanes(const char *group, int lanes, struct str *s)
{
	str_printf(s, "%s%s%s ", sched_spelling(SCHED_VECTORIZE), group ? " " : "", group ? group : "");
	if (lanes > 1)
		str_printf(s, "%d\n", lanes);
	else
		str_puts(s, "off\n");
}

/* Writes the directives of a group; no `vectorize` if its lanes are `lanes`.  It stands before a tile that has more rows than vector
 * registers hold, as only with these lanes it may (matrix_tiles.c). */
static void print_directives(const struct sched *sc, const struct sched_plan *plan, int group, int lanes,
			     struct str *s)
{
	const struct sched_group *g = &plan->groups.at[group];
	const struct sched_tile *t = &sc->tiles.at[group];
	bool vectors = g->dims && t->lanes != lanes, before = t->nodes[0] > SCHED_MAX_NODES;
	if (vectors && before)
		print_lanes(g->name, t->lanes, s);
	sched_print_tile(t, g, s);
	if (vectors && !before)
		print_lanes(g->name, t->lanes, s);
	if (t->pipelined || sched_fills_matrices(sc->target, g, t))
		str_printf(s, "%s %s %s\n", sched_spelling(SCHED_PIPELINE), g->name, words_switch[t->pipelined]);
	if (!g->local)
		str_printf(s, "%s %s %s\n", sched_spelling(SCHED_PARALLEL), g->name,
			   words_strategy[sc->strategies.at[group]]);
}

void sched_print_group(const struct sched *sc, const struct sched_plan *plan, int group, struct str *s)
{
	print_directives(sc, plan, group, 0, s);
}

void sched_print(const struct sched *sc, const struct sched_plan *plan, struct str *s)
{
	str_printf(s, "# schedule of %s for %s: %d lanes, %d vector registers\n", plan->p->name,
		   sc->target->name, sc->target->lanes, sc->target->registers);
	print_fusion(&plan->fusion, s);
	print_movers(plan, s);
	print_planned(plan, s);
	print_switches(sc, s);
	sched_print_cases(sc, plan->p, s);
	str_printf(s, "%s %d\n", sched_spelling(SCHED_UNROLL), sc->unroll);
	print_lanes(NULL, sc->lanes, s);
	str_printf(s, "%s %d\n", sched_spelling(SCHED_ACCUMULATORS), sc->accumulators);
	print_layouts(sc, plan, s);
	print_leaves(sc, plan, s);
	print_vectors(sc, plan, s);
	print_counts(plan, s);
	for (size_t g = 0; g < plan->groups.n; g++) {
		print_group(&plan->groups.at[g], s);
		print_directives(sc, plan, g, sc->lanes, s);
	}
}
