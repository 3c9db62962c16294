/* command.c - other programs, run without a shell, until a deadline. */
#include "topt_command.h"
#include "topt_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_LIMIT = 64 << 20 };

extern char **environ;

/* All that comes from 'fd' until 'deadline'. */
static int drain(int fd, int64_t deadline, struct topt_text *out, struct topt_error *err)
{
    char block[16384];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - topt_clock_ms();
        int n = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return topt_fail(err, TOPT_ERR_CANCELED, "it does not answer in time");
        ssize_t got = read(fd, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? topt_fail(err, TOPT_ERR_IO, "read: %s", strerror(errno)) : 0;
        topt_text_put(out, block, (size_t)got);
        if (out->oom || out->len > OUTPUT_LIMIT)
            return topt_fail(err, TOPT_ERR_LIMIT, "it says too much");
    }
}

/* Its standard output is the descriptor 'out', its standard error 'errors'. */
static int spawn(const char *const *args, int out, int errors, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return rc;
    rc = posix_spawnattr_init(&attributes);
    if (!rc) {
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        if (!rc)
            rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null",
                                                  O_RDONLY, 0);
        if (!rc)
            rc = posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
        if (!rc)
            rc = posix_spawnp(ret, args[0], &files, &attributes,
                              (char *const *)(uintptr_t)args, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

/* Put the command before what is said of it; -1. */
static int wrap(const char *const *args, struct topt_error *err)
{
    char line[160];
    size_t n = 0;
    for (; *args && n < sizeof line; args++)
        n += (size_t)snprintf(line + n, sizeof line - n, n ? " %s" : "%s", *args);
    return topt_wrap(err, "%s", line);
}

/* 'errors': where standard error goes; -1: to 'out', too.  '*ret_failed': it ran, and ended with a failure. */
static int run(const char *const *args, int64_t deadline, int errors,
               struct topt_text *out, int *ret_failed, struct topt_error *err)
{
    int pipes[2], status = 0;
    pid_t child;
    if (pipe2(pipes, O_CLOEXEC))
        return topt_fail(err, TOPT_ERR_IO, "pipe: %s", strerror(errno));
    int rc = spawn(args, pipes[1], errors < 0 ? pipes[1] : errors, &child);
    close(pipes[1]);
    if (rc) {
        close(pipes[0]);
        return topt_fail(err, rc == ENOENT ? TOPT_ERR_NOTFOUND : TOPT_ERR_IO, "%s: %s",
                         args[0], strerror(rc));
    }
    rc = drain(pipes[0], deadline, out, err);
    close(pipes[0]);
    if (rc)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_failed = !WIFEXITED(status) || WEXITSTATUS(status);
    return rc ? wrap(args, err) : 0;
}

/* The first line of what a command said that failed. */
static int failed_as_said(const char *said, struct topt_error *err)
{
    size_t n = strcspn(said, "\n");
    return topt_fail(err, TOPT_ERR_IO, "%.*s", n < 200 ? (int)n : 200,
                     n ? said : "it failed");
}

int topt_command_read(const char *const *args, int64_t deadline, struct topt_text *out,
                      struct topt_error *err)
{
    char said[256];
    int failed = 0, errors = memfd_create("errors", MFD_CLOEXEC);
    if (errors < 0)
        return topt_fail(err, TOPT_ERR_IO, "memfd: %s", strerror(errno));
    int rc = run(args, deadline, errors, out, &failed, err);
    if (!rc && failed) {
        ssize_t n = pread(errors, said, sizeof said - 1, 0);
        said[n > 0 ? n : 0] = '\0';
        failed_as_said(said, err);
        rc = wrap(args, err);
    }
    close(errors);
    return rc;
}

int topt_command_tell(const char *const *args, int64_t deadline, struct topt_error *err)
{
    struct topt_text said = {0};
    int failed = 0, rc = run(args, deadline, -1, &said, &failed, err);
    if (!rc && failed)
        rc = failed_as_said(said.s ? said.s : "", err);
    topt_text_fini(&said);
    return rc;
}
