/* rightsize_test.c - which waiting jobs get another shape, what scontrol is told, and
 * what the log keeps. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "change.h"
#include "journal.h"
#include "mend.h"
#include "policy.h"
#include "tap.h"
#include "topt_text.h"

static const char *const partitions =
    "PartitionName=gpu Default=YES MaxNodes=UNLIMITED MaxTime=10:00:00 State=UP\n"
    "PartitionName=small Default=NO MaxNodes=1 MaxTime=UNLIMITED State=UP\n"
    "PartitionName=short Default=NO MaxNodes=1 MaxTime=01:00:00 State=UP\n"
    "PartitionName=down Default=NO MaxNodes=1 MaxTime=UNLIMITED State=DOWN\n"
    "PartitionName=theirs Default=NO AllowGroups=topt-no-such-group State=UP\n"
    "PartitionName=roots Default=NO RootOnly=YES MaxTime=UNLIMITED State=UP\n";

static const char *state = "IDLE"; /* of the second node */

/* Two nodes of four GPUs, of which so many are used. */
static void read_nodes(int used_1, int used_2, struct site_slurm *ret)
{
    char text[800];
    struct topt_error err;
    snprintf(text, sizeof text,
             "NodeName=n1 CPUEfctv=16 Gres=gpu:a100:4(S:0) "
             "GresUsed=gpu:a100:%d(IDX:0-1) CPUAlloc=%d "
             "AllocMem=0 RealMemory=4000 State=MIXED Partitions=gpu\n"
             "NodeName=n2 CPUEfctv=16 Gres=gpu:a100:4(S:0) GresUsed=gpu:a100:%d(IDX:N/A) "
             "CPUAlloc=%d AllocMem=0 RealMemory=4000 State=%s "
             "Partitions=gpu,small,short,down,theirs,roots\n",
             used_1, used_1, used_2, used_2, state);
    const struct site_said said = {partitions, text, "", ""};
    if (site_slurm_read(&said, ret, &err) ||
        site_accounts_read("short|gres/gpu=2|||\n", "", "", &ret->accounts, &err))
        abort();
}

/* Halves as fast with half of the GPUs, but for 8, which are little faster than 4. */
#define SHAPES(a, b, c, d)                                                               \
    "topt-elastic=1x1:4000000000" a ",1x2:2000000000" b ",1x4:1000000000" c              \
    ",2x4:800000000" d

enum { now_s = 1795760000 };
static const char *limit = "01:00:00", *partition = "gpu";

/* A line of a job as scontrol says it. */
static void add_job(struct topt_text *t, int id, int nodes, int each, const char *reason,
                    const char *more, const char *comment)
{
    topt_text_add(t,
                  "JobId=%d JobName=wrap UserId=u%d(%d) Priority=%d JobState=PENDING "
                  "Reason=%s BatchFlag=1 TimeLimit=%s "
                  "SubmitTime=2026-11-23T06:07:%02d Partition=%s ReqNodeList=(null) "
                  "ExcNodeList=(null) NumNodes=%d-%d NumCPUs=%d NumTasks=%d CPUs/Task=1 "
                  "NtasksPerN:B:S:C=%d:0:*:* MinCPUsNode=%d MinMemoryNode=0 "
                  "Features=(null) %s Comment=%s  StdErr=/x TresPerNode=gres:gpu:%d\n",
                  id, id / 10, id / 10, 1000 - id, reason, limit, id, partition, nodes,
                  nodes, nodes * each, nodes * each, each, each, more, comment, each);
}

static const struct rightsize_limits usual = {.jobs = 20,
                                              .per_user = 5,
                                              .min_efficiency = 0.8,
                                              .max_slowdown = 4,
                                              .settle_s = 600,
                                              .most_overhead = 0.25,
                                              .least_overhead = 0.05,
                                              .most_share = 1};

/* What is decided, as "1:1x2 2:-": a job and its new shape. */
static void decided(const char *text, struct topt_text *jobs, int used_1, int used_2,
                    const struct rightsize_limits *limits,
                    const struct rightsize_past *past, const char *want, const char *why)
{
    struct site_slurm s;
    struct site_queue q;
    struct rightsize_plan p;
    struct topt_error err = {0};
    struct topt_text is = {0}, whys = {0};
    read_nodes(used_1, used_2, &s);
    if (site_queue_read(jobs->s, &q, &err) ||
        rightsize_decide(&s, &q, past, past != NULL, limits, now_s, &p, &err))
        abort();
    for (size_t i = 0; i < p.n; i++) {
        const struct rightsize_choice *c = &p.choice[i];
        if (!c->job->is_elastic || c->task)
            continue;
        const struct topt_elastic_shape *to =
            c->to < 0 ? NULL : &c->job->elastic.shape[c->to];
        topt_text_add(&is, "%s%lld:", is.len ? " " : "", (long long)c->job->id);
        if (!to)
            topt_text_add(&is, "-");
        else
            topt_text_add(&is, "%lldx%lld", (long long)to->nodes,
                          (long long)to->gpus_per_node);
        if (to && to->kind)
            topt_text_add(&is, "@%d", to->kind);
        if (c->time_s != c->job->time_s)
            topt_text_add(&is, "/%lld", (long long)c->time_s / 60);
        topt_text_add(&whys, "%s|", c->why);
    }
    ok(!strcmp(is.s ? is.s : "", want), "%s: %s", text, is.s ? is.s : "nothing");
    ok(strstr(whys.s ? whys.s : "", why) != NULL, "%s: %s", text, whys.s ? whys.s : "");
    rightsize_plan_fini(&p);
    site_queue_fini(&q);
    site_slurm_fini(&s);
    topt_text_fini(&is);
    topt_text_fini(&whys);
    topt_text_fini(jobs);
}

