#include "site.h"

#include <string.h>

#include "topt_place.h"
#include "topt_text.h"

enum { DEFAULT_TIMEOUT_MS = 3000, MAX_TIMEOUT_MS = 60000 };

/* What sizes this one job, or is about it alone, is no site's to say. */
static int is_usual(int which)
{
    return which >= 0 && which != TOPT_ASK_MODEL && which != TOPT_ASK_DRY_RUN &&
           which != TOPT_ASK_GPUS;
}

static int take_usual(int which, const char *value, struct topt_site *site,
                      struct topt_error *err)
{
    if (topt_ask_table[which].kind == TOPT_ASK_IS_FLAG && strcmp(value, "0") == 0)
        return 0;
    if (topt_ask_check_value((enum topt_ask_option)which, value, err))
        return topt_wrap(err, "plugstack.conf: %s",
                         topt_ask_table[which].option + strlen("topt-"));
    site->usual[which] = value;
    return 0;
}

static int take(const char *arg, struct topt_site *site, struct topt_error *err)
{
    const char *eq = strchr(arg, '=');
    size_t n = eq ? (size_t)(eq - arg) : 0;
    if (n == 3 && memcmp(arg, "url", n) == 0) {
        site->url = eq + 1;
    } else if (n == 10 && memcmp(arg, "daemon_uid", n) == 0) {
        site->daemon_uid = eq + 1;
    } else if (n == 12 && memcmp(arg, "munge_socket", n) == 0) {
        site->munge_socket = eq + 1;
    } else if (eq && is_usual(topt_ask_find(arg, n))) {
        return take_usual(topt_ask_find(arg, n), eq + 1, site, err);
    } else if (n == 6 && memcmp(arg, "report", n) == 0) {
        return topt_parse_int(eq + 1, 0, 1, &site->report, err)
                   ? topt_wrap(err, "plugstack.conf: report")
                   : 0;
    } else if (n == 10 && memcmp(arg, "timeout_ms", n) == 0) {
        return topt_parse_int(eq + 1, 1, MAX_TIMEOUT_MS, &site->timeout_ms, err)
                   ? topt_wrap(err, "plugstack.conf: timeout_ms")
                   : 0;
    } else {
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "plugstack.conf: '%s' is not one of url=, timeout_ms=, "
            "on_error=, hw=, daemon_uid=, munge_socket=, report=, or an option's, as "
            "framework=",
            arg);
    }
    return 0;
}

int topt_site_read(int argc, char **argv, struct topt_site *ret, struct topt_error *err)
{
    *ret = (struct topt_site){.timeout_ms = DEFAULT_TIMEOUT_MS};
    int rc = 0;
    for (int i = 0; i < argc && !rc; i++)
        rc = take(argv[i], ret, err);
    return rc;
}

int topt_site_reports(int argc, char **argv)
{
    struct topt_site site;
    struct topt_error err = {0};
    int is_wrong = topt_site_read(argc, argv, &site, &err);
    return !is_wrong && site.report;
}

int topt_site_usual(const struct topt_site *site, struct topt_ask *ask,
                    struct topt_error *err)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++)
        if (site->usual[i] && !ask->value[i] &&
            topt_ask_set(ask, (enum topt_ask_option)i, site->usual[i]))
            return topt_nomem(err, "the site's options");
    return 0;
}

int topt_site_find(struct topt_site *site, struct topt_error *err)
{
    if (topt_trust_read(site->daemon_uid, &site->trust, err))
        return -1;
    if (site->munge_socket)
        site->trust.socket = site->munge_socket;
    if (site->url)
        return 0;
    if (topt_place_ask(site->found, sizeof site->found, err))
        return -1;
    site->url = site->found;
    return 0;
}
