/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Sizes of dimensions from the tensors of a weights file. */
#include "ra/syntax.h"

/* An axis of a parameter, and its extent in the file. */
struct equation {
	int param, axis;
	int64_t extent;
	int unknowns;
};

/* An equation in which a symbol occurs, in a list for each symbol. */
struct use {
	int equation, next; /* -1 = the last */
};

struct solver {
	struct arena *arena;
	struct diags *diags;
	const struct ra_model *m;
	const char *file;
	const struct tensor_info *tensors;
	size_t n;
	int64_t *sizes;
	bool *known;	/* by symbol: the size */
	int *source;	/* of a size: the equation; -1 = it is computed */
	bool *excused;	/* by symbol: a parameter that has it is at fault, which was reported */
	int *first_use;
	bool *matched; /* tensors that the model names */
	VEC(struct equation) equations;
	VEC(struct use) uses;
	VEC(int) ready; /* equations with one unknown */
	int faults;
};

__attribute__((format(printf, 5, 6))) static void
report_fault(struct solver *b, enum diag_id id, struct diag_at at, const char *hint, const char *format, ...)
{
	struct str s = str_in(b->arena);
	va_list args;
	if (b->faults++ >= RA_REPORT_LIMIT)
		return;
	va_start(args, format);
	str_vprintf(&s, format, args);
	va_end(args);
	diag_add(b->diags, id, at, hint, "%s", str_text(&s));
}

/* The model's name that is nearest, if any is, and what to do when none is meant. */
static const char *extra_hint(struct solver *b, const char *tensor)
{
	struct ra_nearest near = ra_nearest_to(tensor, strlen(tensor));
	for (size_t i = 0; i < b->m->params.n; i++)
		ra_consider_name(&near, b->m->params.at[i].name, strlen(b->m->params.at[i].name));
	struct str s = str_in(b->arena);
	if (near.best)
		str_printf(&s, "the model has '%.*s'; or", (int)near.best_length, near.best);
	else
		str_puts(&s, "declare it as a parameter, or");
	str_puts(&s, " leave it out before saving, del w[");
	str_python(&s, tensor);
	str_puts(&s, "]");
	return str_text(&s);
}

/* Whether no more faults are kept: then suggestions, which take long, are not searched for. */
static bool said_enough(const struct solver *b)
{
	return b->faults >= RA_REPORT_LIMIT;
}

static const struct ra_dim *dim_of(const struct solver *b, const struct equation *e)
{
	return &b->m->params.at[e->param].shape.dim[e->axis];
}

