/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "ra/builder.h"

struct esp_builder {
	struct object object;
	struct arena arena; /* passes to the model when it is finished */
	struct diags diags;
	struct ra_builder *calls; /* NULL = finished */
	bool lost;		  /* memory ran out in a call that cannot report it */
};

static void destroy_builder(void *object)
{
	esp_builder *b = object;
	diags_free(&b->diags);
	arena_free(&b->arena);
}

/* --- creation --- */

struct creation {
	esp_builder *builder;
	const char *name, *structure;
};

/* Distinguishes values of different builders: always within a context, most likely between contexts. */
static unsigned next_tag(struct esp_context *c)
{
	unsigned n = atomic_fetch_add_explicit(&c->builders, 1, memory_order_relaxed);
	return (unsigned)((n + hash_bytes(HASH_START, &c, sizeof c)) % (RA_VALUE_TAGS - 1)) + 1;
}

static bool create_graph(void *job)
{
	struct creation *c = job;
	esp_builder *b = c->builder;
	b->calls = ra_builder_new(&b->arena, &b->diags, next_tag(b->object.context), c->name, c->structure);
	return b->calls;
}

static esp_builder *new_builder(esp_context *context, const char *name, const char *structure,
				struct diags *diags)
{
	esp_builder *b = object_new(context, sizeof *b, destroy_builder, diags);
	if (!b)
		return NULL;
	arena_init(&b->arena, &context->allocator);
	diags_init(&b->diags, &context->hooks);
	if (api_guarded(&b->arena, diags, create_graph, &(struct creation){b, name, structure}))
		return b;
	if (b->diags.n) {
		diags_free(diags);
		*diags = b->diags;
		diags_init(&b->diags, &context->hooks);
	}
	object_release(b);
	return NULL;
}

esp_status esp_builder_create(esp_context *context, const char *name, const char *structure,
			      esp_builder **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_builder *b = NULL;
	if (api_need(&call, context) && api_need(&call, name) && api_need(&call, structure) &&
	    api_need(&call, out))
		b = new_builder(context, name, structure, &call.diags);
	if (out)
		*out = b;
	return api_end(&call, b, error);
}

void esp_builder_free(esp_builder *b)
{
	object_release(b);
}

/* --- calls: they return no errors; the builder collects diagnostics --- */

static bool is_open(const esp_builder *b)
{
	return b && b->calls && !b->lost && b->object.context->process == fork_generation();
}

/* Runs the rest under the arena's guard; if memory runs out, esp_builder_finish reports it. */
#define BUILD(b, ...)                                                                                        \
	do {                                                                                                 \
		jmp_buf escape;                                                                              \
		if (!is_open(b))                                                                             \
			break;                                                                               \
		if (arena_guard(&(b)->arena, &escape))                                                       \
			(b)->lost = true;                                                                    \
		else {                                                                                       \
			__VA_ARGS__;                                                                         \
		}                                                                                            \
		(b)->arena.escape = NULL;                                                                    \
	} while (0)

/* Whether a call has an argument that it needs. */
#define NEED(b, argument) need_argument(b, argument, __func__, #argument)

/* Always false. */
static bool refuse_argument(esp_builder *b, const char *function, const char *argument, const char *what)
{
	ra_builder_refuse(b->calls, function, argument, what);
	return false;
}

static bool need_argument(esp_builder *b, const void *p, const char *function, const char *argument)
{
	return p || refuse_argument(b, function, argument, "must not be NULL");
}

/* Adds a value that is made from a name. */
static esp_value add_named(esp_builder *b, const char *function, const char *argument, const char *name,
			   uint32_t (*call)(struct ra_builder *, const char *))
{
	esp_value v = {0};
	BUILD(b, if (need_argument(b, name, function, argument)) v.id = call(b->calls, name));
	return v;
}

/* Adds a value that is made from a name and a shape. */
static esp_value add_shaped(esp_builder *b, const char *function, const char *name, const char *shape,
			    uint32_t (*call)(struct ra_builder *, const char *, const char *))
{
	esp_value v = {0};
	BUILD(b, if (need_argument(b, name, function, "name")) v.id = call(b->calls, name, shape));
	return v;
}

/* Adds the reduction of a value over children, parents or members. */
static esp_value add_gathered(esp_builder *b, const char *function, const char *name, esp_value of_each,
			      uint32_t (*call)(struct ra_builder *, const char *, uint32_t))
{
	esp_value v = {0};
	BUILD(b, if (need_argument(b, name, function, "function")) v.id = call(b->calls, name, of_each.id));
	return v;
}

void esp_builder_at(esp_builder *b, const char *file, int line)
{
	BUILD(b, ra_builder_at(b->calls, file, line));
}

esp_value esp_builder_param(esp_builder *b, const char *name, const char *shape)
{
	return add_shaped(b, __func__, name, shape, ra_builder_param);
}

