/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Finds the description of this machine, and keeps it in the cache.
 *
 * Its file in the cache's folder "machines" is named by the processor, so that machines can share the folder:
 *
 *     espalier machine 5 89abcdef01234567    the version, and a hash of the names of all numbers
 *     identity x86-64 saves ...
 *     target avx512
 *     l1_bytes 32768 bytes          and all other numbers and times of base/target.h
 *     processor AMD EPYC            for people
 *     checksum 0123...              of all lines before
 *
 * Other files, and files with impossible numbers, are ignored, and reported unless another version of the library wrote
 * them. */
#include "api/objects.h"
#include "base/cpu.h"
#include "base/machine.h"
#include "io/store.h"

#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 14, MOST_THREADS = 4, MEMORY = 128 << 20, DIGITS = 2 * sizeof(struct checksum) };

static const char header[] = "espalier machine ";
enum { VERSION = 5, STAMP = 8 };

struct cache context_cache(const struct esp_context *c)
{
	return (struct cache){c->cache == ESP_CACHE_OFF, c->cache_dir, c->cache_limit};
}

const char *esp_target(size_t i)
{
	if (i == 0)
		return TARGET_NATIVE;
	if (i <= TARGETS)
		return target_at((int)i - 1)->name;
	return target_processor_name(i - 1 - TARGETS < TARGET_PROCESSORS ? i - 1 - TARGETS : TARGET_PROCESSORS);
}

void describe_machine_for_key(struct str *s, const struct machine_known *m)
{
	str_puts(s, " ");
	if (!m || !m->processor[0]) {
		cpu_print(s);
		return;
	}
	str_printf(s, "%s\n", m->processor);
	target_print(&m->target, s);
}

/* --- a search --- */

struct search {
	esp_context *context;
	bool may_measure; /* if no file is kept */
	bool must_measure;
	bool measured; /* false = memory or threads are out */
	struct arena arena;
	struct target target;
	const char *source, *processor; /* processor: a text of cpu_print; "" = the machine is not examined */
	const char *folder;		/* NULL = none */
	const char *problem;		/* of the kept file; NULL = none, or another version wrote it */
};

static void note_unusable(const struct search *s, const struct io_store *store)
{
	context_log(s->context, DIAG_CACHE_UNUSABLE,
		    "make the folder private (chmod 700) and its disk writable, or name another one",
		    "the description of this machine is not kept in '%s': %s", s->folder, store->problem);
}

static struct checksum file_name(const struct search *s)
{
	return checksum_of(s->processor, strlen(s->processor));
}

/* Prints the first bytes of the checksum of a text. */
static void print_checksum(struct str *to, const char *text, size_t n, size_t bytes)
{
	struct checksum sum = checksum_of(text, n);
	for (size_t i = 0; i < bytes; i++)
		str_printf(to, "%02x", sum.bytes[i]);
}

/* Prints the version of the file: it changes with the numbers that a description has. */
static void print_version(struct search *s, struct str *to)
{
	struct str names = str_in(&s->arena);
	str_printf(&names, "%d %d", TARGET_CACHES, TARGET_ROWS);
	for (int i = 0; i < TARGET_NUMBERS; i++)
		str_printf(&names, " %s", target_number_at(i)->member);
	str_printf(to, "%s%d ", header, VERSION);
	print_checksum(to, names.text, names.n, STAMP);
	str_puts(to, "\n");
}

static void print_beginning(struct search *s, struct str *to)
{
	print_version(s, to);
	str_printf(to, "identity %s\ntarget %s\n", s->processor, s->target.name);
}

/* --- reading --- */

/* Whether the text ends with the checksum of the lines before. */
static bool is_whole(struct search *s, const char *text, size_t n)
{
	static const char word[] = "checksum ";
	size_t tail = strlen(word) + DIGITS + 1;
	struct str sum = str_in(&s->arena);
	if (n < tail || memchr(text, 0, n) || text[n - 1] != '\n' ||
	    memcmp(text + n - tail, word, strlen(word)) != 0)
		return false;
	print_checksum(&sum, text, n - tail, sizeof(struct checksum));
	return memcmp(text + n - DIGITS - 1, sum.text, DIGITS) == 0;
}

