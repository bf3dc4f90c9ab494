#include "base/cpu.h"

#ifdef __x86_64__

#include <cpuid.h>

enum { EAX = 1, EBX = 2, ECX = 4, EDX = 8 };

/* What is asked, and which of the answers count: others differ between the cores of one processor. */
static const struct {
	unsigned leaf, subleaf, registers;
} questions[] = {
    {0, 0, EBX | ECX | EDX},	/* the maker */
    {1, 0, EAX | ECX | EDX},	/* family and model; features up to AVX */
    {7, 0, EBX | ECX | EDX},	/* AVX2, AVX-512, AMX */
    {7, 1, EAX | EDX},		/* AVX-VNNI and later */
    {0x24, 0, EBX},		/* AVX10 */
    {0x80000001, 0, ECX | EDX}, /* features that AMD had first */
};

/* `last` is the greatest leaf that the processor knows, of those that all makers share; that of the others is
 * known to every 64-bit processor. */
static void ask(struct str *s, unsigned i, unsigned *last)
{
	unsigned r[4], leaf = questions[i].leaf;
	if (leaf < 0x80000000 && leaf > *last)
		return;
	__cpuid_count(leaf, questions[i].subleaf, r[0], r[1], r[2], r[3]);
	*last = leaf ? *last : r[0];
	str_printf(s, " %x.%x", leaf, questions[i].subleaf);
	for (int k = 0; k < 4; k++)
		if (questions[i].registers & 1 << k)
			str_printf(s, ":%x", r[k]);
}

/* Registers that the system saves and restores; others cannot be used, whatever the processor says. */
static unsigned saved_registers(void)
{
	unsigned r[4], low, high;
	__cpuid(1, r[0], r[1], r[2], r[3]);
	if (!(r[2] & bit_OSXSAVE))
		return 0;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

void cpu_print(struct str *s)
{
	str_printf(s, "x86-64 saves %x", saved_registers());
	unsigned last = 0;
	for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
		ask(s, i, &last);
}

#else

#include <sys/auxv.h>
#include <sys/utsname.h>

void cpu_print(struct str *s)
{
	struct utsname u;
	str_printf(s, "%s %lx %lx", uname(&u) == 0 ? u.machine : "unknown", getauxval(AT_HWCAP),
		   getauxval(AT_HWCAP2));
}

#endif
