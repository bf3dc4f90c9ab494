/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/json.h"

#include "tests/io/show.h"

/* All structures of a text, one after the other; what is refused as its id. */
static const char *read_text(const char *text)
{
	struct io_text t = io_text_in("json", text, strlen(text));
	struct str s = str_in(&arena);
	struct io_structure found;
	enum io_next next;
	while ((next = io_json_next(&t, false, &arena, &diags, &found)) != IO_END) {
		str_puts(&s, s.n ? " / " : "");
		str_puts(&s, next == IO_TREE ? show_structure(&found, "")
					     : diag_spelling(diags.at[diags.n - 1].id));
	}
	return str_text(&s);
}

#define PAIR "{\"children\": [[], [], [0, 1]]}"

static const struct {
	const char *name, *text, *want;
} good[] = {
    {"an object", PAIR, "0 1 2[0,1] ^2"},
    {"objects on lines", PAIR "\n" PAIR "\n", "0 1 2[0,1] ^2 / 0 1 2[0,1] ^2"},
    {"a list of objects", " [" PAIR ",\n" PAIR "]\n", "0 1 2[0,1] ^2 / 0 1 2[0,1] ^2"},
    {"an empty list", "[]", "empty-input"},
    {"a root", "{\"root\": 0, \"children\": [[1], []]}", "0[1] 1 ^0"},
    {"escapes in keys", "{\"chi\\u006cdren\": [[]]}", "0 ^0"},
    {"members that mean nothing",
     "{\"id\": {\"a\": [true, null, {}, [], -1.5e3, \"]}\\\"\"]}, \"children\": [[]]}", "0 ^0"},
    {"a child that is none is left to others", "{\"children\": [[7, -1]]}", "0[7,-1] ^0"},
};

static void takes(void)
{
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		const char *got = read_text(good[i].text);
		if (!tap_ok(strcmp(got, good[i].want) == 0, "%s", good[i].name))
			printf("# %s\n", got);
		diags_free(&diags);
	}
}

/* `after`: whether what follows is read. */
static const struct {
	const char *text, *says;
	int column;
	bool after;
} bad[] = {
    {"{\"children\": [[], [0]], \"children\": []}", "a second member 'children'", 37, true},
    {"{\"children\": [[]], \"root\": 0, \"root\": 0}", "a second member 'root'", 39, true},
    {"{\"children\": [[]], \"data\": {}, \"data\": {}}", "a second member 'data'", 40, true},
    {"{\"children\": [[]], \"data\": {\"x\": 1, \"\\u0078\": 2}}", "has some already", 36, true},
    {"{\"children\": [[]], \"root\": 1}", "the root is the number of a node", 28, true},
    {"{\"children\": [[]], \"root\": 0.5}", "the root is the number of a node", 28, true},
    {"{\"children\": []}", "it has no node", 1, true},
    {"{\"root\": 0}", "no member 'children'", 1, true},
    {"{\"children\": [[0.5]]}", "a child is the number of a node", 16, true},
    {"{\"children\": [[1e300]]}", "a child is the number of a node", 16, true},
    {"{\"children\": [[1e999]]}", "a number too large", 16, true},
    {"{\"children\": [[01]]}", "a ',' is missing", 17, true},
    {"{\"children\": [[\"a\"]]}", "a number is missing", 16, true},
    {"{\"children\": [0]}", "a '[' is missing", 15, true},
    {"{\"children\": [[],]}", "a '[' is missing", 18, true},
    {"{\"children\" [[]]}", "a ':' is missing", 13, true},
    {"{children: [[]]}", "a string is missing", 2, true},
    {"{\"a\": tru, \"children\": [[]]}", "a number is missing", 7, true},
    {"{\"a\": \"\\x\", \"children\": [[]]}", "an escape", 8, true},
    {"{\"a\": \"\\ud800\", \"children\": [[]]}", "an escape", 8, true},
    {"{\"a\": \"\\u0000\", \"children\": [[]]}", "an escape", 8, true},
    {"{\"a\": \"\t\", \"children\": [[]]}", "a control character", 8, true},
    {"{\"a\": \"\xe9\", \"children\": [[]]}", "no UTF-8", 8, true},
    {"{\"\xc0\x80\": 0, \"children\": [[]]}", "no UTF-8", 3, true},
    {"{\"a\": [1 2], \"children\": [[]]}", "a ',' is missing", 10, true},
    {"{\"children\": [[]], \"text\": 5}", "a string is missing", 28, true},
    {"{\"children\": [[]", "is not closed", 1, false},
    {"[" PAIR " " PAIR "]", "a ',' or ']' is missing", 33, false},
    {"[" PAIR ",]", "an object is missing", 33, false},
    {"[" PAIR ",", "the list is not closed", 0, false},
    {"[] {}", "behind the list", 4, false},
    {"7", "an object is missing", 1, false},
};

