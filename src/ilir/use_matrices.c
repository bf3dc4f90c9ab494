/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: computes sums of dot products of bytes by matrix registers, where the machine has them (tiles of AMX) and a tile of the
 * schedule has two rows or more.  One row stays what it is.
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
 * time.  Sums of i32 wrap, so the order in which products are added does not matter.  A loop stays what it is where sums of two columns
 * may share words, or those of one column do not lie in one line.
 *
 * Needs: unroll has run. */
#include "ilir/passes.h"

enum { SUMS_AT_ONCE = 4, MOST_COLUMNS = 64, NOWHERE = -1 };

/* A dot product that a statement of the loop adds to a sum: of row and column, and how far from the loop's variable. */
struct product {
	int row, column;
	int64_t ahead;
	const struct ilir_stmt *store;
};

struct rows_and_columns {
	ilir_expr row[ILIR_MATRIX_ROWS], column[MOST_COLUMNS]; /* loads for the loop's variable itself */
	int rows, columns;
	int place[ILIR_MATRIX_ROWS]; /* of each row in the sums */
};

/* A loop whose statements are all products of a row and a column, each one once in an iteration of each. */
struct nest {
	struct ilir_module *m;
	const struct ilir_stmt *loop;
	struct rows_and_columns of;
	VEC(struct product) products;
	int64_t begin, words; /* that are reduced */
};

/* What a matrix register holds: sums, or the first or the second factor. */
enum role { SUMS, ROWS, PANEL };

/* The matrix registers of a loop. */
struct registers {
	const struct ilir_stmt *around; /* NULL = no loop that can be a matrix loop is around */
	ilir_buffer at[ILIR_MATRICES];
	enum role role[ILIR_MATRICES];
	int n;
	bool inside; /* there is a matrix loop in its body */
	bool denied; /* a loop around it has some */
};

static const struct ilir_type index_type = {ILIR_INDEX, 1};

/* --- what a statement computes --- */

/* Whether an index is the variable, or a constant after it. */
static bool is_ahead(const struct ilir_module *m, ilir_expr e, ilir_var v, int64_t *by)
{
	const struct ilir_node *n = ilir_at(m, ilir_split_constant(m, e, by));
	return n->op == ILIR_VAR && n->var.i == v.i;
}

/* Moves a load, one of whose indices follows the loop's variable, to that variable itself.  None if it has no such index, or
 * it stands elsewhere than `last` says. */
static ilir_expr move_to_variable(const struct nest *t, ilir_expr load, bool last, int64_t *ahead)
{
	ilir_expr index[ILIR_MAX_RANK];
	int following = -1, n = ilir_at(t->m, load)->args;
	ilir_var v = t->loop->loop.var;
	for (int d = 0; d < n; d++) {
		index[d] = ilir_arg(t->m, load, d);
		if (!ilir_uses_var(t->m, index[d], v))
			continue;
		if (following >= 0 || !is_ahead(t->m, index[d], v, ahead))
			return (ilir_expr){0};
		following = d;
		index[d] = ilir_var_ref(t->m, v);
	}
	if (following < 0 || (following == n - 1) != last)
		return (ilir_expr){0};
	return ilir_load(t->m, ilir_at(t->m, load)->buffer, index, n);
}

/* The number of a load in a list, to which it is added if there is room; -1 = there is none. */
static int number_load(ilir_expr *list, int *n, int most, ilir_expr load)
{
	int i = 0;
	while (i < *n && list[i].i != load.i)
		i++;
	if (i == *n && *n == most)
		return -1;
	list[i] = load;
	*n += i == *n;
	return i;
}

static bool is_load_of(const struct ilir_module *m, ilir_expr e, bool weight, int lanes)
{
	const struct ilir_node *n = ilir_at(m, e);
	if (n->op != ILIR_LOAD || n->args < 2 || n->type.dtype != ILIR_I32 || n->type.lanes != lanes)
		return false;
	int kind = ilir_buffer_at(m, n->buffer)->kind;
	return weight ? kind == IMAGE_WEIGHT : kind != ILIR_REGISTER;
}

