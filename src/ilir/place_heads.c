/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Pass: moves a local group from the head of a kernel into the kernel's outermost loop, where each iteration reads its
 * own elements only, and keeps those of one iteration.
 *
 *     for n in begin..end                      for c.1 in 0..144
 *       for c in 0..144                          for n in begin..end
 *         for p in 0..58: copy[n, c, p] = ..       for p in 0..58: copy[n, 0, p] = ..
 *     for c.1 in 0..144                  ->      for n.1 in begin..end
 *       for n.1 in begin..end                      for i in 0..56
 *         for i in 0..56                             .. copy[n.1, 0, i + 2] ..
 *           .. copy[n.1, c.1, i + 2] ..
 *
 * So what is copied for the windows of a channel is read from the first-level cache, and threads that divide channels
 * copy only their own.
 *
 * Needs: outline has run, and no loop is cut yet.  A loop that will be cut keeps its head outside. */
#include "ilir/passes.h"

/* How a kernel uses a local buffer, of which an iteration of its last loop uses the elements at index `var` only. */
struct use {
	ilir_buffer buffer;
	int dim;	/* of the buffer, which this index selects; -1 = none, or not one only */
	ilir_var var;
	bool found;
};

static bool is_var(const struct ilir_module *m, ilir_expr e, ilir_var v)
{
	return ilir_at(m, e)->op == ILIR_VAR && ilir_at(m, e)->var.i == v.i;
}

/* Takes the dimension that the variable selects in the first access; in all others it must be the same one. */
static void note_use(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct use *u = context;
	if (a->buffer.i != u->buffer.i)
		return;
	for (int d = 0; !u->found && d < a->indices; d++)
		if (is_var(m, a->index[d], u->var))
			u->dim = d;
	u->found = true;
	if (u->dim >= 0 && !is_var(m, a->index[u->dim], u->var))
		u->dim = -1;
}

/* The dimension of a buffer that a variable selects in all accesses of a statement; -1 = none. */
static int selected_dim(const struct ilir_module *m, const struct ilir_stmt *s, ilir_buffer b, ilir_var v)
{
	struct use u = {b, -1, v, false};
	struct ilir_stmt alone = *s;
	alone.next = NULL;
	ilir_visit_accesses(m, &alone, note_use, &u);
	return u.dim;
}

static bool is_used(const struct ilir_module *m, const struct ilir_stmt *s, ilir_buffer b)
{
	struct use u = {.buffer = b, .dim = -1};
	ilir_visit_accesses(m, s, note_use, &u);
	return u.found;
}

/* A head that can be moved: the statement, and the loop in it that the outermost loop of the kernel takes the place
 * of. */
struct head {
	struct ilir_stmt **link, *loop;
	int dim;
};

/* The loop in a nest, in which each body is a single statement, with this range; its variable selects dimension `dim`
 * of the buffer. */
static struct ilir_stmt *find_loop(const struct ilir_module *m, struct ilir_stmt *nest, const struct ilir_stmt *like,
				   ilir_buffer b, int dim)
{
	for (struct ilir_stmt *s = nest; s && s->kind == ILIR_FOR && (s == nest || !s->next); s = s->loop.body)
		if (s != nest && s->loop.begin.i == like->loop.begin.i && s->loop.end.i == like->loop.end.i &&
		    s->loop.step == like->loop.step && selected_dim(m, s, b, s->loop.var) == dim)
			return s;
	return NULL;
}

static struct ilir_stmt **last_link(struct ilir_stmt **block)
{
	while (*block && (*block)->next)
		block = &(*block)->next;
	return block;
}

/* Finds the head of a kernel that stores a buffer; false unless it is the only one, and can be moved. */
static bool find_head(const struct ilir_module *m, const struct ilir_tiling *tiling, struct ilir_kernel *k,
		      ilir_buffer b, struct head *h)
{
	struct ilir_stmt *last = *last_link(&k->body);
	*h = (struct head){0};
	if (!last || last->kind != ILIR_FOR || ilir_trip_count(m, last) < 2 || ilir_tile_of(tiling, last->loop.var))
		return false;
	h->dim = selected_dim(m, last, b, last->loop.var);
	for (struct ilir_stmt **link = &k->body; *link != last; link = &(*link)->next) {
		struct ilir_stmt alone = **link;
		alone.next = NULL;
		if (!is_used(m, &alone, b))
			continue;
		if (h->link)
			return false;
		h->link = link;
	}
	if (h->dim >= 0 && h->link && (*h->link)->kind == ILIR_FOR)
		h->loop = find_loop(m, *h->link, last, b, h->dim);
	return h->loop != NULL;
}

