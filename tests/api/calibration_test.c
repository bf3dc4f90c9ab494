/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights that a calibration quantises, by the public interface: their bounds and errors, how they are used, swapped and
 * saved, and what is refused. */
#include "tests/api/calibrated.h"
#include "tests/backends.h"

#include <math.h>

enum { D = 16, WORDS = 4 };

/* The states of leaves have no bound. */
static const char linear[] = "model linear\nstructure tree(left, right)\ninput word : token\n"
			    "param E[V, D]\nparam L[D, D], R[D, D]\nstate h[D]\n"
			    "leaf:\n    h = E[word]\ninner:\n    h = L @ left.h + R @ right.h\n"
			    "output y = h at every node\n";
/* Leaves and inner nodes multiply the same value, each by a product of its own. */
static const char shared_model[] = "model shared\nstructure tree(left, right)\ninput word : token\n"
				   "param E[V, D]\nparam L[D, D], R[D, D]\nstate h[D]\n"
				   "leaf:\n    h = tanh(L @ E[word])\ninner:\n    h = R @ E[word] + left.h + right.h\n"
				   "output y = h at every node\n";
static const char other_model[] = "model linear\nstructure tree(left, right)\ninput word : token\n"
				  "param E[V, D]\nparam L[D, D], R[D, D]\nstate h[D]\n"
				  "leaf:\n    h = E[word]\ninner:\n    h = L @ left.h - R @ right.h\n"
				  "output y = h at every node\n";
static const char *model = linear;
static const char *rules;
static int inner_word = -1;
static float embeddings[WORDS * D], left[D * D], right[D * D];
static char plain[128], broken[128], quantised[128], again[128], kept[128], damaged[128], program[128];

/* Word 1 has the largest magnitudes of words 0 to 2, words 3's are ten times as large. */
static void make_weights(void)
{
	for (int i = 0; i < D; i++) {
		embeddings[i] = 0.25f - i / 64.0f;
		embeddings[D + i] = i % 3 ? 0.5f : -0.5f;
		embeddings[2 * D + i] = i / 40.0f;
		embeddings[3 * D + i] = 10 * embeddings[D + i];
	}
	for (int i = 0; i < D * D; i++) {
		left[i] = (float)(i * 37 % 101) / 101 - 0.45f;
		right[i] = i / D == 5 ? 0 : (float)(i * 53 % 89) / 89 - 0.55f;
	}
	const struct tensor all[] = {{"E", WORDS, D, embeddings}, {"L", D, D, left}, {"R", D, D, right}};
	strcpy(plain, write_weights("plain", all, 3));
	left[7] = NAN;
	strcpy(broken, write_weights("broken", all, 3));
	strcpy(quantised, path_of("quantised"));
	strcpy(again, path_of("again"));
	strcpy(kept, path_of("kept"));
	strcpy(damaged, path_of("damaged"));
	strcpy(program, path_of("program"));
}

/* --- one use --- */

/* The pair of two words. */
static esp_status add_pair(const struct use *u, int first, int second)
{
	return add_words(u, first, second, inner_word);
}

static esp_status open_program(struct use *u, const char *weights, const char *backend, const char *precision, esp_error **e)
{
	esp_program_options o = {.size = sizeof o, .backend = backend, .precision = precision, .rules = rules};
	esp_status s = open_texts(u, model, weights, e);
	s = s ? s : esp_program_create(u->model, u->weights, &o, &u->program, e);
	return s ? s : bind_use(u, e);
}

static esp_status open_calibration(struct use *u, const char *weights, esp_error **e)
{
	esp_program_options o = {.size = sizeof o, .backend = "interpreter", .rules = rules};
	esp_status s = open_texts(u, model, weights, e);
	s = s ? s : esp_calibration_create(u->model, u->weights, &o, &u->calibration, e);
	u->program = esp_calibration_program(u->calibration);
	return s ? s : bind_use(u, e);
}

static bool run_pair(const struct use *u, int first, int second, float *y)
{
	return run_words(u, first, second, inner_word, y, D);
}

