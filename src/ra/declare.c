/* Declarations: the names of a model, its dimensions, shapes and structure. */
#include "ra/internal.h"

const char *ra_name_kind_text(enum ra_name_kind kind)
{
	static const char *const texts[] = {
	    [RA_N_SYMBOL] = "a dimension", [RA_N_PARAM] = "a parameter", [RA_N_INPUT] = "an input",
	    [RA_N_STATE] = "a state",	   [RA_N_OUTPUT] = "an output",	 [RA_N_DEF] = "a function",
	    [RA_N_SLOT] = "a child",
	};
	return texts[kind];
}

const struct ra_name *ra_find_name(const struct ra_graph *g, const char *name, size_t length)
{
	int i = map_get(&g->names, name, length);
	return i < 0 ? NULL : &g->name.at[i];
}

int ra_find_slot(const struct ra_graph *g, const char *name, size_t length)
{
	const struct ra_name *n = ra_find_name(g, name, length);
	return n && n->kind == RA_N_SLOT ? n->index : -1;
}

static bool is_before(struct diag_at a, struct diag_at b)
{
	if (a.call || b.call)
		return a.call < b.call;
	return a.line < b.line || (a.line == b.line && a.column < b.column);
}

/* Of two declarations the later one is at fault.  What the name means is then uncertain: nothing is expanded.
 */
static void refuse_twice(struct ra_graph *g, const struct ra_name *a, const struct ra_name *b)
{
	const struct ra_name *first = is_before(b->span.at, a->span.at) ? b : a, *second = first == a ? b : a;
	ra_report(g->report, DIAG_MODEL_DUPLICATE, second->span.at, "give one of them another name",
		  "'%s' is already %s%s", ra_excerpt(g->arena, second->span), ra_name_kind_text(first->kind),
		  ra_line(g->arena, first->span.at));
	g->syntax->incomplete = true;
}

static void add_name(struct ra_graph *g, enum ra_name_kind kind, size_t index, struct ra_span span)
{
	const struct ra_name *old = ra_find_name(g, span.text, span.length);
	struct ra_name name = {.kind = kind, .index = (int)index, .span = span};
	if (old) {
		refuse_twice(g, old, &name);
		return;
	}
	map_add(&g->names, span.text, span.length, (int)g->name.n);
	vec_push(g->arena, &g->name, name);
}

static void mark_broken(struct ra_graph *g, struct ra_span span)
{
	int i = map_get(&g->names, span.text, span.length);
	if (i >= 0)
		g->name.at[i].broken = true;
}

/* --- dimensions --- */

static int add_symbol(struct ra_graph *g, struct ra_span span)
{
	int symbol = (int)g->model->symbols.n;
	add_name(g, RA_N_SYMBOL, (size_t)symbol, span);
	vec_push(g->arena, &g->model->symbols, (struct ra_symbol){ra_span_string(g->arena, span)});
	return symbol;
}

/* -1 after a diagnostic. */
static int find_symbol(struct ra_graph *g, struct ra_span span, bool declare)
{
	const struct ra_name *n = ra_find_name(g, span.text, span.length);
	if (n && n->kind == RA_N_SYMBOL)
		return n->index;
	if (n) {
		ra_refuse(g, DIAG_MODEL_DIMENSION, span.at, "dimensions have names of their own",
			  "'%s' is %s%s, no dimension", ra_excerpt(g->arena, span),
			  ra_name_kind_text(n->kind), ra_line(g->arena, n->span.at));
		return -1;
	}
	if (declare)
		return add_symbol(g, span);
	struct ra_nearest near = ra_nearest_to(span.text, span.length);
	for (size_t i = 0; i < g->model->symbols.n; i++)
		ra_consider(&near, g->model->symbols.at[i].name, strlen(g->model->symbols.at[i].name));
	ra_refuse(
	    g, DIAG_MODEL_UNKNOWN, span.at,
	    ra_did_you_mean(g->arena, &near,
			    "dimensions are those that a parameter, an input or a state is declared with"),
	    "no dimension is named '%s'", ra_excerpt(g->arena, span));
	return -1;
}

static bool resolve_dim(struct ra_graph *g, const struct ra_dim_text *text, bool declare, struct ra_dim *out)
{
	struct ra_dim sum = {0};
	for (size_t i = 0; i < text->terms.n; i++) {
		const struct ra_dim_term *t = &text->terms.at[i];
		int symbol = t->symbol.length ? find_symbol(g, t->symbol, declare) : 0;
		if (symbol < 0)
			return false;
		struct ra_dim term =
		    t->symbol.length ? ra_dim_symbol(symbol) : ra_dim_constant(t->coefficient);
		if (!ra_dim_add(&sum, t->symbol.length ? t->coefficient : 1, &term, &sum))
			return ra_refuse(g, DIAG_MODEL_DIMENSION, text->span.at,
					 "at most 4 names, and factors up to 1048576",
					 "the dimension '%s' is too complex",
					 ra_excerpt(g->arena, text->span));
	}
	*out = sum;
	return true;
}

