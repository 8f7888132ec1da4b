/* SPDX-License-Identifier: Apache-2.0 */
/* What the measuring tools share: figures, patterns, options, output. */
#ifndef PRAWN_TOOLS_MEASURE_H
#define PRAWN_TOOLS_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SIZES_MAX 32

struct options {
	const char *tool;
	const char *device;  /* NULL: the library's default */
	const char *service; /* name under which the server exports */
	bool server;
	unsigned int peer; /* client: node of the server */
	size_t size[SIZES_MAX];
	unsigned int sizes;
	unsigned long iterations;
	int timeout_ms; /* for anything the peer must answer */
	bool json;
	bool verify;
	bool quiet;
};

/* What a tool sets before it parses. */
struct tool_defaults {
	const char *tool;
	const char *summary;
	size_t size;
	size_t all_from, all_to; /* -a: powers of two from, to */
	size_t size_max;
	unsigned long iterations;
};

/* Exits with 0 after --help, with 2 and one line after a bad option. */
void parse_options(struct options *o, const struct tool_defaults *d, int argc,
		   char **argv);

/* min/median/p99/max of samples (nearest rank); sorts them. n > 0. */
struct figures {
	double min, median, p99, max;
};
struct figures figures_of(double *sample, size_t n);

/* One row of a result; negative MBps, ns == NULL: does not apply. */
struct row {
	const char *tool;
	size_t bytes;
	unsigned long iterations;
	bool verified;
	bool has_ns;
	struct figures model_ns, wall_ns;
	double model_MBps, wall_MBps;
};

/* Wall and model figures in tables of their own, or one JSON object. */
void print_rows(FILE *f, const struct options *o, unsigned int node,
		const struct row *row, size_t n, bool ok);

/* Data that tells where and in which round it belongs. */
void pattern_fill(void *buffer, size_t length, uint64_t seed);
/* Bytes that differ. */
size_t pattern_check(const void *buffer, size_t length, uint64_t seed);
uint64_t pattern_seed(size_t bytes, uint64_t round, uint64_t slot,
		      bool from_server);

uint64_t wall_ns(void);

/* One line on stderr, exit status 1. */
void fail(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

#endif
