/* plan_source.c - where `topt run` gets its plan: a file, or a plan's id.  A job that topt
 * sized carries its plan in its environment, so that it starts where no toptd can be
 * reached; of another id toptd is asked.
 *
 * Only rank 0 touches either; the others get the document's bytes from it, so a job
 * needs neither a shared disk nor a server that stands a thousand questions at once. */
#include "plan_source.h"
#include "client.h"
#include "topt_carry.h"
#include "topt_digest.h"
#include "topt_json.h"
#include "topt_runtime.h"
#include "topt_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLAN_BYTES = 64 << 20 };

static int looks_like_id(const char *s)
{
    return *s == 'p' && topt_is_id(s);
}

int topt_client_path(char *buf, size_t size, struct topt_error *err)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    if (n < 0)
        return topt_fail(err, TOPT_ERR_IO, "find topt-client: %s", strerror(errno));
    buf[n] = '\0';
    char *slash = strrchr(buf, '/');
    size_t dir = slash ? (size_t)(slash - buf) + 1 : 0;
    if (dir + sizeof "topt-client" > size)
        return topt_fail(err, TOPT_ERR_LIMIT, "path of topt-client is too long");
    memcpy(buf + dir, "topt-client", sizeof "topt-client");
    return 0;
}

static int ask_server(const char *id, struct topt_text *out, struct topt_error *err)
{
    char path[4096];
    char *const args[] = {path,
                          (char *)"client",
                          (char *)"get-plan",
                          (char *)(uintptr_t)id,
                          (char *)"-o",
                          (char *)"-",
                          NULL};
    if (topt_client_path(path, sizeof path, err))
        return -1;
    int rc = topt_client_output(args, out, err);
    return rc && err->code == TOPT_ERR_NOTFOUND
               ? topt_fail(err, TOPT_ERR_NOTFOUND, "the server did not give plan '%s'",
                           id)
               : rc;
}

/* What the job carries, else what toptd knows.  A carried plan that is damaged is said,
 * and asked for. */
static int plan_of_id(const char *id, struct topt_text *out, struct topt_error *err)
{
    struct topt_error damage = {0};
    char *doc = NULL;
    size_t len = 0;
    int found = topt_carry_plan(id, &doc, &len, &damage);
    if (found < 0 && damage.code == TOPT_ERR_INFEASIBLE)
        return topt_fail(err, damage.code, "%s", damage.text);
    if (found < 0)
        fprintf(stderr, "topt run: warning: %s; asking toptd for %s\n", damage.text, id);
    if (found <= 0)
        return ask_server(id, out, err);
    topt_text_put(out, doc, len);
    free(doc);
    return out->oom ? topt_nomem(err, NULL) : 0;
}

static int read_plan(const char *arg, struct topt_text *out, struct topt_error *err)
{
    size_t len;
    if (access(arg, F_OK) && looks_like_id(arg))
        return plan_of_id(arg, out, err);
    char *s = topt_read_file(arg, MAX_PLAN_BYTES, &len, err);
    if (!s)
        return -1;
    topt_text_put(out, s, len);
    free(s);
    return out->oom ? topt_nomem(err, NULL) : 0;
}

static int parse(const char *text, size_t len, const char *what,
                 struct topt_plan_doc **ret, struct topt_error *err)
{
    json_t *doc = topt_json_parse(text, len, what, err);
    int rc = doc ? topt_plan_read(doc, ret, err) : -1;
    rc = rc || topt_session_check(&(*ret)->settings, err) ||
                 topt_plan_without_stages(*ret, "topt run", err)
             ? -1
             : 0;
    if (doc && rc)
        topt_wrap(err, "%s", what);
    json_decref(doc);
    return rc;
}

int topt_plan_everywhere(struct topt_comm *comm, const char *arg,
                         struct topt_plan_doc **ret, struct topt_error *err)
{
    struct topt_text text = {0};
    struct topt_plan_doc *plan = NULL;
    int failed = comm->rank == 0 && read_plan(arg, &text, err);
    int rc = topt_comm_share_text(comm, failed, &text.s, &text.len, err);
    if (!rc) {
        failed = parse(text.s, text.len, arg, &plan, err);
        rc = topt_comm_agree(comm, failed, err);
    }
    free(text.s);
    if (rc) {
        topt_plan_doc_destroy(plan);
        return -1;
    }
    *ret = plan;
    return 0;
}
