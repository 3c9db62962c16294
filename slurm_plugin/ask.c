/* ask.c - the --topt-* options as one table: registering, checking and sending them all
 * read the same rows, so an option can't be known to one and not to another. */
#include "ask.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topt_hub.h"
#include "topt_near.h"

enum { MODEL_LIMIT = 64 << 20 };
static const int64_t count_limit = INT64_C(1) << 30;

#define SHOWN_TEXT(arg)   arg, TOPT_ASK_IS_TEXT
#define SHOWN_WORD(arg)   SHOWN_TEXT(arg)
#define SHOWN_NAME(arg)   SHOWN_TEXT(arg)
#define SHOWN_LIST(arg)   SHOWN_TEXT(arg)
#define SHOWN_LABEL(arg)  SHOWN_TEXT(arg)
#define SHOWN_AMOUNT(arg) SHOWN_TEXT(arg)
#define SHOWN_REAL(arg)   SHOWN_TEXT(arg)
#define SHOWN_PRICE(arg)  SHOWN_TEXT(arg)
#define SHOWN_SHARE(arg)  arg, TOPT_ASK_IS_SHARE
#define SHOWN_INT(arg)    arg, TOPT_ASK_IS_COUNT
#define SHOWN_BATCH(arg)  arg, TOPT_ASK_IS_COUNT
#define SHOWN_COUNTS(arg) arg, TOPT_ASK_IS_COUNTS
#define SHOWN_MEMORY(arg) arg, TOPT_ASK_IS_BYTES
#define SHOWN_BOOL(arg)   NULL, TOPT_ASK_IS_FLAG
const struct topt_ask_row topt_ask_table[TOPT_ASK_COUNT] = {
#define X(ID, name, KIND, LEAST, MOST, WHERE, KEY, DOORS, OPTION, ARG, OTHER, VALUES,    \
          HELP)                                                                          \
    TOPT_FIELD_OF_SBATCH_##DOORS([TOPT_ASK_##ID] = {"topt-" OPTION, #name,               \
                                                    TOPT_FIELD_HELP(HELP, OTHER),        \
                                                    SHOWN_##KIND(ARG)}, )
    TOPT_FIELDS(X)
#undef X
#define X(NAME, option, arg, kind, help)                                                 \
    [TOPT_ASK_##NAME] = {option, NULL, help, arg, TOPT_ASK_IS_##kind},
        TOPT_ASK_OPTIONS(X)
#undef X
};

void topt_ask_fini(struct topt_ask *ask)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++)
        free(ask->value[i]);
    *ask = (struct topt_ask){0};
}

int topt_ask_set(struct topt_ask *ask, enum topt_ask_option which, const char *value)
{
    char *copy = strdup(value ? value : "");
    if (!copy)
        return -1;
    free(ask->value[which]);
    ask->value[which] = copy;
    return 0;
}

const char *topt_ask_any(const struct topt_ask *ask)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        if (ask->value[i])
            return topt_ask_table[i].option;
    }
    return NULL;
}

static const char *const answers[] = {[TOPT_ON_ERROR_GPUS] = "gpus",
                                      [TOPT_ON_ERROR_SUBMIT] = "submit",
                                      [TOPT_ON_ERROR_ABORT] = "abort",
                                      NULL};

int topt_ask_on_error(const char *word)
{
    for (int i = 0; word && answers[i]; i++)
        if (strcmp(word, answers[i]) == 0)
            return i;
    return word ? -1 : TOPT_ON_ERROR_GPUS;
}

static int check_mode(const char *value, struct topt_error *err)
{
    static const char *const modes[] = {"mini-parallelism", "mini-time", "profiling",
                                        NULL};
    char meant[TOPT_NEAR_WORDS];
    for (int i = 0; modes[i]; i++)
        if (strcmp(value, modes[i]) == 0)
            return 0;
    return topt_fail(err, TOPT_ERR_INVAL,
                     "'%.60s' is not one of mini-parallelism, mini-time, profiling%s",
                     value, topt_near_among(value, modes, meant));
}

static int check_counts(const char *value, struct topt_error *err)
{
    int64_t counts[TOPT_FIELD_COUNTS_MOST];
    int n = 0;
    return topt_parse_counts(value, count_limit, counts, TOPT_FIELD_COUNTS_MOST, &n, err);
}

/* Words that stand before the numbers, with commas between. */
enum { KINDS = 1, REQUEUE = 2 };
static const char *const leads[] = {"kinds", "requeue"};

static int is_word_of_elastic(const char *value)
{
    return !*value || !strcmp(value, "auto") || !strcmp(value, "no");
}

/* What stands behind such words, and in bits which they are. */
static const char *behind_leads(const char *value, int *ret)
{
    *ret = 0;
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        size_t n = strlen(leads[i]);
        int is_last = !strcmp(value, leads[i]);
        int is_it =
            is_last || (!strncmp(value, leads[i], n) && value[n] == ',' && value[n + 1]);
        if (!is_it || *ret & 1 << i) /* each once */
            continue;
        *ret |= 1 << i;
        value += n + !is_last;
        i = SIZE_MAX; /* in any order */
    }
    return value;
}

