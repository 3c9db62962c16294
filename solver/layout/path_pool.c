/* path_pool.c - many questions at once: those of one source together, sources shared
 * out over threads.
 *
 * A path follows from its question alone, so it does not matter which thread answers
 * it, or beside what else it was asked. */
#include "path_pool.h"

#include <stdlib.h>

#include "topt_array.h"
#include "topt_pool.h"

/* So few questions are not worth waking threads up for; so many sources are one
 * thread's at most. */
enum { FEW_QUESTIONS = 256, RUN_SOURCES = 128 };

struct topt_path_pool {
    const struct topt_hw *hw;
    struct topt_mesh mesh;
    struct topt_pool *pool;
    int npaths;
    struct topt_paths **paths;
};

/* Questions in order of their sources; a run is those of sources that are alike but
 * for where they begin. */
struct job {
    struct topt_path_pool *team;
    struct topt_path_question **question;
    int *run; /* where each begins; the end is one more */
    int nruns;
    atomic_int next;
    const atomic_bool *cancel;
    atomic_bool failed, canceled;
};

struct topt_path_pool *topt_path_pool_create(const struct topt_hw *hw,
                                             const struct topt_mesh *mesh)
{
    struct topt_path_pool *t = calloc(1, sizeof *t);
    struct topt_paths **paths = calloc(1, sizeof(struct topt_paths *));
    struct topt_paths *first = topt_paths_create(hw, mesh);
    if (!t || !paths || !first) {
        topt_paths_destroy(first);
        free(paths);
        free(t);
        return NULL;
    }
    paths[0] = first;
    *t = (struct topt_path_pool){.hw = hw, .mesh = *mesh, .npaths = 1, .paths = paths};
    return t;
}

void topt_path_pool_destroy(struct topt_path_pool *t)
{
    if (!t)
        return;
    topt_pool_destroy(t->pool);
    for (int i = 0; i < t->npaths; i++)
        topt_paths_destroy(t->paths[i]);
    free(t->paths);
    free(t);
}

struct topt_paths *topt_path_pool_first(struct topt_path_pool *t)
{
    return t->paths[0];
}

/* Make the team as large as 'n', with threads for all. */
static int team_grow(struct topt_path_pool *t, int n, struct topt_error *err)
{
    if (n > t->npaths && TOPT_RESIZE(t->paths, n))
        return topt_nomem(err, "redistributions");
    for (; t->npaths < n; t->npaths++)
        if (!(t->paths[t->npaths] = topt_paths_create(t->hw, &t->mesh)))
            return topt_nomem(err, "redistributions");
    if (t->pool && topt_pool_threads(t->pool) >= n)
        return 0;
    topt_pool_destroy(t->pool);
    t->pool = topt_pool_create(n, err);
    return t->pool ? 0 : -1;
}

/* First by all but where they begin, of which a hash will do: a run ends where it
 * differs. */
static int by_source(const void *a, const void *b)
{
    const struct topt_path_question *x = *(struct topt_path_question *const *)a;
    const struct topt_path_question *y = *(struct topt_path_question *const *)b;
    uint64_t p = x->source.from, q = y->source.from;
    if (x->costs_hash != y->costs_hash)
        return x->costs_hash < y->costs_hash ? -1 : 1;
    return p != q ? (p > q) - (p < q) : (x->to > y->to) - (x->to < y->to);
}

static int *find_runs(struct topt_path_question **question, int n, int *ret_nruns)
{
    int *run = malloc(((size_t)n + 1) * sizeof *run), nruns = 0, sources = 0;
    for (int i = 0; run && i < n; i++) {
        const struct topt_path_source *s = &question[i]->source;
        int fresh = !i || !topt_path_same_costs(s, &question[i - 1]->source);
        sources += !fresh && s->from != question[i - 1]->source.from;
        if (fresh || sources == RUN_SOURCES) {
            run[nruns++] = i;
            sources = 0;
        }
    }
    if (run)
        run[nruns] = n;
    *ret_nruns = nruns;
    return run;
}

static void work(void *ctx, int worker)
{
    struct job *j = ctx;
    for (;;) {
        int i = atomic_fetch_add(&j->next, 1);
        if (i >= j->nruns || atomic_load(&j->failed))
            return;
        if (j->cancel && atomic_load(j->cancel)) {
            atomic_store(&j->canceled, 1);
            return;
        }
        if (topt_paths_answer(j->team->paths[worker], j->question + j->run[i],
                              j->run[i + 1] - j->run[i]))
            atomic_store(&j->failed, 1);
    }
}

int topt_path_pool_answer(struct topt_path_pool *t, struct topt_path_question **question,
                          int n, int threads, const atomic_bool *cancel,
                          struct topt_error *err)
{
    struct job j = {.team = t, .question = question, .cancel = cancel};
    if (n > 1)
        qsort(question, (size_t)n, sizeof(struct topt_path_question *), by_source);
    j.run = find_runs(question, n, &j.nruns);
    if (!j.run)
        return topt_nomem(err, "redistributions");
    int many = threads > 1 && n > FEW_QUESTIONS && j.nruns > 1;
    int rc = many ? team_grow(t, threads, err) : 0;
    if (!rc && many)
        topt_pool_run(t->pool, work, &j);
    else if (!rc)
        work(&j, 0);
    free(j.run);
    if (!rc && atomic_load(&j.canceled))
        return topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
    if (!rc && atomic_load(&j.failed))
        return topt_nomem(err, "redistributions");
    return rc;
}
