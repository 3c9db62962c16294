/* hf_read.h - what the readers of Hugging Face configs share, and the table of families.
 * Private to model/. */
#ifndef TOPT_HF_READ_H
#define TOPT_HF_READ_H

#include "hf_arch.h"

/* Whole numbers of at least 1 that must be there; that may be left out.  The tables
 * end with an empty one. */
int topt_hf_sizes(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                  struct topt_error *err);
int topt_hf_sizes_or(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                     struct topt_error *err);

/* What configs of decoders and encoders call their sizes today. */
extern const struct hf_size topt_hf_usual_sizes[];

/* ... and those of an encoder with a decoder, as in BART and Whisper. */
extern const struct hf_size topt_hf_two_stacks[];

/* A flag that the operators have nothing for must be as 'want'. */
int topt_hf_refuse_flag(const json_t *doc, const char *key, int want, const char *why,
                        struct topt_error *err);
/* Mark the layers that know no positions: those with a 0 in "no_rope_layers" (which says,
 * in spite of its name, who has rotary positions), else each "no_rope_layer_interval"-th.
 * 'every' is taken where the config does not name an interval; 0: none. */
int topt_hf_unturned(const json_t *doc, int64_t every, struct hf_arch *a,
                     struct topt_error *err);
int topt_hf_divides(const char *what, int64_t n, const char *by, int64_t d,
                    struct topt_error *err);
int topt_hf_activation(const json_t *doc, const char *key, int *ret,
                       struct topt_error *err);
int topt_hf_activation_named(const char *key, const char *name, int *ret,
                             struct topt_error *err);

/* The same for a config; one that no operator computes is planned as its nearest. */
int topt_hf_activation_of(const char *key, const char *name, struct hf_arch *a,
                          struct topt_error *err);

/* Without its own key a head is its share of the width. */
int topt_hf_set_heads(struct hf_arch *a, struct topt_error *err);

/* One word of the config must be this one. */
int topt_hf_expect(const json_t *doc, const char *key, const char *want,
                   struct topt_error *err);

/* "sliding_window", keys that queries of local layers see; null: all. */
int topt_hf_window(const json_t *doc, struct hf_arch *a, struct topt_error *err);

/* Which layers are local: "layer_types" where the config has it, else those from
 * 'first' on but every 'full_every'-th (0: none is left out). */
int topt_hf_local_layers(const json_t *doc, int64_t first, int64_t full_every,
                         struct hf_arch *a, struct topt_error *err);

/* A list of whole numbers, one a stage, from 1 to 'max'; left alone where it is missing. */
int topt_hf_stage_list(const json_t *doc, const char *key, int64_t max, struct hf_arch *a,
                       int64_t *ret, struct topt_error *err);

/* Numbers of classes from their names, or from "num_labels". */
void topt_hf_classes(const json_t *doc, struct hf_arch *a);

/* No token is dropped there: each expert has its fair share, unless more slots are asked
 * for. */
void topt_hf_give_slots(struct hf_arch *a);

/* Say of the model what is left out. */
void topt_hf_note(struct hf_arch *a, const char *what);
/* ... where some of what is added to the residual is dropped. */
#define TOPT_HF_DROPS                                                                    \
    "of dropout the masks that frameworks keep are counted, nothing else"

#endif
