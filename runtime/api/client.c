/* client.c - see client.h. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };

extern char **environ;

static int drain(int fd, struct topt_text *out, struct topt_error *err)
{
    char block[65536];
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return topt_fail(err, TOPT_ERR_IO, "read from topt client: %s",
                             strerror(errno));
        if (n == 0)
            return 0;
        topt_text_put(out, block, (size_t)n);
        if (out->oom || out->len > MOST_BYTES)
            return topt_fail(err, TOPT_ERR_LIMIT, "topt client prints more than 64 MiB");
    }
}

static int start(char *const args[], int out, pid_t *ret, struct topt_error *err)
{
    posix_spawn_file_actions_t files;
    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return topt_fail(err, TOPT_ERR_NOMEM, "start '%.200s': %s", args[0],
                         strerror(rc));
    rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!rc)
        rc = posix_spawnp(ret, args[0], &files, NULL, args, environ);
    posix_spawn_file_actions_destroy(&files);
    return rc ? topt_fail(err, TOPT_ERR_IO, "start '%.200s': %s", args[0], strerror(rc))
              : 0;
}

int topt_client_output(char *const args[], struct topt_text *out, struct topt_error *err)
{
    int pipes[2], status = 0;
    pid_t child;
    if (pipe2(pipes, O_CLOEXEC))
        return topt_fail(err, TOPT_ERR_IO, "pipe: %s", strerror(errno));
    int rc = start(args, pipes[1], &child, err);
    close(pipes[1]);
    if (!rc) {
        rc = drain(pipes[0], out, err);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
        if (!rc && (!WIFEXITED(status) || WEXITSTATUS(status)))
            rc = topt_fail(err, TOPT_ERR_NOTFOUND, "'%.200s' has failed", args[0]);
    }
    close(pipes[0]);
    return rc;
}
