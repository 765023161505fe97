-- What a return took away in the organization's database, as the GRANTs that give it back; null: nothing.
ALTER TABLE lokadb.organizations ADD COLUMN taken text[];
