/* config.c - settings of toptd from a file, the environment and flags.
 *
 * Each source becomes a list of "--name=value" arguments and goes through the one parser in
 * the order of precedence, so a setting means the same and fails the same everywhere. */
#include "config.h"
#include "topt_log.h"
#include "topt_munge.h"
#include "topt_near.h"
#include "topt_options.h"
#include "topt_place.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_FILE "/etc/topt/toptd.conf"

static const struct topt_option table[] = {
#define X(field, flag, kind, def, arg, help)                                             \
    {flag, TOPT_OPT_##kind, offsetof(struct config, field), arg, help},
    TOPTD_SETTINGS(X)
#undef X
        {0}};

enum { NSETTINGS = sizeof table / sizeof *table - 1, MAX_FILE_LINES = 256 };

void config_help(FILE *out)
{
    topt_options_help(out, "toptd [options]", table);
    fputs(
        "\nEvery setting can stand in the file as NAME=VALUE and in the environment as\n"
        "TOPT_NAME ('-' becomes '_'). Flags win over the environment, and that over the "
        "file.\n",
        out);
}

static int parse(struct config *c, int argc, char **argv, struct topt_error *err)
{
    int nargs;
    const char *none[1];
    return topt_options_parse(table, argc, argv, c, none, 0, &nargs, err);
}

/* The value of TOPT_<NAME>, or NULL. */
static const char *from_environment(const char *name)
{
    char var[64] = "TOPT_";
    size_t n = strlen(var);
    for (; *name && n < sizeof var - 1; name++)
        var[n++] = (char)(*name == '-' ? '_' : toupper((unsigned char)*name));
    var[n] = '\0';
    const char *value = getenv(var);
    return value && *value ? value : NULL;
}

/* getenv's strings stay valid, but "--name=value" must be built: two arguments avoid that. */
static int parse_environment(struct config *c, struct topt_error *err)
{
    for (int i = 0; i < NSETTINGS; i++) {
        const char *value = from_environment(table[i].name);
        if (!value || table[i].kind == TOPT_OPT_FLAG ||
            !strcmp(table[i].name, "backup-to")) /* acts, not settings */
            continue;
        char flag[64];
        snprintf(flag, sizeof flag, "--%s", table[i].name);
        char *argv[] = {(char *)"toptd", flag, (char *)value, NULL};
        if (parse(c, 3, argv, err) < 0)
            return topt_wrap(err, "environment");
    }
    return 0;
}

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    return s;
}

/* One "name = value" line, in place.  0 also for a blank line or a comment. */
static int parse_line(struct config *c, char *line, struct topt_error *err)
{
    line = trim(line);
    if (!*line || *line == '#')
        return 0;
    char *eq = strchr(line, '=');
    if (!eq)
        return topt_fail(err, TOPT_ERR_USAGE, "'%.60s' is not NAME=VALUE", line);
    *eq = '\0';
    char flag[64];
    snprintf(flag, sizeof flag, "--%s", trim(line));
    if (!strcmp(flag, "--config") || !strcmp(flag, "--check-config") ||
        !strcmp(flag, "--help") || !strcmp(flag, "--backup-to"))
        return topt_fail(err, TOPT_ERR_USAGE, "'%s' can't be set in a file", flag + 2);
    char *argv[] = {(char *)"toptd", flag, trim(eq + 1), NULL};
    return parse(c, 3, argv, err);
}

static int parse_file(struct config *c, const char *path, struct topt_error *err)
{
    size_t len;
    char *text = topt_read_file(path, 1 << 20, &len, err);
    if (!text)
        return topt_wrap(err, "--config");
    topt_text_put(&c->file, text, len);
    free(text);
    if (c->file.oom)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    int number = 0;
    for (char *next = c->file.s, *line; (line = strsep(&next, "\n"));) {
        number++;
        if (parse_line(c, line, err) < 0)
            return topt_wrap(err, "%s line %d", path, number);
    }
    return 0;
}

/* Where things live when nobody said. */
static int default_places(struct config *c, struct topt_error *err)
{
    const char *home = getenv("HOME");
    if (c->state)
        snprintf(c->state_dir, sizeof c->state_dir, "%s", c->state);
    else if (geteuid() == 0)
        snprintf(c->state_dir, sizeof c->state_dir, "/var/lib/topt");
    else
        snprintf(c->state_dir, sizeof c->state_dir, "%.360s/.local/state/topt",
                 home && *home ? home : "/tmp");
    if (!c->socket)
        return topt_place_listen(c->socket_path, err);
    snprintf(c->socket_path, sizeof c->socket_path, "%s", c->socket);
    return 0;
}

