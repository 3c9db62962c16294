/* fixed.c - degrees that a question fixes: "tp=8,pp=8,vp=2,cp=1,ep=1,dp=16,mbs=1".
 *
 * What is named is as it says, the rest stays free. */
#include "fixed.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct topt_fixed, member)
static const struct key {
    const char *name;
    size_t at;
    int64_t least, most; /* 0: words of modules */
} keys[] = {{"tp", AT(tensor), 1, 1 << 14}, {"pp", AT(stages), 1, TOPT_MAX_STAGES},
            {"vp", AT(chunks), 1, 64},      {"cp", AT(context), 1, 1 << 14},
            {"ep", AT(expert), 1, 1 << 14}, {"etp", AT(expert_tensor), 1, 1 << 10},
            {"dp", AT(data), 1, 1 << 14},   {"mbs", AT(micro_batch), 1, 1 << 30},
            {"zero", AT(zero), 0, 3},       {"recompute", AT(recompute), 0, 0},
            {"even", AT(even), 0, 1}};
enum { KEYS = sizeof keys / sizeof *keys };

/* Words of modules, or "block:N": whole layers, the first N of each chunk of pipeline stages. */
static int read_recompute(const char *text, struct topt_fixed *ret,
                          struct topt_error *err)
{
    if (strncmp(text, "block:", 6) != 0)
        return topt_modules_parse(text, &ret->recompute, err);
    ret->recompute = TOPT_MODULE_WHOLE;
    return topt_parse_int(text + 6, 1, 1 << 14, &ret->recompute_layers, err);
}

static int read_one(const char *item, struct topt_fixed *ret, unsigned *seen,
                    struct topt_error *err)
{
    size_t n = strcspn(item, "=");
    for (int i = 0; i < KEYS; i++) {
        if (strlen(keys[i].name) != n || memcmp(keys[i].name, item, n))
            continue;
        if (!item[n] || *seen >> i & 1)
            return topt_fail(err, TOPT_ERR_INVAL,
                             *seen >> i & 1 ? "%s is given twice" : "%s has no value",
                             keys[i].name);
        *seen |= 1u << i;
        int64_t *value = (int64_t *)((char *)ret + keys[i].at);
        return (keys[i].most ? topt_parse_int(item + n + 1, keys[i].least, keys[i].most,
                                              value, err)
                             : read_recompute(item + n + 1, ret, err))
                   ? topt_wrap(err, "%s", keys[i].name)
                   : 0;
    }
    return topt_fail(err, TOPT_ERR_INVAL,
                     "'%.30s' is not one of tp=N, pp=N, vp=N, cp=N, ep=N, etp=N, dp=N, "
                     "mbs=N, zero=0..3, recompute=WHAT, even=0..1",
                     item);
}

int topt_fixed_parse(const char *text, struct topt_fixed *ret, struct topt_error *err)
{
    const char *at = NULL;
    char item[20 + TOPT_MODULES_SIZE];
    unsigned seen = 0;
    int rc;
    while ((rc = topt_list_next(text, &at, item, sizeof item, err)) > 0)
        if (read_one(item, ret, &seen, err))
            break;
    return rc ? topt_wrap(err, "--degrees") : 0;
}

int topt_query_apart(const struct topt_query *w)
{
    struct topt_fixed fixed = {.any = 0};
    int64_t context = w->context;
    if (*w->degrees && topt_fixed_parse(w->degrees, &fixed, NULL))
        fixed = (struct topt_fixed){.any = 0};
    context = context > 0 ? context : fixed.context;
    return (context > 1 ? TOPT_APART_HEADS : 0) |
           (fixed.recompute == TOPT_MODULE_OP ? TOPT_APART_GATES : 0);
}

/* An option of its own that says the same, or that says nothing. */
static int agree(int64_t *own, int64_t fixed, const char *key, const char *option,
                 struct topt_error *err)
{
    if (fixed && *own && *own != fixed)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--degrees %s=%lld contradicts %s %lld; leave one out", key,
                         (long long)fixed, option, (long long)*own);
    *own = fixed ? fixed : *own;
    return 0;
}

