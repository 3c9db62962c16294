/* unigram.c - the likeliest pieces of one word: the best path through all pieces that it has,
 * from left to right (Viterbi).  A character that is no piece costs 10 more than the worst. */
#include "unigram.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b, void *ctx)
{
    const struct topt_vocab *v = ctx;
    const struct topt_piece *x = &v->piece[*(const int32_t *)a],
                            *y = &v->piece[*(const int32_t *)b];
    int c = memcmp(x->s, y->s, x->len < y->len ? x->len : y->len);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

int topt_unigram_init(struct topt_unigram *u, const struct topt_vocab *vocab,
                      const json_t *model, struct topt_error *err)
{
    const json_t *unk = json_object_get(model, "unk_id");
    double worst = 0;
    *u = (struct topt_unigram){
        .vocab = vocab,
        .unk = unk && json_is_integer(unk) ? (int32_t)json_integer_value(unk) : -1};
    u->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    u->sorted = malloc(((size_t)vocab->n + 1) * sizeof *u->sorted);
    if (!u->sorted)
        return topt_nomem(err, "the tokenizer");
    for (int32_t i = 0; i < vocab->n; i++) {
        if (!vocab->piece[i].s || !vocab->piece[i].len)
            continue;
        u->sorted[u->n++] = i;
        worst =
            u->n == 1 || vocab->piece[i].score < worst ? vocab->piece[i].score : worst;
    }
    qsort_r(u->sorted, (size_t)u->n, sizeof *u->sorted, compare,
            (void *)(uintptr_t)vocab);
    u->unk_score = worst - 10;
    topt_vocab_bytes(vocab, u->byte);
    return 0;
}

void topt_unigram_fini(struct topt_unigram *u)
{
    free(u->sorted);
    u->sorted = NULL;
}

/* Best way to the place after some bytes: its last piece and where that begins. */
struct node {
    double score;
    int64_t from; /* -1: no way yet */
    int32_t id;
};

static void reach(struct node *to, double score, int64_t from, int32_t id)
{
    if (to->from < 0 || score > to->score)
        *to = (struct node){score, from, id};
}

/* First of the sorted pieces in [low, high) whose byte 'k' is not below 'c'. */
static int32_t bound(const struct topt_unigram *u, int32_t low, int32_t high, size_t k,
                     int c)
{
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        const struct topt_piece *p = &u->vocab->piece[u->sorted[mid]];
        int here = k < p->len ? (unsigned char)p->s[k] : -1;
        if (here < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* All pieces that begin at 'at': the sorted ones that agree so far are narrowed byte by byte. */
static void step(const struct topt_unigram *u, const char *s, size_t len, size_t at,
                 struct node *node)
{
    size_t character = topt_char_len(s + at);
    int32_t low = 0, high = u->n;
    int single = 0;
    for (size_t k = 0; at + k < len && low < high; k++) {
        int c = (unsigned char)s[at + k];
        low = bound(u, low, high, k, c);
        high = bound(u, low, high, k, c + 1);
        if (low >= high || u->vocab->piece[u->sorted[low]].len != k + 1)
            continue;
        int32_t id = u->sorted[low];
        reach(&node[at + k + 1], node[at].score + u->vocab->piece[id].score, (int64_t)at,
              id);
        single |= k + 1 == character;
    }
    if (!single)
        reach(&node[at + character], node[at].score + u->unk_score, (int64_t)at, -1);
}

/* What is no piece, characters in a row together: its bytes, or one unknown token. */
static int put_unknown(const struct topt_unigram *u, const char *s, size_t len,
                       struct topt_ids *ids, struct topt_error *err)
{
    int bytes = u->byte_fallback, rc = 0;
    for (size_t i = 0; i < len; i++)
        bytes = bytes && u->byte[(unsigned char)s[i]] >= 0;
    for (size_t i = 0; i < len && bytes && !rc; i++)
        rc = topt_ids_put(ids, u->byte[(unsigned char)s[i]], err);
    if (bytes || rc)
        return rc;
    return u->unk >= 0 ? topt_ids_put(ids, u->unk, err)
                       : topt_fail(err, TOPT_ERR_INVAL,
                                   "'%.*s' is in no piece, and there is no unk_id",
                                   len < 40 ? (int)len : 40, s);
}

int topt_unigram_word(const struct topt_unigram *u, const char *s, size_t len,
                      struct topt_ids *ids, struct topt_error *err)
{
    struct node *node = malloc((len + 1) * sizeof *node);
    int rc = node ? 0 : topt_nomem(err, "a word");
    for (size_t i = 0; i <= len && node; i++)
        node[i] = (struct node){0, i ? -1 : 0, -1};
    for (size_t i = 0; i < len && node; i += topt_char_len(s + i))
        step(u, s, len, i, node);
    /* back along the best way, turning 'from' into where the piece ends */
    int64_t next = -1;
    for (int64_t i = (int64_t)len; node && i > 0;) {
        int64_t from = node[i].from;
        node[i].from = next;
        next = i;
        i = from;
    }
    for (int64_t at = 0, end = next; node && end > 0 && !rc;) {
        int64_t begin = at;
        int32_t id = node[end].id;
        while (id < 0 && node[end].from > 0 && node[node[end].from].id < 0)
            end = node[end].from;
        rc = id >= 0 ? topt_ids_put(ids, id, err)
                     : put_unknown(u, s + begin, (size_t)(end - begin), ids, err);
        at = end;
        end = node[end].from;
    }
    free(node);
    return rc;
}
