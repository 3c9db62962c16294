/* caller.h - who asks, and what that user may do.
 *
 *     how it is known        by                              at most
 *     ---------------        -----------------------------   --------
 *     a Unix socket          the peer's uid                  admin
 *     TCP                    a credential of MUNGE           admin
 *     the proxy's socket     its login header, where the     operator
 *                            peer is the proxy's uid
 *     TCP without either     nobody                          nobody
 *
 * An admin is root, the daemon's own user, and who is listed or is in a group that is listed; an
 * operator likewise; everybody else who is known is a user.
 * Thread safety: plain values; a 'struct roles' may be used by any thread. */
#ifndef TOPTD_CALLER_H
#define TOPTD_CALLER_H

#include <sys/types.h>

#include "topt_error.h"

/* In order: each may do what those before it may. */
enum role { ROLE_NOBODY, ROLE_USER, ROLE_OPERATOR, ROLE_ADMIN };
enum how { HOW_UNKNOWN, HOW_SOCKET, HOW_MUNGE, HOW_PROXY };

struct caller {
    uid_t uid; /* (uid_t)-1 of nobody */
    gid_t gid;
    enum role role;
    enum how how;
};

const char *role_name(enum role role);
const char *how_name(enum how how);

struct roles;

/* 'admins' and 'operators' are lists of users and @groups, names or numbers, or NULL.
 * They are looked up now; USAGE where one is unknown. */
int roles_create(const char *admins, const char *operators, struct roles **ret,
                 struct topt_error *err) TOPT_MUST_CHECK;
void roles_destroy(struct roles *r);
/* Other lists from now on; on failure those before stay. */
int roles_read(struct roles *r, const char *admins, const char *operators,
               struct topt_error *err) TOPT_MUST_CHECK;

/* A caller who is known, with the role of that uid.  Looks up its groups where it was not
 * asked about them for a minute: the user database may be far away, so no thread that
 * serves many connections calls this. */
struct caller roles_caller(struct roles *r, uid_t uid, gid_t gid, enum how how);

/* Is that caller in the group?  As above. */
int roles_in_group(struct roles *r, const struct caller *c, gid_t group);

enum { ROLES_GROUPS = 256 /* that are looked at of a user */ };
/* The groups of a caller, its gid first.  As above. */
int roles_groups(struct roles *r, const struct caller *c, gid_t ret[ROLES_GROUPS]);

/* The uid of a login, or the gid of a group: a name or a number.  NOTFOUND. */
int login_uid(const char *name, uid_t *ret_uid, gid_t *ret_gid,
              struct topt_error *err) TOPT_MUST_CHECK;
/* The name of a uid; -1 and "" where it has none, or it does not fit. */
int login_name(uid_t uid, char *ret, size_t size);
int group_gid(const char *name, gid_t *ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
