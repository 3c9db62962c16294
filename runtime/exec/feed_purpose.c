/* feed_purpose.c - what a model of text is for, and the tokens that stand for no text. */
#include "feed_texts.h"

#include <string.h>

/* Does an attention see what comes later, other than a decoder that looks at its encoder? */
static int looks_ahead(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        if (!strcmp(m->op[i].spec->name, "attention") && !m->op[i].attrs->causal)
            return 1;
    return 0;
}

enum topt_objective topt_feed_purpose(const struct topt_model *m)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    if (!n.tokens || n.features || !n.classes ||
        strcmp(n.tokens->spec->name, "embedding") != 0)
        return TOPT_LEARN_BY_MODEL;
    if (n.answers == 1 && m->seq > 1)
        return TOPT_LEARN_LABELS;
    if (n.answers != m->seq || n.classes < n.vocab)
        return TOPT_LEARN_BY_MODEL;
    if (n.encoder)
        return TOPT_LEARN_SPANS;
    return looks_ahead(m) ? TOPT_LEARN_MASKED : TOPT_LEARN_NEXT;
}

static int32_t first_of(const struct topt_tokenizer *t, const char *const names[])
{
    int32_t id = -1;
    for (int i = 0; names[i] && id < 0; i++)
        id = topt_tokenizer_find(t, names[i]);
    return id;
}

struct topt_specials topt_specials_of(const struct topt_tokenizer *t)
{
    struct topt_specials s = {
        .mask = first_of(t, (const char *const[]){"[MASK]", "<mask>", NULL}),
        .pad = first_of(t, (const char *const[]){"[PAD]", "<pad>", NULL}),
        .end = topt_tokenizer_end(t),
        .first = first_of(t, (const char *const[]){"[CLS]", NULL}),
        .span = topt_tokenizer_find(t, "<extra_id_0>")};
    if (s.end < 0)
        s.end = first_of(t, (const char *const[]){"[SEP]", "<|im_end|>", NULL});
    if (s.pad < 0)
        s.pad = s.end;
    return s;
}
