/* confine_test.c - what a worker can still do, and what it can't, each tried in a process of its own. */
#include "confine.h"
#include "sanitized.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int (*confining)(enum confined *ret, struct topt_error *err);

enum { NOT_THERE = 77 };

/* The result of 'act' in a confined process; NOT_THERE where none can be confined, -1 where it was
 * ended. */
static int confined(confining confine, int (*act)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        struct topt_error err;
        enum confined is;
        _exit(confine(&is, &err) ? 99 : is == CONFINED_NOT ? NOT_THERE : act());
    }
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                : -1;
}

/* ---- what fails: the error ------------------------------------------------------------------ */

static int error_of(int rc)
{
    return rc < 0 ? errno : 0;
}

static int open_file(void)
{
    return error_of(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int make_file(void)
{
    return error_of(open("/tmp/topt-confined", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int make_socket(void)
{
    return error_of(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int start_program(void)
{
    char name[] = "/bin/true", *const argv[] = {name, NULL};
    return error_of(execv(name, argv));
}

static int start_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return error_of(pid);
}

static int run_data(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? errno : 0;
}

static int signal_others(void)
{
    return error_of(kill(getppid(), 0));
}

/* ---- what a worker does: 0 ------------------------------------------------------------------ */

static void *in_thread(void *arg)
{
    const struct timespec moment = {.tv_nsec = 1000};
    char *p = malloc(8 << 20);
    nanosleep(&moment, NULL);
    if (p)
        p[4096] = 1;
    free(p);
    return p ? arg : NULL;
}

static int work(void)
{
    pthread_t thread[4];
    void *back;
    int pair[2] = {0, 1}, bad = 0;
    for (int i = 0; i < 4; i++)
        bad |= pthread_create(&thread[i], NULL, in_thread, pair);
    for (int i = 0; i < 4 && !bad; i++)
        bad |= pthread_join(thread[i], &back) || back != pair;
    char *large = malloc(64 << 20);
    large = large ? realloc(large, 128 << 20) : NULL;
    bad |= !large || write(STDERR_FILENO, "", 0) < 0;
    free(large);
    return bad;
}

/* --------------------------------------------------------------------------------------------- */

static void test_files(void)
{
    int rc = confined(confine_files, work);
    if (rc == NOT_THERE) {
        ok(1, "# skip: no Landlock here, or a sanitizer");
        return;
    }
    is_int(rc, 0, "without files it works");
    is_int(confined(confine_files, open_file), EACCES, "no file can be read");
    is_int(confined(confine_files, make_file), EACCES, "nor made");
    is_int(confined(confine_files, start_program), EACCES, "nor run");
}

static void test_calls(void)
{
    static const struct {
        int (*act)(void);
        const char *what;
    } rows[] = {{open_file, "files"},          {make_socket, "sockets"},
                {start_program, "programs"},   {start_process, "processes"},
                {run_data, "data as program"}, {signal_others, "signals to others"}};
    int rc = confined(confine_calls, work);
    if (rc == NOT_THERE) {
        ok(1, "# skip: no seccomp here, or a sanitizer");
        return;
    }
    is_int(rc, 0, "with few calls it works, with threads and memory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(confined(confine_calls, rows[i].act), EPERM, "no %s", rows[i].what);
}

int main(void)
{
    test_files();
    test_calls();
    return done_testing();
}
