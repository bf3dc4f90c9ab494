/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A reference may hold what a body computes on the way, under the names of its locals.  They are made
 * comparable by another model, in which such a local is a state:
 *
 *     leaf:                        leaf:
 *         u = tanh(W @ x)              f = zeros(D)       the body that does not assign it
 *         h = u                        u = tanh(W @ x)
 *     inner:                           h = u
 *         f = sigmoid(U @ left.h)  inner:
 *         h = f * left.h               ...
 *     output x = h                 output x = h
 *                                  state f[D], u[D]
 *
 * The text is looked at by lines only: whether the other model means something is the library's to say, and a
 * local for which it does not is told of as a tensor that the model does not have. */
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DIMS = 256, WAYS = 64 };

/* A line `leaf:`, `inner:` or `node:`. */
struct body {
	int line;	  /* from 1 */
	int word;	  /* ESP_BODY_LEAF, ... */
	const char *rest; /* of its line, after the colon */
	const char *next; /* the line below */
	const char *end;  /* where the next statement begins */
};

struct local {
	const char *name;
	char dims[DIMS]; /* "[D]", as it is declared */
	int only;	 /* the body that assigns it, 0 = all */
};

struct source {
	char *text;
	struct body body[4];
	size_t bodies;
	struct local *local;
	size_t locals;
};

/* --- the text by lines --- */