/* "kinds,no" is nonsense. */
static int check_elastic(const char *value, struct topt_error *err)
{
    int lead;
    const char *rest = behind_leads(value, &lead);
    return is_word_of_elastic(rest) && !(lead && !strcmp(rest, "no"))
               ? 0
               : check_counts(rest, err);
}

static int leads_of(const struct topt_ask *ask)
{
    int lead = 0;
    if (ask->value[TOPT_ASK_ELASTIC])
        behind_leads(ask->value[TOPT_ASK_ELASTIC], &lead);
    return lead;
}

int topt_ask_kinds(const struct topt_ask *ask)
{
    return leads_of(ask) & KINDS;
}

int topt_ask_requeues(const struct topt_ask *ask)
{
    return leads_of(ask) & REQUEUE;
}

int topt_ask_elastic(const struct topt_ask *ask, int64_t *ret, int most)
{
    const char *value = ask->value[TOPT_ASK_ELASTIC];
    int64_t all[TOPT_FIELD_COUNTS_MOST];
    int n = 0, lead;
    if (!value || !strcmp(value, "no"))
        return -1;
    value = behind_leads(value, &lead);
    if (lead == KINDS && !*value)
        return -1;
    if (is_word_of_elastic(value) ||
        topt_parse_counts(value, count_limit, all, TOPT_FIELD_COUNTS_MOST, &n, NULL))
        return 0;
    n = n < most ? n : most;
    for (int i = 0; i < n; i++)
        ret[i] = all[i];
    return n;
}

static int check_on_error(const char *value, struct topt_error *err)
{
    char meant[TOPT_NEAR_WORDS];
    if (topt_ask_on_error(value) >= 0)
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "'%.60s' is not one of gpus, submit, abort%s",
                     value, topt_near_among(value, answers, meant));
}

static int check_tasks(const char *value, struct topt_error *err)
{
    static const char *const kinds[] = {"gpu", "node", NULL};
    char meant[TOPT_NEAR_WORDS];
    if (strcmp(value, "gpu") == 0 || strcmp(value, "node") == 0)
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "'%.60s' is neither gpu nor node%s", value,
                     topt_near_among(value, kinds, meant));
}

int topt_ask_check_value(enum topt_ask_option which, const char *value,
                         struct topt_error *err)
{
    int64_t n;
    double share;
    if (which == TOPT_ASK_MODE)
        return check_mode(value, err);
    if (which == TOPT_ASK_ON_ERROR)
        return check_on_error(value, err);
    if (which == TOPT_ASK_TASKS)
        return check_tasks(value, err);
    switch (topt_ask_table[which].kind) {
    case TOPT_ASK_IS_COUNT:
        return topt_parse_int(value, 1, count_limit, &n, err);
    case TOPT_ASK_IS_COUNTS:
        return check_counts(value, err);
    case TOPT_ASK_IS_ELASTIC:
        return check_elastic(value, err);
    case TOPT_ASK_IS_BYTES:
        return topt_parse_memory(value, &n, err);
    case TOPT_ASK_IS_SHARE:
        return topt_parse_share(value, &share, err);
    case TOPT_ASK_IS_FLAG:
        return 0;
    case TOPT_ASK_IS_FILE:
    case TOPT_ASK_IS_TEXT:
        break;
    }
    return *value ? 0 : topt_fail(err, TOPT_ERR_INVAL, "it is empty");
}

/* "topt-min-efficiency" is TOPT_MIN_EFFICIENCY. */
static void variable_of(const char *option, char ret[64])
{
    size_t n = 0;
    for (; option[n] && n < 63; n++)
        ret[n] = (char)(option[n] == '-' ? '_' : toupper((unsigned char)option[n]));
    ret[n] = '\0';
}

int topt_ask_environment(struct topt_ask *ask, struct topt_error *err)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        char name[64];
        variable_of(topt_ask_table[i].option, name);
        const char *value = getenv(name);
        int is_flag = topt_ask_table[i].kind == TOPT_ASK_IS_FLAG;
        if (ask->value[i] || i == TOPT_ASK_GPUS || !value || !*value ||
            (is_flag && strcmp(value, "0") == 0))
            continue;
        if (topt_ask_check_value((enum topt_ask_option)i, value, err))
            return topt_wrap(err, "$%s", name);
        if (topt_ask_set(ask, (enum topt_ask_option)i, value))
            return topt_nomem(err, name);
    }
    return 0;
}

int topt_ask_find(const char *word, size_t len)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const char *name = topt_ask_table[i].option + strlen("topt-");
        size_t n = 0;
        while (n < len && (name[n] == word[n] || (name[n] == '-' && word[n] == '_')))
            n++;
        if (n == len && !name[n])
            return i;
    }
    return -1;
}

