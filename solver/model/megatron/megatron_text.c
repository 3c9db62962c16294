/* megatron_text.c - the words of a script that starts Megatron-LM, or of a file of
 * arguments.
 *
 * No shell is run.  Arguments are where they are written: in a command, an array, or a
 * quoted list ("--num-layers 24 --hidden-size 1024"), whose words count like any
 * others.  Variables are filled in where the text sets them to one value, and from
 * ${NAME:-value}; $((...)) is worked out of whole numbers. */
#include "megatron_text.h"
#include "topt_array.h"
#include "topt_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 1 << 16, MAX_DEPTH = 8 };

/* ---- words ------------------------------------------------------------------------- */

struct splitter {
    struct megatron_text *t;
    struct topt_text word;
    int depth; /* of parentheses in the word */
    int open;  /* a word has begun, perhaps an empty one in quotes */
};

static void end_word(struct splitter *s)
{
    struct megatron_text *t = s->t;
    if (s->open)
        t->failed |=
            t->nwords == MAX_WORDS || TOPT_ROOM(t->word, t->nwords, t->words_cap, 256);
    if (s->open && t->nwords < t->words_cap) {
        char *copy = strdup(s->word.s ? s->word.s : "");
        t->failed |= !copy || s->word.oom;
        if (copy)
            t->word[t->nwords++] = copy;
    }
    topt_text_fini(&s->word);
    s->word = (struct topt_text){0};
    s->depth = s->open = 0;
}

static void put(struct splitter *s, const char *bytes, size_t n)
{
    topt_text_put(&s->word, bytes, n);
    s->open = 1;
}

static int word_ends_in(const struct splitter *s, char c)
{
    return s->word.len && s->word.s[s->word.len - 1] == c;
}

static void split(struct splitter *s, const char *text, size_t len);

/* Up to the closing quote; returns how many bytes it takes with both quotes. */
static size_t quoted(struct splitter *s, const char *text, size_t len)
{
    size_t n = 1;
    while (n < len && text[n] != text[0])
        n += text[n] == '\\' && text[0] == '"' && n + 1 < len ? 2 : 1;
    n = n < len ? n : len - 1;
    struct topt_text inside = {0};
    topt_text_put(&inside, text + 1, n ? n - 1 : 0);
    const char *dashes = inside.s ? strstr(inside.s, "--") : NULL;
    /* a list of arguments */
    if (dashes && (dashes == inside.s || isspace((unsigned char)dashes[-1]))) {
        end_word(s);
        split(s, inside.s, inside.len);
        end_word(s);
    } else {
        put(s, inside.s ? inside.s : "", inside.len);
    }
    topt_text_fini(&inside);
    return n + 1;
}

/* "${NAME:-x}", "$(command)", "$((sum))": as it stands. */
static size_t substitution(struct splitter *s, const char *text, size_t len)
{
    char open = len > 1 ? text[1] : 0, close = open == '{' ? '}' : ')';
    size_t n = 1;
    if (open != '{' && open != '(') {
        put(s, text, 1);
        return 1;
    }
    for (int depth = 0; n < len; n++) {
        depth += text[n] == open;
        depth -= text[n] == close;
        if (depth == 0)
            break;
    }
    n = n < len ? n + 1 : len;
    put(s, text, n);
    return n;
}

/* Parentheses of a pattern of layers belong to the word; those of the shell end it. */
static void parenthesis(struct splitter *s, char c, char next)
{
    int begins = c == '(' && (s->depth || next == '[' || next == '(') &&
                 !(s->word.len && word_ends_in(s, '=') && next != '[');
    if (begins || (c == ')' && s->depth)) {
        put(s, &c, 1);
        s->depth += c == '(' ? 1 : -1;
    } else {
        end_word(s);
    }
}

