/* topt_cli.h - the subcommands of topt-solver.  argv[0] is the subcommand; each returns the
 * exit status: 0 ok, 1 failed, 2 usage, 3 infeasible. */
#ifndef TOPT_CLI_H
#define TOPT_CLI_H

int topt_cmd_plan(int argc, char **argv);
int topt_cmd_frontier(int argc, char **argv);
int topt_cmd_compare(int argc, char **argv);
int topt_cmd_explain(int argc, char **argv);
int topt_cmd_launch(int argc, char **argv);
int topt_cmd_evaluate(int argc, char **argv);
int topt_cmd_simulate(int argc, char **argv);
int topt_cmd_sample(int argc, char **argv);
int topt_cmd_costgraph(int argc, char **argv);
int topt_cmd_calibrate(int argc, char **argv);
int topt_cmd_hw(int argc, char **argv);
int topt_cmd_import(int argc, char **argv);
int topt_cmd_inspect(int argc, char **argv);
int topt_cmd_study(int argc, char **argv);
int topt_cmd_cluster(int argc, char **argv);

#endif
