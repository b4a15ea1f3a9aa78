//! Roles with several operations, each of which has a reply type of its own.

use isolate::{Context, Role};
use isolith_types::{Code, Failure};

/// A role whose jobs are [`Operation`]s.
pub trait Operations: Role<Reply = Result<Self::AnyReply, Failure>> {
    /// The reply of any of its operations.
    type AnyReply;
}

/// An operation of the role `R`.
pub trait Operation<R: Operations>: Into<R::Request> {
    /// The type of its reply.
    type Reply;

    /// Extracts its reply.
    ///
    /// # Errors
    /// The worker's failure; `failed` if the reply belongs to another operation.
    fn reply_from(reply: R::Reply) -> Result<Self::Reply, Failure>;
}

/// Performs an operation in the worker.
pub(crate) trait Perform<R: Operations>: Operation<R> {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    fn perform(self, role: &mut R, context: &Context<'_>) -> Result<Self::Reply, Failure>;
}

pub(crate) fn unexpected_reply<R: Role>() -> Failure {
    Failure::new(Code::Failed, format!("unexpected reply from the {} worker", R::NAME))
}

/// Defines the jobs and replies of a role from the list of its operations.
macro_rules! operations {
    ($role:ty, $job:ident, $any_reply:ident { $($operation:ident => $reply:ty,)* }) => {
        /// Any operation of the role.
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum $job {
            $($operation($operation),)*
        }

        /// The reply of any operation of the role.
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum $any_reply {
            $($operation($reply),)*
        }

        impl $crate::operation::Operations for $role {
            type AnyReply = $any_reply;
        }

        impl $job {
            pub(super) fn name(&self) -> &'static str {
                use $crate::operation::Perform;
                match self {
                    $(Self::$operation(operation) => operation.name(),)*
                }
            }

            pub(super) fn perform(
                self,
                role: &mut $role,
                context: &isolate::Context<'_>,
            ) -> Result<$any_reply, isolith_types::Failure> {
                use $crate::operation::Perform;
                match self {
                    $(Self::$operation(operation) => {
                        operation.perform(role, context).map($any_reply::$operation)
                    })*
                }
            }
        }

        $(
            impl From<$operation> for $job {
                fn from(operation: $operation) -> Self {
                    Self::$operation(operation)
                }
            }

            impl $crate::operation::Operation<$role> for $operation {
                type Reply = $reply;

                fn reply_from(
                    reply: Result<$any_reply, isolith_types::Failure>,
                ) -> Result<$reply, isolith_types::Failure> {
                    match reply? {
                        $any_reply::$operation(reply) => Ok(reply),
                        _ => Err($crate::operation::unexpected_reply::<$role>()),
                    }
                }
            }
        )*
    };
}
pub(crate) use operations;
