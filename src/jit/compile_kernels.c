/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels at the same time, by threads that live as long as the call. */
#include "jit/jit.h"

#include "base/fork.h"
#include "base/str.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The usual stack of a main thread, since compilers recurse deeply.  Unused pages take no memory. */
enum { STACK_BYTES = 8 << 20 };

/* One unit, or all kernels, and its object.  It has memory of its own until all threads have ended. */
struct piece {
	const struct jit_unit *unit; /* NULL = all */
	struct jit_made *made;	     /* of code that is open; NULL = only an object is wanted */
	int statements;
	struct arena arena;
	struct diags diags;
	struct str object;
	double *seconds;
	bool ok, escaped; /* escaped: memory was out */
};

struct batch {
	const struct jit_backend *backend;
	const struct ilir_module *module;
	const struct jit_options *options;
	struct jit_threads threads;
	struct jit_process *process; /* NULL = of code that is not open */
	struct piece *piece;  /* by unit, or one */
	struct piece **order; /* the longest first */
	int pieces;
	atomic_int next;
	atomic_bool stopped; /* by the watch */
};

/* --- threads --- */

static void make_object(const struct batch *b, struct piece *p, struct str *object)
{
	jmp_buf escape;
	p->escaped = true;
	if (arena_guard(object->arena, &escape))
		return;
	p->ok = b->backend->compile(b->module, b->options, p->unit, object, p->seconds, &p->diags);
	p->escaped = false;
}

/* The sink of the process gets the object, unless memory is out. */
static void make_code(const struct batch *b, struct piece *p)
{
	void *address = p->made->address;
	if (!address) {
		address = b->backend->find(b->process, p->unit, &p->diags);
		__atomic_store_n(&p->made->address, address, __ATOMIC_RELEASE);
		p->ok = address;
	} else if (!p->made->object.n)
		make_object(b, p, &p->made->object);
}

static void compile_piece(const struct batch *b, struct piece *p)
{
	if (p->made)
		make_code(b, p);
	else
		make_object(b, p, &p->object);
}

/* Calls the watch.  When it stops several threads at once, only the first keeps the diagnostic. */
static bool may_go_on(struct batch *b, struct piece *p)
{
	const struct jit_watch *w = b->options->watch;
	if (!w || (!atomic_load(&b->stopped) && w->goes_on(w->context, &p->diags)))
		return true;
	if (atomic_exchange(&b->stopped, true))
		diags_free(&p->diags);
	return false;
}

static void *compile_next_pieces(void *batch)
{
	struct batch *b = batch;
	for (int i; (i = atomic_fetch_add(&b->next, 1)) < b->pieces;)
		if (may_go_on(b, b->order[i]))
			compile_piece(b, b->order[i]);
	return NULL;
}

void jit_settle(const struct jit_threads *t)
{
	if (t->where)
		sched_setaffinity(0, t->where_bytes, t->where);
}

static void *work_elsewhere(void *batch)
{
	jit_settle(&((struct batch *)batch)->threads);
	return compile_next_pieces(batch);
}

/* Makes as many threads as the system allows; returns their number. */
static int make_threads(pthread_t *thread, int wanted, struct batch *b)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int made = 0;
	if (pthread_attr_init(&attributes) != 0)
		return 0;
	(void)!pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (made < wanted && pthread_create(&thread[made], &attributes, work_elsewhere, b) == 0)
		made++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return made;
}

/* Compiles all pieces.  Nothing escapes from here.  What is compiled when it is needed leaves out the calling thread, if
 * others can be made: it may have a small stack. */
static void run_threads(struct batch *b, pthread_t *thread)
{
	fork_enter_foreign();
	int made = make_threads(thread, b->threads.most - !b->process, b);
	if (!made || !b->process)
		compile_next_pieces(b);
	while (made > 0)
		pthread_join(thread[--made], NULL);
	fork_leave_foreign();
}

/* --- pieces --- */

