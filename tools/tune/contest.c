/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Times two programs of one model, alternately over the same minibatches. */
#include "tune/tune.h"

#include <math.h>
#include <string.h>

enum {
	LEAST_RUNS = 6,
	MOST_RUNS = 200,
	GROUP = 4 /* runs in a row, of short ones; before the first, the caches hold the other program's weights */
};

static const double far_behind = 2; /* how many times as long the one may take that one group is enough to give up */

/* --- results --- */

static bool same_row(const void *a, const void *b, size_t bytes)
{
	return (!a && !b) || (a && b && memcmp(a, b, bytes) == 0);
}

static bool same_node(const struct subject *a, const struct subject *b, size_t structure, size_t node)
{
	const esp_output *output;
	const esp_state *state;
	for (size_t i = 0; (output = esp_program_output(a->objects.program, i)); i++)
		if (!same_row(esp_session_output_elements(a->session, i, structure, node),
			      esp_session_output_elements(b->session, i, structure, node),
			      output->elements * esp_dtype_size(output->dtype)))
			return false;
	for (size_t i = 0; (state = esp_program_state(a->objects.program, i)); i++)
		if (!same_row(esp_session_state_elements(a->session, i, structure, node),
			      esp_session_state_elements(b->session, i, structure, node),
			      state->elements * esp_dtype_size(state->dtype)))
			return false;
	return true;
}

static bool same_results(const struct subject *a, const struct subject *b)
{
	for (size_t i = 0; i < esp_forest_structures(a->forest); i++)
		for (size_t node = 0; node < esp_forest_nodes(a->forest, i); node++)
			if (!same_node(a, b, i, node))
				return false;
	return true;
}

/* --- times --- */

struct sides {
	struct subject *subject[2];
	struct stretches least[2];
};

static int fill_sides(const struct contest *c, struct sides *s, size_t minibatch, double *seconds)
{
	int status = 0;
	struct timing t = {0};
	*seconds = INFINITY;
	for (int i = 0; i < 2 && !status; i++) {
		status = subject_fill(s->subject[i], minibatch * c->batch, c->batch);
		if (!status)
			status = subject_run(s->subject[i], &t);
		*seconds = fmin(*seconds, t.whole);
	}
	return status;
}

static bool is_hopeless(const struct contest *c, const struct sides *s, long groups)
{
	double ratio = groups < 2 ? far_behind : c->hopeless;
	return groups > 0 && stretches_sum(&s->least[1]) > ratio * stretches_sum(&s->least[0]);
}

/* Runs both programs alternately; each begins equally often. */
static int alternate_runs(const struct contest *c, struct sides *s, double seconds)
{
	int status = 0;
	double wanted = c->seconds / (double)c->minibatches / seconds;
	long runs = (long)fmax(LEAST_RUNS, fmin(MOST_RUNS, wanted)), group = (long)fmax(1, fmin(GROUP, wanted / 2));
	for (long n = 0; n * group < runs && !status && !is_hopeless(c, s, n); n++)
		for (int i = 0; i < 2 && !status; i++) {
			int side = i ^ (n & 1);
			status = subject_stretches(s->subject[side], group, &s->least[side]);
		}
	return status;
}

static int run_minibatch(const struct contest *c, struct sides *s, size_t minibatch, struct outcome *o)
{
	double seconds;
	int status = fill_sides(c, s, minibatch, &seconds);
	if (!status && !c->any_bits && !same_results(s->subject[0], s->subject[1]))
		o->differs = true;
	if (!status && !o->differs)
		status = alternate_runs(c, s, seconds);
	o->holder += stretches_sum(&s->least[0]);
	o->challenger += stretches_sum(&s->least[1]);
	stretches_free(&s->least[0]);
	stretches_free(&s->least[1]);
	return status;
}

static int run_here(const struct contest *c, struct sides *s, struct outcome *o)
{
	int status = 0;
	*o = (struct outcome){0};
	for (size_t i = 0; i < c->minibatches && !status && !o->differs; i++) {
		status = run_minibatch(c, s, i, o);
		if (o->challenger > c->hopeless * o->holder)
			break;
	}
	return status;
}

static int move_sides(struct sides *s)
{
	int status = subject_move(s->subject[0]);
	return status ? status : subject_move(s->subject[1]);
}

int contest_run(const struct contest *c, struct subject *holder, struct subject *challenger,
		struct outcome *o)
{
	struct sides s = {{holder, challenger}, {{0}}};
	int status = run_here(c, &s, o);
	for (int i = 1; i < c->places && !status && !o->differs; i++) {
		struct outcome here = {0};
		status = move_sides(&s);
		if (!status)
			status = run_here(c, &s, &here);
		if (!status) {
			o->holder = fmin(o->holder, here.holder);
			o->challenger = fmin(o->challenger, here.challenger);
		}
	}
	return status;
}

/* --- where the time goes --- */

/* Whether a kernel belongs to a group. A kernel is named after its group, with a number appended when the
 * group has several; the only group of a body may be named after the body. */
static bool is_of(const char *kernel, const char *group)
{
	size_t k = strlen(kernel), n = strlen(group), same = k < n ? k : n;
	if (strncmp(kernel, group, same) != 0 || (k > n && kernel[n] != '.') || (k < n && group[k] != '.'))
		return false;
	return k >= n || strspn(group + k + 1, "0123456789") == n - k - 1;
}

static struct kernels kernels_of(const esp_profile *p, const char *group)
{
	const esp_event *e;
	struct kernels k = {0};
	double all = 0, own = 0;
	for (size_t i = 0; (e = esp_profile_event(p, i)); i++) {
		if (e->kind != ESP_EVENT_KERNEL)
			continue;
		all += e->stop - e->start;
		if (!is_of(esp_profile_step(p, e->step)->name, group))
			continue;
		own += e->stop - e->start;
		k.rows = e->rows > k.rows ? e->rows : k.rows;
	}
	k.share = all > 0 ? own / all : 0;
	return k;
}

int contest_kernels(const struct contest *c, struct subject *s, const char *group, struct kernels *k)
{
	esp_error *error;
	struct timing t;
	int status = subject_fill(s, 0, c->batch);
	esp_status recorded = status ? ESP_OK : esp_session_record(s->session, 1, &error);
	if (recorded)
		return report_failure(recorded, error);
	for (int i = 0; i < 2 && !status; i++)
		status = subject_run(s, &t);
	const esp_profile *p = status ? NULL : esp_session_profile(s->session);
	*k = p ? kernels_of(p, group) : (struct kernels){0};
	esp_session_record(s->session, 0, NULL);
	return status;
}
