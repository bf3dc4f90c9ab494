/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores: buffers in memory by address, registers by stack slots that the optimiser removes. */
#include "jit/llvm/emit.h"

/* In memory truth is a byte, of which any but 0 is true. */
static LLVMValueRef from_memory(struct emitter *e, LLVMValueRef v, enum ilir_dtype stored)
{
	return stored != ILIR_BOOL ? v : LLVMBuildICmp(e->at, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
}

static LLVMValueRef to_memory(struct emitter *e, LLVMValueRef v, struct ilir_type t)
{
	return t.dtype != ILIR_BOOL ? v : LLVMBuildZExt(e->at, v, jit_stored_type(e, t), "");
}

/* --- metadata --- */

/* Metadata of loads and stores for two facts that LLVM cannot see: a buffer that its readers do not write is
 * invariant, and different buffers do not overlap.  Weights are invariant, though kernels at binding compute
 * some of them: stores to these get no metadata. */
struct jit_promises {
	unsigned invariant, alias_scope, noalias; /* kinds of metadata */
	LLVMValueRef nothing;
	LLVMValueRef *own, *others; /* by buffer: its scope, those of all others; NULL = never written */
};

static unsigned metadata_kind(const struct emitter *e, const char *name)
{
	return LLVMGetMDKindIDInContext(e->context, name, strlen(name));
}

static LLVMMetadataRef make_tuple(const struct emitter *e, LLVMMetadataRef *element, size_t n)
{
	return LLVMMDNodeInContext2(e->context, element, n);
}

static LLVMMetadataRef make_text(const struct emitter *e, const char *s)
{
	return LLVMMDStringInContext2(e->context, s, strlen(s));
}

/* One scope per buffer that is written; its name, unique in the module, is its identity. */
static LLVMMetadataRef *make_scopes(struct emitter *e)
{
	LLVMMetadataRef *scope = ARENA_ARRAY(e->arena, LLVMMetadataRef, e->m->buffers.n),
			name = make_text(e, "buffers");
	LLVMMetadataRef domain = make_tuple(e, &name, 1);
	for (size_t i = 1; i < e->m->buffers.n; i++)
		if (ilir_holds_results(&e->m->buffers.at[i]))
			scope[i] = make_tuple(
			    e, (LLVMMetadataRef[]){make_text(e, e->m->buffers.at[i].name), domain}, 2);
	return scope;
}

static LLVMValueRef scopes_except(const struct emitter *e, const LLVMMetadataRef *scope, size_t own,
				  LLVMMetadataRef *list)
{
	size_t n = 0;
	for (size_t i = 1; i < e->m->buffers.n; i++)
		if (scope[i] && i != own)
			list[n++] = scope[i];
	return LLVMMetadataAsValue(e->context, make_tuple(e, list, n));
}

void jit_make_promises(struct emitter *e)
{
	struct jit_promises *p = e->promises = ARENA_NEW(e->arena, struct jit_promises);
	size_t buffers = e->m->buffers.n;
	LLVMMetadataRef *scope = make_scopes(e), *list = ARENA_ARRAY(e->arena, LLVMMetadataRef, buffers);
	p->invariant = metadata_kind(e, "invariant.load");
	p->alias_scope = metadata_kind(e, "alias.scope");
	p->noalias = metadata_kind(e, "noalias");
	p->nothing = LLVMMetadataAsValue(e->context, make_tuple(e, NULL, 0));
	p->own = ARENA_ARRAY(e->arena, LLVMValueRef, buffers);
	p->others = ARENA_ARRAY(e->arena, LLVMValueRef, buffers);
	for (size_t i = 1; i < buffers; i++)
		if (scope[i]) {
			p->own[i] = LLVMMetadataAsValue(e->context, make_tuple(e, &scope[i], 1));
			p->others[i] = scopes_except(e, scope, i, list);
		}
}

static void promise_access(struct emitter *e, ilir_buffer b, LLVMValueRef access)
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

/* Loads the base address from the pointer table once per call, in the entry block. */
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

static LLVMValueRef add_term(struct emitter *e, LLVMValueRef sum, LLVMValueRef term)
{
	return sum ? LLVMBuildNSWAdd(e->at, sum, term, "") : term;
}

static LLVMValueRef scale_index(struct emitter *e, ilir_expr x, uint64_t stride)
{
	LLVMValueRef by = LLVMConstInt(e->scalar[ILIR_INDEX], stride, false);
	return LLVMBuildNSWMul(e->at, jit_emit_expr(e, x), by, "");
}

static LLVMValueRef step_by(struct emitter *e, LLVMValueRef from, enum ilir_dtype element,
			    LLVMValueRef offset)
{
	return LLVMBuildGEP2(e->at, jit_stored_type(e, (struct ilir_type){element, 1}), from, &offset, 1, "");
}

/* The address of a row of a state, or of its table: the sign says which, without a branch. */
static LLVMValueRef row_of(struct emitter *e, ilir_buffer b, const struct jit_address *to)
{
	const struct ilir_buffer_decl *d = ilir_buffer_at(e->m, b);
	LLVMTypeRef index = e->scalar[ILIR_INDEX];
	LLVMValueRef row = jit_emit_expr(e, to->row), none = LLVMConstNull(index);
	LLVMValueRef state = base_of(e, b), table = base_of(e, d->table);
	LLVMValueRef below = LLVMBuildICmp(e->at, LLVMIntSLT, row, none, "");
	LLVMValueRef from = LLVMBuildSelect(e->at, below, table, state, "");
	LLVMValueRef sign = LLVMBuildAShr(e->at, row, LLVMConstInt(index, 63, false), "");
	LLVMValueRef at = LLVMBuildXor(e->at, row, sign, "");
	return step_by(e, from, d->dtype, LLVMBuildNSWMul(e->at, at, LLVMConstInt(index, to->row_stride, false), ""));
}

/* Adds the induction variables of an innermost loop last, to a pointer that the loop does not change.  The
 * sum without its constant may point outside of the buffer, so no address is inbounds. */
static LLVMValueRef address_of(struct emitter *e, const struct jit_access *a)
{
	enum ilir_dtype element = ilir_buffer_at(e->m, a->buffer)->dtype;
	struct jit_address to = jit_address_of(e->m, a, e->loop.var);
	LLVMValueRef sum = NULL, counted = NULL, at = base_of(e, a->buffer);
	if (to.row.i)
		at = row_of(e, a->buffer, &to);
	for (int i = 0; i < to.terms; i++) {
		LLVMValueRef multiple = jit_multiple(e, to.index[i], to.stride[i]);
		if (multiple)
			counted = add_term(e, counted, multiple);
		else
			sum = add_term(e, sum, scale_index(e, to.index[i], to.stride[i]));
	}
	at = sum ? step_by(e, at, element, sum) : at;
	at = counted ? step_by(e, at, element, counted) : at;
	return to.displacement
		   ? step_by(e, at, element, LLVMConstInt(e->scalar[ILIR_INDEX], to.displacement, true))
		   : at;
}

static LLVMValueRef lane_index(struct emitter *e, int64_t i)
{
	return LLVMConstInt(e->scalar[ILIR_I32], i, false);
}

/* Vectors are only aligned like their elements, since rows may begin anywhere. */
static LLVMValueRef load_as(struct emitter *e, const struct jit_access *a, LLVMValueRef at, enum ilir_dtype dtype, int lanes)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	LLVMValueRef v = LLVMBuildLoad2(e->at, jit_stored_type(e, (struct ilir_type){dtype, lanes}), at, "");
	LLVMSetAlignment(v, jit_element_bytes(b));
	promise_access(e, a->buffer, v);
	return v;
}

