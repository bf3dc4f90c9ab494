/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* infer.h - bodies of the requests and responses of `espalier serve` (doc/serving.md).
 *
 * A body becomes a forest to submit, and a ticket that has ended becomes a body: in JSON as the Open
 * Inference Protocol (version 2, REST) says, or as text for people.  Nothing here knows HTTP but for status
 * codes, and nothing is shared between requests: any number of threads may parse and write, each its own.
 *
 * Bodies are untrusted.  Whatever they hold, they are read without recursion, and memory is taken in
 * proportion to their bytes. */
#ifndef ESPALIER_TOOLS_SERVE_INFER_H
#define ESPALIER_TOOLS_SERVE_INFER_H

#include "espalier_service.h"

#include <stdbool.h>

/* What a request is checked against.  The caller's; a request keeps the program, and only that. */
struct infer_model {
	const char *name;
	esp_context *context;
	esp_program *program;
	/* How texts are read: vocabularies, columns, how brackets are changed.  NULL = numbers are the only
	 * tokens. */
	const esp_treebank_options *reading;
	/* Made of an ONNX graph: its tensors have the shapes and the names of the graph, and none describes
	 * structures. */
	bool arrays;
};

/* The most that a request may hold. */
struct infer_limits {
	size_t bytes; /* of a body; 0 = 64 MiB */
	size_t nodes; /* of all structures together; 0 = 2^20 */
	size_t depth; /* of brackets in each other; 0 = 10000 */
};

/* Why a body was refused: the status of HTTP for the response, and a text in UTF-8 that says what is wrong,
 * where, and what to do. */
struct infer_failure {
	int status; /* 400, 413 (a limit), 415 (type of the body), 500, 503 (no memory), 504 (deadline) */
	char message[1000];
};

/* A request that was read.  Owns all of its memory, the forest among it, and needs neither the body nor the
 * model's texts afterwards. */
struct infer_request;

/* Reads the body of POST v2/models/NAME/infer.  NULL after a failure: a body that is no request, tensors that
 * do not fit each other or the model, a limit, no memory.  Arity and cycles are not looked at: the ticket
 * fails for them.  `limits` may be NULL. A deadline counts from this call.  `type` is the Content-Type, or NULL:
 * that of JSON, or of forms, which curl says when it is told none. */
struct infer_request *infer_parse(const struct infer_model *, const struct infer_limits *, const char *type,
				  const char *body, size_t bytes, struct infer_failure *);
/* Reads the body of POST v1/run: structures as texts (doc/structures.md).  They are JSON for application/json,
 * application/jsonl and application/x-ndjson; for text/..., application/x-www-form-urlencoded and no type,
 * whatever the first bytes show. */
struct infer_request *infer_parse_text(const struct infer_model *, const struct infer_limits *,
				       const char *type, const char *body, size_t bytes,
				       struct infer_failure *);
/* NULL is legal.  The forest goes with it: allowed at any time, as esp_service_submit says. */
void infer_free(struct infer_request *);

/* The structures; belongs to the request. */
const esp_forest *infer_forest(const struct infer_request *);
/* How to submit them: size, priority and deadline are set, the rest is zero. */
esp_submit_options infer_options(const struct infer_request *);
/* Nodes of all structures. */
size_t infer_nodes(const struct infer_request *);

/* Writes the response to a request whose ticket has ended with results, as a text for free(), with a NUL
 * behind its *bytes; NULL without memory.  `name` and `generation` are those of the model; infer_type says
 * the Content-Type. */
char *infer_write(const struct infer_request *, const esp_ticket *, const char *name, uint64_t generation,
		  size_t *bytes);
const char *infer_type(const struct infer_request *);

/* The failure that a status of the library comes to; `error` may be NULL, and remains the caller's. */
struct infer_failure infer_failure_of(esp_status, const esp_error *error);
/* {"error": MESSAGE}, as infer_write. */
char *infer_write_error(const char *message, size_t *bytes);

/* The bodies of GET v2 and GET v2/models/NAME, as infer_write.  `generation` is that of the weights, and the
 * version. */
char *infer_describe_server(size_t *bytes);
char *infer_describe_model(const struct infer_model *, uint64_t generation, size_t *bytes);

#endif
