//! Grammars of programming languages: those of the `tree-sitter-…` crates, with their parse tables
//! compressed in the program. A grammar's tables are unpacked when it is first used, which takes a few
//! milliseconds per megabyte of tables.
//!
//! The build script (`build/main.rs`) says how the tables get here.

#![allow(unsafe_code, reason = "calls the C code of the grammars, and fills its tables")]

use std::ffi::c_void;
use std::io::Read as _;
use std::ptr::null_mut;
use std::slice;
use std::sync::Once;

use lzma_rust2::XzReader;
use tree_sitter::Language;
use tree_sitter_language::LanguageFn;

/// As many as `TABLES` in `build/parser.rs`.
const TABLES: usize = 6;

struct Grammar {
    language: unsafe extern "C" fn() -> *const (),
    /// Writes the addresses and sizes of the tables.
    tables: unsafe extern "C" fn(*mut *mut c_void, *mut u32),
    packed: &'static [u8],
    unpacked: Once,
}

impl Grammar {
    fn language(&'static self) -> Language {
        self.unpacked.call_once(|| self.unpack());
        // SAFETY: this is the function of the grammar that `LanguageFn` is made for.
        let language = unsafe { LanguageFn::from_raw(self.language) };
        language.into()
    }

    fn unpack(&self) {
        let (mut starts, mut sizes) = ([null_mut(); TABLES], [0; TABLES]);
        // SAFETY: the function writes as many values as both arrays have.
        unsafe { (self.tables)(starts.as_mut_ptr(), sizes.as_mut_ptr()) };
        let mut reader = XzReader::new(self.packed, false);
        for (start, size) in starts.into_iter().zip(sizes) {
            // SAFETY: the table is static memory of this size that any bytes may be written to. Nothing
            // else refers to it yet: parsers read it through languages only, and the first language is
            // returned after `call_once`.
            let table = unsafe { slice::from_raw_parts_mut(start.cast::<u8>(), size as usize) };
            reader.read_exact(table).expect("the build script has packed these tables");
        }
    }
}

macro_rules! grammar {
    ($doc:literal, $name:ident, $language:ident, $tables:ident, $packed:literal) => {
        #[doc = $doc]
        pub fn $name() -> Language {
            unsafe extern "C" {
                fn $language() -> *const ();
                fn $tables(starts: *mut *mut c_void, sizes: *mut u32);
            }
            static GRAMMAR: Grammar = Grammar {
                language: $language,
                tables: $tables,
                packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $packed)),
                unpacked: Once::new(),
            };
            GRAMMAR.language()
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/grammars.rs"));
