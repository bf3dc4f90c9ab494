/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef ESPALIER_CSOURCE_WRITER_H
#define ESPALIER_CSOURCE_WRITER_H

#include "csource/csource.h"

/* A file while it is written.  The tables are by expression, and of the statement at hand. */
struct csource_writer {
	const struct csource_program *program;
	const struct ilir_module *m;
	struct arena *arena;
	struct str *to;
	int depth;	/* of blocks */
	bool *reads;	/* jit_find_reads */
	bool *known;	/* a variable has its value: of scalars one, of vectors an array */
	uint32_t *lane; /* the loop over lanes that computes it last, by number */
	uint32_t lanes; /* how many such loops there were */
	VEC(uint32_t) computed; /* the expressions that are known, oldest first */
	const char *problem;	/* why it cannot be written, NULL = it can be */
};

/* --- print_names.c --- */

/* Writes a line, indented as deep as blocks are. */
__attribute__((format(printf, 2, 3))) void csource_line(struct csource_writer *, const char *format, ...);
/* Writes a line that begins a block, behind a text or alone, and the one that ends it. */
__attribute__((format(printf, 2, 3))) void csource_open(struct csource_writer *, const char *format, ...);
void csource_block(struct csource_writer *);
void csource_close(struct csource_writer *);
/* The type of C that holds an element, or an index. */
const char *csource_type(enum ilir_dtype);
/* Whether the elements of an array are the bits of floats: weights of f32 are, so that all of them are exact. */
bool csource_holds_bits(const struct ilir_buffer_decl *);
/* The type of the elements of an array. */
const char *csource_stored_type(const struct ilir_buffer_decl *);
/* Names that are unique in the file, in the arena. */
const char *csource_buffer_name(struct csource_writer *, ilir_buffer);
const char *csource_var_name(struct csource_writer *, ilir_var);
/* An identifier made of any text, in the arena. */
const char *csource_identifier(struct arena *, const char *text);
/* The function that computes an operator for operands of a type, in the arena. */
const char *csource_function(struct arena *, enum ilir_op, enum ilir_dtype operand);
/* Constants of C, exact to the bit, in the arena. */
const char *csource_float(struct arena *, float);
const char *csource_integer(struct arena *, enum ilir_dtype, int64_t);

/* --- print_arithmetic.c --- */

void csource_print_arithmetic(struct csource_writer *);

/* --- print_values.c --- */

/* Computes an expression, unless it is known, in lines before the one that uses it. */
void csource_compute(struct csource_writer *, ilir_expr);
/* What stands for a computed scalar, or for lane `l` of a vector, in an expression of C; in the arena. */
const char *csource_value(struct csource_writer *, ilir_expr);
/* The element that a store writes, of a vector that of lane `l`; computes its indices. */
const char *csource_element(struct csource_writer *, const struct ilir_stmt *store);
/* The same of a load of words from rows of no table. */
const char *csource_word(struct csource_writer *, ilir_expr load);
/* Forgets what was computed since `mark` expressions were known. */
void csource_forget(struct csource_writer *, size_t mark);

/* --- print_kernels.c --- */

void csource_print_kernel(struct csource_writer *, int kernel);

/* --- print_memory.c --- */

/* How a buffer has memory. */
enum csource_memory {
	CSOURCE_NONE,	   /* no run needs it */
	CSOURCE_WEIGHTS,   /* an array of the file of weights */
	CSOURCE_CALLER,	   /* the array that the caller gives, or gets its result in */
	CSOURCE_OWN,	   /* memory of its own */
	CSOURCE_SHARED,	   /* memory that intermediates share */
	CSOURCE_STEP	   /* the step of a scan */
};
enum csource_memory csource_memory_of(const struct csource_program *, int buffer);
/* The number of the buffer that is the slot's of the image. */
ilir_buffer csource_buffer_at(const struct ilir_module *, int slot);
/* Whether an array describes nodes that have children, or are sorted. */
bool csource_is_of_recursion(enum image_buffer_kind);
/* Declares the struct of all arrays. */
void csource_print_arrays(struct csource_writer *);
/* Takes memory, and sets the arrays. */
void csource_print_places(struct csource_writer *);
/* Copies rows between the caller's arrays and those of the program. */
void csource_print_inputs(struct csource_writer *);
void csource_print_outputs(struct csource_writer *);
/* The name of an argument: of an input, or of an output behind them. */
const char *csource_input_name(struct csource_writer *, int input);
const char *csource_output_name(struct csource_writer *, int output);

/* --- print_calls.c --- */

/* Bytes of memory that calls of the accelerator share, and that it takes to align it; 0 = there are no calls. */
int64_t csource_device_bytes(const struct image *);
/* Declares the function of the device, and what is given to it. */
void csource_declare_device(struct csource_writer *);
void csource_print_streams(struct csource_writer *);
/* Writes the driver of a call. */
void csource_print_call(struct csource_writer *, int call);

/* --- print_executor.c --- */

/* Writes the function of the device as one in C. */
void csource_print_executor(struct csource_writer *);

/* --- print_run.c --- */

/* Writes the parameters of the function that runs the program, in parentheses. */
void csource_print_parameters(struct csource_writer *);
void csource_print_header(struct csource_writer *);
void csource_print_run(struct csource_writer *);

/* --- print_weights.c --- */

void csource_declare_weights(struct csource_writer *);
void csource_print_weights(struct csource_writer *);

#endif
