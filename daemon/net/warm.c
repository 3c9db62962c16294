/* warm.c - see warm.h: a hash table whose entries are also on a list by last use. */
#include "warm.h"
#include "topt_clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "topt_digest.h"

enum {
    BUCKETS = 4096,
    ENTRY_BYTES = 2048 /* an entry, and a response's headers */,
    LIVE_S = 3600
};

struct entry {
    struct warm_key key;
    struct MHD_Response *response;
    int status;
    unsigned long long epoch;
    int64_t born_s;
    size_t bytes;
    struct entry *chain;         /* of the bucket */
    struct entry *newer, *older; /* by last use */
};

struct warm {
    pthread_mutex_t lock; /* leaf; guards all below */
    int64_t most, bytes;
    struct entry *bucket[BUCKETS], *newest, *oldest;
};

int warm_create(int64_t bytes, struct warm **ret, struct topt_error *err)
{
    struct warm *w = calloc(1, sizeof *w);
    if (!w)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    w->most = bytes;
    pthread_mutex_init(&w->lock, NULL);
    *ret = w;
    return 0;
}

static struct entry **place(struct warm *w, const struct warm_key *key)
{
    unsigned at;
    memcpy(&at, key->digest, sizeof at);
    struct entry **e = &w->bucket[at % BUCKETS];
    while (*e && memcmp(&(*e)->key, key, sizeof *key))
        e = &(*e)->chain;
    return e;
}

static void unlink_use(struct warm *w, struct entry *e)
{
    *(e->newer ? &e->newer->older : &w->newest) = e->older;
    *(e->older ? &e->older->newer : &w->oldest) = e->newer;
}

static void link_newest(struct warm *w, struct entry *e)
{
    e->newer = NULL;
    e->older = w->newest;
    *(w->newest ? &w->newest->newer : &w->oldest) = e;
    w->newest = e;
}

static void drop(struct warm *w, struct entry *e)
{
    *place(w, &e->key) = e->chain;
    unlink_use(w, e);
    w->bytes -= (int64_t)e->bytes;
    MHD_destroy_response(e->response);
    free(e);
}

void warm_destroy(struct warm *w)
{
    if (!w)
        return;
    while (w->oldest)
        drop(w, w->oldest);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void warm_key(const struct request *q, struct warm_key *ret)
{
    struct {
        uint8_t body[32], method[32], target[32];
        int uid, is_json, wants_text, wants_csv, takes_gzip;
    } all;
    memset(&all, 0, sizeof all);
    topt_sha256(q->body, q->body_len, all.body);
    topt_sha256(q->method, strlen(q->method), all.method);
    topt_sha256(q->target, strlen(q->target), all.target);
    all.uid = (int)q->caller.uid;
    all.is_json = q->is_json;
    all.wants_text = q->wants_text;
    all.wants_csv = q->wants_csv;
    all.takes_gzip = q->takes_gzip;
    topt_sha256(&all, sizeof all, ret->digest);
}

int warm_send(struct warm *w, const struct warm_key *key, unsigned long long epoch,
              struct MHD_Connection *mc, int *ret_status)
{
    int sent = 0;
    pthread_mutex_lock(&w->lock);
    struct entry *e = *place(w, key);
    if (e && (e->epoch != epoch || topt_clock_ms() / 1000 - e->born_s > LIVE_S)) {
        drop(w, e);
    } else if (e) {
        unlink_use(w, e);
        link_newest(w, e);
        *ret_status = e->status;
        sent = MHD_queue_response(mc, (unsigned)e->status, e->response) == MHD_YES;
    }
    pthread_mutex_unlock(&w->lock);
    return sent;
}

void warm_keep(struct warm *w, const struct warm_key *key, unsigned long long epoch,
               struct MHD_Response *takes, int status, size_t bytes)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e) {
        MHD_destroy_response(takes);
        return;
    }
    *e = (struct entry){.key = *key,
                        .response = takes,
                        .status = status,
                        .epoch = epoch,
                        .born_s = topt_clock_ms() / 1000,
                        .bytes = bytes + ENTRY_BYTES};
    pthread_mutex_lock(&w->lock);
    if (*place(w, key))
        drop(w, *place(w, key));
    *place(w, key) = e;
    link_newest(w, e);
    w->bytes += (int64_t)e->bytes;
    while (w->bytes > w->most && w->oldest)
        drop(w, w->oldest);
    pthread_mutex_unlock(&w->lock);
}
