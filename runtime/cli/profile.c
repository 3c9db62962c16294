/* profile.c - `topt profile`: measure this machine's ranks as a hardware profile. */
#include "profile.h"
#include "topology.h"
#include "cli.h"
#include "rank.h"
#include "topt_json.h"
#include "topt_options.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *out, *name, *topology, *like;
    int64_t nodes, per_node, max_bytes;
};

static const struct topt_option options[] = {
    {"o", TOPT_OPT_STRING, offsetof(struct args, out), "FILE", "the profile (hw.json)"},
    {"name", TOPT_OPT_STRING, offsetof(struct args, name), "NAME", "its name (measured)"},
    {"nodes", TOPT_OPT_COUNT, offsetof(struct args, nodes), "N",
     "nodes that the ranks lie on (as the launcher says)"},
    {"per-node", TOPT_OPT_COUNT, offsetof(struct args, per_node), "M", "ranks on each"},
    {"topology", TOPT_OPT_STRING, offsetof(struct args, topology), "FILE|this",
     "measure nothing: GPUs, links and the binding of ranks as hwloc sees this machine, "
     "or one "
     "that lstopo exported (.xml)"},
    {"like", TOPT_OPT_STRING, offsetof(struct args, like), "NAME",
     "of --topology: the shipped profile that has what hwloc can't see"},
    {"max-bytes", TOPT_OPT_BYTES, offsetof(struct args, max_bytes), "BYTES",
     "largest collective (4MiB)"},
    {0}};

static const char usage[] = "topt profile -o hw.json [options]   (under mpirun or srun)";

/* Ranks lie on nodes in blocks of equal size: by the options, else by the launcher. */
static int choose_mesh(const struct args *a, int ranks, struct topt_mesh *ret,
                       struct topt_error *err)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    int64_t per_node = a->per_node, nodes = a->nodes;
    if (!per_node && !nodes && local && atoi(local) > 0)
        per_node = atoi(local);
    if (!per_node)
        per_node = nodes ? ranks / nodes : ranks;
    if (!nodes)
        nodes = per_node ? ranks / per_node : 0;
    if (nodes < 1 || per_node < 1 || nodes > ranks || nodes * per_node != ranks)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "%lld nodes of %lld ranks are not the %d ranks that were started",
            (long long)nodes, (long long)per_node, ranks);
    return topt_mesh_init(ret, (int)nodes, (int)per_node, err);
}

/* Machines under the ranks: one where several "nodes" are tried out on the same. */
static int machines_of(const struct topt_mesh *mesh)
{
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    int n = local ? atoi(local) : 0;
    return n > 0 && mesh->devices % n == 0 ? mesh->devices / n : mesh->nodes;
}

/* Read back what was written as a stranger would: it has to be a profile. */
static int write_profile(const struct args *a, const struct topt_mesh *mesh,
                         const struct topt_rates *rates, const struct topt_curve *curves,
                         int n, struct topt_error *err)
{
    json_t *doc = topt_profile_json(a->name, mesh, machines_of(mesh), rates, curves, n);
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    int rc = text ? 0 : topt_nomem(err, "the profile");
    struct topt_hw *hw = rc ? NULL : topt_hw_from_json(doc, err);
    if (!rc)
        rc = hw ? topt_write_file(a->out, text, strlen(text), err) : -1;
    topt_hw_destroy(hw);
    free(text);
    json_decref(doc);
    return rc;
}

