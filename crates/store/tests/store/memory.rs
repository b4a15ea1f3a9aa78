//! Agent memory: drawers, passages and duplicates.

use isolith_protocol::{
    AddDrawers, DeleteCollection, DeleteDrawers, DrawerVectors, Key, MEMORY_COLLECTION, PutMode,
    StoreError, UpdateDrawer, WhichDrawers,
};
use isolith_store::{Check, Scope, Snapshot, passages};
use isolith_types::{
    Code, CollectionKind, Drawer, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, DrawerPlace,
    LONGEST_DRAWER, Metadata, Moment, NewDrawer,
};

use crate::common::{MODEL, TestStore, bytes, key, numbered, put};

/// A drawer in wing "ada" and room "work".
pub(crate) fn drawer(text: &str) -> NewDrawer {
    NewDrawer {
        text: text.to_owned(),
        wing: "ada".to_owned(),
        room: "work".to_owned(),
        ..NewDrawer::default()
    }
}

/// A distinct vector for each passage; none if a text has no letters.
pub(crate) fn vectors<'t>(texts: impl IntoIterator<Item = &'t str>) -> DrawerVectors {
    let of_drawer = |text: &str| match text.chars().any(char::is_alphanumeric) {
        true => bytes(passages(text).iter().flat_map(|passage| [passage.len() as f32, 1.0])),
        false => Vec::new(),
    };
    DrawerVectors {
        model: MODEL.to_owned(),
        dimension: 2,
        of_drawers: texts.into_iter().map(of_drawer).collect(),
    }
}

pub(crate) fn add(drawers: Vec<NewDrawer>) -> AddDrawers {
    let vectors = vectors(drawers.iter().map(|drawer| drawer.text.as_str()));
    AddDrawers { drawers, skip_bad: false, vectors }
}

fn update(id: &str, patch: DrawerPatch) -> UpdateDrawer {
    let vectors = vectors(patch.text.as_deref());
    UpdateDrawer { id: id.to_owned(), patch: Box::new(patch), vectors }
}

fn remove(ids: &[&str]) -> DeleteDrawers {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    DeleteDrawers { which: WhichDrawers::Ids(ids) }
}

