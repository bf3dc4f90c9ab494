/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What one large minibatch has taken, a session and a forest give back when they are asked. */
#include "tests/api/support.h"

enum { MANY = 5000 };

static struct kit k;

static bool run(int structures)
{
	esp_error *error;
	esp_forest_clear(k.forest);
	for (int i = 0; i < structures; i++)
		if (esp_forest_add(k.forest, &pair, NULL))
			return false;
	if (esp_session_run(k.session, k.forest, &error) == ESP_OK)
		return true;
	printf("# %s\n", esp_error_text(error));
	esp_error_free(error);
	return false;
}

static size_t used(void)
{
	return esp_context_memory(k.context, NULL);
}

/* The root's row of twice = 2 (W E[0] + E[1]). */
static bool is_right(size_t structure)
{
	const float *row = esp_session_output(k.session, 0, structure, 2);
	return row && row[0] == 2 * (2 + 3) && row[1] == 2 * (1 + 4);
}

static bool has_results(void)
{
	return esp_session_output(k.session, 0, 0, 0) || esp_session_output(k.session, 1, 0, 0) ||
	       esp_session_root(k.session, 0, 0) || esp_session_state(k.session, 0, 0, 0) ||
	       esp_session_generation(k.session) || esp_session_profile(k.session);
}

static void test_trim(bool recorded)
{
	const char *how = recorded ? "recorded" : "plain";
	size_t fresh = used();
	esp_session_record(k.session, recorded, NULL);
	tap_ok(run(1) && is_right(0), "%s: a pair is run", how);
	size_t small = used();
	tap_ok(run(MANY) && is_right(MANY - 1) && !esp_session_profile(k.session) == !recorded,
	       "%s: then many at once", how);
	size_t large = used();
	esp_forest_trim(k.forest);
	tap_ok(used() < large && esp_forest_structures(k.forest) == 0, "%s: a forest gives its memory back", how);
	tap_ok(is_right(MANY - 1), "%s: results stay meanwhile", how);
	tap_ok(esp_session_trim(k.session, NULL) == ESP_OK && !has_results(), "%s: a session does, with its results",
	       how);
	printf("# %zu bytes, %zu with a pair, %zu with many, %zu trimmed\n", fresh, small, large, used());
	tap_ok(used() < small && large > small + MANY * 100, "%s: less is left than a pair takes", how);
	tap_ok(run(2) && is_right(1) && used() < small + 4096, "%s: the next run takes what it needs", how);
	tap_ok(run(MANY) && is_right(0) && used() <= large, "%s: and may be as large again", how);
	tap_ok(esp_session_costs(k.session)->structures % (2 * MANY + 3) == 0, "%s: what was spent is not forgotten",
	       how);
	esp_forest_trim(k.forest);
	tap_ok(esp_session_trim(k.session, NULL) == ESP_OK && esp_session_trim(k.session, NULL) == ESP_OK,
	       "%s: trimming again does nothing", how);
}

int main(void)
{
	esp_error *error;
	make_folder();
	const char *path = write_weights("w.safetensors", tiny_weights, 2);
	if (make_kit(&k, NULL, path, &error))
		return tap_ok(false, "%s", esp_error_text(error)), tap_done();
	size_t fresh = used();
	tap_ok(esp_session_trim(k.session, &error) == ESP_OK && used() == fresh, "there is nothing to trim at first");
	test_trim(false);
	tap_is((long)used(), (long)fresh, "all memory of runs comes back");
	test_trim(true);
	tap_ok(esp_session_trim(NULL, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "no session is refused");
	esp_forest_trim(NULL);
	free_kit(&k);
	remove_folder((const char *const[]){"w.safetensors"}, 1);
	return tap_done();
}
