/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Programs that are saved and loaded: the same results with and without weights in them, and nothing but a
 * diagnostic of what is damaged, for another machine, or cannot be written. */
#include "image/image_file.h"
#include "tests/api/support.h"
#include "tests/backends.h"

#include <sys/stat.h>

/* Tables are made of it when weights are bound. */
static const char folding_model[] =
    "model folding\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\nparam W[D, D]\nstate "
    "h[D]\n"
    "leaf:\n    h = W @ E[word]\ninner:\n    h = W @ left.h + right.h\n"
    "output twice = h + h at every node\noutput total = sum(h) at root\n";

static const struct tensor others[] = {
    {"E", 4, 2, (const float[]){8, 7, 6, 5, 4, 3, 2, 1}},
    {"W", 2, 2, (const float[]){1, 0, 0, 1}},
};
static const struct tensor larger[] = {
    {"E", 5, 2, (const float[]){8, 7, 6, 5, 4, 3, 2, 1, 0, 0}},
    {"W", 2, 2, (const float[]){1, 0, 0, 1}},
};

static char weights[128], other_weights[128], larger_weights[128], nameless[128], saved[128], packed[128];

/* --- one use of the library --- */

static esp_status open_kit(struct kit *k, const esp_context_options *c, const char *model,
			   const esp_program_options *o, esp_error **error)
{
	esp_status s;
	memset(k, 0, sizeof *k);
	if ((s = esp_context_create(c, &k->context, error)) ||
	    (s = esp_model_parse(k->context, "m.ra", model, strlen(model), &k->model, error)) ||
	    (s = esp_weights_open(k->context, weights, &k->weights, error)))
		return s;
	return esp_program_create(k->model, k->weights, o, &k->program, error);
}

static const esp_context_options uncached = {.size = sizeof uncached, .cache = ESP_CACHE_OFF, .threads = 1};

static bool save_to(const char *path, const char *model, const char *target, int form, bool pack)
{
	struct kit k;
	esp_error *error = NULL;
	esp_program_options o = {.size = sizeof o, .target = target};
	esp_status s = open_kit(&k, &uncached, model, &o, &error);
	esp_save_options how = {
	    .size = sizeof how, .form = form, .symbol = "tiny", .weights = pack ? k.weights : NULL};
	if (!s)
		s = esp_program_save(k.program, path, &how, &error);
	if (s)
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	free_kit(&k);
	return !s;
}

/* The outputs of the pair's root and nodes, by a program that is let go at once. */
static bool run_loaded(esp_context *c, esp_program *p, const char *weights_path, float *to)
{
	struct kit k = {.context = c, .program = p};
	esp_error *error = NULL;
	if (weights_path)
		esp_weights_open(c, weights_path, &k.weights, NULL);
	bool ok = !esp_binding_create(p, k.weights, &k.binding, &error) &&
		  !esp_forest_create(p, &k.forest, NULL) &&
		  !esp_session_create(k.binding, &k.session, NULL) &&
		  !esp_forest_add(k.forest, &pair, NULL) && !esp_session_run(k.session, k.forest, NULL);
	for (int n = 0; ok && n < 3; n++)
		memcpy(to + 2 * n, esp_session_output(k.session, 0, 0, n), 2 * sizeof *to);
	if (ok)
		to[6] = *esp_session_root(k.session, 1, 0);
	esp_error_free(error);
	free_kit(&k);
	return ok;
}

static bool gives(esp_context *c, esp_program *p, const char *weights_path, const float *wanted)
{
	float found[7] = {0};
	return run_loaded(c, p, weights_path, found) && memcmp(found, wanted, sizeof found) == 0;
}

static const float by_weights[] = {2, 4, 6, 8, 10, 10, 10}, by_others[] = {16, 14, 12, 10, 28, 24, 26};

static esp_program *load(esp_context **c, const char *path)
{
	esp_program *p = NULL;
	esp_error *error = NULL;
	esp_context_create(NULL, c, NULL);
	if (esp_program_load(*c, path, &p, &error))
		printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return p;
}

/* --- what is there --- */