static LLVMValueRef load_adjacent(struct emitter *e, const struct jit_access *a, LLVMValueRef at, int lanes)
{
	return load_as(e, a, at, ilir_buffer_at(e->m, a->buffer)->dtype, lanes);
}

/* Lanes that lie `step` elements apart: loads vectors of adjacent elements, and takes from each the lanes that lie
 * in it.  The last vector ends with the last lane, so that nothing beyond it is read. */
static LLVMValueRef load_apart(struct emitter *e, const struct jit_access *a, LLVMValueRef at)
{
	int lanes = a->place.lanes, step = a->place.step, reach = (lanes - 1) * step + 1;
	enum ilir_dtype element = ilir_buffer_at(e->m, a->buffer)->dtype;
	LLVMValueRef v = NULL, lane[ILIR_MAX_LANES];
	for (int first = 0, taken = 0; taken < lanes; first += lanes) {
		int from = first < reach - lanes ? first : reach - lanes;
		LLVMValueRef offset = LLVMConstInt(e->scalar[ILIR_INDEX], from, true);
		LLVMValueRef part = load_adjacent(e, a, step_by(e, at, element, offset), lanes);
		for (int i = 0; i < lanes; i++)
			lane[i] = lane_index(e, i < taken ? (v ? i : 0) : lanes + (i * step - from) % lanes);
		for (; taken < lanes && taken * step < from + lanes; taken++)
			;
		v = LLVMBuildShuffleVector(e->at, v ? v : part, part, LLVMConstVector(lane, lanes), "");
	}
	return v;
}

