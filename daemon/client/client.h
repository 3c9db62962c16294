/* client.h - one command of `topt client`: its options, and what its parts share.
 *
 * talk.c asks and waits; questions.c puts questions about a model; lists.c shows and
 * changes what the server keeps.  Thread safety: none needed; the client has one thread. */
#ifndef TOPT_CLIENT_H
#define TOPT_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_query.h"
#include "topt_text.h"
#include "topt_trust.h"

struct args {
    struct topt_query asked; /* what makes a question */
    int json;
    const char *url, *output, *svg, *daemon_uid, *group;
    int64_t timeout, job, steps, peak_memory;
    double step_seconds;
};

struct client {
    const char *sub; /* for messages */
    struct args args;
    const char *arg; /* the positional one, or NULL */
    char path[4096]; /* of the file that it names */
    int no_file;     /* it is none, and was taken for a model that the server has */
    struct topt_trust trust;
    char doing[120]; /* what the server is at, for who waits at a terminal */
    int64_t began_ms;
    int status; /* exit status where a function returned -1 and printed */
};

/* ---- talk.c: functions return -1 after they printed why, and c->status is set ---- */

int client_complain(struct client *c, const struct topt_error *err);

/* Milliseconds that the next request may ask the server to wait: what is left of --timeout, in
 * parts. */
int client_wait_ms(const struct client *c);

/* Ask, wait for the search where there is one, and want 2xx.  A new reference, or NULL. */
json_t *client_ask_json(struct client *c, const char *method, const char *path,
                        const char *body, size_t len, const char *type);
/* The same, whatever the body is; owned, with its length. */
char *client_ask_bytes(struct client *c, const char *path, size_t *ret_len);
/* Is there such a resource for us?  Then its bytes; NULL, and nothing was printed, where the server
 * refuses.  '*ret_rc' is -1 where there was no answer. */
char *client_ask_if(struct client *c, const char *path, int *ret_rc);

/* Ask for something to be done, of which nothing is told but that it was.  0, or -1. */
int client_do(struct client *c, const char *method, const char *path);

/* The bytes of the file that c->arg names (or of the config.json in that folder); its path goes to
 * c->path. */
char *client_read_input(struct client *c, size_t *ret_len);

int client_print_json(const json_t *doc);
/* A string of an object, "?" where it has none. */
const char *client_words(const json_t *o, const char *key);

/* ---- report.c ------------------------------------------------------------------------ */

/* The plan of an observation, where it is still kept and ours to see: a new reference, or NULL. */
json_t *client_kept_plan(struct client *c, const json_t *row);
/* Add the question that the plan answers, but for its model and number of GPUs. */
void client_add_plan_question(struct topt_text *path, const json_t *plan);

/* ---- commands: questions.c, then lists.c ------------------------------------------- */

typedef int client_command(struct client *c);
client_command client_observe, client_report, client_savings;
client_command client_plan, client_curve, client_frontier;
client_command client_get_plan, client_plans, client_models, client_hardware,
    client_add_model, client_add_hw, client_put_hw, client_delete_hw, client_share,
    client_unshare, client_forget, client_tasks, client_task, client_cancel,
    client_observations, client_corrections, client_reset_correction, client_status;

#endif
