/* test_hub.c - which file is read of what a user calls a model. */
#include "tap.h"
#include "topt_hub.h"
#include "topt_label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/topt-hub.XXXXXX";

static const char *at(const char *name)
{
    static char path[2][300];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void make_file(const char *name)
{
    FILE *f = fopen(at(name), "w");
    if (!f)
        abort();
    fputs("{}", f);
    fclose(f);
}

/* What it reads of 'path' ends in 'file', and is called 'name'. */
static void reads(const char *path, const char *file, const char *name)
{
    char got[TOPT_HUB_PATH] = "", label[TOPT_LABEL];
    struct topt_error err = {0};
    int rc = topt_hub_config(path, got, &err);
    size_t n = strlen(got), k = strlen(file);
    topt_label(got, label);
    ok(!rc && n >= k && !strcmp(got + n - k, file) && !strcmp(label, name),
       "'%s' is '%s', called %s %s", path, got, label, err.text);
}

static void refuses(const char *path, const char *words)
{
    char got[TOPT_HUB_PATH];
    struct topt_error err = {0};
    ok(topt_hub_config(path, got, &err) && strstr(err.text, words), "'%s': %s", path,
       err.text);
}

int main(void)
{
    static const char *const folders[] = {"mine",
                                          "hub",
                                          "hub/models--org--eight-b",
                                          "hub/models--org--eight-b/refs",
                                          "hub/models--org--eight-b/snapshots",
                                          "hub/models--org--eight-b/snapshots/9c9f",
                                          "hub/models--org--bare",
                                          "hub/models--org--bare/snapshots",
                                          "hub/models--org--bare/snapshots/1"};
    if (!mkdtemp(root))
        abort();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        mkdir(at(folders[i]), 0700);
    make_file("mine/config.json");
    make_file("hub/models--org--eight-b/snapshots/9c9f/config.json");
    setenv("HF_HUB_CACHE", at("hub"), 1);
    reads(at("mine"), "mine/config.json", "mine");
    reads(at("mine/"), "mine/config.json", "mine");
    reads(at("mine/config.json"), "mine/config.json", "mine");
    reads("org/eight-b", "snapshots/9c9f/config.json", "eight-b");
    reads(at("hub/models--org--eight-b"), "snapshots/9c9f/config.json", "eight-b");
    reads("x.json", "x.json", "x");
    ok(!chdir(at("mine")), "in a folder");
    reads(".", "mine/config.json", "mine");
    reads("./", "mine/config.json", "mine");
    reads("../mine/.", "mine/config.json", "mine");
    reads("config.json", "config.json", "config");
    refuses("org/nine-b", "huggingface-cli download org/nine-b config.json");
    refuses("org/bare", "huggingface-cli download org/bare config.json");
    char unused[TOPT_HUB_PATH];
    struct topt_error err = {0};
    is_int(topt_hub_refuse("models/llama.json", &err), 0, "a file's name is no id");
    ok(!chdir("/"), "out of it");
    ok(topt_hub_find("../mine", unused), "nor is a path");
    char line[400];
    snprintf(line, sizeof line, "rm -r '%s'", root);
    ok(!system(line), "and all is gone");
    return done_testing();
}
