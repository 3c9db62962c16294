/* test_http.c - one question over a socket: replies in every cut, and servers that misbehave. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "topt_clock.h"
#include "munged.h"
#include "topt_credential.h"
#include "topt_munge.h"
#include "tap.h"

static struct munged m;

/* Parse all prefixes first: none may be taken for whole, and none for broken. */
static void whole(const char *bytes, size_t len, const char *body, const char *text)
{
    struct topt_http_reply r = {0};
    struct topt_error err = {0};
    size_t early = 0;
    for (size_t cut = 0; cut + 1 < len; cut++) {
        char *exact = malloc(cut + 1);
        if (!exact)
            abort();
        memcpy(exact, bytes, cut);
        if (topt_http_parse(exact, cut, 0, &r, &err) != 0)
            early++;
        free(exact);
        topt_http_fini(&r);
    }
    is_int(early, 0, "%s: cut anywhere, more is waited for", text);
    int rc = topt_http_parse(bytes, len, 1, &r, &err);
    ok(rc == 1 && r.status == 200 && r.len == strlen(body) && strcmp(r.body, body) == 0,
       "%s: '%s' %s", text, r.body ? r.body : "", err.text);
    topt_http_fini(&r);
}

static void broken(const char *bytes, int eof, const char *text)
{
    struct topt_http_reply r = {0};
    struct topt_error err = {0};
    ok(topt_http_parse(bytes, strlen(bytes), eof, &r, &err) == -1 && !r.body, "%s: %s",
       text, err.text);
}

#define OK200 "HTTP/1.1 200 OK\r\n"

static void test_parse(void)
{
    static const char sized[] = OK200 "content-length:  5 \r\nX: y\r\n\r\nA=1\nB";
    static const char chunked[] =
        OK200 "Transfer-Encoding: "
              "chunked\r\n\r\n4\r\nA=1\n\r\nb;x=y\r\nTOPT_WHY=no\r\n0\r\n\r\n";
    static const char closed[] = "HTTP/1.0 200 OK\nServer: x\n\nA=1\n";
    whole(sized, sizeof sized - 1, "A=1\nB", "length");
    struct topt_http_reply r = {0};
    ok(topt_http_parse(chunked, sizeof chunked - 1, 0, &r, NULL) == 1 &&
           strcmp(r.body, "A=1\nTOPT_WHY=no") == 0,
       "chunks are joined");
    topt_http_fini(&r);
    whole(closed, sizeof closed - 1, "A=1\n", "until the end");
    broken("SSH-2.0-OpenSSH\r\n\r\n", 0, "another protocol");
    broken("HTTP/1.1 2x0 OK\r\n\r\n", 0, "no status");
    broken("", 1, "nothing");
    broken("HTTP/1.1 200 OK\r\nContent-Le", 1, "cut in the head");
    broken(OK200 "Content-Length: 9\r\n\r\nabc", 1, "cut in the body");
    broken(OK200 "Content-Length: -1\r\n\r\nabc", 0, "a negative length");
    broken(OK200 "Content-Length: 99999999999999999999\r\n\r\n", 0, "a huge length");
    broken(OK200 "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, "no chunk size");
    broken(OK200 "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n", 0,
           "a huge chunk");
    broken(OK200 "Transfer-Encoding: chunked\r\n\r\n3\r\nab", 1, "a cut chunk");
}

/* Replies with bytes changed, in a buffer that ends where they end: a sanitizer watches. */
static void test_mutations(void)
{
    static const char *const seeds[] = {
        OK200 "Content-Length: 5\r\n\r\nA=1\nB",
        OK200 "Transfer-Encoding: "
              "chunked\r\n\r\n4\r\nA=1\n\r\nb;x=y\r\nTOPT_WHY=no\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\nServer: x\n\nA=1\n"};
    unsigned random = 7, outcomes[3] = {0};
    for (int round = 0; round < 30000; round++) {
        const char *seed = seeds[round % 3];
        size_t len = strlen(seed) - (random >> 20) % 8;
        char *bytes = malloc(len);
        struct topt_http_reply r = {0};
        if (!bytes)
            abort();
        memcpy(bytes, seed, len);
        for (int i = 0; i < 1 + round % 4; i++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % len] = "\n\r:; 0fF9-\0\xff"[(random >> 3) % 12];
        }
        outcomes[topt_http_parse(bytes, len, round % 2, &r, NULL) + 1]++;
        topt_http_fini(&r);
        free(bytes);
    }
    ok(outcomes[0] && outcomes[1] && outcomes[2],
       "mutations: %u broken, %u short, %u whole", outcomes[0], outcomes[1], outcomes[2]);
}

