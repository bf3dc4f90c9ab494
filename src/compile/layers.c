/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Layers: the operators of the graph as it was imported, or of a text, and the loop nests that fusion leaves of them.
 *
 * Nests that compute weights when these are bound are no layers of a run, and local groups run inside of others. */
#include "compile/explain.h"
#include "ra/syntax.h"

/* An operator, and how often there is one of that name. */
struct counted {
	const char *op;
	int times;
};

typedef VEC(struct counted) counted_list;

/* A node of a text that computes a whole value, rather than an element of one. */
static bool is_operator(const struct ra_node *n)
{
	return n->arg[0].i && !n->free;
}

static int count_before(const struct ra_model *m)
{
	int n = (int)m->layers.n;
	for (size_t i = 1; !m->layers.n && i < m->nodes.n; i++)
		n += is_operator(&m->nodes.at[i]);
	return n;
}

static bool is_layer(const struct sched_plan *plan, const struct sched_group *g)
{
	return !g->local && plan->p->bodies.at[g->body].domain != SUB_AT_BINDING;
}

struct layers {
	int before, after, moves; /* of those after, so many only move elements */
};

static struct layers count_layers(const struct ra_model *m, const struct sched_plan *plan)
{
	struct layers n = {.before = count_before(m)};
	for (size_t g = 0; g < plan->groups.n; g++)
		if (is_layer(plan, &plan->groups.at[g])) {
			n.after++;
			n.moves += plan->groups.at[g].moves;
		}
	return n;
}

static void count_operator(struct arena *a, counted_list *list, const char *op)
{
	size_t k = 0;
	while (k < list->n && strcmp(list->at[k].op, op) != 0)
		k++;
	if (k == list->n)
		vec_push(a, list, (struct counted){.op = op});
	list->at[k].times++;
}

/* In the order of their first ones. */
static counted_list count_operators(struct arena *a, const struct ra_model *m)
{
	counted_list list = {0};
	for (size_t i = 0; i < m->layers.n; i++)
		count_operator(a, &list, m->layers.at[i].op);
	for (size_t i = 1; !m->layers.n && i < m->nodes.n; i++)
		if (is_operator(&m->nodes.at[i]))
			count_operator(a, &list, ra_op_spelling(m->nodes.at[i].op));
	return list;
}

void explain_put_layers(const struct ra_model *m, const struct sched_plan *plan, struct str *s)
{
	counted_list list = count_operators(s->arena, m);
	struct layers n = count_layers(m, plan);
	str_printf(s, "layers before  %6d  operators of the %s\n", n.before, m->layers.n ? "graph, but for constants" : "text");
	str_printf(s, "layers after   %6d  loop nests of a run, %d of which only move elements\n", n.after, n.moves);
	if (n.before)
		str_printf(s, "after / before %6.3f\n", (double)n.after / n.before);
	str_printf(s, "\n%6s  operator before\n", "times");
	for (size_t i = 0; i < list.n; i++)
		str_printf(s, "%6d  %s\n", list.at[i].times, list.at[i].op);
	str_printf(s, "\n%-16s %10s %14s  stored values\n", "layer after", "reductions", "operations");
	for (size_t g = 0; g < plan->groups.n; g++) {
		const struct sched_group *group = &plan->groups.at[g];
		if (is_layer(plan, group))
			str_printf(s, "%-16s %10d %14.0f  %zu\n", group->name, group->reductions, group->operations,
				   group->targets.n);
	}
}

void explain_put_json_layers(const struct ra_model *m, const struct sched_plan *plan, struct str *s)
{
	struct layers n = count_layers(m, plan);
	str_printf(s, "{\"before\":%d,\"after\":%d,\"moves\":%d,\"operators\":[", n.before, n.after, n.moves);
	for (size_t i = 0; i < m->layers.n; i++) {
		str_puts(s, i ? ",{\"operator\":" : "{\"operator\":");
		str_json(s, m->layers.at[i].op);
		str_puts(s, ",\"name\":");
		str_json(s, m->layers.at[i].name);
		str_puts(s, "}");
	}
	str_puts(s, "],\"groups\":[");
	for (size_t g = 0, any = 0; g < plan->groups.n; g++)
		if (is_layer(plan, &plan->groups.at[g])) {
			str_puts(s, any++ ? "," : "");
			str_json(s, plan->groups.at[g].name);
		}
	str_puts(s, "]}");
}
