/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Structures in JSON, an object each:
 *
 *     {"children": [[], [], [0, 1]], "root": 2, "text": "a b", "data": {"word": ["a", 4, null], "x": [[0.5,
 * 1], ...]}}
 *
 * `children` has a list for each node; `root` is the last node when it is not there; `data` has, by the name
 * of the input, a value for each node: a token (a text, or a number), a list of numbers, or null; of an input
 * on edges a list for each node, with a value for each child.  Other members are skipped.  Of a sequence,
 * each of whose nodes has the one before it as its child, `children` may be left out.
 *
 * A file holds objects one after the other (a line each, most often), or one list of them. */
#ifndef ESPALIER_IO_JSON_H
#define ESPALIER_IO_JSON_H

#include "base/json_scan.h"
#include "io/structure.h"

/* The next structure; a text without any is `empty-input`.  An object that is refused is skipped: the
 * next call reads on behind it, if its end was found.  The caller checks that children are nodes; data is
 * checked when it is filled in.  `sequence`: an object without children is a sequence. */
enum io_next io_json_next(struct io_text *, bool sequence, struct arena *, struct diags *,
			  struct io_structure *);

/* A string without its escapes; in the arena if there were some.  NULL text after a fault. */
struct io_span io_json_text(struct scan *, struct arena *);
/* A whole number of 32 bits, however it is written; `message` is the fault of any other number. */
bool io_json_integer(struct scan *, int32_t *, const char *message);

#endif
