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

/* Experts over ranks: what splits each, by itself as tensor parallelism does; how tokens go to them.  Passes of two
 * micro-batches run as one only where the script says so. */
static int read_experts(struct run *r, int64_t tensor, int64_t stages, int64_t chunks)
{
    char *type = NULL, *backend = NULL;
    int64_t split = tensor;
    if (run_whole(r, "--expert-tensor-parallel-size", 1, &split) ||
        run_text(r, "--moe-token-dispatcher-type", &type) < 0 ||
        run_text(r, "--moe-flex-dispatcher-backend", &backend) < 0) {
        free(type);
        return -1;
    }
    run_degree(r, "etp", split);
    if (run_has(r, "--moe-enable-deepep") || (type && !strcmp(type, "flex")))
        run_word(r, "dispatch", "deepep");
    if (backend && strcmp(backend, "deepep") != 0)
        run_note(r, "--moe-flex-dispatcher-backend: tokens are taken to go by DeepEP");
    free(type);
    free(backend);
    if (run_has(r, "--overlap-moe-expert-parallel-comm"))
        run_word(r, "schedule", "combined-1f1b");
    else if (stages > 1)
        run_word(r, "schedule", chunks > 1 ? "interleaved-1f1b" : "1f1b");
    return 0;
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
    int64_t n[5] = {1, 1, 1, 1, 1}, chunks, batch = 0, copies = 1;
    for (int i = 0; i < 5; i++) {
        if (run_whole(r, rows[i].name, 1, &n[i]))
            return -1;
        run_degree(r, rows[i].key, n[i]);
    }
    if (read_chunks(r, n[1], &chunks) || run_whole(r, "--global-batch-size", 1, &batch) ||
        run_whole(r, "--num-distributed-optimizer-instances", 1, &copies) ||
        (n[3] > 1 && read_experts(r, n[0], n[1], chunks)))
        return -1;
    int64_t sharing = r->gpus / (n[0] * n[1] * n[2]) / copies;
    if (sharing > 1 && run_has(r, "--use-distributed-optimizer"))
        run_number(r, "shard_ranks", sharing);
    run_degree(r, "vp", chunks);
    run_degree(r, "zero", run_has(r, "--use-distributed-optimizer"));
    run_batch(r, batch, n[4], n[0] * n[1] * n[2]);
    if (n[0] > 1)
        run_word(r, "sequence_parallel",
                 run_has(r, "--sequence-parallel") ? "on" : "off");
    return 0;
}

enum { NAMES = 160 };

/* Is it the name of a module?  An array of arguments ends without a sign, and what follows is a variable that is
 * set or a command. */
static int is_name(const char *word)
{
    static const char *const commands[] = {"torchrun", "python", "python3", "srun"};
    int ret = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789_")];
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        ret = ret && strcmp(word, commands[i]) != 0;
    return ret;
}

/* The names behind an option, appended with 'between' before each but the first of all. */
static void add_names(struct run *r, const char *option, char between, char all[NAMES])
{
    char *one = NULL;
    size_t n = strlen(all);
    for (int i = 0, more = 1; more && run_text_at(r, option, i, &one) > 0; i++) {
        more = is_name(one) && n + strlen(one) + 2 < NAMES;
        if (more)
            n += (size_t)snprintf(all + n, NAMES - n, "%.*s%s", n > 0, &between, one);
        free(one);
    }
}

/* core_attn is recomputed where no module is named. */
static void read_modules(struct run *r)
{
    char all[NAMES] = "";
    add_names(r, "--recompute-modules", '+', all);
    run_degree_word(r, "recompute", *all ? all : "core_attn");
}

/* The first layers of each chunk of pipeline stages. */
static int read_block(struct run *r)
{
    int64_t stages = 1, layers = 1;
    char word[32];
    if (run_whole(r, "--pipeline-model-parallel-size", 1, &stages) ||
        run_whole(r, "--recompute-num-layers", 1, &layers))
        return -1;
    snprintf(word, sizeof word, "block:%lld", (long long)layers);
    if (stages > 1) {
        run_degree_word(r, "recompute", word);
    } else {
        run_note(r, "--recompute-method block: all layers are taken as recomputed");
        run_degree(r, "recompute", 1);
    }
    return 0;
}

/* Every layer whole, the first of each chunk, some modules of each, or none. */
static int read_recompute(struct run *r)
{
    char *granularity = NULL, *method = NULL;
    if (run_text(r, "--recompute-granularity", &granularity) < 0 ||
        run_text(r, "--recompute-method", &method) < 0) {
        free(granularity);
        return -1;
    }
    int full = granularity && !strcmp(granularity, "full"), rc = 0;
    if (full && method && !strcmp(method, "block"))
        rc = read_block(r);
    else if ((granularity && !full) || run_has(r, "--recompute-activations"))
        read_modules(r);
    else
        run_degree(r, "recompute", full);
    free(granularity);
    free(method);
    return rc;
}

