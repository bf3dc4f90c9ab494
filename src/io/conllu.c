/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/conllu.h"

#include <stdio.h>
#include <string.h>

enum { ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC, FIELDS };
enum { SHOWN = 60, MOST_WORDS = 1 << 28 };

/* An edge from a head (a node, -1 = the root) to what depends on it. */
struct arc {
	int32_t head, dependent;
	struct io_span label;
};

struct sentence {
	struct io_text *text;
	struct arena *arena;
	struct diags *diags;
	bool enhanced;
	const char *begin, *end;
	struct io_span id, words; /* of the comments sent_id and text */
	int32_t lines;		  /* with a column: no fewer than there are nodes */
	int64_t separators;	  /* '|' in them: with the lines, no fewer than there are arcs */
	struct io_span *field[FIELDS];
	int32_t nodes, count; /* count: words, without empty nodes */
	int32_t *first;	      /* of word w, from 1: its node; behind it are its empty nodes; first[0] = -1 */
	int32_t *empties;     /* how many empty nodes follow word w, from 0 */
	struct arc *arc;
	int32_t arcs, root, roots;
};

/* --- diagnostics --- */

__attribute__((format(printf, 5, 6))) static bool refuse_sentence(const struct sentence *s, enum diag_id id,
								  const char *p, const char *hint,
								  const char *format, ...)
{
	struct str message = str_in(s->arena);
	va_list args;
	str_printf(&message, "sentence %lld, counted from 0%s%.*s%s: ", (long long)s->text->structures - 1,
		   s->id.text ? " (sent_id " : "", s->id.length < SHOWN ? (int)s->id.length : SHOWN,
		   s->id.text ? s->id.text : "", s->id.text ? ")" : "");
	va_start(args, format);
	str_vprintf(&message, format, args);
	va_end(args);
	io_refuse(s->text, s->diags, id, p, hint, str_text(&message));
	return false;
}

static int shown_length(struct io_span s)
{
	return s.length < SHOWN ? (int)s.length : SHOWN;
}

/* --- first sweep: where the sentence ends --- */

static const char *line_end(const char *p, const char *end)
{
	const char *newline = memchr(p, '\n', end - p);
	return newline ? newline : end;
}

/* `# KEY = VALUE`. */
static void note_comment(const char *key, const char *p, const char *end, struct io_span *value)
{
	size_t n = strlen(key);
	while (p < end && (*p == '#' || *p == ' '))
		p++;
	if ((size_t)(end - p) <= n || memcmp(p, key, n) != 0)
		return;
	for (p += n; p < end && *p == ' ';)
		p++;
	if (p == end || *p != '=')
		return;
	for (p++; p < end && *p == ' ';)
		p++;
	while (end > p && io_is_space(end[-1]))
		end--;
	*value = (struct io_span){p, end - p};
}

static void measure_line(struct sentence *s, const char *p, const char *end)
{
	if (*p == '#') {
		note_comment("sent_id", p, end, &s->id);
		note_comment("text", p, end, &s->words);
		return;
	}
	s->lines++;
	for (; p < end; p++)
		s->separators += *p == '|';
}

/* Finds the next sentence; blocks of comments alone are none.  False when the text ends. */
static bool find_sentence(struct sentence *s)
{
	const char *end = s->text->end;
	while (!s->lines) {
		const char *p = s->text->at = io_skip_space(s->text->at, end);
		s->id = s->words = (struct io_span){0};
		if (p == end)
			return false;
		io_text_mark(s->text);
		s->begin = s->text->line.begin;
		for (p = s->begin; p < end;) {
			const char *stop = line_end(p, end);
			if (io_skip_space(p, stop) == stop)
				break;
			measure_line(s, p, stop);
			p = stop + (stop < end);
		}
		s->text->at = s->end = p;
	}
	return true;
}

/* --- second sweep: lines --- */

