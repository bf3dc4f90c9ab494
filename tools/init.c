/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier init: a model to start from. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The texts are tools/init/KIND.ra, in the order of the option's words. */
static const char *const texts[] = {
#include "init/tree.inc"
    ,
#include "init/sequence.inc"
    ,
#include "init/dag.inc"
};

static int cannot(const char *path, int why)
{
	complain("cannot write %s: %s%s", path, strerror(why),
		 why == EEXIST ? "; name a file that is not there yet" : "");
	return EXIT_INPUT;
}

/* A new file only; what could not be written whole is taken away again. */
static int write_new(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!file)
		return cannot(path, errno);
	errno = 0;
	bool ok = fputs(text, file) >= 0;
	ok = fclose(file) == 0 && ok;
	if (ok)
		return 0;
	int why = errno ? errno : EIO;
	unlink(path);
	return cannot(path, why);
}

int command_init(const struct options *options)
{
	const char *path = options->operands ? options->operand[0] : "-", *text = texts[options->kind];
	if (strcmp(path, "-") == 0) {
		fputs(text, stdout);
		return 0;
	}
	int status = write_new(path, text);
	if (!status)
		printf("%s: a model to start from; 'espalier check %s' checks it\n", path, path);
	return status;
}
