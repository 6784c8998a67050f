-- test_account_filters is a list of property filters, path_cleaning_filters one of rules; NULL is none.
ALTER TABLE projects ADD COLUMN test_account_filters TEXT CHECK (test_account_filters IS NULL OR json_valid(test_account_filters));
ALTER TABLE projects ADD COLUMN path_cleaning_filters TEXT CHECK (path_cleaning_filters IS NULL OR json_valid(path_cleaning_filters));
