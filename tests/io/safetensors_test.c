/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include "tests/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int reads_left = -1; /* before reading fails; below 0 = it never does */

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
	if (reads_left >= 0 && reads_left-- == 0)
		return errno = EIO, -1;
	return syscall(SYS_pread64, fd, to, n, offset);
}

/* A file with the given header and `n` bytes of values 0, 1, 2, ... */
static const char *write_weights(const char *header, size_t n)
{
	uint64_t length = strlen(header);
	unsigned char *bytes = arena_take(&arena, 8 + length + n, 1);
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, header, length);
	for (size_t i = 0; i < n; i++)
		bytes[8 + length + i] = (unsigned char)i;
	return write_file("weights", bytes, 8 + length + n);
}

static struct io_safetensors *open_weights(const char *header, size_t n)
{
	return io_safetensors_open(&arena, &diags, write_weights(header, n));
}

static int descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void opens(void)
{
	struct io_safetensors *w = open_weights(
	    "{\"__metadata__\":{\"by\":\"hand\"},"
	    "\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[24,30]},"
	    "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
	    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[24,24]},"
	    "\"one\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[30,32]}}   ",
	    32);
	if (!tap_ok(accepted(w), "a file is opened"))
		return;
	tap_ok(w->n == 4 && strcmp(w->tensor[0].name, "a") == 0 && strcmp(w->tensor[2].name, "b") == 0,
	       "its tensors stand in the order of their values");
	int a = io_safetensors_find(w, "a"), none = io_safetensors_find(w, "none"),
	    one = io_safetensors_find(w, "one");
	tap_ok(a == 0 && io_safetensors_find(w, "c") == -1, "they are found by name, others are not");
	tap_ok(w->tensor[a].rank == 2 && w->tensor[a].shape[0] == 2 && w->tensor[a].shape[1] == 3,
	       "a shape is what the header says");
	tap_ok(w->tensor[one].rank == 0 && tensor_elements(&w->tensor[one]) == 1, "a scalar has one element");
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, none, 0, 0, NULL)),
	       "a tensor may have no element");
	io_safetensors_close(w);
	io_safetensors_close(w);
	io_safetensors_close(NULL);
	tap_ok(!io_safetensors_read_f32(w, &diags, a, 0, 1, &(float){0}) &&
		   refused(DIAG_BAD_ARGUMENT, "closed"),
	       "a closed file is not read");
	w = open_weights("{}", 0);
	tap_ok(accepted(w) && w->n == 0, "a file without tensors is opened");
	io_safetensors_close(w);
}

