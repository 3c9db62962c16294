/* lanes.h - which job a free slot takes next: two lanes, fair between users.
 *
 *      submit   questions of milliseconds; users take turns
 *      search   first the user with the fewest running searches, of those the one who was served
 *               longest ago; of that user's, the cheapest, which those that wait longer catch up with
 *
 * A user is refused beyond the quota of either lane, everybody beyond what a lane takes in all.
 * Thread safety: none; jobs.c calls it under its lock. */
#ifndef TOPTD_LANES_H
#define TOPTD_LANES_H

#include <stdint.h>
#include <sys/queue.h>

#include "topt_error.h"

enum job_lane { LANE_SUBMIT, LANE_SEARCH };

/* Whoever asks without being known: no quota holds. */
enum { LANES_NOBODY = -1 };

struct lanes_config {
    int queue; /* search lane: jobs that may wait, beside those that a slot is free for */
    int running_per_uid; /* search lane: of one user at a time */
    int queued_per_uid;  /* search lane: of one user, waiting */
    int submit_queue,
        submit_per_uid; /* submit lane: that may wait, of all and of one user */
    int64_t
        slow_ms; /* how long a user counts as slow after one of his jobs was demoted */
};

struct lanes;
struct lanes_owner;

/* Part of a job.  Filled by its owner: */
struct lanes_item {
    int64_t uid;
    enum job_lane lane;
    double cost;    /* expected seconds */
    int64_t now_ms; /* when it is added */
    /* lanes.c's own: */
    struct lanes_owner *owner; /* NULL: not in the lanes */
    int running;
    TAILQ_ENTRY(lanes_item) link;
};

struct lanes *lanes_create(const struct lanes_config *config, struct topt_error *err);
void lanes_destroy(struct lanes *l); /* empty */

/* Let it wait.  'idle': slots that wait for a search.  LIMIT where there is no room;
 * '*ret_quota' then says that it is the user who has too many. */
int lanes_add(struct lanes *l, struct lanes_item *item, int idle, int *ret_quota,
              struct topt_error *err) TOPT_MUST_CHECK;

enum lanes_slot { SLOT_SUBMIT, SLOT_SUBMIT_FIRST, SLOT_SEARCH_FIRST };

/* Take the next item for a slot and mark it as running; NULL: none.  SLOT_SUBMIT never takes from the
 * other lane. */
struct lanes_item *lanes_take(struct lanes *l, enum lanes_slot slot);

/* It waits or runs no longer. */
void lanes_leave(struct lanes *l, struct lanes_item *item);

/* A running job of the submit lane took too long: from now on it is one of the search lane, and
 * runs on where 'stay', else waits again. */
void lanes_demote(struct lanes *l, struct lanes_item *item, int stay, int64_t now_ms);
/* May its user run one more search? */
int lanes_may_run(const struct lanes_item *item);
/* Was one of its user's jobs demoted lately? */
int lanes_slow(struct lanes *l, const struct lanes_item *item, int64_t now_ms);

/* About how many of its lane start before it. */
int lanes_ahead(const struct lanes *l, const struct lanes_item *item);

struct lanes_counts {
    int queued[2], running[2]; /* by lane */
    int users;
};
void lanes_count(const struct lanes *l, struct lanes_counts *ret);

#endif