/* The pair by a program of its own. */
static bool find_pair(const char *weights, const char *backend, const char *precision, int first, int second, float *y)
{
	struct use u;
	esp_error *e = NULL;
	bool ok = !open_program(&u, weights, backend, precision, &e) && run_pair(&u, first, second, y);
	if (e)
		printf("# %s", esp_error_text(e));
	esp_error_free(e);
	close_use(&u);
	return ok;
}

/* Calibrates with the pairs of words 0 to 2, and writes. */
static esp_status quantise(const char *weights, const char *keep, const char *precision, const char *path, bool run,
			   esp_error **e)
{
	struct use u;
	float y[D];
	esp_quantise_options o = {.size = sizeof o, .precision = precision, .keep = &keep, .kept = keep != NULL};
	esp_status s = open_calibration(&u, weights, e);
	bool ok = !s && (!run || (run_pair(&u, 0, 1, y) && !esp_calibration_add(u.calibration, u.session, e) &&
				  run_pair(&u, 2, 1, y) && !esp_calibration_add(u.calibration, u.session, e)));
	s = s ? s : ok ? esp_calibration_write(u.calibration, &o, path, e) : ESP_ERROR_ARGUMENT;
	close_use(&u);
	return s;
}

static bool is_refused(esp_status s, esp_error *e, const char *id)
{
	bool is = s && e && strcmp(esp_error_get(e, 0)->id, id) == 0;
	if (e && !is)
		printf("# %s", esp_error_text(e));
	esp_error_free(e);
	return is;
}

/* --- what is written --- */

static void test_products(void)
{
	struct use u;
	float y[D];
	bool ok = !open_calibration(&u, plain, NULL) && run_pair(&u, 0, 1, y) && !esp_calibration_add(u.calibration, u.session, NULL);
	const esp_product *p = esp_calibration_product(u.calibration, 0);
	tap_ok(ok && p && strcmp(p->name, "L*h") == 0 && p->terms == D && p->sums == D && p->bound_is == ESP_BOUND_NONE,
	       "a product of a state without a bound");
	tap_ok(p && p->observed == 0.25, "the largest magnitude that it multiplied");
	p = esp_calibration_product(u.calibration, 1);
	tap_ok(p && p->observed == 0.5 && !esp_calibration_product(u.calibration, 2), "and that of the other product");
	close_use(&u);
	esp_error *e = NULL;
	tap_ok(!quantise(plain, NULL, NULL, quantised, true, &e), "weights are quantised");
	esp_error_free(e);
	ok = !open_calibration(&u, quantised, NULL) && run_pair(&u, 0, 1, y);
	p = esp_calibration_product(u.calibration, 1);
	tap_ok(ok && p && p->bound_is == ESP_BOUND_CALIBRATED && p->bound == 0.5 && strcmp(p->computed, "i8") == 0,
	       "a program of these weights computes the product in i8, by the bound");
	close_use(&u);
}

static double find_error(const float *a, const float *b)
{
	double worst = 0;
	for (int i = 0; i < D; i++)
		worst = fmax(worst, fabs((double)a[i] - b[i]));
	return worst;
}

static void test_results(void)
{
	float wide[D], narrow[D], other[D];
	bool ok = find_pair(plain, "interpreter", NULL, 0, 1, wide) && find_pair(quantised, "interpreter", NULL, 0, 1, narrow);
	double error = find_error(wide, narrow);
	tap_ok(ok && error > 0 && error < 0.02, "results differ by %.2g", error);
	ok = find_pair(quantised, "interpreter", "f32", 0, 1, other);
	tap_ok(ok && find_error(wide, other) < 0.02 && find_error(other, narrow) > 0,
	       "with precision f32 the same weights are multiplied in f32");
	ok = find_pair(quantised, "interpreter", NULL, 1, 1, wide) && find_pair(quantised, "interpreter", NULL, 3, 3, narrow);
	tap_ok(ok && memcmp(wide, narrow, sizeof wide) == 0, "what is beyond the bound counts as the bound");
	find_pair(quantised, "interpreter", NULL, 2, 0, narrow);
	for (int b = 0; backend_at(b); b++)
		tap_ok(find_pair(quantised, backend_at(b), NULL, 2, 0, other) && memcmp(narrow, other, sizeof other) == 0,
		       "the same bits by %s", backend_at(b));
	skip_backends();
}

