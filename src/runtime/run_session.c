/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/floats.h"
#include "runtime/shared.h"

#include <string.h>

int rt_find_buffer(const struct image *image, enum image_buffer_kind kind)
{
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].kind == kind)
			return i;
	return -1;
}

bool rt_has_buffer(const struct image *image, enum image_buffer_kind kind)
{
	return rt_find_buffer(image, kind) >= 0;
}

/* The image's case table with the tokens of a minibatch. */
static struct lin_cases cases_of(const struct image *image, const struct rt_minibatch *m)
{
	return (struct lin_cases){image->cases, image->case_at, (const int32_t *const *)m->data};
}

/* States by parent need `place` to find their results, whether or not kernels read it. */
struct lin_rules rt_rules_of(const struct image *image)
{
	struct lin_rules rules = {
	    .children = image->children,
	    .shared = image->shared_children,
	    .edges = rt_has_buffer(image, IMAGE_CHILD_BEGIN) || rt_has_buffer(image, IMAGE_CHILD_LIST) ||
		     rt_has_buffer(image, IMAGE_EDGE_NODE),
	    .places = rt_has_buffer(image, IMAGE_PLACE),
	    .parent = rt_has_buffer(image, IMAGE_PARENT),
	    .parents = rt_has_buffer(image, IMAGE_PARENT_BEGIN) || rt_has_buffer(image, IMAGE_PARENT_LIST),
	    .origins = rt_has_buffer(image, IMAGE_ORIGIN),
	    .edge_nodes = rt_has_buffer(image, IMAGE_EDGE_NODE),
	    .unlinked = !rt_has_buffer(image, IMAGE_CHILD) && !rt_has_buffer(image, IMAGE_CHILD_LIST),
	};
	for (int i = 0; i < image->states; i++)
		rules.places |= image->state[i].layout == IMAGE_BY_PARENT;
	for (int i = 0; i < image->sorts; i++)
		rules.edges |= image->sort[i].edges || image->sort[i].slot >= 0;
	return rules;
}

bool rt_session_init(struct rt_session *s, const struct allocator *a, const struct image *image,
		     struct diags *diags)
{
	*s = (struct rt_session){.allocator = a, .image = image, .rules = rt_rules_of(image)};
	lin_order_init(&s->order, a);
	s->walk_state.driver.allocator = a;
	s->buffers = rt_allocate_zeroed(a, image->buffers * sizeof *s->buffers);
	s->capacities = rt_allocate_zeroed(a, image->buffers * sizeof *s->capacities);
	s->dense = rt_allocate_zeroed(a, image->buffers * sizeof *s->dense);
	s->dense_capacities = rt_allocate_zeroed(a, image->buffers * sizeof *s->dense_capacities);
	s->offsets = rt_allocate_zeroed(a, image->buffers * sizeof *s->offsets);
	s->walk_state.downwards = rt_allocate_zeroed(a, image->steps * sizeof *s->walk_state.downwards);
	s->walk_state.stage = rt_allocate_zeroed(a, image->steps * sizeof *s->walk_state.stage);
	s->walk_state.rows = rt_allocate_zeroed(a, image->kernels * sizeof *s->walk_state.rows);
	s->sorts.at = rt_allocate_zeroed(a, image->sorts * sizeof *s->sorts.at);
	bool chosen = rt_choices_init(&s->walk_state.choices, a, image->steps);
	if (s->buffers && s->capacities && s->dense && s->dense_capacities && s->offsets &&
	    s->walk_state.downwards && s->walk_state.stage && s->walk_state.rows && s->sorts.at && chosen)
		return true;
	rt_session_free(s);
	return rt_out_of_memory(diags, "a session");
}

/* Frees the buffers that have memory of their own, and clears all pointers. */
static void free_buffers(struct rt_session *s, void **at, size_t *has)
{
	for (int i = 0; at && has && i < s->image->buffers; i++) {
		if (has[i])
			rt_free(s->allocator, at[i]);
		at[i] = NULL;
		has[i] = 0;
	}
}

