/* Native documents: every kind survives a round trip, and errors name the place. */
#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_json.h"
#include "topt_model.h"

/* A text with ' for " becomes a model or an error. */
static struct topt_model *parse(const char *quoted, struct topt_error *err)
{
    char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct topt_model *m = topt_model_import(text, strlen(text), "test", NULL, err);
    free(text);
    return m;
}

#define HEAD  "{'format':'topt-model/1','name':'m','batch':4,'seq':8,'ops':["
#define BAG   "{'name':'t','kind':'embedding_bag','lookups':1,'features':2,'tables':"
#define EMBED "{'name':'e','kind':'embedding','vocab':32,'features':16}"
#define LOSS  "{'name':'l','kind':'cross_entropy','inputs':['y']}"

static const char *const many_kinds = HEAD
    "{'name':'w','kind':'variable','vocab':32,'features':16,'init_std':0.02},"
    "{'name':'e','kind':'embedding','inputs':['w']},"
    "{'name':'p','kind':'position','inputs':['e'],'init_std':0.1},"
    "{'name':'n','kind':'norm','inputs':['p'],'rms':true,'eps':1e-6},"
    "{'name':'qkv','kind':'linear','inputs':['n'],'features':2,'features_unit':16,'layer'"
    ":0,'role':'qkv'},"
    "{'name':'qb','kind':'bias','inputs':['qkv'],'layer':0},"
    "{'name':'a','kind':'attention','inputs':['qb'],'heads':4,'kv_heads':2,'head_dim':4,"
    " 'causal':true,'rope_theta':500000.0},"
    "{'name':'o','kind':'linear','inputs':['a'],'features':16},"
    "{'name':'r','kind':'add','inputs':['p','o']},"
    "{'name':'gu','kind':'linear','inputs':['r'],'features':24,'features_unit':2},"
    "{'name':'sw','kind':'glu','inputs':['gu'],'activation':'silu'},"
    "{'name':'d','kind':'linear','inputs':['sw'],'features':16,'layer':3,'role':'down'},"
    "{'name':'u','kind':'unary','inputs':['d'],'activation':'silu'},"
    "{'name':'s','kind':'scale','inputs':['u'],'factor':-0.5,'shift':0.25},"
    "{'name':'hn','kind':'head_norm','inputs':['s'],'head_dim':1,'rms':true},"
    "{'name':'mul','kind':'mul','inputs':['hn','r']},"
    "{'name':'y','kind':'linear','inputs':['mul','w']}," LOSS "],'vocab':32}";

static int same_model(const struct topt_model *a, const struct topt_model *b)
{
    if (a->nops != b->nops || a->ntensors != b->ntensors || a->batch != b->batch ||
        a->seq != b->seq || a->vocab != b->vocab || a->loss != b->loss)
        return 0;
    for (int i = 0; i < a->nops; i++) {
        const struct topt_op *x = &a->op[i], *y = &b->op[i];
        if (x->spec != y->spec || strcmp(x->name, y->name) || x->layer != y->layer ||
            x->role != y->role || memcmp(x->attrs, y->attrs, sizeof *x->attrs) ||
            memcmp(x->count, y->count, TOPT_MAX_OPDIMS * sizeof *x->count) ||
            memcmp(x->operand, y->operand, TOPT_MAX_OPERANDS * sizeof *x->operand) ||
            memcmp(x->tensor, y->tensor, sizeof x->tensor))
            return 0;
    }
    return 1;
}

static void round_trip(void)
{
    struct topt_error err = {0};
    struct topt_model *m = parse(many_kinds, &err);
    if (!ok(m != NULL, "a model of many kinds: %s", err.text))
        return;
    json_t *doc = topt_model_to_json(m);
    struct topt_model *again = topt_model_from_json(doc, &err);
    ok(again && same_model(m, again), "written and read, it is the same model");
    json_t *doc2 = again ? topt_model_to_json(again) : NULL;
    char *one = topt_json_text(doc, 0), *two = topt_json_text(doc2, 0);
    ok(one && two && !strcmp(one, two), "written again, it is the same bytes");
    ok(again && again->op[4].attrs->features_unit == 16, "units survive");
    ok(again && again->op[3].layer == -1 && again->op[4].layer == 0 &&
           again->op[11].layer == 3 && again->op[12].layer == -1 && again->nlayers == 4,
       "an operator has the layer that it says, others none");
    struct topt_model *other = again ? topt_model_rebatch(again, 2, &err) : NULL;
    ok(other && other->op[3].layer == -1 && other->op[5].layer == 0 &&
           other->op[11].layer == 3,
       "layers survive another batch");
    ok(other && other->op[4].role == TOPT_ROLE_QKV &&
           other->op[5].role == TOPT_ROLE_NONE && other->op[11].role == TOPT_ROLE_DOWN,
       "and so do roles");
    topt_model_destroy(other);
    free(one);
    free(two);
    json_decref(doc);
    json_decref(doc2);
    topt_model_destroy(m);
    topt_model_destroy(again);
}

