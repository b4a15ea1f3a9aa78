//! What Isolith does, as typed calls; owns the pools of workers.
