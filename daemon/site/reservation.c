/* reservation.c - see reservation.h. */
#include "reservation.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GROUPS_MOST = 256, ENTRY_MOST = 16384 };

const struct site_reservation *site_reservation_of(const struct site_slurm *s,
                                                   const struct site_job *job)
{
    for (size_t i = 0; s && *job->reservation && i < s->nreservations; i++)
        if (!strcmp(s->reservation[i].name, job->reservation))
            return &s->reservation[i];
    return NULL;
}

int site_is_in_group(const char *groups, const char *user)
{
    struct passwd entry, *who = NULL;
    struct group group, *found = NULL;
    char buf[ENTRY_MOST];
    gid_t of[GROUPS_MOST];
    int n = GROUPS_MOST;
    if (getpwnam_r(user, &entry, buf, sizeof buf, &who) || !who)
        return -1;
    if (getgrouplist(user, who->pw_gid, of, &n) < 0)
        n = GROUPS_MOST; /* the first of them */
    for (int i = 0; i < n; i++)
        if (!getgrgid_r(of[i], &group, buf, sizeof buf, &found) && found &&
            site_has_word(groups, found->gr_name))
            return 1;
    return 0;
}

/* Is the name one of a list?  "-name" lists who is not. */
static int may(const char *list, const char *name)
{
    char denied[SITE_NAME + 1];
    if (!*list || !*name)
        return 1;
    if (*list != '-')
        return site_has_word(list, name);
    snprintf(denied, sizeof denied, "-%s", name);
    return !site_has_word(list, denied);
}

static int64_t left_of(const struct site_reservation *r)
{
    int64_t now = (int64_t)time(NULL);
    return r->end_s - (r->start_s > now ? r->start_s : now);
}

int site_reservation_check(const struct site_reservation *r, const struct site_job *job,
                           const char *account, const char *partition,
                           struct topt_error *err)
{
    int64_t time = *job->time ? site_seconds(job->time) : 0;
    if (!may(r->users, job->user))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "reservation '%s' is not for user '%s' (Users=%.100s)", r->name,
                         job->user, r->users);
    if (!may(r->accounts, account))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "reservation '%s' is not for account '%s' (Accounts=%.100s)",
                         r->name, account, r->accounts);
    if (*r->groups && *job->user && !site_is_in_group(r->groups, job->user))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "reservation '%s' is not for user '%s' (Groups=%.100s)", r->name,
                         job->user, r->groups);
    if (*r->partition && strcmp(r->partition, partition))
        return topt_fail(err, TOPT_ERR_INFEASIBLE,
                         "reservation '%s' is of partition '%s'", r->name, r->partition);
    if (r->is_flexible || !r->end_s || time <= 0 || time <= left_of(r))
        return 0;
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "--time=%s is more than reservation '%s' has left (%lld minutes)",
                     job->time, r->name, (long long)left_of(r) / 60);
}
