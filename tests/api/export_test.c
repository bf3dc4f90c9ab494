/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Exports: all runs one after the other in one file, as a reader of the format finds it. */
#include "io/safetensors.h"
#include "tests/api/support.h"

#include <dirent.h>

static char weights[128];

/* --- a reader --- */

/* The tensor's values, behind `*n` of them; for I64 the bytes as they are. */
static bool read_tensor(const char *path, const char *name, int64_t *shape, int *rank, void *values,
			size_t bytes)
{
	struct arena arena;
	struct diags diags;
	arena_init(&arena, &allocator_default);
	diags_init(&diags, &allocator_default);
	struct io_safetensors *w = io_safetensors_open(&arena, &diags, path);
	int i = w ? io_safetensors_find(w, name) : -1;
	bool ok = false;
	if (i >= 0) {
		const struct tensor_info *t = &w->tensor[i];
		*rank = t->rank;
		memcpy(shape, t->shape, sizeof t->shape);
		ok = (size_t)(tensor_elements(t) * dtype_traits_of(t->dtype)->bytes) == bytes &&
		     pread(w->fd, values, bytes, w->data + w->begin[i]) == (ssize_t)bytes;
		ok &= (w->data + w->begin[i]) % dtype_traits_of(t->dtype)->bytes == 0;
	}
	io_safetensors_close(w);
	diags_free(&diags);
	arena_free(&arena);
	return ok;
}

static bool has_rows(const char *path, const char *name, const float *wanted, int64_t rows, int64_t columns)
{
	int64_t shape[TENSOR_MAX_RANK] = {0};
	float got[64];
	int rank = 0;
	size_t bytes = (size_t)(rows * (columns ? columns : 1)) * sizeof *got;
	return read_tensor(path, name, shape, &rank, got, bytes) && rank == (columns ? 2 : 1) &&
	       shape[0] == rows && (!columns || shape[1] == columns) && memcmp(got, wanted, bytes) == 0;
}

static bool begins(const char *path, const int64_t *wanted, int64_t n)
{
	int64_t shape[TENSOR_MAX_RANK], got[16];
	int rank;
	size_t bytes = (size_t)n * sizeof *got;
	return read_tensor(path, "structure_begin", shape, &rank, got, bytes) && rank == 1 &&
	       memcmp(got, wanted, bytes) == 0;
}

/* --- results --- */

static const int32_t one_begin[] = {0, 0}, one_word[] = {3};
static const void *const one_data[] = {one_word};
static const esp_structure one = {sizeof one, 1, one_begin, NULL, 0, one_data};

/* The root is node 0. */
static const int32_t first_begin[] = {0, 2, 2, 2}, first_children[] = {2, 1}, first_words[] = {-1, 2, 3};
static const void *const first_data[] = {first_words};
static const esp_structure root_first = {sizeof root_first, 3, first_begin, first_children, 0, first_data};

static const float h[] = {1, 2, 3, 4, 5, 5, 7, 8, 13, 13, 5, 6, 7, 8}, totals[] = {10, 15, 26};
static const int64_t structure_begin[] = {0, 3, 4, 7};

static void run_two(struct kit *k, esp_export *e)
{
	esp_forest_clear(k->forest);
	esp_forest_add(k->forest, &pair, NULL);
	esp_forest_add(k->forest, &one, NULL);
	esp_session_run(k->session, k->forest, NULL);
	esp_export_add(e, k->session, NULL);
	esp_forest_clear(k->forest);
	esp_forest_add(k->forest, &root_first, NULL);
	esp_session_run(k->session, k->forest, NULL);
	esp_export_add(e, k->session, NULL);
}

static void check_safetensors(struct kit *k, esp_export *e)
{
	const char *path = path_of("results.safetensors");
	float twice[14];
	for (int i = 0; i < 14; i++)
		twice[i] = 2 * h[i];
	run_two(k, e);
	tap_ok(esp_export_safetensors(e, path, NULL) == ESP_OK, "results are written");
	tap_ok(has_rows(path, "h", h, 7, 2), "states of all nodes, in the caller's numbers");
	tap_ok(has_rows(path, "twice", twice, 7, 2), "outputs of all nodes");
	tap_ok(has_rows(path, "total", totals, 3, 0), "a row a structure of an output at the root");
	tap_ok(begins(path, structure_begin, 4), "and where the structures begin");
}

static bool npy_holds(const char *path, const char *header, const void *values, size_t bytes)
{
	char got[512];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(got, 1, sizeof got, f) : 0;
	if (f)
		fclose(f);
	return n > bytes && (n - bytes) % 64 == 0 && memcmp(got, "\x93NUMPY\x01", 8) == 0 &&
	       strstr(got + 10, header) && memcmp(got + n - bytes, values, bytes) == 0;
}