void rt_session_trim(struct rt_session *s)
{
	free_buffers(s, s->buffers, s->capacities);
	free_buffers(s, s->dense, s->dense_capacities);
	rt_free(s->allocator, s->scratch);
	s->scratch = NULL;
	s->scratch_capacity = 0;
	rt_free(s->allocator, s->own.memory);
	rt_free(s->allocator, s->own.tables);
	s->own = (struct rt_own){0};
	rt_free(s->allocator, s->unstacked.at);
	s->unstacked = (struct rt_unstacked){0};
	rt_free(s->allocator, s->sorts.memory);
	s->sorts.memory = NULL;
	s->sorts.capacity = 0;
	rt_driver_free(&s->walk_state.driver);
	lin_order_free(&s->order);
	memset(s->sizes, 0, sizeof s->sizes);
}

void rt_session_free(struct rt_session *s)
{
	rt_session_trim(s);
	rt_free(s->allocator, s->buffers);
	rt_free(s->allocator, s->capacities);
	rt_free(s->allocator, s->dense);
	rt_free(s->allocator, s->dense_capacities);
	rt_free(s->allocator, s->offsets);
	rt_free(s->allocator, s->walk_state.downwards);
	rt_free(s->allocator, s->walk_state.stage);
	rt_free(s->allocator, s->walk_state.rows);
	rt_free(s->allocator, s->sorts.at);
	rt_choices_free(&s->walk_state.choices);
	s->buffers = s->dense = NULL;
	s->offsets = NULL;
	s->capacities = s->dense_capacities = NULL;
	s->walk_state.downwards = NULL;
	s->walk_state.stage = NULL;
	s->walk_state.rows = NULL;
	s->sorts.at = NULL;
}

/* --- buffers --- */

int64_t rt_buffer_bytes(const struct rt_session *s, const struct image_buffer *b)
{
	int64_t bytes = dtype_traits_of(b->dtype)->bytes;
	int64_t rows = s->sizes[b->rows] + image_traits_of(b->kind)->more;
	if (__builtin_mul_overflow(bytes, b->row_elements, &bytes) ||
	    __builtin_mul_overflow(bytes, rows, &bytes))
		return -1;
	return bytes;
}

/* Capacities at least double, so that growing minibatches cost their own size.  The old content is lost. */
bool rt_reserve_memory(const struct allocator *a, void **at, size_t *has, int64_t bytes,
		       void *(*allocate)(const struct allocator *, size_t), const char *name, struct diags *diags)
{
	if (bytes >= 0 && (size_t)bytes <= *has)
		return true;
	size_t capacity = (size_t)bytes > 2 * *has ? (size_t)bytes : 2 * *has;
	void *p = bytes < 0 ? NULL : allocate(a, capacity);
	if (!p)
		return rt_out_of_memory(diags, name);
	if (*has)
		rt_free(a, *at);
	*at = p;
	*has = capacity;
	return true;
}

/* Memory for a buffer, and for dense copies of result rows that are not dense. */
static bool reserve_buffer(struct rt_session *s, int i, struct diags *diags)
{
	const struct image_buffer *b = &s->image->buffer[i];
	int64_t bytes = rt_buffer_bytes(s, b);
	bool copied = image_traits_of(b->kind)->content == IMAGE_HOLDS_RESULTS && rt_copies_results(s->image, b);
	return rt_reserve_memory(s->allocator, &s->buffers[i], &s->capacities[i], bytes, rt_allocate_zeroed, b->name,
			      diags) &&
	       (!copied ||
		rt_reserve_memory(s->allocator, &s->dense[i], &s->dense_capacities[i], bytes, rt_allocate, b->name, diags));
}

/* Whether the session has memory for this buffer alone.  Weights are the binding's and index arrays the
 * order's; intermediates share memory, and buffers of the steps at binding are gone. */
static bool has_own_memory(const struct image_buffer *b)
{
	return !b->at_binding && image_traits_of(b->kind)->memory == IMAGE_IN_SESSION;
}

