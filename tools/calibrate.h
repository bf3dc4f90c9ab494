/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of espalier quantise share. */
#ifndef ESPALIER_TOOLS_CALIBRATE_H
#define ESPALIER_TOOLS_CALIBRATE_H

#include "tool.h"

/* The labels of an output, counted over nodes that have a right one. */
struct accuracy {
	size_t nodes, right[2], changed; /* right: with the weights in f32, with those that are quantised */
};

struct quantising {
	const struct options *options;
	struct objects objects;
	struct objects quantised; /* the same objects, with the quantised weights and their program */
	esp_calibration *calibration[2]; /* in f32, quantised */
	struct batches batches[2];
	struct batch batch[2];
	struct accuracy *accuracy; /* by output */
	size_t structures, nodes;  /* that were observed, and the nodes that were compared */
};

/* The outputs of the model, which are the first ones of both programs. */
size_t count_outputs(const struct quantising *);
/* Counts the labels of the structures of the last minibatch. */
void count_labels(struct quantising *);
/* Writes all that is known, as text or JSON. */
void write_quantise_report(FILE *, const struct quantising *);

#endif
