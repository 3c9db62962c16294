/* test_cluster.c - curves and traces as they are read, policies on small clusters whose times
 * are worked out by hand, and what holds of any of them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "topt_cluster.h"
#include "topt_json.h"
#include "topt_text.h"

static const struct topt_cluster_options usual = {.nodes = 1,
                                                  .gpus_per_node = 4,
                                                  .most_permille = 1250,
                                                  .least_permille = 1050,
                                                  .share_permille = 1000,
                                                  .depth = 500,
                                                  .restart_s = 100};

/* Twice the GPUs, half the time, and a model that needs two of them. */
static const struct topt_cluster_curve linear = {
    "linear", 3, 2, {{1, 4000}, {2, 2000}, {4, 1000}}};
static const struct topt_cluster_curve large = {"large", 2, 1, {{2, 2000}, {4, 1000}}};

/* ---- what is read ------------------------------------------------------------------ */

static int read_curve(const char *text, struct topt_cluster_curve *ret,
                      struct topt_error *err)
{
    json_t *doc = json_loads(text, 0, NULL);
    int rc = topt_cluster_curve_read(doc, 8, ret, err);
    json_decref(doc);
    return rc;
}

static void test_curve(void)
{
    struct topt_cluster_curve c;
    struct topt_error err;
    ok(!read_curve("{\"format\":\"topt-curve/1\",\"model\":\"m\",\"knee\":5,\"points\":["
                   "{\"gpus\":16,\"feasible\":true,\"time_ns\":30},"
                   "{\"gpus\":1,\"feasible\":false},"
                   "{\"gpus\":3,\"feasible\":true,\"time_ns\":80},"
                   "{\"gpus\":4,\"feasible\":true,\"time_ns\":60},"
                   "{\"gpus\":12,\"feasible\":true,\"time_ns\":40}]}",
                   &c, &err) &&
           c.n == 2 && c.point[0].gpus == 4 && c.point[1].time_ns == 30 && c.knee == 0,
       "a curve without what does not fit or does not fill nodes");
    ok(read_curve("{\"format\":\"topt-curve/1\",\"model\":\"m\",\"points\":[]}", &c,
                  &err) == -1 &&
           err.code == TOPT_ERR_INFEASIBLE,
       "%s", err.text);
    ok(read_curve("{\"format\":\"topt-plan/1\"}", &c, &err) == -1, "%s", err.text);
}

static int read_trace(const char *text, struct topt_cluster_trace *ret,
                      struct topt_error *err)
{
    static const struct topt_cluster_curve curves[] = {{"linear", 1, 0, {{1, 1}}},
                                                       {"large", 1, 0, {{2, 1}}}};
    char path[] = "/tmp/topt-test-trace.XXXXXX";
    close(mkstemp(path));
    int rc = topt_write_file(path, text, strlen(text), err) ||
             topt_cluster_trace_read(path, curves, 2, 1, ret, err);
    unlink(path);
    return rc ? -1 : 0;
}

static void test_traces(void)
{
    static const struct {
        const char *text;
        int64_t submit, gpus, run;
    } good[] = {
        {"submit_s,gpus,run_s\n100,1,5\n700,4,60\n", 600, 4, 60},
        {"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,"
         "a\n2017-10-09 06:01:55,7.9,1,7,a\n",
         3600, 2, 66},
        {"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_"
         "time,deletion_time,scheduled_time\np0,1,1,0,0,,LS,Running,5,9,5\np1,1,1,1,1000,"
         ","
         "LS,Running,10,20,10\np2,1,1,8,1000,,LS,Pending,15,40,\n",
         5, 8, 25}};
    static const char *const bad[] = {"",
                                      "a,b,c\n1,2,3\n",
                                      "submit_s,gpus,run_s\n1,x,3\n",
                                      "submit_s,gpus,run_s\n1,0,3\n",
                                      "submit_s,gpus,run_s,curve\n1,1,3,none\n",
                                      "submit_s,gpus,run_s\n1,1\n",
                                      "submit_s,gpus,run_s\nnan,1,3\n"};
    struct topt_cluster_trace t;
    struct topt_error err = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ok(!read_trace(good[i].text, &t, &err) && t.n == 2 && t.job[0].submit_s == 0 &&
               t.job[1].submit_s == good[i].submit && t.job[1].gpus == good[i].gpus &&
               t.job[1].run_s == good[i].run,
           "trace %zu: %s", i, err.text);
        topt_cluster_trace_fini(&t);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(read_trace(bad[i], &t, &err) == -1 && strstr(err.text, "/tmp/"), "%s",
           err.text);
    ok(!read_trace("submit_s,gpus,run_s,curve\n1,1,3,large\n", &t, &err) &&
           t.job[0].curve == 1,
       "a curve by its name");
    topt_cluster_trace_fini(&t);
}