fn with<T>(store: &TestStore, read: impl FnOnce(&Snapshot<'_>) -> T) -> T {
    let mut reader = store.reader();
    for check in Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    read(&reader.snapshot().unwrap())
}

fn get(store: &TestStore, id: &str) -> Drawer {
    with(store, |snapshot| snapshot.drawers_by_id(&[id.to_owned()]).unwrap().remove(0).unwrap())
}

/// Adds one drawer. Returns its id.
fn added(store: &mut TestStore, drawer: NewDrawer) -> String {
    let outcome = store.one(add(vec![drawer])).unwrap();
    assert_eq!((outcome.inserted, outcome.drawers.len()), (1, 1));
    outcome.drawers[0].id.clone()
}

/// Rows and change numbers of all passages.
fn versions(store: &TestStore) -> Vec<(u64, u64)> {
    with(store, |snapshot| {
        let id = snapshot.memory_state().unwrap().unwrap().id;
        snapshot.versions(id, Scope::All).unwrap()
    })
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (Code, String) {
    let error = result.unwrap_err();
    (error.to_failure().code, error.to_string())
}

#[test]
fn a_drawer_is_stored_as_it_was_written() {
    let mut store = TestStore::new();
    with(&store, |snapshot| {
        assert_eq!(snapshot.memory_state().unwrap(), None);
        assert_eq!(snapshot.taxonomy().unwrap(), []);
        assert_eq!(snapshot.drawers_by_id(&["x".to_owned()]).unwrap(), [None]);
        let all = snapshot.drawers(&DrawerFilter::default(), &page(9), usize::MAX).unwrap();
        assert_eq!(all, (vec![], 0));
    });
    let new = NewDrawer {
        text: "  We met at noon.\n\0\u{1F994}\r\n".to_owned(),
        wing: " ada ".to_owned(),
        room: "work".to_owned(),
        source: Some("chat.json".to_owned()),
        author: Some(" Ada Lovelace".to_owned()),
        date: Some("2026-01-31".parse().unwrap()),
        date_text: Some("end of January".to_owned()),
        tags: ["meeting", "", "noon", "meeting "].map(str::to_owned).to_vec(),
        metadata: Metadata::parse(r#"{"b":1,"a":[true]}"#).unwrap(),
    };
    let id = added(&mut store, new.clone());
    assert_eq!(id.len(), 24);
    let stored = get(&store, &id);
    assert_eq!(stored.text, new.text);
    assert_eq!((stored.wing.as_str(), stored.room.as_str(), stored.position), ("ada", "work", 1));
    assert_eq!(stored.author.as_deref(), Some("Ada Lovelace"));
    assert_eq!((stored.date, stored.date_text.clone()), (new.date, new.date_text.clone()));
    assert_eq!(stored.tags, ["meeting", "noon"]);
    assert_eq!((stored.metadata.clone(), stored.source.clone()), (new.metadata, new.source));
    assert_eq!(stored.created_at, stored.updated_at);
    with(&store, |snapshot| {
        let state = snapshot.memory_state().unwrap().unwrap();
        assert_eq!((state.name.as_str(), state.kind), (MEMORY_COLLECTION, CollectionKind::Memory));
        assert_eq!((state.records, state.unfolded, state.dimension), (1, 1, Some(2)));
        let mut seen = Vec::new();
        snapshot
            .for_each_passage(state.id, Scope::All, &mut |row, change, text| {
                assert_eq!(row, change);
                let texts = [text.body, text.labels, text.date].map(str::to_owned);
                seen.push(texts);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(
            seen,
            [[
                &stored.text,
                "Ada Lovelace meeting noon",
                "end of January Saturday 31 January 2026"
            ]]
        );
    });
    // Only memory changes it.
    let records = put(MEMORY_COLLECTION, numbered(0..1), PutMode::Upsert);
    assert_eq!(refused(store.one(records)).0, Code::BadInput);
    let delete = DeleteCollection { name: MEMORY_COLLECTION.to_owned() };
    assert!(refused(store.one(delete)).1.contains("use `isolith memory` to change it"));
}

#[test]
fn adding_the_same_text_returns_the_same_drawer() {
    let mut store = TestStore::new();
    let one = added(&mut store, drawer("Hello."));
    let before = (get(&store, &one), versions(&store));
    let outcome = store.one(add(vec![drawer("Hello."), drawer("Hello."), drawer("Bye.")])).unwrap();
    assert_eq!((outcome.inserted, outcome.unchanged, &outcome.known[..]), (1, 2, &[0, 1][..]));
    for again in &outcome.drawers[..2] {
        assert_eq!(
            (&again.id, again.created, again.duplicate_of.as_ref()),
            (&one, false, Some(&one))
        );
    }
    assert_eq!(get(&store, &one), before.0);
    assert_eq!(versions(&store)[0], before.1[0]);
    // The same text twice in one call is stored once.
    let outcome = store.one(add(vec![drawer("New."), drawer("New.")])).unwrap();
    assert_eq!((outcome.drawers[0].created, outcome.drawers[1].created), (true, false));
    // A different wing, room or source makes a different drawer.
    let mut ids = vec![one];
    for change in [
        |it: &mut NewDrawer| it.wing = "bob".to_owned(),
        |it: &mut NewDrawer| it.room = "home".to_owned(),
        |it: &mut NewDrawer| it.source = Some("mail".to_owned()),
    ] {
        let mut other = drawer("Hello.");
        change(&mut other);
        ids.push(added(&mut store, other));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    // Other metadata does not.
    let labelled = NewDrawer { author: Some("Bob".to_owned()), ..drawer("Hello.") };
    assert_eq!(store.one(add(vec![labelled])).unwrap().inserted, 0);
}

#[test]
fn long_texts_are_split_and_returned_whole() {
    let mut store = TestStore::new();
    let text = (0..400).map(|n| format!("Sentence {n} of ever so many.\n")).collect::<String>();
    let id = added(&mut store, drawer(&text));
    let count = passages(&text).len();
    assert!(count > 5);
    assert_eq!(get(&store, &id).text, text);
    let rows: Vec<u64> = versions(&store).iter().map(|(row, _)| *row).collect();
    assert_eq!(rows.len(), count);
    with(&store, |snapshot| {
        let stored = snapshot.passages(&[rows[0], 999, rows[count - 1]], false).unwrap();
        let (first, last) = (stored[0].as_ref().unwrap(), stored[2].as_ref().unwrap());
        assert_eq!((first.drawer, first.position), (last.drawer, 1));
        assert_eq!((first.wing.as_str(), first.room.as_str(), &stored[1]), ("ada", "work", &None));
        assert_eq!(snapshot.rows_of_drawers(&DrawerFilter::default()).unwrap(), rows);
        let by_number = snapshot.drawers_by_number(&[999, first.drawer]).unwrap();
        assert_eq!((&by_number[0], &by_number[1].as_ref().unwrap().text), (&None, &text));
    });
    let whole = "x".repeat(LONGEST_DRAWER);
    let id = added(&mut store, drawer(&whole));
    assert_eq!(get(&store, &id).text, whole);
}

#[test]
fn an_invalid_drawer_fails_the_whole_write() {
    let mut store = TestStore::new();
    let long = "x".repeat(LONGEST_DRAWER + 1);
    let name = "n".repeat(501);
    let cases: [(NewDrawer, Code, &str); 8] = [
        (drawer(" \n\t"), Code::BadInput, "the text is blank"),
        (drawer("..."), Code::BadInput, "no searchable words"),
        (drawer(&long), Code::TooLarge, "1048577 bytes"),
        (NewDrawer { wing: " ".to_owned(), ..drawer("a") }, Code::BadInput, "the wing has no name"),
        (NewDrawer { room: String::new(), ..drawer("a") }, Code::BadInput, "the room has no name"),
        (NewDrawer { author: Some(name), ..drawer("a") }, Code::TooLarge, "the author"),
        (NewDrawer { tags: vec!["a\nb".into()], ..drawer("a") }, Code::BadInput, "the tag"),
        (
            NewDrawer { tags: (0..101).map(|n| n.to_string()).collect(), ..drawer("a") },
            Code::BadInput,
            "101 tags",
        ),
    ];
    for (bad, code, says) in &cases {
        let (found, message) = refused(store.one(add(vec![bad.clone()])));
        assert!(found == *code && message.contains(says), "{message}");
        let (_, message) = refused(store.one(add(vec![drawer("good"), bad.clone()])));
        assert!(message.contains('1'), "{message}");
    }
    let many = vec![drawer("a"); 501];
    assert!(refused(store.one(add(many))).1.contains("501 drawers"));
    with(&store, |snapshot| assert_eq!(snapshot.taxonomy().unwrap(), []));

    // With `skip_bad`, only the invalid drawer is rejected.
    let mut drawers = vec![drawer("good"), drawer("fine")];
    drawers.splice(1..1, cases.iter().map(|case| case.0.clone()));
    let texts: Vec<String> = drawers.iter().map(|drawer| drawer.text.clone()).collect();
    let vectors = vectors(texts.iter().map(String::as_str));
    let outcome = store.one(AddDrawers { drawers, skip_bad: true, vectors }).unwrap();
    assert_eq!((outcome.inserted, outcome.rejected_count), (2, 8));
    let rows: Vec<u64> = outcome.rejected.iter().map(|(row, _)| *row).collect();
    assert_eq!((rows, outcome.rejected[0].1.as_str()), ((1..9).collect(), "the text is blank"));
}

#[test]
fn vectors_must_match_the_passages() {
    let mut store = TestStore::new();
    added(&mut store, drawer("first"));
    let make = |vectors: DrawerVectors| AddDrawers {
        drawers: vec![drawer("second")],
        skip_bad: false,
        vectors,
    };
    let good = vectors(["second"]);
    for (vectors, code) in [
        (DrawerVectors { model: "other".to_owned(), ..good.clone() }, Code::ModelMismatch),
        (DrawerVectors { dimension: 3, ..good.clone() }, Code::BadInput),
        (DrawerVectors { of_drawers: vec![bytes([0.0, 0.0])], ..good.clone() }, Code::BadInput),
        (DrawerVectors { of_drawers: vec![bytes([1.0])], ..good.clone() }, Code::BadInput),
        (DrawerVectors::default(), Code::BadInput),
    ] {
        assert_eq!(refused(store.one(make(vectors))).0, code);
    }
    store.one(make(good)).unwrap();
}

#[test]
fn an_updated_drawer_keeps_its_id() {
    let mut store = TestStore::new();
    let id = added(&mut store, drawer("Old text."));
    let other = added(&mut store, drawer("Other text."));
    let before = versions(&store);

    // Author and date are searchable: the passage gets a new version.
    let author = DrawerPatch {
        author: Some("Ada".to_owned()),
        date: Some(Some("2026-01-31".parse().unwrap())),
        ..DrawerPatch::default()
    };
    assert_eq!(store.one(update(&id, author.clone())).unwrap().updated, 1);
    let after = versions(&store);
    assert_eq!((after[0].0, after[1]), (before[0].0, before[1]));
    assert!(after[0].1 > before[0].1);
    // Fields that are not searchable do not.
    let noted = DrawerPatch {
        metadata: Some(Metadata::parse(r#"{"seen":true}"#).unwrap()),
        ..DrawerPatch::default()
    };
    assert_eq!(store.one(update(&id, noted)).unwrap().updated, 1);
    assert_eq!(versions(&store), after);
    assert_eq!(store.one(update(&id, author)).unwrap().updated, 0);

    let text = DrawerPatch { text: Some("New text.".to_owned()), ..DrawerPatch::default() };
    assert_eq!(store.one(update(&id, text)).unwrap().updated, 1);
    let now = get(&store, &id);
    assert_eq!(
        (now.text.as_str(), now.author.as_deref(), now.position),
        ("New text.", Some("Ada"), 1)
    );
    assert_eq!((now.metadata.as_str(), now.date.is_some()), (r#"{"seen":true}"#, true));
    with(&store, |snapshot| {
        let id = snapshot.memory_state().unwrap().unwrap().id;
        // Both versions of the passage that is gone, and the one it was at first.
        assert_eq!(snapshot.tombstones(id).unwrap().len(), 2);
    });
    // An empty string removes an optional value.
    let nothing = DrawerPatch {
        author: Some(String::new()),
        date: Some(None),
        metadata: Some(Metadata::parse(r#"{"seen":null}"#).unwrap()),
        ..DrawerPatch::default()
    };
    store.one(update(&id, nothing)).unwrap();
    let now = get(&store, &id);
    assert_eq!((now.author, now.date, now.metadata), (None, None, Metadata::default()));

    // An update cannot create a duplicate or an empty drawer.
    let same = DrawerPatch { text: Some("Other text.".to_owned()), ..DrawerPatch::default() };
    let (code, message) = refused(store.one(update(&id, same)));
    assert!(code == Code::AlreadyExists && message.contains(&other), "{message}");
    let blank = DrawerPatch { text: Some(" ".to_owned()), ..DrawerPatch::default() };
    assert_eq!(refused(store.one(update(&id, blank))).0, Code::BadInput);
    let wordless = DrawerPatch { text: Some("?".to_owned()), ..DrawerPatch::default() };
    assert_eq!(refused(store.one(update(&id, wordless))).0, Code::BadInput);
    assert_eq!(refused(store.one(update("none", DrawerPatch::default()))).0, Code::NotFound);
    assert_eq!(get(&store, &id).text, "New text.");

    // The old text is a drawer of its own again, and so is it when that is gone.
    let old = added(&mut store, drawer("Old text."));
    assert_ne!(old, id);
    assert_eq!(store.one(add(vec![drawer("Old text.")])).unwrap().drawers[0].id, old);
    store.one(remove(&[&old])).unwrap();
    assert_eq!(added(&mut store, drawer("Old text.")), old);
}

#[test]
fn drawers_are_ordered_by_arrival() {
    let mut store = TestStore::new();
    let [a, b, c] = ["a", "b", "c"].map(|text| added(&mut store, drawer(text)));
    let home = added(&mut store, NewDrawer { room: "home".to_owned(), ..drawer("d") });
    let places = |store: &TestStore| -> Vec<(String, u64, String)> {
        with(store, |snapshot| {
            let page = DrawerPage { order: DrawerOrder::Position, ..page(100) };
            let (drawers, _) =
                snapshot.drawers(&DrawerFilter::default(), &page, usize::MAX).unwrap();
            drawers.into_iter().map(|it| (it.room, it.position, it.text)).collect()
        })
    };
    let place = |room: &str, position, text: &str| (room.to_owned(), position, text.to_owned());
    assert_eq!(
        places(&store),
        [
            place("home", 1, "d"),
            place("work", 1, "a"),
            place("work", 2, "b"),
            place("work", 3, "c")
        ]
    );
    with(&store, |snapshot| {
        let rows = snapshot.rows_of_drawers(&DrawerFilter::default()).unwrap();
        let middle = snapshot.passages(&rows[1..2], true).unwrap().remove(0).unwrap();
        assert_eq!(middle.text.as_deref(), Some("b"));
        assert_eq!(snapshot.passages_beside(&middle, 1).unwrap(), [rows[0], rows[2]]);
        assert_eq!(snapshot.passages_beside(&middle, 0).unwrap(), [0; 0]);
        assert_eq!(snapshot.next_passage(&middle).unwrap(), Some(rows[2]));
        let first = snapshot.passages(&rows[..1], false).unwrap().remove(0).unwrap();
        assert_eq!(snapshot.passages_beside(&first, 5).unwrap(), [rows[1], rows[2]]);
        let last = snapshot.passages(&rows[2..3], false).unwrap().remove(0).unwrap();
        assert_eq!((snapshot.next_passage(&last).unwrap(), last.text), (None, None));
    });
    // A moved drawer comes last; a deleted one leaves a gap.
    let moved = DrawerPatch { room: Some("home".to_owned()), ..DrawerPatch::default() };
    store.one(update(&b, moved)).unwrap();
    store.one(remove(&[&a])).unwrap();
    let e = added(&mut store, drawer("e"));
    assert_eq!(
        places(&store),
        [
            place("home", 1, "d"),
            place("home", 2, "b"),
            place("work", 3, "c"),
            place("work", 4, "e")
        ]
    );
    with(&store, |snapshot| {
        let wings = snapshot.taxonomy().unwrap();
        assert_eq!((wings.len(), wings[0].name.as_str(), wings[0].drawers), (1, "ada", 4));
        let rooms: Vec<_> =
            wings[0].rooms.iter().map(|it| (it.name.as_str(), it.drawers)).collect();
        assert_eq!(rooms, [("home", 2), ("work", 2)]);
    });
    let outcome = store.one(remove(&[&c, &e, &home, "none"])).unwrap();
    assert_eq!((outcome.deleted, outcome.missing, outcome.count_after), (3, 1, 1));
}

fn page(limit: u32) -> DrawerPage {
    DrawerPage { limit, ..DrawerPage::default() }
}

fn moment(text: &str) -> Moment {
    text.parse().unwrap()
}

/// Five drawers: two dated by day, one by the minute, one without a date, one elsewhere.
fn dated() -> TestStore {
    let mut store = TestStore::new();
    let date = |text: &str| Some(moment(text));
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    for new in [
        NewDrawer { date: date("2026-01-01"), tags: tags(&["x", "y"]), ..drawer("first") },
        NewDrawer {
            date: date("2026-01-02"),
            author: Some("Bob".to_owned()),
            source: Some("mail".to_owned()),
            tags: tags(&["x"]),
            ..drawer("second")
        },
        NewDrawer { date: date("2026-01-02T12:00:00Z"), room: "home".into(), ..drawer("third") },
        drawer("now"),
        NewDrawer { date: date("1969-12-31"), wing: "bob".to_owned(), ..drawer("early") },
    ] {
        added(&mut store, new);
    }
    store
}

#[test]
fn filters_select_matching_drawers() {
    let store = dated();
    let all = DrawerFilter::default();
    let text = |text: &str| Some(text.to_owned());
    let at = |text: &str| Some(moment(text));
    let cases: Vec<(DrawerFilter, &[&str])> = vec![
        (all.clone(), &["now", "third", "second", "first", "early"]),
        (DrawerFilter { wing: text("ada"), ..all.clone() }, &["now", "third", "second", "first"]),
        (DrawerFilter { wing: text(" bob "), ..all.clone() }, &["early"]),
        (DrawerFilter { room: text("home"), ..all.clone() }, &["third"]),
        (DrawerFilter { wing: text("bob"), room: text("home"), ..all.clone() }, &[]),
        (DrawerFilter { source: text("mail"), ..all.clone() }, &["second"]),
        (DrawerFilter { author: text("Bob"), ..all.clone() }, &["second"]),
        (DrawerFilter { tags: vec!["x".into()], ..all.clone() }, &["second", "first"]),
        (DrawerFilter { tags: vec!["x".into(), "y".into()], ..all.clone() }, &["first"]),
        (DrawerFilter { tags: vec!["\"x\"".into()], ..all.clone() }, &[]),
        // A day matches from its start to its end.
        (DrawerFilter { since: at("2026-01-02"), ..all.clone() }, &["now", "third", "second"]),
        (
            DrawerFilter { since: at("2026-01-02T12:00:00Z"), ..all.clone() },
            &["now", "third", "second"],
        ),
        (DrawerFilter { since: at("2026-01-02T12:00:00.001Z"), ..all.clone() }, &["now", "second"]),
        (DrawerFilter { since: at("2026-01-03"), ..all.clone() }, &["now"]),
        (DrawerFilter { until: at("2026-01-01"), ..all.clone() }, &["first", "early"]),
        (
            DrawerFilter { until: at("2026-01-02"), ..all.clone() },
            &["third", "second", "first", "early"],
        ),
        (
            DrawerFilter { until: at("2026-01-02T11:00:00Z"), ..all.clone() },
            &["second", "first", "early"],
        ),
        (
            DrawerFilter { since: at("2026-01-01"), until: at("2026-01-01"), ..all.clone() },
            &["first"],
        ),
        (DrawerFilter { until: at("1970-01-01"), wing: text("bob"), ..all.clone() }, &["early"]),
    ];
    with(&store, |snapshot| {
        for (filter, expected) in &cases {
            let (found, total) = snapshot.drawers(filter, &page(100), usize::MAX).unwrap();
            let texts: Vec<&str> = found.iter().map(|it| it.text.as_str()).collect();
            assert_eq!((&texts[..], total), (*expected, expected.len() as u64), "{filter:?}");
            let rows = snapshot.rows_of_drawers(filter).unwrap();
            assert!(rows.is_sorted() && rows.len() == expected.len(), "{filter:?}");
        }
    });
}

#[test]
fn lists_are_paged() {
    let store = dated();
    with(&store, |snapshot| {
        let list = |page: DrawerPage, bytes| {
            let (found, total) = snapshot.drawers(&DrawerFilter::default(), &page, bytes).unwrap();
            assert_eq!(total, 5);
            found.into_iter().map(|it| it.text).collect::<Vec<_>>()
        };
        assert_eq!(list(DrawerPage { offset: 1, ..page(2) }, usize::MAX), ["third", "second"]);
        assert_eq!(list(DrawerPage { offset: 9, ..page(2) }, usize::MAX), [""; 0]);
        // A page has at least one drawer, however large.
        assert_eq!(list(page(5), 1), ["now"]);
        // `after` works whether or not that drawer still exists.
        let after = |position| {
            let place = DrawerPlace { wing: "ada".into(), room: "work".into(), position };
            let order = DrawerOrder::Position;
            list(DrawerPage { order, after: Some(place), ..page(9) }, usize::MAX)
        };
        assert_eq!(after(0), ["first", "second", "now", "early"]);
        assert_eq!(after(2), ["now", "early"]);
        assert_eq!(after(99), ["early"]);
    });
}

#[test]
fn drawers_are_deleted_by_filter() {
    let mut store = dated();
    let matching = |filter| DeleteDrawers { which: WhichDrawers::Matching(filter) };
    let all = DrawerFilter::default();
    assert!(refused(store.one(matching(all.clone()))).1.contains("this would delete all"));
    let by_source = DrawerFilter { source: Some("mail".to_owned()), ..all.clone() };
    let outcome = store.one(matching(by_source.clone())).unwrap();
    assert_eq!((outcome.deleted, outcome.more), (1, false));
    assert_eq!(store.one(matching(by_source)).unwrap().deleted, 0);
    let wing = DrawerFilter { wing: Some("ada".to_owned()), ..all };
    for batch in 0..5 {
        let drawers = (0..500).map(|n| drawer(&format!("text {batch} {n}"))).collect();
        store.one(add(drawers)).unwrap();
    }
    let mut deleted = 0;
    for step in 1.. {
        let outcome = store.one(matching(wing.clone())).unwrap();
        deleted += outcome.deleted;
        if !outcome.more {
            assert!(step > 1);
            break;
        }
    }
    assert_eq!(deleted, 2_503);
    with(&store, |snapshot| {
        assert_eq!(snapshot.memory_state().unwrap().unwrap().records, 1);
        assert_eq!(snapshot.taxonomy().unwrap()[0].name, "bob");
    });
    // A store without memory has nothing to delete.
    let outcome = TestStore::new().one(remove(&["a", "a", "b"])).unwrap();
    assert_eq!((outcome.deleted, outcome.missing), (0, 2));
}

#[test]
fn a_repeated_write_returns_the_first_answer() {
    let mut store = TestStore::new();
    added(&mut store, drawer("text 7"));
    // A few drawers fit into a receipt; many do not.
    for count in [3_u32, 400] {
        let mut drawers: Vec<NewDrawer> =
            (0..count).map(|n| drawer(&format!("text {n}"))).collect();
        drawers[1] = drawer("-");
        let vectors = vectors(drawers.iter().map(|drawer| drawer.text.as_str()));
        let action = AddDrawers { drawers: drawers.clone(), skip_bad: true, vectors };
        let once = key();
        let first = store.keyed(once, action.clone()).unwrap();
        assert_eq!((first.drawers.len() as u32, first.rejected_count), (count - 1, 1));
        let state = get(&store, &first.drawers[0].id);
        let again = store.keyed(once, action).unwrap();
        assert!(again.repeated);
        assert_eq!(again.drawers, first.drawers);
        assert_eq!((&again.rejected, &again.known), (&first.rejected, &first.known));
        assert_eq!(get(&store, &first.drawers[0].id), state);
        let kept = with(&store, |snapshot| snapshot.receipt(once).unwrap().unwrap());
        assert!(kept.len() < 4096);
        // Vectors are derived from texts, so different ones do not make a different request.
        let action = AddDrawers {
            drawers,
            skip_bad: true,
            vectors: DrawerVectors { model: MODEL.to_owned(), dimension: 2, of_drawers: vec![] },
        };
        assert!(store.keyed(once, action).unwrap().repeated);
    }
    let reused = Key([9; 16]);
    store.keyed(reused, add(vec![drawer("a")])).unwrap();
    let error = store.keyed(reused, add(vec![drawer("b")])).unwrap_err();
    assert_eq!(error, StoreError::KeyReused);
}
