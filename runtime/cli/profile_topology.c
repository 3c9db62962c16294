/* profile_topology.c - `topt profile --topology`: nothing is measured; GPUs, links and
 * the binding of ranks are as hwloc sees them on every node that has a rank. */
#include "profile_args.h"
#include "rank.h"
#include "topt_json.h"
#include "topt_hw.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int topt_profile_write(const struct topt_profile_args *a, const json_t *doc,
                       struct topt_error *err)
{
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    struct topt_hw *hw = text ? topt_hw_from_json(doc, err) : NULL;
    int rc = !text ? topt_nomem(err, "the profile")
             : hw  ? topt_write_file(a->out, text, strlen(text), err)
                   : -1;
    topt_hw_destroy(hw);
    free(text);
    return rc;
}

static const char *plural(int n)
{
    return n == 1 ? "" : "s";
}

/* ---- nodes in words -------------------------------------------------------------------- */

/* How many processors "0-3,8" has. */
static int count_cpus(const char *list)
{
    int n = 0, from, to;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        n += sscanf(at, "%d-%d", &from, &to) == 2 ? to - from + 1 : 1;
    return n;
}

/* Ranks that are bound to the same processors, and are more than these. */
static void say_crowded(const struct topt_node *node, const struct topt_nodes *n)
{
    char cpus[256], other[256];
    int last = node->first + node->ranks;
    for (int r = node->first; r < last; r++) {
        int same = 0, before = 0;
        topt_nodes_cpus(n, r, cpus, sizeof cpus);
        for (int i = node->first; i < last; i++) {
            int equal = !strcmp(topt_nodes_cpus(n, i, other, sizeof other), cpus);
            before += equal && i < r;
            same += equal;
        }
        if (!before && *cpus && same > count_cpus(cpus))
            fprintf(stderr, "note: %d ranks of %s share the processor%s %s\n", same,
                    node->host, plural(count_cpus(cpus)), cpus);
    }
}

static void say_node(const struct topt_node *node)
{
    char words[256] = "not seen by hwloc";
    if (node->seen)
        topt_topology_words(&node->is, words, sizeof words);
    printf("%s%s%s\n", words, *node->is.model ? ": " : "", node->is.model);
}

void topt_profile_say_nodes(const struct topt_nodes *n)
{
    const struct topt_node *first = &n->node[0];
    char names[256], unlike[512];
    topt_nodes_names(n, names, sizeof names);
    printf("%s, %d rank%s%s: ", names, first->ranks, plural(first->ranks),
           n->n > 1 ? " each" : "");
    say_node(first);
    for (int i = 0; i < n->n; i++) {
        topt_nodes_unlike(n, i, unlike, sizeof unlike);
        if (*unlike)
            fprintf(stderr, "note: %s is unlike %s: %s\n", n->node[i].host, first->host,
                    unlike);
        if (n->node[i].ranks != first->ranks)
            fprintf(stderr, "note: %s has %d ranks, %s %d\n", n->node[i].host,
                    n->node[i].ranks, first->host, first->ranks);
        say_crowded(&n->node[i], n);
    }
    fflush(stdout);
}

/* ---- the binding of ranks ----------------------------------------------------------------- */

/* What srun is told, so that each rank computes beside its GPU, or on cores of its own. */
static int say_binding(const struct topt_topology *t, const struct topt_profile_args *a,
                       const char *xml, struct topt_error *err)
{
    char masks[8192];
    struct topt_text line = {0};
    for (int g = 0; g < t->ngpus; g++) {
        const struct topt_topology_gpu *x = &t->gpu[g];
        printf("  rank %-2d  %-8s %s  processors %s%s%s\n", g, x->name, x->bus, x->cpus,
               *x->nic ? ", nearest adapter " : "", x->nic);
        topt_text_add(&line, "%s%s", g ? "," : "", x->mask);
    }
    if (t->ngpus && !line.oom)
        printf("  srun --ntasks-per-node=%d --cpu-bind=mask_cpu:%s\n", t->ngpus, line.s);
    topt_text_fini(&line);
    if (t->ngpus)
        return 0;
    int ranks = a->per_node ? (int)a->per_node : t->cores;
    if (topt_topology_spread(xml, ranks, masks, sizeof masks, err))
        return -1;
    printf("  srun --ntasks-per-node=%d --cpu-bind=mask_cpu:%s\n", ranks, masks);
    return 0;
}

/* ---- the profile of all -------------------------------------------------------------------- */

/* The first node, with the least of all in rates and memory.  Nodes with unequal GPUs are
 * no nodes of one profile. */
static int merge(const struct topt_nodes *n, struct topt_topology *ret,
                 struct topt_error *err)
{
    *ret = n->node[0].is;
    for (int i = 0; i < n->n; i++) {
        const struct topt_node *node = &n->node[i];
        if (!node->seen)
            return topt_fail(err, TOPT_ERR_INVAL, "hwloc sees nothing of node %s",
                             node->host);
        if (node->is.ngpus != ret->ngpus)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "%s has %d GPUs and %s has %d: profile nodes that are alike, "
                "and join "
                "the profiles as groups",
                node->host, node->is.ngpus, n->node[0].host, ret->ngpus);
        topt_topology_lower(ret, &node->is);
    }
    return 0;
}

static int tell(const struct topt_profile_args *a, const struct topt_nodes *n,
                const char *xml, struct topt_error *err)
{
    struct topt_topology *t = malloc(sizeof *t);
    int64_t nodes = a->nodes ? a->nodes : n->n > 1 ? n->n : 0;
    if (xml)
        say_node(&n->node[0]);
    else
        topt_profile_say_nodes(n);
    int rc =
        !t ? topt_nomem(err, NULL)
           : say_binding(&n->node[0].is, a, xml, err) || (a->out && merge(n, t, err));
    if (!rc && a->out && !a->like)
        rc = topt_fail(err, TOPT_ERR_USAGE,
                       "--like is missing: which profile of `topt hw list` has GPUs like "
                       "these?");
    if (!rc && a->out) {
        json_t *doc = topt_topology_profile(t, a->name, a->like, (int)nodes, err);
        rc = doc ? topt_profile_write(a, doc, err) : -1;
        json_decref(doc);
    }
    free(t);
    return rc;
}

int topt_profile_topology(const struct topt_profile_args *a, struct topt_comm *comm,
                          struct topt_error *err)
{
    const char *xml = strcmp(a->topology, "this") ? a->topology : NULL;
    struct topt_nodes n = {.n = 0};
    struct topt_topology *t = malloc(sizeof *t);
    /* Why hwloc can't read it is said here; the gathering only leaves it out. */
    int rc = t ? 0 : topt_nomem(err, NULL);
    if (!rc && comm->rank == 0)
        rc = topt_topology_read(xml, t, err);
    free(t);
    rc = topt_comm_agree(comm, rc, err) ||
         topt_nodes_gather(comm, topt_launch_first_of_node(), xml, &n, err);
    if (!rc && comm->rank == 0)
        rc = tell(a, &n, xml, err);
    topt_nodes_fini(&n);
    return topt_comm_agree(comm, rc, err);
}
