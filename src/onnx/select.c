/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Elements at computed places: gathered, scattered, selected by rank or position. */
#include "onnx/operators.h"

/* i0, i1, ... from an axis of the value on. */
static const char *axis_name(const struct onnx_op *o, int axis)
{
	return onnx_format(o, "%s%d", o->target->axis, axis);
}

static void put_list(struct str *s, const char *letter, const char *const *at, int n)
{
	str_puts(s, letter);
	for (int d = 0; d < n; d++)
		str_printf(s, "%s%s", d ? ", " : "[", at[d]);
	str_puts(s, n ? "]" : "");
}

/* Indices from 0: those below count from the end. */
static struct onnx_operand from_zero(const struct onnx_op *o, struct onnx_operand index, int64_t n)
{
	return onnx_map(o, index, index.type, onnx_format(o, "where(a < 0, a + %lld, a)", (long long)n));
}

/* Elements of a value, of which one axis has the index that an element of another value is. */
struct pick {
	struct onnx_operand from, index;
	int axis;
	const char *at[RA_MAX_RANK];	   /* by axis of `from`; not of that one */
	const char *index_at[RA_MAX_RANK]; /* by axis of `index` */
};

static struct onnx_operand pick(const struct onnx_op *o, struct pick *p, const struct onnx_shape *shape)
{
	struct str at = str_in(o->arena), text = str_in(o->arena);
	struct onnx_operand index = from_zero(o, p->index, p->from.shape.dim[p->axis]);
	put_list(&at, "b", p->index_at, index.shape.rank);
	p->at[p->axis] = str_text(&at);
	put_list(&text, "a", p->at, p->from.shape.rank);
	return onnx_nest(o, p->from.type, shape, (struct onnx_operand *[]){&p->from, &index}, 2,
			 str_text(&text));
}

struct onnx_operand onnx_weighted_sum(const struct onnx_op *o, struct onnx_operand x, int axis, int64_t n,
				      int64_t taps, const int64_t *at, const float *share)
{
	struct onnx_shape shape = x.shape;
	struct onnx_operand sum = {0};
	shape.dim[axis] = n;
	for (int64_t t = 0; t < taps; t++) {
		int64_t *places = ARENA_ARRAY(o->arena, int64_t, n);
		float *shares = ARENA_ARRAY(o->arena, float, n);
		for (int64_t i = 0; i < n; i++)
			places[i] = at[i * taps + t], shares[i] = share[i * taps + t];
		struct onnx_shape list = {x.shape.rank - axis, {n, 1, 1, 1, 1, 1, 1, 1}};
		struct pick p = {
		    .from = x, .index = onnx_integers(o, &(struct onnx_shape){1, {n}}, places), .axis = axis};
		for (int d = 0; d < shape.rank; d++)
			p.at[d] = axis_name(o, d);
		p.index_at[0] = axis_name(o, axis);
		struct onnx_operand part = pick(o, &p, &shape);
		if (!part.id)
			return part;
		bool plain = true;
		for (int64_t i = 0; i < n; i++)
			plain &= shares[i] == 1;
		if (!plain)
			part = onnx_two(o, part, onnx_floats(o, &list, shares), x.type, "a * b");
		sum = sum.given ? onnx_two(o, sum, part, x.type, "a + b") : part;
	}
	return sum;
}

/* --- gather --- */

static bool check_rank(const struct onnx_op *o, int rank)
{
	return (rank >= 0 && rank <= RA_MAX_RANK) ||
	       onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "the value has %d axes, of at most %d", rank,
			      RA_MAX_RANK);
}

/* The axes of the index stand where that axis was. */
static bool gather(struct onnx_op *o, int axis)
{
	struct pick p = {.from = o->in[0], .index = o->in[1], .axis = axis};
	struct onnx_shape shape = {p.from.shape.rank + p.index.shape.rank - 1, {0}};
	int inner = p.index.shape.rank;
	if (!check_rank(o, shape.rank))
		return false;
	for (int d = 0; d < p.from.shape.rank; d++) {
		int to = d < axis ? d : d + inner - 1;
		p.at[d] = d == axis ? "" : axis_name(o, to);
		if (d != axis)
			shape.dim[to] = p.from.shape.dim[d];
	}
	for (int d = 0; d < inner; d++) {
		p.index_at[d] = axis_name(o, axis + d);
		shape.dim[axis + d] = p.index.shape.dim[d];
	}
	o->out[0] = pick(o, &p, &shape);
	return true;
}

