/* warm.c - how fast a question that was asked before is answered, beside the least server there is.
 *
 *      bench_warm TOPTD MODEL [SECONDS [CONNECTIONS [SEARCHES]]]
 *
 * Starts TOPTD on a Unix socket in a folder of its own and a bare libmicrohttpd that
 * sends the same bytes; asks both in turn, three rounds each, over CONNECTIONS (64) that
 * are kept open, for JSON and for the text that the plugin reads; prints requests a
 * second, the median and the 99th percentile, and the ratio of the rates' medians. With
 * SEARCHES, so many users (which takes root) keep a long search going each meanwhile: as
 * many as toptd has workers, 2, keep all of them busy. Both servers share the machine
 * with this client, so only the ratio says much. */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "topt_pool.h"
#include "topt_text.h"

enum {
    MAX_CONNECTIONS = 1024,
    MAX_SEARCHES = 16,
    ROUNDS = 3,
    MAX_SAMPLES = 1 << 22,
    POLLERS = 4
};

struct client {
    int fd;
    size_t sent, got, want; /* want: bytes of the reply, 0 while its head is read */
    int64_t began_ns;
    char head[4096];
};

struct figures {
    double rate, p50_ms, p99_ms;
};

static int32_t *samples; /* nanoseconds / 16 */
static size_t nsamples;

static void die(const char *what)
{
    fprintf(stderr, "bench_warm: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", path);
    return a;
}

static int connect_to(const char *path)
{
    struct sockaddr_un a = address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
        die(path);
    return fd;
}

/* ---- one round --------------------------------------------------------------------------- */

static void start_request(struct client *c)
{
    c->sent = c->got = c->want = 0;
    c->began_ns = clock_ns();
}

static void send_more(struct client *c, const struct topt_text *request)
{
    while (c->sent < request->len) {
        ssize_t n = send(c->fd, request->s + c->sent, request->len - c->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            die("send");
        c->sent += (size_t)n;
    }
}

/* The head is whole: how long the reply is. */
static void read_head(struct client *c, size_t have)
{
    c->head[have < sizeof c->head - 1 ? have : sizeof c->head - 1] = '\0';
    const char *end = strstr(c->head, "\r\n\r\n");
    const char *length = strcasestr(c->head, "Content-Length:");
    if (strncmp(c->head, "HTTP/1.1 200", 12)) {
        fprintf(stderr, "bench_warm: %.200s\n", c->head);
        exit(1);
    }
    if (end && length)
        c->want = (size_t)(end - c->head) + 4 + strtoul(length + 15, NULL, 10);
}

/* Returns 1 where a reply is whole. */
static int receive(struct client *c)
{
    static char rest[1 << 16];
    for (;;) {
        char *to = c->got < sizeof c->head - 1 ? c->head + c->got : rest;
        size_t room = to == rest ? sizeof rest : sizeof c->head - 1 - c->got;
        ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            die("receive");
        c->got += (size_t)n;
        if (!c->want)
            read_head(c, c->got);
        if (c->want && c->got >= c->want)
            return 1;
    }
}

static int by_size(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static struct figures ask(const char *path, const struct topt_text *request,
                          int connections, double seconds)
{
    static struct client client[MAX_CONNECTIONS];
    int ep = epoll_create1(0);
    poll(NULL, 0,
         500); /* until the server has seen that those before are closed: a user has 64 */
    for (int i = 0; i < connections; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &client[i]};
        client[i].fd = connect_to(path);
        epoll_ctl(ep, EPOLL_CTL_ADD, client[i].fd, &e);
        start_request(&client[i]);
        send_more(&client[i], request);
    }
    nsamples = 0;
    int64_t began = clock_ns(), until = began + (int64_t)(seconds * 1e9);
    while (clock_ns() < until) {
        struct epoll_event e[64];
        int n = epoll_wait(ep, e, 64, 100);
        for (int i = 0; i < n; i++) {
            struct client *c = e[i].data.ptr;
            if (!receive(c))
                continue;
            if (nsamples < MAX_SAMPLES)
                samples[nsamples++] = (int32_t)((clock_ns() - c->began_ns) / 16);
            start_request(c);
            send_more(c, request);
        }
    }
    double took = (double)(clock_ns() - began) / 1e9;
    for (int i = 0; i < connections; i++)
        close(client[i].fd);
    close(ep);
    qsort(samples, nsamples, sizeof *samples, by_size);
    if (!nsamples) {
        fprintf(stderr, "bench_warm: %s never answered\n", path);
        exit(1);
    }
    return (struct figures){(double)nsamples / took, samples[nsamples / 2] * 16e-6,
                            samples[nsamples * 99 / 100] * 16e-6};
}

/* ---- the bare server --------------------------------------------------------------------- */

static struct MHD_Response *bare_response;

static enum MHD_Result bare_handle(void *cls, struct MHD_Connection *mc, const char *url,
                                   const char *method, const char *version,
                                   const char *data, size_t *size, void **context)
{
    static int seen;
    (void)cls, (void)url, (void)method, (void)version, (void)data;
    if (!*context) {
        *context = &seen;
        return MHD_YES;
    }
    if (*size) {
        *size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(mc, 200, bare_response);
}

static pid_t start_bare(const char *path, const char *body, size_t len)
{
    struct sockaddr_un a = address(path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), pollers = topt_pool_processors();
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 256))
        die(path);
    pid_t pid = fork();
    if (pid)
        return pid;
    pollers = pollers > POLLERS ? POLLERS : pollers;
    bare_response = MHD_create_response_from_buffer(len, (void *)(uintptr_t)body,
                                                    MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(bare_response, "Content-Type", "application/json");
    MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL,
                     bare_handle, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
                     MHD_OPTION_THREAD_POOL_SIZE, (unsigned)(pollers > 1 ? pollers : 0),
                     MHD_OPTION_END);
    for (;;)
        pause();
}

