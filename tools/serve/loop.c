/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loop of the main thread: sockets, signals, limits of time, and the end. */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 64 };
static const int64_t millisecond = 1000000, second = 1000000000;

static int64_t timeout_of(const struct server *s)
{
	return (int64_t)((s->options->timeout ? s->options->timeout : 30) * (double)second);
}

static size_t connection_limit(const struct server *s)
{
	return s->options->connections ? (size_t)s->options->connections : 1024;
}

/* Whoever resumes requests writes to a counter that is never read: the edge is what wakes. */
static bool watch(struct server *s, struct watch *w)
{
	const uint32_t events = w->kind == WATCH_RESUMED ? EPOLLIN | EPOLLET : EPOLLIN;
	struct epoll_event event = {.events = events, .data.ptr = w};
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->fd, &event) == 0 || complain("epoll_ctl: %s", strerror(errno));
}

/* --- connections --- */

/* While there are as many connections as allowed, others wait in the queue of the system. */
static void listen_again(struct server *s)
{
	bool full = s->connections >= connection_limit(s) || esp_clock() < s->rest;
	if (full == s->full)
		return;
	s->full = full;
	for (int i = 0; i < s->listeners.n; i++) {
		struct watch *w = &s->listeners.at[i].watch;
		struct epoll_event event = {.events = full ? 0 : EPOLLIN, .data.ptr = w};
		epoll_ctl(s->epoll, EPOLL_CTL_MOD, w->fd, &event);
	}
}

