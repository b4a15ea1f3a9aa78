//! Derived files: immutable, checksummed vector and text segments.