/* Whether another version of the library wrote a text that is whole. */
static bool is_of_another_version(struct search *s, const char *text)
{
	struct str version = str_in(&s->arena);
	print_version(s, &version);
	return strncmp(text, header, strlen(header)) == 0 && strncmp(text, version.text, version.n) != 0;
}

/* Parses a text as the description; false with its problem, or without one when another version wrote it. */
static bool read_text(struct search *s, const char *text, size_t n)
{
	struct str beginning = str_in(&s->arena);
	const char *end;
	print_beginning(s, &beginning);
	if (!is_whole(s, text, n))
		s->problem = "it is damaged";
	else if (is_of_another_version(s, text))
		return false;
	else if (strncmp(text, beginning.text, beginning.n) != 0)
		s->problem = "it is of another processor";
	else if (!target_read(&s->target, text + beginning.n, &end))
		s->problem = "a number is missing or cannot be";
	return !s->problem;
}

static bool read_kept(struct search *s)
{
	struct checksum name = file_name(s);
	struct io_store store;
	void *bytes;
	size_t n;
	enum io_store_status status = io_store_open(&store, s->folder, false);
	if (status == IO_STORE_OK)
		status = io_store_read(&store, &s->arena, &name, LARGEST, &bytes, &n);
	io_store_close(&store);
	if (status == IO_STORE_REFUSED)
		note_unusable(s, &store);
	if (status == IO_STORE_DAMAGED)
		s->problem = arena_string(&s->arena, store.problem);
	if (status != IO_STORE_OK)
		return false;
	((char *)bytes)[n] = 0;
	return read_text(s, bytes, n);
}

/* --- measuring --- */

static void print_file(struct search *s, struct str *to)
{
	print_beginning(s, to);
	target_print(&s->target, to);
	str_puts(to, "processor ");
	cpu_name(to);
	str_puts(to, "\nchecksum ");
	print_checksum(to, to->text, to->n - strlen("checksum "), sizeof(struct checksum));
	str_puts(to, "\n");
}

static bool measure_machine(struct search *s)
{
	struct machine m = {0};
	int most = rt_team_threads(&s->context->team), threads = most < MOST_THREADS ? most : MOST_THREADS;
	size_t sets[TARGET_CACHES];
	machine_choose_sets(&s->target, threads, sets);
	s->measured = machine_measure(&m, TARGETS, threads, MEMORY, sets) && machine_describe(&s->target, &m);
	return s->measured;
}

static void write_kept(struct search *s, struct io_store *store)
{
	struct checksum name = file_name(s);
	struct str text = str_in(&s->arena);
	print_file(s, &text);
	if (io_store_write(store, &name, text.text, text.n) != IO_STORE_OK)
		note_unusable(s, store);
}

/* Measures the machine and keeps the result.  If nobody requested it, measures only if the result can be kept
 * and no other process is measuring. */
static bool measure_and_keep(struct search *s)
{
	struct io_store store = {.folder = -1};
	bool open = s->folder && io_store_open(&store, s->folder, true) == IO_STORE_OK;
	bool done = (s->must_measure || (open && io_store_claim(&store))) && measure_machine(s);
	if (done && open)
		write_kept(s, &store);
	else if (s->folder && !open)
		note_unusable(s, &store);
	io_store_close(&store);
	return done;
}

/* --- the context's --- */

static void log_problem(const struct search *s)
{
	if (s->problem)
		context_log(s->context, DIAG_CACHE_ENTRY_DAMAGED, NULL,
			    "the description of this machine kept in '%s' is not used: %s", s->folder,
			    s->problem);
}

static bool examines_machine(const struct search *s)
{
	return s->context->machine_from != ESP_MACHINE_DEFAULTS || s->must_measure;
}

static void look_up(struct search *s)
{
	s->source = "defaults";
	if (!examines_machine(s))
		return;
	struct cache cache = context_cache(s->context);
	struct str name = str_in(&s->arena);
	cpu_print(&name);
	s->processor = name.text;
	struct cpu_model cpu = cpu_model();
	machine_recognize(&s->target, &cpu);
	s->folder = cache_folder(&cache, &s->arena, "machines");
	if (!s->must_measure && s->folder && read_kept(s)) {
		s->source = "measured";
		return;
	}
	log_problem(s);
	machine_read_caches(&s->target, "");
	s->source = "system";
	bool wanted = s->may_measure && s->folder && s->context->machine_from == ESP_MACHINE_MEASURED;
	if ((wanted || s->must_measure) && measure_and_keep(s))
		s->source = "measured";
}

