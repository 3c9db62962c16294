/* profile.c - `topt profile`: measure these ranks as a hardware profile.
 *
 * All ranks compute at once, as in training, and the slowest counts; then all communicate.
 * What was measured is kept beside the profile until that is written. */
#include "profile.h"
#include "profile_args.h"
#include "cli.h"
#include "devices.h"
#include "client.h"
#include "plan_source.h"
#include "rank.h"
#include "topt_options.h"
#include "topt_text.h"

#include <glob.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct topt_option options[] = {
    TOPT_EXAMPLE("mpirun -n 2 topt profile -o hw.json", "for topt plan --hw hw.json"),
    {"o", TOPT_OPT_STRING, offsetof(struct topt_profile_args, out), "FILE",
     "the profile (hw.json); until it is written, what was measured is kept in "
     "FILE.part, and "
     "the same command goes on from there"},
    {"name", TOPT_OPT_STRING, offsetof(struct topt_profile_args, name), "NAME",
     "its name (measured)"},
    {"nodes", TOPT_OPT_COUNT, offsetof(struct topt_profile_args, nodes), "N",
     "number of nodes (as the names of hosts say)"},
    {"per-node", TOPT_OPT_COUNT, offsetof(struct topt_profile_args, per_node), "M",
     "ranks per node"},
    {"topology", TOPT_OPT_STRING, offsetof(struct topt_profile_args, topology),
     "FILE|this",
     "measure nothing: GPUs, links and the binding of ranks as hwloc sees the nodes of "
     "these "
     "ranks, "
     "or one "
     "that lstopo exported (.xml)"},
    {"like", TOPT_OPT_STRING, offsetof(struct topt_profile_args, like), "NAME",
     "of --topology: the shipped profile that has what hwloc can't see"},
    {"max-bytes", TOPT_OPT_BYTES, offsetof(struct topt_profile_args, max_bytes), "BYTES",
     "largest collective (4MiB; between GPUs 256MiB)"},
    {"max-product", TOPT_OPT_COUNT, offsetof(struct topt_profile_args, max_product), "N",
     "rows of the largest matrix product (512; of GPUs 4096)"},
    {"device", TOPT_OPT_STRING, offsetof(struct topt_profile_args, device), "host|cuda",
     "whose kernels and memory (host); cuda: a GPU of each rank"},
    {"comm", TOPT_OPT_STRING, offsetof(struct topt_profile_args, comm), "KIND",
     "of cuda: nccl, staged or auto, as of topt run (auto)"},
    {"post", TOPT_OPT_STRING, offsetof(struct topt_profile_args, post), "URL|default",
     "give it to the toptd there, or to the one that `topt client` asks"},
    {"quiet", TOPT_OPT_FLAG, offsetof(struct topt_profile_args, quiet), "",
     "no progress"},
    {0}};

static const char usage[] = "topt profile -o hw.json [options]   (under mpirun or srun)";

/* ---- who lies where ---------------------------------------------------------------------- */

/* Ranks lie on nodes in blocks of equal size: by the options, else by the names of their nodes. */
static int choose_mesh(const struct topt_profile_args *a, const struct topt_nodes *n,
                       int ranks, struct topt_mesh *ret, struct topt_error *err)
{
    int64_t per_node = a->per_node, nodes = a->nodes;
    if (!per_node && !nodes && !topt_nodes_ranks_each(n))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "nodes with unequal numbers of ranks have no profile; start as "
                         "many on each");
    if (!per_node)
        per_node = nodes ? ranks / nodes : topt_nodes_ranks_each(n);
    if (!nodes)
        nodes = per_node ? ranks / per_node : 0;
    if (nodes < 1 || per_node < 1 || nodes > ranks || nodes * per_node != ranks) {
        char asked[80] = "";
        if (a->nodes)
            snprintf(asked, sizeof asked, "--nodes %lld", (long long)a->nodes);
        if (a->per_node)
            snprintf(asked + strlen(asked), sizeof asked - strlen(asked),
                     "%s--per-node %lld", a->nodes ? " " : "", (long long)a->per_node);
        return topt_fail(err, TOPT_ERR_USAGE,
                         "%s does not fit the %d rank%s that %s started", asked, ranks,
                         ranks == 1 ? "" : "s", ranks == 1 ? "was" : "were");
    }
    return topt_mesh_init(ret, (int)nodes, (int)per_node, err);
}

