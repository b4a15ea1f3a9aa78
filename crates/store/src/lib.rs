//! The truth: one SQLite file with collections, records and receipts.
