/* options.c - see options.h. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* Of Slurm 22.05 to 26.05: a value is needed ('='), may follow '=' ('?'), or there is none (' ').
 */
static const struct row {
    const char *name;
    char letter, value;
    const char *variable; /* that says it, too; of those that count here */
} rows[] = {{"account", 'A', '=', "SBATCH_ACCOUNT"},
            {"acctg-freq", 0, '=', NULL},
            {"array", 'a', '=', NULL},
            {"batch", 0, '=', NULL},
            {"bb", 0, '=', NULL},
            {"bbf", 0, '=', NULL},
            {"begin", 'b', '=', NULL},
            {"chdir", 'D', '=', NULL},
            {"cluster-constraint", 0, '=', NULL},
            {"clusters", 'M', '=', NULL},
            {"comment", 0, '=', NULL},
            {"consolidate-segments", 0, ' ', NULL},
            {"constraint", 'C', '=', "SBATCH_CONSTRAINT"},
            {"container", 0, '=', NULL},
            {"container-id", 0, '=', NULL},
            {"contiguous", 0, ' ', NULL},
            {"core-spec", 'S', '=', NULL},
            {"cores-per-socket", 0, '=', NULL},
            {"cpu-freq", 0, '=', NULL},
            {"cpus-per-gpu", 0, '=', "SBATCH_CPUS_PER_GPU"},
            {"cpus-per-task", 'c', '=', NULL},
            {"deadline", 0, '=', NULL},
            {"delay-boot", 0, '=', NULL},
            {"dependency", 'd', '=', NULL},
            {"distribution", 'm', '=', NULL},
            {"error", 'e', '=', NULL},
            {"exclude", 'x', '=', NULL},
            {"exclusive", 0, '?', "SBATCH_EXCLUSIVE"},
            {"export", 0, '=', NULL},
            {"export-file", 0, '=', NULL},
            {"external", 0, ' ', NULL},
            {"extra", 0, '=', NULL},
            {"extra-node-info", 'B', '=', NULL},
            {"get-user-env", 0, '?', NULL},
            {"gid", 0, '=', NULL},
            {"gpu-bind", 0, '=', NULL},
            {"gpu-freq", 0, '=', NULL},
            {"gpus", 'G', '=', "SBATCH_GPUS"},
            {"gpus-per-node", 0, '=', "SBATCH_GPUS_PER_NODE"},
            {"gpus-per-socket", 0, '=', NULL},
            {"gpus-per-task", 0, '=', "SBATCH_GPUS_PER_TASK"},
            {"gres", 0, '=', "SBATCH_GRES"},
            {"gres-flags", 0, '=', NULL},
            {"help", 'h', ' ', NULL},
            {"hint", 0, '=', NULL},
            {"hold", 'H', ' ', NULL},
            {"ignore-pbs", 0, ' ', NULL},
            {"input", 'i', '=', NULL},
            {"job-name", 'J', '=', NULL},
            {"kill-on-invalid-dep", 0, '=', NULL},
            {"licenses", 'L', '=', NULL},
            {"mail-type", 0, '=', NULL},
            {"mail-user", 0, '=', NULL},
            {"mcs-label", 0, '=', NULL},
            {"mem", 0, '=', "SBATCH_MEM_PER_NODE"},
            {"mem-bind", 0, '=', NULL},
            {"mem-per-cpu", 0, '=', "SBATCH_MEM_PER_CPU"},
            {"mem-per-gpu", 0, '=', "SBATCH_MEM_PER_GPU"},
            {"mincpus", 0, '=', NULL},
            {"network", 0, '=', NULL},
            {"nice", 0, '?', NULL},
            {"no-kill", 'k', '?', NULL},
            {"no-requeue", 0, ' ', NULL},
            {"nodefile", 'F', '=', NULL},
            {"nodelist", 'w', '=', NULL},
            {"nodes", 'N', '=', NULL},
            {"ntasks", 'n', '=', NULL},
            {"ntasks-per-core", 0, '=', NULL},
            {"ntasks-per-gpu", 0, '=', NULL},
            {"ntasks-per-node", 0, '=', NULL},
            {"ntasks-per-socket", 0, '=', NULL},
            {"oom-kill-step", 0, '?', NULL},
            {"open-mode", 0, '=', NULL},
            {"output", 'o', '=', NULL},
            {"overcommit", 'O', ' ', NULL},
            {"oversubscribe", 's', ' ', NULL},
            {"parsable", 0, ' ', NULL},
            {"partition", 'p', '=', "SBATCH_PARTITION"},
            {"power", 0, '=', NULL},
            {"prefer", 0, '=', NULL},
            {"priority", 0, '=', NULL},
            {"profile", 0, '=', NULL},
            {"propagate", 0, '?', NULL},
            {"qos", 'q', '=', "SBATCH_QOS"},
            {"quiet", 'Q', ' ', NULL},
            {"reboot", 0, ' ', NULL},
            {"requeue", 0, ' ', NULL},
            {"reservation", 0, '=', "SBATCH_RESERVATION"},
            {"resv-ports", 0, '?', NULL},
            {"segment", 0, '=', NULL},
            {"share", 0, ' ', NULL},
            {"signal", 0, '=', NULL},
            {"sockets-per-node", 0, '=', NULL},
            {"spread-job", 0, ' ', NULL},
            {"stepmgr", 0, ' ', NULL},
            {"switches", 0, '=', NULL},
            {"tasks-per-node", 0, '=', NULL},
            {"test-only", 0, ' ', NULL},
            {"thread-spec", 0, '=', NULL},
            {"threads-per-core", 0, '=', NULL},
            {"time", 't', '=', "SBATCH_TIMELIMIT"},
            {"time-min", 0, '=', NULL},
            {"tmp", 0, '=', NULL},
            {"tres-bind", 0, '=', NULL},
            {"tres-per-task", 0, '=', NULL},
            {"uid", 0, '=', NULL},
            {"usage", 0, ' ', NULL},
            {"use-min-nodes", 0, ' ', NULL},
            {"verbose", 'v', ' ', NULL},
            {"version", 'V', ' ', NULL},
            {"wait", 'W', ' ', NULL},
            {"wait-all-nodes", 0, '=', NULL},
            {"wckey", 0, '=', NULL},
            {"wrap", 0, '=', NULL}};
