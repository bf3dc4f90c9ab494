/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Inside ra/: text -> tokens (lex.c) -> syntax (parse.c, expression.c) -> declarations (declare.c) -> graph
 * (expand.c, calls.c, build.c, finish.c).  Everything lives in one arena, and places in the text point into
 * one terminated copy. */
#ifndef ESPALIER_RA_SYNTAX_H
#define ESPALIER_RA_SYNTAX_H

#include "base/map.h"
#include "ra/ra.h"

/* Limits of a text; a diagnostic says which is exceeded. */
enum {
	RA_TEXT_LIMIT = 16 << 20, /* bytes of a model text */
	RA_NAME_LIMIT = 255,	  /* bytes of a name */
	RA_PARAM_LIMIT = 1 << 16, /* parameters, after their braces are expanded */
	RA_SLOT_LIMIT = 64,	  /* children of a node of fixed arity */
	RA_TRAVERSAL_LIMIT = 256,
	RA_NODE_LIMIT = 250000,	  /* operators of a model */
	RA_STEP_LIMIT = 500000,	  /* expressions visited while functions are expanded */
	RA_NESTING_LIMIT = 200,	  /* brackets in brackets */
	RA_EXPANSION_LIMIT = 400, /* expressions in expressions, calls expanded */
	RA_COEFFICIENT_LIMIT = 1 << 20,
	RA_REPORT_LIMIT = 50, /* diagnostics of one text */
};
#define RA_CONSTANT_LIMIT (1ll << 40)
/* Elements of a value, and of a parameter: bytes are counted in 64 bits even when stored elements are padded
 * (an image can have 2^48 elements). */
#define RA_ELEMENT_LIMIT (1ll << 40)

/* --- report.c: diagnostics of one text, each place once --- */

/* A piece of text and where it stands. */
struct ra_span {
	const char *text;
	size_t length;
	struct diag_at at;
};

struct ra_seen {
	enum diag_id id;
	struct diag_at at;
};

struct ra_report {
	struct arena *arena;
	struct diags *diags;
	VEC(struct ra_seen) seen;
};

/* Always false.  Drops a second diagnostic of one id at one place, since bodies may be expanded twice. */
__attribute__((format(printf, 5, 6))) bool ra_report(struct ra_report *, enum diag_id, struct diag_at,
						     const char *hint, const char *format, ...);
#define ra_report(...) diag_false(ra_report(__VA_ARGS__))
/* Whether a diagnostic would be kept.  Ask before a search for a suggestion, which visits all names. */
bool ra_is_news(const struct ra_report *, enum diag_id, struct diag_at);
/* " (line 3)", or nothing when the line is unknown. */
const char *ra_line_text(struct arena *, struct diag_at);
/* A span on one line, blanks joined, comments left out, clipped to what a message can hold. */
const char *ra_excerpt(struct arena *, struct ra_span);
bool ra_span_is(struct ra_span, const char *text);
char *ra_span_string(struct arena *, struct ra_span);

/* The candidate that is nearest to a name, for "did you mean". */
struct ra_nearest {
	const char *wanted;
	size_t length;
	const char *best;
	size_t best_length;
	int distance;
};

struct ra_nearest ra_nearest_to(const char *wanted, size_t length);
void ra_consider_name(struct ra_nearest *, const char *candidate, size_t length);
/* "did you mean 'x'?", or `otherwise` when nothing is near. */
const char *ra_did_you_mean(struct arena *, const struct ra_nearest *, const char *otherwise);

/* --- lex.c --- */

/* RA_WORD(NAME, "spelling"): the reserved words.  Those up to OUTPUT begin a statement. */
#define RA_WORD_LIST                                                                                         \
	RA_WORD(MODEL, "model")                                                                              \
	RA_WORD(STRUCTURE, "structure")                                                                      \
	RA_WORD(INPUT, "input")                                                                              \
	RA_WORD(EDGE, "edge")                                                                                \
	RA_WORD(PARAM, "param")                                                                              \
	RA_WORD(STATE, "state")                                                                              \
	RA_WORD(CASE, "case")                                                                                \
	RA_WORD(DEF, "def")                                                                                  \
	RA_WORD(TRAVERSAL, "traversal")                                                                      \
	RA_WORD(LEAF, "leaf")                                                                                \
	RA_WORD(INNER, "inner")                                                                              \
	RA_WORD(NODE, "node")                                                                                \
	RA_WORD(OUTPUT, "output")                                                                            \
	RA_WORD(AT, "at")                                                                                    \
	RA_WORD(LABELS, "labels")                                                                            \
	RA_WORD(CHILDREN, "children")                                                                        \
	RA_WORD(FOR, "for")                                                                                  \
	RA_WORD(IN, "in")