static bool split_line(const struct sentence *s, const char *p, const char *end, struct io_span *field)
{
	const char *begin = p;
	int n = 0;
	if (end > p && end[-1] == '\r')
		end--;
	if (memchr(p, 0, end - p))
		return refuse_sentence(s, DIAG_BAD_CONLLU, p, "CoNLL-U is text", "a NUL byte in a line");
	for (; n < FIELDS; n++) {
		const char *tab = memchr(p, '\t', end - p);
		field[n] = (struct io_span){p, (tab ? tab : end) - p};
		if (!field[n].length)
			return refuse_sentence(s, DIAG_BAD_CONLLU, p, "write _ where there is no value",
					       "column %d is empty", n + 1);
		p = tab ? tab + 1 : end;
		if (!tab)
			break;
	}
	if (n == FIELDS - 1)
		return true;
	return refuse_sentence(
	    s, DIAG_BAD_CONLLU, begin, "columns are separated by one tab each, not by spaces",
	    n == FIELDS ? "a line has more than 10 columns" : "a line has %d of 10 columns", n + 1);
}

/* Removes a number from the beginning of a piece; -1 = there is none, or it is too large. */
static int32_t take_number(struct io_span *s)
{
	int64_t n = 0;
	size_t digits = 0;
	while (digits < s->length && s->text[digits] >= '0' && s->text[digits] <= '9' && n <= MOST_WORDS)
		n = 10 * n + (s->text[digits++] - '0');
	*s = (struct io_span){s->text + digits, s->length - digits};
	return digits && n <= MOST_WORDS ? (int32_t)n : -1;
}

static bool take_sign(struct io_span *s, char sign)
{
	if (!s->length || *s->text != sign)
		return false;
	*s = (struct io_span){s->text + 1, s->length - 1};
	return true;
}

static void add_node(struct sentence *s, const struct io_span *field)
{
	for (int i = 0; i < FIELDS; i++)
		s->field[i][s->nodes] = field[i];
	s->nodes++;
}

static bool add_word(struct sentence *s, const struct io_span *field)
{
	s->first[++s->count] = s->nodes;
	add_node(s, field);
	return true;
}

static bool add_empty(struct sentence *s, const struct io_span *field)
{
	s->empties[s->count]++;
	if (s->enhanced)
		add_node(s, field);
	return true;
}

/* Adds the node of a line, if it has one. */
static bool add_line(struct sentence *s, const char *p, const char *end)
{
	struct io_span field[FIELDS] = {{0}};
	if (!split_line(s, p, end, field))
		return false;
	struct io_span id = field[ID];
	int32_t word = take_number(&id);
	bool empty = take_sign(&id, '.'), range = !empty && take_sign(&id, '-');
	int32_t second = empty || range ? take_number(&id) : 0;
	if (!id.length && range && word == s->count + 1 && second >= word)
		return true;
	if (!id.length && empty && word == s->count && second == s->empties[word] + 1)
		return add_empty(s, field);
	if (!id.length && !empty && !range && word == s->count + 1)
		return add_word(s, field);
	return refuse_sentence(
	    s, DIAG_BAD_CONLLU, p, "words are numbered from 1, empty nodes behind word 3 as 3.1, 3.2",
	    "the id '%.*s' stands where %d should", shown_length(field[ID]), field[ID].text, s->count + 1);
}

static bool read_lines(struct sentence *s)
{
	for (int i = 0; i < FIELDS; i++)
		s->field[i] = ARENA_ARRAY(s->arena, struct io_span, s->lines);
	s->first = ARENA_ARRAY(s->arena, int32_t, s->lines + 1);
	s->empties = ARENA_ARRAY(s->arena, int32_t, s->lines + 1);
	s->first[0] = -1;
	for (const char *p = s->begin; p < s->end;) {
		const char *stop = line_end(p, s->end);
		if (*p != '#' && !add_line(s, p, stop))
			return false;
		p = stop + (stop < s->end);
	}
	return s->nodes ? true : refuse_sentence(s, DIAG_BAD_CONLLU, s->begin, NULL, "it has no word");
}

/* --- arcs --- */

static bool add_arc(struct sentence *s, int32_t head, int32_t dependent, struct io_span label)
{
	s->arc[s->arcs++] = (struct arc){head, dependent, label};
	if (head < 0 && !s->roots++)
		s->root = dependent;
	return true;
}

static const char point_out[] = "a head is the id of a word of the sentence, or 0 for the root";

