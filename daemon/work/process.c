/* process.c - worker processes. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { WORKER_FD = 3, REAP_TRIES = 100, REAP_STEP_NS = 10000000 };

/* Which descriptors it has; our end of the socket is among those that are closed. */
static int set_files(posix_spawn_file_actions_t *files, int fd)
{
    int rc = posix_spawn_file_actions_init(files);
    if (rc)
        return rc;
    rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY,
                                              0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(files, fd, WORKER_FD);
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(files, WORKER_FD + 1);
    if (rc)
        posix_spawn_file_actions_destroy(files);
    return rc;
}

/* Signals as a program expects them; a group of its own, so that a terminal's ^C is ours alone. */
static int set_attributes(posix_spawnattr_t *attr)
{
    sigset_t none, all;
    int rc = posix_spawnattr_init(attr);
    if (rc)
        return rc;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    return posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP);
}

static int spawn(pid_t *pid, const char *program, int fd, char **argv)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int rc = set_attributes(&attr);
    if (rc)
        return rc;
    rc = set_files(&files, fd);
    if (!rc) {
        rc = posix_spawn(pid, program, &files, &attr, argv, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    posix_spawnattr_destroy(&attr);
    return rc;
}

int process_start(struct process *p, const char *program, int64_t memory, int nice,
                  struct topt_error *err)
{
    int fd[2];
    char parent[24], bytes[24], more[16];
    char *argv[] = {(char *)"toptd-worker", parent, bytes, more, NULL};
    snprintf(parent, sizeof parent, "%lld", (long long)getpid());
    snprintf(bytes, sizeof bytes, "%lld", (long long)memory);
    snprintf(more, sizeof more, "%d", nice);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return topt_fail(err, TOPT_ERR_IO, "can't make a socket pair: %s",
                         strerror(errno));
    int rc = spawn(&p->pid, program, fd[1], argv);
    close(fd[1]);
    if (rc) {
        close(fd[0]);
        p->pid = 0;
        return topt_fail(err, TOPT_ERR_IO,
                         "can't start '%s': %s (--worker names the program)", program,
                         strerror(rc));
    }
    p->fd = fd[0];
    return 0;
}

int process_is_there(const struct process *p)
{
    char byte;
    ssize_t n = p->pid ? recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) : 0;
    return n < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK); /* it says nothing unasked */
}

void process_end(struct process *p, int *ret)
{
    if (!p->pid)
        return;
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, ret, 0) < 0 && errno == EINTR)
        ;
    close(p->fd);
    p->pid = 0;
}

void process_reap(struct process *p, int *ret)
{
    const struct timespec step = {.tv_nsec = REAP_STEP_NS};
    for (int i = 0; i < REAP_TRIES; i++) {
        if (waitpid(p->pid, ret, WNOHANG) == p->pid) {
            close(p->fd);
            p->pid = 0;
            return;
        }
        nanosleep(&step, NULL); /* a core may be written meanwhile */
    }
    process_end(p, ret);
}

void process_how(int status, char *ret, size_t size)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        snprintf(ret, size, "was killed (signal 9): the machine may be out of memory");
    else if (WIFSIGNALED(status))
        snprintf(ret, size, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret, size, "ended with status %d", WEXITSTATUS(status));
}
