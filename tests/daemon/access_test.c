/* access_test.c - who may do what: roles by uid and group, the table of routes, and which
 * hosts and pages may ask. */
#include "caller.h"
#include "origin.h"
#include "server.h"
#include "tap.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOBODY = 65534, STRANGER = 54321 };

static struct topt_error err;

static struct roles *roles_of(const char *admins, const char *operators)
{
    struct roles *r = NULL;
    topt_error_clear(&err);
    if (roles_create(admins, operators, &r, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    return r;
}

static void has_role(struct roles *r, uid_t uid, gid_t gid, enum how how, enum role want,
                     const char *text)
{
    struct caller c = roles_caller(r, uid, gid, how);
    ok(c.role == want && c.uid == uid && c.how == how, "%s: %s", text, role_name(c.role));
}

static void test_roles(void)
{
    struct roles *r = roles_of(NULL, NULL);
    has_role(r, 0, 0, HOW_SOCKET, ROLE_ADMIN, "root");
    has_role(r, geteuid(), 0, HOW_MUNGE, ROLE_ADMIN, "the daemon's own user");
    has_role(r, STRANGER, STRANGER, HOW_SOCKET, ROLE_USER, "anybody else");
    has_role(r, 0, 0, HOW_PROXY, ROLE_OPERATOR, "root by the proxy's word");
    roles_destroy(r);
    r = roles_of("54321, 7", "@54000,nobody");
    has_role(r, STRANGER, 1, HOW_MUNGE, ROLE_ADMIN, "a listed admin");
    has_role(r, STRANGER, 1, HOW_PROXY, ROLE_OPERATOR, "a web server's word makes none");
    has_role(r, 7, 1, HOW_SOCKET, ROLE_ADMIN, "the second of the list");
    has_role(r, NOBODY, 1, HOW_SOCKET, ROLE_OPERATOR, "a listed operator, by name");
    has_role(r, 55555, 54000, HOW_SOCKET, ROLE_OPERATOR, "who runs in a listed group");
    has_role(r, 55555, 54001, HOW_SOCKET, ROLE_USER, "not who runs in another");
    roles_destroy(r);
    static const char *const bad[] = {
        "no-such-user-here", "@no-such-group-here", "root,root", ",", "-1", "4294967295"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(roles_create(bad[i], NULL, &r, &err) == -1 && err.code == TOPT_ERR_USAGE &&
               strstr(err.text, "--admins"),
           "'%s': %s", bad[i], err.text);
}

/* A user that the database knows to be in a group that is not its own; the first there is. */
static int find_member(struct passwd *ret_user, gid_t *ret_group)
{
    struct group *g;
    int found = 0;
    setgrent();
    while (!found && (g = getgrent())) {
        struct passwd *p = g->gr_mem[0] ? getpwnam(g->gr_mem[0]) : NULL;
        if (p && p->pw_uid && p->pw_uid != geteuid() && p->pw_gid != g->gr_gid) {
            *ret_user = *p;
            *ret_group = g->gr_gid;
            found = 1;
        }
    }
    endgrent();
    return found;
}

static void test_groups(void)
{
    struct roles *r = roles_of(NULL, NULL);
    struct caller c = roles_caller(r, STRANGER, 54000, HOW_SOCKET);
    gid_t group[ROLES_GROUPS];
    is_int(roles_groups(r, &c, group), 1,
           "who is in no database is in the group of the process");
    ok(roles_in_group(r, &c, 54000) && !roles_in_group(r, &c, 0), "and in no other");
    c.role = ROLE_NOBODY;
    ok(!roles_in_group(r, &c, 54000), "nobody is in none");
    roles_destroy(r);
    struct passwd user;
    gid_t gid;
    char list[32];
    if (!find_member(&user, &gid)) {
        printf("# no user here is in a second group\n");
        return;
    }
    snprintf(list, sizeof list, "@%u", (unsigned)gid);
    r = roles_of(list, NULL);
    has_role(r, user.pw_uid, user.pw_gid, HOW_MUNGE, ROLE_ADMIN,
             "by a group of the database");
    c = roles_caller(r, user.pw_uid, user.pw_gid, HOW_MUNGE);
    ok(roles_in_group(r, &c, gid) && roles_in_group(r, &c, user.pw_gid),
       "in both groups");
    for (uid_t uid = 1; uid < 5000;
         uid++) /* each other place of the table, and its neighbours */
        roles_in_group(r, &(struct caller){uid, uid, ROLE_USER, HOW_SOCKET}, gid);
    ok(roles_in_group(r, &c, gid), "still, after many others");
    roles_destroy(r);
}

static void test_logins(void)
{
    uid_t uid;
    gid_t gid;
    ok(!login_uid("root", &uid, &gid, &err) && uid == 0 && gid == 0, "root by name");
    ok(!login_uid("54321", &uid, &gid, &err) && uid == STRANGER && gid == (gid_t)-1,
       "by number");
    static const char *const bad[] = {
        "", "-1", "4294967295", "no-such-user-here", "root\n", "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(login_uid(bad[i], &uid, &gid, &err) == -1 && err.code == TOPT_ERR_NOTFOUND,
           "'%s': %s", bad[i], err.text);
    ok(!group_gid("root", &gid, &err) && gid == 0, "a group by name");
    ok(group_gid("no-such-group-here", &gid, &err) == -1, "none: %s", err.text);
}

/* ---- the table --------------------------------------------------------------------------- */

/* Every route, and who may use it at least. */
static const struct {
    const char *route;
    enum role least;
} rights[] = {{"POST /v1/plan", ROLE_USER},
              {"GET /v1/plans", ROLE_USER},
              {"GET /v1/plans/{id}", ROLE_USER},
              {"GET /v1/plans/{id}/launch", ROLE_USER},
              {"GET /v1/queue", ROLE_USER},
              {"GET /v1/plans/{id}/schedule", ROLE_USER},
              {"GET /v1/tasks", ROLE_USER},
              {"GET /v1/observations", ROLE_USER},
              {"POST /v1/observations", ROLE_USER},
              {"DELETE /v1/observations/{id}", ROLE_ADMIN},
              {"GET /v1/corrections", ROLE_USER},
              {"DELETE /v1/corrections/{id}/{hw}", ROLE_ADMIN},
              {"DELETE /v1/plans/{id}", ROLE_USER},
              {"DELETE /v1/models/{id}", ROLE_USER},
              {"GET /v1/tasks/{id}", ROLE_USER},
              {"DELETE /v1/tasks/{id}", ROLE_USER},
              {"POST /v1/models", ROLE_USER},
              {"GET /v1/models", ROLE_USER},
              {"GET /v1/models/{id}", ROLE_USER},
              {"GET /v1/models/{id}/curve", ROLE_USER},
              {"GET /v1/models/{id}/frontier", ROLE_USER},
              {"PUT /v1/plans/{id}/groups/{group}", ROLE_USER},
              {"DELETE /v1/plans/{id}/groups/{group}", ROLE_USER},
              {"PUT /v1/models/{id}/groups/{group}", ROLE_USER},
              {"DELETE /v1/models/{id}/groups/{group}", ROLE_USER},
              {"PUT /v1/hardware/{id}", ROLE_ADMIN},
              {"DELETE /v1/hardware/{id}", ROLE_ADMIN},
              {"POST /v1/hardware", ROLE_ADMIN},
              {"GET /v1/hardware", ROLE_USER},
              {"GET /v1/hardware/{id}", ROLE_USER},
              {"GET /dashboard.js", ROLE_NOBODY},
              {"GET /dashboard.css", ROLE_NOBODY},
              {"GET /livez", ROLE_NOBODY},
              {"GET /readyz", ROLE_NOBODY},
              {"GET /metrics", ROLE_OPERATOR},
              {"GET /openapi.json", ROLE_NOBODY},
              {"GET /", ROLE_NOBODY}};
enum { RIGHTS = sizeof rights / sizeof *rights };

static int least_of(const char *method, const char *path)
{
    char name[100];
    snprintf(name, sizeof name, "%s %s", method, path);
    for (int i = 0; i < RIGHTS; i++)
        if (!strcmp(rights[i].route, name))
            return (int)rights[i].least;
    return -1;
}

/* What a caller of that role is told: 401, 403, or anything else. */
static int asked(struct server *s, const struct route *r, enum role role)
{
    char path[100];
    size_t n = 0;
    for (const char *p = r->path; *p;
         p++) { /* a parameter that no handler takes: it answers without a store */
        path[n++] = *p == '{' ? 'x' : *p;
        p = *p == '{' ? strchr(p, '}') : p;
    }
    path[n] = '\0';
    struct request q = {.server = s,
                        .caller = {STRANGER, STRANGER, role, HOW_SOCKET},
                        .peer = "a test",
                        .method = r->method,
                        .path = path,
                        .pair = {{"no_such_parameter", ""}},
                        .npairs = 1,
                        .body = (char[]){""}};
    struct reply answer = dispatch(&q);
    int status = answer.status;
    reply_fini(&answer);
    request_fini(&q);
    return status;
}

static void test_table(void)
{
    static struct server s;
    static struct config c;
    int n = 0;
    s.config = &c;
    for (const struct route *r = routes; r->method; r++, n++) {
        int least = least_of(r->method, r->path);
        if (!ok(least == (int)r->least, "%s %s: %s", r->method, r->path,
                role_name(r->least)))
            continue;
        for (enum role role = ROLE_NOBODY; role < r->least; role++)
            is_int(asked(&s, r, role), role == ROLE_NOBODY ? 401 : 403,
                   "is refused to %s", role_name(role));
    }
    is_int(n, RIGHTS, "and no other");
}

/* ---- hosts and pages --------------------------------------------------------------------- */

static int host(const char *host)
{
    return origin_host_is_ours(host, "planner.example.org, gpu.example.org", "10.0.0.7");
}

static void test_hosts(void)
{
    static const char *const ours[] = {"localhost",
                                       "LOCALHOST:1234",
                                       "127.0.0.1",
                                       "127.0.0.2:9",
                                       "[::1]",
                                       "[::1]:80",
                                       "10.0.0.7",
                                       "10.0.0.7:8080",
                                       "planner.example.org",
                                       "gpu.example.org:443",
                                       "Planner.Example.ORG"};
    static const char *const foreign[] = {"",
                                          "evil.example",
                                          "localhost.evil.example",
                                          "evil.example:127",
                                          "10.0.0.8",
                                          "planner.example.org.evil.example",
                                          "example.org",
                                          "127.0.0.1@evil.example",
                                          "127.0.0.1:80:80",
                                          "127.0.0.1:evil.example",
                                          "[::1",
                                          "[::1]evil.example",
                                          "[::2]",
                                          "0x7f.1",
                                          "2130706433",
                                          "planner.example.org,"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        ok(host(ours[i]), "'%s' is ours", ours[i]);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        ok(!host(foreign[i]), "'%s' is not", foreign[i]);
    ok(!origin_host_is_ours("10.0.0.7", NULL, NULL) &&
           origin_host_is_ours("localhost", NULL, NULL),
       "without names and an address, loopback alone");
}

static void test_origins(void)
{
    static const struct {
        struct origin o;
        const char *wrong; /* header, or NULL */
        const char *text;
    } cases[] = {
        {{"localhost", NULL, 1, 0, 1}, NULL, "curl on a Unix socket"},
        {{NULL, NULL, 1, 0, 1}, NULL, "without a Host"},
        {{NULL, NULL, 0, 0, 0}, "Host", "which TCP needs"},
        {{"localhost:8080", NULL, 1, 0, 0}, NULL, "a client on TCP"},
        {{"evil.example:8080", NULL, 0, 0, 1}, "Host", "a name that was made to mean us"},
        {{"localhost:8080", "http://localhost:8080", 0, 0, 1},
         NULL,
         "a page through ssh reads"},
        {{"localhost:8080", "http://localhost:8080", 1, 1, 1}, NULL, "and writes JSON"},
        {{"localhost:8080", "http://localhost:8080", 1, 0, 1},
         "Content-Type",
         "and nothing else"},
        {{"localhost:8080", "http://localhost:8081", 0, 0, 1},
         "Origin",
         "a page of another port"},
        {{"localhost:8080", "http://evil.example", 1, 1, 0},
         "Origin",
         "a page of another site"},
        {{"localhost:8080", "null", 1, 1, 0}, "Origin", "a page of no site"},
        {{"gpu.example.org", "https://gpu.example.org", 1, 1, 1},
         NULL,
         "behind a proxy with TLS"},
        {{"gpu.example.org", "ftp://gpu.example.org", 1, 1, 1},
         "Origin",
         "another scheme"},
        {{NULL, "http://localhost", 0, 0, 1}, "Origin", "a page without a Host"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *header = NULL;
        const char *why = origin_refusal(&cases[i].o, "gpu.example.org", NULL, &header);
        ok(cases[i].wrong ? why && !strcmp(header, cases[i].wrong) : !why, "%s: %s",
           cases[i].text, why ? why : "fine");
    }
}

int main(void)
{
    test_roles();
    test_groups();
    test_logins();
    test_table();
    test_hosts();
    test_origins();
    return done_testing();
}