static bool add_head(struct sentence *s, int32_t node)
{
	struct io_span piece = s->field[HEAD][node];
	int32_t head = take_number(&piece);
	if (head < 0 || head > s->count || piece.length)
		return refuse_sentence(s, DIAG_BAD_HEAD, s->field[HEAD][node].text, point_out,
				       "word %d has the head '%.*s', of %d words", node + 1,
				       shown_length(s->field[HEAD][node]), s->field[HEAD][node].text,
				       s->count);
	if (!head && s->roots)
		return refuse_sentence(s, DIAG_BAD_HEAD, s->field[HEAD][node].text,
				       "choose one of them, and make it the head of the others",
				       "words %d and %d are both roots", s->root + 1, node + 1);
	return add_arc(s, s->first[head], node, s->field[DEPREL][node]);
}

/* Removes an id, 3 or 3.1, from the beginning of a piece.  Its node; -1 = the root, -2 = there is none. */
static int32_t take_node(const struct sentence *s, struct io_span *piece)
{
	int32_t word = take_number(piece), empty = 0;
	if (take_sign(piece, '.'))
		empty = take_number(piece);
	if (word < 0 || word > s->count || empty < 0 || empty > s->empties[word])
		return -2;
	return s->first[word] + empty;
}

/* HEAD:LABEL. */
static bool add_dependency(struct sentence *s, int32_t node, struct io_span piece)
{
	struct io_span dependency = piece;
	int32_t head = take_node(s, &piece);
	if (head > -2 && take_sign(&piece, ':') && piece.length)
		return add_arc(s, head, node, piece);
	return refuse_sentence(
	    s, DIAG_BAD_HEAD, dependency.text ? dependency.text : s->begin,
	    "enhanced dependencies are written 4:nsubj|6:conj:and, their heads ids of the sentence",
	    "'%.*s' is no enhanced dependency", shown_length(dependency), dependency.text);
}

static bool add_dependencies(struct sentence *s, int32_t node)
{
	struct io_span rest = s->field[DEPS][node];
	if (rest.length == 1 && *rest.text == '_')
		return refuse_sentence(s, DIAG_BAD_HEAD, rest.text,
				       "read the file's basic trees if it has no enhanced graphs",
				       "'%.*s' has no enhanced dependencies",
				       shown_length(s->field[FORM][node]), s->field[FORM][node].text);
	for (;;) {
		const char *bar = memchr(rest.text, '|', rest.length);
		size_t n = bar ? (size_t)(bar - rest.text) : rest.length;
		if (!add_dependency(s, node, (struct io_span){rest.text, n}))
			return false;
		if (!bar)
			return true;
		rest = (struct io_span){bar + 1, rest.length - n - 1};
	}
}

static bool read_arcs(struct sentence *s)
{
	s->arc = ARENA_ARRAY(s->arena, struct arc, s->lines + s->separators);
	for (int32_t n = 0; n < s->nodes; n++)
		if (!(s->enhanced ? add_dependencies : add_head)(s, n))
			return false;
	return s->roots || refuse_sentence(s, DIAG_BAD_HEAD, s->begin, "the root is the word whose head is 0",
					   "none of its %d words is the root", s->count);
}

/* --- arrays --- */

struct edges {
	int32_t *child_begin, *children;
	struct io_span *label;
};

/* Arcs are in the order of their dependents, so children are, too. */
static struct edges edges_of(const struct sentence *s)
{
	int32_t edges = s->arcs - s->roots;
	struct edges e = {ARENA_ARRAY(s->arena, int32_t, s->nodes + 2),
			  ARENA_ARRAY(s->arena, int32_t, edges + 1),
			  ARENA_ARRAY(s->arena, struct io_span, edges + 1)};
	int32_t *next = e.child_begin + 1; /* is shifted while it is filled */
	for (int32_t i = 0; i < s->arcs; i++)
		if (s->arc[i].head >= 0)
			next[s->arc[i].head + 1]++;
	for (int32_t n = 0; n < s->nodes; n++)
		next[n + 1] += next[n];
	for (int32_t i = 0; i < s->arcs; i++) {
		const struct arc *a = &s->arc[i];
		if (a->head < 0)
			continue;
		e.children[next[a->head]] = a->dependent;
		e.label[next[a->head]++] = a->label;
	}
	return e;
}