/* Reads a statement `sum = dot4(broadcast(16, row), column, sum)`. */
static bool read_product(struct nest *t, const struct ilir_stmt *s, struct product *p)
{
	struct ilir_module *m = t->m;
	int64_t ahead;
	if (s->kind != ILIR_STORE || ilir_at(m, s->store.value)->op != ILIR_DOT4 ||
	    ilir_type_of(m, s->store.value).lanes != ILIR_MATRIX_WORDS || ilir_buffer_at(m, s->store.buffer)->kind != ILIR_REGISTER)
		return false;
	ilir_expr x = ilir_arg(m, s->store.value, 0), w = ilir_arg(m, s->store.value, 1), sum = ilir_arg(m, s->store.value, 2);
	if (ilir_at(m, x)->op != ILIR_BROADCAST || !is_load_of(m, ilir_arg(m, x, 0), false, 1) ||
	    !is_load_of(m, w, true, ILIR_MATRIX_WORDS) ||
	    sum.i != ilir_load(m, s->store.buffer, s->store.index, s->store.indices).i)
		return false;
	ilir_expr row = move_to_variable(t, ilir_arg(m, x, 0), true, &p->ahead), column = move_to_variable(t, w, false, &ahead);
	if (!row.i || !column.i || ahead != p->ahead || ahead < 0 || ahead >= t->loop->loop.step)
		return false;
	p->store = s;
	p->row = number_load(t->of.row, &t->of.rows, ILIR_MATRIX_ROWS, row);
	p->column = number_load(t->of.column, &t->of.columns, MOST_COLUMNS, column);
	return p->row >= 0 && p->column >= 0;
}

/* The product of a row, a column and a word; NULL if there is none. */
static const struct product *find_product(const struct nest *t, int row, int column, int64_t ahead)
{
	for (size_t i = 0; i < t->products.n; i++) {
		const struct product *p = &t->products.at[i];
		if (p->row == row && p->column == column && p->ahead == ahead)
			return p;
	}
	return NULL;
}

/* --- where sums and rows lie --- */

/* How far the second of two accesses of a buffer lies from the first along an index that is no vector: the one of number `along`,
 * which is set where it is NOWHERE.  False if they differ in another index, or by what is no constant. */
static bool find_distance(const struct ilir_module *m, const ilir_expr *a, const ilir_expr *b, int n, int *along, int64_t *apart)
{
	*apart = 0;
	for (int d = 0; d < n; d++) {
		if (a[d].i == b[d].i)
			continue;
		if ((*along != NOWHERE && *along != d) || d == n - 1 || !ilir_find_distance(m, a[d], b[d], apart))
			return false;
		*along = d;
	}
	return true;
}

static bool find_row_distance(const struct ilir_module *m, const struct ilir_stmt *a, const struct ilir_stmt *b, int *along,
			      int64_t *apart)
{
	return a->store.buffer.i == b->store.buffer.i &&
	       find_distance(m, a->store.index, b->store.index, a->store.indices, along, apart);
}

/* The distance of two vectors of successive words; 0 if it is unknown, or one of them is something else. */
static int64_t find_ramp_distance(const struct ilir_module *m, ilir_expr a, ilir_expr b)
{
	int64_t apart;
	const struct ilir_node *from = ilir_at(m, a), *to = ilir_at(m, b);
	bool ramps = from->op == ILIR_RAMP && to->op == ILIR_RAMP && from->i == 1 && to->i == 1;
	return ramps && ilir_find_distance(m, ilir_arg(m, a, 0), ilir_arg(m, b, 0), &apart) ? apart : 0;
}

/* Whether two statements certainly store no word in common. */
static bool stores_are_apart(const struct ilir_module *m, const struct ilir_stmt *a, const struct ilir_stmt *b)
{
	int last = a->store.indices - 1;
	int64_t apart = 0;
	if (a->store.buffer.i != b->store.buffer.i)
		return true;
	for (int d = 0; d < last; d++)
		if (ilir_find_distance(m, a->store.index[d], b->store.index[d], &apart) && apart)
			return true;
	apart = find_ramp_distance(m, a->store.index[last], b->store.index[last]);
	return apart >= ILIR_MATRIX_WORDS || apart <= -ILIR_MATRIX_WORDS;
}

/* Numbers the rows as the sums of the first column lie.  False if these do not follow each other. */
static bool place_rows(struct nest *t)
{
	int along = NOWHERE;
	const struct ilir_stmt *first = find_product(t, 0, 0, 0)->store;
	int64_t apart[ILIR_MATRIX_ROWS], least = 0;
	unsigned taken = 0;
	for (int r = 0; r < t->of.rows; r++) {
		if (!find_row_distance(t->m, first, find_product(t, r, 0, 0)->store, &along, &apart[r]))
			return false;
		least = apart[r] < least ? apart[r] : least;
	}
	for (int r = 0; r < t->of.rows; r++) {
		int64_t at = apart[r] - least;
		if (at >= t->of.rows || taken >> at & 1)
			return false;
		taken |= 1u << at;
		t->of.place[r] = (int)at;
	}
	return true;
}

