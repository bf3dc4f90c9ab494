/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The bodies of kernels.h, one for each number of nodes. */
#include "bench/hand/kernels.h"

#define TILE(nodes)                                                                                          \
	void hand_tile_##nodes(const struct level_tile *t, long hidden, long column)                         \
	{                                                                                                    \
		run_tile(t, hidden, column, nodes);                                                          \
	}
TILE(1)
TILE(2)
TILE(3)
TILE(4)
