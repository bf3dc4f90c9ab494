/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Verifies the rules of the loop IR.  Each rule is one check with its own message.  A module that passes
 * can be interpreted and compiled without further checks.  The rules of expressions are in verify_exprs.c, those
 * of matrix registers in verify_matrices.c. */
#include "ilir/verify.h"

enum { MOST_ELEMENTS = 1 << 24 };

static const struct ilir_type index_type = {ILIR_INDEX, 1};

/* --- buffers --- */

static bool check_dim(struct verification *c, const struct ilir_buffer_decl *b, int i)
{
	const struct ilir_dim *d = &b->dim[i];
	if (d->name < 0 || (size_t)d->name >= c->m->dims.n)
		return ilir_report_fault(c, "dimension %d of '%s' has no name", i, b->name);
	if (d->rows < 0 || d->rows >= IMAGE_SIZES)
		return ilir_report_fault(c, "dimension %d of '%s' has rows of no known size", i, b->name);
	if (d->rows != IMAGE_ONE && (i > 0 || b->kind == ILIR_REGISTER))
		return ilir_report_fault(
		    c, "dimension %d of '%s' is as long as the minibatch; only the first of an array may be",
		    i, b->name);
	if (d->extent < 0 || d->padded < d->extent)
		return ilir_report_fault(c, "dimension %d of '%s' is padded to less than its extent", i,
					 b->name);
	return true;
}

/* Checks that a recipe stays within its sources and axes.  Several of its dimensions may run along one
 * axis, so the sum of their extents is checked. */
static bool check_recipe_reach(struct verification *c, const struct ilir_buffer_decl *b)
{
	if (!image_walks_within(b->recipe, IMAGE_PACK_SOURCE, b->recipe->sources))
		return ilir_report_fault(c, "the recipe of '%s' has fewer sources than it interleaves",
					 b->name);
	for (int axis = 0; axis < TENSOR_MAX_RANK; axis++)
		if (!image_walks_within(b->recipe, axis, IMAGE_WALK_LIMIT))
			return ilir_report_fault(c, "the recipe of '%s' leaves axis %d", b->name, axis);
	return true;
}

static bool check_recipe(struct verification *c, const struct ilir_buffer_decl *b, int64_t elements)
{
	const struct image_recipe *r = b->recipe;
	int64_t packed = 1;
	if (b->kind != IMAGE_WEIGHT)
		return ilir_report_fault(c, "'%s' is packed but not a weight", b->name);
	if (r->dims < 0 || r->dims > IMAGE_PACK_DIMS || r->sources < 1)
		return ilir_report_fault(c, "the recipe of '%s' has %d dimensions and %d sources", b->name,
					 r->dims, r->sources);
	for (int i = 0; i < r->dims; i++) {
		const struct image_pack_dim *d = &r->dim[i];
		if (d->axis < IMAGE_PACK_SOURCE || d->axis >= TENSOR_MAX_RANK || d->extent < 0)
			return ilir_report_fault(c, "dimension %d of the recipe of '%s' walks along no axis",
						 i, b->name);
		if (__builtin_mul_overflow(packed, d->extent, &packed))
			packed = -1;
	}
	if (packed != elements)
		return ilir_report_fault(
		    c, "the recipe of '%s' fills another number of elements than the buffer has", b->name);
	return check_recipe_reach(c, b);
}

/* The number of elements of a row, or of a buffer without rows; -1 if it overflows. */
static int64_t row_elements(const struct ilir_buffer_decl *b)
{
	int64_t n = 1;
	for (int i = 0; i < b->rank; i++)
		if (b->dim[i].rows == IMAGE_ONE && __builtin_mul_overflow(n, b->dim[i].padded, &n))
			return -1;
	return n;
}

/* Checks that a state's rows are like those of its table. */
static bool check_table(struct verification *c, const struct ilir_buffer_decl *b)
{
	const struct ilir_module *m = c->m;
	bool known = b->table.i < m->buffers.n && b->read_row.i && b->read_row.i < m->buffers.n;
	const struct ilir_buffer_decl *t = known ? ilir_buffer_at(m, b->table) : b;
	bool alike = known && b->kind == IMAGE_STATE && t->kind == IMAGE_WEIGHT && t->dtype == b->dtype && t->rank == b->rank &&
		     ilir_buffer_at(m, b->read_row)->kind == IMAGE_READ_ROW;
	for (int d = 1; alike && d < b->rank; d++)
		alike = t->dim[d].padded == b->dim[d].padded;
	return alike || ilir_report_fault(c, "'%s' has no rows like those of its table", b->name);
}

