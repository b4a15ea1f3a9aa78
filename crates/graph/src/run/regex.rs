//! Regular expressions, on texts of any length.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::Run;
use crate::error::{Class, Detail, Error, Result};

/// Texts up to here are matched at once. Matching takes time in proportion to the length of the
/// text and the size of the expression, and neither is large then.
const SHORT: usize = 4 << 10;

/// The size of an expression when it is compiled.
const SIZE: usize = 256 << 10;

/// How many expressions a query keeps compiled.
const KNOWN: usize = 16;

/// The expressions that a query has used.
#[derive(Default)]
pub(super) struct Regexes(RefCell<HashMap<String, Rc<Compiled>>>);

struct Compiled {
    whole: regex::Regex,
    /// For long texts, made when the first one comes.
    steps: RefCell<Option<(DFA, Cache)>>,
}

/// Whether an expression matches the whole of a text.
pub(super) fn matches(run: &Run<'_>, text: &str, pattern: &str) -> Result<bool> {
    let compiled = run.regexes.find(run, pattern)?;
    if text.len() <= SHORT {
        run.budget.steps(text.len() / 16)?;
        return Ok(compiled.whole.is_match(text));
    }
    let mut steps = compiled.steps.borrow_mut();
    let (dfa, cache) = match &mut *steps {
        Some(made) => (&made.0, &mut made.1),
        empty => {
            run.budget.steps(1024)?;
            let dfa = by_steps(pattern)?;
            let cache = dfa.create_cache();
            let made = empty.insert((dfa, cache));
            (&made.0, &mut made.1)
        }
    };
    walk(run, dfa, cache, text)
}

/// Follows the expression letter by letter, so that the budget can be asked on the way.
fn walk(run: &Run<'_>, dfa: &DFA, cache: &mut Cache, text: &str) -> Result<bool> {
    let cannot = |_| unsuitable();
    let input = Input::new(text).anchored(Anchored::Yes);
    let mut state = dfa.start_state_forward(cache, &input).map_err(|_| unsuitable())?;
    for part in text.as_bytes().chunks(64) {
        // A step that was not taken before takes as long as the expression is large.
        run.budget.steps(16)?;
        for &byte in part {
            state = dfa.next_state(cache, state, byte).map_err(cannot)?;
            if state.is_dead() {
                return Ok(false);
            }
            if state.is_quit() {
                return Err(unsuitable());
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
            regex::RegexBuilder::new(text).size_limit(SIZE).build().map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    Error::TooLarge(format!("{} is too large an expression", shown(pattern)))
                }
                _ => {
                    let message = format!("{} is not a regular expression", shown(pattern));
                    Error::run(Class::ArgumentError, Detail::InvalidArgumentValue, message)
                }
            })
        };
        // By itself it must make sense, too: brackets in it must not close ours.
        build(pattern)?;
        let whole = build(&anchored(pattern))?;
        let compiled = Rc::new(Compiled { whole, steps: RefCell::default() });
        let mut known = self.0.borrow_mut();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

fn anchored(pattern: &str) -> String {
    format!("^(?s:{pattern})$")
}

fn by_steps(pattern: &str) -> Result<DFA> {
    let config = DFA::config().cache_capacity(1 << 20).skip_cache_capacity_check(true);
    let config = config.unicode_word_boundary(true);
    let size = regex_automata::nfa::thompson::Config::new().nfa_size_limit(Some(SIZE));
    DFA::builder()
        .configure(config)
        .syntax(syntax::Config::new())
        .thompson(size)
        .build(&anchored(pattern))
        .map_err(|_| unsuitable())
}

fn unsuitable() -> Error {
    let length = SHORT >> 10;
    Error::TooLarge(format!("this expression can only match strings of up to {length} KiB"))
}

/// The beginning of an expression, for messages.
fn shown(pattern: &str) -> String {
    let beginning: String = pattern.chars().take(100).collect();
    format!("{beginning:?}")
}
