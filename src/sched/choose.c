/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cost model: how many rows, gates and vectors of columns a register tile holds.
 *
 * In one iteration over the reduced dimension a loop over m rows, g gates and v vectors does m*g*v
 * multiply-adds on g*v weights and m broadcast operands.  The time of such an iteration, by the cache that
 * holds the weights, is part of the description of the machine (base/target.h).  All times are in
 * nanoseconds.
 *
 * The first tile of a level reads its weights from the second-level cache if they fit those of two cores, since a
 * team divides their columns, else from beyond.  Later tiles find them in the first level if the weights of the block of columns fit there beside
 * the rows, else in the second.
 *
 * More gates than `accumulators` allow are computed in several loops, each with its own panel of weights;
 * the panels are those of the largest tile.  Where each row, or each of its edges, has weights of its own
 * (those of a label, a state that is a matrix), a loop reads m*g*v of them, from beyond the second level.  A
 * loop needs m*g*v accumulators, registers for the smaller side of the operands, and one for the other.
 * After its loops a row has its other operations to do.
 *
 * The rows of a tile are nodes, or elements along a dimension of the group: then the operand that columns run
 * along should not differ from row to row, and a node has many rows.
 *
 * Batches of few structures are narrow, so a set of sizes is judged by its cost over levels of many
 * widths, relative to the least that the machine can take for them. */
#include "sched/sched.h"

#include <math.h>

enum {
	MOST_COLUMNS = SCHED_MAX_COLUMNS,
	MOST_BY_ROWS = 4, /* vectors of rows without products */
	MOST_BODIES = 4,
	LEAST_LANES = 4,
	LEAST_ROWS = 4, /* of a node for itself */
	LEAST_TEAM = 2, /* threads that divide the columns of weights, and keep them in their caches */
	TRANSPOSED_ROWS = 8, /* elements that a transposition moves at once */
	WINDOW_ROWS = 4,     /* of an image that are computed at once: windows of three read six rows for them, not twelve */
	READING_MARGIN = 2, /* how many times as long as reading an operand its use should take */
	/* Bytes of a weight, of a narrow one as well: widening it takes about the time that reading fewer
	 * bytes saves.  Tiles chosen by the bytes of narrow types were slower, by up to a third of an i8
	 * LSTM's time. */
	WEIGHT_BYTES = 4,
	ROW_BYTES = 4 /* of an element that products read of a row */
};

/* Lengths of dependency chains, in latencies of a multiply-add: at the start and the end of a loop, where
 * sums are parked; from a tile's last loop to the first loop of the next tile, where non-linearities and
 * the first weights are waited for; and what each vector of columns adds to the latter. */
static const double loop_chain = 2.5, tile_chain = 30, vector_chain = 10;

static const int level_widths[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 24, 32, 38, 48, 64, 100, 0};
static const int batches[] = {1, 2, 4, 8, 10, 16, 20, 32, 64, 0}; /* sequences that run together */
static const int edges_of_row[] = {1, 2, 2, 2, 3, 4, 0};
static const int few_or_many[] = {1, 2, 64, 0}; /* rows that are images: there may be one */
/* rows of all levels at once, or of a table */
static const int whole_range[] = {19, 29, 41, 53, 67, 100, 190, 1000, 0};

/* The least gain, as a share of the time, that justifies compiling one more sum of a loop body. */
static const double body_cost = 0.0012;

/* What blocks of rows may cost, relative to all rows at once. */
static const double block_cost = 1.06;

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static double max_double(double a, double b)
{
	return a > b ? a : b;
}

