/* kernels.c - times of single kernels, of every kind that training runs.
 *
 * Small models of each family train a few steps, and each of their kernels is clocked where it runs, with
 * what the kernels before it left in the caches.  A model comes in several widths, lengths and sizes of
 * a head; what lies between is the planner's to weigh (solver/layout/hw_kernels.c).  The clock is the thread's
 * processor time, and the median of all steps counts: the least is that of a step that finds everything in the caches. */
#include "kernels.h"
#include "alone.h"
#include "sweeps.h"
#include "sample_data.h"
#include "specimens.h"
#include "topt_array.h"
#include "topt_clock.h"
#include "topt_median.h"
#include "topt_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A size of the models: numbers of a layer and of a head, samples and positions of a step, rows of a picture. */
struct size {
    int width, head, batch, seq, rows;
};
static const struct size sizes[] = {{64, 16, 4, 32, 16},
                                    {128, 32, 8, 64, 28},
                                    {256, 64, 4, 128, 32},
                                    {256, 128, 2, 256, 56}};
enum { SIZES = sizeof sizes / sizeof *sizes, FEW = 4, MANY = 12, GUESSED = 40 };
static const double ENOUGH_NS = 0.4e9; /* of a model's steps */

/* What '@' and a letter stand for. */
static int number_for(const struct size *z, char letter)
{
    int heads = z->width / z->head;
    switch (letter) {
    case 'q':
        return z->width / 4;
    case 'e':
        return z->width / 2;
    case 'h':
        return heads;
    case 'k':
        return heads / 2;
    case 'm':
        return 2 * heads;
    case 'd':
        return z->head;
    case 'r':
        return z->rows;
    default:
        return (letter - '0') * z->width;
    }
}

static void write_config(const char *from, const struct size *z, struct topt_text *ret)
{
    for (; *from; from++)
        if (*from == '@')
            topt_text_add(ret, "%d", number_for(z, *++from));
        else
            topt_text_add(ret, "%c", *from == '\'' ? '"' : *from);
}

/* Pictures, which have no length, or texts? */
static int sees(int model)
{
    return strstr(topt_specimen[model].config, "@r") != NULL;
}

static struct topt_model *make_model(int model, const struct size *z,
                                     struct topt_error *err)
{
    const char *from = topt_specimen[model].config;
    struct topt_import_options o = {.batch = z->batch, .seq = sees(model) ? 0 : z->seq};
    struct topt_text config = {0};
    write_config(from, z, &config);
    struct topt_model *m = config.s
                               ? topt_model_import(config.s, strlen(config.s),
                                                   topt_specimen[model].name, &o, err)
                               : NULL;
    if (!config.s)
        topt_nomem(err, NULL);
    topt_text_fini(&config);
    return m;
}

/* ---- clocking ---------------------------------------------------------------------------- */

/* The times of each instruction of a program, by step, of 'n' instructions. */
struct clocked {
    double *ns;
    int n, step;
    double at, asking; /* when the last one ended; what asking takes */
};

static double asking_ns(void)
{
    double least = INFINITY, at = topt_thread_ns();
    for (int i = 0; i < 100; i++) {
        double now = topt_thread_ns();
        least = fmin(least, now - at);
        at = now;
    }
    return least;
}

static void has_run(void *ctx, int instr)
{
    struct clocked *c = ctx;
    if (!c->ns) /* parameters start */
        return;
    c->ns[c->step * c->n + instr] = fmax(1, topt_thread_ns() - c->at - c->asking);
    c->at = topt_thread_ns();
}

/* The median of an instruction's times, but for that of the first step, which takes pages. */
static double median_ns(const struct clocked *c, int instr)
{
    double ns[MANY];
    int n = 0;
    for (int s = 1; s < c->step; s++)
        ns[n++] = c->ns[s * c->n + instr];
    return topt_median(ns, (size_t)n);
}

static int run_steps(struct topt_session *s, struct clocked *c, struct topt_error *err)
{
    double loss, began = topt_thread_ns();
    for (; c->step < MANY && (c->step < FEW || topt_thread_ns() - began < ENOUGH_NS);
         c->step++) {
        c->at = topt_thread_ns();
        if (topt_session_step(s, &loss, err))
            return -1;
    }
    return 0;
}

/* ---- samples ----------------------------------------------------------------------------- */

static int is_alike(const struct topt_kernel_sample *a,
                    const struct topt_kernel_sample *b)
{
    return a->kernel == b->kernel && !strcmp(a->variant, b->variant) &&
           !memcmp(a->x, b->x, sizeof a->x);
}

/* In a loop a kernel does one round of what its operands hold. */
static int is_looped(const struct topt_op *o, enum topt_kernel kernel)
{
    for (int b = 0; b < 2; b++)
        for (const struct topt_step *s = b ? o->spec->backward : o->spec->forward;
             s->kind != TOPT_STEP_END; s++)
            if (s->kind == TOPT_STEP_KERNEL && s->kernel == kernel && s->loop)
                return 1;
    return 0;
}

