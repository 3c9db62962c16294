/* config.h - settings of toptd: one list drives the file, the environment, flags and --help.
 * Thread safety: read-only once loaded. */
#ifndef TOPTD_CONFIG_H
#define TOPTD_CONFIG_H

#include <stdint.h>
#include <stdio.h>

#include "topt_error.h"
#include "topt_place.h"
#include "topt_text.h"

/* X(field, flag, kind, default, argument, help).  The environment's name is TOPT_ and the
 * flag in capitals with '_' for '-'. */
#define TOPTD_SETTINGS(X)                                                                \
    X(socket, "socket", STRING, NULL, "PATH",                                            \
      "Unix socket (default: /run/topt/toptd.sock as root, see the man page)")           \
    X(listen, "listen", STRING, NULL, "ADDR:PORT",                                       \
      "also listen on a loopback address; port 0 takes a free one")                      \
    X(port_file, "port-file", STRING, NULL, "FILE", "write the TCP port there")          \
    X(state, "state", STRING, NULL, "DIR",                                               \
      "where the store is kept (default: /var/lib/topt as root)")                        \
    X(hw, "hw", STRING, NULL, "NAME", "hardware profile of requests that name none")     \
    X(workers, "workers", INT, 2, "N", "searches at a time (2)")                         \
    X(threads, "threads", INT, 1, "N", "threads of one search (1)")                      \
    X(queue, "queue", INT, 16, "N", "searches that may wait (16)")                       \
    X(submit_limit, "submit-limit", INT, 2, "SECONDS",                                   \
      "short questions that take longer wait among the searches (2)")                    \
    X(worker, "worker", STRING, NULL, "PROGRAM",                                         \
      "worker program (default: ../libexec/topt/toptd-worker beside toptd's folder)")    \
    X(worker_memory, "worker-memory", BYTES, 0, "BYTES",                                 \
      "most memory of a worker process (default: its share of 3/4 of the machine)")      \
    X(search_limit, "search-limit", INT, 900, "SECONDS", "longest search (900)")         \
    X(max_table_bytes, "max-table-bytes", BYTES, (int64_t)4 << 30, "BYTES",              \
      "most memory that a search's costs may take (4GiB)")                               \
    X(body_limit, "body-limit", BYTES, 16 << 20, "BYTES",                                \
      "largest request body (16MiB)")                                                    \
    X(connections, "connections", INT, 128, "N", "connections at a time (128)")          \
    X(idle_timeout, "idle-timeout", INT, 15, "SECONDS",                                  \
      "silence that closes a connection (15)")                                           \
    X(request_timeout, "request-timeout", INT, 30, "SECONDS",                            \
      "longest time a client may take to send a request (30)")                           \
    X(log_level, "log-level", STRING, "info", "LEVEL",                                   \
      "error, warning, info or debug (info)")                                            \
    X(config, "config", STRING, NULL, "FILE",                                            \
      "settings as NAME=VALUE lines (default: /etc/topt/toptd.conf if there)")

#define TOPTD_TYPE_STRING const char *
#define TOPTD_TYPE_INT    int64_t
#define TOPTD_TYPE_BYTES  int64_t

struct config {
#define X(field, flag, kind, def, arg, help) TOPTD_TYPE_##kind field;
    TOPTD_SETTINGS(X)
#undef X
    struct topt_text file; /* strings of the settings point in here */
    char socket_path[TOPT_PLACE_PATH], state_dir[512];
};

/* Defaults, then the file, then the environment, then flags.  Returns 1 where --help or
 * --version was asked for (and printed), 0, or -1. */
int config_load(struct config *c, int argc, char **argv,
                struct topt_error *err) TOPT_MUST_CHECK;
void config_fini(struct config *c);

void config_help(FILE *out);

#endif
