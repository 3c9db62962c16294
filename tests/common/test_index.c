/* test_index.c - numbers of things by their hashes, where many things share a hash, and many hashes a chain. */
#include "tap.h"
#include "topt_index.h"

enum { THINGS = 1000, HASHES = 300 };

/* Far apart, so that they differ only beyond what chooses a chain. */
static uint64_t hash_of(int i)
{
    return (uint64_t)(i % HASHES) << 32;
}

/* Are all things of a hash found, each once, and no others? */
static int finds_all(const struct topt_index *x, int hash)
{
    int want = THINGS / HASHES + (hash < THINGS % HASHES), found = 0, last = THINGS;
    for (int i = topt_index_first(x, hash_of(hash)); i >= 0; i = topt_index_next(x, i)) {
        if (i >= last || i % HASHES != hash)
            return 0;
        last = i;
        found++;
    }
    return found == want;
}

int main(void)
{
    struct topt_index x = {0};
    int in_order = 1, all = 1;
    is_int(topt_index_first(&x, 0), -1, "an empty index has nothing");
    for (int i = 0; i < THINGS; i++)
        in_order &= topt_index_add(&x, hash_of(i)) == i;
    ok(in_order, "things are numbered in the order in which they come");
    for (int h = 0; h < HASHES; h++)
        all &= finds_all(&x, h);
    ok(all, "all things of a hash are found, each once");
    is_int(topt_index_first(&x, 1), -1, "a hash that was not added has nothing");
    topt_index_fini(&x);
    is_int(topt_index_first(&x, hash_of(1)), -1, "a closed index is empty");
    return done_testing();
}
