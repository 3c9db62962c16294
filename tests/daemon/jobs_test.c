/* jobs_test.c - one job for all who ask the same, two lanes, quotas, orders, notices, tasks. */
#include "sizes.h"
#include "tap.h"
#include "task_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

static atomic_int runs, destroyed, trimmed;
static atomic_int ran_on; /* the slot of the last one */
static atomic_bool gate;  /* jobs named "gate..." wait for it */
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static char order[4096]; /* keys in the order in which they began */

static void rest(void)
{
    const struct timespec ts = {.tv_nsec = 1000000};
    nanosleep(&ts, NULL);
}

static void note(const char *key)
{
    pthread_mutex_lock(&order_lock);
    size_t n = strlen(order);
    snprintf(order + n, sizeof order - n, "%s ", key);
    pthread_mutex_unlock(&order_lock);
}

static int began(const char *keys)
{
    pthread_mutex_lock(&order_lock);
    int same = !strcmp(order, keys);
    if (!same)
        printf("# began: %s\n", order);
    pthread_mutex_unlock(&order_lock);
    return same;
}

/* "fail" fails, "gate..." waits, "brief..." for the order to be brief, "deaf..." hears nothing but
 * the order to be killed. */
static int run(void *ctx, const struct job_run *r, void *data, struct topt_error *err)
{
    (void)ctx;
    const struct job_progress progress = {.phase = "waiting", .done = 1, .of = 3};
    int deaf = !strncmp(data, "deaf", 4);
    atomic_fetch_add(&runs, 1);
    note(data);
    atomic_store(&ran_on, r->slot);
    if (!strcmp(data, "fail"))
        return topt_fail(err, TOPT_ERR_INVAL, "it fails");
    if (!strncmp(data, "whole", 5) && run_orders(r) & ORDER_BRIEF)
        return topt_fail(err, TOPT_ERR_INTERNAL, "told to be brief");
    while (!strncmp(data, "brief", 5) && !(run_orders(r) & ~ORDER_STOP))
        rest();
    while ((deaf || !strncmp(data, "gate", 4)) && !atomic_load(&gate)) {
        int orders = run_orders(r);
        run_tell(r, &progress);
        if (orders & ORDER_KILL || (!deaf && orders & ORDER_CANCEL))
            return topt_fail(err, TOPT_ERR_CANCELED, "canceled");
        if (!deaf && orders & ORDER_STOP)
            return 0;
        rest();
    }
    return 0;
}

static void trim(void *data)
{
    (void)data;
    atomic_fetch_add(&trimmed, 1);
}

static void destroy(void *data)
{
    atomic_fetch_add(&destroyed, 1);
    free(data);
}

static const struct job_kind kind = {run, trim, destroy};

static struct jobs_config usual(void)
{
    return (struct jobs_config){.reserved = 1,
                                .workers = 1,
                                .lanes = {.queue = 100,
                                          .running_per_uid = 1,
                                          .queued_per_uid = 4,
                                          .submit_queue = 200,
                                          .submit_per_uid = 64,
                                          .slow_ms = 100000},
                                .limit_ms = 100000,
                                .margin_ms = 10,
                                .brief_ms = 100000,
                                .demote_ms = 100000};
}

static struct jobs *create(const struct jobs_config *config)
{
    struct jobs *j = NULL;
    struct topt_error err = {0};
    ok(jobs_create(config, &j, &err) == 0, "%d and %d slots", config->reserved,
       config->workers);
    atomic_store(&gate, false);
    atomic_store(&runs, 0);
    order[0] = '\0';
    return j;
}

static void finish(struct jobs *j)
{
    jobs_stop(j);
    is_int(jobs_join(j, 5000), 0, "slots end");
    jobs_destroy(j);
}

static enum jobs_refusal submit_to(struct jobs *j, enum job_lane lane, int64_t uid,
                                   double cost, const char *key, struct job **ret)
{
    struct topt_error err = {0};
    int shared;
    struct jobs_work work = {.key = strdup(key),
                             .data = strdup(key),
                             .kind = &kind,
                             .uid = uid,
                             .lane = lane,
                             .is_brief = strncmp(key, "whole", 5) != 0,
                             .cost = cost,
                             .problem = strncmp(key, "kin", 3) ? 0 : (uint64_t)key[3]};
    return jobs_submit(j, &work, ret, &shared, &err);
}

