/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* NumPy arrays: a magic word, a version, and a Python dictionary as the header
 * (numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
 *
 *     93 N U M P Y 01 00 <length> {'descr': '<f4', 'fortran_order': False, 'shape': (41, 150), } */
#include "reference/reference.h"

#include "tool.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { PREAMBLE = 8, HEADER_LIMIT = 1 << 16, WORD_LIMIT = 32 };

/* --- the dictionary --- */

struct header {
	const char *p; /* zero-terminated */
	char descr[WORD_LIMIT];
	bool has_descr, has_order, has_shape;
	struct reference_tensor *tensor;
};

static void skip_blanks(struct header *h)
{
	h->p += strspn(h->p, " \t\r\n");
}

static bool take_character(struct header *h, char c)
{
	skip_blanks(h);
	if (*h->p != c)
		return false;
	h->p++;
	return true;
}

static bool take_string(struct header *h, char *to)
{
	skip_blanks(h);
	char quote = *h->p;
	if (quote != '\'' && quote != '"')
		return false;
	const char *end = strchr(h->p + 1, quote);
	size_t n = end ? (size_t)(end - h->p) - 1 : WORD_LIMIT;
	if (n >= WORD_LIMIT)
		return false;
	memcpy(to, h->p + 1, n);
	to[n] = 0;
	h->p = end + 1;
	return true;
}

static bool take_word(struct header *h, const char *word)
{
	skip_blanks(h);
	size_t n = strlen(word);
	if (strncmp(h->p, word, n) != 0)
		return false;
	h->p += n;
	return true;
}

static bool take_extent(struct header *h)
{
	uint64_t n = 0;
	skip_blanks(h);
	if (*h->p < '0' || *h->p > '9')
		return false;
	for (; *h->p >= '0' && *h->p <= '9'; h->p++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->p - '0', &n))
			return false;
	take_character(h, 'L'); /* as Python 2 wrote long numbers */
	return reference_add_dimension(h->tensor, n);
}

static bool take_shape(struct header *h)
{
	if (h->has_shape || !take_character(h, '('))
		return false;
	h->has_shape = true;
	while (!take_character(h, ')'))
		if (!take_extent(h) || (!take_character(h, ',') && *h->p != ')'))
			return false;
	return true;
}

static bool take_order(struct header *h)
{
	h->tensor->fortran = take_word(h, "True");
	h->has_order = true;
	return h->tensor->fortran || take_word(h, "False");
}

static bool take_entry(struct header *h)
{
	char key[WORD_LIMIT];
	if (!take_string(h, key) || !take_character(h, ':'))
		return false;
	if (strcmp(key, "shape") == 0)
		return take_shape(h);
	if (strcmp(key, "fortran_order") == 0)
		return take_order(h);
	return strcmp(key, "descr") == 0 && (h->has_descr = take_string(h, h->descr));
}

static bool take_dictionary(struct header *h)
{
	if (!take_character(h, '{'))
		return false;
	while (!take_character(h, '}'))
		if (!take_entry(h) || (!take_character(h, ',') && *h->p != '}'))
			return false;
	skip_blanks(h);
	return !*h->p && h->has_descr && h->has_order && h->has_shape;
}

/* --- the header --- */

static bool read_length(const struct npy_stream *s, unsigned char version, size_t *length, size_t *bytes)
{
	unsigned char n[4] = {0};
	if (version < 1 || version > 3)
		return complain("%s: .npy version %d is not known; 1 to 3 are", s->what, version);
	*bytes = version == 1 ? 2 : 4;
	if (!s->read(s->from, n, *bytes))
		return complain("%s: ends within its .npy header", s->what);
	*length = n[0] | n[1] << 8 | n[2] << 16 | (size_t)n[3] << 24;
	return *length <= HEADER_LIMIT ||
	       complain("%s: its .npy header has %zu bytes, more than %d", s->what, *length, HEADER_LIMIT);
}

static bool parse_header(const struct npy_stream *s, char *text, struct reference_tensor *t)
{
	struct header h = {.p = text, .tensor = t};
	if (!take_dictionary(&h))
		return complain("%s: its .npy header cannot be read from '%.40s' on", s->what, h.p);
	if (*h.descr == '>')
		return complain("%s: values of type '%s' are big-endian; write x.astype('<%s')", s->what, h.descr, h.descr + 1);
	if ((*h.descr != '<' && *h.descr != '|') || !reference_find_type(h.descr, &t->type))
		return complain("%s: values of type '%s' are not read; write numbers or bools, such as x.astype('<f4')",
				s->what, h.descr);
	return true;
}

bool npy_read_header(const struct npy_stream *s, struct reference_tensor *t)
{
	unsigned char start[PREAMBLE];
	size_t length = 0, bytes = 0;
	if (!s->read(s->from, start, PREAMBLE) || memcmp(start, magic, sizeof magic) != 0)
		return complain("%s: does not begin as an .npy file does", s->what);
	if (!read_length(s, start[6], &length, &bytes))
		return false;
	char *text = malloc(length + 1);
	if (!text)
		return complain("%s: no memory for its header", s->what);
	bool ok = s->read(s->from, text, length);
	t->at = PREAMBLE + bytes + length;
	while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
		length--;
	text[length] = 0;
	reference_clean(text);
	ok = ok ? parse_header(s, text, t) : complain("%s: ends within its .npy header", s->what);
	free(text);
	return ok;
}

/* --- files of one array --- */

static bool begins_array(const unsigned char *bytes)
{
	return memcmp(bytes, magic, sizeof magic) == 0;
}

static bool read_file(void *from, void *to, size_t bytes)
{
	return fread(to, 1, bytes, from) == bytes;
}

static bool open_npy(struct reference *r)
{
	struct reference_tensor *t = reference_add(r, "");
	struct npy_stream s = {read_file, r->file, r->path};
	if (!t || !npy_read_header(&s, t))
		return false;
	if (r->size - t->at == reference_bytes(t))
		return true;
	return complain("%s: %llu bytes of values follow its header, where its shape needs %zu", r->path,
			(unsigned long long)(r->size - t->at), reference_bytes(t));
}

static bool load_array(struct reference *r, const struct reference_tensor *t, void *to, size_t bytes)
{
	return reference_read_at(r, t->at, to, bytes);
}

const struct reference_form reference_npy = {"npy", false, begins_array, open_npy, load_array};
