/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the options decide about each ONNX file that is served: NAME:batch=1 about that of the model NAME, batch=1 about
 * those of which nothing else is said. */
#include "serve.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 256 };

/* Words, each up to a comma or the end of its text. */
struct list {
	const char *word[MOST_WORDS];
	int n;
};

/* What is decided about. */
struct subject {
	const struct entry *first; /* all models that are served */
	const char *name;	   /* of this one */
};

static bool add_word(struct list *l, const char *word)
{
	if (l->n == MOST_WORDS)
		return complain("more than %d sizes or outputs are given", MOST_WORDS);
	l->word[l->n++] = word;
	return true;
}

static bool is_name(const char *name, const char *word, size_t length)
{
	return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* The length of the name of a served model, and of a colon, before a word; 0 = there is none. */
static size_t prefix_of(const struct subject *s, const char *word)
{
	size_t n = strcspn(word, ":=,");
	for (const struct entry *e = s->first; e && word[n] == ':'; e = e->next)
		if (is_name(e->name, word, n))
			return n + 1;
	return 0;
}

/* Whether one of the first `n` words is about what another word is about: the text before '=' is the same. */
static bool is_decided(const struct list *l, int n, const char *word)
{
	size_t length = strcspn(word, "=,");
	for (int i = 0; i < n; i++)
		if (strcspn(l->word[i], "=,") == length && memcmp(l->word[i], word, length) == 0)
			return true;
	return false;
}

/* Takes the words that name the model, then those that name none and are about something else; where the first ones `replace`
 * all others, only these. */
static bool choose_words(const struct subject *s, const struct list *from, bool replace, struct list *to)
{
	bool ok = true;
	to->n = 0;
	for (int i = 0; i < from->n; i++) {
		size_t prefix = prefix_of(s, from->word[i]);
		if (prefix && is_name(s->name, from->word[i], prefix - 1))
			ok = ok && add_word(to, from->word[i] + prefix);
	}
	for (int i = 0, own = to->n; i < from->n && !(replace && own); i++)
		if (!prefix_of(s, from->word[i]) && !is_decided(to, own, from->word[i]))
			ok = ok && add_word(to, from->word[i]);
	return ok;
}

/* What a list with commas has for a model, as such a list, which is to be freed; NULL where that is nothing. */
static char *choose_list(const struct subject *s, const char *text, bool replace, bool *ok)
{
	struct list all = {{0}, 0}, chosen;
	if (!text)
		return NULL;
	for (const char *word = text; word && *ok; word = strchr(word, ','), word += word != NULL)
		*ok = add_word(&all, word);
	*ok = *ok && choose_words(s, &all, replace, &chosen);
	if (!*ok || !chosen.n)
		return NULL;
	char *to = malloc(strlen(text) + 1), *end = to;
	*ok = to || complain("no memory");
	for (int i = 0; to && i < chosen.n; i++) {
		size_t length = strcspn(chosen.word[i], ",");
		memcpy(end, chosen.word[i], length);
		end[length] = i + 1 < chosen.n ? ',' : 0;
		end += length + 1;
	}
	return to;
}

static bool choose_constants(const struct subject *s, struct words *constant)
{
	struct list all = {{0}, 0}, chosen;
	for (int i = 0; i < constant->n; i++)
		if (!add_word(&all, constant->word[i]))
			return false;
	if (!choose_words(s, &all, false, &chosen))
		return false;
	constant->n = chosen.n;
	memcpy(constant->word, chosen.word, (size_t)chosen.n * sizeof *chosen.word);
	return true;
}

bool decisions_open(struct decisions *d, struct options *o, const struct entry *first, const char *name)
{
	const struct subject s = {first, name};
	bool ok = choose_constants(&s, &o->constant);
	o->sizes = d->sizes = choose_list(&s, o->sizes, false, &ok);
	o->outputs = d->outputs = choose_list(&s, o->outputs, true, &ok);
	return ok;
}

void decisions_close(struct decisions *d)
{
	free(d->sizes);
	free(d->outputs);
}