/* Checks that the caller's rows, which follow each other, have no padding. */
static bool check_given(struct verification *c, const struct ilir_buffer_decl *b)
{
	for (int d = 0; d < b->rank; d++)
		if (b->dim[d].padded != b->dim[d].extent)
			return ilir_report_fault(c, "'%s' is padded, but its rows are the caller's", b->name);
	return true;
}

static bool check_buffer(struct verification *c, const struct ilir_buffer_decl *b)
{
	if (b->kind < 0 || b->kind > ILIR_UNUSED)
		return ilir_report_fault(c, "'%s' is of no known kind", b->name);
	if (b->dtype >= ILIR_INDEX && !(b->dtype == ILIR_INDEX && b->kind == ILIR_REGISTER))
		return ilir_report_fault(c, "'%s' cannot hold elements of type %s", b->name,
					 b->dtype < ILIR_DTYPES ? ilir_dtype_word[b->dtype]
								: "no known type");
	if (b->rank < 0 || b->rank > ILIR_MAX_RANK)
		return ilir_report_fault(c, "'%s' has rank %d", b->name, b->rank);
	for (int i = 0; i < b->rank; i++)
		if (!check_dim(c, b, i))
			return false;
	int64_t elements = row_elements(b);
	if (elements < 0 || (b->kind == ILIR_REGISTER && elements > MOST_ELEMENTS))
		return ilir_report_fault(c, "'%s' has too many elements", b->name);
	return (b->kind != IMAGE_GIVEN || check_given(c, b)) && (!b->table.i || check_table(c, b)) && (!b->recipe || check_recipe(c, b, elements));
}

/* --- statements --- */

static void check_block(struct verification *c, const struct ilir_stmt *s);

static bool is_inferred(struct verification *c, ilir_expr e)
{
	return ilir_at(c->m, e)->op == ILIR_INFERRED;
}

static bool check_bound(struct verification *c, ilir_expr e)
{
	if (!ilir_check_root(c, e))
		return false;
	if (!ilir_same_type(ilir_type_of(c->m, e), index_type))
		return ilir_report_fault(c, "a bound is not a scalar index");
	if ((c->properties & ILIR_BOUNDED) && is_inferred(c, e))
		return ilir_report_fault(c, "a bound is left to be inferred");
	return true;
}

static bool has_constant_trip_count(struct verification *c, const struct ilir_stmt *s)
{
	int64_t x, y;
	ilir_expr begin = ilir_split_constant(c->m, s->loop.begin, &x),
		  end = ilir_split_constant(c->m, s->loop.end, &y);
	return begin.i == end.i || is_inferred(c, s->loop.begin) || is_inferred(c, s->loop.end);
}

/* Makes a variable visible that a statement defines. */
static bool define_var(struct verification *c, ilir_var v, struct ilir_type type)
{
	if (v.i <= ilir_end.i || v.i >= c->m->vars.n)
		return ilir_report_fault(c, "it defines variable %u, which is predefined or does not exist",
					 v.i);
	const struct ilir_var_decl *d = &c->m->vars.at[v.i];
	if (c->var_defined[v.i])
		return ilir_report_fault(c, "variable '%s' is defined a second time", d->name);
	c->var_defined[v.i] = c->var_visible[v.i] = true;
	return ilir_same_type(d->type, type) ||
	       ilir_report_fault(c, "variable '%s' is declared with another type", d->name);
}

/* Swept loops are the end of their kernel, because a call chooses iterations of a single nest.  Before them
 * are only loops, which each call runs, and around them only loops with as many iterations in each call. */
static bool check_swept(struct verification *c, const struct ilir_stmt *s)
{
	const struct ilir_stmt *at = ilir_swept_loop(c->kernel), *around = NULL;
	bool loops = true;
	for (const struct ilir_stmt *head = c->kernel->body; head; head = head->next)
		around = head, loops &= head->kind == ILIR_FOR;
	for (; at && loops && around && around != at; around = around->loop.body)
		loops = ilir_trip_count(c->m, around) > 0;
	while (at && at != s && !at->next && at->kind == ILIR_FOR && at->loop.kind == ILIR_SWEPT)
		at = at->loop.body;
	if (!loops || at != s || s->next)
		return ilir_report_fault(c, "a swept loop that is not all of its kernel but the head");
	return ilir_trip_count(c->m, s) > 0 ||
	       ilir_report_fault(c, "a swept loop without a constant number of iterations");
}

