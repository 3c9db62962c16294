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
      "also listen there; with --auth munge on any address, else on loopback")           \
    X(port_file, "port-file", STRING, NULL, "FILE", "write the TCP port there")          \
    X(auth, "auth", STRING, NULL, "munge",                                               \
      "TCP clients authenticate by MUNGE; without it they may ask for next to nothing")  \
    X(munge_socket, "munge-socket", STRING, NULL, "PATH",                                \
      "of munged, where it is not the usual one")                                        \
    X(host, "host", STRING, NULL, "NAME[,NAME...]",                                      \
      "names that requests may be sent to, beside loopback addresses")                   \
    X(admins, "admins", STRING, NULL, "LIST",                                            \
      "users and @groups with all rights, besides root and the daemon's user")           \
    X(operators, "operators", STRING, NULL, "LIST",                                      \
      "users and @groups who may see metrics and cancel tasks of others")                \
    X(proxy_socket, "proxy-socket", STRING, NULL, "PATH",                                \
      "Unix socket for the site's web proxy alone, whose logins count")                  \
    X(proxy_uid, "proxy-uid", STRING, NULL, "USER", "as whom that proxy runs")           \
    X(proxy_header, "proxy-header", STRING, "X-Remote-User", "NAME",                     \
      "header with the login (X-Remote-User)")                                           \
    X(open_metrics, "open-metrics", STRING, "no", "yes|no",                              \
      "/metrics for anybody on this machine (no: for operators)")                        \
    X(state, "state", STRING, NULL, "DIR",                                               \
      "where the store is kept (default: /var/lib/topt as root)")                        \
    X(hw, "hw", STRING, NULL, "NAME", "hardware profile of requests that name none")     \
    X(prices, "prices", STRING, NULL, "NAME:PRICE,...",                                  \
      "price of a GPU-hour by hardware profile, for questions with tokens or samples")   \
    X(currency, "currency", STRING, NULL, "NAME", "what these prices are in, as EUR")    \
    X(site_map, "site-map", STRING, NULL, "FILE",                                        \
      "which profile a partition's GPUs have: lines of PARTITION GPU-TYPE PROFILE")      \
    X(scontrol, "scontrol", STRING, "scontrol", "PROGRAM",                               \
      "program that knows the limits of Slurm's partitions (scontrol; empty: none)")     \
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
    X(connections, "connections", INT, 1024, "N", "connections at a time (1024)")        \
    X(idle_timeout, "idle-timeout", INT, 15, "SECONDS",                                  \
      "silence that closes a connection (15)")                                           \
    X(request_timeout, "request-timeout", INT, 30, "SECONDS",                            \
      "longest time a client may take to send a request (30)")                           \
    X(cache_bytes, "cache-bytes", BYTES, (int64_t)1 << 30, "BYTES",                      \
      "most bytes of answers that are kept; a sixteenth of that in memory (1GiB)")       \
    X(keep_plans_days, "keep-plans-days", INT, 90, "DAYS",                               \
      "days that a plan is kept after its last use (90)")                                \
    X(user_documents, "user-documents", INT, 10000, "N",                                 \
      "models and plans that are kept of one user (10000)")                              \
    X(user_bytes, "user-bytes", BYTES, (int64_t)256 << 20, "BYTES",                      \
      "and their bytes (256MiB)")                                                        \
    X(share_answers, "share-answers", STRING, "no", "yes|no",                            \
      "reuse answers across users (no: keep users' questions private)")                  \
    X(backup_to, "backup-to", STRING, NULL, "FILE",                                      \
      "copy the store there, check the copy, and end; also beside a running toptd")      \
    X(log_level, "log-level", STRING, "info", "LEVEL",                                   \
      "error, warning, info or debug (info)")                                            \
    X(config, "config", STRING, NULL, "FILE",                                            \
      "settings as NAME=VALUE lines (default: /etc/topt/toptd.conf if there)")           \
    X(check_config, "check-config", FLAG, 0, NULL,                                       \
      "read the settings, see that their profiles are there, and end")

#define TOPTD_TYPE_STRING const char *
#define TOPTD_TYPE_INT    int64_t
#define TOPTD_TYPE_BYTES  int64_t
#define TOPTD_TYPE_FLAG   int

struct config {
#define X(field, flag, kind, def, arg, help) TOPTD_TYPE_##kind field;
    TOPTD_SETTINGS(X)
#undef X
    struct topt_text file; /* strings of the settings point in here */
    char socket_path[TOPT_PLACE_PATH], state_dir[512];
    int uses_munge, metrics_are_open,
        answers_are_shared; /* of auth, open_metrics and share_answers */
};

/* Defaults, then the file, then the environment, then flags.  Returns 1 where --help or
 * --version was asked for (and printed), 0, or -1. */
int config_load(struct config *c, int argc, char **argv,
                struct topt_error *err) TOPT_MUST_CHECK;
void config_fini(struct config *c);

void config_help(FILE *out);

/* The level of --log-level, of topt_log.h; -1 with an error where there is none of the name. */
int config_log_level(const struct config *c, struct topt_error *err) TOPT_MUST_CHECK;

/* The price of a GPU-hour of a profile by its name; 0 where --prices does not list it. */
double config_price(const struct config *c, const char *hw);

/* The first setting that differs in 'b' and that a running daemon does not take up; NULL where
 * all of them do. */
const char *config_needs_restart(const struct config *a, const struct config *b);

#endif