/* What was asked, or what the planner takes where only the number of GPUs says it. */
static const char *mode_of(const struct topt_ask *ask)
{
    const char *mode = ask->value[TOPT_ASK_MODE], *gpus = ask->value[TOPT_ASK_GPUS];
    if (mode)
        return mode;
    return !gpus ? "mini-parallelism" : strchr(gpus, ',') ? "profiling" : "mini-time";
}

int topt_ask_mini_time(const struct topt_ask *ask)
{
    return strcmp(mode_of(ask), "mini-time") == 0;
}

int topt_ask_profiling(const struct topt_ask *ask)
{
    return strcmp(mode_of(ask), "profiling") == 0;
}

int topt_ask_shows_only(const struct topt_ask *ask)
{
    return ask->value[TOPT_ASK_DRY_RUN] || topt_ask_profiling(ask);
}

/* How many GPUs a mode takes. */
static int check_gpus(const struct topt_ask *ask, struct topt_error *err)
{
    int64_t n;
    const char *gpus = ask->value[TOPT_ASK_GPUS];
    if (!gpus || topt_ask_profiling(ask))
        return 0;
    if (!topt_ask_mini_time(ask))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--topt-gpus is for mini-time and profiling; mini-parallelism "
                         "takes --topt-max-gpus");
    return topt_parse_int(gpus, 1, count_limit, &n, err)
               ? topt_wrap(err, "--topt-gpus: mini-time takes one number")
               : 0;
}

int topt_ask_check(const struct topt_ask *ask, struct topt_error *err)
{
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const struct topt_ask_row *row = &topt_ask_table[i];
        if (ask->value[i] &&
            topt_ask_check_value((enum topt_ask_option)i, ask->value[i], err))
            return topt_wrap(err, "--%s", row->option);
    }
    const char *given = topt_ask_any(ask);
    if (given && !ask->value[TOPT_ASK_MODEL])
        return topt_fail(err, TOPT_ERR_USAGE, "--%s needs --topt-model=FILE", given);
    return given ? check_gpus(ask, err) : 0;
}

/* Only a regular file is opened: a pipe would hold the submission up. */
static char *read_regular(const char *path, size_t *ret_len, struct topt_error *err)
{
    struct stat st;
    if (strcmp(path, "-") != 0 && !stat(path, &st) && S_ISREG(st.st_mode)) {
        char *bytes = topt_read_file(path, MODEL_LIMIT, ret_len, err);
        if (bytes && *ret_len == 0) {
            free(bytes);
            topt_fail(err, TOPT_ERR_INVAL, "'%s' is empty", path);
            return NULL;
        }
        return bytes;
    }
    if (strcmp(path, "-") != 0 && stat(path, &st))
        topt_fail(err, TOPT_ERR_NOTFOUND, "can't read '%s': %s", path, strerror(errno));
    else
        topt_fail(err, TOPT_ERR_INVAL, "'%s' is not a file", path);
    return NULL;
}

char *topt_ask_model(const struct topt_ask *ask, size_t *ret_len,
                     char ret_name[TOPT_LABEL], struct topt_error *err)
{
    const char *path = ask->value[TOPT_ASK_MODEL];
    char file[TOPT_HUB_PATH];
    char *bytes = NULL;
    path += *path == '@'; /* as in arguments of Megatron-LM: the file that holds them */
    if (!topt_hub_config(path, file, err))
        bytes = read_regular(file, ret_len, err);
    if (bytes)
        topt_label(file, ret_name);
    else
        topt_wrap(err, "--topt-model");
    return bytes;
}

void topt_ask_escape(const char *s, struct topt_text *out)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 128 && (isalnum(c) || strchr("-._~", c)))
            topt_text_put(out, s, 1);
        else
            topt_text_add(out, "%%%02X", c);
    }
}

static void add_field(struct topt_text *out, const char *key, const char *value)
{
    topt_text_add(out, "&%s=", key);
    topt_ask_escape(value, out);
}

void topt_ask_target(const struct topt_ask *ask, const char *name, int64_t bound,
                     struct topt_text *out)
{
    topt_text_add(out, "/v1/plan?name=");
    topt_ask_escape(name, out);
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const struct topt_ask_row *row = &topt_ask_table[i];
        if (row->query && ask->value[i] && i != TOPT_ASK_MAX_GPUS && i != TOPT_ASK_GPUS)
            add_field(out, row->query,
                      row->kind == TOPT_ASK_IS_FLAG ? "1" : ask->value[i]);
    }
    if (ask->value[TOPT_ASK_GPUS])
        add_field(out, "gpus", ask->value[TOPT_ASK_GPUS]);
    else if (bound > 0)
        topt_text_add(out, "&%s=%lld", topt_ask_mini_time(ask) ? "gpus" : "max_gpus",
                      (long long)bound);
    if (ask->value[TOPT_ASK_EXPLAIN])
        topt_text_add(out, "&slurm_show=all");
    else if (topt_ask_shows_only(ask))
        topt_text_add(out, "&slurm_show=table");
}
