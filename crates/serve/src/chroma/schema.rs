//! The schema of a collection: which keys Chroma would index, and how.
//!
//! Everything is searchable here whatever a schema says, so a schema is checked, completed with
//! Chroma's defaults and shown; its space has an effect.

use isolith_types::KeyType;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::config::{EmbeddingFunction, Hnsw, NewHnsw, Space, is_default_function};
use super::error::{ChromaError, Reply};

/// What a schema says about vectors.
#[derive(Debug, Default)]
pub(super) struct VectorIndex {
    pub(super) space: Option<Space>,
    pub(super) hnsw: Option<Hnsw>,
    pub(super) embedding_function: Option<EmbeddingFunction>,
}

/// Where the index of the vectors is described, the special key first.
const VECTOR_INDEX: [&str; 2] =
    ["/keys/#embedding/float_list/vector_index/config", "/defaults/float_list/vector_index/config"];

/// Whether a schema says nothing but the defaults.
pub(super) fn is_default(schema: &Json, index: &VectorIndex) -> bool {
    let keys = schema.get("keys").and_then(Json::as_object);
    let has_other_keys =
        keys.into_iter().flatten().any(|(key, _)| key != "#embedding" && key != "#document");
    !has_other_keys
        && index.space.is_none_or(|space| space == Space::L2)
        && index.hnsw.is_none_or(|hnsw| hnsw == Hnsw::default())
        && is_default_function(index.embedding_function.as_ref())
}

/// Reads what a client gave.
pub(super) fn read(schema: &Json) -> Reply<VectorIndex> {
    if !schema.is_object() {
        return Err(ChromaError::unprocessable("schema: invalid type, expected struct Schema"));
    }
    if has_sparse_index(schema) {
        return Err(ChromaError::invalid(
            "Invalid schema input: Sparse vector indexing is not enabled in local",
        ));
    }
    let mut found = VectorIndex::default();
    for place in VECTOR_INDEX {
        let Some(config) = schema.pointer(place) else { continue };
        found.space = found.space.or(part(config, "space")?);
        let hnsw: Option<NewHnsw> = part(config, "hnsw")?;
        found.hnsw = found.hnsw.or(hnsw.map(|hnsw| hnsw.complete().1));
        found.embedding_function = found.embedding_function.or(part(config, "embedding_function")?);
    }
    Ok(found)
}

fn part<T: for<'de> Deserialize<'de>>(config: &Json, name: &str) -> Reply<Option<T>> {
    let Some(value) = config.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    T::deserialize(value).map(Some).map_err(|error| {
        ChromaError::unprocessable(format!(
            "Failed to deserialize the JSON body into the target type: schema.{name}: {error}"
        ))
    })
}

fn has_sparse_index(schema: &Json) -> bool {
    let keys = schema.get("keys").and_then(Json::as_object);
    keys.into_iter().flatten().any(|(_, types)| {
        types.pointer("/sparse_vector/sparse_vector_index/enabled") == Some(&Json::Bool(true))
    })
}

/// The defaults, with what the client gave laid over them.
pub(super) fn complete(
    given: Option<&Json>,
    space: Space,
    hnsw: &Hnsw,
    function: Option<&EmbeddingFunction>,
) -> Json {
    let Some(given) = given else { return defaults(space, hnsw, function) };
    let mut schema = defaults(Space::L2, &Hnsw::default(), None);
    lay_over(&mut schema, given);
    // What has an effect is what is stored with the collection.
    let config = schema.pointer_mut(VECTOR_INDEX[0]).and_then(Json::as_object_mut);
    if let Some(config) = config {
        set_vector_index(config, space, hnsw, function);
    }
    schema
}

/// Describes the index of vectors in all places.
pub(super) fn set_everywhere(
    schema: &mut Json,
    space: Space,
    hnsw: &Hnsw,
    function: Option<&EmbeddingFunction>,
) {
    for place in VECTOR_INDEX {
        if let Some(config) = schema.pointer_mut(place).and_then(Json::as_object_mut) {
            set_vector_index(config, space, hnsw, function);
        }
    }
}

