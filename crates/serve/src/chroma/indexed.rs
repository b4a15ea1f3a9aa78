//! What never changes about collections: filters that a schema forbids, and whether documents are
//! embedded here.
//!
//! A schema can say that a key is not indexed. Chroma then refuses to filter by it, and some
//! applications rely on that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use isolith_engine::{Engine, WhichCollection, is_built_in};
use serde_json::Value as Json;

use super::config::Settings;
use super::error::{ChromaError, Reply};

/// Maximum number of collections of which this is kept.
const MAX_KEPT: usize = 10_000;

/// What never changes about a collection.
#[derive(Debug, Clone, Default)]
struct Constants {
    /// The schema that a client gave; without one, every filter is allowed.
    schema: Option<Arc<Json>>,
    /// Whether its vectors come from the built-in model.
    embeds: bool,
}

/// The constants of collections, by uuid.
#[derive(Debug, Clone, Default)]
pub(super) struct Schemas(Arc<Mutex<HashMap<String, Constants>>>);

impl Schemas {
    /// Refuses a filter by something that is not indexed.
    pub(super) async fn check(
        &self,
        engine: &Engine,
        uuid: &str,
        metadata: &Json,
        document: &Json,
    ) -> Reply<()> {
        if metadata.is_null() && document.is_null() {
            return Ok(());
        }
        let Some(schema) = self.constants(engine, uuid).await?.schema else { return Ok(()) };
        if !document.is_null() {
            check_document(&schema)?;
        }
        if metadata.is_null() { Ok(()) } else { check_metadata(&schema, metadata) }
    }

    /// Whether the documents of a collection are embedded here. If not, or if there is no such
    /// collection, clients send vectors.
    pub(super) async fn embeds(&self, engine: &Engine, uuid: &str) -> Reply<bool> {
        Ok(self.constants(engine, uuid).await?.embeds)
    }

    async fn constants(&self, engine: &Engine, uuid: &str) -> Reply<Constants> {
        if let Some(known) = self.known(uuid) {
            return Ok(known);
        }
        let found = engine.find_collection(WhichCollection::Uuid(uuid.to_owned())).await?;
        let Some(collection) = found else { return Ok(Constants::default()) };
        let settings = Settings::of(&collection);
        let schema = settings.has_schema().then(|| Arc::new(settings.schema(&collection)));
        let constants = Constants { schema, embeds: is_built_in(collection.model.as_deref()) };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(uuid.to_owned(), constants.clone());
        Ok(constants)
    }

    fn known(&self, uuid: &str) -> Option<Constants> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(uuid).cloned()
    }
}

fn check_document(schema: &Json) -> Reply<()> {
    match schema.pointer("/keys/#document/string/fts_index/enabled") {
        Some(Json::Bool(false)) => Err(ChromaError::invalid(
            "Cannot filter using full-text search because FTS indexing is disabled",
        )),
        _ => Ok(()),
    }
}

/// The filter has the right form already.
fn check_metadata(schema: &Json, filter: &Json) -> Reply<()> {
    let Some((key, value)) = filter.as_object().and_then(|object| object.iter().next()) else {
        return Ok(());
    };
    if let ("$and" | "$or", Json::Array(filters)) = (key.as_str(), value) {
        return filters.iter().try_for_each(|filter| check_metadata(schema, filter));
    }
    let operator = value.as_object().and_then(|object| object.iter().next());
    let operand = operator.map_or(value, |(_, operand)| operand);
    if let (true, Some((name, _))) = (key == "#document", operator)
        && ["$contains", "$not_contains", "$regex", "$not_regex"].contains(&name.as_str())
    {
        return check_document(schema);
    }
    let operand = operand.as_array().and_then(|list| list.first()).unwrap_or(operand);
    let (shown, place) = match operand {
        Json::Bool(_) => ("Bool", "/bool/bool_inverted_index/enabled"),
        Json::String(_) => ("Str", "/string/string_inverted_index/enabled"),
        number if number.is_f64() => ("Float", "/float/float_inverted_index/enabled"),
        _ => ("Int", "/int/int_inverted_index/enabled"),
    };
    let of_key = schema.get("keys").and_then(|keys| keys.get(key)?.pointer(place));
    let enabled = of_key.or_else(|| schema.get("defaults")?.pointer(place));
    match enabled {
        Some(Json::Bool(false)) => Err(ChromaError::invalid(format!(
            "Cannot filter using metadata key '{key}' with type '{shown}' because indexing is \
             disabled"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_by_keys_that_are_not_indexed_are_refused() {
        let index =
            |enabled: bool| json!({"string": {"string_inverted_index": {"enabled": enabled}}});
        let schema = json!({
            "defaults": {"int": {"int_inverted_index": {"enabled": false}}},
            "keys": {"a": index(false), "b": index(true)},
        });
        for (filter, allowed) in [
            (json!({"b": "x"}), true),
            (json!({"a": "x"}), false),
            (json!({"a": {"$in": ["x"]}}), false),
            (json!({"$or": [{"b": "x"}, {"a": {"$ne": "x"}}]}), false),
            (json!({"b": 1}), false),
            (json!({"c": 1.5}), true),
            (json!({"#document": {"$contains": "x"}}), true),
        ] {
            assert_eq!(check_metadata(&schema, &filter).is_ok(), allowed, "{filter}");
        }
        assert!(check_document(&schema).is_ok());
        let disabled =
            json!({"keys": {"#document": {"string": {"fts_index": {"enabled": false}}}}});
        assert!(check_document(&disabled).is_err());
        let filter = json!({"#document": {"$contains": "x"}});
        assert!(check_metadata(&disabled, &filter).is_err());
    }
}
