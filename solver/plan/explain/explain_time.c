/* explain_time.c - where the time of a step goes: computing by kind of operator, the
 * network by collective, by what is sent and by how far it goes.
 *
 * The collectives are those of the program that ranks run, at the prices of the search. */
#include "explain_parts.h"
#include "band.h"
#include "fragment.h"
#include "topt_json.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 128, SHOWN = 6, DOUBTS = 3 };

struct line {
    const char *what; /* static, or of the table of operators */
    enum topt_collective collective;
    const char *far;
    int64_t ns;
    enum topt_basis basis; /* of doubts */
};

struct lines {
    int n;
    struct line at[MAX_LINES];
};

static void add(struct lines *l, struct line x)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].what == x.what && l->at[i].far == x.far &&
            l->at[i].collective == x.collective && l->at[i].basis == x.basis) {
            l->at[i].ns += x.ns;
            return;
        }
    if (x.ns > 0 && l->n < MAX_LINES)
        l->at[l->n++] = x;
}

static int longest(const void *x, const void *y)
{
    const struct line *a = x, *b = y;
    return a->ns < b->ns ? 1 : a->ns > b->ns ? -1 : 0;
}

/* ---- computing --------------------------------------------------------------------- */

static int add_operators(struct lines *l, const struct topt_costing *k,
                         const struct topt_strategy *s, struct topt_error *err)
{
    for (int i = 0; i < k->model->nops; i++) {
        struct topt_fragment_cost c;
        if (topt_cost_op(k, i, &s->config[i], &c, err))
            return -1;
        add(l, (struct line){.what = k->model->op[i].spec->name, .ns = c.compute_ns});
    }
    return 0;
}

/* ---- the network ------------------------------------------------------------------- */

/* The message of an instruction, in the words of people. */
static const char *sent(const struct topt_program *g, const struct topt_instr *i)
{
    const struct topt_buffer *b = &g->buffer[i->a];
    int param = b->op >= 0 && b->operand >= 0 &&
                g->model->op[b->op].operand[b->operand].role == TOPT_PARAM;
    int sums = i->kind == TOPT_I_REDUCE ||
               (i->kind == TOPT_I_MOVE && (i->move.kind == TOPT_MOVE_ALL_REDUCE ||
                                           i->move.kind == TOPT_MOVE_REDUCE_SCATTER));
    if (i->kind == TOPT_I_LOSS)
        return "the loss";
    if (i->kind == TOPT_I_ROWS_FETCH)
        return "rows of tables from their owners";
    if (i->kind == TOPT_I_ROWS_ADD)
        return "gradients' rows of tables";
    if (param || b->cls == TOPT_CLASS_PARAM || b->cls == TOPT_CLASS_GRAD)
        return sums || b->cls == TOPT_CLASS_GRAD ? "gradients" : "parameters";
    if (b->op >= 0 && b->operand >= 0 &&
        topt_is_of_slots(g->model, g->model->op[b->op].tensor[b->operand]))
        return i->backward ? "tokens to experts and back, in backward"
                           : "tokens to experts and back, in forward";
    return i->backward ? "activations and their gradients, in backward"
                       : "activations, in forward";
}

/* The collective of an instruction that communicates. */
static enum topt_collective collective_of(const struct topt_strategy *s,
                                          const struct topt_instr *i)
{
    switch (i->kind) {
    case TOPT_I_MOVE:
        return topt_move_collective(i->move.kind);
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        return TOPT_PERMUTE;
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
        return s->config[i->op].zero == TOPT_ZERO_OWNER ? TOPT_ALL_TO_ALL
                                                        : TOPT_ALL_GATHER;
    default:
        return TOPT_ALL_REDUCE;
    }
}

/* Also into 'doubts', with kernels: what each time rests on. */
static int add_collectives(struct lines *l, struct lines *doubts,
                           const struct topt_costing *k, const struct topt_strategy *s,
                           struct topt_error *err)
{
    struct topt_program *g;
    if (topt_lower_with_times(k, s, &g, err))
        return -1;
    for (int n = g->init_end; n < g->ninstr; n++) {
        const struct topt_instr *i = &g->instr[n];
        int micro = n >= g->micro_begin && n < g->micro_end;
        int64_t times = micro ? k->settings->micro_batches : 1;
        struct line x = {.what = i->op >= 0 ? k->model->op[i->op].spec->name : "other",
                         .ns = g->time[n].ns * times};
        if (g->time[n].network) {
            int across = topt_mesh_group(&g->mesh, i->axes).nodes > 1;
            x.what = sent(g, i);
            x.collective = collective_of(s, i);
            x.far = across ? "between nodes" : "inside a node";
            add(l, x);
        }
        x.basis = (enum topt_basis)g->time[n].basis;
        add(doubts, x);
    }
    topt_program_destroy(g);
    return 0;
}

