/* Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0 */
/* The two protocols of systemd that need no library of its: sockets that it passes (sd_listen_fds(3)), and datagrams
 * that tell it how the service is (sd_notify(3)). */
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The variables are for this process alone: a helper that it starts must not see them. */
int systemd_sockets(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	int n = pid && count && strtol(pid, NULL, 10) == (long)getpid() ? atoi(count) : 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return n < 0 ? 0 : n;
}

void systemd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	if (n < 2 || n >= sizeof to.sun_path || (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, n);
	if (*path == '@')
		to.sun_path[0] = 0; /* a name that is no file */
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
		   offsetof(struct sockaddr_un, sun_path) + n) < 0)
		complain("cannot tell systemd: %s", strerror(errno));
	close(fd);
}
