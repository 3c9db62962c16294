/* table_budget.c - will a problem's tables have room?
 *
 * Their sizes are known before their entries are: from how many classes the
 * configurations of the operators at both ends have.  What would fill the machine's
 * memory for minutes is refused there, with what makes it smaller. */
#include "table_budget.h"
#include "edge_table.h"
#include "problem_data.h"
#include "space.h"
#include "topt_choices.h"
#include "topt_text.h"

/* Bytes of an entry of one alternative, which most have. */
enum {
    ENTRY_BYTES = sizeof(int32_t) + sizeof(struct topt_cost) + sizeof(struct edge_fact)
};

static const char *name_of(const struct topt_problem *p, const struct family *f)
{
    const struct topt_model *m = p->k.model;
    return m
        ->tensor[f->op >= 0 ? m->op[f->op].operand[m->op[f->op].output].tensor
                            : f->tensor]
        .name;
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
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    char need[32], room[32];
    return topt_fail(
        err, TOPT_ERR_LIMIT,
        "%lld costs of edges would take at least %s, more than --max-table-bytes of %s "
        "('%s' to '%s' alone %d x %d choices); use %s",
        (long long)entries, topt_show_bytes(entries * ENTRY_BYTES, need, sizeof need),
        topt_show_bytes(limit, room, sizeof room), name_of(p, a), name_of(p, b), a->nfrom,
        b->nto[e->input], advice(&p->options));
}

static int refuse_table(const struct topt_problem *p, const struct edge_table *e,
                        struct topt_error *err)
{
    const struct family *a = &p->family[e->from], *b = &p->family[e->to];
    return topt_fail(
        err, TOPT_ERR_LIMIT,
        "'%s' and '%s' have %d x %d choices, more than a table holds; %s have "
        "fewer devices",
        name_of(p, a), name_of(p, b), a->nfrom, b->nto[e->input], advice(&p->options));
}

/* Alternatives of a table are numbered in 32 bits, and entries have up to two. */
static int too_long(const struct topt_problem *p, const struct edge_table *e)
{
    return topt_table_entries(p, e) > INT32_MAX / 2;
}

int topt_table_budget_check(const struct topt_problem *p, struct topt_error *err)
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
    return p->ntables && too_long(p, largest) ? refuse_table(p, largest, err) : 0;
}
