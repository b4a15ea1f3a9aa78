//! The sandbox: Landlock for files, seccomp for system calls.

use super::calls;
use super::files::{self, Landlocked, RuledFolder};
use crate::role::Refusal;
use crate::sandbox::{Confinement, Enforcement, Sandbox};

/// Restricts this thread and all it will start. A kernel without support is not an error; a
/// missing folder is one. For [`Files::Folder`](crate::Files::Folder), returns the folder that
/// the rules apply to.
pub(crate) fn confine(sandbox: &Sandbox) -> Result<(Confinement, Option<RuledFolder>), Refusal> {
    let (no_sockets, no_calls) = (!sandbox.sockets, !sandbox.system_calls);
    let Landlocked { files, connections, signals, folder } =
        files::restrict(&sandbox.files, no_sockets, no_calls)?;
    let filtered = (no_sockets || no_calls) && calls::deny(no_sockets, no_calls);
    let judge = |asked, landlocked| match (asked, filtered, landlocked) {
        (false, ..) => Enforcement::NotAsked,
        (true, true, _) => Enforcement::Enforced,
        (true, false, true) => Enforcement::Partial,
        (true, false, false) => Enforcement::NotAvailable,
    };
    let sockets = judge(no_sockets, connections);
    let system_calls = judge(no_calls, signals);
    Ok((Confinement { files, sockets, system_calls }, folder))
}
