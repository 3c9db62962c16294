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

/* A Llama of one layer, 8 wide. */
static const char config[] =
    "{\"model_type\":\"llama\",\"hidden_size\":8,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"intermediate_size\":4,\"vocab_size\":10,"
    "\"max_position_embeddings\":16}";
#define T(name, shape, from, to)                                                         \
    "'" name "':{'dtype':'F32','shape':" shape ",'data_offsets':[" #from "," #to "]}"

/* The tensors of its checkpoint, with what a test changes: one left out, one more, one with its
 * dimensions exchanged, something before the names, so many letters of them cut. */
struct change {
    const char *without, *with, *turned, *before;
    size_t cut;
};

struct header {
    char text[1 << 14];
    size_t n;
    int64_t bytes;
    struct change change;
};

static void put(struct header *h, const char *name, const int64_t *dim, int ndim)
{
    int64_t bytes = 4;
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n,
                             "%s'%s%s':{'dtype':'F32','shape':[", h->n > 1 ? "," : "",
                             h->change.before ? h->change.before : "",
                             name + (strstr(name, "lm_head") ? 0 : h->change.cut));
    for (int i = 0; i < ndim; i++) {
        bytes *= dim[i];
        h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%s%lld",
                                 i ? "," : "", (long long)dim[i]);
    }
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n,
                             "],'data_offsets':[%lld,%lld]}", (long long)h->bytes,
                             (long long)(h->bytes + bytes));
    h->bytes += bytes;
}

static int put_weight(void *ctx, const struct topt_weight *w)
{
    struct header *h = ctx;
    const struct change *c = &h->change;
    int64_t dim[2] = {w->dim[0], w->dim[1]};
    if (c->without && !strcmp(w->name, c->without))
        return 0;
    if (c->turned && !strcmp(w->name, c->turned))
        dim[0] = w->dim[1], dim[1] = w->dim[0];
    put(h, w->name, dim, w->ndim);
    return 0;
}

static struct header header_of(const struct change *change)
{
    struct topt_error err = {0};
    struct header h = {.text = "{", .n = 1, .change = *change};
    struct topt_model *m =
        topt_model_import(config, sizeof config - 1, "config", NULL, &err);
    if (!m || topt_model_weights(m, put_weight, &h))
        exit(1);
    topt_model_destroy(m);
    if (change->with)
        put(&h, change->with, (int64_t[]){2}, 1);
    memcpy(h.text + h.n, "}", 2);
    return h;
}

static void write_changed(const struct change *change)
{
    struct header h = header_of(change);
    write_weights("model.safetensors", h.text, (size_t)h.bytes);
}

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
    write_changed(&(struct change){0});
    loads(NULL);
    write_changed(&(struct change){.without = "lm_head.weight"});
    loads("1 missing, 'lm_head.weight'");
    write_changed(&(struct change){.with = "model.layers.0.self_attn.q_proj.bias"});
    loads("1 not of this model, 'model.layers.0.self_attn.q_proj.bias'");
    write_changed(&(struct change){.with = "model.layers.1.input_layernorm.weight"});
    loads("1 not of this model, 'model.layers.1.");
    write_changed(
        &(struct change){.with = "model.layers.0.self_attn.rotary_emb.inv_freq"});
    loads(NULL);
    write_changed(&(struct change){.turned = "model.layers.0.mlp.down_proj.weight"});
    loads("1 of another shape, 'model.layers.0.mlp.down_proj.weight' [4, 8] for [8, 4]");
    write_changed(&(struct change){.without = "model.norm.weight",
                                   .with = "model.final.weight",
                                   .turned = "lm_head.weight"});
    loads(
        "1 missing, 'model.norm.weight'; 1 not of this model, 'model.final.weight'; 1 of "
        "another");
    write_changed(&(struct change){.before = "language_model."});
    loads(NULL);
    write_changed(&(struct change){.cut = 6}); /* "model." */
    loads(NULL);
}

