/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <errno.h>
#include <string.h>

static int (*const functions[COMMANDS])(const struct options *) = {
#define COMMAND(NAME, function, spelling, operands, least, most, summary, description, example)              \
	command_##function,
#include "commands.def"
#undef COMMAND
};

static bool find_command(const char *name, enum command_id *id)
{
	struct nearest nearest = {.wanted = name};
	for (int i = 0; i < COMMANDS; i++) {
		nearest_offer(&nearest, commands[i].name);
		if (strcmp(commands[i].name, name) == 0) {
			*id = i;
			return true;
		}
	}
	return complain_unknown("command", &nearest, "espalier help");
}

static int widest_name(void)
{
	int width = 0;
	for (int i = 0; i < COMMANDS; i++)
		if ((int)strlen(commands[i].name) > width)
			width = (int)strlen(commands[i].name);
	return width;
}

static void print_overview(FILE *to)
{
	fprintf(to, "usage: espalier COMMAND [OPERAND]... [OPTION]...\n%s\n\n", tool_summary);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-*s  %s\n", widest_name(), commands[i].name, commands[i].summary);
	fprintf(to, "\nExit status: %s\n", tool_exit_status);
}

int command_help(const struct options *options)
{
	enum command_id id;
	if (!options->operands)
		print_overview(stdout);
	else if (find_command(options->operand[0], &id))
		options_help(id, stdout);
	else
		return EXIT_USAGE;
	return 0;
}

static int run_command(enum command_id id, int argc, char **argv)
{
	struct options options;
	if (!options_read(id, argc, argv, &options))
		return EXIT_USAGE;
	options.arguments = argv;
	if (!options.help)
		return functions[id](&options);
	options_help(id, stdout);
	return 0;
}

static int run_arguments(int argc, char **argv)
{
	enum command_id id;
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("espalier %s\n", esp_version());
		return 0;
	}
	if (strcmp(argv[1], "--help") == 0)
		return run_command(COMMAND_HELP, argc - 1, argv + 1);
	return find_command(argv[1], &id) ? run_command(id, argc - 1, argv + 1) : EXIT_USAGE;
}

/* Flushes stdout: output that was buffered may still fail to be written. */
static bool stdout_is_written(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	return complain("cannot write standard output: %s", strerror(errno ? errno : EIO));
}

int main(int argc, char **argv)
{
	int status = run_arguments(argc, argv);
	if (!status && !stdout_is_written())
		status = EXIT_INPUT;
	return status;
}
