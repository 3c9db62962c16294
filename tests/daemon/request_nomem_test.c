/* request_nomem_test.c WORKER [all] - memory that does not suffice, at each allocation of
 * toptd while it answers a request: it says so (503), answers all the same, or closes the
 * connection; never a 500 or a wrong answer, and the next one is answered.
 *
 * All of toptd runs in this program, on a Unix socket, but for its workers.  Of requests
 * that take long every few allocations fail unless all are asked for. */
#include "nomem.h"
#include "tap.h"
#include "whole.h"

#include <poll.h>
#include <time.h>

enum { GONE_MS = 8000, MOST = 3000 };

static struct whole w;
static char plan_id[80], model_id[80];

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* One request; its status, 0 where the connection was closed without one, -1 where
 * neither came.  The reply, as much as fits, is in 'reply'. */
static int ask(const char *method, const char *target, const char *more, const char *body,
               char *reply, size_t size)
{
    char request[1024];
    size_t got = 0;
    int n = snprintf(request, sizeof request,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, target, more, strlen(body), body);
    int fd = whole_connect(&w), status = -1;
    int64_t until = now_ms() + GONE_MS;
    if (fd < 0 || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n) {
        close(fd);
        return fd < 0 ? -1 : 0;
    }
    while (now_ms() < until) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 20) <= 0) {
            whole_tick(&w);
            continue;
        }
        ssize_t k = recv(fd, reply + got, size - 1 - got, 0);
        if (k <= 0) {
            status = 0;
            break;
        }
        got += (size_t)k;
        if (got == size - 1) /* the rest matters not */
            got--;
    }
    reply[got] = '\0';
    close(fd);
    if (!status && !strncmp(reply, "HTTP/1.1 ", 9))
        status = atoi(reply + 9);
    return status;
}

static int member(const char *reply, const char *name, char *ret, size_t size)
{
    char key[40];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(reply, key);
    snprintf(ret, size, "%.*s", at ? (int)strcspn(at + strlen(key), "\"") : 0,
             at ? at + strlen(key) : "");
    return at ? 0 : -1;
}

/* What is asked; "%d" in target and body is another number each time, "%p" and "%m" the
 * plan's and the model's id. */
struct question {
    const char *method, *target, *more, *body;
    int status, stride;
};

static void fill(const char *format, int number, char *ret, size_t size)
{
    size_t n = 0;
    for (const char *s = format; *s && n + 1 < size; s++) {
        if (*s == '%' && strchr("dpm", s[1])) {
            s++;
            n += (size_t)(*s == 'd'   ? snprintf(ret + n, size - n, "%d", number)
                          : *s == 'p' ? snprintf(ret + n, size - n, "%s", plan_id)
                                      : snprintf(ret + n, size - n, "%s", model_id));
        } else {
            ret[n++] = *s;
        }
    }
    ret[n < size ? n : size - 1] = '\0';
}

static int is_fine(int status, int want)
{
    return status == want || status == 0 || status == 503 || status == 202 ||
           status == 507;
}

static void each(const struct question *q, int all)
{
    static int number = 1000;
    char target[300], body[300];
    static char reply[65536];
    int n = 0, wrong = 0, down = 0, status, stride = all ? 1 : q->stride;
    long seen[3] = {0}; /* answered, said so, closed */
    do {
        number++;
        fill(q->target, number, target, sizeof target);
        fill(q->body, number, body, sizeof body);
        atomic_store(&nomem_failed, 0);
        atomic_store(&nomem_left, n);
        n += stride;
        status = ask(q->method, target, q->more, body, reply, sizeof reply);
        atomic_store(&nomem_left, -1);
        seen[status == q->status ? 0 : status > 0 ? 1 : 2]++;
        if (!is_fine(status, q->status)) {
            printf("#   %s %s, allocation %d: %d\n#   %.300s\n", q->method, target,
                   n - stride, status,
                   strstr(reply, "\r\n\r\n") ? strstr(reply, "\r\n\r\n") + 4 : "");
            wrong++;
        }
        down += ask("GET", "/readyz", "", "", reply, sizeof reply) != 200;
    } while (atomic_load(&nomem_failed) && n < MOST);
    ok(!wrong && !down && status == q->status && n > stride,
       "%s %s: %d allocations; %ld answered, %ld said so, %ld closed, %d wrong, %d down",
       q->method, q->target, n - stride, seen[0], seen[1], seen[2], wrong, down);
}

