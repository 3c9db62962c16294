/* pool_test.c WORKER - worker processes that answer, crash, hang, take too much memory,
 * or lose their daemon. */
#include "operation.h"
#include "sizes.h"
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *worker;

/* ---- searches as jobs -------------------------------------------------------------- */

struct search {
    struct pool *pool;
    struct operation *plan;
    struct store_answer found;
};

static int run(void *ctx, const struct job_run *r, void *data, struct topt_error *err)
{
    (void)ctx;
    struct search *s = data;
    const struct operation_limits limits = {.threads = 1};
    int searched;
    return operation_search(s->pool, r, s->plan, &limits, &s->found, &searched, err);
}

static void destroy(void *data)
{
    struct search *s = data;
    operation_destroy(s->plan);
    store_answer_fini(&s->found);
    free(s);
}

static const struct job_kind kind = {run, NULL, destroy};

static struct pool *create_pool(int64_t memory)
{
    struct pool *p = NULL;
    struct topt_error err = {0};
    const struct pool_config config = {
        .program = worker, .slots = 2, .reserved = 1, .memory = memory};
    ok(pool_create(&config, &p, &err) == 0, "a pool");
    return p;
}

static struct jobs *create_jobs(int64_t limit_ms)
{
    struct jobs *j = NULL;
    struct topt_error err = {0};
    const struct jobs_config config = {.reserved = 1,
                                       .workers = 1,
                                       .lanes = {.queue = 100,
                                                 .running_per_uid = 9,
                                                 .queued_per_uid = 99,
                                                 .submit_queue = 99,
                                                 .submit_per_uid = 99},
                                       .limit_ms = limit_ms,
                                       .margin_ms = limit_ms / 2,
                                       .demote_ms = 100000};
    ok(jobs_create(&config, &j, &err) == 0, "jobs");
    return j;
}

static void finish(struct jobs *j, struct pool *p)
{
    jobs_stop(j);
    is_int(jobs_join(j, 5000), 0, "slots end");
    jobs_destroy(j);
    pool_destroy(p);
}

static struct job *search(struct jobs *j, struct pool *p, const char *model)
{
    static int number;
    struct search *s = calloc(1, sizeof *s);
    struct job *job = NULL;
    struct topt_error err;
    char key[24];
    int shared;
    snprintf(key, sizeof key, "%d", ++number);
    s->pool = p;
    s->plan = operation_create(OPERATION_PLAN);
    s->plan->query = (struct topt_query){.mode = "mini-parallelism", .wait_ms = -1};
    s->plan->model_id = strdup("m-1");
    s->plan->model_name = strdup("a model");
    s->plan->model = strdup(model);
    s->plan->hw_id = strdup("h-1");
    s->plan->hw = strdup("{}");
    struct jobs_work work = {
        .key = strdup(key), .data = s, .kind = &kind, .uid = 1, .lane = LANE_SEARCH};
    ok(jobs_submit(j, &work, &job, &shared, &err) == JOBS_TAKEN, "%s", model);
    return job;
}

static int answered(struct jobs *j, struct pool *p)
{
    struct job_status st;
    struct job *job = search(j, p, "{\"fake_bytes\":7}");
    job_wait(job, 60000, &st);
    const struct search *s = job_data(job);
    int good = st.state == JOB_DONE && s->found.feasible && s->found.plan_id &&
               s->found.plan && strstr(s->found.doc, "\"memory_bytes\":7");
    if (!good)
        printf("# %s: %s\n", job_state_name(st.state), st.err.text);
    job_release(job);
    return good;
}

/* ---- what may happen --------------------------------------------------------------- */

