/* site_test.c - scontrol's text read, the site's table, and what they bound. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "tap.h"
#include "topt_text.h"

static const char *const partitions =
    "PartitionName=a AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=01:00:00 "
    "Nodes=n[1-2] State=UP\n"
    "PartitionName=v Default=NO MaxNodes=2 MaxTime=UNLIMITED Nodes=n[3-6] State=UP\n"
    "PartitionName=off Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED State=DOWN "
    "OverSubscribe=EXCLUSIVE\n"
    "PartitionName=cut AllowGroups=root Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED "
    "MaxCPUsPerNode=4 Nodes=n1 State=UP JobDefaults=DefCpuPerGPU=1,DefMemPerGPU=100000 "
    "DefMemPerNode=UNLIMITED MaxMemPerNode=300000\n"
    "something else\n";
static const char *const reservations =
    "ReservationName=course StartTime=2020-01-01T10:00:00 EndTime=2020-01-01T12:00:00 "
    "Nodes=n[1,6] Users=ann,bob Groups=(null) Accounts=-poor Flags=SPEC_NODES "
    "PartitionName=a TRES=cpu=64,gres/gpu=4\n"
    "ReservationName=long StartTime=2020-01-01T10:00:00 EndTime=2120-01-01T12:00:00 "
    "Nodes=n2 Users=(null) Groups=nogroup Accounts=(null) PartitionName=(null) "
    "TRES=cpu=64\n"
    "No reservations\n";
static const char *const config = "Configuration data as of now\n"
                                  "DefMemPerNode           = UNLIMITED\n"
                                  "SelectTypeParameters    = CR_CORE_MEMORY\n"
                                  "JobDefaults             = DefMemPerGPU=1000\n";
static const char *const nodes =
    "NodeName=n1 CPUEfctv=62 CPUTot=64 AvailableFeatures=fast,ib "
    "Gres=gpu:a100:8(S:0-1),nic:1 RealMemory=512000 "
    "State=IDLE Partitions=a,cut OS=Linux 6.1 #1 SMP\n"
    "NodeName=n2 CPUTot=64 AvailableFeatures=fast Gres=gpu:a100:8(S:0,2) "
    "RealMemory=512000 State=MIXED+PLANNED "
    "Partitions=a\n"
    "NodeName=n3 CPUTot=16 Gres=gpu:v100:4 RealMemory=64000 State=ALLOCATED "
    "Partitions=v\n"
    "NodeName=n4 CPUTot=16 Gres=gpu:v100:4 RealMemory=64000 State=IDLE Partitions=v\n"
    "NodeName=n5 CPUTot=16 Gres=gpu:v100:4 RealMemory=64000 State=IDLE+DRAIN "
    "Partitions=v\n"
    "NodeName=n6 CPUTot=16 Gres=gpu:v100:2 RealMemory=64000 State=IDLE Partitions=v\n";

static void test_words(void)
{
    is_int(site_seconds("90"), 5400, "minutes");
    is_int(site_seconds("1:30"), 90, "minutes and seconds");
    is_int(site_seconds("1:30:00"), 5400, "hours");
    is_int(site_seconds("2-12"), 60 * 3600, "days and hours");
    is_int(site_seconds("1-00:00:01"), 86401, "all of it");
    is_int(site_seconds("UNLIMITED"), 0, "no limit");
    const char *const bad[] = {"", "x", "1:2:3:4", "1-", "1:", "-1", "1h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(site_seconds(bad[i]), -1, "no time: '%s'", bad[i]);
    is_int(site_mebibytes("4000"), 4000, "MiB");
    is_int(site_mebibytes("2G"), 2048, "GiB");
    is_int(site_mebibytes("2048K"), 2, "KiB");
    is_int(site_mebibytes("2X"), -1, "no size");
    ok(site_has_word("a,bc,d", "bc") && !site_has_word("a,bc,d", "b") &&
           !site_has_word("", "a"),
       "words of a list");
}

/* Lists of nodes as Slurm writes them. */
static void test_hosts(void)
{
    static const struct {
        const char *list, *in, *out;
    } rows[] = {{"n1", "n1", "n2"},         {"n1,n3", "n3", "n2"},
                {"n[1-3]", "n2", "n4"},     {"n[1-3,7]", "n7", "n5"},
                {"n[07-10]", "n07", "n7"},  {"n[7-10]", "n7", "n07"},
                {"n[07-10]", "n10", "n11"}, {"r[1-2]n[1-4]-ib", "r2n4-ib", "r2n5-ib"},
                {"a[1-2],b", "b", "a"},     {"n[1-3]", "n1", "n1x"},
                {"n[1-3]", "n3", "n"},      {"n1", "n1", "n10"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].list);
        ok(site_host_is_in(rows[i].list, n, rows[i].in) &&
               !site_host_is_in(rows[i].list, n, rows[i].out),
           "'%s' has %s and not %s", rows[i].list, rows[i].in, rows[i].out);
    }
    ok(!site_host_is_in("(null)", 6, "n1") && !site_host_is_in("", 0, "n1") &&
           !site_host_is_in("n[1", 3, "n1"),
       "no list");
}

