use std::time::Instant;

use isolate::{Answer, Bulk, CallOptions};
use isolith_embed::{DIMENSION, MODEL_ID, model_name};
use isolith_folder::Folder;
use isolith_protocol::{
    Damage, EmbedTexts, FindHybrid, FindKeywords, FindNearest, QuarantineGraphSegment,
    QuarantineSegments, ReadJob, ReadOperation, ReadReply, RecordsFound, Searched,
    SegmentDamageKind, SegmentsOf, TextsEmbedded,
};
use isolith_store::names::is_segment;
use isolith_types::{Code, Failure, Filter, Hint, Hit};

use crate::failure::{is_another_store, of_call};
use crate::open::Engine;

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    /// Best first.
    pub hits: Vec<Hit>,
    /// Why the answer is incomplete.
    pub degraded: Option<String>,
}

/// What the vectors of records are compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Like {
    /// A vector.
    Vector(Vec<f32>),
    /// A text, to be embedded.
    Text(String),
}

/// Whether vectors of this model are made by the built-in one.
pub fn is_built_in(model: Option<&str>) -> bool {
    model.is_some_and(|model| model == model_name() || model == MODEL_ID)
}

/// The full name of a model that the user named, perhaps as `built-in`.
pub fn named_model(name: String) -> String {
    if name == "built-in" { model_name().to_owned() } else { name }
}

/// Limits of one job that embeds.
const EMBEDDED_TEXTS: usize = 1_000;
const EMBEDDED_BYTES: usize = 4 << 20;

/// How many of the texts one job should embed.
fn fitting(texts: &[&str]) -> usize {
    let mut bytes = 0;
    let fit = texts.iter().take(EMBEDDED_TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= EMBEDDED_BYTES
    });
    fit.count().max(1)
}

/// A reply, and whether a worker died before it succeeded.
#[derive(Debug)]
pub(crate) struct Answered<R> {
    pub(crate) reply: R,
    pub(crate) blamed: bool,
}

impl Engine {
    /// Finds the records nearest to `vector`.
    ///
    /// # Errors
    /// `not_found` for the collection, `bad_input` for the vector or the filter; any error
    /// of a read.
    pub async fn nearest(
        &self,
        collection: &str,
        vector: &[f32],
        limit: u32,
        filter: Option<Filter>,
    ) -> Result<Hits, Failure> {
        let vector = bytes_of(vector);
        let search = FindNearest { collection: collection.to_owned(), vector, limit, filter };
        self.search(collection, search).await
    }

    /// Finds the records nearest to the embedding of `text`. The collection's vectors must
    /// come from the built-in model.
    ///
    /// # Errors
    /// `model_unavailable` if they do not; otherwise as [`Engine::nearest`].
    pub async fn meaning(
        &self,
        collection: &str,
        text: &str,
        limit: u32,
        filter: Option<Filter>,
    ) -> Result<Hits, Failure> {
        let vector = self.embedded_for(collection, text).await?;
        let search = FindNearest { collection: collection.to_owned(), vector, limit, filter };
        self.search(collection, search).await
    }

    /// Finds the records that are near a vector or a text, and whose documents match `keywords`:
    /// both rankings fused.
    ///
    /// # Errors
    /// As [`Engine::nearest`] or [`Engine::meaning`].
    pub async fn hybrid(
        &self,
        collection: &str,
        like: &Like,
        keywords: &str,
        limit: u32,
        filter: Option<Filter>,
    ) -> Result<Hits, Failure> {
        let vector = match like {
            Like::Vector(vector) => bytes_of(vector),
            Like::Text(text) => self.embedded_for(collection, text).await?,
        };
        let (named, text) = (collection.to_owned(), keywords.to_owned());
        let search = FindHybrid { collection: named, vector, text, limit, filter };
        self.search(collection, search).await
    }

    /// Embeds a text for a search. Fails if the collection's vectors are of another model.
    async fn embedded_for(&self, collection: &str, text: &str) -> Result<Bulk, Failure> {
        let model = self.collection(collection).await?.model;
        if !is_built_in(model.as_deref()) {
            let model = model.unwrap_or_else(|| "an unknown model".to_owned());
            let message =
                format!("{collection} has vectors of {model}, which cannot embed texts here");
            return Err(
                Failure::new(Code::ModelUnavailable, message).with_hint(Hint::PassVectorOrKeywords)
            );
        }
        self.vector_of(text).await
    }

