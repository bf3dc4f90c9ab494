/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* replay FILE: repeats what tests/jit/record wrote, with the code that is in it, and compares what lies in
 * memory after each call with what the interpreter left.  A line for each program; status 1 after a
 * difference.  Nothing but the C library is needed, so that it is easily compiled for the other machine. */
#include "tests/jit/record.h"

#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUFFERS_MAX = 1000 };

static void get(FILE *file, void *to, size_t n)
{
	if (n && fread(to, n, 1, file) != 1) {
		fprintf(stderr, "replay: the file ends too early\n");
		exit(2);
	}
}

static void *take(size_t n)
{
	void *p = aligned_alloc(64, (n + 64) / 64 * 64);
	if (!p)
		exit(2);
	return p;
}

/* The code, where it can be executed. */
static char *map_code(FILE *file, size_t bytes)
{
	char *code = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		exit(2);
	get(file, code, bytes);
	__builtin___clear_cache(code, code + bytes);
	if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0)
		exit(2);
	return code;
}

/* The number of buffers that differ. */
static int compare(FILE *file, const struct record_call *call, void **buffer, const int64_t *bytes)
{
	int differ = 0;
	for (int i = 0; i < call->buffers; i++) {
		char *wanted = take(bytes[i]);
		get(file, wanted, bytes[i]);
		differ += memcmp(wanted, buffer[i], bytes[i]) != 0;
		free(wanted);
		free(buffer[i]);
	}
	return differ;
}

static int replay_call(FILE *file, const struct record_call *call, image_kernel *kernel)
{
	static void *buffer[BUFFERS_MAX];
	static int64_t bytes[BUFFERS_MAX];
	if (call->buffers > BUFFERS_MAX)
		exit(2);
	get(file, bytes, call->buffers * sizeof *bytes);
	for (int i = 0; i < call->buffers; i++) {
		buffer[i] = take(bytes[i]);
		get(file, buffer[i], bytes[i]);
	}
	kernel(buffer, call->begin, call->end, call->first, call->blocks, call->direction);
	return compare(file, call, buffer, bytes);
}

/* Whether every call left the same. */
static int replay_program(FILE *file, const struct record_program *p)
{
	int64_t *place = take(p->kernels * sizeof *place);
	int calls = 0, differ = 0;
	struct record_call call;
	get(file, place, p->kernels * sizeof *place);
	char *code = map_code(file, p->bytes);
	for (get(file, &call, sizeof call); call.kernel >= 0; get(file, &call, sizeof call), calls++)
		if (replay_call(file, &call, (image_kernel *)(code + place[call.kernel])))
			differ++;
	munmap(code, p->bytes);
	free(place);
	printf("%s: %d calls, %d differ\n", p->name, calls, differ);
	return calls && !differ;
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	struct record_program p;
	int programs = 0, same = 0;
	if (!file)
		return 2;
	for (; fread(&p, sizeof p, 1, file) == 1; programs++)
		same += replay_program(file, &p);
	fclose(file);
	return programs && same == programs ? 0 : 1;
}