static void test_policy(void)
{
    struct topt_text t = {0};
    struct rightsize_limits l = usual;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("a job that waits", &t, 2, 3, &usual, NULL, "1:1x2/120",
            "2.0 h, a year or more earlier than with the 4 that it asked for");
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("one GPU is left", &t, 3, 4, &usual, NULL, "1:1x1/240", "");
    limit = "03:00:00";
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("its time limit can't follow", &t, 3, 4, &usual, NULL, "1:-",
            "starts in a year or more");
    limit = "01:00:00";
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", "") ";min-efficiency=1");
    decided("one GPU as well as four", &t, 3, 4, &usual, NULL, "1:1x1/240", "");
    l.max_slowdown = 3;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("four times as slow is too slow", &t, 3, 4, &l, NULL, "1:-",
            "starts in a year or more");
    l = usual;
    l.min_gpus = 2;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("--min-gpus", &t, 3, 4, &l, NULL, "1:-", "starts in a year or more");
    add_job(&t, 1, 1, 4, "Resources", "", "");
    add_job(&t, 2, 1, 2, "Priority", "", SHAPES("", "*", "", ""));
    decided("behind one that did not agree", &t, 2, 3, &usual, NULL, "2:-",
            "as it asked");
    add_job(&t, 1, 1, 4, "Dependency", "", SHAPES("", "", "*", ""));
    add_job(&t, 2, 1, 4, "JobHeldUser", "", SHAPES("", "", "*", ""));
    decided("jobs that wait for something else", &t, 2, 3, &usual, NULL, "", "");
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    add_job(&t, 2, 1, 4, "Priority", "", SHAPES("", "", "*", ""));
    decided("what one gets is not the next one's", &t, 2, 3, &usual, NULL,
            "1:1x2/120 2:1x1/240", "");
    add_job(&t, 1, 1, 2, "None", "", SHAPES("", "*", "", ""));
    decided("nobody else waits: grown", &t, 0, 4, &usual, NULL, "1:1x4",
            "30 min, 30 min earlier");
    add_job(&t, 1, 1, 2, "None", "QOS=short", SHAPES("", "*", "", ""));
    decided("but not beyond its QOS", &t, 0, 4, &usual, NULL, "1:-", "");
    add_job(&t, 1, 1, 4, "None", "", SHAPES("", "", "*", ""));
    decided("but not where GPUs are used badly", &t, 0, 0, &usual, NULL, "1:-",
            "as it asked");
    l = usual;
    l.min_efficiency = 0.5;
    l.most_overhead = l.least_overhead = 1;
    add_job(&t, 1, 1, 4, "None", "", SHAPES("", "", "*", ""));
    decided("unless it is asked", &t, 0, 0, &l, NULL, "1:2x4", "");
    l.max_gpus = 4;
    add_job(&t, 1, 1, 4, "None", "", SHAPES("", "", "*", ""));
    decided("--max-gpus", &t, 0, 0, &l, NULL, "1:-", "");
    add_job(&t, 1, 1, 2, "None", "", SHAPES("", "*", "", ""));
    add_job(&t, 2, 2, 4, "Resources", "", "");
    decided("grown for as long as somebody waits for longer", &t, 0, 4, &usual, NULL,
            "1:1x4", "");
    state = "IDLE+RESERVED";
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("what is reserved is not idle", &t, 2, 0, &usual, NULL, "1:1x2/120", "");
    state = "IDLE";
    add_job(&t, 1, 1, 1, "Priority", "", SHAPES("", "", "*", ""));
    add_job(&t, 2, 2, 4, "Resources", "", "");
    decided("a shrunk one gets its own back", &t, 1, 0, &usual, NULL, "1:1x4/15",
            "as it asked");
}

