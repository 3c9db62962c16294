/* cli.h - the commands of topt-runtime. */
#ifndef TOPT_RUNTIME_CLI_H
#define TOPT_RUNTIME_CLI_H

/* Exit status of the process. */
int topt_cmd_run(int argc, char **argv);
int topt_cmd_profile(int argc, char **argv);
int topt_cmd_tokenize(int argc, char **argv);
int topt_cmd_generate(int argc, char **argv);

#endif
