/* nomem.h - memory that does not suffice: the n-th allocation of the program fails,
 * whichever thread makes it.
 *
 * Allocations of the program itself come through the linker's --wrap, those of SQLite and
 * of the JSON library through their own hooks; one counter fails the n-th of them. */
#ifndef TOPT_TEST_NOMEM_H
#define TOPT_TEST_NOMEM_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "topt_json.h"

static atomic_long nomem_left = -1; /* allocations until one fails; -1 none does */
static atomic_int nomem_failed;     /* one did */

static int nomem_fails(void)
{
    long left = atomic_load(&nomem_left);
    while (left >= 0 && !atomic_compare_exchange_weak(&nomem_left, &left, left - 1))
        ;
    if (left)
        return 0;
    atomic_store(&nomem_failed, 1);
    return 1;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
    return nomem_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return nomem_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return nomem_fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
    return nomem_fails() ? NULL : __real_strdup(s);
}

static sqlite3_mem_methods nomem_own;

static void *nomem_sql_malloc(int n)
{
    return nomem_fails() ? NULL : nomem_own.xMalloc(n);
}

static void *nomem_sql_realloc(void *p, int n)
{
    return nomem_fails() ? NULL : nomem_own.xRealloc(p, n);
}

/* Before the first of either library's allocations. */
static void nomem_hook(void)
{
    static sqlite3_mem_methods mine;
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &nomem_own);
    mine = nomem_own;
    mine.xMalloc = nomem_sql_malloc;
    mine.xRealloc = nomem_sql_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
    topt_json_watch_memory(); /* its malloc is the one above */
}

#endif