static int count_statements(const struct ilir_stmt *s)
{
	int n = 0;
	for (; s; s = s->next)
		n += s->kind == ILIR_FOR ? count_statements(s->loop.body)
		     : s->kind == ILIR_IF
			 ? count_statements(s->branch.then) + count_statements(s->branch.otherwise)
			 : 1;
	return n;
}

static int by_statements(const void *a, const void *b)
{
	const struct piece *x = *(struct piece *const *)a, *y = *(struct piece *const *)b;
	return x->statements != y->statements ? y->statements - x->statements : (x > y) - (x < y);
}

/* Of a kernel with variants the first loop over rows, which has the largest tiles. */
static int count_of_unit(const struct ilir_module *m, const struct jit_unit *u)
{
	const struct ilir_stmt *loop = u->variants > 1 ? jit_row_loops(m, u->kernel) : NULL;
	if (!loop)
		return count_statements(m->kernels.at[u->kernel].body);
	for (int i = 0; i < u->variant; i++)
		loop = loop->next;
	return count_statements(loop->loop.body);
}

static void init_piece(const struct batch *b, struct piece *p, const struct jit_unit *unit, struct arena *arena,
		       struct diags *d)
{
	p->unit = unit;
	p->statements = unit ? count_of_unit(b->module, unit) : 0;
	p->object = str_in(&p->arena);
	arena_init(&p->arena, arena->allocator);
	diags_init(&p->diags, d->allocator);
}

static void make_pieces(struct batch *b, struct arena *arena, const struct jit_objects *o, struct diags *d)
{
	b->piece = ARENA_ARRAY(arena, struct piece, b->pieces);
	b->order = ARENA_ARRAY(arena, struct piece *, b->pieces);
	for (int i = 0; i < b->pieces; i++) {
		struct piece *p = b->order[i] = &b->piece[i];
		init_piece(b, p, o->unit ? &o->unit[i] : NULL, arena, d);
		p->seconds = o->seconds[i];
	}
	qsort(b->order, b->pieces, sizeof *b->order, by_statements);
}

/* Moves the object and the diagnostics of a unit to the caller; false when memory is out. */
static bool take_piece(struct piece *p, struct arena *arena, struct image_object *to, struct diags *d)
{
	void *bytes = p->escaped ? NULL : arena_try(arena, p->object.n, 1);
	if (bytes && p->object.n)
		memcpy(bytes, p->object.text, p->object.n);
	*to = (struct image_object){bytes, p->object.n};
	diags_move(d, &p->diags);
	arena_free(&p->arena);
	return bytes;
}

/* Moves all objects in the order of the units, so that nothing depends on the threads. */
static bool take_pieces(struct batch *b, struct arena *arena, struct jit_objects *o, struct diags *d)
{
	bool has_memory = true, ok = true;
	for (int i = 0; i < b->pieces; i++) {
		ok &= b->piece[i].ok;
		has_memory &= take_piece(&b->piece[i], arena, &o->object[i], d);
	}
	if (!has_memory)
		arena_escape(arena);
	return ok;
}

bool jit_compile(const struct jit_backend *backend, const struct ilir_module *m,
		 const struct jit_options *options, struct jit_threads threads, struct arena *arena,
		 struct jit_objects *o, struct diags *d)
{
	struct jit_unit *unit;
	int units = jit_list_units(arena, m, !backend->cuts_rows, &unit);
	int pieces = backend->compiles_all && units ? 1 : units;
	threads.most = threads.most < pieces ? threads.most : pieces;
	pthread_t *thread = ARENA_ARRAY(arena, pthread_t, threads.most + 1);
	o->n = pieces;
	o->unit = backend->compiles_all ? NULL : unit;
	o->object = ARENA_ARRAY(arena, struct image_object, pieces);
	o->seconds = arena_take(arena, pieces, sizeof *o->seconds);
	struct batch b = {
	    .backend = backend, .module = m, .options = options, .threads = threads, .pieces = pieces};
	make_pieces(&b, arena, o, d);
	run_threads(&b, thread);
	return take_pieces(&b, arena, o, d);
}

