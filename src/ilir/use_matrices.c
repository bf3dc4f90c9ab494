/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: computes sums of dot products of bytes, and of blocks of bf16, by matrix registers, where the machine has them (tiles of AMX).
 * Of bytes a tile of the schedule must have two rows or more: one row stays what it is.
 *
 *     for n1 in .. step 2                              for n1 in .. step 2 matrix
 *       for q in 0..64 step 2                            alloc matrix sums : i32 [2, 16]; rows : i32 [2, 16]; panel : i32 [16, 16]
 *         s[0, ramp(16, 0)] = dot4(.. x[n1, q],   ->     matrix fill sums = s[0, ramp(16, 0)] to s[1, ramp(16, 0)]
 *             w[q, ramp(16, 0)], s[0, ramp(16, 0)])      for q1 in 0..64 step 16
 *         s[1, ramp(16, 0)] = dot4(.. x[n1 + 1, q],        matrix fill rows = x[n1, ramp(16, q1)] to x[n1 + 1, ramp(16, q1)]
 *             w[q, ramp(16, 0)], s[1, ramp(16, 0)])        matrix fill panel = w[q1, ramp(16, 0)] to w[q1 + 15, ramp(16, 0)]
 *         (the same for q + 1)                             matrix dot4 sums, rows, panel
 *                                                        matrix spill sums = s[0, ramp(16, 0)] to s[1, ramp(16, 0)]
 *
 * The packed weights stay as they are: 16 words of four bytes of each of up to 16 successive q are what a matrix register of
 * the second factor holds.  Rows that do not follow each other in memory, those of children, are copied to a register first, 16 words at a
 * time.  Sums of i32 wrap, so the order in which products are added does not matter.
 *
 * A loop may have several planes of rows (matrix_nest.h), such as the upper and the lower bytes of integers.  As many columns are
 * computed at once as there are registers for their sums, and each panel is multiplied by all planes when it has been filled:
 *
 *     matrix fill rows = high[n1, ramp(16, q1)] to ..;  matrix fill rows.1 = low[n1, ramp(16, q1)] to ..
 *     matrix fill panel = w[q1, 0, ramp(16, 0)] to ..;  matrix dot4 sums, rows, panel;    matrix dot4 sums.1, rows.1, panel
 *     matrix fill panel = w[q1, 1, ramp(16, 0)] to ..;  matrix dot4 sums.2, rows, panel;  matrix dot4 sums.3, rows.1, panel
 *
 * In loops over blocks of bf16 (bf16_nest.c) a block is one product, and the sums are of f32:
 *
 *     for b in 0..8 { .. }    ->    for b in 0..8 { matrix fill rows = x[n1, b, ramp(16, 0)] to ..; matrix fill panel = w[b, 0, ramp(16, 0)]
 *                                                   to w[b, 15, ramp(16, 0)]; matrix dot_bf16 sums, rows, panel }
 *
 * A loop stays what it is where sums of two registers may share words, or rows make no planes of equal numbers of rows.
 *
 * Needs: unroll has run. */
#include "ilir/matrix_nest.h"
#include "ilir/passes.h"

/* What a matrix register holds: sums, or the first or the second factor. */
enum role { SUMS, FLOAT_SUMS, ROWS, PANEL };

/* The matrix registers of a loop. */
struct registers {
	const struct ilir_stmt *around; /* NULL = no loop that can be a matrix loop is around */
	ilir_buffer at[ILIR_MATRICES];
	enum role role[ILIR_MATRICES];
	int n;
	bool used;   /* by a nest in its body */
	bool inside; /* there is a matrix loop in its body */
	bool denied; /* a loop around it has some */
};

static const struct ilir_type index_type = {ILIR_INDEX, 1};

/* --- registers --- */

/* Whether the i-th register has a role and a shape. */
static bool has_shape(const struct ilir_module *m, const struct registers *r, int i, enum role role,
		      const struct ilir_dim *dim)
{
	const struct ilir_dim *own = ilir_buffer_at(m, r->at[i])->dim;
	return r->role[i] == role && own[0].name == dim[0].name && own[0].extent == dim[0].extent &&
	       own[1].name == dim[1].name && own[1].extent == dim[1].extent;
}

/* The registers of a role and a shape that there are or that can be made. */
static int count_room(const struct ilir_module *m, const struct registers *r, enum role role,
		      const struct ilir_dim *dim)
{
	int room = ILIR_MATRICES - r->n;
	for (int i = 0; i < r->n; i++)
		room += has_shape(m, r, i, role, dim);
	return room;
}

