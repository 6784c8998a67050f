-- fixed is an object of the variables that a key's runs always have, endpoints a list of the names that it may run; NULL binds
-- nothing.
ALTER TABLE keys ADD COLUMN fixed TEXT CHECK (fixed IS NULL OR json_valid(fixed));
ALTER TABLE keys ADD COLUMN endpoints TEXT CHECK (endpoints IS NULL OR json_valid(endpoints));
