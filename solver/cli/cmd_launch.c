/* cmd_launch.c - launch: a plan as the command or the files of the framework that trains by it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "topt_cli.h"
#include "topt_json.h"
#include "topt_launch.h"
#include "topt_plan_doc.h"
#include "topt_rendezvous.h"
#include "topt_text.h"

struct args {
    const char *target, *dir;
    int is_job, env, exports, json;
};

#define AT(field) offsetof(struct args, field)
static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt launch plan.json --for accelerate -o job",
                 "the command, and the files that it reads in the folder job"),
    {"for", TOPT_OPT_STRING, AT(target), "NAME",
     "torchrun, accelerate, hf, torchtune, deepspeed, megatron, primus, torchtitan "
     "or topt (default: by the plan's framework)"},
    {"sbatch", TOPT_OPT_FLAG, AT(is_job), "",
     "print one sbatch script that holds all files; for GPUs of several groups a "
     "heterogeneous job"},
    {"env", TOPT_OPT_FLAG, AT(env), "",
     "print arguments for srun: one task per GPU, and the plan as NAME=VALUE"},
    {"export", TOPT_OPT_FLAG, AT(exports), "",
     "print the plan, TOPT_SRUN and TOPT_TORCHRUN for a shell's eval"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {"o", TOPT_OPT_STRING, AT(dir), "DIR", "write the files to a directory"},
    {0}};
static const char usage[] =
    "topt launch [plan.json] [--for NAME] [options]\n"
    "The command and the configuration files with which a framework runs a plan.\n"
    "Without plan.json, the plan that $TOPT_PLAN names: a file, or the plan carried by a "
    "job\n"
    "that topt sized. If the job carries none, --env and --export print its environment.";

/* Each of the files into 'dir', which is made where it is not there. */
static int write_files(const json_t *launch, const char *dir, struct topt_error *err)
{
    size_t i;
    json_t *f;
    if (mkdir(dir, 0755) && access(dir, W_OK))
        return topt_fail(err, TOPT_ERR_IO, "can't make the folder '%s'", dir);
    json_array_foreach(json_object_get(launch, "files"), i, f)
    {
        struct topt_text path = {0};
        const char *text = topt_json_words_at(f, "text");
        topt_text_add(&path, "%s/%s", dir, topt_json_words_at(f, "name"));
        int rc = path.oom ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for a path")
                          : topt_write_file(path.s, text, strlen(text), err);
        if (!rc)
            printf("%s\n", path.s);
        topt_text_fini(&path);
        if (rc)
            return -1;
    }
    return 0;
}

static int in_slurm(void)
{
    return getenv("SLURM_JOB_ID") != NULL;
}

static int64_t number_of(const json_t *env, const char *name)
{
    int64_t n = 0;
    return topt_parse_int(topt_json_words_at(env, name), 1, 1 << 20, &n, NULL) ? 0 : n;
}

/* In a job of Slurm, whatever tasks it has, srun is to start one for each GPU of the plan, and these
 * meet on its first node. */
static void print_tasks(const json_t *env)
{
    const char *list = getenv("SLURM_JOB_NODELIST"), *job = getenv("SLURM_JOB_ID");
    int64_t nodes = number_of(env, "TOPT_NODES");
    int64_t each = number_of(env, "TOPT_GPUS_PER_NODE");
    char words[TOPT_RENDEZVOUS_SIZE], host[TOPT_HOST_SIZE];
    if (nodes && each) {
        topt_rendezvous_srun(nodes, each, words);
        printf("%s --overcommit ", words);
    }
    printf("env");
    if (!getenv("MASTER_ADDR") && list && !topt_rendezvous_host(list, host))
        printf(" MASTER_ADDR=%s MASTER_PORT=%d", host,
               topt_rendezvous_port(strtoll(job, NULL, 10)));
}

