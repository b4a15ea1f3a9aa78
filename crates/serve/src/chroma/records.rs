//! The records of a request, as the store takes them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use isolith_engine::{Patch, Records};
use serde_json::{Map, Value as Json};

use super::error::{ChromaError, Reply};
use super::metadata::{MetadataChange, URI, stored};
use super::vectors::Vectors;

/// The columns of a request. Lists may be missing, but not shorter than the ids.
pub(super) struct Columns {
    pub(super) ids: Vec<String>,
    pub(super) vectors: Option<Vectors>,
    pub(super) documents: Option<Vec<Option<String>>>,
    pub(super) uris: Option<Vec<Option<String>>>,
    pub(super) metadatas: Option<Vec<Option<MetadataChange>>>,
}

/// Which of several records with one id counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeated {
    /// The first one.
    First,
    /// Each changes the ones before.
    All,
}

/// One record of a request.
struct Row {
    id: String,
    document: Option<String>,
    metadata: Map<String, Json>,
    /// The index of its vector.
    vector: Option<usize>,
}

impl Columns {
    /// Checks values in the order in which Chroma does.
    pub(super) fn validate(&self) -> Reply<()> {
        if let Some(vectors) = &self.vectors {
            vectors.validate()?;
        }
        for (index, metadata) in self.metadatas.iter().flatten().enumerate() {
            if let Some(metadata) = metadata {
                metadata.check_for_record(index)?;
            }
        }
        let mut metadatas = self.metadatas.iter().flatten().flatten();
        if let Some(key) = metadatas.find_map(MetadataChange::sparse_vector) {
            return Err(ChromaError::unimplemented(format!(
                "Unimplemented: Sparse vector is not supported for local chroma: {key}"
            )));
        }
        self.dimension()?;
        let count = self.ids.len();
        let lengths = [
            self.vectors.as_ref().map(|vectors| vectors.lengths.len()),
            self.documents.as_ref().map(Vec::len),
            self.uris.as_ref().map(Vec::len),
            self.metadatas.as_ref().map(Vec::len),
        ];
        if lengths.into_iter().flatten().any(|length| length != count) {
            let message = "Inconsistent number of IDs, embeddings, documents, URIs and metadatas";
            return Err(ChromaError::invalid(message));
        }
        if self.ids.iter().any(String::is_empty) {
            let message = "Empty ID, ID must have at least one character";
            return Err(ChromaError::invalid(message));
        }
        Ok(())
    }

    /// The length of the vectors, if there are any.
    pub(super) fn dimension(&self) -> Reply<Option<u32>> {
        self.vectors.as_ref().map_or(Ok(None), Vectors::dimension)
    }

    /// Records to put.
    pub(super) fn into_records(mut self, repeated: Repeated) -> Reply<Records> {
        let dimension = self.dimension()?.unwrap_or(0);
        let vectors = self.vectors.take().unwrap_or_default();
        let rows = unique(self.into_rows(), repeated);
        let mut records = Records { dimension, ..Records::default() };
        let width = dimension as usize;
        let mut bytes = Vec::with_capacity(rows.len() * width * 4);
        for row in rows {
            let at = row.vector.unwrap_or(0) * width;
            let vector = vectors.numbers.get(at..at + width).unwrap_or_default();
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
            records.ids.push(row.id);
            records.documents.push(row.document);
            records.metadatas.push(stored(row.metadata)?);
        }
        records.vectors = bytes.into();
        Ok(records)
    }

    /// Changes of records.
    pub(super) fn into_patches(mut self) -> Reply<Vec<Patch>> {
        let vectors = self.vectors.take().unwrap_or_default();
        let vectors: Vec<Option<&[f32]>> = vectors.rows().collect();
        let patch = |row: Row| {
            let vector = row.vector.and_then(|at| vectors.get(at).copied().flatten());
            Ok(Patch {
                id: row.id,
                document: row.document.map(Some),
                metadata: (!row.metadata.is_empty()).then(|| stored(row.metadata)).transpose()?,
                vector: vector.map(<[f32]>::to_vec),
            })
        };
        let is_null: Vec<bool> = vectors.iter().map(Option::is_none).collect();
        let rows = self.into_rows().into_iter().map(|mut row| {
            row.vector = row.vector.filter(|at| !is_null.get(*at).copied().unwrap_or(true));
            row
        });
        unique(rows.collect(), Repeated::All).into_iter().map(patch).collect()
    }

