/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Names of what the compiler makes.  A model may use any of them, and in a schedule's text or a dump each
 * name must have one meaning. */
#include "subop/subop.h"

static bool is_body(const struct sub_program *p, const char *name)
{
	for (size_t i = 0; i < p->bodies.n; i++)
		if (strcmp(p->bodies.at[i].name, name) == 0)
			return true;
	return false;
}

static bool is_case(const struct sub_program *p, const char *name)
{
	for (size_t i = 0; i < p->cases.n; i++)
		if (strcmp(p->cases.at[i].name, name) == 0)
			return true;
	return false;
}

/* Whether a state or a parameter has this name. */
static bool is_tensor(const struct sub_program *p, const char *name)
{
	for (size_t i = 0; i < p->states.n; i++)
		if (strcmp(p->states.at[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < p->params.n; i++)
		if (strcmp(p->params.at[i].name, name) == 0)
			return true;
	return false;
}

static bool is_taken(const struct sub_program *p, unsigned kinds, const char *name)
{
	return (kinds & SUB_NAME_BODY && is_body(p, name)) || (kinds & SUB_NAME_CASE && is_case(p, name)) ||
	       (kinds & SUB_NAME_TENSOR && is_tensor(p, name));
}

const char *sub_find_free_name(const struct sub_program *p, unsigned kinds, const char *name)
{
	const char *free = name;
	for (int suffix = 1; is_taken(p, kinds, free); suffix++) {
		struct str s = str_in(p->arena);
		str_printf(&s, "%s_%d", name, suffix);
		free = str_text(&s);
	}
	return free;
}
