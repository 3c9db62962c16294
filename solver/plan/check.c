/* check.c - nobody gets a plan that was not costed again from scratch and lowered.
 *
 * The search knows tables; this knows only the model, the strategy and the fragments. */
#include "document.h"

int topt_plan_check(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t memory_bytes, int64_t time_ns,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err)
{
    struct topt_program *program;
    if (topt_cost_strategy(k, s, ret_cost, err))
        return topt_wrap(err, "check");
    if (ret_cost->memory_bytes != memory_bytes || ret_cost->time_ns != time_ns)
        return topt_fail(
            err, TOPT_ERR_INTERNAL,
            "check: the search says %lld bytes, %lld ns; the plan costs %lld, %lld",
            (long long)memory_bytes, (long long)time_ns,
            (long long)ret_cost->memory_bytes, (long long)ret_cost->time_ns);
    if (topt_lower(k->model, k->mesh, k->settings, s, k->router, &program, err))
        return topt_wrap(err, "check");
    *ret_peak = program->peak_bytes;
    topt_program_destroy(program);
    if (k->settings->accounting == TOPT_ACCOUNTING_RUN && *ret_peak > memory_bytes)
        return topt_fail(err, TOPT_ERR_INTERNAL,
                         "check: the program needs %lld bytes, the plan says %lld",
                         (long long)*ret_peak, (long long)memory_bytes);
    return 0;
}
