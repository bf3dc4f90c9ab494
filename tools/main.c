#include "tool.h"

#include <errno.h>
#include <string.h>

static const struct command commands[] = {
    {"run", COMMAND_RUN, "MODEL.ra INPUT.ptb", 2, 2, "Runs a model over a file of bracketed trees.",
     command_run},
    {"check", COMMAND_CHECK, "MODEL.ra [INPUT.ptb]", 1, 2,
     "Checks a model, with --weights its weights, and with both a file of bracketed trees.", command_check},
    {"dump", COMMAND_DUMP, "[STAGE MODEL.ra]", 0, 2,
     "Writes the model after a stage of the compiler; without operands lists the stages.", command_dump},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	complain("there is no command '%s' (see 'espalier help')", name);
	return NULL;
}

static void print_overview(FILE *to)
{
	fputs(
	    "usage: espalier COMMAND [OPERAND]... [OPTION]...\n"
	    "Runs recursive deep-learning models, compiled for this machine.\n\n",
	    to);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-6s %s\n", commands[i].name, commands[i].summary);
	fputs(
	    "  help   Explains a command: espalier help [COMMAND].\n\n"
	    "Exit status: 0 when all went well, 1 when an input or output is at fault, 2 when the call is.\n",
	    to);
}

static int help(int argc, char **argv)
{
	if (argc < 3) {
		print_overview(stdout);
		return 0;
	}
	const struct command *c = find(argv[2]);
	if (!c)
		return EXIT_USAGE;
	options_help(c, stdout);
	return 0;
}

static int run_command(const struct command *c, int argc, char **argv)
{
	struct options options;
	if (!options_read(c, argc, argv, &options))
		return EXIT_USAGE;
	if (!options.help)
		return c->run(&options);
	options_help(c, stdout);
	return 0;
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		print_overview(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("espalier %s\n", esp_version());
		return 0;
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
		return help(argc, argv);
	const struct command *c = find(argv[1]);
	return c ? run_command(c, argc - 1, argv + 1) : EXIT_USAGE;
}

/* What a command printed may still fail to reach its reader. */
static bool stdout_is_written(void)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	return complain("cannot write standard output: %s", strerror(errno ? errno : EIO));
}

int main(int argc, char **argv)
{
	int status = dispatch(argc, argv);
	if (!status && !stdout_is_written())
		status = EXIT_INPUT;
	return status;
}
