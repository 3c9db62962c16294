/* modules.c - recomputation by module: which operators of a model run again where a framework is told names of
 * modules, or that every second product does; and which of them keep what Megatron-LM's fine-grained offloading of
 * activations copies to the host.
 *
 * Megatron-LM checkpoints a module in one of two ways.  Of core_attn, mlp, moe and shared_experts it keeps what
 * goes in and what comes out, and runs all of the module again; what layernorm and mla_up_proj make is discarded,
 * and made again where backward first reads it.  moe_act changes nothing here: experts keep what goes into their
 * activation alone (EXPERTS_BWD_REMAKE).  mlp is that of layers without experts; its norm is a part of its first
 * product, as Transformer Engine has it, while norms before latent attention and before a router are modules of
 * their own, which layernorm is said of.
 *
 * torchtitan keeps attention, what tokens were sent where, and of a layer's products every second one, the first
 * among them, also where backward does not read what it made; everything else runs again.  A router's product is not counted and
 * runs again.  That grouped products of experts run again is taken from the names that are listed there.
 *
 * Operators of a module are found by their roles and by who reads them, so that it is the same for every family.
 *
 * Fine-grained offloading copies tensors of 2^20 numbers and more that a module's operators save
 * (docs/user-guide/features/fine_grained_activation_offloading.md and core/transformer/attention.py,
 * multi_latent_attention.py, transformer_layer.py, moe/experts.py of NVIDIA/Megatron-LM d98e8a6, 2026-08-22).
 * qkv_linear is all from the norm's output up to attention; a norm that is a part of the product behind it, as
 * Transformer Engine has it but before latent attention and before a router, is saved with that product.  The output of
 * attention counts to attn_proj, which alone frees it; that core_attn copies it a second time is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_lower.h"

static const char *const names[] = {"full",      "core_attn",      "mlp",
                                    "moe",       "shared_experts", "moe_act",
                                    "layernorm", "mla_up_proj",    "op"};
enum { NAMES = sizeof names / sizeof *names };

static int find(const char *name, size_t len)
{
    for (int i = 0; i < NAMES; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], name, len))
            return 1 << i;
    return len == 1 && *name == '1' ? TOPT_MODULE_WHOLE : 0;
}

int topt_modules_parse(const char *text, int64_t *ret, struct topt_error *err)
{
    const int alone = TOPT_MODULE_WHOLE | TOPT_MODULE_OP;
    int all = 0;
    *ret = 0;
    if (!strcmp(text, "0") || !strcmp(text, "none"))
        return 0;
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "+");
        int one = find(at, n);
        if (!one)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "'%.30s' is not none (0), full (1), block:N, op, or of core_attn, mlp, "
                "moe, shared_experts, moe_act, layernorm and mla_up_proj some with + "
                "between",
                text);
        all |= one;
        at += n + (at[n] == '+');
    }
    if (!all || ((all & alone) && (all & (all - 1))))
        return topt_fail(err, TOPT_ERR_INVAL, "'%.60s': full and op stand alone", text);
    *ret = all;
    return 0;
}

const char *topt_modules_words(int modules, char buf[TOPT_MODULES_SIZE])
{
    size_t n = 0;
    snprintf(buf, TOPT_MODULES_SIZE, "none");
    for (int i = 0; i < NAMES; i++)
        if (modules >> i & 1)
            n += (size_t)snprintf(buf + n, TOPT_MODULES_SIZE - n, "%s%s", n ? "+" : "",
                                  names[i]);
    return buf;
}

/* ---- which operators ----------------------------------------------------------------- */

struct marks {
    const struct topt_model *m;
    const uint8_t *may;
    uint8_t *ret;
};

static int is(const struct topt_op *o, const char *kind)
{
    return !strcmp(o->spec->name, kind);
}

static const struct topt_tensor *output(const struct topt_model *m, int op)
{
    return &m->tensor[topt_output_tensor(&m->op[op])];
}

static int is_attention(const struct topt_op *o)
{
    return topt_kernel_work(o->spec->forward[0].kernel) == TOPT_WORK_ATTENTION;
}