bool ra_resolve_dim(struct ra_graph *g, const struct ra_dim_text *text, struct ra_dim *out)
{
	return resolve_dim(g, text, false, out);
}

static bool resolve_extent(struct ra_graph *g, const struct ra_dim_text *text, bool declare,
			   struct ra_dim *out)
{
	if (!resolve_dim(g, text, declare, out))
		return false;
	return !ra_dim_below(out, 1) ||
	       ra_refuse(g, DIAG_MODEL_DIMENSION, text->span.at, "extents are at least 1",
			 "the extent '%s' is not positive", ra_excerpt(g->arena, text->span));
}

static bool resolve_shape(struct ra_graph *g, const ra_dim_texts *dims, bool declare, struct ra_shape *shape)
{
	bool good = true;
	*shape = (struct ra_shape){.rank = (int)dims->n};
	if (dims->n > RA_MAX_RANK)
		return ra_refuse(g, DIAG_MODEL_RANK, dims->at[RA_MAX_RANK]->span.at, NULL,
				 "values have at most %d axes, not %zu", RA_MAX_RANK, dims->n);
	for (size_t i = 0; i < dims->n; i++)
		good &= resolve_extent(g, dims->at[i], declare, &shape->dim[i]);
	return good;
}

bool ra_resolve_shape(struct ra_graph *g, const ra_dim_texts *dims, struct ra_shape *shape)
{
	return resolve_shape(g, dims, false, shape);
}

/* --- the model's tables: symbols are numbered in the order of the canonical text --- */

static void declare_inputs(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->inputs.n; i++) {
		const struct ra_declaration *d = &g->syntax->inputs.at[i];
		struct ra_input input = {
		    .name = ra_span_string(g->arena, d->name), .token = d->token, .at = d->name.at};
		bool good = resolve_shape(g, &d->dims, true, &input.shape);
		if (good && !d->token && input.shape.rank != 1)
			good = ra_report(g->report, DIAG_MODEL_RANK, d->name.at, "write input x[E]",
					 "the input '%s' is not a vector: it has %d axes", input.name,
					 input.shape.rank);
		if (!good)
			mark_broken(g, d->name);
		vec_push(g->arena, &g->model->inputs, input);
	}
}

static void declare_params(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->params.n; i++) {
		const struct ra_declaration *d = &g->syntax->params.at[i];
		struct ra_param param = {.name = ra_span_string(g->arena, d->name), .at = d->name.at};
		if (!resolve_shape(g, &d->dims, true, &param.shape))
			mark_broken(g, d->name);
		vec_push(g->arena, &g->model->params, param);
	}
}

static void declare_states(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->states.n; i++) {
		const struct ra_declaration *d = &g->syntax->states.at[i];
		struct ra_state state = {.name = ra_span_string(g->arena, d->name), .at = d->name.at};
		if (!resolve_shape(g, &d->dims, true, &state.shape))
			mark_broken(g, d->name);
		vec_push(g->arena, &g->model->states, state);
	}
}

static void declare_structure(struct ra_graph *g)
{
	struct ra_structure *s = &g->model->structure;
	const ra_spans *names = &g->syntax->structure.names;
	s->kind = g->syntax->structure.kind;
	s->children = g->syntax->structure.children;
	if (!names->n)
		return;
	const char **child = ARENA_ARRAY(g->arena, const char *, names->n);
	for (size_t i = 0; i < names->n; i++)
		child[i] = ra_span_string(g->arena, names->at[i]);
	s->child = child;
}

/* --- names --- */

static void add_names(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	for (size_t i = 0; i < s->structure.names.n; i++)
		add_name(g, RA_N_SLOT, i, s->structure.names.at[i]);
	for (size_t i = 0; i < s->inputs.n; i++)
		add_name(g, RA_N_INPUT, i, s->inputs.at[i].name);
	for (size_t i = 0; i < s->params.n; i++)
		add_name(g, RA_N_PARAM, i, s->params.at[i].name);
	for (size_t i = 0; i < s->states.n; i++)
		add_name(g, RA_N_STATE, i, s->states.at[i].name);
	for (size_t i = 0; i < s->defs.n; i++)
		if (!s->defs.at[i]->prelude)
			add_name(g, RA_N_DEF, i, s->defs.at[i]->name);
	for (size_t i = 0; i < s->outputs.n; i++)
		add_name(g, RA_N_OUTPUT, i, s->outputs.at[i].name);
}

static bool is_builtin(struct ra_span name)
{
	for (int i = 0; ra_builtin_name(i); i++)
		if (ra_span_is(name, ra_builtin_name(i)))
			return true;
	return false;
}

