/* plans.c - plans that were given out.
 *
 * A plan is never changed.  It is kept until some days after its last use, and with it
 * what a job was promised: the same bytes.  Its text holds a whole model and a whole
 * profile, which many plans share, so these two members are cut out of it and stored
 * once, and put back where they stood when the plan is read; nothing is parsed for that. */
#include "plans.h"
#include "keep.h"
#include "owners.h"
#include "topt_digest.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_PART = 512 }; /* what is shorter stays where it is */

/* ---- cutting ------------------------------------------------------------------------------- */

/* The end of a string that begins at 'p'; NULL where it does not end. */
static const char *past_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : NULL;
}

/* The end of a value of an object or array: the ',' or closing bracket after it; NULL
 * where there is none. */
static const char *past_value(const char *p)
{
    for (int depth = 0; p && *p;) {
        if (*p == '"') {
            p = past_string(p);
            continue;
        }
        if (!depth && (*p == ',' || *p == '}' || *p == ']'))
            return p;
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
    }
    return NULL;
}

/* The value of a member of the outermost object of a compact text; NULL where there is none. */
static const char *member(const char *text, const char *name, size_t *ret_len)
{
    size_t n = strlen(name);
    const char *p = *text == '{' ? text + 1 : NULL;
    while (p && *p == '"') {
        const char *key = p + 1, *value = past_string(p);
        if (!value || *value != ':')
            return NULL;
        const char *end = past_value(++value);
        if (!end)
            return NULL;
        if ((size_t)(value - key) == n + 2 && !memcmp(key, name, n)) {
            *ret_len = (size_t)(end - value);
            return value;
        }
        p = *end == ',' ? end + 1 : NULL;
    }
    return NULL;
}

/* The text less its parts, and where these belong in it. */
static int leave_out(const char *text, struct plan_cut *p, struct topt_error *err)
{
    struct topt_text own = {0};
    int first = p->part[1] && (!p->part[0] || p->part[1] < p->part[0]);
    for (int k = 0; k < 2; k++) {
        int i = k ? !first : first;
        if (!p->part[i])
            continue;
        topt_text_put(&own, text, (size_t)(p->part[i] - text));
        p->at[i] = (int64_t)own.len;
        text = p->part[i] + p->len[i];
    }
    topt_text_put(&own, text, strlen(text));
    if (own.oom) {
        topt_text_fini(&own);
        return topt_nomem(err, NULL);
    }
    p->own = own.s;
    return 0;
}

int plan_cut(const char *text, struct plan_cut *ret, struct topt_error *err)
{
    static const char *const names[] = {"model", "hw"};
    *ret = (struct plan_cut){0};
    for (int i = 0; i < 2; i++) {
        const char *value = member(text, names[i], &ret->len[i]);
        if (!value || ret->len[i] < SMALL_PART)
            continue;
        ret->part[i] = value;
        topt_sha256_hex(value, ret->len[i], ret->id[i]);
    }
    return leave_out(text, ret, err);
}

void plan_cut_fini(struct plan_cut *p)
{
    free(p->own);
    *p = (struct plan_cut){0};
}

/* ---- joining ------------------------------------------------------------------------------- */

/* A text of the row; NULL, and an error, where there is none that should be, or no
 * memory.  A column's type is asked before its text: without memory the text is gone and
 * the type with it. */
static const char *text_of(sqlite3_stmt *st, int i, struct topt_error *err)
{
    int is_there = sqlite3_column_type(st, i) != SQLITE_NULL;
    const char *text = (const char *)sqlite3_column_text(st, i);
    if (!text && is_there)
        topt_nomem(err, NULL);
    else if (!text)
        topt_fail(err, TOPT_ERR_IO, "store: a plan, or a part of it, is missing");
    return text;
}

