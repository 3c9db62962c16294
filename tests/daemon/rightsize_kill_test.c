/* rightsize_kill_test.c - topt rightsize killed at each of its requests to Slurm, before it is carried
 * out, after any of its words, or after all of it, and in the middle of each line of its log: as it changes jobs that
 * wait, takes that back, and stops one that runs.  The next
 * run, which may be killed in the same way, has to leave each job as a run that nobody killed leaves it.
 *
 * Usage: daemon_rightsize_kill TOPT-RIGHTSIZE [all], "all": each pair of points at which two runs are
 * killed and each byte of the log, else some of them.
 *
 * The program is its own scontrol, with jobs in files: a process that the run starts knows when to kill
 * its parent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sizes.h"
#include "tap.h"
#include "topt_text.h"

enum { JOBS = 2, VALUES = 12, POINTS = 256, LOG = 1 << 16 };

/* What an update may say, and what a job has of it. */
static const char *const words[VALUES] = {
    "NumNodes=", "NumTasks=",    "TasksPerNode=", "Gres=gpu:",
    "NumCPUs=",  "MinCPUsNode=", "TimeLimit=",    "Partition=p",
    "Priority=", "(state)",      "(restarts)",    "(looks)"};
enum {
    NODES,
    TASKS,
    TASKS_EACH,
    GPUS_EACH,
    CPUS,
    CPUS_EACH,
    MINUTES,
    PARTITION,
    PRIORITY,
    STATE,
    RESTARTS,
    LOOKS /* until it has stopped */
};
enum { WAITS, RUNS, STOPS, IS_HELD }; /* states */

struct lab {
    int job[JOBS][VALUES];
    int is_reserved;
    int calls;
    int at,
        words; /* the call at which the parent is killed, after so many words; 0: none */
    int most[POINTS];  /* of each call, the words that it had */
    off_t log[POINTS]; /* and how long the log was */
};

static const struct lab fresh = {
    .job = {{1, 4, 4, 4, 4, 4, 60, 0, 10}, {1, 4, 4, 4, 4, 4, 60, 0, 9}}};
/* The first asked for two GPUs and runs on four; the second waits for two. */
static const struct lab grown = {
    .job = {{1, 4, 4, 4, 4, 4, 60, 0, 10, RUNS}, {1, 2, 2, 2, 2, 2, 5, 0, 9}}};
static char folder[] = "/tmp/topt-kill.XXXXXX";
static const char *program; /* topt-rightsize */
static char self[4096];

static char *path(const char *name)
{
    static char ret[3][4200];
    static int next;
    next = (next + 1) % 3;
    snprintf(ret[next], sizeof *ret, "%s/%s", folder, name);
    return ret[next];
}

static void lab_move(int writes, struct lab *l)
{
    int fd = open(path("lab"), writes ? O_WRONLY | O_CREAT : O_RDONLY, 0600);
    ssize_t n = fd < 0 ? -1 : writes ? write(fd, l, sizeof *l) : read(fd, l, sizeof *l);
    if (n != (ssize_t)sizeof *l || close(fd))
        abort();
}

static off_t log_size(void)
{
    struct stat st;
    return stat(path("log"), &st) ? 0 : st.st_size;
}

/* ---- scontrol ---------------------------------------------------------------------- */

/* The second job agreed to GPUs of another kind. */
static const char *const plans[JOBS] = {"1x1:4000000000,1x2:2000000000,1x4:1000000000*",
                                        "1x4:1000000000*,1x2:2000000000@1;kinds=p0,p1"};

/* A time so many minutes from now. */
static const char *at(int minutes, char ret[32])
{
    time_t t = time(NULL) + 60 * minutes;
    struct tm tm;
    strftime(ret, 32, "%Y-%m-%dT%H:%M:%S", localtime_r(&t, &tm));
    return ret;
}

