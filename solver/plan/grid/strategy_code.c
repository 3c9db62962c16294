/* strategy_code.c - uniform strategies as words that don't name a grid. */
#include "strategy_code.h"
#include "topt_array.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/* A word has no more letters, be it folded by a stranger. */
enum { MAX_WORD = 1 << 20, MAX_PERIOD = 256, MAX_WORDS = 1 << 16 };

void topt_strategy_codes_fini(struct topt_strategy_codes *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->word[i]);
    free(s->word);
    *s = (struct topt_strategy_codes){0};
}

/* ---- symbols ----------------------------------------------------------------------- */

static int same(const struct topt_strategy_symbol *a,
                const struct topt_strategy_symbol *b)
{
    return a->data == b->data && a->tensor == b->tensor && a->how == b->how &&
           a->recompute == b->recompute;
}

/* Its letter; 0 where there are too many. */
static char letter_of(struct topt_strategy_codes *s, struct topt_strategy_symbol x)
{
    int i = 0;
    while (i < s->nsymbols && !same(&s->symbol[i], &x))
        i++;
    if (i == TOPT_STRATEGY_SYMBOLS)
        return 0;
    if (i == s->nsymbols)
        s->symbol[s->nsymbols++] = x;
    return letters[i];
}

static const struct topt_strategy_symbol *symbol_of(const struct topt_strategy_codes *s,
                                                    char letter)
{
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at && at - letters < s->nsymbols ? &s->symbol[at - letters] : NULL;
}

/* Both dimensions of a configuration; -1 where axes of a kind differ. */
static int dims_of(const struct topt_mesh *mesh, int cut, const struct topt_config *c,
                   struct topt_strategy_symbol *ret)
{
    ret->data = cut > 0 ? c->dim[0] : -1;
    ret->tensor = cut < mesh->naxes ? c->dim[cut] : -1;
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] != (a < cut ? ret->data : ret->tensor))
            return -1;
    return 0;
}

static void give_dims(const struct topt_mesh *mesh, int cut,
                      const struct topt_strategy_symbol *x, struct topt_config *c)
{
    *c = topt_config_none();
    for (int a = 0; a < mesh->naxes; a++)
        c->dim[a] = a < cut ? x->data : x->tensor;
}

/* ---- words ------------------------------------------------------------------------- */

static size_t letters_in(const struct topt_model *m)
{
    size_t n = (size_t)m->nops;
    for (int t = 0; t < m->ntensors; t++)
        n += m->tensor[t].nconsumers > 1;
    for (int i = 0; i < m->nops; i++)
        n += (size_t)m->op[i].ninputs;
    return n;
}

