//! The truth as its users see it: real files, real locks, real processes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod acknowledged;
mod code;
mod code_doctor;
mod code_graph;
mod code_model;
mod common;
mod damage;
mod doctor;
mod fact_doctor;
mod fact_graph;
mod fact_queries;
mod facts;
mod filters;
mod folding;
mod graph;
mod graph_doctor;
mod graph_import;
mod lost_log;
mod memory;
mod memory_doctor;
mod opening;
mod power_loss;
mod processes;
mod reading;
mod writing;
