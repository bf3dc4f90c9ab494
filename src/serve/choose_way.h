/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Which way requests that have company are computed: each joins supersteps while others are in flight (cells), or all that
 * wait are run together as one minibatch and end together (a forest).  The cheaper one, by what each was measured to take for a
 * cell at such a load, and each is measured again from time to time.  Nothing here reads a clock. */
#ifndef ESPALIER_SERVE_CHOOSE_WAY_H
#define ESPALIER_SERVE_CHOOSE_WAY_H

#include <stdbool.h>
#include <stdint.h>

enum serve_way { SERVE_BY_CELLS, SERVE_BY_FOREST, SERVE_WAYS };

/* Loads are told apart by the powers of two of nodes that are pending. */
enum { SERVE_LOADS = 32 };

/* Zeroed, nothing is known yet, and requests are computed by cells. */
struct serve_load {
	struct serve_rate {
		double cells, time; /* the last ones most [ns] */
	} rate[SERVE_WAYS];
	enum serve_way better;
	bool trial; /* the other way is being measured */
	int done;   /* measurements since that changed */
	int rest;   /* measurements from one trial to the next */
};

struct serve_ways {
	struct serve_load load[SERVE_LOADS];
	int now;	/* the load */
	double pending; /* nodes, averaged */
};

/* Notes how many nodes are pending, of two requests at least, and chooses a way for them. */
enum serve_way serve_choose_way(struct serve_ways *, int64_t nodes);
/* So many cells were computed in so many nanoseconds in that way; none: it could not be taken, which ends its trial in the
 * end, too. */
void serve_note_way(struct serve_ways *, enum serve_way, int64_t cells, int64_t time);

#endif
