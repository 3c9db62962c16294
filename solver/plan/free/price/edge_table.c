/* edge_table.c - what edges between the configurations of two families cost, by class.
 *
 * An entry has one alternative or two: the consumer's copy is kept for backward, or the
 * producer's, which is moved again.  One that another is as good as in everything is left
 * out, and what stays is written by memory ascending, which is how the search wants it:
 * it then reads the table as it is. */
#include "price.h"
#include "configs.h"
#include "topt_array.h"
#include "topt_minmax.h"
#include "topt_text.h"

#include <stdlib.h>

/* An edge table while it is priced: numbers of the layouts at both ends. */
struct pricing {
    struct topt_problem *p;
    struct edge_table *e;
    const struct side *from, *to;
    int restricted; /* not every edge is allowed */
    int32_t nalts;
};

/* The numbers of the i-th class of the producer, or of the consumer: value and gradient. */
static int32_t *number_of(const struct pricing *x, int consumer, int i)
{
    return &x->e->number[2 * (consumer ? x->from->n + i : i)];
}

static int number_side(struct pricing *x, int consumer)
{
    const struct side *side = consumer ? x->to : x->from;
    for (int i = 0; i < side->n; i++) {
        int32_t *number = number_of(x, consumer, i);
        number[0] = topt_moves_number(x->p, x->e->moves, &side->end[i].value);
        number[1] = topt_moves_number(x->p, x->e->moves, &side->end[i].grad);
        if (number[0] < 0 || number[1] < 0)
            return -1;
    }
    return 0;
}

/* Ask for all moves of values there, or of gradients 'back'. */
static int ask_moves(struct pricing *x, int back, struct topt_error *err)
{
    int n = back ? x->to->n : x->from->n, to = back ? x->from->n : x->to->n;
    for (int i = 0; i < n; i++) {
        int from = number_of(x, back, i)[back];
        if (topt_problem_canceled(x->p, err))
            return -1;
        for (int j = 0; j < to; j++)
            if (topt_moves_ask(x->p, x->e->moves, from, number_of(x, !back, j)[back],
                               err))
                return -1;
    }
    return 0;
}

/* Which ends' bytes add up to what is recomputed: there is nothing else to make. */
static int which_recomputed(int64_t recomputed, int64_t from, int64_t to)
{
    int which = 0;
    while (which < 4 && recomputed != (which & RECOMPUTED_FROM ? from : 0) +
                                          (which & RECOMPUTED_TO ? to : 0))
        which++;
    return which;
}

/* Is an alternative no worse than another, whatever the caps and however often it is
 * paid? */
static int no_worse(const struct topt_edge_alternative *a,
                    const struct topt_edge_alternative *b, int64_t move_ns)
{
    return a->kept <= b->kept && a->recomputed <= b->recomputed &&
           a->moves * move_ns <= b->moves * move_ns &&
           topt_transient_code(a->transient) <= topt_transient_code(b->transient);
}

/* Leave out the one of two alternatives that need not be listed, and put the others in
 * order. */
static int choose(struct topt_edge_alternative at[2], int64_t move_ns)
{
    if (no_worse(&at[0], &at[1], move_ns))
        return 1;
    int out = no_worse(&at[1], &at[0], move_ns);
    if (out || at[1].kept < at[0].kept) {
        struct topt_edge_alternative first = at[0];
        at[0] = at[1];
        at[1] = first;
    }
    return 2 - out;
}

/* Keep the alternatives at one pair of ends that a restriction allows. */
static int restrict_to(const struct pricing *x, const struct topt_edge_end *from,
                       const struct topt_edge_end *to, struct topt_edge_alternative at[2],
                       int n)
{
    int left = 0;
    for (int k = 0; k < n; k++)
        if (topt_allows_edge(&x->p->options, x->p->k.mesh, from, to, at[k].keep))
            at[left++] = at[k];
    return left;
}

/* The time of an alternative's moves, of forward and of backward. */
static void moves_ns(const struct topt_edge_alternative *a, int64_t there, int64_t again,
                     int64_t back, int64_t ret[2])
{
    int plain = a->moves - a->beside;
    ret[0] = (plain > 0) * there;
    ret[1] = (plain - (plain > 0)) * there + a->beside * again + back;
}

static int list(struct pricing *x, const struct topt_edge_alternative *a,
                const struct topt_move_cost *there, const int64_t ns[2],
                struct topt_error *err)
{
    struct edge_table *e = x->e;
    struct topt_cost c = {a->kept, ns[0] + ns[1]};
    int which = which_recomputed(a->recomputed, there->from_bytes, there->to_bytes);
    int transient = topt_transient_code(a->transient);
    if (which > (RECOMPUTED_FROM | RECOMPUTED_TO))
        return topt_fail(err, TOPT_ERR_INTERNAL, "an edge recomputes what is no copy");
    e->least.memory = x->nalts ? topt_min(e->least.memory, c.memory) : c.memory;
    e->least.time = x->nalts ? topt_min(e->least.time, c.time) : c.time;
    e->occurs[transient / 64] |= (uint64_t)1 << transient % 64;
    e->recomputes |= which;
    e->cost[x->nalts] = c;
    e->fact[x->nalts++] = (struct edge_fact){.transient = (unsigned)transient & 0x3ff,
                                             .recomputed = (unsigned)which & 3,
                                             .keep = (unsigned)a->keep & 1};
    return 0;
}

