/* store_fault_test.c - what may be wrong with the store's file: no room, another
 * program's lock, damage, a newer schema, another program's file, no leave to write. */
#include "store_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const struct store_who me = {.uid = 1};
enum { BIG = 60000 };

static long long ms_since(const struct timespec *t)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - t->tv_sec) * 1000LL + (now.tv_nsec - t->tv_nsec) / 1000000;
}

static int publish(struct store *s, const char *question, const char *id, char *text)
{
    const struct store_doc model = {"m-1", "model", "{}"};
    const struct store_answer a = {
        .feasible = 1, .plan_id = (char *)id, .plan = text, .doc = text};
    enum store_kept kept;
    topt_error_clear(&err);
    int rc = store_publish(s, &(struct store_key){"m-1", "h-1", question}, &model, &a, 1,
                           &kept, &err);
    return rc < 0 ? -1 : (int)kept;
}

static int finds(struct store *s, const char *question)
{
    struct store_answer got = {0};
    int rc = store_get_answer(s, &(struct store_key){"m-1", "h-1", question}, &got, &err);
    store_answer_fini(&got);
    return rc;
}

static int has_plan(struct store *s, const char *id)
{
    char *doc;
    int rc = store_get_plan(s, id, &me, &doc, &err);
    free(doc);
    return rc == 0;
}

static char *big_text(char fill)
{
    static char text[2][BIG];
    char *t = text[fill & 1];
    memset(t, fill, BIG - 1);
    t[0] = '{';
    t[BIG - 2] = '}';
    t[BIG - 1] = '\0';
    return t;
}

/* ---- no room ------------------------------------------------------------------------------- */

static void test_no_room(void)
{
    struct rlimit old, small;
    struct store *s = open_store();
    if (!s || getrlimit(RLIMIT_FSIZE, &old))
        return;
    is_int(publish(s, "before", "p-1", (char *)"{1}"), STORE_ALL, "there is room");
    small = old;
    small.rlim_cur = 128 << 10;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int kept = STORE_ALL;
    for (int i = 0; i < 20 && kept == STORE_ALL; i++) {
        char id[16];
        snprintf(id, sizeof id, "p-room%d", i);
        kept = publish(s, id, id, big_text((char)('a' + i)));
    }
    is_int(kept, STORE_NOTHING,
           "then there is none: nothing is stored, and that is no error");
    is_int(err.code, TOPT_ERR_ROOM, "but said: %s", err.text);
    is_int(topt_err_http(err.code), 507, "as 507");
    is_int(finds(s, "before"), 1, "what was there is found");
    ok(has_plan(s, "p-1"), "plans, too");
    is_int(store_put_model(s, &(struct store_doc){"m-2", "two", big_text('m')}, 1,
                           STORE_REFUSE, &err),
           -1, "what must be stored fails: %s", err.text);
    is_int(err.code, TOPT_ERR_ROOM, "for the same reason");
    setrlimit(RLIMIT_FSIZE, &old);
    is_int(publish(s, "after", "p-2", big_text('z')), STORE_ALL,
           "with room again it is stored");
    ok(finds(s, "after") == 1 && has_plan(s, "p-2"), "and found");
    store_close(s);
}

/* The same on a file system that is full; where it may be mounted. */
static void test_full_file_system(void)
{
    char place[sizeof dir + 16], command[160];
    struct store *s = NULL;
    snprintf(place, sizeof place, "%s/full", dir);
    snprintf(command, sizeof command,
             "mkdir %s && mount -t tmpfs -o size=600k tmpfs %s 2>/dev/null", place,
             place);
    if (geteuid() || system(command)) {
        ok(1, "# skip: no file system may be mounted here");
        return;
    }
    is_int(store_open(place, &s, &err), 0, "a store on a small file system %s", err.text);
    int kept = s ? STORE_ALL : STORE_NOTHING, n = 0;
    for (; n < 40 && kept == STORE_ALL; n++) {
        char id[16];
        snprintf(id, sizeof id, "p-full%d", n);
        kept = publish(s, id, id, big_text((char)('a' + n)));
    }
    ok(kept == STORE_NOTHING && n > 1, "is full after %d plans: %s", n - 1, err.text);
    is_int(err.code, TOPT_ERR_ROOM, "and says so");
    int lost = 0;
    for (int i = 0; i < n - 1; i++) {
        char id[16];
        snprintf(id, sizeof id, "p-full%d", i);
        lost += !has_plan(s, id) || finds(s, id) != 1;
    }
    is_int(lost, 0, "all that was stored is there");
    store_close(s);
    is_int(store_open(place, &s, &err), 0, "it opens again %s", err.text);
    ok(has_plan(s, "p-full0"), "with what it had");
    store_close(s);
    snprintf(command, sizeof command, "umount %s", place);
    ok(!system(command), "unmounted");
}

