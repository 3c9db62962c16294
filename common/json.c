/* json.c - reading JSON documents with errors that name the place. */
#include "topt_json.h"
#include "topt_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local int lacked; /* memory, for the JSON library */

static void *watched_malloc(size_t n)
{
    void *p = malloc(n);
    lacked |= !p;
    return p;
}

void topt_json_watch_memory(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

int topt_json_lacked(void)
{
    int was = lacked;
    lacked = 0;
    return was;
}

json_t *topt_json_parse(const char *text, size_t len, const char *what,
                        struct topt_error *err)
{
    json_error_t je = {.text = ""};
    lacked = 0;
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
    if (topt_json_lacked() || (!doc && !*je.text)) {
        json_decref(doc);
        topt_nomem(err, what);
        return NULL;
    }
    if (!doc)
        topt_fail(err, TOPT_ERR_INVAL, "%s is not valid JSON: line %d column %d: %s",
                  what, je.line, je.column, je.text);
    return doc;
}

int topt_json_within(const char *text, size_t len, const char *what, size_t values,
                     size_t depth, struct topt_error *err)
{
    size_t n = 1, open = 0;
    int quoted = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        if (quoted)
            continue;
        n += c == ',' || c == '[' || c == '{';
        open += c == '[' || c == '{';
        open -= open && (c == ']' || c == '}');
        if (n > values)
            return topt_fail(err, TOPT_ERR_LIMIT,
                             "%s has more than %zu JSON values, the most that are read",
                             what, values);
        if (open > depth)
            return topt_fail(
                err, TOPT_ERR_LIMIT,
                "%s has JSON values more than %zu deep, the deepest that are read", what,
                depth);
    }
    return 0;
}

json_t *topt_json_load(const char *path, size_t max_bytes, struct topt_error *err)
{
    size_t len;
    char *text = topt_read_file(path, max_bytes, &len, err);
    if (!text)
        return NULL;
    char what[200];
    snprintf(what, sizeof what, "'%s'", path);
    json_t *doc = topt_json_parse(text, len, what, err);
    free(text);
    return doc;
}

int topt_json_format(const json_t *doc, const char *kind, struct topt_error *err)
{
    char want[32];
    snprintf(want, sizeof want, "topt-%s/1", kind);
    const char *have = json_string_value(json_object_get(doc, "format"));
    if (!have)
        return topt_fail(err, TOPT_ERR_INVAL, "no \"format\": \"%s\" field", want);
    if (strcmp(have, want))
        return topt_fail(err, TOPT_ERR_INVAL, "format is \"%.40s\", \"%s\" is needed",
                         have, want);
    return 0;
}

/* "path.key", or "key" at the top. */
static const char *dot(const char *path)
{
    return path && *path ? "." : "";
}

static const char *base(const char *path)
{
    return path ? path : "";
}

int topt_json_only(const json_t *obj, const char *path, const char *const allowed[],
                   struct topt_error *err)
{
    if (!json_is_object(obj))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object",
                         path && *path ? path : "the document");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)obj, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(allowed[i], key))
            i++;
        if (!allowed[i])
            return topt_fail(err, TOPT_ERR_INVAL, "%s%s%.60s: unknown field", base(path),
                             dot(path), key);
    }
    return 0;
}

/* The member that holds the names of those asked for; no document has such a name. */
static const char asked[] = "\001asked";

int topt_json_watch(json_t *obj, struct topt_error *err)
{
    return json_object_set_new(obj, asked, json_object())
               ? topt_nomem(err, "an account of a document's members")
               : 0;
}

json_t *topt_json_member(const json_t *obj, const char *key)
{
    json_t *names = json_object_get(obj, asked);
    if (names)
        json_object_set_new(names, key, json_true());
    return json_object_get(obj, key);
}

int topt_json_was_asked(const json_t *obj, const char *key)
{
    return !strcmp(key, asked) || json_object_get(json_object_get(obj, asked), key);
}

/* 1 present, 0 absent or null, -1 absent but needed. */
static int find(const json_t *obj, const char *path, const char *key, int needed,
                json_t **ret, struct topt_error *err)
{
    *ret = topt_json_member(obj, key);
    if (*ret && !json_is_null(*ret))
        return 1;
    return needed ? topt_fail(err, TOPT_ERR_INVAL, "%s%s%s is missing", base(path),
                              dot(path), key)
                  : 0;
}

