/* Weights beside a config: headers that can't be, and models that they do not belong to. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mutate.h"
#include "tap.h"
#include "topt_model.h"

static char dir[64] = "/tmp/topt-weights-XXXXXX";

static void write_file(const char *leaf, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, leaf);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        exit(1);
}

static void remove_file(const char *leaf)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, leaf);
    unlink(path);
}

/* A length, a header with single quotes for double ones, and so many bytes of nothing. */
static size_t make_file(const char *header, size_t bytes, char *ret)
{
    uint64_t n = strlen(header);
    memcpy(ret, &n, 8);
    for (size_t i = 0; i < n; i++)
        ret[8 + i] = header[i] == '\'' ? '"' : header[i];
    memset(ret + 8 + n, 0, bytes);
    return 8 + n + bytes;
}

static void write_weights(const char *leaf, const char *header, size_t bytes)
{
    static char file[1 << 16];
    write_file(leaf, file, make_file(header, bytes, file));
}

/* A Llama of one layer, 8 wide: 10 x 8 (table) + 8 (norm) + the layer's, and its head. */
static const char config[] =
    "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"intermediate_size\":4,\"vocab_size\":10,"
    "\"max_position_embeddings\":16}";
#define T(name, shape, from, to)                                                         \
    "'" name "':{'dtype':'F32','shape':" shape ",'data_offsets':[" #from "," #to "]}"
#define REST                                                                             \
    T("model.layers.0.all", "[368]", 320, 1792)                                          \
    "," T("model.norm.weight", "[8]", 1792, 1824)
#define TABLE T("model.embed_tokens.weight", "[10,8]", 0, 320)

static void loads(const char *names)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load(dir, NULL, &err);
    if (names)
        ok(!m && strstr(err.text, names) && !strchr(err.text, '\n'), "names \"%s\": %s",
           names, m ? "(loaded)" : err.text);
    else
        ok(m != NULL, "is loaded %s", err.text);
    topt_model_destroy(m);
}

static void whole(void)
{
    write_weights("model.safetensors",
                  "{'__metadata__':{'format':'pt'}," TABLE "," REST
                  "," T("lm_head.weight", "[10,8]", 1824, 2144) "}",
                  2144);
    loads(NULL);
    write_weights("model.safetensors", "{" TABLE "," REST "}", 1824);
    loads("456 parameters, the model of this config 536, 80 more");
    write_weights("model.safetensors",
                  "{" TABLE "," REST "," T("lm_head.weight", "[10,8]", 1824, 2144) "," T(
                      "extra.0.bias", "[2]", 2144, 2152) "," T("extra.1.bias", "[2]",
                                                               2152, 2160) "}",
                  2160);
    loads("4 fewer: as many as are in extra.N.bias");
    write_weights("model-1-of-2.safetensors", "{" T("w", "[1]", 0, 4) "}", 4);
    loads("541 parameters");
    remove_file("model-1-of-2.safetensors");
    static const char index[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"x\"}}";
    write_file("model.safetensors.index.json", index, sizeof index - 1);
    loads("names 1 tensors, the files have 6");
    remove_file("model.safetensors.index.json");
}

static void broken(void)
{
    write_weights("model.safetensors",
                  "{" T("w", "[2]", 0, 8) "," T("w", "[2]", 8, 16) "}", 16);
    loads("duplicate");
    write_weights("model.safetensors",
                  "{" T("w", "[2]", 0, 8) "," T("v", "[2]", 4, 12) "}", 12);
    loads("two tensors");
    write_weights("model.safetensors",
                  "{" T("w", "[2]", 0, 8) "," T("v", "[2]", 16, 24) "}", 24);
    loads("no tensor");
    write_weights("model.safetensors", "{" T("w", "[2]", 0, 8) "}", 4);
    loads("the file 4");
    write_weights("model.safetensors", "{" T("w", "[3]", 0, 8) "}", 8);
    loads("another number of bytes");
    write_weights("model.safetensors", "{" T("w", "[-1]", 0, 8) "}", 8);
    loads("no shape");
    write_weights("model.safetensors",
                  "{'w':{'dtype':'Q4','shape':[2],'data_offsets':[0,8]}}", 8);
    loads("unknown type Q4");
    write_file("model.safetensors", "abc", 3);
    loads("a length");
    write_file("model.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    loads("a header of");
}

static void fuzz(void)
{
    enum { ROUNDS = 800, CAP = 4096 };
    char seed[CAP], file[CAP];
    size_t n = make_file("{" TABLE "," REST "}", 1824, seed);
    int bad = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct topt_error err = {0};
        size_t len = n;
        memcpy(file, seed, n);
        for (size_t k = mutate_below(3) + 1; k > 0 && len > 0; k--)
            len = mutate_once(file, len < 400 ? len : 400, CAP) +
                  (len > 400 ? len - 400 : 0);
        write_file("model.safetensors", file, len > CAP ? CAP : len);
        struct topt_model *m = topt_model_load(dir, NULL, &err);
        bad += !m && (!err.text[0] || strchr(err.text, '\n'));
        topt_model_destroy(m);
    }
    is_int(bad, 0, "whatever is in the file, the answer is a model or one line");
}

int main(void)
{
    if (!mkdtemp(dir))
        exit(1);
    write_file("config.json", config, sizeof config - 1);
    loads(NULL);
    whole();
    broken();
    fuzz();
    remove_file("model.safetensors");
    remove_file("config.json");
    rmdir(dir);
    return done_testing();
}
