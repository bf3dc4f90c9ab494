/* Loads and stores: buffers in memory by address, registers by stack slots that the optimiser removes. */
#include "jit/llvm/emit.h"

/* LLVM would need longer than anybody waits for more than that, and no machine has the registers. */
enum { REGISTER_LIMIT = 1 << 14 };

/* Where an access begins: the last index of a vector access is ramp(lanes, first), or broadcast(lanes, only).
 */
struct place {
	ilir_expr last;
	enum ilir_op spread; /* RAMP, BROADCAST, or VAR for a scalar */
	int lanes;
};

static bool find_place(struct emitter *e, const ilir_expr *index, int n, struct place *p)
{
	*p = (struct place){.spread = ILIR_VAR, .lanes = 1};
	if (n == 0)
		return true;
	p->last = index[n - 1];
	p->lanes = ilir_type_of(e->m, p->last).lanes;
	if (p->lanes == 1)
		return true;
	p->spread = ilir_at(e->m, p->last)->op;
	if (p->spread != ILIR_RAMP && p->spread != ILIR_BROADCAST)
		return false;
	p->last = ilir_arg(e->m, p->last, 0);
	return true;
}

/* i32 in memory are indices in expressions. */
static LLVMValueRef widen(struct emitter *e, LLVMValueRef v, enum ilir_dtype stored, int lanes)
{
	struct ilir_type index = {ILIR_INDEX, lanes};
	return stored == ILIR_I32 ? LLVMBuildSExt(e->at, v, jit_type(e, index), "") : v;
}

static LLVMValueRef narrow(struct emitter *e, LLVMValueRef v, enum ilir_dtype value, enum ilir_dtype stored,
			   int lanes)
{
	struct ilir_type i32 = {ILIR_I32, lanes};
	return stored == ILIR_I32 && value == ILIR_INDEX ? LLVMBuildTrunc(e->at, v, jit_type(e, i32), "") : v;
}

/* --- promises --- */

/* Two facts that LLVM cannot see, as metadata of loads and stores: a buffer that is not written by the
 * kernels that read it always gives the same, and different buffers are different memory.  Weights are of the
 * first kind, though a kernel at binding computes some of them: stores there are promised nothing. */
struct jit_promises {
	unsigned invariant, alias_scope, noalias; /* kinds of metadata */
	LLVMValueRef nothing;
	LLVMValueRef *own, *others; /* by buffer: its scope, those of all others; NULL = never written */
};

static bool is_written(const struct ilir_buffer_decl *b)
{
	return b->kind == IMAGE_STATE || b->kind == IMAGE_SCRATCH || b->kind == IMAGE_OUTPUT;
}

/* A weight that lies as it is: a kernel at binding may fill it. */
static bool is_filled(const struct ilir_buffer_decl *b)
{
	return b->kind == IMAGE_WEIGHT && !b->recipe;
}

static unsigned metadata_kind(const struct emitter *e, const char *name)
{
	return LLVMGetMDKindIDInContext(e->context, name, strlen(name));
}

static LLVMMetadataRef tuple(const struct emitter *e, LLVMMetadataRef *part, size_t n)
{
	return LLVMMDNodeInContext2(e->context, part, n);
}

static LLVMMetadataRef text(const struct emitter *e, const char *s)
{
	return LLVMMDStringInContext2(e->context, s, strlen(s));
}

/* One scope per buffer that is written; its name, unique in the module, is its identity. */
static LLVMMetadataRef *make_scopes(struct emitter *e)
{
	LLVMMetadataRef *scope = ARENA_ARRAY(e->arena, LLVMMetadataRef, e->m->buffers.n),
			name = text(e, "buffers");
	LLVMMetadataRef domain = tuple(e, &name, 1);
	for (size_t i = 1; i < e->m->buffers.n; i++)
		if (is_written(&e->m->buffers.at[i]))
			scope[i] =
			    tuple(e, (LLVMMetadataRef[]){text(e, e->m->buffers.at[i].name), domain}, 2);
	return scope;
}

