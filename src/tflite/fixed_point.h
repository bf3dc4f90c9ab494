/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of fixed point, as integer kernels of TensorFlow Lite compute it (its kernels/internal/common.h
 * and quantization_util.cc, and gemmlowp's fixedpoint.h).  Numbers of Qm have m bits before the point, a
 * sign, and the others behind it. */
#ifndef ESPALIER_TFLITE_FIXED_POINT_H
#define ESPALIER_TFLITE_FIXED_POINT_H

#include <stdint.h>

/* A positive factor: multiplier / 2^31 * 2^shift, the multiplier at least 2^30; both are 0 where the factor
 * is below 2^-32. */
struct fixed_factor {
	int32_t multiplier;
	int shift;
};

struct fixed_factor fixed_of_real(double);
/* (a * b) / 2^31, rounded to the nearest, halves up; the most negative number twice gives the largest one. */
int32_t fixed_multiply(int32_t a, int32_t b);
/* x / 2^exponent, rounded to the nearest, halves away from zero. */
int32_t fixed_divide(int32_t x, int exponent);
/* x times a factor, rounded twice: the product by the multiplier, and what the shift leaves. */
int32_t fixed_scale(int32_t x, struct fixed_factor);

/* Of 16 bits: functions of a number of Qm, m up to 6, as a number of Q0. */
int16_t fixed_logistic16(int16_t, int integer_bits);
int16_t fixed_tanh16(int16_t, int integer_bits);

#endif
