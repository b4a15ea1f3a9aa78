/// What is known about a value before the query runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// Nothing is known, or it is null.
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
    /// Whether a value of this type may be one of that.
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

    /// The type of the elements, if this is a list of which they are known.
    pub(crate) fn element(&self) -> Type {
        match self {
            Type::List(element) => (**element).clone(),
            _ => Type::Any,
        }
    }

    /// What is known of a value that is one or the other.
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
