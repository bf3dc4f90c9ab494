/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What services and streams share: requests of both become tickets in one way. */
#ifndef ESPALIER_API_SUBMIT_H
#define ESPALIER_API_SUBMIT_H

#include "api/espalier_service.h"
#include "api/objects.h"
#include "serve/queue.h"

struct esp_service {
	struct object object;
	esp_binding *binding;
	struct serve_service *queue;
};

/* A request: the ticket adds a use to the objects that it names. */
struct submission {
	esp_service *service;
	const esp_forest *forest;
	struct packed *weights;
	void *stream; /* an object; NULL = it is of no stream */
	struct serve_carry *carry;
	int32_t first; /* the node that is number 0 for the caller */
};

/* Submits it with options that are complete; NULL after a diagnostic. */
esp_ticket *ticket_submit(const struct submission *, const esp_submit_options *, struct diags *);
/* Copies the options, which may be NULL, and checks them for the call of a function. */
bool submit_read_options(const esp_submit_options *from, esp_submit_options *to, const char *function,
			 struct diags *);

#endif