/* The n-th matrix register of a role and a shape, n counted from 0; makes it if there is room. */
static ilir_buffer take_register(struct ilir_module *m, struct registers *r, enum role role,
				 const struct ilir_dim *dim, int n)
{
	static const char *const name[] = {[SUMS] = "sums", [FLOAT_SUMS] = "sums", [ROWS] = "rows", [PANEL] = "panel"};
	for (int i = 0; i < r->n; i++)
		if (has_shape(m, r, i, role, dim) && n-- == 0)
			return r->at[i];
	if (r->n == ILIR_MATRICES)
		return (ilir_buffer){0};
	struct ilir_buffer_decl b = {.name = name[role],
				     .kind = ILIR_REGISTER,
				     .dtype = role == FLOAT_SUMS ? ILIR_F32 : ILIR_I32,
				     .rank = 2,
				     .dim = {dim[0], dim[1]},
				     .matrix = true};
	r->role[r->n] = role;
	return r->at[r->n++] = ilir_new_buffer(m, b);
}

/* Takes up to `most` registers; returns their number. */
static int take_registers(struct ilir_module *m, struct registers *r, enum role role,
			  const struct ilir_dim *dim, int most, ilir_buffer *list)
{
	int n = 0;
	while (n < most && (list[n] = take_register(m, r, role, dim, n)).i)
		n++;
	return n;
}

static struct ilir_dim make_dim(int name, int64_t extent)
{
	return (struct ilir_dim){name, IMAGE_ONE, extent, extent};
}

/* The registers of a nest: sums; and the factors, of whole matrix registers of words and of what is left of
 * the words. */
struct chosen {
	int sums, rows[2];
	ilir_buffer sum[ILIR_MATRICES], row[2][ILIR_MATRICES], panel[2];
};

static int column_name(const struct matrix_nest *t)
{
	const struct ilir_stmt *s = t->products.at[0].store;
	return ilir_buffer_at(t->m, s->store.buffer)->dim[s->store.indices - 1].name;
}

/* The planes that a column multiplies. */
static int count_planes(const struct matrix_nest *t, int column)
{
	int n = 0;
	for (int p = 0; p < t->planes; p++)
		n += ilir_multiplies_plane(t, p, column);
	return n;
}

static int count_sums_of_column(const struct matrix_nest *t)
{
	int most = 0;
	for (int c = 0; c < t->columns; c++)
		most = count_planes(t, c) > most ? count_planes(t, c) : most;
	return most;
}

/* The registers of sums that are used where there is room for so many, and whole columns are computed at once. */
static int count_used_sums(const struct matrix_nest *t, int room)
{
	int most = 0, sums = 0;
	for (int c = 0; c < t->columns; c++) {
		sums = sums + count_planes(t, c) > room ? 0 : sums;
		sums += count_planes(t, c);
		most = sums > most ? sums : most;
	}
	return most;
}

/* Takes at most so many registers for sums, and for rows of whole registers of words, one for each plane.
 * What is left of the words is done for one plane after the other.  False if there is none for something, or
 * too few for the sums of a column. */
static bool take_all(const struct matrix_nest *t, struct registers *r, struct chosen *c, int planes, int sums)
{
	int64_t length[2] = {t->words >= ILIR_MATRIX_WORDS ? ILIR_MATRIX_WORDS : 0,
			     t->words % ILIR_MATRIX_WORDS};
	struct ilir_dim rows = make_dim(ilir_dim_name(t->m, "tile_row"), t->rows_of_plane),
			columns = make_dim(column_name(t), ILIR_MATRIX_WORDS);
	bool enough = true;
	for (int i = 0; i < 2; i++) {
		struct ilir_dim words = make_dim(ilir_dim_name(t->m, "tile_word"), length[i]);
		if (!length[i])
			continue;
		c->rows[i] = take_registers(t->m, r, ROWS, (struct ilir_dim[]){rows, words}, i ? 1 : planes,
					    c->row[i]);
		c->panel[i] = take_register(t->m, r, PANEL, (struct ilir_dim[]){words, columns}, 0);
		enough &= c->rows[i] && c->panel[i].i;
	}
	struct ilir_dim dim[2] = {rows, columns};
	enum role sums_role = t->op == ILIR_DOT4 ? SUMS : FLOAT_SUMS;
	int room = count_room(t->m, r, sums_role, dim);
	c->sums = take_registers(t->m, r, sums_role, dim, count_used_sums(t, room < sums ? room : sums), c->sum);
	return enough && c->sums >= count_sums_of_column(t);
}

