/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Functions written in the language itself. */
#include "ra/syntax.h"

#include <string.h>

const struct ra_prelude_function ra_prelude[] = {
    {"sign(x) = where(x > 0, 1, where(x < 0, -1, x))", "1, -1, or x itself where it is a zero or a NaN"},
    {"ceil(x) = -floor(-x)", "the smallest whole number that is not below"},
    {"trunc(x) = where(x < 0, ceil(x), floor(x))", "x without its fraction"},
    {"remainder(a, b) = a - b * quotient(a, b)", "of integers, with the sign of a; by 0 it is a"},
    {"modulo(a, b) = (r = remainder(a, b); where((r < 0 and b > 0) or (r > 0 and b < 0), r + b, r))",
     "of integers, with the sign of b, as Python's %; by 0 it is a"},
    {"fmod(a, b) = (q = trunc(-a / b); r = a + b * q; s = where(a < 0, -abs(b), abs(b)); "
     "where(abs(a) < abs(b), a, where((r < 0 and a > 0) or (r > 0 and a < 0), r + s, "
     "where(abs(r) < abs(b), r, r - s))))",
     "the remainder of f32, with the sign of a: exact in exact arithmetic where a / b is less than 2^22; NaN "
     "by 0"},
    {"tan(x) = sin(x) / cos(x)", "of an angle in radians, of less than 131072"},
    {"asin(x) = atan(x / sqrt((1 - x) * (1 + x)))", "the arc sine in radians; NaN outside of -1 to 1"},
    {"acos(x) = 2 * atan(sqrt((1 - x) / (1 + x)))", "the arc cosine in radians; NaN outside of -1 to 1"},
    {"sinh(x) = (t = tanh(0.5 * x); e = exp(0.5 * abs(x)); m = 0.5 * e * e; "
     "where(abs(x) < 1, 2 * t / ((1 - t) * (1 + t)), sign(x) * (m - 0.25 / m)))",
     "the hyperbolic sine, accurate near 0"},
    {"cosh(x) = (e = exp(0.5 * abs(x)); m = 0.5 * e * e; m + 0.25 / m)", "the hyperbolic cosine"},
    {"asinh(x) = (a = abs(x); sign(x) * where(a < 10000, log1p(a + a * a / (1 + sqrt(a * a + 1))), "
     "log(a) + 0.6931471805599453))",
     "the inverse hyperbolic sine, accurate near 0"},
    {"acosh(x) = where(x < 10000, log1p(x - 1 + sqrt(x - 1) * sqrt(x + 1)), log(x) + 0.6931471805599453)",
     "the inverse hyperbolic cosine; NaN below 1"},
    {"atanh(x) = 0.5 * (log1p(x) - log1p(-x))",
     "the inverse hyperbolic tangent, accurate near 0; NaN outside of -1 to 1"},
    {"relu(x) = maximum(x, 0)", "x where positive, else 0"},
    {"square(x) = x * x", "the second power"},
    {"leaky_relu(x, slope) = maximum(x, 0) + slope * minimum(x, 0)", "x where positive, else slope * x"},
    {"silu(x) = x * sigmoid(x)", "x * sigmoid(x), also called swish"},
    {"gelu(x) = 0.5 * x * (1 + erf(0.7071067811865476 * x))",
     "GELU: x times the normal distribution's share below x"},
    {"gelu_tanh(x) = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
     "the tanh form of GELU, an approximation"},
    {"softplus(x) = maximum(x, 0) + log1p(exp(-abs(x)))",
     "log(1 + exp(x)), without overflow or cancellation"},
    {"dot(a, b) = sum(a * b)", "the inner product of vectors; of matrices, row by row"},
    {"mean(x) = sum(x) / extent(x)", "the mean along the last axis"},
    {"softmax(x) = (e = exp(x - spread(max(x), x)); e / spread(sum(e), x))",
     "along the last axis; the largest is subtracted first"},
    {"log_softmax(x) = (d = x - spread(max(x), x); d - spread(log(sum(exp(d))), x))",
     "the logarithm of softmax, without underflow"},
    {"layer_norm(x, gain, bias, epsilon) = "
     "(d = x - spread(mean(x), x); d / spread(sqrt(mean(d * d) + epsilon), x) * gain + bias)",
     "normalised along the last axis, then scaled and shifted"},
    {"rms_norm(x, gain, epsilon) = x / spread(sqrt(mean(x * x) + epsilon), x) * gain",
     "divided by the root of the mean square along the last axis, then scaled"},
    {"batch_norm(x, gain, bias, average, variance, epsilon) = "
     "(x - average) * (gain / sqrt(variance + epsilon)) + bias",
     "normalised by known statistics of each element of the last axis, the channels, then scaled and "
     "shifted"},
    {"instance_norm(x, gain, bias, epsilon) = "
     "(r = sum(x); n = extent(x) * extent(x, axis=-2); d = x - spread(spread(sum(r) / n, r), x); "
     "s = gain / sqrt(sum(sum(d * d)) / n + epsilon); "
     "d * spread(spread(s, r), x) + spread(spread(bias, r), x))",
     "of x[C, H, W], normalised along the last two axes, then scaled and shifted by channel"},
    {"group_norm(x, groups, gain, bias, epsilon) = "
     "(C = extent(x, axis=0); H = extent(x, axis=1); W = extent(x, axis=2); "
     "r = reshape(x, groups, C/groups, H, W); n = extent(r, axis=1) * H * W; "
     "m[g] = sum(r[g, c, i, j] for c, i, j) / n; d[g, c, i, j] = r[g, c, i, j] - m[g]; "
     "s[g] = 1 / sqrt(sum(d[g, c, i, j] * d[g, c, i, j] for c, i, j) / n + epsilon); "
     "t[g, c, i, j] = d[g, c, i, j] * s[g]; "
     "reshape(t, C, H, W) * reshape(gain, C, 1, 1) + reshape(bias, C, 1, 1))",
     "of x[C, H, W], whose channels are normalised in groups, then scaled and shifted each"},
    {"pad(x, size) = (H = extent(x, axis=1); W = extent(x, axis=2); "
     "y[c, i in H + 2*size, j in W + 2*size] = x[c, i - size, j - size] else 0; y)",
     "x[C, H, W] with `size` rows and columns of zeros on each side"},
    {"gather(x, rows) = where(rank(x) == 1, (y[i] = x[rows[i]]; y), (y[i, d] = x[rows[i], d]; y))",
     "of x[N], or x[N, D], the elements or rows with these numbers, integers"},
    {"resize(x, factor) = (C = extent(x, axis=0); H = extent(x, axis=1); W = extent(x, axis=2); "
     "y[c, i, u in factor, j, v in factor] = x[c, i, j]; reshape(y, C, H*factor, W*factor))",
     "x[C, H, W], each of whose elements becomes a square of `factor` by `factor`"},
    {"conv1d(x, W, stride=1, pad=0, dilation=1, bias=0) = (K = extent(W, axis=0); "
     "z = where(rank(x) == 3, "
     "(y[b, k, i] = sum(W[k, c, u] * x[b, c, stride*i + dilation*u - pad] for c, u); y), "
     "(y[k, i] = sum(W[k, c, u] * x[c, stride*i + dilation*u - pad] for c, u); y)); "
     "where(rank(bias) == 0, z, z + reshape(bias, K, 1)))",
     "the convolution of x[C, L], or x[B, C, L], with W[K, C, U], with zeros around x; bias[K] is added"},
    {"conv(x, W, stride=1, pad=0, dilation=1, groups=1, bias=0) = "
     "(K = extent(W, axis=0); C = extent(W, axis=1); U = extent(W, axis=2); V = extent(W, axis=3); "
     "H = extent(x, axis=-2); L = extent(x, axis=-1); "
     "w = where(groups == 1, W, reshape(W, groups, K/groups, C, U, V)); "
     "z = where(rank(x) == 4, where(groups == 1, "
     "(y[b, k, i, j] = sum(w[k, c, u, v] * "
     "x[b, c, stride*i + dilation*u - pad, stride*j + dilation*v - pad] for c, u, v); y), "
     "(B = extent(x, axis=0); r = reshape(x, B, groups, C, H, L); "
     "y[b, g, k, i, j] = sum(w[g, k, c, u, v] * "
     "r[b, g, c, stride*i + dilation*u - pad, stride*j + dilation*v - pad] for c, u, v); "
     "I = extent(y, axis=3); J = extent(y, axis=4); reshape(y, B, K, I, J))), "
     "where(groups == 1, "
     "(y[k, i, j] = sum(w[k, c, u, v] * x[c, stride*i + dilation*u - pad, stride*j + dilation*v - pad] for "
     "c, u, v); y), "
     "(r = reshape(x, groups, C, H, L); "
     "y[g, k, i, j] = sum(w[g, k, c, u, v] * r[g, c, stride*i + dilation*u - pad, stride*j + dilation*v - "
     "pad] for c, u, v); "
     "I = extent(y, axis=2); J = extent(y, axis=3); reshape(y, K, I, J)))); "
     "where(rank(bias) == 0, z, z + reshape(bias, K, 1, 1)))",
     "the convolution of x[C, H, W], or x[B, C, H, W], with W[K, C/groups, U, V], with zeros around x; "
     "bias[K] is added"},
    {"max_pool(x, size, stride=size, pad=0, dilation=1) = where(rank(x) == 4, "
     "(y[b, c, i, j] = max(x[b, c, stride*i + dilation*u - pad, stride*j + dilation*v - pad] for u in size, "
     "v in size); y), "
     "(y[c, i, j] = max(x[c, stride*i + dilation*u - pad, stride*j + dilation*v - pad] for u in size, v in "
     "size); y))",
     "of x[C, H, W], or x[B, C, H, W], the maximum of each window of size * size"},
    {"avg_pool(x, size, stride=size, pad=0) = where(rank(x) == 4, "
     "(y[b, c, i, j] = sum(x[b, c, stride*i + u - pad, stride*j + v - pad] for u in size, v in size) / (size "
     "* size); y), "
     "(y[c, i, j] = sum(x[c, stride*i + u - pad, stride*j + v - pad] for u in size, v in size) / (size * "
     "size); y))",
     "of x[C, H, W], or x[B, C, H, W], the mean of each window of size * size; zeros around x count"},
    {"global_avg_pool(x) = sum(sum(x)) / (extent(x) * extent(x, axis=-2))",
     "the mean along the last two axes"},
};

const int ra_prelude_functions = sizeof ra_prelude / sizeof *ra_prelude;

struct ra_span ra_prelude_name(int function)
{
	const char *text = ra_prelude[function].text;
	return (struct ra_span){.text = text, .length = strcspn(text, "(")};
}

int ra_find_prelude(struct ra_span name)
{
	for (int i = 0; i < ra_prelude_functions; i++) {
		struct ra_span known = ra_prelude_name(i);
		if (known.length == name.length && memcmp(known.text, name.text, name.length) == 0)
			return i;
	}
	return -1;
}
