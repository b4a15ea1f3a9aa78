//! What is remembered stays, once, whoever dies.

use std::path::Path;
use std::time::Duration;

use isolith_engine::{
    DiaryEntry, Engine, EngineOptions, Key, MemorySearch, SearchMode, WhichDrawers,
};
use isolith_types::{Code, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, Moment, NewDrawer};
use libtest_mimic::Trial;

use crate::faults;
use crate::support::{Programs, open, open_with, trial};

pub fn trials(programs: &Programs) -> Vec<Trial> {
    let mut trials = vec![
        trial("drawers_say_what_is_nearly_the_same", similar),
        trial("labels_of_drawers_are_found_as_they_are_now", relabelled),
        trial("bad_drawers_are_left_out_alone", loaded),
        trial("diaries_keep_every_entry", diary),
        trial("large_drawers_come_in_short_pages", large),
    ];
    for fault in faults::ALL.iter().filter(|fault| fault.starts_with("write")) {
        let program = Some(programs.with(fault));
        let deadline = Duration::from_secs(30);
        let options = EngineOptions { program, deadline, ..EngineOptions::default() };
        trials.push(trial(
            format!("{fault} neither loses nor doubles drawers"),
            async move |store| {
                killed(store, options).await;
            },
        ));
    }
    trials
}

fn note(text: &str) -> NewDrawer {
    NewDrawer {
        text: text.to_owned(),
        wing: "home".to_owned(),
        room: "notes".to_owned(),
        ..NewDrawer::default()
    }
}

async fn add(engine: &Engine, text: &str) -> String {
    let added = engine.add_drawers(vec![note(text)], None).await.unwrap().remove(0);
    assert!(added.created, "{text}");
    added.id
}

async fn all(engine: &Engine) -> Vec<(u64, String)> {
    let page = DrawerPage { order: DrawerOrder::Position, limit: 10_000, ..DrawerPage::default() };
    let (drawers, total) = engine.list_drawers(&DrawerFilter::default(), page).await.unwrap();
    assert_eq!(total, drawers.len() as u64);
    drawers.into_iter().map(|drawer| (drawer.position, drawer.text)).collect()
}

async fn similar(store: &Path) {
    let engine = open(store);
    let all = DrawerFilter::default();
    let nothing = engine.similar_drawers("anything", &all, 0.0, 5).await.unwrap();
    assert_eq!(nothing, []);
    let id = add(&engine, "The backup of the database runs every night at two.").await;
    add(&engine, "Grandmother's recipe for plum cake needs a lot of butter.").await;
    let long = "The harvest was late this year because of the rain in June. ".repeat(60);
    let long_id = add(&engine, &long).await;
    for folded in [false, true] {
        if folded {
            engine.fold("@memory", true, None).await.unwrap();
        }
        let text = "The backup of our database runs each night at two.";
        let found = engine.similar_drawers(text, &all, 0.8, 5).await.unwrap();
        assert_eq!((found.len(), &found[0].drawer.id), (1, &id), "{found:?}");
        assert!((0.8..1.0).contains(&found[0].similarity));
        let same = engine.similar_drawers(&found[0].drawer.text, &all, 0.999, 5).await.unwrap();
        assert_eq!((same.len(), same[0].similarity > 0.999), (1, true));
        assert_eq!(engine.similar_drawers(text, &all, 0.999, 5).await.unwrap(), []);
        // As wholes, however long they are.
        let found = engine.similar_drawers(&long[..2_000], &all, 0.9, 5).await.unwrap();
        assert_eq!((found.len(), &found[0].drawer.text), (1, &long));
        assert_eq!(found[0].drawer.id, long_id);
        let elsewhere = DrawerFilter { wing: Some("work".to_owned()), ..all.clone() };
        assert_eq!(engine.similar_drawers(text, &elsewhere, 0.0, 5).await.unwrap(), []);
        // The most similar first, as many as are wanted.
        let found = engine.similar_drawers(text, &all, -1.0, 2).await.unwrap();
        assert!(found.len() == 2 && found[0].similarity > found[1].similarity);
    }
    let failure = engine.similar_drawers("\u{301}", &all, 0.0, 5).await.unwrap_err();
    assert_eq!(failure.code, Code::BadInput);
    engine.close().await;
}

async fn relabelled(store: &Path) {
    let engine = open(store);
    let id = add(&engine, "We agreed on the blue one.").await;
    add(&engine, "The kitchen is being painted.").await;
    engine.fold("@memory", true, None).await.unwrap();
    let found = async |words: &str| {
        let search = MemorySearch { mode: SearchMode::Keyword, ..MemorySearch::new(words, 10) };
        let hits = engine.search_memory(&search).await.unwrap().hits;
        hits.into_iter().map(|hit| hit.drawer.id).collect::<Vec<_>>()
    };
    let update = async |patch: DrawerPatch| {
        assert!(engine.update_drawer(&id, patch, None).await.unwrap().changed);
    };
    assert_eq!(found("sofa").await, [""; 0]);
    let tags = Some(vec!["sofa".to_owned()]);
    update(DrawerPatch { tags, author: Some("Mia".to_owned()), ..DrawerPatch::default() }).await;
    for folded in [false, true] {
        if folded {
            engine.fold("@memory", false, None).await.unwrap();
        }
        for words in ["sofa", "mia", "blue"] {
            assert_eq!(found(words).await, [id.as_str()], "{words} {folded}");
        }
    }
    let tags = Some(vec![String::new()]);
    let date_text = Some("late autumn".to_owned());
    update(DrawerPatch { tags, date_text, ..DrawerPatch::default() }).await;
    assert_eq!(found("sofa").await, [""; 0]);
    assert_eq!(found("autumn").await, [id.as_str()]);
    engine.close().await;
}

