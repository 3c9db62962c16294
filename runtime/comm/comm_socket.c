/* comm_socket.c - processes that find each other at an address, without MPI.
 *
 * A star: rank 0 listens, the others connect and say who they are.  In a collective
 * each rank sends rank 0 its call and its data, rank 0 works out everybody's result
 * and sends it back.  That is slow and simple; it is for the small messages beside a
 * device's own communicator (ids, losses, failures), and for runs of a few ranks where
 * there is no MPI. */
#include "topt_comm.h"
#include "topt_clock.h"
#include "admit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 1024, CONNECT_SECONDS = 60, MOST_BYTES_SHIFT = 34 };

enum action { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL };

/* What a rank asks for; counts, then data follow. */
struct request {
    uint32_t action, axes, number, reduce;
    int64_t out, in; /* bytes that it sends, and that it gets */
};

/* A rank's call as rank 0 has it. */
struct message {
    struct request q;
    int64_t *counts; /* 2 * size: counts, to_counts */
    char *data, *result;
};

struct star {
    struct topt_secret secret;
    int *fd;     /* rank 0: by rank; the others: fd[0] */
    int *device; /* members of the group asked for last */
    struct message *message;
};

static struct star *star_of(struct topt_comm *c)
{
    return c->impl;
}

/* ---- bytes ------------------------------------------------------------------------- */

