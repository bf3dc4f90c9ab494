/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The sockets that clients connect to: addresses, paths, and those that systemd passed. */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char default_address[] = "127.0.0.1:8080";

static bool add_listener(struct listeners *l, int fd, char *path)
{
	if (l->n == LISTENERS) {
		close(fd);
		free(path);
		return complain("more than %d sockets to listen on", LISTENERS);
	}
	l->at[l->n++] = (struct listener){.watch = {WATCH_LISTENER, fd}, .path = path};
	return true;
}

/* --- unix sockets --- */

/* Whether a process listens on the socket. */
static bool is_in_use(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool used = fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 || errno != ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return used;
}

/* Removes a socket that a process left when it was killed; nothing else. */
static void remove_stale(const struct sockaddr_un *at)
{
	struct stat s;
	if (lstat(at->sun_path, &s) == 0 && S_ISSOCK(s.st_mode) && !is_in_use(at))
		unlink(at->sun_path);
}

/* Nobody can connect before listen(), so the mode is set in time. */
static bool bind_path(int fd, const struct sockaddr_un *at, mode_t mode)
{
	return bind(fd, (const struct sockaddr *)at, sizeof *at) == 0 && chmod(at->sun_path, mode) == 0 &&
	       listen(fd, SOMAXCONN) == 0;
}

static bool listen_at_path(struct listeners *l, const char *path, mode_t mode)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	if (!*path || strlen(path) >= sizeof at.sun_path)
		return complain("--listen unix:PATH: a path has from 1 to %zu bytes", sizeof at.sun_path - 1);
	strcpy(at.sun_path, path);
	remove_stale(&at);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char *own = strdup(path);
	if (fd < 0 || !own || !bind_path(fd, &at, mode)) {
		complain("cannot listen on unix:%s: %s", path, own ? strerror(errno) : "no memory");
		if (fd >= 0)
			close(fd);
		free(own);
		return false;
	}
	fprintf(stderr, "espalier: listening on unix:%s\n", path);
	return add_listener(l, fd, own);
}

/* --- addresses --- */

static void print_address(int fd)
{
	struct sockaddr_storage at = {0};
	socklen_t n = sizeof at;
	char host[128], port[16];
	if (getsockname(fd, (struct sockaddr *)&at, &n) || at.ss_family == AF_UNIX ||
	    getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		fprintf(stderr, "espalier: listening on a socket that was passed\n");
	else if (at.ss_family == AF_INET6)
		fprintf(stderr, "espalier: listening on http://[%s]:%s\n", host, port);
	else
		fprintf(stderr, "espalier: listening on http://%s:%s\n", host, port);
}

/* Splits HOST:PORT, [HOST]:PORT or PORT, of which `text` is a copy. */
static bool split_address(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':'), *end = text + strcspn(text, "]");
	if (!colon) {
		*host = "127.0.0.1", *port = text;
		return strspn(text, "0123456789") == strlen(text);
	}
	*colon = 0;
	*host = text, *port = colon + 1;
	if (*text == '[') {
		*host = text + 1;
		if (end + 1 != colon)
			return false;
		*end = 0;
	} else if (strchr(text, ':')) {
		return false; /* IPv6 without brackets */
	}
	return **host && **port && strspn(*port, "0123456789") == strlen(*port);
}

static int open_address(const struct addrinfo *a)
{
	int on = 1, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

/* Listens on each address that the name has; it is enough when one of them can be had. */
static bool listen_at_each(struct listeners *l, const char *text, const struct addrinfo *a)
{
	int before = l->n, why = 0;
	for (; a; a = a->ai_next) {
		int fd = open_address(a);
		if (fd < 0) {
			why = errno;
			continue;
		}
		print_address(fd);
		if (!add_listener(l, fd, NULL))
			return false;
	}
	return l->n > before || complain("cannot listen on %s: %s", text, strerror(why));
}

static bool listen_at(struct listeners *l, const char *text)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found;
	char copy[300], *host, *port;
	snprintf(copy, sizeof copy, "%s", text);
	if (strlen(text) >= sizeof copy || !split_address(copy, &host, &port))
		return complain("--listen is PORT, HOST:PORT, [IPV6]:PORT or unix:PATH, not '%s'", text);
	int why = getaddrinfo(strcmp(host, "*") == 0 ? NULL : host, port, &hints, &found);
	if (why)
		return complain("cannot listen on %s: %s", text, gai_strerror(why));
	bool ok = listen_at_each(l, text, found);
	freeaddrinfo(found);
	return ok;
}

/* --- sockets that were passed --- */

static bool take_passed(struct listeners *l, int fd)
{
	int accepts = 0, type = 0;
	socklen_t n = sizeof accepts, m = sizeof type;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &n) ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) || !accepts || type != SOCK_STREAM)
		return complain("descriptor %d, which LISTEN_FDS passes, is no stream socket that listens", fd);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	print_address(fd);
	return add_listener(l, fd, NULL);
}

/* The mode of unix sockets; false after a message. */
static bool read_mode(const char *text, mode_t *mode)
{
	char *end;
	unsigned long value = strtoul(text, &end, 8);
	*mode = (mode_t)value;
	return (strspn(text, "01234567") == strlen(text) && *text && value <= 0777) ||
	       complain("--socket-mode is from 0 to 777, in octal, not '%s'", text);
}

bool listeners_open(struct listeners *l, const struct options *o)
{
	mode_t mode;
	bool ok = read_mode(o->socket_mode ? o->socket_mode : "660", &mode);
	int passed = systemd_sockets();
	for (int i = 0; ok && i < passed; i++)
		ok = take_passed(l, SYSTEMD_FIRST + i);
	for (int i = 0; ok && i < o->listen.n; i++)
		ok = strncmp(o->listen.word[i], "unix:", 5) == 0
			 ? listen_at_path(l, o->listen.word[i] + 5, mode)
			 : listen_at(l, o->listen.word[i]);
	return ok && (passed || o->listen.n || listen_at(l, default_address));
}

void listeners_close(struct listeners *l)
{
	for (int i = 0; i < l->n; i++) {
		if (l->at[i].path)
			unlink(l->at[i].path);
		close(l->at[i].watch.fd);
		free(l->at[i].path);
	}
	l->n = 0;
}