    fn into_rows(self) -> Vec<Row> {
        let Self { ids, documents, uris, metadatas, .. } = self;
        let mut documents = documents.into_iter().flatten();
        let mut uris = uris.into_iter().flatten();
        let mut metadatas = metadatas.into_iter().flatten();
        let row = |(at, id): (usize, String)| {
            let mut metadata = metadatas.next().flatten().unwrap_or_default();
            let document = documents.next().flatten();
            let document = document.or_else(|| metadata.take_document());
            let mut metadata = metadata.0;
            if let Some(uri) = uris.next().flatten() {
                metadata.insert(URI.to_owned(), Json::String(uri));
            }
            Row { id, document, metadata, vector: Some(at) }
        };
        ids.into_iter().enumerate().map(row).collect()
    }
}

/// One row for each id, where the id occurs first.
fn unique(rows: Vec<Row>, repeated: Repeated) -> Vec<Row> {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(rows.len());
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match places.entry(row.id.clone()) {
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push(row);
            }
            Entry::Occupied(place) if repeated == Repeated::All => {
                let before = &mut kept[*place.get()];
                before.document = row.document.or(before.document.take());
                before.vector = row.vector.or(before.vector);
                before.metadata.extend(row.metadata);
            }
            Entry::Occupied(_) => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chroma::vectors::{ChangedVectors, NewVectors};

    fn columns(ids: &[&str], vectors: &str, metadatas: Json) -> Columns {
        let vectors: NewVectors = serde_json::from_str(vectors).unwrap();
        Columns {
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            vectors: Some(vectors.0),
            documents: None,
            uris: None,
            metadatas: serde_json::from_value(metadatas).unwrap(),
        }
    }

    #[test]
    fn repeated_ids_count_once() {
        let twice =
            || columns(&["a", "b", "a"], "[[1],[2],[3]]", json!([{"x": 1}, null, {"y": 2}]));
        let first = twice().into_records(Repeated::First).unwrap();
        assert_eq!(first.ids, ["a", "b"]);
        assert_eq!(first.metadatas[0].as_str(), r#"{"x":1}"#);
        assert_eq!(first.vectors[..4], 1.0_f32.to_le_bytes());
        let all = twice().into_records(Repeated::All).unwrap();
        assert_eq!(all.ids, ["a", "b"]);
        assert_eq!(all.metadatas[0].as_str(), r#"{"x":1,"y":2}"#);
        assert_eq!(all.vectors[..4], 3.0_f32.to_le_bytes());
    }

    #[test]
    fn a_null_leaves_a_vector_unchanged() {
        let vectors: ChangedVectors = serde_json::from_str("[null,[2]]").unwrap();
        let ids = vec!["a".to_owned(), "b".to_owned()];
        let documents = Some(vec![Some("text".to_owned()), None]);
        let columns =
            Columns { ids, vectors: Some(vectors.0), documents, uris: None, metadatas: None };
        columns.validate().unwrap();
        let patches = columns.into_patches().unwrap();
        assert_eq!(patches[0].vector, None);
        assert_eq!(patches[0].document, Some(Some("text".to_owned())));
        assert_eq!(patches[1].vector, Some(vec![2.0]));
        assert_eq!((&patches[1].document, &patches[1].metadata), (&None, &None));
    }

    #[test]
    fn lengths_and_keys_are_checked() {
        let message = |columns: Columns| columns.validate().unwrap_err();
        let inconsistent = "Inconsistent number of IDs, embeddings, documents, URIs and metadatas";
        assert_eq!(
            message(columns(&["a", "b"], "[[1]]", Json::Null)),
            ChromaError::invalid(inconsistent)
        );
        assert_eq!(
            message(columns(&["a"], "[[1]]", json!([{"#a": 1}]))),
            ChromaError::validation("metadatas: Invalid metadata at index 0")
        );
        assert_eq!(
            message(columns(&[""], "[[1]]", Json::Null)),
            ChromaError::invalid("Empty ID, ID must have at least one character")
        );
        let sparse = json!([{"s": {"#type": "sparse_vector", "indices": [1], "values": [1.0]}}]);
        assert_eq!(
            message(columns(&["a"], "[[1]]", sparse)),
            ChromaError::unimplemented(
                "Unimplemented: Sparse vector is not supported for local chroma: s"
            )
        );
    }
}
