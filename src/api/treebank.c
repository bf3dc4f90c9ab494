/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures from files, one at a time. */
#include "api/objects.h"
#include "io/reader.h"
#include "io/structure_stream.h"

#include <string.h>

/* The column that an input is read from: a copy of an esp_column. */
struct source {
	const char *input, *column; /* column: NULL = the input's name */
	esp_vocab *vocab;	    /* held; may be NULL */
};

/* Where structures are: a file, or bytes in memory, for which `path` stands in diagnostics. */
struct place {
	const char *path, *bytes; /* bytes: NULL = a file */
	size_t n;
};

struct esp_treebank {
	struct object object;
	struct arena arena; /* the sources */
	struct io_stream stream;
	struct io_text reader;	/* of `stream` */
	struct io_view view;	/* its format is IO_AUTO until it is found by the first bytes */
	struct file_name *file; /* held, for diagnostics */
	esp_vocab *vocab;
	struct source *source;
	size_t sources;
	bool cut_labels;
	struct arena structure; /* memory of the structure read last */
	struct io_structure last;
	const char *sentence; /* of `last`; NULL = none */
};

/* --- opening --- */

static void destroy_treebank(void *object)
{
	esp_treebank *t = object;
	for (size_t i = 0; i < t->sources; i++)
		object_release(t->source[i].vocab);
	object_release(t->vocab);
	object_release(t->file);
	io_stream_close(&t->stream);
	arena_free(&t->structure);
	arena_free(&t->arena);
}

