/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* What back ends refuse, and what it says then: never a crash, never a print. */
#include "tests/jit/helper.h"

struct parts {
	ilir_buffer x, out, reg;
	ilir_var n;
};

static void store_value(struct fixture *f, const struct parts *p, ilir_expr value)
{
	kernel(f, "bad", over_rows(f, p->n, 1, ilir_store(&f->m, p->out, INDICES(ref(f, p->n)), value)));
}

static ilir_expr load_x(struct fixture *f, const struct parts *p)
{
	return ilir_load(&f->m, p->x, INDICES(ref(f, p->n)));
}

static void compound(struct fixture *f, const struct parts *p)
{
	store_value(f, p, ilir_unary(&f->m, ILIR_EXP, load_x(f, p)));
}

static void size(struct fixture *f, const struct parts *p)
{
	store_value(f, p, ilir_load(&f->m, p->x, INDICES(ilir_size(&f->m, IMAGE_LEAVES))));
}

static void inferred(struct fixture *f, const struct parts *p)
{
	struct ilir_stmt *body = ilir_store(&f->m, p->out, INDICES(ref(f, p->n)), load_x(f, p));
	kernel(f, "bad", loop(f, p->n, num(f, 0), ilir_inferred(&f->m), 1, body));
}

static void divisor(struct fixture *f, const struct parts *p)
{
	ilir_expr n = ref(f, p->n);
	store_value(f, p, ilir_load(&f->m, p->x, INDICES(ilir_binary(&f->m, ILIR_DIV, n, n))));
}

static void negative_divisor(struct fixture *f, const struct parts *p)
{
	store_value(f, p,
		    ilir_load(&f->m, p->x, INDICES(ilir_binary(&f->m, ILIR_MOD, ref(f, p->n), num(f, -4)))));
}

static void scope(struct fixture *f, const struct parts *p)
{
	store_value(f, p, ilir_load(&f->m, p->x, INDICES(ref(f, index_var(f, "lost")))));
}

static void register_index(struct fixture *f, const struct parts *p)
{
	store_value(f, p, ilir_load(&f->m, p->reg, INDICES(ref(f, p->n))));
}

static void register_bounds(struct fixture *f, const struct parts *p)
{
	store_value(f, p, ilir_load(&f->m, p->reg, INDICES(num(f, 4))));
}

static void barrier(struct fixture *f, const struct parts *p)
{
	(void)p;
	kernel(f, "bad", ilir_barrier(&f->m));
}

static void weight_store(struct fixture *f, const struct parts *p)
{
	kernel(f, "bad", ilir_store(&f->m, p->x, INDICES(num(f, 0)), ilir_float(&f->m, 1)));
}

static void ramp_value(struct fixture *f, const struct parts *p)
{
	ilir_expr less = ilir_binary(&f->m, ILIR_LT, ramp(f, num(f, 0), 4), splat(f, num(f, 2), 4));
	ilir_expr one = splat(f, ilir_float(&f->m, 1), 4), two = splat(f, ilir_float(&f->m, 2), 4);
	kernel(f, "bad",
	       ilir_store(&f->m, p->out, INDICES(ramp(f, num(f, 0), 4)),
			  ilir_ternary(&f->m, ILIR_SELECT, less, one, two)));
}

static void gather(struct fixture *f, const struct parts *p)
{
	ilir_expr twice = ilir_binary(&f->m, ILIR_MUL, ramp(f, num(f, 0), 4), splat(f, num(f, 2), 4));
	kernel(f, "bad",
	       ilir_store(&f->m, p->out, INDICES(ramp(f, num(f, 0), 4)), ilir_load(&f->m, p->x, &twice, 1)));
}

static void scatter(struct fixture *f, const struct parts *p)
{
	kernel(f, "bad",
	       ilir_store(&f->m, p->out, INDICES(splat(f, num(f, 0), 4)), splat(f, ilir_float(&f->m, 1), 4)));
}

static void inner_rows(struct fixture *f, const struct parts *p)
{
	ilir_buffer b = buffer_of(f, "b", IMAGE_VECTOR, ILIR_F32, EXTENTS(4, ROWS));
	store_value(f, p, ilir_load(&f->m, b, INDICES(num(f, 0), ref(f, p->n))));
}

static void huge_register(struct fixture *f, const struct parts *p)
{
	ilir_buffer b =
	    buffer_of(f, "b", ILIR_REGISTER, ILIR_F32, EXTENTS(1 << 20, 1 << 20, 1 << 20, 1 << 20));
	ilir_expr zero = num(f, 0);
	store_value(f, p, ilir_load(&f->m, b, INDICES(zero, zero, zero, zero)));
}

/* Names are symbols of an assembler. */
static void quoted_name(struct fixture *f, const struct parts *p)
{
	kernel(f, "a \"b\"", ilir_store(&f->m, p->out, INDICES(num(f, 0)), ilir_float(&f->m, 1)));
}