/* Rank 0 names nodes whose first rank reached less than its own; 0 where nothing was measured. */
static int say_slower(struct topt_comm *comm, const struct topt_nodes *n, double rate,
                      struct topt_error *err)
{
    static const double SLOWER = 0.85;
    double *rates = calloc((size_t)n->n, sizeof *rates);
    if (topt_comm_agree(comm, rates ? 0 : topt_nomem(err, NULL), err)) {
        free(rates);
        return -1;
    }
    for (int i = 0; i < n->n; i++)
        rates[i] = comm->rank == n->node[i].first ? rate : 0;
    int rc = comm->ops->sum(comm, rates, n->n, err);
    for (int i = 1; i < n->n && !rc && comm->rank == 0; i++)
        if (rates[i] > 0 && rates[i] < SLOWER * rates[0])
            fprintf(stderr, "note: %s computes %.2f of what %s does\n", n->node[i].host,
                    rates[i] / rates[0], n->node[0].host);
    free(rates);
    return rc;
}

/* ---- memory beside buffers ----------------------------------------------------------------- */

/* Bytes of this process that no other has, and those that it shares with ranks beside it. */
static double resident_bytes(void)
{
    char line[256];
    long long kib, sum = 0;
    malloc_trim(0); /* what collectives have given back */
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lld", &kib) == 1 ||
            sscanf(line, "RssShmem: %lld", &kib) == 1)
            sum += kib;
    if (f)
        fclose(f);
    return (double)sum * 1024;
}

/* Of a GPU, what all processes have of it that no longer is free; of the host as above. */
static int taken_bytes(struct topt_device *d, double *ret, int64_t *ret_all,
                       struct topt_error *err)
{
    int64_t unused;
    *ret_all = 0;
    *ret = d->ops->memory ? 0 : resident_bytes();
    if (!d->ops->memory)
        return 0;
    if (d->ops->sync(d, err) || d->ops->memory(d, &unused, ret_all, err))
        return -1;
    *ret = (double)(*ret_all - unused);
    return 0;
}

/* The least of any rank before collectives, and the most of any after them. */
static int share_memory(struct topt_comm *comm, struct topt_device *d, double before,
                        struct topt_measured *m, struct topt_error *err)
{
    double most[2] = {-before, 0};
    if (taken_bytes(d, &most[1], &m->device_memory, err) ||
        comm->ops->max(comm, most, 2, err))
        return -1;
    m->runtime_low = (int64_t)-most[0];
    m->runtime_high =
        (int64_t)most[1] > m->runtime_low ? (int64_t)most[1] : m->runtime_low;
    return 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

struct work {
    const struct topt_profile_args *args;
    struct topt_comm *comm;
    struct topt_survey *survey;
    struct topt_nodes nodes;
    struct topt_rates rates;
};

static int write_measured(const struct work *w, const struct topt_measured *m,
                          struct topt_error *err)
{
    json_t *doc = topt_profile_json(m);
    int rc = topt_profile_write(w->args, doc, err);
    json_decref(doc);
    if (!rc && strcmp(w->args->out, "-"))
        printf("%d rank%s on %d node%s: %.0f Gflop/s (f32), %d curves of collectives, in "
               "%s\n",
               w->comm->size, w->comm->size == 1 ? "" : "s", m->mesh->nodes,
               m->mesh->nodes == 1 ? "" : "s",
               topt_points_rate(&m->rates->product[0]) / 1e9, m->ncurves, w->args->out);
    return rc;
}

/* The driver's name of the first GPU, which all are taken to be. */
static const char *gpu_name(char *buf, size_t size)
{
    char line[256];
    glob_t g = {0};
    snprintf(buf, size, "GPU");
    if (!glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &g)) {
        FILE *f = fopen(g.gl_pathv[0], "re");
        while (f && fgets(line, sizeof line, f))
            if (!strncmp(line, "Model:", 6)) {
                char *name = line + 6 + strspn(line + 6, " \t");
                name[strcspn(name, "\n")] = '\0';
                snprintf(buf, size, "%s", name);
            }
        if (f)
            fclose(f);
    }
    globfree(&g);
    return buf;
}