static void reads(void)
{
	static const char header[] =
	    "{\"f\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
	    "\"h\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[16,24]},"
	    "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]}}";
	static const float f[4] = {1.5f, -2, 0x1p-149f, 3e38f};
	static const uint16_t h[6] = {0x3c00, 0xc100, 0x0001, 0x7c00, 0x3fc0, 0xff80};
	char bytes[8 + sizeof header - 1 + 28];
	uint64_t length = sizeof header - 1;
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, header, length);
	memcpy(bytes + 8 + length, f, sizeof f);
	memcpy(bytes + 8 + length + sizeof f, h, sizeof h);
	struct io_safetensors *w =
	    io_safetensors_open(&arena, &diags, write_file("values", bytes, sizeof bytes));
	float got[5] = {0, 0, 0, 0, 77};
	tap_ok(accepted(w && io_safetensors_read_f32(w, &diags, 0, 0, 4, got)) &&
		   memcmp(got, f, sizeof f) == 0,
	       "F32 values are read as they are");
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, 1, 0, 4, got)) && got[0] == 1 && got[1] == -2.5f &&
		   got[2] == 0x1p-24f && got[3] == INFINITY,
	       "F16 values are widened");
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, 2, 0, 2, got)) && got[0] == 1.5f &&
		   got[1] == -INFINITY,
	       "BF16 values are widened");
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, 1, 1, 2, got)) && got[0] == -2.5f &&
		   got[1] == 0x1p-24f && got[2] == 0x1p-24f && got[4] == 77,
	       "a part is read, and no more is written");
	tap_ok(!io_safetensors_read_f32(w, &diags, 1, 3, 2, got) &&
		   refused(DIAG_BAD_ARGUMENT, "'h', which has 4"),
	       "values past the end are refused");
	tap_ok(!io_safetensors_read_f32(w, &diags, 1, INT64_MAX, 2, got) &&
		   refused(DIAG_BAD_ARGUMENT, "'h'") && !io_safetensors_read_f32(w, &diags, 1, -1, 2, got) &&
		   refused(DIAG_BAD_ARGUMENT, "'h'"),
	       "so are places that are none");
	tap_ok(!io_safetensors_read_f32(w, &diags, 3, 0, 1, got) && refused(DIAG_BAD_ARGUMENT, "no tensor 3"),
	       "so is a tensor that is not there");
	const struct timespec past[2] = {{1, 0}, {1, 0}};
	tap_ok(utimensat(AT_FDCWD, path_of("values"), past, 0) == 0 &&
		   !io_safetensors_read_f32(w, &diags, 2, 0, 2, got) &&
		   refused(DIAG_CANNOT_READ, "was written to while in use"),
	       "a file that is written to while open is refused");
	tap_ok(truncate(path_of("values"), sizeof bytes - 2) == 0 &&
		   !io_safetensors_read_f32(w, &diags, 2, 0, 2, got) &&
		   refused(DIAG_CANNOT_READ, "became shorter"),
	       "a file that is cut while open is refused");
	io_safetensors_close(w);
}

static void refuses_files(void)
{
	uint64_t length = 100000001;
	char bytes[20] = {0};
	tap_ok(!io_safetensors_open(&arena, &diags, path_of("absent")) && refused(DIAG_CANNOT_READ, "absent"),
	       "a missing file is refused");
	tap_ok(!io_safetensors_open(&arena, &diags, folder) &&
		   refused(DIAG_CANNOT_READ, "not a regular file"),
	       "a directory is refused");
	mkfifo(path_of("fifo"), 0600);
	alarm(20);
	tap_ok(!io_safetensors_open(&arena, &diags, path_of("fifo")) &&
		   refused(DIAG_CANNOT_READ, "not a regular file"),
	       "nobody waits for a pipe to be written");
	alarm(0);
	unlink(path_of("fifo"));
	tap_ok(!io_safetensors_open(&arena, &diags, write_file("w", bytes, 7)) &&
		   refused(DIAG_BAD_WEIGHTS, "7 bytes"),
	       "a file too short for a length is refused");
	memcpy(bytes, &length, 8);
	tap_ok(!io_safetensors_open(&arena, &diags, write_file("w", bytes, 20)) &&
		   refused(DIAG_BAD_WEIGHTS, "100000001"),
	       "a header above the limit is refused");
	tap_ok(truncate(path_of("w"), 200000000) == 0 && !io_safetensors_open(&arena, &diags, path_of("w")) &&
		   refused(DIAG_BAD_WEIGHTS, "the limit is 100000000"),
	       "even in a file that is long enough");
	length = 13;
	memcpy(bytes, &length, 8);
	tap_ok(!io_safetensors_open(&arena, &diags, write_file("w", bytes, 20)) &&
		   refused(DIAG_BAD_WEIGHTS, "13 bytes"),
	       "a header longer than the file is refused");
	memset(bytes, 0xff, 8);
	tap_ok(!io_safetensors_open(&arena, &diags, write_file("w", bytes, 20)) &&
		   refused(DIAG_BAD_WEIGHTS, "18446744"),
	       "a header of 2^64-1 bytes is refused");
}