/* Who may ask, and how that is known. */
static int check_access(struct config *c, struct topt_error *err)
{
    if (c->auth && strcmp(c->auth, "munge"))
        return topt_fail(err, TOPT_ERR_USAGE, "--auth '%.40s': only munge is known",
                         c->auth);
    if (c->auth && !topt_munge_built())
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--auth munge: this toptd was built without libmunge-dev");
    c->uses_munge = c->auth != NULL;
    if (c->proxy_socket && !c->proxy_uid)
        return topt_fail(err, TOPT_ERR_USAGE, "--proxy-socket needs --proxy-uid");
    if (c->proxy_socket && strlen(c->proxy_socket) >= TOPT_PLACE_PATH)
        return topt_fail(err, TOPT_ERR_USAGE, "--proxy-socket: longer than %d bytes",
                         TOPT_PLACE_PATH - 1);
    if (strcmp(c->open_metrics, "yes") && strcmp(c->open_metrics, "no"))
        return topt_fail(err, TOPT_ERR_USAGE, "--open-metrics must be yes or no");
    if (strcmp(c->share_answers, "yes") && strcmp(c->share_answers, "no"))
        return topt_fail(err, TOPT_ERR_USAGE, "--share-answers must be yes or no");
    c->answers_are_shared = !strcmp(c->share_answers, "yes");
    c->metrics_are_open = !strcmp(c->open_metrics, "yes");
    return 0;
}

/* The next "NAME:PRICE" of --prices.  1, 0 past the last, or -1. */
static int next_price(const char *prices, const char **at, char name[80], double *ret,
                      struct topt_error *err)
{
    char item[112];
    int rc = topt_list_next(prices, at, item, sizeof item, err);
    char *colon = rc > 0 ? strrchr(item, ':') : NULL;
    if (rc <= 0)
        return rc ? topt_wrap(err, "--prices") : 0;
    if (!colon || colon == item || colon - item >= 80)
        return topt_fail(err, TOPT_ERR_USAGE, "--prices: '%.60s' is not NAME:PRICE",
                         item);
    *colon = '\0';
    strcpy(name, item);
    return topt_parse_real(colon + 1, 1, ret, err) ? topt_wrap(err, "--prices: %s", name)
                                                   : 1;
}

static int check_prices(const struct config *c, struct topt_error *err)
{
    const char *at = NULL;
    char name[80];
    double price;
    int rc = 0;
    if (c->currency && strlen(c->currency) > 15)
        return topt_fail(err, TOPT_ERR_USAGE, "--currency: longer than 15 bytes");
    while (c->prices && (rc = next_price(c->prices, &at, name, &price, err)) > 0)
        continue;
    return rc;
}

double config_price(const struct config *c, const char *hw)
{
    const char *at = NULL;
    char name[80];
    double price;
    while (c->prices && next_price(c->prices, &at, name, &price, NULL) > 0)
        if (!strcmp(name, hw))
            return price;
    return 0;
}

static int check(const struct config *c, struct topt_error *err)
{
    if (c->socket && strlen(c->socket) >= sizeof c->socket_path)
        return topt_fail(err, TOPT_ERR_USAGE, "--socket: longer than %zu bytes",
                         sizeof c->socket_path - 1);
    if (c->state && strlen(c->state) >= sizeof c->state_dir)
        return topt_fail(err, TOPT_ERR_USAGE, "--state: path too long");
    if (c->workers < 1 || c->workers > 64)
        return topt_fail(err, TOPT_ERR_USAGE, "--workers must be 1..64");
    if (c->threads < 1 || c->threads > 256) /* as many as a search may have */
        return topt_fail(err, TOPT_ERR_USAGE, "--threads must be 1..256");
    if (c->queue > 100000)
        return topt_fail(err, TOPT_ERR_USAGE, "--queue must be at most 100000");
    if (c->connections < 4 || c->connections > 32768)
        return topt_fail(err, TOPT_ERR_USAGE, "--connections must be 4..32768");
    if (c->body_limit < 1024 || c->body_limit > 1 << 30)
        return topt_fail(err, TOPT_ERR_USAGE, "--body-limit must be 1KiB..1GiB");
    if (c->max_table_bytes < 1 << 20)
        return topt_fail(err, TOPT_ERR_USAGE, "--max-table-bytes must be at least 1MiB");
    if (c->idle_timeout < 1 || c->idle_timeout > 3600 || c->request_timeout < 1 ||
        c->request_timeout > 3600)
        return topt_fail(err, TOPT_ERR_USAGE, "timeouts must be 1..3600 seconds");
    if (c->submit_limit < 1 || c->submit_limit > 60)
        return topt_fail(err, TOPT_ERR_USAGE, "--submit-limit must be 1..60 seconds");
    if (c->worker_memory && c->worker_memory < (int64_t)256 << 20)
        return topt_fail(err, TOPT_ERR_USAGE, "--worker-memory must be at least 256MiB");
    if (c->cache_bytes < 1 << 20)
        return topt_fail(err, TOPT_ERR_USAGE, "--cache-bytes must be at least 1MiB");
    if (c->user_documents < 1 || c->user_documents > 1000000)
        return topt_fail(err, TOPT_ERR_USAGE, "--user-documents must be 1..1000000");
    if (c->user_bytes < 1 << 20)
        return topt_fail(err, TOPT_ERR_USAGE, "--user-bytes must be at least 1MiB");
    if (c->keep_plans_days < 1 || c->keep_plans_days > 36500)
        return topt_fail(err, TOPT_ERR_USAGE, "--keep-plans-days must be 1..36500");
    if (c->search_limit < 1 || c->search_limit > 1000000)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--search-limit must be 1..1000000 seconds");
    return 0;
}

