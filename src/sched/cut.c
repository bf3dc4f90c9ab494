/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Where a reduction can be cut into pieces, which the nest runs one after the other (ilir/lower_cut.c), and where the cost
 * model expects that to be faster.
 *
 * An iteration of a tile reads vectors of the operand that columns run along, and elements of the rows' operand.  Where
 * these lie apart, as the channels of an image do, it reads a cache line of them for a few elements.  Over a long reduction
 * the first level keeps neither from tile to tile.  Where reading both from the second level takes longer than the
 * multiply-adds, pieces that the first level holds are faster, although sums are parked between them. */
#include "sched/sched.h"

/* The share of a piece's time that parking its sums may take. */
static const double parking_share = 0.1;

enum {
	ELEMENT_BYTES = 4,
	LEAST_TILES = 4 /* that read a piece again from the first level */
};

int64_t sched_cut_extent(const struct sched_plan *plan, const struct sched_group *g)
{
	return g->loops.n ? plan->p->vars.at[g->loops.at[0].first].extent : 0;
}

const char *sched_why_uncut(const struct sched_plan *plan, const struct sched_group *g, const struct sched_tile *t)
{
	if (!g->reductions)
		return "the group reduces nothing";
	if (!g->rows || !g->dims || plan->p->bodies.at[g->body].domain == SUB_AT_BINDING)
		return "sums are kept from piece to piece for rows with dimensions only";
	if (g->edges || g->over_edges || g->sort || g->local)
		return "sums of edges, of sorted rows and of local groups are not kept from piece to piece";
	if (g->loops.n > 1)
		return "another reduction of the group follows or precedes it";
	if (!g->loops.at[0].whole)
		return "its loop is not at each element of the group, or reads a concatenation";
	if (t->by_rows)
		return "by rows nothing of it is used again";
	return t->cut >= sched_cut_extent(plan, g) ? "the pieces are no smaller than it" : NULL;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* What the cost model knows of the operands of a tiled loop. */
struct operands {
	const struct target *target;
	int vectors;	/* that an iteration reads along the columns */
	double columns; /* their bytes */
	int64_t step;	/* elements by which the rows of a tile are apart */
};

/* Bytes that an iteration of a tile of m rows reads: the rows' elements stand in a row of memory that begins anywhere in a
 * line. */
static double bytes_of_iteration(const struct operands *o, int m)
{
	return o->columns + o->target->line_bytes + (m - 1) * (double)(o->step * ELEMENT_BYTES);
}

/* Nanoseconds of iterations by tiles of all of a node's rows that blocks have: of multiply-adds, and of reading from the
 * second level. */
struct times {
	double adding, reading;
};

static void add_rows(struct times *times, const struct operands *o, const struct sched_tile *t, int64_t rows, int64_t blocks)
{
	for (int i = 0; i < t->sizes; i++) {
		double tiles = (double)(rows / t->nodes[i] * blocks);
		times->adding += tiles * target_iteration_time(o->target, t->nodes[i], o->vectors, TARGET_L2);
		times->reading += tiles * bytes_of_iteration(o, t->nodes[i]) / o->target->l2_rate;
		rows %= t->nodes[i];
	}
}

static struct times times_of(const struct operands *o, const struct sched_tile *t, int64_t rows)
{
	struct times times = {0, 0};
	int64_t block = t->block ? t->block : rows;
	add_rows(&times, o, t, block, rows / block);
	add_rows(&times, o, t, rows % block, 1);
	return times;
}

/* How many tiles of a node use the operand of a block of columns. */
static double tiles_of_columns(const struct sched_group *g, const struct sched_tile *t)
{
	double n = 1.0 / t->nodes[0];
	for (int d = 0; d < g->dims; d++)
		n *= d == t->along ? 1 : (double)g->extent[d];
	return n;
}

/* The step along the rows of a tile of the operand that is read a line at a time; 0 = there is none. */
static int64_t find_step(const struct sched_loop *loop, const struct sched_tile *t)
{
	int columns = loop->operand[0] >> t->along & 1 ? 0 : 1;
	unsigned rows = loop->operand[!columns];
	bool apart = rows >> t->across & 1 && !(rows >> t->along & 1);
	return apart && loop->innermost == loop->extent ? loop->step[!columns] : 0;
}

/* The largest piece of at most so many iterations that tiles of unrolled iterations fill; of those that divide the whole, if
 * one is not much smaller. */
static int64_t round_piece(int64_t extent, int64_t most, int unroll)
{
	int64_t largest = most - most % unroll;
	for (int64_t n = largest; n > largest / 2; n -= unroll)
		if (extent % n == 0)
			return n;
	return largest;
}

/* The piece whose operands the first level keeps, if parking sums between pieces takes a small share of its time. */
static int choose_piece(const struct operands *o, const struct sched_loop *loop, const struct sched_tile *t)
{
	double kept = o->target->kept_share * o->target->l1_bytes / bytes_of_iteration(o, t->nodes[0]);
	int64_t piece = round_piece(loop->extent, (int64_t)least(kept, (double)loop->extent / 2), t->unroll);
	double parking = 2 * o->columns * t->nodes[0] / o->target->l2_rate;
	double time = (double)piece * target_iteration_time(o->target, t->nodes[0], o->vectors, TARGET_L2);
	return parking <= parking_share * time ? (int)piece : 0;
}

int sched_choose_cut(const struct sched *s, const struct sched_plan *plan, const struct sched_group *g,
		     const struct sched_tile *t)
{
	struct sched_tile tile = *t;
	tile.cut = 1;
	if (t->across == SCHED_NODES || t->lanes < 2 || sched_why_uncut(plan, g, &tile))
		return 0;
	const struct sched_loop *loop = &g->loops.at[0];
	struct operands o = {.target = s->target, .step = find_step(loop, t)};
	o.vectors = sched_gates_at_once(s->accumulators, loop->gates, t->nodes[0] * t->columns) * t->columns;
	o.columns = (double)ELEMENT_BYTES * t->lanes * o.vectors;
	struct times times = times_of(&o, t, g->extent[t->across]);
	bool stays = bytes_of_iteration(&o, t->nodes[0]) * (double)loop->extent <= s->target->l1_bytes;
	if (!o.step || stays || times.reading <= times.adding || tiles_of_columns(g, t) < LEAST_TILES)
		return 0;
	return choose_piece(&o, loop, t);
}
