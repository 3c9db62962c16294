/* carry_look.c - a carried document looked at from outside, by who copies it unread:
 * Slurm's plugin compiles this file itself, and brings no zlib. */
#include "topt_carry.h"

#include <string.h>

int topt_carry_looks_right(const char *word, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789+/=";
    if (len <= TOPT_CARRY_DATA_AT || len > TOPT_CARRY_MOST ||
        memcmp(word, "1.", TOPT_CARRY_DIGEST_AT) != 0 ||
        word[TOPT_CARRY_DATA_AT - 1] != '.')
        return 0;
    for (size_t i = TOPT_CARRY_DIGEST_AT; i < TOPT_CARRY_DATA_AT - 1; i++)
        if (!word[i] || !strchr(digits, word[i]))
            return 0;
    for (size_t i = TOPT_CARRY_DATA_AT; i < len; i++)
        if (!word[i] || !strchr(base64, word[i]))
            return 0;
    return 1;
}
