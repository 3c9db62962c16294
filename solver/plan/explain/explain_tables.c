/* explain_tables.c - what became of sparse tables, and what else could have.
 *
 * Beside the plan's own choice stand those that recommenders are trained with, over all devices
 * alike: dense and data parallel, rows gathered by all, owners of rows, whole tables dealt out,
 * columns, rows with partial sums.  Each is priced as the search prices it: the table with its
 * gradient and its update, and bringing what it looks up to where the plan reads it. */
#include "explain_parts.h"

#include "strategy_words.h"

#include <stdlib.h>
#include <string.h>

enum { CHOICES = 7, SHOWN_TABLES = 8, SHOWN_OTHERS = 3 };

struct choice {
    struct topt_config config;
    int chosen;
    int64_t time_ns, memory_bytes;
};

struct table {
    int op;
    double rows, features, lookups, named;
    int n;
    struct choice choice[CHOICES + 1];
};

/* The table, and the move of its output to its consumer. */
static int price(const struct topt_costing *k, const struct topt_plan_doc *p, int op,
                 struct choice *c, struct topt_error *err)
{
    const struct topt_op *o = &p->micro->op[op];
    int tensor = topt_output_tensor(o), reader = 0, input = 0;
    struct topt_fragment_cost own;
    struct topt_edge_cost way;
    if (topt_cost_op(k, op, &c->config, &own, err))
        return -1;
    struct topt_edge_end from = topt_edge_producer(k, op, &c->config), to;
    for (int i = 0; i < p->micro->nops; i++)
        for (int x = 0; x < p->micro->op[i].ninputs; x++)
            if (topt_input_tensor(&p->micro->op[i], x) == tensor) {
                reader = i;
                input = x;
            }
    if (p->micro->tensor[tensor].nconsumers > 1)
        to = topt_edge_hub(k, &p->strategy->hub[tensor]);
    else
        to = topt_edge_consumer(k, reader, input, &p->strategy->config[reader], 0);
    if (topt_cost_edge(k, tensor, &from, &to, &way, err))
        return -1;
    c->time_ns = own.compute_ns + own.network_ns + way.alt[0].network_ns;
    c->memory_bytes = own.transient_bytes;
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        c->memory_bytes += own.class_bytes[i] + way.alt[0].class_bytes[i];
    return 0;
}

static struct topt_config over(const struct topt_mesh *mesh, int dim, enum topt_zero zero)
{
    struct topt_config c = topt_config_none();
    for (int a = 0; a < mesh->naxes; a++)
        c.dim[a] = (int8_t)dim;
    c.zero = (uint8_t)zero;
    return c;
}

/* Dimensions of the operator; tables -1 where there is one. */
struct cuts {
    int tables, rows, columns;
};

static struct cuts cuts_of(const struct topt_op *o)
{
    const struct topt_operand_spec *w = &o->spec->operand[topt_table_sparse(o)];
    return (struct cuts){.tables = w->ragged ? w->dim[0] : -1,
                         .rows = w->dim[w->ndim - 2],
                         .columns = w->dim[w->ndim - 1]};
}