/* Words that are names elsewhere: headers of bodies, and what a sum ranges over. */
#define RA_FREE_WORD_LIST                                                                                    \
	RA_WORD(ROOT, "root")                                                                                \
	RA_WORD(BELOW, "below")                                                                              \
	RA_WORD(PARENTS, "parents")

enum ra_word {
	RA_WORD_NONE,
#define RA_WORD(name, spelling) RA_WORD_##name,
	RA_WORD_LIST
	RA_RESERVED_WORDS, RA_WORD_BEFORE_FREE = RA_RESERVED_WORDS - 1,
	RA_FREE_WORD_LIST
#undef RA_WORD
	    RA_WORDS
};

/* Punctuation is its own kind. */
enum {
	RA_TOKEN_END,
	RA_TOKEN_LINE_END,
	RA_TOKEN_NAME = 256,
	RA_TOKEN_PATTERN,
	RA_TOKEN_NUMBER,
	RA_TOKEN_STRING,
	RA_TOKEN_COMPARE, /* < <= == != > >= */
	RA_TOKEN_BAD
};

struct ra_token {
	int kind;
	struct ra_span span;
	enum ra_word word;    /* NAME: which reserved word, if any */
	bool first;	      /* of its line */
	double number;	      /* NUMBER */
	enum diag_id problem; /* BAD: what is wrong with it */
	const char *hint;     /* BAD: what to do; LINE_END: why the line ends, where that is not obvious */
};

/* All state of the lexer: a copy looks ahead. */
struct ra_lexer {
	const char *file, *p, *end, *line_start;
	int line, depth; /* of ( and [ */
	bool fresh;	 /* no token on this line yet */
	const struct diag_at *place; /* of all tokens, for a text that a builder was given; else NULL */
};

/* The text must be terminated. */
struct ra_lexer ra_lexer_of(const char *file, const char *text, size_t length);
/* Reads the next token.  The end of a line is one outside of brackets only; a word that begins statements,
 * first on its line, ends an unclosed bracket. */
struct ra_token ra_next_token(struct ra_lexer *);
/* Expands braces as the shell does.  False, with *problem, when that is not a list of names. */
typedef VEC(struct ra_span) ra_spans;
bool ra_expand_braces(struct arena *, struct ra_span pattern, ra_spans *, const char **problem);

/* --- the syntax of a text --- */

struct ra_dim_term {
	int64_t coefficient;
	struct ra_span symbol; /* length 0 = a constant, or a group */
	struct ra_span by;	   /* a name that the symbol is multiplied by; one of them is a number; length 0 = none */
	struct ra_dim_text *group; /* in parentheses; or NULL */
	int divisor;		   /* of the symbol or group; 0 = none, or `divisor_name` */
	struct ra_span divisor_name;
};

struct ra_dim_text {
	struct ra_span span;
	VEC(struct ra_dim_term) terms;
	struct ra_expr *value; /* of an index that is a value, x[y[i]]: it has no terms; or NULL */
};

typedef VEC(struct ra_dim_text *) ra_dim_texts;

enum ra_expr_kind {
	RA_E_NUMBER,	/* number */
	RA_E_NAME,	/* name; the span may have parentheses around it */
	RA_E_CHAIN,	/* chain: operators of one precedence, from the left */
	RA_E_NEGATE,	/* base */
	RA_E_CALL,	/* name, args, keywords; axis, if `along` */
	RA_E_ZEROS,	/* dims, dtype */
	RA_E_DIMENSION, /* dims, one */
	RA_E_RESHAPE,	/* base, dims */
	RA_E_SLICE,	/* base, begin, end (NULL = left out), axis */
	RA_E_LOOKUP,	/* base, index: a NAME, a SLOT or a NUMBER */
	RA_E_SLOT,	/* slot, name: children[slot].name */
	RA_E_EACH,	/* name, base, each: sum(base for name in children), or in parents, or in nodes */
	RA_E_ELEMENT,	/* base, element: x[i, j + 1] */
	RA_E_OVER,	/* name, base, indices: sum(base for i, u in 3) */
	RA_E_NEST,	/* base, indices: y[i, j] = base */
	RA_E_LET,	/* bindings, base: (name = value; ... base) */
};

