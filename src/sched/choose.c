/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cost model: how many nodes, gates and vectors of columns a register tile holds.
 *
 * In one turn of the reduction a loop over m nodes, g gates and v vectors does m*g*v multiply-adds on g*v
 * weights and m broadcast operands.  A turn takes the longest of
 *     m*g*v           multiply-adds at the peak,
 *     g*v + m         loads from the first-level cache,
 *     the latency     of a multiply-add: an accumulator is used once a turn,
 *     the weights     / what the cache that holds them gives.
 * All times are nanoseconds, of the machine that the target describes (base/target.def).
 * The second-level cache is read beside the multiply-adds; what lies beyond it comes less evenly, and a turn
 * that needs both about equally long waits for both (SHARPNESS).  The first tile of a level reads its weights
 * from where they lie, the second-level cache if all of them fit, else the one beyond; the others find what
 * the first has brought, in the first level if the weights of the block of columns fit there beside the rows,
 * else in the second.  More gates than `accumulators` allow are taken in several loops, each with a panel of
 * weights of its own; the panels are those of the greatest tile.  Where each row, or each of its edges, has
 * weights of its own (those of a label, a state that is a matrix), a loop reads m*g*v of them, each row's
 * from beyond.  A loop needs m*g*v accumulators, the
 * smaller side of the operands and a register for the other.  After the loops each row has its other
 * operations to do.
 *
 * A level has as many nodes as it has: batches of few structures are narrow.  So a set of sizes is judged by
 * what it costs over levels of many widths, against what the machine must take for them. */
#include "sched/sched.h"

#include <math.h>

enum {
	SHARPNESS = 5,
	MOST_COLUMNS = 4,
	MOST_BODIES = 4
};

/* Operations that wait for each other, in latencies of a multiply-add: those at the start and the end of a loop,
 * where sums are parked; those from a tile's last loop to the first of the next one, as non-linearities and first
 * weights are waited for; and what these are more for each vector. */
static const double loop_chain = 2.5, tile_chain = 30, vector_chain = 10;

static const int level_widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 0};
static const int edges_of_row[] = {1, 2, 2, 2, 3, 4, 0};
static const int whole_range[] = {64, 0}; /* rows of all levels at once, of a table */

/* What a body must gain at least for each of its sums, as a share of the time: it takes time to compile. */
static const double body_cost = 0.0012;

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static double max_double(double a, double b)
{
	return a > b ? a : b;
}

int sched_gates_at_once(int accumulators, int gates, int turns)
{
	int most = accumulators > turns ? accumulators / turns : 1, loops = (gates + most - 1) / most;
	return (gates + loops - 1) / loops;
}

bool sched_shares_last(const int *size, int sizes, int i)
{
	int rest = i + 1 < sizes ? size[i] + 1 - size[i + 1] : 1;
	for (int j = i + 1; rest > 1 && j < sizes; j++)
		if (size[j] == rest)
			return true;
	return false;
}

/* Where a tile finds its weights. */
enum from { FROM_FIRST_LEVEL, FROM_SECOND_LEVEL, FROM_BEYOND };

/* What is known of a group before a tile is tried. */
struct subject {
	const struct sched *s;
	const struct sched_group *group;
	int64_t columns;
	int lanes;
	enum from first; /* the first tile of a level */
	double after;	 /* nanoseconds of what a row does after the loops, for one vector of columns */
};

static bool fits_registers(const struct target *t, int m, int g, int v)
{
	return m * g * v + min_int(m, g * v) + 1 <= t->registers;
}

/* Nanoseconds of one turn that reads so many vectors and bytes of weights. */
static double iteration_time(const struct target *t, int m, int g, int v, int vectors, double bytes,
			     enum from from)
{
	double computing = max_double(m * g * v * target_multiply_add_time(t), t->multiply_add);
	double work = max_double(computing, (vectors + m) * target_load_time(t));
	if (from == FROM_FIRST_LEVEL)
		return work;
	if (from == FROM_SECOND_LEVEL)
		return max_double(work, bytes / t->l2_rate);
	return pow(pow(work, SHARPNESS) + pow(bytes / t->l3_rate, SHARPNESS), 1.0 / SHARPNESS);
}

