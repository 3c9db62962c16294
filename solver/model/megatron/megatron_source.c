/* megatron_source.c - files that a script for Megatron-LM takes in: "source FILE", ". FILE".
 *
 * No shell is run, so that what comes before the name of a folder, "$(dirname $0)/" or
 * "${ROOT}/", is taken for the folder of the script itself. */
#include "megatron_source.h"
#include "topt_error.h"
#include "topt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTED = 4, MAX_BYTES = 1 << 20, MAX_PATH_BYTES = 4096, MAX_NAME = 300 };

/* The name on a line that sources a file, without what stands for a folder; 0: it is another
 * line. */
static int sourced(const char *line, size_t len, char ret[MAX_NAME])
{
    static const char *const starts[] = {"source ", ". "};
    size_t at = 0, n = 0, whole;
    for (int i = 0; i < 2 && !n; i++) {
        at = 0;
        while (at < len && strchr(" \t", line[at]))
            at++;
        n = strlen(starts[i]);
        n = len - at > n && !strncmp(line + at, starts[i], n) ? n : 0;
        at += n;
    }
    if (!n)
        return 0;
    while (len > at && strchr(" \t\r\n;\"'", line[len - 1]))
        len--;
    while (at < len && strchr(" \t\"'", line[at]))
        at++;
    whole = at;
    for (size_t i = at; i < len; i++) {
        int ends = strchr(")}`\"", line[i]) && i + 1 < len && line[i + 1] == '/';
        at = ends ? i + 2 : at;
    }
    if (at < len && line[at] == '$') { /* $NAME/file */
        const char *slash = memchr(line + at, '/', len - at);
        at = slash ? (size_t)(slash - line) + 1 : len;
    }
    while (len - at > 2 && !strncmp(line + at, "./", 2))
        at += 2;
    n = strcspn(line + at, " \t\r\n;&|#\"'");
    n = n < len - at ? n : len - at;
    if (memchr(line + at, '$', n)) { /* a name that is not known here */
        at = whole;
        n = len - at;
    }
    if (!n || n >= MAX_NAME)
        return 0;
    snprintf(ret, MAX_NAME, "%.*s", (int)n, line + at);
    return 1;
}

static int add_all(const char *text, size_t len, const char *dir, int depth,
                   struct topt_text *out)
{
    int found = 0;
    for (size_t i = 0; i < len;) {
        const char *end = memchr(text + i, '\n', len - i);
        size_t n = end ? (size_t)(end - text) - i + 1 : len - i, size;
        char name[MAX_NAME], path[MAX_PATH_BYTES];
        struct topt_error unused = {0};
        char *inside = NULL;
        if (depth < MAX_NESTED && sourced(text + i, n, name) &&
            snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path)
            inside = topt_read_file(path, MAX_BYTES, &size, &unused);
        if (inside) {
            add_all(inside, size, dir, depth + 1, out);
            topt_text_put(out, "\n", 1);
            found = 1;
        } else {
            topt_text_put(out, text + i, n);
        }
        free(inside);
        i += n;
    }
    return found;
}

char *topt_megatron_with_sources(const char *text, size_t len, const char *dir,
                                 size_t *ret_len)
{
    struct topt_text out = {0};
    char *ret = NULL;
    if (add_all(text, len, dir, 0, &out) && !out.oom && out.len <= MAX_BYTES) {
        ret = strdup(out.s);
        *ret_len = out.len;
    }
    topt_text_fini(&out);
    return ret;
}

void topt_megatron_sources(const char *text, size_t len, char *ret, size_t size)
{
    size_t used = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < len;) {
        const char *end = memchr(text + i, '\n', len - i);
        size_t n = end ? (size_t)(end - text) - i + 1 : len - i;
        char name[MAX_NAME];
        if (sourced(text + i, n, name) && used + strlen(name) + 3 < size)
            used +=
                (size_t)snprintf(ret + used, size - used, "%s%s", used ? ", " : "", name);
        i += n;
    }
}
