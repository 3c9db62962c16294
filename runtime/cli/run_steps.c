/* run_steps.c - the steps of a run, and what is said meanwhile.
 *
 * After each step the ranks tell each other whether one was told to end, so that all end
 * after the same step. */
#include "run_steps.h"
#include "topt_clock.h"
#include "metrics.h"
#include "rank.h"
#include "run_outputs.h"
#include "topt_text.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t told_to_end;

static void on_signal(int signal)
{
    (void)signal;
    told_to_end = 1;
}

static void listen_to_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&a.sa_mask);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGUSR1, &a, NULL);
}

/* In place on a terminal, else a line every few seconds; only rank 0. */
static void progress(struct topt_run *r, int last)
{
    int tty = isatty(STDERR_FILENO);
    int64_t t = topt_clock_ns(), every = tty ? 100000000 : 5000000000;
    char took[32];
    if (r->comm->rank || r->args.quiet || t - r->shown_ns < (tty && last ? 0 : every))
        return;
    r->shown_ns = t;
    topt_show_ns(topt_median_ns(r->step_ns, r->steps), took, sizeof took);
    char balance[48] = "";
    if (r->args.balance > 0)
        snprintf(balance, sizeof balance, "balance of experts %.3f, ",
                 topt_session_balance(r->session));
    fprintf(stderr, "%sstep %lld of %lld, loss %.4f, %s%s per step%s",
            tty ? "\r\033[K" : "", (long long)(r->first + r->steps),
            (long long)r->args.steps, r->loss[r->steps - 1], balance, took,
            tty && !last ? "" : "\n");
    fflush(stderr);
}

/* This rank can't go on, and the others wait for it. */
static _Noreturn void end_all(struct topt_run *r, const struct topt_error *err)
{
    if (r->guard)
        topt_guard_fail(r->guard, err);
    topt_run_last_words(r, err->code, err->text);
    r->comm->ops->abort(r->comm, topt_err_exit(err->code));
    _exit(topt_err_exit(err->code));
}

/* What the ranks tell each other between two steps. */
struct word {
    int end;     /* a rank was told to */
    int writing; /* a rank still writes its part of a checkpoint */
};

static void fill_words(const struct topt_run *r, double flag[2])
{
    flag[0] = told_to_end;
    flag[1] = r->saver && topt_saver_state(r->saver) == 1;
}

void topt_run_say(void *run, double word[TOPT_SESSION_WORDS])
{
    fill_words(run, word);
}

static int ask_all(struct topt_run *r, int64_t doing, struct word *ret,
                   struct topt_error *err)
{
    double flag[2];
    fill_words(r, flag);
    topt_run_at(topt_guard_place(r->guard), r->first + r->steps, doing, 1);
    if (r->host->ops->max(r->host, flag, 2, err))
        return -1;
    *ret = (struct word){.end = flag[0] > 0, .writing = flag[1] > 0};
    return 0;
}

/* ---- checkpoints ------------------------------------------------------------------- */

/* What the steps wait for. */
static void count_save(struct topt_run *r, int64_t since)
{
    r->report.save_ns += topt_clock_ns() - since;
}

static int begin_save(struct topt_run *r, struct topt_error *err)
{
    int is_cosine = !strcmp(r->args.schedule, "cosine");
    struct topt_checkpoint_facts f = {.step = r->first + r->steps,
                                      .schedule_last = is_cosine ? r->args.steps : 0,
                                      .batch = r->plan->model->batch,
                                      .seq = r->plan->model->seq,
                                      .seed = (uint64_t)r->args.seed,
                                      .data = r->feed.digest};
    topt_run_at(topt_guard_place(r->guard), f.step, TOPT_DOING_SAVE, 1);
    if (topt_saver_begin(r->saver, &f, err))
        return -1;
    r->saved = f.step;
    r->report.saves++;
    return 0;
}

static int wait_for_save(struct topt_run *r, struct topt_error *err)
{
    struct word w = {.writing = 1};
    while (topt_saver_state(r->saver) && w.writing) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (ask_all(r, TOPT_DOING_SAVE, &w, err))
            return -1;
    }
    return topt_saver_state(r->saver) ? topt_saver_commit(r->saver, err) : 0;
}

