/* script.c - see script.h.  Words of a line are as a shell's: quotes and backslashes keep
 * blanks, '#' begins a remark. */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MOST = 64 };
static const char mark[] = "#SBATCH";

struct words {
    char *at[WORDS_MOST];
    int n;
    char *text; /* that holds them */
};

/* The next character of a word, without its quotes; 0 at the word's end. */
static const char *next_word(const char *p, const char *end, char **to)
{
    char quote = 0;
    for (; p < end && (quote || !isspace((unsigned char)*p)); p++) {
        if (!quote && (*p == '"' || *p == '\''))
            quote = *p;
        else if (quote && *p == quote)
            quote = 0;
        else if (*p == '\\' && quote != '\'' && p + 1 < end)
            *(*to)++ = *++p;
        else
            *(*to)++ = *p;
    }
    *(*to)++ = '\0';
    return p;
}

static int split(const char *line, size_t len, struct words *ret, struct topt_error *err)
{
    *ret = (struct words){.text = malloc(2 * len + 2)};
    if (!ret->text)
        return topt_nomem(err, "the script");
    char *to = ret->text;
    for (const char *p = line, *end = line + len;;) {
        while (p < end && isspace((unsigned char)*p))
            p++;
        if (p >= end || *p == '#' || ret->n == WORDS_MOST)
            return 0;
        ret->at[ret->n++] = to;
        p = next_word(p, end, &to);
    }
}

/* A word as the line needs it. */
static void add_word(const char *word, struct topt_text *out)
{
    int plain = *word && !word[strcspn(word, " \t\"'\\#")];
    topt_text_add(out, plain ? " %s" : " \"", word);
    for (const char *p = plain ? "" : word; *p; p++)
        topt_text_add(out, strchr("\"\\", *p) ? "\\%c" : "%c", *p);
    topt_text_add(out, plain ? "" : "\"");
}

static int take_line(const char *line, size_t len, struct sbatch_options *o,
                     struct topt_text *out, int *ret_changed, struct topt_error *err)
{
    struct words w;
    struct topt_text kept = {0};
    int rc = split(line + strlen(mark), len - strlen(mark), &w, err), taken = 0;
    for (int i = 0, n = 1; !rc && i < w.n; i += n) {
        enum sbatch_use use = SBATCH_TAKE;
        if (!strcmp(w.at[i], "hetjob") || !strcmp(w.at[i], "packjob"))
            rc = topt_fail(err, TOPT_ERR_INVAL, TOPT_ASK_NO_PARTS);
        n = rc ? 1 : sbatch_options_take(o, w.n - i, w.at + i, &use, err);
        if (n < 0)
            rc = -1;
        if (n == 0) /* no option: sbatch says so */
            n = 1;
        taken += use == SBATCH_TAKE;
        for (int k = i; !rc && use == SBATCH_KEEP && k < i + n; k++)
            add_word(w.at[k], &kept);
    }
    if (taken)
        *ret_changed = 1;
    if (!taken)
        topt_text_put(out, line, len);
    else if (kept.len)
        topt_text_add(out, "%s%s", mark, kept.s);
    else
        topt_text_add(out, "#");
    out->oom |= kept.oom;
    topt_text_fini(&kept);
    free(w.text);
    return rc;
}

/* A line before the first command: blank, or a remark. */
static int is_early(const char *line, size_t len)
{
    while (len && isspace((unsigned char)*line))
        line++, len--;
    return !len || *line == '#';
}

int sbatch_script_read(const char *text, size_t len, struct sbatch_options *o,
                       struct topt_text *out, int *ret_changed, struct topt_error *err)
{
    const char *p = text, *end = text + len;
    *ret_changed = 0;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        if (!is_early(p, n))
            break;
        int is_ours = n > strlen(mark) && !memcmp(p, mark, strlen(mark)) &&
                      isspace((unsigned char)p[strlen(mark)]);
        if (is_ours && take_line(p, n, o, out, ret_changed, err))
            return -1;
        if (!is_ours)
            topt_text_put(out, p, n);
        if (stop)
            topt_text_put(out, "\n", 1);
        p += n + (stop != NULL);
    }
    topt_text_put(out, p, (size_t)(end - p));
    return out->oom ? topt_nomem(err, "the script") : 0;
}
