//! The frames of SQLite's log, including those after damage.
//!
//! A frame's checksum continues from the one before it, so SQLite stops at the first frame that
//! does not match. But each frame stores its own, from which the next one can be verified: damage
//! to one frame does not affect those that follow.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::checksum::{ByteOrder, Sums, flipped_bit};
use isolith_pages::{is_sealed, unseal};

use crate::pragmas::PAGE_SIZE;

pub(super) const HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = PAGE_SIZE as usize;
pub(super) const FRAME: u64 = (FRAME_HEADER + PAGE) as u64;

/// Magic number of logs with big-endian checksums.
const MAGIC_BIG: [u8; 4] = 0x377F_0683_u32.to_be_bytes();

/// One page written to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogFrame {
    /// Page number; `None` if damaged.
    pub(super) page: Option<u32>,
    /// Size of the file in pages after the commit that this frame ends; 0 if it ends none.
    pub(super) pages_after: u32,
    pub(super) state: FrameState,
}

/// Whether a frame can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    /// Valid, as SQLite would read it.
    Sound,
    /// The content is valid; only its checksum or salt, or the frame before it, is damaged.
    Proven,
    /// Valid after flipping this bit of header and page back.
    Repaired(usize),
    /// The page in the file is what this frame contained.
    InFile,
    /// Cannot be trusted.
    Damaged,
}

/// The frames of the log that belong to the current file.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) all: Vec<LogFrame>,
    /// Number of leading frames that SQLite would use.
    pub(super) used: usize,
}

impl Frames {
    /// Reads a log. `truth`, if given, is searched for pages that are already in the file.
    pub(super) fn read(log: &File, truth: Option<&File>) -> io::Result<Self> {
        let count = log.metadata()?.len().saturating_sub(HEADER) / FRAME;
        let mut header = [0; HEADER as usize];
        if count == 0 || log.read_exact_at(&mut header, 0).is_err() {
            return Ok(Self::default());
        }
        let mut scan = FrameScan::new(log, &header, count)?;
        let mut frames = Self::default();
        let mut bytes = vec![0; FRAME as usize];
        for number in 0..count {
            log.read_exact_at(&mut bytes, HEADER + number * FRAME)?;
            frames.all.push(scan.frame(&bytes, truth));
        }
        // Ignore remains of an older log and frames that were never committed.
        let last = frames
            .all
            .iter()
            .rposition(|frame| frame.state != FrameState::Damaged && frame.pages_after > 0);
        let read = frames.all.iter().take_while(|frame| frame.state == FrameState::Sound).count();
        let read = if scan.header_is_sound { read } else { 0 };
        let commits = frames.all[..read].iter().rposition(|frame| frame.pages_after > 0);
        frames.used = commits.map_or(0, |last| last + 1);
        frames.all.truncate(last.map_or(0, |last| last + 1));
        Ok(frames)
    }

    /// Whether there are commits that SQLite would not see.
    pub(super) fn goes_on(&self) -> bool {
        self.all.len() > self.used
    }

    /// Indexes of trusted frames that end a commit.
    pub(super) fn commits(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.all.iter().enumerate().filter_map(|(place, frame)| {
            (frame.pages_after > 0 && frame.state != FrameState::Damaged).then_some(place)
        })
    }

    /// The last commit at which the newest state of every page is known; `None` if that is
    /// before the first.
    pub(super) fn last_whole(&self) -> Option<usize> {
        let mut ends: Vec<usize> = self.commits().collect();
        for (place, frame) in self.all.iter().enumerate() {
            if frame.state != FrameState::Damaged {
                continue;
            }
            let later = self.all[place..].iter().position(|other| {
                other.state != FrameState::Damaged
                    && frame.page.is_some()
                    && other.page == frame.page
            });
            let until = later.map_or(usize::MAX, |later| place + later);
            // The damaged frame may itself have ended a commit, which is then unknown.
            ends.retain(|end| *end < place || *end >= until);
        }
        ends.pop()
    }

    /// The pages whose newest state at this frame is unknown; 0 stands for an unknown page.
    pub(super) fn stale_until(&self, end: usize) -> Vec<u32> {
        let mut stale = std::collections::BTreeSet::new();
        for frame in &self.all[..=end] {
            match (frame.state, frame.page) {
                (FrameState::Damaged, Some(page)) => stale.insert(page),
                (FrameState::Damaged, None) => stale.insert(0),
                (_, Some(page)) => stale.remove(&page),
                (_, None) => false,
            };
        }
        stale.into_iter().collect()
    }

    /// The page in a frame, which must not be damaged. `None` if the page is in the file.
    pub(super) fn page(&self, log: &File, place: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; FRAME as usize];
        log.read_exact_at(&mut bytes, HEADER + place as u64 * FRAME)?;
        match self.all[place].state {
            FrameState::InFile => return Ok(None),
            FrameState::Repaired(bit) => flip(&mut bytes, bit),
            FrameState::Sound | FrameState::Proven | FrameState::Damaged => {}
        }
        Ok(Some(bytes.split_off(FRAME_HEADER)))
    }
}