/* How many of Adam's two moments rest in bf16. */
static int count_bf16_moments(struct run *r)
{
    static const char *const names[] = {"--exp-avg-dtype", "--exp-avg-sq-dtype"};
    int bf16 = 0, f32 = 0;
    for (int i = 0; i < 2; i++) {
        char *type = NULL;
        int said = run_text(r, names[i], &type) > 0;
        bf16 += said && !strcmp(type, "bf16");
        f32 += !said || !strcmp(type, "fp32");
        free(type);
    }
    if (bf16 < 2 && f32 < 2)
        run_note(r, "--exp-avg-dtype, --exp-avg-sq-dtype: both moments are taken in f32");
    return bf16;
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
    int halves = adam ? count_bf16_moments(r) : 0;
    run_word(r, "optimizer",
             halves == 2 ? "adamw_bf16"
             : adam      ? "adamw"
             : muon      ? "muon"
                         : "momentum");
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
        run_note(r, "--fp8-recipe: products of that recipe are taken as in bf16");
    free(recipe);
    return 0;
}

/* Layers that stay in bf16 beside products in few bits. */
static void note_wide_layers(struct run *r)
{
    static const char *const names[] = {"--first-last-layers-bf16",
                                        "--te-precision-config-file"};
    for (int i = 0; i < 2; i++)
        if (run_has(r, names[i])) {
            char note[96];
            snprintf(note, sizeof note, "%s: all layers are taken in the few bits",
                     names[i]);
            run_note(r, note);
        }
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
    if (run_has(r, "--grad-reduce-in-bf16") && run_has(r, "--bf16"))
        run_word(r, "gradients", "bf16");
    if (low)
        note_wide_layers(r);
    if (low && (run_has(r, "--fp8-param-gather") || run_has(r, "--fp4-param-gather")))
        run_flag(r, "fp8_params");
    return 0;
}

/* Graphs of a whole iteration, or of layers or some of their modules, by the names of now and of before. */
static int read_graphs(struct run *r)
{
    static const char *const scopes[] = {"--cuda-graph-modules", "--cuda-graph-scope"};
    char *how = NULL, parts[NAMES] = "";
    if (run_text(r, "--cuda-graph-impl", &how) < 0)
        return -1;
    int some = (how && strcmp(how, "none") != 0) || run_has(r, "--enable-cuda-graph") ||
               run_has(r, "--external-cuda-graph");
    free(how);
    if (!some)
        return 0;
    for (int i = 0; i < 2; i++)
        add_names(r, scopes[i], ' ', parts);
    if (*parts && strcmp(parts, "full") != 0 && strcmp(parts, "full_iteration") != 0)
        run_note(r, "CUDA graphs of some modules are taken as those of whole forward and "
                    "backward passes");
    run_flag(r, "cuda_graphs");
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
    if (run_has(r, "--tp-comm-overlap") && run_has(r, "--sequence-parallel"))
        run_flag(r, "tensor_overlap");
    return read_graphs(r);
}

/* What rests in the host's memory. */
static int read_offload(struct run *r)
{
    static const char none[][16] = {"fused_group_mlp", "gdp_qkv"};
    char what[NAMES] = "", *share = NULL, *end = "";
    int64_t kept = 0, layers = 0;
    double fraction = 1;
    if (run_whole(r, "--cpu-offloading-num-layers", 0, &kept) ||
        run_whole(r, "--num-layers", 1, &layers) ||
        run_text(r, "--optimizer-offload-fraction", &share) < 0)
        return -1;
    if (share)
        fraction = strtod(share, &end);
    int bad = *end || !(fraction >= 0 && fraction <= 1);
    free(share);
    if (bad)
        return topt_fail(r->err, TOPT_ERR_INVAL,
                         "--optimizer-offload-fraction is no number from 0 to 1");
    if (run_has(r, "--optimizer-cpu-offload") && fraction > 0) {
        strcpy(what, "optimizer");
        if (fraction < 1)
            json_object_set_new(r->fields, "offload_fraction", json_real(fraction));
    }
    if (kept)
        strcat(what, *what ? ",activations" : "activations");
    if (kept && kept != layers - 1)
        run_note(r, "--cpu-offloading-num-layers: all layers but the last are taken to "
                    "keep their activations on the host");
    if (run_has(r, "--fine-grained-activation-offloading"))
        add_names(r, "--offload-modules", ',', what);
    for (int i = 0; i < 2; i++)
        if (strstr(what, none[i]))
            return topt_fail(r->err, TOPT_ERR_INVAL,
                             "--offload-modules %s has no counterpart here, so that the "
                             "run can't be costed",
                             none[i]);
    if (*what)
        run_word(r, "offload", what);
    return 0;
}

/* Refuse arguments that change the run into one that can't be costed. */
static int refuse_others(struct run *r)
{
    static const char *const names[] = {"--use-torch-fsdp2", "--use-megatron-fsdp",
                                        "--use-custom-fsdp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (run_has(r, names[i]))
            return topt_fail(
                r->err, TOPT_ERR_INVAL,
                "%s has no counterpart here, so that the run can't be costed", names[i]);
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
        read_precision(r) || read_offload(r) || refuse_others(r) ||
        run_whole(r, "--seq-length", 1, &seq) ||
        run_whole(r, "--mtp-num-layers", 0, &mtp))
        return -1;
    if (seq)
        run_number(r, "seq", seq);
    if (mtp)
        run_number(r, "mtp", mtp);
    read_split(r);
    return 0;
}
