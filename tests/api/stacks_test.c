/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Models whose rows are stacks of instances, such as the images of a batch, of which each becomes a row: callers see nothing of
 * it.  Results have the bits that `unstack off` gives, whatever the number of rows and threads and after a program was saved; what is
 * wrong with a row is said of the caller's row; profiles and costs count the caller's nodes. */
#include "api/espalier_profile.h"
#include "tests/api/support.h"
#include "tests/backends.h"

enum { INSTANCES = 4, CHANNELS = 16, SIDE = 12, MOST = 3, ROW = INSTANCES * CHANNELS * SIDE * SIDE, RESULTS = ROW + INSTANCES * CHANNELS };

static const char images[] = "model images\nstructure none\ninput x[4, C, 12, 12] within 1\nparam W[C, C], V[C, C]\nnode:\n"
			     "    a[b, k, i, j] = maximum(sum(W[k, c] * x[b, c, i + u - 1, j] for c, u in 3), 0)\n"
			     "output y = a\n"
			     "output z[b, l] = sum(V[l, k] * a[b, k, i, j] for k, i, j)\n";

struct setting {
	const char *schedule, *backend;
	int threads;
	bool saved; /* the program is written to a file and read from there */
};

static float x[MOST * ROW];

static void fill_rows(void)
{
	for (int i = 0; i < MOST * ROW; i++)
		x[i] = (float)(i * 37 % 201 - 100) / 100;
}

static bool open_program(struct kit *k, const struct setting *s, esp_error **error)
{
	const esp_program_options o = {.size = sizeof o, .backend = s->backend, .schedule = s->schedule};
	const char *path = path_of("images.espimg");
	if (esp_program_create(k->model, k->weights, &o, &k->program, error))
		return false;
	if (!s->saved)
		return true;
	bool written = !esp_program_save(k->program, path, NULL, error);
	esp_program_free(k->program);
	k->program = NULL;
	return written && !esp_program_load(k->context, path, &k->program, error);
}

