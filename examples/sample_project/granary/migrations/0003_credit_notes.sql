ALTER TABLE invoice ADD COLUMN credits TEXT REFERENCES invoice (number);

CREATE INDEX invoice_by_credited ON invoice (credits);
