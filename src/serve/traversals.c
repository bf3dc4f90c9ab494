/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The table of steps as traversals: hoisted steps begin one, so do leaves, and a traversal down.  Without a structure all
 * steps are one. */
#include "serve/engine.h"

static bool refuse_step(const struct image *image, int step, struct diags *diags)
{
	return diag_add(
	    diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0},
	    "compile it with the option 'continuous', and without a schedule that sorts rows or tests nodes",
	    "step '%s' cannot be run for nodes as they become ready",
	    image->kernel_name ? image->kernel_name[image->step[step].kernel] : "");
}

static bool is_ahead(enum image_domain d)
{
	return d == IMAGE_DOMAIN_NODES || d == IMAGE_DOMAIN_PAST_LEAVES;
}

static bool is_recursion(enum image_domain d)
{
	return d == IMAGE_DOMAIN_LEAVES || d == IMAGE_DOMAIN_INNER || d == IMAGE_DOMAIN_BATCH_DOWN;
}

/* Whether a step begins a traversal, behind one of another domain or the first. */
static bool begins_traversal(const struct image *image, int step)
{
	enum image_domain d = image->step[step].domain;
	if (step == image->folds)
		return true;
	enum image_domain before = image->step[step - 1].domain;
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

bool serve_find_traversals(const struct image *image, struct serve_plan_of_steps *s, struct diags *diags)
{
	*s = (struct serve_plan_of_steps){.inputs = image->steps};
	if (rt_has_buffer(image, IMAGE_INPUT_OF))
		return diag_add(diags, DIAG_NOT_CONTINUOUS, (struct diag_at){0}, "run it with sessions",
				"its nodes read all nodes of their input");
	for (int i = image->folds; i < image->steps; i++) {
		enum image_domain d = image->step[i].domain;
		if ((!is_ahead(d) && !is_recursion(d) && d != IMAGE_DOMAIN_INPUTS) || image->step[i].sort)
			return refuse_step(image, i, diags);
		if (d == IMAGE_DOMAIN_INPUTS) {
			s->inputs = i < s->inputs ? i : s->inputs;
			continue;
		}
		if (begins_traversal(image, i) && (has_recursion(image, i) || !s->traversals)) {
			if (s->traversals == SERVE_TRAVERSALS)
				return refuse_step(image, i, diags);
			s->traversal[s->traversals++].first = i;
		}
		if (!s->traversals || s->inputs < i)
			return refuse_step(image, i, diags);
		s->traversal[s->traversals - 1].next = i + 1;
		s->traversal[s->traversals - 1].down |= d == IMAGE_DOMAIN_BATCH_DOWN;
	}
	return by_node(image, diags);
}
