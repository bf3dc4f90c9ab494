/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of index notation. */
#include "ra/print.h"

/* --- names --- */

static bool is_plain(const struct ra_index_form *f)
{
	return f->terms == 1 && f->term[0].scale == 1 && !f->offset.terms && !f->offset.constant;
}

/* The nest that an element or what is computed of it belongs to; -1 = it depends on no index variable. */
static int nest_of(const struct ra_printer *p, const struct ra_node *n, const int *nest)
{
	int rank = ra_is_element(n) ? ra_at(p->m, n->arg[0])->shape.rank : 0;
	for (int d = 0; d < rank; d++)
		if (n->element->at[d].terms)
			return p->m->indices.at[n->element->at[d].term[0].index].nest;
	for (int j = 0; n->free && j < ra_op_arity(n->op); j++)
		if (ra_at(p->m, n->arg[j])->free)
			return nest[n->arg[j].i];
	return -1;
}

static void find_plain(struct ra_printer *p, const struct ra_node *n)
{
	for (int d = 0; d < ra_at(p->m, n->arg[0])->shape.rank; d++)
		if (is_plain(&n->element->at[d]))
			p->plain[n->element->at[d].term[0].index] = true;
}

/* The nodes that introduce the index variables of nests, by nest and position. */
struct owners {
	uint32_t at[RA_MAX_POSITIONS];
};

static struct owners *find_owners(struct ra_printer *p)
{
	const struct ra_model *m = p->m;
	struct owners *owner = ARENA_ARRAY(p->arena, struct owners, ra_count_nests(m) + 1);
	for (uint32_t i = 1; i < m->nodes.n; i++)
		for (int k = 0; ra_introduces_indices(&m->nodes.at[i]) && k < m->nodes.at[i].indices->n; k++) {
			const struct ra_index *index = &m->indices.at[m->nodes.at[i].indices->index[k]];
			owner[index->nest].at[index->position] = i;
		}
	return owner;
}

/* Users come after their arguments, so of the nodes that introduce what a node depends on the first is the innermost. */
void ra_find_homes(struct ra_printer *p)
{
	const struct ra_model *m = p->m;
	const struct owners *owner = find_owners(p);
	int *nest = ARENA_ARRAY(p->arena, int, m->nodes.n + 1);
	for (uint32_t i = 1; i < m->nodes.n; i++) {
		const struct ra_node *n = &m->nodes.at[i];
		nest[i] = nest_of(p, n, nest);
		for (int bit = 0; n->free && bit < 64; bit++)
			if (n->free >> bit & 1 && (!p->home[i] || owner[nest[i]].at[bit] < p->home[i]))
				p->home[i] = owner[nest[i]].at[bit];
		if (ra_is_element(n))
			find_plain(p, n);
	}
}

/* --- expressions --- */

static void print_form(struct ra_printer *p, const struct ra_index_form *f)
{
	struct str rest = str_in(p->arena);
	for (int t = 0; t < f->terms; t++) {
		int scale = f->term[t].scale;
		str_puts(p->s, t ? (scale < 0 ? " - " : " + ") : scale < 0 ? "-" : "");
		if (scale != 1 && scale != -1)
			str_printf(p->s, "%d*", scale < 0 ? -scale : scale);
		str_puts(p->s, p->index[f->term[t].index]);
	}
	if (f->terms && !f->offset.terms && !f->offset.constant)
		return;
	ra_dim_print(p->m, &f->offset, &rest);
	const char *text = str_text(&rest);
	if (!f->terms)
		str_puts(p->s, text);
	else if (*text == '-')
		str_printf(p->s, " - %s", text + 1);
	else
		str_printf(p->s, " + %s", text);
}

void ra_print_element(struct ra_printer *p, const struct ra_node *n)
{
	ra_print_use(p, n->arg[0], PRIMARY);
	str_puts(p->s, "[");
	for (int d = 0; d < ra_at(p->m, n->arg[0])->shape.rank; d++) {
		str_puts(p->s, d ? ", " : "");
		if (ra_is_gathered(n, d))
			ra_print_use(p, n->arg[1], ANY);
		else
			print_form(p, &n->element->at[d]);
	}
	str_puts(p->s, "]");
	if (!n->element->written)
		return;
	str_puts(p->s, " else ");
	str_double(p->s, n->element->fill);
}

static bool is_index_used(const struct ra_printer *p, const char *name)
{
	for (size_t i = 0; i < p->open.n; i++)
		if (strcmp(p->open.at[i], name) == 0)
			return true;
	return false;
}

/* A name for an index variable, its own unless that has a meaning here. */
static const char *choose_index_name(struct ra_printer *p, int index)
{
	const char *own = p->m->indices.at[index].name, *name = own;
	for (int n = 1; map_get(&p->declared, name, strlen(name)) >= 0 || is_index_used(p, name); n++)
		do
			name = str_format(p->arena, "%s%d", own, n);
		while (map_get(&p->taken, name, strlen(name)) >= 0 && n++);
	return name;
}

/* Introduces variables and prints them, with an extent that no axis tells. */
static void print_indices(struct ra_printer *p, const struct ra_indices *all)
{
	for (int i = 0; i < all->n; i++) {
		int index = all->index[i];
		p->index[index] = choose_index_name(p, index);
		vec_push(p->arena, &p->open, p->index[index]);
		str_printf(p->s, "%s%s", i ? ", " : "", p->index[index]);
		if (p->plain[index])
			continue;
		str_puts(p->s, " in ");
		ra_dim_print(p->m, &p->m->indices.at[index].extent, p->s);
	}
}

/* Chooses the names of the variables first, which stand after the value. */
void ra_print_over(struct ra_printer *p, uint32_t i)
{
	const struct ra_node *n = &p->m->nodes.at[i];
	struct str names = str_in(p->arena), *to = p->s;
	p->s = &names;
	print_indices(p, n->indices);
	p->s = to;
	str_printf(p->s, "%s(", ra_op_spelling(n->op));
	ra_print_with_names(p, n->arg[0].i, false, i);
	str_printf(p->s, " for %s)", str_text(&names));
	p->open.n -= (size_t)n->indices->n;
}

void ra_print_nest(struct ra_printer *p, uint32_t i)
{
	const struct ra_node *n = &p->m->nodes.at[i];
	str_puts(p->s, "[");
	print_indices(p, n->indices);
	str_puts(p->s, "] = ");
	ra_print_with_names(p, n->arg[0].i, false, i);
	p->open.n -= (size_t)n->indices->n;
}
