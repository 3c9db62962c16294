/* open.c - the store's file: made, checked, brought up to date, closed.
 *
 * The schema is sql/NNN-name.sql, applied in order; PRAGMA user_version holds the number
 * of the last one, and each is applied in one transaction together with that number, so a
 * crash leaves the schema of before or of after.  WAL survives kill -9 whole, whatever
 * 'synchronous' says.
 *
 * Before anything is written the file is looked at: one that is newer, damaged, another
 * program's or not to be written is named and stays as it is, byte for byte.  The check
 * reads the whole file, about half a second for 256 MiB; a start must not take longer,
 * and SQLite's check can't be cut short, so of a larger file only the small tables are
 * checked.  Damage elsewhere shows when a row is read: a row of the cache is then dropped,
 * and a plan's is an error of its own. */
#include "db.h"
#include "embed.h"
#include "topt_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECK_WHOLE = 256 << 20, /* bytes of a file that is read whole at the start */
    READ_WAIT_MS = 200,      /* readers wait only while the log is recovered */
};
static const int64_t gib = (int64_t)1 << 30, day = 24 * 3600;

/* ---- the directory ------------------------------------------------------------------------- */

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

/* ---- looking at the file ------------------------------------------------------------------- */

static int exec(sqlite3 *db, const char *sql, const char *doing, struct topt_error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                : db_fail(db, doing, err);
}

/* The first column of a statement's first row, as text; -1 where there is none. */
static int ask(sqlite3 *db, const char *sql, char *ret, size_t size)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        snprintf(ret, size, "%s", db_words(st, 0));
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : -1;
}

static int ask_number(sqlite3 *db, const char *sql, int64_t *ret, struct topt_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    else
        db_fail(db, "read its head", err);
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : -1;
}

/* One check, whole or of a table; 'sql' says which. */
static int check(sqlite3 *db, const char *sql, struct topt_error *err)
{
    char said[160] = "";
    int rc = ask(db, sql, said, sizeof said);
    if (rc < 0 && (sqlite3_errcode(db) & 0xff) != SQLITE_CORRUPT)
        return db_fail(db, "check the file", err);
    const char *unread = strstr(said, "unable to get the page. error code=");
    if ((rc == 0 && !*said) || (unread && atoi(strchr(unread, '=') + 1) == SQLITE_NOMEM))
        return topt_nomem(err, "checking the file");
    if (rc < 0 || strcmp(said, "ok"))
        return topt_fail(err, TOPT_ERR_IO,
                         "the file is damaged (%.100s); it is left as it is: put a "
                         "backup in its place, or move it away",
                         rc < 0 ? sqlite3_errmsg(db) : said);
    return 0;
}

static int check_whole(sqlite3 *db, struct topt_error *err)
{
    return check(db, "PRAGMA quick_check(1)", err);
}

/* Of a large file the tables that are small. */
static int check_small(sqlite3 *db, struct topt_error *err)
{
    static const char *const names[] = {"models", "hardware", "owners",
                                        "shares", "settings", "observations"};
    char sql[120], there[16];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(sql, sizeof sql, "SELECT 1 FROM sqlite_schema WHERE name = '%s'",
                 names[i]);
        if (ask(db, sql, there, sizeof there) < 0)
            continue; /* of a later schema */
        snprintf(sql, sizeof sql, "PRAGMA quick_check('%s')", names[i]);
        if (check(db, sql, err) < 0)
            return -1;
    }
    return 0;
}

static int check_start(sqlite3 *db, const char *path, struct topt_error *err)
{
    struct stat st;
    if (stat(path, &st) || st.st_size <= CHECK_WHOLE)
        return check_whole(db, err);
    topt_log(TOPT_LOG_INFO, "store: '%s' is large: plans and answers are not checked",
             path);
    return check_small(db, err);
}

static int known_schema(void)
{
    int n = 0;
    while (migrations[n].name)
        n++;
    return n;
}