static void refuses(void)
{
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct str text = str_in(&arena);
		str_printf(&text, "%s\n" PAIR, bad[i].text);
		const char *got = read_text(bad[i].after ? str_text(&text) : bad[i].text);
		size_t n = strlen(got);
		bool after = n > 10 && strcmp(got + n - 10, "2[0,1] ^2") != 0 && got[n - 1] == '2';
		bool ok = diags.n == 1 && diags.at[0].id == DIAG_BAD_JSON && after == bad[i].after &&
			  (!bad[i].column || diags.at[0].column == bad[i].column) &&
			  strstr(diags.at[0].message, bad[i].says);
		if (!tap_ok(ok, "refused: %s", bad[i].says))
			printf("# %s: %d: %s\n", got, diags.n ? diags.at[0].column : 0,
			       diags.n ? diags.at[0].message : "-");
		diags_free(&diags);
	}
}

static void nests(void)
{
	enum { DEPTH = 100000 };
	char *text = malloc(2 * DEPTH + 100);
	int n = sprintf(text, "{\"children\": [[]], \"a\": ");
	memset(text + n, '[', DEPTH);
	memset(text + n + DEPTH, ']', DEPTH);
	strcpy(text + n + 2 * DEPTH, "}");
	tap_ok(strcmp(read_text(text), "bad-json") == 0 && refused(DIAG_BAD_JSON, "nested too deeply"),
	       "deep values are refused");
	memcpy(text + n + SCAN_DEPTH, text + n + 2 * DEPTH - SCAN_DEPTH, SCAN_DEPTH + 2);
	tap_ok(accepted(strcmp(read_text(text), "0 ^0") == 0), "as deep as there is room they are skipped");
	free(text);
}

/* --- data --- */

static const char structure[] =
    "{\"children\": [[], [], [0, 1]], \"text\": \"a \\u00e9\\ud83d\\ude00\\n\", \"data\": {";

static struct io_vocab *vocab(void)
{
	return io_vocab_open(&arena, &diags, write_file("vocab", "a\nb\n", 4));
}

/* What the data is as the input wants it, as text. */
static const char *filled(const char *data, struct io_wanted w)
{
	struct str text = str_in(&arena), s = str_in(&arena);
	struct io_structure found;
	int32_t to[12] = {0};
	str_printf(&text, "%s%s}}", structure, data);
	struct io_text t = io_text_in("json", str_text(&text), text.n);
	if (io_json_next(&t, false, &arena, &diags, &found) != IO_TREE ||
	    !io_json_fill(&t, &found, found.column, &w, &arena, to, &diags))
		return "refused";
	for (int i = 0; i < (w.on_edges ? 2 : 3) * (w.token ? 1 : (int)w.elements); i++) {
		float number;
		memcpy(&number, &to[i], sizeof number);
		if (w.token)
			str_printf(&s, "%d ", to[i]);
		else
			str_printf(&s, "%.9g ", (double)number);
	}
	return str_text(&s);
}

