//! The tantivy schema, settings and tokenizer of text segments.

use isolith_text::{Analyzer, Terms, Tokenizer};
use tantivy::index::IndexSettings;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::store::Compressor;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer as TantivyTokenizer, TokenizerManager};

use super::fields::{FIELD_NAMES, PerField};

const TOKENIZER: &str = "isolith";

/// Fields with term frequencies and lengths; see `docs/format.md`.
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

/// Tantivy numbers fields in the order they were added.
pub(super) fn fields() -> PerField<Field> {
    [0, 1, 2, 3].map(Field::from_field_id)
}

/// No documents are stored, so compression is off.
pub(super) fn settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

pub(super) fn tokenizers(analyzer: Analyzer) -> TokenizerManager {
    let tokenizers = TokenizerManager::new();
    tokenizers.register(TOKENIZER, TokenizerAdapter(Tokenizer::new(analyzer)));
    tokenizers
}

#[derive(Clone)]
struct TokenizerAdapter(Tokenizer);

struct TermStream<'t> {
    terms: Terms<'t>,
    token: Token,
}

impl TantivyTokenizer for TokenizerAdapter {
    type TokenStream<'t> = TermStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> TermStream<'t> {
        TermStream { terms: self.0.terms(text), token: Token::default() }
    }
}

impl TokenStream for TermStream<'_> {
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
