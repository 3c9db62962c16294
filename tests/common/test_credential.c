/* test_credential.c - requests and answers signed by MUNGE: every part of one that is
 * another refuses it, and so does the second look, the wrong reader and the end of its
 * time. */
#include "topt_credential.h"
#include "topt_digest.h"
#include "topt_munge.h"
#include "topt_trust.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "munged.h"

enum { NOBODY = 65534 };

static struct munged m;
static struct topt_error err;

static const struct topt_asked question = {"POST", "/v1/plan?batch=8&hw=a%20b",
                                           "{\"a\":1}", 7};
static const struct topt_answered reply = {200, "TOPT_GPUS=4\n", 12};

static struct topt_trust trusting(int64_t uid)
{
    return (struct topt_trust){uid, -1, m.socket};
}

static char *ask(int64_t daemon, const struct topt_asked *q)
{
    const struct topt_trust t = trusting(daemon);
    char *value = NULL;
    topt_error_clear(&err);
    if (topt_credential_ask(&t, q, &value, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    return value;
}

/* The uid, or -1; takes the value. */
static int64_t asker(char *value, const struct topt_asked *q)
{
    uid_t uid = 0;
    gid_t gid = 0;
    topt_error_clear(&err);
    int rc = topt_credential_asker(m.socket, value, q, &uid, &gid, &err);
    free(value);
    return rc < 0 ? -1 : (int64_t)uid;
}

static void test_digest(void)
{
    char hex[TOPT_DIGEST_HEX];
    topt_sha256_hex("abc", 3, hex);
    ok(!strcmp(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
       "SHA-256 of FIPS 180-4's \"abc\": %s", hex);
    topt_sha256_hex("", 0, hex);
    ok(!strcmp(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
       "and of nothing");
}

static void refused(char *value, const struct topt_asked *q, const char *what)
{
    int64_t uid = asker(value, q);
    ok(uid == -1 && err.code == TOPT_ERR_INVAL, "%s: %s", what, err.text);
}

static void test_request(void)
{
    is_int(asker(ask(-1, &question), &question), geteuid(), "who asks is known");
    is_int(asker(ask(geteuid(), &question), &question), geteuid(),
           "also by a daemon that alone may read it");
    struct topt_asked q = question;
    q.method = "PUT";
    refused(ask(-1, &question), &q, "another method");
    q = question;
    q.target = "/v1/plan?batch=8&hw=a%20c";
    refused(ask(-1, &question), &q, "another query");
    q.target = "/v1/plan";
    refused(ask(-1, &question), &q, "no query");
    q = question;
    q.body = "{\"a\":2}";
    refused(ask(-1, &question), &q, "another body");
    q = question;
    q.len = 6;
    refused(ask(-1, &question), &q, "a body cut short");
    q.len = 0;
    refused(ask(-1, &question), &q, "no body");
    q.body = NULL;
    is_int(asker(ask(-1, &q), &q), geteuid(), "a request without a body");
    q.target = "/v1/x\nPOST";
    char *value = NULL;
    const struct topt_trust t = trusting(-1);
    ok(topt_credential_ask(&t, &q, &value, &err) == -1, "no line breaks in it: %s",
       err.text);
}

static void test_replay(void)
{
    char *value = ask(-1, &question), *copy = strdup(value);
    is_int(asker(value, &question), geteuid(), "once");
    refused(copy, &question, "twice");
    ok(strstr(err.text, "replayed") != NULL, "is named");
    value = ask(-1, &question);
    copy = ask(-1, &question);
    ok(strcmp(value, copy) != 0, "the same question asked again is signed anew");
    is_int(asker(value, &question), geteuid(), "the first");
    is_int(asker(copy, &question), geteuid(), "and the second are taken");
}

/* Any character of it changed. */
static void test_altered(void)
{
    char *good = ask(-1, &question);
    size_t len = strlen(good), taken = 0, outage = 0;
    for (size_t i = 0; i < len; i += 3) {
        char *bad = strdup(good);
        if (!bad)
            abort();
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        taken += asker(bad, &question) != -1;
        outage += err.code != TOPT_ERR_INVAL;
    }
    is_int(taken, 0, "with a character changed it is refused, wherever");
    is_int(outage, 0, "as the sender's fault");
    is_int(asker(good, &question), geteuid(), "and the true one is taken afterwards");
    refused(strdup("Basic cm9vdDo="), &question, "another scheme");
    refused(strdup("MUNGE "), &question, "nothing");
    refused(strdup("MUNGE MUNGE:AAAA:"), &question, "nearly nothing");
    char *huge = malloc(300001);
    if (!huge)
        abort();
    memset(huge, 'A', 300000);
    memcpy(huge, "MUNGE ", 6);
    huge[300000] = '\0';
    refused(huge, &question, "a huge one");
}

/* What a client of its own making may try: the same words in a credential of another kind. */
static void test_lifetime(void)
{
    char digest[TOPT_DIGEST_HEX], payload[300], *c = NULL, value[2000];
    topt_sha256_hex(question.body, question.len, digest);
    snprintf(payload, sizeof payload, "topt-request/1\n%s\n%s\n%s\n", question.method,
             question.target, digest);
    for (int ttl = 1; ttl <= 3600; ttl += 3599) {
        if (topt_munge_encode(m.socket, TOPT_MUNGE_ANY, ttl, payload, &c, &err) < 0)
            abort();
        snprintf(value, sizeof value, "MUNGE %s", c);
        free(c);
        if (ttl == 1)
            sleep(3);
        refused(strdup(value), &question,
                ttl == 1 ? "expired" : "that lives for an hour");
    }
    if (topt_munge_encode(m.socket, TOPT_MUNGE_ANY, 1, payload, &c, &err) < 0)
        abort();
    snprintf(value, sizeof value, "MUNGE %s", c);
    free(c);
    is_int(asker(strdup(value), &question), geteuid(), "while the same is taken in time");
}

/* Run as another uid; its exit status. */
static int as_nobody(int (*run)(const char *value), const char *value)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgid(NOBODY) || setuid(NOBODY) ? 100 : run(value));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

static int decodes(const char *value)
{
    int64_t uid = asker(strdup(value), &question);
    return uid >= 0 ? 0 : strstr(err.text, "another reader") ? 1 : 2;
}

static int rogue[2]; /* a pipe */

/* A rogue server: signs the answer to the request 'value'. */
static int signs_as_nobody(const char *value)
{
    char *answer = NULL;
    if (topt_credential_answer(m.socket, 0, value, &reply, &answer, &err) < 0)
        return 2;
    size_t len = strlen(answer);
    return write(rogue[1], answer, len) == (ssize_t)len ? 0 : 3;
}

static void test_readers(void)
{
    if (geteuid()) {
        printf("# not root: other uids are not tried\n");
        return;
    }
    char *value = ask(0, &question);
    is_int(as_nobody(decodes, value), 1, "what is for root's daemon, nobody can't read");
    free(value);
    value = ask(NOBODY, &question);
    is_int(as_nobody(decodes, value), 0, "what is for nobody's daemon, nobody reads");
    free(value);
    value = ask(NOBODY, &question);
    refused(value, &question, "and root does not");
}

static char *answer(uid_t to, const char *value)
{
    char *made = NULL;
    topt_error_clear(&err);
    if (topt_credential_answer(m.socket, to, value, &reply, &made, &err) < 0) {
        printf("# %s\n", err.text);
        abort();
    }
    return made;
}

/* Takes the answer.  0, or -1. */
static int believed(char *made, const char *value, const struct topt_answered *a,
                    int64_t daemon)
{
    const struct topt_trust t = trusting(daemon);
    topt_error_clear(&err);
    int rc = topt_credential_check_answer(&t, "http://x", made, value, a, &err);
    free(made);
    return rc;
}

static void test_answer(void)
{
    uid_t me = geteuid();
    char *value = ask(-1, &question), *other = ask(-1, &question);
    struct topt_answered a = reply;
    is_int(believed(answer(me, value), value, &reply, me), 0, "the daemon's answer %s",
           err.text);
    a.status = 404;
    ok(believed(answer(me, value), value, &a, me) == -1, "another status: %s", err.text);
    a = reply;
    a.body = "TOPT_GPUS=5\n";
    ok(believed(answer(me, value), value, &a, me) == -1, "another body: %s", err.text);
    a.len = 0;
    ok(believed(answer(me, value), value, &a, me) == -1, "no body: %s", err.text);
    ok(believed(answer(me, value), other, &reply, me) == -1, "to another request: %s",
       err.text);
    ok(believed(answer(me, value), value, &reply, me + 1) == -1 &&
           strstr(err.text, "not the daemon"),
       "of another uid: %s", err.text);
    ok(believed(strdup(value), value, &reply, me) == -1, "the request's own: %s",
       err.text);
    char *made = answer(me, value), *again = strdup(made);
    is_int(believed(made, value, &reply, me), 0, "read once");
    ok(believed(again, value, &reply, me) == -1, "not twice: %s", err.text);
    for (int status = 200; status < 600; status++) {
        a.status = status;
        int rc = believed(NULL, value, &a, me), later = status == 429 || status == 503;
        if (rc != (later ? 1 : -1) || err.code != TOPT_ERR_IO)
            ok(0, "unsigned %d: %d", status, rc);
    }
    ok(1, "what is not signed is not believed, whatever its status: %s", err.text);
    if (!me) {
        const struct topt_trust usual = {-1, -1, m.socket};
        made = answer(0, value);
        ok(!topt_credential_check_answer(&usual, "http://x", made, value, &reply, &err),
           "root's is believed where nobody was named");
        free(made);
        ok(believed(answer(NOBODY, value), value, &reply, 0) == -1 &&
               strstr(err.text, "another reader"),
           "an answer for another asker: %s", err.text);
        char line[2000] = "";
        if (pipe(rogue))
            abort();
        is_int(as_nobody(signs_as_nobody, value), 0, "a rogue signs an answer");
        ok(read(rogue[0], line, sizeof line - 1) > 0, "which arrives");
        ok(believed(strdup(line), value, &reply, 0) == -1 &&
               strstr(err.text, "uid 65534"),
           "and is not believed: %s", err.text);
    }
    free(value);
    free(other);
}

static void test_trust(void)
{
    struct topt_trust t;
    int pair[2];
    topt_error_clear(&err);
    unsetenv("TOPT_DAEMON_UID");
    ok(!topt_trust_read(NULL, &t, &err) && t.uid == -1 && topt_trust_uid(&t, 0) &&
           !topt_trust_uid(&t, NOBODY),
       "where nobody is named, root");
    t.usual = 7;
    ok(topt_trust_uid(&t, 7) && topt_trust_uid(&t, 0), "and the user topt");
    ok(!topt_trust_read("65534", &t, &err) && topt_trust_uid(&t, NOBODY) &&
           !topt_trust_uid(&t, 0),
       "who is named, and nobody else");
    ok(!topt_trust_read("root", &t, &err) && t.uid == 0, "by name");
    setenv("TOPT_DAEMON_UID", "65534", 1);
    ok(!topt_trust_read("", &t, &err) && t.uid == NOBODY, "by the environment");
    unsetenv("TOPT_DAEMON_UID");
    static const char *const bad[] = {"-1", "4294967295", "7x", "no-such-user-here",
                                      " 7"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_trust_read(bad[i], &t, &err) == -1 && err.code == TOPT_ERR_USAGE,
           "'%s': %s", bad[i], err.text);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        abort();
    t = (struct topt_trust){12345, -1, NULL};
    ok(!topt_trust_peer(&t, pair[0], &err),
       "one's own daemon is trusted on a Unix socket");
    close(pair[0]);
    close(pair[1]);
}

/* A listener of another uid, as one who got hold of the socket's place. */
static void test_rogue_listener(void)
{
    if (geteuid())
        return;
    struct topt_trust t = {-1, -1, NULL};
    int pair[2], status;
    pid_t pid = fork();
    if (pid == 0) { /* peer credentials are those of whoever made the pair */
        struct topt_error why = {0};
        if (setgid(NOBODY) || setuid(NOBODY) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            _exit(9);
        if (topt_trust_peer(&t, pair[0], &why)) /* itself */
            _exit(8);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "anybody's own is trusted by that user");
    char path[80];
    snprintf(path, sizeof path, "%s/rogue", m.folder);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, path);
    chmod(m.folder, 0777);
    int wait[2];
    if (pipe(wait))
        abort();
    pid = fork();
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte = setgid(NOBODY) || setuid(NOBODY) ||
                    bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 4);
        if (write(wait[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    char byte = 1;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ok(read(wait[0], &byte, 1) == 1 && !byte &&
           !connect(fd, (struct sockaddr *)&a, sizeof a) &&
           topt_trust_peer(&t, fd, &err) == -1 && strstr(err.text, "uid 65534"),
       "a stranger's is not trusted by root: %s", err.text);
    t.uid = NOBODY;
    ok(!topt_trust_peer(&t, fd, &err), "unless that is the daemon's user");
    close(fd);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    unlink(path);
}

static void test_outage(void)
{
    const struct topt_trust t = {-1, -1, "/nonexistent/socket"};
    char *value = NULL;
    topt_error_clear(&err);
    ok(topt_credential_ask(&t, &question, &value, &err) == -1 && err.code == TOPT_ERR_IO,
       "no munged: %s", err.text);
    uid_t uid;
    gid_t gid;
    ok(topt_credential_asker("/nonexistent/socket", "MUNGE MUNGE:AAAA:", &question, &uid,
                             &gid, &err) == -1 &&
           err.code == TOPT_ERR_IO,
       "is no fault of the credential: %s", err.text);
}

int main(void)
{
    if (!topt_munge_built())
        skip_all("built without MUNGE");
    if (munged_start(&m))
        skip_all("munged is not installed");
    test_digest();
    test_trust();
    test_request();
    test_replay();
    test_altered();
    test_lifetime();
    test_readers();
    test_answer();
    test_rogue_listener();
    test_outage();
    munged_stop(&m);
    return done_testing();
}
