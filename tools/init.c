/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier init: a model to start from. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The files tools/init/KIND.ra, in the order of the words of --kind. */
static const char *const texts[] = {
#include "init/tree.inc"
    ,
#include "init/sequence.inc"
    ,
#include "init/dag.inc"
    ,
#include "init/none.inc"
};

static int refuse_file(const char *path, int why)
{
	complain("cannot write %s: %s%s", path, strerror(why),
		 why == EEXIST ? "; name a file that is not there yet" : "");
	return EXIT_INPUT;
}

/* Creates a file that is not there yet, and removes it when writing fails. */
static int write_new(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		return refuse_file(path, errno);
	errno = 0;
	bool ok = fputs(text, file) >= 0;
	ok = fclose(file) == 0 && ok;
	if (ok)
		return 0;
	int why = errno ? errno : EIO;
	unlink(path);
	return refuse_file(path, why);
}

/* The caller frees the text. */
static int make_text(const struct options *options, char **text)
{
	size_t length;
	FILE *to = open_memstream(text, &length);
	if (!to) {
		complain("no memory for a model");
		return EXIT_INPUT;
	}
	int status = options->weights ? skeleton_write(options, to) : 0;
	if (!options->weights)
		fputs(texts[options->kind], to);
	if (fclose(to) == 0)
		return status;
	complain("no memory for a model");
	return EXIT_INPUT;
}

static int put_text(const char *path, const char *text)
{
	if (strcmp(path, "-") == 0) {
		fputs(text, stdout);
		return 0;
	}
	int status = write_new(path, text);
	if (!status)
		printf("%s: a model to start from; 'espalier check %s' checks it\n", path, path);
	return status;
}

int command_init(const struct options *options)
{
	char *text = NULL;
	int status = make_text(options, &text);
	if (!status)
		status = put_text(options->operands ? options->operand[0] : "-", text);
	free(text);
	return status;
}