static void test_plain(void)
{
	esp_context *c;
	esp_program *p = load(&c, saved);
	esp_error *error;
	esp_binding *b;
	int64_t size = 0;
	tap_ok(p && !esp_program_has_weights(p), "a program is loaded");
	tap_ok(esp_program_inputs(p) == 1 && strcmp(esp_program_input(p, 0)->name, "word") == 0 &&
		   esp_program_input(p, 0)->limit == 4 && esp_program_outputs(p) == 2 &&
		   esp_program_output(p, 1)->at_root && esp_program_states(p) == 1 &&
		   strcmp(esp_program_size(p, 0, &size), "V") == 0 && size == 4,
	       "its interface is that of the model");
	tap_ok(esp_binding_create(p, NULL, &b, &error) == ESP_ERROR_ARGUMENT && !b &&
		   error_is(error, "bad-argument"),
	       "it has no weights of its own");
	esp_weights *w;
	esp_weights_open(c, larger_weights, &w, NULL);
	tap_ok(esp_binding_create(p, w, &b, &error) == ESP_ERROR_INPUT && error_is(error, "size-differs"),
	       "weights of another size are refused");
	esp_weights_free(w);
	esp_weights_open(c, nameless, &w, NULL);
	tap_ok(esp_binding_create(p, w, &b, &error) == ESP_ERROR_INPUT && error_is(error, "missing-weight"),
	       "and weights that lack one");
	esp_weights_free(w);
	char *text = NULL;
	tap_ok(esp_program_dump(p, "ra", &text, &error) == ESP_ERROR_ARGUMENT && !text &&
		   error_is(error, "no-model"),
	       "its model is not there to be dumped");
	tap_ok(esp_program_explain(p, ESP_FORM_TEXT, &text, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "no-model"),
	       "or explained");
	tap_ok(gives(c, p, weights, by_weights), "it gives what the model gives");
	p = load(&c, saved);
	tap_ok(gives(c, p, other_weights, by_others), "with other weights something else");
}

static void test_packed(void)
{
	esp_context *c;
	esp_program *p = load(&c, packed);
	esp_binding *b = NULL;
	esp_weights *w = NULL;
	struct stat st;
	tap_ok(p && esp_program_has_weights(p), "a program has its weights with it");
	tap_ok(stat(packed, &st) == 0 && st.st_size > IMAGE_PAGE, "from a page on");
	tap_ok(!esp_binding_create(p, NULL, &b, NULL) && !esp_weights_open(c, other_weights, &w, NULL) &&
		   !esp_binding_swap(b, w, NULL) && esp_binding_generation(b) == 2,
	       "they can be exchanged");
	esp_binding_free(b);
	esp_weights_free(w);
	tap_ok(gives(c, p, NULL, by_weights), "it gives what the model gives");
	p = load(&c, packed);
	tap_ok(gives(c, p, other_weights, by_others), "others can be bound");
	p = load(&c, packed);
	char resaved[128];
	strcpy(resaved, path_of("resaved"));
	bool ok = !esp_program_save(p, resaved, NULL, NULL);
	esp_program_free(p);
	esp_context_free(c);
	p = load(&c, resaved);
	tap_ok(ok && esp_program_has_weights(p) && gives(c, p, NULL, by_weights),
	       "saved again it keeps them");
	unlink(resaved);
}

/* --- bytes in memory, also those that are not as they were --- */

struct bytes {
	unsigned char *at;
	size_t n;
};

static struct bytes read_bytes(const char *path)
{
	struct bytes b = {0};
	struct stat st;
	FILE *f = fopen(path, "rb");
	if (!f || fstat(fileno(f), &st) || posix_memalign((void **)&b.at, 64, st.st_size + 64) ||
	    fread(b.at, 1, st.st_size, f) != (size_t)st.st_size)
		abort();
	fclose(f);
	b.n = st.st_size;
	return b;
}

/* Whether it is refused, with this id and words; it must be, or run as it did. */
static bool refused(esp_context *c, const void *bytes, size_t n, const char *id, const char *words)
{
	esp_program *p;
	esp_error *error = NULL;
	esp_program_load_memory(c, bytes, n, &p, &error);
	bool ok = !p && strstr(esp_error_text(error), words);
	esp_program_free(p);
	return error_is(error, id) && ok;
}

static void replace(struct bytes *b, const char *from, const char *to)
{
	unsigned char *found = memmem(b->at, b->n, from, strlen(from));
	if (!found)
		printf("# there is no %s\n", from);
	else
		memcpy(found, to, strlen(to));
	image_seal(b->at, b->n);
}