struct ra_binding {
	struct ra_span name;
	struct ra_expr *value; /* NULL: did not parse, and was reported */
};

/* An index variable where it is introduced. */
struct ra_index_text {
	struct ra_span name;
	struct ra_dim_text *extent; /* NULL = as its uses tell */
};

typedef VEC(struct ra_index_text) ra_index_texts;

struct ra_expr {
	enum ra_expr_kind kind;
	struct ra_span span, name;
	struct ra_expr *base;
	bool along;
	int axis; /* from 0, or from the end: -1 is the last */
	union {
		double number;
		int64_t slot;
		struct {
			bool maximum, parents, members;
		} each;
		struct ra_expr *index;
		struct {
			ra_dim_texts at;
			struct ra_expr *fill; /* a number; NULL = none is written */
		} element;
		ra_index_texts indices;
		struct {
			VEC(struct ra_expr *) operand;
			VEC(enum ra_op) op; /* one less */
		} chain;
		struct {
			VEC(struct ra_expr *) args;
			ra_spans keywords; /* of each argument, if any has one; length 0 = it is given by its place */
		};
		struct {
			ra_dim_texts dims;
			enum dtype dtype;
		};
		struct {
			struct ra_dim_text *begin, *end;
		};
		VEC(struct ra_binding) bindings;
	};
};

/* Begins the names of a builder's values; no name of a text begins with it. */
#define RA_VALUE_LETTER '%'

/* A parameter, an input or a state. */
struct ra_declaration {
	struct ra_span name;
	bool token, edge;
	struct ra_span type; /* as written; length 0 = f32 */
	struct ra_span products; /* of a parameter: in what products with it are computed, as written; length 0 = not said */
	struct ra_span within;	 /* of an input: the bound of its magnitudes, as written; length 0 = not said */
	double bound;		 /* its value */
	int traversal; /* of a state: how many statements 'traversal' stand before it */
	ra_dim_texts dims;
};

struct ra_def {
	struct ra_span name;
	ra_spans params;
	VEC(struct ra_expr *) defaults; /* of each parameter: a number, or the name of one before it; NULL = none */
	struct map param; /* name -> position */
	struct ra_expr *body;
	bool prelude;
	bool active; /* being expanded */
};

/* One condition of a case. */
struct ra_condition {
	struct ra_span name; /* an input, or the word `children` */
	int64_t value;
};

struct ra_case_text {
	struct ra_span name;
	enum ra_word base; /* LEAF or INNER */
	VEC(struct ra_condition) conditions;
};

/* The word of the bodies of the i-th case; such words follow those of the language. */
static inline enum ra_word ra_word_of_case(size_t i)
{
	return (enum ra_word)(RA_WORDS + i);
}

struct ra_body {
	struct ra_span header;
	enum ra_word word; /* LEAF, INNER, ROOT, BELOW, NODE, or that of a case */
	int traversal;	   /* as of a declaration */
	VEC(struct ra_binding) statements;
};

struct ra_traversal_text {
	struct ra_span span; /* "up" or "down" */
	bool down;
	struct ra_dim_text *steps; /* of a scan: `over DIM`; NULL = none */
};

struct ra_output_text {
	struct ra_span name;
	struct ra_expr *value;
	bool at_root;
	bool ranges; /* over the nodes of an input, itself or by an output above it */
	struct diag_at labels_at;
	VEC(const char *) labels;
};