/* Of nobody, in the search lane. */
static struct job *submit(struct jobs *j, const char *key)
{
    struct job *job = NULL;
    return submit_to(j, LANE_SEARCH, LANES_NOBODY, 0, key, &job) == JOBS_TAKEN ? job
                                                                               : NULL;
}

static struct job *search_of(struct jobs *j, int64_t uid, const char *key)
{
    struct job *job = NULL;
    ok(submit_to(j, LANE_SEARCH, uid, 0, key, &job) == JOBS_TAKEN, "%s of %lld", key,
       (long long)uid);
    return job;
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
    for (int i = 0; i < 5000 && c.running + c.submit_running < n; i++) {
        jobs_count(j, &c);
        rest();
    }
    is_int(c.running + c.submit_running, n, "so many run");
}

static void done_and_release(struct job **job, int n)
{
    for (int i = 0; i < n; i++) {
        is_int(state(job[i], 20000), JOB_DONE, "%s", (char *)job_data(job[i]));
        job_release(job[i]);
    }
}

/* ---- one job ----------------------------------------------------------------------- */

static void test_shared(void)
{
    struct jobs_config c = usual();
    c.workers = 2;
    struct jobs *j = create(&c);
    struct job *job[5];
    int trims = atomic_load(&trimmed);
    for (int i = 0; i < 5; i++)
        job[i] = submit(j, "gate");
    ok(job[0] == job[1] && job[1] == job[4], "four of five join the first");
    wait_running(j, 1);
    struct job_status st = {0};
    for (int i = 0; i < 5000 && !st.progress.of; i++, rest())
        job_status(job[0], &st);
    ok(st.progress.of == 3 && !strcmp(st.progress.phase, "waiting"),
       "it says how far it is");
    atomic_store(&gate, true);
    done_and_release(job, 5);
    is_int(atomic_load(&runs), 1, "it was done once");
    is_int(atomic_load(&trimmed) - trims, 1, "and trimmed");
    job[0] = submit(j, "gate");
    done_and_release(job, 1);
    is_int(atomic_load(&runs), 2, "asked later, it is done again");
    finish(j);
}

static void test_failure_and_cancel(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *a = submit(j, "fail"), *b = submit(j, "gate-b"), *d;
    struct job_status st;
    is_int(state(a, 5000), JOB_FAILED, "a failure is one");
    job_release(a);
    wait_running(j, 1);
    d = submit(j, "gate-d");
    job_status(d, &st);
    is_int(st.state, JOB_QUEUED, "the other waits");
    job_keep(d);
    job_release(d);
    is_int(state(d, 0), JOB_CANCELED, "until nobody wants it");
    is_int(job_rejoin(d), -1, "who then can't be wanted again");
    job_drop(d);
    job_keep(b);
    job_release(b);
    is_int(state(b, 5000), JOB_CANCELED, "one that runs is told to end");
    job_drop(b);
    finish(j);
}

static void test_stop_and_limit(void)
{
    struct jobs_config c = usual();
    c.limit_ms = 60;
    c.margin_ms = 40;
    struct jobs *j = create(&c);
    struct job *good = submit(j, "gate"), *deaf;
    struct job_status st;
    is_int(state(good, 20000), JOB_DONE, "told to stop, it answers with what it has");
    deaf = submit(j, "deaf");
    job_wait(deaf, 20000, &st);
    ok(st.state == JOB_FAILED && strstr(st.err.text, "passed the limit"), "the limit: %s",
       st.err.text);
    job_release(good);
    job_release(deaf);
    finish(j);
}

static void *late(void *arg)
{
    struct job_status st;
    job_wait(arg, 60000, &st);
    return st.state == JOB_CANCELED ? arg : NULL;
}

