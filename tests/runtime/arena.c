/* arena.c - buffers of random plans lie in one block: none that are alive at once overlap, the
 * block is hardly more than what is alive at once; and training by a plan allocates nothing and
 * makes no groups in its steps.
 * usage: runtime_arena            random plans of all models
 *        runtime_arena PLAN TEXT  under mpirun: steps of that plan; the linker's wrappers
 *                                 count malloc and the like
 */
#include "models.h"
#include "sizes.h"
#include "tap.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "topt_runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = TOPT_TEST_SIZE_FROM(3, 1) }; /* plans of each model for each count */

/* ---- what is called while 'counting' (the linker wraps it) -------------------------- */

static int counting, allocations, groups;

#define COUNTED(type, name, params, args)                                                \
    type __real_##name params;                                                           \
    type __wrap_##name params;                                                           \
    type __wrap_##name params                                                            \
    {                                                                                    \
        allocations += counting;                                                         \
        return __real_##name args;                                                       \
    }
COUNTED(void *, malloc, (size_t n), (n))
COUNTED(void *, calloc, (size_t n, size_t m), (n, m))
COUNTED(void *, realloc, (void *p, size_t n), (p, n))
COUNTED(void *, aligned_alloc, (size_t a, size_t n), (a, n))
COUNTED(char *, strdup, (const char *s), (s))

#ifdef TOPT_TEST_MPI
#include <mpi.h>
int __real_MPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *ret);
int __wrap_MPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *ret);
int __wrap_MPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *ret)
{
    groups += counting;
    return __real_MPI_Comm_split(c, color, key, ret);
}
#endif

static void need(int rc, const struct topt_error *err)
{
    if (!rc)
        return;
    printf("Bail out! %s\n", err->text);
    fflush(stdout);
    _Exit(1);
}

/* ---- steps ------------------------------------------------------------------------- */

static void check_steps(int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_plan_doc *plan;
    struct topt_comm *comm;
    struct topt_device device;
    struct topt_session *s;
    double loss;
    const char *file = argv[1], *data = argv[2];
    need(topt_comm_open(&argc, &argv, &comm, &err), &err);
    need(topt_plan_load(file, &plan, &err), &err);
    need(topt_comm_bind(comm, &plan->mesh, &err), &err);
    need(topt_device_open_host(plan->settings.dtype, &device, &err), &err);
    for (int clip = 0; clip < 3; clip++) {
        struct topt_session_options o = {.seed = 1, .clip = clip > 0, .overlap = 1};
        if (clip == 1)
            need(topt_program_in_place(plan->program, 1, &err) ||
                     topt_program_clip(plan->program, &err),
                 &err);
        if (clip == 2)
            need(topt_program_bucket(plan->program, 1 << 16, &err), &err);
        need(topt_feed_open(data, plan->model, 1, &o.feed, &err), &err);
        need(topt_session_create(plan->program, comm, &device, &o, &s, &err), &err);
        allocations = groups = 0;
        counting = 1;
        for (int step = 0; step < 3; step++) {
            need(topt_session_step(s, &loss, &err), &err);
        }
        counting = 0;
        double sum[2] = {allocations, groups};
        need(comm->ops->sum(comm, sum, 2, &err), &err);
        if (!comm->rank)
            ok(sum[0] == 0 && sum[1] == 0 && isfinite(loss),
               "3 steps on %d ranks%s: %g allocations, %g groups made", comm->size,
               clip == 2 ? " with buckets"
               : clip    ? " with clipping"
                         : "",
               sum[0], sum[1]);
        topt_session_destroy(s);
        topt_feed_close(&o.feed);
    }
    int rank = comm->rank;
    topt_device_close(&device);
    topt_plan_doc_destroy(plan);
    topt_comm_destroy(comm);
    topt_comm_mpi_finish();
    exit(rank ? 0 : done_testing());
}

/* ---- offsets ----------------------------------------------------------------------- */

struct life {
    int from, to;
};

static int overlap(const struct topt_program *p, const struct life *l, const int64_t *at,
                   int a, int b)
{
    return l[a].from >= 0 && l[b].from >= 0 && l[a].from <= l[b].to &&
           l[b].from <= l[a].to && at[a] < at[b] + p->buffer[b].bytes &&
           at[b] < at[a] + p->buffer[a].bytes;
}

