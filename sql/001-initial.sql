-- Models that were registered or planned for.  'doc' is the document as it was sent, in
-- canonical form (compact, sorted keys); 'id' is "m-" and a digest of 'doc'.
CREATE TABLE models (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    doc     TEXT NOT NULL,
    created INTEGER NOT NULL      -- Unix seconds
) STRICT;

-- Hardware profiles registered here; shipped ones live in the program.
CREATE TABLE hardware (
    id      TEXT PRIMARY KEY,     -- "h-" and a digest of 'doc'
    name    TEXT NOT NULL UNIQUE,
    doc     TEXT NOT NULL,        -- topt-hw/1, canonical
    created INTEGER NOT NULL
) STRICT;

-- Plans that were given out.  Never changed and never deleted: jobs name them.
CREATE TABLE plans (
    id      TEXT PRIMARY KEY,     -- "p-" and a digest of 'doc'
    model   TEXT NOT NULL REFERENCES models (id),
    hw      TEXT NOT NULL,        -- profile id, registered or shipped
    doc     TEXT NOT NULL,        -- topt-plan/1
    created INTEGER NOT NULL
) STRICT;
CREATE INDEX plans_created ON plans (created);

-- Finished searches, so that a question asked again costs a look-up.
CREATE TABLE answers (
    model     TEXT NOT NULL REFERENCES models (id),
    hw        TEXT NOT NULL,
    question  TEXT NOT NULL,      -- every option that decides the answer, and the version
    feasible  INTEGER NOT NULL,
    plan      TEXT REFERENCES plans (id),
    doc       TEXT NOT NULL,      -- the answer less its plan
    search_ns INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    PRIMARY KEY (model, hw, question)
) STRICT;
CREATE INDEX answers_plan ON answers (plan);
