/* store_kill_test.c [TIMES] - the store's process is killed in the midst of writing,
 * TIMES times (20): what it said was stored is there, whole, and the file is sound. */
#include "store_kit.h"

#include <signal.h>
#include <sys/wait.h>

static char plan[9000];

static void names(int n, char id[40], char question[40])
{
    snprintf(id, 40, "p-%d", n);
    snprintf(question, 40, "question %d", n);
}

static const char *plan_of(int n)
{
    memset(plan, 'a' + n % 26, sizeof plan - 1);
    int len = snprintf(plan, 80, "{\"n\":%d,\"model\":{\"x\":\"", n);
    plan[len] = 'x';
    strcpy(plan + 7000, "\"},\"z\":2}");
    return plan;
}

/* Store one after another, and say so of each. */
static void write_on(int from, int out)
{
    struct store *s = NULL;
    if (store_open(dir, &s, &err) < 0)
        _exit(1);
    for (int n = from;; n++) {
        char id[40], question[40];
        names(n, id, question);
        const struct store_doc m = {"m-1", "model", "{}"};
        const struct store_answer a = {.feasible = 1,
                                       .plan_id = id,
                                       .plan = (char *)plan_of(n),
                                       .doc = (char *)"{\"a\":1}"};
        enum store_kept kept;
        if (store_publish(s, &(struct store_key){"m-1", "h-1", question}, &m, &a, 5,
                          &kept, &err) < 0 ||
            kept != STORE_ALL)
            _exit(2);
        if (n % 3 == 0)
            store_keep(s, (int64_t)time(NULL) + n * 10);
        if (write(out, &n, sizeof n) != sizeof n)
            _exit(3);
    }
}

/* What was the last that was stored? */
static int killed_after(int from, int ms)
{
    int pipes[2], n = 0, last = from - 1, status;
    if (pipe(pipes))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(pipes[0]);
        write_on(from, pipes[1]);
    }
    close(pipes[1]);
    while (read(pipes[0], &n, sizeof n) == sizeof n) /* the first says that it is open */
        if ((last = n) == from) {
            usleep((useconds_t)ms * 1000);
            kill(child, SIGKILL);
        }
    close(pipes[0]);
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status))
        printf("#   it ended by itself: %d\n", WEXITSTATUS(status));
    return WIFSIGNALED(status) ? last : -1;
}

static int is_there(struct store *s, int n)
{
    char id[40], question[40], *doc;
    struct store_answer got = {0};
    const struct store_who who = {.uid = 5};
    names(n, id, question);
    int good = store_get_answer(s, &(struct store_key){"m-1", "h-1", question}, &got,
                                &err) == 1 &&
               !strcmp(got.plan, plan_of(n));
    store_answer_fini(&got);
    good = good && store_get_plan(s, id, &who, &doc, &err) == 0;
    if (good) {
        good = !strcmp(doc, plan_of(n));
        free(doc);
    }
    return good;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 20, next = 0, lost = 0, bad = 0, slow = 0;
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    for (int i = 0; i < times; i++) {
        struct store *s = NULL;
        struct timespec before, after;
        int first = next, last = killed_after(next, 1 + i * 7 % 40);
        clock_gettime(CLOCK_MONOTONIC, &before);
        if (last < 0 || store_open(dir, &s, &err) < 0) {
            printf("#   round %d: %s\n", i, err.text);
            bad++;
            break;
        }
        clock_gettime(CLOCK_MONOTONIC, &after);
        slow += (after.tv_sec - before.tv_sec) * 1000 +
                    (after.tv_nsec - before.tv_nsec) / 1000000 >
                900;
        for (int n = first; n <= last; n++)
            lost += !is_there(s, n);
        next = last + 2; /* the one after the last may be stored, and unsaid */
        store_close(s);
    }
    is_int(bad, 0, "killed %d times in the midst of writing, it opens again", times);
    is_int(lost, 0, "of %d that were stored all are there", next);
    is_int(slow, 0, "and it opens within a second");
    ok(next > 2 * times, "there was something to lose");
    is_int(number("SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'"), 0,
           "the file is sound");
    return remove_dir() ? EXIT_FAILURE : done_testing();
}
