/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The working memory of runs.  One whose results are held is not taken for another run, so that a view of a
 * result never changes; it comes back when the last view of it is gone.  The interpreter's lock guards the
 * list. */
#include "native.h"

enum { IDLE = 16 }; /* kept for later at most */

void free_runner(struct runner *r)
{
	esp_session_free(r->session);
	esp_forest_free(r->forest);
	flat_free(&r->flat);
	PyMem_Free(r);
}

struct runner *new_request(struct py_program *p)
{
	struct runner *r = PyMem_Calloc(1, sizeof *r);
	esp_error *error = NULL;
	if (!r)
		return (void *)PyErr_NoMemory();
	esp_status status =
	    flat_init(&r->flat, p->inputs) ? esp_forest_create(p->at, &r->forest, &error) : ESP_OK;
	if (r->forest)
		return r;
	free_runner(r);
	return status ? (void *)raise_error(status, error) : NULL;
}

static struct runner *new_runner(struct py_program *p)
{
	struct runner *r = new_request(p);
	esp_error *error = NULL;
	esp_status status = r ? esp_session_create(p->binding, &r->session, &error) : ESP_OK;
	if (!status)
		return r;
	free_runner(r);
	return (void *)raise_error(status, error);
}

struct runner *take_runner(struct py_program *p)
{
	struct runner *r = p->idle;
	if (!r)
		return new_runner(p);
	p->idle = r->next;
	p->idle_count--;
	esp_forest_clear(r->forest);
	return r;
}

void give_runner_back(struct py_program *p, struct runner *r)
{
	if (p->idle_count == IDLE) {
		free_runner(r);
		return;
	}
	r->next = p->idle;
	p->idle = r;
	p->idle_count++;
}

void free_runners(struct py_program *p)
{
	while (p->idle) {
		struct runner *r = p->idle;
		p->idle = r->next;
		free_runner(r);
	}
	p->idle_count = 0;
}
