/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The statements of a model's bodies, and the body that computes a node. */
#include "api/objects.h"

#include <string.h>

const char *esp_model_traversal(const esp_model *m, size_t i)
{
	if (!m || i >= m->graph->traversals.n)
		return NULL;
	return m->graph->traversals.at[i].down ? "down" : "up";
}

const char *esp_model_state(const esp_model *m, size_t i, size_t *traversal)
{
	if (!m || i >= m->graph->states.n)
		return NULL;
	if (traversal)
		*traversal = m->graph->states.at[i].traversal;
	return m->graph->states.at[i].name;
}

/* --- statements --- */

/* The body of a traversal that has this number; -1 = none, or outputs. */
static int body_of(const struct ra_model *g, int body, bool down)
{
	if (body == (down ? ESP_BODY_ROOT : ESP_BODY_LEAF))
		return RA_LEAF;
	if (body == (down ? ESP_BODY_BELOW : ESP_BODY_INNER))
		return RA_INNER;
	bool named = body >= ESP_BODY_CASE && (size_t)(body - ESP_BODY_CASE) < g->cases.n;
	return named && !down ? RA_CASES + body - ESP_BODY_CASE : -1;
}

static struct ra_statement assignment_of(const struct ra_model *g, const struct ra_state *s, int body)
{
	int which = body_of(g, body, g->traversals.at[s->traversal].down);
	if (which >= RA_CASES && !s->value[which].i)
		which = g->cases.at[which - RA_CASES].base;
	struct ra_statement none = {0};
	return which < 0 ? none : s->assigned[which];
}

static struct ra_statement statement_of(const struct ra_model *g, const char *name, int body)
{
	for (size_t i = 0; body != ESP_BODY_OUTPUT && i < g->states.n; i++)
		if (strcmp(g->states.at[i].name, name) == 0)
			return assignment_of(g, &g->states.at[i], body);
	for (size_t i = 0; body == ESP_BODY_OUTPUT && i < g->outputs.n; i++)
		if (strcmp(g->outputs.at[i].name, name) == 0)
			return g->outputs.at[i].computed;
	return (struct ra_statement){0};
}

const char *esp_model_statement(const esp_model *m, const char *name, int body, int *line)
{
	struct ra_statement s = {0};
	if (m && name)
		s = statement_of(m->graph, name, body);
	if (line)
		*line = s.line;
	return s.text;
}

/* --- the body of a node --- */

/* The rows of the token input of that name; NULL = none: the forest's program may be of another model. */
static const int32_t *find_tokens(const esp_forest *f, const char *name)
{
	for (int i = 0; i < f->program->interface.inputs; i++) {
		const struct image_input *in = &f->program->interface.input[i];
		if (in->token && !in->on_edge && strcmp(in->name, name) == 0)
			return f->data[i];
	}
	return NULL;
}

static bool has_tokens(const struct ra_model *g, const struct ra_named_case *c, const esp_forest *f,
		       size_t row)
{
	bool all = true;
	for (size_t i = 0; i < c->tokens.n; i++) {
		const int32_t *tokens = find_tokens(f, g->inputs.at[c->tokens.at[i].input].name);
		all &= tokens && tokens[row] == c->tokens.at[i].value;
	}
	return all;
}

int esp_model_body(const esp_model *m, const esp_forest *f, size_t structure, size_t node)
{
	if (!m || !f || node >= esp_forest_nodes(f, structure))
		return 0;
	const struct lin_forest all = lin_collect_forest(&f->collect);
	size_t row = all.input_begin[structure] + node;
	int children = all.child_begin[row + 1] - all.child_begin[row];
	enum ra_case base = children ? RA_INNER : RA_LEAF;
	for (size_t i = 0; i < m->graph->cases.n; i++) {
		const struct ra_named_case *c = &m->graph->cases.at[i];
		if (c->base == base && (c->children < 0 || c->children == children) &&
		    has_tokens(m->graph, c, f, row))
			return ESP_BODY_CASE + (int)i;
	}
	return base == RA_LEAF ? ESP_BODY_LEAF : ESP_BODY_INNER;
}

/* --- locals --- */

const esp_local *esp_model_local(const esp_model *m, size_t i)
{
	return m && m->locals && i < m->graph->locals.n ? &m->locals[i] : NULL;
}

#define RETURN_IF_NAMED(list)                                                                                \
	for (size_t i = 0; i < (list).n; i++)                                                                \
		if (strcmp((list).at[i].name, name) == 0)                                                    \
	return true

static bool is_declared(const struct ra_model *g, const char *name)
{
	RETURN_IF_NAMED(g->states);
	RETURN_IF_NAMED(g->outputs);
	RETURN_IF_NAMED(g->params);
	RETURN_IF_NAMED(g->inputs);
	RETURN_IF_NAMED(g->symbols);
	RETURN_IF_NAMED(g->cases);
	return false;
}

/* Whether one state can store both locals. */
static bool is_same_local(const esp_local *a, const esp_local *b)
{
	return a->traversal == b->traversal && a->body != b->body && strcmp(a->shape, b->shape) == 0;
}

static const char *find_fault(const esp_model *m, const struct ra_keep *keep, size_t i)
{
	if (!keep[i].state)
		return "must not be NULL";
	if (!ra_is_name(keep[i].state))
		return "must be names as a model text has them";
	if (is_declared(m->graph, keep[i].state))
		return "must be names that nothing else in the model has";
	for (size_t k = 0; k < i; k++)
		if (strcmp(keep[k].state, keep[i].state) == 0 &&
		    !is_same_local(&m->locals[keep[k].local], &m->locals[keep[i].local]))
			return "must be one for locals only that are of one traversal and shape, and of "
			       "different bodies";
	return NULL;
}

static bool check_keep(const esp_model *m, const struct ra_keep *keep, size_t n, struct diags *diags)
{
	if (!m->text)
		return api_bad_argument(diags, "esp_model_keep", "model", "must have been made from a text");
	for (size_t i = 0; i < n; i++) {
		const char *fault = esp_model_local(m, keep[i].local) ? find_fault(m, keep, i) : NULL;
		if (!esp_model_local(m, keep[i].local))
			return api_bad_argument(diags, "esp_model_keep", "local",
						"must be numbers of locals of the model");
		if (fault)
			return api_bad_argument(diags, "esp_model_keep", "state", fault);
	}
	return true;
}

struct keeping {
	struct arena *arena;
	const size_t *local;
	const char *const *state;
	size_t n;
	struct ra_keep *keep;
};

static bool list_keeps(void *job)
{
	struct keeping *k = job;
	k->keep = ARENA_ARRAY(k->arena, struct ra_keep, k->n + 1);
	for (size_t i = 0; i < k->n; i++)
		k->keep[i] = (struct ra_keep){k->state[i], k->local[i]};
	return true;
}

esp_status esp_model_keep(const esp_model *model, const size_t *local, const char *const *state, size_t n,
			  esp_model **out, esp_error **error)
{
	struct api_call call = api_begin(model);
	esp_model *m = NULL;
	if (api_need(&call, model) && (!n || (api_need(&call, local) && api_need(&call, state))) &&
	    api_need(&call, out)) {
		struct arena arena;
		arena_init(&arena, &model->object.context->allocator);
		struct keeping k = {&arena, local, state, n, NULL};
		if (api_guarded(&arena, &call.diags, list_keeps, &k) &&
		    check_keep(model, k.keep, n, &call.diags))
			m = model_keeping(model, k.keep, n, &call.diags);
		arena_free(&arena);
	}
	if (out)
		*out = m;
	return api_end(&call, m, error);
}
