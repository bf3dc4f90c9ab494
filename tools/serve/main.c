/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier-serve: what `espalier serve` goes on as, with the same arguments. */
#include "serve.h"

int main(int argc, char **argv)
{
	struct options options;
	return options_read(COMMAND_SERVE, argc, argv, &options) ? serve_models(&options) : EXIT_USAGE;
}
