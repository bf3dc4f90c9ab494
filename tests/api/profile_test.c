/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Profiles: the events made from a record, the facts of recorded runs; recording changes no result. */
#include "api/profile.h"
#include "tests/api/support.h"

/* --- events of a record that was made up --- */

/* A range of the caller alone; rows divided among threads; columns of which the caller runs both chunks. */
static struct rt_job jobs[] = {
    {.step = 2,
     .steps = 2,
     .level = 0,
     .strategy = RT_ALONE,
     .begin = 0,
     .end = 8,
     .start = 110,
     .stop = 130},
    {.step = 2,
     .steps = 2,
     .level = 1,
     .strategy = RT_ROWS,
     .begin = 8,
     .end = 14,
     .start = 140,
     .stop = 190},
    {.step = 4,
     .steps = 1,
     .level = 1,
     .strategy = RT_COLUMNS,
     .begin = 8,
     .end = 14,
     .start = 200,
     .stop = 250},
};
static struct rt_event callers[] = {
    {2, 0, 0, 8, 0, 1, 1, false, 111, 119},   {3, 0, 0, 8, 0, 1, 1, false, 120, 129},
    {2, 1, 8, 12, 0, 1, 1, false, 141, 160},  {3, 1, 8, 12, 0, 1, 1, false, 160, 190},
    {4, 2, 8, 14, 0, 3, -1, false, 201, 220},
};
static struct rt_event members[] = {
    {2, 1, 12, 14, 0, 1, 1, false, 145, 150},
    {3, 1, 12, 14, 0, 1, 1, false, 151, 170},
    {4, 2, 8, 14, 3, 2, -1, true, 221, 249},
};

static bool event_is(const esp_event *e, int kind, int thread, int share, size_t range, int64_t start,
		     int64_t stop)
{
	return e->kind == kind && e->thread == thread && e->share == share && e->range == range &&
	       e->start == start && e->stop == stop;
}

static void test_events(void)
{
	struct rt_track lanes[] = {{.event = callers, .events = 5}, {.event = members, .events = 3}};
	const struct rt_profile r = {
	    .threads = 2, .tracks = 2, .track = lanes, .job = jobs, .jobs = 3, .phase = {100}};
	esp_event e[16];
	tap_is(profile_most_events(&r), 12, "calls, and a wait of each thread in each divided range");
	tap_is(profile_events(&r, 2, e), 11, "who came last did not wait");
	tap_ok(event_is(&e[0], ESP_EVENT_KERNEL, 0, 0, 0, 11, 19) && e[0].step == 0 && e[0].rows == 8,
	       "times are of the run, steps of those after binding");
	tap_ok(event_is(&e[3], ESP_EVENT_KERNEL, 0, 0, 1, 60, 90) &&
		   event_is(&e[4], ESP_EVENT_KERNEL, 0, 0, 2, 101, 120) && e[4].direction == -1 &&
		   e[4].blocks == 3,
	       "the caller's calls follow each other");
	tap_ok(event_is(&e[5], ESP_EVENT_KERNEL, 0, 1, 2, 121, 149) && e[5].block == 3 && e[5].blocks == 2,
	       "a share that the caller took over is its own work");
	tap_ok(event_is(&e[6], ESP_EVENT_WAIT, 0, 0, 2, 149, 150), "the caller waits for the end of a range");
	tap_ok(event_is(&e[7], ESP_EVENT_KERNEL, 1, 1, 1, 45, 50) &&
		   event_is(&e[8], ESP_EVENT_KERNEL, 1, 1, 1, 51, 70) &&
		   event_is(&e[9], ESP_EVENT_WAIT, 1, 1, 1, 70, 90),
	       "a member waits when it has done its share");
	tap_ok(event_is(&e[10], ESP_EVENT_WAIT, 1, 1, 2, 100, 150), "or all the time, when it has none");
}

static void test_past_leaves(void)
{
	const char *name = "hoist.inner";
	const struct image_step step = {.domain = IMAGE_DOMAIN_PAST_LEAVES, .blocks = 1};
	const struct image image = {.steps = 1, .step = &step, .kernels = 1, .kernel_name = &name};
	struct esp_profile *p = profile_create(&allocator_default, &image);
	tap_ok(p && esp_profile_step(p, 0)->over == ESP_OVER_INNER,
	       "what runs past the leaves goes over inner nodes");
	profile_free(p);
}

