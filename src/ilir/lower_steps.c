/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Lowers bodies to steps over ranges of rows.  Where nodes have cases, a body has the rows of some: a range is of one case, or a
 * step tests which of the bodies each of its rows is of. */
#include "ilir/lower.h"

/* The next body of a domain in the current traversal after body `before`; -1 = there is none. */
int lower_next_body(const struct lowering *l, enum sub_domain domain, int before)
{
	for (size_t b = before + 1; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == domain && l->p->bodies.at[b].traversal == l->traversal)
			return b;
	return -1;
}

int lower_find_body(const struct lowering *l, enum sub_domain domain)
{
	return lower_next_body(l, domain, -1);
}

/* The only body of a domain in a traversal; -1 = there is none, or several. */
static int find_only_body(const struct lowering *l, enum sub_domain domain, int traversal)
{
	int found = -1, n = 0;
	for (size_t b = 0; b < l->p->bodies.n; b++)
		if (l->p->bodies.at[b].domain == domain && l->p->bodies.at[b].traversal == traversal) {
			found = (int)b;
			n++;
		}
	return n == 1 ? found : -1;
}

static bool same_store(const struct sub_store *a, const struct sub_store *b)
{
	return a->to == b->to && a->which == b->which && sub_same_use(&a->value, &b->value);
}

/* Whether leaves are stored what inner nodes are, of the same values (mutate/like_inner.c): then they run through these kernels.
 * Not where nodes have cases, as a level has a batch for each. */
bool lower_runs_leaves_as_inner(const struct lowering *l, int traversal)
{
	int leaf = find_only_body(l, SUB_LEAF, traversal), inner = find_only_body(l, SUB_INNER, traversal);
	if (leaf < 0 || inner < 0 || l->p->cases.n || !l->sched->specialize_leaf || !l->sched->joins_leaves)
		return false;
	const struct sub_body *a = &l->p->bodies.at[leaf], *b = &l->p->bodies.at[inner];
	bool same = a->stores.n == b->stores.n;
	for (size_t i = 0; same && i < a->stores.n; i++)
		same = same_store(&a->stores.at[i], &b->stores.at[i]);
	return same;
}

/* Lowers all groups of a body, in sequence. */
struct ilir_stmt *lower_groups_of_body(struct lowering *l, int body, bool row_loop)
{
	struct ilir_stmt *block = NULL;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body)
			block = ilir_append(block, lower_group(l, g, row_loop));
	return block;
}

/* Lowers a group behind the local ones that it reads. */
static struct ilir_stmt *lower_with_heads(struct lowering *l, int group)
{
	const sched_groups *heads = &l->plan->groups.at[group].heads;
	struct ilir_stmt *block = NULL;
	for (size_t h = 0; h < heads->n; h++)
		block = ilir_append(block, lower_group(l, heads->at[h], true));
	return ilir_append(block, lower_group(l, group, true));
}

/* Lowers each group of a body to a step over the same rows; a single one gets the given name. */
struct ilir_stmt *lower_steps(struct lowering *l, int body, const char *name, ilir_expr begin, ilir_expr end)
{
	struct ilir_stmt *steps = NULL;
	struct sched_counts c = sched_count(l->plan, body);
	bool alone = c.groups + c.local == 1;
	for (size_t g = 0; g < l->plan->groups.n; g++)
		if (l->plan->groups.at[g].body == body && !l->plan->groups.at[g].local &&
		    !sched_only_looks_up(l->sched, l->plan, g)) {
			struct ilir_stmt *block = lower_with_heads(l, g);
			const char *own = alone ? name : l->plan->groups.at[g].name;
			if (steps && l->sched->barrier_each_step)
				steps = ilir_append(steps, ilir_barrier(l->m));
			struct ilir_stmt *step = ilir_step(l->m, own, g + 1, begin, end, block);
			step->step.cases = l->p->bodies.at[body].cases;
			step->step.sort = l->plan->groups.at[g].sort && lower_sort_of(l, g) ? l->plan->groups.at[g].sort : 0;
			steps = ilir_append(steps, step);
		}
	return steps;
}

/* --- rows that are tested --- */

/* The condition that the current row is of a case in the mask. */
static ilir_expr is_of_case(struct lowering *l, unsigned cases)
{
	struct ilir_module *m = l->m;
	ilir_expr any = {0}, row_case = ilir_load_index(m, l->case_of, &l->row, 1);
	for (int c = 0; cases >> c; c++)
		if (cases >> c & 1) {
			ilir_expr one = ilir_binary(m, ILIR_EQ, row_case, ilir_index(m, c));
			any = any.i ? ilir_binary(m, ILIR_OR, any, one) : one;
		}
	return any;
}

/* Whether a kernel tests which rows are of a body, instead of a range containing them. */
static bool is_tested(const struct lowering *l, int body)
{
	unsigned cases = l->p->bodies.at[body].cases;
	return !l->sched->specialize_leaf || (cases & l->sched->shared_cases);
}

const struct sched_sort *lower_sort_of(const struct lowering *l, int group)
{
	const struct sched_group *g = &l->plan->groups.at[group];
	bool ranges = l->sched->dynamic_batch && !is_tested(l, g->body);
	return g->sort && ranges ? &l->plan->sorts.at[g->sort - 1] : NULL;
}

