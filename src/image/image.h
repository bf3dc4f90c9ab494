/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The program image: all that the run leg needs of a compiled program, as data.
 *
 *   steps      what to run, in order, and over which rows
 *   buffers    what the kernels read and write, at fixed places of one pointer table
 *   recipes    how weights are laid into packed buffers
 *   folds      parameters that steps compute when weights are bound
 *   blob       the kernels as bytes that run wherever they are put
 *   calls      functions of the accelerator, as streams of its instructions
 *   packed     weights as recipes lay them out, where a program was saved with them
 *   code       the kernels as functions of this process
 *
 * The compile leg produces an image, the run leg consumes it, neither knows the other.  All but `code` can be
 * written to a file and read again (image_file.h). */
#ifndef ESPALIER_IMAGE_IMAGE_H
#define ESPALIER_IMAGE_IMAGE_H

#include "base/diag.h"
#include "base/tensor.h"
#include "vta/vta.h"
#include "vta/vta_pack.h"

/* Sizes of a linearized minibatch, known only at run time. */
enum image_size {
	IMAGE_ONE,     /* 1: a buffer without rows */
	IMAGE_NODES,   /* nodes of the forest */
	IMAGE_LEAVES,  /* nodes without children: numbers 0 .. leaves-1 */
	IMAGE_INPUTS,  /* inputs (trees, sequences) of the minibatch */
	IMAGE_EDGES,   /* child edges of the forest */
	IMAGE_BATCHES, /* batches; batch 0 holds the leaves */
	IMAGE_WIDEST,  /* nodes of the batch that has the most, or of the span where levels are unrolled */
	IMAGE_WIDEST_INNER, /* nodes of the batch that has the most, but the leaves */
	IMAGE_WIDEST_EDGES, /* child edges of the batch that has the most */
	IMAGE_PAIRS, /* pairs of a node and a node of its input: the sum of the squares of the inputs' nodes */
	IMAGE_SIZES
};

/* The kinds of buffers, as buffer_kinds.def describes them. */
enum image_buffer_kind {
#define BUFFER(name, spelling, holds, memory, type, rows, more, which, meaning) IMAGE_##name,
#include "image/buffer_kinds.def"
	IMAGE_BUFFER_KINDS
};

enum image_content {
	IMAGE_HOLDS_WEIGHTS,   /* laid out when they are bound, or computed then */
	IMAGE_HOLDS_RESULTS,   /* kernels write them */
	IMAGE_HOLDS_DATA,      /* the caller's inputs, or what follows from them */
	IMAGE_HOLDS_STRUCTURE, /* the minibatch as numbers of nodes and edges */
	IMAGE_HOLDS_SORTS      /* an order of rows by the token that they carry */
};

enum image_memory {
	IMAGE_IN_BINDING,
	IMAGE_IN_SESSION, /* for this buffer alone */
	IMAGE_IN_SHARED,  /* the session's, where intermediates share places; of steps at binding the binding's */
	IMAGE_IN_THREAD,  /* every thread has its own */
	IMAGE_IN_ORDER,	  /* that of the linearized minibatch, or of its sorts */
	IMAGE_IN_CALLER   /* nothing is copied */
};

/* What the member `which` of a buffer counts. */
enum image_counted {
	IMAGE_COUNTS_NOTHING, /* it is 0 */
	IMAGE_COUNTS_RECIPES,
	IMAGE_COUNTS_STATES,
	IMAGE_COUNTS_OUTPUTS,
	IMAGE_COUNTS_INPUTS,
	IMAGE_COUNTS_SLOTS, /* of children */
	IMAGE_COUNTS_SORTS,
	IMAGE_COUNTS_CASES, /* it is 0, and nodes have cases */
	IMAGE_COUNTS_TREES  /* it is 0, and no node has two parents */
};

enum { IMAGE_ANY = -1 };

