/* model.c - see model.h. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "topt_array.h"
#include "topt_minmax.h"

enum { YEAR_S = 365 * 24 * 3600, SOON_S = 60 };

/* ---- what a job takes -------------------------------------------------------------- */

static int64_t memory_of(const struct site_queued *j, int64_t cpus, int64_t gpus)
{
    return j->memory_mib           ? j->memory_mib
           : j->memory_per_cpu_mib ? j->memory_per_cpu_mib * cpus
                                   : j->memory_per_gpu_mib * gpus;
}

/* As it is. */
static struct topt_alloc_shape own_shape(const struct site_queued *j)
{
    int64_t nodes = topt_max(j->nodes, 1);
    int64_t gpus = j->gpus_per_node ? j->gpus_per_node : (j->gpus + nodes - 1) / nodes;
    int64_t cpus = topt_max(j->cpus_per_node, (j->cpus + nodes - 1) / nodes);
    return (struct topt_alloc_shape){
        .nodes = nodes,
        .each = {gpus, cpus, memory_of(j, cpus, gpus)},
    };
}

int64_t model_limit(const struct site_queued *j, int from, int to)
{
    const struct topt_elastic *e = &j->elastic;
    double own = (double)e->shape[e->submitted].time_ns;
    double was = (double)e->shape[from].time_ns, is = (double)e->shape[to].time_ns;
    was = was > own ? was : own;
    is = is > own ? is : own;
    if (!j->time_s || was == is)
        return j->time_s;
    int64_t minutes = (int64_t)((double)j->time_s * is / was / 60 + 0.999);
    return topt_max(minutes, 1) * 60;
}

/* In another shape. */
static struct topt_alloc_shape other_shape(const struct site_queued *j, int to)
{
    const struct topt_elastic *e = &j->elastic;
    const struct topt_elastic_shape *s = &e->shape[to];
    int64_t tasks = e->by_node ? 1 : s->gpus_per_node;
    int64_t cpus = tasks * topt_max(j->cpus_per_task, 1);
    return (struct topt_alloc_shape){
        .nodes = s->nodes,
        .each = {s->gpus_per_node, cpus, memory_of(j, cpus, s->gpus_per_node)}};
}

/* Of a job that says how many steps it trains; 0: it doesn't. */
static int64_t run_of_steps(const struct site_queued *j, int shape)
{
    double ns = shape < 0 ? 0 : (double)j->elastic.shape[shape].time_ns;
    double run = ns / 1e9 * (double)j->elastic.steps;
    return j->is_elastic && run > 0 && run < YEAR_S ? topt_max(1, (int64_t)run) : 0;
}

/* Its time in a shape of its own; where it says no steps, in proportion to that of the submitted one, whose limit was
 * chosen by a person. */
int64_t model_run(const struct model_job *j, int to)
{
    const struct topt_elastic *e = &j->job->elastic;
    int from = j->job->time_s ? e->submitted : j->from;
    int64_t of_steps = run_of_steps(j->job, to);
    if (to < 0 || of_steps)
        return of_steps ? of_steps : j->length_s;
    int64_t length =
        j->job->time_s ? model_limit(j->job, j->from, e->submitted) : j->length_s;
    return topt_max(1, (int64_t)((double)length * (double)e->shape[to].time_ns /
                                 (double)e->shape[from].time_ns));
}

/* Its present shape is as Slurm has it, whatever its plan would ask for. */
static void add_shape(struct model_job *j, int elastic)
{
    struct topt_alloc_shape s =
        elastic == j->from ? own_shape(j->job) : other_shape(j->job, elastic);
    s.run_s = model_run(j, elastic);
    s.kind = elastic < 0 ? TOPT_ELASTIC_KINDS : j->job->elastic.shape[elastic].kind;
    s.serves = j->serves[s.kind];
    j->elastic[j->nshapes] = elastic;
    j->shape[j->nshapes++] = s;
}

void model_choose(struct model_job *j, int elastic)
{
    j->nshapes = j->asked = 0;
    add_shape(j, elastic);
}

void model_fix(struct model_job *j)
{
    model_choose(j, j->from);
}

