/* main.c - topt-client: `topt client ...`, the questions of `topt` put to a running toptd.
 *
 * One table of commands and one of options; the rows of a question are those of the table of
 * fields, so that what the server takes can be asked here. */
#include "client.h"
#include "topt_clock.h"
#include "request.h"

#include <curl/curl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "topt_near.h"
#include "topt_options.h"
#include "topt_place.h"

static const struct topt_option table[] = {
    TOPT_EXAMPLE("topt client plan config.json --hw a100-80-dgx --batch 64 --seq 4096",
                 "the question of topt plan, put to toptd"),
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ARG, OTHER, VALUES,    \
          HELP)                                                                          \
    TOPT_FIELD_OF_CLIENT_##DOORS({OPTION, TOPT_OPT_FIELD, offsetof(struct args, asked),  \
                                  ARG, TOPT_FIELD_HELP(HELP, OTHER)}, )
    TOPT_FIELDS(X)
#undef X
        {"o", TOPT_OPT_STRING, offsetof(struct args, output), "FILE",
         "write to a file (- is stdout)"},
    {"svg", TOPT_OPT_STRING, offsetof(struct args, svg), "FILE",
     "draw the curve or frontier"},
    {"group", TOPT_OPT_STRING, offsetof(struct args, group), "NAME",
     "group to share with, or to stop sharing with"},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), "",
     "print the server's JSON answer"},
    {"url", TOPT_OPT_STRING, offsetof(struct args, url), "URL",
     "unix:/PATH or http://HOST:PORT (default: $TOPT_URL, or where toptd listens)"},
    {"daemon-uid", TOPT_OPT_STRING, offsetof(struct args, daemon_uid), "USER",
     "who runs toptd (default: $TOPT_DAEMON_UID, or root or the user topt)"},
    {"job", TOPT_OPT_COUNT, offsetof(struct args, job), "JOBID",
     "of observe: the job (default: the one that this runs in)"},
    {"step-seconds", TOPT_OPT_POSITIVE, offsetof(struct args, step_seconds), "S",
     "of observe: the median time per step"},
    {"peak-memory", TOPT_OPT_BYTES, offsetof(struct args, peak_memory), "SIZE",
     "of observe: the largest peak of its GPUs"},
    {"steps", TOPT_OPT_COUNT, offsetof(struct args, steps), "N",
     "of observe: how many steps that was"},
    {"timeout", TOPT_OPT_COUNT, offsetof(struct args, timeout), "SECONDS",
     "longest wait for a search (900)"},
    {0}};

/* A command's own options are listed by name in 'options', separated by blanks; QUESTION stands for all fields of a
 * question.  Every command also has those of options_of(). */
#define QUESTION "?"
static const struct subcommand {
    const char *name;
    client_command *run;
    const char *arg, *options, *help; /* arg NULL: takes none */
} subcommands[] = {
    {"plan", client_plan, "MODEL", QUESTION " o svg",
     "the fewest GPUs that fit, or the fastest strategy"},
    {"curve", client_curve, "MODEL", QUESTION " svg",
     "speed against number of GPUs, drawn"},
    {"frontier", client_frontier, "MODEL", QUESTION " svg",
     "memory per GPU against time per step on --gpus N, drawn"},
    {"plans", client_plans, NULL, "", "your plans"},
    {"get-plan", client_get_plan, "PLAN-ID", "o", "fetch one of them (-o FILE)"},
    {"tasks", client_tasks, NULL, "", "your running and queued searches"},
    {"task", client_task, "TASK-ID", "", "progress of one"},
    {"cancel", client_cancel, "TASK-ID", "", "cancel one"},
    {"models", client_models, NULL, "", "models the server knows"},
    {"add-model", client_add_model, "FILE", "", "register a model"},
    {"hardware", client_hardware, NULL, "", "hardware profiles the server knows"},
    {"add-hw", client_add_hw, "FILE", "", "register a hardware profile"},
    {"put-hw", client_put_hw, "FILE", "",
     "register one, or replace the one of that name"},
    {"delete-hw", client_delete_hw, "NAME", "", "retire a hardware profile"},
    {"share", client_share, "ID", "group",
     "share a model or a plan of yours with a --group"},
    {"unshare", client_unshare, "ID", "group", "stop sharing it"},
    {"forget", client_forget, "ID", "", "delete a model or a plan of yours"},
    {"observe", client_observe, "PLAN-ID", "job step-seconds peak-memory steps",
     "report what a job measured"},
    {"report", client_report, "JOBID", "",
     "compare a job's prediction with its measurement"},
    {"observations", client_observations, NULL, "o",
     "measurements that jobs reported (-o FILE: with their plans, for topt calibrate)"},
    {"savings", client_savings, NULL, "o",
     "jobs by the GPU-hours that fewer GPUs would have saved (-o FILE.csv, FILE.html)"},
    {"corrections", client_corrections, NULL, "", "corrections of predictions from them"},
    {"reset-correction", client_reset_correction, "MODEL-ID", "hw",
     "drop the correction on --hw ID"},
    {"status", client_status, NULL, "", "health and counters of the server"},
};
enum { NSUBS = sizeof subcommands / sizeof *subcommands };