/* The row of a kind in buffer_kinds.def. */
struct image_buffer_traits {
	const char *spelling, *meaning;
	enum image_content content;
	enum image_memory memory;
	int dtype; /* an enum dtype, or IMAGE_ANY */
	int rows;  /* an enum image_size, or IMAGE_ANY */
	int more;  /* rows besides these */
	enum image_counted which;
};

/* Of a kind of images. */
const struct image_buffer_traits *image_traits_of(enum image_buffer_kind);

/* Rows of `row_elements` elements each (padding included), 64-byte aligned at the first. */
struct image_buffer {
	const char *name;
	enum image_buffer_kind kind;
	enum dtype dtype;
	enum image_size rows;
	int which;
	int64_t row_elements;
	int rank; /* of one row, without padding */
	int64_t shape[TENSOR_MAX_RANK];
	int64_t stride[TENSOR_MAX_RANK]; /* elements from one index of a dimension to the next */
	bool at_binding; /* a weight or an intermediate without rows that only steps at binding use, and no
			    run */
	/* Of an intermediate of runs: the buffer whose place it shares, or itself; and the first and the last
	 * step that need any buffer of this place.  Places that are never needed at the same time may
	 * overlap. */
	int home, first, last;
	int first_access, last_access; /* the first and the last step whose kernel accesses it; both 0 if none does */
	/* Of a state: numbers + 1 of the weight that has the rows of leaves, and of the array of IMAGE_READ_ROW; 0 = it has them
	 * itself. */
	int table, read_row;
};

/* --- packing --- */

/* A dimension for each axis, those that packing splits one into (block, gate, column), and the slot of a
 * stack. */
enum { IMAGE_PACK_DIMS = TENSOR_MAX_RANK + 4, IMAGE_PACK_SOURCE = -1 };

/* One dimension of a packed buffer: as its index goes 0 .. extent-1 the source's index on `axis` advances by
 * `stride` (or the source itself changes: axis IMAGE_PACK_SOURCE). */
struct image_pack_dim {
	int axis;
	int64_t extent, stride;
};

/* A weight and the region of it that is packed. */
struct image_pack_source {
	int param; /* see image_param */
	int64_t begin[TENSOR_MAX_RANK];
	int64_t end[TENSOR_MAX_RANK]; /* elements at or past the end are padding: zero */
};

/* dst[i0][i1]..., row-major over dims, dims[0] outermost. */
struct image_recipe {
	int dims, sources;
	struct image_pack_dim dim[IMAGE_PACK_DIMS];
	const struct image_pack_source *source;
	enum dtype dtype; /* of its elements, and of those of its parameters */
	unsigned selected_by; /* a mask of the inputs by whose tokens alone kernels of runs select rows of its parameter;
				 0 = they may read any */
};

enum { IMAGE_SELECTING_INPUTS = 31 }; /* inputs from this number on are in no mask */

/* Bytes of the packed buffer; -1 when it is empty, or the number overflows. */
static inline int64_t image_recipe_bytes(const struct image_recipe *r)
{
	int64_t bytes = dtype_traits_of(r->dtype)->bytes;
	for (int d = 0; d < r->dims; d++)
		if (r->dim[d].extent < 1 || __builtin_mul_overflow(bytes, r->dim[d].extent, &bytes))
			return -1;
	return bytes;
}

/* Its elements; -1 likewise. */
static inline int64_t image_recipe_elements(const struct image_recipe *r)
{
	int64_t bytes = image_recipe_bytes(r);
	return bytes < 0 ? -1 : bytes / dtype_traits_of(r->dtype)->bytes;
}

/* Indices that a recipe computes on an axis are below this. */
#define IMAGE_WALK_LIMIT ((int64_t)1 << 40)

/* Whether the dimensions along an axis, or along IMAGE_PACK_SOURCE, only lead to indices from 0 to limit - 1.
 * Extents are not negative. */
bool image_walks_within(const struct image_recipe *, int axis, int64_t limit);

/* A parameter that is computed when weights are bound.  Its step writes it to the buffer of `recipe`,
 * row-major with padding behind some dimensions; the other recipes that read it pack it from there. */
