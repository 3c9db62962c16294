/* sizes.h - how many random problems a test tries, by the build that it is in.  The
 * optimised build tries all of them.  The others look for what needs no numbers: a
 * sanitizer sees a bad access or a race wherever the code is run at all, and makes it
 * several times as slow, the thread sanitizer ten times and more.
 *
 *     enum { PROBLEMS = TOPT_TEST_SIZE(1500) };    1500, 375, 150, 75
 *
 * Every kind of problem and every option has to be met in the smallest of these sizes
 * too; where that takes more than a share TOPT_TEST_SIZE_FROM says how many.  To try all
 * of them in any build:
 *
 *     cmake --preset tsan -DCMAKE_C_FLAGS=-DTOPT_TEST_PART=1 */
#ifndef TOPT_TEST_SIZES_H
#define TOPT_TEST_SIZES_H

#ifdef __has_feature /* clang's way to tell */
#if __has_feature(thread_sanitizer)
#define TOPT_TEST_THREAD_SANITIZER
#elif __has_feature(address_sanitizer)
#define TOPT_TEST_ADDRESS_SANITIZER
#endif
#endif
#ifdef __SANITIZE_THREAD__ /* and gcc's */
#define TOPT_TEST_THREAD_SANITIZER
#elif defined __SANITIZE_ADDRESS__
#define TOPT_TEST_ADDRESS_SANITIZER
#endif

/* One of so many is tried. */
#ifndef TOPT_TEST_PART
#if defined TOPT_TEST_THREAD_SANITIZER
#define TOPT_TEST_PART 20
#elif defined TOPT_TEST_ADDRESS_SANITIZER
#define TOPT_TEST_PART 10
#elif !defined __OPTIMIZE__
#define TOPT_TEST_PART 4
#else
#define TOPT_TEST_PART 1
#endif
#endif

/* A part of 'all', at least 1; also for what is done with every so many problems. */
#define TOPT_TEST_SIZE(all) (((all) + TOPT_TEST_PART - 1) / TOPT_TEST_PART)

/* A part of 'all', at least 'from'. */
#define TOPT_TEST_SIZE_FROM(all, from)                                                   \
    (TOPT_TEST_SIZE(all) < (from) ? (from) : TOPT_TEST_SIZE(all))

#endif