static void help(FILE *out)
{
    fputs("Usage: topt client COMMAND [ARGUMENTS]   (topt client COMMAND --help tells "
          "more)\n",
          out);
    for (int i = 0; i < NSUBS; i++)
        fprintf(out, "  %-16s %-9s %s\n", subcommands[i].name,
                subcommands[i].arg ? subcommands[i].arg : "", subcommands[i].help);
    fputs("MODEL is a file, a folder with a config.json, or model:NAME: an id or a name "
          "of\n"
          "`topt client models` (where no file is called so, the name alone).\n",
          out);
}

/* Is a word among those of a list with blanks between? */
static int has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && !strncmp(at, word, n))
            return 1;
    return 0;
}

/* Copy the rows of the table that a command has to 'ret', which is as large as the table. */
static void options_of(const struct subcommand *sub, struct topt_option *ret)
{
    int asks = has_word(sub->options, QUESTION), n = 0;
    for (const struct topt_option *o = table; o->name; o++)
        if ((asks && (o->kind == TOPT_OPT_FIELD || o->kind == TOPT_OPT_EXAMPLE)) ||
            has_word("json url daemon-uid timeout", o->name) ||
            has_word(sub->options, o->name))
            ret[n++] = *o;
    ret[n] = (struct topt_option){0};
}

static int run_sub(int i, int argc, char **argv)
{
    struct topt_option options[sizeof table / sizeof *table];
    struct client c = {.sub = subcommands[i].name,
                       .args = {.timeout = 900},
                       .began_ms = topt_clock_ms()};
    struct topt_error err = {0};
    char found[512];
    int nargs = 0, want = subcommands[i].arg != NULL;
    options_of(&subcommands[i], options);
    int rc = topt_options_parse(options, argc, argv, &c.args, &c.arg, want, &nargs, &err);
    if (rc > 0) {
        char usage[200];
        snprintf(usage, sizeof usage, "topt client %s%s%s [options]\n%s", c.sub,
                 want ? " " : "", want ? subcommands[i].arg : "", subcommands[i].help);
        topt_options_help(stdout, usage, options);
        return 0;
    }
    if (rc == 0 && nargs < want)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "%s is needed; try --help",
                       subcommands[i].arg);
    if (rc == 0 && !c.args.url) {
        rc = topt_place_ask(found, sizeof found, &err);
        c.args.url = found;
    }
    if (rc == 0)
        rc = topt_trust_read(c.args.daemon_uid, &c.trust, &err);
    if (rc < 0)
        client_complain(&c, &err);
    else
        rc = subcommands[i].run(&c);
    return rc < 0 ? (c.status ? c.status : 1) : 0;
}

/* argv: topt-client client SUB ..., or topt-client report ... */
int main(int argc, char **argv)
{
    int at = argc > 1 && !strcmp(argv[1], "report") ? 1 : 2; /* `topt report` */
    const char *sub = argc > at ? argv[at] : "";
    if (!strcmp(sub, "--help") || !strcmp(sub, "-h")) {
        help(stdout);
        return 0;
    }
    for (int i = 0; i < NSUBS; i++) {
        if (strcmp(sub, subcommands[i].name))
            continue;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int status = run_sub(i, argc - at, argv + at);
        curl_global_cleanup();
        return status;
    }
    char meant[TOPT_NEAR_WORDS];
    struct topt_near near = {.name = sub};
    for (int i = 0; i < NSUBS; i++)
        topt_near_try(&near, subcommands[i].name);
    fprintf(stderr, "topt client: %s%.60s%s%s (`topt client --help` lists all)\n",
            *sub ? "unknown command '" : "which command?", sub, *sub ? "'" : "",
            topt_near_words(&near, meant));
    return 2;
}
