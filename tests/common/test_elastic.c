/* test_elastic.c - what a job that takes several numbers of GPUs says in its comment. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_elastic.h"

static const struct topt_elastic three = {
    .shape = {{1, 2, 48876832501}, {1, 4, 23000000000}, {2, 4, 12000000000}},
    .n = 3,
    .submitted = 1,
    .min_efficiency = 0.8,
    .by_node = 1,
    .steps = 900};

static void test_round(void)
{
    struct topt_text t = {0};
    struct topt_elastic back;
    topt_text_add(&t, "my own words ");
    topt_elastic_word(&three, &t);
    ok(!strcmp(t.s, "my own words topt-elastic=1x2:48876832501,1x4:23000000000*,"
                    "2x4:12000000000;min-efficiency=0.8;tasks=node;steps=900"),
       "%s", t.s);
    topt_text_add(&t, " and more");
    is_int(topt_elastic_read(t.s, &back), 1, "read");
    ok(back.n == 3 && back.steps == 900 && back.submitted == 1 && back.by_node &&
           back.min_efficiency == 0.8 && back.shape[2].nodes == 2 &&
           back.shape[2].gpus_per_node == 4 &&
           back.shape[0].time_ns == three.shape[0].time_ns,
       "as it was");
    is_int(topt_elastic_find(&back, 2, 4), 2, "found");
    is_int(topt_elastic_find(&back, 4, 2), -1, "another shape of as many GPUs is not");
    is_int(topt_elastic_gpus(&back.shape[2]), 8, "GPUs");
    struct topt_text own = {0};
    topt_elastic_strip(t.s, &own);
    ok(!strcmp(own.s, "my own words and more"), "without it: %s", own.s);
    topt_text_fini(&own);
    topt_text_fini(&t);
}

static void test_refused(void)
{
    static const char *const bad[] = {
        "",
        "topt-elastic=",
        "topt-elastic=1x2",
        "topt-elastic=1x2:5",            /* none was submitted */
        "topt-elastic=1x2:5*,1x4:3*",    /* two were */
        "topt-elastic=1x2:5*,1x2:3",     /* one shape twice */
        "topt-elastic=0x2:5*",           /* no node */
        "topt-elastic=-1x2:5*",          /* fewer */
        "topt-elastic=1x2:0*",           /* no time */
        "topt-elastic=1x2:5*,",          /* nothing behind the comma */
        "topt-elastic=1x2:5*;tasks=cpu", /* an unknown word */
        "topt-elastic=1x2:5*;min-efficiency=2",
        "topt-elastic=1x2:5*;steps=0",
        "topt-elastic=1x2:5*;steps=9;",
        "topt-elastic=1x2:5*;min-efficiency=nan",
        "topt-elastic=9999999999x2:5*",
        "topt-elastic=1x2:99999999999999999999*",
        "atopt-elastic=1x2:5*",
        "topt-elastic=1x2:5*|"};
    struct topt_elastic e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(topt_elastic_read(bad[i], &e), 0, "'%s'", bad[i]);
    is_int(topt_elastic_read("topt-elastic=x topt-elastic=1x2:5*", &e), 1,
           "a broken one before a good one");
}

/* Any change of a letter is read without harm, and what is read is within its limits. */
static void test_fuzz(void)
{
    struct topt_text t = {0};
    int bad = 0;
    topt_elastic_word(&three, &t);
    srand(1);
    for (int i = 0; i < 20000; i++) {
        char word[256];
        struct topt_elastic e;
        snprintf(word, sizeof word, "%s", t.s);
        for (int k = rand() % 3; k >= 0; k--)
            word[rand() % (int)t.len] = (char)(32 + rand() % 96);
        if (topt_elastic_read(word, &e))
            bad += e.n < 1 || e.n > TOPT_ELASTIC_MOST || e.submitted < 0 ||
                   e.submitted >= e.n || e.shape[0].nodes < 1 ||
                   !(e.min_efficiency >= 0 && e.min_efficiency <= 1);
    }
    is_int(bad, 0, "20000 changed words (seed 1)");
    topt_text_fini(&t);
}

int main(void)
{
    test_round();
    test_refused();
    test_fuzz();
    return done_testing();
}
