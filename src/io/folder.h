/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A folder that nobody but its owner can exchange for another one. */
#ifndef ESPALIER_IO_FOLDER_H
#define ESPALIER_IO_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the folder `path` for reading, as a descriptor.  The way to it is walked from the root: each folder
 * on it belongs to the effective user or the system, and others cannot write there, unless its sticky bit
 * keeps what is not theirs; each symbolic link on it belongs to them as well, and there is none at the end.
 * With `create`, what is missing is made with mode 0700, but nothing where others could exchange it.  -1:
 * `problem` says why, and errno is ENOENT when nothing is there. */
int io_folder_open(const char *path, bool create, char *problem, size_t size);

#endif
