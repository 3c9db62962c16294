/* config_test.c - settings from file, environment and flags, and their precedence. */
#include "config.h"
#include "listen.h"
#include "tap.h"
#include "topt_munge.h"

#include <string.h>
#include <unistd.h>

static struct topt_error err;

static int load(struct config *c, const char *a, const char *b)
{
    char *argv[] = {(char *)"toptd", (char *)a, (char *)b, NULL};
    topt_error_clear(&err);
    return config_load(c, a ? b ? 3 : 2 : 1, argv, &err);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static void test_sources(const char *path)
{
    struct config c;
    char flag[80];
    is_int(load(&c, NULL, NULL), 0, "nothing is needed");
    ok(c.workers == 2 && c.body_limit == 16 << 20 && *c.socket_path && *c.state_dir,
       "there are defaults: %s, %s", c.socket_path, c.state_dir);
    config_fini(&c);
    write_file(path,
               "# comment\n\n workers = 3 \nqueue=7\nbody-limit = 1MiB\nhw = lab\n");
    snprintf(flag, sizeof flag, "--config=%s", path);
    setenv("TOPT_QUEUE", "8", 1);
    is_int(load(&c, flag, "--hw=other"), 0, "file, environment and flags: %s", err.text);
    is_int(c.workers, 3, "the file's");
    is_int(c.queue, 8, "the environment's over it");
    ok(!strcmp(c.hw, "other"), "the flag's over both");
    is_int(c.body_limit, 1 << 20, "bytes");
    config_fini(&c);
    unsetenv("TOPT_QUEUE");
}

static void test_prices(void)
{
    static const char *const bad[] = {
        "--prices=lab", "--prices=lab:",         "--prices=lab:0",
        "--prices=:2",  "--prices=lab:2,lab:2,", "--currency=0123456789abcdef"};
    struct config c;
    is_int(load(&c, "--prices=lab:2.5, big:4", "--currency=EUR"), 0, "prices: %s",
           err.text);
    ok(config_price(&c, "lab") == 2.5 && config_price(&c, "big") == 4 &&
           config_price(&c, "other") == 0 && !strcmp(c.currency, "EUR"),
       "each is found by its profile");
    config_fini(&c);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(load(&c, bad[i], NULL) == -1, "refused: %s", err.text);
        config_fini(&c);
    }
}

static void test_refused(const char *path)
{
    struct config c;
    char flag[80];
    snprintf(flag, sizeof flag, "--config=%s", path);
    static const char *const lines[] = {"colour = red\n", "workers\n", "workers = many\n",
                                        "config = other\n", "workers = 0\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        write_file(path, lines[i]);
        ok(load(&c, flag, NULL) == -1, "refused: %s", err.text);
        config_fini(&c);
    }
    ok(load(&c, "--config=/nonexistent", NULL) == -1, "no such file: %s", err.text);
    config_fini(&c);
    ok(load(&c, "--frobnicate", NULL) == -1, "no such flag: %s", err.text);
    config_fini(&c);
    setenv("TOPT_WORKERS", "x", 1);
    ok(load(&c, NULL, NULL) == -1 && strstr(err.text, "environment"), "environment: %s",
       err.text);
    config_fini(&c);
    unsetenv("TOPT_WORKERS");
}

static void test_listen(void)
{
    int port = 0, again = 0;
    static const char *const bad[] = {"0.0.0.0:0",     "192.168.1.1:80",  "127.0.0.1",
                                      "[::]:0",        "127.0.0.1:99999", ":80",
                                      "example.org:80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(listen_tcp(bad[i], 0, &port, &err) == -1, "refused: %s", err.text);
    int fd = listen_tcp("127.0.0.1:0", 0, &port, &err);
    ok(fd >= 0 && port > 0, "a free port: %d", port);
    int open = listen_tcp("0.0.0.0:0", 1, &again, &err);
    ok(open >= 0 && again > 0, "any address, with MUNGE: %d", again);
    close(open);
    ok(listen_tcp("example.org:80", 1, &again, &err) == -1, "but no name: %s", err.text);
    char same[32];
    snprintf(same, sizeof same, "127.0.0.1:%d", port);
    ok(listen_tcp(same, 0, &again, &err) == -1, "taken: %s", err.text);
    close(fd);
}

static void test_unix(const char *path)
{
    unlink(path);
    int fd = listen_unix(path, &err);
    ok(fd >= 0, "a socket: %s", err.text);
    ok(listen_unix(path, &err) == -1, "a live one is left alone: %s", err.text);
    close(fd);
    topt_error_clear(&err);
    fd = listen_unix(path, &err);
    ok(fd >= 0, "a stale one is replaced %s", err.text);
    close(fd);
    unlink(path);
    write_file(path, "precious");
    ok(listen_unix(path, &err) == -1 && !access(path, F_OK), "a file is left alone: %s",
       err.text);
}

static void test_access(void)
{
    struct config c;
    static const char *const bad[] = {"--auth=kerberos", "--proxy-socket=/run/p",
                                      "--open-metrics=maybe"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ok(load(&c, bad[i], NULL) == -1 && err.code == TOPT_ERR_USAGE, "%s: %s", bad[i],
           err.text);
        config_fini(&c);
    }
    is_int(load(&c, "--proxy-socket=/run/p", "--proxy-uid=www-data"), 0, "a proxy");
    ok(!strcmp(c.proxy_header, "X-Remote-User") && !c.uses_munge && !c.metrics_are_open,
       "and what is usual");
    config_fini(&c);
    if (topt_munge_built())
        ok(!load(&c, "--auth=munge", "--open-metrics=yes") && c.uses_munge &&
               c.metrics_are_open,
           "MUNGE");
    else
        ok(load(&c, "--auth=munge", NULL) == -1, "no MUNGE: %s", err.text);
    config_fini(&c);
}

int main(void)
{
    char path[] = "/tmp/topt-config-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        skip_all("no temporary file");
    close(fd);
    test_sources(path);
    test_prices();
    test_refused(path);
    test_access();
    test_listen();
    test_unix(path);
    unlink(path);
    return done_testing();
}
