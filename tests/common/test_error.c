/* test_error.c - errors as values: what they say, and that errno stays. */
#include <errno.h>
#include <string.h>

#include "tap.h"
#include "topt_error.h"

int main(void)
{
    struct topt_error err;
    errno = ENOENT;
    ok(topt_nomem(&err, "a model") == -1 && err.code == TOPT_ERR_NOMEM &&
           !strcmp(err.text, "no memory for a model"),
       "what there is no memory for: %s", err.text);
    ok(topt_nomem(&err, NULL) == -1 && !strcmp(err.text, "out of memory"),
       "nothing in particular: %s", err.text);
    ok(errno == ENOENT && err.sys == 0, "errno stays, and is no part of it");
    ok(topt_nomem(NULL, "a model") == -1, "nobody listens");
    ok(topt_wrap(&err, "plan") == -1 && !strcmp(err.text, "plan: out of memory"),
       "wrapped: %s", err.text);
    return done_testing();
}