static void gives(const char *data, struct io_wanted w, const char *want)
{
	const char *got = filled(data, w);
	if (!tap_ok(strcmp(got, want) == 0, "%s", data))
		printf("# %s\n", got);
	accepted(true);
}

static void refuses_data(const char *data, struct io_wanted w, const char *says)
{
	const char *got = filled(data, w);
	tap_ok(strcmp(got, "refused") == 0 && refused(DIAG_BAD_JSON, says), "refused: %s", data);
}

static void fills(void)
{
	struct io_wanted token = {.input = "w", .token = true, .elements = 1, .vocab = vocab()};
	struct io_wanted edge = token, pair = {.input = "x", .elements = 2, .inner = true},
			 number = {.elements = 1};
	struct io_wanted pairs = pair;
	edge.on_edges = pairs.on_edges = true;
	gives("\"w\": [3, \"b\", -1]", token, "3 1 -1 ");
	gives("\"w\": [null, \"\\u0061\", \"B\"]", token, "-1 0 1 ");
	gives("\"w\": [[], [], [1, \"b\"]]", edge, "1 1 ");
	gives("\"x\": [null, [1, 2.5], [-1e2, 0]]", pair, "0 0 1 2.5 -100 0 ");
	gives("\"x\": [1, [2], null]", number, "1 2 0 ");
	gives("\"x\": [1.00000005960464477539062500000001, 1e-50, 123456789123456789]", number,
	      "1.00000012 0 1.23456791e+17 ");
	gives("\"x\": [[], [], [[1, 2], [3, 4]]]", pairs, "1 2 3 4 ");
	static const int64_t shape[] = {2, 1, 2};
	struct io_wanted cube = {.input = "x", .elements = 4, .rank = 3, .shape = shape};
	gives("\"x\": [[[[1, 2]], [[3, 4]]], null, [5, 6, 7, 8]]", cube, "1 2 3 4 0 0 0 0 5 6 7 8 ");
	refuses_data("\"x\": [null, [[[1, 2]]], null]", cube, "node 1: fewer lists");
	refuses_data("\"x\": [null, null, [[[1, 2]], [[1, 2], [3, 4]]]]", cube, "node 2: more lists");
	refuses_data("\"x\": [null, null, [[[1, 2]], [[1]]]]", cube, "node 2: fewer numbers");
	refuses_data("\"x\": [null, null, [[1, 2], [3, 4]]]", cube, "node 2: a '[' is missing");
	refuses_data("\"w\": [3, 4]", token, "data 'w', node 2: fewer values");
	refuses_data("\"w\": [3, 4, 5, 6]", token, "more values than there are nodes");
	refuses_data("\"w\": [3, 4, -2]", token, "a token or an index is a whole number");
	refuses_data("\"w\": [3, 4, 1.5]", token, "a token or an index is a whole number");
	refuses_data("\"w\": [3, 4, 3000000000]", token,
		     "a token or an index is a whole number from 0 to 2147483647");
	refuses_data("\"w\": [3, 4, [1]]", token, "a number is missing");
	refuses_data("\"w\": {}", token, "a '[' is missing");
	refuses_data("\"w\": [[], [], [1]]", edge, "node 2: fewer values than the node has children");
	refuses_data("\"w\": [[1], [], [1, 2]]", edge, "node 0: more values than the node has children");
	refuses_data("\"x\": [[1, 2], [1, 2], null]", pair, "node 2: the model reads the input here");
	refuses_data("\"x\": [[1, 2], [1, 1e39], [1, 2]]", pair, "node 1: a number too large");
	refuses_data("\"x\": [[1, 2], [1], [1, 2]]", pair, "node 1: fewer numbers");
	refuses_data("\"x\": [[1, 2], [1, 2, 3], [1, 2]]", pair, "node 1: more numbers");
	tap_ok(strcmp(filled("\"w\": [1, \"zz\", 2]", token), "refused") == 0 &&
		   refused(DIAG_UNKNOWN_WORD, "'zz'"),
	       "a word that is not in the vocabulary is refused");
	token.vocab = NULL;
	refuses_data("\"w\": [\"a\", 4, 5]", token, "there is no vocabulary");
}

