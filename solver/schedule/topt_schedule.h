/* topt_schedule.h - tasks of a training step in time.
 *
 * A schedule is a graph: tasks, and for each task those that must end before it starts.  A task
 * belongs to an owner, a class of ranks that all do the same.  Each owner has a stream that
 * computes, a link within its node and a link between nodes; a stream or a link does one thing
 * at a time, first come, first served.  A collective takes every link that its group spans.
 *
 *     computing       | forward ............ | backward n | backward n-1 | ... | update |
 *     within nodes          | gather |                    | scatter n |
 *     between nodes                                       | reduce n    | reduce n-1 |
 *
 * Communication that computing waits for has the links first: asynchronous communication on one
 * of them stops until it is through, as small collectives of another communicator get through
 * beside a large one.  While something moves asynchronously, the device computes at less than
 * its rate, because the collective's kernels take a share of it.
 *
 * Tasks hold bytes, each of one component, from the start of one to the end of another.  The order
 * of all starts and ends says when an owner holds most.
 *
 * Work that repeats, as micro-batches do, is laid out a few times and folded: where each task of
 * a period is ready, starts and ends as in the period before, by the same number of nanoseconds
 * later, so are all periods that follow.
 *
 * Thread safety: reentrant; a schedule has one owner. */
#ifndef TOPT_SCHEDULE_H
#define TOPT_SCHEDULE_H

#include <stdint.h>

#include "topt_error.h"

enum topt_link {
    TOPT_LINK_NODE,
    TOPT_LINK_NETWORK,
    TOPT_LINK_COUNT,
    TOPT_LINK_HOST = TOPT_LINK_COUNT, /* the host's own work, beside everything else */
    TOPT_LINK_TO_HOST, /* copies to the host's memory, and from it, by engines of their own */
    TOPT_LINK_FROM_HOST,
    TOPT_LINKS
};

struct topt_task {
    int64_t ns; /* what it takes by itself */
    int owner;
    uint8_t links; /* bits of enum topt_link; 0: it computes */
    uint8_t async; /* communication that gives way to what computing waits for */
    /* After a run: */
    int64_t ready_ns, start_ns, end_ns;
    int64_t exposed_ns; /* so long its owner computed nothing meanwhile */
    int started, ended; /* places in the order of all starts and ends */
};

/* Bytes that the owner of task 'from' holds from its start to the end of task 'to'. */
struct topt_hold {
    int from, to;  /* 'to' -1: until the end of the schedule */
    int component; /* the caller's number, from 0 */
    int64_t bytes;
};

struct topt_task_edge {
    int to, next; /* the next edge of the same task; -1: none */
};

struct topt_schedule {
    int owners;
    /* Tasks are added after those that they wait for, and wait for every task that they would share a resource with,
     * so that times follow from edges alone. */
    int chained;
    double share; /* of a device, which asynchronous communication takes from computing */
    int n, cap;
    struct topt_task *task;    /* owned, as all arrays here */
    int *first, *last, *waits; /* by task: its edges, and for how many tasks it waits */
    int nedges, edges_cap;
    struct topt_task_edge *edge;
    int nholds, holds_cap;
    struct topt_hold *hold;
    int64_t time_ns; /* the end of the last task, after a run */
};

/* An empty schedule; 'share' from 0 to 1. */
void topt_schedule_init(struct topt_schedule *s, int owners, double share);
void topt_schedule_fini(struct topt_schedule *s);
/* Remove all tasks and what they hold. */
void topt_schedule_clear(struct topt_schedule *s);

/* Append a task; its number, or -1 (NOMEM). */
int topt_schedule_add(struct topt_schedule *s, const struct topt_task *t,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* 'task' starts when 'before' has ended; nothing where that is -1 or the task itself. */
int topt_schedule_after(struct topt_schedule *s, int task, int before,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Hold bytes while tasks run; nothing where 'bytes' is 0.  Both tasks exist, unless 'to' is -1. */
int topt_schedule_hold(struct topt_schedule *s, const struct topt_hold *h,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Give every task its times.  Once after tasks were added; INTERNAL where tasks wait for each
 * other in a circle. */
int topt_schedule_run(struct topt_schedule *s, struct topt_error *err) TOPT_MUST_CHECK;

/* Adds to 'ret', by owner and component, the bytes that each owner holds when it holds most, after a run.  Tasks take and
 * return bytes in the order in which they start and end.  At one time, ends come before the starts that follow from them,
 * as a caching allocator reuses freed memory. */
int topt_schedule_peak(const struct topt_schedule *s, int components, int64_t *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* A schedule with a beginning, 'periods' parts that repeat, and an end.  The functions append
 * their tasks; 'begin' also forgets what earlier calls left in 'of'. */
struct topt_periodic {
    void *of;
    int64_t periods; /* at least 1 */
    int (*begin)(void *of, struct topt_schedule *s, struct topt_error *err);
    int (*period)(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err);
    int (*end)(void *of, struct topt_schedule *s, struct topt_error *err);
    /* Tasks wait for, and share links with, only tasks of up to so many periods before; 0: not known. */
    int reach;
};

struct topt_folded {
    int64_t laid_out;  /* periods that the schedule has */
    int64_t period_ns; /* the time of each of the other periods */
    int from, to;      /* tasks of the period that these repeat */
};

/* Lays out as many periods as it takes until they repeat, at most all and about 'max_tasks' tasks, and runs them.
 * 'time_ns' is the time of all periods.  Where periods do not repeat within max_tasks, each of the others takes as long
 * as the last one. */
int topt_schedule_fold(struct topt_schedule *s, const struct topt_periodic *p,
                       int max_tasks, struct topt_folded *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
