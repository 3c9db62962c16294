/* picture.c - pictures of image folders: PNM and PNG files, cut and scaled to what a model takes. */
#include "picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if TOPT_HAVE_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#endif

enum { MOST = 1 << 28 };

static int make_room(struct topt_picture *p, struct topt_error *err)
{
    if (p->width < 1 || p->height < 1 || p->width > MOST / p->height / p->channels)
        return topt_fail(err, TOPT_ERR_LIMIT, "a picture of %lld x %lld",
                         (long long)p->width, (long long)p->height);
    p->pixel = malloc((size_t)(p->width * p->height * p->channels));
    return p->pixel ? 0 : topt_nomem(err, NULL);
}

/* ---- PNM (Netpbm's formats) -------------------------------------------------------- */

/* The next number of the header, behind blanks and comments; -1: there is none. */
static int64_t next_number(const unsigned char **at, const unsigned char *end)
{
    int64_t n = -1;
    const unsigned char *s = *at;
    while (s < end && (*s == '#' || strchr(" \t\r\n", *s)))
        for (int comment = *s == '#'; s < end; s++)
            if (!comment || *s == '\n') {
                s++;
                break;
            }
    for (; s < end && *s >= '0' && *s <= '9' && n < MOST; s++)
        n = (n < 0 ? 0 : n) * 10 + (*s - '0');
    *at = s;
    return n;
}

static int read_pnm(const unsigned char *s, size_t len, struct topt_picture *p,
                    struct topt_error *err)
{
    const unsigned char *end = s + len, *at = s + 2;
    p->channels = s[1] == '5' ? 1 : 3;
    p->width = next_number(&at, end);
    p->height = next_number(&at, end);
    int64_t most = next_number(&at, end);
    if (most < 1 || most > 255)
        return topt_fail(err, TOPT_ERR_INVAL, "holds no bytes: values up to %lld",
                         (long long)most);
    at++; /* one blank ends the header */
    if (make_room(p, err))
        return -1;
    int64_t n = p->width * p->height * p->channels;
    if (at > end || end - at < n)
        return topt_fail(err, TOPT_ERR_INVAL, "is cut short: %lld bytes are announced",
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        p->pixel[i] = (unsigned char)(at[i] * 255 / most);
    return 0;
}

/* ---- PNG (ISO/IEC 15948) ----------------------------------------------------------- */

static int64_t big_endian(const unsigned char *s)
{
    return (int64_t)s[0] << 24 | (int64_t)s[1] << 16 | (int64_t)s[2] << 8 | s[3];
}

#if TOPT_HAVE_ZLIB
/* What its chunks say; a pixel has 'samples' bytes. */
struct png {
    int64_t width, height;
    int samples, colour;
    const unsigned char *palette;
    int64_t colours;
    z_stream z;
};

static int64_t nearer(int64_t a, int64_t b, int64_t c) /* Paeth's choice */
{
    int64_t p = a + b - c, pa = llabs(p - a), pb = llabs(p - b), pc = llabs(p - c);
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* A row is stored as differences from predictions, by the pixels to the left and above. */
static void undo_filter(unsigned char *row, const unsigned char *above, int64_t n,
                        int step, int filter)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t a = i >= step ? row[i - step] : 0, b = above ? above[i] : 0;
        int64_t c = above && i >= step ? above[i - step] : 0;
        const int64_t guess[] = {0, a, b, (a + b) / 2, nearer(a, b, c)};
        row[i] = (unsigned char)(row[i] + guess[filter]);
    }
}

static int take_rows(const struct png *g, unsigned char *raw, struct topt_picture *p,
                     struct topt_error *err)
{
    int64_t n = g->width * g->samples;
    for (int64_t r = 0; r < g->height; r++) {
        unsigned char *row = raw + r * (n + 1);
        if (row[0] > 4)
            return topt_fail(err, TOPT_ERR_INVAL, "its row %lld is damaged",
                             (long long)r);
        undo_filter(row + 1, r ? row - n : NULL, n, g->samples, row[0]);
        for (int64_t i = 0; i < g->width; i++) {
            const unsigned char *from = row + 1 + i * g->samples;
            unsigned char *to = p->pixel + (r * g->width + i) * p->channels;
            if (g->colour == 3 && *from >= g->colours)
                return topt_fail(err, TOPT_ERR_INVAL, "its palette is too short");
            memcpy(to, g->colour == 3 ? g->palette + 3 * *from : from,
                   (size_t)p->channels);
        }
    }
    return 0;
}

