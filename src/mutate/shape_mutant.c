/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which values have mutants, and what sizes a layout gives to their dimensions. */
#include "mutate/image_mutant.h"

/* --- sites --- */

/* The name that the value has for a variable of its argument's own; -1 for none. */
static int name_in_use(const struct sub_value *a, const struct sub_use *u, int var)
{
	for (int i = 0; i < a->vars; i++)
		if (a->var[i] == var)
			return u->var[i];
	return -1;
}

static struct sub_map translate_map(const struct sub_value *a, const struct sub_use *u, struct sub_map m)
{
	m.var = m.var < 0 ? -1 : name_in_use(a, u, m.var);
	if (m.scale2)
		m.var2 = name_in_use(a, u, m.var2);
	return m;
}

static bool is_reduced(const struct sub_value *y, int var)
{
	return var >= 0 && sub_position_in(&y->reduced, var) >= 0;
}

static bool reads_var(const struct sub_map *m, int var)
{
	return m->var == var || (m->scale2 && m->var2 == var);
}

/* Whether a variable is one of the image's alone, and of one dimension of it. */
static bool is_own(const struct mutate_site *s, const struct sub_value *y, int dim, int var, bool of_kernel)
{
	for (int a = 0; a < y->args; a++)
		if (a != s->operand && !(of_kernel && a) && sub_use_has(&y->arg[a], var))
			return false;
	for (int i = 0; i < s->dims; i++)
		if (i != dim && reads_var(&s->dim[i].map, var))
			return false;
	return true;
}

/* step*out + dilation*reduced + offset, or out + offset */
static void describe_dim(const struct sub_program *p, struct mutate_site *s, const struct sub_value *y, int i)
{
	struct mutate_dim *d = &s->dim[i];
	const struct sub_map *m = &d->map;
	bool swapped = is_reduced(y, m->var);
	if (m->function != SUB_AFFINE || m->var < 0 || (swapped && !m->scale2))
		return;
	d->out = swapped ? m->var2 : m->var;
	d->step = swapped ? m->scale2 : m->scale;
	d->reduced = !m->scale2 ? -1 : swapped ? m->var : m->var2;
	d->dilation = !m->scale2 ? 0 : swapped ? m->scale : m->scale2;
	d->offset = m->offset;
	d->outs = p->vars.at[d->out].extent;
	d->kernel = d->reduced < 0 ? 1 : p->vars.at[d->reduced].extent;
	bool window = d->reduced < 0 || is_reduced(y, d->reduced);
	d->free = window && !is_reduced(y, d->out) && d->step > 0 && d->dilation >= 0 && is_own(s, y, i, d->out, false) &&
		  (d->reduced < 0 || is_own(s, y, i, d->reduced, true));
}

static bool is_window(const struct mutate_dim *d)
{
	return d->free && (d->kernel > 1 || d->step > 1);
}

static void read_operand(const struct sub_program *p, const struct sub_value *y, struct mutate_site *s)
{
	const struct sub_use *u = &y->arg[s->operand];
	const struct sub_value *a = sub_at(p, u->value);
	s->leading = sub_leading_dims(p, a->arg[0].value);
	s->dims = a->arg[0].vars - s->leading;
	for (int i = 0; i < s->dims; i++) {
		struct mutate_dim *d = &s->dim[i];
		*d = (struct mutate_dim){.out = -1, .reduced = -1, .map = translate_map(a, u, a->map[s->leading + i])};
		d->extent = p->vars.at[sub_at(p, a->arg[0].value)->var[s->leading + i]].extent;
	}
	for (int i = 0; i < s->dims; i++)
		describe_dim(p, s, y, i);
}

bool mutate_find_site(const struct sub_program *p, sub_ref r, struct mutate_site *s)
{
	const struct sub_value *y = sub_at(p, r);
	if (y->op != SUB_ACCUMULATE || y->dtype != DTYPE_F32 || sub_reduces_ragged(p, y))
		return false;
	for (int a = 1; a < 3; a++) {
		const struct sub_value *v = sub_at(p, y->arg[a].value);
		bool windows = false;
		if (v->op != SUB_ASSIGN || (v->fills && v->fill != 0) || v->arg[0].vars > TENSOR_MAX_RANK)
			continue;
		*s = (struct mutate_site){.value = r, .operand = a};
		read_operand(p, y, s);
		for (int i = 0; i < s->dims; i++)
			windows |= is_window(&s->dim[i]);
		if (windows)
			return true;
	}
	return false;
}

/* --- layouts --- */

