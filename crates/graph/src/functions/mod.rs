//! The language's functions, by name.

mod aggregates;
mod convert;
mod entities;
mod lists;
mod math;
mod strings;
mod temporal;

pub(crate) use aggregates::Accumulator;
pub(crate) use entities::properties;

use crate::check::Type;
use crate::error::Result;
use crate::run::Run;
use crate::value::Value;

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal $most:literal $result:ident,)*) => {
        /// A scalar function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function { $($variant,)* Temporal(temporal::TemporalFunction) }

        const FUNCTIONS: &[(&str, Function, usize, usize, Type)] = &[
            $(($name, Function::$variant, $least, $most, Type::$result),)*
        ];
    };
}

functions! {
    Abs "abs" 1 1 Number,
    Acos "acos" 1 1 Float,
    Asin "asin" 1 1 Float,
    Atan "atan" 1 1 Float,
    Atan2 "atan2" 2 2 Float,
    Ceil "ceil" 1 1 Float,
    Coalesce "coalesce" 1 1000 Any,
    Cos "cos" 1 1 Float,
    Cot "cot" 1 1 Float,
    Degrees "degrees" 1 1 Float,
    E "e" 0 0 Float,
    ElementId "elementId" 1 1 Text,
    EndNode "endNode" 1 1 Node,
    Exists "exists" 1 1 Boolean,
    Exp "exp" 1 1 Float,
    Floor "floor" 1 1 Float,
    Head "head" 1 1 Any,
    Id "id" 1 1 Integer,
    IsEmpty "isEmpty" 1 1 Boolean,
    IsNan "isNaN" 1 1 Boolean,
    Keys "keys" 1 1 AnyList,
    Labels "labels" 1 1 AnyList,
    Last "last" 1 1 Any,
    Left "left" 2 2 Text,
    Length "length" 1 1 Integer,
    Log "log" 1 1 Float,
    Log10 "log10" 1 1 Float,
    LTrim "lTrim" 1 1 Text,
    Nodes "nodes" 1 1 AnyList,
    NullIf "nullIf" 2 2 Any,
    Pi "pi" 0 0 Float,
    Properties "properties" 1 1 Map,
    Radians "radians" 1 1 Float,
    Rand "rand" 0 0 Float,
    Range "range" 2 3 AnyList,
    Relationships "relationships" 1 1 AnyList,
    Replace "replace" 3 3 Text,
    Reverse "reverse" 1 1 Any,
    Right "right" 2 2 Text,
    Round "round" 1 2 Float,
    RandomUuid "randomUUID" 0 0 Text,
    RTrim "rTrim" 1 1 Text,
    Sign "sign" 1 1 Integer,
    Sin "sin" 1 1 Float,
    Size "size" 1 1 Integer,
    Split "split" 2 2 AnyList,
    Sqrt "sqrt" 1 1 Float,
    StartNode "startNode" 1 1 Node,
    Substring "substring" 2 3 Text,
    Tail "tail" 1 1 AnyList,
    Tan "tan" 1 1 Float,
    ToBoolean "toBoolean" 1 1 Boolean,
    ToBooleanList "toBooleanList" 1 1 AnyList,
    ToBooleanOrNull "toBooleanOrNull" 1 1 Boolean,
    ToFloat "toFloat" 1 1 Float,
    ToFloatList "toFloatList" 1 1 AnyList,
    ToFloatOrNull "toFloatOrNull" 1 1 Float,
    ToInteger "toInteger" 1 1 Integer,
    ToIntegerList "toIntegerList" 1 1 AnyList,
    ToIntegerOrNull "toIntegerOrNull" 1 1 Integer,
    ToLower "toLower" 1 1 Text,
    ToString "toString" 1 1 Text,
    ToStringList "toStringList" 1 1 AnyList,
    ToStringOrNull "toStringOrNull" 1 1 Text,
    ToUpper "toUpper" 1 1 Text,
    Trim "trim" 1 1 Text,
    TypeOf "type" 1 1 Text,
}

/// An aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    CountRows,
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Collect,
    Deviation,
    DeviationOfAll,
    PercentileContinuous,
    PercentileDiscrete,
}

