/* hw_shipped.h - the profiles inside the library; not for other folders. */
#ifndef TOPT_HW_SHIPPED_H
#define TOPT_HW_SHIPPED_H

#include <stddef.h>

/* The text of a shipped profile, or NULL.  Static. */
const char *topt_hw_shipped_text(const char *name, size_t *ret_len);

#endif
