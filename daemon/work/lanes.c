/* lanes.c - who is next.
 *
 * Each user who has a job, or was slow lately, is an owner with the jobs of either lane.
 * Owners of waiting searches stand in a heap, those of waiting submit jobs in a ring; an
 * owner's own lists are short, since the quota is.  A new owner joins at the end of the
 * round, so that leaving and coming back gains nothing. */
#include "lanes.h"
#include "heap.h"
#include "topt_hash.h"

#include <stdlib.h>

enum { BUCKETS = 1024 };

TAILQ_HEAD(items, lanes_item);

struct lanes_owner {
    struct heap_item item; /* of lanes.order; first */
    int64_t uid;
    struct items waiting[2];
    int nwaiting[2], running[2];
    uint64_t served; /* turn at which it was served last */
    int may_run;     /* under the quota of running searches */
    int64_t slow_until;
    TAILQ_ENTRY(lanes_owner) ring; /* submit jobs wait */
    TAILQ_ENTRY(lanes_owner) slow;
    struct lanes_owner *next; /* of the bucket */
};

struct lanes {
    struct lanes_config config;
    struct lanes_owner *bucket[BUCKETS];
    struct heap order; /* all owners; those whose search may start come first */
    TAILQ_HEAD(, lanes_owner) ring, slow;
    struct lanes_counts counts;
    uint64_t turn;
};

static int startable(const struct lanes_owner *o)
{
    return o->nwaiting[LANE_SEARCH] && o->may_run;
}

static int before(const struct heap_item *x, const struct heap_item *y)
{
    const struct lanes_owner *a = (const struct lanes_owner *)x;
    const struct lanes_owner *b = (const struct lanes_owner *)y;
    if (startable(a) != startable(b))
        return startable(a);
    if (a->running[LANE_SEARCH] != b->running[LANE_SEARCH])
        return a->running[LANE_SEARCH] < b->running[LANE_SEARCH];
    return a->served < b->served;
}

struct lanes *lanes_create(const struct lanes_config *config, struct topt_error *err)
{
    struct lanes *l = calloc(1, sizeof *l);
    if (!l) {
        topt_nomem(err, NULL);
        return NULL;
    }
    l->config = *config;
    l->order.before = before;
    TAILQ_INIT(&l->ring);
    TAILQ_INIT(&l->slow);
    return l;
}

/* ---- owners ------------------------------------------------------------------------------ */

static struct lanes_owner **bucket_of(struct lanes *l, int64_t uid)
{
    return &l->bucket[topt_hash(&uid, sizeof uid, 0) % BUCKETS];
}

static void free_owner(struct lanes *l, struct lanes_owner *o)
{
    struct lanes_owner **at = bucket_of(l, o->uid);
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    if (o->slow_until)
        TAILQ_REMOVE(&l->slow, o, slow);
    heap_remove(&l->order, &o->item);
    l->counts.users--;
    free(o);
}

static int is_idle(const struct lanes_owner *o)
{
    return !o->nwaiting[0] && !o->nwaiting[1] && !o->running[0] && !o->running[1];
}

/* Those who were slow long ago are so no longer. */
static void forgive(struct lanes *l, int64_t now_ms)
{
    struct lanes_owner *o;
    while ((o = TAILQ_FIRST(&l->slow)) && o->slow_until <= now_ms) {
        TAILQ_REMOVE(&l->slow, o, slow);
        o->slow_until = 0;
        if (is_idle(o))
            free_owner(l, o);
    }
}

static struct lanes_owner *find_owner(struct lanes *l, int64_t uid)
{
    struct lanes_owner *o = *bucket_of(l, uid);
    while (o && o->uid != uid)
        o = o->next;
    return o;
}

static struct lanes_owner *add_owner(struct lanes *l, int64_t uid)
{
    struct lanes_owner **at = bucket_of(l, uid);
    struct lanes_owner *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->uid = uid;
    o->may_run = 1;
    o->served = ++l->turn;
    TAILQ_INIT(&o->waiting[0]);
    TAILQ_INIT(&o->waiting[1]);
    if (heap_add(&l->order, &o->item) < 0) {
        free(o);
        return NULL;
    }
    o->next = *at;
    *at = o;
    l->counts.users++;
    return o;
}

