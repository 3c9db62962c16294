/* Prices of collectives as a network has them: of all shipped profiles and of random variants of
 * them, at random groups and sizes, nothing gets faster when a bandwidth falls, a latency rises, bytes
 * grow or members are added at equal bytes a member, and a group inside one node is never slower than
 * the same over two.  The seed is printed; an argument sets it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "tap.h"
#include "topt_json.h"

enum { VARIANTS = 6, TRIES = 600 };

static uint64_t state;

static uint64_t next(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int below(int n)
{
    return (int)(next() % (uint64_t)n);
}

/* A factor of at least 1/16 and at most 1. */
static double fraction(void)
{
    return exp2(-4.0 * (double)(next() >> 11) / 9007199254740992.0);
}

/* A size that is uniform in its logarithm. */
static int64_t size(void)
{
    return (int64_t)exp2(38.0 * (double)(next() >> 11) / 9007199254740992.0);
}

/* Any number of nodes, members that divide the devices of a node, and groups beside it. */
static struct topt_group group(const struct topt_hw *hw)
{
    int nodes = topt_hw_max_nodes(hw), each = topt_hw_gpus_per_node(hw), m, n;
    do {
        m = 1 + below(each);
        n = 1 + below(below(2) && nodes > 4 ? 4 : nodes);
    } while (each % m || n * m < 2);
    return (struct topt_group){n, m, 1 + below(each / m)};
}

static int64_t ns(const struct topt_hw *hw, int kind, struct topt_group g, int64_t bytes)
{
    return topt_hw_collective_ns(hw, (enum topt_collective)kind, g, bytes);
}

static const char *words(int kind, struct topt_group g, int64_t bytes)
{
    static char buf[120];
    snprintf(buf, sizeof buf, "%s %dx%d of %d groups, %lld bytes",
             topt_collective_name((enum topt_collective)kind), g.nodes, g.per_node,
             g.siblings, (long long)bytes);
    return buf;
}

/* ---- variants of a profile ---------------------------------------------------------- */

static void scale(json_t *o, const char *key, double factor)
{
    json_t *x = json_object_get(o, key);
    if (x)
        json_object_set_new(o, key, json_real(json_number_value(x) * factor));
}

static void scale_rates(json_t *link, double factor)
{
    static const char *const rates[] = {"bytes_per_second", "device_bytes_per_second",
                                        "all_reduce_bytes_per_second"};
    static const char *const tables[] = {"by_group", "all_reduce_by_group"};
    size_t k;
    json_t *pair;
    for (int i = 0; i < 3; i++)
        scale(link, rates[i], factor);
    for (int i = 0; i < 2; i++)
        json_array_foreach(json_object_get(link, tables[i]), k, pair) json_array_set_new(
            pair, 1, json_real(json_number_value(json_array_get(pair, 1)) * factor));
}

/* A curve of other links says nothing of these. */
static void drop_curves(json_t *doc, int across)
{
    json_t *curves = json_object_get(doc, "curves");
    for (size_t i = json_array_size(curves); i-- > 0;) {
        const json_t *nodes = json_object_get(json_array_get(curves, i), "nodes");
        if (!across || json_integer_value(nodes) > 1)
            json_array_remove(curves, i);
    }
}

/* Give each link other rates and steps and, of a network, interfaces and whether stages overlap. */
static void vary(json_t *doc)
{
    size_t i;
    json_t *l;
    int across = below(3);
    json_array_foreach(json_object_get(doc, "links"), i, l)
    {
        int cluster = !strcmp(json_string_value(json_object_get(l, "level")), "cluster");
        if (across == 2 && !cluster) /* keeps the curves inside a node */
            continue;
        scale_rates(l, fraction());
        scale(l, "latency_ns", fraction());
        if (cluster) {
            json_object_set_new(l, "pipelined", json_boolean(below(2)));
            json_object_set_new(l, "ports", json_integer(1 << below(5)));
        }
    }
    drop_curves(doc, across == 2);
}

/* ---- what must hold ------------------------------------------------------------------ */

static int bytes_grow(const struct topt_hw *hw)
{
    int bad = 0;
    for (int i = 0; i < TRIES; i++) {
        struct topt_group g = group(hw);
        int kind = below(TOPT_COLLECTIVE_COUNT);
        int64_t a = size(), b = a + size();
        if (ns(hw, kind, g, b) < ns(hw, kind, g, a) && !bad++)
            printf("# %s take longer than %lld\n", words(kind, g, a), (long long)b);
    }
    return bad;
}