size_t model_tasks(const struct model *m, size_t i)
{
    size_t n = 1;
    while (i + n < m->njobs && m->job[i + n].job == m->job[i].job)
        n++;
    return n;
}

/* What it was submitted with is what it asked for. */
void model_allow(struct model_job *j, int elastic)
{
    if (elastic == j->from || j->nshapes == MODEL_SHAPES)
        return;
    if (elastic == j->job->elastic.submitted)
        j->asked = j->nshapes;
    add_shape(j, elastic);
}

void model_update(struct model *m)
{
    for (size_t i = 0; i < m->njobs; i++)
        m->planned[i] = (struct topt_alloc_job){.id = m->job[i].job->id,
                                                .shape = m->job[i].shape,
                                                .nshapes = m->job[i].nshapes,
                                                .asked = m->job[i].asked};
}

/* ---- nodes ------------------------------------------------------------------------- */

static const struct site_node *slurm_node(const struct site_slurm *s,
                                          const struct model *m, size_t i)
{
    return &s->node[m->of[i]];
}

/* Do the same jobs fit on both, but for how much they need? */
static int is_alike(const struct site_slurm *s, const struct model *m, size_t a, size_t b)
{
    const struct site_node *x = slurm_node(s, m, a), *y = slurm_node(s, m, b);
    return x->is_up == y->is_up && !strcmp(x->partitions, y->partitions) &&
           !strcmp(x->features, y->features) &&
           !strcmp(x->gpu[m->type[a]].type, y->gpu[m->type[b]].type);
}

static void add_node(const struct site_slurm *s, struct model *m, size_t of, int type)
{
    const struct site_node *n = &s->node[of];
    int64_t count = n->gpu[type].count, all = 0;
    size_t i = m->p.nnodes++;
    for (int k = 0; k < n->ntypes; k++)
        all += n->gpu[k].count;
    m->of[i] = of;
    m->type[i] = type;
    m->node[i].has = (struct topt_alloc_size){count, all ? n->cpus * count / all : 0,
                                              all ? n->memory_mib * count / all : 0};
    m->node[i].set = m->nsets;
    for (size_t k = 0; k < i && m->node[i].set == m->nsets; k++)
        if (is_alike(s, m, k, i))
            m->node[i].set = m->node[k].set;
    m->nsets += m->node[i].set == m->nsets;
    if (!n->is_up || n->is_reserved)
        return;
    m->gpus += count;
    m->idle += topt_max(0, count - n->gpu[type].used);
}

static int hold(struct model *m, int64_t job, size_t node, struct topt_alloc_size takes,
                int64_t from_s, int64_t to_s)
{
    if (TOPT_ROOM(m->held, m->p.nheld, m->room_held, 256))
        return -1;
    m->held[m->p.nheld++] = (struct topt_alloc_held){job, node, takes, to_s, from_s};
    return 0;
}

/* Reservations of the node, each of all of it. */
static int hold_reserved(const struct site_slurm *s, struct model *m, size_t i)
{
    const struct site_node *n = slurm_node(s, m, i);
    int64_t now = m->p.now_s;
    int is_known = 0, rc = 0;
    for (size_t k = 0; !rc && k < s->nreservations; k++) {
        const struct site_reservation *r = &s->reservation[k];
        if (!site_has_word(n->reservations, r->name))
            continue;
        int64_t end = r->end_s ? r->end_s : now + YEAR_S;
        is_known |= r->start_s <= now && end > now;
        rc = hold(m, 0, i, m->node[i].has, r->start_s, end);
    }
    if (!rc && n->is_reserved && !is_known)
        rc = hold(m, 0, i, m->node[i].has, now, now + YEAR_S);
    return rc;
}

/* Slurm says of jobs without a limit that they end in a year. */
static int has_end(const struct site_queued *j, int64_t now_s)
{
    return j->time_s && j->end_s && j->end_s < now_s + YEAR_S;
}

/* How long those without a limit have run, on average, and no less than the longest limit
 * of the queue; a year where nobody has run. */
