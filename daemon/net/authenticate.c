/* authenticate.c - who sent a request: the peer's uid, a credential of MUNGE, or the proxy's word.
 */
#include "authenticate.h"
#include "topt_credential.h"
#include "topt_log.h"

#include <stdio.h>
#include <string.h>

/* Over the whole request: a credential of another one is worth nothing. */
static int by_munge(struct request *q, const struct evidence *e, struct reply *ret)
{
    const struct config *c = q->server->config;
    const struct topt_asked asked = {q->method, q->target, q->body, q->body_len};
    struct topt_error err = {0};
    uid_t uid;
    gid_t gid;
    if (!e->authorization || !c->uses_munge)
        return 0;
    if (topt_credential_asker(c->munge_socket, e->authorization, &asked, &uid, &gid,
                              &err) < 0) {
        *ret = err.code == TOPT_ERR_INVAL
                   ? reply_error(q, 401, "unauthorized", "Authorization", NULL, err.text)
                   : reply_error(q, 503, "no_munge", NULL, NULL, err.text);
        if (err.code != TOPT_ERR_INVAL)
            topt_log(TOPT_LOG_ERR, "%s: %s", q->id, err.text);
        return -1;
    }
    q->caller = roles_caller(q->server->roles, uid, gid, HOW_MUNGE);
    return 0;
}

/* The site's proxy alone may use its socket; whom it logged in is a user. */
static int by_login(struct request *q, const struct evidence *e, struct reply *ret)
{
    struct topt_error err = {0};
    char text[120];
    uid_t uid;
    gid_t gid;
    if (e->uid != q->server->proxy_uid) {
        snprintf(text, sizeof text,
                 "this socket is the web proxy's alone, and you are uid %d", (int)e->uid);
        *ret = reply_error(q, 403, "forbidden", NULL, NULL, text);
        return -1;
    }
    if (!e->login || !*e->login)
        return 0;
    if (e->logins > 1) { /* one that the browser sent, and the proxy's */
        *ret =
            reply_error(q, 401, "unauthorized", q->server->config->proxy_header, NULL,
                        "the login is there more than once: the proxy must replace what "
                        "browsers send");
        return -1;
    }
    if (login_uid(e->login, &uid, &gid, &err) < 0) {
        *ret = reply_error(q, 401, "unauthorized", q->server->config->proxy_header, NULL,
                           err.text);
        return -1;
    }
    q->caller = roles_caller(q->server->roles, uid, gid, HOW_PROXY);
    return 0;
}

int authenticate(struct request *q, const struct evidence *e, struct reply *ret)
{
    switch (e->door) {
    case DOOR_UNIX:
        if (e->uid != (uid_t)-1)
            q->caller = roles_caller(q->server->roles, e->uid, e->gid, HOW_SOCKET);
        return 0;
    case DOOR_TCP:
        return by_munge(q, e, ret);
    case DOOR_PROXY:
        return by_login(q, e, ret);
    }
    return 0;
}

char *authenticate_reply(const struct request *q, const struct evidence *e,
                         const struct reply *r)
{
    struct topt_error err = {0};
    int has_body = strcmp(q->method, "HEAD") != 0;
    const struct topt_answered a = {r->status, r->body ? r->body : r->fixed,
                                    has_body ? r->len : 0};
    char *value = NULL;
    if (q->caller.how != HOW_MUNGE)
        return NULL;
    if (topt_credential_answer(q->server->config->munge_socket, q->caller.uid,
                               e->authorization, &a, &value, &err) < 0)
        topt_log(TOPT_LOG_ERR, "%s: the answer is not signed: %s", q->id, err.text);
    return value;
}
