/* correction.c - see correction.h. */
#include "correction.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_log.h"
#include "topt_median.h"

enum { MOST_ROWS = 1024 };
static const double MOST_RATIO = 2, MOST_MEMORY = 1.5;

/* ---- the formula --------------------------------------------------------------------------- */

struct sample {
    int64_t uid;
    double log_ratio;
};

static int by_user(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->uid != y->uid)
        return x->uid < y->uid ? -1 : 1;
    return (x->log_ratio > y->log_ratio) - (x->log_ratio < y->log_ratio);
}

/* 1 and the logarithm, or 0 where either is not known. */
static int log_ratio(int64_t measured, int64_t said, double *ret)
{
    if (measured <= 0 || said <= 0)
        return 0;
    double l = log((double)measured / (double)said), most = log(MOST_RATIO);
    *ret = l > most ? most : l < -most ? -most : l;
    return 1;
}

/* Of 'n' samples, sorted by user: the median of the users' medians.  'room' takes as many
 * numbers as there are users. */
static double middle(const struct sample *sample, int n, double *room, int *ret_users)
{
    int users = 0;
    for (int i = 0, next; i < n; i = next) {
        next = i + 1;
        while (next < n && sample[next].uid == sample[i].uid)
            next++;
        room[users++] = (sample[i + (next - i - 1) / 2].log_ratio +
                         sample[i + (next - i) / 2].log_ratio) /
                        2;
    }
    *ret_users = users;
    if (!users)
        return 0;
    topt_sort_doubles(room, (size_t)users);
    return (room[(users - 1) / 2] + room[users / 2]) / 2;
}

static struct correction_part part_of(struct sample *sample, int n, double *room)
{
    struct correction_part p = {.factor = 1, .jobs = n};
    qsort(sample, (size_t)n, sizeof *sample, by_user);
    double m = middle(sample, n, room, &p.users);
    p.factor = round(exp(m * n / (n + CORRECTION_SHRINK)) * 1000) / 1000;
    return p;
}

/* Time or memory: the site's where there are enough jobs of enough users, else the asker's own. */
static struct correction_part choose(const struct store_measured *rows, int n,
                                     int64_t uid, int is_memory, struct sample *sample,
                                     double *room)
{
    for (int own = 0; own < 2; own++) {
        int taken = 0;
        for (int i = 0; i < n; i++) {
            const struct store_measured *r = &rows[i];
            sample[taken].uid = r->uid;
            if ((own ? r->uid == uid : r->confirmed) &&
                log_ratio(is_memory ? r->peak_bytes : r->step_ns,
                          is_memory ? r->said_memory_bytes : r->said_time_ns,
                          &sample[taken].log_ratio))
                taken++;
        }
        struct correction_part p = part_of(sample, taken, room);
        p.is_own = own;
        if (own ? p.jobs > 0 : p.jobs >= CORRECTION_JOBS && p.users >= CORRECTION_USERS)
            return p;
    }
    return (struct correction_part){.factor = 1};
}

void correction_of(const struct store_measured *rows, int n, int64_t uid,
                   struct correction *ret)
{
    struct sample *sample = malloc(((size_t)n + 1) * sizeof *sample);
    double *room = malloc(((size_t)n + 1) * sizeof *room);
    *ret = (struct correction){{.factor = 1}, {.factor = 1}};
    if (n > 0 && sample && room) {
        ret->time = choose(rows, n, uid, 0, sample, room);
        ret->memory = choose(rows, n, uid, 1, sample, room);
        if (ret->memory.factor < 1)
            ret->memory.factor = 1;
        if (ret->memory.factor > MOST_MEMORY)
            ret->memory.factor = MOST_MEMORY;
    }
    free(sample);
    free(room);
}

void correction_find(struct store *s, const char *model, const char *hw, int64_t uid,
                     struct correction *ret)
{
    struct topt_error err = {0};
    struct store_measured *rows = malloc(MOST_ROWS * sizeof *rows);
    int n = rows ? store_measured(s, model, hw, uid, rows, MOST_ROWS, &err) : 0;
    if (n < 0)
        topt_log(TOPT_LOG_WARN, "observations of %s: %s", model, err.text);
    correction_of(rows, n > 0 ? n : 0, uid, ret);
    free(rows);
}

int64_t correction_memory(const struct correction *c)
{
    return c->memory.jobs ? llround(c->memory.factor * 1000) : 1000;
}

/* ---- in words ------------------------------------------------------------------------------ */

static json_t *part_json(const struct correction_part *p)
{
    return p->jobs
               ? json_pack("{s:f, s:i, s:i, s:s}", "factor", p->factor, "jobs", p->jobs,
                           "users", p->users, "of", p->is_own ? "yours" : "site")
               : NULL;
}

static void add_corrected(json_t *doc, const json_t *answer, const char *key,
                          const struct correction_part *p)
{
    double said = json_number_value(json_object_get(answer, key));
    if (p->jobs && said > 0)
        json_object_set_new(doc, key,
                            json_integer((json_int_t)llround(said * p->factor)));
}

json_t *correction_json(const struct correction *c, const json_t *answer)
{
    json_t *doc = json_pack("{s:o*, s:o*}", "time", part_json(&c->time), "memory",
                            part_json(&c->memory));
    if (doc && answer) {
        add_corrected(doc, answer, "time_ns", &c->time);
        add_corrected(doc, answer, "memory_bytes", &c->memory);
    }
    return doc;
}

static int add_words(const struct correction_part *p, const char *what, const char *begin,
                     char *ret, size_t size)
{
    char whose[60] = "of yours";
    if (!p->is_own)
        snprintf(whose, sizeof whose, "of %d users", p->users);
    int n = snprintf(ret, size, "%s%d job%s %s took %.3f times the predicted %s", begin,
                     p->jobs, p->jobs == 1 ? "" : "s", whose, p->factor, what);
    return n < 0 ? 0 : n >= (int)size ? (int)size - 1 : n;
}

void correction_words(const struct correction *c, char *ret, size_t size)
{
    int n = 0;
    *ret = '\0';
    if (c->time.jobs)
        n = add_words(&c->time, "time", "", ret, size);
    if (c->memory.jobs)
        add_words(&c->memory, "memory", n ? "; " : "", ret + n, size - (size_t)n);
}