/* Takes the fewest registers that a nest needs, or none. */
static bool reserve_registers(const struct matrix_nest *t, struct registers *r)
{
	struct registers before = *r;
	struct chosen c = {0};
	if (take_all(t, r, &c, 1, count_sums_of_column(t)))
		return true;
	*r = before;
	return false;
}

/* Reserves registers for all nests of the body of a loop, before one of them takes those that are left. */
static void reserve_all(struct ilir_module *m, const struct ilir_stmt *s, struct registers *r)
{
	for (; s; s = s->next) {
		struct matrix_nest t;
		if (s->kind == ILIR_FOR && ilir_read_matrix_nest(&t, m, s))
			reserve_registers(&t, r);
		if (s->kind == ILIR_IF) {
			reserve_all(m, s->branch.then, r);
			reserve_all(m, s->branch.otherwise, r);
		}
	}
}

/* --- statements --- */

/* The vector of so many words that a row has from `at` on. */
static ilir_expr words_of_row(const struct matrix_nest *t, int row, ilir_expr at, int words)
{
	struct ilir_module *m = t->m;
	ilir_expr load = t->row[row], index[ILIR_MAX_RANK];
	int n = ilir_at(m, load)->args;
	for (int d = 0; d < n; d++)
		index[d] = ilir_arg(m, load, d);
	index[n - 1] = words > 1 ? ilir_ramp(m, at, words, 1) : at;
	return ilir_load(m, ilir_at(m, load)->buffer, index, n);
}

/* Copies words of all rows of a plane to a register, by vectors that every back end has. */
static struct ilir_stmt *copy_rows(const struct matrix_nest *t, int plane, ilir_buffer to, ilir_expr at,
				   int words)
{
	struct ilir_module *m = t->m;
	struct ilir_stmt *block = ilir_alloc(m, to);
	for (int place = 0; place < t->rows_of_plane; place++)
		for (int from = 0, lanes; from < words; from += lanes) {
			lanes = ILIR_MAX_LANES;
			while (lanes > words - from || lanes == 2)
				lanes /= 2;
			ilir_expr first = ilir_index(m, from), source = ilir_binary(m, ILIR_ADD, at, first);
			ilir_expr index[2] = {ilir_index(m, place),
					      lanes > 1 ? ilir_ramp(m, first, lanes, 1) : first};
			ilir_expr row = words_of_row(t, t->plane[plane].row[place], source, lanes);
			block = ilir_append(block, ilir_store(m, to, index, 2, row));
		}
	return block;
}

static struct ilir_stmt *fill_rows(const struct matrix_nest *t, int plane, ilir_buffer matrix, ilir_expr at,
				   int words)
{
	struct ilir_module *m = t->m;
	int last = t->rows_of_plane - 1;
	const int *row = t->plane[plane].row;
	if (ilir_rows_follow(t, plane))
		return ilir_fill(m, matrix, words_of_row(t, row[0], at, words),
				 words_of_row(t, row[last], at, words));
	struct ilir_buffer_decl b = *ilir_buffer_at(m, matrix);
	b.name = "copied";
	b.matrix = false;
	b.parked = true;
	ilir_buffer copied = ilir_new_buffer(m, b);
	ilir_expr all = words > 1 ? ilir_ramp(m, ilir_index(m, 0), words, 1) : ilir_index(m, 0);
	ilir_expr from = ilir_load(m, copied, (ilir_expr[]){ilir_index(m, 0), all}, 2),
		  to = ilir_load(m, copied, (ilir_expr[]){ilir_index(m, last), all}, 2);
	return ilir_append(copy_rows(t, plane, copied, at, words), ilir_fill(m, matrix, from, to));
}

/* Columns that are computed at once, from the first one on: their sums are registers, by column and by plane.
 */
struct some_columns {
	const struct matrix_nest *t;
	const struct chosen *c;
	int first, n;
};

/* The columns from `first` on whose sums find registers. */
static struct some_columns choose_columns(const struct matrix_nest *t, const struct chosen *c, int first)
{
	struct some_columns some = {t, c, first, 0};
	for (int sums = 0; first + some.n < t->columns; some.n++) {
		sums += count_planes(t, first + some.n);
		if (sums > c->sums)
			break;
	}
	return some;
}

