/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of a calibration share. */
#ifndef ESPALIER_API_CALIBRATION_H
#define ESPALIER_API_CALIBRATION_H

#include "api/objects.h"

/* Sums of squares, and the largest magnitudes, of differences and of the reference. */
struct difference {
	double squares, reference_squares, largest, reference_largest;
	double values;
};

/* A state or output of the program that was added to observe a product, or an output of the model. */
struct observed {
	bool output;
	size_t which;
	int product; /* -1 = it is an output of the model */
	enum rewrite_observation observation; /* of the product */
};

struct esp_calibration {
	struct object object;
	struct esp_program *program;
	const struct esp_weights *weights;
	struct arena arena;
	struct sub_program rewritten; /* as it is where products are found, before any is observed */
	struct rewrite_listed_products listed;
	esp_product *product; /* by product */
	double **squares;     /* by product and column: sums of what was multiplied; NULL = it is not observed */
	VEC(struct observed) observed;
	struct difference *sums, *outputs; /* by product, by output of the model */
	esp_difference *output;
	bool any; /* rows were observed */
};

#endif
