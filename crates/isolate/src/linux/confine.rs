//! The sandbox, with what the kernel has: Landlock for files, seccomp for sockets.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::files::{self, RuledFolder};
use crate::role::Refusal;
use crate::sandbox::{Confinement, Enforcement, Sandbox};

/// Restricts this thread and all it will start. A kernel that cannot is no error,
/// a folder that is not there is one.
pub(crate) fn confine(sandbox: &Sandbox) -> Result<(Confinement, Option<RuledFolder>), Refusal> {
    let (files, folder) = files::restrict(&sandbox.files)?;
    let sockets = match sandbox.sockets {
        true => Enforcement::NotAsked,
        false => deny_sockets(),
    };
    Ok((Confinement { files, sockets }, folder))
}

/// No new sockets; io_uring could make some without asking.
fn deny_sockets() -> Enforcement {
    let denied = [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_io_uring_setup];
    let rules: BTreeMap<i64, _> = denied.into_iter().map(|call| (call, Vec::new())).collect();
    let errno = libc::EACCES.unsigned_abs();
    let program = std::env::consts::ARCH.try_into().and_then(|architecture| {
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(errno),
            architecture,
        )?;
        BpfProgram::try_from(filter)
    });
    match program.map(|program| seccompiler::apply_filter(&program)) {
        Ok(Ok(())) => Enforcement::Enforced,
        _ => Enforcement::NotAvailable,
    }
}
