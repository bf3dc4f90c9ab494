#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- opening --- */

int subject_open(struct subject *s, const struct options *options, long threads, const struct shapes *shapes)
{
	esp_error *error;
	struct options mine = *options;
	*s = (struct subject){.shapes = shapes, .threads = threads};
	mine.threads = threads;
	if (!objects_open(&s->objects, &mine, options->operand[0], ESP_AT_MODEL))
		return s->objects.status;
	const esp_program *p = s->objects.program;
	esp_status status = esp_binding_create(s->objects.program, s->objects.weights, &s->binding, &error);
	if (!status)
		status = esp_session_create(s->binding, &s->session, &error);
	if (!status)
		status = esp_forest_create(s->objects.program, &s->forest, &error);
	if (status)
		return report(status, error);
	if (esp_program_inputs(p) <= MOST_INPUTS)
		return 0;
	complain("models with more than %d inputs are not timed", MOST_INPUTS);
	return EXIT_INPUT;
}

void subject_close(struct subject *s)
{
	for (int i = 0; i < MOST_INPUTS; i++)
		free(s->carried[i].values);
	esp_forest_free(s->forest);
	esp_session_free(s->session);
	esp_binding_free(s->binding);
	objects_close(&s->objects);
}

/* --- what nodes carry --- */

static bool grow(struct carried *c, size_t bytes)
{
	if (bytes <= c->bytes)
		return true;
	void *values = realloc(c->values, bytes);
	if (!values)
		return complain("no memory for what nodes carry");
	c->values = values;
	c->bytes = bytes;
	return true;
}

static bool carry_tokens(struct carried *c, const esp_input *input, const struct shape *shape)
{
	if (!grow(c, shape->nodes * sizeof(int32_t)))
		return false;
	for (int i = 0; i < shape->nodes; i++)
		((int32_t *)c->values)[i] = shape->word[i] % input->limit;
	return true;
}

/* Numbers of a node follow from its word, so that whoever knows the one knows the others: those that a
 * generator of random numbers gives that begins with it. */
static bool carry_vectors(struct carried *c, const esp_input *input, const struct shape *shape)
{
	if (!grow(c, shape->nodes * input->elements * sizeof(float)))
		return false;
	float *to = c->values;
	for (int i = 0; i < shape->nodes; i++) {
		struct random r = {shape->word[i]};
		for (size_t e = 0; e < input->elements; e++)
			*to++ = random_float(&r);
	}
	return true;
}

static int add_structure(struct subject *s, size_t index)
{
	const struct shape *shape = &s->shapes->at[index % s->shapes->n];
	const void *data[MOST_INPUTS];
	const esp_input *input;
	esp_error *error;
	for (int i = 0; (input = esp_program_input(s->objects.program, i)); i++) {
		struct carried *c = &s->carried[i];
		if (!(input->is_token ? carry_tokens : carry_vectors)(c, input, shape))
			return EXIT_INPUT;
		data[i] = c->values;
	}
	esp_structure structure = {.size = sizeof structure,
				   .nodes = shape->nodes,
				   .child_begin = shape->begin,
				   .children = shape->children,
				   .root = shape->nodes - 1,
				   .data = data};
	esp_status status = esp_forest_add(s->forest, &structure, &error);
	return status ? report(status, error) : 0;
}

/* --- running --- */

int subject_fill(struct subject *s, size_t first, size_t count)
{
	int status = 0;
	esp_forest_clear(s->forest);
	for (size_t i = 0; i < count && !status; i++)
		status = add_structure(s, first + i);
	return status;
}

int subject_run(struct subject *s, struct timing *t)
{
	esp_error *error;
	double linearize = esp_session_costs(s->session)->linearize, begin = now();
	esp_status status = esp_session_run(s->session, s->forest, &error);
	t->whole = now() - begin;
	t->linearize = esp_session_costs(s->session)->linearize - linearize;
	return status ? report(status, error) : 0;
}

size_t subject_nodes(const struct subject *s)
{
	size_t n = 0;
	for (size_t i = 0; i < esp_forest_structures(s->forest); i++)
		n += esp_forest_nodes(s->forest, i);
	return n;
}
