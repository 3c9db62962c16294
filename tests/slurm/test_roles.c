/* test_roles.c - the whole plugin against a pretended Slurm: this program exports 'opt',
 * slurm_option_* and spank_* as sbatch and slurmstepd do, and a child answers as toptd. */
#include <signal.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "roles.h"
#include "tap.h"

/* --- the pretended Slurm ---------------------------------------------------------------- */

#define SHOWN __attribute__((visibility("default")))
enum { SLOTS = 128 };

struct options {
    char name[SLOTS][32], value[SLOTS][256];
    const char *refuses; /* an option whose setting fails */
};
SHOWN struct options opt;
static spank_context_t context;
static char said[1024];
static uint32_t step_id;
static const char *release; /* the year of Slurm's; NULL: it does not say */
static struct spank_option registered[SLOTS];
static int registrations;

SHOWN int slurm_option_set(struct options *o, const char *name, const char *value,
                           bool early);
SHOWN char *slurm_option_get(struct options *o, const char *name);
SHOWN bool slurm_option_isset(struct options *o, const char *name);
SHOWN bool slurm_option_reset(struct options *o, const char *name);

static int slot(const struct options *o, const char *name)
{
    for (int i = 0; i < SLOTS; i++) {
        if (strcmp(o->name[i], name) == 0)
            return i;
    }
    return -1;
}

int slurm_option_set(struct options *o, const char *name, const char *value, bool early)
{
    int i = slot(o, name);
    if (early || (o->refuses && strcmp(o->refuses, name) == 0))
        return -1;
    if (i < 0)
        i = slot(o, "");
    if (i < 0)
        abort();
    snprintf(o->name[i], sizeof o->name[i], "%s", name);
    snprintf(o->value[i], sizeof o->value[i], "%s", value);
    return 0;
}

/* Slurm's texts stay when the option changes; these live until the program ends. */
char *slurm_option_get(struct options *o, const char *name)
{
    static char kept[256][256];
    static int next;
    int i = slot(o, name);
    char *text = kept[next++ % 256];
    snprintf(text, sizeof kept[0], "%s", i < 0 ? "unset" : o->value[i]);
    return text;
}

bool slurm_option_isset(struct options *o, const char *name)
{
    return slot(o, name) >= 0;
}

bool slurm_option_reset(struct options *o, const char *name)
{
    int i = slot(o, name);
    if (i >= 0)
        o->name[i][0] = '\0';
    return i >= 0;
}

static void say(const char *kind, const char *format, va_list ap) TOPT_PRINTF(2, 0);
static void say(const char *kind, const char *format, va_list ap)
{
    size_t n = strlen(said);
    n += (size_t)snprintf(said + n, sizeof said - n, "%s", kind);
    n += (size_t)vsnprintf(said + n, sizeof said - n, format, ap);
    snprintf(said + n, sizeof said - n, "\n");
}

void slurm_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("error: ", format, ap);
    va_end(ap);
}

void slurm_info(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("", format, ap);
    va_end(ap);
}

void slurm_spank_log(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say("log: ", format, ap);
    va_end(ap);
}

spank_context_t spank_context(void)
{
    return context;
}

spank_err_t spank_option_register(spank_t spank, struct spank_option *o)
{
    (void)spank;
    registered[registrations++ % SLOTS] = *o;
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list ap;
    (void)spank;
    va_start(ap, item);
    int is_known =
        item == S_JOB_STEPID ||
        (release && (item == S_SLURM_VERSION_MAJOR || item == S_SLURM_VERSION_MINOR));
    if (item == S_JOB_STEPID)
        *va_arg(ap, uint32_t *) = step_id;
    else if (is_known)
        *va_arg(ap, const char **) = item == S_SLURM_VERSION_MAJOR ? release : "02";
    va_end(ap);
    return is_known ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
}