static void *shared_array(const struct rt_session *s, const struct rt_binding *binding,
			  const struct rt_minibatch *m, const struct image_buffer *b)
{
	switch (b->kind) {
	case IMAGE_GIVEN:
		return (void *)m->data[b->which]; /* no kernel writes to it */
	case IMAGE_WEIGHT:
		return binding->packed[b->which];
	case IMAGE_CHILD:
		return b->which < s->order.slots ? lin_child(&s->order, b->which) : NULL;
	case IMAGE_CHILD_BEGIN:
		return s->order.child_begin;
	case IMAGE_CHILD_LIST:
		return s->order.child_list;
	case IMAGE_ROOT:
		return s->order.root;
	case IMAGE_PLACE:
		return s->order.place;
	case IMAGE_BATCH_BEGIN:
		return s->order.batch_begin;
	case IMAGE_PARENT:
		return s->order.parent;
	case IMAGE_PARENT_BEGIN:
		return s->order.parent_begin;
	case IMAGE_PARENT_LIST:
		return s->order.parent_list;
	case IMAGE_CASE:
		return s->order.case_of;
	case IMAGE_MEMBER_LIST:
		return s->order.number;
	case IMAGE_ORIGIN:
		return s->order.origin;
	case IMAGE_EDGE_NODE:
		return s->order.edge_node;
	case IMAGE_SORTED:
		return s->sorts.at[b->which].sorted;
	case IMAGE_SEGMENT_OF:
		return s->sorts.at[b->which].segment_of;
	case IMAGE_SEGMENT_BEGIN:
		return s->sorts.at[b->which].segment_begin;
	case IMAGE_SCRATCH:
		return s->scratch && !b->at_binding ? (char *)s->scratch + s->offsets[b - s->image->buffer]
						    : NULL;
	default:
		return NULL;
	}
}

int64_t rt_end_of_input(const struct lin_forest *f, int64_t i)
{
	return i + 1 < f->inputs && f->input_begin ? f->input_begin[i + 1] : f->nodes;
}

int64_t rt_count_pairs(const struct lin_forest *f)
{
	int64_t all = 0;
	for (int64_t i = 0, first = 0; i < f->inputs; i++, first = rt_end_of_input(f, i - 1)) {
		int64_t n = rt_end_of_input(f, i) - first;
		all += n * n;
		if (n > INT32_MAX / (n > 0 ? n : 1) || all > INT32_MAX)
			return -1;
	}
	return all;
}

/* Members of an input are its nodes, which are consecutive in the caller's numbering. */
static void fill_members(const struct lin_forest *f, int32_t *begin)
{
	for (int64_t i = 0; i < f->inputs; i++)
		begin[i] = f->input_begin ? f->input_begin[i] : 0;
	begin[f->inputs] = (int32_t)f->nodes;
}

/* By the number of a node: its input, and, as they follow each other by number, where its pairs begin. */
static void fill_input_of(const struct rt_session *s, const struct lin_forest *f, int32_t *input_of)
{
	for (int64_t i = 0, id = 0; i < f->inputs; i++)
		for (; id < rt_end_of_input(f, i); id++)
			input_of[s->order.number[id]] = (int32_t)i;
}

static void fill_pairs(const struct rt_session *s, const struct lin_forest *f, int32_t *begin)
{
	for (int64_t i = 0, id = 0, pair = 0; i < f->inputs; i++)
		for (int64_t n = rt_end_of_input(f, i) - id, end = id + n; id < end; id++, pair += n)
			begin[s->order.number[id]] = (int32_t)pair;
}

static void fill_buffer(struct rt_session *s, int i, const struct rt_minibatch *m)
{
	const struct image_buffer *b = &s->image->buffer[i];
	if (b->kind == IMAGE_TOKEN || b->kind == IMAGE_VECTOR)
		rt_permute_data(s->image, &s->order, m, b, s->buffers[i]);
	else if (b->kind == IMAGE_READ_ROW)
		rt_fill_read_rows(&s->order, m->data[b->which], s->buffers[i]);
	else if (b->kind == IMAGE_MEMBER_BEGIN)
		fill_members(&m->forest, s->buffers[i]);
	else if (b->kind == IMAGE_INPUT_OF)
		fill_input_of(s, &m->forest, s->buffers[i]);
	else if (b->kind == IMAGE_FIRST_PAIR)
		fill_pairs(s, &m->forest, s->buffers[i]);
}

