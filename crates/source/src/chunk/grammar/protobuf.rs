use isolith_types::SymbolKind::{Enum, Interface, Method, Struct};

use super::{Action, Name, Table, block, define};

pub(super) static TABLE: Table = Table {
    grammar: isolith_grammars::protobuf,
    rules: &[
        ("message", define(Struct, Name::Child("message_name"))),
        ("enum", define(Enum, Name::Child("enum_name"))),
        ("service", define(Interface, Name::Child("service_name"))),
        ("rpc", define(Method, Name::Child("rpc_name"))),
        ("extend", block(Name::Child("full_ident"))),
        ("message_body", Action::Enter),
        ("comment", Action::Comment),
    ],
    bodies: &["message_body", "enum_body", "rpc", "option", "comment"],
    inner_docs: &[],
    docstring: None,
    clauses: false,
};
