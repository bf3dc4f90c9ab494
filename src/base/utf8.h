/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#ifndef ESPALIER_BASE_UTF8_H
#define ESPALIER_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character that a text of n bytes begins with; 0 = it begins with none (RFC 3629, section
 * 4: no overlong forms, surrogates or values past U+10FFFF). */
size_t utf8_length(const char *text, size_t n);

#endif