static int measure(const struct args *a, struct topt_comm *comm,
                   const struct topt_rates *rates, struct topt_error *err)
{
    struct topt_mesh mesh;
    struct topt_device dev;
    struct topt_curve *curves = NULL;
    int n = 0, rc;
    rc = choose_mesh(a, comm->size, &mesh, err) || topt_comm_bind(comm, &mesh, err) ||
         topt_device_open_host(TOPT_F32, &dev, err);
    if (topt_comm_agree(comm, rc, err))
        return -1;
    if (topt_measure_curves(comm, &dev, a->max_bytes, &curves, &n, err)) {
        topt_complain("profile", err);
        comm->ops->abort(comm, 1);
    }
    rc = comm->rank == 0 && write_profile(a, &mesh, rates, curves, n, err);
    if (!rc && !comm->rank && strcmp(a->out, "-"))
        printf("%d ranks on %d node%s: %.0f Gflop/s (f32), %d curves of collectives, in "
               "%s\n",
               comm->size, mesh.nodes, mesh.nodes == 1 ? "" : "s", rates->flops[0] / 1e9,
               n, a->out);
    free(curves);
    topt_device_close(&dev);
    return topt_comm_agree(comm, rc, err);
}

/* ---- what hwloc sees ----------------------------------------------------------------- */

/* What srun is told, so that each rank computes beside its GPU, or on cores of its own. */
static int say_binding(const struct topt_topology *t, const struct args *a,
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

static int write_document(json_t *doc, const char *out, struct topt_error *err)
{
    char *text = doc ? topt_json_text(doc, 1) : NULL;
    struct topt_hw *hw = text ? topt_hw_from_json(doc, err) : NULL;
    int rc = !text ? -1 : hw ? topt_write_file(out, text, strlen(text), err) : -1;
    topt_hw_destroy(hw);
    free(text);
    return rc;
}

static int profile_topology(const struct args *a, struct topt_error *err)
{
    const char *xml = strcmp(a->topology, "this") ? a->topology : NULL;
    struct topt_topology *t = malloc(sizeof *t);
    char words[256];
    int rc = t ? topt_topology_read(xml, t, err) : topt_nomem(err, NULL);
    if (!rc) {
        topt_topology_words(t, words, sizeof words);
        printf("%s%s%s\n", words, *t->model ? ": " : "", t->model);
        rc = say_binding(t, a, xml, err);
    }
    if (!rc && a->out && !a->like)
        rc = topt_fail(err, TOPT_ERR_USAGE,
                       "--like is missing: which profile of `topt hw list` has GPUs like "
                       "these?");
    if (!rc && a->out) {
        json_t *doc = topt_topology_profile(t, a->name, a->like, (int)a->nodes, err);
        rc = doc ? write_document(doc, a->out, err) : -1;
        json_decref(doc);
    }
    free(t);
    return rc;
}

/* One process does it. */
static int finish_topology(const struct args *a, int rank)
{
    struct topt_error err = {0};
    int rc = rank ? 0 : profile_topology(a, &err);
    if (rc)
        topt_complain("profile", &err);
    return rc ? topt_err_exit(err.code) : 0;
}

int topt_cmd_profile(int argc, char **argv)
{
    struct args a = {.name = "measured", .max_bytes = 4 << 20};
    struct topt_error err = {0};
    struct topt_comm *comm = NULL;
    struct topt_rates rates = {.launch_ns = 0};
    const char *none[1];
    int n, rank = topt_launch_rank();
    int rc = topt_options_parse(options, argc, argv, &a, none, 0, &n, &err);
    if (rc > 0) {
        if (!rank)
            topt_options_help(stdout, usage, options);
        return 0;
    }
    if (!rc && a.topology)
        return finish_topology(&a, rank);
    if (!rc && !a.out)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "-o is missing: where to write the profile");
    /* Before MPI starts: the other ranks wait in it without taking the cores. */
    int measured = !rc && !rank ? topt_measure_rates(&rates, &err) : 0;
    if (rc || topt_comm_open(&argc, &argv, &comm, &err)) {
        if (!rank)
            topt_complain("profile", &err);
        return topt_err_exit(err.code);
    }
    rc = topt_comm_agree(comm, measured, &err) ? -1 : measure(&a, comm, &rates, &err);
    if (rc && !topt_comm_failed_elsewhere(&err))
        topt_complain("profile", &err);
    topt_comm_destroy(comm);
    topt_comm_mpi_finish();
    return rc ? topt_err_exit(err.code) : 0;
}