#define BYTES(text) text, sizeof text - 1
/* As these programs write them. */
static const struct {
	const char *bytes;
	size_t n;
	const char *what, *hint;
} formats[] = {
    {BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\12\0\30\0z/data.pklFB\24\0ZZZZ"),
     "a checkpoint of PyTorch;", "weights_only=True"},
    {BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0\25\0script/data/0FB\24\0ZZZZ"),
     "a checkpoint of PyTorch;", "formats' weights.safetensors"},
    {BYTES("PK\3\4-\0\0\0\0\0\0\0!\0\xa7\2l|\xff\xff\xff\xff\xff\xff\xff\xff\5\0\24\0W.npy\1\0\20"),
     "an .npz archive", "numpy.load"},
    {BYTES("PK\3\4-\0\0\0\0\0\0\0!\0\xa7\2l|\xff\xff\xff\xff\xff\xff\xff\xff\5\0\24\0W.txt\1\0\20"),
     "a zip archive", "unpack"},
    {BYTES("PK\3\4-\0\0\0\0\0\0\0!\0\xa7\2l|\xff\xff\xff\xff\xff\xff\xff\xff\377\377"), "a zip archive",
     "unpack"},
    {BYTES("\x80\2\x8a\nl\xfc\x9c"
	   "F\xf9 j\xa8P\31.\x80"),
     "before version 1.6", "torch.load"},
    {BYTES("\x80\2}q\0X\1\0\0\0aq\1"), "a pickle", "trust"},
    {BYTES("\x80\4\x95\xa0\0\0\0\0\0\0\0}"), "a pickle", "trust"},
    {BYTES("\x93NUMPY\1\0v\0{'descr'"), "an .npy array", "NAME"},
    {BYTES("\x89HDF\r\n\x1a\n\0\0\0\0"), "an HDF5 file", "h5py"},
    {BYTES("GGUF\3\0\0\0\0\0\0\0"), "a GGUF file", "original model"},
    {BYTES("\10\16:\32\22\1g*\25\10\3\20\1"), "an ONNX model", "onnx.load"},
    {BYTES("\10\16\22\7pytorch:\32"), "an ONNX model", "onnx.load"},
    {BYTES("version https://git-lfs.github.com/spec/v1\n"), "a pointer of Git LFS", "git lfs pull"},
    {BYTES("\10\16\0\0\0\0\0\1{\"W\":"), NULL, NULL},
    {BYTES("\10\16\22\0\0\0\0\0{\"W\":"), NULL, NULL},
    {BYTES("\10\16\72\0\0\0\0\0{\"W\":"), NULL, NULL},
};

static void refuses_formats(void)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		const char *path = write_file("formats", formats[i].bytes, formats[i].n), *what = formats[i].what;
		bool opened = io_safetensors_open(&arena, &diags, path);
		bool hinted = what && diags.n && diags.at[0].hint && strstr(diags.at[0].hint, formats[i].hint);
		tap_ok(!opened && (what ? hinted : true) &&
			   refused(what ? DIAG_WEIGHTS_FORMAT : DIAG_BAD_WEIGHTS, what ? what : "its header has"),
		       "%s is told by its bytes", what ? what : "none of these");
	}
	const char *zeros = write_file("formats", formats[0].bytes, formats[0].n);
	tap_ok(truncate(zeros, 200000000) == 0 && !io_safetensors_open(&arena, &diags, zeros) &&
		   refused(DIAG_WEIGHTS_FORMAT, "PyTorch"),
	       "so is one whose first bytes could be a header's length");
	tap_ok(!io_safetensors_open_memory(&arena, &diags, "weights in memory", formats[0].bytes, formats[0].n) &&
		   diags.n && strstr(diags.at[0].hint, "'FILE' weights.safetensors") &&
		   refused(DIAG_WEIGHTS_FORMAT, "PyTorch"),
	       "of those in memory the hint names no file");
	reads_left = 1;
	tap_ok(!io_safetensors_open(&arena, &diags, zeros) && refused(DIAG_CANNOT_READ, strerror(EIO)),
	       "what cannot be read is told once");
	reads_left = -1;
}

