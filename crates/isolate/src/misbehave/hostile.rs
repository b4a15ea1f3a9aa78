//! What an attacker who controls a worker might try, for tests of the sandbox.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::linux::files::has_landlock;

/// The results of all attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Attempts on files, by name: Landlock must refuse them.
    pub files: Vec<(String, Verdict)>,
    /// All other attempts, by name: seccomp must refuse them.
    pub calls: Vec<(String, Verdict)>,
    /// Whether this kernel has Landlock.
    pub landlock: bool,
    /// The names of all environment variables.
    pub environment: Vec<String>,
}

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The system refused it.
    Refused,
    /// It succeeded, or failed for another reason than a refusal; with the error number.
    Allowed(i32),
}

/// Makes all attempts and panics with a [`Tried`] in JSON as the message, so that the result
/// reaches the front from any role and any job. `home` is a folder that no worker should be
/// able to access; it contains a file `secret`.
///
/// # Panics
/// Always.
#[allow(clippy::panic)]
pub fn panic_with_attempts(home: &Path) -> ! {
    let environment = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let mut calls = processes();
    calls.extend(sockets());
    calls.extend(permissions(home));
    calls.extend(system());
    let tried = Tried {
        files: verdicts(&files(home)),
        calls: verdicts(&calls),
        landlock: has_landlock(),
        environment: environment.collect(),
    };
    panic!("{}", serde_json::to_string(&tried).unwrap_or_default());
}

fn verdicts(attempts: &Attempts) -> Vec<(String, Verdict)> {
    attempts.iter().map(|(name, done)| ((*name).to_owned(), verdict(done))).collect()
}

type Attempts = Vec<(&'static str, io::Result<()>)>;

fn verdict(done: &io::Result<()>) -> Verdict {
    match done {
        Ok(()) => Verdict::Allowed(0),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Verdict::Refused,
        Err(error) => Verdict::Allowed(error.raw_os_error().unwrap_or(-1)),
    }
}

fn files(home: &Path) -> Attempts {
    let front = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get());
    let of_front = |name: &str| File::open(format!("/proc/{front}/{name}")).map(drop);
    vec![
        ("read /etc/passwd", fs::read("/etc/passwd").map(drop)),
        ("read a file at home", fs::read(home.join("secret")).map(drop)),
        ("list the home", fs::read_dir(home).map(drop)),
        ("write to .ssh", File::create(home.join(".ssh/authorized_keys")).map(drop)),
        ("create a file at home", File::create(home.join("new")).map(drop)),
        ("remove a file at home", fs::remove_file(home.join("secret"))),
        ("create a link", std::os::unix::fs::symlink("/etc/passwd", home.join("link"))),
        ("read the front's memory file", of_front("mem")),
        ("read the front's environment", of_front("environ")),
        ("list the front's descriptors", fs::read_dir(format!("/proc/{front}/fd")).map(drop)),
    ]
}

/// The result of a system call.
fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The signal is SIGCONT, which has no effect on a running front.
#[allow(unsafe_code)]
fn processes() -> Attempts {
    // SAFETY: all arguments are numbers or pointers to values that outlive the call. No call
    // should succeed; any that does is harmless.
    unsafe {
        let (front, cont) = (libc::getppid(), libc::SIGCONT);
        let mut byte = 0_u8;
        let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let seize = libc::ptrace(libc::PTRACE_SEIZE, front, 0, 0);
        let mut attempts = vec![("ptrace the front", done(seize))];
        if seize == 0 {
            libc::ptrace(libc::PTRACE_DETACH, front, 0, 0);
        }
        let read = libc::process_vm_readv(front, &raw const local, 1, &raw const local, 1, 0);
        attempts.push(("read the front's memory", done(read as libc::c_long)));
        let write = libc::process_vm_writev(front, &raw const local, 0, &raw const local, 0, 0);
        attempts.push(("write the front's memory", done(write as libc::c_long)));
        let mut info: libc::siginfo_t = std::mem::zeroed();
        info.si_code = -1;
        let info = &raw const info;
        let pidfd = libc::syscall(libc::SYS_pidfd_open, front, 0);
        let limit: libc::rlimit64 = std::mem::zeroed();
        let priority = libc::setpriority(libc::PRIO_PROCESS, front.unsigned_abs(), 0);
        let (limit, nothing) = (&raw const limit, std::ptr::null_mut());
        let limited = libc::prlimit64(front, libc::RLIMIT_CORE, limit, nothing);
        attempts.extend([
            ("open the front's process", done(pidfd)),
            ("signal the front", done(libc::kill(front, cont).into())),
            ("signal the front's group", done(libc::kill(-libc::getpgid(front), cont).into())),
            ("signal everybody", done(libc::kill(-1, 0).into())),
            (
                "signal the front's thread",
                done(libc::syscall(libc::SYS_tgkill, front, front, cont)),
            ),
            ("signal by thread", done(libc::syscall(libc::SYS_tkill, front, cont))),
            ("queue a signal", done(libc::syscall(libc::SYS_rt_sigqueueinfo, front, cont, info))),
            (
                "have the kernel signal the front",
                done(libc::fcntl(libc::STDOUT_FILENO, libc::F_SETOWN, front).into()),
            ),
            ("join the front's group", done(libc::setpgid(0, libc::getpgid(front)).into())),
            ("leave the own session", done(libc::setsid().into())),
            ("change the front's limits", done(limited.into())),
            ("change the front's priority", done(priority.into())),
        ]);
        attempts
    }
}

