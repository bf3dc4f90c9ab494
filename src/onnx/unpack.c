/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reading.h"

#include <stdio.h>

bool(onnx_report)(struct onnx_reading *r, enum diag_id id, const char *hint, const char *format, ...)
{
	char text[1200];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	return diag_add(r->diags, id, (struct diag_at){.file = r->file}, hint, "%s", text);
}

static void *take(void *arena, size_t bytes)
{
	return arena_take(arena, bytes, 1);
}

/* What an arena gave is freed with it. */
static void leave(void *arena, void *p)
{
	(void)arena, (void)p;
}

ProtobufCMessage *onnx_unpack(struct arena *arena, const ProtobufCMessageDescriptor *d, const void *bytes,
			      size_t n)
{
	ProtobufCAllocator allocator = {take, leave, arena};
	return protobuf_c_message_unpack(d, &allocator, n, bytes);
}

struct onnx_text onnx_text_of_bytes(struct arena *arena, ProtobufCBinaryData b)
{
	return (struct onnx_text){arena_text(arena, b.data ? (const char *)b.data : "", b.len), b.len};
}