/* Caught by the verifier of LLVM, since no check of ours looks at names. */
static void name(struct fixture *f, const struct parts *p)
{
	kernel(f, "llvm.fma.v4f32", ilir_store(&f->m, p->out, INDICES(num(f, 0)), ilir_float(&f->m, 1)));
}

static const struct {
	const char *what;
	void (*build)(struct fixture *, const struct parts *);
	const char *says;
	const char *only; /* the back end, NULL = each */
} cases[] = {
    {"a compound", compound, "'bad' of 'refused': a compound", NULL},
    {"a size", size, "a size of the minibatch", NULL},
    {"an inferred bound", inferred, "never inferred", NULL},
    {"a divisor that is not constant", divisor, "divisor", NULL},
    {"a negative divisor", negative_divisor, "divisor", NULL},
    {"a variable out of scope", scope, "outside its scope", NULL},
    {"a register index that is not constant", register_index, "a register", NULL},
    {"a register index out of bounds", register_bounds, "a register", NULL},
    {"a register without end", huge_register, "a register", NULL},
    {"a barrier", barrier, "steps and barriers", NULL},
    {"a store to an input", weight_store, "only read", NULL},
    {"a ramp as a value", ramp_value, "a ramp", NULL},
    {"a gathering load", gather, "not a ramp", NULL},
    {"a scattering store", scatter, "not a ramp", NULL},
    {"rows that are not outermost", inner_rows, "rows", NULL},
    {"a kernel with the name of an intrinsic", name, "llvm.fma.v4f32", "llvm"},
    {"a kernel whose name has quotes", quoted_name, "its name", "gccjit"},
};

static void refuse(int i)
{
	struct fixture f;
	struct jit_options o = {.target = target_find("generic"), .native = false};
	fixture_init(&f, "refused");
	struct str text = str_in(&f.arena), object = str_in(&f.arena);
	struct parts p = {buffer_of(&f, "x", IMAGE_VECTOR, ILIR_F32, EXTENTS(ROWS)),
			  buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS)),
			  buffer_of(&f, "reg", ILIR_REGISTER, ILIR_F32, EXTENTS(4)), index_var(&f, "n")};
	cases[i].build(&f, &p);
	bool ok = true;
	struct jit_unit *unit;
	int units = jit_list_units(&f.arena, &f.m, !f.backend->cuts_rows, &unit);
	for (int k = 0; ok && k < (f.backend->compiles_all ? 1 : units); k++) {
		object.n = 0;
		ok = f.backend->compile(&f.m, &o, f.backend->compiles_all ? NULL : &unit[k], &object,
					(double[JIT_PHASES]){0}, &f.diags);
	}
	tap_ok(!ok && f.diags.n == 1 && f.diags.at[0].id == DIAG_COMPILE_FAILED && !object.n,
	       "%s: one diagnostic, no code", cases[i].what);
	tap_ok(f.diags.n == 1 && strstr(f.diags.at[0].message, cases[i].says), "%s: the message says why",
	       cases[i].what);
	ok = f.backend->print(&f.m, &o, JIT_TEXT_ASM, &text, &f.diags);
	tap_ok(!ok && text.n == 0, "%s: nothing is printed", cases[i].what);
	if (f.diags.n != 2)
		show_diags(&f.diags);
	fixture_free(&f);
}

/* Printing into an arena without memory: the job is given up, and the caller's escape is taken. */
static void *refuse_memory(void *context, void *p, size_t old_size, size_t new_size)
{
	(void)context, (void)old_size;
	if (!new_size)
		free(p);
	return NULL;
}

static void print_without_memory(void)
{
	static const struct allocator none = {refuse_memory, NULL};
	struct fixture f;
	struct arena empty;
	jmp_buf jump;
	struct jit_options o = {.target = target_find("generic"), .native = false};
	fixture_init(&f, "printed");
	arena_init(&empty, &none);
	struct str text = str_in(&empty);
	ilir_buffer out = buffer_of(&f, "out", IMAGE_OUTPUT, ILIR_F32, EXTENTS(ROWS));
	kernel(&f, "one", ilir_store(&f.m, out, INDICES(num(&f, 0)), ilir_float(&f.m, 1)));
	if (arena_guard(&empty, &jump)) {
		tap_ok(true, "printing without memory takes the caller's escape");
	} else {
		f.backend->print(&f.m, &o, JIT_TEXT_IR, &text, &f.diags);
		tap_ok(false, "printing without memory takes the caller's escape");
	}
	fixture_free(&f);
}

static void test_all(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!cases[i].only || strcmp(cases[i].only, backend_name) == 0)
			refuse(i);
	print_without_memory();
}

int main(void)
{
	return over_backends(test_all);
}