/// Reads frame after frame.
struct FrameScan {
    order: ByteOrder,
    salt: [u8; 8],
    header_is_sound: bool,
    /// Possible starting sums of the next frame: the verified ones first, or else the stored
    /// ones.
    seeds: Vec<Sums>,
    /// Whether the first seed follows from verified frames.
    proven: bool,
}

impl FrameScan {
    fn new(log: &File, header: &[u8; HEADER as usize], count: u64) -> io::Result<Self> {
        let order = if header[..4] == MAGIC_BIG { ByteOrder::Big } else { ByteOrder::Little };
        let computed = Sums::default().over(&header[..24], order);
        let stored = Sums::stored(&header[24..]);
        let header_is_sound = computed == stored;
        let mut salt = [0; 8];
        salt.copy_from_slice(&header[16..24]);
        if !header_is_sound {
            salt = common_salt(log, salt, count)?;
        }
        Ok(Self {
            order,
            salt,
            header_is_sound,
            seeds: vec![stored, computed],
            proven: header_is_sound,
        })
    }

    fn frame(&mut self, bytes: &[u8], truth: Option<&File>) -> LogFrame {
        let stored = Sums::stored(&bytes[16..]);
        let same_salt = bytes[8..16] == self.salt;
        let (state, next) = self.judge(bytes, stored, same_salt, truth);
        let mut head = [0; 8];
        head.copy_from_slice(&bytes[..8]);
        if let FrameState::Repaired(bit @ 0..64) = state {
            head[bit / 8] ^= 1 << (bit % 8);
        }
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        self.seeds = vec![next];
        self.proven = state != FrameState::Damaged;
        // The page number of a damaged frame is trusted if the salt next to it is intact.
        let page =
            Some(number(0)).filter(|page| *page > 0 && (state != FrameState::Damaged || same_salt));
        LogFrame { page, pages_after: number(4), state }
    }

    /// The state of a frame, and the seed for the next one.
    fn judge(
        &self,
        bytes: &[u8],
        stored: Sums,
        same_salt: bool,
        truth: Option<&File>,
    ) -> (FrameState, Sums) {
        let sums_from = |seed: Sums, head: &[u8], page: &[u8]| {
            seed.over(head, self.order).over(page, self.order)
        };
        let (head, page) = (&bytes[..8], &bytes[FRAME_HEADER..]);
        let all = |seed| sums_from(seed, head, page);
        if let Some(place) = self.seeds.iter().position(|seed| all(*seed) == stored) {
            // Frames of an older log are consistent, too; only the salt distinguishes them.
            return match (self.proven && place == 0, same_salt) {
                (true, true) => (FrameState::Sound, stored),
                (true, false) => (FrameState::Proven, stored),
                (false, true) => (FrameState::Proven, stored),
                (false, false) => (FrameState::Damaged, stored),
            };
        }
        if !same_salt {
            return (FrameState::Damaged, stored);
        }
        for seed in &self.seeds {
            let found = all(*seed);
            if found.distance(stored) == 1 {
                return (FrameState::Proven, found);
            }
            let mut summed = head.to_vec();
            summed.extend_from_slice(page);
            if let Some(bit) = flipped_bit(&summed, found, stored, self.order) {
                let beyond_head = if bit < 64 { 0 } else { (FRAME_HEADER - 8) * 8 };
                return (FrameState::Repaired(bit + beyond_head), stored);
            }
            let number = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let in_file = truth.and_then(|truth| page_of(truth, number).ok());
            if in_file.is_some_and(|in_file| sums_from(*seed, head, &in_file) == stored) {
                return (FrameState::InFile, stored);
            }
        }
        (FrameState::Damaged, stored)
    }
}

/// The salt of a log whose header may be damaged: the most frequent one in the header and the
/// first frames.
fn common_salt(log: &File, said: [u8; 8], count: u64) -> io::Result<[u8; 8]> {
    let mut found = vec![said];
    for number in 0..count.min(4) {
        let mut salt = [0; 8];
        log.read_exact_at(&mut salt, HEADER + number * FRAME + 8)?;
        found.push(salt);
    }
    let votes = |salt: &[u8; 8]| found.iter().filter(|other| *other == salt).count();
    Ok(found.iter().copied().max_by_key(|salt| votes(salt)).unwrap_or(said))
}

/// A page of the file in the form it has in the log, without our checksum.
pub(super) fn page_of(truth: &File, number: u32) -> io::Result<Vec<u8>> {
    let Some(before) = number.checked_sub(1) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut page = vec![0; PAGE];
    truth.read_exact_at(&mut page, u64::from(before) * PAGE as u64)?;
    if is_sealed(&page, number) {
        unseal(&mut page);
    }
    Ok(page)
}

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}