/* One known place of an axis, which goes. */
static bool gather_known(struct onnx_op *o, int axis, int64_t at)
{
	struct onnx_operand x = o->in[0];
	struct onnx_shape shape = x.shape;
	at += at < 0 ? shape.dim[axis] : 0;
	if (at < 0 || at >= shape.dim[axis])
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "there is no element %lld of axis %d",
				      (long long)at, axis);
	memmove(&shape.dim[axis], &shape.dim[axis + 1], sizeof shape.dim[0] * (shape.rank - axis - 1));
	shape.rank--;
	o->out[0] = onnx_reshape(o, onnx_stride(o, x, axis, at, 1, 1), &shape);
	return true;
}

bool onnx_write_gather(struct onnx_op *o)
{
	int axis = onnx_axis(o, onnx_int(o, "axis"), o->in[0].shape.rank);
	const struct onnx_tensor *at = o->in[1].constant;
	if (axis < 0)
		return false;
	return at && !at->rank ? gather_known(o, axis, onnx_integer_at(at, 0)) : gather(o, axis);
}

bool onnx_write_gather_elements(struct onnx_op *o)
{
	struct pick p = {.from = o->in[0], .index = o->in[1]};
	p.axis = onnx_axis(o, onnx_int(o, "axis"), p.from.shape.rank);
	if (p.axis < 0 || p.index.shape.rank != p.from.shape.rank)
		return p.axis >= 0 && onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
						     "indices and data have not equally many axes");
	for (int d = 0; d < p.index.shape.rank; d++) {
		p.index_at[d] = axis_name(o, d);
		/* Written so that it need not go over all of the axis. */
		p.at[d] = p.index.shape.dim[d] == p.from.shape.dim[d]
			      ? axis_name(o, d)
			      : onnx_format(o, "0 + %s%d", o->target->axis, d);
		if (d != p.axis && p.index.shape.dim[d] < p.from.shape.dim[d])
			p.from = onnx_slice(o, p.from, d, 0, p.index.shape.dim[d]), p.at[d] = axis_name(o, d);
	}
	o->out[0] = pick(o, &p, &p.index.shape);
	return true;
}

/* Axes of the data that a tuple names are flattened to one, and the tuple to one index. */
bool onnx_write_gather_nd(struct onnx_op *o)
{
	struct onnx_operand from = o->in[0], index = o->in[1];
	int batch = (int)onnx_int(o, "batch_dims"), inner = index.shape.rank - 1;
	int tuple = inner >= 0 ? (int)index.shape.dim[inner] : 0;
	if (batch < 0 || inner < batch || tuple < 1 || batch + tuple > from.shape.rank)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "indices of %d numbers do not fit the data",
				      tuple);
	struct onnx_operand flat = {0};
	struct onnx_shape places = index.shape, joined = {batch + 1, {0}}, shape = index.shape;
	int64_t n = 1;
	places.rank = inner;
	for (int k = tuple; k-- > 0;) {
		struct onnx_operand at = onnx_reshape(o, onnx_slice(o, index, inner, k, k + 1), &places);
		int64_t extent = from.shape.dim[batch + k];
		at = onnx_map(o, from_zero(o, at, extent), at.type, onnx_format(o, "a * %lld", (long long)n));
		flat = flat.given ? onnx_two(o, flat, at, at.type, "a + b") : at;
		n = onnx_times(n, extent);
	}
	memcpy(joined.dim, from.shape.dim, sizeof joined.dim[0] * batch);
	joined.dim[batch] = n;
	shape.rank = inner;
	for (int d = batch + tuple; d < from.shape.rank; d++) {
		if (!check_rank(o, shape.rank + 1))
			return false;
		joined.dim[joined.rank++] = shape.dim[shape.rank++] = from.shape.dim[d];
	}
	struct pick p = {.from = onnx_reshape(o, from, &joined), .index = flat, .axis = batch};
	for (int d = 0; d < joined.rank; d++)
		p.at[d] = axis_name(o, d < batch ? d : d - batch - 1 + inner);
	for (int d = 0; d < inner; d++)
		p.index_at[d] = axis_name(o, d);
	o->out[0] = pick(o, &p, &shape);
	return true;
}

/* Elements of an axis where a condition holds, which must be known. */
bool onnx_write_compress(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	const struct onnx_tensor *c = o->in[1].constant;
	int axis = onnx_has(o, "axis") ? onnx_axis(o, onnx_int(o, "axis"), x.shape.rank) : 0;
	if (!c)
		return onnx_op_refuse(o, DIAG_ONNX_CONSTANT, "give the condition when the graph is read",
				      "input 1 decides the shape");
	if (axis < 0)
		return false;
	if (!onnx_has(o, "axis"))
		x = onnx_reshape(o, x, &(struct onnx_shape){1, {onnx_elements(&x.shape)}});
	struct onnx_operand *part = ARENA_ARRAY(o->arena, struct onnx_operand, c->elements + 1);
	int n = 0;
	for (int64_t i = 0; i < c->elements && i < x.shape.dim[axis]; i++)
		if (onnx_integer_at(c, i))
			part[n++] = onnx_slice(o, x, axis, i, i + 1);
	if (!n)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "nothing is left");
	o->out[0] = onnx_concat(o, part, n, axis);
	return true;
}

