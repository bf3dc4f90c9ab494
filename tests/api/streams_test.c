/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Streams: however a sequence is cut, its results have the bits of one run over all of it; copies and saved
 * states go on alike; thousands advance together; what is refused. */
#include "api/espalier_service.h"
#include "tests/api/support.h"
#include "tests/backends.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { DIMENSION = 6, WORDS = 5, LENGTH = 70 };

static const char cell[] =
    "model cell\n"
    "structure sequence\n"
    "input word : token\n"
    "input x[D]\n"
    "param E[V, D], W[D, D], U[D, D]\n"
    "state h[D], c[D]\n"
    "node:\n"
    "    f = sigmoid(W @ E[word] + U @ previous.h)\n"
    "    c = f * previous.c + x\n"
    "    h = tanh(c + previous.h)\n"
    "output twice = h + h at every node\n"
    "output total = sum(h) at root\n";

struct place {
	esp_context *context;
	esp_weights *weights, *others;
	esp_program *program;
	esp_binding *binding;
	esp_service *service;
	int32_t words[LENGTH];
	float x[LENGTH][DIMENSION];
	float twice[LENGTH][DIMENSION], total[LENGTH]; /* total: of the sequence that ends there */
};

static unsigned drawn = 3;

static int draw(int below)
{
	drawn = drawn * 1664525u + 1013904223u;
	return (int)((drawn >> 16) % (unsigned)below);
}

static float draw_float(void)
{
	return (float)draw(2001) / 1000 - 1;
}

static void write_set(const char *name)
{
	static float e[WORDS * DIMENSION], w[DIMENSION * DIMENSION], u[DIMENSION * DIMENSION];
	for (int i = 0; i < WORDS * DIMENSION; i++)
		e[i] = draw_float();
	for (int i = 0; i < DIMENSION * DIMENSION; i++)
		w[i] = draw_float(), u[i] = draw_float();
	write_weights(name,
		      (const struct tensor[]){{"E", WORDS, DIMENSION, e},
					      {"W", DIMENSION, DIMENSION, w},
					      {"U", DIMENSION, DIMENSION, u}},
		      3);
}

/* What a session says of the whole sequence, and of each beginning. */
static void note_expected(struct place *p)
{
	int32_t begin[LENGTH + 1] = {0}, children[LENGTH];
	const void *data[] = {p->words, p->x};
	esp_session *session;
	esp_forest *f;
	if (esp_session_create(p->binding, &session, NULL) || esp_forest_create(p->program, &f, NULL))
		abort();
	for (int n = 0; n < LENGTH; n++) {
		begin[n + 1] = n;
		children[n] = n;
		const esp_structure s = {sizeof s, (size_t)n + 1, begin, children, n, data};
		esp_forest_clear(f);
		if (esp_forest_add(f, &s, NULL) || esp_session_run(session, f, NULL))
			abort();
		p->total[n] = *esp_session_output(session, 1, 0, 0);
	}
	for (int n = 0; n < LENGTH; n++)
		memcpy(p->twice[n], esp_session_output(session, 0, 0, n), sizeof p->twice[n]);
	esp_session_free(session);
	esp_forest_free(f);
}

static esp_program *make_program(struct place *p, const char *text, const char *backend)
{
	const esp_program_options o = {.size = sizeof o, .backend = backend, .continuous = 1};
	esp_model *m;
	esp_program *program;
	esp_error *error;
	if (esp_model_parse(p->context, "cell.ra", text, strlen(text), &m, &error) ||
	    esp_program_create(m, p->weights, &o, &program, &error)) {
		printf("# %s\n", esp_error_text(error));
		abort();
	}
	esp_model_free(m);
	return program;
}

static void open_with(struct place *p, const esp_context_options *o, const char *backend)
{
	if (esp_context_create(o, &p->context, NULL) ||
	    esp_weights_open(p->context, path_of("w.safetensors"), &p->weights, NULL) ||
	    esp_weights_open(p->context, path_of("v.safetensors"), &p->others, NULL))
		abort();
	p->program = make_program(p, cell, backend);
	if (esp_binding_create(p->program, p->weights, &p->binding, NULL) ||
	    esp_service_create(p->binding, NULL, &p->service, NULL))
		abort();
}

static void open_place(struct place *p, const esp_context_options *o, const char *backend)
{
	open_with(p, o, backend);
	for (int i = 0; i < LENGTH; i++) {
		p->words[i] = draw(WORDS);
		for (int k = 0; k < DIMENSION; k++)
			p->x[i][k] = draw_float();
	}
	note_expected(p);
}