enum { ROWS = sizeof rows / sizeof *rows };
_Static_assert((int)ROWS <= (int)SBATCH_OPTIONS_MOST, "there is room for each");

void sbatch_options_fini(struct sbatch_options *o)
{
    for (int i = 0; i < ROWS; i++)
        free(o->value[i]);
    topt_ask_fini(&o->ask);
    *o = (struct sbatch_options){0};
}

/* The row of the name in full, or of which it is the only beginning; -1. */
static int row_of(const char *name, size_t len)
{
    int found = -1, n = 0;
    for (int i = 0; i < ROWS; i++) {
        if (strncmp(rows[i].name, name, len))
            continue;
        if (!rows[i].name[len])
            return i;
        found = i;
        n++;
    }
    return n == 1 ? found : -1;
}

static int row_of_letter(char letter)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].letter && rows[i].letter == letter)
            return i;
    return -1;
}

/* tasks-per-node is another name. */
static int row_for(int i)
{
    static const char other[] = "tasks-per-node";
    return i >= 0 && !strcmp(rows[i].name, other) ? row_of("ntasks-per-node", 15) : i;
}

static int keep(struct sbatch_options *o, int i, const char *value,
                struct topt_error *err)
{
    char *copy = strdup(value);
    if (!copy)
        return topt_nomem(err, rows[i].name);
    free(o->value[i]);
    o->value[i] = copy;
    return 0;
}

static enum sbatch_use use_of(int i)
{
    return topt_host_touches(rows[i].name) ? SBATCH_TAKE : SBATCH_KEEP;
}

/* The value of the option 'shown': what stands in its own word, NULL where nothing does,
 * else the next word where it needs one.  Returns how many words the option has, or -1. */
static int take_value(const char *shown, int len, const char *own, int is_needed,
                      int argc, char *const *argv, const char **ret,
                      struct topt_error *err)
{
    int follows = is_needed && !own;
    if (follows && argc < 2)
        return topt_fail(err, TOPT_ERR_USAGE, "%.*s needs a value", len, shown);
    *ret = follows ? argv[1] : own ? own : "";
    return follows ? 2 : 1;
}

