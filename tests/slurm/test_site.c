/* test_site.c - the words behind the plugin in plugstack.conf. */
#include <string.h>

#include "site.h"
#include "tap.h"

static int reads(char *arg, const char *env, struct topt_site *ret,
                 struct topt_error *err)
{
    char *argv[] = {arg};
    return topt_site_read(arg ? 1 : 0, argv, env, ret, err);
}

int main(void)
{
    struct topt_site s;
    struct topt_error err = {0};
    ok(!reads(NULL, NULL, &s, &err) && strcmp(s.url, "unix:/run/topt/toptd.sock") == 0 &&
           s.timeout_ms == 10000 && !s.on_error && !s.hw,
       "defaults");
    ok(!reads(NULL, "http://127.0.0.1:9", &s, &err) && strstr(s.url, ":9"), "TOPT_URL");
    ok(!reads((char[]){"url=unix:/x"}, "http://127.0.0.1:9", &s, &err) &&
           strcmp(s.url, "unix:/x") == 0,
       "url= wins over it");
    ok(!reads((char[]){"timeout_ms=250"}, NULL, &s, &err) && s.timeout_ms == 250,
       "timeout");
    ok(!reads((char[]){"on_error=abort"}, NULL, &s, &err) &&
           strcmp(s.on_error, "abort") == 0,
       "on_error");
    ok(!reads((char[]){"hw=h200"}, NULL, &s, &err) && strcmp(s.hw, "h200") == 0, "hw");
    const char *const bad[] = {"timeout_ms=0", "timeout_ms=1h", "on_error=no",
                               "ur=x",         "url",           ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char arg[32];
        snprintf(arg, sizeof arg, "%s", bad[i]);
        ok(reads(arg, NULL, &s, &err) == -1 && strstr(err.text, "plugstack.conf") &&
               s.url,
           "'%s': %s", arg, err.text);
    }
    return done_testing();
}
