/* digest.c - SHA-256, by nettle. */
#include "topt_digest.h"

#include <nettle/sha2.h>
#include <stdint.h>

void topt_sha256(const void *data, size_t len, char ret_hex[TOPT_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t sum[SHA256_DIGEST_SIZE];
    struct sha256_ctx c;
    sha256_init(&c);
    sha256_update(&c, len, data);
    sha256_digest(&c, sizeof sum, sum);
    for (size_t i = 0; i < sizeof sum; i++) {
        ret_hex[2 * i] = digits[sum[i] >> 4];
        ret_hex[2 * i + 1] = digits[sum[i] & 15];
    }
    ret_hex[2 * sizeof sum] = '\0';
}