static const char *after_blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static const char *after_line(const char *p)
{
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

/* Whether the word stands here, and nothing that would make it a longer name. */
static bool is_word(const char *p, const char *word)
{
	size_t n = strlen(word);
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	return strncmp(p, word, n) == 0 && !strspn(p + n, letters);
}

static bool begins_statement(const char *p)
{
	static const char *const words[] = {"model", "structure", "input", "param", "state",
					    "def",   "output",	  "leaf",  "inner", "node"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_word(p, words[i]))
			return true;
	return false;
}

static void add_body(struct source *s, const char *p, int line)
{
	static const char *const words[] = {
	    [ESP_BODY_LEAF] = "leaf", [ESP_BODY_INNER] = "inner", [ESP_BODY_NODE] = "node"};
	for (int word = ESP_BODY_LEAF; word <= ESP_BODY_NODE; word++) {
		const char *colon = is_word(p, words[word]) ? after_blanks(p + strlen(words[word])) : "";
		if (*colon != ':' || s->bodies == sizeof s->body / sizeof *s->body)
			continue;
		s->body[s->bodies++] = (struct body){line, word, colon + 1, after_line(colon), NULL};
	}
}

static void find_bodies(struct source *s)
{
	int line = 1;
	for (const char *p = s->text; *p; p = after_line(p), line++) {
		const char *first = after_blanks(p);
		struct body *last = s->bodies ? &s->body[s->bodies - 1] : NULL;
		if (last && !last->end && begins_statement(first))
			last->end = p;
		add_body(s, first, line);
	}
	if (s->bodies && !s->body[s->bodies - 1].end)
		s->body[s->bodies - 1].end = s->text + strlen(s->text);
}

static bool is_assignment(const char *line, const char *name)
{
	const char *p = after_blanks(line);
	return is_word(p, name) && *after_blanks(p + strlen(name)) == '=';
}

static bool assigns(const struct body *b, const char *name)
{
	bool found = is_assignment(b->rest, name);
	for (const char *p = b->next; p < b->end && !found; p = after_line(p))
		found = is_assignment(p, name);
	return found;
}

/* --- the other text --- */

static bool lacks(const struct body *b, const struct local *l)
{
	return l->only && l->only != b->word;
}

static void print_body(FILE *to, const struct source *s, const struct body *b)
{
	for (size_t i = 0; i < s->locals; i++) {
		const struct local *l = &s->local[i];
		size_t n = strlen(l->dims);
		if (lacks(b, l) && n)
			fprintf(to, "%s = zeros(%.*s)\n", l->name, (int)n - 2, l->dims + 1);
		else if (lacks(b, l))
			fprintf(to, "%s = 0\n", l->name);
	}
}

static char *print_source(const struct source *s, size_t *length)
{
	char *text = NULL;
	const char *p = s->text;
	FILE *to = open_memstream(&text, length);
	if (!to)
		return NULL;
	for (size_t i = 0; i < s->bodies; p = s->body[i++].next) {
		fwrite(p, 1, s->body[i].next - p, to);
		print_body(to, s, &s->body[i]);
	}
	fprintf(to, "%s\n", p);
	for (size_t i = 0; i < s->locals; i++)
		fprintf(to, "state %s%s\n", s->local[i].name, s->local[i].dims);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}

static esp_model *parse(const struct comparison *c, const struct source *s)
{
	size_t length;
	esp_model *model = NULL;
	char *text = print_source(s, &length);
	if (text)
		esp_model_parse(c->objects.context, c->model, text, length, &model, NULL);
	free(text);
	return model;
}

/* --- shapes --- */

/* The n-th way to spell a size: a dimension of the model that has it, or the number. */
static bool spell_size(const esp_program *p, size_t wanted, unsigned n, char *to, size_t room)
{
	int64_t size;
	const char *name;
	for (size_t i = 0; (name = esp_program_size(p, i, &size)); i++)
		if ((size_t)size == wanted && n-- == 0)
			return (size_t)snprintf(to, room, "%s", name) < room;
	return n == 0 && (size_t)snprintf(to, room, "%zu", wanted) < room;
}

/* The way-th spelling of a row's shape. */
static bool spell_shape(const esp_program *p, const struct reference_tensor *t, unsigned way, char *to)
{
	char name[DIMS];
	*to = 0;
	for (size_t d = 1; d < t->rank; d++) {
		unsigned ways = 0;
		while (spell_size(p, t->shape[d], ways, name, sizeof name))
			ways++;
		if (!ways || !spell_size(p, t->shape[d], way % ways, name, sizeof name))
			return false;
		way /= ways;
		size_t n = strlen(to);
		if ((size_t)snprintf(to + n, DIMS - n, "%s%s", n ? ", " : "[", name) + 2 > DIMS - n)
			return false;
	}
	if (*to)
		strcat(to, "]");
	return way == 0;
}

/* --- locals --- */

static bool is_declared(const struct comparison *c, const char *name)
{
	const esp_program *p = c->objects.program;
	for (size_t i = 0; i < esp_program_states(p); i++)
		if (strcmp(esp_program_state(p, i)->name, name) == 0)
			return true;
	for (size_t i = 0; i < esp_program_outputs(p); i++)
		if (strcmp(esp_program_output(p, i)->name, name) == 0)
			return true;
	return false;
}

/* Adds it to the locals when there is a shape with which the model is one. */
static void try_local(const struct comparison *c, struct source *s, const struct reference_tensor *t)
{
	struct local *l = &s->local[s->locals];
	unsigned assigned = 0, there = 0;
	*l = (struct local){.name = t->name};
	for (size_t i = 0; i < s->bodies; i++) {
		there |= 1u << s->body[i].word;
		assigned |= assigns(&s->body[i], t->name) ? 1u << s->body[i].word : 0;
	}
	if (!assigned || !*t->name || is_declared(c, t->name))
		return;
	l->only = assigned == there ? 0 : assigned == 1u << ESP_BODY_LEAF ? ESP_BODY_LEAF : ESP_BODY_INNER;
	s->locals++;
	for (unsigned way = 0; way < WAYS && spell_shape(c->objects.program, t, way, l->dims); way++) {
		esp_model *model = parse(c, s);
		esp_model_free(model);
		if (model)
			return;
	}
	s->locals--;
}

/* --- the other model in place of the first --- */

static int line_in_source(const struct source *s, int line)
{
	int more = 0;
	for (size_t i = 0; i < s->bodies && line > s->body[i].line + more; i++)
		for (size_t k = 0; k < s->locals; k++)
			more += lacks(&s->body[i], &s->local[k]);
	return line - more;
}

int locals_line(const struct comparison *c, int line)
{
	return c->source ? line_in_source(c->source, line) : line;
}

int locals_only(const struct comparison *c, const char *name, bool *is_local)
{
	*is_local = false;
	for (size_t i = 0; c->source && i < c->source->locals; i++)
		if (strcmp(c->source->local[i].name, name) == 0) {
			*is_local = true;
			return c->source->local[i].only;
		}
	return 0;
}

/* The text again, which was read before; NULL when it cannot be. */
static char *read_text(const char *path)
{
	struct stat st;
	FILE *file = fopen(path, "re");
	char *text = NULL;
	if (file && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))
		text = calloc(st.st_size + 1, 1);
	if (text && fread(text, 1, st.st_size, file) != (size_t)st.st_size)
		*text = 0;
	if (file)
		fclose(file);
	return text;
}

void locals_free(struct comparison *c)
{
	if (!c->source)
		return;
	free(c->source->text);
	free(c->source->local);
	free(c->source);
	c->source = NULL;
}

/* A schedule is of the model as it is. */
static bool find_locals(struct comparison *c)
{
	const struct reference *r = &c->reference;
	if (c->options->schedule)
		return false;
	struct source *s = c->source = calloc(1, sizeof *s);
	if (!s || !(s->local = calloc(r->tensors + 1, sizeof *s->local)) || !(s->text = read_text(c->model)))
		return false;
	find_bodies(s);
	for (size_t i = 0; i < r->tensors; i++)
		try_local(c, s, &r->tensor[i]);
	return s->locals;
}

int locals_show(struct comparison *c)
{
	esp_model *model = find_locals(c) ? parse(c, c->source) : NULL;
	if (!model) {
		locals_free(c);
		return 0;
	}
	esp_model_free(c->objects.model);
	c->objects.model = model;
	return objects_compile(&c->objects, c->options, ESP_AT_EVERY_NODE) ? 0 : c->objects.status;
}
