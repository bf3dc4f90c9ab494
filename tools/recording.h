/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A recorded run, copied out of the library as plain data. */
#ifndef ESPALIER_TOOLS_RECORDING_H
#define ESPALIER_TOOLS_RECORDING_H

#include "espalier.h"

#include <stdbool.h>

struct recording {
	esp_profile_facts facts;
	esp_step *step;
	esp_range *range;
	esp_event *event;
	size_t *nodes; /* of each level */
	/* Different tokens that the edges to children of each level have, of the input `edge_input`; NULL =
	 * not counted. */
	const size_t *tokens;
	int edge_input;
};

/* Replaces the contents; the names of steps stay the program's. False, and empty, when memory is out. */
bool recording_take(struct recording *, const esp_profile *);
void recording_free(struct recording *);
/* Whether a thread without work has finished its own share and waits for the others. False: it had no
 * share, or the caller computed it. */
bool recording_waits(const struct recording *, size_t event);

#endif