/* A tensor "t" whose description is `fields`, over 8 bytes of values; and how that is refused. */
#define ONE(fields) "{\"t\":{" fields "}}"
#define F32_2 "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
static const struct {
	const char *name, *header;
	enum diag_id id;
	const char *part;
} headers[] = {
    {"an empty header", "", DIAG_BAD_WEIGHTS, "begin with '{'"},
    {"a header that is a list", "[1]", DIAG_BAD_WEIGHTS, "begin with '{'"},
    {"a header after space", " {}", DIAG_BAD_WEIGHTS, "begin with '{'"},
    {"a header that is cut", "{\"t\":", DIAG_BAD_WEIGHTS, "JSON"},
    {"text after the header", "{} x", DIAG_BAD_WEIGHTS, "JSON"},
    {"bytes that are no UTF-8", "{\"\xff\":1}", DIAG_BAD_WEIGHTS, "JSON"},
    {"a NUL in a name", "{\"a\\u0000b\":1}", DIAG_BAD_WEIGHTS, "NUL"},
    {"a name twice", "{\"t\":" F32_2 "[0,8]},\"t\":" F32_2 "[0,8]}}", DIAG_BAD_WEIGHTS, "\"t\""},
    {"a field twice", ONE("\"dtype\":\"F32\",\"dtype\":\"F16\""), DIAG_BAD_WEIGHTS, "\"dtype\""},
    {"metadata that is a list", "{\"__metadata__\":[]}", DIAG_BAD_WEIGHTS, "__metadata__"},
    {"metadata that is no text", "{\"__metadata__\":{\"a\":1}}", DIAG_BAD_WEIGHTS, "__metadata__"},
    {"an empty name", "{\"\":" F32_2 "[0,8]}}", DIAG_BAD_TENSOR, "name is empty"},
    {"a description that is a number", "{\"t\":3}", DIAG_BAD_TENSOR, "'t': its description"},
    {"no dtype", ONE("\"shape\":[2],\"data_offsets\":[0,8]"), DIAG_BAD_TENSOR, "'t': 'dtype'"},
    {"a dtype that is not read", ONE("\"dtype\":\"U32\",\"shape\":[2],\"data_offsets\":[0,8]"),
     DIAG_UNKNOWN_DTYPE, "'t' has dtype 'U32'"},
    {"no shape", ONE("\"dtype\":\"F32\",\"data_offsets\":[0,8]"), DIAG_BAD_TENSOR, "'t': 'shape'"},
    {"nine dimensions", ONE("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]"),
     DIAG_BAD_TENSOR, "9 dimensions"},
    {"a negative dimension", ONE("\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]"), DIAG_BAD_TENSOR,
     "dimension 0"},
    {"a dimension that is a fraction", ONE("\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]"),
     DIAG_BAD_TENSOR, "dimension 0"},
    {"a dimension that is a text", ONE("\"dtype\":\"F32\",\"shape\":[1,\"2\"],\"data_offsets\":[0,8]"),
     DIAG_BAD_TENSOR, "dimension 1"},
    {"a dimension above 64 bits",
     ONE("\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,8]"), DIAG_BAD_WEIGHTS,
     "big integer"},
    {"a product above 64 bits",
     ONE("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,8]"), DIAG_BAD_TENSOR,
     "64 bits"},
    {"a product that would wrap to the right size",
     ONE("\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,2],\"data_offsets\":[0,8]"), DIAG_BAD_TENSOR,
     "64 bits"},
    {"no place", ONE("\"dtype\":\"F32\",\"shape\":[2]"), DIAG_BAD_TENSOR, "data_offsets"},
    {"a place of three numbers", "{\"t\":" F32_2 "[0,4,8]}}", DIAG_BAD_TENSOR, "data_offsets"},
    {"a place of fractions", "{\"t\":" F32_2 "[0,8.0]}}", DIAG_BAD_TENSOR, "data_offsets"},
    {"a place before the values", "{\"t\":" F32_2 "[-8,0]}}", DIAG_BAD_TENSOR, "bytes -8 to 0 of 8"},
    {"a place past the values", "{\"t\":" F32_2 "[4,12]}}", DIAG_BAD_TENSOR, "bytes 4 to 12 of 8"},
    {"a place that ends before it begins", "{\"t\":" F32_2 "[8,0]}}", DIAG_BAD_TENSOR, "bytes 8 to 0"},
    {"a place of another size", "{\"t\":" F32_2 "[0,4]}}", DIAG_BAD_TENSOR, "take 8 bytes, its place has 4"},
    {"two tensors at one place", "{\"t\":" F32_2 "[0,8]},\"u\":" F32_2 "[0,8]}}", DIAG_TENSOR_OVERLAP,
     "bytes 0 to 8"},
    {"tensors that overlap",
     "{\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
     "\"t\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[0,6]}}",
     DIAG_TENSOR_OVERLAP, "'t' and 'u' share bytes 4 to 6"},
    {"a gap before a tensor", ONE("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]"), DIAG_TENSOR_GAP,
     "bytes 0 to 4 of the values, before tensor t"},
    {"a gap after a tensor", ONE("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), DIAG_TENSOR_GAP,
     "bytes 4 to 8 of the values, after tensor t"},
    {"values of no tensor", "{}", DIAG_TENSOR_GAP, "bytes 0 to 8"},
};

static void refuses_headers(void)
{
	int before = descriptors();
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		tap_ok(!open_weights(headers[i].header, 8) && refused(headers[i].id, headers[i].part),
		       "%s is refused", headers[i].name);
	tap_ok(descriptors() == before, "files that are refused are closed");
}

/* Brackets nested deep make the JSON parser give up, not the stack. */
static void refuses_nesting(void)
{
	static char deep[1000000];
	memset(deep, '[', sizeof deep - 1);
	memcpy(deep, "{\"t\":", 5);
	tap_ok(!open_weights(deep, 0) && refused(DIAG_BAD_WEIGHTS, "JSON"),
	       "a header nested 10^6 deep is refused");
}

static int calls_left;

static void *fail_later(void *context, void *p, size_t old_size, size_t new_size)
{
	if (new_size && calls_left-- == 0)
		return NULL;
	return allocator_default.resize(context, p, old_size, new_size);
}

/* Names so long that every piece needs memory of its own. */
static void survives_without_memory(void)
{
	static char header[200000];
	struct allocator failing = {fail_later, NULL};
	int before = descriptors(), failures = 0;
	char name[20001];
	memset(name, 'n', 20000);
	name[20000] = 0;
	snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
		 name);
	const char *path = write_weights(header, 8);
	for (int n = 0, done = 0; !done; n++) {
		struct arena a;
		arena_init(&a, &failing);
		calls_left = n;
		struct io_safetensors *w = io_safetensors_open(&a, &diags, path);
		done = w != NULL;
		failures += !w && refused(DIAG_OUT_OF_MEMORY, "no memory");
		if (!w && failures != n + 1)
			done = true;
		io_safetensors_close(w);
		arena_free(&a);
	}
	tap_ok(failures >= 3 && accepted(true), "memory that runs out anywhere is a diagnostic (%d places)",
	       failures);
	tap_ok(descriptors() == before, "and the file is closed");
}