/* ---- both -------------------------------------------------------------------------- */

static int64_t sum(const struct lines *l)
{
    int64_t ns = 0;
    for (int i = 0; i < l->n; i++)
        ns += l->at[i].ns;
    return ns;
}

static double percent(int64_t part, int64_t whole)
{
    return 100.0 * (double)part / (double)(whole > 0 ? whole : 1);
}

/* "all-gather", as people write it. */
static const char *collective_words(const struct line *x, char buf[32])
{
    snprintf(buf, 32, "%s", x->far ? topt_collective_name(x->collective) : "");
    for (char *s = buf; (s = strchr(s, '_'));)
        *s = '-';
    return buf;
}

static void put_lines(struct topt_text *t, const struct lines *l, int64_t whole)
{
    char a[32], b[32];
    int64_t rest = 0;
    for (int i = 0; i < l->n; i++) {
        const struct line *x = &l->at[i];
        if (i >= SHOWN || percent(x->ns, whole) < 0.5) {
            rest += x->ns;
            continue;
        }
        topt_text_add(t, "    %10s %3.0f %%  %s", topt_show_ns(x->ns, a, sizeof a),
                      percent(x->ns, whole), collective_words(x, b));
        topt_text_add(t, "%s%s%s%s\n", x->far ? " of " : "", x->what, x->far ? ", " : "",
                      x->far ? x->far : "");
    }
    if (rest)
        topt_text_add(t, "    %10s %3.0f %%  other\n", topt_show_ns(rest, a, sizeof a),
                      percent(rest, whole));
}

/* Where the time goes, the longest first. */
struct shares {
    struct lines compute, network, doubts;
    int64_t compute_ns, network_ns;
};

/* Is a step bound by computing or by communication, and by which of it most? */
static void put_bound(struct topt_text *t, const struct shares *s, int64_t whole_ns)
{
    int by_network = s->network_ns > s->compute_ns;
    const struct lines *l = by_network ? &s->network : &s->compute;
    char name[32];
    if (!l->n || whole_ns <= 0)
        return;
    topt_text_add(t, "The step is %s-bound (%.0f %% of its time)",
                  by_network ? "communication" : "compute",
                  percent(by_network ? s->network_ns : s->compute_ns, whole_ns));
    if (by_network)
        topt_text_add(t, ", mostly %s of %s, %s", collective_words(&l->at[0], name),
                      l->at[0].what, l->at[0].far);
    else
        topt_text_add(t, ", mostly %s operators", l->at[0].what);
    topt_text_add(t, ".\n");
}

/* Sums over all layers as the mean of pipeline stages. */
static void share_out(struct lines *l, int64_t stages)
{
    for (int i = 0; i < l->n; i++)
        l->at[i].ns /= stages;
}

static void scale(struct lines *l, double by)
{
    for (int i = 0; i < l->n; i++)
        l->at[i].ns = (int64_t)(by * (double)l->at[i].ns);
}

static int find_lines(struct shares *s, const struct topt_plan_doc *p, const json_t *doc,
                      struct topt_error *err)
{
    const json_t *predicted = json_object_get(doc, "predicted");
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    memset(s, 0, sizeof *s);
    s->compute_ns = topt_json_whole_at(predicted, "compute_ns");
    s->network_ns = topt_json_whole_at(predicted, "network_ns");
    if (add_operators(&s->compute, &k, p->strategy, err) ||
        add_collectives(&s->network, &s->doubts, &k, p->strategy, err))
        return -1;
    share_out(&s->compute, p->settings.stages);
    share_out(&s->network, p->settings.stages);
    share_out(&s->doubts, p->settings.stages);
    /* Lines are priced on devices of one group, the sum on each stage's own. */
    if (p->settings.unlike_stages) {
        double by = (double)s->compute_ns / (double)topt_max(sum(&s->compute), 1);
        scale(&s->compute, by);
        scale(&s->doubts, by);
    }
    add(&s->compute, (struct line){.what = "sums of gradients between operators",
                                   .ns = s->compute_ns - sum(&s->compute)});
    qsort(s->compute.at, (size_t)s->compute.n, sizeof *s->compute.at, longest);
    qsort(s->network.at, (size_t)s->network.n, sizeof *s->network.at, longest);
    return 0;
}

/* The parts of the time whose bands are widest, and what narrows them; of the network what is exposed
 * counts. */