static bool search_machine(void *job)
{
	look_up(job);
	return true;
}

/* Falls back to the target's defaults if memory is out.  The caller frees the arena. */
static void find_machine(struct search *s)
{
	struct diags unheard;
	diags_init(&unheard, &s->context->allocator);
	arena_init(&s->arena, &s->context->allocator);
	s->target = *target_of_machine();
	s->processor = "";
	if (!api_guarded(&s->arena, &unheard, search_machine, s)) {
		s->target = *target_of_machine();
		s->source = "defaults";
		s->processor = "";
	}
	diags_free(&unheard);
}

/* The caller holds the lock. */
static void set_machine(esp_context *c, const struct search *s)
{
	snprintf(c->processor, sizeof c->processor, "%s", s->processor);
	c->machine = (struct machine_known){s->target, c->processor};
	c->machine_source = s->source;
	rt_team_describe(&c->team, &c->machine.target);
	atomic_store_explicit(&c->machine_known, true, memory_order_release);
}

const struct machine_known *context_machine(esp_context *c, bool may_measure)
{
	if (atomic_load_explicit(&c->machine_known, memory_order_acquire))
		return &c->machine;
	pthread_mutex_lock(&c->machine_lock);
	if (!atomic_load_explicit(&c->machine_known, memory_order_relaxed)) {
		struct search s = {.context = c, .may_measure = may_measure};
		find_machine(&s);
		set_machine(c, &s);
		arena_free(&s.arena);
	}
	pthread_mutex_unlock(&c->machine_lock);
	return &c->machine;
}

/* --- printing --- */

/* Measures again; the context's own description does not change, since programs were made for it. */
static bool measure_on_request(esp_context *c, struct search *s)
{
	*s = (struct search){.context = c, .must_measure = true};
	pthread_mutex_lock(&c->machine_lock);
	find_machine(s);
	if (s->measured && !atomic_load_explicit(&c->machine_known, memory_order_relaxed))
		set_machine(c, s);
	arena_free(&s->arena);
	pthread_mutex_unlock(&c->machine_lock);
	return s->measured;
}

struct printing {
	esp_context *context;
	const struct target *target;
	const char *source;
	struct arena arena;
	struct str text;
};

static bool write_machine(void *job)
{
	struct printing *p = job;
	struct str *s = &p->text;
	str_puts(s, "processor ");
	cpu_name(s);
	str_printf(s, "\ntarget %s\nsource %s\n", target_find(TARGET_NATIVE)->name, p->source);
	for (int i = 0; i < TARGET_NUMBERS; i++) {
		const struct target_number *n = target_number_at(i);
		str_printf(s, "%s ", n->member);
		target_print_value(p->target, i, s);
		str_printf(s, " %s  %s\n", n->unit[0] ? n->unit : "-", n->meaning);
	}
	target_print_iterations(p->target, s);
	return true;
}

static char *print_machine(esp_context *c, const struct target *t, const char *source, struct diags *diags)
{
	struct printing p = {.context = c, .target = t, .source = source};
	char *copy = NULL;
	arena_init(&p.arena, &c->allocator);
	p.text = str_in(&p.arena);
	if (api_guarded(&p.arena, diags, write_machine, &p))
		copy = api_text(c, str_text(&p.text), diags);
	arena_free(&p.arena);
	return copy;
}

static char *describe_machine(esp_context *c, bool anew, struct diags *diags)
{
	struct search s = {.context = c};
	if (anew && !measure_on_request(c, &s)) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0},
			 "lower --threads, or end what takes the memory",
			 "no memory or no threads to measure the machine with");
		return NULL;
	}
	const struct machine_known *m = anew ? NULL : context_machine(c, false);
	return print_machine(c, anew ? &s.target : &m->target, anew ? s.source : c->machine_source, diags);
}

esp_status esp_context_machine(esp_context *context, int measure_machine, char **text, esp_error **error)
{
	struct api_call call = api_begin(context);
	char *copy = NULL;
	if (api_need(&call, context) && api_need(&call, text))
		copy = describe_machine(context, measure_machine, &call.diags);
	if (text)
		*text = copy;
	return api_end(&call, copy, error);
}