static size_t read_all(const char *path, char *to, size_t n)
{
	FILE *f = fopen(path, "rb");
	size_t got = f ? fread(to, 1, n, f) : 0;
	if (f)
		fclose(f);
	return got;
}

/* The integers, which stand last, are what the weights that are read of them are quantised to again. */
static void test_integers(void)
{
	static char a[1 << 16], b[1 << 16];
	esp_error *e = NULL;
	bool ok = !quantise(quantised, NULL, NULL, again, true, &e);
	size_t n = read_all(quantised, a, sizeof a), m = read_all(again, b, sizeof b), integers = 2 * D * D;
	tap_ok(ok && n == m && n > integers && memcmp(a + n - integers, b + m - integers, integers) == 0,
	       "quantised weights have the same integers when they are quantised again");
	if (e)
		printf("# %s", esp_error_text(e));
	esp_error_free(e);
	tap_ok(n < 4000, "the file has %zu bytes", n);
}

/* --- other uses --- */

static void test_kept(void)
{
	struct use u;
	esp_error *e = NULL;
	bool ok = !quantise(plain, "L", NULL, kept, true, &e) && !open_calibration(&u, kept, &e);
	const esp_product *l = ok ? esp_calibration_product(u.calibration, 0) : NULL,
			  *r = ok ? esp_calibration_product(u.calibration, 1) : NULL;
	tap_ok(l && r && strcmp(l->computed, "f32") == 0 && l->why && strcmp(r->computed, "i8") == 0, "a kept part stays in f32");
	close_use(&u);
	esp_error_free(e);
	for (int i = 0; i < 2; i++) {
		const char *precision = i ? "i8x3" : "i16";
		ok = !quantise(plain, "R*h", precision, kept, true, NULL) && !open_calibration(&u, kept, NULL);
		l = ok ? esp_calibration_product(u.calibration, 0) : NULL;
		tap_ok(l && strcmp(l->computed, precision) == 0, "in %s, and a part that is named by its product", precision);
		close_use(&u);
	}
	tap_ok(quantise(plain, NULL, "bf16", kept, true, &e) == ESP_ERROR_ARGUMENT && error_is(e, "bad-argument"), "not in bf16");
}

static void test_swap(void)
{
	struct use u, other;
	float y[D], expected[D];
	esp_error *e = NULL;
	bool ok = !open_program(&u, quantised, "interpreter", NULL, NULL) && !esp_weights_open(u.context, again, &other.weights, NULL);
	ok = ok && !esp_binding_swap(u.binding, other.weights, &e) && run_pair(&u, 0, 1, y) &&
	     find_pair(again, "interpreter", NULL, 0, 1, expected);
	tap_ok(ok && memcmp(y, expected, sizeof y) == 0, "other quantised weights take the place of the first, with their bounds");
	esp_weights_free(other.weights);
	ok = ok && !esp_weights_open(u.context, plain, &other.weights, NULL);
	esp_status s = ok ? esp_binding_swap(u.binding, other.weights, &e) : ESP_OK;
	tap_ok(is_refused(s, e, "missing-weight"), "weights without the bounds do not");
	esp_weights_free(other.weights);
	close_use(&u);
}

static void test_other_model(void)
{
	struct use u;
	esp_error *e = NULL;
	esp_status s = open_texts(&u, other_model, quantised, NULL);
	s = s ? s : esp_program_create(u.model, u.weights, NULL, &u.program, &e);
	tap_ok(is_refused(s, e, "quantised-model"), "weights of another model are refused");
	close_use(&u);
}

static void test_refusals(void)
{
	esp_error *e = NULL;
	esp_status s = quantise(plain, NULL, NULL, kept, false, &e);
	tap_ok(is_refused(s, e, "not-calibrated"), "a calibration without a node");
	e = NULL, s = quantise(plain, "Q", NULL, kept, true, &e);
	tap_ok(is_refused(s, e, "unknown-product"), "a part that is not there");
	e = NULL, s = quantise(broken, NULL, NULL, kept, true, &e);
	tap_ok(s != ESP_OK && e, "a weight that is not a number: %s", e ? esp_error_get(e, 0)->id : "none");
	esp_error_free(e);
	e = NULL, s = quantise(plain, NULL, "f32", kept, true, &e);
	tap_ok(is_refused(s, e, "bad-argument"), "a precision that is none");
}

