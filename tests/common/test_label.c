/* test_label.c - what models are called after their paths. */
#include "tap.h"
#include "topt_label.h"

#include <string.h>

int main(void)
{
    static const struct {
        const char *path, *label;
    } cases[] = {
        {"Llama-3.1-8B/config.json", "Llama-3.1-8B"},
        {"'/data/Llama-3.1-8B/config.json'", "Llama-3.1-8B"},
        {"/data/Llama-3.1-8B/", "Llama-3.1-8B"},
        {"Llama-3.1-8B", "Llama-3.1-8B"},
        {"x/Meta-Llama.config.json", "Meta-Llama"},
        {"config.json", "config"},
        {"/config.json", "model"},
        {"./config.json", "model"},
        {"digits.onnx", "digits"},
        {"'/h/hub/models--Qwen--Qwen3-8B/snapshots/9c9/config.json'", "Qwen3-8B"},
        {"/h/hub/models--gpt2/snapshots/607/config.json", "gpt2"},
        {"v1.2.onnx", "v1.2"},
        {"a.json.config", "a"},
        {"pretrain_gpt.sh", "pretrain_gpt"},
        {"x/llama.args", "llama"},
        {"-", "-"},
        {"", "model"},
        {" ", "model"},
        {".hidden", "model"},
        {"///", "model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char once[TOPT_LABEL], twice[TOPT_LABEL];
        topt_label(cases[i].path, once);
        ok(!strcmp(once, cases[i].label), "'%s' is '%s'", cases[i].path, once);
        topt_label(once, twice);
        ok(!strcmp(once, twice), "whose label is '%s'", twice);
    }
    char path[400], label[TOPT_LABEL];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    topt_label(path, label);
    is_int((int64_t)strlen(label), TOPT_LABEL - 1, "a long one is cut");
    return done_testing();
}