static LLVMValueRef all_but(const struct emitter *e, const LLVMMetadataRef *scope, size_t own,
			    LLVMMetadataRef *list)
{
	size_t n = 0;
	for (size_t i = 1; i < e->m->buffers.n; i++)
		if (scope[i] && i != own)
			list[n++] = scope[i];
	return LLVMMetadataAsValue(e->context, tuple(e, list, n));
}

void jit_make_promises(struct emitter *e)
{
	struct jit_promises *p = e->promises = ARENA_NEW(e->arena, struct jit_promises);
	size_t buffers = e->m->buffers.n;
	LLVMMetadataRef *scope = make_scopes(e), *list = ARENA_ARRAY(e->arena, LLVMMetadataRef, buffers);
	p->invariant = metadata_kind(e, "invariant.load");
	p->alias_scope = metadata_kind(e, "alias.scope");
	p->noalias = metadata_kind(e, "noalias");
	p->nothing = LLVMMetadataAsValue(e->context, tuple(e, NULL, 0));
	p->own = ARENA_ARRAY(e->arena, LLVMValueRef, buffers);
	p->others = ARENA_ARRAY(e->arena, LLVMValueRef, buffers);
	for (size_t i = 1; i < buffers; i++)
		if (scope[i]) {
			p->own[i] = LLVMMetadataAsValue(e->context, tuple(e, &scope[i], 1));
			p->others[i] = all_but(e, scope, i, list);
		}
}

static void promise(struct emitter *e, ilir_buffer b, LLVMValueRef access)
{
	const struct jit_promises *p = e->promises;
	if (p->own[b.i]) {
		LLVMSetMetadata(access, p->alias_scope, p->own[b.i]);
		LLVMSetMetadata(access, p->noalias, p->others[b.i]);
	} else if (!LLVMIsAStoreInst(access)) {
		LLVMSetMetadata(access, p->invariant, p->nothing);
	}
}

/* --- memory --- */

/* Taken from the pointer table once per call, in the entry block. */
static LLVMValueRef base_of(struct emitter *e, ilir_buffer b)
{
	if (!e->base[b.i]) {
		LLVMValueRef table = LLVMGetParam(e->function, 0);
		LLVMValueRef slot = LLVMConstInt(e->scalar[ILIR_INDEX], ilir_buffer_slot(e->m, b), false);
		LLVMValueRef place = LLVMBuildInBoundsGEP2(e->entry, e->pointer, table, &slot, 1, "");
		e->base[b.i] = LLVMBuildLoad2(e->entry, e->pointer, place, ilir_buffer_at(e->m, b)->name);
		LLVMSetMetadata(e->base[b.i], e->promises->invariant, e->promises->nothing);
	}
	return e->base[b.i];
}

/* Splits x + constant: the constant (times the stride) becomes part of the instruction, and what remains is
 * equal for all the accesses of an unrolled loop. */
static ilir_expr without_constant(const struct emitter *e, ilir_expr x, int64_t *constant)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	*constant = 0;
	if (n->op == ILIR_CONST_I) {
		*constant = n->i;
		return (ilir_expr){0};
	}
	if (n->op == ILIR_ADD && ilir_at(e->m, ilir_arg(e->m, x, 1))->op == ILIR_CONST_I) {
		*constant = ilir_at(e->m, ilir_arg(e->m, x, 1))->i;
		return ilir_arg(e->m, x, 0);
	}
	return x;
}

static LLVMValueRef add(struct emitter *e, LLVMValueRef sum, LLVMValueRef term)
{
	return sum ? LLVMBuildNSWAdd(e->at, sum, term, "") : term;
}

static LLVMValueRef scaled(struct emitter *e, ilir_expr x, uint64_t stride)
{
	LLVMValueRef by = LLVMConstInt(e->scalar[ILIR_INDEX], stride, false);
	return LLVMBuildNSWMul(e->at, jit_emit_expr(e, x), by, "");
}

static LLVMValueRef step_by(struct emitter *e, LLVMValueRef from, enum ilir_dtype element,
			    LLVMValueRef offset)
{
	return LLVMBuildGEP2(e->at, e->scalar[element], from, &offset, 1, "");
}

/* Row-major over padded extents; the first dimension may be rows, whose number does not matter.  What an
 * innermost loop counts is added last, to a pointer that stays while the loop runs.  The sum without its
 * constant may point outside the buffer, so no address is said to be inbounds. */