/* A weight is looked at even where no run has met it. */
static void test_not_finite(void)
{
	static float e3[WORDS * D];
	memcpy(e3, embeddings, sizeof e3);
	e3[3 * D + 1] = INFINITY;
	left[7] = 0;
	const struct tensor all[] = {{"E", WORDS, D, e3}, {"L", D, D, left}, {"R", D, D, right}};
	strcpy(broken, write_weights("broken", all, 3));
	esp_error *e = NULL;
	esp_status s = quantise(broken, NULL, NULL, kept, true, &e);
	tap_ok(is_refused(s, e, "weight-not-finite"), "a weight that is infinite");
}

/* --- other models --- */

/* The inner node has magnitudes that leaves, whose product comes first, do not have. */
static void test_shared(void)
{
	float wide[D], narrow[D];
	model = shared_model;
	rules = "-tables";
	inner_word = 3;
	esp_error *e = NULL;
	bool ok = !quantise(plain, NULL, NULL, kept, true, &e) && find_pair(plain, "interpreter", NULL, 0, 1, wide) &&
		  find_pair(kept, "interpreter", NULL, 0, 1, narrow);
	if (e)
		printf("# %s", esp_error_text(e));
	esp_error_free(e);
	double error = ok ? find_error(wide, narrow) : NAN;
	tap_ok(error > 0 && error < 0.2, "products of one value have the bound of the largest: results differ by %.2g", error);
	model = linear;
	rules = NULL;
	inner_word = -1;
}

/* One of the products is declared, the other is not; its states have no bound. */
static void test_declared(void)
{
	static const char *const declared[] = {"L[D, D] products i8, R[D, D]", "L[D, D], R[D, D] products i8"};
	float wide[D], narrow[D], reference[D];
	for (int i = 0; i < 2; i++) {
		char text[400];
		struct use u;
		esp_error *e = NULL;
		find_pair(plain, "interpreter", NULL, 0, 1, wide);
		snprintf(text, sizeof text, "model linear\nstructure tree(left, right)\ninput word : token\nparam E[V, D]\n"
			 "param %s\nstate h[D]\nleaf:\n    h = E[word]\ninner:\n    h = L @ left.h + R @ right.h\n"
			 "output y = h at every node\n", declared[i]);
		model = text;
		bool ok = !open_calibration(&u, plain, &e) && run_pair(&u, 0, 1, reference);
		tap_ok(ok && memcmp(wide, reference, sizeof wide) == 0, "what is observed is in f32, whatever the model declares");
		close_use(&u);
		ok = ok && !quantise(plain, NULL, NULL, kept, true, &e) && find_pair(kept, "interpreter", NULL, 0, 1, narrow);
		double error = ok ? find_error(wide, narrow) : NAN;
		if (e)
			printf("# %s", esp_error_text(e));
		esp_error_free(e);
		tap_ok(error > 0 && error < 0.02, "a model that declares some products: results differ by %.2g", error);
		model = linear;
	}
}

