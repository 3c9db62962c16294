/* service.c - see service.h. */
#include "service.h"
#include "topt_clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#ifdef TOPT_SYSTEMD
#include <systemd/sd-daemon.h>

static int port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    if (getsockname(fd, (struct sockaddr *)&a, &len))
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

int service_sockets(struct service_sockets *ret, struct topt_error *err)
{
    *ret = (struct service_sockets){-1, -1, 0};
    int n = sd_listen_fds(1);
    for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
        int is_local = sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0;
        int is_tcp = sd_is_socket(fd, AF_INET, SOCK_STREAM, 1) > 0 ||
                     sd_is_socket(fd, AF_INET6, SOCK_STREAM, 1) > 0;
        int *to = is_local ? &ret->local : &ret->tcp;
        if (!is_local && !is_tcp)
            return topt_fail(err, TOPT_ERR_USAGE,
                             "descriptor %d, handed over by the service manager, is no "
                             "listening stream socket",
                             fd);
        if (*to >= 0)
            return topt_fail(
                err, TOPT_ERR_USAGE,
                "the service manager hands over two %s sockets; one is taken",
                is_local ? "Unix" : "TCP");
        *to = fd;
    }
    if (ret->tcp >= 0)
        ret->port = port_of(ret->tcp);
    return 0;
}

void service_ready(const char *status)
{
    sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void service_reloading(void)
{
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)topt_clock_ns() / 1000);
}

void service_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

void service_alive(void)
{
    sd_notify(0, "WATCHDOG=1");
}

#else

int service_sockets(struct service_sockets *ret, struct topt_error *err)
{
    (void)err;
    *ret = (struct service_sockets){-1, -1, 0};
    return 0;
}

void service_ready(const char *status)
{
    (void)status;
}

void service_reloading(void)
{
}

void service_stopping(void)
{
}

void service_alive(void)
{
}

#endif
