//! Restricts a worker's system calls with seccomp.
//!
//! Denied calls fail with EPERM, so that libraries can carry on without them.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// Denies new sockets, hostile calls or both, for this thread and all it will start. Returns
/// false if the kernel or architecture does not support it.
pub(super) fn deny(sockets: bool, hostile: bool) -> bool {
    filter(sockets, hostile).is_ok_and(|program| seccompiler::apply_filter(&program).is_ok())
}

fn filter(sockets: bool, hostile: bool) -> Compiled<BpfProgram> {
    let mut rules = Rules::default();
    if sockets {
        rules.deny(&SOCKETS);
    }
    if hostile {
        rules.deny(&OTHER_PROCESSES);
        rules.deny(&PERMISSIONS);
        rules.deny(&PROGRAMS_AND_SYSTEM);
        #[cfg(target_arch = "x86_64")]
        rules.deny(&ARCHITECTURE_SPECIFIC);
        rules.deny_to_others()?;
        rules.deny_arguments()?;
    }
    rules.compile()
}

/// io_uring makes calls that no filter sees, including those for sockets.
const SOCKETS: [i64; 10] = [
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Inspecting, controlling or signalling other processes. A worker stays in its own process
/// group and session, because the lifeline kills that whole group.
const OTHER_PROCESSES: [i64; 23] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_tkill,
    libc::SYS_setpgid,
    libc::SYS_setsid,
    libc::SYS_setpriority,
    libc::SYS_ioprio_set,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
];

/// Files keep the mode they were created with. Access control lists are attributes, too.
const PERMISSIONS: [i64; 16] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_umask,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    libc::SYS_mknodat,
];

/// Starting programs, and changing the system or the worker's view of it.
const PROGRAMS_AND_SYSTEM: [i64; 49] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_personality,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
];

/// Old calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE_SPECIFIC: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_mknod,
    libc::SYS_iopl,
    libc::SYS_ioperm,
];

/// `libc` does not name it for musl on this architecture.
#[cfg(all(target_arch = "aarch64", target_env = "musl"))]
const KEXEC_FILE_LOAD: i64 = 294;
#[cfg(not(all(target_arch = "aarch64", target_env = "musl")))]
const KEXEC_FILE_LOAD: i64 = libc::SYS_kexec_file_load;

/// Too new for the library that names the others; the numbers are the same everywhere.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Namespaces give a process rights that its user does not have.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Makes the kernel signal a process when something happens to a descriptor.
const SIGNALLING_FCNTLS: [i32; 3] = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX];
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// The same by `ioctl`, and injecting input into a terminal.
const HOSTILE_IOCTLS: [u64; 4] = [FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX];
// The type of these differs between the C libraries.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541C;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;

/// The system calls of the x32 ABI, with other numbers, begin here.
#[cfg(target_arch = "x86_64")]
const X32_FIRST_CALL: u32 = 0x4000_0000;

type Compiled<T> = Result<T, seccompiler::BackendError>;

/// The denied calls: always if a call has no rules, otherwise if one of its rules matches.
#[derive(Default)]
struct Rules(BTreeMap<i64, Vec<SeccompRule>>);

impl Rules {
    fn deny(&mut self, calls: &[i64]) {
        self.0.extend(calls.iter().map(|&call| (call, Vec::new())));
    }

    /// A worker may signal itself, as `abort` does, and its own group, as the lifeline does. It
    /// may read its own limits.
    fn deny_to_others(&mut self) -> Compiled<()> {
        let own = u64::from(std::process::id());
        let not_own = || argument(0, SeccompCmpOp::Ne, own);
        let not_zero = || argument(0, SeccompCmpOp::Ne, 0);
        for call in [libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo] {
            self.0.insert(call, vec![SeccompRule::new(vec![not_own()?])?]);
        }
        for call in [libc::SYS_kill, libc::SYS_prlimit64] {
            self.0.insert(call, vec![SeccompRule::new(vec![not_own()?, not_zero()?])?]);
        }
        Ok(())
    }

    fn deny_arguments(&mut self) -> Compiled<()> {
        let equal = |value: u64| argument(1, SeccompCmpOp::Eq, value);
        let alone = |condition| SeccompRule::new(vec![condition]);
        for command in SIGNALLING_FCNTLS {
            let rules = self.0.entry(libc::SYS_fcntl).or_default();
            rules.push(alone(equal(u64::from(command.unsigned_abs()))?)?);
        }
        for control in HOSTILE_IOCTLS {
            self.0.entry(libc::SYS_ioctl).or_default().push(alone(equal(control)?)?);
        }
        for flag in NAMESPACES.map(|flag| u64::from(flag.cast_unsigned())) {
            let condition = argument(0, SeccompCmpOp::MaskedEq(flag), flag)?;
            self.0.entry(libc::SYS_clone).or_default().push(alone(condition)?);
        }
        Ok(())
    }

    fn compile(self) -> Compiled<BpfProgram> {
        let filter = SeccompFilter::new(
            self.0,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            std::env::consts::ARCH.try_into()?,
        )?;
        let mut program = missing_calls();
        program.extend(BpfProgram::try_from(filter)?);
        Ok(program)
    }
}

fn argument(at: u8, how: SeccompCmpOp, value: u64) -> Compiled<SeccompCondition> {
    SeccompCondition::new(at, SeccompCmpArgLen::Dword, how, value)
}

/// Makes some calls fail as if they did not exist. The flags of `clone3` are in memory, where a
/// filter cannot see them; without it, the C library uses `clone`. The numbers of the x32 ABI
/// would bypass every rule.
fn missing_calls() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let clone3 = libc::SYS_clone3 as u32;
    vec![
        step(LOAD_NUMBER, 0, 0, 0),
        #[cfg(target_arch = "x86_64")]
        step(0x35, 1, 0, X32_FIRST_CALL),
        step(IF_EQUAL, 0, 1, clone3),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
    ]
}