struct ra_syntax {
	struct ra_span model; /* length 0 = not given */
	struct {
		struct ra_span span; /* length 0 = not given */
		enum ra_structure_kind kind;
		int children; /* as in struct ra_structure */
		ra_spans names;
	} structure;
	VEC(struct ra_declaration) inputs;
	VEC(struct ra_declaration) params;
	VEC(struct ra_declaration) states;
	VEC(struct ra_traversal_text) traversals;
	VEC(struct ra_case_text) cases;
	VEC(struct ra_def *) defs;
	VEC(struct ra_body) bodies;
	VEC(struct ra_output_text) outputs;
	bool incomplete; /* a declaration did not parse: names that look unknown may not be */
	bool built;	 /* by calls, not from a text */
	bool drops_unused; /* parameters and inputs that nothing needs are forgotten, not refused */
	const struct ra_keep *keep; /* locals that become states */
	size_t keeps;
	struct ra_expr *unused; /* values that a builder's outputs do not need, checked for faults; or NULL */
};

struct ra_parser {
	struct arena *arena;
	struct ra_report *report;
	struct ra_syntax *syntax;
	struct ra_lexer lexer;
	struct ra_token token; /* the one to be read next */
	int depth;
	struct map cases; /* name -> which of syntax->cases is the first of it */
	bool prelude;
	bool in_body; /* the last one of syntax->bodies */
};

/* parse.c: adds the declarations of a text to `syntax`. */
void ra_parse_text(struct arena *, struct ra_report *, struct ra_syntax *, const char *file, const char *text,
		   size_t length, bool prelude);

/* expression.c: NULL or false after a diagnostic. */
struct ra_expr *ra_parse_expr(struct ra_parser *);
/* The infix operator of that spelling; RA_CONST = none. */
enum ra_op ra_find_operator(struct ra_span);
struct ra_expr *ra_make_expr(struct ra_parser *, enum ra_expr_kind, struct ra_span);
struct ra_expr *ra_parse_number(struct ra_parser *);

/* parse_dims.c: likewise. */
struct ra_dim_text *ra_parse_dim(struct ra_parser *);
/* Parses a list of dimensions, and `close`: ']', ')' or the end of the text. */
bool ra_parse_dims(struct ra_parser *, char close, ra_dim_texts *);
/* What may stand behind the dimensions and the type of a declaration: nothing, `products TYPE` of a parameter or
 * `within NUMBER` of an input.  All are optional. */
typedef bool ra_clause(struct ra_parser *, struct ra_declaration *);
ra_clause ra_parse_no_clause, ra_parse_products, ra_parse_within;
/* Parses dimensions, an optional `: TYPE`, a clause and `close`. */
bool ra_parse_typed_dims(struct ra_parser *, char close, struct ra_declaration *, ra_clause *);
/* Parses a `TYPE`. */
bool ra_parse_type(struct ra_parser *, struct ra_span *);
/* Takes the end of a list: ']', ')' or the end of the text. */
bool ra_expect_close(struct ra_parser *, char close);

/* take_tokens.c */
/* Refuses what is nested deeper than the limit; always false. */
bool ra_refuse_depth(struct ra_parser *);
/* The span from the beginning of one piece of text to the last token that was taken. */
struct ra_span ra_span_from(const struct ra_parser *, struct ra_span begin);
bool ra_at_word(const struct ra_parser *, enum ra_word);

/* parse_nest.c: index notation.  Parses what is assigned to a name: `= value`, or `[i, j in 3] = value`. */
struct ra_expr *ra_parse_assigned(struct ra_parser *, struct ra_span name);
/* The reduction over indices that a function name means; RA_CONST = none. */
enum ra_op ra_reduction_named(struct ra_span function);
/* `base for i, u in 3)`, after the name of such a function. */
struct ra_expr *ra_parse_over(struct ra_parser *, struct ra_span function, struct ra_expr *base);
/* An index of an element: a dimension with indices, or a value. */
struct ra_dim_text *ra_parse_index(struct ra_parser *);
/* `i, j + 1]`, of which the first index was read. */
struct ra_expr *ra_parse_element(struct ra_parser *, struct ra_expr *base, struct ra_dim_text *first);
/* Whether `] else` stands here. */
bool ra_at_fill(const struct ra_parser *);