static void test_answers(void)
{
    struct pool *p = create_pool(0);
    struct shipped shipped;
    struct topt_error err = {0};
    is_int(shipped_load(p, &shipped, &err), 0, "profiles: %s", err.text);
    const struct shipped_hw *hw = shipped_find(&shipped, "other-hw");
    ok(hw && !strncmp(hw->id, "h-", 2) && strstr(hw->document, "topt-hw/1"),
       "one of them");
    ok(!shipped_find(&shipped, "none"), "not of another name");
    shipped_fini(&shipped);
    struct jobs *j = create_jobs(100000);
    ok(answered(j, p), "a search is answered");
    ok(answered(j, p), "and another one");
    struct job *slow = search(j, p, "{\"fake_ms\":60000}");
    struct job_status st = {0};
    for (int i = 0; i < 200 && !st.progress.best[0]; i++)
        job_wait(slow, 50, &st);
    ok(strstr(st.progress.phase, "8 GPUs") && strstr(st.progress.best, "point"),
       "a long one says how far it is: %s, %s", st.progress.phase, st.progress.best);
    job_keep(slow);
    job_release(slow);
    job_wait(slow, 10000, &st);
    is_int(st.state, JOB_CANCELED, "given up, it ends");
    job_drop(slow);
    is_int(pool_lost(p), 0, "its process stays");
    ok(answered(j, p), "for the next one");
    finish(j, p);
}

static void test_crash(void)
{
    struct pool *p = create_pool(0);
    struct jobs *j = create_jobs(100000);
    struct job_status st;
    for (int i = 0; i < 4; i++) {
        struct job *job = search(j, p, "{\"fake_signal\":6}");
        job_wait(job, 60000, &st);
        ok(st.state == JOB_FAILED && st.err.code == TOPT_ERR_INTERNAL &&
               strstr(st.err.text, "the search's process ended by signal 6"),
           "%s", st.err.text);
        job_release(job);
    }
    is_int(pool_lost(p), 4, "each cost a process");
    ok(answered(j, p), "and no other search");
    finish(j, p);
}

static void test_memory(void)
{
#if defined TOPT_TEST_ADDRESS_SANITIZER || defined TOPT_TEST_THREAD_SANITIZER
    printf("# no limits where a sanitizer reserves address space\n");
#else
    struct pool *p = create_pool((int64_t)256 << 20);
    struct jobs *j = create_jobs(100000);
    struct job_status st;
    struct job *job = search(j, p, "{\"fake_eat\":true}");
    job_wait(job, 60000, &st);
    ok(st.state == JOB_FAILED && st.err.code == TOPT_ERR_NOMEM &&
           strstr(st.err.text, "needed more memory than the 256.0 MiB this server gives"),
       "%s", st.err.text);
    job_release(job);
    ok(answered(j, p), "the next one has a process");
    finish(j, p);
#endif
}

static void test_limit(void)
{
    struct pool *p = create_pool(0);
    struct jobs *j = create_jobs(1000);
    struct job_status st;
    struct job *job = search(j, p, "{\"fake_ms\":60000,\"fake_bytes\":9}");
    job_wait(job, 60000, &st);
    const struct search *s = job_data(job);
    ok(st.state == JOB_DONE && strstr(s->found.doc, "\"stopped\":true"),
       "near the limit it answers with the best so far");
    job_release(job);
    job = search(j, p, "{\"fake_ms\":60000,\"fake_stubborn\":true}");
    job_wait(job, 60000, &st);
    ok(st.state == JOB_FAILED && strstr(st.err.text, "passed the limit") &&
           st.elapsed_ms < 20000,
       "what doesn't is killed at the limit: %s", st.err.text);
    job_release(job);
    ok(answered(j, p), "and the next one has a process");
    finish(j, p);
}

static void test_stubborn(void)
{
    struct pool *p = create_pool(0);
    struct jobs *j = create_jobs(100000);
    struct job_status st = {0};
    struct job *job = search(j, p, "{\"fake_ms\":60000,\"fake_stubborn\":true}");
    for (int i = 0; i < 200 && st.state != JOB_RUNNING; i++)
        job_wait(job, 10, &st);
    job_keep(job);
    job_release(job);
    job_wait(job, 20000, &st);
    is_int(st.state, JOB_CANCELED, "what doesn't end when it is given up is killed");
    job_drop(job);
    is_int(pool_lost(p), 1, "and counted");
    job = search(j, p, "{\"fake_ms\":60000,\"fake_stubborn\":true}");
    for (int i = 0; i < 200 && st.state != JOB_RUNNING; i++)
        job_wait(job, 10, &st);
    job_release(job);
    finish(j, p); /* at once */
}

