/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/profile.h"

#include <string.h>

struct esp_session {
	struct object object;
	esp_binding *binding;
	struct rt_session run;
	atomic_bool busy;
	esp_costs costs;
	struct esp_profile *profile; /* NULL = no run was ever recorded */
	/* of the last run */
	bool recorded;
	struct packed *weights; /* where states of leaves are rows of tables: else NULL */
	uint64_t generation;
	size_t structures;
	int32_t *begin;	 /* structures + 1: their first nodes in the forest */
	size_t capacity; /* of `begin` */
	esp_forest *called; /* rows of the last call with arrays; NULL = there was none */
};

static void free_begin(esp_session *s)
{
	const struct allocator *a = &s->object.context->allocator;
	if (s->begin)
		a->resize(a->context, s->begin, s->capacity * sizeof *s->begin, 0);
	s->begin = NULL;
	s->capacity = 0;
}

/* Whether results are read in the weights of the run. */
static bool reads_tables(const struct image *image)
{
	bool reads = false;
	for (int i = 0; i < image->buffers; i++)
		reads |= image->buffer[i].table != 0;
	return reads;
}

/* Holds the weights that results of the last run are read in; NULL = none. */
static void keep_weights(esp_session *s, struct packed *p)
{
	struct packed *before = s->weights;
	s->weights = p && reads_tables(s->run.image) ? object_hold(p) : NULL;
	object_release(before);
}

static void destroy_session(void *object)
{
	esp_session *s = object;
	keep_weights(s, NULL);
	rt_session_free(&s->run);
	profile_free(s->profile);
	free_begin(s);
	object_release(s->called);
	object_release(s->binding);
}

static void note_costs(esp_session *s, const struct packed *p)
{
	s->costs = (esp_costs){
	    .compile = s->binding->program->seconds,
	    .bind = p->seconds,
	    .fold = p->weights.folding,
	    .folded_bytes = p->weights.folded_bytes,
	    .weight_bytes = p->weights.packed_bytes,
	    .linearize = s->run.linearize,
	    .cycles = s->run.walk_state.driver.cycles,
	    .run = s->run.run,
	    .runs = s->run.runs,
	    .structures = s->run.structures,
	    .nodes = s->run.nodes,
	    .batches = s->run.batches,
	};
}

static esp_session *new_session(esp_binding *binding, struct diags *diags)
{
	esp_context *context = binding->object.context;
	esp_session *s = object_new(context, sizeof *s, destroy_session, diags);
	if (!s)
		return NULL;
	s->binding = object_hold(binding);
	struct packed *p = binding_hold(binding);
	note_costs(s, p);
	object_release(p);
	if (rt_session_init(&s->run, &context->allocator, &binding->program->image, diags))
		return s;
	object_release(s);
	return NULL;
}

esp_status esp_session_create(esp_binding *binding, esp_session **out, esp_error **error)
{
	struct api_call call = api_begin(binding);
	esp_session *s = NULL;
	if (api_need(&call, binding) && api_need(&call, out))
		s = new_session(binding, &call.diags);
	if (out)
		*out = s;
	return api_end(&call, s, error);
}

void esp_session_free(esp_session *s)
{
	object_release(s);
}

/* --- runs --- */

/* Copies where structures begin: results are found by structure and node even after the forest is freed. */
static bool remember_structures(esp_session *s, const struct lin_forest *f, struct diags *diags)
{
	const struct allocator *a = &s->object.context->allocator;
	size_t wanted = f->inputs + 1;
	if (wanted > s->capacity) {
		size_t capacity = wanted > 2 * s->capacity ? wanted : 2 * s->capacity;
		void *p = a->resize(a->context, s->begin, s->capacity * sizeof *s->begin,
				    capacity * sizeof *s->begin);
		if (!p)
			return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
					"no memory for a run");
		s->begin = p;
		s->capacity = capacity;
	}
	if (f->inputs)
		memcpy(s->begin, f->input_begin, f->inputs * sizeof *s->begin);
	s->begin[f->inputs] = f->nodes;
	return true;
}

static void forget_results(esp_session *s)
{
	s->structures = 0;
	s->generation = 0;
	s->recorded = false;
}

static bool run_with(esp_session *s, const esp_forest *f, struct packed *p, struct diags *diags)
{
	struct rt_minibatch m = forest_minibatch(f);
	struct esp_context *c = s->object.context;
	forget_results(s);
	if (!remember_structures(s, &m.forest, diags) ||
	    !rt_session_run(&s->run, &p->weights, &c->team, &m, diags))
		return false;
	context_check_team(c);
	s->structures = m.forest.inputs;
	s->generation = p->generation;
	keep_weights(s, p);
	note_costs(s, p);
	s->recorded = s->run.profile && profile_fill(s->profile, &s->run, &p->weights);
	return true;
}

/* Marks the session as in use.  False after a diagnostic; then the caller must not touch the session. */
static bool begin_use(esp_session *s, struct diags *diags)
{
	return !atomic_exchange_explicit(&s->busy, true, memory_order_acquire) ||
	       diag_add(diags, DIAG_SESSION_BUSY, (struct diag_at){0}, "give each thread a session of its own",
			"another thread is in a run of this session");
}

static void end_use(esp_session *s)
{
	atomic_store_explicit(&s->busy, false, memory_order_release);
}

/* Holds the weights for the whole run, so that a swap meanwhile does not affect it. */
static bool run_forest(esp_session *s, const esp_forest *f, struct diags *diags)
{
	if (f->program != s->binding->program)
		return api_bad_argument(diags, "esp_session_run", "forest",
					"belongs to another program than the session");
	if (!begin_use(s, diags))
		return false;
	struct packed *p = binding_hold(s->binding);
	bool ok = run_with(s, f, p, diags);
	object_release(p);
	end_use(s);
	return ok;
}

