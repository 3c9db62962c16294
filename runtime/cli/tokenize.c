/* tokenize.c - `topt tokenize`: texts as a file of tokens, which many runs then map. */
#include "cli.h"
#include "rank.h"
#include "topt_options.h"
#include "topt_tokenizer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *out;
};

static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt tokenize tokenizer.json text.txt -o text.bin",
                 "for topt run --data text.bin"),
    {"o", TOPT_OPT_STRING, offsetof(struct args, out), "FILE.bin",
     "the tokens, for --data of topt run"},
    {0}};

static const char usage[] = "topt tokenize TOKENIZER TEXT -o FILE.bin";

enum { WORDS = 256, MAGIC_16 = 20240520, MAGIC_32 = 20240801 };

static void put(unsigned char *at, uint32_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(x >> 8 * i);
}

/* llm.c's form: a header that says how many tokens follow, of 16 bits where they fit. */
static int write_tokens(const char *path, const struct topt_ids *ids, int64_t vocab,
                        struct topt_error *err)
{
    size_t bytes = vocab > 1 << 16 ? 4 : 2, head = WORDS * 4, n = (size_t)ids->n;
    unsigned char *all = calloc(head + n * bytes, 1);
    if (!all)
        return topt_nomem(err, "tokens");
    put(all, bytes == 4 ? MAGIC_32 : MAGIC_16, 4);
    put(all + 4, bytes == 4 ? 7 : 1, 4);
    put(all + 8, (uint32_t)ids->n, 4);
    for (size_t i = 0; i < n; i++)
        put(all + head + i * bytes, (uint32_t)ids->id[i], (int)bytes);
    int rc = topt_write_file(path, all, head + n * bytes, err);
    free(all);
    return rc;
}

static int tokenize(const char *tokenizer, const char *text, const char *out,
                    struct topt_error *err)
{
    struct topt_tokenizer *t;
    struct topt_ids ids = {0};
    size_t len = strlen(out);
    if (len < 5 || strcmp(out + len - 4, ".bin") != 0)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "-o %.80s: its name has to end in .bin, by which topt run knows "
                         "tokens",
                         out);
    if (topt_tokenizer_load(tokenizer, &t, err))
        return -1;
    int rc = topt_tokenizer_encode_files(t, text, &ids, err);
    if (!rc && !ids.n)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "there is no text in '%s'", text);
    if (!rc && ids.n > UINT32_MAX / 2)
        rc = topt_fail(err, TOPT_ERR_LIMIT, "more than 2^31 tokens; give parts of it");
    if (!rc)
        rc = write_tokens(out, &ids, topt_tokenizer_vocab(t), err);
    if (!rc)
        printf("%lld tokens of a vocabulary of %lld, in %s\n", (long long)ids.n,
               (long long)topt_tokenizer_vocab(t), out);
    topt_ids_fini(&ids);
    topt_tokenizer_destroy(t);
    return rc;
}

int topt_cmd_tokenize(int argc, char **argv)
{
    struct args a = {.out = NULL};
    struct topt_error err = {0};
    const char *arg[2];
    int n = 0, rc = topt_options_parse(options, argc, argv, &a, arg, 2, &n, &err);
    if (rc > 0) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    if (!rc && (n < 2 || !a.out))
        rc = topt_fail(&err, TOPT_ERR_USAGE, "usage: %s", usage);
    if (!rc)
        rc = tokenize(arg[0], arg[1], a.out, &err);
    if (rc)
        topt_complain("tokenize", &err);
    return rc ? topt_err_exit(err.code) : 0;
}