static void test_job(void)
{
    static const char said[] =
        "JobId=17 JobName=a b UserId=alice(61001) GroupId=lab(7) JobState=COMPLETED "
        "Reason=None Comment=x\nJobId=18 JobName=z UserId=bob(61002) JobState=RUNNING\n";
    ok(site_slurm_job_is_of(said, 17, 61001), "whose job it is");
    ok(!site_slurm_job_is_of(said, 17, 61002), "not another's");
    ok(!site_slurm_job_is_of(said, 18, 61002), "of the job that was asked about");
    ok(!site_slurm_job_is_of("JobId=17 UserId=alice(61001) JobState=PENDING", 17, 61001),
       "one that has not started measured nothing");
    ok(!site_slurm_job_is_of("JobId=17 JobName=a UserId=bob(61002) UserId=alice(61001) "
                             "JobState=RUNNING",
                             17, 61002),
       "a name that says whose it is says nothing");
    ok(!site_slurm_job_is_of("", 17, 0) &&
           !site_slurm_job_is_of("slurm_load_jobs error", 0, 0),
       "nor does an error");
}

static void test_read(struct site_slurm *s)
{
    struct topt_error err = {0};
    struct site_slurm same;
    const struct site_said said = {partitions, nodes, reservations, config};
    const struct site_said nothing = {"", "", "", ""};
    ok(site_slurm_read(&said, s, &err) == 0, "read: %s", err.text);
    is_int((int64_t)s->npartitions, 4, "partitions");
    is_int((int64_t)s->nnodes, 6, "nodes");
    is_int((int64_t)s->nreservations, 2, "reservations");
    ok(s->partition[3].max_cpus == 4 && s->partition[3].max_mem_mib == 300000 &&
           s->partition[3].def_mem_per_gpu == 100000 &&
           s->partition[0].def_mem_per_gpu == 1000 && s->counts_memory,
       "limits and defaults of a partition, and where it has none those of all");
    ok(!strcmp(s->node[0].reservations, "course") &&
           !strcmp(s->node[1].reservations, "long") &&
           !strcmp(s->node[5].reservations, "course") && !*s->node[4].reservations,
       "the nodes of a reservation");
    ok(s->reservation[0].gpus == 4 && !strcmp(s->reservation[0].partition, "a") &&
           s->reservation[0].end_s - s->reservation[0].start_s == 7200,
       "what it has");
    ok(s->partition[0].is_default && s->partition[0].max_time_s == 3600 &&
           s->partition[1].max_nodes == 2 && !s->partition[2].is_up,
       "partitions' limits");
    ok(s->node[0].cpus == 62 && s->node[1].cpus == 64 && s->node[0].ntypes == 1 &&
           !strcmp(s->node[0].gpu[0].type, "a100") && s->node[0].gpu[0].count == 8,
       "CPUs and GPUs of a node");
    ok(s->node[2].is_up && !s->node[4].is_up, "drained nodes are not up");
    ok(site_slurm_read(&said, &same, &err) == 0 && site_slurm_is_same(s, &same),
       "the same again");
    same.reservation[1].gpus = 1;
    ok(!site_slurm_is_same(s, &same), "a change of a reservation");
    same.reservation[1].gpus = 0;
    same.node[3].is_up = 0;
    ok(!site_slurm_is_same(s, &same), "and one of a node");
    site_slurm_fini(&same);
    ok(site_slurm_read(&nothing, &same, &err) == -1, "nothing said: %s", err.text);
}

