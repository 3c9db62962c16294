/* jobs_test.c - one search for all who ask the same, a bounded queue, cancellation, tasks. */
#include "jobs.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static atomic_int runs, destroyed;
static atomic_bool gate; /* searches named "gate..." wait for it */

static void rest(void)
{
    const struct timespec ts = {.tv_nsec = 1000000};
    nanosleep(&ts, NULL);
}

static int run(void *ctx, void *data, const atomic_bool *cancel, struct topt_error *err)
{
    (void)ctx;
    atomic_fetch_add(&runs, 1);
    if (!strcmp(data, "fail"))
        return topt_fail(err, TOPT_ERR_INVAL, "it fails");
    while (!strncmp(data, "gate", 4) && !atomic_load(&gate)) {
        if (atomic_load(cancel))
            return topt_fail(err, TOPT_ERR_CANCELED, "canceled");
        rest();
    }
    return 0;
}

static void destroy(void *data)
{
    atomic_fetch_add(&destroyed, 1);
    free(data);
}

static struct jobs *create(int workers, int queue, int64_t limit_ms)
{
    struct jobs *j = NULL;
    const struct jobs_config config = {.workers = workers,
                                       .queue = queue,
                                       .limit_ms = limit_ms,
                                       .max_tasks = 4,
                                       .task_keep_ms = 1000000,
                                       .run = run,
                                       .destroy = destroy};
    struct topt_error err = {0};
    ok(jobs_create(&config, &j, &err) == 0, "%d workers", workers);
    atomic_store(&gate, false);
    atomic_store(&runs, 0);
    return j;
}

static void finish(struct jobs *j)
{
    jobs_stop(j);
    is_int(jobs_join(j, 5000), 0, "workers end");
    jobs_destroy(j);
}

static struct job *submit(struct jobs *j, const char *key, int *shared,
                          enum topt_err *code)
{
    struct topt_error err = {0};
    struct job *job = NULL;
    struct jobs_work work = {strdup(key), strdup(key), 0};
    *shared = 0;
    int rc = jobs_submit(j, &work, &job, shared, &err);
    if (code)
        *code = err.code;
    return rc ? NULL : job;
}

static enum job_state state(struct job *job, int64_t wait_ms)
{
    struct job_status st;
    job_wait(job, wait_ms, &st);
    return st.state;
}

static void wait_running(struct jobs *j, int n)
{
    struct jobs_counts c = {0};
    for (int i = 0; i < 5000 && c.running < n; i++) {
        jobs_count(j, &c);
        rest();
    }
}

static void test_shared(void)
{
    struct jobs *j = create(2, 8, 100000);
    int shared, joined = 0;
    struct job *job[5];
    for (int i = 0; i < 5; i++) {
        job[i] = submit(j, "gate", &shared, NULL);
        joined += shared;
    }
    is_int(joined, 4, "four of five join the first");
    is_int(state(job[0], 5), job_state_name(JOB_RUNNING) ? JOB_RUNNING : 0, "it runs");
    atomic_store(&gate, true);
    for (int i = 0; i < 5; i++) {
        is_int(state(job[i], 5000), JOB_DONE, "waiter %d has it", i);
        job_release(job[i]);
    }
    is_int(atomic_load(&runs), 1, "one search was made");
    struct job *again = submit(j, "gate", &shared, NULL);
    is_int(state(again, 5000), JOB_DONE, "asked again later");
    is_int(atomic_load(&runs), 2, "it is searched again");
    job_release(again);
    finish(j);
}

static void test_queue(void)
{
    struct jobs *j = create(1, 2, 100000);
    int shared;
    enum topt_err code;
    struct job *a = submit(j, "gate-a", &shared, NULL);
    wait_running(j, 1);
    struct job *b = submit(j, "gate-b", &shared, NULL);
    struct job *c = submit(j, "gate-c", &shared, NULL);
    ok(!submit(j, "gate-d", &shared, &code) && code == TOPT_ERR_LIMIT,
       "the queue is full");
    struct job *same = submit(j, "gate-c", &shared, NULL);
    ok(same && shared, "but a queued one can be joined");
    struct job_status st;
    job_wait(c, 0, &st);
    is_int(st.ahead, 1, "one is ahead of it");
    job_release(b);
    job_release(c);
    struct job *d = submit(j, "gate-d", &shared, NULL);
    ok(d != NULL, "who gives up makes room");
    atomic_store(&gate, true);
    is_int(state(same, 5000), JOB_DONE, "the shared one ran for who stayed");
    is_int(state(d, 5000), JOB_DONE, "and the new one");
    is_int(atomic_load(&runs), 3, "the one given up did not");
    job_release(a);
    job_release(d);
    job_release(same);
    finish(j);
}