/* --- what must hold of every profile --- */

static bool phases_fit(const esp_profile *p)
{
	const esp_profile_facts *f = esp_profile_describe(p);
	int64_t run = f->linearize + f->fill, stop = run + f->run, busy = 0;
	bool ok = f->begin > 0 && f->linearize > 0 && f->fill >= 0 && f->run > 0;
	for (size_t i = 0; i < f->events; i++) {
		const esp_event *e = esp_profile_event(p, i);
		ok &= e->start >= run && e->stop <= stop;
		busy += e->thread ? 0 : e->stop - e->start;
	}
	return ok && busy <= f->run;
}

static bool in_order(const esp_profile *p)
{
	const esp_event *e, *before = NULL;
	bool ok = true;
	for (size_t i = 0; (e = esp_profile_event(p, i)); i++, before = e) {
		const esp_range *r = esp_profile_range(p, e->range);
		ok &= e->start <= e->stop && r && e->stop <= r->stop;
		ok &= r && (r->split == ESP_SPLIT_SUBTREES || e->start >= r->start);
		ok &= !before || e->thread > before->thread || e->start >= before->stop;
		ok &= e->thread >= 0 && e->thread < esp_profile_describe(p)->threads;
	}
	return ok;
}

static bool overlap(const esp_event *a, const esp_event *b)
{
	return a->step == b->step && a->row < b->row + b->rows && b->row < a->row + a->rows &&
	       a->block < b->block + b->blocks && b->block < a->block + a->blocks;
}

/* Whether the calls of a step in a range are all of its rows and blocks, each once. */
static bool is_covered(const esp_profile *p, size_t range, size_t step)
{
	const esp_range *r = esp_profile_range(p, range);
	int64_t area = 0;
	bool ok = true;
	const esp_event *a, *b;
	for (size_t i = 0; (a = esp_profile_event(p, i)); i++) {
		if (a->kind != ESP_EVENT_KERNEL || a->range != range || a->step != step)
			continue;
		area += a->rows * a->blocks;
		ok &= a->row >= r->row && a->row + a->rows <= r->row + r->rows;
		for (size_t k = 0; k < i; k++) {
			b = esp_profile_event(p, k);
			ok &= b->kind != ESP_EVENT_KERNEL || b->range != range || !overlap(a, b);
		}
	}
	return ok && area == r->rows * esp_profile_step(p, step)->blocks;
}

/* Whether the ranges of each step cover all of its rows and do not overlap. */
static bool all_covered(const esp_profile *p)
{
	const esp_profile_facts *f = esp_profile_describe(p);
	const size_t rows[] = {f->nodes, f->leaves, f->nodes - f->leaves, f->structures};
	bool ok = true;
	for (size_t step = 0; step < f->steps; step++) {
		const esp_step *s = esp_profile_step(p, step);
		int64_t seen = 0, next = s->over == ESP_OVER_INNER ? (int64_t)f->leaves : 0;
		for (size_t i = 0; i < f->ranges; i++) {
			const esp_range *r = esp_profile_range(p, i);
			if (step < r->step || step >= r->step + r->steps)
				continue;
			ok &= r->row == next && is_covered(p, i, step);
			ok &= r->level < 0 || r->rows == (int64_t)esp_profile_nodes(p, r->level);
			next += r->rows;
			seen += r->rows;
		}
		ok &= s->name && s->blocks >= 1 && seen == (int64_t)rows[s->over];
	}
	return ok;
}

static void check(const esp_profile *p, const char *what)
{
	tap_ok(p && phases_fit(p), "%s: phases are within the run, and calls within their phase", what);
	tap_ok(p && in_order(p), "%s: what a thread did does not overlap", what);
	tap_ok(p && all_covered(p), "%s: rows and columns are covered once", what);
}

/* --- a session that records --- */

/* Every second node is the parent of the two before: a tree of `inner` levels above its leaves. */
static void add_comb(esp_forest *f, int inner)
{
	enum { MOST = 64 };
	int32_t begin[2 * MOST + 2] = {0}, children[2 * MOST], words[2 * MOST + 1];
	int nodes = 2 * inner + 1, edges = 0;
	for (int i = 0; i < nodes; i++) {
		bool leaf = i == 0 || i % 2;
		words[i] = leaf ? i % 4 : -1;
		begin[i] = edges;
		if (!leaf) {
			children[edges++] = i - 2;
			children[edges++] = i - 1;
		}
	}
	begin[nodes] = edges;
	const void *const data[] = {words};
	const esp_structure s = {sizeof s, nodes, begin, children, nodes - 1, data};
	if (esp_forest_add(f, &s, NULL))
		abort();
}

