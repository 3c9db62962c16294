/* observe.c - see observe.h.  topt-client, beside this program, knows how a toptd is asked. */
#include "observe.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plan_source.h"

extern char **environ;

enum { PATIENCE_MS = 2000, LOOK_MS = 10 };

/* Is this a job that was sized with this plan?  A step of several ranks has one rank 0. */
static int is_planned(const struct topt_run_report *r)
{
    const char *plan = getenv("TOPT_PLAN_ID");
    return plan && !strcmp(plan, r->plan->id) && getenv("SLURM_JOB_ID") &&
           getenv("TOPT_URL");
}

/* Is a line about it wanted in the job's output?  The site or the user says so, and "0" says no. */
static int is_reported(void)
{
    const char *wish = getenv("TOPT_REPORT");
    return wish && *wish && strcmp(wish, "0") != 0;
}

static int start(char *const *args, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files))
        return -1;
    int rc =
        posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!rc && !is_reported())
        rc = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
                                              O_WRONLY, 0);
    if (!rc)
        rc = posix_spawn(ret, args[0], &files, NULL, args, environ);
    posix_spawn_file_actions_destroy(&files);
    return rc ? -1 : 0;
}

/* A job ends in its time, whoever does not answer. */
static void wait_for(pid_t child)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
        if (waitpid(child, NULL, WNOHANG))
            return;
        nanosleep(&look, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

void topt_run_observe(const struct topt_run_report *r)
{
    char path[4096], seconds[48], peak[48], steps[48];
    pid_t child;
    if (r->steps < 1 || !is_planned(r) || topt_client_path(path, sizeof path, NULL))
        return;
    snprintf(seconds, sizeof seconds, "--step-seconds=%.9f",
             (double)topt_median_ns(r->step_ns, r->steps) / 1e9);
    snprintf(peak, sizeof peak, "--peak-memory=%lldB", (long long)r->peak_bytes);
    snprintf(steps, sizeof steps, "--steps=%lld", (long long)r->steps);
    char *const args[] = {path,
                          (char *)"client",
                          (char *)"observe",
                          (char *)(uintptr_t)r->plan->id,
                          seconds,
                          peak,
                          steps,
                          (char *)"--timeout=2",
                          NULL};
    fflush(stdout);
    if (!start(args, &child))
        wait_for(child);
}
