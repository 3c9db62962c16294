/* journal.c - see journal.h. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "topt_json.h"

enum { NEWEST = 8 << 20 };

struct journal {
    int fd; /* -1: none */
    struct rightsize_entry *last;
    size_t n, room;
};

static const struct {
    const char *key;
    size_t offset;
} shape_keys[] = {{"nodes", offsetof(struct rightsize_shape, nodes)},
                  {"gpus_per_node", offsetof(struct rightsize_shape, gpus_per_node)},
                  {"tasks", offsetof(struct rightsize_shape, tasks)},
                  {"tasks_per_node", offsetof(struct rightsize_shape, tasks_per_node)},
                  {"cpus", offsetof(struct rightsize_shape, cpus)},
                  {"cpus_per_node", offsetof(struct rightsize_shape, cpus_per_node)},
                  {"time_limit_s", offsetof(struct rightsize_shape, time_s)}};
enum { SHAPE_KEYS = sizeof shape_keys / sizeof *shape_keys };

static json_t *shape_json(const struct rightsize_shape *s)
{
    json_t *o = json_object();
    for (int i = 0; o && i < SHAPE_KEYS; i++) {
        int64_t n;
        memcpy(&n, (const char *)s + shape_keys[i].offset, sizeof n);
        json_object_set_new(o, shape_keys[i].key, json_integer(n));
    }
    return o;
}

static int shape_read(const json_t *o, struct rightsize_shape *ret)
{
    for (int i = 0; i < SHAPE_KEYS; i++) {
        const json_t *v = json_object_get(o, shape_keys[i].key);
        int64_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 0)
            return -1;
        memcpy((char *)ret + shape_keys[i].offset, &n, sizeof n);
    }
    return 0;
}

static void text_at(const json_t *o, const char *key, char *ret, size_t size)
{
    snprintf(ret, size, "%s", topt_json_words_at(o, key));
}

static int entry_read(const char *line, size_t len, struct rightsize_entry *ret)
{
    struct tm tm = {0};
    *ret = (struct rightsize_entry){.result = RIGHTSIZE_DRY};
    json_t *o = topt_json_parse(line, len, "an entry", NULL);
    int rc = !o || shape_read(json_object_get(o, "from"), &ret->from) ||
             shape_read(json_object_get(o, "to"), &ret->to) ||
             !strptime(topt_json_words_at(o, "time"), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (!rc) {
        ret->at_s = timegm(&tm);
        ret->job = topt_json_whole_at(o, "job");
        ret->is_undo = json_is_true(json_object_get(o, "undo"));
        text_at(o, "submitted", ret->submitted, sizeof ret->submitted);
        text_at(o, "user", ret->user, sizeof ret->user);
        text_at(o, "reason", ret->reason, sizeof ret->reason);
        if (!strcmp(topt_json_words_at(o, "result"),
                    rightsize_result_name(RIGHTSIZE_DONE)))
            ret->result = RIGHTSIZE_DONE;
    }
    json_decref(o);
    return rc;
}

/* It is the newest of its job. */
static int keep(struct journal *j, const struct rightsize_entry *e)
{
    size_t i = 0;
    while (i < j->n && j->last[i].job != e->job)
        i++;
    if (i == j->room) {
        size_t room = j->room ? 2 * j->room : 64;
        struct rightsize_entry *more = realloc(j->last, room * sizeof *more);
        if (!more)
            return -1;
        j->last = more;
        j->room = room;
    }
    j->last[i] = *e;
    j->n += i == j->n;
    return 0;
}

static int read_all(struct journal *j, struct topt_error *err)
{
    struct stat st;
    if (fstat(j->fd, &st))
        return topt_fail(err, TOPT_ERR_IO, "%s", strerror(errno));
    off_t from = st.st_size > NEWEST ? st.st_size - NEWEST : 0;
    size_t len = (size_t)(st.st_size - from), got = 0;
    char *text = malloc(len + 1);
    if (!text)
        return topt_nomem(err, NULL);
    while (got < len) {
        ssize_t n = pread(j->fd, text + got, len - got, from + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    text[got] = '\0';
    int rc = 0;
    const char *p = text;
    if (from)
        p += strcspn(p, "\n");
    for (; !rc && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        struct rightsize_entry e;
        if (!entry_read(p, strcspn(p, "\n"), &e) && e.result == RIGHTSIZE_DONE)
            rc = keep(j, &e) ? topt_nomem(err, NULL) : 0;
    }
    free(text);
    return rc;
}

int journal_open(const char *path, int writes, struct journal **ret,
                 struct topt_error *err)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j)
        return topt_nomem(err, NULL);
    j->fd = -1;
    if (path)
        j->fd = open(
            path, writes ? O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
            0640);
    int rc = 0;
    if (path && j->fd < 0 && (writes || errno != ENOENT))
        rc = topt_fail(err, TOPT_ERR_IO, "%s", strerror(errno));
    if (!rc && writes && j->fd >= 0 && flock(j->fd, LOCK_EX | LOCK_NB))
        rc = topt_fail(err, TOPT_ERR_BUSY, "another run has it");
    if (!rc && j->fd >= 0)
        rc = read_all(j, err);
    if (rc) {
        journal_close(j);
        return topt_wrap(err, "the log '%s'", path ? path : "");
    }
    *ret = j;
    return 0;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    free(j->last);
    free(j);
}

static json_t *entry_json(const struct rightsize_entry *e)
{
    char at[32];
    struct tm tm;
    time_t t = (time_t)e->at_s;
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    json_t *o =
        json_pack("{s:s, s:I, s:s, s:s, s:o, s:o, s:s, s:s}", "time", at, "job",
                  (json_int_t)e->job, "submitted", e->submitted, "user", e->user, "from",
                  shape_json(&e->from), "to", shape_json(&e->to), "reason", e->reason,
                  "result", rightsize_result_name(e->result));
    if (o && *e->detail)
        json_object_set_new(o, "detail", json_string(e->detail));
    if (o && e->is_undo)
        json_object_set_new(o, "undo", json_true());
    return o;
}

int journal_add(struct journal *j, const struct rightsize_entry *e,
                struct topt_error *err)
{
    if (j->fd < 0)
        return 0;
    json_t *o = entry_json(e);
    char *text = o ? topt_json_text(o, 0) : NULL;
    struct topt_text line = {0};
    json_decref(o);
    if (text)
        topt_text_add(&line, "%s\n", text);
    free(text);
    int rc = line.oom || !line.s ? topt_nomem(err, "the log") : 0;
    off_t before = lseek(j->fd, 0, SEEK_END);
    ssize_t n = rc ? 0 : write(j->fd, line.s, line.len);
    if (!rc && n != (ssize_t)line.len) {
        rc = topt_fail(err, TOPT_ERR_IO, "write the log: %s",
                       n < 0 ? strerror(errno) : "no room");
        if (n > 0 && ftruncate(j->fd, before)) /* nobody else writes to it */
            topt_wrap(err, "half a line is in the log");
    } else if (!rc && fsync(j->fd) && errno != EINVAL) { /* a device has none */
        rc = topt_fail(err, TOPT_ERR_IO, "write the log: %s", strerror(errno));
    }
    topt_text_fini(&line);
    if (!rc && e->result == RIGHTSIZE_DONE && keep(j, e))
        rc = topt_nomem(err, "the log");
    return rc;
}

const struct rightsize_entry *journal_last(const struct journal *j, size_t *ret_n)
{
    *ret_n = j->n;
    return j->last;
}