/* The job's environment is this process's own. */
spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)
{
    (void)spank;
    const char *value = getenv(var);
    if (!value)
        return ESPANK_ENV_NOEXIST;
    return snprintf(buf, (size_t)len, "%s", value) < len ? ESPANK_SUCCESS
                                                         : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)
{
    (void)spank;
    setenv(var, val, overwrite);
    return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *var)
{
    (void)spank;
    unsetenv(var);
    return ESPANK_SUCCESS;
}

/* --- the pretended toptd ---------------------------------------------------------------- */

static const char *const good =
    "HTTP/1.1 200 OK\r\n\r\nTOPT_PLAN_ID=p-1\nTOPT_GPUS=6\nTOPT_NODES=2\n"
    "TOPT_GPUS_PER_NODE=3\nTOPT_TIME_NS=9\nTOPT_WHY=it fits\n"
    "TOPT_STRATEGY=data 6\nTOPT_HINT=12 GPUs would be faster\n"
    "TOPT_DP=3\nTOPT_TP=2\nTOPT_FSDP=3\nTOPT_RECOMPUTE=1\nTOPT_MICRO_BATCH=4\n";

/* A document that is carried unread. */
#define DOCUMENT "1.0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.AAAA"

#define OF_FOUR                                                                          \
    "HTTP/1.1 200 OK\r\n\r\nTOPT_PLAN_ID=p-slow\nTOPT_GPUS=4\nTOPT_NODES=1\n"            \
    "TOPT_GPUS_PER_NODE=4\nTOPT_TIME_NS=30\nTOPT_PLAN_DOC=" DOCUMENT "\n"

/* To a question of so many GPUs its plan on nodes of three, up to 12 of them; of partition slow or typed
 * one on a node of four; else 'answer'. */
static const char *answer_to(const char *request, const char *answer)
{
    static char text[600];
    if (strstr(request, "slurm_partition=slow&") ||
        strstr(request, "slurm_partition=typed&"))
        return strstr(request, "typed&") ? OF_FOUR "TOPT_GPU_TYPE=v100\n" : OF_FOUR;
    const char *at = strstr(request, "&gpus=");
    int gpus = at ? atoi(at + 6) : 0;
    if (!gpus)
        return answer;
    if (gpus > 12 || gpus % 3)
        return "HTTP/1.1 422 No\r\n\r\nERROR=infeasible\nDESCRIPTION=no\n";
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\n\r\nTOPT_PLAN_ID=p-of-%d\nTOPT_GPUS=%d\nTOPT_NODES=%d\n"
             "TOPT_GPUS_PER_NODE=3\nTOPT_TIME_NS=%d\nTOPT_PLAN_DOC=" DOCUMENT "\n",
             gpus, gpus, gpus / 3, 54 / gpus);
    return text;
}

static pid_t serve(const char *answer, char *url, size_t size)
{
    static int nth;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "/tmp/topt-roles.%ld.%d", (long)getpid(),
             nth++);
    unlink(a.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4))
        abort();
    snprintf(url, size, "url=unix:%.50s", a.sun_path);
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            char request[4096];
            int peer = accept(fd, NULL, NULL);
            ssize_t n = read(peer, request, sizeof request - 1);
            if (n < 0)
                _exit(1);
            request[n] = '\0';
            const char *said_to = answer_to(request, answer);
            if (write(peer, said_to, strlen(said_to)) < 0)
                _exit(1);
            shutdown(peer, SHUT_WR);
            /* Until the other side goes: no reset may overtake the answer. */
            while (read(peer, request, sizeof request) > 0) {
            }
            close(peer);
        }
    }
    close(fd);
    return pid;
}

/* --- scenarios: each in a child, since the plugin keeps state and may exit ---------------- */

static const char *answer;
static const char *const ask_words[] = {"topt-mode=mini-parallelism",
                                        "topt-model=/proc/self/stat",
                                        "topt-framework=topt", NULL};

