/* nodes.c - see nodes.h.
 *
 * Each rank tells rank 0 its node's name and the processors that it may use; the first of
 * each node also what hwloc sees there.  Rank 0 puts it together, and all get that. */
#include "nodes.h"
#include "topt_json.h"
#include "topt_text.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 4 << 20 };

/* The name of this node: Slurm's, else the machine's own. */
static void host_name(char ret[TOPT_HOST])
{
    const char *slurm = getenv("SLURMD_NODENAME");
    if (slurm && *slurm) {
        snprintf(ret, TOPT_HOST, "%s", slurm);
        return;
    }
    if (gethostname(ret, TOPT_HOST))
        snprintf(ret, TOPT_HOST, "this machine");
    ret[TOPT_HOST - 1] = '\0';
}

/* "0-3,8": the processors that this process may use. */
static void own_cpus(struct topt_text *t)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        size_t last = i;
        if (!CPU_ISSET(i, &set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
            last++;
        topt_text_add(t, "%s%zu", t->len ? "," : "", i);
        if (last > i)
            topt_text_add(t, "-%zu", last);
        i = last;
    }
}

/* ---- what a rank tells ----------------------------------------------------------------- */

static json_t *own_words(int reads_node, const char *xml)
{
    struct topt_text cpus = {0};
    struct topt_error none;
    char host[TOPT_HOST];
    struct topt_topology *t = malloc(sizeof *t);
    host_name(host);
    own_cpus(&cpus);
    json_t *doc = json_pack("{s:s, s:s}", "host", host, "cpus", cpus.s ? cpus.s : "");
    if (doc && t && reads_node && !topt_topology_read(xml, t, &none))
        json_object_set_new(doc, "is", topt_topology_to_json(t));
    topt_text_fini(&cpus);
    free(t);
    return doc;
}

static int send_words(struct topt_comm *comm, json_t *words, struct topt_error *err)
{
    char *text = words ? topt_json_text(words, 0) : NULL;
    int64_t len = text ? (int64_t)strlen(text) : 0;
    int rc = comm->ops->send(comm, 0, &len, sizeof len, err) ||
             (len && comm->ops->send(comm, 0, text, len, err));
    free(text);
    return rc ? -1 : 0;
}

static json_t *receive_words(struct topt_comm *comm, int rank, struct topt_error *err)
{
    int64_t len = 0;
    if (comm->ops->receive(comm, rank, &len, sizeof len, err))
        return NULL;
    char *text = len > 0 && len < MOST_BYTES ? malloc((size_t)len) : NULL;
    if (!text) {
        topt_fail(err, TOPT_ERR_INTERNAL, "rank %d does not describe its node", rank);
        return NULL;
    }
    json_t *doc = NULL;
    if (!comm->ops->receive(comm, rank, text, len, err))
        doc = topt_json_parse(text, (size_t)len, "a node", err);
    free(text);
    return doc;
}

/* On rank 0: what each rank says, in a list. */
static int collect(struct topt_comm *comm, json_t *own, json_t *list,
                   struct topt_error *err)
{
    if (json_array_append(list, own))
        return topt_nomem(err, "the nodes");
    for (int r = 1; r < comm->size; r++)
        if (json_array_append_new(list, receive_words(comm, r, err)))
            return -1;
    return 0;
}

/* ---- nodes of it ------------------------------------------------------------------------ */

static struct topt_node *node_called(const struct topt_nodes *n, const char *host)
{
    for (int i = 0; i < n->n; i++)
        if (!strcmp(n->node[i].host, host))
            return &n->node[i];
    return NULL;
}

