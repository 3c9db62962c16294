/* admit.c - the first words on a connection between ranks. */
#include "admit.h"
#include "topt_clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

static int pass(int fd, void *data, size_t bytes, int out, int64_t until)
{
    char *p = data;
    while (bytes) {
        struct pollfd w = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        int64_t left = until - topt_clock_ms();
        if (left <= 0 || poll(&w, 1, (int)left) <= 0)
            return -1;
        ssize_t n = out ? send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                        : recv(fd, p, bytes, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return -1;
        if (n > 0) {
            p += n;
            bytes -= (size_t)n;
        }
    }
    return 0;
}

/* Rank 0's side: draw a number, hear a rank with its proof, give one back. */
int topt_admit(int fd, const struct topt_secret *s, int size, int64_t until)
{
    struct topt_error err;
    uint64_t drawn;
    struct {
        uint64_t drawn, proof;
        int64_t rank;
    } answer;
    if (topt_proof_draw(&drawn, sizeof drawn, &err) ||
        pass(fd, &drawn, sizeof drawn, 1, until) ||
        pass(fd, &answer, sizeof answer, 0, until) || answer.rank < 1 ||
        answer.rank >= size || answer.proof != topt_proof(s, drawn, answer.rank))
        return -1;
    uint64_t back = topt_proof(s, answer.drawn, 0);
    return pass(fd, &back, sizeof back, 1, until) ? -1 : (int)answer.rank;
}

int topt_present(int fd, const struct topt_secret *s, int rank, int64_t until)
{
    struct topt_error err;
    uint64_t drawn, back;
    struct {
        uint64_t drawn, proof;
        int64_t rank;
    } answer = {.rank = rank};
    if (topt_proof_draw(&answer.drawn, sizeof answer.drawn, &err) ||
        pass(fd, &drawn, sizeof drawn, 0, until))
        return -1;
    answer.proof = topt_proof(s, drawn, rank);
    return pass(fd, &answer, sizeof answer, 1, until) ||
                   pass(fd, &back, sizeof back, 0, until) ||
                   back != topt_proof(s, answer.drawn, 0)
               ? -1
               : 0;
}
