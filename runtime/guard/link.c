/* link.c - the connections between the guard's threads. */
#include "link.h"
#include "topt_clock.h"
#include "admit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 0x746f7047, ADDRESSES = 8, CONNECT_MS = 3000, MEET_MS = 20000 };

/* What rank 0 tells: where it listens. */
struct meeting {
    struct topt_secret secret;
    uint32_t naddresses;
    in_addr_t address[ADDRESSES];
    in_port_t port;
};

/* ---- frames ------------------------------------------------------------------------ */

void topt_guard_close(struct topt_guard_link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void topt_guard_finish(struct topt_guard_link *l)
{
    char rest[4096];
    int64_t until = topt_clock_ms() + 2000;
    struct pollfd w = {.fd = l->fd, .events = POLLIN};
    if (l->fd >= 0)
        shutdown(l->fd, SHUT_WR);
    while (l->fd >= 0 && topt_clock_ms() < until && poll(&w, 1, 100) >= 0) {
        ssize_t n = recv(l->fd, rest, sizeof rest, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            break;
    }
    topt_guard_close(l);
}

void topt_guard_put(struct topt_guard_link *l, const struct topt_guard_frame *f)
{
    struct topt_guard_frame out = *f;
    out.magic = MAGIC;
    if (l->fd >= 0)
        /* A peer that does not read for so long that this is full is missed anyway; a
         * part of a frame would be nonsense to it, which ends the connection. */
        (void)!send(l->fd, &out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int topt_guard_take(struct topt_guard_link *l)
{
    if (l->have == sizeof l->in)
        l->have = 0;
    ssize_t n =
        recv(l->fd, (char *)&l->in + l->have, sizeof l->in - l->have, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    l->have += (size_t)n;
    if (l->have < sizeof l->in)
        return 0;
    l->in.text[sizeof l->in.text - 1] = '\0';
    return l->in.magic == MAGIC ? 1 : -1;
}

/* ---- meeting ----------------------------------------------------------------------- */

/* Rank 0's addresses that others may reach. */
static void list_addresses(struct meeting *m)
{
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && a->ifa_flags & IFF_UP &&
            !(a->ifa_flags & IFF_LOOPBACK) && m->naddresses < ADDRESSES)
            m->address[m->naddresses++] =
                ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(all);
}

/* A listening socket, or -1; loopback only where nobody comes from elsewhere. */
static int listen_at(struct meeting *m, int size, int near)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr =
                                 htonl(near ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, size) ||
        getsockname(fd, (struct sockaddr *)&at, &len)) {
        close(fd);
        return -1;
    }
    m->port = at.sin_port;
    if (near)
        m->address[m->naddresses++] = htonl(INADDR_LOOPBACK);
    else
        list_addresses(m);
    return fd;
}

static int accept_all(int listener, const struct meeting *m, int size,
                      struct topt_guard_link *link)
{
    int64_t until = topt_clock_ms() + MEET_MS;
    for (int n = 1; n < size;) {
        struct pollfd w = {.fd = listener, .events = POLLIN};
        int64_t left = until - topt_clock_ms();
        if (left <= 0 || poll(&w, 1, (int)left) <= 0)
            return -1;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int rank = fd < 0 ? -1 : topt_admit(fd, &m->secret, size, topt_clock_ms() + 1000);
        if (rank < 0 || link[rank].fd >= 0) {
            if (fd >= 0)
                close(fd);
            continue; /* somebody else's, or a stranger */
        }
        link[rank].fd = fd;
        n++;
    }
    return 0;
}

static int connect_at(in_addr_t address, in_port_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = address};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), bad = 0;
    struct pollfd w = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof bad;
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&at, sizeof at) &&
        (errno != EINPROGRESS || poll(&w, 1, CONNECT_MS) <= 0 ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &bad, &len) || bad)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(const struct meeting *m, int rank, struct topt_guard_link *link)
{
    for (uint32_t i = 0; i < m->naddresses && i < ADDRESSES; i++) {
        int fd = connect_at(m->address[i], m->port);
        if (fd >= 0 && !topt_present(fd, &m->secret, rank, topt_clock_ms() + MEET_MS)) {
            link->fd = fd;
            return 0;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

/* ---- who is who -------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, const void *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return h;
}

static struct topt_guard_self own_self(void)
{
    struct topt_guard_self s = {.machine = 0xcbf29ce484222325u, .pid = getpid()};
    static const char *const space[] = {"/proc/self/ns/pid", "/proc/self/ns/net"};
    char boot[64];
    struct stat st;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, boot, sizeof boot);
    if (fd >= 0)
        close(fd);
    s.machine = mix(s.machine, boot, n > 0 ? (size_t)n : 0);
    for (int i = 0; i < 2; i++)
        if (!stat(space[i], &st))
            s.machine = mix(s.machine, &st.st_ino, sizeof st.st_ino);
    if (gethostname(s.host, sizeof s.host - 1))
        snprintf(s.host, sizeof s.host, "?");
    s.machine = mix(s.machine, s.host, strlen(s.host));
    return s;
}

/* Everybody's, by rank 0: small, and no mesh is needed. */
static int share_selves(struct topt_comm *c, struct topt_guard_self *self,
                        struct topt_error *err)
{
    int64_t bytes = (int64_t)sizeof *self;
    self[c->rank] = own_self();
    if (c->rank && c->ops->send(c, 0, &self[c->rank], bytes, err))
        return -1;
    for (int r = 1; r < c->size && !c->rank; r++)
        if (c->ops->receive(c, r, &self[r], bytes, err))
            return -1;
    return c->ops->broadcast(c, self, bytes * c->size, err);
}

static int one_machine(const struct topt_guard_self *self, int n)
{
    for (int r = 1; r < n; r++)
        if (self[r].machine != self[0].machine)
            return 0;
    return 1;
}

int topt_guard_connect(struct topt_comm *c, struct topt_guard_link *link,
                       struct topt_guard_self *self, int *ret_connected,
                       struct topt_error *err)
{
    struct meeting m = {.naddresses = 0};
    int listener = -1, failed = 0;
    if (share_selves(c, self, err))
        return -1;
    if (!c->rank) {
        failed = topt_proof_draw(&m.secret, sizeof m.secret, err);
        listener = failed ? -1 : listen_at(&m, c->size, one_machine(self, c->size));
        failed = listener < 0;
        if (failed)
            m.naddresses = 0;
    }
    if (c->ops->broadcast(c, &m, sizeof m, err))
        return -1;
    if (c->rank)
        failed = connect_to(&m, c->rank, &link[0]);
    else
        failed = failed || accept_all(listener, &m, c->size, link);
    if (listener >= 0)
        close(listener);
    double any = failed;
    if (c->ops->max(c, &any, 1, err))
        return -1;
    for (int r = 0; r < (c->rank ? 1 : c->size) && any > 0; r++)
        topt_guard_close(&link[r]);
    *ret_connected = !(any > 0);
    return 0;
}