/* --- servers: a child that accepts once and plays a part ------------------------------- */

enum part {
    ANSWER,
    ANSWER_EARLY,
    TRICKLE,
    SILENT,
    NO_END,
    CLOSE,
    NEVER_ACCEPT,
    /* Of TCP alone. */
    OTHER_BODY,
    OTHER_STATUS,
    UNSIGNED,
    UNSIGNED_401,
    UNSIGNED_503,
    GARBLED,
    STRANGER
};

/* "Topt-Answer: ..." for the request whose head is 'head', and 'body'; "" on a Unix socket. */
static void sign(const char *head, enum part part, const char *body, char *line,
                 size_t size)
{
    const struct topt_answered a = {part == OTHER_STATUS ? 404 : 200,
                                    part == OTHER_BODY ? "A=2\n" : body, strlen(body)};
    char value[2000], *made = NULL;
    const char *at = strstr(head, "\r\nAuthorization: ");
    *line = '\0';
    if (!at || part == UNSIGNED || part == UNSIGNED_401 || part == UNSIGNED_503)
        return;
    at += strlen("\r\nAuthorization: ");
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
    if (part == STRANGER && (setgid(65534) || setuid(65534)))
        _exit(1);
    if (topt_credential_answer(m.socket, part == STRANGER ? 0 : geteuid(), value, &a,
                               &made, NULL))
        _exit(1);
    if (part == GARBLED)
        made[20] = made[20] == 'A' ? 'B' : 'A';
    snprintf(line, size, "Topt-Answer: %s\r\n", made);
}

static void play(enum part part, int fd)
{
    static const char trickle[] = OK200 "Content-Length: 4\r\n\r\nA=1\n";
    static char sink[1 << 20], answer[4000], line[3000];
    size_t got = 0,
           want = part == ANSWER || part > NEVER_ACCEPT ? 300000 : part == ANSWER_EARLY;
    while (got < want) {
        ssize_t n = read(fd, sink + got, sizeof sink - 1 - got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    ssize_t sent = 1;
    if (part == ANSWER || part == ANSWER_EARLY || part > NEVER_ACCEPT) {
        sign(sink, part, "A=1\n", line, sizeof line);
        int len = snprintf(answer, sizeof answer,
                           "HTTP/1.1 %s Said\r\nRetry-After: 3\r\n%sContent-Length: "
                           "4\r\n\r\nA=1\n",
                           part == UNSIGNED_401   ? "401"
                           : part == UNSIGNED_503 ? "503"
                                                  : "200",
                           line);
        sent = write(fd, answer, (size_t)len);
    }
    for (size_t i = 0; part == TRICKLE && i < 60 && sent == 1; i++) {
        sent = send(fd, trickle + i % 3, 1, MSG_NOSIGNAL);
        usleep(20000);
    }
    while (part == NO_END && sent > 0)
        sent = send(fd, OK200, 17, MSG_NOSIGNAL);
    if (part == SILENT)
        sleep(5);
}

static pid_t serve(enum part part, int listener)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    if (part == NEVER_ACCEPT)
        sleep(5);
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0)
        play(part, fd);
    _exit(0);
}

static int listen_tcp(char *url, size_t size)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, 4) ||
        getsockname(fd, (struct sockaddr *)&a, &len))
        abort();
    snprintf(url, size, "http://localhost:%d/", ntohs(a.sin_port));
    return fd;
}

static int listen_unix(char *url, size_t size)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "/tmp/topt-http.%ld", (long)getpid());
    unlink(a.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4))
        abort();
    snprintf(url, size, "unix:%s", a.sun_path);
    return fd;
}

/* Who may answer: this test. */
static struct topt_trust trust;

static int ask(enum part part, int tcp, struct topt_http_reply *r, struct topt_error *err)
{
    static char body[300000];
    char url[128];
    int listener = tcp ? listen_tcp(url, sizeof url) : listen_unix(url, sizeof url);
    pid_t pid = serve(part, listener);
    close(listener);
    const struct topt_http_request q = {.url = url,
                                        .target = "/v1/plan?x=y",
                                        .body = body,
                                        .len = sizeof body,
                                        .timeout_ms = 300,
                                        .trust = &trust};
    *r = (struct topt_http_reply){0};
    *err = (struct topt_error){0};
    int64_t start = topt_clock_ms();
    int rc = topt_http_post(&q, r, err);
    int64_t took = topt_clock_ms() - start;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!tcp)
        unlink(url + 5);
    ok(took < 1000, "%s, part %d: back after %lld ms", tcp ? "tcp" : "unix", part,
       (long long)took);
    return rc;
}

