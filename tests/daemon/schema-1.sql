-- A store of schema 1 as it was written then: two models, a profile, two plans, three answers.
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE models (id TEXT PRIMARY KEY, name TEXT NOT NULL, doc TEXT NOT NULL, created INTEGER NOT NULL) STRICT;
CREATE TABLE hardware (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, doc TEXT NOT NULL, created INTEGER NOT NULL) STRICT;
CREATE TABLE plans (id TEXT PRIMARY KEY, model TEXT NOT NULL REFERENCES models (id), hw TEXT NOT NULL, doc TEXT NOT NULL,
    created INTEGER NOT NULL) STRICT;
CREATE INDEX plans_created ON plans (created);
CREATE TABLE answers (model TEXT NOT NULL REFERENCES models (id), hw TEXT NOT NULL, question TEXT NOT NULL,
    feasible INTEGER NOT NULL, plan TEXT REFERENCES plans (id), doc TEXT NOT NULL, search_ns INTEGER NOT NULL,
    created INTEGER NOT NULL, PRIMARY KEY (model, hw, question)) STRICT;
CREATE INDEX answers_plan ON answers (plan);
INSERT INTO models VALUES
    ('m-ef03a6596dee8972f68c685fe649b6f3', 'small-llama', '{"hidden_size":256,"model_type":"llama"}', 1700000000),
    ('m-00000000000000000000000000000002', 'alone', '{"format":"topt-model/1","name":"alone"}', 1700000001);
INSERT INTO hardware VALUES
    ('h-d84291b02772c8fef846ab3138fda025', 'lab', '{"format":"topt-hw/1","name":"lab"}', 1700000002);
INSERT INTO plans VALUES
    ('p-5a4229a035f958ad', 'm-ef03a6596dee8972f68c685fe649b6f3', 'h-d84291b02772c8fef846ab3138fda025',
     '{"format":"topt-plan/1","model":{"name":"small-llama"},"hw":{"name":"lab"},"id":"p-5a4229a035f958ad"}', 1700000003),
    ('p-63335dc61044baee', 'm-ef03a6596dee8972f68c685fe649b6f3', 'h-00000000000000000000000000000001',
     '{"format":"topt-plan/1","id":"p-63335dc61044baee"}', 1700000004);
INSERT INTO answers VALUES
    ('m-ef03a6596dee8972f68c685fe649b6f3', 'h-d84291b02772c8fef846ab3138fda025', 'mode=a;', 1, 'p-5a4229a035f958ad',
     '{"feasible":true,"gpus":4,"nodes":1,"time_ns":90675895,"strategy":"FSDP2 over 4 GPUs"}', 7, 1700000005),
    ('m-ef03a6596dee8972f68c685fe649b6f3', 'h-d84291b02772c8fef846ab3138fda025', 'mode=b;', 0, NULL,
     '{"feasible":false,"why":"nothing fits"}', 8, 1700000006),
    ('m-ef03a6596dee8972f68c685fe649b6f3', 'h-00000000000000000000000000000001', 'mode=a;', 1, 'p-63335dc61044baee',
     'not a document', 9, 1700000007);
PRAGMA user_version = 1;
COMMIT;
