/* pattern.c - regular expressions over Unicode, by PCRE2 where topt was built with it. */
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

#if TOPT_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct topt_pattern {
    pcre2_code *code;
    char *literal; /* instead of 'code' */
    size_t len;
};

struct topt_pattern *topt_pattern_compile(const char *regex, struct topt_error *err)
{
    struct topt_pattern *p = calloc(1, sizeof *p);
    char why[120] = "out of memory";
    int code = 0;
    PCRE2_SIZE at = 0;
    if (p)
        p->code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code,
                                &at, NULL);
    if (p && p->code) {
        pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* slower without */
        return p;
    }
    if (code)
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
    topt_fail(err, TOPT_ERR_INVAL, "the pattern '%.60s': %.100s at %zu", regex, why, at);
    free(p);
    return NULL;
}

static int find_regex(const struct topt_pattern *p, const char *s, size_t len,
                      size_t from, size_t *ret_begin, size_t *ret_end,
                      struct topt_error *err)
{
    pcre2_match_data *m = pcre2_match_data_create(1, NULL);
    if (!m)
        return topt_nomem(err, NULL);
    int rc = pcre2_match(p->code, (PCRE2_SPTR)s, len, from, PCRE2_NO_UTF_CHECK, m, NULL);
    *ret_begin = pcre2_get_ovector_pointer(m)[0];
    *ret_end = pcre2_get_ovector_pointer(m)[1];
    pcre2_match_data_free(m);
    if (rc >= 0)
        return 1;
    return rc == PCRE2_ERROR_NOMATCH
               ? 0
               : topt_fail(err, TOPT_ERR_LIMIT,
                           "a pattern of the tokenizer gives up (PCRE2 says %d)", rc);
}

static void free_code(struct topt_pattern *p)
{
    pcre2_code_free(p->code);
}
#else
struct topt_pattern {
    void *code;
    char *literal;
    size_t len;
};

struct topt_pattern *topt_pattern_compile(const char *regex, struct topt_error *err)
{
    topt_fail(err, TOPT_ERR_INVAL,
              "the pattern '%.60s' needs PCRE2, and topt was built without libpcre2-dev",
              regex);
    return NULL;
}

static int find_regex(const struct topt_pattern *p, const char *s, size_t len,
                      size_t from, size_t *ret_begin, size_t *ret_end,
                      struct topt_error *err)
{
    (void)p, (void)s, (void)len, (void)from, (void)ret_begin, (void)ret_end, (void)err;
    return 0;
}

static void free_code(struct topt_pattern *p)
{
    (void)p;
}
#endif

struct topt_pattern *topt_pattern_literal(const char *text, struct topt_error *err)
{
    struct topt_pattern *p = calloc(1, sizeof *p);
    if (p)
        p->literal = strdup(text);
    if (p && p->literal) {
        p->len = strlen(text);
        return p;
    }
    free(p);
    topt_nomem(err, NULL);
    return NULL;
}

void topt_pattern_free(struct topt_pattern *p)
{
    if (!p)
        return;
    if (p->code)
        free_code(p);
    free(p->literal);
    free(p);
}

int topt_pattern_find(const struct topt_pattern *p, const char *s, size_t len,
                      size_t from, size_t *ret_begin, size_t *ret_end,
                      struct topt_error *err)
{
    if (!p->literal)
        return find_regex(p, s, len, from, ret_begin, ret_end, err);
    const char *at = p->len ? memmem(s + from, len - from, p->literal, p->len) : NULL;
    if (!at)
        return 0;
    *ret_begin = (size_t)(at - s);
    *ret_end = *ret_begin + p->len;
    return 1;
}
