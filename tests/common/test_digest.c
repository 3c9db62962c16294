/* test_digest.c - SHA-256 in its forms, against the values that FIPS 180-4's examples state. */
#include "tap.h"
#include "topt_digest.h"
#include "topt_json.h"

#include <string.h>

static void test_whole(void)
{
    char hex[TOPT_DIGEST_HEX], id[TOPT_ID];
    static char million[1000000];
    topt_sha256_hex("abc", 3, hex);
    ok(!strcmp(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
       "abc: %s", hex);
    topt_sha256_hex("", 0, hex);
    ok(!strcmp(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
       "nothing: %s", hex);
    memset(million, 'a', sizeof million);
    topt_sha256_hex(million, sizeof million, hex);
    ok(!strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
       "a million: %s", hex);
    topt_id('m', "abc", 3, id);
    ok(!strcmp(id, "m-ba7816bf8f01cfea414140de5dae2223"), "an id: %s", id);
}

static void test_pieces(void)
{
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char whole[TOPT_DIGEST_HEX], parts[TOPT_DIGEST_HEX];
    int bad = 0;
    topt_sha256_hex(text, strlen(text), whole);
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        struct topt_digest d;
        topt_digest_begin(&d);
        topt_digest_add(&d, text, cut);
        topt_digest_add(&d, text + cut, strlen(text) - cut);
        topt_digest_end_hex(&d, parts);
        bad += strcmp(whole, parts) != 0;
    }
    is_int(bad, 0, "in two pieces, wherever it is cut");
    ok(!strncmp(whole, "248d6a61d20638b8", 16), "56 bytes: %s", whole);
}

static void test_documents(void)
{
    char one[TOPT_ID], two[TOPT_ID], plain[TOPT_ID];
    json_t *a = json_pack("{s:i, s:[i,i]}", "x", 1, "y", 2, 3),
           *b = json_pack("{s:[i,i], s:i}", "y", 2, 3, "x", 1);
    is_int(topt_json_id(a, 'p', one), 0, "a document's id");
    is_int(topt_json_id(b, 'p', two), 0, "with its keys in another order");
    ok(!strcmp(one, two), "is the same: %s", one);
    topt_id('p', "{\"x\":1,\"y\":[2,3]}", 17, plain);
    ok(!strcmp(one, plain), "and that of its compact text with sorted keys");
    json_decref(a);
    json_decref(b);
}

static void test_looks(void)
{
    static const char *const yes[] = {"p-0123456789abcdef",
                                      "m-ba7816bf8f01cfea414140de5dae2223",
                                      "h-00000000000000000"};
    static const char *const no[] = {"",
                                     "h",
                                     "h-",
                                     "h-100",
                                     "h-0123456789abcde",
                                     "x-0123456789abcdef",
                                     "p-0123456789abcdeF",
                                     "m-0123456789abcdef ",
                                     "m_0123456789abcdef"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        ok(topt_is_id(yes[i]), "'%s' is written as ids are", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        ok(!topt_is_id(no[i]), "'%s' is not", no[i]);
}

int main(void)
{
    test_whole();
    test_pieces();
    test_documents();
    test_looks();
    return done_testing();
}