/* Members of buckets that do not follow on each other. */
static int count_apart(const struct topt_program *p, const int64_t *at)
{
    int bad = 0;
    for (int k = 0; k < p->nbuckets; k++)
        for (int m = 1; m < p->bucket[k].n; m++) {
            int a = p->member[p->bucket[k].first + m - 1];
            int b = p->member[p->bucket[k].first + m];
            bad += at[b] != at[a] + (p->buffer[a].bytes + 63) / 64 * 64;
        }
    return bad;
}

/* Overlapping pairs, and places that are beyond the block or unaligned. */
static int count_bad(const struct topt_program *p, const int64_t *at, int64_t bytes)
{
    struct life *l = malloc(((size_t)p->nbuffers + 1) * sizeof *l);
    int bad = 0;
    for (int b = 0; b < p->nbuffers; b++)
        l[b] = (struct life){-1, p->ninstr};
    for (int i = 0; i < p->ninstr; i++) {
        if (p->instr[i].kind == TOPT_I_ALLOC)
            l[p->instr[i].a].from = i;
        if (p->instr[i].kind == TOPT_I_FREE)
            l[p->instr[i].a].to = i;
    }
    for (int a = 0; a < p->nbuffers; a++) {
        bad += l[a].from >= 0 &&
               (at[a] < 0 || at[a] % 64 || at[a] + p->buffer[a].bytes > bytes);
        for (int b = 0; b < a; b++)
            bad += overlap(p, l, at, a, b);
    }
    free(l);
    return bad;
}

static void check_model(struct topt_model *m, enum topt_dtype dtype,
                        const struct topt_hw *hw)
{
    struct topt_error err = {0};
    double worst = 1;
    int bad = 0, over = 0, plans = 0, buckets = 0;
    for (int gpus = 1; gpus <= 8; gpus *= 2) {
        struct topt_request r;
        json_t *docs = NULL;
        topt_request_init(&r);
        r.hw = hw;
        r.model = m;
        r.gpus = gpus;
        r.settings.optimizer = TOPT_ADAM;
        r.settings.dtype = dtype;
        r.settings.gradient_f32 = dtype == TOPT_BF16;
        need(topt_plan_sample(&r, SAMPLES, 5 + (uint64_t)gpus, &docs, &err), &err);
        for (size_t i = 0; i < json_array_size(docs); i++, plans++) {
            struct topt_plan_doc *d;
            int64_t bytes;
            need(topt_plan_read(json_array_get(docs, i), &d, &err), &err);
            int64_t *at = calloc((size_t)d->program->nbuffers + 1, sizeof *at);
            need(topt_program_offsets(d->program, 64, at, &bytes, &err), &err);
            double ratio = (double)bytes / (double)d->program->peak_bytes;
            worst = ratio > worst ? ratio : worst;
            over += bytes < d->program->peak_bytes || bytes > d->memory_bytes;
            bad += count_bad(d->program, at, bytes);
            need(topt_program_in_place(d->program, 1, &err), &err);
            need(topt_program_clip(d->program, &err), &err);
            need(topt_program_offsets(d->program, 64, at, &bytes, &err), &err);
            bad += count_bad(d->program, at, bytes) || bytes < d->program->peak_bytes;
            need(topt_program_bucket(d->program, 1 << 12, &err), &err);
            need(topt_program_offsets(d->program, 64, at, &bytes, &err), &err);
            bad += count_bad(d->program, at, bytes) || count_apart(d->program, at);
            buckets += d->program->nbuckets;
            free(at);
            topt_plan_doc_destroy(d);
        }
        json_decref(docs);
    }
    ok(!bad && !over && worst <= 1.03,
       "%s in %s: %d plans, at most %.4f times what is alive at once; %d buckets",
       m->name, topt_dtype_name(dtype), plans, worst, buckets);
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    if (argc == 3)
        check_steps(argc, argv);
    struct topt_hw *hw = topt_hw_load("lab-cpu", &err);
    need(!hw, &err);
    for (size_t k = 0; k < sizeof test_models / sizeof *test_models; k++) {
        struct topt_model *m = test_models[k].build();
        check_model(m, TOPT_F32, hw);
        check_model(m, TOPT_BF16, hw);
        topt_model_destroy(m);
    }
    topt_hw_destroy(hw);
    return done_testing();
}