static void close_place(struct place *p)
{
	esp_service_free(p->service);
	esp_binding_free(p->binding);
	esp_program_free(p->program);
	esp_weights_free(p->weights);
	esp_weights_free(p->others);
	esp_context_free(p->context);
}

static esp_stream *open_stream(struct place *p)
{
	esp_stream *s;
	return esp_stream_open(p->service, &s, NULL) ? NULL : s;
}

static esp_status push(struct place *p, esp_stream *s, int first, int n, esp_ticket **t)
{
	const void *data[] = {p->words + first, p->x + first};
	return esp_stream_push(s, (size_t)n, data, NULL, t, NULL);
}

static bool has_bits(const struct place *p, const esp_ticket *t, int first, int n)
{
	const float *total = esp_ticket_output(t, 1, 0, 0);
	bool same = total && memcmp(total, &p->total[first + n - 1], sizeof *total) == 0;
	for (int i = 0; same && i < n; i++) {
		const float *row = esp_ticket_output(t, 0, 0, (size_t)i);
		same = row && memcmp(row, p->twice[first + i], sizeof p->twice[0]) == 0;
	}
	return same && !esp_ticket_output(t, 0, 0, (size_t)n);
}

/* Pushes n elements and waits: whether their results are right. */
static bool advance(struct place *p, esp_stream *s, int first, int n)
{
	esp_ticket *t;
	bool right =
	    !push(p, s, first, n, &t) && !esp_ticket_wait(t, INT64_MAX, NULL) && has_bits(p, t, first, n);
	esp_ticket_free(t);
	return right;
}

/* --- how a sequence is cut --- */

static void test_cuts(struct place *p, const char *backend)
{
	bool right = true;
	for (int round = 0; right && round < 20; round++) {
		esp_stream *s = open_stream(p);
		int most = 1 + draw(LENGTH);
		for (int first = 0, n; right && first < LENGTH; first += n) {
			n = 1 + draw(most);
			n = n < LENGTH - first ? n : LENGTH - first;
			right = advance(p, s, first, n);
		}
		esp_stream_free(s);
	}
	tap_ok(right, "%s: however a sequence is cut, it has the bits of one run", backend);
}

static void test_copies(struct place *p)
{
	size_t needed = 0, again = 0;
	esp_stream *s = open_stream(p), *copy = NULL, *restored = NULL;
	bool right = advance(p, s, 0, 20) && !esp_stream_copy(s, &copy, NULL);
	tap_ok(!esp_stream_save(s, NULL, 0, &needed, NULL) && needed > 2 * DIMENSION * sizeof(float),
	       "states have %zu bytes", needed);
	char *bytes = malloc(needed);
	right &= !esp_stream_save(s, bytes, needed, &again, NULL) && again == needed;
	right &= advance(p, s, 20, 30);
	tap_ok(right && advance(p, copy, 20, 1) && advance(p, copy, 21, 40), "a copy goes on by itself");
	tap_ok(!esp_stream_restore(p->service, bytes, needed, &restored, NULL) &&
		   advance(p, restored, 20, 50),
	       "so does what was saved");
	esp_stream_free(restored);
	esp_error *error;
	bytes[needed - 1] ^= 1;
	esp_status status = esp_stream_restore(p->service, bytes, needed, &restored, &error);
	tap_ok(error_is(error, "bad-stream") && status == ESP_ERROR_INPUT && !restored,
	       "damaged states are refused");
	bytes[needed - 1] ^= 1;
	tap_ok(esp_stream_restore(p->service, bytes, needed - 1, &restored, NULL) == ESP_ERROR_INPUT &&
		   esp_stream_restore(p->service, bytes, 0, &restored, NULL) == ESP_ERROR_INPUT,
	       "and a part of them");
	esp_stream *first = open_stream(p);
	right = !esp_stream_save(first, bytes, needed, &again, NULL) &&
		!esp_stream_restore(p->service, bytes, needed, &restored, NULL);
	tap_ok(right && advance(p, restored, 0, 5), "a stream is saved before its first element");
	esp_stream_free(first);
	esp_stream_free(restored);
	esp_stream_free(copy);
	esp_stream_free(s);
	esp_stream_free(NULL);
	free(bytes);
}

/* A stream keeps its weights; what is opened later has the new ones. */
static void test_swap(struct place *p)
{
	esp_stream *s = open_stream(p), *copy = NULL, *later;
	bool right = advance(p, s, 0, 10) && !esp_binding_swap(p->binding, p->others, NULL);
	right &= advance(p, s, 10, 10) && !esp_stream_copy(s, &copy, NULL) && advance(p, copy, 20, 10);
	later = open_stream(p);
	tap_ok(right && !advance(p, later, 0, 10), "a stream keeps the weights that it was opened with");
	esp_binding_swap(p->binding, p->weights, NULL);
	esp_stream_free(later);
	esp_stream_free(copy);
	esp_stream_free(s);
}