/* Files of 2 GB of nothing, in the place of a config, of weights, of a header: refused unread. */
static void huge(void)
{
    static const int64_t bytes = (int64_t)2 << 30;
    static const char start[] = {0, 0, 0, 64, 0, 0, 0, 0, '{'};
    char path[128];
    write_file("model.safetensors", "", 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (truncate(path, bytes))
        exit(1);
    loads("its header is not valid JSON");
    write_file("model.safetensors", start, sizeof start);
    if (truncate(path, bytes))
        exit(1);
    loads("its header has 1073741824 bytes, more than");
    remove_file("model.safetensors");
    write_file("config.json", "", 0);
    snprintf(path, sizeof path, "%s/config.json", dir);
    if (truncate(path, bytes))
        exit(1);
    loads("larger than the limit");
    write_file("config.json", config, sizeof config - 1);
}

/* The index and the files must name as many; alone its names must be the model's. */
static void indexed(void)
{
    static const char other[] = "{\"metadata\":{},\"weight_map\":{\"a\":\"x\"}}";
    static const char other_here[] = "{\"weight_map\":{\"a\":\"model.safetensors\"}}";
    char index[1 << 14] = "{\"weight_map\":";
    struct header h = header_of(&(struct change){0});
    write_changed(&(struct change){0});
    write_file("model.safetensors.index.json", other, sizeof other - 1);
    loads("1 of 1 files of weights is missing, 'x'");
    write_file("model.safetensors.index.json", other_here, sizeof other_here - 1);
    loads("names 1 tensors, the files have 12");
    write_file("model.safetensors.index.json", other, sizeof other - 1);
    remove_file("model.safetensors");
    loads("12 missing, 'lm_head.weight' first; 1 not of this model, 'a'");
    size_t n = strlen(index);
    for (size_t i = 0; i <= h.n; i++)
        index[n++] = h.text[i] == '\'' ? '"' : h.text[i];
    index[n++] = '}';
    write_file("model.safetensors.index.json", index, n);
    loads(NULL);
    remove_file("model.safetensors.index.json");
}

/* Files that say of how many they are, and one that Git LFS has not fetched. */
static void in_parts(void)
{
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid x\n";
    struct header h = header_of(&(struct change){0});
    write_weights("model-00001-of-00003.safetensors", h.text, (size_t)h.bytes);
    loads("2 of 3 files of weights are missing, 'model-00002-of-00003.safetensors' "
          "first");
    write_file("model-00002-of-00003.safetensors", pointer, sizeof pointer - 1);
    write_file("model-00003-of-00003.safetensors", pointer, sizeof pointer - 1);
    loads(NULL);
    remove_file("model-00001-of-00003.safetensors");
    remove_file("model-00002-of-00003.safetensors");
    remove_file("model-00003-of-00003.safetensors");
}

static void tell(const char *path, struct topt_weights_told *ret)
{
    struct topt_error err = {0};
    ok(topt_weights_alone(path) && !topt_weights_tell(path, ret, &err),
       "weights without a config are told of %s", err.text);
}

/* Weights alone are counted, and no model. */
static void alone(void)
{
    static const char sizes[] =
        "{\"metadata\":{\"total_size\":70},\"weight_map\":{\"a\":\"x\"}}";
    struct topt_weights_told told;
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    write_weights("model.safetensors",
                  "{" T("layers.0.w", "[2,3]", 0, 24) "," T(
                      "layers.11.w", "[2,3]", 24,
                      48) ",'n':{'dtype':'BF16','shape':[5],'data_offsets':[48,58]}}",
                  58);
    ok(!topt_weights_alone(dir) && !topt_weights_alone(path),
       "weights beside a config are not alone");
    remove_file("config.json");
    tell(dir, &told);
    is_int(told.numbers, 17, "... by the numbers");
    is_int(told.bytes, 58, "... the bytes");
    ok(told.nkinds == 2 && !strcmp(told.kind[0].name, "layers.#.w") &&
           told.kind[0].tensors == 2 && told.kind[0].numbers == 12,
       "... and names");
    topt_weights_told_fini(&told);
    tell(path, &told);
    ok(told.ntypes == 2 && !strcmp(told.type[1].name, "BF16") && told.type[1].bytes == 10,
       "... of one file, and types");
    topt_weights_told_fini(&told);
    loads("has weights of 17 numbers and no config.json");
    remove_file("model.safetensors");
    write_file("model.safetensors.index.json", sizes, sizeof sizes - 1);
    tell(dir, &told);
    ok(told.tensors == 1 && told.bytes == 70, "an index alone tells tensors and bytes");
    topt_weights_told_fini(&told);
    remove_file("model.safetensors.index.json");
    write_file("config.json", config, sizeof config - 1);
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

static void fuzz(int rounds)
{
    enum { CAP = 8192 };
    char seed[CAP], file[CAP];
    struct header h = header_of(&(struct change){0});
    size_t n = make_file(h.text, (size_t)h.bytes, seed), from = 1400;
    int bad = 0;
    for (int i = 0; i < rounds; i++) {
        struct topt_error err = {0};
        size_t len = n;
        memcpy(file, seed, n);
        for (size_t k = mutate_below(3) + 1; k > 0 && len > 0; k--)
            len = mutate_once(file, len < from ? len : from, CAP) +
                  (len > from ? len - from : 0);
        write_file("model.safetensors", file, len > CAP ? CAP : len);
        struct topt_model *m = topt_model_load(dir, NULL, &err);
        bad += !m && (!err.text[0] || strchr(err.text, '\n'));
        topt_model_destroy(m);
    }
    is_int(bad, 0, "whatever is in the file, the answer is a model or one line");
}

/* usage: model_safetensors [ROUNDS of damaged files] */
int main(int argc, char **argv)
{
    if (!mkdtemp(dir))
        exit(1);
    write_file("config.json", config, sizeof config - 1);
    loads(NULL);
    whole();
    indexed();
    in_parts();
    alone();
    huge();
    broken();
    fuzz(argc > 1 ? atoi(argv[1]) : 800);
    remove_file("model.safetensors");
    remove_file("config.json");
    rmdir(dir);
    return done_testing();
}
