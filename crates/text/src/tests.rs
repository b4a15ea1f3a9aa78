use proptest::prelude::*;

use super::*;

fn terms(analyzer: Analyzer, text: &str) -> Vec<String> {
    let mut all = Vec::new();
    Tokenizer::new(analyzer).for_each(text, &mut |term, _| all.push(term.to_owned()));
    all
}

fn drained(queue: &mut TermQueue) -> Vec<String> {
    std::iter::from_fn(|| queue.next().then(|| queue.current().0.to_owned())).collect()
}

#[test]
fn identifiers_are_indexed_by_part_and_as_a_whole() {
    for (text, expected) in [
        ("HTTPServer2", "http server 2 httpserver2"),
        ("parseJSONFile", "pars json file parsejsonfile"),
        ("foo::bar/baz.rs", "foo bar baz rs"),
        ("snake_case_names", "snake case name snake_case_names"),
        ("SCREAMING_SNAKE", "scream snake screaming_snake"),
        ("kebab-case-names", "kebab case name"),
        ("__init__", "init"),
        ("_private__field_", "privat field private__field"),
        ("x86_64", "x 86 64 x86_64"),
        ("iOS9App", "i os 9 app ios9app"),
        ("A", "a"),
        ("ABTest", "ab test abtest"),
        ("getÄnderungDatum", "get anderung datum getanderungdatum"),
        ("ПарсерJSON", "парсер json парсерjson"),
        ("ПРИВЕТМир", "привет мир приветмир"),
        ("E\u{301}TAT_civil", "etat civil etat_civil"),
        ("get用户名称", "get 用户 户名 名称 get用户名称"),
        ("// 用户名称", "用户 户名 名称"),
        ("user's", "user s"),
        ("a\u{200d}b", "ab"),
        ("½cup", "1 2 cup 12cup"),
        ("", ""),
    ] {
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(terms(Analyzer::Code, text), expected, "{text}");
    }
}

#[test]
fn prose_is_split_and_stemmed() {
    for (text, expected) in [
        ("The quick foxes", "the quick fox"),
        ("don't DON’T dogs' 'quoted' dog's", "don't don't dog quot dog"),
        ("rock'n'roll a''b", "rock'n'rol a b"),
        ("Crème brûlée in Zürich, Straße 12", "creme brule in zurich strass 12"),
        ("covid19 3.14 1,000", "covid19 3 14 1 000"),
        ("snake_case", "snake case"),
        ("iPhone手机壳", "iphon 手机 机壳"),
        ("東京。京", "東京 京"),
        ("東", "東"),
        ("ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
        ("서울에서 봄", "서울 울에 에서 봄"),
        ("ﾃｽﾄ テスト", "テス スト テス スト"),
        ("co\u{ad}operate", "cooper"),
        ("Привет, Мир", "привет мир"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("a\0b", "a b"),
        ("👍 ok", "ok"),
    ] {
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(terms(Analyzer::Prose, text), expected, "{text}");
    }
}

#[test]
fn positions_count_words_and_parts() {
    let mut seen = Vec::new();
    Tokenizer::new(Analyzer::Code).for_each("fooBar baz", &mut |term, position| {
        seen.push((term.to_owned(), position));
    });
    let expected = [("foo", 0), ("bar", 1), ("foobar", 1), ("baz", 2)];
    assert_eq!(seen, expected.map(|(term, at)| (term.to_owned(), at)));
}

#[test]
fn analyzer_names_round_trip() {
    for analyzer in [Analyzer::Code, Analyzer::Prose] {
        assert_eq!(analyzer.to_string().parse(), Ok(analyzer));
    }
    assert!("other".parse::<Analyzer>().is_err());
}

#[test]
fn hostile_texts_yield_few_and_short_terms() {
    const SIZE: usize = 64 << 10;
    let marks: String =
        std::iter::once('e').chain(std::iter::repeat_n('\u{301}', 300_000)).collect();
    let hostile = [
        "x".repeat(32 * SIZE),
        "aB1".repeat(SIZE / 3),
        "_".repeat(SIZE),
        "a_".repeat(SIZE / 2),
        "\0".repeat(SIZE),
        "'".repeat(SIZE),
        "字".repeat(SIZE / 8),
        "\u{1100}\u{1161}\u{11a8}".repeat(SIZE / 64),
        "\u{fdfa}".repeat(SIZE / 128),
        "\u{200d}".repeat(SIZE / 8),
        "\u{93f}".repeat(SIZE / 8),
        marks,
    ];
    for text in &hostile {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let mut count = 0;
            Tokenizer::new(analyzer).for_each(text, &mut |term, _| {
                count += 1;
                assert!(!term.is_empty() && term.len() <= MAX_TERM_BYTES);
            });
            let first = text.chars().next();
            assert!(count <= text.chars().count() * 18, "{first:?}");
        }
    }
}

#[test]
fn long_words_are_truncated_at_a_character_boundary() {
    let word = format!("a{}", "ё".repeat(200));
    let found = terms(Analyzer::Prose, &word);
    assert_eq!(found.len(), 1);
    assert!(format!("a{}", "е".repeat(200)).starts_with(&found[0]));
    assert!(found[0].len() > MAX_TERM_BYTES - 4);

    let long = ["part"; 200].join("_");
    let found = terms(Analyzer::Code, &long);
    assert_eq!(found.iter().filter(|term| *term == "part").count(), 64);
    assert!(long.starts_with(found.last().expect("the whole identifier")));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-zA-Z0-9_' äßé字かภ가\u{301}\u{3099}\u{200d}\u{1161}.-]{0,60}",
        "([a-zA-Z0-9]{1,140}[_' ,é]{0,3}){0,4}",
        proptest::collection::vec(any::<char>(), 0..200).prop_map(String::from_iter),
    ]
}