static void real_models(void)
{
	static const char reason[] = "no folder with data";
	const char *path = data_path("models/sst-treelstm-small.safetensors");
	if (!path) {
		tap_skip(reason, "a trained model is opened");
		tap_skip(reason, "all its values are finite");
		return;
	}
	struct io_safetensors *w = io_safetensors_open(&arena, &diags, path);
	if (!tap_ok(accepted(w) && io_safetensors_find(w, "output.bias") >= 0, "a trained model is opened"))
		return;
	int wrong = 0;
	for (int i = 0; i < w->n; i++) {
		int64_t n = tensor_elements(&w->tensor[i]);
		float *values = ARENA_ARRAY(&arena, float, n);
		wrong += !io_safetensors_read_f32(w, &diags, i, 0, n, values);
		for (int64_t k = 0; k < n; k++)
			wrong += !isfinite(values[k]) || fabsf(values[k]) > 1000;
	}
	tap_ok(accepted(wrong == 0), "all its values are finite");
	io_safetensors_close(w);
}

/* Opens as many of the bytes as there may be, in a block that ends with them, and reads all values. */
static bool opens_part(const char *bytes, size_t n)
{
	char *own = malloc(n ? n : 1);
	float values[8];
	struct io_safetensors *w =
	    io_safetensors_open_memory(&arena, &diags, "here", memcpy(own, bytes, n), n);
	for (int i = 0; w && i < w->n; i++)
		io_safetensors_read_f32(w, &diags, i, 0, tensor_elements(&w->tensor[i]), values);
	io_safetensors_close(w);
	free(own);
	return w;
}