static struct site_slurm slurm;
static struct site_map map;

/* What a job is bound to; 'part' is of what is said where it is refused. */
static void bounds(const char *text, struct site_job job, const char *hw,
                   int64_t want_nodes, int64_t want_gpus, const char *part)
{
    struct topt_error err = {0};
    struct site_bound b;
    int rc = site_bound(&slurm, &map, &job, hw, &b, &err);
    ok(rc == (want_nodes ? 0 : -1) &&
           (rc || (b.nodes == want_nodes && b.gpus_per_node == want_gpus)),
       "%s: %lld x %lld", text, (long long)b.nodes, (long long)b.gpus_per_node);
    ok(strstr(rc ? err.text : b.words, part) != NULL, "%s: %s", text,
       rc ? err.text : b.words);
}

static void test_bounds(void)
{
    struct topt_error err = {0};
    struct site_bound b;
    const struct site_job none = {0};
    bounds("the default partition", none, "", 2, 8,
           "partition 'a' with 2 nodes of 8 GPUs");
    ok(!site_bound(&slurm, &map, &none, "", &b, &err) && !strcmp(b.profile, "dgx"),
       "its profile");
    bounds("MaxNodes and nodes that are not up", (struct site_job){.partition = "v"}, "",
           2, 4, "MaxNodes=2");
    bounds("-N", (struct site_job){.nodes = 1}, "", 1, 8, "-N 1 in partition 'a'");
    bounds("-c for a GPU", (struct site_job){.cpus_per_task = 16}, "", 2, 3, "by -c");
    bounds("-c for a node", (struct site_job){.cpus_per_task = 32, .tasks = "node"}, "",
           2, 8, "2 nodes of 8");
    bounds("-c that no node has", (struct site_job){.cpus_per_task = 65}, "", 0, 0,
           "more than the 64 CPUs");
    bounds("--mem", (struct site_job){.mem = "1T"}, "", 0, 0,
           "--mem=1T is more than the 512000 MiB");
    bounds("--mem-per-gpu", (struct site_job){.mem_per_gpu = "125G"}, "", 2, 4,
           "of 4 GPUs");
    bounds("--mem-per-cpu", (struct site_job){.mem_per_cpu = "50G", .cpus_per_task = 2},
           "", 2, 5, "by --mem-per-cpu=50G");
    bounds("--gpus-per-node", (struct site_job){.gpus_per_node = 2}, "", 2, 2,
           "2 nodes of 2 GPUs");
    bounds("more of a node than there is", (struct site_job){.gpus_per_node = 16}, "", 2,
           8, "2 nodes of 8 GPUs");
    bounds("--cpus-per-gpu", (struct site_job){.cpus_per_gpu = 32}, "", 1, 2,
           "by --cpus-per-gpu=32");
    const struct site_job cut = {.partition = "cut", .gpu_type = "a100"};
    struct site_job more = cut;
    bounds("MaxMemPerNode and DefMemPerGPU", cut, "dgx", 1, 3,
           "by DefMemPerGPU=100000 and MaxMemPerNode=300000");
    strcpy(more.mem, "1000");
    bounds("MaxCPUsPerNode", more, "dgx", 1, 4, "by DefCpuPerGPU=1 and MaxCPUsPerNode=4");
    more.cpus_per_task = 5;
    bounds("more than MaxCPUsPerNode", more, "dgx", 0, 0,
           "-c 5 is more than partition 'cut' allows on a node (MaxCPUsPerNode=4)");
    more.cpus_per_task = 1;
    strcpy(more.mem, "400000");
    bounds("more than MaxMemPerNode", more, "dgx", 0, 0,
           "--mem=400000 is more than partition 'cut' allows on a node "
           "(MaxMemPerNode=300000)");
    slurm.counts_memory = 0;
    bounds("memory that isn't counted", (struct site_job){.mem_per_gpu = "125G"}, "", 2,
           8, "2 nodes of 8");
    slurm.counts_memory = 1;
    bounds("--constraint", (struct site_job){.constraint = "fast&ib"}, "", 1, 8,
           "1 node of 8");
    bounds("no such feature", (struct site_job){.constraint = "slow"}, "", 0, 0,
           "--constraint=slow");
    bounds("--time", (struct site_job){.time = "2:00:00"}, "", 0, 0,
           "MaxTime=60 minutes");
    bounds("another kind", (struct site_job){.partition = "a", .gpu_type = "v100"},
           "other", 0, 0, "of type v100");
    bounds("another partition's profile", (struct site_job){.partition = "a"}, "v", 0, 0,
           "--topt-hw=v: by the site's table partition 'a' has other GPUs");
    bounds("a profile that the table hasn't", (struct site_job){.partition = "a"}, "mine",
           0, 0, "has other GPUs: --topt-hw=dgx would do");
    bounds("another kind without a profile",
           (struct site_job){.partition = "a", .gpu_type = "v100"}, "", 0, 0,
           "has no profile for partition 'a' and GPU type v100");
    bounds("no such partition", (struct site_job){.partition = "nowhere"}, "", 0, 0,
           "Slurm has no partition 'nowhere'");
    ok(!site_bound(NULL, NULL, &none, "", &b, &err) && !b.nodes && !*b.profile,
       "nothing known, nothing bound");
}