#[allow(unsafe_code)]
fn sockets() -> Attempts {
    // SAFETY: the parameters are zeroed, which is valid, and outlive the call.
    let ring = unsafe {
        let mut parameters = [0_u8; 120];
        libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr())
    };
    vec![
        ("open a TCP socket", TcpListener::bind("127.0.0.1:0").map(drop)),
        ("open a UDP socket", UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("open a Unix socket", UnixDatagram::unbound().map(drop)),
        ("open a pair of sockets", UnixDatagram::pair().map(drop)),
        ("set up io_uring", done(ring)),
    ]
}

/// On files that the worker can reach (its own memory) and on those that it cannot.
#[allow(unsafe_code)]
fn permissions(home: &Path) -> Attempts {
    let Ok(path) = CString::new(home.join("secret").as_os_str().as_bytes()) else {
        return Vec::new();
    };
    let (path, empty) = (path.as_ptr(), c"".as_ptr());
    // SAFETY: as above; the memory file is owned here and closed at the end.
    unsafe {
        let memory = libc::memfd_create(c"hostile".as_ptr(), libc::MFD_CLOEXEC);
        let own = OwnedFd::from_raw_fd(memory);
        let fd = own.as_raw_fd();
        let (user, group) = (libc::getuid(), libc::getgid());
        let (name, value) = (c"user.hostile".as_ptr(), c"x".as_ptr().cast());
        let fchmodat2 = libc::syscall(452, fd, empty, 0o777, libc::AT_EMPTY_PATH);
        let mut attempts = vec![
            ("chmod", done(libc::chmod(path, 0o777).into())),
            ("fchmod", done(libc::fchmod(fd, 0o777).into())),
            ("fchmodat", done(libc::fchmodat(libc::AT_FDCWD, path, 0o777, 0).into())),
            ("chown", done(libc::chown(path, user, group).into())),
            ("lchown", done(libc::lchown(path, user, group).into())),
            ("fchown", done(libc::fchown(fd, user, group).into())),
            ("set an attribute", done(libc::fsetxattr(fd, name, value, 1, 0).into())),
            // It returns the old mask, or a refusal, which is no valid mask.
            ("change the umask", done(libc::syscall(libc::SYS_umask, 0o077))),
        ];
        // A kernel without this call fails with another error.
        if fchmodat2 == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
            attempts.push(("fchmodat2", done(fchmodat2)));
        }
        attempts
    }
}

#[allow(unsafe_code)]
fn system() -> Attempts {
    let program = std::process::Command::new("/bin/true").status().map(drop);
    // SAFETY: as above. The user namespace would be this process's own.
    unsafe {
        let nothing = std::ptr::null::<libc::c_char>();
        let place = c"/nowhere".as_ptr();
        let mounted = libc::mount(nothing, place, nothing, 0, std::ptr::null());
        vec![
            ("start a program", program),
            ("mount", done(mounted.into())),
            ("make a namespace", done(libc::unshare(libc::CLONE_NEWUSER).into())),
            ("load a program into the kernel", done(libc::syscall(libc::SYS_bpf, 0, 0, 0))),
            ("handle page faults", done(libc::syscall(libc::SYS_userfaultfd, 0))),
            ("read keys", done(libc::syscall(libc::SYS_keyctl, 0, -3, 0))),
        ]
    }
}