/* Keep the least and the most time in which alternatives move the tensor, forward and backward. */
static void see_passes(struct pricing *x, const int64_t ns[2])
{
    struct edge_passes *e = &x->e->passes;
    for (int pass = 0; pass < 2; pass++) {
        e->least_ns[pass] = e->seen ? topt_min(e->least_ns[pass], ns[pass]) : ns[pass];
        e->most_ns[pass] = topt_max(e->most_ns[pass], ns[pass]);
    }
    e->seen = 1;
}

static int price_entry(struct pricing *x, int i, int j, struct topt_error *err)
{
    const struct topt_edge_end *from = &x->from->end[i], *to = &x->to->end[j];
    const int32_t *a = number_of(x, 0, i), *b = number_of(x, 1, j);
    int trained = x->e->trained;
    struct topt_move_cost there = topt_moves_at(x->e->moves, a[0], b[0]), again;
    struct topt_move_cost back = {0};
    struct topt_edge_alternative at[2];
    int64_t ns[2];
    if (trained)
        back = topt_moves_at(x->e->moves, b[1], a[1]);
    topt_edge_moves(&x->p->k, x->p->family[x->e->from].tensor, from, to, &there, &again,
                    trained ? &back : NULL);
    int n = topt_edge_alternatives(&x->p->k, from, to, a[0] == b[0], &there,
                                   trained ? &back : NULL, at);
    for (int k = 0; k < n; k++) {
        moves_ns(&at[k], there.network_ns, again.network_ns, back.network_ns, ns);
        see_passes(x, ns);
    }
    if (x->restricted)
        n = restrict_to(x, from, to, at, n);
    if (n == 2)
        n = choose(at, there.network_ns);
    for (int k = 0; k < n; k++) {
        moves_ns(&at[k], there.network_ns, again.network_ns, back.network_ns, ns);
        if (list(x, &at[k], &there, ns, err))
            return -1;
    }
    if (x->e->end_bytes) {
        x->e->end_bytes[i] = there.from_bytes;
        x->e->end_bytes[x->from->n + j] = there.to_bytes;
    }
    return 0;
}

static int alloc_table(struct pricing *x)
{
    struct edge_table *e = x->e;
    size_t ends = (size_t)x->from->n + (size_t)x->to->n;
    size_t entries = (size_t)x->from->n * (size_t)x->to->n;
    e->number = malloc((2 * ends + 1) * sizeof *e->number);
    e->first = malloc((entries + 1) * sizeof *e->first);
    e->cost = malloc((2 * entries + 1) * sizeof *e->cost);
    e->fact = malloc((2 * entries + 1) * sizeof *e->fact);
    if (x->p->may_recompute)
        e->end_bytes = calloc(ends + 1, sizeof *e->end_bytes);
    return e->number && e->first && e->cost && e->fact &&
                   (!x->p->may_recompute || e->end_bytes)
               ? 0
               : -1;
}

static int price_entries(struct pricing *x, struct topt_error *err)
{
    if (alloc_table(x) || number_side(x, 0) || number_side(x, 1))
        return topt_nomem(err, "edges");
    if (ask_moves(x, 0, err) || (x->e->trained && ask_moves(x, 1, err)) ||
        topt_moves_answer(x->p, x->e->moves, err))
        return -1;
    int32_t *first = x->e->first;
    *first++ = 0;
    for (int i = 0; i < x->from->n; i++) {
        if (topt_problem_canceled(x->p, err))
            return -1;
        for (int j = 0; j < x->to->n; j++) {
            if (price_entry(x, i, j, err))
                return -1;
            *first++ = x->nalts;
        }
    }
    /* Give back what a table of fewer alternatives does not need. */
    (void)TOPT_RESIZE(x->e->cost, x->nalts + 1);
    (void)TOPT_RESIZE(x->e->fact, x->nalts + 1);
    return 0;
}

void topt_table_fini(struct edge_table *e)
{
    free(e->first);
    free(e->cost);
    free(e->fact);
    free(e->end_bytes);
    free(e->number);
}

int64_t topt_table_entries(const struct topt_problem *p, const struct edge_table *e)
{
    return (int64_t)topt_rows(p, e)->n * topt_cols(p, e)->n;
}