static void check_npy(esp_export *e)
{
	const char *path = path_of("results.npy");
	tap_ok(esp_export_npy(e, "h", path, NULL) == ESP_OK &&
		   npy_holds(path, "'<f4', 'fortran_order': False, 'shape': (7, 2)", h, sizeof h),
	       "one tensor is written as .npy");
	tap_ok(esp_export_npy(e, "total", path, NULL) == ESP_OK &&
		   npy_holds(path, "(3,)", totals, sizeof totals),
	       "an output at the root");
	tap_ok(esp_export_npy(e, "structure_begin", path, NULL) == ESP_OK &&
		   npy_holds(path, "'<i8', 'fortran_order': False, 'shape': (4,)", structure_begin,
			     sizeof structure_begin),
	       "and where the structures begin");
	esp_error *error;
	tap_ok(esp_export_npy(e, "H", path, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "a tensor that is not there is refused");
}

static void check_refusals(struct kit *k, esp_export *e)
{
	esp_error *error;
	esp_program *p;
	esp_export *other, *unused;
	esp_program_create(k->model, k->weights, &interpreted, &p, NULL);
	esp_export_create(p, &other, NULL);
	unused = other;
	tap_ok(esp_export_add(other, k->session, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "results of another program are refused");
	int64_t none[1] = {0};
	const char *path = path_of("results.safetensors");
	tap_ok(esp_export_safetensors(other, path, NULL) == ESP_OK && has_rows(path, "h", h, 0, 2) &&
		   begins(path, none, 1),
	       "an empty export can be written");
	esp_session *s;
	esp_session_create(k->binding, &s, NULL);
	tap_ok(esp_export_add(e, s, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "a session that never ran has nothing to add");
	esp_forest_clear(k->forest);
	esp_session_run(s, k->forest, NULL);
	tap_ok(esp_export_add(e, s, NULL) == ESP_OK, "one that ran over nothing adds nothing");
	tap_ok(esp_export_safetensors(e, path, NULL) == ESP_OK && begins(path, structure_begin, 4),
	       "which shows");
	tap_ok(esp_export_safetensors(e, path_of("absent/f"), &error) == ESP_ERROR_SYSTEM &&
		   error_is(error, "cannot-write"),
	       "a file that cannot be written is the system's refusal");
	tap_ok(esp_export_add(NULL, s, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_export_add(e, NULL, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_export_safetensors(e, NULL, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_export_npy(e, NULL, path, NULL) == ESP_ERROR_ARGUMENT &&
		   esp_export_create(NULL, &other, NULL) == ESP_ERROR_ARGUMENT && !other,
	       "arguments must be there");
	esp_session_free(s);
	esp_program_free(p);
	esp_export_free(unused);
}

static void check_names(struct kit *k)
{
	static const char *const names[] = {"structure_begin", "__metadata__"};
	for (int i = 0; i < 2; i++) {
		char text[400];
		esp_model *m;
		esp_program *p;
		esp_export *e;
		esp_error *error;
		snprintf(text, sizeof text,
			 "model m\nstructure sequence\ninput word : token\nparam E[V, D]\nparam W[D, "
			 "D]\nstate %s[D]\n"
			 "node:\n %s = W @ E[word] + previous.%s\noutput o = %s\n",
			 names[i], names[i], names[i], names[i]);
		esp_model_parse(k->context, "m.ra", text, strlen(text), &m, NULL);
		esp_program_create(m, k->weights, &interpreted, &p, NULL);
		tap_ok(esp_export_create(p, &e, &error) == ESP_ERROR_INPUT && !e &&
			   error_is(error, "duplicate-name"),
		       "a state named %s cannot be exported", names[i]);
		esp_model_free(m);
		esp_program_free(p);
	}
}

static void check_memory(void)
{
	struct account a = {.left = -1};
	struct kit k;
	esp_context_options options = {.size = sizeof options, .resize = account_resize, .user = &a};
	long n = 0, steps = 0;
	bool right = true, done = false;
	make_kit(&k, &options, weights, NULL);
	esp_forest_add(k.forest, &pair, NULL);
	esp_session_run(k.session, k.forest, NULL);
	for (; !done && n < 1000; n++) {
		esp_export *e;
		esp_error *error;
		a.left = n;
		esp_status s = esp_export_create(k.program, &e, NULL);
		s = s ? s : esp_export_add(e, k.session, NULL);
		s = s ? s : esp_export_safetensors(e, path_of("results.safetensors"), NULL);
		s = s ? s : esp_export_npy(e, "h", path_of("results.npy"), &error);
		right &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		done = s == ESP_OK;
		steps += s != ESP_OK;
		esp_export_free(e);
	}
	a.left = -1;
	tap_ok(done && right && steps > 5, "memory running out at any of %ld requests is told", steps);
	/* Adding again after a failure does not double what was there. */
	esp_export *e;
	esp_export_create(k.program, &e, NULL);
	for (n = 0, done = false; !done && n < 100; n++) {
		a.left = n;
		done = esp_export_add(e, k.session, NULL) == ESP_OK;
	}
	a.left = -1;
	tap_ok(done && esp_export_safetensors(e, path_of("results.safetensors"), NULL) == ESP_OK &&
		   begins(path_of("results.safetensors"), (const int64_t[]){0, 3}, 2),
	       "and changes nothing");
	esp_export_free(e);
	free_kit(&k);
	tap_ok(a.blocks == 0 && a.bytes == 0 && !a.wrong, "all is given back");
}

static int files_there(void)
{
	int n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *f; d && (f = readdir(d));)
		n += f->d_name[0] != '.';
	closedir(d);
	return n;
}

int main(void)
{
	struct kit k;
	esp_export *e;
	make_folder();
	strcpy(weights, write_weights("tiny.safetensors", tiny_weights, 2));
	if (make_kit(&k, NULL, weights, NULL) || esp_export_create(k.program, &e, NULL))
		return 1;
	check_safetensors(&k, e);
	check_npy(e);
	check_refusals(&k, e);
	check_names(&k);
	esp_export_free(e);
	esp_export_free(NULL);
	free_kit(&k);
	check_memory();
	tap_is(files_there(), 3, "no part of a file is left");
	remove_folder((const char *const[]){"tiny.safetensors", "results.safetensors", "results.npy"}, 3);
	return tap_done();
}
