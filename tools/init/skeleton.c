/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Writes the text: parameters, a placeholder state, and an output that uses all parameters, so that the
 * model is valid from the beginning and stays valid while it is completed. */
#include "init/skeleton.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const structures[] = {
    [KIND_TREE] = "tree(left, right)", [KIND_SEQUENCE] = "sequence", [KIND_DAG] = "dag(*)", [KIND_NONE] = "none"};

/* --- names --- */

/* Whether the language accepts the name: parses a model in which it is the only such name. */
static bool is_name(const struct skeleton *s, const char *name)
{
	const char *structure = structures[s->kind == KIND_NONE ? KIND_DAG : s->kind];
	const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;
	const char *state = strcmp(last, "_state") ? "_state" : "_other";
	const char *output = strcmp(last, "_output") ? "_output" : "_other";
	char *text = NULL;
	esp_model *m = NULL;
	int n = asprintf(&text, "model m\nstructure %s\nparam %s\nstate %s\nnode:\n%s = %s\noutput %s = %s",
			 structure, name, state, state, name, output, state);
	bool ok = n >= 0 && !esp_model_parse(s->context, "name", text, n, &m, NULL) &&
		  esp_model_describe(m)->params == 1 && strcmp(esp_model_param(m, 0, NULL, NULL, 0, NULL), name) == 0;
	esp_model_free(m);
	if (n >= 0)
		free(text);
	return ok;
}

bool is_taken(const struct skeleton *s, const char *name)
{
	const esp_tensor *t;
	for (size_t i = 0; i < s->choices; i++)
		if (strcmp(s->chosen[i], name) == 0)
			return true;
	for (size_t i = 0; (t = esp_weights_tensor(s->weights, i)); i++) {
		const char *dot = strrchr(t->name, '.');
		if (strcmp(t->name, name) == 0 || (dot && strcmp(dot + 1, name) == 0))
			return true;
	}
	return false;
}

const char *choose_name(struct skeleton *s, const char *name)
{
	char **chosen = realloc(s->chosen, (s->choices + 1) * sizeof *chosen);
	if (!chosen)
		return NULL;
	s->chosen = chosen;
	char *choice = strdup(name);
	for (int i = 2; choice && is_taken(s, choice); i++) {
		free(choice);
		if (asprintf(&choice, "%s%d", name, i) < 0)
			return NULL;
	}
	if (choice)
		s->chosen[s->choices++] = choice;
	return choice;
}

/* Makes a valid name similar to that of the tensor. */
static const char *mend_name(struct skeleton *s, const char *name)
{
	char *mended = NULL;
	const char *first = isdigit((unsigned char)*name) || *name == '.' ? "_" : "";
	if (asprintf(&mended, "%s%s", first, name) < 0)
		return NULL;
	for (char *p = mended; *p; p++)
		if (*p == '/')
			*p = '.';
		else if ((unsigned char)*p > 127 || (!isalnum((unsigned char)*p) && *p != '.'))
			*p = '_';
	if (!is_name(s, mended)) {
		char *longer = NULL;
		if (asprintf(&longer, "%s_", mended) >= 0) {
			free(mended);
			mended = longer;
		}
	}
	const char *choice = choose_name(s, mended);
	free(mended);
	return choice;
}

/* --- parameters --- */

enum fault fault_of(const struct skeleton *s, const esp_tensor *t)
{
	if (t->dtype != ESP_F32 && t->dtype != ESP_F16 && t->dtype != ESP_BF16)
		return FAULT_TYPE;
	for (size_t d = 0; d < t->rank; d++)
		if (!t->shape[d])
			return FAULT_EMPTY;
	return is_name(s, t->name) ? FAULT_NONE : FAULT_NAME;
}

static void print_shape(const struct skeleton *s, const esp_tensor *t, bool numbers)
{
	for (size_t d = 0; d < t->rank; d++) {
		fputs(d ? ", " : "[", s->to);
		if (numbers)
			fprintf(s->to, "%zu", t->shape[d]);
		else
			print_extent(s, t->shape[d]);
	}
	if (t->rank)
		fputc(']', s->to);
}