int topt_fixed_take(struct topt_request *r, struct topt_error *err)
{
    const struct topt_fixed *f = &r->fixed;
    if (agree(&r->pipeline, f->stages, "pp", "--pipeline", err) ||
        agree(&r->virtual_stages, f->chunks, "vp", "--virtual-stages", err) ||
        agree(&r->context, f->context, "cp", "--context", err) ||
        agree(&r->expert, f->expert, "ep", "--expert", err) ||
        agree(&r->expert_tensor, f->expert_tensor, "etp", "--expert-tensor", err))
        return -1;
    if (f->chunks > 1 && f->stages == 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "--degrees vp=%lld: chunks are of pipeline stages; give pp of 2 "
                         "at least",
                         (long long)f->chunks);
    r->tensor_parallel |= f->tensor > 1;
    return 0;
}

/* ---- numbers of GPUs ------------------------------------------------------------------- */

int64_t topt_fixed_gpus(const struct topt_request *r, int *ret_whole)
{
    const struct topt_fixed *f = &r->fixed;
    const int64_t part[] = {f->tensor, r->pipeline, f->data, r->context};
    int64_t all = 1;
    for (int i = 0; i < 4; i++)
        all *= part[i] ? part[i] : 1;
    *ret_whole = f->tensor && r->pipeline && f->data;
    return all;
}

int topt_fixed_fit(const struct topt_request *r, int64_t gpus)
{
    int whole;
    int64_t all = topt_fixed_gpus(r, &whole);
    return whole ? gpus == all : gpus % all == 0;
}

/* "tp=8 x pp=8 x dp=16", without factors of 1 unless there are no others; how many factors that is. */
static int put_product(const struct topt_request *r, char *buf, size_t size)
{
    const struct topt_fixed *f = &r->fixed;
    const struct {
        const char *name;
        int64_t value;
    } part[] = {
        {"tp", f->tensor}, {"pp", r->pipeline}, {"cp", r->context}, {"dp", f->data}};
    int whole, factors = 0;
    int64_t least = topt_fixed_gpus(r, &whole) > 1 ? 2 : 1;
    size_t n = 0;
    *buf = '\0';
    for (int i = 0; i < 4; i++)
        if (part[i].value >= least)
            n += (size_t)snprintf(buf + n, size - n, "%s%s=%lld", factors++ ? " x " : "",
                                  part[i].name, (long long)part[i].value);
    return factors;
}

static int check_count(const struct topt_request *r, int64_t gpus, struct topt_error *err)
{
    char product[120], all_words[40] = "";
    int whole;
    int64_t all = topt_fixed_gpus(r, &whole);
    if (topt_fixed_fit(r, gpus))
        return 0;
    int factors = put_product(r, product, sizeof product);
    if (whole)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--degrees: %s is %lld GPU%s, not %lld; ask for as many GPUs, or "
            "change a degree",
            product, (long long)all, all == 1 ? "" : "s", (long long)gpus);
    if (factors > 1)
        snprintf(all_words, sizeof all_words, " = %lld", (long long)all);
    return topt_fail(err, TOPT_ERR_USAGE,
                     "--degrees: %s%s does not divide %lld GPUs; ask for another number "
                     "of GPUs, or change a degree",
                     product, all_words, (long long)gpus);
}

static int check_counts(const struct topt_request *r, struct topt_error *err)
{
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    int whole;
    int64_t needed = topt_fixed_gpus(r, &whole);
    if (r->gpus && check_count(r, r->gpus, err))
        return -1;
    for (int i = 0; i < r->ngpu_list; i++)
        if (check_count(r, r->gpu_list[i], err))
            return -1;
    all = r->max_gpus && r->max_gpus < all ? r->max_gpus : all;
    return needed <= all ? 0
                         : topt_fail(err, TOPT_ERR_USAGE,
                                     "--degrees need %lld GPUs, and there are %lld",
                                     (long long)needed, (long long)all);
}

