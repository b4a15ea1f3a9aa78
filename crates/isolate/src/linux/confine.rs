//! The sandbox, with what the kernel has: Landlock for files, seccomp for system calls.

use super::calls;
use super::files::{self, Landlocked, RuledFolder};
use crate::role::Refusal;
use crate::sandbox::{Confinement, Enforcement, Sandbox};

/// Restricts this thread and all it will start. A kernel that cannot is not an error,
/// a folder that is not there is one. With [`Files::Folder`](crate::Files::Folder), the
/// folder that the rules are for comes back.
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
