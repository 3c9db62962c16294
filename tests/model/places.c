/* What stands where a model is looked for: files that are none are named for what they
 * are, folders and caches are searched, and what Python writes is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"
#include "topt_model.h"

static char root[] = "/tmp/topt_places_XXXXXX";

static const char *at(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void put(const char *name, const char *bytes, size_t len)
{
    FILE *f = fopen(at(name), "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f)) {
        printf("Bail out! can't write %s\n", name);
        exit(1);
    }
}

static void write_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void refuses(const char *path, const char *says)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load(path, NULL, &err);
    ok(!m && strstr(err.text, says) && !strchr(err.text, '\n'), "%s: %s", says,
       m ? "(taken)" : err.text);
    topt_model_destroy(m);
}

static struct topt_model *takes(const char *path, const struct topt_import_options *o,
                                const char *what)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load(path, o, &err);
    ok(m != NULL, "%s is taken %s", what, err.text);
    return m;
}

#define TINY                                                                             \
    "\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"              \
    "\"num_key_value_heads\":2,\"intermediate_size\":48,\"vocab_size\":50"

static void files(void)
{
    struct topt_model *m;
    write_text("lfs.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
    write_text("m.gguf", "GGUF\3");
    put("u16.json", "\xff\xfe{\0}\0", 6);
    write_text("page.json", "<!DOCTYPE html>");
    write_text("unet.json", "{\"_class_name\":\"AutoencoderKL\"}");
    refuses(at("lfs.json"), "pointer of Git LFS");
    refuses(at("m.gguf"), "GGUF");
    refuses(at("u16.json"), "UTF-16");
    refuses(at("page.json"), "web page");
    refuses(
        at("unet.json"),
        "AutoencoderKL, an autoencoder, which makes pixels of latents; read are FluxT");
    mkfifo(at("pipe"), 0600);
    refuses(at("pipe"), "a named pipe");
    refuses("/dev/zero", "a device");
    write_text("bom.json", "\xef\xbb\xbf{\"model_type\":\"llama\"," TINY "}");
    m = takes(at("bom.json"), NULL, "a file that begins with a mark of UTF-8");
    topt_model_destroy(m);
    write_text("python.json", "{\"model_type\":\"llama\"," TINY
                              ",\"limit\":[0.0,Infinity,-Infinity],\"x\":NaN,\"y\":"
                              "\"NaN \\\" Infinity\"}");
    m = takes(at("python.json"), NULL, "what Python writes for infinity");
    topt_model_destroy(m);
}

/* Of a PEFT folder's lora_dropout each adapter keeps a mask, and those but the first of one input, and those whose input attention
 * keeps, a copy. */
static void dropped(void)
{
    static const struct {
        const char *adapter;
        int copy;
    } of[] = {{"h0.qkv.q_proj.lora_a", 0},
              {"h0.qkv.v_proj.lora_a", 1},
              {"h0.out.lora_a", 1},
              {"h1.qkv.q_proj.lora_a", 0}};
    write_text("adapters/adapter_config.json",
               "{\"peft_type\":\"LORA\",\"r\":8,\"lora_dropout\":0.05,"
               "\"target_modules\":[\"q_proj\",\"v_proj\",\"o_proj\"],"
               "\"base_model_name_or_path\":\"org/base\"}");
    struct topt_model *m = takes(at("adapters"), NULL, "adapters with dropout");
    for (size_t i = 0; m && i < sizeof of / sizeof *of; i++) {
        int a = topt_model_find(m, of[i].adapter);
        ok(a >= 0 && m->op[a].attrs->masked && m->op[a].attrs->written == of[i].copy,
           "%s: a mask%s", of[i].adapter, of[i].copy ? " and a copy" : "");
    }
    topt_model_destroy(m);
    struct topt_import_options with = {.train = "lora:8:q_proj"};
    m = takes(at("adapters"), &with, "... and those of --train in their place");
    int a = m ? topt_model_find(m, "h0.qkv.q_proj.lora_a") : -1;
    ok(a >= 0 && !m->op[a].attrs->masked, "... drop nothing");
    topt_model_destroy(m);
}

