/* muon.c - the optimizer Muon: of each matrix of a layer one momentum, which is made orthogonal before it is added;
 * AdamW for embedding, head and vectors.  Frameworks, read in public source:
 *   Megatron-LM d98e8a6, core/optimizer: with the distributed optimizer each matrix is whole on one data parallel rank,
 *       by the work of its products (layer_wise_optimizer.py), and gathered over tensor parallel ranks, all of which
 *       make it orthogonal (--muon-tp-mode duplicated, the default).
 *   DeepSpeed edaa722, runtime/zero/muon: ZeRO-1 and ZeRO-2, on the rank that has the matrix; the Gram form.  Its ZeRO-3
 *       gathers momenta and updates in each micro-batch (stage3.py), and torchtitan's DistMuon (b5bcd76,
 *       distributed/flex_shard/dist_muon.py) is told a layout for each matrix by Kimi K2.7's configurations alone: neither is here.
 *   PyTorch v2.14.1, torch/optim/_muon.py: whole on every replica.
 * Ranks are taken to have equal parts of the products; with fewer matrices than ranks, some have none and others one. */
#include "muon.h"

int topt_muon_updates(const struct topt_settings *s, const struct topt_model *m, int op,
                      int operand)
{
    int64_t rows, columns = 0;
    if (s->optimizer == TOPT_MUON && m->unit[op] >= 0)
        topt_operand_matrix(&m->op[op], operand, m->op[op].count, &rows, &columns);
    return columns > 1;
}

int64_t topt_muon_ns(const struct topt_costing *k, int op, int operand,
                     const int64_t *len, int64_t numbers)
{
    const struct topt_op *o = &k->model->op[op];
    int64_t rows, columns, muon = k->settings->muon;
    topt_operand_matrix(o, operand, len, &rows, &columns);
    double matrices = (double)numbers / (double)(rows * columns);
    if (muon & TOPT_MUON_WHOLE)
        topt_operand_matrix(o, operand, o->count, &rows, &columns);
    struct topt_time each =
        topt_hw_orthogonal(k->hw, k->settings->dtype, rows, columns,
                           (muon & TOPT_MUON_GRAM) != 0, k->mesh->devices);
    return (int64_t)((double)each.ns * matrices);
}
