/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Places and colours that the picture of a run and its legend share. */
#ifndef ESPALIER_TOOLS_PICTURE_H
#define ESPALIER_TOOLS_PICTURE_H

#include "profile/profile.h"

enum {
	PICTURE_WIDTH = 960,
	PICTURE_LEFT = 84, /* x where time begins */
	PICTURE_RIGHT = PICTURE_WIDTH - 24,
	PICTURE_LETTER = 7 /* approximate width of a letter */
};

struct picture {
	FILE *to;
	const struct view *view;
	double width; /* points per nanosecond */
	int top;      /* of the current lane */
	double drawn; /* right end of the last narrow box: another one before it would not be seen */
};

void picture_words(FILE *, double x, double y, const char *class, const char *text);

/* A colour and its meaning. */
struct paint {
	const char *fill, *name;
};
#define PICTURE_WAIT "url(#wait)"
#define PICTURE_IDLE "#ececec"
enum { PICTURE_PHASES = 3, PICTURE_SPLITS = ESP_SPLIT_SUBTREES + 1 };
extern const struct paint picture_phases[PICTURE_PHASES]; /* in the order of the phases */
extern const struct paint picture_splits[PICTURE_SPLITS]; /* indexed by a range's split */
/* The fill of a kernel: its own colour, or the common one of kernels that take too little time to be seen
 * or come after the last colour. */
void picture_fill(const struct view *, size_t step, char *fill, size_t size);

/* --- the legend: only colours that are in the picture --- */

int legend_height(const struct view *);
void legend_put(FILE *, const struct view *, int top);
/* Writes the definitions of stripes and dots. */
void legend_put_patterns(FILE *);

#endif