char *plan_join(sqlite3_stmt *st, int first, struct topt_error *err)
{
    const char *own = text_of(st, first, err), *part[2] = {NULL, NULL};
    if (!own)
        return NULL;
    int64_t at[2], len = (int64_t)strlen(own), from = 0;
    for (int i = 0; i < 2; i++) {
        at[i] = sqlite3_column_int64(st, first + 1 + 3 * i);
        if (sqlite3_column_type(st, first + 2 + 3 * i) == SQLITE_NULL)
            continue;
        if (!(part[i] = text_of(st, first + 3 + 3 * i, err)))
            return NULL;
        if (at[i] < 0 || at[i] > len) {
            topt_fail(err, TOPT_ERR_IO, "store: a part of a plan has no place");
            return NULL;
        }
    }
    struct topt_text t = {0};
    int k = part[1] && (!part[0] || at[1] < at[0]);
    for (int i = 0; i < 2; i++, k = !k) {
        if (!part[k])
            continue;
        topt_text_put(&t, own + from, (size_t)(at[k] - from));
        topt_text_put(&t, part[k], strlen(part[k]));
        from = at[k];
    }
    topt_text_put(&t, own + from, (size_t)(len - from));
    if (t.oom) {
        topt_text_fini(&t);
        topt_nomem(err, NULL);
    }
    return t.s;
}

/* ---- putting ------------------------------------------------------------------------------- */

static int add_part(struct conn *c, const struct plan_cut *cut, int i,
                    struct topt_error *err)
{
    static const char there[] = "SELECT 1 FROM parts WHERE id = ?";
    static const char sql[] = "INSERT INTO parts (id, doc, bytes)"
                              " VALUES (?1, CAST(?2 AS TEXT), ?3)";
    if (!cut->part[i])
        return 0;
    int rc = db_one(c, err, NULL, there, "s", cut->id[i]);
    return rc ? rc
              : db_run(c, err, sql, "sbi", cut->id[i], (const void *)cut->part[i],
                       cut->len[i], (int64_t)cut->len[i]);
}

int store_add_plan(struct conn *c, const struct store_key *key,
                   const struct store_answer *a, const struct plan_cut *cut,
                   const char *summary, struct topt_error *err)
{
    static const char insert[] =
        "INSERT OR IGNORE INTO plans (id, model, hw, doc, created, model_part, model_at,"
        " hw_part, hw_at, summary, bytes, used)"
        " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?5)";
    static const char same[] = "SELECT 1 FROM plans WHERE id = ? AND doc = ? AND "
                               "model_part IS ? AND model_at = ?"
                               " AND hw_part IS ? AND hw_at = ?";
    static const char whole[] = "SELECT 1 FROM plans WHERE id = ? AND doc = ?";
    const char *model = cut->part[0] ? cut->id[0] : NULL,
               *hw = cut->part[1] ? cut->id[1] : NULL;
    if (add_part(c, cut, 0, err) < 0 || add_part(c, cut, 1, err) < 0)
        return -1;
    int rc = db_run(c, err, insert, "ssssisisisi", a->plan_id, key->model, key->hw,
                    cut->own, store_now(), model, cut->at[0], hw, cut->at[1], summary,
                    (int64_t)strlen(cut->own));
    if (rc != 0)
        return rc;
    rc = db_one(c, err, NULL, same, "sssisi", a->plan_id, cut->own, model, cut->at[0], hw,
                cut->at[1]);
    if (rc == 0) /* stored before plans were cut */
        rc = db_one(c, err, NULL, whole, "ss", a->plan_id, a->plan);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_INTERNAL, "store: another plan has the id %s",
                       a->plan_id);
    return rc < 0 ? -1 : 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

void store_plan_facts_fini(struct store_plan_facts *f)
{
    free(f->model);
    free(f->hw);
    *f = (struct store_plan_facts){0};
}

int store_plan_of(struct store *s, const char *id, int64_t uid,
                  struct store_plan_facts *ret, struct topt_error *err)
{
    static const char sql[] =
        "SELECT model, hw, CAST(json_extract(summary, '$.time_ns') AS INTEGER),"
        " CAST(json_extract(summary, '$.memory_bytes') AS INTEGER)"
        " FROM plans p WHERE id = ?1 AND (?2 < 0 OR EXISTS"
        " (SELECT 1 FROM owners WHERE id = ?1 AND uid = ?2))";
    *ret = (struct store_plan_facts){0};
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "si", id, uid);
    int rc = st ? db_step(c, st, err) : -1;
    if (rc > 0)
        *ret = (struct store_plan_facts){db_text(st, 0), db_text(st, 1),
                                         sqlite3_column_int64(st, 2),
                                         sqlite3_column_int64(st, 3)};
    if (st)
        db_done(st);
    store_reader_end(s, c);
    if (rc == 0)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "you own no plan '%.60s'", id);
    if (rc > 0 && !(ret->model && ret->hw)) {
        store_plan_facts_fini(ret);
        return topt_nomem(err, NULL);
    }
    return rc < 0 ? -1 : 0;
}