esp_status esp_session_run(esp_session *session, const esp_forest *forest, esp_error **error)
{
	struct api_call call = api_begin(session ? (const void *)session : forest);
	bool ok =
	    api_need(&call, session) && api_need(&call, forest) && run_forest(session, forest, &call.diags);
	return api_end(&call, ok, error);
}

/* The forest is this session's, so it is filled while the session is in use. */
static bool call_arrays(esp_session *s, const esp_array *arrays, size_t n, struct diags *diags)
{
	if (!begin_use(s, diags))
		return false;
	if (!s->called)
		s->called = forest_new(s->binding->program, diags);
	esp_forest_clear(s->called);
	struct packed *p = binding_hold(s->binding);
	bool ok = s->called && forest_add_called(s->called, arrays, n, diags) && run_with(s, s->called, p, diags);
	object_release(p);
	end_use(s);
	return ok;
}

esp_status esp_session_call(esp_session *session, const esp_array *arrays, size_t n, esp_error **error)
{
	struct api_call call = api_begin(session);
	bool ok = api_need(&call, session) && (!n || api_need(&call, arrays)) && call_arrays(session, arrays, n, &call.diags);
	return api_end(&call, ok, error);
}

static bool trim_session(esp_session *s, struct diags *diags)
{
	if (!begin_use(s, diags))
		return false;
	forget_results(s);
	keep_weights(s, NULL);
	rt_session_trim(&s->run);
	esp_forest_trim(s->called);
	profile_trim(s->profile);
	free_begin(s);
	end_use(s);
	return true;
}

esp_status esp_session_trim(esp_session *session, esp_error **error)
{
	struct api_call call = api_begin(session);
	bool ok = api_need(&call, session) && trim_session(session, &call.diags);
	return api_end(&call, ok, error);
}

/* --- profiles --- */

static bool set_recording(esp_session *s, bool on, struct diags *diags)
{
	if (!begin_use(s, diags))
		return false;
	if (on && !s->profile)
		s->profile = profile_create(&s->object.context->allocator, s->run.image);
	bool ok = !on || s->profile;
	if (ok)
		s->run.profile = on ? &s->profile->record : NULL;
	else
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for a profile");
	end_use(s);
	return ok;
}

esp_status esp_session_record(esp_session *session, int on, esp_error **error)
{
	struct api_call call = api_begin(session);
	bool ok = api_need(&call, session) && set_recording(session, on != 0, &call.diags);
	return api_end(&call, ok, error);
}

const esp_profile *esp_session_profile(const esp_session *s)
{
	return s && s->recorded ? s->profile : NULL;
}

/* --- results --- */

bool session_structures(const esp_session *s, size_t *structures)
{
	*structures = s->structures;
	return s->generation != 0;
}

size_t session_nodes(const esp_session *s, size_t structure)
{
	return (size_t)(s->begin[structure + 1] - s->begin[structure]);
}

const esp_program *session_program(const esp_session *s)
{
	return s->binding->program;
}

static bool has_output(const esp_session *s, size_t output, size_t structure)
{
	return s && structure < s->structures && output < (size_t)s->run.image->outputs;
}

/* Finds the number in the forest of a node of a structure; false if there is no such node. */
static bool find_node(const esp_session *s, size_t structure, size_t node, int64_t *number)
{
	if (structure >= s->structures || node >= session_nodes(s, structure))
		return false;
	*number = s->begin[structure] + (int64_t)node;
	return true;
}

const void *esp_session_output_elements(const esp_session *s, size_t output, size_t structure, size_t node)
{
	if (!has_output(s, output, structure))
		return NULL;
	if (s->run.image->output[output].at_root)
		return rt_session_row(&s->run, output, structure);
	int64_t number;
	return find_node(s, structure, node, &number) ? rt_session_row(&s->run, output, number) : NULL;
}

const void *esp_session_state_elements(const esp_session *s, size_t state, size_t structure, size_t node)
{
	int64_t number;
	if (!s || state >= (size_t)s->run.image->states || !find_node(s, structure, node, &number))
		return NULL;
	return rt_session_state_row(&s->run, state, number);
}

const void *esp_session_root_elements(const esp_session *s, size_t output, size_t structure)
{
	return has_output(s, output, structure) ? rt_session_root_row(&s->run, output, structure) : NULL;
}

const void *esp_session_rows(const esp_session *s, size_t output, size_t *stride)
{
	return has_output(s, output, 0) && stride ? rt_session_rows(&s->run, output, stride) : NULL;
}

const float *esp_session_output(const esp_session *s, size_t output, size_t structure, size_t node)
{
	const void *row = esp_session_output_elements(s, output, structure, node);
	return row && s->run.image->output[output].dtype == DTYPE_F32 ? row : NULL;
}

const float *esp_session_state(const esp_session *s, size_t state, size_t structure, size_t node)
{
	const void *row = esp_session_state_elements(s, state, structure, node);
	return row && s->run.image->state[state].dtype == DTYPE_F32 ? row : NULL;
}

const float *esp_session_root(const esp_session *s, size_t output, size_t structure)
{
	const void *row = esp_session_root_elements(s, output, structure);
	return row && s->run.image->output[output].dtype == DTYPE_F32 ? row : NULL;
}

uint64_t esp_session_generation(const esp_session *s)
{
	return s ? s->generation : 0;
}

const esp_costs *esp_session_costs(const esp_session *s)
{
	return s ? &s->costs : NULL;
}
