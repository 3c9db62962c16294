/* digest.c - SHA-256 by nettle, in the forms that the program needs. */
#include "topt_digest.h"

#include <string.h>

enum { FEWEST_DIGITS = 16 };

static void put_hex(const uint8_t *data, size_t len, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *ret++ = digits[data[i] >> 4];
        *ret++ = digits[data[i] & 15];
    }
    *ret = '\0';
}

void topt_digest_begin(struct topt_digest *d)
{
    sha256_init(&d->ctx);
}

void topt_digest_add(struct topt_digest *d, const void *data, size_t len)
{
    sha256_update(&d->ctx, len, data);
}

static void end(struct topt_digest *d, uint8_t ret[TOPT_DIGEST_BYTES])
{
    sha256_digest(&d->ctx, TOPT_DIGEST_BYTES, ret);
}

void topt_digest_end_hex(struct topt_digest *d, char ret[TOPT_DIGEST_HEX])
{
    uint8_t sum[TOPT_DIGEST_BYTES];
    end(d, sum);
    put_hex(sum, sizeof sum, ret);
}

void topt_digest_end_id(struct topt_digest *d, char kind, char ret[TOPT_ID])
{
    uint8_t sum[TOPT_DIGEST_BYTES];
    end(d, sum);
    ret[0] = kind;
    ret[1] = '-';
    put_hex(sum, TOPT_ID_DIGITS / 2, ret + 2);
}

void topt_sha256(const void *data, size_t len, uint8_t ret[TOPT_DIGEST_BYTES])
{
    struct topt_digest d;
    topt_digest_begin(&d);
    topt_digest_add(&d, data, len);
    end(&d, ret);
}

void topt_sha256_hex(const void *data, size_t len, char ret[TOPT_DIGEST_HEX])
{
    struct topt_digest d;
    topt_digest_begin(&d);
    topt_digest_add(&d, data, len);
    topt_digest_end_hex(&d, ret);
}

void topt_id(char kind, const void *data, size_t len, char ret[TOPT_ID])
{
    struct topt_digest d;
    topt_digest_begin(&d);
    topt_digest_add(&d, data, len);
    topt_digest_end_id(&d, kind, ret);
}

int topt_is_id(const char *text)
{
    if (!*text || !strchr("pmh", *text) || text[1] != '-')
        return 0;
    size_t n = strspn(text + 2, "0123456789abcdef");
    return n >= FEWEST_DIGITS && !text[2 + n];
}
