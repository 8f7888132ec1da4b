// SPDX-License-Identifier: Apache-2.0
#include "tap.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { SHOWN = 20 }; /* failures of one case that are printed */

struct tap tap;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int shown;

bool tap_fail(const char *file, int line, const char *format, ...)
{
	const char *base = strrchr(file, '/');
	va_list args;

	pthread_mutex_lock(&lock);
	tap.case_failed = true;
	if (shown++ < SHOWN) {
		printf("# %s:%d: ", base ? base + 1 : file, line);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		putchar('\n');
	} else if (shown == SHOWN + 1) {
		printf("# and more\n");
	}
	fflush(stdout);
	pthread_mutex_unlock(&lock);
	return false;
}

void tap_note(const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&lock);
	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}

void tap_skip(const char *why)
{
	tap.skipped = why;
}

void tap_run(const char *name, void (*body)(void))
{
	struct timespec begin, end;
	long ms;

	tap.case_failed = false;
	tap.skipped = NULL;
	shown = 0;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	body();
	clock_gettime(CLOCK_MONOTONIC, &end);
	ms = (end.tv_sec - begin.tv_sec) * 1000 +
	     (end.tv_nsec - begin.tv_nsec) / 1000000;
	tap.cases++;
	tap.failed += tap.case_failed;
	printf("%s %d - %s%s%s\n", tap.case_failed ? "not ok" : "ok", tap.cases,
	       name, tap.skipped ? " # SKIP " : "",
	       tap.skipped ? tap.skipped : "");
	printf("#   %ld.%03ld s\n", ms / 1000, ms % 1000);
	fflush(stdout);
}

int tap_end(void)
{
	printf("1..%d\n", tap.cases);
	fflush(stdout);
	return tap.failed || !tap.cases ? EXIT_FAILURE : EXIT_SUCCESS;
}

void tap_bail(const char *format, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_Exit(EXIT_FAILURE);
}
