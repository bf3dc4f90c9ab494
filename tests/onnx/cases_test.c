/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The cases of the standard (Debian's libonnx-testdata): every one gives the outputs that it comes with, or
 * is refused as a line of refused.tsv says.  All run by the interpreter, in this process; one in twenty also
 * by the default back end.  Those of qlinear/, of ONNX Runtime's operators, are all equal by both.
 *
 *   cases_test                 compares with the table
 *   cases_test --list [GLOB]   prints what becomes of each case, "equal" or as the table would have it */
#include "api/espalier.h"
#include "tests/ra/read.h"
#include "tests/tap.h"

#include <fnmatch.h>
#include <glob.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const char folder[] = "/usr/share/libonnx-testdata/data";

enum { MOST_ARRAYS = 32, MOST_ROWS = 2000 };

/* What is compared: an id of a diagnostic, "different", or "equal". */
struct verdict {
	char id[40], what[500];
};

static void set_verdict(struct verdict *v, const char *id, const char *what)
{
	snprintf(v->id, sizeof v->id, "%s", id);
	snprintf(v->what, sizeof v->what, "%s", what);
	for (char *c = v->what; *c; c++)
		if (*c == '\t' || *c == '\n')
			*c = ' ';
}

static void set_error(struct verdict *v, esp_error *error)
{
	const esp_diagnostic *d = esp_error_get(error, 0);
	set_verdict(v, d ? d->id : "unknown", d ? d->message : "");
	esp_error_free(error);
}

/* A case while it runs. */
struct trial {
	esp_context *context;
	const char *path; /* of its folder */
	esp_weights *input[MOST_ARRAYS], *output[MOST_ARRAYS];
	size_t inputs, outputs;
	esp_model *model;
	esp_weights *weights;
	esp_program *program;
	esp_binding *binding;
	esp_session *session;
	struct verdict *verdict;
};

static bool fails(struct trial *t, esp_status status, esp_error **error)
{
	if (status)
		set_error(t->verdict, *error);
	return status != ESP_OK;
}

static bool read_arrays(struct trial *t, const char *kind, esp_weights **array, size_t *n)
{
	char path[4096];
	esp_error *error = NULL;
	for (*n = 0; *n < MOST_ARRAYS; ++*n) {
		snprintf(path, sizeof path, "%s/test_data_set_0/%s_%zu.pb", t->path, kind, *n);
		if (access(path, R_OK) != 0)
			return true;
		if (fails(t, esp_weights_open(t->context, path, &array[*n], &error), &error))
			return false;
	}
	return true;
}

static esp_array array_of(const esp_weights *w, const char *name)
{
	const esp_tensor *t = esp_weights_tensor(w, 0);
	return (esp_array){*t->name ? t->name : name, t->dtype, t->rank, t->shape,
			   esp_weights_elements(w, 0)};
}

/* What decides shapes are integers, truth values, and short lists of other numbers. */
static size_t find_constants(const struct trial *t, esp_array *to)
{
	size_t n = 0;
	for (size_t i = 0; i < t->inputs; i++) {
		esp_dtype dtype = esp_weights_tensor(t->input[i], 0)->dtype;
		bool list = esp_weights_tensor(t->input[i], 0)->rank <= 1;
		if (dtype == ESP_I64 || dtype == ESP_BOOL || dtype == ESP_I32 || list)
			to[n++] = array_of(t->input[i], "");
	}
	return n;
}

static esp_status read_model_with(struct trial *t, size_t constants, const esp_array *constant,
				  esp_error **error)
{
	char path[4096];
	const esp_read_options o = {.size = sizeof o, .constant = constant, .constants = constants};
	snprintf(path, sizeof path, "%s/model.onnx", t->path);
	return esp_model_read_with(t->context, path, &o, &t->model, error);
}

/* First as it is; if that is refused, with the values of inputs that may decide shapes. */
static bool read_case(struct trial *t)
{
	esp_error *error = NULL;
	esp_array constant[MOST_ARRAYS];
	if (!read_arrays(t, "input", t->input, &t->inputs) ||
	    !read_arrays(t, "output", t->output, &t->outputs))
		return false;
	if (!fails(t, read_model_with(t, 0, NULL, &error), &error))
		return true;
	size_t n = find_constants(t, constant);
	error = NULL;
	return n && !fails(t, read_model_with(t, n, constant, &error), &error);
}

static bool prepare(struct trial *t, const char *backend, const char *accelerator)
{
	esp_error *error = NULL;
	const esp_program_options o = {.size = sizeof o, .backend = backend, .accelerator = accelerator};
	return !fails(t, esp_model_weights(t->model, &t->weights, &error), &error) &&
	       !fails(t, esp_program_create(t->model, t->weights, &o, &t->program, &error), &error) &&
	       !fails(t, esp_binding_create(t->program, t->weights, &t->binding, &error), &error) &&
	       !fails(t, esp_session_create(t->binding, &t->session, &error), &error);
}

/* Arrays of inputs that the program has: others are constants, or nobody reads them.  Those without a name
 * come in the order of the inputs. */
static bool call_case(struct trial *t)
{
	esp_error *error = NULL;
	esp_array array[MOST_ARRAYS];
	size_t n = 0, inputs = esp_program_inputs(t->program);
	for (size_t i = 0; i < t->inputs; i++) {
		const esp_input *in = esp_program_input(t->program, i);
		array[n] = array_of(t->input[i], in ? in->name : "");
		n += esp_program_find_input(t->program, array[n].name) < inputs;
	}
	return !fails(t, esp_session_call(t->session, array, n, &error), &error);
}

/* --- comparison --- */

static double number_at(esp_dtype dtype, const void *at, size_t i)
{
	switch (dtype) {
	case ESP_F32:
		return ((const float *)at)[i];
	case ESP_I8:
		return ((const int8_t *)at)[i];
	case ESP_U8:
	case ESP_BOOL:
		return ((const uint8_t *)at)[i];
	case ESP_I16:
		return ((const int16_t *)at)[i];
	case ESP_I32:
		return ((const int32_t *)at)[i];
	case ESP_F16: {
		_Float16 half;
		memcpy(&half, (const char *)at + 2 * i, 2);
		return half;
	}
	case ESP_BF16: {
		uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		float wide;
		memcpy(&wide, &bits, 4);
		return wide;
	}
	default:
		return NAN;
	}
}

static bool is_float(esp_dtype d)
{
	return d == ESP_F32 || d == ESP_F16 || d == ESP_BF16;
}

static bool are_equal(esp_dtype wanted_type, const void *wanted, esp_dtype got_type, const void *got,
		      size_t i)
{
	if (wanted_type == ESP_I64)
		return got_type == ESP_I64
			   ? ((const int64_t *)wanted)[i] == ((const int64_t *)got)[i]
			   : ((const int64_t *)wanted)[i] == (int64_t)number_at(got_type, got, i);
	double a = number_at(wanted_type, wanted, i), b = number_at(got_type, got, i);
	if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
		return (isnan(a) && isnan(b)) || a == b;
	return is_float(wanted_type) ? fabs(a - b) <= 1e-7 + 1e-3 * fabs(a) : a == b;
}

static bool differs(struct trial *t, size_t output, const char *what, double a, double b)
{
	char text[200];
	snprintf(text, sizeof text, "output %zu: %s: wanted %.9g, got %.9g", output, what, a, b);
	set_verdict(t->verdict, "different", text);
	return false;
}

static bool compare_output(struct trial *t, size_t i)
{
	esp_array wanted = array_of(t->output[i], "");
	size_t at = *wanted.name ? esp_program_find_output(t->program, wanted.name) : i;
	const esp_output *out = esp_program_output(t->program, at);
	if (!out)
		return differs(t, i, "is not there", 0, 0);
	const void *got = esp_session_root_elements(t->session, at, 0);
	if (!got)
		return differs(t, i, "has no result", 0, 0);
	if (is_float(wanted.dtype) != is_float(out->dtype) ||
	    (wanted.dtype == ESP_BOOL) != (out->dtype == ESP_BOOL))
		return differs(t, i, "type", wanted.dtype, out->dtype);
	if (out->rank != wanted.rank)
		return differs(t, i, "rank", (double)wanted.rank, (double)out->rank);
	for (size_t d = 0; d < wanted.rank; d++)
		if (out->shape[d] != wanted.shape[d])
			return differs(t, i, "extent", (double)wanted.shape[d], (double)out->shape[d]);
	for (size_t k = 0; k < out->elements; k++)
		if (!are_equal(wanted.dtype, wanted.elements, out->dtype, got, k))
			return differs(t, i, "element", number_at(wanted.dtype, wanted.elements, k),
				       number_at(out->dtype, got, k));
	return true;
}

static bool compare_case(struct trial *t)
{
	for (size_t i = 0; i < t->outputs; i++)
		if (!compare_output(t, i))
			return false;
	set_verdict(t->verdict, "equal", "");
	return true;
}

static void free_trial(struct trial *t)
{
	esp_session_free(t->session);
	esp_binding_free(t->binding);
	esp_program_free(t->program);
	esp_weights_free(t->weights);
	esp_model_free(t->model);
	for (size_t i = 0; i < MOST_ARRAYS; i++) {
		esp_weights_free(t->input[i]);
		esp_weights_free(t->output[i]);
	}
}

static struct verdict run_case_on(const char *accelerator, esp_context *context, const char *path, const char *backend)
{
	struct verdict v = {"unknown", ""};
	struct trial t = {.context = context, .path = path, .verdict = &v};
	if (read_case(&t) && prepare(&t, backend, accelerator) && call_case(&t))
		compare_case(&t);
	free_trial(&t);
	return v;
}

static struct verdict run_case(esp_context *context, const char *path, const char *backend)
{
	return run_case_on(NULL, context, path, backend);
}

/* --- the table: a glob of names, an id, a reason --- */

struct row {
	char *glob, *id;
	bool used;
};

static struct row rows[MOST_ROWS];
static int row_count;

/* Refers to the text. */
static void read_table(char *text)
{
	for (char *line = strtok(text, "\n"); line && row_count < MOST_ROWS; line = strtok(NULL, "\n")) {
		char *id = strchr(line, '\t'), *reason = id ? strchr(id + 1, '\t') : NULL;
		if (*line == '#' || !reason)
			continue;
		*id = *reason = 0;
		rows[row_count++] = (struct row){line, id + 1, false};
	}
}

static const char *name_of(const char *path)
{
	return path + sizeof folder;
}

/* Whether the table says what became of a case; a case that is equal is in no row. */
static bool is_expected(const char *name, const struct verdict *v)
{
	bool equal = strcmp(v->id, "equal") == 0, found = false;
	for (int i = 0; i < row_count; i++)
		if (fnmatch(rows[i].glob, name, 0) == 0 && (equal || strcmp(rows[i].id, v->id) == 0))
			found = rows[i].used = true;
	if (found == equal)
		printf("# %s\t%s\t%s\n", name, v->id, v->what);
	return found != equal;
}

static void compare_with_table(esp_context *context, const glob_t *all)
{
	int equal = 0, compiled = 0, wrong = 0, same = 0, unused = 0;
	for (size_t i = 0; i < all->gl_pathc; i++) {
		struct verdict v = run_case(context, all->gl_pathv[i], "interpreter");
		bool is_equal = strcmp(v.id, "equal") == 0;
		wrong += !is_expected(name_of(all->gl_pathv[i]), &v);
		equal += is_equal;
		if (is_equal && equal % 20 == 0) {
			struct verdict native = run_case(context, all->gl_pathv[i], NULL);
			compiled++;
			same += strcmp(native.id, "equal") == 0;
		}
	}
	for (int i = 0; i < row_count; i++)
		if (!rows[i].used) {
			printf("# no case is refused as '%s %s' says\n", rows[i].glob, rows[i].id);
			unused++;
		}
	printf("# %d of %zu cases are equal\n", equal, all->gl_pathc);
	tap_is(wrong, 0, "every case is equal, or refused as the table says");
	tap_is(unused, 0, "every row of the table is of a case");
	tap_is(same, compiled, "compiled cases are equal, too");
	tap_ok(equal > 0, "there are cases");
}

/* Cases of the repository: all are equal. */
static void compare_own(esp_context *context)
{
	static const struct {
		const char *name, *backend, *accelerator;
	} ways[] = {{"interpreter", "interpreter", NULL}, {"the default back end", NULL, NULL}, {"an accelerator", NULL, "vta"}};
	glob_t all = {0};
	char pattern[4096];
	snprintf(pattern, sizeof pattern, "%s", source_path("tests/onnx/qlinear/*/test_data_set_0"));
	tap_ok(glob(pattern, 0, NULL, &all) == 0 && all.gl_pathc > 0, "there are %zu cases in the repository", all.gl_pathc);
	for (size_t i = 0; i < all.gl_pathc; i++) {
		*strrchr(all.gl_pathv[i], '/') = 0;
		for (size_t b = 0; b < sizeof ways / sizeof *ways; b++) {
			struct verdict v = run_case_on(ways[b].accelerator, context, all.gl_pathv[i], ways[b].backend);
			if (!tap_ok(strcmp(v.id, "equal") == 0, "%s is equal by %s", strrchr(all.gl_pathv[i], '/') + 1,
				    ways[b].name))
				printf("# %s: %s\n", v.id, v.what);
		}
	}
	globfree(&all);
}

static void list_cases(esp_context *context, const glob_t *all, const char *pattern)
{
	for (size_t i = 0; i < all->gl_pathc; i++) {
		const char *name = name_of(all->gl_pathv[i]);
		if (fnmatch(pattern, name, 0) != 0)
			continue;
		struct verdict v = run_case(context, all->gl_pathv[i], "interpreter");
		printf("%s\t%s\t%s\n", name, v.id, v.what);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	const esp_context_options options = {.size = sizeof options, .cache = ESP_CACHE_OFF, .threads = 1};
	glob_t all = {0};
	char pattern[200];
	esp_context *context;
	if (esp_context_create(&options, &context, NULL) != ESP_OK)
		return 99;
	if (argc == 1)
		compare_own(context);
	snprintf(pattern, sizeof pattern, "%s/*/*/model.onnx", folder);
	bool found = glob(pattern, 0, NULL, &all) == 0;
	for (size_t i = 0; found && i < all.gl_pathc; i++)
		*strrchr(all.gl_pathv[i], '/') = 0;
	if (!found) {
		tap_skip("libonnx-testdata", "the cases of the standard");
		esp_context_free(context);
		return tap_done();
	}
	size_t length;
	char *table = read_text(source_path("tests/onnx/refused.tsv"), &length);
	if (!table)
		return 99;
	read_table(table);
	if (argc > 1 && strcmp(argv[1], "--list") == 0)
		list_cases(context, &all, argc > 2 ? argv[2] : "*");
	else
		compare_with_table(context, &all);
	esp_context_free(context);
	globfree(&all);
	free(table);
	return argc > 1 ? 0 : tap_done();
}