int sched_gates_at_once(int accumulators, int gates, int vectors)
{
	int most = accumulators > vectors ? accumulators / vectors : 1, loops = (gates + most - 1) / most;
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

/* What the model knows of a group before it tries tiles. */
struct subject {
	const struct sched *s;
	const struct sched_group *group;
	int64_t columns;
	int lanes;
	enum target_cache first; /* where the first tile of a level finds them */
	double after;	  /* time of a row after the loops, for one vector of columns [ns] */
	int along, across; /* the dimensions of columns and rows, as in a tile */
	bool all_rows;	   /* not those of a level */
	int unroll;
};

/* Vectors of weights that a row reads, if they lie as the caller has them, for each of so many: whole cache
 * lines are read. */
static double vectors_of_lines(const struct subject *x, int v)
{
	double bytes = (double)WEIGHT_BYTES * x->lanes, line = x->s->target->line_bytes;
	return ceil(v * bytes / line) * line / bytes;
}

/* The time of an iteration for m rows, g gates and v vectors of columns that reads the weights of `read`
 * gates [ns]. Rows with weights of their own are like one row with as many vectors as all of them. */
static double iteration_time(const struct subject *x, const struct sched_loop *loop, int m, int g, int v,
			     int read, enum target_cache cache)
{
	const struct target *t = x->s->target;
	if (loop->own)
		return target_iteration_time(t, 1, (int)ceil(m * read * vectors_of_lines(x, v)),
					     TARGET_BEYOND);
	double time = target_iteration_time(t, m, g * v, cache);
	return read > g ? max_double(time, target_iteration_time(t, 1, read * v, cache)) : time;
}

/* The time until the rows of a tile are in the first-level cache, where the measured iterations find them [ns]. Those
 * of a level stay near; of all rows at once each block of columns reads all again. */
static double rows_time(const struct subject *x, const struct sched_loop *loop, int m)
{
	return x->all_rows ? ROW_BYTES * m * (double)loop->extent / x->s->target->l2_rate : 0;
}

/* Whether the registers hold a loop for m rows and n vectors.  The schedule keeps some of them for operands: with as
 * few as target_holds allows, back ends move sums to memory and back in each iteration.  In unrolled iterations each
 * row but the first has read, for each of the last ones, an element that its neighbour will read. */
static bool holds_loop(const struct subject *x, const struct sched_loop *loop, int m, int n)
{
	const struct target *t = x->s->target;
	int64_t shift = x->across == SCHED_NODES ? 0 : loop->shift[x->across];
	bool kept = shift > 0 && shift < x->unroll;
	return target_holds(t, m, n) && m * n <= x->s->accumulators && (!kept || m * n + (m - 1) * shift + n <= t->registers);
}

/* The time of one loop for m nodes and v vectors of columns, and of the further loops of the gates that
 * find no accumulator [ns].  A panel holds `panel` gates and is read whole, even if a loop needs a few of
 * them. */
static double loop_cost(const struct subject *x, const struct sched_loop *loop, int m, int v, int panel,
			enum target_cache cache)
{
	int g = sched_gates_at_once(x->s->accumulators, loop->gates, m * v);
	double time = 0;
	if (!holds_loop(x, loop, m, min_int(g, loop->gates) * v))
		return INFINITY;
	for (int first = 0; first < loop->gates; first += g) {
		int gates = min_int(g, loop->gates - first), last = (first + gates - 1) / panel;
		int read = min_int((last - first / panel + 1) * panel, loop->gates);
		time += iteration_time(x, loop, m, gates, v, read, cache) * (double)loop->extent +
			rows_time(x, loop, m) + loop_chain * x->s->target->multiply_add;
	}
	return time;
}

/* Whether the operand that columns run along differs between the rows of a tile. */
static bool is_apart(const struct subject *x, const struct sched_loop *loop)
{
	unsigned rows = x->across == SCHED_NODES ? (unsigned)SCHED_ROW : 1u << x->across;
	if (x->across == SCHED_NODES && loop->own)
		return true;
	return x->group->dims > 1 && loop->beside[x->along] & rows;
}

/* The time of a tile whose weights are in `cache` [ns]; `most` is the largest size of its set. */
static double tile_cost(const struct subject *x, int m, int v, int most, enum target_cache cache)
{
	double latency = x->s->target->multiply_add;
	double time = tile_chain * latency + v * (vector_chain * latency + m * x->after);
	for (size_t i = 0; i < x->group->loops.n; i++) {
		struct sched_loop loop = x->group->loops.at[i];
		int panel = sched_gates_at_once(x->s->accumulators, loop.gates, most * v);
		loop.own = is_apart(x, &loop);
		time += loop_cost(x, &loop, m, v, panel, cache);
	}
	return time;
}

/* The least time of a level of so many nodes, for one vector of columns [ns]. */
static double ideal_cost(const struct subject *x, int nodes)
{
	const struct target *t = x->s->target;
	double time = nodes * x->after, vector = (double)WEIGHT_BYTES * x->lanes;
	for (size_t i = 0; i < x->group->loops.n; i++) {
		const struct sched_loop *loop = &x->group->loops.at[i];
		bool beyond = loop->own || x->first == TARGET_BEYOND;
		double bandwidth = beyond ? t->l3_rate : t->l2_rate;
		time += (double)loop->gates * loop->extent *
			max_double(nodes * target_multiply_add_time(t),
				   (loop->own ? nodes : 1) * vector / bandwidth);
	}
	return time;
}

/* Times of tiles by their nodes [ns]: of the first tile of a level, and of the following ones. */
struct costs {
	double first[SCHED_MAX_NODES + 1], next[SCHED_MAX_NODES + 1];
};

/* The time of a level whose nodes are cut as the pass `tile` cuts them [ns]. */
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

/* How often a node goes through the rows of a block with the weights of one block of columns. */
static double count_repeats(const struct subject *x, const struct sched_tile *t)
{
	double n = 1;
	for (int d = 0; d < x->group->dims; d++)
		n *= d == t->along || d == t->across ? 1 : (double)x->group->extent[d];
	return n;
}

/* The time of so many rows of a node, those of a block, for one block of columns [ns].  A node goes through them
 * `repeats` times; only the first time is the weights' first. */
static double rows_cost(const struct sched_tile *t, const struct costs *c, int rows, double repeats)
{
	int first = rows;
	for (int i = t->sizes; i-- > 0;)
		first = t->nodes[i] <= rows ? t->nodes[i] : first;
	return level_cost(t, c, rows) - (c->first[first] - c->next[first]) * (1 - 1 / repeats);
}

/* The time of so many nodes, for each element along the dimension that a tile's rows run across [ns]. */
static double nodes_cost(const struct subject *x, const struct sched_tile *t, const struct costs *c, int nodes)
{
	if (t->across == SCHED_NODES)
		return level_cost(t, c, nodes);
	int extent = (int)x->group->extent[t->across], rows = t->block ? t->block : extent, rest = extent % rows;
	double repeats = count_repeats(x, t);
	double time = extent / rows * rows_cost(t, c, rows, repeats) + (rest ? rows_cost(t, c, rest, repeats) : 0);
	return nodes * time / extent;
}

/* The fewest rows for which the other operand is read again from node to node without being waited for. */
static int least_block(const struct subject *x, const struct sched_tile *t)
{
	const struct target *target = x->s->target;
	bool of_nodes = false;
	for (size_t i = 0; i < x->group->loops.n; i++)
		of_nodes |= (x->group->loops.at[i].beside[x->along] & SCHED_ROW) != 0;
	double rate = of_nodes ? target->l3_rate : target->l2_rate;
	double rows = READING_MARGIN * WEIGHT_BYTES * x->lanes / rate / target_multiply_add_time(target);
	return rows > t->nodes[0] ? (int)ceil(rows) : t->nodes[0];
}

/* Whether handing a block of a node's rows, for one block of columns, to another thread costs no more of its time than
 * cutting rows into blocks may. */
static bool is_worth_dividing(const struct subject *x, const struct sched_tile *t, double row_time)
{
	double share = block_cost - 1;
	return share * t->block * row_time * count_repeats(x, t) >= target_handing_time(x->s->target);
}

/* The smallest blocks of a tile's rows that cost little more than all rows at once: threads divide them.  Equal ones come
 * first. */
static int choose_block(const struct subject *x, struct sched_tile t, const struct costs *c)
{
	int64_t rows = t.across == SCHED_NODES ? 0 : x->group->extent[t.across];
	int least = rows ? least_block(x, &t) : 0, most = min_int((int)(rows / 2), SCHED_MAX_BLOCK);
	t.block = 0;
	double whole = rows ? nodes_cost(x, &t, c, 1) : 0;
	t.block = most;
	if (!rows || !is_worth_dividing(x, &t, block_cost * whole))
		return 0;
	for (int equal = 1; equal >= 0; equal--)
		for (t.block = least; t.block <= most; t.block++) {
			double time = equal && rows % t.block ? INFINITY : nodes_cost(x, &t, c, 1);
			if (time <= block_cost * whole && is_worth_dividing(x, &t, time))
				return t.block;
		}
	return 0;
}

/* Sets the sizes whose bits are in `mask`, and 1. */
static void set_sizes(struct sched_tile *t, unsigned mask)
{
	t->sizes = 0;
	for (int m = SCHED_MAX_NODES; m >= 1; m--)
		if (mask >> m & 1 || m == 1)
			t->nodes[t->sizes++] = m;
}

/* The time of a set of sizes relative to the ideal, in the mean over levels, plus the cost of its loop
 * bodies. */
static double mean_excess(const struct subject *x, const struct sched_tile *t, const struct costs *c,
			  const int *width)
{
	int64_t block = (int64_t)x->lanes * t->columns;
	double padded = (x->columns + block - 1) / block * block / (double)x->columns, sum = 0, bodies = 0;
	int widths = 0;
	for (; width[widths]; widths++)
		sum += nodes_cost(x, t, c, width[widths]) / t->columns / ideal_cost(x, width[widths]);
	for (int i = 0; i < t->sizes; i++)
		bodies += t->nodes[i] * t->columns * x->group->gates;
	return sum / widths * padded + bodies * body_cost;
}

static double weight_bytes(const struct sched_group *g, int64_t columns)
{
	double n = 0;
	for (size_t i = 0; i < g->loops.n; i++)
		n += (double)WEIGHT_BYTES * g->loops.at[i].gates * g->loops.at[i].extent * columns;
	return n;
}

/* Whether the weights of a block of columns stay in the first-level cache from tile to tile, beside the
 * rows. */
static bool stays_in_first_level(const struct subject *x, int m, int v)
{
	double rows = 0;
	for (size_t i = 0; i < x->group->loops.n; i++)
		rows += (double)ROW_BYTES * m * x->group->loops.at[i].extent;
	return weight_bytes(x->group, v * x->lanes) + rows <= x->s->target->l1_bytes;
}

static struct costs costs_of(const struct subject *x, int v, int most)
{
	struct costs c;
	for (int m = 1; m <= most; m++) {
		enum target_cache next = stays_in_first_level(x, m, v) ? TARGET_L1 : TARGET_L2;
		c.first[m] = tile_cost(x, m, v, most, x->first);
		c.next[m] = tile_cost(x, m, v, most, next);
	}
	return c;
}

/* Visits all sets of sizes up to `most` with the columns of `t`. */
static void try_sizes(const struct subject *x, struct sched_tile t, int most, const int *width,
		      sched_tile_visit *visit, void *user)
{
	struct costs c = costs_of(x, t.columns, most);
	if (!isfinite(c.next[most]))
		return;
	for (unsigned smaller = 0; smaller < 1u << most; smaller += 4) {
		if (__builtin_popcount(smaller | 1u << most | 2) > MOST_BODIES)
			continue;
		set_sizes(&t, smaller | 1u << most);
		t.block = choose_block(x, t, &c);
		double e = mean_excess(x, &t, &c, width);
		if (isfinite(e))
			visit(user, &t, e);
	}
}

/* A window; else the most that divides the extents of all innermost loops, up to four. */
static int choose_unroll(const struct sched_group *g)
{
	int n = 4;
	if (g->loops.n == 1 && g->loops.at[0].window > 1)
		return g->loops.at[0].window;
	for (size_t i = 0; i < g->loops.n; i++)
		while (n > 1 && g->loops.at[i].innermost % n)
			n--;
	return n;
}

/* Whether a node has many rows of a tile itself, along dimensions other than that of the columns. */
static bool has_rows_of_its_own(const struct sched_group *g)
{
	int large = 0;
	for (int d = 0; d < g->dims; d++)
		large += g->extent[d] >= LEAST_ROWS;
	return large > 1;
}

/* The numbers of nodes to expect at once: edges of a row, nodes of a level, which has one of each sequence, or all
 * rows. */
static const int *widths_of(const struct sched_plan *plan, const struct sched_group *g)
{
	if (g->over_edges)
		return edges_of_row;
	const struct sub_body *b = &plan->p->bodies.at[g->body];
	if (!sub_is_recursive(b) || b->domain == SUB_LEAF)
		return has_rows_of_its_own(g) ? few_or_many : whole_range;
	return plan->p->tree && plan->p->children == 1 ? batches : level_widths;
}

/* The time of a row and one vector of columns beside the products, each operation taken for a multiply-add
 * [ns]. */
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

/* The relative cost of a row whose vectors are computed `at_once` at a time: vectors, those past its end
 * included, and one for each iteration of the loop. */
static int64_t row_cost(int64_t vectors, int at_once)
{
	return (vectors + at_once - 1) / at_once * (at_once + 1);
}

/* Rows without products share no operand: each is computed on its own, as it lies in memory. */
static struct sched_tile choose_by_rows(const struct sched_group *g, struct sched_tile tile)
{
	int64_t vectors = (g->extent[tile.along] + tile.lanes - 1) / tile.lanes;
	tile.by_rows = true;
	for (int v = 2; v <= MOST_BY_ROWS; v++)
		if (row_cost(vectors, v) < row_cost(vectors, tile.columns))
			tile.columns = v;
	return tile;
}

bool sched_reads_images(const struct sched_group *g)
{
	bool own = false;
	for (int a = 0; g->loops.n == 1 && g->gates == 1 && g->dims > 2 && g->rows && a < 2; a++)
		own |= g->loops.at[0].operand[a] == (((1u << g->dims) - 1) | SCHED_ROW);
	return own && !g->edges && !g->over_edges;
}

bool sched_moves_images(const struct sched *s, const struct sched_group *g)
{
	double bytes = ROW_BYTES;
	for (int d = 0; d < g->dims; d++)
		bytes *= (double)g->extent[d];
	return g->dims > 1 && !g->gates && g->rows && !g->edges && !g->local && bytes > s->target->l1_bytes;
}

/* The lanes of vectors along a dimension of which so many elements are computed: fewer where half of them
 * would suffice, as what follows a row in memory is padding. */
static int lanes_for(int lanes, int64_t elements)
{
	while (lanes > LEAST_LANES && lanes / 2 >= elements)
		lanes /= 2;
	return lanes;
}

/* The same for rows that are images: threads divide one of them.  What cannot
 * be vectors, a transposition, goes along the neighbours that it reads in the outer loop, and along those that it stores
 * in the inner one: both are in the cache. */
static struct sched_tile choose_by_parts(const struct sched_group *g, struct sched_tile tile, bool vectors)
{
	if (vectors)
		tile = choose_by_rows(g, tile);
	tile.by_rows = false;
	tile.rows_outside = true;
	tile.across = tile.along == g->dims - 1 ? g->dims - 2 : g->dims - 1;
	tile.sizes = vectors ? 1 : 2;
	tile.nodes[0] = vectors ? 1 : TRANSPOSED_ROWS;
	tile.nodes[1] = 1;
	return tile;
}

/* Rows that are images, and are read through windows: the rows of a tile share what their windows have in common. */
static struct sched_tile choose_by_windows(const struct sched_group *g, struct sched_tile tile)
{
	tile = choose_by_parts(g, tile, true);
	tile.sizes = 0;
	for (int rows = WINDOW_ROWS; rows >= 1; rows /= 2)
		tile.nodes[tile.sizes++] = rows;
	tile.columns = 1;
	/* Vectors along channels keep the weights of all windows of an image: channel after channel. */
	tile.rows_outside = tile.along == g->dims - 1;
	return tile;
}

static struct subject subject_of(const struct sched *s, const struct sched_plan *plan,
				 const struct sched_group *g, const struct sched_tile *like)
{
	struct subject x = {s,
			    g,
			    g->extent[like->along],
			    like->lanes,
			    TARGET_L2,
			    after_loops(s, plan, g),
			    like->along,
			    like->across,
			    widths_of(plan, g) == whole_range,
			    like->unroll};
	if (weight_bytes(g, x.columns) > (double)LEAST_TEAM * s->target->l2_bytes)
		x.first = TARGET_BEYOND;
	return x;
}

/* Visits the tiles of all sizes whose rows run across the dimension that `t` says. */
static void try_columns(const struct sched *s, const struct sched_plan *plan, const struct sched_group *g,
			struct sched_tile t, sched_tile_visit *visit, void *user)
{
	struct subject x = subject_of(s, plan, g, &t);
	bool rows = g->rows || t.across != SCHED_NODES;
	for (t.columns = 1; t.columns <= MOST_COLUMNS; t.columns++)
		for (int most = 1; most <= (rows ? SCHED_MAX_NODES : 1); most++)
			try_sizes(&x, t, most, widths_of(plan, g), visit, user);
}

/* Whether blocks of columns go through the rows of a node in turn: the operand of the rows, read again for each block of
 * columns, does not stay in the second-level cache, and that of the columns does. */
static bool choose_rows_outside(const struct sched *s, const struct sched_group *g, const struct sched_tile *t)
{
	double kept = s->target->l2_bytes * 0.75;
	if (t->across == SCHED_NODES || t->along < 0 || g->loops.n != 1 || g->dims < 3)
		return false;
	const struct sched_loop *loop = &g->loops.at[0];
	int columns = loop->operand[0] >> t->along & 1 ? 0 : 1;
	return !(loop->operand[!columns] >> t->along & 1) && loop->bytes[!columns] > kept &&
	       loop->gates * loop->bytes[columns] <= kept;
}

/* Visits tiles by the rows of a matrix register and its parts. */
static void try_matrices(const struct target *target, const struct sched_group *g, const struct sched_tile *like,
			 sched_tile_visit *visit, void *user)
{
	for (int rows = target->matrix_rows; rows > 1; rows /= 2) {
		struct sched_tile t = sched_make_matrix_tile(target, g, *like, rows);
		visit(user, &t, NAN);
	}
}

void sched_each_tile(const struct sched *s, const struct sched_plan *plan, int group,
		     const struct sched_tile *like, sched_tile_visit *visit, void *user)
{
	const struct sched_group *g = &plan->groups.at[group];
	struct sched_tile t = *like;
	if (!g->dims || !g->gates)
		return;
	if (sched_fills_matrices(s->target, g, like)) {
		try_matrices(s->target, g, like, visit, user);
		return;
	}
	for (int i = 0; i <= g->dims; i++) {
		t.across = i ? g->dims - i : SCHED_NODES;
		t.rows_outside = choose_rows_outside(s, g, &t);
		if (t.across != t.along)
			try_columns(s, plan, g, t, visit, user);
	}
}

double sched_predict(const struct sched *s, const struct sched_plan *plan, int group,
		     const struct sched_tile *t)
{
	const struct sched_group *g = &plan->groups.at[group];
	if (!g->dims || !g->gates || t->nodes[0] > SCHED_MAX_NODES || sched_fills_matrices(s->target, g, t))
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

/* A row without dimensions has one chain of sums for each reduction, so several rows are computed at once: as many as
 * multiply-adds begin before the first of them ends. */
static struct sched_tile choose_chains(const struct target *t, const struct sched_group *g, struct sched_tile tile)
{
	double chains = t->multiply_add / target_multiply_add_time(t) / g->reductions;
	tile.nodes[0] = chains < 2 ? 1 : min_int((int)chains, SCHED_MAX_NODES);
	tile.sizes = tile.nodes[0] > 1 ? 2 : 1;
	tile.nodes[tile.sizes - 1] = 1;
	return tile;
}

/* The elements that a copy with a border has along a dimension without it; of another group all. */
static int64_t copied_along(const struct sched_plan *plan, const struct sched_group *g, int dim)
{
	const struct sub_program *p = plan->p;
	sub_ref copy = g->targets.at[0];
	if (!move_is_padded_copy(p, copy))
		return g->extent[dim];
	const struct sub_value *from = sub_at(p, sub_at(p, copy)->arg[0].value);
	return p->vars.at[from->var[from->vars - g->dims + dim]].extent;
}

static struct sched_tile choose_tile(const struct sched *s, const struct sched_plan *plan,
				     const struct sched_group *g, int along, bool vectors)
{
	struct sched_tile tile = {
	    .sizes = 1, .nodes = {1}, .columns = 1, .unroll = 1, .across = SCHED_NODES, .along = along,
	    .lanes = s->lanes};
	if (g->dims)
		tile.lanes =
		    lanes_for(tile.lanes, g->local ? copied_along(plan, g, along) : g->extent[along]);
	struct best best = {tile, INFINITY};
	if (sched_moves_images(s, g))
		return choose_by_parts(g, tile, vectors);
	if (g->dims && !g->gates && g->rows)
		return choose_by_rows(g, tile);
	if (!g->dims && g->rows && g->products)
		return choose_chains(s->target, g, tile);
	if (!g->dims || !g->gates)
		return tile;
	best.tile.unroll = tile.unroll = choose_unroll(g);
	if (vectors && sched_reads_images(g))
		return choose_by_windows(g, tile);
	tile.pipelined = sched_fills_matrices(s->target, g, &tile);
	if (tile.pipelined)
		return sched_make_matrix_tile(s->target, g, tile, s->target->matrix_rows);
	sched_each_tile(s, plan, g - plan->groups.at, &tile, keep_best, &best);
	best.tile.cut = sched_choose_cut(s, plan, g, &best.tile);
	return best.tile;
}

/* Levels of a span, so many that a tree's is one: each run decides whether threads divide it by subtrees. */
enum { USUAL_SPAN = 16 };

void sched_choose(struct sched *s, const struct sched_plan *plan, const struct target *target)
{
	struct arena *a = plan->p->arena;
	*s = (struct sched){.target = target,
			    .dynamic_batch = true,
			    .dense_index = true,
			    .peel = true,
			    .align = true,
			    .persist = true,
			    .specialize_leaf = true,
			    .joins_leaves = true,
			    .unroll = plan->p->tree ? USUAL_SPAN : 1,
			    .lanes = target->lanes};
	/* the other registers hold operands: 3 of 16, 6 of 32 */
	s->accumulators = target->registers * 13 / 16;
	for (size_t g = 0; g < plan->groups.n; g++) {
		vec_push(a, &s->tiles, (struct sched_tile){0});
		vec_push(a, &s->strategies, IMAGE_CHEAPEST);
	}
	sched_choose_order(s, plan);
	for (size_t g = 0; g < plan->groups.n; g++)
		s->tiles.at[g] = choose_tile(s, plan, &plan->groups.at[g], s->tiles.at[g].along, s->tiles.at[g].lanes > 1);
	sched_choose_layout(s, plan);
}
