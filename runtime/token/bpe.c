/* bpe.c - byte pair encoding of one word: its characters are symbols, and of all neighbours that
 * a merge joins those of the first merge are joined first, the leftmost of equal ones.
 *
 * Symbols are a list; neighbours that can be joined wait in a heap, so that a word of n
 * characters takes n log n.  What waits may be out of date when its turn comes. */
#include "bpe.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- merges ------------------------------------------------------------------------ */

static struct topt_merge *at(const struct topt_bpe *b, int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(h >> 32) & b->mask;
    while (b->slot[i].rank >= 0 && (b->slot[i].left != left || b->slot[i].right != right))
        i = (i + 1) & b->mask;
    return &b->slot[i];
}

static int32_t joined(const struct topt_vocab *v, int32_t left, int32_t right)
{
    char buf[1024];
    const struct topt_piece *l = &v->piece[left], *r = &v->piece[right];
    if (l->len + r->len > sizeof buf)
        return -1;
    memcpy(buf, l->s, l->len);
    memcpy(buf + l->len, r->s, r->len);
    return topt_vocab_find(v, buf, l->len + r->len);
}

/* "left right", or a pair of both. */
static int read_merge(const struct topt_vocab *v, const json_t *doc, int32_t *ret_left,
                      int32_t *ret_right)
{
    const char *s = json_string_value(doc), *blank = s ? strchr(s, ' ') : NULL;
    if (blank) {
        *ret_left = topt_vocab_find(v, s, (size_t)(blank - s));
        *ret_right = topt_vocab_find(v, blank + 1, strlen(blank + 1));
    } else {
        const json_t *l = json_array_get(doc, 0), *r = json_array_get(doc, 1);
        if (!json_is_string(l) || !json_is_string(r))
            return -1;
        *ret_left = topt_vocab_find(v, json_string_value(l), json_string_length(l));
        *ret_right = topt_vocab_find(v, json_string_value(r), json_string_length(r));
    }
    return *ret_left >= 0 && *ret_right >= 0 ? 0 : -1;
}

static int read_merges(struct topt_bpe *b, const json_t *merges, struct topt_error *err)
{
    size_t n = json_array_size(merges);
    uint32_t size = 16;
    while (size < 2 * n)
        size *= 2;
    b->slot = malloc(size * sizeof *b->slot);
    if (!b->slot)
        return topt_nomem(err, "the tokenizer");
    for (uint32_t i = 0; i < size; i++)
        b->slot[i].rank = -1;
    b->mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        int32_t left, right, made = -1;
        if (!read_merge(b->vocab, json_array_get(merges, i), &left, &right))
            made = joined(b->vocab, left, right);
        if (made < 0)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "model.merges[%zu] joins what is not in the vocabulary", i);
        *at(b, left, right) = (struct topt_merge){left, right, (int32_t)i, made};
    }
    return 0;
}

static int plain(const json_t *model, const char *key, struct topt_error *err)
{
    const json_t *x = json_object_get(model, key);
    const char *s = json_string_value(x);
    return !x || json_is_null(x) || (s && !*s) ||
                   (json_is_real(x) && json_real_value(x) == 0)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "model.%s is not known here", key);
}

int topt_bpe_init(struct topt_bpe *b, const struct topt_vocab *vocab, const json_t *model,
                  struct topt_error *err)
{
    const json_t *merges;
    const char *unk = json_string_value(json_object_get(model, "unk_token"));
    *b = (struct topt_bpe){.vocab = vocab};
    if (plain(model, "dropout", err) || plain(model, "continuing_subword_prefix", err) ||
        plain(model, "end_of_word_suffix", err) ||
        topt_json_array(model, "model", "merges", &merges, err))
        return -1;
    b->unk = unk ? topt_vocab_find(vocab, unk, strlen(unk)) : -1;
    b->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    b->fuse_unk = json_is_true(json_object_get(model, "fuse_unk"));
    b->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    topt_vocab_bytes(vocab, b->byte);
    return read_merges(b, merges, err);
}

void topt_bpe_fini(struct topt_bpe *b)
{
    free(b->slot);
    b->slot = NULL;
}

/* ---- words ------------------------------------------------------------------------- */

