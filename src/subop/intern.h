/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What interning a value needs of other files. */
#ifndef ESPALIER_SUBOP_INTERN_H
#define ESPALIER_SUBOP_INTERN_H

#include "subop/subop.h"

/* Of an assign: removes what has no meaning, other names of the argument's dimensions and a fill that nothing reads, and
 * brings the maps to the one form of those that compute the same; they are written to `maps`.  Other values stay as they are. */
void sub_normalize_move(const struct sub_program *, struct sub_value *, struct sub_map *maps);

#endif