static void test_session(struct kit *k)
{
	esp_error *error;
	add_comb(k->forest, 3);
	add_comb(k->forest, 5);
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK && !esp_session_profile(k->session),
	       "a session that does not record has no profile");
	tap_ok(esp_session_record(k->session, 1, &error) == ESP_OK && !error &&
		   !esp_session_profile(k->session),
	       "nor from the run before");
	tap_ok(esp_session_run(k->session, k->forest, NULL) == ESP_OK, "a run that is recorded");
	const esp_profile *p = esp_session_profile(k->session);
	const esp_profile_facts *f = esp_profile_describe(p);
	tap_ok(f && f->structures == 2 && f->nodes == 18 && f->leaves == 10 && f->edges == 16 &&
		   f->levels == 6 && f->threads == 1,
	       "it says what ran");
	tap_ok(esp_profile_nodes(p, 0) == 10 && esp_profile_nodes(p, 1) == 2 &&
		   esp_profile_nodes(p, 5) == 1 && esp_profile_nodes(p, 6) == 0,
	       "and how wide levels are");
	tap_ok(f->weight_bytes > 0 && f->state_bytes >= 18 * 2 * sizeof(float) && f->index_bytes > 0 &&
		   f->data_bytes > 0 && f->output_bytes > 0 && f->code_bytes == 0,
	       "and what memory it took");
	tap_ok(!esp_profile_step(p, f->steps) && !esp_profile_range(p, f->ranges) &&
		   !esp_profile_event(p, f->events),
	       "past the last there is nothing");
	check(p, "one thread");
}

static void test_changes(struct kit *k)
{
	esp_error *error;
	static const int32_t none[] = {0, 0}, no_word[] = {-1};
	static const void *const data[] = {no_word};
	static const esp_structure bad = {sizeof bad, 1, none, none, 0, data};
	esp_forest *refused = NULL;
	esp_forest_create(k->program, &refused, NULL);
	esp_forest_add(refused, &bad, NULL);
	tap_ok(esp_session_run(k->session, refused, NULL) == ESP_ERROR_INPUT &&
		   !esp_session_profile(k->session),
	       "a run that fails has no profile");
	esp_forest_clear(refused);
	tap_ok(esp_session_run(k->session, refused, NULL) == ESP_OK, "nothing runs");
	const esp_profile_facts *f = esp_profile_describe(esp_session_profile(k->session));
	tap_ok(f && f->nodes == 0 && f->events == 0 && f->levels == 0, "and the profile is empty");
	add_comb(refused, 40);
	esp_session_run(k->session, refused, NULL);
	check(esp_session_profile(k->session), "a deeper forest");
	tap_ok(esp_session_record(k->session, 0, &error) == ESP_OK && esp_session_profile(k->session),
	       "the last profile stays");
	esp_session_run(k->session, refused, NULL);
	tap_ok(!esp_session_profile(k->session), "until the next run, which is not recorded");
	esp_forest_free(refused);
}

static void test_nothing(void)
{
	esp_error *error;
	tap_ok(!esp_session_profile(NULL) && !esp_profile_describe(NULL) && !esp_profile_nodes(NULL, 0) &&
		   !esp_profile_step(NULL, 0) && !esp_profile_range(NULL, 0) && !esp_profile_event(NULL, 0),
	       "of nothing there is nothing to tell");
	tap_ok(esp_session_record(NULL, 1, &error) == ESP_ERROR_ARGUMENT && error_is(error, "bad-argument"),
	       "and nothing to record");
}

/* --- memory --- */

