//! The user's secrets: random keys in private files outside of every store.

use std::fmt::{self, Write as _};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use isolith_types::{Code, Failure, Hint};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

const KEY_BYTES: usize = 32;

/// A random key. Its file holds it as hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; KEY_BYTES]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// Reads the secret in `path`, which is created with a new one if it does not exist.
    /// Processes that create it at the same time all get the same secret.
    ///
    /// # Errors
    /// `store_refused` if others can read the file, if it belongs to another user, or if
    /// it does not hold a secret; `read_only` if it cannot be read or created.
    pub fn load_or_create(path: &Path) -> Result<Self, Failure> {
        match Self::load(path)? {
            Some(secret) => Ok(secret),
            None => {
                create(path).map_err(|error| unusable(path, "create", &error))?;
                Self::load(path)?
                    .ok_or_else(|| unusable(path, "read", &io::Error::from(ErrorKind::NotFound)))
            }
        }
    }

    /// Reads the secret in `path`; `None` if the file does not exist.
    ///
    /// # Errors
    /// As [`Self::load_or_create`].
    pub fn load(path: &Path) -> Result<Option<Self>, Failure> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, "read", &error)),
        };
        refuse_exposed(&file, path)?;
        let mut text = String::new();
        // One byte over the limit is enough to detect a file that is too long.
        let most = 2 * KEY_BYTES as u64 + 2;
        file.take(most)
            .read_to_string(&mut text)
            .map_err(|error| unusable(path, "read", &error))?;
        let secret = parse(text.trim_end()).ok_or_else(|| {
            Failure::new(Code::StoreRefused, format!("{} does not hold a secret", path.display()))
                .with_hint(Hint::RestoreSecret)
        })?;
        Ok(Some(secret))
    }

    /// The key itself.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// As hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

fn parse(text: &str) -> Option<Secret> {
    let mut key = [0; KEY_BYTES];
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(Secret(key))
}

fn refuse_exposed(file: &File, path: &Path) -> Result<(), Failure> {
    let metadata = file.metadata().map_err(|error| unusable(path, "read", &error))?;
    let (problem, hint) = if !metadata.is_file() {
        ("is not a file", Hint::RestoreSecret)
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        let advice = "name another file".to_owned();
        ("belongs to another user", Hint::NameSecretFile { advice })
    } else if metadata.mode() & 0o077 != 0 {
        ("can be read by other users", "`chmod 600` it".into())
    } else {
        return Ok(());
    };
    let message = format!("the secret {} {problem}", path.display());
    Err(Failure::new(Code::StoreRefused, message).with_hint(hint))
}

/// Writes a new secret aside and links it to its name, so that the first of several
/// processes wins and nobody reads half of it.
fn create(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let aside = TemporaryFile(folder.join(format!(".new-{:016x}", fastrand::u64(..))));
    let mut key = [0; KEY_BYTES];
    fill(&mut key)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside.0)?;
    writeln!(file, "{}", Secret(key).to_hex())?;
    file.sync_all()?;
    match fs::hard_link(&aside.0, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => File::open(folder)?.sync_all(),
    }
}

/// A temporary file, removed when dropped.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A leftover does no harm: its name is unique.
        let _ = fs::remove_file(&self.0);
    }
}

fn fill(mut rest: &mut [u8]) -> io::Result<()> {
    while !rest.is_empty() {
        let filled = getrandom(&mut *rest, GetRandomFlags::empty())?;
        rest = &mut rest[filled..];
    }
    Ok(())
}

fn unusable(path: &Path, operation: &str, error: &io::Error) -> Failure {
    let message = format!("cannot {operation} the secret {}: {error}", path.display());
    let advice = "name a private, writable file".to_owned();
    Failure::new(Code::ReadOnly, message).with_hint(Hint::NameSecretFile { advice })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_secret_is_created_once_and_private() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state/isolith/secret");
        let first = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| Secret::load_or_create(&path).unwrap())).collect();
            let mut secrets: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
            secrets.dedup();
            assert_eq!(secrets.len(), 1);
            secrets.remove(0)
        });
        assert_ne!(first, Secret([0; KEY_BYTES]));
        assert_eq!(Secret::load(&path).unwrap(), Some(first));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn an_exposed_or_broken_secret_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("secret");
        Secret::load_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(Secret::load(&path).unwrap_err().code, Code::StoreRefused);
        let link = place.path().join("link");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&path, &link).unwrap();
        assert_eq!(Secret::load(&link).unwrap_err().code, Code::ReadOnly);
        for broken in ["", "short", &"g".repeat(64), &"0".repeat(65)] {
            fs::write(&path, broken).unwrap();
            assert_eq!(Secret::load(&path).unwrap_err().code, Code::StoreRefused, "{broken}");
        }
        assert_eq!(Secret::load(place.path()).unwrap_err().code, Code::StoreRefused);
    }
}
