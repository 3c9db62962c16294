/* test_near.c - "did you mean": which known name an unknown one is a slip of, and when none. */
#include "tap.h"
#include "topt_near.h"

#include <string.h>

static const char *const known[] = {"a100-80-dgx",
                                    "a100-40-dgx",
                                    "h100-80-dgx",
                                    "lab-cpu",
                                    "mini-time",
                                    "mini-parallelism",
                                    "profiling",
                                    "LlamaForCausalLM",
                                    "MistralForCausalLM",
                                    "f32",
                                    "f64",
                                    "bf16",
                                    "--batch",
                                    "-o",
                                    "adam",
                                    "adamw",
                                    "pytorch",
                                    "deepspeed"};

static const char *near(const char *name)
{
    struct topt_near n = {.name = name};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        topt_near_try(&n, known[i]);
    return topt_near_name(&n);
}

static void is(const char *name, const char *want)
{
    const char *have = near(name);
    ok(have && !strcmp(have, want), "%s: did you mean %s?", name,
       have ? have : "nothing");
}

static void none(const char *name)
{
    const char *have = near(name);
    ok(!have, "%.40s: nothing is near%s%s", name, have ? ", not " : "", have ? have : "");
}

static void containing(const char *name, const char *want)
{
    static const char *const names[] = {"a100-40",
                                        "a100-80",
                                        "h100-80",
                                        "l4",
                                        "another-long-name-of-100s",
                                        "a-third-long-name-of-100s",
                                        "a-fourth-long-name-of-100s",
                                        "a-fifth-long-name-of-100s",
                                        NULL};
    char buf[TOPT_NEAR_MATCHES];
    topt_near_containing(name, names, buf);
    ok(!strcmp(buf, want), "contain %s:%s", name, *buf ? buf : " none");
}

int main(void)
{
    char words[TOPT_NEAR_WORDS], longest[100];
    struct topt_near n = {.name = "lab-cpo"};
    containing("A100", "; did you mean a100-40 or a100-80?");
    containing("-80", "; did you mean a100-80 or h100-80?");
    containing("l4", "; did you mean l4?");
    containing("40", "");
    containing("100",
               "; did you mean a100-40, a100-80, h100-80, another-long-name-of-100s, "
               "a-third-long-name-of-100s or 2 more?");
    is("a100-80-dxg", "a100-80-dgx");
    is("A100-80-DGX", "a100-80-dgx");
    is("a100-40dgx", "a100-40-dgx");
    is("minitime", "mini-time");
    is("mini_parallelism", "mini-parallelism");
    is("mini-par", "mini-parallelism");
    is("lab", "lab-cpu");
    is("LlamaForCasualLM", "LlamaForCausalLM");
    is("fp32", "f32");
    is("--bacth", "--batch");
    is("adma", "adam");
    is("fsdp", "pytorch");
    is("HF", "pytorch");
    is("zero", "deepspeed");
    is("AdamW", "adamw");
    none("a100"); /* begins two */
    none("x");
    none("");
    none("tofu");
    none("opt-13b");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    none(longest);
    topt_near_try(&n, longest);
    ok(!*topt_near_words(&n, words), "no words where nothing is near");
    topt_near_try(&n, "lab-cpu");
    ok(!strcmp(topt_near_words(&n, words), "; did you mean lab-cpu?"), "else:%s", words);
    return done_testing();
}
