/* The cost model: how many nodes and vectors of columns a register tile holds.
 *
 * In one turn of the reduction a tile of m nodes, g gates and v vectors loads g*v weights and m broadcast operands and
 * does m*g*v multiply-adds.  It needs m*g*v accumulators, the smaller side of the operands, and one register for the
 * other.  The best tile has most arithmetic for a load, wastes least in the padding of the last vector, and has enough
 * accumulators to hide the latency of a multiply-add (two a cycle, four cycles: eight). */
#include "sched/sched.h"

enum { LATENCY_HIDDEN = 8 };

static int min(int a, int b)
{
	return a < b ? a : b;
}

static bool fits(const struct target *t, int m, int g, int v)
{
	return m * g * v + min(m, g * v) + 1 <= t->registers;
}

static double worth(int m, int g, int v, int lanes, int64_t columns)
{
	int64_t block = (int64_t)lanes * v, padded = (columns + block - 1) / block * block;
	double hidden = min(m * g * v, LATENCY_HIDDEN) / (double)LATENCY_HIDDEN;
	return m * g * v / (double)(g * v + m) * hidden * columns / padded;
}

/* Sizes for what is left over: halves, down to one node. */
static void set_sizes(struct sched_tile *tile, int nodes)
{
	tile->sizes = 0;
	for (; nodes > 1 && tile->sizes < SCHED_MAX_SIZES - 1; nodes = nodes > 3 ? nodes / 2 : 1)
		tile->nodes[tile->sizes++] = nodes;
	tile->nodes[tile->sizes++] = 1;
}

static struct sched_tile choose_tile(const struct sched_group *g, const struct target *t, int lanes)
{
	struct sched_tile tile = {.columns = 1, .unroll = 1};
	double best = 0;
	int nodes = 1, gates = g->gates;
	for (int m = 1; gates && g->dims && m <= SCHED_MAX_NODES; m++)
		for (int v = 1; v <= 4; v++) {
			double w = fits(t, m, gates, v) ? worth(m, gates, v, lanes, g->extent[g->dims - 1]) : 0;
			if (w > best * 1.0001) {
				best = w;
				nodes = m;
				tile.columns = v;
			}
		}
	if (gates)
		tile.unroll = nodes * gates * tile.columns > 8 ? 2 : 4;
	set_sizes(&tile, g->rows ? nodes : 1);
	return tile;
}

void sched_choose(struct sched *s, const struct sched_plan *plan, const struct target *target)
{
	struct arena *a = plan->p->arena;
	*s = (struct sched){.target = target, .dynamic_batch = true, .specialize_leaf = true, .lanes = target->lanes};
	for (size_t g = 0; g < plan->groups.n; g++)
		vec_push(a, &s->tiles, choose_tile(&plan->groups.at[g], target, s->lanes));
}