static void add_functions(struct ra_graph *g)
{
	for (size_t i = 0; i < g->syntax->defs.n; i++) {
		const struct ra_def *d = g->syntax->defs.at[i];
		int old = map_get(&g->functions, d->name.text, d->name.length);
		bool taken = is_builtin(d->name) || (old >= 0 && g->syntax->defs.at[old]->prelude);
		if (taken)
			ra_report(g->report, DIAG_MODEL_DUPLICATE, d->name.at, "choose another name",
				  "'%s' is already a function of the language",
				  ra_excerpt(g->arena, d->name));
		map_add(&g->functions, d->name.text, d->name.length, (int)i);
	}
}

/* A function's argument would hide what the model means by its name. */
static void check_arguments(struct ra_graph *g, const struct ra_def *d)
{
	for (size_t i = 0; i < d->params.n; i++)
		ra_name_taken(g, NULL, d->params.at[i]);
}

/* 'left.h' is the state of a child: nothing else may have that name. */
static void check_child_states(struct ra_graph *g)
{
	for (size_t i = 0; i < g->name.n; i++) {
		struct ra_span s = g->name.at[i].span;
		const char *dot = memchr(s.text, '.', s.length);
		if (!dot || ra_find_slot(g, s.text, (size_t)(dot - s.text)) < 0)
			continue;
		const struct ra_name *state = ra_find_name(g, dot + 1, s.length - (size_t)(dot + 1 - s.text));
		if (state && state->kind == RA_N_STATE)
			ra_report(g->report, DIAG_MODEL_DUPLICATE, s.at, "give one of them another name",
				  "'%s' is the state of a child and cannot be %s", ra_excerpt(g->arena, s),
				  ra_name_kind_text(g->name.at[i].kind));
	}
}

/* --- what a model needs --- */

static bool has_body(const struct ra_syntax *s, enum ra_word word)
{
	for (size_t i = 0; i < s->bodies.n; i++)
		if (s->bodies.at[i].word == word || s->bodies.at[i].word == RA_WORD_NODE)
			return true;
	return false;
}

static void check_complete(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	const struct {
		bool there;
		const char *what, *hint, *built; /* the hint to a builder */
	} needed[] = {
	    {s->model.length, "a name", "add a line such as: model treelstm", NULL},
	    {s->structure.span.length, "a structure", "add a line such as: structure tree(left, right)",
	     NULL},
	    {s->states.n, "a state", "add a line such as: state h[D]", "declare one with esp_builder_state"},
	    {has_body(s, RA_WORD_LEAF), "a body for leaves",
	     "add one below 'leaf:', or one for all nodes below 'node:'",
	     "begin one with esp_builder_body: ESP_BODY_LEAF, or ESP_BODY_NODE for all nodes"},
	    {has_body(s, RA_WORD_INNER), "a body for inner nodes",
	     "add one below 'inner:', or one for all nodes below 'node:'",
	     "begin one with esp_builder_body: ESP_BODY_INNER, or ESP_BODY_NODE for all nodes"},
	    {s->outputs.n, "an output", "add a line such as: output result = h",
	     "name one with esp_builder_output"},
	};
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (!needed[i].there)
			ra_report(g->report, DIAG_MODEL_MISSING, (struct diag_at){.file = g->model->file},
				  s->built ? needed[i].built : needed[i].hint, "the model lacks %s",
				  needed[i].what);
}

/* Headers that are no word were refused when they were read. */
static void check_bodies(struct ra_graph *g)
{
	const struct ra_syntax *s = g->syntax;
	for (size_t i = 0; i < s->bodies.n; i++)
		for (size_t j = 0; j < i; j++) {
			const struct ra_body *b = &s->bodies.at[i], *old = &s->bodies.at[j];
			if (!b->word || !old->word)
				continue;
			if (b->word != old->word && b->word != RA_WORD_NODE && old->word != RA_WORD_NODE)
				continue;
			ra_report(g->report, DIAG_MODEL_DUPLICATE, b->header.at,
				  "write one 'node:', or one 'leaf:' and one 'inner:'",
				  "'%s:' gives nodes a second body after '%s:'%s",
				  ra_excerpt(g->arena, b->header), ra_excerpt(g->arena, old->header),
				  ra_line(g->arena, old->header.at));
			break;
		}
}

void ra_declare(struct ra_graph *g)
{
	g->names = g->functions = map_in(g->arena);
	g->leaves = map_in(g->arena);
	g->model->name = ra_span_string(g->arena, g->syntax->model);
	add_names(g);
	add_functions(g);
	declare_structure(g);
	declare_inputs(g);
	declare_params(g);
	declare_states(g);
	for (size_t i = 0; i < g->syntax->defs.n; i++)
		if (!g->syntax->defs.at[i]->prelude)
			check_arguments(g, g->syntax->defs.at[i]);
	check_child_states(g);
	check_bodies(g);
	if (!g->syntax->incomplete)
		check_complete(g);
}
