/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The processor that LLVM makes code for. */
#include "jit/llvm/emit.h"

#include <llvm-c/Target.h>
#include <pthread.h>

/* Found once: on a virtual machine every cpuid traps to its host. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	const char *cpu, *features, *triple;
	bool failed;
} host;

/* LLVM identifies processors by family numbers, and takes unknown ones for older ones: for one with AMX and
 * AVX512-FP16 it chose `rocketlake`, for which vectors have 256 bits and schedules are about 10 % slower.
 * Only these processors have FP16. */
static const char *const fp16_cpus[] = {"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d",
					"diamondrapids"};

static const char *correct_cpu(const char *cpu, const char *features)
{
	if (!strstr(features, "+avx512fp16"))
		return NULL;
	for (size_t i = 0; i < sizeof fp16_cpus / sizeof *fp16_cpus; i++)
		if (strcmp(cpu, fp16_cpus[i]) == 0)
			return NULL;
	return fp16_cpus[0];
}

static void inspect_host(void)
{
	host.failed = LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter();
	host.triple = LLVMGetDefaultTargetTriple();
	host.features = LLVMGetHostCPUFeatures();
	char *cpu = LLVMGetHostCPUName();
	host.cpu = correct_cpu(cpu, host.features);
	if (host.cpu)
		LLVMDisposeMessage(cpu);
	else
		host.cpu = cpu;
}

/* LLVM's names for a target of base/targets.h, and its instructions.  Every processor with AVX-512 has
 * prefetchw, which x86-64-v4 leaves out. */
static const struct processor {
	const char *cpu, *features, *triple, *llvm; /* llvm: LLVM's name of the instruction set */
	bool fma, half;
	int pair_lanes; /* as in struct jit_dots */
} processors[TARGETS] = {
    [TARGET_GENERIC] = {"x86-64", "", "x86_64-unknown-linux-gnu", "X86", false, false, 4},
    [TARGET_AVX2] = {"x86-64-v3", "", "x86_64-unknown-linux-gnu", "X86", true, true, 8},
    [TARGET_AVX512] = {"x86-64-v4", "+prfchw", "x86_64-unknown-linux-gnu", "X86", true, true, 16},
    [TARGET_AMX] = {"x86-64-v4", "+prfchw,+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16", "x86_64-unknown-linux-gnu", "X86", true, true, 16},
    [TARGET_AARCH64] = {"generic", "", "aarch64-unknown-linux-gnu", "AArch64", true, true, 0},
};

/* Registers an instruction set, if LLVM was built with it. */
static void start_architecture(const char *llvm)
{
#define LLVM_TARGET(name)                                                                                    \
	if (strcmp(llvm, #name) == 0) {                                                                      \
		LLVMInitialize##name##TargetInfo();                                                          \
		LLVMInitialize##name##Target();                                                              \
		LLVMInitialize##name##TargetMC();                                                            \
	}
#include <llvm/Config/Targets.def>
#define LLVM_ASM_PRINTER(name)                                                                               \
	if (strcmp(llvm, #name) == 0)                                                                        \
		LLVMInitialize##name##AsmPrinter();
#include <llvm/Config/AsmPrinters.def>
}

/* Whether `word` is one of a list with commas. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ',') && (!p[n] || p[n] == ','))
			return true;
	return false;
}

bool jit_machine_has_fma(const struct jit_options *o)
{
	const struct processor *p = &processors[o->target->id];
	return p->fma || (o->native && has_word(host.features, "+fma"));
}

bool jit_machine_has_half(const struct jit_options *o)
{
	const struct processor *p = &processors[o->target->id];
	return p->half || (o->native && has_word(host.features, "+f16c"));
}

/* The lanes of i32 of the wider of two extensions that this machine has; 0 = neither may be used. */
static int find_lanes(const struct jit_options *o, const char *narrow, const char *wide)
{
	return !o->native ? 0 : has_word(host.features, wide) ? 16 : has_word(host.features, narrow) ? 8 : 0;
}

struct jit_dots jit_machine_dots(const struct jit_options *o)
{
	struct jit_dots d = {.pair_lanes = processors[o->target->id].pair_lanes};
	int pairs = find_lanes(o, "+avx2", "+avx512bw");
	d.pair_lanes = pairs > d.pair_lanes ? pairs : d.pair_lanes;
	d.vnni_lanes = o->target->amx_int8 ? 16 : find_lanes(o, "+avxvnni", "+avx512vnni");
	bool words = o->native && has_word(host.features, "+avx512bf16") && has_word(host.features, "+avx512vl");
	d.bf16_lanes = o->target->amx_int8 || words ? 16 : 0;
	d.halves = o->native && has_word(host.features, "+avx512fp16") && has_word(host.features, "+avx512vl");
	return d;
}

/* LLVM's registry of instruction sets has no lock. */
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

/* Registers an instruction set only once: other threads may be compiling for it. */
static bool find_architecture(const char *llvm, const char *triple, LLVMTargetRef *target, char **message)
{
	if (LLVMGetTargetFromTriple(triple, target, message) == 0)
		return true;
	if (!llvm)
		return false;
	LLVMDisposeMessage(*message);
	*message = NULL;
	start_architecture(llvm);
	return LLVMGetTargetFromTriple(triple, target, message) == 0;
}

/* `llvm`: the instruction set to register; NULL = it is registered. */
static LLVMTargetMachineRef new_machine(const char *llvm, const char *triple, const char *cpu,
					const char *features, char **message)
{
	LLVMTargetRef target;
	pthread_mutex_lock(&registry);
	bool found = find_architecture(llvm, triple, &target, message);
	pthread_mutex_unlock(&registry);
	return found ? LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault,
					       LLVMRelocPIC, LLVMCodeModelDefault)
		     : NULL;
}

LLVMTargetMachineRef jit_machine_new(const struct jit_options *o, char **message)
{
	const struct processor *p = &processors[o->target->id];
	pthread_once(&once, inspect_host);
	*message = NULL;
	if (host.failed) {
		*message = LLVMCreateMessage("this LLVM makes no code for this machine");
		return NULL;
	}
	return o->native ? new_machine(NULL, host.triple, host.cpu, host.features, message)
			 : new_machine(p->llvm, p->triple, p->cpu, p->features, message);
}