/* What runs ends by its limit, and what is reserved is nobody's. */
/* Jobs that agreed to GPUs of other kinds; n2 has two that are idle, and other partitions. */
static void test_kinds(void)
{
    static const char to_small[] =
        "topt-elastic=1x4:1000000000*,1x2:2000000000@1;kinds=gpu,small";
    static const struct {
        const char *text, *kinds, *want;
    } rows[] = {{"a shorter limit there", "gpu,short", "1:-"},
                {"a partition that is down", "gpu,down", "1:-"},
                {"of a group", "gpu,theirs", "1:-"},
                {"of root alone", "gpu,roots", "1:-"},
                {"that is not there", "gpu,nowhere", "1:-"},
                {"it was moved by hand", "small,short", "1:-"},
                {"one of two that is of root alone", "small+gpu,roots", "1:-"}};
    struct topt_text t = {0};
    add_job(&t, 1, 1, 4, "Resources", "", to_small);
    decided("another kind", &t, 4, 2, &usual, NULL, "1:1x2@1/120",
            "in partition small with 2 GPUs it ends in 2.0 h");
    add_job(&t, 1, 1, 4, "Resources", "",
            "topt-elastic=1x4:1000000000*,1x2:9000000000@1;kinds=gpu,small");
    decided("--max-slowdown holds there, too", &t, 4, 2, &usual, NULL, "1:-", "");
    add_job(&t, 1, 1, 4, "Resources", "",
            "topt-elastic=1x4:1000000000*,1x2:3900000000@1;kinds=gpu,small");
    decided("GPU-hours of two kinds are not compared", &t, 4, 2, &usual, NULL,
            "1:1x2@1/234", "");
    struct rightsize_limits l = usual;
    l.partitions = "gpu,short";
    add_job(&t, 1, 1, 4, "Resources", "", to_small);
    decided("not to one that is not among those of --partition", &t, 4, 2, &l, NULL,
            "1:-", "");
    partition = "small";
    add_job(&t, 1, 1, 2, "Resources", "", to_small);
    decided("and back to what it was submitted to", &t, 0, 4, &usual, NULL, "1:1x4/30",
            "in partition gpu with 4 GPUs");
    add_job(&t, 1, 1, 2, "Resources", "",
            "topt-elastic=1x4:1000000000*,1x2:2000000000@1;kinds=gpu+roots,small");
    decided("not where the comment names more than its owner may use", &t, 0, 4, &usual,
            NULL, "1:-", "");
    partition = "gpu";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char comment[160];
        snprintf(comment, sizeof comment,
                 "topt-elastic=1x4:1000000000*,1x2:2000000000@1;kinds=%s", rows[i].kinds);
        add_job(&t, 1, 1, 4, "Resources", "", comment);
        decided(rows[i].text, &t, 4, 2, &usual, NULL, rows[i].want, "");
    }
}

static void test_timeline(void)
{
    struct topt_text t = {0};
    time_t end = now_s + 600;
    char when[40];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", localtime(&end));
    static const char running[] =
        "JobId=50 UserId=u5(5) JobState=RUNNING Priority=1 "
        "TimeLimit=01:00:00 EndTime=%s NodeList=n1 NumNodes=1 NumCPUs=2 "
        "TresPerNode=gres:gpu:2\n";
    topt_text_add(&t, running, when);
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("it ends first with what becomes free", &t, 2, 4, &usual, NULL, "1:-",
            "starts in 10 min, when job 50 ends, and ends in 1.1 h, as it asked");
    topt_text_add(&t, running, when);
    add_job(&t, 1, 1, 4, "Resources", "", "");
    add_job(&t, 2, 1, 1, "Priority", "", SHAPES("*", "", "", ""));
    decided("two for half an hour would be late for who is before it", &t, 2, 4, &usual,
            NULL, "2:-", "starts in 1.1 h, when job 1 ends");
    topt_text_add(&t, running, when);
    add_job(&t, 1, 1, 4, "Resources", "", "");
    limit = "00:18:00";
    add_job(&t, 2, 1, 1, "Priority", "", SHAPES("*", "", "", ""));
    decided("two for nine minutes are not", &t, 2, 4, &usual, NULL, "2:1x2",
            "9 min, 1.3 h earlier than with the 1");
    /* Nobody has a limit: what runs has run for ten minutes, which others are taken to need, and
     * nobody waits for its end. */
    end = now_s - 600;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", localtime(&end));
    limit = "UNLIMITED";
    topt_text_add(
        &t,
        "JobId=50 UserId=u5(5) JobState=RUNNING Priority=1 TimeLimit=UNLIMITED "
        "StartTime=%s NodeList=n1 NumNodes=1 NumCPUs=2 TresPerNode=gres:gpu:2\n",
        when);
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("lengths that nobody knows", &t, 2, 4, &usual, NULL, "1:1x2",
            "with 2 GPUs it ends in 20 min, a year or more earlier than with the 4");
    limit = "01:00:00";
    topt_text_add(
        &t,
        "JobId=50 UserId=u5(5) JobState=RUNNING Priority=1 TimeLimit=UNLIMITED "
        "StartTime=%s NodeList=n1 NumNodes=1 NumCPUs=2 TresPerNode=gres:gpu:2\n",
        when);
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("no less than the longest limit", &t, 2, 4, &usual, NULL, "1:1x2/120",
            "with 2 GPUs it ends in 2.0 h, a year or more earlier than with the 4");
    /* 900 steps of a second, or of two, whatever the limit is. */
    limit = "10:00:00";
    topt_text_add(&t, running, when);
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", "") ";steps=900");
    decided("steps that are known", &t, 2, 4, &usual, NULL, "1:-",
            "starts in 1 min, when job 50 ends, and ends in 16 min, as it asked");
    limit = "01:00:00";
}