/* ---- what the framework and the batch allow ------------------------------------------- */

static int check_batch(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_fixed *f = &r->fixed;
    int64_t dp = f->data ? f->data : 1, mbs = f->micro_batch ? f->micro_batch : 1;
    int64_t batch = r->model->batch, micro = r->micro_batches ? r->micro_batches : 1;
    if (batch % (dp * mbs))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--degrees: the batch of %lld is no multiple of %s, %lld",
                         (long long)batch,
                         !f->data          ? "mbs"
                         : !f->micro_batch ? "dp"
                                           : "dp x mbs",
                         (long long)(dp * mbs));
    if (f->data && f->micro_batch && r->micro_batches && dp * mbs * micro != batch)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--degrees: dp=%lld x mbs=%lld are %lld micro-batches of a batch "
            "of %lld, not %lld; leave out --micro-batches",
            (long long)dp, (long long)mbs, (long long)(batch / (dp * mbs)),
            (long long)batch, (long long)micro);
    return 0;
}

static int check_level(const struct topt_request *r, struct topt_error *err)
{
    const struct topt_framework *f = r->framework;
    int staged = r->pipeline > 1;
    int levels = staged ? f->pipeline_levels : f->zero;
    if (r->fixed.zero < 0 || r->fixed.data == 1 || levels >> r->fixed.zero & 1)
        return 0;
    return topt_fail(err, TOPT_ERR_USAGE, "zero=%lld: %s has no ZeRO-%lld%s",
                     (long long)r->fixed.zero, f->title, (long long)r->fixed.zero,
                     staged ? " beside pipeline stages" : "");
}

static int check_modules(const struct topt_request *r, struct topt_error *err)
{
    int asked = r->fixed.recompute > 0 ? (int)r->fixed.recompute : 0, present = 0;
    int lacks = asked & ~(r->framework->can_modules | TOPT_MODULE_WHOLE);
    char words[TOPT_MODULES_SIZE];
    uint8_t *again = NULL;
    const struct topt_order *order = r->schedule ? &topt_orders[r->schedule - 1] : NULL;
    if (asked && order && order->splits && !order->pairs)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "recompute=%s: schedule %s makes gradients of parameters apart, "
            "for which PyTorch recomputes twice, or refuses to (its issue 136766)",
            topt_modules_words(asked, words),
            topt_order_name((enum topt_order_row)(r->schedule - 1)));
    if (r->fixed.recompute_layers && (!r->framework->recompute_first || r->pipeline == 1))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "recompute=block:%lld needs pipeline stages (pp of 2 at least) of "
            "megatron or primus; else take recompute=full",
            (long long)r->fixed.recompute_layers);
    if (lacks)
        return topt_fail(err, TOPT_ERR_USAGE, "recompute=%s: %s recomputes no such part",
                         topt_modules_words(lacks, words), r->framework->title);
    if (asked > TOPT_MODULE_WHOLE && asked < TOPT_MODULE_OP) {
        if (topt_modules_again(r->model, &r->settings, asked, &again, &present, err))
            return -1;
        free(again);
        /* experts keep what moe_act would discard, and norms may be a part of the products behind them */
        present |= TOPT_MODULE_LAYERNORM;
        lacks =
            asked & ~(present | (topt_model_experts(r->model) ? TOPT_MODULE_MOE_ACT : 0));
    }
    return lacks ? topt_fail(err, TOPT_ERR_USAGE,
                             "recompute=%s: the model has no such part",
                             topt_modules_words(lacks, words))
                 : 0;
}

int topt_fixed_check(const struct topt_request *r, struct topt_error *err)
{
    if (!r->fixed.any)
        return 0;
    if (!r->framework || !r->framework->uniform_only || r->space != TOPT_SPACE_UNIFORM)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--degrees are one choice for the whole model; take --framework "
                         "pytorch, deepspeed, megatron or torchtitan, or --pin");
    return check_level(r, err) || check_modules(r, err) || check_counts(r, err) ||
                   check_batch(r, err)
               ? -1
               : 0;
}
