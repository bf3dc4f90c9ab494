/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Services with more requests than they can take: nobody starves, what is too much is refused, and nothing is
 * computed of what cannot end in time. */
#include "tests/api/serving.h"

/* --- the order --- */

/* Requests of a higher priority come all the time; the other one is ahead of those that come too late. */
static void test_starvation(void)
{
	enum { FLOOD = 16, MOST = 200000 };
	struct place p;
	esp_ticket *flood[FLOOD];
	int passed = 0;
	open_full(
	    &p, &(esp_service_options){
		    .size = sizeof(esp_service_options), .rows = 100, .step_rows = 1, .head_start = 1000000});
	for (int i = 0; i < FLOOD; i++)
		flood[i] = submit(&p, 0, (esp_submit_options){.priority = 5});
	int64_t begin = esp_clock();
	esp_ticket *low = submit(&p, 1, (esp_submit_options){0});
	for (; passed < MOST && esp_ticket_wait(low, 0, NULL) == ESP_ERROR_BUSY; passed++) {
		esp_ticket **t = &flood[passed % FLOOD];
		esp_ticket_wait(*t, INT64_MAX, NULL);
		esp_ticket_free(*t);
		*t = submit(&p, 0, (esp_submit_options){.priority = 5});
	}
	tap_ok(passed >= 1 && passed < MOST && has_bits(&p, low, 1),
	       "one of low priority ended after %d others and %.1f ms", passed,
	       (double)(esp_clock() - begin) / 1e6);
	for (int i = 0; i < FLOOD; i++)
		esp_ticket_free(flood[i]);
	esp_ticket_free(low);
	close_place(&p);
}

static void test_company(void)
{
	struct place p;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .company = 30000000});
	int64_t begin = esp_clock();
	esp_ticket *a = submit(&p, 0, (esp_submit_options){0}), *b = submit(&p, 1, (esp_submit_options){0});
	bool ok = !esp_ticket_wait(a, INT64_MAX, NULL) && !esp_ticket_wait(b, INT64_MAX, NULL);
	tap_ok(ok && has_bits(&p, a, 0) && has_bits(&p, b, 1) && esp_clock() - begin >= 30000000,
	       "a request waits for company as long as it may");
	esp_ticket_free(a);
	esp_ticket_free(b);
	close_place(&p);
}

/* --- too many --- */

static void test_full(void)
{
	struct place p;
	esp_error *error;
	esp_ticket *t;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .requests = 2});
	esp_ticket *a = submit(&p, 0, (esp_submit_options){0}), *b = submit(&p, 1, (esp_submit_options){0});
	esp_status s = esp_service_submit(p.service, p.forest[2], NULL, &t, &error);
	tap_ok(refused(s, ESP_ERROR_BUSY, error, "service-full") && !t && esp_status_is_transient(s),
	       "full at two requests");
	esp_ticket_cancel(a);
	s = esp_ticket_wait(a, INT64_MAX, &error);
	tap_ok(refused(s, ESP_ERROR_CANCELLED, error, "request-cancelled") && !esp_ticket_output(a, 1, 0, 0),
	       "one is cancelled, and has no results");
	esp_ticket *late = submit(&p, 2, (esp_submit_options){.deadline = esp_clock() - 1});
	uint64_t before = count(p.service).nodes;
	s = esp_ticket_wait(late, INT64_MAX, &error);
	tap_ok(refused(s, ESP_ERROR_EXPIRED, error, "request-expired"), "one has expired");
	esp_ticket_wait(b, INT64_MAX, NULL);
	tap_is(count(p.service).nodes - before, esp_forest_nodes(p.forest[1], 0),
	       "and nothing was computed of both");
	esp_ticket_free(a);
	esp_ticket_free(b);
	esp_ticket_free(late);
	close_place(&p);

	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .bytes = 1});
	a = submit(&p, 0, (esp_submit_options){0});
	s = esp_service_submit(p.service, p.forest[1], NULL, &t, &error);
	tap_ok(a && refused(s, ESP_ERROR_BUSY, error, "service-full"), "full by bytes, but for one alone");
	esp_ticket_free(a);
	close_place(&p);
}

/* A chain of so many nodes. */
static esp_forest *make_chain(struct place *p, int nodes)
{
	int32_t *begin = calloc((size_t)nodes + 1, sizeof *begin);
	int32_t *children = calloc((size_t)nodes, sizeof *children);
	int32_t *words = calloc((size_t)nodes, sizeof *words);
	const void *data[] = {words};
	const esp_structure s = {sizeof s, (size_t)nodes, begin, children, nodes - 1, data};
	esp_forest *f;
	for (int n = 0; n < nodes; n++) { /* every second node joins the one before and a leaf */
		bool inner = n && n % 2 == 0;
		if (inner)
			children[begin[n]] = n - 2, children[begin[n] + 1] = n - 1;
		begin[n + 1] = begin[n] + 2 * inner;
	}
	if (esp_forest_create(p->k.program, &f, NULL) || esp_forest_add(f, &s, NULL))
		abort();
	free(begin), free(children), free(words);
	return f;
}

/* Submits it and waits; adds nodes that were computed meanwhile, and returns nanoseconds. */
static int64_t time_chain(struct place *p, const esp_forest *f, int64_t deadline, esp_ticket *company,
			  uint64_t *nodes)
{
	int64_t begin = esp_clock();
	uint64_t before = count(p->service).nodes;
	esp_ticket *t;
	const esp_submit_options o = {.size = sizeof o, .deadline = deadline ? begin + deadline : 0};
	if (esp_service_submit(p->service, f, &o, &t, NULL))
		abort();
	esp_ticket_wait(t, INT64_MAX, NULL);
	int64_t took = esp_clock() - begin;
	esp_ticket_wait(company, INT64_MAX, NULL);
	esp_ticket_free(t);
	*nodes = count(p->service).nodes - before;
	return took;
}

/* A request that cannot end in time beside others is dropped before anything is computed of it; alone it has
 * a chance.  An eighth of the time that it took alone is too little however the speed of the machine changes
 * meanwhile. */
static void test_hopeless(void)
{
	enum { NODES = 20001 };
	struct place p;
	uint64_t nodes;
	esp_ticket *company;
	open_full(&p, &(esp_service_options){.size = sizeof(esp_service_options), .rows = 3 * NODES});
	esp_forest *f = make_chain(&p, NODES);
	int64_t alone = time_chain(&p, f, 0, NULL, &nodes);
	if (esp_service_submit(p.service, f, NULL, &company, NULL))
		abort();
	time_chain(&p, f, alone / 8, company, &nodes);
	tap_is(nodes, NODES, "nothing is computed of what cannot end in time");
	esp_ticket_free(company);
	time_chain(&p, f, alone, NULL, &nodes);
	tap_ok(nodes > 0, "but of what has no company");
	esp_forest_free(f);
	close_place(&p);
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors"};
	write_generations();
	test_starvation();
	test_company();
	test_full();
	test_hopeless();
	remove_folder(names, 2);
	return tap_done();
}