static void add_running(struct topt_text *t, int id, const char *node, int gpus,
                        int minutes)
{
    time_t end = now_s + 60 * minutes;
    char when[40];
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", localtime(&end));
    topt_text_add(t,
                  "JobId=%d UserId=u5(5) JobState=RUNNING Priority=1 TimeLimit=01:00:00 "
                  "EndTime=%s NodeList=%s NumNodes=1 NumCPUs=%d "
                  "TresPerNode=gres:gpu:%d\n",
                  id, when, node, gpus, gpus);
}

/* Arrays are changed as a whole, before any of their tasks has started. */
static void test_arrays(void)
{
    static const char array[] = "ArrayJobId=1 ArrayTaskId=1-5:2,9%3";
    struct topt_text t = {0};
    struct site_queue q;
    add_job(&t, 1, 1, 4, "Resources", array, SHAPES("", "", "*", ""));
    if (site_queue_read(t.s, &q, NULL))
        abort();
    ok(q.job[0].array_tasks == 4 && q.job[0].array_most == 3 &&
           site_is_whole_array(&q.job[0]),
       "an array of four tasks, of which three at once");
    site_queue_fini(&q);
    decided("all of its tasks", &t, 2, 2, &usual, NULL, "1:1x2/120",
            "with 2 GPUs for each of its 4 tasks they end");
    add_job(&t, 1, 1, 4, "Resources", array, SHAPES("", "", "*", ""));
    add_job(&t, 2, 1, 4, "Priority", "", SHAPES("", "", "*", ""));
    decided("and what they have is not the next one's", &t, 2, 4, &usual, NULL,
            "1:1x2/120 2:-", "");
    add_job(&t, 1, 1, 4, "Resources", array, SHAPES("", "", "*", ""));
    topt_text_add(&t, "JobId=7 ArrayJobId=1 ArrayTaskId=0 JobState=COMPLETED\n");
    decided("a task has started", &t, 2, 2, &usual, NULL, "1:-", "have started");
    add_job(&t, 1, 1, 4, "Resources", "ArrayJobId=1 ArrayTaskId=1-5,7-9,...",
            SHAPES("", "", "*", ""));
    decided("a list that Slurm cuts", &t, 2, 2, &usual, NULL, "1:-", "have started");
    /* The first task would end a minute earlier with two GPUs, the second four minutes later. */
    limit = "00:09:00";
    add_running(&t, 50, "n1", 2, 10);
    add_running(&t, 51, "n2", 4, 15);
    add_job(&t, 1, 1, 4, "Resources", "ArrayJobId=1 ArrayTaskId=1-2",
            SHAPES("", "", "*", ""));
    decided("not all of its tasks", &t, 2, 4, &usual, NULL, "1:-", "would make one");
    add_running(&t, 50, "n1", 2, 10);
    add_running(&t, 51, "n2", 4, 15);
    add_job(&t, 1, 1, 4, "Resources", "ArrayJobId=1 ArrayTaskId=1-2%1",
            SHAPES("", "", "*", ""));
    decided("one at a time", &t, 2, 4, &usual, NULL, "1:1x2/18", "");
    limit = "01:00:00";
}

/* A time so many minutes from now, as Slurm writes it. */
static const char *at(int minutes)
{
    static char ret[4][32];
    static int next;
    time_t t = now_s + 60 * minutes;
    struct tm tm;
    next = (next + 1) % 4;
    strftime(ret[next], sizeof *ret, "%Y-%m-%dT%H:%M:%S", localtime_r(&t, &tm));
    return ret[next];
}