/* A run for which there is memory must not fail because there is none for its record. */
static void test_memory(const char *weights)
{
	int recorded = 0, unrecorded = 0, refused = 0, wrong = 0;
	for (long left = 0; left < 40; left++) {
		struct account account = {.left = -1};
		esp_context_options o = {
		    .size = sizeof o, .resize = account_resize, .user = &account, .threads = 1};
		struct kit k;
		if (make_kit(&k, &o, weights, NULL))
			abort();
		add_comb(k.forest, 20);
		wrong += esp_session_run(k.session, k.forest, NULL) != ESP_OK;
		account.left = left;
		esp_status s = esp_session_record(k.session, 1, NULL);
		bool on = !s;
		s = esp_session_run(k.session, k.forest, NULL);
		refused += !on;
		wrong += s != ESP_OK || (!on && esp_session_profile(k.session));
		recorded += on && esp_session_profile(k.session);
		unrecorded += on && !esp_session_profile(k.session);
		account.left = -1;
		if (!on)
			wrong += esp_session_record(k.session, 1, NULL) != ESP_OK;
		wrong +=
		    esp_session_run(k.session, k.forest, NULL) != ESP_OK || !esp_session_profile(k.session);
		free_kit(&k);
		wrong += account.blocks != 0 || account.wrong;
	}
	tap_ok(recorded && unrecorded && refused, "memory is out before, for and after a record");
	tap_is(wrong, 0, "which no run fails by, and is the next one's no more");
}

/* --- threads --- */

enum { DIMENSION = 96, TREES = 200 };

static const char wide_model[] =
    EMBEDDED("wide", "tree(left, right)")
    "    h = tanh(W @ (left.h + right.h))\n"
    "output twice = h + h at every node\n"
    "output total = sum(h) at root\n";

static esp_status make_wide(struct kit *k, const char *weights, int threads, esp_error **error)
{
	esp_context_options o = {.size = sizeof o, .threads = threads, .cache = ESP_CACHE_OFF};
	esp_status s;
	memset(k, 0, sizeof *k);
	if ((s = esp_context_create(&o, &k->context, error)) ||
	    (s = esp_model_parse(k->context, "wide.ra", wide_model, strlen(wide_model), &k->model, error)) ||
	    (s = esp_weights_open(k->context, weights, &k->weights, error)) ||
	    (s = esp_program_create(k->model, k->weights, NULL, &k->program, error)) ||
	    (s = esp_binding_create(k->program, k->weights, &k->binding, error)) ||
	    (s = esp_forest_create(k->program, &k->forest, error)) ||
	    (s = esp_session_create(k->binding, &k->session, error)))
		return s;
	for (int i = 0; i < TREES; i++)
		add_comb(k->forest, 1 + i % 6);
	return ESP_OK;
}

static bool same_results(const esp_session *a, const esp_session *b)
{
	bool same = true;
	for (size_t i = 0; i < TREES; i++)
		same &= memcmp(esp_session_root(a, 0, i), esp_session_root(b, 0, i),
			       DIMENSION * sizeof(float)) == 0 &&
			*esp_session_root(a, 1, i) == *esp_session_root(b, 1, i);
	return same;
}

static void test_threads(int threads)
{
	struct kit k;
	char text[32];
	esp_session *plain = NULL;
	esp_error *error = NULL;
	esp_status s = make_wide(&k, write_wide_weights("wide.safetensors", DIMENSION), threads, &error);
	if (s == ESP_ERROR_BACKEND) {
		esp_error_free(error);
		tap_skip("no back end", "compiled kernels");
	} else {
		tap_ok(s == ESP_OK && esp_session_create(k.binding, &plain, NULL) == ESP_OK, "a wide forest");
		esp_session_record(k.session, 1, NULL);
		bool same = true;
		for (int i = 0; i < 8; i++) {
			esp_session_run(k.session, k.forest, NULL);
			esp_session_run(plain, k.forest, NULL);
			same &= same_results(k.session, plain);
		}
		snprintf(text, sizeof text, "%d threads", threads);
		check(esp_session_profile(k.session), text);
		tap_ok(same, "recording changes no bit");
		tap_ok(esp_profile_describe(esp_session_profile(k.session))->code_bytes > 0,
		       "code is counted");
	}
	esp_session_free(plain);
	free_kit(&k);
}

int main(void)
{
	struct kit k;
	if (!make_folder())
		return 1;
	const char *weights = write_weights("tiny.safetensors", tiny_weights, 2);
	test_events();
	test_past_leaves();
	test_nothing();
	tap_ok(make_kit(&k, &(esp_context_options){.size = sizeof(esp_context_options), .threads = 1},
			weights, NULL) == ESP_OK,
	       "a session");
	test_session(&k);
	test_changes(&k);
	free_kit(&k);
	test_memory(weights);
	test_threads(1);
	test_threads(2);
	remove_folder((const char *const[]){"tiny.safetensors", "wide.safetensors"}, 2);
	return tap_done();
}
