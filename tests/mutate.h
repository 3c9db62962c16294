/* mutate.h - deterministic damage to text, for tests that parse whatever comes. */
#ifndef TOPT_MUTATE_H
#define TOPT_MUTATE_H

#include <stdint.h>
#include <string.h>

static uint64_t mutate_state = 0x9e3779b97f4a7c15u;

static uint64_t mutate_random(void)
{
    mutate_state ^= mutate_state << 13;
    mutate_state ^= mutate_state >> 7;
    mutate_state ^= mutate_state << 17;
    return mutate_state;
}

static size_t mutate_below(size_t n)
{
    return n ? (size_t)(mutate_random() % n) : 0;
}

/* Replace 'cut' bytes at 'at' by 'n' others; returns the new length. */
static size_t mutate_splice(char *text, size_t len, size_t cap, size_t at, size_t cut,
                            const char *with, size_t n)
{
    if (cut > len - at)
        cut = len - at;
    if (len - cut + n > cap)
        return len;
    memmove(text + at + n, text + at + cut, len - at - cut);
    memcpy(text + at, with, n);
    return len - cut + n;
}

/* One edit: a bit, a cut, a copy of another part, a hostile word, or a number replaced. */
static size_t mutate_once(char *text, size_t len, size_t cap)
{
    static const char *const words[] = {"0",
                                        "-1",
                                        "1e308",
                                        "9223372036854775807",
                                        "99999999999999999999",
                                        "null",
                                        "true",
                                        "\"\"",
                                        "[]",
                                        "{}",
                                        "[",
                                        "}",
                                        "\"",
                                        "\\ud800",
                                        "1.5",
                                        ",",
                                        "NaN",
                                        "1024",
                                        "2147483648",
                                        "1e-320"};
    size_t at = mutate_below(len), n = mutate_below(24) + 1;
    char copy[64];
    const char *word = words[mutate_below(sizeof words / sizeof *words)];
    switch (mutate_below(6)) {
    case 0:
        text[at] = (char)(text[at] ^ (char)(1 << mutate_below(8)));
        return len;
    case 1:
        return mutate_splice(text, len, cap, at, n, "", 0);
    case 2: {
        size_t from = mutate_below(len);
        if (n > len - from)
            n = len - from;
        memcpy(copy, text + from, n);
        return mutate_splice(text, len, cap, at, mutate_below(2) ? n : 0, copy, n);
    }
    case 3:
        return mutate_splice(text, len, cap, at, 0, word, strlen(word));
    case 4:
        return mutate_below(50) ? len : mutate_below(len);
    default: {
        size_t end;
        while (at < len && (text[at] < '0' || text[at] > '9'))
            at++;
        for (end = at; end < len && text[end] >= '0' && text[end] <= '9';)
            end++;
        return mutate_splice(text, len, cap, at, end - at, word, strlen(word));
    }
    }
}

/* A copy of 'seed', as far as it fits, in 'text' (of 'cap' bytes) with one to four edits. */
__attribute__((unused)) static size_t mutate(const char *seed, char *text, size_t cap)
{
    size_t len = strnlen(seed, cap);
    memcpy(text, seed, len);
    for (size_t n = mutate_below(4) + 1; n > 0 && len > 0; n--)
        len = mutate_once(text, len, cap);
    return len;
}

#endif