/* Job 1 asked for two GPUs and has run for 20 min on all four of n1; job 2 wants two for so many minutes. */
static void stops(const char *text, const char *agrees, int can_requeue, int minutes,
                  int64_t settle_s, int requeues, const char *want)
{
    struct site_slurm s;
    struct site_queue q;
    struct rightsize_plan p;
    struct topt_error err = {0};
    struct topt_text jobs = {0}, is = {0};
    struct rightsize_limits limits = usual;
    limits.settle_s = settle_s;
    limits.requeues = requeues;
    topt_text_add(
        &jobs,
        "JobId=1 UserId=u(1) Priority=9 JobState=RUNNING Reason=None Requeue=%d "
        "Restarts=0 BatchFlag=1 TimeLimit=01:00:00 SubmitTime=%s StartTime=%s "
        "EndTime=%s Partition=gpu NodeList=n1 NumNodes=1 NumCPUs=4 NumTasks=4 "
        "CPUs/Task=1 NtasksPerN:B:S:C=4:0:*:* MinCPUsNode=4 "
        "Comment=" SHAPES("", "*", "", "") "%s  StdErr=/x TresPerNode=gres:gpu:4\n",
        can_requeue, at(-30), at(-20), at(40), agrees);
    topt_text_add(&jobs,
                  "JobId=2 UserId=v(2) Priority=8 JobState=PENDING Reason=Resources "
                  "BatchFlag=1 TimeLimit=%d SubmitTime=%s Partition=gpu NumNodes=1-1 "
                  "NumCPUs=2 NumTasks=2 CPUs/Task=1 NtasksPerN:B:S:C=2:0:*:* "
                  "MinCPUsNode=2 TresPerNode=gres:gpu:2\n",
                  minutes, at(-1));
    read_nodes(4, 4, &s);
    if (site_queue_read(jobs.s, &q, &err) ||
        rightsize_decide(&s, &q, NULL, 0, &limits, now_s, &p, &err))
        abort();
    for (size_t i = 0; i < p.nstops; i++) {
        const struct topt_elastic_shape *to = &p.stop[i].job->elastic.shape[p.stop[i].to];
        topt_text_add(&is, "%lld:%lldx%lld", (long long)p.stop[i].job->id,
                      (long long)to->nodes, (long long)to->gpus_per_node);
    }
    ok(!strcmp(is.s ? is.s : "", want), "%s: %s%s%s", text, is.s ? is.s : "none stops",
       p.nstops ? ", " : "", p.nstops ? p.stop[0].why : "");
    rightsize_plan_fini(&p);
    site_queue_fini(&q);
    site_slurm_fini(&s);
    topt_text_fini(&jobs);
    topt_text_fini(&is);
}

static void test_stops(void)
{
    stops("it agreed, and another is late", ";requeue", 1, 10, 600, 1, "1:1x2");
    stops("not told to stop any", ";requeue", 1, 10, 600, 0, "");
    stops("it did not agree", "", 1, 10, 600, 1, "");
    stops("Slurm may not requeue it", ";requeue", 0, 10, 600, 1, "");
    stops("it has just begun", ";requeue", 1, 10, 1800, 1, "");
    stops("a long job is late by less than a tenth", ";requeue", 1, 600, 600, 1, "");
}

static void test_left_alone(void)
{
    struct topt_text t = {0};
    struct rightsize_limits l = usual;
    struct rightsize_past past = {
        .job = 1, .age_s = 10, .submitted = "2026-11-23T06:07:01"};
    add_job(&t, 1, 1, 4, "Resources", "ArrayJobId=(null) UserId=u2(2)",
            SHAPES("", "", "*", ""));
    decided("a line that says two things", &t, 2, 3, &usual, NULL, "1:-",
            "can't be read");
    add_job(&t, 1, 1, 3, "Resources", "", SHAPES("", "", "*", ""));
    decided("no plan of its shape", &t, 2, 3, &usual, NULL, "1:-", "present shape");
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("changed a moment ago", &t, 2, 3, &usual, &past, "1:-", "--settle");
    past.age_s = 700;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("long ago", &t, 2, 3, &usual, &past, "1:1x2/120", "");
    past.is_undone = 1;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("undone", &t, 2, 3, &usual, &past, "1:-", "undone");
    memcpy(past.submitted, "2025", 4);
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("another job of that number", &t, 2, 3, &usual, &past, "1:1x2/120", "");
    l.jobs = 1;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    add_job(&t, 12, 1, 4, "Priority", "", SHAPES("", "", "*", ""));
    decided("--max-jobs", &t, 2, 3, &l, NULL, "1:1x2/120 12:-", "--max-jobs");
    l = usual;
    l.per_user = 1;
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    add_job(&t, 2, 1, 4, "Priority", "", SHAPES("", "", "*", ""));
    decided("--max-per-user", &t, 2, 2, &l, NULL, "1:1x2/120 2:-", "--max-per-user");
    l = usual;
    l.partitions = "small";
    add_job(&t, 1, 1, 4, "Resources", "", SHAPES("", "", "*", ""));
    decided("--partition", &t, 2, 3, &l, NULL, "1:-", "--partition");
    add_job(&t, 1, 1, 2, "Resources", "MinMemoryCPU=3000M", SHAPES("", "*", "", ""));
    decided("memory bounds it, too", &t, 0, 0, &usual, NULL, "1:1x1/120", "");
}

/* ---- a scontrol that is told, and keeps what it is told to ------------------------- */

static char folder[64];

/* Its state is a file of KEY=VALUE lines; 'mischief' is run at the Nth update, of which
 * "n" is the number. */
