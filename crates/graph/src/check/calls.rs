use std::sync::Arc;

use isolith_types::counted;

use crate::ast::{Expr, ExprKind, Span, SubqueryKind};
use crate::error::{Detail, Result};
use crate::functions::{self, AggregateKind, Function};
use crate::ir::{Aggregate, Ex, Subquery};

use super::{Checker, Type};

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        expr: &Expr,
        name: &Arc<str>,
        distinct: bool,
        arguments: &[Expr],
    ) -> Result<(Ex, Type)> {
        if let Some((kind, count, result)) = functions::find_aggregate(name) {
            self.count_arguments(expr.span, name, arguments.len(), count, count)?;
            return self.aggregate(expr.span, kind, distinct, arguments, result);
        }
        let Some((function, least, most, result)) = functions::find(name) else {
            if let Some(what) = functions::find_unsupported(name) {
                return self.unsupported(expr.span, format!("{what} ({name})"));
            }
            let message = format!("unknown function {name}");
            return self.error(expr.span, Detail::UnknownFunction, message);
        };
        self.count_arguments(expr.span, name, arguments.len(), least, most)?;
        if distinct {
            let message = format!("{name}() does not accept DISTINCT");
            return self.error(expr.span, Detail::UnexpectedSyntax, message);
        }
        if function == Function::Exists
            && let ExprKind::Pattern(pattern) = &*arguments[0].kind
        {
            let pattern = self.closed_pattern(pattern)?;
            let subquery = Box::new(Subquery::of_pattern(pattern));
            return Ok((Ex::Subquery(SubqueryKind::Exists, subquery), Type::Boolean));
        }
        if function == Function::Size
            && matches!(&*arguments[0].kind, ExprKind::Pattern(it) if it.shortest.is_none())
        {
            let message = "size() does not count a pattern; use COUNT { (a)-->(b) }";
            return self.error(expr.span, Detail::UnexpectedSyntax, message);
        }
        let mut result = result;
        let mut lowered = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (ex, kind) = self.expression(argument)?;
            self.check_argument(function, name, argument.span, &kind)?;
            match function {
                Function::Head | Function::Last => result = kind.element(),
                Function::Nodes => result = Type::List(Box::new(Type::Node)),
                Function::Relationships => result = Type::List(Box::new(Type::Relationship)),
                Function::Labels | Function::Keys => result = Type::List(Box::new(Type::Text)),
                Function::Tail => result = kind,
                _ => {}
            }
            lowered.push(ex);
        }
        if function == Function::Rand && self.in_aggregate {
            let message = "rand() cannot be used inside an aggregate";
            return self.error(expr.span, Detail::NonConstantExpression, message);
        }
        Ok((Ex::Call(function, lowered), result))
    }

    /// Refuses an argument whose type can never be right.
    fn check_argument(
        &self,
        function: Function,
        name: &str,
        span: Span,
        kind: &Type,
    ) -> Result<()> {
        use Function::*;
        let takes: &[Type] = match function {
            Properties | Keys => &[Type::Map, Type::Node, Type::Relationship],
            TypeOf | StartNode | EndNode => &[Type::Relationship],
            Labels => &[Type::Node],
            Length | Nodes | Relationships => &[Type::Path],
            Size => &[Type::AnyList, Type::Text],
            Id | ElementId => &[Type::Node, Type::Relationship],
            ToBoolean => &[Type::Boolean, Type::Text],
            ToInteger => &[Type::Number, Type::Text, Type::Boolean],
            ToFloat => &[Type::Number, Type::Text],
            Head | Last | Tail => &[Type::AnyList],
            _ => return Ok(()),
        };
        if kind.may_be_any(takes) {
            return Ok(());
        }
        let message = format!("{name}() does not accept {}", kind.name());
        self.error(span, Detail::InvalidArgumentType, message)
    }

    fn count_arguments(
        &self,
        span: Span,
        name: &str,
        count: usize,
        least: usize,
        most: usize,
    ) -> Result<()> {
        if (least..=most).contains(&count) {
            return Ok(());
        }
        let arguments = counted(most, "argument");
        let wanted = if least == most { arguments } else { format!("{least} to {arguments}") };
        let message = format!("{name}() takes {wanted}, not {count}");
        self.error(span, Detail::InvalidNumberOfArguments, message)
    }

    pub(super) fn count_rows(&mut self, span: Span) -> Result<(Ex, Type)> {
        self.aggregate(span, AggregateKind::CountRows, false, &[], Type::Integer)
    }

    fn aggregate(
        &mut self,
        span: Span,
        kind: AggregateKind,
        distinct: bool,
        arguments: &[Expr],
        result: Type,
    ) -> Result<(Ex, Type)> {
        if self.in_aggregate {
            let message = "aggregates cannot be nested";
            return self.error(span, Detail::NestedAggregation, message);
        }
        if self.no_aggregates {
            let message = "aggregates are only allowed in WITH and RETURN";
            return self.error(span, Detail::InvalidAggregation, message);
        }
        let Some(mut grouping) = self.grouping.take() else {
            let message = "aggregates are only allowed in WITH and RETURN";
            return self.error(span, Detail::InvalidAggregation, message);
        };
        // Arguments see rows, not groups.
        let after = std::mem::replace(&mut self.scope, grouping.arguments.clone());
        self.in_aggregate = true;
        let mut lowered = Vec::new();
        for argument in arguments {
            lowered.push(self.expression(argument)?.0);
        }
        self.in_aggregate = false;
        self.scope = after;
        let slot = self.slot();
        grouping.aggregates.push(Aggregate { kind, distinct, arguments: lowered, slot });
        self.grouping = Some(grouping);
        Ok((Ex::Slot(slot), result))
    }
}
