/* "topt solve" alone, so that its tests need no other part. */
#include "topt_search_cmd.h"

int main(int argc, char **argv)
{
    return topt_cmd_solve(argc, argv);
}
