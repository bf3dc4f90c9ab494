/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The words of the text of loops. */
#include "ilir/spelling.h"

#include <ctype.h>

const char *const ilir_kind_word[] = {
#define BUFFER(name, spelling, holds, memory, type, rows, more, which, meaning) [IMAGE_##name] = (spelling),
#include "image/buffer_kinds.def"
    [ILIR_REGISTER] = "register",
};

const char *const ilir_size_word[] = {
    [IMAGE_ONE] = "one",
    [IMAGE_NODES] = "nodes",
    [IMAGE_LEAVES] = "leaves",
    [IMAGE_INPUTS] = "inputs",
    [IMAGE_EDGES] = "edges",
    [IMAGE_BATCHES] = "batches",
    [IMAGE_WIDEST] = "widest",
    [IMAGE_WIDEST_INNER] = "widest_inner",
    [IMAGE_WIDEST_EDGES] = "widest_edges",
    [IMAGE_PAIRS] = "pairs",
};

const char *const ilir_domain_word[] = {
    [IMAGE_DOMAIN_ONCE] = "once",
    [IMAGE_DOMAIN_LEAVES] = "leaves",
    [IMAGE_DOMAIN_INNER] = "inner",
    [IMAGE_DOMAIN_INNER_NODE] = "inner_node",
    [IMAGE_DOMAIN_BATCH] = "batch",
    [IMAGE_DOMAIN_NODE] = "node",
    [IMAGE_DOMAIN_NODES] = "nodes",
    [IMAGE_DOMAIN_PAST_LEAVES] = "past_leaves",
    [IMAGE_DOMAIN_INPUTS] = "inputs",
    [IMAGE_DOMAIN_SCAN] = "scan",
    [IMAGE_DOMAIN_BINDING] = "binding",
    [IMAGE_DOMAIN_BATCH_DOWN] = "batch_down",
    [IMAGE_DOMAIN_NODE_DOWN] = "node_down",
};

const char *const ilir_dtype_word[] = {
#define DTYPE(name, spelling, bits, kind, safetensors, meaning) [ILIR_##name] = spelling,
#include "base/dtype.def"
    [ILIR_INDEX] = "index"};

const char *const ilir_truth_word[] = {"false", "true"};

const char *const ilir_loop_word[] = {
    [ILIR_SERIAL] = "serial", [ILIR_SWEPT] = "swept", [ILIR_VECTOR] = "vector", [ILIR_UNROLLED] = "unrolled",
    [ILIR_MATRIX] = "matrix"};

static const char *const statement_word[] = {"for",   "if",	 "else",   "let", "alloc", "step", "prefetch",
					     "write", "matrix", "barrier", "kernel", "inf", "nan",   "true", "false"};

static bool same_word(const char *word, const char *text, size_t length)
{
	return strlen(word) == length && memcmp(word, text, length) == 0;
}

bool ilir_is_reserved(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof statement_word / sizeof *statement_word; i++)
		if (same_word(statement_word[i], word, length))
			return true;
	for (int i = 0; i < IMAGE_SIZES; i++)
		if (same_word(ilir_size_word[i], word, length))
			return true;
	for (int i = 0; i < ILIR_OPS; i++)
		if (same_word(ilir_op_spelling(i), word, length))
			return true;
	return false;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

size_t ilir_name_length(const char *text, size_t length)
{
	size_t n = 0;
	if (!length || !is_word_char(text[0]) || isdigit((unsigned char)text[0]))
		return 0;
	while (n < length &&
	       (is_word_char(text[n]) || (text[n] == '.' && n + 1 < length && is_word_char(text[n + 1]))))
		n++;
	return n;
}

bool ilir_is_infix(enum ilir_op op)
{
	return ilir_op_arity(op) == 2 && ispunct((unsigned char)ilir_op_spelling(op)[0]);
}
