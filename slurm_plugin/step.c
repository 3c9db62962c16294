/* step.c - the plan reaches the batch script and every task of every step.
 *
 * Only the job's environment says that there is a plan: options don't arrive here under
 * --export=NONE on older Slurms, SLURM_TOPT_* do. */
#include "roles.h"

#include "mend.h"
#include "site.h"

/* The batch script is a step of its own, with this number since Slurm 20.11. */
static const uint32_t batch_step = 0xfffffffb;

static int job_get(void *ctx, const char *name, char *buf, size_t size)
{
    return spank_getenv(ctx, name, buf, (int)size) == ESPANK_SUCCESS ? 0 : -1;
}

static void job_set(void *ctx, const char *name, const char *value)
{
    if (spank_setenv(ctx, name, value, 1) != ESPANK_SUCCESS)
        slurm_error("topt: can't set %s in the job's environment", name);
}

static void job_unset(void *ctx, const char *name)
{
    spank_unsetenv(ctx, name);
}

void topt_step(spank_t spank, int argc, char **argv)
{
    const struct topt_env env = {spank, job_get, job_set, job_unset};
    uint32_t step = 0;
    char why[240], said[240] = "";
    int is_batch = spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
                   step == batch_step;
    if (is_batch && topt_mend_adopt(&env, said, sizeof said))
        slurm_spank_log("topt: %s", said);
    if (!topt_mend_step(&env))
        return;
    if (topt_site_reports(argc, argv) && job_get(spank, "TOPT_REPORT", why, sizeof why))
        job_set(spank, "TOPT_REPORT", "1");
    if (topt_mend_stale(&env, is_batch, why, sizeof why))
        slurm_error("topt: %s", why);
    else if (is_batch && topt_mend_spare(&env, said, sizeof said))
        slurm_spank_log("topt: %s", said);
    if (is_batch)
        topt_mend_batch(&env);
}
