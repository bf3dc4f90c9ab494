/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/json_scan.h"

#include <math.h>
#include <string.h>

bool(json_fault)(struct json *j, const char *at, const char *message)
{
	if (!j->fault) {
		j->fault = message;
		j->fault_at = at;
	}
	return false;
}

char json_peek(struct json *j)
{
	j->at = io_skip_space(j->at, j->end);
	return j->at < j->end ? *j->at : 0;
}

bool json_take(struct json *j, char c)
{
	if (json_peek(j) != c)
		return false;
	j->at++;
	return true;
}

bool json_expect(struct json *j, char c)
{
	static const char *const wanted[] = {"a '[' is missing here", "a ']' is missing here",
					     "a '{' is missing here", "a '}' is missing here",
					     "a ':' is missing here", "a string is missing here"};
	if (json_take(j, c))
		return true;
	return json_fault(j, j->at, wanted[strchr("[]{}:\"", c) - "[]{}:\""]);
}

bool json_more(struct json *j, char close, bool *first)
{
	bool begins = *first;
	*first = false;
	if (j->fault || json_take(j, close))
		return false;
	return begins || json_take(j, ',') || json_fault(j, j->at, "a ',' is missing here");
}

/* --- strings --- */

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef",
		   *at = strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
	return c && at ? (int)(at - digits) : -1;
}

/* The UTF-16 unit of an escape \u at `p`; -1 = there is none. */
static int unit_at(const char *p, const char *end)
{
	int unit = 0;
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int digit = hex_digit(p[i]);
		if (digit < 0)
			return -1;
		unit = 16 * unit + digit;
	}
	return unit;
}

static size_t put_utf8(char *to, unsigned code)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n - 1; i > 0; i--, code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)(lead[n] | code);
	return n;
}

/* Decodes the escape at *p, which moves behind it, and returns its bytes; 0 = it is invalid, as that of NUL
 * is. */
static size_t put_escape(const char **p, const char *end, char *to)
{
	static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	const char *letter = end - *p > 1 && (*p)[1] ? strchr(letters, (*p)[1]) : NULL;
	if (letter) {
		*p += 2;
		*to = meaning[letter - letters];
		return 1;
	}
	int high = unit_at(*p, end);
	*p += 6;
	if (high <= 0 || (high >= 0xdc00 && high < 0xe000))
		return 0;
	if (high < 0xd800 || high >= 0xe000)
		return put_utf8(to, high);
	int low = unit_at(*p, end);
	*p += 6;
	return low >= 0xdc00 && low < 0xe000
		   ? put_utf8(to, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
		   : 0;
}

/* Takes the text between quotes with its escapes; `escaped`: whether there are some. */
static bool take_string(struct json *j, struct io_span *s, bool *escaped)
{
	if (!json_expect(j, '"'))
		return false;
	const char *begin = j->at, *p = begin;
	char ignored[4];
	*escaped = false;
	while (p < j->end && *p != '"') {
		const char *at = p++;
		if ((unsigned char)*at < ' ')
			return json_fault(j, at, "a control character in a string");
		if (*at != '\\')
			continue;
		*escaped = true;
		p = at;
		if (!put_escape(&p, j->end, ignored))
			return json_fault(j, at, "an escape that JSON does not have, or a NUL");
	}
	if (p >= j->end)
		return json_fault(j, begin - 1, "a string without an end");
	*s = (struct io_span){begin, p - begin};
	j->at = p + 1;
	return true;
}

struct io_span json_text(struct json *j, struct arena *arena)
{
	struct io_span s = {0};
	bool escaped;
	if (!take_string(j, &s, &escaped) || !escaped)
		return s;
	char *text = arena_take(arena, s.length + 1, 1);
	size_t n = 0;
	for (const char *p = s.text, *end = p + s.length; p < end;)
		if (*p == '\\')
			n += put_escape(&p, end, text + n);
		else
			text[n++] = *p++;
	return (struct io_span){text, n};
}

/* --- other values --- */

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* The place behind one digit or more; NULL = there is no digit. */
static const char *need_digits(const char *p, const char *end)
{
	const char *stop = p ? skip_digits(p, end) : NULL;
	return stop == p ? NULL : stop;
}

static const char *number_end(const char *p, const char *end)
{
	p += p < end && *p == '-';
	p = p < end && *p == '0' ? p + 1 : need_digits(p, end);
	if (p && p < end && *p == '.')
		p = need_digits(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p = need_digits(p + (p < end && (*p == '+' || *p == '-')), end);
	}
	return p;
}

bool json_number(struct json *j, double *number)
{
	json_peek(j);
	const char *stop = number_end(j->at, j->end);
	if (!stop || stop == j->end)
		return json_fault(j, j->at, "a number is missing here");
	*number = str_read_double(j->at);
	if (!isfinite(*number))
		return json_fault(j, j->at, "a number too large");
	j->at = stop;
	return true;
}

bool json_to_integer(double number, int32_t *to)
{
	*to = number >= INT32_MIN && number <= INT32_MAX ? (int32_t)number : 0;
	return number == *to;
}

static bool take_word(struct json *j, const char *word)
{
	size_t n = strlen(word);
	json_peek(j);
	if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
		return false;
	j->at += n;
	return true;
}

bool json_take_null(struct json *j)
{
	return take_word(j, "null");
}

static bool skip_scalar(struct json *j)
{
	struct io_span s;
	bool escaped;
	double number;
	if (json_peek(j) == '"')
		return take_string(j, &s, &escaped);
	if (take_word(j, "true") || take_word(j, "false") || json_take_null(j))
		return true;
	return json_number(j, &number);
}

/* Skips the key of a member, with its colon. */
static bool skip_key(struct json *j)
{
	struct io_span s;
	bool escaped;
	return take_string(j, &s, &escaped) && json_expect(j, ':');
}

bool json_skip(struct json *j)
{
	char close[JSON_DEPTH];
	int depth = 0;
	bool first = true;
	do {
		if (depth && !json_more(j, close[depth - 1], &first)) {
			depth--;
			continue;
		}
		if (depth && close[depth - 1] == '}' && !skip_key(j))
			return false;
		char c = json_peek(j);
		if (c != '[' && c != '{') {
			if (!skip_scalar(j))
				return false;
			continue;
		}
		if (depth == JSON_DEPTH)
			return json_fault(j, j->at, "values nested too deeply");
		j->at++;
		close[depth++] = c == '[' ? ']' : '}';
		first = true;
	} while (depth && !j->fault);
	return !j->fault;
}
