/* tap.h - the few lines a unit test needs: checks that count, and TAP output for ctest.
 *
 *     int main(void) { ok(1 + 1 == 2, "adds"); return done_testing(); }
 */
#ifndef TOPT_TAP_H
#define TOPT_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int tap_count, tap_failed;

/* Record a check; prints "ok N - text" and, on failure, where it stands.  Returns 'good'. */
#define ok(good, ...) tap_check((good) ? 1 : 0, #good, __FILE__, __LINE__, __VA_ARGS__)

/* Two integers that must be equal, shown when they are not. */
#define is_int(got, want, ...)                                                           \
    tap_is_int((long long)(got), (long long)(want), __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 5, 6), unused)) static int
tap_check(int good, const char *expr, const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s %d - ", good ? "ok" : "not ok", ++tap_count);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    if (!good) {
        tap_failed++;
        printf("#   %s:%d: %s\n", file, line, expr);
    }
    fflush(stdout);
    return good;
}

__attribute__((format(printf, 5, 6), unused)) static int
tap_is_int(long long got, long long want, const char *file, int line, const char *fmt,
           ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    int good = tap_check(got == want, "integers differ", file, line, "%s", text);
    if (!good)
        printf("#   got %lld, want %lld\n", got, want);
    return good;
}

__attribute__((unused)) static int done_testing(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The whole test can't run here: say why and tell ctest. */
__attribute__((unused, noreturn)) static void skip_all(const char *why)
{
    printf("1..0 # skipped: %s\n", why);
    exit(77);
}

#endif