static LLVMValueRef load_memory(struct emitter *e, const struct jit_access *a)
{
	LLVMValueRef at = address_of(e, a);
	LLVMValueRef v = a->place.step > 1 ? load_apart(e, a, at) : load_adjacent(e, a, at, jit_lanes_in_memory(a));
	return from_memory(e, v, ilir_buffer_at(e->m, a->buffer)->dtype);
}

static void store_memory(struct emitter *e, const struct jit_access *a, ilir_expr value)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	LLVMValueRef v = jit_emit_expr(e, value), at = address_of(e, a);
	LLVMValueRef store = LLVMBuildStore(e->at, to_memory(e, v, ilir_type_of(e->m, value)), at);
	LLVMSetAlignment(store, jit_element_bytes(b));
	promise_access(e, a->buffer, store);
}

/* --- registers --- */

/* Slots one after the other, from the beginning of a cache line on. */
static void place_slots(struct emitter *e, struct jit_register *r, const char *name)
{
	enum { LINE = 64 };
	LLVMValueRef all = LLVMBuildAlloca(e->entry, LLVMArrayType2(r->type, r->slots), name);
	LLVMSetAlignment(all, LINE);
	for (int64_t i = 0; i < r->slots; i++) {
		LLVMValueRef at = LLVMConstInt(e->scalar[ILIR_INDEX], i, false);
		r->slot[i] = LLVMBuildInBoundsGEP2(e->entry, r->type, all, &at, 1, "");
	}
}

/* One slot per `lanes` elements if they divide the register, else one per element. */
static struct jit_register *register_of(struct emitter *e, ilir_buffer buffer)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, buffer);
	struct jit_register *r = &e->reg[buffer.i];
	int64_t elements = jit_register_elements(b);
	if (r->slot || !elements)
		return r;
	if (r->lanes == 0 || elements % r->lanes)
		r->lanes = 1;
	r->parked = b->parked;
	r->slots = elements / r->lanes;
	r->slot = ARENA_ARRAY(e->arena, LLVMValueRef, r->slots);
	r->type = jit_stored_type(e, (struct ilir_type){b->dtype, r->lanes});
	r->whole |= b->parked;
	if (r->whole)
		place_slots(e, r, b->name);
	for (int64_t i = 0; !r->whole && i < r->slots; i++)
		r->slot[i] = LLVMBuildAlloca(e->entry, r->type, b->name);
	return r;
}

static LLVMValueRef load_slot(struct emitter *e, const struct jit_register *r, int64_t slot)
{
	LLVMValueRef v = LLVMBuildLoad2(e->at, r->type, r->slot[slot], "");
	LLVMSetVolatile(v, r->parked);
	return v;
}

/* Parked registers must stay in memory, hence volatile: LLVM would keep them in registers, and spill the
 * wrong ones in the loops. */
static void store_slot(struct emitter *e, const struct jit_register *r, int64_t slot, LLVMValueRef v)
{
	LLVMSetVolatile(LLVMBuildStore(e->at, v, r->slot[slot]), r->parked);
}

static LLVMValueRef load_element(struct emitter *e, const struct jit_register *r, int64_t element)
{
	LLVMValueRef v = load_slot(e, r, element / r->lanes);
	return r->lanes == 1 ? v : LLVMBuildExtractElement(e->at, v, lane_index(e, element % r->lanes), "");
}