static LLVMValueRef address_of(struct emitter *e, ilir_buffer buffer, const ilir_expr *index, int n,
			       ilir_expr last)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	LLVMValueRef sum = NULL, counted = NULL, at = base_of(e, buffer);
	uint64_t stride[ILIR_MAX_RANK], displacement = 0;
	for (int d = n - 1; d >= 0; d--)
		stride[d] = d == n - 1 ? 1 : stride[d + 1] * (uint64_t)b->dim[d + 1].padded;
	for (int d = 0; d < n; d++) {
		int64_t constant;
		ilir_expr x = without_constant(e, d == n - 1 ? last : index[d], &constant);
		LLVMValueRef multiple = x.i ? jit_multiple(e, x, stride[d]) : NULL;
		displacement += (uint64_t)constant * stride[d];
		if (multiple)
			counted = add(e, counted, multiple);
		else if (x.i)
			sum = add(e, sum, scaled(e, x, stride[d]));
	}
	at = sum ? step_by(e, at, b->dtype, sum) : at;
	at = counted ? step_by(e, at, b->dtype, counted) : at;
	return displacement
		   ? step_by(e, at, b->dtype, LLVMConstInt(e->scalar[ILIR_INDEX], displacement, true))
		   : at;
}

static bool has_inner_rows(const struct ilir_buffer_decl *b)
{
	for (int d = 1; d < b->rank; d++)
		if (b->dim[d].rows != IMAGE_ONE)
			return true;
	return false;
}

static unsigned element_bytes(const struct ilir_buffer_decl *b)
{
	return b->dtype == ILIR_INDEX ? 8 : 4;
}

/* Vectors are aligned like their elements only: rows begin where they begin. */
static LLVMValueRef load_memory(struct emitter *e, ilir_expr x, const struct place *p)
{
	ilir_buffer buffer = ilir_at(e->m, x)->buffer;
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	int lanes = p->spread == ILIR_RAMP ? p->lanes : 1;
	const ilir_expr *index = e->m->args.at + ilir_at(e->m, x)->arg;
	LLVMValueRef at = address_of(e, buffer, index, ilir_at(e->m, x)->args, p->last);
	LLVMValueRef v = LLVMBuildLoad2(e->at, jit_type(e, (struct ilir_type){b->dtype, lanes}), at, "");
	LLVMSetAlignment(v, element_bytes(b));
	promise(e, buffer, v);
	v = widen(e, v, b->dtype, lanes);
	return lanes == p->lanes ? v : jit_splat(e, v, p->lanes);
}

static void store_memory(struct emitter *e, const struct ilir_stmt *s, const struct place *p)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, s->store.buffer);
	LLVMValueRef v = jit_emit_expr(e, s->store.value);
	LLVMValueRef at = address_of(e, s->store.buffer, s->store.index, s->store.indices, p->last);
	v = narrow(e, v, ilir_type_of(e->m, s->store.value).dtype, b->dtype, p->lanes);
	LLVMValueRef store = LLVMBuildStore(e->at, v, at);
	LLVMSetAlignment(store, element_bytes(b));
	promise(e, s->store.buffer, store);
}

/* --- registers --- */

static int64_t elements_of(const struct ilir_buffer_decl *b)
{
	int64_t n = 1;
	for (int d = 0; d < b->rank; d++)
		if (b->dim[d].padded < 1 || __builtin_mul_overflow(n, b->dim[d].padded, &n) ||
		    n > REGISTER_LIMIT)
			return 0;
	return n;
}

/* One slot per `lanes` elements, when that comes out even; else one per element. */
static struct jit_register *register_of(struct emitter *e, ilir_buffer buffer)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	struct jit_register *r = &e->reg[buffer.i];
	int64_t elements = elements_of(b);
	if (r->slot || !elements)
		return r;
	if (r->lanes == 0 || elements % r->lanes)
		r->lanes = 1;
	r->parked = b->parked;
	r->slots = elements / r->lanes;
	r->slot = ARENA_ARRAY(e->arena, LLVMValueRef, r->slots);
	for (int64_t i = 0; i < r->slots; i++)
		r->slot[i] =
		    LLVMBuildAlloca(e->entry, jit_type(e, (struct ilir_type){b->dtype, r->lanes}), b->name);
	return r;
}

