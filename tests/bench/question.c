/* question.c - one question, asked and measured; used by questions.sh.
 *
 *     question ask [--runs N] [--limit S] [--count S] [--keep FILE] [--with WORD] -- COMMAND...
 *     question compare BEFORE AFTER TOLERANCE
 *
 * "ask" runs a command that writes a JSON answer, N times (3; once where a run takes more than 5 s
 * of the processor), and prints one line: the least processor seconds, the largest peak of resident
 * memory in MiB, and the digest of what was answered, without how it was found.  With --count it
 * prints between them the instructions that cachegrind counted, "-" where a run takes more than S
 * seconds.  A run of more than --limit (60) seconds is stopped.  --keep writes the answer to a
 * file.  --with WORD runs the command once more with that word after it, and takes the answer
 * from there: to write all strategies of a bare problem takes as long as to find them.
 *
 * "compare" says what two kept answers have in common, and exits with 1 where they contradict each
 * other:
 *     same     all that they say
 *     plan     all figures, by another plan
 *     within   a question that allows a tolerance, and no point of the one answer is further
 *              from the other than that
 *     DIFFERS  anything else */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topt_json.h"

static const double LONG_RUN = 5, NAP = 0.002;
enum { KIB = 1024, MOST_RUNS = 99, RUNS = 3, MOST_WORDS = 56, STOPPED = 124 };

/* How an answer was found: sizes of what was searched, work, and names that follow from these. */
static const char *const found[] = {"stats",        "pricing", "configs", "layouts",
                                    "edge_entries", "plan_id", "id"};
/* What an answer promises whoever asked. */
static const char *const figures[] = {
    "frontier", "memory",  "time",    "feasible",     "gpus",        "memory_bytes",
    "time_ns",  "exact",   "epsilon", "stopped",      "points",      "batch",
    "batches",  "systems", "system",  "alternatives", "names",       "nearest",
    "with",     "ask",     "fits",    "samples",      "least_bytes", "limit"};

static int is_in(const char *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(list[i], key))
            return 1;
    return 0;
}
#define IS_IN(list, key) is_in(list, sizeof(list) / sizeof *(list), key)

/* A copy with figures alone, or without what only tells how it was found. */
static json_t *reduce(const json_t *v, int only_figures)
{
    json_t *r, *member;
    const char *key;
    size_t i;
    if (json_is_array(v)) {
        r = json_array();
        json_array_foreach((json_t *)v, i, member)
            json_array_append_new(r, reduce(member, only_figures));
        return r;
    }
    if (!json_is_object(v))
        return json_deep_copy(v);
    r = json_object();
    json_object_foreach((json_t *)v, key, member) if (only_figures ? IS_IN(figures, key)
                                                                   : !IS_IN(found, key))
        json_object_set_new(r, key, reduce(member, only_figures));
    return r;
}

/* ---- asking ---------------------------------------------------------------------------------- */

struct ask {
    char **command;
    const char *keep, *with;
    int runs;
    double limit, count; /* count 0: nothing is counted */
};

struct run {
    double seconds;
    int64_t kib;
    int status; /* of wait */
    int stopped;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void become(char **command, const char *out)
{
    int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int null = open("/dev/null", O_WRONLY);
    if (fd < 0 || null < 0 || dup2(fd, 1) < 0 || dup2(null, 2) < 0)
        _exit(127);
    execvp(command[0], command);
    _exit(127);
}

/* Its answer goes to the file 'out'. */
static int run(char **command, const char *out, double limit, struct run *ret)
{
    struct rusage use;
    const struct timespec nap = {.tv_nsec = (long)(1e9 * NAP)};
    double until = now() + limit;
    pid_t pid = fork(), got;
    if (pid == 0)
        become(command, out);
    *ret = (struct run){0};
    while (pid > 0 && (got = wait4(pid, &ret->status, WNOHANG, &use)) == 0) {
        if (!ret->stopped && now() > until)
            ret->stopped = !kill(pid, SIGKILL);
        nanosleep(&nap, NULL);
    }
    if (pid < 0 || got < 0)
        return -1;
    ret->seconds = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                   1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    ret->kib = use.ru_maxrss;
    return 0;
}

/* The sum of what cachegrind says of each process of a run. */
static int64_t read_refs(FILE *f)
{
    char line[256], digits[64];
    int64_t sum = 0;
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "refs:");
        size_t n = 0;
        if (!at || !strstr(line, " I "))
            continue;
        for (; *at && n + 1 < sizeof digits; at++)
            if (*at >= '0' && *at <= '9')
                digits[n++] = *at;
        digits[n] = 0;
        sum += strtoll(digits, NULL, 10);
    }
    return sum;
}

