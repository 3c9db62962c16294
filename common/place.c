/* place.c - where toptd listens when nobody says. */
#include "topt_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "topt_text.h"

static const char site[] = "/run/topt/toptd.sock";

enum { MOST_PLACES = 3 };

static const char *set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* One more place, where it is a whole path that a socket can have. */
static void add(char places[MOST_PLACES][TOPT_PLACE_PATH], int *n, const char *folder,
                const char *rest)
{
    if (folder && *folder == '/' && strlen(folder) + strlen(rest) < TOPT_PLACE_PATH)
        snprintf(places[(*n)++], TOPT_PLACE_PATH, "%s%s", folder, rest);
}

/* This user's own places, best first. */
static int own_places(char places[MOST_PLACES][TOPT_PLACE_PATH])
{
    int n = 0;
    if (geteuid() == 0) {
        add(places, &n, site, "");
        return n;
    }
    add(places, &n, set("XDG_RUNTIME_DIR"), "/topt/toptd.sock");
    add(places, &n, set("HOME"), "/.local/state/topt/toptd.sock");
    return n;
}

int topt_place_listen(char ret[TOPT_PLACE_PATH], struct topt_error *err)
{
    char places[MOST_PLACES][TOPT_PLACE_PATH];
    const char *url = set("TOPT_URL");
    if (url && !strncmp(url, "unix:/", 6) && strlen(url + 5) < TOPT_PLACE_PATH) {
        strcpy(ret, url + 5);
        return 0;
    }
    if (own_places(places) == 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "neither XDG_RUNTIME_DIR nor HOME says where to listen; give "
                         "--socket PATH");
    strcpy(ret, places[0]);
    return 0;
}

/* Does anybody listen there?  A daemon that was killed leaves its socket behind. */
static int is_heard(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return 0;
    memcpy(a.sun_path, path, strlen(path) + 1);
    int heard = !connect(fd, (const struct sockaddr *)&a, sizeof a) || errno == EAGAIN;
    close(fd);
    return heard;
}

int topt_place_ask(char *ret, size_t size, struct topt_error *err)
{
    char places[MOST_PLACES][TOPT_PLACE_PATH];
    struct topt_text looked = {0};
    const char *url = set("TOPT_URL");
    if (url)
        return snprintf(ret, size, "%s", url) < (int)size
                   ? 0
                   : topt_fail(err, TOPT_ERR_USAGE, "TOPT_URL is too long");
    int n = own_places(places), found = 0;
    if (n == 0 || strcmp(places[0], site))
        add(places, &n, site, "");
    for (int i = 0; i < n && !found; i++) {
        snprintf(ret, size, "unix:%s", places[i]);
        found = is_heard(places[i]);
        topt_text_add(&looked, "%s%s", i ? ", " : "", places[i]);
    }
    if (!found)
        topt_fail(
            err, TOPT_ERR_NOTFOUND,
            "toptd is not running (nothing listens at %s); start `toptd` or set TOPT_URL",
            looked.s ? looked.s : site);
    topt_text_fini(&looked);
    return found ? 0 : -1;
}
