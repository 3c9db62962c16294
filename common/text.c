/* text.c - growing text and whole files. */
#include "topt_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int reserve(struct topt_text *t, size_t more)
{
    if (t->oom)
        return -1;
    if (more < t->cap - t->len)
        return 0;
    size_t cap = t->cap ? t->cap : 128;
    while (cap - t->len <= more) {
        if (cap > SIZE_MAX / 2) {
            t->oom = 1;
            return -1;
        }
        cap *= 2;
    }
    char *s = realloc(t->s, cap);
    if (!s) {
        t->oom = 1;
        return -1;
    }
    t->s = s;
    t->cap = cap;
    return 0;
}

void topt_text_put(struct topt_text *t, const char *bytes, size_t n)
{
    if (reserve(t, n))
        return;
    memcpy(t->s + t->len, bytes, n);
    t->len += n;
    t->s[t->len] = '\0';
}

void topt_text_add(struct topt_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || reserve(t, (size_t)n))
        return;
    va_start(ap, fmt);
    vsnprintf(t->s + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    t->len += (size_t)n;
}

void topt_text_fini(struct topt_text *t)
{
    free(t->s);
    *t = (struct topt_text){0};
}

char *topt_text_take(struct topt_text *t)
{
    char *s = t->oom ? NULL : t->s;
    if (t->oom)
        topt_text_fini(t);
    *t = (struct topt_text){0};
    return s;
}

void topt_text_fold(struct topt_text *t, const char *words, size_t n, size_t at,
                    size_t columns)
{
    size_t column = at, i = 0;
    while (i < n) {
        size_t len = 0;
        while (i < n && words[i] == ' ')
            i++;
        while (i + len < n && words[i + len] != ' ')
            len++;
        if (column > at && len > 0 && column + 1 + len > columns) {
            topt_text_add(t, "\n%*s", (int)at, "");
            column = at;
        } else if (column > at && len > 0) {
            topt_text_add(t, " ");
            column++;
        }
        topt_text_put(t, words + i, len);
        column += len;
        i += len;
    }
}

char *topt_read_file(const char *path, size_t max_bytes, size_t *ret_len,
                     struct topt_error *err)
{
    struct topt_text t = {0};
    int use_stdin = strcmp(path, "-") == 0;
    int fd = use_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        topt_fail(err, errno == ENOENT ? TOPT_ERR_NOTFOUND : TOPT_ERR_IO,
                  "can't open '%s': %s", path, strerror(errno));
        return NULL;
    }
    struct stat st = {0};
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        topt_fail(err, TOPT_ERR_INVAL, "'%s' is a directory, a file is needed", path);
        goto fail;
    }
    if (S_ISREG(st.st_mode) && (uintmax_t)st.st_size > max_bytes)
        goto large;
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            topt_fail(err, TOPT_ERR_IO, "can't read '%s': %s", path, strerror(errno));
            goto fail;
        }
        if (n == 0)
            break;
        topt_text_put(&t, chunk, (size_t)n);
        if (t.len > max_bytes)
            goto large;
        if (t.oom)
            break;
    }
    topt_text_put(&t, "", 0);
    if (t.oom) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory to read '%s'", path);
        goto fail;
    }
    if (!use_stdin)
        close(fd);
    if (ret_len)
        *ret_len = t.len;
    return t.s;
large:
    topt_fail(err, TOPT_ERR_LIMIT, "'%s' is larger than the limit of %zu bytes", path,
              max_bytes);
fail:
    if (!use_stdin)
        close(fd);
    topt_text_fini(&t);
    return NULL;
}

static int write_all(int fd, const char *p, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_and_close(int fd, const void *data, size_t len, int sync)
{
    int bad = fd < 0 || write_all(fd, data, len) || (sync && fsync(fd));
    int saved = errno;
    if (fd >= 0 && close(fd) && !bad)
        return -1;
    errno = saved;
    return bad ? -1 : 0;
}

/* A device, a pipe or a link is written to; a file put in its place would be the end of it. */
static int may_be_replaced(const char *path)
{
    struct stat s;
    return lstat(path, &s) || S_ISREG(s.st_mode);
}

int topt_write_file(const char *path, const void *data, size_t len,
                    struct topt_error *err)
{
    if (strcmp(path, "-") == 0) {
        if (write_all(STDOUT_FILENO, data, len))
            return topt_fail(err, TOPT_ERR_IO, "can't write to standard output: %s",
                             strerror(errno));
        return 0;
    }
    int beside = may_be_replaced(path);
    struct topt_text tmp = {0};
    topt_text_add(&tmp, "%s", path);
    if (beside)
        topt_text_add(&tmp, ".%ld.tmp", (long)getpid());
    if (tmp.oom)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory to write '%s'", path);
    int fd = open(tmp.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int bad = write_and_close(fd, data, len, beside) || (beside && rename(tmp.s, path));
    int saved = errno;
    if (bad && beside && fd >= 0)
        unlink(tmp.s);
    topt_text_fini(&tmp);
    errno = saved;
    return bad ? topt_fail(err, TOPT_ERR_IO, "can't write '%s': %s", path,
                           strerror(saved))
               : 0;
}

const char *topt_named_bits(int bits, const char *(*name)(unsigned),
                            char buf[TOPT_NAMED_BITS])
{
    int n = 0;
    for (*buf = 0; bits; bits &= bits - 1)
        n += snprintf(buf + n, (size_t)(TOPT_NAMED_BITS - n), "%s%s",
                      !n                  ? ""
                      : bits & (bits - 1) ? ", "
                                          : " or ",
                      name((unsigned)__builtin_ctz((unsigned)bits)));
    return buf;
}