static int take_header(struct png *g, const unsigned char *s, int64_t n,
                       struct topt_error *err)
{
    static const int samples[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    if (g->samples) /* rows would be of another length than there is room for */
        return topt_fail(err, TOPT_ERR_INVAL,
                         "is a PNG file with two header chunks (IHDR)");
    if (n < 13 || s[8] != 8 || s[9] > 6 || !samples[s[9]] || s[12])
        return topt_fail(err, TOPT_ERR_INVAL,
                         "is a PNG file with other than 8 bits a channel, or interlaced");
    g->width = big_endian(s);
    g->height = big_endian(s + 4);
    g->colour = s[9];
    g->samples = samples[s[9]];
    return 0;
}

/* All chunks; the data are unpacked into 'raw', which the first of them makes. */
static int take_chunks(struct png *g, const unsigned char *s, const unsigned char *end,
                       unsigned char **raw, struct topt_error *err)
{
    int rc = Z_OK;
    for (int64_t n; end - s >= 12; s += 12 + n) {
        n = big_endian(s);
        if (n > end - s - 12)
            break;
        if (!memcmp(s + 4, "IHDR", 4) && take_header(g, s + 8, n, err))
            return -1;
        if (!memcmp(s + 4, "PLTE", 4)) {
            g->palette = s + 8;
            g->colours = n / 3;
        }
        if (memcmp(s + 4, "IDAT", 4) != 0)
            continue;
        if (!*raw && (g->width < 1 || g->height < 1 || g->width > MOST / 4 / g->height))
            return topt_fail(err, TOPT_ERR_LIMIT, "a picture of %lld x %lld",
                             (long long)g->width, (long long)g->height);
        if (!*raw) {
            int64_t bytes = g->height * (g->width * g->samples + 1);
            if (!(*raw = malloc((size_t)bytes)))
                return topt_nomem(err, NULL);
            g->z.next_out = *raw;
            g->z.avail_out = (uInt)bytes;
        }
        g->z.next_in = s + 8;
        g->z.avail_in = (uInt)n;
        rc = inflate(&g->z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            break;
    }
    return *raw && !g->z.avail_out
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "is damaged or cut short");
}

static int read_png(const unsigned char *s, size_t len, struct topt_picture *p,
                    struct topt_error *err)
{
    struct png g = {0};
    unsigned char *raw = NULL;
    if (inflateInit(&g.z) != Z_OK)
        return topt_nomem(err, NULL);
    int rc = take_chunks(&g, s + 8, s + len, &raw, err);
    inflateEnd(&g.z);
    p->width = g.width;
    p->height = g.height;
    p->channels = g.colour & 2 ? 3 : 1;
    if (!rc)
        rc = make_room(p, err) || take_rows(&g, raw, p, err) ? -1 : 0;
    free(raw);
    return rc;
}
#else
static int read_png(const unsigned char *s, size_t len, struct topt_picture *p,
                    struct topt_error *err)
{
    (void)s, (void)len, (void)p, (void)big_endian;
    return topt_fail(err, TOPT_ERR_INVAL, "is packed, and topt was built without zlib");
}
#endif

int topt_picture_read(const void *bytes, size_t len, struct topt_picture *ret,
                      struct topt_error *err)
{
    static const unsigned char png[] = {137, 'P', 'N', 'G', 13, 10, 26, 10};
    const unsigned char *s = bytes;
    int rc = -1;
    *ret = (struct topt_picture){0};
    if (len > 8 && !memcmp(s, png, sizeof png))
        rc = read_png(s, len, ret, err);
    else if (len > 8 && s[0] == 'P' && (s[1] == '5' || s[1] == '6'))
        rc = read_pnm(s, len, ret, err);
    else
        topt_fail(
            err, TOPT_ERR_INVAL,
            "is no PNG and no PNM file of bytes; `mogrify -format png` of ImageMagick "
            "makes some of JPEG files");
    if (rc)
        free(ret->pixel);
    return rc;
}

/* ---- cut and scaled ---------------------------------------------------------------- */

/* The mean of a channel over a box of the picture, in pixels. */
static double mean_of(const struct topt_picture *p, int channel, const double from[2],
                      const double to[2])
{
    double sum = 0, weights = 0;
    for (int64_t y = (int64_t)from[0]; y < p->height && (double)y < to[0]; y++)
        for (int64_t x = (int64_t)from[1]; x < p->width && (double)x < to[1]; x++) {
            double h = fmin(to[0], (double)y + 1) - fmax(from[0], (double)y);
            double w = fmin(to[1], (double)x + 1) - fmax(from[1], (double)x);
            sum += h * w * p->pixel[(y * p->width + x) * p->channels + channel];
            weights += h * w;
        }
    return weights > 0 ? sum / weights : 0;
}

/* Grey of colours as ITU-R BT.601 weighs them. */
static double value_of(const struct topt_picture *p, int channels, int channel,
                       const double from[2], const double to[2])
{
    if (p->channels == 1 || channels == 3)
        return mean_of(p, p->channels == 1 ? 0 : channel, from, to);
    return 0.299 * mean_of(p, 0, from, to) + 0.587 * mean_of(p, 1, from, to) +
           0.114 * mean_of(p, 2, from, to);
}

void topt_picture_fit(const struct topt_picture *p, int channels, int64_t height,
                      int64_t width, unsigned char *ret)
{
    double step =
        fmin((double)p->height / (double)height, (double)p->width / (double)width);
    double top = ((double)p->height - step * (double)height) / 2;
    double left = ((double)p->width - step * (double)width) / 2;
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < height; i++)
            for (int64_t j = 0; j < width; j++) {
                double from[2] = {top + step * (double)i, left + step * (double)j};
                double to[2] = {from[0] + step, from[1] + step};
                *ret++ = (unsigned char)(value_of(p, channels, c, from, to) + 0.5);
            }
}
