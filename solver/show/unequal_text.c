/* unequal_text.c - the answer about groups of unlike devices, in words.
 */
#include "topt_unequal_text.h"

#include <stdio.h>
#include <string.h>

#include "topt_json.h"
#include "topt_text.h"

int topt_is_unequal(const json_t *answer)
{
    return json_object_get(answer, "choices") && !json_object_get(answer, "group");
}

/* 'shared': what of the state groups share, NULL: nothing. */
static void add_group(struct topt_text *t, const json_t *g, const char *shared)
{
    char a[32], b[32], c[32], state[32] = "state all";
    if (shared)
        snprintf(state, sizeof state, "%s %.1f %%", shared,
                 100 * topt_json_number_at(g, "state_share"));
    topt_text_add(t, "%-12s %4lld x %-18s %6lld rows %5.1f %%  %-13s %10s  %s of %s\n",
                  topt_json_words_at(g, "name"), (long long)topt_json_whole_at(g, "gpus"),
                  topt_json_words_at(g, "device"),
                  (long long)topt_json_whole_at(g, "rows"),
                  100 * topt_json_number_at(g, "row_share"), state,
                  topt_show_ns(topt_json_whole_at(g, "time_ns"), a, sizeof a),
                  topt_show_bytes(topt_json_whole_at(g, "memory_bytes"), b, sizeof b),
                  topt_show_bytes(topt_json_whole_at(g, "memory_limit"), c, sizeof c));
    topt_text_add(t, "%12s %s\n", "", topt_json_words_at(g, "strategy"));
}

/* A line a stage. */
static void add_stages(struct topt_text *t, const json_t *stages)
{
    const json_t *s;
    char a[32], b[32], c[32];
    size_t i;
    json_array_foreach(stages, i, s) topt_text_add(
        t, "stage %-3zu %4lld x %-18s %4lld layers %10s busy  %s of %s\n", i + 1,
        (long long)topt_json_whole_at(s, "gpus"), topt_json_words_at(s, "device"),
        (long long)topt_json_whole_at(s, "layers"),
        topt_show_ns(topt_json_whole_at(s, "busy_ns"), a, sizeof a),
        topt_show_bytes(topt_json_whole_at(s, "memory_bytes"), b, sizeof b),
        topt_show_bytes(topt_json_whole_at(s, "memory_limit"), c, sizeof c));
}

/* Where its ranks are: of stages side by side on one group. */
static void add_ranks_of_stages(struct topt_text *t, const json_t *stages)
{
    long long first = 0, next = 0;
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *s = json_array_get(stages, i),
                     *after = json_array_get(stages, i + 1);
        const char *group = topt_json_words_at(s, "group");
        next += topt_json_whole_at(s, "gpus");
        if (after && !strcmp(topt_json_words_at(after, "group"), group))
            continue;
        topt_text_add(t, "%s%lld to %lld on %s", first ? ", " : "          ranks ", first,
                      next - 1, group);
        first = next;
    }
    topt_text_add(t, "\n");
}

/* One pipeline over all groups. */
static void add_staged(struct topt_text *t, const json_t *answer)
{
    const json_t *stages = json_object_get(answer, "stages"),
                 *shares = json_object_get(answer, "shares");
    char a[32];
    topt_text_add(
        t,
        "a step takes %s, by one pipeline of %zu stages, each on GPUs of one group\n\n",
        topt_show_ns(topt_json_whole_at(answer, "time_ns"), a, sizeof a),
        json_array_size(stages));
    add_stages(t, stages);
    topt_text_add(t, "\nstrategy  %s\n", topt_json_words_at(answer, "strategy"));
    if (shares)
        topt_text_add(t,
                      "shares    of the batch, each group by its own plan, take %s, %.2f "
                      "times as long\n",
                      topt_show_ns(topt_json_whole_at(shares, "time_ns"), a, sizeof a),
                      topt_json_number_at(shares, "time_ns") /
                          topt_json_number_at(answer, "time_ns"));
    topt_text_add(t, "plan      %s, which -o writes for topt launch\n",
                  topt_json_words_at(answer, "plan_id"));
    add_ranks_of_stages(t, stages);
}

/* Devices of a group by itself with the whole batch, and the sum of their rates. */
static void add_alone(struct topt_text *t, const json_t *answer)
{
    const json_t *groups = json_object_get(answer, "groups"), *g;
    double rates = 0, time = topt_json_number_at(answer, "time_ns");
    char buf[32];
    size_t i;
    json_array_foreach(groups, i, g)
    {
        if (!json_is_integer(json_object_get(g, "alone_ns"))) {
            topt_text_add(t, "alone     %s: does not fit\n",
                          topt_json_words_at(g, "name"));
            rates = -1;
            continue;
        }
        topt_text_add(t, "alone     %s would take %s%s\n", topt_json_words_at(g, "name"),
                      topt_show_ns(topt_json_whole_at(g, "alone_ns"), buf, sizeof buf),
                      topt_json_number_at(g, "alone_ns") < time
                          ? ": faster without the others, for which it would wait"
                          : "");
        if (rates >= 0)
            rates += 1 / topt_json_number_at(g, "alone_ns");
    }
    if (rates > 0)
        topt_text_add(t,
                      "together  %.2f times the ideal time by the sum of their speeds\n",
                      time * rates);
}

