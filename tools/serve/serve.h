/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier serve: what its files share.
 *
 *   main thread        sockets, HTTP, reading and writing of bodies, signals    loop.c, http.c, compute.c
 *   loading thread     opens models, at the start and at SIGHUP                 load.c
 *   services' threads  compute, and resume the connections of what has ended    (in the library)
 *
 * A struct server belongs to the main thread but for its models, which have a lock. */
#ifndef ESPALIER_TOOLS_SERVE_H
#define ESPALIER_TOOLS_SERVE_H

#include "espalier_service.h"
#include "infer.h"
#include "tool.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

/* --- models: models.c, load.c --- */

/* A model that was opened. The registry is a user of the current one, and each request of the one that it began
 * with; the loading thread frees it after the last. */
struct instance {
	char *name;
	struct objects objects; /* the context is that of all models */
	esp_binding *binding;
	esp_service *service;
	bool arrays;	 /* made of a file of a graph */
	bool separate;	 /* the weights are those of a file of their own */
	uint64_t before; /* generations of the instances that it replaced */
	size_t users;	 /* guarded by the lock of the models */
	struct instance *next;
};

/* The files of a model. */
struct entry {
	char *name, *path;
	char *weights;	    /* NULL = in the program, or in the file of a graph */
	struct words vocab; /* as --vocab takes them; the texts are the entry's */
	bool named;	    /* on the command line, not found in the folder */
	uint64_t model_stamp, weights_stamp; /* of the files when they were listed; model: with the vocabularies */
	uint64_t model_open, weights_open;   /* of those that `now` was made from */
	struct instance *now;		     /* NULL = not ready */
	struct entry *next;
};

struct models {
	const struct options *options;
	esp_context *context;
	int loaded; /* an eventfd, written after all files were looked at */
	pthread_t thread;
	bool started;
	atomic_bool stop;
	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t changed;
	struct entry *first;	  /* in the order of their names */
	struct instance *retired; /* replaced or removed, until their last user is gone */
	bool opened;		  /* all were opened, or refused, once */
	bool failed;		  /* one of the command line was refused before that */
	bool reload;
	uint64_t done, refused; /* reloads of weights or models, and those that left the old ones */
};

/* Starts the loading thread; false after a message. */
bool models_start(struct models *, const struct options *, int loaded);
/* Makes the loading thread look at all files again. */
void models_reload(struct models *);
/* Makes compiling give up, ends the thread and frees all. No request may have an instance. False: the thread waits
 * for a file; it still uses the models, so that the process can only be ended. */
bool models_stop(struct models *);
/* decide.c: texts of the options for one model. */
struct decisions {
	char *sizes, *outputs;
};
/* Leaves of the sizes, constants and outputs of the options those for the model of that name among all that
 * are served; texts that are made for it belong to the decisions, which are to be closed in any case.  False
 * after a message. */
bool decisions_open(struct decisions *, struct options *, const struct entry *first, const char *name);
void decisions_close(struct decisions *);

enum found { FOUND_READY, FOUND_LOADING, FOUND_NONE, FOUND_SEVERAL };
/* The model of a name, or the only one when the name is empty; to be given back by models_release. */
enum found models_take(struct models *, const char *name, struct instance **);
void models_release(struct models *, struct instance *);
bool models_ready(struct models *);
/* Generation of the weights that a request would be computed with; of a ticket. */
uint64_t instance_generation(const struct instance *, const esp_ticket *);

/* trace.c, for the loading thread, or where it has ended: writes the last events of all models to the file of
 * --trace, if there is one. False after a message; the file is as it was then. */
enum { TRACE_EVENTS = 65536 };
bool models_trace(const struct models *);

/* For the loading thread. Lists the files to serve, in the order of names; false after a message. */
bool entries_list(const struct options *, struct entry **first);
void entry_free(struct entry *);

/* --- sockets: listen.c, systemd.c --- */

/* What the loop's epoll watches: the first member of what has the descriptor. */
struct watch {
	enum { WATCH_HTTP, WATCH_RESUMED, WATCH_SIGNAL, WATCH_LOADED, WATCH_LISTENER, WATCH_CLIENT } kind;
	int fd;
};

struct listener {
	struct watch watch;
	char *path; /* of a socket to remove in the end; NULL = none */
};

enum { LISTENERS = 32 };

struct listeners {
	struct listener at[LISTENERS];
	int n;
};

/* Opens the sockets that the options name, or takes those that systemd passed, and prints their addresses on
 * stderr; false after a message. */
bool listeners_open(struct listeners *, const struct options *);
void listeners_close(struct listeners *);

