//! The configuration of a collection: what clients send, what is stored, and what they see.
//!
//! Chroma's index parameters do not apply here. They are stored and shown, because clients compare
//! them; only the space has an effect.

use std::num::NonZero;

use isolith_types::{CollectionInfo, Metric};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::error::{ChromaError, Reply};
use super::metadata::NewMetadata;
use super::schema;

/// Chroma's names for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Space {
    L2,
    Cosine,
    Ip,
}

impl Space {
    pub(super) fn metric(self) -> Metric {
        match self {
            Self::L2 => Metric::L2,
            Self::Cosine => Metric::Cosine,
            Self::Ip => Metric::Dot,
        }
    }

    pub(super) fn of(metric: Metric) -> Self {
        match metric {
            Metric::L2 => Self::L2,
            Metric::Cosine => Self::Cosine,
            Metric::Dot => Self::Ip,
        }
    }
}

/// What a client configures when it creates a collection.
#[derive(Debug, Default, Deserialize)]
pub(super) struct NewConfiguration {
    hnsw: Option<NewHnsw>,
    spann: Option<NewSpann>,
    embedding_function: Option<EmbeddingFunction>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewHnsw {
    space: Option<Space>,
    ef_construction: Option<usize>,
    ef_search: Option<usize>,
    max_neighbors: Option<usize>,
    num_threads: Option<usize>,
    resize_factor: Option<f64>,
    sync_threshold: Option<usize>,
    batch_size: Option<usize>,
}

/// Of the other index of Chroma, only the space is used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are only checked")]
struct NewSpann {
    search_nprobe: Option<u32>,
    write_nprobe: Option<u32>,
    space: Option<Space>,
    ef_construction: Option<usize>,
    ef_search: Option<usize>,
    max_neighbors: Option<usize>,
    reassign_neighbor_count: Option<u32>,
    split_threshold: Option<u32>,
    merge_threshold: Option<u32>,
}

/// How the client embeds; only passed through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum EmbeddingFunction {
    Legacy,
    Known { name: String, config: Json },
    Unknown,
}

/// What a client changes in a configuration.
#[derive(Debug, Deserialize)]
pub(super) struct ConfigurationChange {
    hnsw: Option<HnswChange>,
    spann: Option<SpannChange>,
    embedding_function: Option<EmbeddingFunction>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HnswChange {
    ef_search: Option<usize>,
    max_neighbors: Option<usize>,
    num_threads: Option<usize>,
    resize_factor: Option<f64>,
    sync_threshold: Option<usize>,
    batch_size: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are only checked")]
struct SpannChange {
    search_nprobe: Option<u32>,
    ef_search: Option<usize>,
}

/// Index parameters with Chroma's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hnsw {
    pub(super) ef_construction: usize,
    pub(super) ef_search: usize,
    pub(super) max_neighbors: usize,
    pub(super) num_threads: usize,
    pub(super) resize_factor: f64,
    pub(super) sync_threshold: usize,
    pub(super) batch_size: usize,
}

impl Default for Hnsw {
    fn default() -> Self {
        Self {
            ef_construction: 100,
            ef_search: 100,
            max_neighbors: 16,
            num_threads: std::thread::available_parallelism().map_or(1, NonZero::get),
            resize_factor: 1.2,
            sync_threshold: 1000,
            batch_size: 100,
        }
    }
}

/// What is stored with a collection.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    hnsw: Option<Hnsw>,
    embedding_function: Option<EmbeddingFunction>,
    /// What the client gave as the schema.
    schema: Option<Json>,
    /// Whether the configuration decided about vectors, and not the schema.
    configured: bool,
}