static int add_rank(struct topt_nodes *n, int rank, const json_t *said,
                    struct topt_error *err)
{
    const char *host = topt_json_words_at(said, "host");
    struct topt_node *node = node_called(n, host);
    if (!node) {
        node = &n->node[n->n++];
        snprintf(node->host, sizeof node->host, "%s", host);
        node->first = rank;
    }
    if (node->first + node->ranks != rank)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "rank %d is on %s, and not next to that node's first, %d: fill one node "
            "after the other (srun -m block, mpirun --map-by slot)",
            rank, host, node->first);
    const json_t *is = json_object_get(said, "is");
    if (is)
        node->seen = !topt_topology_from_json(is, &node->is);
    struct topt_text cpus = {0};
    topt_text_add(&cpus, "%s%s\n", node->cpus ? node->cpus : "",
                  topt_json_words_at(said, "cpus"));
    free(node->cpus);
    node->cpus = cpus.s;
    node->ranks++;
    return cpus.oom ? topt_nomem(err, "the nodes") : 0;
}

static int read_nodes(const json_t *list, struct topt_nodes *ret, struct topt_error *err)
{
    size_t n = json_array_size(list);
    ret->node = calloc(n + 1, sizeof *ret->node);
    if (!ret->node)
        return topt_nomem(err, "the nodes");
    for (size_t r = 0; r < n; r++)
        if (add_rank(ret, (int)r, json_array_get(list, r), err))
            return -1;
    return 0;
}

int topt_nodes_gather(struct topt_comm *comm, int reads_node, const char *xml,
                      struct topt_nodes *ret, struct topt_error *err)
{
    json_t *own = own_words(reads_node, xml), *list = json_array();
    char *text = NULL;
    size_t len = 0;
    int rc = comm->rank ? send_words(comm, own, err) : collect(comm, own, list, err);
    *ret = (struct topt_nodes){.n = 0};
    if (!rc && comm->rank == 0) {
        text = topt_json_text(list, 0);
        len = text ? strlen(text) : 0;
    }
    json_decref(own);
    json_decref(list);
    if (topt_comm_share_text(comm, rc || (comm->rank == 0 && !text), &text, &len, err))
        return -1;
    list = topt_json_parse(text, len, "the nodes", err);
    rc = list ? read_nodes(list, ret, err) : -1;
    json_decref(list);
    free(text);
    return rc;
}

void topt_nodes_fini(struct topt_nodes *n)
{
    for (int i = 0; i < n->n; i++)
        free(n->node[i].cpus);
    free(n->node);
    *n = (struct topt_nodes){.n = 0};
}

/* ---- in words --------------------------------------------------------------------------- */

char *topt_nodes_cpus(const struct topt_nodes *n, int rank, char *buf, size_t size)
{
    *buf = '\0';
    for (int i = 0; i < n->n; i++) {
        const char *line = n->node[i].cpus;
        if (rank < n->node[i].first || rank >= n->node[i].first + n->node[i].ranks)
            continue;
        for (int r = n->node[i].first; r < rank; r++)
            line = strchr(line, '\n') + 1;
        snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
    }
    return buf;
}

int topt_nodes_ranks_each(const struct topt_nodes *n)
{
    for (int i = 1; i < n->n; i++)
        if (n->node[i].ranks != n->node[0].ranks)
            return 0;
    return n->n ? n->node[0].ranks : 0;
}

void topt_nodes_names(const struct topt_nodes *n, char *buf, size_t size)
{
    enum { NAMED = 4 };
    struct topt_text t = {0};
    for (int i = 0; i < n->n; i++) {
        int rest = n->n - i;
        if (i == NAMED - 1 && rest > 1) {
            topt_text_add(&t, " and %d more", rest);
            break;
        }
        topt_text_add(&t, "%s%s",
                      i == 0      ? ""
                      : rest == 1 ? " and "
                                  : ", ",
                      n->node[i].host);
    }
    snprintf(buf, size, "%s", t.s ? t.s : "");
    topt_text_fini(&t);
}

void topt_nodes_unlike(const struct topt_nodes *n, int i, char *buf, size_t size)
{
    *buf = '\0';
    if (n->node[i].seen && n->node[0].seen)
        topt_topology_unlike(&n->node[i].is, &n->node[0].is, buf, size);
}
