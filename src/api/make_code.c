/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The code of a program: made when it is first needed, all of it or what runs need; named, kept in the cache, released. */
#include "api/objects.h"

#include "image/code.h"
#include "image/gdb.h"
#include "image/jitdump.h"
#include "jit/jit.h"

struct code_job {
	esp_program *program;
	struct diags *diags;
};

static bool compile_code(void *job)
{
	struct code_job *c = job;
	esp_program *p = c->program;
	p->image = p->interface;
	p->times = (struct times){.arena = &p->code_arena};
	for (size_t i = 0; i < p->early.entries.n; i++)
		vec_push(&p->code_arena, &p->times.entries, p->early.entries.at[i]);
	return p->found || compile_finish(p->begun, &p->code_arena, c->diags, &p->image, &p->times);
}

/* The file that has the listing of the code, which is written if it is not there; NULL = there are no lines.
 */
static const char *find_listing(esp_program *p, struct diags *notices)
{
	struct cache cache = context_cache(p->object.context);
	const char *text = p->image.listing;
	if (!p->listing && text && *text && p->object.context->lines)
		p->listing = cache_listing(&cache, &p->code_arena, text, notices);
	return p->listing;
}

/* Describes code to debuggers and profilers: all, or what was compiled last. */
static bool write_names(void *job)
{
	struct code_job *c = job;
	esp_program *p = c->program;
	struct image_function *f;
	int n = compile_is_late(&p->image) ? compile_list_code(&p->code_arena, &p->image, &f)
					   : image_list_functions(&p->code_arena, &p->image, &f);
	const esp_context *context = p->object.context;
	if (!n)
		return true;
	gdb_add_functions(&p->named, &p->code_arena, p->image.name, find_listing(p, c->diags), f, n);
	bool ok = !context->perf_map || image_name_functions(p->image.name, f, n, c->diags);
	if (context->jitdump)
		ok &= image_dump_functions(&p->code_arena, p->image.name, p->image.listing, f, n, c->diags);
	return ok;
}

static void name_code(esp_program *p)
{
	struct diags notices;
	diags_init(&notices, &p->object.context->allocator);
	api_guarded(&p->code_arena, &notices, write_names, &(struct code_job){p, &notices});
	program_log_notices(p, &notices);
}

/* The team's threads and processors, for compiling; NULL = its processors are unknown. */
static struct jit_threads threads_of(esp_context *c)
{
	const struct rt_processors *p = &c->team.processors;
	bool known = CPU_COUNT_S(sizeof p->set, p->set);
	return (struct jit_threads){rt_team_threads(&c->team), known ? p->set : NULL, sizeof p->set};
}

/* Whether to load the back end in a thread of its own while kernels are being built. */
static bool may_load_ahead(const esp_program *p)
{
	return !p->found && !p->options.apart && p->options.threads.most > 1 &&
	       !compile_interprets(&p->options);
}

static bool guarded_compile(esp_program *p, struct diags *diags)
{
	struct jit_ahead ahead = {0};
	if (!p->found)
		p->options.threads = threads_of(p->object.context);
	if (may_load_ahead(p))
		jit_ahead_begin(&ahead, p->options.backend, p->options.threads);
	bool ok = api_guarded_deep(p->found ? NULL : p->model->graph, &p->code_arena, diags, compile_code,
				   &(struct code_job){p, diags});
	jit_ahead_end(&ahead);
	return ok;
}

/* --- code that is compiled when runs need it --- */

struct rows_job {
	esp_program *program;
	const int64_t *rows;
	struct diags *diags;
};

static bool compile_more(void *job)
{
	struct rows_job *j = job;
	esp_program *p = j->program;
	return compile_need_code(&p->code_arena, j->diags, &p->image, j->rows, &p->times);
}

/* The caller holds the lock. */
static bool compile_rows(esp_program *p, const int64_t *rows, struct diags *diags)
{
	program_begin_deadline(p);
	bool ok = api_guarded(&p->code_arena, diags, compile_more, &(struct rows_job){p, rows, diags});
	name_code(p);
	return ok;
}

static bool link_code(void *job)
{
	struct code_job *c = job;
	return compile_link_code(&c->program->code_arena, c->diags, &c->program->image);
}

/* Compiles what a run needs.  A compiler computes constants in the usual arithmetic, which the run may have left. */
static bool need_code(void *program, const int64_t *rows, double *seconds, struct diags *diags)
{
	esp_program *p = program;
	if (atomic_load_explicit(&p->complete, memory_order_acquire) || compile_has_code(&p->image, rows))
		return true;
	struct float_mode mode = float_mode_enter(false);
	double begin = times_clock();
	pthread_mutex_lock(&p->lock);
	bool ok = compile_has_code(&p->image, rows) || compile_rows(p, rows, diags);
	double took = times_clock() - begin;
	p->seconds = p->seconds + took;
	pthread_mutex_unlock(&p->lock);
	*seconds += took;
	float_mode_leave(&mode);
	return ok;
}