static int64_t usual_length(const struct site_queue *q, int64_t now_s)
{
    int64_t sum = 0, n = 0, longest = 1;
    for (size_t i = 0; i < q->n; i++) {
        const struct site_queued *j = &q->job[i];
        longest = topt_max(longest, j->time_s);
        if (!j->on || !j->start_s || has_end(j, now_s))
            continue;
        sum += topt_max(0, now_s - j->start_s);
        n++;
    }
    return n ? topt_max(longest, sum / n) : YEAR_S;
}

/* When a running job ends: after its steps, by its limit, or nobody knows: in a year. */
static int64_t end_of(const struct model *m, const struct site_queued *j)
{
    int64_t now = m->p.now_s;
    int64_t run = run_of_steps(j, site_queued_shape(j));
    int64_t limit = has_end(j, now) ? j->end_s : now + YEAR_S;
    if (run && j->start_s)
        limit = has_end(j, now) ? topt_min(limit, j->start_s + run) : j->start_s + run;
    return has_end(j, now) || run ? topt_max(limit, now + SOON_S) : limit;
}

/* Running jobs of the node, until they end, and what they don't explain. */
static int hold_used(const struct site_slurm *s, const struct site_queue *q,
                     struct model *m, size_t i)
{
    const struct site_node *n = slurm_node(s, m, i);
    int type = m->type[i], rc = 0;
    int64_t now = m->p.now_s;
    struct topt_alloc_size left = {n->gpu[type].used, n->ntypes > 1 ? 0 : n->cpus_used,
                                   n->ntypes > 1 ? 0 : n->memory_used_mib};
    for (size_t k = 0; !rc && k < q->n; k++) {
        const struct site_queued *j = &q->job[k];
        struct topt_alloc_size takes = own_shape(j).each;
        if (!j->on || !site_host_is_in(j->on, strlen(j->on), n->name) ||
            (*j->gpu_type && strcmp(j->gpu_type, n->gpu[type].type)))
            continue;
        takes.gpus = topt_min(takes.gpus, left.gpus);
        takes.cpus = topt_min(takes.cpus, left.cpus);
        takes.memory_mib = topt_min(takes.memory_mib, left.memory_mib);
        left.gpus -= takes.gpus;
        left.cpus -= takes.cpus;
        left.memory_mib -= takes.memory_mib;
        rc = hold(m, j->id, i, takes, now, end_of(m, j));
    }
    if (!rc && (left.gpus || left.cpus || left.memory_mib))
        rc = hold(m, -1, i, left, now, now + YEAR_S);
    return rc;
}

/* ---- jobs -------------------------------------------------------------------------- */

static int by_priority(const void *a, const void *b)
{
    const struct site_queued *x = ((const struct model_job *)a)->job;
    const struct site_queued *y = ((const struct model_job *)b)->job;
    int64_t task = ((const struct model_job *)a)->task;
    int64_t other = ((const struct model_job *)b)->task;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
                          : (task > other) - (task < other);
}

/* Which sets of nodes a job can be on in these partitions: with its features and type. */
static unsigned char *serving(const struct site_slurm *s, const struct model *m,
                              const struct site_queued *q, const char *partitions)
{
    unsigned char *ret = calloc((size_t)m->nsets + 1, 1);
    for (size_t i = 0; ret && i < m->p.nnodes; i++) {
        const struct site_node *n = slurm_node(s, m, i);
        if (site_node_serves(n, partitions, q->constraint) &&
            (!*q->gpu_type || !strcmp(q->gpu_type, n->gpu[m->type[i]].type)))
            ret[m->node[i].set] = 1;
    }
    return ret;
}

static int set_serves(const struct site_slurm *s, const struct model *m,
                      struct model_job *j)
{
    int n = j->job->is_elastic ? j->job->elastic.nkinds + !j->job->elastic.nkinds : 0;
    for (int i = 0; i <= TOPT_ELASTIC_KINDS; i++) {
        char partitions[SITE_WORDS];
        if (i >= n && i < TOPT_ELASTIC_KINDS)
            continue;
        site_queued_partitions(j->job, i < n ? i : -1, partitions);
        if (!(j->serves[i] = serving(s, m, j->job, partitions)))
            return -1;
    }
    return 0;
}

