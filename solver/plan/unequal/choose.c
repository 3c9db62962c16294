/* choose.c - which of several groups of unlike devices a job takes.
 *
 * A group by itself is asked as any cluster would be, and may be used in part; several together
 * are used whole, by shares.  Groups together are a profile of their own, with the groups that
 * take part: so the question about them is the one about all groups of some profile.  Where no
 * group holds the job alone, sets of them are asked from the smallest on until one does; all
 * groups together are asked in any case, as they are the fastest, or nearly. */
#include "topt_unequal.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"
#include "topt_plan.h"
#include "topt_text.h"

struct choosing {
    const struct topt_request *request;
    int n, devices[TOPT_HW_GROUPS];
    json_t *rows;          /* of the answer */
    json_t *best;          /* so far; owned */
    json_t *unfit;         /* the last that nothing fits; owned */
    int64_t gpus, time_ns; /* of it */
};

static int is_set(int set, int group)
{
    return set >> group & 1;
}

static int devices_of(const struct choosing *c, int set)
{
    int sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += is_set(set, i) ? c->devices[i] : 0;
    return sum;
}

/* Fewer devices, where their number is what is asked for; then less time. */
static int better(const struct choosing *c, int64_t gpus, int64_t time_ns)
{
    if (!c->best)
        return 1;
    if (c->request->mode == TOPT_MINI_PARALLELISM && gpus != c->gpus)
        return gpus < c->gpus;
    return time_ns < c->time_ns;
}

/* What was asked of a set of groups; 'answer' is given up. */
static int take(struct choosing *c, int set, json_t *answer, struct topt_error *err)
{
    json_t *names = json_array(), *row;
    int fits = json_is_true(json_object_get(answer, "feasible"));
    int64_t gpus = topt_json_whole_at(answer, "gpus"),
            time = topt_json_whole_at(answer, "time_ns");
    for (int i = 0; i < c->n; i++)
        if (is_set(set, i))
            json_array_append_new(
                names, json_string(topt_hw_name(topt_hw_group(c->request->hw, i))));
    row = json_pack("{s:O, s:O, s:I}", "groups", names, "feasible",
                    json_object_get(answer, "feasible"), "gpus",
                    (json_int_t)(fits ? gpus : devices_of(c, set)));
    if (fits)
        json_object_set_new(row, "time_ns", json_integer(time));
    int rc = row && !json_array_append_new(c->rows, row) ? 0 : topt_nomem(err, "groups");
    if (!rc && fits && better(c, gpus, time)) {
        if (!(set & (set - 1)))
            json_object_set(answer, "group", json_array_get(names, 0));
        json_decref(c->best);
        c->best = json_incref(answer);
        c->gpus = gpus;
        c->time_ns = time;
    }
    if (!rc && !fits) {
        json_decref(c->unfit);
        c->unfit = json_incref(answer);
    }
    json_decref(names);
    json_decref(answer);
    return rc;
}

static int ask_one(struct choosing *c, int group, struct topt_error *err)
{
    struct topt_request r = *c->request;
    json_t *answer = NULL;
    r.hw = topt_hw_group(c->request->hw, group);
    if (r.gpus > c->devices[group])
        return 0;
    if (r.memory_limit > topt_hw_memory_bytes(r.hw))
        r.memory_limit = 0;
    if (r.max_gpus > c->devices[group])
        r.max_gpus = 0;
    if (topt_plan(&r, &answer, err))
        return topt_wrap(err, "%s", topt_hw_name(r.hw));
    return take(c, 1 << group, answer, err);
}

/* A profile of these groups alone. */
static struct topt_hw *profile_of(const struct choosing *c, int set,
                                  struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(c->request->hw), *some = json_array();
    const json_t *groups = json_object_get(doc, "groups");
    for (int i = 0; i < c->n; i++)
        if (is_set(set, i))
            json_array_append(some, json_array_get(groups, (size_t)i));
    json_object_set_new(doc, "groups", some);
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    json_decref(doc);
    return hw;
}

static int ask_set(struct choosing *c, int set, struct topt_error *err)
{
    struct topt_request r = *c->request;
    struct topt_hw *some = set == (1 << c->n) - 1 ? NULL : profile_of(c, set, err);
    json_t *answer = NULL;
    if (set != (1 << c->n) - 1 && !some)
        return -1;
    r.hw = some ? some : c->request->hw;
    int rc = topt_plan_unequal(&r, &answer, err) || take(c, set, answer, err);
    topt_hw_destroy(some);
    return rc ? -1 : 0;
}

/* Are so many devices asked for? */
static int wanted(const struct choosing *c, int set)
{
    const struct topt_request *r = c->request;
    int devices = devices_of(c, set);
    return r->gpus ? devices == r->gpus : !r->max_gpus || devices <= r->max_gpus;
}

/* The next larger set of several groups by devices, then by its bits; 0: none. */
static int next_set(const struct choosing *c, int after)
{
    int best = 0;
    for (int set = 1; set < 1 << c->n; set++) {
        int before =
            after && (devices_of(c, set) < devices_of(c, after) ||
                      (devices_of(c, set) == devices_of(c, after) && set <= after));
        if (!(set & (set - 1)) || before)
            continue;
        if (!best || devices_of(c, set) < devices_of(c, best))
            best = set;
    }
    return best;
}

static int ask_sets(struct choosing *c, struct topt_error *err)
{
    int all = (1 << c->n) - 1;
    for (int set = next_set(c, 0); set; set = next_set(c, set))
        if (wanted(c, set) && (!c->best || set == all) && ask_set(c, set, err))
            return -1;
    return 0;
}

