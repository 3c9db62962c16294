/* near.c - the known name that an unknown one is most likely a slip of. */
#include "topt_near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 64, SHORTEST_START = 2, MOST_SLIPS = 4 };

/* Common names of things that have another name here. */
static const char *const called[][2] = {
    {"fsdp", "pytorch"},         {"fsdp2", "pytorch"},   {"ddp", "pytorch"},
    {"accelerate", "pytorch"},   {"hf", "pytorch"},      {"huggingface", "pytorch"},
    {"transformers", "pytorch"}, {"trainer", "pytorch"}, {"torchtune", "pytorch"},
    {"lightning", "pytorch"},    {"torch", "pytorch"},   {"ds", "deepspeed"},
    {"zero", "deepspeed"},       {"nemo", "megatron"},   {"mcore", "megatron"},
};

static int is_called(const char *name, const char *known)
{
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        if (!strcasecmp(called[i][0], name) && !strcmp(called[i][1], known))
            return 1;
    return 0;
}

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Letters to insert, remove, replace or swap with the next to make 'a' of 'b'; both are at
 * most LONGEST long. */
static int distance(const char *a, const char *b)
{
    int la = (int)strlen(a), lb = (int)strlen(b);
    int row[3][LONGEST + 1]; /* of the last two letters of 'a' and this one */
    int *before = row[0], *last = row[1], *now = row[2];
    for (int j = 0; j <= lb; j++)
        last[j] = j;
    for (int i = 1; i <= la; i++) {
        now[0] = i;
        for (int j = 1; j <= lb; j++) {
            int x = lower(a[i - 1]), y = lower(b[j - 1]);
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                now[j] = least(now[j], before[j - 2] + 1);
        }
        int *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[lb];
}

void topt_near_try(struct topt_near *near, const char *known)
{
    size_t len = strlen(near->name), other = strlen(known);
    if (len > LONGEST || other > LONGEST)
        return;
    if (len >= SHORTEST_START && other > len && !strncasecmp(known, near->name, len)) {
        near->longer = known;
        near->nlonger++;
    }
    int slips = least(MOST_SLIPS, len < 3 ? 1 : (int)len / 3);
    int d = is_called(near->name, known) ? 0 : distance(near->name, known);
    if (d <= slips && d < (int)len && d < (int)other &&
        (!near->best || d < near->distance)) {
        near->best = known;
        near->distance = d;
    }
}

const char *topt_near_name(const struct topt_near *near)
{
    if (near->best)
        return near->best;
    return near->nlonger == 1 ? near->longer : NULL;
}

const char *topt_near_words(const struct topt_near *near, char buf[TOPT_NEAR_WORDS])
{
    const char *name = topt_near_name(near);
    buf[0] = '\0';
    if (name)
        snprintf(buf, TOPT_NEAR_WORDS, "; did you mean %s?", name);
    return buf;
}

const char *topt_near_among(const char *name, const char *const *known,
                            char buf[TOPT_NEAR_WORDS])
{
    struct topt_near near = {.name = name};
    for (; *known; known++)
        topt_near_try(&near, *known);
    return topt_near_words(&near, buf);
}

static int contains(const char *known, const char *name)
{
    const char *at = strlen(name) >= SHORTEST_START ? strcasestr(known, name) : NULL;
    return at && (strlen(name) > SHORTEST_START || at == known);
}

const char *topt_near_containing(const char *name, const char *const *known,
                                 char buf[TOPT_NEAR_MATCHES])
{
    enum { MORE = 16 }; /* " or 1000 more?" */
    int n = 0, told = 0;
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 0; known[i]; i++)
        n += contains(known[i], name);
    for (int i = 0; known[i]; i++) {
        if (!contains(known[i], name))
            continue;
        const char *before = !told ? "; did you mean " : told + 1 < n ? ", " : " or ";
        if (at + strlen(before) + strlen(known[i]) + MORE > TOPT_NEAR_MATCHES)
            break;
        at +=
            (size_t)snprintf(buf + at, TOPT_NEAR_MATCHES - at, "%s%s", before, known[i]);
        told++;
    }
    if (told && told < n)
        snprintf(buf + at, TOPT_NEAR_MATCHES - at, " or %d more?", n - told);
    else if (told)
        snprintf(buf + at, TOPT_NEAR_MATCHES - at, "?");
    return buf;
}

const char *topt_near_guess(const char *name, const char *const *known,
                            char buf[TOPT_NEAR_MATCHES])
{
    struct topt_near near = {.name = name};
    for (int i = 0; known[i]; i++)
        topt_near_try(&near, known[i]);
    if (near.best && !near.distance) /* that word in other letters */
        return topt_near_words(&near, buf);
    return *topt_near_containing(name, known, buf) ? buf : topt_near_words(&near, buf);
}