/* --- many at once --- */

/* However slow the machine is, supersteps have 64 elements at least while so many wait. */
static void test_many(struct place *p)
{
	enum { STREAMS = 2000, ROUNDS = 4, TOGETHER = 64 };
	static esp_stream *s[STREAMS];
	static esp_ticket *t[STREAMS];
	bool right = true;
	esp_service_counts before = {.size = sizeof before}, after = before;
	for (int i = 0; i < STREAMS; i++)
		s[i] = open_stream(p);
	esp_service_count(p->service, &before);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < STREAMS; i++)
			right &= !push(p, s[i], round, 1, &t[i]);
		for (int i = 0; i < STREAMS; i++) {
			right &= !esp_ticket_wait(t[i], INT64_MAX, NULL) && has_bits(p, t[i], round, 1);
			esp_ticket_free(t[i]);
		}
	}
	esp_service_count(p->service, &after);
	for (int i = 0; i < STREAMS; i++)
		esp_stream_free(s[i]);
	int supersteps = (int)(after.supersteps - before.supersteps);
	tap_ok(right && after.nodes - before.nodes == STREAMS * ROUNDS &&
		   supersteps <= ROUNDS * ((STREAMS + TOGETHER - 1) / TOGETHER),
	       "%d streams advance together: %d elements in %d supersteps", STREAMS, STREAMS * ROUNDS,
	       supersteps);
	tap_is(after.rows, 0, "none has rows between its elements");
}

/* Each thread has streams of its own; callbacks push what comes next. */
struct speaker {
	struct place *place;
	esp_stream *stream;
	atomic_int next, wrong;
};

static void speak(struct speaker *w);

static void hear(void *user, esp_ticket *t)
{
	struct speaker *w = user;
	int at = atomic_load(&w->next);
	if (esp_ticket_wait(t, 0, NULL) || !has_bits(w->place, t, at, 1))
		atomic_fetch_add(&w->wrong, 1);
	esp_ticket_free(t);
	if (atomic_fetch_add(&w->next, 1) + 1 < LENGTH)
		speak(w);
}

static void speak(struct speaker *w)
{
	int at = atomic_load(&w->next);
	const void *data[] = {w->place->words + at, w->place->x + at};
	const esp_submit_options o = {.size = sizeof o, .done = hear, .user = w};
	esp_ticket *t;
	if (esp_stream_push(w->stream, 1, data, &o, &t, NULL))
		atomic_fetch_add(&w->wrong, 1);
}

static void test_callbacks(struct place *p)
{
	enum { SPEAKERS = 30 };
	static struct speaker w[SPEAKERS];
	int wrong = 0;
	for (int i = 0; i < SPEAKERS; i++) {
		w[i] = (struct speaker){.place = p, .stream = open_stream(p)};
		speak(&w[i]);
	}
	for (int i = 0; i < SPEAKERS; i++) {
		while (atomic_load(&w[i].next) < LENGTH && !atomic_load(&w[i].wrong))
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		wrong += atomic_load(&w[i].wrong);
		esp_stream_free(w[i].stream);
	}
	tap_is(wrong, 0, "callbacks push the next element of their stream");
}

/* --- what is refused --- */

static bool refused(esp_status status, esp_status expected, esp_error *error, const char *id)
{
	return error_is(error, id) && status == expected;
}

/* Of a service that has no thread, since it was given no callback: what is pushed to it stays pending until
 * somebody waits. */
static void test_refusals(const struct place *shared)
{
	static const int32_t bad_word[] = {WORDS};
	struct place own = *shared, *p = &own;
	if (esp_service_create(p->binding, NULL, &p->service, NULL))
		abort();
	const void *data[] = {bad_word, p->x}, *none[] = {NULL, p->x};
	esp_error *error;
	esp_ticket *t, *second;
	esp_stream *s = open_stream(p), *copy;
	push(p, s, 0, 2, &t);
	esp_status status = esp_stream_push(s, 1, data, NULL, &second, &error);
	tap_ok(refused(status, ESP_ERROR_BUSY, error, "stream-busy") && !second &&
		   esp_status_is_transient(status),
	       "elements while others are computed");
	tap_ok(esp_stream_copy(s, &copy, NULL) == ESP_ERROR_BUSY && !copy, "a copy meanwhile");
	esp_ticket_cancel(t);
	tap_ok(esp_ticket_wait(t, INT64_MAX, NULL) == ESP_ERROR_CANCELLED && advance(p, s, 0, 3),
	       "what was cancelled was not pushed");
	esp_ticket_free(t);
	status = esp_stream_push(s, 1, data, NULL, &t, NULL);
	status = esp_ticket_wait(t, INT64_MAX, &error);
	tap_ok(refused(status, ESP_ERROR_INPUT, error, "token-out-of-range") && advance(p, s, 3, 3),
	       "nor an element that the model does not take");
	esp_ticket_free(t);
	status = esp_stream_push(s, 0, data, NULL, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "no elements");
	status = esp_stream_push(s, 1, none, NULL, &t, &error);
	tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "bad-argument"), "no array for an input");
	push(p, s, 6, 2, &t);
	esp_stream_free(s);
	tap_ok(!esp_ticket_wait(t, INT64_MAX, NULL) && has_bits(p, t, 6, 2), "a ticket keeps its stream");
	esp_ticket_free(t);
	esp_service_free(p->service);
}

