/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "onnx/scan_bytes.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

struct scan {
	struct diags *diags;
	const char *file;
	const uint8_t *bytes; /* all of them */
	const ProtobufCMessageDescriptor *counted;
	int depth, nodes, messages;
};

/* The bytes of a message that have not been read. */
struct rest {
	const uint8_t *at, *end;
};

/* Types of what follows the number of a field: https://protobuf.dev/programming-guides/encoding. */
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static const char again[] = "write the file again, or copy it again; onnx.checker.check_model tells more";

__attribute__((format(printf, 4, 5))) static bool
refuse(struct scan *s, const struct rest *r, const ProtobufCMessageDescriptor *d, const char *format, ...)
{
	char what[300];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	return diag_add(s->diags, DIAG_BAD_ONNX, (struct diag_at){.file = s->file}, again,
			"byte %lld of '%s', in a %s: %s", (long long)(r->at - s->bytes), s->file,
			d->short_name, what);
}

static bool take_varint(struct rest *r, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Takes what follows the number of a field; `content` is its bytes, without the length that may stand before them. */
static bool take_value(struct rest *r, enum wire wire, struct rest *content)
{
	uint64_t value, length = wire == WIRE_64 ? 8 : 4;
	*content = *r;
	if (wire == WIRE_VARINT) {
		bool whole = take_varint(r, &value);
		content->end = r->at;
		return whole;
	}
	if (wire == WIRE_BYTES && !take_varint(r, &length))
		return false;
	if (wire != WIRE_BYTES && wire != WIRE_64 && wire != WIRE_32)
		return false;
	if (length > (uint64_t)(r->end - r->at))
		return false;
	*content = (struct rest){r->at, r->at + length};
	r->at += length;
	return true;
}

static enum wire wire_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return WIRE_32;
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return WIRE_64;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return WIRE_BYTES;
	default:
		return WIRE_VARINT;
	}
}

static bool is_text(const struct rest *content)
{
	for (const char *at = (const char *)content->at, *end = (const char *)content->end; at < end;) {
		size_t n = *at ? utf8_length(at, end - at) : 0;
		if (!n)
			return false;
		at += n;
	}
	return true;
}

/* Elements of a repeated field may stand together behind one length. */
static bool are_elements(enum wire wire, struct rest content)
{
	struct rest none;
	while (content.at < content.end)
		if (!take_value(&content, wire, &none))
			return false;
	return true;
}

/* Whether varints fit the type of their field; ONNX has signed ones of 32 and of 64 bits.  protobuf-c would take the lower half
 * of one that does not, and so another number. */
static bool are_in_range(ProtobufCType type, struct rest varints)
{
	uint64_t value;
	bool narrow = type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_ENUM, fits = true;
	while (narrow && fits && varints.at < varints.end)
		fits = take_varint(&varints, &value) && (int64_t)value == (int32_t)value;
	return fits;
}

static bool scan_message(struct scan *, const ProtobufCMessageDescriptor *, struct rest);

static bool scan_content(struct scan *s, const struct rest *r, const ProtobufCMessageDescriptor *d,
			 const ProtobufCFieldDescriptor *f, const struct rest *content)
{
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return scan_message(s, f->descriptor, *content);
	if (!are_in_range(f->type, *content))
		return refuse(s, r, d, "the field '%s' has a number that does not fit 32 bits", f->name);
	return f->type != PROTOBUF_C_TYPE_STRING || is_text(content) ||
	       refuse(s, r, d, "the field '%s' is no text in UTF-8", f->name);
}