static void from_memory(void)
{
	static const char header[] =
	    "{\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
	    "\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[8,12]}}";
	enum { LENGTH = sizeof header - 1, BYTES = 8 + LENGTH + 12 };
	char room[BYTES + 1], *bytes = room + 1; /* at no alignment */
	uint64_t length = LENGTH;
	float got[2];
	memcpy(bytes, &length, 8);
	memcpy(bytes + 8, header, LENGTH);
	memcpy(bytes + 8 + LENGTH, (float[]){1.5f, -2}, 8);
	memcpy(bytes + 16 + LENGTH, (uint16_t[]){0x3c00, 0xc100}, 4);
	int before = descriptors();
	struct io_safetensors *w = io_safetensors_open_memory(&arena, &diags, "here", bytes, BYTES);
	tap_ok(accepted(w && w->n == 2 && descriptors() == before),
	       "weights in memory are opened, without a file");
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, 0, 0, 2, got) && got[0] == 1.5f && got[1] == -2) &&
		   accepted(io_safetensors_read_f32(w, &diags, 1, 1, 1, got) && got[0] == -2.5f),
	       "values are read as from a file");
	tap_ok(!io_safetensors_read_f32(w, &diags, 0, 1, 2, got) && refused(DIAG_BAD_ARGUMENT, "which has 2"),
	       "and none behind them");
	bytes[8 + LENGTH + 3] = 0;
	tap_ok(accepted(io_safetensors_read_f32(w, &diags, 0, 0, 1, got) && got[0] != 1.5f),
	       "where they are: they were not copied");
	io_safetensors_close(w);
	tap_ok(!io_safetensors_read_f32(w, &diags, 0, 0, 1, got) && refused(DIAG_BAD_ARGUMENT, "closed"),
	       "and not when they were closed");

	int opened = 0, told = 0, garbled = 0;
	for (int n = 0; n < BYTES; n++, diags_free(&diags)) {
		opened += opens_part(bytes, n);
		told += diags.n == 1;
	}
	tap_ok(opened == 0 && told == BYTES, "weights that were cut off are refused, wherever (%d, %d)",
	       opened, told);
	for (int i = 0; i < 8 * (8 + LENGTH); i++, diags_free(&diags)) {
		bytes[i / 8] ^= 1 << i % 8;
		bool ok = opens_part(bytes, BYTES);
		garbled += ok || diags.n == 1;
		bytes[i / 8] ^= 1 << i % 8;
	}
	tap_is(garbled, 8 * (8 + LENGTH), "those with a bit that is wrong are refused, or make sense");
}

int main(void)
{
	begin_tests();
	opens();
	reads();
	from_memory();
	refuses_files();
	refuses_formats();
	refuses_headers();
	refuses_nesting();
	survives_without_memory();
	real_models();
	return end_tests();
}