static int spell(struct topt_strategy_codes *s, const struct topt_model *m,
                 const struct topt_mesh *mesh, int cut, const struct topt_strategy *st,
                 char *word)
{
    size_t n = 0;
    for (int i = 0; i < m->nops; i++) {
        const struct topt_config *c = &st->config[i];
        struct topt_strategy_symbol x = {.how = c->zero, .recompute = c->recompute};
        if (dims_of(mesh, cut, c, &x) || !(word[n++] = letter_of(s, x)))
            return -1;
    }
    for (int t = 0; t < m->ntensors; t++) {
        struct topt_strategy_symbol x = {.how = (uint8_t)st->hub[t].keep};
        if (m->tensor[t].nconsumers > 1 && (dims_of(mesh, cut, &st->hub[t].layout, &x) ||
                                            !(word[n++] = letter_of(s, x))))
            return -1;
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            word[n++] = letters[st->keep[i * TOPT_MAX_INPUTS + k]];
    return 0;
}

/* Takes the word over. */
static int add_word(struct topt_strategy_codes *s, char *word)
{
    if (TOPT_RESIZE(s->word, s->n + 1)) {
        free(word);
        return -1;
    }
    s->word[s->n] = word;
    return s->n++;
}

int topt_strategy_code_add(struct topt_strategy_codes *s, const struct topt_model *m,
                           const struct topt_mesh *mesh, int cut,
                           const struct topt_strategy *st)
{
    char *word = calloc(letters_in(m) + 1, 1);
    int i = 0;
    if (!word || spell(s, m, mesh, cut, st, word)) {
        free(word);
        return -1;
    }
    while (i < s->n && strcmp(s->word[i], word))
        i++;
    if (i == s->n)
        return add_word(s, word);
    free(word);
    return i;
}

static int read_word(const struct topt_strategy_codes *s, const char *word,
                     const struct topt_model *m, const struct topt_mesh *mesh, int cut,
                     struct topt_strategy *st)
{
    const struct topt_strategy_symbol *x;
    for (int i = 0; i < m->nops; i++) {
        if (!(x = symbol_of(s, *word++)))
            return -1;
        give_dims(mesh, cut, x, &st->config[i]);
        st->config[i].zero = x->how;
        st->config[i].recompute = x->recompute;
    }
    for (int t = 0; t < m->ntensors; t++) {
        if (m->tensor[t].nconsumers < 2)
            continue;
        if (!(x = symbol_of(s, *word++)))
            return -1;
        give_dims(mesh, cut, x, &st->hub[t].layout);
        st->hub[t].keep = x->how;
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            st->keep[i * TOPT_MAX_INPUTS + k] = (uint8_t)(*word++ - letters[0]);
    return 0;
}

/* Are its dimensions, levels and keeps ones that there are? */
static int sound(const struct topt_model *m, const struct topt_mesh *mesh,
                 const struct topt_strategy *st)
{
    for (int i = 0; i < m->nops; i++) {
        for (int a = 0; a < mesh->naxes; a++)
            if (st->config[i].dim[a] >= m->op[i].spec->ndims)
                return 0;
        for (int k = 0; k < m->op[i].ninputs; k++)
            if (st->keep[i * TOPT_MAX_INPUTS + k] > TOPT_KEEP_BEFORE)
                return 0;
        if (st->config[i].zero >= TOPT_ZERO_COUNT || st->config[i].recompute > 1)
            return 0;
    }
    for (int t = 0; t < m->ntensors; t++)
        for (int a = 0; a < mesh->naxes && m->tensor[t].nconsumers > 1; a++)
            if (st->hub[t].layout.dim[a] < TOPT_HUB_SUM ||
                st->hub[t].layout.dim[a] >= m->tensor[t].ndim ||
                st->hub[t].keep > TOPT_HUB_RECOMPUTE)
                return 0;
    return 1;
}

struct topt_strategy *topt_strategy_code_read(const struct topt_strategy_codes *s,
                                              int word, const struct topt_model *m,
                                              const struct topt_mesh *mesh, int cut)
{
    if (word < 0 || word >= s->n || strlen(s->word[word]) != letters_in(m))
        return NULL;
    struct topt_strategy *st = topt_strategy_create(m);
    if (st && (read_word(s, s->word[word], m, mesh, cut, st) || !sound(m, mesh, st))) {
        topt_strategy_destroy(st);
        return NULL;
    }
    return st;
}

/* ---- folding ----------------------------------------------------------------------- */

/* How often the first 'period' letters stand there one after the other. */
static size_t times_of(const char *at, size_t left, size_t period)
{
    size_t n = period;
    while (n < left && at[n] == at[n - period])
        n++;
    return n / period;
}

/* The period by which most letters from here on are written as one. */
static size_t best_period(const char *at, size_t left, size_t *ret_times)
{
    size_t best = 0, saved = 0;
    for (size_t p = 1; p <= MAX_PERIOD && 2 * p <= left; p++) {
        if (at[0] != at[p])
            continue;
        size_t times = times_of(at, left, p);
        size_t folded = p + 5 + (times > 99);
        if (times > 1 && times * p > folded && times * p - folded > saved) {
            saved = times * p - folded;
            best = p;
            *ret_times = times;
        }
    }
    return best;
}

static char *fold(const char *word)
{
    struct topt_text t = {0};
    size_t n = strlen(word), i = 0, times = 0;
    while (i < n) {
        size_t p = best_period(word + i, n - i, &times);
        if (p)
            topt_text_add(&t, "(%.*s)%zu.", (int)p, word + i, times);
        else
            topt_text_add(&t, "%c", word[i]);
        i += p ? p * times : 1;
    }
    return t.s;
}

/* A group at 'at' into 'word', of 'n' letters so far; the letters after it, or -1. */
static long unfold_group(const char **at, char *word, size_t n)
{
    const char *first = *at + 1, *end = strchr(first, ')');
    char *after = NULL;
    long times = end ? strtol(end + 1, &after, 10) : 0;
    size_t p = end ? (size_t)(end - first) : 0;
    if (!p || times < 2 || times > MAX_WORD || *after != '.' ||
        p * (size_t)times > MAX_WORD - n)
        return -1;
    for (long i = 0; i < times; i++, n += p)
        memcpy(word + n, first, p);
    *at = after + 1;
    return (long)n;
}

static char *unfold(const char *folded)
{
    char *word = malloc(MAX_WORD + 1), *fit;
    long n = 0;
    while (word && n >= 0 && *folded) {
        if (*folded == '(')
            n = unfold_group(&folded, word, (size_t)n);
        else if (n < MAX_WORD && strchr(letters, *folded))
            word[n++] = *folded++;
        else
            n = -1;
    }
    if (!word || n < 0) {
        free(word);
        return NULL;
    }
    word[n] = 0;
    fit = realloc(word, (size_t)n + 1);
    return fit ? fit : word;
}

/* ---- documents --------------------------------------------------------------------- */

void topt_strategy_codes_write(const struct topt_strategy_codes *s, json_t *doc)
{
    json_t *symbols = json_array(), *words = json_array();
    for (int i = 0; i < s->nsymbols; i++) {
        const struct topt_strategy_symbol *x = &s->symbol[i];
        json_array_append_new(
            symbols, json_pack("[i, i, i, i]", x->data, x->tensor, x->how, x->recompute));
    }
    for (int i = 0; i < s->n; i++) {
        char *folded = fold(s->word[i]);
        json_array_append_new(words, json_string(folded ? folded : ""));
        free(folded);
    }
    json_object_set_new(doc, "symbols", symbols);
    json_object_set_new(doc, "strategies", words);
}

static int read_symbol(const json_t *v, struct topt_strategy_symbol *ret)
{
    int x[4];
    if (json_unpack((json_t *)v, "[iiii!]", &x[0], &x[1], &x[2], &x[3]) || x[0] < -1 ||
        x[0] >= TOPT_MAX_OPDIMS || x[1] < -1 || x[1] >= TOPT_MAX_OPDIMS || x[2] < 0 ||
        x[2] > 9 || x[3] < 0 || x[3] > 1)
        return -1;
    *ret = (struct topt_strategy_symbol){(int8_t)x[0], (int8_t)x[1], (uint8_t)x[2],
                                         (uint8_t)x[3]};
    return 0;
}

static int read_symbols(const json_t *list, struct topt_strategy_codes *s,
                        struct topt_error *err)
{
    if (json_array_size(list) > TOPT_STRATEGY_SYMBOLS)
        return topt_fail(err, TOPT_ERR_INVAL, "symbols: %zu, there can be %d",
                         json_array_size(list), TOPT_STRATEGY_SYMBOLS);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (read_symbol(json_array_get(list, i), &s->symbol[s->nsymbols++]))
            return topt_fail(err, TOPT_ERR_INVAL, "symbols[%zu] is none", i);
    return 0;
}

int topt_strategy_codes_read(const json_t *doc, struct topt_strategy_codes *ret,
                             struct topt_error *err)
{
    const json_t *symbols, *words;
    *ret = (struct topt_strategy_codes){0};
    if (topt_json_array(doc, "", "symbols", &symbols, err) ||
        topt_json_array(doc, "", "strategies", &words, err) ||
        read_symbols(symbols, ret, err))
        return -1;
    if (json_array_size(words) > MAX_WORDS)
        return topt_fail(err, TOPT_ERR_INVAL, "strategies: too many");
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *folded = json_string_value(json_array_get(words, i));
        char *word = folded ? unfold(folded) : NULL;
        if (!word || add_word(ret, word) < 0) {
            topt_strategy_codes_fini(ret);
            return topt_fail(err, TOPT_ERR_INVAL, "strategies[%zu] is no word", i);
        }
    }
    return 0;
}
