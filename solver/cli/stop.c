/* stop.c - when a command is to answer with what it has: after a time, or on an interrupt.
 *
 * Searches have no clock and no signals: they are told by a flag.  Commands are programs of
 * their own, so here, and only here, one flag a process is set by handlers. */
#include "topt_search_cmd.h"

#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

static atomic_bool stop, in_time, interrupted;

static void on_signal(int number)
{
    if (number == SIGALRM && !atomic_load(&stop))
        atomic_store(&in_time, 1);
    if (number != SIGALRM)
        atomic_store(&interrupted, 1);
    atomic_store(&stop, 1);
}

int topt_stop_was_in_time(void)
{
    return atomic_load(&in_time);
}

static void set_alarm(double seconds)
{
    struct itimerval timer = {0};
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)(1e6 * (seconds - floor(seconds))) + 1;
    if (timer.it_value.tv_usec > 999999)
        timer.it_value.tv_usec = 999999;
    setitimer(ITIMER_REAL, &timer, NULL);
}

const atomic_bool *topt_stop_after(double seconds)
{
    /* Restarting: it may come while the answer is written. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    /* A second interrupt ends the process. */
    action.sa_flags = (int)(SA_RESTART | SA_RESETHAND);
    sigaction(SIGINT, &action, NULL);
    if (seconds > 0 && seconds < 1e9)
        set_alarm(seconds);
    return &stop;
}

void topt_stop_again(double seconds)
{
    if (atomic_load(&interrupted))
        return;
    set_alarm(seconds);
    atomic_store(&stop, 0);
}
