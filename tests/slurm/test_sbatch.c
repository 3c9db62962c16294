/* test_sbatch.c - sbatch's options as `topt sbatch` reads them: which words are a value,
 * and a script's lines. */
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "script.h"
#include "tap.h"

/* One option at the beginning of these words: how many it takes, and what becomes of it. */
static void takes(int want, enum sbatch_use want_use, const char *name, const char *value,
                  const char *first, const char *second)
{
    char *words[] = {strdup(first), second ? strdup(second) : NULL};
    struct sbatch_options o = {0};
    struct topt_error err = {0};
    enum sbatch_use use;
    int n = sbatch_options_take(&o, second ? 2 : 1, words, &use, &err);
    const char *got = name ? sbatch_options_get(&o, name) : NULL;
    ok(n == want && use == want_use && (!name || (got && !strcmp(got, value))),
       "'%s' '%s': %d words, %s %s", first, second ? second : "", n, got ? got : "-",
       err.text);
    sbatch_options_fini(&o);
    free(words[0]);
    free(words[1]);
}

static void test_words(void)
{
    takes(0, SBATCH_KEEP, NULL, NULL, "script.sh", "-N1");
    takes(0, SBATCH_KEEP, NULL, NULL, "--", "x");
    takes(0, SBATCH_KEEP, NULL, NULL, "-", "x");
    takes(2, SBATCH_TAKE, "nodes", "2", "-N", "2");
    takes(1, SBATCH_TAKE, "nodes", "2-4", "-N2-4", "x");
    takes(1, SBATCH_TAKE, "nodes", "2", "--nodes=2", "x");
    takes(2, SBATCH_TAKE, "ntasks-per-node", "4", "--tasks-per-node", "4");
    takes(2, SBATCH_TAKE, "partition", "a,b", "--part", "a,b");
    takes(2, SBATCH_KEEP, "time", "60", "-t", "60");
    takes(1, SBATCH_KEEP, "exclusive", "exclusive", "--exclusive", "script.sh");
    takes(1, SBATCH_KEEP, "exclusive", "user", "--exclusive=user", "script.sh");
    takes(2, SBATCH_KEEP, "comment", "--gpus=2", "--comment", "--gpus=2");
    takes(2, SBATCH_KEEP, "output", "x", "-Qo", "x");
    takes(1, SBATCH_KEEP, "output", "x", "-Qox", "y");
    takes(-1, SBATCH_KEEP, NULL, NULL, "-N", NULL);
    takes(-1, SBATCH_KEEP, NULL, NULL, "-QN2", NULL);
    takes(1, SBATCH_KEEP, NULL, NULL, "--no-such=1", "x");
    takes(1, SBATCH_KEEP, NULL, NULL, "--gpus-per", "x"); /* three begin so */
    takes(-1, SBATCH_TAKE, NULL, NULL, "--topt-nosuch=1", "x");
    takes(2, SBATCH_TAKE, NULL, NULL, "--topt-batch", "8");
    takes(1, SBATCH_TAKE, NULL, NULL, "--topt-dry-run", "8");
    takes(-1, SBATCH_TAKE, NULL, NULL, "--topt-batch", NULL);
    takes(1, SBATCH_TAKE, NULL, NULL, "--topt-elastic", "8");
    takes(1, SBATCH_TAKE, NULL, NULL, "--topt-elastic=1,2", "8");
}

static void script(const char *text, const char *want, const char *name,
                   const char *value)
{
    struct sbatch_options o = {0};
    struct topt_text out = {0};
    struct topt_error err = {0};
    int is_other = 0;
    int rc = sbatch_script_read(text, strlen(text), &o, &out, &is_other, &err);
    const char *got = sbatch_options_get(&o, name);
    ok(!rc && !strcmp(out.s ? out.s : "", want) &&
           is_other == (strcmp(text, want) != 0) &&
           (value ? got && !strcmp(got, value) : !got),
       "a script of %zu bytes, %s: %s", strlen(text), name, got ? got : "-");
    sbatch_options_fini(&o);
    topt_text_fini(&out);
}

static void test_scripts(void)
{
    script("#!/bin/sh\n#SBATCH -t 5 # five\ntrue\n",
           "#!/bin/sh\n#SBATCH -t 5 # five\ntrue\n", "time", "5");
    script("#!/bin/sh\n#SBATCH -N 2 -t 5 --comment='a b'\ntrue",
           "#!/bin/sh\n#SBATCH -t 5 \"--comment=a b\"\ntrue", "nodes", "2");
    script("#SBATCH --gres=gpu:2,nic:1\n", "#\n", "gres", "gpu:2,nic:1");
    script("true\n#SBATCH -N 2\n", "true\n#SBATCH -N 2\n", "nodes", NULL);
    script("#SBATCHX -N 2\n", "#SBATCHX -N 2\n", "nodes", NULL);
    script("#SBATCH # -N 2\n", "#SBATCH # -N 2\n", "nodes", NULL);
    script("#SBATCH --partition \"a b\\\"\" -Q\n", "#SBATCH -Q\n", "partition", "a b\"");
    script("", "", "nodes", NULL);
    struct sbatch_options o = {0};
    struct topt_text out = {0};
    struct topt_error err = {0};
    int is_other;
    static const char het[] = "#SBATCH -n 1\n#SBATCH hetjob\n";
    ok(sbatch_script_read(het, sizeof het - 1, &o, &out, &is_other, &err) == -1,
       "parts: %s", err.text);
    sbatch_options_fini(&o);
    topt_text_fini(&out);
}

int main(void)
{
    test_words();
    test_scripts();
    return done_testing();
}
