/* ff_data.h - operators, parts and tasks, and what changes them.  Private to flexflow/. */
#ifndef FLEXFLOW_DATA_H
#define FLEXFLOW_DATA_H

#include "topt_flexflow.h"

/* splitmix64; the second between 0 and 1 */
static inline uint64_t ff_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double ff_random_real(uint64_t *seed)
{
    return (double)(ff_random(seed) >> 11) / 9007199254740992.0;
}

enum ff_kind { FF_FORWARD, FF_BACKWARD, FF_UPDATE, FF_MOVE, FF_MOVE_BACK, FF_SUM };

struct ff_task {
    int64_t ns, ready, end;
    int64_t lag;  /* after its end, before what waits for it is ready */
    uint64_t key; /* of those that are ready at the same time the smaller one is first */
    int64_t bytes;
    int slot;    /* what it holds, the first; -1: nothing yet */
    int in, out; /* edges */
    int nin,
        waits; /* of those in all, and of tasks that are still to run again; -1: it stays */
    int group_next; /* of the same owner; of what is free the next */
    /* fresh: it did not run yet; changed: what comes before it is not what it was */
    uint8_t live, fresh, changed, kind;
};

/* When a task ran before the last change. */
struct ff_ran {
    int64_t ready, end;
    int task;
};

/* The devices and links that a task holds while it runs. */
enum { FF_HELD = 2 * TOPT_FLEXFLOW_DEVICES + 2 };
struct ff_held {
    int n, at[FF_HELD];
};

/* What it takes to move so many bytes, and of that what no link is held for. */
struct ff_move {
    int64_t bytes, ns, lag;
};

struct ff_slot {
    int resource, more; /* the task's next slot; of what is free the next */
};

struct ff_edge {
    int from, to;
    int in_next, in_before, out_next, out_before; /* -1: none */
};

struct ff_degrees {
    uint8_t at[TOPT_MAX_OPDIMS];
    int nparts;
};

/* What a part takes. */
struct ff_price {
    int64_t forward, backward, update; /* ns; 0: it has none */
    int64_t memory_bytes;
};

struct ff_op {
    int virtual; /* a table that others read: its parts are theirs */
    int ndegrees;
    struct ff_degrees *degrees;
    struct topt_soap soap;
    struct ff_price price;
    int forward[TOPT_FLEXFLOW_DEVICES], backward[TOPT_FLEXFLOW_DEVICES],
        update[TOPT_FLEXFLOW_DEVICES]; /* tasks of parts, -1: none */
};

struct ff_entry {
    int64_t ready;
    uint64_t key;
    int task;
};

struct topt_flexflow {
    struct topt_costing k;
    int devices, nodes, per_node, nops;
    struct ff_op *op;
    int *group; /* first task of operator i, then of use i * TOPT_MAX_INPUTS + input */
    int ntasks, cap, free_task, live;
    struct ff_task *task;
    int nedges, edges_cap, free_edge;
    struct ff_edge *edge;
    int nslots, slots_cap, free_slot;
    struct ff_slot *slot;
    int nresources;
    int64_t *free_at, end_ns; /* by resource, and of all */
    int64_t *load;            /* by resource: what all tasks that hold it take */
    int nheap, heap_cap;
    struct ff_entry *heap;
    int nchanged, changed_cap, *changed;
    int64_t gone_from; /* when the first task that is gone was ready */
    int nran,
        ran_cap; /* of the tasks of what was replaced, then of those that ran again */
    struct ff_ran *ran;
    struct topt_flexflow_rules rules;
    struct ff_move move[2]; /* the last one between nodes, and in one */
    int touched, moved, oom;
};

/* What the busiest of the first 'n' devices and links is held for. */
static inline int64_t ff_busiest(const struct topt_flexflow *f, int n)
{
    int64_t most = 0;
    for (int r = 0; r < n; r++)
        most = f->load[r] > most ? f->load[r] : most;
    return most;
}

/* When what waits for it can be ready. */
static inline int64_t ff_done(const struct ff_task *t)
{
    return t->end + t->lag;
}

/* heap.c: tasks that are to be looked at, by ready time. */
int ff_push(struct topt_flexflow *f, struct ff_entry e);
int ff_pop(struct topt_flexflow *f, struct ff_entry *ret); /* 0: empty */

/* delta.c: tasks and edges that come and go, and what that changes. */
int ff_task_add(struct topt_flexflow *f, int group, const struct ff_task *t,
                const struct ff_held *held);
void ff_edge_add(struct topt_flexflow *f, int from, int to);
void ff_group_remove(struct topt_flexflow *f, int group);
int ff_settle(struct topt_flexflow *f, struct topt_error *err);
void ff_forget(struct topt_flexflow *f); /* what changed */
void ff_remember(struct topt_flexflow *f, int task);

/* flexflow.c: an operator's other configuration, not simulated yet; the last one may be taken back,
 * simulated or not, without simulating. */
void ff_replace(struct topt_flexflow *f, int op, const struct topt_soap *s);
void ff_undo(struct topt_flexflow *f, int op, const struct topt_soap *was,
             int64_t was_ns);

/* soap.c: how operators may be split, and what their parts take. */
int ff_degrees_list(struct topt_flexflow *f, int op);
void ff_price(const struct topt_flexflow *f, int op, const struct topt_soap *s,
              struct ff_price *ret);
int ff_is_param(const struct topt_flexflow *f, int op, int operand);
/* Place of part 'part' along dimension 'd'. */
int ff_coordinate(const struct topt_op *o, const struct topt_soap *s, int part, int d);
int64_t ff_operand_elements(const struct topt_op *o, const struct topt_soap *s,
                            int operand);

/* tasks.c: the tasks of an operator, of a use of a tensor. */
void ff_group_tasks(struct topt_flexflow *f, int group);
int ff_groups(const struct topt_flexflow *f);
int ff_links(const struct topt_flexflow *f); /* resources beside devices */
int ff_use_group(const struct topt_flexflow *f, int op, int input);

#endif