static struct topt_kernel_sample sample_of(const struct topt_program *p,
                                           const struct topt_instr *i, double ns)
{
    const struct topt_op *o = &p->model->op[i->op];
    struct topt_kernel_run run = {.op = o, .kernel = i->kernel};
    struct topt_kernel_sample s = {
        .kernel = i->kernel, .name = topt_kernel_name(i->kernel), .ns = ns};
    for (int x = 0; x < o->spec->noperands; x++) {
        run.bytes += i->value[x] >= 0 ? p->buffer[i->value[x]].bytes : 0;
        run.bytes += i->grad[x] >= 0 ? p->buffer[i->grad[x]].bytes : 0;
    }
    run.flops = o->spec->flops(o, i->kernel, o->count);
    run.outputs = topt_written_numbers(o, i->kernel, o->count);
    s.variant = topt_kernel_variant(o, i->kernel);
    topt_kernel_features(&run, s.x);
    return s;
}

/* Of kernels that are alike the mean counts, as of the layers of a model. */
static int put_sample(struct topt_kernel_samples *all, int first,
                      const struct topt_kernel_sample *s, struct topt_error *err)
{
    for (int i = first; i < all->n; i++)
        if (is_alike(&all->sample[i], s)) {
            struct topt_kernel_sample *of = &all->sample[i];
            of->ns = (of->ns * of->of + s->ns) / (of->of + 1);
            of->of++;
            return 0;
        }
    if (TOPT_ROOM(all->sample, all->n, all->cap, 256))
        return topt_nomem(err, NULL);
    all->sample[all->n] = *s;
    all->sample[all->n++].of = 1;
    return 0;
}

static int put_all(struct topt_kernel_samples *all, const struct topt_program *p,
                   const struct clocked *c, struct topt_error *err)
{
    int first = all->n;
    for (int i = p->micro_begin; i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_KERNEL || is_looped(&p->model->op[in->op], in->kernel))
            continue;
        struct topt_kernel_sample s = sample_of(p, in, median_ns(c, i));
        if (put_sample(all, first, &s, err))
            return -1;
    }
    return 0;
}

/* ---- a model on all ranks ------------------------------------------------------------------ */

struct work {
    struct topt_comm *comm;
    struct topt_survey *survey;
    const char *where;
    struct topt_kernel_samples *all;
};

/* Samples from 'first' on are those of the slowest rank, and are kept. */
static int share(const struct work *w, const char *what, int first,
                 struct topt_error *err)
{
    struct topt_kernel_sample *s = w->all->sample;
    int n = w->all->n - first;
    double *ns = calloc((size_t)n + 1, sizeof *ns);
    if (topt_comm_agree(w->comm, ns ? 0 : topt_nomem(err, NULL), err)) {
        free(ns);
        return -1;
    }
    for (int i = 0; i < n; i++)
        ns[i] = s[first + i].ns;
    int rc = w->comm->ops->max(w->comm, ns, n, err);
    for (int i = 0; i < n && !rc; i++) {
        s[first + i].ns = ns[i];
        rc = topt_survey_keep(w->survey, what, i, ns[i], err);
    }
    free(ns);
    return topt_comm_agree(w->comm, rc, err);
}

/* Are all samples from 'first' on known? */
static int all_known(const struct work *w, const char *what, int first)
{
    int known = 1;
    for (int i = first; i < w->all->n && known; i++)
        known = topt_survey_known(w->survey, what, i - first, &w->all->sample[i].ns);
    return known;
}

static int measure_alone(const struct work *w, const struct topt_alone *a,
                         struct clocked *c, const char *what, struct topt_error *err)
{
    int first = w->all->n;
    if (topt_comm_agree(w->comm, put_all(w->all, a->program, c, err), err))
        return -1;
    if (all_known(w, what, first))
        return 0;
    w->all->n = first;
    int rc =
        run_steps(a->session, c, err) || put_all(w->all, a->program, c, err) ? -1 : 0;
    return topt_comm_agree(w->comm, rc, err) || share(w, what, first, err) ? -1 : 0;
}

static int open_feed(const struct topt_model *m, int model, const struct size *z,
                     struct topt_feed *ret, struct topt_error *err)
{
    struct topt_sample_data data = {.dir = ""};
    int rc = topt_sample_data_make(z->rows, &data, err);
    struct topt_feed_request q = {
        .data = sees(model) ? data.pictures : data.text, .mask = -1, .seed = 1};
    rc = rc || topt_feed_for(&q, NULL, m, ret, err) ? -1 : 0;
    topt_sample_data_remove(&data);
    return rc;
}

