/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* How long a request will take together with others: by the rate at which supersteps compute nodes, and by how far such
 * forecasts were off.  Nothing here reads a clock. */
#ifndef ESPALIER_SERVE_FORECAST_H
#define ESPALIER_SERVE_FORECAST_H

#include "linearize/linearize.h"

/* Zeroed, nothing is known yet. */
struct serve_forecast {
	double nodes, time; /* of supersteps, the last ones most [ns] */
	double ratio, deviation; /* of the times that requests took, to those that were expected; 0 = none has ended */
};

/* A superstep has computed so many nodes in so many nanoseconds. */
void serve_note_step(struct serve_forecast *, int64_t nodes, int64_t time);
/* A request took so long that was expected to take `expected`, by serve_expect. */
void serve_note_time(struct serve_forecast *, double expected, int64_t took);
/* How long a request of so many levels takes while supersteps compute so many nodes [ns]; 0 = unknown. */
double serve_expect(const struct serve_forecast *, int64_t levels, int64_t width);
/* Whether supersteps of so many nodes take so long that more nodes would hardly make them more efficient: what a
 * superstep costs besides its nodes is little then, and more requests would only spread over more memory. */
bool serve_is_wide(const struct serve_forecast *, int64_t width);
/* Whether a request that is expected to take so long will hardly end within the time that is left [ns].
 *
 * As of round trips (RFC 6298), the mean of the ratios and a multiple of their deviation: where requests are much
 * alike, nearly all the time may be used; where they are not, more is kept back. */
bool serve_is_late(const struct serve_forecast *, double expected, int64_t left);

/* The levels of a forest whose nodes come behind their children; `room` is for a number for each node.  0 = they do
 * not, or the forest is not valid. */
int64_t serve_count_levels(const struct lin_forest *, int32_t *room);

#endif