/* ---- the daemon -------------------------------------------------------------------------- */

static pid_t start_toptd(const char *toptd, const char *dir, const char *path)
{
    char state[200];
    snprintf(state, sizeof state, "%s/state", dir);
    pid_t pid = fork();
    if (!pid) {
        execl(toptd, "toptd", "--socket", path, "--state", state, "--hw",
              getenv("BENCH_HW") ? getenv("BENCH_HW") : "a100-80-dgx", "--log-level",
              "warning", (char *)NULL);
        _exit(127);
    }
    struct stat st;
    for (int i = 0; i < 500 && stat(path, &st); i++)
        poll(NULL, 0, 20);
    return pid;
}

/* The body of the reply to 'request', asked once; to be freed. */
static char *first_answer(const char *path, const struct topt_text *request,
                          size_t *ret_len)
{
    struct topt_text t = {0};
    int fd = connect_to(path);
    char chunk[1 << 16];
    const char *body = NULL;
    size_t want = 0;
    if (send(fd, request->s, request->len, 0) != (ssize_t)request->len)
        die("send");
    while (!body || t.len < want) {
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            die("the first answer");
        topt_text_put(&t, chunk, (size_t)n);
        const char *end = strstr(t.s, "\r\n\r\n"),
                   *length = strcasestr(t.s, "Content-Length:");
        if (end && length) {
            body = end + 4;
            want = (size_t)(body - t.s) + strtoul(length + 15, NULL, 10);
        }
    }
    close(fd);
    if (strncmp(t.s, "HTTP/1.1 200", 12)) {
        fprintf(stderr, "bench_warm: the question is refused: %.400s\n", t.s);
        exit(1);
    }
    *ret_len = want - (size_t)(body - t.s);
    char *copy = malloc(*ret_len);
    if (!copy)
        die("memory");
    memcpy(copy, body, *ret_len);
    topt_text_fini(&t);
    return copy;
}

/* ---- searches beside it ------------------------------------------------------------------ */

/* A user who asks for whole curves of all strategies, again and again. */
static pid_t start_searcher(const char *path, int number)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    if (setgid(64000u + (unsigned)number) || setuid(64000u + (unsigned)number))
        die("another user");
    for (int n = 0;; n++) {
        struct topt_text request = {0}, body = {0};
        char reply[512];
        topt_text_add(
            &body,
            "{\"model_type\":\"llama\",\"hidden_size\":%d,\"intermediate_size\":"
            "14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
            "\"vocab_size\":128256,\"max_position_embeddings\":8192}",
            4096 + 32 * ((n * 7 + number) % 64));
        topt_text_add(&request,
                      "POST /v1/plan?mode=profiling&framework=topt&space=full&batch=64&"
                      "seq=4096&wait_ms=60000 HTTP/1.1\r\nHost: localhost\r\n"
                      "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                      body.len, body.s);
        int fd = connect_to(path);
        if (send(fd, request.s, request.len, MSG_NOSIGNAL) < 0)
            die("send a search");
        while (recv(fd, reply, sizeof reply, 0) > 0)
            ;
        close(fd);
        topt_text_fini(&request);
        topt_text_fini(&body);
    }
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const struct figures *)a)->rate, y = ((const struct figures *)b)->rate;
    return (x > y) - (x < y);
}

