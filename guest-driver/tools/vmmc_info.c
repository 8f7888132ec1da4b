// SPDX-License-Identifier: Apache-2.0
/* vmmc_info - what the card and this process's context are. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <prawn.h>
#include <prawn_hw.h>

#include "device.h"

static const struct {
	uint64_t mask;
	const char *name;
} features[] = {
	{ PRAWN_FEATURES_CHECKER_MASK, "checker" },
	{ PRAWN_FEATURES_PROXY_MASK, "proxy" },
	{ PRAWN_FEATURES_UPDATE_MASK, "update-window" },
	{ PRAWN_FEATURES_SNOOP_MASK, "snoop" },
	{ PRAWN_FEATURES_FIRMWARE_MASK, "firmware" },
	{ PRAWN_FEATURES_RETRANSMIT_MASK, "retransmit" },
	{ PRAWN_FEATURES_PTP_MASK, "ptp" },
};
static const char *const time_modes[] = { "free-running", "synchronized",
					  "replay", "unknown" };

static void usage(FILE *f)
{
	fprintf(f, "usage: vmmc_info [-d FILE] [--json]\n"
		   "What a card is: its node, the fabric, limits, features.\n"
		   "  -d, --device FILE  default $VMMC_DEVICE, /dev/prawn0\n"
		   "      --json         one JSON object\n"
		   "  -h, --help         this text\n");
}

static void print_text(const char *device, const struct prawn_query *q)
{
	printf("device       %s\n", device);
	printf("node         %u of %u\n", q->node, q->nodes);
	printf("epoch        %u\n", q->epoch);
	printf("card ABI     %u.%u\n", q->card_abi >> 16, q->card_abi & 0xffff);
	printf("driver ABI   %u\n", q->uapi);
	printf("time mode    %s%s\n",
	       time_modes[q->time_mode & PRAWN_TIME_MODE_MODE_MASK],
	       q->time_mode & PRAWN_TIME_MODE_SKEWED_MASK ? " (skewed)" : "");
	printf("profile      crc %08" PRIx32 "\n", q->profile);
	printf("contexts     %u\n", q->contexts);
	printf("imports      %u\n", q->opt_entries);
	printf("exports      %u\n", q->ipt_entries);
	printf("vectors      %u\n", q->vectors);
	printf("max message  %" PRIu64 " bytes\n", (uint64_t)q->max_message);
	if (q->uapi >= 2 && q->ptp_index != PRAWN_NO_PTP)
		printf("PTP clock    /dev/ptp%u\n", q->ptp_index);
	else
		printf("PTP clock    none\n");
	printf("features    ");
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		if (q->features & features[i].mask)
			printf(" %s", features[i].name);
	printf("\n");
}

static void print_json(const char *device, const struct prawn_query *q)
{
	const char *comma = "";

	printf("{\"device\":\"%s\",\"node\":%u,\"nodes\":%u,\"epoch\":%u,"
	       "\"card_abi\":\"%u.%u\",\"driver_abi\":%u,\"time_mode\":\"%s\","
	       "\"skewed\":%s,\"profile_crc\":%u,\"contexts\":%u,\"imports\":%"
	       "u,"
	       "\"exports\":%u,\"vectors\":%u,\"max_message\":%" PRIu64 ",",
	       device, q->node, q->nodes, q->epoch, q->card_abi >> 16,
	       q->card_abi & 0xffff, q->uapi,
	       time_modes[q->time_mode & PRAWN_TIME_MODE_MODE_MASK],
	       q->time_mode & PRAWN_TIME_MODE_SKEWED_MASK ? "true" : "false",
	       q->profile, q->contexts, q->opt_entries, q->ipt_entries,
	       q->vectors, (uint64_t)q->max_message);
	if (q->uapi >= 2 && q->ptp_index != PRAWN_NO_PTP)
		printf("\"ptp_index\":%u,", q->ptp_index);
	else
		printf("\"ptp_index\":null,");
	printf("\"features\":[");
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++) {
		if (!(q->features & features[i].mask))
			continue;
		printf("%s\"%s\"", comma, features[i].name);
		comma = ",";
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *device = NULL;
	struct prawn_query q;
	bool json = false;
	int c, fd;

	while ((c = getopt_long(argc, argv, "d:h", longs, NULL)) != -1) {
		switch (c) {
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
		fprintf(stderr, "vmmc_info: extra argument '%s': try --help\n",
			argv[optind]);
		return 2;
	}
	fd = open_device("vmmc_info", &device);
	memset(&q, 0, sizeof(q));
	if (ioctl(fd, PRAWN_IOC_QUERY, &q)) {
		fprintf(stderr, "vmmc_info: %s: %s\n", device, strerror(errno));
		return 1;
	}
	if (json)
		print_json(device, &q);
	else
		print_text(device, &q);
	close(fd);
	return 0;
}