static int put(int fd, const void *data, int64_t bytes, struct topt_error *err)
{
    const char *p = data;
    while (bytes > 0) {
        ssize_t n = send(fd, p, (size_t)bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return topt_fail(err, TOPT_ERR_IO, "send to another rank: %s",
                             strerror(errno));
        p += n;
        bytes -= n;
    }
    return 0;
}

static int take(int fd, void *data, int64_t bytes, struct topt_error *err)
{
    char *p = data;
    while (bytes > 0) {
        ssize_t n = recv(fd, p, (size_t)bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return topt_fail(err, TOPT_ERR_IO, "receive from another rank: %s",
                             strerror(errno));
        if (n == 0)
            return topt_fail(err, TOPT_ERR_IO, "another rank has ended");
        p += n;
        bytes -= n;
    }
    return 0;
}

static int peer(struct topt_comm *c, int rank, int *ret, struct topt_error *err)
{
    if (c->rank && rank)
        return topt_fail(err, TOPT_ERR_INTERNAL, "ranks %d and %d are not connected",
                         c->rank, rank);
    *ret = star_of(c)->fd[c->rank ? 0 : rank];
    return 0;
}

static int socket_send(struct topt_comm *c, int to, const void *data, int64_t bytes,
                       struct topt_error *err)
{
    int fd = -1;
    return peer(c, to, &fd, err) || put(fd, data, bytes, err) ? -1 : 0;
}

static int socket_receive(struct topt_comm *c, int from, void *data, int64_t bytes,
                          struct topt_error *err)
{
    int fd = -1;
    return peer(c, from, &fd, err) || take(fd, data, bytes, err) ? -1 : 0;
}

static int socket_broadcast(struct topt_comm *c, void *data, int64_t bytes,
                            struct topt_error *err)
{
    if (c->rank)
        return take(star_of(c)->fd[0], data, bytes, err);
    for (int r = 1; r < c->size; r++)
        if (put(star_of(c)->fd[r], data, bytes, err))
            return -1;
    return 0;
}

/* ---- collectives ------------------------------------------------------------------- */

static void fold(void *into, const void *x, int64_t i, enum topt_comm_number t, int max)
{
    if (t == TOPT_COMM_F64) {
        double *a = (double *)into + i, b = ((const double *)x)[i];
        *a = max ? (b > *a ? b : *a) : *a + b;
    } else if (t == TOPT_COMM_F32) {
        float *a = (float *)into + i, b = ((const float *)x)[i];
        *a = max ? (b > *a ? b : *a) : *a + b;
    } else if (t == TOPT_COMM_64) {
        int64_t *a = (int64_t *)into + i, b = ((const int64_t *)x)[i];
        *a = max ? (b > *a ? b : *a) : *a + b;
    } else {
        int32_t *a = (int32_t *)into + i, b = ((const int32_t *)x)[i];
        *a = max ? (b > *a ? b : *a) : *a + b;
    }
}

static int64_t total(const int64_t *counts, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

/* Result of member 'me': sum or largest of what all sent, from element 'first' on. */
static void reduce(struct message *m, const int *member, int n, int me, int64_t first)
{
    struct message *mine = &m[member[me]];
    enum topt_comm_number t = (enum topt_comm_number)mine->q.number;
    int64_t bytes = topt_comm_number_bytes(t);
    memcpy(mine->result, m[member[0]].data + first * bytes, (size_t)mine->q.in);
    for (int i = 1; i < n; i++)
        for (int64_t k = 0; k < mine->q.in / bytes; k++)
            fold(mine->result, m[member[i]].data + first * bytes, k, t,
                 mine->q.reduce == TOPT_COMM_MAX);
}

/* Blocks from all members, one after the other. */
static void collect(struct topt_comm *c, struct message *m, const int *member, int n,
                    int me)
{
    struct message *mine = &m[member[me]];
    int64_t bytes = topt_comm_number_bytes((enum topt_comm_number)mine->q.number);
    char *to = mine->result;
    for (int i = 0; i < n; i++) {
        const struct message *from = &m[member[i]];
        int gather = mine->q.action == ALL_GATHER;
        int64_t first = gather ? 0 : total(from->counts, me);
        int64_t count = gather ? mine->counts[i] : mine->counts[c->size + i];
        memcpy(to, from->data + first * bytes, (size_t)(count * bytes));
        to += count * bytes;
    }
}

static void work_out(struct topt_comm *c, struct message *m, int rank)
{
    int *member = star_of(c)->device, me = 0;
    int n = topt_comm_members(&c->mesh, m[rank].q.axes, rank, member);
    while (member[me] != rank)
        me++;
    switch (m[rank].q.action) {
    case ALL_REDUCE:
        reduce(m, member, n, me, 0);
        break;
    case REDUCE_SCATTER:
        reduce(m, member, n, me, total(m[rank].counts, me));
        break;
    default:
        collect(c, m, member, n, me);
    }
}

static int message_room(struct topt_comm *c, struct message *m, struct topt_error *err)
{
    m->counts = calloc(2 * (size_t)c->size, sizeof *m->counts);
    m->data = malloc((size_t)m->q.out + 1);
    m->result = malloc((size_t)m->q.in + 1);
    return m->counts && m->data && m->result ? 0 : topt_nomem(err, "a message");
}

static void message_fini(struct message *m)
{
    free(m->counts);
    free(m->data);
    free(m->result);
    memset(m, 0, sizeof *m);
}

/* What came from another process decides how much is read and kept. */
static int check_request(struct topt_comm *c, int rank, const struct request *q,
                         struct topt_error *err)
{
    int64_t most = (int64_t)1 << MOST_BYTES_SHIFT;
    int bytes = q->number < TOPT_COMM_NUMBER_COUNT
                    ? topt_comm_number_bytes((enum topt_comm_number)q->number)
                    : 0;
    return q->action <= ALL_TO_ALL && q->reduce <= TOPT_COMM_MAX && bytes &&
                   !(q->axes >> c->mesh.naxes) && q->out >= 0 && q->in >= 0 &&
                   q->out <= most && q->in <= most && q->out % bytes == 0 &&
                   q->in % bytes == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "rank %d sent a call that is none", rank);
}

/* Do the calls of a rank's group go together, so that each block lies inside of what its
 * member sent? */
static int check_call(struct topt_comm *c, const struct message *m, int rank,
                      struct topt_error *err)
{
    int *member = star_of(c)->device, me = 0, good = 1;
    int n = topt_comm_members(&c->mesh, m[rank].q.axes, rank, member);
    const struct message *mine = &m[rank];
    int64_t bytes = topt_comm_number_bytes((enum topt_comm_number)mine->q.number), in = 0;
    while (member[me] != rank)
        me++;
    for (int i = 0; i < n && good; i++) {
        const struct message *from = &m[member[i]];
        int64_t have = from->q.out / bytes, first = 0, count = mine->q.in / bytes;
        good = from->q.action == mine->q.action && from->q.axes == mine->q.axes &&
               from->q.number == mine->q.number && from->q.reduce == mine->q.reduce;
        for (int k = 0; k < 2 * c->size; k++)
            good = good && from->counts[k] >= 0 && from->counts[k] <= INT64_MAX / 4096;
        if (!good || mine->q.action == ALL_REDUCE) {
            good = good && count == have;
            continue;
        }
        if (mine->q.action == ALL_GATHER)
            count = mine->counts[i];
        else
            first = total(from->counts, me);
        if (mine->q.action == ALL_TO_ALL)
            count = mine->counts[c->size + i];
        in += count;
        good = first <= have && count <= have - first;
    }
    if (mine->q.action == ALL_GATHER || mine->q.action == ALL_TO_ALL)
        good = good && in == mine->q.in / bytes;
    return good ? 0
                : topt_fail(err, TOPT_ERR_INVAL,
                            "rank %d's collective does not go with the others'", rank);
}

static int receive_call(struct topt_comm *c, int rank, struct message *m,
                        struct topt_error *err)
{
    int fd = star_of(c)->fd[rank];
    if (take(fd, &m->q, sizeof m->q, err) || check_request(c, rank, &m->q, err) ||
        message_room(c, m, err))
        return -1;
    return take(fd, m->counts, 2 * c->size * (int64_t)sizeof *m->counts, err) ||
                   take(fd, m->data, m->q.out, err)
               ? -1
               : 0;
}

/* Rank 0: everybody's call and result. */
static int serve(struct topt_comm *c, struct message *own, void *dst,
                 struct topt_error *err)
{
    struct message *m = star_of(c)->message;
    int rc = 0;
    m[0] = *own;
    for (int r = 1; r < c->size && !rc; r++)
        rc = receive_call(c, r, &m[r], err);
    for (int r = 0; r < c->size && !rc; r++)
        rc = check_call(c, m, r, err);
    for (int r = 0; r < c->size && !rc; r++)
        work_out(c, m, r);
    if (!rc)
        memcpy(dst, m[0].result, (size_t)m[0].q.in);
    for (int r = 1; r < c->size && !rc; r++)
        rc = put(star_of(c)->fd[r], m[r].result, m[r].q.in, err);
    for (int r = 1; r < c->size; r++)
        message_fini(&m[r]);
    return rc;
}

static int ask(struct topt_comm *c, const struct message *m, void *dst,
               struct topt_error *err)
{
    int fd = star_of(c)->fd[0];
    return put(fd, &m->q, sizeof m->q, err) ||
                   put(fd, m->counts, 2 * c->size * (int64_t)sizeof *m->counts, err) ||
                   put(fd, m->data, m->q.out, err) || take(fd, dst, m->q.in, err)
               ? -1
               : 0;
}

/* 'out' and 'in' in elements; 'n' members. */
static int call(struct topt_comm *c, const struct topt_comm_call *k, enum action action,
                int64_t out, int64_t in, int n, struct topt_error *err)
{
    int64_t bytes = topt_comm_number_bytes(k->number);
    struct message m = {.q = {.action = action,
                              .axes = k->axes,
                              .number = k->number,
                              .reduce = k->reduce,
                              .out = out * bytes,
                              .in = in * bytes}};
    if ((action == ALL_REDUCE || action == REDUCE_SCATTER) &&
        (k->number == TOPT_COMM_BF16 || k->number == TOPT_COMM_BYTE))
        return topt_fail(err, TOPT_ERR_INTERNAL, "sockets can't add up such numbers");
    int rc = message_room(c, &m, err);
    if (!rc)
        memcpy(m.data, k->src, (size_t)m.q.out);
    for (int i = 0; i < n && !rc; i++) {
        m.counts[i] = k->counts ? k->counts[i] : 0;
        m.counts[c->size + i] = k->to_counts ? k->to_counts[i] : 0;
    }
    if (!rc)
        rc = c->rank ? ask(c, &m, k->dst, err) : serve(c, &m, k->dst, err);
    message_fini(&m);
    return rc;
}

static int socket_group(struct topt_comm *c, uint32_t axes, struct topt_comm_group *ret,
                        struct topt_error *err)
{
    struct star *s = star_of(c);
    (void)err;
    *ret = (struct topt_comm_group){
        .size = topt_comm_members(&c->mesh, axes, c->rank, s->device + c->size),
        .device = s->device + c->size};
    while (ret->device[ret->me] != c->rank)
        ret->me++;
    return 0;
}

static int socket_all_reduce(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    return call(c, k, ALL_REDUCE, k->n, k->n, 0, err);
}

static int socket_reduce_scatter(struct topt_comm *c, const struct topt_comm_call *k,
                                 struct topt_error *err)
{
    struct topt_comm_group g;
    return socket_group(c, k->axes, &g, err) ||
                   call(c, k, REDUCE_SCATTER, total(k->counts, g.size), k->counts[g.me],
                        g.size, err)
               ? -1
               : 0;
}

static int socket_all_gather(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    struct topt_comm_group g;
    return socket_group(c, k->axes, &g, err) ||
                   call(c, k, ALL_GATHER, k->counts[g.me], total(k->counts, g.size),
                        g.size, err)
               ? -1
               : 0;
}

static int socket_all_to_all(struct topt_comm *c, const struct topt_comm_call *k,
                             struct topt_error *err)
{
    struct topt_comm_group g;
    return socket_group(c, k->axes, &g, err) ||
                   call(c, k, ALL_TO_ALL, total(k->counts, g.size),
                        total(k->to_counts, g.size), g.size, err)
               ? -1
               : 0;
}

/* Over the whole world, whether it is bound to a mesh or not. */
static int world(struct topt_comm *c, double *values, int n, int max,
                 struct topt_error *err)
{
    int64_t bytes = n * (int64_t)sizeof *values;
    double *theirs = calloc((size_t)n + 1, sizeof *theirs);
    int rc = theirs ? 0 : topt_nomem(err, NULL);
    if (!rc && c->rank)
        rc = put(star_of(c)->fd[0], values, bytes, err);
    for (int r = 1; r < c->size && !rc && !c->rank; r++) {
        rc = take(star_of(c)->fd[r], theirs, bytes, err);
        for (int i = 0; i < n && !rc; i++)
            fold(values, theirs, i, TOPT_COMM_F64, max);
    }
    free(theirs);
    return rc ? -1 : socket_broadcast(c, values, bytes, err);
}

static int socket_sum(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return world(c, values, n, 0, err);
}

static int socket_max(struct topt_comm *c, double *values, int n, struct topt_error *err)
{
    return world(c, values, n, 1, err);
}

/* The others see the connection end.  By whatever thread: nothing of the others' is
 * torn down. */
static void socket_abort(struct topt_comm *c, int status)
{
    (void)c;
    fflush(NULL);
    _exit(status);
}

static void socket_forget(struct topt_comm *c)
{
    (void)c;
}

static void socket_destroy(struct topt_comm *c)
{
    struct star *s = star_of(c);
    for (int r = 0; s->fd && r < c->size; r++)
        if (s->fd[r] >= 0)
            close(s->fd[r]);
    free(s->fd);
    free(s->device);
    free(s->message);
    free(s);
}

/* ---- finding each other ------------------------------------------------------------ */

/* By our own variable, else by Slurm's of every task. */
static int number_from(const char *name, const char *slurm, int least, int most, int *ret,
                       struct topt_error *err)
{
    const char *text = getenv(name) ? getenv(name) : getenv(slurm);
    char *end;
    long n = text ? strtol(text, &end, 10) : -1;
    if (!text || end == text || *end || n < least || n > most)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "TOPT_RENDEZVOUS is set, so %s has to be a number from %d to %d "
                         "(without it %s is taken)",
                         name, least, most, slurm);
    *ret = (int)n;
    return 0;
}

static int lookup(struct addrinfo **ret, int listening, struct topt_error *err)
{
    char host[256];
    const char *at = getenv("TOPT_RENDEZVOUS"), *colon = strrchr(at, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = listening ? AI_PASSIVE : 0};
    if (!colon || colon - at >= (int)sizeof host)
        return topt_fail(err, TOPT_ERR_INVAL, "TOPT_RENDEZVOUS '%s' is not HOST:PORT",
                         at);
    snprintf(host, sizeof host, "%.*s", (int)(colon - at), at);
    int rc = getaddrinfo(host, colon + 1, &hints, ret);
    return rc ? topt_fail(err, TOPT_ERR_INVAL, "TOPT_RENDEZVOUS '%s': %s", at,
                          gai_strerror(rc))
              : 0;
}

/* From here on messages go at once, and ranks wait for each other as long as it takes. */
static void settle(int fd)
{
    int on = 1;
    struct timeval forever = {0};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
}

static int failed(const char *what, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_IO, "%s at %s: %s", what, getenv("TOPT_RENDEZVOUS"),
                     strerror(errno));
}

