/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/structure_stream.h"

#include "io/file.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024, LOOK = 20 /* milliseconds between looks at the watch */ };

static bool refuse_stream(const struct io_stream *s, int why, struct diags *diags)
{
	return diag_add(diags, DIAG_CANNOT_READ, (struct diag_at){.file = s->path},
			"check the path and the permissions", "cannot read '%s': %s", s->path, strerror(why));
}

/* A folder can be opened, but not read. */
static bool note_size(struct io_stream *s, struct diags *diags)
{
	struct stat st;
	if (fstat(s->fd, &st) != 0)
		return refuse_stream(s, errno, diags);
	if (S_ISDIR(st.st_mode))
		return refuse_stream(s, EISDIR, diags);
	s->size = S_ISREG(st.st_mode) ? st.st_size : 0;
	s->waits = !S_ISREG(st.st_mode);
	return true;
}

bool io_stream_open(struct io_stream *s, const struct allocator *allocator, const char *path,
		    struct io_text *text, struct diags *diags)
{
	bool standard = strcmp(path, "-") == 0;
	*s = (struct io_stream){.allocator = allocator,
				.path = standard ? "standard input" : path,
				.owned = !standard,
				.fd = standard ? STDIN_FILENO : io_open_at_once(diags, path),
				.limit = IO_FILE_LIMIT,
				.chunk = CHUNK};
	*text = io_text_in(s->path, "", 0);
	return s->fd >= 0 && note_size(s, diags);
}

bool io_stream_open_memory(struct io_stream *s, const char *name, const char *bytes, size_t n, struct io_text *text)
{
	*s = (struct io_stream){.path = name, .fd = -1, .n = n, .size = (int64_t)n, .ended = true};
	*text = io_text_in(name, bytes, n);
	return true;
}

void io_stream_close(struct io_stream *s)
{
	if (s->owned && s->fd >= 0)
		close(s->fd);
	if (s->bytes)
		s->allocator->resize(s->allocator->context, s->bytes, s->capacity, 0);
	*s = (struct io_stream){.fd = -1};
}

/* --- the window --- */

/* The beginning of the line that the text's place is on: a diagnostic may show the line. */
static const char *first_kept(struct io_text *t)
{
	io_text_mark(t);
	return t->line.begin;
}

/* Points the text to the same bytes after they moved. */
static void move_text(struct io_text *t, const char *from, const char *to)
{
	t->at = to + (t->at - from);
	t->line.begin = to + (t->line.begin - from);
	t->end = to + (t->end - from);
}

static void drop_bytes(struct io_stream *s, struct io_text *t, size_t bytes)
{
	memmove(s->bytes, s->bytes + bytes, s->n - bytes);
	move_text(t, s->bytes + bytes, s->bytes);
	s->n -= bytes;
	s->gone += bytes;
}

static bool grow_window(struct io_stream *s, struct io_text *t, struct diags *diags)
{
	size_t capacity = s->capacity ? 2 * s->capacity : s->chunk;
	capacity = capacity < s->limit ? capacity : s->limit;
	const char *from = s->bytes ? s->bytes : t->at;
	if (s->capacity >= s->limit) {
		t->structures++;
		char message[100];
		snprintf(message, sizeof message,
			 "a structure longer than the %zu bytes that are read at most", s->limit);
		io_refuse(t, diags, DIAG_FILE_TOO_LARGE, io_skip_space(t->at, t->end), "split it", message);
		io_text_stop(t);
		return false;
	}
	char *bytes = s->allocator->resize(s->allocator->context, s->bytes, s->capacity, capacity);
	if (!bytes)
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){.file = s->path}, NULL,
				"no memory for %zu bytes of '%s'", capacity, s->path);
	s->bytes = bytes;
	s->capacity = capacity;
	move_text(t, from, bytes);
	return true;
}

/* Drops the text that was read only when that frees half of the window, so that no byte is moved often. */
static bool reserve_space(struct io_stream *s, struct io_text *t, struct diags *diags)
{
	if (s->n < s->capacity)
		return true;
	size_t passed = s->bytes ? (size_t)(first_kept(t) - s->bytes) : 0;
	if (!passed || (passed < s->capacity / 2 && s->capacity < s->limit))
		return grow_window(s, t, diags);
	drop_bytes(s, t, passed);
	return true;
}

/* --- reading --- */

/* The descriptor may have been opened as non-blocking. */
static bool wait_to_read(const struct io_stream *s, int why)
{
	struct pollfd p = {s->fd, POLLIN, 0};
	return why == EINTR || ((why == EAGAIN || why == EWOULDBLOCK) && (poll(&p, 1, -1) >= 0 || errno == EINTR));
}

/* Waits until there is something to read, or an end or an error to be told by reading; false when the watch has given
 * up.  A named pipe that nobody has written to yet is read as if it had ended, so it is waited for without a watch, too. */
static bool wait_for_bytes(const struct io_stream *s, struct diags *diags)
{
	struct pollfd p = {s->fd, POLLIN, 0};
	bool watched = s->watch.goes_on;
	int ready;
	while (s->waits && ((ready = poll(&p, 1, watched ? LOOK : -1)) == 0 || (ready < 0 && errno == EINTR)))
		if (watched && !s->watch.goes_on(s->watch.context, diags))
			return false;
	return true;
}

/* Reads the bytes that are available, at least one unless the file ends. */
static bool read_some(struct io_stream *s, struct io_text *t, struct diags *diags)
{
	ssize_t got;
	if (!reserve_space(s, t, diags))
		return false;
	size_t space = s->capacity - s->n;
	if (!wait_for_bytes(s, diags))
		return false;
	do
		got = read(s->fd, s->bytes + s->n, space < s->chunk ? space : s->chunk);
	while (got < 0 && wait_to_read(s, errno));
	if (got < 0) {
		refuse_stream(s, errno, diags);
		io_text_stop(t);
		return false;
	}
	s->ended = got == 0;
	s->n += got;
	t->end = s->bytes + s->n;
	return true;
}

/* Looks for a byte order mark.  Waits for more bytes only after one that may begin a mark. */
static bool check_beginning(struct io_stream *s, struct io_text *t, struct diags *diags)
{
	while (!s->begun && !s->ended && s->n < 3 && (!s->n || memchr("\xef\xff\xfe", *s->bytes, 3)))
		if (!read_some(s, t, diags))
			return false;
	if (!s->begun && !io_check_mark(s->path, t->at, s->n, diags)) {
		t->structures++;
		io_text_stop(t);
		return false;
	}
	return s->begun = true;
}

bool io_stream_fill(struct io_stream *s, struct io_text *t, enum io_format format, struct diags *diags)
{
	struct io_extent extent = {.format = format};
	size_t seen = 0;
	if (t->stopped)
		return true;
	if (!check_beginning(s, t, diags))
		return false;
	while (!io_extent_end(&extent, t->at + seen, t->end) && !s->ended) {
		seen = t->end - t->at;
		if (!read_some(s, t, diags))
			return false;
	}
	return true;
}

double io_stream_progress(const struct io_stream *s, const struct io_text *t)
{
	int64_t left = t->end - t->at, passed = s->gone + (int64_t)s->n - left;
	if (t->stopped || (s->ended && t->at == t->end))
		return 1;
	return !s->size ? 0 : passed < s->size ? (double)passed / (double)s->size : 1;
}
