/* cmd_hw.c - topt hw list | show | check: which clusters are known, and what is known of
 * them: which times were measured and which are derived. */
#include "topt_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "hw_impl.h"
#include "hw_moves.h"
#include "topt_error.h"
#include "topt_hw.h"
#include "topt_json.h"
#include "topt_near.h"
#include "topt_options.h"
#include "topt_text.h"

struct args {
    int json;
};

static const struct topt_option table[] = {
    TOPT_EXAMPLE("topt hw show a100-80-dgx",
                 "a profile as a document, to make another from"),
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL, "print JSON"},
    {0}};

static const char *const usage =
    "topt hw list | show NAME_OR_FILE | check NAME_OR_FILE [--json]\n"
    "Hardware profiles: list the shipped ones, show one, or check where its figures come "
    "from.";

static int print_json(json_t *doc)
{
    struct topt_error err;
    int rc = topt_cli_write_json(doc, "-", &err);
    json_decref(doc);
    return rc;
}

static json_t *summary(const struct topt_hw *hw)
{
    int year;
    const char *vendor = topt_hw_shipped_origin(topt_hw_name(hw), &year);
    json_t *types = json_array();
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++)
        if (topt_hw_peak(hw, (enum topt_dtype)t) > 0 ||
            (t == TOPT_F16 && topt_hw_has_dtype(hw, TOPT_F16)))
            json_array_append_new(types,
                                  json_string(topt_dtype_name((enum topt_dtype)t)));
    json_t *doc = json_pack(
        "{s:s, s:s, s:i, s:i, s:I, s:o, s:o}", "name", topt_hw_name(hw), "device",
        topt_hw_device(hw), "max_nodes", topt_hw_max_nodes(hw), "gpus_per_node",
        topt_hw_gpus_per_node(hw), "memory_bytes", (json_int_t)topt_hw_memory_bytes(hw),
        "dtypes", types, "lacks", topt_hw_lacks(hw));
    if (*vendor) {
        json_object_set_new(doc, "vendor", json_string(vendor));
        json_object_set_new(doc, "year", json_integer(year));
    }
    return doc;
}

static int is_type(const char *name)
{
    int t = 0;
    while (t < TOPT_DTYPE_COUNT && strcmp(name, topt_dtype_name((enum topt_dtype)t)))
        t++;
    return t < TOPT_DTYPE_COUNT;
}

/* The strings of an array that are names of types, or those that are not, with something between. */
static void add_joined(const json_t *list, int types, const char *between,
                       struct topt_text *t)
{
    size_t i;
    json_t *x;
    json_array_foreach(list, i, x)
    {
        if (is_type(json_string_value(x)) == types)
            topt_text_add(t, "%s%s", t->len ? between : "", json_string_value(x));
    }
}

static void list_one(const json_t *p)
{
    char memory[32];
    struct topt_text types = {0}, without = {0}, lacks = {0};
    add_joined(json_object_get(p, "dtypes"), 1, " ", &types);
    add_joined(json_object_get(p, "lacks"), 1, " ", &without);
    add_joined(json_object_get(p, "lacks"), 0, ", ", &lacks);
    printf("  %-22s %4d x %-3d  %9s  %-25s  %-13s  %-30s  %s\n",
           json_string_value(json_object_get(p, "name")),
           (int)json_integer_value(json_object_get(p, "max_nodes")),
           (int)json_integer_value(json_object_get(p, "gpus_per_node")),
           topt_show_bytes(json_integer_value(json_object_get(p, "memory_bytes")), memory,
                           sizeof memory),
           types.s ? types.s : "", without.s ? without.s : "",
           json_string_value(json_object_get(p, "device")), lacks.s ? lacks.s : "");
    topt_text_fini(&types);
    topt_text_fini(&without);
    topt_text_fini(&lacks);
}

static const char *vendor_of(const json_t *p)
{
    const char *vendor = json_string_value(json_object_get(p, "vendor"));
    return vendor ? vendor : "";
}

/* By vendor, those without one last; then the newest first; then by name. */
static int by_vendor_and_year(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const char *vx = vendor_of(x), *vy = vendor_of(y);
    json_int_t year = json_integer_value(json_object_get(y, "year")) -
                      json_integer_value(json_object_get(x, "year"));
    if (!*vx != !*vy)
        return *vx ? -1 : 1;
    int order = strcmp(vx, vy);
    if (order || year)
        return order ? order : year < 0 ? -1 : 1;
    return strcmp(json_string_value(json_object_get(x, "name")),
                  json_string_value(json_object_get(y, "name")));
}