static bool check_loop_kind(struct verification *c, const struct ilir_stmt *s)
{
	if ((s->loop.kind == ILIR_VECTOR || s->loop.kind == ILIR_UNROLLED) && !has_constant_trip_count(c, s))
		return ilir_report_fault(c, "this %s loop has no constant number of iterations",
					 ilir_loop_word[s->loop.kind]);
	if ((c->properties & ILIR_VECTORIZED) && s->loop.kind == ILIR_VECTOR)
		return ilir_report_fault(c, "a vector loop is left");
	if ((c->properties & ILIR_UNROLLED_ALL) && s->loop.kind == ILIR_UNROLLED)
		return ilir_report_fault(c, "an unrolled loop is left");
	if (s->loop.kind == ILIR_MATRIX)
		ilir_check_matrix_loop(c, s);
	else if (s->loop.kind == ILIR_SWEPT)
		ilir_check_level(c, "a swept loop");
	return s->loop.kind != ILIR_SWEPT || check_swept(c, s);
}

static void check_for(struct verification *c, const struct ilir_stmt *s)
{
	if (!check_bound(c, s->loop.begin) || !check_bound(c, s->loop.end))
		return;
	if (s->loop.step <= 0)
		ilir_report_fault(c, "a step that is not positive");
	if (s->loop.dim < 0 || (size_t)s->loop.dim >= c->m->dims.n) {
		ilir_report_fault(c, "a loop that walks along no dimension");
		return;
	}
	if (!check_loop_kind(c, s) || !define_var(c, s->loop.var, index_type))
		return;
	c->loop_of[s->loop.var.i] = s;
	const struct ilir_stmt *around = c->matrices;
	c->matrices = s->loop.kind == ILIR_MATRIX ? s : around;
	check_block(c, s->loop.body);
	c->matrices = around;
	c->var_visible[s->loop.var.i] = false;
}

static void check_if(struct verification *c, const struct ilir_stmt *s)
{
	if (ilir_check_root(c, s->branch.condition) &&
	    !ilir_same_type(ilir_type_of(c->m, s->branch.condition), (struct ilir_type){ILIR_BOOL, 1}))
		ilir_report_fault(c, "a condition that is not a scalar bool");
	check_block(c, s->branch.then);
	check_block(c, s->branch.otherwise);
}

static bool check_value(struct verification *c, ilir_expr e)
{
	if (!ilir_check_root(c, e))
		return false;
	if (ilir_at(c->m, e)->op == ILIR_RAMP || is_inferred(c, e))
		return ilir_report_fault(c, "a ramp or '?' stands as a value");
	return true;
}

static void check_let(struct verification *c, const struct ilir_stmt *s)
{
	if (check_value(c, s->let.value))
		define_var(c, s->let.var, ilir_type_of(c->m, s->let.value));
}

static void check_alloc(struct verification *c, const struct ilir_stmt *s)
{
	if (!s->alloc.i || s->alloc.i >= c->m->buffers.n ||
	    ilir_buffer_at(c->m, s->alloc)->kind != ILIR_REGISTER) {
		ilir_report_fault(c, "alloc of something else than a register");
		return;
	}
	if (c->register_defined[s->alloc.i])
		ilir_report_fault(c, "register '%s' is defined a second time",
				  ilir_buffer_at(c->m, s->alloc)->name);
	c->register_defined[s->alloc.i] = c->register_visible[s->alloc.i] = true;
	if (ilir_buffer_at(c->m, s->alloc)->matrix)
		ilir_check_matrix(c, ilir_buffer_at(c->m, s->alloc));
}

static bool check_store_roots(struct verification *c, const struct ilir_stmt *s)
{
	if (s->store.indices < 0 || s->store.indices > ILIR_MAX_RANK)
		return ilir_report_fault(c, "%d indices", s->store.indices);
	for (int i = 0; i < s->store.indices; i++) {
		if (!ilir_check_root(c, s->store.index[i]))
			return false;
		if (is_inferred(c, s->store.index[i]))
			return ilir_report_fault(c, "'?' stands elsewhere than as a loop's bound");
	}
	return check_value(c, s->store.value) && ilir_check_use(c, s->store.buffer) &&
	       ilir_check_indices(c, s->store.buffer, s->store.index, s->store.indices);
}

