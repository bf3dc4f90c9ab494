/* Bracketed trees as structures of a program, one at a time. */
#include "api/internal.h"
#include "io/file.h"

#include <string.h>

/* --- vocabularies --- */

static void destroy_vocab(void *object)
{
	esp_vocab *v = object;
	arena_free(&v->arena);
}

struct opening {
	struct diags *diags;
	const char *path;
	esp_vocab *vocab;
	esp_treebank *treebank;
};

static bool open_vocab(void *job)
{
	struct opening *o = job;
	o->vocab->words = io_vocab_open(&o->vocab->arena, o->diags, o->path);
	return o->vocab->words;
}

static esp_vocab *new_vocab(esp_context *context, const char *path, struct diags *diags)
{
	esp_vocab *v = object_new(context, sizeof *v, destroy_vocab, diags);
	if (!v)
		return NULL;
	arena_init(&v->arena, &context->allocator);
	if (api_guarded(&v->arena, diags, open_vocab, &(struct opening){diags, path, .vocab = v}))
		return v;
	object_release(v);
	return NULL;
}

esp_status esp_vocab_open(esp_context *context, const char *path, esp_vocab **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_vocab *v = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out))
		v = new_vocab(context, path, &call.diags);
	if (out)
		*out = v;
	return api_end(&call, v, error);
}

void esp_vocab_free(esp_vocab *v)
{
	object_release(v);
}

/* --- treebanks --- */

struct esp_treebank {
	struct object object;
	esp_vocab *vocab;
	struct arena arena; /* the file's text */
	const char *text;
	struct io_ptb reader;
	struct arena tree;    /* of the tree read last */
	const char *sentence; /* in `tree`, NULL = none */
};

static void destroy_treebank(void *object)
{
	esp_treebank *t = object;
	arena_free(&t->tree);
	arena_free(&t->arena);
	object_release(t->vocab);
}

static bool open_treebank(void *job)
{
	struct opening *o = job;
	esp_treebank *t = o->treebank;
	size_t length;
	const char *path = arena_string(&t->arena, o->path);
	t->text = io_read_file(&t->arena, o->diags, path, &length);
	if (t->text)
		t->reader = io_ptb_in(path, t->text, length);
	return t->text;
}

static esp_treebank *new_treebank(esp_context *context, const char *path, const esp_vocab *vocab,
				  struct diags *diags)
{
	esp_treebank *t = object_new(context, sizeof *t, destroy_treebank, diags);
	if (!t)
		return NULL;
	t->vocab = vocab ? object_hold(vocab) : NULL;
	arena_init(&t->arena, &context->allocator);
	arena_init(&t->tree, &context->allocator);
	if (api_guarded(&t->arena, diags, open_treebank, &(struct opening){diags, path, .treebank = t}))
		return t;
	object_release(t);
	return NULL;
}

esp_status esp_treebank_open(esp_context *context, const char *path, const esp_vocab *vocab,
			     esp_treebank **out, esp_error **error)
{
	struct api_call call = api_begin(context);
	esp_treebank *t = NULL;
	if (api_need(&call, context) && api_need(&call, path) && api_need(&call, out) &&
	    (!vocab || api_share(&call, vocab)))
		t = new_treebank(context, path, vocab, &call.diags);
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

double esp_treebank_progress(const esp_treebank *t)
{
	if (!t || t->reader.end == t->text)
		return 1;
	return (double)(t->reader.at - t->text) / (double)(t->reader.end - t->text);
}

/* --- the next tree --- */

struct next {
	esp_treebank *treebank;
	esp_forest *forest;
	struct diags *diags;
	bool more;
};

/* Where a piece of the text stands; counts lines, so for diagnostics only. */
static struct diag_at place_of(const esp_treebank *t, const char *piece)
{
	struct diag_at at = {.file = t->reader.file, .line = 1, .source = t->text};
	for (const char *p = t->text; p < piece; p++)
		if (*p == '\n') {
			at.line++;
			at.source = p + 1;
		}
	at.column = piece - at.source + 1;
	return at;
}

static bool unknown_word(const struct next *x, struct io_span word)
{
	return diag_add(x->diags, DIAG_UNKNOWN_WORD, place_of(x->treebank, word.text),
			"add a line <unk> to the vocabulary if the model was trained with one",
			"'%.*s' is not in the vocabulary", (int)word.length, word.text);
}

/* Tokens of all nodes, -1 at those without a word; NULL after a diagnostic. */
static const int32_t *tokens_of(const struct next *x, const struct io_tree *tree)
{
	int32_t *token = ARENA_ARRAY(&x->treebank->tree, int32_t, tree->nodes);
	for (int32_t n = 0; n < tree->nodes; n++) {
		struct io_span word = tree->word[n];
		token[n] = word.text ? io_vocab_find(x->treebank->vocab->words, word.text, word.length) : -1;
		if (word.text && token[n] < 0) {
			unknown_word(x, word);
			return NULL;
		}
	}
	return token;
}

static const char *sentence_of(struct arena *arena, const struct io_tree *tree)
{
	struct str s = str_in(arena);
	for (int32_t n = 0; n < tree->nodes; n++) {
		if (tree->word[n].text && s.n)
			str_add(&s, " ", 1);
		if (tree->word[n].text)
			str_add(&s, tree->word[n].text, tree->word[n].length);
	}
	return str_text(&s);
}

/* Whether words are all that the program wants to know of a node. */
static bool check_program(const struct next *x)
{
	const struct image *image = &x->forest->program->interface;
	if (image->inputs && !x->treebank->vocab)
		return api_bad_argument(x->diags, "esp_treebank_open", "vocab",
					"must not be NULL: the program has inputs");
	for (int i = 0; i < image->inputs; i++)
		if (i || !image->input[i].token)
			return diag_add(
			    x->diags, DIAG_INPUT_NOT_SUPPLIED,
			    (struct diag_at){.file = x->treebank->reader.file},
			    "add structures with esp_forest_add, which takes data for every input",
			    "the model's input '%s' is %s, a treebank has words only", image->input[i].name,
			    i ? "its second" : "a vector");
	return true;
}

static bool add_tree(struct next *x, const struct io_tree *tree)
{
	const void *data = NULL;
	if (x->forest->program->interface.inputs && !(data = tokens_of(x, tree)))
		return false;
	esp_structure s = {.size = sizeof s,
			   .nodes = tree->nodes,
			   .child_begin = tree->child_begin,
			   .children = tree->children,
			   .root = tree->nodes - 1,
			   .data = &data};
	const char *sentence = sentence_of(&x->treebank->tree, tree);
	if (!forest_add(x->forest, &s, x->diags))
		return false;
	x->treebank->sentence = sentence;
	return x->more = true;
}

static bool next_tree(void *job)
{
	struct next *x = job;
	struct io_tree tree;
	if (!check_program(x))
		return false;
	enum io_next next = io_ptb_next(&x->treebank->reader, &x->treebank->tree, x->diags, &tree);
	return next == IO_END || (next == IO_TREE && add_tree(x, &tree));
}

/* A tree for which there was no memory is read again by the next call. */
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
		arena_free(&treebank->tree);
		struct io_ptb before = treebank->reader;
		ok = api_guarded(&treebank->tree, &call.diags, next_tree, &x);
		if (!ok && may_retry(&call.diags))
			treebank->reader = before;
	}
	if (more)
		*more = x.more;
	return api_end(&call, ok, error);
}