/* Of 'grown': the second is of no plan, and its lateness a matter of minutes. */
static void show_grown(const struct lab *l, int i)
{
    static const char *const states[] = {"PENDING", "RUNNING", "COMPLETING", "PENDING"};
    const int *v = l->job[i];
    char start[32], end[32], submitted[32];
    int is_held = v[STATE] == STOPS || v[STATE] == IS_HELD;
    if (i)
        at(-1, submitted);
    else /* another time, once it was requeued */
        snprintf(submitted, sizeof submitted, "2026-11-23T06:07:%02d", v[RESTARTS] % 60);
    printf(
        "JobId=%d JobName=wrap UserId=u(1) Priority=%d JobState=%s Reason=%s Requeue=1 "
        "Restarts=%d BatchFlag=1 TimeLimit=%02d:%02d:00 SubmitTime=%s "
        "StartTime=%s EndTime=%s Partition=p0 NodeList=%s NumNodes=%d NumCPUs=%d "
        "NumTasks=%d "
        "CPUs/Task=1 NtasksPerN:B:S:C=%d:0:*:* MinCPUsNode=%d "
        "TresPerNode=gres:gpu:%d%s\n",
        i + 1, is_held ? 0 : v[PRIORITY], states[v[STATE]],
        is_held ? "job_requeued_in_held_state" : "Resources", v[RESTARTS],
        v[MINUTES] / 60, v[MINUTES] % 60, submitted, at(-20, start), at(40, end),
        v[STATE] == RUNS ? "n1" : "(null)", v[NODES], v[CPUS], v[TASKS], v[TASKS_EACH],
        v[CPUS_EACH], v[GPUS_EACH],
        i ? ""
          : " Comment=topt-elastic=1x2:2000000000*,1x4:1000000000;requeue  StdErr=/x");
}

static void show_job(const struct lab *l, int i)
{
    const int *v = l->job[i];
    if (getenv("TOPT_LAB_GROWN")) {
        show_grown(l, i);
        return;
    }
    printf("JobId=%d JobName=wrap UserId=u(1) Priority=%d JobState=PENDING "
           "Reason=Resources BatchFlag=1 TimeLimit=%02d:%02d:00 "
           "SubmitTime=2026-11-23T06:07:01 Partition=p%d NumNodes=%d-%d NumCPUs=%d "
           "NumTasks=%d CPUs/Task=1 NtasksPerN:B:S:C=%d:0:*:* MinCPUsNode=%d "
           "Comment=topt-elastic=%s  StdErr=/x "
           "TresPerNode=gres:gpu:%d\n",
           i + 1, v[PRIORITY], v[MINUTES] / 60, v[MINUTES] % 60, v[PARTITION], v[NODES],
           v[NODES], v[CPUS], v[TASKS], v[TASKS_EACH], v[CPUS_EACH], plans[i],
           v[GPUS_EACH]);
}

/* GPUs of the first node in use. */
static int used(const struct lab *l)
{
    return !getenv("TOPT_LAB_GROWN")                               ? 2
           : l->job[0][STATE] == RUNS || l->job[0][STATE] == STOPS ? l->job[0][GPUS_EACH]
                                                                   : 0;
}

static void show(const struct lab *l, const char *what)
{
    int job = 0;
    if (!strcmp(what, "partition"))
        for (int i = 0; i < 2; i++)
            printf("PartitionName=p%d Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED "
                   "State=UP\n",
                   i);
    for (int i = 1; i <= 2 && !strcmp(what, "node"); i++)
        printf("NodeName=n%d CPUEfctv=16 Gres=gpu:4(S:0) GresUsed=gpu:%d(IDX:0-1) "
               "CPUAlloc=%d AllocMem=0 RealMemory=4000 State=MIXED Partitions=p%d\n",
               i, i == 1 ? used(l) : 2, i == 1 ? used(l) : 2, i - 1);
    if (sscanf(what, "job=%d", &job) == 1)
        show_job(l, job - 1);
    for (int i = 0; i < JOBS && !strcmp(what, "job"); i++)
        show_job(l, i);
}

/* The controller as it meets half of a request: the first 'n' words. */
static void update(struct lab *l, char **word, int n)
{
    int *v = l->job[atoi(word[0] + strlen("JobId=")) - 1];
    for (int i = 1; i <= n; i++)
        for (int k = 0; k < VALUES; k++)
            if (!strncmp(word[i], words[k], strlen(words[k])))
                v[k] = atoi(word[i] + strlen(words[k]));
}

/* What is said beside looks and updates: whether it was. */
static int act(struct lab *l, const char *what, const char *on)
{
    int *v = l->job[0];
    int is_of_grown = getenv("TOPT_LAB_GROWN") != NULL;
    if (!strcmp(what, "create") || !strcmp(what, "delete"))
        l->is_reserved = *what == 'c';
    else if (is_of_grown && !strcmp(what, "requeuehold") && v[STATE] == RUNS &&
             atoi(on) == 1) {
        v[STATE] = STOPS;
        v[RESTARTS]++;
        v[LOOKS] = 2;
    } else if (is_of_grown && !strcmp(what, "release") && v[STATE] == IS_HELD) {
        v[STATE] = WAITS;
        v[PRIORITY] = 1; /* the last */
    } else
        return 0;
    return 1;
}

