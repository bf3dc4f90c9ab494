/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Opens a folder that only its owner and the system can replace by another one. */
#ifndef ESPALIER_IO_FOLDER_H
#define ESPALIER_IO_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the folder `path` for reading, as a descriptor.  The path is walked from the root: each folder
 * on it belongs to the effective user or the system, and others cannot write there, unless its sticky bit
 * protects the files of others; each symbolic link on it belongs to them as well, and there is none at the
 * end. With `create`, missing folders are made with mode 0700, but not where others could replace them.  -1:
 * `problem` is the reason, and errno is ENOENT when there is no such folder. */
int io_folder_open(const char *path, bool create, char *problem, size_t size);

#endif