static void check_store(struct verification *c, const struct ilir_stmt *s)
{
	if (!check_store_roots(c, s))
		return;
	const struct ilir_buffer_decl *b = ilir_buffer_at(c->m, s->store.buffer);
	struct ilir_type value = ilir_type_of(c->m, s->store.value);
	ilir_expr last = {0};
	if (s->store.indices)
		last = s->store.index[s->store.indices - 1];
	int lanes = last.i ? ilir_type_of(c->m, last).lanes : 1;
	if (last.i && ilir_at(c->m, last)->op == ILIR_RAMP && ilir_at(c->m, last)->i != 1)
		ilir_report_fault(c, "a store to '%s' by more than 1", b->name);
	if (b->kind != ILIR_REGISTER && !ilir_holds_results(b) &&
	    !(b->kind == IMAGE_WEIGHT && !b->recipe && c->kernel->domain == IMAGE_DOMAIN_BINDING))
		ilir_report_fault(c, "a store to '%s', a %s", b->name, ilir_kind_word[b->kind]);
	if (value.dtype != b->dtype)
		ilir_report_fault(c, "'%s' holds %s but the value is %s", b->name, ilir_dtype_word[b->dtype],
				  ilir_dtype_word[value.dtype]);
	if (value.lanes != lanes)
		ilir_report_fault(c, "the value has %d lanes but the place has %d", value.lanes, lanes);
}

static void check_prefetch(struct verification *c, const struct ilir_stmt *s)
{
	if (!check_value(c, s->prefetch.load))
		return;
	const struct ilir_node *n = ilir_at(c->m, s->prefetch.load);
	if (n->op != ILIR_LOAD || ilir_buffer_at(c->m, n->buffer)->kind == ILIR_REGISTER)
		ilir_report_fault(c, "a prefetch of what is not in memory");
}

static void check_sort_number(struct verification *c, int sort)
{
	if (sort < 0 || (size_t)sort > c->m->sorts.n)
		ilir_report_fault(c, "rows in the order of sort %d, which there is not", sort - 1);
}

static void check_call(struct verification *c, int call, const struct ilir_stmt *body)
{
	if (call < 0 || (size_t)call > c->m->calls.n)
		ilir_report_fault(c, "call %d, which there is not", call - 1);
	if (call && body)
		ilir_report_fault(c, "a call that has a body besides");
}

static void check_step(struct verification *c, const struct ilir_stmt *s)
{
	if (c->properties & ILIR_OUTLINED)
		ilir_report_fault(c, "a step is left");
	if (c->in_step)
		ilir_report_fault(c, "a step inside a step");
	ilir_check_level(c, "a step");
	if (ilir_swept_loop(c->kernel))
		ilir_report_fault(c, "a step inside a swept loop");
	if (c->kernel->domain != IMAGE_DOMAIN_ONCE)
		ilir_report_fault(c, "a step in a kernel that is one itself");
	if (!s->step.name)
		ilir_report_fault(c, "a step without a name");
	if (s->step.cases && !ilir_find_buffer(c->m, IMAGE_CASE).i)
		ilir_report_fault(c, "a step of some cases where nodes have none");
	check_sort_number(c, s->step.sort);
	check_call(c, s->step.call, s->step.body);
	if (s->step.sort && !ilir_find_buffer(c->m, IMAGE_CHILD_BEGIN).i)
		ilir_report_fault(c, "a step of sorted rows where nothing tells the edges of nodes");
	if (s->step.group < 0)
		ilir_report_fault(c, "a step of group %d", s->step.group);
	if (!check_bound(c, s->step.begin) || !check_bound(c, s->step.end))
		return;
	if (is_inferred(c, s->step.begin) || is_inferred(c, s->step.end))
		ilir_report_fault(c, "'?' stands elsewhere than as a loop's bound");
	c->in_step = true;
	check_block(c, s->step.body);
	c->in_step = false;
}

static void check_barrier(struct verification *c)
{
	if (c->properties & ILIR_OUTLINED)
		ilir_report_fault(c, "a barrier is left");
	if (c->in_step)
		ilir_report_fault(c, "a barrier inside a step");
	ilir_check_level(c, "a barrier");
	if (ilir_swept_loop(c->kernel))
		ilir_report_fault(c, "a barrier inside a swept loop");
}

