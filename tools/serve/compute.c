/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Requests that are computed. While a ticket is in flight its connection is suspended and takes no thread;
 * the service's thread resumes it. */
#include "serve.h"

#include <sys/eventfd.h>

/* Called by the service's thread. From the first call on the request is the main thread's again, which may
 * end it at once; the library does not wake a loop that is not its own. */
static void resume_request(void *request, esp_ticket *ticket)
{
	const struct request *r = request;
	const int resumed = r->server->watch_resumed.fd;
	(void)ticket;
	MHD_resume_connection(r->connection);
	eventfd_write(resumed, 1);
}

/* The connection is suspended first: the ticket may have ended before the submission returns. */
static enum MHD_Result submit_request(struct request *r)
{
	esp_submit_options o = infer_options(r->infer);
	o.done = resume_request;
	o.user = r;
	r->nodes = infer_nodes(r->infer);
	r->suspended = true;
	MHD_suspend_connection(r->connection);
	r->submitted =
	    esp_service_submit(r->instance->service, infer_forest(r->infer), &o, &r->ticket, &r->error);
	if (r->submitted)
		resume_request(r, NULL);
	else if (r->client->gone)
		esp_ticket_cancel(r->ticket);
	return MHD_YES;
}

static enum MHD_Result answer_failure(struct request *r, esp_status status)
{
	if (status == ESP_ERROR_CANCELLED)
		return r->client->gone ? answer_error(r, STATUS_GONE, "the client has gone")
				       : answer_error(r, 503, "the server ends");
	const struct infer_failure f = infer_failure_of(status, r->error);
	return answer_error(r, status == ESP_ERROR_BUSY ? 429 : f.status, "%s", f.message);
}

static int64_t time_between(const esp_ticket *t, int begin, int end)
{
	return esp_ticket_time(t, end) - esp_ticket_time(t, begin);
}

static enum MHD_Result answer_ticket(struct request *r)
{
	size_t bytes = 0;
	esp_status status = r->submitted ? r->submitted : esp_ticket_wait(r->ticket, 0, &r->error);
	if (status)
		return answer_failure(r, status);
	r->generation = instance_generation(r->instance, r->ticket);
	r->queued = time_between(r->ticket, ESP_TICKET_SUBMITTED, ESP_TICKET_JOINED);
	r->computed = time_between(r->ticket, ESP_TICKET_JOINED, ESP_TICKET_ENDED);
	char *text = infer_write(r->infer, r->ticket, r->instance->name, r->generation, &bytes);
	return answer_text(r, 200, infer_type(r->infer), text, bytes);
}

typedef struct infer_request *read_body(const struct infer_model *, const struct infer_limits *,
					const char *type, const char *body, size_t bytes,
					struct infer_failure *);

static enum MHD_Result answer_body(struct request *r, read_body *read)
{
	const struct infer_model model = model_of(r);
	const struct infer_limits limits = {.bytes = r->server->options->body_bytes};
	const char *type = MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, "Content-Type");
	struct infer_failure failure;
	r->infer = read(&model, &limits, type, r->body ? r->body : "", r->bytes, &failure);
	return r->infer ? submit_request(r) : answer_error(r, failure.status, "%s", failure.message);
}

enum MHD_Result answer_infer(struct request *r)
{
	return r->suspended ? answer_ticket(r) : answer_body(r, infer_parse);
}

enum MHD_Result answer_run(struct request *r)
{
	return r->suspended ? answer_ticket(r) : answer_body(r, infer_parse_text);
}
