/* hf_read_each.h - readers of decoders whose layers differ one by one.  Private to model/. */
#ifndef TOPT_HF_READ_EACH_H
#define TOPT_HF_READ_EACH_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_puzzle, topt_hf_read_decilm, topt_hf_read_openelm;

#endif