/* What a turn reads of the weights of one gate.  Packed weights of a block of columns lie together; those
 * that a row picks lie as they are given, so that whole cache lines come. */
static double panel_bytes(const struct subject *x, const struct sched_loop *loop, int v)
{
	double bytes = 4.0 * x->lanes * v, line = x->s->target->line_bytes;
	return loop->own ? ceil(bytes / line) * line : bytes;
}

/* Nanoseconds of all turns of one loop, for m nodes and v vectors of columns, and of those that the gates need
 * that find no accumulator.  A panel holds `panel` gates; what is read of it, in part, is read whole. */
static double loop_cost(const struct subject *x, const struct sched_loop *loop, int m, int v, int panel,
			enum from from)
{
	int g = sched_gates_at_once(x->s->accumulators, loop->gates, m * v);
	int rows = loop->own ? m : 1;
	double time = 0, bytes = rows * panel_bytes(x, loop, v);
	const struct target *t = x->s->target;
	if (!fits_registers(t, m, min_int(g, loop->gates), v))
		return INFINITY;
	for (int first = 0; first < loop->gates; first += g) {
		int gates = min_int(g, loop->gates - first), last = (first + gates - 1) / panel;
		int read = min_int((last - first / panel + 1) * panel, loop->gates);
		double time_of_turn = iteration_time(t, m, gates, v, rows * gates * v, read * bytes,
						     loop->own ? FROM_BEYOND : from);
		time += time_of_turn * (double)loop->extent + loop_chain * t->multiply_add;
	}
	return time;
}

/* Nanoseconds of a tile, by where its weights come from; `most` is the greatest of the set that it is in. */
static double tile_cost(const struct subject *x, int m, int v, int most, enum from from)
{
	double latency = x->s->target->multiply_add;
	double time = tile_chain * latency + v * (vector_chain * latency + m * x->after);
	for (size_t i = 0; i < x->group->loops.n; i++) {
		const struct sched_loop *loop = &x->group->loops.at[i];
		int panel = sched_gates_at_once(x->s->accumulators, loop->gates, most * v);
		time += loop_cost(x, loop, m, v, panel, from);
	}
	return time;
}

/* The least that a level of so many nodes can take, for one vector of columns. */
static double ideal_cost(const struct subject *x, int nodes)
{
	const struct target *t = x->s->target;
	double time = nodes * x->after, vector = 4.0 * x->lanes;
	for (size_t i = 0; i < x->group->loops.n; i++) {
		const struct sched_loop *loop = &x->group->loops.at[i];
		bool beyond = loop->own || x->first == FROM_BEYOND;
		double bandwidth = beyond ? t->l3_rate : t->l2_rate;
		time += (double)loop->gates * loop->extent *
			max_double(nodes * target_multiply_add_time(t),
				   (loop->own ? nodes : 1) * vector / bandwidth);
	}
	return time;
}

/* Costs of tiles by their nodes: the first of a level, and further ones. */
struct costs {
	double first[SCHED_MAX_NODES + 1], next[SCHED_MAX_NODES + 1];
};

/* Nanoseconds of a level, its nodes cut as the pass `tile` cuts them. */
static double level_cost(const struct sched_tile *t, const struct costs *c, int nodes)
{
	double time = 0;
	bool first = true;
	for (int i = 0; i < t->sizes; i++) {
		bool less = nodes > 1 && nodes % t->nodes[i] == 1 && sched_shares_last(t->nodes, t->sizes, i);
		int tiles = nodes / t->nodes[i] - less;
		if (tiles > 0) {
			time +=
			    (first ? c->first : c->next)[t->nodes[i]] + (tiles - 1) * c->next[t->nodes[i]];
			first = false;
		}
		nodes -= tiles * t->nodes[i];
	}
	return time;
}

