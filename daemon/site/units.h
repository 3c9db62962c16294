/* units.h - times, sizes and lists as Slurm writes them.  Thread safety: reentrant. */
#ifndef TOPTD_SITE_UNITS_H
#define TOPTD_SITE_UNITS_H

#include <stdint.h>

/* Slurm's times: "90" minutes, "1:30:00", "2-12", "1-00:00:00"; "UNLIMITED" and the like
 * are 0.  -1: another text. */
int64_t site_seconds(const char *text);
/* Slurm's sizes in MiB: "4000", "4G"; -1: another text. */
int64_t site_mebibytes(const char *text);
/* Is 'word' one of 'list', which has commas between? */
int site_has_word(const char *list, const char *word);

#endif
