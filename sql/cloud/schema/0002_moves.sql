-- What a return took away in the organization's database, as the GRANTs that give it back; null: nothing.
ALTER TABLE lokadb.organizations ADD COLUMN taken text[];
-- Databases where a move of this cloud has begun: what bears the organization's label there may be a leftover. In any other
-- it is not ours, even if this cloud is a copy of the one that made it.
ALTER TABLE lokadb.organizations ADD COLUMN begun text[] NOT NULL DEFAULT '{}';