/* Who may use a reservation, how long, and what it has. */
static void test_reserved(void)
{
    struct site_job job = {.reservation = "course", .user = "ann"};
    bounds("a reservation's nodes and GPUs", job, "", 1, 8,
           "reservation 'course' (4 GPUs)");
    bounds("a time that it has no longer",
           (struct site_job){.reservation = "course", .user = "ann", .time = "10"}, "", 0,
           0, "--time=10 is more than reservation 'course' has left");
    bounds("another user", (struct site_job){.reservation = "course", .user = "eve"}, "",
           0, 0, "reservation 'course' is not for user 'eve' (Users=ann,bob)");
    bounds("an account that may not",
           (struct site_job){.reservation = "course", .user = "ann", .account = "poor"},
           "", 0, 0, "not for account 'poor' (Accounts=-poor)");
    bounds("another partition",
           (struct site_job){.reservation = "course", .user = "ann", .partition = "v"},
           "", 0, 0, "reservation 'course' is of partition 'a'");
    bounds("its group",
           (struct site_job){.reservation = "long", .user = "nobody", .time = "2:00:00"},
           "", 0, 0, "MaxTime=60");
    bounds("its group", (struct site_job){.reservation = "long", .user = "nobody"}, "", 1,
           8, "partition 'a' and reservation 'long' with 1 node of 8 GPUs");
    bounds("another group", (struct site_job){.reservation = "long", .user = "root"}, "",
           0, 0, "not for user 'root' (Groups=nogroup)");
    bounds("nodes elsewhere",
           (struct site_job){.reservation = "long", .user = "nobody", .partition = "v"},
           "", 0, 0, "partition 'v' in reservation 'long' has no node up");
    bounds("one that isn't known", (struct site_job){.reservation = "none"}, "", 2, 8,
           "partition 'a' with 2 nodes");
    bounds("AllowGroups",
           (struct site_job){.partition = "cut", .gpu_type = "a100", .user = "nobody"},
           "dgx", 0, 0, "user 'nobody' may not use partition 'cut' (AllowGroups=root)");
}