static int get_int(const json_t *obj, const char *path, const char *key, int64_t min,
                   int64_t max, int64_t *ret, int needed, struct topt_error *err)
{
    json_t *v;
    int found = find(obj, path, key, needed, &v, err);
    if (found <= 0)
        return found;
    if (!json_is_integer(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s must be a whole number", base(path),
                         dot(path), key);
    int64_t x = json_integer_value(v);
    if (x < min || x > max)
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s is %lld, outside %lld..%lld",
                         base(path), dot(path), key, (long long)x, (long long)min,
                         (long long)max);
    *ret = x;
    return 0;
}

int topt_json_int(const json_t *obj, const char *path, const char *key, int64_t min,
                  int64_t max, int64_t *ret, struct topt_error *err)
{
    return get_int(obj, path, key, min, max, ret, 1, err);
}

int topt_json_int_or(const json_t *obj, const char *path, const char *key, int64_t min,
                     int64_t max, int64_t *ret, struct topt_error *err)
{
    return get_int(obj, path, key, min, max, ret, 0, err);
}

static int get_real(const json_t *obj, const char *path, const char *key, double min,
                    double max, double *ret, int needed, struct topt_error *err)
{
    json_t *v;
    int found = find(obj, path, key, needed, &v, err);
    if (found <= 0)
        return found;
    if (!json_is_number(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s must be a number", base(path),
                         dot(path), key);
    double x = json_number_value(v);
    if (!(x >= min && x <= max))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s is %g, outside %g..%g", base(path),
                         dot(path), key, x, min, max);
    *ret = x;
    return 0;
}

int topt_json_real(const json_t *obj, const char *path, const char *key, double min,
                   double max, double *ret, struct topt_error *err)
{
    return get_real(obj, path, key, min, max, ret, 1, err);
}

int topt_json_real_or(const json_t *obj, const char *path, const char *key, double min,
                      double max, double *ret, struct topt_error *err)
{
    return get_real(obj, path, key, min, max, ret, 0, err);
}

int topt_json_bool_or(const json_t *obj, const char *path, const char *key, int *ret,
                      struct topt_error *err)
{
    json_t *v;
    int found = find(obj, path, key, 0, &v, err);
    if (found <= 0)
        return found;
    if (!json_is_boolean(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s must be true or false", base(path),
                         dot(path), key);
    *ret = json_is_true(v);
    return 0;
}

static int get_string(const json_t *obj, const char *path, const char *key,
                      const char **ret, int needed, struct topt_error *err)
{
    json_t *v;
    int found = find(obj, path, key, needed, &v, err);
    if (found <= 0)
        return found;
    if (!json_is_string(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s must be a string", base(path),
                         dot(path), key);
    *ret = json_string_value(v);
    return 0;
}

int topt_json_string(const json_t *obj, const char *path, const char *key,
                     const char **ret, struct topt_error *err)
{
    return get_string(obj, path, key, ret, 1, err);
}

int topt_json_string_or(const json_t *obj, const char *path, const char *key,
                        const char **ret, struct topt_error *err)
{
    return get_string(obj, path, key, ret, 0, err);
}

int topt_json_array(const json_t *obj, const char *path, const char *key,
                    const json_t **ret, struct topt_error *err)
{
    json_t *v;
    if (find(obj, path, key, 1, &v, err) < 0)
        return -1;
    if (!json_is_array(v))
        return topt_fail(err, TOPT_ERR_INVAL, "%s%s%s must be an array", base(path),
                         dot(path), key);
    *ret = v;
    return 0;
}

int64_t topt_json_whole_at(const json_t *obj, const char *key)
{
    return json_integer_value(json_object_get(obj, key));
}

double topt_json_number_at(const json_t *obj, const char *key)
{
    return json_number_value(json_object_get(obj, key));
}

const char *topt_json_words_at(const json_t *obj, const char *key)
{
    const char *s = json_string_value(json_object_get(obj, key));
    return s ? s : "";
}

char *topt_json_text(const json_t *doc, int indent)
{
    size_t flags = indent ? JSON_INDENT((size_t)indent) : JSON_COMPACT;
    lacked = 0;
    char *text = json_dumps(doc, flags | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
    if (!topt_json_lacked())
        return text;
    free(text); /* the library may leave out what it had no room for */
    return NULL;
}

static int add_to_digest(const char *text, size_t len, void *digest)
{
    topt_digest_add(digest, text, len);
    return 0;
}

int topt_json_id(const json_t *doc, char kind, char ret[TOPT_ID])
{
    struct topt_digest d;
    topt_digest_begin(&d);
    int rc = json_dump_callback(doc, add_to_digest, &d,
                                JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    topt_digest_end_id(&d, kind, ret);
    return rc;
}