static const char json[] = "Content-Type: application/json\r\n",
                  text[] = "Accept: text/plain\r\n",
                  packed[] = "Accept-Encoding: gzip\r\n", csv[] = "Accept: text/csv\r\n";
static const struct question questions[] = {
    {"GET", "/livez", "", "", 200, 1},
    {"GET", "/openapi.json", packed, "", 200, 1},
    {"GET", "/metrics", "", "", 200, 1},
    {"GET", "/v1/models", "", "", 200, 1},
    {"GET", "/v1/models/%m", "", "", 200, 2},
    {"GET", "/v1/plans", "", "", 200, 1},
    {"GET", "/v1/plans/%p", "", "", 200, 1},
    {"GET", "/v1/hardware", "", "", 200, 1},
    {"GET", "/v1/tasks", "", "", 200, 1},
    {"POST", "/v1/plan?mode=mini-parallelism", text, "{\"fake_bytes\":5000}", 200, 2},
    {"POST", "/v1/plan?mode=mini-parallelism&name=n%d", "", "{\"fake_bytes\":%d}", 200,
     7},
    {"POST", "/v1/plan", json,
     "{\"mode\":\"mini-parallelism\",\"model\":{\"fake_bytes\":%d}}", 200, 7},
    {"POST", "/v1/plan?mode=mini-parallelism&memory_bytes=9", "", "{\"fake_bytes\":%d}",
     422, 7},
    {"POST", "/v1/plan?mode=mini-parallelism&fields=gpus,plan&batch=%d", "",
     "{\"fake_bytes\":5000}", 200, 7},
    {"GET", "/v1/models/%m/curve?batch=%d", csv, "", 200, 7},
    {"POST", "/v1/models?name=m%d", "", "{\"fake_bytes\":%d}", 201, 3},
    {"PUT", "/v1/hardware/lab", "",
     "{\"format\":\"topt-hw/1\",\"name\":\"lab\",\"speed\":%d}", 200, 3},
    {"POST", "/v1/observations", json, "{\"job\":%d,\"plan_id\":\"%p\",\"step_ns\":1000}",
     201, 1},
    {"GET", "/v1/observations", "", "", 200, 7},
    {"GET", "/v1/corrections", "", "", 200, 1},
    {"PUT", "/v1/plans/%p/groups/0", "", "", 204, 1},
    {"DELETE", "/v1/plans/p-0", "", "", 404, 1},
    {"GET", "/nosuch", "", "", 404, 1}};

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    static char reply[65536];
    int all = argc > 2 && !strcmp(argv[2], "all");
    nomem_hook();
    json_object_seed(1);
    if (argc < 2 || whole_start(&w, "/tmp", argv[1], "fake-hw", &err) < 0) {
        ok(0, "toptd starts: %s", err.text);
        return done_testing();
    }
    int status = ask("POST", "/v1/plan?mode=mini-parallelism", "",
                     "{\"fake_bytes\":5000}", reply, sizeof reply);
    ok(status == 200 && !member(reply, "plan_id", plan_id, sizeof plan_id) &&
           !member(reply, "model_id", model_id, sizeof model_id),
       "a plan, with all the memory there is");
    ok(ask("POST", "/v1/hardware", "", "{\"format\":\"topt-hw/1\",\"name\":\"lab\"}",
           reply, sizeof reply) == 201,
       "and a profile");
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        each(&questions[i], all);
    char target[100]; /* the list has the latest hundred */
    snprintf(target, sizeof target, "/v1/plans/%s", plan_id);
    ok(ask("GET", target, "", "", reply, sizeof reply) == 200 && strstr(reply, plan_id),
       "nothing that was accepted is lost");
    is_int(whole_stop(&w), 0, "it ends well");
    return done_testing();
}
