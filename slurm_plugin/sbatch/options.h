/* options.h - sbatch's options as `topt sbatch` reads them: of the script's #SBATCH
 * lines, of the environment and of the command line, of which the later win.
 *
 * All that is needed of most is whether a value follows; those that say a job's shape are
 * kept, as text, and given to sbatch anew.  Thread safety: none; one owner at a time. */
#ifndef TOPT_SBATCH_OPTIONS_H
#define TOPT_SBATCH_OPTIONS_H

#include "ask.h"
#include "topt_error.h"
#include "topt_text.h"

enum { SBATCH_OPTIONS_MOST = 128 };

struct sbatch_options {
    char *value
        [SBATCH_OPTIONS_MOST]; /* by row of the table; owned, NULL where it isn't given */
    struct topt_ask ask;       /* --topt-* */
};
void sbatch_options_fini(struct sbatch_options *o);

/* What becomes of an option's words: they are sbatch's as they are, or taken out, as
 * topt's own and those that it sets. */
enum sbatch_use { SBATCH_KEEP, SBATCH_TAKE };

/* Take the option that begins at argv[0] of 'argc' words: how many words it has, 0 where
 * it is none (the script, "--", the end), or -1.  Several letters in one word are kept
 * together, so a value of any of them is known but stays. */
int sbatch_options_take(struct sbatch_options *o, int argc, char *const *argv,
                        enum sbatch_use *ret_use, struct topt_error *err) TOPT_MUST_CHECK;

/* What $SBATCH_* say; such variables of options that topt sets are taken out of the environment. */
int sbatch_options_environment(struct sbatch_options *o,
                               struct topt_error *err) TOPT_MUST_CHECK;

/* By name; as struct topt_host has them. */
int sbatch_options_set(struct sbatch_options *o, const char *name, const char *value);
const char *sbatch_options_get(const struct sbatch_options *o, const char *name);

#endif
