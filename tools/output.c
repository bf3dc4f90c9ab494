/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Output files, and results as text and JSON. */
#include "tool.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- files --- */

static bool refuse_output(const struct output *o, int why)
{
	return complain("cannot write %s: %s", o->path ? o->path : "standard output",
			strerror(why ? why : EIO));
}

static mode_t usual_mode(void)
{
	mode_t mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int make_temporary(char *path)
{
	sigset_t before;
	interrupt_hold(&before);
	int fd = mkstemp(path), why = errno;
	interrupt_release(&before, fd >= 0 ? path : NULL);
	errno = why;
	return fd;
}

/* Opens a file beside the target, with the mode that the target has or would get. */
static FILE *open_temporary(struct output *o, mode_t mode)
{
	if (asprintf(&o->temporary, "%s.XXXXXX", o->target) < 0) {
		o->temporary = NULL;
		return NULL;
	}
	int fd = make_temporary(o->temporary);
	FILE *file = fd >= 0 && fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
	if (fd >= 0 && !file) {
		int why = errno;
		close(fd);
		unlink(o->temporary);
		errno = why;
	}
	return file;
}

/* The signal handler may read the temporary file's name until interrupt_forget returns. */
static void forget_temporary(struct output *o)
{
	if (o->temporary)
		interrupt_forget();
	free(o->temporary);
	free(o->target);
	*o = (struct output){.path = o->path};
}

/* Devices and pipes are written in place: a rename cannot replace them. */
bool output_open(struct output *o, const char *path)
{
	struct stat s;
	*o = (struct output){.path = path};
	if (!path || strcmp(path, "-") == 0) {
		o->path = NULL;
		o->file = stdout;
		return true;
	}
	bool exists = stat(path, &s) == 0;
	if (exists && !S_ISREG(s.st_mode)) {
		o->file = fopen(path, "w");
	} else {
		o->target = exists ? realpath(path, NULL) : strdup(path);
		o->file = o->target ? open_temporary(o, exists ? s.st_mode & 07777 : usual_mode()) : NULL;
	}
	if (o->file)
		return true;
	refuse_output(o, errno);
	forget_temporary(o);
	return false;
}

bool output_flush(struct output *o)
{
	errno = 0;
	if (fflush(o->file) == 0 && !ferror(o->file))
		return true;
	return refuse_output(o, errno);
}

bool output_puts(struct output *o, const char *text)
{
	if (fputs(text, o->file) >= 0)
		return true;
	refuse_output(o, errno);
	output_abort(o);
	return false;
}

/* Waits until the data is on the disk. */
static bool sync_retrying(int fd)
{
	int status;
	do
		status = fsync(fd);
	while (status != 0 && errno == EINTR);
	return status == 0;
}

/* Opens the folder that a file is in. */
static int open_folder(const char *path)
{
	char *copy = strdup(path);
	int fd;
	do
		fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	while (fd < 0 && errno == EINTR);
	int why = errno;
	free(copy);
	errno = why;
	return fd;
}

/* A file system that cannot sync a folder is no error. */
static bool sync_folder(int fd)
{
	return sync_retrying(fd) || errno == EINVAL || errno == EBADF || errno == ENOTSUP;
}

/* Syncs the folder after the rename, so that the new name survives a power cut. The folder is opened
 * before the rename, so that a failure changes nothing; a folder that may not be read is not synced. */
static bool replace_target(struct output *o)
{
	int folder = open_folder(o->target);
	bool ok = (folder >= 0 || errno == EACCES) && rename(o->temporary, o->target) == 0;
	if (!ok) {
		refuse_output(o, errno);
		unlink(o->temporary);
	} else if (folder >= 0 && !sync_folder(folder)) {
		ok = complain("%s is written, but may not survive a power cut: %s", o->path, strerror(errno));
	}
	if (folder >= 0)
		close(folder);
	return ok;
}

bool output_commit(struct output *o)
{
	bool ok = output_flush(o);
	errno = 0;
	if (ok && o->temporary && !sync_retrying(fileno(o->file)))
		ok = refuse_output(o, errno);
	errno = 0;
	if (o->file != stdout && fclose(o->file) != 0 && ok)
		ok = refuse_output(o, errno);
	if (ok && o->temporary)
		ok = replace_target(o);
	else if (o->temporary)
		unlink(o->temporary);
	forget_temporary(o);
	return ok;
}

void output_abort(struct output *o)
{
	if (o->file && o->file != stdout)
		fclose(o->file);
	if (o->temporary)
		unlink(o->temporary);
	forget_temporary(o);
}

/* --- rows --- */

static const void *row_of(const struct result *r, size_t output, size_t node)
{
	return r->at == PLACE_ROOT ? esp_session_root_elements(r->session, output, r->structure)
				   : esp_session_output_elements(r->session, output, r->structure, node);
}

/* The i-th element of a row of integers or bools. */
static long long whole_at(const void *row, esp_dtype dtype, size_t i)
{
	return dtype == ESP_I64	  ? ((const int64_t *)row)[i]
	       : dtype == ESP_I32 ? ((const int32_t *)row)[i]
				  : ((const uint8_t *)row)[i];
}

size_t find_greatest(const float *row, size_t n)
{
	size_t best = 0;
	for (size_t i = 1; i < n; i++)
		if (row[i] > row[best])
			best = i;
	return best;
}

/* --- text --- */

/* Bytes that would move a terminal's cursor are shown as question marks. */
void write_words(FILE *to, const char *words, size_t length)
{
	for (size_t i = 0; i < length; i++)
		fputc((unsigned char)words[i] < ' ' || words[i] == 0x7f ? '?' : words[i], to);
}

static void put_values(FILE *to, const void *row, const esp_output *output)
{
	for (size_t i = 0; i < output->elements; i++)
		if (output->dtype == ESP_F32)
			fprintf(to, " %.9g", ((const float *)row)[i]);
		else
			fprintf(to, " %lld", whole_at(row, output->dtype, i));
}

static void write_root(FILE *to, const struct result *r)
{
	size_t outputs = esp_program_outputs(r->program);
	const esp_output *last = esp_program_output(r->program, outputs - 1);
	if (last->labels) {
		const float *row = row_of(r, outputs - 1, 0);
		size_t best = find_greatest(row, last->elements);
		fprintf(to, "%-13s %.3f  ", last->label[best], row[best]);
		write_words(to, r->sentence, strlen(r->sentence));
		fputc('\n', to);
		return;
	}
	for (size_t o = 0; o < outputs; o++) {
		const esp_output *output = esp_program_output(r->program, o);
		fprintf(to, "%s:", output->name);
		put_values(to, row_of(r, o, 0), output);
		fputc('\n', to);
	}
}

/* Writes the word of a node, or the numbers of its children, which count lines of the same structure. */
static void put_node(FILE *to, const struct result *r, const char *word, size_t length, size_t node)
{
	enum { SHOWN_CHILDREN = 8 };
	int32_t child;
	if (length) {
		write_words(to, word, length);
		return;
	}
	fputc('(', to);
	for (size_t i = 0;
	     i <= SHOWN_CHILDREN && (child = esp_forest_child(r->forest, r->structure, node, i)) >= 0; i++)
		if (i < SHOWN_CHILDREN)
			fprintf(to, "%s%d", i ? " " : "", child);
		else
			fputs(" ...", to);
	fputc(')', to);
}

/* Writes the best label of each output that has labels, with the output's name when there are several. */
static void put_labels(FILE *to, const struct result *r, size_t node, size_t labelled)
{
	for (size_t o = 0; o < esp_program_outputs(r->program); o++) {
		const esp_output *output = esp_program_output(r->program, o);
		if (!output->labels)
			continue;
		const float *row = row_of(r, o, node);
		size_t best = find_greatest(row, output->elements);
		fprintf(to, "\t%s%s%s\t%.3f", labelled > 1 ? output->name : "", labelled > 1 ? "=" : "",
			output->label[best], row[best]);
	}
	fputc('\n', to);
}

/* Writes the numbers of each output that has no labels. */
static void put_outputs(FILE *to, const struct result *r, size_t node)
{
	for (size_t o = 0; o < esp_program_outputs(r->program); o++) {
		const esp_output *output = esp_program_output(r->program, o);
		if (output->labels)
			continue;
		fprintf(to, "%s[%zu]:", output->name, node);
		put_values(to, row_of(r, o, node), output);
		fputc('\n', to);
	}
}

static size_t count_labelled(const esp_program *p)
{
	size_t n = 0;
	for (size_t o = 0; o < esp_program_outputs(p); o++)
		n += esp_program_output(p, o)->labels != 0;
	return n;
}

/* Writes a line for each node, as taggers do, when there are labels, then a line for each output without
 * labels, and an empty line after the structure. */
static void write_nodes(FILE *to, const struct result *r)
{
	size_t labelled = count_labelled(r->program);
	const char *word = r->words ? r->words : "";
	for (size_t node = 0; node < r->nodes; node++) {
		size_t length = strcspn(word, "\n");
		if (labelled) {
			put_node(to, r, word, length, node);
			put_labels(to, r, node, labelled);
		}
		put_outputs(to, r, node);
		word += length + (word[length] == '\n');
	}
	fputc('\n', to);
}

void write_text(FILE *to, const struct result *r)
{
	if (r->at == PLACE_ROOT)
		write_root(to, r);
	else
		write_nodes(to, r);
}

/* --- JSON --- */

void write_json_string(FILE *to, const char *text)
{
	fputc('"', to);
	for (const char *p = text, *end = text + strlen(text); p < end;) {
		size_t n = utf8_length(p, end - p);
		if (n == 0)
			fputs("\\ufffd", to);
		else if (*p == '"' || *p == '\\')
			fprintf(to, "\\%c", *p);
		else if ((*p >= 0 && *p < ' ') || *p == 0x7f)
			fprintf(to, "\\u%04x", (unsigned char)*p);
		else
			fwrite(p, 1, n, to);
		p += n ? n : 1;
	}
	fputc('"', to);
}

/* Writes null for NaN and infinities, which JSON cannot express. */
void write_json_number(FILE *to, double value)
{
	if (isfinite(value))
		fprintf(to, "%.9g", value);
	else
		fputs("null", to);
}

static void put_array(FILE *to, const void *row, const esp_output *output)
{
	fputc('[', to);
	for (size_t i = 0; i < output->elements; i++) {
		if (i)
			fputc(',', to);
		if (output->dtype == ESP_F32)
			write_json_number(to, ((const float *)row)[i]);
		else if (output->dtype == ESP_BOOL)
			fputs(whole_at(row, ESP_BOOL, i) ? "true" : "false", to);
		else
			fprintf(to, "%lld", whole_at(row, output->dtype, i));
	}
	fputc(']', to);
}

static void put_output(FILE *to, const struct result *r, size_t o)
{
	const esp_output *output = esp_program_output(r->program, o);
	write_json_string(to, output->name);
	fputc(':', to);
	if (r->at == PLACE_ROOT) {
		put_array(to, row_of(r, o, 0), output);
		return;
	}
	for (size_t node = 0; node < r->nodes; node++) {
		fputc(node ? ',' : '[', to);
		put_array(to, row_of(r, o, node), output);
	}
	fputc(']', to);
}

void write_json(FILE *to, const struct result *r)
{
	fprintf(to, "{\"tree\":%zu,\"nodes\":%zu,\"sentence\":", r->tree, r->nodes);
	write_json_string(to, r->sentence);
	fputs(",\"outputs\":{", to);
	for (size_t o = 0; o < esp_program_outputs(r->program); o++) {
		if (o)
			fputc(',', to);
		put_output(to, r, o);
	}
	fputs("}}\n", to);
}