impl Settings {
    /// The metric and the settings of a new collection.
    pub(super) fn create(
        configuration: Option<NewConfiguration>,
        metadata: Option<&NewMetadata>,
        schema: Option<Json>,
    ) -> Reply<(Metric, Self)> {
        let NewConfiguration { hnsw, spann, embedding_function } =
            configuration.unwrap_or_default();
        let (space, hnsw) = match (hnsw, spann) {
            (Some(_), Some(_)) => {
                return Err(ChromaError::invalid("Multiple vector index configurations provided"));
            }
            (None, Some(spann)) => (spann.space.unwrap_or(Space::L2), Hnsw::default()),
            (Some(hnsw), None) => {
                let (space, hnsw) = hnsw.complete();
                let is_default = space == Space::L2 && hnsw == Hnsw::default();
                // Chroma's earlier form applies where nothing else is configured.
                if is_default { of_metadata(metadata)? } else { (space, hnsw) }
            }
            (None, None) => of_metadata(metadata)?,
        };
        check(&hnsw)?;
        let Some(given) = schema else {
            let settings =
                Self { hnsw: Some(hnsw), embedding_function, schema: None, configured: true };
            return Ok((space.metric(), settings));
        };
        let told = schema::read(&given)?;
        let configured = (space, hnsw) != (Space::L2, Hnsw::default())
            || !is_default_function(embedding_function.as_ref());
        let says_nothing = schema::is_default(&given, &told);
        let (space, hnsw, embedding_function) = match says_nothing {
            // What a schema leaves open, the configuration decides.
            true => (space, hnsw, embedding_function.or(told.embedding_function)),
            false if configured => {
                let message = "Cannot set both collection config and schema simultaneously";
                return Err(ChromaError::invalid(message));
            }
            false => (
                told.space.unwrap_or(space),
                told.hnsw.unwrap_or(hnsw),
                told.embedding_function.or(embedding_function),
            ),
        };
        let settings = Self {
            hnsw: Some(hnsw),
            embedding_function,
            schema: Some(given),
            configured: says_nothing,
        };
        Ok((space.metric(), settings))
    }

    /// What was stored. A collection that Chroma's clients did not create has the defaults.
    pub(super) fn of(collection: &CollectionInfo) -> Self {
        serde_json::from_str(&collection.settings).unwrap_or_default()
    }

    pub(super) fn to_text(&self) -> Reply<String> {
        serde_json::to_string(self).map_err(|error| ChromaError::internal(error.to_string()))
    }

    /// Applies a change.
    pub(super) fn change(&mut self, change: ConfigurationChange) -> Reply<()> {
        let ConfigurationChange { hnsw, spann, embedding_function } = change;
        if hnsw.is_some() && spann.is_some() {
            return Err(ChromaError::invalid("Multiple vector index configurations provided"));
        }
        if let Some(new) = hnsw {
            let old = self.hnsw.unwrap_or_default();
            let changed = Hnsw {
                ef_search: new.ef_search.unwrap_or(old.ef_search),
                max_neighbors: new.max_neighbors.unwrap_or(old.max_neighbors),
                num_threads: new.num_threads.unwrap_or(old.num_threads),
                resize_factor: new.resize_factor.unwrap_or(old.resize_factor),
                sync_threshold: new.sync_threshold.unwrap_or(old.sync_threshold),
                batch_size: new.batch_size.unwrap_or(old.batch_size),
                ..old
            };
            check(&changed)?;
            self.hnsw = Some(changed);
        }
        if embedding_function.is_some() {
            self.embedding_function = embedding_function;
        }
        Ok(())
    }

    /// `configuration_json` of a collection.
    pub(super) fn configuration(&self, metric: Metric) -> Json {
        let hnsw = self.hnsw.unwrap_or_default();
        json!({
            "hnsw": {
                "space": Space::of(metric),
                "ef_construction": hnsw.ef_construction,
                "ef_search": hnsw.ef_search,
                "max_neighbors": hnsw.max_neighbors,
                "resize_factor": hnsw.resize_factor,
                "sync_threshold": hnsw.sync_threshold,
            },
            "spann": null,
            "embedding_function": self.embedding_function,
        })
    }

    /// Whether a client gave a schema.
    pub(super) fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// `schema` of a collection, which has these settings.
    pub(super) fn schema(&self, collection: &CollectionInfo) -> Json {
        let hnsw = self.hnsw.unwrap_or_default();
        let function = self.embedding_function.as_ref();
        let space = Space::of(collection.metric);
        let mut schema = schema::complete(self.schema.as_ref(), space, &hnsw, function);
        if self.configured {
            schema::set_everywhere(&mut schema, space, &hnsw, function);
        }
        schema::add_keys(&mut schema, &collection.keys);
        schema
    }
}

impl NewHnsw {
    pub(super) fn complete(self) -> (Space, Hnsw) {
        let default = Hnsw::default();
        let hnsw = Hnsw {
            ef_construction: self.ef_construction.unwrap_or(default.ef_construction),
            ef_search: self.ef_search.unwrap_or(default.ef_search),
            max_neighbors: self.max_neighbors.unwrap_or(default.max_neighbors),
            num_threads: self.num_threads.unwrap_or(default.num_threads),
            resize_factor: self.resize_factor.unwrap_or(default.resize_factor),
            sync_threshold: self.sync_threshold.unwrap_or(default.sync_threshold),
            batch_size: self.batch_size.unwrap_or(default.batch_size),
        };
        (self.space.unwrap_or(Space::L2), hnsw)
    }
}

