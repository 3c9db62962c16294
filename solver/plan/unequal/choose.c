/* choose.c - which of several groups of unlike devices a job takes, and how many of each.
 *
 * A group by itself is asked as any cluster would be.  Of several together any numbers that people
 * book of each may be taken, as a profile of its own that has these devices: so the question about
 * them is the one about all groups of some profile.  Where no group holds the job alone, such
 * profiles are asked from the fewest devices on until one does; all groups together are asked in
 * any case, as they are the fastest, or nearly. */
#include "topt_unequal.h"

#include <stdlib.h>
#include <string.h>

#include "plan_check.h"
#include "request.h"
#include "topt_json.h"
#include "topt_plan.h"
#include "topt_text.h"

/* So many devices of each group. */
struct device_counts {
    int of[TOPT_HW_GROUPS];
    int64_t all;
};

struct choosing {
    const struct topt_request *request;
    int n, devices[TOPT_HW_GROUPS]; /* 0: the group is not asked about */
    int one_kind;                   /* groups by themselves alone */
    /* several groups together, by their number of devices; owned */
    struct device_counts *list;
    int nlist;
    json_t *rows;               /* of the answer; owned, as the next two */
    json_t *best;               /* so far */
    struct device_counts taken; /* by it */
    json_t *unfit;              /* the last that nothing fits */
};

static int groups_in(const struct choosing *c, const struct device_counts *k)
{
    int n = 0;
    for (int i = 0; i < c->n; i++)
        n += k->of[i] > 0;
    return n;
}

static int is_all(const struct choosing *c, const struct device_counts *k)
{
    return !memcmp(k->of, c->devices, (size_t)c->n * sizeof *k->of);
}

/* Fewer devices, where their number is what is asked for; then less time. */
static int better(const struct choosing *c, const json_t *answer)
{
    if (!c->best)
        return 1;
    int64_t fewer =
        topt_json_whole_at(c->best, "gpus") - topt_json_whole_at(answer, "gpus");
    if (c->request->mode == TOPT_MINI_PARALLELISM && fewer)
        return fewer > 0;
    return topt_json_whole_at(answer, "time_ns") < topt_json_whole_at(c->best, "time_ns");
}

/* A row of what was asked. */
static json_t *row_of(const struct choosing *c, const struct device_counts *k,
                      const json_t *answer)
{
    int fits = json_is_true(json_object_get(answer, "feasible")), whole = 1;
    json_t *names = json_array(), *counts = json_array();
    for (int i = 0; i < c->n; i++)
        if (k->of[i]) {
            const char *name = topt_hw_name(topt_hw_group(c->request->hw, i));
            json_array_append_new(names, json_string(name));
            json_array_append_new(counts, json_integer(k->of[i]));
            whole &= k->of[i] == c->devices[i];
        }
    json_t *row =
        json_pack("{s:o, s:O, s:I}", "groups", names, "feasible",
                  json_object_get(answer, "feasible"), "gpus",
                  (json_int_t)(fits ? topt_json_whole_at(answer, "gpus") : k->all));
    if (row && groups_in(c, k) > 1 && !whole)
        json_object_set(row, "gpus_of", counts);
    json_decref(counts);
    if (row && fits)
        json_object_set(row, "time_ns", json_object_get(answer, "time_ns"));
    return row;
}

/* Keep an answer about some devices; takes 'answer'. */
static int take(struct choosing *c, const struct device_counts *k, json_t *answer,
                struct topt_error *err)
{
    int fits = json_is_true(json_object_get(answer, "feasible"));
    json_t *row = row_of(c, k, answer);
    int rc = row && !json_array_append_new(c->rows, row) ? 0 : topt_nomem(err, "groups");
    if (rc || (fits && !better(c, answer))) {
        json_decref(answer);
        return rc;
    }
    if (fits && groups_in(c, k) == 1)
        json_object_set(answer, "group",
                        json_array_get(json_object_get(row, "groups"), 0));
    if (fits)
        c->taken = *k;
    json_decref(fits ? c->best : c->unfit);
    *(fits ? &c->best : &c->unfit) = answer;
    return 0;
}

static int ask_one(struct choosing *c, int group, struct topt_error *err)
{
    struct topt_request r = *c->request;
    struct device_counts k = {.all = c->devices[group]};
    json_t *answer = NULL;
    k.of[group] = c->devices[group];
    r.hw = topt_hw_group(c->request->hw, group);
    if (!c->devices[group] || r.gpus > c->devices[group])
        return 0;
    if (r.memory_limit > topt_hw_memory_bytes(r.hw))
        r.memory_limit = 0;
    if (r.max_gpus > c->devices[group])
        r.max_gpus = 0;
    int nodes = 0, each;
    if (!c->one_kind && r.gpus && !topt_request_grid(&r, r.gpus, &nodes, &each))
        return 0; /* several together may have as many */
    if (topt_plan(&r, &answer, err))
        return topt_wrap(err, "%s", topt_hw_name(r.hw));
    return take(c, &k, answer, err);
}

