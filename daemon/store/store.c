/* store.c - what toptd remembers, in SQLite.
 *
 * The schema is sql/NNN-name.sql, applied in order; PRAGMA user_version holds the number of
 * the last one, and each is applied in one transaction together with that number, so a crash
 * leaves the schema of before or of after.  WAL with synchronous=NORMAL survives kill -9
 * whole; a power cut may lose the last transactions but never breaks the file.
 *
 * Plans are only inserted.  A job that was given a plan finds it for as long as the file
 * exists, whatever has been planned since. */
#include "store.h"
#include "embed.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUSY_MS = 5000 };

#define STATEMENTS(X)                                                                    \
    X(BEGIN, "BEGIN IMMEDIATE")                                                          \
    X(COMMIT, "COMMIT")                                                                  \
    X(ROLLBACK, "ROLLBACK")                                                              \
    X(PUT_MODEL,                                                                         \
      "INSERT OR IGNORE INTO models (id, name, doc, created) VALUES (?,?,?,?)")          \
    X(GET_MODEL, "SELECT id, name, doc FROM models WHERE id = ?1 UNION ALL"              \
                 " SELECT min(id), min(name), min(doc) FROM models WHERE name = ?1"      \
                 " AND NOT EXISTS (SELECT 1 FROM models WHERE id = ?1)"                  \
                 " HAVING count(*) = 1")                                                 \
    X(LIST_MODELS,                                                                       \
      "SELECT id, name, created FROM models ORDER BY created DESC, rowid DESC LIMIT ?")  \
    X(PUT_HW,                                                                            \
      "INSERT OR IGNORE INTO hardware (id, name, doc, created) VALUES (?,?,?,?)")        \
    X(GET_HW, "SELECT id, name, doc FROM hardware WHERE id = ?1 OR name = ?1")           \
    X(ONLY_HW, "SELECT min(id), min(name), min(doc) FROM hardware HAVING count(*) = 1")  \
    X(LIST_HW, "SELECT id, name, created FROM hardware ORDER BY created DESC, rowid "    \
               "DESC LIMIT ?")                                                           \
    X(PUT_PLAN,                                                                          \
      "INSERT OR IGNORE INTO plans (id, model, hw, doc, created) VALUES (?,?,?,?,?)")    \
    X(GET_PLAN, "SELECT id, id, doc FROM plans WHERE id = ?")                            \
    X(SAME_PLAN, "SELECT 1 FROM plans WHERE id = ? AND doc = ?")                         \
    X(LIST_PLANS,                                                                        \
      "SELECT p.id, m.name, p.created, p.model, p.hw,"                                   \
      " (SELECT doc FROM answers a WHERE a.plan = p.id LIMIT 1) FROM plans p"            \
      " JOIN models m ON m.id = p.model ORDER BY p.created DESC, p.rowid DESC LIMIT ?")  \
    X(PUT_ANSWER, "INSERT OR IGNORE INTO answers"                                        \
                  " (model, hw, question, feasible, plan, doc, search_ns, created)"      \
                  " VALUES (?,?,?,?,?,?,?,?)")                                           \
    X(GET_ANSWER, "SELECT a.feasible, a.plan, p.doc, a.doc, a.search_ns FROM answers a"  \
                  " LEFT JOIN plans p ON p.id = a.plan"                                  \
                  " WHERE a.model = ? AND a.hw = ? AND a.question = ?")                  \
    X(CHECK, "SELECT count(*) FROM sqlite_schema")

enum statement {
#define X(id, sql) S_##id,
    STATEMENTS(X)
#undef X
        S_COUNT
};

static const char *const sql_text[S_COUNT] = {
#define X(id, sql) sql,
    STATEMENTS(X)
#undef X
};

struct store {
    pthread_mutex_t lock; /* guards db and stmt; taken last, held over one transaction */
    sqlite3 *db;
    sqlite3_stmt *stmt[S_COUNT];
    int lock_fd; /* flock of the state directory */
};

static int db_fail(sqlite3 *db, const char *doing, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_IO, "store: %s: %s", doing, sqlite3_errmsg(db));
}

/* ---- opening ---------------------------------------------------------------------------- */

