-- What was priced of a problem stays in the worker that priced it, and is priced again where another needs it.
DROP TABLE frontiers;
