/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics, which the library returns instead of printing or aborting.
 *
 * The registry base/diag.def is the single source of ids, spellings, statuses and explanations; 'espalier
 * explain-error', the manual and esp_message_find are made from it.  A diagnostic names what is wrong, where,
 * and (the hint) what to do.  Functions that can fail return false or NULL after adding one or more. */
#ifndef ESPALIER_BASE_DIAG_H
#define ESPALIER_BASE_DIAG_H

#include "base/str.h"

#include <stdint.h>

enum diag_id {
#define DIAG(name, status, spelling, message, explanation, fix) DIAG_##name,
#include "base/diag.def"
#undef DIAG
	DIAG_COUNT
};

/* What a diagnostic means for the call that ends with it; the public statuses are these but for the notice,
 * with which no call fails. */
enum diag_status {
	DIAG_STATUS_NOTICE,
	DIAG_STATUS_INPUT,
	DIAG_STATUS_ARGUMENT,
	DIAG_STATUS_MEMORY,
	DIAG_STATUS_BACKEND,
	DIAG_STATUS_SYSTEM,
	DIAG_STATUS_BUSY,
	DIAG_STATUS_CLOSED,
	DIAG_STATUS_FORKED,
	DIAG_STATUS_EXPIRED,
	DIAG_STATUS_CANCELLED
};

/* A place in a text.  Lines and columns count from 1, columns in bytes; 0 = unknown.  `source` points at the
 * beginning of the line in the text (of a builder: at the text that was passed), which need only live until the
 * diagnostic is added. */
struct diag_at {
	const char *file;
	int line, column;
	const char *source;
	int call; /* of a builder: tells the calls of one line apart, ascending; else 0.  Not shown. */
};

struct diag {
	enum diag_id id;
	char *message;
	char *hint;   /* NULL = none */
	char *file;   /* NULL = no place */
	char *source; /* the line itself, NULL = unknown */
	int line, column;
	int64_t input, node; /* of a minibatch, as the caller counts; -1 = none */
};

/* The list owns its texts; it does not live in an arena because it outlives the compilation that failed. */
struct diags {
	const struct allocator *allocator;
	struct diag *at;
	size_t n, capacity;
	bool lost; /* memory ran out while adding */
};

void diags_init(struct diags *, const struct allocator *);
void diags_free(struct diags *);

/* Adds a diagnostic; always false, so that a failing function can end with `return diag_add(...)`. */
__attribute__((format(printf, 5, 6))) bool diag_add(struct diags *, enum diag_id, struct diag_at,
						    const char *hint, const char *format, ...);
/* Lets compilers and analysers know the result without the definition. */
static inline bool diag_false(bool said)
{
	(void)said;
	return false;
}
#define diag_add(...) diag_false(diag_add(__VA_ARGS__))

/* Sets the input and the node that the last diagnostic is about; -1 = none.  Always false. */
bool diag_about(struct diags *, int64_t input, int64_t node);

/* Moves all diagnostics of another list, which is then empty.  Both lists have the same allocator. */
void diags_move(struct diags *, struct diags *from);

/* Adds copies of all diagnostics of another list. */
void diags_copy(struct diags *, const struct diags *from);

/* The registry: the spelling of an id, and the status of a call that fails with it. */
const char *diag_spelling(enum diag_id);
enum diag_status diag_status(enum diag_id);
/* The id of a spelling; false when there is none. */
bool diag_find(const char *spelling, enum diag_id *);

/* As the command shows it:
 *     model.ra:3:9: error: 'W' is [D, E], 'x' is [D] [shape-mismatch]
 *         i = W @ x
 *             ^
 *     hint: ...                                                          */
void diag_print(const struct diag *, struct str *);

#endif