static void test_stopping(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    pthread_t thread;
    void *woken;
    struct job *a = submit(j, "deaf-a"), *b, *none;
    wait_running(j, 1);
    b = submit(j, "gate-b");
    pthread_create(&thread, NULL, late, a);
    jobs_stop(j);
    pthread_join(thread, &woken);
    ok(woken == a, "who waits is told at once");
    is_int(state(b, 0), JOB_CANCELED, "the one that waited never starts");
    is_int(submit_to(j, LANE_SEARCH, 1, 0, "c", &none), JOBS_STOPPING,
           "nothing new is taken");
    job_release(a);
    job_release(b);
    finish(j);
}

/* ---- lanes ------------------------------------------------------------------------- */

static void test_reserved(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *busy = submit(j, "gate"), *waits = submit(j, "x"), *quick;
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 7, 0, "quick", &quick) == JOBS_TAKEN,
       "a short question");
    is_int(state(quick, 5000), JOB_DONE, "is done beside a search");
    is_int(state(waits, 0), JOB_QUEUED, "which others wait for");
    job_release(quick);
    atomic_store(&gate, true);
    done_and_release((struct job *[]){busy, waits}, 2);
    finish(j);
}

/* A user's many short questions do not hold another's search: the last slot takes that first. */
static void test_search_in_a_flood(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *busy[2], *job[4];
    busy[0] = submit(j, "gate-0");
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 1, 0, "gate-1", &busy[1]) == JOBS_TAKEN, "both work");
    wait_running(j, 2);
    static const char *const keys[] = {"q1", "q2", "q3"};
    for (int i = 0; i < 3; i++)
        ok(submit_to(j, LANE_SUBMIT, 1, 0, keys[i], &job[i]) == JOBS_TAKEN, "%s waits",
           keys[i]);
    job[3] = search_of(j, 2, "s");
    job_release(busy[0]);
    done_and_release(job, 4);
    ok(began("gate-0 gate-1 s q1 q2 q3 "), "the search is next");
    atomic_store(&gate, true);
    done_and_release(&busy[1], 1);
    finish(j);
}

/* A short question that takes half of its time is told to leave out what is beside the answer. */
static void test_brief_when_long(void)
{
    struct jobs_config c = usual();
    c.demote_ms = 2000;
    struct jobs *j = create(&c);
    struct job *search = search_of(j, 1, "gate-search"), *job;
    struct job_status st;
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 2, 0, "brief", &job) == JOBS_TAKEN, "it runs");
    is_int(state(job, 60000), JOB_DONE, "and is told to be brief");
    job_status(job, &st);
    ok(st.lane == LANE_SUBMIT && st.elapsed_ms >= 1000,
       "at half of its time, not before");
    is_int(state(search, 0), JOB_RUNNING, "a search goes on");
    atomic_store(&gate, true);
    job_release(job);
    done_and_release(&search, 1);
    finish(j);
}

/* So is one that waited. */
static void test_brief_when_late(void)
{
    struct jobs_config c = usual();
    c.brief_ms = 20;
    struct jobs *j = create(&c);
    struct job *busy[2], *job, *whole;
    busy[0] = submit(j, "gate-0");
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 1, 0, "gate-1", &busy[1]) == JOBS_TAKEN, "both work");
    wait_running(j, 2);
    ok(submit_to(j, LANE_SUBMIT, 2, 0, "brief", &job) == JOBS_TAKEN, "one waits");
    ok(submit_to(j, LANE_SUBMIT, 3, 0, "whole", &whole) == JOBS_TAKEN,
       "and one that wants all");
    is_int(state(job, 30), JOB_QUEUED, "for a while");
    job_release(busy[1]);
    is_int(state(job, 60000), JOB_DONE, "and is told to be brief as it begins");
    is_int(state(whole, 60000), JOB_DONE, "not the one that wants all");
    job_release(whole);
    atomic_store(&gate, true);
    job_release(job);
    done_and_release(busy, 1);
    finish(j);
}

