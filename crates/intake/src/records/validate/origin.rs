use std::fmt;

use crate::records::error::Flaw;

/// Where the vectors of a file's rows come from.
#[derive(Clone, Copy)]
pub enum VectorSource<'e> {
    /// Every row has its vector.
    Rows,
    /// Every row has a document to embed, and no vector.
    Documents(&'e CanEmbed<'e>),
    /// Rows have vectors if the first usable row has one. Otherwise their documents are embedded.
    AsFirstRow(&'e CanEmbed<'e>),
}

/// Tells whether a document can be embedded.
type CanEmbed<'e> = dyn Fn(&str) -> bool + 'e;

impl fmt::Debug for VectorSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "Rows",
            Self::Documents(_) => "Documents",
            Self::AsFirstRow(_) => "AsFirstRow",
        })
    }
}

impl VectorSource<'_> {
    /// Whether rows without vectors can be usable.
    pub(super) fn may_embed(self) -> bool {
        !matches!(self, Self::Rows)
    }

    /// Checks the document of a row that has no vector.
    pub(super) fn check_document(self, document: Option<&str>) -> Result<(), Flaw> {
        match (self, document) {
            (Self::Rows, _) => Err(Flaw::NoVector),
            (_, None) => Err(Flaw::NothingToEmbed),
            (Self::Documents(can_embed) | Self::AsFirstRow(can_embed), Some(document)) => {
                if can_embed(document) {
                    Ok(())
                } else {
                    Err(Flaw::NoWords)
                }
            }
        }
    }

    /// Why a row with a vector is refused.
    pub(super) fn unwanted(self) -> Flaw {
        match self {
            Self::Rows | Self::Documents(_) => Flaw::UnwantedVector,
            Self::AsFirstRow(_) => Flaw::Mixed { what: "it has an embedding" },
        }
    }

    /// Why a row without a vector is refused.
    pub(super) fn missing(self) -> Flaw {
        match self {
            Self::Rows | Self::Documents(_) => Flaw::NoVector,
            Self::AsFirstRow(_) => Flaw::Mixed { what: "embedding is missing" },
        }
    }
}
