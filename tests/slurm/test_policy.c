/* test_policy.c - a site's policy of jobs without a plan, and plans in an environment. */
#include <string.h>

#include "policy.h"
#include "tap.h"

static void test_read(void)
{
    struct policy p;
    struct topt_error err = {0};
    ok(!policy_read("# ours\n\ncap gpu 4 # small ones\nrequire long\ncap * 64\n", &p,
                    &err) &&
           p.n == 3 && p.row[0].most == 4 && !p.row[1].is_cap && p.row[1].most == 1,
       "read: %s", err.text);
    ok(!policy_read("", &p, &err) && p.n == 0, "nothing");
    static const char *const bad[] = {"cap gpu\n",   "cap gpu x\n",   "cap gpu 4 5\n",
                                      "require\n",   "require a b\n", "let gpu 4\n",
                                      "cap gpu -1\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(policy_read(bad[i], &p, &err) == -1, "%.8s: %s", bad[i], err.text);
}

static void allowed(const char *text, const char *partition, int64_t gpus,
                    const char *part)
{
    struct policy p;
    struct topt_error err = {0};
    const struct policy_job job = {.partition = partition, .gpus = gpus};
    ok(!policy_read(text, &p, &err), "read");
    int rc = policy_allows(&p, &job, &err);
    ok(part ? rc == -1 && strstr(err.text, part) : rc == 0, "%lld in '%s': %s",
       (long long)gpus, partition, rc ? err.text : "taken");
}

static void plans(const char *const *words, int want, const char *part)
{
    struct policy_plan plan;
    struct topt_error err = {0};
    uint32_t n = 0;
    while (words[n])
        n++;
    int rc = policy_plan((char *const *)(uintptr_t)words, n, &plan, &err);
    ok(rc == want && (rc >= 0 || strstr(err.text, part)), "%u variables: %d %s", n, rc,
       err.text);
}

/* A change to so many nodes (0: it does not say) and GPUs (-1), as an ordinary user's. */
static void changed(const char *text, const char *partition, int64_t nodes, int64_t gpus,
                    const char *want)
{
    struct policy p;
    struct topt_error err = {0};
    const struct policy_change c = {
        .job = {.partition = partition, .nodes = nodes, .gpus = gpus > 0 ? gpus : 0},
        .says_nodes = nodes > 0,
        .says_gpus = gpus >= 0};
    int rc = policy_read(text, &p, &err) || policy_allows_change(&p, &c, &err);
    ok(*want ? rc && strstr(err.text, want) : !rc, "%s, %lld nodes, %lld GPUs: %s",
       partition ? partition : "?", (long long)nodes, (long long)gpus, err.text);
}

int main(void)
{
    test_read();
    allowed("cap gpu 4\nrequire long\n", "gpu", 4, NULL);
    allowed("cap gpu 4\nrequire long\n", "gpu", 5,
            "more than the 4 that the site allows");
    allowed("cap gpu 4\nrequire long\n", "gpus", 5, NULL);
    allowed("cap gpu 4\nrequire long\n", "a,gpu", 5, "--topt-mode");
    allowed("cap gpu 4\nrequire long\n", "long", 1, NULL);
    allowed("cap gpu 4\nrequire long\n", "long", 2, "needs a plan");
    allowed("cap * 0\n", "", 1, "more than the 0");
    allowed("cap gpu 0\n", "", 1, NULL);
    allowed("cap - 0\n", "", 1, "more than the 0");
    allowed("cap - 0\n", "gpu", 1, NULL);
    allowed("", "gpu", 5000, NULL);
    static const char caps[] = "cap main 2\ncap big 8\n";
    changed(caps, "main", 0, 0, "");
    changed(caps, "main", 1, 2, "");
    changed(caps, "main", 1, 3, "can't be changed to 3 GPUs, more than the 2");
    changed(caps, "main", 2, 4, "can't be changed to 4 GPUs");
    changed(caps, "big", 2, 4, "");
    changed(caps, NULL, 2, 4, "more than the 2"); /* any line may be its */
    changed(caps, "free", 2, 40, "");
    changed(caps, "main", 0, 2, "says NumNodes, too");
    changed(caps, "main", 2, -1, "says TresPerNode, too");
    changed(caps, "main", 1, -1, ""); /* no more than it has */
    changed(caps, "main", 2, 0, "");  /* none any more */
    changed(caps, "main", 0, 0, "");
    changed("", NULL, 2, -1, "");
    plans((const char *const[]){"A=1", NULL}, 0, "");
    plans((const char *const[]){"SLURM_TOPT_PLAN=p-1", "SLURM_TOPT_NODES=2",
                                "SLURM_TOPT_GPUS_PER_NODE=4", "SLURM_TOPT_NTASKS=8",
                                NULL},
          1, "");
    plans((const char *const[]){"SLURM_TOPT_PLAN=p-1", "SLURM_TOPT_NODES=2", NULL}, -1,
          "without SLURM_TOPT_GPUS_PER_NODE");
    plans((const char *const[]){"SLURM_TOPT_PLAN=p-1", "SLURM_TOPT_NODES=x", NULL}, -1,
          "without SLURM_TOPT_NODES");
    plans((const char *const[]){"SLURM_TOPT_PLAN=p-1", "SLURM_TOPT_NODES=2",
                                "SLURM_TOPT_GPUS_PER_NODE=4", "SLURM_TOPT_NTASKS=7",
                                NULL},
          -1, "7 tasks for 2 nodes");
    const struct policy_job job = {.nodes = 2, .gpus_per_node = 4, .tasks = 8};
    ok(policy_is_shaped(
           &job, &(struct policy_plan){.nodes = 2, .gpus_per_node = 4, .tasks = 8}),
       "the plan's shape");
    ok(!policy_is_shaped(
           &job, &(struct policy_plan){.nodes = 2, .gpus_per_node = 4, .tasks = 2}),
       "another");
    struct policy_plan plan = {
        .nodes = 4, .gpus_per_node = 4, .tasks = 16, .others = "1x4 2x4 2x2"};
    ok(policy_is_shaped(&job, &plan), "that of a further plan");
    plan.others = "1x4 2x2 12x4";
    ok(!policy_is_shaped(&job, &plan), "of none");
    return done_testing();
}