static struct figures median(struct figures *f)
{
    qsort(f, ROUNDS, sizeof *f, by_rate);
    return f[ROUNDS / 2];
}

struct servers {
    const char *dir, *toptd_path, *model;
    size_t model_len;
    double seconds;
    int connections;
};

/* Measure answers in one form. */
static void measure(const struct servers *s, const char *form)
{
    struct topt_text request = {0};
    struct figures of[2][ROUNDS], mid[2];
    size_t len;
    char bare_path[104];
    snprintf(bare_path, sizeof bare_path, "%s/bare.sock", s->dir);
    topt_text_add(
        &request,
        "POST /v1/plan?mode=mini-parallelism&batch=64&seq=8192&wait_ms=60000 HTTP/1.1\r\n"
        "Host: localhost\r\nAccept: %s\r\n"
        "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
        form, s->model_len);
    topt_text_put(&request, s->model, s->model_len);
    char *answer = first_answer(s->toptd_path, &request, &len);
    pid_t bare = start_bare(bare_path, answer, len);
    const char *const path[2] = {s->toptd_path, bare_path};
    for (int i = 0; i < 2 * ROUNDS; i++)
        of[i % 2][i / 2] = ask(path[i % 2], &request, s->connections, s->seconds);
    printf("%s: a question of %zu bytes, an answer of %zu, %d connections\n", form,
           request.len, len, s->connections);
    for (int i = 0; i < 2; i++) {
        mid[i] = median(of[i]);
        printf("  %-20s %9.0f a second   p50 %.3f ms   p99 %.3f ms\n",
               i ? "bare libmicrohttpd" : "toptd, warm", mid[i].rate, mid[i].p50_ms,
               mid[i].p99_ms);
    }
    printf("  ratio %.2f\n", mid[0].rate / mid[1].rate);
    kill(bare, SIGKILL);
    waitpid(bare, NULL, 0);
    unlink(bare_path);
    topt_text_fini(&request);
    free(answer);
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    char dir[] = "/tmp/bench-warm-XXXXXX", toptd_path[104];
    struct servers s = {.dir = dir,
                        .toptd_path = toptd_path,
                        .seconds = argc > 3 ? atof(argv[3]) : 2,
                        .connections = argc > 4 ? atoi(argv[4]) : 64};
    char *model = argc > 2 ? topt_read_file(argv[2], 1 << 24, &s.model_len, &err) : NULL;
    samples = malloc(MAX_SAMPLES * sizeof *samples);
    if (!model || !samples || s.connections < 1 || s.connections > MAX_CONNECTIONS ||
        !mkdtemp(dir)) {
        fprintf(stderr,
                "usage: bench_warm TOPTD MODEL [SECONDS [CONNECTIONS [SEARCHES]]] %s\n",
                err.text);
        return 2;
    }
    s.model = model;
    snprintf(toptd_path, sizeof toptd_path, "%s/toptd.sock", dir);
    int searches = argc > 5 ? atoi(argv[5]) : 0;
    pid_t searcher[MAX_SEARCHES];
    pid_t toptd = start_toptd(argv[1], dir, toptd_path);
    searches = searches > MAX_SEARCHES ? MAX_SEARCHES : searches;
    chmod(dir, 0755);
    for (int i = 0; i < searches; i++)
        searcher[i] = start_searcher(toptd_path, i);
    if (searches) {
        poll(NULL, 0, 1000);
        printf("while %d users search\n", searches);
    }
    measure(&s, "application/json");
    measure(&s, "text/plain");
    for (int i = 0; i < searches; i++) {
        kill(searcher[i], SIGKILL);
        waitpid(searcher[i], NULL, 0);
    }
    kill(toptd, SIGTERM);
    waitpid(toptd, NULL, 0);
    free(model);
    free(samples);
    return 0;
}
