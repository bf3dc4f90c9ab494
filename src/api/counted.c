/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Counted objects: what all public objects have in common. */
#include "api/objects.h"

#include <string.h>

struct esp_context *object_context(const void *object)
{
	const struct object *o = object;
	return o->context ? o->context : (struct esp_context *)o;
}

void *object_new(struct esp_context *context, size_t size, void (*destroy)(void *), struct diags *diags)
{
	const struct allocator *a = &context->allocator;
	struct object *o = a->resize(a->context, NULL, 0, size);
	if (!o) {
		diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL, "no memory for an object");
		return NULL;
	}
	memset(o, 0, size);
	atomic_init(&o->uses, 1);
	o->size = size;
	o->context = object_hold(context);
	o->destroy = destroy;
	return o;
}

void *object_hold(const void *object)
{
	struct object *o = (struct object *)object;
	atomic_fetch_add_explicit(&o->uses, 1, memory_order_relaxed);
	return o;
}

/* The last use must see what other threads did to the object before they released it. */
void object_release(void *object)
{
	struct object *o = object;
	if (!o || atomic_fetch_sub_explicit(&o->uses, 1, memory_order_acq_rel) != 1)
		return;
	struct esp_context *context = o->context;
	const struct allocator a = context ? context->allocator : ((struct esp_context *)o)->hooks;
	o->destroy(o);
	a.resize(a.context, o, o->size, 0);
	object_release(context);
}