/* ---- another program's lock ---------------------------------------------------------------- */

static void *write_late(void *store)
{
    struct topt_error mine = {0};
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int rc = store_disown(store, "p-1", 1, &mine);
    return (void *)(intptr_t)(rc < 0 && mine.code == TOPT_ERR_BUSY ? ms_since(&start)
                                                                   : -1);
}

static void test_lock(void)
{
    char path[80];
    sqlite3 *other;
    pthread_t thread[3];
    struct timespec start;
    struct store *s = open_store();
    db_path(path);
    sqlite3_open(path, &other);
    is_int(sqlite3_exec(other, "BEGIN EXCLUSIVE; INSERT INTO settings VALUES ('x', 'y')",
                        NULL, NULL, NULL),
           SQLITE_OK, "another program writes, and does not end");
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, write_late, s);
    usleep(50000);
    clock_gettime(CLOCK_MONOTONIC, &start);
    int missed = 0;
    for (int i = 0; i < 100; i++)
        missed += finds(s, "before") != 1 || !has_plan(s, "p-1");
    is_int(missed, 0, "reads go on");
    ok(ms_since(&start) < 500, "and wait for nobody: 200 in %lld ms", ms_since(&start));
    clock_gettime(CLOCK_MONOTONIC, &start);
    store_keep(s, (int64_t)time(NULL) + 100000);
    ok(ms_since(&start) < 500, "nor does housekeeping");
    for (int i = 0; i < 3; i++) {
        void *ms;
        pthread_join(thread[i], &ms);
        ok((intptr_t)ms >= STORE_WAIT_MS - 1 && (intptr_t)ms < STORE_WAIT_MS + 1000,
           "a write gives up after %lld ms", (long long)(intptr_t)ms);
    }
    is_int(publish(s, "locked", "p-3", (char *)"{3}"), STORE_NOTHING,
           "a found answer is not lost: %s", err.text);
    is_int(err.code, TOPT_ERR_BUSY, "it is said why it was not stored");
    sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(other);
    is_int(publish(s, "locked", "p-3", (char *)"{3}"), STORE_ALL,
           "without the lock it is stored");
    store_close(s);
}

/* ---- damage -------------------------------------------------------------------------------- */

/* Make the pages that hold the text point nowhere. */
static int damage(char fill)
{
    char path[80], page[4096];
    int n = 0;
    db_path(path);
    int fd = open(path, O_RDWR);
    for (off_t at = 0; pread(fd, page, sizeof page, at) == sizeof page;
         at += (off_t)sizeof page) {
        if (page[100] != fill || page[2000] != fill || page[4000] != fill)
            continue;
        memset(page, 0xff, 4);
        n += pwrite(fd, page, sizeof page, at) == sizeof page;
    }
    close(fd);
    return n;
}

static char *copy_of_file(size_t *len)
{
    char path[80];
    db_path(path);
    FILE *f = fopen(path, "r");
    char *bytes = malloc(1 << 22);
    *len = f && bytes ? fread(bytes, 1, 1 << 22, f) : 0;
    if (f)
        fclose(f);
    return bytes;
}

/* The store can't be opened, says which file and why, and leaves it. */
static void refused(const char *what, const char *word)
{
    struct store *s = NULL;
    size_t before_len, after_len;
    char *before = copy_of_file(&before_len), path[80];
    db_path(path);
    topt_error_clear(&err);
    is_int(store_open(dir, &s, &err), -1, "%s: %s", what, err.text);
    ok(strstr(err.text, path) && strstr(err.text, word), "it is named, and why");
    char *after = copy_of_file(&after_len);
    ok(before_len == after_len && !memcmp(before, after, after_len),
       "and left as it is, %zu bytes", after_len);
    free(before);
    free(after);
}