/* Tasks of an array that are planned, so that those of all arrays are not too many. */
static int64_t most_tasks(const struct site_queue *q)
{
    int64_t arrays = 0;
    for (size_t i = 0; i < q->n; i++)
        arrays += site_waits(&q->job[i]) && q->job[i].array_tasks > 1;
    return topt_max(1, topt_min(MODEL_TASKS, MODEL_ALL_TASKS / topt_max(1, arrays)));
}

/* Entries of a job: tasks of an array that may run at once; 0 where it is not planned. */
static int64_t entries_of(const struct site_queued *j, int64_t most)
{
    int64_t n = topt_min(most, topt_max(1, j->array_tasks));
    if (j->array_most)
        n = topt_min(n, j->array_most);
    return site_waits(j) && own_shape(j).each.gpus ? n : 0;
}

static int add_jobs(const struct site_slurm *s, const struct site_queue *q,
                    struct model *m)
{
    int64_t most = most_tasks(q);
    int rc = 0;
    for (size_t i = 0; i < q->n; i++)
        for (int64_t n = entries_of(&q->job[i], most), k = 0; k < n; k++)
            m->job[m->njobs++] = (struct model_job){.job = &q->job[i], .task = k};
    qsort(m->job, m->njobs, sizeof *m->job, by_priority);
    for (size_t i = 0; !rc && i < m->njobs; i++) {
        const struct site_queued *j = m->job[i].job;
        m->job[i].from = site_queued_shape(j);
        m->job[i].length_s = j->time_s ? j->time_s : m->usual_s;
        rc = set_serves(s, m, &m->job[i]);
        model_fix(&m->job[i]);
    }
    return rc;
}

int model_running(const struct site_slurm *s, const struct site_queued *q,
                  const struct model *m, struct model_job *ret)
{
    *ret = (struct model_job){.job = q,
                              .from = site_queued_shape(q),
                              .length_s = q->time_s ? q->time_s : m->usual_s};
    if (set_serves(s, m, ret))
        return -1;
    ret->length_s = model_run(ret, ret->from);
    model_choose(ret, q->elastic.submitted);
    return 0;
}

void model_job_fini(struct model_job *j)
{
    for (int k = 0; k <= TOPT_ELASTIC_KINDS; k++)
        free(j->serves[k]);
}

static int build(const struct site_slurm *s, const struct site_queue *q, struct model *m)
{
    size_t nodes = s->nnodes * SITE_TYPES + 1, jobs = 1;
    int64_t most = most_tasks(q);
    for (size_t i = 0; i < q->n; i++)
        jobs += (size_t)entries_of(&q->job[i], most);
    m->node = calloc(nodes, sizeof *m->node);
    m->of = calloc(nodes, sizeof *m->of);
    m->type = calloc(nodes, sizeof *m->type);
    m->job = calloc(jobs, sizeof *m->job);
    m->planned = calloc(jobs, sizeof *m->planned);
    if (!m->node || !m->of || !m->type || !m->job || !m->planned)
        return -1;
    for (size_t i = 0; i < s->nnodes; i++)
        for (int k = 0; k < s->node[i].ntypes; k++)
            add_node(s, m, i, k);
    m->usual_s = usual_length(q, m->p.now_s);
    for (size_t i = 0; i < m->p.nnodes; i++)
        if (hold_reserved(s, m, i) || hold_used(s, q, m, i))
            return -1;
    return add_jobs(s, q, m);
}

int model_init(const struct site_slurm *s, const struct site_queue *q, int64_t now_s,
               struct model *ret, struct topt_error *err)
{
    *ret = (struct model){.p = {.now_s = now_s}};
    if (build(s, q, ret)) {
        model_fini(ret);
        return topt_nomem(err, "the queue");
    }
    model_update(ret);
    ret->p.node = ret->node;
    ret->p.held = ret->held;
    ret->p.job = ret->planned;
    ret->p.njobs = ret->njobs;
    return 0;
}

void model_fini(struct model *m)
{
    for (size_t i = 0; i < m->njobs; i++)
        model_job_fini(&m->job[i]);
    free(m->node);
    free(m->of);
    free(m->type);
    free(m->held);
    free(m->job);
    free(m->planned);
    *m = (struct model){.njobs = 0};
}