/* The number of the first element that an access means, or -1. */
static int64_t element_of(struct emitter *e, ilir_buffer buffer, const ilir_expr *index, int n,
			  const struct place *p)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	int64_t element = 0;
	for (int d = 0; d < n; d++) {
		const struct ilir_node *i = ilir_at(e->m, d == n - 1 ? p->last : index[d]);
		int64_t width = d == n - 1 && p->spread == ILIR_RAMP ? p->lanes : 1;
		if (i->op != ILIR_CONST_I || i->i < 0 || i->i > b->dim[d].padded - width)
			return -1;
		element = element * b->dim[d].padded + i->i;
	}
	return element;
}

static LLVMValueRef lane(struct emitter *e, int64_t i)
{
	return LLVMConstInt(e->scalar[ILIR_I32], i, false);
}

static LLVMValueRef load_slot(struct emitter *e, const struct jit_register *r, int64_t slot)
{
	LLVMValueRef v = LLVMBuildLoad2(e->at, LLVMGetAllocatedType(r->slot[slot]), r->slot[slot], "");
	LLVMSetVolatile(v, r->parked);
	return v;
}

/* What is parked must really rest in memory: LLVM would keep it in registers, and spill the wrong ones in the
 * loops. */
static void store_slot(struct emitter *e, const struct jit_register *r, int64_t slot, LLVMValueRef v)
{
	LLVMSetVolatile(LLVMBuildStore(e->at, v, r->slot[slot]), r->parked);
}

static LLVMValueRef load_element(struct emitter *e, const struct jit_register *r, int64_t element)
{
	LLVMValueRef v = load_slot(e, r, element / r->lanes);
	return r->lanes == 1 ? v : LLVMBuildExtractElement(e->at, v, lane(e, element % r->lanes), "");
}

static void store_element(struct emitter *e, const struct jit_register *r, int64_t element, LLVMValueRef v)
{
	int64_t slot = element / r->lanes;
	if (r->lanes > 1)
		v = LLVMBuildInsertElement(e->at, load_slot(e, r, slot), v, lane(e, element % r->lanes), "");
	store_slot(e, r, slot, v);
}

static LLVMValueRef load_elements(struct emitter *e, const struct jit_register *r, int64_t element, int lanes)
{
	if (lanes == 1)
		return load_element(e, r, element);
	if (lanes == r->lanes && element % lanes == 0)
		return load_slot(e, r, element / lanes);
	LLVMValueRef first = load_element(e, r, element),
		     v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(first), lanes));
	for (int i = 0; i < lanes; i++)
		v = LLVMBuildInsertElement(e->at, v, i ? load_element(e, r, element + i) : first, lane(e, i),
					   "");
	return v;
}

static void store_elements(struct emitter *e, const struct jit_register *r, int64_t element, int lanes,
			   LLVMValueRef v)
{
	if (lanes == 1)
		store_element(e, r, element, v);
	else if (lanes == r->lanes && element % lanes == 0)
		store_slot(e, r, element / lanes, v);
	else
		for (int i = 0; i < lanes; i++)
			store_element(e, r, element + i, LLVMBuildExtractElement(e->at, v, lane(e, i), ""));
}

static const char index_problem[] = "a register is too large, or its index is not a constant inside it";

static LLVMValueRef load_register(struct emitter *e, ilir_expr x, const struct place *p)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	struct jit_register *r = register_of(e, n->buffer);
	int64_t element = element_of(e, n->buffer, e->m->args.at + n->arg, n->args, p);
	int lanes = p->spread == ILIR_RAMP ? p->lanes : 1;
	if (!r->slot || element < 0)
		return jit_refuse(e, n->type, index_problem);
	LLVMValueRef v = load_elements(e, r, element, lanes);
	v = widen(e, v, ilir_buffer_at(e->m, n->buffer)->dtype, lanes);
	return lanes == p->lanes ? v : jit_splat(e, v, p->lanes);
}