/* mkdir -p, private to the daemon's user. */
static int make_dir(const char *dir, struct topt_error *err)
{
    char path[600];
    snprintf(path, sizeof path, "%s", dir);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        mkdir(path, 0755);
        *p = '/';
    }
    if (mkdir(path, 0700) && errno != EEXIST)
        return topt_fail(err, TOPT_ERR_IO, "create directory '%s': %s", dir,
                         strerror(errno));
    return 0;
}

static int lock_dir(struct store *s, const char *dir, struct topt_error *err)
{
    char path[640];
    snprintf(path, sizeof path, "%s/toptd.lock", dir);
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "open '%s': %s", path, strerror(errno));
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK)
            return topt_fail(
                err, TOPT_ERR_IO,
                "another toptd uses the state directory '%s'; stop it or give"
                " --state",
                dir);
        return topt_fail(err, TOPT_ERR_IO, "lock '%s': %s", path, strerror(errno));
    }
    return 0;
}

static int exec(sqlite3 *db, const char *sql, struct topt_error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : db_fail(db, "setup", err);
}

static int user_version(sqlite3 *db, int *ret, struct topt_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = -1;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW) {
        *ret = sqlite3_column_int(st, 0);
        rc = 0;
    } else {
        db_fail(db, "read the schema's version", err);
    }
    sqlite3_finalize(st);
    return rc;
}

static int apply(sqlite3 *db, int number, const struct embedded *m,
                 struct topt_error *err)
{
    char set[64];
    snprintf(set, sizeof set, "PRAGMA user_version = %d", number);
    if (exec(db, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    if (exec(db, m->text, err) < 0 || exec(db, set, err) < 0 ||
        exec(db, "COMMIT", err) < 0) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        return topt_wrap(err, "migration %s", m->name);
    }
    return 0;
}

static int migrate(sqlite3 *db, struct topt_error *err)
{
    int have, known = 0;
    if (user_version(db, &have, err) < 0)
        return -1;
    while (migrations[known].name)
        known++;
    if (have > known)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "store: schema %d is newer than this toptd's %d; use a newer toptd", have,
            known);
    for (int i = have; i < known; i++)
        if (apply(db, i + 1, &migrations[i], err) < 0)
            return -1;
    return 0;
}

static int open_db(struct store *s, const char *dir, struct topt_error *err)
{
    char path[640];
    snprintf(path, sizeof path, "%s/topt.db", dir);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK)
        return topt_fail(err, TOPT_ERR_IO, "open '%s': %s", path,
                         s->db ? sqlite3_errmsg(s->db) : "out of memory");
    sqlite3_busy_timeout(s->db, BUSY_MS);
    if (exec(s->db,
             "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
             " PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
             err) < 0 ||
        migrate(s->db, err) < 0)
        return topt_wrap(err, "'%s'", path);
    for (int i = 0; i < S_COUNT; i++)
        if (sqlite3_prepare_v3(s->db, sql_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &s->stmt[i], NULL) != SQLITE_OK)
            return db_fail(s->db, sql_text[i], err);
    return 0;
}

