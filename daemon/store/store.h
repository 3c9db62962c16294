/* store.h - what toptd remembers: models, profiles, plans given out, answers,
 * observations.
 *
 * One SQLite file (WAL) in the state directory, which is locked: one daemon a directory.
 *
 * Thread safety: any thread.  Readers have connections of their own and never wait for a
 * writer, ours or another program's.  One writer at a time; a write that finds the file
 * locked for STORE_WAIT_MS gives up with TOPT_ERR_BUSY.  No callback is called and no
 * document parsed while a connection is held.
 *
 * A write that finds no room, or a file that can't be written any more, fails with
 * TOPT_ERR_ROOM (HTTP 507).
 *
 * What is kept how long: models and plans while somebody owns them or a group may read
 * them, plans until some days after their last use, models also while a plan or an answer
 * is of them; answers within a limit of bytes, the least recently used
 * going first; profiles and observations until they are deleted. */
#ifndef TOPTD_STORE_H
#define TOPTD_STORE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

enum {
    STORE_WAIT_MS = 2000, /* longest wait for another writer */
    STORE_OWN_MS =
        500 /* the same of store_own, which is done for answers that are there */
};

struct store;

/* ---- open.c: opening, checking, limits ----------------------------------------------------- */

/* Creates the directory and the file where they are not there, and brings the schema up
 * to date.  Fails, and leaves the file as it is, where another daemon has the directory,
 * or the file is newer than us, damaged, not ours, or can't be written.  Of a file over
 * 256 MiB the large tables (plans, answers) are not checked. */
int store_open(const char *dir, struct store **ret,
               struct topt_error *err) TOPT_MUST_CHECK;
void store_close(struct store *s);

/* Most bytes of answers (1 GiB), and days that a plan is kept after its
 * last use (90). */
void store_limits(struct store *s, int64_t cache_bytes, int64_t keep_plans_days);

/* Most models and plans of one user (10000), and their bytes (256 MiB). */
void store_quota(struct store *s, int64_t user_documents, int64_t user_bytes);
/* Grows when documents of a user were given up to make room for others of that user's. */
unsigned long long store_given_up(const struct store *s);

/* Does the store answer?  For /readyz. */
int store_check(struct store *s, struct topt_error *err) TOPT_MUST_CHECK;

/* A whole copy of the store in 'dir' as 'file', checked, under its name only when it is
 * good.  Works beside a daemon that runs, and needs no struct store. */
int store_backup(const char *dir, const char *file,
                 struct topt_error *err) TOPT_MUST_CHECK;

/* Has the store in 'dir' a profile in force of that name or id?  1, 0 (also where there is no
 * store yet), -1.  Works beside a daemon that runs. */
