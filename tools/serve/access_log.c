/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The access log: one JSON object in a line for each request. Nothing that is wrong with the log stops serving:
 * a line that cannot be written at once is lost, and counted. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A line of at most PIPE_BUF bytes is written to a pipe as a whole or not at all: a byte of a path may take six. */
enum { PATH_SHOWN = 500 };

static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
	if (fd < 0)
		complain("cannot open the access log %s: %s", path, strerror(errno));
	return fd;
}

bool access_log_open(struct access_log *l, const char *path)
{
	*l = (struct access_log){.path = path, .fd = path ? open_file(path) : STDOUT_FILENO};
	l->line = open_memstream(&l->text, &l->size);
	return l->fd >= 0 && (l->line || complain("no memory"));
}

void access_log_reopen(struct access_log *l)
{
	int fd = l->path ? open_file(l->path) : -1;
	if (fd < 0)
		return;
	close(l->fd);
	l->fd = fd;
	l->torn = false;
}

void access_log_close(struct access_log *l)
{
	if (l->line)
		fclose(l->line);
	free(l->text);
	if (l->path && l->fd >= 0)
		close(l->fd);
}

static void put_time(FILE *to)
{
	struct timespec now;
	struct tm utc;
	char date[32];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
	fprintf(to, "{\"time\":\"%s.%03dZ\"", date, (int)(now.tv_nsec / 1000000));
}

static void put_text(FILE *to, const char *name, const char *text)
{
	fprintf(to, ",\"%s\":", name);
	if (text && *text)
		write_json_string(to, text);
	else
		fputs("null", to);
}

static void put_line(FILE *to, const struct request *r)
{
	char path[PATH_SHOWN + 1];
	snprintf(path, sizeof path, "%s", r->path);
	put_time(to);
	put_text(to, "remote", r->client->remote);
	put_text(to, "method", r->method);
	put_text(to, "path", path);
	fprintf(to, ",\"status\":%d,\"bytes\":%zu", r->status, r->sent);
	put_text(to, "model", r->instance ? r->instance->name : r->name);
	fprintf(to,
		",\"nodes\":%zu,\"queue_us\":%" PRId64 ",\"compute_us\":%" PRId64 ",\"whole_us\":%" PRId64,
		r->nodes, r->queued / 1000, r->computed / 1000, (esp_clock() - r->begin) / 1000);
	fprintf(to, ",\"generation\":%" PRIu64, r->generation);
	put_text(to, "request_id", r->id);
	fputs("}\n", to);
}

/* Whether bytes can be written without waiting: a pipe that nobody reads must not stop the server. */
static bool is_writable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

/* After a line that was cut short, as on a full disk, the next one begins with the end of it. */
static bool write_line(struct access_log *l)
{
	size_t n = l->size;
	if (!is_writable(l->fd) || (l->torn && write(l->fd, "\n", 1) != 1))
		return false;
	l->torn = false;
	ssize_t written = write(l->fd, l->text, n);
	l->torn = written > 0 && (size_t)written < n;
	return written == (ssize_t)n;
}

void access_log_write(struct access_log *l, const struct request *r)
{
	const bool begun = fseek(l->line, 0, SEEK_SET) == 0;
	if (begun)
		put_line(l->line, r);
	if (!begun || fflush(l->line) || !write_line(l))
		l->lost++;
}
