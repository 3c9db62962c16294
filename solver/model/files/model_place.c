/* model_place.c - from what a user calls a model to the file that says what it is. */
#include "model_place.h"
#include "topt_hub.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_there(const char *dir, const char *name)
{
    char path[TOPT_PLACE];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n < (int)sizeof path && !stat(path, &st);
}

static int join(char ret[TOPT_PLACE], const char *dir, const char *name,
                struct topt_error *err)
{
    size_t n = strlen(dir);
    int k =
        snprintf(ret, TOPT_PLACE, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
    return k < TOPT_PLACE ? 0
                          : topt_fail(err, TOPT_ERR_INVAL, "a model's path is too long");
}

/* ---- folders ----------------------------------------------------------------------- */

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* What a folder without a config is, by what is in it. */
static int refuse_folder(const char *dir, struct topt_error *err)
{
    const char *holds = "no config.json";
    DIR *d = opendir(dir);
    if (is_there(dir, "model_index.json")) {
        if (d)
            closedir(d);
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.200s' is a diffusers pipeline (model_index.json); give the "
                         "folder of one of its parts, such as %.200s/transformer or "
                         "%.200s/unet",
                         dir, dir, dir);
    }
    for (struct dirent *e; d && (e = readdir(d));) {
        if (ends_in(e->d_name, ".gguf"))
            holds = "weights of llama.cpp (.gguf) and no config.json; give that of the "
                    "model they were made from";
        else if (ends_in(e->d_name, ".safetensors") || ends_in(e->d_name, ".bin"))
            holds = "weights and no config.json, which belongs beside them";
    }
    if (d)
        closedir(d);
    return topt_fail(err, TOPT_ERR_NOTFOUND, "'%.200s' has %s", dir, holds);
}

int topt_model_place_weights(const char *dir)
{
    int weights = is_there(dir, "model.safetensors.index.json");
    if (is_there(dir, "config.json") || is_there(dir, "adapter_config.json") ||
        is_there(dir, "model_index.json") || is_there(dir, "snapshots"))
        return 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        weights |= ends_in(e->d_name, ".safetensors");
    if (d)
        closedir(d);
    return weights;
}

int topt_model_place_beside(const char *path, char ret[TOPT_PLACE])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 0;
    struct stat st;
    return snprintf(ret, TOPT_PLACE, "%.*sconfig.json", n, path) < TOPT_PLACE &&
           !stat(ret, &st);
}

/* What a diffusers pipeline trains: its transformer, or its UNet. */
static int part_of_pipeline(const char *dir, char ret[TOPT_PLACE])
{
    static const char *const parts[] = {"transformer", "unet", NULL};
    char leaf[40];
    for (int i = 0; parts[i] && is_there(dir, "model_index.json"); i++) {
        snprintf(leaf, sizeof leaf, "%s/config.json", parts[i]);
        if (is_there(dir, leaf) &&
            snprintf(ret, TOPT_PLACE, "%s/%s", dir, parts[i]) < TOPT_PLACE)
            return 1;
    }
    return 0;
}

static int in_folder(const char *dir, char ret[TOPT_PLACE], char ret_dir[TOPT_PLACE],
                     struct topt_error *err)
{
    char snapshot[TOPT_PLACE], named[TOPT_PLACE];
    topt_hub_named(dir, named);
    const char *at = named;
    if (is_there(dir, "snapshots") && !topt_hub_snapshot(dir, snapshot))
        at = snapshot;
    if (part_of_pipeline(at, ret_dir))
        return join(ret, ret_dir, "config.json", err);
    const char *file = is_there(at, "config.json")           ? "config.json"
                       : is_there(at, "adapter_config.json") ? "adapter_config.json"
                                                             : NULL;
    if (!file)
        return refuse_folder(at == named ? dir : at, err);
    snprintf(ret_dir, TOPT_PLACE, "%s", at);
    return join(ret, at, file, err);
}

/* What is read until it ends, and may not; what the shell or a caller opened is known to
 * end. */
static int refuse_endless(const char *path, const struct stat *st, struct topt_error *err)
{
    if (!strncmp(path, "/dev/fd/", 8) || !strcmp(path, "/dev/stdin") ||
        !strncmp(path, "/proc/self/fd/", 14))
        return 0;
    const char *kind = S_ISFIFO(st->st_mode)   ? "a named pipe"
                       : S_ISCHR(st->st_mode)  ? "a device"
                       : S_ISBLK(st->st_mode)  ? "a device"
                       : S_ISSOCK(st->st_mode) ? "a socket"
                                               : NULL;
    return kind ? topt_fail(err, TOPT_ERR_INVAL, "'%.200s' is %s; a file is needed", path,
                            kind)
                : 0;
}

int topt_model_place(const char *path, char ret[TOPT_PLACE], char ret_dir[TOPT_PLACE],
                     struct topt_error *err)
{
    struct stat st;
    ret_dir[0] = '\0';
    if (strlen(path) + sizeof "/adapter_config.json" > TOPT_PLACE)
        return topt_fail(err, TOPT_ERR_INVAL, "a model's path has %zu bytes, too many",
                         strlen(path));
    if (!strcmp(path, "-") || stat(path, &st)) {
        char cached[TOPT_PLACE];
        if (strcmp(path, "-") && !topt_hub_find(path, cached))
            return in_folder(cached, ret, ret_dir, err);
        snprintf(ret, TOPT_PLACE, "%s", path);
        return topt_hub_refuse(path, err);
    }
    if (S_ISDIR(st.st_mode))
        return in_folder(path, ret, ret_dir, err);
    if (ends_in(path, ".safetensors") && topt_model_place_beside(path, ret)) {
        int n = (int)(strlen(ret) - strlen("config.json"));
        snprintf(ret_dir, TOPT_PLACE, "%.*s", n ? n : 1, n ? ret : ".");
        return 0;
    }
    snprintf(ret, TOPT_PLACE, "%s", path);
    return refuse_endless(path, &st, err);
}
