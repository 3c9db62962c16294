/* cmd_study.c - study: what another system's own search finds, in its own terms.
 *
 * `topt compare` prices all systems alike; here each has the costs, the networks and the cluster
 * that its paper has. */
#include "topt_cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "topt_accpar.h"
#include "topt_hw.h"
#include "topt_near.h"
#include "topt_parallax.h"
#include "topt_text.h"

struct args {
    const char *hw, *group;
    int64_t batch;
    int json;
};

#define AT(field) offsetof(struct args, field)
static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt study accpar", "its choices for each of its networks"),
    {"hw", TOPT_OPT_STRING, AT(hw), "NAME", "of accpar: the array (default: tpu-v2-v3)"},
    {"group", TOPT_OPT_STRING, AT(group), "NAME",
     "of accpar: only the boards of this group"},
    {"batch", TOPT_OPT_COUNT, AT(batch), "N",
     "of accpar: images per step (default: 512)"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {0}};
static const char usage[] =
    "topt study accpar [NETWORK] | parallax [options]\n"
    "accpar: how AccPar, HyPar, one weird trick and data parallelism cut networks over\n"
    "an array of boards, and with a NETWORK what type every layer has at every cut.\n"
    "parallax: parameter servers, all-reduce and the hybrid, and bytes of each.";

/* ---- accpar ------------------------------------------------------------------------- */

struct array {
    const struct args *args;
    struct topt_accpar_boards boards[TOPT_ACCPAR_KINDS];
    int kinds;
    double element_bytes;
};

static int open_array(struct array *a, const struct args *args, struct topt_error *err)
{
    a->args = args;
    struct topt_hw *hw = topt_hw_load(args->hw ? args->hw : "tpu-v2-v3", err);
    if (!hw)
        return -1;
    int rc =
        topt_accpar_boards(hw, args->group, a->boards, &a->kinds, &a->element_bytes, err);
    topt_hw_destroy(hw);
    return rc;
}

static void print_array(const struct array *a)
{
    for (int k = 0; k < a->kinds; k++)
        printf("%s%d x %s", k ? ", " : "", a->boards[k].count, a->boards[k].name);
}

static int solve(const struct array *a, const char *name, int system,
                 struct topt_accpar_net *net, struct topt_accpar_answer *ret,
                 struct topt_error *err)
{
    return topt_accpar_net(name, (double)a->args->batch, net, err) ||
                   topt_accpar_solve(net, a->boards, a->kinds, a->element_bytes,
                                     (enum topt_accpar_system)system, ret, err)
               ? -1
               : 0;
}

static void print_time(double seconds, const char *end)
{
    char buf[32];
    printf("%12s%s", topt_show_ns((int64_t)(seconds * 1e9), buf, sizeof buf), end);
}

/* Every network by every system, as times as fast as data parallelism. */
static int all_networks(const struct array *a, json_t *rows, struct topt_error *err)
{
    double product[TOPT_ACCPAR_SYSTEMS] = {0};
    int n = 0, text = !a->args->json;
    if (text) {
        printf("%lld images per step on ", (long long)a->args->batch);
        print_array(a);
        printf(": the time of a step with data parallelism, and how\n"
               "many times as fast the others are\n"
               "\n"
               "%-10s %13s %16s %8s %8s\n",
               "network", "data parallel", "one weird trick", "HyPar", "AccPar");
    }
    for (const char *const *name = topt_accpar_nets(); *name; name++, n++) {
        struct topt_accpar_net net;
        struct topt_accpar_answer r;
        double seconds[TOPT_ACCPAR_SYSTEMS], times[TOPT_ACCPAR_SYSTEMS];
        for (int s = 0; s < TOPT_ACCPAR_SYSTEMS; s++) {
            if (solve(a, *name, s, &net, &r, err))
                return -1;
            seconds[s] = r.seconds;
            times[s] = seconds[0] / seconds[s];
            product[s] += log(times[s]);
        }
        json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:f}", "network",
                                              *name, "data_parallel_seconds", seconds[0],
                                              "one_weird_trick", times[1], "hypar",
                                              times[2], "accpar", times[3]));
        if (!text)
            continue;
        printf("%-10s ", *name);
        print_time(seconds[0], " ");
        printf("%16.2f %8.2f %8.2f\n", times[1], times[2], times[3]);
    }
    if (text)
        printf("%-24s %16.2f %8.2f %8.2f\n", "geometric mean", exp(product[1] / n),
               exp(product[2] / n), exp(product[3] / n));
    return 0;
}

