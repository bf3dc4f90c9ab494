/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "io/foreign.h"

#include <string.h>

/* Tied weights share memory, which save_file refuses; counters are no weights. */
static const char from_pytorch[] =
    "python3 -c \"import sys, torch; from safetensors.torch import save_file; "
    "w = torch.load(sys.argv[1], map_location='cpu', weights_only=True); "
    "w = next((w[k] for k in ('state_dict', 'model_state_dict', 'model') if k in w), w); "
    "save_file({k: t.float().contiguous().clone() for k, t in w.items() if t.is_floating_point()}, "
    "sys.argv[2])\"";
static const char from_npz[] =
    "python3 -c \"import sys, numpy; from safetensors.numpy import save_file; w = numpy.load(sys.argv[1]); "
    "save_file({k: numpy.ascontiguousarray(w[k], 'f4') for k in w}, sys.argv[2])\"";
static const char from_onnx[] =
    "python3 -c \"import sys, onnx, onnx.numpy_helper; from safetensors.numpy import save_file; "
    "save_file({t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(sys.argv[1]).graph.initializer}, "
    "sys.argv[2])\"";
static const char from_hdf5[] =
    "read its datasets with the Python package h5py and save them with "
    "safetensors.numpy.save_file";

static const char from_pickle[] =
    "load it with the program that wrote it, if you trust it: a pickle can run code; save its "
    "arrays with safetensors.numpy.save_file";

#define ZIP "PK\3\4"

/* The first row that matches gives the format.  In `magic` a '?' is any byte; `member` occurs in the name of
 * an archive's first file. */
static const struct row {
	const char *magic, *member;
	struct io_foreign format;
} rows[] = {
    {ZIP, "/data", {"a checkpoint of PyTorch", from_pytorch, true}},
    {ZIP, ".npy", {"an .npz archive of NumPy", from_npz, true}},
    {ZIP, "", {"a zip archive", "unpack it, and name the safetensors file in it", false}},
    {"\x80\2\x8a\nl\xfc\x9c",
     NULL,
     {"a checkpoint of PyTorch, as written before version 1.6", from_pytorch, true}},
    {"\x80\2", NULL, {"a pickle of Python", from_pickle, false}},
    {"\x80\3", NULL, {"a pickle of Python", from_pickle, false}},
    {"\x80\4", NULL, {"a pickle of Python", from_pickle, false}},
    {"\x80\5", NULL, {"a pickle of Python", from_pickle, false}},
    {"\x93NUMPY",
     NULL,
     {"an .npy array of NumPy, without a name", "save it as {'NAME': array} with safetensors.numpy.save_file",
      false}},
    {"\x89HDF\r\n\x1a\n", NULL, {"an HDF5 file, such as Keras writes", from_hdf5, false}},
    {"GGUF",
     NULL,
     {"a GGUF file", "convert the original model instead: most GGUF files hold rounded weights", false}},
    {"\x08?\x12", NULL, {"an ONNX model", from_onnx, true}},
    {"\x08?\x3a", NULL, {"an ONNX model", from_onnx, true}},
    {"????TFL3",
     NULL,
     {"a model of TensorFlow Lite", "its weights are in it: give it as the model", false}},
    {"version https://git-lfs",
     NULL,
     {"a pointer of Git LFS in place of the file", "fetch the file itself: git lfs pull", false}},
};

static bool begins_with(const unsigned char *bytes, size_t n, const char *magic)
{
	size_t length = strlen(magic), i = 0;
	while (i < length && i < n && (magic[i] == '?' || (unsigned char)magic[i] == bytes[i]))
		i++;
	return i == length;
}

/* In a zip archive the first file's name has its length at byte 26 and stands at byte 30. */
static bool has_member(const unsigned char *bytes, size_t n, const char *name)
{
	size_t length = n > 30 ? bytes[26] | (size_t)bytes[27] << 8 : 0;
	if (n > 30 && length > n - 30)
		length = n - 30;
	return !*name || (length && memmem(bytes + 30, length, name, strlen(name)));
}

const struct io_foreign *io_foreign_find(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (begins_with(bytes, n, rows[i].magic) &&
		    (!rows[i].member || has_member(bytes, n, rows[i].member)))
			return &rows[i].format;
	return NULL;
}
