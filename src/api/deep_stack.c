/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Work on models whose operators follow one another in long chains, such as networks of hundreds of layers: passes
 * recurse along them, so they get a stack that is as deep as the model wants. */
#include "api/objects.h"

#include <pthread.h>
#include <signal.h>

/* What an operator of a chain needs at most, of all passes (tests/cli/limits_test.sh); and how many fit the stack that
 * every caller has. */
enum { BYTES_AN_OPERATOR = 2 << 10, SHALLOW = 1000 };

struct guarded {
	struct arena *arena;
	struct diags *diags;
	bool (*work)(void *job);
	void *job;
	bool ok;
};

static void *run_guarded(void *guarded)
{
	struct guarded *g = guarded;
	g->ok = api_guarded(g->arena, g->diags, g->work, g->job);
	return NULL;
}

static bool make_attributes(pthread_attr_t *attributes, size_t stack_bytes)
{
	if (pthread_attr_init(attributes))
		return false;
	if (!pthread_attr_setstacksize(attributes, stack_bytes))
		return true;
	pthread_attr_destroy(attributes);
	return false;
}

/* Runs the work by a thread of its own, which handles no signals of the host; false when there is none to be had. */
static bool run_elsewhere(struct guarded *g, size_t stack_bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (!make_attributes(&attributes, stack_bytes))
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool made = pthread_create(&thread, &attributes, run_guarded, g) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (made)
		pthread_join(thread, NULL);
	return made;
}

bool api_guarded_deep(const struct ra_model *m, struct arena *arena, struct diags *diags, bool (*work)(void *job),
		      void *job)
{
	size_t operators = m ? m->nodes.n : 0;
	struct guarded g = {arena, diags, work, job, false};
	if (operators <= SHALLOW)
		return api_guarded(arena, diags, work, job);
	if (operators > SUB_MAX_DEPTH)
		operators = SUB_MAX_DEPTH;
	if (!run_elsewhere(&g, (operators + SHALLOW) * BYTES_AN_OPERATOR))
		return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
				"no thread with a stack for %zu operators could be made", operators);
	return g.ok;
}
