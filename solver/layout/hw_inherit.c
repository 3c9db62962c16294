/* hw_inherit.c - profiles told by what is different: {"like": "v100-dgx1-2x8", "links":
 * [...]}.
 *
 * Clusters differ in a link more often than in everything, and a copy of all figures
 * would hide in what.  The shipped profile that 'like' names is taken, its top-level
 * fields are replaced by those given, 'device' field by field, 'links' level by level
 * and 'curves' group by group; its curves of groups that use a replaced link say
 * nothing any more and are left out, as are those of more nodes than are given. */
#include "hw_impl.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

static const char *level_of(const json_t *link)
{
    const char *level = json_string_value(json_object_get(link, "level"));
    return level ? level : "";
}

/* Is there a link of the same level in the list? */
static int replaced(const json_t *links, const char *level)
{
    for (size_t i = 0; i < json_array_size(links); i++)
        if (!strcmp(level_of(json_array_get(links, i)), level))
            return 1;
    return 0;
}

static void merge_links(json_t *base, const json_t *links)
{
    json_t *kept = json_array(), *old = json_object_get(base, "links");
    for (size_t i = 0; i < json_array_size(old); i++)
        if (!replaced(links, level_of(json_array_get(old, i))))
            json_array_append(kept, json_array_get(old, i));
    json_array_extend(kept, (json_t *)links);
    json_object_set_new(base, "links", kept);
}

/* A curve over nodes rests on the cluster's link, any other on the node's. */
static void drop_curves(json_t *base, const json_t *links)
{
    json_t *curves = json_object_get(base, "curves");
    for (size_t i = json_array_size(curves); i-- > 0;) {
        const json_t *nodes = json_object_get(json_array_get(curves, i), "nodes");
        const char *level = json_integer_value(nodes) > 1 ? "cluster" : "node";
        if (replaced(links, level))
            json_array_remove(curves, i);
    }
}

void topt_hw_drop_larger(json_t *base, const json_t *doc)
{
    json_t *curves = json_object_get(base, "curves");
    const json_t *nodes = json_object_get(doc, "nodes");
    const json_t *each = json_object_get(doc, "gpus_per_node");
    for (size_t i = json_array_size(curves); i-- > 0;) {
        const json_t *c = json_array_get(curves, i);
        int64_t n = json_integer_value(json_object_get(c, "nodes"));
        int64_t m = json_integer_value(json_object_get(c, "per_node"));
        int64_t s = json_integer_value(json_object_get(c, "siblings"));
        if ((nodes && n > json_integer_value(nodes)) ||
            (each && m * (s > 1 ? s : 1) > json_integer_value(each)))
            json_array_remove(curves, i);
    }
}

static int same_curve(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"collective", "nodes", "per_node", "siblings"};
    for (int i = 0; i < 4; i++) {
        const json_t *x = json_object_get(a, keys[i]), *y = json_object_get(b, keys[i]);
        int one = i == 3 && (!x || !y); /* siblings that are not given are 1 */
        if (one ? json_integer_value(x ? x : y) > 1 : !json_equal(x, y))
            return 0;
    }
    return 1;
}

/* Put the given curves beside the others, each in the place of one of the same group. */
static void merge_curves(json_t *base, const json_t *curves)
{
    json_t *kept = json_array(), *old = json_object_get(base, "curves");
    for (size_t i = 0; i < json_array_size(old); i++) {
        int again = 0;
        for (size_t k = 0; k < json_array_size(curves); k++)
            again |= same_curve(json_array_get(old, i), json_array_get(curves, k));
        if (!again)
            json_array_append(kept, json_array_get(old, i));
    }
    json_array_extend(kept, (json_t *)curves);
    json_object_set_new(base, "curves", kept);
}