/* -1 where it did not end. */
static int64_t count(const struct ask *a)
{
    char log[] = "/tmp/question.XXXXXX", option[64];
    const char *argv[MOST_WORDS + 8] = {
        "valgrind",        "--tool=cachegrind",    "--cache-sim=no",
        "--branch-sim=no", "--trace-children=yes", "--cachegrind-out-file=/dev/null"};
    int fd = mkstemp(log), n = 6;
    struct run r;
    int64_t refs = -1;
    if (fd < 0)
        return -1;
    snprintf(option, sizeof option, "--log-file=%s", log);
    argv[n++] = option;
    for (int i = 0; a->command[i] && i < MOST_WORDS; i++)
        argv[n++] = a->command[i];
    if (!run((char **)argv, "/dev/null", 60 * a->limit, &r) && !r.stopped) {
        FILE *f = fdopen(fd, "r");
        refs = f ? read_refs(f) : -1;
        if (f)
            fclose(f);
    } else {
        close(fd);
    }
    unlink(log);
    return refs > 0 ? refs : -1;
}

/* Of each point of a bare problem's frontier, a line: its costs, without the strategy.
 * The last one's line goes on. */
static void drop_strategy(char *line)
{
    char *configs = strstr(line, ",\"configs\":"), *rest;
    if (strncmp(line, "{\"memory\":", 10) || !configs)
        return;
    rest = strstr(configs, "}],\"stats\":");
    if (!rest)
        rest = line[strlen(line) - 2] == ',' ? "},\n" : "}\n";
    memmove(configs, rest, strlen(rest) + 1);
}

static json_t *read_answer(const char *path)
{
    struct topt_error err = {0};
    char *line = NULL, *text = NULL;
    size_t room = 0, size = 0;
    FILE *in = fopen(path, "r"), *all = open_memstream(&text, &size);
    while (in && all && getline(&line, &room, in) > 0) {
        drop_strategy(line);
        fputs(line, all);
    }
    if (in)
        fclose(in);
    if (all)
        fclose(all);
    json_t *ret = text ? topt_json_parse(text, size, path, &err) : NULL;
    free(line);
    free(text);
    return ret;
}

static int print(const struct ask *a, const struct run *r, const char *out)
{
    char digest[TOPT_ID];
    json_t *whole = read_answer(out), *said;
    if (!whole) {
        int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
        printf("no answer (exit status %d)\n", code);
        return 1;
    }
    said = reduce(whole, 0);
    if (topt_json_id(said, 'a', digest) < 0)
        strcpy(digest, "-");
    printf("%.3f %.1f ", r->seconds, (double)r->kib / KIB);
    if (a->count > 0) {
        int64_t refs = r->seconds <= a->count ? count(a) : -1;
        if (refs < 0)
            printf("- ");
        else
            printf("%" PRId64 " ", refs);
    }
    printf("%s\n", digest);
    if (a->keep && json_dump_file(said, a->keep, JSON_INDENT(1) | JSON_SORT_KEYS))
        fprintf(stderr, "question: can't write %s\n", a->keep);
    json_decref(said);
    json_decref(whole);
    return 0;
}

static int run_with(const struct ask *a, const char *out, int *ret_status)
{
    const char *argv[MOST_WORDS + 2];
    struct run r;
    int n = 0;
    while (a->command[n] && n < MOST_WORDS)
        argv[n] = a->command[n], n++;
    argv[n] = a->with;
    argv[n + 1] = NULL;
    int rc = run((char **)argv, out, a->limit, &r);
    *ret_status = r.status;
    return rc;
}

