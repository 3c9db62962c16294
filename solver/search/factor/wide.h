/* wide.h - functions that are compiled for wider vectors, too, and taken where the
 * processor has them. Internal to this folder.
 *
 * With gcc and clang on x86-64 WIDE and WIDEST are defined, attributes of such functions,
 * and HAS_WIDE and HAS_WIDEST tell whether they may be called; elsewhere none of these
 * is. */
#ifndef TOPT_SEARCH_WIDE_H
#define TOPT_SEARCH_WIDE_H

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE       __attribute__((target("avx2")))
#define WIDEST     __attribute__((target("avx512f")))
#define HAS_WIDE   __builtin_cpu_supports("avx2")
#define HAS_WIDEST __builtin_cpu_supports("avx512f")
#endif

#endif