/* The register of the sums of a plane and a column, counted among those that are computed; none where they
 * are not multiplied. */
static ilir_buffer find_sum(const struct some_columns *s, int plane, int column)
{
	int n = 0;
	if (!ilir_multiplies_plane(s->t, plane, s->first + column))
		return (ilir_buffer){0};
	for (int c = 0; c < column; c++)
		n += count_planes(s->t, s->first + c);
	for (int p = 0; p < plane; p++)
		n += ilir_multiplies_plane(s->t, p, s->first + column);
	return s->c->sum[n];
}

static bool multiplies_any(const struct some_columns *s, int plane)
{
	for (int c = 0; c < s->n; c++)
		if (find_sum(s, plane, c).i)
			return true;
	return false;
}

/* The products of a column and planes, whose rows are in registers. */
static struct ilir_stmt *multiply_column(const struct some_columns *s, int column, int plane, int planes,
					 ilir_expr at, int words)
{
	struct ilir_module *m = s->t->m;
	int part = words < ILIR_MATRIX_WORDS;
	ilir_expr last = ilir_binary(m, ILIR_ADD, at, ilir_index(m, words - 1)),
		  panel = s->t->column[s->first + column];
	ilir_var v = s->t->loop->loop.var;
	struct ilir_stmt *block = NULL;
	for (int p = 0; p < planes; p++) {
		ilir_buffer sum = find_sum(s, plane + p, column);
		if (sum.i && !block)
			block = ilir_fill(m, s->c->panel[part], ilir_substitute(m, panel, v, at),
					  ilir_substitute(m, panel, v, last));
		if (sum.i)
			block = ilir_append(
			    block, ilir_dot(m, s->t->op, sum, s->c->row[part][p], s->c->panel[part]));
	}
	return block;
}

/* The products of all planes and these columns, of so many words from `at` on. */
static struct ilir_stmt *multiply_words(const struct some_columns *s, ilir_expr at, int words)
{
	struct ilir_stmt *block = NULL;
	int part = words < ILIR_MATRIX_WORDS;
	for (int plane = 0, planes; plane < s->t->planes; plane += planes) {
		planes = s->t->planes - plane < s->c->rows[part] ? s->t->planes - plane : s->c->rows[part];
		for (int p = 0; p < planes; p++)
			if (multiplies_any(s, plane + p))
				block = ilir_append(
				    block, fill_rows(s->t, plane + p, s->c->row[part][p], at, words));
		for (int c = 0; c < s->n; c++)
			block = ilir_append(block, multiply_column(s, c, plane, planes, at, words));
	}
	return block;
}

/* Fills a register of sums of a plane and a column, or spills it. */
static struct ilir_stmt *move_sum(const struct matrix_nest *t, ilir_buffer sum, int plane, int column,
				  bool fill)
{
	ilir_expr end[2];
	for (int e = 0; e < 2; e++) {
		const struct ilir_stmt *s =
		    ilir_matrix_sum(t, t->plane[plane].row[e ? t->rows_of_plane - 1 : 0], column);
		end[e] = ilir_load(t->m, s->store.buffer, s->store.index, s->store.indices);
	}
	return (fill ? ilir_fill : ilir_spill)(t->m, sum, end[0], end[1]);
}

static struct ilir_stmt *move_sums(const struct some_columns *s, bool fill)
{
	struct ilir_stmt *block = NULL;
	for (int c = 0; c < s->n; c++)
		for (int p = 0; p < s->t->planes; p++) {
			ilir_buffer sum = find_sum(s, p, c);
			if (sum.i)
				block = ilir_append(block, move_sum(s->t, sum, p, s->first + c, fill));
		}
	return block;
}

/* The sums of some columns: over whole matrix registers of words in a loop, then over those that are left. */
static struct ilir_stmt *multiply_bytes(const struct some_columns *s)
{
	const struct matrix_nest *t = s->t;
	struct ilir_module *m = t->m;
	const struct ilir_stmt *l = t->loop;
	int64_t left = t->words % ILIR_MATRIX_WORDS, whole = t->begin + t->words - left;
	struct ilir_stmt *block = NULL;
	if (whole > t->begin) {
		ilir_var v = ilir_new_var(m, m->vars.at[l->loop.var.i].name, index_type);
		struct ilir_stmt *body = multiply_words(s, ilir_var_ref(m, v), ILIR_MATRIX_WORDS);
		block = ilir_append(block, ilir_for(m, v, l->loop.begin, ilir_index(m, whole),
						    ILIR_MATRIX_WORDS, l->loop.dim, ILIR_SERIAL, body));
	}
	return left ? ilir_append(block, multiply_words(s, ilir_index(m, whole), (int)left)) : block;
}

