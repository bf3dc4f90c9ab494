/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A reference may hold intermediate results of bodies, under the names of their locals. To compare them, the
 * model is replaced by one in which these locals are states; bodies without the local have no rows of it.
 *
 * A tensor is named like the local or, where several traversals have a local of that name, with the number
 * of the traversal after a dot: 'a.2' is the one of the second. */
#include "compare/compare.h"

#include <stdlib.h>
#include <string.h>

struct kept {
	const char *tensor; /* of the reference */
	char *state;	    /* the state that keeps it */
	const char *shape;
};

struct locals {
	struct kept *kept;
	size_t *local; /* indices of locals of the model, one for each of `kept` */
	size_t n;
};

/* --- names --- */

static bool is_declared(const struct comparison *c, const char *name)
{
	const esp_program *p = c->objects.program;
	for (size_t i = 0; i < esp_program_states(p); i++)
		if (strcmp(esp_program_state(p, i)->name, name) == 0)
			return true;
	for (size_t i = 0; i < esp_program_outputs(p); i++)
		if (strcmp(esp_program_output(p, i)->name, name) == 0)
			return true;
	return false;
}

static bool is_in_others(const esp_model *m, const esp_local *l)
{
	const esp_local *other;
	for (size_t i = 0; (other = esp_model_local(m, i)); i++)
		if (other->traversal != l->traversal && strcmp(other->name, l->name) == 0)
			return true;
	return false;
}

/* Whether a tensor's name means the local. */
static bool names_local(const esp_model *m, const char *tensor, const esp_local *l)
{
	size_t n = strlen(l->name);
	char number[32];
	if (strcmp(tensor, l->name) == 0)
		return !is_in_others(m, l);
	snprintf(number, sizeof number, ".%zu", l->traversal + 1);
	return strncmp(tensor, l->name, n) == 0 && strcmp(tensor + n, number) == 0;
}

static const char *find_tensor(const struct comparison *c, const esp_local *l)
{
	for (size_t i = 0; i < c->reference.tensors; i++) {
		const char *name = c->reference.tensor[i].name;
		if (names_local(c->objects.model, name, l) && !is_declared(c, name))
			return name;
	}
	return NULL;
}

/* --- states that keep locals --- */

/* Names the state that keeps a local. Bodies in which the local has the same shape share one. */
static char *name_state(const struct locals *k, const char *tensor, const esp_local *l, size_t number)
{
	char *name = NULL;
	bool taken = false;
	for (size_t i = 0; i < k->n; i++) {
		if (k->kept[i].tensor != tensor)
			continue;
		if (strcmp(k->kept[i].shape, l->shape) == 0)
			return strdup(k->kept[i].state);
		taken = true;
	}
	if (!taken)
		return strdup(tensor);
	return asprintf(&name, "%s.%zu", tensor, number) < 0 ? NULL : name;
}

static bool add_local(const struct comparison *c, struct locals *k, size_t number)
{
	const esp_local *l = esp_model_local(c->objects.model, number);
	const char *tensor = find_tensor(c, l);
	if (!tensor)
		return true;
	char *state = name_state(k, tensor, l, number);
	if (!state)
		return complain("no memory for the locals of the model");
	k->local[k->n] = number;
	k->kept[k->n++] = (struct kept){tensor, state, l->shape};
	return true;
}

static bool find_locals(struct comparison *c)
{
	struct locals *k = c->locals = calloc(1, sizeof *k);
	size_t all = 0;
	while (esp_model_local(c->objects.model, all))
		all++;
	if (k) {
		k->kept = calloc(all + 1, sizeof *k->kept);
		k->local = calloc(all + 1, sizeof *k->local);
	}
	if (!k || !k->kept || !k->local)
		return complain("no memory for the locals of the model");
	bool ok = true;
	for (size_t i = 0; i < all && ok; i++)
		ok = add_local(c, k, i);
	return ok;
}

/* --- replacing the model --- */

static int keep_locals(struct comparison *c)
{
	struct locals *k = c->locals;
	esp_model *model = NULL;
	esp_error *error = NULL;
	const char **state = calloc(k->n + 1, sizeof *state);
	if (!state) {
		complain("no memory for the locals of the model");
		return EXIT_INPUT;
	}
	for (size_t i = 0; i < k->n; i++)
		state[i] = k->kept[i].state;
	esp_status status = esp_model_keep(c->objects.model, k->local, state, k->n, &model, &error);
	free(state);
	if (status)
		return report_failure(status, error);
	c->first = c->objects.model;
	c->objects.model = model;
	return objects_compile(&c->objects, c->options, ESP_AT_EVERY_NODE) ? 0 : c->objects.status;
}

const char *locals_tensor(const struct comparison *c, const char *state)
{
	for (size_t i = 0; c->locals && i < c->locals->n; i++)
		if (strcmp(c->locals->kept[i].state, state) == 0)
			return c->locals->kept[i].tensor;
	return NULL;
}

void locals_free(struct comparison *c)
{
	for (size_t i = 0; c->locals && i < c->locals->n; i++)
		free(c->locals->kept[i].state);
	if (c->locals) {
		free(c->locals->kept);
		free(c->locals->local);
	}
	free(c->locals);
	esp_model_free(c->first);
}

/* With --schedule no locals are compared: the schedule belongs to the model without these states. */
int locals_show(struct comparison *c)
{
	if (c->options->schedule)
		return 0;
	if (!find_locals(c))
		return EXIT_INPUT;
	return c->locals->n ? keep_locals(c) : 0;
}