static void test_memory(void)
{
	esp_context *c;
	struct bytes b = read_bytes(packed), plain = read_bytes(saved);
	esp_program *p;
	esp_context_create(NULL, &c, NULL);
	tap_ok(!esp_program_load_memory(c, b.at, b.n, &p, NULL), "bytes in memory are a program");
	esp_program_free(p);
	memmove(b.at + 8, b.at, b.n);
	tap_ok(refused(c, b.at + 8, b.n, "bad-image", "multiple of 64"),
	       "weights begin at a multiple of 64 bytes");
	memmove(b.at, b.at + 8, b.n);
	b.at[8 + 16] ^= 1;
	image_seal(b.at, b.n);
	tap_ok(refused(c, b.at, b.n, "bad-image", "another version"), "another version is told");
	b.at[8 + 16] ^= 1;
	image_seal(b.at, b.n);
	b.at[b.n - 60] ^= 1;
	tap_ok(refused(c, b.at, b.n, "bad-image", "checksum of its weights"),
	       "a wrong bit in the weights is told");
	b.at[b.n - 60] ^= 1;
	int accepted = 0;
	for (size_t n = 0; n < plain.n; n += n < 500 ? 1 : 97)
		accepted += !refused(c, plain.at, n, "bad-image", "");
	for (size_t i = 0; i < plain.n; i += i < 500 ? 1 : 53) {
		plain.at[i] ^= 1 << i % 8;
		accepted += !refused(c, plain.at, plain.n, "bad-image", "");
		plain.at[i] ^= 1 << i % 8;
	}
	tap_is(accepted, 0, "whatever is cut off or garbled is refused");
	replace(&plain, "sse4.2", "sse4.9");
	tap_ok(refused(c, plain.at, plain.n, "target-not-here", "sse4.9"), "so is a processor that has more");
	esp_context_free(c);
	free(b.at);
	free(plain.at);
}

/* --- other machines --- */

static void test_targets(void)
{
	static const char *const targets[] = {"generic", "avx2", "avx512", "aarch64"};
	char path[128];
	strcpy(path, path_of("target"));
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		const struct target *t = target_find(targets[i]);
		if (!tap_ok(save_to(path, folding_model, targets[i], ESP_SAVE_PROGRAM, true),
			    "a program for %s", targets[i]))
			continue;
		esp_context *c;
		esp_program *p = NULL;
		esp_error *error = NULL;
		esp_context_create(NULL, &c, NULL);
		esp_status s = esp_program_load(c, path, &p, &error);
		if (target_runs_here(t))
			tap_ok(!s, "is loaded");
		else
			tap_ok(s == ESP_ERROR_BACKEND && error_is(error, "target-not-here"),
			       "is not loaded here");
		esp_program_free(p);
		esp_context_free(c);
	}
	unlink(path);
}

/* Tables that the interpreter computed, for another machine, are those that this one computes. */
static void test_foreign_weights(void)
{
	char path[128];
	struct arena a;
	struct diags d;
	jmp_buf escape;
	struct image here, there;
	arena_init(&a, &allocator_default);
	diags_init(&d, &allocator_default);
	strcpy(path, path_of("foreign"));
	if (arena_guard(&a, &escape))
		abort();
	const char *other = target_runs_here(target_find("aarch64")) ? "generic" : "aarch64";
	const char *own = target_runs_here(target_find("aarch64")) ? "aarch64" : "generic";
	save_to(path, folding_model, own, ESP_SAVE_PROGRAM, true);
	struct bytes b = read_bytes(path);
	save_to(path, folding_model, other, ESP_SAVE_PROGRAM, true);
	struct bytes c = read_bytes(path);
	bool ok = image_read(&a, b.at, b.n, &here, &d) && image_read(&a, c.at, c.n, &there, &d) &&
		  here.packs == there.packs && here.folds > 0;
	for (int i = 0; ok && i < here.packs; i++)
		ok = here.packed[i].bytes == there.packed[i].bytes &&
		     (!here.packed[i].at ||
		      memcmp(here.packed[i].at, there.packed[i].at, here.packed[i].bytes) == 0);
	tap_ok(ok, "what weights decide is the same for machines of the same lanes");
	diags_free(&d);
	arena_free(&a);
	free(b.at);
	free(c.at);
	unlink(path);
}

