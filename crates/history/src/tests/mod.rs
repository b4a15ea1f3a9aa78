mod damage;
mod discovery;
mod last_change;
mod support;