/* Limits of accounting, as sacctmgr -nP prints them. */
static void test_accounts(void)
{
    static const char qos[] =
        "normal||||\nshort|gres/gpu=8|gres/gpu=6,cpu=64||01:00:00\n"
        "wide|node=1|||\n"
        "kinds|gres/gpu=7,gres/gpu:a100=4,gres/gpu:v100=2|gres/gpu:a100=3||\n";
    static const char assocs[] =
        "root|||||||\nlab|||root||||\nlab|ann||lab|short|gres/gpu=12||\n"
        "lab|bob||lab||gres/gpu=3|gres/gpu=5|2-00:00:00\npoor|||root|||gres/gpu=2|\n"
        "poor|ann||poor||||\nbroken\n";
    struct topt_error err = {0};
    struct site_accounts a = {0}, same;
    struct site_account_bound of;
    ok(!site_accounts_read(qos, assocs, "ann|lab\nbob|lab\n", &a, &err) && a.nqos == 4 &&
           a.nassocs == 7 && a.nusers == 2,
       "read: %zu QOS, %zu associations, %zu users", a.nqos, a.nassocs, a.nusers);
    ok(!site_accounts_copy(&a, &same, &err) && site_accounts_are_same(&a, &same),
       "a copy is the same");
    site_accounts_fini(&same);
    ok(!strcmp(site_account_of(&a, "ann", ""), "lab") &&
           !strcmp(site_account_of(&a, "ann", "poor"), "poor") &&
           !strcmp(site_account_of(&a, "eve", ""), ""),
       "the account of a job");
    site_accounts_bound(&a, "ann", "lab", "", "p", "", "", &of);
    ok(of.most.gpus == 6 && of.most.time_s == 3600 &&
           strstr(of.of_gpus, "QOS 'short' (6 GPUs)"),
       "the default QOS, of which a user's limit is less: %s", of.of_gpus);
    site_accounts_bound(&a, "ann", "poor", "normal", "p", "", "", &of);
    ok(of.most.gpus == 2 && strstr(of.of_gpus, "account 'poor'"), "an account: %s",
       of.of_gpus);
    site_accounts_bound(&a, "bob", "lab", "", "p", "wide", "", &of);
    ok(of.most.gpus == 3 && of.most.nodes == 1 && strstr(of.of_nodes, "QOS 'wide'") &&
           strstr(of.of_time, "user 'bob' (2880 minutes)"),
       "a user, and the partition's QOS: %s, %s, %s", of.of_gpus, of.of_nodes,
       of.of_time);
    site_accounts_bound(&a, "eve", "", "", "p", "", "", &of);
    ok(!of.most.gpus && !*of.of_gpus, "nobody's");
    site_accounts_bound(&a, "ann", "lab", "kinds", "p", "", "a100", &of);
    ok(of.most.gpus == 3 && strstr(of.of_gpus, "QOS 'kinds' (3 GPUs of type a100)"),
       "of a type the least: %s", of.of_gpus);
    site_accounts_bound(&a, "ann", "lab", "kinds", "p", "", "", &of);
    ok(of.most.gpus == 7, "which binds no job that names no type: %s", of.of_gpus);
    ok(!strcmp(site_qos_of(&a, "ann", "lab", "p", ""), "short") &&
           !strcmp(site_qos_of(&a, "eve", "lab", "p", ""), "normal") &&
           !strcmp(site_qos_of(&(struct site_accounts){0}, "ann", "lab", "p", ""), ""),
       "the QOS of a job that names none");
    slurm.accounts = a;
    bounds("a user's GPUs", (struct site_job){.user = "bob"}, "", 2, 8,
           "user 'bob' (3 GPUs)");
    bounds("a QOS's nodes", (struct site_job){.user = "ann", .qos = "wide"}, "", 1, 8,
           "QOS 'wide' (1 node) in partition 'a'");
    bounds("a QOS's time", (struct site_job){.qos = "short", .time = "1:01:00"}, "", 0, 0,
           "more than partition 'a' allows");
    bounds("a QOS's time",
           (struct site_job){.partition = "v", .qos = "short", .time = "2:00:00"}, "", 0,
           0, "more than QOS 'short' (60 minutes) allows");
    ok(site_enforces_limits(
           "X = 1\nAccountingStorageEnforce = associations,limits\nY = qos\n") &&
           !site_enforces_limits("AccountingStorageEnforce = none\nOther = limits\n") &&
           !site_enforces_limits(""),
       "limits are enforced where Slurm says so");
    site_accounts_fini(&slurm.accounts);
}

/* Who may use a partition. */
static void test_allowed(void)
{
    struct site_slurm open = slurm;
    slurm.partition = calloc(4, sizeof *slurm.partition);
    if (!slurm.partition)
        abort();
    memcpy(slurm.partition, open.partition, 4 * sizeof *slurm.partition);
    strcpy(slurm.partition[0].allow_accounts, "lab,poor");
    strcpy(slurm.partition[0].deny_qos, "short");
    bounds("an account that may", (struct site_job){.account = "poor"}, "", 2, 8, "a");
    bounds("one that may not", (struct site_job){.account = "other"}, "", 0, 0,
           "account 'other' may not use partition 'a' (AllowAccounts=lab,poor)");
    bounds("a QOS that may not", (struct site_job){.qos = "short"}, "", 0, 0,
           "QOS 'short' may not use partition 'a' (DenyQos=short)");
    free(slurm.partition);
    slurm = open;
}