struct opening {
	esp_treebank *treebank;
	struct place place;
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

static struct io_view view_of(const esp_treebank_options *o, const char *path)
{
	static const enum io_format formats[] = {IO_AUTO, IO_BRACKETS, IO_CONLLU, IO_JSON, IO_PLAIN};
	return (struct io_view){.format = o->format ? formats[o->format] : io_format_of_name(path),
				.enhanced = o->graph,
				.collapse = o->collapse,
				.binarize = o->binarize};
}

static bool open_treebank(void *job)
{
	struct opening *o = job;
	esp_treebank *t = o->treebank;
	hold_sources(t, o->options);
	t->view = view_of(o->options, o->place.path);
	return true;
}

/* Whether a call waits on for a pipe: whoever closes the context waits for the call. */
static bool waits_on(void *context, struct diags *diags)
{
	const struct esp_context *c = context;
	return !atomic_load_explicit(&c->closed, memory_order_relaxed) ||
	       diag_add(diags, DIAG_CLOSED, (struct diag_at){0}, "create another context",
			"the context was closed while a call waited for a pipe");
}

/* Copies the path, which the caller may free: diagnostics name the file later. */
static bool open_stream(esp_treebank *t, const struct place *p, struct diags *diags)
{
	struct esp_context *c = t->object.context;
	if (!(p->bytes ? io_stream_open_memory(&t->stream, p->path, p->bytes, p->n, &t->reader)
		       : io_stream_open(&t->stream, &c->allocator, p->path, &t->reader, diags)) ||
	    !(t->file = file_name_new(c, t->stream.path, diags)))
		return false;
	t->stream.path = t->reader.file = t->file->text;
	t->stream.watch = (struct io_watch){waits_on, c};
	return true;
}

static esp_treebank *new_treebank(esp_context *context, struct place place, const esp_treebank_options *options,
				  struct diags *diags)
{
	esp_treebank *t = object_new(context, sizeof *t, destroy_treebank, diags);
	if (!t)
		return NULL;
	t->vocab = options->vocab ? object_hold(options->vocab) : NULL;
	t->cut_labels = options->cut_labels;
	arena_init(&t->arena, &context->allocator);
	arena_init(&t->structure, &context->allocator);
	t->stream.fd = -1;
	if (api_guarded(&t->arena, diags, open_treebank, &(struct opening){t, place, options, diags}) &&
	    open_stream(t, &place, diags))
		return t;
	object_release(t);
	return NULL;
}

static bool check_choice(struct diags *diags, const char *function, const char *member, int value, int most)
{
	return (value >= 0 && value <= most) ||
	       api_bad_argument(diags, function, member, "is none of the numbers that it may be");
}

static bool check_columns(struct api_call *call, const char *function, const esp_treebank_options *o)
{
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

static bool take_options(struct api_call *call, const char *function, const esp_treebank_options *from,
			 esp_treebank_options *o)
{
	struct diags *diags = &call->diags;
	*o = (esp_treebank_options){.size = sizeof *o};
	return (!from || api_take_struct(diags, function, "options", from, o, sizeof *o)) &&
	       check_choice(diags, function, "options->format", o->format, ESP_FORMAT_PLAIN) &&
	       check_choice(diags, function, "options->graph", o->graph, ESP_GRAPH_ENHANCED) &&
	       check_choice(diags, function, "options->binarize", o->binarize, ESP_BINARIZE_RIGHT) &&
	       check_columns(call, function, o);
}

/* Makes a treebank; `ok`: the call's other arguments are there. */
static esp_status open_place(struct api_call *call, bool ok, const char *function, struct place place,
			     const esp_treebank_options *options, esp_treebank **out, esp_error **error)
{
	esp_treebank *t = NULL;
	esp_treebank_options o;
	if (ok && take_options(call, function, options, &o))
		t = new_treebank(call->context, place, &o, &call->diags);
	if (out)
		*out = t;
	return api_end(call, t, error);
}

esp_status esp_treebank_open(esp_context *context, const char *path, const esp_treebank_options *options,
			     esp_treebank **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	bool ok = api_need(&call, context) && api_need(&call, path) && api_need(&call, out);
	return open_place(&call, ok, __func__, (struct place){.path = path}, options, out, error);
}

esp_status esp_treebank_from_memory(esp_context *context, const char *name, const void *bytes, size_t n,
				    const esp_treebank_options *options, esp_treebank **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	bool ok = api_need(&call, context) && api_need(&call, name) && api_need(&call, bytes) && api_need(&call, out);
	if (ok && n > PTRDIFF_MAX)
		ok = api_bad_argument(&call.diags, __func__, "n", "is more than there can be in memory");
	return open_place(&call, ok, __func__, (struct place){name, bytes, n}, options, out, error);
}

void esp_treebank_free(esp_treebank *t)
{
	object_release(t);
}

const char *esp_treebank_sentence(const esp_treebank *t)
{
	return t && t->sentence ? t->sentence : "";
}

struct words {
	const esp_treebank *treebank;
	const char *column; /* NULL = words */
	struct arena arena;
	struct diags *diags;
	char *text;
};

static bool copy_words(void *job)
{
	struct words *w = job;
	const struct io_structure *last = &w->treebank->last;
	const char *words = !w->treebank->sentence ? ""
			    : w->column		   ? io_node_texts(last, w->column, &w->arena)
						   : io_node_words(last, &w->arena);
	w->text = api_text(w->treebank->object.context, words, w->diags);
	return w->text;
}

static bool take_words(const esp_treebank *t, const char *column, char **text, struct diags *diags)
{
	struct words w = {.treebank = t, .column = column, .diags = diags};
	arena_init(&w.arena, &t->object.context->allocator);
	bool ok = api_guarded(&w.arena, diags, copy_words, &w);
	arena_free(&w.arena);
	*text = w.text;
	return ok;
}

esp_status esp_treebank_words(const esp_treebank *treebank, char **text, esp_error **error)
{
	struct api_call call = api_begin(treebank);
	if (text)
		*text = NULL;
	bool ok = api_need(&call, treebank) && api_need(&call, text) && take_words(treebank, NULL, text, &call.diags);
	return api_end(&call, ok, error);
}

esp_status esp_treebank_texts(const esp_treebank *treebank, const char *column, char **text, esp_error **error)
{
	struct api_call call = api_begin(treebank);
	if (text)
		*text = NULL;
	bool ok = api_need(&call, treebank) && api_need(&call, column) && api_need(&call, text) &&
		  take_words(treebank, column, text, &call.diags);
	return api_end(&call, ok, error);
}

size_t esp_treebank_passed(const esp_treebank *t)
{
	return t ? (size_t)t->reader.structures : 0;
}

double esp_treebank_progress(const esp_treebank *t)
{
	return t ? io_stream_progress(&t->stream, &t->reader) : 1;
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

/* The line that the structure begins on. */
static struct diag_at place_of(const esp_treebank *t)
{
	return (struct diag_at){.file = t->reader.file, .line = io_place(t->reader.line.number)};
}

static bool refuse_column(const struct next *x, const struct io_structure *s, const char *name,
			  const char *what)
{
	struct arena *arena = &x->treebank->structure;
	struct str hint = str_in(arena);
	const char *names = io_column_names(s, arena);
	str_printf(&hint, "the file has %s; say which one it is (--column, esp_treebank_options.column)",
		   *names ? names : "no data");
	return diag_add(x->diags, DIAG_INPUT_NOT_SUPPLIED, place_of(x->treebank), str_text(&hint),
			"the model's input '%s' is %s", name, what);
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
		refuse_column(x, s, w->input,
			      name == w->input ? "no column" : "to be read from a column that is none");
	else if (!w->token && c->text)
		refuse_column(x, s, w->input, "a vector, and columns of this format are texts");
	else if (c->text && !w->vocab)
		diag_add(x->diags, DIAG_BAD_ARGUMENT, (struct diag_at){.file = x->treebank->reader.file},
			 "give --vocab FILE (esp_treebank_options.vocab, esp_column.vocab)",
			 "the model reads %s of '%s', the file has texts, and there is no 'vocab' "
			 "(esp_treebank_open)",
			 w->integer ? "integers" : "tokens", w->input);
	else
		return c;
	return NULL;
}

/* Whether the input is a single integer; files store it where they store tokens. */
static bool is_integer(const struct image_input *in)
{
	return in->dtype == DTYPE_I32 && !in->rank;
}

static struct io_wanted wanted_of(const struct next *x, int input)
{
	const struct image_input *in = &x->forest->program->interface.input[input];
	const struct source *source = source_of(x->treebank, in->name);
	const esp_vocab *v = source && source->vocab ? source->vocab : x->treebank->vocab;
	return (struct io_wanted){.input = in->name,
				  .token = in->token || is_integer(in),
				  .integer = !in->token && is_integer(in),
				  .on_edges = in->on_edge,
				  .elements = in->elements,
				  .rank = in->rank,
				  .shape = in->shape,
				  .leaf = in->at_leaf,
				  .inner = in->at_inner,
				  .vocab = v ? v->words : NULL,
				  .cut = x->treebank->cut_labels};
}

/* Whether files can store the input: f32, tokens and single i32. */
static bool has_readable_type(const struct next *x, int input)
{
	const struct image_input *in = &x->forest->program->interface.input[input];
	return in->dtype == DTYPE_F32 || in->token || is_integer(in) ||
	       diag_add(x->diags, DIAG_BAD_ARGUMENT, (struct diag_at){.file = x->treebank->reader.file},
			in->rank ? "give it to esp_forest_add as an array, or declare it f32"
				 : "give it to esp_forest_add as an array, or declare it f32 or i32",
			"the input '%s' is %s of %s, which is not read from files", in->name,
			in->rank ? "an array" : "a number", dtype_traits_of(in->dtype)->spelling);
}

/* Reads the rows of an input; NULL after a diagnostic. */
static void *fill_data(const struct next *x, const struct io_structure *s, int input)
{
	struct arena *arena = &x->treebank->structure;
	struct io_wanted w = wanted_of(x, input);
	const struct io_column *c = has_readable_type(x, input) ? column_of(x, s, &w) : NULL;
	size_t rows = w.on_edges ? (size_t)s->child_begin[s->nodes] : (size_t)s->nodes, row;
	if (!c)
		return NULL;
	if (__builtin_mul_overflow(w.token ? 1 : (size_t)w.elements, sizeof(float), &row))
		arena_escape(arena);
	void *to = arena_take(arena, rows + 1, row);
	return io_fill(&x->treebank->reader, s, c, &w, arena, to, x->diags) ? to : NULL;
}

static bool add_structure(struct next *x, const struct io_structure *from)
{
	int inputs = x->forest->program->interface.inputs;
	const void **data = ARENA_ARRAY(&x->treebank->structure, const void *, inputs + 1);
	for (int i = 0; i < inputs; i++)
		if (!(data[i] = fill_data(x, from, i)))
			return false;
	esp_structure s = {.size = sizeof s,
			   .nodes = from->nodes,
			   .child_begin = from->child_begin,
			   .children = from->children,
			   .root = from->root,
			   .data = data};
	const struct io_text *text = &x->treebank->reader;
	const struct io_view *view = &x->treebank->view;
	bool brackets = view->format == IO_BRACKETS;
	struct lin_origin origin = {x->treebank->file->text, io_place(text->line.number),
				    text->structures - 1, brackets && !view->collapse,
				    brackets && !view->binarize};
	if (!forest_hold_file(x->forest, x->treebank->file, x->diags) ||
	    !forest_add(x->forest, &s, &origin, x->diags))
		return false;
	x->treebank->last = *from;
	x->treebank->sentence = from->sentence;
	return x->more = true;
}

/* --- checks of trees beyond those of arrays --- */

static bool refuse_child(const struct next *x, const struct io_structure *s, int32_t edge)
{
	int32_t n = 0;
	while (s->child_begin[n + 1] <= edge)
		n++;
	return diag_add(x->diags, DIAG_DANGLING_CHILD, place_of(x->treebank),
			"children are named by their number within the structure, from 0",
			"child %d of node %d of structure %lld is node %d, but it has nodes 0 to %d only",
			edge - s->child_begin[n], n, (long long)x->treebank->reader.structures - 1,
			s->children[edge], s->nodes - 1);
}

static bool refuse_unreached(const struct next *x, const struct io_structure *s, int32_t n)
{
	return diag_add(
	    x->diags, DIAG_UNREACHED_NODE, place_of(x->treebank),
	    "set 'root' to the node without a parent, leave the node out, or declare the model's structure a "
	    "DAG",
	    "node %d of structure %lld is no child of any node, but the root of the tree is node %d", n,
	    (long long)x->treebank->reader.structures - 1, s->root);
}

/* Checks that every node of a tree but the root has a parent.  Nodes with two parents and cycles are
 * diagnosed when the forest runs. */
static bool check_reach(const struct next *x, const struct io_structure *s)
{
	bool *child = ARENA_ARRAY(&x->treebank->structure, bool, s->nodes), twice = false;
	for (int32_t e = 0; e < s->child_begin[s->nodes]; e++) {
		if (s->children[e] < 0 || s->children[e] >= s->nodes)
			return refuse_child(x, s, e);
		twice |= child[s->children[e]];
		child[s->children[e]] = true;
	}
	if (twice || x->forest->program->interface.shared_children)
		return true;
	for (int32_t n = 0; n < s->nodes; n++)
		if (!child[n] && n != s->root)
			return refuse_unreached(x, s, n);
	return true;
}

/* --- the format --- */

/* A row of a model without a structure is a sequence of one node. */
static bool takes_sequences(const esp_forest *f)
{
	const struct image *i = &f->program->interface;
	return !i->children || (i->children == 1 && !i->shared_children);
}

/* Reads on until the text contains the next structure.  Text of unknown format is plain if the program takes
 * sequences, else brackets. */
static bool fetch_structure(struct next *x)
{
	esp_treebank *t = x->treebank;
	struct io_text *text = &t->reader;
	t->view.sequence = takes_sequences(x->forest);
	if (!io_stream_fill(&t->stream, text, t->view.format, x->diags))
		return false;
	if (t->view.format != IO_AUTO)
		return true;
	t->view.format =
	    io_format_of_text(text->at, text->end - text->at, t->view.sequence ? IO_PLAIN : IO_BRACKETS);
	return io_stream_fill(&t->stream, text, t->view.format, x->diags);
}

static bool next_structure(void *job)
{
	struct next *x = job;
	struct io_structure s;
	esp_treebank *t = x->treebank;
	enum io_next next = io_next_structure(&t->reader, &t->view, &t->structure, x->diags, &s);
	return next == IO_END || (next == IO_TREE && check_reach(x, &s) && add_structure(x, &s));
}

/* Whether the next call reads the structure again: it does if memory was out. */
static bool may_retry(const struct diags *diags)
{
	return !diags->n || diags->at[0].id == DIAG_OUT_OF_MEMORY;
}

static bool read_structure(struct next *x)
{
	esp_treebank *t = x->treebank;
	struct io_text before = t->reader;
	if (api_guarded(&t->structure, x->diags, next_structure, x))
		return true;
	if (may_retry(x->diags))
		t->reader = before;
	return false;
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
		ok = fetch_structure(&x) && read_structure(&x);
	}
	if (more)
		*more = x.more;
	return api_end(&call, ok, error);
}