static void choose(const char *word)
{
    size_t n = strcspn(word, "=");
    for (int i = 0; i < registrations; i++) {
        if (strlen(registered[i].name) == n && memcmp(registered[i].name, word, n) == 0 &&
            registered[i].cb(registered[i].val, word + n + 1, 0) != ESPANK_SUCCESS)
            abort();
    }
}

/* Where nobody answers, the whole of this is waited for. */
static char soon[] = "timeout_ms=200";

/* A model in a file of this test's own; procfs files have no size but are regular. */
static int submit(const char *const *words)
{
    char url[64] = "url=http://127.0.0.1:1";
    char *argv[] = {url, soon};
    pid_t server = answer ? serve(answer, url, sizeof url) : 0;
    struct topt_ask ask = {0};
    topt_submit_begin();
    for (; *words; words++) {
        for (int i = 0; i < TOPT_ASK_COUNT; i++) {
            size_t n = strlen(topt_ask_table[i].option);
            if (strncmp(*words, topt_ask_table[i].option, n) == 0 && (*words)[n] == '=' &&
                topt_ask_set(&ask, (enum topt_ask_option)i, *words + n + 1))
                abort();
        }
    }
    int rc = topt_submit(NULL, &ask, answer ? 1 : 2, argv);
    topt_ask_fini(&ask);
    if (server) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
        unlink(url + strlen("url=unix:"));
    }
    return rc;
}

static void option(const char *name, const char *value)
{
    slurm_option_set(&opt, name, value, false);
}

static const char *shown(const char *name)
{
    int i = slot(&opt, name);
    return i < 0 ? "-" : opt.value[i];
}

static void test_sized(void)
{
    answer = good;
    option("gres", "gpu:a100:4,fs:2");
    option("nodes", "2-4");
    option("ntasks", "8");
    ok(submit(ask_words) == 0, "sized: %s", said);
    ok(strcmp(shown("nodes"), "2") == 0 && strcmp(shown("ntasks"), "6") == 0,
       "nodes, tasks");
    ok(strcmp(shown("gpus-per-node"), "a100:3") == 0, "the GPU type is kept");
    ok(strcmp(shown("ntasks-per-node"), "3") == 0, "tasks per node");
    ok(strcmp(shown("gres"), "fs:2") == 0, "other GRES are kept");
    ok(strstr(said,
              "topt: 6 GPUs (2 nodes x 3 GPUs): it fits; data 6; plan p-1 (within -N 4"),
       "said");
    ok(strstr(said, "\ntopt: 12 GPUs would be faster\n") != NULL, "and what else to ask");
    ok(strcmp(getenv("SLURM_TOPT_PLAN"), "p-1") == 0 &&
           strcmp(getenv("TOPT_GPUS"), "6") == 0,
       "carried");
    ok(strcmp(getenv("TOPT_FSDP"), "3") == 0 &&
           strcmp(getenv("SLURM_TOPT_MICRO_BATCH"), "4") == 0,
       "so is what the script obeys");
    said[0] = '\0';
    ok(submit(ask_words) == -1 && strstr(said, "heterogeneous"), "a second part: %s",
       said);
}

static void test_dry_run(void)
{
    const char *const words[] = {ask_words[0], ask_words[1], "topt-dry-run=", NULL};
    answer = good;
    option("nodes", "2-4");
    ok(submit(words) == 1 && strstr(said, "data 6; plan p-1") &&
           strstr(said, "not submitted"),
       "a dry run says what it would get: %s", said);
    ok(strcmp(shown("nodes"), "2-4") == 0 && !getenv("SLURM_TOPT_PLAN"), "and no more");
}

static void test_dry_outage(void)
{
    const char *const words[] = {ask_words[0], ask_words[1], "topt-dry-run=", NULL};
    answer = NULL;
    ok(submit(words) == -1 && strstr(said, "error: topt: no answer") &&
           !strstr(said, "is submitted as"),
       "nobody there: %s", said);
}