static void test_cancel(void)
{
    struct jobs *j = create(1, 2, 100000);
    struct topt_error err = {0};
    int shared, canceled;
    char one[24], two[24];
    struct job *a = submit(j, "gate", &shared, NULL),
               *b = submit(j, "gate", &shared, NULL);
    wait_running(j, 1);
    is_int(job_to_task(a, one, &err), 0, "a task: %s", one);
    is_int(job_to_task(b, two, &err), 0, "another of the same search");
    is_int(task_cancel(j, one), 0, "one gives up");
    struct job *job = task_find(j, one, &canceled);
    ok(job && canceled, "its task says so");
    is_int(state(job, 20), JOB_RUNNING, "the search goes on for the other");
    is_int(task_cancel(j, one), 0, "giving up twice counts once");
    is_int(state(job, 20), JOB_RUNNING, "it still goes on");
    is_int(task_cancel(j, two), 0, "the other gives up");
    is_int(state(job, 5000), JOB_CANCELED, "then it ends");
    task_release(job);
    is_int(task_cancel(j, "t-0"), -1, "no such task");
    struct job *failing = submit(j, "fail", &shared, NULL);
    is_int(state(failing, 5000), JOB_FAILED, "a failure is one");
    job_release(failing);
    finish(j);
}

static void test_limit(void)
{
    struct jobs *j = create(1, 2, 20);
    struct job_status st;
    int shared;
    struct job *a = submit(j, "gate", &shared, NULL);
    for (int i = 0; i < 500 && state(a, 10) < JOB_DONE; i++)
        jobs_tick(j);
    job_wait(a, 0, &st);
    ok(st.state == JOB_FAILED && strstr(st.err.text, "passed the limit"), "the limit: %s",
       st.err.text);
    job_release(a);
    finish(j);
}

static void test_task_table(void)
{
    struct jobs *j = create(1, 8, 100000);
    struct topt_error err = {0};
    char id[24], first[24];
    int shared, canceled, kept = 0;
    for (int i = 0; i < 6; i++) {
        struct job *job = submit(j, "quick", &shared, NULL);
        state(job, 5000);
        kept += job_to_task(job, i ? id : first, &err) == 0;
    }
    is_int(kept, 6, "old tasks make room");
    ok(!task_find(j, first, &canceled), "the first is forgotten");
    struct job *job = task_find(j, id, &canceled);
    ok(job && state(job, 0) == JOB_DONE, "the last is known");
    task_release(job);
    finish(j);
}

static void *late(void *arg)
{
    struct job_status st;
    job_wait(arg, 60000, &st);
    return st.state == JOB_CANCELED ? arg : NULL;
}

static void test_stop(void)
{
    struct jobs *j = create(1, 2, 100000);
    int shared;
    enum topt_err code;
    pthread_t thread;
    void *woken;
    struct job *a = submit(j, "gate-a", &shared, NULL),
               *b = submit(j, "gate-b", &shared, NULL);
    wait_running(j, 1);
    pthread_create(&thread, NULL, late, a);
    jobs_stop(j);
    pthread_join(thread, &woken);
    ok(woken == a, "a waiter is told at once");
    is_int(state(b, 0), JOB_CANCELED, "the queued one never starts");
    ok(!submit(j, "c", &shared, &code) && code == TOPT_ERR_CANCELED,
       "nothing new is taken");
    job_release(a);
    job_release(b);
    finish(j);
}

/* Many threads, few keys. */
static void *hammer(void *arg)
{
    static const char *const keys[] = {"a", "b", "fail"};
    struct jobs *j = arg;
    for (int i = 0; i < 200; i++) {
        int shared;
        struct topt_error err;
        char id[24];
        struct job *job = submit(j, keys[i % 3], &shared, NULL);
        if (!job)
            continue;
        if (i % 7 == 0 && job_to_task(job, id, &err) == 0) {
            task_cancel(j, id);
            continue;
        }
        state(job, i % 5 ? 1000 : 0);
        job_release(job);
    }
    return NULL;
}

static void test_hammer(void)
{
    struct jobs *j = create(3, 4, 100000);
    pthread_t thread[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&thread[i], NULL, hammer, j);
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
    struct jobs_counts c = {1, 1, 1};
    for (int i = 0; i < 5000 && (c.queued || c.running); i++) {
        jobs_count(j, &c);
        rest();
    }
    ok(!c.queued && !c.running, "nothing is left over");
    finish(j);
}

int main(void)
{
    test_shared();
    test_queue();
    test_cancel();
    test_limit();
    test_task_table();
    test_stop();
    test_hammer();
    ok(atomic_load(&destroyed) > 0, "work was freed");
    return done_testing();
}