/* --- code that is compiled when it is needed --- */

/* Units are compiled once, and their memory is their own until the code is closed. */
static void keep_object(void *code, const struct jit_unit *unit, const void *bytes, size_t size,
			const double seconds[JIT_PHASES])
{
	struct jit_code *c = code;
	struct jit_made *made = &c->made[unit - c->unit];
	jmp_buf escape;
	if (!arena_guard(&made->arena, &escape)) {
		memcpy(made->seconds, seconds, sizeof made->seconds);
		str_add(&made->object, bytes, size);
	}
}

bool jit_open(struct arena *arena, const struct jit_backend *backend, const struct ilir_module *m,
	      const struct jit_options *options, struct jit_code *c, struct diags *d)
{
	*c = (struct jit_code){.backend = backend, .module = m, .options = *options};
	if (!backend->open)
		return false;
	c->units = jit_list_units(arena, m, !backend->cuts_rows, &c->unit);
	c->made = ARENA_ARRAY(arena, struct jit_made, c->units);
	for (int i = 0; i < c->units; i++) {
		arena_init(&c->made[i].arena, arena->allocator);
		c->made[i].object = str_in(&c->made[i].arena);
	}
	fork_enter_foreign();
	c->process = backend->open(m, &c->options, c->unit, c->units, (struct jit_sink){keep_object, c}, d);
	fork_leave_foreign();
	return c->process;
}

static bool is_missing(const struct jit_made *made)
{
	return !made->address || !made->object.n;
}

bool jit_need(struct jit_code *c, const int *units, int n, struct jit_threads threads, struct arena *arena,
	      struct diags *d)
{
	struct batch b = {.backend = c->backend,
			  .module = c->module,
			  .options = &c->options,
			  .threads = threads,
			  .process = c->process,
			  .piece = ARENA_ARRAY(arena, struct piece, n),
			  .order = ARENA_ARRAY(arena, struct piece *, n)};
	bool ok = true;
	for (int i = 0; i < n; i++) {
		struct piece *p = &b.piece[b.pieces];
		if (!is_missing(&c->made[units[i]]))
			continue;
		init_piece(&b, p, &c->unit[units[i]], arena, d);
		p->made = &c->made[units[i]];
		p->seconds = p->made->seconds;
		b.order[b.pieces++] = p;
	}
	qsort(b.order, b.pieces, sizeof *b.order, by_statements);
	b.threads.most = threads.most < b.pieces ? threads.most : b.pieces;
	pthread_t *thread = ARENA_ARRAY(arena, pthread_t, b.threads.most + 1);
	run_threads(&b, thread);
	for (int i = 0; i < b.pieces; i++) {
		ok &= b.piece[i].ok;
		diags_move(d, &b.piece[i].diags);
		arena_free(&b.piece[i].arena);
	}
	return ok;
}

/* A child has the compiler's locks as they were when it was forked, and leaves the code where it is. */
void jit_close(struct jit_code *c)
{
	if (c->process) {
		fork_enter_foreign();
		c->backend->close(c->process);
		fork_leave_foreign();
	}
	c->process = NULL;
	for (int i = 0; i < c->units; i++)
		arena_free(&c->made[i].arena);
	c->units = 0;
}

/* --- texts --- */

/* When memory for the text runs out, escapes only after the back end has returned. */
bool jit_print(const struct jit_backend *b, const struct ilir_module *m, const struct jit_options *o,
	       enum jit_text what, struct str *s, struct diags *d)
{
	jmp_buf escape, *outer = s->arena->escape;
	volatile bool ok = false, escaped = true;
	fork_enter_foreign();
	if (!arena_guard(s->arena, &escape)) {
		ok = b->print(m, o, what, s, d);
		escaped = false;
	}
	fork_leave_foreign();
	s->arena->escape = outer;
	if (escaped)
		arena_escape(s->arena);
	return ok;
}
