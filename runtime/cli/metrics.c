/* metrics.c - metrics of a run as lines of JSON. */
#include "metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct topt_metrics {
    FILE *f;
    const char *path;
    double flops, rate; /* of a step; of all devices a second, by the profile */
    double tokens;      /* of a step: positions, or samples where there is no sequence */
};

static int failed(const struct topt_metrics *m, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_IO, "--metrics: write '%s': %s", m->path,
                     strerror(errno));
}

/* Lines of steps that a checkpoint does not have are made again: the file ends before the
 * first of them, or of one that was cut short. */
static int keep_until(struct topt_metrics *m, int64_t step, struct topt_error *err)
{
    char line[1024];
    long end = 0;
    long long at;
    while (fgets(line, sizeof line, m->f) && strchr(line, '\n') &&
           sscanf(line, "{\"step\": %lld", &at) == 1 && at <= step)
        end = ftell(m->f);
    if (fseek(m->f, end, SEEK_SET) || ftruncate(fileno(m->f), end))
        return failed(m, err);
    return 0;
}

int topt_metrics_open(struct topt_run *r, struct topt_metrics **ret,
                      struct topt_error *err)
{
    const struct topt_model *model = r->plan->model;
    const struct topt_settings *s = &r->program->settings;
    struct topt_metrics *m = calloc(1, sizeof *m);
    struct topt_model_stats stats;
    const int64_t probe = (int64_t)1 << 40; /* a product that size: at the full rate */
    if (!m)
        return topt_nomem(err, NULL);
    m->path = r->args.metrics;
    m->f = fopen(m->path, r->first ? "r+e" : "we");
    if (!m->f && r->first && errno == ENOENT)
        m->f = fopen(m->path, "we");
    if (!m->f || (r->first && keep_until(m, r->first, err))) {
        int rc = m->f ? -1 : failed(m, err);
        topt_metrics_close(m);
        return rc;
    }
    topt_model_stats(model, &stats);
    m->flops = (double)stats.flops_per_sample * (double)model->batch;
    m->tokens = (double)model->batch * (double)(model->seq > 0 ? model->seq : 1);
    int64_t ns = topt_hw_compute_ns(r->plan->hw, s->dtype, TOPT_WORK_MATMUL, probe, 0,
                                    r->program->mesh.devices);
    m->rate = ns > 0 ? (double)probe / (double)ns * 1e9 * r->program->mesh.devices : 0;
    *ret = m;
    return 0;
}

int topt_metrics_step(struct topt_metrics *m, const struct topt_run *r, double eval,
                      double right, struct topt_error *err)
{
    int64_t i = r->steps - 1;
    double seconds = (double)r->step_ns[i] / 1e9;
    fprintf(m->f, "{\"step\": %lld, \"loss\": %.9g, \"lr\": %.9g, \"step_ns\": %lld, ",
            (long long)(r->first + r->steps), r->loss[i], topt_session_lr(r->session),
            (long long)r->step_ns[i]);
    fprintf(m->f, "\"tokens_per_s\": %.6g, \"mfu\": %.4g", m->tokens / seconds,
            m->rate > 0 ? m->flops / seconds / m->rate : 0);
    if (r->args.clip > 0)
        fprintf(m->f, ", \"gradient_norm\": %.9g",
                topt_session_gradient_norm(r->session));
    if (r->args.balance > 0)
        fprintf(m->f, ", \"balance\": %.9g", topt_session_balance(r->session));
    if (isfinite(eval))
        fprintf(m->f, ", \"eval_loss\": %.9g", eval);
    if (isfinite(right))
        fprintf(m->f, ", \"eval_accuracy\": %.9g", right);
    fprintf(m->f, "}\n");
    return fflush(m->f) ? failed(m, err) : 0;
}

void topt_metrics_close(struct topt_metrics *m)
{
    if (m && m->f)
        fclose(m->f);
    free(m);
}
