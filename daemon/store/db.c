/* db.c - the store's connections and its statements: who has which, and how failures are named.
 *
 * Readers are a few connections that are handed out; in WAL they see the last commit
 * whatever is being written.  There is one writer.  Another program's lock on the file is
 * waited for with nothing held: the transaction is tried, and when the file is locked the
 * writer is given back before the next try, so a foreign lock delays writes alone, each
 * by at most its own deadline. */
#include "db.h"
#include "topt_clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t store_now(void)
{
    return (int64_t)time(NULL);
}

/* ---- failures ------------------------------------------------------------------------------ */

static enum topt_err code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
        return TOPT_ERR_ROOM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return TOPT_ERR_BUSY;
    case SQLITE_NOMEM:
        return TOPT_ERR_NOMEM;
    case SQLITE_IOERR:
        break;
    default:
        return TOPT_ERR_IO;
    }
    switch (rc) {
    case SQLITE_IOERR_NOMEM:
        return TOPT_ERR_NOMEM;
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMMAP:
        return TOPT_ERR_ROOM;
    default:
        return TOPT_ERR_IO;
    }
}

int db_fail(sqlite3 *db, const char *doing, struct topt_error *err)
{
    int rc = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    int sys = db ? sqlite3_system_errno(db) : 0;
    enum topt_err code = code_of(rc);
    if (code == TOPT_ERR_BUSY)
        return topt_fail(err, code, "store: %s: another program holds the file", doing);
    if (code == TOPT_ERR_ROOM)
        return topt_fail(
            err, code,
            "store: %s: %s%s%s; make room, or let toptd write to its state directory",
            doing, sqlite3_errstr(rc), sys ? ": " : "", sys ? strerror(sys) : "");
    return topt_fail(err, code, "store: %s: %s", doing,
                     db ? sqlite3_errmsg(db) : "out of memory");
}

int db_damaged(struct conn *c)
{
    int rc = sqlite3_errcode(c->db) & 0xff;
    return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB;
}

/* ---- connections --------------------------------------------------------------------------- */

struct conn *store_reader(struct store *s)
{
    pthread_mutex_lock(&s->pool);
    while (!s->idle)
        pthread_cond_wait(&s->reader_back, &s->pool);
    struct conn *c = s->idle;
    s->idle = c->next;
    pthread_mutex_unlock(&s->pool);
    return c;
}

void store_reader_end(struct store *s, struct conn *c)
{
    pthread_mutex_lock(&s->pool);
    c->next = s->idle;
    s->idle = c;
    pthread_cond_signal(&s->reader_back);
    pthread_mutex_unlock(&s->pool);
}

/* 1 taken, 0 not in time. */
static int take_writer(struct store *s, int64_t until_ms)
{
    const struct timespec end = topt_clock_timespec(until_ms);
    int rc = 0;
    pthread_mutex_lock(&s->write);
    while (s->writing && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->writer_back, &s->write, &end);
    int free_now = !s->writing;
    s->writing = 1;
    pthread_mutex_unlock(&s->write);
    return free_now;
}

static void give_writer(struct store *s)
{
    pthread_mutex_lock(&s->write);
    s->writing = 0;
    pthread_cond_broadcast(&s->writer_back);
    pthread_mutex_unlock(&s->write);
}

static void roll_back(struct conn *c)
{
    if (!sqlite3_get_autocommit(c->db))
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
}

/* SQLITE_OK, or what came in the way; then nothing has begun.  Where SQLite had to read
 * the schema again it begins twice, and fails by that: a second try finds the schema. */