bool onnx_write_reverse_sequence(struct onnx_op *o)
{
	int rank = o->in[0].shape.rank, time = (int)onnx_int(o, "time_axis"),
	    batch = (int)onnx_int(o, "batch_axis");
	if (rank < 2 || time + batch != 1)
		return onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, NULL,
				      "the axes of time and of the batch are the first two");
	int64_t n = o->in[0].shape.dim[time];
	struct onnx_operand steps = onnx_count(o, ONNX_INT64, n), lengths = o->in[1];
	*(time ? &lengths : &steps) = onnx_reshape(
	    o, time ? lengths : steps, &(struct onnx_shape){2, {(time ? lengths : steps).shape.dim[0], 1}});
	struct pick p = {.from = o->in[0], .axis = time};
	p.index = onnx_two(o, steps, lengths, ONNX_INT64, "where(a < b, b - 1 - a, a)");
	for (int d = 0; d < rank; d++)
		p.at[d] = axis_name(o, d);
	p.index_at[0] = axis_name(o, 0), p.index_at[1] = axis_name(o, 1);
	o->out[0] = pick(o, &p, &p.from.shape);
	return p.index.given;
}

/* --- scatter --- */

/* What updates that hit an element become with it: the function over them, and the value of both. */
static const struct reduction {
	const char *name, *over, *other, *value;
} reductions[] = {
    {"none", "sum", "0", "where(h > 0, u, a)"},
    {"add", "sum", "0", "a + u"},
    {"max", "max", NULL, "maximum(a, u)"},
    {"min", "min", NULL, "minimum(a, u)"},
    {"mul", "prod", "1", "a * u"},
};

static const struct reduction *find_reduction(const struct onnx_op *o)
{
	const char *name = *o->row->text ? o->row->text : onnx_string(o, "reduction");
	for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
		if (strcmp(reductions[i].name, name) == 0)
			return &reductions[i];
	onnx_op_refuse(o, DIAG_ONNX_ATTRIBUTE, "none, add, mul, max and min are supported",
		       "the reduction is '%s'", name);
	return NULL;
}

/* Updates `u` and hits `h` by element, each a text in index notation over the same variables. */
static struct onnx_operand scatter(const struct onnx_op *o, struct onnx_operand *const *arg, int n,
				   const char *hit, const char *update, const char *over)
{
	const struct reduction *r = find_reduction(o);
	const struct onnx_shape *shape = &arg[0]->shape;
	enum onnx_type type = arg[0]->type;
	if (!r)
		return (struct onnx_operand){0};
	struct str own = str_in(o->arena);
	str_puts(&own, "a");
	onnx_put_axes(o, &own, shape->rank);
	const char *other = r->other ? r->other : str_text(&own);
	struct onnx_operand u =
	    onnx_nest(o, type, shape, arg, n,
		      onnx_format(o, "%s(where(%s, %s, %s) for %s)", r->over, hit, update, other, over));
	struct onnx_operand h =
	    onnx_nest(o, ONNX_INT32, shape, arg, n,
		      onnx_format(o, "max(where(%s, %s, %s) for %s)", hit, "1", "cast(0, i32)", over));
	struct str value = str_in(o->arena);
	for (const char *p = r->value; *p; p++)
		str_add(&value, *p == 'u' && p[1] != 'm' ? "b" : *p == 'h' && p[1] == ' ' ? "c" : p, 1);
	return onnx_formula(o, type, shape, (struct onnx_operand *[]){arg[0], &u, &h}, 3, str_text(&value));
}