static bool reserve_scratch(struct rt_session *s, struct diags *diags)
{
	int64_t bytes;
	if (!rt_lay_out_scratch(s->image, s->sizes, s->offsets, &bytes))
		bytes = -1;
	return rt_reserve_memory(s->allocator, &s->scratch, &s->scratch_capacity, bytes, rt_allocate_zeroed,
			      "intermediates", diags);
}

static bool prepare_buffers(struct rt_session *s, const struct rt_binding *binding,
			    const struct rt_minibatch *m, struct diags *diags)
{
	if (!reserve_scratch(s, diags) || !rt_sort_rows(s, m, diags))
		return false;
	for (int i = 0; i < s->image->buffers; i++) {
		const struct image_buffer *b = &s->image->buffer[i];
		if (!has_own_memory(b)) {
			s->buffers[i] = shared_array(s, binding, m, b);
			continue;
		}
		if (!reserve_buffer(s, i, diags))
			return false;
		fill_buffer(s, i, m);
	}
	return true;
}

/* --- what threads have for themselves --- */

/* A cache line more than the distance at which processors fetch ahead: threads write side by side. */
enum { OWN_ALIGNMENT = 128 };

static bool is_local(const struct rt_session *s, int i)
{
	return image_traits_of(s->image->buffer[i].kind)->memory == IMAGE_IN_THREAD;
}

static bool has_local(const struct rt_session *s)
{
	bool has = false;
	for (int i = 0; i < s->image->buffers; i++)
		has |= is_local(s, i);
	return has;
}

/* Bytes of the local buffers of one thread; -1 when they cannot be counted. */
static int64_t own_bytes(const struct rt_session *s)
{
	int64_t all = 0;
	for (int i = 0; i < s->image->buffers; i++) {
		int64_t bytes = is_local(s, i) ? rt_buffer_bytes(s, &s->image->buffer[i]) : 0;
		if (bytes < 0 || __builtin_add_overflow(all, bytes, &all) ||
		    __builtin_add_overflow(all, OWN_ALIGNMENT - 1, &all))
			return -1;
		all -= all % OWN_ALIGNMENT;
	}
	return all;
}

/* Makes the table of a thread, whose local buffers begin at `at`. */
static void fill_table(const struct rt_session *s, void **table, char *at)
{
	for (int i = 0; i < s->image->buffers; i++) {
		table[i] = is_local(s, i) ? at : s->buffers[i];
		if (is_local(s, i))
			at += (rt_buffer_bytes(s, &s->image->buffer[i]) + OWN_ALIGNMENT - 1) / OWN_ALIGNMENT * OWN_ALIGNMENT;
	}
}

/* Gives each thread its local buffers, if the image has any. */
bool rt_reserve_own(struct rt_session *s, int threads, struct diags *diags)
{
	struct rt_own *own = &s->own;
	int64_t bytes = own_bytes(s), all;
	if (!has_local(s))
		return true;
	if (bytes < 0 || __builtin_mul_overflow(bytes, threads, &all) ||
	    __builtin_add_overflow(all, OWN_ALIGNMENT, &all)) /* a minibatch may be empty */
		all = -1;
	if (!rt_reserve_memory(s->allocator, &own->memory, &own->capacity, all, rt_allocate_zeroed, "intermediates", diags) ||
	    !rt_reserve_memory(s->allocator, (void **)&own->tables, &own->tables_capacity,
			    (int64_t)threads * s->image->buffers * sizeof *own->tables, rt_allocate, "a session",
			    diags))
		return false;
	for (int t = 0; t < threads; t++)
		fill_table(s, own->tables + (size_t)t * s->image->buffers, (char *)own->memory + t * bytes);
	return true;
}

struct rt_tables rt_tables_of(const struct rt_session *s)
{
	bool own = has_local(s);
	return (struct rt_tables){own ? s->own.tables : s->buffers, own ? s->image->buffers : 0};
}

/* --- runs --- */

/* The largest number of nodes in a batch, or in a span, from batch b on; with `begin`, of the elements that
 * nodes have there, such as edges. */