static int by_time(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

/* The plan's choice first, then those that the table allows and that are others. */
static int add(const struct topt_costing *k, const struct topt_plan_doc *p,
               struct table *t, struct topt_config config, int chosen,
               struct topt_error *err)
{
    config.recompute = p->strategy->config[t->op].recompute;
    for (int i = 0; i < t->n; i++)
        if (t->choice[i].config.zero == config.zero &&
            !memcmp(t->choice[i].config.dim, config.dim, sizeof config.dim))
            return 0;
    if (!topt_config_valid(&p->micro->op[t->op], &config, &p->mesh))
        return 0;
    struct choice *c = &t->choice[t->n++];
    *c = (struct choice){.config = config, .chosen = chosen};
    return price(k, p, t->op, c, err);
}

static int look(const struct topt_plan_doc *p, int op, struct table *t,
                struct topt_error *err)
{
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    const struct topt_op *o = &p->micro->op[op];
    struct cuts cut = cuts_of(o);
    *t = (struct table){.op = op,
                        .rows = topt_table_heights(o),
                        .features = (double)o->count[cut.columns],
                        .lookups =
                            topt_table_lookups(o) * (double)p->settings.micro_batches};
    t->named = topt_table_rows(o, t->lookups);
    const struct topt_config all[CHOICES] = {
        over(&p->mesh, 0, TOPT_ZERO_NONE),
        over(&p->mesh, 0, TOPT_ZERO_SPARSE),
        over(&p->mesh, 0, TOPT_ZERO_OWNER),
        over(&p->mesh, cut.tables, TOPT_ZERO_SPARSE),
        over(&p->mesh, cut.columns, TOPT_ZERO_SPARSE),
        over(&p->mesh, cut.rows, TOPT_ZERO_SPARSE),
        over(&p->mesh, -1, TOPT_ZERO_SPARSE)};
    if (add(&k, p, t, p->strategy->config[op], 1, err))
        return -1;
    for (int i = 0; i < CHOICES; i++)
        if (add(&k, p, t, all[i], 0, err))
            return -1;
    qsort(t->choice, (size_t)t->n, sizeof *t->choice, by_time);
    return 0;
}

static int larger(const void *x, const void *y)
{
    const struct table *a = x, *b = y;
    double m = a->rows * a->features, n = b->rows * b->features;
    return m < n ? 1 : m > n ? -1 : a->op - b->op;
}

/* All tables, the largest first; owned by the caller. */
static int look_at_all(const struct topt_plan_doc *p, struct table **ret, int *ret_n,
                       struct topt_error *err)
{
    struct table *all = calloc((size_t)p->micro->nops + 1, sizeof *all);
    int n = 0;
    if (!all)
        return topt_nomem(err, "tables");
    for (int i = 0; i < p->micro->nops; i++)
        if (topt_table_sparse(&p->micro->op[i]) >= 0 && look(p, i, &all[n++], err)) {
            free(all);
            return -1;
        }
    qsort(all, (size_t)n, sizeof *all, larger);
    *ret = all;
    *ret_n = n;
    return 0;
}

/* ---- words ------------------------------------------------------------------------- */

/* Which of its dimensions tensor parallelism is of. */
static void put_cuts(struct topt_text *t, const struct topt_plan_doc *p,
                     const struct table *of, const struct topt_config *c)
{
    struct cuts cut = cuts_of(&p->micro->op[of->op]);
    const struct {
        int dim;
        const char *words;
    } cuts[] = {{cut.tables, "whole tables"},
                {cut.rows, "rows, partial sums reduced"},
                {cut.columns, "columns"}};
    const char *before = " (";
    for (int i = 0; i < 3; i++)
        for (int a = 0; a < p->mesh.naxes && cuts[i].dim >= 0; a++)
            if (c->dim[a] == cuts[i].dim) {
                topt_text_add(t, "%s%s", before, cuts[i].words);
                before = "; ";
                break;
            }
    topt_text_add(t, "%s", *before == ';' ? ")" : "");
}

static void put_table(struct topt_text *t, const struct topt_plan_doc *p,
                      const struct table *of)
{
    const struct topt_op *op = &p->micro->op[of->op];
    int others = 0;
    int64_t tables = topt_tables_of(op);
    topt_text_add(t, "  %.60s: ", op->name);
    if (tables > 1)
        topt_text_add(t, "%lld tables, ", (long long)tables);
    topt_text_add(t, "%.0f rows of %.0f; %.0f lookups a step name %.0f\n", of->rows,
                  of->features, of->lookups, of->named);
    for (int i = 0; i < of->n; i++) {
        const struct choice *c = &of->choice[i];
        if (!c->chosen && others++ >= SHOWN_OTHERS)
            continue;
        char time[32], bytes[32];
        topt_text_add(t, "    %-8s %s, %s  ", c->chosen ? "chosen" : "instead",
                      topt_show_ns(c->time_ns, time, sizeof time),
                      topt_show_bytes(c->memory_bytes, bytes, sizeof bytes));
        topt_config_words(t, op, &p->mesh, &c->config);
        put_cuts(t, p, of, &c->config);
        topt_text_add(t, "\n");
    }
}

int topt_explain_tables(struct topt_text *t, const struct topt_plan_doc *p,
                        struct topt_error *err)
{
    struct table *all;
    int n;
    if (!topt_model_has_tables(p->micro))
        return 0;
    if (look_at_all(p, &all, &n, err))
        return -1;
    topt_text_add(
        t, "\nSparse tables, with the cost of gradient, update and output exchange:\n");
    for (int i = 0; i < n && i < SHOWN_TABLES; i++)
        put_table(t, p, &all[i]);
    if (n > SHOWN_TABLES)
        topt_text_add(t, "  and %d smaller ones (--json has them)\n", n - SHOWN_TABLES);
    topt_text_add(t, "  The plan minimizes the time of the whole model, not of each "
                     "table by itself.\n");
    free(all);
    return 0;
}

json_t *topt_explain_tables_json(const struct topt_plan_doc *p, struct topt_error *err)
{
    struct table *all;
    json_t *ret = json_array();
    int n;
    if (look_at_all(p, &all, &n, err)) {
        json_decref(ret);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const struct table *t = &all[i];
        json_t *choices = json_array();
        for (int c = 0; c < t->n; c++) {
            struct topt_text words = {0};
            topt_config_words(&words, &p->micro->op[t->op], &p->mesh,
                              &t->choice[c].config);
            json_array_append_new(
                choices,
                json_pack("{s:s, s:I, s:I, s:b}", "words", words.s ? words.s : "",
                          "time_ns", (json_int_t)t->choice[c].time_ns, "memory_bytes",
                          (json_int_t)t->choice[c].memory_bytes, "chosen",
                          t->choice[c].chosen));
            topt_text_fini(&words);
        }
        json_array_append_new(ret, json_pack("{s:s, s:I, s:I, s:I, s:f, s:o}", "name",
                                             p->micro->op[t->op].name, "rows",
                                             (json_int_t)t->rows, "features",
                                             (json_int_t)t->features, "lookups",
                                             (json_int_t)t->lookups, "named_rows",
                                             t->named, "choices", choices));
    }
    free(all);
    return ret;
}
