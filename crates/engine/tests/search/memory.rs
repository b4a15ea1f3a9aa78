//! Recall: drawers are found in the tail and in segments, after changes, and despite damage.

use std::fs;
use std::path::Path;

use isolith_engine::{Engine, MemorySearch, SearchMode, WhichDrawers};
use isolith_types::{Code, DrawerFilter, DrawerPatch, NewDrawer};
use libtest_mimic::Trial;

use crate::support::{open, segments, trial};

const MEMORY: &str = "@memory";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("memory_is_found_by_keywords_meaning_and_neighbours", found),
        trial("memory_filters_are_applied", filtered),
        trial("changed_drawers_are_found_once_with_their_new_text", changed),
        trial("damaged_segments_of_memory_only_slow_down_searches", damaged),
        trial("blank_and_overlong_queries_are_refused", refused),
    ]
}

fn note(room: &str, text: &str) -> NewDrawer {
    NewDrawer {
        text: text.to_owned(),
        wing: "home".to_owned(),
        room: room.to_owned(),
        ..NewDrawer::default()
    }
}

/// A conversation about two topics, and notes about others.
async fn remember(engine: &Engine) {
    let talk = [
        "Ann: Did you ever bring the red bicycle to the workshop?",
        "Ben: Yes, the chain of the bicycle was rusty.",
        "Ann: And what did they ask for it?",
        "Ben: Forty, which I found cheap.",
        "Ann: By the way, my sister adopted a puppy.",
        "Ben: A puppy! What is the puppy called?",
        "Ann: Biscuit, the puppy sleeps all day.",
    ];
    let mut drawers: Vec<NewDrawer> = talk.iter().map(|text| note("talk", text)).collect();
    drawers.push(NewDrawer {
        date_text: Some("8 May, 2023".to_owned()),
        tags: vec!["allergy".to_owned()],
        ..note("notes", "Alice cannot eat peanuts; mind that when ordering lunch")
    });
    drawers.push(NewDrawer {
        date: Some("2024-02-29".parse().unwrap()),
        ..note("notes", "Production credentials rotate every 30 days")
    });
    engine.add_drawers(drawers, None).await.unwrap();
}

async fn texts(engine: &Engine, search: MemorySearch) -> Vec<String> {
    let found = engine.search_memory(&search).await.unwrap();
    assert_eq!(found.degraded, None);
    found.hits.into_iter().map(|hit| hit.drawer.text).collect()
}

async fn found(store: &Path) {
    let engine = open(store);
    remember(&engine).await;
    for folded in [false, true] {
        if folded {
            engine.fold(MEMORY, true, None).await.unwrap();
        }
        for (question, mode, best) in [
            ("rusty chain", SearchMode::Hybrid, "rusty"),
            ("rusty chain", SearchMode::Keyword, "rusty"),
            ("how often does the password change", SearchMode::Hybrid, "credentials"),
            ("nut allergies of colleagues", SearchMode::Vector, "peanuts"),
            ("what happened on 8 May 2023", SearchMode::Keyword, "peanuts"),
            ("allergy", SearchMode::Keyword, "peanuts"),
            ("notes of February 2024", SearchMode::Keyword, "credentials"),
        ] {
            let search = MemorySearch { mode, ..MemorySearch::new(question, 5) };
            let hits = texts(&engine, search).await;
            assert!(hits[0].contains(best), "{question} ({mode}, {folded}): {hits:?}");
        }
        let hits = engine.search_memory(&MemorySearch::new("peanuts", 3)).await.unwrap().hits;
        assert!(!hits[0].why.is_empty() && hits[0].score > hits[1].score, "{hits:?}");
        assert_eq!(hits[0].passage, hits[0].drawer.text);
        for (question, weak) in [("rusty chain", false), ("orbits of satellites", true)] {
            for mode in SearchMode::ALL {
                let search = MemorySearch { mode, ..MemorySearch::new(question, 3) };
                let found = engine.search_memory(&search).await.unwrap();
                assert_eq!(found.weak, weak, "{question} ({mode}, {folded}): {found:?}");
            }
        }
    }
    engine.close().await;
}

async fn filtered(store: &Path) {
    let engine = open(store);
    remember(&engine).await;
    let search = |filter| MemorySearch { filter, ..MemorySearch::new("puppy peanuts bicycle", 20) };
    let notes = DrawerFilter { room: Some("notes".to_owned()), ..DrawerFilter::default() };
    let hits = texts(&engine, search(notes)).await;
    assert!(hits.len() == 2 && hits[0].contains("peanuts"), "{hits:?}");
    let tagged = DrawerFilter { tags: vec!["allergy".to_owned()], ..DrawerFilter::default() };
    assert_eq!(texts(&engine, search(tagged)).await.len(), 1);
    let nowhere = DrawerFilter { wing: Some("work".to_owned()), ..DrawerFilter::default() };
    assert!(texts(&engine, search(nowhere)).await.is_empty());
    engine.close().await;
}

async fn changed(store: &Path) {
    let engine = open(store);
    remember(&engine).await;
    engine.fold(MEMORY, true, None).await.unwrap();
    let search = || MemorySearch::new("peanuts", 10);
    let id = engine.search_memory(&search()).await.unwrap().hits[0].drawer.id.clone();
    let text = Some("Alice may eat peanuts again".to_owned());
    let patch = DrawerPatch { text, ..DrawerPatch::default() };
    engine.update_drawer(&id, patch, None).await.unwrap();
    for folded in [false, true] {
        if folded {
            engine.fold(MEMORY, false, None).await.unwrap();
        }
        let hits = texts(&engine, search()).await;
        assert_eq!(hits[0], "Alice may eat peanuts again");
        assert_eq!(hits.iter().filter(|text| text.contains("peanuts")).count(), 1, "{hits:?}");
    }
    engine.delete_drawers(WhichDrawers::Ids(vec![id]), None).await.unwrap();
    let hits = texts(&engine, search()).await;
    assert!(hits.iter().all(|text| !text.contains("peanuts")), "{hits:?}");
    engine.close().await;
}

async fn damaged(store: &Path) {
    let engine = open(store);
    remember(&engine).await;
    engine.fold(MEMORY, true, None).await.unwrap();
    engine.close().await;
    for file in segments(store) {
        let length = fs::metadata(&file).unwrap().len();
        fs::File::options().write(true).open(&file).unwrap().set_len(length / 2).unwrap();
    }
    let engine = open(store);
    let found = engine.search_memory(&MemorySearch::new("rusty chain", 3)).await.unwrap();
    assert!(found.degraded.is_some());
    assert!(found.hits[0].drawer.text.contains("rusty"), "{found:?}");
    engine.settle().await;
    let found = engine.search_memory(&MemorySearch::new("rusty chain", 3)).await.unwrap();
    assert_eq!(found.degraded, None);
    engine.close().await;
}

async fn refused(store: &Path) {
    let engine = open(store);
    let empty = engine.search_memory(&MemorySearch::new("anything", 3)).await.unwrap();
    assert!(empty.hits.is_empty() && empty.weak);
    for (question, code) in
        [(" \n".to_owned(), Code::BadInput), ("long ".repeat(100_000), Code::TooLarge)]
    {
        let failure = engine.search_memory(&MemorySearch::new(&question, 3)).await.unwrap_err();
        assert_eq!(failure.code, code);
    }
    // No searchable word, which is not an error.
    engine.search_memory(&MemorySearch::new("?!", 3)).await.unwrap();
    engine.close().await;
}
