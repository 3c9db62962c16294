/* old_module.c - a module of another version of topt, which must be refused unread. */
extern const int topt_module[1];
__attribute__((visibility("default"))) const int topt_module[1] = {1};
