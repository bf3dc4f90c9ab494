/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The generator of the manual and the completions: a program of the build, made from the command's tables and
 * the registry of diagnostics.  It is compiled for the machine that builds and links no library. */
#ifndef ESPALIER_DOC_MANUAL_H
#define ESPALIER_DOC_MANUAL_H

#include "tables.h"

#include <stdio.h>

/* --- roff.c --- */

/* Writes text within a line of man(7) source, with roff's special characters escaped. */
void roff_text(FILE *, const char *text);
void roff_bytes(FILE *, const char *text, size_t n);
/* The page's first lines: title, NAME section. */
void roff_begin(FILE *, const char *name, int section, const char *summary);
/* The subset of Markdown that doc/ uses: headings, paragraphs, fences, tables, `code` and **strong** words.
 * Its title is left out.  False when it cannot be read. */
bool roff_markdown(FILE *, const char *path);

/* --- completion.c --- */

void completion_bash(FILE *);
void completion_fish(FILE *);
void completion_zsh(FILE *);

#endif