static bool scan_field(struct scan *s, struct rest *r, const ProtobufCMessageDescriptor *d,
		       const ProtobufCFieldDescriptor *f, enum wire wire)
{
	struct rest content = {0};
	enum wire own = wire_of(f->type);
	bool packed = wire == WIRE_BYTES && own != WIRE_BYTES && f->label == PROTOBUF_C_LABEL_REPEATED;
	if (wire != own && !packed)
		return refuse(s, r, d, "the field '%s' is of another type", f->name);
	if (!take_value(r, wire, &content) || (packed && !are_elements(own, content)))
		return refuse(s, r, d,
			      "the field '%s' has no proper end: it is cut off, or its length is wrong",
			      f->name);
	return scan_content(s, r, d, f, &content);
}

/* --- fields that are not described --- */

struct newer {
	const char *message;
	uint32_t number;
	const char *name, *version;
	bool ignored;
};

static const struct newer *find_newer(const char *message, uint32_t number)
{
	static const struct newer rows[] = {
#define NEWER_FIELD(message, number, name, version, ignored) {message, number, name, version, ignored},
#include "onnx/newer_fields.def"
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].number == number && strcmp(rows[i].message, message) == 0)
			return &rows[i];
	return NULL;
}

static bool scan_unknown(struct scan *s, struct rest *r, const ProtobufCMessageDescriptor *d, uint32_t number,
			 enum wire wire)
{
	struct rest content;
	const struct newer *newer = find_newer(d->short_name, number);
	if (!newer)
		return refuse(s, r, d, "the field number %u is not known", (unsigned)number);
	if (!newer->ignored)
		return refuse(s, r, d, "the field '%s', of version %s of the format, is not supported",
			      newer->name, newer->version);
	return take_value(r, wire, &content) || refuse(s, r, d, "the field '%s' is cut off", newer->name);
}

/* --- messages --- */

/* The first of the fields of which a message has one at most. */
static unsigned place_of(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		for (unsigned i = 0; i < d->n_fields; i++)
			if (d->fields[i].quantifier_offset == f->quantifier_offset)
				return i;
	return f - d->fields;
}

static bool scan_next(struct scan *s, struct rest *r, const ProtobufCMessageDescriptor *d, uint64_t *seen)
{
	uint64_t tag;
	if (!take_varint(r, &tag) || tag > UINT32_MAX)
		return refuse(s, r, d, "no field begins here");
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(d, tag >> 3);
	if (!f)
		return scan_unknown(s, r, d, tag >> 3, tag & 7);
	uint64_t bit = f->label == PROTOBUF_C_LABEL_REPEATED ? 0 : (uint64_t)1 << (place_of(d, f) & 63);
	if (*seen & bit)
		return refuse(s, r, d, "the field '%s' comes twice", f->name);
	*seen |= bit;
	return scan_field(s, r, d, f, tag & 7);
}

static bool count_message(struct scan *s, const ProtobufCMessageDescriptor *d, const struct rest *r)
{
	if (s->depth > ONNX_MAX_DEPTH)
		return refuse(s, r, d, "messages are nested deeper than %d", ONNX_MAX_DEPTH);
	if (d == s->counted && ++s->nodes > ONNX_MAX_NODES)
		return refuse(s, r, d, "there are more than %d nodes", ONNX_MAX_NODES);
	return ++s->messages <= ONNX_MAX_MESSAGES ||
	       refuse(s, r, d, "there are more than %d messages", ONNX_MAX_MESSAGES);
}

static bool scan_message(struct scan *s, const ProtobufCMessageDescriptor *d, struct rest r)
{
	uint64_t seen = 0;
	s->depth++;
	bool ok = count_message(s, d, &r);
	while (ok && r.at < r.end)
		ok = scan_next(s, &r, d, &seen);
	s->depth--;
	return ok;
}

bool onnx_scan_bytes(struct diags *diags, const char *file, const ProtobufCMessageDescriptor *d,
		     const ProtobufCMessageDescriptor *counted, const void *bytes, size_t n)
{
	struct scan s = {.diags = diags, .file = file, .bytes = bytes, .counted = counted};
	return scan_message(&s, d, (struct rest){bytes, (const uint8_t *)bytes + n});
}
