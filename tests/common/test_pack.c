/* test_pack.c - bytes made smaller and whole again; damage and limits are named. */
#include "topt_pack.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

static void round_trip(const char *what, const char *data, size_t len)
{
    struct topt_error err = {0};
    void *packed = NULL;
    char *whole = NULL;
    size_t packed_len = 0, n = 0;
    ok(topt_pack(data, len, &packed, &packed_len, &err) == 0, "%s: packed", what);
    ok(topt_unpack(packed, packed_len, len ? len : 1, &whole, &n, &err) == 0 &&
           n == len && !memcmp(whole, data, len) && !whole[n],
       "%s: %zu bytes are whole again, of %zu", what, n, packed_len);
    free(packed);
    free(whole);
}

static void refused(const char *what, const void *data, size_t len, size_t most)
{
    struct topt_error err = {0};
    char *whole = NULL;
    size_t n;
    ok(topt_unpack(data, len, most, &whole, &n, &err) < 0 && err.code == TOPT_ERR_INVAL,
       "%s: %s", what, err.text);
}

int main(void)
{
    enum { LONG = 3 << 20 };
    struct topt_error err = {0};
    void *packed = NULL;
    size_t len = 0;
    char *text = calloc(1, LONG);
    unsigned seed = 12345;
    round_trip("nothing", "", 0);
    round_trip("a word", "word", 4);
    round_trip("zeros, a thousandth when packed", text, LONG);
    for (int i = 0; i < LONG; i++)
        text[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
    round_trip("noise", text, LONG);
    memset(text, 'x', LONG);
    ok(topt_pack(text, LONG, &packed, &len, &err) == 0, "packed");
    refused("one byte too long", packed, len, LONG - 1);
    refused("cut short", packed, len - 1, LONG);
    refused("not packed at all", "plain words", 11, LONG);
    refused("longer than what it may become", text, 100, 10);
    ((char *)packed)[len - 1] ^= 1;
    refused("with a wrong sum", packed, len, LONG);
    char *more = realloc(packed, len + 1);
    if (more) {
        more[len - 1] ^= 1;
        more[len] = 0;
        refused("with something behind it", more, len + 1, LONG);
        free(more);
    }
    free(text);
    return done_testing();
}