static void print_params(const struct skeleton *s)
{
	const esp_tensor *t;
	size_t n = 0;
	for (size_t i = 0; i < s->extents; i++)
		if (strlen(s->extent[i].name) == 1)
			fprintf(s->to, "%s%s = %" PRId64, n++ ? ", " : "# Dimensions are names for sizes that recur: ",
				s->extent[i].name, s->extent[i].size);
	fputs(n ? ".\n" : "", s->to);
	for (size_t i = 0; (t = esp_weights_tensor(s->weights, i)); i++) {
		if (fault_of(s, t))
			continue;
		fprintf(s->to, "param %s", t->name);
		print_shape(s, t, false);
		fputc('\n', s->to);
	}
}

/* --- tensors that cannot be parameters --- */

/* Writes a Python string that stays on its line, for use in a comment. */
static void print_quoted(const struct skeleton *s, const char *name)
{
	fputc('\'', s->to);
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\'' || *p == '\\')
			fprintf(s->to, "\\x%02x", *p);
		else
			fputc(*p, s->to);
	fputc('\'', s->to);
}

/* Writes the Python statement that repairs the tensor in a dictionary 'w' before it is saved again. */
static void print_mend(struct skeleton *s, const esp_tensor *t, enum fault fault)
{
	static const char *const why[] = {
	    [FAULT_NAME] = "its name is none of the language",
	    [FAULT_EMPTY] = "it has no element",
	};
	const char *name = fault == FAULT_NAME ? mend_name(s, t->name) : t->name;
	bool goes = fault == FAULT_EMPTY;
	fprintf(s->to, "; %s: %s", why[fault], goes ? "del w[" : "w[");
	print_quoted(s, goes || !name ? t->name : name);
	if (!goes) {
		fputs("] = w.pop(", s->to);
		print_quoted(s, t->name);
		fputc(')', s->to);
	}
	fputs(goes ? "]\n" : "\n", s->to);
}

/* Lists tensors that cannot be parameters, but not those of integers, which may well be beside the
 * weights. */
static void print_faults(struct skeleton *s)
{
	const esp_tensor *t;
	size_t n = 0;
	for (size_t i = 0; (t = esp_weights_tensor(s->weights, i)); i++) {
		enum fault fault = fault_of(s, t);
		if (!fault || fault == FAULT_TYPE)
			continue;
		fputs(n++ ? "" : "\n# Tensors that are no parameters, and how to mend that in Python before w is saved again:\n", s->to);
		fputs("#     ", s->to);
		print_quoted(s, t->name);
		fprintf(s->to, " %s", esp_dtype_name(t->dtype));
		print_shape(s, t, true);
		print_mend(s, t, fault);
	}
}

/* --- bodies and outputs --- */

static const char *output_place(const struct skeleton *s)
{
	return s->kind == KIND_NONE ? "" : " at root";
}

static void print_zeros(const struct skeleton *s, int64_t extent)
{
	if (extent) {
		fputs("zeros(", s->to);
		print_extent(s, extent);
		fputs(")\n", s->to);
	} else {
		fputs("0\n", s->to);
	}
}

static void print_bodies(const struct skeleton *s, const char *h, const char *k)
{
	int64_t extent = choose_extent(s);
	fprintf(s->to, "\n# To be completed: what a node computes.\nstate %s", h);
	if (extent) {
		fputc('[', s->to);
		print_extent(s, extent);
		fputc(']', s->to);
	}
	fprintf(s->to, "\n\nleaf:\n    %s = ", h);
	print_zeros(s, extent);
	fprintf(s->to, "\ninner:\n    %s = ", h);
	if (s->kind == KIND_TREE)
		fprintf(s->to, "left.%s + right.%s\n", h, h);
	else if (s->kind == KIND_SEQUENCE)
		fprintf(s->to, "previous.%s\n", h);
	else
		fprintf(s->to, "sum(%s.%s for %s in children)\n", k, h, k);
}

/* Where a text says what is to be completed; without a structure there is one body, and no state. */
static void print_begin(const struct skeleton *s, const char *h, const char *k)
{
	if (s->kind != KIND_NONE) {
		print_bodies(s, h, k);
		return;
	}
	fprintf(s->to, "\n# To be completed: what is computed of a row.\nnode:\n    %s = ", h);
	print_zeros(s, choose_extent(s));
}

