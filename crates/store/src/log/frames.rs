//! The frames of SQLite's log, those past damage included.
//!
//! A frame's checksum goes on from the one before it, so SQLite stops at the first frame that
//! does not fit. But each frame stores its own, from which the next one can be checked again:
//! damage to one frame says nothing about those that follow.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::checksum::{Order, Sums, flipped_bit};
use isolith_pages::{is_sealed, unseal};

use crate::pragmas::PAGE_SIZE;

pub(super) const HEADER: u64 = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = PAGE_SIZE as usize;
pub(super) const FRAME: u64 = (FRAME_HEADER + PAGE) as u64;

/// Of logs whose words were added up with the first byte as the greatest.
const MAGIC_BIG: [u8; 4] = 0x377F_0683_u32.to_be_bytes();

/// What the log says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The number of the page; none if damage hides it.
    pub(super) page: Option<u32>,
    /// How many pages the file has after the commit that this frame ends; 0 if it ends none.
    pub(super) pages_after: u32,
    pub(super) state: State,
}

/// Whether a frame can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// As SQLite would read it.
    Sound,
    /// Only its checksum or salt is damaged, or the frame before it.
    Proven,
    /// After this bit of header and page was flipped back.
    Mended(usize),
    /// The page in the file is what this frame held.
    InFile,
    /// It cannot be relied on.
    Damaged,
}

/// The log as far as it belongs to the file as it is.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) all: Vec<Frame>,
    /// How many of the first frames SQLite would use.
    pub(super) used: usize,
}

impl Frames {
    /// Reads a log. `truth`, if given, is asked for pages that may be in the file already.
    pub(super) fn read(log: &File, truth: Option<&File>) -> io::Result<Self> {
        let count = log.metadata()?.len().saturating_sub(HEADER) / FRAME;
        let mut header = [0; HEADER as usize];
        if count == 0 || log.read_exact_at(&mut header, 0).is_err() {
            return Ok(Self::default());
        }
        let mut scan = Scan::new(log, &header, count)?;
        let mut frames = Self::default();
        let mut bytes = vec![0; FRAME as usize];
        for number in 0..count {
            log.read_exact_at(&mut bytes, HEADER + number * FRAME)?;
            frames.all.push(scan.frame(&bytes, truth));
        }
        // What is left of an older log, and what was never committed, is nothing to us.
        let last = frames
            .all
            .iter()
            .rposition(|frame| frame.state != State::Damaged && frame.pages_after > 0);
        let read = frames.all.iter().take_while(|frame| frame.state == State::Sound).count();
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

    /// The places of frames that end a commit and can be relied on.
    pub(super) fn commits(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.all.iter().enumerate().filter_map(|(place, frame)| {
            (frame.pages_after > 0 && frame.state != State::Damaged).then_some(place)
        })
    }

    /// The last commit at which the newest state of every page is known; none if that is
    /// only so before the first.
    pub(super) fn last_whole(&self) -> Option<usize> {
        let mut ends: Vec<usize> = self.commits().collect();
        for (place, frame) in self.all.iter().enumerate() {
            if frame.state != State::Damaged {
                continue;
            }
            let later = self.all[place..].iter().position(|other| {
                other.state != State::Damaged && frame.page.is_some() && other.page == frame.page
            });
            let until = later.map_or(usize::MAX, |later| place + later);
            // A commit that the damaged frame itself may have ended is not known as such.
            ends.retain(|end| *end < place || *end >= until);
        }
        ends.pop()
    }

    /// The pages whose newest state at this frame is not known; 0 for one that nobody knows.
    pub(super) fn stale_until(&self, end: usize) -> Vec<u32> {
        let mut stale = std::collections::BTreeSet::new();
        for frame in &self.all[..=end] {
            match (frame.state, frame.page) {
                (State::Damaged, Some(page)) => stale.insert(page),
                (State::Damaged, None) => stale.insert(0),
                (_, Some(page)) => stale.remove(&page),
                (_, None) => false,
            };
        }
        stale.into_iter().collect()
    }

    /// The page that a frame holds, which must not be damaged. None if the file has it.
    pub(super) fn page(&self, log: &File, place: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; FRAME as usize];
        log.read_exact_at(&mut bytes, HEADER + place as u64 * FRAME)?;
        match self.all[place].state {
            State::InFile => return Ok(None),
            State::Mended(bit) => flip(&mut bytes, bit),
            State::Sound | State::Proven | State::Damaged => {}
        }
        Ok(Some(bytes.split_off(FRAME_HEADER)))
    }
}