/// Adds keys of metadata that the schema does not mention, with the defaults of their types.
pub(super) fn add_keys(schema: &mut Json, found: &[(String, KeyType)]) {
    for (key, of_type) in found.iter().filter(|(key, _)| !key.starts_with("chroma:")) {
        let name = match of_type {
            KeyType::Bool => "bool",
            KeyType::Integer => "int",
            KeyType::Float => "float",
            KeyType::Text => "string",
        };
        let default = schema["defaults"][name].clone();
        if let Some(keys) = schema["keys"].as_object_mut() {
            let types = keys.entry(key.clone()).or_insert_with(|| json!({}));
            if let Some(types) = types.as_object_mut() {
                types.entry(name).or_insert(default);
            }
        }
    }
}

fn set_vector_index(
    config: &mut Map<String, Json>,
    space: Space,
    hnsw: &Hnsw,
    function: Option<&EmbeddingFunction>,
) {
    config.insert("space".to_owned(), json!(space));
    config.insert("hnsw".to_owned(), json!(hnsw));
    config.remove("spann");
    match function {
        Some(function) => config.insert("embedding_function".to_owned(), json!(function)),
        None => config.remove("embedding_function"),
    };
}

fn lay_over(base: &mut Json, over: &Json) {
    match (base, over) {
        (Json::Object(base), Json::Object(over)) => {
            for (key, value) in over.iter().filter(|(_, value)| !value.is_null()) {
                lay_over(base.entry(key.clone()).or_insert(Json::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

fn defaults(space: Space, hnsw: &Hnsw, function: Option<&EmbeddingFunction>) -> Json {
    let vector_index = |enabled: bool| {
        let mut config = Map::new();
        set_vector_index(&mut config, space, hnsw, function);
        if enabled {
            config.insert("source_key".to_owned(), json!("#document"));
        }
        json!({ "vector_index": { "enabled": enabled, "config": config } })
    };
    let index = |enabled: bool| json!({ "enabled": enabled, "config": {} });
    let sparse = json!({
        "enabled": false,
        "config": { "embedding_function": { "type": "unknown" }, "bm25": false },
    });
    json!({
        "defaults": {
            "string": { "fts_index": index(false), "string_inverted_index": index(true) },
            "float_list": vector_index(false),
            "sparse_vector": { "sparse_vector_index": sparse },
            "int": { "int_inverted_index": index(true) },
            "float": { "float_inverted_index": index(true) },
            "bool": { "bool_inverted_index": index(true) },
        },
        "keys": {
            "#embedding": { "float_list": vector_index(true) },
            "#document": {
                "string": { "fts_index": index(true), "string_inverted_index": index(false) },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_of_the_special_key_comes_first() {
        let config = |space: &str| json!({"vector_index": {"config": {"space": space}}});
        let schema = json!({
            "defaults": {"float_list": config("ip")},
            "keys": {"#embedding": {"float_list": config("cosine")}},
        });
        let read = read(&schema).unwrap();
        assert_eq!(read.space, Some(Space::Cosine));
        let hnsw = Hnsw::default();
        let shown = complete(Some(&schema), Space::Cosine, &hnsw, None);
        let spaces = VECTOR_INDEX.map(|place| shown.pointer(place).unwrap()["space"].clone());
        assert_eq!(spaces, ["cosine", "ip"]);
        assert_eq!(shown["defaults"]["int"]["int_inverted_index"]["enabled"], true);
    }

    #[test]
    fn a_sparse_index_is_refused() {
        let index = json!({"sparse_vector_index": {"enabled": true, "config": {}}});
        let schema = json!({"keys": {"s": {"sparse_vector": index}}});
        assert!(read(&schema).is_err());
        let schema = json!({"defaults": {}, "keys": {"#embedding": {}}});
        assert!(is_default(&schema, &super::read(&schema).unwrap()));
        let schema = json!({"keys": {"a": {}}});
        assert!(!is_default(&schema, &super::read(&schema).unwrap()));
    }
}