/* Writes a sum over all elements of a tensor. */
static void print_total(const struct skeleton *s, const esp_tensor *t)
{
	for (size_t d = 0; d < t->rank; d++)
		fputs("sum(", s->to);
	fputs(t->name, s->to);
	for (size_t d = 0; d < t->rank; d++)
		fputc(')', s->to);
}

/* Divides long sums by parentheses, since the language limits the number of operators in a chain. */
static void print_sum(const struct skeleton *s, const esp_tensor *const *term, size_t n)
{
	enum { FLAT_TERMS = 64 };
	size_t half = n / 2;
	if (n <= FLAT_TERMS) {
		for (size_t i = 0; i < n; i++) {
			fputs(i ? " +\n    " : "", s->to);
			print_total(s, term[i]);
		}
		return;
	}
	fputc('(', s->to);
	print_sum(s, term, half);
	fputs(") +\n    (", s->to);
	print_sum(s, term + half, n - half);
	fputc(')', s->to);
}

/* The tensors that are parameters; the caller frees the array, NULL = no memory. */
static const esp_tensor **list_params(const struct skeleton *s, size_t *n)
{
	size_t tensors = 0;
	while (esp_weights_tensor(s->weights, tensors))
		tensors++;
	const esp_tensor *t, **list = malloc((tensors + 1) * sizeof *list);
	*n = 0;
	for (size_t i = 0; list && (t = esp_weights_tensor(s->weights, i)); i++)
		if (!fault_of(s, t))
			list[(*n)++] = t;
	return list;
}

/* Writes an output that uses all parameters, because unused ones are refused. */
static bool print_unused(const struct skeleton *s, const char *unused)
{
	size_t n;
	const esp_tensor **param = list_params(s, &n);
	if (!param)
		return false;
	if (n) {
		fprintf(s->to,
			"\n# A model uses all its parameters. This output does so in place of the bodies: take a parameter out of it\n"
			"# when a body uses it, and the output away at last.\noutput %s = (",
			unused);
		print_sum(s, param, n);
		fprintf(s->to, ")%s\n", output_place(s));
	}
	free(param);
	return true;
}

static bool print_all(struct skeleton *s)
{
	const char *h = choose_name(s, "h"), *result = choose_name(s, "result"), *unused = choose_name(s, "unused"),
		   *k = choose_name(s, "k");
	bool ok = h && result && unused && k;
	if (ok) {
		fputs("# A model to complete, with the tensors of a weights file as its parameters. It is one as it stands:\n"
		      "#\n"
		      "#     espalier check THIS.ra --weights W.safetensors\n"
		      "#\n"
		      "# says after each step whether it still is. The whole language is on a page: man espalier-model; 'espalier init'\n"
		      "# without --weights writes a model that explains it.\n\n",
		      s->to);
		fprintf(s->to, "model skeleton\n\nstructure %s\n\n", structures[s->kind]);
		fprintf(s->to,
			"# What a %s carries: a token is an index, with which a row of a parameter is taken, table[word].\n"
			"# input word : token\n\n",
			s->kind == KIND_NONE ? "row" : "node");
		print_params(s);
		print_faults(s);
		print_begin(s, h, k);
		fprintf(s->to, "\noutput %s = %s%s\n", result, h, output_place(s));
		ok = print_unused(s, unused);
	}
	return ok || complain("no memory for names");
}

static int write_skeleton(struct skeleton *s)
{
	esp_error *error = NULL;
	esp_context_options options = {.size = sizeof options, .cache = ESP_CACHE_OFF};
	esp_status status = esp_context_create(&options, &s->context, &error);
	if (!status)
		status = esp_weights_open(s->context, s->path, &s->weights, &error);
	if (status)
		return report_failure(status, error);
	return name_extents(s) && print_all(s) ? 0 : EXIT_INPUT;
}

int skeleton_write(const struct options *options, FILE *to)
{
	struct skeleton s = {.path = options->weights, .kind = options->kind, .to = to};
	int status = write_skeleton(&s);
	esp_weights_free(s.weights);
	esp_context_free(s.context);
	free(s.extent);
	for (size_t i = 0; i < s.choices; i++)
		free(s.chosen[i]);
	free(s.chosen);
	return status;
}