static void test_others_reset(void)
{
    answer = good;
    option("gpus", "12");
    option("gpus-per-task", "1");
    option("gres", "gpu:3");
    ok(submit(ask_words) == 0, "sized: %s", said);
    ok(strcmp(shown("gpus"), "-") == 0 && strcmp(shown("gpus-per-task"), "-") == 0 &&
           strcmp(shown("gres"), "-") == 0,
       "nothing says the same in other words");
}

static void test_put_back(void)
{
    answer = good;
    option("gpus", "v100:8");
    option("gres", "gpu:4,fs:1");
    option("nodes", "2");
    opt.refuses = "ntasks";
    ok(submit(ask_words) == 0 &&
           strstr(said, "Slurm refuses --ntasks=6; the job is submitted as"),
       "a half-sized job: %s", said);
    ok(strcmp(shown("gpus"), "v100:8") == 0 && strcmp(shown("gres"), "gpu:4,fs:1") == 0 &&
           strcmp(shown("nodes"), "2") == 0 && strcmp(shown("gpus-per-node"), "-") == 0,
       "is put back as it was");
    ok(!getenv("SLURM_TOPT_PLAN"), "without a plan");
}

static void test_outage(void)
{
    const char *const words[] = {ask_words[0], ask_words[1], "topt-on-error=abort", NULL};
    answer = NULL;
    option("nodes", "3");
    option("gpus-per-node", "2");
    ok(submit(ask_words) == 0 && strstr(said, "error: topt: no answer"), "away: %s",
       said);
    ok(strcmp(shown("nodes"), "3") == 0 && !getenv("SLURM_TOPT_PLAN"), "as asked");
    said[0] = '\0';
    ok(submit(words) == -1, "a second call");
}

static void test_outage_without_gpus(void)
{
    answer = NULL;
    option("nodes", "3");
    ok(submit(ask_words) == -1 && strstr(said, "asks for no GPUs itself"),
       "away, no GPUs: %s", said);
}

static void test_refused(void)
{
    answer = "HTTP/1.1 422 No\r\n\r\nERROR=infeasible\nDESCRIPTION=too big\n";
    option("ntasks", "2");
    ok(submit(ask_words) == -1 &&
           strstr(said, "error: topt: with -n 2 as upper bound: too big; not submitted"),
       "refused: %s", said);
    ok(strcmp(shown("ntasks"), "2") == 0, "untouched");
}

static void test_step_in_job(void)
{
    answer = good;
    context = S_CTX_LOCAL;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_TOPT_PLAN", "p-9", 1);
    setenv("SLURM_SPANK__SLURM_SPANK_OPTION_topt_topt_mode", "x", 1);
    ok(submit(ask_words) == 0 && strstr(said, "not the steps"), "a step: %s", said);
    ok(!getenv("SLURM_SPANK__SLURM_SPANK_OPTION_topt_topt_mode"),
       "options aren't inherited");
    ok(getenv("SLURM_TOPT_PLAN") != NULL, "the plan stays in its job");
    context = S_CTX_ALLOCATOR;
    said[0] = '\0';
    ok(submit((const char *const[]){NULL}) == 0 && !*said, "a job's plain sbatch");
    ok(!getenv("SLURM_TOPT_PLAN"), "doesn't take the plan along");
}

static void test_jobid(void)
{
    answer = good;
    context = S_CTX_LOCAL;
    option("jobid", "12");
    ok(submit(ask_words) == 0 && strstr(said, "not the steps"), "srun --jobid: %s", said);
}