static int next_tested(const struct lowering *l, enum sub_domain domain, int before)
{
	int b = lower_next_body(l, domain, before);
	while (b >= 0 && !is_tested(l, b))
		b = lower_next_body(l, domain, b);
	return b;
}

/* Selects among the tested bodies of a domain, from body b on, by the case of the current row.  The last
 * body takes all remaining rows. */
static struct ilir_stmt *tested_cases(struct lowering *l, enum sub_domain domain, int b)
{
	int next = next_tested(l, domain, b);
	struct ilir_stmt *then = lower_groups_of_body(l, b, false);
	if (next < 0)
		return then;
	ilir_expr own_case = is_of_case(l, l->p->bodies.at[b].cases);
	return ilir_if(l->m, own_case, then, tested_cases(l, domain, next));
}

/* A loop over all rows of a batch, whose body `row` makes. */
static struct ilir_stmt *tested_rows(struct lowering *l, struct ilir_stmt *(*row)(struct lowering *))
{
	struct ilir_module *m = l->m;
	ilir_var v = ilir_new_var(m, "n", (struct ilir_type){ILIR_INDEX, 1});
	l->row = ilir_var_ref(m, v);
	return ilir_for(m, v, ilir_var_ref(m, ilir_begin), ilir_var_ref(m, ilir_end), 1, ilir_dim_name(m, "node"),
			ILIR_SERIAL, row(l));
}

/* One comparison identifies leaves: they are batch 0. */
static struct ilir_stmt *tested_up(struct lowering *l)
{
	struct ilir_module *m = l->m;
	struct ilir_stmt *then = tested_cases(l, SUB_LEAF, lower_find_body(l, SUB_LEAF)),
			 *otherwise = tested_cases(l, SUB_INNER, lower_find_body(l, SUB_INNER));
	ilir_expr one = ilir_index(m, 1), is_leaf = ilir_binary(m, ILIR_LT, l->row, ilir_load_index(m, l->batch_begin, &one, 1));
	return ilir_if(m, is_leaf, then, otherwise);
}

/* Roots are identified by their case. */
static struct ilir_stmt *tested_down(struct lowering *l)
{
	unsigned roots = 0;
	for (int b = lower_find_body(l, SUB_TOP); b >= 0; b = lower_next_body(l, SUB_TOP, b))
		roots |= l->p->bodies.at[b].cases;
	ilir_expr is_root = is_of_case(l, roots);
	struct ilir_stmt *then = tested_cases(l, SUB_TOP, lower_find_body(l, SUB_TOP));
	return ilir_if(l->m, is_root, then, tested_cases(l, SUB_BELOW, lower_find_body(l, SUB_BELOW)));
}

/* One step for all tested bodies of a domain, over the rows of all their cases. */
static struct ilir_stmt *shared_step(struct lowering *l, enum sub_domain domain, ilir_expr begin, ilir_expr end)
{
	struct ilir_module *m = l->m;
	unsigned cases = 0;
	ilir_var v = ilir_new_var(m, "n", (struct ilir_type){ILIR_INDEX, 1});
	l->row = ilir_var_ref(m, v);
	struct ilir_stmt *block = tested_cases(l, domain, next_tested(l, domain, -1));
	block = ilir_for(m, v, ilir_var_ref(m, ilir_begin), ilir_var_ref(m, ilir_end), 1, ilir_dim_name(m, "node"),
			 ILIR_SERIAL, block);
	struct ilir_stmt *step = ilir_step(m, domain == SUB_LEAF ? "leaves" : "cases", 0, begin, end, block);
	for (int b = next_tested(l, domain, -1); b >= 0; b = next_tested(l, domain, b))
		cases |= l->p->bodies.at[b].cases;
	step->step.cases = cases;
	return step;
}

/* Lowers the bodies of a domain to steps over the rows of their cases; those that are tested share one. */
struct ilir_stmt *lower_cases(struct lowering *l, enum sub_domain domain, ilir_expr begin, ilir_expr end)
{
	int tested = next_tested(l, domain, -1);
	bool shared = tested >= 0 && next_tested(l, domain, tested) >= 0;
	struct ilir_stmt *steps = shared ? shared_step(l, domain, begin, end) : NULL;
	for (int b = lower_find_body(l, domain); b >= 0; b = lower_next_body(l, domain, b))
		if (!shared || !is_tested(l, b))
			steps = ilir_append(steps, lower_steps(l, b, l->p->bodies.at[b].name, begin, end));
	return steps;
}

/* The name of the step that tests all nodes: "node" in the first traversal, "node2" in the second. */
static const char *tested_name(struct lowering *l)
{
	struct str s = str_in(l->m->arena);
	str_printf(&s, l->traversal ? "node%d" : "node", l->traversal + 1);
	return str_text(&s);
}

/* One step that tests each node: leaves and inner nodes, or roots and other nodes. */
struct ilir_stmt *lower_tested_steps(struct lowering *l, ilir_expr begin, ilir_expr end)
{
	bool down = l->p->traversals.at[l->traversal].down;
	struct ilir_stmt *rows = tested_rows(l, down ? tested_down : tested_up);
	return ilir_step(l->m, tested_name(l), 0, begin, end, rows);
}
