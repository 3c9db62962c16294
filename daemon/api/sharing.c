/* sharing.c - a model or a plan of one's own: for a group to read, and given up. */
#include "server.h"

#include <string.h>

/* The group of the path, in which the caller must be: names of others' lists are theirs.
 * -1 with '*ret' filled. */
static int find_group(const struct request *q, gid_t *ret_gid, struct reply *ret)
{
    struct topt_error err = {0};
    if (group_gid(q->group, ret_gid, &err) < 0) {
        *ret = reply_fail(q, "group", &err);
        return -1;
    }
    if (q->caller.role == ROLE_ADMIN ||
        roles_in_group(q->server->roles, &q->caller, *ret_gid))
        return 0;
    *ret = reply_error(q, 403, "forbidden", "group", NULL, "you are not in that group");
    return -1;
}

/* Is it of the kind that the path names? */
static int is_of_path(const struct request *q)
{
    return strncmp(q->path, "/v1/models/", 11) ? q->arg[0] == 'p' : q->arg[0] == 'm';
}

static struct reply no_document(const struct request *q)
{
    struct topt_error err;
    topt_fail(&err, TOPT_ERR_NOTFOUND, "you own no model or plan with the id '%.60s'",
              q->arg);
    return reply_fail(q, NULL, &err);
}

/* Whoever may read what changes now: answers that were kept are not given again. */
static struct reply changed(const struct request *q, int rc, const struct topt_error *err)
{
    if (rc < 0 && err->code == TOPT_ERR_NOTFOUND)
        return no_document(q);
    if (rc < 0)
        return reply_fail(q, NULL, err);
    atomic_fetch_add(&q->server->epoch, 1);
    return reply_fixed(204, NULL, "");
}

struct reply api_share(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    gid_t gid;
    if (no_parameters(q, &r) < 0 || find_group(q, &gid, &r) < 0)
        return r;
    if (!is_of_path(q))
        return no_document(q);
    int rc = store_share(q->server->store, q->arg, q->caller.uid, gid, &err);
    return changed(q, rc, &err);
}

struct reply api_unshare(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    gid_t gid;
    if (no_parameters(q, &r) < 0)
        return r;
    if (group_gid(q->group, &gid, &err) < 0)
        return reply_fail(q, "group", &err);
    if (!is_of_path(q))
        return no_document(q);
    int rc = store_unshare(q->server->store, q->arg, q->caller.uid, gid, &err);
    return changed(q, rc, &err);
}

/* Give up what is one's own; who is an admin and owns it not takes it from all. */
struct reply api_disown(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    struct store *s = q->server->store;
    if (no_parameters(q, &r) < 0)
        return r;
    if (!is_of_path(q))
        return no_document(q);
    int rc = store_disown(s, q->arg, q->caller.uid, &err);
    if (rc < 0 && err.code == TOPT_ERR_NOTFOUND && q->caller.role == ROLE_ADMIN)
        rc = store_disown_all(s, q->arg, &err);
    return changed(q, rc, &err);
}