static void print_list(json_t **all, size_t n)
{
    const char *vendor = NULL;
    json_int_t year = -1;
    printf("%-24s %-11s %9s  %-25s  %-13s  %-30s  %s\n", "profile", "nodes x GPU",
           "usable", "types", "does not have", "device", "no figures of its own for");
    for (size_t i = 0; i < n; i++) {
        json_int_t y = json_integer_value(json_object_get(all[i], "year"));
        if (!vendor || strcmp(vendor, vendor_of(all[i])) || y != year) {
            vendor = vendor_of(all[i]);
            year = y;
            if (*vendor)
                printf("%s, %d\n", vendor, (int)year);
            else
                printf("other\n");
        }
        list_one(all[i]);
    }
}

static int list(const struct args *args, struct topt_error *err)
{
    enum { MOST = 256 };
    json_t *all = json_array(), *sorted[MOST];
    size_t n = 0;
    for (const char *const *name = topt_hw_shipped(); *name && n < MOST; name++) {
        struct topt_hw *hw = topt_hw_load(*name, err);
        if (!hw) {
            json_decref(all);
            return -1;
        }
        sorted[n++] = summary(hw);
        topt_hw_destroy(hw);
    }
    qsort(sorted, n, sizeof *sorted, by_vendor_and_year);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, sorted[i]);
    if (args->json)
        return print_json(json_pack("{s:o}", "profiles", all));
    print_list(sorted, n);
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

/* Where the figures of each section come from, as the document says. */
static json_t *sources_json(const json_t *doc)
{
    size_t i;
    json_t *x, *all = json_object();
    json_object_set(all, "device",
                    json_object_get(json_object_get(doc, "device"), "source"));
    json_array_foreach(json_object_get(doc, "links"), i, x)
        json_object_set(all, json_string_value(json_object_get(x, "level")),
                        json_object_get(x, "source"));
    x = json_object_get(json_object_get(doc, "collective"), "source");
    if (x)
        json_object_set(all, "collective", x);
    return all;
}

static int check_json(const struct topt_hw *hw, struct topt_error *err)
{
    struct topt_group g[MAX_GROUPS];
    json_t *moves = topt_hw_moves(hw, err);
    if (!moves)
        return -1;
    char buf[64];
    int n = sample_groups(hw, g);
    json_t *groups = json_array(), *doc = summary(hw), *whole = topt_hw_to_json(hw);
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
    json_object_set_new(doc, "sources", sources_json(whole));
    json_object_set_new(doc, "measured", curves_json(hw));
    json_object_set_new(doc, "basis", groups);
    json_object_set_new(doc, "missing", topt_hw_missing(hw));
    json_object_set_new(doc, "assumed", moves);
    json_object_set_new(doc, "warnings", topt_hw_warnings(hw));
    json_decref(whole);
    return print_json(doc);
}

/* A source is one clause a figure: each on a line of its own. */
static void print_source(const char *text)
{
    enum { COLUMNS = 92, INDENT = 6 };
    struct topt_text t = {0};
    while (text && *text) {
        size_t clause = strcspn(text, ";");
        topt_text_add(&t, "%*s", INDENT - 2, "");
        topt_text_fold(&t, text, clause, INDENT, COLUMNS);
        topt_text_add(&t, "\n");
        text += clause + (text[clause] == ';');
        text += strspn(text, " ");
    }
    fputs(t.s ? t.s : "", stdout);
    topt_text_fini(&t);
}

static void print_rate(const char *what, double rate, const char *unit)
{
    printf("  %-26s %10.4g %s\n", what, rate, unit);
}

