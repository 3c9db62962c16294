/* test_site.c - the words behind the plugin in plugstack.conf. */
#include <stdlib.h>
#include <string.h>

#include "site.h"
#include "tap.h"

static int reads(char *arg, struct topt_site *ret, struct topt_error *err)
{
    char *argv[] = {arg};
    return topt_site_read(arg ? 1 : 0, argv, ret, err);
}

int main(void)
{
    struct topt_site s;
    struct topt_error err = {0};
    ok(!reads(NULL, &s, &err) && !s.url && s.timeout_ms == 3000 &&
           !s.usual[TOPT_ASK_ON_ERROR] && !s.usual[TOPT_ASK_HW],
       "defaults");
    setenv("TOPT_URL", "http://127.0.0.1:9", 1);
    ok(!topt_site_find(&s, &err) && strstr(s.url, ":9"), "TOPT_URL");
    ok(!reads((char[]){"url=unix:/x"}, &s, &err) && !topt_site_find(&s, &err) &&
           strcmp(s.url, "unix:/x") == 0,
       "url= wins over it");
    unsetenv("TOPT_URL");
    if (!reads(NULL, &s, &err) && topt_site_find(&s, &err))
        ok(err.code == TOPT_ERR_NOTFOUND && strstr(err.text, "/run/topt/toptd.sock") &&
               strstr(err.text, "start `toptd`"),
           "nowhere: %s", err.text);
    ok(!reads((char[]){"timeout_ms=250"}, &s, &err) && s.timeout_ms == 250, "timeout");
    ok(!reads((char[]){"on_error=abort"}, &s, &err) &&
           strcmp(s.usual[TOPT_ASK_ON_ERROR], "abort") == 0,
       "on_error");
    ok(!reads((char[]){"hw=h200"}, &s, &err) && strcmp(s.usual[TOPT_ASK_HW], "h200") == 0,
       "hw");
    struct topt_ask ask = {0};
    ok(!reads((char[]){"min_efficiency=0.9"}, &s, &err) &&
           !topt_site_usual(&s, &ask, &err) &&
           strcmp(ask.value[TOPT_ASK_MIN_EFFICIENCY], "0.9") == 0,
       "an option's");
    ok(!reads((char[]){"min_efficiency=0.8"}, &s, &err) &&
           !topt_site_usual(&s, &ask, &err) &&
           strcmp(ask.value[TOPT_ASK_MIN_EFFICIENCY], "0.9") == 0,
       "which stays where it was given");
    topt_ask_fini(&ask);
    ok(!reads((char[]){"daemon_uid=77"}, &s, &err) && !strcmp(s.daemon_uid, "77"),
       "daemon_uid");
    char word[] = "report=1", off[] = "report=0", wrong[] = "report=2";
    ok(!reads(word, &s, &err) && s.report == 1 &&
           topt_site_reports(1, (char *[]){word}) &&
           !topt_site_reports(1, (char *[]){off}) &&
           !topt_site_reports(2, (char *[]){word, wrong}) && !topt_site_reports(0, NULL),
       "report");
    ok(!reads((char[]){"daemon_uid=77"}, &s, &err), "daemon_uid once more");
    s.url = "unix:/x";
    s.munge_socket = "/run/m";
    ok(!topt_site_find(&s, &err) && s.trust.uid == 77 &&
           !strcmp(s.trust.socket, "/run/m"),
       "is who alone is believed");
    s.daemon_uid = "no-such-user-here";
    ok(topt_site_find(&s, &err) == -1 && strstr(err.text, "no-such-user-here"),
       "unless unknown: %s", err.text);
    const char *const bad[] = {
        "timeout_ms=0", "timeout_ms=1h", "on_error=no", "ur=x",    "url", "",
        "gpus=8",       "model=m.json",  "batch=x",     "report=2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char arg[32];
        snprintf(arg, sizeof arg, "%s", bad[i]);
        ok(reads(arg, &s, &err) == -1 && strstr(err.text, "plugstack.conf"), "'%s': %s",
           arg, err.text);
    }
    return done_testing();
}
