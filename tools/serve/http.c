/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests by the HTTP library: from their first line to their end. The library reads and writes sockets only within
 * MHD_run, which the loop calls; so all of this happens in one thread. */
#include "serve.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a connection: the head of a request, of at most half of it, and that of the answer. */
enum { CONNECTION_BYTES = 32 << 10 };
/* Bodies of all connections together are so many times the limit of one. */
enum { BODIES = 16 };

/* --- bodies --- */

static size_t body_limit(const struct server *s)
{
	return s->options->body_bytes ? (size_t)s->options->body_bytes : 16 << 20;
}

/* Takes memory for a body of `bytes`; false when there is none. */
static bool reserve_body(struct request *r, size_t bytes)
{
	struct server *s = r->server;
	if (bytes <= r->capacity)
		return true;
	if (s->body_bytes + bytes - r->capacity > BODIES * body_limit(s))
		return false;
	char *grown = realloc(r->body, bytes);
	if (!grown)
		return false;
	s->body_bytes += bytes - r->capacity;
	r->body = grown;
	r->capacity = bytes;
	return true;
}

/* Adds what has come. The rest of a body that is too long is dropped, and refused at its end, for until then no
 * answer can be given; false: it goes on for too long. */
static bool add_body(struct request *r, const char *data, size_t bytes)
{
	const size_t limit = body_limit(r->server), total = r->bytes + bytes;
	if (total > limit)
		r->excessive = true;
	if (!r->excessive && total > r->capacity) {
		size_t wanted = r->capacity ? 2 * r->capacity : 4096;
		wanted = wanted < total ? total : wanted;
		if (!reserve_body(r, wanted < limit ? wanted : limit))
			return false;
	}
	if (!r->excessive)
		memcpy(r->body + r->bytes, data, bytes);
	r->bytes = total;
	return total <= 4 * limit;
}

static const char *header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* An answer before the body ends the connection, which would be a loss where there is none. */
static bool has_body(const struct request *r)
{
	const char *length = header(r, "Content-Length");
	return (length && strcmp(length, "0") != 0) || header(r, "Transfer-Encoding");
}

/* Refuses a body by what the head says of it, or takes memory for it. */
static void announce_body(struct request *r, enum MHD_Result *result)
{
	const char *length = header(r, "Content-Length");
	const char *coding = header(r, "Content-Encoding");
	unsigned long long bytes = length ? strtoull(length, NULL, 10) : 0;
	if (coding && strcasecmp(coding, "identity") != 0)
		*result = answer_error(r, 415, "Content-Encoding '%.40s' is not read: send the body as it is", coding);
	else if (bytes > body_limit(r->server))
		*result = answer_error(r, 413,
				       "the body has %llu bytes, more than the %zu that --body-bytes allows",
				       bytes, body_limit(r->server));
	else if (!reserve_body(r, bytes))
		*result = answer_error(r, 503, "there is no memory for the body now");
}

/* --- requests --- */

/* The client's own name for a request, if it can stand in a log, or else a number. */
static void name_request(struct request *r)
{
	const char *given = header(r, "X-Request-Id");
	size_t n = given ? strlen(given) : 0;
	for (size_t i = 0; i < n; i++)
		if (given[i] < ' ' || given[i] > '~')
			n = 0;
	if (n && n < sizeof r->id)
		memcpy(r->id, given, n + 1);
	else
		snprintf(r->id, sizeof r->id, "%08x%08" PRIx64, r->server->series, r->server->served);
}

static struct request *begin_request(struct server *s, struct client *c, struct MHD_Connection *connection,
				     const char *path, const char *method)
{
	struct request *r = calloc(1, sizeof *r);
	if (!r || !(r->path = strdup(path))) {
		free(r);
		return NULL;
	}
	r->server = s;
	r->client = c;
	r->connection = connection;
	r->begin = c->since = esp_clock();
	snprintf(r->method, sizeof r->method, "%s", method);
	s->served++;
	s->requests++;
	c->request = r;
	name_request(r);
	return r;
}

