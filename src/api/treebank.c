/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from files, one at a time. */
#include "api/internal.h"
#include "io/file.h"
#include "io/reader.h"

#include <string.h>

/* Where an input comes from, as esp_column. */
struct source {
	const char *input, *column; /* column: NULL = by the input's name */
	esp_vocab *vocab;	    /* held; may be NULL */
};

struct esp_treebank {
	struct object object;
	struct arena arena; /* the file's text, the sources */
	const char *text;
	struct io_text reader;
	struct io_view view;
	esp_vocab *vocab;
	struct source *source;
	size_t sources;
	bool cut_labels;
	struct arena structure; /* the one read last */
	const char *sentence;	/* of it, NULL = none */
};

/* --- opening --- */

static void destroy(void *object)
{
	esp_treebank *t = object;
	for (size_t i = 0; i < t->sources; i++)
		object_release(t->source[i].vocab);
	object_release(t->vocab);
	arena_free(&t->structure);
	arena_free(&t->arena);
}

struct opening {
	esp_treebank *treebank;
	const char *path;
	const esp_treebank_options *options;
	struct diags *diags;
};

static void hold_sources(esp_treebank *t, const esp_treebank_options *o)
{
	t->source = ARENA_ARRAY(&t->arena, struct source, o->columns);
	for (size_t i = 0; i < o->columns; i++) {
		const esp_column *c = &o->column[i];
		struct source s = {arena_string(&t->arena, c->input),
				   c->column ? arena_string(&t->arena, c->column) : NULL, NULL};
		s.vocab = c->vocab ? object_hold(c->vocab) : NULL;
		t->source[t->sources++] = s;
	}
}

static struct io_view view_of(const esp_treebank_options *o, enum io_format found)
{
	static const enum io_format formats[] = {IO_BRACKETS, IO_BRACKETS, IO_CONLLU, IO_JSON};
	return (struct io_view){.format = o->format ? formats[o->format] : found,
				.enhanced = o->graph,
				.collapse = o->collapse,
				.binarize = o->binarize};
}

static bool open_treebank(void *job)
{
	struct opening *o = job;
	esp_treebank *t = o->treebank;
	size_t length;
	const char *path = arena_string(&t->arena, o->path);
	hold_sources(t, o->options);
	t->text = io_read_file(&t->arena, o->diags, path, &length);
	if (!t->text)
		return false;
	t->reader = io_text_in(path, t->text, length);
	t->view = view_of(o->options, io_format_of(path, t->text, length));
	return true;
}

static esp_treebank *new_treebank(esp_context *context, const char *path, const esp_treebank_options *options,
				  struct diags *diags)
{
	esp_treebank *t = object_new(context, sizeof *t, destroy, diags);
	if (!t)
		return NULL;
	t->vocab = options->vocab ? object_hold(options->vocab) : NULL;
	t->cut_labels = options->cut_labels;
	arena_init(&t->arena, &context->allocator);
	arena_init(&t->structure, &context->allocator);
	if (api_guarded(&t->arena, diags, open_treebank, &(struct opening){t, path, options, diags}))
		return t;
	object_release(t);
	return NULL;
}

static bool check_choice(struct diags *diags, const char *member, int value, int most)
{
	return (value >= 0 && value <= most) ||
	       api_bad_argument(diags, "esp_treebank_open", member, "is none of the numbers that it may be");
}

static bool check_columns(struct api_call *call, const esp_treebank_options *o)
{
	static const char function[] = "esp_treebank_open";
	if (o->columns && !o->column)
		return api_bad_argument(&call->diags, function, "options->column", "must not be NULL");
	for (size_t i = 0; i < o->columns; i++) {
		if (!o->column[i].input)
			return api_bad_argument(&call->diags, function, "options->column",
						"must name its input");
		if (o->column[i].vocab &&
		    !api_belongs(call, o->column[i].vocab, function, "options->column->vocab"))
			return false;
	}
	return !o->vocab || api_belongs(call, o->vocab, function, "options->vocab");
}

static bool take_options(struct api_call *call, const esp_treebank_options *from, esp_treebank_options *o)
{
	struct diags *diags = &call->diags;
	*o = (esp_treebank_options){.size = sizeof *o};
	return (!from || api_take_struct(diags, "esp_treebank_open", "options", from, o, sizeof *o)) &&
	       check_choice(diags, "options->format", o->format, ESP_FORMAT_JSON) &&
	       check_choice(diags, "options->graph", o->graph, ESP_GRAPH_ENHANCED) &&
	       check_choice(diags, "options->binarize", o->binarize, ESP_BINARIZE_RIGHT) &&
	       check_columns(call, o);
}

esp_status esp_treebank_open(esp_context *context, const char *path, const esp_treebank_options *options,
			     esp_treebank **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_treebank *t = NULL;
	esp_treebank_options o;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out) &&
	    take_options(&call, options, &o))
		t = new_treebank(context, path, &o, &call.diags);
	if (out)
		*out = t;
	return api_end(&call, t, error);
}

void esp_treebank_free(esp_treebank *t)
{
	object_release(t);
}

const char *esp_treebank_sentence(const esp_treebank *t)
{
	return t && t->sentence ? t->sentence : "";
}

size_t esp_treebank_passed(const esp_treebank *t)
{
	return t ? (size_t)t->reader.structures : 0;
}

