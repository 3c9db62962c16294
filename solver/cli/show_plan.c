/* show_plan.c - see topt_show_plan.h. */
#include "topt_show_plan.h"

#include <stdio.h>

#include "topt_answer_text.h"

static void put(struct topt_text *t)
{
    fputs(t->oom ? "no memory to show it\n" : t->s ? t->s : "", stdout);
    topt_text_fini(t);
}

void topt_show_plan(const json_t *answer, const char *path)
{
    struct topt_text t = {0};
    topt_text_of_plan(&t, answer, path);
    put(&t);
}

void topt_show_question(const json_t *answer)
{
    struct topt_text t = {0};
    topt_text_of_question(&t, answer);
    put(&t);
}

void topt_show_lacks(const json_t *answer)
{
    struct topt_text t = {0};
    topt_text_of_lacks(&t, answer);
    put(&t);
}

void topt_show_rows(const json_t *rows, const json_t *job, enum topt_rows_by by)
{
    struct topt_text t = {0};
    topt_text_of_rows(&t, rows, job, by);
    put(&t);
}

static void put_words(const char *heading, const char *text)
{
    struct topt_text t = {0};
    topt_text_of_words(&t, heading, text);
    put(&t);
}

void topt_show_lacking(const struct topt_model *m, int own)
{
    if (m->plan_only && own) {
        struct topt_text t = {0};
        topt_text_add(&t, "cannot train this model: it has no kernel for %s",
                      m->plan_only);
        put_words("topt run", t.s ? t.s : "");
        topt_text_fini(&t);
    }
}
