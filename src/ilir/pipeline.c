/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: software pipelining of tiles, as the schedule specifies.  The epilogue of a tile, a loop over its
 * rows that computes what follows its sums, is cut into pieces, which run between the steps of the sums of
 * the next tile; that of the last tile runs after its own.
 *
 *                                           alloc both : i32 [2, 16, 16] parked
 *     for n in b..e step 16 matrix          for n in b..e step 16 matrix
 *       alloc sum : i32 [16, 16] parked       let turn = mod(div(n - b, 16), 2)
 *       ..                                    let before = max(n - 16, b);  let ready = select(n == b, 0, 16)
 *       for k in 0..64 step 16          ->    ..
 *         matrix dot4 sums, ..                for k in 0..64 step 16
 *       matrix spill sums = sum[0..15]          matrix dot4 sums, ..
 *       for r in 0..16                          for r in div(k, 16) * 4..min((div(k, 16) + 1) * 4, ready)
 *         y[n + r] = f(sum[r])                    y[before + r] = f(both[1 - turn, r])
 *                                             matrix spill sums = both[turn, 0..15]
 *                                             for r in select(n + 16 < e, 16, 0)..16
 *                                               y[n + r] = f(both[turn, r])
 *
 * So matrix registers multiply while vectors compute what follows.  What the epilogue reads of registers has
 * two copies, used in turn.  The loop keeps its range, and is the only statement but for the copies: a
 * kernel's loops over rows still follow each other.
 *
 * It is left as it is where an iteration may access what another one stores, where no loop of sums has a
 * constant number of steps, or where values that the epilogue needs cannot be computed again for the tile
 * before.
 *
 * Needs: fetch_ahead has run, which looks for the epilogue behind the loops. */
#include "ilir/passes.h"

enum { COPIES = 2 };

static const struct ilir_type index_type = {ILIR_INDEX, 1};

/* A loop over tiles. */
struct pipeline {
	struct ilir_module *m;
	const struct ilir_stmt *loop;
	const struct ilir_stmt *rows; /* the epilogue, the last statement */
	int64_t steps;		      /* of all loops of sums */
	VEC(ilir_buffer) own;	      /* registers of the body that the epilogue uses */
	VEC(ilir_buffer) copies;      /* and their copies */
	VEC(const struct ilir_stmt *) values; /* lets of the body that the epilogue needs, the last one first */
	struct map used;   /* variables and registers of the epilogue and of these, by their expressions and buffers */
	struct map stored; /* buffers that the body stores to */
	ilir_expr turn, before, ready;
};

/* --- what there is --- */

static void note_entry(struct map *map, uint32_t id)
{
	map_add(map, (const char *)&id, sizeof id, 1);
}

static bool has_entry(const struct map *map, uint32_t id)
{
	return map_get(map, (const char *)&id, sizeof id) > 0;
}

static void note_stored(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct pipeline *p = context;
	(void)m;
	if (s->kind == ILIR_STORE)
		note_entry(&p->stored, s->store.buffer.i);
}

struct sums {
	bool registers, memory; /* what a loop stores to */
};

static void note_sums(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct sums *sums = context;
	bool store = s->kind == ILIR_STORE;
	bool memory = store && ilir_buffer_at(m, s->store.buffer)->kind != ILIR_REGISTER;
	sums->registers |= (store && !memory) || s->kind == ILIR_DOT;
	sums->memory |= memory || s->kind == ILIR_PREFETCH;
}

/* The steps of a loop that computes sums only; 0 = it is none, or their number is not constant. */
static int64_t count_steps(const struct pipeline *p, const struct ilir_stmt *s)
{
	struct sums sums = {false, false};
	if (s->kind != ILIR_FOR || s->loop.kind != ILIR_SERIAL || s == p->rows ||
	    ilir_loops_over_rows(p->m, s))
		return 0;
	ilir_visit_block(p->m, s->loop.body, &(struct ilir_visit){.stmt = note_sums, .context = &sums});
	return sums.registers && !sums.memory ? ilir_trip_count(p->m, s) : 0;
}