/* The bits of `mask` are sizes; 1 is always one. */
static void set_sizes(struct sched_tile *t, unsigned mask)
{
	t->sizes = 0;
	for (int m = SCHED_MAX_NODES; m >= 1; m--)
		if (mask >> m & 1 || m == 1)
			t->nodes[t->sizes++] = m;
}

/* How many times the ideal a set of sizes takes, in the mean over levels, with what its bodies cost. */
static double mean_excess(const struct subject *x, const struct sched_tile *t, const struct costs *c,
			  const int *width)
{
	int64_t block = (int64_t)x->lanes * t->columns;
	double padded = (x->columns + block - 1) / block * block / (double)x->columns, sum = 0, bodies = 0;
	int widths = 0;
	for (; width[widths]; widths++)
		sum += level_cost(t, c, width[widths]) / t->columns / ideal_cost(x, width[widths]);
	for (int i = 0; i < t->sizes; i++)
		bodies += t->nodes[i] * t->columns * x->group->gates;
	return sum / widths * padded + bodies * body_cost;
}

static double weight_bytes(const struct sched_group *g, int64_t columns)
{
	double n = 0;
	for (size_t i = 0; i < g->loops.n; i++)
		n += 4.0 * g->loops.at[i].gates * g->loops.at[i].extent * columns;
	return n;
}

/* Whether the weights of a block of columns rest in the first level from tile to tile, beside the rows. */
static bool stays_near(const struct subject *x, int m, int v)
{
	double rows = 0;
	for (size_t i = 0; i < x->group->loops.n; i++)
		rows += 4.0 * m * x->group->loops.at[i].extent;
	return weight_bytes(x->group, v * x->lanes) + rows <= x->s->target->l1_bytes;
}

static struct costs costs_of(const struct subject *x, int v, int most)
{
	struct costs c;
	for (int m = 1; m <= most; m++) {
		enum from next = stays_near(x, m, v) ? FROM_FIRST_LEVEL : FROM_SECOND_LEVEL;
		c.first[m] = tile_cost(x, m, v, most, x->first);
		c.next[m] = tile_cost(x, m, v, most, next);
	}
	return c;
}

/* Shows all sets of sizes up to `most` with so many columns. */
static void try_sizes(const struct subject *x, struct sched_tile t, int most, const int *width,
		      sched_tile_visit *visit, void *user)
{
	struct costs c = costs_of(x, t.columns, most);
	for (unsigned smaller = 0; smaller < 1u << most; smaller += 2) {
		set_sizes(&t, smaller | 1u << most);
		if (t.sizes > MOST_BODIES)
			continue;
		double e = mean_excess(x, &t, &c, width);
		if (isfinite(e))
			visit(user, &t, e);
	}
}

/* As often as may be without a rest, at most four times; large tiles gain nothing beyond twice. */
static int choose_unroll(const struct sched_group *g, const struct sched_tile *t)
{
	int most = t->nodes[0] * g->gates * t->columns > 8 ? 2 : 4, n = most;
	for (size_t i = 0; i < g->loops.n; i++)
		while (n > 1 && g->loops.at[i].extent % n)
			n--;
	return n;
}

/* How many nodes there are at once: of a row, of a level, or of all. */
static const int *widths_of(const struct sched_plan *plan, const struct sched_group *g)
{
	if (g->over_edges)
		return edges_of_row;
	const struct sub_body *b = &plan->p->bodies.at[g->body];
	return sub_is_recursive(b) && b->domain != SUB_LEAF ? level_widths : whole_range;
}

/* What a row and one vector of columns take beside the products: an operation as long as a multiply-add [ns]. */
static double after_loops(const struct sched *s, const struct sched_plan *plan, const struct sched_group *g)
{
	double elements = 1, products = 0;
	for (int d = 0; d < g->dims; d++)
		elements *= g->extent[d];
	for (size_t i = 0; i < g->loops.n; i++)
		products += 2.0 * g->loops.at[i].gates * g->loops.at[i].extent;
	double operations = sched_work_of(s, plan, g - plan->groups.at).operations / elements - products;
	return max_double(operations, 0) * target_multiply_add_time(s->target);
}

/* What a row takes whose vectors go so many at once: each of them, those past its end as well, and the turns
 * of the loop. */
