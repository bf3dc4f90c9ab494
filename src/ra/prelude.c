/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions written in the language itself. */
#include "ra/syntax.h"

const struct ra_prelude_function ra_prelude[] = {
    {"relu(x) = maximum(x, 0)", "x where positive, else 0"},
    {"square(x) = x * x", "the second power"},
    {"leaky_relu(x, slope) = maximum(x, 0) + slope * minimum(x, 0)", "x where positive, else slope * x"},
    {"silu(x) = x * sigmoid(x)", "x * sigmoid(x), also called swish"},
    {"gelu(x) = 0.5 * x * (1 + erf(0.7071067811865476 * x))", "GELU: x times the normal distribution's share below x"},
    {"gelu_tanh(x) = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
     "the tanh form of GELU, an approximation"},
    {"softplus(x) = maximum(x, 0) + log1p(exp(-abs(x)))", "log(1 + exp(x)), without overflow or cancellation"},
    {"dot(a, b) = sum(a * b)", "the inner product of vectors; of matrices, row by row"},
    {"mean(x) = sum(x) / extent(x)", "the mean along the last axis"},
    {"softmax(x) = (e = exp(x - spread(max(x), x)); e / spread(sum(e), x))",
     "along the last axis; the largest is subtracted first"},
    {"log_softmax(x) = (d = x - spread(max(x), x); d - spread(log(sum(exp(d))), x))",
     "the logarithm of softmax, without underflow"},
    {"layer_norm(x, gain, bias, epsilon) = "
     "(d = x - spread(mean(x), x); d / spread(sqrt(mean(d * d) + epsilon), x) * gain + bias)",
     "normalised along the last axis, then scaled and shifted"},
};

const int ra_prelude_functions = sizeof ra_prelude / sizeof *ra_prelude;