static void put_doubts(struct topt_text *t, struct shares *s,
                       const struct topt_band *bands, int64_t step)
{
    char name[32], words[160];
    double exposed = (double)s->network_ns / (double)topt_max(sum(&s->network), 1);
    struct line *x = s->doubts.at, *end = x + s->doubts.n;
    for (; x < end; x++)
        x->ns = (int64_t)((double)x->ns * (x->far ? exposed : 1) *
                          topt_band_width(bands[x->basis]));
    qsort(s->doubts.at, (size_t)s->doubts.n, sizeof *x, longest);
    topt_text_add(t, "Largest doubts, and the measurement that narrows each:\n");
    for (x = s->doubts.at; x < end && x < s->doubts.at + DOUBTS; x++)
        topt_text_add(t, "    %3.0f %%  %s%s%s%s%s, %s\n",
                      percent(x->ns, step) / topt_band_width(bands[x->basis]),
                      collective_words(x, name), x->far ? " of " : "", x->what,
                      x->far ? ", " : " ", x->far ? x->far : "kernels",
                      topt_basis_words(bands, x->basis, x->far != NULL, words));
}

/* The group of unlike devices that the others wait for; NULL: all devices are alike. */
static const char *slowest_group(const json_t *doc)
{
    return json_string_value(
        json_object_get(json_object_get(doc, "predicted"), "slowest_group"));
}

/* The same on that group's devices, with their own blocks and rates. */
static int find_of_group(struct shares *s, const struct topt_plan_doc *p,
                         const json_t *doc, const char *group, struct topt_error *err)
{
    struct topt_plan_doc own = *p;
    int each = p->mesh.devices / p->mesh.size[0], before = 0, i = 0, rc = -1;
    while (i < topt_hw_groups(p->hw) &&
           strcmp(group, topt_hw_name(topt_hw_group(p->hw, i))))
        before += topt_hw_group_devices(p->hw, i++);
    if (i == topt_hw_groups(p->hw) || before / each >= p->mesh.size[0])
        return topt_fail(err, TOPT_ERR_INVAL, "predicted.slowest_group: no group '%.60s'",
                         group);
    own.mesh.costed = 1 + before / each;
    own.hw = topt_hw_among(p->hw, i, err);
    own.router = own.hw ? topt_router_create(own.hw, &own.mesh) : NULL;
    if (own.router)
        rc = find_lines(s, &own, doc, err);
    else if (own.hw)
        topt_nomem(err, "the group's time");
    topt_router_destroy(own.router);
    topt_hw_destroy(own.hw);
    return rc;
}

static int find_shares(struct shares *s, const struct topt_plan_doc *p, const json_t *doc,
                       struct topt_error *err)
{
    const char *group = slowest_group(doc);
    return group && p->mesh.naxes ? find_of_group(s, p, doc, group, err)
                                  : find_lines(s, p, doc, err);
}

/* List the pipeline stages: layers, busy time, memory.  Compute and communication above are means of stages. */
static void put_stages(struct topt_text *t, const struct topt_plan_doc *p,
                       const json_t *doc)
{
    const json_t *predicted = json_object_get(doc, "predicted");
    const json_t *layers = json_object_get(json_object_get(doc, "uniform"), "layers"), *x;
    const struct topt_order *order = &topt_orders[p->settings.order];
    struct topt_order_shape shape = {(int)p->settings.stages,
                                     (int)p->settings.stage_chunks,
                                     p->settings.micro_batches};
    int64_t stages = p->settings.stages, idle = topt_json_whole_at(predicted, "idle_ns");
    char a[32], b[32];
    size_t i;
    if (stages < 2)
        return;
    topt_text_add(t,
                  "  %s bubble of the pipeline, and waiting for other stages (%.0f %%)\n",
                  topt_show_ns(idle, a, sizeof a), percent(idle, p->time_ns));
    topt_text_add(t,
                  "\nPipeline: %lld stages of %lld chunk%s, schedule %s, %lld "
                  "micro-batches a step\n"
                  "  stage  layers       busy     memory\n",
                  (long long)stages, (long long)p->settings.stage_chunks,
                  p->settings.stage_chunks > 1 ? "s" : "",
                  topt_order_name(p->settings.order),
                  (long long)p->settings.micro_batches);
    json_array_foreach(json_object_get(predicted, "stages"), i, x)
    {
        json_int_t n = 0;
        for (int own = 0; own < shape.chunks; own++)
            n += json_integer_value(json_array_get(
                layers, (size_t)topt_order_chunk(order, &shape, (int)i, own)));
        topt_text_add(
            t, "  %5zu %7lld %10s %10s\n", i, (long long)n,
            topt_show_ns(topt_json_whole_at(x, "busy_ns"), a, sizeof a),
            topt_show_bytes(topt_json_whole_at(x, "memory_bytes"), b, sizeof b));
    }
    topt_text_add(t, "\n");
}