/// Goes from frame to frame.
struct Scan {
    order: Order,
    salt: [u8; 8],
    header_is_sound: bool,
    /// What the checksum of the next frame may go on from. The first is what it is proven to
    /// be, or else what is written.
    seeds: Vec<Sums>,
    /// Whether the seed follows from frames that were checked.
    proven: bool,
}

impl Scan {
    fn new(log: &File, header: &[u8; HEADER as usize], count: u64) -> io::Result<Self> {
        let order = if header[..4] == MAGIC_BIG { Order::Big } else { Order::Little };
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

    fn frame(&mut self, bytes: &[u8], truth: Option<&File>) -> Frame {
        let stored = Sums::stored(&bytes[16..]);
        let same_salt = bytes[8..16] == self.salt;
        let (state, next) = self.judge(bytes, stored, same_salt, truth);
        let mut head = [0; 8];
        head.copy_from_slice(&bytes[..8]);
        if let State::Mended(bit @ 0..64) = state {
            head[bit / 8] ^= 1 << (bit % 8);
        }
        let number =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        self.seeds = vec![next];
        self.proven = state != State::Damaged;
        // Of a damaged frame, the page's number is believed if what stands beside it is whole.
        let page =
            Some(number(0)).filter(|page| *page > 0 && (state != State::Damaged || same_salt));
        Frame { page, pages_after: number(4), state }
    }

    /// The state of a frame, and what the next one goes on from.
    fn judge(
        &self,
        bytes: &[u8],
        stored: Sums,
        same_salt: bool,
        truth: Option<&File>,
    ) -> (State, Sums) {
        let sums_from = |seed: Sums, head: &[u8], page: &[u8]| {
            seed.over(head, self.order).over(page, self.order)
        };
        let (head, page) = (&bytes[..8], &bytes[FRAME_HEADER..]);
        let all = |seed| sums_from(seed, head, page);
        if let Some(place) = self.seeds.iter().position(|seed| all(*seed) == stored) {
            // An older log's frames fit each other too; only their salt tells them apart.
            return match (self.proven && place == 0, same_salt) {
                (true, true) => (State::Sound, stored),
                (true, false) => (State::Proven, stored),
                (false, true) => (State::Proven, stored),
                (false, false) => (State::Damaged, stored),
            };
        }
        if !same_salt {
            return (State::Damaged, stored);
        }
        for seed in &self.seeds {
            let found = all(*seed);
            if found.distance(stored) == 1 {
                return (State::Proven, found);
            }
            let mut summed = head.to_vec();
            summed.extend_from_slice(page);
            if let Some(bit) = flipped_bit(&summed, found, stored, self.order) {
                let beyond_head = if bit < 64 { 0 } else { (FRAME_HEADER - 8) * 8 };
                return (State::Mended(bit + beyond_head), stored);
            }
            let number = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let in_file = truth.and_then(|truth| page_of(truth, number).ok());
            if in_file.is_some_and(|in_file| sums_from(*seed, head, &in_file) == stored) {
                return (State::InFile, stored);
            }
        }
        (State::Damaged, stored)
    }
}

/// The salt of a log with a damaged header: what its first frames say.
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

/// A page of the file, as it would be in the log, where pages have no checksum of ours.
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