static void test_submit_turns(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *busy[2], *job[6], *over;
    char key[16];
    int taken = 0;
    busy[0] = submit(j, "gate-0");
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 9, 0, "gate-1", &busy[1]) == JOBS_TAKEN,
       "all slots work");
    wait_running(j, 2);
    static const char *const keys[] = {"a1", "a2", "a3", "b1", "b2", "c1"};
    for (int i = 0; i < 6; i++)
        ok(submit_to(j, LANE_SUBMIT, keys[i][0], 0, keys[i], &job[i]) == JOBS_TAKEN,
           "%s waits", keys[i]);
    struct job_status st;
    job_status(job[4], &st);
    is_int(st.ahead, 4, "four are ahead of b2");
    struct job *many[64];
    for (int i = 0; i < 64; i++) {
        snprintf(key, sizeof key, "z%d", i);
        taken += submit_to(j, LANE_SUBMIT, 'z', 0, key, &many[i]) == JOBS_TAKEN;
    }
    is_int(taken, 64, "64 of one user wait");
    is_int(submit_to(j, LANE_SUBMIT, 'z', 0, "z", &over), JOBS_QUOTA, "no more");
    for (int i = 0; i < taken; i++)
        job_release(many[i]);
    job_release(busy[1]); /* the reserved slot does them one after the other */
    done_and_release(job, 6);
    ok(began("gate-0 gate-1 a1 b1 c1 a2 b2 a3 "), "users take turns");
    atomic_store(&gate, true);
    done_and_release(busy, 1);
    finish(j);
}

static void test_fairness(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *job[8];
    job[0] = search_of(j, 1, "gate-1a");
    wait_running(j, 1);
    job[1] = search_of(j, 1, "1b");
    job[2] = search_of(j, 1, "1c");
    job[3] = search_of(j, 2, "2a");
    job[4] = search_of(j, 2, "2b");
    job[5] = search_of(j, 3, "3a");
    struct job_status st;
    job_status(job[4], &st);
    is_int(st.ahead, 3, "three are ahead of 2b");
    atomic_store(&gate, true);
    done_and_release(job, 6);
    ok(began("gate-1a 2a 3a 1b 2b 1c "), "one of each, then another of each");
    finish(j);
}

static void test_costs(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct job *job[4];
    job[0] = search_of(j, 1, "gate");
    wait_running(j, 1);
    ok(submit_to(j, LANE_SEARCH, 2, 50, "dear", &job[1]) == JOBS_TAKEN, "dear");
    ok(submit_to(j, LANE_SEARCH, 2, 1, "cheap", &job[2]) == JOBS_TAKEN, "cheap");
    ok(submit_to(j, LANE_SEARCH, 2, 0.001, "cheaper", &job[3]) == JOBS_TAKEN, "cheaper");
    atomic_store(&gate, true);
    done_and_release(job, 4);
    ok(began("gate cheaper cheap dear "), "the cheapest of a user first");
    finish(j);
}

static void test_quotas(void)
{
    struct jobs_config c = usual();
    c.workers = 3;
    c.lanes.queue = 6;
    struct jobs *j = create(&c);
    struct job *a[5], *same, *over = NULL, *b[5];
    static const char *const keys[] = {"gate-a", "a1", "a2", "a3", "a4"};
    a[0] = search_of(j, 1, keys[0]);
    wait_running(j, 1);
    for (int i = 1; i < 5; i++)
        a[i] = search_of(j, 1, keys[i]);
    is_int(submit_to(j, LANE_SEARCH, 1, 0, "a5", &over), JOBS_QUOTA,
           "one runs, four wait");
    wait_running(j, 1);
    is_int(state(a[1], 20), JOB_QUEUED, "though a slot is free");
    same = search_of(j, 1, "a4");
    ok(same == a[4], "joining counts for nothing");
    static const char *const others[] = {"gate-b", "b1", "b2", "b3", "b4"};
    b[0] = search_of(j, 2, others[0]);
    wait_running(j, 2);
    for (int i = 1; i < 4; i++)
        b[i] = search_of(j, 2, others[i]);
    is_int(submit_to(j, LANE_SEARCH, 2, 0, "b4", &over), JOBS_FULL,
           "all together have too many");
    atomic_store(&gate, true);
    job_release(same);
    done_and_release(a, 5);
    done_and_release(b, 4);
    finish(j);
}

