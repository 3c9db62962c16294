/* twins.c - tables of repeated layers, which weigh the same but for a number.
 *
 * A deep model is a chain of alike layers: a vector V times the same tables, again and again, in the
 * algebra of least and plus.  After some layers one more adds the same number to every entry (the
 * least mean of a circle through the layer: Cuninghame-Green, Minimax Algebra, 1979), and then it
 * does so to the end:
 *
 *     layer i        V  --A--> U  --B--> W          table and twin: made by the same recipe, of
 *     layer i + 1    V' --A--> U' --B--> W'         the same leaves or of twins
 *                    V' = V + c   =>   U' = U + c   and   W' = W + c
 *
 * So where V' is seen to be V and a number, which takes one look at each entry, nothing of the layer
 * needs to be computed.  Backward it is the same with what is left, where that grows by the same number
 * from layer to layer as what is done does. */
#include "twins.h"

#include <string.h>

enum { LOOK = 64, HEAD = 2 }; /* the first two numbers of a recipe name A and B */

/* ---- who is the twin of whom ----------------------------------------------------------------- */

static int same_recipe(const struct step *s, const struct step *t)
{
    return s->recipe_len == t->recipe_len &&
           !memcmp(s->recipe + HEAD, t->recipe + HEAD,
                   (s->recipe_len - HEAD) * sizeof *s->recipe);
}

static int alike(const struct table *x, const struct table *y)
{
    return x == y || (x && y && x->twin == y);
}

void topt_twin_find(struct tables *ts, struct table *t)
{
    const struct step *s = &t->how;
    uint64_t h =
        topt_hash(s->recipe + HEAD, (s->recipe_len - HEAD) * sizeof *s->recipe, 1);
    struct table **bucket = &ts->kin[h % TOPT_KIN_BUCKETS], *best = NULL;
    int look = LOOK;
    for (struct table *u = *bucket; u && look; u = u->kin, look--) {
        if (u->how.a->nentries != s->a->nentries || !s->b != !u->how.b ||
            !same_recipe(s, &u->how) || !alike(s->b, u->how.b))
            continue;
        best = best ? best : u;
        if (s->a->twin == u->how.a) {
            best = u;
            break;
        }
    }
    t->kin = *bucket;
    *bucket = t;
    t->twin = best;
    if (best && !best->heir)
        best->heir = t;
}

/* ---- entries that differ by a number --------------------------------------------------------- */

static int differ_by(const int64_t *x, const int64_t *y, int64_t n, int64_t *ret)
{
    int some = 0;
    *ret = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((x[i] == TOPT_NOTHING) != (y[i] == TOPT_NOTHING))
            return 0;
        if (x[i] == TOPT_NOTHING)
            continue;
        if (!some++)
            *ret = x[i] - y[i];
        else if (x[i] - y[i] != *ret)
            return 0;
    }
    return 1;
}

static void add(int64_t *x, const int64_t *y, int64_t n, int64_t c)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = y[i] == TOPT_NOTHING ? TOPT_NOTHING : y[i] + c;
}

/* Does 'x' weigh what its twin 'y' does and a number? */
static int least_by(const struct table *x, const struct table *y, struct bound *b,
                    int64_t *ret)
{
    *ret = 0;
    if (x == y)
        return 1;
    struct shift *known = &b->shift[x->id];
    if (x->leaf || y->leaf || x->twin != y)
        return 0;
    if (!known->looked) {
        known->looked = 1;
        known->is = differ_by(b->least + x->first_entry, b->least + y->first_entry,
                              x->nentries, &known->by);
    }
    *ret = known->by;
    return known->is;
}

int topt_twin_least(const struct table *t, struct bound *b)
{
    const struct table *u = t->twin;
    int64_t by_a, by_b;
    if (!u || !least_by(t->how.a, u->how.a, b, &by_a) ||
        !least_by(t->how.b, u->how.b, b, &by_b))
        return 0;
    b->shift[t->id] = (struct shift){.looked = 1, .is = 1, .by = by_a + by_b};
    add(b->least + t->first_entry, b->least + u->first_entry, t->nentries, by_a + by_b);
    return 1;
}

/* ---- what is left ------------------------------------------------------------------------------ */

/* Nobody else needs it. */
static int alone(const struct table *x, const struct table *y)
{
    return x != y && x->readers == 1 && y->readers == 1;
}

int topt_twin_rest(const struct table *t, struct bound *b, int for_a, int for_b)
{
    const struct table *v = t->heir;
    int64_t *rest = b->rest, by_a, by_b, by;
    if (!v || !least_by(v->how.a, t->how.a, b, &by_a) ||
        !least_by(v->how.b, t->how.b, b, &by_b) || !least_by(v, t, b, &by) ||
        by != by_a + by_b ||
        !differ_by(rest + t->first_entry, rest + v->first_entry, t->nentries, &by) ||
        by != by_a + by_b)
        return 0;
    const struct table *a = t->how.a, *va = v->how.a, *tb = t->how.b, *vb = v->how.b;
    if ((for_a && a != va && !alone(a, va)) || (for_b && tb != vb && !alone(tb, vb)))
        return 0;
    if (for_a && a != va)
        add(rest + a->first_entry, rest + va->first_entry, a->nentries, by_a);
    if (for_b && tb != vb)
        add(rest + tb->first_entry, rest + vb->first_entry, tb->nentries, by_b);
    return 1;
}