esp_value esp_builder_input(esp_builder *b, const char *name, const char *shape)
{
	return add_shaped(b, __func__, name, shape, ra_builder_input);
}

void esp_builder_edge(esp_builder *b, const char *name, const char *shape)
{
	BUILD(b, if (NEED(b, name)) ra_builder_edge(b->calls, name, shape));
}

void esp_builder_edge_token(esp_builder *b, const char *name)
{
	BUILD(b, if (NEED(b, name)) ra_builder_edge_token(b->calls, name));
}

esp_value esp_builder_token(esp_builder *b, const char *name)
{
	return add_named(b, __func__, "name", name, ra_builder_token);
}

void esp_builder_state(esp_builder *b, const char *name, const char *shape)
{
	BUILD(b, if (NEED(b, name)) ra_builder_state(b->calls, name, shape));
}

void esp_builder_traversal(esp_builder *b, const char *direction)
{
	BUILD(b, if (NEED(b, direction)) ra_builder_traversal(b->calls, direction));
}

/* Bodies count from 1 for callers. */
enum { FIRST_BODY = ESP_BODY_LEAF - RA_BODY_LEAF };
_Static_assert(ESP_BODY_INNER == RA_BODY_INNER + FIRST_BODY && ESP_BODY_NODE == RA_BODY_NODE + FIRST_BODY &&
		   ESP_BODY_OUTPUT == RA_BODY_OUTPUT + FIRST_BODY &&
		   ESP_BODY_ROOT == RA_BODY_ROOT + FIRST_BODY &&
		   ESP_BODY_BELOW == RA_BODY_BELOW + FIRST_BODY &&
		   ESP_BODY_BELOW == FIRST_BODY + RA_BODY_CASE - 1,
	       "bodies have the numbers of the public header");

/* Converts the number of a body to the public one, and back; -1 = there is no such body. */
static int body_for_caller(int body)
{
	return body >= RA_BODY_CASE ? ESP_BODY_CASE + body - RA_BODY_CASE : FIRST_BODY + body;
}

static int body_of_caller(int body)
{
	if (body >= ESP_BODY_CASE)
		return RA_BODY_CASE + (body - ESP_BODY_CASE);
	return body >= ESP_BODY_LEAF && body <= ESP_BODY_BELOW ? body - FIRST_BODY : -1;
}

int esp_builder_case(esp_builder *b, const char *name, int base, const char *conditions)
{
	int body = 0;
	bool known = base == ESP_BODY_LEAF || base == ESP_BODY_INNER;
	BUILD(b,
	      if (NEED(b, name) && NEED(b, conditions) &&
		  (known || refuse_argument(b, __func__, "base", "must be ESP_BODY_LEAF or ESP_BODY_INNER")))
		  body = body_for_caller(ra_builder_case(b->calls, name, base - FIRST_BODY, conditions)));
	return body;
}

void esp_builder_body(esp_builder *b, int body)
{
	bool known = body_of_caller(body) >= 0;
	BUILD(b, if (known || refuse_argument(b, __func__, "body",
					      "must be one of ESP_BODY_... or of esp_builder_case"))
		     ra_builder_body(b->calls, body_of_caller(body)));
}

esp_value esp_builder_number(esp_builder *b, double number)
{
	esp_value v = {0};
	BUILD(b, v.id = ra_builder_number(b->calls, number));
	return v;
}

_Static_assert(sizeof(esp_value) == sizeof(uint32_t), "an array of values is an array of their numbers");

esp_value esp_builder_call(esp_builder *b, const char *function, const esp_value *arguments, size_t n)
{
	esp_value v = {0};
	const uint32_t *id = arguments ? &arguments->id : NULL;
	BUILD(b, if (NEED(b, function) && (!n || NEED(b, arguments))) v.id =
		     ra_builder_call(b->calls, function, id, n));
	return v;
}

esp_value esp_builder_call_along(esp_builder *b, const char *function, int axis, const esp_value *arguments,
				 size_t n)
{
	esp_value v = {0};
	const uint32_t *id = arguments ? &arguments->id : NULL;
	BUILD(b, if (NEED(b, function) && (!n || NEED(b, arguments))) v.id =
		     ra_builder_call_along(b->calls, function, axis, id, n));
	return v;
}

esp_value esp_builder_lookup(esp_builder *b, esp_value param, esp_value token)
{
	esp_value v = {0};
	BUILD(b, v.id = ra_builder_lookup(b->calls, param.id, token.id));
	return v;
}

esp_value esp_builder_indexed(esp_builder *b, const char *text, const esp_value *arguments, size_t n)
{
	esp_value v = {0};
	const uint32_t *id = arguments ? &arguments->id : NULL;
	BUILD(b, if (NEED(b, text) && (!n || NEED(b, arguments))) v.id = ra_builder_indexed(b->calls, text, id, n));
	return v;
}