/* The same bytes a member: a ring's shard, or what one sends to each other. */
static int members_come(const struct topt_hw *hw)
{
    int bad = 0, nodes = topt_hw_max_nodes(hw), each = topt_hw_gpus_per_node(hw);
    for (int i = 0; i < TRIES; i++) {
        struct topt_group g = group(hw), more = g;
        int kind = below(TOPT_PERMUTE); /* a permutation has no more members */
        int64_t shard = size() / 1024 + 1;
        if (below(2))
            more.nodes = g.nodes + below(nodes - g.nodes + 1);
        else
            more.per_node = g.per_node * (1 + below(each / g.per_node / g.siblings));
        if (each % more.per_node)
            continue;
        int64_t a = shard * g.nodes * g.per_node, b = shard * more.nodes * more.per_node;
        if (ns(hw, kind, more, b) < ns(hw, kind, g, a) && !bad++)
            printf("# %s take longer than %dx%d at as many a member: %lld, %lld ns\n",
                   words(kind, g, a), more.nodes, more.per_node,
                   (long long)ns(hw, kind, g, a), (long long)ns(hw, kind, more, b));
    }
    return bad;
}

static int nodes_divide(const struct topt_hw *hw)
{
    int bad = 0, each = topt_hw_gpus_per_node(hw);
    for (int i = 0; i < TRIES && topt_hw_max_nodes(hw) > 1 && each > 1; i++) {
        int m = 1 + below(each / 2), s = 1 + below(each / (2 * m));
        struct topt_group one = {1, 2 * m, s}, two = {2, m, below(2) ? s : 2 * s};
        int kind = below(TOPT_COLLECTIVE_COUNT);
        int64_t bytes = size();
        if (ns(hw, kind, two, bytes) < ns(hw, kind, one, bytes) && !bad++)
            printf("# %s are faster than in one node\n", words(kind, two, bytes));
    }
    return bad;
}

/* One level with a rate of its links that falls, or with a step that takes longer. */
static struct topt_hw *worse(const struct topt_hw *hw, int cluster, int latency,
                             double factor)
{
    json_t *doc = topt_hw_to_json(hw), *l;
    size_t i;
    drop_curves(doc, cluster);
    json_array_foreach(json_object_get(doc, "links"), i, l)
    {
        if ((strcmp(json_string_value(json_object_get(l, "level")), "cluster") == 0) !=
            cluster)
            continue;
        if (latency)
            scale(l, "latency_ns", 1 / factor);
        else
            scale_rates(l, factor);
    }
    struct topt_error err = {0};
    struct topt_hw *ret = topt_hw_from_json(doc, &err);
    if (!ret)
        printf("# %s\n", err.text);
    json_decref(doc);
    return ret;
}

static int links_fall(const struct topt_hw *hw, int cluster, int latency)
{
    int bad = 0;
    struct topt_hw *base = worse(hw, cluster, latency, 1),
                   *slow = worse(hw, cluster, latency, fraction());
    for (int i = 0; base && slow && i < TRIES; i++) {
        struct topt_group g = group(hw);
        int kind = below(TOPT_COLLECTIVE_COUNT);
        int64_t bytes = size();
        if (ns(slow, kind, g, bytes) < ns(base, kind, g, bytes) && !bad++)
            printf("# %s: %lld ns, and %lld\n", words(kind, g, bytes),
                   (long long)ns(base, kind, g, bytes),
                   (long long)ns(slow, kind, g, bytes));
    }
    bad += !base || !slow;
    topt_hw_destroy(base);
    topt_hw_destroy(slow);
    return bad;
}

static void holds(const struct topt_hw *hw, const char *name)
{
    is_int(bytes_grow(hw), 0, "%s: more bytes are never faster", name);
    is_int(members_come(hw), 0, "nor more members at equal bytes a member");
    is_int(nodes_divide(hw), 0, "nor two nodes faster than one");
    if (topt_hw_groups(hw)) /* their links are the least of the groups' */
        return;
    for (int k = 0; k < 4; k++)
        is_int(links_fall(hw, k / 2, k % 2), 0, "nor %s of the %s",
               k % 2 ? "longer steps" : "a lower bandwidth", k / 2 ? "cluster" : "node");
}

static void varied(const struct topt_hw *hw)
{
    char name[200];
    for (int i = 0; i < VARIANTS && !topt_hw_groups(hw); i++) {
        struct topt_error err = {0};
        json_t *doc = topt_hw_to_json(hw);
        vary(doc);
        struct topt_hw *v = topt_hw_from_json(doc, &err);
        snprintf(name, sizeof name, "%s, varied", topt_hw_name(hw));
        if (ok(v != NULL, "%s %s", name, err.text))
            holds(v, name);
        topt_hw_destroy(v);
        json_decref(doc);
    }
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 34;
    printf("# seed %llu\n", (unsigned long long)state);
    for (const char *const *name = topt_hw_shipped(); *name; name++) {
        struct topt_error err = {0};
        struct topt_hw *hw = topt_hw_load(*name, &err);
        if (!ok(hw != NULL, "%s %s", *name, err.text))
            continue;
        holds(hw, *name);
        varied(hw);
        topt_hw_destroy(hw);
    }
    return done_testing();
}
