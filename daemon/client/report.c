/* report.c - after a job: what it measured is told to the server, and shown beside what
 * its plan had said. */
#include "client.h"
#include "topt_clock.h"
#include "topt_command.h"
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_hint.h"
#include "topt_text.h"

enum { SACCT_MS = 5000 };

/* ---- telling ----------------------------------------------------------------------------- */

/* The job that is meant, or that this runs in; 0 and a complaint where there is none. */
static int64_t job_of(struct client *c)
{
    struct topt_error err = {0};
    const char *here = getenv("SLURM_JOB_ID");
    int64_t job = c->args.job;
    if (job)
        return job;
    if (here && !topt_parse_int(here, 1, INT64_MAX, &job, &err))
        return job;
    topt_fail(&err, TOPT_ERR_USAGE, "--job is needed outside of a job");
    client_complain(c, &err);
    return 0;
}

/* "step 52.5 s said, 54.1 s seen (+3 %)"; nothing where it wasn't measured. */
static void add_beside(struct topt_text *t, const char *what, const json_t *row,
                       const char *measured, const char *predicted,
                       char *(*show)(int64_t, char *, size_t))
{
    char said[32], seen[32];
    int64_t is = json_integer_value(json_object_get(row, measured));
    int64_t was =
        json_integer_value(json_object_get(json_object_get(row, "predicted"), predicted));
    if (!is)
        return;
    topt_text_add(t, "%s%s ", t->len ? "; " : "", what);
    if (was)
        topt_text_add(t, "%s predicted, ", show(was, said, sizeof said));
    topt_text_add(t, "%s measured", show(is, seen, sizeof seen));
    if (was)
        topt_text_add(t, " (%+.0f %%)", 100 * ((double)is / (double)was - 1));
}

static char *show_bytes(int64_t bytes, char *buf, size_t size)
{
    return (char *)(uintptr_t)topt_show_bytes(bytes, buf, size);
}

static char *show_ns(int64_t ns, char *buf, size_t size)
{
    return (char *)(uintptr_t)topt_show_ns(ns, buf, size);
}

/* The line about a job; owned, NULL without memory. */
static char *line_of(const json_t *row)
{
    struct topt_text t = {0};
    add_beside(&t, "step", row, "step_ns", "time_ns", show_ns);
    add_beside(&t, "memory", row, "peak_bytes", "memory_bytes", show_bytes);
    return t.s;
}

int client_observe(struct client *c)
{
    int64_t job = job_of(c);
    struct topt_error err = {0};
    if (!job)
        return -1;
    if (c->args.step_seconds <= 0 && !c->args.peak_memory) {
        topt_fail(&err, TOPT_ERR_USAGE, "--step-seconds or --peak-memory is needed");
        return client_complain(c, &err);
    }
    json_t *report = json_pack("{s:I, s:s}", "job", (json_int_t)job, "plan_id", c->arg);
    if (c->args.step_seconds > 0)
        json_object_set_new(report, "step_ns",
                            json_integer((json_int_t)(c->args.step_seconds * 1e9)));
    if (c->args.peak_memory)
        json_object_set_new(report, "peak_bytes", json_integer(c->args.peak_memory));
    if (c->args.steps)
        json_object_set_new(report, "steps", json_integer(c->args.steps));
    char *text = json_dumps(report, JSON_COMPACT);
    json_decref(report);
    json_t *row = text ? client_ask_json(c, "POST", "/v1/observations", text,
                                         strlen(text), "application/json")
                       : NULL;
    char *line = row ? line_of(row) : NULL;
    if (row && c->args.json)
        client_print_json(row);
    else if (line)
        printf("topt: %s\n", line);
    int rc = row ? 0 : -1;
    free(line);
    free(text);
    json_decref(row);
    return rc;
}

/* ---- showing ----------------------------------------------------------------------------- */

/* The newest report of the job; a new reference, or NULL. */
static json_t *find_report(struct client *c, int64_t job)
{
    json_t *answer = client_ask_json(c, "GET", "/v1/observations", NULL, 0, NULL), *row;
    json_t *found = NULL;
    struct topt_error err = {0};
    size_t i;
    if (!answer)
        return NULL;
    json_array_foreach(json_object_get(answer, "observations"), i, row)
    {
        if (!found && json_integer_value(json_object_get(row, "job")) == job)
            found = json_incref(row);
    }
    json_decref(answer);
    if (found)
        return found;
    topt_fail(
        &err, TOPT_ERR_NOTFOUND,
        "job %lld has told nothing: `topt run` does so as it ends, another script "
        "with topt client observe \"$TOPT_PLAN\" --step-seconds S --peak-memory SIZE",
        (long long)job);
    client_complain(c, &err);
    return NULL;
}