/* parse.c: after '(': the names of a function's arguments, which may have defaults, and ')'. */
bool ra_parse_names(struct ra_parser *, struct ra_def *, bool defaults);
/* parse.c: `CONDITION and ...`, of a case. */
bool ra_parse_conditions(struct ra_parser *, struct ra_case_text *);
/* parse.c: `sequence` or `none`, or tree or dag with its children. */
bool ra_parse_structure(struct ra_parser *);
/* parse.c: `up` or `down`, perhaps `over DIM`. */
bool ra_parse_traversal(struct ra_parser *);
void ra_advance_token(struct ra_parser *);
bool ra_take_token(struct ra_parser *, int kind);
bool ra_take_word(struct ra_parser *, enum ra_word);
/* The same for a word that is not reserved. */
bool ra_take_free_word(struct ra_parser *, enum ra_word);
/* Takes a token of the kind, or refuses the token there is: "expected WHAT, but ...". */
bool ra_expect_token(struct ra_parser *, int kind, const char *what);
bool ra_refuse_token(struct ra_parser *, const char *what);
/* Takes a name that is being declared: no reserved word. */
bool ra_expect_new_name(struct ra_parser *, const char *what, struct ra_span *);
/* Takes a number, which must be whole and at most `limit`. */
bool ra_expect_count(struct ra_parser *, int64_t limit, int64_t *);

/* --- read_model.c: shared by texts and builders --- */

/* Adds a function of the prelude, by its number there. */
struct ra_def *ra_parse_prelude(struct arena *, struct ra_report *, struct ra_syntax *, int function);
/* Fills the model from the syntax; NULL when anything was reported. */
struct ra_model *ra_make_graph(struct arena *, struct ra_report *, struct ra_syntax *, struct ra_model *);

/* --- prelude.c --- */

/* The functions that are written in the language itself: one definition a line. */
struct ra_prelude_function {
	const char *text, *doc;
};
extern const struct ra_prelude_function ra_prelude[];
extern const int ra_prelude_functions;
#define RA_PRELUDE_FILE "prelude"
/* The number of a function; -1 = there is none of that name. */
int ra_find_prelude(struct ra_span name);
/* Its name, the beginning of its text. */
struct ra_span ra_prelude_name(int function);

/* --- types.c --- */

/* Reads the type of a declaration, or of a cast; false after a diagnostic. */
bool ra_read_type(struct ra_report *, struct ra_span, enum dtype *);

struct ra_graph;

/* --- shape.c --- */

struct ra_dim ra_dim_constant(int64_t);
struct ra_dim ra_dim_symbol(int symbol);
/* a + scale * b; false when the result has too many terms or too large numbers. */
bool ra_dim_add(const struct ra_dim *a, int64_t scale, const struct ra_dim *b, struct ra_dim *sum);
/* Whether the dimension is below `least` whatever the sizes: those of weights are at least 1. */
bool ra_dim_below(const struct ra_model *, const struct ra_dim *, int64_t least);
/* floor(d / divisor), of a symbol that is made unless it is there; false when the result is too complex. */
bool ra_dim_divide(struct ra_graph *, const struct ra_dim *d, int divisor, struct ra_dim *out);
/* NumPy's broadcasting; an extent counts as 1 only if it is written as the number.  False with the two
 * extents that differ. */
bool ra_shape_broadcast(const struct ra_shape *, const struct ra_shape *, struct ra_shape *,
			struct ra_dim differ[2]);
/* The text of a dimension, of a shape, for messages. */
const char *ra_dim_text_of(struct arena *, const struct ra_model *, const struct ra_dim *);
const char *ra_shape_text(struct arena *, const struct ra_model *, const struct ra_shape *);

/* --- the graph under construction --- */

enum ra_name_kind {
	RA_N_SYMBOL,
	RA_N_PARAM,
	RA_N_INPUT,
	RA_N_STATE,
	RA_N_OUTPUT,
	RA_N_DEF,
	RA_N_SLOT,
	RA_N_PARENT,
	RA_N_CASE
};

struct ra_name {
	enum ra_name_kind kind;
	int index;
	struct ra_span span;
	bool broken; /* its declaration was refused: its uses give no further diagnostic */
};

/* Names by nesting; the scope of a definition's arguments has no outer one. */
struct ra_scope {
	const struct ra_scope *outer;
	const struct map *names; /* -> spans, values */
	const struct ra_span *spans;
	const ra_ref *values;
	size_t n;
	struct ra_span each; /* the name of a sum's child; length 0 = not a sum's scope */
	const int *index;    /* the names are index variables: by span, of the model's; NULL = they are values */
};

