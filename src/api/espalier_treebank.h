/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier_treebank.h - structures from files (doc/structures.md); espalier.h includes it. */
#ifndef ESPALIER_TREEBANK_H
#define ESPALIER_TREEBANK_H

#include "espalier.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct esp_vocab esp_vocab;
typedef struct esp_treebank esp_treebank;

/* One word a line, the line number (from 0) being its token.  A word is looked up as it is written, then with A-Z
 * lower-cased; one that is not there is "<unk>".  ESP_ERROR_INPUT: the file cannot be read, or a line is no word. */
esp_status esp_vocab_open(esp_context *, const char *path, esp_vocab **out, esp_error **error);
/* How many words it has. */
size_t esp_vocab_words(const esp_vocab *);
/* The token of a word of `length` bytes, looked up as above; -1 = it is not there, nor is "<unk>". */
int32_t esp_vocab_find(const esp_vocab *, const char *word, size_t length);
void esp_vocab_free(esp_vocab *);

/* Brackets, (3 (2 It) (4 (2 works) (2 .))); CoNLL-U, a line for each word; JSON, an object for each
 * structure; plain, a sequence of words for each line.  AUTO: by the end of the path (.ptb, .conllu, .json,
 * .jsonl), or else by the first bytes; what begins like none of the first three is plain for a program that
 * takes sequences, and brackets for others. */
enum {
	ESP_FORMAT_AUTO = 0,
	ESP_FORMAT_BRACKETS = 1,
	ESP_FORMAT_CONLLU = 2,
	ESP_FORMAT_JSON = 3,
	ESP_FORMAT_PLAIN = 4
};
/* Of CoNLL-U: the tree of the heads, or the enhanced graph. */
enum { ESP_GRAPH_BASIC = 0, ESP_GRAPH_ENHANCED = 1 };
/* A node of brackets with more than two children, (a b c): stays, or becomes ((a b) c) or (a (b c)). */
enum { ESP_BINARIZE_NOT = 0, ESP_BINARIZE_LEFT = 1, ESP_BINARIZE_RIGHT = 2 };

/* Where an input of a program comes from. */
typedef struct esp_column {
	const char *input;
	/* Columns are "word" and "label" in brackets; "form", "lemma", "upos", "xpos", "feats" and "deprel"
	 * in CoNLL-U; "word" in plain text; what "data" names in JSON.  NULL: the column of the input's name
	 * or of one that means the same ("word", "tag", "rel", ...); a program's only input, when it is a
	 * token, is the words whatever its name. */
	const char *column;
	const esp_vocab *vocab; /* NULL = that of the options */
} esp_column;

typedef struct esp_treebank_options {
	size_t size;		  /* sizeof(esp_treebank_options) */
	const esp_vocab *vocab;	  /* of token inputs that have none of their own; NULL = none is needed */
	const esp_column *column; /* `columns` of them, for inputs that need more than that */
	size_t columns;
	int format, graph;
	int collapse; /* brackets: 1 = a node with one child goes, and its label becomes the child's */
	int binarize; /* brackets, after that */
	/* 1: a text that the vocabulary lacks is looked up again without what follows its last ':', as long as it has
	 * one: nsubj:pass, nsubj. */
	int cut_labels;
} esp_treebank_options;

/* Opens the file, "-" being the standard input; `options` may be NULL.  No more of it is kept in memory than
 * the structure that is read, which may have 2^30 bytes.  ESP_ERROR_INPUT: the file cannot be opened. */
esp_status esp_treebank_open(esp_context *, const char *path, const esp_treebank_options *options,
			     esp_treebank **out, esp_error **error);
/* The same of a text in memory, such as a request's body; `name` stands for the file in diagnostics, and shows the
 * format as a path does.  The bytes are not copied: they must stay as they are as long as the treebank. */
esp_status esp_treebank_from_memory(esp_context *, const char *name, const void *bytes, size_t n,
				    const esp_treebank_options *options, esp_treebank **out, esp_error **error);
/* Appends the next structure to the forest, as soon as it is complete in the file or the pipe: brackets
 * and objects when they are closed, lines at their end, a sentence of CoNLL-U at the empty line after it. Its
 * nodes are numbered: in brackets in post order, after nodes went or came; in CoNLL-U as their lines stand,
 * words from 0 and, in the enhanced graph, empty nodes among them; in JSON as there; in plain text, and in
 * JSON without children, one after the other, each the parent of the one before, the root last.  Of a tree
 * every node must be below its root.  An input on edges that has no column of edges is what the child
 * carries.  Nodes that binarizing adds have the label of the node that they were added for, and no word.
 * *more is 0, and nothing is added, after the last; after a failure as well.  ESP_ERROR_INPUT: a structure
 * that is wrong, or that the program or the vocabulary does not take: then the next call reads the next one,
 * or finds the end when the beginning of that one is unknown. */
esp_status esp_treebank_next(esp_treebank *, esp_forest *, int *more, esp_error **error);
/* The words of the structure read last, separated by spaces, or its text as given in the file; valid until the next
 * call. */
const char *esp_treebank_sentence(const esp_treebank *);
/* The word of each of its nodes, with a newline behind it; nothing but the newline of a node that has none.
 * Of JSON, data by the name word, form or token: texts, and numbers without a sign.  Before the first
 * structure, and after a call that read none, the text is empty.  For esp_text_free. */
esp_status esp_treebank_words(const esp_treebank *, char **text, esp_error **error);
/* The same of a column by its name, as esp_column names it; empty lines where the file has no such column. */
esp_status esp_treebank_texts(const esp_treebank *, const char *column, char **text, esp_error **error);
/* How many structures were read or refused. */
size_t esp_treebank_passed(const esp_treebank *);
/* How much of the file was read, 0 to 1; 0 of one that does not tell its size, up to its end. */
double esp_treebank_progress(const esp_treebank *);
void esp_treebank_free(esp_treebank *);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