/* ---- several groups ------------------------------------------------------------------ */

/* A profile of these devices alone. */
static struct topt_hw *profile_of(const struct choosing *c, const struct device_counts *k,
                                  struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(c->request->hw), *some = json_array();
    const json_t *groups = json_object_get(doc, "groups");
    int whole = 1;
    for (int i = 0; i < c->n; i++) {
        json_t *group = json_array_get(groups, (size_t)i);
        whole &= k->of[i] == topt_hw_group_devices(c->request->hw, i);
        if (!k->of[i])
            continue;
        if (k->of[i] < c->devices[i])
            json_object_set_new(group, "gpus", json_integer(k->of[i]));
        json_array_append(some, group);
    }
    json_object_set_new(doc, "groups", some);
    if (!whole) { /* as the least of these groups, as they are now */
        static const char *const joined[] = {"device", "links", "nodes", "gpus_per_node",
                                             "collective"};
        for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
            json_object_del(doc, joined[i]);
    }
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    json_decref(doc);
    return hw;
}

static int ask_counts(struct choosing *c, const struct device_counts *k,
                      struct topt_error *err)
{
    struct topt_request r = *c->request;
    struct topt_hw *some = profile_of(c, k, err);
    json_t *answer = NULL;
    if (!some)
        return -1;
    r.hw = some;
    int rc = topt_plan_unequal(&r, &answer, err) || take(c, k, answer, err);
    topt_hw_destroy(some);
    return rc ? -1 : 0;
}

/* Are so many devices asked for?  Parameters, gradients and state lie once at least somewhere. */
static int wanted(const struct choosing *c, const struct device_counts *k)
{
    const struct topt_request *r = c->request;
    struct topt_settings s = r->settings;
    struct topt_least_parameters p = topt_least_parameters(r->model, &s, 0);
    double room = 0;
    for (int i = 0; i < c->n; i++)
        room += (double)topt_group_limit(r, i) * k->of[i];
    if (p.value + p.gradient + p.state > room && !is_all(c, k))
        return 0;
    return r->gpus ? k->all == r->gpus : !r->max_gpus || k->all <= r->max_gpus;
}

static int by_number(const void *x, const void *y)
{
    const struct device_counts *a = x, *b = y;
    if (a->all != b->all)
        return a->all < b->all ? -1 : 1;
    return -memcmp(a->of, b->of, sizeof a->of); /* more of the first groups first */
}

/* How many choices there are for a group: none of it, or one of 'n' numbers, or, where 'whole', all of it. */
static int64_t options_of(const struct choosing *c, int group, int n, int whole)
{
    return !c->devices[group] ? 1 : whole ? 2 : n + 1;
}

static int64_t ways_of(const struct choosing *c, const int *n, int whole)
{
    int64_t ways = 1;
    for (int i = 0; i < c->n; i++)
        ways *= options_of(c, i, n[i], whole);
    return ways;
}

/* All ways to take numbers of two groups and more: of each none, or one of the 'n' that people book,
 * 'of'; of many groups, whole ones alone. */
static int list_counts(struct choosing *c, int64_t *const *of, const int *n,
                       struct topt_error *err)
{
    enum { MOST = 4096 };
    int whole = ways_of(c, n, 0) > MOST;
    int64_t ways = ways_of(c, n, whole);
    c->list = calloc((size_t)ways, sizeof *c->list);
    if (!c->list)
        return topt_nomem(err, "numbers of groups");
    for (int64_t way = 0; way < ways; way++) {
        struct device_counts k = {.all = 0};
        int64_t left = way;
        for (int i = 0; i < c->n; i++) {
            int64_t options = options_of(c, i, n[i], whole), at = left % options;
            left /= options;
            k.of[i] = !at ? 0 : whole ? c->devices[i] : (int)of[i][at - 1];
            k.all += k.of[i];
        }
        if (groups_in(c, &k) > 1)
            c->list[c->nlist++] = k;
    }
    qsort(c->list, (size_t)c->nlist, sizeof *c->list, by_number);
    return 0;
}

