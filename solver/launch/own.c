/* own.c - topt's own runtime, which runs any plan: `topt run`, started on each GPU. */
#include "job.h"

#include <stdlib.h>

#include "topt_json.h"

int topt_launch_topt(const struct job *j, struct sheet *s, struct topt_error *err)
{
    struct topt_text t = {0}, plan = {0};
    topt_job_here(&t);
    topt_text_add(&t, "mpirun -n %lld topt run \"$here/plan.json\" \"$@\"\n",
                  (long long)j->gpus);
    if (topt_sheet_file(s, "launch.sh", &t, err))
        return -1;
    s->each_gpu = "--mpi=pmix topt run \"$files/plan.json\"";
    topt_sheet_script(s, "give the data and the number of steps: --data PATH --steps N");
    char *text = topt_json_text(j->plan, 0);
    if (text)
        topt_text_add(&plan, "%s\n", text);
    else
        plan.oom = 1;
    free(text);
    return topt_sheet_file(s, "plan.json", &plan, err);
}
