/* ask.h - what the commands about plans share: options, the loader of what is asked about, and
 * writing answers.  Private to cli/; for a program's main thread. */
#ifndef TOPT_CLI_ASK_H
#define TOPT_CLI_ASK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_query.h"
#include "topt_options.h"
#include "topt_plan.h"
#include "topt_progress.h"

/* Counted work that a search may take where nothing is said: about a minute of one core.  (With
 * one thread of a 2026 server's core, `topt plan --framework topt --gpus 64 --hw h100-80-dgx
 * --seq 4096` takes 27 s of processor for Mixtral 8x7B at a batch of 256, which stops by it, and
 * 52 s for Llama 4 Scout at 64; `topt frontier` of the same 34 s for Mixtral, 54 s for Llama 3 70B
 * at 64, 183 s for DeepSeek-V3 at 1,024, whose tables take 1 GiB.) */
#define TOPT_ASK_WORK ((int64_t)200 * 1000 * 1000 * 1000)

enum { TOPT_ASK_HARDWARE = 16 }; /* profiles of one question */

struct topt_args {
    struct topt_query asked;
    const char *hw, *batch; /* a file, too, or several; several, or "auto" */
    const char *price;      /* one for each of hw */
    const char *output, *plan, *svg, *loss, *as, *part, *lines, *limit, *systems;
    const char *as_is; /* a run's script; "": the model's file is one; NULL: none */
    int64_t threads, count, seed, work, entries, proposals;
    double seconds, capacity;
    int json, quiet;
    struct topt_explain_options explain;
};

struct topt_question {
    struct topt_args a;
    struct topt_model *model, *apart; /* of the request */
    struct topt_hw *hw;
    struct topt_request r;
    const char *path; /* of the model */
    /* --hw A,B,...; the profile that is loaded is the first until topt_ask_hw() */
    char hw_name[TOPT_ASK_HARDWARE][256];
    double hw_price[TOPT_ASK_HARDWARE];
    int nhw;
    struct topt_request said;              /* before the profile decided the rest */
    int64_t batch[TOPT_FIELD_COUNTS_MOST]; /* --batch N,N... */
    int nbatch, batch_auto;
    /* --as-is: what the run says, with all that it has chosen, and the request of it. */
    struct topt_query run_asked;
    struct topt_request run;
    json_t *run_notes;       /* owned */
    struct topt_watch watch; /* while the search runs */
};