static void overrides(void)
{
    struct topt_error err = {0};
    static const char text[] =
        "{\"format\":\"topt-model/1\",\"name\":\"m\",\"batch\":4,\"seq\":8,\"ops\":["
        "{\"name\":\"y\",\"kind\":\"embedding\",\"vocab\":9,\"features\":9},"
        "{\"name\":\"l\",\"kind\":\"cross_entropy\",\"inputs\":[\"y\"]}]}";
    struct topt_import_options o = {.batch = 32, .seq = 5};
    struct topt_model *m = topt_model_import(text, strlen(text), "test", &o, &err);
    ok(m && m->batch == 32 && m->seq == 5 && m->vocab == 9, "batch and seq can be told");
    topt_model_destroy(m);
    o.batch = -3;
    ok(!topt_model_import(text, strlen(text), "test", &o, &err), "a negative batch: %s",
       err.text);
}

static void refuses(const char *text, const char *names, enum topt_err code)
{
    struct topt_error err = {0};
    struct topt_model *m = parse(text, &err);
    ok(!m && strstr(err.text, names), "names \"%s\": %s", names, err.text);
    is_int(err.code, code, "the code is %s", topt_err_name(code));
    ok(!strchr(err.text, '\n'), "in one line");
    topt_model_destroy(m);
}

static void errors(void)
{
    const enum topt_err inval = TOPT_ERR_INVAL;
    refuses(HEAD EMBED, "line 1", inval);
    refuses(HEAD "\n\n" EMBED ",", "line 3", inval);
    refuses(HEAD "]}", "loss", inval);
    refuses(HEAD "7]}", "ops[0]", inval);
    refuses(HEAD "{'kind':'add'}]}", "ops[0].name", inval);
    refuses(HEAD EMBED ",{'name':'x'}]}", "ops[1].kind", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'nonesuch'}]}", "ops[1].kind", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['z']}]}", "ops[1].inputs[0]",
            inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':'e'}]}", "ops[1].inputs",
            inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':[3]}]}", "ops[1].inputs[0]",
            inval);
    refuses(HEAD BAG "[3,0]}]}", "ops[0].tables[1]", inval);
    refuses(HEAD BAG "7}]}", "ops[0].tables must be an array", inval);
    refuses(HEAD BAG "[]}]}", "lookups, tables and features", inval);
    refuses(HEAD BAG "[2000000000,2000000000]}]}", "rows of all tables", TOPT_ERR_LIMIT);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['x']}]}", "ops[1].inputs[0]",
            inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['e'],'heads':2}]}",
            "ops[1].heads: unknown", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['e'],'layer':-1}]}",
            "ops[1].layer", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['e'],'layer':262144}]}",
            "ops[1].layer", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['e'],'role':'query'}]}",
            "ops[1].role: no role is \"query\"", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'bias','inputs':['e'],'role':'q'}]}",
            "ops[1].role is \"q\", which no operator of kind bias is", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'linear','inputs':['e'],'features':-2}]}",
            "ops[1].features", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'linear','inputs':['e']}]}", "ops[1]", inval);
    refuses(HEAD EMBED ",{'name':'e','kind':'bias','inputs':['e']}]}", "ops[1]", inval);
    refuses(HEAD EMBED ",{'name':'x','kind':'unary','inputs':['e']}]}",
            "ops[1].activation", inval);
    refuses(HEAD EMBED
            ",{'name':'x','kind':'unary','inputs':['e'],'activation':'sinus'}]}",
            "ops[1].activation", inval);
    refuses(HEAD EMBED "]}", "used by nobody", inval);
    refuses("{'format':'topt-model/2'}", "topt-model/2", inval);
    refuses("{'format':'topt-model/1','name':'m','batch':0}", "batch", inval);
    refuses("{'format':'topt-model/1','name':'m','batch':1,'seq':1,'ops':{}}", "ops",
            inval);
    refuses("{'format':'topt-model/1','names':'m'}", "names: unknown", inval);
    refuses(HEAD "{'name':'y','kind':'embedding','vocab':9,'features':9}," LOSS
                 "],'vocab':8}",
            "vocab is 8", inval);
    refuses(HEAD "{'name':'y','kind':'embedding','vocab':1099511627776,"
                 "'features':1099511627776}," LOSS "]}",
            "ops[0]", TOPT_ERR_LIMIT);
    refuses(HEAD "{'name':'w','kind':'variable','vocab':9,'features':9},"
                 "{'name':'y','kind':'embedding','inputs':['w'],'vocab':9}," LOSS "]}",
            "ops[1]: operator 'y' (embedding): the weight is a tensor", inval);
    refuses("{'a':1,'a':2}", "duplicate", inval);
    refuses("{}", "model_type", inval);
    refuses("", "empty", inval);
    refuses("  \n", "empty", inval);
    refuses("[1]", "neither", inval);
}

static void other_bytes(void)
{
    static const char onnx[] = "\x08\x07\x12\x07pytorch\x1a\x03";
    static const char tensors[] = "\x10\0\0\0\0\0\0\0{\"w\":{}}";
    struct topt_error err = {0};
    ok(!topt_model_import(onnx, sizeof onnx - 1, "m", NULL, &err) &&
           strstr(err.text, "ONNX"),
       "ONNX: %s", err.text);
    ok(!topt_model_import(tensors, sizeof tensors - 1, "m", NULL, &err) &&
           strstr(err.text, "safetensors"),
       "safetensors: %s", err.text);
    ok(!topt_model_load("/nonexistent/x.json", NULL, &err), "no file: %s", err.text);
    ok(!topt_model_load("", NULL, &err), "no name: %s", err.text);
}

int main(void)
{
    round_trip();
    overrides();
    errors();
    other_bytes();
    return done_testing();
}