int mutate_count_changes(const struct mutate_site *s, const struct mutate_layout *l)
{
	int n = 0;
	for (int i = 0; i < s->dims; i++)
		n += l->of[i].border + (l->of[i].piece != MUTATE_WHOLE);
	return n;
}

bool mutate_changes_kernel(const struct mutate_site *s, const struct mutate_layout *l)
{
	bool any = false;
	for (int i = 0; i < s->dims; i++)
		any |= l->of[i].piece != MUTATE_WHOLE && l->of[i].place == MUTATE_CHANNELS;
	return any;
}

static int64_t divide_down(int64_t a, int64_t b)
{
	return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static int64_t divide_up(int64_t a, int64_t b)
{
	return -divide_down(-a, b);
}

/* Every by-th position reads every by-th element: these are images of their own. */
static bool split_phases(const struct mutate_dim *d, int64_t by, struct mutate_shape *h)
{
	h->outs = divide_up(d->outs, by);
	h->divisor = by;
	h->offset = divide_down(h->offset, by);
	h->dilation /= by;
	return d->dilation % by == 0 && by <= d->outs;
}

/* Elements that one step of the window passes become channels. */
static bool split_channels(const struct mutate_dim *d, int64_t by, struct mutate_shape *h)
{
	h->step /= by;
	h->shift = h->offset - by * divide_down(h->offset, by);
	h->offset = divide_down(h->offset, by);
	h->kernel = divide_up(d->kernel + h->shift, by);
	return d->step % by == 0 && d->dilation == 1;
}

static bool split_parts(const struct mutate_dim *d, int64_t by, struct mutate_shape *h)
{
	int64_t extent = h->main;
	h->main = h->extra_step = extent / by;
	h->main_step = 1;
	h->outs = h->modulus = d->outs / by;
	return extent % by == 0 && d->outs % by == 0 && h->main == d->step * h->outs;
}

static bool split_dim(const struct mutate_dim *d, const struct mutate_change *c, struct mutate_shape *h)
{
	if (c->by < 2 || c->by > h->main)
		return false;
	h->extra = c->by;
	if (c->piece == MUTATE_PART)
		return c->place != MUTATE_CHANNELS && split_parts(d, c->by, h);
	h->main = divide_up(h->main, c->by);
	h->main_step = c->by;
	h->extra_step = 1;
	return c->place == MUTATE_CHANNELS ? split_channels(d, c->by, h) : split_phases(d, c->by, h);
}

static bool find_shape(const struct mutate_dim *d, const struct mutate_change *c, struct mutate_shape *h)
{
	*h = (struct mutate_shape){.main = d->extent,
				   .main_step = 1,
				   .outs = d->outs,
				   .step = d->step,
				   .dilation = d->dilation,
				   .offset = d->offset,
				   .kernel = d->kernel,
				   .joined = -1};
	if (!c->border && c->piece == MUTATE_WHOLE)
		return true;
	if (!d->free || (c->border && !is_window(d)))
		return false;
	if (c->border) {
		h->first = d->offset;
		h->offset = 0;
		h->main = d->step * (d->outs - 1) + d->dilation * (d->kernel - 1) + 1;
	}
	return c->piece == MUTATE_WHOLE || split_dim(d, c, h);
}

/* The parts of another dimension lie side by side along this one, as far from each other as windows step evenly. */
static bool join_dim(const struct mutate_site *s, int into, int from, struct mutate_shape *h)
{
	if (into < 0 || into >= s->dims || !is_window(&s->dim[into]) || h[into].joined >= 0)
		return false;
	h[into].joined = from;
	h[into].main = divide_up(h[into].main, h[into].step) * h[into].step;
	return true;
}

/* Whether a layout changes something, and only dimensions that the image has. */
static bool fits_image(const struct mutate_site *s, const struct mutate_layout *l)
{
	for (int i = s->dims; i < TENSOR_MAX_RANK; i++)
		if (l->of[i].border || l->of[i].piece != MUTATE_WHOLE)
			return false;
	return mutate_count_changes(s, l) > 0;
}

bool mutate_find_shapes(const struct mutate_site *s, const struct mutate_layout *l, struct mutate_shape *h)
{
	if (!fits_image(s, l))
		return false;
	for (int i = 0; i < s->dims; i++)
		if (!find_shape(&s->dim[i], &l->of[i], &h[i]))
			return false;
	for (int i = 0; i < s->dims; i++)
		if (l->of[i].piece != MUTATE_WHOLE && l->of[i].place == MUTATE_BEFORE && !join_dim(s, l->of[i].before, i, h))
			return false;
	return true;
}