/* Where its ranks are. */
static void add_ranks(struct topt_text *t, const json_t *groups)
{
    long long first = 0;
    const json_t *g;
    size_t i;
    json_array_foreach(groups, i, g)
    {
        long long n = topt_json_whole_at(g, "gpus");
        topt_text_add(t, "%s%lld", i ? ", " : "          ranks ", first);
        if (n > 1)
            topt_text_add(t, " to %lld", first + n - 1);
        topt_text_add(t, " on %s", topt_json_words_at(g, "name"));
        first += n;
    }
    topt_text_add(t, "\n");
}

char *topt_unequal_text(const json_t *answer)
{
    struct topt_text t = {0};
    char a[32], b[32], c[32];
    const json_t *groups = json_object_get(answer, "groups"),
                 *equal = json_object_get(answer, "equal"),
                 *job = json_object_get(answer, "job");
    topt_text_add(&t, "%s, %lld samples per step, on ", topt_json_words_at(job, "model"),
                  (long long)topt_json_whole_at(job, "batch"));
    if (json_object_get(answer, "gpus")) /* not where several numbers were looked at */
        topt_text_add(&t, "%lld GPUs of ", (long long)topt_json_whole_at(answer, "gpus"));
    topt_text_add(&t, "%s\n", topt_json_words_at(job, "hw"));
    if (!json_is_true(json_object_get(answer, "feasible"))) {
        topt_text_add(&t, "nothing fits: %s\n", topt_json_words_at(answer, "why"));
        return t.s;
    }
    if (json_object_get(answer, "stages")) {
        add_staged(&t, answer);
        return t.s;
    }
    const char *how = topt_json_words_at(answer, "state"), *shared = *how == 's' ? "state"
                                                                     : *how == 'o'
                                                                         ? "optimizer"
                                                                         : NULL;
    int one = json_is_true(json_object_get(answer, "one_strategy"));
    topt_text_add(&t, "a step takes %s",
                  topt_show_ns(topt_json_whole_at(answer, "time_ns"), a, sizeof a));
    if (one)
        topt_text_add(&t, ", by one strategy for all groups, which share what its first "
                          "axis splits\n\n");
    else
        topt_text_add(
            &t, ", of which %s between groups (%s more is hidden)\n\n",
            topt_show_ns(topt_json_whole_at(answer, "exchange_ns"), b, sizeof b),
            topt_show_ns(topt_json_whole_at(answer, "hidden_ns"), c, sizeof c));
    for (size_t i = 0; i < json_array_size(groups); i++)
        add_group(&t, json_array_get(groups, i), shared);
    topt_text_add(&t, "\n");
    if (json_is_true(json_object_get(equal, "feasible")))
        topt_text_add(&t, "equal     shares of everything take %s, %.2f times as long\n",
                      topt_show_ns(topt_json_whole_at(equal, "time_ns"), a, sizeof a),
                      topt_json_number_at(equal, "time_ns") /
                          topt_json_number_at(answer, "time_ns"));
    else
        topt_text_add(&t, "equal     shares of everything do not fit\n");
    add_alone(&t, answer);
    const json_t *plan = json_object_get(answer, "plan");
    if (plan)
        topt_text_add(&t,
                      "plan      %s: one strategy for all groups, %s per step, which -o "
                      "writes for topt run\n",
                      topt_json_words_at(plan, "id"),
                      topt_show_ns(topt_json_whole_at(answer, "plan_ns"), a, sizeof a));
    if (plan)
        add_ranks(&t, groups);
    else
        topt_text_add(&t, "plan      none that all groups run together: %s\n",
                      topt_json_words_at(answer, "no_plan"));
    return t.s;
}

char *topt_groups_text(const json_t *answer)
{
    struct topt_text t = {0};
    const json_t *row, *name;
    char buf[32];
    size_t i, k;
    json_array_foreach(json_object_get(answer, "choices"), i, row)
    {
        const json_t *of = json_object_get(row, "gpus_of");
        long long gpus = topt_json_whole_at(row, "gpus");
        topt_text_add(&t, "%-9s ", i ? "" : "groups");
        json_array_foreach(json_object_get(row, "groups"), k, name)
        {
            topt_text_add(&t, "%s", k ? " and " : "");
            if (of)
                topt_text_add(&t, "%lld of ",
                              (long long)json_integer_value(json_array_get(of, k)));
            topt_text_add(&t, "%s", json_string_value(name));
        }
        if (json_is_true(json_object_get(row, "feasible")))
            topt_text_add(
                &t, ": %s per step on %lld GPU%s\n",
                topt_show_ns(topt_json_whole_at(row, "time_ns"), buf, sizeof buf), gpus,
                gpus == 1 ? "" : "s");
        else
            topt_text_add(&t, ": %lld GPUs do not hold it\n", gpus);
    }
    return t.s;
}
