/* names.c - the words people write for modes, spaces, types and optimizers.
 *
 * An enumeration without negative values is compatible with unsigned int, of GCC and Clang, and so is a function that names its values. */
#include "topt_question.h"
#include "topt_near.h"
#include "topt_named.h"
#include "topt_text.h"

#include <stdio.h>
#include <string.h>

static const char *const modes[] = {"mini-time", "mini-parallelism", "profiling"};
static const char *const spaces[] = {"auto", "full", "canonical", "uniform"};
static const char *const counts[] = {"any", "pow2", "whole", "nodes"};
static const char *const blocks[] = {"auto", "free", "alike"};
static const struct bits {
    const char *name;
    int bits;
} factors[] = {{"zero", TOPT_FACTOR_ZERO},
               {"recompute", TOPT_FACTOR_RECOMPUTE},
               {"micro", TOPT_FACTOR_MICRO},
               {"all", TOPT_FACTORS_ALL},
               {"none", 0},
               {"auto", TOPT_FACTORS_AUTO}};
enum { FACTORS = sizeof factors / sizeof *factors, ALONE = 3 /* from here on */ };
static const struct bits eager_parts[] = {
    {"operators", TOPT_EAGER_OPERATORS | TOPT_EAGER_NORMS},
    {"scores", TOPT_EAGER_OPERATORS | TOPT_EAGER_NORMS | TOPT_EAGER_SCORES},
    {"loss", TOPT_EAGER_LOSS},
    {"optimizer-loop", TOPT_EAGER_OPTIMIZER | TOPT_EAGER_LOOP},
    {"optimizer", TOPT_EAGER_OPTIMIZER},
    {"operators-but-norms", TOPT_EAGER_OPERATORS},
    {"metrics", TOPT_EAGER_METRICS},
    {"all", TOPT_EAGER_OPERATORS | TOPT_EAGER_NORMS | TOPT_EAGER_SCORES |
                TOPT_EAGER_LOSS | TOPT_EAGER_OPTIMIZER},
    {"none", 0}};
static const struct bits offers[TOPT_OFFERS] = {
    {"optimizer", 1 << TOPT_OFFER_OPTIMIZER},
    {"parameters", 1 << TOPT_OFFER_PARAMETERS},
    {"activations", 1 << TOPT_OFFER_ACTIVATIONS},
#define MODULE_OFFER(name, word) {word, 1 << TOPT_OFFER_##name},
    TOPT_OFFLOAD_MODULE_NAMES(MODULE_OFFER)};
enum { EAGER_PARTS = sizeof eager_parts / sizeof *eager_parts, EAGER_ALONE = 7 };

int topt_name_find(const char *what, const char *name, const char *(*at)(unsigned),
                   unsigned n, unsigned *ret, struct topt_error *err)
{
    struct topt_text all = {0};
    char meant[TOPT_NEAR_MATCHES];
    const char *known[32] = {NULL}; /* no table has as many words */
    for (unsigned i = 0; i < n; i++) {
        known[i] = at(i);
        if (!strcmp(at(i), name)) {
            *ret = i;
            topt_text_fini(&all);
            return 0;
        }
        topt_text_add(&all, "%s%s", i ? ", " : "", at(i));
    }
    topt_fail(err, TOPT_ERR_INVAL, "unknown %s '%.40s'%s (one of %s)", what, name,
              topt_near_guess(name, known, meant), all.s ? all.s : "");
    topt_text_fini(&all);
    return -1;
}

TOPT_NAMED_HERE(counts_at, sizeof counts / sizeof *counts, counts[i])
TOPT_NAMED_HERE(factor_at, FACTORS, factors[i].name)
TOPT_NAMED_HERE(eager_at, EAGER_PARTS, eager_parts[i].name)
TOPT_NAMED_HERE(offer_at, TOPT_OFFERS, offers[i].name)
TOPT_NAMED(topt_offer_name, enum topt_offer, TOPT_OFFERS, offers[i].name)
TOPT_NAMED(topt_mode_name, enum topt_mode, TOPT_MODE_COUNT, modes[i])
TOPT_NAMED(topt_space_name, enum topt_space, TOPT_SPACE_COUNT, spaces[i])
TOPT_NAMED(topt_blocks_name, enum topt_block_choice, TOPT_BLOCKS_COUNT, blocks[i])

#define PARSE(word, type, what, name_of, count)                                          \
    int topt_##word##_parse(const char *name, type *ret, struct topt_error *err)         \
    {                                                                                    \
        return topt_name_find(what, name, name_of, count, ret, err);                     \
    }
TOPT_WORDS(PARSE)

/* A list of names with commas, each of which says bits; those from 'alone' on stand
 * alone. */
static int read_list(const char *what, const char *list, const struct bits *names,
                     unsigned n, unsigned alone, const char *(*at)(unsigned), int *ret,
                     struct topt_error *err)
{
    const char *from = NULL;
    char name[64];
    int bits = 0, count = 0, whole = 0, rc;
    unsigned i;
    for (; (rc = topt_list_next(list, &from, name, sizeof name, err)) > 0; count++) {
        if (topt_name_find(what, name, at, n, &i, err))
            return -1;
        bits |= names[i].bits;
        whole |= i >= alone;
    }
    if (rc)
        return topt_wrap(err, "%ss", what);
    if (whole && count > 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%ss '%.40s': %s and those after it stand alone", what, list,
                         names[alone].name);
    *ret = bits;
    return 0;
}

#define LIST_BY_NAME(word, what, rows, n, alone, at)                                     \
    int topt_##word##_parse(const char *list, int *ret, struct topt_error *err)          \
    {                                                                                    \
        return read_list(what, list, rows, n, alone, at, ret, err);                      \
    }
LIST_BY_NAME(factors, "factor", factors, FACTORS, ALONE, factor_at)
LIST_BY_NAME(eager, "eager part", eager_parts, EAGER_PARTS, EAGER_ALONE, eager_at)
LIST_BY_NAME(offload, "thing to offload", offers, TOPT_OFFERS, TOPT_OFFERS, offer_at)

char *topt_eager_words(int parts)
{
    struct topt_text t = {0};
    for (int i = 0, said = 0; i < EAGER_ALONE; i++) {
        int bits = eager_parts[i].bits;
        if ((parts & bits) == bits && bits & ~said)
            topt_text_add(&t, "%s%s", t.s ? "," : "", eager_parts[i].name);
        said |= (parts & bits) == bits ? bits : 0;
    }
    if (!t.s)
        topt_text_add(&t, "none");
    return t.s;
}

/* Blocks are alike in the uniform space unless it is said that they are not. */
const char *topt_space_words(enum topt_space space, int alike, char *buf, size_t size)
{
    int uniform = space == TOPT_SPACE_UNIFORM;
    snprintf(buf, size, "%s%s", topt_space_name(space),
             alike == uniform ? ""
             : alike          ? ", blocks alike"
                              : ", blocks free");
    return buf;
}

void topt_request_init(struct topt_request *r)
{
    *r = (struct topt_request){.mode = TOPT_MINI_PARALLELISM,
                               .space = TOPT_SPACE_AUTO,
                               .factors = TOPT_FACTORS_AUTO,
                               .settings = topt_settings_default(),
                               .threads = 1,
                               .fixed = {.zero = -1, .recompute = -1}};
    r->settings.granule_bytes = 0;
}

struct topt_settings topt_request_settings(const struct topt_request *r)
{
    struct topt_settings s = r->settings;
    if (s.granule_bytes == 0)
        s.granule_bytes = topt_hw_granule_bytes(r->hw);
    return s;
}
