/* train_options.c - what a training is told beside its model: options by the names that they
 * have for `topt plan` and `topt run`. */
#include "topt_array.h"
#include "topt_options.h"
#include "train_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct topt_train_options, field)

/* Of the strategy first. */
enum { EARLY = 3 };
static const struct topt_option rows[] = {
    {"train", TOPT_OPT_STRING, AT(train), "WHAT", "what is trained"},
    {"dtype", TOPT_OPT_STRING, AT(dtype), "f32|f64", "number type"},
    {"micro-batches", TOPT_OPT_COUNT, AT(micro_batches), "N", "parts of a batch"},
    {"schedule", TOPT_OPT_STRING, AT(schedule), "constant|cosine", "of the rate"},
    {"steps", TOPT_OPT_COUNT, AT(steps), "N", "where the cosine ends"},
    {"warmup", TOPT_OPT_INT, AT(warmup), "N", "steps in which the rate grows"},
    {"min-lr", TOPT_OPT_REAL, AT(min_lr), "X", "where the cosine ends"},
    {"clip", TOPT_OPT_POSITIVE, AT(clip), "X", "norm of all gradients"},
    {"weight-decay", TOPT_OPT_REAL, AT(weight_decay), "X", "of adamw"},
    {"dropout", TOPT_OPT_REAL, AT(dropout.residual), "X", "of what layers add"},
    {"attention-dropout", TOPT_OPT_REAL, AT(dropout.attention), "X", "of its weights"},
    {"adapter-dropout", TOPT_OPT_REAL, AT(dropout.adapter), "X", "of what adapters read"},
    {"balance", TOPT_OPT_REAL, AT(balance), "X", "of experts, beside the loss"},
    {"tokenizer", TOPT_OPT_STRING, AT(tokenizer), "FILE", "by which texts are read"},
    {0}};

static int find(const char *name)
{
    int i = 0;
    while (rows[i].name && strcmp(rows[i].name, name) != 0)
        i++;
    return i;
}

static int check_words(const struct topt_train_options *o, struct topt_error *err)
{
    enum topt_dtype dtype;
    if (o->schedule && strcmp(o->schedule, "constant") && strcmp(o->schedule, "cosine"))
        return topt_fail(err, TOPT_ERR_USAGE, "unknown schedule '%.40s'", o->schedule);
    return o->dtype && topt_dtype_parse(o->dtype, &dtype, err) ? -1 : 0;
}

int topt_train_set(struct topt_train *t, const char *name, const char *value,
                   struct topt_error *err)
{
    int i = find(name), n = 0;
    const char *none;
    char option[64];
    if (!rows[i].name)
        return topt_fail(err, TOPT_ERR_USAGE, "there is no option '%.40s'", name);
    if (t->session || (t->plan && i < EARLY))
        return topt_fail(err, TOPT_ERR_INVAL, "'%s' must come before the %s", name,
                         i < EARLY ? "strategy" : "training is built");
    if (TOPT_ROOM(t->words, t->nwords, t->words_cap, 8) ||
        !(t->words[t->nwords] = strdup(value)))
        return topt_nomem(err, NULL);
    snprintf(option, sizeof option, "--%s", name);
    char *argv[] = {option, option, t->words[t->nwords++]};
    return topt_options_parse(rows, 3, argv, &t->options, &none, 0, &n, err) ||
                   check_words(&t->options, err)
               ? -1
               : 0;
}