/* Products of so few terms that integers of 16 bits need no limit, which have more values than I8. */
static void test_short(void)
{
	static float e2[WORDS * 2], l2[2 * 2];
	for (int i = 0; i < WORDS * 2; i++)
		e2[i] = 0.9f - i * 0.2f;
	for (int i = 0; i < 4; i++)
		l2[i] = 0.3f + i * 0.123f;
	const struct tensor all[] = {{"E", WORDS, 2, e2}, {"L", 2, 2, l2}};
	char path[128];
	float wide[D] = {0}, narrow[D] = {0};
	strcpy(path, write_weights("short", all, 2));
	struct use u;
	esp_error *e = NULL;
	model = "model short\nstructure tree(left, right)\ninput word : token\nparam E[V, K]\nparam L[K, K] products i16\n"
		"state h[K]\nleaf:\n    h = E[word]\ninner:\n    h = left.h + right.h\noutput y = L @ h at every node\n";
	bool ok = !open_calibration(&u, path, &e) && !add_pair(&u, 0, 1) && !esp_session_run(u.session, u.forest, &e) &&
		  !esp_calibration_add(u.calibration, u.session, &e);
	if (ok)
		memcpy(wide, esp_session_output(u.session, 0, 0, 2), 2 * sizeof *wide);
	esp_quantise_options o = {.size = sizeof o};
	ok = ok && !esp_calibration_write(u.calibration, &o, kept, &e);
	close_use(&u);
	memset(&u, 0, sizeof u);
	ok = ok && !open_program(&u, kept, "interpreter", NULL, &e) && !add_pair(&u, 0, 1) &&
	     !esp_session_run(u.session, u.forest, &e);
	if (ok)
		memcpy(narrow, esp_session_output(u.session, 0, 0, 2), 2 * sizeof *narrow);
	if (e)
		printf("# %s", esp_error_text(e));
	esp_error_free(e);
	double error = ok ? find_error(wide, narrow) : NAN;
	tap_ok(error < 2e-4, "short products in i16 keep weights that have no place in I8: results differ by %.2g", error);
	close_use(&u);
	model = linear;
}

/* --- damage --- */

/* Where the values of a tensor begin in a file. */
static char *find_values(char *file, const char *tensor)
{
	uint64_t header;
	char name[64];
	long begin = 0;
	memcpy(&header, file, sizeof header);
	snprintf(name, sizeof name, "\"%s\":", tensor);
	char *at = strstr(file + 8, name);
	if (at && sscanf(strstr(at, "data_offsets"), "data_offsets\":[%ld", &begin) == 1)
		return file + 8 + header + begin;
	return NULL;
}

static void test_damaged_number(const char *tensor, float number)
{
	static char file[1 << 16];
	struct use u;
	esp_error *e = NULL;
	size_t n = read_all(quantised, file, sizeof file);
	char *at = find_values(file, tensor);
	if (at)
		memcpy(at, &number, sizeof number);
	write_file("damaged", file, n);
	esp_status s = open_texts(&u, model, damaged, &e);
	tap_ok(at && is_refused(s, e, "bad-quantised"), "%s of %g", tensor, number);
	close_use(&u);
}

/* Replaces a piece of the header by another one of the same length. */
static void test_damaged_header(const char *piece, const char *by, const char *what)
{
	static char file[1 << 16];
	struct use u;
	esp_error *e = NULL;
	size_t n = read_all(quantised, file, sizeof file);
	char *at = strstr(file + 8, piece);
	if (at)
		memcpy(at, by, strlen(by));
	write_file("damaged", file, n);
	esp_status s = open_texts(&u, model, damaged, &e);
	s = s ? s : esp_program_create(u.model, u.weights, NULL, &u.program, &e);
	tap_ok(at && is_refused(s, e, "bad-quantised"), "%s", what);
	close_use(&u);
}

static void test_damage(void)
{
	static const float numbers[] = {0, -1, NAN, INFINITY};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		test_damaged_number("scale(L)", numbers[i]);
		test_damaged_number("bound(R*h)", numbers[i]);
	}
	test_damaged_number("bound(R*h)", 0x1p-64f);
	test_damaged_number("bound(R*h)", 0x1p64f);
	test_damaged_header("scale(L)", "scale(Q)", "a scale of a tensor that is not there");
	test_damaged_header("\"quantised 1\"", "\"quantised 9\"", "a version that is not known");
	test_damaged_header("\"precision\"", "\"prezision\"", "metadata without the precision");
	test_damaged_header("\"all\"", "\"alm\"", "rules that are not known");
	test_damaged_header("\"reassociate\"", "\"reassociatf\"", "arithmetic that is not known");
	test_damaged_header("\"precision\":\"i8\",\"math\":\"reassociate\"", "\"precision\":\"bf16\",\"math\":\"exact\"    ",
			    "a precision that no quantised weights have");
	test_damaged_header("[16,1]", "[2,8] ", "scales of another shape");
}

