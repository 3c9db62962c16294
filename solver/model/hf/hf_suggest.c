/* hf_suggest.c - what a config of an unknown family may be: a slip of a known name, or
 * something that a known family reads as it is. */
#include "hf_suggest.h"
#include "hf_complete.h"
#include "hf_families.h"
#include "topt_near.h"

#include <stdio.h>
#include <string.h>

enum { SLIPS = 2 };

/* Types that transformers has and no reader here takes, and why: what they do for which
 * there is no operator, loss or reader. */
static const struct unread {
    const char *why, *types; /* between blanks */
} unread[] = {
    {"it is an object detector, whose loss matches boxes",
     " conditional_detr d_fine dab-detr deformable_detr deimv2 detr grounding-dino "
     "lw_detr "
     "mm-grounding-dino omdet-turbo owlv2 owlvit pp_doclayout_v2 pp_doclayout_v3 rf_detr "
     "rt_detr rt_detr_v2 table-transformer yolos "},
    {"it is a segmentation model",
     " clipseg edgetam edgetam_video eomt mask2former maskformer maskformer-swin "
     "oneformer "
     "sam sam2 sam2_hiera_det_model sam2_video sam2_vision_model sam3 sam3_lite_text "
     "sam3_lite_text_text_model sam3_tracker sam3_tracker_video sam3_video "
     "sam3_vision_model sam3_vit_model sam_hq sam_hq_vision_model sam_vision_model "
     "seggpt "
     "upernet "},
    {"it estimates depth",
     " chmv2 depth_anything depth_pro dpt glpn prompt_depth_anything zoedepth "},
    {"it matches keypoints of two images",
     " efficientloftr lightglue superglue superpoint "},
    {"it is an audio codec or a vocoder",
     " dac encodec higgs_audio_v2_tokenizer mimi speecht5_hifigan univnet "
     "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_decoder "
     "vibevoice_acoustic_tokenizer_encoder xcodec "},
    {"it generates speech or music",
     " bark clvp csm dia fastspeech2_conformer fastspeech2_conformer_with_hifigan "
     "higgs_audio_v2 moshi musicgen musicgen_melody pop2piano qwen2_5_omni "
     "qwen3_omni_moe "
     "speecht5 vits "},
    {"its audio encoder is not read",
     " audio-spectrogram-transformer audioflamingo3_encoder clap cohere_asr "
     "gemma3n_audio "
     "gemma4_audio glmasr_encoder kyutai_speech_to_text lasr_ctc lasr_encoder moonshine "
     "parakeet_ctc parakeet_encoder parakeet_rnnt parakeet_tdt pe_audio_encoder "
     "qwen2_audio_encoder qwen3_omni_moe_thinker seamless_m4t seamless_m4t_v2 sew sew-d "
     "speech_to_text voxtral_encoder voxtral_realtime voxtral_realtime_encoder "
     "wav2vec2-bert wav2vec2-conformer "},
    {"it forecasts time series",
     " autoformer informer patchtsmixer patchtst time_series_transformer timesfm "
     "timesfm2_5 "},
    {"it is a video model",
     " timesformer tvp video_llama_3_vision videomae vivit vjepa2 xclip "},
    {"it is a policy for robots or games", " decision_transformer pi0 "},
    {"its network for documents is not read",
     " donut-swin lilt markuplm mgp-str pix2struct pp_formulanet pp_lcnet "
     "pp_ocrv5_mobile_det "
     "pp_ocrv5_mobile_rec pp_ocrv5_server_rec pp_ocrv6_small_det pp_ocrv6_small_rec "
     "pp_ocrv6_tiny_rec textnet trocr udop uvdoc "},
    {"its vision tower, or the projector behind it, is not read",
     " aimv2 aimv2_text_model aimv2_vision_model align align_text_model altclip "
     "altclip_text_model blip blip_2_qformer blip_text_model bridgetower "
     "bridgetower_text_model "
     "chinese_clip chinese_clip_text_model chinese_clip_vision_model colmodernvbert "
     "colqwen2 ernie4_5_vl_moe ernie4_5_vl_moe_text evolla "
     "exaone4_5_vision flava flava_text_model gemma4_vision git glm4v_moe_vision "
     "glm4v_vision "
     "glm_image_vision glm_image_vqmodel glm_ocr_vision groupvit groupvit_text_model "
     "idefics ijepa kosmos-2 kosmos_2_text_model kosmos_2_5_text_model "
     "kosmos-2.5 lxmert minimax_m3_vl mlcd mlcd_vision_model paddleocr_vl "
     "paddleocr_vl_text "
     "perceiver pixio qianfan_ocr_vision qwen3_5_moe_vision qwen3_5_vision "
     "qwen3_vl_moe_vision qwen3_vl_vision vilt visual_bert "},
    {"its stages of images at falling resolution are not read",
     " bit cvt dinov3_convnext focalnet hgnet_v2 hiera imagegpt levit mobilevit "
     "mobilevitv2 poolformer pvt pvt_v2 swiftformer swin2sr swinv2 vitdet timm_wrapper "
     "timm_backbone "},
    {"its kind of attention, or what stands in place of it, is not read",
     " blt canine convbert cpmant doge fnet funnel gpt_neox_japanese hrm_text jetmoe "
     "longcat_flash luke minimax_m3_vl_text mobilebert openai_privacy_filter "
     "recurrent_gemma reformer rembert "
     "roc_bert splinter squeezebert xlstm xmod zamba zamba2 "},
    {"its kind of encoder and decoder is not read",
     " bigbird_pegasus encoder-decoder fsmt led nllb-moe pegasus_x prophetnet rag "
     "t5gemma "
     "t5gemma2 vision-encoder-decoder speech-encoder-decoder vision-text-dual-encoder "},
    {NULL, NULL}};

