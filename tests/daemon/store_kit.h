/* store_kit.h - what the tests of the store share: a directory of their own, a file
 * changed behind its back. */
#ifndef STORE_KIT_H
#define STORE_KIT_H

#include "store.h"
#include "tap.h"

#include <sqlite3.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct topt_error err;
static char dir[] = "/tmp/topt-store-XXXXXX";

__attribute__((unused)) static void db_path(char ret[80])
{
    snprintf(ret, 80, "%s/topt.db", dir);
}

__attribute__((unused)) static struct store *open_store(void)
{
    struct store *s = NULL;
    topt_error_clear(&err);
    ok(store_open(dir, &s, &err) == 0, "opens %s", err.text);
    return s;
}

/* Change the file behind the store's back. */
__attribute__((unused)) static int tamper(const char *sql)
{
    char path[80];
    sqlite3 *db;
    db_path(path);
    sqlite3_open(path, &db);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc)
        printf("# %s\n", sqlite3_errmsg(db));
    sqlite3_close(db);
    return rc;
}

/* A number that the file holds. */
__attribute__((unused)) static long long number(const char *sql)
{
    char path[80];
    sqlite3 *db;
    sqlite3_stmt *st = NULL;
    long long n = -1;
    db_path(path);
    sqlite3_open(path, &db);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int64(st, 0);
    else
        printf("# %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(st);
    sqlite3_close(db);
    return n;
}

__attribute__((unused)) static int remove_dir(void)
{
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

#endif