static int begin(struct conn *c, enum durable durable, struct topt_error *err)
{
    int full = durable == DURABLE, rc = SQLITE_OK;
    if (full != c->full) {
        rc = sqlite3_exec(
            c->db, full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
            NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            c->full = full;
    }
    for (int i = 0; i < 2 && rc == (i ? SQLITE_ERROR : SQLITE_OK); i++) {
        roll_back(c);
        rc = sqlite3_exec(c->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK && rc != SQLITE_BUSY)
        db_fail(c->db, "begin to write", err);
    if (rc != SQLITE_OK)
        roll_back(c);
    return rc;
}

struct conn *store_begin(struct store *s, enum durable durable, int wait_ms,
                         struct topt_error *err)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t until_ms = topt_clock_ms() + wait_ms;
    for (;;) {
        if (!take_writer(s, until_ms))
            break;
        int rc = begin(&s->writer, durable, err);
        if (rc == SQLITE_OK)
            return &s->writer;
        give_writer(s);
        if (rc != SQLITE_BUSY)
            return NULL;
        if (topt_clock_ms() >= until_ms)
            break;
        nanosleep(&pause, NULL);
    }
    topt_fail(err, TOPT_ERR_BUSY,
              "store: another program or writer has held the file for %d ms; end it, or "
              "ask again",
              wait_ms);
    return NULL;
}

int store_end(struct store *s, struct conn *c, int rc, struct topt_error *err)
{
    if (rc >= 0 && sqlite3_exec(c->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        rc = db_fail(c->db, "commit", err);
    roll_back(c);
    give_writer(s);
    return rc;
}

void db_close(struct conn *c)
{
    for (int i = 0; i < c->nkept; i++)
        sqlite3_finalize(c->kept[i].st);
    c->nkept = 0;
    sqlite3_close(c->db);
    c->db = NULL;
}

/* ---- statements ---------------------------------------------------------------------------- */

static sqlite3_stmt *prepared(struct conn *c, const char *sql, struct topt_error *err)
{
    for (int i = 0; i < c->nkept; i++)
        if (c->kept[i].sql == sql)
            return c->kept[i].st;
    sqlite3_stmt *st = NULL;
    if (c->nkept == MAX_KEPT) {
        topt_fail(err, TOPT_ERR_INTERNAL, "store: more than %d statements", MAX_KEPT);
        return NULL;
    }
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) !=
        SQLITE_OK) {
        db_fail(c->db, "prepare", err);
        return NULL;
    }
    c->kept[c->nkept].sql = sql;
    c->kept[c->nkept++].st = st;
    return st;
}

static int bind_all(sqlite3_stmt *st, const char *format, va_list ap)
{
    int rc = SQLITE_OK;
    for (int i = 1; *format && rc == SQLITE_OK; format++, i++) {
        if (*format == 's') {
            rc = sqlite3_bind_text(st, i, va_arg(ap, const char *), -1, SQLITE_STATIC);
        } else if (*format == 'b') {
            const void *data = va_arg(ap, const void *);
            rc = sqlite3_bind_blob64(st, i, data, va_arg(ap, size_t), SQLITE_STATIC);
        } else {
            rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
        }
    }
    return rc;
}

static sqlite3_stmt *bind_list(struct conn *c, struct topt_error *err, const char *sql,
                               const char *format, va_list ap)
{
    sqlite3_stmt *st = prepared(c, sql, err);
    if (st && bind_all(st, format, ap) != SQLITE_OK) {
        db_fail(c->db, "bind", err);
        db_done(st);
        return NULL;
    }
    return st;
}

sqlite3_stmt *db_bind(struct conn *c, struct topt_error *err, const char *sql,
                      const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    sqlite3_stmt *st = bind_list(c, err, sql, format, ap);
    va_end(ap);
    return st;
}

void db_done(sqlite3_stmt *st)
{
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
}

int db_step(struct conn *c, sqlite3_stmt *st, struct topt_error *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE
               ? 0
               : db_fail(c->db, sqlite3_stmt_readonly(st) ? "read" : "write", err);
}

/* One step.  1 a row, 0 none, -1; the number of rows changed, and the first number of the
 * row where there is one. */
static int run_once(struct conn *c, struct topt_error *err, const char *sql,
                    const char *format, va_list ap, int *ret_changed, int64_t *ret_first)
{
    sqlite3_stmt *st = bind_list(c, err, sql, format, ap);
    if (!st)
        return -1;
    int rc = db_step(c, st, err);
    *ret_changed = rc < 0 ? -1 : sqlite3_changes(c->db);
    if (rc > 0)
        *ret_first = sqlite3_column_int64(st, 0);
    db_done(st);
    return rc;
}

int db_run(struct conn *c, struct topt_error *err, const char *sql, const char *format,
           ...)
{
    va_list ap;
    int changed;
    int64_t unread;
    va_start(ap, format);
    int rc = run_once(c, err, sql, format, ap, &changed, &unread);
    va_end(ap);
    return rc < 0 ? -1 : changed;
}

int db_one(struct conn *c, struct topt_error *err, int64_t *ret, const char *sql,
           const char *format, ...)
{
    va_list ap;
    int changed;
    int64_t unread;
    va_start(ap, format);
    int rc = run_once(c, err, sql, format, ap, &changed, ret ? ret : &unread);
    va_end(ap);
    return rc;
}

char *db_text(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? strdup(text) : NULL;
}

const char *db_words(sqlite3_stmt *st, int i)
{
    const char *text = (const char *)sqlite3_column_text(st, i);
    return text ? text : "";
}

/* ---- lists --------------------------------------------------------------------------------- */

json_t *store_rows(struct conn *c, sqlite3_stmt *st, struct store_page *page,
                   json_t *(*row)(sqlite3_stmt *), struct topt_error *err)
{
    json_t *out = json_array();
    int rc = out ? 0 : topt_nomem(err, NULL), n = 0;
    page->more = 0;
    while (rc >= 0 && (rc = db_step(c, st, err)) > 0) {
        if (n++ == page->limit) {
            page->more = 1;
            break;
        }
        int bad = json_array_append_new(out, row(st));
        if (bad ||
            sqlite3_errcode(c->db) == SQLITE_NOMEM) /* a text that could not be had */
            rc = topt_nomem(err, NULL);
    }
    db_done(st);
    if (rc >= 0)
        return out;
    json_decref(out);
    return NULL;
}