static void test_demotion(void)
{
    struct jobs_config c = usual();
    c.demote_ms = 40;
    struct jobs *j = create(&c);
    struct job *busy = search_of(j, 1, "gate-busy"), *slow, *next;
    struct job_status st = {0};
    wait_running(j, 1);
    ok(submit_to(j, LANE_SUBMIT, 2, 0, "gate-slow", &slow) == JOBS_TAKEN,
       "it seems short");
    for (int i = 0; i < 5000 && st.lane != LANE_SEARCH; i++, rest())
        job_status(slow, &st);
    ok(st.lane == LANE_SEARCH && st.state == JOB_QUEUED,
       "it is not, and waits as a search");
    ok(submit_to(j, LANE_SUBMIT, 3, 0, "quick", &next) == JOBS_TAKEN, "the next one");
    is_int(state(next, 5000), JOB_DONE, "has its slot");
    job_release(next);
    atomic_store(&gate, true);
    done_and_release((struct job *[]){busy, slow}, 2);
    finish(j);
}

/* On a slot for both lanes it stays, and counts for its user. */
static void test_demotion_in_place(void)
{
    struct jobs_config c = usual();
    c.demote_ms = 40;
    struct jobs *j = create(&c);
    struct job *job[3];
    struct job_status st = {0};
    ok(submit_to(j, LANE_SUBMIT, 2, 0, "gate-1", &job[0]) == JOBS_TAKEN &&
           submit_to(j, LANE_SUBMIT, 2, 0, "gate-2", &job[1]) == JOBS_TAKEN,
       "two at a time");
    for (int i = 0; i < 5000 && !(st.lane == LANE_SEARCH && st.state == JOB_RUNNING);
         i++) {
        job_status(job[i % 2], &st);
        rest();
    }
    is_int(st.state, JOB_RUNNING, "one goes on as a search");
    int waiting = 0;
    for (int i = 0; i < 5000 && !waiting; i++, rest())
        for (int k = 0; k < 2; k++) {
            job_status(job[k], &st);
            waiting |= st.state == JOB_QUEUED && st.lane == LANE_SEARCH;
        }
    ok(waiting, "the other one waits for it");
    atomic_store(&gate, true);
    done_and_release(job, 2);
    finish(j);
}

/* ---- notices ----------------------------------------------------------------------- */

static atomic_int calls;

static void count_call(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static int calls_of(const atomic_int *n, int want)
{
    for (int i = 0; i < 5000 && atomic_load(n) < want; i++)
        rest();
    return atomic_load(n);
}

static void test_notices(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct topt_error err;
    atomic_int end = 0, soon = 0, gone = 0, after = 0;
    struct job *job = submit(j, "gate");
    wait_running(j, 1);
    is_int(job_try_notify(job, 60000, count_call, &end, &err), 0, "at the end");
    is_int(job_try_notify(job, 5, count_call, &soon, &err), 0, "soon");
    is_int(job_try_notify(job, 60000, count_call, &gone, &err), 0,
           "one that is withdrawn");
    is_int(calls_of(&soon, 1), 1, "the time came");
    is_int(job_withdraw(job, &soon), 0, "then it can't be withdrawn");
    is_int(job_withdraw(job, &gone), 1, "withdrawn");
    is_int(job_withdraw(job, &gone), 0, "once");
    is_int(atomic_load(&end), 0, "not yet");
    atomic_store(&gate, true);
    is_int(calls_of(&end, 1), 1, "told at the end");
    is_int(job_try_notify(job, 60000, count_call, &after, &err), 0,
           "of one that has ended");
    is_int(calls_of(&after, 1), 1, "told at once");
    rest();
    ok(atomic_load(&end) == 1 && atomic_load(&soon) == 1 && !atomic_load(&gone) &&
           atomic_load(&after) == 1,
       "each once, or not at all");
    job_release(job);
    finish(j);
}

/* A waiter that keeps its job until it is called, or has withdrawn. */
struct waiter {
    struct job *job;
    atomic_int called;
};

static void on_call(void *ctx)
{
    struct waiter *w = ctx;
    atomic_fetch_add(&calls, 1);
    atomic_fetch_add(&w->called, 1);
}

static void *withdraw_many(void *arg)
{
    struct jobs *j = arg;
    int n = TOPT_TEST_SIZE(400), wrong = 0;
    for (int i = 0; i < n; i++) {
        char key[16];
        struct waiter w = {0};
        snprintf(key, sizeof key, "k%d", i % 5);
        if (!(w.job = submit(j, key)))
            continue;
        job_notify(w.job, i % 3, on_call, &w);
        int withdrawn = i % 2 && job_withdraw(w.job, &w);
        if (!withdrawn)
            wrong += calls_of(&w.called, 1) != 1;
        else
            wrong += atomic_load(&w.called) != 0;
        job_release(w.job);
    }
    return wrong ? arg : NULL;
}

static void test_notices_race(void)
{
    struct jobs_config c = usual();
    c.workers = 3;
    struct jobs *j = create(&c);
    pthread_t thread[4];
    int wrong = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, withdraw_many, j);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        wrong += bad != NULL;
    }
    is_int(wrong, 0, "each is called once, or withdrawn");
    finish(j);
}