static void test_no_program(void)
{
    const char *real = worker;
    struct shipped shipped;
    struct topt_error err = {0};
    worker = "/nonexistent/worker";
    struct pool *p = create_pool(0);
    ok(shipped_load(p, &shipped, &err) < 0 && strstr(err.text, "can't start"), "%s",
       err.text);
    pool_destroy(p);
    worker = "/bin/true";
    p = create_pool(0);
    ok(shipped_load(p, &shipped, &err) < 0, "a program that is no worker: %s", err.text);
    pool_destroy(p);
    worker = real;
}

/* ---- reading ----------------------------------------------------------------------- */

static struct pool *reading_pool;

static int run_reading(void *ctx, const struct job_run *r, void *data,
                       struct topt_error *err)
{
    (void)ctx;
    return operation_run(reading_pool, r, data, err);
}

static const struct job_kind reading_kind = {run_reading, operation_trim,
                                             operation_destroy};

/* Its job, which has ended. */
static struct job *run_it(struct jobs *j, struct operation *o, const char *body)
{
    struct job *job = NULL;
    struct topt_error err;
    struct job_status st;
    int shared;
    o->body = body ? strdup(body) : NULL;
    o->body_len = body ? strlen(body) : 0;
    struct jobs_work work = {.key = strdup("r"),
                             .data = o,
                             .kind = &reading_kind,
                             .uid = 1,
                             .lane = LANE_SUBMIT};
    if (jobs_submit(j, &work, &job, &shared, &err) == JOBS_TAKEN)
        job_wait(job, 60000, &st);
    return job;
}

static void test_question(struct jobs *j)
{
    struct job_status st;
    struct operation *o = operation_create(OPERATION_READ);
    o->is_question = 1;
    struct job *job = run_it(
        j, o,
        "{\"mode\":\"mini-time\",\"gpus\":4,\"batch\":8,\"min_efficiency\":0.1,"
        "\"tensor_parallel\":true,\"memory\":\"16GiB\",\"name\":\"x\","
        "\"model\":{\"b\":1,\"a\":2,\"name\":\"tiny\",\"format\":\"topt-model/1\"}}");
    const struct topt_query *q = &o->query;
    ok(q->kind == TOPT_QUERY_PLAN && q->ngpus == 1 && q->gpus[0] == 4 && q->batch == 8 &&
           q->min_efficiency == 0.1 && q->tensor_parallel && q->wait_ms == -1 &&
           q->memory_bytes == (int64_t)16 << 30 && !q->max_gpus,
       "a question's fields");
    ok(o->model_id && !strncmp(o->model_id, "m-", 2) && !strcmp(o->model_name, "tiny") &&
           !strncmp(o->model, "{\"a\":2,\"b\":1", 12),
       "its model: %s %s", o->model_id, o->model);
    ok(!o->body, "what was sent is gone");
    job_release(job);

    o = operation_create(OPERATION_READ);
    o->is_question = 1;
    job = run_it(j, o,
                 "{\"mode\":\"profiling\",\"gpus\":[1,2,4],\"min_efficiency\":0.5,"
                 "\"model_id\":\"m\"}");
    ok(o->query.kind == TOPT_QUERY_CURVE && o->query.ngpus == 3 &&
           o->query.min_efficiency == 0.5 && !strcmp(o->query.model_id, "m") && !o->model,
       "a curve that is asked for as a plan");
    job_release(job);

    o = operation_create(OPERATION_READ);
    o->is_question = 1;
    job = run_it(j, o, "{\"colour\":1}");
    job_status(job, &st);
    ok(st.state == JOB_FAILED && st.err.code == TOPT_ERR_INVAL &&
           !strcmp(o->source, "colour"),
       "a field at fault: %s", st.err.text);
    job_release(job);

    o = operation_create(OPERATION_CHECK);
    strcpy(o->query.mode, "maxi");
    o->query.wait_ms = -1;
    job = run_it(j, o, NULL);
    job_status(job, &st);
    ok(st.state == JOB_FAILED && !strcmp(o->source, "mode"), "a word that is none: %s",
       st.err.text);
    job_release(job);

    o = operation_create(OPERATION_CHECK);
    strcpy(o->query.mode, "mini-time");
    strcpy(o->query.train, "\xff");
    job = run_it(j, o, NULL);
    job_status(job, &st);
    ok(st.state == JOB_FAILED && !strcmp(o->source, "train"),
       "a word that is no UTF-8: %s", st.err.text);
    job_release(job);
}