/* --- what the epilogue needs --- */

static void note_use(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct pipeline *p = context;
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op == ILIR_VAR)
		note_entry(&p->used, ilir_var_ref(p->m, n->var).i);
	else if (n->op == ILIR_LOAD)
		note_entry(&p->used, n->buffer.i | 1u << 31);
}

static bool uses_register(const struct pipeline *p, ilir_buffer b)
{
	return has_entry(&p->used, b.i | 1u << 31);
}

struct repetition {
	const struct pipeline *p;
	bool can;
};

/* A value may be computed again later if it reads only what the loop does not store. */
static void check_repetition(const struct ilir_module *m, ilir_expr e, void *context)
{
	struct repetition *r = context;
	const struct ilir_node *n = ilir_at(m, e);
	r->can &= n->op != ILIR_LOAD || (ilir_buffer_at(m, n->buffer)->kind != ILIR_REGISTER &&
					 !has_entry(&r->p->stored, n->buffer.i));
}

/* Finds the lets that the epilogue needs, going back from it.  False if one cannot be computed again. */
static bool find_values(struct pipeline *p)
{
	VEC(const struct ilir_stmt *) lets = {0};
	struct repetition r = {p, true};
	for (const struct ilir_stmt *s = p->loop->loop.body; s != p->rows; s = s->next)
		if (s->kind == ILIR_LET)
			vec_push(p->m->arena, &lets, s);
	while (r.can && lets.n) {
		const struct ilir_stmt *let = lets.at[--lets.n];
		if (!has_entry(&p->used, ilir_var_ref(p->m, let->let.var).i))
			continue;
		ilir_visit_expr(p->m, let->let.value,
				&(struct ilir_visit){.expr = check_repetition, .context = &r});
		ilir_visit_expr(p->m, let->let.value, &(struct ilir_visit){.expr = note_use, .context = p});
		vec_push(p->m->arena, &p->values, let);
	}
	return r.can;
}

/* Lists the registers that the body allocates; those that the epilogue uses get copies.  False if one has too
 * many dimensions for another. */
static bool copy_registers(struct pipeline *p)
{
	for (const struct ilir_stmt *s = p->loop->loop.body; s != p->rows; s = s->next) {
		if (s->kind != ILIR_ALLOC || !uses_register(p, s->alloc))
			continue;
		struct ilir_buffer_decl b = *ilir_buffer_at(p->m, s->alloc);
		if (b.matrix || b.rank == ILIR_MAX_RANK)
			return false;
		memmove(b.dim + 1, b.dim, b.rank * sizeof *b.dim);
		b.dim[0] = (struct ilir_dim){ilir_dim_name(p->m, "tile_turn"), IMAGE_ONE, COPIES, COPIES};
		b.rank++;
		b.parked = true;
		vec_push(p->m->arena, &p->own, s->alloc);
		vec_push(p->m->arena, &p->copies, ilir_new_buffer(p->m, b));
	}
	return p->own.n > 0;
}

/* Reads a loop over tiles; false if it stays as it is. */
static bool read_pipeline(struct pipeline *p, const struct ilir_tiling *tiling, struct ilir_module *m,
			  const struct ilir_stmt *loop)
{
	bool tiles =
	    loop->kind == ILIR_FOR && (loop->loop.kind == ILIR_SERIAL || loop->loop.kind == ILIR_MATRIX);
	*p = (struct pipeline){.m = m, .loop = loop, .used = map_in(m->arena), .stored = map_in(m->arena)};
	if (!tiles || !ilir_is_pipelined(tiling, loop->loop.var) || ilir_trip_count(m, loop) == 1)
		return false;
	for (p->rows = loop->loop.body; p->rows && p->rows->next; p->rows = p->rows->next)
		;
	if (!p->rows || !ilir_loops_over_rows(m, p->rows) || !ilir_is_const(m, p->rows->loop.begin, 0) ||
	    p->rows->loop.step != 1)
		return false;
	for (const struct ilir_stmt *s = loop->loop.body; s != p->rows; s = s->next)
		p->steps += count_steps(p, s);
	ilir_visit_block(m, loop->loop.body, &(struct ilir_visit){.stmt = note_stored, .context = p});
	ilir_visit_block(m, p->rows, &(struct ilir_visit){note_stored, note_use, p});
	return p->steps && !ilir_interleaving_clash(m, loop) && find_values(p) && copy_registers(p);
}