/* Some of what is made is read behind operator 'last'. */
static int is_read_behind(const struct topt_model *m, int op, int last)
{
    int tensor = topt_output_tensor(&m->op[op]);
    for (int i = last + 1; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            if (topt_input_tensor(&m->op[i], k) == tensor)
                return 1;
    return 0;
}

/* Operators [first, last] of one module that is checkpointed: what leaves it is kept. */
static void checkpoint(struct marks *x, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (x->may[i])
            x->ret[i] = is_read_behind(x->m, i, last) ? TOPT_AGAIN_SAVED : TOPT_AGAIN_ALL;
}

static void discard(struct marks *x, int op)
{
    x->ret[op] = x->may[op] ? TOPT_AGAIN_ALL : TOPT_AGAIN_NOTHING;
}

/* Does an operator of that role read what operator 'op' makes? */
static int feeds(const struct topt_model *m, int op, int last, enum topt_op_role role)
{
    for (int i = op + 1; i < last; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            if (m->op[i].role == role && topt_input_producer(m, &m->op[i], k) == op)
                return 1;
    return 0;
}

/* Up to where latent attention has its narrow tensors, and to a norm that others read, too. */
static void discard_up(struct marks *x, int op, int first)
{
    const struct topt_op *o = &x->m->op[op];
    if (op < first || o->role == TOPT_ROLE_WHOLE ||
        (is(o, "norm") && output(x->m, op)->nconsumers > 1))
        return;
    discard(x, op);
    for (int k = 0; k < o->ninputs; k++)
        discard_up(x, topt_input_producer(x->m, o, k), first);
}

/* A feed-forward network's first operator, its norm where that reads into it alone, and its last. */
static int find_mlp(const struct topt_model *m, int first, int last, int with_norm,
                    int *ret_end)
{
    int begin = -1;
    for (int i = first; i < last; i++) {
        enum topt_op_role role = m->op[i].role;
        if (begin < 0 &&
            (role == TOPT_ROLE_GATE || role == TOPT_ROLE_UP || role == TOPT_ROLE_GATE_UP))
            begin = i;
        if (begin >= 0 && m->op[i].role == TOPT_ROLE_DOWN)
            *ret_end = i;
        else
            continue;
        int norm = topt_input_producer(m, &m->op[begin], 0);
        return with_norm && norm == begin - 1 && is(&m->op[norm], "norm") ? norm : begin;
    }
    return -1;
}

/* The modules of one layer, operators [first, last). */
static void mark_layer(struct marks *x, int first, int last, int modules)
{
    const struct topt_model *m = x->m;
    int router = -1, end;
    for (int i = first; i < last && router < 0; i++)
        router = m->op[i].role == TOPT_ROLE_ROUTER ? i : -1;
    for (int i = first; i < last; i++) {
        int latent = is_attention(&m->op[i]) && m->op[i].ninputs > 2;
        if (modules & TOPT_MODULE_CORE_ATTN && is_attention(&m->op[i]))
            checkpoint(x, i, i);
        for (int k = 0; latent && modules & TOPT_MODULE_MLA_UP_PROJ && k < 3; k++)
            discard_up(x, topt_input_producer(m, &m->op[i], k), first);
        if (modules & TOPT_MODULE_LAYERNORM && is(&m->op[i], "norm") &&
            output(m, i)->nconsumers > 1 &&
            (feeds(m, i, last, TOPT_ROLE_ROUTER) || feeds(m, i, last, TOPT_ROLE_WHOLE)))
            discard(x, i);
    }
    int mlp = find_mlp(m, first, last, router < 0, &end);
    if (mlp >= 0 && modules & (router < 0 ? TOPT_MODULE_MLP : TOPT_MODULE_SHARED_EXPERTS))
        checkpoint(x, mlp, end);
    if (router >= 0 && modules & TOPT_MODULE_MOE)
        checkpoint(x, router, last - 2); /* the last one adds what comes in */
}

static void mark_products(struct marks *x, int first, int last)
{
    int products = 0;
    for (int i = first; i < last; i++) {
        const struct topt_op *o = &x->m->op[i];
        int counts = is(o, "linear") && o->role != TOPT_ROLE_ROUTER, reads = 0;
        const struct topt_tensor *t = output(x->m, i);
        products += counts;
        if (is_attention(o) || is(o, "dispatch") || is(o, "route"))
            continue;
        if (!counts || products % 2 == 0) {
            discard(x, i);
            continue;
        }
        for (int c = i + 1; c < last; c++)
            for (int k = 0; k < x->m->op[c].ninputs; k++)
                reads |= topt_input_producer(x->m, &x->m->op[c], k) == i &&
                         x->m->op[c].reads_back >> x->m->op[c].input[k] & 1;
        x->ret[i] = !reads && t->nconsumers == 1 && x->may[i] ? TOPT_AGAIN_KEPT
                                                              : TOPT_AGAIN_NOTHING;
    }
}

int topt_modules_again(const struct topt_model *m, const struct topt_settings *s,
                       int modules, uint8_t **ret, int *ret_present,
                       struct topt_error *err)
{
    struct marks x = {.m = m};
    uint8_t *may;
    int present = 0;
    if (topt_recomputable(m, s, &may, err))
        return -1;
    if (modules == TOPT_MODULE_WHOLE) {
        *ret = may;
        return 0;
    }
    x.may = may;
    *ret = x.ret = calloc((size_t)m->nops + 1, 1);
    for (int first = 0, last; x.ret && first < m->nops; first = last) {
        for (last = first + 1; last < m->nops && m->unit[last] == m->unit[first];)
            last++;
        if (m->unit[first] < 0)
            continue;
        if (modules & TOPT_MODULE_OP)
            mark_products(&x, first, last);
        for (int b = TOPT_MODULE_CORE_ATTN; b < TOPT_MODULE_OP; b <<= 1) {
            if (!(modules & b))
                continue;
            mark_layer(&x, first, last, b);
            for (int i = first; ret_present && i < last; i++) {
                present |= x.ret[i] ? b : 0;
                x.ret[i] = 0;
            }
        }
    }
    if (ret_present)
        *ret_present = present;
    free(may);
    return *ret ? 0 : topt_nomem(err, "the model's modules");
}

/* ---- which are copied to the host ------------------------------------------------------ */

static int offload_module(const struct topt_model *m, int op)
{
    const struct topt_op *o = &m->op[op];
    int last = op + 1;
    if (m->unit[op] < 0 || is_attention(o) || o->role == TOPT_ROLE_OUT)
        return m->unit[op] < 0   ? 0
               : is_attention(o) ? TOPT_OFFLOAD_OF(CORE_ATTN)
                                 : TOPT_OFFLOAD_OF(ATTN_PROJ);
    if (o->role == TOPT_ROLE_EXPERT)
        return TOPT_OFFLOAD_OF(EXPERT_FC1) | TOPT_OFFLOAD_OF(MOE_ACT);
    while (last < m->nops && m->unit[last] == m->unit[op])
        last++;
    if (is(o, "norm") && feeds(m, op, last, TOPT_ROLE_ROUTER))
        return TOPT_OFFLOAD_OF(MLP_NORM);
    for (int i = op + 1; i < last; i++)
        if (is_attention(&m->op[i])) /* of a layer the first operator is its norm */
            return m->op[i].ninputs > 2 && (!op || m->unit[op - 1] != m->unit[op])
                       ? TOPT_OFFLOAD_OF(ATTN_NORM)
                       : TOPT_OFFLOAD_OF(QKV_LINEAR);
    return 0;
}

int topt_offload_present(const struct topt_model *m)
{
    int all = 0;
    for (int i = 0; i < m->nops; i++)
        all |= offload_module(m, i);
    return all;
}

double topt_offload_share(const struct topt_model *m, const struct topt_settings *s,
                          int op, int hub)
{
    int tensor = topt_output_tensor(&m->op[op]), found = !hub;
    if (s->offload & TOPT_OFFLOAD_ACTIVATIONS)
        return 1;
    while (!found && ++op < m->nops)
        for (int k = 0; k < m->op[op].ninputs; k++)
            found |= topt_input_tensor(&m->op[op], k) == tensor;
    const struct topt_op *o = &m->op[op];
    int64_t of = s->offload & offload_module(m, op);
    if (o->role != TOPT_ROLE_EXPERT || hub)
        return of != 0;
    double part[2] = {(double)topt_operand_numbers(o, o->input[0]), 0};
    for (int x = 0; x < o->spec->noperands; x++)
        part[1] +=
            o->operand[x].role == TOPT_SAVED ? (double)topt_operand_numbers(o, x) : 0;
    return ((of & TOPT_OFFLOAD_OF(EXPERT_FC1)) != 0) * part[0] / (part[0] + part[1]) +
           ((of & TOPT_OFFLOAD_OF(MOE_ACT)) != 0) * part[1] / (part[0] + part[1]);
}