int topt_table_ask_exact(struct topt_problem *p, const struct edge_table *e,
                         int64_t entry, struct topt_error *err)
{
    int64_t cols = topt_cols(p, e)->n, rows = topt_rows(p, e)->n;
    const int32_t *a = &e->number[2 * (entry / cols)];
    const int32_t *b = &e->number[2 * (rows + entry % cols)];
    return topt_moves_ask_exact(p, e->moves, a[0], b[0], err) ||
                   (e->trained && topt_moves_ask_exact(p, e->moves, b[1], a[1], err))
               ? -1
               : 0;
}

int topt_edge_table_of(struct topt_problem *p, int from, int to, int input)
{
    int n = p->ntables;
    for (int k = 1; k <= n; k++) { /* mostly the one after the last that was asked for */
        int i = p->last_table + k < n ? p->last_table + k : p->last_table + k - n;
        if (p->table[i].from == from && p->table[i].to == to &&
            p->table[i].input == input)
            return p->last_table = i;
    }
    p->table[n] = (struct edge_table){.from = from, .to = to, .input = input};
    return p->last_table = p->ntables++;
}

/* ---- will all tables have room? ---------------------------------------------------- */

/* Their sizes are known before their entries are: from how many classes the
 * configurations of the operators at both ends have.  What would fill the machine's
 * memory for minutes is refused there, with what makes it smaller. */

/* Bytes of an entry of one alternative, which most have. */
enum {
    ENTRY_BYTES = sizeof(int32_t) + sizeof(struct topt_cost) + sizeof(struct edge_fact)
};

static const char *name_of(const struct topt_problem *p, int family)
{
    return p->k.model->tensor[p->family[family].tensor].name;
}

/* The options that make this problem smaller. */
static const char *advice(const struct topt_space_options *o)
{
    int factors = o->recompute == TOPT_RECOMPUTE_FREE || (o->zero & (o->zero - 1));
    if (o->space == TOPT_SPACE_FULL)
        return factors ? "--space canonical or fewer --factors" : "--space canonical";
    return factors ? "--space uniform or fewer --factors" : "--space uniform";
}

static int refuse(const struct topt_problem *p, int64_t entries, int64_t limit,
                  const struct edge_table *e, struct topt_error *err)
{
    char need[32], room[32];
    return topt_fail(
        err, TOPT_ERR_LIMIT,
        "%lld costs of edges would take at least %s, more than --max-table-bytes of %s "
        "('%s' to '%s' alone %d x %d choices); use %s",
        (long long)entries, topt_show_bytes(entries * ENTRY_BYTES, need, sizeof need),
        topt_show_bytes(limit, room, sizeof room), name_of(p, e->from), name_of(p, e->to),
        topt_rows(p, e)->n, topt_cols(p, e)->n, advice(&p->options));
}

/* Alternatives of a table are numbered in 32 bits, and entries have up to two. */
static int refuse_table(const struct topt_problem *p, const struct edge_table *e,
                        struct topt_error *err)
{
    return topt_fail(
        err, TOPT_ERR_LIMIT,
        "'%s' and '%s' have %d x %d choices, more than a table holds; %s have "
        "fewer devices",
        name_of(p, e->from), name_of(p, e->to), topt_rows(p, e)->n, topt_cols(p, e)->n,
        advice(&p->options));
}

static int check_budget(const struct topt_problem *p, struct topt_error *err)
{
    int64_t limit = p->options.max_bytes, entries = 0;
    const struct edge_table *largest = p->table;
    if (!limit)
        limit = TOPT_PROBLEM_MAX_BYTES;
    for (int i = 0; i < p->ntables; i++) {
        const struct edge_table *e = &p->table[i];
        int64_t n = topt_table_entries(p, e);
        entries += n;
        if (n > topt_table_entries(p, largest))
            largest = e;
    }
    if (entries > limit / ENTRY_BYTES)
        return refuse(p, entries, limit, largest, err);
    return p->ntables && topt_table_entries(p, largest) > INT32_MAX / 2
               ? refuse_table(p, largest, err)
               : 0;
}

/* ---- all tables -------------------------------------------------------------------------- */

int topt_table_price(struct topt_problem *p, struct edge_table *e, struct topt_error *err)
{
    int tensor = p->family[e->from].tensor;
    struct pricing x = {.p = p,
                        .e = e,
                        .from = topt_rows(p, e),
                        .to = topt_cols(p, e),
                        .restricted =
                            p->options.restriction && p->options.restriction->edge};
    e->moves = topt_moves_of(p, tensor, err);
    e->trained = p->k.model->tensor[tensor].needs_gradient;
    e->passes.of_tokens = topt_is_of_slots(p->k.model, tensor);
    return e->moves ? price_entries(&x, err) : -1;
}

int topt_tables_price(struct topt_problem *p, struct topt_error *err)
{
    if (check_budget(p, err))
        return -1;
    for (int i = 0; i < p->ntables; i++)
        if (topt_table_price(p, &p->table[i], err))
            return -1;
    if (!p->byte_bounds)
        topt_moves_fini(p); /* none is asked for from here on */
    return 0;
}
