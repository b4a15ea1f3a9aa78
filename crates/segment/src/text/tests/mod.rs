mod corpus;
mod damage;
mod ranking;
