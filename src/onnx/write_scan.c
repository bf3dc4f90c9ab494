/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Scans: a traversal over the steps of an axis, whose body is written twice, for the first step and for the
 * others, and the states that it carries from step to step.  The operators before it and after it are bodies
 * of their own, of whole rows; what one of them computes and another uses is kept in a state (onnx_use). */
#include "onnx/operators.h"

void onnx_begin_scan(const struct onnx_scan *s)
{
	ra_builder_traversal(s->o->target->builder,
			     onnx_format(s->o, "%s over %lld", s->down ? "down" : "up", (long long)s->steps));
	s->o->target->scanning = true;
}

void onnx_begin_step(struct onnx_scan *s, bool first)
{
	static const enum ra_builder_body body[2][2] = {{RA_BODY_INNER, RA_BODY_LEAF},
							{RA_BODY_BELOW, RA_BODY_ROOT}};
	s->first = first;
	ra_builder_body(s->o->target->builder, body[s->down][first]);
}

void onnx_end_scan(const struct onnx_scan *s)
{
	ra_builder_traversal(s->o->target->builder, "up");
	ra_builder_body(s->o->target->builder, RA_BODY_NODE);
	s->o->target->scanning = false;
}

struct onnx_operand onnx_at_step(const struct onnx_scan *s, struct onnx_operand x)
{
	struct onnx_shape shape = {.rank = x.shape.rank - 1};
	memcpy(shape.dim, x.shape.dim + 1, sizeof *shape.dim * shape.rank);
	return onnx_formula(s->o, x.type, &shape, (struct onnx_operand *[]){&x}, 1, "at_step(a)");
}

struct onnx_carried onnx_declare_carried(const struct onnx_scan *s, const char *name,
					 const struct onnx_operand *like)
{
	struct onnx_carried c = {onnx_free_name(s->o, name), like->type, like->shape};
	ra_builder_state(s->o->target->builder, c.name, onnx_state_text(s->o, like));
	return c;
}

struct onnx_operand onnx_carried_before(const struct onnx_scan *s, const struct onnx_carried *c)
{
	struct ra_builder *b = s->o->target->builder;
	uint32_t id = s->down ? ra_builder_parent(b, false, c->name) : ra_builder_child(b, 0, c->name);
	return (struct onnx_operand){.given = true, .type = c->type, .shape = c->shape, .id = id};
}

void onnx_carry(const struct onnx_scan *s, const struct onnx_carried *c, struct onnx_operand x)
{
	ra_builder_assign(s->o->target->builder, c->name, onnx_use(s->o, &x));
}

struct onnx_operand onnx_carried_all(const struct onnx_scan *s, const struct onnx_carried *c)
{
	struct onnx_operand all = {
	    .given = true, .type = c->type, .shape = {.rank = c->shape.rank + 1, .dim = {s->steps}}};
	memcpy(all.shape.dim + 1, c->shape.dim, sizeof *c->shape.dim * c->shape.rank);
	all.id = ra_builder_get(s->o->target->builder, c->name);
	return all;
}
