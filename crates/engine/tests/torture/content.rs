//! The content of records. It follows from a record's unit and state, so that each hit can be
//! checked by itself.

use fastrand::Rng;
use isolith_types::{Metadata, Metric, Record};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A collection of the store.
pub(crate) struct Shelf {
    pub(crate) name: &'static str,
    pub(crate) dimension: usize,
    pub(crate) metric: Metric,
}

/// One collection whose segments have codes, and one without.
pub(crate) const SHELVES: [Shelf; 2] = [
    Shelf { name: "plain", dimension: 32, metric: Metric::Cosine },
    Shelf { name: "coded", dimension: 72, metric: Metric::L2 },
];

/// Units of each lane in each collection.
pub(crate) const UNITS: u32 = 40;

/// Identifies a unit: records that only one lane writes, always together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The collection, as a position in [`SHELVES`].
    pub(crate) shelf: usize,
    pub(crate) lane: u32,
    pub(crate) unit: u32,
}

/// The state of all records of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct State {
    /// The operation that wrote them as a whole.
    pub(crate) version: u64,
    /// The operation that last changed only their metadata.
    pub(crate) touched: Option<u64>,
}

impl Place {
    pub(crate) fn shelf(self) -> &'static Shelf {
        &SHELVES[self.shelf]
    }

    /// The number of records in the unit.
    pub(crate) fn size(self) -> u32 {
        [1, 2, 4, 8, 1][self.unit as usize % 5]
    }

    pub(crate) fn id(self, member: u32) -> String {
        format!("{}-{}-{member}", self.lane, self.unit)
    }

    pub(crate) fn ids(self) -> Vec<String> {
        (0..self.size()).map(|member| self.id(member)).collect()
    }

    /// A word that only documents of this unit have.
    pub(crate) fn word(self) -> String {
        format!("q{}", spelled(u64::from(self.lane) << 20 | u64::from(self.unit)))
    }

    pub(crate) fn vector(self, member: u32, version: u64) -> Vec<f32> {
        let Self { shelf, lane, unit } = self;
        let place = (shelf as u64) << 40 | u64::from(lane) << 16 | u64::from(unit) << 4;
        let seed = (place | u64::from(member)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version;
        random_vector(&mut Rng::with_seed(seed), self.shelf())
    }

    pub(crate) fn document(self, version: u64) -> String {
        format!("{} v{} of the common words that all have", self.word(), spelled(version))
    }

    pub(crate) fn metadata(self, member: u32, state: State) -> Metadata {
        let mut json = json!({
            "lane": self.lane,
            "unit": self.unit,
            "member": member,
            "version": state.version,
            "even": state.version.is_multiple_of(2),
            "tags": [format!("u{}", self.unit), format!("v{}", state.version)],
        });
        if let Some(touched) = state.touched {
            json["touched"] = json!(touched);
        }
        Metadata::from_json(json).expect("it has only numbers, texts and a flat list")
    }

    pub(crate) fn record(self, member: u32, state: State) -> Record {
        Record {
            id: self.id(member),
            document: Some(self.document(state.version)),
            metadata: self.metadata(member, state),
            vector: self.vector(member, state.version),
        }
    }

    pub(crate) fn records(self, state: State) -> Vec<Record> {
        (0..self.size()).map(|member| self.record(member, state)).collect()
    }
}

/// What a found record claims to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) place: Place,
    pub(crate) member: u32,
    pub(crate) state: State,
}

impl Claim {
    /// Reads a record's metadata, and checks that its parts are of one version.
    pub(crate) fn read(
        shelf: usize,
        id: &str,
        document: Option<&str>,
        metadata: &Metadata,
    ) -> Result<Self, String> {
        let json = metadata.to_json();
        let number = |key: &str| json[key].as_u64();
        let small = |key: &str| number(key).and_then(|number| u32::try_from(number).ok());
        let (Some(lane), Some(unit), Some(member), Some(version)) =
            (small("lane"), small("unit"), small("member"), number("version"))
        else {
            return Err(format!("{id} was never written: its metadata is {}", metadata.as_str()));
        };
        let place = Place { shelf, lane, unit };
        let claim = Self { place, member, state: State { version, touched: number("touched") } };
        if unit >= UNITS || member >= place.size() || id != place.id(member) {
            return Err(format!("{id} was never written like that: {}", metadata.as_str()));
        }
        if *metadata != place.metadata(member, claim.state) {
            return Err(format!("{id} has metadata of several writes: {}", metadata.as_str()));
        }
        if document != Some(&place.document(version)) {
            return Err(format!("{id} version {version} has the text of another: {document:?}"));
        }
        Ok(claim)
    }

    /// The distance of the record from `query`.
    pub(crate) fn distance(&self, query: &[f32]) -> f64 {
        let own = self.place.vector(self.member, self.state.version);
        let pairs = || own.iter().zip(query).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        match self.place.shelf().metric {
            Metric::L2 => pairs().map(|(a, b)| (a - b) * (a - b)).sum(),
            Metric::Dot => 1.0 - pairs().map(|(a, b)| a * b).sum::<f64>(),
            Metric::Cosine => {
                let (mut product, mut own_square, mut other_square) = (0.0, 0.0, 0.0);
                for (a, b) in pairs() {
                    product += a * b;
                    own_square += a * a;
                    other_square += b * b;
                }
                1.0 - product / (own_square * other_square).sqrt()
            }
        }
    }
}

/// A vector far from all others.
pub(crate) fn random_vector(random: &mut Rng, shelf: &Shelf) -> Vec<f32> {
    (0..shelf.dimension).map(|_| random.f32() * 2.0 - 1.0).collect()
}

/// A number spelled in consonants, which no stemmer changes.
fn spelled(mut number: u64) -> String {
    const DIGITS: &[u8; 16] = b"bcdfghjkmnprtvwz";
    let mut word = String::new();
    loop {
        word.push(char::from(DIGITS[(number % 16) as usize]));
        number /= 16;
        if number == 0 {
            return word;
        }
    }
}