/* The GPUs of expert parallelism, and the time of its all-to-all. */
static void put_experts(struct topt_text *t, const struct topt_plan_doc *p,
                        const struct shares *s)
{
    const struct topt_model *m = p->model;
    const struct topt_order *order = &topt_orders[p->settings.order];
    struct topt_group g = {1, 1, 1};
    char a[32];
    int64_t ns = 0;
    int i = 0, e = -1;
    for (; i < m->nops && g.nodes * g.per_node == 1; i++)
        if ((e = topt_op_experts(&m->op[i])) >= 0)
            g = topt_mesh_group(
                &p->mesh, topt_axes_over(&p->mesh, &p->strategy->config[i], 1u << e));
    if (g.nodes * g.per_node == 1)
        return;
    for (int k = 0; k < s->network.n; k++)
        ns += strncmp(s->network.at[k].what, "tokens", 6) ? 0 : s->network.at[k].ns;
    topt_text_add(
        t,
        "Expert parallelism: the %lld experts of a layer are shared out over %d "
        "GPUs on %d node%s; tokens go to them and back by %s, %s per step (%.0f "
        "%%), ",
        (long long)m->op[i - 1].count[e], g.nodes * g.per_node, g.nodes,
        g.nodes > 1 ? "s" : "",
        p->settings.dispatch == TOPT_DISPATCH_DEEPEP ? "DeepEP" : "all-to-all",
        topt_show_ns(ns, a, sizeof a), percent(ns, p->time_ns));
    topt_text_add(t, order->pairs ? "beside the compute of another micro-batch where the "
                                    "schedule pairs a forward with a backward pass.\n"
                                  : "for which compute waits.\n");
}

int topt_explain_time(struct topt_text *t, const struct topt_plan_doc *p,
                      const json_t *doc, struct topt_error *err)
{
    struct shares s;
    char a[32], b[32];
    if (find_shares(&s, p, doc, err))
        return -1;
    topt_text_add(t, "\nTime per step: %s", topt_show_ns(p->time_ns, a, sizeof a));
    if (slowest_group(doc))
        topt_text_add(t, ", of the slowest group, %s", slowest_group(doc));
    topt_text_add(t, "\n  %s compute\n", topt_show_ns(s.compute_ns, a, sizeof a));
    put_lines(t, &s.compute, p->time_ns);
    if (p->mesh.devices > 1) {
        topt_text_add(t, "  %s exposed communication",
                      topt_show_ns(s.network_ns, a, sizeof a));
        if (sum(&s.network) > s.network_ns)
            topt_text_add(t,
                          ", of %s in all, as follows; the rest is hidden behind compute",
                          topt_show_ns(sum(&s.network), b, sizeof b));
        topt_text_add(t, "\n");
        put_lines(t, &s.network, p->time_ns);
    }
    int64_t host = topt_json_whole_at(
        json_object_get(json_object_get(doc, "predicted"), "host"), "wait_ns");
    if (host)
        topt_text_add(t, "  %s waiting for the host (%.0f %%)\n",
                      topt_show_ns(host, a, sizeof a), percent(host, p->time_ns));
    put_stages(t, p, doc);
    put_experts(t, p, &s);
    put_bound(t, &s, p->time_ns);
    put_doubts(t, &s, topt_hw_bands(p->hw), p->time_ns);
    return 0;
}

json_t *topt_explain_time_json(const struct topt_plan_doc *p, const json_t *doc,
                               struct topt_error *err)
{
    struct shares s;
    if (find_shares(&s, p, doc, err))
        return NULL;
    json_t *compute = json_array(), *network = json_array();
    for (int i = 0; i < s.compute.n; i++)
        json_array_append_new(compute,
                              json_pack("{s:s, s:I}", "kind", s.compute.at[i].what, "ns",
                                        (json_int_t)s.compute.at[i].ns));
    for (int i = 0; i < s.network.n; i++) {
        const struct line *l = &s.network.at[i];
        json_array_append_new(network, json_pack("{s:s, s:s, s:s, s:I}", "collective",
                                                 topt_collective_name(l->collective),
                                                 "of", l->what, "where", l->far, "ns",
                                                 (json_int_t)l->ns));
    }
    return json_pack("{s:I, s:I, s:I, s:o, s:o}", "time_ns", (json_int_t)p->time_ns,
                     "compute_ns", (json_int_t)s.compute_ns, "network_ns",
                     (json_int_t)s.network_ns, "compute", compute, "network", network);
}