/* --- rewriting --- */

/* Replaces registers by one of their copies. */
struct exchange {
	const struct pipeline *p;
	ilir_expr turn;
};

static ilir_buffer find_copy(const struct pipeline *p, ilir_buffer b)
{
	for (size_t i = 0; i < p->own.n; i++)
		if (p->own.at[i].i == b.i)
			return p->copies.at[i];
	return (ilir_buffer){0};
}

static ilir_expr exchange_load(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct exchange *x = context;
	const struct ilir_node n = *ilir_at(m, e);
	ilir_buffer copy = n.op == ILIR_LOAD ? find_copy(x->p, n.buffer) : (ilir_buffer){0};
	ilir_expr index[ILIR_MAX_RANK] = {x->turn};
	if (!copy.i)
		return e;
	for (int i = 0; i < n.args; i++)
		index[i + 1] = ilir_arg(m, e, i);
	return ilir_load(m, copy, index, n.args + 1);
}

static struct ilir_stmt *exchange_statement(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	const struct exchange *x = context;
	(void)m;
	if (s->kind == ILIR_ALLOC && find_copy(x->p, s->alloc).i)
		return NULL;
	if (s->kind != ILIR_STORE || !find_copy(x->p, s->store.buffer).i)
		return s;
	memmove(s->store.index + 1, s->store.index, s->store.indices++ * sizeof *s->store.index);
	s->store.index[0] = x->turn;
	s->store.buffer = find_copy(x->p, s->store.buffer);
	return s;
}

static struct ilir_stmt *exchange_registers(const struct pipeline *p, const struct ilir_stmt *block,
					    ilir_expr turn)
{
	struct exchange x = {p, turn};
	return ilir_rewrite_block(p->m, block, &(struct ilir_rewrite){exchange_load, exchange_statement, &x});
}

/* A copy of a statement, alone. */
static struct ilir_stmt *copy_alone(const struct pipeline *p, const struct ilir_stmt *s)
{
	struct ilir_stmt *copy = arena_copy(p->m->arena, s, sizeof *s);
	copy->next = NULL;
	return copy;
}

/* Some rows of the epilogue of the tile that begins at `first`, with the registers of its turn. */
static struct ilir_stmt *make_rows(const struct pipeline *p, ilir_expr first, ilir_expr turn, ilir_expr begin,
				   ilir_expr end)
{
	struct ilir_stmt *rows = copy_alone(p, p->rows), *block = NULL;
	rows->loop.begin = begin;
	rows->loop.end = end;
	for (size_t i = p->values.n; i-- > 0;)
		block = ilir_append(block, copy_alone(p, p->values.at[i]));
	block = exchange_registers(p, ilir_append(block, rows), turn);
	return ilir_substitute_block(p->m, ilir_clone_block(p->m, block, NULL), p->loop->loop.var, first);
}

/* x * by / divisor, for constants by and divisor. */
static ilir_expr scale_down(struct ilir_module *m, ilir_expr x, int64_t by, int64_t divisor)
{
	return ilir_binary(m, ILIR_DIV, ilir_binary(m, ILIR_MUL, x, ilir_index(m, by)),
			   ilir_index(m, divisor));
}

/* The rows that run in a step of a loop, of which so many steps are in loops before it. */
static struct ilir_stmt *make_step_rows(const struct pipeline *p, const struct ilir_stmt *loop, int64_t before)
{
	struct ilir_module *m = p->m;
	int64_t rows = ilir_trip_count(m, p->rows);
	ilir_expr from = ilir_binary(m, ILIR_SUB, ilir_var_ref(m, loop->loop.var), loop->loop.begin);
	ilir_expr step = ilir_binary(m, ILIR_DIV, from, ilir_index(m, loop->loop.step));
	ilir_expr at = ilir_binary(m, ILIR_ADD, step, ilir_index(m, before)),
		  next = ilir_binary(m, ILIR_ADD, at, ilir_index(m, 1));
	ilir_expr end = ilir_binary(m, ILIR_MIN, scale_down(m, next, rows, p->steps), p->ready),
		  other = ilir_binary(m, ILIR_SUB, ilir_index(m, 1), p->turn);
	return make_rows(p, p->before, other, scale_down(m, at, rows, p->steps), end);
}

