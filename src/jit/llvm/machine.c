/* Which processor LLVM makes code for. */
#include "jit/llvm/emit.h"

#include <llvm-c/Target.h>
#include <pthread.h>

/* Asked once: on a virtual machine every look at the processor is a trip to its host. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	const char *cpu, *features, *triple;
	bool failed;
} host;

/* LLVM goes by family numbers, and takes what it does not know for something older: with AMX and AVX512-FP16
 * present it has said `rocketlake`, for which vectors are 256 bits and schedules about 10 % slower.  These
 * have FP16, and no other maker's processor does. */
static const char *const fp16_cpus[] = {"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d",
					"diamondrapids"};

static const char *corrected(const char *cpu, const char *features)
{
	if (!strstr(features, "+avx512fp16"))
		return cpu;
	for (size_t i = 0; i < sizeof fp16_cpus / sizeof *fp16_cpus; i++)
		if (strcmp(cpu, fp16_cpus[i]) == 0)
			return cpu;
	return fp16_cpus[0];
}

static void look_at_host(void)
{
	host.failed = LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter();
	host.triple = LLVMGetDefaultTargetTriple();
	host.features = LLVMGetHostCPUFeatures();
	host.cpu = corrected(LLVMGetHostCPUName(), host.features);
}

/* The processor that stands for a target of base/target.c. */
static const struct processor {
	const char *target, *cpu;
	bool fma;
} processors[] = {{"generic", "x86-64", false}, {"avx2", "x86-64-v3", true}, {"avx512", "x86-64-v4", true}};

static bool is_x86(void)
{
	return strncmp(host.triple, "x86_64", strlen("x86_64")) == 0;
}

static const struct processor *find_processor(const struct target *t)
{
	for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
		if (strcmp(t->name, processors[i].target) == 0)
			return &processors[i];
	return &processors[0];
}

static const char *cpu_of(const struct target *t)
{
	return is_x86() ? find_processor(t)->cpu : "generic";
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

/* Elsewhere than on x86 every machine has it that LLVM makes vector code for. */
bool jit_machine_has_fma(const struct jit_options *o)
{
	if (!is_x86())
		return true;
	return o->native ? has_word(host.features, "+fma") : find_processor(o->target)->fma;
}

LLVMTargetMachineRef jit_machine_new(const struct jit_options *o, char **message)
{
	LLVMTargetRef target;
	pthread_once(&once, look_at_host);
	*message = NULL;
	if (host.failed) {
		*message = LLVMCreateMessage("this LLVM makes no code for this machine");
		return NULL;
	}
	if (LLVMGetTargetFromTriple(host.triple, &target, message))
		return NULL;
	return LLVMCreateTargetMachine(target, host.triple, o->native ? host.cpu : cpu_of(o->target),
				       o->native ? host.features : "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
				       LLVMCodeModelDefault);
}