static int check(const struct topt_request *r, struct topt_error *err)
{
    if (r->mode == TOPT_PROFILING || r->ngpu_list > 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "of groups of unlike devices one plan is made: no --mode "
                         "profiling");
    if (r->algorithm)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "shares of unlike devices are searched by ft alone: no "
                         "--algorithm");
    return 0;
}

/* Groups that were not asked as they have not so many devices leave nothing to answer. */
static int none_asked(const struct choosing *c, struct topt_error *err)
{
    struct topt_text t = {0};
    for (int i = 0; i < c->n; i++)
        topt_text_add(&t, "%s%d of %s", i ? ", " : "", c->devices[i],
                      topt_hw_name(topt_hw_group(c->request->hw, i)));
    topt_fail(err, TOPT_ERR_USAGE,
              "no groups of %s have %lld devices: %s; of several groups all devices are "
              "used",
              topt_hw_name(c->request->hw),
              (long long)(c->request->gpus ? c->request->gpus : c->request->max_gpus),
              t.s ? t.s : "");
    topt_text_fini(&t);
    return -1;
}

static json_t *nothing_fits(const struct choosing *c, int one_kind)
{
    if (json_array_size(c->rows) == 1) /* then it knows why */
        return json_incref(c->unfit);
    return json_pack("{s:b, s:s, s:o, s:o}", "feasible", 0, "why",
                     one_kind ? "no group of like devices holds it, and one job takes "
                                "GPUs of one kind; topt plan shares it between groups"
                              : "neither a group by itself nor groups together hold it",
                     "job", topt_request_job(c->request), "assumed",
                     topt_request_assumed(c->request));
}

/* Why it is these GPUs, for doors that give one job one kind of them. */
static void say_kind(json_t *answer)
{
    struct topt_text t = {0};
    topt_text_add(&t, "%s; GPUs of group %s, as one job takes GPUs of one kind",
                  topt_json_words_at(answer, "why"), topt_json_words_at(answer, "group"));
    if (t.s)
        json_object_set_new(answer, "why", json_string(t.s));
    topt_text_fini(&t);
}

static struct choosing choosing_of(const struct topt_request *r)
{
    struct choosing c = {.request = r, .n = topt_hw_groups(r->hw), .rows = json_array()};
    for (int i = 0; i < c.n; i++) {
        const struct topt_hw *g = topt_hw_group(r->hw, i);
        c.devices[i] = topt_hw_max_nodes(g) * topt_hw_gpus_per_node(g);
    }
    return c;
}

static void close_choosing(struct choosing *c)
{
    json_decref(c->rows);
    json_decref(c->best);
    json_decref(c->unfit);
}

int topt_plan_groups(const struct topt_request *r, int one_kind, json_t **ret,
                     struct topt_error *err)
{
    struct choosing c = choosing_of(r);
    *ret = NULL;
    int rc = c.rows ? check(r, err) : topt_nomem(err, "groups");
    for (int i = 0; i < c.n && !rc; i++)
        rc = ask_one(&c, i, err);
    if (!rc && !one_kind)
        rc = ask_sets(&c, err);
    if (!rc && !json_array_size(c.rows))
        rc = none_asked(&c, err);
    if (rc) {
        close_choosing(&c);
        return -1;
    }
    *ret = c.best ? json_incref(c.best) : nothing_fits(&c, one_kind);
    if (one_kind && c.best)
        say_kind(*ret);
    rc =
        *ret && !json_object_set(*ret, "choices", c.rows) ? 0 : topt_nomem(err, "groups");
    close_choosing(&c);
    return rc;
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
                        struct topt_error *err)
{
    for (int i = 0; i < c->n; i++)
        if (ask_one(c, i, err))
            return -1;
    *ret = largest_group(c);
    for (int i = 0; i < c->n && c->best; i++) {
        const struct topt_hw *g = topt_hw_group(c->request->hw, i);
        if (!strcmp(topt_hw_name(g), topt_json_words_at(c->best, "group")))
            *ret = g;
    }
    return *ret ? 0 : none_asked(c, err);
}

int topt_groups_profile(const struct topt_request *r, const struct topt_hw **ret,
                        struct topt_error *err)
{
    struct topt_request at = *r;
    struct choosing c = choosing_of(&at);
    at.mode = TOPT_MINI_TIME;
    at.algorithm = NULL;
    const struct topt_hw *found = r->hw;
    int rc = !c.rows ? topt_nomem(err, "groups")
             : c.n && r->gpus != devices_of(&c, (1 << c.n) - 1)
                 ? find_profile(&c, &found, err)
                 : 0;
    close_choosing(&c);
    if (!rc)
        *ret = found;
    return rc;
}

/* ---- for people --------------------------------------------------------------------- */

char *topt_groups_text(const json_t *answer)
{
    struct topt_text t = {0};
    const json_t *rows = json_object_get(answer, "choices");
    char buf[32];
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i),
                     *names = json_object_get(row, "groups");
        topt_text_add(&t, "%-9s ", i ? "" : "groups");
        for (size_t k = 0; k < json_array_size(names); k++)
            topt_text_add(&t, "%s%s", k ? " and " : "",
                          json_string_value(json_array_get(names, k)));
        if (json_is_true(json_object_get(row, "feasible")))
            topt_text_add(
                &t, ": %s a step on %lld GPU%s\n",
                topt_show_ns(topt_json_whole_at(row, "time_ns"), buf, sizeof buf),
                (long long)topt_json_whole_at(row, "gpus"),
                topt_json_whole_at(row, "gpus") == 1 ? "" : "s");
        else
            topt_text_add(&t, ": %lld GPUs do not hold it\n",
                          (long long)topt_json_whole_at(row, "gpus"));
    }
    return t.s;
}
