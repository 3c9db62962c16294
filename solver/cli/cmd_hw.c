/* cmd_hw.c - topt hw list | show | check: which clusters are known, and what is known of
 * them: which times were measured and which are derived. */
#include "topt_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "topt_error.h"
#include "topt_hw.h"
#include "topt_json.h"
#include "topt_options.h"
#include "topt_text.h"

struct args {
    int json;
};

static const struct topt_option table[] = {
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL, "print JSON"}, {0}};

static const char *const usage = "topt hw list | show NAME | check NAME_OR_FILE [--json]";

static int print_json(json_t *doc)
{
    char *text = topt_json_text(doc, 2);
    if (text)
        puts(text);
    free(text);
    json_decref(doc);
    return text ? 0 : 1;
}

static json_t *summary(const struct topt_hw *hw)
{
    json_t *types = json_array();
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++)
        if (topt_hw_has_dtype(hw, (enum topt_dtype)t))
            json_array_append_new(types,
                                  json_string(topt_dtype_name((enum topt_dtype)t)));
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:o}", "name", topt_hw_name(hw), "device",
                     topt_hw_device(hw), "max_nodes", topt_hw_max_nodes(hw),
                     "gpus_per_node", topt_hw_gpus_per_node(hw), "memory_bytes",
                     (json_int_t)topt_hw_memory_bytes(hw), "dtypes", types);
}

static int list(const struct args *args, struct topt_error *err)
{
    json_t *all = json_array();
    char memory[32];
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_hw *hw = topt_hw_load(*name, err);
        if (!hw) {
            json_decref(all);
            return -1;
        }
        json_array_append_new(all, summary(hw));
        if (!args->json)
            printf("%-16s up to %4d nodes x %d  %-15s %9s usable each\n", *name,
                   topt_hw_max_nodes(hw), topt_hw_gpus_per_node(hw), topt_hw_device(hw),
                   topt_show_bytes(topt_hw_memory_bytes(hw), memory, sizeof memory));
        topt_hw_destroy(hw);
    }
    if (args->json)
        return print_json(json_pack("{s:o}", "profiles", all));
    json_decref(all);
    return 0;
}

/* Groups whose basis is told: each power of two inside a node and the whole node, then one
 * device and whole nodes on 2 and on all nodes.  Returns how many. */
enum { MAX_GROUPS = 16 };
static int sample_groups(const struct topt_hw *hw, struct topt_group ret[MAX_GROUPS])
{
    int per_node = topt_hw_gpus_per_node(hw), nodes = topt_hw_max_nodes(hw), n = 0;
    for (int m = 2; m < per_node; m *= 2)
        ret[n++] = (struct topt_group){1, m, per_node / m};
    if (per_node > 1)
        ret[n++] = (struct topt_group){1, per_node, 1};
    const int across[] = {2, nodes};
    for (int i = nodes > 1 ? 0 : 2; i < (nodes > 2 ? 2 : 1); i++) {
        if (per_node > 1)
            ret[n++] = (struct topt_group){across[i], 1, per_node};
        ret[n++] = (struct topt_group){across[i], per_node, 1};
    }
    return n;
}

static json_t *group_json(struct topt_group g)
{
    return json_pack("{s:i, s:i, s:i}", "nodes", g.nodes, "per_node", g.per_node,
                     "siblings", g.siblings);
}

static json_t *curves_json(const struct topt_hw *hw)
{
    json_t *curves = json_array();
    struct topt_hw_curve_check c;
    for (int i = 0; topt_hw_curve_check(hw, i, &c); i++)
        json_array_append_new(curves, json_pack("{s:s, s:o, s:i, s:i, s:f}", "collective",
                                                topt_collective_name(c.kind), "group",
                                                group_json(c.group), "points", c.points,
                                                "lowered", c.lowered, "mean_error",
                                                c.mean_error));
    return curves;
}