/* Those who connect show that they know the secret and say their rank; strangers are
 * sent away. */
static int accept_all(struct topt_comm *c, int listener, struct topt_error *err)
{
    struct star *s = star_of(c);
    int strangers = 0;
    for (int n = 1; n < c->size;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && strangers)
            return topt_fail(err, TOPT_ERR_IO,
                             "waiting for other ranks at %s: %d processes came that do "
                             "not know TOPT_SECRET, or say nothing",
                             getenv("TOPT_RENDEZVOUS"), strangers);
        if (fd < 0)
            return failed("waiting for other ranks", err);
        int rank = topt_admit(fd, &s->secret, c->size, topt_clock_ms() + 2000);
        if (rank < 0) {
            strangers++;
            close(fd);
            continue;
        }
        if (s->fd[rank] >= 0) {
            close(fd);
            return topt_fail(err, TOPT_ERR_INVAL,
                             "two processes say that they are rank %d", rank);
        }
        settle(fd);
        s->fd[rank] = fd;
        n++;
    }
    return 0;
}

/* The secret of all ranks.  Where nobody else can listen or connect, none will do. */
static int find_secret(struct star *s, const struct addrinfo *a, struct topt_error *err)
{
    const char *text = getenv("TOPT_SECRET");
    const struct sockaddr_in *v4 = (const void *)a->ai_addr;
    const struct sockaddr_in6 *v6 = (const void *)a->ai_addr;
    int near = a->ai_family == AF_INET    ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
               : a->ai_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
                                          : 0;
    if ((!text || !*text) && !near)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "TOPT_RENDEZVOUS %s is open to a network; set TOPT_SECRET to the "
            "same random text for all ranks",
            getenv("TOPT_RENDEZVOUS"));
    s->secret = topt_secret_of(text ? text : "");
    return 0;
}

