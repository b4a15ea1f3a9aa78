/// The static type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// Unknown, or null.
    Any,
    Boolean,
    Integer,
    Float,
    /// An integer or a float.
    Number,
    Text,
    List(Box<Type>),
    /// A list of anything.
    AnyList,
    Map,
    Node,
    Relationship,
    Path,
}

impl Type {
    /// Whether a value of this type may also have the other type.
    pub(crate) fn may_be(&self, other: &Type) -> bool {
        use Type::*;
        match (self, other) {
            (Any, _) | (_, Any) => true,
            (List(_) | AnyList, List(_) | AnyList) => true,
            (Number, Integer | Float) | (Integer | Float, Number) => true,
            (a, b) => a == b,
        }
    }

    pub(crate) fn may_be_any(&self, others: &[Type]) -> bool {
        others.iter().any(|other| self.may_be(other))
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Type::Integer | Type::Float | Type::Number)
    }

    /// The type of a list's elements if it is known.
    pub(crate) fn element(&self) -> Type {
        match self {
            Type::List(element) => (**element).clone(),
            _ => Type::Any,
        }
    }

    /// The most specific type that covers both.
    pub(crate) fn or(self, other: Type) -> Type {
        if self == other {
            self
        } else if self.is_number() && other.is_number() {
            Type::Number
        } else {
            Type::Any
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Type::Any => "a value",
            Type::Boolean => "a boolean",
            Type::Integer => "an integer",
            Type::Float => "a float",
            Type::Number => "a number",
            Type::Text => "a string",
            Type::List(_) | Type::AnyList => "a list",
            Type::Map => "a map",
            Type::Node => "a node",
            Type::Relationship => "a relationship",
            Type::Path => "a path",
        }
    }
}
