-- Who owns a document, versions of hardware profiles, what is kept how long, frontiers and observations.

-- A model or a plan belongs to everybody who sent it or was given it: documents are named by their content, so
-- two people can own the same one.  'name' is what this owner calls a model ("" of a plan).
CREATE TABLE owners (
    id      TEXT NOT NULL,        -- of a model or a plan
    uid     INTEGER NOT NULL,
    name    TEXT NOT NULL,
    created INTEGER NOT NULL,
    PRIMARY KEY (id, uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX owners_uid ON owners (uid, name);

-- Groups that an owner lets read a document.  gid -1 is everybody: all that is older than owners.
CREATE TABLE shares (
    id      TEXT NOT NULL,
    gid     INTEGER NOT NULL,
    uid     INTEGER NOT NULL,     -- the owner who shares it; -1 nobody
    created INTEGER NOT NULL,
    PRIMARY KEY (id, gid, uid)
) STRICT, WITHOUT ROWID;
CREATE INDEX shares_gid ON shares (gid);
INSERT INTO shares SELECT id, -1, -1, created FROM models;
INSERT INTO shares SELECT id, -1, -1, created FROM plans;
CREATE INDEX models_name ON models (name);

-- Hardware profiles by name and version.  One version of a name is in force; the others are retired and stay as
-- a record.  The same document may come back as a later version.
ALTER TABLE hardware RENAME TO hardware_1;
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
INSERT INTO hardware SELECT name, 1, id, doc, created, -1, 0 FROM hardware_1;
DROP TABLE hardware_1;
CREATE UNIQUE INDEX hardware_in_force ON hardware (name) WHERE retired = 0;
CREATE INDEX hardware_id ON hardware (id);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,       -- 'default_hw'
    value TEXT NOT NULL
) STRICT;

-- Models and profiles as plans hold them, each once: a plan's text has them cut out at two places.
CREATE TABLE parts (
    id  TEXT PRIMARY KEY,         -- SHA-256 of 'doc'
    doc TEXT NOT NULL
) STRICT;
ALTER TABLE plans ADD COLUMN model_part TEXT REFERENCES parts (id);
ALTER TABLE plans ADD COLUMN model_at INTEGER NOT NULL DEFAULT 0; -- byte of 'doc' where it belongs
ALTER TABLE plans ADD COLUMN hw_part TEXT REFERENCES parts (id);
ALTER TABLE plans ADD COLUMN hw_at INTEGER NOT NULL DEFAULT 0;
-- The numbers that lists show, and the last use, to a day; what is older than this version was used just now.
ALTER TABLE plans ADD COLUMN summary TEXT NOT NULL DEFAULT '{}';
ALTER TABLE plans ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE plans SET used = unixepoch(), summary = coalesce(
    (SELECT json_patch('{}', json_object(
         'gpus', json_extract(a.doc, '$.gpus'), 'nodes', json_extract(a.doc, '$.nodes'),
         'memory_bytes', json_extract(a.doc, '$.memory_bytes'),
         'time_ns', json_extract(a.doc, '$.time_ns'), 'strategy', json_extract(a.doc, '$.strategy')))
     FROM answers a WHERE a.plan = plans.id AND json_valid(a.doc) LIMIT 1), '{}');
CREATE INDEX plans_used ON plans (used);
CREATE INDEX plans_model ON plans (model);
CREATE INDEX plans_model_part ON plans (model_part);
CREATE INDEX plans_hw_part ON plans (hw_part);

-- Answers are limited by bytes; the least recently used go first.
ALTER TABLE answers ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE answers ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE answers SET used = created, bytes = length(question) + length(CAST(doc AS BLOB)) + 256;
CREATE INDEX answers_used ON answers (used, bytes);
CREATE INDEX answers_hw ON answers (hw);

-- Frontiers of every count: questions that differ in memory limit, mode, efficiency or most GPUs alone are
-- answered from one.  They share the limit of answers.
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
CREATE INDEX frontiers_used ON frontiers (used, bytes);
CREATE INDEX frontiers_hw ON frontiers (hw);

-- What jobs measured of their plans.  A job that reports again replaces its own row.
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
    created    INTEGER NOT NULL,
    UNIQUE (cluster, job, uid, plan)
) STRICT;
CREATE INDEX observations_of ON observations (model, hw);

PRAGMA application_id = 1953460340; -- "topt"