int store_open(const char *dir, struct store **ret, struct topt_error *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    s->lock_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    if (make_dir(dir, err) < 0 || lock_dir(s, dir, err) < 0 || open_db(s, dir, err) < 0) {
        store_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (int i = 0; i < S_COUNT; i++)
        sqlite3_finalize(s->stmt[i]);
    sqlite3_close(s->db);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- statements -------------------------------------------------------------------------- */

/* Bind by a format: 's' text (may be NULL), 'i' int64_t.  Borrowed until reset. */
static sqlite3_stmt *bind(struct store *s, enum statement id, const char *format, ...)
{
    sqlite3_stmt *st = s->stmt[id];
    va_list ap;
    va_start(ap, format);
    for (int i = 1; *format; format++, i++) {
        if (*format == 's')
            sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
    }
    va_end(ap);
    return st;
}

static void reset(sqlite3_stmt *st)
{
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
}

/* Run to the end.  Returns the number of rows changed, or -1. */
static int run(struct store *s, sqlite3_stmt *st, struct topt_error *err)
{
    int rc = sqlite3_step(st);
    int changed =
        rc == SQLITE_DONE ? sqlite3_changes(s->db) : db_fail(s->db, "write", err);
    reset(st);
    return changed;
}

/* 1 a row, 0 none, -1. */
static int step(struct store *s, sqlite3_stmt *st, struct topt_error *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : db_fail(s->db, "read", err);
}

static int64_t now(void)
{
    return (int64_t)time(NULL);
}

/* NULL for a NULL column too. */
static char *column(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? strdup(text) : NULL;
}

static const char *column_or(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? text : "";
}

/* ---- documents --------------------------------------------------------------------------- */

static int put_doc(struct store *s, enum statement id, const struct store_doc *d,
                   struct topt_error *err)
{
    return run(s, bind(s, id, "sssi", d->id, d->name, d->doc, now()), err);
}

int store_put_model(struct store *s, const struct store_doc *m, struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    int rc = put_doc(s, S_PUT_MODEL, m, err);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int store_put_hw(struct store *s, const struct store_doc *h, struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    int rc = put_doc(s, S_PUT_HW, h, err);
    if (rc == 0) { /* the same profile again, or another of that name */
        sqlite3_stmt *st = bind(s, S_GET_HW, "s", h->id);
        rc = step(s, st, err);
        if (rc == 0)
            rc = topt_fail(err, TOPT_ERR_USAGE, "another profile is named '%.80s'",
                           h->name);
        else if (rc > 0)
            rc = 0;
        reset(st);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* The (id, name, doc) of the first row; each out may be NULL. */
static int get_doc(struct store *s, sqlite3_stmt *st, char **out[3],
                   struct topt_error *err)
{
    int rc = step(s, st, err);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "not there");
    else if (rc > 0)
        rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++)
        if (out[i] && !(*out[i] = column(st, i)))
            rc = topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    reset(st);
    return rc;
}

static int get_locked(struct store *s, enum statement id, const char *key, char **out[3],
                      struct topt_error *err)
{
    for (int i = 0; i < 3; i++)
        if (out[i])
            *out[i] = NULL;
    pthread_mutex_lock(&s->lock);
    int rc = get_doc(s, id == S_ONLY_HW ? s->stmt[id] : bind(s, id, "s", key), out, err);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < 3 && rc < 0; i++)
        if (out[i]) {
            free(*out[i]);
            *out[i] = NULL;
        }
    return rc;
}

int store_get_model(struct store *s, const char *key, char **ret_id, char **ret_name,
                    char **ret_doc, struct topt_error *err)
{
    char **out[3] = {ret_id, ret_name, ret_doc};
    return get_locked(s, S_GET_MODEL, key, out, err);
}

int store_get_hw(struct store *s, const char *key, char **ret_id, char **ret_name,
                 char **ret_doc, struct topt_error *err)
{
    char **out[3] = {ret_id, ret_name, ret_doc};
    return get_locked(s, *key ? S_GET_HW : S_ONLY_HW, key, out, err);
}

int store_get_plan(struct store *s, const char *id, char **ret_doc,
                   struct topt_error *err)
{
    char **out[3] = {NULL, NULL, ret_doc};
    return get_locked(s, S_GET_PLAN, id, out, err);
}

/* ---- lists ------------------------------------------------------------------------------- */

static json_t *row_doc(sqlite3_stmt *st)
{
    return json_pack("{s:s, s:s, s:I}", "id", column_or(st, 0), "name", column_or(st, 1),
                     "created", (json_int_t)sqlite3_column_int64(st, 2));
}

/* A plan with the numbers of its answer. */
static json_t *row_plan(sqlite3_stmt *st)
{
    static const char *const copied[] = {"gpus",    "nodes",    "memory_bytes",
                                         "time_ns", "strategy", NULL};
    json_t *row =
        json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", column_or(st, 0), "model_name",
                  column_or(st, 1), "created", (json_int_t)sqlite3_column_int64(st, 2),
                  "model", column_or(st, 3), "hw", column_or(st, 4));
    json_t *answer = json_loads(column_or(st, 5), 0, NULL);
    for (int i = 0; row && answer && copied[i]; i++)
        if (json_object_get(answer, copied[i]))
            json_object_set(row, copied[i], json_object_get(answer, copied[i]));
    json_decref(answer);
    return row;
}

static json_t *list(struct store *s, enum statement id, int limit,
                    json_t *(*row)(sqlite3_stmt *), struct topt_error *err)
{
    json_t *out = json_array();
    pthread_mutex_lock(&s->lock);
    sqlite3_stmt *st = bind(s, id, "i", (int64_t)limit);
    int rc;
    while ((rc = step(s, st, err)) > 0)
        if (json_array_append_new(out, row(st))) {
            rc = topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
            break;
        }
    reset(st);
    pthread_mutex_unlock(&s->lock);
    if (rc < 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

json_t *store_list_models(struct store *s, int limit, struct topt_error *err)
{
    return list(s, S_LIST_MODELS, limit, row_doc, err);
}

json_t *store_list_hw(struct store *s, int limit, struct topt_error *err)
{
    return list(s, S_LIST_HW, limit, row_doc, err);
}

json_t *store_list_plans(struct store *s, int limit, struct topt_error *err)
{
    return list(s, S_LIST_PLANS, limit, row_plan, err);
}

/* ---- answers ----------------------------------------------------------------------------- */

void store_answer_fini(struct store_answer *a)
{
    free(a->plan_id);
    free(a->plan);
    free(a->doc);
    *a = (struct store_answer){0};
}

static int read_answer(sqlite3_stmt *st, struct store_answer *ret, struct topt_error *err)
{
    struct store_answer a = {.feasible = sqlite3_column_int(st, 0),
                             .plan_id = column(st, 1),
                             .plan = column(st, 2),
                             .doc = column(st, 3),
                             .search_ns = sqlite3_column_int64(st, 4)};
    int has_plan = sqlite3_column_type(st, 1) != SQLITE_NULL;
    if (!a.doc || (has_plan && (!a.plan_id || !a.plan))) {
        store_answer_fini(&a);
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    *ret = a;
    return 1;
}

int store_get_answer(struct store *s, const struct store_key *key,
                     struct store_answer *ret, struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    sqlite3_stmt *st = bind(s, S_GET_ANSWER, "sss", key->model, key->hw, key->question);
    int rc = step(s, st, err);
    if (rc > 0)
        rc = read_answer(st, ret, err);
    reset(st);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static int put_plan(struct store *s, const struct store_key *key,
                    const struct store_answer *a, struct topt_error *err)
{
    int rc = run(
        s, bind(s, S_PUT_PLAN, "ssssi", a->plan_id, key->model, key->hw, a->plan, now()),
        err);
    if (rc != 0)
        return rc;
    sqlite3_stmt *st = bind(s, S_SAME_PLAN, "ss", a->plan_id, a->plan);
    rc = step(s, st, err);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_INTERNAL, "store: another plan has the id %s",
                       a->plan_id);
    reset(st);
    return rc;
}

static int publish(struct store *s, const struct store_key *key,
                   const struct store_doc *model, const struct store_answer *a,
                   struct topt_error *err)
{
    if (put_doc(s, S_PUT_MODEL, model, err) < 0)
        return -1;
    if (a->plan_id && put_plan(s, key, a, err) < 0)
        return -1;
    return run(s,
               bind(s, S_PUT_ANSWER, "sssissii", key->model, key->hw, key->question,
                    (int64_t)a->feasible, a->plan_id, a->doc, a->search_ns, now()),
               err);
}

int store_publish(struct store *s, const struct store_key *key,
                  const struct store_doc *model, const struct store_answer *a,
                  struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    int rc = run(s, s->stmt[S_BEGIN], err);
    if (rc >= 0) {
        rc = publish(s, key, model, a, err);
        if (rc >= 0)
            rc = run(s, s->stmt[S_COMMIT], err);
        if (rc < 0)
            run(s, s->stmt[S_ROLLBACK], NULL);
    }
    pthread_mutex_unlock(&s->lock);
    return rc < 0 ? -1 : 0;
}

int store_check(struct store *s, struct topt_error *err)
{
    pthread_mutex_lock(&s->lock);
    sqlite3_stmt *st = s->stmt[S_CHECK];
    int rc = step(s, st, err);
    reset(st);
    pthread_mutex_unlock(&s->lock);
    return rc < 0 ? -1 : 0;
}
