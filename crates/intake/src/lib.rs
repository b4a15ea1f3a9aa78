//! Files of ready records, read twice in bounded memory.
