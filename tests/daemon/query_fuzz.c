/* query_fuzz.c - the parsers of requests under bytes nobody chose: seeded, so repeatable.
 *
 * Good requests are cut, spliced and overwritten; the parsers must accept or refuse with a
 * reason, and what is accepted must have a text that parses back to itself. */
#include "query.h"
#include "server.h"
#include "tap.h"
#include "topt_json.h"

#include <string.h>

enum { ROUNDS = 30000, MAX_LEN = 400 };

static uint64_t state = 88172645463325252u;

static uint32_t pick(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static const char *const seeds[] = {
    "{\"mode\":\"mini-parallelism\",\"hw\":\"lab\",\"batch\":8,\"memory\":\"16MiB\"}",
    "{\"mode\":\"mini-time\",\"gpus\":4,\"epsilon\":0.25,\"sequence_splits\":true}",
    "{\"mode\":\"profiling\",\"gpus\":[1,2,4],\"counts\":\"pow2\",\"model\":{\"a\":[]}}",
    "mode=mini-parallelism&hw=lab&batch=8&memory=16MiB&wait_ms=5",
    ("mode=mini-time&gpus=4&epsilon=0.25&precision=bf16&optimizer=sgd&space=full&overlap="
     "ddp&"
     "eager=loss"),
    "gradient_f32=true&accounting=paper&tensor_parallel=0&max_table_bytes=2GiB&train="
    "lora:4",
    "mode=profiling&gpus=1,2,4&counts=any&framework=topt&seq=64&name=config.json",
};
enum { NSEEDS = sizeof seeds / sizeof *seeds };

/* A seed, changed here and there, with a piece of another now and then. */
static size_t mutate(char buf[MAX_LEN + 1])
{
    const char *seed = seeds[pick(NSEEDS)];
    size_t len = strlen(seed);
    memcpy(buf, seed, len + 1);
    for (uint32_t n = pick(4); n; n--) {
        size_t at = pick((uint32_t)len + 1);
        switch (pick(4)) {
        case 0:
            len = at;
            break;
        case 1:
            if (at < len)
                buf[at] = (char)pick(256);
            break;
        case 2:
            if (at < len)
                buf[at] = "{}[]\",:&=0-9e.\\"[pick(15)];
            break;
        default: {
            const char *other = seeds[pick(NSEEDS)] + pick(20);
            size_t more = pick(30);
            if (at + more > MAX_LEN || more > strlen(other))
                break;
            memcpy(buf + at, other, more);
            len = at + more > len ? at + more : len;
        }
        }
    }
    buf[len] = '\0';
    return len;
}

static int pairs_of(char *text, struct query_pair *pairs)
{
    int n = 0;
    for (char *next = text, *part; n < MAX_PAIRS && (part = strsep(&next, "&")); n++) {
        char *eq = strchr(part, '=');
        if (eq)
            *eq++ = '\0';
        pairs[n] = (struct query_pair){part, eq};
    }
    return n;
}

static int round_json(const char *text, size_t len, enum query_kind kind, struct query *q,
                      struct topt_error *err)
{
    const char *source;
    struct reply r = {0};
    const struct request request = {.body = (char *)(uintptr_t)text, .body_len = len};
    if (check_body(&request, &r) < 0) {
        int is_envelope = r.body && strstr(r.body, "\"errors\"");
        reply_fini(&r);
        topt_fail(err, TOPT_ERR_INVAL, "too many values");
        return is_envelope ? -1 : -2;
    }
    json_t *doc = topt_json_parse(text, len, "body", err);
    int rc = doc ? query_from_json(kind, doc, q, &source, err) : -1;
    json_decref(doc);
    return rc;
}

static int round_url(char *text, enum query_kind kind, struct query *q,
                     struct topt_error *err)
{
    struct query_pair pairs[MAX_PAIRS];
    const char *source;
    int n = pairs_of(text, pairs);
    return query_from_pairs(kind, pairs, n, q, &source, err);
}

/* A worker gets the same question, where it is UTF-8. */
static int round_worker(const struct query *q, const char *text)
{
    const char *source;
    struct topt_error err;
    struct query back;
    struct topt_text t = {0};
    json_t *doc = query_pack(q, &source, &err);
    if (!doc)
        return strstr(err.text, "UTF-8") ? 0 : -1;
    int rc = query_unpack(doc, &back, &source, &err);
    if (rc == 0) {
        query_text(&back, &t);
        rc = t.s && !strcmp(t.s, text) && back.wait_ms == q->wait_ms &&
                     !strcmp(back.name, q->name) && !strcmp(back.hw, q->hw) &&
                     !strcmp(back.model_id, q->model_id)
                 ? 0
                 : -1;
    }
    topt_text_fini(&t);
    json_decref(doc);
    return rc;
}

int main(void)
{
    int accepted = 0, silent = 0, broken = 0, changed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char buf[MAX_LEN + 1];
        struct query q;
        struct topt_error err = {0};
        size_t len = mutate(buf);
        enum query_kind kind = (enum query_kind)pick(3);
        int rc = *buf == '{' ? round_json(buf, len, kind, &q, &err)
                             : round_url(buf, kind, &q, &err);
        if (rc == -1) {
            silent += !*err.text;
        } else if (rc == 0) {
            struct topt_text t = {0};
            query_text(&q, &t);
            accepted++;
            broken += t.oom || strchr(t.s, '\n') != NULL;
            changed += t.s && round_worker(&q, t.s) < 0;
            topt_text_fini(&t);
        } else {
            broken++;
        }
    }
    ok(accepted > ROUNDS / 50, "%d of %d were accepted", accepted, ROUNDS);
    is_int(silent, 0, "every refusal has a reason");
    is_int(broken, 0, "whatever was accepted has a text of one line");
    is_int(changed, 0, "and is the same question to a worker");
    return done_testing();
}