static int ask(const struct ask *a)
{
    char out[] = "/tmp/answer.XXXXXX";
    struct run best = {0}, r;
    int fd = mkstemp(out), rc = fd < 0;
    if (fd >= 0)
        close(fd);
    for (int i = 0; i < a->runs && !rc; i++) {
        rc = run(a->command, out, a->limit, &r);
        if (r.stopped) {
            printf("stopped after %.0f s, %.1f MiB\n", a->limit, (double)r.kib / KIB);
            unlink(out);
            return STOPPED;
        }
        if (i == 0 || r.seconds < best.seconds)
            best.seconds = r.seconds;
        if (r.kib > best.kib)
            best.kib = r.kib;
        best.status = r.status;
        if (r.seconds > LONG_RUN)
            break;
    }
    if (!rc && a->with)
        rc = run_with(a, out, &best.status);
    rc = rc || print(a, &best, out);
    unlink(out);
    return rc;
}

/* ---- comparing --------------------------------------------------------------------- */

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

/* Has each point of 'a' one of 'b' that takes no more memory, and hardly longer? */
static int covers(const json_t *a, const json_t *b, double tolerance)
{
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *p = json_array_get(a, i);
        int has = 0;
        for (size_t k = 0; k < json_array_size(b) && !has; k++) {
            const json_t *q = json_array_get(b, k);
            has = number(q, "memory_bytes") <= number(p, "memory_bytes") &&
                  number(q, "time_ns") <= (1 + tolerance) * number(p, "time_ns");
        }
        if (!has)
            return 0;
    }
    return 1;
}

/* Are both right, as far as one tells of the other? */
static int agree(const json_t *a, const json_t *b, double tolerance)
{
    const json_t *points[] = {json_object_get(a, "points"), json_object_get(b, "points")};
    const json_t *fits[] = {json_object_get(a, "feasible"),
                            json_object_get(b, "feasible")};
    /* A frontier does not say whether anything fits. */
    int alike = fits[0] && fits[1] ? json_equal(fits[0], fits[1]) : fits[0] == fits[1];
    if (!(tolerance > 0) || !alike || number(a, "gpus") != number(b, "gpus"))
        return 0;
    if (number(b, "epsilon") > tolerance && number(b, "epsilon") > number(a, "epsilon"))
        return 0;
    if (points[0] && points[1])
        return covers(points[0], points[1], tolerance) &&
               covers(points[1], points[0], tolerance);
    double x = number(a, "time_ns"), y = number(b, "time_ns");
    return x <= (1 + tolerance) * y && y <= (1 + tolerance) * x;
}

static int compare(const char *before, const char *after, double tolerance)
{
    struct topt_error err = {0};
    json_t *a = topt_json_load(before, (size_t)1 << 31, &err);
    json_t *b = a ? topt_json_load(after, (size_t)1 << 31, &err) : NULL;
    if (!b) {
        fprintf(stderr, "question: %s\n", err.text);
        json_decref(a);
        return 2;
    }
    json_t *x = reduce(a, 1), *y = reduce(b, 1);
    const char *what = json_equal(a, b)         ? "same"
                       : json_equal(x, y)       ? "plan"
                       : agree(a, b, tolerance) ? "within"
                                                : "DIFFERS";
    puts(what);
    json_decref(x);
    json_decref(y);
    json_decref(a);
    json_decref(b);
    return !strcmp(what, "DIFFERS");
}

/* ---- the command line -------------------------------------------------------------- */

static int usage(void)
{
    fprintf(stderr, "usage: question ask [--runs N] [--limit S] [--count S] [--keep "
                    "FILE] -- COMMAND...\n"
                    "       question compare BEFORE AFTER TOLERANCE\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct ask a = {.runs = RUNS, .limit = 60};
    int i = 2;
    if (argc == 5 && !strcmp(argv[1], "compare"))
        return compare(argv[2], argv[3], strtod(argv[4], NULL));
    if (argc < 3 || strcmp(argv[1], "ask"))
        return usage();
    for (; i + 1 < argc && strcmp(argv[i], "--"); i += 2)
        if (!strcmp(argv[i], "--runs"))
            a.runs = (int)strtol(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--limit"))
            a.limit = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--count"))
            a.count = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--keep"))
            a.keep = argv[i + 1];
        else if (!strcmp(argv[i], "--with"))
            a.with = argv[i + 1];
        else
            return usage();
    if (i + 1 >= argc || a.runs < 1 || a.runs > MOST_RUNS)
        return usage();
    a.command = argv + i + 1;
    return ask(&a);
}
