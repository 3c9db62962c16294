/* query_fuzz.c - the parsers of requests under bytes nobody chose: seeded, so repeatable.
 *
 * Good requests are cut, spliced and overwritten; the parsers must accept or refuse with a
 * reason, and what is accepted must have a text that parses back to itself. */
#include "topt_query.h"
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
    "gradients=f32&accounting=paper&tensor_parallel=0&max_table_bytes=2GiB&train="
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

static int pairs_of(char *text, struct topt_pair *pairs)
{
    int n = 0;
    for (char *next = text, *part; n < MAX_PAIRS && (part = strsep(&next, "&")); n++) {
        char *eq = strchr(part, '=');
        if (eq)
            *eq++ = '\0';
        pairs[n] = (struct topt_pair){part, eq};
    }
    return n;
}

static int round_json(const char *text, size_t len, enum topt_query_kind kind,
                      struct topt_query *q, struct topt_error *err)
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
    int rc = doc ? topt_query_from_json(kind, doc, q, &source, err) : -1;
    json_decref(doc);
    return rc;
}

static int round_url(char *text, enum topt_query_kind kind, struct topt_query *q,
                     struct topt_error *err)
{
    struct topt_pair pairs[MAX_PAIRS];
    const char *source;
    int n = pairs_of(text, pairs);
    return topt_query_from_pairs(kind, pairs, n, q, &source, err);
}

/* A worker gets the same question, where it is UTF-8; it is one line. */
static int round_worker(const struct topt_query *q)
{
    const char *source;
    struct topt_error err;
    struct topt_query back;
    struct topt_text was = {0}, is = {0};
    if (topt_query_write(q, TOPT_QUERY_WHOLE, &was, &source, &err))
        return strstr(err.text, "UTF-8") ? 0 : -1;
    int rc = topt_query_read(was.s, &back, &source, &err) ||
                     topt_query_write(&back, TOPT_QUERY_WHOLE, &is, &source, &err) ||
                     strcmp(was.s, is.s) || strchr(was.s, '\n') ||
                     back.wait_ms != q->wait_ms || back.kind != q->kind ||
                     strcmp(back.name, q->name) || strcmp(back.hw, q->hw) ||
                     strcmp(back.model_id, q->model_id)
                 ? -1
                 : 0;
    topt_text_fini(&was);
    topt_text_fini(&is);
    return rc;
}

int main(void)
{
    int accepted = 0, silent = 0, broken = 0, changed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char buf[MAX_LEN + 1];
        struct topt_query q;
        struct topt_error err = {0};
        size_t len = mutate(buf);
        enum topt_query_kind kind = (enum topt_query_kind)pick(3);
        int rc = *buf == '{' ? round_json(buf, len, kind, &q, &err)
                             : round_url(buf, kind, &q, &err);
        if (rc == -1) {
            silent += !*err.text;
        } else if (rc == 0) {
            accepted++;
            changed += round_worker(&q) < 0;
        } else {
            broken++;
        }
    }
    ok(accepted > ROUNDS / 50, "%d of %d were accepted", accepted, ROUNDS);
    is_int(silent, 0, "every refusal has a reason");
    is_int(broken, 0, "in the envelope of errors");
    is_int(
        changed, 0,
        "what was accepted is written as one line, and is the same question to a worker");
    return done_testing();
}
