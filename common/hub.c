/* hub.c - the folder in which Hugging Face's tools keep what they download.
 *
 *     $HF_HUB_CACHE/models--ORG--NAME/refs/main         the hash of a snapshot
 *                                     /snapshots/HASH/  its files */
#include "topt_hub.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_there(const char *dir, const char *name)
{
    char path[TOPT_HUB_PATH];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n < (int)sizeof path && !stat(path, &st);
}

int topt_hub_snapshot(const char *repository, char ret[TOPT_HUB_PATH])
{
    char path[TOPT_HUB_PATH], hash[80] = "";
    if (snprintf(path, sizeof path, "%s/refs/main", repository) >= (int)sizeof path)
        return -1;
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%79[0-9a-zA-Z]", hash) != 1)
        hash[0] = '\0';
    if (f)
        fclose(f);
    if (!hash[0]) {
        snprintf(path, sizeof path, "%.4000s/snapshots", repository);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));)
            if (e->d_name[0] != '.')
                snprintf(hash, sizeof hash, "%.79s", e->d_name);
        if (d)
            closedir(d);
    }
    if (!hash[0] ||
        snprintf(ret, TOPT_HUB_PATH, "%.3900s/snapshots/%s", repository, hash) < 0)
        return -1;
    return is_there(ret, "config.json") || is_there(ret, "adapter_config.json") ||
                   is_there(ret, "model_index.json")
               ? 0
               : -1;
}

/* "org/name". */
static int is_id(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash && slash != name && slash[1] && !strchr(slash + 1, '/') &&
           name[0] != '.' && name[0] != '~';
}

int topt_hub_find(const char *id, char ret[TOPT_HUB_PATH])
{
    char repository[TOPT_HUB_PATH], root[TOPT_HUB_PATH];
    const char *cache = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME");
    const char *slash = strchr(id, '/'), *user = getenv("HOME");
    if (!is_id(id))
        return -1;
    if (cache)
        snprintf(root, sizeof root, "%s", cache);
    else if (home)
        snprintf(root, sizeof root, "%.4000s/hub", home);
    else
        snprintf(root, sizeof root, "%.4000s/.cache/huggingface/hub", user ? user : "");
    int n = snprintf(repository, sizeof repository, "%.3800s/models--%.*s--%.200s", root,
                     (int)(slash - id), id, slash + 1);
    return n < (int)sizeof repository ? topt_hub_snapshot(repository, ret) : -1;
}

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* A folder of the id's first part would be here were it a path, and a file would have an
 * ending. */
int topt_hub_refuse(const char *path, struct topt_error *err)
{
    static const char *const endings[] = {".json", ".onnx", ".sh",          ".py", ".txt",
                                          ".args", ".pt",   ".safetensors", NULL};
    char folder[TOPT_HUB_PATH];
    struct stat st;
    if (!is_id(path))
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

void topt_hub_named(const char *folder, char ret[TOPT_HUB_PATH])
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    int dots = (n == 1 && folder[0] == '.') ||
               (n > 1 && !strncmp(folder + n - 2, "/.", 2)) ||
               (n > 1 && !strncmp(folder + n - 2, "..", 2));
    char *whole = dots ? realpath(folder, NULL) : NULL;
    snprintf(ret, TOPT_HUB_PATH, "%.*s", whole ? TOPT_HUB_PATH : (int)n,
             whole ? whole : folder);
    free(whole);
}

int topt_hub_config(const char *path, char ret[TOPT_HUB_PATH], struct topt_error *err)
{
    static const char file[] = "/config.json";
    char folder[TOPT_HUB_PATH] = "";
    struct stat st;
    if (strlen(path) + sizeof file > sizeof folder)
        return topt_fail(err, TOPT_ERR_INVAL, "a model's path has %zu bytes, too many",
                         strlen(path));
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
        if (!is_there(path, "snapshots") || topt_hub_snapshot(path, folder))
            topt_hub_named(path, folder);
    } else if (stat(path, &st) && topt_hub_find(path, folder) &&
               topt_hub_refuse(path, err)) {
        return -1;
    }
    int n = folder[0] ? snprintf(ret, TOPT_HUB_PATH, "%s%s", folder, file)
                      : snprintf(ret, TOPT_HUB_PATH, "%s", path);
    return n < TOPT_HUB_PATH
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "a model's path is too long");
}