/* What needs the whole sequence, or is none. */
static void test_programs(struct place *p)
{
	static const char *const texts[] = {
	    "model tree\nstructure tree(left, right)\ninput word : token\nparam E[V, D], W[D, D], U[D, "
	    "D]\nstate h[D]\n"
	    "leaf:\n    h = E[word]\ninner:\n    h = W @ left.h + U @ right.h\noutput y = h at root\n",
	    "model both\nstructure sequence\ninput word : token\nparam E[V, D], W[D, D], U[D, D]\nstate "
	    "h[D]\n"
	    "node:\n    h = tanh(E[word] + W @ previous.h)\ntraversal down\nstate g[D]\nnode:\n    g = "
	    "tanh(h + U @ "
	    "next.g)\n"
	    "output y = g at every node\n",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		esp_program *program = make_program(p, texts[i], "interpreter");
		esp_binding *binding;
		esp_service *service;
		esp_stream *s;
		esp_error *error;
		if (esp_binding_create(program, p->weights, &binding, NULL) ||
		    esp_service_create(binding, NULL, &service, NULL))
			abort();
		esp_status status = esp_stream_open(service, &s, &error);
		tap_ok(refused(status, ESP_ERROR_ARGUMENT, error, "no-stream") && !s, "no stream: model %zu",
		       i);
		esp_service_free(service);
		esp_binding_free(binding);
		esp_program_free(program);
	}
}

/* --- memory --- */

/* A stream that is pushed to, copied and pushed to again; stops at the first failure. */
static esp_status carry_on(struct place *p, esp_error **error)
{
	const void *data[] = {p->words, p->x};
	esp_stream *s = NULL, *copy = NULL;
	esp_ticket *t = NULL, *second = NULL;
	esp_status status;
	if (!(status = esp_stream_open(p->service, &s, error)) &&
	    !(status = esp_stream_push(s, 2, data, NULL, &t, error)) &&
	    !(status = esp_ticket_wait(t, INT64_MAX, error)) &&
	    !(status = esp_stream_copy(s, &copy, error)) &&
	    !(status = esp_stream_push(copy, 1, data, NULL, &second, error)))
		status = esp_ticket_wait(second, INT64_MAX, error);
	esp_ticket_free(t);
	esp_ticket_free(second);
	esp_stream_free(s);
	esp_stream_free(copy);
	return status;
}

/* Memory is refused from a state on in which nothing is kept for later. */
static esp_status carry_on_once(struct account *account, const esp_context_options *memory, esp_error **error)
{
	static struct place p;
	long left = account->left;
	account->left = -1;
	open_with(&p, memory, "interpreter");
	account->left = left;
	esp_status s = carry_on(&p, error);
	account->left = -1;
	close_place(&p);
	return s;
}

int main(void)
{
	static const char *const names[] = {"w.safetensors", "v.safetensors"};
	/* when several threads use LLVM first, ThreadSanitizer takes what LLVM sets up for a race */
	const esp_context_options one_thread = {.size = sizeof one_thread, .threads = 1};
	static struct place p;
	make_folder();
	write_set("w.safetensors");
	write_set("v.safetensors");
	if (backend_at(0)) {
		open_place(&p, &one_thread, backend_at(0));
		test_cuts(&p, backend_at(0));
		close_place(&p);
	}
	open_place(&p, NULL, "interpreter");
	test_cuts(&p, "interpreter");
	test_copies(&p);
	test_swap(&p);
	test_many(&p);
	test_callbacks(&p);
	test_refusals(&p);
	test_programs(&p);
	close_place(&p);
	test_refusals_of_memory(carry_on_once, 10);
	remove_folder(names, 2);
	return tap_done();
}