static int listen_for(struct topt_comm *c, const struct addrinfo *a,
                      struct topt_error *err)
{
    int on = 1, fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    struct timeval patience = {.tv_sec = CONNECT_SECONDS};
    if (fd < 0)
        return failed("socket", err);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int rc = bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, c->size)
                 ? failed("listening", err)
                 : accept_all(c, fd, err);
    close(fd);
    return rc;
}

static int connect_to(struct topt_comm *c, const struct addrinfo *a,
                      struct topt_error *err)
{
    for (int tries = 0; tries < CONNECT_SECONDS * 20; tries++) {
        int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd < 0)
            return failed("socket", err);
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            star_of(c)->fd[0] = fd;
            if (topt_present(fd, &star_of(c)->secret, c->rank,
                             topt_clock_ms() + CONNECT_SECONDS * 1000))
                return topt_fail(
                    err, TOPT_ERR_INVAL,
                    "rank 0 at %s has another TOPT_SECRET, another number of "
                    "ranks, or is none",
                    getenv("TOPT_RENDEZVOUS"));
            settle(fd);
            return 0;
        }
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return failed("no rank 0", err);
}

static int meet(struct topt_comm *c, struct topt_error *err)
{
    struct addrinfo *a;
    if (lookup(&a, !c->rank, err))
        return -1;
    int rc = find_secret(star_of(c), a, err);
    if (!rc)
        rc = c->rank ? connect_to(c, a, err) : listen_for(c, a, err);
    freeaddrinfo(a);
    return rc;
}