struct ra_call {
	const struct ra_call *outer;
	const struct ra_def *def;
	struct diag_at at;
};

/* Bodies and outputs share no nodes.  Down, the first nodes are the roots: they have no parents as leaves have no
 * children. */
enum ra_region { RA_IN_LEAF, RA_IN_INNER, RA_IN_OUTPUTS };

struct ra_graph {
	struct arena *arena;
	struct ra_report *report;
	struct ra_model *model;
	struct ra_syntax *syntax;
	struct map names; /* -> name.at */
	VEC(struct ra_name) name;
	struct map functions; /* -> syntax->defs */
	struct map bodies;    /* traversal and word -> the first of syntax->bodies */
	enum ra_region region;
	int traversal;	/* of the body at hand */
	int body;	/* which one we are in, of a state's values */
	int children;	/* of the nodes that it is for, -1 = any number */
	bool childless; /* the leaf version of a body for both cases: children, or parents, have zero states */
	ra_ref *value;	/* of the states, in the body at hand */
	bool *assigned;
	struct map leaves; /* operators without arguments are made once a region (and sum) */
	int each, sums;	   /* the number of the sum over children or nodes we are in, 0 = none; sums so far */
	bool members;	   /* that is one over the nodes of the input */
	bool of_member;	   /* an output is expanded that the node it is at has */
	bool at_root;	   /* the output at hand is computed there */
	const struct ra_scope *shared; /* names that outputs see: of the body of a model without a structure */
	struct ra_nest *nest; /* the index notation we are in; NULL = none */
	int nests, positions; /* nests so far, and index variables of those that are open */
	struct map computed;  /* symbols that are computed, by their text */
	int depth;
	long steps;
	bool stopped; /* a limit was reached */
	const struct ra_call *call;
};

/* declare.c: names, symbols, structure. */
void ra_declare(struct ra_graph *);
const char *ra_name_kind_text(enum ra_name_kind);
const struct ra_name *ra_find_name(const struct ra_graph *, const char *name, size_t length);
/* A dimension in an expression: its symbols must be declared, or be local names of whole numbers or dimensions. */
bool ra_resolve_dim(struct ra_graph *, const struct ra_scope *, const struct ra_dim_text *, struct ra_dim *);
/* The same for a whole shape, whose extents must be at least 1. */
bool ra_resolve_shape(struct ra_graph *, const struct ra_scope *, const ra_dim_texts *, struct ra_shape *);
/* The whole number or dimension that a local name stands for, such as an argument of a function; false = none. */
bool ra_find_number(const struct ra_graph *, const struct ra_scope *, struct ra_span name, struct ra_dim *);
/* A factor times another one; what is beyond the limit stays beyond it. */
static inline int64_t ra_multiply_factors(int64_t a, int64_t b)
{
	bool large = b > RA_COEFFICIENT_LIMIT || b < -RA_COEFFICIENT_LIMIT || a > INT32_MAX || a < -INT32_MAX;
	return large ? RA_COEFFICIENT_LIMIT + 1 : a * b;
}
/* Refuses a name that a dimension is multiplied or divided by. */
bool ra_refuse_factor(struct ra_graph *, struct ra_span);
/* The header of the body of a case alone, up or down: its word and how it is written. */
enum ra_word ra_case_word(bool down, enum ra_case);
const char *ra_word_text(enum ra_word);
/* What a node's parent is called where it has one at most, else NULL. */
const char *ra_parent_name(enum ra_structure_kind);
/* Whether the traversal of the body at hand goes down. */
/* Whether the body at hand is of a step of a scan. */
bool ra_in_scan(const struct ra_graph *);
bool ra_goes_down(const struct ra_graph *);
/* The slot of that name, or -1. */
int ra_find_slot(const struct ra_graph *, const char *name, size_t length);

/* declare_cases.c.  A traversal down splits each case into nodes with and without parents: half as many cases
 * are possible then. */
void ra_declare_cases(struct ra_graph *);
/* Refuses cases without a body: most often the body has another name. */
void ra_check_case_bodies(struct ra_graph *);

