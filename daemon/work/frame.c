/* frame.c - frames written, checked and read. */
#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_ROOM = 4096 };

static int reserve(struct frame *f, size_t more)
{
    if (f->oom || more > FRAME_LIMIT || f->len + more > FRAME_LIMIT) {
        f->oom = 1;
        return -1;
    }
    size_t room = f->room ? f->room : FIRST_ROOM;
    while (room < f->len + more)
        room *= 2;
    unsigned char *data = room > f->room ? realloc(f->data, room) : f->data;
    if (!data) {
        f->oom = 1;
        return -1;
    }
    f->data = data;
    f->room = room;
    return 0;
}

static void append(struct frame *f, const void *bytes, size_t len)
{
    if (reserve(f, len) < 0)
        return;
    if (len)
        memcpy(f->data + f->len, bytes, len);
    f->len += len;
}

void frame_begin(struct frame *f, enum frame_type type)
{
    const unsigned char header[FRAME_HEADER] = {0};
    f->type = type;
    f->len = f->at = 0;
    f->oom = 0;
    append(f, header, sizeof header);
}

/* A field's length, its bytes and a NUL. */
void frame_put(struct frame *f, const void *bytes, size_t len)
{
    const uint32_t n = (uint32_t)len;
    if (reserve(f, sizeof n + len + 1) < 0)
        return;
    append(f, &n, sizeof n);
    append(f, bytes, len);
    append(f, "", 1);
}

void frame_put_text(struct frame *f, const char *s)
{
    frame_put(f, s ? s : "", s ? strlen(s) : 0);
}

void frame_put_int(struct frame *f, int64_t v)
{
    frame_put(f, &v, sizeof v);
}

int frame_end(struct frame *f, struct topt_error *err)
{
    if (f->oom)
        return f->len > FRAME_LIMIT / 2
                   ? topt_fail(err, TOPT_ERR_LIMIT, "longer than 1 GiB")
                   : topt_nomem(err, NULL);
    const uint32_t header[2] = {(uint32_t)f->type, (uint32_t)(f->len - FRAME_HEADER)};
    memcpy(f->data, header, sizeof header);
    f->at = 0;
    return 0;
}

void frame_fini(struct frame *f)
{
    free(f->data);
    *f = (struct frame){0};
}

const char *frame_get(struct frame *f, size_t *ret_len)
{
    uint32_t n;
    if (f->len - f->at < sizeof n)
        return NULL;
    memcpy(&n, f->data + f->at, sizeof n);
    if (f->len - f->at - sizeof n <= n || f->data[f->at + sizeof n + n])
        return NULL;
    const char *s = (const char *)f->data + f->at + sizeof n;
    f->at += sizeof n + n + 1;
    if (ret_len)
        *ret_len = n;
    return s;
}

const char *frame_get_text(struct frame *f)
{
    const char *s = frame_get(f, NULL);
    return s ? s : "";
}

int64_t frame_get_int(struct frame *f)
{
    int64_t v = 0;
    size_t n;
    const char *s = frame_get(f, &n);
    if (s && n == sizeof v)
        memcpy(&v, s, n);
    return v;
}

/* How many bytes are wanted before the next thing can be said of the frame. */
static int wanted(const struct frame *f, size_t *ret, struct topt_error *err)
{
    uint32_t header[2];
    *ret = FRAME_HEADER;
    if (f->at < FRAME_HEADER)
        return 0;
    memcpy(header, f->data, sizeof header);
    if (!header[0] || header[0] >= FRAME_TYPES || header[1] > FRAME_LIMIT - FRAME_HEADER)
        return topt_fail(err, TOPT_ERR_INTERNAL, "what comes is no frame");
    *ret += header[1];
    return 0;
}

/* All of it is there: from now on 'at' is where it is read. */
static int received(struct frame *f)
{
    uint32_t type;
    memcpy(&type, f->data, sizeof type);
    f->type = (enum frame_type)type;
    f->len = f->at;
    f->at = FRAME_HEADER;
    return 1;
}

void frame_expect(struct frame *f)
{
    f->len = f->at = 0;
    f->oom = 0;
}

int frame_receive(struct frame *f, int fd, struct topt_error *err)
{
    for (;;) {
        size_t want;
        if (wanted(f, &want, err) < 0)
            return -1;
        if (f->at == want)
            return received(f);
        f->len = f->at;
        if (reserve(f, want - f->at) < 0)
            return topt_nomem(err, NULL);
        ssize_t n = recv(fd, f->data + f->at, want - f->at, MSG_DONTWAIT);
        if (n > 0)
            f->at += (size_t)n;
        else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            return 0;
        else
            return topt_fail(err, TOPT_ERR_IO, "the other end is gone");
    }
}

int frame_send(struct frame *f, int fd, struct topt_error *err)
{
    while (f->at < f->len) {
        ssize_t n =
            send(fd, f->data + f->at, f->len - f->at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            f->at += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return 0;
        else
            return topt_fail(err, TOPT_ERR_IO, "the other end is gone");
    }
    return 1;
}
