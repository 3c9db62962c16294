/* main.c - `topt sbatch`: sizes a job as the plugin does, and becomes sbatch.
 *
 * For a site whose administrator has no plugin installed.  What sbatch is asked is read
 * first (options.h, script.h), the same code as the plugin's sizes it (sizing.h), and
 * sbatch gets its own options as they were, but those that say a job's shape: these are
 * given anew, and are taken out of the script's lines and of the environment, so that
 * none contradicts. The plan is in the environment, which sbatch hands to the job. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "local.h"
#include "options.h"
#include "script.h"
#include "sizing.h"

enum { SCRIPT_MOST = 64 << 20 };

/* As sbatch does with -Q: errors alone. */
static void say_errors(int is_error, const char *line)
{
    if (is_error)
        fprintf(stderr, "%s\n", line);
}

/* ---- the job's environment and options, as sizing.h reaches them ----------------------------- */

static int env_get(void *ctx, const char *name, char *buf, size_t size)
{
    (void)ctx;
    const char *value = getenv(name);
    return value && (size_t)snprintf(buf, size, "%s", value) < size ? 0 : -1;
}

static void env_set(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    setenv(name, value, 1);
}

static void env_unset(void *ctx, const char *name)
{
    (void)ctx;
    unsetenv(name);
}

static int host_set(void *opt, const char *name, const char *value, bool early)
{
    (void)early;
    return sbatch_options_set(opt, name, value);
}

static char *host_get(void *opt, const char *name)
{
    return (char *)(uintptr_t)sbatch_options_get(opt, name);
}

static bool host_isset(void *opt, const char *name)
{
    return sbatch_options_get(opt, name) != NULL;
}

static bool host_reset(void *opt, const char *name)
{
    return !sbatch_options_set(opt, name, NULL);
}

/* ---- what is submitted ----------------------------------------------------------------------- */

struct submission {
    struct sbatch_options options;
    char **argv; /* sbatch's; words are borrowed, but those of its shape */
    int argc;
    int script; /* where the script stands in our own argv; 0: none, or on standard input */
    const char *instead; /* the path of another text of it; NULL: as it is */
    char place[40];
};