int topt_comm_sockets(struct topt_comm **ret, struct topt_error *err)
{
    static const struct topt_comm_ops ops = {
        .name = "sockets",
        .destroy = socket_destroy,
        .forget = socket_forget,
        .group = socket_group,
        .all_reduce = socket_all_reduce,
        .reduce_scatter = socket_reduce_scatter,
        .all_gather = socket_all_gather,
        .all_to_all = socket_all_to_all,
        .broadcast = socket_broadcast,
        .send = socket_send,
        .receive = socket_receive,
        .sum = socket_sum,
        .max = socket_max,
        .abort = socket_abort,
    };
    int rank = 0, size = 1;
    if (number_from("TOPT_RANKS", "SLURM_NTASKS", 1, MAX_RANKS, &size, err) ||
        number_from("TOPT_RANK", "SLURM_PROCID", 0, size - 1, &rank, err))
        return -1;
    struct topt_comm *c = calloc(1, sizeof *c);
    struct star *s = calloc(1, sizeof *s);
    if (!c || !s) {
        free(c);
        free(s);
        return topt_nomem(err, NULL);
    }
    *c = (struct topt_comm){.ops = &ops, .rank = rank, .size = size, .impl = s};
    s->fd = malloc((size_t)size * sizeof *s->fd);
    s->device = calloc(2 * (size_t)size, sizeof *s->device);
    s->message = calloc((size_t)size, sizeof *s->message);
    for (int r = 0; s->fd && r < size; r++)
        s->fd[r] = -1;
    int rc = s->fd && s->device && s->message ? 0 : topt_nomem(err, NULL);
    if (rc || (size > 1 && meet(c, err))) {
        topt_comm_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}
