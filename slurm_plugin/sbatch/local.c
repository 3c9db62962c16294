/* local.c - see local.h.  topt-solver lies beside this program; what it prints is what
 * toptd answers (--lines). */
#include "local.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MOST = 2 * TOPT_ASK_COUNT + 16, ANSWER_MOST = 1 << 20 };

struct command {
    char *word[WORDS_MOST];
    int n, oom;
};

static void add(struct command *c, const char *prefix, const char *word)
{
    char *copy = NULL;
    if (c->n == WORDS_MOST - 1 || asprintf(&copy, "%s%s", prefix, word) < 0) {
        c->oom = 1;
        return;
    }
    c->word[c->n++] = copy;
}

static void free_command(struct command *c)
{
    for (int i = 0; i < c->n; i++)
        free(c->word[i]);
}

/* The program in this one's folder. */
static int solver(char path[PATH_MAX])
{
    static const char name[] = "topt-solver";
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof name);
    if (n < 0)
        return -1;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, name);
    return access(path, X_OK);
}

static void write_command(const struct topt_ask *ask, int64_t bound, struct command *c)
{
    char number[24];
    add(c, "", "topt-solver");
    add(c, "", "plan");
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const struct topt_ask_row *row = &topt_ask_table[i];
        if (!row->query || !ask->value[i] || i == TOPT_ASK_MAX_GPUS || i == TOPT_ASK_GPUS)
            continue;
        add(c, "--", row->option + strlen("topt-"));
        if (row->kind != TOPT_ASK_IS_FLAG)
            add(c, "", ask->value[i]);
    }
    snprintf(number, sizeof number, "%lld", (long long)bound);
    if (ask->value[TOPT_ASK_GPUS]) {
        add(c, "--gpus=", ask->value[TOPT_ASK_GPUS]);
    } else if (bound > 0) {
        add(c, topt_ask_mini_time(ask) ? "--gpus=" : "--max-gpus=", number);
    }
    add(c, "--lines=",
        ask->value[TOPT_ASK_EXPLAIN] ? "all"
        : topt_ask_shows_only(ask)   ? "table"
                                     : "plan");
    add(c, "", "--quiet");
    add(c, "", "--");
    add(c, "", ask->value[TOPT_ASK_MODEL]);
}

/* What the program prints, owned; NULL without memory, or where it is too much. */
static char *read_all(FILE *in, size_t *ret_len)
{
    char *all = malloc(ANSWER_MOST);
    *ret_len = all ? fread(all, 1, ANSWER_MOST, in) : 0;
    if (*ret_len == ANSWER_MOST) {
        free(all);
        return NULL;
    }
    return all;
}

/* What went wrong without a word on standard output; the program's own line is on standard error.
 */
static int run(struct command *c, const char *path, char **ret, size_t *ret_len,
               struct topt_error *err)
{
    int ends[2], status = 0;
    if (pipe(ends))
        return topt_fail(err, TOPT_ERR_IO, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(path, c->word);
        _exit(127);
    }
    close(ends[1]);
    FILE *in = child > 0 ? fdopen(ends[0], "r") : NULL;
    *ret = in ? read_all(in, ret_len) : NULL;
    if (in)
        fclose(in);
    else
        close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (*ret && *ret_len)
        return 0;
    free(*ret);
    *ret = NULL;
    return topt_fail(err, TOPT_ERR_INVAL, "there is no plan");
}

enum topt_verdict sbatch_plan_here(const struct topt_ask *ask, const char *name,
                                   int64_t bound, struct topt_answer *ret,
                                   struct topt_error *err)
{
    struct command c = {.n = 0};
    char path[PATH_MAX], *answer = NULL;
    size_t len = 0;
    enum topt_verdict verdict = TOPT_VERDICT_OUTAGE;
    static int said;
    (void)name; /* it reads the file itself */
    if (solver(path)) {
        topt_fail(err, TOPT_ERR_NOTFOUND,
                  "toptd does not answer, and this build can't plan without it");
        return verdict;
    }
    if (!said++)
        topt_say_info("topt: toptd does not answer; planning on this machine, without "
                      "the partitions' limits");
    write_command(ask, bound, &c);
    if (c.oom) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the question");
    } else if (run(&c, path, &answer, &len, err)) {
        verdict = TOPT_VERDICT_REFUSED;
    } else {
        topt_answer_parse(answer, len, ret);
        verdict = topt_answer_judge(*ret->error ? 422 : 200, ret, err);
    }
    free(answer);
    free_command(&c);
    return verdict;
}
