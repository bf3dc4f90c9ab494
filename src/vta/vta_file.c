/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The binary form of streams (doc/vta.md): a header, the instructions as the device reads them, the segments
 * of memory, and the data of those that have some.  All numbers are little-endian. */
#include "base/vec.h"
#include "vta/vta.h"

#include <string.h>

enum { HEADER_BYTES = 64, SEGMENT_BYTES = 56, SEGMENTS_LIMIT = 1024 };

static const uint8_t magic[8] = {'V', 'T', 'A', 'S', 'T', 'R', 'M', 1};
/* Logarithms of the machine: bits of inputs, weights and accumulators, rows and columns of a block, bytes of
 * the memories of micro-ops, inputs, weights and accumulators. */
static const uint8_t machine[16] = {3, 3, 5, 0, 4, 15, 15, 18, 17};

static uint64_t get_u64(const uint8_t *p)
{
	return vta_get_u32(p) | (uint64_t)vta_get_u32(p + 4) << 32;
}

static void put_u64(uint8_t *p, uint64_t value)
{
	vta_put_u32(p, (uint32_t)value);
	vta_put_u32(p + 4, (uint32_t)(value >> 32));
}

static bool has_data(const struct vta_segment *segment)
{
	return segment->role == VTA_ROLE_UOPS || segment->role == VTA_ROLE_CONSTANT;
}

/* --- what holds of the memory --- */

static bool refuse_file(struct diags *diags, const char *file, const char *what)
{
	return diag_add(diags, DIAG_VTA_FORMAT, (struct diag_at){.file = file},
			"doc/vta.md describes the form", "%s", what);
}

static bool is_name(const char *name)
{
	size_t n = 0;
	for (; name[n]; n++) {
		char c = name[n];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_')
			return false;
	}
	return n > 0;
}

const struct vta_segment *vta_find_segment(const struct vta_stream *stream, const char *name)
{
	for (size_t i = 0; i < stream->segments; i++)
		if (!strcmp(stream->segment[i].name, name))
			return &stream->segment[i];
	return NULL;
}

static const char *find_fault(const struct vta_stream *stream)
{
	uint64_t end = 0;
	if (stream->bytes % VTA_MEMORY_ALIGNMENT || stream->bytes > VTA_MEMORY_LIMIT)
		return "the memory is no multiple of 256 bytes, or larger than 256 MiB";
	for (size_t i = 0; i < stream->segments; i++) {
		const struct vta_segment *segment = &stream->segment[i];
		if (!is_name(segment->name))
			return "the name of a segment has other characters than letters, digits, dots and "
			       "underscores";
		if (vta_find_segment(stream, segment->name) != segment)
			return "two segments have one name";
		if (segment->begin % VTA_CELL || segment->bytes % VTA_CELL || segment->begin < end)
			return "a segment overlaps the one before it, or is not made of cells of 16 bytes";
		if (segment->begin > stream->bytes || segment->bytes > stream->bytes - segment->begin)
			return "a segment ends behind the memory";
		end = segment->begin + segment->bytes;
	}
	return NULL;
}

bool vta_check_memory(struct diags *diags, const char *file, const struct vta_stream *stream)
{
	if (stream->segments > SEGMENTS_LIMIT || stream->insns > VTA_INSNS_LIMIT)
		return refuse_file(diags, file,
				   "the stream has more segments or instructions than a stream may have");
	const char *fault = find_fault(stream);
	return !fault || refuse_file(diags, file, fault);
}

/* --- writing --- */

static size_t data_bytes(const struct vta_stream *stream)
{
	size_t n = 0;
	for (size_t i = 0; i < stream->segments; i++)
		n += has_data(&stream->segment[i]) ? stream->segment[i].bytes : 0;
	return n;
}

static void write_segment(const struct vta_segment *segment, uint8_t *to)
{
	memcpy(to, segment->name, VTA_NAME_BYTES);
	vta_put_u32(to + 32, segment->role);
	put_u64(to + 40, segment->begin);
	put_u64(to + 48, segment->bytes);
}

