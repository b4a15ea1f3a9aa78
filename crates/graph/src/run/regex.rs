//! Regular expressions on texts of any length.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::Run;
use crate::error::{Class, Detail, Error, Result};

/// Texts up to this length are matched without checking the budget: matching takes time
/// proportional to the length of the text and the size of the expression.
const SHORT_TEXT: usize = 4 << 10;

/// The maximum size of a compiled expression.
const MAX_COMPILED_SIZE: usize = 256 << 10;

/// The maximum number of compiled expressions that a query caches.
const MAX_CACHED: usize = 16;

/// The compiled expressions of a query.
#[derive(Default)]
pub(super) struct Regexes(RefCell<HashMap<String, Rc<Compiled>>>);

struct Compiled {
    whole: regex::Regex,
    /// For long texts, built on first use.
    steps: RefCell<Option<(DFA, Cache)>>,
}

/// Whether an expression matches the whole of a text.
pub(super) fn matches(run: &Run<'_>, text: &str, pattern: &str) -> Result<bool> {
    let compiled = run.regexes.find(run, pattern)?;
    if text.len() <= SHORT_TEXT {
        run.budget.steps(text.len() / 16)?;
        return Ok(compiled.whole.is_match(text));
    }
    let mut steps = compiled.steps.borrow_mut();
    let (dfa, cache) = match &mut *steps {
        Some(made) => (&made.0, &mut made.1),
        empty => {
            run.budget.steps(1024)?;
            let dfa = build_dfa(pattern)?;
            let cache = dfa.create_cache();
            let made = empty.insert((dfa, cache));
            (&made.0, &mut made.1)
        }
    };
    walk(run, dfa, cache, text)
}

/// Runs the automaton byte by byte, checking the budget on the way.
fn walk(run: &Run<'_>, dfa: &DFA, cache: &mut Cache, text: &str) -> Result<bool> {
    let cannot = |_| text_too_long();
    let input = Input::new(text).anchored(Anchored::Yes);
    let mut state = dfa.start_state_forward(cache, &input).map_err(|_| text_too_long())?;
    for part in text.as_bytes().chunks(64) {
        // A new state takes time proportional to the size of the expression.
        run.budget.steps(16)?;
        for &byte in part {
            state = dfa.next_state(cache, state, byte).map_err(cannot)?;
            if state.is_dead() {
                return Ok(false);
            }
            if state.is_quit() {
                return Err(text_too_long());
            }
        }
    }
    Ok(dfa.next_eoi_state(cache, state).map_err(cannot)?.is_match())
}

impl Regexes {
    fn find(&self, run: &Run<'_>, pattern: &str) -> Result<Rc<Compiled>> {
        if let Some(compiled) = self.0.borrow().get(pattern) {
            return Ok(compiled.clone());
        }
        run.budget.steps(1024)?;
        let build = |text: &str| {
            regex::RegexBuilder::new(text).size_limit(MAX_COMPILED_SIZE).build().map_err(|error| {
                match error {
                    regex::Error::CompiledTooBig(_) => Error::TooLarge(format!(
                        "the regular expression {} is too large",
                        shown(pattern)
                    )),
                    _ => {
                        let message = format!("invalid regular expression {}", shown(pattern));
                        Error::run(Class::ArgumentError, Detail::InvalidArgumentValue, message)
                    }
                }
            })
        };
        // It must also be valid by itself: its brackets must not close ours.
        build(pattern)?;
        let whole = build(&anchored(pattern))?;
        let compiled = Rc::new(Compiled { whole, steps: RefCell::default() });
        let mut known = self.0.borrow_mut();
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

fn anchored(pattern: &str) -> String {
    format!("^(?s:{pattern})$")
}

fn build_dfa(pattern: &str) -> Result<DFA> {
    let config = DFA::config().cache_capacity(1 << 20).skip_cache_capacity_check(true);
    let config = config.unicode_word_boundary(true);
    let size = regex_automata::nfa::thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED_SIZE));
    DFA::builder()
        .configure(config)
        .syntax(syntax::Config::new())
        .thompson(size)
        .build(&anchored(pattern))
        .map_err(|_| text_too_long())
}

fn text_too_long() -> Error {
    let length = SHORT_TEXT >> 10;
    Error::TooLarge(format!("this expression can only match strings of up to {length} KiB"))
}

/// The beginning of an expression, for error messages.
fn shown(pattern: &str) -> String {
    let beginning: String = pattern.chars().take(100).collect();
    format!("{beginning:?}")
}
