/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Dimensions as linear forms over symbols, and shapes of them. */
#include "ra/syntax.h"

struct ra_shape ra_outer_shape(const struct ra_model *m, int state)
{
	const struct ra_state *s = &m->states.at[state];
	struct ra_shape shape = s->shape;
	if (!ra_is_scan(&m->traversals.at[s->traversal]))
		return shape;
	memmove(&shape.dim[1], shape.dim, (size_t)shape.rank++ * sizeof *shape.dim);
	shape.dim[0] = m->traversals.at[s->traversal].steps;
	return shape;
}

struct ra_dim ra_dim_constant(int64_t value)
{
	return (struct ra_dim){.constant = value};
}

struct ra_dim ra_dim_symbol(int symbol)
{
	return (struct ra_dim){.terms = 1, .term = {{symbol, 1}}};
}

bool ra_dim_equal(const struct ra_dim *a, const struct ra_dim *b)
{
	if (a->constant != b->constant || a->terms != b->terms)
		return false;
	for (int i = 0; i < a->terms; i++)
		if (a->term[i].symbol != b->term[i].symbol ||
		    a->term[i].coefficient != b->term[i].coefficient)
			return false;
	return true;
}

/* Appends a term after those of smaller symbols; a coefficient of 0 is no term. */
static bool append_term(struct ra_dim *d, int symbol, int64_t coefficient)
{
	if (!coefficient)
		return true;
	if (d->terms == RA_DIM_TERMS || coefficient > RA_COEFFICIENT_LIMIT ||
	    coefficient < -RA_COEFFICIENT_LIMIT)
		return false;
	d->term[d->terms].symbol = symbol;
	d->term[d->terms++].coefficient = coefficient;
	return true;
}

/* Nothing overflows: scale and coefficients are at most 2^20, constants at most 2^40. */
bool ra_dim_add(const struct ra_dim *a, int64_t scale, const struct ra_dim *b, struct ra_dim *sum)
{
	struct ra_dim s = {0};
	if (scale > RA_COEFFICIENT_LIMIT || scale < -RA_COEFFICIENT_LIMIT)
		return false;
	s.constant = a->constant + scale * b->constant;
	if (s.constant > RA_CONSTANT_LIMIT || s.constant < -RA_CONSTANT_LIMIT)
		return false;
	for (int i = 0, j = 0; i < a->terms || j < b->terms;) {
		bool left = j == b->terms || (i < a->terms && a->term[i].symbol <= b->term[j].symbol);
		bool right = i == a->terms || (j < b->terms && b->term[j].symbol <= a->term[i].symbol);
		int symbol = left ? a->term[i].symbol : b->term[j].symbol;
		int64_t coefficient = 0;
		if (left)
			coefficient += a->term[i++].coefficient;
		if (right)
			coefficient += scale * b->term[j++].coefficient;
		if (!append_term(&s, symbol, coefficient))
			return false;
	}
	*sum = s;
	return true;
}

bool ra_dim_below(const struct ra_model *m, const struct ra_dim *d, int64_t least)
{
	int64_t largest = d->constant;
	for (int i = 0; i < d->terms; i++) {
		if (d->term[i].coefficient > 0 || m->symbols.at[d->term[i].symbol].divisor)
			return false;
		largest += d->term[i].coefficient;
	}
	return largest < least;
}

/* --- sizes that are computed --- */

static int64_t clamp_size(int64_t size)
{
	return size < INT32_MIN ? INT32_MIN : size > INT32_MAX ? INT32_MAX : size;
}

