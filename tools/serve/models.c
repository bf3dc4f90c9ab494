/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The models that are served: which files they are made of, and who uses them. */
#include "serve.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- files --- */

/* What tells versions of a file apart: a sum of what the system knows of it; 0 = there is none. */
static uint64_t stamp_of(const char *path)
{
	struct stat s;
	if (!path || stat(path, &s))
		return 0;
	const uint64_t facts[] = {s.st_dev,	     s.st_ino,		s.st_size,	  s.st_mtim.tv_sec,
				  s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec};
	uint64_t sum = 14695981039346656037u; /* FNV-1a, a word at a time */
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		sum = (sum ^ facts[i]) * 1099511628211u;
	return sum | 1;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

/* dir/tree.ra without what follows its last dot; NULL = no memory. */
static char *stem_of(const char *path)
{
	const char *base = base_of(path), *dot = strrchr(base, '.');
	return strndup(path, dot && dot != base ? (size_t)(dot - path) : strlen(path));
}

/* Names stand in paths of requests, in labels and in logs: none needs an escape there. */
static bool check_name(const char *name, const char *path)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return complain("%s: a model is served under the name of its file, of letters, digits, "
					"'.', '_' and '-': rename it",
					path);
	return strlen(name) <= NAME_BYTES || complain("%s: the name has more than %d bytes", path, NAME_BYTES);
}

/* --- entries --- */

void entry_free(struct entry *e)
{
	if (!e)
		return;
	for (int i = 0; i < e->vocab.n; i++)
		free((char *)e->vocab.word[i]);
	free(e->name);
	free(e->path);
	free(e->weights);
	free(e);
}

static void entries_free(struct entry *first)
{
	for (struct entry *next; first; first = next) {
		next = first->next;
		entry_free(first);
	}
}

/* Adds a vocabulary of all inputs, or of one: tree.vocab, tree.rel.vocab. */
static bool add_vocab(struct entry *e, const char *input, size_t length, const char *path)
{
	char *word = NULL;
	if (e->vocab.n == (int)(sizeof e->vocab.word / sizeof *e->vocab.word))
		return complain("%s has more than %d vocabularies", e->path, e->vocab.n);
	if (asprintf(&word, "%.*s%s%s", (int)length, input, length ? "=" : "", path) < 0)
		return complain("no memory");
	e->vocab.word[e->vocab.n++] = word;
	e->model_stamp = e->model_stamp * 31 + stamp_of(path);
	return true;
}

/* Whether a file is a vocabulary of the model `base`; *length is that of the name of the input in it, 0 = of all. */
static bool is_vocab(const char *file, const char *base, size_t *length)
{
	const size_t n = strlen(base), m = strlen(file), end = strlen(".vocab");
	if (m < n + end || strncmp(file, base, n) != 0 || file[n] != '.' || strcmp(file + m - end, ".vocab") != 0)
		return false;
	*length = m > n + end ? m - n - end - 1 : 0;
	return true;
}

/* Adds the vocabularies that lie beside a model, in the order of their names. */
static bool find_vocabs(struct entry *e, const char *stem)
{
	struct dirent **file = NULL;
	const char *base = base_of(stem);
	char *folder = base == stem ? strdup(".") : strndup(stem, base - stem);
	int files = folder ? scandir(folder, &file, NULL, alphasort) : 0;
	bool ok = folder || complain("no memory");
	for (int i = 0; i < files; i++) {
		const char *name = file[i]->d_name;
		size_t length;
		char *path = NULL;
		if (ok && is_vocab(name, base, &length))
			ok = asprintf(&path, "%.*s%s", (int)(base - stem), stem, name) >= 0 &&
			     add_vocab(e, name + strlen(base) + 1, length, path);
		free(path);
		free(file[i]);
	}
	free(file);
	free(folder);
	return ok;
}

/* Weights that the options name, or those beside the model. */
static bool find_weights(struct entry *e, const struct options *o, const char *stem)
{
	if (e->named && o->weights)
		e->weights = strdup(o->weights);
	else if (asprintf(&e->weights, "%s.safetensors", stem) < 0)
		e->weights = NULL;
	if (!e->weights)
		return complain("no memory");
	e->weights_stamp = stamp_of(e->weights);
	if (e->weights_stamp || (e->named && o->weights))
		return true;
	free(e->weights);
	e->weights = NULL;
	return true;
}