bool onnx_write_scatter_elements(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], index = o->in[1], update = o->in[2];
	int rank = x.shape.rank, axis = onnx_axis(o, onnx_int(o, "axis"), rank);
	const char *at[RA_MAX_RANK];
	if (axis < 0 || index.shape.rank != rank)
		return axis >= 0 && onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
						   "indices and data have not equally many axes");
	bool truth = onnx_computed(x.type) == DTYPE_BOOL;
	if (truth)
		x = onnx_cast(o, x, ONNX_INT32), update = onnx_cast(o, update, ONNX_INT32);
	index = from_zero(o, index, x.shape.dim[axis]);
	struct onnx_operand count = onnx_reshape(o, onnx_count(o, index.type, x.shape.dim[axis]),
						 &(struct onnx_shape){1, {x.shape.dim[axis]}});
	for (int d = 0; d < rank; d++) {
		/* Where the indices have fewer places than the data, what is outside hits nothing. */
		for (int64_t n = x.shape.dim[d] - index.shape.dim[d]; d != axis && n > 0; n = 0) {
			struct onnx_shape border = index.shape;
			border.dim[d] = n;
			index =
			    onnx_concat(o,
					(struct onnx_operand[]){
					    index, onnx_expand(o, onnx_number(o, index.type, -1), &border)},
					2, d);
			update =
			    onnx_concat(o,
					(struct onnx_operand[]){
					    update, onnx_expand(o, onnx_number(o, update.type, 0), &border)},
					2, d);
		}
		at[d] = d == axis ? onnx_format(o, "%s0", o->target->reduced) : axis_name(o, d);
	}
	struct str hit = str_in(o->arena), value = str_in(o->arena);
	put_list(&hit, "b", at, rank);
	str_printf(&hit, " == d[%s]", axis_name(o, axis));
	put_list(&value, "c", at, rank);
	o->out[0] = scatter(
	    o, (struct onnx_operand *[]){&x, &index, &update, &count}, 4, str_text(&hit), str_text(&value),
	    onnx_format(o, "%s0 in %lld", o->target->reduced, (long long)index.shape.dim[axis]));
	if (truth)
		o->out[0] = onnx_cast(o, o->out[0], ONNX_BOOL);
	return o->out[0].given;
}

bool onnx_write_scatter_nd(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0], index = o->in[1], update = o->in[2];
	int inner = index.shape.rank - 1, tuple = inner >= 0 ? (int)index.shape.dim[inner] : 0,
	    rank = x.shape.rank;
	if (tuple < 1 || tuple > rank || update.shape.rank != inner + rank - tuple)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL,
				      "indices of %d numbers do not fit the data and the updates", tuple);
	int64_t places = onnx_elements(&index.shape) / tuple, n = 1;
	struct onnx_shape joined = {rank - tuple + 1, {0}}, listed = {rank - tuple + 1, {places}};
	struct onnx_operand flat = {0},
			    list = onnx_reshape(o, index, &(struct onnx_shape){2, {places, tuple}});
	for (int k = tuple; k-- > 0; n = onnx_times(n, x.shape.dim[k])) {
		struct onnx_operand at =
		    onnx_reshape(o, onnx_slice(o, list, 1, k, k + 1), &(struct onnx_shape){1, {places}});
		at = onnx_map(o, from_zero(o, at, x.shape.dim[k]), at.type,
			      onnx_format(o, "a * %lld", (long long)n));
		flat = flat.given ? onnx_two(o, flat, at, at.type, "a + b") : at;
	}
	joined.dim[0] = n;
	for (int d = tuple; d < rank; d++)
		joined.dim[1 + d - tuple] = listed.dim[1 + d - tuple] = x.shape.dim[d];
	struct onnx_operand data = onnx_reshape(o, x, &joined), updates = onnx_reshape(o, update, &listed),
			    count = onnx_count(o, flat.type, n);
	const char *at[RA_MAX_RANK] = {onnx_format(o, "%s0", o->target->reduced)};
	for (int d = 1; d < joined.rank; d++)
		at[d] = axis_name(o, d);
	struct str value = str_in(o->arena);
	put_list(&value, "c", at, joined.rank);
	struct onnx_operand y =
	    scatter(o, (struct onnx_operand *[]){&data, &flat, &updates, &count}, 4,
		    onnx_format(o, "b[%s] == d[%s]", at[0], axis_name(o, 0)), str_text(&value),
		    onnx_format(o, "%s in %lld", at[0], (long long)places));
	o->out[0] = y.given ? onnx_reshape(o, y, &x.shape) : y;
	return o->out[0].given;
}

/* --- positions --- */

