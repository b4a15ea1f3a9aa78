use crate::feed::{Feed, Taken, next_member, peek, skip_value, take_key, take_value};
use crate::records::error::Flaw;
use crate::records::layout::{List, Rejections};
use crate::records::row::{
    VectorRule, kind_of, read_document, read_id, read_metadata, read_vector,
};
use crate::records::{Cursor, Format, IntakeError, Rules};

use super::duplicates::IdHashes;
use super::{Findings, VectorSource};

const READY: &str = "chromadb_ready";

/// The top-level object of a file: four lists, an object that contains them, or the first record
/// of a file of lines. Its keys, in any order, tell which.
pub(super) struct TopObject<'r> {
    rules: &'r Rules,
    source: VectorSource<'r>,
    /// The top-level lists; those under `chromadb_ready` take precedence.
    bare: Lists<'r>,
    ready: Option<Lists<'r>>,
    has_id: bool,
    has_vector: bool,
    is_header: bool,
    /// Some of the unknown keys, for the message.
    strange_keys: Vec<String>,
}

impl<'r> TopObject<'r> {
    pub(super) fn new(rules: &'r Rules, source: VectorSource<'r>) -> Self {
        Self {
            rules,
            source,
            bare: Lists::new(rules, source),
            ready: None,
            has_id: false,
            has_vector: false,
            is_header: false,
            strange_keys: Vec::new(),
        }
    }

    /// Reads the object after its opening bracket.
    pub(super) fn read<F: Feed>(&mut self, feed: &mut F) -> Result<(), IntakeError> {
        let mut first = true;
        while next_member(feed, first, b'}')? {
            first = false;
            let offset = feed.offset();
            let key = take_key(feed)?;
            match (key.as_str(), List::named(&key)) {
                (READY, _) if self.ready.is_some() => {
                    return Err(IntakeError::RepeatedKey { key: READY, offset });
                }
                (READY, _) => self.read_ready(feed)?,
                (_, Some(list)) if self.ready.is_none() => self.bare.read(list, feed)?,
                _ => {
                    self.note(&key);
                    skip_value(feed)?;
                }
            }
        }
        Ok(())
    }

    fn read_ready<F: Feed>(&mut self, feed: &mut F) -> Result<(), IntakeError> {
        // Top-level keys with the same names were something else.
        self.bare = Lists::new(self.rules, self.source);
        let lists = self.ready.insert(Lists::new(self.rules, self.source));
        let offset = feed.offset();
        if peek(feed)? != Some(b'{') {
            let (key, expected) = (READY, "an object of lists");
            let found = take_kind(feed)?;
            return Err(IntakeError::WrongShape { key, expected, found, offset });
        }
        feed.advance(1);
        let mut first = true;
        while next_member(feed, first, b'}')? {
            first = false;
            match List::named(&take_key(feed)?) {
                Some(list) => lists.read(list, feed)?,
                None => skip_value(feed)?,
            }
        }
        Ok(())
    }

    fn note(&mut self, key: &str) {
        const SHOWN_KEYS: usize = 5;
        const SHOWN_CHARS: usize = 30;
        match key {
            "id" => self.has_id = true,
            "embedding" | "vector" => self.has_vector = true,
            "isolith_export" => self.is_header = true,
            _ if self.strange_keys.len() < SHOWN_KEYS => {
                self.strange_keys.push(key.chars().take(SHOWN_CHARS).collect());
            }
            _ => {}
        }
    }

    /// Whether the keys so far are those of a record or of a header line.
    pub(super) fn is_a_record(&self) -> bool {
        let of_lists =
            self.bare.met[List::Ids as usize] || self.bare.met[List::Embeddings as usize];
        self.ready.is_none()
            && (self.is_header
                || (self.has_id && self.has_vector)
                || ((self.has_id || self.has_vector) && !of_lists))
    }

    pub(super) fn conclude(self) -> Result<Findings, IntakeError> {
        let nested = self.ready.is_some();
        let lists = self.ready.unwrap_or(self.bare);
        if !nested && !lists.met.contains(&true) {
            let found = if self.strange_keys.is_empty() {
                "an empty JSON object".to_owned()
            } else {
                format!("a JSON object with the keys {}", self.strange_keys.join(", "))
            };
            return Err(IntakeError::Unrecognized { found });
        }
        lists.conclude()
    }
}

/// The state of reading four parallel lists.
struct Lists<'r> {
    source: VectorSource<'r>,
    met: [bool; 4],
    /// Where each list begins, after its bracket.
    starts: [Option<u64>; 4],
    counts: [u64; 4],
    vectors: VectorRule,
    vector: Vec<f32>,
    ids: IdHashes,
    rejections: Rejections,
    /// Rows that cannot be used if vectors are in the file.
    without_vector: Rejections,
    /// Rows that cannot be used if documents are embedded.
    not_embeddable: Rejections,
    /// Whether the first row has a vector.
    first_has_vector: bool,
    /// Held back until it is known that these lists are used.
    error: Option<IntakeError>,
}

impl<'r> Lists<'r> {
    fn new(rules: &Rules, source: VectorSource<'r>) -> Self {
        Self {
            source,
            met: [false; 4],
            starts: [None; 4],
            counts: [0; 4],
            vectors: VectorRule::new(rules.dimension, rules.metric),
            vector: Vec::new(),
            ids: IdHashes::default(),
            rejections: Rejections::default(),
            without_vector: Rejections::default(),
            not_embeddable: Rejections::default(),
            first_has_vector: false,
            error: None,
        }
    }