static void store_element(struct emitter *e, const struct jit_register *r, int64_t element, LLVMValueRef v)
{
	int64_t slot = element / r->lanes;
	if (r->lanes > 1)
		v = LLVMBuildInsertElement(e->at, load_slot(e, r, slot), v, lane_index(e, element % r->lanes),
					   "");
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
		v = LLVMBuildInsertElement(e->at, v, i ? load_element(e, r, element + i) : first,
					   lane_index(e, i), "");
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
			store_element(e, r, element + i,
				      LLVMBuildExtractElement(e->at, v, lane_index(e, i), ""));
}

/* The address of elements of a register that lies in memory. */
static LLVMValueRef place_in_register(struct emitter *e, const struct jit_register *r, const struct jit_access *a)
{
	enum ilir_dtype element = ilir_buffer_at(e->m, a->buffer)->dtype;
	struct jit_address to = jit_address_of(e->m, a, (ilir_var){0});
	LLVMValueRef sum = LLVMConstInt(e->scalar[ILIR_INDEX], to.displacement, true);
	for (int i = 0; i < to.terms; i++)
		sum = add_term(e, sum, scale_index(e, to.index[i], to.stride[i]));
	return step_by(e, r->slot[0], element, sum);
}

static bool can_access(const struct jit_register *r, int64_t element)
{
	return r->slot && (element >= 0 || (element == JIT_SELECTED && r->whole));
}

/* Elements that variables select: vectors are only known to be aligned like these. */
static LLVMValueRef load_selected(struct emitter *e, const struct jit_register *r, const struct jit_access *a)
{
	const struct ilir_buffer_decl *b = ilir_buffer_at(e->m, a->buffer);
	LLVMTypeRef type = jit_stored_type(e, (struct ilir_type){b->dtype, jit_lanes_in_memory(a)});
	LLVMValueRef v = LLVMBuildLoad2(e->at, type, place_in_register(e, r, a), "");
	LLVMSetAlignment(v, jit_element_bytes(b));
	LLVMSetVolatile(v, r->parked);
	return v;
}

static void store_selected(struct emitter *e, const struct jit_register *r, const struct jit_access *a, LLVMValueRef v)
{
	LLVMValueRef store = LLVMBuildStore(e->at, v, place_in_register(e, r, a));
	LLVMSetAlignment(store, jit_element_bytes(ilir_buffer_at(e->m, a->buffer)));
	LLVMSetVolatile(store, r->parked);
}

static LLVMValueRef load_register(struct emitter *e, const struct jit_access *a, struct ilir_type t)
{
	struct jit_register *r = register_of(e, a->buffer);
	int64_t element = jit_register_element(e->m, a);
	int lanes = jit_lanes_in_memory(a);
	if (!can_access(r, element))
		return jit_refuse(e, (struct ilir_type){t.dtype, lanes}, jit_register_problem);
	return from_memory(e, element < 0 ? load_selected(e, r, a) : load_elements(e, r, element, lanes), t.dtype);
}

static void store_register(struct emitter *e, const struct jit_access *a, ilir_expr value)
{
	struct jit_register *r = register_of(e, a->buffer);
	int64_t element = jit_register_element(e->m, a);
	LLVMValueRef v = jit_emit_expr(e, value);
	struct ilir_type t = ilir_type_of(e->m, value);
	if (!can_access(r, element))
		jit_refuse(e, t, jit_register_problem);
	else if (element < 0)
		store_selected(e, r, a, to_memory(e, v, t));
	else
		store_elements(e, r, element, t.lanes, to_memory(e, v, t));
}

void jit_emit_alloc(struct emitter *e, ilir_buffer buffer)
{
	struct jit_register *r = register_of(e, buffer);
	for (int64_t i = 0; r->slot && i < r->slots; i++)
		LLVMBuildStore(e->at, LLVMGetPoison(r->type), r->slot[i]);
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
		} else if (s->kind == ILIR_FILL || s->kind == ILIR_SPILL) {
			e->reg[ilir_at(e->m, s->rows.first)->buffer.i].whole = true;
		} else if (s->kind == ILIR_FOR) {
			jit_measure_registers(e, s->loop.body);
		} else if (s->kind == ILIR_IF) {
			jit_measure_registers(e, s->branch.then);
			jit_measure_registers(e, s->branch.otherwise);
		}
}

