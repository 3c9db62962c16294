/* carry.c - see topt_carry.h. */
#include "topt_carry.h"

#include <nettle/base64.h>
#include <stdlib.h>
#include <string.h>

#include "topt_digest.h"
#include "topt_elastic.h"
#include "topt_pack.h"

/* Behind "1." and the digest with its dot. */
enum { DIGEST_AT = TOPT_CARRY_DIGEST_AT, DATA_AT = TOPT_CARRY_DATA_AT };
_Static_assert(DATA_AT - DIGEST_AT == TOPT_DIGEST_HEX, "digits and a dot");

int topt_carry_write(const char *doc, size_t len, char **ret, size_t *ret_len,
                     struct topt_error *err)
{
    void *packed = NULL;
    size_t n = 0;
    if (len > TOPT_CARRY_WHOLE)
        return topt_fail(err, TOPT_ERR_LIMIT, "a document of %zu bytes is not carried",
                         len);
    if (topt_pack(doc, len, &packed, &n, err))
        return -1;
    size_t data = BASE64_ENCODE_RAW_LENGTH(n);
    if (DATA_AT + data > TOPT_CARRY_MOST) {
        free(packed);
        return topt_fail(err, TOPT_ERR_LIMIT, "packed, the document has %zu bytes", n);
    }
    char *word = malloc(DATA_AT + data + 1);
    if (!word) {
        free(packed);
        return topt_nomem(err, NULL);
    }
    memcpy(word, "1.", DIGEST_AT);
    topt_sha256_hex(doc, len, word + DIGEST_AT);
    word[DATA_AT - 1] = '.';
    base64_encode_raw(word + DATA_AT, n, packed);
    word[DATA_AT + data] = '\0';
    free(packed);
    *ret = word;
    *ret_len = DATA_AT + data;
    return 0;
}

static int damaged(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL, "the document that is carried is damaged");
}

/* The packed bytes of 'len' letters of base64. */
static int decode(const char *letters, size_t len, uint8_t **ret, size_t *ret_len,
                  struct topt_error *err)
{
    struct base64_decode_ctx ctx;
    uint8_t *out = malloc(BASE64_DECODE_LENGTH(len) + 1);
    size_t n = BASE64_DECODE_LENGTH(len);
    if (!out)
        return topt_nomem(err, NULL);
    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &n, out, len, letters) ||
        !base64_decode_final(&ctx)) {
        free(out);
        return damaged(err);
    }
    *ret = out;
    *ret_len = n;
    return 0;
}

int topt_carry_read(const char *word, char **ret, size_t *ret_len, struct topt_error *err)
{
    size_t len = strlen(word), n = 0, whole = 0;
    uint8_t *packed = NULL;
    char *doc = NULL, digest[TOPT_DIGEST_HEX];
    if (!topt_carry_looks_right(word, len))
        return damaged(err);
    if (decode(word + DATA_AT, len - DATA_AT, &packed, &n, err))
        return -1;
    int rc = topt_unpack(packed, n, TOPT_CARRY_WHOLE, &doc, &whole, err);
    free(packed);
    if (rc)
        return -1;
    topt_sha256_hex(doc, whole, digest);
    if (memcmp(digest, word + DIGEST_AT, TOPT_DIGEST_HEX - 1) != 0) {
        free(doc);
        return damaged(err);
    }
    *ret = doc;
    *ret_len = whole;
    return 0;
}

/* A number of the environment; 0 where it isn't there. */
static int64_t number_of(const char *name)
{
    const char *value = getenv(name);
    int64_t n = 0;
    return value && !topt_parse_int(value, 1, 1 << 20, &n, NULL) ? n : 0;
}

/* Is this a step of srun, and not the batch script?  Newer Slurms number the script's
 * step, too, above all others. */
static int is_step(void)
{
    const char *value = getenv("SLURM_STEP_ID");
    int64_t n;
    return value && !topt_parse_int(value, 0, INT64_C(0xfffffff0) - 1, &n, NULL);
}

/* The document that the environment carries for the nodes and GPUs that the job has.
 * Slurm's plugin sees to that, where it is installed; else a job that was resized, or was
 * given one of several numbers of nodes, is known by them here.  A job with more than the
 * plan needs, as one that has whole nodes, runs by it where no plan is of its own shape. */
static int word_of_shape(const char *id, const char **ret, struct topt_error *err)
{
    char tag[TOPT_ELASTIC_NAME], name[TOPT_ELASTIC_NAME];
    const char *kinds = getenv(TOPT_ELASTIC_KINDS_VARIABLE);
    const char *partition = getenv("SLURM_JOB_PARTITION");
    int kind = kinds && partition ? topt_elastic_kind_in(kinds, partition) : 0;
    int64_t nodes = number_of("SLURM_JOB_NUM_NODES"),
            planned = number_of("SLURM_TOPT_NODES");
    int64_t each = number_of("SLURM_GPUS_ON_NODE");
    int64_t of_plan = number_of("SLURM_TOPT_GPUS_PER_NODE");
    *ret = getenv(TOPT_CARRY_VARIABLE);
    int other_nodes = nodes && planned && nodes != planned;
    int other_gpus = each && of_plan && each != of_plan;
    if (!other_nodes && !other_gpus && kind <= 0)
        return 0;
    topt_elastic_tag(nodes ? nodes : planned, each ? each : of_plan, kind, tag);
    topt_elastic_document_name(tag, name);
    const char *word = getenv(name);
    if (word) {
        *ret = word;
        return 0;
    }
    int has_fewer_nodes = other_nodes && nodes < planned;
    int has_fewer_gpus = other_gpus && each < of_plan;
    if (!has_fewer_nodes && (!has_fewer_gpus || is_step())) /* of its job's GPUs a step */
        return 0;                                           /* may have but some */
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "plan %s is for %lld node%s of %lld GPU%s, and the job has %lld of "
                     "%lld: it was resized, and carries no plan for that",
                     id, (long long)planned, planned == 1 ? "" : "s", (long long)of_plan,
                     of_plan == 1 ? "" : "s", (long long)nodes, (long long)each);
}

int topt_carry_plan(const char *id, char **ret, size_t *ret_len, struct topt_error *err)
{
    const char *carried = getenv("SLURM_TOPT_PLAN"), *word;
    if (!carried || strcmp(carried, id) != 0)
        return 0;
    if (word_of_shape(id, &word, err))
        return -1;
    if (!word)
        return 0;
    return topt_carry_read(word, ret, ret_len, err)
               ? topt_wrap(err, "$" TOPT_CARRY_VARIABLE)
               : 1;
}