static void test_damage(void)
{
    struct store *s = open_store();
    is_int(publish(s, "sound", "p-4", (char *)"{4}"), STORE_ALL, "a sound row");
    is_int(publish(s, "broken", "p-5", big_text('Q')), STORE_ALL, "one that will break");
    store_close(s);
    s = open_store();
    ok(damage('Q') > 10, "pages are damaged behind the store's back");
    is_int(finds(s, "broken"), 0, "a row that can't be read is not found");
    is_int(finds(s, "sound"), 1, "others are");
    char *doc;
    is_int(store_get_plan(s, "p-5", &me, &doc, &err), -1,
           "a plan that can't be read is an error: %s", err.text);
    is_int(publish(s, "broken", "p-6", (char *)"{6}") >= 0, 1,
           "the question is searched again");
    ok(has_plan(s, "p-6"), "and its plan kept");
    store_close(s);
    refused("a damaged file", "damaged");
    char path[80];
    db_path(path);
    ok(!truncate(path, 300 << 20), "of a large one (sparse)");
    s = open_store();
    ok(s && finds(s, "sound") == 1 && !has_plan(s, "p-5"),
       "plans and answers are not read at the start");
    is_int(store_put_model(s, &(struct store_doc){"m-5", "five", big_text('W')}, 1,
                           STORE_REFUSE, &err),
           1, "a model is put: %s", err.text);
    store_close(s);
    ok(damage('W') > 10, "and damaged");
    is_int(store_open(dir, &s, &err), -1, "models are: %s", err.text);
}

static void put_file(const char *bytes, size_t len)
{
    char path[80], side[100];
    db_path(path);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (int i = 0; i < 3; i++) {
        snprintf(side, sizeof side, "%s%s", path, ends[i]);
        unlink(side);
    }
    FILE *f = len ? fopen(path, "w") : NULL;
    if (f) {
        fwrite(bytes, 1, len, f);
        fclose(f);
    }
}

static void test_strange(void)
{
    char noise[8192];
    memset(noise, 'n', sizeof noise);
    put_file(noise, sizeof noise);
    refused("a file that is no database", "not a database");
    put_file(NULL, 0);
    tamper("CREATE TABLE recipes (x); INSERT INTO recipes VALUES (1)");
    refused("another program's database", "not a store");
    put_file(NULL, 0);
    struct store *s = open_store();
    store_close(s);
    tamper("PRAGMA user_version = 99");
    refused("a newer schema", "newer");
    /* the tables are there: 002 must fail */
    tamper("PRAGMA user_version = 1; PRAGMA application_id = 0");
    struct store *again = NULL;
    is_int(store_open(dir, &again, &err), -1, "a migration that fails half way: %s",
           err.text);
    is_int(number("SELECT count(*) FROM plans"), 0, "leaves what was there");
    is_int(number("PRAGMA user_version"), 1, "under its number");
}

/* ---- no leave to write --------------------------------------------------------------------- */

static void try_as_nobody(void)
{
    struct store *s = NULL;
    if (!geteuid() && (setgid(65534) || setuid(65534)))
        _exit(2);
    int rc = store_open(dir, &s, &err);
    fprintf(stderr, "# %s\n", err.text);
    _exit(rc < 0 && strstr(err.text, "can't write") && strstr(err.text, "topt.db") ? 0
                                                                                   : 1);
}

static void test_read_only(void)
{
    char path[80], lock[80];
    int status = 0;
    put_file(NULL, 0);
    struct store *s = open_store();
    is_int(publish(s, "q", "p-1", (char *)"{1}"), STORE_ALL, "a store");
    store_close(s);
    db_path(path);
    snprintf(lock, sizeof lock, "%s/toptd.lock", dir);
    chmod(dir, 0777);
    chmod(lock, 0666);
    chmod(path, 0444);
    pid_t child = fork();
    if (child == 0)
        try_as_nobody();
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "a file that may only be read is named at the start");
    chmod(path, 0600);
    s = open_store();
    ok(has_plan(s, "p-1"), "it is as it was");
    store_close(s);
}

int main(void)
{
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    test_no_room();
    test_full_file_system();
    test_lock();
    test_damage();
    test_strange();
    test_read_only();
    return remove_dir() ? EXIT_FAILURE : done_testing();
}
