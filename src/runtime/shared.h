/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of runtime/ share. */
#ifndef ESPALIER_RUNTIME_SHARED_H
#define ESPALIER_RUNTIME_SHARED_H

#include "runtime/runtime.h"

/* The bytes that rt_allocate takes for so many: a huge page of which half is used is touched sooner than the small ones in
 * its place, so it is taken as a whole. */
size_t rt_whole_pages(size_t bytes);
/* rt_allocate, without huge pages: for memory of which little is touched. */
void *rt_allocate_sparse(const struct allocator *, size_t bytes);

/* The time of CLOCK_MONOTONIC, in seconds. */
double rt_seconds(void);

/* Always false. */
bool rt_out_of_memory(struct diags *, const char *what);
#define rt_out_of_memory(...) diag_false(rt_out_of_memory(__VA_ARGS__))

/* Rows of a parameter in memory: row-major, without padding, or, when a step at binding computed them, packed
 * by a recipe. */
struct rt_param_rows {
	int param; /* as image_param counts */
	int64_t first, rows;
	const void *from;
	const struct image_recipe *packed_by; /* NULL = row-major */
	int held; /* the recipe in whose packed buffer the rows are already, -1 = none */
};

/* Copies the rows into the packed buffers of all recipes that use the parameter, but of `packed_by` and
 * `held`. */
void rt_pack_rows(const struct image *, void *const *packed, const struct rt_param_rows *);
/* A recipe whose packed buffer is the parameter itself, row-major; -1 = there is none. */
int rt_find_plain_recipe(const struct image *, int param);
bool rt_recipe_uses(const struct image_recipe *, int param);
/* Blocks of a packed buffer: one for each index of the outermost dimension. */
int64_t rt_blocks(const struct image_recipe *);
/* Zeroes what a recipe fills with no element in so many blocks from `first` on, which lie at `to`.  May zero elements that
 * are filled afterwards, too. */
void rt_clear_padding(const struct image *, const struct image_recipe *, void *to, int64_t first, int64_t blocks);

/* A plane of elements that is copied: where neighbours of a row, and of a column, are on either side, in elements. */
struct rt_plane {
	int bytes; /* of an element: 1, 2, 4 or 8 */
	int64_t rows, columns;
	char *to;
	int64_t to_down, to_step;
	const char *from;
	int64_t from_down, from_step;
};
void rt_copy_plane(const struct rt_plane *);

/* Elements of a row of a buffer, without padding. */
int64_t rt_row_elements(const struct image_buffer *);
/* Whether the caller's rows of a result, each of which may be several of a buffer, do not lie there without gaps. */
bool rt_copies_results(const struct image *, const struct image_buffer *);

/* The minibatch whose rows are those that each of the caller's is (image_stack); the same where each is one.  Its arrays are the
 * stack's, of which `capacity` bytes are in use.  False when memory runs out. */
bool rt_unstack_rows(struct rt_unstacked *, const struct allocator *, const struct image *, const struct rt_minibatch *given,
		     struct rt_minibatch *rows, struct diags *);

/* Finds the tables of a binding whose rows are read when runs select them.  False when there is no memory. */
bool rt_find_tables(struct rt_binding *, const struct rt_source *);
/* Whether a parameter is such a table, or a recipe holds one. */
bool rt_is_lazy_param(const struct rt_binding *, int param);
bool rt_is_lazy(const struct rt_binding *, int recipe);
void rt_free_tables(struct rt_binding *);

/* Has the code made that the walk over a linearized minibatch calls, if it is not there; `seconds` then grows by what that
 * takes.  `rows` is room for a number for each kernel.  False after diagnostics. */
bool rt_need_code(const struct image *, const int64_t *sizes, const struct lin_order *, int64_t *rows, double *seconds,
		  struct diags *);
/* The same for all steps at binding. */
bool rt_need_folds(const struct image *, int64_t *rows, struct diags *);
/* Runs the step at binding that computes a folded parameter, over all its rows. */
bool rt_run_fold(const struct image *, int fold, void *const *buffers, struct rt_team *, int threads,
		 struct diags *);
/* The operations of all such steps that workers may do. */
double rt_fold_operations(const struct image *);
/* Whether every node of the caller's minibatch, or every edge, carries a value of input `which` where it is read, a token within
 * its limit, elements within their bound.  The order may have several numbers for each node (image_stack). */
bool rt_check_data(const struct image *, const struct lin_order *, const struct rt_minibatch *, int which,
		   struct diags *);
/* The first element, of rows of an input of floats, that is not a number or beyond the declared bound; -1 = there is none. */
int64_t rt_find_beyond(const struct image_input *, const void *data, int64_t rows);
float rt_read_element(const struct image_input *, const void *data, int64_t element);
/* Whether the minibatch has data of input `which`, if it has nodes. */
bool rt_check_present(const struct image *, const struct rt_minibatch *, int which, struct diags *);
/* Copies checked data into a buffer of its kind, in the order's numbering.  Unread tokens become 0. */
void rt_permute_data(const struct image *, const struct lin_order *, const struct rt_minibatch *,
		     const struct image_buffer *, void *to);
/* Fills a buffer of IMAGE_READ_ROW from the tokens of nodes. */
void rt_fill_read_rows(const struct lin_order *, const int32_t *token, int32_t *row);

/* Sorts the rows of a minibatch whose data were checked, as the image's sorts say.  False when there is no memory. */
bool rt_sort_rows(struct rt_session *, const struct rt_minibatch *, struct diags *);
/* Enlarges memory to so many bytes, negative = they cannot be counted; its content is lost.  False after a
 * diagnostic that names what it is for. */
bool rt_reserve_memory(const struct allocator *, void **at, size_t *has, int64_t bytes,
		       void *(*allocate)(const struct allocator *, size_t), const char *name, struct diags *);

/* Whether a row of the buffer is row-major without gaps. */
bool rt_is_dense(const struct image_buffer *);

#endif
