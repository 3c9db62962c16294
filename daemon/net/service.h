/* service.h - what the service manager hands over and is told (systemd's protocol, by libsystemd).
 *
 * Without libsystemd at build time, or without a service manager, nothing is handed over and
 * nobody is told.  Thread safety: for the main thread. */
#ifndef TOPTD_SERVICE_H
#define TOPTD_SERVICE_H

#include <stdint.h>

#include "topt_error.h"

/* Listening sockets that were opened for us; -1 where there is none. */
struct service_sockets {
    int local, tcp; /* descriptors */
    int port;       /* of 'tcp' */
};

/* Take what was handed over.  USAGE where one is no listening stream socket, or there are two of a
 * kind. */
int service_sockets(struct service_sockets *ret, struct topt_error *err) TOPT_MUST_CHECK;

void service_ready(const char *status);
void service_reloading(void);
void service_stopping(void);
/* Still alive; about once a second. */
void service_alive(void);

#endif