static void test_remote(void)
{
    setenv("SLURM_TOPT_PLAN", "p-3", 1);
    setenv("SLURM_TOPT_GPUS", "6", 1);
    setenv("SLURM_NTASKS", "1", 1);
    setenv("SLURM_TASKS_PER_NODE", "3(x2)", 1);
    context = S_CTX_REMOTE;
    step_id = 0;
    topt_step(NULL, 0, NULL);
    ok(strcmp(getenv("TOPT_PLAN"), "p-3") == 0 && strcmp(getenv("TOPT_GPUS"), "6") == 0,
       "a task has its plan");
    ok(strcmp(getenv("SLURM_NTASKS"), "1") == 0, "a step's numbers are its own");
    ok(!getenv("TOPT_REPORT"), "nobody asks for a line about it");
    char report[] = "report=1";
    topt_step(NULL, 1, (char *[]){report});
    ok(!strcmp(getenv("TOPT_REPORT"), "1"), "the site does");
    setenv("TOPT_REPORT", "0", 1);
    topt_step(NULL, 1, (char *[]){report});
    ok(!strcmp(getenv("TOPT_REPORT"), "0"), "the job says no");
    unsetenv("TOPT_REPORT");
    step_id = 0xfffffffb;
    topt_step(NULL, 0, NULL);
    ok(strcmp(getenv("SLURM_NTASKS"), "6") == 0, "the batch script's are mended");
}

/* topt's options stand in the second part of a heterogeneous job. */
static void test_second_part(void)
{
    answer = good;
    ok(submit((const char *const[]){NULL}) == 0 && !*said, "nothing asked, nothing done");
    ok(submit(ask_words) == -1 && strstr(said, "heterogeneous"), "a second part: %s",
       said);
}

/* One task a node, as torchrun wants. */
static void test_by_node(void)
{
    answer = good;
    option("nodes", "2");
    option("gpus-per-node", "3");
    option("ntasks-per-node", "1");
    option("tres-per-task", "cpu=8,gres/gpu=3");
    ok(submit(ask_words) == 0 &&
           strstr(said, "(2 nodes x 3 GPUs, one task per node): it fits"),
       "sized: %s", said);
    ok(strcmp(shown("ntasks"), "2") == 0 && strcmp(shown("ntasks-per-node"), "1") == 0 &&
           strcmp(shown("gpus-per-node"), "3") == 0,
       "a task a node");
    ok(strcmp(shown("tres-per-task"), "cpu=8") == 0, "GPUs of a task aren't said again");
    ok(strcmp(getenv("TOPT_NTASKS"), "2") == 0, "the job knows its tasks");
}

/* The job was resized while it waited. */
static void test_resized(void)
{
    setenv("SLURM_TOPT_PLAN", "p-3", 1);
    setenv("SLURM_TOPT_NODES", "2", 1);
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    context = S_CTX_REMOTE;
    topt_step(NULL, 0, NULL);
    ok(!getenv("TOPT_PLAN") && strstr(getenv("TOPT_STALE"), "for 2 nodes") &&
           strstr(said, "error: topt: plan p-3 is for 2 nodes, and the job has 1"),
       "no plan for other ranks: %s", said);
}

/* Plans for other numbers of GPUs travel with the job. */
static void elastic_job(const char *with, const char *time)
{
    char words_of[64];
    const char *const words[] = {ask_words[0], ask_words[1], ask_words[2], words_of,
                                 NULL};
    static char with_document[1024];
    snprintf(words_of, sizeof words_of, "topt-elastic=%s", with);
    snprintf(with_document, sizeof with_document, "%sTOPT_PLAN_DOC=" DOCUMENT "\n", good);
    answer = with_document;
    option("comment", "my own");
    if (time)
        option("time", time);
    ok(submit(words) == 0, "sized: %s", said);
}