esp_value esp_builder_slice(esp_builder *b, esp_value x, int axis, const char *begin, const char *end)
{
	esp_value v = {0};
	BUILD(b, v.id = ra_builder_slice(b->calls, x.id, axis, begin, end));
	return v;
}

esp_value esp_builder_zeros(esp_builder *b, const char *shape)
{
	esp_value v = {0};
	BUILD(b, v.id = ra_builder_zeros(b->calls, shape));
	return v;
}

esp_value esp_builder_reshape(esp_builder *b, esp_value x, const char *shape)
{
	esp_value v = {0};
	BUILD(b, v.id = ra_builder_reshape(b->calls, x.id, shape));
	return v;
}

esp_value esp_builder_dimension(esp_builder *b, const char *dimension)
{
	return add_named(b, __func__, "dimension", dimension, ra_builder_dimension);
}

_Static_assert((int)ESP_EACH_CHILD == (int)RA_EACH_CHILD, "slots mean the same");

esp_value esp_builder_child(esp_builder *b, int slot, const char *state)
{
	esp_value v = {0};
	BUILD(b, if (NEED(b, state)) v.id = ra_builder_child(b->calls, slot, state));
	return v;
}

esp_value esp_builder_children(esp_builder *b, const char *function, esp_value of_each)
{
	return add_gathered(b, __func__, function, of_each, ra_builder_children);
}

esp_value esp_builder_parent(esp_builder *b, int which, const char *state)
{
	esp_value v = {0};
	bool known = which == ESP_THE_PARENT || which == ESP_EACH_PARENT;
	BUILD(b,
	      if (NEED(b, state) && (known || refuse_argument(b, __func__, "which",
							      "must be ESP_THE_PARENT or ESP_EACH_PARENT")))
		  v.id = ra_builder_parent(b->calls, which == ESP_EACH_PARENT, state));
	return v;
}

esp_value esp_builder_parents(esp_builder *b, const char *function, esp_value of_each)
{
	return add_gathered(b, __func__, function, of_each, ra_builder_parents);
}

esp_value esp_builder_member(esp_builder *b, const char *name)
{
	return add_named(b, __func__, "name", name, ra_builder_member);
}

esp_value esp_builder_members(esp_builder *b, const char *function, esp_value of_each)
{
	return add_gathered(b, __func__, function, of_each, ra_builder_members);
}

esp_value esp_builder_get(esp_builder *b, const char *name)
{
	return add_named(b, __func__, "name", name, ra_builder_get);
}

void esp_builder_assign(esp_builder *b, const char *state, esp_value value)
{
	BUILD(b, if (NEED(b, state)) ra_builder_assign(b->calls, state, value.id));
}

void esp_builder_output(esp_builder *b, const char *name, esp_value value, int at, const char *const *label,
			size_t labels)
{
	bool known = at == ESP_AT_ROOT || at == ESP_AT_EVERY_NODE;
	BUILD(b,
	      if (NEED(b, name) && (!labels || NEED(b, label)) &&
		  (known || refuse_argument(b, __func__, "at", "must be ESP_AT_ROOT or ESP_AT_EVERY_NODE")))
		  ra_builder_output(b->calls, name, value.id,
				    at == ESP_AT_ROOT ? RA_AT_ROOT : RA_AT_EVERY_NODE, label, labels));
}

/* --- the end --- */

struct finishing {
	esp_builder *builder;
	struct ra_model *graph;
};

static bool finish_graph(void *job)
{
	struct finishing *f = job;
	f->graph = ra_builder_finish(f->builder->calls);
	return f->graph;
}

/* Moves the builder's diagnostics to those of the call. */
static esp_model *refuse_model(esp_builder *b, struct diags *diags)
{
	diags_free(diags);
	*diags = b->diags;
	diags_init(&b->diags, &b->object.context->hooks);
	return NULL;
}

static esp_model *finish_model(esp_builder *b, struct diags *diags)
{
	struct finishing f = {.builder = b};
	if (!b->calls)
		return api_bad_argument(diags, "esp_builder_finish", "builder", "was finished before"), NULL;
	if (b->lost)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, "build the model again",
				"memory ran out while the model was built"),
		       NULL;
	bool ok = api_guarded(&b->arena, diags, finish_graph, &f);
	b->calls = NULL;
	if (!ok)
		return diags->n ? NULL : refuse_model(b, diags);
	esp_model *m = model_of(b->object.context, &b->arena, f.graph, diags);
	if (m)
		arena_init(&b->arena, &b->object.context->allocator);
	return m;
}

esp_status esp_builder_finish(esp_builder *builder, esp_model **out, esp_error **error)
{
	struct api_call call = api_begin(builder);
	esp_model *m = NULL;
	if (api_need(&call, builder) && api_need(&call, out))
		m = finish_model(builder, &call.diags);
	if (out)
		*out = m;
	return api_end(&call, m, error);
}
