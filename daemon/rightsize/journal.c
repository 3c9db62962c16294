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

#include "topt_array.h"
#include "topt_json.h"

enum { NEWEST = 8 << 20, MOST = 16 << 20 };

struct journal {
    int fd; /* -1: none */
    int old; /* of the file that was put aside, whose lock others may still meet; -1: none */
    struct entries {
        struct rightsize_entry *e; /* of each job one */
        size_t n, room;
    } last, begun; /* done; and begun, and not known to be through */
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
    if (o && *s->partition)
        json_object_set_new(o, "partition", json_string(s->partition));
    return o;
}

static void text_at(const json_t *o, const char *key, char *ret, size_t size)
{
    snprintf(ret, size, "%s", topt_json_words_at(o, key));
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
    text_at(o, "partition", ret->partition, sizeof ret->partition);
    return 0;
}

static enum rightsize_result result_of(const char *name)
{
    for (int r = 0; r < RIGHTSIZE_RESULTS; r++)
        if (!strcmp(name, rightsize_result_name((enum rightsize_result)r)))
            return (enum rightsize_result)r;
    return RIGHTSIZE_DRY;
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
        ret->is_stop = json_is_true(json_object_get(o, "stop"));
        ret->priority = topt_json_whole_at(o, "priority");
        ret->restarts = topt_json_whole_at(o, "restarts");
        text_at(o, "submitted", ret->submitted, sizeof ret->submitted);
        text_at(o, "user", ret->user, sizeof ret->user);
        text_at(o, "reason", ret->reason, sizeof ret->reason);
        ret->result = result_of(topt_json_words_at(o, "result"));
    }
    json_decref(o);
    return rc;
}

static size_t find(const struct entries *l, int64_t job)
{
    size_t i = 0;
    while (i < l->n && l->e[i].job != job)
        i++;
    return i;
}

/* It is the newest of its job. */
static int put(struct entries *l, const struct rightsize_entry *e)
{
    size_t i = find(l, e->job);
    if (TOPT_ROOM(l->e, i, l->room, 64))
        return -1;
    l->e[i] = *e;
    l->n += i == l->n;
    return 0;
}

static int keep(struct journal *j, const struct rightsize_entry *e)
{
    size_t i = find(&j->begun, e->job);
    if (e->result == RIGHTSIZE_BEGUN)
        return put(&j->begun, e);
    if (e->result != RIGHTSIZE_DRY && i < j->begun.n)
        j->begun.e[i] = j->begun.e[--j->begun.n];
    return e->result == RIGHTSIZE_DONE ? put(&j->last, e) : 0;
}

/* The newest lines, whole, as one text. */
static char *read_newest(int fd, size_t *ret_size, struct topt_error *err)
{
    struct stat st;
    if (fstat(fd, &st)) {
        topt_fail(err, TOPT_ERR_IO, "%s", strerror(errno));
        return NULL;
    }
    *ret_size = (size_t)st.st_size;
    off_t from = st.st_size > NEWEST ? st.st_size - NEWEST : 0;
    size_t len = (size_t)(st.st_size - from), got = 0;
    char *text = malloc(len + 1);
    if (!text) {
        topt_nomem(err, NULL);
        return NULL;
    }
    while (got < len) {
        ssize_t n = pread(fd, text + got, len - got, from + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    text[got] = '\0';
    if (from) {
        const char *whole = text + strcspn(text, "\n");
        whole += *whole == '\n';
        memmove(text, whole, strlen(whole) + 1);
    }
    return text;
}

static int read_lines(struct journal *j, const char *p, struct topt_error *err)
{
    const char *end = p + strlen(p);
    int rc = 0;
    while (!rc && p < end) {
        struct rightsize_entry e;
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        if (!entry_read(p, len, &e))
            rc = keep(j, &e) ? topt_nomem(err, NULL) : 0;
        p += len + (stop != NULL);
    }
    return rc;
}

/* Put the file aside and go on in a new one that begins with 'text'.  Both are locked, so that a
 * run that has opened either finds us. */
static int put_aside(struct journal *j, const char *path, const char *text,
                     struct topt_error *err)
{
    char fresh[4096], old[4096];
    size_t len = strlen(text);
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh ||
        snprintf(old, sizeof old, "%s.1", path) >= (int)sizeof old)
        return topt_fail(err, TOPT_ERR_LIMIT, "the path is too long");
    int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0640);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || write(fd, text, len) != (ssize_t)len ||
        fsync(fd) || (unlink(old) && errno != ENOENT) || link(path, old) ||
        rename(fresh, path)) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        unlink(fresh);
        return topt_fail(err, TOPT_ERR_IO, "begin a new file: %s", strerror(saved));
    }
    j->old = j->fd;
    j->fd = fd;
    return 0;
}

static int read_all(struct journal *j, const char *path, int writes,
                    struct topt_error *err)
{
    size_t size;
    char *text = read_newest(j->fd, &size, err);
    int rc = text ? read_lines(j, text, err) : -1;
    if (!rc && writes && size > MOST)
        rc = put_aside(j, path, text, err);
    /* A run that was killed may have left half a line, to which the next one must not be
     * joined: neither could be read. */
    size_t len = text ? strlen(text) : 0;
    if (!rc && writes && len && text[len - 1] != '\n' && write(j->fd, "\n", 1) != 1)
        rc = topt_fail(err, TOPT_ERR_IO, "%s", strerror(errno));
    free(text);
    return rc;
}

/* Its folder, whose parent is there: on the first run nobody has made it. */
static void make_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (slash && slash > path && slash - path < (int)sizeof folder) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        (void)!mkdir(folder, 0750); /* what is wrong, opening says */
    }
}

int journal_open(const char *path, int writes, struct journal **ret,
                 struct topt_error *err)
{
    struct journal *j = calloc(1, sizeof *j);
    if (!j)
        return topt_nomem(err, NULL);
    j->fd = j->old = -1;
    if (path && writes)
        make_folder(path);
    if (path)
        j->fd = open(
            path, writes ? O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
            0640);
    int rc = 0;
    /* A reader without permission for root's log works without the log. */
    if (path && j->fd < 0 && (writes || (errno != ENOENT && errno != EACCES)))
        rc = topt_fail(err, TOPT_ERR_IO, "%s", strerror(errno));
    if (!rc && writes && j->fd >= 0 && flock(j->fd, LOCK_EX | LOCK_NB))
        rc = topt_fail(err, TOPT_ERR_BUSY, "another run has it");
    if (!rc && j->fd >= 0)
        rc = read_all(j, path, writes, err);
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
    if (j->old >= 0)
        close(j->old);
    free(j->last.e);
    free(j->begun.e);
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
    if (o && e->is_stop) {
        json_object_set_new(o, "stop", json_true());
        json_object_set_new(o, "priority", json_integer(e->priority));
        json_object_set_new(o, "restarts", json_integer(e->restarts));
    }
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
    if (!rc && keep(j, e))
        rc = topt_nomem(err, "the log");
    return rc;
}

const struct rightsize_entry *journal_last(const struct journal *j, size_t *ret_n)
{
    *ret_n = j->last.n;
    return j->last.e;
}

const struct rightsize_entry *journal_begun(const struct journal *j, size_t *ret_n)
{
    *ret_n = j->begun.n;
    return j->begun.e;
}