static void test_saved(void)
{
	struct use u;
	esp_program *loaded = NULL;
	esp_error *e = NULL;
	float y[D], expected[D];
	if (!need_backend("a saved program has quantised weights"))
		return;
	bool ok = !open_program(&u, quantised, usual_backend(), NULL, NULL) && run_pair(&u, 0, 1, expected);
	esp_save_options o = {.size = sizeof o, .weights = u.weights};
	ok = ok && !esp_program_save(u.program, program, &o, &e) && !esp_program_load(u.context, program, &loaded, &e);
	struct use l = {.program = loaded};
	ok = ok && !bind_use(&l, &e) && run_pair(&l, 0, 1, y);
	tap_ok(ok && memcmp(y, expected, sizeof y) == 0, "a saved program has quantised weights");
	esp_error_free(e);
	close_use(&l);
	close_use(&u);
}

/* A saved program takes weights that do not say that they are quantised, if they have its bounds. */
static void test_unsaid_bound(float bound, const char *id)
{
	static char file[1 << 16];
	struct use u;
	esp_program *loaded = NULL;
	esp_weights *weights = NULL;
	esp_error *e = NULL;
	if (!need_backend("a saved program takes bounds"))
		return;
	bool ok = !quantise(plain, NULL, "i16", kept, true, NULL) && !open_program(&u, kept, usual_backend(), NULL, NULL) &&
		  !esp_program_save(u.program, program, NULL, NULL) && !esp_program_load(u.context, program, &loaded, NULL);
	size_t n = read_all(kept, file, sizeof file);
	char *key = strstr(file + 8, "\"espalier\""), *at = find_values(file, "bound(R*h)");
	if (key && at) {
		memcpy(key, "\"expelled\"", 10);
		memcpy(at, &bound, sizeof bound);
	}
	write_file("damaged", file, n);
	ok = ok && key && at && !esp_weights_open(u.context, damaged, &weights, NULL);
	esp_binding *b = NULL;
	esp_status s = ok ? esp_binding_create(loaded, weights, &b, &e) : ESP_ERROR_ARGUMENT;
	tap_ok(ok && (id ? is_refused(s, e, id) : !s), "a bound of %g, of weights that say nothing, by a saved program", bound);
	esp_binding_free(b);
	esp_weights_free(weights);
	esp_program_free(loaded);
	close_use(&u);
}

/* How many products a program that opens the quantised weights computes by their bounds. */
static int count_bounded(const char *math, const char *assume)
{
	struct use u;
	char *text = NULL;
	int n = 0;
	esp_program_options o = {.size = sizeof o, .backend = "interpreter", .math = math, .assume = assume};
	bool ok = !open_texts(&u, model, quantised, NULL) && !esp_program_create(u.model, u.weights, &o, &u.program, NULL) &&
		  !esp_program_explain(u.program, ESP_FORM_TEXT, &text, NULL);
	for (const char *at = ok ? text : ""; (at = strstr(at, "a bound that comes with the weights")); at++)
		n++;
	esp_text_free(text);
	close_use(&u);
	return ok ? n : -1;
}

static void test_other_arithmetic(void)
{
	bool ok = !quantise(plain, NULL, NULL, quantised, true, NULL);
	int usual = count_bounded(NULL, NULL);
	tap_ok(ok && usual > 0 && count_bounded(NULL, "nothing") == usual, "bounds hold for the program that was observed");
	tap_ok(ok && count_bounded("fast", NULL) == 0 && count_bounded(NULL, "finite") == 0, "and for no other arithmetic, whose products may be others");
}

int main(void)
{
	static const char *const names[] = {"plain", "broken", "quantised", "again", "kept", "damaged", "program", "short"};
	if (!make_folder())
		return 1;
	make_weights();
	test_products();
	test_results();
	test_integers();
	test_kept();
	test_swap();
	test_other_model();
	test_refusals();
	test_shared();
	test_declared();
	test_short();
	test_not_finite();
	test_damage();
	test_saved();
	test_unsaid_bound(1, NULL);
	test_unsaid_bound(NAN, "bad-quantised");
	test_unsaid_bound(0, "bad-quantised");
	test_other_arithmetic();
	remove_folder(names, sizeof names / sizeof *names);
	return tap_done();
}
