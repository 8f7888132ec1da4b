// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int open_device(const char *tool, const char **device)
{
	int fd;

	if (!*device)
		*device = getenv("VMMC_DEVICE");
	if (!*device)
		*device = "/dev/prawn0";
	fd = open(*device, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr,
			"%s: %s: %s: is prawn.ko loaded, are you in group "
			"prawn?\n",
			tool, *device, strerror(errno));
		exit(1);
	}
	return fd;
}
