/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The loading thread: opens models, exchanges weights, and frees what no request uses any more. */
#include "serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

/* --- instances --- */

static void instance_free(struct instance *i)
{
	if (!i)
		return;
	esp_service_free(i->service);
	esp_binding_free(i->binding);
	i->objects.context = NULL; /* that of all models */
	objects_close(&i->objects);
	free(i->name);
	free(i);
}

/* A program that was compiled already has options of its own. */
static struct options options_of(const struct models *m, const struct entry *e)
{
	struct options o = *m->options;
	o.weights = e->weights;
	o.vocab = e->vocab;
	o.continuous = origin_of(e->path) != ORIGIN_PROGRAM;
	return o;
}

static bool bind_instance(struct instance *i, const struct models *m)
{
	esp_error *error = NULL;
	esp_service_options limits = {
	    .size = sizeof limits, .requests = m->options->requests, .rows = m->options->service_rows};
	esp_status status = esp_binding_create(i->objects.program, i->objects.weights, &i->binding, &error);
	/* All kernels, so that the cache has the program whatever ends this process. */
	if (!status)
		status = esp_program_prepare(i->objects.program, &error);
	if (!status)
		status = esp_service_create(i->binding, &limits, &i->service, &error);
	if (!status && m->options->trace)
		status = esp_service_record(i->service, TRACE_EVENTS, &error);
	if (status)
		report_failure(status, error);
	return !status;
}

/* False after a message. */
static bool fill_instance(struct instance *i, const struct models *m, const struct entry *e,
			  const struct options *o)
{
	if (!e->weights && o->continuous && !is_graph(e->path))
		return complain(
		    "%s: weights are missing: put them beside it, as %s.safetensors, or give --weights FILE",
		    e->path, e->name);
	if (!objects_open_in(&i->objects, o, e->path, place_of(o), m->context))
		return false;
	if (!i->objects.weights && !esp_program_has_weights(i->objects.program))
		return complain("%s has no weights in it: put them beside it, as %s.safetensors", e->path,
				e->name);
	i->arrays = is_graph(e->path);
	i->separate = e->weights != NULL;
	return bind_instance(i, m);
}

/* Opens a model whole: it is ready then. NULL after a message. */
static struct instance *open_instance(const struct models *m, const struct entry *e)
{
	struct options o = options_of(m, e);
	struct decisions decisions = {0};
	struct instance *i = calloc(1, sizeof *i);
	bool named = i && (i->name = strdup(e->name)) != NULL;
	bool ok = named ? decisions_open(&decisions, &o, m->first, e->name) && fill_instance(i, m, e, &o)
			: complain("no memory for model %s", e->name);
	decisions_close(&decisions);
	if (ok)
		return i;
	instance_free(i);
	return NULL;
}

/* Exchanges the weights: requests that were submitted keep the old ones. After a failure all do. */
static bool swap_weights(const struct models *m, const struct entry *e)
{
	esp_error *error = NULL;
	esp_weights *weights = NULL;
	esp_status status = esp_weights_open(m->context, e->weights, &weights, &error);
	if (!status)
		status = esp_binding_swap(e->now->binding, weights, &error);
	if (!status) {
		esp_weights_free(e->now->objects.weights);
		e->now->objects.weights = weights;
		return true;
	}
	report_failure(status, error);
	esp_weights_free(weights);
	return false;
}

/* --- the registry: with its lock held --- */

static void retire(struct models *m, struct instance *i)
{
	if (!i)
		return;
	i->users--;
	i->next = m->retired;
	m->retired = i;
}

/* Frees what was replaced or removed and has no user; without the lock meanwhile. */
static void free_retired(struct models *m)
{
	struct instance **at = &m->retired;
	while (*at) {
		struct instance *i = *at;
		if (i->users) {
			at = &i->next;
			continue;
		}
		*at = i->next;
		pthread_mutex_unlock(&m->lock);
		instance_free(i);
		pthread_mutex_lock(&m->lock);
		at = &m->retired;
	}
}

static struct entry *find_name(struct entry *e, const char *name)
{
	while (e && strcmp(e->name, name) != 0)
		e = e->next;
	return e;
}

