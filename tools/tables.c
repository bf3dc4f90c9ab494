/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"
#include "tool.h"

#include "base/targets.h"

#include <limits.h>

const struct command commands[COMMANDS] = {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	{spelling, operands, least, most, summary, description, example},
#include "commands.def"
#undef COMMAND
};

_Static_assert(COMMANDS < 32, "a command has a bit of an int");

/* A bit for each command under its plain name, as options.def writes it. */
enum bits {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	NAME = 1 << COMMAND_##NAME,
#include "commands.def"
#undef COMMAND
};

const struct option_row option_rows[] = {
#define OPTION(spelling, commands, kind, member, argument, most, help)                                       \
	{spelling, commands, kind, offsetof(struct options, member), argument, most, help},
#include "options.def"
#undef OPTION
};

const int option_count = sizeof option_rows / sizeof *option_rows;

const char tool_summary[] = "Runs recursive deep-learning models, compiled for this machine.";

const char tool_about[] =
    "Espalier runs recursive deep-learning models (TreeLSTM, TreeGRU, DAG-RNN, LSTM, GRU and what is built "
    "of them) at "
    "low latency on a processor. A model is a text that says what one node of a structure computes from the "
    "states of "
    "its children, see espalier-model(7); its weights are a safetensors file. It is compiled when it is "
    "first run, for "
    "the sizes of the weights and the machine at hand.";

const char tool_exit_status[] =
    "0 when all went well, 1 when an input or output is at fault, 2 when the call is.";

const struct tool_variable tool_environment[] = {
    {"ESPALIER_BACKEND_PATH",
     "Folders, separated by colons, that are searched for back ends, and for the helper program "
     "espalier-compile, before the ones they are installed in."},
    {"XDG_CACHE_HOME", "Where the folder espalier with compiled programs is, in place of ~/.cache."},
    {"ESPALIER_MACHINE",
     "What schedules are chosen by: a description of this machine that is measured when there is none in the "
     "cache (measured, the default), only one that is there (kept), or that of a usual machine (defaults). "
     "Another word is refused. No bit of a result depends on it."},
    {"ESPALIER_PERF_MAP",
     "When it is 1, names and addresses of kernels are added to /tmp/perf-PID.map, for perf report to show."},
    {"ESPALIER_LINES",
     "When it is 1, code that is compiled has the lines of its loops, for gdb to show; the loops are kept in "
     "the folder listings of the cache."},
    {"ESPALIER_JITDUMP",
     "When it is 1, code is written with its lines to a file below .debug/jit in the folder that JITDUMPDIR "
     "names, or HOME, for perf inject --jit."},
    {"HOME", "Where .cache is, when XDG_CACHE_HOME is not set."},
    {"TMPDIR", "Where espalier bench keeps random weights while it runs, in place of /tmp."},
    {"OMP_PROC_BIND, OMP_PLACES", "Places that threads are bound to, as for any program of OpenMP."},
    {"OMP_STACKSIZE, GOMP_STACKSIZE", "Stack of a thread; when it cannot be had, one thread computes."},
    {0},
};