/* ---- tasks ------------------------------------------------------------------------- */

static struct tasks *create_tasks(int max, int per_uid, int64_t unpolled_ms)
{
    struct tasks *t = NULL;
    struct topt_error err;
    const struct tasks_config config = {
        .max = max, .per_uid = per_uid, .keep_ms = 1000000, .unpolled_ms = unpolled_ms};
    is_int(tasks_create(&config, &t, &err), 0, "tasks");
    return t;
}

static void finish_both(struct jobs *j, struct tasks *t)
{
    jobs_stop(j);
    is_int(jobs_join(j, 5000), 0, "slots end");
    tasks_destroy(t);
    jobs_destroy(j);
}

static void test_tasks(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct tasks *t = create_tasks(100, 10, 1000000);
    struct topt_error err = {0};
    int canceled;
    char one[24], two[24];
    struct job *a = search_of(j, 1, "gate"), *b = search_of(j, 2, "gate");
    wait_running(j, 1);
    is_int(task_add(t, a, 1, one, &err), JOBS_TAKEN, "a task: %s", one);
    is_int(task_add(t, b, 2, two, &err), JOBS_TAKEN, "another user's of the same");
    ok(!task_find(t, 2, one, 0, &canceled) && task_cancel(t, 2, one) == -1,
       "a user doesn't see another's");
    int n;
    struct task_line *lines = tasks_list(t, 2, &n);
    ok(n == 1 && !strcmp(lines[0].id, two) && lines[0].uid == 2, "a user's list has his");
    free(lines);
    lines = tasks_list(t, TASKS_ADMIN, &n);
    ok(n == 2 && lines[0].elapsed_ms >= lines[1].elapsed_ms,
       "an admin's has both, the older first");
    free(lines);
    ok(!tasks_list(t, 3, &n) && n == 0, "who has none has an empty one");
    struct job *job = task_find(t, TASKS_ADMIN, one, 0, &canceled);
    ok(job && !canceled, "the administrator does");
    task_release(job);
    is_int(task_cancel(t, 1, one), 0, "one gives up");
    job = task_find(t, 1, one, 0, &canceled);
    ok(job && canceled, "its task says so");
    is_int(state(job, 20), JOB_RUNNING, "the search goes on for the other");
    is_int(task_cancel(t, 1, one), 0, "giving up twice counts once");
    is_int(state(job, 20), JOB_RUNNING, "it still goes on");
    is_int(task_cancel(t, 2, two), 0, "the other gives up");
    is_int(state(job, 5000), JOB_CANCELED, "then it ends");
    task_release(job);
    is_int(task_cancel(t, 1, "t-0"), -1, "no such task");
    finish_both(j, t);
}