    fn read<F: Feed>(&mut self, list: List, feed: &mut F) -> Result<(), IntakeError> {
        let offset = feed.offset();
        if self.met[list as usize] {
            self.error.get_or_insert(IntakeError::RepeatedKey { key: list.name(), offset });
            return Ok(skip_value(feed)?);
        }
        self.met[list as usize] = true;
        if peek(feed)? != Some(b'[') {
            let found = take_kind(feed)?;
            if found != "null" {
                let (key, expected) = (list.name(), "a list");
                self.error.get_or_insert(IntakeError::WrongShape { key, expected, found, offset });
            }
            return Ok(());
        }
        feed.advance(1);
        self.starts[list as usize] = Some(feed.offset());
        let mut row = 0;
        let in_list = |fault, row| IntakeError::in_list(fault, list, row);
        while next_member(feed, row == 0, b']').map_err(|fault| in_list(fault, row))? {
            let limit = list.item_limit();
            match take_value(feed, limit).map_err(|fault| in_list(fault, row))? {
                Taken::Whole(length) => {
                    let item = &feed.window()[..length];
                    if let Err(flaw) = self.check(list, row, item, feed.offset()) {
                        self.rejections_of(list).add(row, None, flaw);
                    }
                    feed.advance(length);
                }
                Taken::TooLong(bytes) => {
                    let part = list.item_name();
                    self.rejections_of(list).add(row, None, Flaw::TooLong { part, bytes, limit });
                }
            }
            row += 1;
        }
        self.counts[list as usize] = row;
        Ok(())
    }

    /// What is wrong with a vector does not matter if documents are embedded.
    fn rejections_of(&mut self, list: List) -> &mut Rejections {
        match list {
            List::Embeddings => &mut self.without_vector,
            List::Ids | List::Metadatas | List::Documents => &mut self.rejections,
        }
    }

    fn check(&mut self, list: List, row: u64, item: &[u8], offset: u64) -> Result<(), Flaw> {
        match list {
            List::Ids => self.ids.add(&read_id(item, offset)?),
            List::Embeddings if self.source.may_embed() && item == b"null" => {
                return Err(self.source.missing());
            }
            List::Embeddings => {
                self.first_has_vector |= row == 0;
                if self.source.may_embed() {
                    self.not_embeddable.add(row, None, self.source.unwanted());
                }
                read_vector(item, offset, &mut self.vector)?;
                self.vectors.admit(&self.vector)?;
            }
            List::Metadatas => drop(read_metadata(item, offset)?),
            List::Documents => {
                let document = read_document(item, offset)?;
                // Whether documents are embedded may become known only later.
                if self.source.may_embed()
                    && let Err(flaw) = self.source.check_document(document.as_deref())
                {
                    self.not_embeddable.add(row, None, flaw);
                }
            }
        }
        Ok(())
    }

    /// Whether the documents are embedded.
    fn embeds(&self) -> bool {
        match self.source {
            VectorSource::Rows => false,
            VectorSource::Documents(_) => true,
            VectorSource::AsFirstRow(_) => {
                let has = |list| self.starts[list as usize].is_some();
                !self.first_has_vector
                    && has(List::Documents)
                    && (!has(List::Embeddings) || self.counts[List::Embeddings as usize] > 0)
            }
        }
    }

    fn conclude(mut self) -> Result<Findings, IntakeError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let embedded = self.embeds();
        let needed = if embedded { List::Documents } else { List::Embeddings };
        for list in [List::Ids, needed] {
            if self.starts[list as usize].is_none() {
                return Err(IntakeError::MissingList { list: list.name() });
            }
        }
        let present = List::ALL.into_iter().filter(|list| self.starts[*list as usize].is_some());
        let lengths: Vec<_> =
            present.map(|list| (list.name(), self.counts[list as usize])).collect();
        let rows = self.counts[List::Ids as usize];
        if lengths.iter().any(|(_, count)| *count != rows) {
            return Err(IntakeError::Lengths { lengths });
        }
        let mut offsets = self.starts.map(Option::unwrap_or_default);
        let of_vectors = match embedded {
            true => self.not_embeddable,
            false => self.without_vector,
        };
        self.rejections.add_all(of_vectors);
        if embedded {
            // Nothing is read from there.
            offsets[List::Embeddings as usize] = 0;
        }
        Ok(Findings {
            format: Format::Lists,
            rows,
            dimension: self.vectors.dimension.filter(|_| !embedded),
            embedded,
            start: Cursor { offsets, ..Cursor::default() },
            header: None,
            rejections: self.rejections,
            ids: self.ids,
        })
    }
}

/// Consumes a value and returns its type, for messages.
fn take_kind<F: Feed>(feed: &mut F) -> Result<&'static str, IntakeError> {
    const ENOUGH: usize = 64;
    let first = [peek(feed)?.unwrap_or_default()];
    Ok(match take_value(feed, ENOUGH)? {
        Taken::TooLong(_) => kind_of(&first),
        Taken::Whole(length) => {
            let kind = kind_of(&feed.window()[..length]);
            feed.advance(length);
            kind
        }
    })
}