static int64_t row_cost(int64_t vectors, int at_once)
{
	return (vectors + at_once - 1) / at_once * (at_once + 1);
}

/* Without products nothing is shared by rows: each is gone through once, as it lies in memory. */
static struct sched_tile choose_by_rows(const struct sched_group *g, struct sched_tile tile)
{
	int64_t vectors = (g->extent[tile.along] + tile.lanes - 1) / tile.lanes;
	tile.by_rows = true;
	for (int v = 2; v <= MOST_COLUMNS; v++)
		if (row_cost(vectors, v) < row_cost(vectors, tile.columns))
			tile.columns = v;
	return tile;
}

static struct subject subject_of(const struct sched *s, const struct sched_plan *plan,
				 const struct sched_group *g, const struct sched_tile *like)
{
	struct subject x = {
	    s, g, g->extent[like->along], like->lanes, FROM_SECOND_LEVEL, after_loops(s, plan, g)};
	if (weight_bytes(g, x.columns) > s->target->l2_bytes)
		x.first = FROM_BEYOND;
	return x;
}

void sched_each_tile(const struct sched *s, const struct sched_plan *plan, int group,
		     const struct sched_tile *like, sched_tile_visit *visit, void *user)
{
	const struct sched_group *g = &plan->groups.at[group];
	if (!g->dims || !g->gates)
		return;
	struct subject x = subject_of(s, plan, g, like);
	struct sched_tile t = *like;
	for (t.columns = 1; t.columns <= MOST_COLUMNS; t.columns++)
		for (int most = 1; most <= (g->rows ? SCHED_MAX_NODES : 1); most++)
			try_sizes(&x, t, most, widths_of(plan, g), visit, user);
}

double sched_predict(const struct sched *s, const struct sched_plan *plan, int group,
		     const struct sched_tile *t)
{
	const struct sched_group *g = &plan->groups.at[group];
	if (!g->dims || !g->gates)
		return NAN;
	struct subject x = subject_of(s, plan, g, t);
	struct costs c = costs_of(&x, t->columns, t->nodes[0]);
	return mean_excess(&x, t, &c, widths_of(plan, g));
}

struct best {
	struct sched_tile tile;
	double excess;
};

static void keep_best(void *user, const struct sched_tile *t, double excess)
{
	struct best *best = user;
	if (excess < best->excess * 0.999)
		*best = (struct best){*t, excess};
}

static struct sched_tile choose_tile(const struct sched *s, const struct sched_plan *plan,
				     const struct sched_group *g, int along)
{
	struct sched_tile tile = {
	    .sizes = 1, .nodes = {1}, .columns = 1, .unroll = 1, .along = along, .lanes = s->lanes};
	struct best best = {tile, INFINITY};
	if (g->dims && !g->gates && g->rows)
		return choose_by_rows(g, tile);
	if (!g->dims || !g->gates)
		return tile;
	sched_each_tile(s, plan, g - plan->groups.at, &tile, keep_best, &best);
	best.tile.unroll = choose_unroll(g, &best.tile);
	return best.tile;
}

void sched_choose(struct sched *s, const struct sched_plan *plan, const struct target *target)
{
	struct arena *a = plan->p->arena;
	*s = (struct sched){.target = target,
			    .dynamic_batch = true,
			    .dense_index = true,
			    .peel = true,
			    .persist = true,
			    .specialize_leaf = true,
			    .unroll = 1,
			    .lanes = target->lanes};
	/* the rest holds operands: 3 of 16, 6 of 32 */
	s->accumulators = target->registers * 13 / 16;
	for (size_t g = 0; g < plan->groups.n; g++) {
		vec_push(a, &s->tiles, (struct sched_tile){0});
		vec_push(a, &s->ways, IMAGE_CHEAPEST);
	}
	sched_choose_order(s, plan);
	for (size_t g = 0; g < plan->groups.n; g++)
		s->tiles.at[g] = choose_tile(s, plan, &plan->groups.at[g], s->tiles.at[g].along);
	sched_choose_layout(s, plan);
}