/* An owner's numbers changed: its place does, or it goes. */
static void changed(struct lanes *l, struct lanes_owner *o)
{
    o->may_run =
        o->uid == LANES_NOBODY || o->running[LANE_SEARCH] < l->config.running_per_uid;
    if (is_idle(o) && !o->slow_until)
        free_owner(l, o);
    else
        heap_moved(&l->order, &o->item);
}

/* ---- coming and going -------------------------------------------------------------------- */

static double rank_of(const struct lanes_item *i)
{
    /* A job is overtaken only by cheaper ones that come within its own expected time. */
    return (double)i->now_ms / 1000 + i->cost;
}

/* The first of the list that comes after 'item'; NULL: none. */
static struct lanes_item *next_of(const struct items *list, const struct lanes_item *item)
{
    struct lanes_item *at = item->lane == LANE_SUBMIT ? NULL : TAILQ_FIRST(list);
    while (at && rank_of(at) <= rank_of(item))
        at = TAILQ_NEXT(at, link);
    return at;
}

static void wait_in_lane(struct lanes *l, struct lanes_item *item)
{
    struct lanes_owner *o = item->owner;
    struct lanes_item *next = next_of(&o->waiting[item->lane], item);
    if (next)
        TAILQ_INSERT_BEFORE(next, item, link);
    else
        TAILQ_INSERT_TAIL(&o->waiting[item->lane], item, link);
    item->running = 0;
    if (item->lane == LANE_SUBMIT && !o->nwaiting[LANE_SUBMIT])
        TAILQ_INSERT_TAIL(&l->ring, o, ring);
    o->nwaiting[item->lane]++;
    l->counts.queued[item->lane]++;
}

static void stop_waiting(struct lanes *l, struct lanes_item *item)
{
    struct lanes_owner *o = item->owner;
    TAILQ_REMOVE(&o->waiting[item->lane], item, link);
    l->counts.queued[item->lane]--;
    if (!--o->nwaiting[item->lane] && item->lane == LANE_SUBMIT)
        TAILQ_REMOVE(&l->ring, o, ring);
}

static int check_room(const struct lanes *l, const struct lanes_owner *o,
                      const struct lanes_item *item, int idle, int *ret_quota,
                      struct topt_error *err)
{
    const struct lanes_config *c = &l->config;
    int submit = item->lane == LANE_SUBMIT, mine = o ? o->nwaiting[item->lane] : 0;
    int quota = submit ? c->submit_per_uid : c->queued_per_uid;
    int room = submit ? c->submit_queue : c->queue + idle;
    if (!submit && o && o->running[LANE_SEARCH] < c->running_per_uid)
        quota += c->running_per_uid - o->running[LANE_SEARCH];
    else if (!submit && !o)
        quota += c->running_per_uid;
    *ret_quota = item->uid != LANES_NOBODY && mine >= quota;
    if (*ret_quota)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "%d %s of yours are waiting already; ask again when one is done",
                         mine, submit ? "short questions" : "searches");
    if (l->counts.queued[item->lane] < room)
        return 0;
    return topt_fail(err, TOPT_ERR_LIMIT, "%d %s are waiting already",
                     l->counts.queued[item->lane],
                     submit ? "short questions" : "searches");
}

int lanes_add(struct lanes *l, struct lanes_item *item, int idle, int *ret_quota,
              struct topt_error *err)
{
    forgive(l, item->now_ms);
    struct lanes_owner *o = find_owner(l, item->uid);
    if (check_room(l, o, item, idle, ret_quota, err) < 0)
        return -1;
    if (!o && !(o = add_owner(l, item->uid)))
        return topt_nomem(err, NULL);
    item->owner = o;
    wait_in_lane(l, item);
    changed(l, o);
    return 0;
}

