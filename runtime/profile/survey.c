/* survey.c - see survey.h. */
#include "survey.h"
#include "topt_clock.h"
#include "topt_json.h"
#include "topt_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };
static const char head[] = "{\"format\":\"topt-profile-part/1\"}";

struct topt_survey {
    char *path;
    FILE *file; /* of the rank that writes; NULL where nothing is kept */
    char *text; /* of the file, until it is shared */
    size_t len;
    json_t *known; /* by what, then by size */
    int64_t kept, done, total;
    int64_t began_ns, shown_ns, measured; /* in this run */
    int writes, quiet;
};

static void remember(struct topt_survey *s, const char *what, int64_t at, double value)
{
    char key[32];
    json_t *sizes = json_object_get(s->known, what);
    snprintf(key, sizeof key, "%lld", (long long)at);
    if (!sizes) {
        sizes = json_object();
        json_object_set_new(s->known, what, sizes);
    }
    json_object_set_new(sizes, key, json_real(value));
}

/* A line that was cut off says nothing. */
static void read_line(struct topt_survey *s, const char *line, size_t len)
{
    json_t *doc = json_loadb(line, len, 0, NULL);
    const char *what = json_string_value(json_object_get(doc, "of"));
    if (what && json_is_number(json_object_get(doc, "value"))) {
        remember(s, what, topt_json_whole_at(doc, "at"),
                 topt_json_number_at(doc, "value"));
        s->kept++;
    }
    json_decref(doc);
}

static void read_lines(struct topt_survey *s, const char *text, size_t len)
{
    json_object_clear(s->known);
    s->kept = 0;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) : len - at;
        read_line(s, text + at, n);
        at += n + 1;
    }
}

static int read_file(struct topt_survey *s, struct topt_error *err)
{
    if (access(s->path, F_OK))
        return 0;
    s->text = topt_read_file(s->path, MOST_BYTES, &s->len, err);
    if (!s->text)
        return -1;
    if (s->len && strncmp(s->text, head, strlen(head)))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "'%.200s' is not what `topt profile` keeps of a profile: remove it, "
            "or write the profile elsewhere",
            s->path);
    read_lines(s, s->text, s->len);
    return 0;
}

/* A line that was cut off is ended, so that the next one is whole. */
static int open_file(struct topt_survey *s, struct topt_error *err)
{
    s->file = fopen(s->path, "ae");
    if (!s->file)
        return topt_fail(err, TOPT_ERR_IO, "can't write '%.200s': %s", s->path,
                         strerror(errno));
    if (!s->len)
        fprintf(s->file, "%s\n", head);
    else if (s->text[s->len - 1] != '\n')
        fputc('\n', s->file);
    return fflush(s->file) ? topt_fail(err, TOPT_ERR_IO, "write '%.200s': %s", s->path,
                                       strerror(errno))
                           : 0;
}

int topt_survey_open(const char *path, int writes, int quiet, struct topt_survey **ret,
                     struct topt_error *err)
{
    struct topt_survey *s = calloc(1, sizeof *s);
    if (!s)
        return topt_nomem(err, NULL);
    s->known = json_object();
    s->path = path ? strdup(path) : NULL;
    s->writes = writes;
    s->quiet = quiet;
    s->began_ns = s->shown_ns = topt_clock_ns();
    int rc = s->known && (!path || s->path) ? 0 : topt_nomem(err, NULL);
    if (!rc && s->path)
        rc = read_file(s, err) || (writes && open_file(s, err)) ? -1 : 0;
    if (rc) {
        topt_survey_close(s, 0);
        return -1;
    }
    *ret = s;
    return 0;
}

void topt_survey_close(struct topt_survey *s, int done)
{
    if (!s)
        return;
    if (s->file)
        fclose(s->file);
    if (done && s->writes && s->path)
        unlink(s->path);
    json_decref(s->known);
    free(s->path);
    free(s->text);
    free(s);
}

int topt_survey_share(struct topt_survey *s, struct topt_comm *comm,
                      struct topt_error *err)
{
    char *text = NULL;
    size_t len = 0;
    int failed = 0;
    if (comm->rank == 0) {
        text = topt_json_text(s->known, 0);
        len = text ? strlen(text) : 0;
        failed = text ? 0 : topt_nomem(err, NULL);
    }
    if (topt_comm_share_text(comm, failed, &text, &len, err))
        return -1;
    json_t *known = topt_json_parse(text, len, "what was measured", err);
    free(text);
    if (known) {
        json_decref(s->known);
        s->known = known;
    }
    return topt_comm_agree(comm, !known, err);
}

/* ---- how far --------------------------------------------------------------------- */

/* In place on a terminal, else a line every few seconds. */
static void tell(struct topt_survey *s, const char *what)
{
    int tty = isatty(STDERR_FILENO), last = s->done >= s->total;
    int64_t now = topt_clock_ns(), every = tty ? 100000000 : 5000000000;
    char left[40] = "", ns[32];
    if (!s->writes || s->quiet || now - s->shown_ns < (tty && last ? 0 : every))
        return;
    s->shown_ns = now;
    if (s->measured && !last)
        snprintf(left, sizeof left, ", about %s left",
                 topt_show_ns((now - s->began_ns) / s->measured * (s->total - s->done),
                              ns, sizeof ns));
    fprintf(stderr, "%s%lld of %lld measured: %s%s%s", tty ? "\r\033[K" : "",
            (long long)s->done, (long long)s->total, what, left,
            tty && !last ? "" : "\n");
    fflush(stderr);
}

static void count(struct topt_survey *s, const char *what)
{
    s->done++;
    s->total = s->done > s->total ? s->done : s->total;
    tell(s, what);
}

void topt_survey_expect(struct topt_survey *s, int64_t n)
{
    s->total += n;
}

int topt_survey_known(struct topt_survey *s, const char *what, int64_t at, double *ret)
{
    char key[32];
    snprintf(key, sizeof key, "%lld", (long long)at);
    json_t *value = json_object_get(json_object_get(s->known, what), key);
    if (!value)
        return 0;
    *ret = json_number_value(value);
    count(s, what);
    return 1;
}

int topt_survey_keep(struct topt_survey *s, const char *what, int64_t at, double value,
                     struct topt_error *err)
{
    remember(s, what, at, value);
    s->measured++;
    count(s, what);
    if (!s->file)
        return 0;
    json_t *line =
        json_pack("{s:s, s:I, s:f}", "of", what, "at", (json_int_t)at, "value", value);
    char *text = line ? topt_json_text(line, 0) : NULL;
    int bad = !text || fprintf(s->file, "%s\n", text) < 0 || fflush(s->file);
    free(text);
    json_decref(line);
    return bad ? topt_fail(err, TOPT_ERR_IO, "write '%.200s': %s", s->path,
                           strerror(errno))
               : 0;
}

int64_t topt_survey_kept(const struct topt_survey *s)
{
    return s->kept;
}
