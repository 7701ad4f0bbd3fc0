CREATE TABLE payment (
    id INTEGER PRIMARY KEY,
    invoice TEXT REFERENCES invoice (number),
    received TEXT NOT NULL,
    cents INTEGER NOT NULL,
    payer TEXT NOT NULL,
    how TEXT NOT NULL
);

CREATE INDEX payment_by_invoice ON payment (invoice);
