//! What runs inside the workers of Isolith.
