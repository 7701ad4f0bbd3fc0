CREATE TABLE customer (
    number TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    grade TEXT NOT NULL DEFAULT 'standard',
    terms TEXT NOT NULL DEFAULT 'net 30'
);

CREATE TABLE invoice (
    number TEXT PRIMARY KEY,
    customer TEXT NOT NULL REFERENCES customer (number),
    order_number TEXT NOT NULL,
    issued TEXT NOT NULL,
    due TEXT NOT NULL,
    net_cents INTEGER NOT NULL,
    tax_cents INTEGER NOT NULL,
    currency TEXT NOT NULL DEFAULT 'EUR'
);

CREATE INDEX invoice_by_customer ON invoice (customer, issued);
