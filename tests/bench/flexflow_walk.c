/* flexflow_walk.c - FlexFlow's search for as long as its paper lets it run: half an hour.
 *
 *     flexflow_walk MODEL BATCH HW NODES GPUS_A_NODE MINUTES [SEED]
 *
 * Half of the minutes begin at data parallelism, half at a random strategy; every thousand
 * proposals the walk goes on from its best, as FlexFlow's public code does.  Minutes are of the
 * processor, so that what else runs changes no result but how far a walk comes.  Prints the best
 * after each minute, which is what docs/PAPERS.md says. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "topt_flexflow.h"
#include "topt_plan.h"

enum { CHUNK = 1000 };

static double minutes(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + (double)t.tv_nsec / 1e9) / 60;
}

struct walk {
    const struct topt_costing *k;
    uint64_t seed;
    int64_t best_ns, tried;
    struct topt_flexflow_facts facts; /* of the best */
};

static void print_facts(const char *what, const struct topt_flexflow_facts *f, double at,
                        int64_t tried)
{
    printf("%-13s %6.1f min %10lld proposals  %12.3f ms  computing %12.3f  moved %10.3f "
           "MiB  placed %d\n",
           what, at, (long long)tried, (double)f->time_ns / 1e6,
           (double)f->compute_ns / 1e6, (double)f->moved_bytes / (1 << 20), f->placed);
}

/* From one start, until 'until'. */
static int from(struct walk *w, int random, double until, struct topt_error *err)
{
    struct topt_flexflow *f;
    struct topt_flexflow_facts facts;
    double told = minutes();
    int rc = topt_flexflow_create(w->k, &f, err);
    if (rc)
        return rc;
    topt_flexflow_facts(f, &facts);
    if (!random)
        print_facts("data parallel", &facts, minutes(), w->tried);
    for (int first = 1; !rc && minutes() < until; first = 0) {
        struct topt_flexflow_found found;
        struct topt_flexflow_search o = {.seed = w->seed++,
                                         .proposals = CHUNK,
                                         .random_start = random && first,
                                         .never_stalls = 1};
        rc = topt_flexflow_search(f, &o, &found, err);
        w->tried += found.tried;
        topt_flexflow_facts(f, &facts);
        if (!rc && (!w->best_ns || facts.time_ns < w->best_ns)) {
            w->best_ns = facts.time_ns;
            w->facts = facts;
        }
        if (minutes() >= told + 1) {
            told = minutes();
            print_facts(random ? "from random" : "from data", &facts, told, w->tried);
        }
    }
    topt_flexflow_destroy(f);
    return rc;
}

static int walk(const struct topt_model *m, const struct topt_hw *hw, int nodes,
                int per_node, double last, uint64_t seed, struct topt_error *err)
{
    struct topt_request r;
    struct topt_mesh mesh;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    struct topt_settings settings = topt_request_settings(&r);
    settings.micro_batches = 1;
    if (topt_mesh_init(&mesh, nodes, per_node, err))
        return -1;
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, router, NULL};
    struct walk w = {.k = &k, .seed = seed * 1000003};
    int rc = !router || from(&w, 0, last / 2, err) || from(&w, 1, last, err);
    topt_router_destroy(router);
    if (!rc)
        print_facts("best", &w.facts, minutes(), w.tried);
    return rc;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    if (argc < 7) {
        fprintf(stderr, "usage: flexflow_walk MODEL BATCH HW NODES GPUS_A_NODE MINUTES "
                        "[SEED]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct topt_import_options o = {.batch = atoll(argv[2])};
    struct topt_model *m = topt_model_load(argv[1], &o, &err);
    struct topt_hw *hw = m ? topt_hw_load(argv[3], &err) : NULL;
    int rc = !hw || walk(m, hw, atoi(argv[4]), atoi(argv[5]), atof(argv[6]),
                         argc > 7 ? (uint64_t)atoll(argv[7]) : 1, &err);
    if (rc)
        fprintf(stderr, "flexflow_walk: %s\n", err.text);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
    return rc;
}