static json_t *cut_json(const struct topt_accpar_net *net,
                        const struct topt_accpar_cut *c)
{
    json_t *types = json_array(), *shares = json_array();
    for (int l = 0; l < net->n; l++) {
        json_array_append_new(types, json_string(topt_accpar_type_name(c->type[l])));
        json_array_append_new(shares, json_real(c->share[l]));
    }
    return json_pack("{s:o, s:o, s:f}", "types", types, "shares", shares,
                     "exchange_seconds", c->exchange_seconds);
}

/* A cut of which one side has no part of a layer is none. */
static const char *type_at(const struct topt_accpar_cut *c, int layer)
{
    int both = c->share[layer] > 0 && c->share[layer] < 1;
    return both ? topt_accpar_type_name(c->type[layer]) : "-";
}

static void print_cuts(const struct array *a, const struct topt_accpar_net *net,
                       const struct topt_accpar_answer *r)
{
    printf("%-8s %9s", "layer", a->kinds > 1 ? "share" : "");
    for (int i = 0; i < r->levels; i++)
        printf("  %3d", i + 1);
    printf("\n");
    for (int l = 0; l < net->n; l++) {
        printf("%-8s ", net->layer[l].name);
        if (a->kinds > 1)
            printf("%9.3f", r->cut[0].share[l]);
        else
            printf("%9s", "");
        for (int i = 0; i < r->levels; i++)
            printf("  %3s", type_at(&r->cut[i], l));
        printf("\n");
    }
}

static int one_network(const struct array *a, const char *name, json_t *rows,
                       struct topt_error *err)
{
    struct topt_accpar_net net;
    struct topt_accpar_answer r;
    int text = !a->args->json;
    if (solve(a, name, TOPT_ACCPAR_DATA, &net, &r, err))
        return -1;
    if (text) {
        printf("%s, %lld images per step on ", name, (long long)a->args->batch);
        print_array(a);
        printf(
            "\nBy cut, the first between the kinds of boards where there are two: I the "
            "batch, II input,\nIII output features; share: of %s\n"
            "(0 or 1: one kind has all of the layer, as the other exchanges longer than "
            "that "
            "needs for it)\n",
            a->boards[0].name);
    }
    for (int s = 0; s < TOPT_ACCPAR_SYSTEMS; s++) {
        const char *system = topt_accpar_system_name((enum topt_accpar_system)s);
        if (solve(a, name, s, &net, &r, err))
            return -1;
        json_t *cuts = json_array();
        for (int i = 0; i < r.levels; i++)
            json_array_append_new(cuts, cut_json(&net, &r.cut[i]));
        json_array_append_new(
            rows, json_pack("{s:s, s:f, s:f, s:f, s:o}", "system", system, "seconds",
                            r.seconds, "compute_seconds", r.compute_seconds,
                            "exchange_seconds", r.exchange_seconds, "cuts", cuts));
        if (!text)
            continue;
        printf("\n%s:", system);
        print_time(r.seconds, " a step, of which computing");
        print_time(r.compute_seconds, "\n");
        if (s >= TOPT_ACCPAR_HYPAR)
            print_cuts(a, &net, &r);
    }
    return 0;
}

static int accpar(const struct args *args, const char *network, json_t *ret,
                  struct topt_error *err)
{
    struct array a;
    json_t *rows = json_array();
    json_object_set_new(ret, network ? "systems" : "networks", rows);
    if (open_array(&a, args, err))
        return -1;
    return network ? one_network(&a, network, rows, err) : all_networks(&a, rows, err);
}

/* ---- parallax ----------------------------------------------------------------------- */