bool onnx_write_one_hot(struct onnx_op *o)
{
	struct onnx_operand index = o->in[0];
	int64_t depth;
	int n, axis = onnx_axis(o, onnx_int(o, "axis"), index.shape.rank + 1);
	if (axis < 0 || !onnx_known_ints(o, 1, 1, &depth, &n) || n != 1 ||
	    !check_rank(o, index.shape.rank + 1))
		return false;
	struct onnx_shape shape = index.shape,
			  row = {index.shape.rank + 1 - axis, {depth, 1, 1, 1, 1, 1, 1, 1}}, single = {0};
	memmove(&shape.dim[axis + 1], &shape.dim[axis], sizeof shape.dim[0] * (shape.rank - axis));
	shape.dim[axis] = 1, shape.rank++;
	index = onnx_reshape(o, from_zero(o, index, depth), &shape);
	struct onnx_operand hot =
	    onnx_two(o, index, onnx_reshape(o, onnx_count(o, index.type, depth), &row), ONNX_BOOL, "a == b");
	struct onnx_operand off = onnx_reshape(o, onnx_slice(o, o->in[2], 0, 0, 1), &single);
	struct onnx_operand on = onnx_reshape(o, onnx_slice(o, o->in[2], 0, 1, 2), &single);
	o->out[0] = onnx_formula(o, o->in[2].type, &hot.shape, (struct onnx_operand *[]){&hot, &on, &off}, 3,
				 "where(a, b, c)");
	return true;
}

bool onnx_write_trilu(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int64_t k = 0;
	int n = 1, rank = x.shape.rank;
	if (rank < 2)
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "it takes matrices");
	if (onnx_given(o, 1) && !onnx_known_ints(o, 1, 1, &k, &n))
		return false;
	int64_t rows = x.shape.dim[rank - 2], columns = x.shape.dim[rank - 1];
	k = k < -rows ? -rows : k > columns ? columns : k;
	struct onnx_operand row =
	    onnx_reshape(o, onnx_count(o, ONNX_INT32, rows), &(struct onnx_shape){2, {rows, 1}});
	struct onnx_operand kept =
	    onnx_two(o, row, onnx_count(o, ONNX_INT32, columns), ONNX_BOOL,
		     onnx_format(o, "b %s a + %lld", onnx_int(o, "upper") ? ">=" : "<=", (long long)k));
	o->out[0] =
	    onnx_two(o, x, kept, x.type, onnx_computed(x.type) == DTYPE_BOOL ? "a and b" : "where(b, a, 0)");
	return true;
}

/* The rank of an element is how many come before it; that of rank k is found for each k. */
bool onnx_write_top_k(struct onnx_op *o)
{
	struct onnx_operand x = o->in[0];
	int64_t k = onnx_int(o, "k");
	int n, rank = x.shape.rank, axis = onnx_axis(o, onnx_int(o, "axis"), rank);
	if (axis < 0 || (onnx_given(o, 1) && !onnx_known_ints(o, 1, 1, &k, &n)))
		return false;
	if (k < 1 || k > x.shape.dim[axis])
		return onnx_op_refuse(o, DIAG_ONNX_SHAPE, NULL, "there are no %lld of %lld elements",
				      (long long)k, (long long)x.shape.dim[axis]);
	bool largest = o->node->opset < 11 || onnx_int(o, "largest");
	const char *own[RA_MAX_RANK], *other[RA_MAX_RANK], *r = onnx_format(o, "%s0", o->target->reduced);
	for (int d = 0; d < rank; d++)
		own[d] = axis_name(o, d), other[d] = d == axis ? r : own[d];
	struct onnx_operand count = onnx_count(o, ONNX_INT64, x.shape.dim[axis]);
	struct str a = str_in(o->arena), b = str_in(o->arena), c = str_in(o->arena);
	put_list(&a, "a", own, rank);
	put_list(&b, "a", other, rank);
	const char *over = onnx_format(o, "%s in %lld", r, (long long)x.shape.dim[axis]);
	const char *before =
	    onnx_format(o, "sum(cast(%s %s %s or (%s == %s and b[%s] < b[%s]), i64) for %s)", str_text(&b),
			largest ? ">" : "<", str_text(&a), str_text(&b), str_text(&a), r, own[axis], over);
	struct onnx_operand place =
	    onnx_nest(o, ONNX_INT64, &x.shape, (struct onnx_operand *[]){&x, &count}, 2, before);
	struct onnx_shape shape = x.shape;
	shape.dim[axis] = k;
	struct onnx_operand ranks = onnx_count(o, ONNX_INT64, k);
	put_list(&c, "b", other, rank);
	o->out[0] = onnx_nest(o, x.type, &shape, (struct onnx_operand *[]){&x, &place, &ranks}, 3,
			      onnx_format(o, "sum(where(%s == c[%s], %s, 0) for %s)", str_text(&c), own[axis],
					  str_text(&b), over));
	if (o->outs > 1)
		o->out[1] =
		    onnx_nest(o, ONNX_INT64, &shape, (struct onnx_operand *[]){&x, &place, &ranks, &count}, 4,
			      onnx_format(o, "sum(where(%s == c[%s], d[%s], 0) for %s)", str_text(&c),
					  own[axis], r, over));
	return true;
}