static int check_json(const struct topt_hw *hw)
{
    struct topt_group g[MAX_GROUPS];
    char buf[64];
    int n = sample_groups(hw, g);
    json_t *groups = json_array(), *doc = summary(hw);
    for (int i = 0; i < n; i++) {
        json_t *entry = group_json(g[i]);
        for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++) {
            enum topt_collective kind = (enum topt_collective)c;
            json_object_set_new(
                entry, topt_collective_name(kind),
                json_string(topt_hw_basis(hw, kind, g[i], buf, sizeof buf)));
        }
        json_array_append_new(groups, entry);
    }
    json_object_set_new(doc, "measured", curves_json(hw));
    json_object_set_new(doc, "basis", groups);
    return print_json(doc);
}

static void print_curves(const struct topt_hw *hw)
{
    struct topt_hw_curve_check c;
    if (!topt_hw_curve_check(hw, 0, &c)) {
        printf("measured: nothing; every collective is priced by the two-level model\n");
        return;
    }
    printf("measured (error: each point predicted from its neighbours):\n");
    for (int i = 0; topt_hw_curve_check(hw, i, &c); i++) {
        printf("  %-15s %d node%s x %d, %d group%s  %3d points  error %.1f %%",
               topt_collective_name(c.kind), c.group.nodes, c.group.nodes > 1 ? "s" : "",
               c.group.per_node, c.group.siblings, c.group.siblings > 1 ? "s" : "",
               c.points, 100 * c.mean_error);
        if (c.lowered)
            printf("  %d slower than more bytes, lowered", c.lowered);
        printf("\n");
    }
}

static void check_text(const struct topt_hw *hw)
{
    struct topt_group g[MAX_GROUPS];
    char buf[64], group[48], memory[32];
    int n = sample_groups(hw, g);
    printf("%s: up to %d nodes of %d %s, %s usable each; well formed\n", topt_hw_name(hw),
           topt_hw_max_nodes(hw), topt_hw_gpus_per_node(hw), topt_hw_device(hw),
           topt_show_bytes(topt_hw_memory_bytes(hw), memory, sizeof memory));
    print_curves(hw);
    printf("priced by (another group's curve is moved by the two-level model):\n  %-16s",
           "nodes x each");
    for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++)
        printf(" %-19s", topt_collective_name((enum topt_collective)c));
    printf("\n");
    for (int i = 0; i < n; i++) {
        snprintf(group, sizeof group, "%d x %d (%d)", g[i].nodes, g[i].per_node,
                 g[i].siblings);
        printf("  %-16s", group);
        for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++)
            printf(" %-19s",
                   topt_hw_basis(hw, (enum topt_collective)c, g[i], buf, sizeof buf));
        printf("\n");
    }
}

static int run(const struct args *args, const char *verb, const char *name,
               struct topt_error *err)
{
    int show = !strcmp(verb, "show");
    if (!strcmp(verb, "list"))
        return name ? topt_fail(err, TOPT_ERR_USAGE, "list takes no name; try --help")
                    : list(args, err);
    if (!show && strcmp(verb, "check"))
        return topt_fail(err, TOPT_ERR_USAGE, "'%s' is not list, show or check", verb);
    if (!name)
        return topt_fail(err, TOPT_ERR_USAGE, "%s needs the name of a profile or a file",
                         verb);
    struct topt_hw *hw = topt_hw_load(name, err);
    if (!hw)
        return -1;
    int rc = 0;
    if (show)
        rc = print_json(topt_hw_to_json(hw));
    else if (args->json)
        rc = check_json(hw);
    else
        check_text(hw);
    topt_hw_destroy(hw);
    return rc ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer") : 0;
}

int topt_cmd_hw(int argc, char **argv)
{
    struct args args = {0};
    struct topt_error err;
    const char *words[2] = {NULL, NULL};
    int n, rc = topt_options_parse(table, argc, argv, &args, words, 2, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, table);
        return 0;
    }
    if (!rc && !words[0])
        rc = topt_fail(&err, TOPT_ERR_USAGE, "list, show or check is needed; try --help");
    if (!rc)
        rc = run(&args, words[0], words[1], &err);
    if (!rc)
        return 0;
    fprintf(stderr, "topt hw: %s\n", err.text);
    return topt_err_exit(err.code);
}