/* Several partitions: those of one profile, and the largest of them counts. */
static void test_several(void)
{
    struct topt_error err = {0};
    struct site_bound b;
    struct site_job job = {.partition = "off,a"};
    ok(!site_bound(&slurm, &map, &job, "", &b, &err) && b.nplaces == 1 && b.nodes == 2 &&
           !strcmp(b.place[0].name, "a"),
       "one of two: %s", b.words);
    strcpy(job.partition, "v,a");
    ok(!site_bound(&slurm, &map, &job, "", &b, &err) && b.nplaces == 1 &&
           !strcmp(b.profile, "v") && b.gpus_per_node == 4,
       "of two profiles the first: %s", b.words);
    ok(!site_bound(&slurm, NULL, &job, "", &b, &err) && b.nplaces == 2 &&
           b.gpus_per_node == 8 && b.place[0].gpus_per_node == 4,
       "of one the larger: %s", b.words);
    strcpy(job.partition, "off,v");
    strcpy(job.mem, "1T");
    ok(site_bound(&slurm, &map, &job, "", &b, &err) == -1, "none of two: %s", err.text);
}

/* Jobs that have their nodes for themselves, and why. */
static void has_whole(const char *text, struct site_job job, const char *want)
{
    struct topt_error err = {0};
    struct site_bound b = {.whole = "?"};
    int rc = site_bound(&slurm, &map, &job, "dgx", &b, &err);
    ok(!rc && !strcmp(b.whole, want), "%s: '%s' %s", text, b.whole, err.text);
}

static void test_whole(void)
{
    struct topt_error err = {0};
    struct site_bound b;
    has_whole("nothing asked", (struct site_job){.gpu_type = "a100"}, "");
    has_whole("--exclusive", (struct site_job){.exclusive = "exclusive"}, "--exclusive");
    has_whole("--exclusive=user", (struct site_job){.exclusive = "user"}, "");
    has_whole("--oversubscribe", (struct site_job){.exclusive = "oversubscribe"}, "");
    struct site_job job = {.partition = "v"};
    ok(!site_bound(&slurm, &map, &job, "", &b, &err) &&
           !strcmp(b.whole, "the site's table, of partition 'v'"),
       "the table's: %s", b.whole);
    ok(!slurm.partition[0].is_whole && slurm.partition[2].is_whole, "OverSubscribe");
    slurm.partition[0].is_whole = 1;
    has_whole("a partition", (struct site_job){.gpu_type = "a100"},
              "partition 'a' (OverSubscribe=EXCLUSIVE)");
    slurm.partition[0].is_whole = 0;
}

/* In a partition with two kinds of nodes, features choose between them. */
static void test_features(void)
{
    static const char *const want[][2] = {{"", "dgx"}, {"fast", "dgx"}, {"ib", "v"}};
    struct site_row rows[] = {{.partition = "m", .type = "a100", .profile = "dgx"},
                              {.partition = "m", .type = "v100", .profile = "v"}};
    const struct site_map two = {rows, 2};
    const struct site_said said = {
        "PartitionName=m State=UP\n",
        "NodeName=n1 Gres=gpu:a100:4 AvailableFeatures=fast State=IDLE Partitions=m\n"
        "NodeName=n2 Gres=gpu:v100:4 AvailableFeatures=volta,ib State=IDLE "
        "Partitions=m\n",
        "", ""};
    struct topt_error err = {0};
    struct site_slurm s;
    struct site_bound b;
    if (site_slurm_read(&said, &s, &err))
        abort();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct site_job job = {.partition = "m"};
        strcpy(job.constraint, want[i][0]);
        ok(!site_bound(&s, &two, &job, "", &b, &err) && !strcmp(b.profile, want[i][1]) &&
               b.nodes == 1,
           "-C '%s': %s %s", want[i][0], b.profile, b.words);
    }
    struct site_job job = {.partition = "m", .constraint = "volta"};
    ok(!site_bound(&s, &two, &job, "", &b, &err) && !strcmp(b.gpu_type, "v100"),
       "-C volta, and their type");
    ok(site_bound(&s, &two, &job, "dgx", &b, &err) &&
           strstr(err.text,
                  "has no node up with GPUs of type a100 and --constraint=volta"),
       "a profile of the others: %s", err.text);
    site_slurm_fini(&s);
}

