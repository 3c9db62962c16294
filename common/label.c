/* label.c - a model's name from its path. */
#include "topt_label.h"

#include <stdio.h>
#include <string.h>

static int is_edge(char c)
{
    return c == '/' || c == '\'';
}

/* The name of the repository where 'path' is a snapshot in the Hugging Face cache, whose folder has
 * it after the owner's: .../models--Qwen--Qwen3-8B/snapshots/HASH/config.json. */
static int repository(const char *path, char ret[TOPT_LABEL])
{
    const char *at = strstr(path, "/models--"), *end = at ? strchr(at + 1, '/') : NULL;
    if (!end || strncmp(end, "/snapshots/", strlen("/snapshots/")))
        return 0;
    const char *name = at + strlen("/models--");
    for (const char *p = name; p + 2 < end; p++)
        if (p[0] == '-' && p[1] == '-')
            name = p + 2;
    snprintf(ret, TOPT_LABEL, "%.*s", (int)(end - name), name);
    return 1;
}

/* The last part of 'path', or of config.json the one before it. */
static void last_part(const char *path, char ret[TOPT_LABEL])
{
    size_t end = strlen(path);
    for (int pass = 0; pass < 2; pass++) {
        while (end && is_edge(path[end - 1]))
            end--;
        size_t start = end;
        while (start && !is_edge(path[start - 1]))
            start--;
        snprintf(ret, TOPT_LABEL, "%.*s", (int)(end - start), path + start);
        if (strcmp(ret, "config.json") || !start)
            return;
        end = start;
    }
}

void topt_label(const char *path, char ret[TOPT_LABEL])
{
    static const char *const endings[] = {".onnx", ".json", ".config",
                                          ".sh",   ".txt",  ".args"};
    if (!repository(path, ret))
        last_part(path, ret);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char *dot = strrchr(ret, '.');
        if (dot && dot > ret && !strcmp(dot, endings[i])) {
            *dot = '\0';
            i = (size_t)-1; /* of what is left, once more */
        }
    }
    if (!*ret || strchr(" .", *ret))
        snprintf(ret, TOPT_LABEL, "model");
}