/* Without descriptors or memory it rests, as accept() would fail at once for ever. */
static void accept_clients(struct server *s, int fd)
{
	struct sockaddr_storage from;
	for (int i = 0; i < EVENTS && s->connections < connection_limit(s); i++) {
		socklen_t bytes = sizeof from;
		int client = accept4(fd, (struct sockaddr *)&from, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client >= 0) {
			http_add(s, client, (struct sockaddr *)&from, bytes);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			s->rest = esp_clock() + 100 * millisecond;
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static void notice_gone(struct client *c)
{
	c->gone = true;
	request_cancel(c->request);
}

/* Ends connections that are silent, send or read too slowly: the HTTP library finds them closed. */
static void end_slow_clients(struct server *s)
{
	const int64_t past = esp_clock() - timeout_of(s);
	for (struct client *c = s->clients; c; c = c->next)
		if (c->since && c->since < past) {
			c->since = 0;
			c->late = true;
			s->timeouts++;
			shutdown(c->watch.fd, SHUT_RDWR);
		}
}

/* --- signals --- */

static void begin_drain(struct server *s)
{
	const double limit = s->options->drain ? s->options->drain : 30;
	const bool again = s->draining;
	s->draining = again ? 1 : esp_clock() + (int64_t)(limit * (double)second);
	if (again)
		return;
	systemd_notify("STOPPING=1");
	listeners_close(&s->listeners);
}

static void read_signals(struct server *s)
{
	struct signalfd_siginfo info;
	while (read(s->watch_signal.fd, &info, sizeof info) == sizeof info)
		if (info.ssi_signo != SIGHUP) {
			begin_drain(s);
		} else if (!s->draining) {
			access_log_reopen(&s->log);
			models_reload(&s->models);
		}
}

/* The loading thread has been through all models. */
static void notice_loaded(struct server *s)
{
	uint64_t count;
	if (read(s->watch_loaded.fd, &count, sizeof count) < 0 || s->told)
		return;
	s->told = true;
	if (models_ready(&s->models)) {
		fputs("espalier: ready\n", stderr);
		systemd_notify("READY=1");
		return;
	}
	s->failed = true;
	begin_drain(s);
}

/* --- the loop --- */

static void handle_event(struct server *s, struct watch *w)
{
	switch (w->kind) {
	case WATCH_HTTP:
	case WATCH_RESUMED:
		break; /* MHD_run looks itself */
	case WATCH_SIGNAL:
		read_signals(s);
		break;
	case WATCH_LOADED:
		notice_loaded(s);
		break;
	case WATCH_LISTENER:
		accept_clients(s, w->fd);
		break;
	case WATCH_CLIENT:
		notice_gone((struct client *)w);
		break;
	}
}

static int64_t until_drained(const struct server *s)
{
	const int64_t left = (s->draining - esp_clock()) / millisecond;
	return left < 1 ? 1 : left < 50 ? left : 50;
}

/* How long nothing need be done, unless something happens [ms]. */
static int idle_time(const struct server *s)
{
	MHD_UNSIGNED_LONG_LONG http;
	int64_t tick = timeout_of(s) / 4 / millisecond;
	tick = tick < 10 ? 10 : tick > 1000 ? 1000 : tick;
	if (s->draining)
		tick = until_drained(s);
	else if (s->full)
		tick = tick < 50 ? tick : 50;
	else if (!s->clients)
		tick = -1;
	if (MHD_get_timeout(s->http, &http) == MHD_YES && (tick < 0 || (int64_t)http < tick))
		tick = (int64_t)http;
	return (int)tick;
}

static void cancel_all(struct server *s)
{
	for (struct client *c = s->clients; c; c = c->next)
		request_cancel(c->request);
}

static void turn(struct server *s)
{
	struct epoll_event event[EVENTS];
	int n = epoll_wait(s->epoll, event, EVENTS, idle_time(s));
	for (int i = 0; i < n; i++)
		handle_event(s, event[i].data.ptr);
	MHD_run(s->http);
	end_slow_clients(s);
	if (!s->draining)
		listen_again(s);
}

/* Whether it has ended: no request is left, or, a second after the limit, none that is being computed. */
static bool is_drained(struct server *s)
{
	bool computing = false;
	if (!s->draining || !s->requests)
		return s->draining;
	if (esp_clock() < s->draining)
		return false;
	cancel_all(s);
	for (struct client *c = s->clients; c; c = c->next)
		computing |= c->request && c->request->suspended && !c->request->status;
	return !computing && esp_clock() > s->draining + second;
}

static bool open_loop(struct server *s)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread is made: all inherit it */
	signal(SIGPIPE, SIG_IGN);
	if (getrandom(&s->series, sizeof s->series, GRND_NONBLOCK) < 0)
		s->series = (uint32_t)esp_clock();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->watch_signal = (struct watch){WATCH_SIGNAL, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
	s->watch_loaded = (struct watch){WATCH_LOADED, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	s->watch_resumed = (struct watch){WATCH_RESUMED, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	return watch(s, &s->watch_signal) && watch(s, &s->watch_loaded) && watch(s, &s->watch_resumed);
}

static bool open_sockets(struct server *s)
{
	bool ok = access_log_open(&s->log, s->options->access_log) && listeners_open(&s->listeners, s->options) &&
		  http_start(s) && watch(s, &s->watch_http);
	for (int i = 0; ok && i < s->listeners.n; i++)
		ok = watch(s, &s->listeners.at[i].watch);
	return ok;
}

static void close_loop(struct server *s, int status)
{
	http_stop(s);
	listeners_close(&s->listeners);
	access_log_close(&s->log);
	if (!models_stop(&s->models))
		_exit(status);
	close(s->watch_signal.fd);
	close(s->watch_loaded.fd);
	close(s->watch_resumed.fd);
	close(s->epoll);
}

int serve_models(const struct options *o)
{
	if (!o->operands && !o->models) {
		complain("serve needs a model, or --models FOLDER");
		return EXIT_USAGE;
	}
	if (o->operands > 1 && (o->weights || o->schedule)) {
		complain(
		    "--weights and --schedule are for one model: put the weights beside each, as "
		    "NAME.safetensors");
		return EXIT_USAGE;
	}
	struct server s = {.options = o};
	bool ok = open_loop(&s) && open_sockets(&s) && models_start(&s.models, o, s.watch_loaded.fd);
	while (ok && !is_drained(&s))
		turn(&s);
	const int status = ok && !s.failed ? 0 : EXIT_INPUT;
	close_loop(&s, status);
	return status;
}