static void check_stmt(struct verification *c, const struct ilir_stmt *s)
{
	c->stmt = s;
	switch (s->kind) {
	case ILIR_FOR:
		check_for(c, s);
		break;
	case ILIR_IF:
		check_if(c, s);
		break;
	case ILIR_LET:
		check_let(c, s);
		break;
	case ILIR_ALLOC:
		check_alloc(c, s);
		break;
	case ILIR_STORE:
		check_store(c, s);
		break;
	case ILIR_PREFETCH:
		check_prefetch(c, s);
		break;
	case ILIR_FILL:
	case ILIR_SPILL:
		ilir_check_rows(c, s);
		break;
	case ILIR_DOT:
		ilir_check_dot(c, s);
		break;
	case ILIR_BARRIER:
		check_barrier(c);
		break;
	case ILIR_STEP:
		check_step(c, s);
		break;
	default:
		ilir_report_fault(c, "a statement of no known kind");
	}
}

static void check_block(struct verification *c, const struct ilir_stmt *first)
{
	for (const struct ilir_stmt *s = first; s; s = s->next)
		check_stmt(c, s);
	for (const struct ilir_stmt *s = first; s; s = s->next) { /* its definitions end here */
		if (s->kind == ILIR_LET && s->let.var.i < c->m->vars.n)
			c->var_visible[s->let.var.i] = false;
		if (s->kind == ILIR_ALLOC && s->alloc.i < c->m->buffers.n)
			c->register_visible[s->alloc.i] = false;
	}
}

/* --- the module --- */

/* Checks that the parts of a group follow each other, and none is missing. */
static void check_part(struct verification *c, const struct ilir_kernel *k)
{
	const struct ilir_kernel *before = k > c->m->kernels.at ? k - 1 : NULL;
	bool last = k + 1 == c->m->kernels.at + c->m->kernels.n;
	int part = before && before->part < before->parts ? before->part + 1 : k->parts ? 1 : 0;
	bool follows =
	    part < 2 || (k->parts == before->parts && k->group == before->group &&
			 k->domain == before->domain && k->cases == before->cases && k->sort == before->sort);
	if (k->group < 0 || k->part != part || !follows || (last && k->part != k->parts))
		ilir_report_fault(c, "parts of a group that are not numbered 1, 2, ... in sequence");
}

/* Checks that the name of a kernel is unique, since its code is found by it. */
static void check_name(struct verification *c, const struct ilir_kernel *k)
{
	for (const struct ilir_kernel *other = c->m->kernels.at; other < k; other++)
		if (other->name && k->name && strcmp(other->name, k->name) == 0)
			ilir_report_fault(c, "another kernel has this name");
}

static void check_kernel(struct verification *c, const struct ilir_kernel *k)
{
	c->kernel = k;
	c->stmt = NULL;
	if (!k->name || (unsigned)k->domain >= ILIR_DOMAINS)
		ilir_report_fault(c, "a kernel needs a name and a known domain");
	if (c->properties & ILIR_OUTLINED)
		check_name(c, k);
	check_part(c, k);
	check_sort_number(c, k->sort);
	check_call(c, k->call, k->body);
	check_block(c, k->body);
}

/* Whether the known sides of a range exceed 0 .. extent-1.  The lower side may be beyond the extent if
 * the upper one is open: a loop over fewer rows than its tile is never entered. */
static bool passes_end(struct ilir_range r, int64_t extent)
{
	return (r.low < 0 && r.low != INT64_MIN) || (r.high >= extent && r.high != INT64_MAX);
}

/* The text of a range, "-1..62", with '?' for an open side. */
static const char *range_text(struct verification *c, struct ilir_range r)
{
	struct str s = str_in(c->m->arena);
	str_printf(&s, r.low == INT64_MIN ? "?.." : "%lld..", (long long)r.low);
	str_printf(&s, r.high == INT64_MAX ? "?" : "%lld", (long long)r.high);
	return str_text(&s);
}

/* Checks the known sides of the ranges of all indices; of rows, whose number is not known here, only the
 * lower side. */
static void check_access(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct verification *c = context;
	const struct ilir_buffer_decl *b = ilir_buffer_at(m, a->buffer);
	struct ilir_range r;
	c->stmt = a->stmt;
	for (int i = 0; i < a->indices; i++) {
		int64_t extent = b->dim[i].rows == IMAGE_ONE ? b->dim[i].padded : INT64_MAX;
		ilir_range_of(m, a->index[i], a->known, &r);
		if (passes_end(r, extent))
			ilir_report_fault(c, "index %d of '%s' reaches %s, but its extent is %lld", i,
					  b->name, range_text(c, r), (long long)b->dim[i].padded);
	}
}

