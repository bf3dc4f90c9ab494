/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The options of a program, from the texts of the interface to values. */
#ifndef ESPALIER_API_READ_OPTIONS_H
#define ESPALIER_API_READ_OPTIONS_H

#include "api/espalier.h"
#include "compile/options.h"

/* Reads the options of a program, all of which may be absent; what these do not say is zero.  Texts that are
 * kept are copied to the arena.  False after a diagnostic. */
bool api_read_options(struct arena *, struct diags *, const esp_program_options *, struct compile_options *);

#endif