/* Figures that are given here are no longer assumed, nor those that the device no longer has. */
static void drop_assumed(json_t *base, const json_t *device)
{
    json_t *names = json_object_get(base, "assumed");
    for (size_t i = json_array_size(names); i-- > 0;) {
        const char *name = json_string_value(json_array_get(names, i));
        char field[64];
        snprintf(field, sizeof field, "%.*s", (int)strcspn(name, "."), name);
        if (json_object_get(device, field) || !topt_hw_figure(base, name))
            json_array_remove(names, i);
    }
}

/* Put the given fields in the place of others.  Rates by size of a type that the device no longer has
 * are left out. */
static void merge_device(json_t *base, const json_t *device)
{
    static const char *const tables[] = {"matmul_by_size", "attention_by_size"};
    const char *type;
    json_t *points;
    void *next;
    json_object_update(base, (json_t *)device);
    for (int i = 0; i < 2; i++) {
        json_t *table = json_object_get(base, tables[i]);
        if (json_object_get(device, tables[i]))
            continue;
        json_object_foreach_safe(table, next, type, points)
        {
            if (!json_object_get(json_object_get(base, "flops"), type))
                json_object_del(table, type);
        }
    }
    if (!json_object_get(device, "assumed"))
        drop_assumed(base, device);
}

/* A shipped profile, whole: it may be told by another shipped one in turn, and none of them by itself. */
static json_t *load_base(const char *name, struct topt_error *err)
{
    size_t len;
    const char *text = topt_hw_shipped_text(name, &len);
    json_t *base = text ? topt_json_parse(text, len, name, err) : NULL;
    if (!text) {
        topt_hw_refuse_name(name, TOPT_ERR_INVAL, err);
        topt_wrap(err, "like");
    }
    if (base && topt_hw_expand(&base, err)) {
        json_decref(base);
        return NULL;
    }
    return base;
}

int topt_hw_expand(json_t **doc, struct topt_error *err)
{
    const char *name, *key;
    json_t *value;
    if (!json_object_get(*doc, "like"))
        return 0;
    if (topt_json_string(*doc, "", "like", &name, err))
        return -1;
    json_t *base = load_base(name, err);
    if (!base)
        return -1;
    const json_t *links = json_object_get(*doc, "links");
    drop_curves(base, links);
    topt_hw_drop_larger(base, *doc);
    json_object_foreach(*doc, key, value)
    {
        if (!strcmp(key, "like"))
            continue;
        if (!strcmp(key, "links") && json_is_array(value))
            merge_links(base, value);
        else if (!strcmp(key, "curves") && json_is_array(value))
            merge_curves(base, value);
        else if (!strcmp(key, "device") && json_is_object(value))
            merge_device(json_object_get(base, "device"), value);
        else
            json_object_set(base, key, value);
    }
    json_decref(*doc);
    *doc = base;
    return 0;
}

/* The rows of a shipped profile. New reference, NULL with an error. */
static json_t *shipped_rows(const char *profile, const char *table,
                            struct topt_error *err)
{
    size_t len;
    const char *text = topt_hw_shipped_text(profile, &len);
    json_t *doc = text ? topt_json_parse(text, len, profile, err) : NULL;
    json_t *rows = json_incref(json_object_get(json_object_get(doc, "device"), table));
    json_decref(doc);
    if (json_is_array(rows))
        return rows;
    json_decref(rows);
    topt_fail(err, TOPT_ERR_INVAL,
              "device.%s: '%.60s' is no shipped profile that has rows of its own", table,
              profile);
    return NULL;
}

json_t *topt_hw_rows(const json_t *device, const char *table, int most,
                     struct topt_error *err)
{
    json_t *rows = json_object_get(device, table);
    if (!rows)
        return json_array();
    if (json_is_string(rows))
        return shipped_rows(json_string_value(rows), table, err);
    if (json_is_array(rows) && json_array_size(rows) <= (size_t)most)
        return json_incref(rows);
    topt_fail(err, TOPT_ERR_INVAL,
              "device.%s must be at most %d rows, or the name of a shipped profile that "
              "has them",
              table, most);
    return NULL;
}
