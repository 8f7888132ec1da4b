// SPDX-License-Identifier: Apache-2.0
/* vmmc_stat - the counters of every block of the card. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <prawn.h>

#include "device.h"

#define COUNTERS_MAX 1024

struct sample {
	unsigned int count;
	char name[COUNTERS_MAX][PRAWN_COUNTER_NAME_BYTES];
	uint64_t value[COUNTERS_MAX];
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: vmmc_stat [-d FILE] [-i SECONDS [-c COUNT]] [-a] "
		"[--json]\n"
		"Counters of the card, those that are not zero.\n"
		"  -a, --all               also those that are zero\n"
		"  -i, --interval SECONDS  then what was added in each "
		"interval\n"
		"  -c, --count COUNT       intervals (default: until stopped)\n"
		"  -d, --device FILE       default $VMMC_DEVICE, /dev/prawn0\n"
		"      --json              one JSON object for each report\n"
		"  -h, --help              this text\n");
}

static int take(int fd, struct sample *s)
{
	struct prawn_counter c;

	for (s->count = 0; s->count < COUNTERS_MAX; s->count++) {
		memset(&c, 0, sizeof(c));
		c.scope = PRAWN_COUNTER_CARD;
		c.index = s->count;
		if (ioctl(fd, PRAWN_IOC_COUNTER, &c))
			return errno == ENOENT ? 0 : -errno;
		memcpy(s->name[s->count], c.name, sizeof(c.name));
		s->name[s->count][sizeof(c.name) - 1] = 0;
		s->value[s->count] = c.value;
	}
	return 0;
}

static void report(const struct sample *s, const struct sample *before,
		   bool all, bool json)
{
	const char *comma = "";

	if (json)
		putchar('{');
	for (unsigned int i = 0; i < s->count; i++) {
		uint64_t v = s->value[i] - (before ? before->value[i] : 0);

		if (json) {
			printf("%s\"%s\":%" PRIu64, comma, s->name[i], v);
			comma = ",";
		} else if (v || all) {
			printf("%-40s %20" PRIu64 "\n", s->name[i], v);
		}
	}
	puts(json ? "}" : "");
	fflush(stdout);
}

static unsigned long number(const char *what, const char *text)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || !v || v > INT_MAX || *text < '0' || *text > '9') {
		fprintf(stderr, "vmmc_stat: %s '%s': want a positive number\n",
			what, text);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'c' },
		{ "device", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static struct sample sample[2];
	const char *device = NULL;
	unsigned long interval = 0, count = 0;
	bool all = false, json = false;
	int c, fd, error;

	while ((c = getopt_long(argc, argv, "ai:c:d:h", longs, NULL)) != -1) {
		switch (c) {
		case 'a':
			all = true;
			break;
		case 'i':
			interval = number("interval", optarg);
			break;
		case 'c':
			count = number("count", optarg);
			break;
		case 'd':
			device = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "vmmc_stat: extra argument '%s': try --help\n",
			argv[optind]);
		return 2;
	}
	if (count && !interval) {
		fprintf(stderr, "vmmc_stat: --count without --interval: "
				"try --help\n");
		return 2;
	}
	fd = open_device("vmmc_stat", &device);
	error = take(fd, &sample[0]);
	if (!error)
		report(&sample[0], NULL, all, json);
	for (unsigned long i = 0; !error && interval && (!count || i < count);
	     i++) {
		sleep((unsigned int)interval);
		error = take(fd, &sample[(i + 1) % 2]);
		if (!error)
			report(&sample[(i + 1) % 2], &sample[i % 2], all, json);
	}
	if (error) {
		fprintf(stderr, "vmmc_stat: %s: %s\n", device,
			strerror(-error));
		return 1;
	}
	close(fd);
	return 0;
}