/* What kernels reach of a peak is given for all sizes at once, or by size. */
static void print_device(const struct topt_hw *hw, const json_t *d)
{
    const json_t *eff = json_object_get(d, "efficiency");
    const json_t *sizes = json_object_get(d, "matmul_by_size");
    char what[64];
    const char *rates = json_string_value(json_object_get(d, "rates"));
    printf("device: priced by rates%s\n",
           rates && !strcmp(rates, "measured") ? ", which were measured" : "");
    size_t kernels = json_array_size(json_object_get(d, "kernels"));
    if (kernels)
        printf("  %-26s %10zu by samples of their own\n", "kernels", kernels);
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++) {
        const char *type = topt_dtype_name((enum topt_dtype)t);
        const json_t *curve = json_object_get(sizes, type);
        size_t n = json_array_size(curve);
        if (!(topt_hw_peak(hw, (enum topt_dtype)t) > 0))
            continue;
        double peak =
            json_number_value(json_object_get(json_object_get(d, "flops"), type));
        double share = json_number_value(json_object_get(eff, "matmul"));
        double shaped = topt_hw_product_share(hw, (enum topt_dtype)t);
        if (n)
            share = json_number_value(json_array_get(json_array_get(curve, n - 1), 1));
        share = shaped > 0 ? shaped : share;
        snprintf(what, sizeof what, "products in %s", type);
        printf("  %-26s %10.4g TFLOP/s, %.3g of %.4g at peak", what, peak * share / 1e12,
               share, peak / 1e12);
        if (shaped > 0)
            printf("; less where sums are short or results small");
        else if (n)
            printf("; less below %.2g operations, by %zu points",
                   json_number_value(json_array_get(json_array_get(curve, n - 1), 0)), n);
        printf("\n");
    }
    double memory = json_number_value(json_object_get(eff, "memory"));
    print_rate("memory",
               json_number_value(json_object_get(d, "memory_bandwidth")) *
                   (memory > 0 ? memory : 1) / 1e9,
               "GB/s");
    print_rate("kernel launch", json_number_value(json_object_get(d, "launch_ns")) / 1e3,
               "us");
    print_source(json_string_value(json_object_get(d, "source")));
}

static void print_links(const json_t *doc)
{
    size_t i;
    json_t *l;
    json_array_foreach(json_object_get(doc, "links"), i, l)
    {
        int cluster = !strcmp(json_string_value(json_object_get(l, "level")), "cluster");
        printf("%s:\n", cluster ? "between nodes" : "inside a node");
        print_rate(cluster ? "per node, all ports" : "per device",
                   json_number_value(json_object_get(l, "bytes_per_second")) / 1e9,
                   "GB/s");
        print_rate("latency of a step",
                   json_number_value(json_object_get(l, "latency_ns")) / 1e3, "us");
        print_source(json_string_value(json_object_get(l, "source")));
    }
}

static void print_curves(const struct topt_hw *hw, const json_t *doc)
{
    struct topt_hw_curve_check c;
    const char *before = NULL; /* a source that stands for the next curve too */
    char a[32], b[32];
    if (!topt_hw_curve_check(hw, 0, &c)) {
        printf("measured collectives: none; all are priced by the two-level model\n");
        return;
    }
    printf(
        "measured collectives (interpolated between points; error: each point predicted\n"
        "from its neighbours):\n");
    for (int i = 0; topt_hw_curve_check(hw, i, &c); i++) {
        const json_t *curve = json_array_get(json_object_get(doc, "curves"), (size_t)i);
        const json_t *points = json_object_get(curve, "points");
        const json_t *last = json_array_get(points, json_array_size(points) - 1);
        printf("  %-15s %d node%s x %d, %d group%s  %3d points  %s to %s  error %.1f %%",
               topt_collective_name(c.kind), c.group.nodes, c.group.nodes > 1 ? "s" : "",
               c.group.per_node, c.group.siblings, c.group.siblings > 1 ? "s" : "",
               c.points,
               topt_show_bytes((int64_t)json_number_value(
                                   json_array_get(json_array_get(points, 0), 0)),
                               a, sizeof a),
               topt_show_bytes((int64_t)json_number_value(json_array_get(last, 0)), b,
                               sizeof b),
               100 * c.mean_error);
        if (c.lowered)
            printf("  %d lowered", c.lowered);
        printf("\n");
        const char *source = json_string_value(json_object_get(curve, "source"));
        if (!before || strcmp(before, source))
            print_source(source);
        before = source;
    }
}

static void print_basis(const struct topt_hw *hw)
{
    struct topt_group g[MAX_GROUPS];
    char buf[64], group[48];
    int n = sample_groups(hw, g);
    printf(
        "what prices each collective (measured: its own curve; the name of another:\n"
        "that one, moved by the two-level model; two-level: links alone; +curve: links\n"
        "between nodes, a curve inside):\n  %-16s",
        "nodes x each");
    for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++)
        printf(" %-18s", topt_collective_name((enum topt_collective)c));
    printf("\n");
    for (int i = 0; i < n; i++) {
        snprintf(group, sizeof group, "%d x %d (%d)", g[i].nodes, g[i].per_node,
                 g[i].siblings);
        printf("  %-16s", group);
        for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++)
            printf(" %-18s",
                   topt_hw_basis(hw, (enum topt_collective)c, g[i], buf, sizeof buf));
        printf("\n");
    }
}