/* --NAME or --NAME=VALUE: its length with the dashes, and what is behind '='. */
static int split(const char *word, const char **ret_own)
{
    const char *equals = strchr(word, '=');
    *ret_own = equals ? equals + 1 : NULL;
    return (int)(equals ? (size_t)(equals - word) : strlen(word));
}

static int take_ours(struct sbatch_options *o, int argc, char *const *argv,
                     struct topt_error *err)
{
    const char *own, *value = NULL;
    int len = split(argv[0], &own);
    int which = topt_ask_find(argv[0] + 7, (size_t)len - 7); /* behind "--topt-" */
    if (which < 0)
        return topt_fail(err, TOPT_ERR_USAGE, "%.*s is no option", len, argv[0]);
    enum topt_ask_kind kind = topt_ask_table[which].kind;
    int is_needed = kind != TOPT_ASK_IS_FLAG && kind != TOPT_ASK_IS_ELASTIC;
    int n = take_value(argv[0], len, own, is_needed, argc, argv, &value, err);
    if (n > 0 && topt_ask_set(&o->ask, (enum topt_ask_option)which, value))
        return topt_nomem(err, argv[0]);
    return n;
}

static int take_long(struct sbatch_options *o, int argc, char *const *argv,
                     enum sbatch_use *ret_use, struct topt_error *err)
{
    const char *own, *value = NULL;
    int len = split(argv[0], &own);
    int i = row_for(row_of(argv[0] + 2, (size_t)len - 2));
    if (i < 0) /* sbatch says what is wrong with it */
        return 1;
    *ret_use = use_of(i);
    int n = take_value(argv[0], len, own, rows[i].value == '=', argc, argv, &value, err);
    return n > 0 && keep(o, i, value, err) ? -1 : n;
}

/* Letters: those without a value, then at most one with it.  The word is taken out where
 * that one is and stands alone. */
static int take_letters(struct sbatch_options *o, int argc, char *const *argv,
                        enum sbatch_use *ret_use, struct topt_error *err)
{
    for (const char *p = argv[0] + 1; *p; p++) {
        const char letter[] = {'-', *p, '\0'}, *value = NULL;
        int i = row_of_letter(*p);
        if (i < 0)
            return 1;
        if (rows[i].value != '=') {
            if (keep(o, i, "", err))
                return -1;
            continue;
        }
        if (use_of(i) == SBATCH_TAKE && p > argv[0] + 1)
            return topt_fail(err, TOPT_ERR_USAGE, "write %s apart from '%s'", letter,
                             argv[0]);
        int n = take_value(letter, 2, p[1] ? p + 1 : NULL, 1, argc, argv, &value, err);
        if (n > 0)
            *ret_use = use_of(i);
        return n > 0 && keep(o, i, value, err) ? -1 : n;
    }
    return 1;
}

int sbatch_options_take(struct sbatch_options *o, int argc, char *const *argv,
                        enum sbatch_use *ret_use, struct topt_error *err)
{
    *ret_use = SBATCH_KEEP;
    if (argc < 1 || argv[0][0] != '-' || !argv[0][1] || !strcmp(argv[0], "--"))
        return 0;
    if (!strncmp(argv[0], "--topt-", 7)) {
        *ret_use = SBATCH_TAKE;
        return take_ours(o, argc, argv, err);
    }
    return argv[0][1] == '-' ? take_long(o, argc, argv, ret_use, err)
                             : take_letters(o, argc, argv, ret_use, err);
}

int sbatch_options_environment(struct sbatch_options *o, struct topt_error *err)
{
    for (int i = 0; i < ROWS; i++) {
        const char *value = rows[i].variable ? getenv(rows[i].variable) : NULL;
        if (!value)
            continue;
        if (keep(o, i, value, err))
            return -1;
        if (use_of(i) == SBATCH_TAKE)
            unsetenv(rows[i].variable);
    }
    return 0;
}

int sbatch_options_set(struct sbatch_options *o, const char *name, const char *value)
{
    int i = row_of(name, strlen(name));
    if (i < 0)
        return -1;
    free(o->value[i]);
    o->value[i] = NULL;
    return value ? keep(o, i, value, NULL) : 0;
}

const char *sbatch_options_get(const struct sbatch_options *o, const char *name)
{
    int i = row_of(name, strlen(name));
    const char *value = i < 0 ? NULL : o->value[i];
    return value && !*value && !strcmp(name, "exclusive") ? name : value; /* as sbatch */
}
