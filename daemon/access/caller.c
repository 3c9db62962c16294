/* caller.c - roles by uid and group.
 *
 * Groups of a uid are remembered for a minute in a table with one place for each hash: who shares a
 * place is looked up again.  A look-up runs without the lock. */
#include "caller.h"
#include "topt_clock.h"
#include "topt_text.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 1024, KEEP_S = 60, MOST_LISTED = 64, RECORD_BYTES = 64 << 10 };

struct list {
    uid_t user[MOST_LISTED];
    gid_t group[MOST_LISTED];
    int nusers, ngroups;
};

struct membership {
    uid_t uid;
    int64_t until_s; /* 0: an empty place */
    int n;
    gid_t *group; /* owned */
};

struct roles {
    uid_t own;
    pthread_mutex_t lock; /* leaf; guards what follows */
    struct list admins, operators;
    struct membership place[PLACES];
};

const char *role_name(enum role role)
{
    static const char *const names[] = {"nobody", "user", "operator", "admin"};
    return names[role];
}

const char *how_name(enum how how)
{
    static const char *const names[] = {"unknown", "socket", "MUNGE", "proxy"};
    return names[how];
}

/* ---- the user database ------------------------------------------------------------------- */

static int is_number(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0';
}

/* NOTFOUND where there is no such number, or it stands for "none". */
static int64_t number_of(const char *name, const char *what, struct topt_error *err)
{
    int64_t number;
    if (topt_parse_int(name, 0, UINT32_MAX - 1, &number, err) == 0)
        return number;
    return topt_fail(err, TOPT_ERR_NOTFOUND, "'%.40s' is no %s", name, what);
}

/* 1 found, 0 not. */
static int find_user(const char *name, uid_t uid, uid_t *ret_uid, gid_t *ret_gid,
                     char *ret_name, size_t size)
{
    struct passwd user, *found = NULL;
    char *buf = malloc(RECORD_BYTES);
    int rc = !buf   ? ENOMEM
             : name ? getpwnam_r(name, &user, buf, RECORD_BYTES, &found)
                    : getpwuid_r(uid, &user, buf, RECORD_BYTES, &found);
    if (rc == 0 && found) {
        *ret_uid = user.pw_uid;
        *ret_gid = user.pw_gid;
        if (ret_name && strlen(user.pw_name) < size)
            strcpy(ret_name, user.pw_name);
    }
    free(buf);
    return rc == 0 && found;
}

int login_name(uid_t uid, char *ret, size_t size)
{
    uid_t same;
    gid_t gid;
    *ret = '\0';
    return find_user(NULL, uid, &same, &gid, ret, size) && *ret ? 0 : -1;
}

int login_uid(const char *name, uid_t *ret_uid, gid_t *ret_gid, struct topt_error *err)
{
    if (is_number(name)) {
        int64_t number = number_of(name, "uid", err);
        if (number < 0)
            return -1;
        *ret_gid = (gid_t)-1;
        find_user(NULL, (uid_t)number, ret_uid, ret_gid, NULL, 0);
        *ret_uid = (uid_t)number;
        return 0;
    }
    return *name && find_user(name, 0, ret_uid, ret_gid, NULL, 0)
               ? 0
               : topt_fail(err, TOPT_ERR_NOTFOUND, "this machine has no user '%.40s'",
                           name);
}

int group_gid(const char *name, gid_t *ret, struct topt_error *err)
{
    struct group group, *found = NULL;
    if (is_number(name)) {
        int64_t number = number_of(name, "gid", err);
        *ret = (gid_t)number;
        return number < 0 ? -1 : 0;
    }
    char *buf = malloc(RECORD_BYTES);
    int rc = buf ? getgrnam_r(name, &group, buf, RECORD_BYTES, &found) : ENOMEM;
    if (rc == 0 && found)
        *ret = group.gr_gid;
    free(buf);
    if (rc ==
        ERANGE) /* more members than fit: it is there, but its number was not told */
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "the group '%.40s' is too large to look up: "
                         "give its number",
                         name);
    return rc == 0 && found ? 0
                            : topt_fail(err, TOPT_ERR_NOTFOUND,
                                        "this machine has no group '%.40s'", name);
}

/* ---- lists ------------------------------------------------------------------------------- */

static int read_list(const char *text, const char *setting, struct list *ret,
                     struct topt_error *err)
{
    const char *at = NULL;
    char item[80];
    gid_t gid;
    int rc = 1;
    while (text && *text &&
           (rc = topt_list_next(text, &at, item, sizeof item, err)) > 0) {
        if (ret->nusers == MOST_LISTED || ret->ngroups == MOST_LISTED)
            rc = topt_fail(err, TOPT_ERR_USAGE, "more than %d are listed: use a group",
                           MOST_LISTED);
        else if (*item == '@')
            rc = group_gid(item + 1, &ret->group[ret->ngroups++], err);
        else
            rc = login_uid(item, &ret->user[ret->nusers++], &gid, err);
        if (rc < 0)
            break;
    }
    if (rc < 0 && err)
        err->code = TOPT_ERR_USAGE;
    return rc < 0 ? topt_wrap(err, "--%s", setting) : 0;
}