async fn loaded(store: &Path) {
    let engine = open(store);
    let drawers = vec![note("one"), note(" "), note("two"), note("\u{301}"), note("one")];
    let failure = engine.add_drawers(drawers.clone(), None).await.unwrap_err();
    assert_eq!((failure.code, all(&engine).await.len()), (Code::BadInput, 0));
    let key = Some(Key::of_text("once"));
    for repeated in [false, true] {
        let loaded = engine.load_drawers(drawers.clone(), key).await.unwrap();
        assert_eq!(loaded.repeated, repeated);
        let created: Vec<Option<bool>> =
            loaded.drawers.iter().map(|it| it.as_ref().ok().map(|it| it.created)).collect();
        assert_eq!(created, [Some(true), None, Some(true), None, Some(false)]);
    }
    assert_eq!(all(&engine).await.len(), 2);
    engine.close().await;
}

async fn diary(store: &Path) {
    let engine = open(store);
    let entry = |text: &str, day: Option<&str>| DiaryEntry {
        agent: "claude".to_owned(),
        text: text.to_owned(),
        day: day.map(|day| day.parse().unwrap()),
        topic: Some("tests".to_owned()),
    };
    for (text, day) in [("later", Some("2026-01-02")), ("same", Some("2026-01-01")), ("same", None)]
    {
        assert!(engine.write_diary(entry(text, day), None).await.unwrap().created);
    }
    // A repeat under a key is the same entry.
    let key = Some(Key::of_text("today"));
    let first = engine.write_diary(entry("kept once", Some("2026-01-02")), key).await.unwrap();
    let again = engine.write_diary(entry("kept once", Some("2026-01-02")), key).await.unwrap();
    assert_eq!(first, again);
    let read = async |day: Option<&str>, last| -> Vec<String> {
        let day: Option<Moment> = day.map(|day| day.parse().unwrap());
        let entries = engine.read_diary("claude", day, last).await.unwrap();
        entries.into_iter().map(|entry| entry.text).collect()
    };
    assert_eq!(read(None, 10).await, ["same", "later", "kept once", "same"]);
    assert_eq!(read(None, 2).await, ["kept once", "same"]);
    assert_eq!(read(Some("2026-01-02"), 10).await, ["later", "kept once"]);
    assert_eq!(read(Some("2025-01-02"), 10).await, [""; 0]);
    assert_eq!(engine.read_diary("nobody", None, 10).await.unwrap(), []);
    engine.close().await;
}

async fn large(store: &Path) {
    let engine = open(store);
    for number in 0..20 {
        let text = format!("{number} {}", "many words ".repeat(95_000));
        engine.add_drawers(vec![note(&text)], None).await.unwrap();
    }
    let mut page = DrawerPage { order: DrawerOrder::Position, limit: 20, ..DrawerPage::default() };
    let mut seen = Vec::new();
    while seen.len() < 20 {
        let (drawers, total) =
            engine.list_drawers(&DrawerFilter::default(), page.clone()).await.unwrap();
        assert!((1..20).contains(&drawers.len()) && total == 20);
        seen.extend(drawers.into_iter().map(|drawer| drawer.position));
        page.offset = seen.len() as u64;
    }
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
    engine.close().await;
}

/// Every second write of every worker goes wrong. (More of them would open the breaker.)
async fn killed(store: &Path, options: EngineOptions) {
    let engine = open_with(store, options);
    let first = add(&engine, "the first").await;
    let second = add(&engine, "the second").await;
    let many = (0..100).map(|number| note(&format!("one of many: {number}"))).collect();
    let added = engine.add_drawers(many, None).await.unwrap();
    assert!(added.len() == 100 && added.iter().all(|it| it.created));
    let text = Some("changed".to_owned());
    let patch = DrawerPatch { text, ..DrawerPatch::default() };
    assert!(engine.update_drawer(&first, patch, None).await.unwrap().changed);
    let gone = WhichDrawers::Ids(vec![second]);
    assert_eq!(engine.delete_drawers(gone, None).await.unwrap().deleted, 1);
    engine.close().await;

    let engine = open(store);
    let all = all(&engine).await;
    assert_eq!((all.len(), all[0].1.as_str()), (101, "changed"));
    assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "no position is there twice");
    engine.close().await;
}