/* Values with blanks can't be words of a command line. */
static void print_environment(const json_t *env, const struct args *a)
{
    const char *name;
    json_t *value;
    if (!a->exports && in_slurm())
        print_tasks(env);
    else if (!a->exports)
        printf("env");
    json_object_foreach((json_t *)env, name, value)
    {
        if (a->exports)
            printf("export %s='%s'\n", name, json_string_value(value));
        else if (!strchr(json_string_value(value), ' '))
            printf(" %s=%s", name, json_string_value(value));
    }
    if (!a->exports)
        printf("\n");
}

static int in_job(void)
{
    return getenv("TOPT_DP") && getenv("TOPT_PLAN_ID");
}

/* In a job that topt sized without a plan's file: what its environment says. */
static json_t *of_job(void)
{
    static const char *const names[] = {
        "TOPT_PLAN_ID", "TOPT_GPUS",      "TOPT_NODES",       "TOPT_GPUS_PER_NODE",
        "TOPT_DP",      "TOPT_TP",        "TOPT_PP",          "TOPT_VP",
        "TOPT_FSDP",    "TOPT_RECOMPUTE", "TOPT_MICRO_BATCH", "TOPT_ACCUMULATION",
        "TOPT_CP",      "TOPT_EP",        "TOPT_ETP",         "TOPT_SHARD",
        "TOPT_SRUN",    "TOPT_TORCHRUN"};
    json_t *env = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            json_object_set_new(env, names[i], json_string(getenv(names[i])));
    return env;
}

static int environment(const json_t *plan, const struct args *a, struct topt_error *err)
{
    json_t *env = plan ? NULL : of_job();
    int rc = plan ? topt_launch_environment(plan, &env, err) : 0;
    if (!rc && a->json)
        rc = topt_cli_write_json(env, "-", err);
    else if (!rc)
        print_environment(env, a);
    json_decref(env);
    return rc;
}

static int launch(const json_t *plan, const struct args *a, struct topt_error *err)
{
    json_t *answer = NULL;
    int rc = topt_launch(plan, a->target, a->is_job, &answer, err);
    char *text = rc || a->json || a->dir ? NULL : topt_launch_text(answer);
    if (!rc && a->dir)
        rc = write_files(answer, a->dir, err);
    if (!rc && a->json)
        rc = topt_cli_write_json(answer, "-", err);
    else if (!rc && !a->dir)
        rc = text ? fputs(text, stdout) < 0
                  : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
    free(text);
    json_decref(answer);
    return rc;
}

static int is_environment(const struct args *a)
{
    return a->env || a->exports;
}

/* The plan.  '*ret' NULL: there is none, and the environment's numbers do, of which variables are
 * made. */
static int load(const struct args *a, const char *plan, json_t **ret,
                struct topt_error *err)
{
    json_t *doc = topt_cli_read_plan(plan, err);
    *ret = json_incref((json_t *)topt_plan_in(doc));
    json_decref(doc);
    int numbers = !doc && err->code == TOPT_ERR_NOTFOUND && topt_is_id(plan) &&
                  is_environment(a) && in_job();
    return doc || numbers ? 0 : -1;
}

static int check(const struct args *a, const char **path, int n, struct topt_error *err)
{
    if (!n)
        *path = getenv("TOPT_PLAN");
    if (!*path)
        return topt_fail(err, TOPT_ERR_USAGE, "which plan? usage: %.*s",
                         (int)strcspn(usage, "\n"), usage);
    if (is_environment(a) && (a->target || a->is_job || a->dir))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--env and --export print variables instead of files: leave out %s",
            a->target   ? "--for"
            : a->is_job ? "--sbatch"
                        : "-o");
    return 0;
}

int topt_cmd_launch(int argc, char **argv)
{
    struct args a = {0};
    struct topt_error err = {0};
    const char *path[1] = {NULL};
    int n, rc = topt_options_parse(options, argc, argv, &a, path, 1, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    rc = rc || check(&a, path, n, &err);
    json_t *plan = NULL;
    if (rc || load(&a, path[0], &plan, &err))
        return topt_cli_fail("launch", &err);
    rc = is_environment(&a) ? environment(plan, &a, &err) : launch(plan, &a, &err);
    json_decref(plan);
    return rc ? topt_cli_fail("launch", &err) : 0;
}