/* Whole: the client has got its answer. If not, and it is neither slow nor gone, its chunks were not well formed. */
static void end_request(struct request *r, bool whole)
{
	struct server *s = r->server;
	if (!r->status || !whole)
		r->status = r->client->late ? 408 : r->client->gone ? STATUS_GONE : 400;
	s->answers[r->status]++;
	access_log_write(&s->log, r);
	s->body_bytes -= r->capacity;
	s->requests--;
	r->client->request = NULL;
	r->client->since = esp_clock();
	esp_ticket_free(r->ticket);
	esp_error_free(r->error);
	infer_free(r->infer);
	models_release(&s->models, r->instance);
	free(r->body);
	free(r->path);
	free(r);
}

void request_cancel(struct request *r)
{
	if (r && r->ticket)
		esp_ticket_cancel(r->ticket);
}

/* --- what the library calls --- */

/* Called when the head of a request is there, then for each part of its body, in the end without one, and again when
 * its connection was resumed. */
static enum MHD_Result handle(void *server, struct MHD_Connection *connection, const char *path, const char *method,
			      const char *version, const char *data, size_t *bytes, void **request)
{
	struct request *r = *request;
	enum MHD_Result result = MHD_YES;
	(void)version;
	if (!r) {
		struct client *c =
		    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
		*request = r = begin_request(server, c, connection, path, method);
		if (!r)
			return MHD_NO;
		if (has_body(r) && route_request(r, &result))
			announce_body(r, &result);
		return result;
	}
	if (*bytes) {
		if (!add_body(r, data, *bytes))
			return MHD_NO;
		*bytes = 0;
		return MHD_YES;
	}
	if (r->excessive)
		return answer_error(r, 413, "the body has more than the %zu bytes that --body-bytes allows",
				    body_limit(r->server));
	if (!r->route && !route_request(r, &result))
		return result;
	r->client->since = 0;
	return r->route->answer(r);
}

static void complete(void *server, struct MHD_Connection *connection, void **request,
		     enum MHD_RequestTerminationCode code)
{
	(void)server;
	(void)connection;
	struct request *r = *request;
	if (r)
		end_request(r, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
	*request = NULL;
}

/* --- clients --- */

static void name_client(struct client *c, const struct sockaddr *from, socklen_t bytes)
{
	char host[48], port[8];
	if (from->sa_family == AF_UNIX ||
	    getnameinfo(from, bytes, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
		strcpy(c->remote, "unix");
	else
		snprintf(c->remote, sizeof c->remote, from->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static void begin_client(struct server *s, struct MHD_Connection *connection, void **context)
{
	const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct client *c = s->arriving;
	s->arriving = NULL;
	*context = c;
	c->watch = (struct watch){WATCH_CLIENT, fd};
	c->since = esp_clock();
	c->next = s->clients;
	c->link = &s->clients;
	if (c->next)
		c->next->link = &c->next;
	s->clients = c;
	s->connections++;
	/* Tells once when the client closes its end, also while the library does not look at a suspended connection. */
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void end_client(struct server *s, struct client *c)
{
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->watch.fd, NULL);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->connections--;
	free(c);
}

static void notice_client(void *server, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		begin_client(server, connection, context);
	else
		end_client(server, *context);
}

void http_add(struct server *s, int fd, const struct sockaddr *from, socklen_t bytes)
{
	s->arriving = calloc(1, sizeof *s->arriving);
	if (!s->arriving) {
		close(fd);
		return;
	}
	name_client(s->arriving, from, bytes);
	MHD_add_connection(s->http, fd, from, bytes); /* which closes it when it fails */
	free(s->arriving);
	s->arriving = NULL;
}

/* --- start and end --- */

static void drop_message(void *user, const char *format, va_list args)
{
	(void)user, (void)format, (void)args;
}

bool http_start(struct server *s)
{
	const unsigned flags =
	    MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
	s->http = MHD_start_daemon(flags, 0, NULL, NULL, handle, s,
				   MHD_OPTION_EXTERNAL_LOGGER, drop_message, NULL,
				   MHD_OPTION_NOTIFY_COMPLETED, complete, s,
				   MHD_OPTION_NOTIFY_CONNECTION, notice_client, s,
				   MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
				   MHD_OPTION_CONNECTION_LIMIT, 1u << 20, MHD_OPTION_END);
	if (!s->http)
		return complain("cannot start the HTTP library");
	s->watch_http = (struct watch){WATCH_HTTP, MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd};
	return true;
}

void http_stop(struct server *s)
{
	if (s->http)
		MHD_stop_daemon(s->http);
}
