/* hf_name_rows.h - which operand of which operator a tensor of a Hugging Face checkpoint is.
 * Private to model/. */
#ifndef TOPT_HF_NAME_ROWS_H
#define TOPT_HF_NAME_ROWS_H

/* What of an operand a tensor is. */
enum hf_piece {
    WHOLE,
    TURNED, /* the transpose */
    QUERY,  /* of a key-value head's queries, key and value the first numbers, */
    KEY,    /* those after them, */
    VALUE,  /* and the last; the operator "attention" beside it knows how many */
    FIRST,  /* one of each pair: what gates */
    SECOND,
    KERNEL,      /* a convolution's, which is flat here */
    BATCHED,     /* of three dimensions, the first ones of 1 */
    EXPERT,      /* of each expert a tensor */
    EXPERT_GATE, /* the same of one of each pair */
    EXPERT_UP,
    EXPERTS_TURNED, /* of all experts one, each transposed */
    EXPERTS_ALL,    /* ... as they are */
    EXPERTS_PAIRED, /* ... of each all that gates, then all that is gated */
    /* Of a tensor that holds several parameters, in the order of the rows here: */
    RUN,
    LOW, /* of each unit the first half */
    HIGH,
    BY_KEY, /* of each group of keys of a delta rule its part of each */
    BY_HEAD /* of each head of queries */
};

/* '#' in the names of tensor and operator is a layer, '@' in the tensor's an expert. */
struct hf_name_row {
    const char *tensor, *op, *operand;
    enum hf_piece piece;
};

/* As an extra: layers behind the model's last, which predict further tokens. */
#define HF_FURTHER_LAYERS "model.layers."

enum { HF_NAME_TABLES = 4 };

/* The rows of families; 'extra' are starts of names that may be there and are not the
 * model's: tables that are tied, heads for another task, layers that are left out. */
struct hf_naming {
    const char *families, *base; /* names between blanks; what all names begin with */
    const struct hf_name_row *rows[HF_NAME_TABLES];
    const char *extra[4];
};

/* NULL for a family whose names are not known. */
const struct hf_naming *topt_hf_naming(const char *family);
/* The i-th rows, or NULL; 'ranked': queries are made by way of a lower rank. */
const struct hf_name_row *topt_hf_name_rows(const struct hf_naming *n, int i, int ranked);

#endif
