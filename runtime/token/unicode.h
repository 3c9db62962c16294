/* unicode.h - inside the tokenizer: what normalizers do to characters, by utf8proc. */
#ifndef TOPT_TOKEN_UNICODE_H
#define TOPT_TOKEN_UNICODE_H

#include "topt_error.h"
#include "topt_text.h"

/* Done in this order. */
enum topt_unicode_change {
    TOPT_CLEAN = 1,            /* control characters go, white space becomes blanks */
    TOPT_SPACE_CHINESE = 2,    /* blanks around each ideograph */
    TOPT_DECOMPOSE = 4,        /* NFD */
    TOPT_COMPATIBLE = 8,       /* with it: NFKD */
    TOPT_DROP_NONSPACING = 16, /* marks of category Mn go */
    TOPT_DROP_MARKS = 32,      /* all marks go */
    TOPT_LOWER = 64,
    TOPT_COMPOSE = 128, /* with DECOMPOSE: NFC, or NFKC */
};

/* Appends what becomes of valid UTF-8; INVAL where topt was built without utf8proc. */
int topt_unicode_change(unsigned changes, const char *s, size_t len, struct topt_text *to,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* Fails where it would. */
int topt_unicode_check(struct topt_error *err) TOPT_MUST_CHECK;
/* Bytes of the first grapheme cluster, at least 1 where len is. */
size_t topt_grapheme(const char *s, size_t len);

#endif
