/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "base/cpu.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

/* Appends a text without the spaces at its ends; bytes that cannot be printed become '?'. */
static void put_printable(struct str *s, const char *text)
{
	text += strspn(text, " ");
	size_t n = strcspn(text, "\n");
	while (n && text[n - 1] == ' ')
		n--;
	for (size_t i = 0; i < n; i++)
		str_printf(s, "%c", text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

#ifdef __x86_64__

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EAX = 1, EBX = 2, ECX = 4, EDX = 8 };

/* Leaves of cpuid, and the registers that count: others differ between the cores of one processor. */
static const struct {
	unsigned leaf, subleaf, registers;
} leaves[] = {
    {0, 0, EBX | ECX | EDX},	/* the maker */
    {1, 0, EAX | ECX | EDX},	/* family and model; features up to AVX */
    {7, 0, EBX | ECX | EDX},	/* AVX2, AVX-512, AMX */
    {7, 1, EAX | EDX},		/* AVX-VNNI and later */
    {0x24, 0, EBX},		/* AVX10 */
    {0x80000001, 0, ECX | EDX}, /* features that AMD had first */
};

/* `last` is the greatest leaf that the processor has below 0x80000000; those above are on every 64-bit
 * processor. */
static void print_leaf(struct str *s, unsigned i, unsigned *last)
{
	unsigned r[4], leaf = leaves[i].leaf;
	if (leaf < 0x80000000 && leaf > *last)
		return;
	__cpuid_count(leaf, leaves[i].subleaf, r[0], r[1], r[2], r[3]);
	*last = leaf ? *last : r[0];
	str_printf(s, " %x.%x", leaf, leaves[i].subleaf);
	for (int k = 0; k < 4; k++)
		if (leaves[i].registers & 1 << k)
			str_printf(s, ":%x", r[k]);
}

/* Registers that the system saves and restores; others cannot be used, even if the processor has them. */
static unsigned saved_registers(void)
{
	unsigned r[4], low, high;
	__cpuid(1, r[0], r[1], r[2], r[3]);
	if (!(r[2] & bit_OSXSAVE))
		return 0;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* --- matrix registers --- */

/* Bits of cpuid(7, 0).edx, of what the system saves, and a call of it (Linux 5.16, Documentation/arch/x86/xstate.rst): it saves the 8
 * KB of tiles for processes only that have asked. */
enum {
	HAS_TILES_OF_BF16 = 1 << 22,
	HAS_TILES = 1 << 24,
	HAS_TILES_OF_BYTES = 1 << 25,
	SAVES_TILES = 3 << 17,
	PERMIT_REGISTERS = 0x1023, /* ARCH_REQ_XCOMP_PERM */
	TILE_DATA = 18
};

static bool permits_matrices;
static bool has_asked; /* by built-in functions: <stdatomic.h> among GCC's headers, where libgccjit's is, is not for Clang */
static pthread_once_t matrices_once = PTHREAD_ONCE_INIT;

static void ask_for_matrices(void)
{
	unsigned r[4], needed = HAS_TILES | HAS_TILES_OF_BYTES | HAS_TILES_OF_BF16;
	__atomic_store_n(&has_asked, true, __ATOMIC_SEQ_CST);
	if (!__get_cpuid_count(7, 0, &r[0], &r[1], &r[2], &r[3]) || (r[3] & needed) != needed ||
	    (saved_registers() & SAVES_TILES) != SAVES_TILES)
		return;
#ifdef __linux__
	permits_matrices = syscall(SYS_arch_prctl, PERMIT_REGISTERS, TILE_DATA) == 0;
#endif
}

bool cpu_permits_matrices(void)
{
	pthread_once(&matrices_once, ask_for_matrices);
	return permits_matrices;
}

bool cpu_has_asked_for_matrices(void)
{
	return __atomic_load_n(&has_asked, __ATOMIC_SEQ_CST);
}

static void print_processor(struct str *s)
{
	str_printf(s, "x86-64 saves %x", saved_registers());
	unsigned last = 0;
	for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
		print_leaf(s, i, &last);
}

/* The text, which never changes: in a virtual machine each leaf takes the host some 20 us.  "" = memory was out. */
static char processor[512];
static pthread_once_t processor_once = PTHREAD_ONCE_INIT;

static void keep_processor(void)
{
	struct arena arena;
	jmp_buf escape;
	arena_init(&arena, &allocator_default);
	if (!arena_guard(&arena, &escape)) {
		struct str s = str_in(&arena);
		print_processor(&s);
		if (s.n < sizeof processor)
			memcpy(processor, str_text(&s), s.n + 1);
	}
	arena_free(&arena);
}

void cpu_print(struct str *s)
{
	pthread_once(&processor_once, keep_processor);
	if (processor[0])
		str_puts(s, processor);
	else
		print_processor(s);
}

/* The extended numbers count where the short ones are at their ends. */
struct cpu_model cpu_model(void)
{
	struct cpu_model found = {.family = 0};
	unsigned a, r[3];
	__cpuid(0, a, r[0], r[2], r[1]);
	memcpy(found.maker, r, sizeof r);
	__cpuid(1, a, r[0], r[1], r[2]);
	found.family = a >> 8 & 0xf;
	found.model = a >> 4 & 0xf;
	if (found.family == 6 || found.family == 0xf)
		found.model += a >> 12 & 0xf0;
	if (found.family == 0xf)
		found.family += a >> 20 & 0xff;
	return found;
}

void cpu_name(struct str *s)
{
	unsigned r[13] = {0};
	__cpuid(0x80000000, r[0], r[1], r[2], r[3]);
	if (r[0] < 0x80000004)
		return;
	for (unsigned i = 0; i < 3; i++)
		__cpuid(0x80000002 + i, r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
	r[12] = 0;
	put_printable(s, (const char *)r);
}

/* A bit each.  Extensions that neither compilers use by themselves nor we are not listed. */
#define EXTENSIONS                                                                                           \
	X("sse3")                                                                                            \
	X("ssse3") X("sse4.1") X("sse4.2") X("sse4a") X("popcnt") X("avx") X("avx2") X("fma") X("fma4")      \
	    X("xop") X("f16c") X("bmi") X("bmi2") X("lzcnt") X("movbe") X("adx") X("gfni") X("vpclmulqdq")   \
		X("avxvnni") X("avx512f") X("avx512cd") X("avx512bw") X("avx512dq") X("avx512vl")            \
		    X("avx512ifma") X("avx512vbmi") X("avx512vbmi2") X("avx512vnni") X("avx512bitalg")       \
			X("avx512vpopcntdq") X("avx512bf16") X("avx512fp16")

static const char *const names[] = {
#define X(name) name,
    EXTENSIONS
#undef X
};

static uint64_t own_extensions(void)
{
	uint64_t own = 0, bit = 1;
#define X(name) own |= __builtin_cpu_supports(name) ? bit : 0, bit <<= 1;
	EXTENSIONS
#undef X
	return own;
}

#else

bool cpu_permits_matrices(void)
{
	return false;
}

bool cpu_has_asked_for_matrices(void)
{
	return false;
}

#include <stdio.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

void cpu_print(struct str *s)
{
	struct utsname u;
	str_printf(s, "%s %lx %lx", uname(&u) == 0 ? u.machine : "unknown", getauxval(AT_HWCAP),
		   getauxval(AT_HWCAP2));
}

struct cpu_model cpu_model(void)
{
	return (struct cpu_model){.family = 0};
}

void cpu_name(struct str *s)
{
	const char *platform = (const char *)getauxval(AT_PLATFORM);
	put_printable(s, platform ? platform : "");
}

#ifdef __aarch64__

/* Bits of AT_HWCAP. */
static const char *const names[] = {
    "fp",      "asimd", "evtstrm", "aes",   "pmull",	"sha1",	  "sha2", "crc32",
    "atomics", "fphp",	"asimdhp", "cpuid", "asimdrdm", "jscvt",  "fcma", "lrcpc",
    "dcpop",   "sha3",	"sm3",	   "sm4",   "asimddp",	"sha512", "sve",  "asimdfhm",
    "dit",     "uscat", "ilrcpc",  "flagm", "ssbs",	"sb",	  "paca", "pacg"};

static uint64_t own_extensions(void)
{
	return getauxval(AT_HWCAP);
}

#else

static const char *const names[] = {"unknown"};

static uint64_t own_extensions(void)
{
	return 1;
}

#endif
#endif

enum { NAMES = sizeof names / sizeof *names };
_Static_assert(NAMES <= 64, "a bit each");

/* An extension that processes need a permission for, and so is asked for apart from those that the processor tells of. */
static const char matrices[] = "amx-int8";

void cpu_extensions(struct str *s)
{
	uint64_t own = own_extensions();
	for (int i = 0; i < NAMES; i++)
		if (own >> i & 1)
			str_printf(s, "%s%s", s->n ? " " : "", names[i]);
	if (cpu_permits_matrices())
		str_printf(s, "%s%s", s->n ? " " : "", matrices);
}

static bool is_word(const char *name, const char *word, size_t length)
{
	return strlen(name) == length && memcmp(name, word, length) == 0;
}

static bool has_extension(uint64_t own, const char *word, size_t length)
{
	for (int i = 0; i < NAMES; i++)
		if (is_word(names[i], word, length))
			return own >> i & 1;
	return is_word(matrices, word, length) && cpu_permits_matrices();
}

const char *cpu_lacks(const char *extensions)
{
	uint64_t own = own_extensions();
	for (const char *word = extensions; *word; word += *word == ' ') {
		size_t length = strcspn(word, " ");
		if (length && !has_extension(own, word, length))
			return word;
		word += length;
	}
	return NULL;
}