static struct lanes_item *start(struct lanes *l, struct lanes_item *item)
{
    struct lanes_owner *o = item->owner;
    stop_waiting(l, item);
    item->running = 1;
    o->running[item->lane]++;
    l->counts.running[item->lane]++;
    if (item->lane == LANE_SEARCH) {
        o->served = ++l->turn;
    } else if (o->nwaiting[LANE_SUBMIT]) { /* the others first */
        TAILQ_REMOVE(&l->ring, o, ring);
        TAILQ_INSERT_TAIL(&l->ring, o, ring);
    }
    changed(l, o);
    return item;
}

struct lanes_item *lanes_take(struct lanes *l, enum lanes_slot slot)
{
    const struct lanes_owner *asks = TAILQ_FIRST(&l->ring),
                             *searches = (struct lanes_owner *)heap_first(&l->order);
    if (slot == SLOT_SUBMIT || (searches && !startable(searches)))
        searches = NULL;
    if (asks && searches && slot == SLOT_SEARCH_FIRST)
        asks = NULL;
    if (asks)
        return start(l, TAILQ_FIRST(&asks->waiting[LANE_SUBMIT]));
    return searches ? start(l, TAILQ_FIRST(&searches->waiting[LANE_SEARCH])) : NULL;
}

static void stop_running(struct lanes *l, struct lanes_item *item)
{
    item->running = 0;
    item->owner->running[item->lane]--;
    l->counts.running[item->lane]--;
    if (item->lane == LANE_SEARCH)
        item->owner->served = ++l->turn; /* owners that came meanwhile are before it */
}

void lanes_leave(struct lanes *l, struct lanes_item *item)
{
    struct lanes_owner *o = item->owner;
    if (item->running)
        stop_running(l, item);
    else
        stop_waiting(l, item);
    item->owner = NULL;
    changed(l, o);
}

void lanes_demote(struct lanes *l, struct lanes_item *item, int stay, int64_t now_ms)
{
    struct lanes_owner *o = item->owner;
    stop_running(l, item);
    item->lane = LANE_SEARCH;
    item->now_ms = now_ms;
    if (stay) {
        item->running = 1;
        o->running[LANE_SEARCH]++;
        l->counts.running[LANE_SEARCH]++;
    } else {
        wait_in_lane(l, item);
    }
    if (o->uid != LANES_NOBODY) { /* the list is in the order of its times */
        if (o->slow_until)
            TAILQ_REMOVE(&l->slow, o, slow);
        o->slow_until = now_ms + l->config.slow_ms;
        TAILQ_INSERT_TAIL(&l->slow, o, slow);
    }
    changed(l, o);
}

int lanes_may_run(const struct lanes_item *item)
{
    return item->owner->may_run;
}

int lanes_slow(struct lanes *l, const struct lanes_item *item, int64_t now_ms)
{
    forgive(l, now_ms); /* the item's owner has the item, so it stays */
    return item->owner->slow_until != 0;
}

/* ---- what is there ------------------------------------------------------------------------ */

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* In as many rounds as the item's place in its owner's list, everybody else has had one turn each. */
int lanes_ahead(const struct lanes *l, const struct lanes_item *item)
{
    const struct lanes_owner *me = item->owner;
    int place = 0, n = 0;
    if (!me || item->running)
        return 0;
    for (const struct lanes_item *i = TAILQ_FIRST(&me->waiting[item->lane]); i != item;
         i = TAILQ_NEXT(i, link))
        place++;
    if (item->lane == LANE_SUBMIT) {
        int seen = 0;
        const struct lanes_owner *o;
        TAILQ_FOREACH(o, &l->ring, ring)
        {
            seen |= o == me;
            n += o == me ? place : least(o->nwaiting[LANE_SUBMIT], place + !seen);
        }
        return n;
    }
    for (size_t i = 1; i <= l->order.n; i++) {
        const struct lanes_owner *o = (const struct lanes_owner *)l->order.item[i];
        n += o == me
                 ? place
                 : least(o->nwaiting[LANE_SEARCH], place + before(&o->item, &me->item));
    }
    return n;
}

void lanes_count(const struct lanes *l, struct lanes_counts *ret)
{
    *ret = l->counts;
}

void lanes_destroy(struct lanes *l)
{
    if (!l)
        return;
    while (l->order.n)
        free_owner(l, (struct lanes_owner *)heap_first(&l->order));
    heap_fini(&l->order);
    free(l);
}