/* An input of one i32 is a value: any of 32 bits, and -1 is one of them. */
static void fills_integers(void)
{
	struct io_wanted integer = {
	    .input = "k", .token = true, .integer = true, .elements = 1, .inner = true, .vocab = vocab()};
	gives("\"k\": [-2147483648, 2147483647, -1]", integer, "-2147483648 2147483647 -1 ");
	gives("\"k\": [null, null, 7]", integer, "0 0 7 ");
	gives("\"k\": [\"b\", 0, 2e1]", integer, "1 0 20 ");
	refuses_data("\"k\": [1, 2, 9007199254740993]", integer,
		     "node 2: an integer from -2147483648 to 2147483647 is needed here");
	refuses_data("\"k\": [1, 2, -2147483649]", integer, "node 2: an integer from");
	refuses_data("\"k\": [1, 2.5, 3]", integer, "node 1: an integer from");
	refuses_data("\"k\": [1, 2, null]", integer,
		     "node 2: the model reads the input here: null is no value");
	refuses_data("\"k\": [1, 2, nul]", integer, "a number is missing here");
	integer.leaf = true;
	refuses_data("\"k\": [null, 2, 3]", integer, "node 0: the model reads the input here");
	struct io_wanted edge = {
	    .input = "k", .token = true, .integer = true, .on_edges = true, .elements = 1};
	gives("\"k\": [[], [], [-5, 2]]", edge, "-5 2 ");
	refuses_data("\"k\": [[], [], [null, 2]]", edge, "node 2: the model reads the input here");
}

static const char *read_sequence(const char *text)
{
	struct io_text t = io_text_in("json", text, strlen(text));
	struct io_structure s;
	return io_json_next(&t, true, &arena, &diags, &s) == IO_TREE ? show_structure(&s, "")
								     : diags.at[0].message;
}

static void sequences(void)
{
	static const struct {
		const char *text, *want;
	} some[] = {
	    {"{\"data\": {\"x\": [[1, 2], [\"]\", 4], null]}}", "0 1[0] 2[1] ^2"},
	    {"{\"root\": 0, \"data\": {\"x\": [5]}}", "0 ^0"},
	    {"{\"data\": {\"id\": \"s1\", \"x\": [5, 6]}}", "0 1[0] ^1"},
	    {"{\"children\": [[1], []], \"root\": 0, \"data\": {\"x\": [5]}}", "0[1] 1 ^0"},
	    {"{\"data\": {\"x\": []}}", "structure 0, counted from 0: it has no node"},
	    {"{\"data\": {\"x\": 7}}",
	     "structure 0, counted from 0: data of a sequence is a list with a value for each node"},
	    {"{\"text\": \"a\"}", "structure 0, counted from 0: it has neither a member 'children' nor data"},
	    {"{\"data\": {}}", "structure 0, counted from 0: it has neither a member 'children' nor data"},
	};
	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		tap_ok(strcmp(read_sequence(some[i].text), some[i].want) == 0, "%s", some[i].text);
		diags_free(&diags);
	}
}

static void text(void)
{
	struct str s = str_in(&arena);
	struct io_structure found;
	str_printf(&s, "%s}}", structure);
	struct io_text t = io_text_in("json", str_text(&s), s.n);
	tap_ok(io_json_next(&t, false, &arena, &diags, &found) == IO_TREE &&
		   strcmp(found.sentence, "a \xc3\xa9\xf0\x9f\x98\x80\n") == 0,
	       "escapes are what they mean");
	accepted(true);
}

int main(void)
{
	begin_tests();
	takes();
	refuses();
	nests();
	fills();
	fills_integers();
	sequences();
	text();
	return end_tests();
}