/* How many sockets systemd passed, from descriptor SYSTEMD_FIRST on. */
enum { SYSTEMD_FIRST = 3 };
int systemd_sockets(void);
/* Tells systemd, if it started this process, lines NAME=VALUE. */
void systemd_notify(const char *state);

/* --- the access log: access_log.c --- */

struct access_log {
	const char *path; /* NULL = standard output */
	int fd;
	FILE *line; /* in memory: `text` of `size` bytes */
	char *text;
	size_t size;
	bool torn;     /* the last line was cut short */
	uint64_t lost; /* lines that could not be written */
};

struct request;
bool access_log_open(struct access_log *, const char *path);
/* Opens the file again, after it was renamed; when that fails, the old one stays. */
void access_log_reopen(struct access_log *);
void access_log_write(struct access_log *, const struct request *);
void access_log_close(struct access_log *);

/* --- clients and requests --- */

/* A connection, from accept to close. */
struct client {
	struct watch watch;
	char remote[64];	 /* address and port, or "unix" */
	struct request *request; /* that is being received, computed or answered; NULL = none */
	bool gone, late;	 /* it closed its end, perhaps half; it was closed for being silent or slow */
	int64_t since; /* when it began to be silent, to send a body or to read an answer [ns]; 0 = it waits for us */
	struct client **link, *next;
};

/* STATUS_GONE is for the log: the client left before its answer. */
enum { STATUSES = 600, STATUS_GONE = 499, NAME_BYTES = 128 };

struct server {
	const struct options *options;
	struct models models;
	struct listeners listeners;
	struct access_log log;
	struct MHD_Daemon *http;
	struct watch watch_http, watch_resumed, watch_signal, watch_loaded;
	int epoll;
	struct client *clients, *arriving; /* arriving: while the HTTP library is given one */
	uint32_t series;		   /* begins the names of requests */
	size_t connections, requests; /* of requests: those with a struct request */
	size_t body_bytes;	      /* of the bodies that are held */
	bool full;		      /* no further connection is accepted */
	bool told, failed;	      /* that it is ready, or that a model cannot be opened */
	int64_t draining; /* until when requests may end [ns]; 0 = it serves */
	int64_t rest;	  /* accept no connection until then, for lack of descriptors [ns] */
	uint64_t answers[STATUSES], served; /* by status; of all */
	uint64_t timeouts;
};

enum method { METHOD_GET, METHOD_POST };

struct route {
	const char *pattern; /* segments; * stands for the name of a model, then for its version */
	enum method method;
	bool ready;	     /* it needs the model to be ready */
	/* Answers a request whose body is there; may suspend the connection to be called again. */
	enum MHD_Result (*answer)(struct request *);
};

struct request {
	struct server *server;
	struct client *client;
	struct MHD_Connection *connection;
	const struct route *route;
	char *path;
	char method[16], id[65];
	char name[NAME_BYTES + 1], version[24]; /* as the path says; "" = not */
	struct instance *instance;
	char *body;
	size_t bytes, capacity;
	bool excessive;		/* the body is longer than allowed */
	struct infer_request *infer;
	esp_ticket *ticket;
	esp_status submitted; /* of esp_service_submit */
	esp_error *error;     /* of it */
	bool suspended; /* to wait for the ticket; it has ended, or was refused, when it is resumed */
	int status;	   /* of the answer; 0 = there is none yet */
	size_t sent;	   /* bytes of its body */
	size_t nodes;
	uint64_t generation;
	int64_t begin, queued, computed; /* [ns] */
};

/* The answer of a request, which takes a text of malloc or, for NULL, becomes 503 for lack of memory. */
enum MHD_Result answer_text(struct request *, int status, const char *type, char *text, size_t bytes);
enum MHD_Result answer_json(struct request *, int status, char *text, size_t bytes);
/* {"error": MESSAGE} */
__attribute__((format(printf, 3, 4))) enum MHD_Result answer_error(struct request *, int status,
								     const char *format, ...);

/* routes.c: finds the route of a request and its model. False: it was refused, with that result. */
bool route_request(struct request *, enum MHD_Result *);
struct infer_model model_of(const struct request *);
/* metrics.c, compute.c: answers. */
enum MHD_Result answer_metrics(struct request *);
enum MHD_Result answer_infer(struct request *), answer_run(struct request *);

/* loop.c: serves until a signal ends it; returns the exit status. */
int serve_models(const struct options *);

/* http.c: the HTTP library over the loop's sockets. */
bool http_start(struct server *);
/* Gives the HTTP library a connection that was accepted. */
void http_add(struct server *, int fd, const struct sockaddr *, socklen_t);
void http_stop(struct server *);
void request_cancel(struct request *);

#endif