static int row_at(const struct nest *t, int place)
{
	int r = 0;
	while (t->of.place[r] != place)
		r++;
	return r;
}

/* Whether the sums of a column lie as those of the first do, and each word is added to the same sum. */
static bool sums_follow(const struct nest *t, int column)
{
	const struct ilir_stmt *first = find_product(t, row_at(t, 0), column, 0)->store;
	int along = NOWHERE;
	for (int r = 0; r < t->of.rows; r++)
		for (int64_t k = 0; k < t->loop->loop.step; k++) {
			int64_t apart;
			if (!find_row_distance(t->m, first, find_product(t, r, column, k)->store, &along, &apart) || apart != t->of.place[r])
				return false;
		}
	return true;
}

/* Whether no two columns have a sum in common: each has its own registers, which are spilled one after the other. */
static bool columns_are_apart(const struct nest *t)
{
	for (const struct product *p = t->products.at; p < t->products.at + t->products.n; p++)
		for (const struct product *q = t->products.at; q < p; q++)
			if (!p->ahead && !q->ahead && p->column != q->column && !stores_are_apart(t->m, p->store, q->store))
				return false;
	return true;
}

static bool columns_follow(const struct nest *t)
{
	for (int c = 0; c < t->of.columns; c++)
		if (!sums_follow(t, c))
			return false;
	return columns_are_apart(t);
}

/* Whether the rows lie in memory as they do in a matrix register, one after the other. */
static bool rows_follow(const struct nest *t)
{
	struct ilir_module *m = t->m;
	ilir_expr top = t->of.row[row_at(t, 0)];
	int n = ilir_at(m, top)->args, along = NOWHERE;
	for (int r = 0; r < t->of.rows; r++) {
		const struct ilir_node *row = ilir_at(m, t->of.row[r]);
		int64_t apart;
		if (row->buffer.i != ilir_at(m, top)->buffer.i ||
		    !find_distance(m, &m->args.at[ilir_at(m, top)->arg], &m->args.at[row->arg], n, &along, &apart) || apart != t->of.place[r])
			return false;
	}
	return !ilir_buffer_at(m, ilir_at(m, top)->buffer)->table.i;
}

/* Whether a loop is a nest of products that matrix registers can compute. */
static bool read_nest(struct nest *t)
{
	int64_t end, step = t->loop->loop.step;
	if (t->loop->loop.kind != ILIR_SERIAL || !ilir_constant(t->m, t->loop->loop.begin, &t->begin) ||
	    !ilir_constant(t->m, t->loop->loop.end, &end))
		return false;
	t->words = end - t->begin;
	for (const struct ilir_stmt *s = t->loop->loop.body; s; s = s->next) {
		struct product p;
		if (!read_product(t, s, &p) || find_product(t, p.row, p.column, p.ahead))
			return false;
		vec_push(t->m->arena, &t->products, p);
	}
	bool whole = t->of.rows > 1 && (int64_t)t->products.n == t->of.rows * t->of.columns * step;
	return whole && t->words > 0 && t->words % step == 0 && place_rows(t) && columns_follow(t);
}

/* --- registers --- */

/* The n-th matrix register of a role and a shape, n counted from 0; makes it if there is room. */
static ilir_buffer take_register(struct nest *t, struct registers *r, enum role role, const struct ilir_dim *dim, int n)
{
	static const char *const name[] = {[SUMS] = "sums", [ROWS] = "rows", [PANEL] = "panel"};
	for (int i = 0; i < r->n; i++) {
		const struct ilir_buffer_decl *b = ilir_buffer_at(t->m, r->at[i]);
		if (r->role[i] == role && b->dim[0].name == dim[0].name && b->dim[0].extent == dim[0].extent &&
		    b->dim[1].name == dim[1].name && b->dim[1].extent == dim[1].extent && n-- == 0)
			return r->at[i];
	}
	if (r->n == ILIR_MATRICES)
		return (ilir_buffer){0};
	struct ilir_buffer_decl b = {.name = name[role], .kind = ILIR_REGISTER, .dtype = ILIR_I32, .rank = 2, .dim = {dim[0], dim[1]}, .matrix = true};
	r->role[r->n] = role;
	return r->at[r->n++] = ilir_new_buffer(t->m, b);
}

