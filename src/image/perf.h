/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels for profilers. */
#ifndef ESPALIER_IMAGE_PERF_H
#define ESPALIER_IMAGE_PERF_H

#include "image/image.h"

/* Adds the kernels of loaded code to /tmp/perf-PID.map, where perf looks for code that is in no file: a line
 * for each, of its address and bytes in hexadecimal and MODEL:KERNEL.  The file is made private to the user;
 * one that is there is added to when it is a regular file of the user with one name, which nobody else can
 * write; names that an earlier process of the same number
 * left in it are removed.  False after `perf-map-unusable`.  Does nothing for code that is interpreted. */
bool image_name_code(const struct image *, struct diags *);

#endif
