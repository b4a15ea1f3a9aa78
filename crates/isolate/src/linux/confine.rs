//! The sandbox, with what the kernel has: Landlock for files, seccomp for sockets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::role::Refusal;
use crate::sandbox::{Confinement, Enforcement, Files, Sandbox};

/// The newest set of file rights that is asked for; older kernels enforce what
/// they know of it.
const RIGHTS: ABI = ABI::V5;

/// Restricts this thread and all it will start. A kernel that cannot is no error,
/// a folder that is not there is one.
pub(crate) fn confine(sandbox: &Sandbox) -> Result<Confinement, Refusal> {
    let files = match &sandbox.files {
        Files::All => Enforcement::NotAsked,
        Files::Below { read, write } => confine_files(read, write)?,
    };
    let sockets = match sandbox.sockets {
        true => Enforcement::NotAsked,
        false => deny_sockets(),
    };
    Ok(Confinement { files, sockets })
}

fn confine_files(read: &[PathBuf], write: &[PathBuf]) -> Result<Enforcement, Refusal> {
    let refuse = |error: &dyn std::fmt::Display| Refusal::new("sandbox", error.to_string());
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let writing = AccessFs::from_all(RIGHTS) & !AccessFs::Execute;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(RIGHTS))
        .and_then(Ruleset::create)
        .map_err(|error| refuse(&error))?;
    for (roots, rights) in [(read, reading), (write, writing)] {
        for root in roots {
            let opened = PathFd::new(root).map_err(|error| refuse(&error))?;
            let rights = applicable(root, rights);
            rules =
                rules.add_rule(PathBeneath::new(opened, rights)).map_err(|error| refuse(&error))?;
        }
    }
    let status = rules.restrict_self().map_err(|error| refuse(&error))?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Enforcement::Enforced,
        RulesetStatus::PartiallyEnforced => Enforcement::Partial,
        RulesetStatus::NotEnforced => Enforcement::NotAvailable,
    })
}

/// A file has fewer rights than a folder, and Landlock is strict about it.
fn applicable(root: &std::path::Path, rights: BitFlags<AccessFs>) -> BitFlags<AccessFs> {
    if root.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) }
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
