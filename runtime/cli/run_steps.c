/* run_steps.c - the steps of a run, and what is said meanwhile.
 *
 * After each step the ranks tell each other whether one was told to end, so that all end
 * after the same step. */
#include "run_steps.h"
#include "rank.h"
#include "run_outputs.h"
#include "topt_text.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
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
    int64_t t = topt_run_now_ns(), every = tty ? 100000000 : 5000000000;
    char took[32];
    if (r->comm->rank || r->args.quiet || t - r->shown_ns < (tty && last ? 0 : every))
        return;
    r->shown_ns = t;
    topt_show_ns(topt_median_ns(r->step_ns, r->steps), took, sizeof took);
    fprintf(stderr, "%sstep %lld of %lld, loss %.4f, %s a step%s", tty ? "\r\033[K" : "",
            (long long)r->steps, (long long)r->args.steps, r->loss[r->steps - 1], took,
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

/* Was any rank told to end? */
static int ask_all(struct topt_run *r, int *ret_stop, struct topt_error *err)
{
    double flag = told_to_end;
    topt_run_at(topt_guard_place(r->guard), r->steps, TOPT_DOING_BETWEEN, 1);
    if (r->host->ops->max(r->host, &flag, 1, err))
        return -1;
    *ret_stop = flag > 0;
    return 0;
}

static int one_step(struct topt_run *r, struct topt_error *err)
{
    int64_t i = r->steps, before = topt_run_now_ns();
    if (topt_session_step(r->session, &r->loss[i], err) || ask_all(r, &r->stopped, err))
        end_all(r, err);
    r->step_ns[i] = topt_run_now_ns() - before;
    if (!isfinite(r->loss[i])) /* not a number that a report could hold */
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the loss is not a number any more at step %lld; try a smaller "
                         "--lr than %g",
                         (long long)i + 1, r->report.lr);
    r->steps++;
    progress(r, r->steps == r->args.steps || r->stopped);
    return 0;
}

int topt_run_steps(struct topt_run *r, struct topt_error *err)
{
    int rc = 0;
    listen_to_signals();
    r->shown_ns = topt_run_now_ns();
    topt_guard_look(r->guard, 1);
    while (!rc && !r->stopped && r->steps < r->args.steps)
        rc = one_step(r, err);
    topt_guard_look(r->guard, 0);
    return rc;
}