static void test_elastic(void)
{
    elastic_job("auto", NULL);
    ok(strstr(said,
              "topt: plans for 3 and 12 GPUs travel with the job: it may be resized "
              "while it waits"),
       "said");
    ok(!strcmp(shown("comment"), "my own topt-elastic=2x3:9*,1x3:18,4x3:4"), "%s",
       shown("comment"));
    ok(!strcmp(getenv("SLURM_TOPT_ELASTIC"), "1x3 4x3") &&
           strstr(getenv("SLURM_TOPT_PLAN_4x3"), "PLAN_ID=p-of-12") &&
           !strcmp(getenv("SLURM_TOPT_PLAN_DOC_1x3"), DOCUMENT),
       "carried");
    ok(!strcmp(shown("nodes"), "2") && !strcmp(shown("ntasks"), "6"), "its shape");
    /* In the job, which was resized. */
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    setenv("SLURM_GPUS_ON_NODE", "3", 1);
    setenv("SLURM_TASKS_PER_NODE", "3", 1);
    context = S_CTX_REMOTE;
    step_id = 0xfffffffb;
    said[0] = '\0';
    topt_step(NULL, 0, NULL);
    ok(!strcmp(getenv("TOPT_PLAN"), "p-of-3") && !strcmp(getenv("TOPT_GPUS"), "3") &&
           !getenv("TOPT_DP") && !getenv("TOPT_STALE") &&
           !strcmp(getenv("SLURM_TOPT_PLAN"), "p-of-3"),
       "it runs by the plan of its shape: %s", said);
    setenv("SLURM_GPUS_ON_NODE", "2", 1);
    setenv("SLURM_TASKS_PER_NODE", "2", 1);
    topt_step(NULL, 0, NULL);
    ok(!getenv("TOPT_PLAN") && getenv("TOPT_STALE") && !getenv("SLURM_TOPT_PLAN_4x3"),
       "without a plan of its shape by none: %s", getenv("TOPT_STALE"));
}

static void test_elastic_list(void)
{
    elastic_job("12,6,7", NULL);
    ok(strstr(said, "plans for 12 GPUs travel"), "those that it names: %s", said);
}

/* A plan for the GPUs of each other partition that the job names. */
static void test_elastic_kinds(void)
{
    static char with_partition[1024];
    const char *const words[] = {ask_words[0], ask_words[1], ask_words[2],
                                 "topt-elastic=kinds", NULL};
    snprintf(with_partition, sizeof with_partition,
             "%sTOPT_PLAN_DOC=" DOCUMENT "\nTOPT_PARTITION=fast,more\n", good);
    answer = with_partition;
    option("partition", "fast,slow,typed,more");
    ok(submit(words) == 0, "sized: %s", said);
    ok(strstr(said, "plans for GPUs of other kinds travel with the job: 4 in partition "
                    "slow; it may be moved there while it waits"),
       "said");
    ok(!strcmp(shown("comment"), "topt-elastic=2x3:9*,1x4:30@1;kinds=fast+more,slow"),
       "none of another type: %s", shown("comment"));
    ok(!strcmp(getenv("SLURM_TOPT_ELASTIC"), "1x4_1") &&
           !strcmp(getenv("SLURM_TOPT_KINDS"), "fast+more,slow") &&
           strstr(getenv("SLURM_TOPT_PLAN_1x4_1"), "PLAN_ID=p-slow") &&
           !strcmp(getenv("SLURM_TOPT_PLAN_DOC_1x4_1"), DOCUMENT),
       "carried");
    /* In the job: where it was submitted to it is a job of its own shape. */
    setenv("SLURM_JOB_NUM_NODES", "2", 1);
    setenv("SLURM_GPUS_ON_NODE", "3", 1);
    setenv("SLURM_TASKS_PER_NODE", "3(x2)", 1);
    setenv("SLURM_JOB_PARTITION", "more", 1);
    context = S_CTX_REMOTE;
    step_id = 0xfffffffb;
    topt_step(NULL, 0, NULL);
    ok(!strcmp(getenv("TOPT_PLAN"), "p-1"), "in a partition of its own: %s",
       getenv("TOPT_PLAN"));
    said[0] = '\0';
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    setenv("SLURM_GPUS_ON_NODE", "4", 1);
    setenv("SLURM_TASKS_PER_NODE", "4", 1);
    setenv("SLURM_JOB_PARTITION", "slow", 1);
    topt_step(NULL, 0, NULL);
    ok(!strcmp(getenv("TOPT_PLAN"), "p-slow") && !strcmp(getenv("TOPT_GPUS"), "4") &&
           strstr(said, "in partition slow: it runs by plan p-slow"),
       "moved: %s", said);
}

