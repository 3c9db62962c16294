/* submit.c - sizing a job in sbatch, salloc or srun (sizing.h), whose options the plugin
 * finds there.
 *
 * SPANK has no call to change a job's size.  The commands keep their options in the global
 * 'opt' and export it together with slurm_option_set and its relatives.  None of this is
 * promised by Slurm: it is looked up at run time, and where it is missing the job is left
 * as it was asked. */
#include "roles.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sizing.h"

extern char **environ;

static void say(int is_error, const char *line)
{
    if (is_error)
        slurm_error("%s", line);
    else
        slurm_info("%s", line);
}

static int find(const char *name, void *ret_function)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol ? 0 : -1;
}

/* -1 when this command doesn't export what is needed. */
static int find_host(struct topt_host *ret)
{
    *ret = (struct topt_host){0};
    find("slurm_xfree",
         &ret->release); /* where it isn't there, texts are left to the command's end */
    if (find("opt", &ret->opt) || find("slurm_option_set", &ret->set) ||
        find("slurm_option_get", &ret->get) || find("slurm_option_isset", &ret->isset) ||
        find("slurm_option_reset", &ret->reset))
        return -1;
    return 0;
}

static int process_get(void *ctx, const char *name, char *buf, size_t size)
{
    (void)ctx;
    const char *value = getenv(name);
    return value && (size_t)snprintf(buf, size, "%s", value) < size ? 0 : -1;
}

static void process_set(void *ctx, const char *name, const char *value)
{
    (void)ctx;
    setenv(name, value, 1);
}

static void process_unset(void *ctx, const char *name)
{
    (void)ctx;
    unsetenv(name);
}

static const struct topt_env process_env = {NULL, process_get, process_set,
                                            process_unset};

/* Slurm hands plugin options on to jobs by these variables; a job's own sbatch would take
 * them for its options. */
static const char *inherited_option(void)
{
    static const char *const prefixes[] = {"SLURM_SPANK__SLURM_SPANK_OPTION_topt_",
                                           "_SLURM_SPANK_OPTION_topt_"};
    for (char **e = environ; e && *e; e++) {
        for (int i = 0; i < 2; i++) {
            if (strncmp(*e, prefixes[i], strlen(prefixes[i])) == 0 && strchr(*e, '='))
                return *e;
        }
    }
    return NULL;
}

static void drop_inherited_options(void)
{
    char name[256];
    const char *entry;
    while ((entry = inherited_option())) {
        size_t n = strcspn(entry, "=");
        if (n >= sizeof name)
            return;
        memcpy(name, entry, n);
        name[n] = '\0';
        unsetenv(name);
    }
}

void topt_submit_begin(void)
{
    if (!getenv("SLURM_JOB_ID"))
        return;
    drop_inherited_options();
    if (spank_context() == S_CTX_ALLOCATOR)
        topt_mend_forget(&process_env);
}

/* What to do with a job for which 'err' was found before its options were looked at. */
static int unplanned(const struct topt_host *host, const struct topt_ask *ask,
                     const struct topt_error *err)
{
    struct topt_bounds bounds;
    int known = host && !topt_host_bounds(host, &bounds, NULL);
    return topt_size_not(ask, known ? &bounds : NULL, err);
}

static int slurm_version; /* of this process's Slurm, as topt_sizing has it */

static int version_of(spank_t spank)
{
    char *major = NULL, *minor = NULL; /* Slurm's own texts */
    if (spank_get_item(spank, S_SLURM_VERSION_MAJOR, &major) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_SLURM_VERSION_MINOR, &minor) != ESPANK_SUCCESS ||
        !major || !minor)
        return 0;
    return (int)(strtol(major, NULL, 10) * 100 + strtol(minor, NULL, 10));
}

static int known_version(void)
{
    return slurm_version;
}

/* Size the job whose options 'host' has; NULL: they can't be changed. */
static int submit(spank_t spank, const struct topt_host *host, int is_part,
                  struct topt_ask *ask, int argc, char **argv)
{
    struct topt_error err = {0};
    struct topt_site site;
    if (spank_context() == S_CTX_LOCAL &&
        (getenv("SLURM_JOB_ID") || (host && topt_host_is_step(host)))) {
        slurm_error("topt: --%s sizes jobs, not the steps in them: passed over",
                    topt_ask_any(ask));
        return 0;
    }
    if (topt_ask_environment(ask, &err))
        return topt_size_refuse(&err);
    int wrong =
        topt_site_read(argc, argv, &site, &err) || topt_site_usual(&site, ask, &err);
    struct topt_error of_site = err;
    if (topt_ask_check(ask, &err))
        return topt_size_refuse(&err);
    if (is_part) {
        topt_fail(&err, TOPT_ERR_INVAL, TOPT_ASK_NO_PARTS);
        return topt_size_refuse(&err);
    }
    if (wrong)
        return unplanned(host, ask, &of_site);
    if (!host) {
        topt_fail(&err, TOPT_ERR_INTERNAL, "this Slurm doesn't let a plugin size a job");
        return unplanned(NULL, ask, &err);
    }
    slurm_version = version_of(spank);
    const struct topt_sizing sizing = {
        .host = host, .env = &process_env, .version = known_version};
    return topt_size(&sizing, ask, &site);
}

int topt_submit(spank_t spank, struct topt_ask *ask, int argc, char **argv)
{
    static int calls;
    struct topt_host_texts texts = {.n = 0};
    struct topt_host host;
    topt_say_by(say);
    int is_part = ++calls > 1; /* each part of a heterogeneous job comes here */
    if (!topt_ask_any(ask))
        return 0;
    int found = !find_host(&host);
    host.texts = &texts;
    int rc = submit(spank, found ? &host : NULL, is_part, ask, argc, argv);
    topt_host_drop(&host);
    return rc;
}
