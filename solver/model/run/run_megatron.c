/* run_megatron.c - a run of Megatron-LM, from the arguments of its script.
 *
 * Names, defaults and what follows from them are those of megatron/training/arguments.py at commit
 * d98e8a64. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* Chunks of a layout such as "Et|(tt|)*30mL": one more than the bars, groups counted as often as said. */
static int64_t chunks_of(const char *layout)
{
    int64_t all = 1, group = -1;
    for (const char *s = layout; *s; s++) {
        if (*s == '(')
            group = 0;
        else if (*s == '|')
            *(group < 0 ? &all : &group) += 1;
        else if (*s == ')') {
            int64_t times = s[1] == '*' ? strtoll(s + 2, NULL, 10) : 1;
            all += group > 0 && times > 0 && times < 4096 ? group * times : 0;
            group = -1;
        }
    }
    return all;
}

/* Each of the three ways to say virtual stages; 1 where none is said. */
static int read_chunks(struct run *r, int64_t stages, int64_t *ret)
{
    int64_t layers = 0, each = 0;
    char *layout = NULL;
    *ret = 1;
    if (run_whole(r, "--num-virtual-stages-per-pipeline-rank", 1, ret) ||
        run_whole(r, "--num-layers", 1, &layers) ||
        run_whole(r, "--num-layers-per-virtual-pipeline-stage", 1, &each) ||
        run_text(r, "--pipeline-model-parallel-layout", &layout) < 0)
        return -1;
    layers += run_has(r, "--account-for-embedding-in-pipeline-split");
    layers += run_has(r, "--account-for-loss-in-pipeline-split");
    if (layout)
        *ret = chunks_of(layout) / stages;
    else if (each)
        *ret = layers / stages / each;
    free(layout);
    return *ret > 0 ? 0
                    : topt_fail(r->err, TOPT_ERR_INVAL,
                                "the virtual stages do not divide into %lld stages",
                                (long long)stages);
}

static int read_degrees(struct run *r)
{
    static const struct {
        const char *name, *key;
    } rows[] = {{"--tensor-model-parallel-size", "tp"},
                {"--pipeline-model-parallel-size", "pp"},
                {"--context-parallel-size", "cp"},
                {"--expert-model-parallel-size", "ep"},
                {"--micro-batch-size", "mbs"}};
    int64_t n[5] = {1, 1, 1, 1, 1}, chunks, batch = 0;
    for (int i = 0; i < 5; i++) {
        if (run_whole(r, rows[i].name, 1, &n[i]))
            return -1;
        run_degree(r, rows[i].key, n[i]);
    }
    if (read_chunks(r, n[1], &chunks) || run_whole(r, "--global-batch-size", 1, &batch))
        return -1;
    run_degree(r, "vp", chunks);
    run_degree(r, "zero", run_has(r, "--use-distributed-optimizer"));
    run_batch(r, batch, n[4], n[0] * n[1] * n[2]);
    if (n[0] > 1)
        run_word(r, "sequence_parallel",
                 run_has(r, "--sequence-parallel") ? "on" : "off");
    return 0;
}

/* Names of modules up to the next option, with + between; core_attn where none is said. */
static void read_modules(struct run *r)
{
    char all[160] = "", *one = NULL;
    size_t n = 0;
    for (int i = 0; run_text_at(r, "--recompute-modules", i, &one) > 0; i++) {
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%.40s", n ? "+" : "", one);
        free(one);
        if (n >= sizeof all)
            n = sizeof all - 1;
    }
    run_degree_word(r, "recompute", *all ? all : "core_attn");
}

/* Every layer whole, some modules of each, or none. */
static int read_recompute(struct run *r)
{
    char *granularity = NULL, *method = NULL;
    if (run_text(r, "--recompute-granularity", &granularity) < 0 ||
        run_text(r, "--recompute-method", &method) < 0) {
        free(granularity);
        return -1;
    }
    int full = granularity && !strcmp(granularity, "full");
    if (full && method && !strcmp(method, "block"))
        run_note(r, "--recompute-method block: all layers are taken as recomputed");
    if ((granularity && !full) || run_has(r, "--recompute-activations"))
        read_modules(r);
    else
        run_degree(r, "recompute", full);
    free(granularity);
    free(method);
    return 0;
}