static int64_t widest_batch(const struct lin_order *o, int32_t b, const int32_t *begin)
{
	int64_t most = 0;
	for (int32_t next; b < o->batches; b = next) {
		next = lin_end_of_levels(o, b);
		int32_t first = o->batch_begin[b], end = o->batch_begin[next];
		int64_t n = begin ? begin[end] - begin[first] : end - first;
		most = n > most ? n : most;
	}
	return most;
}

static void note_sizes(struct rt_session *s, const struct lin_forest *f)
{
	const struct lin_order *o = &s->order;
	int64_t inner = s->rules.origins ? widest_batch(o, 1, NULL) : 0;
	const int64_t sizes[IMAGE_SIZES] = {
	    [IMAGE_ONE] = 1,
	    [IMAGE_NODES] = o->nodes,
	    [IMAGE_LEAVES] = o->leaves,
	    [IMAGE_INPUTS] = o->inputs,
	    [IMAGE_EDGES] = o->edges,
	    [IMAGE_BATCHES] = o->batches,
	    [IMAGE_WIDEST] = inner > o->leaves ? inner : o->leaves,
	    [IMAGE_WIDEST_INNER] = inner,
	    [IMAGE_WIDEST_EDGES] =
		s->rules.origins && o->child_begin ? widest_batch(o, 1, o->child_begin) : 0,
	    [IMAGE_PAIRS] = rt_has_buffer(s->image, IMAGE_FIRST_PAIR) ? rt_count_pairs(f) : 0,
	};
	memcpy(s->sizes, sizes, sizeof sizes);
}

static bool has_tokens_of_cases(const struct image *image, const struct rt_minibatch *m, struct diags *diags)
{
	for (int c = 0; c < image->cases; c++)
		for (int i = 0; i < image->case_at[c].matches; i++)
			if (!rt_check_present(image, m, image->case_at[c].match[i].input, diags))
				return false;
	return true;
}

bool rt_linearize(struct lin_order *o, const struct image *image, struct lin_rules rules,
		  const struct rt_minibatch *m, const struct rt_minibatch *given, struct diags *diags)
{
	struct lin_cases cases = cases_of(image, m);
	rules.cases = cases.n ? &cases : NULL;
	if (!has_tokens_of_cases(image, m, diags) || !lin_linearize(o, &m->forest, rules, diags))
		return false;
	for (int i = 0; i < image->inputs; i++)
		if (!rt_check_data(image, o, given, i, diags))
			return false;
	if (m->forest.inputs > 1 && !m->forest.input_begin && rt_has_buffer(image, IMAGE_MEMBER_BEGIN))
		return diag_add(diags, DIAG_BAD_ARGUMENT, (struct diag_at){0},
				"the nodes of an input must be known to range over them",
				"a forest without its array 'input_begin'");
	if (rt_has_buffer(image, IMAGE_FIRST_PAIR) && rt_count_pairs(&m->forest) < 0)
		return diag_add(diags, DIAG_TOO_MANY_NODES, (struct diag_at){0}, "run smaller minibatches, or divide the structure",
				"the minibatch has more than %d pairs of nodes of one structure", INT32_MAX);
	return true;
}

/* Notes when a phase begins, if there is a profile, and returns that [ns].  RT_PHASES is the end of the last phase. */
static int64_t begin_phase(struct rt_session *s, enum rt_phase phase)
{
	int64_t now = rt_nanoseconds();
	if (s->profile)
		s->profile->phase[phase] = now;
	return now;
}

/* The profile with memory for this run; NULL when there is no profile, or no memory. */
static struct rt_profile *profile_of(struct rt_session *s, int threads)
{
	return s->profile && rt_profile_reserve(s->profile, s->image, threads, s->sizes) ? s->profile : NULL;
}

/* Runs that do not look for spans after one in which they gained less than finding them cost. */
enum { REST = 15 };

static bool requires_subtrees(const struct image *image)
{
	bool required = false;
	for (int i = 0; i < image->steps; i++)
		required |= image->step[i].strategy == IMAGE_SUBTREES;
	return required;
}