static bool fill_entry(struct entry *e, const struct options *o, const char *stem)
{
	bool ok = check_name(e->name, e->path) && find_weights(e, o, stem);
	e->model_stamp = stamp_of(e->path);
	if (ok && e->named && o->vocab.n)
		for (int i = 0; i < o->vocab.n && ok; i++) {
			const char *word = o->vocab.word[i], *equals = strchr(word, '=');
			ok = (e->vocab.word[e->vocab.n++] = strdup(word)) != NULL || complain("no memory");
			e->model_stamp = e->model_stamp * 31 + stamp_of(equals ? equals + 1 : word);
		}
	else if (ok)
		ok = find_vocabs(e, stem);
	return ok;
}

static struct entry *make_entry(const struct options *o, const char *path, bool named)
{
	struct entry *e = calloc(1, sizeof *e);
	char *stem = stem_of(path);
	if (!e || !stem || !(e->path = strdup(path)) || !(e->name = strdup(base_of(stem)))) {
		complain("no memory");
	} else {
		e->named = named;
		if (fill_entry(e, o, stem)) {
			free(stem);
			return e;
		}
	}
	free(stem);
	entry_free(e);
	return NULL;
}

/* Puts an entry where its name belongs; a name that is there already is refused. */
static bool insert_entry(struct entry **first, struct entry *e)
{
	int order = 1;
	while (*first && (order = strcmp((*first)->name, e->name)) < 0)
		first = &(*first)->next;
	if (*first && order == 0) {
		complain("%s and %s are both named '%s': rename one of them", (*first)->path, e->path, e->name);
		entry_free(e);
		return false;
	}
	e->next = *first;
	*first = e;
	return true;
}

static int is_model(const struct dirent *d)
{
	static const char *const endings[] = {".ra", ".espalier"};
	for (size_t i = 0; d->d_name[0] != '.' && i < sizeof endings / sizeof *endings; i++)
		if (ends_with(d->d_name, endings[i]))
			return true;
	return d->d_name[0] != '.' && is_graph(d->d_name);
}

/* A model of the folder that cannot be listed is left out, after a message. */
static bool list_folder(const struct options *o, struct entry **first)
{
	struct dirent **file;
	int files = scandir(o->models, &file, is_model, alphasort);
	if (files < 0)
		return complain("cannot read the folder %s: %s", o->models, strerror(errno));
	for (int i = 0; i < files; i++) {
		char *path = NULL;
		struct entry *e = asprintf(&path, "%s/%s", o->models, file[i]->d_name) < 0
				      ? NULL
				      : make_entry(o, path, false);
		if (e)
			insert_entry(first, e);
		free(path);
		free(file[i]);
	}
	free(file);
	return true;
}

bool entries_list(const struct options *o, struct entry **first)
{
	bool ok = true;
	*first = NULL;
	for (int i = 0; i < o->operands && ok; i++) {
		struct entry *e = make_entry(o, o->operand[i], true);
		ok = e && insert_entry(first, e);
	}
	if (ok && o->models)
		ok = list_folder(o, first);
	if (!ok) {
		entries_free(*first);
		*first = NULL;
	}
	return ok;
}

/* --- who uses them --- */

static struct entry *find_entry(const struct models *m, const char *name)
{
	struct entry *e = m->first;
	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

enum found models_take(struct models *m, const char *name, struct instance **instance)
{
	enum found found = FOUND_NONE;
	*instance = NULL;
	pthread_mutex_lock(&m->lock);
	struct entry *e = *name ? find_entry(m, name) : m->first;
	if (!*name && e && e->next) {
		found = FOUND_SEVERAL;
	} else if (e && e->now) {
		found = FOUND_READY;
		*instance = e->now;
		e->now->users++;
	} else if (e || !m->opened) {
		found = FOUND_LOADING;
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}

void models_release(struct models *m, struct instance *i)
{
	if (!i)
		return;
	pthread_mutex_lock(&m->lock);
	if (--i->users == 0)
		pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

bool models_ready(struct models *m)
{
	pthread_mutex_lock(&m->lock);
	bool ready = m->opened && !m->failed;
	pthread_mutex_unlock(&m->lock);
	return ready;
}

uint64_t instance_generation(const struct instance *i, const esp_ticket *t)
{
	return i->before + (t ? esp_ticket_generation(t) : esp_binding_generation(i->binding));
}
