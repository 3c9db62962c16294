/* waiting.c - Slurm's queue as it is planned: who waits for what, and what would help.  What others wait
 * for is shown to all without whose it is; operators see names. */
#include "planned.h"
#include "server.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 200 };

/* What anybody may see of a job. */
static const char *const open_keys[] = {"gpus",        "gpus_planned",
                                        "starts_in_s", "as_asked_in_s",
                                        "ends_in_s",   "as_asked_ends_in_s"};

static json_t *row_json(const struct request *q, const json_t *job)
{
    int is_own = topt_json_whole_at(job, "uid") == (int64_t)q->caller.uid;
    if (is_own || q->caller.role >= ROLE_OPERATOR) {
        json_t *all = json_copy((json_t *)(uintptr_t)job);
        json_object_set_new(all, "own", json_boolean(is_own));
        return all;
    }
    json_t *o = json_pack("{s:b}", "own", 0);
    for (size_t i = 0; o && i < sizeof open_keys / sizeof *open_keys; i++)
        json_object_set(o, open_keys[i], json_object_get(job, open_keys[i]));
    return o;
}

static json_t *document(const struct request *q, const json_t *doc, int64_t age_ms)
{
    const json_t *jobs = json_object_get(doc, "jobs"), *job;
    json_t *rows = json_array();
    size_t i;
    json_array_foreach(jobs, i, job) if (i < ROWS_MOST)
        json_array_append_new(rows, row_json(q, job));
    json_t *ret =
        json_pack("{s:O, s:O, s:I, s:b, s:o}", "gpus", json_object_get(doc, "gpus"),
                  "idle", json_object_get(doc, "idle"), "age_ms", (json_int_t)age_ms,
                  "names", q->caller.role >= ROLE_OPERATOR, "jobs", rows);
    if (ret && json_array_size(jobs) > ROWS_MOST)
        json_object_set_new(ret, "left_out",
                            json_integer((json_int_t)json_array_size(jobs) - ROWS_MOST));
    return ret;
}

/* As a search that runs. */
static struct reply being_made(void)
{
    struct reply r = reply_json(202, json_pack("{s:s}", "state", "running"));
    r.retry_after = 1;
    return r;
}

struct reply api_queue(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    char *text = NULL;
    int64_t age_ms = 0;
    if (no_parameters(q, &r) < 0)
        return r;
    if (!q->server->planned)
        return reply_error(
            q, 404, "not_found", NULL, NULL,
            "this server plans no queue: it finds no scontrol (--scontrol)");
    int rc = planned_look(q->server->planned, &text, &age_ms, &err);
    if (rc <= 0)
        return rc ? reply_error(q, 503, "slurm", NULL, NULL, err.text) : being_made();
    json_t *doc = topt_json_parse(text, strlen(text), "the queue", &err);
    free(text);
    if (!doc)
        return reply_error(q, 503, "slurm", NULL, NULL, err.text);
    r = reply_json(200, document(q, doc, age_ms));
    json_decref(doc);
    return r;
}
