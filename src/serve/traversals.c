/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of steps as traversals: hoisted steps begin one, so do leaves, a traversal down, and what reads
 * all nodes of an input.  Without a structure all other steps are one. */
#include "serve/engine.h"

static bool refuse_step(const struct image *image, int step, struct diags *diags)
{
	return diag_add(
	    diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0},
	    "compile it with the option 'continuous', and without a schedule that sorts rows or tests nodes",
	    "step '%s' cannot be run for nodes as they become ready",
	    image_step_name(image, step));
}

static bool is_ahead(enum image_domain d)
{
	return d == IMAGE_DOMAIN_NODES || d == IMAGE_DOMAIN_PAST_LEAVES;
}

/* Whether a row depends on no other: the steps of a scan follow each other inside of each row. */
static bool is_of_rows(enum image_domain d)
{
	return d == IMAGE_DOMAIN_NODES || d == IMAGE_DOMAIN_SCAN;
}

static bool is_recursion(enum image_domain d)
{
	return d == IMAGE_DOMAIN_LEAVES || d == IMAGE_DOMAIN_INNER || d == IMAGE_DOMAIN_BATCH_DOWN;
}

/* Whether a step begins another traversal than the one before it by its domain. */
static bool changes_traversal(const struct image *image, int step)
{
	enum image_domain d = image->step[step].domain, before = image->step[step - 1].domain;
	if (is_ahead(d) || d == IMAGE_DOMAIN_LEAVES || d == IMAGE_DOMAIN_BATCH_DOWN)
		return d != before && !is_ahead(before);
	return false;
}

/* Whether a recursion follows, behind steps ahead of it. */
static bool has_recursion(const struct image *image, int step)
{
	while (step < image->steps && is_ahead(image->step[step].domain))
		step++;
	return step < image->steps && is_recursion(image->step[step].domain);
}

static bool add_traversal(struct serve_plan_of_steps *s, int first, bool reads_nodes, struct diags *diags)
{
	if (s->traversals == SERVE_TRAVERSALS)
		return diag_add(diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0}, "run it with sessions",
				"it has more than %d traversals", SERVE_TRAVERSALS);
	s->traversal[s->traversals++] =
	    (struct serve_traversal){.first = first, .next = first, .flat = true, .reads_nodes = reads_nodes};
	return true;
}

/* Puts a step into the last traversal. */
static void add_step(struct serve_plan_of_steps *s, const struct image *image, int step)
{
	struct serve_traversal *t = &s->traversal[s->traversals - 1];
	t->next = step + 1;
	t->down |= image->step[step].domain == IMAGE_DOMAIN_BATCH_DOWN;
	t->flat &= is_of_rows(image->step[step].domain) && !image->step[step].cases;
}

/* Nodes that read what all nodes of their input carry need these to have rows: a traversal of no steps gives
 * them. */
static bool begin_traversals(struct serve_plan_of_steps *s, const struct image *image, struct diags *diags)
{
	*s = (struct serve_plan_of_steps){.inputs = image->steps};
	bool reads = image->folds < image->steps && image->step[image->folds].apart;
	return !reads || add_traversal(s, image->folds, false, diags);
}

static bool begins_traversal(const struct serve_plan_of_steps *s, const struct image *image, int step)
{
	return !s->traversals || image->step[step].apart ||
	       (step > image->folds && changes_traversal(image, step) && has_recursion(image, step));
}

static bool by_node(const struct image *image, struct diags *diags)
{
	for (int i = 0; i < image->states; i++)
		if (image->state[i].layout != IMAGE_BY_NODE)
			return diag_add(
			    diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0},
			    "compile it with the option 'continuous', and without 'layout' for the state",
			    "the rows of state '%s' stand by parent", image->state[i].name);
	for (int i = 0; i < image->buffers; i++)
		if (image->buffer[i].table)
			return diag_add(
			    diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0},
			    "compile it with the option 'continuous', and without 'leaves' for the state",
			    "state '%s' of leaves is read in a table", image->buffer[i].name);
		else if (image->buffer[i].kind == IMAGE_GIVEN)
			return diag_add(
			    diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0},
			    "compile it with the option 'continuous', and without 'vectors' for the input",
			    "rows of '%s' are read where the caller has them", image->buffer[i].name);
	return true;
}

/* Operations of a node, such that those of a level of 64 requests take about a microsecond: a superstep takes longer
 * besides its cells, for which it fills arrays and goes through all requests. */
enum { BRIEF_OPERATIONS = 64 };

/* Whether a level of a traversal costs less than a superstep does besides: what is ahead of the recursion is not
 * computed level by level. */
static bool is_brief(const struct image *image, const struct serve_traversal *t)
{
	int64_t operations = 0;
	for (int i = t->first; i < t->next; i++)
		operations += is_recursion(image->step[i].domain) ? image->step[i].operations : 0;
	return !t->flat && !t->reads_nodes && operations <= BRIEF_OPERATIONS;
}

/* Requests have rows for their nodes, and nothing that makes several of one. */
static bool refuse_stack(const struct image *image, struct diags *diags)
{
	return diag_add(diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0}, "compile it with the option 'continuous'",
			"each row is a stack of %lld instances, which were made rows", (long long)image_stack(image));
}

bool serve_find_traversals(const struct image *image, struct serve_plan_of_steps *s, struct diags *diags)
{
	if (image_stack(image) > 1)
		return refuse_stack(image, diags);
	if (!begin_traversals(s, image, diags))
		return false;
	for (int i = image->folds; i < image->steps; i++) {
		enum image_domain d = image->step[i].domain;
		if ((!is_ahead(d) && !is_of_rows(d) && !is_recursion(d) && d != IMAGE_DOMAIN_INPUTS) || image->step[i].sort)
			return refuse_step(image, i, diags);
		if (d == IMAGE_DOMAIN_INPUTS) {
			s->inputs = i < s->inputs ? i : s->inputs;
			continue;
		}
		if (s->inputs < i)
			return refuse_step(image, i, diags);
		if (begins_traversal(s, image, i) && !add_traversal(s, i, image->step[i].apart, diags))
			return false;
		add_step(s, image, i);
	}
	for (int t = 0; t < s->traversals; t++)
		s->traversal[t].brief = is_brief(image, &s->traversal[t]);
	return by_node(image, diags);
}
