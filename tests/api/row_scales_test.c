/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Weights that are kept in 8 bits and multiplied in f32, with scales that a calibration chooses, by the public interface: their
 * errors, who uses them, and what is refused. */
#include "tests/api/calibrated.h"
#include "tests/backends.h"

#include <math.h>

enum { D = 16, K = 20, WORDS = 2, OUTLIER = 9 };

/* L multiplies embeddings, R a state without a bound. */
static const char text[] = "model scaled\nstructure tree(left, right)\ninput word : token\n"
			   "param E[V, K]\nparam L[D, K], R[D, D]\nstate h[D]\n"
			   "leaf:\n    h = L @ E[word]\ninner:\n    h = R @ left.h + right.h\n"
			   "output y = h at every node\n";
static float embeddings[WORDS * K], left[D * K], right[D * D];
static char plain[128], scaled[128];

/* Row 3 of L has an outlier, in a column of which all that it multiplies is nearly zero. */
static void make_weights(void)
{
	for (int i = 0; i < WORDS * K; i++)
		embeddings[i] = i % K == OUTLIER ? 1e-6f : (float)(i * 29 % 83) / 83 - 0.5f;
	for (int i = 0; i < D * K; i++)
		left[i] = (float)(i * 37 % 101) / 101 - 0.45f;
	for (int i = 0; i < D * D; i++)
		right[i] = i / D == 5 ? 0 : (float)(i * 53 % 89) / 89 - 0.55f;
	left[3 * K + OUTLIER] = 4;
	const struct tensor all[] = {{"E", WORDS, K, embeddings}, {"L", D, K, left}, {"R", D, D, right}};
	strcpy(plain, write_weights("plain", all, 3));
	strcpy(scaled, path_of("scaled"));
}

/* --- one use --- */

/* Opens weights, and a program for them; with `calibrating` it is a calibration's. */
static bool open_use(struct use *u, const char *weights, const char *backend, const char *weights_as, bool calibrating)
{
	esp_program_options o = {.size = sizeof o, .backend = backend, .weights_as = weights_as, .rules = "-tables"};
	bool ok = !open_texts(u, text, weights, NULL);
	if (calibrating)
		ok = ok && !esp_calibration_create(u->model, u->weights, &o, &u->calibration, NULL);
	else
		ok = ok && !esp_program_create(u->model, u->weights, &o, &u->program, NULL);
	u->program = calibrating ? esp_calibration_program(u->calibration) : u->program;
	return ok && !bind_use(u, NULL);
}

static bool run_pair(const struct use *u, float *y)
{
	return run_words(u, 0, 1, -1, y, D);
}

static bool find_pair(const char *weights, const char *backend, const char *weights_as, float *y)
{
	struct use u;
	bool ok = open_use(&u, weights, backend, weights_as, false) && run_pair(&u, y);
	close_use(&u);
	return ok;
}

static double find_error(const float *a, const float *b)
{
	double worst = 0;
	for (int i = 0; i < D; i++)
		worst = fmax(worst, fabs((double)a[i] - b[i]));
	return worst;
}

/* --- errors --- */

/* The error of the sums of L with scales of the largest weight of each row, by its definition. */
static double find_plain_error(void)
{
	double error = 0, reference = 0;
	for (int j = 0; j < D; j++) {
		float largest = 0;
		for (int k = 0; k < K; k++)
			largest = fmaxf(largest, fabsf(left[j * K + k]));
		for (int k = 0; k < K; k++) {
			double w = left[j * K + k], q = nearbyint(w / (largest / 127)) * (largest / 127), squares = 0;
			for (int word = 0; word < WORDS; word++)
				squares += pow(embeddings[word * K + k], 2);
			error += squares * (w - q) * (w - q);
			reference += squares * w * w;
		}
	}
	return sqrt(error / reference);
}

static void test_errors(void)
{
	struct use u;
	float y[D];
	esp_quantise_options o = {.size = sizeof o, .weights_only = 1};
	bool ok = open_use(&u, plain, "interpreter", NULL, true) && run_pair(&u, y) &&
		  !esp_calibration_add(u.calibration, u.session, NULL) && !esp_calibration_write(u.calibration, &o, scaled, NULL);
	const esp_product *l = ok ? esp_calibration_product(u.calibration, 0) : NULL,
			  *r = ok ? esp_calibration_product(u.calibration, 1) : NULL;
	double expected = find_plain_error();
	tap_ok(l && strcmp(l->name, "L*E") == 0 && l->scaled && fabs(l->plain_error - expected) < 1e-4 * expected,
	       "the error of plain scales is %.5g", l ? l->plain_error : 0);
	tap_ok(l && l->chosen_error > 0 && l->chosen_error < 0.8 * l->plain_error,
	       "where an outlier multiplies next to nothing, that of the chosen ones is %.5g", l ? l->chosen_error : 0);
	tap_ok(r && r->scaled && r->chosen_error > 0 && r->chosen_error <= r->plain_error, "that of the other product is no larger");
	close_use(&u);
}

/* --- uses --- */

/* Programs for the file keep its integers: results are those of its weights in f32, but for the rounding of a scale. */
static void test_results(void)
{
	float wide[D] = {0}, largest[D] = {0}, narrow[D] = {0}, read[D] = {0}, other[D];
	bool ok = find_pair(plain, "interpreter", NULL, wide) && find_pair(plain, "interpreter", "i8", largest) &&
		  find_pair(scaled, "interpreter", NULL, narrow) && find_pair(scaled, "interpreter", "f32", read);
	double error = find_error(wide, narrow), before = find_error(wide, largest), rounding = find_error(read, narrow);
	tap_ok(ok && error > 0 && error < before, "results differ from those in f32 by %.3g instead of %.3g", error, before);
	tap_ok(ok && rounding < 1e-6, "and by %.3g from the weights of the file in f32", rounding);
	for (int b = 0; backend_at(b); b++)
		tap_ok(find_pair(scaled, backend_at(b), NULL, other) && memcmp(narrow, other, sizeof other) == 0, "the same bits by %s",
		       backend_at(b));
	skip_backends();
}

/* --- refusals --- */

static void test_refusals(void)
{
	static const char *const keep = "L", *const ids[] = {"bad-argument", "bad-argument", "not-calibrated"},
				 *const what[] = {"a precision", "a name", "nothing observed"};
	const esp_quantise_options options[] = {{.size = sizeof *options, .weights_only = 1, .precision = "i8"},
						{.size = sizeof *options, .weights_only = 1, .keep = &keep, .kept = 1},
						{.size = sizeof *options, .weights_only = 1}};
	struct use u;
	bool ok = open_use(&u, plain, "interpreter", NULL, true);
	for (int i = 0; i < 3; i++) {
		esp_error *e = NULL;
		esp_status s = ok ? esp_calibration_write(u.calibration, &options[i], scaled, &e) : ESP_OK;
		tap_ok(s && e && strcmp(esp_error_get(e, 0)->id, ids[i]) == 0, "weights only, with %s", what[i]);
		esp_error_free(e);
	}
	close_use(&u);
}

int main(void)
{
	static const char *const names[] = {"plain", "scaled"};
	if (!make_folder())
		return 1;
	make_weights();
	test_errors();
	test_results();
	test_refusals();
	remove_folder(names, sizeof names / sizeof *names);
	return tap_done();
}
