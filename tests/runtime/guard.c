/* guard.c - ranks that are stuck, fail, or do not know the secret: real processes that meet
 * over sockets on this machine. */
#include "topt_guard.h"
#include "proof.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };

struct outcome {
    int status[RANKS];
    char said[2048]; /* by all */
};

/* Written by whoever speaks, read by the parent: lines are short, so whole. */
static int said_fd;

static void describe(void *ctx, int64_t instr, char *buf, size_t size)
{
    (void)ctx;
    snprintf(buf, size, "instruction %lld", (long long)instr);
}

static void last_words(void *ctx, enum topt_err code, const char *line)
{
    char text[700];
    int n = snprintf(text, sizeof text, "[%d] %s\n", (int)code, line);
    (void)ctx;
    (void)!write(said_fd, text, (size_t)n);
}

enum story { ORDERLY, STUCK, FAILS, SLOW };

static void rank_main(enum story story, int rank)
{
    struct topt_error err = {0};
    struct topt_comm *c;
    struct topt_guard *g;
    struct topt_guard_options o = {
        .seconds = 1, .describe = describe, .last_words = last_words};
    char number[16];
    snprintf(number, sizeof number, "%d", rank);
    setenv("TOPT_RANK", number, 1);
    if (topt_comm_sockets(&c, &err)) {
        last_words(NULL, err.code, err.text);
        _exit(50);
    }
    if (topt_guard_start(c, &o, &g, &err) || !topt_guard_connected(g))
        _exit(51);
    topt_guard_look(g, 1);
    for (int i = 0; i < 4; i++) {
        double sum = 1;
        topt_run_at(topt_guard_place(g), 7, i, 0);
        if (story == STUCK && i == 2 && rank == 1)
            pause();
        if (story == FAILS && i == 2 && rank == 2) {
            topt_fail(&err, TOPT_ERR_NOMEM, "no memory for a test");
            topt_guard_fail(g, &err);
        }
        if (story == SLOW)
            usleep(300000); /* within the second */
        topt_run_at(topt_guard_place(g), 7, 10 + i, 1);
        if (c->ops->sum(c, &sum, 1, &err))
            topt_guard_fail(g, &err);
        if (sum < RANKS || sum > RANKS)
            _exit(52);
    }
    topt_guard_stop(g);
    topt_comm_destroy(c);
    _exit(0);
}

/* A port that nobody listens at. */
static void find_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char name[64];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&at, len) ||
        getsockname(fd, (struct sockaddr *)&at, &len))
        abort();
    close(fd);
    snprintf(name, sizeof name, "127.0.0.1:%d", ntohs(at.sin_port));
    setenv("TOPT_RENDEZVOUS", name, 1);
    snprintf(name, sizeof name, "%d", RANKS);
    setenv("TOPT_RANKS", name, 1);
}

static struct outcome tell(enum story story, const char *other_secret)
{
    struct outcome o = {.said = ""};
    pid_t pid[RANKS];
    int pipes[2];
    size_t len = 0;
    ssize_t n;
    if (pipe(pipes))
        abort();
    find_port();
    setenv("TOPT_SECRET", "a b c", 1);
    fflush(NULL);
    for (int r = 0; r < RANKS; r++) {
        pid[r] = fork();
        if (pid[r])
            continue;
        close(pipes[0]);
        said_fd = pipes[1];
        alarm(20);
        if (other_secret && r == 1)
            setenv("TOPT_SECRET", other_secret, 1);
        rank_main(story, r);
    }
    close(pipes[1]);
    while (len + 1 < sizeof o.said &&
           (n = read(pipes[0], o.said + len, sizeof o.said - 1 - len)) > 0) {
        len += (size_t)n;
        if (other_secret)
            break; /* the others would wait for it for a minute */
    }
    o.said[len] = '\0';
    for (int r = 0; r < RANKS; r++) {
        if (other_secret)
            kill(pid[r], SIGTERM);
        waitpid(pid[r], &o.status[r], 0);
    }
    close(pipes[0]);
    return o;
}

static int all_failed(const struct outcome *o)
{
    for (int r = 0; r < RANKS; r++)
        if (WIFEXITED(o->status[r]) && WEXITSTATUS(o->status[r]) == 0)
            return 0;
    return 1;
}

static void hash(void)
{
    /* the reference vectors of SipHash-2-4: key 00 01 .. 0f, messages 00 01 02 .. */
    static const uint64_t want[] = {0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu,
                                    0x0d6c8009d9a94f5au};
    struct topt_secret s = {{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
    unsigned char text[16];
    for (int i = 0; i < 16; i++)
        text[i] = (unsigned char)i;
    for (size_t i = 0; i < 3; i++)
        ok(topt_proof_hash(&s, text, i) == want[i], "the hash of %zu bytes", i);
    ok(topt_proof_hash(&s, text, 15) == 0xa129ca6149be45e5u, "the hash of 15 bytes");
}

int main(void)
{
    hash();
    struct outcome o = tell(ORDERLY, NULL);
    ok(!o.status[0] && !o.status[1] && !o.status[2] && !*o.said,
       "an orderly end says nothing: %s", o.said);
    o = tell(SLOW, NULL);
    ok(!o.status[0] && !o.status[1] && !o.status[2] && !*o.said,
       "nor do steps that take their time: %s", o.said);
    o = tell(STUCK, NULL);
    ok(all_failed(&o) && strstr(o.said, "rank 1 (process") &&
           strstr(o.said, "is stuck for 1 s, last heard of at instruction 2 in step 8; "
                          "ranks 0 and 2 wait at instruction 12 in step 8"),
       "a rank that is stuck: %s", o.said);
    ok(strchr(o.said, '\n') == strrchr(o.said, '\n'), "... is told of once");
    o = tell(FAILS, NULL);
    ok(all_failed(&o) && strstr(o.said, "rank 2: no memory for a test"),
       "a rank that fails says why: %s", o.said);
    ok(strchr(o.said, '\n') == strrchr(o.said, '\n'), "... once");
    o = tell(ORDERLY, "another");
    ok(strstr(o.said, "has another TOPT_SECRET") != NULL,
       "a rank with another secret is sent away: %s", o.said);
    return done_testing();
}