static void split(struct splitter *s, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        char c = text[i], next = i + 1 < len ? text[i + 1] : 0;
        size_t took = 1;
        if (c == '#' && !s->open) {
            while (i < len && text[i] != '\n')
                i++;
            continue;
        }
        if (c == '\\' && (next == '\n' || next == '\r')) {
            end_word(s);
            took = 2;
        } else if (c == '\\' && next) {
            put(s, &next, 1);
            took = 2;
        } else if (c == '\'' || c == '"') {
            took = quoted(s, text + i, len - i);
        } else if (c == '$') {
            took = substitution(s, text + i, len - i);
        } else if (c == '(' || c == ')') {
            parenthesis(s, c, next);
        } else if (strchr(" \t\r\n;|&<>`", c)) {
            end_word(s);
        } else {
            put(s, &c, 1);
        }
        i += took;
    }
}

int topt_megatron_split(struct megatron_text *t, const char *text, size_t len,
                        struct topt_error *err)
{
    *t = (struct megatron_text){0};
    struct splitter s = {.t = t};
    split(&s, text, len);
    end_word(&s);
    return t->failed ? topt_fail(err, TOPT_ERR_LIMIT, "more than %d words", MAX_WORDS)
                     : 0;
}

void topt_megatron_fini(struct megatron_text *t)
{
    for (int i = 0; i < t->nwords; i++)
        free(t->word[i]);
    free(t->word);
}

/* ---- variables --------------------------------------------------------------------- */

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n;
}

/* The value that the text sets a variable to; NULL: none.  Two different ones are an
 * error. */
static int value_of(const struct megatron_text *t, const char *name, size_t n,
                    const char **ret, struct topt_error *err)
{
    *ret = NULL;
    for (int i = 0; i < t->nwords; i++) {
        const char *w = t->word[i];
        if (strncmp(w, name, n) || w[n] != '=' || name_length(w) != n)
            continue;
        if (*ret && strcmp(*ret, w + n + 1))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "the file sets $%.*s to '%.40s' and to '%.40s': leave one",
                             (int)n, name, *ret, w + n + 1);
        *ret = w + n + 1;
    }
    return 0;
}

static int fill(const struct megatron_text *t, const char *word, int depth,
                struct topt_text *out, struct topt_error *err);

/* ---- arithmetic -------------------------------------------------------------------- */

struct sum {
    const char *s;
    int bad;
};

static int64_t add_up(struct sum *x, int depth);

static int64_t factor(struct sum *x, int depth)
{
    char *end;
    x->s += strspn(x->s, " \t\n");
    if (*x->s == '(' && depth < MAX_DEPTH) {
        x->s++;
        int64_t v = add_up(x, depth + 1);
        x->bad |= *x->s != ')';
        x->s += !x->bad;
        return v;
    }
    int64_t v = strtol(x->s, &end, 10);
    x->bad |= end == x->s || v < 0 || v > INT32_MAX;
    x->s = end;
    return x->bad ? 0 : v;
}

/* Of numbers of 31 bits; a larger product is no size of a model. */
static int64_t multiply(struct sum *x, int depth)
{
    int64_t v = factor(x, depth);
    for (x->s += strspn(x->s, " \t\n"); !x->bad && *x->s && strchr("*/%", *x->s);
         x->s += strspn(x->s, " \t\n")) {
        char op = *x->s++;
        int64_t w = factor(x, depth);
        x->bad |= (op != '*' && !w) || v > INT32_MAX;
        if (!x->bad)
            v = op == '*' ? v * w : op == '/' ? v / w : v % w;
    }
    return v;
}

static int64_t add_up(struct sum *x, int depth)
{
    int64_t v = multiply(x, depth);
    while (!x->bad && (*x->s == '+' || *x->s == '-')) {
        char op = *x->s++;
        int64_t w = multiply(x, depth);
        v = op == '+' ? v + w : v - w;
        x->bad |= v < 0 || v > INT64_MAX / 4;
    }
    return v;
}