/* What is written gets its name; what is due begins, after the last one is written. */
static int save_between(struct topt_run *r, const struct word *w, struct topt_error *err)
{
    int64_t at = r->first + r->steps;
    if (!r->saver)
        return 0;
    if (topt_saver_state(r->saver) && !w->writing) {
        topt_run_at(topt_guard_place(r->guard), at, TOPT_DOING_SAVE, 1);
        if (topt_saver_commit(r->saver, err))
            return -1;
    }
    if (at % r->args.every)
        return 0;
    return wait_for_save(r, err) || begin_save(r, err) ? -1 : 0;
}

/* All that was done is in a checkpoint afterwards. */
static int save_last(struct topt_run *r, struct topt_error *err)
{
    if (!r->saver || wait_for_save(r, err))
        return r->saver ? -1 : 0;
    if (r->saved == r->first + r->steps)
        return 0;
    return begin_save(r, err) || wait_for_save(r, err) ? -1 : 0;
}

/* ---- the steps --------------------------------------------------------------------- */

/* NAN where it is not the time for one. */
static int evaluate(struct topt_run *r, double *ret, double *ret_right,
                    struct topt_error *err)
{
    int64_t at = r->first + r->steps;
    *ret = *ret_right = NAN;
    if (!r->args.eval_data || (at % r->args.eval_every && at < r->args.steps))
        return 0;
    return topt_session_evaluate(r->session, &r->eval_feed, r->args.eval_batches, ret,
                                 ret_right, err);
}

static void say_evaluation(struct topt_run *r, double eval, double right)
{
    long long at = (long long)(r->first + r->steps);
    r->report.eval_loss = eval;
    r->report.eval_right = right;
    if (isfinite(right))
        topt_run_note(r, "step %lld: evaluation %.4f, %.1f %% of the labels are met", at,
                      eval, 100 * right);
    else
        topt_run_note(r, "step %lld: evaluation %.4f", at, eval);
}

static int one_step(struct topt_run *r, struct topt_error *err)
{
    int64_t i = r->steps, before = topt_clock_ns();
    if (topt_session_step(r->session, &r->loss[i], err))
        end_all(r, err);
    const double *heard = topt_session_heard(r->session);
    struct word w = {.end = heard[0] > 0, .writing = heard[1] > 0};
    topt_run_at(topt_guard_place(r->guard), r->first + i + 1, TOPT_DOING_BETWEEN, 0);
    r->step_ns[i] = topt_clock_ns() - before;
    if (!isfinite(r->loss[i]) && !i && r->first) /* of any rate */
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the loss is not a number in the first step after the "
                         "checkpoint, whose weights are of no use; without "
                         "'%.200s/step-%09lld' --resume takes an older one",
                         r->args.checkpoint, (long long)r->first);
    if (!isfinite(r->loss[i])) /* not a number that a report could hold */
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the loss is not a number any more at step %lld; try a smaller "
                         "--lr than %g",
                         (long long)(r->first + i + 1), r->report.lr);
    r->steps++;
    r->stopped = w.end;
    progress(r, r->first + r->steps == r->args.steps || r->stopped);
    double eval, right;
    if (evaluate(r, &eval, &right, err))
        end_all(r, err);
    if (isfinite(eval))
        say_evaluation(r, eval, right);
    int failed = r->metrics && topt_metrics_step(r->metrics, r, eval, right, err);
    if (r->args.metrics && topt_comm_agree(r->host, failed, err))
        return -1;
    before = topt_clock_ns();
    int rc = save_between(r, &w, err);
    count_save(r, before);
    return rc;
}

int topt_run_steps(struct topt_run *r, struct topt_error *err)
{
    int rc = 0;
    listen_to_signals();
    r->shown_ns = topt_clock_ns();
    topt_guard_look(r->guard, 1);
    while (!rc && !r->stopped && r->first + r->steps < r->args.steps)
        rc = one_step(r, err);
    int64_t before = topt_clock_ns();
    if (!rc)
        rc = save_last(r, err);
    count_save(r, before);
    topt_guard_look(r->guard, 0);
    snprintf(r->ended, sizeof r->ended,
             "told to end (SIGTERM or SIGUSR1) after step %lld",
             (long long)(r->first + r->steps));
    if (!rc && r->stopped && r->saver)
        topt_run_note(r, "told to end: saved after step %lld in '%s'; --resume goes on",
                      (long long)r->saved, r->args.checkpoint);
    else if (!rc && r->stopped)
        topt_run_warn(r,
                      "told to end after step %lld; nothing is saved without "
                      "--checkpoint",
                      (long long)(r->first + r->steps));
    return rc;
}
