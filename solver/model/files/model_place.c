/* model_place.c - from what a user calls a model to the file that says what it is. */
#include "model_place.h"

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

/* ---- a hub's cache ----------------------------------------------------------------- */

/* The snapshot that refs/main names, or the only one. */
static int find_snapshot(const char *repo, char ret[TOPT_PLACE])
{
    char path[TOPT_PLACE], hash[80] = "";
    if (snprintf(path, sizeof path, "%s/refs/main", repo) >= (int)sizeof path)
        return -1;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%79[0-9a-zA-Z]", hash) != 1)
        hash[0] = '\0';
    if (f)
        fclose(f);
    if (!hash[0]) {
        snprintf(path, sizeof path, "%.4000s/snapshots", repo);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] != '.')
                snprintf(hash, sizeof hash, "%.79s", e->d_name);
        if (d)
            closedir(d);
    }
    if (!hash[0] || snprintf(ret, TOPT_PLACE, "%.3900s/snapshots/%s", repo, hash) < 0)
        return -1;
    return is_there(ret, "config.json") || is_there(ret, "adapter_config.json") ||
                   is_there(ret, "model_index.json")
               ? 0
               : -1;
}

/* "org/name". */
static int is_hub_id(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && slash != name && slash[1] && !strchr(slash + 1, '/') &&
           name[0] != '.' && name[0] != '~';
}

/* In the folder that the hub's tools keep what they download in. */
static int find_cached(const char *name, char ret[TOPT_PLACE])
{
    char repo[TOPT_PLACE], root[TOPT_PLACE];
    const char *cache = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME");
    const char *slash = strchr(name, '/'), *user = getenv("HOME");
    if (!is_hub_id(name))
        return -1;
    if (cache)
        snprintf(root, sizeof root, "%s", cache);
    else if (home)
        snprintf(root, sizeof root, "%.4000s/hub", home);
    else
        snprintf(root, sizeof root, "%.4000s/.cache/huggingface/hub", user ? user : "");
    int n = snprintf(repo, sizeof repo, "%.3800s/models--%.*s--%.200s", root,
                     (int)(slash - name), name, slash + 1);
    return n < (int)sizeof repo ? find_snapshot(repo, ret) : -1;
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
    char snapshot[TOPT_PLACE];
    const char *at = dir;
    if (is_there(dir, "snapshots") && !find_snapshot(dir, snapshot))
        at = snapshot;
    if (part_of_pipeline(at, ret_dir))
        return join(ret, ret_dir, "config.json", err);
    const char *file = is_there(at, "config.json")           ? "config.json"
                       : is_there(at, "adapter_config.json") ? "adapter_config.json"
                                                             : NULL;
    if (!file)
        return refuse_folder(at, err);
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

/* What is neither a file nor cached, where its name may be a hub's: a folder of that name
 * would be there, and a file would have an ending. */
static int refuse_missing_id(const char *path, struct topt_error *err)
{
    static const char *const endings[] = {".json", ".onnx", ".sh",          ".py", ".txt",
                                          ".args", ".pt",   ".safetensors", NULL};
    char folder[TOPT_PLACE];
    struct stat st;
    if (!is_hub_id(path))
        return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(strchr(path, '/') - path), path);
    for (int i = 0; endings[i]; i++)
        if (ends_in(path, endings[i]) || !stat(folder, &st))
            return 0;
    return topt_fail(
        err, TOPT_ERR_NOTFOUND,
        "'%.200s' is no file, and its config.json is not in the Hugging Face "
        "cache: huggingface-cli download %.200s config.json",
        path, path);
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
        if (strcmp(path, "-") && !find_cached(path, cached))
            return in_folder(cached, ret, ret_dir, err);
        snprintf(ret, TOPT_PLACE, "%s", path);
        return refuse_missing_id(path, err);
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