static void make_scontrol(const char *mischief)
{
    char path[100];
    struct topt_text t = {0};
    struct topt_error err;
    topt_text_add(
        &t,
        "#!/bin/bash\ncd %s\n"
        "if [ \"$1\" = update ]; then\n"
        "    n=$(($(cat calls) + 1)); echo $n >calls; shift\n"
        "    grep -q RUNNING job && { echo 'Job is no longer pending execution "
        "for job 7' >&2; exit 1; }\n    %s\n"
        "    for w in \"$@\"; do case $w in\n"
        "        NumNodes=*|NumTasks=*|NumCPUs=*|MinCPUsNode=*|Partition=*) sed -i "
        "\"s|${w%%%%=*}=[^ ]*|$w|\" job ;;\n"
        "        TasksPerNode=*) sed -i "
        "\"s|NtasksPerN:B:S:C=[^:]*|NtasksPerN:B:S:C=${w#*=}|\" job ;;\n"
        "        Gres=*) sed -i \"s|TresPerNode=.*|TresPerNode=gres:${w#*=}|\" "
        "job ;;\n"
        "        TimeLimit=*) m=${w#*=}; m=${m%%%%:*}; sed -i "
        "\"s|TimeLimit=[^ ]*|TimeLimit=$((m / 60)):$((m %% 60)):00|\" job ;;\n"
        "    esac; done\nelse\n    cat job\nfi\n",
        folder, mischief);
    snprintf(path, sizeof path, "%s/scontrol", folder);
    if (topt_write_file(path, t.s, t.len, &err) || chmod(path, 0755))
        abort();
    topt_text_fini(&t);
}

static void put(const char *name, const char *text)
{
    char path[100];
    struct topt_error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (topt_write_file(path, text, strlen(text), &err))
        abort();
}

static const char *comment = SHAPES("", "*", "", "");
static int to_kind;

static void changed(const char *text, const char *mischief, enum rightsize_result want,
                    const char *want_shape)
{
    char program[100], detail[240], is[SITE_WORDS + 100];
    struct topt_text t = {0};
    struct site_queue q;
    struct topt_error err;
    struct rightsize_shape to;
    size_t len;
    add_job(&t, 7, 2, 4, "Resources", "", comment);
    put("job", t.s);
    put("calls", "0\n");
    make_scontrol(mischief);
    snprintf(program, sizeof program, "%s/scontrol", folder);
    if (site_queue_read(t.s, &q, &err))
        abort();
    rightsize_shape_in(&q.job[0], &(struct topt_elastic_shape){1, 2, 5, to_kind}, 7200,
                       &to);
    enum rightsize_result r = rightsize_change(program, &q.job[0], &to, detail);
    ok(r == want, "%s: %s: %s", text, rightsize_result_name(r), detail);
    site_queue_fini(&q);
    topt_text_fini(&t);
    snprintf(program, sizeof program, "%s/job", folder);
    char *job = topt_read_file(program, 1 << 20, &len, &err);
    if (!job || site_queue_read(job, &q, &err))
        abort();
    const struct site_queued *j = &q.job[0];
    snprintf(is, sizeof is, "%s%s%lldx%lld/%lld/%lld/%lld/%lld",
             to_kind ? j->partition : "", to_kind ? " " : "", (long long)j->nodes,
             (long long)j->gpus_per_node, (long long)j->tasks, (long long)j->cpus,
             (long long)j->cpus_per_node, (long long)j->time_s / 60);
    ok(!strcmp(is, want_shape), "%s: it is left with %s", text, is);
    site_queue_fini(&q);
    free(job);
}

static void test_change(void)
{
    static const char whole[] = "1x2/2/2/2/120", was[] = "2x4/8/8/4/60";
    changed("told once", ":", RIGHTSIZE_DONE, whole);
    changed("CPUs follow only the second time",
            "[ $n = 1 ] && set -- ${@/NumCPUs=*/}; :", RIGHTSIZE_DONE, whole);
    changed("CPUs never follow",
            "[ $n -le 2 ] && set -- ${@/NumCPUs=*/}; :", RIGHTSIZE_BACK, was);
    changed("refused", "echo 'Access/permission denied' >&2; exit 1", RIGHTSIZE_REFUSED,
            was);
    changed("half of it, then refused",
            "[ $n -le 2 ] && { sed -i 's|NumTasks=8|NumTasks=2|' job; echo no >&2; exit "
            "1; }",
            RIGHTSIZE_BACK, was);
    changed("half of it, and never again",
            "sed -i 's|NumTasks=8|NumTasks=2|' job; echo no >&2; exit 1", RIGHTSIZE_HALF,
            "2x4/2/8/4/60");
    changed("it starts before", "sed -i s/PENDING/RUNNING/ job; exit 1", RIGHTSIZE_LEFT,
            was);
    changed("it starts behind", "trap \"sed -i s/PENDING/RUNNING/ job\" EXIT",
            RIGHTSIZE_DONE, whole);
}