static int read_optimizer(struct run *r)
{
    char *name = NULL;
    if (run_text(r, "--optimizer", &name) < 0)
        return -1;
    int adam = !name || !strcmp(name, "adam"), sgd = name && !strcmp(name, "sgd"),
        muon = name && (!strcmp(name, "muon") || !strcmp(name, "dist_muon"));
    int rc = adam || sgd || muon
                 ? 0
                 : topt_fail(r->err, TOPT_ERR_INVAL,
                             "--optimizer %.40s has no counterpart here", name);
    run_word(r, "optimizer", adam ? "adamw" : muon ? "muon" : "momentum");
    free(name);
    return rc;
}

/* Products in few bits beside bf16, by the recipe that scales them; NULL: none. */
static int read_low(struct run *r, const char **ret)
{
    static const struct {
        const char *recipe, *precision;
    } rows[] = {{"delayed", "fp8-delayed"},
                {"tensorwise", "fp8-tensorwise"},
                {"blockwise", "fp8-blockwise"},
                {"mxfp8", "mxfp8"}};
    char *recipe = NULL;
    int four = run_has(r, "--fp4-format");
    *ret = four ? "nvfp4" : NULL;
    if (four || !run_has(r, "--fp8-format"))
        return 0;
    if (run_text(r, "--fp8-recipe", &recipe) < 0)
        return -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(recipe ? recipe : "delayed", rows[i].recipe))
            *ret = rows[i].precision;
    if (!*ret)
        run_note(r, "--fp8-recipe: products in fp8 are taken as in bf16");
    free(recipe);
    return 0;
}

static int read_precision(struct run *r)
{
    const char *low;
    if (read_low(r, &low))
        return -1;
    run_word(r, "precision",
             low                    ? low
             : run_has(r, "--bf16") ? "bf16-mixed"
             : run_has(r, "--fp16") ? "fp16-mixed"
                                    : "f32");
    if (low && (run_has(r, "--fp8-param-gather") || run_has(r, "--fp4-param-gather")))
        json_object_set_new(r->fields, "fp8_params", json_true());
    return 0;
}

static int read_kernels(struct run *r)
{
    char *fusion = NULL;
    if (run_text(r, "--cross-entropy-fusion-impl", &fusion) < 0)
        return -1;
    if (run_has(r, "--cross-entropy-loss-fusion") && fusion && !strcmp(fusion, "te"))
        run_word(r, "loss_kernel", "fused");
    free(fusion);
    if (!run_has(r, "--overlap-grad-reduce"))
        run_word(r, "overlap", "none");
    if (run_has(r, "--use-flash-attn"))
        run_word(r, "attention", "flash-2");
    return 0;
}

/* What the run does and is not modelled; with a sign of its own, what makes another run of it. */
static int read_others(struct run *r)
{
    static const struct {
        const char *name, *note;
    } rows[] = {{"--use-torch-fsdp2", NULL},
                {"--use-megatron-fsdp", NULL},
                {"--use-custom-fsdp", NULL},
                {"--cpu-offloading", NULL},
                {"--optimizer-cpu-offload", NULL},
                {"--tp-comm-overlap",
                 "--tp-comm-overlap: tensor parallel communication is taken "
                 "as exposed; --tensor-overlap takes it beside products"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!run_has(r, rows[i].name))
            continue;
        if (!rows[i].note)
            return topt_fail(
                r->err, TOPT_ERR_INVAL,
                "%s has no counterpart here, so that the run can't be costed",
                rows[i].name);
        run_note(r, rows[i].note);
    }
    return 0;
}

/* Stages of as many layers each, but where the script weighs them. */
static void read_split(struct run *r)
{
    static const char *const names[] = {
        "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
        "--pipeline-model-parallel-layout", "--account-for-embedding-in-pipeline-split",
        "--account-for-loss-in-pipeline-split"};
    int own = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        own |= run_has(r, names[i]);
    if (own)
        run_note(r, "layers of stages are cut by topt, not as the script says");
    else
        run_degree(r, "even", 1);
}

int run_read_megatron(struct run *r)
{
    int64_t seq = 0, mtp = 0;
    run_word(r, "framework", "megatron");
    if (read_degrees(r) || read_recompute(r) || read_optimizer(r) || read_kernels(r) ||
        read_precision(r) || read_others(r) || run_whole(r, "--seq-length", 1, &seq) ||
        run_whole(r, "--mtp-num-layers", 1, &mtp))
        return -1;
    if (seq)
        run_number(r, "seq", seq);
    if (mtp)
        run_number(r, "mtp", mtp);
    read_split(r);
    return 0;
}