/* --- refusals --- */

static void test_refusals(void)
{
	struct kit k, other;
	esp_error *error;
	esp_program *p;
	open_kit(&k, &uncached, tiny_model, NULL, NULL);
	make_kit(&other, NULL, weights, NULL);
	tap_ok(esp_program_save(other.program, path_of("none"), NULL, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "no-code"),
	       "what is interpreted has no code to save");
	const struct {
		esp_save_options options;
		const char *what;
	} wrong[] = {
	    {{.size = sizeof(esp_save_options), .form = 7}, "a form that there is not"},
	    {{.size = sizeof(esp_save_options), .form = ESP_SAVE_OBJECT}, "an object without a name"},
	    {{.size = sizeof(esp_save_options), .form = ESP_SAVE_OBJECT, .symbol = "2b"},
	     "a name that is none"},
	    {{.size = sizeof(esp_save_options), .form = ESP_SAVE_OBJECT, .symbol = "a b"},
	     "a name of two words"},
	    {{.size = sizeof(esp_save_options), .weights = other.weights}, "weights of another context"},
	    {{.size = 3}, "a size that is none"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		tap_ok(esp_program_save(k.program, path_of("none"), &wrong[i].options, &error) ==
			       ESP_ERROR_ARGUMENT &&
			   error_is(error, "bad-argument") && access(path_of("none"), F_OK) != 0,
		       "%s is refused", wrong[i].what);
	tap_ok(esp_program_save(k.program, path_of("no/folder"), NULL, &error) == ESP_ERROR_SYSTEM &&
		   error_is(error, "cannot-write"),
	       "a folder that is not there");
	tap_ok(esp_program_save(k.program, "/dev/full", NULL, &error) == ESP_ERROR_SYSTEM &&
		   error_is(error, "cannot-write"),
	       "a disk without room");
	tap_ok(esp_program_load(k.context, path_of("none"), &p, &error) == ESP_ERROR_INPUT && !p &&
		   error_is(error, "cannot-read"),
	       "a file that is not there");
	tap_ok(esp_program_load(k.context, folder, &p, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "cannot-read"),
	       "a folder is no program");
	tap_ok(esp_program_load(k.context, "/dev/null", &p, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "cannot-read"),
	       "nor a device");
	tap_ok(esp_program_load(k.context, write_text("none", ""), &p, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "bad-image"),
	       "nor an empty file");
	tap_ok(esp_program_load(k.context, weights, &p, &error) == ESP_ERROR_INPUT &&
		   error_is(error, "bad-image"),
	       "nor weights");
	tap_ok(esp_program_load(NULL, weights, &p, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument") &&
		   esp_program_load_memory(k.context, NULL, 1, &p, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument") &&
		   esp_program_save(NULL, "x", NULL, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument") && !esp_program_has_weights(NULL),
	       "arguments that are NULL");
	esp_context_close(k.context, NULL);
	tap_ok(esp_program_save(k.program, path_of("x"), NULL, NULL) == ESP_ERROR_CLOSED &&
		   esp_program_load(k.context, saved, &p, NULL) == ESP_ERROR_CLOSED && !p,
	       "a context that was closed");
	free_kit(&k);
	free_kit(&other);
	unlink(path_of("none"));
}

/* --- sizes instead of weights --- */

static void test_sizes(void)
{
	struct kit k;
	esp_error *error;
	int64_t sizes[] = {4, 2}, size;
	esp_program_options o = {.size = sizeof o, .sizes = sizes};
	open_kit(&k, &uncached, tiny_model, NULL, NULL);
	esp_program *p = NULL;
	tap_ok(!esp_program_create(k.model, NULL, &o, &p, NULL) &&
		   strcmp(esp_program_size(p, 0, &size), "V") == 0 && size == 4 &&
		   esp_program_size(p, 1, &size) && size == 2,
	       "a program has the sizes that are told");
	tap_ok(esp_binding_create(p, NULL, &k.binding, &error) == ESP_ERROR_ARGUMENT &&
		   error_is(error, "bad-argument"),
	       "and no weights");
	esp_program_free(p);
	sizes[1] = 0;
	tap_ok(esp_program_create(k.model, NULL, &o, &p, &error) == ESP_ERROR_ARGUMENT && !p &&
		   error_is(error, "bad-argument"),
	       "a size of nothing is refused");
	free_kit(&k);
}

/* --- a model without parameters --- */

static void test_bare(void)
{
	static const char text[] = "model bare\nstructure none\ninput x[2]\noutput y = x + x\n";
	const int64_t none[] = {0};
	const size_t two = 2;
	const float x[] = {3, 4};
	const esp_array a = {"x", ESP_F32, 1, &two, x};
	const esp_program_options o = {.size = sizeof o, .sizes = none};
	struct kit k = {0};
	esp_program *p = NULL;
	const char *path = path_of("bare");
	esp_context_create(&uncached, &k.context, NULL);
	esp_model_parse(k.context, "bare.ra", text, strlen(text), &k.model, NULL);
	esp_program_create(k.model, NULL, &o, &k.program, NULL);
	tap_ok(!esp_program_save(k.program, path, NULL, NULL) && !esp_program_load(k.context, path, &p, NULL) &&
		   esp_program_has_weights(p),
	       "a program without parameters has all weights that it needs");
	tap_ok(!esp_binding_open(p, NULL, &k.binding, NULL), "and is opened without any");
	esp_binding_free(k.binding);
	k.binding = NULL;
	esp_error *error = NULL;
	const float *y = NULL;
	if (!esp_binding_create(p, NULL, &k.binding, &error) && !esp_session_create(k.binding, &k.session, &error) &&
	    !esp_session_call(k.session, &a, 1, &error))
		y = esp_session_root(k.session, 0, 0);
	tap_ok(y && y[0] == 6 && y[1] == 8, "and run: %s", error ? esp_error_text(error) : "6 and 8");
	esp_error_free(error);
	esp_program_free(p);
	free_kit(&k);
	unlink(path);
}

/* --- memory --- */

static esp_status save_and_load(const esp_context_options *c, esp_error **error)
{
	struct kit k;
	esp_program *p = NULL;
	char path[128];
	strcpy(path, path_of("memory"));
	esp_status s = open_kit(&k, c, folding_model, NULL, error);
	esp_save_options how = {.size = sizeof how, .weights = k.weights};
	if (!s)
		s = esp_program_save(k.program, path, &how, error);
	if (!s)
		s = esp_program_load(k.context, path, &p, error);
	if (!s)
		s = esp_binding_create(p, NULL, &k.binding, error);
	esp_program_free(p);
	free_kit(&k);
	unlink(path);
	return s;
}

static void test_accounts(void)
{
	bool memory = true, kept = true;
	esp_status s = ESP_ERROR_MEMORY;
	long n;
	for (n = 0; s && n < 3000; n += 1 + n / 40) {
		struct account a = {.left = n};
		esp_context_options c = uncached;
		esp_error *error = NULL;
		c.resize = account_resize;
		c.user = &a;
		s = save_and_load(&c, &error);
		memory &= s == ESP_OK || s == ESP_ERROR_MEMORY;
		esp_error_free(error);
		kept &= a.blocks == 0 && a.bytes == 0 && !a.wrong;
	}
	tap_ok(!s && memory, "memory that runs out on the way is told");
	tap_ok(kept, "and nothing is lost");
}

int main(void)
{
	static const char *const files[] = {"w", "o", "l", "n", "saved", "packed", "memory", "x"};
	if (!need_backend("saved programs"))
		return tap_done();
	make_folder();
	strcpy(weights, write_weights("w", tiny_weights, 2));
	strcpy(other_weights, write_weights("o", others, 2));
	strcpy(larger_weights, write_weights("l", larger, 2));
	strcpy(nameless, write_weights("n", tiny_weights, 1));
	strcpy(saved, path_of("saved"));
	strcpy(packed, path_of("packed"));
	tap_ok(save_to(saved, tiny_model, NULL, ESP_SAVE_PROGRAM, false), "a program is saved");
	tap_ok(save_to(packed, tiny_model, NULL, ESP_SAVE_PROGRAM, true), "and one with its weights");
	test_plain();
	test_packed();
	test_memory();
	if (has_backend("llvm")) {
		test_targets();
		test_foreign_weights();
	} else {
		tap_skip("no LLVM back end", "programs for other machines");
	}
	test_refusals();
	test_sizes();
	test_bare();
	test_accounts();
	remove_folder(files, sizeof files / sizeof *files);
	return tap_done();
}