    /// Embeds texts with the built-in model; `None` for those without words.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, Failure> {
        let value = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap_or_default());
        let mut found = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            rest = later;
            let texts = now.iter().map(|text| (*text).to_owned()).collect();
            let TextsEmbedded { vectors, without } = self.ask(EmbedTexts { texts }).await?;
            let mut vectors = vectors.chunks_exact(DIMENSION * 4);
            for at in 0..now.len() as u32 {
                found.push(match without.contains(&at) {
                    true => None,
                    false => vectors.next().map(|one| one.chunks_exact(4).map(value).collect()),
                });
            }
        }
        Ok(found)
    }

    async fn vector_of(&self, text: &str) -> Result<Bulk, Failure> {
        let texts = vec![text.to_owned()];
        let vector = self.ask(EmbedTexts { texts }).await?.vectors;
        match vector.is_empty() {
            true => Err(Failure::new(Code::BadInput, "the text has no words to embed")),
            false => Ok(vector),
        }
    }

    /// Finds the records whose documents match `text` best.
    ///
    /// # Errors
    /// As [`Engine::nearest`].
    pub async fn keywords(
        &self,
        collection: &str,
        text: &str,
        limit: u32,
        filter: Option<Filter>,
    ) -> Result<Hits, Failure> {
        let (named, text) = (collection.to_owned(), text.to_owned());
        self.search(collection, FindKeywords { collection: named, text, limit, filter }).await
    }

    async fn search<O: ReadOperation<Reply = RecordsFound>>(
        &self,
        collection: &str,
        search: O,
    ) -> Result<Hits, Failure> {
        self.load_quarantine().await;
        let Answered { reply, blamed } = self.ask_for(search).await?;
        let RecordsFound { hits, degraded, searched } = reply;
        if searched.quarantined {
            self.fold_later(collection);
        }
        self.quarantine_segments(collection, &searched, blamed).await;
        Ok(Hits { hits, degraded })
    }

    /// Asks a reader. If a worker dies and the retry succeeds without segments, the segments
    /// are blamed.
    pub(crate) async fn ask_for<O: ReadOperation>(
        &self,
        operation: O,
    ) -> Result<Answered<O::Reply>, Failure> {
        self.ask_for_with(operation, CallOptions::default()).await
    }

    /// As [`Engine::ask_for`], with other options.
    pub(crate) async fn ask_for_with<O: ReadOperation>(
        &self,
        operation: O,
        options: CallOptions,
    ) -> Result<Answered<O::Reply>, Failure> {
        let job = operation.into();
        let Answered { reply, blamed } = match self.ask_once(&job, options.clone()).await {
            Err(failure) if is_another_store(&failure) && self.look_again()? => {
                self.ask_once(&job, options).await?
            }
            answered => answered?,
        };
        let reply = O::reply_from(reply)
            .ok_or_else(|| Failure::new(Code::Failed, "unexpected reply from the reader"))?;
        Ok(Answered { reply, blamed })
    }

    async fn ask_once(
        &self,
        job: &ReadJob,
        options: CallOptions,
    ) -> Result<Answered<ReadReply>, Failure> {
        let options = CallOptions { idempotent: true, ..options };
        let started = Instant::now();
        let answer = self.inner.readers.call(job, options).await;
        let answered = answer.map_err(|error| of_call(&error)).and_then(|answer| {
            let Answer { reply, deaths, .. } = answer;
            let blamed = deaths.iter().any(|death| death.class.blames_job());
            reply.map(|reply| Answered { reply, blamed })
        });
        let outcome = answered.as_ref().map(|answered| &answered.reply);
        self.inner.activity.read(job.name(), outcome, started.elapsed());
        answered
    }

    /// Quarantines segments of a collection that failed their check, or without which a
    /// search that killed a worker succeeded.
    pub(crate) async fn quarantine_segments(
        &self,
        collection: &str,
        searched: &Searched,
        blamed: bool,
    ) {
        self.quarantine(SegmentsOf::Collection(collection.to_owned()), searched, blamed).await;
    }

    /// As [`Engine::quarantine_segments`], for collections and the graph.
    pub(crate) async fn quarantine(&self, whose: SegmentsOf, searched: &Searched, blamed: bool) {
        let guilty = |damage: &&Damage| damage.kind != SegmentDamageKind::Unreadable;
        let mut culprits: Vec<Damage> = searched.damaged.iter().filter(guilty).cloned().collect();
        if blamed {
            let reason = "a worker died over it, and the search succeeded without it";
            culprits.extend(searched.avoided.iter().map(|file| Damage {
                file: file.clone(),
                reason: reason.to_owned(),
                kind: SegmentDamageKind::Damaged,
            }));
        }
        let Some(first) = culprits.first() else { return };
        let reason = first.reason.clone();
        let (marked, prefix) = match whose {
            SegmentsOf::Collection(_) => {
                let Searched { collection, generation, .. } = *searched;
                let files = culprits.iter().map(|damage| damage.file.clone()).collect();
                let mark = QuarantineSegments { collection, generation, files, reason };
                (self.inner.writes.send(mark, None).await, format!("c{collection}-"))
            }
            SegmentsOf::Graph => {
                let mark = QuarantineGraphSegment { file: first.file.clone(), reason };
                (self.inner.writes.send(mark, None).await, "g-".to_owned())
            }
        };
        match marked {
            Ok(_) => self.keep_for_diagnosis(&prefix, &culprits),
            Err(failure) => tracing::warn!(%failure, "damaged segments could not be recorded"),
        }
        // Immediately in a server; in a command, when it settles.
        self.build_later(whose);
    }

    /// Moves damaged files to the quarantine; only one set per prefix is kept.
    fn keep_for_diagnosis(&self, prefix: &str, culprits: &[Damage]) {
        let open = |folder| Folder::open(folder);
        let (segments, quarantine) =
            match (open(self.inner.folder.segments()), open(self.inner.folder.quarantine())) {
                (Ok(segments), Ok(quarantine)) => (segments, quarantine),
                (Err(error), _) | (_, Err(error)) => {
                    return tracing::warn!(%error, "damaged segments cannot be moved away");
                }
            };
        let mut kept = false;
        for damage in culprits {
            match segments.rename(&damage.file, &quarantine, &damage.file) {
                Ok(()) => {
                    kept = true;
                    tracing::warn!(file = damage.file, reason = damage.reason, "quarantined");
                }
                Err(error) => tracing::debug!(file = damage.file, %error, "nothing to quarantine"),
            }
        }
        // Another process may have been faster; it keeps the same set.
        if !kept {
            return;
        }
        for entry in quarantine.entries().unwrap_or_default() {
            let of_this_set = culprits.iter().any(|damage| entry.name == damage.file);
            if !of_this_set && is_segment(&entry.name) && entry.name.starts_with(prefix) {
                let _ = quarantine.remove(&entry.name);
            }
        }
    }
}

fn bytes_of(vector: &[f32]) -> Bulk {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    Bulk::from(bytes)
}
