/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <stdlib.h>

/* Arrays have one element more than needed, so that NULL always means that memory is out. */
static bool reserve_recording(struct recording *r)
{
	r->step = calloc(r->facts.steps + 1, sizeof *r->step);
	r->range = calloc(r->facts.ranges + 1, sizeof *r->range);
	r->event = calloc(r->facts.events + 1, sizeof *r->event);
	r->nodes = calloc(r->facts.levels + 1, sizeof *r->nodes);
	return r->step && r->range && r->event && r->nodes;
}

bool recording_take(struct recording *r, const esp_profile *p)
{
	recording_free(r);
	r->facts = *esp_profile_describe(p);
	if (!reserve_recording(r)) {
		recording_free(r);
		return false;
	}
	for (size_t i = 0; i < r->facts.steps; i++)
		r->step[i] = *esp_profile_step(p, i);
	for (size_t i = 0; i < r->facts.ranges; i++)
		r->range[i] = *esp_profile_range(p, i);
	for (size_t i = 0; i < r->facts.events; i++)
		r->event[i] = *esp_profile_event(p, i);
	for (size_t i = 0; i < r->facts.levels; i++)
		r->nodes[i] = esp_profile_nodes(p, i);
	return true;
}

/* Waiting begins when the thread's last call in the range ends, or in the levels below that are divided
 * among threads together with it; without such a call it begins with the range. */
bool recording_waits(const struct recording *r, size_t event)
{
	const esp_event *e = &r->event[event], *before = e - 1;
	bool called = e->kind == ESP_EVENT_WAIT && event && before->kind == ESP_EVENT_KERNEL &&
		      before->thread == e->thread && before->stop == e->start;
	return called && (before->range == e->range || r->range[e->range].split == ESP_SPLIT_SUBTREES);
}

void recording_free(struct recording *r)
{
	free(r->step);
	free(r->range);
	free(r->event);
	free(r->nodes);
	*r = (struct recording){0};
}