/* Whose kernels and how they talk, in words that a later run finds again. */
static void say_where(const struct work *w, const struct topt_run_device *d, char *buf,
                      size_t size)
{
    char seen[200];
    topt_nodes_names(&w->nodes, seen, sizeof seen);
    snprintf(buf, size, "%s, %d ranks each%s%s", seen, topt_nodes_ranks_each(&w->nodes),
             d->module ? ", " : "", d->module ? d->device : "");
}

static int measure_rates(struct work *w, const struct topt_run_device *d,
                         struct topt_error *err)
{
    struct topt_rated on = {
        .module = d->module, .index = d->index, .most = w->args->max_product};
    char where[256];
    double alone;
    say_where(w, d, where, sizeof where);
    return topt_measure_rates(w->comm, w->survey, where, &on, &w->rates, &alone, err) ||
                   say_slower(w->comm, &w->nodes, alone, err)
               ? -1
               : 0;
}

/* 'between' the devices, whose mesh is bound. */
static int measure_collectives(struct work *w, struct topt_comm *between,
                               struct topt_run_device *d, double before,
                               const struct topt_mesh *mesh, struct topt_error *err)
{
    struct topt_measured m = {
        .name = w->args->name, .mesh = mesh, .nodes = &w->nodes, .rates = &w->rates};
    struct topt_curve *curves = NULL;
    char where[256], name[128];
    say_where(w, d, where, sizeof where);
    m.device = d->module ? gpu_name(name, sizeof name) : NULL;
    if (topt_measure_curves(between, &d->dev, w->survey, where, w->args->max_bytes,
                            &curves, &m.ncurves, err) ||
        share_memory(w->comm, &d->dev, before, &m, err)) {
        topt_complain("profile", err);
        w->comm->ops->abort(w->comm, 1);
    }
    m.curves = curves;
    int rc = w->comm->rank == 0 ? write_measured(w, &m, err) : 0;
    free(curves);
    return topt_comm_agree(w->comm, rc, err);
}

static int measure_between(struct work *w, struct topt_run_device *d,
                           const struct topt_mesh *mesh, struct topt_error *err)
{
    struct topt_comm *between = NULL;
    double before = 0;
    int64_t all;
    int rc = topt_comm_agree(w->comm,
                             taken_bytes(&d->dev, &before, &all, err) ||
                                 topt_run_device_connect(d, &between, err),
                             err);
    if (!rc)
        rc = topt_comm_agree(w->comm, topt_comm_bind(between, mesh, err), err);
    if (!rc)
        rc = measure_collectives(w, between, d, before, mesh, err);
    if (between != w->comm)
        topt_comm_destroy(between);
    return rc ? -1 : 0;
}

static int measure(struct work *w, struct topt_error *err)
{
    struct topt_mesh mesh;
    struct topt_run_device d = {
        .device = w->args->device, .comm = w->args->comm, .host = w->comm};
    if (topt_survey_share(w->survey, w->comm, err) ||
        topt_nodes_gather(w->comm, topt_launch_first_of_node(), NULL, &w->nodes, err))
        return -1;
    if (!w->comm->rank && !w->args->quiet && strcmp(w->args->out, "-"))
        topt_profile_say_nodes(&w->nodes);
    int rc = choose_mesh(w->args, &w->nodes, w->comm->size, &mesh, err) ||
             topt_comm_bind(w->comm, &mesh, err) ||
             topt_run_device_open(&d, TOPT_F32, err);
    if (!topt_comm_agree(w->comm, rc, err))
        rc = measure_rates(w, &d, err) || measure_between(w, &d, &mesh, err) ? -1 : 0;
    else
        rc = -1;
    topt_device_close(&d.dev);
    return rc;
}

/* ---- giving it to toptd ------------------------------------------------------------ */

