-- A store of schema 4: that of schema-3.sql, brought up to date, and a frontier.
BEGIN TRANSACTION;
CREATE TABLE answers (model TEXT NOT NULL REFERENCES models (id), hw TEXT NOT NULL, question TEXT NOT NULL,
    feasible INTEGER NOT NULL, plan TEXT REFERENCES plans (id), doc TEXT NOT NULL, search_ns INTEGER NOT NULL,
    created INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, used INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (model, hw, question)) STRICT;
INSERT INTO answers VALUES('m-ef03a6596dee8972f68c685fe649b6f3','h-d84291b02772c8fef846ab3138fda025','mode=a;',1,'p-5a4229a035f958ad','{"feasible":true,"gpus":4,"nodes":1,"time_ns":90675895,"strategy":"FSDP2 over 4 GPUs"}',7,1700000005,349,1700000005);
INSERT INTO answers VALUES('m-ef03a6596dee8972f68c685fe649b6f3','h-d84291b02772c8fef846ab3138fda025','mode=b;',0,NULL,'{"feasible":false,"why":"nothing fits"}',8,1700000006,302,1700000006);
INSERT INTO answers VALUES('m-ef03a6596dee8972f68c685fe649b6f3','h-00000000000000000000000000000001','mode=a;',1,'p-63335dc61044baee','not a document',9,1700000007,277,1700000007);
CREATE TABLE frontiers (
    model    TEXT NOT NULL,
    hw       TEXT NOT NULL,
    question TEXT NOT NULL,       -- the rest of what decides the frontier, and the version
    doc      BLOB NOT NULL,
    bytes    INTEGER NOT NULL,
    used     INTEGER NOT NULL,
    created  INTEGER NOT NULL,
    PRIMARY KEY (model, hw, question)
) STRICT;
INSERT INTO frontiers VALUES('m-ef03a6596dee8972f68c685fe649b6f3','h-d84291b02772c8fef846ab3138fda025','frontiers/0.1.0;',X'00010203',276,1700000008,1700000008);
CREATE TABLE hardware (
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    id      TEXT NOT NULL,        -- "h-" and a digest of 'doc'
    doc     TEXT NOT NULL,        -- topt-hw/1, canonical
    created INTEGER NOT NULL,
    uid     INTEGER NOT NULL,     -- who put it; -1 nobody knows
    retired INTEGER NOT NULL,     -- 0 in force, else when it was replaced or deleted
    PRIMARY KEY (name, version)
) STRICT;
INSERT INTO hardware VALUES('lab',1,'h-d84291b02772c8fef846ab3138fda025','{"format":"topt-hw/1","name":"lab"}',1700000002,-1,0);
CREATE TABLE models (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL, created INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO models VALUES('m-ef03a6596dee8972f68c685fe649b6f3','small-llama','{"hidden_size":256,"model_type":"llama"}',1700000000,40);
INSERT INTO models VALUES('m-00000000000000000000000000000002','alone','{"format":"topt-model/1","name":"alone"}',1700000001,40);
CREATE TABLE observations (
    id         INTEGER PRIMARY KEY,
    plan       TEXT NOT NULL,
    model      TEXT NOT NULL,
    hw         TEXT NOT NULL,
    cluster    TEXT NOT NULL,
    job        INTEGER NOT NULL,
    uid        INTEGER NOT NULL,
    gpus       INTEGER NOT NULL,
    step_ns    INTEGER NOT NULL,
    peak_bytes INTEGER NOT NULL,
    steps      INTEGER NOT NULL,
    confirmed  INTEGER NOT NULL,  -- 1 where Slurm said that the job is this user's
    created    INTEGER NOT NULL, said_time_ns INTEGER NOT NULL DEFAULT 0, said_memory_bytes INTEGER NOT NULL DEFAULT 0, counts INTEGER NOT NULL DEFAULT 1,
    UNIQUE (cluster, job, uid, plan)
) STRICT;
INSERT INTO observations VALUES(1,'p-5a4229a035f958ad','m-ef03a6596dee8972f68c685fe649b6f3','h-d84291b02772c8fef846ab3138fda025','',17,1000,4,1234,5678,10,1,1700000000,1000,0,1);
CREATE TABLE owners (
    id      TEXT NOT NULL,        -- of a model or a plan
    uid     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (id, uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE parts (
    id  TEXT PRIMARY KEY,         -- SHA-256 of 'doc'
    doc TEXT NOT NULL
, bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE plans (id TEXT PRIMARY KEY, model TEXT NOT NULL REFERENCES models (id), hw TEXT NOT NULL, doc TEXT NOT NULL,
    created INTEGER NOT NULL, model_part TEXT REFERENCES parts (id), model_at INTEGER NOT NULL DEFAULT 0, hw_part TEXT REFERENCES parts (id), hw_at INTEGER NOT NULL DEFAULT 0, summary TEXT NOT NULL DEFAULT '{}', used INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO plans VALUES('p-5a4229a035f958ad','m-ef03a6596dee8972f68c685fe649b6f3','h-d84291b02772c8fef846ab3138fda025','{"format":"topt-plan/1","model":{"name":"small-llama"},"hw":{"name":"lab"},"id":"p-5a4229a035f958ad"}',1700000003,NULL,0,NULL,0,'{"gpus":4,"nodes":1,"time_ns":1000,"strategy":"FSDP2 over 4 GPUs"}',1795404320,101);
INSERT INTO plans VALUES('p-63335dc61044baee','m-ef03a6596dee8972f68c685fe649b6f3','h-00000000000000000000000000000001','{"format":"topt-plan/1","id":"p-63335dc61044baee"}',1700000004,NULL,0,NULL,0,'{}',1795404320,50);
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,       -- 'default_hw'
    value TEXT NOT NULL
) STRICT;
CREATE TABLE shares (
    id      TEXT NOT NULL,
    gid     INTEGER NOT NULL,
    uid     INTEGER NOT NULL,     -- the owner who shares it; -1 nobody
    created INTEGER NOT NULL,
    PRIMARY KEY (id, gid, uid)
) STRICT, WITHOUT ROWID;
INSERT INTO shares VALUES('m-00000000000000000000000000000002',-1,-1,1700000001);
INSERT INTO shares VALUES('m-ef03a6596dee8972f68c685fe649b6f3',-1,-1,1700000000);
INSERT INTO shares VALUES('p-5a4229a035f958ad',-1,-1,1700000003);
INSERT INTO shares VALUES('p-63335dc61044baee',-1,-1,1700000004);
CREATE INDEX plans_created ON plans (created);
CREATE INDEX answers_plan ON answers (plan);
CREATE INDEX owners_uid ON owners (uid, name);
CREATE INDEX shares_gid ON shares (gid);
CREATE INDEX models_name ON models (name);
CREATE UNIQUE INDEX hardware_in_force ON hardware (name) WHERE retired = 0;
CREATE INDEX hardware_id ON hardware (id);
CREATE INDEX plans_used ON plans (used);
CREATE INDEX plans_model ON plans (model);
CREATE INDEX plans_model_part ON plans (model_part);
CREATE INDEX plans_hw_part ON plans (hw_part);
CREATE INDEX answers_used ON answers (used, bytes);
CREATE INDEX answers_hw ON answers (hw);
CREATE INDEX frontiers_used ON frontiers (used, bytes);
CREATE INDEX frontiers_hw ON frontiers (hw);
CREATE INDEX observations_of ON observations (model, hw);
CREATE INDEX observations_uid ON observations (uid, model, hw);
CREATE INDEX models_bytes ON models (id, bytes);
CREATE INDEX plans_bytes ON plans (id, model_part, used, bytes);
CREATE INDEX parts_bytes ON parts (id, bytes);
COMMIT;
PRAGMA application_id = 1953460340;
PRAGMA user_version = 4;
