/* test_mend.c - a job's environment, kept in a small table here. */
#include <string.h>

#include "mend.h"
#include "tap.h"

enum { SLOTS = 64 };
struct table {
    char name[SLOTS][64], value[SLOTS][128];
};

static int find(const struct table *t, const char *name)
{
    for (int i = 0; i < SLOTS; i++) {
        if (strcmp(t->name[i], name) == 0)
            return i;
    }
    return -1;
}

static int get(void *ctx, const char *name, char *buf, size_t size)
{
    const struct table *t = ctx;
    int i = find(t, name);
    return i >= 0 && (size_t)snprintf(buf, size, "%s", t->value[i]) < size ? 0 : -1;
}

static void set(void *ctx, const char *name, const char *value)
{
    struct table *t = ctx;
    int i = find(t, name);
    if (i < 0 && (i = find(t, "")) < 0)
        abort();
    snprintf(t->name[i], sizeof t->name[i], "%s", name);
    snprintf(t->value[i], sizeof t->value[i], "%s", value);
}

static void unset(void *ctx, const char *name)
{
    struct table *t = ctx;
    int i = find(t, name);
    if (i >= 0)
        t->name[i][0] = '\0';
}

static struct table table;
static const struct topt_env env = {&table, get, set, unset};

static const char *value(const char *name)
{
    int i = find(&table, name);
    return i >= 0 ? table.value[i] : "(unset)";
}

static void is_value(const char *name, const char *want)
{
    ok(strcmp(value(name), want) == 0, "%s=%s", name, value(name));
}

static const struct topt_answer plan = {.plan_id = "p-7",
                                        .gpus = 6,
                                        .nodes = 2,
                                        .gpus_per_node = 3,
                                        .memory_bytes = INT64_C(1) << 40,
                                        .time_ns = 5};

static const struct topt_trust named = {7, -1, "/run/ours/munge.socket"},
                               unnamed = {-1, -1, NULL};

static void test_carry(void)
{
    table = (struct table){0};
    is_int(topt_mend_step(&env), 0, "no plan");
    topt_mend_plan(&env, &plan, 6, "unix:/s", &named);
    is_value("SLURM_TOPT_PLAN", "p-7");
    is_value("TOPT_PLAN_ID", "p-7");
    is_value("TOPT_MEMORY_BYTES", "1099511627776");
    /* What --export=NONE leaves. */
    for (int i = 0; i < SLOTS; i++) {
        if (strncmp(table.name[i], "SLURM_", 6) != 0)
            table.name[i][0] = '\0';
    }
    is_value("TOPT_PLAN", "(unset)");
    is_int(topt_mend_step(&env), 1, "a plan");
    is_value("TOPT_PLAN_ID", "p-7");
    is_value("TOPT_PLAN", "p-7");
    is_value("TOPT_URL", "unix:/s");
    is_value("TOPT_DAEMON_UID", "7");
    is_value("TOPT_MUNGE_SOCKET", "/run/ours/munge.socket");
    is_value("TOPT_GPUS", "6");
    is_value("TOPT_NODES", "2");
    is_value("TOPT_GPUS_PER_NODE", "3");
    is_value("TOPT_TIME_NS", "5");
    is_value("TOPT_DP", "(unset)");
    topt_mend_forget(&env);
    is_value("SLURM_TOPT_PLAN", "(unset)");
    is_value("SLURM_TOPT_URL", "(unset)");
    is_value("TOPT_GPUS", "(unset)");
    is_value("TOPT_URL", "unix:/s");
    is_value("SLURM_TOPT_DAEMON_UID", "(unset)");
    is_value("TOPT_DAEMON_UID", "7");
    is_value("SLURM_TOPT_MUNGE_SOCKET", "(unset)");
    is_value("TOPT_MUNGE_SOCKET", "/run/ours/munge.socket");
    set(&table, "TOPT_PLAN", "my-own.json");
    topt_mend_forget(&env);
    is_value("TOPT_PLAN", "my-own.json");
}

/* One choice for the whole model: scripts of other frameworks read it. */
static void test_uniform(void)
{
    struct topt_answer one = plan;
    one.dp = 3;
    one.tp = 2;
    one.fsdp = 3;
    one.micro_batch = 4;
    one.accumulation = 5;
    table = (struct table){0};
    topt_mend_plan(&env, &one, 2, "unix:/s", &unnamed);
    is_value("TOPT_MUNGE_SOCKET", "(unset)");
    is_value("TOPT_DP", "3");
    is_value("SLURM_TOPT_TP", "2");
    is_value("TOPT_FSDP", "3");
    is_value("TOPT_RECOMPUTE", "0");
    is_value("TOPT_MICRO_BATCH", "4");
    is_value("TOPT_ACCUMULATION", "5");
    is_value("SLURM_TOPT_TORCHRUN", "--nnodes=2 --nproc-per-node=3 --rdzv-backend=c10d");
    is_value("TOPT_SRUN", "--nodes=2 --ntasks=2 --ntasks-per-node=1");
    set(&table, "SLURM_JOB_NODELIST", "n[03-04]");
    set(&table, "SLURM_JOB_ID", "17");
    topt_mend_step(&env);
    is_value("TOPT_TORCHRUN",
             "--nnodes=2 --nproc-per-node=3 --rdzv-backend=c10d --rdzv-id=17 "
             "--rdzv-endpoint=n03:20017");
    topt_mend_forget(&env);
    is_value("TOPT_TORCHRUN", "(unset)");
    is_value("TOPT_DP", "(unset)");
    is_value("SLURM_TOPT_RECOMPUTE", "(unset)");
}

