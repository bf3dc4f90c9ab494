/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the picture of a run and its legend share: places and colours. */
#ifndef ESPALIER_TOOLS_PICTURE_H
#define ESPALIER_TOOLS_PICTURE_H

#include "profile/profile.h"

enum {
	PICTURE_WIDTH = 960,
	PICTURE_LEFT = 84, /* where time begins */
	PICTURE_RIGHT = PICTURE_WIDTH - 24,
	PICTURE_LETTER = 7 /* width of a letter, about */
};

struct picture {
	FILE *to;
	const struct view *view;
	double width; /* of a nanosecond */
	int top;      /* of the lane at hand */
	double drawn; /* up to where the lane has something so narrow that more of it would not be seen */
};

void picture_words(FILE *, double x, double y, const char *class, const char *text);

/* Colours with what they mean. */
struct paint {
	const char *fill, *name;
};
#define PICTURE_WAIT "url(#wait)"
#define PICTURE_IDLE "#ececec"
enum { PICTURE_PHASES = 3, PICTURE_SPLITS = ESP_SPLIT_SUBTREES + 1 };
extern const struct paint picture_phases[PICTURE_PHASES]; /* in their order */
extern const struct paint picture_splits[PICTURE_SPLITS]; /* of ranges */
/* Of a kernel: its own, unless it takes too little of the time to be seen or there are too many; then that of
 * all such. */
void picture_fill(const struct view *, size_t step, char *fill, size_t size);

/* --- the legend: what is in the picture, and nothing else --- */

int legend_height(const struct view *);
void legend_put(FILE *, const struct view *, int top);
/* The definitions of what is filled with more than a colour. */
void legend_put_patterns(FILE *);

#endif
