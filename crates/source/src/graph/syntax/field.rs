macro_rules! fields {
    ($($field:ident $name:literal,)*) => {
        /// The fields of nodes that are asked for, in whatever language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(clippy::enum_variant_names, reason = "one of them has that name")]
        pub(in crate::graph) enum Field {
            $($field,)*
        }

        const NAMES: &[&str] = &[$($name,)*];
    };
}

fields! {
    Alias "alias",
    Argument "argument",
    Arguments "arguments",
    Array "array",
    Attribute "attribute",
    Body "body",
    Bounds "bounds",
    Condition "condition",
    Consequence "consequence",
    Constraint "constraint",
    Constructor "constructor",
    Declaration "declaration",
    Declarator "declarator",
    Definition "definition",
    Element "element",
    Expression "expression",
    Field "field",
    Function "function",
    Interfaces "interfaces",
    Key "key",
    Kind "kind",
    Left "left",
    List "list",
    Macro "macro",
    Method "method",
    Module "module",
    ModuleName "module_name",
    Name "name",
    Object "object",
    Operand "operand",
    Operator "operator",
    Package "package",
    Parameter "parameter",
    Parameters "parameters",
    Path "path",
    Pattern "pattern",
    Property "property",
    Qualifier "qualifier",
    Receiver "receiver",
    Result "result",
    ReturnType "return_type",
    Returns "returns",
    Right "right",
    Scope "scope",
    Source "source",
    Superclass "superclass",
    Superclasses "superclasses",
    Trait "trait",
    Type "type",
    TypeArguments "type_arguments",
    Value "value",
    Variable "variable",
}

/// The numbers of all fields in one grammar. Looking for a field by its name costs more than
/// all else that is done at a node.
pub(super) struct Fields([u16; NAMES.len()]);

impl Fields {
    pub(super) fn of(grammar: &tree_sitter::Language) -> Self {
        let mut numbers = [0; NAMES.len()];
        for (number, name) in numbers.iter_mut().zip(NAMES) {
            *number = grammar.field_id_for_name(name).map_or(0, |id| id.get());
        }
        Self(numbers)
    }

    /// The number of a field; no node has the number 0, that of fields the grammar lacks.
    pub(super) fn number(&self, field: Field) -> u16 {
        self.0[field as usize]
    }
}
