/* papers_claim.c - rows of docs/PAPERS.md, and how many of them hold. */
#include "papers_claim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS = 24 };

static struct section {
    char title[96];
    int held[PAPERS_KINDS], all[PAPERS_KINDS];
} section[SECTIONS];
static int nsections;

static const struct {
    const char *name, *means;
} kinds[PAPERS_KINDS] = {
    [PAPERS_COUNTED] = {"counted",
                        "the paper prints the number, and nothing here was fitted to it"},
    [PAPERS_ONE_SIDED] =
        {"one-sided", "the paper prints words or a bound; the band is our reading of it"},
    [PAPERS_REWRITTEN] =
        {"rewritten", "it follows from what the paper prints, and the sentence is ours"},
    [PAPERS_BUILT] = {"by construction", "it can't come out otherwise"},
    [PAPERS_CALIBRATED] = {"calibrated",
                           "numbers that it rests on were fitted to the same figures"},
};

void papers_head(const char *title)
{
    if (nsections == SECTIONS)
        abort();
    snprintf(section[nsections++].title, sizeof section[0].title, "%s", title);
    printf("\n## %s\n\n| where | the paper | band | here | as it says |\n"
           "|---|---|---|---|---|\n",
           title);
}

TOPT_PRINTF(3, 0)
static void begin(struct papers_row row, const char *band, const char *fmt, va_list ap)
{
    printf("| %s | %s | %s | ", row.where, row.says, band);
    vprintf(fmt, ap);
}

static void end(struct papers_row row, int holds)
{
    struct section *s = &section[nsections - 1];
    if (row.kind == PAPERS_COUNTED)
        printf(" | %s |\n", holds ? "yes" : "**no**");
    else
        printf(" | (%s) %s |\n", holds ? "yes" : "no", kinds[row.kind].name);
    s->all[row.kind]++;
    s->held[row.kind] += holds;
}

TOPT_PRINTF(5, 0)
static void number(struct papers_row row, double value, double low, double high,
                   const char *fmt, va_list ap)
{
    char band[64];
    snprintf(band, sizeof band, "%.3g to %.3g", low, high);
    begin(row, band, fmt, ap);
    end(row, value >= low && value <= high);
}

void papers_number(struct papers_row row, double value, double low, double high,
                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    number(row, value, low, high, fmt, ap);
    va_end(ap);
}

void papers_near(struct papers_row row, double value, double printed, double share,
                 const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    number(row, value, (1 - share) * printed, (1 + share) * printed, fmt, ap);
    va_end(ap);
}

void papers_words(struct papers_row row, int holds, const char *band, const char *fmt,
                  ...)
{
    va_list ap;
    if (row.kind == PAPERS_COUNTED) /* words have no band that is the paper's */
        abort();
    va_start(ap, fmt);
    begin(row, band, fmt, ap);
    va_end(ap);
    end(row, holds);
}

void papers_counts(const char *begins)
{
    int held = 0, counted = 0, others = 0;
    for (int i = 0; i < nsections; i++) {
        const struct section *s = &section[i];
        if (strncmp(s->title, begins, strlen(begins)) != 0)
            continue;
        held += s->held[PAPERS_COUNTED];
        counted += s->all[PAPERS_COUNTED];
        for (int k = PAPERS_COUNTED + 1; k < PAPERS_KINDS; k++)
            others += s->all[k];
    }
    printf("%d of %d counted, %d not counted", held, counted, others);
}

void papers_kinds_said(void)
{
    printf("\n## The verdicts\n\n| kind | which claims | of them as the paper says |\n"
           "|---|---|---|\n");
    for (int k = 0; k < PAPERS_KINDS; k++) {
        int held = 0, all = 0;
        for (int i = 0; i < nsections; i++) {
            held += section[i].held[k];
            all += section[i].all[k];
        }
        printf("| %s | %s | %d of %d |\n", kinds[k].name, kinds[k].means, held, all);
    }
}