static void store_register(struct emitter *e, const struct ilir_stmt *s, const struct place *p)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, s->store.buffer);
	struct jit_register *r = register_of(e, s->store.buffer);
	int64_t element = element_of(e, s->store.buffer, s->store.index, s->store.indices, p);
	LLVMValueRef v = jit_emit_expr(e, s->store.value);
	struct ilir_type t = ilir_type_of(e->m, s->store.value);
	if (!r->slot || element < 0)
		jit_refuse(e, t, index_problem);
	else
		store_elements(e, r, element, p->lanes, narrow(e, v, t.dtype, b->dtype, p->lanes));
}

void jit_emit_alloc(struct emitter *e, ilir_buffer buffer)
{
	struct jit_register *r = register_of(e, buffer);
	for (int64_t i = 0; r->slot && i < r->slots; i++)
		LLVMBuildStore(e->at, LLVMGetPoison(LLVMGetAllocatedType(r->slot[i])), r->slot[i]);
}

static void measure_store(struct emitter *e, const struct ilir_stmt *s)
{
	struct jit_register *r = &e->reg[s->store.buffer.i];
	int lanes = ilir_type_of(e->m, s->store.value).lanes;
	if (lanes > r->lanes)
		r->lanes = lanes;
}

void jit_measure_registers(struct emitter *e, const struct ilir_stmt *s)
{
	for (; s; s = s->next)
		if (s->kind == ILIR_STORE) {
			measure_store(e, s);
		} else if (s->kind == ILIR_FOR) {
			jit_measure_registers(e, s->loop.body);
		} else if (s->kind == ILIR_IF) {
			jit_measure_registers(e, s->branch.then);
			jit_measure_registers(e, s->branch.otherwise);
		}
}

/* --- either --- */

static const char vector_problem[] = "the index of a vector access is not a ramp";
static const char written_problem[] = "a buffer that kernels only read is stored to";
static const char rows_problem[] = "a buffer has rows in a dimension other than the first";

LLVMValueRef jit_emit_load(struct emitter *e, ilir_expr x)
{
	const struct ilir_node *n = ilir_at(e->m, x);
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, n->buffer);
	struct place p;
	if (!find_place(e, e->m->args.at + n->arg, n->args, &p))
		return jit_refuse(e, n->type, vector_problem);
	if (b->kind == ILIR_REGISTER)
		return load_register(e, x, &p);
	return has_inner_rows(b) ? jit_refuse(e, n->type, rows_problem) : load_memory(e, x, &p);
}

void jit_emit_store(struct emitter *e, const struct ilir_stmt *s)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, s->store.buffer);
	struct ilir_type t = ilir_type_of(e->m, s->store.value);
	struct place p;
	if (!find_place(e, s->store.index, s->store.indices, &p) || p.spread == ILIR_BROADCAST ||
	    p.lanes != t.lanes)
		jit_refuse(e, t, vector_problem);
	else if (b->kind == ILIR_REGISTER)
		store_register(e, s, &p);
	else if (!is_written(b) && !is_filled(b))
		jit_refuse(e, t, written_problem);
	else if (has_inner_rows(b))
		jit_refuse(e, t, rows_problem);
	else
		store_memory(e, s, &p);
}

/* The line in which a vector begins: the next one is asked for by the block of columns that follows. */
void jit_emit_prefetch(struct emitter *e, ilir_expr load)
{
	static const char name[] = "llvm.prefetch";
	const struct ilir_node *n = ilir_at(e->m, load);
	struct place p;
	if (!find_place(e, e->m->args.at + n->arg, n->args, &p) ||
	    has_inner_rows(ilir_buffer_at(e->m, n->buffer))) {
		jit_refuse(e, n->type, vector_problem);
		return;
	}
	LLVMTypeRef i32 = e->scalar[ILIR_I32];
	LLVMValueRef near = LLVMConstInt(i32, 3, false), data = LLVMConstInt(i32, 1, false);
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef at = address_of(e, n->buffer, e->m->args.at + n->arg, n->args, p.last);
	LLVMValueRef prefetch = LLVMGetIntrinsicDeclaration(e->module, id, &e->pointer, 1);
	LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, &e->pointer, 1);
	LLVMValueRef args[] = {at, LLVMConstInt(i32, 0, false), near, data};
	LLVMBuildCall2(e->at, signature, prefetch, args, 4, "");
}
