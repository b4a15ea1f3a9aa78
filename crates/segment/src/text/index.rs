//! What the index of every text segment looks like to tantivy.

use isolith_text::{Analyzer, Terms, Tokenizer};
use tantivy::index::IndexSettings;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer as TantivyTokenizer, TokenizerManager};

use super::fields::{FIELD_NAMES, PerField};

const TOKENIZER: &str = "isolith";

/// Four fields with frequencies and lengths; see `docs/format.md`.
pub(super) fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqs)
        .set_fieldnorms(true);
    let mut schema = Schema::builder();
    for name in FIELD_NAMES {
        schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing.clone()));
    }
    schema.build()
}

/// The fields, which tantivy numbers in the order they were added.
pub(super) fn fields() -> PerField<Field> {
    [0, 1, 2, 3].map(Field::from_field_id)
}

/// Nothing is stored, so nothing is compressed, and no thread is started for it.
pub(super) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

/// Our tokenizer under the name that the schema has for it.
pub(super) fn tokenizers(analyzer: Analyzer) -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, Adapter(Tokenizer::new(analyzer)));
    tokenizers
}

#[derive(Clone)]
struct Adapter(Tokenizer);

struct Stream<'t> {
    terms: Terms<'t>,
    token: Token,
}

impl TantivyTokenizer for Adapter {
    type TokenStream<'t> = Stream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> Stream<'t> {
        Stream { terms: self.0.terms(text), token: Token::default() }
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        if !self.terms.advance() {
            return false;
        }
        let (term, position) = self.terms.current();
        self.token.text.clear();
        self.token.text.push_str(term);
        self.token.position = position as usize;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
