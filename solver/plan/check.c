/* check.c - nobody gets a plan that was not costed again from scratch and lowered.
 *
 * The search knows tables; this knows only the model, the strategy and the fragments.  Of many
 * strategies each is audited (topt_lower.h), and the first by the plain code as well, which the
 * audit is held against. */
#include <stdlib.h>

#include "document.h"

/* Is that what the search says, and does the program fit in it? */
static int hold(const struct topt_costing *k, const struct topt_strategy_cost *cost,
                int64_t peak, int64_t memory_bytes, int64_t time_ns,
                struct topt_error *err)
{
    if (cost->memory_bytes != memory_bytes || cost->time_ns != time_ns)
        return topt_fail(
            err, TOPT_ERR_INTERNAL,
            "check: the search says %lld bytes, %lld ns; the plan costs %lld, %lld",
            (long long)memory_bytes, (long long)time_ns, (long long)cost->memory_bytes,
            (long long)cost->time_ns);
    if (k->settings->accounting == TOPT_ACCOUNTING_RUN && peak > memory_bytes)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "check: the program needs %lld bytes, the plan says %lld",
                         (long long)peak, (long long)memory_bytes);
    return 0;
}

int topt_plan_check(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t memory_bytes, int64_t time_ns,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err)
{
    struct topt_program *program;
    if (topt_cost_strategy(k, s, ret_cost, err) ||
        topt_lower(k->model, k->mesh, k->settings, s, k->router, &program, err))
        return topt_wrap(err, "check");
    *ret_peak = program->peak_bytes;
    topt_program_destroy(program);
    return hold(k, ret_cost, *ret_peak, memory_bytes, time_ns, err);
}

struct topt_checker {
    struct topt_costing k;
    struct topt_audit *audit;
    int checked; /* one by the plain code */
};

struct topt_checker *topt_checker_create(const struct topt_costing *k,
                                         struct topt_error *err)
{
    struct topt_checker *c = calloc(1, sizeof *c);
    if (!c) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for checking strategies");
        return NULL;
    }
    c->k = *k;
    c->audit = topt_audit_create(&c->k, err);
    if (!c->audit) {
        free(c);
        return NULL;
    }
    return c;
}

void topt_checker_destroy(struct topt_checker *c)
{
    if (!c)
        return;
    topt_audit_destroy(c->audit);
    free(c);
}

static int check_plainly(struct topt_checker *c, const struct topt_strategy *s,
                         int64_t memory_bytes, int64_t time_ns, int64_t audited_peak,
                         struct topt_error *err)
{
    struct topt_strategy_cost cost;
    int64_t peak;
    if (topt_plan_check(&c->k, s, memory_bytes, time_ns, &cost, &peak, err))
        return -1;
    c->checked = 1;
    return peak == audited_peak
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL,
                           "check: the program needs %lld bytes, its audit says %lld",
                           (long long)peak, (long long)audited_peak);
}

int topt_checker_check(struct topt_checker *c, const struct topt_strategy *s,
                       int64_t memory_bytes, int64_t time_ns,
                       struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                       struct topt_error *err)
{
    if (topt_audit_strategy(c->audit, s, ret_cost, ret_peak, err))
        return topt_wrap(err, "check");
    if (hold(&c->k, ret_cost, *ret_peak, memory_bytes, time_ns, err))
        return -1;
    return c->checked ? 0 : check_plainly(c, s, memory_bytes, time_ns, *ret_peak, err);
}