static void test_readings(void)
{
    struct pool *p = create_pool(0);
    struct jobs *j = create_jobs(100000);
    struct job_status st;
    reading_pool = p;
    test_question(j);
    struct operation *o = operation_create(OPERATION_READ);
    o->wants_facts = 1;
    o->name = strdup("x/config.json");
    struct job *job = run_it(j, o, "{}");
    ok(o->facts.parameters == 42 && !strcmp(o->model_name, "x"),
       "a model with its facts: %s", o->model_name);
    job_release(job);
    o = operation_create(OPERATION_PROFILE);
    job = run_it(j, o, "{\"name\":\"lab\",\"format\":\"topt-hw/1\"}");
    ok(!strncmp(o->hw_id, "h-", 2) && !strcmp(o->name, "lab") &&
           !strcmp(o->hw, "{\"format\":\"topt-hw/1\",\"name\":\"lab\"}"),
       "a profile in its normal form: %s", o->hw);
    job_release(job);
    o = operation_create(OPERATION_PROFILE);
    job = run_it(j, o, "{\"name\":\"a/b\",\"format\":\"topt-hw/1\"}");
    job_status(job, &st);
    ok(st.state == JOB_FAILED && !strcmp(o->source, "name"), "one without a name: %s",
       st.err.text);
    job_release(job);
    finish(j, p);
}

/* ---- the daemon is gone ------------------------------------------------------------ */

/* A daemon with a search that hears nothing; it writes a byte when that runs. */
static void be_daemon(int fd)
{
    struct pool *p = create_pool(0);
    struct jobs *j = create_jobs(100000);
    struct job *job = search(j, p, "{\"fake_ms\":60000,\"fake_stubborn\":true}");
    struct job_status st = {0};
    while (!st.progress.phase[0])
        job_wait(job, 10, &st);
    (void)!write(fd, "x", 1);
    for (;;)
        pause();
}

static void test_daemon_gone(void)
{
    int fd[2], status, ended = 0;
    char byte;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that we can wait for its worker */
    fflush(stdout);
    if (pipe(fd) < 0)
        return;
    pid_t daemon = fork(); /* there are no threads here */
    if (daemon == 0) {
        int out = dup(fd[1]);
        close(fd[0]);
        if (!freopen("/dev/null", "w", stdout))
            _exit(1);
        be_daemon(out);
    }
    close(fd[1]);
    ok(read(fd[0], &byte, 1) == 1, "a daemon's worker searches");
    kill(daemon, SIGKILL);
    waitpid(daemon, &status, 0);
    for (int i = 0; i < 500 && !ended; i++) {
        ended = waitpid(-1, &status, WNOHANG) > 0;
        poll(NULL, 0, 10);
    }
    ok(ended, "it ends when the daemon is killed");
    close(fd[0]);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        skip_all("no worker was given");
    worker = argv[1];
    test_daemon_gone();
    test_answers();
    test_crash();
    test_memory();
    test_limit();
    test_stubborn();
    test_no_program();
    test_readings();
    return done_testing();
}
