/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "image/code.h"

#include "image/frames.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The self of an image_code. */
struct loaded {
	struct allocator allocator;
	size_t size; /* of this block */
	void *code;
	size_t mapped;
	const void *frames; /* that unwinders know; NULL = none */
	image_kernel *kernel[];
};

static void release_code(struct image_code *code)
{
	struct loaded *l = code->self;
	struct allocator a = l->allocator;
	if (l->frames)
		image_deregister_frames(l->frames);
	munmap(l->code, l->mapped);
	a.resize(a.context, l, l->size, 0);
	*code = (struct image_code){0};
}

void image_code_release(struct image_code *code)
{
	if (code->release)
		code->release(code);
	*code = (struct image_code){0};
}

static bool report_no_memory(const char *what, struct diags *diags)
{
	return diag_add(diags, DIAG_OUT_OF_MEMORY, (struct diag_at){0}, NULL,
			"no memory for the code of '%s'", what);
}

static bool refuse_machine(const char *what, int machine, struct diags *diags)
{
	return diag_add(diags, DIAG_TARGET_NOT_HERE, (struct diag_at){0}, "compile the model on this machine",
			"the code of '%s' is for machine %d of ELF, this one is %d", what, machine,
			IMAGE_OWN_MACHINE);
}

static bool refuse_execution(const char *what, int error, struct diags *diags)
{
	return diag_add(
	    diags, DIAG_COMPILE_FAILED, (struct diag_at){0},
	    "let this process make memory executable (MemoryDenyWriteExecute of systemd, SELinux's "
	    "execmem), or use the back end 'interpreter'",
	    "the system does not let the code of '%s' run: %s", what, strerror(error));
}

/* A copy of the blob that can be executed; NULL after a diagnostic. */
static void *map_code(const struct image_blob *blob, size_t mapped, const char *what, struct diags *diags)
{
	void *code = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED) {
		report_no_memory(what, diags);
		return NULL;
	}
	memcpy(code, blob->bytes, blob->size);
	__builtin___clear_cache(code, (char *)code + blob->size);
	if (mprotect(code, mapped, PROT_READ | PROT_EXEC) == 0)
		return code;
	refuse_execution(what, errno, diags);
	munmap(code, mapped);
	return NULL;
}

/* Pages are aligned at least as strictly as blobs. */
bool image_code_load(const struct image_blob *blob, const struct allocator *a, const char *what,
		     struct image_code *code, struct diags *diags)
{
	size_t page = sysconf(_SC_PAGESIZE), mapped = (blob->size + page) / page * page;
	size_t size = sizeof(struct loaded) + blob->kernels * sizeof(image_kernel *);
	*code = (struct image_code){0};
	if (blob->machine != IMAGE_OWN_MACHINE)
		return refuse_machine(what, blob->machine, diags);
	struct loaded *l = a->resize(a->context, NULL, 0, size);
	if (!l)
		return report_no_memory(what, diags);
	*l = (struct loaded){.allocator = *a, .size = size, .mapped = mapped};
	l->code = map_code(blob, mapped, what, diags);
	if (!l->code) {
		a->resize(a->context, l, size, 0);
		return false;
	}
	const void *frames = (char *)l->code + blob->frames;
	if (blob->frame_bytes && image_register_frames(frames))
		l->frames = frames;
	for (int i = 0; i < blob->kernels; i++)
		l->kernel[i] = (image_kernel *)((char *)l->code + blob->kernel[i]);
	*code = (struct image_code){
	    .kernels = l->kernel, .release = release_code, .self = l, .bytes = blob->size};
	return true;
}