proptest! {
    #[test]
    fn terms_are_short_and_never_empty(text in any_text()) {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let mut last = 0;
            Tokenizer::new(analyzer).for_each(&text, &mut |term, position| {
                assert!(!term.is_empty() && term.len() <= MAX_TERM_BYTES);
                assert!(position >= last && position <= last + 1);
                last = position;
            });
        }
    }

    /// A text used as a query yields terms of that text only, and a tokenizer's cache changes
    /// nothing.
    #[test]
    fn index_and_query_agree(text in any_text(), other in any_text()) {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let fresh = terms(analyzer, &text);
            let mut used = Tokenizer::new(analyzer);
            used.for_each(&other, &mut |_, _| {});
            let mut again = Vec::new();
            used.for_each(&text, &mut |term, _| again.push(term.to_owned()));
            prop_assert_eq!(&fresh, &again);
            let query = query_terms(analyzer, &text);
            prop_assert!(query.iter().all(|term| fresh.contains(term)));
            prop_assert_eq!(query.is_empty(), fresh.is_empty());
        }
    }

    /// The fast path yields the same terms.
    #[test]
    fn fast_path_changes_nothing(text in any_text()) {
        let (mut stems, mut queue) = (StemCache::default(), TermQueue::default());
        let (mut code, mut prose) = (CodeSplitter::default(), ProseSplitter::default());
        text.chars().for_each(|c| code.push(c, &mut stems, &mut queue));
        code.end(&mut stems, &mut queue);
        prop_assert_eq!(terms(Analyzer::Code, &text), drained(&mut queue));
        queue.restart();
        text.chars().for_each(|c| prose.push(c, &mut stems, &mut queue));
        prose.end(&mut stems, &mut queue);
        prop_assert_eq!(terms(Analyzer::Prose, &text), drained(&mut queue));
    }

    #[test]
    fn a_word_has_the_term_of_its_text(word in "[a-z]{0,140}|[a-zA-Z0-9_é' ]{1,10}") {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let term = Tokenizer::new(analyzer).term_of_word(&word).map(str::to_owned);
            let is_word = word.bytes().all(|byte| byte.is_ascii_lowercase());
            prop_assert_eq!(term.is_some(), is_word && (1..=124).contains(&word.len()));
            if let Some(term) = term {
                prop_assert_eq!(terms(analyzer, &word), [term]);
            }
        }
    }

    #[test]
    fn spaces_separate(left in any_text(), right in any_text()) {
        for analyzer in [Analyzer::Code, Analyzer::Prose] {
            let mut separate = terms(analyzer, &left);
            separate.extend(terms(analyzer, &right));
            prop_assert_eq!(terms(analyzer, &format!("{left} {right}")), separate);
        }
    }

        #[test]
    fn case_and_composition_do_not_matter(text in "[a-zA-ZäöüÄÖÜéÉñÑçÇ ]{0,40}") {
        use unicode_normalization::UnicodeNormalization;
        let decomposed: String = text.nfd().collect();
        prop_assert_eq!(terms(Analyzer::Prose, &text), terms(Analyzer::Prose, &decomposed));
        prop_assert_eq!(terms(Analyzer::Code, &text), terms(Analyzer::Code, &decomposed));
        let upper = text.to_uppercase();
        prop_assert_eq!(terms(Analyzer::Prose, &text), terms(Analyzer::Prose, &upper));
    }
}