static void test_post(int tcp)
{
    struct topt_http_reply r;
    struct topt_error err;
    ok(ask(ANSWER, tcp, &r, &err) == 0 && strcmp(r.body, "A=1\n") == 0, "an answer %s",
       err.text);
    topt_http_fini(&r);
    int rc = ask(ANSWER_EARLY, tcp, &r, &err);
    ok((rc == 0 && strcmp(r.body, "A=1\n") == 0) || (tcp && err.code == TOPT_ERR_IO),
       "an answer before the question ended %s", err.text);
    topt_http_fini(&r);
    ok(ask(TRICKLE, tcp, &r, &err) == -1 && err.code == TOPT_ERR_CANCELED,
       "a byte now and then doesn't stretch the deadline: %s", err.text);
    ok(ask(SILENT, tcp, &r, &err) == -1 && err.code == TOPT_ERR_CANCELED, "silence: %s",
       err.text);
    ok(ask(NEVER_ACCEPT, tcp, &r, &err) == -1 && err.code == TOPT_ERR_CANCELED,
       "no accept: %s", err.text);
    ok(ask(NO_END, tcp, &r, &err) == -1, "too much: %s", err.text);
    ok(ask(CLOSE, tcp, &r, &err) == -1, "closed: %s", err.text);
}

/* Answers that are not the daemon's. */
static void test_signatures(void)
{
    static const struct {
        enum part part;
        const char *says;
    } bad[] = {{OTHER_BODY, "credential of another answer"},
               {OTHER_STATUS, "credential of another answer"},
               {UNSIGNED, "(200) is not signed"},
               {UNSIGNED_401, "same MUNGE key"},
               {GARBLED, "altered credential"},
               {STRANGER, "uid 65534"}};
    struct topt_http_reply r;
    struct topt_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (bad[i].part == STRANGER && geteuid())
            continue;
        ok(ask(bad[i].part, 1, &r, &err) == -1 && err.code == TOPT_ERR_IO && !r.body &&
               strstr(err.text, bad[i].says),
           "not believed: %s", err.text);
    }
    ok(ask(UNSIGNED_503, 1, &r, &err) == 0 && r.status == 503 && r.len == 0 && !*r.body &&
           r.retry_after_s == 3,
       "an unsigned 503 only says to come again");
    topt_http_fini(&r);
    trust.uid = geteuid() + 1;
    ok(ask(ANSWER, 1, &r, &err) == -1, "the daemon is another uid's: %s", err.text);
    trust.uid = geteuid();
    trust.socket = "/nonexistent/socket";
    ok(ask(ANSWER, 1, &r, &err) == -1 && strstr(err.text, "MUNGE"), "no munged: %s",
       err.text);
    trust.socket = m.socket;
}

static void test_urls(void)
{
    static const char *const bad[] = {
        "",
        "toptd",
        "unix:",
        "https://127.0.0.1:1",
        "http://",
        "http://toptd:80",
        "http://127.0.0.1:0",
        "http://127.0.0.1:70000",
        "http://127.0.0.1:x",
        "http://[::1",
        "http://127.0.0.1:123456789/",
        "unix:/"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    struct topt_http_reply r = {0};
    struct topt_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct topt_http_request q = {
            .url = bad[i], .target = "/", .body = "", .timeout_ms = 200, .trust = &trust};
        err = (struct topt_error){0};
        ok(topt_http_post(&q, &r, &err) == -1 && err.code == TOPT_ERR_INVAL,
           "'%.30s': %s", bad[i], err.text);
    }
    const struct topt_http_request q = {.url = "http://[::1]:1",
                                        .target = "/",
                                        .body = "",
                                        .timeout_ms = 200,
                                        .trust = &trust};
    ok(topt_http_post(&q, &r, &err) == -1 && err.code != TOPT_ERR_INVAL, "IPv6: %s",
       err.text);
}

int main(void)
{
    test_parse();
    test_mutations();
    trust = (struct topt_trust){geteuid(), -1, m.socket};
    test_post(0);
    int have_munged = topt_munge_built() && !munged_start(&m);
    if (have_munged) {
        test_post(1);
        test_signatures();
    } else {
        printf("# built without MUNGE, or munged is not installed: TCP is not tried\n");
    }
    test_urls();
    if (have_munged)
        munged_stop(&m);
    return done_testing();
}
