//! The seal of a store: a file with the store's uuid and a keyed hash of it, made with a
//! secret of this user. It proves that this user created the store on this machine, and that
//! it did not come with a clone or an archive.

use std::io::{self, Read, Write};

use isolith_folder::Folder;

use crate::secret::Secret;

/// The name of the seal's file.
pub(crate) const SEAL: &str = "seal";
const FIRST_LINE: &str = "isolith seal 1";

/// Separates this key from other keys derived from the same secret.
const CONTEXT: &str = "isolith 2026-11 seal of a store";

/// Maximum length of a seal, in bytes.
const MAX_SEAL_BYTES: u64 = 256;

/// The state of a store's seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seal {
    /// A seal of this user, for the database with this uuid.
    Valid(String),
    /// A seal not made with this user's secret.
    Invalid,
    /// There is no seal.
    Missing,
}

/// Reads the seal of the store in `folder`.
///
/// # Errors
/// If there is a seal that cannot be read.
pub(crate) fn read(folder: &Folder, secret: &Secret) -> io::Result<Seal> {
    let file = match folder.file(SEAL) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Seal::Missing),
        // A link or a pipe is not a seal of ours.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(Seal::Invalid),
        Err(error) if isolith_folder::met_link(&error) => return Ok(Seal::Invalid),
        Err(error) => return Err(error),
    };
    let mut text = Vec::new();
    file.take(MAX_SEAL_BYTES).read_to_end(&mut text)?;
    let uuid = std::str::from_utf8(&text).ok().and_then(|text| verified(text, secret));
    Ok(uuid.map_or(Seal::Invalid, |uuid| Seal::Valid(uuid.to_owned())))
}

/// Seals the store in `folder` for the database with this uuid, replacing any other seal.
///
/// # Errors
/// Any error from the system.
pub(crate) fn replace(folder: &Folder, secret: &Secret, uuid: &str) -> io::Result<()> {
    let aside = write_aside(folder, secret, uuid)?;
    folder.rename(&aside, folder, SEAL)?;
    folder.sync()
}

/// Seals the store in `folder` unless it has a seal: the first of several processes wins.
///
/// # Errors
/// Any error from the system.
pub(crate) fn create(folder: &Folder, secret: &Secret, uuid: &str) -> io::Result<()> {
    let aside = write_aside(folder, secret, uuid)?;
    match folder.rename_new(&aside, folder, SEAL) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => folder.remove(&aside),
        renamed => renamed.and_then(|()| folder.sync()),
    }
}

fn write_aside(folder: &Folder, secret: &Secret, uuid: &str) -> io::Result<String> {
    let name = format!(".{SEAL}-{:016x}", fastrand::u64(..));
    let mut file = folder.create(&name)?;
    let text = format!("{FIRST_LINE}\n{uuid}\n{}\n", mark(secret, uuid).to_hex());
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = folder.remove(&name);
        return Err(error);
    }
    Ok(name)
}

fn verified<'a>(text: &'a str, secret: &Secret) -> Option<&'a str> {
    let mut lines = text.split('\n');
    let (first, uuid, hash) = (lines.next()?, lines.next()?, lines.next()?);
    let plain = uuid.len() == 36 && uuid.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    let hash = blake3::Hash::from_hex(hash).ok()?;
    // Hashes are compared in constant time.
    (first == FIRST_LINE && plain && hash == mark(secret, uuid)).then_some(uuid)
}

fn mark(secret: &Secret, uuid: &str) -> blake3::Hash {
    blake3::keyed_hash(&blake3::derive_key(CONTEXT, secret.bytes()), uuid.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const UUID: &str = "01234567-89ab-4cde-a012-3456789abcde";

    #[test]
    fn a_seal_is_valid_only_with_its_own_secret() {
        let place = tempfile::tempdir().unwrap();
        let secret = |name| Secret::load_or_create(&place.path().join(name)).unwrap();
        let (mine, other) = (secret("mine"), secret("other"));
        let store = place.path().join("store");
        fs::create_dir(&store).unwrap();
        let folder = Folder::open(&store).unwrap();
        assert_eq!(read(&folder, &mine).unwrap(), Seal::Missing);

        create(&folder, &mine, UUID).unwrap();
        create(&folder, &other, UUID).unwrap();
        assert_eq!(read(&folder, &mine).unwrap(), Seal::Valid(UUID.to_owned()));
        assert_eq!(read(&folder, &other).unwrap(), Seal::Invalid);
        assert_eq!(fs::read_dir(&store).unwrap().count(), 1);

        let text = fs::read_to_string(store.join("seal")).unwrap();
        // The format is specified in docs/format.md.
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["isolith seal 1", UUID]);
        assert!(lines.len() == 3 && lines[2].len() == 64 && text.ends_with('\n'), "{text}");
        assert!(lines[2].bytes().all(|digit| digit.is_ascii_hexdigit()), "{text}");
        for forged in [
            text.replace("01234567", "11234567"),
            text.replace("seal 1", "seal 2"),
            text[..text.len() - 2].to_owned(),
            String::new(),
            "x".repeat(10_000),
        ] {
            fs::write(store.join("seal"), forged).unwrap();
            assert_eq!(read(&folder, &mine).unwrap(), Seal::Invalid);
        }
        replace(&folder, &mine, UUID).unwrap();
        assert_eq!(read(&folder, &mine).unwrap(), Seal::Valid(UUID.to_owned()));
        fs::remove_file(store.join("seal")).unwrap();
        std::os::unix::fs::symlink(place.path().join("mine"), store.join("seal")).unwrap();
        assert_eq!(read(&folder, &mine).unwrap(), Seal::Invalid);
    }
}