/* To another kind: the partition is part of the shape. */
static void test_change_kind(void)
{
    static const char whole[] = "small 1x2/2/2/2/120", was[] = "gpu,more 2x4/8/8/4/60";
    partition = "gpu,more";
    comment = "topt-elastic=2x4:9*,1x2:5@1;kinds=gpu+more,small";
    to_kind = 1;
    changed("to another kind", ":", RIGHTSIZE_DONE, whole);
    changed("the partition alone follows the second time",
            "[ $n = 1 ] && set -- ${@/Partition=*/}; :", RIGHTSIZE_DONE, whole);
    changed("all but the partition",
            "[ $n -le 2 ] && set -- ${@/Partition=*/}; :", RIGHTSIZE_BACK, was);
    changed("the partition, and then refused",
            "[ $n -le 2 ] && { sed -i 's|Partition=[^ ]*|Partition=small|' job; echo no "
            ">&2; exit 1; }",
            RIGHTSIZE_BACK, was);
    changed("the kind is refused", "echo 'Invalid partition' >&2; exit 1",
            RIGHTSIZE_REFUSED, was);
    partition = "gpu";
    comment = SHAPES("", "*", "", "");
    to_kind = 0;
}

/* The job is no longer as it was read. */
static void test_meanwhile(void)
{
    char program[100], detail[240];
    static const struct {
        const char *text, *sed;
    } rows[] = {{"it started", "s/PENDING/RUNNING/"},
                {"another changed it", "s/NumTasks=8/NumTasks=4/"},
                {"another job has its number", "s/06:07:07/07:07:07/"},
                {"it ended", "s/PENDING/COMPLETED/"}};
    snprintf(program, sizeof program, "%s/scontrol", folder);
    make_scontrol(":");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct topt_text t = {0}, command = {0};
        struct site_queue q;
        struct topt_error err;
        struct rightsize_shape to;
        add_job(&t, 7, 2, 4, "Resources", "", SHAPES("", "*", "", ""));
        put("job", t.s);
        put("calls", "0\n");
        topt_text_add(&command, "sed -i '%s' %s/job", rows[i].sed, folder);
        if (site_queue_read(t.s, &q, &err) || system(command.s))
            abort();
        rightsize_shape_in(&q.job[0], &(struct topt_elastic_shape){1, 2, 5, 0}, 0, &to);
        ok(rightsize_change(program, &q.job[0], &to, detail) == RIGHTSIZE_LEFT,
           "%s: left alone: %s", rows[i].text, detail);
        topt_text_fini(&command);
        topt_text_add(&command, "grep -q 0 %s/calls", folder);
        is_int(system(command.s), 0, "and nothing was told");
        topt_text_fini(&command);
        site_queue_fini(&q);
        topt_text_fini(&t);
    }
}

/* ---- the log ----------------------------------------------------------------------- */

static void test_journal(void)
{
    char path[100];
    struct journal *j = NULL, *other = NULL;
    struct topt_error err = {0};
    struct rightsize_entry e = {.at_s = 1764000000,
                                .job = 7,
                                .submitted = "2026-11-23T06:07:07",
                                .user = "ann",
                                .reason = "it \"waits\"",
                                .result = RIGHTSIZE_DONE,
                                .from = {.nodes = 2, .time_s = 60, .partition = "a,b"},
                                .to = {.nodes = 1, .gpus_per_node = 3}};
    size_t n = 0;
    snprintf(path, sizeof path, "%s/log", folder);
    ok(!journal_open(path, 0, &j, &err) && (journal_last(j, &n), n == 0), "none yet: %s",
       err.text);
    journal_close(j);
    ok(!journal_open(path, 1, &j, &err), "a new one");
    ok(journal_open(path, 1, &other, &err) == -1 && err.code == TOPT_ERR_BUSY, "%s",
       err.text);
    ok(!journal_add(j, &e, &err), "an entry");
    e.result = RIGHTSIZE_DRY;
    e.to.nodes = 9;
    ok(!journal_add(j, &e, &err), "a dry run");
    e.job = 8;
    e.result = RIGHTSIZE_DONE;
    e.is_undo = 1;
    ok(!journal_add(j, &e, &err), "another job");
    journal_close(j);
    FILE *broken = fopen(path, "a");
    fputs("{\"time\":\"2026-11-23T06:\n", broken);
    fclose(broken);
    ok(!journal_open(path, 1, &j, &err), "read again");
    const struct rightsize_entry *last = journal_last(j, &n);
    ok(n == 2 && last[0].job == 7 && last[0].to.nodes == 1 &&
           last[0].to.gpus_per_node == 3 && last[0].from.time_s == 60 &&
           last[0].at_s == e.at_s && !last[0].is_undo &&
           !strcmp(last[0].from.partition, "a,b") && !*last[0].to.partition &&
           !strcmp(last[0].reason, e.reason) && !strcmp(last[0].submitted, e.submitted),
       "what was done, and not what was only said");
    ok(last[1].job == 8 && last[1].is_undo, "of each job");
    journal_close(j);
    ok(journal_open("/no/such/folder/log", 1, &j, &err) == -1 &&
           strstr(err.text, "/no/such/folder/log"),
       "%s", err.text);
    ok(!journal_open("/dev/full", 1, &j, &err) && journal_add(j, &e, &err) == -1,
       "no room: %s", err.text);
    journal_close(j);
}

