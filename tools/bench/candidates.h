/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The tiles of an exhaustive search, and which of them need no further time. */
#ifndef ESPALIER_TOOLS_CANDIDATES_H
#define ESPALIER_TOOLS_CANDIDATES_H

#include "tune/tune.h"

/* FATE(ID, "name"): what became of a tile.
 *
 *   TIMED      it ran as long as all that were not dropped
 *   PREDICTED  never ran: the cost model predicts that it takes too long beside the chosen one
 *   SAME       never ran: it differs from another in sizes alone that are larger than any range of rows
 *   GREATEST   never ran: of the tiles with the same greatest size, columns and order the most promising one
 *              was too slow
 *   SLOWER     ran for a short time, and was too slow
 *   REFUSED    the library refused it, or it changed results */
#define EACH_FATE(FATE)                                                                                      \
	FATE(TIMED, "timed")                                                                                 \
	FATE(PREDICTED, "predicted")                                                                         \
	FATE(SAME, "same")                                                                                   \
	FATE(GREATEST, "greatest")                                                                           \
	FATE(SLOWER, "slower")                                                                               \
	FATE(REFUSED, "refused")

enum fate {
#define FATE(id, name) FATE_##id,
	EACH_FATE(FATE)
#undef FATE
	    FATES
};

struct candidate {
	const struct option *option;
	enum fate fate;
	double holder, challenger; /* least seconds of the chosen tile and of this one; INFINITY = was not timed */
};

struct candidates {
	struct candidate *at;
	size_t n;
};

/* What is dropped before anything is timed. */
struct limits {
	double within; /* the most that a prediction may be, over that of the chosen tile */
	int64_t rows;  /* the most that one call computes */
};

/* Lists all predicted options of a block but the chosen one, in the order of their predictions. False after a
 * message. */
bool candidates_list(struct candidates *, const struct block *, const struct limits *);
/* Whether it is the most promising one of its greatest size, columns and order that was not dropped. */
bool candidate_stands_for_others(const struct candidates *, size_t i);
/* The time over that of the chosen tile; INFINITY when it was not timed. */
double candidate_ratio(const struct candidate *);
/* Drops what took longer than `margin` times the best, or than the chosen tile where none is better, and all
 * that such a one stands for. */
void candidates_drop(struct candidates *, double margin);
/* The fastest first, then what was dropped. */
void candidates_sort(struct candidates *);
/* Writes how many there are of each fate: {"timed": 5, "predicted": 7, ...}. */
void candidates_print(const struct candidates *, FILE *);
void candidates_free(struct candidates *);

#endif