const AGGREGATES: &[(&str, AggregateKind, usize, Type)] = &[
    ("count", AggregateKind::Count, 1, Type::Integer),
    ("sum", AggregateKind::Sum, 1, Type::Number),
    ("avg", AggregateKind::Avg, 1, Type::Any),
    ("min", AggregateKind::Min, 1, Type::Any),
    ("max", AggregateKind::Max, 1, Type::Any),
    ("collect", AggregateKind::Collect, 1, Type::AnyList),
    ("stDev", AggregateKind::Deviation, 1, Type::Float),
    ("stDevP", AggregateKind::DeviationOfAll, 1, Type::Float),
    ("percentileCont", AggregateKind::PercentileContinuous, 2, Type::Float),
    ("percentileDisc", AggregateKind::PercentileDiscrete, 2, Type::Any),
];

/// Looks up a function: itself, its minimum and maximum number of arguments, its result type.
pub(crate) fn find(name: &str) -> Option<(Function, usize, usize, Type)> {
    let alias = match name.to_ascii_lowercase().as_str() {
        "rels" => "relationships",
        "lower" => "toLower",
        "upper" => "toUpper",
        "ceiling" => "ceil",
        "char_length" | "character_length" => "size",
        "btrim" => "trim",
        _ => name,
    };
    if let Some((function, least, most)) = temporal::find(&name.to_ascii_lowercase()) {
        return Some((Function::Temporal(function), least, most, Type::Any));
    }
    let entry = FUNCTIONS.iter().find(|entry| entry.0.eq_ignore_ascii_case(alias))?;
    Some((entry.1, entry.2, entry.3, entry.4.clone()))
}

/// Looks up an aggregate: itself, its number of arguments, its result type.
pub(crate) fn find_aggregate(name: &str) -> Option<(AggregateKind, usize, Type)> {
    let entry = AGGREGATES.iter().find(|entry| entry.0.eq_ignore_ascii_case(name))?;
    Some((entry.1, entry.2, entry.3.clone()))
}

/// Functions of other implementations, which are refused by name.
pub(crate) fn find_unsupported(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let root = lower.split('.').next().unwrap_or_default();
    match root {
        "point" | "distance" => Some("spatial functions"),
        "apoc" | "gds" => Some("procedure libraries"),
        "normalize" => Some("normalize()"),
        "haversin" => Some("haversin()"),
        _ => None,
    }
}

/// Evaluates a function.
pub(crate) fn call(run: &Run<'_>, function: Function, arguments: &[Value]) -> Result<Value> {
    use Function::*;
    match function {
        Abs | Acos | Asin | Atan | Atan2 | Ceil | Cos | Cot | Degrees | E | Exp | Floor | IsNan
        | Log | Log10 | Pi | Radians | Rand | Round | Sign | Sin | Sqrt | Tan => {
            math::call(run, function, arguments)
        }
        Coalesce => {
            Ok(arguments.iter().find(|value| !value.is_null()).cloned().unwrap_or_default())
        }
        NullIf => {
            let [a, b] = arguments else { return Ok(Value::Null) };
            run.budget.steps(a.weight().min(b.weight()))?;
            Ok(if crate::value::equals(a, b) == Some(true) { Value::Null } else { a.clone() })
        }
        Exists => Ok(Value::Boolean(!arguments[0].is_null())),
        ToBoolean | ToFloat | ToInteger | ToString => convert::call(function, &arguments[0]),
        ToBooleanOrNull => Ok(convert::call(ToBoolean, &arguments[0]).unwrap_or_default()),
        ToFloatOrNull => Ok(convert::call(ToFloat, &arguments[0]).unwrap_or_default()),
        ToIntegerOrNull => Ok(convert::call(ToInteger, &arguments[0]).unwrap_or_default()),
        ToStringOrNull => Ok(convert::call(ToString, &arguments[0]).unwrap_or_default()),
        ToBooleanList => convert::all(run, ToBoolean, &arguments[0]),
        ToFloatList => convert::all(run, ToFloat, &arguments[0]),
        ToIntegerList => convert::all(run, ToInteger, &arguments[0]),
        ToStringList => convert::all(run, ToString, &arguments[0]),
        RandomUuid => Ok(Value::text(run.random_uuid())),
        ElementId | EndNode | Id | Keys | Labels | Length | Nodes | Properties | Relationships
        | StartNode | TypeOf => entities::call(run, function, &arguments[0]),
        Head | IsEmpty | Last | Range | Reverse | Size | Tail => {
            lists::call(run, function, arguments)
        }
        Temporal(function) => temporal::call(run, function, arguments),
        Left | LTrim | Replace | Right | RTrim | Split | Substring | ToLower | ToUpper | Trim => {
            strings::call(run, function, arguments)
        }
    }
}
