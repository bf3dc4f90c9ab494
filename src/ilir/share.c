/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Decides which intermediates share memory, in a way that holds for every minibatch.
 *
 * Successive steps of one domain form a *round*: the runtime runs all of them over one range of rows before
 * it begins the next range.  Within a range, threads may be at different steps, each for its own chunk of
 * rows.  So
 *
 *   - intermediates that are live in different rounds may share memory in any way.  One is live from its
 *     first round to its last, for all steps of both;
 *   - intermediates of one round may share memory if each chunk's rows are the same bytes in both, that is,
 *     if their rows are equal in size and number, and the last read of one is in an earlier step than the
 *     first write of the other.  Then the second is placed where the first is, its *home*. */
#include "ilir/passes.h"

/* The first and last step that uses an intermediate. */
struct use {
	int first, last; /* last < first: none */
};

struct sharing {
	struct use *use; /* by buffer */
	int step;
};

static void extend_use(struct sharing *s, ilir_buffer b)
{
	struct use *use = &s->use[b.i];
	if (use->last < use->first)
		use->first = s->step;
	use->last = s->step;
}

static void note_use(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	(void)m;
	extend_use(context, a->buffer);
}

static void note_call(const struct ilir_module *m, int call, struct sharing *s)
{
	for (int i = 0; call && i < m->calls.at[call - 1].operands; i++)
		extend_use(s, m->calls.at[call - 1].operand[i].buffer);
}

static struct use *find_uses(const struct ilir_module *m)
{
	struct sharing s = {.use = ARENA_ARRAY(m->arena, struct use, m->buffers.n)};
	for (size_t b = 0; b < m->buffers.n; b++)
		s.use[b] = (struct use){0, -1};
	for (size_t k = 0; k < m->kernels.n; k++, s.step++) {
		ilir_visit_accesses(m, m->kernels.at[k].body, note_use, &s);
		note_call(m, m->kernels.at[k].call, &s);
	}
	return s.use;
}

/* A use extended to all steps of its first and last rounds. */
static struct use rounds_of(const struct ilir_module *m, struct use use)
{
	enum image_domain first = m->kernels.at[use.first].domain, last = m->kernels.at[use.last].domain;
	while (use.first > 0 && m->kernels.at[use.first - 1].domain == first)
		use.first--;
	while (use.last + 1 < (int)m->kernels.n && m->kernels.at[use.last + 1].domain == last)
		use.last++;
	return use;
}

/* Whether a chunk of a range only accesses rows with its own numbers: rows of the domain, in a round with
 * one range, or rows counted from the beginning of a batch. */
static bool has_own_rows(enum image_domain domain, enum image_size rows)
{
	static const enum image_size of[] = {[IMAGE_DOMAIN_LEAVES] = IMAGE_LEAVES,
					     [IMAGE_DOMAIN_NODES] = IMAGE_NODES,
					     [IMAGE_DOMAIN_PAST_LEAVES] = IMAGE_NODES,
					     [IMAGE_DOMAIN_INPUTS] = IMAGE_INPUTS};
	bool batch = rows == IMAGE_WIDEST || rows == IMAGE_WIDEST_INNER || rows == IMAGE_WIDEST_EDGES;
	return batch || (rows != IMAGE_ONE && (size_t)domain < sizeof of / sizeof *of && of[domain] == rows);
}

/* Whether an intermediate is used in one round only, and each chunk of a range uses only its own rows. */
static bool is_reusable(const struct ilir_module *m, const struct image_buffer *b, struct use use,
			struct use rounds)
{
	enum image_domain domain = m->kernels.at[use.first].domain;
	for (int k = rounds.first; k <= rounds.last; k++)
		if (m->kernels.at[k].domain != domain)
			return false;
	return domain != IMAGE_DOMAIN_ONCE && has_own_rows(domain, b->rows);
}

struct placement {
	const struct ilir_module *m;
	struct image_buffer *buffer;
	int buffers;
	struct use *use; /* by buffer of the image; that of a home covers all buffers placed there */
	bool *reusable;	 /* by buffer of the image */
};

/* The first buffer that is no longer used when buffer i is written, and can be its home; i if there is
 * none. */
static int find_home(const struct placement *p, int i)
{
	const struct image_buffer *b = &p->buffer[i];
	for (int h = 0; p->reusable[i] && h < i; h++) {
		const struct image_buffer *home = &p->buffer[h];
		if (home->kind == IMAGE_SCRATCH && home->home == h && p->reusable[h] &&
		    home->rows == b->rows && home->dtype == b->dtype &&
		    home->row_elements == b->row_elements && home->first == b->first &&
		    home->last == b->last && p->use[h].last < p->use[i].first)
			return h;
	}
	return i;
}

static void place_buffer(struct placement *p, int i)
{
	struct image_buffer *b = &p->buffer[i];
	struct use rounds = rounds_of(p->m, p->use[i]);
	b->first = rounds.first;
	b->last = rounds.last;
	p->reusable[i] = is_reusable(p->m, b, p->use[i], rounds);
	b->home = find_home(p, i);
	p->use[b->home].last = p->use[i].last;
}

void ilir_share_memory(const struct ilir_module *m, struct image_buffer *buffer, int buffers)
{
	struct use *used = find_uses(m);
	struct placement p = {m, buffer, buffers, ARENA_ARRAY(m->arena, struct use, buffers),
			      ARENA_ARRAY(m->arena, bool, buffers)};
	for (size_t b = 1; b < m->buffers.n; b++)
		if (ilir_traits_of(&m->buffers.at[b]))
			p.use[ilir_buffer_slot(m, (ilir_buffer){b})] = used[b];
	for (int i = 0; i < buffers; i++) {
		if (p.use[i].last < p.use[i].first)
			p.use[i] = (struct use){0, 0};
		buffer[i].first_access = p.use[i].first;
		buffer[i].last_access = p.use[i].last;
		if (buffer[i].kind == IMAGE_SCRATCH && !buffer[i].at_binding)
			place_buffer(&p, i);
	}
}