static void show_model(const struct topt_parallax_model *m, int json, json_t *rows)
{
    const struct topt_parallax_cluster *c = topt_parallax_titanxp();
    double speed[TOPT_PARALLAX_SYSTEMS];
    int partitions = 0, of_hybrid = 0;
    for (int s = 0; s < TOPT_PARALLAX_SYSTEMS; s++) {
        speed[s] =
            topt_parallax_throughput(m, c, (enum topt_parallax_system)s, &partitions);
        of_hybrid = s == TOPT_PARALLAX_HYBRID ? partitions : of_hybrid;
    }
    json_array_append_new(rows,
                          json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:i}", "model",
                                    m->name, "all_reduce", speed[0], "servers", speed[1],
                                    "aggregating_servers", speed[2], "hybrid", speed[3],
                                    "by_rates", speed[4], "partitions", of_hybrid));
    if (!json)
        printf("%-14s %6.2f %11.0f %11.0f %11.0f %11.0f %11.0f %11d\n", m->name,
               m->sparse > 0 ? m->alpha : 1, speed[0], speed[1], speed[2], speed[3],
               speed[4], of_hybrid);
}

static void show_bytes(int json, json_t *rows)
{
    const double alpha[] = {1, 0.5, 0.1, 0.02};
    if (!json)
        printf(
            "\nBytes that each of 8 machines sends and receives in a step, times those "
            "of the variables:\n\n%7s %10s %12s %14s\n",
            "touched", "servers", "all-reduce", "all-gather");
    for (int i = 0; i < 4; i++) {
        double of[3];
        for (int w = 0; w < 3; w++)
            of[w] = topt_parallax_bytes((enum topt_parallax_way)w, 8, 1, 1, alpha[i]);
        json_array_append_new(rows, json_pack("{s:f, s:f, s:f, s:f}", "alpha", alpha[i],
                                              "servers", of[0], "all_reduce", of[1],
                                              "all_gather", of[2]));
        if (!json)
            printf("%7.2f %10.3f %12.3f %14.3f\n", alpha[i], of[0], of[1], of[2]);
    }
}

static int parallax(const struct args *args, const char *none, json_t *ret,
                    struct topt_error *err)
{
    int n;
    const struct topt_parallax_model *m = topt_parallax_models(&n);
    json_t *rows = json_array(), *bytes = json_array();
    json_object_set_new(ret, "models", rows);
    json_object_set_new(ret, "bytes", bytes);
    if (none || args->hw || args->group)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "parallax has its paper's models and cluster, and takes --json");
    if (!args->json)
        printf("Images or words a second on 8 machines of 6 TITAN Xp, by a model of its "
               "own (nothing overlaps).\nThe hybrid has sparse variables on servers; by "
               "rates: on rings where bytes over rates say so\n\n"
               "%-14s %6s %11s %11s %11s %11s %11s %11s\n",
               "model", "alpha", "all-reduce", "servers", "aggregating", "hybrid",
               "by rates", "partitions");
    for (int i = 0; i < n; i++)
        show_model(&m[i], args->json, rows);
    show_bytes(args->json, bytes);
    return 0;
}

/* ---- the command -------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const struct args *args, const char *argument, json_t *ret,
               struct topt_error *err);
} studies[] = {{"accpar", accpar}, {"parallax", parallax}};

static int study(const struct args *args, const char *const *positional, int n,
                 struct topt_error *err)
{
    static const char *const names[] = {"accpar", "parallax", NULL};
    char meant[TOPT_NEAR_WORDS];
    if (!n)
        return topt_fail(err, TOPT_ERR_USAGE, "which study? accpar or parallax");
    for (size_t i = 0; i < sizeof studies / sizeof *studies; i++) {
        if (strcmp(studies[i].name, positional[0]))
            continue;
        json_t *ret = json_pack("{s:s}", "study", studies[i].name);
        int rc = studies[i].run(args, n > 1 ? positional[1] : NULL, ret, err);
        if (!rc && args->json)
            rc = topt_cli_write_json(ret, "-", err);
        json_decref(ret);
        return rc;
    }
    return topt_fail(err, TOPT_ERR_USAGE, "unknown study '%.30s'%s (accpar or parallax)",
                     positional[0], topt_near_among(positional[0], names, meant));
}

int topt_cmd_study(int argc, char **argv)
{
    struct args a = {.batch = 512};
    struct topt_error err = {0};
    const char *positional[2] = {NULL, NULL};
    int n, rc = topt_options_parse(options, argc, argv, &a, positional, 2, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    if (rc || study(&a, positional, n, &err))
        return topt_cli_fail("study", &err);
    return 0;
}