struct symbol {
    int32_t id; /* -1: it became part of the one before it */
    int32_t before, next;
};
struct waiting {
    int32_t rank, at, made;
};
struct word {
    struct symbol *symbol;
    struct waiting *heap;
    int32_t n, nheap;
};

static int comes_before(const struct waiting *a, const struct waiting *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(struct word *w, struct waiting x)
{
    int32_t i = w->nheap++;
    while (i && comes_before(&x, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = x;
}

static struct waiting pop(struct word *w)
{
    struct waiting top = w->heap[0], last = w->heap[--w->nheap];
    int32_t i = 0;
    for (int32_t child; (child = 2 * i + 1) < w->nheap; i = child) {
        if (child + 1 < w->nheap && comes_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* Symbol 'at' and the next one wait, where a merge joins them. */
static void offer(const struct topt_bpe *b, struct word *w, int32_t at_symbol)
{
    const struct symbol *s = at_symbol >= 0 ? &w->symbol[at_symbol] : NULL;
    if (!s || s->next < 0)
        return;
    const struct topt_merge *m = at(b, s->id, w->symbol[s->next].id);
    if (m->rank >= 0)
        push(w, (struct waiting){m->rank, at_symbol, m->made});
}

static void put_symbol(struct word *w, int32_t id)
{
    int32_t i = w->n++;
    w->symbol[i] = (struct symbol){id, i - 1, -1};
    if (i)
        w->symbol[i - 1].next = i;
}

static void put_unknown(const struct topt_bpe *b, struct word *w, const char *s,
                        size_t len, int *after_unk)
{
    int bytes = b->byte_fallback;
    for (size_t i = 0; i < len; i++)
        bytes = bytes && b->byte[(unsigned char)s[i]] >= 0;
    for (size_t i = 0; i < len && bytes; i++)
        put_symbol(w, b->byte[(unsigned char)s[i]]);
    if (bytes || b->unk < 0)
        return;
    if (!(b->fuse_unk && *after_unk))
        put_symbol(w, b->unk);
    *after_unk = 1;
}

static void put_characters(const struct topt_bpe *b, struct word *w, const char *s,
                           size_t len)
{
    int after_unk = 0;
    for (size_t i = 0, n; i < len; i += n) {
        n = topt_char_len(s + i);
        int32_t id = topt_vocab_find(b->vocab, s + i, n);
        if (id >= 0) {
            put_symbol(w, id);
            after_unk = 0;
        } else {
            put_unknown(b, w, s + i, n, &after_unk);
        }
    }
}

static void join(const struct topt_bpe *b, struct word *w)
{
    for (int32_t i = 0; i < w->n; i++)
        offer(b, w, i);
    while (w->nheap) {
        struct waiting x = pop(w);
        struct symbol *s = &w->symbol[x.at];
        if (s->id < 0 || s->next < 0)
            continue;
        struct symbol *right = &w->symbol[s->next];
        const struct topt_merge *m = at(b, s->id, right->id);
        if (m->rank < 0 || m->made != x.made)
            continue;
        s->id = x.made;
        s->next = right->next;
        if (right->next >= 0)
            w->symbol[right->next].before = x.at;
        right->id = -1;
        offer(b, w, s->before);
        offer(b, w, x.at);
    }
}

int topt_bpe_word(const struct topt_bpe *b, const char *s, size_t len,
                  struct topt_ids *ids, struct topt_error *err)
{
    int32_t whole = b->ignore_merges ? topt_vocab_find(b->vocab, s, len) : -1;
    if (whole >= 0)
        return topt_ids_put(ids, whole, err);
    if (len > INT32_MAX / 4)
        return topt_fail(err, TOPT_ERR_LIMIT, "a word of %zu bytes", len);
    /* each join takes a symbol away, and offers two */
    struct word w = {.symbol = malloc((len + 1) * sizeof *w.symbol),
                     .heap = malloc((3 * len + 1) * sizeof *w.heap)};
    int rc = w.symbol && w.heap ? 0 : topt_nomem(err, "a word");
    if (!rc) {
        put_characters(b, &w, s, len);
        join(b, &w);
    }
    for (int32_t i = 0; i < w.n && !rc; i++)
        if (w.symbol[i].id >= 0)
            rc = topt_ids_put(ids, w.symbol[i].id, err);
    free(w.symbol);
    free(w.heap);
    return rc;
}
