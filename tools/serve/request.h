/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What the files behind infer.h share. */
#ifndef ESPALIER_TOOLS_SERVE_REQUEST_H
#define ESPALIER_TOOLS_SERVE_REQUEST_H

#include "body.h"
#include "infer.h"
#include "base/json_scan.h"

enum { BAD_REQUEST = 400, TOO_LARGE = 413, BAD_TYPE = 415, NO_MEMORY = 503 }; /* of HTTP */

/* --- requests --- */

/* A number of an output of the program, or this one: the first node of each structure. */
enum { OUTPUT_BEGINS = -1 };

/* An output that is asked for. */
struct asked {
	int number;
	char *name; /* unescaped, where the request has another one than the program; NULL = the program's */
};

struct infer_request {
	esp_program *program; /* kept by the forest */
	esp_forest *forest;
	esp_submit_options options;
	size_t structures, nodes;
	bool lines; /* the response is a line for each structure */
	char *id;   /* of the protocol, unescaped; NULL = none */
	size_t id_length;
	struct asked *output; /* in the order of the request */
	size_t outputs;
	bool single; /* one row of a model without a structure, whose tensors have no axis of rows */
	char **sentence; /* of each structure, where `lines`; NULL = none */
};

/* An empty request whose forest is one of the program; NULL after a failure. */
struct infer_request *request_new(const struct infer_model *, struct infer_failure *);
/* Makes room for all outputs of the program, none of which is asked for yet. */
bool request_make_outputs(struct infer_request *, struct infer_failure *);
/* Asks for all outputs of the program. */
bool request_all_outputs(struct infer_request *, struct infer_failure *);
/* Limits with their defaults; `given` may be NULL. */
struct infer_limits limits_of(const struct infer_limits *given);
bool check_bytes(const struct infer_limits *, size_t bytes, struct infer_failure *);
/* Whether a Content-Type, whose parameters (charset) do not matter, is the type wanted, or below one that ends
 * with a slash; one that is empty is any. */
bool is_type(const char *found, const char *wanted);

/* --- failures --- */

/* Sets the failure; always false. */
__attribute__((format(printf, 3, 4))) bool refuse(struct infer_failure *, int status, const char *format,
						  ...);
bool refuse_memory(struct infer_failure *);
/* Sets the failure to an error of the library, which is freed, after what says where; always false. */
bool refuse_error(struct infer_failure *, const char *where, esp_status, esp_error *);
/* Shows compilers and analysers that see one file alone that these are always false. */
static inline bool refused(bool said)
{
	(void)said;
	return false;
}
#define refuse(...) refused(refuse(__VA_ARGS__))
#define refuse_memory(...) refused(refuse_memory(__VA_ARGS__))
#define refuse_error(...) refused(refuse_error(__VA_ARGS__))

/* --- names --- */

/* The protocol's name of a type: FP32. */
const char *datatype_name(esp_dtype);

/* Tensors that say which structures there are.  An input of the model cannot have their names. */
enum structure_tensor {
	TENSOR_CHILD_BEGIN,
	TENSOR_CHILDREN,
	TENSOR_STRUCTURE_BEGIN,
	TENSOR_ROOT,
	TENSOR_STRUCTURE
};
enum { STRUCTURE_TENSORS = 5 };
extern const char *const structure_tensor[STRUCTURE_TENSORS];

/* --- structures as texts: read_texts.c --- */

struct texts {
	const struct infer_model *model;
	const struct infer_limits *limits;
	struct infer_request *request;
	struct infer_failure *failure;
};
/* Adds the structures of a text to the forest, exactly one where `one` says so.  `format`: ESP_FORMAT_..., 0
 * = as the model is read otherwise.  `where` is what the text is called in failures. */
bool texts_add(struct texts *, const char *where, int format, const char *text, size_t n, bool one);

#endif