/* Options come in groups; a command's table has those that it heeds. */
#define ASK_AT(field) offsetof(struct topt_args, field)
/* A row of the table of fields as an option. */
#define ASK_FIELD(name)  TOPT_OPT_FIELD, ASK_AT(asked)
#define ASK_WORD(name)   ASK_FIELD(name)
#define ASK_NAME(name)   TOPT_OPT_STRING, ASK_AT(name)
#define ASK_LIST(name)   ASK_FIELD(name)
#define ASK_LABEL(name)  ASK_FIELD(name)
#define ASK_BATCH(name)  TOPT_OPT_STRING, ASK_AT(name)
#define ASK_COUNTS(name) ASK_FIELD(name)
#define ASK_INT(name)    ASK_FIELD(name)
#define ASK_BYTES(name)  ASK_FIELD(name)
#define ASK_MEMORY(name) ASK_FIELD(name)
#define ASK_AMOUNT(name) ASK_FIELD(name)
#define ASK_REAL(name)   ASK_FIELD(name)
#define ASK_PRICE(name)  TOPT_OPT_STRING, ASK_AT(name)
#define ASK_SHARE(name)  ASK_FIELD(name)
#define ASK_BOOL(name)   ASK_FIELD(name)
#define ASK_ROW(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ARG, OTHER,      \
                VALUES, HELP)                                                            \
    TOPT_FIELD_OF_TOPT_##DOORS(                                                          \
        {OPTION, ASK_##KIND(name), ARG, TOPT_FIELD_HELP(HELP, OTHER)}, )

/* Groups of them, each with the comma after its last: TOPT_FIELDS_JOB(ASK_ROW), ... of
 * topt_fields.h, and what is said on a command line alone. */
#define ASK_JOB                                                                          \
    TOPT_FIELDS_JOB(ASK_ROW){                                                            \
        "loss", TOPT_OPT_STRING, ASK_AT(loss), "NAME",                                   \
        "loss of an ONNX graph: cross_entropy or mse (default: by its output)"},         \
        {"as", TOPT_OPT_STRING, ASK_AT(as), "FAMILY",                                    \
         "read a config of an unknown family as this family"},                           \
        {"part", TOPT_OPT_STRING, ASK_AT(part), "PART",                                  \
         "part of a multimodal config: text"},                                           \
        {"capacity", TOPT_OPT_POSITIVE, ASK_AT(capacity), "X",                           \
         "capacity factor of mixtures of experts (default: no token is dropped)"},

#define ASK_SEARCH                                                                       \
    TOPT_FIELDS_MEMORY(ASK_ROW)                                                          \
    TOPT_FIELDS_SEARCH(ASK_ROW){                                                         \
        "threads", TOPT_OPT_COUNT, ASK_AT(threads), "N",                                 \
        "threads of the search (default: all processors, at most 8)"},                   \
        {"seconds", TOPT_OPT_STRING, ASK_AT(limit), "S",                                 \
         "stop after S seconds with the best plan so far and its optimality gap; or "    \
         "none (default: as --max-work says)"},                                          \
        {"max-work", TOPT_OPT_COUNT, ASK_AT(work), "N",                                  \
         "stop after N units of work (pairs of points), counted alike on any machine "   \
         "(default: "                                                                    \
         "200000000000, "                                                                \
         "about a minute; none where the space is uniform)"},                            \
        {"max-entries", TOPT_OPT_COUNT, ASK_AT(entries), "N",                            \
         "fix operators by heuristic where tables would be larger (default: 8388608)"},

#define ASK_QUIET                                                                        \
    {                                                                                    \
        "quiet", TOPT_OPT_FLAG, ASK_AT(quiet), "", "no progress line on a terminal"      \
    }

#define ASK_JSON                                                                         \
    {                                                                                    \
        "json", TOPT_OPT_FLAG, ASK_AT(json), "", "JSON on standard output"               \
    }

#define ASK_OUTPUT                                                                       \
    {                                                                                    \
        "o", TOPT_OPT_STRING, ASK_AT(output), "FILE", "write the result to a file"       \
    }

/* Where --batch lists several: the model of the question is loaded with this one. */
int topt_ask_batch(struct topt_question *q, int64_t batch,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Load the model anew, with queries, keys and values apart, as plans with context ranks have it. */
int topt_ask_apart(struct topt_question *q, struct topt_error *err) TOPT_MUST_CHECK;

/* Where --hw lists several: the profile of the question is the one at 'i' from now on, with its price. */
int topt_ask_hw(struct topt_question *q, int i, struct topt_error *err) TOPT_MUST_CHECK;

/* Parse the options, load model and profile, and make the request.  0; 1 where help was shown;
 * -1 with the error.  'usage' may go on with lines of help; 'framework' is the one where
 * none is named, NULL: that of all questions about plans.  Always followed by
 * topt_ask_fini(). */
int topt_ask(struct topt_question *q, const struct topt_option *table, const char *usage,
             const char *framework, int argc, char **argv,
             struct topt_error *err) TOPT_MUST_CHECK;
void topt_ask_fini(struct topt_question *q);
/* From here on the search may take long: a terminal is told, until topt_watch_stop(). */
void topt_ask_watch(struct topt_question *q);
/* The same, and it has --seconds, or until an interrupt; topt_ask_end() puts into the document
 * (may be NULL) of a search that was stopped by then after how many ("stopped_after_s"). */
void topt_ask_begin(struct topt_question *q);
void topt_ask_end(struct topt_question *q, json_t *doc);

/* Parse the options of a command about the one plan whose path it is given.  0; 1 where help was
 * shown; -1 with the error. */
int topt_cli_plan(const struct topt_option *options, const char *usage, int argc,
                  char **argv, void *args, const char *path[1],
                  struct topt_error *err) TOPT_MUST_CHECK;
/* The plan, or the answer that holds one, in a file or, of an id, in the environment of the job that
 * was sized by it ($TOPT_PLAN).  New; NULL with the error, NOTFOUND where no job here carries it. */
json_t *topt_cli_read_plan(const char *plan, struct topt_error *err);
/* Print the error of a command; the exit status. */
int topt_cli_fail(const char *command, const struct topt_error *err);
int topt_cli_write_json(const json_t *doc, const char *path,
                        struct topt_error *err) TOPT_MUST_CHECK;
int topt_cli_width(void); /* columns of the terminal, or 100 */

#endif