static void open_kit(struct kit *k, const struct setting *s)
{
	const esp_context_options o = {.size = sizeof o, .threads = s->threads};
	esp_error *error = NULL;
	memset(k, 0, sizeof *k);
	if (esp_context_create(&o, &k->context, &error) ||
	    esp_model_parse(k->context, "images.ra", images, strlen(images), &k->model, &error) ||
	    esp_weights_open(k->context, path_of("w.safetensors"), &k->weights, &error) || !open_program(k, s, &error) ||
	    esp_binding_create(k->program, k->weights, &k->binding, &error) || esp_forest_create(k->program, &k->forest, &error) ||
	    esp_session_create(k->binding, &k->session, &error) || esp_session_record(k->session, 1, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
}

static esp_status run_rows(struct kit *k, size_t rows, esp_error **error)
{
	const void *data[] = {x};
	const esp_structures s = {.size = sizeof s, .structures = rows, .data = data};
	esp_forest_clear(k->forest);
	if (esp_forest_add_many(k->forest, &s, error))
		abort();
	return esp_session_run(k->session, k->forest, error);
}

/* --- results --- */

static bool copy_results(const struct kit *k, size_t rows, float *to)
{
	bool all = true;
	for (size_t i = 0; i < rows; i++, to += RESULTS) {
		const float *y = esp_session_output(k->session, 0, i, 0), *z = esp_session_output(k->session, 1, i, 0);
		all &= y && z;
		if (y && z) {
			memcpy(to, y, ROW * sizeof *y);
			memcpy(to + ROW, z, (RESULTS - ROW) * sizeof *z);
		}
	}
	return all;
}

/* Runs as many rows at once as there are, then fewer; the kernels' rows are instances or not, as the schedule says. */
static bool gives(const struct setting *s, const float *expected)
{
	static const size_t rows[] = {3, 1, 2};
	static float results[MOST * RESULTS];
	struct kit k;
	bool same = true;
	open_kit(&k, s);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		memset(results, 0xff, sizeof results);
		same &= !run_rows(&k, rows[i], NULL) && copy_results(&k, rows[i], results) &&
			memcmp(results, expected, rows[i] * RESULTS * sizeof *results) == 0;
		const esp_range *first = esp_profile_range(esp_session_profile(k.session), 0);
		same &= first && (size_t)first->rows == rows[i] * (strcmp(s->schedule, "unstack off\n") ? INSTANCES : 1);
	}
	free_kit(&k);
	return same;
}

static void test_results(const char *backend)
{
	static const char *const schedules[] = {"unstack all\n", "unstack off\n"};
	static float expected[MOST * RESULTS];
	struct kit k;
	open_kit(&k, &(struct setting){"unstack off\n", backend, 1, false});
	tap_ok(!run_rows(&k, MOST, NULL) && copy_results(&k, MOST, expected), "%s: rows that stay whole are computed", backend);
	free_kit(&k);
	for (int threads = 1; threads <= 2; threads++)
		for (int saved = 0; saved <= (strcmp(backend, "interpreter") != 0); saved++)
			for (int i = 0; i < 2; i++)
				tap_ok(gives(&(struct setting){schedules[i], backend, threads, saved}, expected),
				       "%s: same bits of 3, 1 and 2 rows, threads %d, saved %d, %.11s", backend, threads, saved, schedules[i]);
}

/* --- bounds --- */

/* Refused as it is where rows stay whole, or else not refused there either. */
static bool refuses_alike(struct kit kits[2], size_t rows, const char *message, int64_t structure)
{
	bool alike = true;
	for (int i = 0; i < 2; i++) {
		esp_error *error = NULL;
		bool refused = run_rows(&kits[i], rows, &error) == ESP_ERROR_INPUT;
		const esp_diagnostic *d = refused ? esp_error_get(error, 0) : NULL;
		alike &= d && strcmp(d->id, "input-beyond-bound") == 0 && strcmp(d->message, message) == 0 && d->structure == structure &&
			 d->node == 0 && !esp_session_output(kits[i].session, 0, 0, 0);
		if (d && !alike)
			printf("# %s: structure %lld, node %lld\n", d->message, (long long)d->structure, (long long)d->node);
		esp_error_free(error);
	}
	return alike;
}

static void test_bounds(void)
{
	struct kit kits[2];
	float *last = x + ROW - 1, *third = x + 2 * ROW + ((2 * CHANNELS + 3) * SIDE + 4) * SIDE + 5, were[] = {*last, *third};
	open_kit(&kits[0], &(struct setting){"unstack all\n", "interpreter", 1, false});
	open_kit(&kits[1], &(struct setting){"unstack off\n", "interpreter", 1, false});
	*third = 2;
	tap_ok(!run_rows(&kits[0], 1, NULL) && !run_rows(&kits[0], 2, NULL), "rows before one that is beyond the bound are taken");
	tap_ok(refuses_alike(kits, 3, "'x[2, 3, 4, 5]' of node 0 of input 2 is 2, but the model declares it within 1", 2),
	       "an element of the third row is named as the caller has it");
	*third = were[1];
	*last = -3;
	tap_ok(refuses_alike(kits, 1, "'x[3, 15, 11, 11]' of node 0 of input 0 is -3, but the model declares it within 1", 0) &&
		   refuses_alike(kits, 3, "'x[3, 15, 11, 11]' of node 0 of input 0 is -3, but the model declares it within 1", 0),
	       "the last element of a row, alone and before others");
	tap_ok(esp_forest_check(kits[0].forest, NULL) == ESP_ERROR_INPUT, "a check without a run refuses it, too");
	*last = were[0];
	tap_ok(!run_rows(&kits[0], 3, NULL) && !esp_forest_check(kits[0].forest, NULL), "rows within the bound are taken after that");
	free_kit(&kits[0]);
	free_kit(&kits[1]);
}

/* --- counts --- */

static void test_counts(void)
{
	struct kit k;
	open_kit(&k, &(struct setting){"unstack all\n", "interpreter", 1, false});
	if (run_rows(&k, MOST, NULL))
		abort();
	const esp_profile *p = esp_session_profile(k.session);
	const esp_profile_facts *f = esp_profile_describe(p);
	const esp_costs *costs = esp_session_costs(k.session);
	tap_ok(f && f->structures == MOST && f->nodes == MOST && f->leaves == MOST && f->edges == 0 && f->levels == 1,
	       "a profile counts the caller's structures and nodes");
	tap_ok(esp_profile_nodes(p, 0) == MOST, "and the nodes of its level");
	tap_ok(costs->structures == f->structures && costs->nodes == f->nodes && costs->batches == f->levels, "as costs do");
	tap_is((int)esp_profile_range(p, 0)->rows, MOST * INSTANCES, "rows of kernels are instances");
	free_kit(&k);
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "images.espimg"};
	static float w[CHANNELS * CHANNELS], v[CHANNELS * CHANNELS];
	const struct tensor weights[] = {{"W", CHANNELS, CHANNELS, w}, {"V", CHANNELS, CHANNELS, v}};
	if (!make_folder())
		return 1;
	for (int i = 0; i < CHANNELS * CHANNELS; i++) {
		w[i] = (float)(i * 7 % 23 - 11) / 40;
		v[i] = (float)(i * 5 % 19 - 9) / 300;
	}
	write_weights("w.safetensors", weights, 2);
	fill_rows();
	test_bounds();
	test_counts();
	test_results("interpreter");
	skip_backends();
	for (int i = 0; backend_at(i); i++)
		test_results(backend_at(i));
	remove_folder(names, 2);
	return tap_done();
}