/* How busy its GPUs were, in percent, where accounting has it; else -1. */
static int64_t busy_of(const char *accounting)
{
    static const char key[] = "gres/gpuutil=";
    int64_t most = -1;
    for (const char *p = accounting; (p = strstr(p, key));) {
        p += sizeof key - 1;
        int64_t percent = strtoll(p, NULL, 10);
        most = percent > most ? percent : most;
    }
    return most;
}

static int64_t ask_accounting(int64_t job)
{
    char id[24];
    struct topt_text t = {0};
    snprintf(id, sizeof id, "%lld", (long long)job);
    const char *const args[] = {"sacct", "-nP", "-j", id, "--format=TRESUsageInAve",
                                NULL};
    int rc = topt_command_read(args, topt_clock_ms() + SACCT_MS, &t, NULL);
    int64_t busy = rc || !t.s ? -1 : busy_of(t.s);
    topt_text_fini(&t);
    return busy;
}

static void add_number(struct topt_text *path, const char *key, const json_t *value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
    if (json_integer_value(value) > 0)
        client_add_query(path, key, digits);
}

json_t *client_kept_plan(struct client *c, const json_t *row)
{
    int rc = 0;
    char path[200];
    snprintf(path, sizeof path, "/v1/plans/%.100s", client_words(row, "plan_id"));
    char *text = client_ask_if(c, path, &rc);
    json_t *plan = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return plan;
}

void client_add_plan_question(struct topt_text *path, const json_t *plan)
{
    const json_t *model = json_object_get(plan, "model");
    client_add_query(path, "hw", client_words(json_object_get(plan, "hw"), "name"));
    add_number(path, "batch", json_object_get(model, "batch"));
    add_number(path, "seq", json_object_get(model, "seq"));
    client_add_query(path, "framework", client_words(plan, "framework"));
    client_add_query(path, "optimizer",
                     client_words(json_object_get(plan, "settings"), "optimizer"));
}

/* What else to ask next time: of the same question the alternatives, where its answer is
 * the plan's number of GPUs. */
static char *next_time(struct client *c, const json_t *row)
{
    struct topt_text path = {0};
    char *hint = NULL;
    json_t *plan = client_kept_plan(c, row);
    if (!plan)
        return NULL;
    const json_t *mesh = json_object_get(plan, "mesh");
    int64_t gpus = json_integer_value(json_object_get(mesh, "nodes")) *
                   json_integer_value(json_object_get(mesh, "gpus_per_node"));
    topt_text_add(&path, "/v1/plan");
    client_add_query(&path, "model_id", client_words(row, "model_id"));
    client_add_plan_question(&path, plan);
    json_t *answer =
        client_ask_json(c, "POST", path.s, "", 0, "application/octet-stream");
    if (json_integer_value(json_object_get(answer, "gpus")) == gpus)
        hint = hint_line(answer, "--topt-min-efficiency=");
    json_decref(answer);
    json_decref(plan);
    topt_text_fini(&path);
    return hint;
}

int client_report(struct client *c)
{
    struct topt_error err = {0};
    int64_t job;
    if (topt_parse_int(c->arg, 1, INT64_MAX, &job, &err))
        return client_complain(c, &err);
    json_t *row = find_report(c, job);
    if (!row)
        return -1;
    int64_t busy = ask_accounting(job);
    if (c->args.json) {
        if (busy >= 0)
            json_object_set_new(row, "gpus_busy_percent", json_integer(busy));
        client_print_json(row);
        json_decref(row);
        return 0;
    }
    char *line = line_of(row), *hint = next_time(c, row);
    printf("%s", line ? line : "");
    if (busy >= 0)
        printf("; GPUs busy %lld %%", (long long)busy);
    printf("\nplan %s\n", client_words(row, "plan_id"));
    if (hint)
        printf("next time: %s\n", hint);
    free(line);
    free(hint);
    json_decref(row);
    return 0;
}
