/* decode.c - a text by what is kept of it: of every family whose weights can be read, what
 * the model says after each token is what it says by a whole pass.
 *
 * usage: runtime_decode FOLDER   which has a folder with config.json and model.safetensors for each
 */
#include "alone.h"
#include "decode.h"
#include "random.h"
#include "tap.h"
#include "topt_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQ = 8, MOST_CLASSES = 4096 };

struct text {
    int32_t id[SEQ];
    int64_t n;
};

static int load(void *ctx, const struct topt_op *op, int operand, int64_t step,
                const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct text *t = ctx;
    (void)operand, (void)step, (void)err;
    for (int64_t i = 0; i < box->len[1]; i++)
        ret[i] = i < t->n && !op->spec->loss ? t->id[i] : 0;
    return 0;
}

/* Largest difference of two sets of logits, over their largest. */
static double apart(const double *a, const double *b, int64_t n)
{
    double most = 0, far = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a[i]));
        far = fmax(far, fabs(a[i] - b[i]));
    }
    return most > 0 ? far / most : 1;
}

/* The text in pieces of the given lengths, 0 at the end. */
static void by_pieces(const char *family, struct topt_session *s, struct text *t,
                      int64_t classes, const int *piece)
{
    static double whole[MOST_CLASSES], kept[MOST_CLASSES];
    const struct topt_feed feed = {.load = load, .ctx = t, .kind = "window"};
    struct topt_error err = {0};
    struct topt_decode *d = NULL;
    double worst = 0;
    int rc = topt_decode_open(s, &d, &err);
    t->n = 0;
    for (int i = 0; !rc && piece[i]; i++) {
        rc = topt_decode_more(d, t->id + t->n, piece[i], kept, classes, &err);
        t->n += piece[i];
        rc = rc || topt_session_logits(s, &feed, t->n - 1, whole, classes, &err);
        worst = rc ? 1 : fmax(worst, apart(whole, kept, classes));
    }
    ok(!rc && worst < 2e-5, "%s, begun with %d tokens: within %.1e %s", family, piece[0],
       worst, err.text);
    ok(rc || topt_decode_more(d, t->id, SEQ, kept, classes, &err),
       "... and no more than it has positions");
    topt_decode_close(d);
}

static void check_family(const char *folder, const char *family)
{
    static const int one_by_one[] = {1, 1, 1, 1, 1, 1, 1, 1, 0}, prompt[] = {5, 1, 2, 0};
    const struct topt_session_options options = {.seed = 1};
    struct topt_import_options o = {.batch = 1, .seq = SEQ, .capacity = TOPT_MAX_EXPERTS};
    struct topt_alone a = {.hw = NULL};
    struct topt_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, family);
    struct topt_model *m = topt_model_load(path, &o, &err);
    int rc =
        !m || topt_alone_open(m, &options, &a, &err) ||
        topt_weights_load(a.session, &(struct topt_weights_source){.dir = path}, &err);
    int64_t classes = rc ? 0 : m->op[m->loss].count[2];
    if (ok(!rc && classes <= MOST_CLASSES, "%s %s", family, err.text) &&
        ok(topt_decode_can(a.session), "%s keeps what it needs", family)) {
        struct text t = {.n = 0};
        for (int i = 0; i < SEQ; i++)
            t.id[i] = (int32_t)(topt_random(7, (uint64_t)i) % (uint64_t)classes);
        by_pieces(family, a.session, &t, classes, one_by_one);
        by_pieces(family, a.session, &t, classes, prompt);
    }
    topt_alone_close(&a);
    topt_model_destroy(m);
}

/* Experts with fewer slots than there are tokens: which of them find one is not kept. */
static void check_few_slots(const char *folder)
{
    const struct topt_session_options options = {.seed = 1};
    struct topt_import_options o = {.batch = 1, .seq = SEQ, .capacity = 1};
    struct topt_alone a = {.hw = NULL};
    struct topt_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/lfm2_moe", folder);
    struct topt_model *m = topt_model_load(path, &o, &err);
    int rc = !m || topt_alone_open(m, &options, &a, &err);
    ok(!rc && !topt_decode_can(a.session), "experts that drop tokens are not run so %s",
       err.text);
    topt_alone_close(&a);
    topt_model_destroy(m);
}

/* The state of gated recurrences (rnn, lstm, gru) is not kept. */
static void check_refused(void)
{
    const struct topt_session_options options = {.seed = 1};
    struct topt_attrs table = {.vocab = 16, .features = 8}, state = {.features = 8};
    struct topt_attrs out = {.features = 16};
    struct topt_alone a = {.hw = NULL};
    struct topt_error err = {0};
    struct topt_decode *d = NULL;
    struct topt_model *m = topt_model_create("recurrent", 1, SEQ, &err);
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &table, &err);
    x = x < 0 ? -1 : topt_model_add(m, "linear", "pre", 1, &x, &state, &err);
    x = x < 0 ? -1 : topt_model_add(m, "rnn", "r", 1, &x, NULL, &err);
    x = x < 0 ? -1 : topt_model_add(m, "linear", "o", 1, &x, &out, &err);
    x = x < 0 ? -1 : topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, &err);
    int rc =
        x < 0 || topt_model_finish(m, &err) || topt_alone_open(m, &options, &a, &err);
    if (ok(!rc, "a recurrent model %s", err.text))
        ok(!topt_decode_can(a.session) && topt_decode_open(a.session, &d, &err) && !d,
           "... is not run so: %s", err.text);
    topt_alone_close(&a);
    topt_model_destroy(m);
}

int main(int argc, char **argv)
{
    static const char *const family[] = {"gpt2",
                                         "llama",
                                         "mistral",
                                         "qwen2",
                                         "qwen3",
                                         "phi",
                                         "starcoder2",
                                         "opt",
                                         "gemma",
                                         "gptj",
                                         "phi3",
                                         "gpt_neox",
                                         "bloom",
                                         "mamba",
                                         "falcon_mamba",
                                         "mamba2",
                                         "bamba",
                                         "lfm2",
                                         "qwen3_5_text",
                                         "lfm2_moe",
                                         "jamba",
                                         "granitemoehybrid",
                                         "nemotron_h",
                                         "qwen3_next",
                                         "qwen3_5_moe_text",
                                         "mpt"};
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof family / sizeof *family; i++)
        check_family(argv[1], family[i]);
    check_few_slots(argv[1]);
    check_refused();
    return done_testing();
}