static int64_t floor_division(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

size_t ra_given_symbols(const struct ra_model *m)
{
	size_t n = m->symbols.n;
	while (n && m->symbols.at[n - 1].divisor)
		n--;
	return n;
}

int64_t ra_computed_size(const struct ra_symbol *s, const int64_t *sizes)
{
	return clamp_size(floor_division(ra_dim_value(&s->of, sizes), s->divisor));
}

void ra_compute_sizes(const struct ra_model *m, int64_t *sizes)
{
	for (size_t i = ra_given_symbols(m); i < m->symbols.n; i++)
		sizes[i] = ra_computed_size(&m->symbols.at[i], sizes);
}

/* H/2, or (H - R)/2 */
static const char *quotient_text(struct ra_graph *g, const struct ra_dim *d, int divisor)
{
	struct str s = str_in(g->arena);
	bool bare = d->terms == 1 && d->term[0].coefficient == 1 && !d->constant;
	str_puts(&s, bare ? "" : "(");
	ra_dim_print(g->model, d, &s);
	str_printf(&s, "%s/%d", bare ? "" : ")", divisor);
	return str_text(&s);
}

/* The symbol of a quotient; -1 = its text, which names those that it is computed of, is too long. */
static int find_quotient(struct ra_graph *g, const struct ra_dim *d, int divisor)
{
	const char *text = quotient_text(g, d, divisor);
	if (strlen(text) > RA_NAME_LIMIT)
		return -1;
	int known = map_get(&g->computed, text, strlen(text));
	if (known >= 0)
		return known;
	vec_push(g->arena, &g->model->symbols, (struct ra_symbol){text, divisor, *d});
	map_add(&g->computed, text, strlen(text), (int)g->model->symbols.n - 1);
	return (int)g->model->symbols.n - 1;
}

/* Makes one quotient of two: ((H - R)/2 + 1)/2 is (H - R + 2)/4. */
static void join_quotients(const struct ra_model *m, struct ra_dim *d, int *divisor)
{
	const struct ra_symbol *s = d->terms == 1 ? &m->symbols.at[d->term[0].symbol] : NULL;
	struct ra_dim constant = ra_dim_constant(d->constant), joined;
	if (!s || !s->divisor || d->term[0].coefficient != 1 || (int64_t)s->divisor * *divisor > RA_COEFFICIENT_LIMIT ||
	    !ra_dim_add(&s->of, s->divisor, &constant, &joined))
		return;
	*divisor *= s->divisor;
	*d = joined;
}

/* Takes what the divisor divides out of the quotient, so that quotients are equal however they are written. */
bool ra_dim_divide(struct ra_graph *g, const struct ra_dim *dividend, int divisor, struct ra_dim *out)
{
	struct ra_dim d = *dividend;
	join_quotients(g->model, &d, &divisor);
	struct ra_dim part[2] = {{0}, {0}}; /* the rest, and what is divided */
	for (int i = 0; i < d.terms; i++) {
		int64_t c = d.term[i].coefficient;
		struct ra_dim symbol = ra_dim_symbol(d.term[i].symbol);
		bool whole = c % divisor == 0;
		if (!ra_dim_add(&part[whole], whole ? c / divisor : c, &symbol, &part[whole]))
			return false;
	}
	part[1].constant = floor_division(d.constant, divisor);
	part[0].constant = d.constant - part[1].constant * divisor;
	*out = part[1];
	if (!part[0].terms)
		return true;
	int symbol = find_quotient(g, &part[0], divisor);
	struct ra_dim quotient = ra_dim_symbol(symbol);
	return symbol >= 0 && ra_dim_add(out, 1, &quotient, out);
}

int64_t ra_dim_value(const struct ra_dim *d, const int64_t *sizes)
{
	int64_t value = d->constant;
	for (int i = 0; i < d->terms; i++)
		value += d->term[i].coefficient * sizes[d->term[i].symbol];
	return value;
}

bool ra_dim_is_one(const struct ra_dim *d)
{
	return !d->terms && d->constant == 1;
}

bool ra_shape_equal(const struct ra_shape *a, const struct ra_shape *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (!ra_dim_equal(&a->dim[i], &b->dim[i]))
			return false;
	return true;
}

bool ra_shape_broadcast(const struct ra_shape *a, const struct ra_shape *b, struct ra_shape *out,
			struct ra_dim differ[2])
{
	const struct ra_shape *more = a->rank >= b->rank ? a : b, *less = more == a ? b : a;
	*out = *more;
	for (int i = 0; i < less->rank; i++) {
		int j = i + more->rank - less->rank;
		if (ra_dim_equal(&less->dim[i], &more->dim[j]) || ra_dim_is_one(&less->dim[i]))
			continue;
		if (ra_dim_is_one(&more->dim[j])) {
			out->dim[j] = less->dim[i];
			continue;
		}
		differ[0] = more == a ? more->dim[j] : less->dim[i];
		differ[1] = more == a ? less->dim[i] : more->dim[j];
		return false;
	}
	return true;
}

/* --- as text --- */

static void print_sign(struct str *s, bool first, bool negative)
{
	if (!first)
		str_puts(s, negative ? " - " : " + ");
	else if (negative)
		str_puts(s, "-");
}

void ra_dim_print(const struct ra_model *m, const struct ra_dim *d, struct str *s)
{
	for (int i = 0; i < d->terms; i++) {
		long long c = d->term[i].coefficient;
		print_sign(s, i == 0, c < 0);
		const struct ra_symbol *symbol = &m->symbols.at[d->term[i].symbol];
		bool counted = c != 1 && c != -1;
		if (counted)
			str_printf(s, "%lld*", c < 0 ? -c : c);
		str_printf(s, counted && symbol->divisor ? "(%s)" : "%s", symbol->name);
	}
	if (d->constant || !d->terms) {
		print_sign(s, !d->terms, d->constant < 0);
		str_printf(s, "%lld", (long long)(d->constant < 0 ? -d->constant : d->constant));
	}
}

void ra_shape_print(const struct ra_model *m, const struct ra_shape *shape, struct str *s)
{
	str_puts(s, "[");
	for (int i = 0; i < shape->rank; i++) {
		str_puts(s, i ? ", " : "");
		ra_dim_print(m, &shape->dim[i], s);
	}
	str_puts(s, "]");
}

const char *ra_dim_text_of(struct arena *a, const struct ra_model *m, const struct ra_dim *d)
{
	struct str s = str_in(a);
	ra_dim_print(m, d, &s);
	return str_text(&s);
}

const char *ra_shape_text(struct arena *a, const struct ra_model *m, const struct ra_shape *shape)
{
	struct str s = str_in(a);
	ra_shape_print(m, shape, &s);
	return str_text(&s);
}
