/* correction_test.c - how finished jobs correct predictions: each bound of the formula,
 * and the thread that has Slurm confirm them. */
#include "confirm.h"
#include "correction.h"
#include "tap.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ALICE = 1, BOB, CAROL, DAVE };

static struct store_measured job(int64_t uid, double time, double memory, int confirmed)
{
    return (struct store_measured){
        uid, (int64_t)(1000 * time), (int64_t)(5000 * memory), 1000, 5000, confirmed};
}

static struct correction of(const struct store_measured *rows, int n, int64_t uid)
{
    struct correction c;
    correction_of(rows, n, uid, &c);
    return c;
}

static int is(double factor, double ratio, int n)
{
    return fabs(factor - exp(log(ratio) * n / (n + CORRECTION_SHRINK))) < 0.0006;
}

static void test_own(void)
{
    struct store_measured rows[] = {job(ALICE, 1.5, 1.2, 0), job(ALICE, 1.5, 1.2, 0)};
    struct correction c = of(NULL, 0, ALICE);
    ok(!correction_is_there(&c) && c.time.factor == 1 && correction_memory(&c) == 1000,
       "without reports nothing is corrected");
    c = of(rows, 1, ALICE);
    ok(c.time.is_own && c.time.jobs == 1 && is(c.time.factor, 1.5, 1),
       "one's own report corrects one's answers, by little: %g", c.time.factor);
    c = of(rows, 2, ALICE);
    ok(is(c.time.factor, 1.5, 2) && is(c.memory.factor, 1.2, 2), "two by more: %g, %g",
       c.time.factor, c.memory.factor);
    ok(correction_memory(&c) == llround(c.memory.factor * 1000), "in thousandths");
    c = of(rows, 2, BOB);
    ok(!correction_is_there(&c), "nobody else's");
}

static void test_site(void)
{
    struct store_measured rows[] = {job(ALICE, 1.5, 1, 1), job(ALICE, 1.5, 1, 1),
                                    job(ALICE, 1.5, 1, 1), job(BOB, 1.5, 1, 1),
                                    job(CAROL, 1.5, 1, 1), job(CAROL, 1.5, 1, 1)};
    struct correction c = of(rows, 4, DAVE);
    ok(!correction_is_there(&c), "four jobs of two users are too few");
    c = of(rows + 1, 4, DAVE);
    ok(!correction_is_there(&c), "so are four of three");
    rows[4].uid = BOB;
    rows[5].uid = BOB;
    c = of(rows, 6, DAVE);
    ok(!correction_is_there(&c), "and six of two");
    c = of(rows, 6, ALICE);
    ok(c.time.is_own && c.time.jobs == 3, "until then each has one's own");
    rows[4].uid = CAROL;
    c = of(rows, 5, DAVE);
    ok(!c.time.is_own && c.time.jobs == 5 && c.time.users == 3 &&
           is(c.time.factor, 1.5, 5),
       "five of three correct everybody's: %g", c.time.factor);
    rows[0].confirmed = 0;
    c = of(rows, 5, DAVE);
    ok(!correction_is_there(&c), "but only what Slurm has confirmed");
    rows[0].confirmed = 1;
    rows[0].said_time_ns = 0;
    c = of(rows, 5, DAVE);
    ok(!c.time.jobs && c.memory.jobs == 5, "and only what something was said of");
}

static void test_bounds(void)
{
    struct store_measured rows[100];
    for (int i = 0; i < 100; i++)
        rows[i] = job(i % 3 + 1, 1000, 1000, 1);
    struct correction c = of(rows, 100, DAVE);
    ok(c.time.factor <= 2 && is(c.time.factor, 2, 100), "time is at most doubled: %g",
       c.time.factor);
    ok(c.memory.factor == 1.5, "memory is at most half more: %g", c.memory.factor);
    for (int i = 0; i < 100; i++)
        rows[i] = job(i % 3 + 1, 0.001, 0.001, 1);
    c = of(rows, 100, DAVE);
    ok(c.time.factor >= 0.5 && is(c.time.factor, 0.5, 100), "time is at least halved: %g",
       c.time.factor);
    ok(c.memory.factor == 1 && correction_memory(&c) == 1000,
       "memory is never below what was computed");
    for (int i = 0; i < 100; i++)
        rows[i] = job(i < 96 ? ALICE : i % 2 ? BOB : CAROL, i < 96 ? 2 : 1, 1, 1);
    c = of(rows, 100, DAVE);
    ok(c.time.factor == 1, "who reports most does not decide alone: %g", c.time.factor);
}

