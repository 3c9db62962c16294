/* admit.c - see admit.h: peers in a small hash table, each there as long as it holds something. */
#include "admit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, NAME = 64 };

struct admit_peer {
    char name[NAME];
    int known, unknown;
    int64_t bytes;
    struct admit_peer *next;
};

struct admit {
    struct admit_config config;
    pthread_mutex_t lock; /* leaf; guards all below and every share */
    int connections;
    int64_t bytes;
    struct admit_peer *bucket[BUCKETS];
};

static struct admit_peer **find(struct admit *a, const char *name)
{
    unsigned hash = 5381;
    for (const char *p = name; *p; p++)
        hash = hash * 33 + (unsigned char)*p;
    struct admit_peer **at = &a->bucket[hash % BUCKETS];
    while (*at && strcmp((*at)->name, name))
        at = &(*at)->next;
    return at;
}

/* The peer of that name, made where it is new; NULL without memory. */
static struct admit_peer *peer_of(struct admit *a, const char *name)
{
    char cut[NAME];
    snprintf(cut, sizeof cut, "%s", name);
    struct admit_peer **at = find(a, cut);
    if (!*at && (*at = calloc(1, sizeof **at)))
        strcpy((*at)->name, cut);
    return *at;
}

/* Forget a peer that holds nothing. */
static void leave(struct admit *a, struct admit_peer *peer)
{
    if (!peer || peer->known || peer->unknown || peer->bytes)
        return;
    struct admit_peer **at = find(a, peer->name);
    *at = peer->next;
    free(peer);
}

int admit_create(const struct admit_config *config, struct admit **ret,
                 struct topt_error *err)
{
    struct admit *a = calloc(1, sizeof *a);
    if (!a)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    a->config = *config;
    pthread_mutex_init(&a->lock, NULL);
    *ret = a;
    return 0;
}

void admit_destroy(struct admit *a)
{
    if (!a)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (struct admit_peer *p = a->bucket[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    pthread_mutex_destroy(&a->lock);
    free(a);
}

enum admit_verdict admit_open(struct admit *a, const char *peer, struct admit_share *ret)
{
    enum admit_verdict verdict = ADMIT;
    *ret = (struct admit_share){0};
    pthread_mutex_lock(&a->lock);
    struct admit_peer *p =
        a->connections < a->config.connections ? peer_of(a, peer) : NULL;
    if (!p) {
        verdict = ADMIT_NO_ROOM;
    } else {
        p->unknown++;
        a->connections++;
        ret->peer = p;
        if (p->unknown > a->config.unknown)
            verdict = ADMIT_TOO_MANY;
    }
    pthread_mutex_unlock(&a->lock);
    return verdict;
}

/* Count the share for 'user' from now on.  Without memory it stays where it is. */
static void become_known(struct admit *a, struct admit_share *s, const char *user)
{
    struct admit_peer *was = s->peer, *is = peer_of(a, user);
    if (!is)
        is = was;
    if (s->known)
        was->known--;
    else
        was->unknown--;
    was->bytes -= s->bytes;
    is->bytes += s->bytes;
    is->known++;
    s->known = 1;
    s->peer = is;
    leave(a, was);
}

enum admit_verdict admit_request(struct admit *a, struct admit_share *s, const char *user,
                                 int is_submission)
{
    enum admit_verdict verdict = ADMIT;
    pthread_mutex_lock(&a->lock);
    if (s->peer)
        become_known(a, s, user);
    if (s->peer && s->peer->known > a->config.known)
        verdict = ADMIT_TOO_MANY;
    else if (!is_submission &&
             a->connections > a->config.connections - a->config.reserved)
        verdict = ADMIT_NO_ROOM;
    pthread_mutex_unlock(&a->lock);
    return verdict;
}

enum admit_verdict admit_body(struct admit *a, struct admit_share *s, int64_t n)
{
    enum admit_verdict verdict = ADMIT;
    pthread_mutex_lock(&a->lock);
    if (a->bytes + n > a->config.bodies) {
        verdict = ADMIT_NO_ROOM;
    } else if (s->peer && s->peer->bytes + n > a->config.bodies_of_peer) {
        verdict = ADMIT_TOO_MANY;
    } else if (s->peer) {
        a->bytes += n;
        s->bytes += n;
        s->peer->bytes += n;
    }
    pthread_mutex_unlock(&a->lock);
    return verdict;
}

static void forget_body(struct admit *a, struct admit_share *s)
{
    if (!s->peer)
        return;
    a->bytes -= s->bytes;
    s->peer->bytes -= s->bytes;
    s->bytes = 0;
}

void admit_forget_body(struct admit *a, struct admit_share *s)
{
    pthread_mutex_lock(&a->lock);
    forget_body(a, s);
    pthread_mutex_unlock(&a->lock);
}

void admit_close(struct admit *a, struct admit_share *s)
{
    pthread_mutex_lock(&a->lock);
    if (s->peer) {
        forget_body(a, s);
        if (s->known)
            s->peer->known--;
        else
            s->peer->unknown--;
        a->connections--;
        leave(a, s->peer);
        s->peer = NULL;
    }
    pthread_mutex_unlock(&a->lock);
}

int admit_count(struct admit *a)
{
    pthread_mutex_lock(&a->lock);
    int n = a->connections;
    pthread_mutex_unlock(&a->lock);
    return n;
}
