/* documents.c - from the bytes of a client to a document with a name and an id. */
#include "documents.h"
#include "one_line.h"
#include "planner.h"
#include "topt_json.h"
#include "topt_label.h"

#include <stdlib.h>
#include <string.h>

json_t *parse_body(const char *body, size_t len, const char *what,
                   const char **ret_source, struct topt_error *err)
{
    *ret_source = "body";
    if (!len)
        topt_fail(err, TOPT_ERR_INVAL, "%s is empty", what);
    else
        return topt_json_parse(body, len, what, err);
    return NULL;
}

/* Of the first byte that is no blank: no JSON of a model starts with it. */
static int is_foreign(const char *body, size_t len)
{
    size_t at = 0;
    while (at < len && strchr(" \t\r\n", body[at]) && body[at])
        at++;
    return at < len && (!body[at] || !strchr("{[\"", body[at]));
}

json_t *parse_model(const char *body, size_t len, const char *what, int64_t batch,
                    int64_t seq, const char **ret_source, struct topt_error *err)
{
    if (!is_foreign(body, len))
        return parse_body(body, len, what, ret_source, err);
    *ret_source = "model";
    return planner_model_document(body, len, what, batch, seq, err);
}

static const char *text_of(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));
    return s && *s ? s : NULL;
}

void model_name(const json_t *doc, const char *given, char ret[MODEL_NAME])
{
    const char *own = text_of(doc, "name"), *name = given && *given ? given : own;
    if (own && text_of(doc, "format")) { /* a native document: it says so itself */
        one_line(own, ret, MODEL_NAME);
        return;
    }
    char label[TOPT_LABEL];
    name = name ? name : text_of(doc, "_name_or_path");
    name = name ? name : text_of(doc, "model_type");
    topt_label(name ? name : "model", label);
    one_line(label, ret, MODEL_NAME);
}

char *canonical(const json_t *doc, char kind, char ret_id[TOPT_ID])
{
    (void)topt_json_lacked();
    char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
    if (topt_json_lacked()) {
        free(text);
        return NULL;
    }
    if (text)
        topt_id(kind, text, strlen(text), ret_id);
    return text;
}
