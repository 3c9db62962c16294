/* newton_schulz.c - what it takes to make matrices orthogonal, as the optimizer Muon does (Jordan et al., 2024,
 * kellerjordan.github.io/posts/muon).
 *
 * Five Newton-Schulz iterations in bf16.  With n the smaller side of a matrix and m the larger, an iteration is X X' and
 * its square, then a product with X: 4 n n m + 2 n n n operations.  The Gram form (DeepSpeed edaa722,
 * runtime/zero/muon/original_muon.py) iterates on n x n alone: four products with the larger side and fourteen without it. */
#include "topt_hw.h"
#include "topt_minmax.h"

enum { ITERATIONS = 5, GRAM_WIDE = 2, GRAM_SQUARE = 14 };

struct topt_time topt_hw_orthogonal(const struct topt_hw *hw, enum topt_dtype t,
                                    int64_t rows, int64_t columns, int gram, int devices)
{
    int64_t n = topt_min(rows, columns), m = topt_max(rows, columns);
    int is_gram = gram && m > n;
    const struct {
        int64_t inner, wide, times;
    } products[] = {{m, n, is_gram ? GRAM_WIDE : ITERATIONS},
                    {n, m, is_gram ? GRAM_WIDE : ITERATIONS},
                    {n, n, is_gram ? GRAM_SQUARE : ITERATIONS}};
    struct topt_time sum = {0, TOPT_BASIS_ANALYTIC};
    t = topt_hw_has_dtype(hw, TOPT_BF16) ? TOPT_BF16 : t;
    for (int i = 0; i < 3; i++) {
        int64_t inner = products[i].inner, wide = products[i].wide;
        int64_t bytes = topt_dtype_bytes(t) * (n * inner + inner * wide + n * wide);
        struct topt_time once =
            topt_hw_product(hw, t, 2 * n * inner * wide, n * wide, bytes, devices);
        sum.ns += products[i].times * once.ns;
        sum.basis = once.basis;
    }
    return sum;
}