static struct ilir_dim make_dim(int name, int64_t extent)
{
	return (struct ilir_dim){name, IMAGE_ONE, extent, extent};
}

/* The registers of a nest: sums, and the factors of whole matrix registers and of what is left of the words. */
struct chosen {
	int sums; /* columns at once */
	ilir_buffer sum[SUMS_AT_ONCE], rows[2], panel[2];
};

static int column_name(const struct nest *t)
{
	const struct ilir_stmt *s = t->products.at[0].store;
	return ilir_buffer_at(t->m, s->store.buffer)->dim[s->store.indices - 1].name;
}

/* False if the loop around has not enough of them. */
static bool choose_registers(struct nest *t, struct registers *r, struct chosen *c)
{
	struct registers before = *r;
	int64_t length[2] = {t->words >= ILIR_MATRIX_WORDS ? ILIR_MATRIX_WORDS : 0, t->words % ILIR_MATRIX_WORDS};
	struct ilir_dim rows = make_dim(ilir_dim_name(t->m, "tile_row"), t->of.rows), columns = make_dim(column_name(t), ILIR_MATRIX_WORDS);
	bool enough = true;
	c->sums = t->of.columns < SUMS_AT_ONCE ? t->of.columns : SUMS_AT_ONCE;
	for (int i = 0; i < c->sums; i++) {
		c->sum[i] = take_register(t, r, SUMS, (struct ilir_dim[]){rows, columns}, i);
		enough &= c->sum[i].i != 0;
	}
	for (int i = 0; i < 2; i++) {
		struct ilir_dim words = make_dim(ilir_dim_name(t->m, "tile_word"), length[i]);
		if (!length[i])
			continue;
		c->rows[i] = take_register(t, r, ROWS, (struct ilir_dim[]){rows, words}, 0);
		c->panel[i] = take_register(t, r, PANEL, (struct ilir_dim[]){words, columns}, 0);
		enough &= c->rows[i].i && c->panel[i].i;
	}
	if (!enough)
		*r = before;
	return enough;
}

/* --- statements --- */

/* The vector of so many words that a row has from `at` on. */
static ilir_expr words_of_row(const struct nest *t, int row, ilir_expr at, int words)
{
	struct ilir_module *m = t->m;
	ilir_expr load = t->of.row[row], index[ILIR_MAX_RANK];
	int n = ilir_at(m, load)->args;
	for (int d = 0; d < n; d++)
		index[d] = ilir_arg(m, load, d);
	index[n - 1] = words > 1 ? ilir_ramp(m, at, words, 1) : at;
	return ilir_load(m, ilir_at(m, load)->buffer, index, n);
}

/* Copies words of all rows to a register, by vectors that every back end has. */
static struct ilir_stmt *copy_rows(const struct nest *t, ilir_buffer to, ilir_expr at, int words)
{
	struct ilir_module *m = t->m;
	struct ilir_stmt *block = ilir_alloc(m, to);
	for (int place = 0; place < t->of.rows; place++)
		for (int from = 0, lanes; from < words; from += lanes) {
			lanes = ILIR_MAX_LANES;
			while (lanes > words - from || lanes == 2)
				lanes /= 2;
			ilir_expr first = ilir_index(m, from), source = ilir_binary(m, ILIR_ADD, at, first);
			ilir_expr index[2] = {ilir_index(m, place), lanes > 1 ? ilir_ramp(m, first, lanes, 1) : first};
			block = ilir_append(block, ilir_store(m, to, index, 2, words_of_row(t, row_at(t, place), source, lanes)));
		}
	return block;
}

static struct ilir_stmt *fill_rows(const struct nest *t, ilir_buffer matrix, ilir_expr at, int words)
{
	struct ilir_module *m = t->m;
	int last = t->of.rows - 1;
	if (rows_follow(t))
		return ilir_fill(m, matrix, words_of_row(t, row_at(t, 0), at, words), words_of_row(t, row_at(t, last), at, words));
	struct ilir_buffer_decl b = *ilir_buffer_at(m, matrix);
	b.name = "copied";
	b.matrix = false;
	b.parked = true;
	ilir_buffer copied = ilir_new_buffer(m, b);
	ilir_expr row = words > 1 ? ilir_ramp(m, ilir_index(m, 0), words, 1) : ilir_index(m, 0);
	ilir_expr from = ilir_load(m, copied, (ilir_expr[]){ilir_index(m, 0), row}, 2),
		  to = ilir_load(m, copied, (ilir_expr[]){ilir_index(m, last), row}, 2);
	return ilir_append(copy_rows(t, copied, at, words), ilir_fill(m, matrix, from, to));
}