static int be_scontrol(int argc, char **argv)
{
    struct lab l;
    int is_update = !strcmp(argv[1], "update"), n = is_update ? argc - 3 : 0;
    snprintf(folder, sizeof folder, "%s", getenv("TOPT_LAB"));
    lab_move(0, &l);
    int is_last = ++l.calls == l.at;
    int *v = l.job[0];
    if (v[STATE] == STOPS && --v[LOOKS] <= 0)
        v[STATE] = IS_HELD;
    int is_act = !is_update && *argv[1] != '-';
    l.most[l.calls] = is_act ? 1 : n; /* done, or not yet */
    l.log[l.calls] = log_size();
    if (is_update)
        update(&l, argv + 2, is_last ? l.words : n);
    else if (is_act && (!is_last || l.words))
        act(&l, argv[1], argv[2]);
    lab_move(1, &l);
    if (is_last)
        kill(getppid(), SIGKILL);
    else if (!is_update && !is_act)
        show(&l, argv[3]);
    return 0;
}

/* Skips a sanitizer's search for leaks: it takes longer than the program, which allocates nothing. */
__attribute__((noreturn)) static void end_at_once(int status)
{
    _exit(fflush(stdout) ? 1 : status);
}

/* ---- runs -------------------------------------------------------------------------- */

