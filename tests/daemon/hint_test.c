/* hint_test.c - which other question is named after an answer, and in which words. */
#include "topt_hint.h"
#include "tap.h"

#include <string.h>

/* The hint of an answer of 4 GPUs and 100 ns with these alternatives. */
static void line(const char *rows, const char *want)
{
    json_t *a = json_pack("{s:i, s:i, s:o}", "gpus", 4, "time_ns", 100, "alternatives",
                          json_loads(rows, 0, NULL));
    char *got = hint_line(a, "--e=");
    ok(!got == !want && (!got || !strcmp(got, want)), "%s: %s", rows, got ? got : "-");
    free(got);
    json_decref(a);
}

static void with(const char *list, const char *prefix, const char *want)
{
    json_t *a = json_pack("{s:o}", "with", json_loads(list, 0, NULL));
    char *got = hint_with(a, prefix);
    ok(!got == !want && (!got || !strcmp(got, want)), "%s: %s", list, got ? got : "-");
    free(got);
    json_decref(a);
}

/* What more than two GPUs would give an answer of 2 GPUs and 100 ns. */
static void beyond(const char *rows, const char *want)
{
    json_t *a = json_pack("{s:i, s:i, s:o}", "gpus", 2, "time_ns", 100, "alternatives",
                          json_loads(rows, 0, NULL));
    char *got = hint_beyond(a, 2, "-N 1");
    ok(got && !strcmp(got, want), "%s: %s", rows, got ? got : "-");
    free(got);
    json_decref(a);
}

int main(void)
{
    beyond("[]", "more than -N 1 would not be faster");
    beyond("[{\"gpus\":2,\"nodes\":1,\"time_ns\":50}, "
           "{\"gpus\":4,\"nodes\":2,\"time_ns\":100}]",
           "more than -N 1 would not be faster");
    beyond("[{\"gpus\":4,\"nodes\":2,\"time_ns\":50}, "
           "{\"gpus\":8,\"nodes\":4,\"time_ns\":40}]",
           "more than -N 1: 8 GPUs on 4 nodes would be 2.5 times as fast for 1.6 times "
           "the GPU-hours");
    line("[]", NULL);
    line("[{\"gpus\":4,\"time_ns\":100,\"min_efficiency\":1.0}]", NULL);
    line("[{\"gpus\":8,\"time_ns\":50,\"min_efficiency\":1.0}]",
         "8 GPUs would be 2.0 times as fast for the same GPU-hours: --e=1");
    line("[{\"gpus\":64,\"time_ns\":6.25,\"min_efficiency\":0.8}]",
         "64 GPUs would be 16 times as fast for the same GPU-hours: --e=0.8");
    line("[{\"gpus\":8,\"time_ns\":55,\"min_efficiency\":0.9}]",
         "8 GPUs would be 1.8 times as fast for 1.1 times the GPU-hours: --e=0.9");
    line("[{\"gpus\":8,\"time_ns\":40,\"min_efficiency\":0.95}]",
         "8 GPUs would be 2.5 times as fast for 0.8 times the GPU-hours: --e=0.95");
    line("[{\"gpus\":8,\"time_ns\":70,\"min_efficiency\":0.7}]", NULL);
    line("[{\"gpus\":8,\"time_ns\":50}]", NULL); /* nothing chooses it */
    line("[{\"gpus\":2,\"time_ns\":200,\"min_efficiency\":1.0}]", NULL);
    line("[{\"gpus\":8,\"time_ns\":50,\"min_efficiency\":1.0},"
         "{\"gpus\":16,\"time_ns\":26,\"min_efficiency\":0.9},"
         "{\"gpus\":32,\"time_ns\":20,\"min_efficiency\":0.6}]",
         "16 GPUs would be 3.8 times as fast for the same GPU-hours: --e=0.9");
    line("[{}, 5, null]", NULL);
    with("[]", "--", NULL);
    with("[{\"ask\":\"--tensor-parallel\",\"gpus\":8}]", "--topt-",
         "with --topt-tensor-parallel it fits on 8 GPUs");
    with("[{\"ask\":\"--factors all\",\"gpus\":1},{\"gpus\":3},{\"ask\":\"other "
         "--micro-batches\",\"gpus\":2}]",
         "--",
         "with --factors all it fits on 1 GPU; with other --micro-batches it fits on 2 "
         "GPUs");
    return done_testing();
}
