/* listen.c - listening sockets.
 *
 * Without MUNGE nobody is known on TCP, so only loopback addresses are taken then.  A Unix socket
 * that is there already is tried: if nobody answers, its owner died and it is replaced. */
#include "listen.h"
#include "topt_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 256 };

static int sys_fail(int fd, const char *doing, const char *what, struct topt_error *err)
{
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return topt_fail(err, TOPT_ERR_IO, "%s '%s': %s", doing, what, strerror(saved));
}

static void make_parents(const char *path)
{
    char dir[120];
    snprintf(dir, sizeof dir, "%s", path);
    for (char *p = dir + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(dir, 0755); /* bind tells what matters */
        *p = '/';
    }
}

/* Remove a socket nobody listens on.  -1 where somebody does or it is not a socket. */
static int remove_stale(const struct sockaddr_un *addr, struct topt_error *err)
{
    struct stat st;
    if (lstat(addr->sun_path, &st))
        return errno == ENOENT ? 0 : sys_fail(-1, "look at", addr->sun_path, err);
    if (!S_ISSOCK(st.st_mode))
        return topt_fail(err, TOPT_ERR_IO, "'%s' is there and is no socket",
                         addr->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return sys_fail(-1, "make a socket for", addr->sun_path, err);
    int rc = connect(fd, (const struct sockaddr *)addr, sizeof *addr);
    int refused = rc && errno == ECONNREFUSED;
    close(fd);
    if (!refused)
        return topt_fail(err, TOPT_ERR_IO,
                         "another server listens on '%s'; stop it or give --socket",
                         addr->sun_path);
    return unlink(addr->sun_path) ? sys_fail(-1, "remove stale", addr->sun_path, err) : 0;
}

int listen_unix(const char *path, struct topt_error *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct sockaddr_un fresh = {.sun_family = AF_UNIX};
    int n = snprintf(fresh.sun_path, sizeof fresh.sun_path, "%s.%d", path, (int)getpid());
    if (n >= (int)sizeof fresh.sun_path)
        return topt_fail(err, TOPT_ERR_USAGE, "socket path '%s' is too long", path);
    strcpy(addr.sun_path, path);
    make_parents(path);
    if (remove_stale(&addr, err) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sys_fail(-1, "make a socket for", path, err);
    /* The socket appears at its path only when it accepts connections: whoever waits for
     * the file may connect at once.  link() refuses a path that another server took. */
    if (bind(fd, (struct sockaddr *)&fresh, sizeof fresh))
        return sys_fail(fd, "bind", path, err);
    int failed =
        chmod(fresh.sun_path, 0666) || listen(fd, BACKLOG) || link(fresh.sun_path, path);
    int saved = errno;
    unlink(fresh.sun_path);
    errno = saved;
    return failed ? sys_fail(fd, "listen on", path, err) : fd;
}

static int is_loopback(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
}

/* "ADDR:PORT", "[ADDR]:PORT". */
static int parse_address(const char *text, struct sockaddr_storage *ret,
                         socklen_t *ret_len, struct topt_error *err)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    int64_t port;
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    if (!colon || (size_t)(colon - text) >= sizeof host ||
        topt_parse_int(colon + 1, 0, 65535, &port, err) < 0)
        return topt_fail(err, TOPT_ERR_USAGE, "--listen '%s': ADDR:PORT is needed", text);
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    memset(ret, 0, sizeof *ret);
    if (!strcmp(host, "localhost"))
        strcpy(host, "127.0.0.1");
    size_t n = strlen(host);
    if (*host == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        *ret_len = sizeof *v6;
        if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1)
            return 0;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    *ret_len = sizeof *v4;
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
        return 0;
    return topt_fail(err, TOPT_ERR_USAGE, "--listen '%s': ADDR must be a number", text);
}

int listen_tcp(const char *address, int any, int *ret_port, struct topt_error *err)
{
    struct sockaddr_storage addr;
    socklen_t len;
    int yes = 1;
    if (parse_address(address, &addr, &len, err) < 0)
        return -1;
    if (!any && !is_loopback(&addr))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--listen '%s': only loopback addresses (127.0.0.1, [::1]) are taken "
            "without --auth munge, since TCP clients are not known then",
            address);
    int fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return sys_fail(-1, "make a socket for", address, err);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&addr, &len))
        return sys_fail(fd, "listen on", address, err);
    *ret_port =
        ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                                         : ((struct sockaddr_in *)&addr)->sin_port);
    return fd;
}
