/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A recorded run, copied out of the library: plain data, to be kept and compared. */
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
};

/* In place of what is there; the names of steps stay the program's.  False, and empty, when memory is out. */
bool recording_take(struct recording *, const esp_profile *);
void recording_free(struct recording *);
/* Whether a thread that does nothing has ended a share of its own and waits for the others; else it had none,
 * or the caller did what it had. */
bool recording_waits(const struct recording *, size_t event);

#endif
