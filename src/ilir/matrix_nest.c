/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Reads loops over words that matrix registers can compute (matrix_nest.h): what each statement computes,
 * which rows are planes, and whether each has sums of its own. */
#include "ilir/matrix_nest.h"

enum { NOWHERE = -1 };

/* --- what a statement computes --- */

/* Whether an index is the variable, or a constant after it. */
static bool is_ahead(const struct ilir_module *m, ilir_expr e, ilir_var v, int64_t *by)
{
	const struct ilir_node *n = ilir_at(m, ilir_split_constant(m, e, by));
	return n->op == ILIR_VAR && n->var.i == v.i;
}

/* Moves a load, one of whose indices follows the loop's variable, to that variable itself.  None if it has no
 * such index, or it stands elsewhere than `last` says. */
static ilir_expr move_to_variable(const struct matrix_nest *t, ilir_expr load, bool last, int64_t *ahead)
{
	ilir_expr index[ILIR_MAX_RANK];
	int following = NOWHERE, n = ilir_at(t->m, load)->args;
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

bool ilir_adds_to_sum(struct ilir_module *m, const struct ilir_stmt *s)
{
	if (s->kind != ILIR_STORE || ilir_type_of(m, s->store.value).lanes != ILIR_MATRIX_WORDS ||
	    ilir_at(m, s->store.value)->args != 3 || ilir_buffer_at(m, s->store.buffer)->kind != ILIR_REGISTER)
		return false;
	return ilir_arg(m, s->store.value, 2).i == ilir_load(m, s->store.buffer, s->store.index, s->store.indices).i;
}

bool ilir_read_factors(struct matrix_nest *t, ilir_expr x, ilir_expr w, struct matrix_product *p)
{
	int64_t ahead;
	if (!is_load_of(t->m, x, false, 1) || !is_load_of(t->m, w, true, ILIR_MATRIX_WORDS))
		return false;
	ilir_expr row = move_to_variable(t, x, true, &p->ahead), column = move_to_variable(t, w, false, &ahead);
	if (!row.i || !column.i || ahead != p->ahead || ahead < 0 || ahead >= t->loop->loop.step)
		return false;
	p->row = number_load(t->row, &t->rows, MATRIX_NEST_ROWS, row);
	p->column = number_load(t->column, &t->columns, MATRIX_NEST_COLUMNS, column);
	return p->row >= 0 && p->column >= 0;
}

/* Reads a statement `sum = dot4(broadcast(16, row), column, sum)`. */
static bool read_product(struct matrix_nest *t, const struct ilir_stmt *s, struct matrix_product *p)
{
	struct ilir_module *m = t->m;
	if (!ilir_adds_to_sum(m, s) || ilir_at(m, s->store.value)->op != ILIR_DOT4)
		return false;
	ilir_expr x = ilir_arg(m, s->store.value, 0);
	p->store = s;
	return ilir_at(m, x)->op == ILIR_BROADCAST &&
	       ilir_read_factors(t, ilir_arg(m, x, 0), ilir_arg(m, s->store.value, 1), p);
}

static const struct ilir_stmt **place_of_sum(const struct matrix_nest *t, int row, int column)
{
	return &t->sum[row * t->columns + column];
}

const struct ilir_stmt *ilir_matrix_sum(const struct matrix_nest *t, int row, int column)
{
	return *place_of_sum(t, row, column);
}

bool ilir_add_product(struct matrix_nest *t, struct matrix_product p)
{
	for (const struct matrix_product *q = t->products.at; q < t->products.at + t->products.n; q++)
		if (q->row == p.row && q->column == p.column && q->ahead == p.ahead)
			return false;
	vec_push(t->m->arena, &t->products, p);
	return true;
}

static bool read_byte_products(struct matrix_nest *t)
{
	for (const struct ilir_stmt *s = t->loop->loop.body; s; s = s->next) {
		struct matrix_product p;
		if (!read_product(t, s, &p) || !ilir_add_product(t, p))
			return false;
	}
	return true;
}

/* Reads the statements of the loop.  False unless each is the only product of a row, a column and a word. */
static bool read_products(struct matrix_nest *t)
{
	if (!(t->blocks ? ilir_read_bf16_products : read_byte_products)(t))
		return false;
	t->sum = ARENA_ARRAY(t->m->arena, const struct ilir_stmt *, (size_t)t->rows * t->columns);
	for (const struct matrix_product *p = t->products.at; p < t->products.at + t->products.n; p++)
		if (!p->ahead)
			*place_of_sum(t, p->row, p->column) = p->store;
	return t->products.n > 0;
}

static bool is_same_place(const struct ilir_stmt *a, const struct ilir_stmt *b)
{
	bool same = a->store.buffer.i == b->store.buffer.i;
	for (int d = 0; same && d < a->store.indices; d++)
		same = a->store.index[d].i == b->store.index[d].i;
	return same;
}

/* Whether each row and column that are multiplied are so for each word of an iteration, and added to the same
 * sum. */
static bool words_are_whole(const struct matrix_nest *t)
{
	size_t whole = 0;
	for (const struct matrix_product *p = t->products.at; p < t->products.at + t->products.n; p++) {
		const struct ilir_stmt *first = ilir_matrix_sum(t, p->row, p->column);
		if (!first || !is_same_place(first, p->store))
			return false;
		whole += !p->ahead;
	}
	return t->products.n == whole * (size_t)t->loop->loop.step;
}

/* --- planes --- */

/* How far the second of two accesses of a buffer lies from the first along an index that is no vector: the
 * one of number `along`, which is set where it is NOWHERE.  False if they differ in another index, or by what
 * is no constant. */
static bool find_distance(const struct ilir_module *m, const ilir_expr *a, const ilir_expr *b, int n,
			  int *along, int64_t *apart)
{
	*apart = 0;
	for (int d = 0; d < n; d++) {
		if (a[d].i == b[d].i)
			continue;
		if ((*along != NOWHERE && *along != d) || d == n - 1 ||
		    !ilir_find_distance(m, a[d], b[d], apart))
			return false;
		*along = d;
	}
	return true;
}

/* A plane while it is found: its first row, and the index along which the sums of each column lie. */
struct line {
	const struct matrix_nest *t;
	int first;
	int along[MATRIX_NEST_COLUMNS];
};

/* How far the sums of a row lie from those of the first: the same for each column, all of which multiply both
 * or neither.  False if they do not lie in one line. */
static bool find_row_distance(struct line *l, int row, int64_t *apart)
{
	struct line next = *l;
	bool known = false;
	for (int c = 0; c < l->t->columns; c++) {
		const struct ilir_stmt *a = ilir_matrix_sum(l->t, l->first, c),
				       *b = ilir_matrix_sum(l->t, row, c);
		int64_t here;
		if (!a && !b)
			continue;
		if (!a || !b || a->store.buffer.i != b->store.buffer.i ||
		    !find_distance(l->t->m, a->store.index, b->store.index, a->store.indices, &next.along[c],
				   &here) ||
		    (known && here != *apart))
			return false;
		known = true;
		*apart = here;
	}
	*l = next;
	return known;
}

/* The rows of a line, in the order in which their sums lie. */
struct rows {
	int n, row[MATRIX_NEST_ROWS];
	int64_t at[MATRIX_NEST_ROWS];
};

static void insert_row(struct rows *r, int row, int64_t at)
{
	int i = r->n++;
	for (; i > 0 && r->at[i - 1] > at; i--) {
		r->row[i] = r->row[i - 1];
		r->at[i] = r->at[i - 1];
	}
	r->row[i] = row;
	r->at[i] = at;
}

/* The first column that multiplies a row. */
static int first_column(const struct matrix_nest *t, int row)
{
	int column = 0;
	while (!ilir_matrix_sum(t, row, column))
		column++;
	return column;
}

/* Lists the rows that are in no plane yet and whose sums lie in one line with those of the first, for a
 * column along an index of this number. */
static struct rows list_line(const struct matrix_nest *t, int first, int column, int along)
{
	struct line l = {.t = t, .first = first};
	struct rows r = {0};
	for (int c = 0; c < t->columns; c++)
		l.along[c] = c == column ? along : NOWHERE;
	for (int row = first; row < t->rows; row++) {
		int64_t apart;
		if (t->plane_of[row] == NOWHERE && find_row_distance(&l, row, &apart))
			insert_row(&r, row, apart);
	}
	return r;
}

/* The longest of these lines: rows of a tile may lie along one index, and planes along another. */
static struct rows find_line(const struct matrix_nest *t, int first)
{
	struct rows best = {.n = 1, .row = {first}};
	int column = first_column(t, first);
	for (int along = 0; along < ilir_matrix_sum(t, first, column)->store.indices - 1; along++) {
		struct rows r = list_line(t, first, column, along);
		if (r.n > best.n)
			best = r;
	}
	return best;
}

/* Makes equal planes of n rows that follow each other.  False where they have another number of rows than
 * those before. */
static bool add_planes(struct matrix_nest *t, const int *row, int n)
{
	int parts = (n + ILIR_MATRIX_ROWS - 1) / ILIR_MATRIX_ROWS;
	while (n % parts)
		parts++;
	if ((n / parts < 2 && t->op == ILIR_DOT4) || (t->planes && n / parts != t->rows_of_plane))
		return false;
	t->rows_of_plane = n / parts;
	for (int i = 0; i < n; i++) {
		int plane = t->planes + i / t->rows_of_plane;
		t->plane[plane].row[i % t->rows_of_plane] = row[i];
		t->plane_of[row[i]] = plane;
	}
	t->planes += parts;
	return true;
}

/* Makes planes of the rows of a line: of each part of it in which one follows the other. */
static bool cut_line(struct matrix_nest *t, const struct rows *r)
{
	for (int from = 0, to; from < r->n; from = to) {
		for (to = from + 1; to < r->n && r->at[to] == r->at[to - 1] + 1; to++)
			;
		if (!add_planes(t, r->row + from, to - from))
			return false;
	}
	return r->n > 0;
}

static bool find_planes(struct matrix_nest *t)
{
	for (int row = 0; row < t->rows; row++)
		t->plane_of[row] = NOWHERE;
	for (int row = 0; row < t->rows; row++) {
		if (t->plane_of[row] != NOWHERE)
			continue;
		struct rows line = find_line(t, row);
		if (!cut_line(t, &line))
			return false;
	}
	return true;
}

bool ilir_multiplies_plane(const struct matrix_nest *t, int plane, int column)
{
	return ilir_matrix_sum(t, t->plane[plane].row[0], column);
}

/* --- where sums and rows lie --- */

/* The distance of two vectors of successive words; 0 if it is unknown, or one of them is something else. */
static int64_t find_ramp_distance(const struct ilir_module *m, ilir_expr a, ilir_expr b)
{
	int64_t apart;
	const struct ilir_node *from = ilir_at(m, a), *to = ilir_at(m, b);
	bool ramps = from->op == ILIR_RAMP && to->op == ILIR_RAMP && from->i == 1 && to->i == 1;
	return ramps && ilir_find_distance(m, ilir_arg(m, a, 0), ilir_arg(m, b, 0), &apart) ? apart : 0;
}

bool ilir_stores_are_apart(const struct ilir_module *m, const struct ilir_stmt *a, const struct ilir_stmt *b)
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

static bool is_one_register(const struct matrix_nest *t, const struct matrix_product *p,
			    const struct matrix_product *q)
{
	return p->column == q->column && t->plane_of[p->row] == t->plane_of[q->row];
}

/* Whether no two registers have a sum in common: they are spilled one after the other. */
static bool sums_are_apart(const struct matrix_nest *t)
{
	for (const struct matrix_product *p = t->products.at; p < t->products.at + t->products.n; p++)
		for (const struct matrix_product *q = t->products.at; q < p && !p->ahead; q++)
			if (!q->ahead && !is_one_register(t, p, q) &&
			    !ilir_stores_are_apart(t->m, p->store, q->store))
				return false;
	return true;
}

bool ilir_rows_follow(const struct matrix_nest *t, int plane)
{
	struct ilir_module *m = t->m;
	ilir_expr top = t->row[t->plane[plane].row[0]];
	int n = ilir_at(m, top)->args, along = NOWHERE;
	for (int place = 0; place < t->rows_of_plane; place++) {
		const struct ilir_node *row = ilir_at(m, t->row[t->plane[plane].row[place]]);
		int64_t apart;
		if (row->buffer.i != ilir_at(m, top)->buffer.i ||
		    !find_distance(m, &m->args.at[ilir_at(m, top)->arg], &m->args.at[row->arg], n, &along,
				   &apart) ||
		    apart != place)
			return false;
	}
	return !ilir_buffer_at(m, ilir_at(m, top)->buffer)->table.i;
}

/* The loop over the words of a block that is the only loop of the body of one over blocks; NULL = there is none. */
static const struct ilir_stmt *find_inner_loop(const struct ilir_stmt *loop)
{
	const struct ilir_stmt *inner = NULL;
	for (const struct ilir_stmt *s = loop->loop.body; s; s = s->next) {
		if (s->kind == ILIR_FOR && inner)
			return NULL;
		inner = s->kind == ILIR_FOR ? s : inner;
	}
	return inner;
}

bool ilir_read_matrix_nest(struct matrix_nest *t, struct ilir_module *m, const struct ilir_stmt *loop)
{
	int64_t end;
	const struct ilir_stmt *inner = find_inner_loop(loop);
	*t = (struct matrix_nest){.m = m, .op = ILIR_DOT4, .loop = loop};
	if (inner) {
		t->op = ILIR_DOT_BF16;
		t->loop = inner;
		t->blocks = loop;
	}
	if (loop->loop.kind != ILIR_SERIAL || t->loop->loop.kind != ILIR_SERIAL ||
	    !ilir_constant(m, t->loop->loop.begin, &t->begin) || !ilir_constant(m, t->loop->loop.end, &end))
		return false;
	t->words = end - t->begin;
	return t->words > 0 && t->words % t->loop->loop.step == 0 && read_products(t) && words_are_whole(t) &&
	       find_planes(t) && sums_are_apart(t) && (t->op == ILIR_DOT4 || t->words <= ILIR_MATRIX_WORDS);
}