/* A run was ended while it changed jobs 7, 8 and 9. */
static void test_mend(void)
{
    char path[100], program[100];
    struct journal *j = NULL;
    struct topt_error err = {0};
    struct topt_text t = {0};
    struct site_queue q;
    struct rightsize_entry e = {
        .job = 7, .submitted = "2026-11-23T06:07:07", .result = RIGHTSIZE_BEGUN};
    size_t n = 0;
    add_job(&t, 7, 2, 4, "Resources", "", SHAPES("", "*", "", ""));
    put("job", t.s);
    put("calls", "0\n");
    make_scontrol(":");
    snprintf(program, sizeof program, "%s/scontrol", folder);
    snprintf(path, sizeof path, "%s/ended", folder);
    if (site_queue_read(t.s, &q, &err) || journal_open(path, 1, &j, &err))
        abort();
    rightsize_shape_in(&q.job[0], &(struct topt_elastic_shape){1, 2, 5, 0}, 7200, &e.to);
    e.from = e.to;
    e.from.nodes = 1;
    e.from.gpus_per_node = e.from.tasks = e.from.tasks_per_node = 4;
    e.from.cpus = e.from.cpus_per_node = 4;
    ok(!journal_add(j, &e, &err), "begun");
    e.job = 8;
    ok(!journal_add(j, &e, &err), "another");
    e.job = 9;
    ok(!journal_add(j, &e, &err), "a third");
    e.result = RIGHTSIZE_REFUSED;
    ok(!journal_add(j, &e, &err), "which was through");
    journal_close(j);
    if (journal_open(path, 1, &j, &err))
        abort();
    journal_begun(j, &n);
    is_int(n, 2, "of two it is not known what became of them");
    ok(!rightsize_mend(j, &q, program, &n, &err), "they are looked at: %s", err.text);
    is_int(n, 1, "one that has neither shape is put back");
    journal_begun(j, &n);
    is_int(n, 0, "and none is left");
    site_queue_fini(&q);
    topt_text_fini(&t);
    snprintf(program, sizeof program, "%s/job", folder);
    char *job = topt_read_file(program, 1 << 20, &n, &err);
    if (!job || site_queue_read(job, &q, &err))
        abort();
    ok(q.job[0].nodes == 1 && q.job[0].gpus_per_node == 4, "it has what it had");
    site_queue_fini(&q);
    free(job);
    journal_close(j);
}

/* The first run, with nobody's folder yet; and a log that has grown. */
static void test_journal_grows(void)
{
    char path[140], old[160];
    struct journal *j = NULL, *other = NULL;
    struct topt_error err = {0};
    struct stat st;
    struct rightsize_entry e = {.at_s = 1764000000,
                                .job = 7,
                                .submitted = "then",
                                .user = "ann",
                                .result = RIGHTSIZE_DONE,
                                .to = {.nodes = 1}};
    size_t n = 0;
    snprintf(path, sizeof path, "%s/fresh/log", folder);
    snprintf(old, sizeof old, "%s.1", path);
    ok(!journal_open(path, 1, &j, &err), "its folder is made: %s", err.text);
    ok(!journal_add(j, &e, &err), "an entry");
    journal_close(j);
    char line[1024];
    FILE *f = fopen(path, "r+");
    size_t len = fgets(line, sizeof line, f) ? strlen(line) : 1;
    char *dry = strstr(line, "\"done\"");
    memcpy(dry, "\"left\"", 6);
    fseek(f, 0, SEEK_END);
    for (size_t size = 0; size < (size_t)17 << 20; size += len)
        fputs(line, f);
    fclose(f);
    ok(!journal_open(path, 0, &j, &err) && !stat(path, &st) && st.st_size > 17 << 20,
       "who only reads leaves it");
    journal_close(j);
    ok(!journal_open(path, 1, &j, &err) && (journal_last(j, &n), n == 0),
       "of the newest 8 MiB nothing was done: %s", err.text);
    ok(!stat(path, &st) && st.st_size <= 8 << 20 && st.st_size > 7 << 20,
       "with which the log begins anew");
    ok(!stat(old, &st) && st.st_size > 17 << 20, "all of it lies beside it");
    ok(journal_open(path, 1, &other, &err) == -1 && err.code == TOPT_ERR_BUSY,
       "the new one is locked, too");
    e.job = 9;
    ok(!journal_add(j, &e, &err), "and goes on");
    journal_close(j);
    ok(!journal_open(path, 1, &j, &err) && journal_last(j, &n)->job == 9 && n == 1,
       "as it was");
    journal_close(j);
    ok(!unlink(path) && !unlink(old), "two files");
    snprintf(path, sizeof path, "%s/fresh", folder);
    ok(!rmdir(path), "and no third");
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/topt-rightsize.%ld", (long)getpid());
    if (mkdir(folder, 0700))
        abort();
    test_policy();
    test_kinds();
    test_timeline();
    test_arrays();
    test_stops();
    test_left_alone();
    test_change();
    test_change_kind();
    test_meanwhile();
    test_journal();
    test_journal_grows();
    test_mend();
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ok(!system(command), "nothing is left behind");
    return done_testing();
}