int store_get_plan(struct store *s, const char *id, const struct store_who *who,
                   char **ret_doc, struct topt_error *err)
{
    static const char sql[] =
        "SELECT p.rowid, p.used, p.doc, p.model_at, p.model_part, m.doc, p.hw_at,"
        " p.hw_part, h.doc FROM plans p LEFT JOIN parts m ON m.id = p.model_part"
        " LEFT JOIN parts h ON h.id = p.hw_part WHERE p.id = ?1"
        " AND (?2 OR EXISTS (SELECT 1 FROM owners WHERE id = ?1 AND uid = ?3)"
        " OR EXISTS (SELECT 1 FROM shares WHERE id = ?1"
        "            AND gid IN (SELECT value FROM json_each(?4))))";
    struct reading r;
    *ret_doc = NULL;
    if (store_reading(who, &r, err) < 0)
        return -1;
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "siis", id, r.all, r.uid, r.groups);
    int rc = st ? db_step(c, st, err) : -1;
    int64_t row = rc > 0 ? sqlite3_column_int64(st, 0) : 0;
    int64_t used = rc > 0 ? sqlite3_column_int64(st, 1) : 0;
    if (rc > 0)
        *ret_doc = plan_join(st, 2, err);
    if (st)
        db_done(st);
    store_reader_end(s, c);
    store_reading_fini(&r);
    if (rc == 0)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "no plan '%.60s'", id);
    if (!*ret_doc)
        return -1;
    if (store_now() - used > 24 * 3600)
        store_touch(s, TOUCH_PLAN, row);
    return 0;
}

static json_t *row_plan(sqlite3_stmt *st)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:b}", "id", db_words(st, 0),
                     "model_name", db_words(st, 1), "created",
                     (json_int_t)sqlite3_column_int64(st, 2), "model", db_words(st, 3),
                     "hw", db_words(st, 4), "summary", db_words(st, 5), "own",
                     sqlite3_column_int(st, 6));
}

/* The summary's members in its place.  -1 without memory. */
static int spread(json_t *rows, struct topt_error *err)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        struct topt_error why = {0};
        const char *text = json_string_value(json_object_get(row, "summary"));
        json_t *numbers = topt_json_parse(text, strlen(text), "a summary", &why);
        json_object_del(row, "summary");
        int rc = numbers ? json_object_update(row, numbers) : 0;
        json_decref(numbers);
        if (rc || why.code == TOPT_ERR_NOMEM)
            return topt_nomem(err, NULL);
    }
    return 0;
}

json_t *store_list_plans(struct store *s, const struct store_who *who,
                         struct store_page *page, struct topt_error *err)
{
    static const char sql[] =
        "SELECT p.id, coalesce(nullif(mo.name, ''), m.name), p.created, p.model, p.hw,"
        " p.summary, o.uid IS NOT NULL FROM plans p JOIN models m ON m.id = p.model"
        " LEFT JOIN owners o ON o.id = p.id AND o.uid = ?2"
        " LEFT JOIN owners mo ON mo.id = p.model AND mo.uid = ?2"
        " WHERE (?1 OR o.uid IS NOT NULL OR EXISTS (SELECT 1 FROM shares s"
        "  WHERE s.id = p.id AND s.gid IN (SELECT value FROM json_each(?3))))"
        " AND p.rowid < coalesce((SELECT rowid FROM plans WHERE id = ?4), 1 << 62)"
        " ORDER BY p.rowid DESC LIMIT ?5";
    json_t *out = store_readable(s, who, sql, page, row_plan, err);
    if (!out || spread(out, err) == 0)
        return out;
    json_decref(out);
    return NULL;
}