static void test_task_table(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct tasks *t = create_tasks(5, 3, 1000000);
    struct topt_error err = {0};
    char id[24], first[24], others[24];
    int canceled, kept = 0;
    struct job *job = search_of(j, 2, "quick");
    state(job, 5000);
    is_int(task_add(t, job, 2, others, &err), JOBS_TAKEN, "another user's");
    for (int i = 0; i < 6; i++) {
        job = search_of(j, 1, "quick");
        state(job, 5000);
        kept += task_add(t, job, 1, i ? id : first, &err) == JOBS_TAKEN;
        struct job *seen = task_find(t, 1, i ? id : first, 0, &canceled);
        for (int k = 0; k < 200; k++) /* until its task has heard of the end */
            rest();
        task_release(seen);
    }
    is_int(kept, 6, "old tasks make room");
    is_int(tasks_count(t), 4, "three of one user, one of the other");
    ok(!task_find(t, 1, first, 0, &canceled), "the first is forgotten");
    job = task_find(t, 1, id, 0, &canceled);
    ok(job && state(job, 0) == JOB_DONE, "the last is known");
    task_release(job);
    job = task_find(t, 2, others, 0, &canceled);
    ok(job != NULL, "another user's stays");
    task_release(job);
    job = search_of(j, 1, "gate");
    enum jobs_refusal rc = JOBS_TAKEN;
    for (int i = 0; i < 4 && rc == JOBS_TAKEN; i++) {
        struct job *same = search_of(j, 1, "gate");
        rc = task_add(t, same, 1, id, &err);
        if (rc != JOBS_TAKEN)
            job_release(same);
    }
    is_int(rc, JOBS_QUOTA, "three that are not done are his most: %s", err.text);
    job_release(job);
    finish_both(j, t);
}

static void test_unpolled(void)
{
    struct jobs_config c = usual();
    struct jobs *j = create(&c);
    struct tasks *t = create_tasks(100, 10, 100);
    struct topt_error err = {0};
    int canceled;
    char one[24], two[24];
    struct job *stays = search_of(j, 3, "gate"), *job;
    is_int(task_add(t, search_of(j, 1, "gate"), 1, one, &err), JOBS_TAKEN,
           "nobody asks for it");
    is_int(task_add(t, search_of(j, 2, "gate-2"), 2, two, &err), JOBS_TAKEN,
           "nor for this");
    job = task_find(t, TASKS_ADMIN, two, 0, &canceled);
    is_int(state(job, 20000), JOB_CANCELED, "it ends");
    ok(!canceled, "but nobody canceled it");
    task_release(job);
    is_int(state(stays, 0), JOB_RUNNING, "what another one waits for goes on");
    job = task_find(t, 1, one, 30000, &canceled);
    ok(job == stays, "who asks again is in it again");
    job_keep(stays);
    job_release(stays);
    is_int(state(job, 300), JOB_RUNNING,
           "so that it goes on without the other, as long as he asks");
    atomic_store(&gate, true);
    is_int(state(job, 5000), JOB_DONE, "until it is done");
    task_release(job);
    job_drop(stays);
    finish_both(j, t);
}

/* ---- all at once ------------------------------------------------------------------- */

struct crowd {
    struct jobs *jobs;
    struct tasks *tasks;
    int64_t uid;
};

static void *hammer(void *arg)
{
    static const char *const keys[] = {"a", "b", "fail"};
    const struct crowd *x = arg;
    int n = TOPT_TEST_SIZE(1000);
    for (int i = 0; i < n; i++) {
        struct topt_error err;
        char id[24];
        int canceled;
        struct job *job;
        if (submit_to(x->jobs, i % 2 ? LANE_SEARCH : LANE_SUBMIT, x->uid, i % 5,
                      keys[i % 3], &job) != JOBS_TAKEN)
            continue;
        if (i % 7 == 0 && task_add(x->tasks, job, x->uid, id, &err) == JOBS_TAKEN) {
            struct job *again = task_find(x->tasks, x->uid, id, 0, &canceled);
            if (again)
                task_release(again);
            if (i % 2)
                task_cancel(x->tasks, x->uid, id);
            tasks_tick(x->tasks);
            continue;
        }
        if (i % 4)
            state(job, 5000);
        job_release(job);
    }
    return NULL;
}

