/* test_cluster.c - curves and traces as they are read, policies on small clusters whose times
 * are worked out by hand, and what holds of any of them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "topt_cluster.h"
#include "topt_json.h"
#include "topt_text.h"

static const struct topt_cluster_options usual = {.kind = {{"", 1, 4}},
                                                  .nkinds = 1,
                                                  .most_permille = 1250,
                                                  .least_permille = 1050,
                                                  .share_permille = 1000,
                                                  .depth = 500,
                                                  .restart_s = 100};

/* Twice the GPUs, half the time, and a model that needs two of them. */
static const struct topt_cluster_curve linear = {
    "linear", 3, {2}, {0, 3, 3, 3, 3}, -1, {{1, 4000, 0}, {2, 2000, 0}, {4, 1000, 0}}};
static const struct topt_cluster_curve large = {
    "large", 2, {1}, {0, 2, 2, 2, 2}, -1, {{2, 2000, 0}, {4, 1000, 0}}};

/* ---- what is read ------------------------------------------------------------------ */

static const struct topt_cluster_kind eight = {"", 4, 8};
static const struct topt_cluster_kind two_kinds[] = {{"new", 2, 8}, {"old", 4, 4}};

static int read_curve(const char *text, struct topt_cluster_curve *ret,
                      struct topt_error *err)
{
    json_t *doc = json_loads(text, 0, NULL);
    size_t n = 0;
    int rc = topt_cluster_curve_read(doc, &eight, 1, ret, 1, &n, err);
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
           c.n == 2 && c.point[0].gpus == 4 && c.point[1].time_ns == 30 && c.knee[0] == 0,
       "a curve without what does not fit or does not fill nodes");
    ok(read_curve("{\"format\":\"topt-curve/1\",\"model\":\"m\",\"points\":[]}", &c,
                  &err) == -1 &&
           err.code == TOPT_ERR_INFEASIBLE,
       "%s", err.text);
    ok(read_curve("{\"format\":\"topt-plan/1\"}", &c, &err) == -1, "%s", err.text);
}

static char path[64];

static const char *file_of(const char *text)
{
    strcpy(path, "/tmp/topt-test-trace.XXXXXX");
    close(mkstemp(path));
    return topt_write_file(path, text, strlen(text), NULL) ? NULL : path;
}

/* A table of two models on two kinds of nodes, one of them with two batches. */
static void test_table(void)
{
    static struct topt_cluster_curve c[4];
    struct topt_cluster_trace t;
    struct topt_error err = {0};
    size_t n = 0;
    ok(!topt_cluster_curves_read(
           file_of("# from\ncurve,kind,gpus,run_s,restart_s\nm@32,old,4,100,25\n"
                   "m@32,new,8,30,25\nm@32,old,3,9,25\nm@64,new,1,500,25\n"
                   "other,third,1,5,1\nm@32,old,1,300,25\nother,new,16,60,5\n"),
           two_kinds, 2, c, 4, &n, &err) &&
           n == 3 && c[0].n == 3 && c[0].first[1] == 1 && c[0].first[2] == 3 &&
           c[0].point[1].gpus == 1 && c[0].restart_s == 25 && c[2].n == 1,
       "curves of a table, by kind and in order: %s", err.text);
    unlink(path);
    ok(!topt_cluster_trace_read(
           file_of("name,time,application,num_replicas,batch_size\na,10,m,2,32\n"
                   "b,20,other,1,8\nc,25,m,1,64\n"),
           c, n, two_kinds, 2, 1, &t, &err) &&
           t.n == 3 && t.job[0].curve == 0 && t.job[1].run_s == 60 &&
           t.job[1].kind == 0 && t.job[2].run_s == 500,
       "a workload whose lengths are the curves': %s", err.text);
    unlink(path);
    topt_cluster_trace_fini(&t);
    n = 0;
    ok(topt_cluster_curves_read(file_of("head\nm,new,1,x,0\n"), two_kinds, 2, c, 4, &n,
                                &err) == -1,
       "%s", err.text);
    unlink(path);
}

