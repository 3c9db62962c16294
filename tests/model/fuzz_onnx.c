/* Whatever bytes come as ONNX, importing gives a model or one line of error. */
#include "mutate.h"
#include "onnx_graph.h"
#include "tap.h"
#include "topt_model.h"

enum { ROUNDS = 12000, CAP = 16384 };

static int imported, refused, wrong;

static void try(const char *bytes, size_t len)
{
    char *exact = malloc(len + 1);
    struct topt_error err = {0};
    memcpy(exact, bytes, len);
    struct topt_model *m = topt_model_import(exact, len, "fuzz", NULL, &err);
    free(exact);
    imported += m != NULL;
    refused += !m;
    wrong +=
        !m && (!err.text[0] || err.code == TOPT_OK || strchr(err.text, '\n') != NULL);
    topt_model_destroy(m);
}

int main(int argc, char **argv)
{
    static char bytes[CAP];
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    struct graph seed[3];
    if (!reads_onnx())
        skip_all("this topt reads no ONNX");
    graph_block(&seed[0]);
    graph_images(&seed[1]);
    graph_steps(&seed[2]);
    for (int s = 0; s < 3; s++) {
        for (size_t cut = 3; cut < seed[s].file.len; cut += 3)
            try(seed[s].file.s, cut);
        for (int i = 0; i < rounds; i++) {
            size_t len = seed[s].file.len;
            memcpy(bytes, seed[s].file.s, len);
            for (size_t n = mutate_below(3) + 1; n > 0 && len > 8; n--)
                len = mutate_once(bytes, len, CAP);
            bytes[0] = 8; /* else it is not taken for ONNX */
            try(bytes, len);
        }
        topt_text_fini(&seed[s].file);
    }
    printf("# %d imported, %d refused\n", imported, refused);
    is_int(wrong, 0, "every answer is a model or one line");
    ok(imported > rounds / 20 && refused > rounds / 10, "both were seen often");
    return done_testing();
}
