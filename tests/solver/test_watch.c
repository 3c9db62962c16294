/* test_watch.c - the line that says what a command is at: on a terminal it comes and is erased,
 * elsewhere and where nobody wants it, it never comes. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "topt_progress.h"

static int saved;

/* Standard error becomes 'fd'. */
static void redirect(int fd)
{
    fflush(stderr);
    saved = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
}

static void restore(void)
{
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
}

/* Read until 'word' was seen or nothing comes for long. */
static int read_until(int fd, const char *word, char *buf, size_t size)
{
    size_t n = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    buf[0] = '\0';
    while (!strstr(buf, word) && n + 1 < size && poll(&p, 1, 20000) > 0) {
        ssize_t got = read(fd, buf + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        buf[n] = '\0';
    }
    return strstr(buf, word) != NULL;
}

static void on_terminal(void)
{
    struct topt_watch w;
    char buf[4096];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) {
        printf("# no pseudo terminal here\n");
        return;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    redirect(slave);
    struct topt_progress *p = topt_watch_start(&w, 0);
    TOPT_PROGRESS(p, gpus, 16);
    TOPT_PROGRESS(p, nodes, 2);
    TOPT_PROGRESS(p, phase, TOPT_PHASE_SEARCHING);
    TOPT_PROGRESS(p, points, 35);
    TOPT_PROGRESS(p, gap, 12000);
    int seen = read_until(master, "35 points", buf, sizeof buf);
    topt_watch_stop(&w);
    fputs("END", stderr);
    restore();
    ok(p != NULL, "a terminal is watched");
    ok(seen && strstr(buf, "16 GPUs on 2 nodes"), "the line comes");
    ok(strstr(buf, "within 1.2 %") || read_until(master, "within 1.2 %", buf, sizeof buf),
       "with how good the points are");
    ok(read_until(master, "\r\033[KEND", buf, sizeof buf), "and is erased at the end");
    redirect(slave);
    ok(!topt_watch_start(&w, 1), "quiet: nobody watches");
    topt_watch_stop(&w);
    restore();
    close(slave);
    close(master);
}

static void in_pipe(void)
{
    struct topt_watch w;
    char buf[16];
    int fd[2];
    if (!ok(!pipe(fd), "a pipe"))
        return;
    redirect(fd[1]);
    struct topt_progress *p = topt_watch_start(&w, 0);
    TOPT_PROGRESS(p, gpus, 16); /* nobody watches: nothing happens */
    TOPT_PROGRESS_ONE(p, priced);
    topt_watch_stop(&w);
    restore();
    close(fd[1]);
    ok(!p, "a pipe is not watched");
    is_int(read(fd[0], buf, sizeof buf), 0, "and gets no byte");
    close(fd[0]);
}

int main(void)
{
    in_pipe();
    on_terminal();
    return done_testing();
}
