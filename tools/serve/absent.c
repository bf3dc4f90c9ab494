/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* espalier serve where libmicrohttpd was not there to build it with. */
#include "tool.h"

int command_serve(const struct options *o)
{
	(void)o;
	complain("serve is not part of this build: it was made without libmicrohttpd (see ./configure --help)");
	return EXIT_USAGE;
}