static void test_draw(void)
{
    struct topt_cluster_job job[] = {{0, 1, 100, 0}, {1, 4, 300, 0}};
    const struct topt_cluster_trace from = {job, 2};
    struct topt_cluster_trace a, b, c;
    if (topt_cluster_trace_draw(&from, 2000, 0.5, 4, 1, &a, NULL) ||
        topt_cluster_trace_draw(&from, 2000, 0.5, 4, 1, &b, NULL) ||
        topt_cluster_trace_draw(&from, 2000, 0.5, 4, 2, &c, NULL))
        abort();
    double gpu_s = 0;
    for (size_t i = 0; i < a.n; i++)
        gpu_s += (double)(a.job[i].gpus * a.job[i].run_s);
    double load = gpu_s / 4 / (double)a.job[a.n - 1].submit_s;
    ok(load > 0.45 && load < 0.55, "a load of %.3f", load);
    ok(!memcmp(a.job, b.job, a.n * sizeof *a.job), "the same seed draws the same");
    ok(memcmp(a.job, c.job, a.n * sizeof *a.job) != 0, "another others");
    topt_cluster_trace_fini(&a);
    topt_cluster_trace_fini(&b);
    topt_cluster_trace_fini(&c);
}

/* ---- by hand ----------------------------------------------------------------------- */

/* Two jobs of 3 and 2 GPUs' habits on four GPUs: starts and ends of both. */
static void ends(const char *policy, const struct topt_cluster_curve *c, int64_t gpus_0,
                 int64_t gpus_1, int64_t end_0, int64_t end_1)
{
    struct topt_cluster_job job[] = {{0, gpus_0, 6000, 0}, {10, gpus_1, 6000, 0}};
    const struct topt_cluster_trace t = {job, 2};
    struct topt_cluster_result r;
    struct topt_error err;
    if (topt_cluster_run(&t, c, &usual, policy, &r, &err))
        abort();
    is_int(r.fate[0].end_s, end_0, "%s: %lld and %lld GPUs: the first ends", policy,
           (long long)gpus_0, (long long)gpus_1);
    is_int(r.fate[1].end_s, end_1, "the second ends");
    topt_cluster_result_fini(&r);
}

static void test_by_hand(void)
{
    ends("asked", &linear, 4, 2, 6000, 12000);
    ends("asked", &linear, 2, 2, 6000, 6010);
    ends("fewest", &linear, 4, 2, 24000, 12010);
    ends("knee", &linear, 2, 2, 3000, 6000);
    /* It dies after a tenth of its 6000 s, and then waits behind the other for 2 GPUs. */
    ends("asked", &large, 1, 4, 9600, 6600);
    /* Grown to 4 GPUs, as no other waits. */
    ends("rightsize", &linear, 2, 2, 3000, 6000);
    ends("moldable", &linear, 2, 2, 3000, 6000);
}

static void test_rounds(void)
{
    struct topt_cluster_job job[] = {{0, 1, 6000, 0}};
    const struct topt_cluster_trace t = {job, 1};
    struct topt_cluster_result r;
    ok(!topt_cluster_run(&t, &linear, &usual, "sia", &r, NULL) &&
           r.fate[0].end_s == 1500 && r.fate[0].gpus == 4 && !r.fate[0].restarts,
       "sia gives all to one job");
    topt_cluster_result_fini(&r);
    ok(!topt_cluster_run(&t, &linear, &usual, "gavel", &r, NULL) &&
           r.fate[0].end_s == 6000,
       "gavel leaves it the number that it asked for");
    topt_cluster_result_fini(&r);
    ok(!topt_cluster_run(&t, &linear, &usual, "rubick", &r, NULL) &&
           r.fate[0].end_s == 1500,
       "rubick's steepest slope is the only one");
    topt_cluster_result_fini(&r);
    /* Two jobs of the whole cluster have it in turns, each for half of the time. */
    struct topt_cluster_job two[] = {{0, 4, 6000, 0}, {0, 4, 6000, 0}};
    const struct topt_cluster_trace both = {two, 2};
    ok(!topt_cluster_run(&both, &linear, &usual, "gavel", &r, NULL) &&
           llabs(r.fate[0].ran_s - r.fate[1].ran_s) < 1000 && r.fate[0].restarts > 5,
       "gavel's turns");
    topt_cluster_result_fini(&r);
}

