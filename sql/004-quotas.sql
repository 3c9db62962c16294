-- What a document takes, so that what a user keeps can be added up without reading it.  Of a plan its own text: the
-- model that stands in it is a part, which many plans share.
ALTER TABLE models ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plans ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE parts ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE models SET bytes = length(CAST(doc AS BLOB));
UPDATE plans SET bytes = length(CAST(doc AS BLOB));
UPDATE parts SET bytes = length(CAST(doc AS BLOB));
CREATE INDEX models_bytes ON models (id, bytes);
CREATE INDEX plans_bytes ON plans (id, model_part, used, bytes);
CREATE INDEX parts_bytes ON parts (id, bytes);