struct image_fold {
	struct tensor_info tensor;
	int recipe;
};

/* --- cases --- */

enum { IMAGE_MAX_CASES = 31 }; /* a mask has a bit for each */

enum image_answer { IMAGE_EITHER, IMAGE_NO, IMAGE_YES };

/* A token that a node carries: the value of input `input`. */
struct image_match {
	int input;
	int value;
};

/* A condition on a node that depends on the structure alone.  A node is of the first case of the table whose
 * conditions all hold; in a batch nodes of one case lie together, in the order of the table. */
struct image_case {
	const char *name;
	bool inner;		  /* it has children */
	int children;		  /* so many, -1 = any number */
	enum image_answer parent; /* whether it has one */
	int matches;
	const struct image_match *match;
};

/* --- sorts --- */

/* Rows in the order of a token that they carry, so that those that one weight multiplies stand together: nodes, or
 * edges to children, of the range of a step.  Positions are numbered as rows are; those of a batch, and of each case
 * in it, hold its rows, by rising token and, for one token, by rising row.  A *segment* is a longest run of positions
 * with one token in one batch and case. */
struct image_sort {
	int input; /* whose tokens they are */
	int slot;  /* of nodes by the token of their edges: that to the child in this slot; else -1 */
	bool edges; /* the rows are edges */
};

/* --- steps --- */

/* Over which rows a step's kernel is called; a call has a row range begin..end. */
enum image_domain {
	IMAGE_DOMAIN_ONCE,   /* 0 .. nodes, the kernel finds its own rows */
	IMAGE_DOMAIN_LEAVES, /* 0 .. leaves */
	IMAGE_DOMAIN_INNER,  /* leaves .. nodes, batch by batch: a call each; consecutive steps of this domain
				all run over one batch before the next */
	IMAGE_DOMAIN_INNER_NODE,  /* the same, node by node */
	IMAGE_DOMAIN_BATCH,	  /* 0 .. nodes, batch by batch */
	IMAGE_DOMAIN_NODE,	  /* 0 .. nodes, node by node */
	IMAGE_DOMAIN_NODES,	  /* 0 .. nodes */
	IMAGE_DOMAIN_PAST_LEAVES, /* leaves .. nodes, in one range */
	IMAGE_DOMAIN_INPUTS,	  /* 0 .. inputs */
	IMAGE_DOMAIN_BATCH_DOWN,  /* 0 .. nodes, batch by batch, the last one first */
	IMAGE_DOMAIN_NODE_DOWN,	  /* 0 .. nodes, node by node, the last one first */
	IMAGE_DOMAIN_SCAN,   /* 0 .. nodes, a call for each step of a scan; consecutive steps of the same scan
			      * all run   over one of its steps before the next */
	IMAGE_DOMAIN_BINDING /* when weights are bound: the rows of one folded parameter */
};

/* How a range is divided among threads. */
enum image_strategy {
	IMAGE_CHEAPEST, /* what is expected to take the shortest */
	IMAGE_ALONE,
	IMAGE_ROWS,
	IMAGE_COLUMNS,
	IMAGE_SUBTREES /* of the levels of a span; elsewhere rows */
};

/* Who runs a step, as step_targets.def describes them. */
enum image_target {
#define STEP_TARGET(name, spelling, meaning) IMAGE_TARGET_##name,
#include "image/step_targets.def"
	IMAGE_TARGETS
};

/* How a target is spelled. */
const char *image_target_name(enum image_target);
/* The target of a name; false = there is none. */
bool image_find_target(const char *name, enum image_target *);