/* So do the nodes that the job names, of which it gets each. */
static void test_named(void)
{
    static const char *const want[][4] = {
        /* -w, --topt-hw, profile, words of a refusal */
        {"n[1,3]", "", "dgx", ""},
        {"n2", "", "v", ""},
        {"n9", "", "dgx", ""}, /* left to Slurm */
        {"n2", "dgx", "", "'n2' has no GPUs of type a100: --topt-hw=v would do"},
        {"n[1-2]", "", "", "'n2' has no GPUs of type a100, and no line of the site's"},
        {"n[1,4]", "", "", "'n4' is not up"},
        {"n[1,5]", "", "", "'n5' is not in partition 'm'"}};
    struct site_row rows[] = {{.partition = "m", .type = "a100", .profile = "dgx"},
                              {.partition = "m", .type = "v100", .profile = "v"},
                              {.partition = "o", .type = "*", .profile = "any"}};
    const struct site_map table = {rows, 3};
    const struct site_said said = {
        "PartitionName=m State=UP\nPartitionName=o State=UP\n",
        "NodeName=n1 Gres=gpu:a100:8 State=IDLE Partitions=m,o\n"
        "NodeName=n2 Gres=gpu:v100:4 State=IDLE Partitions=m,o\n"
        "NodeName=n3 Gres=gpu:a100:8 State=IDLE Partitions=m,o\n"
        "NodeName=n4 Gres=gpu:a100:8 State=DOWN Partitions=m\n"
        "NodeName=n5 Gres=gpu:a100:8 State=IDLE Partitions=x\n",
        "", ""};
    struct topt_error err = {0};
    struct site_slurm s;
    struct site_bound b;
    if (site_slurm_read(&said, &s, &err))
        abort();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct site_job job = {.partition = "m"};
        err = (struct topt_error){0};
        strcpy(job.nodelist, want[i][0]);
        int rc = site_bound(&s, &table, &job, want[i][1], &b, &err);
        ok(rc == (*want[i][3] ? -1 : 0) && (rc || !strcmp(b.profile, want[i][2])) &&
               strstr(err.text, want[i][3]),
           "-w %s: %s %s", want[i][0], rc ? "" : b.profile, err.text);
    }
    struct site_job job = {.partition = "o", .nodelist = "n2"};
    ok(!site_bound(&s, &table, &job, "", &b, &err) && b.nodes == 3 &&
           b.gpus_per_node == 4 && b.named == 1 && strstr(b.words, "and -w n2"),
       "no more GPUs of a node than the named one has: %s", b.words);
    job.nodes = 1;
    strcpy(job.nodelist, "n[1-2]");
    ok(site_bound(&s, &table, &job, "", &b, &err) &&
           strstr(err.text, "-w n[1-2]: 2 nodes are more than -N 1"),
       "more than -N: %s", err.text);
    site_slurm_fini(&s);
}

static void test_map(void)
{
    struct topt_error err = {0};
    char path[] = "/tmp/topt-site.XXXXXX";
    int fd = mkstemp(path);
    const char *text = "# ours\na a100 dgx # the good ones\n\nv * v whole\n";
    const char *wrong = "a a100 dgx whole # all\nv v100 v half\n";
    if (fd < 0 || topt_write_file(path, text, strlen(text), &err))
        abort();
    close(fd);
    ok(site_map_read(path, &map, &err) == 0 && map.n == 2 && !map.row[0].is_whole &&
           map.row[1].is_whole,
       "a table: %s", err.text);
    struct site_map none;
    if (topt_write_file(path, wrong, strlen(wrong), &err))
        abort();
    ok(site_map_read(path, &none, &err) == -1 && strstr(err.text, ":2: a line is"),
       "a wrong one: %s", err.text);
    unlink(path);
}

int main(void)
{
    test_words();
    test_hosts();
    test_job();
    test_read(&slurm);
    test_map();
    test_bounds();
    test_reserved();
    test_accounts();
    test_allowed();
    test_several();
    test_whole();
    test_features();
    test_named();
    site_slurm_fini(&slurm);
    site_map_fini(&map);
    return done_testing();
}