/* --- loads and stores --- */

static bool is_register(const struct emitter *e, const struct jit_access *a)
{
	return ilir_buffer_at(e->m, a->buffer)->kind == ILIR_REGISTER;
}

/* LLVM takes lanes of two vectors of i32 by one operation that needs no table, but not of f32, and makes f32 of what was
 * cast: so it loads them as i32. */
LLVMValueRef jit_emit_bits(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	bool loads = ilir_at(e->m, x)->op == ILIR_LOAD && t.dtype == ILIR_F32;
	struct jit_access a = loads ? jit_read_load(e->m, x) : (struct jit_access){0};
	if (loads && !a.problem && !is_register(e, &a) && a.place.step == 1 && jit_lanes_in_memory(&a) == t.lanes)
		return load_as(e, &a, address_of(e, &a), ILIR_I32, t.lanes);
	LLVMValueRef v = jit_emit_expr(e, x);
	return t.dtype != ILIR_F32 ? v : LLVMBuildBitCast(e->at, v, jit_type(e, (struct ilir_type){ILIR_I32, t.lanes}), "");
}

LLVMValueRef jit_emit_word(struct emitter *e, ilir_expr load)
{
	struct jit_access a = jit_read_load(e->m, load);
	if (a.problem || is_register(e, &a))
		return jit_refuse(e, (struct ilir_type){ILIR_I32, 1}, a.problem ? a.problem : jit_register_problem);
	return load_as(e, &a, address_of(e, &a), ILIR_I32, 1);
}

LLVMValueRef jit_emit_load(struct emitter *e, ilir_expr x)
{
	struct ilir_type t = ilir_type_of(e->m, x);
	struct jit_access a = jit_read_load(e->m, x);
	if (a.problem)
		return jit_refuse(e, t, a.problem);
	LLVMValueRef v = is_register(e, &a) ? load_register(e, &a, t) : load_memory(e, &a);
	return jit_lanes_in_memory(&a) == t.lanes ? v : jit_splat(e, v, t.lanes);
}

LLVMValueRef jit_emit_address(struct emitter *e, ilir_expr load)
{
	struct jit_access a = jit_read_load(e->m, load);
	if (a.problem)
		return jit_refuse(e, ilir_type_of(e->m, load), a.problem), NULL;
	if (!is_register(e, &a))
		return address_of(e, &a);
	struct jit_register *r = register_of(e, a.buffer);
	if (!can_access(r, jit_register_element(e->m, &a)))
		return jit_refuse(e, ilir_type_of(e->m, load), jit_register_problem), NULL;
	return place_in_register(e, r, &a);
}

void jit_emit_store(struct emitter *e, const struct ilir_stmt *s)
{
	struct jit_access a = jit_read_store(e->m, s);
	if (a.problem)
		jit_refuse(e, ilir_type_of(e->m, s->store.value), a.problem);
	else
		(is_register(e, &a) ? store_register : store_memory)(e, &a, s->store.value);
}

/* Prefetches the cache line in which a vector begins; the next block of columns prefetches the next line. */
void jit_emit_prefetch(struct emitter *e, const struct ilir_stmt *s)
{
	static const char name[] = "llvm.prefetch";
	struct jit_access a = jit_read_prefetch(e->m, s->prefetch.load);
	if (a.problem) {
		jit_refuse(e, ilir_type_of(e->m, s->prefetch.load), a.problem);
		return;
	}
	LLVMTypeRef i32 = e->scalar[ILIR_I32];
	LLVMValueRef near = LLVMConstInt(i32, 3, false), data = LLVMConstInt(i32, 1, false);
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef at = address_of(e, &a);
	LLVMValueRef prefetch = LLVMGetIntrinsicDeclaration(e->module, id, &e->pointer, 1);
	LLVMTypeRef signature = LLVMIntrinsicGetType(e->context, id, &e->pointer, 1);
	LLVMValueRef args[] = {at, LLVMConstInt(i32, s->prefetch.writes, false), near, data};
	LLVMBuildCall2(e->at, signature, prefetch, args, 4, "");
}