/* The products of all rows and of columns from `first` on, of so many words from `at` on. */
static struct ilir_stmt *multiply_words(const struct nest *t, const struct chosen *c, int first, int columns, ilir_expr at, int words)
{
	struct ilir_module *m = t->m;
	int part = words < ILIR_MATRIX_WORDS;
	ilir_expr last = ilir_binary(m, ILIR_ADD, at, ilir_index(m, words - 1));
	struct ilir_stmt *block = fill_rows(t, c->rows[part], at, words);
	for (int i = 0; i < columns; i++) {
		ilir_expr panel = t->of.column[first + i];
		ilir_var v = t->loop->loop.var;
		block = ilir_append(block, ilir_fill(m, c->panel[part], ilir_substitute(m, panel, v, at), ilir_substitute(m, panel, v, last)));
		block = ilir_append(block, ilir_dot(m, ILIR_DOT4, c->sum[i], c->rows[part], c->panel[part]));
	}
	return block;
}

/* Fills the registers of sums of a column, or spills them. */
static struct ilir_stmt *move_sums(const struct nest *t, const struct chosen *c, int first, int columns, bool fill)
{
	struct ilir_module *m = t->m;
	struct ilir_stmt *block = NULL;
	for (int i = 0; i < columns; i++) {
		ilir_expr end[2];
		for (int e = 0; e < 2; e++) {
			const struct ilir_stmt *s = find_product(t, row_at(t, e ? t->of.rows - 1 : 0), first + i, 0)->store;
			end[e] = ilir_load(m, s->store.buffer, s->store.index, s->store.indices);
		}
		block = ilir_append(block, (fill ? ilir_fill : ilir_spill)(m, c->sum[i], end[0], end[1]));
	}
	return block;
}

/* The sums of some columns: over whole matrix registers of words in a loop, then over those that are left. */
static struct ilir_stmt *multiply_columns(const struct nest *t, const struct chosen *c, int first, int columns)
{
	struct ilir_module *m = t->m;
	const struct ilir_stmt *l = t->loop;
	int64_t left = t->words % ILIR_MATRIX_WORDS, whole = t->begin + t->words - left;
	struct ilir_stmt *block = move_sums(t, c, first, columns, true);
	if (whole > t->begin) {
		ilir_var v = ilir_new_var(m, m->vars.at[l->loop.var.i].name, index_type);
		struct ilir_stmt *body = multiply_words(t, c, first, columns, ilir_var_ref(m, v), ILIR_MATRIX_WORDS);
		block = ilir_append(block, ilir_for(m, v, l->loop.begin, ilir_index(m, whole), ILIR_MATRIX_WORDS, l->loop.dim, ILIR_SERIAL, body));
	}
	if (left)
		block = ilir_append(block, multiply_words(t, c, first, columns, ilir_index(m, whole), (int)left));
	return ilir_append(block, move_sums(t, c, first, columns, false));
}

/* --- the walk --- */

/* The block that computes a loop; NULL if matrix registers cannot. */
static struct ilir_stmt *use_registers(struct ilir_module *m, const struct ilir_stmt *loop, struct registers *r)
{
	struct nest t = {.m = m, .loop = loop};
	struct chosen c = {0};
	struct ilir_stmt *block = NULL;
	if (!r->around || r->inside || r->denied || !read_nest(&t) || !choose_registers(&t, r, &c))
		return NULL;
	for (int first = 0; first < t.of.columns; first += c.sums) {
		int columns = t.of.columns - first < c.sums ? t.of.columns - first : c.sums;
		block = ilir_append(block, multiply_columns(&t, &c, first, columns));
	}
	return block;
}

static struct ilir_stmt *rewrite_block(struct ilir_module *m, struct ilir_stmt *s, struct registers *around);

/* A loop that is not replaced itself: it becomes a matrix loop if one in its body is. */
static void rewrite_loop(struct ilir_module *m, struct ilir_stmt *s, struct registers *around)
{
	struct registers own = {.around = s->loop.kind == ILIR_SERIAL ? s : NULL, .denied = around->denied || around->n};
	s->loop.body = rewrite_block(m, s->loop.body, &own);
	around->inside |= own.inside || own.n;
	if (!own.n)
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