/* ---- of any policy ----------------------------------------------------------------- */

static int is_sound(const struct topt_cluster_trace *t,
                    const struct topt_cluster_result *r, int64_t gpus)
{
    int good = 1;
    for (size_t i = 0; i < r->nmoments; i++)
        good &= r->moment[i].used >= 0 && r->moment[i].used <= gpus &&
                r->moment[i].waiting >= 0;
    good &=
        r->moment[r->nmoments - 1].used == 0 && r->moment[r->nmoments - 1].waiting == 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct topt_cluster_fate *f = &r->fate[i];
        good &= f->start_s >= t->job[i].submit_s && f->end_s > f->start_s &&
                f->end_s - f->start_s >= f->ran_s - 1 && f->gpu_s > 0;
    }
    return good;
}

static void test_all(void)
{
    static const struct topt_cluster_curve curves[] = {
        {"a", 4, 2, {{1, 4000}, {2, 2100}, {4, 1200}, {8, 900}}},
        {"b", 3, 2, {{2, 3000}, {4, 1500}, {8, 760}}},
        {"c", 2, 1, {{4, 1000}, {16, 280}}}};
    struct topt_cluster_job job[] = {{0, 1, 5000, 0}, {1, 2, 9000, 1}, {2, 4, 3000, 2},
                                     {3, 1, 400, 1},  {4, 8, 6000, 1}, {5, 1, 900, 2}};
    const struct topt_cluster_trace from = {job, 6};
    struct topt_cluster_options o = usual;
    struct topt_cluster_trace t;
    struct topt_cluster_result all[8], again;
    size_t n = 0;
    double jct[8];
    o.nodes = 4;
    o.share_permille = 250;
    if (topt_cluster_trace_draw(&from, 200, 0.8, 16, 1, &t, NULL))
        abort();
    for (const char *const *p = topt_cluster_policies(); *p; p++, n++) {
        if (topt_cluster_run(&t, curves, &o, *p, &all[n], NULL) ||
            topt_cluster_run(&t, curves, &o, *p, &again, NULL))
            abort();
        json_t *row = topt_cluster_figures(&t, &all[n], &all[0]);
        ok(is_sound(&t, &all[n], 16), "%s: all jobs end, on no more GPUs than there are",
           *p);
        ok(!memcmp(all[n].fate, again.fate, t.n * sizeof *again.fate),
           "and the same again");
        ok(topt_json_whole_at(row, "jobs") == 200 &&
               topt_json_whole_at(row, "never") == 0 && topt_cluster_policy_help(*p),
           "its row");
        jct[n] = topt_json_number_at(row, "jct_mean_h");
        json_decref(row);
        topt_cluster_result_fini(&again);
    }
    ok(jct[4] < 0.75 * jct[0] && jct[4] < 0.9 * jct[3],
       "moldable backfill: %.2f h, as asked %.2f, right-sized %.2f", jct[4], jct[0],
       jct[3]);
    char *svg = topt_cluster_svg(all, n, 16);
    ok(svg && strstr(svg, ">rubick<") && strstr(svg, "class='u'"), "the drawing");
    free(svg);
    struct topt_error err;
    ok(topt_cluster_run(&t, curves, &o, "best", &again, &err) == -1, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        topt_cluster_result_fini(&all[i]);
    topt_cluster_trace_fini(&t);
}

static void test_too_small(void)
{
    static const struct topt_cluster_curve huge = {"huge", 1, 0, {{8, 1000}}};
    struct topt_cluster_job job[] = {{0, 8, 100, 0}};
    const struct topt_cluster_trace t = {job, 1};
    struct topt_cluster_result r;
    ok(!topt_cluster_run(&t, &huge, &usual, "asked", &r, NULL) && r.fate[0].start_s == -1,
       "a job that is larger than the cluster never starts");
    topt_cluster_result_fini(&r);
}

int main(void)
{
    test_curve();
    test_traces();
    test_draw();
    test_by_hand();
    test_rounds();
    test_all();
    test_too_small();
    return done_testing();
}