struct stores {
	ilir_buffer buffer;
	bool others; /* of memory */
};

static void note_stores(const struct ilir_module *m, const struct ilir_stmt *s, void *context)
{
	struct stores *st = context;
	if (s->kind == ILIR_STORE && s->store.buffer.i != st->buffer.i)
		st->others |= ilir_buffer_at(m, s->store.buffer)->kind != ILIR_REGISTER;
}

static bool stores_others(const struct ilir_module *m, const struct ilir_stmt *s, ilir_buffer b)
{
	struct stores st = {b, false};
	struct ilir_stmt alone = *s;
	alone.next = NULL;
	ilir_visit_block(m, &alone, &(struct ilir_visit){.stmt = note_stores, .context = &st});
	return st.others;
}

/* Whether all kernels that use a local buffer can keep it for an iteration: sets the dimension that goes. */
static bool can_be_moved(struct ilir_module *m, const struct ilir_tiling *tiling, ilir_buffer b, int *dim)
{
	*dim = -1;
	for (size_t i = 0; i < m->kernels.n; i++) {
		struct ilir_kernel *k = &m->kernels.at[i];
		struct head h;
		if (!is_used(m, k->body, b))
			continue;
		if (!find_head(m, tiling, k, b, &h) || (*dim >= 0 && *dim != h.dim) || stores_others(m, *h.link, b))
			return false;
		*dim = h.dim;
	}
	return *dim >= 0;
}

/* Moves a head to the beginning of the last loop's body. */
static void move_head(struct ilir_module *m, struct ilir_kernel *k, const struct head *h)
{
	struct ilir_stmt *last = *last_link(&k->body), *head = *h->link, *inside = h->loop->loop.body;
	inside = ilir_substitute_block(m, inside, h->loop->loop.var, ilir_var_ref(m, last->loop.var));
	struct ilir_stmt *around = head;
	while (around->loop.body != h->loop)
		around = around->loop.body;
	around->loop.body = inside;
	*h->link = head->next;
	head->next = NULL;
	last->loop.body = ilir_append(head, last->loop.body);
}

struct narrowing {
	ilir_buffer buffer;
	int dim;
};

static ilir_expr narrow_load(struct ilir_module *m, ilir_expr e, void *context)
{
	const struct narrowing *w = context;
	ilir_expr index[ILIR_MAX_RANK];
	int n = ilir_at(m, e)->args;
	if (ilir_at(m, e)->op != ILIR_LOAD || ilir_at(m, e)->buffer.i != w->buffer.i)
		return e;
	for (int i = 0; i < n; i++)
		index[i] = i == w->dim ? ilir_index(m, 0) : ilir_arg(m, e, i);
	return ilir_load(m, w->buffer, index, n);
}

static struct ilir_stmt *narrow_store(struct ilir_module *m, struct ilir_stmt *s, void *context)
{
	const struct narrowing *w = context;
	if (s->kind == ILIR_STORE && s->store.buffer.i == w->buffer.i)
		s->store.index[w->dim] = ilir_index(m, 0);
	return s;
}

static void place_buffer(struct ilir_module *m, const struct ilir_tiling *tiling, ilir_buffer b)
{
	struct narrowing w = {b, -1};
	if (!can_be_moved(m, tiling, b, &w.dim))
		return;
	for (size_t i = 0; i < m->kernels.n; i++) {
		struct head h;
		if (is_used(m, m->kernels.at[i].body, b) && find_head(m, tiling, &m->kernels.at[i], b, &h))
			move_head(m, &m->kernels.at[i], &h);
	}
	ilir_rewrite_module(m, &(struct ilir_rewrite){narrow_load, narrow_store, &w});
	ilir_buffer_at(m, b)->dim[w.dim].extent = ilir_buffer_at(m, b)->dim[w.dim].padded = 1;
}

void ilir_place_heads(struct ilir_module *m, struct ilir_tiling *tiling)
{
	for (size_t b = m->buffers.n; b-- > 1;)
		if (m->buffers.at[b].kind == IMAGE_LOCAL)
			place_buffer(m, tiling, (ilir_buffer){(uint32_t)b});
}