/* The sums of some columns in bf16: a product of matrix registers for each block of words. */
static struct ilir_stmt *multiply_blocks(const struct some_columns *s)
{
	const struct matrix_nest *t = s->t;
	struct ilir_module *m = t->m;
	const struct ilir_stmt *l = t->blocks;
	ilir_var v = ilir_new_var(m, m->vars.at[l->loop.var.i].name, index_type);
	struct ilir_stmt *body = multiply_words(s, ilir_index(m, t->begin), (int)t->words);
	body = ilir_substitute_block(m, body, l->loop.var, ilir_var_ref(m, v));
	return ilir_for(m, v, l->loop.begin, l->loop.end, l->loop.step, l->loop.dim, ILIR_SERIAL, body);
}

static struct ilir_stmt *multiply_columns(const struct some_columns *s)
{
	struct ilir_stmt *block = (s->t->blocks ? multiply_blocks : multiply_bytes)(s);
	return ilir_append(move_sums(s, true), ilir_append(block, move_sums(s, false)));
}

/* --- the walk --- */

/* The block that computes a loop; NULL if matrix registers cannot. */
static struct ilir_stmt *use_registers(struct ilir_module *m, const struct ilir_stmt *loop,
				       struct registers *r)
{
	struct matrix_nest t;
	struct chosen c = {0};
	struct ilir_stmt *block = NULL;
	if (!r->around || r->inside || r->denied || !ilir_read_matrix_nest(&t, m, loop) ||
	    !reserve_registers(&t, r))
		return NULL;
	take_all(&t, r, &c, t.planes, ILIR_MATRICES);
	struct some_columns some = choose_columns(&t, &c, 0);
	for (; some.n; some = choose_columns(&t, &c, some.first + some.n))
		block = ilir_append(block, multiply_columns(&some));
	r->used = true;
	return block;
}

static struct ilir_stmt *rewrite_block(struct ilir_module *m, struct ilir_stmt *s, struct registers *around);

/* A loop that is not replaced itself: it becomes a matrix loop if one in its body is. */
static void rewrite_loop(struct ilir_module *m, struct ilir_stmt *s, struct registers *around)
{
	struct registers own = {.around = s->loop.kind == ILIR_SERIAL ? s : NULL,
				.denied = around->denied || around->used};
	if (own.around && !own.denied)
		reserve_all(m, s->loop.body, &own);
	s->loop.body = rewrite_block(m, s->loop.body, &own);
	around->inside |= own.inside || own.used;
	if (!own.used)
		return;
	struct ilir_stmt *block = NULL;
	for (int i = 0; i < own.n; i++)
		block = ilir_append(block, ilir_alloc(m, own.at[i]));
	s->loop.body = ilir_append(block, s->loop.body);
	s->loop.kind = ILIR_MATRIX;
}

/* Inner loops first, so that a loop around one with matrix registers gets none of its own. */
static struct ilir_stmt *rewrite_block(struct ilir_module *m, struct ilir_stmt *s, struct registers *around)
{
	struct ilir_stmt *first = NULL;
	for (struct ilir_stmt *next; s; s = next) {
		next = s->next;
		s->next = NULL;
		if (s->kind == ILIR_FOR) {
			rewrite_loop(m, s, around);
		} else if (s->kind == ILIR_IF) {
			s->branch.then = rewrite_block(m, s->branch.then, around);
			s->branch.otherwise = rewrite_block(m, s->branch.otherwise, around);
		}
		struct ilir_stmt *by = s->kind == ILIR_FOR ? use_registers(m, s, around) : NULL;
		first = ilir_append(first, by ? by : s);
	}
	return first;
}

void ilir_use_matrices(struct ilir_module *m, struct ilir_tiling *tiling)
{
	struct registers none = {0};
	if (!tiling->matrices)
		return;
	for (size_t k = 0; k < m->kernels.n; k++)
		m->kernels.at[k].body = rewrite_block(m, m->kernels.at[k].body, &none);
}