double esp_treebank_progress(const esp_treebank *t)
{
	if (!t || t->reader.end == t->text)
		return 1;
	return (double)(t->reader.at - t->text) / (double)(t->reader.end - t->text);
}

/* --- the next structure --- */

struct next {
	esp_treebank *treebank;
	esp_forest *forest;
	struct diags *diags;
	bool more;
};

static const struct source *source_of(const esp_treebank *t, const char *input)
{
	for (size_t i = 0; i < t->sources; i++)
		if (strcmp(t->source[i].input, input) == 0)
			return &t->source[i];
	return NULL;
}

static bool no_column(const struct next *x, const struct io_structure *s, const char *name, const char *what)
{
	struct arena *arena = &x->treebank->structure;
	struct str hint = str_in(arena);
	const char *names = io_column_names(s, arena);
	str_printf(&hint, "the file has %s; say which one it is (--column, esp_treebank_options.column)",
		   *names ? names : "no data");
	return diag_add(x->diags, DIAG_INPUT_NOT_SUPPLIED,
			(struct diag_at){.file = x->treebank->reader.file,
					 .line = io_place(x->treebank->reader.line.number)},
			str_text(&hint), "the model's input '%s' is %s", name, what);
}

/* The column that an input is read from; NULL after a diagnostic. */
static const struct io_column *column_of(const struct next *x, const struct io_structure *s,
					 const struct io_wanted *w)
{
	const struct source *source = source_of(x->treebank, w->input);
	const char *name = source && source->column ? source->column : w->input;
	const struct io_column *c = io_find_column(s, name, w->on_edges);
	bool only = x->forest->program->interface.inputs == 1 && w->token && !(source && source->column);
	if (!c && only && s->columns && s->column[0].text)
		c = &s->column[0];
	if (!c)
		no_column(x, s, w->input,
			  name == w->input ? "no column" : "to be read from a column that is none");
	else if (!w->token && c->text)
		no_column(x, s, w->input, "a vector, and columns of this format are texts");
	else if (c->text && !w->vocab)
		api_bad_argument(x->diags, "esp_treebank_open", "vocab",
				 "must not be NULL: the program reads tokens, the file has texts");
	else
		return c;
	return NULL;
}

static struct io_wanted wanted_of(const struct next *x, int input)
{
	const struct image_input *in = &x->forest->program->interface.input[input];
	const struct source *source = source_of(x->treebank, in->name);
	const esp_vocab *v = source && source->vocab ? source->vocab : x->treebank->vocab;
	return (struct io_wanted){.input = in->name,
				  .token = in->token,
				  .on_edges = in->on_edge,
				  .elements = in->elements,
				  .leaf = in->at_leaf,
				  .inner = in->at_inner,
				  .vocab = v ? v->words : NULL,
				  .cut = x->treebank->cut_labels};
}

/* The rows of an input; NULL after a diagnostic. */
static void *fill(const struct next *x, const struct io_structure *s, int input)
{
	struct arena *arena = &x->treebank->structure;
	struct io_wanted w = wanted_of(x, input);
	const struct io_column *c = column_of(x, s, &w);
	size_t rows = w.on_edges ? (size_t)s->child_begin[s->nodes] : (size_t)s->nodes, row;
	if (!c)
		return NULL;
	if (__builtin_mul_overflow(w.token ? 1 : (size_t)w.elements, sizeof(float), &row))
		arena_escape(arena);
	void *to = arena_take(arena, rows + 1, row);
	return io_fill(&x->treebank->reader, s, c, &w, arena, to, x->diags) ? to : NULL;
}

static bool add(struct next *x, const struct io_structure *from)
{
	int inputs = x->forest->program->interface.inputs;
	const void **data = ARENA_ARRAY(&x->treebank->structure, const void *, inputs + 1);
	for (int i = 0; i < inputs; i++)
		if (!(data[i] = fill(x, from, i)))
			return false;
	esp_structure s = {.size = sizeof s,
			   .nodes = from->nodes,
			   .child_begin = from->child_begin,
			   .children = from->children,
			   .root = from->root,
			   .data = data};
	if (!forest_add(x->forest, &s, x->diags))
		return false;
	x->treebank->sentence = from->sentence;
	return x->more = true;
}

static bool next_structure(void *job)
{
	struct next *x = job;
	struct io_structure s;
	esp_treebank *t = x->treebank;
	enum io_next next = io_next_structure(&t->reader, &t->view, &t->structure, x->diags, &s);
	return next == IO_END || (next == IO_TREE && add(x, &s));
}

/* A structure for which there was no memory is read again by the next call. */
static bool may_retry(const struct diags *diags)
{
	return !diags->n || diags->at[0].id == DIAG_OUT_OF_MEMORY;
}

esp_status esp_treebank_next(esp_treebank *treebank, esp_forest *forest, int *more, esp_error **error)
{
	struct api_call call = api_begin(treebank ? (const void *)treebank : forest);
	struct next x = {treebank, forest, &call.diags, false};
	bool ok = api_need(&call, treebank) && api_need(&call, forest) && api_need(&call, more) &&
		  api_share(&call, forest);
	if (ok) {
		treebank->sentence = NULL;
		arena_free(&treebank->structure);
		struct io_text before = treebank->reader;
		ok = api_guarded(&treebank->structure, &call.diags, next_structure, &x);
		if (!ok && may_retry(&call.diags))
			treebank->reader = before;
	}
	if (more)
		*more = x.more;
	return api_end(&call, ok, error);
}