/* Levels of a span; 0 = no spans in this run: where rows are sorted by level; while workers sleep and in the first run of a
 * session, which may be its only one, unless the image requires them. */
static int choose_span(struct rt_session *s, const struct rt_team *team, int threads)
{
	struct rt_walk_state *state = &s->walk_state;
	bool profitable = team && state->gained > team->machine->span_node * s->order.nodes;
	if (s->image->sorts || !team || threads < 2 || s->image->unroll < 2)
		return 0;
	state->rest = state->rest ? state->rest - 1 : s->order.span && !profitable ? REST : 0;
	state->gained = 0;
	bool useless = !s->runs || state->rest || !rt_team_awake(team);
	return useless && !requires_subtrees(s->image) ? 0 : s->image->unroll;
}

static bool run_minibatch(struct rt_session *s, const struct rt_binding *binding, struct rt_team *team,
			  int threads, const struct rt_minibatch *given, struct diags *diags)
{
	struct rt_minibatch rows, *m = &rows;
	struct lin_rules rules = s->rules;
	double making = 0;
	if (s->profile)
		rt_profile_clear(s->profile);
	int64_t begin = begin_phase(s, RT_PHASE_LINEARIZE);
	rules.span = choose_span(s, team, threads);
	if (team)
		lin_order_describe(&s->order, team->machine);
	memset(s->sizes, 0, sizeof s->sizes);
	if (!rt_unstack_rows(&s->unstacked, s->allocator, s->image, given, m, diags) ||
	    !rt_linearize(&s->order, s->image, rules, m, given, diags))
		return false;
	note_sizes(s, &m->forest);
	if (!rt_need_code(s->image, s->sizes, &s->order, s->walk_state.rows, &making, diags) ||
	    !rt_need_rows(binding, m, &making, diags)) {
		memset(s->sizes, 0, sizeof s->sizes);
		return false;
	}
	if (s->profile)
		begin_phase(s, RT_PHASE_FILL);
	bool ok = prepare_buffers(s, binding, m, diags);
	struct rt_profile *profile = profile_of(s, threads);
	int64_t middle = begin_phase(s, RT_PHASE_STEPS);
	ok = ok && rt_reserve_own(s, threads > 1 ? threads : 1, diags);
	struct rt_part all = {s->image->folds, s->image->steps, &s->order};
	if (!ok || !rt_run_steps(s->image, rt_tables_of(s), s->sizes, &all, 1, team, threads, &s->walk_state,
				 profile, diags)) {
		memset(s->sizes, 0, sizeof s->sizes);
		return false;
	}
	s->run += (begin_phase(s, RT_PHASES) - middle) * 1e-9;
	s->linearize += (middle - begin) * 1e-9 - making;
	s->runs++;
	s->structures += given->forest.inputs;
	s->nodes += given->forest.nodes;
	s->batches += s->sizes[IMAGE_BATCHES];
	return true;
}

/* The team is entered before the minibatch is linearized: its workers wake up meanwhile. */
bool rt_session_run(struct rt_session *s, const struct rt_binding *binding, struct rt_team *team,
		    const struct rt_minibatch *m, struct diags *diags)
{
	double operations = team ? rt_worker_operations(s->image, m->forest.nodes * image_stack(s->image)) : 0;
	int threads = rt_enter_team(team, operations);
	struct float_mode mode = float_mode_enter(s->image->flush);
	bool ok = run_minibatch(s, binding, team, threads, m, diags);
	float_mode_leave(&mode);
	if (threads)
		rt_team_leave(team);
	return ok;
}

bool rt_check_minibatch(const struct allocator *a, const struct image *image, const struct rt_minibatch *m,
			struct diags *diags)
{
	struct lin_order order;
	struct rt_unstacked stack = {0};
	struct rt_minibatch rows;
	lin_order_init(&order, a);
	bool ok = rt_unstack_rows(&stack, a, image, m, &rows, diags) &&
		  rt_linearize(&order, image, rt_rules_of(image), &rows, m, diags);
	rt_free(a, stack.at);
	lin_order_free(&order);
	return ok;
}
