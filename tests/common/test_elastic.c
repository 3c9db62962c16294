/* test_elastic.c - what a job that takes several numbers of GPUs says in its comment. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_elastic.h"

static const struct topt_elastic three = {
    .shape = {{1, 2, 48876832501, 0}, {1, 4, 23000000000, 0}, {2, 4, 12000000000, 0}},
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
    is_int(topt_elastic_find(&back, 2, 4, 0), 2, "found");
    is_int(topt_elastic_find(&back, 4, 2, 0), -1, "another shape of as many GPUs is not");
    is_int(topt_elastic_gpus(&back.shape[2]), 8, "GPUs");
    struct topt_text own = {0};
    topt_elastic_strip(t.s, &own);
    ok(!strcmp(own.s, "my own words and more"), "without it: %s", own.s);
    topt_text_fini(&own);
    topt_text_fini(&t);
}

/* Of several kinds of GPUs. */
static void test_kinds(void)
{
    struct topt_text t = {0}, kinds = {0};
    struct topt_elastic e = {
        .shape = {{1, 4, 5, 0}, {1, 4, 9, 1}, {2, 4, 3, 2}}, .n = 3, .requeues = 1};
    struct topt_elastic back;
    char tag[TOPT_ELASTIC_NAME], name[TOPT_ELASTIC_NAME];
    is_int(topt_elastic_add_kind(&e, "fast,also"), 0, "what it was submitted to");
    is_int(topt_elastic_add_kind(&e, "slow"), 1, "another");
    is_int(topt_elastic_add_kind(&e, "any"), 2, "a third");
    is_int(topt_elastic_add_kind(&e, "a b"), -1, "no blank");
    is_int(topt_elastic_add_kind(&e, "a;b"), -1, "nor what ends a word");
    is_int(topt_elastic_add_kind(&e, "a,"), -1, "no empty one");
    topt_elastic_word(&e, &t);
    ok(!strcmp(t.s,
               "topt-elastic=1x4:5*,1x4:9@1,2x4:3@2;requeue;kinds=fast+also,slow,any"),
       "%s", t.s);
    is_int(topt_elastic_read(t.s, &back), 1, "read");
    ok(back.n == 3 && back.requeues && back.nkinds == 3 && back.shape[1].kind == 1 &&
           !strcmp(back.kind[0], "fast+also") && !strcmp(back.kind[2], "any"),
       "as it was");
    is_int(topt_elastic_kind_of(&back, "also,fast"), 0, "in whatever order");
    is_int(topt_elastic_kind_of(&back, "also"), 0, "in one of them");
    is_int(topt_elastic_kind_of(&back, "slow"), 1, "of the other kind");
    is_int(topt_elastic_kind_of(&back, ""), -1, "of none");
    is_int(topt_elastic_kind_of(&back, "fast,slow"), -1, "of two kinds");
    is_int(topt_elastic_kind_of(&three, "where"), 0, "where there are no kinds");
    is_int(topt_elastic_find(&back, 1, 4, 1), 1, "a shape of the kind");
    is_int(topt_elastic_find(&back, 2, 4, 1), -1, "not that of another");
    topt_elastic_kinds(&back, &kinds);
    ok(!strcmp(kinds.s, "fast+also,slow,any"), "%s", kinds.s);
    is_int(topt_elastic_kind_in(kinds.s, "also"), 0, "a partition's kind");
    is_int(topt_elastic_kind_in(kinds.s, "any"), 2, "and another's");
    is_int(topt_elastic_kind_in(kinds.s, "als"), -1, "of none");
    is_int(topt_elastic_kind_in("", "also"), 0, "where there are none");
    topt_elastic_tag(1, 4, 1, tag);
    topt_elastic_plan_name(tag, name);
    ok(!strcmp(name, "SLURM_TOPT_PLAN_1x4_1"), "%s", name);
    topt_elastic_tag(2, 8, 0, tag);
    topt_elastic_document_name(tag, name);
    ok(!strcmp(name, "SLURM_TOPT_PLAN_DOC_2x8"), "%s", name);
    topt_text_fini(&t);
    topt_text_fini(&kinds);
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
        "topt-elastic=1x2:5*,1x2:9@1",           /* a kind that is not said */
        "topt-elastic=1x2:5*,1x2:9@1;kinds=a",   /* nor here */
        "topt-elastic=1x2:5*,1x2:9@9;kinds=a,b", /* too many */
        "topt-elastic=1x2:5*;kinds=a;kinds=b",   /* said twice */
        "topt-elastic=1x2:5*;requeues",          /* no such word */
        "topt-elastic=1x2:5*;kinds=",            /* no partition */
        "topt-elastic=1x2:5*;kinds=a+",          /* an empty one */
        "topt-elastic=1x2:5*;kinds=a$(y)",       /* no name */
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
    struct topt_elastic of_kinds = three;
    int bad = 0;
    of_kinds.shape[2].kind = topt_elastic_add_kind(&of_kinds, "fast,also") + 1;
    topt_elastic_add_kind(&of_kinds, "slow");
    topt_elastic_word(&of_kinds, &t);
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
                   !(e.min_efficiency >= 0 && e.min_efficiency <= 1) ||
                   e.nkinds > TOPT_ELASTIC_KINDS ||
                   (e.shape[2].kind && e.shape[2].kind >= e.nkinds);
    }
    is_int(bad, 0, "20000 changed words (seed 1)");
    topt_text_fini(&t);
}

int main(void)
{
    test_round();
    test_kinds();
    test_refused();
    test_fuzz();
    return done_testing();
}