/* --config of the flags or the environment, before anything else is read. */
static int find_file(int argc, char **argv, const char **ret, struct topt_error *err)
{
    struct config probe = {0};
    int rc = parse(&probe, argc, argv, err);
    *ret = probe.config ? probe.config : from_environment("config");
    struct stat st;
    if (rc == 0 && !*ret && stat(DEFAULT_FILE, &st) == 0)
        *ret = DEFAULT_FILE;
    return rc;
}

int config_load(struct config *c, int argc, char **argv, struct topt_error *err)
{
    *c = (struct config){
#define X(field, flag, kind, def, arg, help) .field = def,
        TOPTD_SETTINGS(X)
#undef X
    };
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("toptd " TOPT_VERSION);
        return 1;
    }
    const char *path;
    int rc = find_file(argc, argv, &path, err);
    if (rc) {
        if (rc > 0)
            config_help(stdout);
        return rc;
    }
    if (path && parse_file(c, path, err) < 0)
        return -1;
    if (parse_environment(c, err) < 0 || parse(c, argc, argv, err) < 0)
        return -1;
    return default_places(c, err) || check(c, err) || check_access(c, err) ||
                   check_prices(c, err)
               ? -1
               : 0;
}

int config_log_level(const struct config *c, struct topt_error *err)
{
    static const struct {
        const char *name;
        enum topt_level level;
    } levels[] = {{"error", TOPT_LOG_ERR},
                  {"warning", TOPT_LOG_WARN},
                  {"info", TOPT_LOG_INFO},
                  {"debug", TOPT_LOG_DEBUG}};
    struct topt_near near = {.name = c->log_level};
    char meant[TOPT_NEAR_WORDS];
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        topt_near_try(&near, levels[i].name);
        if (!strcmp(levels[i].name, c->log_level))
            return (int)levels[i].level;
    }
    return topt_fail(err, TOPT_ERR_USAGE,
                     "unknown --log-level '%.40s'%s (one of error, warning, info, debug)",
                     c->log_level, topt_near_words(&near, meant));
}

/* Settings that are read anew for each request or second. */
static int is_taken_up(const char *name)
{
    static const char *const names[] = {"hw",
                                        "body-limit",
                                        "max-table-bytes",
                                        "idle-timeout",
                                        "request-timeout",
                                        "log-level",
                                        "site-map",
                                        "prices",
                                        "currency",
                                        "config",
                                        "check-config",
                                        "auth",
                                        "munge-socket",
                                        "host",
                                        "admins",
                                        "operators",
                                        "proxy-header",
                                        "open-metrics",
                                        "cache-bytes",
                                        "keep-plans-days",
                                        "user-documents",
                                        "user-bytes",
                                        "share-answers",
                                        "backup-to"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

static int is_same(const struct topt_option *o, const struct config *a,
                   const struct config *b)
{
    const char *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;
    if (o->kind != TOPT_OPT_STRING)
        return !memcmp(x, y, o->kind == TOPT_OPT_FLAG ? sizeof(int) : sizeof(int64_t));
    const char *s = *(const char *const *)x, *t = *(const char *const *)y;
    return s == t || (s && t && !strcmp(s, t));
}

const char *config_needs_restart(const struct config *a, const struct config *b)
{
    for (int i = 0; i < NSETTINGS; i++)
        if (!is_taken_up(table[i].name) && !is_same(&table[i], a, b))
            return table[i].name;
    return NULL;
}

void config_fini(struct config *c)
{
    topt_text_fini(&c->file);
}