/* A node on a cycle, -1 = there is none.  Removes nodes whose parents were all removed; a cycle is left over.
 */
static int32_t find_cycle(const struct sentence *s, const struct edges *e)
{
	int32_t *parents = ARENA_ARRAY(s->arena, int32_t, s->nodes);
	int32_t *free = ARENA_ARRAY(s->arena, int32_t, s->nodes);
	int32_t n = 0, taken = 0;
	for (int32_t i = 0; i < e->child_begin[s->nodes]; i++)
		parents[e->children[i]]++;
	for (int32_t i = 0; i < s->nodes; i++)
		if (!parents[i])
			free[n++] = i;
	for (; taken < n; taken++)
		for (int32_t i = e->child_begin[free[taken]]; i < e->child_begin[free[taken] + 1]; i++)
			if (!--parents[e->children[i]])
				free[n++] = e->children[i];
	if (taken == s->nodes)
		return -1;
	int32_t *parent = free; /* of each node that is left, a parent that is left */
	for (int32_t i = 0; i < s->arcs; i++)
		if (s->arc[i].head >= 0 && parents[s->arc[i].head])
			parent[s->arc[i].dependent] = s->arc[i].head;
	int32_t at = 0;
	while (!parents[at])
		at++;
	for (int32_t i = 0; i < s->nodes; i++)
		at = parent[at];
	return at;
}

static const struct {
	const char *names;
	int field;
} node_columns[] = {
    {"form|word|token", FORM}, {"lemma", LEMMA},
    {"upos|tag|pos", UPOS},    {"xpos", XPOS},
    {"feats", FEATS},	       {"deprel|rel|relation|label", DEPREL},
};
enum { NODE_COLUMNS = sizeof node_columns / sizeof *node_columns };

static const struct io_column *columns_of(const struct sentence *s, const struct edges *e)
{
	struct io_column *c = ARENA_ARRAY(s->arena, struct io_column, NODE_COLUMNS + 1);
	for (int i = 0; i < NODE_COLUMNS; i++)
		c[i] = (struct io_column){.names = node_columns[i].names,
					  .text = s->field[node_columns[i].field]};
	c[NODE_COLUMNS] = (struct io_column){
	    .names = node_columns[NODE_COLUMNS - 1].names, .on_edges = true, .text = e->label};
	return c;
}

/* The comment `text`, or the words. */
static const char *sentence_of(const struct sentence *s)
{
	struct str text = str_in(s->arena);
	if (s->words.text)
		return arena_text(s->arena, s->words.text, s->words.length);
	for (int32_t n = 0; n < s->nodes; n++) {
		str_add(&text, " ", n > 0);
		str_add(&text, s->field[FORM][n].text, s->field[FORM][n].length);
	}
	return str_text(&text);
}

static bool finish_sentence(const struct sentence *s, struct io_structure *to)
{
	struct edges e = edges_of(s);
	int32_t cycle = find_cycle(s, &e);
	if (cycle >= 0)
		return refuse_sentence(s, DIAG_CYCLE, s->field[ID][cycle].text,
				       "take out an edge that leads back, or the sentence",
				       "'%.*s' depends on itself, through its heads",
				       shown_length(s->field[FORM][cycle]), s->field[FORM][cycle].text);
	*to = (struct io_structure){.nodes = s->nodes,
				    .root = s->root,
				    .child_begin = e.child_begin,
				    .children = e.children,
				    .column = columns_of(s, &e),
				    .columns = NODE_COLUMNS + 1,
				    .sentence = sentence_of(s)};
	return true;
}

enum io_next io_conllu_next(struct io_text *text, bool enhanced, struct arena *arena, struct diags *diags,
			    struct io_structure *to)
{
	struct sentence s = {.text = text, .arena = arena, .diags = diags, .enhanced = enhanced};
	if (!find_sentence(&s)) {
		if (text->structures)
			return IO_END;
		text->structures++;
		return io_refuse(text, diags, DIAG_EMPTY_INPUT, text->at,
				 "CoNLL-U has a line of ten columns for each word",
				 "the text holds no sentence");
	}
	text->structures++;
	return read_lines(&s) && read_arcs(&s) && finish_sentence(&s, to) ? IO_TREE : IO_FAILED;
}