/* The options of the command line: kept ones go to sbatch.  Returns where they end, or -1. */
static int read_line(struct submission *s, int argc, char **argv, int is_kept,
                     struct topt_error *err)
{
    int i = 1, n;
    for (; i < argc; i += n) {
        enum sbatch_use use;
        if (strcmp(argv[i], ":") == 0)
            return topt_fail(err, TOPT_ERR_INVAL, TOPT_ASK_NO_PARTS);
        n = sbatch_options_take(&s->options, argc - i, argv + i, &use, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        for (int k = 0; k < n && is_kept && use == SBATCH_KEEP; k++)
            s->argv[s->argc++] = argv[i + k];
    }
    return i < argc && !strcmp(argv[i], "--") ? i + 1 : i;
}

/* The script in a file without a name, which sbatch opens by its place. */
static int put_script(struct submission *s, const char *text, size_t len,
                      struct topt_error *err)
{
    int fd = memfd_create("script", 0);
    for (size_t done = 0; fd >= 0 && done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            return topt_fail(err, TOPT_ERR_IO, "can't keep the script: %s",
                             strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd < 0)
        return topt_fail(err, TOPT_ERR_IO, "can't keep the script: %s", strerror(errno));
    snprintf(s->place, sizeof s->place, "/proc/self/fd/%d", fd);
    s->instead = s->place;
    return 0;
}

/* The script's options, and the script without those that topt sets. */
static int read_script(struct submission *s, const char *path, struct topt_error *err)
{
    struct topt_text other = {0};
    size_t len = 0;
    int is_other = 0;
    char *text = topt_read_file(path ? path : "-", SCRIPT_MOST, &len, err);
    int rc =
        text ? sbatch_script_read(text, len, &s->options, &other, &is_other, err) : -1;
    if (!rc && (is_other || !path))
        rc = put_script(s, other.s ? other.s : "", other.len, err);
    topt_text_fini(&other);
    free(text);
    return rc;
}

/* Options are read twice: where the script stands is known after the first time, and what
 * the command line says wins over it. */
static int read_all(struct submission *s, int argc, char **argv, struct topt_error *err)
{
    int at = read_line(s, argc, argv, 0, err);
    if (at < 0)
        return -1;
    int wraps = sbatch_options_get(&s->options, "wrap") != NULL;
    sbatch_options_fini(&s->options);
    s->script = at < argc && !wraps ? at : 0;
    if (!wraps && read_script(s, s->script ? argv[at] : NULL, err))
        return -1;
    if (sbatch_options_environment(&s->options, err))
        return -1;
    return read_line(s, argc, argv, 1, err) < 0 ? -1 : at;
}

/* The shape's options. */
static int add_shape(struct submission *s, struct topt_error *err)
{
    static const char *const names[] = {TOPT_HOST_TOUCHED};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = sbatch_options_get(&s->options, names[i]);
        char *word = NULL;
        if (!value)
            continue;
        if (asprintf(&word, "--%s=%s", names[i], value) < 0)
            return topt_nomem(err, names[i]);
        s->argv[s->argc++] = word;
    }
    const char *comment = sbatch_options_get(&s->options, "comment");
    struct topt_elastic e;
    char *word = NULL;
    if (!comment || !topt_elastic_read(comment, &e)) /* it stays where it stands */
        return 0;
    if (asprintf(&word, "--comment=%s", comment) < 0)
        return topt_nomem(err, "--comment");
    s->argv[s->argc++] = word;
    return 0;
}

/* Its job is called as the script, and its arguments follow. */
static int add_script(struct submission *s, int argc, char **argv, int at,
                      struct topt_error *err)
{
    const char *path = s->script ? argv[at] : "sbatch", *slash = strrchr(path, '/');
    char *name = NULL;
    if (s->instead && !sbatch_options_get(&s->options, "job-name") &&
        !getenv("SBATCH_JOB_NAME")) {
        if (asprintf(&name, "--job-name=%s", slash ? slash + 1 : path) < 0)
            return topt_nomem(err, path);
        s->argv[s->argc++] = name;
    }
    if (s->instead)
        s->argv[s->argc++] = s->place;
    for (int i = s->instead && s->script ? at + 1 : at; i < argc; i++)
        s->argv[s->argc++] = argv[i];
    return 0;
}

/* "slurm 23.02.7" and "slurm-wlm 22.05.8" are 2302 and 2205. */
static int sbatch_version(void)
{
    FILE *in = popen("sbatch --version 2>/dev/null", "r");
    int major = 0, minor = 0;
    if (!in)
        return 0;
    if (fscanf(in, "%*s %d.%d", &major, &minor) != 2)
        major = minor = 0;
    pclose(in);
    return major * 100 + minor;
}

static int size(struct submission *s, struct topt_error *err)
{
    const struct topt_env env = {NULL, env_get, env_set, env_unset};
    const struct topt_host host = {.opt = &s->options,
                                   .set = host_set,
                                   .get = host_get,
                                   .isset = host_isset,
                                   .reset = host_reset};
    const struct topt_sizing sizing = {&host, &env, sbatch_plan_here, sbatch_version};
    struct topt_ask *ask = &s->options.ask;
    struct topt_site site;
    if (sbatch_options_get(&s->options, "quiet"))
        topt_say_by(say_errors);
    if (getenv("SLURM_JOB_ID"))
        topt_mend_forget(&env);
    if (!topt_ask_any(ask))
        return 0;
    if (topt_ask_environment(ask, err) || topt_site_read(0, NULL, &site, err) ||
        topt_ask_check(ask, err))
        return topt_size_refuse(err);
    return topt_size(&sizing, ask, &site);
}

static const char usage[] =
    "Usage: topt sbatch [OPTIONS OF sbatch] [--topt-...] SCRIPT [ARGUMENTS]\n"
    "Sizes the job as topt's plugin of Slurm does, where that is not installed, and "
    "becomes "
    "sbatch.\n\n"
    "Examples:\n"
    "    topt sbatch --topt-hw=a100-80-dgx --topt-model=config.json --topt-batch=64 "
    "train.sh\n"
    "        a job with the fewest GPUs that hold it\n\n"
    "Options:\n";

static void help(void)
{
    fputs(usage, stdout);
    for (int i = 0; i < TOPT_ASK_COUNT; i++) {
        const struct topt_ask_row *row = &topt_ask_table[i];
        printf("  --%s%s%s\n      %s\n", row->option, row->arg ? "=" : "",
               row->arg ? row->arg : "", row->help);
    }
}

/* argv: topt-sbatch sbatch ... */
int main(int argc, char **argv)
{
    struct topt_error err = {0};
    struct submission s = {.argc = 1};
    argc--, argv++;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        help();
        return 0;
    }
    s.argv = calloc((size_t)argc + 32, sizeof *s.argv);
    if (!s.argv)
        return 1;
    s.argv[0] = (char *)(uintptr_t) "sbatch";
    int at = read_all(&s, argc, argv, &err);
    if (at < 0)
        return topt_size_refuse(&err) ? 1 : 0;
    int rc = size(&s, &err);
    if (rc)
        return rc < 0;
    if (add_shape(&s, &err) || add_script(&s, argc, argv, at, &err))
        return topt_size_refuse(&err) ? 1 : 0;
    sbatch_options_fini(&s.options);
    execvp("sbatch", s.argv);
    fprintf(stderr, "topt: can't start sbatch: %s\n", strerror(errno));
    return 1;
}