static void test_elastic_no(void)
{
    elastic_job("no", NULL);
    ok(!strstr(said, "travel") && !strcmp(shown("comment"), "my own") &&
           !getenv("SLURM_TOPT_ELASTIC"),
       "no: %s", said);
    said[0] = '\0';
}

/* From 23.02 on Slurm chooses: of the smaller ones, and under a time limit of none. */
static void test_moldable(void)
{
    release = "23";
    elastic_job("auto", NULL);
    ok(!strcmp(shown("nodes"), "1,2") && !strcmp(shown("ntasks"), "-") &&
           !strcmp(shown("ntasks-per-node"), "3"),
       "nodes %s", shown("nodes"));
    ok(strstr(said, "Slurm starts it on as many nodes as are free of 1,2"), "said: %s",
       said);
}

static void test_moldable_time(void)
{
    release = "26";
    elastic_job("auto", "60");
    ok(!strcmp(shown("nodes"), "2") && !strcmp(shown("ntasks"), "6"),
       "with a time limit: %s nodes", shown("nodes"));
}

/* The callbacks themselves. */
static void test_callbacks(void)
{
    char url[64] = "url=http://127.0.0.1:1", *argv[] = {url, soon};
    context = S_CTX_ALLOCATOR;
    ok(slurm_spank_init(NULL, 2, argv) == ESPANK_SUCCESS, "init");
    is_int(registrations, TOPT_ASK_COUNT, "all options are registered");
    choose("topt-mode=mini-time");
    choose("topt-mode=mini-parallelism");
    choose("topt-model=/proc/self/stat");
    choose("topt-on-error=submit");
    ok(slurm_spank_init_post_opt(NULL, 2, argv) == ESPANK_SUCCESS &&
           strstr(said, "is submitted as"),
       "nobody there: %s", said);
    ok(slurm_spank_exit(NULL, 2, argv) == ESPANK_SUCCESS, "exit");
    const spank_context_t elsewhere[] = {S_CTX_SLURMD, S_CTX_JOB_SCRIPT, S_CTX_ERROR};
    said[0] = '\0';
    for (int i = 0; i < 3; i++) {
        context = elsewhere[i];
        registrations = 0;
        ok(slurm_spank_init(NULL, 2, argv) == ESPANK_SUCCESS && registrations == 0 &&
               slurm_spank_init_post_opt(NULL, 2, argv) == ESPANK_SUCCESS &&
               slurm_spank_task_init(NULL, 2, argv) == ESPANK_SUCCESS && !*said,
           "nothing to do in context %d", (int)context);
    }
}

static void scenario(const char *name, void (*run)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        tap_failed = 0;
        context = S_CTX_ALLOCATOR;
        run();
        exit(tap_failed ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "scenario: %s", name);
}

int main(void)
{
    unsetenv("SLURM_JOB_ID");
    scenario("sized", test_sized);
    scenario("dry run", test_dry_run);
    scenario("dry run, nobody there", test_dry_outage);
    scenario("other words are reset", test_others_reset);
    scenario("put back", test_put_back);
    scenario("outage", test_outage);
    scenario("outage without GPUs", test_outage_without_gpus);
    scenario("refused", test_refused);
    scenario("a step in a job", test_step_in_job);
    scenario("srun --jobid", test_jobid);
    scenario("remote", test_remote);
    scenario("a second part", test_second_part);
    scenario("one task a node", test_by_node);
    scenario("resized", test_resized);
    scenario("elastic", test_elastic);
    scenario("elastic, of named numbers", test_elastic_list);
    scenario("elastic, of kinds", test_elastic_kinds);
    scenario("not elastic", test_elastic_no);
    scenario("moldable", test_moldable);
    scenario("moldable with a time limit", test_moldable_time);
    scenario("callbacks", test_callbacks);
    return done_testing();
}