static int read_trace(const char *text, struct topt_cluster_trace *ret,
                      struct topt_error *err)
{
    static const struct topt_cluster_curve curves[] = {
        {"linear", 1, {0}, {0, 1, 1, 1, 1}, -1, {{1, 1, 0}}},
        {"large", 1, {0}, {0, 1, 1, 1, 1}, -1, {{2, 1, 0}}}};
    int rc = topt_cluster_trace_read(file_of(text), curves, 2, &eight, 1, 1, ret, err);
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
    struct topt_cluster_job job[] = {{0, 1, 100, 0, 0}, {1, 4, 300, 0, 0}};
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
    struct topt_cluster_job job[] = {{0, gpus_0, 6000, 0, 0}, {10, gpus_1, 6000, 0, 0}};
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
    struct topt_cluster_job job[] = {{0, 1, 6000, 0, 0}};
    const struct topt_cluster_trace t = {job, 1};
    struct topt_cluster_result r;
    /* A round of 60 s on 1 GPU, and from there as long as a restart takes on 2. */
    if (topt_cluster_run(&t, &linear, &usual, "sia", &r, NULL))
        abort();
    ok(r.fate[0].end_s > 1500 && r.fate[0].end_s < 1500 + 60 + 400 &&
           r.fate[0].gpus == 4 && r.fate[0].restarts == 2,
       "sia gives all to one job, twice as much at a time: %lld s",
       (long long)r.fate[0].end_s);
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
    struct topt_cluster_job two[] = {{0, 4, 6000, 0, 0}, {0, 4, 6000, 0, 0}};
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
        {"a",
         4,
         {2},
         {0, 4, 4, 4, 4},
         -1,
         {{1, 4000, 0}, {2, 2100, 0}, {4, 1200, 0}, {8, 900, 0}}},
        {"b", 3, {2}, {0, 3, 3, 3, 3}, -1, {{2, 3000, 0}, {4, 1500, 0}, {8, 760, 0}}},
        {"c", 2, {1}, {0, 2, 2, 2, 2}, -1, {{4, 1000, 0}, {16, 280, 0}}}};
    struct topt_cluster_job job[] = {{0, 1, 5000, 0, 0}, {1, 2, 9000, 1, 0},
                                     {2, 4, 3000, 2, 0}, {3, 1, 400, 1, 0},
                                     {4, 8, 6000, 1, 0}, {5, 1, 900, 2, 0}};
    const struct topt_cluster_trace from = {job, 6};
    struct topt_cluster_options o = usual;
    struct topt_cluster_trace t;
    struct topt_cluster_result all[9], again;
    size_t n = 0;
    double jct[9];
    int64_t late[9];
    o.kind[0].nodes = 4;
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
        late[n] = topt_json_whole_at(row, "later");
        jct[n] = topt_json_number_at(row, "jct_mean_h");
        json_decref(row);
        topt_cluster_result_fini(&again);
    }
    ok(jct[4] < 0.75 * jct[0] && jct[4] < 0.9 * jct[3],
       "moldable backfill: %.2f h, as asked %.2f, right-sized %.2f", jct[4], jct[0],
       jct[3]);
    ok(jct[5] < 0.75 * jct[0] && jct[5] < 0.9 * jct[3] && late[5] < late[4] &&
           late[5] < late[3] / 2,
       "with requeues: %.2f h; %lld are late, %lld without, %lld right-sized", jct[5],
       (long long)late[5], (long long)late[4], (long long)late[3]);
    char *svg = topt_cluster_svg(all, n, 16);
    ok(svg && strstr(svg, ">rubick<") && strstr(svg, "class='u'"), "the drawing");
    free(svg);
    struct topt_error err;
    ok(topt_cluster_run(&t, curves, &o, "best", &again, &err) == -1, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        topt_cluster_result_fini(&all[i]);
    topt_cluster_trace_fini(&t);
}

/* ---- kinds, failures, errors ------------------------------------------------------- */