static void test_batch(void)
{
    table = (struct table){0};
    set(&table, "SLURM_NTASKS", "1");
    set(&table, "SLURM_NPROCS", "1");
    set(&table, "SLURM_GPUS", "8");
    set(&table, "SLURM_GPUS_PER_TASK", "8");
    set(&table, "SLURM_NTASKS_PER_NODE", "1");
    set(&table, "SLURM_NTASKS_PER_GPU", "1");
    set(&table, "SLURM_TRES_PER_TASK", "cpu=1,gres/gpu=2");
    set(&table, "SLURM_GPUS_PER_NODE", "1");
    set(&table, "SLURM_TASKS_PER_NODE", "3(x2)");
    set(&table, "SLURM_GPUS_ON_NODE", "3");
    for (int twice = 0; twice < 2; twice++) {
        topt_mend_batch(&env);
        is_value("SLURM_NTASKS", "6");
        is_value("SLURM_NPROCS", "6");
        is_value("SLURM_GPUS", "(unset)");
        is_value("SLURM_GPUS_PER_TASK", "(unset)");
        is_value("SLURM_NTASKS_PER_NODE", "(unset)");
        is_value("SLURM_NTASKS_PER_GPU", "(unset)");
        is_value("SLURM_TRES_PER_TASK", "(unset)");
        is_value("SLURM_GPUS_PER_NODE", "3");
    }
    set(&table, "SLURM_TASKS_PER_NODE", "what");
    set(&table, "SLURM_NTASKS", "4");
    unset(&table, "SLURM_GPUS_ON_NODE");
    topt_mend_batch(&env);
    is_value("SLURM_NTASKS", "4");
    is_value("SLURM_GPUS_PER_NODE", "3");
}

/* A job that was resized has another number of ranks than its plan. */
static void is_stale(int is_batch, const char *name, const char *has, const char *part)
{
    char why[240] = "";
    table = (struct table){0};
    topt_mend_plan(&env, &plan, 6, "unix:/s", &named);
    set(&table, "SLURM_JOB_NUM_NODES", "2");
    set(&table, "SLURM_GPUS_ON_NODE", "3");
    set(&table, "SLURM_TASKS_PER_NODE", "3(x2)");
    set(&table, name, has);
    int stale = topt_mend_stale(&env, is_batch, why, sizeof why);
    ok(stale == (part != NULL) && (!part || strstr(why, part)), "%s=%s: %s", name, has,
       why);
    is_value("SLURM_TOPT_PLAN", part ? "(unset)" : "p-7");
    is_value("TOPT_PLAN", part ? "(unset)" : "p-7");
    is_value("TOPT_STALE", part ? why : "(unset)");
}

static void test_stale(void)
{
    is_stale(1, "OTHER", "1", NULL);
    is_stale(1, "SLURM_JOB_NUM_NODES", "1", "for 2 nodes, and the job has 1");
    is_stale(1, "SLURM_GPUS_ON_NODE", "2", "for 3 GPUs per node, and the job has 2");
    is_stale(1, "SLURM_GPUS_ON_NODE", "4", NULL);
    is_stale(1, "SLURM_JOB_NUM_NODES", "3", NULL);
    is_stale(1, "SLURM_TASKS_PER_NODE", "4(x2)", NULL);
    is_stale(1, "SLURM_TASKS_PER_NODE", "3,1", "for 6 tasks, and the job has 4");
    is_stale(0, "SLURM_JOB_NUM_NODES", "1", "for 2 nodes, and the job has 1");
    is_stale(0, "SLURM_GPUS_ON_NODE", "1", NULL);
    is_stale(0, "SLURM_TASKS_PER_NODE", "1", NULL);
}

/* Whole nodes have more GPUs than the plan takes of them: srun starts the plan's ranks. */
static void has_spare(const char *nodes, const char *gpus, const char *want)
{
    char said[240] = "";
    table = (struct table){0};
    topt_mend_plan(&env, &plan, 6, "unix:/s", &named);
    set(&table, "SLURM_JOB_NUM_NODES", nodes);
    set(&table, "SLURM_NNODES", nodes);
    set(&table, "SLURM_GPUS_ON_NODE", gpus);
    set(&table, "SLURM_TASKS_PER_NODE", "8(x3)");
    is_int(topt_mend_spare(&env, said, sizeof said), *want != '\0',
           "more than the plan's");
    ok(strcmp(said, want) == 0, "said: %s", said);
    topt_mend_batch(&env);
    is_value("SLURM_NTASKS", "6");
    is_value("SLURM_NPROCS", "6");
    is_value("SLURM_GPUS_PER_NODE", "3");
    is_value("SLURM_JOB_NUM_NODES", "2");
    is_value("SLURM_NNODES", "2");
}

static void test_spare(void)
{
    has_spare("2", "3", "");
    has_spare("2", "8",
              "the job has 2 nodes of 8 GPUs, and plan p-7 uses 6 of 16 GPUs: "
              "the others are idle");
    has_spare("3", "3",
              "the job has 3 nodes of 3 GPUs, and plan p-7 uses 6 of 9 GPUs: "
              "the others are idle");
}

int main(void)
{
    is_int(topt_mend_tasks("3"), 3, "one node");
    is_int(topt_mend_tasks("3(x2)"), 6, "two equal nodes");
    is_int(topt_mend_tasks("4,2(x3),1"), 11, "mixed");
    const char *const bad[] = {
        "",     "x",     "3(x2",      "3(y2)", "3,",
        "3(x)", "3(x0)", "3(x2)(x2)", "-3",    "9999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(topt_mend_tasks(bad[i]), -1, "'%s' isn't read", bad[i]);
    test_carry();
    test_uniform();
    test_batch();
    test_stale();
    test_spare();
    return done_testing();
}