/* Checks that blocks can run in any order, and concurrently: two of them are in different iterations of some
 * swept loop, and in the same of those around it. */
static void check_swept_iterations(struct verification *c, const struct ilir_kernel *k)
{
	const struct ilir_stmt *loop = ilir_swept_loop(k);
	const char *head = loop ? ilir_head_clash(c->m, k) : NULL;
	c->kernel = k;
	c->stmt = loop;
	if (head)
		ilir_report_fault(c, "what stands before this swept loop cannot run again because of '%s'",
				  head);
	for (; loop && loop->kind == ILIR_FOR && loop->loop.kind == ILIR_SWEPT; loop = loop->loop.body) {
		const char *clash = ilir_iterations_clash(c->m, loop);
		c->stmt = loop;
		if (clash)
			ilir_report_fault(
			    c, "iterations of this swept loop write and use the same elements of '%s'",
			    clash);
	}
}

/* What a kernel does with the memory of its thread. */
struct thread_memory {
	struct map stored;
	VEC(ilir_buffer) loaded;
};

static void note_thread_memory(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct thread_memory *t = context;
	if (ilir_buffer_at(m, a->buffer)->kind != IMAGE_LOCAL)
		return;
	if (a->load.i)
		vec_push(m->arena, &t->loaded, a->buffer);
	else
		map_add(&t->stored, (const char *)&a->buffer, sizeof a->buffer, 1);
}

/* Checks that a kernel reads of its thread's memory only what it has stored there itself. */
static void check_thread_memory(struct verification *c, const struct ilir_kernel *k)
{
	struct thread_memory t = {.stored = map_in(c->m->arena)};
	ilir_visit_accesses(c->m, k->body, note_thread_memory, &t);
	c->kernel = k;
	c->stmt = NULL;
	for (size_t i = 0; i < t.loaded.n && !c->faults; i++)
		if (map_get(&t.stored, (const char *)&t.loaded.at[i], sizeof t.loaded.at[i]) < 0)
			ilir_report_fault(c,
					  "'%s' is of one call, and this kernel reads it without storing it",
					  ilir_buffer_at(c->m, t.loaded.at[i])->name);
}

bool ilir_verify(const struct ilir_module *m, unsigned properties, const char *pass, struct diags *diags)
{
	struct verification c = {.m = m, .diags = diags, .pass = pass, .properties = properties};
	c.var_defined = ARENA_ARRAY(m->arena, bool, m->vars.n);
	c.var_visible = ARENA_ARRAY(m->arena, bool, m->vars.n);
	c.register_defined = ARENA_ARRAY(m->arena, bool, m->buffers.n);
	c.register_visible = ARENA_ARRAY(m->arena, bool, m->buffers.n);
	c.loop_of = ARENA_ARRAY(m->arena, const struct ilir_stmt *, m->vars.n);
	c.var_visible[ilir_begin.i] = c.var_visible[ilir_end.i] = true;
	for (size_t i = 1; i < m->buffers.n; i++)
		check_buffer(&c, &m->buffers.at[i]);
	if (c.faults)
		return false;
	for (size_t i = 0; i < m->kernels.n; i++)
		check_kernel(&c, &m->kernels.at[i]);
	for (size_t i = 0; !c.faults && (properties & ILIR_IN_BOUNDS) && i < m->kernels.n; i++) {
		c.kernel = &m->kernels.at[i];
		ilir_visit_accesses(m, c.kernel->body, check_access, &c);
	}
	for (size_t i = 0; !c.faults && i < m->kernels.n; i++)
		check_swept_iterations(&c, &m->kernels.at[i]);
	for (size_t i = 0; !c.faults && i < m->kernels.n; i++)
		check_thread_memory(&c, &m->kernels.at[i]);
	return c.faults == 0;
}

/* --- stored intermediates --- */

static void note_store(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	bool *stored = context;
	if (s->kind == ILIR_STORE && ilir_buffer_at(m, s->store.buffer)->kind == IMAGE_SCRATCH)
		stored[s->store.buffer.i] = true;
}

int ilir_stored_intermediates(const struct ilir_module *m)
{
	bool *stored = ARENA_ARRAY(m->arena, bool, m->buffers.n);
	int n = 0;
	for (size_t i = 0; i < m->kernels.n; i++)
		ilir_visit_block(m, m->kernels.at[i].body,
				 &(struct ilir_visit){.stmt = note_store, .context = stored});
	for (size_t i = 1; i < m->buffers.n; i++)
		n += stored[i];
	return n;
}
