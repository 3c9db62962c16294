/* milp.c - see topt_milp.h. */
#include "topt_milp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topt_clock.h"
#include "topt_command.h"
#include "topt_text.h"

enum { MOST = 1 << 24, MOST_BYTES = 1 << 28, ASK_MS = 60000 };

void topt_milp_fini(struct topt_milp *p)
{
    free(p->cost);
    free(p->begin);
    free(p->row);
    free(p->value);
    free(p->most);
    free(p->is_equal);
    *p = (struct topt_milp){0};
}

/* ---- as text ----------------------------------------------------------------------- */

static void put(struct topt_text *t, const struct topt_milp *p)
{
    topt_text_add(t, "topt-milp/1 %zu %zu %zu\n", p->ncols, p->nrows, p->nentries);
    for (size_t i = 0; i < p->nrows; i++)
        topt_text_add(t, "%lld %d\n", (long long)p->most[i], p->is_equal[i]);
    for (size_t i = 0; i < p->ncols; i++) {
        topt_text_add(t, "%lld %zu", (long long)p->cost[i],
                      p->begin[i + 1] - p->begin[i]);
        for (size_t k = p->begin[i]; k < p->begin[i + 1]; k++)
            topt_text_add(t, " %d %lld", p->row[k], (long long)p->value[k]);
        topt_text_put(t, "\n", 1);
    }
}

int topt_milp_write(const struct topt_milp *p, const char *path, struct topt_error *err)
{
    struct topt_text t = {0};
    put(&t, p);
    int rc =
        t.oom ? topt_nomem(err, "the problem") : topt_write_file(path, t.s, t.len, err);
    topt_text_fini(&t);
    return rc;
}

/* The next number, from 'least' to 'most'; where there is none '*at' is NULL from then on. */
static int64_t next(const char **at, int64_t least, int64_t most)
{
    char *end = NULL;
    long long v = *at ? strtoll(*at, &end, 10) : 0;
    *at = !end || end == *at || v < least || v > most ? NULL : end;
    return *at ? v : 0;
}

static int make_room(struct topt_milp *p)
{
    p->cost = calloc(p->ncols + 1, sizeof *p->cost);
    p->begin = calloc(p->ncols + 1, sizeof *p->begin);
    p->row = calloc(p->nentries + 1, sizeof *p->row);
    p->value = calloc(p->nentries + 1, sizeof *p->value);
    p->most = calloc(p->nrows + 1, sizeof *p->most);
    p->is_equal = calloc(p->nrows + 1, 1);
    return p->cost && p->begin && p->row && p->value && p->most && p->is_equal ? 0 : -1;
}

/* -1 where it makes no sense. */
static int take(const char *at, struct topt_milp *p)
{
    for (size_t i = 0; i < p->nrows; i++) {
        p->most[i] = next(&at, INT64_MIN, INT64_MAX);
        p->is_equal[i] = (unsigned char)next(&at, 0, 1);
    }
    for (size_t i = 0; i < p->ncols; i++) {
        p->cost[i] = next(&at, INT64_MIN, INT64_MAX);
        size_t left = p->nentries - p->begin[i];
        p->begin[i + 1] = p->begin[i] + (size_t)next(&at, 0, (int64_t)left);
        for (size_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            p->row[k] = (int)next(&at, 0, (int64_t)p->nrows - 1);
            p->value[k] = next(&at, INT64_MIN, INT64_MAX);
        }
    }
    return at && p->begin[p->ncols] == p->nentries ? 0 : -1;
}

int topt_milp_read(const char *path, struct topt_milp *ret, struct topt_error *err)
{
    static const char head[] = "topt-milp/1 ";
    size_t len;
    *ret = (struct topt_milp){0};
    char *text = topt_read_file(path, MOST_BYTES, &len, err);
    if (!text)
        return -1;
    const char *at = strncmp(text, head, sizeof head - 1) ? NULL : text + sizeof head - 1;
    ret->ncols = (size_t)next(&at, 1, MOST);
    ret->nrows = (size_t)next(&at, 1, MOST);
    ret->nentries = (size_t)next(&at, 0, MOST);
    int rc = 0;
    if (at && make_room(ret))
        rc = topt_nomem(err, "the problem");
    else if (!at || take(at, ret))
        rc = topt_fail(err, TOPT_ERR_INVAL, "%s: not a problem as topt writes it", path);
    free(text);
    if (rc)
        topt_milp_fini(ret);
    return rc;
}

/* ---- by another program ------------------------------------------------------------ */

/* What it prints: the places of the variables that are 1, and "done". */
static int take_places(const char *at, size_t ncols, unsigned char *ret)
{
    while (at && strcmp(at + strspn(at, " \n"), "done\n") != 0) {
        int64_t i = next(&at, 0, (int64_t)ncols - 1);
        if (at)
            ret[i] = 1;
    }
    return at ? 0 : -1;
}

int topt_milp_program(char *ret, size_t size, struct topt_error *err)
{
    static const char name[] = "topt-queue";
    ssize_t n = readlink("/proc/self/exe", ret, size - 1);
    ret[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(ret, '/');
    if (slash && (size_t)(slash - ret) + sizeof name + 1 < size)
        memcpy(slash + 1, name, sizeof name);
    if (slash && !access(ret, X_OK))
        return 0;
    return topt_fail(err, TOPT_ERR_NOTFOUND,
                     "topt-queue, which solves MILPs, is not installed");
}

int topt_milp_ask(void *context, const struct topt_milp *p, unsigned char *ret,
                  struct topt_error *err)
{
    char path[] = "/tmp/topt-milp.XXXXXX";
    const char *args[] = {context, path, NULL};
    struct topt_text said = {0};
    int file = mkstemp(path);
    if (file < 0)
        return topt_fail(err, TOPT_ERR_IO, "%s can't be written", path);
    close(file);
    int rc = topt_milp_write(p, path, err);
    if (!rc)
        rc = topt_command_read(args, topt_clock_ms() + ASK_MS, &said, err);
    unlink(path);
    if (!rc && take_places(said.s, p->ncols, ret))
        rc = topt_fail(err, TOPT_ERR_INFEASIBLE, "the solver found no solution");
    topt_text_fini(&said);
    return rc;
}