static int lists_user(const struct list *l, uid_t uid)
{
    for (int i = 0; i < l->nusers; i++)
        if (l->user[i] == uid)
            return 1;
    return 0;
}

static int lists_group(const struct list *l, const gid_t *group, int n)
{
    for (int i = 0; i < l->ngroups; i++)
        for (int k = 0; k < n; k++)
            if (l->group[i] == group[k])
                return 1;
    return 0;
}

int roles_read(struct roles *r, const char *admins, const char *operators,
               struct topt_error *err)
{
    struct list a = {0}, o = {0};
    if (read_list(admins, "admins", &a, err) < 0 ||
        read_list(operators, "operators", &o, err) < 0)
        return -1;
    pthread_mutex_lock(&r->lock);
    r->admins = a;
    r->operators = o;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

int roles_create(const char *admins, const char *operators, struct roles **ret,
                 struct topt_error *err)
{
    struct roles *r = calloc(1, sizeof *r);
    if (!r)
        return topt_nomem(err, NULL);
    r->own = geteuid();
    pthread_mutex_init(&r->lock, NULL);
    if (roles_read(r, admins, operators, err) < 0) {
        roles_destroy(r);
        return -1;
    }
    *ret = r;
    return 0;
}

void roles_destroy(struct roles *r)
{
    if (!r)
        return;
    for (int i = 0; i < PLACES; i++)
        free(r->place[i].group);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- groups of a uid --------------------------------------------------------------------- */

static int64_t clock_s(void)
{
    return topt_clock_ms() / 1000 + 1; /* never 0 */
}

/* What the user database says; none where it does not know the uid. */
static int look_up(uid_t uid, gid_t ret[ROLES_GROUPS])
{
    char name[256] = "";
    gid_t gid;
    int n = ROLES_GROUPS;
    if (!find_user(NULL, uid, &uid, &gid, name, sizeof name) || !*name)
        return 0;
    if (getgrouplist(name, gid, ret, &n) < 0) /* more: the first of them */
        n = ROLES_GROUPS;
    return n;
}

static void remember(struct roles *r, uid_t uid, const gid_t *group, int n)
{
    struct membership *m = &r->place[uid % PLACES];
    gid_t *copy = malloc(((size_t)n + 1) * sizeof *copy);
    if (!copy)
        return;
    memcpy(copy, group, (size_t)n * sizeof *copy);
    pthread_mutex_lock(&r->lock);
    free(m->group);
    *m = (struct membership){uid, clock_s() + KEEP_S, n, copy};
    pthread_mutex_unlock(&r->lock);
}

static int groups_of(struct roles *r, uid_t uid, gid_t ret[ROLES_GROUPS])
{
    const struct membership *m = &r->place[uid % PLACES];
    int n = -1;
    pthread_mutex_lock(&r->lock);
    if (m->uid == uid && m->until_s > clock_s()) {
        n = m->n;
        memcpy(ret, m->group, (size_t)n * sizeof *ret);
    }
    pthread_mutex_unlock(&r->lock);
    if (n >= 0)
        return n;
    n = look_up(uid, ret);
    remember(r, uid, ret, n);
    return n;
}

int roles_groups(struct roles *r, const struct caller *c, gid_t ret[ROLES_GROUPS])
{
    gid_t known[ROLES_GROUPS];
    int n = 0;
    if (c->role == ROLE_NOBODY)
        return 0;
    int nknown = groups_of(r, c->uid, known);
    if (c->gid != (gid_t)-1)
        ret[n++] = c->gid;
    for (int i = 0; i < nknown && n < ROLES_GROUPS; i++)
        if (known[i] != c->gid)
            ret[n++] = known[i];
    return n;
}

int roles_in_group(struct roles *r, const struct caller *c, gid_t group)
{
    gid_t all[ROLES_GROUPS];
    int n = roles_groups(r, c, all);
    for (int i = 0; i < n; i++)
        if (all[i] == group)
            return 1;
    return 0;
}

/* ---- roles ------------------------------------------------------------------------------- */

/* Of the lists alone; groups are looked up before, and only where a list names one.  Lock held. */
static enum role role_of(const struct roles *r, uid_t uid, const gid_t *group, int n)
{
    if (uid == 0 || uid == r->own || lists_user(&r->admins, uid) ||
        lists_group(&r->admins, group, n))
        return ROLE_ADMIN;
    if (lists_user(&r->operators, uid) || lists_group(&r->operators, group, n))
        return ROLE_OPERATOR;
    return ROLE_USER;
}

struct caller roles_caller(struct roles *r, uid_t uid, gid_t gid, enum how how)
{
    struct caller c = {uid, gid, ROLE_USER, how};
    gid_t group[ROLES_GROUPS];
    pthread_mutex_lock(&r->lock);
    int by_group = r->admins.ngroups || r->operators.ngroups;
    pthread_mutex_unlock(&r->lock);
    int n = by_group ? roles_groups(r, &c, group) : 0;
    pthread_mutex_lock(&r->lock);
    c.role = role_of(r, uid, group, n);
    pthread_mutex_unlock(&r->lock);
    if (how == HOW_PROXY && c.role > ROLE_OPERATOR)
        c.role = ROLE_OPERATOR; /* a web server's word makes no admin */
    return c;
}
