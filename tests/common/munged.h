/* munged.h - a munged of the test's own: its key, its socket, in a folder that goes with it. */
#ifndef TOPT_TEST_MUNGED_H
#define TOPT_TEST_MUNGED_H

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

struct munged {
    char folder[40], socket[64], key[64];
    pid_t pid;
};

static void munged_key(struct munged *m, const char *name)
{
    unsigned char bytes[128];
    snprintf(m->key, sizeof m->key, "%s/%s", m->folder, name);
    int fd = open(m->key, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || getrandom(bytes, sizeof bytes, 0) != sizeof bytes ||
        write(fd, bytes, sizeof bytes) != sizeof bytes)
        abort();
    close(fd);
}

/* 0, or -1 where there is no munged. */
static int munged_start(struct munged *m)
{
    static const char program[] = "/usr/sbin/munged";
    char key[96], socket[96], pid[96], log[96], seed[96];
    if (access(program, X_OK))
        return -1;
    snprintf(m->folder, sizeof m->folder, "/tmp/topt-munge-XXXXXX");
    if (!mkdtemp(m->folder))
        abort();
    if (chmod(m->folder, 0755))
        abort();
    munged_key(m, "key");
    snprintf(m->socket, sizeof m->socket, "%s/socket", m->folder);
    snprintf(key, sizeof key, "--key-file=%s", m->key);
    snprintf(socket, sizeof socket, "--socket=%s", m->socket);
    snprintf(pid, sizeof pid, "--pid-file=%s/pid", m->folder);
    snprintf(log, sizeof log, "--log-file=%s/log", m->folder);
    snprintf(seed, sizeof seed, "--seed-file=%s/seed", m->folder);
    m->pid = fork();
    if (m->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        execl(program, "munged", "--foreground", "--force", "--num-threads=2", key,
              socket, pid, log, seed, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500 && access(m->socket, F_OK); i++)
        usleep(10000);
    return access(m->socket, F_OK);
}

static void munged_stop(struct munged *m)
{
    static const char *const files[] = {"key", "socket", "socket.lock",
                                        "pid", "log",    "seed"};
    char path[64];
    kill(m->pid, SIGTERM);
    waitpid(m->pid, NULL, 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", m->folder, files[i]);
        unlink(path);
    }
    unlink(m->key);
    rmdir(m->folder);
}

#endif
