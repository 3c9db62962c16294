/* test_answer.c - toptd's lines, and what they mean for a submission. */
#include <string.h>

#include "answer.h"
#include "tap.h"

static enum topt_verdict judge(int status, const char *body, struct topt_error *err)
{
    struct topt_answer a;
    topt_answer_parse(body, strlen(body), &a);
    *err = (struct topt_error){0};
    return topt_answer_judge(status, &a, err);
}

static void test_plan(void)
{
    static const char body[] =
        "TOPT_PLAN_ID=p-1f\r\nTOPT_GPUS=8\nTOPT_NODES=2\n\nnonsense\n"
        "TOPT_GPUS_PER_NODE=4\nTOPT_MEMORY_BYTES=123456789012\n"
        "TOPT_DP=4\nTOPT_TP=2\nTOPT_PP=5\nTOPT_VP=6\nTOPT_CP=7\nTOPT_EP=9\nTOPT_ETP="
        "11\nTOPT_FSDP=3\nTOPT_SHARD=2\nTOPT_"
        "RECOMPUTE=1\nTOPT_"
        "MICRO_BATCH=16\n"
        "TOPT_ACCUMULATION=3\n"
        "TOPT_STRATEGY=data 8\nTOPT_HINT=8 GPUs: --a=0.8\n"
        "TOPT_TIME_NS=7\nTOPT_FUTURE=x\nTOPT_WHY=a=b \x1b[2J, c";
    struct topt_answer a;
    struct topt_error err = {0};
    topt_answer_parse(body, strlen(body), &a);
    ok(strcmp(a.plan_id, "p-1f") == 0, "id '%s'", a.plan_id);
    ok(a.gpus == 8 && a.nodes == 2 && a.gpus_per_node == 4, "shape");
    is_int(a.memory_bytes, 123456789012, "bytes");
    is_int(a.time_ns, 7, "time");
    ok(a.dp == 4 && a.tp == 2 && a.pp == 5 && a.vp == 6 && a.cp == 7 && a.ep == 9 &&
           a.etp == 11 && a.fsdp == 3 && a.shard == 2 && a.recompute == 1 &&
           a.micro_batch == 16 && a.accumulation == 3,
       "one choice for the whole model");
    ok(strcmp(a.why, "a=b  [2J, c") == 0, "no escape sequences reach a terminal");
    ok(!strcmp(a.strategy, "data 8") && !strcmp(a.hint, "8 GPUs: --a=0.8"),
       "what each does, and what else to ask");
    ok(topt_answer_judge(200, &a, &err) == TOPT_VERDICT_PLAN, "a plan");
    ok(topt_answer_judge(202, &a, &err) == TOPT_VERDICT_OUTAGE, "not with 202");
}

static void test_broken_plans(void)
{
    static const char *const bad[] = {
        "",
        "TOPT_GPUS=1\nTOPT_NODES=1\nTOPT_GPUS_PER_NODE=1\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=1\nTOPT_NODES=1\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=8\nTOPT_NODES=2\nTOPT_GPUS_PER_NODE=2\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=0\nTOPT_NODES=0\nTOPT_GPUS_PER_NODE=0\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=-4\nTOPT_NODES=-2\nTOPT_GPUS_PER_NODE=2\n",
        "TOPT_PLAN_ID=../p\nTOPT_GPUS=1\nTOPT_NODES=1\nTOPT_GPUS_PER_NODE=1\n",
        "TOPT_PLAN_ID=p q\nTOPT_GPUS=1\nTOPT_NODES=1\nTOPT_GPUS_PER_NODE=1\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=2097152\nTOPT_NODES=1024\nTOPT_GPUS_PER_NODE=2048\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=1e0\nTOPT_NODES=1\nTOPT_GPUS_PER_NODE=1\n",
        "TOPT_PLAN_ID=p\nTOPT_GPUS=111111111111111111111111111\nTOPT_NODES=1\n",
    };
    struct topt_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(judge(200, bad[i], &err) == TOPT_VERDICT_OUTAGE && *err.text,
           "broken plan %zu: %s", i, err.text);
}

static void test_errors(void)
{
    static const char said[] = "ERROR=infeasible\nDESCRIPTION=too big\nNEAREST=8 GPUs\n";
    struct topt_error err;
    const int refused[] = {400, 404, 413, 415, 422},
              outage[] = {202, 401, 408, 429, 500, 503};
    for (size_t i = 0; i < 5; i++)
        ok(judge(refused[i], said, &err) == TOPT_VERDICT_REFUSED &&
               strcmp(err.text, "too big; nearest: 8 GPUs") == 0,
           "%d refuses: %s", refused[i], err.text);
    for (size_t i = 0; i < 6; i++)
        ok(judge(outage[i], said, &err) == TOPT_VERDICT_OUTAGE, "%d doesn't: %s",
           outage[i], err.text);
    ok(judge(422, "ERROR=undecided\nDESCRIPTION=nothing was found\n", &err) ==
               TOPT_VERDICT_OUTAGE &&
           strcmp(err.text, "nothing was found") == 0,
       "nor does 422 where something may fit");
    ok(judge(404, "<html>", &err) == TOPT_VERDICT_OUTAGE, "somebody else's 404 doesn't");
    ok(judge(422, "ERROR=x\n", &err) == TOPT_VERDICT_REFUSED &&
           strcmp(err.text, "x") == 0,
       "a name is enough");
}

/* Any bytes: nothing to check but that a sanitizer stays silent. */
static void test_noise(void)
{
    char noise[2048];
    unsigned seed = 1;
    struct topt_answer a;
    for (int round = 0; round < 2000; round++) {
        size_t len = (size_t)(seed >> 8) % sizeof noise;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            noise[i] = "=\n\r\0TOPT_GPUS1WHYERROR"[(seed >> 16) % 23];
        }
        char *exact = malloc(len + 1);
        if (!exact)
            abort();
        memcpy(exact, noise, len);
        topt_answer_parse(exact, len, &a);
        free(exact);
        seed++;
    }
    static char big[4096] = "TOPT_WHY=";
    memset(big + 9, 'w', sizeof big - 9);
    topt_answer_parse(big, sizeof big, &a);
    is_int(strlen(a.why), sizeof a.why - 1, "long texts are cut");
}

int main(void)
{
    test_plan();
    test_broken_plans();
    test_errors();
    test_noise();
    return done_testing();
}
