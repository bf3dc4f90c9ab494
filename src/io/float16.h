/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the two half-width floats to f32; both are exact. */
#ifndef ESPALIER_IO_FLOAT16_H
#define ESPALIER_IO_FLOAT16_H

#include "base/convert.h"

/* Widens `count` values.  `from` may be the last 2 * count bytes of what `to` will fill: no value is written
 * over one that is still to be read. */
void io_widen_f16(const void *from, float *to, int64_t count);
void io_widen_bf16(const void *from, float *to, int64_t count);

#endif
