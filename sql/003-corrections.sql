-- What a plan had said is kept with what its job measured, so that the two can be compared without the plan.
ALTER TABLE observations ADD COLUMN said_time_ns INTEGER NOT NULL DEFAULT 0;      -- 0: nobody knows
ALTER TABLE observations ADD COLUMN said_memory_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE observations SET
    said_time_ns = coalesce((SELECT CAST(json_extract(p.summary, '$.time_ns') AS INTEGER)
                             FROM plans p WHERE p.id = observations.plan), 0),
    said_memory_bytes = coalesce((SELECT CAST(json_extract(p.summary, '$.memory_bytes') AS INTEGER)
                                  FROM plans p WHERE p.id = observations.plan), 0);

-- 0 where an admin has reset the correction of its model and profile: it is shown, and corrects nothing.
ALTER TABLE observations ADD COLUMN counts INTEGER NOT NULL DEFAULT 1;
CREATE INDEX observations_uid ON observations (uid, model, hw);