/// Whether a function is what clients configure if nothing was said.
pub(super) fn is_default_function(function: Option<&EmbeddingFunction>) -> bool {
    match function {
        None | Some(EmbeddingFunction::Unknown) => true,
        Some(EmbeddingFunction::Legacy) => false,
        Some(EmbeddingFunction::Known { name, .. }) => name == "default",
    }
}

/// Reads parameters from metadata keys, such as `hnsw:space`.
fn of_metadata(metadata: Option<&NewMetadata>) -> Reply<(Space, Hnsw)> {
    const KEYS: [(&str, &str); 8] = [
        ("hnsw:space", "space"),
        ("hnsw:construction_ef", "ef_construction"),
        ("hnsw:search_ef", "ef_search"),
        ("hnsw:M", "max_neighbors"),
        ("hnsw:num_threads", "num_threads"),
        ("hnsw:resize_factor", "resize_factor"),
        ("hnsw:sync_threshold", "sync_threshold"),
        ("hnsw:batch_size", "batch_size"),
    ];
    let bad = || ChromaError::invalid("Failed to parse hnsw parameters from segment metadata");
    let mut found = Map::new();
    for (key, value) in metadata.iter().flat_map(|metadata| &metadata.0) {
        if key.starts_with("hnsw:") {
            let known = KEYS.iter().find(|(name, _)| name == key).ok_or_else(bad)?;
            found.insert(known.1.to_owned(), value.clone());
        }
    }
    let hnsw: NewHnsw = serde_json::from_value(Json::Object(found)).map_err(|_| bad())?;
    Ok(hnsw.complete())
}

fn check(hnsw: &Hnsw) -> Reply<()> {
    match hnsw.sync_threshold >= 2 && hnsw.batch_size >= 2 {
        true => Ok(()),
        false => {
            let message = "Failed to parse hnsw parameters from segment metadata";
            Err(ChromaError::invalid(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(configuration: Json, metadata: Option<Json>) -> Reply<(Metric, Settings)> {
        let configuration = serde_json::from_value(configuration).unwrap();
        let metadata = metadata.map(|json| serde_json::from_value(json).unwrap());
        Settings::create(Some(configuration), metadata.as_ref(), None)
    }

    #[test]
    fn the_space_comes_from_configuration_or_metadata() {
        for (configuration, metadata, metric) in [
            (json!({}), None, Metric::L2),
            (json!({"hnsw": {"space": "cosine"}}), None, Metric::Cosine),
            (json!({"spann": {"space": "ip"}}), None, Metric::Dot),
            (json!({}), Some(json!({"hnsw:space": "ip"})), Metric::Dot),
            (
                json!({"hnsw": {"space": "cosine"}}),
                Some(json!({"hnsw:space": "ip"})),
                Metric::Cosine,
            ),
        ] {
            let (found, _) = create(configuration.clone(), metadata.clone()).unwrap();
            assert_eq!(found, metric, "{configuration} {metadata:?}");
        }
        let both = json!({"hnsw": {}, "spann": {}});
        let message = "Multiple vector index configurations provided";
        assert_eq!(create(both, None).unwrap_err(), ChromaError::invalid(message));
        assert!(create(json!({}), Some(json!({"hnsw:space": "bad"}))).is_err());
        assert!(create(json!({}), Some(json!({"hnsw:other": 1}))).is_err());
    }

    #[test]
    fn a_change_keeps_the_rest() {
        let given = json!({
            "hnsw": {"ef_search": 10, "max_neighbors": 8},
            "embedding_function": {"type": "known", "name": "n", "config": {"a": 1}},
        });
        let (metric, mut settings) = create(given, None).unwrap();
        let change = json!({"hnsw": {"ef_search": 77}, "spann": null, "embedding_function": null});
        settings.change(serde_json::from_value(change).unwrap()).unwrap();
        let stored: Settings = serde_json::from_str(&settings.to_text().unwrap()).unwrap();
        assert_eq!(stored, settings);
        let shown = settings.configuration(metric);
        assert_eq!(shown["hnsw"]["ef_search"], 77);
        assert_eq!(shown["hnsw"]["max_neighbors"], 8);
        assert_eq!(
            shown["embedding_function"],
            json!({"type": "known", "name": "n", "config": {"a": 1}})
        );
        let space = json!({"hnsw": {"space": "ip"}});
        let error = serde_json::from_value::<ConfigurationChange>(space).unwrap_err().to_string();
        assert!(error.starts_with("unknown field `space`, expected one of `ef_search`"), "{error}");
    }
}