struct image_step {
	enum image_target target;
	int call;   /* of a step of the accelerator: what it runs for each of its rows; else 0 */
	int kernel; /* of a step of the host; else 0, and nothing reads it */
	enum image_domain domain;
	int first, last; /* SCAN: of the steps first .. last - 1 of the scan */
	int rows;	/* of the kernel's greatest tile: ranges are best cut at multiples of it */
	int tiles;	/* a mask: bit r - 1 = it has tiles of r rows; 0 = they are not known */
	int operations; /* of one row, estimated; 0 = unknown or no rows, and no range of the step is split */
	int head;	/* of these operations, those that each call does before its blocks */
	int blocks;	/* of columns, or of rows of a node, at least 1: they are computed independently of each other */
	int columns; /* of a block; 0 = the columns are not cut, or rows of a node are as well */
	int after; /* the number + 1 of a step behind which no thread waits for others before it runs the same
		      columns of this one; 0 = none */
	int64_t block_bytes;  /* weights that one block reads */
	int64_t weight_bytes; /* weights that all blocks read, those that blocks share counted once */
	int64_t edge_bytes;   /* weights that an edge selects by its token, such as its label's matrix */
	int edge_input;	      /* the input of these tokens */
	int64_t state_bytes; /* of states of other nodes that a row reads, estimated: their rows, of two children */
	int64_t read_bytes;  /* these, and intermediates that other steps have stored */
	int64_t moved_bytes; /* all that a row reads and writes: before the blocks of a kernel with a head, and of
				one without weights; 0 of other kernels, which compute longer */
	unsigned cases;	     /* a mask: of the domain's rows only those of nodes of these cases; 0 = all.  Of
				domains      that are cut at batches or nodes, and of leaves */
	int sort; /* the number + 1 of the sort whose positions the kernel is called for, in place of nodes: of a range of
		     nodes those of its edges, if the sort is of edges; 0 = none */
	bool apart; /* it, or a step behind it, reads what the steps before it store of all nodes of an input: these have run
		       over all their rows, also where they are of its domain */
	enum image_strategy strategy;
};

/* --- functions of the accelerator --- */

enum image_role { IMAGE_OPERAND_INPUT, IMAGE_OPERAND_OUTPUT, IMAGE_OPERAND_CONSTANT };

/* What a segment of a stream's memory holds. */
struct image_operand {
	const char *segment; /* its name in the stream */
	int buffer;	     /* of the image; of a constant a weight, of which the segment has the first bytes */
	enum image_role role;
	/* Of inputs and outputs: the activations of one row of the buffer, packed in the segment, and how they lie in
	 * the row [elements].  There is one image, unless a row is several. */
	struct vta_activations extent;
	struct vta_strides stride;
	int zero;   /* the zero point: is subtracted from elements of an input, and added to those of an output */
	int planes; /* of an output: 1 = the segment has int8; 4 = the bytes of int32, first the plane of the lowest
		       ones.  Else 1 */
};

/* A function of the accelerator, which computes one row.  The driver fills the segments of inputs and constants,
 * runs the stream, and takes the outputs (runtime/drive_calls.c). */
struct image_call {
	const char *name;
	const void *stream; /* in the binary form (vta_read) */
	int64_t bytes;
	int operands;
	const struct image_operand *operand;
	/* of this process, as image_open_calls reads them: not in files */
	const struct vta_stream *opened;
	struct vta_cost cost;
};

/* --- code --- */

/* From this place on, up to the next, code is of this line of the image's listing; 0 = of none. */
struct image_line {
	int64_t place, line;
};

/* A function of the code: a kernel, or what kernels call. */
struct image_symbol {
	const char *name;
	int64_t place, bytes;
};

/* Machine code as data: it imports nothing, refers to itself relative to its own place only, and is never
 * written.  `bytes` NULL = none (interpreted). */
struct image_blob {
	const unsigned char *bytes;
	int64_t size;
	int64_t alignment; /* of the place it is put to, a power of two, at most IMAGE_BLOB_ALIGNMENT */
	int machine;	   /* e_machine of <elf.h> */
	int kernels;
	const int64_t *kernel; /* where each kernel begins */
	int64_t frames, frame_bytes; /* where call frame information lies in it (image/frames.h); 0 bytes =
					there is none */
	int functions;
	const struct image_symbol *function; /* 0 = only kernels are known */
	int lines;
	const struct image_line *line; /* by place, ascending; 0 = they are not known */
};

