mod damage;
mod finding;
mod following;
mod support;