/* Defines an index at the beginning of an iteration. */
static struct ilir_stmt *define_index(struct pipeline *p, const char *name, ilir_expr value, ilir_expr *ref)
{
	ilir_var v = ilir_new_var(p->m, name, index_type);
	*ref = ilir_var_ref(p->m, v);
	return ilir_let(p->m, v, value);
}

/* Which copies the tile has, where the tile before it begins, and how many rows of that have sums. */
static struct ilir_stmt *begin_iteration(struct pipeline *p)
{
	struct ilir_module *m = p->m;
	ilir_expr n = ilir_var_ref(m, p->loop->loop.var), begin = p->loop->loop.begin,
		  size = ilir_index(m, p->loop->loop.step);
	ilir_expr tiles = ilir_binary(m, ILIR_DIV, ilir_binary(m, ILIR_SUB, n, begin), size);
	ilir_expr first = ilir_binary(m, ILIR_EQ, n, begin);
	struct ilir_stmt *block =
	    define_index(p, "turn", ilir_binary(m, ILIR_MOD, tiles, ilir_index(m, COPIES)), &p->turn);
	block = ilir_append(block,
			    define_index(p, "before",
					 ilir_binary(m, ILIR_MAX, ilir_binary(m, ILIR_SUB, n, size), begin),
					 &p->before));
	return ilir_append(
	    block,
	    define_index(p, "ready", ilir_ternary(m, ILIR_SELECT, first, ilir_index(m, 0), p->rows->loop.end),
			 &p->ready));
}

/* The rows of the last tile, which has none after it. */
static struct ilir_stmt *make_last_rows(const struct pipeline *p)
{
	struct ilir_module *m = p->m;
	ilir_expr n = ilir_var_ref(m, p->loop->loop.var);
	ilir_expr next = ilir_binary(m, ILIR_ADD, n, ilir_index(m, p->loop->loop.step));
	ilir_expr more = ilir_binary(m, ILIR_LT, next, p->loop->loop.end);
	ilir_expr begin = ilir_ternary(m, ILIR_SELECT, more, p->rows->loop.end, ilir_index(m, 0));
	return make_rows(p, n, p->turn, begin, p->rows->loop.end);
}

static struct ilir_stmt *pipeline_tiles(struct pipeline *p)
{
	struct ilir_module *m = p->m;
	struct ilir_stmt *loop = copy_alone(p, p->loop), *body = begin_iteration(p), *block = NULL;
	int64_t steps = 0;
	for (const struct ilir_stmt *s = p->loop->loop.body; s != p->rows; s = s->next) {
		struct ilir_stmt *own = exchange_registers(p, copy_alone(p, s), p->turn);
		int64_t count = count_steps(p, s);
		if (count)
			own->loop.body = ilir_append(own->loop.body, make_step_rows(p, s, steps));
		steps += count;
		body = ilir_append(body, own);
	}
	loop->loop.body = ilir_append(body, make_last_rows(p));
	for (size_t i = 0; i < p->copies.n; i++)
		block = ilir_append(block, ilir_alloc(m, p->copies.at[i]));
	return ilir_append(block, loop);
}

static struct ilir_stmt *pipeline_loop(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	struct pipeline p;
	return read_pipeline(&p, context, m, s) ? pipeline_tiles(&p) : s;
}

void ilir_pipeline(struct ilir_module *m, struct ilir_tiling *tiling)
{
	if (tiling->pipelined.n)
		ilir_rewrite_module(m, &(struct ilir_rewrite){.stmt = pipeline_loop, .context = tiling});
}
