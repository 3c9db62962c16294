/* tokenizers.c - tokens and texts as Hugging Face's library makes them of the same files, and each
 * file that can't be read is refused with what is wrong.
 * usage: runtime_tokenizers FOLDER */
#include "tap.h"
#include "topt_json.h"
#include "topt_tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder;

static const char *in_folder(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    return path;
}

static int same_ids(const json_t *want, const struct topt_ids *got)
{
    if ((int64_t)json_array_size(want) != got->n)
        return 0;
    for (size_t i = 0; i < json_array_size(want); i++)
        if (json_integer_value(json_array_get(want, i)) != got->id[i])
            return 0;
    return 1;
}

static void show(const char *what, const json_t *text, const json_t *want,
                 const struct topt_ids *got)
{
    char *t = json_dumps(text, JSON_ENCODE_ANY), *w = json_dumps(want, 0);
    printf("# %s of %s: want %s, got", what, t, w);
    for (int64_t i = 0; i < got->n; i++)
        printf(" %d", (int)got->id[i]);
    printf("\n");
    free(t);
    free(w);
}

/* One text, to tokens and back. */
static void check_text(const struct topt_tokenizer *t, const char *name,
                       const json_t *text, const json_t *ids, const json_t *back,
                       int *bad)
{
    struct topt_error err = {0};
    struct topt_ids got = {0};
    struct topt_text again = {0};
    if (topt_tokenizer_encode(t, json_string_value(text), json_string_length(text), &got,
                              &err) ||
        !same_ids(ids, &got)) {
        show(name, text, ids, &got);
        printf("# %s\n", err.text);
        ++*bad;
    } else if (topt_tokenizer_decode(t, got.id, got.n, 1, &again, &err) ||
               again.len != json_string_length(back) ||
               (again.len && memcmp(again.s, json_string_value(back), again.len) != 0)) {
        printf("# %s: back to '%.*s', want '%s'\n", name, (int)again.len,
               again.s ? again.s : "", json_string_value(back));
        ++*bad;
    }
    topt_ids_fini(&got);
    topt_text_fini(&again);
}

static void check_all(const json_t *expected)
{
    const json_t *texts = json_object_get(expected, "texts");
    const char *name;
    json_t *of;
    json_object_foreach((json_t *)(uintptr_t)expected, name, of)
    {
        struct topt_error err = {0};
        struct topt_tokenizer *t;
        int bad = 0;
        if (!strcmp(name, "texts"))
            continue;
        if (topt_tokenizer_load(in_folder(name), &t, &err)) {
            ok(0, "%s: %s", name, err.text);
            continue;
        }
        for (size_t i = 0; i < json_array_size(texts); i++)
            check_text(t, name, json_array_get(texts, i),
                       json_array_get(json_object_get(of, "ids"), i),
                       json_array_get(json_object_get(of, "texts"), i), &bad);
        ok(!bad, "%s: %zu texts to tokens and back", name, json_array_size(texts));
        topt_tokenizer_destroy(t);
    }
}

/* Long words take no square of time, and words that come again are the same. */
static void check_long(void)
{
    enum { N = 300000 };
    struct topt_error err = {0};
    struct topt_tokenizer *t;
    struct topt_ids once = {0}, twice = {0};
    char *text = malloc(N);
    if (!text || topt_tokenizer_load(in_folder("gpt2"), &t, &err))
        exit(1);
    memset(text, 'e', N);
    int rc = topt_tokenizer_encode(t, text, N, &once, &err);
    ok(!rc && once.n > 1000, "a word of 300,000 letters: %lld tokens", (long long)once.n);
    once.n = 0;
    for (int i = 0; i < N; i++)
        text[i] = " the planner counts what it holds."[i % 34];
    rc = topt_tokenizer_encode(t, text, 34, &once, &err);
    rc |= topt_tokenizer_encode(t, text, N / 34 * 34, &twice, &err);
    int same = twice.n == once.n * (N / 34);
    for (int64_t i = 0; i < twice.n && same; i++)
        same = twice.id[i] == once.id[i % once.n];
    ok(!rc && same, "words that come again are the same tokens");
    ok(topt_tokenizer_encode(t, "a\xff", 2, &once, &err) && strstr(err.text, "byte 1"),
       "what is no UTF-8: %s", err.text);
    ok(topt_tokenizer_end(t) == 0 && topt_tokenizer_vocab(t) == 420, "its end, its size");
    topt_ids_fini(&once);
    topt_ids_fini(&twice);
    topt_tokenizer_destroy(t);
    free(text);
}

static void refuse(const char *doc, const char *why)
{
    char path[] = "/tmp/topt-tokenizer-XXXXXX";
    struct topt_error err = {0};
    struct topt_tokenizer *t = NULL;
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, doc, strlen(doc)) < 0)
        exit(1);
    close(fd);
    ok(topt_tokenizer_load(path, &t, &err) && strstr(err.text, why), "refused: %s",
       err.text);
    topt_tokenizer_destroy(t);
    unlink(path);
}

static void check_refusals(void)
{
    refuse("{}", "model '' is not known");
    refuse("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {}}}", "WordLevel");
    refuse("{\"model\": {\"type\": \"WordPiece\", \"vocab\": {}}}",
           "unk_token '[UNK]' is no piece");
    refuse(
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}",
        "merges[0]");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}",
           "has the number -1");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": \"b\"}, \"merges\": []}}",
           "'a' has no number");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": [], "
           "\"end_of_word_suffix\": \"</w>\"}}",
           "end_of_word_suffix");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
           "\"pre_tokenizer\": {\"type\": \"CharDelimiterSplit\"}}",
           "CharDelimiterSplit");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
           "\"normalizer\": {\"type\": \"Nmt\"}}",
           "Nmt");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
           "\"normalizer\": {\"type\": \"Precompiled\", "
           "\"precompiled_charsmap\": \"AAAA\"}}",
           "precompiled_charsmap is no table");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
           "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, "
           "\"behavior\": \"Isolated\"}}",
           "pattern '('");
    refuse("{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "vocab[0]");
    refuse("{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
           "\"added_tokens\": [{\"id\": 0, \"content\": \"x\", \"single_word\": true}]}",
           "single_word");
}

int main(int argc, char **argv)
{
    json_error_t why;
    folder = argc > 1 ? argv[1] : ".";
    json_t *expected = json_load_file(in_folder("expected"), JSON_ALLOW_NUL, &why);
    if (!ok(expected != NULL, "what is expected"))
        return done_testing();
    check_all(expected);
    check_long();
    check_refusals();
    json_decref(expected);
    return done_testing();
}