static void folders(void)
{
    mkdir(at("pipeline"), 0700);
    write_text("pipeline/model_index.json", "{}");
    refuses(at("pipeline"), "diffusers pipeline");
    mkdir(at("pipeline/transformer"), 0700);
    write_text("pipeline/transformer/config.json",
               "{\"_class_name\":\"SD3Transformer2DModel\",\"num_layers\":2}");
    struct topt_model *part = takes(at("pipeline"), NULL, "a pipeline's transformer");
    ok(part && part->note && strstr(part->note, "text's encoders"),
       "... tells that the rest is left out");
    topt_model_destroy(part);
    mkdir(at("empty"), 0700);
    refuses(at("empty"), "no config.json");
    mkdir(at("weights"), 0700);
    write_text("weights/pytorch_model.bin", "");
    refuses(at("weights"), "weights and no config.json");
    mkdir(at("adapters"), 0700);
    write_text("adapters/adapter_config.json",
               "{\"peft_type\":\"LORA\",\"r\":8,\"target_modules\":[\"q_proj\"],"
               "\"base_model_name_or_path\":\"org/base\"}");
    refuses(at("adapters"), "huggingface-cli download org/base config.json");
    mkdir(at("hub"), 0700);
    mkdir(at("hub/models--org--base"), 0700);
    mkdir(at("hub/models--org--base/snapshots"), 0700);
    mkdir(at("hub/models--org--base/snapshots/abc"), 0700);
    write_text("hub/models--org--base/snapshots/abc/config.json",
               "{\"model_type\":\"llama\"," TINY "}");
    setenv("HF_HUB_CACHE", at("hub"), 1);
    struct topt_model *m = takes("org/base", NULL, "org/name in a hub's cache");
    topt_model_destroy(m);
    m = takes(at("hub/models--org--base"), NULL, "... and its folder");
    topt_model_destroy(m);
    m = takes(at("adapters"), NULL, "adapters whose model is in the cache");
    struct topt_model_stats stats = {0};
    if (m)
        topt_model_stats(m, &stats);
    is_int(stats.trained, 2 * 8 * (32 + 32), "... train what they say");
    topt_model_destroy(m);
    static const struct {
        const char *members, *says; /* NULL: taken */
        int64_t trained;
    } cases[] = {
        {"\"target_modules\":\".*\\\\.(?:q_proj|v_proj)\"", NULL, 2 * 8 * (64 + 48)},
        {"\"target_modules\":\"all-linear\"", NULL, 2 * 8 * (2 * 64 + 2 * 48 + 3 * 80)},
        {"\"target_modules\":\"model.layers.0.*q_proj\"", "takes 1 of 2 modules q_proj",
         0},
        {"\"target_modules\":\"(?=q)q_proj\"", "a pattern that is not read", 0},
        {"\"target_modules\":\"nonesuch\"", "no linear map of the model is named", 0},
        {"\"target_modules\":[\"q_proj\"],\"modules_to_save\":[\"lm_head\"]",
         "modules_to_save is set", 0},
        {"\"target_modules\":[\"q_proj\"],\"rank_pattern\":{\"q_proj\":4}",
         "rank_pattern is set", 0},
        {"\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[0]",
         "layers_to_transform is set", 0},
        {"\"target_modules\":[\"q_proj\"],\"modules_to_save\":null,\"rank_pattern\":{},"
         "\"layers_to_transform\":null,\"bias\":\"none\",\"use_dora\":false",
         NULL, 2 * 8 * 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        snprintf(
            text, sizeof text,
            "{\"peft_type\":\"LORA\",\"r\":8,\"base_model_name_or_path\":\"org/base\","
            "%s}",
            cases[i].members);
        write_text("adapters/adapter_config.json", text);
        if (cases[i].says) {
            refuses(at("adapters"), cases[i].says);
            continue;
        }
        m = takes(at("adapters"), NULL, cases[i].members);
        if (m)
            topt_model_stats(m, &stats);
        is_int(stats.trained, cases[i].trained, "... and trains as much");
        topt_model_destroy(m);
    }
    static const struct {
        const char *member, *note;
    } left_out[] = {{"\"use_dora\":true", "DoRA's magnitudes"},
                    {"\"lora_dropout\":0.05", "of lora_dropout the mask"}};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"peft_type\":\"LORA\",\"r\":8,\"target_modules\":[\"q_proj\"],"
                 "%s,\"base_model_name_or_path\":\"org/base\"}",
                 left_out[i].member);
        write_text("adapters/adapter_config.json", text);
        m = takes(at("adapters"), NULL, left_out[i].member);
        ok(m && m->note && strstr(m->note, left_out[i].note), "... tells: %s",
           left_out[i].note);
        topt_model_destroy(m);
    }
    dropped();
}