int store_names_hw(const char *dir, const char *key,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* keep.c: housekeeping, in small transactions, a little at each call; about once a
 * second.  'now' is Unix seconds.  Waits for nobody. */
void store_keep(struct store *s, int64_t now);

/* ---- documents.c: models ------------------------------------------------------------------- */

/* A document under its id.  All strings borrowed. */
struct store_doc {
    const char *id, *name, *doc;
};

/* Who asks: NULL is the daemon itself, or an admin, who may read all. */
struct store_who {
    int64_t uid;
    const uint32_t *gid; /* the groups that this user is in */
    int ngids;
};

/* Where a list goes on.  Set 'limit' and, after the first page, 'before': the last id seen
 * ("" or NULL: the start).  'more' says whether there is more. */
struct store_page {
    int limit;
    const char *before;
    int more;
};

/* How room is made where a user would exceed the quota. */
enum store_full {
    STORE_REFUSE, /* nobody: LIMIT */
    STORE_EVICT /* what the user used least recently; LIMIT where one document is too much */
};

/* The model, owned by 'uid' (under the owner's name).  1 it is from now on, 0 it was already, -1;
 * whether others own it does not show. */
int store_put_model(struct store *s, const struct store_doc *m, int64_t uid,
                    enum store_full full, struct topt_error *err) TOPT_MUST_CHECK;

/* Owned copies of what is stored and may be read; NOTFOUND.  A model is found by id, or by
 * the name that just one model has among those 'who' owns, or else among those shared
 * with that user.  'ret_id', 'ret_name' may be NULL. */
int store_get_model(struct store *s, const char *key, const struct store_who *who,
                    char **ret_id, char **ret_name, char **ret_doc,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Newest first: objects with "id", "name", "created"...  New reference. */
json_t *store_list_models(struct store *s, const struct store_who *who,
                          struct store_page *page,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* ---- owners.c: whose a model or a plan is --------------------------------------------------- */

/* 'id' is a model's or a plan's that is there.  Costs a look-up where 'uid' owns it
 * already.  'name' of a model, "" of a plan.  Waits for at most STORE_OWN_MS. */
int store_own(struct store *s, const char *id, int64_t uid, const char *name,
              struct topt_error *err) TOPT_MUST_CHECK;
/* 'uid' owns it no more, and its sharing by that owner ends.  Others keep theirs; what
 * nobody owns is deleted.  NOTFOUND where 'uid' does not own it. */
int store_disown(struct store *s, const char *id, int64_t uid,
                 struct topt_error *err) TOPT_MUST_CHECK;
/* Nobody owns it and no group reads it: for admins.  NOTFOUND. */
int store_disown_all(struct store *s, const char *id,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The group may read what 'uid' owns; NOTFOUND where 'uid' does not own it. */
int store_share(struct store *s, const char *id, int64_t uid, uint32_t gid,
                struct topt_error *err) TOPT_MUST_CHECK;
int store_unshare(struct store *s, const char *id, int64_t uid, uint32_t gid,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* 1 yes, 0 no (or it is not there), -1. */
int store_can_read(struct store *s, const char *id, const struct store_who *who,
                   struct topt_error *err) TOPT_MUST_CHECK;
int store_owns(struct store *s, const char *id, int64_t uid,
               struct topt_error *err) TOPT_MUST_CHECK;

/* {"owners":[{"uid","name","created"}...],"groups":[{"gid","uid"}...]}; gid -1 is
 * everybody (documents that are older than owners).  New reference. */
json_t *store_access(struct store *s, const char *id,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* ---- hardware.c: profiles by name and version ----------------------------------------------- */

enum store_hw_put {
    STORE_HW_ADD, /* USAGE where another profile has the name */
    /* It becomes the name's next version; answers of the version before are deleted. */
    STORE_HW_REPLACE
};

/* 1 stored, 0 just this is in force already, -1.  A name that is written like an id is
 * refused (INVAL).  'ret_version' may be NULL. */
int store_put_hw(struct store *s, const struct store_doc *h, int64_t uid,
                 enum store_hw_put how, int *ret_version,
                 struct topt_error *err) TOPT_MUST_CHECK;
/* Retire the profile of a name, or of an id that is in force; answers that used it are
 * deleted.  NOTFOUND. */
int store_drop_hw(struct store *s, const char *key,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* A profile in force by id or name ('key' "" means the only one there is). */
int store_get_hw(struct store *s, const char *key, char **ret_id, char **ret_name,
                 char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;
/* Any version, retired ones too, by id. */
int store_get_hw_version(struct store *s, const char *id, char **ret_name, char **ret_doc,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* Newest first, objects with "id", "name", "version", "created", "uid" and, of retired
 * ones (listed where 'all' is set), "retired". */
json_t *store_list_hw(struct store *s, int all, struct store_page *page,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* The name that the admin chose as default; NULL where none is chosen.  Owned.  Setting NULL
 * chooses none. */
int store_default_hw(struct store *s, char **ret_name,
                     struct topt_error *err) TOPT_MUST_CHECK;
int store_set_default_hw(struct store *s, const char *name,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* ---- plans.c ------------------------------------------------------------------------------- */

/* NOTFOUND where it is not there, or 'who' may not read it. */
int store_get_plan(struct store *s, const char *id, const struct store_who *who,
                   char **ret_doc, struct topt_error *err) TOPT_MUST_CHECK;
/* What a plan is of, and what it says of a GPU's memory and of a step; strings owned, 0: not known.
 */
struct store_plan_facts {
    char *model, *hw;
    int64_t time_ns, memory_bytes;
};
void store_plan_facts_fini(struct store_plan_facts *f);
/* NOTFOUND where 'uid' does not own it (-1: whoever does). */
int store_plan_of(struct store *s, const char *id, int64_t uid,
                  struct store_plan_facts *ret, struct topt_error *err) TOPT_MUST_CHECK;
/* Newest first, with the numbers of the plan. */
json_t *store_list_plans(struct store *s, const struct store_who *who,
                         struct store_page *page, struct topt_error *err) TOPT_MUST_CHECK;

/* ---- answers.c ----------------------------------------------------------------------------- */

struct store_key {
    const char *model, *hw, *question;
};

/* Strings owned by whoever holds it; {0} is empty. */
struct store_answer {
    int feasible;
    char *plan_id; /* NULL where the answer has no plan */
    char *plan;    /* its text */
    char *doc;     /* the answer less its plan */
    int64_t search_ns;
    int is_partial; /* time was up: its plan is kept, and the answer is not for later */
};
void store_answer_fini(struct store_answer *a);

/* 1 found, 0 not, -1.  A row that can't be read is deleted, and not found. */
int store_get_answer(struct store *s, const struct store_key *key,
                     struct store_answer *ret, struct topt_error *err) TOPT_MUST_CHECK;

enum store_kept {
    STORE_NOTHING, /* it could not be written */
    /* The plan, where there is one; the answer is not kept, or was there already. */
    STORE_PLAN,
    STORE_ALL
};

/* The model, the plan and the answer in one transaction: all or nothing.  The plan becomes
 * 'uid's (-1: nobody's yet), who may read its model by that.  'ret' says what is on disk.
 * Where nothing is, 'err' says why, and the answer is as good as before: give it, marked
 * so.  -1 only where the answer itself can't be right (its plan's id is another plan's).
 * An answer of a profile that was replaced meanwhile is not kept, its plan is. */
int store_publish(struct store *s, const struct store_key *key,
                  const struct store_doc *model, const struct store_answer *a,
                  int64_t uid, enum store_kept *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* Forget an answer: whoever reads it finds that it can't be right. */
int store_drop_answer(struct store *s, const struct store_key *key,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* ---- observations.c ------------------------------------------------------------------------ */

enum { STORE_OBSERVATIONS = 200 /* kept of a user for a model and a profile */ };

/* Strings borrowed. */
struct store_observation {
    const char *plan, *model, *hw, *cluster;
    int64_t job, uid, gpus, step_ns, peak_bytes, steps;
    int64_t said_time_ns, said_memory_bytes; /* of the plan; 0: not known */
    int confirmed;
};

/* A job that reports a plan again replaces what it said.  Of more than STORE_OBSERVATIONS
 * the user's oldest go. */
int store_put_observation(struct store *s, const struct store_observation *o,
                          int64_t *ret_id, struct topt_error *err) TOPT_MUST_CHECK;
int store_confirm_observation(struct store *s, int64_t id,
                              struct topt_error *err) TOPT_MUST_CHECK;
/* NOTFOUND. */
int store_drop_observation(struct store *s, int64_t id,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* Of a model and a profile (NULL: of any), of one user (-1: of all), newest first:
 * objects with all the fields.  'before' is the decimal id of the last row seen. */
json_t *store_list_observations(struct store *s, const char *model, const char *hw,
                                int64_t uid, struct store_page *page,
                                struct topt_error *err) TOPT_MUST_CHECK;

/* One job's figures beside its plan's; 0: not known. */
struct store_measured {
    int64_t uid, step_ns, peak_bytes, said_time_ns, said_memory_bytes;
    int confirmed;
};
enum { STORE_MEASURED_EACH = 32 /* jobs of a user that are looked at, the newest */ };
/* Of a model and a profile: the jobs that Slurm confirmed and those of 'uid', each once
 * with its last report, less those from before a reset; at most STORE_MEASURED_EACH of a
 * user and 'most' in all.  How many, or -1. */
int store_measured(struct store *s, const char *model, const char *hw, int64_t uid,
                   struct store_measured *ret, int most,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Models and profiles of which 'uid' (-1: anybody) has reported, newest first: objects
 * with "model" and "hw".  'before' is not taken: at most page->limit. */
json_t *store_list_measured(struct store *s, int64_t uid, struct store_page *page,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* What was reported until now corrects nothing any more.  NOTFOUND where nothing was. */
int store_reset_measured(struct store *s, const char *model, const char *hw,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