/* A list of sentences under a heading; takes the list. */
static size_t print_remarks(const char *heading, json_t *list)
{
    size_t i, n = json_array_size(list);
    json_t *x;
    if (n)
        printf("%s:\n", heading);
    json_array_foreach(list, i, x) printf("  %s\n", json_string_value(x));
    json_decref(list);
    return n;
}

/* "a: up to 2 nodes of 8 x A100-SXM4-40GB, 38.00 GiB usable each" */
static void print_size(const char *what, const struct topt_hw *hw, const char *most)
{
    char memory[32];
    int nodes = topt_hw_max_nodes(hw);
    printf("%s%s: %s%d node%s of %d x %s, %s usable each\n", what, topt_hw_name(hw),
           nodes == 1 ? "" : most, nodes, nodes == 1 ? "" : "s",
           topt_hw_gpus_per_node(hw), topt_hw_device(hw),
           topt_show_bytes(topt_hw_memory_bytes(hw), memory, sizeof memory));
}

/* A table: an assumed figure a line, a model a column. */
static int print_moves(const struct topt_hw *hw, struct topt_error *err)
{
    json_t *moves = topt_hw_moves(hw, err), *one, *x;
    const json_t *figures = json_object_get(moves, "figures");
    size_t i, k;
    if (json_array_size(figures)) {
        printf("assumed figures, and how much longer a step of a model takes with one of "
               "them a "
               "tenth\nlower:\n  %-32s",
               "");
        json_array_foreach(json_object_get(moves, "models"), i, one)
            printf(" %12s", json_string_value(json_object_get(one, "name")));
        printf("\n  %-32s", "GPUs");
        json_array_foreach(json_object_get(moves, "models"), i, one)
            printf(" %12d", (int)json_integer_value(json_object_get(one, "gpus")));
        printf("\n");
    }
    json_array_foreach(figures, i, one)
    {
        printf("  %-32s", json_string_value(json_object_get(one, "figure")));
        if (!json_array_size(json_object_get(one, "moves")))
            printf("  what fits, not the time");
        json_array_foreach(json_object_get(one, "moves"), k, x)
        {
            if (json_is_null(x))
                printf(" %12s", "does not fit");
            else
                printf(" %+10.1f %%", 100 * json_real_value(x));
        }
        printf("\n");
    }
    json_decref(moves);
    return moves ? 0 : -1;
}

static int check_text(const struct topt_hw *hw, struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(hw);
    print_size("", hw, "up to ");
    for (int i = 0; i < topt_hw_groups(hw); i++)
        print_size("group ", topt_hw_group(hw, i), "");
    if (topt_hw_groups(hw))
        printf("all groups together, as if each device were the slowest:\n");
    print_device(hw, json_object_get(doc, "device"));
    print_links(doc);
    print_curves(hw, doc);
    print_basis(hw);
    json_decref(doc);
    if (print_remarks("not measured", topt_hw_missing(hw)))
        printf("  to measure collectives and rates on the cluster itself:\n"
               "      srun -N %d --ntasks-per-node %d topt profile -o hw.json\n",
               topt_hw_max_nodes(hw) > 1 ? 2 : 1, topt_hw_gpus_per_node(hw));
    int rc = print_moves(hw, err);
    if (!print_remarks("implausible", topt_hw_warnings(hw)))
        printf("valid; nothing implausible\n");
    return rc;
}

static int run(const struct args *args, const char *verb, const char *name,
               struct topt_error *err)
{
    static const char *const verbs[] = {"list", "show", "check", NULL};
    char meant[TOPT_NEAR_WORDS];
    int show = !strcmp(verb, "show");
    if (!strcmp(verb, "list"))
        return name ? topt_fail(err, TOPT_ERR_USAGE, "list takes no name; try --help")
                    : list(args, err);
    if (!show && strcmp(verb, "check"))
        return topt_fail(err, TOPT_ERR_USAGE, "unknown verb '%s'%s (list, show or check)",
                         verb, topt_near_among(verb, verbs, meant));
    if (!name)
        return topt_fail(err, TOPT_ERR_USAGE, "%s needs the name of a profile or a file",
                         verb);
    struct topt_hw *hw = topt_hw_load(name, err);
    if (!hw)
        return -1;
    int rc = show         ? print_json(topt_hw_to_json(hw))
             : args->json ? check_json(hw, err)
                          : check_text(hw, err);
    topt_hw_destroy(hw);
    if (rc && show)
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
    return rc;
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
