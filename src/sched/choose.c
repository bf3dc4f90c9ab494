/* The cost model: how many nodes, gates and vectors of columns a register tile holds.
 *
 * In one turn of the reduction a loop over m nodes, g gates and v vectors does m*g*v multiply-adds on g*v
 * weights and m broadcast operands.  A turn takes the longest of m*g*v / 2       two multiply-adds a cycle,
 *     (g*v + m) / 2   two loads a cycle,
 *     4               the latency of a multiply-add: an accumulator is used once a turn,
 *     g*v*lanes*4 / l2_bytes_per_cycle   the weights: a panel is larger than the first-level cache.
 * More gates than `accumulators` allow are taken in several loops.  A loop needs m*g*v accumulators, the
 * smaller side of the operands and a register for the other. */
#include "sched/sched.h"

#include <math.h>

enum { LATENCY = 4 };

static int min(int a, int b)
{
	return a < b ? a : b;
}

static double max(double a, double b)
{
	return a > b ? a : b;
}

static bool fits(const struct target *t, int m, int g, int v)
{
	return m * g * v + min(m, g * v) + 1 <= t->registers;
}

/* Cycles of one turn. */
static double turn(const struct target *t, int lanes, int m, int g, int v)
{
	double arithmetic = max(m * g * v / 2.0, LATENCY), loads = (g * v + m) / 2.0;
	return max(max(arithmetic, loads), (double)g * v * lanes * 4 / t->l2_bytes_per_cycle);
}

/* Cycles of all turns of one loop, for m nodes and v vectors of columns; gates that find no accumulator take
 * another. */
static double loop_cost(const struct sched *s, const struct sched_loop *loop, int m, int v)
{
	int g = min(loop->gates, s->accumulators / (m * v));
	double cycles = 0;
	if (g < 1 || !fits(s->target, m, g, v))
		return INFINITY;
	for (int left = loop->gates; left > 0; left -= g)
		cycles += turn(s->target, s->lanes, m, min(left, g), v);
	return cycles * (double)loop->extent;
}

/* Cycles for one node, all loops and one vector of the columns that are there. */
static double cost(const struct sched *s, const struct sched_group *group, int along, int m, int v)
{
	int64_t columns = group->extent[along], block = (int64_t)s->lanes * v;
	double padded = (columns + block - 1) / block * block / (double)columns, cycles = 0;
	for (size_t i = 0; i < group->loops.n; i++)
		cycles += loop_cost(s, &group->loops.at[i], m, v);
	return cycles * padded / (m * v);
}

/* Sizes for what is left over: halves, down to one node. */
static void set_sizes(struct sched_tile *tile, int nodes)
{
	tile->sizes = 0;
	for (; nodes > 1 && tile->sizes<SCHED_MAX_SIZES - 1; nodes = nodes> 3 ? nodes / 2 : 1)
		tile->nodes[tile->sizes++] = nodes;
	tile->nodes[tile->sizes++] = 1;
}

static struct sched_tile choose_tile(const struct sched *s, const struct sched_group *g, int along)
{
	struct sched_tile tile = {.columns = 1, .unroll = 1, .along = along};
	double best = INFINITY;
	int nodes = 1;
	for (int m = 1; g->gates && g->dims && m <= (g->rows ? SCHED_MAX_NODES : 1); m++)
		for (int v = 1; v <= 4; v++) {
			double c = cost(s, g, along, m, v);
			if (c > best * 0.999)
				continue;
			best = c;
			nodes = m;
			tile.columns = v;
		}
	if (g->gates)
		tile.unroll = nodes * g->gates * tile.columns > 8 ? 2 : 4;
	set_sizes(&tile, nodes);
	return tile;
}

void sched_choose(struct sched *s, const struct sched_plan *plan, const struct target *target)
{
	struct arena *a = plan->p->arena;
	*s = (struct sched){
	    .target = target, .dynamic_batch = true, .specialize_leaf = true, .lanes = target->lanes};
	/* the rest holds operands: 3 of 16, 6 of 32 */
	s->accumulators = target->registers * 13 / 16;
	for (size_t g = 0; g < plan->groups.n; g++)
		vec_push(a, &s->tiles, (struct sched_tile){0});
	sched_choose_order(s, plan);
	for (size_t g = 0; g < plan->groups.n; g++)
		s->tiles.at[g] = choose_tile(s, &plan->groups.at[g], s->tiles.at[g].along);
	sched_choose_layout(s, plan);
}