/* topt-client, beside this program, knows how. */
static int post(const struct topt_profile_args *a, struct topt_error *err)
{
    char path[4096];
    struct topt_text said = {0};
    int named = strcmp(a->post, "default") != 0;
    char *const args[] = {path,
                          (char *)"client",
                          (char *)"put-hw",
                          (char *)(uintptr_t)a->out,
                          named ? (char *)"--url" : NULL,
                          (char *)(uintptr_t)a->post,
                          NULL};
    if (topt_client_path(path, sizeof path, err))
        return -1;
    int rc = topt_client_output(args, &said, err);
    if (rc)
        topt_fail(err, TOPT_ERR_IO, "toptd has not taken the profile, which is in %s",
                  a->out);
    else
        printf("toptd has it as %s", said.s ? said.s : "\n");
    topt_text_fini(&said);
    return rc;
}

/* ---- the command ------------------------------------------------------------------- */

static int check_args(struct topt_profile_args *a, struct topt_error *err)
{
    int host = !strcmp(a->device, "host");
    a->max_bytes = a->max_bytes ? a->max_bytes : host ? 4 << 20 : 256 << 20;
    a->max_product = a->max_product ? a->max_product : host ? 512 : 4096;
    if (a->max_product < 32 || a->max_product > 1 << 15)
        return topt_fail(err, TOPT_ERR_USAGE, "--max-product is from 32 to %d", 1 << 15);
    struct topt_run_device d = {.device = a->device, .comm = a->comm};
    if (topt_run_device_check(&d, err))
        return -1;
    if (!a->topology && !a->out)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "-o is missing: where to write the profile");
    if (a->post && (!a->out || !strcmp(a->out, "-")))
        return topt_fail(err, TOPT_ERR_USAGE, "--post needs a file: -o FILE");
    return 0;
}

/* What is kept of a run that was stopped. */
static int begin(struct work *w, int rank, struct topt_error *err)
{
    char part[4096];
    int file = strcmp(w->args->out, "-") != 0;
    snprintf(part, sizeof part, "%.4000s.part", w->args->out);
    if (topt_survey_open(file && rank == 0 ? part : NULL, rank == 0, w->args->quiet,
                         &w->survey, err))
        return -1;
    if (topt_survey_kept(w->survey) && !w->args->quiet)
        fprintf(stderr, "note: going on from %lld measurements in %s\n",
                (long long)topt_survey_kept(w->survey), part);
    return 0;
}

static int run(const struct topt_profile_args *a, int *argc, char ***argv,
               struct topt_comm **comm, struct topt_error *err)
{
    struct work w = {.args = a};
    int begun = a->topology ? 0 : begin(&w, topt_launch_rank(), err);
    int rc = begun && !topt_comm_launched() ? -1 : topt_comm_open(argc, argv, comm, err);
    if (!rc)
        rc = topt_comm_agree(*comm, begun, err);
    w.comm = *comm;
    if (!rc)
        rc = a->topology ? topt_profile_topology(a, *comm, err) : measure(&w, err);
    topt_survey_close(w.survey, !rc);
    topt_nodes_fini(&w.nodes);
    topt_kernel_samples_fini(&w.rates.kernels);
    if (!rc && a->post && (*comm)->rank == 0)
        rc = post(a, err);
    return rc;
}

int topt_cmd_profile(int argc, char **argv)
{
    struct topt_profile_args a = {.name = "measured", .device = "host", .comm = "auto"};
    struct topt_error err = {0};
    struct topt_comm *comm = NULL;
    const char *none[1];
    int n, rank = topt_launch_rank();
    int rc = topt_options_parse(options, argc, argv, &a, none, 0, &n, &err);
    if (rc > 0) {
        if (!rank)
            topt_options_help(stdout, usage, options);
        return 0;
    }
    rc = rc || check_args(&a, &err);
    if (rc) {
        if (!rank)
            topt_complain("profile", &err);
        return topt_err_exit(err.code);
    }
    rc = run(&a, &argc, &argv, &comm, &err);
    if (rc && !topt_comm_failed_elsewhere(&err))
        topt_complain("profile", &err);
    topt_comm_destroy(comm);
    topt_comm_mpi_finish();
    return rc ? topt_err_exit(err.code) : 0;
}
