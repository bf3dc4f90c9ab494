/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/json_scan.h"

#include "base/utf8.h"

#include <string.h>

bool(scan_fault)(struct scan *s, const char *at, const char *message)
{
	if (!s->fault) {
		s->fault = message;
		s->fault_at = at;
	}
	return false;
}

char scan_peek(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
	return s->at < s->end ? *s->at : 0;
}

bool scan_take(struct scan *s, char c)
{
	if (scan_peek(s) != c)
		return false;
	s->at++;
	return true;
}

bool scan_expect(struct scan *s, char c)
{
	static const char *const wanted[] = {"a '[' is missing here", "a '{' is missing here",
					     "a ':' is missing here", "a string is missing here"};
	return scan_take(s, c) || scan_fault(s, s->at, wanted[strchr("[{:\"", c) - "[{:\""]);
}

bool scan_more(struct scan *s, char close, bool *first)
{
	bool begins = *first;
	*first = false;
	if (s->fault || scan_take(s, close))
		return false;
	return begins || scan_take(s, ',') ||
	       scan_fault(s, s->at, "a ',' is missing here, or the end of the list");
}

bool scan_key(struct scan *s, struct span *key, bool *first)
{
	return scan_more(s, '}', first) && scan_string(s, key) && scan_expect(s, ':');
}

/* --- strings --- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
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

static size_t put_character(char *to, unsigned code)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)(lead[n] | code);
	return n;
}

/* Decodes the escape at *p, which moves behind it, and returns its bytes; 0 = it is invalid, as that of NUL
 * is. */
static size_t take_escape(const char **p, const char *end, char *to)
{
	static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	const char *letter = end - *p > 1 && (*p)[1] ? strchr(letters, (*p)[1]) : NULL;
	if (letter) {
		*p += 2;
		*to = meaning[letter - letters];
		return 1;
	}
	int high = unit_at(*p, end), low = -1;
	if (high <= 0 || (high >= 0xdc00 && high < 0xe000))
		return 0;
	*p += 6;
	if (high < 0xd800 || high >= 0xe000)
		return put_character(to, high);
	low = unit_at(*p, end);
	if (low < 0xdc00 || low >= 0xe000)
		return 0;
	*p += 6;
	return put_character(to, 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
}

/* Moves behind a character of a string; false after a fault. */
static bool pass_character(struct scan *s, const char **p, bool *escaped)
{
	const char *at = *p;
	char ignored[4];
	if ((unsigned char)*at < ' ')
		return scan_fault(s, at, "a control character in a string");
	if (*at == '\\') {
		*escaped = true;
		return take_escape(p, s->end, ignored) ||
		       scan_fault(s, at, "an escape that JSON does not have, or that of NUL");
	}
	size_t n = (unsigned char)*at < 0x80 ? 1 : utf8_length(at, s->end - at);
	*p += n;
	return n || scan_fault(s, at, "a byte that is no UTF-8");
}

bool scan_string(struct scan *s, struct span *to)
{
	if (!scan_expect(s, '"'))
		return false;
	const char *p = s->at;
	bool escaped = false;
	while (p < s->end && *p != '"')
		if (!pass_character(s, &p, &escaped))
			return false;
	if (p >= s->end)
		return scan_fault(s, s->at - 1, "a string without an end");
	*to = (struct span){s->at, p - s->at, escaped};
	s->at = p + 1;
	return true;
}

size_t span_copy(struct span from, char *to)
{
	size_t n = 0;
	for (const char *p = from.text, *end = p + from.n; p < end;)
		if (*p == '\\')
			n += take_escape(&p, end, to + n);
		else
			to[n++] = *p++;
	return n;
}

bool span_is(struct span s, const char *text)
{
	size_t n = strlen(text);
	if (!s.escaped)
		return s.n == n && memcmp(s.text, text, n) == 0;
	for (const char *p = s.text, *end = p + s.n; p < end;) {
		char c[4] = {*p};
		size_t m = *p == '\\' ? take_escape(&p, end, c) : (p++, 1);
		if (m > n || memcmp(c, text, m) != 0)
			return false;
		text += m;
		n -= m;
	}
	return n == 0;
}

/* --- other values --- */

static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);
	scan_peek(s);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}

bool scan_truth(struct scan *s, bool *to)
{
	*to = take_word(s, "true");
	return *to || take_word(s, "false") || scan_fault(s, s->at, "true or false is missing here");
}

bool scan_null(struct scan *s)
{
	return take_word(s, "null");
}

static bool skip_scalar(struct scan *s)
{
	struct span ignored;
	struct number number;
	if (scan_peek(s) == '"')
		return scan_string(s, &ignored);
	return take_word(s, "true") || take_word(s, "false") || scan_null(s) || scan_number(s, &number);
}

static bool skip_nested(struct scan *s)
{
	char close[SCAN_DEPTH] = "";
	int depth = 0;
	bool first = true;
	do {
		struct span key;
		if (depth && !scan_more(s, close[depth - 1], &first)) {
			depth--;
			continue;
		}
		if (depth && close[depth - 1] == '}' && !(scan_string(s, &key) && scan_expect(s, ':')))
			return false;
		char c = scan_peek(s);
		if (c != '[' && c != '{') {
			if (!skip_scalar(s))
				return false;
			continue;
		}
		if (depth == SCAN_DEPTH)
			return scan_fault(s, s->at, "values nested too deeply");
		s->at++;
		close[depth++] = c == '[' ? ']' : '}';
		first = true;
	} while (depth && !s->fault);
	return !s->fault;
}

bool scan_skip(struct scan *s)
{
	char c = scan_peek(s);
	return c == '[' || c == '{' ? skip_nested(s) : skip_scalar(s);
}

bool scan_pass_list(struct scan *s)
{
	const char *begin = s->at, *p = begin;
	struct span ignored;
	size_t depth = 0;
	while (p < s->end) {
		char c = *p++;
		if (c == '"') {
			s->at = p - 1;
			if (!scan_string(s, &ignored))
				return false;
			p = s->at;
		}
		depth += c == '[';
		if (c == ']' && --depth == 0) {
			s->at = p;
			return true;
		}
	}
	return scan_fault(s, begin, "a list without an end");
}