/* 'ret' gets the schema's number. */
static int check_head(sqlite3 *db, int64_t *ret, struct topt_error *err)
{
    int64_t application = 0, tables = 0;
    if (ask_number(db, "PRAGMA user_version", ret, err) < 0 ||
        ask_number(db, "PRAGMA application_id", &application, err) < 0 ||
        ask_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
        return -1;
    int is_ours = application == TOPT_APPLICATION || (*ret == 1 && !application) ||
                  (!*ret && !tables);
    if (!is_ours)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the file is not a store of toptd; it is left as it is");
    if (*ret > known_schema())
        return topt_fail(err, TOPT_ERR_INVAL,
                         "schema %lld is newer than this toptd's %d; use a newer toptd",
                         (long long)*ret, known_schema());
    return 0;
}

static int can_write(sqlite3 *db, const char *path, struct topt_error *err)
{
    if (access(path, W_OK))
        return topt_fail(err, TOPT_ERR_IO, "toptd can't write to it: %s",
                         strerror(errno));
    if (sqlite3_db_readonly(db, "main") == 1)
        return topt_fail(err, TOPT_ERR_IO,
                         "toptd can't write to it: it could be opened for reading only");
    return 0;
}

/* ---- migrations ---------------------------------------------------------------------------- */

static int apply(sqlite3 *db, int number, const struct embedded *m,
                 struct topt_error *err)
{
    char set[64];
    snprintf(set, sizeof set, "PRAGMA user_version = %d", number);
    if (exec(db, "BEGIN IMMEDIATE", "begin", err) < 0)
        return -1;
    if (exec(db, m->text, "apply", err) < 0 || exec(db, set, "number", err) < 0 ||
        exec(db, "COMMIT", "commit", err) < 0) {
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        return topt_wrap(err, "migration %s", m->name);
    }
    return 0;
}

static int migrate(sqlite3 *db, int64_t have, struct topt_error *err)
{
    for (int i = (int)have; migrations[i].name; i++)
        if (apply(db, i + 1, &migrations[i], err) < 0)
            return -1;
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int open_conn(const char *path, int flags, struct conn *c, struct topt_error *err)
{
    int rc = sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        return sqlite3_extended_result_codes(c->db, 1), 0;
    return c->db ? db_fail(c->db, "open", err) : topt_nomem(err, NULL);
}

/* What is not ours to change is not even checkpointed. */
static int look(struct conn *c, const char *path, int64_t *ret_schema,
                struct topt_error *err)
{
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_busy_timeout(c->db, STORE_WAIT_MS);
    if (check_head(c->db, ret_schema, err) < 0 || can_write(c->db, path, err) < 0 ||
        check_start(c->db, path, err) < 0)
        return -1;
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return 0;
}

static int open_writer(struct store *s, const char *path, struct topt_error *err)
{
    struct conn *c = &s->writer;
    int64_t schema;
    if (open_conn(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, c, err) < 0 ||
        look(c, path, &schema, err) < 0 ||
        exec(c->db,
             "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
             " PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
             "set it up", err) < 0 ||
        migrate(c->db, schema, err) < 0)
        return -1;
    c->full = 1;
    sqlite3_busy_timeout(c->db, 0); /* store_begin waits */
    return 0;
}

static int open_readers(struct store *s, const char *path, struct topt_error *err)
{
    for (int i = 0; i < STORE_READERS; i++) {
        struct conn *c = &s->reader[i];
        if (open_conn(path, SQLITE_OPEN_READWRITE, c, err) < 0 ||
            exec(c->db, "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;",
                 "set it up", err) < 0)
            return -1;
        sqlite3_busy_timeout(c->db, READ_WAIT_MS);
        c->next = s->idle;
        s->idle = c;
    }
    return 0;
}

static int open_file(struct store *s, const char *dir, struct topt_error *err)
{
    char path[640];
    snprintf(path, sizeof path, "%s/topt.db", dir);
    if (open_writer(s, path, err) < 0 || open_readers(s, path, err) < 0)
        return topt_wrap(err, "'%s'", path);
    return 0;
}

static void init_locks(struct store *s)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->pool, NULL);
    pthread_mutex_init(&s->write, NULL);
    pthread_mutex_init(&s->touch_lock, NULL);
    pthread_cond_init(&s->reader_back, NULL);
    pthread_cond_init(&s->writer_back, &clock);
    pthread_condattr_destroy(&clock);
}