/* "$((A * B))", at '*word', whose names may stand without a dollar. */
static int fill_sum(const struct megatron_text *t, const char **word, int depth,
                    struct topt_text *out, struct topt_error *err)
{
    const char *from = *word + 3, *end = from;
    for (int open = 0; *end && (open || *end != ')'); end++)
        open += (*end == '(') - (*end == ')');
    end = end[0] && end[1] == ')' ? end : NULL;
    struct topt_text plain = {0}, filled = {0};
    for (const char *c = from; end && c < end;) {
        size_t n = name_length(c);
        int bare = n && !isdigit((unsigned char)*c) && c[-1] != '$' && c[-1] != '{';
        topt_text_add(&plain, "%s%.*s", bare ? "$" : "", (int)(n ? n : 1), c);
        c += n ? n : 1;
    }
    int rc = !end || plain.oom || depth == MAX_DEPTH ||
             fill(t, plain.s ? plain.s : "", depth + 1, &filled, err);
    struct sum x = {.s = filled.s ? filled.s : ""};
    int64_t v = rc ? 0 : add_up(&x, 0);
    rc |= x.bad || *x.s;
    topt_text_fini(&plain);
    topt_text_fini(&filled);
    if (rc)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is not worked out here: write the value", *word);
    topt_text_add(out, "%lld", (long long)v);
    *word = end + 2;
    return 0;
}

/* NAME=${NAME:-value}: what it is where nobody sets it before. */
static const char *own_default(const char *value, const char *name, size_t n, size_t *len)
{
    const char *from = value + 2 + n + 2, *end = strrchr(value, '}');
    if (strncmp(value, "${", 2) != 0 || strncmp(value + 2, name, n) != 0 ||
        (strncmp(value + 2 + n, ":-", 2) != 0 && strncmp(value + 2 + n, ":=", 2) != 0) ||
        !end || end[1])
        return NULL;
    *len = (size_t)(end - from);
    return from;
}

/* '*word' is at a '$'. */
static int fill_variable(const struct megatron_text *t, const char **word, int depth,
                         struct topt_text *out, struct topt_error *err)
{
    const char *s = *word + 1, *value, *own;
    int braced = *s == '{';
    size_t len;
    if (!strncmp(*word, "$((", 3))
        return fill_sum(t, word, depth, out, err);
    size_t n = name_length(s += braced);
    const char *after = s + n, *end = braced ? strchr(after, '}') : after;
    if (n == 0 || !end || depth == MAX_DEPTH)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "'%.60s' is not worked out here: write the "
                         "value",
                         *word);
    if (value_of(t, s, n, &value, err))
        return -1;
    int defaults = braced && (!strncmp(after, ":-", 2) || !strncmp(after, ":=", 2));
    *word = end + braced;
    if (value && (own = own_default(value, s, n, &len))) {
        while (len && (*own == '"' || *own == '\'')) {
            own++;
            len = len > 1 ? len - 2 : 0;
        }
        topt_text_put(out, own, len);
        return 0;
    }
    if (value)
        return fill(t, value, depth + 1, out, err);
    if (!defaults)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the file does not set $%.*s: write the value", (int)n, s);
    topt_text_put(out, after + 2, (size_t)(end - after - 2));
    return 0;
}

static int fill(const struct megatron_text *t, const char *word, int depth,
                struct topt_text *out, struct topt_error *err)
{
    while (*word) {
        if (*word == '$') {
            if (fill_variable(t, &word, depth, out, err))
                return -1;
        } else {
            topt_text_put(out, word++, 1);
        }
    }
    return 0;
}

char *topt_megatron_fill(const struct megatron_text *t, const char *word,
                         struct topt_error *err)
{
    struct topt_text out = {0};
    topt_text_put(&out, "", 0);
    if (fill(t, word, 0, &out, err)) {
        topt_text_fini(&out);
        return NULL;
    }
    char *copy = strdup(out.s ? out.s : "");
    topt_text_fini(&out);
    if (!copy)
        topt_nomem(err, "an argument");
    return copy;
}