/* --- making images --- */

static void keep_image(esp_program *p)
{
	struct cache cache = context_cache(p->object.context);
	struct diags notices;
	diags_init(&notices, &p->object.context->allocator);
	p->image.key = p->key;
	cache_keep(&cache, &p->object.context->allocator, &p->image, &notices);
	program_log_notices(p, &notices);
}

/* Compiles without loading the code; code that can be compiled later is not yet.  The caller holds the lock. */
static bool make_image(esp_program *p, struct diags *diags)
{
	double begin = times_clock();
	if (p->made)
		return true;
	program_begin_deadline(p);
	if (!guarded_compile(p, diags)) {
		image_code_release(&p->image.code);
		arena_free(&p->code_arena);
		p->times = (struct times){0};
		return false;
	}
	p->made = true;
	p->seconds = p->looking + (times_clock() - begin);
	if (compile_is_late(&p->image)) {
		p->image.code.need = need_code;
		p->image.code.maker = p;
		return true;
	}
	atomic_store_explicit(&p->complete, true, memory_order_release);
	if (!p->found && p->key)
		keep_image(p);
	return true;
}

/* Makes what the image lacks as it stands.  The caller holds the lock. */
static bool complete_image(esp_program *p, struct diags *diags)
{
	double begin = times_clock();
	if (atomic_load_explicit(&p->complete, memory_order_relaxed))
		return true;
	if (!compile_rows(p, NULL, diags) || !api_guarded(&p->code_arena, diags, link_code, &(struct code_job){p, diags}))
		return false;
	p->seconds = p->seconds + (times_clock() - begin);
	atomic_store_explicit(&p->complete, true, memory_order_release);
	if (p->key)
		keep_image(p);
	return true;
}

struct loading {
	esp_program *program;
	struct diags *diags;
};

static bool load_code(void *job)
{
	struct loading *l = job;
	esp_program *p = l->program;
	return compile_load(&p->object.context->allocator, l->diags, &p->image, &p->times);
}

static bool make_code(esp_program *p, struct diags *diags)
{
	if (!p->found && !compile_runs_here(&p->options, diags))
		return false;
	if (!make_image(p, diags))
		return false;
	double begin = times_clock();
	if (!api_guarded(&p->code_arena, diags, load_code, &(struct loading){p, diags})) {
		if (!p->image.code.call)
			image_code_release(&p->image.code);
		return false;
	}
	p->seconds = p->seconds + (times_clock() - begin);
	name_code(p);
	atomic_store_explicit(&p->ready, true, memory_order_release);
	return true;
}

/* Code that nothing has called yet is made at once: whoever saves a program need not be able to run it. */
bool program_make(esp_program *p, struct image *image, struct diags *diags)
{
	pthread_mutex_lock(&p->lock);
	p->options.late &= p->made;
	bool ok = make_image(p, diags) && complete_image(p, diags);
	*image = p->image;
	pthread_mutex_unlock(&p->lock);
	image->code = (struct image_code){0};
	return ok;
}

bool program_begin(esp_program *p, struct diags *diags)
{
	if (atomic_load_explicit(&p->ready, memory_order_acquire))
		return true;
	pthread_mutex_lock(&p->lock);
	bool ok = atomic_load_explicit(&p->ready, memory_order_relaxed) || make_code(p, diags);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

bool program_prepare(esp_program *p, struct diags *diags)
{
	if (!program_begin(p, diags))
		return false;
	if (atomic_load_explicit(&p->complete, memory_order_acquire))
		return true;
	pthread_mutex_lock(&p->lock);
	bool ok = complete_image(p, diags);
	pthread_mutex_unlock(&p->lock);
	return ok;
}

/* A program that is kept is kept whole: the last of its users compiles what no run has needed, and the next process
 * finds it. */
static void complete_kept_image(esp_program *p)
{
	struct diags unheard;
	diags_init(&unheard, &p->object.context->allocator);
	if (p->key && compile_is_late(&p->image) && compile_has_any_code(&p->image) && program_is_wanted(p, &unheard))
		complete_image(p, &unheard);
	diags_free(&unheard);
}

/* A forked child has the locks of compilers and of the debuggers' list as they were, and leaves alone what they guard. */
void program_release_code(esp_program *p)
{
	bool forked = p->object.context->process != fork_generation();
	if (!forked) {
		complete_kept_image(p);
		gdb_remove_functions(&p->named);
	}
	if (!forked || !compile_is_late(&p->image))
		image_code_release(&p->image.code);
}

esp_status esp_program_prepare(esp_program *program, esp_error **error)
{
	struct api_call call = api_begin(program);
	bool ok = api_need(&call, program) && program_prepare(program, &call.diags);
	return api_end(&call, ok, error);
}
