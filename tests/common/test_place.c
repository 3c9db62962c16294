/* test_place.c - the daemon and who asks it agree on where it listens; who finds none says where
 * it was looked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tap.h"
#include "topt_place.h"

static char root[] = "/tmp/topt-place-XXXXXX", run_dir[64], home[64];
static char place[TOPT_PLACE_PATH], url[256];
static struct topt_error err;

static int listens_at(const char *folder, const char *rest)
{
    char want[128];
    snprintf(want, sizeof want, "%s%s", folder, rest);
    topt_error_clear(&err);
    return !topt_place_listen(place, &err) && !strcmp(place, want);
}

static int asks_at(const char *folder, const char *rest)
{
    char want[128];
    snprintf(want, sizeof want, "unix:%s%s", folder, rest);
    topt_error_clear(&err);
    return !topt_place_ask(url, sizeof url, &err) && !strcmp(url, want);
}

/* Who listens at 'path', whose folders are made. */
static int make_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char folder[TOPT_PLACE_PATH];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *p = folder + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(folder, 0700);
    }
    snprintf(a.sun_path, sizeof a.sun_path, "%.107s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ok(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a) && !listen(fd, 8),
       "a server at %s", path);
    return fd;
}

static void test_url(void)
{
    setenv("TOPT_URL", "http://127.0.0.1:9", 1);
    ok(!topt_place_ask(url, sizeof url, &err) && !strcmp(url, "http://127.0.0.1:9"),
       "TOPT_URL is asked as it is");
    ok(topt_place_ask(url, 8, &err), "if there is room for it: %s", err.text);
    setenv("TOPT_URL", "unix:/somewhere/s.sock", 1);
    ok(listens_at("/somewhere", "/s.sock"), "its path is where a daemon listens");
    ok(asks_at("/somewhere", "/s.sock"), "and where it is asked");
    unsetenv("TOPT_URL");
}

/* Nobody's rights are needed to be somebody: the rule goes by the effective user. */
static void test_own(void)
{
    setenv("XDG_RUNTIME_DIR", run_dir, 1);
    setenv("HOME", home, 1);
    ok(listens_at(run_dir, "/topt/toptd.sock"), "XDG_RUNTIME_DIR: %s", place);
    if (access("/run/topt/toptd.sock", F_OK))
        ok(topt_place_ask(url, sizeof url, &err) && err.code == TOPT_ERR_NOTFOUND &&
               strstr(err.text, run_dir) && strstr(err.text, home) &&
               strstr(err.text, "/run/topt/toptd.sock") &&
               strstr(err.text, "start `toptd`"),
           "none is there: %s", err.text);
    unsetenv("XDG_RUNTIME_DIR");
    ok(listens_at(home, "/.local/state/topt/toptd.sock"), "else HOME: %s", place);
    int old = make_socket(place);
    ok(asks_at(home, "/.local/state/topt/toptd.sock"), "which is found: %s", url);
    setenv("XDG_RUNTIME_DIR", run_dir, 1);
    ok(asks_at(home, "/.local/state/topt/toptd.sock"),
       "though XDG_RUNTIME_DIR was not set where the daemon began: %s", url);
    ok(listens_at(run_dir, "/topt/toptd.sock"), "the next one would listen there");
    int new = make_socket(place);
    ok(asks_at(run_dir, "/topt/toptd.sock"), "and is found first: %s", url);
    close(new);
    ok(asks_at(home, "/.local/state/topt/toptd.sock"),
       "as long as it is there and not just its socket: %s", url);
    close(old);
    char deep[200];
    memset(deep, 'd', sizeof deep);
    deep[0] = '/';
    deep[sizeof deep - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", deep, 1);
    ok(listens_at(home, "/.local/state/topt/toptd.sock"), "no socket has so long a path");
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    unsetenv("HOME");
    ok(topt_place_listen(place, &err) && err.code == TOPT_ERR_USAGE, "nowhere: %s",
       err.text);
}

int main(void)
{
    char command[64];
    if (!mkdtemp(root))
        skip_all("no temporary folder");
    chmod(root, 0777);
    snprintf(run_dir, sizeof run_dir, "%s/run", root);
    snprintf(home, sizeof home, "%s/home", root);
    unsetenv("TOPT_URL");
    test_url();
    if (geteuid() == 0) {
        ok(listens_at("/run", "/topt/toptd.sock"), "root's place: %s", place);
        ok(!seteuid(65534), "somebody else from here on");
    }
    if (geteuid() != 0)
        test_own();
    if (getuid() == 0)
        ok(!seteuid(0), "root again");
    snprintf(command, sizeof command, "rm -rf %s", root);
    ok(system(command) == 0, "nothing stays");
    return done_testing();
}