/* One run, killed at a call (0: at none); whether it was. */
static int run(int is_undo, int at, int after, struct lab *l)
{
    const char *args[] = {program,    "--apply", "--scontrol",
                          self,       "--log",   path("log"),
                          "--settle", "0",       is_undo ? "--undo" : "--requeue",
                          NULL};
    int status;
    l->calls = 0;
    l->at = at;
    l->words = after;
    lab_move(1, l);
    pid_t child = fork();
    if (!child) {
        int fd = open(path("said"), O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        setenv("TOPT_LAB", folder, 1);
        execv(program, (char *const *)(uintptr_t)args);
        _exit(99);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    lab_move(0, l);
    if (!WIFSIGNALED(status) && WEXITSTATUS(status))
        printf("#   a run ended with %d\n", WEXITSTATUS(status));
    return WIFSIGNALED(status);
}

static int is_same(const struct lab *a, const struct lab *b)
{
    return !memcmp(a->job, b->job, sizeof a->job) && a->is_reserved == b->is_reserved;
}

static void print(const struct lab *l)
{
    for (int i = 0; i < JOBS; i++) {
        printf("#   job %d:", i + 1);
        for (int k = 0; k < VALUES; k++)
            printf(" %s%d", words[k], l->job[i][k]);
        printf("\n");
    }
}

/* A point at which a run is killed. */
struct point {
    int at, after;
};

/* Points of an undisturbed run. */
static int points_of(const struct lab *whole, struct point *ret)
{
    int n = 0;
    for (int at = 1; at <= whole->calls; at++)
        for (int after = 0; after <= whole->most[at]; after++)
            ret[n++] = (struct point){at, after};
    return n;
}

/* A case begins with these jobs and this log. */
struct stage {
    const char *name;
    int is_undo;
    struct lab from, whole;
    char log[LOG];
    size_t log_len;
};

static void put_log(const char *text, size_t len)
{
    int fd = open(path("log"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd))
        abort();
}

static void begin(const struct stage *s, struct lab *l)
{
    *l = s->from;
    put_log(s->log, s->log_len);
}

static int is_mended(const struct stage *s, struct lab *l, struct point a, struct point b)
{
    run(s->is_undo, 0, 0, l);
    if (is_same(l, &s->whole))
        return 1;
    printf("#   %s killed at call %d after %d words, then at %d after %d\n", s->name,
           a.at, a.after, b.at, b.after);
    print(l);
    return 0;
}

/* Killed once at each point, and a second time in the run that mends, at each 'step'th: under a sanitizer after one
 * first point of ten, which reaches the same lines and branches. */
static void test_calls(const struct stage *s, int step)
{
    int first = step > 1 && TOPT_TEST_PART > 4 ? 10 : 1;
    struct point p[POINTS], q[POINTS];
    int n = points_of(&s->whole, p), bad = 0, pairs = 0, lived = 0;
    for (int i = 0; i < n; i++) {
        struct lab l, once;
        begin(s, &l);
        lived += !run(s->is_undo, p[i].at, p[i].after, &l);
        once = l;
        char *log;
        size_t len;
        log = topt_read_file(path("log"), LOG, &len, NULL);
        bad += !is_mended(s, &l, p[i], (struct point){0, 0});
        int m = points_of(&l, q); /* of the run that mended */
        for (int k = i % step; k < m && i % first == 0; k += step, pairs++) {
            l = once;
            put_log(log ? log : "", log ? len : 0);
            lived += !run(s->is_undo, q[k].at, q[k].after, &l);
            bad += !is_mended(s, &l, p[i], q[k]);
        }
        free(log);
    }
    is_int(lived, 0, "%s: each run was killed", s->name);
    is_int(bad, 0,
           "%s killed at each of %d points, and %d times again in the run that mends",
           s->name, n, pairs);
}

/* Killed while it writes its log, which is then what is there before the call that comes next, cut;
 * then the run that mends is killed in the middle of its first change. */
static void test_lines(const struct stage *s, int step)
{
    int bad = 0, cuts = 0;
    for (int at = 2; at <= s->whole.calls; at++)
        for (off_t cut = s->whole.log[at - 1]; cut < s->whole.log[at];
             cut += step, cuts++) {
            struct point first = {at, 0}, second = {0, 3};
            struct lab l;
            for (int i = 0; i < 2; i++) { /* the first time it says which call that is */
                begin(s, &l);
                run(s->is_undo, at, 0, &l);
                if (truncate(path("log"), cut))
                    abort();
                run(s->is_undo, second.at, second.after, &l);
                while (!second.at || (second.at < l.calls && !l.most[second.at]))
                    second.at++;
            }
            bad += !is_mended(s, &l, first, second);
        }
    is_int(bad, 0, "%s killed at %d places of its lines in the log", s->name, cuts);
}

static void test_stage(struct stage *s, int step_calls, int step_bytes)
{
    struct lab l;
    begin(s, &l);
    ok(!run(s->is_undo, 0, 0, &l) && !is_same(&l, &s->from), "%s changes the jobs",
       s->name);
    s->whole = l;
    print(&l);
    test_calls(s, step_calls);
    test_lines(s, step_bytes);
}

/* A running job is stopped, made smaller and waits again in its place. */
static void test_stop(int is_all)
{
    static struct stage stop = {.name = "a stop"};
    stop.from = grown;
    setenv("TOPT_LAB_GROWN", "1", 1);
    test_stage(&stop, is_all ? 1 : 29, is_all ? 1 : 127);
    const int *v = stop.whole.job[0];
    ok(v[STATE] == WAITS && v[GPUS_EACH] == 2 && v[PRIORITY] == 10 && v[RESTARTS] == 1 &&
           !stop.whole.is_reserved,
       "it waits with what it asked for, in its place, and nothing is reserved");
    unsetenv("TOPT_LAB_GROWN");
}

int main(int argc, char **argv)
{
    static struct stage change = {.name = "a change"},
                        undo = {.name = "an undo", .is_undo = 1};
    if (argc > 2 && getenv("TOPT_LAB"))
        end_at_once(be_scontrol(argc, argv));
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc < 2 || n < 0 || !mkdtemp(folder))
        skip_all("usage: daemon_rightsize_kill TOPT-RIGHTSIZE [all]");
    program = argv[1];
    int is_all = argc > 2;
    change.from = fresh;
    test_stage(&change, is_all ? 1 : 29, is_all ? 1 : 127);
    begin(&change, &undo.from);
    run(0, 0, 0, &undo.from);
    size_t len;
    char *log = topt_read_file(path("log"), LOG, &len, NULL);
    if (!log)
        abort();
    memcpy(undo.log, log, len);
    undo.log_len = len;
    free(log);
    test_stage(&undo, is_all ? 1 : 29, is_all ? 1 : 127);
    ok(is_same(&undo.whole, &fresh), "and is as it was");
    test_stop(is_all);
    static const char *const files[] = {"lab", "log", "said"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path(files[i]));
    rmdir(folder);
    return done_testing();
}
