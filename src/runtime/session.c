#include "runtime/internal.h"

#include <string.h>

static bool has_buffer(const struct image *image, enum image_buffer_kind kind)
{
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].kind == kind)
			return true;
	return false;
}

/* Where a state lies by parent `place` is wanted for its results, whoever else reads it. */
static struct lin_rules rules_of(const struct image *image)
{
	struct lin_rules rules = {
	    .children = image->children,
	    .shared = image->shared_children,
	    .edges = has_buffer(image, IMAGE_CHILD_BEGIN) || has_buffer(image, IMAGE_CHILD_LIST),
	    .places = has_buffer(image, IMAGE_PLACE),
	    .unlinked = !has_buffer(image, IMAGE_CHILD) && !has_buffer(image, IMAGE_CHILD_LIST),
	};
	for (int i = 0; i < image->states; i++)
		rules.places |= image->state[i].layout == IMAGE_BY_PARENT;
	return rules;
}

bool rt_session_init(struct rt_session *s, const struct allocator *a, const struct image *image,
		     struct diags *diags)
{
	*s = (struct rt_session){.allocator = a, .image = image, .rules = rules_of(image)};
	lin_order_init(&s->order, a);
	s->buffers = rt_take(a, image->buffers * sizeof *s->buffers);
	s->capacities = rt_take(a, image->buffers * sizeof *s->capacities);
	s->dense = rt_take(a, image->buffers * sizeof *s->dense);
	s->dense_capacities = rt_take(a, image->buffers * sizeof *s->dense_capacities);
	s->habits.downwards = rt_take(a, image->steps * sizeof *s->habits.downwards);
	bool chosen = rt_choices_init(&s->habits.choices, a, image->steps);
	if (s->buffers && s->capacities && s->dense && s->dense_capacities && s->habits.downwards && chosen)
		return true;
	rt_session_free(s);
	return rt_out_of_memory(diags, "a session");
}

void rt_session_free(struct rt_session *s)
{
	for (int i = 0; s->capacities && i < s->image->buffers; i++)
		if (s->capacities[i])
			rt_give(s->allocator, s->buffers[i]);
	for (int i = 0; s->dense && i < s->image->buffers; i++)
		rt_give(s->allocator, s->dense[i]);
	rt_give(s->allocator, s->buffers);
	rt_give(s->allocator, s->capacities);
	rt_give(s->allocator, s->dense);
	rt_give(s->allocator, s->dense_capacities);
	rt_give(s->allocator, s->habits.downwards);
	rt_choices_free(&s->habits.choices);
	lin_order_free(&s->order);
	s->buffers = s->dense = NULL;
	s->capacities = s->dense_capacities = NULL;
	s->habits.downwards = NULL;
}

/* --- buffers --- */

/* Bytes of a buffer of the session's own at the sizes of this minibatch, -1 when they cannot be counted. */
static int64_t buffer_bytes(const struct rt_session *s, const struct image_buffer *b)
{
	int64_t bytes = tensor_element_bytes(b->dtype);
	if (__builtin_mul_overflow(bytes, b->row_elements, &bytes) ||
	    __builtin_mul_overflow(bytes, s->sizes[b->rows], &bytes))
		return -1;
	return bytes;
}

/* Capacities at least double, so that growing minibatches cost their own size.  The old content is not kept.
 */
static bool reserve(struct rt_session *s, void **at, size_t *has, int64_t bytes,
		    void *(*take)(const struct allocator *, size_t), const char *name, struct diags *diags)
{
	if (bytes >= 0 && (size_t)bytes <= *has)
		return true;
	size_t capacity = (size_t)bytes > 2 * *has ? (size_t)bytes : 2 * *has;
	void *p = bytes < 0 ? NULL : take(s->allocator, capacity);
	if (!p)
		return rt_out_of_memory(diags, name);
	if (*has)
		rt_give(s->allocator, *at);
	*at = p;
	*has = capacity;
	return true;
}

/* A buffer, and room to show its rows in when they are not as the caller knows them. */
static bool reserve_buffer(struct rt_session *s, int i, struct diags *diags)
{
	const struct image_buffer *b = &s->image->buffer[i];
	int64_t bytes = buffer_bytes(s, b);
	bool shown = (b->kind == IMAGE_STATE || b->kind == IMAGE_OUTPUT) && !rt_is_dense(b);
	return reserve(s, &s->buffers[i], &s->capacities[i], bytes, rt_take, b->name, diags) &&
	       (!shown ||
		reserve(s, &s->dense[i], &s->dense_capacities[i], bytes, rt_take_raw, b->name, diags));
}

/* Weights are the binding's, index arrays the order's; neither is copied, and what was needed at binding is
 * gone. */
static bool owns(const struct image_buffer *b)
{
	enum image_buffer_kind kind = b->kind;
	if (b->at_binding)
		return false;
	return kind == IMAGE_STATE || kind == IMAGE_SCRATCH || kind == IMAGE_OUTPUT || kind == IMAGE_TOKEN ||
	       kind == IMAGE_VECTOR;
}

