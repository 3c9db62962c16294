/* Whatever document comes, loading gives a profile or one line of error, and a profile has
 * positive prices that grow with the bytes. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "mutate.h"
#include "tap.h"
#include "topt_json.h"

enum { ROUNDS = 6000, CAP = 65536 };

static int loaded, refused, wrong;

static void price(const struct topt_hw *hw)
{
    int nodes = topt_hw_max_nodes(hw), per_node = topt_hw_gpus_per_node(hw);
    struct topt_group g = {nodes, per_node, 1};
    for (int c = 0; c < TOPT_COLLECTIVE_COUNT; c++) {
        int64_t before = 0;
        for (int k = 0; k < 62; k += 3) {
            int64_t ns =
                topt_hw_collective_ns(hw, (enum topt_collective)c, g, (int64_t)1 << k);
            wrong += ns < before;
            before = ns;
        }
    }
    wrong += topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, INT64_MAX, 1, 8) < 1;
}

static void try(const char *text, size_t len)
{
    char *exact = malloc(len ? len : 1);
    struct topt_error err = {0};
    memcpy(exact, text, len);
    json_t *doc = topt_json_parse(exact, len, "fuzz", &err);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, &err) : NULL;
    free(exact);
    json_decref(doc);
    if (hw) {
        loaded++;
        price(hw);
    } else {
        refused++;
        wrong += !err.text[0] || err.code == TOPT_OK || strchr(err.text, '\n') != NULL;
    }
    topt_hw_destroy(hw);
}

int main(void)
{
    static const char *const seeds[] = {"lab-cpu", "v100-dgx1-2x8", "h200-dgx",
                                        "tpu-v2-v3"};
    char text[CAP];
    for (int s = 0; s < 4; s++) {
        size_t len;
        const char *seed = topt_hw_shipped_text(seeds[s], &len);
        for (int i = 0; i < ROUNDS; i++)
            try(text, mutate(seed, text, CAP));
    }
    printf("# %d loaded, %d refused\n", loaded, refused);
    is_int(wrong, 0, "every answer is a profile with sane prices or one line");
    ok(loaded > ROUNDS / 10 && refused > ROUNDS / 10, "both were seen often");
    return done_testing();
}