/* Replaces the list of models: those that stay keep their instances. */
static void replace_list(struct models *m, struct entry *fresh)
{
	struct entry *next;
	pthread_mutex_lock(&m->lock);
	for (struct entry *e = m->first; e; e = next) {
		struct entry *same = find_name(fresh, e->name);
		next = e->next;
		if (same) {
			same->now = e->now;
			same->model_open = e->model_open;
			same->weights_open = e->weights_open;
		} else {
			retire(m, e->now);
		}
		entry_free(e);
	}
	m->first = fresh;
	pthread_mutex_unlock(&m->lock);
}

static void replace_instance(struct models *m, struct entry *e, struct instance *i)
{
	pthread_mutex_lock(&m->lock);
	i->users = 1;
	if (e->now)
		i->before = instance_generation(e->now, NULL);
	retire(m, e->now);
	e->now = i;
	e->model_open = e->model_stamp;
	e->weights_open = e->weights_stamp;
	pthread_mutex_unlock(&m->lock);
}

static void count_reload(struct models *m, const struct entry *e, bool done)
{
	pthread_mutex_lock(&m->lock);
	m->done += done;
	m->refused += !done;
	if (!m->opened && e->named && !done)
		m->failed = true;
	pthread_mutex_unlock(&m->lock);
	if (done)
		fprintf(stderr, "espalier: model %s: weights of generation %llu\n", e->name,
			(unsigned long long)instance_generation(e->now, NULL));
	else
		complain("model %s %s", e->name, e->now ? "stays as it was" : "is not served");
}

/* Brings one model up to date with its files. */
static void refresh_entry(struct models *m, struct entry *e)
{
	bool same = e->now && e->model_open == e->model_stamp && (e->weights != NULL) == e->now->separate;
	if (same && e->weights_open == e->weights_stamp)
		return;
	if (same) {
		bool done = swap_weights(m, e);
		e->weights_open = done ? e->weights_stamp : e->weights_open;
		count_reload(m, e, done);
		return;
	}
	struct instance *i = open_instance(m, e);
	if (i)
		replace_instance(m, e, i);
	count_reload(m, e, i != NULL);
}

static void refresh(struct models *m)
{
	struct entry *fresh;
	if (m->opened)
		models_trace(m);
	bool listed = entries_list(m->options, &fresh);
	if (listed)
		replace_list(m, fresh);
	for (struct entry *e = m->first; listed && e && !m->stop && !m->failed; e = e->next)
		refresh_entry(m, e);
	pthread_mutex_lock(&m->lock);
	m->failed |= !listed && !m->opened;
	m->refused += !listed;
	m->opened = true;
	pthread_mutex_unlock(&m->lock);
	eventfd_write(m->loaded, 1);
}

static void *load_models(void *models)
{
	struct models *m = models;
	pthread_mutex_lock(&m->lock);
	while (!m->stop) {
		free_retired(m);
		if (m->reload) {
			m->reload = false;
			pthread_mutex_unlock(&m->lock);
			refresh(m);
			pthread_mutex_lock(&m->lock);
		} else if (!m->stop) {
			pthread_cond_wait(&m->changed, &m->lock);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

/* --- start and end --- */

static int is_stopped(void *models)
{
	return ((struct models *)models)->stop;
}

bool models_start(struct models *m, const struct options *o, int loaded)
{
	esp_error *error = NULL;
	*m = (struct models){.options = o, .loaded = loaded, .reload = true};
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->changed, NULL);
	esp_status status = create_context(o, is_stopped, m, &m->context, &error);
	if (status)
		return report_failure(status, error) == 0;
	if (!models_trace(m))
		return false;
	m->started = pthread_create(&m->thread, NULL, load_models, m) == 0;
	return m->started || complain("cannot make a thread");
}

void models_reload(struct models *m)
{
	pthread_mutex_lock(&m->lock);
	m->reload = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* Whether the thread has ended, within a second: one that waits for a file system cannot be told to. */
static bool join_thread(const struct models *m)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return !m->started || pthread_timedjoin_np(m->thread, NULL, &until) == 0;
}

bool models_stop(struct models *m)
{
	if (!m->options)
		return true;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_signal(&m->changed);
	pthread_mutex_unlock(&m->lock);
	if (!join_thread(m))
		return false;
	if (m->started)
		models_trace(m);
	replace_list(m, NULL);
	pthread_mutex_lock(&m->lock);
	free_retired(m);
	pthread_mutex_unlock(&m->lock);
	esp_context_free(m->context);
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	return true;
}
