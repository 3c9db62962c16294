/* sanitized.h - is this built with a sanitizer, whose own work limits of the process would break? */
#ifndef TOPTD_SANITIZED_H
#define TOPTD_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#endif