/* Steps of an image at most, so that multiplying their number does not overflow. */
enum { IMAGE_MAX_STEPS = 1 << 20 };

enum { IMAGE_BLOB_ALIGNMENT = 4096, IMAGE_BLOB_LIMIT = 1 << 28 };

/* The context of a kernel call: the pointer table and the sizes of this minibatch. */
struct image_frame {
	void *const *buffers;
	const int64_t *sizes; /* IMAGE_SIZES of them */
};

/* The range of a kernel call: of rows begin..end, `blocks` blocks of columns, one after the other from
 * `first` on, upwards (direction 1) or downwards (-1).  A kernel whose columns are not cut has one block, 0.
 */
struct image_range {
	int64_t begin, end;
	int64_t first, blocks, direction;
};

/* A compiled kernel: the members of an image_range, so that they travel in registers.  Code outlives the
 * library that made it: a change of the arguments or of what they point to must increment the convention. */
enum { IMAGE_CONVENTION = 1 };
typedef void image_kernel(void *const *buffers, int64_t begin, int64_t end, int64_t first, int64_t blocks,
			  int64_t direction);

/* Code that can be called by any number of threads at once, whatever made it.  `call` is used when `kernels`
 * is NULL (the interpreter), or has no function of the kernel yet; it is false after a diagnostic. */
struct image_code {
	image_kernel *const *kernels; /* entries are read by image_kernel_of, as they may be set meanwhile */
	bool (*call)(void *self, int kernel, const struct image_frame *, const struct image_range *,
		     struct diags *);
	/* Makes what calls need, before the first of them: `rows` has, by kernel, how many rows their ranges have at
	 * most, 0 = there is no call.  `seconds` grows by what that took, unless everything was there.  False after
	 * diagnostics.  NULL = everything is there. */
	bool (*need)(void *maker, const int64_t *rows, double *seconds, struct diags *);
	void *maker;
	void (*release)(struct image_code *);
	void *self;
	size_t bytes; /* of machine code, 0 = none or not known yet; read and set atomically */
};

/* The function of a kernel of compiled code; NULL = code->call runs it. */
static inline image_kernel *image_kernel_of(const struct image_code *code, int kernel)
{
	return code->kernels ? __atomic_load_n(&code->kernels[kernel], __ATOMIC_ACQUIRE) : NULL;
}

/* --- the image --- */

enum { IMAGE_MAX_RANK = TENSOR_MAX_RANK }; /* of inputs and results */

/* Shapes are those of one row; `elements` is their product. */
struct image_output {
	const char *name;
	int buffer;   /* -1 before there are buffers */
	bool at_root; /* a row per input, not per node */
	int labels;   /* 0 = none, else one per element */
	const char *const *label;
	enum dtype dtype;
	int rank;
	int64_t shape[IMAGE_MAX_RANK];
	int64_t elements;
};

/* The order of the rows of a state. */
enum image_layout {
	IMAGE_BY_NODE,	/* a node's row is its number */
	IMAGE_BY_PARENT /* as the parents read: first the child of edge 0, 1, ..., then the nodes without a
			   parent; no node has two */
};

/* A row per node. */
struct image_state {
	const char *name;
	enum image_layout layout;
	int buffer; /* -1 before there are buffers */
	enum dtype dtype;
	int rank;
	int64_t shape[IMAGE_MAX_RANK];
	int64_t elements;
};

/* A dimension of the model and the size that it was compiled for. */
struct image_dimension {
	const char *name;
	int64_t size;
};

/* A file that the code was compiled with; when it changes, the code is out of date. */
struct image_tool {
	const char *path;
	int64_t size, modified; /* bytes; nanoseconds of the epoch */
};

/* The packed weights of one recipe, as a binding holds them. */
struct image_packed {
	const void *at; /* 64-byte aligned, outside of the tables; NULL = no run needs it */
	int64_t bytes;
	int64_t sum[2]; /* the checksum of these bytes */
};