int store_open(const char *dir, struct store **ret, struct topt_error *err)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return topt_nomem(err, NULL);
    s->lock_fd = -1;
    init_locks(s);
    store_limits(s, gib, 90);
    store_quota(s, 10000, gib / 4);
    atomic_init(&s->grown, true);
    atomic_init(&s->orphans, true);
    if (make_dir(dir, err) < 0 || lock_dir(s, dir, err) < 0 ||
        open_file(s, dir, err) < 0) {
        store_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void store_limits(struct store *s, int64_t cache_bytes, int64_t keep_plans_days)
{
    atomic_store(&s->cache_bytes, cache_bytes);
    atomic_store(&s->keep_plans, keep_plans_days * day);
}

void store_quota(struct store *s, int64_t user_documents, int64_t user_bytes)
{
    atomic_store(&s->user_documents, user_documents);
    atomic_store(&s->user_bytes, user_bytes);
}

unsigned long long store_given_up(const struct store *s)
{
    return atomic_load(&s->given_up);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (int i = 0; i < STORE_READERS; i++)
        db_close(&s->reader[i]);
    db_close(&s->writer);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_mutex_destroy(&s->pool);
    pthread_mutex_destroy(&s->write);
    pthread_mutex_destroy(&s->touch_lock);
    pthread_cond_destroy(&s->reader_back);
    pthread_cond_destroy(&s->writer_back);
    free(s);
}

int store_check(struct store *s, struct topt_error *err)
{
    static const char sql[] = "SELECT count(*) FROM settings";
    struct conn *c = store_reader(s);
    int rc = db_one(c, err, NULL, sql, "");
    store_reader_end(s, c);
    return rc < 0 ? -1 : 0;
}

/* ---- backup -------------------------------------------------------------------------------- */

/* In one step: one snapshot, however much is written meanwhile. */
static int copy(sqlite3 *from, sqlite3 *to, struct topt_error *err)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    if (!b)
        return db_fail(to, "copy", err);
    int rc = sqlite3_backup_step(b, -1);
    sqlite3_backup_finish(b);
    if (rc == SQLITE_DONE)
        return 0;
    if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
        return topt_fail(err, TOPT_ERR_BUSY, "another program holds the file");
    return db_fail(to, "copy", err);
}

/* A copy is one file, not to be opened with a log beside it, and good. */
static int finish_copy(sqlite3 *to, struct topt_error *err)
{
    if (exec(to, "PRAGMA journal_mode = DELETE", "finish the copy", err) < 0)
        return -1;
    return check_whole(to, err);
}

static int copy_to(const char *from, const char *part, struct topt_error *err)
{
    struct conn source = {0}, copied = {0};
    int64_t schema;
    int rc = open_conn(from, SQLITE_OPEN_READWRITE, &source, err);
    if (rc == 0) {
        sqlite3_busy_timeout(source.db, STORE_WAIT_MS);
        rc = check_head(source.db, &schema, err);
    }
    if (rc < 0)
        topt_wrap(err, "'%s'", from);
    if (rc == 0 &&
        (open_conn(part, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &copied, err) < 0 ||
         copy(source.db, copied.db, err) < 0 || finish_copy(copied.db, err) < 0))
        rc = topt_wrap(err, "'%s'", part);
    db_close(&copied);
    db_close(&source);
    return rc;
}

/* Its bytes and its name are on disk before anybody counts on it. */
static int put_in_place(const char *part, const char *file, struct topt_error *err)
{
    int fd = open(part, O_RDONLY | O_CLOEXEC);
    int good = fd >= 0 && fsync(fd) == 0;
    if (good)
        good = rename(part, file) == 0;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    return good ? 0
                : topt_fail(err, TOPT_ERR_IO, "write '%s': %s", file, strerror(saved));
}

int store_backup(const char *dir, const char *file, struct topt_error *err)
{
    char from[640], part[4096];
    snprintf(from, sizeof from, "%s/topt.db", dir);
    if (snprintf(part, sizeof part, "%s.part", file) >= (int)sizeof part)
        return topt_fail(err, TOPT_ERR_USAGE, "the backup's path is too long");
    int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "create '%s': %s", part, strerror(errno));
    close(fd);
    int rc = copy_to(from, part, err);
    if (rc == 0)
        rc = put_in_place(part, file, err);
    if (rc < 0)
        unlink(part);
    return rc;
}

/* ---- a look from outside ------------------------------------------------------------------- */

int store_names_hw(const char *dir, const char *key, struct topt_error *err)
{
    static const char sql[] =
        "SELECT 1 FROM hardware WHERE (name = ?1 OR id = ?1) AND retired = 0";
    struct conn c = {0};
    char path[640];
    snprintf(path, sizeof path, "%s/topt.db", dir);
    if (access(path, R_OK | W_OK))
        return errno == ENOENT
                   ? 0
                   : topt_fail(err, TOPT_ERR_IO, "the store '%s' can't be read: %s", path,
                               strerror(errno));
    int rc = open_conn(path, SQLITE_OPEN_READWRITE, &c, err);
    if (rc == 0) {
        sqlite3_busy_timeout(c.db, STORE_WAIT_MS);
        rc = db_one(&c, err, NULL, sql, "s", key);
    }
    if (rc < 0)
        topt_wrap(err, "'%s'", path);
    db_close(&c);
    return rc;
}
