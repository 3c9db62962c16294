/* profile.c - `topt profile`: measure this machine's ranks as a hardware profile. */
#include "profile.h"
#include "cli.h"
#include "rank.h"
#include "topt_json.h"
#include "topt_options.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *out, *name;
    int64_t nodes, per_node, max_bytes;
};

static const struct topt_option options[] = {
    {"o", TOPT_OPT_STRING, offsetof(struct args, out), "FILE", "the profile (hw.json)"},
    {"name", TOPT_OPT_STRING, offsetof(struct args, name), "NAME", "its name (measured)"},
    {"nodes", TOPT_OPT_COUNT, offsetof(struct args, nodes), "N",
     "nodes that the ranks lie on (as the launcher says)"},
    {"per-node", TOPT_OPT_COUNT, offsetof(struct args, per_node), "M", "ranks on each"},
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