const char *topt_hf_why_unread(const char *type)
{
    char word[90];
    snprintf(word, sizeof word, " %.80s ", type);
    for (const struct unread *u = unread; u->why; u++)
        if (strstr(u->types, word))
            return u->why;
    return NULL;
}

static void near_type(const char *type, char *ret, size_t size)
{
    struct topt_near near = {.name = type};
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        topt_near_try(&near, f->model_type);
    const char *close = near.distance <= SLIPS ? topt_near_name(&near) : NULL;
    snprintf(ret, size, "%s", close ? close : "");
}

/* Names of architectures share most of their letters, so that few slips are allowed. */
static void near_architecture(const char *name, char *ret, size_t size)
{
    int best = SLIPS + 1;
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        for (const struct hf_task *t = f->tasks; t->suffix; t++) {
            char full[120];
            struct topt_near near = {.name = name};
            snprintf(full, sizeof full, "%s%s", f->prefix, t->suffix);
            topt_near_try(&near, full);
            if (near.best && near.distance < best) {
                best = near.distance;
                snprintf(ret, size, "%s", full);
            }
        }
}

/* Another number in a name is another version, and another part another model: no slips. */
static int same_version(const char *a, const char *b)
{
    static const char digits[] = "0123456789_-.";
    for (;; a++, b++) {
        a += strcspn(a, digits);
        b += strcspn(b, digits);
        if (*a != *b || !*a)
            return *a == *b;
    }
}

/* The family whose class knows the most of the config's keys, if those are nearly all, and
 * that reads every size in it; the first of several. */
static const char *fitting(const json_t *doc, topt_hf_try *parameters_as, double *ret)
{
    enum { NEARLY = 5, MOST_FAMILIES = 400 };
    json_t *keys = topt_hf_keys_of_classes(doc);
    int n = (int)json_array_size(keys), known[MOST_FAMILIES], count = 0, usual = -1;
    const char *best = NULL;
    for (; topt_hf_families[count].model_type && count < MOST_FAMILIES; count++) {
        const struct hf_family *f = &topt_hf_families[count];
        known[count] = f->like || n <= NEARLY ? -1 : topt_hf_knows(keys, f->model_type);
        usual = strcmp(f->model_type, "llama") ? usual : count;
    }
    /* most that are new are built like it */
    if (usual >= 0 && known[usual] >= n - n / NEARLY)
        known[usual] = n + 1;
    for (int most = n + 1; !best && most > 0 && most >= n - n / NEARLY; most--)
        for (int i = 0; !best && i < count; i++) {
            const char *type = topt_hf_families[i].model_type;
            if (known[i] == most && (*ret = parameters_as(doc, type)) > 0)
                best = type;
        }
    json_decref(keys);
    return best;
}

int topt_hf_refuse_draft(const json_t *doc, struct topt_error *err)
{
    static const struct {
        const char *part, *kind;
    } parts[] = {
        {"Eagle", "EAGLE"},   {"EAGLE", "EAGLE"},   {"Medusa", "Medusa"},
        {"DFlash", "DFlash"}, {"Draft", "a draft"}, {"Speculator", "a speculator"},
        {"NextN", "MTP"},     {"MTP", "MTP"},       {NULL, NULL}};
    static const char *const keys[] = {"draft_vocab_size",   "eagle_config",
                                       "dflash_config",      "medusa_num_heads",
                                       "speculators_config", NULL};
    const char *name =
        json_string_value(json_array_get(json_object_get(doc, "architectures"), 0));
    const char *kind = NULL;
    for (int i = 0; name && !kind && parts[i].part; i++)
        kind = strstr(name, parts[i].part) ? parts[i].kind : NULL;
    for (int i = 0; !kind && keys[i]; i++)
        kind = json_object_get(doc, keys[i]) ? keys[i] : NULL;
    if (!kind || json_is_object(json_object_get(doc, "vision_config")))
        return 0;
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "\"%.60s\" drafts tokens for another model (%s), whose hidden states "
        "it reads, and is no model alone: give the config.json of the model "
        "that it drafts for",
        name ? name : "the config", kind);
}

void topt_hf_refuse_unknown(const json_t *doc, const char *type, const char *architecture,
                            topt_hf_try *parameters_as, struct topt_error *err)
{
    char slip[120] = "", suggestion[200] = "";
    int by_type = type || !architecture;
    const char *name = type ? type : architecture ? architecture : "null";
    const char *why = type ? topt_hf_why_unread(type) : NULL;
    double parameters = 0;
    if (why) {
        topt_fail(err, TOPT_ERR_USAGE, "model_type \"%.40s\" is not read: %s", type, why);
        return;
    }
    if (by_type)
        near_type(name, slip, sizeof slip);
    else
        near_architecture(name, slip, sizeof slip);
    if (!same_version(name, slip))
        slip[0] = '\0';
    const char *like =
        slip[0] || !parameters_as ? NULL : fitting(doc, parameters_as, &parameters);
    if (slip[0])
        snprintf(suggestion, sizeof suggestion, "; did you mean %s?", slip);
    else if (like)
        snprintf(
            suggestion, sizeof suggestion,
            "; its keys are those of %s, as which it has %.4g %s parameters: if that is "
            "right, say --as %s",
            like, parameters / (parameters < 1e9 ? 1e6 : 1e9),
            parameters < 1e9 ? "million" : "billion", like);
    topt_fail(err, TOPT_ERR_USAGE, "%s \"%.40s\" is not known%s",
              by_type ? "model_type" : "architecture", name, suggestion);
}
