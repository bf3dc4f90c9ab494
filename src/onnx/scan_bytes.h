/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* A pass over the bytes of a protocol buffer before they are unpacked.  Unpacking recurses as deep as
 * messages are nested, and allocates what the bytes ask for; after this pass both are bounded, and every
 * length lies in the bytes around it. */
#ifndef ESPALIER_ONNX_SCAN_BYTES_H
#define ESPALIER_ONNX_SCAN_BYTES_H

#include "base/diag.h"

#include <protobuf-c/protobuf-c.h>

/* A subgraph in an attribute takes three messages. */
enum { ONNX_MAX_DEPTH = 48, ONNX_MAX_NODES = 100000, ONNX_MAX_MESSAGES = 1 << 22 };

/* Whether the bytes are a message as described: proper fields of the types that the description says, each of
 * those that are not repeated at most once, texts in UTF-8 without zero bytes, and no field that is unknown,
 * unless newer_fields.def says that it can be ignored.  Messages described by `counted` may be
 * ONNX_MAX_NODES.  False after a diagnostic. */
bool onnx_scan_bytes(struct diags *, const char *file, const ProtobufCMessageDescriptor *,
		     const ProtobufCMessageDescriptor *counted, const void *bytes, size_t n);

#endif