static const char *tensor_shape(struct solver *b, const struct tensor_info *t)
{
	struct str s = str_in(b->arena);
	str_puts(&s, "[");
	for (int i = 0; i < t->rank; i++)
		str_printf(&s, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
	str_puts(&s, "]");
	return str_text(&s);
}

/* --- matching names --- */

/* Marks the symbols of a parameter that is at fault: that their sizes are not found is no further fault. */
static void excuse_symbols(struct solver *b, const struct ra_param *p)
{
	for (int i = 0; i < p->shape.rank; i++)
		for (int t = 0; t < p->shape.dim[i].terms; t++)
			b->excused[p->shape.dim[i].term[t].symbol] = true;
}

static void report_missing(struct solver *b, const struct ra_param *p)
{
	struct ra_nearest near = ra_nearest_to(p->name, strlen(p->name));
	for (size_t i = 0; i < b->n && !said_enough(b); i++)
		if (!b->matched[i])
			ra_consider_name(&near, b->tensors[i].name, strlen(b->tensors[i].name));
	report_fault(b, DIAG_WEIGHT_MISSING, p->at,
		     near.best ? str_format(b->arena, "the file has '%.*s'", (int)near.best_length, near.best)
			       : "name the parameter as the file names its tensor",
		     "%s has no tensor '%s'", b->file, p->name);
	excuse_symbols(b, p);
}

static void report_extra(struct solver *b, const struct tensor_info *t)
{
	if (said_enough(b))
		return;
	report_fault(b, DIAG_WEIGHT_EXTRA, (struct diag_at){.file = b->file}, extra_hint(b, t->name),
		     "the model '%s' has no parameter '%s' (%s)", b->m->name, t->name, tensor_shape(b, t));
}

/* Whether a tensor without a parameter can be ignored: a state_dict has integers that are no weights. */
static bool is_counter(const struct tensor_info *t)
{
	return dtype_traits_of(t->dtype)->kind != DTYPE_FLOAT;
}

/* False after a diagnostic. */
static bool check_type(struct solver *b, const struct ra_param *p, const struct tensor_info *t)
{
	if (dtype_widens(t->dtype, p->dtype))
		return true;
	report_fault(b, DIAG_WEIGHT_TYPE, p->at,
		     str_format(b->arena,
			       "declare it : %s and cast it where it is used, or convert the tensor",
			       dtype_traits_of(t->dtype)->spelling),
		     "'%s' is %s in %s, the model says %s", p->name, dtype_traits_of(t->dtype)->spelling,
		     b->file, dtype_traits_of(p->dtype)->spelling);
	excuse_symbols(b, p);
	return false;
}

static void add_equation(struct solver *b, int param, int axis, int64_t extent)
{
	struct equation e = {.param = param, .axis = axis, .extent = extent};
	const struct ra_dim *d = dim_of(b, &e);
	e.unknowns = d->terms;
	for (int t = 0; t < d->terms; t++) {
		int symbol = d->term[t].symbol;
		vec_push(b->arena, &b->uses, (struct use){(int)b->equations.n, b->first_use[symbol]});
		b->first_use[symbol] = (int)b->uses.n - 1;
	}
	vec_push(b->arena, &b->equations, e);
}

static void add_equations(struct solver *b, int param, const struct tensor_info *t)
{
	const struct ra_param *p = &b->m->params.at[param];
	if (!check_type(b, p, t))
		return;
	if (t->rank != p->shape.rank) {
		report_fault(b, DIAG_WEIGHT_RANK, p->at,
			     "transpose or reshape the tensor, or correct the declaration",
			     "'%s' is %s in %s, the model says %s", p->name, tensor_shape(b, t), b->file,
			     ra_shape_text(b->arena, b->m, &p->shape));
		excuse_symbols(b, p);
		return;
	}
	for (int axis = 0; axis < t->rank; axis++) {
		if (t->shape[axis] >= 1 && t->shape[axis] <= INT32_MAX) {
			add_equation(b, param, axis, t->shape[axis]);
			continue;
		}
		report_fault(b, DIAG_WEIGHT_EXTENT, p->at, "extents are between 1 and 2147483647",
			     "'%s' is %s in %s", p->name, tensor_shape(b, t), b->file);
		excuse_symbols(b, p);
	}
}

/* Of two tensors with one name the first counts, the other is extra. */
static void match_tensors(struct solver *b)
{
	struct map names = map_in(b->arena);
	for (size_t i = 0; i < b->n; i++)
		map_add(&names, b->tensors[i].name, strlen(b->tensors[i].name), (int)i);
	int *tensor = ARENA_ARRAY(b->arena, int, b->m->params.n + 1);
	for (size_t i = 0; i < b->m->params.n; i++) {
		tensor[i] = map_get(&names, b->m->params.at[i].name, strlen(b->m->params.at[i].name));
		if (tensor[i] >= 0)
			b->matched[tensor[i]] = true;
	}
	for (size_t i = 0; i < b->m->params.n; i++)
		if (tensor[i] < 0)
			report_missing(b, &b->m->params.at[i]);
		else
			add_equations(b, (int)i, &b->tensors[tensor[i]]);
	for (size_t i = 0; i < b->n; i++)
		if (!b->matched[i] && !is_counter(&b->tensors[i]))
			report_extra(b, &b->tensors[i]);
}

/* --- solving --- */

enum { COMPUTED = -1 }; /* the source of a size that no equation tells */

static bool is_bare(const struct ra_dim *d)
{
	return d->terms == 1 && d->term[0].coefficient == 1 && !d->constant;
}

static void set_size(struct solver *b, int symbol, int64_t size, int equation)
{
	b->sizes[symbol] = size;
	b->known[symbol] = true;
	b->source[symbol] = equation;
	for (int u = b->first_use[symbol]; u >= 0; u = b->uses.at[u].next)
		if (--b->equations.at[b->uses.at[u].equation].unknowns == 1)
			vec_push(b->arena, &b->ready, b->uses.at[u].equation);
}

/* Finds the one unknown of an equation; an equation without a solution is not tried again. */
static void solve_equation(struct solver *b, int equation)
{
	struct equation *e = &b->equations.at[equation];
	const struct ra_dim *d = dim_of(b, e);
	int64_t rest = e->extent - d->constant, coefficient = 0;
	int unknown = -1;
	for (int t = 0; t < d->terms; t++) {
		int symbol = d->term[t].symbol;
		if (b->known[symbol]) {
			rest -= d->term[t].coefficient * b->sizes[symbol];
		} else {
			unknown = symbol;
			coefficient = d->term[t].coefficient;
		}
	}
	if (unknown < 0 || b->m->symbols.at[unknown].divisor)
		return;
	int64_t size = rest / coefficient;
	if (rest % coefficient == 0 && size >= 1 && size <= INT32_MAX) {
		set_size(b, unknown, size, equation);
		return;
	}
	const struct ra_param *p = &b->m->params.at[e->param];
	report_fault(b, DIAG_WEIGHT_CONFLICT, p->at, "correct the declaration or the file",
		     "axis %d of '%s' is %lld in %s: no size of %s makes '%s' that", e->axis, p->name,
		     (long long)e->extent, b->file, b->m->symbols.at[unknown].name,
		     ra_dim_text_of(b->arena, b->m, d));
	b->excused[unknown] = true;
	e->unknowns = 0;
}

static bool is_solved(const struct solver *, const struct ra_dim *);

/* Computes the sizes whose symbols are known; false if there is no new one. */
static bool compute_sizes(struct solver *b)
{
	bool any = false;
	for (size_t i = ra_given_symbols(b->m); i < b->m->symbols.n; i++) {
		if (b->known[i] || !is_solved(b, &b->m->symbols.at[i].of))
			continue;
		set_size(b, (int)i, ra_computed_size(&b->m->symbols.at[i], b->sizes), COMPUTED);
		any = true;
	}
	return any;
}

/* Dimensions that are a symbol alone come first, since their diagnostics are clearest.  Every other equation
 * is solved as soon as one unknown is left. */
static void solve_all(struct solver *b)
{
	for (size_t i = 0; i < b->equations.n; i++) {
		const struct ra_dim *d = dim_of(b, &b->equations.at[i]);
		if (is_bare(d) && !b->known[d->term[0].symbol] && !b->m->symbols.at[d->term[0].symbol].divisor)
			set_size(b, d->term[0].symbol, b->equations.at[i].extent, (int)i);
	}
	for (size_t i = 0; i < b->equations.n; i++)
		if (b->equations.at[i].unknowns == 1)
			vec_push(b->arena, &b->ready, (int)i);
	size_t next = 0;
	do
		for (; next < b->ready.n; next++)
			if (b->equations.at[b->ready.at[next]].unknowns == 1)
				solve_equation(b, b->ready.at[next]);
	while (compute_sizes(b));
}

/* --- checking --- */

/* "D is 256 (from 'leaf.W_i')" for the symbols of a dimension. */
static const char *explain_dim(struct solver *b, const struct ra_dim *d)
{
	struct str s = str_in(b->arena);
	for (int t = 0; t < d->terms; t++) {
		int symbol = d->term[t].symbol;
		str_printf(&s, "%s%s is %lld", t ? ", " : "", b->m->symbols.at[symbol].name,
			   (long long)b->sizes[symbol]);
		if (b->source[symbol] != COMPUTED)
			str_printf(&s, " (from '%s')",
				   b->m->params.at[b->equations.at[b->source[symbol]].param].name);
	}
	return s.n ? str_text(&s) : "the model gives it as a number";
}

static bool is_solved(const struct solver *b, const struct ra_dim *d)
{
	for (int t = 0; t < d->terms; t++)
		if (!b->known[d->term[t].symbol])
			return false;
	return true;
}

static void check_equations(struct solver *b)
{
	for (size_t i = 0; i < b->equations.n; i++) {
		const struct equation *e = &b->equations.at[i];
		const struct ra_dim *d = dim_of(b, e);
		const struct ra_param *p = &b->m->params.at[e->param];
		if (!is_solved(b, d) || ra_dim_value(d, b->sizes) == e->extent)
			continue;
		report_fault(b, DIAG_WEIGHT_CONFLICT, p->at, explain_dim(b, d),
			     "axis %d of '%s' is %lld in %s, but %s %s%lld", e->axis, p->name,
			     (long long)e->extent, b->file,
			     d->terms ? ra_dim_text_of(b->arena, b->m, d) : "must be", d->terms ? "is " : "",
			     (long long)ra_dim_value(d, b->sizes));
	}
}

static void check_solved(struct solver *b)
{
	for (size_t i = 0; i < b->m->symbols.n; i++)
		if (!b->known[i] && !b->excused[i] && !b->m->symbols.at[i].divisor)
			report_fault(
			    b, DIAG_WEIGHT_UNBOUND, (struct diag_at){.file = b->m->file},
			    "use the name in the shape of a parameter, or write the number instead of it",
			    "no parameter tells how large %s is", b->m->symbols.at[i].name);
}

static bool check_extent(struct solver *b, const struct ra_dim *d, int64_t least, struct diag_at at)
{
	int64_t value = ra_dim_value(d, b->sizes);
	if (value >= least && value <= INT32_MAX)
		return true;
	report_fault(b, DIAG_WEIGHT_EXTENT, at, explain_dim(b, d), "with %s, %s is %lld", b->file,
		     ra_dim_text_of(b->arena, b->m, d), (long long)value);
	return false;
}

/* Checks the extents, which parsing could not know, and the number of elements. */
static bool check_shape(struct solver *b, const struct ra_shape *s, struct diag_at at)
{
	int64_t elements = 1;
	for (int i = 0; i < s->rank; i++) {
		if (!check_extent(b, &s->dim[i], 1, at))
			return false;
		if (!__builtin_mul_overflow(elements, ra_dim_value(&s->dim[i], b->sizes), &elements) &&
		    elements <= RA_ELEMENT_LIMIT)
			continue;
		report_fault(b, DIAG_WEIGHT_EXTENT, at,
			     str_format(b->arena, "at most %lld are possible", RA_ELEMENT_LIMIT),
			     "with %s, %s has too many elements", b->file, ra_shape_text(b->arena, b->m, s));
		return false;
	}
	return true;
}

static void check_slice(struct solver *b, const struct ra_node *n)
{
	if (!check_extent(b, &n->begin, 0, n->at))
		return;
	const struct ra_dim *from = &ra_at(b->m, n->arg[0])->shape.dim[n->axis];
	int64_t axis = ra_dim_value(from, b->sizes), begin = ra_dim_value(&n->begin, b->sizes);
	int64_t end = begin + ra_dim_value(&n->shape.dim[n->axis], b->sizes);
	if (end > axis)
		report_fault(b, DIAG_WEIGHT_EXTENT, n->at, explain_dim(b, from),
			     "with %s, the slice from %lld to %lld leaves its axis of extent %lld", b->file,
			     (long long)begin, (long long)end, (long long)axis);
}

static void check_row(struct solver *b, const struct ra_node *n)
{
	const struct ra_dim *rows = &ra_at(b->m, n->arg[0])->shape.dim[0];
	int64_t extent = ra_dim_value(rows, b->sizes);
	if (n->begin.constant >= extent)
		report_fault(b, DIAG_WEIGHT_EXTENT, n->at, explain_dim(b, rows),
			     "with %s, row %lld leaves its axis of extent %lld", b->file,
			     (long long)n->begin.constant, (long long)extent);
}

/* The least and the greatest value of an index. */
static void find_range(const struct solver *b, const struct ra_index_form *f, int64_t *least, int64_t *most)
{
	*least = *most = ra_dim_value(&f->offset, b->sizes);
	for (int t = 0; t < f->terms; t++) {
		int64_t last = ra_dim_value(&b->m->indices.at[f->term[t].index].extent, b->sizes) - 1;
		*(f->term[t].scale < 0 ? least : most) += f->term[t].scale * last;
	}
}

/* Checks that an element without a fill is inside. */
static void check_element(struct solver *b, const struct ra_node *n)
{
	const struct ra_shape *from = &ra_at(b->m, n->arg[0])->shape;
	for (int d = 0; d < from->rank && !n->element->written && !n->element->reduced; d++) {
		int64_t least, most, extent = ra_dim_value(&from->dim[d], b->sizes);
		if (ra_is_gathered(n, d))
			continue;
		find_range(b, &n->element->at[d], &least, &most);
		if (least >= 0 && most < extent)
			continue;
		report_fault(b, DIAG_WEIGHT_EXTENT, n->at, "say what is read outside: x[i - 1] else 0",
			     "with %s, index %lld leaves its axis of extent %lld", b->file,
			     (long long)(least < 0 ? least : most), (long long)extent);
		return;
	}
}

static int64_t count_elements(const struct solver *b, const struct ra_shape *s)
{
	int64_t n = 1;
	for (int d = 0; d < s->rank; d++)
		n *= ra_dim_value(&s->dim[d], b->sizes);
	return n;
}

static void check_reshape(struct solver *b, const struct ra_node *n)
{
	const struct ra_shape *from = &ra_at(b->m, n->arg[0])->shape;
	int64_t has = count_elements(b, from), wants = count_elements(b, &n->shape);
	if (has != wants)
		report_fault(b, DIAG_WEIGHT_EXTENT, n->at,
			     "a value keeps its elements: their number is the product of the extents",
			     "with %s, %s has %lld elements and %s has %lld", b->file,
			     ra_shape_text(b->arena, b->m, from), (long long)has,
			     ra_shape_text(b->arena, b->m, &n->shape), (long long)wants);
}

/* Checks the shape, that slices, rows and elements are inside of their axes, and that elements are kept. */
static void check_node(struct solver *b, const struct ra_node *n)
{
	if (!check_shape(b, &n->shape, n->at))
		return;
	if (ra_is_element(n))
		check_element(b, n);
	else if (n->op == RA_SLICE)
		check_slice(b, n);
	else if (n->op == RA_ROW)
		check_row(b, n);
	else if (n->op == RA_RESHAPE)
		check_reshape(b, n);
}

/* Whether an output has as many elements as labels, now that the sizes are known. */
static void check_labels(struct solver *b, const struct ra_output *o)
{
	const struct ra_dim *elements = &ra_at(b->m, o->value)->shape.dim[0];
	int64_t extent = o->labels ? ra_dim_value(elements, b->sizes) : 0;
	if (extent != o->labels)
		report_fault(b, DIAG_MODEL_LABELS, o->at, explain_dim(b, elements),
			     "with %s, the output '%s' has %lld elements and %d labels", b->file, o->name,
			     (long long)extent, o->labels);
}

/* Called when all sizes are known.  Stops at the first fault, which explains the others. */
static void check_nodes(struct solver *b)
{
	for (size_t i = 0; i < b->m->params.n && !b->faults; i++)
		check_shape(b, &b->m->params.at[i].shape, b->m->params.at[i].at);
	for (size_t i = 0; i < b->m->inputs.n && !b->faults; i++)
		check_shape(b, &b->m->inputs.at[i].shape, b->m->inputs.at[i].at);
	for (size_t i = 0; i < b->m->states.n && !b->faults; i++)
		check_shape(b, &b->m->states.at[i].shape, b->m->states.at[i].at);
	for (size_t i = 0; i < b->m->traversals.n && !b->faults; i++)
		if (ra_is_scan(&b->m->traversals.at[i]))
			check_extent(b, &b->m->traversals.at[i].steps, 1, b->m->traversals.at[i].at);
	for (size_t i = 0; i < b->m->indices.n && !b->faults; i++)
		check_extent(b, &b->m->indices.at[i].extent, 1, b->m->indices.at[i].at);
	for (size_t i = 1; i < b->m->nodes.n && !b->faults; i++)
		check_node(b, &b->m->nodes.at[i]);
	for (size_t i = 0; i < b->m->outputs.n && !b->faults; i++)
		check_labels(b, &b->m->outputs.at[i]);
}

static bool solve_model(struct solver *b)
{
	size_t symbols = b->m->symbols.n;
	if (symbols)
		memset(b->sizes, 0, symbols * sizeof *b->sizes);
	b->known = ARENA_ARRAY(b->arena, bool, symbols + 1);
	b->source = ARENA_ARRAY(b->arena, int, symbols + 1);
	b->excused = ARENA_ARRAY(b->arena, bool, symbols + 1);
	b->first_use = ARENA_ARRAY(b->arena, int, symbols + 1);
	memset(b->first_use, -1, (symbols + 1) * sizeof *b->first_use);
	b->matched = ARENA_ARRAY(b->arena, bool, b->n + 1);
	match_tensors(b);
	solve_all(b);
	check_equations(b);
	check_solved(b);
	if (!b->faults)
		check_nodes(b);
	return !b->faults;
}

bool ra_bind(const struct ra_model *m, struct diags *d, const char *weights_file,
	     const struct tensor_info *tensors, size_t n, int64_t *sizes)
{
	struct arena arena;
	jmp_buf escape;
	arena_init(&arena, d->allocator);
	if (arena_guard(&arena, &escape)) {
		arena_free(&arena);
		return diag_add(d, DIAG_OUT_OF_MEMORY, (struct diag_at){.file = weights_file}, NULL,
				"no memory to bind '%s'", m->name);
	}
	struct solver b = {.arena = &arena,
			   .diags = d,
			   .m = m,
			   .file = weights_file,
			   .tensors = tensors,
			   .n = n,
			   .sizes = sizes};
	bool bound = solve_model(&b);
	arena_free(&arena);
	return bound;
}