static int measure_model(const struct work *w, int model, const struct size *z,
                         struct topt_error *err)
{
    struct clocked c = {.asking = asking_ns()};
    struct topt_session_options o = {.seed = 1, .ran = has_run, .ctx = &c};
    struct topt_alone a = {.hw = NULL};
    char what[384];
    struct topt_model *m = make_model(model, z, err);
    int rc = !m || open_feed(m, model, z, &o.feed, err) || topt_alone_open(m, &o, &a, err)
                 ? -1
                 : 0;
    if (!rc) {
        c.n = a.program->ninstr;
        c.ns = calloc((size_t)c.n * MANY, sizeof *c.ns);
        rc = c.ns ? 0 : topt_nomem(err, NULL);
    }
    snprintf(what, sizeof what, "%.300s: kernels of %s, %d wide, heads of %d", w->where,
             topt_specimen[model].name, z->width, z->head);
    rc = topt_comm_agree(w->comm, rc, err);
    rc = rc || measure_alone(w, &a, &c, what, err) ? -1 : 0;
    topt_alone_close(&a);
    topt_feed_close(&o.feed);
    topt_model_destroy(m);
    free(c.ns);
    return rc;
}

/* ---- sweeps --------------------------------------------------------------------------------- */

static int put_sweeps(struct topt_kernel_samples *all, const struct topt_sweep_sample *s,
                      int n, struct topt_error *err)
{
    for (int i = 0; i < n; i++) {
        if (TOPT_ROOM(all->sample, all->n, all->cap, 256))
            return topt_nomem(err, NULL);
        all->sample[all->n++] =
            (struct topt_kernel_sample){.kernel = TOPT_KERNEL_COUNT,
                                        .name = topt_sweep_name(s[i].sweep),
                                        .variant = s[i].of,
                                        .x = {0, (double)s[i].bytes, 0, 1},
                                        .ns = s[i].ns};
    }
    return 0;
}

static int measure_sweeps(const struct work *w, int64_t most, struct topt_error *err)
{
    struct topt_sweep_sample s[TOPT_SWEEP_SAMPLES];
    int first = w->all->n, n = topt_sweep_samples(most, s);
    char what[384];
    snprintf(what, sizeof what, "%.300s: updates, clearing and adding up", w->where);
    if (topt_comm_agree(w->comm, put_sweeps(w->all, s, n, err), err))
        return -1;
    if (all_known(w, what, first))
        return 0;
    w->all->n = first;
    int rc = topt_clock_sweeps(s, n, err) || put_sweeps(w->all, s, n, err) ? -1 : 0;
    return topt_comm_agree(w->comm, rc, err) || share(w, what, first, err) ? -1 : 0;
}

int topt_measure_kernels(struct topt_comm *comm, struct topt_survey *survey,
                         const char *where, int64_t most, struct topt_kernel_samples *ret,
                         struct topt_error *err)
{
    struct work w = {comm, survey, where, ret};
    int n = 1;
    while (n < SIZES && 2 * sizes[n].width <= most)
        n++;
    topt_survey_expect(survey, (int64_t)n * TOPT_SPECIMENS * GUESSED);
    if (measure_sweeps(&w, most, err))
        return topt_wrap(err, "updates");
    for (int m = 0; m < TOPT_SPECIMENS; m++)
        for (int z = 0; z < n; z++)
            if (measure_model(&w, m, &sizes[z], err))
                return topt_wrap(err, "kernels of %s", topt_specimen[m].name);
    return 0;
}

void topt_kernel_samples_fini(struct topt_kernel_samples *s)
{
    free(s->sample);
    *s = (struct topt_kernel_samples){.n = 0};
}

/* ---- as a table ----------------------------------------------------------------------------- */

static json_t *row_of(json_t *rows, const struct topt_kernel_sample *s)
{
    size_t i;
    json_t *row;
    json_array_foreach(
        rows, i,
        row) if (!strcmp(json_string_value(json_object_get(row, "kernel")), s->name) &&
                 !strcmp(json_string_value(json_object_get(row, "of")),
                         s->variant)) return row;
    row = json_pack("{s:s, s:s, s:s, s:[]}", "kernel", s->name, "of", s->variant, "type",
                    topt_dtype_name(TOPT_F32), "samples");
    json_array_append_new(rows, row);
    return row;
}

json_t *topt_kernel_samples_json(const struct topt_kernel_samples *all)
{
    json_t *rows = json_array();
    for (int i = 0; i < all->n; i++) {
        const struct topt_kernel_sample *s = &all->sample[i];
        json_t *list = json_object_get(row_of(rows, s), "samples");
        json_array_append_new(list,
                              json_pack("[I, I, I, I, I]", (json_int_t)s->x[0],
                                        (json_int_t)s->x[1], (json_int_t)s->x[2],
                                        (json_int_t)s->x[3], (json_int_t)(s->ns + 0.5)));
    }
    return rows;
}
