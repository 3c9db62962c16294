/* accounts.h - what Slurm's accounting allows a user's job: limits of its association, of
 * the accounts above and of its quality of service (QOS), read from what `sacctmgr -nP`
 * prints.  Thread safety: plain values; reentrant. */
#ifndef TOPTD_SITE_ACCOUNTS_H
#define TOPTD_SITE_ACCOUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"

enum { SITE_ACCOUNT = 64, SITE_TYPED = 4 };

/* Of a job, as far as topt sizes it; 0: no limit.  Those of one type of GPU bind jobs that
 * ask for the type. */
struct site_limits {
    int64_t gpus, nodes, time_s;
    int ntyped;
    struct {
        char type[SITE_ACCOUNT];
        int64_t gpus;
    } typed[SITE_TYPED];
};

struct site_qos {
    char name[SITE_ACCOUNT];
    struct site_limits
        most; /* of a job, a user or all of them together: the least of these */
};

struct site_assoc {
    char account[SITE_ACCOUNT], user[SITE_ACCOUNT], partition[SITE_ACCOUNT],
        parent[SITE_ACCOUNT], default_qos[SITE_ACCOUNT];
    struct site_limits most;
};

struct site_user {
    char name[SITE_ACCOUNT], account[SITE_ACCOUNT]; /* the default one */
};

struct site_accounts {
    struct site_qos *qos;
    struct site_assoc *assoc;
    struct site_user *user;
    size_t nqos, nassocs, nusers;
};

/* The fields that are asked for, as sacctmgr's format=. */
#define SITE_QOS_FORMAT "format=Name,MaxTRES,MaxTRESPU,GrpTRES,MaxWall"
#define SITE_ASSOC_FORMAT                                                                \
    "format=Account,User,Partition,ParentName,DefaultQOS,MaxTRES,GrpTRES,MaxWall"
#define SITE_USER_FORMAT "format=User,DefaultAccount"

/* Lines that can't be understood are passed over.  -1 without memory. */
int site_accounts_read(const char *qos, const char *assocs, const char *users,
                       struct site_accounts *ret, struct topt_error *err) TOPT_MUST_CHECK;
int site_accounts_copy(const struct site_accounts *a, struct site_accounts *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;
void site_accounts_fini(struct site_accounts *a);
int site_accounts_are_same(const struct site_accounts *a, const struct site_accounts *b);

/* The account of a user's job: the one that it names, else the default one; "" where it
 * is not known. */
const char *site_account_of(const struct site_accounts *a, const char *user,
                            const char *named);

/* Its QOS: the one that it names, else the association's default, else "normal"; "" where
 * no accounting is known. */
const char *site_qos_of(const struct site_accounts *a, const char *user,
                        const char *account, const char *partition, const char *named);

/* The least limits of a job with GPUs of a type ("": it names none), and in words whose
 * each of them is, as "QOS 'short' (4 GPUs)"; "" where there is none. */
struct site_account_bound {
    struct site_limits most;
    char of_gpus[120], of_nodes[120], of_time[120];
};
void site_accounts_bound(const struct site_accounts *a, const char *user,
                         const char *account, const char *qos, const char *partition,
                         const char *partition_qos, const char *type,
                         struct site_account_bound *ret);

#endif