static void *shared_array(const struct rt_session *s, const struct rt_binding *binding,
			  const struct image_buffer *b)
{
	switch (b->kind) {
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
	default:
		return NULL;
	}
}

static void fill(struct rt_session *s, int i, const struct rt_minibatch *m)
{
	const struct image_buffer *b = &s->image->buffer[i];
	if (b->kind == IMAGE_TOKEN)
		rt_permute_tokens(&s->image->input[b->which], &s->order, m->data[b->which], s->buffers[i]);
	else if (b->kind == IMAGE_VECTOR)
		rt_permute_vectors(&s->image->input[b->which], &s->order, m->data[b->which], b->row_elements,
				   s->buffers[i]);
}

static bool prepare_buffers(struct rt_session *s, const struct rt_binding *binding,
			    const struct rt_minibatch *m, struct diags *diags)
{
	for (int i = 0; i < s->image->buffers; i++) {
		const struct image_buffer *b = &s->image->buffer[i];
		if (!owns(b)) {
			s->buffers[i] = shared_array(s, binding, b);
			continue;
		}
		if (!reserve_buffer(s, i, diags))
			return false;
		fill(s, i, m);
	}
	return true;
}

/* --- runs --- */

static void note_sizes(struct rt_session *s)
{
	const struct lin_order *o = &s->order;
	const int64_t sizes[IMAGE_SIZES] = {
	    [IMAGE_ONE] = 1,
	    [IMAGE_NODES] = o->nodes,
	    [IMAGE_LEAVES] = o->leaves,
	    [IMAGE_INPUTS] = o->inputs,
	    [IMAGE_EDGES] = o->edges,
	    [IMAGE_BATCHES] = o->batches,
	};
	memcpy(s->sizes, sizes, sizeof sizes);
}

static bool linearize(struct lin_order *o, const struct image *image, struct lin_rules rules,
		      const struct rt_minibatch *m, struct diags *diags)
{
	if (!lin_linearize(o, &m->forest, rules, diags))
		return false;
	for (int i = 0; i < image->inputs; i++)
		if (!rt_check_data(image, o, m, i, diags))
			return false;
	return true;
}

/* The last ends where none begins. */
static void begin_phase(struct rt_session *s, enum rt_phase phase)
{
	if (s->profile && phase == RT_PHASE_LINEARIZE)
		rt_profile_clear(s->profile);
	if (s->profile)
		s->profile->phase[phase] = rt_nanoseconds();
}

/* Of the jobs of this run: NULL when nobody asked, or there is no room for it. */
static struct rt_profile *profile_of(struct rt_session *s, int parts)
{
	return s->profile && rt_profile_reserve(s->profile, s->image, parts, s->sizes) ? s->profile : NULL;
}

static bool run(struct rt_session *s, const struct rt_binding *binding, struct rt_team *team, int parts,
		const struct rt_minibatch *m, struct diags *diags)
{
	double begin = rt_clock();
	memset(s->sizes, 0, sizeof s->sizes);
	begin_phase(s, RT_PHASE_LINEARIZE);
	if (!linearize(&s->order, s->image, s->rules, m, diags))
		return false;
	note_sizes(s);
	begin_phase(s, RT_PHASE_FILL);
	bool ok = prepare_buffers(s, binding, m, diags);
	struct rt_profile *profile = profile_of(s, parts);
	double middle = rt_clock();
	begin_phase(s, RT_PHASE_STEPS);
	if (!ok || !rt_run_steps(s->image, s->buffers, s->sizes, s->order.batch_begin, team, parts,
				 &s->habits, profile, diags)) {
		memset(s->sizes, 0, sizeof s->sizes);
		return false;
	}
	begin_phase(s, RT_PHASES);
	s->run += rt_clock() - middle;
	s->linearize += middle - begin;
	s->runs++;
	s->structures += s->sizes[IMAGE_INPUTS];
	s->nodes += s->sizes[IMAGE_NODES];
	s->batches += s->sizes[IMAGE_BATCHES];
	return true;
}

/* The team is entered before the minibatch is linearized: its threads wake up meanwhile. */
bool rt_session_run(struct rt_session *s, const struct rt_binding *binding, struct rt_team *team,
		    const struct rt_minibatch *m, struct diags *diags)
{
	double operations = team ? rt_shared_operations(s->image, m->forest.nodes) : 0;
	int parts = rt_enter_team(team, operations);
	bool ok = run(s, binding, team, parts, m, diags);
	if (parts)
		rt_team_leave(team);
	return ok;
}

bool rt_check(const struct allocator *a, const struct image *image, const struct rt_minibatch *m,
	      struct diags *diags)
{
	struct lin_order order;
	lin_order_init(&order, a);
	bool ok = linearize(&order, image, rules_of(image), m, diags);
	lin_order_free(&order);
	return ok;
}
