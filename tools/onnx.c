/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Files of graphs: what the options decide about a graph when it is read. */
#include "array_file.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DECIDED = 64, MOST_CONSTANTS = 16 };

struct decided {
	char *sizes, *outputs, *names; /* copies of the options' texts, cut at their separators */
	esp_extent extent[MOST_DECIDED];
	const char *exported[MOST_DECIDED];
	esp_array constant[MOST_CONSTANTS];
	struct array_file file[MOST_CONSTANTS];
	esp_read_options options;
};

bool is_graph(const char *path)
{
	static const char *const endings[] = {
#define GRAPH_FILE(format, ending, at, bytes) ending,
#include "base/graph_files.def"
	};
	for (size_t i = 0, n = strlen(path); i < sizeof endings / sizeof *endings; i++)
		if (n > strlen(endings[i]) && strcmp(path + n - strlen(endings[i]), endings[i]) == 0)
			return true;
	return false;
}

/* "batch=1,length=32" */
static bool read_sizes(struct decided *d)
{
	for (char *word = strtok(d->sizes, ","); word; word = strtok(NULL, ",")) {
		char *value = strrchr(word, '='), *end = NULL;
		if (d->options.extents == MOST_DECIDED)
			return complain("--sizes gives more than %d sizes", MOST_DECIDED);
		errno = 0;
		long long size = value ? strtoll(value + 1, &end, 10) : 0;
		if (!value || value == word || !*(value + 1) || *end || errno)
			return complain("--sizes is NAME=NUMBER,NAME=NUMBER, not '%s'", word);
		*value = 0;
		d->extent[d->options.extents++] = (esp_extent){word, size};
	}
	return true;
}

static bool read_outputs(struct decided *d)
{
	for (char *word = strtok(d->outputs, ","); word; word = strtok(NULL, ",")) {
		if (d->options.exports == MOST_DECIDED)
			return complain("--outputs names more than %d values", MOST_DECIDED);
		d->exported[d->options.exports++] = word;
	}
	return true;
}

static bool check_constants(const struct words *words)
{
	for (int i = 0; i < words->n; i++) {
		const char *word = words->word[i], *path = strchr(word, '=');
		if (!path || path == word)
			return complain("--constant is NAME=FILE.npy or NAME=FILE.pb, not '%s'", word);
	}
	return true;
}

/* "shape=shape.pb": the name is cut off a copy of the word, which lives as long as the options.  False after a
 * message. */
static bool read_constants(struct decided *d, esp_context *context, const struct words *words)
{
	char *at = d->names;
	for (int i = 0; i < words->n; i++) {
		strcpy(at, words->word[i]);
		char *path = strchr(at, '=');
		struct array_file *file = &d->file[i];
		*path++ = 0;
		if (!array_file_open(file, context, path) || !array_file_load(file))
			return false;
		d->constant[d->options.constants++] =
		    (esp_array){at, file->dtype, file->rank, file->shape, file->elements};
		at += strlen(words->word[i]) + 1;
	}
	return true;
}

static esp_status read_with(struct decided *d, esp_context *context, const char *path,
			    const struct options *o, esp_model **model, esp_error **error)
{
	d->options = (esp_read_options){
	    .size = sizeof d->options, .extent = d->extent, .constant = d->constant, .exported = d->exported};
	if (!d->sizes || !d->outputs || !d->names || !read_sizes(d) || !read_outputs(d) ||
	    !check_constants(&o->constant))
		return ESP_ERROR_ARGUMENT;
	if (!read_constants(d, context, &o->constant))
		return ESP_ERROR_INPUT;
	return esp_model_read_with(context, path, &d->options, model, error);
}

esp_status read_graph(esp_context *context, const char *path, const struct options *o, esp_model **model,
		     esp_error **error)
{
	struct decided d = {0};
	size_t length = 1;
	*error = NULL;
	for (int i = 0; i < o->constant.n; i++)
		length += strlen(o->constant.word[i]) + 1;
	d.sizes = strdup(o->sizes ? o->sizes : "");
	d.outputs = strdup(o->outputs ? o->outputs : "");
	d.names = malloc(length);
	esp_status status = read_with(&d, context, path, o, model, error);
	for (int i = 0; i < MOST_CONSTANTS; i++)
		array_file_close(&d.file[i]);
	free(d.sizes);
	free(d.outputs);
	free(d.names);
	return status;
}
