// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *program = "vmmc";

void fail(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", program);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void usage(FILE *f, const struct tool_defaults *d)
{
	fprintf(f,
		"usage: %s [options]            wait for a client (server)\n"
		"       %s [options] PEER       measure with the server on "
		"node PEER\n"
		"%s\n"
		"\n"
		"  -s, --size BYTES        message size (default %zu, at most "
		"%zu)\n"
		"  -a, --all               sizes %zu to %zu by powers of two\n"
		"  -n, --iterations N      messages of each size (default "
		"%lu)\n"
		"  -d, --device FILE       card (default $VMMC_DEVICE, "
		"/dev/prawn0)\n"
		"  -p, --service NAME      name of the server's export "
		"(default %s)\n"
		"  -t, --timeout SECONDS   for any answer of the peer (default "
		"60)\n"
		"      --no-verify         do not check data at the receiver\n"
		"  -q, --quiet             results only\n"
		"      --json              one JSON object instead of tables\n"
		"  -h, --help              this text\n"
		"\n"
		"Sizes and iterations are the client's choice; a server needs "
		"none.\n"
		"Exit status: 0 all data right, 1 not, or an error, 2 bad "
		"usage.\n",
		d->tool, d->tool, d->summary, d->size, d->size_max, d->all_from,
		d->all_to, d->iterations, d->tool);
}

static void bad_usage(const char *what, const char *value, const char *mend)
{
	fprintf(stderr, "%s: %s '%s': %s\n", program, what, value, mend);
	exit(2);
}

static unsigned long long number(const char *what, const char *text,
				 unsigned long long min, unsigned long long max)
{
	char *end;
	unsigned long long v;
	unsigned int shift = 0;
	char mend[64];

	errno = 0;
	v = strtoull(text, &end, 0);
	if (end != text && *end && !end[1]) {
		shift = *end == 'k' || *end == 'K'   ? 10
			: *end == 'm' || *end == 'M' ? 20
			: *end == 'g' || *end == 'G' ? 30
						     : 0;
		if (shift)
			end++;
	}
	if (errno || *end || *text < '0' || *text > '9' || v > (max >> shift) ||
	    v << shift < min) {
		snprintf(mend, sizeof(mend), "want a number from %llu to %llu",
			 min, max);
		bad_usage(what, text, mend);
	}
	return v << shift;
}

void parse_options(struct options *o, const struct tool_defaults *d, int argc,
		   char **argv)
{
	enum { NO_VERIFY = 256, JSON };
	static const struct option longs[] = {
		{ "size", required_argument, NULL, 's' },
		{ "all", no_argument, NULL, 'a' },
		{ "iterations", required_argument, NULL, 'n' },
		{ "device", required_argument, NULL, 'd' },
		{ "service", required_argument, NULL, 'p' },
		{ "timeout", required_argument, NULL, 't' },
		{ "no-verify", no_argument, NULL, NO_VERIFY },
		{ "quiet", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	program = d->tool;
	*o = (struct options){
		.tool = d->tool,
		.service = d->tool,
		.size = { d->size },
		.sizes = 1,
		.iterations = d->iterations,
		.timeout_ms = 60000,
		.verify = true,
	};
	while ((c = getopt_long(argc, argv, "s:an:d:p:t:qh", longs, NULL)) !=
	       -1) {
		switch (c) {
		case 's':
			o->size[0] = number("size", optarg, 0, d->size_max);
			o->sizes = 1;
			break;
		case 'a':
			o->sizes = 0;
			for (size_t s = d->all_from; s <= d->all_to; s *= 2)
				o->size[o->sizes++] = s;
			break;
		case 'n':
			o->iterations =
				number("iterations", optarg, 1, 100000000);
			break;
		case 'd':
			o->device = optarg;
			break;
		case 'p':
			if (!*optarg || strlen(optarg) > 40)
				bad_usage("service", optarg,
					  "want 1 to 40 characters");
			o->service = optarg;
			break;
		case 't':
			o->timeout_ms =
				(int)number("timeout", optarg, 1, 1000000) *
				1000;
			break;
		case NO_VERIFY:
			o->verify = false;
			break;
		case 'q':
			o->quiet = true;
			break;
		case JSON:
			o->json = true;
			break;
		case 'h':
			usage(stdout, d);
			exit(0);
		default:
			fprintf(stderr, "%s: try --help\n", program);
			exit(2);
		}
	}
	o->server = optind == argc;
	if (!o->server) {
		o->peer =
			(unsigned int)number("peer", argv[optind++], 0, 65535);
		if (optind != argc)
			bad_usage("extra argument", argv[optind], "try --help");
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct figures figures_of(double *sample, size_t n)
{
	size_t p99 = (n * 99 + 99) / 100;

	qsort(sample, n, sizeof(*sample), compare);
	return (struct figures){
		.min = sample[0],
		.median = n % 2 ? sample[n / 2]
				: (sample[n / 2 - 1] + sample[n / 2]) / 2,
		.p99 = sample[p99 - 1],
		.max = sample[n - 1],
	};
}

static void json_side(FILE *f, const char *name, const struct row *r,
		      const struct figures *ns, double MBps)
{
	fprintf(f, ",\"%s\":{", name);
	if (r->has_ns)
		fprintf(f,
			"\"ns\":{\"min\":%.1f,\"median\":%.1f,\"p99\":%.1f,"
			"\"max\":%.1f}%s",
			ns->min, ns->median, ns->p99, ns->max,
			MBps >= 0 ? "," : "");
	if (MBps >= 0)
		fprintf(f, "\"MBps\":%.3f", MBps);
	fputc('}', f);
}

static void table(FILE *f, const char *title, const struct row *row, size_t n,
		  bool model)
{
	fprintf(f, "%s\n", title);
	if (row[0].has_ns)
		fprintf(f, "%10s %10s %9s %12s %12s %12s %12s\n", "bytes",
			"messages", "verified", "min[us]", "median[us]",
			"p99[us]", "max[us]");
	else
		fprintf(f, "%10s %10s %9s %12s\n", "bytes", "messages",
			"verified", "MB/s");
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &row[i];
		const struct figures *ns = model ? &r->model_ns : &r->wall_ns;

		fprintf(f, "%10zu %10lu %9s", r->bytes, r->iterations,
			r->verified ? "yes" : "NO");
		if (r->has_ns)
			fprintf(f, " %12.3f %12.3f %12.3f %12.3f\n",
				ns->min / 1e3, ns->median / 1e3, ns->p99 / 1e3,
				ns->max / 1e3);
		else
			fprintf(f, " %12.2f\n",
				model ? r->model_MBps : r->wall_MBps);
	}
}

void print_rows(FILE *f, const struct options *o, unsigned int node,
		const struct row *row, size_t n, bool ok)
{
	if (!o->json) {
		if (n) {
			table(f, "wall clock (about the simulator)", row, n,
			      false);
			table(f, "\nmodel time (the card)", row, n, true);
		}
		fflush(f);
		return;
	}
	fprintf(f, "{\"tool\":\"%s\",\"role\":\"%s\",\"node\":%u,", o->tool,
		o->server ? "server" : "client", node);
	if (!o->server)
		fprintf(f, "\"peer\":%u,", o->peer);
	fprintf(f, "\"ok\":%s,\"results\":[", ok ? "true" : "false");
	for (size_t i = 0; i < n; i++) {
		fprintf(f,
			"%s{\"tool\":\"%s\",\"path\":\"queue\",\"update\":"
			"\"deliberate\",\"bytes\":%zu,\"iterations\":%lu,"
			"\"verified\":%s",
			i ? "," : "", row[i].tool, row[i].bytes,
			row[i].iterations, row[i].verified ? "true" : "false");
		json_side(f, "model", &row[i], &row[i].model_ns,
			  row[i].model_MBps);
		json_side(f, "wall", &row[i], &row[i].wall_ns,
			  row[i].wall_MBps);
		fputc('}', f);
	}
	fprintf(f, "]}\n");
	fflush(f);
}

/* splitmix64 (Steele, Lea, Flood 2014) of the position: cheap and without
 * period, so that any byte out of place shows.
 */
static uint64_t word(uint64_t seed, uint64_t index)
{
	uint64_t z = seed + index * 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	return z ^ (z >> 27);
}

void pattern_fill(void *buffer, size_t length, uint64_t seed)
{
	unsigned char *p = buffer;
	size_t i;
	uint64_t w;

	for (i = 0; i < length / 8; i++) {
		w = word(seed, i);
		memcpy(p + i * 8, &w, 8);
	}
	w = word(seed, i);
	memcpy(p + i * 8, &w, length % 8);
}

size_t pattern_check(const void *buffer, size_t length, uint64_t seed)
{
	const unsigned char *p = buffer;
	size_t bad = 0;

	for (size_t i = 0; i * 8 < length; i++) {
		uint64_t want = word(seed, i);
		size_t n = length - i * 8 < 8 ? length - i * 8 : 8;

		if (!memcmp(p + i * 8, &want, n))
			continue;
		for (size_t k = 0; k < n; k++)
			bad += p[i * 8 + k] != ((unsigned char *)&want)[k];
	}
	return bad;
}

uint64_t pattern_seed(size_t bytes, uint64_t round, uint64_t slot,
		      bool from_server)
{
	return word(bytes * 2 + from_server, (round << 16) + slot + 1);
}

uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