static void test_hammer(void)
{
    struct jobs_config config = usual();
    config.workers = 2;
    config.demote_ms = 1;
    struct jobs *j = create(&config);
    struct tasks *t = create_tasks(20, 5, 2);
    pthread_t thread[6];
    struct crowd x[6];
    for (int i = 0; i < 6; i++) {
        x[i] = (struct crowd){j, t, i / 2};
        pthread_create(&thread[i], NULL, hammer, &x[i]);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
    struct jobs_counts c = {.queued = 1};
    for (int i = 0;
         i < 5000 && (c.queued || c.running || c.submit_queued || c.submit_running);
         i++) {
        jobs_count(j, &c);
        rest();
    }
    ok(!c.queued && !c.running && !c.submit_queued && !c.submit_running,
       "nothing is left over");
    ok(c.users <= 3, "at most those who were slow are remembered: %d", c.users);
    finish_both(j, t);
}

/* The slot that a job of a lane, for whose problem any is free, ran on. */
static int slot_of(struct jobs *j, enum job_lane lane, char problem, int number)
{
    struct job *job;
    struct job_status st;
    char key[40];
    snprintf(key, sizeof key, "kin%c-%d", problem, number);
    if (submit_to(j, lane, LANES_NOBODY, 0, key, &job) != JOBS_TAKEN)
        return -1;
    job_wait(job, 5000, &st);
    job_release(job);
    return atomic_load(&ran_on);
}

static void test_problems(void)
{
    struct jobs_config config = usual();
    config.reserved = config.workers = 2;
    struct jobs *j = create(&config);
    int search = slot_of(j, LANE_SEARCH, 's', 0), away = 0, lost = 0;
    char gone = 'a';
    for (int i = 1; i <= 40; i++) {
        char other = (char)('a' + i % 3);
        slot_of(j, LANE_SUBMIT, other, i);
        away += slot_of(j, LANE_SUBMIT, 's', i) != search;
    }
    is_int(away, 0, "of free slots the one that had the problem before takes it");
    for (int i = 0; i < 60; i++) /* each slot forgets it */
        slot_of(j, LANE_SEARCH, (char)(gone + i % 26), 100 + i);
    for (int i = 0; i < 4; i++)
        lost += slot_of(j, LANE_SEARCH, 's', 200 + i) < 2;
    is_int(lost, 0, "and slots for questions alone never take searches");
    away = 0;
    for (int i = 0; i < 10; i++) {
        search = slot_of(j, LANE_SUBMIT, (char)('A' + i), 300);
        away += search < 2 || slot_of(j, LANE_SEARCH, (char)('A' + i), 301) != search;
    }
    is_int(away, 0, "a problem's first question goes where its searches can follow");
    search = slot_of(j, LANE_SEARCH, 's', 400);
    struct job *busy = NULL;
    struct jobs_work work = {.key = strdup("gate-s"),
                             .data = strdup("gate-s"),
                             .kind = &kind,
                             .uid = LANES_NOBODY,
                             .lane = LANE_SEARCH,
                             .problem = 's'};
    int shared;
    ok(jobs_submit(j, &work, &busy, &shared, NULL) == JOBS_TAKEN, "its slot is busy");
    wait_running(j, 1);
    ok(atomic_load(&ran_on) == search && slot_of(j, LANE_SEARCH, 's', 401) != search,
       "another takes the next, which does not wait");
    atomic_store(&gate, true);
    done_and_release(&busy, 1);
    finish(j);
}

int main(void)
{
    test_shared();
    test_problems();
    test_failure_and_cancel();
    test_stop_and_limit();
    test_stopping();
    test_reserved();
    test_search_in_a_flood();
    test_brief_when_long();
    test_brief_when_late();
    test_submit_turns();
    test_fairness();
    test_costs();
    test_quotas();
    test_demotion();
    test_demotion_in_place();
    test_notices();
    test_notices_race();
    test_tasks();
    test_task_table();
    test_unpolled();
    test_hammer();
    ok(atomic_load(&destroyed) > 0, "work was freed");
    return done_testing();
}
