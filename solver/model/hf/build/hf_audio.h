/* hf_audio.h - audio encoders over the waveform.  Private to model/. */
#ifndef TOPT_HF_AUDIO_H
#define TOPT_HF_AUDIO_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_wav2vec2, topt_hf_read_hubert, topt_hf_read_wavlm,
    topt_hf_read_data2vec_audio;
void topt_hf_build_frames(struct hf_builder *b);

#endif