static int find_counts(struct choosing *c, struct topt_error *err)
{
    int64_t *of[TOPT_HW_GROUPS] = {NULL};
    int n[TOPT_HW_GROUPS];
    struct topt_request r = *c->request;
    int rc = 0;
    r.gpus = r.max_gpus = 0;
    r.gpu_list = NULL;
    r.ngpu_list = 0;
    for (int i = 0; i < c->n && !rc; i++) {
        r.hw = topt_hw_group(c->request->hw, i);
        rc = topt_request_counts(&r, &of[i], &n[i], err);
    }
    rc = rc || list_counts(c, of, n, err);
    for (int i = 0; i < c->n; i++)
        free(of[i]);
    return rc ? -1 : 0;
}

static double peak_of(const struct choosing *c, const struct device_counts *k)
{
    double sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += k->of[i] * topt_hw_peak_taken(topt_hw_group(c->request->hw, i),
                                             c->request->settings.dtype);
    return sum;
}

/* Devices that compute no more than a group that holds the job by itself are not asked
 * about. */
static int promises(const struct choosing *c, const struct device_counts *k)
{
    struct device_counts one = c->taken;
    if (!c->best || is_all(c, k))
        return 1;
    for (int i = 0; i < c->n; i++)
        one.of[i] = one.of[i] ? (int)topt_json_whole_at(c->best, "gpus") : 0;
    return c->request->gpus &&
           (groups_in(c, &c->taken) > 1 || peak_of(c, k) > peak_of(c, &one));
}

/* Ask about each group by itself; then about the ways to have a given number of devices, or else
 * until one holds the job. */
static int ask_all(struct choosing *c, struct topt_error *err)
{
    for (int i = 0; i < c->n; i++)
        if (ask_one(c, i, err))
            return -1;
    if (c->one_kind)
        return 0;
    if (find_counts(c, err))
        return -1;
    for (int i = 0; i < c->nlist; i++) {
        const struct device_counts *k = &c->list[i];
        if (wanted(c, k) && promises(c, k) && ask_counts(c, k, err))
            return -1;
    }
    return 0;
}

static int check(const struct choosing *c, struct topt_error *err)
{
    const struct topt_request *r = c->request;
    if (r->mode == TOPT_PROFILING || r->ngpu_list > 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "of groups of unlike devices one plan is made: no --mode "
                         "profiling");
    if (r->algorithm)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "shares of unlike devices are searched by ft alone: no "
                         "--algorithm");
    if (!c->one_kind && (r->totals.tokens || r->totals.samples))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--tokens and --samples are for GPUs of one kind: --groups one, or "
            "the name of one");
    return 0;
}

/* A question about groups by themselves leaves this out. */
static const char together[] =
    "several together need --groups all, of topt plan, or of topt client plan, which "
    "prints the job of Slurm";

/* Groups that were not asked as they have not so many devices leave nothing to answer. */
static int none_asked(const struct choosing *c, struct topt_error *err)
{
    struct topt_text t = {0};
    const struct topt_request *r = c->request;
    for (int i = 0; i < c->n; i++)
        if (c->devices[i])
            topt_text_add(&t, "%s%d of %s", t.len ? ", " : "", c->devices[i],
                          topt_hw_name(topt_hw_group(r->hw, i)));
    topt_fail(err, TOPT_ERR_USAGE,
              "no %s of %s %s %lld devices in numbers that are booked: %s%s%s",
              c->one_kind ? "group" : "groups", topt_hw_name(r->hw),
              c->one_kind ? "has" : "have", (long long)(r->gpus ? r->gpus : r->max_gpus),
              t.s ? t.s : "", c->one_kind ? "; " : "", c->one_kind ? together : "");
    topt_text_fini(&t);
    return -1;
}

static json_t *nothing_fits(const struct choosing *c)
{
    if (json_array_size(c->rows) == 1) /* then it knows why */
        return json_incref(c->unfit);
    return json_pack(
        "{s:b, s:o, s:o, s:o}", "feasible", 0, "why",
        c->one_kind
            ? json_sprintf("no group by itself holds it; %s", together)
            : json_string("neither a group by itself nor groups together hold it"),
        "job", topt_request_job(c->request), "assumed", topt_request_assumed(c->request));
}

static struct choosing choosing_of(const struct topt_request *r, int one_kind)
{
    struct choosing c = {.request = r,
                         .n = topt_hw_groups(r->hw),
                         .one_kind = one_kind,
                         .rows = json_array()};
    for (int i = 0; i < c.n; i++)
        c.devices[i] = topt_hw_group_devices(r->hw, i);
    return c;
}

