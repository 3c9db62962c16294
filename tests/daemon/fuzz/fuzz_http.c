/* fuzz_http.c - any bytes on a connection: a whole toptd takes them, answers or closes,
 * and lives on.
 *
 * The first byte says in how many pieces the rest is sent, so that requests are cut
 * everywhere.  TOPT_WORKER is the worker program (the tests' own, whose planner does as
 * the model says); its processes are not what is looked at.  A connection that is neither
 * answered nor closed in a while is a finding. */
#include "../whole.h"

#include <poll.h>
#include <stdint.h>
#include <time.h>

enum { TICK_MS = 10, SILENT_MS = 30, HANG_MS = 10000 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct whole daemon_;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct topt_error err = {0};
    const char *worker = getenv("TOPT_WORKER");
    (void)argc, (void)argv;
    json_object_seed(1);
    if (!worker || whole_start(&daemon_, "/dev/shm", worker, "fake-hw", &err) < 0) {
        fprintf(stderr, "fuzz_http: %s\n", worker ? err.text : "TOPT_WORKER is not set");
        exit(1);
    }
    return 0;
}

/* What comes, until the other end closes; or, but now and then, until it has been silent
 * for a while. */
static void drain(int fd, int is_patient)
{
    char block[16384];
    int silent = 0;
    for (int waited = 0; waited < HANG_MS; waited += TICK_MS, silent += TICK_MS) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        for (; poll(&p, 1, TICK_MS) > 0; silent = 0)
            if (read(fd, block, sizeof block) <= 0)
                return;
        if (!is_patient && silent >= SILENT_MS)
            return;
        whole_tick(&daemon_);
    }
    fprintf(stderr, "fuzz_http: not answered and not closed\n");
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned calls;
    if (size < 2)
        return 0;
    size_t pieces = data[0] % 8 + 1u, piece = (size - 1) / pieces + 1;
    int fd = whole_connect(&daemon_);
    if (fd < 0)
        abort();
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        if (send(fd, data + at, n, MSG_NOSIGNAL) < 0)
            break;
        if (pieces > 4)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    shutdown(fd, SHUT_WR);
    drain(fd, ++calls % 64 == 0);
    close(fd);
    if (!(calls % 256)) {
        whole_tick(&daemon_);
        store_keep(daemon_.server.store, (int64_t)time(NULL));
    }
    return 0;
}
