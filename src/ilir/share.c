/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which intermediates share memory: a plan that holds for every minibatch.
 *
 * Steps of one domain that follow each other take turns over its ranges (a *round* of the table); a range is
 * begun when all of the range before has ended, but within one, parts are at different steps.  So
 *
 *   - intermediates of two rounds may lie over each other wherever they are: what is needed for longer has
 * the steps of all rounds that it is needed in;
 *   - those of one round may when a part's rows are the same bytes in both, rows alike and as many, and the
 * one is read for the last time in a step before the other is written first: then one takes the place of the
 * other. */
#include "ilir/passes.h"

/* The steps that use an intermediate. */
struct use {
	int first, last; /* last < first: none */
};

struct sharing {
	struct use *use; /* by buffer */
	int step;
};

static void note_use(const struct ilir_module *m, const struct ilir_access *a, void *context)
{
	struct sharing *s = context;
	struct use *use = &s->use[a->buffer.i];
	(void)m;
	if (use->last < use->first)
		use->first = s->step;
	use->last = s->step;
}

static struct use *find_uses(const struct ilir_module *m)
{
	struct sharing s = {.use = ARENA_ARRAY(m->arena, struct use, m->buffers.n)};
	for (size_t b = 0; b < m->buffers.n; b++)
		s.use[b] = (struct use){0, -1};
	for (size_t k = 0; k < m->kernels.n; k++, s.step++)
		ilir_visit_accesses(m, m->kernels.at[k].body, note_use, &s);
	return s.use;
}

/* The rounds that a use touches. */
static struct use rounds_of(const struct ilir_module *m, struct use use)
{
	enum image_domain first = m->kernels.at[use.first].domain, last = m->kernels.at[use.last].domain;
	while (use.first > 0 && m->kernels.at[use.first - 1].domain == first)
		use.first--;
	while (use.last + 1 < (int)m->kernels.n && m->kernels.at[use.last + 1].domain == last)
		use.last++;
	return use;
}

/* Rows of which a part of a range has those of its own rows: of a round with one range the domain's, else
 * those that are counted from the beginning of a batch. */
static bool are_own(enum image_domain domain, enum image_size rows)
{
	static const enum image_size of[] = {[IMAGE_DOMAIN_LEAVES] = IMAGE_LEAVES,
					     [IMAGE_DOMAIN_NODES] = IMAGE_NODES,
					     [IMAGE_DOMAIN_PAST_LEAVES] = IMAGE_NODES,
					     [IMAGE_DOMAIN_INPUTS] = IMAGE_INPUTS};
	bool batch = rows == IMAGE_WIDEST || rows == IMAGE_WIDEST_INNER || rows == IMAGE_WIDEST_EDGES;
	return batch || (rows != IMAGE_ONE && (size_t)domain < sizeof of / sizeof *of && of[domain] == rows);
}

/* It is needed within one range only, and a part of that range needs only rows of its own. */
static bool passes(const struct ilir_module *m, const struct image_buffer *b, struct use use,
		   struct use rounds)
{
	enum image_domain domain = m->kernels.at[use.first].domain;
	for (int k = rounds.first; k <= rounds.last; k++)
		if (m->kernels.at[k].domain != domain)
			return false;
	return domain != IMAGE_DOMAIN_ONCE && are_own(domain, b->rows);
}

struct plan {
	const struct ilir_module *m;
	struct image_buffer *buffer;
	int buffers;
	struct use *use; /* by buffer of the image; of a home, up to the last that has its place */
	bool *passing;
};

/* The first place that another one has left when this one is written; its own if there is none. */
static int find_home(const struct plan *p, int i)
{
	const struct image_buffer *b = &p->buffer[i];
	for (int h = 0; p->passing[i] && h < i; h++) {
		const struct image_buffer *home = &p->buffer[h];
		if (home->kind == IMAGE_SCRATCH && home->home == h && p->passing[h] &&
		    home->rows == b->rows && home->dtype == b->dtype && home->row_elements == b->row_elements &&
		    home->first == b->first && home->last == b->last && p->use[h].last < p->use[i].first)
			return h;
	}
	return i;
}

static void place(struct plan *p, int i)
{
	struct image_buffer *b = &p->buffer[i];
	struct use rounds = rounds_of(p->m, p->use[i]);
	b->first = rounds.first;
	b->last = rounds.last;
	p->passing[i] = passes(p->m, b, p->use[i], rounds);
	b->home = find_home(p, i);
	p->use[b->home].last = p->use[i].last;
}

void ilir_share_memory(const struct ilir_module *m, struct image_buffer *buffer, int buffers)
{
	struct use *used = find_uses(m);
	struct plan p = {m, buffer, buffers, ARENA_ARRAY(m->arena, struct use, buffers),
			 ARENA_ARRAY(m->arena, bool, buffers)};
	for (size_t b = 1; b < m->buffers.n; b++)
		if (m->buffers.at[b].kind < ILIR_REGISTER)
			p.use[ilir_buffer_slot(m, (ilir_buffer){b})] = used[b];
	for (int i = 0; i < buffers; i++)
		if (buffer[i].kind == IMAGE_SCRATCH && !buffer[i].at_binding) {
			if (p.use[i].last < p.use[i].first)
				p.use[i] = (struct use){0, 0};
			place(&p, i);
		}
}
