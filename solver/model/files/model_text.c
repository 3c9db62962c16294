/* model_text.c - the bytes of a model's file before anything is read of them. */
#include "model_text.h"

#include <stdlib.h>
#include <string.h>

static int starts(const char *text, size_t len, const char *with, size_t n)
{
    return len >= n && !memcmp(text, with, n);
}

int topt_model_refuse_other(const char *text, size_t len, const char *what,
                            struct topt_error *err)
{
    static const struct {
        const char *start;
        size_t n;
        const char *is;
    } others[] = {
        {"\xff\xfe", 2, "is text in UTF-16; save it as UTF-8"},
        {"\xfe\xff", 2, "is text in UTF-16; save it as UTF-8"},
        {"version https://git-lfs", 23,
         "is a pointer of Git LFS, not the file; get it by git lfs pull"},
        {"GGUF", 4,
         "has weights of llama.cpp (GGUF); give the config.json of the model they were "
         "made from"},
        {"<!DOCTYPE", 9, "is a web page, not the file that was meant"},
        {"<html", 5, "is a web page, not the file that was meant"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (starts(text, len, others[i].start, others[i].n))
            return topt_fail(err, TOPT_ERR_INVAL, "%s %s", what, others[i].is);
    return 0;
}

/* A word of Python's at this place, and what it is in JSON. */
static const char *word_at(const char *text, size_t left, size_t *ret_len)
{
    static const struct {
        const char *word, *json;
    } words[] = {{"-Infinity", "-1e308"}, {"Infinity", "1e308"}, {"NaN", "null"}};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);
        if (left >= n && !memcmp(text, words[i].word, n)) {
            *ret_len = n;
            return words[i].json;
        }
    }
    return NULL;
}

char *topt_model_plain_json(const char *text, size_t len, size_t *ret_len)
{
    if (!memmem(text, len, "Infinity", 8) && !memmem(text, len, "NaN", 3))
        return NULL;
    char *ret = malloc(2 * len + 1);
    size_t n = 0;
    int quoted = 0;
    for (size_t i = 0; ret && i < len; i++) {
        size_t skipped;
        const char *json = quoted ? NULL : word_at(text + i, len - i, &skipped);
        if (json) {
            memcpy(ret + n, json, strlen(json));
            n += strlen(json);
            i += skipped - 1;
            continue;
        }
        if (quoted && text[i] == '\\' && i + 1 < len)
            ret[n++] = text[i++];
        else if (text[i] == '"')
            quoted = !quoted;
        ret[n++] = text[i];
    }
    *ret_len = n;
    return ret;
}
