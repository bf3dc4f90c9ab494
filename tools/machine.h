/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The measured limits of the machine as text: times are compared with them. */
#ifndef ESPALIER_TOOLS_MACHINE_H
#define ESPALIER_TOOLS_MACHINE_H

#include "base/measure.h"

#include <stdio.h>

void machine_print(const struct machine *, FILE *);
/* As a JSON object, without a newline. */
void machine_print_json(const struct machine *, FILE *);

#endif