static void close_choosing(struct choosing *c)
{
    json_decref(c->rows);
    json_decref(c->best);
    json_decref(c->unfit);
    free(c->list);
}

int topt_groups_named(const char *which)
{
    return *which && strcmp(which, "all") && strcmp(which, "one");
}

static int no_group(const struct choosing *c, const char *name, struct topt_error *err)
{
    struct topt_text t = {0};
    for (int i = 0; i < c->n; i++)
        topt_text_add(&t, "%s%s", i ? ", " : ": it has ",
                      topt_hw_name(topt_hw_group(c->request->hw, i)));
    topt_fail(err, TOPT_ERR_USAGE, "--groups: there is no group '%.60s' in %s%s", name,
              topt_hw_name(c->request->hw), t.s ? t.s : ", whose devices are alike");
    topt_text_fini(&t);
    return -1;
}

/* Only the groups of these names are asked about. */
static int keep_named(struct choosing *c, const char *names, struct topt_error *err)
{
    int kept[TOPT_HW_GROUPS] = {0}, n = 0, rc;
    const char *at = NULL;
    char word[80];
    while ((rc = topt_list_next(names, &at, word, sizeof word, err)) > 0) {
        int i = 0;
        while (i < c->n && strcmp(topt_hw_name(topt_hw_group(c->request->hw, i)), word))
            i++;
        if (i == c->n)
            return no_group(c, word, err);
        kept[i] = 1;
        n++;
    }
    for (int i = 0; i < c->n; i++)
        c->devices[i] = kept[i] ? c->devices[i] : 0;
    c->one_kind = n == 1;
    return rc ? topt_wrap(err, "--groups") : 0;
}

int topt_plan_groups(const struct topt_request *r, const char *which, json_t **ret,
                     struct topt_error *err)
{
    struct choosing c = choosing_of(r, !strcmp(which, "one"));
    int names = topt_groups_named(which);
    *ret = NULL;
    int rc = !c.rows ? topt_nomem(err, "groups")
                     : (names && keep_named(&c, which, err)) || check(&c, err) ||
                           ask_all(&c, err);
    if (!rc && !json_array_size(c.rows))
        rc = none_asked(&c, err);
    if (!rc) {
        *ret = c.best ? json_incref(c.best) : nothing_fits(&c);
        if (c.one_kind && !names && c.best) /* nobody has said which */
            json_object_set_new(
                *ret, "why",
                json_sprintf("%s; GPUs of group %s, as one job takes GPUs of one kind",
                             topt_json_words_at(*ret, "why"),
                             topt_json_words_at(*ret, "group")));
        if (!*ret || json_object_set(*ret, "choices", c.rows))
            rc = topt_nomem(err, "groups");
    }
    close_choosing(&c);
    return rc ? -1 : 0;
}

/* Where nothing fits, the group whose devices have the most memory. */
static const struct topt_hw *largest_group(const struct choosing *c)
{
    const struct topt_hw *best = NULL;
    for (int i = 0; i < c->n; i++) {
        const struct topt_hw *g = topt_hw_group(c->request->hw, i);
        if (c->devices[i] >= c->request->gpus &&
            (!best || topt_hw_memory_bytes(g) > topt_hw_memory_bytes(best)))
            best = g;
    }
    return best;
}

static int find_profile(struct choosing *c, const struct topt_hw **ret,
                        struct topt_hw **ret_own, struct topt_error *err)
{
    if (ask_all(c, err))
        return -1;
    if (c->best && groups_in(c, &c->taken) > 1) {
        *ret = *ret_own = profile_of(c, &c->taken, err);
        return *ret ? 0 : -1;
    }
    *ret = largest_group(c);
    for (int i = 0; i < c->n && c->best; i++)
        if (c->taken.of[i])
            *ret = topt_hw_group(c->request->hw, i);
    return *ret ? 0 : none_asked(c, err);
}

int topt_groups_profile(const struct topt_request *r, int one_kind,
                        const struct topt_hw **ret, struct topt_hw **ret_own,
                        struct topt_error *err)
{
    struct topt_request at = *r;
    struct choosing c = choosing_of(&at, one_kind);
    int64_t all = 0;
    at.mode = TOPT_MINI_TIME;
    at.algorithm = NULL;
    *ret_own = NULL;
    for (int i = 0; i < c.n; i++)
        all += c.devices[i];
    const struct topt_hw *found = r->hw;
    int rc = !c.rows                 ? topt_nomem(err, "groups")
             : c.n && r->gpus != all ? find_profile(&c, &found, ret_own, err)
                                     : 0;
    close_choosing(&c);
    if (!rc)
        *ret = found;
    return rc;
}