/* Both ask for all of the first kind; the second's GPUs are fewer and faster. */
static void test_kinds(void)
{
    static const struct topt_cluster_curve c = {
        "m",    4,
        {1, 3}, {0, 2, 4, 4, 4},
        -1,     {{4, 500, 0}, {8, 250, 0}, {2, 700, 1}, {4, 350, 1}}};
    struct topt_cluster_job job[] = {{0, 8, 10000, 0, 0}, {0, 8, 10000, 0, 0}};
    const struct topt_cluster_trace t = {job, 2};
    struct topt_cluster_options o = usual;
    struct topt_cluster_result r;
    o.nkinds = 2;
    o.kind[0] = (struct topt_cluster_kind){"new", 1, 8};
    o.kind[1] = (struct topt_cluster_kind){"old", 1, 4};
    for (o.any_kind = 0; o.any_kind < 2; o.any_kind++) {
        if (topt_cluster_run(&t, &c, &o, "moldable", &r, NULL))
            abort();
        is_int(r.fate[0].end_s, 10000, "moldable: the first ends");
        is_int(r.fate[1].end_s, o.any_kind ? 14000 : 20000, "and the second on %s",
               o.any_kind ? "the other kind" : "the same kind");
        topt_cluster_result_fini(&r);
        if (topt_cluster_run(&t, &c, &o, "sia", &r, NULL))
            abort();
        int64_t most = 0;
        for (size_t i = 0; i < r.nmoments; i++)
            most = r.moment[i].used > most ? r.moment[i].used : most;
        is_int(most, o.any_kind ? 12 : 8, "sia uses GPUs of %s",
               o.any_kind ? "both kinds" : "one kind");
        topt_cluster_result_fini(&r);
    }
}

/* A node that fails each so many hours: what was not saved is done again. */
static void test_failures(void)
{
    struct topt_cluster_job job[] = {{0, 4, 100000, 0, 0}};
    const struct topt_cluster_trace t = {job, 1};
    struct topt_cluster_options o = usual;
    struct topt_cluster_result r, again;
    o.failure_s = 20000;
    o.repair_s = 1000;
    o.checkpoint_s = 5000;
    o.seed = 7;
    static const char *const policies[] = {"asked", "moldable", "sia"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (topt_cluster_run(&t, &linear, &o, policies[i], &r, NULL) ||
            topt_cluster_run(&t, &linear, &o, policies[i], &again, NULL))
            abort();
        int64_t n = r.fate[0].failures, more = r.fate[0].ran_s - 100000;
        ok(n > 1 && more >= n * o.restart_s - 2 &&
               more <= n * (o.restart_s + o.checkpoint_s) + 2,
           "%s: %lld failures cost %lld s", policies[i], (long long)n, (long long)more);
        ok(i == 2 || r.fate[0].end_s - r.fate[0].ran_s >= n * o.repair_s - 2,
           "and repairs are waited for");
        ok(!memcmp(r.fate, again.fate, sizeof *r.fate), "the same again");
        topt_cluster_result_fini(&r);
        topt_cluster_result_fini(&again);
    }
}

/* Wrong times change who goes ahead, and no run: the third job fits before the second where it
 * is predicted to end before the first. */
static void test_error(void)
{
    struct topt_cluster_job job[] = {
        {0, 2, 5000, 0, 0}, {10, 4, 1000, 0, 0}, {20, 2, 4900, 0, 0}};
    const struct topt_cluster_trace t = {job, 3};
    struct topt_cluster_options o = usual;
    struct topt_cluster_result r;
    int bad = 0, waits = 0;
    for (o.seed = 1; o.seed <= 40; o.seed++) {
        o.error = 0.5;
        if (topt_cluster_run(&t, &linear, &o, "asked", &r, NULL))
            abort();
        for (size_t i = 0; i < t.n; i++)
            bad += r.fate[i].end_s - r.fate[i].start_s != job[i].run_s;
        waits += r.fate[2].start_s > 20;
        topt_cluster_result_fini(&r);
    }
    is_int(bad, 0, "predictions are wrong, and jobs run as long as they do");
    ok(waits > 5 && waits < 35, "in %d of 40 the third job waits", waits);
}

static void test_too_small(void)
{
    static const struct topt_cluster_curve huge = {"huge",          1,  {0},
                                                   {0, 1, 1, 1, 1}, -1, {{8, 1000, 0}}};
    struct topt_cluster_job job[] = {{0, 8, 100, 0, 0}};
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
    test_table();
    test_kinds();
    test_failures();
    test_error();
    return done_testing();
}
