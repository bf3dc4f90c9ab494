/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: the counters of all services and of HTTP, in the text format of Prometheus. */
#include "serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The counters of one service: families of samples, the same in the same order for each. */
struct page {
	char *text;
	const char *at; /* the next family */
};

struct pages {
	struct page *page;
	size_t n;
};

static const char family[] = "# HELP ";

/* Prometheus wants the samples of a family together: those of each service follow the first one's head. */
static void put_families(FILE *to, struct pages *p)
{
	while (p->n && *p->page[0].at)
		for (size_t i = 0; i < p->n; i++) {
			const char *begin = p->page[i].at;
			const char *next = *begin ? strstr(begin + 1, family) : NULL;
			const char *end = next ? next : begin + strlen(begin);
			for (int line = 0; i && line < 2 && begin < end; line++)
				begin += strcspn(begin, "\n") + 1;
			fwrite(begin, 1, end - begin, to);
			p->page[i].at = end;
		}
}

/* Adds the counters of a model; the lock of the models is held. */
static bool add_page(struct pages *p, const struct entry *e)
{
	char label[NAME_BYTES + 16];
	struct page *grown = realloc(p->page, (p->n + 1) * sizeof *grown);
	if (!grown)
		return false;
	p->page = grown;
	snprintf(label, sizeof label, "model=\"%s\"", e->name);
	if (esp_service_metrics(e->now->service, label, &grown[p->n].text, NULL))
		return false;
	grown[p->n].at = grown[p->n].text;
	p->n++;
	return true;
}

static void put_head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP espalier_%s %s\n# TYPE espalier_%s %s\n", name, help, name, type);
}

static void put_number(FILE *to, const char *name, const char *type, const char *help, uint64_t value)
{
	put_head(to, name, type, help);
	fprintf(to, "espalier_%s %" PRIu64 "\n", name, value);
}

/* Families of the models themselves, and their services'; false without memory. */
static bool put_models(FILE *to, struct models *m)
{
	struct pages pages = {0};
	bool ok = true;
	pthread_mutex_lock(&m->lock);
	put_head(to, "model_ready", "gauge", "Whether a model answers requests.");
	for (const struct entry *e = m->first; e; e = e->next) {
		fprintf(to, "espalier_model_ready{model=\"%s\"} %d\n", e->name, e->now != NULL);
		ok = ok && (!e->now || add_page(&pages, e));
	}
	put_head(to, "loads_total", "counter", "Models that were opened, and weights that were exchanged, by outcome.");
	fprintf(to, "espalier_loads_total{outcome=\"done\"} %" PRIu64 "\n", m->done);
	fprintf(to, "espalier_loads_total{outcome=\"failed\"} %" PRIu64 "\n", m->refused);
	pthread_mutex_unlock(&m->lock);
	put_families(to, &pages);
	for (size_t i = 0; i < pages.n; i++)
		esp_text_free(pages.page[i].text);
	free(pages.page);
	return ok;
}

static void put_http(FILE *to, const struct server *s)
{
	put_head(to, "http_requests_total", "counter",
		 "Requests by the status of their answers; 408: the client was too slow; 499: it had gone.");
	for (int i = 0; i < STATUSES; i++)
		if (s->answers[i])
			fprintf(to, "espalier_http_requests_total{status=\"%d\"} %" PRIu64 "\n", i, s->answers[i]);
	put_number(to, "http_connections", "gauge", "Connections that are open.", s->connections);
	put_number(to, "http_in_flight", "gauge", "Requests that are received, computed or answered.", s->requests);
	put_number(to, "http_body_bytes", "gauge", "Bytes of the bodies that are held.", s->body_bytes);
	put_number(to, "http_timeouts_total", "counter", "Connections that were closed for being silent or slow.",
		   s->timeouts);
	put_number(to, "access_log_lost_total", "counter", "Lines of the access log that could not be written.",
		   s->log.lost);
}

enum MHD_Result answer_metrics(struct request *r)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	bool ok = to && put_models(to, &r->server->models);
	if (to)
		put_http(to, r->server);
	if (to && fclose(to))
		ok = false;
	if (!ok) {
		free(text);
		text = NULL;
	}
	return answer_text(r, 200, "text/plain; version=0.0.4; charset=utf-8", text, bytes);
}