struct image {
	const char *name; /* the model's */
	const char *key;  /* everything that it depends on, as text; NULL = not computed */
	/* The machine that the code runs on: a target of base/target.h that has these extensions besides
	 * (base/cpu.h). */
	const char *target, *extensions;
	/* what structures it accepts */
	int children; /* every inner node has so many; -1 = any number of at least one */
	bool shared_children;
	int unroll; /* levels of a span: a thread may run subtrees of so many levels without a barrier, and in
		       runs with spans a buffer of one batch has the rows of a span; below 2, or when children
		       are shared: none */
	int64_t stacked; /* without a structure: rows that one of the caller's rows is, one after the other in inputs and outputs,
			    whose first dimension they are; below 2: it is one */
	/* inputs carried by nodes, or by edges: which cases read them */
	int inputs;
	const struct image_input {
		const char *name;
		bool token; /* an index, else a value of so many elements */
		enum dtype dtype;
		int64_t elements;
		int64_t limit; /* a token must lie in 0 .. limit-1 where it is read; 0 = nothing is looked up with it */
		bool at_leaf, at_inner;
		bool on_edge; /* a row per child edge, in the order of children */
		float within; /* where a value is read its elements, floats, have at most this magnitude; 0 = they may
				 be anything */
		unsigned cases; /* where there are cases: a mask of those that read it; others may carry it */
		int rank; /* of a node's value */
		int64_t shape[IMAGE_MAX_RANK];
	} * input;

	int cases; /* those of leaves come first; every node fits one.  0 = only leaves and inner nodes are
		      distinguished */
	const struct image_case *case_at;
	int sorts;
	const struct image_sort *sort;
	int params;
	const struct tensor_info
	    *param; /* the tensors that a binding needs; a narrower type of the same kind is accepted */
	int folds;  /* in the order of the steps at binding, which come first: one each */
	const struct image_fold *fold;
	int buffers;
	const struct image_buffer *buffer;
	int recipes;
	const struct image_recipe *recipe;
	int steps;
	const struct image_step *step;
	bool migrating; /* blocks of columns migrate from thread to thread, and are always swept upwards */
	bool flush; /* denormals count as zeros while its steps run */
	bool step_barriers; /* threads wait for each other after each step of a range */
	int kernels;
	const char *const *kernel_name;
	int calls;
	struct image_call *call;
	int outputs;
	const struct image_output *output;
	int states;
	const struct image_state *state;
	int dimensions;
	const struct image_dimension *dimension;
	int tools;
	const struct image_tool *tool;
	const char *listing; /* the loops that lines of the blob refer to, as text; "" = none */
	struct image_blob blob;
	int packs; /* as many as recipes; 0 = weights come from elsewhere */
	const struct image_packed *packed;
	struct image_code code; /* of this process: not in files */
};

/* What a step is called in profiles and reports. */
static inline const char *image_step_name(const struct image *i, int step)
{
	const struct image_step *s = &i->step[step];
	if (s->target == IMAGE_TARGET_VTA)
		return i->call[s->call].name;
	return i->kernel_name ? i->kernel_name[s->kernel] : "";
}

/* Rows that one of the caller's rows is. */
static inline int64_t image_stack(const struct image *i)
{
	return i->stacked > 1 ? i->stacked : 1;
}

/* Elements of a row of an input, and of an output. */
static inline int64_t image_input_elements(const struct image *i, int input)
{
	return i->input[input].elements / image_stack(i);
}

static inline int64_t image_output_elements(const struct image *i, int output)
{
	return i->output[output].elements / image_stack(i);
}

/* Parameters are counted through: those that a binding must supply, then those that are folded. */
static inline int image_params(const struct image *i)
{
	return i->params + i->folds;
}

static inline const struct tensor_info *image_param(const struct image *i, int param)
{
	return param < i->params ? &i->param[param] : &i->fold[param - i->params].tensor;
}

/* The rows of a folded parameter: the range of its step. */
static inline int64_t image_fold_rows(const struct image_fold *f)
{
	return f->tensor.rank ? f->tensor.shape[0] : 1;
}

#endif
