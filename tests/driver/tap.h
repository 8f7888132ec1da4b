/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TAP, the output format of the kernel's selftests, for programs that run in a
 * guest. A case is a function; it fails when an expectation in it does. A child
 * process that a case starts reports by its exit status, not by expectations.
 */
#ifndef PRAWN_DRIVER_TAP_H
#define PRAWN_DRIVER_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct tap {
	int cases;
	int failed;
	bool case_failed;
	const char *skipped;
};

extern struct tap tap;

/* Prints why, fails the case that is running, returns false. Several threads
 * may. */
__attribute__((format(printf, 3, 4))) bool tap_fail(const char *file, int line,
						    const char *format, ...);

/* A line for people. */
__attribute__((format(printf, 1, 2))) void tap_note(const char *format, ...);

/* The rest of the case cannot run here; shown in the output, counted as ok. */
void tap_skip(const char *why);

void tap_run(const char *name, void (*body)(void));

/* Prints the plan; what main() is to return. */
int tap_end(void);

/* Nothing further makes sense. */
__attribute__((format(printf, 1, 2), noreturn)) void
tap_bail(const char *format, ...);

#define FAIL(...) tap_fail(__FILE__, __LINE__, __VA_ARGS__)

/* True if the condition holds, so that a case can stop where it must. */
#define EXPECT(condition, ...) ((condition) ? true : FAIL(__VA_ARGS__))

#define EXPECT_EQ(got, want) \
	tap_equal(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))

static inline bool tap_equal(const char *file, int line, const char *text,
			     long long got, long long want)
{
	return got == want ||
	       tap_fail(file, line, "%s is %lld, not %lld", text, got, want);
}

#endif
