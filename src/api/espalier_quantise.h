/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_quantise.h - weights in 8 bits by a calibration (doc/quantise.md); espalier.h includes it. */
#ifndef ESPALIER_QUANTISE_H
#define ESPALIER_QUANTISE_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* An observed program: beside the states and outputs of its model it has, behind those, what the products with weights
 * multiply and their sums.  It is used by one thread at a time.
 *
 * 1. Calibrate a program with the weights in f32: make it, run typical structures by sessions of its program, and call
 *    esp_calibration_add after each run.  esp_calibration_write then writes quantised weights.
 * 2. Weights of such a file are opened, and used, like others: programs that are made with them (esp_program_create) compute
 *    products in integers, unless the options say otherwise.
 * 3. To see the errors, calibrate a second program, with the quantised weights, run the same structures by both, and call
 *    esp_calibration_compare. */
typedef struct esp_calibration esp_calibration;

/* `options` may be NULL; outputs are computed at every node, whatever they say, and the precision of f32 weights is f32.
 * Fails as esp_program_create does. */
esp_status esp_calibration_create(const esp_model *, const esp_weights *, const esp_program_options *options,
				  esp_calibration **out, esp_error **error);
void esp_calibration_free(esp_calibration *);
/* Its program, for forests and bindings, which hold it; it is the calibration's. */
esp_program *esp_calibration_program(const esp_calibration *);
/* Takes what the last run of a session of its program observed.  ESP_ERROR_ARGUMENT: there was no run, or it is of
 * another program; ESP_ERROR_INPUT: something that weights multiply was infinite or not a number. */
esp_status esp_calibration_add(esp_calibration *, const esp_session *, esp_error **error);
/* Takes how far the last run of a session of this calibration's program is from that of `reference`, a session of another
 * calibration of the same model, whose last run was over the same structures. */
esp_status esp_calibration_compare(esp_calibration *, const esp_session *, const esp_session *reference, esp_error **error);

typedef struct esp_quantise_options {
	size_t size;		 /* sizeof(esp_quantise_options) */
	const char *precision;	 /* "i8", or "i16" or "i8x3", which keep weights as they are; NULL = i8 */
	const char *const *keep; /* `kept` names: of products, or of parameters, whose products all stay in f32 */
	size_t kept;
	int weights_only;	 /* 1 = products are computed in f32, with weights of 8 bits whose scales have the least errors; with neither
				  * a precision nor names */
} esp_quantise_options;

/* Writes weights, those that the calibration was made with, quantised by the largest magnitudes that were observed, or with
 * `weights_only` by the squares that were.  The file appears when it is complete and on the disk.
 * ESP_ERROR_INPUT: a weight is infinite or not a number (`weight-not-finite`), nothing was observed (`not-calibrated`), or a
 * name is none of a product or parameter (`unknown-product`); ESP_ERROR_SYSTEM: it could not be written. */
esp_status esp_calibration_write(const esp_calibration *, const esp_quantise_options *options, const char *path,
				 esp_error **error);

/* How far values are from those of the reference: over all of them, the largest magnitude, and the root of the mean square,
 * of the differences and of the reference. */
typedef struct esp_difference {
	double largest, rms, reference_largest, reference_rms;
} esp_difference;

/* What bounds the magnitudes that a product multiplies. */
enum { ESP_BOUND_NONE = 0, ESP_BOUND_PROVED = 1, ESP_BOUND_CALIBRATED = 2 };

/* A product with weights. */
typedef struct esp_product {
	const char *name;     /* of a parameter of the weights and what they multiply, "W*x" */
	size_t terms, sums;   /* terms of each sum, and sums that share what is multiplied */
	const char *computed; /* in "f32", "i8", ...: as `precision` of esp_program_options has it */
	const char *why;      /* it must stay in f32, as a sentence without an end; NULL = it need not */
	int bound_is;	      /* ESP_BOUND_... */
	int per_edge;	      /* `bound` is that for each edge of the row */
	double bound;	      /* 0 = none */
	double observed;      /* the largest magnitude that it was seen to multiply; 0 = none */
	int compared;	      /* `sums_differ` is known: not of a product in the middle of a sum in integers */
	esp_difference sums_differ; /* of its sums, with all that comes before */
	int scaled; /* esp_calibration_write chose scales for its weights; then the root of the mean square of the errors of its sums, in
		     * proportion to that of the sums, as the observed squares of each column tell it: */
	double plain_error, chosen_error; /* with the scale of the largest weight of each row, and with those that were chosen */
} esp_product;

/* The i-th product, or what is known of the i-th output of the model; NULL past the last.  They are the calibration's, and are
 * of the time of the call. */
const esp_product *esp_calibration_product(const esp_calibration *, size_t i);
const esp_difference *esp_calibration_output(const esp_calibration *, size_t i);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
