/* Mutated cost files: the reader refuses or reads them, from memory and as a stream
 * alike, and what it reads can be solved; it never crashes, leaks or hangs.
 * Deterministic; meant for sanitized builds too.  With an argument: for so many seconds of
 * the processor; with a second, from that seed on, so that several may run side by side. */
#include "random_problem.h"
#include "costs_text.h"
#include "tap.h"

#include <ctype.h>
#include <time.h>

enum { MAX_TEXT = 1 << 14 };

static const char *const tokens[] = {
    "[",     "]",         "{",      "}",    ",",    ":",
    "\"",    "-",         "0",      "1",    "9",    "[]",
    "[[]]",  "[1,2]",     "1e9",    "null", "true", "9223372036854775807",
    "\"a\"", "\"from\":", "\\u0000"};

static size_t mutate(struct rng *r, char *s, size_t n)
{
    size_t at = n ? (size_t)rng_below(r, (int)n) : 0;
    const char *t = tokens[rng_below(r, (int)(sizeof tokens / sizeof tokens[0]))];
    size_t len = strlen(t), cut = (size_t)rng_below(r, 24);
    switch (rng_below(r, 8)) {
    case 0: /* a byte */
        if (n)
            s[at] = (char)rng_next(r);
        return n;
    case 1: /* drop a piece */
        cut = cut < n - at ? cut : n - at;
        memmove(s + at, s + at + cut, n - at - cut);
        return n - cut;
    case 2: /* put in a token */
        if (n + len > MAX_TEXT)
            return n;
        memmove(s + at + len, s + at, n - at);
        memcpy(s + at, t, len);
        return n + len;
    case 3: /* repeat a piece */
        cut = cut < n - at ? cut : n - at;
        if (n + cut > MAX_TEXT)
            return n;
        memmove(s + at + cut, s + at, n - at);
        return n + cut;
    default: /* another digit: costs and names that can still be read */
        while (at < n && !isdigit((unsigned char)s[at]))
            at++;
        if (at < n)
            s[at] = (char)('0' + rng_below(r, 10));
        return n;
    }
}

static char *seed_text(uint64_t seed)
{
    struct rng r = {seed};
    struct random_problem g;
    struct random_spec spec = {.shape = (enum shape)(seed % SHAPES),
                               .nops = 4,
                               .max_configs = 3,
                               .max_alternatives = 2,
                               .max_cost = seed % 3 ? 99 : INT64_MAX};
    char *text = NULL;
    problem_make(&g, &r, spec);
    for (int i = 0; i < g.p.nops; i++)
        ((struct topt_search_op *)g.p.op)[i].name =
            (const char *[]){"a", "b2", "\"\xc3\xa9\n", "b10"}[i];
    if (topt_costs_write(&g.p, &text, NULL))
        abort();
    problem_free(&g);
    return text;
}

/* The same verdict, in the same words, where the text comes from a file. */
static int streams_alike(const char *text, size_t len, int refused, const char *words)
{
    struct topt_costs_file *f;
    struct topt_error err = {0};
    FILE *file = len ? fmemopen((void *)text, len, "rb") : NULL;
    if (!file)
        return 1;
    int rc = topt_costs_load(file, &f, &err);
    fclose(file);
    if (!rc)
        topt_costs_destroy(f);
    if (!rc == !refused && (!rc || !strcmp(err.text, words)))
        return 1;
    printf("# '%s' but as a stream '%s'\n", words, err.text);
    return 0;
}

/* By every search, with limits and tolerances that the seed picks: an answer or a limit. */
static int solves(const struct topt_search_problem *p, uint64_t seed)
{
    static const double epsilon[] = {0, 0.01, 1e9};
    struct rng r = {seed};
    int good = 1;
    for (const char *const *a = topt_search_algorithms(); *a && good; a++) {
        struct topt_search_options o = {.algorithm = *a,
                                        .epsilon = epsilon[rng_below(&r, 3)],
                                        .memory_limit =
                                            rng_below(&r, 3) ? 0 : 1 + rng_below(&r, 500),
                                        .max_entries = rng_below(&r, 4) ? 0 : 5,
                                        .max_work = rng_below(&r, 4) ? 100000 : 20,
                                        .fastest = rng_below(&r, 3) == 0,
                                        .threads = rng_below(&r, 40) ? 1 : 2};
        struct topt_frontier *front = NULL;
        struct topt_error err = {0};
        if (topt_search(p, &o, &front, &err))
            good = err.code == TOPT_ERR_LIMIT;
        topt_frontier_destroy(front);
    }
    return good;
}

/* 1 read and solved, 0 refused, -1 wrong. */
static int try(const char *text, size_t len, uint64_t seed)
{
    struct topt_costs_file *f;
    struct topt_error err = {0};
    int refused = read_costs(text, len, &f, &err) != 0;
    if (!streams_alike(text, len, refused, err.text))
        return -1;
    if (refused)
        return err.code && err.text[0] && !strchr(err.text, '\n') ? 0 : -1;
    int rc = solves(topt_costs_problem(f), seed) ? 1 : -1;
    topt_costs_destroy(f);
    return rc;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    static char text[MAX_TEXT + 64];
    int wrong = 0, read = 0, refused = 0;
    double seconds = argc > 1 ? atof(argv[1]) : 3, end = now() + seconds;
    uint64_t from = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (uint64_t seed = from; (argc > 1 || seed <= 30000) && now() < end; seed++) {
        struct rng r = {seed * 977};
        char *start = seed_text(seed % 40);
        size_t n = strlen(start) < MAX_TEXT ? strlen(start) : MAX_TEXT;
        memcpy(text, start, n);
        free(start);
        for (int k = 1 + rng_below(&r, 3); k > 0; k--)
            n = mutate(&r, text, n);
        int rc = try(text, n, seed);
        wrong += rc < 0;
        read += rc > 0;
        refused += rc == 0;
    }
    is_int(wrong, 0, "%d mutated files read, %d refused", read, refused);
    ok(read > 0 && refused > 0, "both happen");
    return done_testing();
}