/* What is asked for of a config. */
static void asked(void)
{
    struct topt_import_options as = {.as = "qwen3"}, part = {.part = "text"},
                               other = {.part = "vision"}, slots = {.capacity = 1.5};
    struct topt_error err = {0};
    write_text("new.json", "{\"model_type\":\"fresh\"," TINY
                           ",\"head_dim\":8,\"rms_norm_eps\":1e-6,\"hidden_act\":"
                           "\"silu\",\"attention_bias\":false,\"use_sliding_window\":"
                           "false,\"max_window_layers\":2}");
    refuses(at("new.json"), "say --as qwen3");
    struct topt_model *m = takes(at("new.json"), &as, "a family by another's name");
    ok(m && !strcmp(m->family, "qwen3"), "... is that one");
    topt_model_destroy(m);
    write_text("parts.json",
               "{\"model_type\":\"fresh_vl\",\"vision_config\":{\"model_type\":\"v\"},"
               "\"text_config\":{\"model_type\":\"mixtral\"," TINY "}}");
    m = takes(at("parts.json"), NULL, "the text of several parts");
    ok(m && strstr(m->note, "vision_config (v)"), "... tells what it leaves out: %s",
       m ? m->note : "");
    topt_model_destroy(m);
    m = takes(at("parts.json"), &part, "... as was asked");
    ok(m && !strstr(m->note, "vision_config"), "... which it need not tell");
    topt_model_destroy(m);
    m = topt_model_load(at("parts.json"), &other, &err);
    ok(!m && strstr(err.text, "--part vision"), "another part is not: %s", err.text);
    m = takes(at("parts.json"), &slots, "slots of experts");
    int route = m ? topt_model_find(m, "h0.route") : -1;
    ok(route >= 0 && m->op[route].attrs->capacity > 1.4, "... are as many as asked for");
    topt_model_destroy(m);
    m = takes(at("parts.json"), NULL, "else");
    route = m ? topt_model_find(m, "h0.route") : -1;
    ok(route >= 0 && m->op[route].attrs->capacity < 1.1 &&
           strstr(m->note, "none is dropped"),
       "... tokens are balanced, and that is told");
    topt_model_destroy(m);
}

/* ---- hostile files ----------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void refuses_soon(const char *path, const char *says)
{
    double from = seconds();
    refuses(path, says);
    ok(seconds() - from < 1, "... within a second: %.2f s", seconds() - from);
}

/* So many times the text, between a head and a tail. */
static void write_many(const char *name, const char *head, const char *text, size_t times,
                       const char *tail)
{
    size_t n = strlen(text), a = strlen(head), b = strlen(tail);
    char *all = malloc(a + n * times + b);
    if (!all)
        exit(1);
    memcpy(all, head, a);
    for (size_t i = 0; i < times; i++)
        memcpy(all + a + i * n, text, n);
    memcpy(all + a + n * times, tail, b);
    put(name, all, a + n * times + b);
    free(all);
}

static void hostile(void)
{
    enum { TEN_MB = 10 << 20 };
    write_many("deep.json", "", "{\"a\":", TEN_MB / 5, "");
    refuses_soon(at("deep.json"), "has JSON values more than 64 deep");
    write_many("lists.json", "{\"model_type\":\"llama\",\"a\":", "[", TEN_MB, "");
    refuses_soon(at("lists.json"), "has JSON values more than 64 deep");
    write_many("wide.json", "{\"model_type\":\"llama\",\"a\":[", "[],", 2 * TEN_MB,
               "0]}");
    refuses_soon(at("wide.json"), "has more than 8388608 JSON values");
    write_text("layers.json", "{\"model_type\":\"llama\",\"hidden_size\":32,"
                              "\"num_hidden_layers\":1000000}");
    refuses_soon(at("layers.json"), "num_hidden_layers");
    write_text("stages.json", "{\"model_type\":\"resnet\",\"depths\":[1000000,1,1,1]}");
    refuses_soon(at("stages.json"), "depths[0] must be 1..");
    write_text("deep.json", "{\"model_type\":\"efficientnet\",\"depth_coefficient\":64,"
                            "\"num_block_repeats\":[256,256,256,256,256,256,256]}");
    refuses_soon(at("deep.json"), "114688 layers, more than 256");
    write_many("ops.json",
               "{\"format\":\"topt-model/1\",\"name\":\"n\",\"batch\":1,"
               "\"seq\":1,\"ops\":[0",
               ",0", 1000000, "]}");
    refuses_soon(at("ops.json"), "ops");
    write_text("twice.json", "{\"model_type\":\"llama\"," TINY ",\"vocab_size\":51}");
    refuses_soon(at("twice.json"), "duplicate");
    if (symlink(at("loop.json"), at("loop.json")))
        exit(1);
    refuses_soon(at("loop.json"), "symbolic links");
    mkdir(at("own"), 0700);
    char own[400];
    snprintf(own, sizeof own,
             "{\"peft_type\":\"LORA\",\"base_model_name_or_path\":\"%s\"}", at("own"));
    write_text("own/adapter_config.json", own);
    refuses_soon(at("own"), "are adapters themselves");
}

int main(void)
{
    if (!mkdtemp(root)) {
        printf("Bail out! no folder to write to\n");
        return 1;
    }
    files();
    folders();
    hostile();
    asked();
    char clean[80];
    snprintf(clean, sizeof clean, "rm -rf '%s'", root);
    ok(!system(clean), "the folder is gone");
    return done_testing();
}