uint8_t *vta_write(struct arena *a, const struct vta_stream *stream, size_t *bytes)
{
	size_t tables = HEADER_BYTES + stream->insns * VTA_INSN_BYTES + stream->segments * SEGMENT_BYTES;
	*bytes = tables + data_bytes(stream);
	uint8_t *file = ARENA_ARRAY(a, uint8_t, *bytes), *at = file + HEADER_BYTES;
	memcpy(file, magic, sizeof magic);
	vta_put_u32(file + 8, (uint32_t)stream->insns);
	vta_put_u32(file + 12, (uint32_t)stream->segments);
	put_u64(file + 16, stream->bytes);
	put_u64(file + 24, *bytes - tables);
	memcpy(file + 32, machine, sizeof machine);
	for (size_t i = 0; i < stream->insns; i++, at += VTA_INSN_BYTES)
		vta_encode(&stream->insn[i], at);
	for (size_t i = 0; i < stream->segments; i++, at += SEGMENT_BYTES)
		write_segment(&stream->segment[i], at);
	for (size_t i = 0; i < stream->segments; i++)
		if (has_data(&stream->segment[i]) && stream->segment[i].bytes) {
			memcpy(at, stream->segment[i].data, stream->segment[i].bytes);
			at += stream->segment[i].bytes;
		}
	return file;
}

/* --- reading --- */

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static const char *read_segment(const uint8_t *from, struct vta_segment *segment)
{
	memcpy(segment->name, from, VTA_NAME_BYTES);
	if (!memchr(segment->name, 0, VTA_NAME_BYTES))
		return "the name of a segment does not end";
	size_t n = strlen(segment->name);
	uint32_t role = vta_get_u32(from + 32);
	if (role >= VTA_ROLES || !is_zero(from + n, VTA_NAME_BYTES - n) || !is_zero(from + 36, 4))
		return "a segment has a role that is not known, or bytes that must be zero are not";
	segment->role = (enum vta_role)role;
	segment->begin = get_u64(from + 40);
	segment->bytes = get_u64(from + 48);
	return NULL;
}

static const char *check_header(const uint8_t *file, size_t n, uint64_t insns, uint64_t segments)
{
	if (memcmp(file + 32, machine, sizeof machine) != 0)
		return "the stream is for another configuration of the accelerator than 1 x 16 x 16 with the "
		       "published memories";
	if (!is_zero(file + 48, 16))
		return "bytes of the header that must be zero are not";
	if (insns > VTA_INSNS_LIMIT || segments > SEGMENTS_LIMIT)
		return "the stream has more segments or instructions than a stream may have";
	uint64_t tables = HEADER_BYTES + insns * VTA_INSN_BYTES + segments * SEGMENT_BYTES;
	if (tables > n || get_u64(file + 24) != n - tables)
		return "the length of the file is not that of its header";
	return NULL;
}

/* Points segments at their data, which must fill the rest of the file. */
static bool place_data(struct vta_stream *stream, const uint8_t *at, uint64_t left)
{
	for (size_t i = 0; i < stream->segments; i++) {
		struct vta_segment *segment = &stream->segment[i];
		if (!has_data(segment))
			continue;
		if (segment->bytes > left)
			return false;
		segment->data = at;
		at += segment->bytes;
		left -= segment->bytes;
	}
	return !left;
}

bool vta_read(struct arena *a, struct diags *diags, const char *file, const uint8_t *bytes, size_t n,
	      struct vta_stream *out)
{
	if (n < HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
		return refuse_file(diags, file, "the file does not begin as a stream does");
	uint32_t insns = vta_get_u32(bytes + 8), segments = vta_get_u32(bytes + 12);
	const char *fault = check_header(bytes, n, insns, segments);
	if (fault)
		return refuse_file(diags, file, fault);
	*out =
	    (struct vta_stream){ARENA_ARRAY(a, struct vta_insn, insns), insns,
				ARENA_ARRAY(a, struct vta_segment, segments), segments, get_u64(bytes + 16)};
	const uint8_t *at = bytes + HEADER_BYTES;
	for (uint32_t i = 0; i < insns; i++, at += VTA_INSN_BYTES)
		if (!vta_decode(at, &out->insn[i]))
			return diag_add(
			    diags, DIAG_VTA_INSTRUCTION, (struct diag_at){.file = file}, NULL,
			    "instruction %u has an opcode that is not known, or sets bits of no field", i);
	for (uint32_t i = 0; i < segments && !fault; i++, at += SEGMENT_BYTES)
		fault = read_segment(at, &out->segment[i]);
	if (fault)
		return refuse_file(diags, file, fault);
	if (!vta_check_memory(diags, file, out))
		return false;
	return place_data(out, at, (uint64_t)(bytes + n - at)) ||
	       refuse_file(diags, file, "the data are not as long as their segments");
}