static void test_words(void)
{
    struct store_measured rows[] = {job(ALICE, 1.5, 1.2, 1), job(ALICE, 1.5, 1.2, 1),
                                    job(BOB, 1.5, 1.2, 1), job(CAROL, 1.5, 1.2, 1),
                                    job(DAVE, 1.5, 1.2, 1)};
    char words[200];
    struct correction c = of(rows, 5, DAVE);
    correction_words(&c, words, sizeof words);
    ok(!strcmp(words,
               "5 jobs of 4 users took 1.225 times the predicted time; 5 jobs of 4 "
               "users took 1.095 times the predicted memory"),
       "in words: %s", words);
    c = of(rows, 1, ALICE);
    correction_words(&c, words, sizeof words);
    ok(!strncmp(words, "1 job of yours took ", 20), "one's own: %s", words);
    correction_words(&c, words, 20);
    ok(strlen(words) == 19, "cut to what there is room for");
    json_t *answer = json_pack("{s:i, s:i}", "time_ns", 1000000, "memory_bytes", 5000);
    json_t *doc = correction_json(&c, answer);
    ok(json_integer_value(json_object_get(doc, "time_ns")) ==
               llround(1000000 * c.time.factor) &&
           !strcmp(
               json_string_value(json_object_get(json_object_get(doc, "memory"), "of")),
               "yours"),
       "as a document, with what comes of the answer");
    json_decref(doc);
    json_decref(answer);
}

/* ---- the thread that asks Slurm ------------------------------------------------------------ */

static atomic_int asked, confirmed;
static atomic_bool hold;

/* Jobs 1.. are their users'; 90 is nobody's, of 99 Slurm says nothing. */
static int ask(void *ctx, int64_t number, int64_t uid)
{
    (void)ctx;
    while (atomic_load(&hold))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_fetch_add(&asked, 1);
    return number == 99 ? -1 : number != 90 && uid == ALICE;
}

static void confirm_one(void *ctx, int64_t id)
{
    (void)ctx, (void)id;
    atomic_fetch_add(&confirmed, 1);
}

static void wait_for(atomic_int *count, int n)
{
    for (int i = 0; i < 5000 && atomic_load(count) < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void test_confirm(void)
{
    const struct confirm_config config = {ask, confirm_one, NULL, 1};
    struct topt_error err = {0};
    struct confirm *c = NULL;
    if (!ok(confirm_create(&config, &c, &err) == 0, "a thread that asks Slurm"))
        return;
    ok(confirm_add(c, 1, 17, ALICE) && confirm_add(c, 2, 17, BOB) &&
           confirm_add(c, 3, 90, ALICE),
       "three reports");
    wait_for(&asked, 3);
    wait_for(&confirmed, 1);
    is_int(atomic_load(&confirmed), 1, "of which one is confirmed");
    ok(confirm_add(c, 4, 99, ALICE), "one that Slurm says nothing of");
    wait_for(&asked, 3 + CONFIRM_TRIES);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    is_int(atomic_load(&asked), 3 + CONFIRM_TRIES,
           "is asked about a few times, and no more");
    atomic_store(&hold, 1);
    int mine = 0, others = 0;
    for (int i = 0; i < 3 * CONFIRM_EACH; i++)
        mine += confirm_add(c, 100 + i, 90, ALICE);
    for (int i = 0; i < 2 * CONFIRM_ROOM; i++)
        others += confirm_add(c, 1000 + i, 90, 100 + i);
    ok(mine >= CONFIRM_EACH && mine <= CONFIRM_EACH + 1, "one user has %d waiting", mine);
    ok(others > 0 && mine + others <= CONFIRM_ROOM + 1, "all have %d", mine + others);
    atomic_store(&hold, 0);
    confirm_destroy(c);
    ok(1, "it ends with reports that wait");
    confirm_destroy(NULL);
}

int main(void)
{
    test_own();
    test_site();
    test_bounds();
    test_words();
    test_confirm();
    return done_testing();
}