/* check_bodies.c.  Adds the bodies of the text; the parser has refused headers without a word. */
void ra_add_bodies(struct ra_graph *);
/* The first body of that word, or of all nodes where the word is one of the language; NULL = there is none. */
const struct ra_body *ra_body_for(const struct ra_graph *, int traversal, enum ra_word);
/* Traversals up have bodies for leaves, inner nodes and cases; those down for roots and nodes below. */
void ra_check_directions(struct ra_graph *);
/* Refuses a model without a name, a structure, states, bodies or outputs. */
void ra_check_complete(struct ra_graph *);

/* check_graph.c: models without a structure. */
bool ra_is_graph(const struct ra_graph *);
/* Refuses what only nodes of a structure have. */
void ra_check_graph(struct ra_graph *);
/* Refuses a child, a parent or a range over them in an expression; false. */
/* Whether a text without a structure scans: some traversal is over steps. */
bool ra_scans(const struct ra_syntax *);
/* Refuses scans of a model with a structure. */
void ra_refuse_scans(struct ra_graph *);
bool ra_refuse_neighbours(struct ra_graph *, struct ra_span);

/* expand.c: expressions to nodes.  A reference of 0 says that the fault was reported. */
ra_ref ra_expand_expr(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
void ra_expand_bodies(struct ra_graph *);
void ra_expand_outputs(struct ra_graph *);
/* Nodes that are built from here on are of that body of the traversal at hand. */
void ra_enter_body(struct ra_graph *, int which);
/* A diagnostic about an expression; inside a function it says where that was called. */
__attribute__((format(printf, 5, 6))) bool ra_refuse(struct ra_graph *, enum diag_id, struct diag_at,
						     const char *hint, const char *format, ...);
/* The place of an expression as the author of the model sees it. */
struct diag_at ra_place_of(const struct ra_graph *, struct diag_at);

/* nest.c: index notation. */
ra_ref ra_expand_nest(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
ra_ref ra_expand_over(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
ra_ref ra_expand_element(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
/* The element x[index] of a vector, where the index is one of the names at hand. */
ra_ref ra_expand_indexed(struct ra_graph *, const struct ra_scope *, const struct ra_expr *lookup);
/* Whether a name is an index variable or, in index notation, a size. */
bool ra_is_index_name(struct ra_graph *, const struct ra_scope *, struct ra_span);
/* The least and the greatest index of an element; false where a size is too complex. */
bool ra_index_range(const struct ra_model *, const struct ra_index_form *, struct ra_dim *least, struct ra_dim *most);

/* resolve.c: what a name means where it stands. */
ra_ref ra_resolve_name(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
/* A state of a child, or what the edge to it carries; a leaf and an output have neither. */
ra_ref ra_child_field(struct ra_graph *, int slot, const struct ra_name *field, struct ra_span);
/* The row of a parameter by a token, `word`, `k.rel`, `left.rel` or `children[0].rel`; of any value by a number. */
ra_ref ra_resolve_lookup(struct ra_graph *, const struct ra_scope *, const struct ra_expr *lookup);
/* Whether a name is seen of a child. */
bool ra_is_child_field(const struct ra_graph *, const struct ra_name *);
/* The output that is being expanded ranges over the nodes of an input.  True. */
bool ra_note_range(struct ra_graph *);
/* The slot that children[slot] means; -1 after a diagnostic. */
int ra_find_child(struct ra_graph *, int64_t slot, struct ra_span);
/* Whether a new local name has a meaning already, which is reported. */
bool ra_name_taken(struct ra_graph *, const struct ra_scope *, struct ra_span);

/* calls.c */
ra_ref ra_expand_call(struct ra_graph *, const struct ra_scope *, const struct ra_expr *);
/* The i-th function that is an operator or otherwise built in; NULL past the last. */
const char *ra_builtin_name(int i);

/* build.c: nodes with their shapes; arguments of 0 give 0. */
ra_ref ra_build_leaf(struct ra_graph *, struct ra_node);
ra_ref ra_build_constant(struct ra_graph *, double, struct ra_span);
ra_ref ra_build_extent(struct ra_graph *, const struct ra_dim *, struct ra_span);
/* The row of the step that the body at hand is of. */
ra_ref ra_build_at_step(struct ra_graph *, ra_ref, struct ra_span);
ra_ref ra_build_zero(struct ra_graph *, const struct ra_shape *, enum dtype, struct ra_span);
ra_ref ra_build_map(struct ra_graph *, enum ra_op, ra_ref, struct ra_span); /* NEG, NOT, ABS ... COS */
ra_ref ra_build_cast(struct ra_graph *, ra_ref, enum dtype, struct ra_span);
ra_ref ra_build_where(struct ra_graph *, const ra_ref arg[3], struct ra_span);
ra_ref ra_build_elementwise(struct ra_graph *, enum ra_op, ra_ref, ra_ref, struct ra_span);
ra_ref ra_build_matmul(struct ra_graph *, ra_ref, ra_ref, struct ra_span);
/* ELEMENT, SUM_OVER, MAX_OVER, MIN_OVER, PROD_OVER, NEST: the node as it is given. */
ra_ref ra_build_indexed(struct ra_graph *, struct ra_node);
/* The axis that a number means, from 0 or from the end; -1 after a diagnostic. */
int ra_find_axis(struct ra_graph *, ra_ref, int number, struct ra_span);
/* SUM, MAX, MIN, PROD, ARGMAX, ARGMIN */
ra_ref ra_build_reduce(struct ra_graph *, enum ra_op, ra_ref, int axis, struct ra_span);
ra_ref ra_build_scan(struct ra_graph *, enum ra_op, ra_ref, int axis, struct ra_span); /* CUMSUM */
ra_ref ra_build_slice(struct ra_graph *, ra_ref, int axis, const struct ra_dim *begin, const struct ra_dim *end,
		      struct ra_span);
/* x[number] of the first axis. */
ra_ref ra_build_row(struct ra_graph *, ra_ref, int64_t number, struct ra_span);
ra_ref ra_build_concat(struct ra_graph *, ra_ref, ra_ref, int axis, struct ra_span);
/* The last two axes exchanged; or axis d is the order[d]-th of the value. */
ra_ref ra_build_transpose(struct ra_graph *, ra_ref, struct ra_span);
ra_ref ra_build_reorder(struct ra_graph *, ra_ref, const int *order, struct ra_span);
/* An axis is taken out and put in at another place; both are there. */
ra_ref ra_build_moved_axis(struct ra_graph *, ra_ref, int from, int to, struct ra_span);
/* The same elements in row-major order under another shape; a shape that has another number of them whatever
 * the sizes is refused. */
ra_ref ra_build_reshape(struct ra_graph *, ra_ref, const struct ra_shape *, struct ra_span);
ra_ref ra_build_spread(struct ra_graph *, ra_ref, ra_ref, struct ra_span);
ra_ref ra_build_lookup(struct ra_graph *, ra_ref param, int input, int slot, struct ra_span);
ra_ref ra_build_each(struct ra_graph *, enum ra_op, ra_ref, bool members, struct ra_span); /* CHILD_SUM ... PARENT_MAX */
/* The value repeated to a state's shape; 0 after a diagnostic when that cannot be. */
ra_ref ra_build_as_state(struct ra_graph *, ra_ref, int state, struct ra_span);

/* keep.c: makes states of locals; after bodies and outputs, whose nodes it renumbers. */
void ra_keep_locals(struct ra_graph *);

/* finish.c: drops what no state and no output needs and orders the rest; reports what is declared in vain. */
void ra_finish(struct ra_graph *);
/* The number of arguments of an operator. */
int ra_op_arity(enum ra_op);
/* Whether it is a sum or maximum over children or parents. */
bool ra_is_each(enum ra_op);
const char *ra_op_spelling(enum ra_op);
/* types.c: the type of a node from those of its arguments; numbers among these take the type that is wanted.  False
 * after a diagnostic. */
bool ra_find_type(struct ra_graph *, struct ra_node *);
/* Of what is declared. */
void ra_find_leaf_type(struct ra_graph *, struct ra_node *);
/* A number that was written, in a type; any other value is what it was.  0 after a diagnostic. */
ra_ref ra_build_typed_number(struct ra_graph *, ra_ref, enum dtype, struct diag_at);

#endif
